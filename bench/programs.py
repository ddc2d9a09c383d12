"""``python -m bench.programs``: ordinary programs of all sizes, through NumPy and through lazynp.

In: the programs of ``bench.ordinary``, each at three sizes (about 1, 10 and 100 ms of NumPy's time).  Out: a table as the numbers come,
and JSON where asked.  Promise: the same source for both, timed in turns in one process, which is the program's own and starts with no
compiled code; results are compared, dtypes and shapes too.  The exit code is 1 if one is wrong or was not computed, else 0: a
benchmark on a busy machine is a report and no test.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.machine import describe
from bench.measure import difference, pairs
from bench.ordinary import FAMILIES, PROGRAMS, Program, Run
from bench.peers import host
from bench.processes import rows

SIZES: Final = ("small", "middle", "large")
TARGETS: Final = {"small": 1.5, "middle": 2.0, "large": 3.0}  # geometric means
FLOOR: Final = 0.9  # every program
WORST: Final = 12

CLOCKS: Final = {"wall": time.perf_counter, "cpu": time.process_time}

Row = dict[str, Any]


# One program ----------------------------------------------------------------------------------------------------------------------


def size_of(program: Program, size: str) -> int:
    return program.tiny if size == "tiny" else program.sizes[SIZES.index(size)]


def prepare(program: Program, size: int, xp: Any) -> Run:
    """The function that is timed; its inputs are there, and it returns when its results are, as a tuple."""
    run = program.make(xp, size)
    if xp is not np:
        xp.realize(*_arrays(xp, (cell.cell_contents for cell in run.__closure__ or ())))

    def complete() -> tuple[Any, ...]:
        result = run()
        results = result if isinstance(result, tuple) else (result,)
        if xp is not np:
            xp.realize(*_arrays(xp, results))
        return results

    return complete


def _arrays(xp: Any, values: Iterable[Any]) -> Iterator[Any]:
    """What may be pending of some values, and of lists of them."""
    for value in values:
        if isinstance(value, (xp.ndarray, xp.generic)):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _arrays(xp, value)


def mismatch(program: Program, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> str | None:
    """What is wrong with lazynp's results, if anything is."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    for number, (a, b) in enumerate(zip(host(ours), host(theirs), strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        apart = difference(a, b)
        if apart > (program.tolerance if b.dtype.kind in "fc" else 0.0):
            return f"result {number}: off by {apart:.2g}, more than {program.tolerance:.2g}"
    return None


def work(name: str, seconds: str, clock: str, *sizes: str) -> None:
    """Print one row a size: what a program's process does."""
    import lazynp
    from lazynp.engine import facts

    facts.SMALLEST = sys.maxsize  # every run computes: what is remembered of an input would be timed otherwise
    program = PROGRAMS[name]
    for size in sizes:
        row: Row = {"n": size_of(program, size)}
        try:
            theirs, ours = (prepare(program, row["n"], xp) for xp in (np, lazynp))
            row.update(pairs(theirs, ours, float(seconds), CLOCKS[clock]))
            wrong = mismatch(program, ours(), theirs())
            if not wrong and row["difference"] > program.tolerance:
                wrong = f"off by {row['difference']:.2g} in the first run"
            if wrong:
                row["wrong"] = wrong
        except Exception as error:  # a program that fails is a row
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        print(json.dumps(row), flush=True)


def measure(name: str, sizes: list[str], seconds: float, clock: str, limit: float) -> Iterator[Row]:
    """The rows of one program, from a process of its own with an empty cache on disk."""
    command = ["-c", "import sys; from bench.programs import work; work(*sys.argv[1:])", name, str(seconds), clock]
    with tempfile.TemporaryDirectory() as cache:
        for size, row in rows(command, sizes, limit, {"LAZYNP_CACHE_DIR": cache}):
            yield {"program": name, "family": PROGRAMS[name].family, "size": size, **row}


