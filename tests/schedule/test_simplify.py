"""The rules of ``simplify``: what is left of a program, operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.codegen import spec
from lazynp.graph import op as o
from lazynp.graph.op import Kind
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.simplify import RULES, simplify
from tests.schedule.graphs import values
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")

F8, I8, I4, F4 = (numpy.dtype(c) for c in ("f8", "i8", "i4", "f4"))


def left(program: Program) -> list[str]:
    """The operations of the simplified program, sources first; leaves are not listed."""
    made = simplify(program)
    spec.check_program(made)
    return [entry.op.name for entry in made.entries if entry.op.kind is not Kind.LEAF]


def into_zeros(step: int = 1, reduced: bool = False) -> Any:
    base = np.zeros((10, 10))
    value = values(4, 4, 5).sum(axis=2) if reduced else values(4, 4) * 2
    base[1 : 1 + 4 * step : step, 1:5] = value
    return base


TABLE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a sum of nothing is zeros": (lambda: values(0, 5).sum(axis=0) + values(5), ["expand", "add"]),
    "an axis of one element is dropped": (lambda: values(5, 1).max(axis=1) * 2, ["reshape", "multiply"]),
    "a sum of one element starts from zero": (lambda: values(5, 1).sum(axis=1) * 2, ["reshape", "add", "multiply"]),
    "a sum of one integer does not": (lambda: values(5, 1, dtype="i8").sum(axis=1) * 2, ["reshape", "multiply"]),
    "empty parts are not joined": (lambda: np.concatenate([values(0), values(3), values(4)]) * 2, ["concat", "multiply"]),
    "a part alone is the result": (lambda: np.concatenate([values(0), values(3)]) * 2, ["multiply"]),
    "a border round nothing is a fill": (lambda: np.pad(values(0), 2) + values(4), ["expand", "add"]),
    "a write into a fill is a border": (into_zeros, ["multiply", "pad"]),
    "a write in steps is none": (lambda: into_zeros(2), ["expand", "multiply", "store"]),
    "nothing is reduced behind a border": (lambda: into_zeros(reduced=True), ["expand", "reduce", "store"]),
    "exact casts are one": (lambda: values(5, dtype="i2").astype("i4").astype("f8") * 2, ["cast", "multiply"]),
    "there and back is nothing": (lambda: values(5, dtype="i2").astype("i8").astype("i2") * 2, ["multiply"]),
    "a cast that rounds stays": (lambda: values(5).astype("f4").astype("f8") * 2, ["cast", "cast", "multiply"]),
    "a transposition there and back is nothing": (lambda: values(4, 5).T.T * 2, ["multiply"]),
    "what both sides agree on needs no condition": (
        lambda: np.where(values(5) > 1, y := values(5) * 2, y) + 1, ["multiply", "add"],
    ),
    "operands of a product are turned where all they are made of is": (
        lambda: (values(40, 30).T * 2) @ values(40, 50), ["multiply", "permute", "call"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_what_is_left(name: str) -> None:
    build, expected = TABLE[name]
    assert [op for op in left(program_of(build())) if op != "output"] == expected


def test_a_product_far_from_its_transposition_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def product() -> Any:
        return (values(40, 30).T * 2 + 1) @ values(40, 50)

    assert "permute" in left(program_of(product()))[2:]
    monkeypatch.setattr(cost, "TURNED", 1)
    assert left(program_of(product()))[0] == "permute"


def test_each_rule_is_in_the_table_once() -> None:
    rules = [rule.__name__ for of in RULES.values() for rule in of]
    assert len(rules) - len(set(rules)) == 2  # what changes nothing is one rule for three movements


def test_every_entry_names_where_it_comes_from() -> None:
    program = program_of(np.concatenate([values(0), values(3).astype("f4").astype("f8")]) * 2)
    made = simplify(program)
    assert len(made.origins) == len(made.entries)
    for entry, origin in zip(made.entries, made.origins, strict=True):
        assert entry.op is program.entries[origin].op


def test_constants_of_rules_are_parameters_behind_those_of_the_user() -> None:
    program = program_of(values(0, 5).sum(axis=0) + values(5) * 3.0)
    made = simplify(program)
    numbers = sorted(entry.arg for entry in made.entries if entry.op is o.CONST)
    assert (numbers, made.constants) == ([0, 1], [0.0])


def test_what_nothing_depends_on_goes() -> None:
    a, b = Entry(o.BUFFER, (), 0, F8, (5,)), Entry(o.BUFFER, (), 1, F8, (5,))
    program = Program([a, b, Entry(o.NEGATIVE, (0,), None, F8, (5,)), Entry(o.NEGATIVE, (1,), None, F8, (5,))], (3,))
    made = simplify(program)
    assert made.entries == [b, Entry(o.NEGATIVE, (0,), None, F8, (5,))]
    assert (made.outputs, made.origins) == ((1,), [1, 3])


def test_identities_of_empty_reductions() -> None:
    for op, dtype, identity in ((o.ADD, F8, 0.0), (o.MULTIPLY, F8, 1.0), (o.BITWISE_AND, I4, -1), (o.BITWISE_OR, I8, 0)):
        program = Program([Entry(o.BUFFER, (), 0, dtype, (0, 3)), Entry(o.REDUCE, (0,), (op, (0,)), dtype, (3,))], (1,))
        made = simplify(program)
        assert ([entry.op for entry in made.entries], made.constants) == ([o.CONST, o.EXPAND], [identity]), op
        assert made.constants[0].dtype == dtype
