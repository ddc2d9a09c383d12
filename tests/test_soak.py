"""A short soak: nothing is left behind by thousands of runs and operations, counted."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy
import pytest

import lazynp as np
from tests import soak

RUNS, OPERATIONS = 16_000, 100_000


@pytest.fixture(autouse=True)
def _nothing_else_is_counted() -> None:
    """What the tests before left need not be walked with each sample."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("samples", [lambda: soak.mixed(RUNS), lambda: soak.operations(OPERATIONS)], ids=["mixed", "operations"])
def test_nothing_is_left_behind(samples: object) -> None:
    found = list(samples())  # type: ignore[operator]
    assert soak.difference(found[0], found[-1]) == []


@pytest.mark.usefixtures("recorded")
def test_what_is_left_behind_is_noticed() -> None:
    kept = []

    def leaking() -> Iterator[soak.Sample]:
        for _ in range(3):
            kept.extend(np.asarray(numpy.ones(100_000)) * k for k in range(50))
            yield soak.sample()

    first, _, last = leaking()
    assert {text.partition(":")[0] for text in soak.difference(first, last)} >= {"nodes", "arrays"}
