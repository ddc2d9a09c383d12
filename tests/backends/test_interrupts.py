"""Ctrl-C in a long kernel and while one is compiled: answered soon, and every array is usable afterwards."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable

import numpy
import pytest

import lazynp as np
from lazynp.backends.common import interrupts
from lazynp.values import config

PROGRAM = """
import signal, time
import numpy, lazynp as np
from lazynp.backends.common import interrupts

raised, left = [0.0], [0]
def handler(*args):
    if left[0]:
        left[0] -= 1
        raised[0] = time.perf_counter()
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)

first, again, lengths, run = [0.0], [0.0], [], interrupts.run
def kernel(function, block, counters):
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, first[0], again[0])  # from where the kernel begins: a machine may be busy before
    first[0] = 0.0
    run(function, block, counters)
    lengths.append(time.perf_counter() - start)
interrupts.run = kernel

def f(x):
    for _ in range(25):
        x = np.sin(x) + np.exp(-x)
    return x

x = np.asarray(numpy.linspace(0, 1, 6_000_000)).realize()
part = numpy.asarray(f(x[:1000]))
target = np.asarray(numpy.zeros(x.size)).realize()
ends = [], []  # a machine is slowed down now and then: what is left of the quickest run is left of every one
for _ in range(3):
    del lengths[:]
    whole = numpy.asarray(f(x))
    ends[0].append(max(lengths))
    del lengths[:]
    target[:] = 0
    target[::3] += f(x)[::3]
    target.realize()
    ends[1].append(max(lengths))
ends = min(ends[0]), min(ends[1])
target[:] = 0
target.realize()
target[::3] += f(x)[::3]
stopped, waits = 0, []
for k in range(8):
    y = f(x) if k % 2 else target
    left[0] = 2 if k > 5 else 1
    first[0], again[0] = ends[1 - k % 2] * (0.02 + 0.03 * k), 0.003 if k > 5 else 0
    try:
        try:
            y.realize()
        except KeyboardInterrupt:
            waits.append(time.perf_counter() - raised[0])
            time.sleep(0.05)  # a second signal comes here, if it has not come before
            raise
    except KeyboardInterrupt:
        stopped += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    left[0], again[0] = 0, 0.0
    assert x[:3].tolist() == numpy.linspace(0, 1, 6_000_000)[:3].tolist()  # an export would compute what is pending on x
assert stopped == 8, stopped
assert (numpy.asarray(y) == whole).all() and (whole[:1000] == part).all()
expected = numpy.zeros(x.size)
expected[::3] += whole[::3]
assert (numpy.asarray(target) == expected).all()
print(sorted(waits)[len(waits) // 2], ends[0])
"""


@pytest.mark.slow
@pytest.mark.usefixtures("recorded", "compiled")
def test_a_signal_is_answered_in_a_long_kernel_and_nothing_is_lost() -> None:
    environment = {**os.environ, "LAZYNP_TIER": "compiled"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    wait, length = map(float, run.stdout.split())
    assert wait < length / 2  # it was stopped, not waited for


def test_a_kernel_is_over_before_what_a_handler_raises_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    block = array("q", bytes(8 * 4))
    state: list[str] = []

    def kernel(address: int) -> None:
        state.append("begun")
        while block[2] < interrupts.BEHIND_THE_END:
            time.sleep(0.001)
        state.append("over")

    class Interrupted:
        """A lock whose first wait is interrupted, and every second one after it."""

        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.waits = 0

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if blocking and self.lock.locked():
                while not state:
                    time.sleep(0.001)
                self.waits += 1
                if self.waits % 2:
                    raise KeyboardInterrupt
            return self.lock.acquire(blocking, timeout)

        def release(self) -> None:
            self.lock.release()

    monkeypatch.setattr(interrupts, "allocate_lock", Interrupted)
    monkeypatch.setattr(interrupts, "get_ident", lambda: threading.main_thread().ident)
    with pytest.raises(KeyboardInterrupt):
        interrupts.run(kernel, block, range(2, 4))
    assert state == ["begun", "over"]


def test_outside_the_main_thread_a_kernel_runs_where_it_is_called() -> None:
    ran: list[int] = []
    block = array("q", bytes(8))
    thread = threading.Thread(target=lambda: interrupts.run(lambda address: ran.append(threading.get_ident()), block, range(0)))
    thread.start()
    thread.join()
    assert ran == [thread.ident]


@pytest.mark.usefixtures("recorded")
def test_kernels_of_narrow_types_are_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    aside: list[str] = []

    def run(function: Callable[[int], None], block: array[int], counters: range) -> None:
        aside.append(dtype)
        function(block.buffer_info()[0])

    monkeypatch.setattr(interrupts, "LONG_WORK", 20_000.0)
    monkeypatch.setattr(interrupts, "run", run)
    for dtype in ("float64", "uint8", "int32"):
        values = numpy.arange(10_000).astype(dtype)
        x = np.asarray(values)
        with config.override(tier="compiled"):
            assert numpy.array_equal(x[7:] + x[:-7] * values[3] - x[3:-4], values[7:] + values[:-7] * values[3] - values[3:-4])
    assert aside == ["float64", "int32"]


def test_what_is_called_aside_goes_on_when_a_handler_raises() -> None:
    main, over, ran = threading.get_ident(), threading.Event(), list[int]()

    def work(answer: int) -> int:
        _thread.interrupt_main()
        time.sleep(0.05)
        ran.append(threading.get_ident())
        over.set()
        return answer

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs this in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupts.aside(work, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert over.wait(10)
    assert len(ran) == 1 and ran[0] != main
    assert interrupts.aside(int, "7") == 7
    with pytest.raises(ValueError, match="x"):
        interrupts.aside(int, "x")


@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_the_main_thread_imports_for_a_first_result_where_no_handler_runs(tier: str) -> None:
    program = """
import signal, sys, threading
import numpy, lazynp as np
main = threading.get_ident()
def hear(event, arguments):
    if event == "import" and (threading.get_ident() != main or signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        print(arguments[0])
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.addaudithook(hear)
x = np.arange(1_000_000.0)
y = x * 3 + np.sin(x)
y[::2] += 1
print(float(y.sum() * 0))
"""
    environment = {**os.environ, "LAZYNP_TIER": tier, "LAZYNP_CACHE": "0"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert run.stdout == "0.0\n", run.stderr
