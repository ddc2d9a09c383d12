"""Large operations at hand, whose pieces several threads take: NumPy's bits, its warnings at the user's line, and who takes part."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import lazynp as np
from lazynp.array import core
from lazynp.values import config
from tests.array import chained
from tests.test_script import launch

N = 60_000


def shared(threads: int) -> tuple[int, int]:
    """How many cases differ, and how often several threads computed something."""
    environment = {**os.environ, "LAZYNP_THREADS": str(threads), "LAZYNP_NUMERICS": "numpy"}  # those of NumPy's loops, of functions, too
    command = [sys.executable, "-m", "tests.array.shared"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    counted = re.fullmatch(r"\d+ cases, (\d+) differ, shared (\d+) times\n", done.stdout)
    assert counted, done.stdout + done.stderr
    return int(counted[1]), int(counted[2])


@pytest.mark.slow
def test_pieces_have_numpys_bits_and_warnings() -> None:
    differ, count = shared(3)
    assert (differ, count > 20_000 or os.name == "nt") == (0, True)


@pytest.mark.slow
def test_one_thread_shares_nothing() -> None:
    assert shared(1) == (0, 0)


SETTINGS = """
import os, sys
import numpy
import lazynp as np
from lazynp.array import core
from lazynp.values import config
x = np.asarray(numpy.linspace(0.1, 3, 60_000), copy=True)
y = x * 0.5

def counted(function):
    for _ in range(6):
        np.realize(function())
    before = core.share(0)
    np.realize(function())
    return core.share(0) - before
"""


def say(directory: Path, program: str, **environment: str) -> list[str]:
    (directory / "main.py").write_text(SETTINGS + program, encoding="utf-8")
    found = launch(directory, "main.py", module=False, **{"LAZYNP_TAPE_LIMIT": "524288", "LAZYNP_THREADS": "3", **environment})
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout.splitlines()


@pytest.mark.skipif(os.name == "nt", reason="threads are POSIX's")
def test_what_is_shared(tmp_path: Path) -> None:
    program = """
core.share(0)
print(counted(lambda: np.hypot(x, y)), counted(lambda: x**1.7), counted(lambda: x.reshape(300, 200).sum(axis=1)))
print(counted(lambda: x[:500] + y[:500]))
for threads in (1, 2, None, 1 << 20, 1 << 40, 1 << 70):
    with config.override(threads=threads):
        print(counted(lambda: np.hypot(x, y)))
core.share()
print(counted(lambda: x + y))  # counts with a limit of 0
core.share()
before = core.share()
p, q = x[:8192], y[:8192]
for _ in range(10): np.realize(p + q)  # by far too little: that takes some microseconds, however busy the machine is
print(core.share() - before)
"""
    assert say(tmp_path, program) == ["1 1 1", "0", "0", "1", "1", "1", "1", "1", "1", "0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_computes_alone(tmp_path: Path) -> None:
    program = """
core.share(0)
print(counted(lambda: np.hypot(x, y)), flush=True)
for _ in range(3):
    child = os.fork()
    if not child:
        alone = counted(lambda: np.hypot(x, y)) == 0
        os._exit(0 if alone and (numpy.asarray(np.hypot(x, y)) == numpy.hypot(numpy.asarray(x), numpy.asarray(y))).all() else 1)
    print(os.waitpid(child, 0)[1], counted(lambda: np.hypot(x, y)), flush=True)
"""
    assert say(tmp_path, program) == ["1", "0 1", "0 1", "0 1"]


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.uname().machine != "x86_64", reason="numbers of rounding modes")
def test_threads_round_as_the_callers_does(tmp_path: Path) -> None:
    program = """
import ctypes
libm = ctypes.CDLL("libm.so.6")
core.share(0)
p, q = numpy.asarray(x).copy(), numpy.asarray(y).copy()
for mode in (0, 0x400, 0x800, 0xc00):
    for _ in range(6): np.realize(np.divide(x, 0.3))
    libm.fesetround(mode)
    before = core.share(0)
    ours = [np.realize(np.divide(x, 3.0)) for _ in range(20)]
    shared = core.share(0) - before
    theirs = numpy.divide(p, 3.0)
    libm.fesetround(0)
    print(shared, all(numpy.array_equal(one, theirs) for one in ours))
    with config.override(tier="compiled"):  # kernels have the same threads
        print(numpy.array_equal(np.full(3_000_000, mode / 7) / 3.0, numpy.full(3_000_000, mode / 7) / 3.0))
"""
    assert say(tmp_path, program) == ["20 True", "True"] * 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
def test_what_a_handler_of_signals_raises_is_raised(tmp_path: Path) -> None:
    program = """
import signal, time
def late(*_): raise TimeoutError("late")
signal.signal(signal.SIGALRM, late)
core.share(0)
for _ in range(5): np.hypot(x, y)  # the next one has the threads started
signal.setitimer(signal.ITIMER_REAL, 0.0002)
try:
    end = time.monotonic() + 20
    while time.monotonic() < end: np.hypot(x, y)
except TimeoutError as error:
    print(error)
