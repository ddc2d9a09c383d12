"""What each pass of the schedule must hand to the next: an executable grammar per phase.

In: the product of a pass.  Out: nothing, or a ``SpecError`` that names the first entry, value or statement that breaks a rule, and the
rule.  Promise: a program, partition or body that passes here means something; tests call these checks after every pass, and so does
``LAZYNP_DEBUG=1``.  Otherwise they are never called and never imported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod
from typing import Any

import numpy as np

from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Index, Loaded, Offset, Range
from lazynp.graph.node import Shape
from lazynp.graph.op import Kind, Op
from lazynp.schedule.canonicalise import ZERO, Entry, Program
from lazynp.schedule.claims import read_base
from lazynp.schedule.fuse import Partition
from lazynp.schedule.lower import ACCUMULATE, CHECKED, INSIDE, LOAD, POSITION, SCALAR, Body, Lowered, Value
from lazynp.schedule.rangeify import Kernel, Request
from lazynp.schedule.spec_rules import BOOL, INT64, Complaints, SpecError, refuse, scalar_rule


def _leaf(program: Program, entry: Entry) -> Complaints:
    if entry.src:
        yield "a leaf has no sources"
    slots = entry.arg if entry.op is o.IOTA else (entry.arg,)
    if any(not isinstance(slot, int) or slot < 0 for slot in slots):
        yield f"{entry.arg!r} is no parameter number"
    if len(entry.shape) != {o.CONST: 0, o.IOTA: 1}.get(entry.op, len(entry.shape)):
        yield f"a {entry.op.name} has no shape {entry.shape}"


def _elementwise(program: Program, entry: Entry) -> Complaints:
    sources = [program.entries[s] for s in entry.src]
    yield from scalar_rule(entry.op, entry.dtype, [s.dtype for s in sources])
    try:
        shape = np.broadcast_shapes(*[s.shape for s in sources])
    except ValueError:
        yield f"shapes {', '.join(str(s.shape) for s in sources)} do not broadcast"
        return
    if shape != entry.shape:
        yield f"shape {entry.shape} is not the sources' {shape}"


def _movement(program: Program, entry: Entry) -> Complaints:
    source = program.entries[entry.src[0]]
    if source.dtype != entry.dtype:
        yield f"a movement makes {entry.dtype} of {source.dtype}"
    if len(entry.src) != entry.op.arity:
        yield f"{len(entry.src)} sources"
        return
    yield from _MOVEMENTS[entry.op](program, entry, source.shape)


def _reshape(program: Program, entry: Entry, shape: Shape) -> Complaints:
    if prod(shape) != prod(entry.shape):
        yield f"shape {shape} is not reshaped to {entry.shape}"


def _permute(program: Program, entry: Entry, shape: Shape) -> Complaints:
    if sorted(entry.arg) != list(range(len(shape))):
        yield f"{entry.arg} is no permutation of {len(shape)} axes"
    elif tuple([shape[axis] for axis in entry.arg]) != entry.shape:
        yield f"axes {entry.arg} of {shape} are not {entry.shape}"


def _expand(program: Program, entry: Entry, shape: Shape) -> Complaints:
    tail = entry.shape[len(entry.shape) - len(shape) :]
    if len(shape) > len(entry.shape) or any(n not in (1, m) for n, m in zip(shape, tail, strict=False)):
        yield f"shape {shape} does not broadcast to {entry.shape}"


def _region(region: Any, lengths: Shape, shape: Shape) -> Complaints:
    if len(region) != len(shape) or len(lengths) != len(shape):
        yield f"a region of {len(region)} axes and lengths {lengths} in shape {shape}"
        return
    for (slot, step), length, extent in zip(region, lengths, shape, strict=True):
        if not isinstance(slot, int) or slot < ZERO or step == 0:
            yield f"({slot}, {step}) is no start and step"
        elif length and (length - 1) * abs(step) >= extent:
            yield f"{length} elements in steps of {step} do not fit an axis of {extent}"


def _slice(program: Program, entry: Entry, shape: Shape) -> Complaints:
    yield from _region(entry.arg, entry.shape, shape)


def _pad(program: Program, entry: Entry, shape: Shape) -> Complaints:
    fill = program.entries[entry.src[1]]
    if fill.shape != () or fill.dtype != entry.dtype:
        yield f"the fill is {fill.dtype} of shape {fill.shape}"
    if len(entry.arg) != len(shape) or len(entry.shape) != len(shape):
        yield f"{len(entry.arg)} widths for {len(shape)} axes"
    elif any(not isinstance(slot, int) or slot < ZERO or n > m for slot, n, m in zip(entry.arg, shape, entry.shape, strict=True)):
        yield f"{shape} at {entry.arg} does not lie in {entry.shape}"


_MOVEMENTS: dict[Op, Callable[[Program, Entry, Shape], Complaints]] = {
    o.RESHAPE: _reshape, o.PERMUTE: _permute, o.EXPAND: _expand, o.SLICE: _slice, o.PAD: _pad,
}  # fmt: skip


def _reduce(program: Program, entry: Entry) -> Complaints:
    source = program.entries[entry.src[0]]
    op, axes = entry.arg
    if op not in o.COMBINING:
        yield f"{op!r} does not combine"
    if source.dtype != entry.dtype:
        yield f"{source.dtype} is reduced to {entry.dtype}"
    if not axes or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= len(source.shape):
        yield f"axes {axes} of shape {source.shape}"
    elif tuple([n for axis, n in enumerate(source.shape) if axis not in axes]) != entry.shape:
        yield f"shape {source.shape} without axes {axes} is not {entry.shape}"


def _scan(program: Program, entry: Entry) -> Complaints:
    source = program.entries[entry.src[0]]
    if (source.shape, source.dtype) != (entry.shape, entry.dtype) or not 0 <= entry.arg[1] < len(entry.shape):
        yield f"a running reduction over axis {entry.arg[1]} makes {entry.dtype}{entry.shape} of {source.dtype}{source.shape}"


def _gather(program: Program, entry: Entry) -> Complaints:
    x, *indices = [program.entries[s] for s in entry.src]
    if not indices or len(indices) > len(x.shape):
        yield f"{len(indices)} indices into shape {x.shape}"
        return
    if any(i.dtype != INT64 or i.shape != indices[0].shape for i in indices):
        yield f"indices of {', '.join(f'{i.dtype}{i.shape}' for i in indices)}"
    if entry.dtype != x.dtype or entry.shape != indices[0].shape + x.shape[len(indices) :]:
        yield f"{entry.dtype}{entry.shape} gathered from {x.dtype}{x.shape}"


def _store(program: Program, entry: Entry) -> Complaints:
    base, value = [program.entries[s] for s in entry.src]
    if base.shape != entry.shape or {base.dtype, value.dtype} != {entry.dtype}:
        yield f"{value.dtype}{value.shape} stored in {base.dtype}{base.shape} is not {entry.dtype}{entry.shape}"
    yield from _region(entry.arg, value.shape, base.shape)


def _concat(program: Program, entry: Entry) -> Complaints:
    parts = [program.entries[s] for s in entry.src]
    axis = entry.arg
    if not parts or not 0 <= axis < len(entry.shape):
        yield f"{len(parts)} parts along axis {axis}"
        return
    if any(p.dtype != entry.dtype or len(p.shape) != len(entry.shape) for p in parts):
        yield "parts of other dtypes or ranks"
        return
    if any(p.shape[:axis] + p.shape[axis + 1 :] != entry.shape[:axis] + entry.shape[axis + 1 :] for p in parts):
        yield "parts of other extents"
    if sum(p.shape[axis] for p in parts) != entry.shape[axis]:
        yield f"parts of {sum(p.shape[axis] for p in parts)} do not fill {entry.shape[axis]}"


def _same(program: Program, entry: Entry) -> Complaints:
    source = program.entries[entry.src[0]]
    if (source.shape, source.dtype) != (entry.shape, entry.dtype):
        yield f"{entry.dtype}{entry.shape} of {source.dtype}{source.shape}"


def _output(program: Program, entry: Entry) -> Complaints:
    if len(entry.src) != 1 or program.entries[entry.src[0]].op is not o.CALL:
        yield "an output belongs to one library call"


def _anything(program: Program, entry: Entry) -> Complaints:
    yield from ()


_RULES: dict[Op, Callable[[Program, Entry], Complaints]] = {
    o.REDUCE: _reduce, o.SCAN: _scan, o.GATHER: _gather, o.STORE: _store, o.CONCAT: _concat, o.CONTIGUOUS: _same, o.COPY: _same,
    o.OUTPUT: _output, o.CALL: _anything,
}  # fmt: skip
_KINDS = {Kind.LEAF: _leaf, Kind.MOVEMENT: _movement, Kind.ELEMENTWISE: _elementwise}


def rule_of(op: Op) -> Callable[[Program, Entry], Complaints]:
    return _RULES[op] if op in _RULES else _KINDS[op.kind]


def check_structure(program: Program) -> None:
    """A well-formed program, as it is recorded.

    Raises
    ------
    SpecError
        Naming the first entry that breaks a rule.
    """
    entries = program.entries
    for e, entry in enumerate(entries):
        place = f"entry {e}, {entry.op!r}"
        if any(not 0 <= s < e for s in entry.src):
            raise SpecError(f"program: {place}: reads {entry.src}, which do not all come before it")
        refuse("program", place, rule_of(entry.op)(program, entry))
    if any(not 0 <= e < len(entries) for e in program.outputs):
        raise SpecError(f"program: outputs {program.outputs} of {len(entries)} entries")


def check_program(program: Program) -> None:
    """A well-formed program that has no dead, double or zero-size work left: what ``simplify`` makes.

    Raises
    ------
    SpecError
        Naming the first entry that breaks a rule.
    """
    check_structure(program)
    entries = program.entries
    wanted = set(program.outputs)
    used = wanted.union(*[entry.src for entry in entries]) if entries else wanted
    seen: dict[Entry, int] = {}
    for e, entry in enumerate(entries):
        place = f"simplified program: entry {e}, {entry.op!r}"
        if e not in used:
            raise SpecError(f"{place}: nothing depends on it")
        if seen.setdefault(entry, e) != e:
            raise SpecError(f"{place}: the same as entry {seen[entry]}")
        empty = [s for s in entry.src if 0 in entries[s].shape]
        if empty and 0 not in entry.shape and entry.op not in (o.CALL, o.OUTPUT):
            raise SpecError(f"{place}: made of nothing")
    if len(program.origins) != len(entries):
        raise SpecError(f"simplified program: {len(program.origins)} origins for {len(entries)} entries")


# Partitions --------------------------------------------------------------------------------------------------------------


def check_partition(partition: Partition) -> None:
    """Every wanted value has one place where it is made, and a kernel asks only for what exists there or is stored.

    Raises
    ------
    SpecError
        Naming the first kernel and entry that break a rule.
    """
    program = partition.program
    entries = program.entries
    library = set(partition.library)
    for e in program.outputs:
        if e not in partition.home and e not in library and entries[e].op is not o.BUFFER:
            raise SpecError(f"partition: output {e}, {entries[e].op!r}: stored by nobody")
    stored = library | set(partition.home)
    for e in library:
        if e in partition.home:
            raise SpecError(f"partition: entry {e}, {entries[e].op!r}: computed by a library and by kernel {partition.home[e]}")
        for s in entries[e].src:
            base = read_base(program, s, entries[e])
            if base not in stored and entries[base].op.kind is not Kind.LEAF:
                raise SpecError(f"partition: entry {e}, {entries[e].op!r}: reads entry {base}, which is not stored")
    roots: dict[int, int] = {}
    for kernel in partition.kernels:
        for (value, point), e in kernel.roots:
            place = f"partition: kernel {kernel.number}: entry {e}, {entries[e].op!r}"
            if roots.setdefault(e, kernel.number) != kernel.number or partition.home.get(e) != kernel.number:
                raise SpecError(f"{place}: is at home elsewhere")
            if kernel.prefix(point.index) is None or point.guards:
                raise SpecError(f"{place}: is stored at {point}, not over the outermost loops")
            if value != (entries[e].src[1] if e in kernel.bases else e):
                raise SpecError(f"{place}: stores entry {value}")
            if e in kernel.bases and kernel.bases[e] not in stored and entries[kernel.bases[e]].op is not o.BUFFER:
                raise SpecError(f"{place}: writes into entry {kernel.bases[e]}, which is not stored")
        for request, sources in kernel.points.items():
            place = f"kernel {kernel.number}, entry {request[0]} ({entries[request[0]].op!r}) at {request[1]}"
            refuse("partition", place, _point(program, stored, kernel, request, sources))
    if set(roots) != set(partition.home):
        raise SpecError(f"partition: entries {sorted(set(roots) ^ set(partition.home))} have a home that does not store them")


def _joint(index: Index) -> bool:
    """The start of a slice is bounded together with its length, which separate intervals cannot say."""
    return any(isinstance(atom, Offset) for atom in ix.atoms(index))


def _point(program: Program, stored: set[int], kernel: Kernel, request: Request, sources: tuple[Request | None, ...]) -> Complaints:
    e, point = request
    entry = program.entries[e]
    if len(point.index) != len(entry.shape):
        yield f"{len(point.index)} indices for shape {entry.shape}"
        return
    for i, n in zip(point.index, entry.shape, strict=True):
        lo, hi = i.bounds()
        if not point.guards and not _joint(i) and (lo < 0 or hi >= n):
            yield f"index {i!r} in [{lo}, {hi}] leaves an axis of {n}, and nothing guards it"
    known = {*kernel.main, *[r for ranges in kernel.extras.values() for r in ranges]}
    for i in (*point.index, *[g.index for g in point.guards]):
        for atom in ix.atoms(i):
            if isinstance(atom, Range) and atom not in known:
                yield f"range {atom!r} is no loop of the kernel"
            if isinstance(atom, Loaded) and atom not in kernel.gathers:
                yield f"computed index {atom!r} belongs to no gather"
    if entry.op is o.REDUCE:
        axes = entry.arg[1]
        extents = tuple([n for axis, n in enumerate(program.entries[entry.src[0]].shape) if axis in axes and n != 1])
        if tuple([r.extent for r in kernel.reductions.get(request, ())]) != extents:
            yield f"reduces {extents} over ranges {kernel.reductions.get(request)}"
    expected = entry.src[:1] if entry.op is o.GATHER else entry.src
    if tuple([s[0] for s in sources if s is not None]) != entry.src and None not in sources:
        yield f"reads {sources}, not {expected}"
    for source in sources:
        if source is not None and source not in kernel.points:
            s = source[0]
            if s not in stored and program.entries[s].op.kind is not Kind.LEAF:
                yield f"reads entry {s} at {source[1]}, which is neither computed here nor stored"


# Bodies ------------------------------------------------------------------------------------------------------------------


def check_body(body: Body, program: Program, over: Collection[int] = ()) -> None:
    """Values come after what they are made of, stay inside their arrays and name only loops that exist.

    ``over`` are the written entries whose memory held other elements that the kernel reads, each where it then writes.

    Raises
    ------
    SpecError
        Naming the first value that breaks a rule.
    """
    done: set[Value] = set()
    loops = set(body.main).union(*[v.ranges for v in body.values if v.op is ACCUMULATE])
    sizes = [prod(program.entries[e].shape) for e in body.buffers]
    for value in body.values:
        if any(source not in done for source in value.src):
            raise SpecError(f"body: {value!r}: made before its sources {value.src}")
        done.add(value)
        refuse("body", repr(value), _value(body, program, value, loops, sizes, over))
    for out in body.outputs:
        place = f"output to buffer {out.buffer}"
        if out.value not in done or out.buffer not in body.stored:
            raise SpecError(f"body: {place}: {out.value!r} is not made here, or the buffer is not marked as written")
        size, lo, hi = sizes[out.buffer], *out.index.bounds()
        outer = body.main[: out.depth]
        walked = {atom for atom in ix.atoms(out.index) if isinstance(atom, Range)}
        if walked != set(outer):
            raise SpecError(f"body: {place}: index {out.index!r} does not name each of the outer {out.depth} loops")
        part = program.entries[body.buffers[out.buffer]].op is o.STORE
        if not part and ((lo, hi) != (0, size - 1) or prod([r.extent for r in outer]) != size):
            raise SpecError(f"body: {place}: positions [{lo}, {hi}] of {size} elements")
        if part and not _joint(out.index) and (lo < 0 or hi >= size):
            raise SpecError(f"body: {place}: positions [{lo}, {hi}] leave {size} elements")
        if not out.value.free <= walked:
            raise SpecError(f"body: {place}: {out.value!r} changes with loops {out.value.free - walked} that the store is not in")


def _value(body: Body, program: Program, value: Value, loops: set[Range], sizes: list[int], over: Collection[int]) -> Complaints:
    op = value.op
    for i in (*([value.index] if value.index is not None else []), *[g.index for g in value.guards]):
        for atom in ix.atoms(i):
            if isinstance(atom, Range) and atom not in loops:
                yield f"range {atom!r} is no loop of the body"
            if isinstance(atom, Loaded) and body.loaded.get(atom) not in value.src:
                yield f"computed index {atom!r} is not what it is computed from"
    if op is LOAD:
        entry = program.entries[body.buffers[value.arg]]
        if value.arg in body.stored:
            here = any(out.buffer == value.arg and out.index == value.index for out in body.outputs)
            if body.buffers[value.arg] not in over or not here:
                yield f"reads buffer {value.arg}, which the kernel writes"
        if value.dtype != entry.dtype:
            yield f"reads {entry.dtype} as {value.dtype}"
        lo, hi = (value.index or ix.ZERO).bounds()
        if not value.guards and not _joint(value.index or ix.ZERO) and (lo < 0 or hi >= sizes[value.arg]):
            yield f"positions [{lo}, {hi}] of {sizes[value.arg]} elements, and nothing guards them"
    elif op is SCALAR:
        if body.scalar_types[value.arg] != value.dtype:
            yield f"scalar {value.arg} is {body.scalar_types[value.arg]}, not {value.dtype}"
    elif op is ACCUMULATE:
        if value.arg.op not in o.COMBINING or value.dtype != value.src[0].dtype or not value.ranges:
            yield f"{value.arg.op!r} of {value.src[0].dtype} to {value.dtype} over {value.ranges}"
        if set(value.ranges) & set(body.main[: value.arg.depth]):
            yield f"reduces over loop {value.ranges} around it"
    elif op is CHECKED:
        if value.src[0].dtype != INT64 or value.arg[1] >= len(body.flags):
            yield f"checks {value.src[0].dtype} under flag {value.arg[1]} of {len(body.flags)}"
    elif op is POSITION:
        if value.dtype != INT64:
            yield f"a position is {value.dtype}"
    elif op is INSIDE:
        if value.dtype != BOOL or not value.guards:
            yield f"a condition is {value.dtype} of {len(value.guards)} guards"
    elif op.kind is Kind.ELEMENTWISE:
        yield from scalar_rule(op, value.dtype, [source.dtype for source in value.src])
    else:
        yield f"{op!r} is no scalar operation"


def check_lowered(lowered: Lowered) -> None:
    """``check_body`` for every kernel.

    Raises
    ------
    SpecError
        Naming the first value that breaks a rule.
    """
    for body in lowered.bodies:
        check_body(body, lowered.partition.program)


__all__ = ["SpecError", "check_body", "check_lowered", "check_partition", "check_program", "check_structure"]
