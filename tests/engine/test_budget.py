"""Runs that are planned to need more than the budget are cut, where that lets inputs go."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.engine import budget
from lazynp.engine.realize import realize
from lazynp.graph import report
from lazynp.values import allocator, config, pressure

pytestmark = pytest.mark.usefixtures("recorded")

N = 1 << 17  # elements: one mebibyte
COUNT = 32


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing but the budget bounds what is pending."""
    monkeypatch.setattr(pressure, "limit", lambda: 1 << 60)
    monkeypatch.setattr(pressure._held, "bound", 1 << 60)
    allocator.trim()  # a free block that is too large would serve, and count
    report.reset()
    yield
    gc.collect()


def fresh(k: int) -> Any:
    return np.array(numpy.full(N, float(k)))


def halves() -> Any:
    """Each result is half as large as an input that nobody else holds."""
    return [np.sort(fresh(k))[::2] * 2 for k in range(COUNT)]


def most(results: list[Any]) -> int:
    """The most bytes that exist while some results are computed together."""
    samples = [pressure.held()]
    allocate = allocator.Block.__init__

    def noted(self: Any, *arguments: Any) -> None:
        allocate(self, *arguments)
        samples.append(pressure.held())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocator.Block, "__init__", noted)
        np.realize(*results)
    return max(samples)


@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_a_run_beyond_the_budget_is_cut_and_inputs_go(tier: str) -> None:
    with config.override(tier=tier, memory=8 << 20):
        before = pressure.held()
        results = halves()
        assert pressure.held() - before == COUNT * 8 * N
        peak = most(results) - before
        assert report.schedules.cuts >= 3
        assert peak <= (COUNT + 6) * 8 * N  # in one run inputs and results are there together: half as many again
        assert pressure.held() - before <= (COUNT // 2 + 1) * 8 * N
        for k, result in enumerate(results):
            numpy.testing.assert_array_equal(numpy.asarray(result), numpy.full(N // 2, 2.0 * k))


def test_without_need_nothing_is_cut_and_a_program_that_is_known_is_cut_where_the_budget_changes() -> None:
    for memory, cut in ((1 << 30, False), (8 << 20, True), (1 << 30, False), (8 << 20, True)):
        report.reset()
        with config.override(memory=memory):
            np.realize(*halves())
        assert bool(report.schedules.cuts) is cut


def test_one_result_of_many_inputs_is_cut_between_them() -> None:
    with config.override(memory=2 << 20):
        total = np.zeros(N)
        for k in range(COUNT):
            total = total + np.cumsum(np.sort(fresh(k)))
        first = budget.cut([node_of(total)])
        assert [node.shape for node in first] == [(N,)]
        value = float(total[3])
    assert value == sum(4.0 * k for k in range(COUNT))
    assert report.schedules.cuts >= 2


def test_inputs_that_pass_the_cut_are_no_gain() -> None:
    x = fresh(1)
    y = np.sort(x + 1)
    for k in range(12):
        y = np.sort(y * x + k)
    assert budget.cut([node_of(y)]) == []
    with config.override(memory=1 << 20):
        np.realize(y)  # runs as it is
    assert report.schedules.cuts == 0


def test_what_fails_after_a_cut_names_its_line_and_leaves_the_rest() -> None:
    with config.override(memory=1 << 20):
        results = halves()
        at = np.asarray(numpy.full(N, 5))
        bad = np.sort(fresh(1))[at + np.asarray(numpy.full(N, N))]
        with pytest.raises(IndexError) as raised:
            realize([node_of(result) for result in (*results, bad)], "test")
        assert "test_budget.py" in "".join(raised.value.__notes__)
        for k, result in enumerate(results):
            assert float(result[7]) == 2.0 * k


def test_budget_is_half_of_what_is_free_unless_chosen() -> None:
    assert 0 < pressure.budget() < pressure.limits.memory()
    with config.override(memory=123456):
        assert pressure.budget() == 123456 and budget.ask_from() == 123456


LIMITED = """
import resource, sys
import numpy
import {} as np
rng = numpy.random.default_rng(1)
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), -1))
stats = []
for i in range(30):
    x = np.asarray(rng.standard_normal(4_000_000))
    stats.append((x * i).mean())
    del x
print(float(sum(stats)))
"""


def limited(library: str, limit: int) -> str:
    """What is said of the statistics in so many bytes, if they do not fit."""
    run = subprocess.run([sys.executable, "-c", LIMITED.format(library), str(limit)], capture_output=True, env={**os.environ}, check=False)
    return f"{run.returncode}: {run.stderr[-2000:].decode()}" if run.returncode else ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mappings on Linux only")
def test_pending_statistics_fit_where_numpy_fits_and_64_mebibytes() -> None:
    low, high = 64, 1024  # what NumPy needs, in mebibytes
    while high - low > 4:
        middle = (low + high) // 2
        low, high = (middle, high) if limited("numpy", middle << 20) else (low, middle)
    limited("lazynp", 1 << 40)  # compiles
    assert not limited("lazynp", (high + 64) << 20)
