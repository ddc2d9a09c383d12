"""Step 5: from a kernel's points to scalar values over loop ranges.

In: a ``Partition``.  Out: for each of its kernels a ``Body``: a small DAG of ``Value`` objects (what one iteration computes), each with the
ranges it depends on, and the stores.  Movement operations are gone: what is left of them are linear positions in flat arrays and guards.
Promise: ranges that indices divide are split where that leaves no division, and adjacent ranges that every access walks as one are merged,
so that contiguous work of any rank becomes one loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Atom, Index, Loaded, Quotient, Range, Remainder, Space
from lazynp.graph.op import Kind, Op
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import ZERO, Program
from lazynp.schedule.fuse import Partition
from lazynp.schedule.movement import Guard, Point
from lazynp.schedule.rangeify import Kernel, Request
from lazynp.values.records import Record, Row, field

INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)

# What a Value is besides an elementwise operation of the graph.
LOAD = Op("load", Kind.OTHER)  # arg: buffer number; index: flat position; guards
SCALAR = Op("scalar", Kind.OTHER)  # arg: number of a scalar parameter
POSITION = Op("position", Kind.OTHER)  # index as an int64 value
INSIDE = Op("inside", Kind.OTHER)  # guards as a bool
CHECKED = Op("checked", Kind.OTHER)  # src: int64 index[, where it counts]; arg: (extent, flag); negatives wrapped; out of range: flag, 0
ACCUMULATE = Op("accumulate", Kind.REDUCTION)  # src: value; arg: Reduction; ranges: what is reduced


class Reduction(Row):
    """A reduction: it combines with ``op``, sitting at ``depth`` main loops; ``outer``: the innermost axis is not reduced.

    The order of combination is a function of ``outer`` and the extents alone (see ``codegen/reduce.py``).
    """

    op: Op
    depth: int
    outer: bool


class Value:
    """One scalar of an iteration.  ``free`` are the ranges it changes with."""

    __slots__ = ("arg", "depth", "dtype", "free", "guards", "index", "number", "op", "ranges", "src", "time", "weight")

    def __init__(
        self,
        number: int,
        op: Op,
        src: tuple[Value, ...],
        arg: Any,
        dtype: np.dtype[Any],
        index: Index | None = None,
        guards: tuple[Guard, ...] = (),
        ranges: tuple[Range, ...] = (),
    ) -> None:
        self.number = number
        self.op = op
        self.src = src
        self.arg = arg
        self.dtype = dtype
        self.index = index
        self.guards = guards
        self.ranges = ranges
        self.free: frozenset[Range] = frozenset()
        self.depth = 0
        self.time: tuple[int, ...] = ()
        self.weight = 0.0

    def __repr__(self) -> str:
        return f"v{self.number}:{self.op!r}"


class Output(Record):
    """``buffer[index] = value`` for every value of the first ``depth`` main ranges."""

    value: Value
    buffer: int
    index: Index
    depth: int


class Body(Record):
    main: list[Range]
    values: list[Value]  # sources first
    outputs: list[Output]
    buffers: list[int]  # buffer number -> program entry
    scalars: list[int]  # scalar number -> scalar parameter of the program
    scalar_types: list[np.dtype[Any]]
    flags: list[int]  # flag -> program entry (GATHER)
    loaded: dict[Loaded, Value] = field(factory=dict)
    stored: set[int] = field(factory=set)  # buffer numbers written


class Lowered(Row):
    """A partition whose kernels have become bodies, one for each."""

    partition: Partition
    bodies: list[Body]


def lower(partition: Partition) -> Lowered:
    """Make the body of every kernel of ``partition``."""
    return Lowered(partition, [_Lowering(partition.program, kernel).run() for kernel in partition.kernels])


class _Lowering:
    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.values: list[Value] = []
        self.made: dict[Any, Value] = {}
        self.at: dict[Request, Value] = {}
        self.buffers: dict[int, int] = {}
        self.scalars: dict[int, int] = {}
        self.scalar_types: list[np.dtype[Any]] = []
        self.flags: list[int] = []

    def run(self) -> Body:
        kernel = self.kernel
        for request in self.sources_first():
            self.at[request] = self.evaluate(*request, kernel.points[request])
        body = Body(list(kernel.main), [], [], [], [], self.scalar_types, self.flags)
        for request, e in kernel.roots:
            value = self.read(request)
            buffer = self.buffer(e)
            body.stored.add(buffer)
            index = request[1].index
            position = ix.flat(self.region(e, index), self.program.entries[e].shape)
            body.outputs.append(Output(value, buffer, position, kernel.prefix(index) or 0))
        body.values = _reachable(body.outputs)
        body.buffers = list(self.buffers)
        body.scalars = list(self.scalars)
        body.loaded = {atom: value for atom, value in self.made.items() if isinstance(atom, Loaded)}
        _annotate(body, kernel)
        return body

    def region(self, e: int, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """Find where the element at ``index`` of the stored value lies in entry e."""
        entry = self.program.entries[e]
        if entry.op is not o.STORE:
            return index
        placed = []
        for i, (slot, step) in zip(index, entry.arg, strict=True):
            start = ix.ZERO if slot == ZERO else ix.of(self.kernel.space.offset(slot))
            placed.append(i * step + start)
        return tuple(placed)

    def sources_first(self) -> list[Request]:
        """The kernel's requests, each after what it reads: its sources and the computed indices it goes through."""
        points = self.kernel.points
        order: list[Request] = []
        done: set[Request] = set()
        for root, _ in self.kernel.roots:
            if root not in points:
                continue
            pending = [root]
            while pending:
                request = pending[-1]
                if request in done:
                    pending.pop()
                    continue
                missing = []
                for source in points[request]:
                    if source is not None:
                        for needed in (source, *_loaded_requests(source[1])) if self.kernel.gathers else (source,):
                            if needed in points and needed not in done:
                                missing.append(needed)
                if missing:
                    pending += missing
                else:
                    pending.pop()
                    done.add(request)
                    order.append(request)
        return order

    # Making values --------------------------------------------------------------------------------------------------

    def make(
        self,
        op: Op,
        src: tuple[Value, ...],
        arg: Any,
        dtype: np.dtype[Any],
        index: Index | None = None,
        guards: frozenset[Guard] = frozenset(),
        ranges: tuple[Range, ...] = (),
    ) -> Value:
        key = (op, src, arg, dtype, index, guards, ranges)
        value = self.made.get(key)
        if value is None:
            ordered = tuple(sorted(guards, key=_place))
            value = self.made[key] = Value(len(self.values), op, src, arg, dtype, index, ordered, ranges)
            self.values.append(value)
        return value

    def buffer(self, e: int) -> int:
        return self.buffers.setdefault(e, len(self.buffers))

    def scalar(self, slot: int, dtype: np.dtype[Any]) -> Value:
        number = self.scalars.get(slot)
        if number is None:
            number = self.scalars[slot] = len(self.scalars)
            self.scalar_types.append(dtype)
        return self.make(SCALAR, (), number, dtype)

    def read(self, request: Request | None) -> Value:
        assert request is not None
        value = self.at.get(request)
        if value is not None:
            return value
        e, point = request
        entry = self.program.entries[e]
        if entry.op is o.CONST:
            value = self.scalar(entry.arg, entry.dtype)
        elif entry.op is o.IOTA:
            value = self.iota(entry.arg, entry.dtype, point.index[0])
        else:
            through = self.loaded((*point.index, *_ordered(point.guards)))
            value = self.make(LOAD, through, self.buffer(e), entry.dtype, ix.flat(point.index, entry.shape), point.guards)
        self.at[request] = value
        return value

    def loaded(self, index: tuple[Index, ...]) -> tuple[Value, ...]:
        """The computed indices an access goes through, as the values they are."""
        found: dict[Value, None] = {}
        for i in index if self.kernel.gathers else ():
            for atom in sorted(ix.atoms(i), key=_number):
                if isinstance(atom, Loaded):
                    found[self.checked(atom)] = None
        return tuple(found)

    def checked(self, atom: Loaded) -> Value:
        """The index an access goes through, wrapped and checked against the axis."""
        value = self.made.get(atom)
        if value is None:
            e = self.kernel.gathers[atom]
            if e not in self.flags:
                self.flags.append(e)
            extent = atom.hi + 1
            src: tuple[Value, ...] = (self.read(atom.value),)
            guards = atom.value[1].guards
            if guards:
                # Behind a border the index is computed from nothing, and may be anything.
                src = (*src, self.make(INSIDE, self.guard_values(guards), None, BOOL, None, guards))
            value = self.make(CHECKED, src, (extent, self.flags.index(e)), INT64)
            self.made[atom] = value
        return value

    def iota(self, slots: tuple[int, int], dtype: np.dtype[Any], position: Index) -> Value:
        start, step = (self.scalar(slot, dtype) for slot in slots)
        at = self.make(o.CAST, (self.make(POSITION, self.loaded((position,)), None, INT64, position),), None, dtype)
        return self.make(o.ADD, (start, self.make(o.MULTIPLY, (at, step), None, dtype)), None, dtype)

    def evaluate(self, e: int, point: Point, sources: tuple[Request | None, ...]) -> Value:
        entry = self.program.entries[e]
        op = entry.op
        if op.kind is Kind.LEAF:
            return self.read_leaf(e, point)
        if op.kind is Kind.ELEMENTWISE:
            return self.make(op, tuple([self.read(s) for s in sources]), None, entry.dtype)
        if op is o.PAD:
            fill = self.read(sources[1])
            if sources[0] is None:
                return fill
            new = sources[0][1].guards - point.guards
            inner = self.read(sources[0])
            if not new:
                return inner
            condition = self.make(INSIDE, self.guard_values(new), None, BOOL, None, new)
            return self.make(o.WHERE, (condition, inner, fill), None, entry.dtype)
        if op is o.CONCAT:
            parts = [(s, s[1].guards - point.guards) for s in sources if s is not None]
            if not parts:  # nothing comes here
                return self.make(o.CAST, (self.make(POSITION, (), None, INT64, ix.ZERO),), None, entry.dtype)
            # A part whose guards hold here already is what is here: those behind it are not.
            last = next((k for k, (_, new) in enumerate(parts) if not new), len(parts) - 1)
            value = self.read(parts[last][0])
            for part, new in reversed(parts[:last]):
                condition = self.make(INSIDE, self.guard_values(new), None, BOOL, None, new)
                value = self.make(o.WHERE, (condition, self.read(part), value), None, entry.dtype)
            return value
        if op is o.REDUCE:
            ranges = self.kernel.reductions[e, point]
            value = self.read(sources[0])
            depth = self.kernel.prefix(point.index)
            assert depth is not None
            how = Reduction(entry.arg[0], depth, self.reduces_outer_axes(e))
            return self.make(ACCUMULATE, (value,), how, entry.dtype, None, frozenset(), ranges) if ranges else value
        if op is o.GATHER:
            return self.gathered(e, sources[0])
        return self.read(sources[0])  # movement and CONTIGUOUS

    def gathered(self, e: int, source: Request | None) -> Value:
        """Read what a GATHER reads; indices that do not matter (the axis has length one, or one value everywhere) are checked as well."""
        assert source is not None
        value = self.read(source)
        for i in source[1].index[: len(self.program.entries[e].src) - 1]:
            for atom in ix.atoms(i):
                if isinstance(atom, Loaded) and self.kernel.gathers.get(atom) == e:
                    checked = self.checked(atom)
                    if not _depends(value, checked):
                        condition = self.make(o.CAST, (checked,), None, BOOL)
                        value = self.make(o.WHERE, (condition, value, value), None, value.dtype)
        return value

    def reduces_outer_axes(self, e: int) -> bool:
        entry = self.program.entries[e]
        shape = self.program.entries[entry.src[0]].shape
        last = max([axis for axis, n in enumerate(shape) if n != 1], default=-1)
        return last not in entry.arg[1]

    def read_leaf(self, e: int, point: Point) -> Value:
        self.at.pop((e, point), None)
        return self.read((e, point))

    def guard_values(self, guards: frozenset[Guard]) -> tuple[Value, ...]:
        return self.loaded(_ordered(guards))


