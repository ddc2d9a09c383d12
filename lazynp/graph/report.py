"""What was forced, what fell back, what was found in the cache.

In: counts from the front end and from ``realize``.  Out: ``report()``, a text that names the user's lines.  Promise: counting
formats nothing, keeps no array alive, and costs a few dictionary look-ups; a lost count between threads is accepted.
"""

from __future__ import annotations

from typing import Any

from lazynp.array import core
from lazynp.graph.node import Site, where
from lazynp.values.loading import load

_Key = tuple[str, int, int]


class Counted:
    """A count of how often one thing happened at one line; ``nbytes`` is the data that moved for it."""

    __slots__ = ("count", "name", "nbytes", "site")

    def __init__(self, name: str, site: Site | None) -> None:
        self.name = name
        self.site = site
        self.count = 0
        self.nbytes = 0


# Code objects hash slowly (over their byte code), so lines are told apart by the object's identity; Counted keeps it alive.
forced: dict[_Key, Counted] = {}
fallbacks: dict[_Key, Counted] = {}
transfers: dict[_Key, Counted] = {}
on_host: dict[_Key, Counted] = {}
regimes: dict[_Key, Counted] = {}


class Operations:
    """``watched``: what comes of each operation, and each run, is counted by line."""

    __slots__ = ("watched",)

    def __init__(self) -> None:
        self.watched = False


class Schedules:
    """Look-ups in the schedule cache; ``cuts`` are the times that a run was cut in two because it would have needed too much memory."""

    __slots__ = ("cuts", "hits", "misses")

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self.cuts = 0


class _Chains:
    """The expressions of values in memory, which the core counts, before the counts here were forgotten."""

    __slots__ = ("before",)

    def __init__(self) -> None:
        self.before = (0, 0, 0)

    def counts(self) -> tuple[int, int, int]:
        now, before = core.chain_counts(), self.before
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]


class Work:
    """The work that compiled schedules did; they add to this once per run.

    ``fused_ops`` are operations that shared a kernel with another one, ``bytes_saved`` what storing and reading their results
    one by one would have moved besides.  ``in_place`` are writes into an array's own memory, ``bytes_copied`` what other writes copied of
    their array around the region they wrote.  ``rechecks`` are programs that NumPy evaluated again because a kernel raised a floating-point
    flag.  ``scratch`` are the most bytes that one kernel has besides its arrays.  ``library_calls`` are calls that CuPy did on a GPU,
    ``graphs`` runs that were one CUDA graph.
    """

    __slots__ = ("bytes_copied", "bytes_saved", "fused_ops", "graphs", "in_place", "kernels", "library_calls", "rechecks", "scratch")

    def __init__(self) -> None:
        self.kernels = 0
        self.fused_ops = 0
        self.bytes_saved = 0
        self.in_place = 0
        self.bytes_copied = 0
        self.library_calls = 0
        self.graphs = 0
        self.rechecks = 0
        self.scratch = 0


operations = Operations()
schedules = Schedules()
work = Work()
_chains = _Chains()


def _counted(table: dict[_Key, Counted], name: str, site: Site | None) -> Counted:
    key = (name, id(site[0]), site[1]) if site is not None else (name, 0, 0)
    counted = table.get(key)
    if counted is None:
        counted = table[key] = Counted(name, site)
    return counted


def count_forced(reason: str, site: Site | None) -> None:
    """A value was needed now, because of ``reason``, at the user's line ``site``."""
    _counted(forced, reason, site).count += 1


def count_operation(regime: str, site: Site | None) -> None:
    """Note that an operation of the program's, or a run, took the way that ``regime`` says, for the reason that follows its colon."""
    _counted(regimes, regime, site).count += 1


def count_fallback(name: str, nbytes: int, site: Site | None) -> None:
    """NumPy's own function ``name`` answered a call; ``nbytes`` went through host memory for it."""
    counted = _counted(fallbacks, name, site)
    counted.count += 1
    counted.nbytes += nbytes


def count_transfer(direction: str, nbytes: int, site: Site | None) -> None:
    """A value was copied between host and device."""
    counted = _counted(transfers, direction, site)
    counted.count += 1
    counted.nbytes += nbytes


