"""Answering Ctrl-C while a kernel runs long, or is compiled.

In: a kernel's function, its argument block, and where the chunk counters of its phases lie there.  Out: the kernel has run, or what a
signal handler raised is on its way and the kernel is over.  Promise: a handler runs when its signal comes, however long the kernel takes;
what it raises stops the kernel at its next chunks, and the memory of the run is not let go before.  And ``aside`` calls what nothing must
be raised in: LLVM's binding, whose objects do not survive that; it imports nothing there (``values/loading.py``).

Python runs signal handlers in its main thread, between instructions of Python.  So there a long kernel is left to another thread, for which
the main thread waits: that wait is interrupted.  Threads claim chunks by adding to a counter until it has reached the end, and a thread
that sets it behind the end stops them; each phase begins by setting its own to zero, so they are set again until the kernel is over.
"""

from __future__ import annotations

import gc
import sys
from _thread import LockType, allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lazynp.values.loading import Deferred, WantedError, helpers, load

if TYPE_CHECKING:
    from array import array

R = TypeVar("R")

LONG_WORK: Final = 100_000_000.0  # cost units from which on a kernel is waited for: two to twenty milliseconds
BEHIND_THE_END: Final = 1 << 62
AGAIN_SECONDS: Final = 0.001
BEGIN_SECONDS: Final = 0.1  # a thread that has not begun by then may never do: for lack of memory it ends before its first line


def run(function: Callable[[int], None], block: array[int], counters: range) -> None:
    """Run a kernel; in the main thread, signals are answered meanwhile."""
    address = block.buffer_info()[0]
    if not _in_main_thread():
        function(address)
        return
    turn, done = allocate_lock(), allocate_lock()
    over: list[bool] = []  # a handler may also raise when `done` was just acquired: then it is not released again

    def kernel() -> None:
        function(address)
        over.append(True)

    try:
        _elsewhere(kernel, turn, done)
    except BaseException:
        if not turn.acquire(blocking=False):
            _stop(block, counters, done, over)
        raise


def _in_main_thread() -> bool:
    """Tell whether signal handlers may run in this thread; before ``threading`` is imported, in all but helpers."""
    here = get_ident()
    if here in helpers:
        return False
    main = getattr(sys.modules.get("threading"), "main_thread", None)
    return main is None or here == main().ident


def _stop(block: array[int], counters: range, done: LockType, over: list[bool]) -> None:
    while not over:
        try:
            for k in counters:
                block[k] = BEHIND_THE_END
            if done.acquire(timeout=AGAIN_SECONDS):
                return
        except BaseException:  # another signal: the kernel still writes
            continue


def aside(function: Callable[..., R], *arguments: object) -> R:
    """Call a function where no signal handler runs: for the main thread, another one calls it.

    What a handler raises ends the wait, not the call, whose result is dropped then.  Who calls this in the main thread holds no lock that
    the function wants; a module that it wants (``loading.load``) is imported here, and it is called again.
    """
    if not _in_main_thread():
        return function(*arguments)
    while True:
        try:
            return _called(function, arguments)
        except WantedError as wanted:
            name = wanted.name
        load(name)


def briefly(function: Callable[..., R], *arguments: object) -> R:
    """Call a function that takes a millisecond or two where no signal handler runs, and no finalizer: handlers run afterwards."""
    collecting = gc.isenabled()
    try:
        gc.disable()
        with Deferred():
            return function(*arguments)
    finally:
        if collecting:
            gc.enable()


def _called(function: Callable[..., R], arguments: tuple[object, ...]) -> R:
    """Have another thread call a function, and return or raise what it does."""
    found: list[Any] = [None, None]

    def call() -> None:
        # What is collected may run any code, which may want a lock that the waiting thread has.
        collecting = gc.isenabled()
        gc.disable()
        try:
            found[0] = function(*arguments)
        except BaseException as error:
            found[1] = error
        finally:
            if collecting:
                gc.enable()

    _elsewhere(call, allocate_lock(), allocate_lock())
    if found[1] is not None:
        raise found.pop()
    result: R = found[0]
    return result


def _elsewhere(work: Callable[[], None], turn: LockType, done: LockType) -> None:
    """Have another thread do some work, and wait for it; where none comes, it is done here.

    ``turn`` is taken by who begins the work, or by who gave it up before it began; ``done`` is released when it is done.
    """
    done.acquire()

    def begin() -> None:
        if turn.acquire(blocking=False):
            helper = get_ident()
            try:
                helpers.add(helper)
                work()
            finally:
                helpers.discard(helper)
                done.release()

    try:
        start_new_thread(begin, ())
    except (RuntimeError, MemoryError):  # no thread to be had
        begin()
    while not done.acquire(timeout=BEGIN_SECONDS):
        begin()
