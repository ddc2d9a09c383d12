"""Step 1: from wanted nodes to (structure key, parameters).

In: nodes whose values are wanted.  Out: a ``Canonical``: the key (what is computed, with every buffer, scalar and offset replaced
by a parameter number) and the parameter vectors.  Promise: two programs that differ only in buffers, scalar values and slice
offsets have one key, unless the offsets fall into another class (zero, equal to an earlier one, other), or other scalars are equal among
themselves; equal subgraphs have one entry, also where the operands of what commutes changed places, unless they were recorded under
different error states.  This is the hot path of every realize: about one microsecond a node.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from operator import attrgetter
from struct import Struct
from typing import Any, Final

import numpy as np

from lazynp.graph import native
from lazynp.graph import op as o
from lazynp.graph.errstate import DEFAULT, possible
from lazynp.graph.node import Node, Shape
from lazynp.graph.op import CALLS, PRODUCTS, Kind, Op
from lazynp.schedule import cost
from lazynp.values import config
from lazynp.values.buffer import Buffer
from lazynp.values.outside import BeingWrittenError
from lazynp.values.records import Record, Row, field

ZERO = -1  # the number of the offset parameter that is always 0

# Members of an enumeration are found slowly.
LEAF: Final = Kind.LEAF
MOVEMENT: Final = Kind.MOVEMENT
ELEMENTWISE: Final = Kind.ELEMENTWISE
REDUCTION: Final = Kind.REDUCTION

_by_number = attrgetter("number")
_double = Struct("d").pack


class Canonical:
    """The canonical form of what one realize asks for.

    ``key`` names the structure; ``buffers``, ``integers`` and ``scalars`` are the parameters in order; ``nodes[i]`` is the earliest
    node of entry i (for error messages).  ``wanted`` are the nodes whose values the program gives, ``walked`` all pending ones; ``moves``
    tells whether there is a COPY among these.
    """

    __slots__ = ("buffers", "integers", "key", "moves", "nodes", "scalars", "walked", "wanted")

    def __init__(
        self,
        key: Any,
        buffers: list[Buffer],
        integers: list[int],
        scalars: list[Any],
        nodes: list[Node],
        wanted: list[Node],
        walked: list[Node],
        moves: bool,
    ) -> None:
        self.key = key
        self.buffers = buffers
        self.integers = integers
        self.scalars = scalars
        self.nodes = nodes
        self.wanted = wanted
        self.walked = walked
        self.moves = moves

    def forget(self) -> None:
        """Let go of every node: the program ran."""
        self.nodes = self.wanted = self.walked = []


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
                raise node.error or BeingWrittenError
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


def canonicalise_in_python(nodes_wanted: Sequence[Node]) -> Canonical:
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
        if kind is LEAF:
            continue
        if not node.computed:
            for source in node.src:
                if source.computed:
                    while source.op.kind is MOVEMENT:
                        source = source.src[0]
                    if source.computed and source.op.kind is not LEAF and source not in kept:
                        kept.add(source)
                        wanted.append(source)
        entry: tuple[Any, ...]
        if kind is ELEMENTWISE:
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
            entry = (op, node.dtype, node.arg, node.shape, *[index[s] for s in node.src])
            if op in CALLS or kind is REDUCTION:
                calls = True
            if node.err is not DEFAULT and node.err.kinds != DEFAULT.kinds and kind is not MOVEMENT:
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
    return Canonical(key, index.buffers, list(slots), index.scalars, nodes, wanted, walked, moves)


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
    later: set[Node] = set()
    found: list[Node] = []
    given: set[int] = set()  # ids: a set of nodes would be a reference more
    for k in range(len(walked) - 1, -1, -1):
        node = walked[k]
        if (node.op is o.CALL and node.arg[0] in PRODUCTS) or (id(node) in given and node.op.kind is MOVEMENT):
            given.update(map(id, node.src))  # readers come before what they read
        if node in kept or node.op.kind is LEAF:
            continue  # it exists afterwards, and nothing has to be computed for it
        own = readers.get(node, 0)
        held = count(node) > OWN + (own > 0) + own + (firsts[index[node]] is node)
        if node in later or held:
            stored = held and (node.op is o.STORE or (id(node) in given and node.op.kind is not MOVEMENT))
            if held and node.op.kind is not MOVEMENT and 0 < config.at_hand >= prod(node.shape):
                found.append(node)
                continue
            size = prod(node.shape) * node.dtype.itemsize
            if node.op in CALLS or stored or below[node] - size > (0 if size <= cost.KEPT_SMALL else cost.KEPT_BYTES):
                found.append(node)
            elif below[node]:
                later.update(node.src)
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
            if node.op.kind is REDUCTION:
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


MOST_BYTES: Final = 1 << 60  # values that are used twice, again and again, would count without bound
OWN: Final = _own_references()


canonicalise: Callable[[Sequence[Node]], Canonical] = canonicalise_in_python
if native.native:
    native.bind(canonicalise_in_python, cost, MOST_BYTES)
    canonicalise = native.walk

# The two forms of a key: as tuples, and as the native walk's string of words -----------------------------------------------------

_Raw = tuple[Op, tuple[int, ...], Any]  # operation, sources, argument with the numbers of parameters


def _structure(key: Any) -> tuple[list[_Raw], tuple[int, ...]]:
    """The entries and the outputs that a key stands for."""
    if key.__class__ is bytes:
        return _of_words(key, ())
    return _of_words(key[0], key[1:]) if key[0].__class__ is bytes else _of_tuples(key)


def _of_tuples(key: Any) -> tuple[list[_Raw], tuple[int, ...]]:
    raw: list[_Raw] = []
    for entry in key[0]:
        op = entry[0]
        if entry[-1].__class__ is int and entry[-1] < 0:
            entry = entry[:-1]
        if op.kind is ELEMENTWISE:
            raw.append((op, entry[2:], None))
        elif op is o.BUFFER or op is o.CONST:
            raw.append((op, (), entry[2]))
        elif op is o.IOTA:
            raw.append((op, (), (entry[2], entry[2] + 1)))
        elif op is o.SLICE or op is o.STORE or op is o.PAD:
            raw.append((op, entry[3:], entry[1]))
        else:
            raw.append((op, entry[4:], entry[2]))
    return raw, key[1]


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
        case _:
            return objects[words[at + 1]], at + 2


def without_sizes(key: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a key with numbers in place of the extents from 2 on, and the extents by their numbers; none where there are too many."""
    if key.__class__ is bytes or key[0].__class__ is bytes:
        structure, extents = native.without_sizes(key)
        return structure, extents or ()
    numbers: dict[int, int] = {}
    entries = []
    for entry in key[0]:
        op = entry[0]
        if op.kind is not ELEMENTWISE and op is not o.CONST:
            at = 2 if op is o.SLICE or op is o.STORE or op is o.PAD else 3
            shape = tuple([n if n < 2 else -numbers.setdefault(n, len(numbers)) - 1 for n in entry[at]])
            entry = (*entry[:at], shape, *entry[at + 1 :])
        entries.append(entry)
    return (tuple(entries), key[1]), tuple(numbers)


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
    errors: int = 0  # bits of the floating-point errors that somebody wants to hear of (``graph/errstate.py``)

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
