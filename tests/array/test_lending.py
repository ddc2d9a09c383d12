"""Exports: NumPy sees an array's memory, may write there, and lazynp sees what was written, as NumPy's arrays do."""

from __future__ import annotations

import gc
import io
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.storage import host, is_lent
from lazynp.values import config
from tests.array import chained

MAKERS: dict[str, Callable[[Any], Any]] = {
    "empty": lambda np: np.empty((3, 4)),
    "zeros": lambda np: np.zeros((3, 4), np.int16),
    "ones": lambda np: np.ones((3, 4), complex),
    "full": lambda np: np.full((3, 4), 2.5, np.float32),
    "columns": lambda np: np.full((3, 4), 2.5, order="F"),
    "like": lambda np: np.zeros_like(np.arange(12.0).reshape(3, 4)),
    "slice": lambda np: np.zeros((6, 9))[::2, 1:5],
    "turned": lambda np: np.zeros((4, 3)).T,
    "large": lambda np: np.zeros((3, 100_000))[:, :4],
    "nothing": lambda np: np.zeros((3, 0)),
    "computed": lambda np: np.arange(12.0).reshape(3, 4) * 2,
    "slice of what was computed": lambda np: (np.arange(54) - 3).reshape(6, 9)[::2, 5:1:-1],
    "listed": lambda np: np.array([[1.0, 2, 3, 4]] * 3).T.copy("F").T,
    "part": lambda np: (np.arange(12).reshape(3, 4) * 1j).real,
    "written": lambda np: np.add.outer(np.arange(3), np.arange(4)).cumsum(0),
}


def lent(x: Any) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(x)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("export", [lent, lambda x: x.__array__(), lambda x: numpy.array(x, copy=False)], ids=["asarray", "method", "copy"])
def test_both_sides_see_what_is_written(make: Callable[[Any], Any], export: Callable[[Any], Any]) -> None:
    x = make(lazynp)
    pending = x * 2
    seen = export(x)
    like, values = make(numpy), numpy.array(make(lazynp))
    assert seen.flags.writeable
    assert (seen.shape, seen.dtype) == (like.shape, like.dtype)
    assert seen.strides == like.strides or not seen.size
    before = x + 1
    seen[1:] = 7
    assert numpy.array_equal(x, seen)
    x[:, ::2] = 3
    assert (seen[:, ::2] == 3).all()
    assert numpy.shares_memory(seen, numpy.asarray(x)) == (seen.size > 0)
    assert numpy.array_equal(before, values + 1)
    assert numpy.array_equal(pending, values * 2)
    assert numpy.shares_memory(x, seen) == (seen.size > 0)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda np, x: x.__setitem__(..., np.arange(4.0)),
    "element": lambda np, x: x.__setitem__((1, 2), 5),
    "mask": lambda np, x: x.__setitem__(x == 0, 4),
    "positions": lambda np, x: x.__setitem__(([0, 1], [2, 3]), [1, 2]),
    "in place": lambda np, x: x.__iadd__(np.arange(3.0)[:, None]),
    "out": lambda np, x: np.add(x, 2, out=x),
    "out of a reduction": lambda np, x: np.sum(np.ones((2, 3, 4)), axis=0, out=x),
    "fill": lambda np, x: x.fill(6),
    "copyto": lambda np, x: np.copyto(x, 8),
    "put": lambda np, x: np.put(x, [0, 5], [1, 2]),
    "view": lambda np, x: x.T[1:].__setitem__(..., 9),
    "at": lambda np, x: np.add.at(x, (0, 1), 3),
    "sort": lambda np, x: (x.__setitem__(..., -np.arange(4.0)), x.sort())[0],
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_write_is_seen_outside(write: Callable[[Any, Any], Any]) -> None:
    x, theirs = lazynp.zeros((3, 4)), numpy.zeros((3, 4))
    seen = numpy.asarray(x)
    seen[0] = theirs[0] = 1
    write(lazynp, x)
    write(numpy, theirs)
    assert numpy.array_equal(seen, theirs)
    assert numpy.array_equal(x, theirs)


@pytest.mark.usefixtures("recorded")
def test_what_is_nobodys_memory_is_readonly_or_a_copy() -> None:
    readonly = lazynp.zeros(3)
    readonly.flags.writeable = False
    for x in (readonly, readonly[1:], lazynp.broadcast_to(0.0, (3,))):
        assert not numpy.asarray(x).flags.writeable
    for copy in (numpy.array(lazynp.zeros(3)), numpy.asarray(lazynp.zeros(3), dtype=int), lazynp.zeros(3).to_numpy(copy=True)):
        assert copy.flags.writeable


