"""The logarithm of the gamma function, and its derivative.

Near 2 both are polynomials, from where the recurrence leads to the arguments up to 5.5 (to 2 for the derivative); from there on Stirling's
series, whose remainder is a polynomial of 1 / x, and for negative arguments the reflection.
"""

from __future__ import annotations

from math import log, pi
from typing import Final

from lazynp.backends.special import coefficients as of
from lazynp.backends.special.arithmetic import Arithmetic, Value

HALF_LOG_2PI: Final = 0.5 * log(2 * pi)
# The ends of the arguments that are taken to 2 + u from n = 0, 1, ... 5. The recurrence is not used where it would cancel, left of 1.5.
LIMITS: Final = (0.5, 1.25, 2.5, 3.5, 4.5, 5.5)
WHOLE: Final = 2.0**52  # from here on every number is an integer
INFINITY: Final = float("inf")
NAN: Final = float("nan")


def _fraction(c: Arithmetic, size: Value) -> Value:
    """The distance from the nearest integer, with its sign; exact."""
    bounded = c.at_most(size, WHOLE)
    return c.sub(bounded, c.rint(bounded))


def gammaln(c: Arithmetic, x: Value) -> Value:
    size, negative = c.absolute(x), c.negative(x)
    # log gamma(y) for y = n + u is log gamma(2 + u) plus the logarithm of the factors between, or minus.
    steps = [c.below(size, limit) for limit in LIMITS]
    n, factor = c.select(steps[4], 4.0, 5.0), c.mul(c.sub(size, 1.0), c.sub(size, 2.0))
    factor = c.select(steps[4], factor, c.mul(factor, c.sub(size, 3.0)))
    for k, product in ((3, c.sub(size, 1.0)), (2, 1.0), (1, size), (0, c.mul(size, c.add(size, 1.0)))):
        n, factor = c.select(steps[k], float(k), n), c.select(steps[k], product, factor)
    u = c.sub(size, n)
    near = c.mul(u, c.polynomial(c.select(steps[5], u, 0.0), of.GAMMALN))
    logarithm = c.log(c.select(steps[5], factor, size))
    near_sum = c.add(near, c.select(steps[1], c.neg(logarithm), logarithm))
    inverse = c.div(1.0, c.at_least(size, 1.0))
    remainder = c.fma(inverse, c.polynomial(c.mul(inverse, inverse), of.STIRLING), HALF_LOG_2PI - 0.5)
    far = c.fma(c.sub(size, 0.5), c.sub(logarithm, 1.0), remainder)
    positive = c.select(steps[5], near_sum, far)
    # gamma(-y) gamma(y) = -pi / (y sin(pi y)); for a small y the factor y is taken into gamma(y).
    f = _fraction(c, size)
    sine = c.absolute(c.mul(f, c.polynomial(c.mul(f, f), of.SINPI)))
    other = c.div(c.mul(c.select(steps[0], 1.0, size), sine), c.select(steps[0], c.mul(c.add(size, 1.0), pi), pi))
    reflected = c.neg(c.add(c.log(c.select(negative, other, 1.0)), c.select(steps[0], near, positive)))
    return c.select(c.below(size, INFINITY), c.select(negative, reflected, positive), x)


def digamma(c: Arithmetic, x: Value) -> Value:
    size, negative = c.absolute(x), c.negative(x)
    below_1, below_2 = c.below(size, 1.0), c.below(size, 2.0)
    high, low = of.PSI_ROOT
    # The distance from the zero, of x or of x + 1, in two parts.
    u = c.sub(c.sub(size, c.select(below_1, high - 1.0, high)), low)
    t = c.fma(c.select(below_2, size, 1.5), 2.0, c.select(below_1, -1.0, -3.0))
    near = c.mul(u, c.polynomial(c.select(below_2, t, 0.0), of.PSI))
    inverse = c.div(1.0, size)
    beyond = c.at_least(size, 2.0)
    w = c.div(1.0, beyond)
    far = c.fma(w, c.polynomial(c.fma(w, 4.0, -1.0), of.PSI_TAIL), c.log(beyond))
    following = c.select(below_1, near, c.add(c.select(below_2, near, far), inverse))  # psi(size + 1)
    positive = c.select(below_1, c.sub(near, inverse), c.select(below_2, near, far))
    f = _fraction(c, size)
    square = c.mul(f, f)
    sine = c.mul(f, c.polynomial(square, of.SINPI))
    cotangent = c.div(c.mul(c.polynomial(square, of.COSPI), pi), c.select(negative, sine, 1.0))
    pole = c.both(c.equal(f, 0.0), c.no(below_1))
    result = c.select(negative, c.select(pole, NAN, c.add(following, cotangent)), positive)
    return c.select(c.nan(x), x, result)
