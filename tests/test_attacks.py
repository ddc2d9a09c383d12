"""What surrounds a program goes wrong: a full disk, forked children at an empty cache, interrupts under threads, no more threads,
allocations that fail, subinterpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lazynp import script

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of files, fork and signals are POSIX's")

PACKAGE_PARENT = Path(script.__file__).parent.parent


def run(program: str, *arguments: object, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE_PARENT), "LAZYNP_TIER": "compiled", **environment},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


FULL = """
import os, pathlib, resource, signal, sys
import lazynp as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
x = np.arange(50000.0)
print([float((x * (k + 1) + x ** k).sum()) for k in range(3)])
try:
    np.save(sys.argv[2], x + 1)
except OSError as error:
    print(type(error).__name__)
y = x * 2
print(float(y[7]), float((x + y).max()))
"""


@pytest.mark.usefixtures("recorded", "waiting")
@pytest.mark.parametrize("room", [900, pytest.param(0, marks=pytest.mark.slow)])
def test_a_full_disk_changes_no_value_and_leaves_nothing_in_the_cache(tmp_path: Path, room: int) -> None:
    cache = tmp_path / "cache"
    done = run(FULL, room, tmp_path / "saved.npy", LAZYNP_CACHE_DIR=str(cache))
    plenty = run(FULL, 1 << 30, tmp_path / "saved.npy", LAZYNP_CACHE_DIR=str(tmp_path / "other"))
    assert done.returncode == plenty.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.pop(1) == "OSError"
    assert lines == plenty.stdout.splitlines()
    assert all(path.suffix == ".obj" and path.stat().st_size <= room for path in cache.iterdir())


FORKS = """
import os, sys
import lazynp as np
x = np.arange(50000.0)
if sys.argv[1] == "warm":
    float((x * 3).sum())  # the compiler and the cache are there before the fork
expected = [sum(range(50000)) * (k + 2) + 50000 * k for k in range(6)]
children = []
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        os._exit(int([float((x * (k + 2) + k).sum()) for k in range(6)] != expected))
    children.append(child)
print({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children})
"""


@pytest.mark.usefixtures("recorded", "waiting")
@pytest.mark.parametrize(
    ("start", "children"), [("cold", 2), pytest.param("cold", 8, marks=pytest.mark.slow), pytest.param("warm", 8, marks=pytest.mark.slow)]
)
def test_forked_children_write_one_empty_cache(tmp_path: Path, start: str, children: int) -> None:
    cache = tmp_path / "cache"
    done = run(FORKS, start, children, LAZYNP_CACHE_DIR=str(cache))
    assert done.stdout.strip() == "{0}", done.stderr
    assert {path.suffix for path in cache.iterdir()} == {".obj"}
    assert run(FORKS, start, children, LAZYNP_CACHE_DIR=str(cache)).stdout.strip() == "{0}"


INTERRUPTS = """
import faulthandler, os, random, signal, sys, threading, time
import numpy, lazynp as np

class Interrupted(Exception):
    pass

armed = False
def interrupt(number, frame):
    global armed
    if armed:
        armed = False
        raise Interrupted

signal.signal(signal.SIGINT, interrupt)
rng, n = random.Random(int(sys.argv[1])), 200_000
x, plain = np.arange(float(n)), numpy.arange(float(n))
stop, wrong = threading.Event(), []

def work(seed):
    while not stop.is_set():
        y, z = x * seed + x, plain * seed + plain
        y[::2] += 1
        z[::2] += 1
        if not numpy.array_equal(numpy.asarray(y), z):
            wrong.append(seed)

def ring():
    while not stop.is_set():
        time.sleep(rng.random() * 0.02)
        os.kill(os.getpid(), signal.SIGINT)

threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in (1, 2, 3)] + [threading.Thread(target=ring, daemon=True)]
faulthandler.dump_traceback_later(60, exit=True)
for thread in threads:
    thread.start()
total, done, interrupted = np.zeros(n), 0, 0
while done + interrupted < int(sys.argv[2]) or not interrupted:
    try:
        armed = True
        pending = x * 3 + total
        total += 1
        float((pending - total).sum())
        armed = False
        done += 1
    except Interrupted:
        interrupted += 1
stop.set()
for thread in threads:
    thread.join()
value = numpy.asarray(total)
assert not wrong and (value == value[0]).all() and done <= value[0] <= done + interrupted, (wrong, value, done, interrupted)
assert numpy.array_equal(numpy.asarray(x), plain) and numpy.array_equal(numpy.asarray(x * 2 + 1), plain * 2 + 1)
"""


@pytest.mark.parametrize(
    ("below", "turns"), [("0", 30), pytest.param("0", 200, marks=pytest.mark.slow), pytest.param("16384", 200, marks=pytest.mark.slow)]
)
def test_interrupts_while_threads_compile_and_compute(tmp_path: Path, below: str, turns: int) -> None:
    done = run(INTERRUPTS, 7, turns, LAZYNP_TAPE_LIMIT=below, LAZYNP_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


FAILING = """
import random, sys
import numpy, lazynp as np
from lazynp.values import allocator

seed, runs, n = int(sys.argv[1]), int(sys.argv[2]), 90_000  # blocks of their own, not of a slab
rng = random.Random(seed)
real, chance = allocator._map, [0.0]