def test_memory_is_ours_again_when_nobody_outside_has_it() -> None:
    x = lazynp.zeros(100_000)
    part = numpy.asarray(x)[10:]
    part[0] = 5
    y = x + x  # two reads, of one moment
    part[0] = 6
    assert float(y[10]) == 10
    assert float((x + x)[10]) == 12
    del part
    gc.collect()
    z = (x * 2).realize()
    seen = numpy.asarray(x)  # lent again: this is what the array is for
    seen[10] = 1
    assert (float(z[10]), float(x[10])) == (12, 1)


def test_threads_fill_parts_of_one_array() -> None:
    with ThreadPoolExecutor(8) as pool:
        for turn in range(200):
            x = lazynp.empty((8, 50), int)

            def fill(i: int, x: Any = x, turn: int = turn) -> None:
                numpy.asarray(x[i])[...] = i + turn

            list(pool.map(fill, range(8)))
            assert x[:, -1].tolist() == list(range(turn, turn + 8))


def test_the_memory_outlives_the_array() -> None:
    x = lazynp.zeros(1000)
    seen = numpy.asarray(x)[5:]
    del x
    gc.collect()
    for _ in range(20):
        lazynp.ones(1000).realize()
    assert not seen.any()
    seen[...] = 3
    assert (seen == 3).all()


def test_lending_computes_nothing() -> None:
    x = lazynp.empty(10)
    report.reset()
    numpy.asarray(x)[...] = 2
    assert not report.forced
    assert float(x.sum()) == 20


def test_libraries_fill_what_they_are_given() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    image, kernel = numpy.arange(20.0).reshape(4, 5), numpy.ones((3, 3))
    out = lazynp.empty((4, 5))
    for mode in ("constant", "nearest"):  # the same array twice, read in between
        expected = ndimage.correlate(image, kernel, mode=mode)
        ndimage.correlate(lazynp.asarray(image), lazynp.asarray(kernel), output=out, mode=mode)
        assert numpy.array_equal(out + 0, expected)
    buffer = lazynp.zeros(16, numpy.uint8)
    assert io.BytesIO(bytes(range(16))).readinto(numpy.asarray(buffer)) == 16
    assert buffer.tolist() == list(range(16))


@pytest.mark.usefixtures("recorded")
def test_what_is_raised_while_an_export_is_computed_is_heard() -> None:
    for export in (numpy.asarray, lambda x: x.data, lambda x: x.__array_interface__, numpy.from_dlpack, lambda x: numpy.array([x, x])):
        x = lazynp.log(lazynp.zeros(3) * 2)
        with chained.told():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                export(x)
        assert numpy.isneginf(numpy.asarray(x)).all()


def test_snapshots_of_what_was_not_written_are_one() -> None:
    x = lazynp.arange(300_000.0) * 3
    seen = numpy.asarray(x)
    y, z = x + 1, x * 2
    assert len(lazynp.schedule(y.sum() + z.sum() + x.sum()).items) == len(lazynp.schedule((y * z * y).sum()).items)
    for at in (0, 150_000, 299_999):
        seen[at] = -1
        w = x + 0
        assert (float(w[at]), float(y[at]), float(z[at])) == (-1, at * 3 + 1, at * 6)


def test_a_shape_that_is_set_keeps_the_memory() -> None:
    x = lazynp.arange(12.0) * 2
    seen, part = numpy.asarray(x), x[2:]
    x.shape = (3, 4)
    seen[0] = 7
    assert x[0, 0] == 7 and numpy.shares_memory(seen, x)
    x[2, 3] = 8
    part[0] = 9
    assert (seen[11], part[9], x[0, 2]) == (8, 8, 9)
    again = numpy.asarray(x)
    assert again.shape == (3, 4) and numpy.shares_memory(again, seen)
    with pytest.raises(ValueError, match="cannot resize"):
        x.resize(5)


@pytest.mark.usefixtures("recorded")
def test_pending_readers_keep_the_old_values_and_exports_cost_no_copy_without_them() -> None:
    x = (lazynp.arange(100_000.0) * 2).realize()
    before = x + 1
    address = x.ctypes.data  # a copy: `before` reads the old values
    seen = numpy.asarray(x)
    assert seen.ctypes.data == address
    seen[...] = 0
    assert float(before.sum()) == 99_999 * 100_000 + 100_000
    y = (lazynp.arange(100_000.0) * 2).realize()
    first = numpy.asarray(y).ctypes.data
    del seen
    assert float((y + 1)[1]) == 3
    assert numpy.asarray(y).ctypes.data == first


