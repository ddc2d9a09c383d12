"""``python -m bench.peak``: the most memory that programs take, through NumPy and through lazynp.

In: the programs of ``tests/programs``, of ``bench.ordinary``, the workloads of ``bench`` and ``bench.memory_programs``.  Out: a table of
what each needs at most beyond what its process had before, by both libraries, and of those that need more than the promise allows.
Promise: each run has a process of its own, which is forked from one that has imported everything and computed nothing; the system
counts its memory (``VmHWM``).  A program is run once before, so that its machine code is on disk; ``--cold`` measures that first run,
which loads LLVM: its 70 MiB of pages that are a file's are shown, and not counted, for they are nobody's memory but the page cache's,
shared by all processes and taken back when memory is short.  The exit code is 1 if a program exceeds NumPy's peak by more than a
quarter and 64 MiB.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import gc
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bench.processes import rows

MEBIBYTE: Final = 1 << 20
SHARE: Final = 1.25
SLACK: Final = 64 * MEBIBYTE
SUITES: Final = ("programs", "ordinary", "workloads", "memory")
LIBRARIES: Final = ("numpy", "lazynp")
ELEMENTS: Final = 4_000_000

Row = dict[str, Any]


def allowed(theirs: int) -> float:
    """Return the bytes that a program may take which takes ``theirs`` with NumPy."""
    return SHARE * theirs + SLACK


# The programs ---------------------------------------------------------------------------------------------------------------------


def names(suite: str, size: str) -> list[str]:
    """List the programs of a suite, as ``run`` knows them."""
    if suite == "programs":
        from tests.programs.table import PROGRAMS

        return [f"programs:{name}" for name in PROGRAMS]
    if suite == "ordinary":
        from bench import ordinary

        return [f"ordinary:{name}:{size}" for name in ordinary.PROGRAMS]
    if suite == "workloads":
        from bench.workloads import WORKLOADS

        return [f"workloads:{workload.name}" for workload in WORKLOADS]
    from bench import memory_programs

    return [f"memory:{name}" for name in memory_programs.PROGRAMS]


def run(name: str, xp: Any) -> None:
    """Run a program once, and drop what it computed when all of it exists."""
    suite, _, rest = name.partition(":")
    if suite == "programs":
        from tests.programs.table import PROGRAMS, plain

        plain(PROGRAMS[rest](xp))
    elif suite == "ordinary":
        from bench import ordinary
        from bench.programs import prepare, size_of

        rest, _, size = rest.partition(":")
        prepare(ordinary.PROGRAMS[rest], size_of(ordinary.PROGRAMS[rest], size), xp)()
    elif suite == "workloads":
        import numpy

        from bench.peers import PEERS
        from bench.workloads import WORKLOADS

        workload = next(workload for workload in WORKLOADS if workload.name == rest)
        PEERS[xp.__name__].prepare(workload, workload.make(numpy.random.default_rng(0), True))()
    else:
        from bench import memory_programs

        memory_programs.PROGRAMS[rest](xp, ELEMENTS)


# One process ----------------------------------------------------------------------------------------------------------------------


def _status(field: str) -> int:
    """Return a number of ``/proc/self/status``, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith(field + ":"))
    return int(line.split()[1]) << 10


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that this process has while some work is done, beyond what it has now."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)  # what the C library kept of earlier work would be used again, and not be seen
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    work()
    return _status("VmHWM") - before


def _forked(name: str, library: str) -> Row:
    """Run a program in a child of this process; returns its row."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            xp = sys.modules[library]
            files = _status("RssFile")
            row: Row = {library: peak_of(lambda: run(name, xp))}
            if library == "lazynp":
                row["held"] = xp.memory()["held_peak"]
                row["files"] = max(0, _status("RssFile") - files)
        except BaseException as error:
            row = {"error": f"{library}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        os.write(write, json.dumps(row).encode())
        atexit._run_exitfuncs()  # what was compiled meanwhile goes to the disk, as at the end of a program
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else {"error": f"{library}: ended with status {status}"}


def work(cold: str, *wanted: str) -> None:
    """Print one row a program: what the process does that is forked for each."""
    for module in ("lazynp", "bench.memory_programs", "bench.peers", "bench.programs", "bench.workloads", "tests.programs.table"):
        import_module(module)
    warnings.simplefilter("ignore")
    gc.collect()
    gc.freeze()
    for name in wanted:
        row: Row = {}
        for library in LIBRARIES:
            if library == "lazynp" and cold != "cold":
                row.update(_forked(name, library))
            row.update(_forked(name, library))
        if cold == "cold" and "lazynp" in row:
            row["lazynp"] -= row["files"]
        print(json.dumps(row), flush=True)


def measure(wanted: list[str], cold: bool, limit: float, switches: dict[str, str]) -> Iterator[Row]:
    """Measure programs, with an empty cache on disk at first."""
    command = ["-c", "import sys; from bench.peak import work; work(*sys.argv[1:])", "cold" if cold else "warm"]
    with tempfile.TemporaryDirectory() as cache:
        for name, row in rows(command, wanted, limit, {"LAZYNP_CACHE_DIR": cache, **switches}):
            yield {"program": name, **row}


# The table ------------------------------------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    """Return a row as text: MiB beyond what the process had before."""
    text = f"{row['program']:<56}"
    if "error" in row:
        return f"{text} {row['error']}"
    theirs, ours = row["numpy"], row["lazynp"]
    over = ours - allowed(theirs)
    mark = f"  EXCEEDS by {over / MEBIBYTE:.1f}" if over > 0 else ""
    return text + "".join(f"{value / MEBIBYTE:>9.1f}" for value in (theirs, ours, row["held"], row["files"])) + mark


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.peak", description="The most memory programs take, lazynp beside NumPy.")
    parser.add_argument("--suites", default=",".join(SUITES), help="comma separated: " + ", ".join(SUITES))
    parser.add_argument("--only", metavar="TEXT", action="append", help="only programs with TEXT in their name (may be repeated)")
    parser.add_argument("--size", default="large", choices=("tiny", "small", "middle", "large"), help="of the ordinary programs")
    parser.add_argument("--cold", action="store_true", help="measure the run that compiles, and loads LLVM; pages of files are not counted")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a program is given up")
    parser.add_argument("--json", metavar="FILE", help="write all rows to FILE")
    options = parser.parse_args()
    wanted = [name for suite in options.suites.split(",") for name in names(suite, options.size)]
    if options.only:
        wanted = [name for name in wanted if any(text.lower() in name.lower() for text in options.only)]
    print(f"{'MiB beyond the imports':<56}{'NumPy':>9}{'lazynp':>9}{'values':>9}{'files':>9}")
    found = []
    for row in measure(wanted, options.cold, options.limit, {}):
        found.append(row)
        print(line(row), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    good = [row for row in found if "error" not in row]
    over = [row for row in good if row["lazynp"] > allowed(row["numpy"])]
    print(f"\n{len(good)} of {len(found)} measured; {len(over)} exceed {SHARE:g} of NumPy's peak and {SLACK // MEBIBYTE} MiB")
    for row in over:
        print("  " + line(row))
    return int(bool(over) or len(good) < len(found))


if __name__ == "__main__":
    sys.exit(main())
