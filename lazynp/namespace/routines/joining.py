"""Putting arrays together: concatenation, stacking, repetition, padding, rolling.

In: arrays.  Out: CONCAT, EXPAND, PAD and SLICE nodes.  Promise: NumPy's result dtypes and errors at the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.array import calls
from lazynp.arrays import ndarray, node_of, wrap, wrap_ordered
from lazynp.conversion import asarray as _asarray
from lazynp.conversion import converted
from lazynp.graph import build
from lazynp.graph.build import concat, expand
from lazynp.graph.dtypes import INT64, NATIVE
from lazynp.graph.node import Node
from lazynp.graph.op import CONST
from lazynp.layout import joined_order
from lazynp.namespace.assignment import fitted
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.creation import addressable
from lazynp.namespace.routines.selecting import gathered
from lazynp.namespace.routines.shaping import atleast_1d, atleast_2d, atleast_3d, of_arrays
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.promotion import Foreign, array_node
from lazynp.namespace.ufunc.reductions import laid_like
from lazynp.namespace.ufunc.ufuncs import need_array, write_out
from lazynp.storage import host
from lazynp.values.nesting import MOST_AXES
from lazynp.viewing import view_axes, view_reshape
from lazynp.views import NEW

can_cast: Any = np.can_cast
_CASTINGS: Final = frozenset(["no", "equiv", "safe", "same_kind", "unsafe"])
_WEAK: Final = frozenset([int, float, complex])
_ROWS: Final = 64  # of an array that is given in the place of a list: more are not worth an operand each


def _items(arrays: Any) -> list[Any]:
    if not hasattr(arrays, "__getitem__"):
        raise TypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')
    return [arrays[k] for k in range(len(arrays))] if type(arrays) is ndarray else list(arrays)


def _by_numpy(name: str, arrays: Any, options: dict[str, Any]) -> Any:
    return fallback.call(getattr(np, name), name, (arrays,), options)


def _common_dtype(items: Sequence[Any], nodes: Sequence[Node], dtype: Any, casting: str, out: Any) -> np.dtype[Any]:
    if casting not in _CASTINGS:
        raise ValueError("casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe'")
    if dtype is None:
        if out is not None:
            found = out.dtype
        else:
            # Python's numbers are weak here too.
            pairs = list(zip(items, nodes, strict=True))
            weak = {type(item): item for item, _ in pairs if type(item) in _WEAK}
            return np.result_type(*{node.dtype for item, node in pairs if type(item) not in _WEAK}, *weak.values())
    else:
        found = np.dtype(dtype)
    if found not in NATIVE:
        raise Foreign
    for node in nodes:
        if not can_cast(node.dtype, found, casting):
            raise TypeError(f"Cannot cast array data from {node.dtype!r} to {found!r} according to the rule '{casting}'")
    return found


def _joinable(items: Sequence[Any], axis: Any, dtype: Any, casting: str, out: Any) -> tuple[list[Node], int, np.dtype[Any]]:
    """Return the operands, the axis, and the dtype of the result; raises what NumPy refuses."""
    nodes = [array_node(item) for item in items]
    if not nodes:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        nodes = [build.reshape(node, (build.size(node),)) for node in nodes]
    elif not nodes[0].shape:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    along = 0 if axis is None else ax.one(axis, len(nodes[0].shape), beyond=ValueError)
    _check_shapes(nodes, along)
    return nodes, along, _common_dtype(items, nodes, dtype, casting, out)


def _is_long(arrays: Any, dtype: Any = None, out: Any = None) -> bool:
    """Tell whether an array of many rows is given in the place of a list, and joined to a dtype that kernels have."""
    if type(arrays) is not ndarray or arrays.ndim == 0 or arrays.shape[0] <= _ROWS or arrays.size == 0:
        return False
    return (dtype is None or np.dtype(dtype) in NATIVE) and (out is None or out.dtype in NATIVE)


def _rows_joined(x: ndarray, grow: Callable[[Any], Any], axis: Any, out: Any, dtype: Any, casting: str) -> Any:
    """Join the rows of an array, to which ``grow`` adds axes: its elements in another order.

    Two of them tell what NumPy refuses, the dtype and the layout.
    """
    few = [grow(x[0]), grow(x[1])]
    parts, along, wanted = _joinable(few, axis, dtype, casting, out)
    shape = parts[0].shape
    node = build.reshape(array_node(x), (x.shape[0], *shape))
    node = build.permute(node, (*range(1, along + 1), 0, *range(along + 1, len(shape) + 1)))
    node = build.reshape(node, (*shape[:along], x.shape[0] * shape[along], *shape[along + 1 :]))
    return _given(converted(build.copied(node), wanted), few, out)


def _given(node: Node, items: Sequence[Any], out: Any) -> Any:
    """Return what is joined of items, or write it."""
    if out is not None:
        if out.shape != node.shape:
            raise ValueError("Output array is the wrong shape")
        return write_out(out, node)
    return wrap(node) if len(node.shape) == 1 else wrap_ordered(node, joined_order([_asarray(item) for item in items]))


def concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Join arrays one after the other along an axis; see :func:`numpy.concatenate`."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    need_array(out, "'out' must be an array")
    if _is_long(arrays, dtype, out):
        return _rows_joined(arrays, _asarray, axis, out, dtype, casting)
    items = _items(arrays)
    try:
        nodes, along, wanted = _joinable(items, axis, dtype, casting, out)
    except Foreign:
        return _by_numpy("concatenate", arrays, {"axis": axis, "out": out, "dtype": dtype, "casting": casting})
    if out is None:
        known = calls.answer(np.concatenate, ([calls.plain(item) for item in items], axis), {"dtype": dtype, "casting": casting}, 1)
        if known is not NotImplemented:
            return known
    return _given(concat([converted(part, wanted) for part in nodes], along), items, out)


def _check_shapes(nodes: Sequence[Node], axis: int) -> None:
    first = nodes[0].shape
    for number, node in enumerate(nodes):
        if len(node.shape) != len(first):
            raise ValueError(
                "all the input arrays must have same number of dimensions, but the array at index 0 has "
                f"{len(first)} dimension(s) and the array at index {number} has {len(node.shape)} dimension(s)"
            )
        for k, (n, m) in enumerate(zip(first, node.shape, strict=True)):
            if n != m and k != axis:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but along dimension "
                    f"{k}, the array at index 0 has size {n} and the array at index {number} has size {m}"
                )


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Join arrays of one shape along a new axis; see :func:`numpy.stack`."""
    if _is_long(arrays, dtype, out):
        axis = ax.one(axis, arrays.ndim)
        thin = (*range(axis), NEW, *range(axis, arrays.ndim - 1))
        return _rows_joined(arrays, lambda row: view_axes(_asarray(row), thin), axis, out, dtype, casting)
    items = _items(arrays)
    if not items:
        raise ValueError("need at least one array to stack")
    try:
        nodes = [array_node(item) for item in items]
    except Foreign:
        return _by_numpy("stack", arrays, {"axis": axis, "out": out, "dtype": dtype, "casting": casting})
    shape = nodes[0].shape
    if any(node.shape != shape for node in nodes):
        raise ValueError("all input arrays must have the same shape")
    axis = ax.one(axis, len(shape) + 1)
    thin = (*range(axis), NEW, *range(axis, len(shape)))
    parts = [view_axes(_asarray(item), thin) for item in items]
    return concatenate(parts, axis, out, dtype=dtype, casting=casting)


