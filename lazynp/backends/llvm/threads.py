"""Parallel execution of generated code.

In: ``lz_parallel(body, data, threads)``, called by generated code.  Out: ``body(data)`` has run on the calling thread and on up to
``threads - 1`` others, and all of them are done.  A body claims its chunks from an atomic counter in its data, so it does not
matter how many threads come: one is enough.  Promises: nothing starts at import; the calling thread never waits for a thread
that has not begun; a call from inside a body, or from a second Python thread while the
workers are busy, is done by the calling thread alone; a child after ``fork`` runs everything on one thread; threads that spin when
the process ends do no harm.

The engine is the native core's pool (``array/workers.h``), whose workers spin for a moment and then sleep; where that has no threads (it
has those of POSIX), a pool of Python threads.  ``LAZYNP_THREADS`` sets the number of threads.  (An OpenMP runtime is no faster on idle
cores and waits for every thread of its team: with one core of two used by another process, a loop of kernels of 0.2 ms took 3 to 5 times as
long.)
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any, Final

from lazynp.array import core
from lazynp.values import config, limits
from lazynp.values.loading import load

SYMBOL: Final = "lz_parallel"
DECLARATION: Final = "declare void @lz_parallel(ptr, ptr, i32)\n"
MAXIMUM: Final = 1024
_SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
_BODY: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_keep: Final[list[Any]] = []  # what native code refers to; never freed
_most = MAXIMUM  # threads that there can be: one in a child after ``fork``


def count() -> int:
    """Return how many threads a parallel kernel may use now."""
    return min(_limit(), _most)


def _limit() -> int:
    return min(config.threads or usable(), MAXIMUM)


@functools.cache
def usable() -> int:
    """Return how many cores there are for the process."""
    return limits.cpus()


@functools.cache
def engine() -> tuple[str, int]:
    """Start the engine; return its name and the address of its ``lz_parallel``."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    for start in (_native_pool, _python_pool):
        address = start()
        if address:
            return start.__name__.strip("_"), address
    raise AssertionError("the pool of Python threads always works")


def address(name: str) -> int | None:
    """Return the address of a function of this module that generated code calls."""
    return engine()[1] if name == SYMBOL else None


def _after_fork() -> None:
    global _most
    _most = 1


def _start_workers(work: Callable[[], Any]) -> None:
    """Start all threads but the caller's; where the system or the interpreter has no more, kernels make do with those there are."""
    global _most
    for started in range(1, _limit()):
        try:
            # Not threading.Thread: the workers do not belong in threading.enumerate(), and must not be joined.
            _thread.start_new_thread(work, ())
        except RuntimeError:
            _most = started
            return


def _native_pool() -> int | None:
    global _most
    address, started = core.workers(_limit())
    if address:
        _most = started if started < _limit() else _most
    return address or None


def _python_pool() -> int:
    queue = load("queue")  # the other engine needs none
    tasks: Any = queue.SimpleQueue()
    idle = _thread.allocate_lock()

    def work() -> None:
        while True:
            body, data, done = tasks.get()
            body(data)
            done.put(None)

    def parallel(entry: int, data: int, threads: int) -> None:
        body, done = _BODY(entry), queue.SimpleQueue[None]()
        if threads <= 1 or not idle.acquire(blocking=False):
            body(data)
            return
        helpers = min(threads, _limit()) - 1
        for _ in range(helpers):
            tasks.put((body, data, done))
        body(data)
        for _ in range(helpers):
            done.get()
        idle.release()

    _start_workers(work)
    callback = _SIGNATURE(parallel)
    _keep.append(callback)
    pointer = ctypes.cast(callback, ctypes.c_void_p).value
    assert pointer is not None
    return pointer
