"""Choosing among values: where, clip, take, positions of what is not zero, sorting.

In: arrays, conditions, positions.  Out: WHERE and GATHER nodes, library calls for sorting.  Promise: NumPy's dtype rules (weak
Python scalars included) and errors; only results whose shape depends on values compute anything.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.array import hand
from lazynp.arrays import ndarray, node_of, result, wrap
from lazynp.conversion import asarray as _asarray
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, reshape
from lazynp.graph.dtypes import BOOL, INT64, NATIVE, DType
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node, caller
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import item
from lazynp.namespace.indexing import positions
from lazynp.namespace.routines.shaping import of_arrays
from lazynp.namespace.standard import exchanged
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.loops import truth
from lazynp.namespace.ufunc.promotion import Foreign, array_node, broadcast, concrete, operand
from lazynp.namespace.ufunc.reductions import NoValue, laid_like
from lazynp.namespace.ufunc.ufuncs import NO_ARRAY, UFUNCS, need_array, ordered, write_out
from lazynp.protocols import to_host
from lazynp.values import config
from lazynp.values.loading import load
from lazynp.viewing import view_reshape

# where ------------------------------------------------------------------------------------------------------------------------


def _result_dtype(operands: list[tuple[Node | None, Any]], values: list[Any]) -> DType:
    """NumPy's promotion of arrays and weak numbers."""
    strong = [kind for node, kind in operands if node is not None]
    weak = [value for (node, _), value in zip(operands, values, strict=True) if node is None]
    # Only a weak number's kind matters, and 0 fits everywhere.
    return np.result_type(*strong, *[type(value)(0) for value in weak])


def _in_dtype(node: Node | None, value: Any, dtype: DType) -> Node:
    if node is not None:
        return cast(node, dtype)
    # where casts unsafely: a number that does not fit wraps around.
    return const(at_once(np.asarray(value).astype, dtype)[()], dtype)


def _where_of_arrays(condition: ndarray, x: Any, y: Any) -> Any:
    """The quick way for a bool array and arrays (or one Python float) of one dtype; None where that is not what is given."""
    mask = node_of(condition)
    if mask.dtype != BOOL:
        return None
    a = node_of(x) if type(x) is ndarray else None
    b = node_of(y) if type(y) is ndarray else None
    if a is None:
        if b is None or type(x) is not float or b.dtype.kind not in "fc":
            return None
        a = const(at_once(b.dtype.type, x), b.dtype)
    elif b is None:
        if type(y) is not float or a.dtype.kind not in "fc":
            return None
        b = const(at_once(a.dtype.type, y), a.dtype)
    elif a.dtype != b.dtype:
        return None
    shape = mask.shape
    if a.shape != shape or b.shape != shape:
        shape = broadcast(shape, a.shape, b.shape)
    return ordered(Node(o.WHERE, (mask, a, b), None, a.dtype, shape, caller()), (condition, x, y), "K")


def where(condition: Any, x: Any = NoValue, y: Any = NoValue, /) -> Any:
    """Take one or the other by a condition, or find where it holds; see :func:`numpy.where`."""
    if x is NoValue and y is NoValue:
        return _nonzero(condition, np.where)  # which asks no object for a method
    if x is NoValue or y is NoValue:
        raise ValueError("either both or neither of x and y should be given")
    if type(condition) is ndarray:
        found = _where_of_arrays(condition, x, y)
        if found is not None:
            return found
    try:
        mask = truth(array_node(condition))
        operands = [operand(x), operand(y)]
        dtype = _result_dtype(operands, [x, y])
        if dtype not in NATIVE:
            raise Foreign
    except Foreign:
        return fallback.call(np.where, "where", (condition, x, y), {})
    a, b = [_in_dtype(node, value, dtype) for (node, _), value in zip(operands, (x, y), strict=True)]
    if mask.shape != a.shape or mask.shape != b.shape:
        broadcast(mask.shape, a.shape, b.shape)
    node = elementwise(o.WHERE, dtype, mask, a, b)
    return ordered(node, (condition, x, y), "K")


where.__wrapped__ = np.where  # type: ignore[attr-defined]  # its signature: None stands for nothing given there, and is a value here


@fallback.library
def nonzero(a: Any) -> Any:
    """Find the positions of what is not zero, an array per axis; see :func:`numpy.nonzero`."""
    return _nonzero(a, np.nonzero)


