"""Modified Bessel functions of the first kind, and the same times exp(-|x|).

Up to 10 a polynomial of x^2 whose coefficients are all positive, beyond exp(x) / sqrt(x) times a polynomial of 1 / x.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.special import coefficients as of
from lazynp.backends.special.arithmetic import Arithmetic, Condition, Value

LIMIT: Final = 10.0
# The two polynomials, and how fast the logarithm of the function grows with the square of x, roughly: by that the square's rounding error
# is multiplied.
OF_I0: Final = (of.I0, of.I0_TAIL, (0.25, -0.043, 0.0023))
OF_I1: Final = (of.I1, of.I1_TAIL, (0.128, -0.0131, 0.00047))
# exp overflows before the functions do: the argument is shifted by this, and the factor made up for.
HUGE: Final = 700.0
SHIFT: Final = 16.0
EXP_SHIFT: Final = 8886110.520507872  # exp(16)


def _factor(c: Arithmetic, size: Value, tables: tuple[tuple[float, ...], ...]) -> tuple[Condition, Value]:
    """Return whether |x| is below the limit, and the polynomial, over sqrt(x) above it."""
    polynomial, tail, growth = tables
    near = c.below(size, LIMIT)
    bounded = c.at_most(size, LIMIT)
    inverse = c.div(2.0 * LIMIT, c.at_least(size, LIMIT))
    square, low = c.square(bounded)
    value = c.chosen([near], c.select(near, square, c.sub(inverse, 1.0)), [polynomial, tail])
    mended = c.fma(value, c.mul(low, c.polynomial(bounded, growth)), value)
    return near, c.div(c.select(near, mended, value), c.select(near, 1.0, c.sqrt(size)))


def _grown(c: Arithmetic, size: Value, near: Condition, value: Value) -> Value:
    """The value times exp(size) above the limit."""
    bounded = c.at_most(size, 800.0)
    huge = c.below(bounded, HUGE)
    shifted = c.mul(value, c.select(huge, 1.0, EXP_SHIFT))
    power = c.exp(c.select(near, 0.0, c.select(huge, bounded, c.sub(bounded, SHIFT))))
    return c.mul(shifted, power)


def i0(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    near, value = _factor(c, c.at_most(size, 800.0), OF_I0)
    return c.select(c.nan(x), x, _grown(c, size, near, value))


def i0e(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    near, value = _factor(c, size, OF_I0)
    shrunk = c.mul(value, c.exp(c.neg(c.at_most(size, LIMIT))))
    return c.select(c.nan(x), x, c.select(near, shrunk, value))


def i1(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    near, value = _factor(c, c.at_most(size, 800.0), OF_I1)
    value = c.mul(value, c.select(near, size, 1.0))
    return c.select(c.nan(x), x, c.copysign(_grown(c, size, near, value), x))


def i1e(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    near, value = _factor(c, size, OF_I1)
    shrunk = c.mul(c.mul(value, size), c.exp(c.neg(c.at_most(size, LIMIT))))
    return c.select(c.nan(x), x, c.copysign(c.select(near, shrunk, value), x))
