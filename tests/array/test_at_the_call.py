"""What is computed at the call although arrays are large, and what a program computes along: values that somebody holds.

The oracle is NumPy; what exists afterwards, and what was forced, is counted.
"""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.array.hand import memory_of
from lazynp.graph import report
from lazynp.namespace import indexing
from lazynp.values import config, pressure

SIZE = 400_000
ROWS = 500


@pytest.fixture(autouse=True)
def _usual_limit() -> Any:
    with config.override(tape_limit=65536):
        yield


def exists(x: Any) -> bool:
    return x._base is not None or x._node.buffer is not None


def both(make: Callable[[Any], Any]) -> tuple[Any, Any]:
    return make(lazynp), make(numpy)


def vector(xp: Any) -> Any:
    return xp.asarray(numpy.random.default_rng(3).standard_normal(SIZE))


def test_a_write_to_a_part_of_a_large_array_is_computed_at_its_line() -> None:
    def program(xp: Any) -> Any:
        a = xp.asarray(numpy.random.default_rng(1).standard_normal((ROWS, ROWS))) + 0.0
        if xp is lazynp:
            a.realize()
            report.reset()
        for k in range(20):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= xp.outer(a[k + 1 :, k], a[k, k + 1 :])
            if xp is lazynp:
                assert memory_of(a[k + 1]) is not None, "a row is at hand afterwards"
        return a

    ours, theirs = both(program)
    assert {cause.name for cause in report.forced.values()} == {"part of an array"}
    assert sum(cause.count for cause in report.forced.values()) == 20, "one run a turn"
    assert numpy.array_equal(ours, theirs)


def test_what_is_pending_and_small_is_computed_when_it_is_written_to_a_large_array() -> None:
    r, x = lazynp.zeros((ROWS, ROWS)), vector(lazynp)
    r[0, 0] = 1.0  # its own memory
    total = (x * 2).sum()
    r[3, 3] = total
    r[4, 1:3] = (x.reshape(2, -1) + 1).sum(axis=1)
    expected = numpy.zeros((ROWS, ROWS))
    expected[0, 0], expected[3, 3] = 1.0, total
    expected[4, 1:3] = (numpy.asarray(x).reshape(2, -1) + 1).sum(axis=1)
    assert memory_of(r[3]) is not None
    assert numpy.allclose(r, expected, rtol=1e-13)


def test_what_somebody_holds_and_will_be_at_hand_is_computed_once() -> None:
    x = vector(lazynp)
    place = lazynp.argmax(lazynp.abs(x))
    twice = 2 * place
    columns = x.reshape(100, -1).sum(axis=1)
    shown = columns * 3.0
    report.reset()
    assert bool(twice > 0) and float(shown[0]) is not None
    assert len(report.forced) <= 2
    before = report.schedules.misses, report.schedules.hits
    assert memory_of(columns) is not None and memory_of(shown) is not None
    assert int(place) == int(numpy.abs(numpy.asarray(x)).argmax()) and int(twice) == 2 * int(place)
    assert (report.schedules.misses, report.schedules.hits) == before, "nothing ran again"


def test_nothing_that_is_large_is_kept_because_somebody_holds_it() -> None:
    x = vector(lazynp)
    y = lazynp.exp(x)
    assert float((y * 2).sum()) > 0
    assert not exists(y), "one kernel, which stores a number"


