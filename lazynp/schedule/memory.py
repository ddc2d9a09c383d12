"""Step 7: the life of buffers, and whose memory a result takes over.

In: the items of a schedule in their order.  Out: for each item the entries that are not needed after it; for each result of a kernel
whether it is written over something that dies there.  Promise: an element is overwritten only after everything that reads it has read
it; what cannot be proved from the structure is left to a comparison of regions at run time (``Update``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod

from lazynp.graph import op as o
from lazynp.graph.index import Formula, Index, Offset, Range
from lazynp.graph.size import gcd
from lazynp.schedule.canonicalise import ZERO, Program
from lazynp.schedule.claims import nbytes, view_base
from lazynp.schedule.lower import ACCUMULATE, LOAD, Body, Output, Value
from lazynp.schedule.movement import Point
from lazynp.schedule.rangeify import Kernel
from lazynp.values.records import Record, Row


class Span(Row):
    """Positions on one axis: ``start + k * step``, all within [start, start + reach]."""

    start: Formula
    reach: int
    step: int  # 0: one position


Box = tuple[Span, ...]


class Edge(Row):
    """One axis of the region that a STORE writes: ``start(slot or ZERO)``, step, length and the axis' extent."""

    slot: int
    step: int
    length: int
    extent: int


class Update(Record):
    """A STORE of a kernel: what becomes of the rest of its base.

    ``last``: the base is not read afterwards, so that the region can be written in the base's memory, unless one of ``reads``, which
    the kernel itself makes, meets ``written``.  ``whole``: the kernel reads the old elements of the region where it writes the new
    ones, so a fresh memory needs all of the base; else what lies around the region is enough.
    """

    entry: int
    base: int
    last: bool
    whole: bool
    region: tuple[Edge, ...]
    written: Box
    reads: list[Box]


def lifetimes(program: Program, work: Iterable[tuple[Iterable[int], Iterable[int]]]) -> tuple[list[list[int]], int]:
    """List for each (reads, writes) in order the entries that die there, inputs among them; and the peak of what is alive, in bytes."""
    last: dict[int, int] = {}
    steps = [tuple(dict.fromkeys((*reads, *writes))) for reads, writes in work]
    for position, touched in enumerate(steps):
        for e in touched:
            last[e] = position
    kept = set(program.outputs)
    born: set[int] = set()
    alive = peak = 0
    dead: list[list[int]] = []
    for position, touched in enumerate(steps):
        for e in touched:
            if e not in born and program.entries[e].op is not o.BUFFER:
                born.add(e)
                alive += nbytes(program.entries[e])
        peak = max(peak, alive)
        dead.append([e for e in touched if last[e] == position and e not in kept])
        alive -= sum(nbytes(program.entries[e]) for e in dead[-1] if e in born)
    return dead, peak


def recorded_peak(program: Program) -> int:
    """Return what NumPy holds at most, in bytes: inputs, and the results of all operations, in the order of recording."""
    entries = program.entries

    bases = [view_base(program, e) for e in range(len(entries))]
    work = [([bases[s] for s in entry.src], [e]) for e, entry in enumerate(entries) if entry.op is not o.BUFFER and bases[e] == e]
    given = sum([nbytes(entry) for entry in entries if entry.op is o.BUFFER])
    return lifetimes(program, work)[1] + given


# Whose memory a result takes --------------------------------------------------------------------------------------------------


def take_over(program: Program, body: Body, dead: Iterable[int]) -> dict[int, int]:
    """Let results of a kernel be written over temporaries that die in it: result entry -> the entry whose memory it takes.

    The two become one buffer of ``body``: the kernel reads each element where it then writes it.
    """
    numbers = {e: b for b, e in enumerate(body.buffers)}
    # The result of a STORE may lie in an input's memory.
    free = [e for e in dead if e in numbers and program.entries[e].op not in (o.BUFFER, o.STORE) and numbers[e] not in body.stored]
    taken: dict[int, int] = {}
    for output in body.outputs:
        e = body.buffers[output.buffer]
        entry = program.entries[e]
        if entry.op is o.STORE:
            continue
        for d in free:
            old = program.entries[d]
            if old.dtype == entry.dtype and prod(old.shape) == prod(entry.shape) and _precede(body, _loads(body, numbers[d]), output):
                _redirect(_loads(body, numbers[d]), output.buffer)
                taken[e] = d
                free.remove(d)
                break
    if taken:
        _renumber(body)
    return taken


def _loads(body: Body, buffer: int) -> list[Value]:
    return [v for v in body.values if v.op is LOAD and v.arg == buffer]


def _precede(body: Body, loads: list[Value], output: Output) -> bool:
    """Tell whether every one of ``loads`` is of the element that ``output`` then writes, and none follows that write.

    What else uses them must be a reduction that the output waits for: its pass over these elements is over when they are written.
    """
    if any(v.index != output.index or v.guards for v in loads) or _repeated(body, output):
        return False
    reading = set(loads)
    needed: set[Value] = {output.value}
    for v in reversed(body.values):
        if v in needed:
            needed.update(v.src)
    for v in body.values:
        if any(source in reading for source in v.src):
            if v.op is not ACCUMULATE:
                reading.add(v)
            elif v not in needed:
                return False
    return all(other is output or other.value not in reading for other in body.outputs)


def _repeated(body: Body, output: Output) -> bool:
    """Tell whether a row's result may be written several times: beside a reduction over rows and elements, by each piece of the row."""
    hosts = [v for v in body.values if v.op is ACCUMULATE and v.ranges[0] in body.main]
    return any(v.arg.depth < output.depth < v.arg.depth + len(v.ranges) for v in hosts)