"""
    assert say(tmp_path, program) == ["late"]


def test_the_larger_of_two_zeros_is_numpys_wherever_they_lie() -> None:
    z = numpy.where(numpy.random.default_rng(0).random((2, 400, 3, 40)) < 0.5, 0.0, -0.0)
    ours = np.asarray(z, copy=True)
    with config.override(tape_limit=1 << 20):
        for name in ("fmax", "fmin", "maximum", "minimum"):
            for _ in range(2):
                found = getattr(np, name)(ours[0][:, :, 1:21], ours[1][:, :, 1:21])
                assert numpy.asarray(found).tobytes() == getattr(numpy, name)(z[0][:, :, 1:21], z[1][:, :, 1:21]).tobytes()


@pytest.mark.slow
def test_threads_that_compute_while_their_expression_is_compiled(tmp_path: Path) -> None:
    program = """
import threading
def expression(a, b, c): return a * b + c * a - b * 3.5 + c * b - a * c + b * b - c * c + a
operands = [[np.asarray(numpy.random.random(700_000) + 0.5) for _ in range(3)] for _ in range(8)]
wrong = []
def work(k):
    expected = expression(*map(numpy.array, operands[k])).tobytes()
    for turn in range(60):
        if numpy.asarray(expression(*operands[k])).tobytes() != expected: wrong.append((k, turn))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""
    assert say(tmp_path, program, LAZYNP_TAPE_LIMIT="786432") == ["[]"]


def test_a_warning_is_at_the_users_line() -> None:
    x = np.asarray(numpy.linspace(1, 2, N), copy=True)
    x[N - 1] = 0.0
    for way in (chained.BLOCKS, chained.TOLD):
        with chained.hears(way) as caught, config.override(tape_limit=4 * N):
            try:
                core.share(0)
                for _ in range(6):
                    made = 1.0 / x
                    np.realize(made)
                here = sys._getframe().f_lineno - 2
            finally:
                core.share()
        assert [(w.lineno, str(w.message)) for w in caught] == [(here, "divide by zero encountered in divide")] * 6


@pytest.mark.slow
@pytest.mark.parametrize("work", ["1 << 62", "0"])
def test_many_threads_of_a_program(tmp_path: Path, work: str) -> None:
    program = f"""
core.chain_sizes(256, 32, 1024, {work})
from concurrent.futures import ThreadPoolExecutor
core.share(0)
p, q = numpy.asarray(x).copy(), numpy.asarray(y).copy()
steps = [
    lambda np, x, y: np.hypot(x, y), lambda np, x, y: x * y - x / y + 2.0 * y,
    lambda np, x, y: (x.reshape(300, 200) - y[:200]).max(axis=0), lambda np, x, y: x**1.7,
]
expected = [step(numpy, p, q).tobytes() for step in steps]
def work(k):
    for turn in range(60):
        if any(step(np, x, y).tobytes() != value for step, value in zip(steps, expected)):
            return False
        large = np.full(400_000, float(k)) + float(turn)  # recorded, and gone at the end of the turn, with the memory that its parts show
        part = large[50_000:110_000]
        own = x.copy()
        own *= part
        own[1:] += own[:-1] * 0.5
        found = own + part * part - np.hypot(part, own)
        large += 1.0
        own_, part_ = p * (k + turn), numpy.full(60_000, float(k + turn))
        own_[1:] += own_[:-1] * 0.5
        if found.tobytes() != (own_ + part_ * part_ - numpy.hypot(part_, own_)).tobytes():
            return False
    return True
with ThreadPoolExecutor(8) as pool:
    print(all(pool.map(work, range(8))))
"""
    assert say(tmp_path, program) == ["True"]


RUNNING = """
import threading, time
sys.setswitchinterval(1000)  # nobody runs before who runs lets go
turns, ends = [0], []

def turn():
    while not ends:
        turns[0] += 1
        time.sleep(0)

other = threading.Thread(target=turn)
other.start()

def others_run(function):
    before = turns[0]
    for _ in range(300):  # it takes who waits a while to wake up
        np.realize(function())
        if turns[0] > before:
            return True
    return False

x = np.asarray(numpy.linspace(0.1, 3, 600_000), copy=True)
y = x * 0.5
matrix, short = x.reshape(3000, 200), x.reshape(200_000, 3)
print(others_run(lambda: np.hypot(x, y)), others_run(lambda: x + y), others_run(lambda: matrix + y[:200]))
print(others_run(lambda: short.max(axis=1)))
print(others_run(lambda: x * y - x / (y + 1.5) + 2.0), others_run(lambda: [z := x * y - 1.5, z / (y + 1.5), x + z][1]))
print(others_run(lambda: x[:100] + y[:100]))
ends.append(1)
"""


def test_other_threads_of_the_program_run_meanwhile(tmp_path: Path) -> None:
    for threads in ("1", "3"):
        for sizes in ("1 << 62", "0"):
            program = f"core.chain_sizes(256, 32, 1024, {sizes})\n{RUNNING}"
            found = say(tmp_path, program, LAZYNP_THREADS=threads, LAZYNP_TAPE_LIMIT="4000000")
            assert found == ["True True True", "True", "True True", "False"]


def test_the_limit_of_threads_is_read_at_each_call() -> None:
    x = np.asarray(numpy.linspace(0.1, 3, N), copy=True)
    expected = numpy.hypot(numpy.array(x), 0.7)
    try:
        core.share(0)
        for threads in (1, 2, 5, None):
            with config.override(threads=threads, tape_limit=4 * N):
                for _ in range(6):
                    assert numpy.array_equal(np.hypot(x, 0.7), expected)
    finally:
        core.share()
