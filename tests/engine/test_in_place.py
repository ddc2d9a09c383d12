"""Large arrays that are written over need no second array; whoever holds the old value keeps it, and nothing is lost on the way."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.array import core
from lazynp.arrays import root_node
from lazynp.backends.common import compiled
from lazynp.engine import in_place, realize
from lazynp.graph import report
from lazynp.values import allocator, config, pressure
from tests.array import chained

SIZE = 60


@pytest.fixture(autouse=True, params=["auto", "compiled"])
def everything_is_large(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every array is large, and a piece has three elements."""
    monkeypatch.setattr(pressure, "ALONE_FROM", 1)
    monkeypatch.setattr(pressure, "COUNTED_FROM", 1)
    monkeypatch.setattr(in_place, "PIECE", 24)
    realize.forget_plans()
    with config.override(tier=request.param, tape_limit=0):
        yield
    realize.forget_plans()


def fresh(xp: Any, *shape: int) -> Any:
    return xp.asarray(numpy.linspace(0.5, 3.0, int(numpy.prod(shape))).reshape(shape).copy()) + 0.25


def made(xp: Any, *shape: int) -> Any:
    """An array that exists."""
    x = fresh(xp, *shape)
    if xp is np:
        x.realize()
    return x


UPDATES = """
x += 1.0
x *= 0.5; x -= x.mean(); x /= 3
np.sin(x, out=x)
x[...] = np.where(x > 1, x * x, -x)
x[:] = x[:] * 2 + 1
x += x.sum(axis=1, keepdims=True)
x += np.arange(20.0)
x *= np.arange(20.0)[:, None]
x += 1; x[1:-1, 1:-1] *= 2
x += 1; x[::-1, ::2] += 1
x += 1; x[::2] = x[1::2] * 3
x += 1; x[:10] -= x[10:]; x *= 2
x += 1; x[:, 1:] = 0; x += x
x += 1; x[2:8] = np.sqrt(x[2:8]) + x[0]
x **= 2; x %= 3; x //= 0.5
x += 1; x[3] = 5
x += (x > 1)
x += x.T.sum(axis=0)[:, None]
""".strip().splitlines()


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("turns", [1, 3])
def test_as_numpy_does_and_in_place(update: str, turns: int) -> None:
    theirs, ours = {"np": numpy, "x": fresh(numpy, 20, 20)}, {"np": np, "x": made(np, 20, 20)}
    before = report.work.in_place
    for _ in range(turns):
        exec(update, theirs)
        exec(update, ours)
        ours["x"].realize()
    numpy.testing.assert_allclose(numpy.asarray(ours["x"]), theirs["x"], rtol=1e-13, atol=1e-13)
    assert report.work.in_place > before


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 9), (2, 11), (3, 1, 5), (2, 2, 2, 4), (0, 3)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "?"])
def test_shapes(shape: tuple[int, ...], dtype: str) -> None:
    values = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x, y = np.array(values), values.copy()
    for array, xp in ((x, np), (y, numpy)):
        for _ in range(2):
            xp.add(array, array, out=array)
            xp.multiply(array, array, out=array)
    numpy.testing.assert_array_equal(numpy.asarray(x), y)


def test_broadcast_operands_are_not_the_memory() -> None:
    x, row = made(np, 10, 6), made(np, 1, 6)
    expected = numpy.asarray(x) + numpy.asarray(row)
    x[...] = row + x
    del row
    numpy.testing.assert_array_equal(numpy.asarray(x), expected)


ALONE = """
x += 1.0
x += y
x *= y
x[::2] *= 0.5
x[:20] -= x[30:50]
x[1:] /= y[1:]
x[5:25] = y[20:40]
x *= y[3]
""".strip().splitlines()


