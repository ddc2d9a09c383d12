"""Mathematical functions for generated kernels.

In: the functions that a kernel calls, as (name, type) pairs.  Out: LLVM IR that defines them, and the attributes for their call
sites with which LLVM's loop vectoriser uses their vector variants at whatever width it picks.  Promise: the bits of an element
never depend on where it stands: the scalar function and the variants of all widths call one and the same vector function of
the C library (libmvec), with lanes that were not asked for filled with a harmless value.

A kernel calls ``double @lz_exp_f64(double)`` (or ``float @lz_exp_f32(float)``), its call site carries ``call_attributes("exp", "f64")``.
Where ``polynomials/functions.py`` has a better function, that one is inlined into the loop instead and needs no variants; a
partial one (sin, cos, tan) takes the place of libmvec's, and leaves elements beyond its limit to the C library's scalar function.  Both
keep the same promise.  Where there is neither that nor libmvec, the function is the C library's scalar one.

Largest errors seen, in units of the last place, as double/float: polynomials, glibc 2.36's libmvec (the worst of its AVX-512, AVX2 and
SSE functions) and scalar libm, over about 10^6 arguments from the whole range per function and type (float exp, log, log10, sin, cos,
tan and arcsin of the libraries: every float between 2^-6 and 32).  None misses a NaN, an infinity, the sign of a zero or a
floating-point flag.

=======  =======  =======  =======  =======  =======  =======  =======  =======  =======  =======  =======
.        poly     libmvec  libm     .        poly     libmvec  libm     .        poly     libmvec  libm
=======  =======  =======  =======  =======  =======  =======  =======  =======  =======  =======  =======
exp      1.1/1.1  2.9/3.0  0.6/0.6  cos      0.8/-    3.4/2.1  0.6/0.6  tanh     2.5/2.4  2.2/1.4  2.1/2.1
exp2     1.2/1.1  1.7/1.1  0.6/0.6  tan      1.1/-    3.4/4.0  0.6/1.4  arcsinh  -        2.1/2.1  1.7/1.6
expm1    2.2/1.7  3.0/2.3  0.9/0.8  arcsin   -        2.7/3.2  0.6/0.9  arccosh  -        2.5/2.9  1.9/1.9
log      0.9/0.9  1.6/4.0  0.6/0.9  arccos   -        2.0/2.4  0.6/0.9  arctanh  -        2.0/2.1  1.5/1.6
log2     1.0/1.0  1.9/2.3  0.6/0.8  arctan   -        2.4/2.7  0.6/0.9  cbrt     -        2.6/2.9  3.1/1.0
log10    0.9/0.9  2.0/3.5  1.6/2.1  arctan2  -        2.3/3.3  0.6/1.4  hypot    -        1.9/1.4  0.8/0.6
log1p    1.2/1.5  1.9/1.9  0.9/0.8  sinh     2.5/2.1  2.0/1.9  1.8/1.9  power    1.6/0.6  1.0/0.7  0.6/0.8
sin      0.8/-    3.2/2.1  0.6/0.6  cosh     1.5/1.5  2.0/2.1  1.6/1.8  fmod     -        exact    exact
=======  =======  =======  =======  =======  =======  =======  =======  =======  =======  =======  =======

A dash: there is none.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
import sys
from collections.abc import Iterable
from typing import Any, Final

from lazynp.backends.llvm import roots
from lazynp.backends.llvm.host import VectorABI, vector_abi, vector_bits
from lazynp.graph import op as o
from lazynp.values import loading
from lazynp.values.records import Row


class Function(Row):
    """One function of the C library: its name there, and what fills the lanes that are not wanted."""

    c_name: str
    arity: int
    padding: float  # a value for which the function is finite and raises no floating-point flag
    # Where libmvec's function is slow and raises flags without reason: below this (f64, f32) the result is 0.
    vanishes: tuple[float, float] | None


_PADDING: Final = {o.EXP: 0.0, o.ARCSIN: 0.5, o.ARCCOS: 0.5, o.ARCCOSH: 2.0, o.ARCTANH: 0.5}
_VANISHES: Final = {o.EXP: (-746.0, -104.0)}
# Instructions of LLVM's, and what is left to the NumPy tier.
_NOT_CALLED: Final = frozenset([o.ABSOLUTE, o.SQRT, o.FLOOR, o.CEIL, o.TRUNC, o.RINT, o.COPYSIGN, o.NEXTAFTER, o.LDEXP])

FUNCTIONS: Final[dict[str, Function]] = {
    op.name: Function(op.c_name, op.arity or 0, _PADDING.get(op, 1.0), _VANISHES.get(op))
    for op in o.ALL
    if op.c_name and op not in _NOT_CALLED
}
_NAMES: Final = [*FUNCTIONS, *sorted(op.name for op in o.SPECIAL), roots.NAME]
NUMBERS: Final = {name: 900 + 2 * i for i, name in enumerate(_NAMES)}  # of attribute groups; kernels use lower ones
BITS: Final = {"f64": 64, "f32": 32}
IR_TYPE: Final = {"f64": "double", "f32": "float"}
WIDTHS: Final = {"f64": (2, 4, 8, 16), "f32": (2, 4, 8, 16)}
PURE: Final = "nounwind willreturn memory(none)"


def prelude(needed: Iterable[tuple[str, str]]) -> str:
    """Return the IR that defines the needed functions and the attribute groups of their call sites.

    Parameters
    ----------
    needed : iterable of (str, str)
        Names of ``FUNCTIONS``, each with ``"f64"`` or ``"f32"``.
    """
    abi = vector_abi()
    return "".join(_definition(name, kind, abi) for name, kind in sorted(set(needed)))


def symbol(name: str, kind: str) -> str:
    """Return the name of the scalar function that kernels call."""
    return f"lz_{name}_{kind}"


def call_attributes(name: str, kind: str) -> str:
    """Return the attribute group for the call sites of a function, as ``#900``; ``prelude`` defines it."""
    return f"#{NUMBERS[name] + (kind == 'f32')}"