def _ordered(guards: frozenset[Guard]) -> tuple[Index, ...]:
    """List what the guards test, in an order that is the same every time."""
    return tuple([g.index for g in sorted(guards, key=_place)])


def _place(guard: Guard) -> tuple[Any, ...]:
    terms = [(atom.number, k) for atom, k in guard.index.terms]
    return terms, guard.index.const, guard.extent


def _depends(value: Value, other: Value) -> bool:
    pending, seen = [value], {value}
    while pending:
        at = pending.pop()
        if at is other:
            return True
        for source in at.src:
            if source not in seen and source.number >= other.number:
                seen.add(source)
                pending.append(source)
    return False


def _loaded_requests(point: Point) -> list[Request]:
    found: list[Request] = []
    pending = [*point.index, *[g.index for g in point.guards]]
    while pending:
        for atom in ix.atoms(pending.pop()):
            if isinstance(atom, Loaded):
                found.append(atom.value)
                pending += atom.value[1].index
    return found


def _number(atom: Atom) -> int:
    return atom.number


def _reachable(outputs: list[Output]) -> list[Value]:
    seen: set[Value] = set()
    pending = [output.value for output in outputs]
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            pending += value.src
    return sorted(seen, key=lambda value: value.number)


def indices(value: Value) -> list[Index]:
    found = [g.index for g in value.guards]
    if value.index is not None:
        found.append(value.index)
    return found