def _stacked(grow: Any, axis: int) -> Any:
    def function(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
        if _is_long(tup, dtype):
            return _rows_joined(tup, grow, axis if axis == 0 or tup.ndim > 2 else 0, None, dtype, casting)
        parts = [grow(item) for item in _items(tup)]
        along = 0 if axis == 1 and parts and parts[0].ndim == 1 else axis
        return concatenate(parts, along, dtype=dtype, casting=casting)

    return function


vstack = _stacked(atleast_2d, 0)
vstack.__name__ = "vstack"
hstack = _stacked(atleast_1d, 1)
hstack.__name__ = "hstack"


def dstack(tup: Any) -> Any:
    """Join arrays one behind the other; see :func:`numpy.dstack`."""
    if _is_long(tup):
        return _rows_joined(tup, atleast_3d, 2, None, None, "same_kind")
    return concatenate([atleast_3d(item) for item in _items(tup)], 2)


def column_stack(tup: Any) -> Any:
    """Join one-dimensional arrays as columns; see :func:`numpy.column_stack`."""
    if _is_long(tup):
        return _rows_joined(tup, _column, 1, None, None, "same_kind")
    return concatenate([_column(item) for item in _items(tup)], 1)


def _column(item: Any) -> Any:
    x = _asarray(item)
    return x if x.ndim >= 2 else atleast_2d(x).T


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Append values after the end; see :func:`numpy.append`."""
    return concatenate((_asarray(arr), _asarray(values)), axis)  # Python's numbers are arrays here


def block(arrays: Any) -> Any:
    """Join nested lists of blocks; see :func:`numpy.block`."""

    def depth(x: Any) -> int:
        return 1 + max([depth(item) for item in x], default=0) if isinstance(x, list) else 0

    def uniform(x: Any, level: int) -> bool:
        return all(uniform(item, level - 1) for item in x) if isinstance(x, list) and x else not isinstance(x, list) and level == 0

    def tuples(x: Any) -> bool:
        return isinstance(x, tuple) or (isinstance(x, list) and any(map(tuples, x)))

    levels = depth(arrays)
    if not uniform(arrays, levels) or tuples(arrays):
        return _by_numpy("block", arrays, {})
    leaves: list[Any] = []

    def gather(x: Any) -> Any:
        if isinstance(x, list):
            return [gather(item) for item in x]
        leaves.append(_asarray(x))
        return leaves[-1]

    nested = gather(arrays)
    if any(type(x) is not ndarray for x in leaves):
        return _by_numpy("block", arrays, {})
    ndim = max([levels, *[x.ndim for x in leaves]])

    def join(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            return view_axes(x, (*(NEW,) * (ndim - x.ndim), *range(x.ndim)))
        return concatenate([join(item, level - 1) for item in x], -level)

    joined = join(nested, levels)
    return joined if levels else joined.copy("K")


# Repetition -----------------------------------------------------------------------------------------------------------------


def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    """Put copies of an array side by side; see :func:`numpy.tile`."""
    try:
        given = tuple(reps)
    except TypeError:
        given = (reps,)
    if len(given) > MOST_AXES:
        raise ValueError(f"ndmin must be <= ndmax ({MOST_AXES})")
    counts = tuple([int(n) if isinstance(n, np.bool) or (isinstance(n, float) and n == 1) else index(n) for n in given])
    np.array(counts, np.intp)  # what no C long holds is an OverflowError
    try:
        x = array_node(A)
    except Foreign:
        return fallback.call(np.tile, "tile", (A, reps), {})
    if max(len(counts), len(x.shape)) * 2 > MOST_AXES:
        return fallback.call(np.tile, "tile", (A, reps), {})
    if type(A) is ndarray and len(counts) <= len(x.shape) and set(counts) <= {1}:
        return laid_like(x, A)
    ndim = max(len(counts), len(x.shape))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(x.shape)) + x.shape
    tiled = tuple([n * count for n, count in zip(shape, counts, strict=True)])
    if any(n < 0 for n in tiled):
        raise ValueError("negative dimensions are not allowed")
    if 0 in shape:
        # NumPy copies nothing here and shows the same array.
        return view_reshape(_asarray(A), tiled)
    addressable(tiled, x.dtype)
    thin = tuple([m for n in shape for m in (1, n)])
    wide = tuple([m for n, count in zip(shape, counts, strict=True) for m in (count, n)])
    return wrap(build.reshape(expand(build.reshape(x, thin), wide), tiled))


@of_arrays
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat every element; see :func:`numpy.repeat`."""
    x = node_of(a)
    if type(repeats) is ndarray or isinstance(repeats, np.ndarray):
        counts = host(_asarray(repeats), "repeat counts")
    else:
        counts = np.asarray(host(_asarray(repeats, INT64), "repeat counts"))
    if counts.ndim > 1:
        raise ValueError("object too deep for desired array")
    if not can_cast(counts.dtype, INT64):
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    if axis is None or not x.shape:
        x = build.reshape(x, (build.size(x),))
    axis = 0 if axis is None else ax.one(axis, len(x.shape), beyond=ValueError)
    n = x.shape[axis]
    if counts.size == 1:
        times = int(counts.reshape(-1)[0])
        if times < 0 and n:
            raise ValueError("repeats may not contain negative values.")
        times = max(times, 0)
        thin = (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])
        wide = (*x.shape[: axis + 1], times, *x.shape[axis + 1 :])
        shape = addressable((*x.shape[:axis], n * times, *x.shape[axis + 1 :]), x.dtype)
        return wrap(build.reshape(expand(build.reshape(x, thin), wide), shape))
    if counts.shape != (n,):
        raise ValueError(f"operands could not be broadcast together with shape ({n},) ({counts.size},)")
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    return wrap(gathered(x, build.buffer(np.repeat(np.arange(n), counts)), axis))