def masks() -> dict[str, Any]:
    rng = numpy.random.default_rng(7)
    return {
        "half of all": rng.random(SIZE) < 0.5,
        "few": rng.random(SIZE) < 1e-4,
        "in blocks": numpy.repeat(rng.random(SIZE // 1000) < 0.5, 1000),
        "all": numpy.ones(SIZE, bool),
        "none": numpy.zeros(SIZE, bool),
    }


@pytest.mark.parametrize("dtype", ["f8", "i8", "c16", "?", "f4"])
@pytest.mark.parametrize("kind", masks())
def test_reading_by_a_mask(kind: str, dtype: str) -> None:
    mask = masks()[kind]
    values = numpy.arange(SIZE).astype(dtype)
    x, m = lazynp.asarray(values.copy()), lazynp.asarray(mask.copy())
    for known in (True, False):
        a, b = (x, m) if known else (x.copy(), m & True)
        found = a[b]
        assert exists(found) and found.dtype == values.dtype
        assert numpy.array_equal(found, values[mask])
    assert numpy.array_equal(x.reshape(-1, 4)[m.reshape(-1, 4)], values[mask])
    assert numpy.array_equal(x.reshape(-1, 4)[m[: SIZE // 4]], values.reshape(-1, 4)[mask[: SIZE // 4]])
    assert numpy.array_equal(x[::-1][m], values[::-1][mask])
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[m[1:]]


def test_places_of_a_mask_are_found_once_for_several_arrays_and_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    positions = indexing.positions
    monkeypatch.setattr(indexing, "positions", lambda x: found.append(1) or positions(x))
    monkeypatch.setattr(core, "compresses", lambda size: False)  # where vectors choose, nobody looks for places
    x, y = (vector(lazynp) + 0.0).realize(), (vector(lazynp) * 2).realize()
    theirs = vector(numpy)
    mask = (x > 0).realize()
    assert all(numpy.array_equal(a[mask], b[theirs > 0]) for a, b in [(x, theirs), (y, theirs * 2), (x, theirs)])
    assert len(found) == 1
    place = int(theirs.argmax())
    mask[place] = False  # another value
    assert numpy.array_equal(x[mask], theirs[(theirs > 0) & (numpy.arange(SIZE) != place)])
    other = (x > 1).realize()
    assert numpy.array_equal(y[other], theirs[theirs > 1] * 2)
    assert indexing._last is not None
    del other
    assert indexing._last is None


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, z, x: z * z + x,
        lambda xp, z, x: (1j * x - z) / (z + 2.5),
        lambda xp, z, x: xp.abs(z) + xp.sqrt(z).real,
        lambda xp, z, x: z**2 + z**-1 + z**0.5,
        lambda xp, z, x: xp.exp(z) == z.conj(),
        lambda xp, z, x: xp.add(z, x, out=z.copy()),
    ],
)
def test_complex_numbers_that_exist_are_computed_at_the_call(function: Callable[..., Any]) -> None:
    def program(xp: Any) -> Any:
        x = vector(xp)
        z = xp.asarray(numpy.random.default_rng(5).standard_normal((2, SIZE)))
        z = (z[0] + 1j * z[1]) * 1.0
        if xp is lazynp:
            lazynp.realize(x, z)
        return function(xp, z, x)

    ours, theirs = both(program)
    assert ours.dtype == theirs.dtype and numpy.allclose(ours, theirs, rtol=1e-14, equal_nan=True)
    z = lazynp.zeros(SIZE, complex) + 1
    z.realize()
    product = z * z
    assert exists(product)
    report.reset()
    z *= 2j
    assert not report.forced and numpy.asarray(z)[7] == 2j


def test_small_products_of_large_arrays_that_exist_are_computed_at_the_call() -> None:
    a = lazynp.asarray(numpy.random.default_rng(2).standard_normal((ROWS, ROWS)))
    a = (a + 0.0).realize()
    theirs = numpy.asarray(a).copy()
    v = lazynp.arange(float(ROWS))
    for ours, expected in [
        (v @ a[:, 3:], numpy.arange(float(ROWS)) @ theirs[:, 3:]),
        (a[:10] @ a, theirs[:10] @ theirs),
        (lazynp.dot(a[:, 1], a), numpy.dot(theirs[:, 1], theirs)),
        (lazynp.matmul(a, v), theirs @ numpy.arange(float(ROWS))),
    ]:
        assert memory_of(ours) is not None and numpy.array_equal(ours, expected)
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        v[1:] @ a


def test_sums_that_a_loop_collects_hold_no_more_than_some_of_their_terms() -> None:
    total = (lazynp.zeros(SIZE) + 0.0).realize()
    held = pressure.held()
    most = 0
    for k in range(40):
        term = (vector(lazynp) + k).realize()
        total += term
        most = max(most, pressure.held())
    assert most - held < 2 * pressure.SUMS + 6 * total.nbytes
    assert numpy.allclose(total, 40 * numpy.asarray(vector(numpy)) + sum(range(40)))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), ()])