def _redirect(loads: list[Value], buffer: int) -> None:
    for v in loads:
        v.arg = buffer


def _renumber(body: Body) -> None:
    """Drop the buffers that nothing names any more."""
    used = sorted(body.stored | {v.arg for v in body.values if v.op is LOAD})
    number = {b: k for k, b in enumerate(used)}
    body.buffers = [body.buffers[b] for b in used]
    body.stored = {number[b] for b in body.stored}
    for v in body.values:
        if v.op is LOAD:
            v.arg = number[v.arg]
    for output in body.outputs:
        output.buffer = number[output.buffer]


def updates(program: Program, kernel: Kernel, body: Body, dead: Iterable[int], claimed: Collection[int]) -> list[Update]:
    """Decide what each STORE of a kernel does to its base: it may overwrite a ``dead`` one; an input must be ``claimed``, too.

    Reads of the elements that a STORE overwrites are made through the new memory.
    """
    found = []
    last = {e for e in dead if program.entries[e].op is not o.BUFFER or e in claimed}
    for output in body.outputs:
        e = body.buffers[output.buffer]
        if e not in kernel.bases:
            continue
        entry = program.entries[e]
        base = kernel.bases[e]
        lengths = program.entries[entry.src[1]].shape
        region = tuple([Edge(slot, step, n, extent) for (slot, step), n, extent in zip(entry.arg, lengths, entry.shape, strict=True)])
        written = tuple([_edge_span(edge) for edge in region])
        points = _points(kernel, base) if base in body.buffers else []  # numbers of a range are computed, not read
        same = [point for point in points if _is_region(kernel, point, region)]
        others = [point for point in points if point not in same]
        whole = False
        if same and base in last and not any(_shifted(point, region) for point in others):
            loads = [v for v in _loads(body, body.buffers.index(base)) if v.index == output.index and not v.guards]
            whole = len(loads) == len(same) and _precede(body, loads, output)
            if whole:
                _redirect(loads, output.buffer)
        if not whole:
            others = points
        found.append(Update(e, base, base in last, whole, region, written, [_box(point) for point in others]))
    if any(update.whole for update in found):
        _renumber(body)
    return found


def _points(kernel: Kernel, e: int) -> list[Point]:
    """List where a kernel reads entry ``e``."""
    requests = [request for sources in kernel.points.values() for request in sources if request is not None]
    requests += [request for request, _ in kernel.roots]
    return list(dict.fromkeys([point for entry, point in requests if entry == e]))


def _edge_span(edge: Edge) -> Span:
    start = Formula(0, () if edge.slot == ZERO else ((edge.slot, 1),))
    reach = (edge.length - 1) * edge.step
    if reach < 0:
        start, reach = Formula(reach, start.offsets), -reach
    return Span(start, reach, abs(edge.step) if edge.length > 1 else 0)


def _is_region(kernel: Kernel, point: Point, region: tuple[Edge, ...]) -> bool:
    """Tell whether ``point`` is where the kernel's loops write."""
    if point.guards:
        return False
    ranges = iter(kernel.main)
    for i, edge in zip(point.index, region, strict=True):
        terms = dict(i.terms)
        if edge.length != 1 and terms.pop(next(ranges), 0) != edge.step:
            return False
        offsets = [(atom.slot, k) for atom, k in terms.items() if isinstance(atom, Offset)]
        if len(offsets) != len(terms) or i.const or offsets != ([] if edge.slot == ZERO else [(edge.slot, 1)]):
            return False
    return True


def _shifted(point: Point, region: tuple[Edge, ...]) -> bool:
    """Tell whether ``point`` walks as the region does on every axis of it, somewhere else: neighbours of a stencil, which overlap it."""
    for i, edge in zip(point.index, region, strict=True):
        steps = [k for atom, k in i.terms if isinstance(atom, Range)]
        if steps != ([] if edge.length == 1 else [edge.step]):
            return False
    return any(edge.length > 1 for edge in region)


def _box(point: Point) -> Box:
    return tuple([_span(i) for i in point.index])


def _span(i: Index) -> Span:
    """The positions an index takes: offsets stay symbolic, everything else counts with its interval."""
    lo = hi = i.const
    offsets: list[tuple[int, int]] = []
    step = 0
    for atom, k in i.terms:
        if isinstance(atom, Offset):
            offsets.append((atom.slot, k))
        else:
            low, high = sorted((k * atom.lo, k * atom.hi))
            lo, hi = lo + low, hi + high
            step = gcd(step, k) if isinstance(atom, Range) else 1
    return Span(Formula(lo, tuple(offsets)), hi - lo, step)


def evaluate(formula: Formula, integers: list[int]) -> int:
    value = formula.const
    for slot, k in formula.offsets:
        value += k * integers[slot]
    return value


def meet(a: Box, b: Box, integers: list[int]) -> bool:
    """Tell whether two boxes may have an element in common."""
    for p, q in zip(a, b, strict=True):
        distance = evaluate(q.start, integers) - evaluate(p.start, integers)
        if distance > p.reach or -distance > q.reach:
            return False
        step = gcd(p.step, q.step)
        if step > 1 and distance % step:
            return False
    return True


__all__ = ["Box", "Edge", "Span", "Update", "evaluate", "lifetimes", "meet", "recorded_peak", "take_over", "updates"]