def vector_symbol(name: str, kind: str, abi: VectorABI) -> str:
    """Return libmvec's name for the vector function: ``_ZGVeN8v_exp``."""
    function = FUNCTIONS[name]
    suffix = "f" if kind == "f32" else ""
    return f"_ZGV{abi.letter}N{abi.bits // BITS[kind]}{'v' * function.arity}_{function.c_name}{suffix}"


def c_symbol(name: str, kind: str) -> str:
    """Return the name under which the C library's scalar function is linked: unknown to LLVM, so that it is never rewritten."""
    return f"lzc_{FUNCTIONS[name].c_name}{'f' if kind == 'f32' else ''}"


@functools.cache
def _libraries() -> tuple[ctypes.CDLL | None, ctypes.CDLL | None]:
    def load(name: str | None) -> ctypes.CDLL | None:
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            return None

    if sys.platform == "win32":
        return load("ucrtbase") or load("msvcrt"), None
    libm = load("libm.so.6" if sys.platform == "linux" else None)
    if libm is None:
        libm = load(loading.load("ctypes.util").find_library("m"))  # dear, for it brings subprocess along
    return libm, load("libmvec.so.1") if sys.platform == "linux" else None


@functools.cache
def address(linked_name: str) -> int | None:
    """Return the address of a function that generated code calls, None when it does not exist here."""
    libm, libmvec = _libraries()
    library, name = (libmvec, linked_name) if linked_name.startswith("_ZGV") else (libm, linked_name.removeprefix("lzc_"))
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value if library else None
    except AttributeError:
        return None


def _is_vector(name: str, kind: str, abi: VectorABI | None) -> bool:
    return abi is not None and address(vector_symbol(name, kind, abi)) is not None


def _bits(value: float, kind: str) -> int:
    """Return a float's bits as an unsigned integer."""
    return int.from_bytes(struct.pack("<d" if kind == "f64" else "<f", value), "little")


def _constant(value: float, kind: str) -> str:
    # LLVM writes a float constant as the double of the same value.
    if kind == "f32":
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    return f"0x{_bits(value, 'f64'):016X}"


def _polynomials() -> Any:
    return loading.load("lazynp.backends.llvm.polynomials.functions")  # for programs that want a function


