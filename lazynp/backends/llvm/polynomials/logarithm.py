"""log, log2, log10 and log1p.

All of them write x as 2^k (1 + f) with 1 + f between the square roots of 1/2 and 2, and use s = f / (2 + f):
log(1 + f) = 2 atanh(s) = f - s (f - z R(z)) with z = s^2, as fdlibm does.  The only division also makes the results
for zero, negative numbers, infinity and NaN, with their flags.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.llvm.polynomials.code import Code, Operand, Value
from lazynp.backends.llvm.polynomials.exponential import LOG_2

R: Final = {
    "f64": (
        0.666666666666671, 0.39999999999514224, 0.2857142873082164, 0.2222219891012398, 0.18183581874203872, 0.15312880928917202,
        0.14813509875120892,
    ),
    "f32": (0.6666678190231323, 0.39975985884666443, 0.2992825508117676),
}  # fmt: skip
# 1 / log 2 and 1 / log 10 in two parts; log10 of 2 in two parts, the first one short enough to be multiplied exactly by an exponent.
LOG2_E: Final = {"f64": (1.4426950408889634, 2.0355273740931033e-17), "f32": (1.4426950216293335, 1.925963033500011e-08)}
LOG10_E: Final = {"f64": (0.4342944819032518, 1.098319650216765e-17), "f32": (0.4342944920063019, -1.0103049952192578e-08)}
LOG10_2: Final = {"f64": (0.30102999566383914, 1.42050232272661e-13), "f32": (0.301025390625, 4.605039066518657e-06)}


class Split:
    """A number as 2^k m with m from ``least`` to twice that, and whether it has no logarithm (m is harmless then)."""

    def __init__(self, c: Code, x: Value, subnormals: bool = True, least: float = 0.7071067811865476) -> None:
        f = c.format
        self.x, bits = x, c.bits(x)
        self.bits = bits
        self.special = c.logic("xor", c.within(bits, 1, f.infinity), True)
        base, lift = 2.0**f.mantissa, f.mantissa + 1
        offset: Operand = base + f.bias
        if subnormals:
            subnormal = c.compare("ult", bits, f.tiny)  # or zero, which is special
            bits = c.bits(c.mul(x, c.select(subnormal, 2.0**lift, 1.0)))
            offset = c.select(subnormal, base + f.bias + lift, base + f.bias)
        root = f.of(least)
        moved = c.word("add", bits, f.of(1.0) - root)
        self.exponent = c.word("lshr", moved, f.mantissa)  # biased
        # The bits of 2^mantissa + exponent, without an instruction that converts integers: not every machine has it for vectors.
        self.k = c.sub(c.number(c.word("or", self.exponent, f.of(base))), offset)
        self.m_bits = c.word("add", c.word("and", moved, f.tiny - 1), root)
        self.m = c.number(self.m_bits)

    def f(self, c: Code) -> Value:
        return c.sub(self.m, 1.0)


def quotient(c: Code, split: Split, f: Value) -> tuple[Value, Value]:
    """Return s = f / (2 + f), and the result for special arguments."""
    # -1 / 0 for zero, 0 / 0 for a negative number, infinity / 0 and NaN / 0 for themselves.
    above = c.select(c.equal(split.x, 0.0), -1.0, c.number(c.call_word("smax", split.bits, 0)))
    divided = c.div(c.select(split.special, above, f), c.select(split.special, 0.0, c.add(f, 2.0)))
    return c.select(split.special, 0.0, divided), divided


def series(c: Code, s: Value, f: Value) -> Value:
    """Return u for which log(1 + f) = f - s u; s u is a small part of the result, and so are its rounding errors."""
    z = c.mul(s, s)
    return c.fma(c.neg(c.polynomial(z, R[c.format.kind])), z, f)


def log(c: Code, x: Value) -> Value:
    split = Split(c, x)
    return _natural(c, split, split.f(c))


def _natural(c: Code, split: Split, f: Value) -> Value:
    s, divided = quotient(c, split, f)
    high, low = LOG_2[c.format.kind]
    tail = c.fma(c.neg(s), series(c, s, f), c.mul(split.k, low))
    result = c.fma(split.k, high, c.add(f, tail))
    return c.select(split.special, divided, result)


def log1p(c: Code, x: Value) -> Value:
    f = c.format
    split = Split(c, c.add(x, 1.0), subnormals=False)
    # 1 + f = (1 + x) / 2^k, rounded once from the exact x; from a large k on, 1 no longer matters and might be all that is left.
    inverse = c.number(c.word("shl", c.word("sub", 2 * f.bias, split.exponent), f.mantissa))
    exact = c.fma(x, inverse, c.sub(inverse, 1.0))
    large = c.compare("ugt", split.exponent, f.bias + f.mantissa + 1)
    result = _natural(c, split, c.select(large, split.f(c), exact))
    return c.number(c.word("or", c.bits(result), c.sign(c.bits(x))))  # -0 for -0


def _based(c: Code, x: Value, whole: tuple[float, float], fraction: tuple[float, float]) -> Value:
    """Return k times ``whole`` plus log(1 + f) times ``fraction``, both of them in two parts."""
    split = Split(c, x)
    f = split.f(c)
    s, divided = quotient(c, split, f)
    high, low = c.split_difference(f, c.mul(s, series(c, s, f)))
    first = split.k if whole[0] == 1.0 else c.mul(split.k, whole[0])
    total = c.fma(high, fraction[0], first)
    rest = c.fma(high, fraction[0], c.sub(first, total))
    if whole[1]:
        rest = c.fma(split.k, whole[1], rest)
    rest = c.fma(low, fraction[0], c.fma(high, fraction[1], rest))
    return c.select(split.special, divided, c.add(total, rest))


def log2(c: Code, x: Value) -> Value:
    return _based(c, x, (1.0, 0.0), LOG2_E[c.format.kind])


def log10(c: Code, x: Value) -> Value:
    return _based(c, x, LOG10_2[c.format.kind], LOG10_E[c.format.kind])