@pytest.mark.parametrize("update", ALONE)
def test_one_operation_is_written_by_its_own_loop(update: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = {"x": fresh(numpy, SIZE), "y": fresh(numpy, SIZE) * 2}, {"x": made(np, SIZE), "y": made(np, SIZE) * 2}
    ours["y"].realize()
    before = report.work.in_place

    def refused(*arguments: Any) -> Any:
        raise AssertionError("a piece is computed")

    monkeypatch.setattr(realize, "_run_piece", refused)
    for _ in range(2):
        exec(update, theirs)
        exec(update, ours)
        ours["x"].realize()
    numpy.testing.assert_array_equal(numpy.asarray(ours["x"]), theirs["x"])
    assert report.work.in_place == before + 2


def test_its_errors_are_told_once_at_its_line() -> None:
    told = []
    for xp in (numpy, np):
        space = {"x": made(xp, SIZE), "y": xp.zeros(SIZE)}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exec("x += 1.0\nx /= y\nx[3:] *= y[3:]", space)
            value = numpy.asarray(space["x"]).tolist()
        told.append(([(str(w.message), w.lineno) for w in caught], str(value)))
    assert told[0] == told[1]


# Who still wants the old value -----------------------------------------------------------------------------------------------------


HOLDERS = {
    "pending": lambda x: x * 3,
    "of the region": lambda x: x[1:-1] + 0,
    "a number": lambda x: x.sum(),
    "a copy": lambda x: x.copy(),
    "reversed": lambda x: x[::-1] + 0,
}


@pytest.mark.parametrize("name", HOLDERS)
def test_the_old_value_is_kept_for_whoever_holds_it(name: str) -> None:
    x = made(np, SIZE)
    old = numpy.array(x)
    held = HOLDERS[name](x)
    x += 1.0
    x.realize()
    x[1:-1] *= 2.0
    x.realize()
    new = old + 1
    new[1:-1] *= 2
    numpy.testing.assert_array_equal(numpy.asarray(x), new)
    numpy.testing.assert_allclose(numpy.asarray(held), HOLDERS[name](old))


def test_views_see_the_write() -> None:
    x = made(np, SIZE)
    view = x[10:20]
    assert view[0] == x[10]
    x += 1.0
    assert view[0] == x[10]
    numpy.testing.assert_array_equal(numpy.asarray(view), numpy.asarray(x)[10:20])


def test_memory_that_somebody_outside_holds_is_kept() -> None:
    x = made(np, SIZE)
    y = np.array(x)
    outside = numpy.asarray(y)
    kept = numpy.array(x)
    x += 1
    x.realize()
    numpy.testing.assert_array_equal(outside, kept)


def test_a_value_on_the_way_that_is_held_keeps_what_it_needs() -> None:
    x = made(np, SIZE)
    old = numpy.array(x)
    t = x * 2
    x[...] = t + 1
    x.realize()
    numpy.testing.assert_array_equal(numpy.asarray(t), old * 2)
    numpy.testing.assert_array_equal(numpy.asarray(x), old * 2 + 1)


# How much there is at a time --------------------------------------------------------------------------------------------------------


def test_no_second_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressure, "ALONE_FROM", 1 << 20)
    monkeypatch.setattr(in_place, "PIECE", 1 << 16)
    x = made(np, 1 << 18)
    x += 1.0
    x.realize()
    allocator.trim()
    most, allocate = [0], allocator.allocate

    def counted(size: int) -> Any:
        block = allocate(size)
        most[0] = max(most[0], allocator.in_use())
        return block

    monkeypatch.setattr(compiled, "allocate", counted)
    before = allocator.in_use()
    for _ in range(3):
        x *= 0.5
        x += 1.0
        x[1:-1] *= 1.5
        np.sin(x, out=x)
    x.realize()
    assert most[0] - before <= 4 << 16


# Errors --------------------------------------------------------------------------------------------------------------------------


def test_one_warning_an_operation_at_its_line() -> None:
    x = made(np, SIZE)
    x *= 0.0
    x.realize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x /= 0.0
        x += 1.0
        x.realize()
    assert [str(w.message) for w in caught] == ["invalid value encountered in divide"]
    assert caught[0].filename == __file__
    assert numpy.isnan(numpy.asarray(x)).all()


