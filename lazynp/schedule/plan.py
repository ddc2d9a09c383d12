"""The schedule: kernels and library calls, ordered and with a memory plan.

In: a ``Partition``.  Out: a ``Schedule``.  Promise: the steps stand in their own files (``order``, ``memory``); here they meet.  Library
calls that follow one another become one call of the NumPy tier.
"""

from __future__ import annotations

from typing import Protocol

from lazynp.codegen import ir
from lazynp.codegen.emit import emit
from lazynp.codegen.lower import Body, lower
from lazynp.graph import op as o
from lazynp.graph.errstate import UNDER
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.claims import claims
from lazynp.schedule.fuse import VIEWS, Partition, view_base
from lazynp.schedule.memory import Update, lifetimes, take_over, updates
from lazynp.schedule.order import order
from lazynp.schedule.rangeify import Kernel
from lazynp.values.records import Record, field


class KernelItem(Record):
    """One launch: ``code`` with the buffers of ``body`` bound to entries."""

    kernel: Kernel
    body: Body
    reads: list[int]
    writes: list[int]
    dead: list[int] = field(factory=list)  # entries whose buffers nobody needs after this
    updates: list[Update] = field(factory=list)
    taken: dict[int, int] = field(factory=dict)  # written entry -> dying one whose memory it takes
    code: ir.Kernel = field(factory=ir.Kernel)
    launch: ir.Launch = field(factory=ir.Launch)


class LibraryItem(Record):
    """A small program for the NumPy tier: its inputs are entries, in the order of its buffer parameters."""

    entries: list[int]
    program: Program
    reads: list[int]
    writes: list[int]
    dead: list[int] = field(factory=list)


Item = KernelItem | LibraryItem


class Schedule(Record):
    program: Program
    partition: Partition
    items: list[Item]
    peak_bytes: int  # of temporaries and outputs, if every buffer is freed when it dies
    claims: frozenset[int]  # inputs that would be written in place if nobody else holds them


class Emitting(Protocol):
    """A target of schedules says how kernels become loop nests there, and whether neighbouring library calls are better run as one."""

    joins_calls: bool

    def emit(self, body: Body) -> tuple[ir.Kernel, ir.Launch]: ...


class Processor:
    """The loop nests of the processor, which the NumPy tier serves as well."""

    joins_calls = True
    emit = staticmethod(emit)


def schedule(partition: Partition, target: Emitting = Processor()) -> Schedule:  # noqa: B008, it has no state
    program = partition.program
    bodies = [lower(partition, kernel) for kernel in partition.kernels]
    reads: dict[int, list[int]] = {}
    writes: dict[int, list[int]] = {}
    overwrites: list[tuple[int, int]] = []
    for k, body in enumerate(bodies):
        bases = list(partition.kernels[k].bases.values())
        writes[k] = [body.buffers[b] for b in sorted(body.stored)]
        reads[k] = list(dict.fromkeys([*[e for b, e in enumerate(body.buffers) if b not in body.stored], *bases]))
        overwrites += [(k, base) for base in bases]
    for e in partition.library:
        number = -1 - e
        writes[number] = [e]
        reads[number] = [view_base(program, s) for s in program.entries[e].src]
        if program.entries[e].op is o.STORE:
            overwrites.append((number, reads[number][0]))
    ordered = order(reads, writes, overwrites)
    groups = _grouped(ordered) if target.joins_calls else _single(program, ordered)
    everything = set(reads)
    items: list[Item] = []
    for group in groups:
        if group[0] >= 0:
            k = group[0]
            items.append(KernelItem(partition.kernels[k], bodies[k], reads[k], writes[k]))
        else:
            items.append(_library_item(program, sorted(-1 - number for number in group), reads, everything - set(group)))
    dead, peak = lifetimes(program, [(item.reads, item.writes) for item in items])
    claimed = claims(program)
    for item, dying in zip(items, dead, strict=True):
        item.dead = dying
        if isinstance(item, KernelItem):
            free = [e for e in dying if program.entries[e].op is not o.BUFFER or e in claimed]
            item.updates = updates(program, item.kernel, item.body, free)
            item.taken = take_over(program, item.body, dying)
            item.code, item.launch = target.emit(item.body)
            item.code.buffers = [program.entries[e].dtype for e in item.body.buffers]
            item.code.underflow = bool(program.errors & UNDER)
    return Schedule(program, partition, items, peak, claimed)


def _grouped(order: list[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in order:
        if number < 0 and groups and groups[-1][0] < 0:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _single(program: Program, order: list[int]) -> list[list[int]]:
    """Each library call by itself, with its outputs."""
    groups: list[list[int]] = []
    place: dict[int, int] = {}
    for number in order:
        of = program.entries[-1 - number].src[0] if number < 0 and program.entries[-1 - number].op is o.OUTPUT else None
        if of is None:
            place[number] = len(groups)
            groups.append([number])
        else:
            groups[place[-1 - of]].append(number)
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
        if e in inside or program.entries[e].op in VIEWS:
            pending += program.entries[e].src
    wanted = {e for number in others for e in reads[number]} | set(program.outputs)
    entries: list[Entry] = []
    number: dict[int, int] = {}
    inputs: list[int] = []
    for e in sorted(needed):
        entry = program.entries[e]
        if e in inside or entry.op in VIEWS or entry.op is o.CONST or entry.op is o.IOTA:
            entry = entry._replace(src=tuple([number[s] for s in entry.src]))
        else:
            entry = Entry(o.BUFFER, (), len(inputs), entry.dtype, entry.shape)
            inputs.append(e)
        number[e] = len(entries)
        entries.append(entry)
    outputs = [e for e in members if e in wanted]
    sub = Program(entries, tuple([number[e] for e in outputs]), [], sorted(needed), program.errors)
    return LibraryItem(members, sub, inputs, outputs)


__all__ = ["Item", "KernelItem", "LibraryItem", "Schedule", "schedule"]
