"""Numbers that were computed from a buffer once are not computed again, until the array is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.graph import report

pytestmark = pytest.mark.usefixtures("recorded")

SIZE = 5000
ASKED: dict[str, Callable[[Any], Any]] = {
    "finite sum": lambda x: bool(np.isfinite(np.sum(x))),
    "maximum": lambda x: float(x.max()),
    "any below": lambda x: bool(np.any(x < 0.25)),
    "all of a column": lambda x: bool((x.reshape(-1, 5)[:, 2] >= 0).all()),
    "mean of a slice": lambda x: float(x[7:4000:3].mean()),
    "position": lambda x: int(np.argmax(x)),
}


@pytest.fixture
def x() -> Any:
    report.reset()
    return np.asarray(numpy.random.default_rng(0).random(SIZE))


def computed(action: Callable[[], Any]) -> tuple[int, int]:
    """How many programs ran, and how many values were known."""
    before = report.schedules.hits + report.schedules.misses, report.schedules.remembered
    action()
    return report.schedules.hits + report.schedules.misses - before[0], report.schedules.remembered - before[1]


@pytest.mark.parametrize("name", ASKED)
def test_a_number_is_computed_once(x: Any, name: str) -> None:
    ask = ASKED[name]
    first = ask(x)
    assert computed(lambda: ask(x)) == (0, 1)
    assert ask(x) == first
    forced = sum(row["count"] for row in report.counters()["forced"])
    assert forced == 1


@pytest.mark.parametrize("name", ASKED)
def test_a_write_ends_it(x: Any, name: str) -> None:
    ask = ASKED[name]
    y = numpy.asarray(x).copy()
    ask(x)
    for k, value in ((0, 3.0), (2, -1.0), (7, 50.0)):
        x[k] = y[k] = value
        want = ask(y)
        assert ask(x) == pytest.approx(want, rel=1e-13)
        assert ask(x) == pytest.approx(want, rel=1e-13)
    x[...] = numpy.nan
    assert not np.isfinite(np.sum(x))


def test_a_copy_and_a_view_know_their_own(x: Any) -> None:
    top = float(x.max())
    y = x.copy()
    y[0] = 2.0
    x[1] = 3.0
    assert (float(y.max()), float(x.max())) == (2.0, 3.0)
    assert top < 1
    view = x[100:]
    assert computed(lambda: float(view.max()))[1] == 0  # not a fact of the whole


def test_parameters_tell_facts_apart(x: Any) -> None:
    counts = [int(np.count_nonzero(x < limit)) for limit in (0.1, 0.5, 0.1, 0.5)]
    assert counts[:2] == counts[2:]
    assert counts[0] < counts[1]
    assert [float(x[k:].sum()) > float(x[k + 1 :].sum()) for k in (3, 9)] == [True, True]
    zeros = [float(np.sum(np.copysign(x, zero))) for zero in (0.0, -0.0, 0.0, -0.0)]
    assert zeros[0] == zeros[2] == -zeros[1] == -zeros[3]


def test_warnings_come_again(x: Any) -> None:
    x[:3] = 1e308
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert float(np.sum(x)) == numpy.inf
    with np.errstate(over="ignore"):
        assert float(np.sum(x)) == numpy.inf
        assert float(np.sum(x)) == numpy.inf
    with pytest.warns(RuntimeWarning, match="overflow"):
        float(np.sum(x))


def test_different_values_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = numpy.random.default_rng(0).integers(0, 5, SIZE)
    y = np.array(labels)
    calls = []
    monkeypatch.setattr(numpy, "unique", lambda *args, _old=numpy.unique, **options: calls.append(1) or _old(*args, **options))
    for _ in range(3):
        assert np.unique_values(y).tolist() == [0, 1, 2, 3, 4]
    assert len(calls) == 1
    changes = (lambda u: u.__setitem__(0, 9), lambda u: u.sort(), lambda u: u.__imul__(2), lambda u: u[1:].fill(0), lambda u: u.__iadd__(u))
    for change in changes:
        u = np.unique_values(y)
        change(u)
        numpy.asarray(u)
        assert np.unique_values(y).tolist() == [0, 1, 2, 3, 4]
    y[7] = 77
    assert np.unique(y).tolist() == np.unique(y.reshape(-1, 10)).tolist() == [0, 1, 2, 3, 4, 77]
    assert np.unique(y[8:], return_counts=True)[1].tolist() == numpy.unique(labels[8:], return_counts=True)[1].tolist()
    z = np.asarray([1.0, numpy.nan, numpy.nan] * 1000)
    assert [np.unique(z).size, np.unique(z, equal_nan=False).size] * 2 == [2, 2001] * 2
    assert np.unique(z).size == 2


def test_small_arrays_and_pairs_are_not_remembered(x: Any) -> None:
    small = np.asarray(numpy.ones(10))
    float(small.sum())
    assert computed(lambda: float(small.sum())) == (1, 0)
    y = np.asarray(numpy.ones(SIZE))
    float((x + y).sum())
    assert computed(lambda: float((x + y).sum())) == (1, 0)


def test_many_facts_of_one_array(x: Any) -> None:
    limits = numpy.linspace(0, 1, 200)
    y = numpy.asarray(x)
    for _ in range(2):
        assert [int(np.sum(x < limit)) for limit in limits] == [int(numpy.sum(y < limit)) for limit in limits]


def test_threads_agree(x: Any) -> None:
    want = {name: ask(numpy.asarray(x)) for name, ask in ASKED.items()}
    wrong: list[str] = []

    def work() -> None:
        for _ in range(20):
            wrong.extend(name for name, ask in ASKED.items() if ask(x) != pytest.approx(want[name], rel=1e-13))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
