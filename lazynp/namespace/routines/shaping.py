"""Shapes and axes: everything that only moves elements about.

In: arrays.  Out: views where NumPy gives views.  Promise: nothing is computed or copied, and NumPy's errors for axes and shapes
are raised at the call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc import axes as ax
from lazynp.scalars import is_scalar
from lazynp.values import config
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion, layout, viewing, views
    from lazynp.array import calls, hand
    from lazynp.graph import build
    from lazynp.namespace.routines import creation
    from lazynp.namespace.ufunc import promotion
else:
    calls, hand, conversion, build, layout, creation, promotion, viewing, views = late(
        "array.calls",
        "array.hand",
        "conversion",
        "graph.build",
        "layout",
        "namespace.routines.creation",
        "namespace.ufunc.promotion",
        "viewing",
        "views",
    )

Function = Callable[..., Any]


_MISSING: Final = object()


def of_arrays(function: Function) -> Function:
    """The same for what the graph does not compute with: NumPy's function of that name takes the call."""
    name = function.__name__
    numpy_function = getattr(np, name)

    code = function.__code__
    first = code.co_varnames[0]

    def checked(a: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if a is _MISSING:
            if first not in kwargs or code.co_posonlyargcount:
                return function(**kwargs)  # Python words what is missing
            a = kwargs.pop(first)
        x = conversion.anyarray(a)
        if type(x) is not ndarray:
            return fallback.call(numpy_function, name, (a, *args), kwargs)
        return function(x, *args, **kwargs)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = function.__doc__
    checked.__wrapped__ = function  # type: ignore[attr-defined]
    return checked


def of_numbers(function: Function) -> Function:
    """The same for scalars, whose methods give scalars again."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if type(found) is ndarray and not found.shape and args and (isinstance(args[0], np.generic) or is_scalar(args[0])):
            return found[()]
        return found

    checked.__name__ = checked.__qualname__ = function.__name__
    checked.__doc__ = function.__doc__
    checked.__wrapped__ = function  # type: ignore[attr-defined]
    return checked


@of_numbers
@of_arrays
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """Give an array another shape over the same elements; see :func:`numpy.reshape`."""
    return viewing.view_reshape(a, shape, order, copy)


@of_arrays
def ravel(a: Any, order: str = "C") -> Any:
    """Show all elements in one dimension; see :func:`numpy.ravel`."""
    order = order if order in layout.ORDERS else layout.checked_order(order)
    memory = hand.own_memory(a)
    if memory is not None:  # of one number everywhere, which has it only since it is asked for
        return hand.result(memory.ravel(order), (a,))  # type: ignore[arg-type]
    flags = a.flags
    if order in "KA":
        axes = layout.copy_order(a, order)
    else:
        axes = tuple(range(a.ndim - 1, -1, -1)) if order == "F" else None
    if flags.c_contiguous and axes is None:
        return viewing.view_reshape(a, (-1,))
    laid = a if axes is None else viewing.view_permute(a, axes)
    if laid.flags.c_contiguous:
        return viewing.view_reshape(laid, (-1,))
    # Unlike a reshape, NumPy's ravel is a view of contiguous memory only.
    return viewing.view_reshape(viewing.view_permute(a, layout.flat_order(a)) if order == "K" else laid, (-1,), copy=True)


@of_numbers
@of_arrays
def transpose(a: Any, axes: Any = None) -> Any:
    """Permute axes; see :func:`numpy.transpose`."""
    if axes is None:
        return a.T
    axes = [*axes] if np.iterable(axes) else [axes]
    if any(not -(2**63) <= index(k) < 2**63 for k in axes):
        raise ValueError("Maximum allowed dimension exceeded")
    if len(axes) != a.ndim:
        raise ValueError("axes don't match array")
    permutation = tuple([ax.one(k, a.ndim, beyond=ValueError) for k in axes])
    if len(set(permutation)) != len(permutation):
        raise ValueError("repeated axis in transpose")
    return viewing.view_permute(a, permutation)


@of_arrays
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """Exchange two axes; see :func:`numpy.swapaxes`."""
    first, second = ax.one(axis1, a.ndim), ax.one(axis2, a.ndim)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return viewing.view_permute(a, tuple(order))


@of_numbers
@of_arrays
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places; see :func:`numpy.moveaxis`."""
    origin = ax.several(source, a.ndim, "source")
    target = ax.several(destination, a.ndim, "destination")
    if len(origin) != len(target):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(a.ndim) if k not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return viewing.view_permute(a, tuple(order))


@of_arrays
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """Move one axis before another; see :func:`numpy.rollaxis`."""
    n = a.ndim
    axis = ax.one(axis, n)
    start = index(start)
    if not -n <= start <= n:
        raise np.exceptions.AxisError(f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in")
    start = start + n if start < 0 else start
    start -= axis < start
    order = [k for k in range(n) if k != axis]
    order.insert(start, axis)
    return viewing.view_permute(a, tuple(order))


@of_arrays
def matrix_transpose(x: Any, /) -> Any:
    """Exchange the last two axes; see :func:`numpy.matrix_transpose`."""
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return x.mT


@of_numbers
@of_arrays
def squeeze(a: Any, axis: Any = None) -> Any:
    """Remove axes of length one; see :func:`numpy.squeeze`."""
    shape = a.shape
    if axis is None:
        gone: tuple[int, ...] = tuple([k for k, n in enumerate(shape) if n == 1])
    else:
        gone = ax.several(axis, a.ndim, beyond=ValueError) if a.ndim or isinstance(axis, tuple) else ()
        if any(shape[k] != 1 for k in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not gone:
        return a
    return viewing.view_axes(a, tuple([k for k in range(a.ndim) if k not in gone]))


@of_arrays
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert axes of length one; see :func:`numpy.expand_dims`."""
    known = calls.answer(np.expand_dims, (a, axis), {}, 1)  # of memory that lies in no array of NumPy's: with its strides
    if known is not NotImplemented:
        return known
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    ndim = a.ndim + count
    new = ax.several(axis, ndim)
    old = iter(range(a.ndim))
    return viewing.view_axes(a, tuple([views.NEW if k in new else next(old) for k in range(ndim)]))


def _at_least(name: str, ndim: int) -> Function:
    numpy_function = getattr(np, name)

    def grown(a: Any) -> Any:
        x = conversion.anyarray(a)
        if type(x) is not ndarray:
            return numpy_function(x)
        old = x.ndim
        if old >= ndim:
            return x
        if ndim == 3 and old == 2:
            return viewing.view_axes(x, (0, 1, views.NEW))
        if ndim == 3 and old == 1:
            return viewing.view_axes(x, (views.NEW, 0, views.NEW))
        return viewing.view_axes(x, (views.NEW,) * (ndim - old) + tuple(range(old)))

    def function(*arys: Any) -> Any:
        return grown(arys[0]) if len(arys) == 1 else tuple([grown(a) for a in arys])

    function.__name__ = function.__qualname__ = name
    return function


atleast_1d = _at_least("atleast_1d", 1)
atleast_2d = _at_least("atleast_2d", 2)
atleast_3d = _at_least("atleast_3d", 3)


@of_arrays
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Show an array in a larger shape, as a read-only view; see :func:`numpy.broadcast_to`."""
    bool(subok)  # an array is neither true nor false
    wanted = creation.shape_of(shape)
    try:
        if build.broadcast_shape(array.shape, wanted) != wanted:
            raise ValueError
    except ValueError:
        raise ValueError(
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{str(array.shape).replace(' ', '')}  and requested shape {str(wanted).replace(' ', '')}"
        ) from None
    return viewing.view_expand(array, creation.addressable(wanted, array.dtype))


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Show all arrays in their common shape, as views that may be written; see :func:`numpy.broadcast_arrays`."""
    arrays = [creation.shared(a) for a in args]
    if any(type(x) is not ndarray for x in arrays) or (subok and promotion.has_subclass(*args)):
        return fallback.call(np.broadcast_arrays, "broadcast_arrays", args, {"subok": subok})
    shape = build.broadcast_shape(*[x.shape for x in arrays]) if arrays else ()
    memories: list[Any] = [hand.own_memory(x) for x in arrays]
    if config.at_hand and prod(shape) <= config.at_hand and not any(memory is None for memory in memories):
        shown = np.broadcast_arrays(*memories)
        return tuple([x if x.shape == shape else hand.cell(view, hand.owner_of(x)) for x, view in zip(arrays, shown, strict=True)])
    found = tuple([x if x.shape == shape else viewing.view_expand(x, shape) for x in arrays])
    for x, view in zip(arrays, found, strict=True):
        if view is not x and x._readonly is not True:
            view._readonly = viewing.Warned()
    return found


@of_arrays
def flip(m: Any, axis: Any = None) -> Any:
    """Reverse axes; see :func:`numpy.flip`."""
    axes = tuple(range(m.ndim)) if axis is None else ax.several(axis, m.ndim)
    return viewing.view_flip(m, axes) if m.ndim else m[()]


@of_arrays
def fliplr(m: Any) -> Any:
    """Reverse the columns; see :func:`numpy.fliplr`."""
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return viewing.view_flip(m, (1,))


@of_arrays
def flipud(m: Any) -> Any:
    """Reverse the rows; see :func:`numpy.flipud`."""
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return viewing.view_flip(m, (0,))


@of_arrays
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    """Rotate an array in a plane of axes; see :func:`numpy.rot90`."""
    axes = tuple(axes)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    ndim = m.ndim
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == ndim:
        raise ValueError("Axes must be different.")
    if any(not -ndim <= a < ndim for a in axes):
        raise ValueError(f"Axes={axes} out of range for array of ndim={ndim}.")
    first, second = [a % ndim for a in axes]
    turns = k % 4
    if turns == 0:
        return m[...]
    if turns == 2:
        return viewing.view_flip(m, (first, second))
    order = list(range(ndim))
    order[first], order[second] = second, first
    if turns == 1:
        return viewing.view_permute(viewing.view_flip(m, (second,)), tuple(order))
    return viewing.view_flip(viewing.view_permute(m, tuple(order)), (second,))


# Splitting ------------------------------------------------------------------------------------------------------------------


def _section(x: Any, axis: int, start: int, stop: int) -> Any:
    shape = x.shape
    start, stop = slice(start, stop).indices(shape[axis])[:2]
    length = max(stop - start, 0)
    region = tuple([(start if length else 0, 1) if k == axis else (0, 1) for k in range(len(shape))])
    return viewing.view_slice(x, shape, region, tuple([length if k == axis else m for k, m in enumerate(shape)]))


@of_arrays
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split an array into parts along an axis, as views; see :func:`numpy.array_split`."""
    total = ary.shape[axis]  # an axis that is not there is an IndexError, as in NumPy
    axis %= ary.ndim
    try:
        bounds = [0, *[None if k is None else index(k) for k in indices_or_sections], total]
    except TypeError:
        sections = int(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, extras = divmod(total, sections)
        bounds = list(itertools.accumulate([0] + extras * [each + 1] + (sections - extras) * [each]))
    return [_section(ary, axis, start, stop) for start, stop in itertools.pairwise(bounds)]


@of_arrays
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split an array into equal parts along an axis, as views; see :func:`numpy.split`."""
    try:
        len(indices_or_sections)
    except TypeError:
        if ary.shape[axis] % indices_or_sections:
            raise ValueError("array split does not result in an equal division") from None
    return array_split(ary, indices_or_sections, axis)


def _split_along(name: str, axis: int, least: int) -> Function:
    def function(ary: Any, indices_or_sections: Any) -> Any:
        ndim = conversion.asarray(ary).ndim
        if ndim < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return split(ary, indices_or_sections, 0 if name == "hsplit" and ndim == 1 else axis)

    function.__name__ = function.__qualname__ = name
    return function


@of_arrays
def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """Split an array into its sub-arrays along an axis; see :func:`numpy.unstack`."""
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    moved = moveaxis(x, axis, 0)
    return tuple([moved[k] for k in range(moved.shape[0])])


def flatten(x: Any, order: str = "C") -> Any:
    """Copy all elements in one dimension; the method of that name."""
    return wrap(build.copied(node_of(ravel(x, order))))


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        reshape, ravel, transpose, swapaxes, moveaxis, rollaxis, matrix_transpose, squeeze, expand_dims, atleast_1d, atleast_2d, atleast_3d,
        broadcast_to, broadcast_arrays, flip, fliplr, flipud, rot90, array_split, split, unstack,
        _split_along("hsplit", 1, 1), _split_along("vsplit", 0, 2), _split_along("dsplit", 2, 3),
    )
} | {"permute_dims": transpose}  # fmt: skip
