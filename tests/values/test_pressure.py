"""Pending work does not keep unbounded memory alive."""

from __future__ import annotations

import gc

import numpy
import pytest

import lazynp as np
from lazynp.graph import report
from lazynp.values import pressure
from lazynp.values.allocator import trim

pytestmark = pytest.mark.usefixtures("recorded")

SIZE = 1 << 17  # elements: one mebibyte


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    trim(0)  # a block that other tests left may be larger than what it is taken for, and counts whole
    base = pressure.held()
    monkeypatch.setattr(pressure, "limit", lambda: 8 << 20)
    monkeypatch.setattr(pressure._held, "relieved_at", base)


def reasons() -> set[str]:
    return {row.name for row in report.forced.values()}


def test_pending_means_of_many_arrays() -> None:
    base = pressure.held()
    report.reset()
    means, most = [], 0
    for k in range(60):
        x = np.asarray(numpy.full(SIZE, float(k)))
        means.append((x * 2).mean())
        most = max(most, pressure.held() - base)
    del x
    assert most < 20 << 20
    assert reasons() == {"memory limit"}
    assert [float(m) for m in means] == [2.0 * k for k in range(60)]


def test_pending_small_arrays_of_large_ones() -> None:
    base = pressure.held()
    rows, most = [], 0
    for k in range(60):
        x = np.asarray(numpy.full((128, SIZE // 128), float(k)))
        rows.append(x.sum(axis=1))
        most = max(most, pressure.held() - base)
    assert most < 20 << 20
    for k, row in enumerate(rows):
        numpy.testing.assert_array_equal(numpy.asarray(row), numpy.full(128, k * (SIZE // 128.0)))


def test_arrays_that_are_wanted_are_not_computed_again_and_again() -> None:
    report.reset()
    kept = [np.asarray(numpy.full(SIZE, float(k))) for k in range(60)]
    total = kept[0] + kept[1]
    assert sum(row.count for row in report.forced.values()) <= 1
    assert float(total[0]) == 1.0


def test_small_values_are_not_counted() -> None:
    before = pressure._held.foreign
    kept = [np.asarray(numpy.zeros(1000)) for _ in range(100)]
    assert pressure._held.foreign == before
    assert len(kept) == 100


def test_what_is_gone_is_not_counted() -> None:
    before = pressure._held.foreign
    x = np.array(numpy.zeros(SIZE))
    assert pressure._held.foreign - before == SIZE * 8
    del x
    assert pressure._held.foreign == before


# What only pending work holds --------------------------------------------------------------------------------------------


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> int:
    """Nothing but eight mebibytes of slack and a quarter of what is held; returns what is held at the start."""
    monkeypatch.setattr(pressure, "limit", lambda: 1 << 60)
    monkeypatch.setattr(pressure, "SLACK", 8 << 20)
    base = pressure.held()
    monkeypatch.setattr(pressure._held, "bound", base + (8 << 20))
    return base


def test_what_only_pending_work_holds_is_bounded_by_what_the_program_holds(little: int) -> None:
    kept = [np.asarray(numpy.full(SIZE, 1.0)) for _ in range(8)]
    means, most = [], 0
    for k in range(100):
        x = np.asarray(numpy.full(SIZE, float(k)))
        means.append((x * 2).mean())
        most = max(most, pressure.held() - little)
    assert most < (24 << 20) + little // 4
    assert [float(m) for m in means] == [2.0 * k for k in range(100)]
    assert len(kept) == 8


def test_what_would_free_nothing_stays_pending(little: int) -> None:
    """The values are somebody's, or the results are as large."""
    kept = [np.asarray(numpy.full(SIZE, float(k))) for k in range(30)]
    sums = [x.sum() for x in kept]
    grown = [np.asarray(numpy.full(SIZE, float(k))) + 1 for k in range(30)]
    assert all(x._node.buffer is None for x in (*sums, *grown))
    assert pressure.held_only_by([x._node for x in sums]) == ([], 0)
    worth, only = pressure.held_only_by([x._node for x in grown])
    assert not worth and only == 30 * 8 * SIZE
    assert [float(s) for s in sums] == [float(k * SIZE) for k in range(30)]


def test_results_of_the_same_values_are_weighed_together(little: int) -> None:
    x, y = (np.asarray(numpy.full(SIZE, 1.0)) for _ in range(2))
    pending = [x.sum(), x + 1, y.sum(), y.max()]
    nodes = [p._node for p in pending]
    del x, y
    worth, only = pressure.held_only_by(nodes)
    assert worth == nodes[2:] and only == 2 * 8 * SIZE


def test_what_a_run_read_last_is_let_go_by_what_is_pending(little: int) -> None:
    """The run that makes the next state looks for what only pending numbers hold, its own inputs among it."""
    u, seen, most = np.asarray(numpy.ones((512, 2048))), [], 0
    for k in range(12):
        new = u.copy()
        new[1:-1] = 0.5 * (u[:-2] + u[2:])
        if k % 4 == 0:
            seen.append(abs(new - u).max())
        u = new
        most = max(most, pressure.held() - little)
    assert [float(x) for x in seen] == [0.0] * 3
    assert most <= 3 * (8 << 20) + (1 << 20)
