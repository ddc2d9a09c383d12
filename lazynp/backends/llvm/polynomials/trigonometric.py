"""sin, cos and tan of numbers up to 2^20.

x = k pi/2 + r with |r| <= pi/4: pi/2 is three numbers, of which k times the first is subtracted by a fused multiply-add and k times the
second, a short one, is exact.  r comes as h - l with a small l, because its rounding would be half of the error that the result may have.
sin(r) and cos(r) are two polynomials; k says which of them is the result, and its sign.

Beyond 2^20 the reduction needs hundreds of digits of pi: those arguments are ``far``, and what is returned for them is of no use.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.llvm.polynomials.code import Code, Value

LIMIT: Final = 2.0**20
TWO_OVER_PI: Final = 0.6366197723675814
HALF_PI: Final = (1.5707963267948966, 6.12323399667708e-17, -9.403137205957857e-27)  # the second has 32 bits
# (r - sin r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 as polynomials of r^2 with the least relative error of sin r and cos r.
S: Final = (
    0.1666666666666663, -0.00833333333332184, 0.00019841269829358544, -2.7557313538527634e-06, 2.505073439260132e-08,
    -1.589543355087082e-10,
)  # fmt: skip
C: Final = (
    0.041666666666666595, -0.0013888888888873342, 2.4801587289002072e-05, -2.7557314217033985e-07, 2.0875705394859014e-09,
    -1.1358749147359796e-11,
)  # fmt: skip


class Reduced:
    """r = h - l, the bits that end in k plus ``quarters``, and which arguments are far."""

    def __init__(self, c: Code, x: Value, quarters: int = 0) -> None:
        f = c.format
        # Infinity minus infinity below is NaN with its flag, and NaN stays what it is.
        self.far = c.within(c.magnitude(c.bits(x)), f.of(LIMIT), f.infinity)
        near = c.select(self.far, 0.0, x)
        k, self.turns = c.round(near, TWO_OVER_PI, quarters)
        first, second, third = HALF_PI
        rest = c.fma(k, -first, near)
        self.h = c.fma(k, -second, rest)
        # Exact: where the differences cancel they have no more bits than fit, and elsewhere this is what rounding left.
        self.l = c.fma(k, third, c.fma(k, second, c.sub(self.h, rest)))

    def odd(self, c: Code) -> Value:
        return c.compare("ne", c.word("and", self.turns, 1), 0)


def parts(c: Code, r: Reduced) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """Return sin(r) and cos(r), each as a number and what is to be subtracted from or added to it."""
    z = c.mul(r.h, r.h)
    half = c.mul(z, 0.5)
    w = c.sub(1.0, half)
    fourth = c.mul(z, z)
    # Signs of zeros: the difference h - 0 has that of h, which is what h is for a zero.
    sine = c.fma(c.mul(z, r.h), c.polynomial(z, S, fourth), c.mul(r.l, w))
    lost = c.sub(c.sub(1.0, w), half)
    cosine = c.fma(fourth, c.polynomial(z, C, fourth), c.fma(r.h, r.l, lost))
    return (r.h, sine), (w, cosine)


def _wave(c: Code, x: Value, quarters: int) -> tuple[Value, Value]:
    r = Reduced(c, x, quarters)
    (h, less), (w, more) = parts(c, r)
    chosen = c.select(r.odd(c), c.add(w, more), c.sub(h, less))
    sign = c.word("shl", c.word("and", r.turns, 2), c.format.bits - 2)
    return c.number(c.word("xor", c.bits(chosen), sign)), r.far


def sin(c: Code, x: Value) -> tuple[Value, Value]:
    return _wave(c, x, 0)


def cos(c: Code, x: Value) -> tuple[Value, Value]:
    return _wave(c, x, 1)


def tan(c: Code, x: Value) -> tuple[Value, Value]:
    """sin / cos, or -cos / sin for an odd k; the quotient is mended by what it leaves of the numerator."""
    r = Reduced(c, x)
    (h, less), (w, more) = parts(c, r)
    odd = r.odd(c)
    s, s_low = c.split_difference(h, less)
    k, k_low = c.split_sum(w, more)
    top, top_low = c.select(odd, k, s), c.select(odd, k_low, s_low)
    bottom, bottom_low = c.select(odd, s, k), c.select(odd, s_low, k_low)
    inverse = c.div(1.0, bottom)
    q = c.mul(top, inverse)
    excess = c.add(c.fma(q, bottom, c.neg(top)), c.fma(q, bottom_low, c.neg(top_low)))
    mended = c.fma(c.neg(excess), inverse, q)  # with the sign of a zero
    return c.number(c.word("xor", c.bits(mended), c.word("shl", r.turns, c.format.bits - 1))), r.far
