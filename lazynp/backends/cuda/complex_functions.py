"""Elementary functions of complex numbers as CUDA C++.

In: nothing.  Out: the definitions of functions of complex numbers, by NumPy's names.  Promise: the branch cuts, zeros and infinities of C's
functions, which are NumPy's, and results within a few units in the last place; of complex64 they are computed in double precision and
rounded, before the logarithms of other bases are multiplied.  Functions that NumPy puts together of these, losing digits on the way, are
put together alike, in the precision of their operands: they lose the same digits.

Powers with whole exponents below 100 are NumPy's products, with NumPy's bits.  Other powers are exponentials of logarithms, as in NumPy:
the error in the last digits of the logarithm is multiplied by its size.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.cuda.types import INFINITY

# Logarithms of e to other bases, by which NumPy multiplies; of complex64 the rounded logarithm, in single precision.
_UNITS: Final[dict[str, str]] = {"log2": "1.442695040888963407359924681001892137", "log10": "0.434294481903251827651128918916605082"}
# Bodies of functions of x + iy.
_UNARY: Final[dict[str, str]] = {
    # W. Kahan: Branch cuts for complex elementary functions (1987); far from 1 the number is scaled, exactly.
    "sqrt": """
    if (fabs(y) == INFINITY)
        return {INFINITY, y};
    if (fabs(x) == INFINITY) {
        const double other = y != y ? y : 0.0;
        return x > 0 ? lz_c16{x, y != y ? y : copysign(0.0, y)} : lz_c16{other, copysign(INFINITY, y)};
    }
    if (x != x || y != y)
        return {x + y, x + y};
    if (x == 0 && y == 0)
        return {0.0, y};
    const double most = fmax(fabs(x), fabs(y));
    const double scale = most > 0x1p1000 ? 0x1p-4 : most < 0x1p-960 ? 0x1p108 : 1.0;
    const double back = most > 0x1p1000 ? 0x1p2 : most < 0x1p-960 ? 0x1p-54 : 1.0;
    const double u = x * scale, v = y * scale, root = sqrt((fabs(u) + hypot(u, v)) * 0.5), other = fabs(v) / (root * 2);
    if (x >= 0)
        return {root * back, copysign(other * back, y)};
    return {other * back, copysign(root * back, y)};""",
    # Near the unit circle from the distance to it, whose digits that squares lose are added.
    "log": """
    const double angle = atan2(y, x), most = fmax(fabs(x), fabs(y)), least = fmin(fabs(x), fabs(y));
    if (!(most < INFINITY) || x != x || y != y)
        return {log(hypot(x, y)), angle};
    if (most > 0.5 && most < 2) {
        const double square = most * most, lost = fma(most, most, -square), other = least * least, more = fma(least, least, -other);
        const double distance = square - 1, total = distance + other, part = total - distance;
        const double rest = (distance - (total - part)) + (other - part);
        return {log1p(total + (rest + (lost + more))) * 0.5, angle};
    }
    if (most > 0x1p1000)
        return {log(hypot(x * 0x1p-4, y * 0x1p-4)) + 4 * 0.693147180559945309417232121458176568, angle};
    if (most < 0x1p-960)
        return {log(hypot(x * 0x1p108, y * 0x1p108)) - 108 * 0.693147180559945309417232121458176568, angle};
    return {log(hypot(x, y)), angle};""",
    **{name: f"""
    const lz_c16 found = lz_log_c16(a);
    return {{found.re * {unit}, found.im * {unit}}};""" for name, unit in _UNITS.items()},
    "sinh": """
    if (y - y != 0)
        return {x == 0 ? x : fabs(x) == INFINITY ? INFINITY : y - y, y - y};
    if (y == 0 || x != x)
        return {sinh(x), y == 0 ? y : x};
    if (fabs(x) < 709)
        return {sinh(x) * cos(y), cosh(x) * sin(y)};
    const double half = exp(fabs(x) * 0.5);
    return {copysign(half * 0.5, x) * cos(y) * half, half * 0.5 * sin(y) * half};""",
    "cosh": """
    if (y - y != 0)
        return {fabs(x) == INFINITY ? INFINITY : y - y, x == 0 ? 0.0 : y - y};
    if (y == 0 || x == 0 || x != x)
        return {cosh(x) * cos(y), x == 0 || y == 0 ? (x < 0 ? -y : x > 0 ? y : x != x ? y : x * sin(y)) : x};
    if (fabs(x) < 709)
        return {cosh(x) * cos(y), sinh(x) * sin(y)};
    const double half = exp(fabs(x) * 0.5);
    return {half * 0.5 * cos(y) * half, copysign(half * 0.5, x) * sin(y) * half};""",
    "tanh": """
    if (fabs(x) == INFINITY)
        return {copysign(1.0, x), copysign(0.0, y)};
    if (y - y != 0)
        return {x == 0 ? x : y - y, y - y};
    if (x != x || y == 0)
        return {tanh(x), y == 0 ? y : x};
    if (fabs(x) > 22)
        return {copysign(1.0, x), 4 * sin(y) * cos(y) * exp(-2 * fabs(x))};
    const double tangent = tan(y), beta = 1 + tangent * tangent, sine = sinh(x), whole = 1 + beta * sine * sine;
    return {beta * sqrt(1 + sine * sine) * sine / whole, tangent / whole};""",
    # Those of the circle are those of the hyperbola, with parts in each other's place.
    "sin": """
    const lz_c16 found = lz_sinh_c16(lz_c16{y, x});
    return {found.im, found.re};""",
    "cos": """
    return lz_cosh_c16(lz_c16{-y, x});""",
    "tan": """
    const lz_c16 found = lz_tanh_c16(lz_c16{y, x});
    return {found.im, found.re};""",
    # Kahan's: of two roots, one for each branch point.
    "arccos": """
    if (fabs(x) == INFINITY || fabs(y) == INFINITY)
        return {atan2(fabs(y), x), copysign(INFINITY, signbit(y) ? 1.0 : -1.0)};  // a NaN's sign is lost where it is negated
    if (x != x || y != y)
        return {x == 0 ? 1.570796326794896619231321691639751442 : x + y, x + y};
    const lz_c16 u = lz_sqrt_c16(lz_c16{1 - x, -y}), v = lz_sqrt_c16(lz_c16{1 + x, y});
    return {2 * atan2(u.re, v.re), asinh(v.re * u.im - v.im * u.re)};""",
    "arcsin": """
    const lz_c16 found = lz_arcsinh_c16(lz_c16{y, x});
    return {found.im, found.re};""",
    "arcsinh": """
    if (fabs(x) == INFINITY || fabs(y) == INFINITY)
        return {copysign(INFINITY, x), atan2(y, fabs(x))};
    if (x != x || y != y)
        return {x + y, y == 0 ? y : x + y};
    const lz_c16 u = lz_sqrt_c16(lz_c16{1 - y, -x}), v = lz_sqrt_c16(lz_c16{1 + y, x});
    return {asinh(u.re * v.im - u.im * v.re), atan2(y, u.re * v.re - u.im * v.im)};""",
    "arccosh": """
    if (fabs(x) == INFINITY || fabs(y) == INFINITY)
        return {INFINITY, atan2(y, x)};
    if (x != x || y != y)
        return {x + y, x == 0 ? 1.570796326794896619231321691639751442 : x + y};
    const lz_c16 u = lz_sqrt_c16(lz_c16{x - 1, y}), v = lz_sqrt_c16(lz_c16{x + 1, y});
    return {asinh(u.re * v.re + u.im * v.im), 2 * atan2(u.im, v.re)};""",
    "arctanh": """
    if (fabs(y) == INFINITY || (fabs(x) == INFINITY && y == y))
        return {copysign(0.0, x), copysign(1.570796326794896619231321691639751442, y)};
    if (x != x || y != y)
        return {x == 0 || fabs(x) == INFINITY ? copysign(0.0, x) : x + y, x + y};
    if (fabs(x) > 0x1p500 || fabs(y) > 0x1p500)
        return {1 / x / (1 + (y / x) * (y / x)), copysign(1.570796326794896619231321691639751442, y)};
    const double far = 1 - fabs(x), square = far * far + y * y;
    return {copysign(log1p(4 * fabs(x) / square) * 0.25, x), 0.5 * atan2(2 * y, far * (1 + fabs(x)) - y * y)};""",
    "arctan": """
    const lz_c16 found = lz_arctanh_c16(lz_c16{y, x});
    return {found.im, found.re};""",
}

# $T the type, $P that of its parts, $k the code, $f the suffix of math functions.
COMPOSED: Final[dict[str, str]] = {
    "exp2": """$T lz_exp2_$k($T a)
{
    const $P unit = ($P)0.693147180559945309417232121458176568;
    return lz_exp_$k($T{a.re * unit, a.im * unit});
}""",
    # Where NumPy's differs from the array API standard's, which ``special_values`` has, that.
    "expm1": """$T lz_expm1_$k($T a, unsigned int& noted)
{
    const bool endless = a.re - a.re != 0, turned = a.im - a.im != 0;
    if (a.im == 0 && (endless || a.re == 0))
        return {expm1$f(a.re) + 0, a.im};
    if (fabs$f(a.re) == $infinity && turned) {
        noted |= 8u;
        return {expm1$f(a.re), a.re < 0 ? 0 : a.im - a.im};
    }
    const $P half = sin$f(a.im / 2);
    return {expm1$f(a.re) * cos$f(a.im) - 2 * half * half, exp$f(a.re) * sin$f(a.im)};
}""",
    "log1p": """$T lz_log1p_$k($T a)
{
    const $T b = {a.re + 1, a.im};
    return {log$f(lz_size_$k(b)), atan2$f(b.im, b.re)};
}""",
    # The size, rounded once where its logarithm is next to zero: what a unit in the last place costs is all digits there.
    "size": """$P lz_size_$k($T a)
{
    const double root = hypot((double)a.re, (double)a.im);
    if (sizeof($P) == 4 || !(root > 0.5 && root < 2))
        return ($P)root;
    const double most = fmax(fabs((double)a.re), fabs((double)a.im)), least = fmin(fabs((double)a.re), fabs((double)a.im));
    const double x = most * most, y = least * least, square = root * root;
    const double lost = fma(most, most, -x) + fma(least, least, -y) - fma(root, root, -square);
    return ($P)(root + (x - square + y + lost) / (2 * root));
}""",
    # Small whole exponents by products; every other one by the logarithm, with C's product of infinite numbers.  What is not finite on
    # the way may leave no trace in the result.
    "power": """$T lz_power_$k($T a, $T b, unsigned int& noted)
{
    if (b.re == 0 && b.im == 0)
        return {1, 0};
    if (a.re == 0 && a.im == 0) {
        const $P none = b.re > 0 ? 0 : $infinity - $infinity;
        return {none, none};
    }
    if (b.im == 0 && fabs$f(b.re) < 100 && b.re == ($P)(int)b.re) {
        unsigned int rest = (unsigned int)fabs$f(b.re);
        if (b.re == 1)
            return a;
        if (b.re == 2)
            return lz_times_$k(a, a);
        if (b.re == 3)
            return lz_times_$k(a, lz_times_$k(a, a));
        $T power = {1, 0};
        for (; ; a = lz_times_$k(a, a)) {
            if (rest & 1u)
                power = lz_times_$k(power, a);
            rest >>= 1;
            if (rest != 0)
                continue;
            noted |= power.re - power.re != 0 || power.im - power.im != 0 ? 15u : 0u;
            return b.re < 0 ? lz_divide_$k($T{1, 0}, power) : power;
        }
    }
    const $T scaled = lz_scaled_$k(b, lz_log_$k(a));
    noted |= scaled.re - scaled.re != 0 || scaled.im - scaled.im != 0 ? 15u : 0u;
    return lz_exp_$k(scaled);
}""",
    "times": """$T lz_times_$k($T a, $T b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}""",
    "scaled": """$T lz_scaled_$k($T a, $T b)
{
    const $T found = lz_times_$k(a, b);
    const bool far_a = fabs$f(a.re) == $infinity || fabs$f(a.im) == $infinity;
    const bool far_b = fabs$f(b.re) == $infinity || fabs$f(b.im) == $infinity;
    if ((found.re == found.re || found.im == found.im) || !(far_a || far_b))
        return found;
    const $T u = far_a ? lz_corner_$k(a) : lz_known_$k(a), v = far_b ? lz_corner_$k(b) : lz_known_$k(b), corner = lz_times_$k(u, v);
    return {$infinity * corner.re, $infinity * corner.im};
}""",
    "corner": """$T lz_corner_$k($T a)
{
    return {copysign$f(fabs$f(a.re) == $infinity ? ($P)1 : ($P)0, a.re), copysign$f(fabs$f(a.im) == $infinity ? ($P)1 : ($P)0, a.im)};
}""",
    "known": """$T lz_known_$k($T a)
{
    return {a.re == a.re ? a.re : copysign$f(($P)0, a.re), a.im == a.im ? a.im : copysign$f(($P)0, a.im)};
}""",
}

DEFINITIONS: Final[dict[str, str]] = {
    name: f"lz_c16 lz_{name}_c16(lz_c16 a)\n{{\n    const double x = a.re, y = a.im;{body}\n}}" for name, body in _UNARY.items()
}


def definition(name: str, single: bool) -> str:
    """The function of complex128; of complex64 one that calls it."""
    if not single:
        return DEFINITIONS[name].replace("INFINITY", INFINITY["f8"])
    unit = _UNITS.get(name)
    times = f" * {unit}f" if unit else ""
    return f"""lz_c8 lz_{name}_c8(lz_c8 a)
{{
    const lz_c16 found = lz_{"log" if unit else name}_c16(lz_c16{{a.re, a.im}});
    return {{(float)found.re{times}, (float)found.im{times}}};
}}"""