def unreliable(size, huge):
    if rng.random() < chance[0]:
        raise MemoryError
    return real(size, huge)

allocator._map = unreliable

def set_slice(a, b, k):
    a[k % 7 :: 2 + k % 3] = b[k % 7 :: 2 + k % 3] * k

def add_slice(a, b, k):
    a[k % 5 : n // 2] += 1.5

def add_all(a, b, k):
    a += b * k

def set_masked(a, b, k):
    a[b > k] = k

def add_rows(a, b, k):
    a.reshape(4, -1)[k % 4] -= b[: n // 4]

WRITES = [set_slice, add_slice, add_all, set_masked, add_rows]
MAKES = [
    lambda np, a, b, k: a * k + b, lambda np, a, b, k: np.sort(a)[::-1], lambda np, a, b, k: np.where(a > b, a, b * k),
    lambda np, a, b, k: a.reshape(4, -1).sum(axis=0).repeat(4), lambda np, a, b, k: a.copy(), lambda np, a, b, k: np.cumsum(a) - b,
    lambda np, a, b, k: np.concatenate([a[n // 2 :], b[: n // 2]]), lambda np, a, b, k: (a.reshape(300, 300) @ np.eye(300)).reshape(-1),
]
READS = [lambda a: a.realize(), lambda a: float(a.sum()), lambda a: a[rng.randrange(n)], lambda a: numpy.asarray(a * 1), lambda a: str(a)]
failed = 0

def attempt(chance_now, function, *arguments):
    global failed
    allocator.trim()
    chance[0] = chance_now
    try:
        return True, function(*arguments)
    except MemoryError:
        failed += 1
        return False, None
    finally:
        chance[0] = 0.0

def right(x, *allowed):
    found = numpy.asarray(x * 1)
    return any(numpy.allclose(found, y, rtol=1e-9, atol=1e-6) for y in allowed)

for run in range(runs):
    theirs = [numpy.floor(numpy.random.default_rng(rng.randrange(1 << 30)).random(n) * 8) for _ in range(3)]
    ours = [np.array(x) for x in theirs]
    chances = rng.choice([0.3, 1.0])
    for step in range(rng.randrange(3, 9)):
        i, j, k = rng.randrange(3), rng.randrange(3), rng.randrange(1, 9)
        kind = rng.randrange(3)
        if kind == 0:
            write = rng.choice(WRITES)
            after = theirs[i].copy()
            write(after, theirs[j] if j != i else after, k)
            done, _ = attempt(chances, write, ours[i], ours[j], k)
            if not done:
                assert right(ours[i], theirs[i], after), (seed, run, step, write)
                after = numpy.asarray(ours[i] * 1).copy()
            theirs[i] = after
        elif kind == 1:
            make = rng.choice(MAKES)
            done, made = attempt(chances, make, np, ours[i], ours[j], k)
            if done:
                ours[rng.randrange(3)] = made
                at = [index for index, x in enumerate(ours) if x is made][0]
                theirs[at] = make(numpy, theirs[i], theirs[j], k)
        else:
            attempt(chances, rng.choice(READS), ours[i])
    for x, y in zip(ours, theirs):
        assert right(x, y), (seed, run)
print(failed)
"""


@pytest.mark.parametrize("runs", [25, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("tier", "below"), [("auto", "0"), ("auto", "65536"), ("compiled", "0")])
def test_allocations_that_fail_at_random_change_no_array(tier: str, below: str, runs: int) -> None:
    done = run(FAILING, 7, runs, LAZYNP_TIER=tier, LAZYNP_TAPE_LIMIT=below)
    assert done.returncode == 0 and int(done.stdout) > 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_a_thousand_programs_whose_allocations_fail_at_random(tier: str) -> None:
    done = run(FAILING, 7, 1000, LAZYNP_TIER=tier, LAZYNP_TAPE_LIMIT="0", timeout=1200)
    assert done.returncode == 0 and int(done.stdout) > 100, done.stderr


INTERPRETERS = """
import importlib, sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
if sys.argv[2] == "first":
    importlib.import_module(sys.argv[1])
inner = interpreters.create()
interpreters.run_string(inner, f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import {sys.argv[1]} as np
    print((np.arange(30000.0) * 2).sum(), flush=True)
except ImportError as error:
    print("ImportError", flush=True)
''')
interpreters.destroy(inner)
try:
    np = importlib.import_module(sys.argv[1])
    print((np.arange(30000.0) * 3).sum())
except ImportError:
    print("ImportError")
"""


THREADS = """
import _thread
def refuse(*arguments):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = refuse
import lazynp as np
x = np.arange(3_000_000.0)
print(float((x * 2 + 1).sum()), float((x * 3).max()))
"""


def test_a_system_that_has_no_more_threads() -> None:
    done = run(THREADS, LAZYNP_THREADS="4")
    assert done.stdout.split() == [str(float(3_000_000**2)), "8999997.0"], done.stderr


@pytest.mark.parametrize("order", ["first", "last"])
def test_subinterpreters_get_what_they_get_of_numpy(order: str) -> None:
    ours, theirs = (run(INTERPRETERS, name, order) for name in ("lazynp", "numpy"))
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout), ours.stderr
