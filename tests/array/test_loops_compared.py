"""A loop is compared with NumPy's when it is first wanted, whatever that is in the middle of."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

# At the end of the stack, and with a handler of signals that raises in every comparison.
PROGRAM: Final = """
import signal, sys
import numpy
import lazynp as np
from lazynp.array import core

u, v = np.array(numpy.arange(6400.0)), np.array(numpy.arange(6400.0)[::-1].copy())
m = np.array(numpy.ones((4, 4)))

WANTED = [
    lambda: np.maximum(u, v), lambda: np.minimum(u, v), lambda: np.hypot(u, v), lambda: m @ m, lambda: m.sum(axis=0), lambda: (u * 2).max()
]

def down(frames, f):
    return f() if frames == 0 else down(frames - 1, f)

for left in range(1, 40):
    for f in WANTED:
        try:  # what nobody could raise is raised when Python next looks for signals
            try:
                down(sys.getrecursionlimit() - left, f)
            except RecursionError:
                pass
            for _ in range(1000):
                pass
        except RecursionError:
            pass

class Mine(BaseException):
    pass

def rings(*_):
    raise Mine

signal.signal(signal.SIGALRM, rings)
heard = 0
for _ in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5)
        x = np.cbrt(u) + np.arctan(v)
        for _ in range(10_000):
            pass
    except Mine:
        heard += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert heard == 60, heard

for f in [*WANTED[:3], lambda: np.cbrt(u), lambda: np.arctan(v)]:
    f()  # is compared
    assert core.tape(f()) is not None
before = core.chain_counts()
np.realize(np.maximum(u * 2 - v, 0) + np.minimum(abs(u - v), 1))
print([y - x for x, y in zip(before, core.chain_counts())])
"""


def test_loops_that_were_first_wanted_at_a_bad_time() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 0, 0]\n", "")