@pytest.mark.parametrize("below", [0, 65536])
@pytest.mark.parametrize("rows", [3, 30_000])
def test_foreign_memory_with_gaps_and_turned_axes(below: int, rows: int) -> None:
    with config.override(tape_limit=below):
        memory = numpy.arange(rows * 24.0).reshape(rows, 4, 6)
        fields = numpy.zeros((rows, 5), [("a", "i4"), ("b", "f8")])
        turned = memory.T, memory[::-1, 1:3].transpose(1, 2, 0), fields["b"][:, 1:].T
        for theirs in (memory[1:, ::2, ::-1], memory[:, :, 2], fields["b"], *turned):
            for take in (lazynp.asarray, lazynp.from_dlpack, lambda x: lazynp.asarray(memoryview(x))):
                if take is not lazynp.asarray and theirs.dtype.itemsize and any(stride % 8 for stride in theirs.strides):
                    continue  # not for DLPack
                x = take(theirs)
                assert x.strides == theirs.strides
                before = x * 2
                theirs[..., 0] = -1
                assert numpy.array_equal(before[..., 1:], theirs[..., 1:] * 2)
                assert numpy.array_equal(x, theirs) and numpy.array_equal(x + 1, theirs + 1)
                x[0] = 5
                x.T[..., -1] -= 1
                x[..., ::2][1:] *= 3
                assert (theirs[0, ..., 1:] >= 0).all() and numpy.array_equal(x.sum(axis=0), theirs.sum(axis=0))
                assert numpy.shares_memory(x, theirs) and numpy.shares_memory(x[1:].T, theirs)


@pytest.mark.usefixtures("recorded")
def test_foreign_memory_is_ours_when_nobody_else_has_it() -> None:
    theirs = numpy.arange(100_000.0)
    address = theirs.ctypes.data
    x = lazynp.asarray(theirs)
    theirs[1] = 5
    assert is_lent(x)
    del theirs
    assert not is_lent(x)
    y = x + 1
    assert host(x).ctypes.data == address
    assert float(y[1]) == 6


@pytest.mark.parametrize("below", [0, 65536])
def test_threads_export_and_record_one_array(below: int) -> None:
    with config.override(tape_limit=below):
        for _ in range(10):
            x = lazynp.arange(70_000.0) * 2
            whole = float(x.sum())

            def export(k: int, x: Any = x) -> float:
                return float(numpy.asarray(x).sum() if k % 3 else numpy.asarray(x[1:])[...].sum())

            def record(k: int, x: Any = x) -> float:
                return float((x + 1).sum() - 70_000)

            with ThreadPoolExecutor(8) as pool:
                found = [pool.submit((export, record)[k % 2], k) for k in range(60)]
                assert {one.result() for one in found} == {whole}


VIEWS_OF_RESULTS = [
    "np.linspace(0, 1, 6)",
    "np.tile(np.arange(3.0), 2)",
    "np.kron(np.ones(2), np.ones(3))",
    "np.histogram(np.arange(6.0))[1]",
    "np.tensordot(np.ones((2, 3)), np.ones((3, 2)), 1)",
    "np.cross(np.ones(3), np.arange(3.0))",
    "np.kron(np.arange(3.0), np.ones(2))",
    "np.loadtxt(['1 2'])",
]


@pytest.mark.parametrize("text", VIEWS_OF_RESULTS)
def test_what_numpy_reshapes_is_an_operand_like_others(text: str) -> None:
    found = []
    for np in (numpy, lazynp):
        a = eval(text, {"np": np, "numpy": numpy})
        assert np is numpy or lazynp.schedule(a * 2).items
        shown = numpy.asarray(a)
        assert np is numpy or not lazynp.schedule(a * 2).items  # someone may write there
        shown += 1
        del shown
        assert np is numpy or lazynp.schedule(a * 2).items
        waits = a * 2
        a += 1
        part = a.reshape(-1)[1:]
        part *= 3
        base = a.base
        assert base is not None
        base += 1
        found.append((waits.tolist(), a.tolist(), part.tolist(), base.shape, a.base is base))
    assert found[0] == found[1]


PENDING = ["np.tile(np.arange(3) * 1.0, 2)", "np.kron(np.arange(3.0) * 1, np.ones(2))"]


@pytest.mark.parametrize("part", ["x[1:]", "x.T", "x.reshape(-1)", "x[...]", "x"])
@pytest.mark.parametrize("made", PENDING)
def test_parts_of_what_numpy_will_reshape_are_seen_to_be_lent(made: str, part: str) -> None:
    found = []
    for np in (numpy, lazynp):
        x = eval(made, {"np": np})
        outside = numpy.asarray(eval(part, {"x": x}))  # the part is taken while the result waits
        later = [x + 1, -x, x[2:] * 2]
        outside[...] = 9
        found.append([each.tolist() for each in later] + [x.tolist()])
    assert found[0] == found[1]


def test_an_address_of_what_another_library_made_stays_told() -> None:
    x = lazynp.asarray(numpy.arange(4.0).reshape(2, 2))
    shown = numpy.frombuffer(x)
    later = x * 2 + 1
    shown[0] = 77
    assert later.tolist() == [[1, 3], [5, 7]]
