"""The defined order of sums, written down a second time and compared to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.numpy import ordered
from lazynp.codegen.reduce import PARTIAL, PIECE
from lazynp.engine.realize import forget_plans
from lazynp.schedule.chunks import CHUNK, LANES, ROWS
from lazynp.values import config
from tests.codegen.engines import bits

pytestmark = pytest.mark.usefixtures("recorded")

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
    """An outer axis is reduced: blocks of rows in order, combined as a binary counter does."""
    combine, start = OPERATIONS[name]
    blocks = []
    for k in range(0, len(x), ROWS):
        block = numpy.full(x.shape[1:], start, x.dtype)
        for row in x[k : k + ROWS]:
            block = combine(block, row)
        blocks.append(block)
    return counted(blocks, combine)


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


ROW_COUNTS = [1, 3, 4, 5, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS, 2 * ROWS + 1, 7 * ROWS + 3, PIECE, PIECE + 1, 3 * PIECE + 2 * ROWS + 1]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize("columns", [1, 6])
def test_blocks_of_rows_are_combined_in_pairs_where_columns_are_left(rows: int, columns: int, name: str) -> None:
    x = numbers(rows, columns, 2)
    expected = by_rows(x, name)
    for threads in (1, 3):
        with config.override(threads=threads):
            assert bits(numpy.asarray(getattr(np.asarray(x) * 1, name)(axis=0))) == bits(expected)
    # One axis between others, and without a compiled kernel.
    middle = numpy.ascontiguousarray(numpy.moveaxis(x, 0, 1))
    assert bits(numpy.asarray(getattr(np.asarray(middle) * 1, name)(axis=1))) == bits(expected)
    loop, identity = OPERATIONS[name]
    for y, axis in ((x, 0), (middle, 1)):
        assert bits(ordered.reduce(loop.__name__, y, (axis,), x.dtype.type(identity))) == bits(expected)


def test_many_blocks_of_rows() -> None:
    x = numbers(1023 * ROWS + 1, 2)
    expected = bits(by_rows(x, "sum"))
    for threads in (1, 2):
        with config.override(threads=threads):
            assert bits(numpy.asarray((np.asarray(x) * 1).sum(axis=0))) == expected
    assert bits(ordered.reduce("add", x, (0,), numpy.float32(0))) == expected


def test_a_plan_for_all_numbers_of_rows_has_the_bits_of_each() -> None:
    for rows in (300, 700, 2000, 2 * PIECE, 2 * PIECE + 1, 5 * PIECE + ROWS, 17 * PIECE):
        for columns in (3, 5):
            x = numbers(rows, columns)
            assert bits(numpy.asarray((np.asarray(x) * 1).sum(axis=0))) == bits(by_rows(x, "sum"))


@pytest.mark.parametrize("rows", [3, ROWS, 5 * ROWS + 7, PIECE + 5])
def test_passes_over_columns_have_the_order_of_one(rows: int) -> None:
    x = numbers(rows, 7, seed=rows)
    y = np.asarray(x) * 1
    centred = x - by_rows(x, "sum") / x.dtype.type(rows)
    expected = by_rows(centred, "sum")
    got = (y - y.sum(axis=0) / numpy.float32(rows)).sum(axis=0)
    assert bits(numpy.asarray(got)) == bits(expected)
    both = y.sum(axis=0) + y.prod(axis=0), (y - y.sum(axis=0)).sum(axis=0)
    np.realize(*both)
    assert bits(numpy.asarray(both[0])) == bits(by_rows(x, "sum") + by_rows(x, "prod"))


def test_columns_of_nothing_are_the_identity() -> None:
    x = np.asarray(numbers(0, 5))
    assert bits(numpy.asarray(x.sum(axis=0))) == bits(numpy.zeros(5, "f4"))
    assert bits(ordered.reduce("multiply", numbers(0, 5), (0,), numpy.float32(1))) == bits(numpy.ones(5, "f4"))


def test_halves_accumulate_in_single_precision() -> None:
    x = numbers(1000, kind="f2")
    expected = in_order(x.astype("f4"), "sum").astype("f2")
    assert bits(numpy.asarray(np.asarray(x).sum())) == bits(numpy.asarray(expected))
