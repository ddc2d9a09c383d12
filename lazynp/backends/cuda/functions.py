"""Device functions that scalar operations call, as C++ text.

In: the name of a function, ``lz_floor_divide_i4`` (an operation and the code of a dtype) or a plain one, ``lz_half``.  Out: its
definition, and those of the functions it calls.  Promise: NumPy's value for every input, with nothing undefined on the way; what NumPy
would report as a floating-point error is or'ed into ``noted``, in NumPy's bits.
"""

from __future__ import annotations

import re
from string import Template
from typing import Final

import numpy as np

from lazynp.backends.cuda import complex, complex_functions, mathlib, support
from lazynp.backends.cuda.types import INFINITY, TINY, TYPES, integer, type_of, word_of

HEAD: Final = "static __device__ __forceinline__ "

# Without a dtype ------------------------------------------------------------------------------------------------------------

PLAIN: Final = {
    "lz_c8": "struct __align__(8) lz_c8 { float re, im; };",
    "lz_c16": "struct __align__(16) lz_c16 { double re, im; };",
    # A quotient of what is below 2^31, by the multiplier that ``render.reciprocal`` made.
    "lz_quotient": HEAD + """int lz_quotient(int a, unsigned long long divisor)
{
    const unsigned int multiplier = (unsigned int)(divisor >> 32) | 0x80000000u;
    return (int)(__umulhi(2u * (unsigned int)a, multiplier) >> (32 - __clz((int)divisor - 1)));
}""",
    **{f"lz_look_{k}": f"""static __device__ __noinline__ unsigned int lz_look_{k}({t} result, {t} a, {t} b, unsigned int errors)
{{
    return lz_wrong_{k}(result, a, b, errors);
}}""" for k, t in (("f4", "float"), ("f8", "double"))},
    "lz_vector": "template <class T, int N> struct __align__(sizeof(T) * N) lz_vector { T e[N]; };",
    "lz_aligned": HEAD + """bool lz_aligned(const void* address, unsigned int bytes)
{
    return ((unsigned long long)address & (bytes - 1u)) == 0;
}""",
    # What CUDA's header of half precision says, which a machine need not have.
    "lz_single": HEAD + """float lz_single(unsigned short x)
{
    float single;
    asm("cvt.f32.f16 %0, %1;" : "=f"(single) : "h"(x));
    return single;
}""",
    "lz_half": HEAD + """unsigned short lz_half(float x)
{
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}""",
    # Rounded to odd in single precision first, so that the second rounding cannot undo the first.
    "lz_half_of_double": HEAD + """unsigned short lz_half_of_double(double x)
{
    float single = (float)x;
    if ((double)single != x && x == x) {
        const unsigned int bits = __float_as_uint(single) - (fabs((double)single) > fabs(x) ? 1u : 0u);
        single = __uint_as_float(bits | 1u);
    }
    return lz_half(single);
}""",
}  # fmt: skip

# By operation and kind of dtype ------------------------------------------------------------------------------------------------
# $T the type, $k the dtype's code, $U the unsigned type of computing, $f the suffix of math functions, $least the least integer.

