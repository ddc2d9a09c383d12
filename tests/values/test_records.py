"""Records: what data classes with slots would do, for less."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple

import pytest

from lazynp.values.records import Record, Row, field


class Point(Record):
    """A place."""

    x: int
    y: int = 2
    marks: list[str] = field(factory=list)

    def total(self) -> int:
        return self.x + self.y


class Other(Record):
    x: int
    y: int = 2
    marks: list[str] = field(factory=list)


def test_fields_by_position_and_by_name() -> None:
    point = Point(1)
    assert (point.x, point.y, point.marks, point.total()) == (1, 2, [], 3)
    point = Point(1, y=5, marks=["a"])
    assert (point.x, point.y, point.marks, point.total()) == (1, 5, ["a"], 6)


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_other_arguments_are_errors(arguments: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Point(*arguments, **named)  # type: ignore[arg-type]


def test_defaults_are_made_anew() -> None:
    assert Point(1).marks is not Point(1).marks


def test_equality_is_of_fields_within_a_class() -> None:
    assert Point(1) == Point(1, 2, [])
    assert Point(1) != Point(1, 3)
    assert Point(1) != Other(1)
    with pytest.raises(TypeError):
        hash(Point(1))  # its fields may change


def test_there_are_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]
    assert not hasattr(Point(1), "__dict__")


def test_patterns_and_text() -> None:
    match Point(1, 4):
        case Point(x, y):
            assert (x, y) == (1, 4)
    assert repr(Point(1)) == "Point(x=1, y=2, marks=[])"


class Pair(Row):
    """Two of a kind."""

    first: int
    second: int = 2

    def total(self) -> int:
        return self.first + self.second


class Named(NamedTuple):
    first: int
    second: int = 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda of: tuple(of(1)), lambda of: (of(1, 5).first, of(first=1, second=5).second), lambda of: of(1) == (1, 2),
        lambda of: hash(of(3)), lambda of: of(1)._replace(second=7), lambda of: of(1)._asdict(), lambda of: of._make([4, 5]),
        lambda of: of._fields, lambda of: of.__match_args__, lambda of: [*of(8, 9)], lambda of: hasattr(of(1), "__dict__"),
        lambda of: copy.deepcopy(of(1, 3)),
        lambda of: pickle.loads(pickle.dumps(of(1, 3))), lambda of: str(of(1)).partition("(")[2], lambda of: of(1) < of(2),
    ],
)  # fmt: skip
def test_rows_are_named_tuples(ask: Any) -> None:
    assert ask(Pair) == ask(Named)
    assert type(pickle.loads(pickle.dumps(Pair(1)))) is type(Pair(1)._replace(first=2)) is Pair
    assert Pair(1).total() == 3


@pytest.mark.parametrize(
    "ask",
    [lambda of: of(), lambda of: of(1, 2, 3), lambda of: of(1, first=1), lambda of: of(1, third=3), lambda of: of(1)._replace(third=3)],
)
def test_rows_refuse_what_named_tuples_refuse(ask: Any) -> None:
    for of in (Pair, Named):
        with pytest.raises((TypeError, ValueError)):
            ask(of)
    with pytest.raises(AttributeError):
        Pair(1).first = 3  # type: ignore[misc]
