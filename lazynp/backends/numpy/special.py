"""The special functions in NumPy's arithmetic.

In: an array of float32 or float64.  Out: an array of that dtype.  Promise: the meaning that ``lazynp.backends.special`` has, a block of
elements at a time so that what is computed on the way stays in the cache; nothing warns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from lazynp.backends.special import FUNCTIONS

Array = Any
BLOCK: Final = 8192  # elements
LARGEST: Final = np.finfo(np.float64).max
_HIGH: Final = np.int64(-(1 << 27))  # a number without the 27 lowest bits of its significand has an exact square


def _horner(x: Array, coefficients: Sequence[float]) -> Array:
    *rest, last = coefficients
    result = x * last
    for coefficient in rest[:0:-1]:
        result += coefficient
        result *= x
    result += rest[0]
    return result


class Numbers:
    """Arithmetic on arrays of doubles, as ``Arithmetic`` has it."""

    add, sub, mul, div, neg = np.add, np.subtract, np.multiply, np.divide, np.negative
    sqrt, rint, absolute, copysign, at_most, at_least = np.sqrt, np.rint, np.absolute, np.copysign, np.minimum, np.maximum
    log, log1p = np.log, np.log1p
    below, equal, nan, negative, both, no = np.less, np.equal, np.isnan, np.signbit, np.logical_and, np.logical_not
    select = np.where

    @staticmethod
    def fma(a: Array, b: Array, c: Array) -> Array:
        return a * b + c

    @staticmethod
    def square(a: Array) -> tuple[Array, Array]:
        product = a * a
        high = (a.view(np.int64) & _HIGH).view(np.float64)
        low = a - high
        return product, ((high * high - product) + 2.0 * high * low) + low * low

    @staticmethod
    def exp(a: Array, low: Array = None) -> Array:
        power = np.exp(a)
        return power if low is None else power + np.minimum(power, LARGEST) * low

    @staticmethod
    def polynomial(x: Array, coefficients: Sequence[Any]) -> Array:
        # In two halves: less rounding errors than in one.
        if len(coefficients) < 4:
            return _horner(x, coefficients)
        square = x * x
        even, odd = _horner(square, coefficients[::2]), _horner(square, coefficients[1::2])
        odd *= x
        even += odd
        return even

    @staticmethod
    def chosen(conditions: Sequence[Array], x: Array, tables: Sequence[Sequence[float]]) -> Array:
        result = _horner(x, tables[-1])
        for condition, table in zip(reversed(conditions), tables[-2::-1], strict=True):
            result = np.where(condition, _horner(x, table), result)
        return result


def _function(name: str) -> Callable[..., Array]:
    definition = FUNCTIONS[name]

    def function(x: Array, out: Array | None = None) -> Array:
        result = np.empty_like(x, order="C", subok=False) if out is None else out
        flat = np.ravel(x)
        whole = result.reshape(-1) if result.flags.c_contiguous else np.empty(flat.shape, result.dtype)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, BLOCK):
                part = flat[start : start + BLOCK].astype(np.float64)
                whole[start : start + BLOCK] = definition(Numbers, part)
        if whole.base is not result:
            result[...] = whole.reshape(result.shape)
        return result if result.shape else result[()]

    function.__name__ = name
    return function


UFUNCS: Final = {name: _function(name) for name in FUNCTIONS}
