"""Step 4: which values share a kernel.

In: a ``Program``.  Out: a ``Partition``: kernels, each with its loop ranges, the values it stores and the points it evaluates; and the
entries that go to libraries.  Promise: one walk from consumers to producers decides everything: when a value is reached, all requests
for it are known, and the cost model chooses between computing it there and storing it.  No recursion; linear in the requests.

* One request: the value is computed there.
* Several: the cost model weighs computing it again against storing it; a reduction is never repeated.
* A reduction stays inside its consumer if its free axes are the consumer's outermost loops, in order.
* A stored value joins a kernel over the same loops if it shares an input or is read at the very same index, and no path leads round through
  another kernel.
* A kernel that holds more than some megabytes of values on the way (library results it reads, temporaries it writes) takes no more that
  need others: all of them would have to exist at the same time.  So forty sorts are added up a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final

from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Loaded, Quotient, Range, Remainder, Space
from lazynp.graph.node import Shape
from lazynp.graph.op import Kind
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.claims import nbytes, read_base
from lazynp.schedule.movement import NO_GUARDS, Point, offset_bounds
from lazynp.schedule.rangeify import Kernel, Walk, nontrivial
from lazynp.values.records import Record


class Partition(Record):
    program: Program
    kernels: list[Kernel]
    library: list[int]  # entries computed by library calls
    home: dict[int, int]  # stored entry -> its kernel
    reasons: dict[int, str]  # entry -> why it was stored


# Movements that a library can follow by itself: all but PAD, whose border is in no memory.
CROWDED: Final = "the kernel needs many values at the same time already"

def partition(program: Program, supported: Callable[[Program, int], bool], joined: int | None = None) -> Partition:
    """Split ``program`` into kernels and library calls.

    ``supported(program, e)`` tells whether the backend can compute entry e inside a kernel.  A kernel that holds more than ``joined``
    bytes of values on the way (``cost.JOINED_BYTES``) takes no more that need others.
    """
    return _Fusion(program, supported, cost.JOINED_BYTES if joined is None else joined).run()


# What is known before the walk ---------------------------------------------------------------------------------------------


def _stored_anyway(program: Program, supported: Callable[[Program, int], bool]) -> tuple[list[bool], dict[int, str]]:
    """Find which entries are computed by a library, and which are stored whatever it costs, with the reason."""
    entries = program.entries
    library = [False] * len(entries)
    stored: dict[int, str] = dict.fromkeys(program.outputs, "wanted")
    for e, entry in enumerate(entries):
        nothing = e in stored and 0 in entry.shape and entry.op is not o.BUFFER  # no loop is worth starting
        if not nothing and entry.op.kind in (Kind.LEAF, Kind.MOVEMENT):
            continue
        if nothing or not supported(program, e):
            library[e] = True
            stored.setdefault(e, "computed by a library")
            for s in entry.src:
                base = read_base(program, s, entry)
                if entries[base].op.kind is not Kind.LEAF:
                    stored.setdefault(base, f"read by {entry.op.name}, a library call")
        elif entry.op is o.CONTIGUOUS:
            stored.setdefault(e, "contiguous() was asked for")
        elif entry.op is o.STORE:
            stored.setdefault(e, "written through a view")
            if entries[entry.src[0]].op is not o.BUFFER:
                stored.setdefault(entry.src[0], "a part of it is overwritten")
    # A library's results live as long as the call.
    for e, entry in enumerate(entries):
        if entry.op is o.OUTPUT:
            library[e] = True
    return library, stored


Domain = tuple[Shape, Shape]  # main extents; reduction extents that are not part of them


def _domains(program: Program, library: Sequence[bool]) -> list[Domain]:
    """Find the loops of the kernel that would store each entry.

    What is computed from a reduction element by element takes its loops, so that it can share them with other reductions.
    """
    entries = program.entries
    shapes = [nontrivial(entry.shape) for entry in entries]
    domains: list[Domain] = []
    finished: list[bool] = []
    for entry, shape in zip(entries, shapes, strict=True):
        follows = entry.op.kind is Kind.ELEMENTWISE or entry.op is o.RESHAPE
        below = [s for s in entry.src if follows and finished[s] and not library[s] and shapes[s] == shape]
        if below:
            domains.append(domains[below[0]])
        else:
            domains.append(_reduction_domain(entry, entries[entry.src[0]].shape) if entry.op is o.REDUCE else (shape, ()))
        finished.append(entry.op is o.REDUCE or bool(below))
    return domains


def _reduction_domain(entry: Entry, src_shape: Shape) -> Domain:
    axes = entry.arg[1]
    kept = nontrivial(entry.shape)
    reduced = nontrivial(tuple([src_shape[a] for a in axes]))
    kept_last = max([a for a, n in enumerate(src_shape) if a not in axes and n != 1], default=-1)
    first_reduced = min([a for a in axes if src_shape[a] != 1], default=len(src_shape))
    return (kept + reduced, ()) if kept_last < first_reduced else (kept, reduced)


def _uses(program: Program) -> list[int]:
    """Count the computing entries that use each entry, seen through movement; at most a few are told apart."""
    entries = program.entries
    uses = [0] * len(entries)
    for e in range(len(entries) - 1, -1, -1):
        entry = entries[e]
        count = uses[e] if entry.op.kind is Kind.MOVEMENT else 1
        for s in entry.src:
            uses[s] = min(uses[s] + count, cost.KERNEL_POINTS)
    return uses


def _estimates(program: Program, stored: Mapping[int, str]) -> list[float]:
    """Estimate what one element of each entry costs to compute, from what is stored."""
    entries = program.entries
    uses = _uses(program)
    estimates: list[float] = []
    inside: list[float] = []  # the same as its consumers see it
    for e, entry in enumerate(entries):
        if entry.op is o.REDUCE:
            count = prod(entries[entry.src[0]].shape) / max(prod(entry.shape), 1)
            own = count * (1 + inside[entry.src[0]])
        elif entry.op is o.BUFFER:
            own = cost.LOAD
        else:
            own = float(entry.op.cost) + sum(inside[s] for s in entry.src)
        own = min(own, cost.ESTIMATE_CAP)
        estimates.append(own)
        # What is dear and used several times will probably be stored.
        movement = entry.op.kind is Kind.MOVEMENT or entry.op.kind is Kind.LEAF
        probably = not movement and uses[e] > 1 and own * (uses[e] - 1) > cost.STORE + uses[e] * cost.LOAD
        is_stored = e in stored and entry.op.kind is not Kind.LEAF
        inside.append(cost.LOAD if probably or is_stored else own)
    return estimates


def _memory_read(program: Program, stored: Mapping[int, str]) -> list[int]:
    """Collect the inputs and stored values under each entry, as a set of bits."""
    masks: list[int] = []
    for e, entry in enumerate(program.entries):
        mask = 1 << e if entry.op is o.BUFFER else 0
        for s in entry.src:
            mask |= masks[s] | ((1 << s) if s in stored else 0)
        masks.append(mask)
    return masks


def _bytes_below(program: Program, library: Sequence[bool], sizes: Sequence[int]) -> list[int]:
    """Estimate how many bytes of library results each entry is computed from, besides those that other libraries read."""
    below: list[int] = []
    for entry in program.entries:
        below.append(min(sum([sizes[s] if library[s] else below[s] for s in set(entry.src)]), cost.HELD_CAP))
    return below


# The walk ----------------------------------------------------------------------------------------------------------------


class _Fusion:
    def __init__(self, program: Program, supported: Callable[[Program, int], bool], joined: int) -> None:
        self.program = program
        self.joined = joined
        self.entries = program.entries
        self.library, self.stored = _stored_anyway(program, supported)
        self.walk = Walk(program, self.stored)
        self.requests = self.walk.requests
        self.domains = _domains(program, self.library)
        self.offsets = offset_bounds(program.entries)
        self.estimate = _estimates(program, self.stored)
        self.sources = _memory_read(program, self.stored)
        outputs = frozenset(program.outputs)
        # What lives on the way, and dies there.
        self.sizes = [0 if e in outputs or entry.op.kind is Kind.LEAF else nbytes(entry) for e, entry in enumerate(self.entries)]
        self.below = _bytes_below(program, self.library, self.sizes)
        self.kernels: list[Kernel] = []
        self.home: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        # Who needs whom: kernels by number, library entry e as -1 - e.
        self.successors: dict[int, set[int]] = {}
        self.other_readers: dict[int, set[int]] = {}
        self.by_domain: dict[Domain, list[int]] = {}

    def run(self) -> Partition:
        entries = self.entries
        for e in range(len(entries) - 1, -1, -1):
            entry = entries[e]
            requests = self.requests[e]
            if entry.op.kind is Kind.LEAF and e not in self.stored:
                continue
            if self.library[e]:
                self.successors[-1 - e] = set(requests) | self.other_readers.get(e, set())
                for k in requests:
                    self.kernels[k].held += self.sizes[e]
                for s in entry.src:
                    self.other_readers.setdefault(read_base(self.program, s, entry), set()).add(-1 - e)
                continue
            if e not in self.stored:
                if not requests:
                    continue
                reason = self.must_store(e)
                if reason is None:
                    for k, points in requests.items():
                        for point in points:
                            self.walk.expand(self.kernels[k], e, point)
                    continue
                self.stored[e] = reason
            elif entry.op is o.BUFFER:
                continue
            self.reasons[e] = self.stored[e]
            if entry.op is o.STORE:
                self.place_store(e)
            else:
                self.place(e)
        library = [e for e, is_library in enumerate(self.library) if is_library]
        return Partition(self.program, self.kernels, library, self.home, self.reasons)

    # Deciding ------------------------------------------------------------------------------------------------------

    def must_store(self, e: int) -> str | None:
        """The reason to store e, or None where it is computed inside every kernel that wants it."""
        entry = self.entries[e]
        requests = self.requests[e]
        if entry.op.kind is Kind.MOVEMENT:
            return None
        points = sum(len(p) for p in requests.values())
        if entry.op is o.REDUCE:
            if points > 1 or len(requests) > 1:
                return "a reduction is never repeated"
            (k,) = requests
            (point,) = requests[k]
            return self.reduction_barrier(self.kernels[k], e, point)
        for k in requests:
            kernel = self.kernels[k]
            if len(kernel.points) + len(requests[k]) > cost.KERNEL_NODES:
                return f"the kernel holds {cost.KERNEL_NODES} expression nodes already"
            if len(requests[k]) > cost.KERNEL_POINTS:
                return f"wanted at more than {cost.KERNEL_POINTS} indices"
            if len(kernel.buffers) > cost.KERNEL_BUFFERS:
                return f"the kernel reads {cost.KERNEL_BUFFERS} arrays already"
            if self.crowded(kernel, e):
                return CROWDED
        evaluations = 0
        for k, wanted in requests.items():
            for point in wanted:
                evaluations += self.evaluations(self.kernels[k], point)
        decision = cost.recompute_or_store(prod(entry.shape), evaluations, points, self.estimate[e], len(requests) == 1)
        return decision.reason if decision.store else None

    def reduction_barrier(self, kernel: Kernel, e: int, point: Point) -> str | None:
        """Say why reduction e cannot run inside ``kernel`` at ``point``."""
        if point.guards:
            return "a reduction is not computed under a padding condition"
        depth = kernel.prefix(point.index)
        if depth is None:
            return "its axes are not the outermost loops of its consumer"
        if len(kernel.points) > cost.KERNEL_NODES:
            return f"the kernel holds {cost.KERNEL_NODES} expression nodes already"
        if self.crowded(kernel, e):
            return CROWDED
        axes = self.entries[e].arg[1]
        extents = nontrivial(tuple([n for a, n in enumerate(self.entries[self.entries[e].src[0]].shape) if a in axes]))
        following = kernel.main[depth : depth + len(extents)]
        end = depth + len(extents) if tuple([r.extent for r in following]) == extents else depth
        for (_, other), ranges in kernel.reductions.items():
            place = kernel.prefix(other.index)
            if place is None:
                continue
            if ranges and ranges[0] in kernel.main and place < depth < kernel.main.index(ranges[-1]) + 1:
                return "it would be cut by the chunks of a longer reduction around it"
            if depth < place < end:
                return "its chunks would cut a shorter reduction inside it"
        return None

    def crowded(self, kernel: Kernel, e: int, stored: int = 0) -> bool:
        """Tell whether ``kernel`` holds so much on the way that e should not bring more: library results, ``stored`` bytes of its own."""
        if self.below[e] + stored == 0 or kernel.held <= self.joined:
            return False
        entry = self.entries[e]
        own = nbytes(self.entries[entry.src[0]] if entry.op is o.REDUCE else entry)
        return kernel.held > (2 * own if self.joined else own)

    def evaluations(self, kernel: Kernel, point: Point) -> int:
        """Count how often the loops of ``kernel`` evaluate a value at ``point`` (it is hoisted out of loops it does not depend on)."""
        depth, extra = 0, 1
        pending = list(point.index) + [g.index for g in point.guards]
        seen: set[ix.Atom] = set()
        while pending:
            for atom, _ in pending.pop().terms:
                if atom in seen:
                    continue
                seen.add(atom)
                if isinstance(atom, Quotient | Remainder):
                    pending.append(atom.inner)
                elif isinstance(atom, Loaded):
                    pending += atom.value[1].index
                elif isinstance(atom, Range):
                    if atom in kernel.main:
                        depth = max(depth, kernel.main.index(atom) + 1)
                    else:
                        extra *= atom.extent
                        for (d, _), ranges in kernel.extras.items():
                            if atom in ranges:
                                depth = max(depth, d)
        total = extra * prod([r.extent for r in kernel.main[:depth]])
        innermost = kernel.main[-1] if kernel.main else None
        for guard in point.guards:
            # The innermost loop is cut into pieces, and only the piece that is inside evaluates it; other loops test.
            if innermost is not None and guard.index.coefficient(innermost) == 1:
                total = total * min(guard.extent, innermost.extent) // innermost.extent
        return total

    # Placing a stored value ----------------------------------------------------------------------------------------

    def place(self, e: int) -> None:
        """Give stored entry e a kernel: one it can share, else its own."""
        entry = self.entries[e]
        main, reduced = self.domains[e]
        kernel = self.shared_kernel(e, main, reduced)
        if kernel is None:
            space = Space(self.offsets)
            kernel = Kernel(len(self.kernels), space.ranges(main), space)
            self.add(kernel)
            self.by_domain.setdefault((main, reduced), []).append(kernel.number)
        kernel.sources |= self.sources[e]
        kernel.held += self.sizes[e]
        self.home[e] = kernel.number
        for k in self.requests[e]:
            if k != kernel.number:
                self.kernels[k].buffers.add(e)
                self.kernels[k].held += self.sizes[e]
        self.successors[kernel.number] |= self.consumers(e) - {kernel.number}
        index = kernel.identity(entry.shape)
        assert index is not None
        point = Point(index, NO_GUARDS)
        kernel.roots.append(((e, point), e))
        self.walk.expand(kernel, e, point)

    def place_store(self, e: int) -> None:
        """A STORE is a kernel over the written region; what it overwrites is a copy of the base, or the base if nothing else reads it."""
        base, value = self.entries[e].src
        space = Space(self.offsets)
        kernel = Kernel(len(self.kernels), space.ranges(nontrivial(self.entries[value].shape)), space)
        self.add(kernel)
        index = kernel.identity(self.entries[value].shape)
        assert index is not None
        request = (value, Point(index, NO_GUARDS))
        kernel.roots.append((request, e))
        kernel.bases[e] = base
        kernel.sources = self.sources[e]
        self.home[e] = kernel.number
        for k in self.requests[e]:
            self.kernels[k].buffers.add(e)
        self.successors[kernel.number] |= self.consumers(e)
        self.other_readers.setdefault(base, set()).add(kernel.number)
        self.walk.ask(kernel, request)

    def add(self, kernel: Kernel) -> None:
        self.kernels.append(kernel)
        self.successors[kernel.number] = set()

    def consumers(self, e: int) -> set[int]:
        return set(self.requests[e]) | self.other_readers.get(e, set())

    def shared_kernel(self, e: int, main: Shape, reduced: Shape) -> Kernel | None:
        """A kernel whose loops e can join: same loops, something read in common, and no way round through another kernel."""
        requests = self.requests[e]
        # What lies behind a fence does not share a kernel with it.
        readers = () if self.entries[e].op is o.CONTIGUOUS else requests
        candidates = [k for k in readers if self.fits(e, self.kernels[k], main)]
        candidates += [k for k in reversed(self.by_domain.get((main, reduced), [])[-cost.JOINED :]) if k not in requests]
        consumers = self.consumers(e)
        for k in candidates:
            kernel = self.kernels[k]
            if e in kernel.bases.values():
                continue  # what is overwritten comes first, also where it is read at the index that is written
            if len(kernel.points) + len(requests.get(k, ())) > cost.KERNEL_NODES or len(kernel.buffers) > cost.KERNEL_BUFFERS:
                continue
            index = kernel.identity(self.entries[e].shape)
            if index is None:
                continue
            if k in requests:
                if any(p != Point(index, NO_GUARDS) for p in requests[k]):
                    continue
            elif not kernel.sources & self.sources[e]:
                continue
            if self.crowded(kernel, e, 0 if k in requests else self.sizes[e]):
                continue
            entry = self.entries[e]
            if entry.op is o.REDUCE and self.reduction_barrier(kernel, e, Point(index, NO_GUARDS)) is not None:
                continue
            if not self.reaches(consumers - {k}, k):
                return kernel
        return None

    def fits(self, e: int, kernel: Kernel, main: Shape) -> bool:
        extents = tuple([r.extent for r in kernel.main])
        if self.entries[e].op is o.REDUCE:
            return extents == main
        return extents[: len(main)] == main

    def reaches(self, start: set[int], goal: int) -> bool:
        """Tell whether ``goal`` needs, directly or not, a kernel of ``start``; a search that grows too long counts as yes."""
        pending, seen = list(start), set(start)
        while pending:
            k = pending.pop()
            if k == goal or len(seen) > cost.SEARCH:
                return True
            for following in self.successors[k]:
                if following not in seen:
                    seen.add(following)
                    pending.append(following)
        return False


__all__ = ["Partition", "partition"]