def test_an_error_leaves_the_new_value() -> None:
    x, y = made(np, SIZE), fresh(numpy, SIZE)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        x /= numpy.where(numpy.arange(SIZE) == 30, 0.0, 2.0)
    with numpy.errstate(divide="ignore"):
        y /= numpy.where(numpy.arange(SIZE) == 30, 0.0, 2.0)
    numpy.testing.assert_array_equal(numpy.asarray(x), y)


def test_a_warning_that_is_an_error_leaves_the_new_value() -> None:
    x, y = made(np, SIZE), fresh(numpy, SIZE)
    x[...] = x * 1e308
    with chained.told():
        warnings.simplefilter("error")  # no block: the filters that it was recorded under
        with pytest.raises(RuntimeWarning, match="overflow encountered in multiply"):
            x.realize()
    with numpy.errstate(over="ignore"):
        y *= 1e308
    numpy.testing.assert_array_equal(numpy.asarray(x), y)


# Being stopped --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("at", range(0, 22, 3))
def test_whoever_reads_a_stopped_value_goes_on(error: type[BaseException], at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = made(np, SIZE)
    expected = numpy.asarray(x * 1.0) + 1.0
    run, left = realize._run_piece, [at]

    def stopped(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise error
        found = run(*arguments)
        if left[0] == -12:
            raise error
        return found

    monkeypatch.setattr(realize, "_run_piece", stopped)
    x += 1.0
    other = x * 2
    for _ in range(3):
        try:
            numpy.asarray(x)
            break
        except error:
            continue
    left[0] = 1 << 60
    numpy.testing.assert_array_equal(numpy.asarray(x), expected)
    numpy.testing.assert_array_equal(numpy.asarray(other), expected * 2)
    x += 1.0
    numpy.testing.assert_array_equal(numpy.asarray(x), expected + 1.0)


def test_a_stopped_value_is_read_by_all_roads(monkeypatch: pytest.MonkeyPatch) -> None:
    run, left = realize._run_piece, [0]

    def stopped(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(realize, "_run_piece", stopped)

    def interrupted() -> Any:
        x = made(np, SIZE)
        x += x * 0.0 + 1.0
        left[0] = 7
        with pytest.raises(KeyboardInterrupt):
            x.realize()
        return x

    expected = fresh(numpy, SIZE) + 1.0
    assert interrupted()[7] == expected[7]
    assert interrupted().tolist() == expected.tolist()
    assert (interrupted() * 2).sum() == pytest.approx((expected * 2).sum())
    assert interrupted().nbytes == expected.nbytes
    x = interrupted()
    x[3:5] = 7.0
    expected[3:5] = 7.0
    numpy.testing.assert_array_equal(numpy.asarray(x), expected)


def test_a_handler_that_looks_at_the_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = made(np, SIZE)
    expected = numpy.asarray(x * 1.0) + 1.0
    run, seen = realize._run_piece, []

    def looking(*arguments: Any) -> Any:
        if not seen:
            seen.append(None)
            with pytest.raises(RuntimeError, match="is being written"):
                numpy.asarray(x)
        return run(*arguments)

    monkeypatch.setattr(realize, "_run_piece", looking)
    x += x * 0.0 + 1.0
    numpy.testing.assert_array_equal(numpy.asarray(x), expected)
    assert seen


@pytest.mark.parametrize("read", [lambda x: np.cumsum(x), lambda x: np.sort(x * 2), lambda x: x.reshape(4, 5).sum(axis=0) + 1])
def test_what_a_handler_asked_for_meanwhile_can_be_had_later(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It met an array that was being written, and has failed for that moment alone."""
    x = made(np, 20)
    y = None
    run = realize._run_piece

    def looking(*given: Any) -> Any:
        nonlocal y
        if y is None:
            y = read(x)
            with pytest.raises(RuntimeError, match="is being written"):
                y.realize()
        return run(*given)

    monkeypatch.setattr(realize, "_run_piece", looking)
    x *= 0.5
    x -= 1
    x.realize()
    assert y is not None
    assert numpy.asarray(y).tolist() == numpy.asarray(read(made(numpy, 20) * 0.5 - 1)).tolist()


@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_every_allocation_that_fails_leaves_the_array_right(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate, left = allocator.allocate, [1 << 60]

    def failing(size: int) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError
        return allocate(size)

    monkeypatch.setattr(compiled, "allocate", failing)
    for at in range(1, 40):
        x = made(np, SIZE)
        expected = numpy.array(x) * 2.0 + 1.0
        x *= 2.0
        x += 1.0
        left[0] = at
        with suppress(MemoryError):
            x.realize()
        left[0] = 1 << 60
        numpy.testing.assert_array_equal(numpy.asarray(x), expected)


def test_other_threads_see_the_old_or_the_new_value() -> None:
    x = made(np, 300)
    start = numpy.array(x)
    wrong: list[Any] = []
    done = threading.Event()

    def reader() -> None:
        while not done.is_set():
            change = numpy.asarray(x + 0.0) - start
            if numpy.ptp(change) > 1e-9 or abs(change[0] - round(change[0])) > 1e-9:
                wrong.append(change)

    thread = threading.Thread(target=reader)
    thread.start()
    try:
        for _ in range(20):
            x += 1.0
            x.realize()
    finally:
        done.set()
        thread.join()
    assert not wrong
    numpy.testing.assert_allclose(numpy.asarray(x), start + 20)


def test_pieces_cover_an_array_once() -> None:
    for shape in [(5,), (4, 5), (3, 2, 4), (1, 7), (2, 1, 1, 9), (50, 1)]:
        seen = numpy.zeros(shape, int)
        for starts, lengths in in_place.pieces(shape, 8):
            seen[tuple(slice(start, start + n) for start, n in zip(starts, lengths, strict=True))] += 1
        assert (seen == 1).all()


def test_the_result_of_a_write_is_a_plain_value_again() -> None:
    x = made(np, SIZE)
    for _ in range(3):
        x += 1.0
        x.realize()
    buffer = root_node(x).buffer
    assert buffer is not None
    assert buffer.exclusive() or buffer.alone()


@pytest.mark.parametrize("dtype", ["f8", "u1", "c16"])
def test_threads_copy_what_numpy_copies(dtype: str) -> None:
    rng = numpy.random.default_rng(5)
    whole = (rng.random((600, 700)) * 9).astype(dtype)
    parts: list[Any] = [
        numpy.s_[:], numpy.s_[1:-1, 1:-1], numpy.s_[::2], numpy.s_[:, ::3], numpy.s_[::-1], numpy.s_[5:6], numpy.s_[:, 3:4], numpy.s_[:0],
    ]  # fmt: skip
    core.share(1)
    try:
        for part in parts:
            for laid in (lambda x: x, lambda x: x.T.copy().T, lambda x: numpy.broadcast_to(x[:1], x.shape)):
                ours, theirs = numpy.zeros_like(whole), numpy.zeros_like(whole)
                values = laid(whole[part]) if whole[part].size else whole[part]
                core.copy_into(ours[part], values)
                theirs[part] = values
                assert ours.tobytes() == theirs.tobytes()
        ours, theirs = whole.copy(), whole.copy()
        core.copy_into(ours[1:], ours[:-1])
        theirs[1:] = theirs[:-1]
        assert ours.tobytes() == theirs.tobytes()
        with pytest.raises(ValueError, match="could not broadcast"):
            core.copy_into(ours, ours[:3])
    finally:
        core.share()


@pytest.mark.parametrize("part", ["b[:, ::-1]", "b[::-1]", "b[::-1, ::-1]", "b[1:, 1:]", "b[::2, ::2]", "b"])
@pytest.mark.parametrize("update", ["a += a.T", "np.add(a, a.T, out=a)", "a[...] = a.T", "a -= a[::-1]", "a += a[:, ::-1].T * 2"])
def test_what_reads_its_own_memory_in_another_order(update: str, part: str) -> None:
    theirs = numpy.random.default_rng(6).standard_normal((24, 24))
    found = []
    for xp in (numpy, np):
        b = xp.array(theirs)
        names = {"np": xp, "b": b}
        exec(f"a = {part}\n{update}", names)
        found.append(numpy.asarray(b).tobytes())
    assert found[0] == found[1]
