"""Steps 6 and 7: the order of the work and the life of its buffers.

In: a ``Partition``.  Out: a ``Schedule``: kernels and library calls in an order that respects who reads whom, and, for each, the
temporaries that nobody needs afterwards.  Promise: the order depends on the structure alone; a cycle is an error, never a wrong answer.
Library calls that follow one another become one call of the NumPy tier.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import prod

from lazynp.codegen import ir
from lazynp.codegen.emit import emit
from lazynp.codegen.lower import Body, lower
from lazynp.graph import op as o
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.fuse import Kernel, Partition, view_base


@dataclass(slots=True)
class KernelItem:
    """One launch: ``code`` with arrays bound to entries."""

    kernel: Kernel
    body: Body
    code: ir.Kernel
    launch: ir.Launch
    reads: list[int]
    writes: list[int]
    dead: list[int] = field(default_factory=list)  # entries whose buffers nobody needs after this


@dataclass(slots=True)
class LibraryItem:
    """A small program for the NumPy tier: its inputs are entries, in the order of its buffer parameters."""

    entries: list[int]
    program: Program
    reads: list[int]
    writes: list[int]
    dead: list[int] = field(default_factory=list)


Item = KernelItem | LibraryItem


@dataclass(slots=True)
class Schedule:
    program: Program
    partition: Partition
    items: list[Item]
    peak_bytes: int  # of temporaries and outputs, if every buffer is freed when it dies


class CycleError(Exception):
    """Kernels wait for each other: a bug of the scheduler."""


def schedule(partition: Partition) -> Schedule:
    program = partition.program
    bodies = [lower(partition, kernel) for kernel in partition.kernels]
    reads: dict[int, list[int]] = {}
    writes: dict[int, list[int]] = {}
    producer: dict[int, int] = {}
    for k, body in enumerate(bodies):
        writes[k] = [body.buffers[b] for b in sorted(body.stored)]
        bases = partition.kernels[k].bases.values()
        reads[k] = list(dict.fromkeys([*[e for b, e in enumerate(body.buffers) if b not in body.stored], *bases]))
        for e in writes[k]:
            producer[e] = k
    for e in partition.library:
        number = -1 - e
        writes[number] = [e]
        reads[number] = [view_base(program, s) for s in program.entries[e].src]
        producer[e] = number
    order = _order(reads, producer)
    items: list[Item] = []
    for group in _grouped(order):
        if group[0] >= 0:
            k = group[0]
            code, launch = emit(bodies[k])
            code.buffers = [program.entries[e].dtype for e in bodies[k].buffers]
            items.append(KernelItem(partition.kernels[k], bodies[k], code, launch, reads[k], writes[k]))
        else:
            items.append(_library_item(program, sorted(-1 - number for number in group), reads, set(order) - set(group)))
    return Schedule(program, partition, items, _lifetimes(program, items))


def _order(reads: dict[int, list[int]], producer: dict[int, int]) -> list[int]:
    """Topological, and library calls as close together as that allows."""
    waiting = dict.fromkeys(reads, 0)
    readers: dict[int, list[int]] = {number: [] for number in reads}
    for number, entries in reads.items():
        for source in {producer[e] for e in entries if e in producer}:
            waiting[number] += 1
            readers[source].append(number)
    ready: tuple[deque[int], deque[int]] = (deque(), deque())
    for number in sorted(reads):
        if not waiting[number]:
            ready[number < 0].append(number)
    order: list[int] = []
    library = False
    while ready[0] or ready[1]:
        if not ready[library]:
            library = not library
        number = ready[library].popleft()
        order.append(number)
        for reader in readers[number]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready[reader < 0].append(reader)
    if len(order) != len(reads):
        raise CycleError(f"{len(reads) - len(order)} of {len(reads)} kernels and library calls wait for each other")
    return order


def _grouped(order: list[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in order:
        if number < 0 and groups and groups[-1][0] < 0:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _library_item(program: Program, members: list[int], reads: dict[int, list[int]], others: set[int]) -> LibraryItem:
    """The sub-program of ``members``: their views and leaves are in it, other values are its buffers."""
    inside = set(members)
    needed: set[int] = set()
    pending = list(members)
    while pending:
        e = pending.pop()
        if e in needed:
            continue
        needed.add(e)
        if e in inside or program.entries[e].op.kind is Kind.MOVEMENT:
            pending += program.entries[e].src
    wanted = {e for number in others for e in reads[number]} | set(program.outputs)
    entries: list[Entry] = []
    number: dict[int, int] = {}
    inputs: list[int] = []
    for e in sorted(needed):
        entry = program.entries[e]
        if e in inside or entry.op.kind is Kind.MOVEMENT or entry.op is o.CONST or entry.op is o.IOTA:
            entry = entry._replace(src=tuple([number[s] for s in entry.src]))
        else:
            entry = Entry(o.BUFFER, (), len(inputs), entry.dtype, entry.shape)
            inputs.append(e)
        number[e] = len(entries)
        entries.append(entry)
    outputs = [e for e in members if e in wanted]
    sub = Program(entries, tuple([number[e] for e in outputs]), [], sorted(needed))
    return LibraryItem(members, sub, inputs, outputs)


def _lifetimes(program: Program, items: list[Item]) -> int:
    """Mark where temporaries die; the peak of what is alive, in bytes."""
    last: dict[int, int] = {}
    for position, item in enumerate(items):
        for e in (*item.reads, *item.writes):
            last[e] = position
    kept = set(program.outputs)
    alive = peak = 0
    for position, item in enumerate(items):
        alive += sum(_bytes(program.entries[e]) for e in item.writes)
        peak = max(peak, alive)
        for e in dict.fromkeys((*item.reads, *item.writes)):
            if last[e] == position and e not in kept and program.entries[e].op is not o.BUFFER:
                item.dead.append(e)
                alive -= _bytes(program.entries[e])
    return peak


def _bytes(entry: Entry) -> int:
    return prod(entry.shape) * entry.dtype.itemsize


__all__ = ["CycleError", "Item", "KernelItem", "LibraryItem", "Schedule", "schedule"]