# Rolling and padding --------------------------------------------------------------------------------------------------------


def _part(x: Node, axis: int, start: int, step: int, length: int) -> Node:
    region = [(start, step) if k == axis else (0, 1) for k in range(len(x.shape))]
    return build.slice_(x, region, tuple([length if k == axis else n for k, n in enumerate(x.shape)]))


def _rolled(x: Node, shift: int, axis: int) -> Node:
    n = x.shape[axis]
    shift = shift % n if n else 0
    if not shift:
        return x
    return concat([_part(x, axis, n - shift, 1, shift), _part(x, axis, 0, 1, n - shift)], axis)


@of_arrays
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Move elements around cyclically; see :func:`numpy.roll`."""
    x = node_of(a)
    if axis is None:
        shape, x, axis = x.shape, build.reshape(x, (build.size(x),)), 0
    else:
        shape = None
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [ax.one(k, len(x.shape)) for k in axes]
    pairs = np.broadcast(_shifts(shift), axes)
    if pairs.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    amounts: Any = pairs
    totals: dict[int, int] = {}
    for amount, along in amounts:
        totals[int(along)] = totals.get(int(along), 0) + int(amount)
    for along, amount in totals.items():
        x = _rolled(x, amount, along)
    return laid_like(x, a) if shape is None else wrap(build.reshape(x, shape))


def _shifts(shift: Any) -> Any:
    if type(shift) is ndarray:
        values = host(shift)
        return values if values.dtype.kind in "iub" else np.asarray([int(s) for s in values.reshape(-1)]).reshape(values.shape)
    return np.asarray([int(s) for s in shift] if isinstance(shift, (tuple, list)) else int(shift))


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        given: list[Any] = [pad_width.get(k, pad_width.get(k - ndim, 0)) for k in range(ndim)]
        return [(int(w[0]), int(w[1])) if isinstance(w, (tuple, list)) else (int(w), int(w)) for w in given]
    # Python's own numbers are read at once; an array of ours is a value that is needed, and counted.
    widths = host(pad_width) if type(pad_width) is ndarray else np.asarray(pad_width)
    if widths.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(widths, (ndim, 2))
    if (widths < 0).any():
        raise ValueError("index can't contain negative values")
    return [(int(before), int(after)) for before, after in pairs]


def _wrapped(n: int, before: int, after: int, mode: str) -> np.ndarray[Any, Any]:
    """Source position of every element of a padded axis."""
    at = np.arange(-before, n + after)
    if mode == "edge":
        return np.clip(at, 0, n - 1)
    if mode == "wrap":
        return at % n
    period = 2 * n if mode == "symmetric" else max(2 * n - 2, 1)
    at = at % period
    return np.minimum(at, period - 1 - at if mode == "symmetric" else period - at) if n > 1 else np.zeros_like(at)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Put borders around an array; see :func:`numpy.pad`."""
    native = mode in ("constant", "edge", "wrap", "reflect", "symmetric") if isinstance(mode, str) else False
    allowed = {"constant_values"} if mode == "constant" else set()
    if not native or set(kwargs) - allowed:
        # Ramps, statistics of the border, functions of the user's; and NumPy's words for what it does not know.
        return fallback.library_call(np.pad, "pad", (array, pad_width), {"mode": mode, **kwargs})
    try:
        x = array_node(array)
        fill = kwargs.get("constant_values", 0)
        # One number is assigned, several are cast.
        fill = fitted(np.asarray(fill)[()], (), x.dtype) if type(fill) in (int, float) else converted(array_node(fill), x.dtype)
    except Foreign:
        return fallback.call(np.pad, "pad", (array, pad_width), {"mode": mode, **kwargs})
    widths = _widths(pad_width, len(x.shape))
    shape = addressable(tuple([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]), x.dtype)
    if mode == "constant":
        if fill.op is not CONST:
            return _in_f_order_if(array, _framed(x, widths, fill))
        return _in_f_order_if(array, build.pad(x, tuple([before for before, _ in widths]), shape, fill))
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        if not before and not after:
            continue
        if n == 0:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
        x = _bordered(x, axis, before, after, mode)
    return _in_f_order_if(array, x)


