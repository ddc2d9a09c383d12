"""Longer and shorter copies: elements deleted, inserted, repeated until a shape is full; arrays with requirements.

In: arrays and positions.  Out: joined slices and gathers.  Promise: positions are read at the call, for the result's shape depends on them;
the values stay lazy.
"""

from __future__ import annotations

import warnings
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap, wrap_ordered
from lazynp.conversion import asarray, converted
from lazynp.graph import build
from lazynp.graph.build import concat, expand, reshape, slice_
from lazynp.graph.dtypes import BOOL, INT64
from lazynp.graph.node import Node
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.creation import lengths_of
from lazynp.namespace.routines.joining import vstack
from lazynp.namespace.routines.selecting import gathered
from lazynp.namespace.routines.shaping import ravel
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.promotion import has_subclass
from lazynp.scalars import is_scalar
from lazynp.storage import host


def _laid(node: Node, source: ndarray) -> ndarray:
    """Lay an array out in Fortran order where the source is in that order only."""
    return wrap_ordered(node, tuple(range(len(node.shape) - 1, -1, -1)) if source.flags.fnc and len(node.shape) > 1 else None)


def _along(arr: Any, axis: Any) -> tuple[ndarray, int]:
    """The array and the axis to edit; without an axis, the flattened array."""
    if axis is not None:
        return arr, ax.one(axis, arr.ndim)
    flat = arr if arr.ndim == 1 else ravel(arr)
    return flat, 0


def _piece(x: Node, axis: int, start: int, stop: int) -> Node:
    region = [(start, 1) if k == axis and stop > start else (0, 1) for k in range(len(x.shape))]
    return slice_(x, region, tuple([stop - start if k == axis else n for k, n in enumerate(x.shape)]))


def _joined(parts: list[Node], axis: int) -> Node:
    kept = [part for part in parts if part.shape[axis]]
    return concat(kept or parts[:1], axis)


def _known(obj: Any) -> Any:
    """Positions as NumPy's array, and whether they were given as an array."""
    return host(obj, "positions") if type(obj) is ndarray else np.asarray(obj.concrete("positions") if is_scalar(obj) else obj)


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Copy an array without some positions; see :func:`numpy.delete`."""
    source = asarray(arr)
    if type(source) is not ndarray or has_subclass(arr):
        return fallback.call(np.delete, "delete", (arr, obj, axis), {})
    x, axis = _along(source, axis)
    n = x.shape[axis]
    node = node_of(x)
    if isinstance(obj, slice):
        gone = range(*obj.indices(n))
        if gone and abs(gone.step) == 1:
            first, last = min(gone[0], gone[-1]), max(gone[0], gone[-1])
            return _laid(_joined([_piece(node, axis, 0, first), _piece(node, axis, last + 1, n)], axis), x)
        keep = np.ones(n, bool)
        keep[obj] = False
        return _laid(gathered(node, build.buffer(np.flatnonzero(keep)), axis) if gone else node, x)
    positions = _known(obj)
    if not positions.size and not isinstance(obj, np.ndarray) and type(obj) is not ndarray:
        positions = positions.astype(INT64)
    if positions.size == 1 and positions.dtype.kind in "iu":
        at = positions.item()
        if not -n <= at < n:
            raise IndexError(f"index {at} is out of bounds for axis {axis} with size {n}")
        at %= n
        return _laid(_joined([_piece(node, axis, 0, at), _piece(node, axis, at + 1, n)], axis), x)
    if positions.dtype == BOOL:
        if positions.shape != (n,):
            raise ValueError(f"boolean array argument obj to delete must be one dimensional and match the axis length of {n}")
        keep = ~positions
    else:
        keep = np.ones(n, bool)
        keep[positions,] = False
    found = gathered(node, build.buffer(np.flatnonzero(keep)), axis)
    # A mask picks in the array's own memory order.
    return _laid(found, x)


def _values(values: Any, dtype: np.dtype[Any]) -> Node:
    if type(values) is ndarray or is_scalar(values):
        return converted(node_of(values), dtype)
    return node_of(asarray(np.asarray(values, dtype)))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Copy an array with values inserted before some positions; see :func:`numpy.insert`."""
    source = asarray(arr)
    if type(source) is not ndarray or has_subclass(arr):
        return fallback.call(np.insert, "insert", (arr, obj, values, axis), {})
    x, axis = _along(source, axis)
    n, node = x.shape[axis], node_of(x)
    ndim = len(node.shape)
    positions = np.arange(*obj.indices(n)) if isinstance(obj, slice) else _known(obj)
    if positions.dtype == BOOL:
        if positions.ndim != 1:
            raise ValueError("boolean array argument obj to insert must be one dimensional")
        positions = np.flatnonzero(positions)
    elif positions.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    new = _values(values, x.dtype)
    if positions.size == 1:
        position = positions.item()
        if not -n <= position <= n:
            raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {n}")
        at = index(position)
        at += n if at < 0 else 0
        new = reshape(new, (1,) * (ndim - len(new.shape)) + new.shape)
        if positions.ndim == 0:
            # NumPy takes the first axis of the values for the one to insert along.
            new = build.permute(new, (*range(1, axis + 1), 0, *range(axis + 1, len(new.shape))))
        wide = tuple([m if k == axis else node.shape[k] for k, m in enumerate(new.shape)])
        new = _spread(new, wide)
        return _laid(_joined([_piece(node, axis, 0, at), new, _piece(node, axis, at, n)], axis), x)
    if not positions.size and not isinstance(obj, np.ndarray) and type(obj) is not ndarray:
        positions = positions.astype(INT64)
    places = np.where(positions < 0, positions + n, positions)
    count = len(places)
    order = places.argsort(kind="stable")
    places[order] += np.arange(count)
    new = _spread(new, tuple([count if k == axis else m for k, m in enumerate(node.shape)]))
    # Where each element of the result comes from: the old ones first, the inserted ones after them.
    source_of = np.empty(n + count, np.intp)
    old = np.ones(n + count, bool)
    old[places] = False
    source_of[old] = np.arange(n)
    source_of[places] = n + np.arange(count)
    return _laid(gathered(concat([node, new], axis), build.buffer(source_of), axis), x)


