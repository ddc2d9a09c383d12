"""exp, exp2, expm1, tanh, sinh and cosh.

All of them reduce x to k log 2 + r with |r| <= log(2) / 2, and use exp(r) = 1 + r + r^2 q(r).  Results in the subnormal range are
rounded once, overflow happens in one last multiplication: flags are those of the function.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.llvm.polynomials.code import Code, Value

LOG2_E: Final = 1.4426950408889634
# log 2 in two parts, the first with so few bits that its product with any exponent is exact.
LOG_2: Final = {"f64": (0.693147180559663, 2.8235290563031577e-13), "f32": (0.693145751953125, 1.428606765330187e-06)}
# q of least relative error in exp(r) - 1, which serves exp as well.
Q: Final = {
    "f64": (
        0.5000000000000006, 0.16666666666666685, 0.04166666666657677, 0.008333333333314798, 0.0013888888931696008,
        0.00019841269902788207, 2.4801505004428085e-05, 2.7557228019769616e-06, 2.762617820811099e-07, 2.5114492441941317e-08,
    ),
    "f32": (0.5000000061932179, 0.16666543362060623, 0.0416662801749492, 0.008366586784621972, 0.0013946628646079894),
}  # fmt: skip
# From here on exp is infinite, and 0 for the negative.
EXP_LIMIT: Final = {"f64": 746.0, "f32": 104.0}
EXP2_LIMIT: Final = {"f64": 1076.0, "f32": 151.0}


def reduced_exp(c: Code, r: Value) -> Value:
    """Return exp(r) - 1 for a reduced r."""
    square = c.mul(r, r)
    return c.fma(c.polynomial(r, Q[c.format.kind], square), square, r)


def scales(c: Code, shifted: Value) -> tuple[Value, Value]:
    """Return two powers of 2 whose product is 2^k, from bits that hold k plus twice the bias: 2^k itself may be no normal number."""
    half = c.word("lshr", shifted, 1)
    rest = c.word("sub", shifted, half)
    # The shift drops what lies above the exponent.
    first, second = c.word("shl", half, c.format.mantissa), c.word("shl", rest, c.format.mantissa)
    return c.number(first), c.number(second)


def reduce(c: Code, x: Value, bias: int, factor: float = 1.0) -> tuple[Value, Value]:
    """Return r = factor * x - k log 2, for a power of 2 as factor, and bits that hold k plus the bias."""
    k, shifted = c.round(x, factor * LOG2_E, bias)
    high, low = LOG_2[c.format.kind]
    if factor != 1.0:
        x = c.mul(x, factor)
    return c.fma(k, -low, c.fma(k, -high, x)), shifted


def _bounded_exp(c: Code, x: Value, limit: float, two: bool) -> Value:
    f = c.format
    bits = c.bits(x)
    # A magnitude from the limit to infinity; NaN takes the ordinary way.
    far = c.within(c.magnitude(bits), f.of(limit), f.infinity + 1)
    near = c.select(far, 0.0, x)
    if two:
        k, shifted = c.round(near, 1.0, 2 * f.bias)
        r = c.mul(c.sub(near, k), 0.6931471805599453)
    else:
        r, shifted = reduce(c, near, 2 * f.bias)
    first, second = scales(c, shifted)
    scaled = c.fma(reduced_exp(c, r), first, first)
    # Far away the result is 0, or x times a large number: infinity, with the overflow flag exactly where x is finite.
    beyond = c.number(c.call_word("smax", bits, 0))
    return c.mul(c.select(far, beyond, scaled), c.select(far, 2.0**f.bias, second))


def exp(c: Code, x: Value) -> Value:
    return _bounded_exp(c, x, EXP_LIMIT[c.format.kind], two=False)


def exp2(c: Code, x: Value) -> Value:
    return _bounded_exp(c, x, EXP2_LIMIT[c.format.kind], two=True)


def expm1(c: Code, x: Value) -> Value:
    f = c.format
    bits = c.bits(x)
    far = c.within(c.magnitude(bits), f.of(EXP_LIMIT[f.kind]), f.infinity + 1)
    r, shifted = reduce(c, c.select(far, 0.0, x), 2 * f.bias)
    first, second = scales(c, shifted)
    inverse = c.number(c.word("sub", 2 * f.of(1.0), c.bits(second)))
    scaled = c.fma(reduced_exp(c, r), first, c.sub(first, inverse))
    large = 2.0 ** (f.bias - 1)
    beyond = c.select(c.compare("slt", bits, 0), -1.0 / large, x)
    result = c.mul(c.select(far, beyond, scaled), c.select(far, large, second))
    return c.number(c.word("or", c.bits(result), c.sign(bits)))  # -0 for -0


def tanh(c: Code, x: Value) -> Value:
    """e / (e + 2) with e = exp(2 |x|) - 1."""
    f = c.format
    bits = c.bits(x)
    positive = c.magnitude(bits)
    limit = 22.0 if f.bits == 64 else 10.0  # from here on the result is 1
    far = c.within(positive, f.of(limit), f.infinity + 1)
    r, shifted = reduce(c, c.select(far, limit, c.number(positive)), f.bias, 2.0)
    scale = c.number(c.word("shl", shifted, f.mantissa))
    e = c.fma(reduced_exp(c, r), scale, c.sub(scale, 1.0))
    return c.number(c.word("or", c.bits(c.div(e, c.add(e, 2.0))), c.sign(bits)))


def _hyperbolic(c: Code, x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """Return the bits of |x|, whether cosh(x) is infinite, exp(r) - 1 and 2^k / 4 with |x| = k log 2 + r, and the sign of x."""
    f = c.format
    bits = c.bits(x)
    positive = c.magnitude(bits)
    far = c.within(positive, f.of(710.5 if f.bits == 64 else 89.5), f.infinity + 1)
    r, shifted = reduce(c, c.select(far, 0.0, c.number(positive)), f.bias - 2)
    return positive, far, reduced_exp(c, r), c.number(c.word("shl", shifted, f.mantissa)), c.sign(bits)


def _doubled(c: Code, far: Value, positive: Value, total: Value) -> Value:
    """Double the total, or of a large |x| what overflows.

    A compiler may compute both sides for every argument: the one of a large |x| overflows from where the result does, and nowhere else.
    """
    f = c.format
    beyond = c.mul(c.number(positive), 2.0**f.bias / (710.48 if f.bits == 64 else 89.45))
    return c.mul(c.select(far, beyond, total), 2.0)


def sinh(c: Code, x: Value) -> Value:
    """2 (g + g / (4 g + 1)) with g = (exp(|x|) - 1) / 4, which is finite wherever the result is."""
    f = c.format
    positive, far, p, scale, sign = _hyperbolic(c, x)
    g = c.fma(p, scale, c.sub(scale, 0.25))
    # For a large g the quotient is too small to matter, as long as it does not overflow.
    moderate = c.select(c.compare("ugt", positive, f.of(40.0 if f.bits == 64 else 20.0)), 1.0, g)
    total = c.add(g, c.div(moderate, c.fma(moderate, 4.0, 1.0)))
    result = _doubled(c, far, positive, total)
    # A quarter of a subnormal number is not exact.
    small = c.compare("ult", positive, f.of(2.0**-28 if f.bits == 64 else 2.0**-13))
    return c.number(c.word("or", c.select_word(small, positive, c.bits(result)), sign))


def cosh(c: Code, x: Value) -> Value:
    """2 (g + 1 / (16 g)) with g = exp(|x|) / 4, which is finite wherever the result is."""
    positive, far, p, scale, _ = _hyperbolic(c, x)
    g = c.fma(p, scale, scale)
    total = c.add(g, c.div(0.0625, g))
    return _doubled(c, far, positive, total)
