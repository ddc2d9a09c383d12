"""Square roots of vectors by multiplications, with the bits of the instruction.

In: nothing but the machine.  Out: LLVM IR that defines ``double @lz_sqrt_f64(double)`` and its vector variants.  Promise: IEEE's square
root, correctly rounded, and its floating-point flags.

It pays where that unit has much to do beside what multiplies and adds (``pays``): of one root among two sines it does not.

A processor has one unit that divides and takes roots, and it takes a new vector every 16 to 30 cycles; those that multiply and add take two
every cycle.  So a root of eight doubles is an approximation of 14 bits (AVX-512's ``vrsqrt14pd``), refined by fused multiply-adds: 2.6
times as fast by itself, and while quotients occupy the other unit, for nothing.

Why it is rounded correctly: before its last step g = sqrt(x) (1 + a), h = (1 + b) / (2 sqrt(x)) with |a|, |b| below 2**-50.5, for
each of their last three roundings contributes 2**-53, and what the approximation leaves, after steps of third and of second order, is
below 2**-80.  The last step rounds g + h (x - g g) once, whose distance from sqrt(x), in units of sqrt(x), is below
a**2 / 2 + |a b| + 2**-53 |a| < 2**-100.  A root closer than that to the middle between two neighbours m / 2**k, m odd of 54 bits,
has an argument (m**2 - d) / 4**k with |d| < 2**9.  Of each d there are four such at most, and ``test_roots.py`` tries them all, and
those of larger d.  Between 2**-767 and 2**769 nothing overflows or vanishes on the way; a vector with an element beyond (zero, negative,
infinite, NaN) is left to the instruction.
"""

from __future__ import annotations

import functools
from typing import Final

from lazynp.backends.llvm.host import host
from lazynp.backends.llvm.polynomials.code import DOUBLE, Code, Value

NAME: Final = "sqrt"
SYMBOL: Final = "lz_sqrt_f64"
LANES: Final = 8  # of a vector of AVX-512
_WIDTHS: Final = (2, 4, 8, 16)
_LEAST: Final = 0x100 << 52  # 2**-767
_RANGE: Final = 0x600 << 52  # up to 2**769
_PURE: Final = "nounwind willreturn memory(none)"


@functools.cache
def available() -> bool:
    """Tell whether this machine approximates reciprocals of roots of doubles."""
    return host().has("avx512f")


def pays(others: int, quotients: int, roots: int) -> bool:
    """Tell whether roots are to be made by multiplications in a loop with so many of each; ``others`` in additions.

    In cycles, which were measured, of vectors: two additions or multiplications take one, if nothing waits for anything, and 14 are a root.
    """
    return roots > 0 and available() and 5 * (others + 14 * roots) < 8 * (16 * quotients + 20 * roots)


def definition(group: str) -> str:
    """Return the functions, and ``group``, the attributes of calls of the scalar one."""
    mapping = ",".join(f"_ZGV_LLVM_N{width}v_{SYMBOL}({SYMBOL}_v{width})" for width in _WIDTHS)
    return (
        _by_instruction("double", SYMBOL, "f64", "noinline", "internal ")
        + "".join(_by_instruction(f"<{width} x double>", f"{SYMBOL}_v{width}", f"v{width}f64") for width in _WIDTHS if width < LANES)
        + _by_multiplication()
        + _by_halves()
        + f'attributes {group} = {{ {_PURE} "vector-function-abi-variant"="{mapping}" }}\n'
        + '!4 = !{!"branch_weights", i32 1, i32 1000}\n'
    )


def _by_instruction(type_: str, symbol: str, overload: str, how: str = "alwaysinline", linkage: str = "") -> str:
    root = f"  %r = call {type_} @llvm.sqrt.{overload}({type_} %x)\n  ret {type_} %r\n"
    return f"define {linkage}{type_} @{symbol}({type_} %x) {how} {_PURE} {{\n{root}}}\n"


def _by_multiplication() -> str:
    """The variant of ``LANES`` doubles."""
    code = Code(DOUBLE, LANES)
    vector, lanes = code.element, LANES
    bits = code.emit(f"bitcast {vector} %x to {code.integer}")
    above = code.emit(f"sub {code.integer} {bits}, {code.integer_operand(_LEAST)}")
    beyond = code.emit(f"icmp ugt {code.integer} {above}, {code.integer_operand(_RANGE)}")
    any_ = code.emit(f"call i1 @llvm.vector.reduce.or.v{lanes}i1({code.bool} {beyond})")
    code.lines.append(f"  br i1 {any_}, label %instruction, label %multiply, !prof !4\nmultiply:\n")
    root = _refined(code, code.emit(f"call {vector} @llvm.x86.avx512.rsqrt14.pd.512({vector} %x, {vector} zeroinitializer, i8 -1)"))
    code.lines.append("  br label %done\ninstruction:\n")
    other = code.emit(f"call {vector} @llvm.sqrt.v{lanes}f64({vector} %x)")
    code.lines.append("  br label %done\ndone:\n")
    both = code.emit(f"phi {vector} [ {root}, %multiply ], [ {other}, %instruction ]")
    body = f"entry:\n{''.join(code.lines)}  ret {vector} {both}\n"
    return f"define {vector} @{SYMBOL}_v{lanes}({vector} %x) alwaysinline {_PURE} {{\n{body}}}\n"


def _refined(code: Code, reciprocal: Value) -> Value:
    """The root of ``%x``, of an approximation of its reciprocal: g comes to be the root, h half its reciprocal."""
    g, h = code.mul("%x", reciprocal), code.mul(reciprocal, 0.5)
    off = code.fma(code.neg(g), h, 0.5)
    step = code.mul(code.fma(off, 1.5, 1.0), off)
    g, h = code.fma(g, step, g), code.fma(h, step, h)
    off = code.fma(code.neg(g), h, 0.5)
    g, h = code.fma(g, off, g), code.fma(h, off, h)
    return code.fma(code.fma(code.neg(g), g, "%x"), h, g)


def _by_halves() -> str:
    """The variant of twice ``LANES`` doubles."""
    part, whole = f"<{LANES} x double>", f"<{2 * LANES} x double>"
    lines, roots = [], []
    for half in (0, 1):
        mask = ", ".join(f"i32 {half * LANES + lane}" for lane in range(LANES))
        lines.append(f"  %p{half} = shufflevector {whole} %x, {whole} poison, <{LANES} x i32> <{mask}>\n")
        lines.append(f"  %r{half} = call {part} @{SYMBOL}_v{LANES}({part} %p{half})\n")
        roots.append(f"{part} %r{half}")
    mask = ", ".join(f"i32 {lane}" for lane in range(2 * LANES))
    lines.append(f"  %r = shufflevector {', '.join(roots)}, <{2 * LANES} x i32> <{mask}>\n  ret {whole} %r\n")
    return f"define {whole} @{SYMBOL}_v{2 * LANES}({whole} %x) alwaysinline {_PURE} {{\n{''.join(lines)}}}\n"