def _definition(name: str, kind: str, abi: VectorABI | None) -> str:
    element, scalar, group = IR_TYPE[kind], symbol(name, kind), call_attributes(name, kind)
    if name == roots.NAME:
        return roots.definition(group)
    if name not in FUNCTIONS:
        special = loading.load("lazynp.backends.llvm.polynomials.special")  # few programs want one
        head = f"define internal {element} @{scalar}({element} %x0) alwaysinline {PURE}"
        return f"{special.definition(name, kind, head, _polynomials().fused())}attributes {group} = {{ {PURE} }}\n"
    function = FUNCTIONS[name]
    parameters = ", ".join(f"{element} %x{i}" for i in range(function.arity))
    native = _native(name, kind, abi)
    if native is None:
        head = f"define internal {element} @{scalar}({parameters}) alwaysinline {PURE}"
        inlined = _polynomials().wanted(name, kind, False)
        text = _polynomials().definition(name, kind, head, function.arity) if inlined else _scalar_definition(name, kind, head)
        return f"{text}attributes {group} = {{ {PURE} }}\n"
    vector = f"<{native.lanes} x {element}>"
    out = [native.text]
    out.extend(_variant(name, kind, native, width) for width in WIDTHS[kind])
    lines = [
        f"  %v{i} = insertelement {vector} {_splat(function.padding, kind, native.lanes)}, {element} %x{i}, i32 0\n"
        for i in range(function.arity)
    ]
    result = _native_call(lines, name, kind, native, [f"%v{i}" for i in range(function.arity)], "r")
    out.append(
        f"define internal {element} @{scalar}({parameters}) noinline {PURE} {{\n{''.join(lines)}"
        f"  %first = extractelement {vector} {result}, i32 0\n  ret {element} %first\n}}\n"
    )
    mapping = ",".join(f"_ZGV_LLVM_N{width}{'v' * function.arity}_{scalar}({scalar}_v{width})" for width in WIDTHS[kind])
    out.append(f'attributes {group} = {{ {PURE} "vector-function-abi-variant"="{mapping}" }}\n')
    return "".join(out)


class _Native(Row):
    """The function of one width of vectors that all others call."""

    symbol: str
    convention: str
    lanes: int
    text: str  # that declares or defines it


def _native(name: str, kind: str, abi: VectorABI | None) -> _Native | None:
    """None where the scalar function stands for itself."""
    library = _is_vector(name, kind, abi)
    if _polynomials().wanted(name, kind, library):
        return _partial(name, kind) if _polynomials().FUNCTIONS[name].partial else None
    if not library or abi is None:
        return None
    lanes, linked = abi.bits // BITS[kind], vector_symbol(name, kind, abi)
    vector = f"<{lanes} x {IR_TYPE[kind]}>"
    declaration = f"declare {abi.convention}{vector} @{linked}({', '.join([vector] * FUNCTIONS[name].arity)}) {PURE}\n"
    return _Native(linked, abi.convention, lanes, declaration)


def _partial(name: str, kind: str) -> _Native:
    """A polynomial and, for elements beyond its limit, the C library's scalar function: a branch that is seldom taken."""
    arity, element, linked = FUNCTIONS[name].arity, IR_TYPE[kind], c_symbol(name, kind)
    lanes, native = vector_bits() // BITS[kind], f"{symbol(name, kind)}_native"
    vector = f"<{lanes} x {element}>"
    parameters = ", ".join(f"{vector} %x{i}" for i in range(arity))
    lines, near, far = _polynomials().partial(name, kind, arity, lanes)
    lines.append(f"  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {far})\n")
    lines.append("  br i1 %any, label %beyond, label %done\nbeyond:\n")
    others = "poison"
    for lane in range(lanes):
        lines += [f"  %a{lane}.{i} = extractelement {vector} %x{i}, i32 {lane}\n" for i in range(arity)]
        arguments = ", ".join(f"{element} %a{lane}.{i}" for i in range(arity))
        lines.append(f"  %e{lane} = call {element} @{linked}({arguments}) {PURE}\n")
        lines.append(f"  %o{lane} = insertelement {vector} {others}, {element} %e{lane}, i32 {lane}\n")
        others = f"%o{lane}"
    lines.append(f"  %mixed = select <{lanes} x i1> {far}, {vector} {others}, {vector} {near}\n  br label %done\ndone:\n")
    lines.append(f"  %result = phi {vector} [ {near}, %entry ], [ %mixed, %beyond ]\n  ret {vector} %result\n}}\n")
    text = (
        f"declare {element} @{linked}({', '.join([element] * arity)}) {PURE}\n"
        f"define internal {vector} @{native}({parameters}) noinline {PURE} {{\nentry:\n{''.join(lines)}"
    )
    return _Native(native, "", lanes, text)


def _scalar_definition(name: str, kind: str, head: str) -> str:
    """Define a function by the C library's; in double where it has none for float, as on Windows."""
    function, element = FUNCTIONS[name], IR_TYPE[kind]
    through = "f64" if kind == "f32" and address(c_symbol(name, kind)) is None else kind
    inner, linked = IR_TYPE[through], c_symbol(name, through)
    lines, arguments, result = [], [f"{inner} %x{i}" for i in range(function.arity)], "%r"
    if through != kind:
        lines = [f"  %w{i} = fpext {element} %x{i} to {inner}\n" for i in range(function.arity)]
        arguments = [f"{inner} %w{i}" for i in range(function.arity)]
    lines.append(f"  %r = call {inner} @{linked}({', '.join(arguments)}) {PURE}\n")
    if through != kind:
        lines.append(f"  %n = fptrunc {inner} %r to {element}\n")
        result = "%n"
    return (
        f"declare {inner} @{linked}({', '.join([inner] * function.arity)}) {PURE}\n"
        f"{head} {{\n{''.join(lines)}  ret {element} {result}\n}}\n"
    )


