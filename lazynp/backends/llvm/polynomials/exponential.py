"""exp, exp2, expm1, tanh, sinh and cosh.

All of them reduce x to k log 2 + r with |r| <= log(2) / 2, and use exp(r) = 1 + r + r^2 q(r).  Results in the subnormal range are
rounded once, overflow happens in one last multiplication: flags are those of the function.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.llvm.polynomials.code import Code, Value

LOG2_E: Final = 1.4426950408889634
# log 2 in two parts, the first with so few bits that its product with any exponent is exact.
LOG_2: Final = {"f64": (0.6931471803691238, 1.9082149292705877e-10), "f32": (0.693359375, -2.1219444005469057e-4)}
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
        k, shifted = c.round(near, LOG2_E, 2 * f.bias)
        high, low = LOG_2[f.kind]
        r = c.fma(k, -low, c.fma(k, -high, near))
    first, second = scales(c, shifted)
    scaled = c.mul(c.add(reduced_exp(c, r), 1.0), first)
    # Far away the result is 0, or x times a large number: infinity, with the overflow flag exactly where x is finite.
    beyond = c.number(c.call_word("smax", bits, 0))
    return c.mul(c.select(far, beyond, scaled), c.select(far, 2.0**f.bias, second))


def exp(c: Code, x: Value) -> Value:
    return _bounded_exp(c, x, EXP_LIMIT[c.format.kind], two=False)


def exp2(c: Code, x: Value) -> Value:
    return _bounded_exp(c, x, EXP2_LIMIT[c.format.kind], two=True)
