"""A schedule: kernels and library calls, in the order in which they run.

In: a partition whose kernels are lowered.  Out: a ``Schedule``, which the last passes fill in: ``arranged`` puts the items in order,
``assign`` says when buffers die and which are written over, ``generate`` adds the loop nests, ``render`` their sources.  Promise: what
these passes decide by stands in files of their own (``schedule/order.py``, ``schedule/memory.py``, ``codegen/nest.py``); here it is
brought to the items.
"""

from __future__ import annotations

from collections.abc import Callable

from lazynp.codegen import ir
from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.claims import VIEWS, claims, nbytes, read_base
from lazynp.schedule.fuse import Partition, partition
from lazynp.schedule.lower import Body, Lowered, lower
from lazynp.schedule.memory import Update, lifetimes, recorded_peak, take_over, updates
from lazynp.schedule.order import grouped, order
from lazynp.schedule.rangeify import Kernel
from lazynp.values.records import Record, Row, field


class KernelItem(Record):
    """One launch: ``code`` with the buffers of ``body`` bound to entries."""

    kernel: Kernel
    body: Body
    reads: list[int]
    writes: list[int]
    dead: list[int] = field(factory=list)  # entries whose buffers are not needed after this
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
    """A schedule is what runs, in order.

    ``peak_bytes`` are those of temporaries and outputs, if every buffer is freed when it dies; ``claims`` the inputs that would be written
    in place if there is no other reference to them.
    """

    program: Program
    partition: Partition
    items: list[Item]
    peak_bytes: int = 0
    claims: frozenset[int] = frozenset()

    @property
    def kernels(self) -> list[KernelItem]:
        return [item for item in self.items if isinstance(item, KernelItem)]


# The order ---------------------------------------------------------------------------------------------------------------


def arrange(lowered: Lowered, joins_calls: bool) -> Schedule:
    """Put the items of ``lowered`` in order; ``joins_calls``: library calls that follow one another become one."""
    parts, bodies = lowered
    program = parts.program
    reads: dict[int, list[int]] = {}
    writes: dict[int, list[int]] = {}
    overwrites: list[tuple[int, int]] = []
    for k, body in enumerate(bodies):
        bases = list(parts.kernels[k].bases.values())
        writes[k] = [body.buffers[b] for b in sorted(body.stored)]
        reads[k] = list(dict.fromkeys([*[e for b, e in enumerate(body.buffers) if b not in body.stored], *bases]))
        overwrites += [(k, base) for base in bases]
    for e in parts.library:
        number = -1 - e
        writes[number] = [e]
        reads[number] = [read_base(program, s, program.entries[e]) for s in program.entries[e].src]
        if program.entries[e].op is o.STORE:
            overwrites.append((number, reads[number][0]))
    groups, peak = _groups(program, reads, writes, order(reads, writes, overwrites), joins_calls)
    if peak > cost.PEAK_BYTES:
        sizes = {e: nbytes(program.entries[e]) for made in writes.values() for e in made if e not in program.outputs}
        frugal = order(reads, writes, overwrites, sizes=sizes)
        for other, joins in ((order(reads, writes, overwrites, recorded=True), joins_calls), (frugal, joins_calls), (frugal, False)):
            least = _groups(program, reads, writes, other, joins)
            if least[1] < peak:
                groups, peak = least
    everything = set(reads)
    items: list[Item] = []
    for group in groups:
        if group[0] >= 0:
            k = group[0]
            items.append(KernelItem(parts.kernels[k], bodies[k], reads[k], writes[k]))
        else:
            items.append(_library_item(program, sorted(-1 - number for number in group), reads, everything - set(group)))
    return Schedule(program, parts, items, peak)


def arranged(lowered: Lowered, supported: Callable[[Program, int], bool], joins_calls: bool) -> Schedule:
    """Do as ``arrange``; what would hold much more than NumPy does is fused again, with less at a time."""
    made = arrange(lowered, joins_calls)
    if made.peak_bytes <= cost.PEAK_BYTES:
        return made
    program = made.program
    given = sum([nbytes(entry) for entry in program.entries if entry.op is o.BUFFER])
    theirs = recorded_peak(program)
    if made.peak_bytes + given <= theirs + theirs // cost.PEAK_SHARE + cost.PEAK_BYTES:
        return made
    other = arrange(lower(partition(program, supported, joined=0)), joins_calls)
    return other if other.peak_bytes < made.peak_bytes else made


def _groups(
    program: Program, reads: dict[int, list[int]], writes: dict[int, list[int]], ordered: list[int], joins_calls: bool
) -> tuple[list[list[int]], int]:
    """Make one group of each kernel and of library calls that run together, and tell how many bytes are alive at a time."""
    groups = grouped(ordered) if joins_calls else _single(program, ordered)
    if len(groups) < 2:  # there is no other order
        return groups, 0
    touched = [([e for k in group for e in reads[k]], [e for k in group for e in writes[k]]) for group in groups]
    return groups, lifetimes(program, touched)[1]


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
    read = {s for e in members for s in reads[-1 - e]}
    needed: set[int] = set()
    pending = list(members)
    while pending:
        e = pending.pop()
        if e in needed:
            continue
        needed.add(e)
        if e in inside or (program.entries[e].op in VIEWS and e not in read):
            pending += program.entries[e].src
    wanted = {e for number in others for e in reads[number]} | set(program.outputs)
    entries: list[Entry] = []
    number: dict[int, int] = {}
    inputs: list[int] = []
    for e in sorted(needed):
        entry = program.entries[e]
        if e in inside or (entry.op in VIEWS and e not in read) or entry.op is o.CONST or entry.op is o.IOTA:
            entry = entry._replace(src=tuple([number[s] for s in entry.src]))
        else:
            entry = Entry(o.BUFFER, (), len(inputs), entry.dtype, entry.shape)
            inputs.append(e)
        number[e] = len(entries)
        entries.append(entry)
    outputs = [e for e in members if e in wanted]
    sub = Program(entries, tuple([number[e] for e in outputs]), [], sorted(needed), program.errors)
    return LibraryItem(members, sub, inputs, outputs)


# What is filled in later ---------------------------------------------------------------------------------------------------


def assign(schedule: Schedule) -> Schedule:
    """Say what dies with each item, and let kernels write over what does."""
    program = schedule.program
    touched = [(item.reads, item.writes) for item in schedule.items]
    schedule.claims = claims(program)
    dead, schedule.peak_bytes = lifetimes(program, touched)
    for item, dying in zip(schedule.items, dead, strict=True):
        item.dead = dying
        if isinstance(item, KernelItem):
            item.updates = updates(program, item.kernel, item.body, dying, schedule.claims)
            item.taken = take_over(program, item.body, dying)
    return schedule


def generate(schedule: Schedule, emit: Callable[[Body], tuple[ir.Kernel, ir.Launch]]) -> Schedule:
    """Add the loop nest of every kernel, as ``emit`` makes them."""
    program = schedule.program
    for item in schedule.kernels:
        item.code, item.launch = emit(item.body)
        item.code.buffers = [program.entries[e].dtype for e in item.body.buffers]
        item.code.errors = program.errors
    return schedule


class Rendered(Row):
    """A schedule with the source of each of its kernels; the sources need not stay."""

    schedule: Schedule
    sources: list[str]


def render(schedule: Schedule, source: Callable[[ir.Kernel], str]) -> Rendered:
    """Write the sources of the kernels of ``schedule``, as ``source`` writes them."""
    return Rendered(schedule, [source(item.code) for item in schedule.kernels])
