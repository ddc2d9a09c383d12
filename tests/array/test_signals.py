"""Handlers of signals while tapes are computed: they run in time, and what they raise fails no value.

In: long tapes and long calls, alarms within them.  Out: failures.  Promise: a value that was being computed when a
handler raised is computed when it is asked for again, from what its operands were; so is what a handler itself asks for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core, tapes
from lazynp.values import config

pytestmark = [
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
    """A pause after every piece; one thread, so that there are many, and an alarm comes before the last one on any machine."""
    core.pauses(1)
    with config.override(threads=1):
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


def realized(y: Any) -> Any:
    return lazynp.realize(y)


LONG: Final[dict[str, tuple[Program, Callable[[Any], Any]]]] = {  # what is recorded, and what has it computed
    "a tape": (long_program, realized), "updates": (updates, realized), "a write": (written, realized),
    "a sum": (long_program, lambda y: y.sum()),
    "rows": (lambda np, a: long_program(np, a.reshape(-1, 30)).std(axis=1), realized),
    "rows that are kept": (lambda np, a: softmax(np, a.reshape(-1, 50)), realized),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.usefixtures("alarm", "impatient", "waiting")
def test_handlers_run_in_the_middle_of_a_tape(name: str, compiled: bool) -> None:
    """They write what the tape reads, ask for what it computes, and raise: all values are those of the program's order."""
    record, compute = LONG[name]
    values = numpy.random.default_rng(0).random(300_000) + 0.5
    want = numpy.array(compute(record(lazynp, lazynp.array(values) * 1)))
    a = y = lazynp.realize(lazynp.array(values) * 1)
    asked: list[Any] = []
    armed = False

    def writes() -> None:
        if armed:
            a[:] = 0.0

    def asks() -> None:
        if armed:
            asked.append(numpy.array(compute(y)))

    def writes_and_raises() -> None:
        if armed:
            a[1:] = 7.0
            raise Late

    core.chain_sizes(1, 512, 1024, 0 if compiled else 1 << 62)
    runs = core.chain_counts()[2]
    try:
        for handler in (writes, asks, writes_and_raises):
            before = core.pauses(1)

            signal.signal(signal.SIGALRM, lambda *_, deed=handler: deed())
            for turn in range(6):
                a = lazynp.realize(lazynp.array(values) * 1)
                y = record(lazynp, a)
                armed = True
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.0003 * (turn + 1))
                    found = compute(y)
                    armed = False
                except Late:
                    armed = False
                    found = compute(y)
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert (numpy.asarray(found) == want).all()
            assert core.pauses(1) > before
    finally:
        core.chain_sizes(1, 512, 1024)
    assert (core.chain_counts()[2] > runs) == compiled
    assert all((one == want).all() for one in asked)


@pytest.mark.usefixtures("alarm", "impatient")
@pytest.mark.parametrize("write", ["x[:] = 0.0", "x += 1", "np.add(x, 1, out=x)", "x[5:] = x[:-5]"])
@pytest.mark.parametrize("read", ["x.sum(1)", "x.var(1)", "x.max(axis=1)", "x.argmax(1)"])
def test_handlers_write_what_is_computed_for_a_call(read: str, write: str) -> None:
    """The operand of a call that is computed in C is being computed when a handler writes it."""
    a = lazynp.realize(lazynp.arange(600_000.0).reshape(12_000, 50) * 1)
    names: dict[str, Any] = {"np": lazynp}

    def recorded() -> Any:
        names["x"] = lazynp.exp(lazynp.sin(lazynp.cos(a * 2.0 + 1.0)))
        return eval(read, names)

    want = numpy.array(recorded())
    wrote = armed = False

    def writes(*_: object) -> None:
        nonlocal wrote
        if armed:
            exec(write, names)
            wrote = True

    signal.signal(signal.SIGALRM, writes)
    for turn in range(10):
        y = recorded()
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 0.0001 * (turn + 1))
        lazynp.realize(y)
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert (numpy.asarray(y) == want).all()
    assert wrote


STOPPED: Final = """
import signal, sys
import numpy, lazynp
from lazynp.array import core
from tests.array.test_signals import Late, long_program

armed = False

def raises(_, frame):
    if armed and frame.f_code.co_name == "<module>":  # it is no code of Python's that computes
        raise Late

core.pauses(1)
values = numpy.full(400_000, 2.0)
values[int(sys.argv[1])] = 0.0
signal.signal(signal.SIGALRM, raises)
stopped = 0
for turn in range(20):
    a = lazynp.realize(lazynp.array(values) * 1)
    y = numpy.pi / (a * a) + long_program(lazynp, a)
    armed = True
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001 * (turn + 1))
        lazynp.realize(y)
        armed = False
    except Late:
        armed = False
        stopped += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    lazynp.realize(y)
    assert numpy.isinf(numpy.asarray(y)).sum() == 1
assert stopped
"""


@pytest.mark.parametrize("place", [0, -1])
def test_what_stops_a_tape_leaves_its_warnings_to_be_told(place: int) -> None:
    """An error is met by the first block, so that the tape is computed step by step, or by the last one."""
    command = [sys.executable, "-W", "always", "-c", STOPPED, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "LAZYNP_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: divide by zero encountered in divide") >= 20


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