def _spread(values: Node, shape: tuple[int, ...]) -> Node:
    """Values broadcast as an assignment does."""
    have = values.shape
    extra = len(have) - len(shape)
    if extra > 0 and have[:extra] == (1,) * extra:
        values = reshape(values, have[extra:])
    if len(values.shape) > len(shape) or any(m not in (1, n) for m, n in zip(values.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(f"could not broadcast input array from shape {have} into shape {shape}")
    return expand(values, shape)


def resize(a: Any, new_shape: Any) -> Any:
    """Repeat the elements until a shape is full; see :func:`numpy.resize`."""
    source = asarray(a)
    if type(source) is not ndarray or has_subclass(a):
        return fallback.call(np.resize, "resize", (a, new_shape), {})
    shape = lengths_of(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size, have = int(np.prod(shape, dtype=object)), source.size
    if not size or not have:
        return wrap(expand(build.const(0, source.dtype), shape))
    turns = -(-size // have)
    node = expand(reshape(node_of(source), (1, have)), (turns, have))
    return wrap(reshape(slice_(reshape(node, (turns * have,)), ((0, 1),), (size,)), shape))


def row_stack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Join arrays as ``vstack`` does; NumPy will drop this name; see :func:`numpy.row_stack`."""
    warnings.warn("`row_stack` alias is deprecated. Use `np.vstack` directly.", DeprecationWarning, stacklevel=2)
    return vstack(tup, dtype=dtype, casting=casting)


_REQUIREMENTS: Final = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F", "A": "A", "ALIGNED": "A",
    "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """Return an array with certain flags, copied where it has to be; see :func:`numpy.require`."""
    xp = fallback.users()
    if not requirements:
        return xp.asanyarray(a, dtype)
    wanted = {_REQUIREMENTS[name.upper()] for name in requirements}
    convert = xp.asarray if "E" in wanted else xp.asanyarray
    wanted -= {"E"}
    if {"C", "F"} <= wanted:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = "F" if "F" in wanted else "C" if "C" in wanted else "A"
    found = convert(a, dtype, order) if wanted else convert(a, dtype)
    for name in wanted - {"C", "F"}:
        if not found.flags[name]:
            return found.copy(order)
    return found


FUNCTIONS: Final = {function.__name__: function for function in (delete, insert, resize, row_stack, require)}
