"""Accesses to neighbouring elements are taken together, unless something between them forbids it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lazynp.codegen import ir
from lazynp.codegen.ir import Memory
from lazynp.codegen.vectors import vectorise

F4, F8, I1, C16 = (np.dtype(c) for c in ("f4", "f8", "i1", "c16"))
B0, B1, SHARED = Memory("buffer", 0), Memory("buffer", 1), Memory("shared", 0)


def places(*constants: int, base: str = "p") -> list[ir.Statement]:
    return [ir.Integer(f"{base}{k}", "add", base, str(k)) for k in constants]


def loads(dtype: np.dtype, memory: Memory, *names: str, guard: str | None = None) -> list[ir.Statement]:
    return [ir.Load(f"v{name}", dtype, memory, name, guard) for name in names]


def stores(dtype: np.dtype, memory: Memory, *names: str) -> list[ir.Statement]:
    return [ir.Store(dtype, memory, name, f"v{name}") for name in names]


def made(statements: Sequence[ir.Statement]) -> list[tuple[str, str, tuple[str, ...]]]:
    """(kind, index, names) of what was put together."""
    found = []
    for s in vectorise(statements):
        if isinstance(s, ir.LoadVector):
            found.append(("load", s.index, s.dsts))
        if isinstance(s, ir.StoreVector):
            found.append(("store", s.index, s.values))
    return found


FOUR = ("p0", "p1", "p2", "p3")
VALUES = tuple(f"v{name}" for name in FOUR)
BETWEEN: dict[str, tuple[list[ir.Statement], bool]] = {
    "a store elsewhere": (stores(F4, B1, "q"), True),
    "a store to the same buffer": (stores(F4, B0, "q"), False),
    "a barrier": ([ir.Barrier()], False),
    "a loop that stores": ([ir.Loop("i", "0", "n0", stores(F4, B0, "i"))], False),
    "a loop that stores elsewhere": ([ir.Loop("i", "0", "n0", stores(F4, B1, "i"))], True),
}


def test_loads_and_stores_of_neighbours() -> None:
    body = [*places(0, 1, 2, 3), *loads(F4, B0, *FOUR), *stores(F4, B1, *FOUR)]
    assert made(body) == [("load", "p0", VALUES), ("store", "p0", VALUES)]
    assert len(vectorise(body)) == 6


@pytest.mark.parametrize("name", BETWEEN)
def test_what_stands_between(name: str) -> None:
    between, together = BETWEEN[name]
    for body in (loads(F4, B0, *FOUR), stores(F4, B0, *FOUR)):
        split = [*places(0, 1, 2, 3), *body[:1], *between, *body[1:]]
        assert (len(made(split)[0][2]) == 4) is together


def test_at_most_sixteen_bytes() -> None:
    ten = tuple(f"p{k}" for k in range(10))
    body = places(*range(10))
    assert [len(names) for _, _, names in made([*body, *loads(F8, B0, *ten)])] == [2] * 5
    assert [len(names) for _, _, names in made([*body, *loads(F4, B0, *ten)])] == [4, 4, 2]
    assert [len(names) for _, _, names in made([*body, *loads(I1, B0, *ten)])] == [8, 2]
    assert made([*body, *loads(C16, B0, *ten)]) == []


def test_strides_and_sums_are_followed() -> None:
    body = [
        ir.Integer("a", "mul", "p", "3"), *places(1, 2, base="a"), ir.Integer("q", "add", "p", "1"), ir.Integer("b", "mul", "q", "3"),
        *loads(F4, B0, "a", "a1", "a2", "b"),
    ]  # fmt: skip
    assert made(body) == [("load", "a", ("va", "va1", "va2", "vb"))]
    forms = [ir.Integer("x", "add", "n0", "p"), ir.Integer("y", "sub", "x", "n0"), ir.Integer("z", "add", "y", "1")]
    assert made([*forms, *loads(F4, B0, "p", "z")]) == [("load", "p", ("vp", "vz"))]


def test_what_is_left_alone() -> None:
    where = places(0, 1, 2, 3)
    assert made([*where, *loads(F4, B0, *FOUR, guard="c")]) == []
    assert made([*where, *loads(F4, SHARED, *FOUR)]) == []
    assert made([*where, *loads(F4, B0, "p3", "p2", "p1", "p0")]) == []  # the first index is not known at the first load
    assert made([*where, ir.Integer("m", "mul", "p", "n0"), *loads(F4, B0, "p", "m")]) == []


def test_inside_loops_and_conditions() -> None:
    body = [*places(0, 1, 2, 3), *loads(F4, B0, *FOUR)]
    (inside,) = vectorise([ir.If("c", [ir.Loop("i", "0", "9", body, False, "2")])])
    assert isinstance(inside, ir.If)
    (loop,) = inside.body
    assert isinstance(loop, ir.Loop)
    assert loop.step == "2"
    assert sum(isinstance(s, ir.LoadVector) for s in loop.body) == 1