# All of them ----------------------------------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    head = f"{row['program']:<30} {row['size']:<7}"
    if "ratio" not in row:
        return f"{head} {row['error']}"
    low, high = row["ratio_quartiles"]
    times = f"{row['first_seconds'] * 1e3:>9.2f} {row['second_seconds'] * 1e3:>9.2f}"
    cold = f"{row['second_cold_seconds'] * 1e3:>9.1f}"
    text = f"{head} {row['n']:>9} {times} {row['ratio']:>7.2f}x {low:>6.2f}-{high:<6.2f} {cold} {row['difference']:>9.1e}"
    return text + "".join(f"  {row[key]}" for key in ("wrong", "error") if key in row)


def mean(measured: Iterable[Row]) -> float:
    logarithms = [math.log(row["ratio"]) for row in measured]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def summary(measured: list[Row]) -> Iterator[str]:
    good = [row for row in measured if "ratio" in row]
    sizes = [size for size in ("tiny", *SIZES) if any(row["size"] == size for row in measured)]
    yield f"{'geometric mean':<42}" + "".join(f"{size:>9}" for size in sizes)
    for family, title in FAMILIES.items():
        of_family = [row for row in good if row["family"] == family]
        if of_family:
            yield f"{title:<42}" + "".join(f"{mean(r for r in of_family if r['size'] == size):>8.2f}x" for size in sizes)
    yield f"{'all':<42}" + "".join(f"{mean(r for r in good if r['size'] == size):>8.2f}x" for size in sizes)
    for size in sizes:
        of_size = [row for row in good if row["size"] == size]
        if of_size and size in TARGETS:
            found, slow = mean(of_size), sum(row["ratio"] < FLOOR for row in of_size)
            verdict = "pass" if found >= TARGETS[size] and not slow else "MISS"
            yield f"{size}: {found:.2f}x of {TARGETS[size]:g}x, {slow} of {len(of_size)} below {FLOOR:g}x: {verdict}"
    yield ""
    yield f"the worst {min(WORST, len(good))}:"
    for row in sorted(good, key=lambda row: row["ratio"])[:WORST]:
        yield f"  {row['ratio']:>6.2f}x  {row['program']}, {row['size']}"
    for row in measured:
        for key in ("wrong", "error"):
            if key in row:
                yield f"{key.upper()}: {row['program']}, {row['size']}: {row[key]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.programs", description="Ordinary programs, lazynp beside NumPy, in interleaved pairs."
    )
    parser.add_argument("--only", metavar="TEXT", action="append", help="only programs with TEXT in their name (may be repeated)")
    parser.add_argument(
        "--sizes", metavar="NAMES", default=",".join(SIZES), help="comma separated: small, middle, large, tiny (that of the tests)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each program is measured at each size")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: of all threads together, for small sizes on a busy machine")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a program at one size is given up")
    parser.add_argument("--json", metavar="FILE", help="write everything, with the machine named, to FILE, row by row")
    options = parser.parse_args()
    sizes = options.sizes.split(",")
    for size in sizes:
        if size not in ("tiny", *SIZES):
            parser.error(f"--sizes: {size!r} is not one of {', '.join(SIZES)}, tiny")
    names = [name for name in PROGRAMS if not options.only or any(text.lower() in name for text in options.only)]
    if not names:
        parser.error(f"--only: no program is called like {options.only}")
    path = Path(options.json) if options.json else None
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)

    machine = describe(["numpy", "lazynp", "llvmlite"])
    print(f"{machine['cpu']}, {machine['usable_cores']} of {machine['cores']} cores, Python {machine['python']}, {machine['versions']}")
    heading = f"{'program':<30} {'size':<7} {'n':>9} {'NumPy ms':>9} {'our ms':>9} {'ratio':>8} {'quartiles':^13} {'our cold':>9}"
    print(heading + f" {'diff':>9}")
    measured = []
    for name in names:
        for row in measure(name, sizes, options.seconds, options.clock, options.limit):
            measured.append(row)
            print(line(row), flush=True)
            if path:
                path.write_text(
                    json.dumps({"machine": machine, "clock": options.clock, "rows": measured}, indent=1) + "\n", encoding="utf-8"
                )
    print()
    for text in summary(measured):
        print(text)
    return int(any("wrong" in row or "error" in row for row in measured))


if __name__ == "__main__":
    sys.exit(main())