def ranges_of(value: Value) -> set[Range]:
    """The ranges a value names itself (not through its sources)."""
    return {atom for i in indices(value) for atom in ix.atoms(i) if isinstance(atom, Range)}


# Facts that code generation goes by -----------------------------------------------------------------------------------


def _annotate(body: Body, kernel: Kernel) -> None:
    """Split and merge ranges, then fill in free ranges, depth, time and weight of every value."""
    _split_ranges(body, kernel)
    _merge_ranges(body, kernel)
    main = body.main
    place = {r: k for k, r in enumerate(main)}
    for value in body.values:
        free = ranges_of(value)
        for source in value.src:
            free |= source.free
        if value.op is ACCUMULATE:
            # It is there once its loops are over, whether or not it changes with all the ranges around them.
            free = set(main[: value.arg.depth])
        value.free = frozenset(free)
        value.depth = max([place[r] + 1 for r in free if r in place], default=0)
        value.weight = float(value.op.cost) + sum(source.weight for source in value.src if source.op is not ACCUMULATE)
        if value.op is ACCUMULATE:
            value.weight = 0.0
    _times(body)


def _times(body: Body) -> None:
    """Find when each value can first be computed: at each depth, after which pass over the loops below it.

    A reduction at depth d that runs in pass p there is ready for pass p + 1; everything computed from it waits for that pass.  What an
    earlier pass over outer loops computed is computed again where a later one needs it, after the same inner passes: hence the maximum
    of each component.
    """
    rank = len(body.main) + 1
    start = (0,) * rank
    for value in body.values:
        time = start
        for source in value.src:
            ready = source.time
            if source.op is ACCUMULATE:
                d = source.depth
                ready = (*ready[:d], ready[d] + 1, *start[d + 1 :])
            if ready != time:
                time = tuple([max(a, b) for a, b in zip(ready, time, strict=True)])
        value.time = time


