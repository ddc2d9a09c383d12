"""Step 1: from wanted nodes to (structure key, parameters).

In: nodes whose values are wanted.  Out: a ``Canonical``: the key (what is computed, with every buffer, scalar and offset replaced
by a parameter number) and the parameter vectors.  Promise: two programs that differ only in buffers, scalar values and slice
offsets have one key, unless the offsets fall into another class (zero, equal to an earlier one, other), or other scalars are equal among
themselves; equal subgraphs have one entry, also where the operands of what commutes changed places, unless they were recorded under
different error states.  This is the hot path of every realize: about one microsecond a node.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.graph import _native
from lazynp.graph import op as o
from lazynp.graph._native import Canonical, without_sizes
from lazynp.graph.errors import possible
from lazynp.graph.node import Shape
from lazynp.graph.op import Kind, Op
from lazynp.schedule import cost
from lazynp.values.records import Record, Row, field

__all__ = ["MOST_BYTES", "ZERO", "Canonical", "Entry", "Program", "canonicalise", "without_sizes"]

ZERO = -1  # the number of the offset parameter that is always 0

# Members of an enumeration are found slowly.
LEAF: Final = Kind.LEAF
ELEMENTWISE: Final = Kind.ELEMENTWISE

MOST_BYTES: Final = 1 << 60  # values that are used twice, again and again, would count without bound
_native.bind(cost, MOST_BYTES)


canonicalise: Final = _native.walk

# What a key says ----------------------------------------------------------------------------------------------------------------


_Raw = tuple[Op, tuple[int, ...], Any]  # operation, sources, argument with the numbers of parameters


def _structure(key: Any) -> tuple[list[_Raw], tuple[int, ...]]:
    """The entries and the outputs that a key stands for."""
    return _of_words(key, ()) if key.__class__ is bytes else _of_words(key[0], key[1:])


def _of_words(text: bytes, objects: tuple[Any, ...]) -> tuple[list[_Raw], tuple[int, ...]]:
    words = memoryview(text).cast("i").tolist()
    count = words[-1]
    end = len(words) - 1 - count
    raw: list[_Raw] = []
    at = 0
    while at < end:
        op = o.ALL[words[at] & 255]
        src: tuple[int, ...] = ()
        arg: Any = None
        if op.kind is LEAF:
            arg = words[at + 1]
            at += 2
            if op is o.IOTA:
                arg = (arg, arg + 1)
        else:
            n = words[at + 1]
            src = tuple(words[at + 2 : at + 2 + n])
            at += 2 + n
            if op is o.SLICE or op is o.STORE:
                axes = words[at]
                arg = tuple([(words[k], _long(words, k + 1)) for k in range(at + 1, at + 1 + 3 * axes, 3)])
                at += 1 + 3 * axes
            elif op is o.PAD:
                arg = tuple(words[at + 1 : at + 1 + words[at]])
                at += 1 + words[at]
            elif op.kind is not ELEMENTWISE:
                arg, at = _argument(words, at, objects)
        if op.kind is not ELEMENTWISE and op is not o.CONST:
            at += 1 + 2 * words[at]  # the shape, which the node has, too
        raw.append((op, src, arg))
    return raw, tuple(words[end : end + count])


def _long(words: list[int], at: int) -> int:
    """A number of two words."""
    return words[at] & 0xFFFFFFFF | words[at + 1] << 32


def _argument(words: list[int], at: int, objects: tuple[Any, ...]) -> tuple[Any, int]:
    """An argument, and where the words behind it begin."""
    match words[at]:
        case 0:
            return None, at + 1
        case 1:
            return _long(words, at + 1), at + 3
        case 2:
            parts = []
            count = words[at + 1]
            at += 2
            for _ in range(count):
                part, at = _argument(words, at, objects)
                parts.append(part)
            return tuple(parts), at
        case 3:
            return o.ALL[words[at + 1]], at + 2
        case 5:  # a number: its bits make the key, its object is beside them
            at += 2 + (words[at + 1] & 255)
            return objects[words[at]], at + 1
        case _:
            return objects[words[at + 1]], at + 2


class Entry(Row):
    """One operation of a ``Program``; ``src`` are entry numbers, all smaller than its own.

    ``arg`` is the node's, except: BUFFER, CONST: the parameter number; IOTA: the numbers of start and step; SLICE, STORE:
    ((number of the start parameter or ZERO, step), ...); PAD: (number of the width before an axis or ZERO, ...).
    """

    op: Op
    src: tuple[int, ...]
    arg: Any
    dtype: np.dtype[Any]
    shape: Shape


class Program(Record):
    """The structure a key stands for, made only when the schedule cache misses."""

    entries: list[Entry]
    outputs: tuple[int, ...]
    constants: list[Any] = field(factory=list)  # scalar parameters that belong to the structure, after the user's
    origins: list[int] = field(factory=list)  # entry -> entry of the canonical form (empty: the same)
    errors: int = 0  # bits of the floating-point errors that are to be reported (``graph/errstate.py``)

    traced = False  # whether its extents are ``Size`` objects

    @classmethod
    def of(cls, canonical: Canonical) -> Program:
        entries: list[Entry] = []
        errors = 0
        raw, outputs = _structure(canonical.key)
        for (op, src, arg), node in zip(raw, canonical.nodes, strict=True):
            entries.append(Entry(op, src, arg, node.dtype, node.shape))
            if node.err.kinds:
                errors |= node.err.kinds & possible(op, arg, node.dtype, entries[src[0]].dtype if src else node.dtype)
        return cls(entries, outputs, errors=errors)
