"""Scalar operations as C++ expressions.

In: an operation, dtypes and the texts of its operands, which have no side effects.  Out: an expression of NumPy's value.  Promise: nothing
undefined is computed: integers are added, multiplied and shifted as unsigned ones and cut to their type; division, remainder, conversion
from floating point and whatever else has exceptions is a function of ``functions.py``; an operation that is not in these tables is
not ``supported``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from lazynp.backends.cuda import complex
from lazynp.backends.cuda.types import INFINITY, DType, code, type_of, word_of
from lazynp.graph import op as o
from lazynp.graph.op import Op
from lazynp.values import records


class Row(records.Row):
    """A row says how an operation is written for each kind of dtype; empty where it is not defined.

    ``{a} {b}`` the operands, ``{T}`` their type, ``{U}`` the unsigned type to compute in, ``{k}`` the dtype's code, ``{f}`` the suffix
    of math functions, ``{n}`` bits, ``{inf}`` infinity, ``{popc}`` and ``{bits}`` the functions that count bits and make them an integer.
    """

    bool: str = ""
    signed: str = ""
    unsigned: str = ""
    floating: str = ""


def _arithmetic(sign: str, boolean: str = "") -> Row:
    wrapped = f"({{T}})(({{U}}){{a}} {sign} ({{U}}){{b}})"
    return Row(boolean, wrapped, wrapped, f"{{a}} {sign} {{b}}")


def _bits(sign: str) -> Row:
    wrapped = f"({{T}})({{a}} {sign} {{b}})"
    return Row(wrapped, wrapped, wrapped)


def _same(text: str) -> Row:
    return Row(text, text, text, text)


def _compare(sign: str) -> Row:
    return _same(f"{{a}} {sign} {{b}}")


def _extremum(sign: str, nan: str) -> Row:
    """The one of two that is not beaten; ``nan`` is the operand whose NaN gives way to ``a``."""
    text = f"{{a}} {sign} {{b}} ? {{a}} : {{b}}"
    return Row(text, text, text, f"{{a}} {sign} {{b}} || {nan} != {nan} ? {{a}} : {{b}}")


def _function(name: str, noted: str = ", noted", floating: bool = True) -> Row:
    whole = f"lz_{name}_{{k}}({{a}}, {{b}}{noted})"
    return Row("", whole, whole, f"lz_{name}_{{k}}({{a}}, {{b}})" if floating else "")


def _rounding(name: str) -> Row:
    return Row("{a}", "{a}", "{a}", f"{name}{{f}}({{a}})")


ROWS: Final[dict[Op, Row]] = {
    o.ADD: _arithmetic("+", "{a} || {b}"),
    o.SUBTRACT: _arithmetic("-"),
    o.MULTIPLY: _arithmetic("*", "{a} && {b}"),
    o.DIVIDE: Row(floating="{a} / {b}"),
    o.FLOOR_DIVIDE: _function("floor_divide"),
    o.REMAINDER: _function("remainder"),
    o.FMOD: Row("", "lz_fmod_{k}({a}, {b}, noted)", "lz_remainder_{k}({a}, {b}, noted)", "fmod{f}({a}, {b})"),
    o.NEGATIVE: Row("", "({T})(0 - ({U}){a})", "({T})(0 - ({U}){a})", "-{a}"),
    o.ABSOLUTE: Row("{a}", "{a} < 0 ? ({T})(0 - ({U}){a}) : ({T}){a}", "{a}", "fabs{f}({a})"),
    o.SIGN: Row("", "({T})(({a} > 0) - ({a} < 0))", "({T})({a} != 0)", "{a} > 0 ? 1 : {a} < 0 ? -1 : {a} == 0 ? 0 : {a}"),
    o.LESS: _compare("<"),
    o.LESS_EQUAL: _compare("<="),
    o.GREATER: _compare(">"),
    o.GREATER_EQUAL: _compare(">="),
    o.EQUAL: _compare("=="),
    o.NOT_EQUAL: _compare("!="),
    o.MAXIMUM: _extremum(">", "{a}"),
    o.MINIMUM: _extremum("<", "{a}"),
    o.FMAX: _extremum(">", "{b}"),
    o.FMIN: _extremum("<", "{b}"),
    o.BITWISE_AND: _bits("&"),
    o.BITWISE_OR: _bits("|"),
    o.BITWISE_XOR: _bits("^"),
    o.INVERT: Row("!{a}", "({T})~{a}", "({T})~{a}"),
    # A count that is negative or too large shifts everything out.
    o.LEFT_SHIFT: Row(
        "",
        "({U}){b} < {n}u ? ({T})(({U}){a} << ({U}){b}) : ({T})0",
        "{b} < {n}u ? ({T})(({U}){a} << {b}) : ({T})0",
    ),
    o.RIGHT_SHIFT: Row("", "({T})(({T}){a} >> (({U}){b} < {n}u ? (int){b} : {n} - 1))", "{b} < {n}u ? ({T})({a} >> {b}) : ({T})0"),
    o.BITWISE_COUNT: Row("", "{popc}(({U})({unsigned})({a} < 0 ? 0 - ({U}){a} : ({U}){a}))", "{popc}({a})"),
    o.GCD: _function("gcd", "", floating=False),
    o.LCM: _function("lcm", "", floating=False),
    o.MULTIPLY_HIGH: Row(unsigned="lz_multiply_high_{k}({a}, {b})"),
    o.FLOOR: _rounding("floor"),
    o.CEIL: _rounding("ceil"),
    o.TRUNC: _rounding("trunc"),
    o.POWER: Row(floating="lz_power_{k}({a}, {b})"),
    o.HYPOT: Row(floating="lz_hypot_{k}({a}, {b})"),
    o.SPACING: Row(floating="lz_spacing_{k}({a})"),
    o.LOGADDEXP: Row(floating="lz_logaddexp_{k}({a}, {b}, noted)"),
    o.LOGADDEXP2: Row(floating="lz_logaddexp2_{k}({a}, {b}, noted)"),
    o.SIGNBIT: Row(floating="{bits}({a}) < 0"),
    o.ISNAN: Row("false", "false", "false", "{a} != {a}"),
    o.ISINF: Row("false", "false", "false", "fabs{f}({a}) == {inf}"),
    o.ISFINITE: Row("true", "true", "true", "fabs{f}({a}) < {inf}"),
}
# C's functions, whose names for float end in f; LDEXP is none of those, for its operands differ in type.
_ARGUMENTS: Final = ("", "{a}", "{a}, {b}")
MATH: Final = [op for op in o.ALL if op.c_name and op not in ROWS and op is not o.LDEXP]
ROWS.update({op: Row(floating=f"{op.c_name}{{f}}({_ARGUMENTS[op.arity or 0]})") for op in MATH})
ROWS.update({op: Row(floating=f"lz_{op.name}_{{k}}({{a}})") for op in o.SPECIAL})

# Operations on half precision that are not those on float, rounded.  Of two zeros of unlike sign NumPy's loops take the second one, except
# those for float16.
HALF: Final[dict[Op, str]] = {
    o.NEGATIVE: "(unsigned short)({a} ^ 0x8000u)",
    o.ABSOLUTE: "(unsigned short)({a} & 0x7fffu)",
    o.SIGNBIT: "({a} & 0x8000u) != 0",
    o.COPYSIGN: "(unsigned short)(({a} & 0x7fffu) | ({b} & 0x8000u))",
    o.NEXTAFTER: "lz_nextafter_f2({a}, {b})",
    o.SPACING: "lz_spacing_f2({a}, noted)",
}
HALF_EXTREMA: Final[dict[Op, str]] = {
    o.MAXIMUM: _extremum(">=", "{a}").floating,
    o.MINIMUM: _extremum("<=", "{a}").floating,
    o.FMAX: _extremum(">=", "{b}").floating,
    o.FMIN: _extremum("<=", "{b}").floating,
}
COLUMNS: Final = {"b": "bool", "i": "signed", "u": "unsigned", "f": "floating"}
SINGLE: Final = np.dtype(np.float32)


def supported(op: Op, dtype: DType, sources: Sequence[DType]) -> bool:
    """Tell whether ``op`` on scalars of these dtypes can be written."""
    if any(d.kind not in "biufc" or d.char in "gG" for d in (dtype, *sources)):
        return False
    if op is o.WHERE:
        return True
    if any(d.kind == "c" for d in (dtype, *sources)):
        return complex.supported(op, dtype, sources)
    if op is o.CAST:
        return True
    if op is o.BITCAST:
        return dtype.kind != "b" and sources[0].kind != "b"
    if op is o.LDEXP:
        return sources[0].kind == "f" and sources[1].kind == "i"
    if op not in ROWS or any(d != sources[0] for d in sources):
        return False
    return op.takes(sources[0]) and bool(getattr(ROWS[op], COLUMNS[sources[0].kind]))


def expression(op: Op, dtype: DType, args: tuple[str, ...], source: DType) -> str:
    """One operation; ``source`` is the dtype of its last argument."""
    if op is o.WHERE:
        condition, a, b = args
        return f"{condition} ? {_typed(a, dtype)} : {_typed(b, dtype)}"
    if op is o.CAST:
        return cast(args[0], source, dtype)
    if op is o.BITCAST:
        return _bitcast(args[0], source, dtype)
    if "c" in (dtype.kind, source.kind):
        return complex.expression(op, dtype, args, source)
    if op is o.LDEXP:
        return _ldexp(args[0], args[1], dtype, source)
    if source.char == "e":
        if op in HALF:
            return HALF[op].format(**dict(zip("ab", args, strict=False)))
        # float16 rounds after every operation
        text = HALF_EXTREMA.get(op) or ROWS[op].floating
        wide = _filled(text, SINGLE, tuple([f"lz_single({a})" for a in args]))
        return f"lz_half({wide})" if dtype.char == "e" else wide
    return _filled(getattr(ROWS[op], COLUMNS[source.kind]), source, args)


def _typed(text: str, dtype: DType) -> str:
    """An operand of a selection: literals and integers of loops take its type."""
    return f"({type_of(dtype)}){text}" if dtype.kind in "iu" else text


def _filled(text: str, dtype: DType, args: tuple[str, ...]) -> str:
    """The template of an operation with its operands."""
    key, bits = code(dtype), 8 * dtype.itemsize
    return text.format(
        T=type_of(dtype), U=word_of(dtype), k=key, n=bits, f="f" if key == "f4" else "", inf=INFINITY.get(key, ""),
        popc="__popcll" if bits == 64 else "__popc", bits="__float_as_int" if key == "f4" else "__double_as_longlong",
        unsigned=type_of(np.dtype(f"u{dtype.itemsize}")) if dtype.kind in "iu" else "",
        **dict(zip("abc", args, strict=False)),
    )  # fmt: skip


# Conversion ------------------------------------------------------------------------------------------------------------------


def cast(x: str, source: DType, dtype: DType) -> str:
    """NumPy's unsafe casting: a complex number loses its imaginary part, or has none."""
    if source == dtype:
        return x
    if source.kind == "c":
        if dtype.kind == "b":
            return f"{x}.re != 0 || {x}.im != 0"
        if dtype.kind != "c":
            return cast(f"{x}.re", complex.part_of(source), dtype)
        part = type_of(complex.part_of(dtype))
        return f"{type_of(dtype)}{{({part}){x}.re, ({part}){x}.im}}"
    if dtype.kind == "c":
        return f"{type_of(dtype)}{{{cast(x, source, complex.part_of(dtype))}, 0}}"
    if source.char == "e":
        if dtype.kind == "b":
            return f"({x} & 0x7fffu) != 0"
        x, source = f"lz_single({x})", SINGLE
        if dtype == SINGLE:
            return x
    if dtype.kind == "b":
        return f"{x} != 0"
    if dtype.char == "e":
        if source.char == "d":
            return f"lz_half_of_double({x})"
        return f"lz_half((float){x})"
    if source.kind == "f" and dtype.kind in "iu":
        return _to_integer(x, source, dtype)
    return f"({type_of(dtype)}){x}"


