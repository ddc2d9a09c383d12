"""power: exp(y log |x|), with the logarithm in two parts, since its error grows by the size of the result's logarithm.

|x| is 2^k m with m near one of four numbers C, whose logarithms have few bits: log |x| = k log 2 + log C + 2 atanh(s) with
s = (m - C) / (m + C).  In single precision everything is computed in double, where one part and one C suffice.

Zero and infinite x, NaN, the signs for negative x, and powers that are 1 whatever the other argument is, are C's (and so NumPy's).
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.llvm.polynomials.code import Code, Value
from lazynp.backends.llvm.polynomials.exponential import EXP_LIMIT, LOG2_E, LOG_2, reduced_exp, scales
from lazynp.backends.llvm.polynomials.logarithm import Split

# m from 2^(-1/8) to 2^(7/8): from where on which C is the nearest, C and log C. C was searched so that log C ends in zeros: 42 bits
# hold it to 2^-69, and its sum with a multiple of log 2 is exact.
LEAST: Final = 0.9170040432046712
CENTRES: Final = (
    (1.0905077326652577, 1.1892071009657883, 0.1732867833363798),
    (1.2968395546510096, 1.4142135832868286, 0.34657360506821533),
    (1.5422108254079407, 1.6817928397283473, 0.5198603909027497),
)
# 2 atanh(s) = s (2 + z (2/3 + z P(z))) with z = s^2.
P: Final = (0.39999999999970914, 0.285714286823363, 0.22222076987791237, 0.1826102364553782)
# For results in single precision: 2 atanh(s) = s (2 + z R(z)) for |s| up to 0.18, and exp(r) = 1 + r + r^2 q(r).
R: Final = (0.666666657504935, 0.40000340892460756, 0.2853591384133896, 0.23620179380096235)
Q: Final = (0.5000000083981387, 0.16666524709051175, 0.04166622778441219, 0.008368380042652517, 0.0013949456871772956)
INFINITY: Final = float("inf")
NAN: Final = float("nan")


def power(c: Code, x: Value, y: Value) -> Value:
    f = c.format
    x_bits, y_bits = c.bits(x), c.bits(y)
    size_bits = c.magnitude(x_bits)
    size = c.number(size_bits)
    # Zero and infinity have no logarithm: the result is |x| or, for a negative y, the quotient 1 / |x| with its flag.
    pole = c.logic("xor", c.within(size_bits, 1, f.infinity), True)
    inverted = c.logic("and", pole, c.compare("slt", y_bits, 0))
    # A negative x: the sign is that of an odd y, and no result exists for a y that is no integer, unless x is zero or infinite.
    negative = c.compare("slt", x_bits, 0)
    half = c.mul(y, 0.5)
    whole, even = c.equal(c.call("rint", y), y), c.equal(c.call("rint", half), half)
    odd = c.logic("and", negative, c.logic("and", whole, c.logic("xor", even, True)))
    nothing = c.logic("and", c.logic("and", negative, c.logic("xor", pole, True)), c.logic("xor", whole, True))
    # A larger y gives 0 or infinity for every x but 1 and -1, for which an infinite y should not be multiplied by the logarithm 0.
    unordered = c.unordered(x, y)
    bounded = c.select(unordered, 0.0, c.bounded(y, 2.0**66))
    magnitude = (_double if f.bits == 64 else _single)(c, size, bounded, pole, inverted, nothing)
    signed = c.number(c.word("xor", c.bits(magnitude), c.select_word(odd, -f.sign, 0)))
    result = c.select(unordered, NAN, signed)
    # NaN to the power of 0, and 1 to the power of NaN, are 1.
    return c.select(c.logic("or", c.equal(x, 1.0), c.equal(y, 0.0)), 1.0, result)


def _product(c: Code, nothing: Value, a: Value, b: Value) -> tuple[Value, Value]:
    """Return the factors a and b or, for no result, infinity and a zero: their product is NaN and raises the flag.

    The optimiser would lose the flag if both were constants, hence a zero made of a sign.
    """
    zero = c.number(c.sign(c.bits(b)))
    return c.select(nothing, INFINITY, a), c.select(nothing, zero, b)


def _double(c: Code, x: Value, y: Value, pole: Value, inverted: Value, nothing: Value) -> Value:
    """Return x^y for a positive x; for a pole x, or 1 / x where ``inverted``."""
    f = c.format
    split = Split(c, x, least=LEAST)
    centre, log_centre = c.operand(1.0), c.operand(0.0)
    for start, number, logarithm in CENTRES:
        nearer = c.compare("uge", split.m_bits, f.of(start))
        centre, log_centre = c.select(nearer, number, centre), c.select(nearer, logarithm, log_centre)
    # s in two parts: the difference is exact, the sum has an error.
    n = c.sub(split.m, centre)
    d, d_low = c.split_sum(centre, split.m)
    inverse = c.div(1.0, c.select(inverted, x, d))
    s = c.mul(n, inverse)
    minus_s = c.neg(s)
    s_low = c.mul(c.fma(minus_s, d_low, c.fma(minus_s, d, n)), inverse)
    z = c.mul(s, s)
    cubic = c.mul(z, c.fma(z, c.polynomial(z, P), 2 / 3))
    low = c.fma(s_low, c.fma(z, 2.0, 2.0), c.mul(s, cubic))
    low = c.fma(split.k, LOG_2["f64"][1], low)
    log, log_low = c.split_sum(c.fma(split.k, LOG_2["f64"][0], log_centre), c.mul(s, 2.0))
    log_low = c.add(log_low, low)
    e, e_low = c.split_product(y, log)
    e_low = c.fma(y, log_low, e_low)
    e_bits = c.bits(e)
    far = c.compare("ugt", c.magnitude(e_bits), f.of(EXP_LIMIT["f64"]))
    e, e_low = c.select(far, 0.0, e), c.select(far, 0.0, e_low)
    # The second part is up to a thousandth of the first: both of them decide k.
    k, shifted = c.round(c.add(e, e_low), LOG2_E, 2 * f.bias)
    r = c.add(c.fma(k, -LOG_2["f64"][0], e), c.fma(k, -LOG_2["f64"][1], e_low))
    first, second = scales(c, shifted)
    scaled = c.fma(reduced_exp(c, r), first, first)
    beyond = c.number(c.call_word("smax", e_bits, 0))
    result = c.mul(*_product(c, nothing, c.select(far, beyond, scaled), c.select(far, 2.0**f.bias, second)))
    return c.select(pole, c.select(inverted, inverse, x), result)


def _single(c: Code, x: Value, y: Value, pole: Value, inverted: Value, nothing: Value) -> Value:
    """Do the same in double precision, where every positive float is a normal number."""
    wide = c.widened()
    f = wide.format
    x = c.extended(x)
    split = Split(wide, x, subnormals=False)
    n = split.f(wide)
    s = wide.div(wide.select(inverted, 1.0, n), wide.select(inverted, x, wide.add(n, 2.0)))
    z = wide.mul(s, s)
    log = wide.fma(split.k, 0.6931471805599453, wide.mul(s, wide.fma(wide.polynomial(z, R), z, 2.0)))
    e = wide.mul(c.extended(y), log)
    e = wide.bounded(e, 200.0)  # where single precision has long overflowed, or vanished
    k, shifted = wide.round(e, LOG2_E, f.bias)
    r = wide.fma(k, -0.6931471805599453, e)
    square = wide.mul(r, r)
    p = wide.fma(wide.polynomial(r, Q, square), square, r)
    scale = wide.number(wide.word("shl", shifted, f.mantissa))
    p, scale = _product(wide, nothing, p, scale)
    return c.truncated(wide.select(pole, wide.select(inverted, s, x), wide.fma(p, scale, scale)))
