"""Answering Ctrl-C while a kernel runs long.

In: a kernel's function, its argument block, and where the chunk counters of its phases lie there.  Out: the kernel has run, or what a
signal handler raised is on its way and the kernel is over.  Promise: a handler runs when its signal comes, however long the kernel takes;
what it raises stops the kernel at its next chunks, and the memory of the run is not let go before.

Python runs signal handlers in its main thread, between instructions of Python.  So there a long kernel is left to another thread, for which
the main thread waits: that wait is interrupted.  Threads claim chunks by adding to a counter until it has reached the end, and whoever
sets it behind the end stops them; each phase begins by setting its own to zero, so they are set again until the kernel is over.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock, get_ident, start_new_thread
from array import array
from collections.abc import Callable
from typing import Final

LONG_WORK: Final = 20_000_000.0  # cost units from which on a kernel is waited for: some ten milliseconds
BEHIND_THE_END: Final = 1 << 62
AGAIN_SECONDS: Final = 0.001


def run(function: Callable[[int], None], block: array[int], counters: range) -> None:
    """Run a kernel; in the main thread, signals are answered meanwhile."""
    address = block.buffer_info()[0]
    if get_ident() != threading.main_thread().ident:
        function(address)
        return
    done = allocate_lock()
    done.acquire()
    turn = allocate_lock()  # taken by who begins the kernel, or by who gave it up before it began
    over: list[bool] = []  # a handler may also raise when `done` was just acquired: then nobody releases it again

    def work() -> None:
        if turn.acquire(blocking=False):
            function(address)
            over.append(True)
            done.release()

    try:
        try:
            start_new_thread(work, ())
        except RuntimeError:  # no thread to be had
            work()
        done.acquire()
    except BaseException:
        if not turn.acquire(blocking=False):
            _stop(block, counters, done, over)
        raise


def _stop(block: array[int], counters: range, done: threading.Lock, over: list[bool]) -> None:
    while not over:
        try:
            for k in counters:
                block[k] = BEHIND_THE_END
            if done.acquire(timeout=AGAIN_SECONDS):
                return
        except BaseException:  # another signal: the kernel still writes
            continue
