"""Exact integer index expressions.

In: loop ranges, run-time offsets and loaded indices (the *atoms*), each with an interval.  Out: canonical linear combinations of
atoms, where floor division and remainder by a constant are atoms of their own.  Promise: two equal expressions built the same way are
equal as values, every rewrite is exact on the integers, and ``bounds`` never lies.  Nothing in here knows IEEE numbers: these rules
are free to rewrite, the rules of values are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lazynp.graph.size import gcd
from lazynp.values.records import Record, Row

Bounds = tuple[int, int]


class Atom:
    """A variable of index expressions: compared by identity, ordered by ``number``."""

    __slots__ = ("hi", "lo", "number")
    number: int
    lo: int
    hi: int


class Range(Atom):
    """A loop variable, 0 <= value < extent."""

    __slots__ = ("extent", "name")

    def __init__(self, number: int, extent: int, name: str) -> None:
        self.number = number
        self.extent = extent
        self.lo = 0
        self.hi = max(extent - 1, 0)
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Offset(Atom):
    """A run-time integer parameter (the start of a slice), lo <= value <= hi."""

    __slots__ = ("slot",)

    def __init__(self, number: int, slot: int, lo: int, hi: int) -> None:
        self.number = number
        self.slot = slot
        self.lo = lo
        self.hi = hi

    def __repr__(self) -> str:
        return f"p{self.slot}"


class Loaded(Atom):
    """An index that is itself computed (gather), known to lie in 0 <= value < extent; ``value`` is what computes it."""

    __slots__ = ("value",)

    def __init__(self, number: int, value: Any, extent: int) -> None:
        self.number = number
        self.value = value
        self.lo = 0
        self.hi = extent - 1

    def __repr__(self) -> str:
        return f"[{self.value!r}]"


class Quotient(Atom):
    """Floor division of ``inner`` by a positive constant."""

    __slots__ = ("divisor", "inner")

    def __init__(self, number: int, inner: Index, divisor: int) -> None:
        self.number = number
        self.inner = inner
        self.divisor = divisor
        lo, hi = inner.bounds()
        self.lo, self.hi = lo // divisor, hi // divisor

    def __repr__(self) -> str:
        return f"({self.inner!r})//{self.divisor}"


class Remainder(Atom):
    """Remainder of the floor division of ``inner`` by a positive constant."""

    __slots__ = ("divisor", "inner")

    def __init__(self, number: int, inner: Index, divisor: int) -> None:
        self.number = number
        self.inner = inner
        self.divisor = divisor
        self.lo, self.hi = 0, divisor - 1

    def __repr__(self) -> str:
        return f"({self.inner!r})%{self.divisor}"


class Index(Row):
    """``const + sum(coefficient * atom)``: terms in atom order, no zero coefficient."""

    terms: tuple[tuple[Atom, int], ...]
    const: int

    def bounds(self) -> Bounds:
        lo = hi = self.const
        for atom, k in self.terms:
            if k > 0:
                lo += k * atom.lo
                hi += k * atom.hi
            else:
                lo += k * atom.hi
                hi += k * atom.lo
        return lo, hi

    def coefficient(self, atom: Atom) -> int:
        for a, k in self.terms:
            if a is atom:
                return k
        return 0

    def __add__(self, other: Index | int) -> Index:  # type: ignore[override]  # of a tuple
        if not isinstance(other, Index):
            return Index(self.terms, self.const + other) if other else self
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        merged: dict[Atom, int] = dict(self.terms)
        for atom, k in other.terms:
            merged[atom] = merged.get(atom, 0) + k
        return _index(merged, self.const + other.const)

    def __mul__(self, k: int) -> Index:  # type: ignore[override]
        if k == 1:
            return self
        if k == 0:
            return ZERO
        return Index(tuple([(atom, c * k) for atom, c in self.terms]), self.const * k)

    def __repr__(self) -> str:
        parts = [f"{k}*{atom!r}" if k != 1 else repr(atom) for atom, k in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


class Formula(Record):
    """The rest of an index where no loop runs: ``const + sum(k * offset[slot])``, evaluated by the host at launch."""

    const: int
    offsets: tuple[tuple[int, int], ...] = ()


def _number(term: tuple[Atom, int]) -> int:
    return term[0].number


def _index(merged: Mapping[Atom, int], const: int) -> Index:
    """Canonical form of a sum; recombines ``k*(x%c) + k*c*(x//c)`` into ``k*x``."""
    terms = {atom: k for atom, k in merged.items() if k}
    for atom in list(terms):
        if isinstance(atom, Remainder) and atom in terms:
            k = terms[atom]
            for other, c in terms.items():
                if (
                    isinstance(other, Quotient)
                    and other.divisor == atom.divisor
                    and c == k * atom.divisor
                    and other.inner == atom.inner
                ):
                    del terms[atom], terms[other]
                    return Index(tuple(sorted(terms.items(), key=_number)), const) + atom.inner * k
    return Index(tuple(sorted(terms.items(), key=_number)), const)


ZERO = Index((), 0)


def constant(value: int) -> Index:
    return Index((), value) if value else ZERO


def of(atom: Atom) -> Index:
    return Index(((atom, 1),), 0)


class Space:
    """Makes atoms and keeps equal ones identical."""

    def __init__(self, bounds: Mapping[int, Bounds] | None = None) -> None:
        """``bounds``: of the parameters, by slot, the same from the first index on: what was proven with them is not asked again."""
        self._count = 0
        self._made: dict[Any, Atom] = {}
        self._bounds = bounds or {}

    def _next(self) -> int:
        self._count += 1
        return self._count

    def range(self, extent: int, name: str = "") -> Range:
        number = self._next()
        return Range(number, extent, name or f"r{number}")

    def ranges(self, extents: Sequence[int]) -> list[Range]:
        """A range for each of ``extents``."""
        return [self.range(n) for n in extents]

    def offset(self, slot: int) -> Offset:
        """The parameter ``slot``, within its bounds."""
        atom = self._made.get(slot)
        if atom is None:
            atom = self._made[slot] = Offset(self._next(), slot, *self._bounds[slot])
        assert isinstance(atom, Offset)
        return atom

    def loaded(self, value: Any, extent: int) -> Loaded:
        key = ("loaded", value, extent)
        atom = self._made.get(key)
        if atom is None:
            atom = self._made[key] = Loaded(self._next(), value, extent)
        assert isinstance(atom, Loaded)
        return atom

    def quotient(self, x: Index, c: int) -> Index:
        """``x // c`` (floor), c > 0."""
        if c == 1:
            return x
        whole, rest = self._split(x, c)
        lo, hi = rest.bounds()
        if lo // c == hi // c:
            return whole + lo // c
        g = c
        for _, k in rest.terms:
            g = gcd(g, k)
        if g > 1:
            # (g*a + b) // c = (a + b//g) // (c//g) for g dividing c and all coefficients
            rest = Index(tuple([(atom, k // g) for atom, k in rest.terms]), rest.const // g)
            c //= g
        if len(rest.terms) == 1 and rest.const == 0:
            atom, k = rest.terms[0]
            if k == 1 and isinstance(atom, Quotient):
                return whole + self.quotient(atom.inner, atom.divisor * c)
        return whole + of(self._derived(Quotient, rest, c))

    def remainder(self, x: Index, c: int) -> Index:
        """``x % c`` (sign of c), c > 0."""
        if c == 1:
            return ZERO
        _, rest = self._split(x, c)
        lo, hi = rest.bounds()
        if lo // c == hi // c:
            return rest + -(lo // c) * c
        if len(rest.terms) == 1 and rest.const == 0:
            atom, k = rest.terms[0]
            if k == 1 and isinstance(atom, Remainder) and atom.divisor % c == 0:
                return self.remainder(atom.inner, c)
        return of(self._derived(Remainder, rest, c))

    def _split(self, x: Index, c: int) -> tuple[Index, Index]:
        """x = c*whole + rest, with rest's coefficients between -c and c, none of them 0, and rest.const in [0, c)."""
        whole: list[tuple[Atom, int]] = []
        rest: list[tuple[Atom, int]] = []
        for atom, k in x.terms:
            times = k // c if k > 0 else -(-k // c)
            if times:
                whole.append((atom, times))
            if k != times * c:
                rest.append((atom, k - times * c))
        return Index(tuple(whole), x.const // c), Index(tuple(rest), x.const % c)

    def _derived(self, kind: type[Quotient] | type[Remainder], inner: Index, c: int) -> Atom:
        key = (kind, inner, c)
        atom = self._made.get(key)
        if atom is None:
            atom = self._made[key] = kind(self._next(), inner, c)
        return atom


def substitute(space: Space, x: Index, mapping: Mapping[Atom, Index]) -> Index:
    """x with atoms replaced, rebuilt through the simplifier."""
    result = constant(x.const)
    for atom, k in x.terms:
        if atom in mapping:
            new = mapping[atom]
        elif isinstance(atom, Quotient):
            new = space.quotient(substitute(space, atom.inner, mapping), atom.divisor)
        elif isinstance(atom, Remainder):
            new = space.remainder(substitute(space, atom.inner, mapping), atom.divisor)
        else:
            new = of(atom)
        result = result + new * k
    return result


def flat(index: Sequence[Index], shape: Sequence[int]) -> Index:
    """Position in C order."""
    result, stride = ZERO, 1
    for i, n in zip(reversed(index), reversed(shape), strict=True):
        result = result + i * stride
        stride *= n
    return result


def atoms(x: Index) -> set[Atom]:
    """Ranges, offsets and loaded indices that x depends on, looking into quotients and remainders."""
    found: set[Atom] = set()
    pending = [x]
    while pending:
        for atom, _ in pending.pop().terms:
            if isinstance(atom, Quotient | Remainder):
                pending.append(atom.inner)
            else:
                found.add(atom)
    return found
