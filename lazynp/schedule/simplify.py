"""Step 2: declarative rewrites of a program.

In: a ``Program``.  Out: an equal, smaller one.  Promise: every rule keeps each bit of every result (IEEE numbers: no ``x*0``, no
``x - x``); after this pass no entry that anything depends on has a zero-size source, except library calls.  One sweep in order
suffices: a rule sees sources that are simplified already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from lazynp.graph import op as o
from lazynp.graph.node import Shape
from lazynp.graph.op import Kind, Op
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program


class Builder:
    """The program under construction."""

    def __init__(self, scalars: int) -> None:
        self.entries: list[Entry] = []
        self.numbers: dict[Entry, int] = {}
        self.origins: list[int] = []
        self.used: dict[int, int] = {}  # entry -> how many read it
        self.reduces: list[bool] = []  # entry -> whether a reduction is computed for its elements
        self.origin = 0
        self.scalars = scalars
        self.constants: list[Any] = []

    def add(self, entry: Entry) -> int:
        number = self.numbers.get(entry)
        if number is None and entry.op.commutes and entry.dtype.kind in entry.op.commutes:
            number = self.numbers.get(entry._replace(src=entry.src[::-1]))
        if number is None:
            number = self.numbers[entry] = len(self.entries)
            self.entries.append(entry)
            self.origins.append(self.origin)
            through = entry.op.kind is Kind.ELEMENTWISE or entry.op.kind is Kind.MOVEMENT
            self.reduces.append(entry.op is o.REDUCE or (through and any(self.reduces[s] for s in entry.src)))
        return number

    def constant(self, value: Any, dtype: np.dtype[Any]) -> int:
        """An entry for a constant of the structure."""
        self.constants.append(dtype.type(value))
        return self.add(Entry(o.CONST, (), self.scalars + len(self.constants) - 1, dtype, ()))

    def filled(self, source: int, shape: Shape) -> int:
        dtype = self.entries[source].dtype
        return self.add(Entry(o.EXPAND, (source,), None, dtype, shape))


Rule = Callable[[Builder, Entry], int | None]
"""The entry (sources simplified) -> the number of its replacement, or None where the rule does not apply."""


def _empty_reduction(b: Builder, entry: Entry) -> int | None:
    """Reducing nothing gives the identity element."""
    if prod(b.entries[entry.src[0]].shape):
        return None
    return b.filled(b.constant(entry.arg[0].identity(entry.dtype), entry.dtype), entry.shape)


def _trivial_reduction(b: Builder, entry: Entry) -> int | None:
    """Reducing axes of extent 1 only drops them (a float sum still starts from +0.0, which turns -0.0 into 0.0)."""
    source = b.entries[entry.src[0]]
    op, axes = entry.arg
    if any(source.shape[axis] != 1 for axis in axes) or (op is o.ADD and entry.dtype.kind in "fc"):
        return None
    return b.add(Entry(o.RESHAPE, entry.src, None, entry.dtype, entry.shape))


def _float_sum_of_one(b: Builder, entry: Entry) -> int | None:
    source = b.entries[entry.src[0]]
    op, axes = entry.arg
    if any(source.shape[axis] != 1 for axis in axes) or op is not o.ADD:
        return None
    shaped = b.add(Entry(o.RESHAPE, entry.src, None, entry.dtype, entry.shape))
    zero = b.constant(0, entry.dtype)
    return b.add(Entry(o.ADD, (shaped, zero), None, entry.dtype, entry.shape))


def _concat_of_nothing(b: Builder, entry: Entry) -> int | None:
    """Empty parts go; a single part is the result."""
    parts = tuple([s for s in entry.src if prod(b.entries[s].shape)])
    if not parts or len(parts) == len(entry.src):
        return None
    return parts[0] if len(parts) == 1 else b.add(entry._replace(src=parts))


def _pad_of_nothing(b: Builder, entry: Entry) -> int | None:
    if prod(b.entries[entry.src[0]].shape):
        return None
    return b.filled(entry.src[1], entry.shape)


def _store_of_nothing(b: Builder, entry: Entry) -> int | None:
    return None if prod(b.entries[entry.src[1]].shape) else entry.src[0]


def _store_on_a_fill(b: Builder, entry: Entry) -> int | None:
    """Rewrite a store into a part of ``zeros(...)``: it has a border of zeros, and needs no memory of its own.

    Not what a reduction makes: nothing is reduced under the condition that there is no border.
    """
    base, value = b.entries[entry.src[0]], entry.src[1]
    if base.op is not o.EXPAND or b.entries[base.src[0]].op is not o.CONST or b.reduces[value]:
        return None
    if any(step != 1 and n > 1 for (_, step), n in zip(entry.arg, b.entries[value].shape, strict=True)):
        return None
    return b.add(Entry(o.PAD, (value, base.src[0]), tuple([slot for slot, _ in entry.arg]), entry.dtype, entry.shape))


def _where_of_equals(b: Builder, entry: Entry) -> int | None:
    _, yes, no = entry.src
    return yes if yes == no and b.entries[yes].shape == entry.shape else None


def _exact(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """Every value of a is a value of b."""
    if a.kind == "b":
        return True
    if a.kind == b.kind and a.kind in "iufc":
        return b.itemsize >= a.itemsize
    return a.kind == "u" and b.kind == "i" and b.itemsize > a.itemsize


def _cast_chain(b: Builder, entry: Entry) -> int | None:
    """A cast after an exact one starts from the original; a round trip vanishes."""
    inner = b.entries[entry.src[0]]
    if inner.dtype == entry.dtype:
        return entry.src[0]
    if inner.op is not o.CAST:
        return None
    original = b.entries[inner.src[0]]
    if not _exact(original.dtype, inner.dtype) or entry.dtype.kind == "b":
        return None
    if original.dtype == entry.dtype:
        return inner.src[0]
    return b.add(entry._replace(src=inner.src))


def _movement_of_nothing_new(b: Builder, entry: Entry) -> int | None:
    """A reshape, broadcast or transposition that changes nothing."""
    source = b.entries[entry.src[0]]
    if source.shape != entry.shape:
        return None
    if entry.op is o.PERMUTE and entry.arg != tuple(range(len(entry.shape))):
        return None
    return entry.src[0]


def _turned_operands(b: Builder, entry: Entry) -> int | None:
    """A product reads its operands along either axis: what is computed from transposed matrices is stored the way those lie."""
    if entry.arg[0] not in o.PRODUCTS:
        return None
    origin = b.origin
    src = []
    for s in entry.src:
        b.origin = b.origins[s]
        operand = b.entries[s]
        turned = _turned(b, s, cost.TURNED) if operand.op.kind is Kind.ELEMENTWISE and len(operand.shape) == 2 else None
        src.append(s if turned is None else b.add(Entry(o.PERMUTE, (turned,), (1, 0), operand.dtype, operand.shape)))
    b.origin = origin
    return None if tuple(src) == entry.src else b.add(entry._replace(src=tuple(src)))


def _turned(b: Builder, e: int, levels: int) -> int | None:
    """The transpose of a matrix that nothing else reads, where all matrices it is computed from are transposes."""
    entry = b.entries[e]
    if entry.op is o.PERMUTE:
        return entry.src[0] if entry.arg == (1, 0) else None
    if entry.op.kind is not Kind.ELEMENTWISE or b.used.get(e, 2) > 1 or not levels:
        return None
    src, matrices = [], 0
    for s in entry.src:
        source = b.entries[s]
        if source.shape == entry.shape:
            turned = _turned(b, s, levels - 1)
            if turned is None:
                return None
            src.append(turned)
            matrices += 1
        elif source.shape:
            columns, rows = (1, *source.shape)[-2:]
            src.append(b.add(Entry(o.RESHAPE, (s,), None, source.dtype, (rows, columns))))
        else:
            src.append(s)
    return b.add(Entry(entry.op, tuple(src), entry.arg, entry.dtype, entry.shape[::-1])) if matrices else None


RULES: dict[Op, tuple[Rule, ...]] = {
    o.REDUCE: (_empty_reduction, _trivial_reduction, _float_sum_of_one),
    o.CONCAT: (_concat_of_nothing,),
    o.PAD: (_pad_of_nothing,),
    o.STORE: (_store_of_nothing, _store_on_a_fill),
    o.CALL: (_turned_operands,),
    o.WHERE: (_where_of_equals,),
    o.CAST: (_cast_chain,),
    o.RESHAPE: (_movement_of_nothing_new,),
    o.EXPAND: (_movement_of_nothing_new,),
    o.PERMUTE: (_movement_of_nothing_new,),
}


def simplify(program: Program) -> Program:
    scalars = 0
    for entry in program.entries:
        if entry.op is o.CONST:
            scalars = max(scalars, entry.arg + 1)
        elif entry.op is o.IOTA:
            scalars = max(scalars, entry.arg[1] + 1)
    b = Builder(scalars)
    used = Counter([s for entry in program.entries for s in entry.src])
    used.update(program.outputs)
    new: list[int] = []
    for number, entry in enumerate(program.entries):
        b.origin = number
        entry = entry._replace(src=tuple([new[s] for s in entry.src]))
        replacement = None
        for rule in RULES.get(entry.op, ()):
            replacement = rule(b, entry)
            if replacement is not None:
                break
        made = b.add(entry) if replacement is None else replacement
        b.used[made] = b.used.get(made, 0) + used[number]
        new.append(made)
    outputs = tuple([new[e] for e in program.outputs])
    return _without_dead(Program(b.entries, outputs, b.constants, b.origins, program.errors))


def _without_dead(program: Program) -> Program:
    """Only what an output depends on.  A CALL keeps its OUTPUTs apart; both stay if one is needed."""
    alive = [False] * len(program.entries)
    for e in program.outputs:
        alive[e] = True
    for e in range(len(program.entries) - 1, -1, -1):
        if alive[e]:
            for s in program.entries[e].src:
                alive[s] = True
    number: dict[int, int] = {}
    entries: list[Entry] = []
    origins: list[int] = []
    for e, entry in enumerate(program.entries):
        if alive[e]:
            number[e] = len(entries)
            entries.append(entry._replace(src=tuple([number[s] for s in entry.src])))
            origins.append(program.origins[e])
    return Program(entries, tuple([number[e] for e in program.outputs]), program.constants, origins, program.errors)