def _framed(x: Node, widths: Sequence[tuple[int, int]], values: Node) -> Node:
    """Borders of values that differ by axis and side, or are not known yet."""
    ndim = len(x.shape)
    if len(values.shape) > 2 or np.broadcast_shapes(values.shape, (ndim, 2)) != (ndim, 2):
        raise ValueError(f"operands could not be broadcast together with remapped shapes: {values.shape} and ({ndim}, 2)")
    table = expand(values, (ndim, 2))
    for axis, pair in enumerate(widths):
        parts = [x]
        for side, width in enumerate(pair):
            if width:
                value = build.reshape(build.slice_(table, ((axis, 1), (side, 1)), (1, 1)), ())
                border = expand(value, tuple([width if k == axis else n for k, n in enumerate(x.shape)]))
                parts.insert(len(parts) * side, border)
        x = concat(parts, axis)
    return x


def _in_f_order_if(array: Any, node: Node) -> Any:
    """Padded in Fortran order where the array is in that order only."""
    if type(array) is ndarray and array._base is not None and array.flags.fnc:
        return wrap_ordered(node, tuple(range(len(node.shape) - 1, -1, -1)))
    return wrap(node)


def _bordered(x: Node, axis: int, before: int, after: int, mode: str) -> Node:
    """One axis padded; borders shorter than the axis are slices of it, longer ones a gather."""
    n = x.shape[axis]
    most = n - 1 if mode == "reflect" else n
    if mode == "edge":
        parts = []
        for position, width in ((0, before), (n - 1, after)):
            edge = _part(x, axis, position, 1, 1)
            parts.append(expand(edge, tuple([width if k == axis else m for k, m in enumerate(x.shape)])))
        return concat([part for part in (parts[0], x, parts[1]) if part.shape[axis]], axis)
    if before > most or after > most:
        return gathered(x, build.buffer(_wrapped(n, before, after, mode).astype(INT64)), axis)
    match mode:
        case "wrap":
            left, right = _part(x, axis, n - before, 1, before), _part(x, axis, 0, 1, after)
        case "reflect":
            left, right = _part(x, axis, before, -1, before), _part(x, axis, max(n - 2, 0), -1, after)
        case _:
            left, right = _part(x, axis, max(before - 1, 0), -1, before), _part(x, axis, n - 1, -1, after)
    return concat([part for part in (left, x, right) if part.shape[axis]], axis)


FUNCTIONS: Final = {
    function.__name__: function
    for function in (concatenate, stack, vstack, hstack, dstack, column_stack, append, block, tile, repeat, roll, pad)
} | {"concat": concatenate}
