"""``python -m tests.threads``: threads that record and realize at once get the values that NumPy gives.

In: a number of threads, and of operations in all.  Out: what differs, if anything does.  Promise: every thread computes small values at
hand, expressions in one pass, recorded ones, writes, and pending values that all threads want at the same time; numbers are such that
every order of a sum is exact, so values are compared to the bit.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import lazynp
from lazynp.graph import report
from lazynp.values import config

LIMIT: Final = 1024  # elements: what is larger is recorded
SMALL, MIDDLE, LARGE = 10, 600, 5000  # at hand, at hand and worth one pass, recorded
ROUND: Final = 40  # programs that a thread runs between two meetings
Values = list[Any]


class Task(NamedTuple):
    """A program of some operations on two arrays and a number."""

    size: int
    operations: int
    run: Callable[[Any, Any, Any, int], Values]


def small(np: Any, a: Any, b: Any, k: int) -> Values:
    c = a * k + b
    c -= a
    c[3] = k
    c[1:4] *= 2
    return [c, float(c.sum()), c[::-1][2], np.where(c > k, c, b), np.maximum(c, a).max()]


def one_pass(np: Any, a: Any, b: Any, k: int) -> Values:
    c = (a * 2 + b) * k - a / 4
    return [c, np.sqrt(np.abs(c * c)) + b * k]


def recorded(np: Any, a: Any, b: Any, k: int) -> Values:
    c = ((a * k + b) * 2 - a).reshape(50, -1)
    return [c.sum(axis=0), c[3] + k, float((c - a.reshape(50, -1)).max())]


def written(np: Any, a: Any, b: Any, k: int) -> Values:
    x = a + k
    x[1:-1] += b[1:-1] * k
    y = x * 2
    x[::2] = 0
    x *= 3
    return [x, y, x.sum() + y.sum()]


def mixed(np: Any, a: Any, b: Any, k: int) -> Values:
    total = (a * b).sum()
    row = np.arange(8.0) * k + total
    return [row, row[:3].sum(), int(total) if total > 3 else 0]


TASKS: Final = [
    Task(SMALL, 12, small), Task(MIDDLE, 9, one_pass), Task(LARGE, 11, recorded), Task(LARGE, 10, written), Task(LARGE, 7, mixed),
]  # fmt: skip
SHARED: Final = Task(LARGE, 4, lambda np, a, b, k: [(a * k + b) - b, (a * k).sum()])


def inputs(np: Any, size: int) -> tuple[Any, Any]:
    return tuple([np.asarray(numpy.arange(size) % n * 1.0) for n in (17, 5)])


def same(ours: Values, expected: Values) -> bool:
    return all(numpy.array_equal(numpy.asarray(x), numpy.asarray(y)) for x, y in zip(ours, expected, strict=True))


class Threads:
    """Threads that meet after some programs, and then want the same pending values."""

    def __init__(self, count: int, rounds: int) -> None:
        self.rounds = rounds
        self.wrong: list[str] = []
        self.operations = 0
        self.shared: Values = []
        self.k = 0
        self.theirs = {size: inputs(numpy, size) for size in (SMALL, MIDDLE, LARGE)}
        self.ours = {size: inputs(lazynp, size) for size in (SMALL, MIDDLE, LARGE)}
        self.expected: dict[tuple[int, int], Values] = {}
        for number, task in enumerate([*TASKS, SHARED]):
            for k in range(7):
                self.expected[number, k] = task.run(numpy, *self.theirs[task.size], k)
        self.meeting = threading.Barrier(count, self.share)
        self.threads = [threading.Thread(target=self.work, args=(number,)) for number in range(count)]

    def share(self) -> None:
        """Make pending values, while all threads wait."""
        self.k = (self.k + 1) % 7
        self.shared = SHARED.run(lazynp, *self.ours[LARGE], self.k)
        self.operations += SHARED.operations

    def work(self, thread: int) -> None:
        done = 0
        try:
            for turn in range(self.rounds):
                self.meeting.wait()
                if not same(self.shared, self.expected[len(TASKS), self.k]):
                    self.wrong.append(f"thread {thread}, round {turn}: shared values")
                for number in range(ROUND):
                    which, k = (number * 3 + thread + turn) % len(TASKS), (number + turn * thread) % 7
                    task = TASKS[which]
                    done += task.operations
                    if not same(task.run(lazynp, *self.ours[task.size], k), self.expected[which, k]):
                        self.wrong.append(f"thread {thread}, round {turn}: {task.run.__name__} with {k}")
        except BaseException as error:
            self.wrong.append(f"thread {thread}: {type(error).__name__}: {error}")
            self.meeting.abort()
        finally:
            self.operations += done


def run(count: int, operations: int) -> Threads:
    """Let ``count`` threads do so many operations in all."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with config.override(tape_limit=LIMIT):
            a_round = count * ROUND * sum(task.operations for task in TASKS) // len(TASKS)
            made = Threads(count, -(-operations // a_round))
            for thread in made.threads:
                thread.start()
            for thread in made.threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    return made


def main() -> int:
    """Run threads."""
    parser = argparse.ArgumentParser(prog="python -m tests.threads", description="Threads that record and realize at once.")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--operations", type=int, default=2_000_000)
    options = parser.parse_args()
    made = run(options.threads, options.operations)
    counts = report.counters()
    print(f"{made.operations:,} operations, {counts['schedule_hits'] + counts['schedule_misses']:,} runs, {counts['expressions_at_hand']}")
    print("\n".join(made.wrong[:20]) or "all values are equal")
    return int(bool(made.wrong))


if __name__ == "__main__":
    sys.exit(main())
