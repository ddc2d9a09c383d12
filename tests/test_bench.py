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