def _all_indices(body: Body) -> list[Index]:
    """Every index of a body, and every one that is divided in one."""
    pending: list[Index] = [output.index for output in body.outputs]
    for value in body.values:
        pending += indices(value)
    found: list[Index] = []
    while pending:
        form = pending.pop()
        found.append(form)
        for atom, _ in form.terms:
            if isinstance(atom, Quotient | Remainder):
                pending.append(atom.inner)
    return found


def _split_ranges(body: Body, kernel: Kernel) -> None:
    """A range that is divided (by a reshape of something broadcast, transposed or joined) becomes two: no element needs a division.

    Not where reductions are: their order is that of their ranges.
    """
    if any(value.op is ACCUMULATE for value in body.values):
        return
    divisors: dict[Atom, set[int]] = {}
    for form in _all_indices(body):
        for atom, _ in form.terms:
            if isinstance(atom, Quotient | Remainder) and len(atom.inner.terms) == 1 and not atom.inner.const:
                divided, k = atom.inner.terms[0]
                if k == 1 and divided in body.main:
                    divisors.setdefault(divided, set()).add(atom.divisor)
    mapping: dict[Atom, Index] = {}
    main: list[Range] = []
    begins = [0]  # of each depth in the old ranges, that in the new ones
    for r in body.main:
        inner = min(divisors.get(r, [0]))
        if inner >= cost.SPLIT_FROM and r.extent % inner == 0 and all(c % inner == 0 for c in divisors[r]):
            both = kernel.space.ranges((r.extent // inner, inner))
            mapping[r] = ix.of(both[0]) * inner + ix.of(both[1])
            main += both
        else:
            main.append(r)
        begins.append(len(main))
    if mapping:
        _substitute(body, kernel.space, mapping)
        for output in body.outputs:
            output.depth = begins[output.depth]
        body.main = main


def _substitute(body: Body, space: Space, mapping: Mapping[Atom, Index]) -> None:
    """Put indices in the place of ranges, everywhere but in what says which ranges there are."""
    remade: dict[Guard, Guard] = {}
    for value in body.values:
        if value.index is not None:
            value.index = ix.substitute(space, value.index, mapping)
        for guard in value.guards:
            if guard not in remade:
                remade[guard] = Guard(ix.substitute(space, guard.index, mapping), guard.extent)
        if value.guards:
            value.guards = tuple([remade[guard] for guard in value.guards])
    for output in body.outputs:
        output.index = ix.substitute(space, output.index, mapping)


def _merge_ranges(body: Body, kernel: Kernel) -> None:
    """Adjacent ranges a, b become one where every index has coefficient(a) = extent(b) * coefficient(b)."""
    inner = _all_indices(body)
    # Where loops must stay apart: a store or a reduction sits between them.
    breaks = {output.depth for output in body.outputs}
    sets: list[tuple[Range, ...]] = [tuple(body.main)]
    for value in body.values:
        if value.op is ACCUMULATE:
            breaks.add(value.arg.depth)
            if value.ranges[0] in body.main:
                breaks.add(body.main.index(value.ranges[0]) + len(value.ranges))
            elif value.ranges not in sets:
                sets.append(value.ranges)
    mapping: dict[Atom, Index] = {}
    replaced: dict[tuple[Range, ...], tuple[Range, ...]] = {}
    for k, ranges in enumerate(sets):
        merged: list[Range] = []
        for position, r in enumerate(ranges):
            if merged and not (k == 0 and position in breaks) and _walks_as_one(inner, merged[-1], r):
                a = merged.pop()
                both = kernel.space.range(a.extent * r.extent)
                mapping[a] = ix.ZERO
                mapping[r] = ix.of(both)
                # What already became ``a`` is an outer part of ``both`` now: only the innermost range carries it.
                for key, new in list(mapping.items()):
                    if new.coefficient(a):
                        mapping[key] = ix.ZERO
                inner = [ix.substitute(kernel.space, form, {a: ix.ZERO, r: ix.of(both)}) for form in inner]
                merged.append(both)
            else:
                merged.append(r)
        replaced[ranges] = tuple(merged)
    if not mapping:
        return
    old_main = body.main
    new_main = list(replaced[tuple(old_main)])

    def new_depth(depth: int) -> int:
        return len({atom for r in old_main[:depth] for atom, _ in mapping.get(r, ix.of(r)).terms})

    _substitute(body, kernel.space, mapping)
    for value in body.values:
        if value.op is ACCUMULATE:
            value.arg = Reduction(value.arg.op, new_depth(value.arg.depth), value.arg.outer)
            if value.ranges in replaced:
                value.ranges = replaced[value.ranges]
            else:
                images: list[Range] = []
                for r in value.ranges:
                    image = mapping.get(r, ix.of(r))
                    for atom, _ in image.terms:
                        assert isinstance(atom, Range)
                        images.append(atom)
                value.ranges = tuple(dict.fromkeys(images))
    for output in body.outputs:
        output.depth = new_depth(output.depth)
    body.main = new_main


def _walks_as_one(forms: list[Index], a: Range, b: Range) -> bool:
    return all(form.coefficient(a) == b.extent * form.coefficient(b) for form in forms)
