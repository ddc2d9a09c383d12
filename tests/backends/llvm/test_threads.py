"""Parallel execution: every engine runs every chunk once, alone when it must, also after fork and while the process ends."""

import os
import subprocess
import sys

import pytest

from lazynp.backends.llvm import threads
from lazynp.values import config

# A body that claims chunks from a counter and, for each, adds one to the chunk's own cell after some volatile reads.
SETUP = """
import ctypes, os, sys, threading, time
import numpy as np
from lazynp.backends.llvm import compiler, threads
IR = threads.DECLARATION + '''
define void @body(ptr %d) {
entry:
  %np = getelementptr i64, ptr %d, i64 1
  %n = load i64, ptr %np
  br label %claim
claim:
  %c = atomicrmw add ptr %d, i64 1 monotonic
  %go = icmp slt i64 %c, %n
  br i1 %go, label %work, label %end
work:
  %k = add i64 %c, 2
  %p = getelementptr i64, ptr %d, i64 %k
  %v = load i64, ptr %p
  %v1 = add i64 %v, 1
  store i64 %v1, ptr %p
  br label %spin
spin:
  %i = phi i64 [0, %work], [%i1, %spin]
  %x = load volatile i64, ptr %np
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, 300
  br i1 %more, label %spin, label %claim
end:
  ret void
}
define void @nested(ptr %d) {
  call void @lz_parallel(ptr @body, ptr %d, i32 2)
  ret void
}
define void @go(ptr %d, i32 %t) {
  store i64 0, ptr %d
  call void @lz_parallel(ptr @body, ptr %d, i32 %t)
  ret void
}
define void @go_nested(ptr %d, i32 %t) {
  store i64 0, ptr %d
  call void @lz_parallel(ptr @nested, ptr %d, i32 %t)
  ret void
}
'''
addresses = compiler.compile_module(IR, ["go", "go_nested"])
go, go_nested = (ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(addresses[n]) for n in ("go", "go_nested"))
def data(chunks=20):
    d = np.zeros(chunks + 2, np.int64)
    d[1] = chunks
    return d
def check(call, times, count=None):
    d = data()
    for _ in range(times):
        call(d.ctypes.data, count or threads.count())
    assert (d[2:] == times).all(), d
"""
ALL = ("native_pool", "python_pool")
ENGINES = ALL if os.name != "nt" else ALL[1:]
NONE_SUCH = "from lazynp.backends.llvm import threads\nthreads._{0} = lambda: None\nthreads._{0}.__name__ = 'no'\n"


def run(engine, program, **environment):
    before = "".join(NONE_SUCH.format(other) for other in ALL[: ALL.index(engine)])
    environment = {**os.environ, "LAZYNP_THREADS": "3", **environment}
    done = subprocess.run([sys.executable, "-c", before + SETUP + program], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_chunk_runs_once(engine):
    program = "check(go, 300); check(go, 50, 1); check(go_nested, 50)\nprint(threads.engine()[0], threads.count())"
    assert run(engine, program) == [engine, "3"]


@pytest.mark.skipif(os.name == "nt", reason="its threads are those of POSIX")
def test_a_core_is_left_to_a_compiler():
    program = """
from lazynp.array import core
parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(threads.engine()[1])
def came(expected):
    seen = set()
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def body(_):
        seen.add(threading.get_ident())
        until = time.monotonic() + 30
        while len(seen) < expected and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.1)  # for one more
    parallel(ctypes.cast(body, ctypes.c_void_p), None, 3)
    return len(seen)
for cores, ns, expected in [(0, 0, 3), (3, 10**12, 2), (2, 10**12, 1), (4, 10**12, 3), (3, 1, 3), (3, 10**12, 2), (0, 0, 3)]:
    core.spare(cores, ns)
    assert came(expected) == expected, (cores, ns)
"""
    run(ENGINES[0], program)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_workers_that_fell_asleep_wake_up(engine):
    run(engine, "for _ in range(20):\n    time.sleep(0.005)\n    check(go, 1)")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_from_many_python_threads(engine):
    program = """
crowd = [threading.Thread(target=check, args=(go, 200)) for _ in range(4)]
for t in crowd: t.start()
for t in crowd: t.join()
"""
    run(engine, program)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_child_after_fork_uses_one_thread(engine):
    program = """
check(go, 5)
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        check(go, 5)
        os._exit(0 if threads.count() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
check(go, 5)
assert threads.count() == 3
"""
    run(engine, program)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_process_may_end_while_threads_spin_or_work(engine):
    program = """
check(go, 50)
def for_ever():
    while True: check(go, 10)
threading.Thread(target=for_ever, daemon=True).start()
check(go, 50)
"""
    for _ in range(3):
        run(engine, program)


@pytest.mark.slow
def test_environment_and_python_threads_are_left_alone():
    program = "before = dict(os.environ); check(go, 2); assert dict(os.environ) == before; print(threading.active_count())"
    assert run(ENGINES[0], program) == ["1"]


def test_the_number_of_threads_is_what_the_settings_say():
    for wanted in (1, 3, threads.MAXIMUM, 2 * threads.MAXIMUM):
        with config.override(threads=wanted):
            assert threads.count() == min(wanted, threads.MAXIMUM)
    assert threads.count() >= 1


@pytest.mark.slow
def test_one_thread_is_no_special_case():
    for engine in ENGINES:
        assert run(engine, "check(go, 20); print(threads.count())", LAZYNP_THREADS="1") == ["1"]


@pytest.mark.slow
def test_without_the_variable_affinity_counts():
    program = "from lazynp.backends.llvm import threads; print(threads.count())"
    environment = {name: value for name, value in os.environ.items() if name != "LAZYNP_THREADS"}
    if hasattr(os, "sched_setaffinity"):
        program = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + program
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment)
        assert done.stdout == "1\n", done.stderr
