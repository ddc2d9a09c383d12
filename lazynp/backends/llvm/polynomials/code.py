"""A writer of LLVM IR for the bodies of mathematical functions, of numbers or of vectors.

In: arithmetic on values of one floating type, called as methods.  Out: the lines of a function body.  Promise: every operation is an
IEEE operation with one result (a fused multiply-add is always written as such, never left to the optimiser), and none of them
branches, so that a loop over the body vectorises at any width and every lane has the scalar's bits.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

Value = str
Operand = str | float


class Format:
    """A format tells the algorithms what they must know about a floating type."""

    def __init__(self, kind: str, element: str, bits: int, mantissa: int) -> None:
        self.kind = kind
        self.element = element
        self.integer = f"i{bits}"
        self.bits = bits
        self.mantissa = mantissa  # bits stored
        self.bias = (1 << (bits - mantissa - 2)) - 1
        self.infinity = ((1 << (bits - mantissa - 1)) - 1) << mantissa  # as an integer
        self.tiny = 1 << mantissa  # the smallest normal number, as an integer
        self.nan = self.infinity | 1 << (mantissa - 1)
        self.magnitude = (1 << (bits - 1)) - 1  # all bits but the sign
        self.sign = 1 << (bits - 1)
        self.rounder = 1.5 * 2.0**mantissa  # added to a small number, leaves its nearest integer in the lowest bits

    def of(self, value: float) -> int:
        """Return the bits of the number nearest to ``value``."""
        if self.bits == 64:
            return int(struct.unpack("<Q", struct.pack("<d", value))[0])
        return int(struct.unpack("<I", struct.pack("<f", value))[0])


DOUBLE: Final = Format("f64", "double", 64, 52)
SINGLE: Final = Format("f32", "float", 32, 23)
FORMATS: Final = {"f64": DOUBLE, "f32": SINGLE}


def vector(element: str, lanes: int | None) -> str:
    """The type of that many elements; ``None`` is a number alone."""
    return element if lanes is None else f"<{lanes} x {element}>"


class Code:
    """The body of one function under construction; with ``lanes``, of the same function of vectors."""

    def __init__(self, format_: Format, lanes: int | None = None) -> None:
        self.lines: list[str] = []
        self.format = format_
        self.lanes = lanes
        self.element, self.integer, self.bool = (vector(t, lanes) for t in (format_.element, format_.integer, "i1"))
        self.overload = "" if lanes is None else f"v{lanes}"  # in names of intrinsics

    def emit(self, text: str) -> Value:
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {text}\n")
        return name

    def widened(self) -> Code:
        """Return a writer of the same body whose values are doubles."""
        wide = Code(DOUBLE, self.lanes)
        wide.lines = self.lines
        return wide

    def extended(self, x: Value) -> Value:
        """Return a float as a double."""
        return self.emit(f"fpext {vector('float', self.lanes)} {x} to {vector('double', self.lanes)}")

    def truncated(self, x: Value) -> Value:
        """Return a double as a float."""
        return self.emit(f"fptrunc {vector('double', self.lanes)} {x} to {vector('float', self.lanes)}")

    # Floating values. An operand that is a Python number is a constant, rounded to the type -------------------------------

    def operand(self, x: Operand) -> str:
        if isinstance(x, str):
            return x
        # LLVM writes a float constant as the double of the same value.
        value = struct.unpack("<f", struct.pack("<f", x))[0] if self.format.bits == 32 else x
        return self.constant(f"0x{DOUBLE.of(value):016X}", self.format.element)

    def constant(self, text: str, element: str) -> str:
        """A constant in every lane."""
        return text if self.lanes is None else f"<{', '.join([f'{element} {text}'] * self.lanes)}>"

    def integer_operand(self, x: Value | int) -> str:
        return x if isinstance(x, str) else self.constant(str(x), self.format.integer)

    def _binary(self, word: str, a: Operand, b: Operand) -> Value:
        return self.emit(f"{word} {self.element} {self.operand(a)}, {self.operand(b)}")

    def add(self, a: Operand, b: Operand) -> Value:
        return self._binary("fadd", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        return self._binary("fsub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        return self._binary("fmul", a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        return self._binary("fdiv", a, b)

    def neg(self, a: Value) -> Value:
        return self.emit(f"fneg {self.element} {a}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """Return a * b + c, rounded once."""
        return self.call("fma", a, b, c)

    def call(self, intrinsic: str, *args: Operand) -> Value:
        arguments = ", ".join(f"{self.element} {self.operand(a)}" for a in args)
        return self.emit(f"call {self.element} @llvm.{intrinsic}.{self.overload}{self.format.kind}({arguments})")

    def polynomial(self, x: Value, coefficients: Sequence[Operand], square: Value | None = None) -> Value:
        """Return c0 + c1 x + c2 x^2 + ...: its even and odd halves by Horner's rule, to halve the chain of dependent operations."""
        if len(coefficients) < 4:
            return self.horner(x, coefficients)
        square = square or self.mul(x, x)
        even, odd = self.horner(square, coefficients[::2]), self.horner(square, coefficients[1::2])
        return self.fma(odd, x, even)

    def horner(self, x: Value, coefficients: Sequence[Operand]) -> Value:
        *rest, total = coefficients
        result: Operand = total
        for coefficient in reversed(rest):
            result = self.fma(result, x, coefficient)
        return self.operand(result)

    def split_sum(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        """Return the rounded sum and its error, for |a| >= |b|."""
        total = self.add(a, b)
        return total, self.add(self.sub(a, total), b)

    def split_difference(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        """Return the rounded difference and its error, for |a| >= |b|."""
        total = self.sub(a, b)
        return total, self.sub(self.sub(a, total), b)

    def split_product(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        """Return the rounded product and its error."""
        product = self.mul(a, b)
        return product, self.fma(a, b, self.neg(product))

    # Bits. Integers are compared where a comparison of floats would raise a flag for NaN ----------------------------------

    def bits(self, x: Value) -> Value:
        return self.emit(f"bitcast {self.element} {x} to {self.integer}")

    def number(self, bits: Value) -> Value:
        return self.emit(f"bitcast {self.integer} {bits} to {self.element}")

    def word(self, operation: str, a: Value | int, b: Value | int) -> Value:
        """An integer operation: add, sub, and, or, xor, shl, lshr."""
        return self.emit(f"{operation} {self.integer} {self.integer_operand(a)}, {self.integer_operand(b)}")

    def call_word(self, intrinsic: str, *args: Value | int) -> Value:
        arguments = ", ".join(f"{self.integer} {self.integer_operand(a)}" for a in args)
        return self.emit(f"call {self.integer} @llvm.{intrinsic}.{self.overload}{self.format.integer}({arguments})")

    def compare(self, predicate: str, a: Value | int, b: Value | int) -> Value:
        return self.emit(f"icmp {predicate} {self.integer} {self.integer_operand(a)}, {self.integer_operand(b)}")

    def within(self, bits: Value, low: int, high: int) -> Value:
        """Return whether low <= bits < high, as unsigned integers."""
        return self.compare("ult", self.word("sub", bits, low) if low else bits, high - low)

    def equal(self, a: Operand, b: Operand) -> Value:
        return self.emit(f"fcmp oeq {self.element} {self.operand(a)}, {self.operand(b)}")

    def unordered(self, a: Operand, b: Operand) -> Value:
        """Return whether one of them is NaN."""
        return self.emit(f"fcmp uno {self.element} {self.operand(a)}, {self.operand(b)}")

    def logic(self, operation: str, a: Value, b: Value | bool) -> Value:
        return self.emit(f"{operation} {self.bool} {a}, {self.constant(str(b).lower(), 'i1') if isinstance(b, bool) else b}")

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        return self.emit(f"select {self.bool} {condition}, {self.element} {self.operand(a)}, {self.element} {self.operand(b)}")

    def select_word(self, condition: Value, a: Value | int, b: Value | int) -> Value:
        chosen = ", ".join(f"{self.integer} {self.integer_operand(x)}" for x in (a, b))
        return self.emit(f"select {self.bool} {condition}, {chosen}")

    def magnitude(self, bits: Value) -> Value:
        return self.word("and", bits, self.format.magnitude)

    def sign(self, bits: Value) -> Value:
        return self.word("and", bits, self.format.sign)

    def bounded(self, x: Value, limit: float) -> Value:
        """Return x, or plus or minus ``limit`` where |x| is larger, also for NaN."""
        bits = self.bits(x)
        return self.number(self.word("or", self.call_word("umin", self.magnitude(bits), self.format.of(limit)), self.sign(bits)))

    def round(self, x: Operand, factor: Operand, bias: int = 0) -> tuple[Value, Value]:
        """Return the integer nearest to x * factor, and the bits of a number whose lowest ones hold that integer plus ``bias``."""
        shifter = self.format.rounder + bias
        shifted = self.fma(x, factor, shifter)
        return self.sub(shifted, shifter), self.bits(shifted)
