"""Tables of the differential tests: functions, and the arrays to give them.

In: nothing.  Out: ``CASES``: a family, a name, an expression over ``np`` and arrays ``a``, ``b``; and ``arrays(dtype)``: every shape and
layout under test filled with the awkward values of a dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

NATIVE: Final = "?bhilBHILefdFD"
REAL: Final = "?bhilBHILefd"
INTEGER: Final = "bhilBHIL"
BITS: Final = "?" + INTEGER
FLOAT: Final = "efd"
INEXACT: Final = "efdFD"

SPECIAL: Final = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-5, 6e4, np.inf, -np.inf, np.nan]


def words(text: str) -> list[str]:
    return text.split()


def special(dtype: np.dtype[Any]) -> Array:
    """The awkward values of a dtype."""
    match dtype.kind:
        case "b":
            return np.array([True, False, True])
        case "i" | "u":
            info = np.iinfo(dtype)
            return np.array([0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1], dtype)
        case "f":
            info_ = np.finfo(dtype)
            return np.array([*SPECIAL, info_.max, -info_.max, info_.tiny, info_.smallest_subnormal, info_.eps], dtype)
        case _:
            parts = np.array([0.0, -0.0, 1.0, -2.5, 1e-5, np.inf, -np.inf, np.nan], dtype=np.dtype(dtype.char.lower()))
            result = np.empty(64, dtype)
            result.real, result.imag = np.repeat(parts, 8), np.tile(parts, 8)
            return result


def layouts(dtype: np.dtype[Any]) -> Iterator[tuple[str, Array]]:
    """Shapes and layouts, filled with the special values."""
    values = special(dtype)

    def fill(*shape: int) -> Array:
        return np.resize(values, shape)

    yield "all", values.copy()
    yield "0-d", fill()
    yield "empty", fill(0)
    yield "empty rows", fill(3, 0)
    yield "one", fill(1, 1)
    yield "matrix", fill(3, 5)
    yield "transposed", fill(5, 3).T
    yield "strided", fill(6, 10)[::2, ::-2]
    yield "broadcast", np.broadcast_to(fill(5), (3, 5))
    yield "cube", fill(2, 3, 5)


def pairs(first: np.dtype[Any], second: np.dtype[Any]) -> Iterator[tuple[str, Array, Array]]:
    """Every special value against every other, and shapes that broadcast."""
    a, b = special(first), special(second)
    yield "all", np.repeat(a, b.size), np.tile(b, a.size)
    yield "outer", a[:, None], b
    yield "0-d", np.resize(a, ()), np.resize(b, (2, 3))
    yield "empty", np.resize(a, (0, 3)), np.resize(b, (3,))
    yield "strided", np.resize(a, (6, 4))[::-2].T, np.resize(b, (4, 3))
    yield "misfit", np.resize(a, (2,)), np.resize(b, (3,))


UNARY: Final = {
    **dict.fromkeys(words("negative positive absolute sign square conjugate isnan isinf isfinite logical_not"), NATIVE),
    **dict.fromkeys(words("sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh"), INEXACT + "bl"),
    **dict.fromkeys(words("arcsinh arccosh arctanh reciprocal rint"), INEXACT + "bl"),
    **dict.fromkeys(words("cbrt fabs floor ceil trunc signbit spacing deg2rad rad2deg degrees radians"), REAL),
    **dict.fromkeys(words("invert bitwise_count"), BITS),
    **dict.fromkeys(words("modf frexp"), FLOAT),
}

BINARY: Final = {
    **dict.fromkeys(words("add subtract multiply divide power equal not_equal less greater_equal maximum minimum fmax fmin"), NATIVE),
    **dict.fromkeys(words("logical_and logical_or logical_xor less_equal greater"), NATIVE),
    **dict.fromkeys(words("floor_divide remainder fmod divmod float_power"), REAL),
    **dict.fromkeys(words("copysign nextafter hypot arctan2 logaddexp logaddexp2 heaviside"), FLOAT + "b"),
    **dict.fromkeys(words("bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm"), BITS),
}

AXES: Final = ["None", "0", "-1", "1", "(0, 1)", "()", "5"]
REDUCTIONS: Final = {
    **dict.fromkeys(words("sum prod max min any all argmax argmin count_nonzero cumsum cumprod"), NATIVE),
    **dict.fromkeys(words("mean var std ptp nansum nanmax nanmean"), "?bLefdD"),
}

# name -> expression over a (any of the layouts)
MOVEMENT: Final = {
    "transpose": "np.transpose(a)",
    "swapaxes": "np.swapaxes(a, 0, -1)",
    "moveaxis": "np.moveaxis(a, 0, -1)",
    "reshape": "np.reshape(a, -1)",
    "reshape F": "np.reshape(a, -1, order='F')",
    "reshape misfit": "np.reshape(a, (7, 11, 13))",
    "ravel": "np.ravel(a)",
    "squeeze": "np.squeeze(a)",
    "expand_dims": "np.expand_dims(a, 0)",
    "flip": "np.flip(a)",
    "flip axis": "np.flip(a, 1)",
    "roll": "np.roll(a, 2)",
    "roll axis": "np.roll(a, -1, axis=0)",
    "rot90": "np.rot90(a)",
    "tile": "np.tile(a, (2, 1))",
    "repeat": "np.repeat(a, 2)",
    "pad": "np.pad(a, 2)",
    "pad edge": "np.pad(a, 1, mode='edge')",
    "concatenate": "np.concatenate([a, a], axis=0)",
    "concatenate flat": "np.concatenate([a, a], axis=None)",
    "stack": "np.stack([a, a], axis=-1)",
    "hstack": "np.hstack([a, a])",
    "vstack": "np.vstack([a, a])",
    "split": "np.split(a, 3)",
    "diff": "np.diff(a)",
    "where": "np.where(a, a, 1)",
    "clip": "np.clip(a, 0, 3)",
    "take": "np.take(a, [0, -1, 0])",
    "diagonal": "np.diagonal(a)",
    "tril": "np.tril(a)",
    "sort": "np.sort(a)",
    "unique": "np.unique(a)",
    "nonzero": "np.nonzero(a)",
    "isclose": "np.isclose(a, a)",
    "broadcast_to": "np.broadcast_to(a, (2, 2, 3, 5))",
    "copy": "np.copy(a)",
    "real": "np.real(a)",
    "imag": "np.imag(a)",
    "slice": "a[1:]",
    "reverse": "a[::-1]",
    "newaxis": "a[None, ..., None]",
    "item": "a[0]",
    "last": "a[-1, -1]",
    "list": "a[[0, -1]]",
    "column": "a[:, [0, -1, 0]]",
    "out of range": "a[99]",
    "list out of range": "a[[0, 99]]",
    "mask": "a[a == a]",
    "too many": "a[0, 0, 0, 0]",
    "outer": "np.outer(a, a)",
    "trace": "np.trace(a)",
    "misfit": "a + np.ones(4)",
    "bad axis": "np.sum(a, axis=7)",
    "matmul": "np.matmul(a, a)",
}

# Constructors: no arrays go in.
CREATION: Final = [
    f"np.arange({text})"
    for text in ("5", "2, 9", "9, 2, -2", "0.5, 3", "0, 1, 0.1", "5, dtype='f4'", "1, 9, 2, dtype='i1'", "3.0", "0", "-3", "1, 2, 0")
] + [
    "np.linspace(0, 1, 7)",
    "np.linspace(3, -2, 50)",
    "np.linspace(0, 1, 5, endpoint=False)",
    "np.linspace(0, 1, 1)",
    "np.linspace(0, 1, 0)",
    "np.linspace(1, 10, 4, dtype='i4')",
    "np.zeros((2, 3))",
    "np.zeros(3, dtype='F')",
    "np.ones((2, 0), dtype='?')",
    "np.full((2, 2), 7)",
    "np.full(3, 2.5, dtype='f4')",
    "np.full(2, [1, 2])",
    "np.eye(3)",
    "np.eye(2, 4, 1, dtype='i2')",
    "np.identity(2)",
    "np.tri(3, 4, -1)",
    "np.diag([1, 2, 3])",
    "np.meshgrid([1, 2], [3, 4, 5])",
    "np.indices((2, 3))",
    "np.array([[1, 2], [3, 4]], dtype='e')",
    "np.array(3.5)",
    "np.array([1, 2.5, True])",
    "np.array([])",
    "np.array([[1, 2], [3]])",
    "np.logspace(0, 2, 5)",
    "np.geomspace(1, 100, 5)",
    "np.fromfunction(lambda i, j: i + j, (2, 3))",
    "np.vander([1, 2, 3])",
    "np.zeros(-1)",
]
