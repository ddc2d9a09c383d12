"""The benchmark workloads compute through lazynp what they compute through NumPy, and the timing counts what it says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bench.measure import difference, pairs
from bench.peers import PEERS, host
from bench.workloads import WORKLOADS, Workload


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_workload_equals_numpy(workload: Workload) -> None:
    arrays = workload.make(np.random.default_rng(0), False)
    expected, found = (host(PEERS[name].prepare(workload, arrays)()) for name in ("numpy", "lazynp"))
    tolerance = 1e-6 if expected[0].dtype == np.float32 else 1e-13
    assert [(part.shape, part.dtype) for part in found] == [(part.shape, part.dtype) for part in expected]
    assert difference(found, expected) <= tolerance


def test_pairs_are_timed_in_turns() -> None:
    calls: list[str] = []
    now = iter(range(1000))

    def first() -> float:
        calls.append("first")
        return 1.0

    def second() -> float:
        calls.append("second")
        return 1.5

    row = pairs(first, second, seconds=0, clock=lambda: float(next(now)))
    assert row["pairs"] == 5
    assert row["difference"] == 0.5
    changes = [calls[0], *(b for a, b in pairwise(calls) if a != b)]
    # both once cold, twice warm, then the pairs with the order turned around each time
    assert changes[:6] == ["first", "second"] * 3
    assert changes[6:] == ["first", "second", "first", "second", "first", "second"]


def test_difference_is_relative_and_sees_shapes() -> None:
    assert difference(np.array([0.0, 200.0]), np.array([0.0, 100.0])) == 1.0
    assert difference(np.zeros((2, 1)), np.zeros(2)) == float("inf")


def test_goals_of_a_gpu() -> None:
    from bench import gpu

    def row(workload: str, library: str, seconds: float) -> dict[str, object]:
        return {"workload": workload, "library": library, "seconds": seconds, "bytes_per_second": 1 / seconds}

    rows = [
        row("layer norm", "lazynp", 1.0), row("layer norm", "cupy", 2.0), row("layer norm", "jax", 1.5), row("layer norm", "torch", 1.2),
        row("gelu with erf", "lazynp", 1.0), row("gelu with erf", "cupy", 32.0),
        row(gpu.K_MEANS, "lazynp", 2.0), row(gpu.K_MEANS, "cupy", 1.0),
        {"workload": "gelu with erf", "library": "jax", "error": "no"},
    ]  # fmt: skip
    found = {goal["goal"]: goal for goal in gpu.goals(rows, {"cached_ten_operations": 30e-6}, 1.1)}
    met = {name.split(",")[0]: goal["met"] for name, goal in found.items()}
    assert met == {
        "memory-bound workloads": True, "geometric mean against CuPy": True, "geometric mean against the better of JAX and torch": True,
        "cached ten operations on 100 elements": False, "scikit-learn PCA": None, "scikit-learn Ridge": None,
        "scikit-learn LogisticRegression": None, "k-means": False,
    }  # fmt: skip
    assert found["geometric mean against CuPy"]["found"] == pytest.approx(8)
    assert found["geometric mean against the better of JAX and torch"]["found"] == pytest.approx(1.2)