def _to_integer(x: str, source: DType, dtype: DType) -> str:
    """Convert as the instructions of processors do: unsigned 32 bits come from signed 64, all that is smaller from 32."""
    if code(dtype) == "u8":
        return f"lz_to_u8_{code(source)}({x}, noted)"
    through = "i8" if code(dtype) in ("i8", "u4") else "i4"
    return f"({type_of(dtype)})lz_to_{through}_{code(source)}({x}, noted)"


_AS_BITS: Final = {"f4": "__float_as_int({})", "f8": "__double_as_longlong({})", "c8": "lz_bits_c8({})"}
_FROM_BITS: Final = {
    "f4": "__int_as_float((int){})", "f8": "__longlong_as_double((long long){})", "c8": "lz_of_bits_c8((long long){})",
}  # fmt: skip


def _bitcast(x: str, source: DType, dtype: DType) -> str:
    if source == dtype:
        return x
    bits = _AS_BITS.get(code(source), "{}").format(x)
    if code(dtype) in _FROM_BITS:
        return _FROM_BITS[code(dtype)].format(bits)
    return f"({type_of(dtype)}){bits}"


def _ldexp(x: str, exponent: str, dtype: DType, source: DType) -> str:
    if source.itemsize == 8:
        # Far beyond what any number can be scaled by.
        exponent = f"(int)({exponent} < -100000 ? -100000 : {exponent} > 100000 ? 100000 : {exponent})"
    if dtype.char == "e":
        return f"lz_half(ldexpf(lz_single({x}), {exponent}))"
    return f"ldexp{'f' if dtype.char == 'f' else ''}({x}, {exponent})"
