"""Sums and products in the order that kernels have, with NumPy's loops; and other operations whose bits are made to be theirs.

In: the name of what combines two elements, an array, the axes, the identity.  Out: the reduced array.
Promise: the bits of the kernels that ``codegen/reduce.py`` describes, whatever the shape and the layout: a sum is the same number before a
program is compiled and afterwards.

NumPy's own order is another one, and depends on the layout.  But its loops combine element with element, and along an axis that is not the
innermost one of contiguous memory they combine row after row; of these two things the order is made.  Sums and products
of float32 and float64 are made in C (``ordered.h``).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.schedule.chunks import CHUNK, LANES, ROWS

Array = np.ndarray[Any, Any]
GROUPS: Final = CHUNK // LANES


def _better(better: np.ufunc, loop: np.ufunc) -> Callable[[Any, Any], Any]:
    """``fmax`` or ``fmin`` as kernels have it: of two zeros the second.  Which one NumPy's loop takes depends on where they stand."""

    def function(a: Any, b: Any) -> Any:
        return loop(a, b) if b.dtype.char == "e" else np.where(better(a, b) | np.isnan(b), a, b)

    return function


fmax: Final = _better(np.greater, np.fmax)
fmin: Final = _better(np.less, np.fmin)
COMPOSED: Final = {"fmax": fmax, "fmin": fmin}


def unsigned(x: Any) -> Any:
    """Numbers as uint32: what does not fit is cut from an int64, where the result of NumPy's conversion depends on the place."""
    return x.astype(np.int64).astype(np.uint32)


NATIVE: Final = frozenset({"add", "multiply"})


def reduce(name: str, x: Array, axes: tuple[int, ...], identity: Any) -> Array:
    """``x`` reduced over ``axes`` by what is called ``name``, from ``identity``."""
    dtype, shape = x.dtype, x.shape
    if dtype.char == "e" and name == "add":
        return reduce(name, x.astype(np.float32), axes, np.float32(identity)).astype(dtype)
    if len(axes) == len(shape):
        kept: tuple[int, ...] = ()
        outer, n, width = 1, x.size, 0
        order = axes
    else:
        inner = -1
        for axis, extent in enumerate(shape):
            if extent > 1:
                inner = axis
        kept = tuple([extent for axis, extent in enumerate(shape) if axis not in axes])
        n = prod([shape[axis] for axis in axes])
        if inner in axes or inner < 0:
            order = (*[axis for axis in range(len(shape)) if axis not in axes], *axes)
            outer, width = prod(kept), 0
        else:
            # The reduced axes come together, in order, where the first of them is.
            front = [axis for axis in range(axes[0]) if axis not in axes]
            order = (*front, *axes, *[axis for axis in range(axes[0], len(shape)) if axis not in axes])
            outer = prod([shape[axis] for axis in front])
            width = prod(kept) // outer
        if order != tuple(range(len(shape))):
            x = x.transpose(order)
    x = np.ascontiguousarray(x)
    if dtype.char in "fd" and name in NATIVE:
        result = np.empty(kept, dtype)
        core.reduce_in_order(name, x, outer, n, width, identity, result)
        return result
    loop: np.ufunc = getattr(np, name)
    result = _columns(loop, x.reshape(outer, n, width)) if width else _rows(loop, x.reshape(outer, n))
    # What starts from zero is no negative zero; for all others the identity changes nothing.
    found: Array = loop(identity, result).reshape(kept)
    return found


def _rows(ufunc: np.ufunc, x: Array) -> Array:
    """Reduce each row of a matrix."""
    n = x.shape[1]
    if n <= LANES:
        return _halved(ufunc, x)
    full = n // CHUNK
    rest: Array | None = None
    if n > full * CHUNK:
        rest = _halved(ufunc, _lanes(ufunc, x[:, full * CHUNK :]))
        if not full:
            return rest
    chunks = _halved(ufunc, ufunc.reduce(x[:, : full * CHUNK].reshape(-1, GROUPS, LANES), 1)).reshape(-1, full)
    if rest is not None:
        chunks = np.concatenate((chunks, rest[:, None]), 1)
    return _counted(ufunc, chunks)


def _lanes(ufunc: np.ufunc, x: Array) -> Array:
    """The accumulators of a part of a chunk."""
    n = x.shape[1]
    groups = n // LANES
    if not groups:
        return x
    lanes: Array = ufunc.reduce(x[:, : groups * LANES].reshape(-1, groups, LANES), 1)
    if n > groups * LANES:
        part = lanes[:, : n - groups * LANES]
        ufunc(part, x[:, groups * LANES :], out=part)
    return lanes


def _halved(ufunc: np.ufunc, lanes: Array) -> Array:
    """Combine the accumulators of each row: l with l + 16, l + 8, ...; what is missing is the identity."""
    width, half = lanes.shape[1], LANES // 2
    while half:
        if width > half:
            left, right = lanes[:, : width - half], lanes[:, half:width]
            if width == 2 * half:
                lanes = ufunc(left, right)
            else:
                lanes = np.concatenate((ufunc(left, right), lanes[:, width - half : half]), 1)
            width = half
        half //= 2
    return lanes[:, 0]


def _counted(ufunc: np.ufunc, x: Array) -> Array:
    """Combine results of chunks, or of blocks of rows, as a binary counter does: powers of two pairwise, the rest from the short end."""
    rest: Array | None = None
    while x.shape[1] > 1:
        n = x.shape[1]
        if n & 1:
            rest = x[:, -1] if rest is None else ufunc(x[:, -1], rest)
        x = ufunc(x[:, : n - 1 : 2], x[:, 1::2]) if n & 1 else ufunc(x[:, ::2], x[:, 1::2])
    return x[:, 0] if rest is None else ufunc(x[:, 0], rest)


def _columns(ufunc: np.ufunc, x: Array) -> Array:
    """Reduce rows to one, blocks of rows first."""
    rows = x.shape[1]
    full = rows // ROWS
    if not full or rows == ROWS:
        short: Array = ufunc.reduce(x, 1)
        return short
    blocks: Array = ufunc.reduce(x[:, : full * ROWS].reshape(len(x), full, ROWS, -1), 2)
    if rows > full * ROWS:
        blocks = np.concatenate((blocks, ufunc.reduce(x[:, full * ROWS :], 1)[:, None]), 1)
    return _counted(ufunc, blocks)
