"""expit, its inverse logit, and its logarithm."""

from __future__ import annotations

from lazynp.backends.special.arithmetic import Arithmetic, Value


def _exponential(c: Arithmetic, x: Value) -> Value:
    """exp(-|x|), which never overflows."""
    return c.exp(c.neg(c.at_most(c.absolute(x), 800.0)))


def expit(c: Arithmetic, x: Value) -> Value:
    e = _exponential(c, x)
    result = c.div(c.select(c.negative(x), e, 1.0), c.add(e, 1.0))
    return c.select(c.nan(x), x, result)


def log_expit(c: Arithmetic, x: Value) -> Value:
    result = c.sub(c.select(c.negative(x), x, 0.0), c.log1p(_exponential(c, x)))
    return c.select(c.nan(x), x, c.copysign(result, -1.0))


def logit(c: Arithmetic, x: Value) -> Value:
    """log(x / (1 - x)); around 1/2 the quotient's distance from 1 is known better than the quotient."""
    rest = c.sub(1.0, x)
    offset = c.sub(x, 0.5)
    near = c.below(c.absolute(offset), 0.2)
    around = c.log1p(c.div(c.select(near, c.mul(offset, 2.0), 0.0), c.select(near, rest, 1.0)))
    return c.select(near, around, c.log(c.select(near, 1.0, c.div(x, rest))))
