"""``python -m bench.programs``: ordinary programs of all sizes, through NumPy and through lazynp.

In: the programs of ``bench.ordinary``, each at three sizes (about 1, 10 and 100 ms of NumPy's time).  Out: a table as the numbers come,
and JSON where asked.  Promise: the same source for both, timed in turns in two processes, which are the program's own: NumPy's never
imports lazynp, which tells the heap to keep what is freed and so changes NumPy's times; lazynp's starts with no compiled code.  While one
computes the other waits.  Results are compared, dtypes and shapes too.  The exit code is 1 if one is wrong or was not computed, else 0:
a benchmark on a busy machine is a report and no test.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from bench.machine import describe
from bench.measure import Clock, batch, difference, in_turns, once
from bench.ordinary import FAMILIES, PROGRAMS, Program, Run
from bench.peers import host
from bench.processes import Ask, EndedError, conversation

SIZES: Final = ("small", "middle", "large")
TARGETS: Final = {"small": 1.5, "middle": 2.0, "large": 3.0}  # geometric means
FIRST_TARGETS: Final = {"small": 1.2, "middle": 1.8, "large": 2.0}  # of first runs
FLOOR: Final = 0.9  # every program
WORST: Final = 12

CLOCKS: Final = {"wall": time.perf_counter, "cpu": time.process_time}

Row = dict[str, Any]
Sides = tuple[Ask, ...]  # NumPy's and lazynp's process


class FailedError(Exception):
    """A program did not compute what it should."""


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


def serve(name: str, library: str, clock: str) -> None:
    """Answer questions about one program through one library: what each of a program's two processes does."""
    xp = import_module(library)
    for answer in answers(PROGRAMS[name], xp, CLOCKS[clock], map(json.loads, sys.stdin)):
        print(json.dumps(answer), flush=True)


def answers(program: Program, xp: Any, clock: Clock, questions: Iterable[Row]) -> Iterator[Row]:
    """Seconds of one computation, over ``count`` of them, or of one whose results go to ``file``; ``n`` names another size first."""
    run: Run | None = None
    for question in questions:
        answer: Row = {}
        try:
            if "n" in question:
                run = prepare(program, question["n"], xp)
            assert run is not None
            if "file" in question:
                answer["seconds"], results = once(run, clock)
                np.savez(question["file"], *host(results))
                del results
            else:
                answer["seconds"] = batch(run, question["count"], clock)
        except Exception as error:  # a program that fails is a row
            answer["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        yield answer


def measure(name: str, sizes: list[str], seconds: float, clock: str, limit: float) -> Iterator[Row]:
    """The rows of one program, from two processes of its own with an empty cache on disk."""
    program = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sides: Sides = ()
        for size in sizes:
            row: Row = {"program": name, "family": program.family, "size": size, "n": size_of(program, size)}
            try:
                if not sides:
                    sides = tuple(
                        stack.enter_context(_process(name, library, clock, limit, folder)) for library in ("numpy", "lazynp")
                    )
                row.update(compare(program, row["n"], sides, Path(folder), seconds))
            except EndedError as error:  # the next size gets new processes
                row["error"] = str(error)
                stack.close()
                sides = ()
            yield row


def first_runs(name: str, sizes: list[str], times: int, clock: str, limit: float) -> Iterator[Row]:
    """The rows of one program that is run once, in fresh processes with an empty cache on disk: medians of so many of them in turns."""
    program = PROGRAMS[name]
    for size in sizes:
        row: Row = {"program": name, "family": program.family, "size": size, "n": size_of(program, size)}
        took: tuple[list[float], list[float]] = ([], [])
        try:
            for _ in range(times):
                results = []
                for side, library in enumerate(("numpy", "lazynp")):
                    with tempfile.TemporaryDirectory() as folder, _process(name, library, clock, limit, folder) as ask:
                        path = f"{folder}/results.npz"
                        answer = ask(n=row["n"], file=path)
                        if "error" in answer:
                            raise FailedError(("NumPy's ", "")[side] + answer["error"])
                        took[side].append(answer["seconds"])
                        with np.load(path) as arrays:
                            results.append(tuple(arrays.values()))
                theirs, ours = results
                row["wrong"] = row.get("wrong") or mismatch(program, ours, theirs)
                row["difference"] = math.inf if row["wrong"] else difference(ours, theirs)
            ratios = sorted(a / b for a, b in zip(*took, strict=True))
            row["first_seconds"], row["second_seconds"] = map(median, took)
            row["ratio"], row["second_cold_seconds"] = row["first_seconds"] / row["second_seconds"], row["second_seconds"]
            row["ratio_quartiles"] = [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]]
            if not row["wrong"]:
                del row["wrong"]
        except (EndedError, FailedError) as error:
            row["error"] = str(error)
        yield row


