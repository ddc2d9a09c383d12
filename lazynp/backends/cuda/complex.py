"""Complex arithmetic as C++ expressions.

In: an operation of which an operand or the result is complex, dtypes and the texts of its operands.  Out: an expression of NumPy's value,
and the definitions of the functions it calls.  Promise: each part is computed by the operations NumPy uses, in their order (products with
fused multiply-add, as NumPy where the processor has it); comparisons are lexicographic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from lazynp.backends.cuda import complex_functions
from lazynp.backends.cuda.types import INFINITY, DType, code, type_of
from lazynp.graph import op as o
from lazynp.graph.op import Op

# {k} the code of the complex dtype, {T} its type, {f} the suffix of math functions on its parts, {inf} their infinity.
ROWS: Final[dict[Op, str]] = {
    o.ADD: "lz_add_{k}({a}, {b})",
    o.SUBTRACT: "lz_subtract_{k}({a}, {b})",
    o.MULTIPLY: "lz_multiply_{k}({a}, {b})",
    o.DIVIDE: "lz_divide_{k}({a}, {b})",
    o.POWER: "lz_power_{k}({a}, {b}, noted)",
    o.EXPM1: "lz_expm1_{k}({a}, noted)",
    o.NEGATIVE: "{T}{{-{a}.re, -{a}.im}}",
    o.CONJUGATE: "{T}{{{a}.re, -{a}.im}}",
    o.COMPLEX: "{T}{{{a}, {b}}}",
    o.REAL: "{a}.re",
    o.IMAG: "{a}.im",
    o.SIGN: "lz_sign_{k}({a}, noted)",
    o.RINT: "{T}{{rint{f}({a}.re), rint{f}({a}.im)}}",
    o.ABSOLUTE: "lz_modulus_{k}({a})",
    o.EQUAL: "lz_equal_{k}({a}, {b}, noted)",
    o.NOT_EQUAL: "!lz_equal_{k}({a}, {b}, noted)",
    o.LESS: "lz_less_{k}({a}, {b}, noted)",
    o.GREATER: "lz_less_{k}({b}, {a}, noted)",
    o.LESS_EQUAL: "lz_less_equal_{k}({a}, {b}, noted)",
    o.GREATER_EQUAL: "lz_less_equal_{k}({b}, {a}, noted)",
    **{o.by_name(name): f"lz_{name}_{{k}}({{a}})" for name in ("exp", "exp2", "log1p", *complex_functions.DEFINITIONS)},
    o.ISNAN: "{a}.re != {a}.re || {a}.im != {a}.im",
    o.ISINF: "fabs{f}({a}.re) == {inf} || fabs{f}({a}.im) == {inf}",
    o.ISFINITE: "fabs{f}({a}.re) < {inf} && fabs{f}({a}.im) < {inf}",
}

_NAN: Final = """
    noted |= a.re != a.re || a.im != a.im || b.re != b.re || b.im != b.im ? 8u : 0u;"""
_LESS: Final = "(a.re < b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im {} b.im)"

# $P the type of the parts, otherwise as in ``functions.py``.
DEFINITIONS: Final[dict[tuple[str, str], str]] = {
    **{(name, "c"): text for name, text in complex_functions.COMPOSED.items()},
    ("modulus", "c"): """$P lz_modulus_$k($T a)
{
    return lz_hypot_$part(a.re, a.im);
}""",
    ("add", "c"): """$T lz_add_$k($T a, $T b)
{
    return {a.re + b.re, a.im + b.im};
}""",
    ("subtract", "c"): """$T lz_subtract_$k($T a, $T b)
{
    return {a.re - b.re, a.im - b.im};
}""",
    ("multiply", "c"): """$T lz_multiply_$k($T a, $T b)
{
    return {fma$f(a.re, b.re, -(a.im * b.im)), fma$f(a.re, b.im, a.im * b.re)};
}""",
    # Smith's algorithm, as NumPy has it.
    ("divide", "c"): """$T lz_divide_$k($T a, $T b)
{
    const $P real = fabs$f(b.re), imag = fabs$f(b.im);
    if (real >= imag) {
        if (real == 0 && imag == 0)
            return {a.re / real, a.im / real};
        const $P ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const $P ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}""",
    # The direction: of two infinite parts none, of one that part's.
    ("sign", "c"): """$T lz_sign_$k($T a, unsigned int& noted)
{
    const $P size = hypot$f(a.re, a.im);
    if (size != size)
        return {size, size};
    if (size == 0)
        return {0, 0};
    if (size < $infinity)
        return {a.re / size, a.im / size};
    noted |= 10u;  // the size may have overflowed
    if (fabs$f(a.re) < $infinity || a.re != a.re)
        return {0, copysign$f(($P)1, a.im)};
    if (fabs$f(a.im) == $infinity)
        return {size - size, size - size};
    return {copysign$f(($P)1, a.re), 0};
}""",
    # By halves of the exponent where the power overflows and the product need not.
    ("exp", "c"): """$T lz_exp_$k($T a)
{
    if (a.im == 0)
        return {exp$f(a.re), a.im};
    if (fabs$f(a.re) == $infinity) {
        const bool known = a.im - a.im == 0;
        const $P size = a.re > 0 ? a.re : 0;
        const $P other = a.re > 0 ? a.im - a.im : 0;
        return {known ? copysign$f(size, cos$f(a.im)) : size, known ? copysign$f(size, sin$f(a.im)) : other};
    }
    const $P cosine = cos$f(a.im), sine = sin$f(a.im), power = exp$f(a.re);
    if (power == $infinity) {
        const $P half = exp$f(a.re * ($P)0.5);
        return {half * cosine * half, half * sine * half};
    }
    return {power * cosine, power * sine};
}""",
    # Of complex64 only, which has other types of its size.
    ("bits", "c"): """long long lz_bits_$k($T a)
{
    return (long long)(__float_as_uint(a.re) | (unsigned long long)__float_as_uint(a.im) << 32);
}""",
    ("of_bits", "c"): """$T lz_of_bits_$k(long long a)
{
    return {__uint_as_float((unsigned int)a), __uint_as_float((unsigned int)((unsigned long long)a >> 32))};
}""",
    ("equal", "c"): f"""bool lz_equal_$k($T a, $T b, unsigned int& noted)
{{{_NAN}
    return a.re == b.re && a.im == b.im;
}}""",
    ("less", "c"): f"""bool lz_less_$k($T a, $T b, unsigned int& noted)
{{{_NAN}
    return {_LESS.format("<")};
}}""",
    ("less_equal", "c"): f"""bool lz_less_equal_$k($T a, $T b, unsigned int& noted)
{{{_NAN}
    return {_LESS.format("<=")};
}}""",
}  # fmt: skip


def part_of(dtype: DType) -> DType:
    return np.dtype(f"f{dtype.itemsize // 2}")


def supported(op: Op, dtype: DType, sources: Sequence[DType]) -> bool:
    """Tell whether an operation with complex operands or result can be written."""
    if op is o.CAST:
        return True
    if op is o.BITCAST:
        return dtype.itemsize == sources[0].itemsize
    return op in ROWS and op.takes(sources[0]) and all(d == sources[0] for d in sources)


def expression(op: Op, dtype: DType, args: tuple[str, ...], source: DType) -> str:
    whole = source if source.kind == "c" else dtype
    part = code(part_of(whole))
    operands = dict(zip("ab", args, strict=False))
    return ROWS[op].format(T=type_of(whole), k=code(whole), f="f" if part == "f4" else "", inf=INFINITY[part], **operands)
