"""``python -m tests.soak``: the same things for a very long time, with nothing left behind.

In: a number of runs of a mixed program (small values at hand, recorded ones, writes, exports, errors, shapes that change) and a number of
small operations at hand.  Out: a table of what exists after each tenth: nodes, buffers, arrays, blocks of the allocator, blocks and
references of Python's, resident bytes.  Promise: what is counted is the same at the end as after the first tenth; the exit code says so.
"""

from __future__ import annotations

import argparse
import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy

import lazynp as np
from lazynp.arrays import ndarray
from lazynp.engine import realize as engine
from lazynp.graph import build, report
from lazynp.graph.node import Node
from lazynp.values import allocator, config
from lazynp.values.buffer import Buffer

SAMPLES: Final = 10
AT_HAND: Final = 64  # elements: what is larger is recorded
WARM: Final = 8_000  # runs until every shape was seen
SLACK_REFERENCES: Final = 1_000
SLACK_BLOCKS: Final = 6_000  # of Python's memory: caches of its own, counters that become larger integers
SLACK_RESIDENT: Final = 8 << 20


class Sample(NamedTuple):
    """What exists at one time."""

    nodes: int
    buffers: int
    arrays: int
    lent: int  # bytes of the allocator
    kept: int  # plans, families' keys, lines in reports, outputs of calls
    references: int  # to singletons that C code may forget to let go
    blocks: int  # of Python's memory
    resident: int


def resident() -> int:
    """Return the bytes of this process that are in memory, 0 where nobody tells."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) << 12
    except OSError:
        return 0


ONES: Final[list[Any]] = [None, True, False, (), "", *map(numpy.dtype, ("f8", "i8", "?")), numpy.add, numpy.float64, ndarray]


def sample() -> Sample:
    """Count, after garbage is collected."""
    gc.collect()
    counts = dict.fromkeys((Node, Buffer, ndarray), 0)
    for x in gc.get_objects():
        if type(x) in counts:
            counts[type(x)] += 1
    kept = sum(map(len, (engine._engine.plans, build.outputs, report.forced, report.fallbacks, engine._engine.large)))
    references = sum(map(sys.getrefcount, ONES))
    return Sample(counts[Node], counts[Buffer], counts[ndarray], allocator.in_use(), kept, references, sys.getallocatedblocks(), resident())


# The mixed program ----------------------------------------------------------------------------------------------------------------


class State:
    """The arrays that the program keeps: small ones at hand, and recorded ones."""

    def __init__(self) -> None:
        self.small = np.asarray(numpy.arange(12.0))
        self.x = np.asarray(numpy.linspace(0.0, 1.0, 4096))
        self.out = np.zeros(4096)


def at_hand(s: State, k: int) -> None:
    s.small = (s.small * 0.5 + k % 7)[::-1].copy()
    if float(s.small.sum()) > 1e6:
        raise AssertionError("it converges")


def recorded(s: State, k: int) -> None:
    float((s.x * k + 1.0).sum())


def pending(s: State, k: int) -> None:
    y = s.x + k
    z = y * 2
    del y, z  # never computed


def writes(s: State, k: int) -> None:
    s.out[k % 4096] = k
    s.out[k % 7 :: 7] += 1.0
    s.out[:100] = s.x[:100] * 2
    float(s.out[5])


def exports(s: State, k: int) -> None:
    y = s.x * 2 + k % 3
    shown = numpy.asarray(y)
    view = memoryview(y)
    if shown[1] != view[1]:
        raise AssertionError("an export is the memory")
    shown[2] = 1.0
    float((y + 1)[2])


def shapes(s: State, k: int) -> None:
    n = 100 + k % 50
    float((s.x[:n] * s.x[k % 9 : n + k % 9]).max())


def refused(s: State, k: int) -> None:
    try:
        s.x + s.small
    except ValueError:
        return
    raise AssertionError("shapes that do not fit")


def failed(s: State, k: int) -> None:
    at = np.asarray(numpy.full(8, 4090)) + k % 3 + 6
    try:
        (s.x * 2)[at].realize()
    except IndexError:
        return
    raise AssertionError("an index beyond the end")


def library(s: State, k: int) -> None:
    y = np.sort(s.x * (-1.0) ** k)
    q, r = np.divmod(y[:64], 0.25)
    float(q.sum() + r.sum())


MIXED: Final[list[Callable[[State, int], None]]] = [
    at_hand, recorded, at_hand, writes, at_hand, exports, pending, at_hand,
    shapes, refused, recorded, at_hand, failed, at_hand, library, writes,
]  # fmt: skip


def mixed(runs: int) -> Iterator[Sample]:
    """Run the mixed program so often, with a sample after each tenth."""
    with config.override(tape_limit=AT_HAND):
        yield from _mixed(runs)


def _mixed(runs: int) -> Iterator[Sample]:
    state, done = State(), 0
    for tenth in range(1, SAMPLES + 1):
        while done < max(runs * tenth // SAMPLES, WARM) // len(MIXED) * len(MIXED):
            MIXED[done % len(MIXED)](state, done)
            done += 1
        yield sample()


def operations(count: int) -> Iterator[Sample]:
    """Do small things at hand so often, with a sample after each tenth."""
    a, b = np.asarray(numpy.arange(10.0)), np.asarray(numpy.full(10, 2.0))
    m = np.asarray(numpy.arange(12.0).reshape(3, 4))
    for _ in range(SAMPLES):
        for _ in range(count // SAMPLES // 10):
            c = a + b
            c *= 0.5
            d = c[2:7]
            d[1] = 3.0
            e = m.sum(axis=0)
            f = np.sqrt(e)
            g = f > 1.0
            h = m[1]
            i = h.reshape(2, 2)
            j = i @ i
        del c, d, e, f, g, h, i, j
        yield sample()


def difference(first: Sample, last: Sample) -> list[str]:
    """List what grew between two samples."""
    grown = [name for name in ("nodes", "arrays", "lent", "kept") if getattr(last, name) > getattr(first, name)]
    for name, slack in (("buffers", 0), ("references", SLACK_REFERENCES), ("blocks", SLACK_BLOCKS), ("resident", SLACK_RESIDENT)):
        if getattr(last, name) > getattr(first, name) + slack:
            grown.append(name)
    return [f"{name}: {getattr(first, name):,} -> {getattr(last, name):,}" for name in grown]


def soak(title: str, samples: Iterator[Sample]) -> list[str]:
    """Print samples as they come; returns what grew after the first of them."""
    print(f"{title}\n" + "".join(f"{name:>14}" for name in Sample._fields), flush=True)
    found = []
    for one in samples:
        found.append(one)
        print("".join(f"{value:>14,}" for value in one), flush=True)
    return difference(found[0], found[-1])


def main() -> int:
    """Soak."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="The same things for a very long time.")
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs of the mixed program")
    parser.add_argument("--operations", type=int, default=10_000_000, help="small operations at hand")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    grown = soak(f"{options.runs:,} runs of a mixed program", mixed(options.runs))
    grown += soak(f"{options.operations:,} small operations at hand", operations(options.operations))
    print("\n".join(grown) or "nothing grew")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