def _nonzero(a: Any, theirs: Any) -> Any:
    try:
        x = wrap(array_node(a))
    except Foreign:
        return fallback.call(theirs, theirs.__name__, (a,), {})
    return tuple([found if type(found) is ndarray else _of_memory(found) for found in positions(x)])


def _of_memory(found: np.ndarray[Any, Any]) -> Any:
    """Return what NumPy has found as an array of ours."""
    return hand.result(found) if found.size <= config.at_hand else wrap(build.buffer(np.ascontiguousarray(found)))


@fallback.library
def flatnonzero(a: Any) -> Any:
    """Find the positions of what is not zero in the flattened array; see :func:`numpy.flatnonzero`."""
    return nonzero(_flat(a))[0]


def _flat(a: Any) -> Any:
    x = _asarray(a)
    return view_reshape(x, (-1,)) if type(x) is ndarray else x.ravel()


@fallback.library
def argwhere(a: Any) -> Any:
    """Find the positions of what is not zero, one per row; see :func:`numpy.argwhere`."""
    try:
        x = wrap(array_node(a))
    except Foreign:
        return fallback.call(np.argwhere, "argwhere", (a,), {})
    if not x.shape:
        return argwhere(view_reshape(x, (1,)))[:, :0]
    found = positions(x)
    stack = load("lazynp.namespace.routines.joining").stack  # which needs what is here
    return (stack(found) if type(found[0]) is ndarray else wrap(build.buffer(np.array(found)))).T


# clip -------------------------------------------------------------------------------------------------------------------------


def _unbounded(bound: Any, dtype: DType, low: bool) -> bool:
    if bound is None or bound is NoValue:
        return True
    if dtype.kind not in "iu" or type(bound) is not int:
        return False
    limits = np.iinfo(dtype)
    return bool(bound <= limits.min if low else bound >= limits.max)


def _limit(x: Node, bound: Node, beyond: o.Op) -> Node:
    """One side of a clip.

    A constant bound that is a number is compared with, as NumPy does: that keeps -0.0 where the bound is 0. Any other may be NaN.
    """
    if x.dtype.kind == "f" and bound.op is o.CONST and bound.arg == bound.arg:
        return elementwise(o.WHERE, x.dtype, elementwise(beyond, BOOL, x, bound), bound, x)
    bigger, smaller = (o.MAXIMUM, o.MINIMUM) if x.dtype != BOOL else (o.BITWISE_OR, o.BITWISE_AND)
    return elementwise(bigger if beyond is o.LESS else smaller, x.dtype, x, bound)


@exchanged
def clip(
    a: Any, a_min: Any = NoValue, a_max: Any = NoValue, out: Any = None, *, min: Any = NoValue, max: Any = NoValue, **kwargs: Any
) -> Any:
    """Limit values to an interval; see :func:`numpy.clip`."""
    if a_min is NoValue and a_max is NoValue:
        low, high = (None if bound is NoValue else bound for bound in (min, max))
    elif a_min is NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_min'")
    elif a_max is NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_max'")
    elif min is not NoValue or max is not NoValue:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    else:
        low, high = a_min, a_max
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.clip, "clip", (a, low, high), {"out": out, **kwargs})
    if low is None and high is None:
        return UFUNCS["positive"](a if type(a) is ndarray else result(x), **(kwargs if out is None else {**kwargs, "out": out}))
    low = None if _unbounded(low, x.dtype, True) else low
    high = None if _unbounded(high, x.dtype, False) else high
    keywords = kwargs if out is None else {**kwargs, "out": out}
    array = a if type(a) is ndarray else result(x)
    if low is None and high is None:
        return UFUNCS["positive"](array, **keywords) if x.dtype != BOOL else _asarray(array, copy=True)
    if low is None:
        return UFUNCS["minimum"](array, high, **keywords)
    if high is None:
        return UFUNCS["maximum"](array, low, **keywords)
    if kwargs:
        return fallback.call(np.clip, "clip", (a, low, high), keywords)
    try:
        bounds = [operand(low), operand(high)]
        loop = np._core.umath.clip.resolve_dtypes((x.dtype, bounds[0][1], bounds[1][1], None))[0]  # type: ignore[attr-defined]
        if loop not in NATIVE:
            raise Foreign
    except Foreign:
        return fallback.call(np.clip, "clip", (a, low, high), keywords)
    least, most = [const(value, loop) if node is None else cast(node, loop) for (node, _), value in zip(bounds, (low, high), strict=True)]
    broadcast(x.shape, least.shape, most.shape)
    node = _limit(_limit(cast(x, loop), least, o.LESS), most, o.GREATER)
    need_array(out)
    if out is not None:
        if not np.can_cast(loop, out.dtype, "same_kind"):
            limits: Any = np._core.umath
            raise np._core._exceptions._UFuncOutputCastingError(limits.clip, "same_kind", loop, out.dtype, 0)  # type: ignore[attr-defined]
        return write_out(out, node)
    return result(node) if not node.shape else ordered(node, (a, low, high), "K")


