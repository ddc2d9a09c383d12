"""Parallel execution of generated code.

In: ``lz_parallel(body, data, threads)``, called by generated code.  Out: ``body(data)`` has run on the calling thread and on up to
``threads - 1`` others, and all of them are done.  A body claims its chunks from an atomic counter in its data, so it does not
matter how many threads come: one is enough.  Promises: nothing starts at import; the calling thread never waits for a thread
that has not begun; a call from inside a body, or from a second Python thread while the
workers are busy, is done by the calling thread alone; a child after ``fork`` runs everything on one thread; threads that spin when
the process ends do no harm.

There are three engines, the first one that works is taken: the native core's pool (``array/workers.h``), whose workers spin for a moment
and then sleep; where there is no native core, the same pool in generated code; a pool of Python threads.  ``LAZYNP_THREADS`` sets the
number of threads.  (An OpenMP runtime is no faster on idle cores and waits for every thread of its team: with one core of two taken by
somebody else, a loop of kernels of 0.2 ms took 3 to 5 times as long.)
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from lazynp.array import core
from lazynp.values import config, limits
from lazynp.values.loading import load

SYMBOL: Final = "lz_parallel"
DECLARATION: Final = "declare void @lz_parallel(ptr, ptr, i32)\n"
MAXIMUM: Final = 1024
SPIN_SECONDS: Final = 50e-6  # how long a worker looks for more work before it sleeps; a wake-up costs about as much
_SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
_BODY: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_keep: Final[list[Any]] = []  # what native code refers to; never freed
_most = MAXIMUM  # threads that there can be: one in a child after ``fork``


def count() -> int:
    """Return how many threads a parallel kernel may use now."""
    return min(_limit(), _most)


def _limit() -> int:
    return min(config.threads or _usable(), MAXIMUM)


@functools.cache
def _usable() -> int:
    return limits.cpus()


@functools.cache
def engine() -> tuple[str, int]:
    """Start the engine; return its name and the address of its ``lz_parallel``."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    for start in (_native_pool, _generated_pool, _python_pool):
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
            # Not threading.Thread: the workers are nobody's business in threading.enumerate(), and nobody must join them.
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


def _generated_pool() -> int | None:
    compiler = load("lazynp.backends.llvm.compiler")
    machine = load("lazynp.backends.llvm.host").host().triple.split("-")[0]
    names = ["lz_parallel", "lz_pool_start", "lz_pool_spin", "lz_pool_worker"]
    try:
        addresses = compiler.compile_module(pool_ir(sys.platform == "win32", machine), names, 0)
    except compiler.CompileError:
        return None
    start = ctypes.CFUNCTYPE(None, ctypes.c_int64)(addresses["lz_pool_start"])
    spin = ctypes.CFUNCTYPE(None, ctypes.c_int64)(addresses["lz_pool_spin"])
    worker = ctypes.CFUNCTYPE(None)(addresses["lz_pool_worker"])
    _keep.extend((start, spin, worker))
    trial = 200
    begin = time.perf_counter()
    spin(trial)
    elapsed = max(time.perf_counter() - begin, 1e-7)
    start(int(SPIN_SECONDS / elapsed * trial) + 1)
    _start_workers(worker)
    found: int = addresses["lz_parallel"]
    return found


def _python_pool() -> int:
    queue = load("queue")  # the other engines need none
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


# How each system locks, waits and wakes: what is declared, and the calls.
_POSIX: Final = {
    "declare": (
        "declare i32 @pthread_mutex_init(ptr, ptr)\ndeclare i32 @pthread_cond_init(ptr, ptr)\n"
        "declare i32 @pthread_mutex_lock(ptr)\ndeclare i32 @pthread_mutex_unlock(ptr)\n"
        "declare i32 @pthread_cond_wait(ptr, ptr)\ndeclare i32 @pthread_cond_broadcast(ptr)\ndeclare i32 @sched_yield()\n"
    ),
    "init": "call i32 @pthread_mutex_init(ptr @lock, ptr null)\n  call i32 @pthread_cond_init(ptr @cond, ptr null)",
    "lock": "call i32 @pthread_mutex_lock(ptr @lock)",
    "unlock": "call i32 @pthread_mutex_unlock(ptr @lock)",
    "wait": "call i32 @pthread_cond_wait(ptr @cond, ptr @lock)",
    "wake": "call i32 @pthread_cond_broadcast(ptr @cond)",
    "yield": "call i32 @sched_yield()",
}
_WINDOWS: Final = {
    "declare": (
        "declare void @AcquireSRWLockExclusive(ptr)\ndeclare void @ReleaseSRWLockExclusive(ptr)\n"
        "declare i32 @SleepConditionVariableSRW(ptr, ptr, i32, i32)\ndeclare void @WakeAllConditionVariable(ptr)\n"
        "declare i32 @SwitchToThread()\n"
    ),
    "init": "",  # zeros are an initialised lock and condition variable
    "lock": "call void @AcquireSRWLockExclusive(ptr @lock)",
    "unlock": "call void @ReleaseSRWLockExclusive(ptr @lock)",
    "wait": "call i32 @SleepConditionVariableSRW(ptr @cond, ptr @lock, i32 -1, i32 0)",
    "wake": "call void @WakeAllConditionVariable(ptr @cond)",
    "yield": "call i32 @SwitchToThread()",
}
_PAUSE: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()\n", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)\n", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSE["amd64"], _PAUSE["arm64"] = _PAUSE["x86_64"], _PAUSE["aarch64"]

