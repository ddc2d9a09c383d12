"""What a schedule does, in numbers.

In: a ``Schedule``.  Out: for each kernel and library call, the operations it computes and the bytes it loads, stores and stages.
Promise: the numbers follow from the schedule alone, nothing is run.  *Loaded* are the distinct elements that one pass over loops
touches, added up over the passes: a kernel that walks an array twice loads it twice, one that touches neighbours in one walk loads it
once, and a value kept in scratch from an earlier pass is not loaded again.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lazynp.codegen.items import Item, KernelItem, Schedule
from lazynp.codegen.nest import Nest
from lazynp.graph import op as o
from lazynp.graph.index import Range
from lazynp.graph.op import Kind
from lazynp.schedule.lower import ACCUMULATE, LOAD, Body, Value
from lazynp.values.records import Row


class Step(Row):
    """One kernel or one run of library calls.

    Attributes
    ----------
    kind : str
        ``"kernel"`` or ``"library"``.
    computes : tuple of int
        The program entries it computes; movement is not work, and not among them.
    loaded, stored : int
        Bytes read from and written to arrays.
    scratch : int
        Bytes in which one thread keeps values from one pass for the next.
    reads, writes : tuple of int
        The program entries whose arrays are read and written.
    """

    kind: str
    computes: tuple[int, ...]
    loaded: int
    stored: int
    scratch: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class Measured(Row):
    """The numbers of a whole schedule; see ``Step`` for what they count."""

    steps: tuple[Step, ...]
    peak_bytes: int

    @property
    def kernels(self) -> int:
        return sum(step.kind == "kernel" for step in self.steps)

    @property
    def library(self) -> int:
        return sum(step.kind == "library" for step in self.steps)

    @property
    def loaded(self) -> int:
        return sum(step.loaded for step in self.steps)

    @property
    def stored(self) -> int:
        return sum(step.stored for step in self.steps)

    @property
    def scratch(self) -> int:
        """Scratch of the kernel that stages most."""
        return max([step.scratch for step in self.steps], default=0)

    @property
    def fused(self) -> int:
        """Operations that share a kernel with another one."""
        return sum(len(step.computes) for step in self.steps if step.kind == "kernel" and len(step.computes) > 1)


def measure(schedule: Schedule) -> Measured:
    """Count what running ``schedule`` once moves and computes."""
    return Measured(tuple([_step(schedule, item) for item in schedule.items]), schedule.peak_bytes)


def _step(schedule: Schedule, item: Item) -> Step:
    def nbytes(e: int) -> int:
        entry = schedule.program.entries[e]
        return prod(entry.shape) * entry.dtype.itemsize

    reads, writes = tuple(item.reads), tuple(item.writes)
    if not isinstance(item, KernelItem):
        loaded, stored = sum(nbytes(e) for e in set(item.reads)), sum(nbytes(e) for e in item.writes)
        return Step("library", tuple(item.entries), loaded, stored, 0, reads, writes)
    body = item.body
    computes = {e for e, _ in item.kernel.points} | {e for _, e in item.kernel.roots}
    computes = {e for e in computes if schedule.program.entries[e].op.kind is not Kind.MOVEMENT}
    loaded = _loaded(body, [nbytes(e) for e in body.buffers])
    stored = sum(prod([r.extent for r in body.main[: out.depth]]) * out.value.dtype.itemsize for out in body.outputs)
    for update in item.updates:
        given = schedule.program.entries[update.base].op is o.BUFFER
        if given or not update.last or update.reads:  # what is not overwritten comes from the old memory, unless that proves to be free
            copied = nbytes(update.base) - (0 if update.whole else nbytes(schedule.program.entries[update.entry].src[1]))
            loaded += copied
            stored += copied
    return Step("kernel", tuple(sorted(computes)), loaded, stored, _staged(item), reads, writes)


class _Statement(Row):
    """Something that runs in loops: ``root`` stored, or accumulated over ``ranges``, inside the first ``level`` main loops."""

    root: Value
    time: tuple[int, ...]
    level: int
    ranges: tuple[Range, ...]


def _loaded(body: Body, sizes: list[int]) -> int:
    """Bytes loaded; ``sizes`` are those of the body's buffers.

    A *walk* is one pass over one set of loops: the depth and time up to which two statements share their loops, and the ranges walked.
    """
    nest = Nest(body)
    statements = [_Statement(v.src[0], v.time, v.arg.depth, v.ranges) for v in body.values if v.op is ACCUMULATE]
    statements += [_Statement(out.value, nest.time(out), out.depth, ()) for out in body.outputs]
    statements.sort(key=lambda statement: statement.time)
    if not any(v.op is ACCUMULATE and v.arg.outer for v in body.values):
        nest.plan_stages([(statement.root, statement.time) for statement in statements])
    place = {r: k for k, r in enumerate(body.main)}
    first: dict[Value, tuple[int, ...]] = {}
    walks: dict[Any, dict[Value, int]] = {}
    for root, time, level, ranges in statements:
        pending, seen = [root], set()
        while pending:
            value = pending.pop()
            if value in seen or value.op is ACCUMULATE:
                continue
            seen.add(value)
            stage = nest.stages.get(value)
            if stage is not None and first.setdefault(value, time)[: stage.depth + 1] != time[: stage.depth + 1]:
                continue
            pending += value.src
            if value.op is LOAD:
                depth = max([place[r] + 1 for r in value.free if r in place], default=0)
                loops = tuple(body.main[:depth])
                if any(r not in place for r in value.free):
                    depth, loops = level + 1, (*body.main[:level], *ranges)
                touched = prod([r.extent for r in value.free]) * value.dtype.itemsize
                passes = depth - (nest.short in value.free)  # all passes over a row that is written out load it once
                walks.setdefault((value.arg, time[: max(passes, 1)], loops), {})[value] = touched
    return sum(min(sizes[walk[0]], sum(loads.values())) for walk, loads in walks.items())


def _staged(item: KernelItem) -> int:
    """Staging scratch of one thread; what reductions keep their accumulators in has literal counts and is not counted."""
    sizes = [0]
    for phase in item.code.phases:
        counts = [(local.dtype.itemsize, local.count) for local in phase.locals if local.count.startswith("n")]
        sizes.append(sum(size * item.launch.integers[int(count[1:])].const for size, count in counts))
    return max(sizes)
