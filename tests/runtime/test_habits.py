"""Values that a loop computes on the way to one result and needs for the next: from the second turn on they are computed once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.runtime import config, habits, report
from lazynp.runtime.realize import forget_plans

N = 20_000


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    with config.override(tier="compiled"):
        forget_plans()
        habits.habits.clear()
        yield
        habits.habits.clear()


def data() -> Any:
    return numpy.random.default_rng(0).random(N) + 1


def realized(values: Any) -> Any:
    made = np.asarray(values)
    np.realize(made)
    return made


def work_of_turns(turn: Any, turns: int = 5) -> list[int]:
    """Operations that shared a kernel, by turn: what is computed again counts again."""
    found = []
    x = realized(data())
    for k in range(turns):
        report.reset()
        turn(x, k)
        found.append(report.counters()["fused_ops"])
    return found


def test_value_on_the_way_is_computed_once_a_turn() -> None:
    results = []

    def turn(x: Any, k: int) -> None:
        y = np.exp(-np.sqrt(x * (k + 1.5)))  # 4 operations
        results.append((float(y.sum()), numpy.asarray(y)))

    assert work_of_turns(turn) == [9, 5, 5, 5, 5]  # with the sum; at first the four come again
    for k, (total, y) in enumerate(results):
        expected = numpy.exp(-numpy.sqrt(data() * (k + 1.5)))
        numpy.testing.assert_allclose(y, expected, rtol=1e-15)
        numpy.testing.assert_allclose(total, expected.sum(), rtol=1e-13)


def test_what_something_new_is_computed_from_is_kept_at_once() -> None:
    def turn(x: Any, k: int) -> None:
        y = np.exp(-np.sqrt(x * (k + 1.5)))
        z = np.log(y + 1)
        assert float(z.max()) > 0
        assert float((y * 2).sum()) > 0
        assert float((z / 3).sum()) > 0

    first, *others = work_of_turns(turn)
    assert len(set(others[1:])) == 1
    assert others[-1] < first


def test_what_nobody_holds_is_not_kept_for_long() -> None:
    x = realized(data())

    def held(k: int) -> None:
        y = np.exp(x * (k + 1.5))
        float(y.sum())
        numpy.asarray(y)

    held(0)
    (habit,) = habits.habits.values()
    assert len(habit.entries) == 1
    for k in range(habits.IDLE):
        assert len(habit.entries) == 1
        float(np.exp(x * (k + 10.5)).sum())  # not in an assertion: pytest holds what is in those
    assert habit.entries == ()
    held(30)
    assert habit.entries == ()  # given up for good


def test_values_in_hand_count_as_used() -> None:
    x = realized(data())
    for k in range(6):
        y = np.exp(x * (k + 1.5))
        float(y.sum())
        if k < 2:
            numpy.asarray(y)
    (habit,) = habits.habits.values()
    assert len(habit.entries) == 1


def test_small_work_learns_nothing() -> None:
    with config.override(tier="auto"):
        x = realized(data()[:50])
        for k in range(4):
            y = np.exp(x * (k + 1.5))
            assert float(y.sum()) > 0
            numpy.asarray(y)
    assert not habits.habits


def test_failure_after_learning_leaves_other_arrays_usable() -> None:
    x = realized(data())

    def turn(place: int) -> tuple[Any, Any]:
        y = np.sqrt(x) * 2
        return y, np.take(y, realized(numpy.array([place]))).sum()

    for _ in range(3):
        y, s = turn(5)
        float(s)
        numpy.asarray(y)
    y, s = turn(3)
    index = realized(numpy.array([7]))
    bad = np.take(y, index + N)
    with pytest.raises(IndexError):
        float(bad.sum())
    numpy.testing.assert_allclose(y, numpy.sqrt(data()) * 2, rtol=1e-15)
    numpy.testing.assert_allclose(float(s), numpy.sqrt(data())[3] * 2, rtol=1e-15)
