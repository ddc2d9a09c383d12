"""The way from an expression to its kernel, and through a cached schedule, leads through few files, and seldom from one to another."""

from __future__ import annotations

from bench.walks import walk, walks
from lazynp.values import config


def test_walks_stay_short() -> None:
    changes = {name: found.changes for name, found in walks()}
    assert changes["record np.exp(-x * x)"] <= 10
    assert changes["from canonical form to source"] <= 120
    assert changes["realize it, cached"] <= 20


def test_a_walk_counts_the_functions_of_the_package() -> None:
    found = walk(lambda: config.device_name("cuda"))
    assert found.files == ["values/config.py"] and found.changes == 0
    assert walk(lambda: sorted([2, 1], key=lambda x: x)) == ([], 0)