def _native_call(lines: list[str], name: str, kind: str, native: _Native, arguments: list[str], result: str) -> str:
    """Call the native function, mending what libmvec's does not do well; return the result's name."""
    function, element, lanes = FUNCTIONS[name], IR_TYPE[kind], native.lanes
    vector = f"<{lanes} x {element}>"
    if function.vanishes is None:
        passed = ", ".join(f"{vector} {argument}" for argument in arguments)
        lines.append(f"  %{result} = call {native.convention}{vector} @{native.symbol}({passed}) {PURE}\n")
        return f"%{result}"
    (argument,) = arguments
    # The bits are compared, as one unsigned range that ends at minus infinity: comparing floats raises a flag for NaN.
    bits = BITS[kind]
    integers = f"<{lanes} x i{bits}>"
    limit, infinity = (_bits(value, kind) for value in (function.vanishes[kind == "f32"], -math.inf))
    start, length = (f"<{', '.join([f'i{bits} {n}'] * lanes)}>" for n in (limit, infinity - limit + 1))
    zero = _splat(0.0, kind, lanes)
    lines.append(
        f"  %{result}b = bitcast {vector} {argument} to {integers}\n"
        f"  %{result}d = sub {integers} %{result}b, {start}\n"
        f"  %{result}z = icmp ult {integers} %{result}d, {length}\n"
        f"  %{result}y = select <{lanes} x i1> %{result}z, {vector} {zero}, {vector} {argument}\n"
        f"  %{result}c = call {native.convention}{vector} @{native.symbol}({vector} %{result}y) {PURE}\n"
        f"  %{result} = select <{lanes} x i1> %{result}z, {vector} {zero}, {vector} %{result}c\n"
    )
    return f"%{result}"


def _splat(value: float, kind: str, lanes: int) -> str:
    return f"<{', '.join([f'{IR_TYPE[kind]} {_constant(value, kind)}'] * lanes)}>"


def _shuffle(lines: list[str], result: str, kind: str, size: int, left: str, right: str, indices: Iterable[int]) -> str:
    """Take elements of two vectors of one size."""
    vector, mask = f"<{size} x {IR_TYPE[kind]}>", [f"i32 {i}" for i in indices]
    lines.append(f"  %{result} = shufflevector {vector} {left}, {vector} {right}, <{len(mask)} x i32> <{', '.join(mask)}>\n")
    return f"%{result}"


def _variant(name: str, kind: str, native: _Native, width: int) -> str:
    """Define the variant of one width by calls of the native function, splitting or padding its vectors."""
    function, lanes = FUNCTIONS[name], native.lanes
    fill = _splat(function.padding, kind, width)
    lines: list[str] = []
    results: list[str] = []
    for part in range(max(1, width // lanes)):
        arguments = [f"%x{i}" for i in range(function.arity)]
        if width > lanes:
            taken = range(part * lanes, (part + 1) * lanes)
            arguments = [_shuffle(lines, f"p{part}_{i}", kind, width, x, "poison", taken) for i, x in enumerate(arguments)]
        elif width < lanes:
            # Index `width` is the first element of the second vector, the harmless value.
            taken_or_fill = [min(k, width) for k in range(lanes)]
            arguments = [_shuffle(lines, f"p{part}_{i}", kind, width, x, fill, taken_or_fill) for i, x in enumerate(arguments)]
        results.append(_native_call(lines, name, kind, native, arguments, f"r{part}"))
    if width < lanes:
        results = [_shuffle(lines, "s", kind, lanes, results[0], "poison", range(width))]
    size = lanes
    while len(results) > 1:
        pairs = list(zip(results[::2], results[1::2], strict=True))
        results = [_shuffle(lines, f"j{size}_{k}", kind, size, a, b, range(2 * size)) for k, (a, b) in enumerate(pairs)]
        size *= 2
    mine = f"<{width} x {IR_TYPE[kind]}>"
    parameters = ", ".join(f"{mine} %x{i}" for i in range(function.arity))
    return (
        f"define {mine} @{symbol(name, kind)}_v{width}({parameters}) alwaysinline {PURE} {{\n"
        f"{''.join(lines)}  ret {mine} {results[0]}\n}}\n"
    )
