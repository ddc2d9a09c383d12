"""A writer of C for the bodies of mathematical functions, from the definitions that LLVM IR is written from.

In: the algorithms of this package, called with a writer of C.  Out: the text of a header: for each function and type one of a number,
without a branch, and a loop over it that a C compiler vectorises.  Promise: operation by operation the same as the IR, so that the core
has the kernels' bits without LLVM (products and sums must not be contracted: ``-ffp-contract=off``).

The header is written where the core is built; nothing of this module is needed afterwards, and it imports nothing but its neighbours.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final

from lazynp.backends.llvm.polynomials import exponential, logarithm, power, trigonometric
from lazynp.backends.llvm.polynomials.code import DOUBLE, FORMATS, Code, Format, Operand, Value

# The functions that kernels take from here whatever the C library has (``preferred`` of this package's table), and for which types.
WRITTEN: Final[dict[str, tuple[Callable[..., Value], str]]] = {
    "exp": (exponential.exp, "f64 f32"),
    "exp2": (exponential.exp2, "f64 f32"),
    "expm1": (exponential.expm1, "f64 f32"),
    "tanh": (exponential.tanh, "f64 f32"),
    "sinh": (exponential.sinh, "f64"),
    "cosh": (exponential.cosh, "f64 f32"),
    "log": (logarithm.log, "f64 f32"),
    "log1p": (logarithm.log1p, "f32"),
    "power": (power.power, "f64 f32"),
}
OF_TWO: Final = ("power",)
PARTIAL: Final = {"sin": trigonometric.sin, "cos": trigonometric.cos, "tan": trigonometric.tan}  # of doubles; C's beyond their limit
_WORDS: Final = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>"}
_COMPARED: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class CCode(Code):
    """The body of one function of a number."""

    def __init__(self, format_: Format, masks: bool = False) -> None:
        super().__init__(format_)
        self.masks = masks  # choices are made of bits: of many, one after the other, compilers make branches, and then no vectors
        self.unsigned = f"uint{format_.bits}_t"
        self.signed = f"int{format_.bits}_t"
        self.suffix = "" if format_.bits == 64 else "f"

    def declare(self, kind: str, text: str) -> Value:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    const {kind} {name} = {text};\n")
        return name

    def operand(self, x: Operand) -> str:
        if isinstance(x, str):
            return x
        if math.isnan(x):
            return f'__builtin_nan{self.suffix}("")'
        if math.isinf(x):
            return f"{'-' if x < 0 else ''}__builtin_inf{self.suffix}()"
        value = struct.unpack("<f", struct.pack("<f", x))[0] if self.format.bits == 32 else x
        return f"({float.hex(value)}{self.suffix})"

    def integer_operand(self, x: Value | int) -> str:
        if isinstance(x, str):
            return x
        return f"({self.unsigned})0x{x & (1 << self.format.bits) - 1:x}u{'ll' * (self.format.bits == 64)}"

    def widened(self) -> CCode:
        wide = CCode(DOUBLE, self.masks)
        wide.lines = self.lines
        return wide

    def extended(self, x: Value) -> Value:
        return self.declare("double", f"(double){x}")

    def truncated(self, x: Value) -> Value:
        return self.declare("float", f"(float){x}")

    def _binary(self, word: str, a: Operand, b: Operand) -> Value:
        sign = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}[word]
        return self.declare(self.element, f"{self.operand(a)} {sign} {self.operand(b)}")

    def neg(self, a: Value) -> Value:
        return self.declare(self.element, f"-{a}")

    def call(self, intrinsic: str, *args: Operand) -> Value:
        return self.declare(self.element, f"__builtin_{intrinsic}{self.suffix}({', '.join(map(self.operand, args))})")

    def bits(self, x: Value) -> Value:
        return self.declare(self.unsigned, f"bits_of_{self.element}({x})")

    def number(self, bits: Value) -> Value:
        return self.declare(self.element, f"{self.element}_of_bits({bits})")

    def word(self, operation: str, a: Value | int, b: Value | int) -> Value:
        return self.declare(self.unsigned, f"{self.integer_operand(a)} {_WORDS[operation]} {self.integer_operand(b)}")

    def call_word(self, intrinsic: str, *args: Value | int) -> Value:
        kind = self.signed if intrinsic[0] == "s" else self.unsigned
        a, b = [f"({kind}){self.integer_operand(x)}" for x in args]
        return self.declare(self.unsigned, f"({self.unsigned})({a} {'<' if intrinsic.endswith('min') else '>'} {b} ? {a} : {b})")

    def compare(self, predicate: str, a: Value | int, b: Value | int) -> Value:
        kind = self.signed if predicate[0] == "s" else self.unsigned
        sign = _COMPARED[predicate.lstrip("us")]
        return self.declare("int", f"({kind}){self.integer_operand(a)} {sign} ({kind}){self.integer_operand(b)}")

    def equal(self, a: Operand, b: Operand) -> Value:
        return self.declare("int", f"{self.operand(a)} == {self.operand(b)}")

    def unordered(self, a: Operand, b: Operand) -> Value:
        return self.declare("int", f"__builtin_isunordered({self.operand(a)}, {self.operand(b)})")

    def logic(self, operation: str, a: Value, b: Value | bool) -> Value:
        return self.declare("int", f"{a} {_WORDS[operation]} {int(b) if isinstance(b, bool) else b}")

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        if not self.masks:
            return self.declare(self.element, f"{condition} ? {self.operand(a)} : {self.operand(b)}")
        mask = self.declare(self.unsigned, f"-({self.unsigned}){condition}")
        chosen = [self.word("and", self.bits(self.operand(x)), taken) for x, taken in ((a, mask), (b, f"~{mask}"))]
        return self.number(self.word("or", *chosen))

    def select_word(self, condition: Value, a: Value | int, b: Value | int) -> Value:
        if self.masks:
            mask = self.declare(self.unsigned, f"-({self.unsigned}){condition}")
            return self.word("or", self.word("and", a, mask), self.word("and", b, f"~{mask}"))
        return self.declare(self.unsigned, f"{condition} ? {self.integer_operand(a)} : {self.integer_operand(b)}")


def header() -> str:
    """Return the C text of all functions, to be included once for each set of instructions, with ``LEVEL(name)`` naming its own."""
    out = ["/* Written by lazynp/backends/llvm/polynomials/c.py. */\n#if defined(__GNUC__)\n"]
    listed = []
    beyond = f"(bits_of_double(x) & 0x{DOUBLE.magnitude:x}u) - 0x{DOUBLE.of(trigonometric.LIMIT):x}u"
    beyond += f" < 0x{DOUBLE.infinity - DOUBLE.of(trigonometric.LIMIT):x}u"
    out.append(f"static inline int LEVEL(is_far)(double x) {{ return {beyond}; }}\n")
    for name, (body, kinds) in WRITTEN.items():
        for kind in kinds.split():
            code = CCode(FORMATS[kind], name in OF_TWO)
            arguments = ["x", "y"][: 1 + (name in OF_TWO)]
            out.append(_function(f"{name}_{kind}", code, body(code, *arguments), arguments))
            out.append(f"FUNCTION_LOOP{len(arguments)}({name}_{kind}, {code.element})\n")
            listed.append((name, kind))
    for name, partial in PARTIAL.items():
        code = CCode(FORMATS["f64"])
        result, _ = partial(code, "x")
        out.append(_function(f"{name}_f64", code, result, ["x"]))
        out.append(f"PARTIAL_LOOP({name}_f64, {name})\n")
        listed.append((name, "f64"))
    types = {"f64": "NPY_DOUBLE", "f32": "NPY_FLOAT"}
    rows = "".join(f'    {{"{name}", {types[kind]}, LEVEL({name}_{kind}_loop), NULL}},\n' for name, kind in listed)
    out.append(f"static const Compiled LEVEL(functions)[] = {{\n{rows}    {{NULL, 0, NULL, NULL}}}};\n#endif\n")
    return "".join(out)


def _function(name: str, code: Code, result: Value, arguments: list[str]) -> str:
    head = ", ".join([f"{code.element} {argument}" for argument in arguments])
    return f"ALWAYS {code.element} LEVEL({name})({head}) {{\n{''.join(code.lines)}    return {result};\n}}\n"
