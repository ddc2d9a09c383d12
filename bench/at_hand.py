"""``python -m bench.at_hand``: operations on small arrays, NumPy and lazynp in turn.

In: ``--only TEXT``, ``--seconds S`` an operation.  Out: a table: nanoseconds of both, the best of short runs that take turns, and their
ratio (below 1 lazynp is faster).  Each operation runs in a loop written in Python, as users have it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import lazynp
from lazynp.array import core

# What is measured, and the ratio that it must not pass; a, b: 100 floats, c: 100 integers, m: a mask, M: 10 x 10.
OPERATIONS: dict[str, float] = {
    "a + b": 0.5, "a - b": 0.5, "a * 2.0": 0.5, "2 * a": 0.5, "a / b": 0.6, "a ** 2": 0.6, "-a": 0.6, "a < b": 0.5, "c + c": 0.6,
    "c % 7": 1.2, "np.exp(a)": 0.8, "np.sqrt(a)": 0.6, "np.maximum(a, b)": 0.6, "a += b": 1.2, "a[i]": 1.2, "a[1:-1]": 1.2,
    "M[2]": 1.2, "M[2, 3]": 1.2, "M[:, 1:5]": 1.2, "M.T": 1.3, "a[m]": 1.2, "a[c % 50]": 1.2, "a[i] = 0.5": 1.2,
    "a[1:-1] = b[1:-1]": 1.2, "a[m] = 0.0": 1.2, "float(a.sum())": 1 / 3, "a.mean()": 0.5, "a.max()": 0.5, "np.sum(a)": 0.5,
    "M.sum(axis=0)": 1.2, "np.sum(M, axis=0)": 1.0, "m.any()": 1.0, "a.argmax()": 1.3, "a @ b": 1.2, "M @ M": 1.2, "np.dot(a, b)": 1.2,
    "np.where(m, a, b)": 1.3, "np.zeros(100)": 1.3, "np.zeros((10, 10))": 1.3, "np.concatenate((a, b))": 1.3, "np.linalg.norm(a)": 1.3,
    "len(a)": 1.3, "a.shape": 1.2, "a.copy()": 1.3, "M.reshape(100)": 1.3, "for r in M: pass": 1.3, "for v in a: pass": 1.1,
    "float(a[i])": 1.2, "a[i] * 2.0": 1.2, "s * a": 1.3, "M + a[:10]": 1.3,
}  # fmt: skip


def loop(operation: str) -> Callable[..., None]:
    """A function that runs an operation ``n`` times."""
    space: dict[str, Any] = {}
    exec(f"def run(n, np, a, b, c, m, M, i, s):\n for _ in range(n):\n  {operation}\n", space)
    found: Callable[..., None] = space["run"]
    return found


def operands(xp: Any) -> tuple[Any, ...]:
    """What the operations are of, anew."""
    rng = numpy.random.default_rng(0)
    a, b, c = rng.uniform(1, 2, 100), rng.uniform(0, 1e-9, 100), rng.integers(0, 100, 100)
    arrays = [xp.array(x) for x in (a, b, c, c % 3 == 0, rng.uniform(1, 2, (10, 10)))]
    return (xp, *arrays, 5, numpy.float64(1.0))


def measure(operation: str, seconds: float) -> tuple[float, float]:
    """Best nanoseconds of NumPy and of lazynp."""
    run = loop(operation)
    theirs, ours = operands(numpy), operands(lazynp)
    run(10, *theirs), run(10, *ours)
    start = time.perf_counter()
    run(100, *theirs)
    number = max(int(2e-3 / max((time.perf_counter() - start) / 100, 1e-8)), 10)
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(pairs) < 5:
        times = []
        for arguments in (theirs, ours):
            start = time.perf_counter()
            run(number, *arguments)
            times.append((time.perf_counter() - start) / number * 1e9)
        pairs.append((times[0], times[1]))
    return min(x for x, _ in pairs), min(y for _, y in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description="Operations on small arrays, NumPy and lazynp in turn.")
    parser.add_argument("--only", default="", metavar="TEXT", help="operations that contain this")
    parser.add_argument("--seconds", type=float, default=0.3, help="for one operation")
    options = parser.parse_args()
    print(f"core: {'native' if core.native else core.reason}")
    print(f"{'operation':<26}{'NumPy':>9}{'lazynp':>9}  {'ratio':>5}  target")
    ratios = []
    for operation, target in OPERATIONS.items():
        if options.only in operation:
            theirs, ours = measure(operation, options.seconds)
            ratio = ours / theirs
            ratios.append(ratio)
            print(f"{operation:<26}{theirs:>6.0f} ns{ours:>6.0f} ns  {ratio:5.2f}  {target:.2f}{'' if ratio <= target else ' missed'}")
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
