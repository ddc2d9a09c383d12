"""Elementwise operations of the NumPy tier that run together, in one pass over what they read.

In: the entries of a program, one after the other.  Out: lines of the tier's function.  Promise: what is between the operations lies in the
first-level cache and not in memory, several threads share the work, and nothing is compiled; the bits are those of the operations one by
one, which also run where an error is raised that is to be reported.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.backends.numpy import compiled
from lazynp.backends.numpy.operations import UFUNCS, size
from lazynp.graph import op as o
from lazynp.graph.errors import UNDER
from lazynp.graph.op import Kind, Op
from lazynp.schedule import claims
from lazynp.schedule.canonicalise import Entry

if TYPE_CHECKING:
    from lazynp.backends.numpy.source import Writer

DType = np.dtype[Any]
Step = tuple[Any, int, int, int, tuple[tuple[int, int], ...]]

LEAST: Final = 1 << 15  # elements, of fewer a call of NumPy's costs nothing beside the operation's memory
MOST: Final = 48  # operations
VIEWED: Final = claims.VIEWS | {o.BUFFER, o.CONST}  # which nothing is computed for
VIEWS: Final = claims.VIEWS - {o.RESHAPE}  # of which some do not lie in C's order
PLANS: Final = 1024  # that are kept
AXES: Final = 2  # of those that are read all the same
PARTS: Final = 4  # of one vectorised addition that goes through memory: what one in a pass costs
ARRAY, NUMBER, STEP = range(3)
_BOOL: Final = np.dtype(bool)


@functools.cache
def step(op: Op, dtype: DType, source: DType) -> tuple[Any, int, int, int] | None:
    """Return an operation as the core knows it, without its operands; None where it is none that may be in a pass."""
    if dtype.char in "eg" or source.char in "eg" or dtype.kind not in "biuf" or source.kind not in "biuf":
        return None
    kernels = source.kind in op.rounds
    found: tuple[Any, int, int, int]
    if op is o.CAST:
        found = (None, 0, source.num, dtype.num)
    elif op is o.WHERE:
        found = (np.where, 0, source.num, dtype.num)
    elif op not in UFUNCS or (kernels and not compiled.available(op, source.char)):
        return None
    else:
        found = (UFUNCS[op], int(kernels), source.num, dtype.num)
    operands = tuple([(ARRAY, k) for k in range(op.arity or 1)])
    return found if core.together(((*found, operands),), (0,)) is not None else None


def operands_dtype(entries: Sequence[Entry], entry: Entry) -> DType:
    """Return the dtype that an operation computes in, which is that of its operands but for a mask."""
    return entries[entry.src[entry.op is o.WHERE]].dtype


def price(entries: Sequence[Entry], entry: Entry) -> int:
    """Return what an element of an elementwise operation costs in this tier, in ``PARTS`` of an addition."""
    source = operands_dtype(entries, entry)
    alike = all(entries[s].shape in (entry.shape, ()) and (len(entry.shape) <= AXES or entries[s].op not in VIEWS) for s in entry.src)
    if alike and size(entry.shape) >= LEAST and step(entry.op, entry.dtype, source) is not None:
        return PARTS if source.kind in entry.op.rounds else entry.op.cost
    return PARTS * max(entry.op.cost, 1)


@functools.lru_cache(PLANS)
def plan(steps: tuple[Step, ...], outs: tuple[int, ...]) -> Any:
    """Return what computes the steps; the same for the same ones, so that functions with it are alike."""
    return core.together(steps, outs)


class Together:
    """Operations that wait for those that may join them; ``readers`` are the entries that read each entry."""

    def __init__(self, readers: list[list[int]], outputs: frozenset[int]) -> None:
        self.readers = readers
        self.outputs = outputs
        self._forget()

    def _forget(self) -> None:
        self.members: dict[int, int] = {}  # entry -> step
        self.steps: list[Step] = []
        self.arrays: dict[int, int] = {}
        self.numbers: dict[int, int] = {}

    def takes(self, w: Writer, number: int, entry: Entry) -> bool:
        """Take an entry, if it is one for this pass or for a new one."""
        if entry.op.kind is not Kind.ELEMENTWISE or not entry.shape or not entry.src or not size(entry.shape) >= LEAST:
            return False
        entries = w.program.entries
        source = operands_dtype(entries, entry)
        known = step(entry.op, entry.dtype, source)
        if known is None or (known[1] and w.program.errors & UNDER):
            return False
        masks = entry.src[: entry.op is o.WHERE]
        if not all(self._reads(w, s, entry, _BOOL if s in masks else source) for s in entry.src):
            return False
        if self.members and (len(self.members) == MOST or entries[next(iter(self.members))].shape != entry.shape):
            self.end(w)
        operands = []
        for s in entry.src:
            if s in self.members:
                operands.append((STEP, self.members[s]))
            else:
                kind, places = (ARRAY, self.arrays) if entries[s].shape else (NUMBER, self.numbers)
                operands.append((kind, places.setdefault(s, len(places))))
        self.members[number] = len(self.steps)
        self.steps.append((*known, tuple(operands)))
        return True

    def _reads(self, w: Writer, s: int, entry: Entry, dtype: DType) -> bool:
        source = w.program.entries[s]
        if source.dtype != dtype:
            return False
        if not source.shape:
            return source.op is o.CONST
        return source.shape == entry.shape and (s in self.members or w.memory[s].c_order or len(entry.shape) <= AXES)

    def stays(self, w: Writer, number: int, entry: Entry) -> bool:
        """Tell whether the line of an entry may stand before what waits here."""
        if entry.op not in VIEWED:
            return False
        read = self.arrays.keys() | self.numbers.keys()
        return not any(s in self.members or (s in read and w.last[s] == number) for s in entry.src)

    def end(self, w: Writer) -> None:
        """Write the lines of what has come together."""
        members, entries = list(self.members), w.program.entries
        if not members:
            return
        arrays, numbers, steps = list(self.arrays), list(self.numbers), tuple(self.steps)
        inside = set(members)
        outs = [m for m in members if m in self.outputs or not inside.issuperset(self.readers[m])]
        self._forget()
        made = plan(steps, tuple([members.index(m) for m in outs])) if len(members) > 1 and arrays and outs else None
        begin = ""
        if made is not None:
            last = members[-1]
            operands = ", ".join([f"({''.join([f'{w.names[s]}, ' for s in group])})" for group in (arrays, numbers)])
            w.line(f"g{last} = pass_over({w.constant(made)}, {operands}, {w.constant(w.program.errors)}, room)", last)
            w.line(f"if g{last} is None:", None)
            begin = "    "
        for m in members:
            entry = entries[m]
            text = w.ours.expression(w, m, entry) if w.ours is not None else None
            if text is None:
                names = ", ".join([w.names[s] for s in entry.src])
                over = w.over(m, entry) if made is None and entry.op in UFUNCS else None
                if over is not None:
                    names += f", {w.written_to(entry, over)}"
                text = f"{names}.astype({w.constant(entry.dtype)})" if entry.op is o.CAST else f"{entry.op.name}({names})", w.memory[m]
            w.line(f"{begin}t{m} = {text[0]}", m)
        hidden = [f"t{m}" for m in members if m not in outs]
        if hidden:
            w.line(f"{begin}del {', '.join(hidden)}", members[-1])
        if made is not None:
            w.line("else:", None)
            w.line(f"    ({''.join([f't{m}, ' for m in outs])}) = g{members[-1]}", members[-1])
            w.line(f"del g{members[-1]}", members[-1])
        dead = {w.names[s] for s in arrays if w.last[s] in inside and entries[s].op is not o.BUFFER}
        if dead:
            w.line(f"del {', '.join(sorted(dead))}", members[-1])