DEFINITIONS: Final[dict[tuple[str, str], str]] = {
    ("floor_divide", "i"): """$T lz_floor_divide_$k($T a, $T b, unsigned int& noted)
{
    if (b == 0) {
        noted |= 1u;
        return 0;
    }
    if (b == -1) {
        if (a == $least)
            noted |= 2u;
        return ($T)(0 - ($U)a);
    }
    const $T quotient = ($T)(a / b);
    return quotient * b != a && (a < 0) != (b < 0) ? ($T)(quotient - 1) : quotient;
}""",
    ("floor_divide", "u"): """$T lz_floor_divide_$k($T a, $T b, unsigned int& noted)
{
    if (b == 0) {
        noted |= 1u;
        return 0;
    }
    return ($T)(a / b);
}""",
    ("remainder", "i"): """$T lz_remainder_$k($T a, $T b, unsigned int& noted)
{
    if (b == 0) {
        noted |= 1u;
        return 0;
    }
    if (b == -1)
        return 0;
    const $T rest = ($T)(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? ($T)(rest + b) : rest;
}""",
    ("remainder", "u"): """$T lz_remainder_$k($T a, $T b, unsigned int& noted)
{
    if (b == 0) {
        noted |= 1u;
        return 0;
    }
    return ($T)(a % b);
}""",
    ("fmod", "i"): """$T lz_fmod_$k($T a, $T b, unsigned int& noted)
{
    if (b == 0) {
        noted |= 1u;
        return 0;
    }
    return b == -1 ? ($T)0 : ($T)(a % b);
}""",
    # Python's floor division and remainder, as NumPy's npy_divmod defines them.
    ("floor_divide", "f"): """$T lz_floor_divide_$k($T a, $T b)
{
    if (b == 0)
        return a / b;
    const $T mod = fmod$f(a, b);
    $T div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0))
        div -= 1;
    if (div == 0)
        return copysign$f(($T)0, a / b);
    const $T whole = floor$f(div);
    return div - whole > ($T)0.5 ? whole + 1 : whole;
}""",
    ("remainder", "f"): """$T lz_remainder_$k($T a, $T b)
{
    const $T mod = fmod$f(a, b);
    if (b == 0)
        return mod;
    if (mod == 0)
        return copysign$f(($T)0, b);
    return (b < 0) != (mod < 0) ? mod + b : mod;
}""",
    ("spacing", "f"): """$T lz_spacing_$k($T x)
{
    if (x - x != 0)
        return x - x;
    return nextafter$f(x, x < 0 ? -$infinity : $infinity) - x;
}""",
    # CUDA's function takes the largest number and a small one for an infinity, and is further off than C's.
    ("hypot", "f"): """$T lz_hypot_$k($T a, $T b)
{
    const double x = fabs((double)a), y = fabs((double)b), most = fmax(x, y), least = fmin(x, y);
    if (most > 0x1.fffffffffffffp1023)
        return $infinity;
    if (x != x || y != y)
        return a + b;
    if (sizeof($T) == 4)
        return ($T)sqrt(most * most + least * least);
    const double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-400 ? 0x1p600 : 1.0, u = most * scale, v = least * scale;
    const double square = u * u, other = v * v, root = sqrt(square + other), again = root * root;
    if (root == 0)
        return 0;
    const double lost = fma(u, u, -square) + fma(v, v, -other) - fma(root, root, -again);
    return ($T)((root + (square - again + other + lost) / (2 * root)) * (most > 0x1p500 ? 0x1p600 : most < 0x1p-400 ? 0x1p-600 : 1.0));
}""",
    # CUDA's function makes 2.9999999999999996 of 3 to the first power.  Small whole exponents are products with what their rounding
    # loses kept beside them; in single precision products of doubles.
    ("power", "f"): """$T lz_power_$k($T a, $T b)
{
    const $T size = fabs$f(b);
    if (size == 1 && b == 1)
        return a;
    if (size < 64 && size == ($T)(int)size) {
        double high = 1, low = 0, x = a, y = 0;
        for (unsigned int rest = (unsigned int)size; rest != 0;) {
            if (rest & 1u) {
                const double product = high * x;
                low = fma(high, x, -product) + (high * y + low * x);
                high = product + low;
                low = product - high + low;
            }
            rest >>= 1;
            const double square = x * x;
            y = fma(x, x, -square) + 2 * x * y;
            x = square + y;
            y = square - x + y;
        }
        if (b < 0) {
            const double quotient = 1 / high, left = fma(-quotient, high, 1.0) - quotient * low;
            low = 0;
            high = quotient + quotient * left;
        }
        if (fabs(high) > 0x1p-900 && fabs(high) < 0x1p900)
            return ($T)high;
    }
    return pow$f(a, b);
}""",
    ("logaddexp", "f"): """$T lz_logaddexp_$k($T a, $T b, unsigned int& noted)
{
    if (a == b)
        return a + ($T)0.693147180559945309417232121458176568;
    const $T difference = a - b, power = exp$f(-fabs$f(difference));
    noted |= lz_wrong_$k(difference, a, b, 2u) | (difference != difference ? 8u : power < $tiny ? 4u : 0u);
    return (difference > 0 ? a : b) + log1p$f(power);
}""",
    ("logaddexp2", "f"): """$T lz_logaddexp2_$k($T a, $T b, unsigned int& noted)
{
    if (a == b)
        return a + 1;
    const $T difference = a - b, power = exp2$f(-fabs$f(difference));
    noted |= lz_wrong_$k(difference, a, b, 2u) | (difference != difference ? 8u : power < $tiny ? 4u : 0u);
    return (difference > 0 ? a : b) + ($T)1.442695040888963407359924681001892137 * log1p$f(power);
}""",
    ("gcd", "iu"): """$T lz_gcd_$k($T a, $T b)
{
    $U x = $absolute_a, y = $absolute_b;
    while (x != 0) {
        const $U rest = y % x;
        y = x;
        x = rest;
    }
    return ($T)y;
}""",
    ("lcm", "iu"): """$T lz_lcm_$k($T a, $T b)
{
    const $U x = $absolute_a, y = $absolute_b, g = ($U)($unsigned)lz_gcd_$k(a, b);
    return g == 0 ? ($T)0 : ($T)(x / g * y);
}""",
    ("multiply_high", "u"): """$T lz_multiply_high_$k($T a, $T b)
{
    if (sizeof($T) == 8)
        return ($T)__umul64hi(a, b);
    return ($T)((unsigned long long)a * b >> (8 * sizeof($T) & 63u));
}""",
    # Conversions of floating-point numbers, as instructions of the processors NumPy runs on have them: the least integer of the
    # instruction's type where the number does not fit.
    ("to_i4", "f"): """int lz_to_i4_$k($T x, unsigned int& noted)
{
    if (x $above && x < ($T)2147483648.0)
        return (int)x;
    noted |= 8u;
    return -2147483647 - 1;
}""",
    ("to_i8", "f"): """long long lz_to_i8_$k($T x, unsigned int& noted)
{
    if (x >= ($T)-9223372036854775808.0 && x < ($T)9223372036854775808.0)
        return (long long)x;
    noted |= 8u;
    return -9223372036854775807ll - 1;
}""",
    ("to_u8", "f"): """unsigned long long lz_to_u8_$k($T x, unsigned int& noted)
{
    const $T top = ($T)9223372036854775808.0;
    if (x >= top)
        return (unsigned long long)lz_to_i8_$k(x - top, noted) ^ 0x8000000000000000ull;
    return (unsigned long long)lz_to_i8_$k(x, noted);
}""",
    # The errors that a non-finite result may come from: none where an operand was so already.
    ("wrong", "f"): """unsigned int lz_wrong_$k($T result, $T a, $T b, unsigned int errors)
{
    const bool invalid = (result != result) & (a == a) & (b == b);
    const bool over = (fabs$f(result) == $infinity) & (fabs$f(a) != $infinity) & (fabs$f(b) != $infinity);
    return (invalid ? errors & 8u : 0u) | (over ? errors & 3u : 0u);
}""",
    ("strict", "f"): """unsigned int lz_strict_$k($T result, $T a, $T b, unsigned int errors)
{
    return (fabs$f(result) < $infinity) | (a != a) | (b != b) ? 0u : errors;
}""",
}  # fmt: skip

