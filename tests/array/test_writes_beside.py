"""Writes while something waits: what reads the memory that is written is computed before, and what does not goes on waiting.

In: random programs of operations, views and writes over few arrays, of which nothing is looked at before the end.  Out: failures.
Promise: NumPy is the oracle; how many tapes have run is counted.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core

LINES = 30
MOST = 12  # arrays that a program has at a time


def place(chance: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers and slices, one for each axis."""
    found: list[Any] = []
    for n in shape:
        first, step = chance.randrange(n + 1), chance.choice([1, -1, 2])
        found.append(chance.choice([chance.randrange(n) if n else slice(None), slice(first, first + 2), slice(None, None, step)]))
    return tuple(found)


def program(seed: int, np: Any) -> list[Any]:
    """Run a program; what its arrays hold in the end."""
    chance = random.Random(seed)
    n = chance.choice([3, 8, 40, 300])
    arrays = [np.arange(float(n * n)).reshape(n, n) + k for k in range(3)]
    for _ in range(LINES):
        x, y = chance.choice(arrays), chance.choice(arrays)
        way = chance.random()
        if way < 0.35:
            made = [lambda x=x, y=y: x + y, lambda x=x, y=y: np.where(x > y, x, y * 0.5), lambda x=x, y=y: np.sqrt(np.abs(x)) + y]
            arrays.append(chance.choice(made)() if x.shape == y.shape else x * 0.5 + 1)
        elif way < 0.5:
            whole = [lambda x=x: x.sum(0), lambda x=x: x.mean(1), lambda x=x: x.T, lambda x=x: x.cumsum(0)]
            view = x[tuple(slice(k % 2, None) for k in range(x.ndim))]
            arrays.append(chance.choice(whole)() if x.ndim == 2 and chance.random() < 0.5 else view)
        elif way < 0.75:
            key = place(chance, x.shape)
            shape = x[key].shape
            part = y[tuple(slice(0, k) for k in shape)] if y.ndim == len(shape) and shape else y
            if shape and part.shape == shape and chance.random() < 0.6:
                x[key] = part * 1
            else:
                x[key] = chance.choice([2, 1.5, -1])
        elif way < 0.9 and x.shape == y.shape:
            x += y * 0.25
        elif len(x):
            x[0] = x[-1] * 0.5
        if len(arrays) > MOST:
            arrays.pop(chance.randrange(3, len(arrays)))
    return [(x.shape, x.dtype, numpy.array(x).tobytes()) for x in arrays]


@pytest.mark.parametrize("first", range(0, 400, 20))
def test_random_programs(first: int) -> None:
    with numpy.errstate(all="ignore"), lazynp.errstate(all="ignore"), warnings.catch_warnings():
        for seed in range(first, first + 20):
            assert program(seed, lazynp) == program(seed, numpy), seed


@pytest.mark.parametrize("way", ["in place", "slice", "element"])
def test_what_reads_an_array_that_is_there_keeps_its_value(way: str) -> None:
    """It waited when the other one was recorded, was asked for alone, and is written then, or is given another value in place."""

    def work(np: Any) -> list[Any]:
        x = np.ones((100, 100)) * 2
        read = [x.sum(axis=0), x.T * 3, x @ x, np.concatenate([x, x]), x[:, :50].sum(axis=1)]
        x[0, 0]
        if way == "in place":
            x += x * 1
        elif way == "slice":
            x[3:5] = x[:2] * 7
        else:
            x[1, 1] = 5.0
        return [numpy.array(each) for each in (*read, x)]

    assert [each.tobytes() for each in work(lazynp)] == [each.tobytes() for each in work(numpy)]


@pytest.mark.parametrize("earlier", range(130))
def test_a_write_leaves_waiting_what_does_not_read_its_memory(earlier: int) -> None:
    """Also where the program has written beside other tapes before, which were computed since."""
    core.settle()
    a, b, c = lazynp.zeros(50), lazynp.ones(30), lazynp.ones((4, 5))
    kept = [b * 3 + 1, c + 2]
    for k in range(earlier):
        a[0] = k
    core.settle()
    del kept
    before = core.chain_counts()
    d, e = b * 2 + 1, c * 3
    a[3], a[5:8], a[::2] = 1.5, 2, b[:25]
    assert core.chain_counts() == before
    f = a + 1
    a[0] = d[0]
    assert core.chain_counts()[0] == before[0] + 2  # what is read, and what reads what is written
    assert f[0] == 1 + b[0] and numpy.array_equal(e, numpy.full((4, 5), 3.0))
    assert core.chain_counts()[0] == before[0] + 3
