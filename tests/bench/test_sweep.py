"""The statements of ``bench.sweep``: both libraries run them, with the same results."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp
from bench import sweep

RANDOM = ("rng.", "argpartition", "np.partition")  # or in an order that is left open


@pytest.mark.parametrize("lent", [False, True], ids=["own", "lent"])
@pytest.mark.parametrize("call", sweep.calls())
def test_both_run_it(call: str, lent: bool) -> None:
    found = []
    for module in (numpy, lazynp):
        names = sweep.operands(module, 20, "float64", lent)
        results: list[Any] = []
        names["_force"] = results.append
        sweep._function(call, names)()
        found.append([*results, names["c"], names["w"]])
    if not any(word in call for word in RANDOM):
        for theirs, ours in zip(*found, strict=True):
            same(theirs, ours)


def same(theirs: Any, ours: Any) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            same(one, other)
    elif isinstance(theirs, bytes):
        assert ours == theirs
    elif theirs is not None:
        numpy.testing.assert_allclose(numpy.asarray(ours), theirs, rtol=1e-6)
