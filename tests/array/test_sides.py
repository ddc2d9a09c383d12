"""Operations whose operands lie in short rows: many rows are computed at a time, with the bits of NumPy's loops."""

import ctypes
import mmap
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.values import config
from tests.array import chained

DTYPES = ("?", "b", "H", "i", "l", "f", "d", "e", "D")
OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (operator.add, operator.mul, operator.truediv, operator.lt, operator.eq, operator.and_)
EXPRESSIONS: tuple[Callable[[Any, Any], Any], ...] = (  # in one pass
    lambda x, y: (x + y) * x,
    lambda x, y: (x - y) / (y * y + 1),
    lambda x, y: (x * 2 < y) == (y != x),
)
SHAPES = ((700, 10), (3, 1), (2, 32), (1500, 1), (40, 31), (90, 3, 3), (5, 70, 4), (6, 3, 5, 2), (1, 7), (33, 33), (20, 75))


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=100_000):
        yield


def operands(shape: tuple[int, ...], dtype: str, seed: int) -> list[numpy.ndarray[Any, Any]]:
    """Arrays that broadcast to ``shape``, in every way of lying that a program meets."""
    rng = numpy.random.default_rng(seed)

    def some(*lengths: int) -> numpy.ndarray[Any, Any]:
        return (rng.integers(-9, 9, lengths) if dtype in "bHil?" else rng.standard_normal(lengths)).astype(dtype)

    *outer, n = shape
    wide, twice = some(*outer, n + 5), some(*[2 * k for k in shape])
    windows = numpy.lib.stride_tricks.sliding_window_view(some(outer[-1] + n - 1), n)
    return [
        some(*shape), some(n), some(*outer, 1), some(*[1] * len(shape)), some(*outer[:-1], 1, n), some(*[1] * len(outer), n),
        some(1, *[1] * (len(outer) - 1), 1), wide[..., 2 : n + 2], twice[tuple([slice(None, None, 2)] * len(shape))], windows,
        some(*shape[::-1]).T, wide[..., ::-1][..., :n],
    ]  # fmt: skip


def outcome(function: Callable[[], Any], way: str = chained.BLOCKS) -> tuple[Any, ...]:
    """What a function gives and tells, in a block, where each operation is computed at its call, or in one of the other ways."""
    with chained.hears(way) as caught:
        try:
            found = function()
        except TypeError as error:
            return (type(error),)
        array = numpy.asarray(found)
    assert array.dtype == found.dtype
    return array.dtype, array.shape, found.strides, array.tobytes(), [str(w.message) for w in caught]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_ways_of_lying(shape: tuple[int, ...], dtype: str) -> None:
    given = operands(shape, dtype, len(shape))
    ours = [lazynp.asarray(x) for x in given]
    core.chain_sizes(1, 512, 1024, chained.NEVER)
    try:
        for p, x in zip(given, ours, strict=True):
            for q, y in zip(given, ours, strict=True):
                for operate in OPERATORS + EXPRESSIONS:
                    assert outcome(lambda: operate(x, y)) == outcome(lambda: operate(p, q))  # noqa: B023 - called at once
            for number in (2, 0.5):
                for operate in (operator.sub, operator.truediv):
                    assert outcome(lambda: operate(x, number)) == outcome(lambda: operate(p, number))  # noqa: B023
                    assert outcome(lambda: operate(number, x)) == outcome(lambda: operate(number, p))  # noqa: B023
    finally:
        core.chain_sizes(*chained.SIZES[0])


@pytest.mark.parametrize("dtype", "?bHilfd")
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) == 2], ids=str)
def test_all_ways_of_lying_in_one_pass(shape: tuple[int, int], dtype: str) -> None:
    """Operations wait only where nobody else may write the memory."""
    rows, n = shape
    rng = numpy.random.default_rng(rows)
    whole = (rng.integers(1, 9, (3, 2 * rows, 2 * n)) if dtype in "bHil?" else rng.standard_normal((3, 2 * rows, 2 * n))).astype(dtype)

    def operands(xp: Any) -> list[Any]:
        given = [xp.array(x) for x in whole]
        return [
            xp.array(whole[0][:rows, :n]), given[0][:rows, :n], given[1][::2, ::2], given[1][:rows, ::2], given[2][0, :n], given[2][0, ::2],
            given[2][:rows, :1], given[2][::2, 1:2], given[2][:1, :1], xp.array(whole[1][:rows, :1]),
        ]  # fmt: skip

    before, count = core.chain_counts(), 0
    core.chain_sizes(1, 512, 1024, chained.NEVER)
    try:
        for p, x in zip(operands(numpy), operands(lazynp), strict=True):
            for q, y in zip(operands(numpy), operands(lazynp), strict=True):
                for operate in EXPRESSIONS:
                    for way in (chained.IGNORED, chained.TOLD):
                        found, wanted = outcome(lambda: operate(x, y), way), outcome(lambda: operate(p, q), way)  # noqa: B023
                        assert found == wanted
                        count += len(found) > 1
    finally:
        core.chain_sizes(*chained.SIZES[0])
    after = core.chain_counts()
    assert (after[0] - before[0] >= count > 0, after[1] - before[1]) == (True, 0)


@pytest.mark.parametrize("n", range(1, 9))
def test_nothing_is_read_behind_the_last_row(n: int) -> None:
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    forbidden = ctypes.c_void_p(numpy.frombuffer(memory, numpy.uint8).ctypes.data + page)
    assert ctypes.CDLL(None).mprotect(forbidden, page, 0) == 0
    for rows, gap in ((5, 0), (5, 1), (5, 40), (1, 0)):
        whole = numpy.frombuffer(memory, numpy.float64, rows * (n + gap) - gap, page - 8 * (rows * (n + gap) - gap))
        x = numpy.lib.stride_tricks.as_strided(whole, (rows, n), (8 * (n + gap), 8))
        one = numpy.frombuffer(memory, numpy.float64, n, page - 8 * n)
        column = numpy.ones((rows, 1))
        ours = lazynp.asarray(x), lazynp.asarray(one), lazynp.asarray(column)
        assert (ours[0] + ours[2]).tolist() == (x + column).tolist()
        assert (ours[1] + ours[2]).tolist() == (one + column).tolist()


def test_rows_that_are_longer_than_a_block_are_no_short_ones() -> None:
    p, q = numpy.random.default_rng(3).standard_normal((2, 3, 4000))
    x, y = lazynp.array(p), lazynp.array(q[0])
    core.chain_sizes(1, 5000, 1024, chained.NEVER)
    before = core.chain_counts()[0]
    try:
        for way in (chained.BLOCKS, chained.TOLD):
            assert outcome(lambda: (x + y) * (x - y) * y, way) == outcome(lambda: (p + q[0]) * (p - q[0]) * q[0], way)
        assert core.chain_counts()[0] == before + 1
    finally:
        core.chain_sizes(*chained.SIZES[0])
