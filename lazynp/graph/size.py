"""Numbers that stand for the sizes of arrays, so that one plan serves all sizes of a program.

In: the passes, as they are, given a ``Program`` whose extents are ``Size`` objects.  Out: what they make, with numbers in it that are
expressions of the extents, and a ``Trace``: everything the passes found out about the extents on the way (``rows * columns < 200000``).
Promise: for other extents of which all that is true, the passes would have made the same with other numbers in it.

So a ``Size`` counts like a number, a comparison is answered and noted, and what makes a plain number of one (an index, a hash is not
among them, a text) is noted as an equality: then what is made holds for that number alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isinf
from types import FunctionType
from typing import Any, Final

_INVERSE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_COUNT: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "/": operator.truediv,
    "gcd": math.gcd, "bits": lambda a, b: a.bit_length(),
}  # fmt: skip
_NAMES: Final = {"inf": inf, "gcd": math.gcd, "bits": _COUNT["bits"]}


def _comparison(sign: str) -> Any:
    compare = _COMPARE[sign]

    def method(self: Size, other: Any) -> Any:
        kind = other.__class__
        if kind is Size:
            if other is self:
                return sign in ("==", "<=", ">=")
            found = compare(self.value, other.value)
            self.trace.note(self, sign if found else _INVERSE[sign], other)
            return found
        if kind is not int and kind is not float:
            return NotImplemented
        found = compare(self.value, other)
        if not (kind is float and isinf(other)) and not (other < self.least):
            self.trace.note(self, sign if found else _INVERSE[sign], other)
        return found

    return method


def _counted(sign: str) -> Any:
    return lambda self, other: self.trace.count(sign, self, other) if other.__class__ in _NUMBERS else NotImplemented


def _turned(sign: str) -> Any:
    return lambda self, other: self.trace.count(sign, other, self) if other.__class__ in _NUMBERS else NotImplemented


class Size:
    """A number that depends on sizes: ``value`` is what it is for the present sizes, ``name`` what the trace calls it.

    ``least`` is a number that it never is below, ``slot`` its place among the results of the trace's function.
    """

    __slots__ = ("least", "name", "slot", "trace", "value")

    def __init__(self, trace: Trace, name: str, value: Any, least: float) -> None:
        self.trace = trace
        self.name = name
        self.value = value
        self.least = least
        self.slot = -1

    def __hash__(self) -> int:
        return hash(self.value)  # equal ones are told by ``==``, which is noted

    def __bool__(self) -> bool:
        return bool(self != 0)

    def _plain(self) -> Any:
        if self != self.value:
            raise AssertionError("a size differs from itself")
        return self.value

    def __index__(self) -> int:
        return operator.index(self._plain())

    def __int__(self) -> int:
        return int(self._plain())

    def __float__(self) -> float:
        return float(self._plain())

    def __str__(self) -> str:
        return str(self._plain())

    def __repr__(self) -> str:
        return repr(self._plain())

    def __format__(self, form: str) -> str:
        # With a form it is for people: nothing is computed from that.
        return format(self.value, form) if form else str(self)

    def bit_length(self) -> Any:
        return self.trace.count("bits", self, 0)

    def __neg__(self) -> Any:
        return self.trace.count("-", 0, self)

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    __lt__, __le__, __gt__, __ge__ = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")
    __eq__, __ne__ = _comparison("=="), _comparison("!=")
    __add__, __sub__, __mul__, __mod__ = _counted("+"), _counted("-"), _counted("*"), _counted("%")
    __floordiv__, __truediv__ = _counted("//"), _counted("/")
    __radd__, __rsub__, __rmul__, __rmod__ = _turned("+"), _turned("-"), _turned("*"), _turned("%")
    __rfloordiv__, __rtruediv__ = _turned("//"), _turned("/")


_NUMBERS: Final = (int, float, Size)


def gcd(a: Any, b: Any) -> Any:
    """The greatest common divisor, also of sizes."""
    if a.__class__ is int and b.__class__ is int:
        return math.gcd(a, b)
    if (a.__class__ is int and a == 1) or (b.__class__ is int and b == 1):
        return 1
    return (a if a.__class__ is Size else b).trace.count("gcd", a, b)


class Trace:
    """All that is counted with the sizes of one program, and all that is found out about them."""

    def __init__(self) -> None:
        self.sizes: list[Size] = []
        self.made: dict[Any, Any] = {}
        self.lines: list[tuple[str | None, str, tuple[str, ...]]] = []  # the name it makes (None: a condition), its text, what it reads
        self.noted: set[str] = set()

    def size(self, value: int) -> Size:
        """A size that the program has, and that is at least 2."""
        made = Size(self, f"s{len(self.sizes)}", value, 2)
        self.sizes.append(made)
        return made

    def count(self, sign: str, a: Any, b: Any) -> Any:
        """Compute ``a sign b``; equal expressions are one object."""
        x = a.value if a.__class__ is Size else a
        y = b.value if b.__class__ is Size else b
        value = _COUNT[sign](x, y)
        if value.__class__ is int:
            if b.__class__ is int:
                if (b == 0 and sign in "+-") or (b == 1 and sign in ("*", "//")):
                    return a
            elif a.__class__ is int and ((a == 0 and sign == "+") or (a == 1 and sign == "*")):
                return b
            if sign == "*" and ((a.__class__ is int and a == 0) or (b.__class__ is int and b == 0)):
                return 0
        left, right = _text(self, a), _text(self, b)
        if sign in "+*" and right < left:
            left, right = right, left
        key = (sign, left, right)
        made = self.made.get(key)
        if made is None:
            name = f"t{len(self.made)}"
            text = f"{sign}({left}, {right})" if sign in _NAMES else f"{left} {sign} {right}"
            self.lines.append((name, f"{name} = {text}", (left, right)))
            made = self.made[key] = Size(self, name, value, _least(sign, a, b))
        return made

    def note(self, a: Size, sign: str, b: Any) -> None:
        """Write down that ``a sign b`` is true."""
        left, right = _text(self, a), _text(self, b)
        text = f"{left} {_INVERSE[sign]} {right}"
        if text not in self.noted:
            self.noted.add(text)
            self.lines.append((None, f"if {text}: return None", (left, right)))

    def function(self, results: Sequence[Size]) -> Callable[..., tuple[Any, ...] | None]:
        """Return what computes ``results`` from sizes, or gives None where something is not true of them that was noted."""
        needed = {result.name for result in results}
        kept: list[str] = []
        for name, text, reads in reversed(self.lines):
            if name is None or name in needed:
                needed.update(reads)
                kept.append(text)
        parameters = ", ".join([size.name for size in self.sizes])
        answer = "".join([f"{result.name}, " for result in results])
        text = "\n    ".join([f"def sized({parameters}):", *reversed(kept), f"return ({answer})"])
        scope = dict(_NAMES)
        exec(text, scope)
        made = scope["sized"]
        assert isinstance(made, FunctionType)
        return made


def _text(trace: Trace, x: Any) -> str:
    if x.__class__ is Size:
        if x.trace is not trace:
            raise AssertionError("a size of another trace")
        name: str = x.name
        return name
    return repr(x)


def _least(sign: str, a: Any, b: Any) -> float:
    x = a.least if a.__class__ is Size else a
    y = b.least if b.__class__ is Size else b
    if sign == "+":
        return x + y
    if sign == "*" and x >= 0 and y >= 0:
        return x * y
    if sign == "-" and b.__class__ is int:
        return x - b
    if sign in ("//", "/", "%") and x >= 0 and y > 0:
        return 0
    return {"gcd": 1, "bits": 0}.get(sign, -inf)


# Putting numbers in -----------------------------------------------------------------------------------------------------------

Recipe = Callable[[tuple[Any, ...]], Any]


def recipe(x: Any, results: list[Size]) -> Recipe | None:
    """Return what makes a copy of ``x`` with numbers in place of sizes; None where there are none.

    The sizes are added to ``results``; their numbers are what the recipe is given, in that order.
    """
    kind = x.__class__
    if kind is Size:
        if x.slot < 0:
            x.slot = len(results)
            results.append(x)
        return operator.itemgetter(x.slot)
    if kind is dict:
        values = recipe(list(x.values()), results)
        return None if values is None else partial(_dict, list(x), values)
    if kind is list or kind is tuple:
        parts = list(x)
        make: Callable[..., Any] = kind
    elif isinstance(x, tuple) and hasattr(kind, "_make"):
        parts, make = list(x), kind._make
    elif hasattr(kind, "__match_args__") and hasattr(kind, "__slots__"):
        parts, make = [getattr(x, name) for name in kind.__match_args__], partial(_called, kind)
    else:
        return None
    inside = [(k, made) for k, part in enumerate(parts) if (made := recipe(part, results)) is not None]
    return partial(_filled, parts, inside, None if make is list else make) if inside else None


def _filled(parts: list[Any], inside: list[tuple[int, Recipe]], make: Any, numbers: tuple[Any, ...]) -> Any:
    made = parts[:]
    for k, part in inside:
        made[k] = part(numbers)
    return made if make is None else make(made)


def _called(kind: Any, parts: list[Any]) -> Any:
    return kind(*parts)


def _dict(keys: list[Any], values: Recipe, numbers: tuple[Any, ...]) -> dict[Any, Any]:
    return dict(zip(keys, values(numbers), strict=True))