# take -------------------------------------------------------------------------------------------------------------------------


def _limited(positions: Node, n: int, mode: str) -> Node:
    if mode == "wrap":
        return elementwise(o.REMAINDER, INT64, positions, const(n, INT64))
    low = elementwise(o.MAXIMUM, INT64, positions, const(0, INT64))
    return elementwise(o.MINIMUM, INT64, low, const(n - 1, INT64))


def gathered(x: Node, positions: Node, axis: int) -> Node:
    """``x`` at int64 ``positions`` of one axis, whose axes take its place."""
    ndim = len(x.shape)
    if axis == 0:
        return build.gather(x, positions)
    order = (axis, *[k for k in range(ndim) if k != axis])
    found = build.gather(build.permute(x, order), positions)
    m = len(positions.shape)
    # Result axes: the positions', then the others of x; the positions' go back to where the axis was.
    back = (*range(m, m + axis), *range(m), *range(m + axis, m + ndim - 1))
    return build.permute(found, back)


@of_arrays
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Take elements at positions along an axis; see :func:`numpy.take`."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode not understood: {mode!r}")
    at = _asarray(indices) if isinstance(indices, np.ndarray) or type(indices) is ndarray else _asarray(indices, INT64)
    if type(at) is not ndarray or not np.can_cast(at.dtype, INT64, "same_kind"):
        raise TypeError(f"Cannot cast array data from {at.dtype!r} to dtype('int64') according to the rule 'same_kind'")
    x = a if axis is not None or a.ndim == 1 else a.reshape(-1)
    if not x.ndim:
        x = view_reshape(x, (1,))
    axis = 0 if axis is None else ax.one(axis, x.ndim, beyond=ValueError)
    n = x.shape[axis]
    if not n and at.size:
        rest = x.shape[:axis], x.shape[axis + 1 :]
        if 0 not in rest[0] + rest[1]:
            raise IndexError("cannot do a non-empty take from an empty axes.")
        if mode == "raise" and 0 not in rest[0]:
            raise IndexError(f"index 0 is out of bounds for axis {axis} with size 0")
        node = expand(const(0, x.dtype), (*rest[0], *at.shape, *rest[1]))
    elif mode == "raise":
        if at.dtype == BOOL:
            at = wrap(cast(node_of(at), INT64))
        found = x[(slice(None),) * axis + (at,)]
        if out is None and type(found) is ndarray and x.ndim == 1 and at.ndim == 1:  # others may lie in another order
            return found
        node = node_of(found)
    else:
        node = gathered(node_of(x), _limited(cast(node_of(at), INT64), n, mode), axis)
    need_array(out, NO_ARRAY)
    if out is None:
        return result(node)
    if out.shape != node.shape:
        raise ValueError("output array does not match result of ndarray.take")
    if not np.can_cast(out.dtype, x.dtype):
        # NumPy takes into an array of its own dtype, which it makes of this one.
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to {x.dtype!r} according to the rule 'safe'")
    return write_out(out, node)


@of_arrays
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Take elements at positions that differ by row; see :func:`numpy.take_along_axis`."""
    at = _asarray(indices)
    if axis is None:
        if at.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        return view_reshape(arr, (-1,))[at]
    axis = ax.one(axis, arr.ndim)
    if at.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if at.ndim != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    grid = [
        at if k == axis else wrap(reshape(build.iota(n, 0, 1, INT64), tuple([n if j == k else 1 for j in range(arr.ndim)])))
        for k, n in enumerate(arr.shape)
    ]
    return arr[tuple(grid)]


def compress(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Slices where a condition holds; the method of that name."""
    x, mask = _asarray(a), _asarray(condition)
    if type(x) is not ndarray:
        return fallback.call(np.compress, "compress", (mask, x, axis, out), {})
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    x = view_reshape(x, (-1,)) if axis is None else x
    axis = 0 if axis is None else ax.one(axis, x.ndim, beyond=ValueError)
    if out is None and x.ndim == 1 and _are_truths_of(mask, x):
        return x[mask]
    return take(x, nonzero(mask)[0], axis, out)


