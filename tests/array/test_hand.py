"""Values at hand: small arrays that exist are computed at the call, by NumPy's own loops."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import dispatch, hand
from lazynp.arrays import ndarray, node_of
from lazynp.graph import report
from lazynp.namespace.standard import namespace_of
from lazynp.values import config

LIMIT = 4096


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=LIMIT):
        yield


def is_at_hand(x: Any) -> bool:
    return type(x) is ndarray and type(x._base) is numpy.ndarray


def small() -> Any:
    return lazynp.arange(12.0).reshape(3, 4)


def large() -> Any:
    return lazynp.arange(3.0 * LIMIT).realize()


# Which values are at hand ---------------------------------------------------------------------------------------------------------

MADE: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda np: np.zeros((64, 64)),
    "list": lambda np: np.array([[1, 2], [3, 4]]),
    "arange": lambda np: np.arange(LIMIT),
    "linspace": lambda np: np.linspace(0, 1000, 50),
    "eye": lambda np: np.eye(64),
    "like": lambda np: np.zeros_like(np.arange(5), dtype="f4"),
    "operator": lambda np: np.arange(5.0) * 2 + np.ones(5),
    "reflected": lambda np: 2 - np.arange(5.0),
    "comparison": lambda np: np.arange(5) < 3,
    "ufunc": lambda np: np.exp(np.arange(5.0)),
    "reduction": lambda np: np.ones((3, 4)).sum(axis=0),
    "slice": lambda np: np.arange(10)[2:8:2],
    "row": lambda np: np.eye(3)[1],
    "transposed": lambda np: np.ones((2, 3)).T,
    "reshaped": lambda np: np.arange(6).reshape(2, 3),
    "mask": lambda np: np.arange(6)[np.arange(6) % 2 == 0],
    "joined": lambda np: np.concatenate([np.arange(3), np.arange(4)]),
    "product": lambda np: np.eye(3) @ np.ones(3),
    "sorted": lambda np: np.sort(np.array([3, 1, 2])),
    "solved": lambda np: np.linalg.solve(2 * np.eye(3), np.ones(3)),
    "random": lambda np: np.random.default_rng(0).random(7),
    "fft": lambda np: np.fft.fft(np.arange(8.0)),
    "copy": lambda np: np.arange(5).copy(),
    "broadcast": lambda np: np.broadcast_to(np.arange(3), (4, 3)),
}


@pytest.mark.parametrize("name", MADE)
def test_small_values_are_computed_at_the_call(name: str) -> None:
    found, expected = MADE[name](lazynp), MADE[name](numpy)
    assert is_at_hand(found)
    assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
    assert found._base.tobytes() == expected.tobytes()  # the same loops: the same bits


RECORDED: dict[str, Callable[[], Any]] = {
    "made large": lambda: lazynp.zeros(LIMIT + 1),
    "a large operand": lambda: large() * 2,
    "small and large": lambda: large() + lazynp.ones(1),
    "broadcast beyond the limit": lambda: lazynp.arange(100)[:, None] + lazynp.arange(100),
    "outer beyond the limit": lambda: lazynp.outer(lazynp.arange(100), lazynp.arange(100)),
    "pending and small": lambda: large().reshape(3, -1).sum(axis=1) + 1,
}


@pytest.mark.parametrize("name", RECORDED)
def test_large_and_pending_operands_are_recorded(name: str) -> None:
    found = RECORDED[name]()
    assert not is_at_hand(found)
    assert node_of(found).buffer is None


def test_a_small_result_is_at_hand_once_it_was_needed() -> None:
    sums = large().reshape(3, -1).sum(axis=1)
    assert not is_at_hand(sums)
    float(sums[0])
    assert is_at_hand(sums + 1)


def test_the_limit_is_a_setting_and_zero_records_everything() -> None:
    with config.override(tape_limit=4):
        assert is_at_hand(lazynp.ones(4) + 1)
        assert not is_at_hand(lazynp.ones(5) + 1)
    with config.override(tape_limit=0):
        assert not is_at_hand(lazynp.ones(4) + 1)
        assert not is_at_hand(lazynp.zeros(0) + 1)


def test_no_node_is_recorded_and_nothing_is_scheduled() -> None:
    report.reset()
    x = small()
    for _ in range(20):
        x[1:] = x[:-1] * 0.5 + lazynp.sin(x[1:])
        x += float(x.sum()) * 1e-3
    assert report.work.kernels == report.work.library_calls == 0
    assert not report.forced, [(c.name, c.site) for c in report.forced.values()]


# Results without axes ---------------------------------------------------------------------------------------------------------------


def test_realizing_what_is_at_hand_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(x: ndarray) -> Any:
        raise AssertionError("a value at hand was copied")

    x = lazynp.arange(20.0) * 2.0
    pending = lazynp.ones(10_000_000) * 3.0
    monkeypatch.setattr(hand, "captured", captured)
    part = x[3:]
    assert lazynp.realize(x) is x
    assert lazynp.realize(x, part)[1] is part
    assert lazynp.realize(part, pending)[1] is pending
    assert pending._node.buffer is not None
    monkeypatch.undo()
    assert lazynp.schedule(x) is not None
    with pytest.raises(TypeError):
        lazynp.realize(x, "x")


def test_results_without_axes_are_numpys_numbers() -> None:
    x = small()
    for found in (x.sum(), lazynp.max(x), x.mean(), x[0, 0], lazynp.dot(x[0], x[0]), lazynp.linalg.norm(x)):
        assert isinstance(found, numpy.float64) and found.__class__ is numpy.float64
    assert type((x > 1).any()) is numpy.bool
    assert json.dumps([x.mean(), x.max()]) == "[5.5, 11.0]"


def test_the_array_api_namespace_gives_arrays_of_ours() -> None:
    x = small()
    xp = x.__array_namespace__()
    assert xp is namespace_of(lazynp)
    assert xp.sum(x).__array_namespace__() is xp
    assert (xp.sum(x) + 1).__array_namespace__() is xp
    assert xp.linalg.det(xp.eye(3)).__array_namespace__() is xp
    assert xp.max is xp.max


# Memory: views, writes, exports -----------------------------------------------------------------------------------------------------


def test_views_share_memory_and_know_their_base() -> None:
    x = lazynp.arange(12.0)
    for view in (x[2:5], x.reshape(3, 4), x.reshape(3, 4).T, x[::-1], x.reshape(3, 4)[1], x.view("i8"), x[None]):
        assert is_at_hand(view) and view.base is x
        assert lazynp.shares_memory(view, x)
    x.reshape(3, 4).T[1, 2] = 77
    assert x[9] == 77
    assert x.copy().base is None and (x + 1).base is None


def test_what_was_recorded_keeps_the_values_from_before_a_write() -> None:
    weights = lazynp.arange(4.0)
    recorded = large().reshape(-1, 4) @ weights
    total = large().reshape(-1, 4) * weights
    weights[:] = 0
    weights += 5
    assert numpy.array_equal(total, numpy.arange(3.0 * LIMIT).reshape(-1, 4) * numpy.arange(4.0))
    assert numpy.array_equal(recorded, numpy.arange(3.0 * LIMIT).reshape(-1, 4) @ numpy.arange(4.0))


def test_changes_by_large_data_are_recorded_where_nobody_else_sees_the_memory() -> None:
    data = large().reshape(3, -1)
    total, seen = lazynp.zeros(3), lazynp.zeros(3)
    view, theirs = seen[1:], numpy.asarray(seen)
    report.reset()
    for _ in range(4):
        total += data.sum(axis=1)
    assert not report.forced, [(c.name, c.site) for c in report.forced.values()]
    seen += data.sum(axis=1)  # somebody looks: it is computed
    expected = numpy.arange(3.0 * LIMIT).reshape(3, -1).sum(axis=1)
    assert total.tolist() == (4 * expected).tolist() and is_at_hand(total + 1)
    assert numpy.array_equal(theirs, expected) and numpy.array_equal(view, expected[1:])


def test_exports_are_the_memory_itself() -> None:
    x = small()
    theirs = numpy.asarray(x)
    theirs[0, 0] = 50
    assert x[0, 0] == 50 and (x + 1)[0, 0] == 51
    x[1, 1] = -1
    assert theirs[1, 1] == -1
    assert numpy.shares_memory(numpy.asarray(x), numpy.asarray(x[1:]))
    numpy.from_dlpack(x)[2, 2] = 9
    memoryview(x.data)[0, 1] = 8.0
    assert (x[2, 2], x[0, 1]) == (9, 8)
    x.flags.writeable = False
    assert not numpy.asarray(x).flags.writeable


def test_a_subclass_of_the_users_shows_and_writes_the_memory() -> None:
    class Tracked(numpy.ndarray):
        pass

    x = lazynp.zeros(3)
    view = x.view(Tracked)
    view[1] = 4
    assert type(view) is Tracked and x.tolist() == [0, 4, 0]


def test_small_parts_of_large_arrays_are_read_and_written() -> None:
    ours, theirs = large(), numpy.arange(3.0 * LIMIT)
    for np, x in ((lazynp, ours), (numpy, theirs)):
        matrix = x.reshape(3, -1)
        column = matrix[:, 7]
        matrix[1, :5] = column.sum()
        column += 1
        matrix[2] *= 0.5
        x[10:20] = np.sqrt(x[30:40])
    assert numpy.array_equal(ours, theirs)


def test_a_pending_reader_of_a_large_array_keeps_it_from_small_writes() -> None:
    x = large()
    doubled = x * 2
    x[:3] = lazynp.ones(3)
    row = x[:4]
    row += 1
    assert doubled[:4].tolist() == [0, 2, 4, 6]
    assert x[:4].tolist() == [2, 2, 2, 4]


def test_outputs_by_position_do_not_change_what_others_hold() -> None:
    for call in (
        lambda np, out: np.add(np.ones(4), 1.0, out), lambda np, out: np.cumsum(np.ones(4), 0, None, out),
        lambda np, out: np.add.accumulate(np.ones(4), 0, None, out), lambda np, out: np.clip(np.ones(4), 3, 5, out),
    ):  # fmt: skip
        x = large()
        doubled = x * 2
        call(lazynp, x[:4])
        expected = numpy.arange(4.0)
        call(numpy, expected)
        assert x[:4].tolist() == expected.tolist() and doubled[:4].tolist() == [0, 2, 4, 6]
    filled = lazynp.zeros(2 * config.at_hand)
    lazynp.cumsum(lazynp.ones(4), 0, None, filled[:4])
    assert filled[:5].tolist() == [1, 2, 3, 4, 0]
    theirs = numpy.zeros(4)
    assert lazynp.add(lazynp.ones(4), 1.0, theirs) is theirs


def test_large_views_of_small_arrays_follow_writes() -> None:
    x = lazynp.arange(6.0).reshape(2, 3)
    wide = lazynp.broadcast_to(x, (5000, 2, 3))
    windows = lazynp.lib.stride_tricks.sliding_window_view(lazynp.arange(1000.0), 50)
    x[0, 0] = 9
    assert wide[4999, 0, 0] == 9 and float(wide.sum()) == 5000 * (9 + 15)
    assert windows.shape == (951, 50) and float(windows[:, 0].sum()) == sum(range(951))


def test_strides_that_leave_the_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="outside"):
        lazynp.lib.stride_tricks.as_strided(lazynp.arange(4.0), (8,), (8,))


# Errors and warnings ----------------------------------------------------------------------------------------------------------------


def test_warnings_name_the_users_line() -> None:
    x = lazynp.zeros(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x / x
        lazynp.log(x)
        lazynp.nanmean(x * lazynp.nan)
        x[:] = lazynp.array([1j, 2, 3])
    assert [w.filename for w in caught] == [__file__] * 4
    assert [str(w.message).split(" ")[0] for w in caught] == ["invalid", "divide", "Mean", "Casting"]


def test_errors_are_numpys_at_the_call() -> None:
    x = lazynp.zeros((2, 3))
    for call, kind, text in [
        (lambda: x + lazynp.zeros(4), ValueError, "operands could not be broadcast together"),
        (lambda: x[5], IndexError, "index 5 is out of bounds for axis 0 with size 2"),
        (lambda: x.reshape(5), ValueError, "cannot reshape array of size 6 into shape"),
        (lambda: lazynp.add(x, 1, out=lazynp.zeros((2, 3), int)), TypeError, "Cannot cast ufunc 'add' output"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    with lazynp.errstate(divide="raise"), pytest.raises(FloatingPointError):
        1 / x


def test_threads_may_put_one_array_at_hand_together() -> None:
    for _ in range(20):
        sums = large().reshape(3, -1).sum(axis=1).realize()

        def task(k: int, sums: Any = sums) -> Any:
            return (sums + k).tolist(), float(sums[k % 3])

        with ThreadPoolExecutor(8) as pool:
            results = [*pool.map(task, range(16))]
        assert [whole for whole, _ in results] == [(numpy.asarray(sums) + k).tolist() for k in range(16)]


def test_every_public_function_answers_under_one_object_for_all_its_names() -> None:
    assert lazynp.bitwise_not is lazynp.invert and lazynp.concat is lazynp.concatenate
    assert lazynp.max is not lazynp.amax  # as in NumPy: a table of functions tells the two
    assert dispatch.first("max", lazynp.max, numpy.max) is lazynp.max


def test_a_large_view_stays_writable_when_its_base_is_made_readonly() -> None:
    with config.override(tape_limit=6):
        for np in (numpy, lazynp):
            x = np.ones(4)
            wide = x.view("f4")
            x.flags.writeable = False
            wide[1:] = 3
            assert x[0] != 1 and not x.flags.writeable and wide.base is x


@pytest.mark.parametrize(("dtype", "field"), [(object, ...), ("O,i4", "f0"), ([("a", "f8"), ("b", "O")], "b")])
def test_empty_arrays_of_objects_hold_none(dtype: Any, field: Any) -> None:
    with config.override(tape_limit=65536):
        for made in (lazynp.empty(3, dtype), lazynp.empty_like(lazynp.arange(3), dtype)):
            assert made.dtype == numpy.dtype(dtype)
            assert made[field].tolist() == [None] * 3


@pytest.mark.parametrize("dtype", [float, "i4,f8", "S3", "M8[s]"])
def test_empty_arrays_are_the_same_on_every_run(dtype: Any) -> None:
    with config.override(tape_limit=65536):
        for made in (lazynp.empty(3, dtype), lazynp.empty_like(lazynp.arange(3), dtype)):
            assert made.dtype == numpy.dtype(dtype)
            assert not any(made.tobytes())


@pytest.mark.parametrize("part", [lambda x: x[1:], lambda x: x[:, 1:, :3].mT, lambda x: x.T], ids=["rows", "matrices", "transposed"])
def test_a_view_is_as_writable_as_the_array_it_shows(part: Callable[[Any], Any]) -> None:
    found = []
    for np in (numpy, lazynp):
        x = np.full((2, 3, 4), 0, "l")
        shown = part(x)
        x.flags.writeable = False
        view = shown.view()
        assert view.flags.writeable and view.base is x
        view[...] = 1
        found.append(numpy.asarray(x).tolist())
        shown.flags.writeable = False
        assert not shown.view().flags.writeable
    assert found[0] == found[1]


@pytest.mark.parametrize("order", ["C", "F", "K"])
@pytest.mark.parametrize("shape", [(4,), (3, 3), (3, 1), (2, 3, 4)])
def test_flat_copies_of_imaginary_parts_have_no_base(shape: tuple[int, ...], order: Any) -> None:
    bases = [type(np.ones(shape).imag.ravel(order).base).__name__ for np in (numpy, lazynp)]
    assert bases[0] == bases[1]
