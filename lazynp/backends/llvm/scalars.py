"""Scalar operations as LLVM IR.

In: an operation, dtypes and operand names.  Out: lines of IR that compute NumPy's value.  Promise: nothing undefined or poison reaches
LLVM: integer division and remainder, shifts, float to integer, the absolute value of the minimum, minimum and maximum with NaN are all
guarded here, and an operation that is not in these tables is not ``supported``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from lazynp.backends.llvm import mathlib
from lazynp.backends.llvm.supported import can_be_rendered
from lazynp.graph import op as o
from lazynp.graph.errors import DIVIDE, INVALID, OVER, UNDER, raises
from lazynp.graph.op import Op
from lazynp.values.records import Row

if TYPE_CHECKING:  # what writes code loads no NumPy
    import numpy as np


class Scalar(Row):
    """A dtype as far as text needs it, where there is no NumPy."""

    kind: str
    char: str  # of a floating-point number; else the kind
    itemsize: int


if TYPE_CHECKING:
    DType = np.dtype[Any] | Scalar

FLOAT32: Final = Scalar("f", "f", 4)
FLOAT64: Final = Scalar("f", "d", 8)

FLOATS = {"e": "half", "f": "float", "d": "double"}
FLOAT_BITS = {"half": 16, "float": 32, "double": 64}
SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


def type_of(dtype: DType) -> str:
    """The LLVM type of a scalar; complex numbers are opaque bits, which can be moved and selected."""
    kind = dtype.kind
    if kind == "b":
        return "i1"
    if kind in "iu":
        return f"i{8 * dtype.itemsize}"
    if kind == "f":
        return FLOATS[dtype.char]
    if kind == "c":
        return f"i{8 * dtype.itemsize}"
    raise TypeError(f"no scalar type for {dtype}")


def memory_type(dtype: DType) -> str:
    return "i8" if dtype.kind == "b" else type_of(dtype)


def literal(value: Any, dtype: DType) -> str:
    """A Python number as a constant of ``dtype``."""
    if dtype.kind == "f":
        # float and double constants are both written as the bits of a double
        if value != value:
            return "0xH7E00" if dtype.char == "e" else "0x7FF8000000000000"
        if dtype.char == "e":
            try:
                return f"0xH{int.from_bytes(struct.pack('<e', value), 'little'):04X}"
            except OverflowError:
                return "0xH7C00" if value > 0 else "0xHFC00"
        return f"0x{int.from_bytes(struct.pack('<d', value), 'little'):016X}"
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "u":
        bits = 8 * dtype.itemsize
        value = int(value) & ((1 << bits) - 1)
        if value >> (bits - 1):
            value -= 1 << bits
    return str(int(value))


class Lines:
    """IR text under construction, with fresh temporaries."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.label = "entry"  # of the block at the end
        self.count = 0
        self.intrinsics: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.noted = False
        self.watched = False  # the processor's flags say nothing: results do
        self.underflow = False  # underflow is to be reported
        self.multiplied = False  # roots are made by multiplications

    def temp(self, text: str) -> str:
        name = f"%t{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def emit(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def open(self, label: str) -> None:
        """A block begins."""
        self.lines.append(f"{label}:")
        self.label = label

    def intrinsic(self, name: str, type_: str, *args: str) -> str:
        suffix = SUFFIX.get(type_, type_)
        self.intrinsics.add(f"declare {type_} @llvm.{name}.{suffix}({', '.join([type_] * len(args))})")
        return self.temp(f"call {type_} @llvm.{name}.{suffix}({', '.join(f'{type_} {a}' for a in args)})")

    def library(self, name: str, type_: str, *args: str) -> str:
        kind = SUFFIX[type_]
        self.functions.add((name, kind))
        arguments = ", ".join(f"{type_} {a}" for a in args)
        return self.temp(f"call {type_} @{mathlib.symbol(name, kind)}({arguments}) {mathlib.call_attributes(name, kind)}")

    def note(self, condition: str, error: int) -> None:
        """Note a floating-point error that sets no flag of the processor; the function has a byte ``%noted``."""
        self.noted = True
        bit = self.select(condition, "i8", str(error), "0")
        before = self.temp("load i8, ptr %noted")
        self.emit(f"store i8 {self.temp(f'or i8 {before}, {bit}')}, ptr %noted")

    def watch(self, value: str, type_: str, errors: int) -> None:
        """Note the errors that a result may come from: any for an infinity or NaN, underflow for what is no normal number."""
        kind = f"i{FLOAT_BITS[type_]}"
        infinity = {"half": 0x7C00, "float": 0x7F800000, "double": 0x7FF0000000000000}[type_]
        exponent = self.temp(f"and {kind} {self.temp(f'bitcast {type_} {value} to {kind}')}, {infinity}")
        if errors & ~UNDER:
            self.note(self.temp(f"icmp eq {kind} {exponent}, {infinity}"), errors & ~UNDER)
        if errors & UNDER:
            self.note(self.temp(f"icmp eq {kind} {exponent}, 0"), UNDER)

    def select(self, condition: str, type_: str, a: str, b: str) -> str:
        return self.temp(f"select i1 {condition}, {type_} {a}, {type_} {b}")


