"""Random pads, joins and writes into parts of two and three axes, in one kernel: loops are cut where their conditions change."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config


def bordered(np: Any, seed: int) -> Any:
    """A table of random size made of arrays with borders, joined and written into one another."""
    w = random.Random(seed)
    depth = w.choice([(), (), (3,)])
    columns, rows = w.randint(4, 40), w.randint(4, 40)

    def part(n: int, m: int, level: int) -> Any:
        how = w.choice(["leaf", "pad", "rows", "columns", "write", "arithmetic"]) if level else "leaf"
        if how == "pad" and n > 2 and m > 2:
            (top, left), value = (w.randint(0, n // 2), w.randint(0, m // 2)), w.choice([0, 0, 7])
            h, k = w.randint(1, n - top), w.randint(1, m - left)
            width = [(0, 0)] * len(depth) + [(top, n - top - h), (left, m - left - k)]
            return np.pad(part(h, k, level - 1), width, constant_values=value)
        if how == "rows" and n > 1:
            k = w.randint(1, n - 1)
            return np.concatenate([part(k, m, level - 1), part(n - k, m, level - 1)], axis=-2)
        if how == "columns" and m > 1:
            k = w.randint(1, m - 1)
            return np.concatenate([part(n, k, level - 1), part(n, m - k, level - 1)], axis=-1)
        if how == "write":
            x = part(n, m, level - 1) * 1
            top, left = w.randint(0, n - 1), w.randint(0, m - 1)
            h, k = w.randint(1, n - top), w.randint(1, m - left)
            x[..., top : top + h, left : left + k] -= part(h, k, level - 1)
            return x
        if how == "arithmetic":
            return part(n, m, level - 1) * w.randint(1, 3) + part(n, m, level - 1)
        start = w.randint(0, 99)
        size = numpy.prod(depth, dtype=int) * n * m
        return np.asarray(numpy.arange(start, start + size, dtype=float).reshape(*depth, n, m))

    return part(rows, columns, 4)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_kernels_have_what_numpy_has_at_every_border(first: int) -> None:
    for seed in range(first, first + 20):
        expected = bordered(numpy, seed)
        with config.override(tape_limit=0):
            got = numpy.asarray(bordered(lazynp, seed))
        numpy.testing.assert_array_equal(got, expected, err_msg=f"seed {seed}", strict=True)
