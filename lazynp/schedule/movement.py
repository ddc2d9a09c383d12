"""What each movement operation means: one index function per operation.

In: the index of an element of the result.  Out: the index of the source's element it shows, and the condition under which there is
one (PAD).  Promise: this file is the complete meaning of views; nothing else in the scheduler knows movement operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Index, Space
from lazynp.graph.node import Shape
from lazynp.schedule.canonicalise import ZERO, Entry
from lazynp.values.records import Row


class Guard(Row):
    """The condition 0 <= index < extent."""

    index: Index  # type: ignore[assignment]  # a field, whatever tuples call so
    extent: int


class Point(Row):
    """One element of a value as a function of loop ranges; ``guards`` say when it is asked for at all."""

    index: tuple[Index, ...]  # type: ignore[assignment]
    guards: frozenset[Guard]


NO_GUARDS: frozenset[Guard] = frozenset()


def guarded(guards: frozenset[Guard], index: Index, extent: int) -> frozenset[Guard] | None:
    """``guards`` and 0 <= index < extent; None if that can never hold."""
    lo, hi = index.bounds()
    if hi < 0 or lo >= extent:
        return None
    if lo >= 0 and hi < extent:
        return guards
    return guards | {Guard(index, extent)}


def source_point(space: Space, entry: Entry, src_shape: Shape, point: Point) -> Point | None:
    """Find where the element ``point`` of a movement entry comes from; None if it is always padding."""
    index, guards = point
    op, arg, shape = entry.op, entry.arg, entry.shape
    if op is o.RESHAPE:
        return Point(reshaped(space, index, shape, src_shape), guards)
    if op is o.PERMUTE:
        source = [ix.ZERO] * len(index)
        for axis, i in zip(arg, index, strict=True):
            source[axis] = i
        return Point(tuple(source), guards)
    if op is o.EXPAND:
        return Point(broadcast(index, src_shape), guards)
    if op is o.SLICE:
        moved = []
        for i, (slot, step), n in zip(index, arg, shape, strict=True):
            start = ix.ZERO if slot == ZERO else ix.of(space.offset(slot))
            moved.append(i * step + start if n > 1 else start)
        return Point(tuple(moved), guards)
    assert op is o.PAD
    moved = []
    for i, slot, extent in zip(index, arg, src_shape, strict=True):
        if slot != ZERO:
            i = i + ix.of(space.offset(slot)) * -1
        allowed = guarded(guards, i, extent)
        if allowed is None:
            return None
        guards = allowed
        moved.append(i)
    return Point(tuple(moved), guards)


def offset_bounds(entries: Sequence[Entry]) -> dict[int, ix.Bounds]:
    """Between which numbers each parameter lies that starts a slice or says how far a pad goes: what each of its uses says is true.

    The first and the last element of a slice are elements of what it is a slice of.
    """
    bounds: dict[int, ix.Bounds] = {}

    def within(slot: int, lo: int, hi: int) -> None:
        before = bounds.get(slot)
        bounds[slot] = (lo, hi) if before is None else (max(before[0], lo), min(before[1], hi))

    for entry in entries:
        if entry.op is o.PAD:
            for slot, n, extent in zip(entry.arg, entry.shape, entries[entry.src[0]].shape, strict=True):
                within(slot, 0, n - extent)
        elif entry.op in (o.SLICE, o.STORE):
            part, whole = (entry.shape, entries[entry.src[0]].shape) if entry.op is o.SLICE else (entries[entry.src[1]].shape, entry.shape)
            for (slot, step), n, extent in zip(entry.arg, part, whole, strict=True):
                span = max(n - 1, 0) * abs(step)
                if not n:
                    within(slot, 0, extent)  # it may start behind the end
                elif step < 0:
                    within(slot, span, extent - 1)
                else:
                    within(slot, 0, extent - 1 - span)
    return bounds


def broadcast(index: Sequence[Index], src_shape: Shape) -> tuple[Index, ...]:
    """The index into a source that broadcasts to the shape ``index`` runs over."""
    tail = index[len(index) - len(src_shape) :]
    return tuple([ix.ZERO if n == 1 else i for i, n in zip(tail, src_shape, strict=True)])


def reshaped(space: Space, index: Sequence[Index], shape: Shape, src_shape: Shape) -> tuple[Index, ...]:
    """Index into ``src_shape`` of the element at ``index`` of its C-order reshape to ``shape``.

    Axes are first matched in groups of equal product, so that what a reshape leaves alone stays free of divisions.
    """
    if not prod(shape):
        return (ix.ZERO,) * len(src_shape)  # no element to ask for
    result: list[Index] = []
    i = j = 0
    while i < len(shape) or j < len(src_shape):
        left, right = shape[i : i + 1], src_shape[j : j + 1]
        a, b = prod(left), prod(right)
        while a != b:
            if a < b:
                left = shape[i : i + len(left) + 1]
                a = prod(left)
            else:
                right = src_shape[j : j + len(right) + 1]
                b = prod(right)
            if len(left) > len(shape) - i or len(right) > len(src_shape) - j:
                break
        group = index[i : i + len(left)]
        if len(left) == 1 and len(right) == 1:
            result.append(group[0])
        else:
            position = ix.flat(group, left)
            parts: list[Index] = []
            outer = next((k for k, n in enumerate(right) if n != 1), 0)
            for k in reversed(range(len(right))):
                n = right[k]
                if k == outer:  # of the outermost axis it is what is left: where it is more, a guard says that nothing is read
                    parts.append(position if n != 1 else ix.ZERO)
                else:
                    parts.append(ix.ZERO if n == 1 else space.remainder(position, n))
                    position = space.quotient(position, n)
            result += reversed(parts)
        i += len(left)
        j += len(right)
    return tuple(result)
