"""Small parts of large arrays: read, gathered and written at the call, where the large array exists; who holds the old value keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.values import config


@pytest.fixture(autouse=True)
def _six_elements_are_small() -> Iterator[None]:
    with config.override(tape_limit=6):
        yield


def large(np: Any) -> Any:
    x = np.arange(24.0).reshape(4, 6) + 0
    if np is lazynp:
        np.realize(x)
    return x


def rows_of_a_fill(np: Any) -> Any:
    x = np.zeros((4, 6), order="F")
    first = x[0] + 1
    x[0] = first
    for i in range(1, 4):
        x[i] = 2 * x[i - 1] + x[i]
    x[:, 0] /= 3
    return first, x, x.T[1:3, 2]


def writes_beside_a_copy(np: Any) -> Any:
    x = large(np)
    y = x.copy()
    x[1] = x[0]
    x[1:3, 2] = [7, 8]
    y[:, -1] += 1
    return x, y


def writes_after_a_recorded_use(np: Any) -> Any:
    x = large(np)
    twice = x * 2
    x[2, 1:4] = np.array([1.5, 2.5, 3.5])
    return twice, x


def writes_under_views(np: Any) -> Any:
    x = large(np)
    row, column = x[1], x[:, 2]
    x[1, :3] = column[:3]
    before = row.copy()
    column[1] = -1
    x[1] = row[::-1]
    return x, row, column, before


def writes_between_whole_uses(np: Any) -> Any:
    x = large(np)
    out = []
    for i in range(4):
        x[i] = x[i] + i
        x *= 2
        out.append(x.sum())
    return x, out


def converted(np: Any) -> Any:
    x = np.zeros((4, 6), dtype="int8")
    x[1] = np.array([1.5, 2, 3, -4, 5, 6.9])
    x[2, ::2] = True
    return x


def gathers(np: Any) -> Any:
    x = large(np)
    i = np.array([3, 0, -1])
    return (
        x[i, i], x[i, 1:3], x[[2, 1], 4], x[np.array([1])], x[:, [5]][:2], x[i[:2, None], np.array([1, 2, 3])], x[-1, i], x[i], x.T[i, 1],
        x[:0, [1]], x[[]],
    )  # fmt: skip


def stacked(np: Any) -> Any:
    rows = [np.array([1, 2]), np.array([3.5, 4]), (5, np.float32(6))]
    x = np.array(rows)
    x[0] = 0
    return x, np.array([rows, rows], dtype=complex), rows[0], np.asarray([large(np)[0], large(np)[:, 0].sum() * np.ones(6)], order="F")


PROGRAMS = [
    rows_of_a_fill, writes_beside_a_copy, writes_after_a_recorded_use, writes_under_views, writes_between_whole_uses, converted, gathers,
    stacked,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_results_and_layouts_are_numpys(program: Callable[[Any], Any]) -> None:
    for got, want in zip(program(lazynp), program(numpy), strict=True):
        found = numpy.array(got)
        assert (found.dtype, found.shape) == (numpy.asarray(want).dtype, numpy.shape(want))
        assert numpy.array_equal(found, want)
        if isinstance(want, numpy.ndarray):
            assert got.strides == want.strides


def test_parts_of_an_exported_array_are_its_memory() -> None:
    x = large(lazynp)
    row = x[0]
    seen = numpy.asarray(x)
    x[0] = 5
    seen[0, 2] = 6
    assert row[:3].tolist() == seen[0, :3].tolist() == [5, 5, 6]


def test_rows_are_not_recorded() -> None:
    x = large(lazynp)
    report.reset()
    x[0] = x[1] * 2
    assert x[lazynp.array([0, 1]), 3].tolist() == [18.0, 9.0]
    assert lazynp.array([x[2], x[3] + 1])[1, 1] == 20
    assert report.counters()["forced"] == []


@pytest.mark.parametrize("key", [numpy.array([0, 9]), (slice(None), [6]), ([1, 2], [1, 2, 3]), ([0], [0], [0])], ids=repr)
def test_wrong_keys_are_numpys_errors(key: Any) -> None:
    with pytest.raises(IndexError) as theirs:
        large(numpy)[key]
    with pytest.raises(IndexError) as ours:
        large(lazynp)[key]
    assert str(ours.value) == str(theirs.value)


def test_numbers_at_hand_are_realized_already() -> None:
    total = lazynp.ones(3).sum()
    assert lazynp.realize(total) is total


def test_broadcast_arrays_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    first, second = lazynp.broadcast_arrays(lazynp.zeros(2), lazynp.ones((2, 2)))
    assert (first + second).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert not recwarn.list


OUTS = [
    "np.add(S, y, out=y)", "np.add(S, y, y)", "np.divide(S, y, out=y)", "np.subtract(S, y, out=(y,))", "np.add(y, 2, out=S)",
    "np.multiply(S, S, out=S)", "np.divmod(S, 3, out=(y, S))", "np.sum(S, axis=0, out=y[0])", "np.clip(S, 0, y + 3, out=y)",
    "np.cumsum(S, axis=0, out=y)", "np.modf(S, y, S)", "np.add(S, y, out=y, where=y < 1)", "np.maximum.accumulate(S, out=y)",
    "np.matmul(S, y + 1, out=y)", "np.dot(S, y + 1, y)", "np.round(S, 1, y)", "np.take(S, [1, 2], axis=0, out=y[:2])",
    "np.add(S, y, y[::-1])", "np.nan_to_num(S, copy=False)", "np.reshape(S, (50, -1))", "np.diagonal(S)", "np.split(S, 2)[0]",
    "np.broadcast_arrays(S, y)[0]", "np.real(S)", "np.expand_dims(S, 0)",
]  # fmt: skip


@pytest.mark.parametrize("where", ["np.zeros((50, 50))[:]", "np.ones((50, 50))", "np.ones((1000, 1000))[::20, ::20]"])
@pytest.mark.parametrize("text", OUTS)
def test_a_call_that_reads_a_part_and_writes_is_made_once(text: str, where: str) -> None:
    found = []
    for np in (numpy, lazynp):
        X = np.array(numpy.full((1000, 1000), 1.5))
        float(X[0, 0])
        y = eval(where, {"np": np})
        with numpy.errstate(all="ignore"):
            try:
                result = eval(text, {"np": np, "S": X[:50, :50], "y": y})
            except ValueError as error:  # no array for a product's result
                result = numpy.array(str(error))
        results = result if isinstance(result, tuple) else (result,)
        found.append([numpy.asarray(each).tobytes() for each in (y, X, *results)] + [[each is y for each in results]])
    assert found[0] == found[1]


def test_a_call_that_raises_after_it_wrote_is_made_once() -> None:
    found = []
    for np in (numpy, lazynp):
        X, y = np.array(numpy.full((1000, 1000), 1.5)), np.zeros(1000)[:]
        with numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
            np.divide(X[0], y, out=y)
        found.append(numpy.asarray(y).tobytes())
    assert found[0] == found[1]
