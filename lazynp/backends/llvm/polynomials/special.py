"""The special functions as LLVM IR.

In: the name and type of a function.  Out: its definition, without a branch or a call, like every function of this package.  Promise:
the same bits wherever an element stands. Where the machine has no fused multiply-add, a multiplication and an addition stand for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazynp.backends.llvm.polynomials import exponential, logarithm
from lazynp.backends.llvm.polynomials.code import DOUBLE, Code, Operand, Value
from lazynp.backends.special import FUNCTIONS

_HIGH = -(1 << 27)  # a number without the 27 lowest bits of its significand has an exact square


class Numbers(Code):
    """Arithmetic on doubles, as ``lazynp.backends.special.arithmetic`` has it."""

    def __init__(self, fused: bool) -> None:
        super().__init__(DOUBLE)
        self.fused = fused

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        return super().fma(a, b, c) if self.fused else self.add(self.mul(a, b), c)

    def sqrt(self, a: Value) -> Value:
        return self.call("sqrt", a)

    def rint(self, a: Value) -> Value:
        return self.call("rint", a)

    def absolute(self, a: Value) -> Value:
        return self.call("fabs", a)

    def copysign(self, a: Operand, sign: Operand) -> Value:
        return self.call("copysign", a, sign)

    def at_most(self, a: Value, limit: float) -> Value:
        return self.number(self.call_word("umin", self.bits(a), DOUBLE.of(limit)))

    def at_least(self, a: Value, limit: float) -> Value:
        return self.number(self.call_word("umax", self.bits(a), DOUBLE.of(limit)))

    def square(self, a: Value) -> tuple[Value, Value]:
        if self.fused:
            return self.split_product(a, a)
        product = self.mul(a, a)
        high = self.number(self.word("and", self.bits(a), _HIGH))
        low = self.sub(a, high)
        error = self.add(self.sub(self.mul(high, high), product), self.mul(self.mul(high, 2.0), low))
        return product, self.add(error, self.mul(low, low))

    def exp(self, a: Value, low: Operand | None = None) -> Value:
        bounded = self.bounded(a, 1000.0)
        r, shifted = exponential.reduce(self, bounded, 2 * DOUBLE.bias)
        r = r if low is None else self.add(r, low)
        first, second = exponential.scales(self, shifted)
        return self.mul(self.fma(exponential.reduced_exp(self, r), first, first), second)

    def log(self, a: Value) -> Value:
        return logarithm.log(self, a)

    def log1p(self, a: Value) -> Value:
        return logarithm.log1p(self, a)

    def chosen(self, conditions: Sequence[Value], x: Value, tables: Sequence[Sequence[float]]) -> Value:
        coefficients: list[Operand] = []
        for row in zip(*tables, strict=True):
            chosen: Operand = row[-1]
            for condition, coefficient in zip(reversed(conditions), row[-2::-1], strict=True):
                chosen = self.select(condition, coefficient, chosen)
            coefficients.append(chosen)
        return self.horner(x, coefficients)

    def below(self, a: Value, limit: Operand) -> Value:
        return self.compare("ult", self.bits(a), DOUBLE.of(limit) if isinstance(limit, float) else self.bits(limit))

    def negative(self, a: Value) -> Value:
        return self.compare("slt", self.bits(a), 0)

    def nan(self, a: Value) -> Value:
        return self.unordered(a, a)

    def both(self, a: Value, b: Value) -> Value:
        return self.logic("and", a, b)

    def no(self, a: Value) -> Value:
        return self.logic("xor", a, True)


def definition(name: str, kind: str, head: str, fused: bool) -> str:
    """Return the function whose first line is ``head`` and whose parameter is ``%x0``; single precision is computed in double."""
    numbers = Numbers(fused)
    x = "%x0" if kind == "f64" else numbers.extended("%x0")
    result = FUNCTIONS[name](numbers, x)
    if kind == "f32":
        result = numbers.truncated(result)
    return f"{head} {{\n{''.join(numbers.lines)}  ret {'double' if kind == 'f64' else 'float'} {result}\n}}\n"
