"""Step 3: from stored values to the index at which everything below them is evaluated.

In: a kernel's loop ranges and a value wanted at a *point* (an index over those ranges, and the guards under which it is wanted at all).
Out: the points at which its sources are wanted.  Promise: this file is the meaning of every operation inside a kernel; it decides
nothing.  A kernel's outputs get one loop range per axis; walking upstream, movement operations become index arithmetic, elementwise ones
pass the index on, a reduction opens ranges of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Index, Loaded, Range, Space
from lazynp.graph.node import Shape
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.movement import NO_GUARDS, Point, broadcast, guarded, source_point
from lazynp.values.records import Record, field

Request = tuple[int, Point]  # (entry, where)


class Kernel(Record):
    """Values computed in one tree of loops.

    ``roots`` are (value, where it is computed, stored entry it belongs to); for a STORE, ``bases`` names the entry whose copy is
    written to.  ``main`` are the common loop ranges, outermost first; ``extras`` the ranges of reductions that are none of them, by
    (depth at which the reduction sits, extents).  ``points`` maps each evaluated (entry, point) to the sources it reads, consumers first.
    ``held`` are bytes of values on the way, which must exist at the same time where one kernel writes or reads them.
    """

    number: int
    main: list[Range]
    space: Space
    extras: dict[tuple[int, Shape], tuple[Range, ...]] = field(factory=dict)
    roots: list[tuple[Request, int]] = field(factory=list)
    bases: dict[int, int] = field(factory=dict)
    points: dict[Request, tuple[Request | None, ...]] = field(factory=dict)
    reductions: dict[Request, tuple[Range, ...]] = field(factory=dict)
    gathers: dict[Loaded, int] = field(factory=dict)
    buffers: set[int] = field(factory=set)
    sources: int = 0
    held: int = 0

    def prefix(self, index: tuple[Index, ...]) -> int | None:
        """d if ``index`` is exactly the first d main ranges in order (axes of extent 1 left out), else None."""
        depth = 0
        for i in index:
            if i is ix.ZERO or (not i.terms and i.const == 0):
                continue
            if depth < len(self.main) and len(i.terms) == 1 and i.const == 0 and i.terms[0] == (self.main[depth], 1):
                depth += 1
            else:
                return None
        return depth

    def identity(self, shape: Shape) -> tuple[Index, ...] | None:
        """The index of a value of ``shape`` over the first main ranges; None if it does not fit."""
        index, depth = [], 0
        for n in shape:
            if n == 1:
                index.append(ix.ZERO)
            elif depth < len(self.main) and self.main[depth].extent == n:
                index.append(ix.of(self.main[depth]))
                depth += 1
            else:
                return None
        return tuple(index)

    def open_reduction(self, depth: int, extents: Shape) -> tuple[Range, ...]:
        """Ranges for a reduction at ``depth`` over ``extents``: the main ranges that follow if they fit, else extra ones, which all
        reductions of the same place and extents share, so that one pass serves them all."""
        following = tuple(self.main[depth : depth + len(extents)])
        if tuple([r.extent for r in following]) == extents:
            return following
        key = (depth, extents)
        ranges = self.extras.get(key)
        if ranges is None:
            ranges = self.extras[key] = tuple(self.space.ranges(extents))
        return ranges


def nontrivial(shape: Shape) -> Shape:
    return tuple([n for n in shape if n != 1])


class Walk:
    """The points wanted of every entry, filled in from consumers to producers.

    ``stored`` holds the entries that a kernel loads instead of computing them; the code that decides adds to it.
    """

    def __init__(self, program: Program, stored: Mapping[int, str]) -> None:
        self.entries = program.entries
        self.stored = stored
        # Entry -> kernel -> the points at which that kernel wants it, in order of asking.
        self.requests: list[dict[int, dict[Point, None]]] = [{} for _ in program.entries]

    def expand(self, kernel: Kernel, e: int, point: Point) -> None:
        """Evaluate e at ``point`` inside ``kernel``: ask for what it reads."""
        key = (e, point)
        if key in kernel.points:
            return
        entry = self.entries[e]
        entries = self.entries
        op = entry.op
        sources: list[Request | None] = []
        if op.kind is Kind.ELEMENTWISE:
            for s in entry.src:
                shape = entries[s].shape
                index = point.index if shape == entry.shape else broadcast(point.index, shape)
                sources.append((s, Point(index, point.guards)))
        elif op.kind is Kind.MOVEMENT:
            moved = source_point(kernel.space, entry, entries[entry.src[0]].shape, point)
            sources.append(None if moved is None else (entry.src[0], moved))
            if op is o.PAD:
                sources.append((entry.src[1], Point((), NO_GUARDS)))
        elif op is o.REDUCE:
            sources.append((entry.src[0], self.reduced_point(kernel, key, entry)))
        elif op is o.CONCAT:
            sources += self.concat_points(entry, point)
        elif op is o.GATHER:
            sources += self.gather_points(kernel, e, point)
        elif op is o.CONTIGUOUS:
            sources.append((entry.src[0], point))
        elif op.kind is not Kind.LEAF:
            raise AssertionError(f"{op!r} cannot be evaluated inside a kernel")
        kernel.points[key] = tuple(sources)
        for request in sources:
            if request is not None:
                self.ask(kernel, request)

    def ask(self, kernel: Kernel, request: Request) -> None:
        s, at = request
        self.requests[s].setdefault(kernel.number, {})[at] = None
        if self.entries[s].op is o.BUFFER or s in self.stored:
            kernel.buffers.add(s)

    def reduced_point(self, kernel: Kernel, key: Request, entry: Entry) -> Point:
        _, point = key
        axes = entry.arg[1]
        src_shape = self.entries[entry.src[0]].shape
        depth = kernel.prefix(point.index)
        assert depth is not None
        extents = nontrivial(tuple([src_shape[a] for a in axes]))
        ranges = kernel.open_reduction(depth, extents)
        kernel.reductions[key] = ranges
        outer, inner = iter(point.index), iter(ranges)
        index = []
        for axis, n in enumerate(src_shape):
            if axis not in axes:
                index.append(next(outer))
            elif n == 1:
                index.append(ix.ZERO)
            else:
                index.append(ix.of(next(inner)))
        return Point(tuple(index), point.guards)

    def concat_points(self, entry: Entry, point: Point) -> list[Request | None]:
        axis, before = entry.arg, 0
        sources: list[Request | None] = []
        for s in entry.src:
            extent = self.entries[s].shape[axis]
            moved = point.index[axis] + -before
            before += extent
            guards = guarded(point.guards, moved, extent) if extent else None
            if guards is None:
                sources.append(None)
            else:
                sources.append((s, Point((*point.index[:axis], moved, *point.index[axis + 1 :]), guards)))
        return sources

    def gather_points(self, kernel: Kernel, e: int, point: Point) -> list[Request | None]:
        entry = self.entries[e]
        x, *indices = entry.src
        shape = self.entries[x].shape
        rank = len(self.entries[indices[0]].shape)
        at = Point(point.index[:rank], point.guards)
        loaded: list[Index] = []
        for axis, s in enumerate(indices):
            atom = kernel.space.loaded((s, at), shape[axis])
            kernel.gathers.setdefault(atom, e)
            loaded.append(ix.of(atom))
        sources: list[Request | None] = [(x, Point((*loaded, *point.index[rank:]), point.guards))]
        sources += [(s, at) for s in indices]
        return sources


__all__ = ["Kernel", "Request", "Walk", "nontrivial"]
