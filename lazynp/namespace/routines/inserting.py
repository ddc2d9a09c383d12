"""Functions that write into an array: by mask, by position, along a diagonal.

In: an array, where to write, and values that are repeated as NumPy repeats them.  Out: a new value of the array that owns the memory.
Promise: every view sees the write and nothing is computed for it: masks and diagonals are recorded as selections and a STORE, writes at
positions as one library item, on a GPU at the call; what NumPy refuses without looking at values is refused at the call.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray, node_of, update
from lazynp.arrays import wrap as array_of
from lazynp.conversion import asarray, converted
from lazynp.engine import devices
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, reshape
from lazynp.graph.dtypes import INT64, NATIVE, DType
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node, Shape
from lazynp.namespace.assignment import memory, write_where
from lazynp.namespace.bridge.fallback import library, library_call
from lazynp.namespace.indexing import check_known
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.loops import truth
from lazynp.scalars import is_scalar
from lazynp.storage import Draft, host


def values_for(values: Any, dtype: DType, casting: Any = "safe") -> Node:
    """Values to write as a node of the array's dtype; arrays are held to a casting rule, numbers must fit."""
    if type(values) is not ndarray and not is_scalar(values) and not isinstance(values, np.ndarray):
        return node_of(asarray(at_once(np.asarray, values, dtype)))
    if not np.can_cast(values.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {values.dtype!r} to {dtype!r} according to the rule '{casting}'")
    if values.dtype not in NATIVE:  # of objects and texts the one who writes knows the values
        return node_of(at_once(values.astype, dtype))
    return converted(node_of(values), dtype)


def _flat(x: Node) -> Node:
    return reshape(x, (build.size(x),))


def cycled(values: Node, count: int) -> Node:
    """The first ``count`` of the values, repeated; there is at least one."""
    n = build.size(values)
    if n == 1:
        return expand(reshape(values, ()), (count,))
    if n >= count:
        return build.slice_(_flat(values), ((0, 1),), (count,))
    turns = -(-count // n)
    repeated = reshape(expand(reshape(values, (1, n)), (turns, n)), (turns * n,))
    return build.slice_(repeated, ((0, 1),), (count,))


def _refuse_readonly(a: ndarray, message: str) -> None:
    if a._readonly:
        raise ValueError(message)


def _mask(mask: Any, a: ndarray, name: str) -> Node:
    """A mask as truth values in the shape of ``a``; its own shape does not count, only its size."""
    given = asarray(mask)
    node = truth(node_of(given if type(given) is ndarray else asarray(given.astype(bool))))
    if build.size(node) != a.size:
        raise ValueError(f"{name}: mask and data must be the same size")
    return reshape(node, a.shape)


def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write where a mask is true, values repeated over the whole array; see :func:`numpy.putmask`."""
    if type(a) is not ndarray:
        library_call(np.putmask, "putmask", (a, mask, values), {})
        return
    _refuse_readonly(a, "putmask: output array is read-only")
    chosen = _mask(mask, a, "putmask")
    new = values_for(values, a.dtype)
    if build.size(new) and a.size:
        write_where(a, chosen, reshape(cycled(new, a.size), a.shape))


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write where a mask is true, one value after the other; see :func:`numpy.place`."""
    if type(arr) is not ndarray:
        library_call(np.place, "place", (arr, mask, vals), {})
        return
    _refuse_readonly(arr, "WRITEBACKIFCOPY base is read-only")
    chosen = _flat(_mask(mask, arr, "place"))
    values = _flat(values_for(vals, arr.dtype))
    n = build.size(values)
    if not n:
        if host(mask, "place").any():
            raise ValueError("Cannot insert from an empty array!")
        return
    # The k-th true element gets value k mod n; elsewhere the count before it is as good as any.
    rank = elementwise(o.SUBTRACT, INT64, build.scan(o.ADD, cast(chosen, INT64), 0), cast(chosen, INT64))
    new = build.gather(values, elementwise(o.REMAINDER, INT64, rank, const(n, INT64))) if n > 1 else expand(values, chosen.shape)
    write_where(arr, reshape(chosen, arr.shape), reshape(new, arr.shape))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write the main diagonal; see :func:`numpy.fill_diagonal`."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if type(a) is not ndarray:
        library_call(np.fill_diagonal, "fill_diagonal", (a, val, wrap), {})
        return
    shape, end = a.shape, a.size
    if len(shape) == 2:
        step = shape[1] + 1
        if not wrap:
            end = min(end, shape[1] * shape[1])  # the diagonal of a tall matrix ends with its columns
    else:
        if len(set(shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        step = 1 + sum(prod(shape[:k]) for k in range(1, len(shape)))
    _refuse_readonly(a, "underlying array is read-only")
    count = len(range(0, end, step))
    values = values_for(val, a.dtype, "unsafe")
    if count and build.size(values):
        diagonal = cycled(values, count)
        if not update(a, lambda old: reshape(build.store(_flat(old), ((0, step),), diagonal), shape)):
            known = host(array_of(values), "fill_diagonal")
            with core.writing(a):
                np.fill_diagonal(memory(a), known, wrap)


def _write_item(a: ndarray, name: str, positions: Node, values: Node, bounds: tuple[int, int] | None = None, **static: Any) -> None:
    """NumPy's writing function as an item of the schedule; an array that is being filled is written where it lies.

    Positions that are there already are refused now where they are outside ``bounds``: the length of an axis, and its number.
    """
    if devices.gpus is not None and devices.gpus.write_item(a, name, positions, values, **static):
        return
    there = positions.buffer
    if bounds is not None and there is not None:
        check_known(there.array, *bounds)
    sources = positions, values
    dtype, shape = a.dtype, a.shape
    exist = all(node.buffer is not None for node in sources)
    if (type(a._base) is Draft and exist) or not update(
        a, lambda old: build.call("write", (name, tuple(static.items())), (old, *sources), dtype, shape)
    ):
        known = [host(array_of(node), name) for node in sources]
        with core.writing(a):
            getattr(np, name)(memory(a), *known, **static)


@library
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write at flat positions; see :func:`numpy.put`."""
    if type(a) is not ndarray:
        library_call(np.put, "put", (a, ind, v), {"mode": mode})
        return
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    _refuse_readonly(a, "put: output array is read-only")
    positions = values_for(ind, INT64)
    values = values_for(v, a.dtype, "unsafe")
    if not build.size(positions):
        return
    if not a.size:
        raise IndexError("cannot replace elements of an empty array")
    if not build.size(values):
        return
    _write_item(a, "put", positions, values, (a.size, 0) if mode == "raise" else None, mode=mode)


@library
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Write at positions that differ by row; see :func:`numpy.put_along_axis`."""
    if type(arr) is not ndarray:
        library_call(np.put_along_axis, "put_along_axis", (arr, indices, values, axis), {})
        return
    shape: Shape
    if axis is None:
        if indices.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        along, shape = 0, (arr.size,)
    else:
        along, shape = ax.one(axis, arr.ndim), arr.shape
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if indices.ndim != len(shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    if arr._readonly or (axis is None and not arr.flags.c_contiguous):
        # Without an axis NumPy writes to the flattened memory, which it copies, read-only, where the array is not contiguous.
        raise ValueError("assignment destination is read-only")
    positions = cast(node_of(indices), INT64)
    buffer = positions.buffer
    known = None if buffer is None else buffer.at_hand
    if known is not None:
        check_known(known, shape[along], along)
    grid = [positions.shape[k] if k == along else n for k, n in enumerate(shape)]
    common = np.broadcast_shapes(positions.shape, tuple(grid))
    new = values_for(values, arr.dtype, "unsafe")
    if len(new.shape) > len(common) or np.broadcast_shapes(new.shape, common) != common:
        raise ValueError(f"shape mismatch: value array of shape {new.shape} could not be broadcast to indexing result of shape {common}")
    if 0 in common:
        return
    _write_item(
        arr, "put_along_axis", positions, new, (shape[along], along) if known is None else None, axis=None if axis is None else along
    )


FUNCTIONS: Final = {function.__name__: function for function in (putmask, place, fill_diagonal, put, put_along_axis)}