@pytest.mark.parametrize("name", ["sum", "mean", "std", "var", "max", "min", "prod", "any", "all"])
def test_reductions_of_memory_that_is_lent_need_no_copy(name: str, axis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    room = import_module("lazynp.storage")
    copied = room._copied
    monkeypatch.setattr(room, "_copied", lambda *given: copies.append(1) or copied(*given))
    theirs = numpy.random.default_rng(3).standard_normal((ROWS, ROWS))
    x = lazynp.asarray(theirs)
    function, expected = getattr(lazynp, name), getattr(numpy, name)
    for value in (0.5, -7.0, 3e5):
        theirs[3, 4] = value  # nothing is remembered of it
        found = function(x, axis=axis)
        want = expected(theirs, axis=axis)
        assert numpy.allclose(found, want, rtol=1e-11) and numpy.asarray(found).dtype == numpy.asarray(want).dtype
        assert not copies or axis == ()
        theirs[3, 4] = 1.0
        assert numpy.allclose(found, want, rtol=1e-11), "it is not the memory"
        method = getattr(x, name)(axis=axis, keepdims=True)
        assert numpy.allclose(method, getattr(theirs, name)(axis=axis, keepdims=True), rtol=1e-11)
    into = lazynp.zeros(ROWS)
    if axis == 0 and name not in ("any", "all"):
        assert function(x, axis=0, out=into[:]) is not None
        theirs[3, 4] = 9e9
        assert float(into[4]) < 1e9


@pytest.mark.parametrize("name", ["sum", "mean", "any", "all", "max", "min", "prod"])
def test_what_is_asked_of_truth_values_that_exist_is_counted_at_the_call(name: str) -> None:
    for xp_mask in (numpy.random.default_rng(1).random(SIZE) < 0.3, numpy.zeros(SIZE, bool), numpy.ones((ROWS, ROWS), bool)):
        mask = lazynp.asarray(xp_mask.copy())
        for ours, theirs in [(mask, xp_mask), (mask[::2], xp_mask[::2]), (mask.T, xp_mask.T), (mask[:9], xp_mask[:9])]:
            lazynp.realize(ours)
            report.reset()
            found = [getattr(ours, name)(), getattr(lazynp, name)(ours)]
            wanted = getattr(theirs, name)()
            assert [(x.dtype, x.shape, bool(x == wanted)) for x in found] == [(wanted.dtype, (), True)] * 2
    assert not report.forced


def test_parts_of_complex_numbers_that_exist_are_read_where_they_lie() -> None:
    def program(xp: Any) -> list[Any]:
        z = (vector(xp) + 1j * vector(xp)[::-1]).reshape(ROWS, -1)
        if xp is lazynp:
            z.realize()
        seen = z.real**2 + z.imag[::-1]
        if xp is lazynp:
            assert "0 library call(s)" in str(lazynp.explain(seen)), "no copy is made of the parts"
        z[3, 4] = 5 + 6j
        z.real[1:3] = 9.0
        z.imag *= 2.0
        other = z.real - z.T.imag.sum()
        z *= 2
        return [seen, other, z, z[3].imag, xp.asarray(3 + 4j).imag]

    ours, theirs = both(program)
    for x, y in zip(ours, theirs, strict=True):
        numpy.testing.assert_allclose(x, y, rtol=1e-12)


def test_a_matrix_without_an_inverse_where_errors_are_ignored() -> None:
    good, singular = lazynp.array([[4.0, 1.0], [1.0, 3.0]]), lazynp.array([[1.0, 2.0], [2.0, 4.0]])
    for _ in range(9):  # the first ones are compared with NumPy's
        lazynp.linalg.inv(good), lazynp.linalg.solve(good, good[0]), lazynp.linalg.cholesky(good)
    for state in ({"invalid": "ignore"}, {"all": "ignore"}, {}):
        with numpy.errstate(**state):
            for call in (lazynp.linalg.inv, lambda x: lazynp.linalg.solve(x, x[0]), lambda x: lazynp.linalg.cholesky(-x)):
                with pytest.raises(numpy.linalg.LinAlgError):
                    call(singular)


def test_writes_in_place_in_two_threads_while_the_error_state_changes() -> None:
    stop: list[int] = []

    def other() -> None:
        y = lazynp.full(1500, 7.0)
        while not stop:
            y *= 1.0

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=other)
    thread.start()
    try:
        with config.override(tape_limit=1 << 16):
            for _ in range(3000):
                x = lazynp.array([1.0] * 1499 + [0.0])
                with numpy.errstate(divide="ignore", invalid="ignore"):
                    x /= 0.0
                assert float(x[0]) == float("inf")
    finally:
        stop.append(1)
        thread.join()
        sys.setswitchinterval(interval)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_what_a_handler_raises_is_raised_while_the_error_state_is_asked_for() -> None:
    class StopError(Exception):
        pass

    fired: list[int] = []
    seen: list[int] = []

    def handler(*_: object) -> None:
        fired.append(1)
        raise StopError

    def program() -> None:
        y = lazynp.array([1.0, 0.0])
        for _ in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                deadline = time.monotonic() + 5.0  # it is raised long before
                while time.monotonic() < deadline:
                    with numpy.errstate(divide="ignore", invalid="ignore"):
                        y / 0.0
            except StopError:
                seen.append(1)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with config.override(tape_limit=1 << 16):
            contextvars.copy_context().run(program)  # an error state that is interrupted while it is left stays
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) == len(fired)