# One word, the gate, says everything: the number of the call (bits 32 and up), how many helpers it wants (16-30), whether it is
# closed (15) and how many helpers have entered (0-14).  A helper enters by adding 1 to an open gate; the caller closes the gate when
# its own share is done and then waits only for those inside.  So body and data, read after entering, are those of the same call.
_POOL: Final = """
@gate = internal global i64 0, align 128
@left = internal global i32 0, align 128
@busy = internal global i32 0, align 128
@parked = internal global i32 0, align 128
@spins = internal global i64 1, align 128
@body = internal global ptr null
@data = internal global ptr null
@lock = internal global [128 x i8] zeroinitializer, align 64
@cond = internal global [128 x i8] zeroinitializer, align 64

define void @lz_pool_start(i64 %spins) {{
  {init}
  store atomic i64 %spins, ptr @spins seq_cst, align 8
  ret void
}}

define void @lz_pool_spin(i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %g = load atomic i64, ptr @gate acquire, align 8
  {pause}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}

define void @lz_parallel(ptr %f, ptr %d, i32 %threads) {{
entry:
  %many = icmp sgt i32 %threads, 1
  br i1 %many, label %claim, label %alone
claim:
  %taken = atomicrmw xchg ptr @busy, i32 1 acquire
  %free = icmp eq i32 %taken, 0
  br i1 %free, label %publish, label %alone
alone:
  call void %f(ptr %d)
  ret void
publish:
  store ptr %f, ptr @body
  store ptr %d, ptr @data
  store atomic i32 0, ptr @left monotonic, align 4
  %old = load atomic i64, ptr @gate monotonic, align 8
  %number = lshr i64 %old, 32
  %number1 = add i64 %number, 1
  %high = shl i64 %number1, 32
  %t64 = zext i32 %threads to i64
  %helpers = sub i64 %t64, 1
  %wanted = shl i64 %helpers, 16
  %open = or i64 %high, %wanted
  %ignored = atomicrmw xchg ptr @gate, i64 %open seq_cst
  %asleep = load atomic i32, ptr @parked seq_cst, align 4
  %wakes = icmp sgt i32 %asleep, 0
  br i1 %wakes, label %wake, label %run
wake:
  {lock}
  {unlock}
  {wake}
  br label %run
run:
  call void %f(ptr %d)
  %closing = atomicrmw or ptr @gate, i64 32768 acq_rel
  %entered = and i64 %closing, 32767
  %inside = trunc i64 %entered to i32
  %limit = load atomic i64, ptr @spins monotonic, align 8
  br label %join
join:
  %k = phi i64 [0, %run], [%k1, %again]
  %out = load atomic i32, ptr @left acquire, align 4
  %done = icmp eq i32 %out, %inside
  br i1 %done, label %end, label %waiting
waiting:
  {pause}
  %k1 = add i64 %k, 1
  %patient = icmp slt i64 %k1, %limit
  br i1 %patient, label %again, label %yield
yield:
  {yield}
  br label %again
again:
  br label %join
end:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}}

define void @lz_pool_worker() {{
entry:
  %limit = load atomic i64, ptr @spins seq_cst, align 8
  br label %idle
idle:
  %seen = phi i64 [0, %entry], [%now, %turned], [%now, %finished]
  br label %look
look:
  %i = phi i64 [0, %idle], [%i1, %relax]
  %g = load atomic i64, ptr @gate acquire, align 8
  %gn = lshr i64 %g, 32
  %same = icmp eq i64 %gn, %seen
  br i1 %same, label %relax, label %called
relax:
  {pause}
  %i1 = add i64 %i, 1
  %patient = icmp slt i64 %i1, %limit
  br i1 %patient, label %look, label %park
park:
  {lock}
  %p0 = atomicrmw add ptr @parked, i32 1 seq_cst
  br label %sleep
sleep:
  %s = load atomic i64, ptr @gate seq_cst, align 8
  %sn = lshr i64 %s, 32
  %still = icmp eq i64 %sn, %seen
  br i1 %still, label %wait, label %rise
wait:
  {wait}
  br label %sleep
rise:
  %p1 = atomicrmw sub ptr @parked, i32 1 seq_cst
  {unlock}
  br label %called
called:
  %c = phi i64 [%g, %look], [%s, %rise], [%actual, %turned_away]
  %now = lshr i64 %c, 32
  %entered = and i64 %c, 32767
  %shut = and i64 %c, 32768
  %w = lshr i64 %c, 16
  %wanted = and i64 %w, 32767
  %open = icmp eq i64 %shut, 0
  %room = icmp ult i64 %entered, %wanted
  %may = and i1 %open, %room
  br i1 %may, label %enter, label %turned
turned:
  br label %idle
enter:
  %c1 = add i64 %c, 1
  %pair = cmpxchg ptr @gate, i64 %c, i64 %c1 acq_rel acquire
  %actual = extractvalue {{i64, i1}} %pair, 0
  %ok = extractvalue {{i64, i1}} %pair, 1
  br i1 %ok, label %inside, label %turned_away
turned_away:
  br label %called
inside:
  %f = load ptr, ptr @body
  %d = load ptr, ptr @data
  call void %f(ptr %d)
  %l = atomicrmw add ptr @left, i32 1 release
  br label %finished
finished:
  br label %idle
}}
"""


def pool_ir(windows: bool, machine: str) -> str:
    """Return the text of the pool's module."""
    calls = _WINDOWS if windows else _POSIX
    declare, pause = _PAUSE.get(machine, ("", ""))
    return calls["declare"] + declare + _POOL.format(pause=pause, **calls)
