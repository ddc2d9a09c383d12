"""Nominal memory layout: where NumPy would have put the elements.

In: arrays.  Out: byte strides, and the memory order NumPy gives copies and elementwise results.  Promise: layout is known without
computing anything, and is NumPy's own choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp import arrays
from lazynp.graph import op as o
from lazynp.graph.node import Shape
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import views
    from lazynp.array import hand
    from lazynp.views import Geometry, View
else:
    hand, views = late("array.hand", "views")

ORDERS = frozenset("CFAK")


def checked_order(order: Any) -> str:
    """A memory order that is none of ``ORDERS`` as it was written; NumPy takes small letters too, and None."""
    if order is None:
        return "C"
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in ORDERS:
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    return order.upper()


def geometry(x: arrays.ndarray) -> Geometry:
    """(byte offset in the base's memory, byte strides)."""
    base = x._base
    if type(base) is arrays.ndarray:
        view: View = x._view
        return view.geometry()
    if type(base) is np.ndarray:
        return hand.rooted(x)[1], base.strides
    return 0, views.owned_strides(x.shape, x.dtype.itemsize)


def lies_in_c_order(x: Any) -> bool:
    """Tell whether an operand's strides cannot ask for another order than C: anything but a view whose axes were exchanged."""
    if type(x) is not arrays.ndarray:
        return type(x) is not np.ndarray or x.flags.c_contiguous
    if type(x._base) is np.ndarray:
        return bool(x._base.flags.c_contiguous)
    if type(x._base) is not arrays.ndarray:
        return True
    for op, arg, _ in x._view.path:
        if op is views.AXES:
            last = -1
            for axis in arg:
                if axis >= 0:
                    if axis < last:
                        return False
                    last = axis
        elif op is not o.SLICE:
            return False
    return True


def _in_c_order(x: arrays.ndarray) -> bool:
    """Tell whether the elements lie in memory in the order of the axes."""
    if type(x._base) is np.ndarray:
        return bool(x._base.flags.c_contiguous)
    return type(x._base) is not arrays.ndarray or x._view.in_c_order()


def result_order(inputs: Sequence[Any], shape: Shape) -> tuple[int, ...] | None:
    """NumPy's memory order for an elementwise result of ``shape``: axes from slowest to fastest, None for C order."""
    if len(shape) < 2:
        return None
    for x in inputs:
        if type(x) is np.ndarray or (type(x) is arrays.ndarray and not _in_c_order(x)):
            return iteration_order([x for x in inputs if type(x) is arrays.ndarray or type(x) is np.ndarray], shape)
    return None


def reduction_order(x: Any, axes: Sequence[int], ndim: int, mask: Any = None) -> tuple[int, ...] | None:
    """NumPy's memory order for a result of ``ndim`` axes made by reducing ``axes`` of ``x`` (dropped, or kept with length one).

    A ``mask`` of what counts is an operand like ``x``.
    """
    if ndim < 2 or type(x) is not arrays.ndarray:
        return None
    if mask is None:
        if x._base is None or (0 not in x.shape and _in_c_order(x)):  # strides of a view without elements say how it lies
            return None
    elif x._base is None and 0 not in x.shape:  # where there are no elements, the mask alone lies somehow
        return None
    order = _iterated([x] if mask is None else [x, mask], x.ndim)
    if ndim == len(x.shape):
        return tuple(order)
    rest = [axis for axis in order if axis not in axes]
    names = sorted(rest)
    return tuple([names.index(axis) for axis in rest])


def joined_order(parts: Sequence[arrays.ndarray]) -> tuple[int, ...] | None:
    """NumPy's memory order for the concatenation of ``parts``, which have the same number of axes.

    This is ``PyArray_CreateMultiSortedStridePerm``: the axes sorted by the parts' strides, which have no say about axes of length one.
    """
    if all(lies_in_c_order(x) for x in parts):
        return None
    columns = [[None if n == 1 else abs(stride) for n, stride in zip(x.shape, x.strides, strict=True)] for x in parts]
    order = _sorted_axes(list(range(parts[0].ndim)), columns)
    return None if order == list(range(len(order))) else tuple(order)


def _sorted_axes(order: list[int], columns: Sequence[Sequence[int | None]]) -> list[int]:
    """An insertion sort of ``order``: an axis goes before those with smaller numbers in the operands' ``columns`` (None: no say).

    Where operands disagree, the order given wins; where none has a say, an axis is compared with the next one.
    """
    for k in range(1, len(order)):
        axis = order[k]
        position = k
        for j in range(k - 1, -1, -1):
            other = order[j]
            decided, swap = False, False
            for strides in columns:
                mine, its = strides[axis], strides[other]
                if mine is not None and its is not None:
                    if mine <= its:
                        swap = False
                    elif not decided:
                        swap = True
                    decided = True
            if decided:
                if not swap:
                    break
                position = j
        if position != k:
            order.insert(position, order.pop(k))
    return order


def copy_order(x: arrays.ndarray, order: str | None) -> tuple[int, ...] | None:
    """The memory order of a copy of ``x``: axes from slowest to fastest, None for C order."""
    if order is not None and order not in ORDERS:
        order = checked_order(order)
    if order == "F":
        return tuple(range(x.ndim - 1, -1, -1)) if x.ndim > 1 else None
    if order == "C" or x._base is None:
        return None
    _, strides = geometry(x)
    if order == "A":
        flags = x.flags
        return tuple(range(x.ndim - 1, -1, -1)) if flags.f_contiguous and not flags.c_contiguous else None
    return views.memory_order(x.shape, strides, x.dtype.itemsize)


def iteration_order(operands: Sequence[Any], shape: Shape) -> tuple[int, ...] | None:
    """The memory order NumPy's iterator gives a new operand of ``shape``: axes from slowest to fastest, None for C order.

    This is ``npyiter_find_best_axis_ordering``: the axes sorted by the operands' strides, from the fastest to the slowest; those of length
    one and those that are broadcast have no say.
    """
    ndim = len(shape)
    sized = [array for array in operands if array.shape]
    if all(array.shape == shape and array.flags.f_contiguous for array in sized):
        # Operands that one flat loop can walk do not get an iterator.
        return None if all(array.flags.c_contiguous for array in sized) else tuple(range(ndim - 1, -1, -1))
    order = _iterated(sized, ndim)
    return None if order == list(range(ndim)) else tuple(order)


def flat_order(x: arrays.ndarray) -> tuple[int, ...]:
    """The axes from slowest to fastest as NumPy copies ``x`` into one dimension; unlike a copy's, broadcast axes stay where they are."""
    return tuple(_iterated([x], x.ndim))


def loop_order(operands: Sequence[Any], cores: Sequence[int], ndim: int) -> tuple[int, ...]:
    """The memory order of a generalised ufunc's result: its loop axes as the iterator walks them, then its core axes."""
    if any(0 in x.shape for x in operands):
        return tuple(range(ndim))
    loops = [x[(..., *(0,) * core)] for x, core in zip(operands, cores, strict=True) if x.ndim > core]
    batch = max([x.ndim for x in loops], default=0)
    return (*_iterated(loops, batch), *range(batch, ndim))


def _iterated(operands: Sequence[Any], ndim: int) -> list[int]:
    """The axes from slowest to fastest as NumPy's iterator walks them."""
    columns: list[list[int | None]] = []
    for array in operands:
        own = array.shape
        strides: list[int | None] = [None if n == 1 or stride == 0 else -abs(stride) for n, stride in zip(own, array.strides, strict=True)]
        columns.append([*[None] * (ndim - len(own)), *strides])
    return _sorted_axes(list(range(ndim - 1, -1, -1)), columns)[::-1]
