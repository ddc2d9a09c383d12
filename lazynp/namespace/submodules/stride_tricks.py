"""Views with strides of the caller's choice.

In: an array, a shape and strides, or windows.  Out: views, read by index arithmetic and written through.  Promise: strides that would leave
the memory of the array are refused, where NumPy reads whatever lies there.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.namespace.bridge.fallback import library_call
from lazynp.namespace.ufunc import axes as ax
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import layout, viewing, views
    from lazynp.array import hand
    from lazynp.namespace.routines import creation
    from lazynp.namespace.ufunc import promotion
else:
    hand, layout, creation, promotion, viewing, views = late(
        "array.hand", "layout", "namespace.routines.creation", "namespace.ufunc.promotion", "viewing", "views"
    )


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """Show the array's memory with any shape and strides; see :func:`numpy.lib.stride_tricks.as_strided`.

    Raises
    ------
    ValueError
        An element of the view would lie outside the memory that the array, or the array it is a view of, has.
    """
    array = x if type(x) is ndarray else creation.shared(x)
    if type(array) is not ndarray or (subok and promotion.has_subclass(x)):
        return library_call(np.lib.stride_tricks.as_strided, "as_strided", (x, shape, strides, subok, writeable), {})
    size = array.dtype.itemsize
    wanted = array.shape if shape is None else tuple([index(n) for n in shape])
    if any(n < 0 for n in wanted):
        raise ValueError("negative dimensions are not allowed")
    if strides is not None:
        steps = tuple([index(step) for step in strides])
    elif array.flags.c_contiguous:
        steps = views.c_strides(wanted, size)
    else:
        steps = array.strides
    if len(steps) != len(wanted):
        raise ValueError("mismatch in length of strides and shape")
    if hand.own_memory(array) is None:
        offset, _ = layout.geometry(array)
        root = array._base if type(array._base) is ndarray else array
    else:
        root, offset = hand.whole(array)
    if 0 not in wanted:
        ends = [(n - 1) * step for n, step in zip(wanted, steps, strict=True)]
        first, last = offset + sum([min(end, 0) for end in ends]), offset + sum([max(end, 0) for end in ends]) + size
        if first < 0 or last > root.nbytes:
            raise ValueError(
                f"shape {wanted} with strides {steps} reaches bytes [{first}, {last}) of memory that has {root.nbytes}: "
                "a view shows nothing outside the array it is taken from"
            )
    at = array if type(array._base) is ndarray else root
    made = viewing.derived(at, at.shape, (views.STRIDED, (offset, steps, array.dtype), wanted), geometry=(offset, steps))
    made._readonly = array._readonly is not False or not writeable
    return made


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Any:
    """Show windows over axes, as the last axes of a view; see :func:`numpy.lib.stride_tricks.sliding_window_view`."""
    widths = tuple([index(n) for n in window_shape]) if np.iterable(window_shape) else (index(window_shape),)
    array = x if type(x) is ndarray else creation.shared(x)
    if type(array) is not ndarray or (subok and promotion.has_subclass(x)):
        options = {"subok": subok, "writeable": writeable}
        return library_call(np.lib.stride_tricks.sliding_window_view, "sliding_window_view", (x, window_shape, axis), options)
    if any(n < 0 for n in widths):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes: tuple[int, ...] = tuple(range(array.ndim))
        if len(widths) != len(axes):
            raise ValueError(
                "Since axis is `None`, must provide window_shape for all dimensions of `x`; "
                f"got {len(widths)} window_shape elements and `x.ndim` is {array.ndim}."
            )
    else:
        axes = tuple([ax.one(k, array.ndim) for k in axis]) if np.iterable(axis) else (ax.one(axis, array.ndim),)
        if len(widths) != len(axes):
            raise ValueError(
                "Must provide matching length window_shape and axis; "
                f"got {len(widths)} window_shape elements and {len(axes)} axes elements."
            )
    found = array
    for along, width in zip(axes, widths, strict=True):
        shape = found.shape
        if shape[along] < width:
            raise ValueError("window shape cannot be larger than input array shape")
        places = (*shape[:along], shape[along] - (width - 1), *shape[along + 1 :])
        found = viewing.derived(found, shape, (views.WINDOWS, (along, width), (*places, width)))
    if found is array:
        found = array.view()
    found._readonly = array._readonly is not False or not writeable
    return found


FUNCTIONS: Final = {"as_strided": as_strided, "sliding_window_view": sliding_window_view}
