"""Handlers of signals while tapes are computed: they run in time, and what they raise fails no value.

In: long tapes and long calls, alarms within them.  Out: failures.  Promise: a value that was being computed when a
handler raised is computed when it is asked for again, from what its operands were; so is what a handler itself asks for.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core, tapes

pytestmark = [
    pytest.mark.skipif(not core.native, reason="nothing waits without the native core"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here"),
]


class Late(Exception):
    """What the handler raises: an exception like others."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    def handler(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


Program = Callable[[Any, Any], Any]
CALLS: Final[dict[str, Program]] = {
    "a function in Python": lambda np, a: np.median(a, axis=1),
    "another one": lambda np, a: np.percentile(a, 30, axis=1),
    "a call that is a step's operand": lambda np, a: np.pad(a, 3, mode="reflect") * 2,
    "steps": lambda np, a: np.sin(a * 2) + np.cos(a) * a,
    "a chain of tapes": lambda np, a: np.sort(np.cumsum(np.sin(a), axis=1), axis=0) @ a.T,
}


@pytest.mark.parametrize("name", CALLS)
def test_what_a_handler_raises_fails_no_value(alarm: Callable[[float], None], name: str) -> None:
    x = numpy.random.default_rng(0).random((300, 700))
    core.layouts(tapes.layout)  # whatever other tests have called: a function whose shapes never came again is recorded seldom
    want = numpy.asarray(CALLS[name](lazynp, lazynp.array(x)))
    stopped = 0
    for turn in range(24):
        a = lazynp.realize(lazynp.array(x) * 1)
        y = CALLS[name](lazynp, a)
        try:
            alarm(0.0004 * (turn % 12 + 1))
            lazynp.realize(y)
            alarm(0)
        except Late:
            stopped += 1
        alarm(0)
        a[:] = 0.0  # what was not computed is computed before
        assert (numpy.asarray(y) == want).all()
    assert stopped or name not in ("a function in Python", "another one")  # the others may take less than the first alarm


@pytest.fixture
def impatient() -> Iterator[None]:
    core.pauses(1)
    yield
    core.pauses()


def long_program(np: Any, a: Any) -> Any:
    """One tape, whatever its length; no function of what another one gives, which machine code does not pay for."""
    y = np.sin(a * 0.5) + a
    y = np.cos(a - 0.25) * y
    y = np.exp(-a) + a * y
    y = np.sin(a * 1.5) - y
    return y * y + a


def softmax(np: Any, x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def updates(np: Any, a: Any) -> Any:
    """Results that would lie where operands do."""
    a = a * 1.0
    a += 0.5
    a = np.sin(a)
    a *= a
    return a


def written(np: Any, a: Any) -> Any:
    """A value that would be put where a write has it lie."""
    out = np.zeros(a.size + 8)
    out[4:-4] = np.sin(a * 0.5) + np.cos(a) * a
    return out


LONG: Final[dict[str, Program]] = {
    "a tape": long_program, "updates": updates, "a write": written, "a sum": lambda np, a: long_program(np, a).sum(),
    "rows": lambda np, a: long_program(np, a.reshape(-1, 30)).std(axis=1),
    "rows that are kept": lambda np, a: softmax(np, a.reshape(-1, 50)),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.usefixtures("alarm", "impatient", "waiting")
def test_handlers_run_in_the_middle_of_a_tape(name: str, compiled: bool) -> None:
    """They write what the tape reads, ask for what it computes, and raise: all values are those of the program's order."""
    values = numpy.random.default_rng(0).random(300_000) + 0.5
    want = numpy.array(LONG[name](lazynp, lazynp.array(values) * 1))
    a = y = lazynp.realize(lazynp.array(values) * 1)
    asked: list[Any] = []

    def writes(*_: object) -> None:
        a[:] = 0.0

    def asks(*_: object) -> None:
        asked.append(numpy.array(y))

    def writes_and_raises(*_: object) -> None:
        a[1:] = 7.0
        raise Late

    core.chain_sizes(1, 512, 1024, 0 if compiled else 1 << 62)
    runs = core.chain_counts()[2]
    try:
        for handler in (writes, asks, writes_and_raises):
            before = core.pauses(1)
            signal.signal(signal.SIGALRM, handler)
            for turn in range(6):
                a = lazynp.realize(lazynp.array(values) * 1)
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.0003 * (turn + 1))
                    y = LONG[name](lazynp, a)
                    if name != "a sum":
                        lazynp.realize(y)
                except Late:
                    if name == "a sum":
                        continue
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert (numpy.asarray(y) == want).all()
            assert core.pauses(1) > before
    finally:
        core.chain_sizes(1, 512, 1024)
    assert (core.chain_counts()[2] > runs) == compiled
    assert all((one == want).all() for one in asked if one.shape == want.shape)


def test_a_tape_is_as_long_as_it_may_be_whatever_it_takes() -> None:
    a = lazynp.realize(lazynp.ones(780_000) * 1)
    y = long_program(lazynp, a)
    found = core.tape(y)
    assert found is not None and core.tape(long_program(lazynp, y))[0] == found[0]


def test_a_handler_runs_before_all_is_computed() -> None:
    heard: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(time.perf_counter()))
    try:
        a = lazynp.realize(lazynp.ones(780_000) * 1)
        many = [lazynp.sin(a * k) + k for k in range(120)]
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        lazynp.realize(*many)
        done = time.perf_counter()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard and heard[0] < done and all(core.tape(y) is None for y in many)
