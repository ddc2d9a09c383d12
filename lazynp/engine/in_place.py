"""Writing over large arrays, piece by piece.

In: what a run would compute.  Out: those results that may lie where their operand lies (``x += 1.0``, ``x[1:-1] *= y``), computed there.
Promise: such an array needs no second one meanwhile, and nothing is lost: a piece is computed in memory of its own, by a program like any
other, with its errors, and then copied to its place, which cannot fail.  An interruption in between (Ctrl-C, no memory) leaves a value that
is ``Unfinished``: the next read goes on where it was stopped.

One operation on what exists is no program: its loop writes over the operand, as NumPy's would, and nothing stops it halfway.

An operand may be overwritten if it can be reached only through the result, which is known from counting references; and if the result is
computed element by element, so that no piece reads what an earlier one has overwritten.

What is a copy and then a method (``np.sort``, ``np.partition``) is done in a run's own temporary where that is not read afterwards
(``changes`` in ``backends/numpy/source.py``). A ``STORE`` may be written into the memory of the array it changes if the old elements are
not wanted any more. Their readers are not counted: counting would cost every operation. Within a program the scheduler sees all readers
(``storage.py``). For an input of the program, ``backends/common/ownership.py`` makes a transaction of the run: the memory is detached from
its node (other threads then wait in ``realize``), the elements that will be overwritten are saved, and after the run one looks whether the
old node died with the graph that the run consumed. If it lives, or the run failed, the old elements are put back; where there is no memory
for an old value beside the new one, it is put together when it is read. A plan claims an input only where it overwrites less than half of
it: otherwise a fresh buffer and a copy of what lies around the region cost less. Memory that was exported (``numpy.asarray(x)``), or that
another run reads, is never claimed. Saving half of an array, or a fresh one beside it, is too much where NumPy has one array: from 32 MiB
on (``pressure.ALONE_FROM``), what is computed element by element and assigned to the array it reads is put together in that array's memory
(``engine/in_place.py``). One operation on what exists (``x += 1.0``, ``x *= y``, ``x[k::2] *= y``, ``x[:n] -= x[n:]``, a copy) is written
there by its own loop, at any size that is recorded: there is nothing to fuse, and a kernel would need a second array. Here one must know
before: the references to the old value, and to all that leads to it, are those of the graph. A piece is a program like any other, so its
errors are heard as ever; then it is copied. The node is published at once, with an ``Unfinished`` buffer, so nothing reads what it was
computed from, and the first read after an interrupt goes on with the next piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any, Final
from weakref import ref

import numpy as np

from lazynp.array import core
from lazynp.backends.common.rechecks import Found
from lazynp.graph import build, floating, report
from lazynp.graph import op as o
from lazynp.graph.errors import BITS
from lazynp.graph.node import Node, Shape, site_of
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Canonical
from lazynp.values import forking, pressure
from lazynp.values.buffer import Buffer
from lazynp.values.outside import BeingWrittenError
from lazynp.values.pressure import assigned, references

PIECE: Final = 1 << 20  # bytes that are computed at a time: they stay in a cache until they are copied
SMALL: Final = 16  # what is needed first, all of it, takes at most such a part of what is written
MOST: Final = 4096  # programs that are remembered


# The dtypes for which there are loops that write over their operand.
LOOPS: Final = {o.ADD: "fdilqILQ", o.SUBTRACT: "fdilqILQ", o.MULTIPLY: "fdilqILQ", o.DIVIDE: "fd"}

Array = np.ndarray[Any, Any]
Region = tuple[tuple[int, int], ...]  # start and step on each axis
Piece = tuple[Shape, Shape]  # starts and lengths
Prepare = Callable[[Node, dict[Any, Any], int], None]
Compute = Callable[[Node, dict[Any, Any]], Found | None]


class Candidates(set[Any]):
    """The programs, by key, that write large parts of large arrays."""

    def note(self, canonical: Canonical) -> None:
        """Enter a program that was not seen before, if it is one."""
        if _stores(canonical):
            if len(self) >= MOST:
                self.clear()
            self.add(canonical.key)

    def of(self, canonical: Canonical) -> list[Node]:
        """List the results of a program that may be written over their operands, in the order of recording."""
        stores = _stores(canonical) if canonical.key in self else []
        found = set(stores)
        if assigned:
            pending = {node for look in assigned if (node := look()) is not None and node.buffer is None}
            assigned[:] = [ref(node) for node in pending]
            ends = pending.intersection([*canonical.wanted, *[node.src[0] for node in stores]])
            found |= {node for node in ends if _size(node) >= pressure.ALONE_FROM or is_one_operation(node)}
        return sorted(found, key=lambda node: node.number)


def _stores(canonical: Canonical) -> list[Node]:
    stores = [node for node in canonical.walked if node.op is o.STORE]
    return [node for node in stores if _size(node) >= pressure.ALONE_FROM or (_size(node.src[1]) > PIECE and is_one_operation(node))]


def is_one_operation(node: Node) -> bool:
    """Tell whether a result is one operation on what it is written over, and at most one more operand; or a copy of that."""
    value = node.src[1] if node.op is o.STORE else node
    elementwise = value.op.kind is Kind.ELEMENTWISE
    if elementwise and value.dtype.char not in LOOPS.get(value.op, ""):
        return False
    operands = value.src if elementwise else (value,)
    return all(x.op.kind in (Kind.LEAF, Kind.MOVEMENT) or x.op is o.STORE for x in operands)


def together(told: list[Found]) -> Found:
    """Collect what is to be told of the pieces of a result: each error of an operation once."""
    findings = {(finding.text, finding.site, finding.operation): finding for each in reversed(told) for finding in reversed(each.findings)}
    return Found(list(reversed(findings.values())), told[-1].pause)


def _size(node: Node) -> int:
    return prod(node.shape) * node.dtype.itemsize


class Unfinished(Buffer):
    """A value that is put together in the memory of the operand it replaces, piece by piece."""

    __slots__ = ("_busy", "_compute", "_memory", "_over", "_pieces", "_plans", "_ready", "_region", "_value", "errors")

    def __init__(self, node: Node, value: Node, update: Update, memory: Buffer, compute: Compute, plans: dict[Any, Any]) -> None:
        self._array = self._address = self._lease = self.views = self.ends = self.block = None
        self.shared = False
        self.dtype = node.dtype
        self.shape = node.shape
        self._busy = False
        self._value = value
        self._memory = memory
        self._over = update.over
        self.errors: int | None = None  # of what is written over as a whole: when it is known, it is written
        self._region = update.region
        self._compute = compute
        self._plans = plans
        self._pieces = list(pieces(value.shape, value.dtype.itemsize))
        # The number of the next piece, and what was computed of it; None when all are done.  One name, so that an interrupt finds either
        # the state from before or the one from after; what was computed may be copied twice.
        self._ready: tuple[int, Buffer | None] | None = (0, None)

    def _exported(self) -> np.ndarray[Any, Any]:
        with forking.graph:
            if self._ready is not None:
                self.finish()
            return super()._exported()

    def finish(self) -> list[Found]:
        """Compute and copy the pieces that are missing; returns what is to be told of floating-point errors.

        Who calls this holds the lock of the graph.
        """
        if self._busy:
            raise BeingWrittenError
        found: list[Found] = []
        try:
            self._busy = True
            array, target = self._target()
            if self._over is not None and (self.errors is not None or self._ready == (0, None)):
                operand = self._value if self._over is np.copyto else self._value.src[1]
                found += self._write(target, _shown(operand, self._memory, array))
            while self._ready is not None:
                number, ready = self._ready
                starts, lengths = piece = self._pieces[number]
                if ready is None:
                    node = part(self._value, piece)
                    told = self._compute(node, self._plans)
                    if told is not None:
                        found.append(told)
                    self._ready = number, node.buffer
                    continue
                target[tuple([slice(start, start + n) for start, n in zip(starts, lengths, strict=True)])] = ready.array
                if number + 1 == len(self._pieces):
                    self._complete()
                else:
                    self._ready = number + 1, None
        finally:
            self._busy = False
        del self._value, self._memory, self._over, self._plans
        return found

    def _complete(self) -> None:
        self.block, self._address, self._array = self._memory.block, self._memory._address, self._memory._array
        self._ready = None
        if self.block is None:
            pressure.count(self)

    def _write(self, target: Array, operand: Array) -> list[Found]:
        """Write it as a whole, if there is a loop for that."""
        if self.errors is None and self._over is np.copyto:
            core.copy_into(target, operand)
            self.errors = 0
        elif self.errors is None:
            core.over(self._over, target, operand, self)
        if self.errors is None:
            return []
        self._complete()
        raised = [f"{text} encountered in {self._over.__name__}" for text, kind in floating.KINDS.items() if self.errors & BITS[kind]]
        site = site_of(self._value) if raised else None
        return [Found([floating.Finding(self._value.err, site, text, 0) for text in raised], None)] if raised else []

    def _target(self) -> tuple[Array, Array]:
        """Return all of the memory, and the part that is written."""
        memory = self._memory
        array = memory.block.view(self.dtype, self.shape) if memory.block is not None else memory.array
        if self._region is None:
            return array, array
        return array, array[_slices(self._region, self._value.shape)]


def pieces(shape: Shape, itemsize: int) -> Iterator[Piece]:
    """Cut an array into pieces of at most ``PIECE`` bytes, each of whole rows if these are shorter."""
    if not shape:
        yield (), ()
        return
    axis = next(axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) * itemsize <= PIECE)
    rows = max(1, PIECE // (prod(shape[axis + 1 :]) * itemsize))
    behind = (0,) * (len(shape) - axis - 1)
    for outer in product(*[range(n) for n in shape[:axis]]):
        for start in range(0, shape[axis], rows):
            yield (*outer, start, *behind), (*[1] * axis, min(rows, shape[axis] - start), *shape[axis + 1 :])


def part(value: Node, piece: Piece) -> Node:
    """Return a piece of a value, computed from pieces of what it is computed from element by element."""
    made: dict[Node, Node] = {}
    waiting = [value]
    while waiting:
        node = waiting[-1]
        if node in made:
            waiting.pop()
        elif node.op.kind is not Kind.ELEMENTWISE:
            made[node] = _cut(node, value.shape, piece)
        else:
            missing = [source for source in node.src if source not in made]
            if missing:
                waiting += missing
                continue
            sources = tuple([made[source] for source in node.src])
            shape = sources[0].shape if len(sources) == 1 else np.broadcast_shapes(*[source.shape for source in sources])
            copy = made[node] = Node(node.op, sources, node.arg, node.dtype, shape, node.site)
            copy.err = node.err
    return made[value]


def _cut(node: Node, whole: Shape, piece: Piece) -> Node:
    """Return what a piece of an elementwise result needs of an operand, which may be broadcast."""
    skipped = len(whole) - len(node.shape)
    axes, shape = [], []
    for start, length, n in zip(piece[0][skipped:], piece[1][skipped:], node.shape, strict=True):
        axes.append((start if n > 1 else 0, 1))
        shape.append(length if n > 1 else 1)
    return build.slice_(node, axes, tuple(shape))


# What may be overwritten ------------------------------------------------------------------------------------------------------------


class Update:
    """A result that may be written over one of its operands.

    ``memory`` is the operand's.  ``references``: how often the operand, and everything else through which the result leads to it, is a
    source of these or of the result.  ``needs`` is to be computed before that can be told.  ``over``: the ufunc that is all there is to it,
    ``copyto`` where it is a copy.
    """

    __slots__ = ("memory", "needs", "over", "references", "region")

    def __init__(
        self, memory: Buffer | None, region: Region | None, references: dict[Node, int], needs: list[Node], over: Any = None
    ) -> None:
        self.memory = memory
        self.over = over
        self.region = region
        self.references = references
        self.needs = needs

    def alone(self) -> bool:
        """Tell whether the operand can be reached only through the result."""
        return references(self.references) == list(self.references.values())


def update(node: Node) -> Update | None:
    """Look whether, and how, a result may be written over one of its operands."""
    stored = node.op is o.STORE
    base = node.src[0] if stored else None
    value = node.src[1] if stored else node
    region: Region | None = node.arg if stored else None
    if base is not None and (base.buffer is None or _size(value) <= PIECE):
        return None
    operands: dict[Node, None] = {}  # of the result's shape and dtype, whose elements are read where the result's are written
    elsewhere: set[Node] = set()
    read: dict[Node, None] = {}
    needs: list[Node] = []
    waiting = [value]
    while waiting:
        x = waiting.pop()
        if x in read:
            continue
        read[x] = None
        if x.op.kind is Kind.ELEMENTWISE and x.shape == value.shape:
            waiting += x.src
            continue
        if x.op.kind is Kind.LEAF and x.shape == value.shape:
            operands[x] = None
            continue
        leaf = x
        while leaf.op.kind is Kind.MOVEMENT and leaf.op is not o.PAD:
            if leaf.src[0] is not base or not _apart(leaf, region, value.shape, leaf is x):
                elsewhere.add(leaf.src[0])
            leaf = leaf.src[0]
            read[leaf] = None
        if leaf.op.kind is not Kind.LEAF:
            if SMALL * _size(x) > _size(value):
                return None
            needs.append(x)
        elif leaf is x:
            elsewhere.add(x)
    if needs:
        return Update(None, None, {}, needs)
    if base is None:
        x = leaf = node  # else the latest operand would have a reference more than the others
        same = {x: None for x in operands if x.dtype == node.dtype and x.buffer is not None and x not in elsewhere and _own(x.buffer)}
        readers = Counter(source for reader in read for source in reader.src)
        held = {x: count - readers[x] for x, count in zip(same, references(same), strict=True)}
        base = min(same, key=held.__getitem__, default=None)  # one with no other reference, if there is one
    if base is None or base in elsewhere or (stored and base in operands) or not _own(base.buffer):
        return None
    counts = {base: 0}
    for x in sorted(read, key=lambda x: x.number):
        if x is not node and any(source in counts for source in x.src):
            counts[x] = 0
    for reader in (node, *counts):
        for source in reader.src:
            if source in counts:
                counts[source] += 1
    return Update(base.buffer, region, counts, [], _over(value, base, region))


def _over(value: Node, base: Node, region: Region | None) -> Any:
    """Return the ufunc that makes a value of what it is written over and of an operand in memory, or ``copyto``; else None."""
    if value.op.kind is not Kind.ELEMENTWISE:
        return np.copyto if region is not None and _lies(value) else None
    if value.dtype.char not in LOOPS.get(value.op, ""):
        return None
    first, second = value.src
    if second is base:
        return None
    same = first is base
    if region is not None:
        same = first.op is o.SLICE and first.src == (base,) and first.shape == value.shape and first.arg == region
    return getattr(np, value.op.name) if same and _lies(second) else None


def _lies(x: Node) -> bool:
    """Tell whether the elements of a value are in memory, all of it or a part of what is."""
    while x.op in (o.SLICE, o.PERMUTE, o.EXPAND):
        x = x.src[0]
    return x.op is o.CONST or (x.buffer is not None and x.buffer.place is None)


def _shown(x: Node, memory: Buffer, array: Array) -> Array:
    """Return the elements of such a value where they lie; those of ``memory`` are seen through ``array``.

    A buffer that was asked for its own array is not written over any more.
    """
    if x.op is o.SLICE:
        return _shown(x.src[0], memory, array)[_slices(x.arg, x.shape)]
    if x.op is o.PERMUTE:
        return _shown(x.src[0], memory, array).transpose(x.arg)
    if x.op is o.EXPAND:
        return np.broadcast_to(_shown(x.src[0], memory, array), x.shape)
    if x.op is o.CONST:
        return np.asarray(x.arg)
    assert x.buffer is not None
    return array if x.buffer is memory else x.buffer.array


def _slices(region: Region, shape: Shape) -> tuple[slice, ...]:
    steps = zip(region, shape, strict=True)
    return tuple([slice(start, stop if (stop := start + step * n) >= 0 else None, step) for (start, step), n in steps])


def _apart(x: Node, region: Region | None, shape: Shape, as_it_is: bool) -> bool:
    """Tell whether a part of the operand does not meet the region that is written, or is that very one and read ``as_it_is``, unmoved."""
    if x.op is not o.SLICE or region is None:
        return False
    if as_it_is and x.shape == shape and x.arg == region:
        return True
    for (start, step), n, (first, stride), m in zip(region, shape, x.arg, x.shape, strict=True):
        low, high = sorted((start, start + step * (n - 1)))
        least, most = sorted((first, first + stride * (m - 1)))
        if high < least or most < low:
            return True
    return False


def _own(buffer: Buffer | None) -> bool:
    """Tell whether the memory is this buffer's alone, and the processor's."""
    return buffer is not None and buffer.place is None and buffer.device is None and (buffer.exclusive() or buffer.alone())


def written(node: Node, compute: Compute, prepare: Prepare, idle: Callable[[], bool]) -> list[Found] | None:
    """Compute a result in the memory of an operand, if it may be; returns what is to be told of floating-point errors, or None.

    ``prepare`` makes the plan of a piece that comes a number of times; nothing is compiled while the lock is held.  ``idle`` tells that no
    other run reads any memory.
    """
    found = update(node)
    if found is None or not found.alone():
        return None
    value = node.src[1] if node.op is o.STORE else node
    plans: dict[Any, Any] = {}
    alike: dict[Any, list[Piece]] = {}
    for number, piece in enumerate(pieces(value.shape, value.dtype.itemsize)) if found.over is None else ():
        alike.setdefault((number == 0, piece[1]), []).append(piece)
    for group in alike.values():
        prepare(part(value, group[0]), plans, len(group))
    del value
    with forking.graph:
        if not idle() or node.buffer is not None or not found.alone() or not _own(found.memory):
            return None
        assert found.memory is not None
        if node.op is o.STORE:
            value = node.src[1]
        else:
            value = Node(node.op, node.src, node.arg, node.dtype, node.shape, node.site)
            value.err = node.err
        unfinished = Unfinished(node, value, found, found.memory, compute, plans)
        del value
        node.publish(unfinished)
        found.references.clear()
        report.work.in_place += 1
        return unfinished.finish()
