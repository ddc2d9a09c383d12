"""Writes at computed positions, on a GPU.

In: an array that lives on a GPU, a key with index arrays or masks, values.  Out: what the array is after the write.  Promise: NumPy's
meaning, where a position occurs several times the last value wins; whatever NumPy would refuse, and whatever is doubtful, is not done
here: the caller's way through NumPy on host copies raises the error.

A key is what it picks out of the numbers of all elements: flat positions, found by the same code that reads ``x[key]``.

Each write makes a copy of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, root_node, wrap
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.graph import build, report
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, INT64
from lazynp.graph.node import Node, Shape
from lazynp.namespace.assignment import fitted
from lazynp.namespace.device.placement import on_gpu
from lazynp.namespace.device.sharing import lent
from lazynp.namespace.routines import inserting
from lazynp.namespace.routines.selecting import take_along_axis
from lazynp.scalars import CLASSES, force

# What is NumPy's to say, in its own words, or has no room on the device.
REFUSALS = (ValueError, TypeError, IndexError, MemoryError)


def written(x: ndarray, key: Any, value: Any) -> bool:
    """``x[key] = value`` on the GPU that ``x`` belongs to; tells whether it was done."""
    if not on_gpu(x):
        return False
    with devices.making(x.device):
        try:
            where = positions(x.shape, key)
            if where is None or (_is_mask(key, x.ndim) and np.ndim(value) > 1):
                return False
            if type(value) in CLASSES or isinstance(value, np.generic):
                value = asarray(value)  # unlike an element's, this conversion does not ask whether the value fits
            x._write(scattered(x, where, fitted(value, where.shape, x.dtype), repeats(key)))
        except REFUSALS:
            return False
    return True


def flat(x: ndarray, key: Any, value: Any) -> bool:
    """``x.flat[key] = value`` on the GPU that ``x`` belongs to, values repeated as NumPy's iterator does; tells whether it was done."""
    if isinstance(key, (list, np.ndarray, ndarray)):
        part = asarray(key)
        if part.ndim != 1 or part.dtype.kind not in "biu" or (part.dtype == BOOL and part.size != x.size):
            return False
    elif type(key) is not slice and key is not Ellipsis:
        return False
    new = inserting.values_for(value, x.dtype, "unsafe")
    return bool(build.size(new)) and _put_at(x, lambda numbers: numbers[key], lambda count: inserting.cycled(new, count))


def item(x: ndarray, name: str, at: Node, values: Node, **static: Any) -> bool:
    """NumPy's function of that name, which writes ``values`` at positions, on the GPU that ``x`` belongs to; tells whether it was done."""
    return _ITEMS[name](x, at, values, **static)


def _put(x: ndarray, at: Node, values: Node, mode: str) -> bool:
    def find(numbers: ndarray) -> ndarray:
        return numbers[wrap(_limited(build.reshape(at, (build.size(at),)), x.size, mode))]

    return _put_at(x, find, lambda count: inserting.cycled(values, count))


def _limited(at: Node, n: int, mode: str) -> Node:
    """Positions, those out of range as the mode says; negative ones are left where they are refused."""
    if mode == "wrap":
        return build.elementwise(o.REMAINDER, INT64, at, build.const(n, INT64))
    if mode == "clip":
        low = build.elementwise(o.MAXIMUM, INT64, at, build.const(0, INT64))
        return build.elementwise(o.MINIMUM, INT64, low, build.const(n - 1, INT64))
    return at


def _put_along_axis(x: ndarray, at: Node, values: Node, axis: int | None) -> bool:
    shape, along = (x.shape, axis) if axis is not None else ((x.size,), 0)
    common = np.broadcast_shapes(at.shape, tuple([at.shape[k] if k == along else n for k, n in enumerate(shape)]))

    def find(numbers: ndarray) -> ndarray:
        return take_along_axis(wrap(build.reshape(node_of(numbers), shape)), wrap(at), along)

    return _put_at(x, find, lambda count: build.expand(values, common))


_ITEMS: Final[dict[str, Callable[..., bool]]] = {"put": _put, "put_along_axis": _put_along_axis}


def _put_at(x: ndarray, find: Callable[[ndarray], ndarray], values: Callable[[int], Node]) -> bool:
    """Write at the flat positions that ``find`` picks out of the numbers of all elements, as ``written``; ``values`` are that many."""
    if not on_gpu(x):
        return False
    with devices.making(x.device):
        try:
            where = find(numbers((x.size,)))
            x._write(scattered(x, where, values(where.size), True))
        except REFUSALS:
            return False
    return True


def numbers(shape: Shape) -> ndarray:
    """The number of each element, in C order."""
    return wrap(build.reshape(build.iota(prod(shape), 0, 1, INT64), shape))


def positions(shape: Shape, key: Any) -> ndarray | None:
    """The flat positions that a key stands for, in the shape of what it picks; None where it picks no array."""
    found = numbers(shape)[key]
    return found if type(found) is ndarray else None


def repeats(key: Any) -> bool:
    """Tell whether a key may stand for a position several times: masks, slices and integers do not."""
    return any(_is_array(part) and asarray(part).dtype.kind != "b" for part in (key if type(key) is tuple else (key,)))


def scattered(x: ndarray, where: ndarray, values: Node, several: bool) -> Node:
    """The value of ``x`` with those at flat positions replaced; ``several``: a position may be there more than once."""
    one = values.src[0] if build.is_filled(values) else None
    where = wrap(build.contiguous(node_of(where)))
    given = wrap(build.contiguous(values) if one is None else one)
    root = x._base if type(x._base) is ndarray else x
    force([root_node(root), node_of(where), node_of(given)], "indexed write")
    place = devices.place(x.device)
    with place.running() as run:
        cupy = place.cupy
        at, new = lent(where, place, run).reshape(-1), lent(given, place, run)
        result = lent(x, place, run).copy()
        if at.size:
            if one is None:
                new = new.reshape(-1)
                if several:
                    new = new[_last(cupy, x.size, at)]
            result.reshape(-1)[at] = new
        report.work.library_calls += 1
        return build.leaf(place.kept(result, run))


def _last(cupy: Any, size: int, at: Any) -> Any:
    """Find for each write the number of the last one to the same position: all of them write its value, in whatever order."""
    last = cupy.zeros(size, dtype=np.uint64)
    cupy.maximum.at(last, at, cupy.arange(at.size, dtype=np.uint64))
    return last[at].astype(np.int64)


def _is_array(part: Any) -> bool:
    return isinstance(part, (list, np.ndarray, ndarray)) and type(part) not in CLASSES


def _is_mask(key: Any, ndim: int) -> bool:
    """Tell whether a key is one array of a truth value for each element, which NumPy fills by rules of its own."""
    return _is_array(key) and asarray(key).dtype == BOOL and asarray(key).ndim == ndim