Lowering = Callable[[Lines, "DType", str, tuple[str, ...]], str]
"""(lines, dtype of the arguments, its LLVM type, arguments) -> result"""


def _zero(dtype: DType) -> str:
    return literal(0, dtype)


# Arithmetic ----------------------------------------------------------------------------------------------------------


def _binary(integer: str, floating: str, boolean: str = "") -> Lowering:
    def lower(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
        kind = dtype.kind
        word = boolean if kind == "b" else floating if kind == "f" else integer
        return lines.temp(f"{word} {t} {args[0]}, {args[1]}")

    return lower


def _negative(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    if dtype.kind == "f":
        return lines.temp(f"fneg {t} {args[0]}")
    return lines.temp(f"sub {t} 0, {args[0]}")


def _absolute(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    if dtype.kind == "f":
        return lines.intrinsic("fabs", t, args[0])
    if dtype.kind == "i":
        negated = lines.temp(f"sub {t} 0, {args[0]}")
        return lines.select(lines.temp(f"icmp slt {t} {args[0]}, 0"), t, negated, args[0])
    return args[0]


def _sign(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    x = args[0]
    zero, one = _zero(dtype), literal(1, dtype)
    if dtype.kind == "u":
        return lines.select(lines.temp(f"icmp ne {t} {x}, 0"), t, one, zero)
    if dtype.kind == "i":
        low = lines.select(lines.temp(f"icmp slt {t} {x}, 0"), t, "-1", "0")
        return lines.select(lines.temp(f"icmp sgt {t} {x}, 0"), t, "1", low)
    minus = literal(-1, dtype)
    rest = lines.select(lines.temp(f"fcmp oeq {t} {x}, {zero}"), t, zero, x)
    rest = lines.select(lines.temp(f"fcmp olt {t} {x}, {zero}"), t, minus, rest)
    return lines.select(lines.temp(f"fcmp ogt {t} {x}, {zero}"), t, one, rest)


def _safe_divisor(lines: Lines, dtype: DType, t: str, a: str, b: str) -> tuple[str, str, str]:
    """(divisor without the undefined cases, whether b is 0, whether minimum // -1 overflows: it wraps through division by 1)."""
    zero = lines.temp(f"icmp eq {t} {b}, 0")
    lines.note(zero, DIVIDE)
    bad, overflow = zero, ""
    if dtype.kind == "i":
        least = literal(-(1 << (8 * dtype.itemsize - 1)), dtype)
        overflow = lines.temp(
            f"and i1 {lines.temp(f'icmp eq {t} {a}, {least}')}, {lines.temp(f'icmp eq {t} {b}, -1')}"
        )
        bad = lines.temp(f"or i1 {zero}, {overflow}")
    return lines.select(bad, t, "1", b), zero, overflow


def _floor_divide(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    a, b = args
    if dtype.kind == "f":
        return _float_divmod(lines, dtype, t, a, b)[0]
    divisor, zero, overflow = _safe_divisor(lines, dtype, t, a, b)
    if overflow:
        lines.note(overflow, OVER)
    if dtype.kind == "u":
        quotient = lines.temp(f"udiv {t} {a}, {divisor}")
    else:
        quotient = lines.temp(f"sdiv {t} {a}, {divisor}")
        rest = lines.temp(f"sub {t} {a}, {lines.temp(f'mul {t} {quotient}, {divisor}')}")
        inexact = lines.temp(f"icmp ne {t} {rest}, 0")
        differ = lines.temp(f"icmp slt {t} {lines.temp(f'xor {t} {rest}, {divisor}')}, 0")
        down = lines.temp(f"and i1 {inexact}, {differ}")
        quotient = lines.temp(f"sub {t} {quotient}, {lines.temp(f'zext i1 {down} to {t}')}")
    return lines.select(zero, t, "0", quotient)


def _remainder(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    a, b = args
    if dtype.kind == "f":
        return _float_divmod(lines, dtype, t, a, b)[1]
    divisor, zero, _ = _safe_divisor(lines, dtype, t, a, b)
    if dtype.kind == "u":
        rest = lines.temp(f"urem {t} {a}, {divisor}")
    else:
        rest = lines.temp(f"srem {t} {a}, {divisor}")
        inexact = lines.temp(f"icmp ne {t} {rest}, 0")
        differ = lines.temp(f"icmp slt {t} {lines.temp(f'xor {t} {rest}, {divisor}')}, 0")
        up = lines.temp(f"and i1 {inexact}, {differ}")
        rest = lines.select(up, t, lines.temp(f"add {t} {rest}, {divisor}"), rest)
    return lines.select(zero, t, "0", rest)


def _fmod(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    a, b = args
    if dtype.kind == "f":
        return lines.library("fmod", t, a, b)
    divisor, zero, _ = _safe_divisor(lines, dtype, t, a, b)
    rest = lines.temp(f"{'urem' if dtype.kind == 'u' else 'srem'} {t} {a}, {divisor}")
    return lines.select(zero, t, "0", rest)


def _float_divmod(lines: Lines, dtype: DType, t: str, a: str, b: str) -> tuple[str, str]:
    """Python's floor division and remainder, as NumPy's npy_divmod defines them."""
    zero, one = _zero(dtype), literal(1, dtype)
    mod = lines.library("fmod", t, a, b)
    div = lines.temp(f"fdiv {t} {lines.temp(f'fsub {t} {a}, {mod}')}, {b}")
    nonzero = lines.temp(f"fcmp une {t} {mod}, {zero}")
    negative_b = lines.temp(f"fcmp olt {t} {b}, {zero}")
    negative_mod = lines.temp(f"fcmp olt {t} {mod}, {zero}")
    adjust = lines.temp(f"and i1 {nonzero}, {lines.temp(f'xor i1 {negative_b}, {negative_mod}')}")
    adjusted = lines.select(adjust, t, lines.temp(f"fadd {t} {mod}, {b}"), mod)
    signed_zero = lines.intrinsic("copysign", t, zero, b)
    mod_result = lines.select(nonzero, t, adjusted, signed_zero)
    div = lines.select(adjust, t, lines.temp(f"fsub {t} {div}, {one}"), div)
    floor = lines.intrinsic("floor", t, div)
    above = lines.temp(f"fcmp ogt {t} {lines.temp(f'fsub {t} {div}, {floor}')}, {literal(0.5, dtype)}")
    floor = lines.select(above, t, lines.temp(f"fadd {t} {floor}, {one}"), floor)
    true_quotient = lines.temp(f"fdiv {t} {a}, {b}")
    div_result = lines.select(
        lines.temp(f"fcmp une {t} {div}, {zero}"), t, floor, lines.intrinsic("copysign", t, zero, true_quotient)
    )
    by_zero = lines.temp(f"fcmp oeq {t} {b}, {zero}")
    return lines.select(by_zero, t, true_quotient, div_result), lines.select(by_zero, t, mod, mod_result)


# Comparison and selection --------------------------------------------------------------------------------------------


def _compare(signed: str, unsigned: str, floating: str) -> Lowering:
    def lower(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
        kind = dtype.kind
        if kind == "f":
            return lines.temp(f"fcmp {floating} {t} {args[0]}, {args[1]}")
        return lines.temp(f"icmp {signed if kind == 'i' else unsigned} {t} {args[0]}, {args[1]}")

    return lower


def _extremum(floating: str, signed: str, unsigned: str, skip_nan: bool) -> Lowering:
    def lower(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
        a, b = args
        kind = dtype.kind
        if kind != "f":
            word = signed if kind == "i" else unsigned
            return lines.select(lines.temp(f"icmp {word} {t} {a}, {b}"), t, a, b)
        better = lines.temp(f"fcmp {floating} {t} {a}, {b}")
        nan = lines.temp(f"fcmp uno {t} {b if skip_nan else a}, {_zero(dtype)}")
        return lines.select(lines.temp(f"or i1 {better}, {nan}"), t, a, b)

    return lower


def _where(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    return lines.select(args[0], t, args[1], args[2])


# Bits ----------------------------------------------------------------------------------------------------------------


def _invert(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    return lines.temp(f"xor {t} {args[0]}, {'true' if dtype.kind == 'b' else '-1'}")


def _left_shift(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    a, b = args
    fits = lines.temp(f"icmp ult {t} {b}, {8 * dtype.itemsize}")
    return lines.select(fits, t, lines.temp(f"shl {t} {a}, {lines.select(fits, t, b, '0')}"), "0")


def _right_shift(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    a, b = args
    bits = 8 * dtype.itemsize
    fits = lines.temp(f"icmp ult {t} {b}, {bits}")
    if dtype.kind == "i":
        return lines.temp(f"ashr {t} {a}, {lines.select(fits, t, b, str(bits - 1))}")
    return lines.select(fits, t, lines.temp(f"lshr {t} {a}, {lines.select(fits, t, b, '0')}"), "0")


def _bitwise_count(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    count = lines.intrinsic("ctpop", t, _absolute(lines, dtype, t, args))
    return count if t == "i8" else lines.temp(f"trunc {t} {count} to i8")


def _multiply_high(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    bits = 8 * dtype.itemsize
    a, b = [lines.temp(f"zext {t} {x} to i{2 * bits}") for x in args]
    high = lines.temp(f"lshr i{2 * bits} {lines.temp(f'mul i{2 * bits} {a}, {b}')}, {bits}")
    return lines.temp(f"trunc i{2 * bits} {high} to {t}")


# Floating point --------------------------------------------------------------------------------------------------------


def _intrinsic(name: str) -> Lowering:
    def lower(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
        if dtype.kind != "f":
            return args[0]  # rounding an integer
        return lines.intrinsic(name, t, *args)

    return lower


def _math(name: str) -> Lowering:
    def lower(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
        return lines.library(name, t, *args)

    return lower


def _sqrt(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    return lines.library("sqrt", t, *args) if t == "double" and lines.multiplied else lines.intrinsic("sqrt", t, *args)


def _signbit(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    if dtype.kind != "f":
        return lines.temp(f"icmp slt {t} {args[0]}, 0") if dtype.kind == "i" else "false"
    i = f"i{FLOAT_BITS[t]}"
    return lines.temp(f"icmp slt {i} {lines.temp(f'bitcast {t} {args[0]} to {i}')}, 0")


def _isnan(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    return lines.temp(f"fcmp uno {t} {args[0]}, {_zero(dtype)}") if dtype.kind == "f" else "false"


def _isinf(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    if dtype.kind != "f":
        return "false"
    return lines.temp(f"fcmp oeq {t} {lines.intrinsic('fabs', t, args[0])}, {literal(float('inf'), dtype)}")


def _isfinite(lines: Lines, dtype: DType, t: str, args: tuple[str, ...]) -> str:
    if dtype.kind != "f":
        return "true"
    return lines.temp(f"fcmp olt {t} {lines.intrinsic('fabs', t, args[0])}, {literal(float('inf'), dtype)}")


LOWERINGS: dict[Op, Lowering] = {
    o.ADD: _binary("add", "fadd", "or"),
    o.SUBTRACT: _binary("sub", "fsub"),
    o.MULTIPLY: _binary("mul", "fmul", "and"),
    o.DIVIDE: _binary("", "fdiv"),
    o.FLOOR_DIVIDE: _floor_divide,
    o.REMAINDER: _remainder,
    o.FMOD: _fmod,
    o.NEGATIVE: _negative,
    o.ABSOLUTE: _absolute,
    o.SIGN: _sign,
    o.WHERE: _where,
    o.LESS: _compare("slt", "ult", "olt"),
    o.LESS_EQUAL: _compare("sle", "ule", "ole"),
    o.GREATER: _compare("sgt", "ugt", "ogt"),
    o.GREATER_EQUAL: _compare("sge", "uge", "oge"),
    o.EQUAL: _compare("eq", "eq", "oeq"),
    o.NOT_EQUAL: _compare("ne", "ne", "une"),
    o.MAXIMUM: _extremum("ogt", "sgt", "ugt", False),
    o.MINIMUM: _extremum("olt", "slt", "ult", False),
    o.FMAX: _extremum("ogt", "sgt", "ugt", True),
    o.FMIN: _extremum("olt", "slt", "ult", True),
    o.BITWISE_AND: _binary("and", "", "and"),
    o.BITWISE_OR: _binary("or", "", "or"),
    o.BITWISE_XOR: _binary("xor", "", "xor"),
    o.INVERT: _invert,
    o.LEFT_SHIFT: _left_shift,
    o.RIGHT_SHIFT: _right_shift,
    o.BITWISE_COUNT: _bitwise_count,
    o.MULTIPLY_HIGH: _multiply_high,
    o.SQRT: _sqrt,
    o.FLOOR: _intrinsic("floor"),
    o.CEIL: _intrinsic("ceil"),
    o.TRUNC: _intrinsic("trunc"),
    o.RINT: _intrinsic("rint"),
    o.COPYSIGN: _intrinsic("copysign"),
    o.SIGNBIT: _signbit,
    o.ISNAN: _isnan,
    o.ISINF: _isinf,
    o.ISFINITE: _isfinite,
}
MATH: Final = [op for op in o.ALL if op.name in mathlib.FUNCTIONS and op not in LOWERINGS]
LOWERINGS |= {op: _math(op.name) for op in (*MATH, *o.SPECIAL)}

# Of two zeros of unlike sign NumPy's loops take the second one, except those for float16.
HALF_LOWERINGS: dict[Op, Lowering] = {
    o.MAXIMUM: _extremum("oge", "", "", False),
    o.MINIMUM: _extremum("ole", "", "", False),
    o.FMAX: _extremum("oge", "", "", True),
    o.FMIN: _extremum("ole", "", "", True),
}


def supported(op: Op, dtype: DType, sources: Sequence[DType]) -> bool:
    """Tell whether ``op`` on scalars of these dtypes has a lowering."""
    return can_be_rendered(op, dtype, tuple(sources))


# Their functions return zero without the flag, which would cost those something who do not care.
VANISHING: Final = frozenset([o.EXP, o.EXP2, o.POWER])


def compute(lines: Lines, op: Op, dtype: DType, args: tuple[str, ...], source: DType) -> str:
    """One operation; ``source`` is the dtype of its (last) argument."""
    result = _compute(lines, op, dtype, args, source)
    if dtype.kind == "f":
        errors = raises(op, dtype, source) if lines.watched else UNDER if lines.underflow and op in VANISHING else 0
        if errors:
            lines.watch(result, type_of(dtype), errors)
    return result


def _compute(lines: Lines, op: Op, dtype: DType, args: tuple[str, ...], source: DType) -> str:
    if op is o.CAST:
        return cast(lines, args[0], source, dtype)
    if op is o.BITCAST:
        a, b = type_of(source), type_of(dtype)
        return args[0] if a == b else lines.temp(f"bitcast {a} {args[0]} to {b}")
    if source.char == "e" and op not in (o.WHERE, o.SIGNBIT, o.NEGATIVE, o.ABSOLUTE):
        # float16 rounds after every operation
        widened = tuple([lines.temp(f"fpext half {a} to float") for a in args])
        result = HALF_LOWERINGS.get(op, LOWERINGS[op])(lines, FLOAT32, "float", widened)
        return lines.temp(f"fptrunc float {result} to half") if dtype.char == "e" else result
    return LOWERINGS[op](lines, source, type_of(source), args)


# Conversion ------------------------------------------------------------------------------------------------------------


def cast(lines: Lines, x: str, source: DType, dtype: DType) -> str:
    """NumPy's unsafe casting between real dtypes."""
    if source == dtype:
        return x
    a, b = type_of(source), type_of(dtype)
    from_kind, to_kind = source.kind, dtype.kind
    if to_kind == "b":
        if from_kind == "f":
            return lines.temp(f"fcmp une {a} {x}, {_zero(source)}")
        return lines.temp(f"icmp ne {a} {x}, 0")
    if from_kind == "f":
        if to_kind == "f":
            return _float_to_float(lines, x, a, b)
        return _float_to_integer(lines, x, a, dtype)
    if to_kind == "f":
        word = "sitofp" if from_kind == "i" else "uitofp"
        if b == "half":
            single = lines.temp(f"{word} {a} {x} to float")
            return lines.temp(f"fptrunc float {single} to half")
        return lines.temp(f"{word} {a} {x} to {b}")
    if a == b:
        return x
    wider = dtype.itemsize > source.itemsize or from_kind == "b"
    word = ("sext" if from_kind == "i" else "zext") if wider else "trunc"
    return lines.temp(f"{word} {a} {x} to {b}")


def _float_to_float(lines: Lines, x: str, a: str, b: str) -> str:
    if FLOAT_BITS[b] > FLOAT_BITS[a]:
        return lines.temp(f"fpext {a} {x} to {b}")
    if (a, b) != ("double", "half"):
        return lines.temp(f"fptrunc {a} {x} to {b}")
    # Round to odd in single precision first, so that the second rounding cannot undo the first.
    single = lines.temp(f"fptrunc double {x} to float")
    back = lines.temp(f"fpext float {single} to double")
    inexact = lines.temp(f"fcmp one double {back}, {x}")
    larger = lines.temp(f"fcmp ogt double {lines.intrinsic('fabs', 'double', back)}, {lines.intrinsic('fabs', 'double', x)}")
    bits = lines.temp(f"bitcast float {single} to i32")
    toward_zero = lines.temp(f"sub i32 {bits}, {lines.temp(f'zext i1 {larger} to i32')}")
    odd = lines.temp(f"or i32 {toward_zero}, 1")
    chosen = lines.select(inexact, "i32", odd, bits)
    return lines.temp(f"fptrunc float {lines.temp(f'bitcast i32 {chosen} to float')} to half")


def _float_to_integer(lines: Lines, x: str, a: str, dtype: DType) -> str:
    """Convert as the instructions of the processors do that NumPy runs on: the minimum of the instruction's type where it does not fit."""
    if a == "half":
        x, a = lines.temp(f"fpext half {x} to float"), "float"
    floating = FLOAT32 if a == "float" else FLOAT64
    b = type_of(dtype)
    if dtype.kind == "u" and dtype.itemsize == 8:
        top = literal(2.0**63, floating)
        large = lines.temp(f"fcmp oge {a} {x}, {top}")
        shifted = lines.select(large, a, lines.temp(f"fsub {a} {x}, {top}"), x)
        low = _guarded_fptosi(lines, shifted, a, floating, 64)
        return lines.select(large, "i64", lines.temp(f"xor i64 {low}, {-(2**63)}"), low)
    if dtype.kind == "u" and dtype.itemsize == 4:
        wide = _guarded_fptosi(lines, x, a, floating, 64)
        return lines.temp(f"trunc i64 {wide} to i32")
    width = 64 if dtype.itemsize == 8 else 32
    whole = _guarded_fptosi(lines, x, a, floating, width)
    return whole if b == f"i{width}" else lines.temp(f"trunc i{width} {whole} to {b}")


def _guarded_fptosi(lines: Lines, x: str, a: str, floating: DType, width: int) -> str:
    least = -(2 ** (width - 1))
    # 2**31 and 2**63 are exact; the float just below -2**31 - 1 + ulp still truncates to -2**31 in double.
    low = literal(float(least) - 1.0, floating) if width == 32 and a == "double" else literal(float(least), floating)
    word = "ogt" if width == 32 and a == "double" else "oge"
    above = lines.temp(f"fcmp {word} {a} {x}, {low}")
    below = lines.temp(f"fcmp olt {a} {x}, {literal(-float(least), floating)}")
    fits = lines.temp(f"and i1 {above}, {below}")
    lines.note(lines.temp(f"xor i1 {fits}, true"), INVALID)
    whole = lines.temp(f"fptosi {a} {lines.select(fits, a, x, _zero(floating))} to i{width}")
    return lines.select(fits, f"i{width}", whole, str(least))