def _are_truths_of(mask: Any, x: Any) -> bool:
    return type(mask) is ndarray and type(x) is ndarray and mask.dtype == BOOL and mask.shape == x.shape


@fallback.library
def compress_(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Select the slices where a condition holds; see :func:`numpy.compress`."""
    return compress(a, condition, axis, out)


@fallback.library
def extract(condition: Any, arr: Any) -> Any:
    """Select the elements where a condition holds; see :func:`numpy.extract`."""
    x, mask = _flat(arr), _flat(condition)
    return x[mask] if _are_truths_of(mask, x) else take(x, flatnonzero(mask))


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Take the first choice whose condition holds; see :func:`numpy.select`."""
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    if not conditions:
        raise ValueError("select with an empty condition list is not possible")
    try:
        masks = [array_node(c) for c in conditions]
        operands = [operand(c) for c in [*choices, default]]
        dtype = _result_dtype(operands, [*choices, default])
    except Foreign:
        return fallback.call(np.select, "select", (condlist, choicelist, default), {})
    for k, mask in enumerate(masks):
        if mask.dtype != BOOL:
            raise TypeError(f"invalid entry {k} in condlist: should be boolean ndarray")
    values = [_in_dtype(node, value, dtype) for (node, _), value in zip(operands, [*choices, default], strict=True)]
    found = values[-1]
    for mask, value in zip(reversed(masks), reversed(values[:-1]), strict=True):
        broadcast(mask.shape, value.shape, found.shape)
        found = elementwise(o.WHERE, dtype, mask, value, found)
    return wrap(found)


# Sorting ----------------------------------------------------------------------------------------------------------------------


def library(name: str, nodes: tuple[Node, ...], dtype: DType, shape: tuple[int, ...], **static: Any) -> Node:
    """NumPy's function of that name as one item of the schedule."""
    return build.call("numpy", (name, tuple(static.items())), nodes, dtype, shape)


def _sorting(name: str, a: Any, axis: Any, static: dict[str, Any], dtype: DType | None, descending: bool = False) -> Node:
    x = array_node(a)
    if axis is None:
        x, axis = reshape(x, (build.size(x),)), -1
    axis = ax.one(axis, len(x.shape), beyond=OverflowError if name in ("sort", "partition") else ValueError)
    last = x.shape[axis] - 1
    if descending:
        x = _backwards(x, axis)  # a stable order of the reversed array is a stable descending order of the array, reversed
    if name == "argsort" and _is_stable(**static):
        found = build.call("stable_argsort", (axis,), (x,), INT64, x.shape)
    else:
        found = library(name, (x,), dtype or x.dtype, x.shape, axis=axis, **{k: v for k, v in static.items() if v is not None})
    if not descending:
        return found
    found = _backwards(found, axis)
    return found if name == "sort" else elementwise(o.SUBTRACT, INT64, const(last, INT64), found)


def _is_stable(kind: Any, stable: Any) -> bool:
    """Tell whether equal elements keep their order: the standard's default, and one of the orders that NumPy's leaves open."""
    return bool(stable is None or stable) if kind is None else kind[:1].lower() in "ms"


def _backwards(x: Node, axis: int) -> Node:
    """Reversed along one axis."""
    return build.slice_(x, [(n - 1, -1) if k == axis and n else (0, 1) for k, n in enumerate(x.shape)], x.shape)


def _sorting_by_numpy(name: str, a: Any, axis: Any, descending: bool, *args: Any, **options: Any) -> Any:
    """Sort what only NumPy sorts: strings, dates, records, objects."""
    if not descending:
        return fallback.call(getattr(np, name), name, (a, axis, *args), options)
    a, axis = (np.ravel(a), -1) if axis is None else (a, axis)
    found = np.flip(fallback.call(getattr(np, name), name, (np.flip(a, axis), axis, *args), options), axis)
    return found if name == "sort" else found.shape[axis] - 1 - found


def _sort_options(kind: Any, order: Any, stable: Any) -> dict[str, Any]:
    _no_fields(order)
    if kind is not None and stable is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time. Use only one of them.")
    if kind is not None and (not isinstance(kind, str) or kind[:1].lower() not in "qhms"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return {"kind": kind, "stable": stable}


def _no_fields(order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


@fallback.library
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False) -> Any:
    """Sort a copy of an array; see :func:`numpy.sort`. With ``descending``, the largest first."""
    try:
        array_node(a)  # what is NumPy's may be ordered by fields
        node = _sorting("sort", a, axis, _sort_options(kind, order, stable), None, descending)
        return wrap(node) if axis is None else laid_like(node, a)
    except Foreign:
        return _sorting_by_numpy("sort", a, axis, descending, kind, order, stable=stable)


@fallback.library
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False) -> Any:
    """Find the positions that sort an array; see :func:`numpy.argsort`.

    Equal elements keep their order unless ``kind`` or ``stable`` says that they need not.  With ``descending`` the largest come first.
    """
    try:
        if not array_node(a).shape and axis is not None:
            ax.one(axis, 1)
            return wrap(expand(const(0, INT64), (1,)))
        return wrap(_sorting("argsort", a, axis, _sort_options(kind, order, stable), INT64, descending))
    except Foreign:
        return _sorting_by_numpy("argsort", a, axis, descending, kind, order, stable=stable)


def _partition(name: str, a: Any, kth: Any, axis: Any, kind: Any, order: Any, dtype: DType | None) -> Any:
    if not isinstance(kind, str):
        raise TypeError(f"partition kind must be str, not {type(kind).__name__}")
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(getattr(np, name), name, (a, kth, axis, kind, order), {})
    _no_fields(order)
    n = build.size(x) if axis is None else x.shape[ax.one(axis, len(x.shape))]
    # Places are looked at: those of a host array or list are known.
    places = np.asarray(to_host(kth, "kth"))
    if places.ndim > 1:
        raise ValueError("object too deep for desired array")
    if places.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    wanted = [int(k) for k in places.ravel()]
    for k in wanted if build.size(x) else ():
        if not -n <= k < n:
            raise ValueError(f"kth(={k + n if k < 0 else k}) out of bounds ({n})")
    if not wanted:
        # Nothing has a place to be in.
        if axis is None:
            x = reshape(x, (n,))
        if name == "argpartition":
            along = len(x.shape) - 1 if axis is None else ax.one(axis, len(x.shape))
            thin = tuple([m if k == along else 1 for k, m in enumerate(x.shape)])
            x = expand(reshape(build.iota(n, 0, 1, INT64), thin), x.shape)
        return wrap(x) if axis is None or name == "argpartition" else laid_like(x, a)
    node = _sorting(name, a, axis, {"kth": tuple(wanted)}, dtype)
    return wrap(node) if axis is None or name == "argpartition" else laid_like(node, a)


@fallback.library
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Copy an array with the kth value in its sorted place; see :func:`numpy.partition`."""
    return _partition("partition", a, kth, axis, kind, order, None)


@fallback.library
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Find the positions that partition an array; see :func:`numpy.argpartition`."""
    return _partition("argpartition", a, kth, axis, kind, order, INT64)


@fallback.library
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Find where values belong in a sorted array; see :func:`numpy.searchsorted`."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    try:
        x, y = array_node(a), array_node(v)
        order = None if sorter is None else array_node(sorter)
    except Foreign:
        return fallback.call(np.searchsorted, "searchsorted", (a, v), {"side": side, "sorter": sorter})
    if len(x.shape) != 1:
        raise ValueError("object too deep for desired array" if x.shape else "object of too small depth for desired array")
    dtype = x.dtype if concrete(v) is not None and type(v) in (int, float) and x.dtype.kind == "f" else np.result_type(x.dtype, y.dtype)
    x, y = cast(x, dtype), cast(y, dtype)
    if order is None:
        return result(library("searchsorted", (x, y), INT64, y.shape, side=side))
    if len(order.shape) != 1:
        raise TypeError("could not parse sorter argument")
    if order.dtype.kind not in "iu":
        raise TypeError("sorter must only contain integers")
    if order.shape != x.shape:
        raise ValueError("sorter.size must equal a.size")
    return result(item("searchsorted", (x, y), {"side": side, "sorter": order}, [(INT64, y.shape)], fails=True)[0])


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        where, nonzero, flatnonzero, argwhere, clip, take, take_along_axis, extract, select, sort, argsort, partition, argpartition,
        searchsorted,
    )
} | {"compress": compress_}  # fmt: skip
