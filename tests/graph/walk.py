"""The walk from wanted nodes to a structure key as a model in Python, which the native one is tested against.

In: nodes whose values are wanted.  Out: a canonical form, whose key is made of tuples.  Promise: two programs have one key here if and only
if they have one natively.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from lazynp.graph import op as o
from lazynp.graph.errstate import DEFAULT
from lazynp.graph.node import Node
from lazynp.graph.op import CALLS, PRODUCTS, Kind, Op
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import MOST_BYTES, ZERO
from lazynp.values import config
from lazynp.values.buffer import Buffer

_by_number = attrgetter("number")
_double = Struct("d").pack
Raw = tuple[Op, tuple[int, ...], Any]  # operation, sources, argument with the numbers of parameters


class Form(NamedTuple):
    """See ``lazynp.graph._native.Canonical``."""

    key: Any
    buffers: list[Buffer]
    integers: list[int]
    scalars: list[Any]
    nodes: list[Node]
    wanted: list[Node]
    walked: list[Node]
    moves: bool


class _Numbers(dict[Node, int]):
    """Entry numbers of nodes.  A leaf becomes an entry when something first reads it.

    So leaves are in order of use, whenever they were made: a loop that replaces one of its inputs at every turn keeps its key.
    """

    __slots__ = ("buffers", "entries", "literals", "nodes", "scalars")

    def __init__(self) -> None:
        self.entries: dict[tuple[Any, ...], int] = {}
        self.literals: dict[tuple[Any, ...], int] = {}  # constants that have the same bits are one entry
        self.nodes: list[Node] = []
        self.buffers: list[Buffer] = []
        self.scalars: list[Any] = []

    def __missing__(self, node: Node) -> int:
        op = node.op
        entry: tuple[Any, ...]
        if op is o.BUFFER:
            entry = (op, node.dtype, len(self.buffers), node.shape)
            if node.buffer is None:
                raise node.error or RuntimeError("being written")
            self.buffers.append(node.buffer)
        elif op is o.CONST:
            value, dtype = node.arg, node.dtype
            # By their bits: 0.0 equals -0.0, and NaN nothing.
            kind = dtype.kind
            bits = _double(value) if kind == "f" else value.tobytes() if kind == "c" else value
            literal = (dtype, bits)
            if literal in self.literals:
                number = self[node] = self.literals[literal]
                return number
            self.literals[literal] = len(self.nodes)
            entry = (op, dtype, len(self.scalars))
            self.scalars.append(value)
        else:
            assert op is o.IOTA, op
            entry = (op, node.dtype, len(self.scalars), node.shape)
            self.scalars += node.arg
        number = self[node] = self.entries[entry] = len(self.nodes)
        self.nodes.append(node)
        return number


class _Number(NamedTuple):
    """A number of an argument: what is equal without being the same (zeros of both signs, ``1`` and ``1.0``) is told apart."""

    kind: type
    bits: bytes
    value: Any


def _distinct(arg: Any) -> Any:
    if type(arg) is tuple:
        return tuple([_distinct(item) for item in arg])
    return _Number(type(arg), np.asarray(arg).tobytes(), arg) if isinstance(arg, (float, complex, bool, np.generic)) else arg


def _plain(arg: Any) -> Any:
    if type(arg) is tuple:
        return tuple([_plain(item) for item in arg])
    return arg.value if isinstance(arg, _Number) else arg


def canonicalise(nodes_wanted: Sequence[Node]) -> Form:
    """The canonical form of the program that computes ``nodes_wanted``; natively that is ``graph/canonical.h``.

    Three kinds of values on the way are wanted as well, because computing them a second time would cost more than keeping them: results
    of library calls and of ``contiguous`` that can be asked for afterwards, themselves or through what is computed from them (all others
    die at their last reader), arrays that were written through a view or are given to a product, which are in memory anyway, if somebody
    holds them, and values that an earlier program computed without keeping and that something new is computed from.
    """
    wanted = list(nodes_wanted)
    pending = wanted[:]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += node.src

    index = _Numbers()
    entries = index.entries
    nodes = index.nodes
    slots: dict[int, int] = {}  # offset -> its parameter
    swapped: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # an entry -> the one with its operands in the other order, the larger first
    kept = set(wanted)
    calls = False
    moves = False
    walked = sorted(seen, key=_by_number)
    for node in walked:
        op = node.op
        kind = op.kind
        if kind is Kind.LEAF:
            continue
        if not node.computed:
            for source in node.src:
                if source.computed:
                    while source.op.kind is Kind.MOVEMENT:
                        source = source.src[0]
                    if source.computed and source.op.kind is not Kind.LEAF and source not in kept:
                        kept.add(source)
                        wanted.append(source)
        entry: tuple[Any, ...]
        if kind is Kind.ELEMENTWISE:
            src = node.src
            if len(src) == 2:
                first, second = index[src[0]], index[src[1]]
                entry = (op, node.dtype, first, second)
                # Operands stay as they were first recorded: so the turns of a loop look alike, however its values are numbered.
                if first > second:
                    if node.dtype.kind in op.commutes:
                        twin = (op, node.dtype, second, first)
                        if twin in entries:
                            entry = twin
                        else:
                            swapped[twin] = entry
                elif swapped and entry in swapped:
                    entry = swapped[entry]
            elif len(src) == 1:
                entry = (op, node.dtype, index[src[0]])
            else:
                entry = (op, node.dtype, *[index[s] for s in src])
            if node.err is not DEFAULT and node.err.kinds != DEFAULT.kinds:
                entry = (*entry, ~node.err.kinds)
        elif op is o.SLICE or op is o.STORE:
            region = []
            for start, step in node.arg:
                if start == 0:
                    slot = ZERO
                else:
                    slot = slots.setdefault(start, len(slots))
                region.append((slot, step))
            entry = (op, tuple(region), node.shape, *[index[s] for s in node.src])
            calls = calls or op is o.STORE
        elif op is o.PAD:
            starts = tuple([slots.setdefault(start, len(slots)) if start else ZERO for start in node.arg])
            entry = (op, starts, node.shape, *[index[s] for s in node.src])
        elif op is o.COPY:
            index[node] = index[node.src[0]]  # one program runs on one device
            moves = True
            continue
        else:
            entry = (op, node.dtype, _distinct(node.arg), node.shape, *[index[s] for s in node.src])
            if op in CALLS or kind is Kind.REDUCTION:
                calls = True
            if node.err is not DEFAULT and node.err.kinds != DEFAULT.kinds and kind is not Kind.MOVEMENT:
                entry = (*entry, ~node.err.kinds)
        number = entries.get(entry)
        if number is None:
            number = entries[entry] = len(nodes)
            nodes.append(node)
        index[node] = number
    if walked and (calls or config.at_hand):
        source = node  # of the names here, one that nobody counts
        wanted += _asked_for_later(walked, index, kept)
    outputs = tuple([index[node] for node in wanted])  # first: a wanted leaf that nothing reads becomes an entry here
    key = (tuple(entries), outputs)
    return Form(key, index.buffers, list(slots), index.scalars, nodes, wanted, walked, moves)


def _asked_for_later(walked: list[Node], index: _Numbers, kept: set[Node]) -> list[Node]:
    """List what is dear and somebody can still ask for when the program is over: an array holds it, or what is made of it.

    Dear are the results of calls, what was written through a view or is given to a product (in memory anyway), small results of what is
    reduced, and what will be at hand.  What is made of them is kept in their place where it is much smaller than they are together.

    Who has more references than the program accounts for is held by somebody else.  A reference too many means only that a value is kept
    for nothing, one too few that a call may run twice.
    """
    readers = _readers(walked)
    below = _bytes_below(walked)
    firsts = index.nodes
    count = sys.getrefcount
    found: list[Node] = []
    given: set[int] = set()  # ids: a set of nodes would be a reference more
    later: set[int] = set()
    for k in range(len(walked) - 1, -1, -1):
        node = walked[k]
        if (node.op is o.CALL and node.arg[0] in PRODUCTS) or (id(node) in given and node.op.kind is Kind.MOVEMENT):
            given.update(map(id, node.src))  # readers come before what they read
        if node in kept or node.op.kind is Kind.LEAF:
            continue  # it exists afterwards, and nothing has to be computed for it
        own = readers.get(node, 0)
        held = count(node) > OWN + (own > 0) + own + (firsts[index[node]] is node)
        if id(node) in later or held:
            stored = held and (node.op is o.STORE or (id(node) in given and node.op.kind is not Kind.MOVEMENT))
            if held and node.op.kind is not Kind.MOVEMENT and 0 < config.at_hand >= prod(node.shape):
                found.append(node)
                continue
            size = prod(node.shape) * node.dtype.itemsize
            if node.op in CALLS or stored or below[node] - size > (0 if size <= cost.KEPT_SMALL else cost.KEPT_BYTES):
                found.append(node)
            elif below[node]:
                later.update(map(id, node.src))
    found.reverse()
    return found


def _readers(walked: list[Node]) -> dict[Node, int]:
    """Count how often each node is a source."""
    found: dict[Node, int] = {}
    for node in walked:
        for source in node.src:
            found[source] = found.get(source, 0) + 1
    return found


def _bytes_below(walked: list[Node]) -> dict[Node, int]:
    """Estimate the bytes that it takes to compute each node again: of the results of calls, and of what is reduced."""
    found: dict[Node, int] = {}
    for node in walked:
        if node.op in CALLS:
            found[node] = prod(node.shape) * node.dtype.itemsize
        else:
            total = min(sum([found[source] for source in set(node.src)]), MOST_BYTES)
            if node.op.kind is Kind.REDUCTION:
                reduced = node.src[0]
                total = max(total, min(prod(reduced.shape) * reduced.dtype.itemsize, MOST_BYTES))
            found[node] = total
    return found


def _own_references() -> int:
    """Count the references that ``_asked_for_later`` sees of a node that nothing else knows: those of three containers and of itself."""
    walked = [Node(o.CONST, (), 0, np.dtype(int), ())]
    containers = set(walked), dict.fromkeys(walked), dict.fromkeys(walked)
    node = walked[0]
    return sys.getrefcount(node) if all(containers) else 0


OWN: Final = _own_references()


def structure(key: Any) -> tuple[list[Raw], tuple[int, ...]]:
    """Return the entries and the outputs that a key stands for."""
    raw: list[Raw] = []
    for entry in key[0]:
        op = entry[0]
        if entry[-1].__class__ is int and entry[-1] < 0:
            entry = entry[:-1]
        if op.kind is Kind.ELEMENTWISE:
            raw.append((op, entry[2:], None))
        elif op is o.BUFFER or op is o.CONST:
            raw.append((op, (), entry[2]))
        elif op is o.IOTA:
            raw.append((op, (), (entry[2], entry[2] + 1)))
        elif op is o.SLICE or op is o.STORE or op is o.PAD:
            raw.append((op, entry[3:], entry[1]))
        else:
            raw.append((op, entry[4:], _plain(entry[2])))
    return raw, key[1]
