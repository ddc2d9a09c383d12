"""Handlers of signals while tapes are computed: they run in time, and what they raise fails no value.

In: long tapes and long calls, alarms within them.  Out: failures.  Promise: a value that was being computed when a
handler raised is computed when it is asked for again, from what its operands were.
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


def test_long_work_is_cut_into_tapes_between_which_handlers_run() -> None:
    """Counted, not timed: tapes of some twenty milliseconds."""
    a = lazynp.realize(lazynp.ones(780_000) * 1)
    told = {core.tape(y)[0] for y in [lazynp.sin(a * k) + k for k in range(40)]}
    assert len(told) >= 4
    few = {core.tape(y)[0] for y in [a * k + k for k in range(7)]}
    assert len(few) == 1


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
