"""What each operation is in NumPy: two tables, one row per ``Op``.

In: nothing.  Out: ``UFUNCS`` (operations that are one ufunc call), ``SPECIAL`` (functions that are called like one) and the helper
functions that the generated code of ``source.py`` calls for the rest.  Promise: each gives exactly the value that ``graph/op.py``
documents, with NumPy's own loops.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.graph import op as o
from lazynp.graph import special_values
from lazynp.graph.op import Kind, Op
from lazynp.values.allocator import Export, allocate
from lazynp.values.buffer import Buffer
from lazynp.values.loading import load

Array = np.ndarray[Any, Any]

# Elementwise operations without a ufunc of their own.
_NOT_UFUNCS: Final = frozenset({o.CAST, o.BITCAST, o.WHERE, o.REAL, o.IMAG, o.COMPLEX, o.MULTIPLY_HIGH})

UFUNCS: Final[dict[Op, np.ufunc]] = {
    op: getattr(np, op.name) for op in o.ALL if op.kind is Kind.ELEMENTWISE and op not in _NOT_UFUNCS | o.SPECIAL
}

# Functions whose complex loop leaves values out.
COMPLEX: Final[dict[Op, Callable[..., Any]]] = {o.by_name(name): function for name, function in special_values.FUNCTIONS.items()}

def _special(name: str) -> Callable[..., Array]:
    """A special function, whose module is loaded when it is called."""

    def function(*arrays: Array) -> Array:
        found: Array = load("lazynp.backends.numpy.special").UFUNCS[name](*arrays)
        return found

    function.__name__ = name
    return function


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of products of unsigned integers; of the longest by halves of their operands."""
    dtype = np.result_type(a, b)
    if dtype.itemsize < 8:
        return np.right_shift(np.multiply(a, b, dtype=np.uint64), 8 * dtype.itemsize).astype(dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    result: Array = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    return result


SPECIAL: Final[dict[Op, Callable[..., Array]]] = {**{op: _special(op.name) for op in o.SPECIAL}, o.MULTIPLY_HIGH: multiply_high}

MATERIALISE: Final = 4096  # elements up to which writing out a broadcast beats describing it (broadcast_to costs 4 us)


def combine(real: Any, imag: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """COMPLEX."""
    result = np.empty(shape, dtype)
    result.real = real
    result.imag = imag
    return result


def written_out(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """EXPAND into memory of its own."""
    result = np.empty(shape, dtype)
    result[...] = x
    return result


def iota(count: int, start: Any, step: Any, dtype: np.dtype[Any]) -> Array:
    """IOTA, as ``numpy.arange`` fills: the index is exact, the arithmetic is in ``dtype`` (half in single precision)."""
    match dtype.kind:
        case "f" if dtype.itemsize == 2:
            wide = np.arange(count, dtype=np.float32) * np.float32(step) + np.float32(start)
            return wide.astype(dtype)
        case "b":
            return (np.arange(count) * int(step) + int(start)).astype(dtype)
        case "i" | "u":
            start, step = int(start), int(step)
            if step and min(start, start + count * step) >= -(2**63) and max(start, start + count * step) < 2**63:
                return np.arange(start, start + count * step, step).astype(dtype, copy=False)
            start, step = dtype.type(start), dtype.type(step)
            # Modulo 2**bits, which the index itself may exceed in a narrow type.
            return np.arange(count, dtype=np.int64).astype(dtype) * step + start
        case "c":
            result = np.empty(count, dtype)
            index = np.arange(count, dtype=result.real.dtype)
            result.real = index * step.real + start.real
            result.imag = index * step.imag + start.imag
            return result
        case _:
            result = np.arange(count, dtype=dtype)
            if step != 1:
                result *= step
            if start != 0 or not step > 0:  # a zero of a range that falls is a negative one until then
                result += start
            return result


def padding(fill: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """PAD, before what is padded is written into it."""
    result = np.empty(shape, dtype)
    result.fill(fill)
    return result


def owned(x: Any) -> Array:
    """C-contiguous memory that belongs to ``x`` as a whole; ``x`` is known not to share it."""
    x = np.asarray(x)
    return x if x.flags.c_contiguous else x.copy()


def copied(x: Any) -> Array:
    """C-contiguous memory of its own for a value that may share memory."""
    return np.array(x, order="C")


ROOM_FROM: Final = 1 << 20  # bytes from which on results lie in blocks of the allocator, which kernels use again


def room(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Return memory for a large result."""
    return allocate(prod(shape) * dtype.itemsize).view(dtype, shape)


def pooled(x: Array) -> Array:
    """``copied``, into a block of the allocator."""
    result = room(x.dtype, x.shape)
    result[...] = x
    return result


def adopted(x: Array) -> Buffer:
    """The buffer of a result: where that fills a block of the allocator, the block itself."""
    export = x.base
    if type(export) is Export and export.block.address == x.__array_interface__["data"][0]:
        return Buffer.of_block(export.block, x.dtype, x.shape)
    return Buffer(x)


def called(value: Any, k: int, dtype: np.dtype[Any], shape: tuple[int, ...], arrays: tuple[Any, ...]) -> Array:
    """Output ``k`` of a library call, in memory of its own, checked against what was declared when it was recorded."""
    if type(value) is tuple or isinstance(value, tuple):
        value = value[k]
    result: Array = np.asarray(value)
    if result.dtype != dtype or result.shape != shape:
        raise RuntimeError(
            f"a library function returned {result.dtype}{list(result.shape)} where {dtype}{list(shape)} was recorded"
        )
    if (result.base is not None and type(result.base) is not Export) or any(result is array for array in arrays):
        return result.copy()
    return result


def changed(x: Array, method: str, keywords: tuple[tuple[str, Any], ...], *others: Array) -> Array:
    """The array, after a method of its own, given the other operands, has changed it."""
    getattr(x, method)(*others, **dict(keywords))
    return x


def checked(x: Any, entry: int, op: Op, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Check, under LAZYNP_DEBUG after every operation, that the value is what its entry declares."""
    if x.dtype != dtype or x.shape != shape:
        raise AssertionError(f"entry {entry} ({op!r}) is {x.dtype}{list(x.shape)}, declared {dtype}{list(shape)}")


def size(shape: tuple[int, ...]) -> int:
    return prod(shape)
