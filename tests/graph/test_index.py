"""Index expressions: floor division and remainder against Python's integers, and the forms that views need."""

from __future__ import annotations

import itertools
import random

from lazynp.graph import index as ix
from lazynp.graph.index import Atom, Index, Quotient, Range, Remainder, Space


def value(x: Index, at: dict[Atom, int]) -> int:
    """The number an expression stands for."""
    total = x.const
    for atom, k in x.terms:
        if isinstance(atom, Quotient):
            total += k * (value(atom.inner, at) // atom.divisor)
        elif isinstance(atom, Remainder):
            total += k * (value(atom.inner, at) % atom.divisor)
        else:
            total += k * at[atom]
    return total


def test_quotients_and_remainders_are_exact() -> None:
    rng = random.Random(7)
    for _ in range(400):
        space = Space()
        ranges: list[Range] = [space.range(rng.randint(1, 5)) for _ in range(rng.randint(1, 3))]
        x = ix.constant(rng.randint(-12, 12))
        for r in ranges:
            x = x + ix.of(r) * rng.randint(-15, 15)
        c, d = rng.randint(1, 9), rng.randint(1, 4)
        q, r_ = space.quotient(x, c), space.remainder(x, c)
        again = space.remainder(space.quotient(x, c), d)
        for point in itertools.product(*[range(r.extent) for r in ranges]):
            at: dict[Atom, int] = dict(zip(ranges, point, strict=True))
            n = value(x, at)
            assert (value(q, at), value(r_, at), value(again, at)) == (n // c, n % c, n // c % d)
            assert value(q * c + r_, at) == n


def test_rows_one_longer_are_shifted_rows() -> None:
    """What makes a sliding window affine: ``(w*(n+1) + i) % n`` is ``w + i`` where that is below n."""
    space = Space()
    n, width = 1000, 7
    w, i = space.range(width), space.range(n - width + 1)
    position = ix.of(w) * (n + 1) + ix.of(i)
    assert space.remainder(position, n) == ix.of(w) + ix.of(i)
    assert space.quotient(position, n) == ix.of(w)


def test_a_position_is_put_together_again() -> None:
    space = Space()
    x = ix.of(space.range(40)) * 9 + ix.of(space.range(7)) + 3
    assert space.quotient(x, 4) * 4 + space.remainder(x, 4) == x
