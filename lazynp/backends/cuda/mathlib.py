"""Mathematical functions on a device.

In: the name of a special function.  Out: its definition.  Promise: it is that of ``lazynp/backends/special``.  A function that has a name
in C is CUDA's of that name: within two or three units in the last place of the exact value, with C's (and NumPy's) values for NaN,
infinities and zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from lazynp.backends.cuda.types import DType, literal, type_of
from lazynp.backends.special import FUNCTIONS
from lazynp.graph import op as o

SPECIAL: Final = frozenset(op.name for op in o.SPECIAL)

DOUBLE: Final = np.dtype(np.float64)

Operand = str | float


class Numbers:
    """Arithmetic on doubles, as ``lazynp.backends.special.arithmetic`` has it; every value is a variable."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    const double {name} = {text};\n")
        return name

    def condition(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    const bool {name} = {text};\n")
        return name

    @staticmethod
    def text(x: Operand) -> str:
        return x if isinstance(x, str) else literal(x, DOUBLE)

    def infix(self, sign: str, a: Operand, b: Operand) -> str:
        return self.value(f"{self.text(a)} {sign} {self.text(b)}")

    def call(self, function: str, *args: Operand) -> str:
        return self.value(f"{function}({', '.join([self.text(a) for a in args])})")

    def add(self, a: Operand, b: Operand) -> str:
        return self.infix("+", a, b)

    def sub(self, a: Operand, b: Operand) -> str:
        return self.infix("-", a, b)

    def mul(self, a: Operand, b: Operand) -> str:
        return self.infix("*", a, b)

    def div(self, a: Operand, b: Operand) -> str:
        return self.infix("/", a, b)

    def neg(self, a: str) -> str:
        return self.value(f"-{a}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> str:
        return self.call("fma", a, b, c)

    def sqrt(self, a: str) -> str:
        return self.call("sqrt", a)

    def rint(self, a: str) -> str:
        return self.call("rint", a)

    def absolute(self, a: str) -> str:
        return self.call("fabs", a)

    def copysign(self, a: Operand, sign: Operand) -> str:
        return self.call("copysign", a, sign)

    def at_most(self, a: str, limit: float) -> str:
        return self.call("fmin", a, limit)

    def at_least(self, a: str, limit: float) -> str:
        return self.call("fmax", a, limit)

    def square(self, a: str) -> tuple[str, str]:
        product = self.mul(a, a)
        return product, self.fma(a, a, self.neg(product))

    def exp(self, a: str, low: Operand | None = None) -> str:
        power = self.call("exp", a)
        if low is None:
            return power
        return self.fma(self.at_most(power, 1.7976931348623157e308), low, power)

    def log(self, a: str) -> str:
        return self.call("log", a)

    def log1p(self, a: str) -> str:
        return self.call("log1p", a)

    def polynomial(self, x: str, coefficients: Sequence[Operand]) -> str:
        # In two halves: a chain of dependent operations half as long.
        if len(coefficients) < 4:
            return self.horner(x, coefficients)
        square = self.mul(x, x)
        return self.fma(self.horner(square, coefficients[1::2]), x, self.horner(square, coefficients[::2]))

    def horner(self, x: str, coefficients: Sequence[Operand]) -> str:
        *rest, last = coefficients
        result = self.text(last)
        for coefficient in reversed(rest):
            result = self.fma(result, x, coefficient)
        return result

    def chosen(self, conditions: Sequence[str], x: str, tables: Sequence[Sequence[float]]) -> str:
        coefficients: list[Operand] = []
        for row in zip(*tables, strict=True):
            chosen: Operand = row[-1]
            for condition, coefficient in zip(reversed(conditions), row[-2::-1], strict=True):
                chosen = self.select(condition, coefficient, chosen)
            coefficients.append(chosen)
        return self.horner(x, coefficients)

    def below(self, a: str, limit: Operand) -> str:
        return self.condition(f"{a} < {self.text(limit)}")

    def negative(self, a: str) -> str:
        return self.condition(f"__double_as_longlong({a}) < 0")

    def equal(self, a: str, b: Operand) -> str:
        return self.condition(f"{a} == {self.text(b)}")

    def nan(self, a: str) -> str:
        return self.condition(f"{a} != {a}")

    def both(self, a: str, b: str) -> str:
        return self.condition(f"{a} && {b}")

    def no(self, a: str) -> str:
        return self.condition(f"!{a}")

    def select(self, condition: str, a: Operand, b: Operand) -> str:
        return self.value(f"{condition} ? {self.text(a)} : {self.text(b)}")


def special(name: str, dtype: DType) -> str:
    """The definition of a special function; single precision is computed in double and rounded once."""
    t = type_of(dtype)
    numbers = Numbers()
    result = FUNCTIONS[name](numbers, "x" if t == "double" else numbers.value("(double)x"))
    return f"{t} lz_{name}_{dtype.kind}{dtype.itemsize}({t} x)\n{{\n{''.join(numbers.lines)}    return ({t}){result};\n}}"
