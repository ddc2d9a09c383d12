"""What the definitions of special functions are written in.

In: operands, which are a backend's values or Python numbers.  Out: a backend's values.  Promise: every method is one IEEE operation, or one
function of the backend's within about a unit in the last place; conditions on numbers that may be NaN are false for it and raise nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Value = Any
Operand = Any  # a Value or a float
Condition = Any


class Arithmetic(Protocol):
    """Arithmetic on doubles."""

    def add(self, a: Operand, b: Operand) -> Value: ...
    def sub(self, a: Operand, b: Operand) -> Value: ...
    def mul(self, a: Operand, b: Operand) -> Value: ...
    def div(self, a: Operand, b: Operand) -> Value: ...
    def neg(self, a: Value) -> Value: ...
    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """``a * b + c``, rounded once or twice."""

    def sqrt(self, a: Value) -> Value: ...
    def rint(self, a: Value) -> Value: ...
    def absolute(self, a: Value) -> Value: ...
    def copysign(self, a: Operand, sign: Operand) -> Value: ...
    def at_most(self, a: Value, limit: float) -> Value:
        """The smaller one, for ``a`` without a sign; of NaN, anything."""

    def at_least(self, a: Value, limit: float) -> Value:
        """The larger one, for ``a`` without a sign; of NaN, anything.

        This and ``at_most`` keep what is not wanted from raising a flag more surely than ``select``, which an optimiser may see through.
        """

    def square(self, a: Value) -> tuple[Value, Value]:
        """The rounded square and its error."""

    def exp(self, a: Value, low: Operand | None = None) -> Value:
        """``exp(a + low)`` for |a| up to 1000 and a ``low`` that is no more than a rounding error of ``a``; of NaN, anything."""

    def log(self, a: Value) -> Value: ...
    def log1p(self, a: Value) -> Value: ...
    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """``c0 + c1 x + c2 x^2 + ...``."""

    def chosen(self, conditions: Sequence[Condition], x: Value, tables: Sequence[Sequence[float]]) -> Value:
        """The polynomial of the first table whose condition holds, of the last one where none does; all are of one length.

        By Horner's rule: a rounded square of ``x`` would cost ``x`` up to 10^2 more than a unit.
        """

    def below(self, a: Value, limit: Operand) -> Condition:
        """Tell whether ``a < limit``, neither having a sign."""

    def negative(self, a: Value) -> Condition:
        """Tell whether the sign bit is set."""

    def equal(self, a: Value, b: Operand) -> Condition: ...
    def nan(self, a: Value) -> Condition: ...
    def both(self, a: Condition, b: Condition) -> Condition: ...
    def no(self, a: Condition) -> Condition: ...
    def select(self, condition: Condition, a: Operand, b: Operand) -> Value: ...
