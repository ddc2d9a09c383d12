"""The cost model: what is decided of which counts; and that no pass weighs a number of its own."""

from __future__ import annotations

import ast
import inspect
import re
from types import ModuleType

import pytest

from lazynp.schedule import claims, cost, fuse, lower, memory, movement, order, rangeify, simplify
from lazynp.schedule.cost import recompute_or_store

BIG = 1 << 24


@pytest.mark.parametrize(
    ("size", "evaluations", "points", "estimate", "one_kernel", "store", "words"),
    [
        (BIG, BIG, 1, 1e9, True, False, "used once"),
        (BIG, 2 * BIG, 2, 1.0, True, False, "cheaper computed 2 times"),
        (BIG, 2 * BIG, 2, 50.0, True, True, "at several indices of one kernel"),
        (BIG, 2 * BIG, 2, 50.0, False, True, "by several kernels"),
        (1000, 1000 * BIG, 1, 20.0, True, True, "repeatedly along a broadcast axis"),
        (10, 40, 4, 50.0, False, False, "cheaper"),  # a launch costs more than a few elements computed again
    ],
)
def test_recompute_or_store(
    size: int, evaluations: int, points: int, estimate: float, one_kernel: bool, store: bool, words: str
) -> None:
    decision = recompute_or_store(size, evaluations, points, estimate, one_kernel)
    assert (decision.store, words in decision.reason) == (store, True), decision


def test_dearer_values_are_never_computed_again_where_cheaper_ones_are_stored() -> None:
    for evaluations in (2, 3, 10):
        decisions = [recompute_or_store(1 << 16, evaluations << 16, 2, estimate, True).store for estimate in range(100)]
        assert decisions == sorted(decisions)


@pytest.mark.parametrize("module", [claims, fuse, lower, memory, movement, order, rangeify, simplify], ids=lambda m: m.__name__)
def test_passes_weigh_no_numbers_of_their_own(module: ModuleType) -> None:
    constants = [node.value for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Constant)]
    assert {n for n in constants if isinstance(n, int | float) and not isinstance(n, bool)} <= {0, 1, 2}


def test_each_weight_says_its_reason() -> None:
    weights = re.findall(r"^([A-Z_]+) = [^#\n]*(#.*)?$", inspect.getsource(cost), re.MULTILINE)
    assert len(weights) > 20
    assert not [name for name, reason in weights if not reason]
