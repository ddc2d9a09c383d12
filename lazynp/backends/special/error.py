"""The error function's family: erf, erfc, erfcx, the normal distribution, and their inverses.

Everything far from 0 comes from erfcx(y) = exp(y^2) erfc(y), which is 1 / (y + 1/2) times a polynomial of (y - 3.5) / (y + 3.5) for all
y from 0 to infinity; the normal distribution's tail likewise. The square in the exponential that it is multiplied by is taken with its
rounding error: in the tail that would be hundreds of units.
"""

from __future__ import annotations

import itertools
from typing import Final

from lazynp.backends.special import coefficients as of
from lazynp.backends.special.arithmetic import Arithmetic, Condition, Value

CENTRE: Final = 3.5
NORMAL_CENTRE: Final = 5.0
HALF_ROOT: Final = 0.7071067811865476  # 1 / sqrt(2)
ROOT: Final = 1.4142135623730951
BREAKS: Final = (5.0, 14.0, 60.0, 750.0)  # of -log(1 - x^2), where erfinv's tables end
# Its last three tables are polynomials of 1 / sqrt(w), which this factor and summand take to -1 to 1.
_ENDS: Final = [limit**-0.5 for limit in BREAKS]
SCALES: Final = [(2 / (a - b), -(a + b) / (a - b)) for a, b in itertools.pairwise(_ENDS)]
INFINITY: Final = float("inf")


def _near(c: Arithmetic, x: Value) -> Value:
    """erf for |x| <= 1; beyond, anything."""
    y = c.at_most(c.absolute(x), 1.0)
    return c.fma(x, c.polynomial(c.mul(y, y), of.ERF), x)


def _scaled(c: Arithmetic, y: Value) -> Value:
    """erfcx for y >= 0."""
    return _rational(c, y, CENTRE, 0.5, of.ERFCX)


def _rational(c: Arithmetic, y: Value, centre: float, offset: float, table: tuple[float, ...]) -> Value:
    z = c.at_most(y, 2.0**60)  # infinity has no quotient
    t = c.div(c.sub(z, centre), c.add(z, centre))
    return c.div(c.polynomial(t, table), c.add(y, offset))


def erf(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    y = c.at_most(size, 6.0)
    square = c.mul(y, y)  # its error does not show in a result near 1
    tail = c.sub(1.0, c.mul(c.exp(c.neg(square)), _scaled(c, y)))
    near = c.below(size, 1.0)
    result = c.select(near, _near(c, c.select(near, x, 1.0)), c.copysign(tail, x))
    return c.select(c.nan(x), x, result)


def erfc(c: Arithmetic, x: Value) -> Value:
    size, negative = c.absolute(x), c.negative(x)
    y = c.at_most(size, 28.0)
    square, low = c.square(y)
    tail = c.mul(c.exp(c.neg(square), c.neg(low)), _scaled(c, y))
    # A difference from 1 has the error of 1: below 1/2 the tail is the better one.
    near = c.below(size, c.select(negative, 1.0, 0.5))
    far = c.select(negative, c.sub(2.0, tail), tail)
    result = c.select(near, c.sub(1.0, _near(c, c.select(near, x, 1.0))), far)
    return c.select(c.nan(x), x, result)


def erfcx(c: Arithmetic, x: Value) -> Value:
    size, negative = c.absolute(x), c.negative(x)
    scaled = _scaled(c, size)
    near = c.below(size, 0.5)
    square, low = c.square(c.select(near, size, c.select(negative, c.at_most(size, 28.0), 0.0)))
    power = c.exp(square, low)
    around = c.mul(power, c.sub(1.0, _near(c, c.select(near, x, 0.0))))
    mirrored = c.sub(c.mul(power, 2.0), scaled)
    return c.select(c.nan(x), x, c.select(near, around, c.select(negative, mirrored, scaled)))


def _normal_tail(c: Arithmetic, size: Value) -> tuple[Value, Value]:
    """The normal distribution below -``size``, and the factor of it that does not vanish, erfcx(size / sqrt(2)) / 2."""
    scaled = _rational(c, size, NORMAL_CENTRE, HALF_ROOT, of.NDTR)
    square, low = c.square(c.at_most(size, 39.0))
    return c.mul(c.exp(c.mul(square, -0.5), c.mul(low, -0.5)), scaled), scaled


def _half(c: Arithmetic, x: Value, near: Condition) -> Value:
    """erf(x / sqrt(2)) / 2 around 0: the normal distribution less 1/2."""
    return c.mul(_near(c, c.mul(c.select(near, x, 1.0), HALF_ROOT)), 0.5)


def ndtr(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    tail, _ = _normal_tail(c, size)
    near = c.below(size, 0.75)
    far = c.select(c.negative(x), tail, c.sub(1.0, tail))
    return c.select(c.nan(x), x, c.select(near, c.add(_half(c, x, near), 0.5), far))


def log_ndtr(c: Arithmetic, x: Value) -> Value:
    size, negative = c.absolute(x), c.negative(x)
    tail, scaled = _normal_tail(c, size)
    near = c.below(size, 1.2)
    half = _half(c, x, near)
    # The distribution as one number and what that lost; in the left tail as a factor and an exponential.
    start, step = c.select(near, 0.5, 1.0), c.select(near, half, c.neg(tail))
    total = c.add(start, step)
    lost = c.div(c.add(c.sub(start, total), step), total)
    left = c.both(negative, c.no(near))
    logarithm = c.log(c.select(left, scaled, total))
    result = c.add(logarithm, c.select(left, c.mul(c.mul(size, size), -0.5), lost))
    return c.select(c.nan(x), x, c.copysign(result, -1.0))


def _inverse(c: Arithmetic, x: Value, product: Value) -> Value:
    """erfinv(x), where ``product`` is 1 - x^2."""
    w = c.absolute(c.log(product))
    root = c.sqrt(w)
    near, *others = [c.below(w, limit) for limit in BREAKS[:3]]
    slope, offset = SCALES[-1]
    for condition, (a, b) in zip(reversed(others), reversed(SCALES[:-1]), strict=True):
        slope, offset = c.select(condition, a, slope), c.select(condition, b, offset)
    inverse = c.fma(c.div(1.0, c.at_least(root, 1.0)), slope, offset)
    polynomial = c.chosen([near, *others], c.select(near, w, inverse), [of.ERFINV, of.ERFINV_1, of.ERFINV_2, of.ERFINV_3])
    result = c.mul(x, c.mul(polynomial, c.select(near, 1.0, root)))
    return c.select(c.equal(product, 0.0), c.copysign(INFINITY, x), result)


def erfinv(c: Arithmetic, x: Value) -> Value:
    size = c.absolute(x)
    return _inverse(c, x, c.mul(c.sub(1.0, size), c.add(size, 1.0)))


def erfcinv(c: Arithmetic, x: Value) -> Value:
    return _inverse(c, c.sub(1.0, x), c.mul(x, c.sub(2.0, x)))


def ndtri(c: Arithmetic, x: Value) -> Value:
    product = c.mul(c.mul(x, 4.0), c.sub(1.0, x))
    return c.mul(_inverse(c, c.fma(x, 2.0, -1.0), product), ROOT)
