"""The defined order of sums, written down a second time and compared to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.codegen.reduce import CHUNK, LANES, PARTIAL, ROWS
from lazynp.engine.realize import forget_plans
from lazynp.values import config
from tests.codegen.engines import bits

Array = numpy.ndarray[Any, Any]
Combine = Callable[[Any, Any], Any]
OPERATIONS: dict[str, tuple[Combine, float]] = {"sum": (numpy.add, 0.0), "prod": (numpy.multiply, 1.0)}


@pytest.fixture(autouse=True)
def _compiled() -> Any:
    with config.override(tier="compiled"), np.errstate(all="ignore"):
        yield
    forget_plans()


def halved(lanes: list[Any], combine: Combine) -> Any:
    half = LANES // 2
    while half:
        lanes = [combine(lanes[k], lanes[k + half]) for k in range(half)]
        half //= 2
    return lanes[0]


def chunk(elements: Array, combine: Combine, start: Any) -> Any:
    lanes = [start] * LANES
    for k, x in enumerate(elements):
        lanes[k % LANES] = combine(lanes[k % LANES], x)
    return halved(lanes, combine)


def counted(results: Sequence[Any], combine: Combine) -> Any:
    """As a binary counter combines: equal powers of two pairwise, the rest from the short end."""
    stack: list[tuple[int, Any]] = []
    for x in results:
        level = 0
        while stack and stack[-1][0] == level:
            x = combine(stack.pop()[1], x)
            level += 1
        stack.append((level, x))
    total = stack.pop()[1]
    while stack:
        total = combine(stack.pop()[1], total)
    return total


def in_order(elements: Array, name: str) -> Any:
    """The innermost axis is reduced: ``elements`` in C order."""
    combine, start = OPERATIONS[name]
    start = elements.dtype.type(start)
    return counted([chunk(elements[k : k + CHUNK], combine, start) for k in range(0, len(elements), CHUNK)], combine)


def by_rows(x: Array, name: str) -> Array:
    """An outer axis is reduced: rows in order, the blocks of them in order."""
    combine, start = OPERATIONS[name]
    total = numpy.full(x.shape[1:], start, x.dtype)
    for k in range(0, len(x), ROWS):
        block = numpy.full(x.shape[1:], start, x.dtype)
        for row in x[k : k + ROWS]:
            block = combine(block, row)
        total = combine(total, block)
    return total


def numbers(*shape: int, seed: int = 0, kind: str = "f4") -> Array:
    return (1 + numpy.random.default_rng(seed).normal(size=shape) / 50).astype(kind)


LENGTHS = [1, 2, 31, 32, 33, 63, 64, 100, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 7 * CHUNK + 5]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("n", LENGTHS)
def test_elements_are_combined_in_lanes_chunks_and_pairs(n: int, name: str) -> None:
    x = numbers(n)
    assert bits(numpy.asarray(getattr(np.asarray(x), name)())) == bits(numpy.asarray(in_order(x, name)))


@pytest.mark.slow
@pytest.mark.parametrize("n", LENGTHS)
def test_rows_are_combined_alike_alone_and_fused(n: int) -> None:
    x = numbers(5, n, seed=n)
    expected = numpy.array([in_order(row, "sum") for row in x])
    y = np.asarray(x)
    assert bits(numpy.asarray(y.sum(axis=1))) == bits(expected)
    total = y.sum(axis=1, keepdims=True)
    together, ratio = total * 1, y / total
    np.realize(together, ratio)
    assert bits(numpy.asarray(together)[:, 0]) == bits(expected)
    assert bits(numpy.asarray(ratio)) == bits(x / expected[:, None])


@pytest.mark.parametrize("shape", [(3, 7, 100), (40, 1, 30), (2, 300, 3)])
def test_loops_that_are_no_single_walk_give_the_same_order(shape: tuple[int, ...]) -> None:
    wide = numbers(*shape[:-1], 2 * shape[-1])
    x = wide[..., : shape[-1]]
    total = np.asarray(wide)[..., : shape[-1]].sum()
    assert bits(numpy.asarray(total)) == bits(numpy.asarray(in_order(x.ravel(), "sum")))


def test_threads_take_whole_subtrees() -> None:
    x = numbers(2 * PARTIAL + 3 * CHUNK + 17)
    expected = bits(numpy.asarray(in_order(x, "sum")))
    for threads in (1, 3):
        with config.override(threads=threads):
            assert bits(numpy.asarray(np.asarray(x).sum())) == expected


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3])
@pytest.mark.parametrize("columns", [1, 6])
def test_rows_are_added_in_blocks_where_columns_are_left(rows: int, columns: int, name: str) -> None:
    x = numbers(rows, columns, 2)
    got = numpy.asarray(getattr(np.asarray(x), name)(axis=0))
    assert bits(got) == bits(by_rows(x, name))


def test_halves_accumulate_in_single_precision() -> None:
    x = numbers(1000, kind="f2")
    expected = in_order(x.astype("f4"), "sum").astype("f2")
    assert bits(numpy.asarray(np.asarray(x).sum())) == bits(numpy.asarray(expected))