def count_on_host(name: str, nbytes: int, site: Site | None) -> None:
    """A value of a GPU was computed on the processor, because nothing there computes ``name``."""
    counted = _counted(on_host, name, site)
    counted.count += 1
    counted.nbytes += nbytes


def reset() -> None:
    """Forget all counts."""
    for table in (forced, fallbacks, transfers, on_host, regimes):
        table.clear()
    _chains.before = core.chain_counts()
    schedules.hits = schedules.misses = schedules.cuts = 0
    for name in Work.__slots__:
        setattr(work, name, 0)


def counters() -> dict[str, Any]:
    """The counts of this process, of types that JSON has."""
    usage = load("lazynp.graph.usage")  # what counts need not read

    one_pass, steps, compiled = _chains.counts()
    return {
        "expressions_at_hand": {"one_pass": one_pass, "step_by_step": steps, "machine_code": compiled},
        "schedule_hits": schedules.hits,
        "schedule_misses": schedules.misses,
        "cuts": schedules.cuts,
        "memory": {**usage.memory(), "scratch": work.scratch},
        "kernels": work.kernels,
        "fused_ops": work.fused_ops,
        "bytes_saved": work.bytes_saved,
        "in_place": work.in_place,
        "bytes_copied": work.bytes_copied,
        "forced": [{"reason": row.name, "count": row.count, "line": where(row.site)} for row in forced.values()],
        "fallbacks": [
            {"function": row.name, "count": row.count, "bytes": row.nbytes, "line": where(row.site)} for row in fallbacks.values()
        ],
        "regimes": [{"regime": row.name, "count": row.count, "line": where(row.site)} for row in regimes.values()],
        "library_calls": work.library_calls,
        "graphs": work.graphs,
        "transfers": [
            {"direction": row.name, "count": row.count, "bytes": row.nbytes, "line": where(row.site)} for row in transfers.values()
        ],
        "on_host": [{"function": row.name, "count": row.count, "bytes": row.nbytes, "line": where(row.site)} for row in on_host.values()],
    }


def _lines(title: str, table: dict[_Key, Counted], with_bytes: bool) -> list[str]:
    rows = sorted(table.values(), key=lambda counted: (-counted.count, counted.name))
    total = sum(row.count for row in rows)
    lines = [f"{title}: {total}"]
    for row in rows:
        moved = f"{row.nbytes:>14,} bytes" if with_bytes else ""
        lines.append(f"  {row.count:>8} x {row.name:<24}{moved}  {where(row.site)}")
    return lines


def _by_line() -> list[str]:
    """List what came of the operations of each line, the busiest line first."""
    rows: dict[str, dict[str, int]] = {}
    for row in regimes.values():
        counts = rows.setdefault(where(row.site), {})
        counts[row.name] = counts.get(row.name, 0) + row.count
    lines = ["operations, and runs, by line:"]
    for line, counts in sorted(rows.items(), key=lambda row: (-sum(row[1].values()), row[0])):
        lines.append(f"  {line}")
        lines += [f"  {count:>8} x {name}" for name, count in sorted(counts.items(), key=lambda row: (-row[1], row[0]))]
    return lines


def report() -> str:
    """The counts of this process as text."""
    usage = load("lazynp.graph.usage")

    lines = []
    if any(chains := _chains.counts()):
        one_pass, steps, compiled = chains
        lines.append(f"tapes: {one_pass} computed in one pass, {steps} operator by operator, {compiled} by machine code")
    lines.append(f"schedules: {schedules.hits + schedules.misses} runs, {schedules.misses} made")
    if schedules.cuts:
        lines.append(f"runs cut to need less memory: {schedules.cuts}")
    lines.append(f"kernels run: {work.kernels}, operations fused: {work.fused_ops}, bytes not moved: {work.bytes_saved:,}")
    lines += usage.lines()
    if regimes:
        lines += _by_line()
    lines += _lines("values forced", forced, with_bytes=False)
    lines += _lines("answered by NumPy", fallbacks, with_bytes=True)
    if transfers or on_host or work.library_calls:
        lines.append(f"calls of CuPy's libraries: {work.library_calls}, runs as one CUDA graph: {work.graphs}")
        lines += _lines("copies between host and device", transfers, with_bytes=True)
        lines += _lines("computed on the host", on_host, with_bytes=True)
    return "\n".join(lines)
