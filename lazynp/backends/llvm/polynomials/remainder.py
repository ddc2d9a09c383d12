"""What a division leaves, with the dividend's sign: ``fmod``, which is exact.

x = q y + r, where q is the quotient cut off.  The rounded quotient, cut off, is q or one more than q, as long as it has no more bits than a
number; what is left, by a fused multiply-add, is a multiple of the last place of y and at most y, so that it is exact, and where it has the
other sign y is added once.

A larger quotient, and what is no ordinary number, is ``far``: what is returned for it is of no use.
"""

from __future__ import annotations

from lazynp.backends.llvm.polynomials.code import Code, Value


def fmod(c: Code, x: Value, y: Value) -> tuple[Value, Value]:
    f = c.format
    sign, dividend, divisor = c.sign(c.bits(x)), c.magnitude(c.bits(x)), c.magnitude(c.bits(y))
    close = c.compare("ult", dividend, c.word("add", divisor, f.mantissa << f.mantissa))
    near = c.logic("and", close, c.logic("and", c.compare("ult", dividend, f.infinity), c.within(divisor, f.tiny, f.infinity)))
    less = c.compare("ult", dividend, divisor)
    # Where there is nothing to divide nothing is divided: a quotient that underflows would raise a flag.
    n = c.select(c.logic("and", near, c.logic("xor", less, True)), x, 0.0)
    d = c.select(near, y, 1.0)
    r = c.fma(c.neg(c.call("trunc", c.div(n, d))), d, n)
    bits = c.bits(r)
    beyond = c.logic("and", c.compare("ne", c.sign(bits), sign), c.compare("ne", c.magnitude(bits), 0))
    r = c.select(beyond, c.add(r, c.number(c.word("or", c.magnitude(c.bits(d)), sign))), r)
    left = c.number(c.word("or", c.magnitude(c.bits(r)), sign))
    return c.select(less, x, left), c.logic("xor", near, True)