# Half precision, from bit patterns.
HALF: Final[dict[str, str]] = {
    "nextafter": """unsigned short lz_nextafter_f2(unsigned short a, unsigned short b)
{
    const float x = lz_single(a), y = lz_single(b);
    if (x != x || y != y)
        return 0x7e00u;
    if (x == y)
        return a;
    if (x == 0)
        return (unsigned short)((b & 0x8000u) + 1u);
    return (unsigned short)((x < y) == (x > 0) ? a + 1u : a - 1u);
}""",
    "spacing": """unsigned short lz_spacing_f2(unsigned short x, unsigned int& noted)
{
    const unsigned int exponent = x & 0x7c00u;
    if (exponent == 0x7c00u) {
        noted |= 8u;
        return 0x7e00u;
    }
    if (x == 0x7bffu) {
        noted |= 2u;
        return 0x7c00u;
    }
    const unsigned int digits = (x & 0x8000u) && !(x & 0x3ffu) ? 11u : 10u;  // of the neighbour below a negative power of two
    const unsigned int e = exponent >> 10;
    return (unsigned short)(e > digits ? (e - digits) << 10 : e > 1u ? 1u << (e - (digits - 9u)) : 1u);
}""",
}  # fmt: skip

_NAME: Final = re.compile(r"\blz_\w+")
_DTYPES: Final = {key: np.dtype(key) for key in TYPES}


def closure(text: str) -> str:
    """The definitions of all functions that ``text`` names, those first that others need."""
    done: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in done:
            return
        found = definition(name)
        for other in sorted(set(_NAME.findall(found)) - {name}):
            visit(other)
        done[name] = found

    for name in sorted(set(_NAME.findall(text))):
        visit(name)
    return "\n".join(done.values())


def definition(name: str) -> str:
    if name in PLAIN:
        return PLAIN[name]
    base, _, key = name.removeprefix("lz_").rpartition("_")
    dtype = _DTYPES[key]
    if key == "f2" and base in HALF:
        return HEAD + HALF[base]
    if base in mathlib.SPECIAL:
        return HEAD + mathlib.special(base, dtype)
    if support.is_combining(base):
        return HEAD + support.definition(base, dtype)
    if dtype.kind == "c" and base in complex_functions.DEFINITIONS:
        return HEAD + complex_functions.definition(base, dtype.itemsize == 8)
    known = complex.DEFINITIONS if dtype.kind == "c" else DEFINITIONS
    text = next(text for (operation, kinds), text in known.items() if operation == base and dtype.kind in kinds)
    return HEAD + _filled(text, dtype)


def _filled(text: str, dtype: np.dtype) -> str:
    key = f"{dtype.kind}{dtype.itemsize}"
    values = {"T": type_of(dtype), "k": key, "U": word_of(dtype)}
    if dtype.kind == "c":
        part = complex.part_of(dtype)
        single = part.itemsize == 4
        values |= {"P": type_of(part), "part": f"f{part.itemsize}", "f": "f" if single else "", "infinity": INFINITY[f"f{part.itemsize}"]}
    elif dtype.kind == "f":
        single = dtype.itemsize == 4
        values |= {"f": "f" if single else "", "infinity": INFINITY[key], "tiny": TINY[key]}
        # Truncation makes more doubles fit 32 bits than the least integer and what is above it.
        values["above"] = ">= -2147483648.0f" if single else "> -2147483649.0"
    elif dtype.kind == "i":
        unsigned = values["unsigned"] = type_of(np.dtype(f"u{dtype.itemsize}"))
        values["least"] = integer(int(np.iinfo(dtype).min), dtype)
        values |= {f"absolute_{x}": f"({values['U']})({unsigned})({x} < 0 ? 0 - ({values['U']}){x} : ({values['U']}){x})" for x in "ab"}
    else:
        values |= {"absolute_a": "a", "absolute_b": "b", "unsigned": type_of(dtype)}
    return Template(text).substitute(values)