def _process(name: str, library: str, clock: str, limit: float, folder: str) -> contextlib.AbstractContextManager[Ask]:
    """A process that answers questions about a program, with its cache in a folder."""
    command = ["-c", "import sys; from bench.programs import serve; serve(*sys.argv[1:])", name, library, clock]
    return conversation(command, limit, {"LAZYNP_CACHE_DIR": f"{folder}/cache"})


def compare(program: Program, n: int, sides: Sides, folder: Path, seconds: float) -> Row:
    """One row: the times of first runs, and of later ones in turns; both are compared."""

    def ask(side: int, **question: Any) -> float:
        answer = sides[side](**question)
        if "error" in answer:
            raise FailedError(("NumPy's ", "")[side] + answer["error"])
        return float(answer["seconds"])

    def results(**question: Any) -> list[tuple[float, tuple[Any, ...]]]:
        found = []
        for side in (0, 1):
            path = folder / f"{side}.npz"
            took = ask(side, file=str(path), **question)
            with np.load(path) as arrays:
                found.append((took, tuple(arrays.values())))
        return found

    row: Row = {}
    try:
        (cold_first, theirs), (cold_second, ours) = results(n=n)
        wrong = mismatch(program, ours, theirs)
        row["wrong"] = wrong and f"{wrong} in the first run"
        row["difference"] = math.inf if wrong else difference(ours, theirs)
        row.update(in_turns(lambda count: ask(0, count=count), lambda count: ask(1, count=count), seconds))
        row.update({"first_cold_seconds": cold_first, "second_cold_seconds": cold_second})
        (_, theirs), (_, ours) = results()
        row["wrong"] = row["wrong"] or mismatch(program, ours, theirs)
        if not row["wrong"]:
            del row["wrong"]
    except FailedError as error:
        row["error"] = str(error)
    return row


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


def summary(measured: list[Row], targets: dict[str, float] = TARGETS) -> Iterator[str]:
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
        if of_size and size in targets:
            found, slow = mean(of_size), sum(row["ratio"] < FLOOR for row in of_size)
            verdict = "pass" if found >= targets[size] and not slow else "MISS"
            yield f"{size}: {found:.2f}x of {targets[size]:g}x, {slow} of {len(of_size)} below {FLOOR:g}x: {verdict}"
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
    parser.add_argument("--first", type=int, metavar="TIMES", help="time first runs alone, in so many fresh processes")
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
        if options.first:
            rows = first_runs(name, sizes, options.first, options.clock, options.limit)
        else:
            rows = measure(name, sizes, options.seconds, options.clock, options.limit)
        for row in rows:
            measured.append(row)
            print(line(row), flush=True)
            if path:
                path.write_text(
                    json.dumps({"machine": machine, "clock": options.clock, "rows": measured}, indent=1) + "\n", encoding="utf-8"
                )
    print()
    for text in summary(measured, FIRST_TARGETS if options.first else TARGETS):
        print(text)
    return int(any("wrong" in row or "error" in row for row in measured))


if __name__ == "__main__":
    sys.exit(main())
