"""What the engine speaks of: layouts, memory, operations, entries, tapes, nodes.

In: NumPy's arrays and ufuncs.  Out: the nouns of ``model``, which hold facts and decide nothing.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tests.tape.model import Engine

DEAR: Final = 10  # estimated work for an element of exp and sin, where others have 1
OWN_BITS: Final = {(np.exp, "__call__"), (np.sin, "__call__"), (np.add, "reduce")}  # where kernels and NumPy's loops differ


class Bounds(NamedTuple):
    """The sizes at which something happens."""

    large: int = 786_432  # elements; what has more is computed by kernels, and a result of more is a node
    entries: int = 126
    leaves: int = 384
    turn: int = 16  # entries from which the place of the first one ends a tape
    held: int = 8 << 20  # bytes that only tapes hold, of the whole process
    work: int = 20_000_000
    block: int = 1024  # rows


class Layout:
    """How elements lie: dtype, shape, strides.  Interned: two arrays are alike if these are one object."""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.dtype, self.shape, self.strides = dtype, shape, strides
        self.size = math.prod(shape)

    def over(self, data: Any, offset: int) -> np.ndarray:
        return np.ndarray(self.shape, self.dtype, data, offset if self.size else 0, self.strides)  # nothing may lie anywhere

    def interval(self, at: int) -> tuple[int, int]:
        """The bytes that elements cover, of which the first lies at an address; steps have a sign."""
        if not self.size:
            return at, at
        reach = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        return at + sum(min(x, 0) for x in reach), at + sum(max(x, 0) for x in reach) + self.dtype.itemsize

    def sample(self, writeable: bool = True) -> np.ndarray:
        """An array of zeros that lies as this does, of which NumPy is asked what it would do."""
        low, high = self.interval(0)
        made = self.over(np.zeros(max(high - low, self.dtype.itemsize), np.uint8), -low)
        made.flags.writeable = writeable
        return made


class Memory:
    """What cells look at: bytes, or what will make them.  It knows which tapes and nodes wait to read it."""

    def __init__(self, size: int, nbytes: int, data: np.ndarray | None = None, owner: object = None, lent: bool = False) -> None:
        self.size, self.nbytes, self.data, self.owner = size, nbytes, data, owner
        self.lent = lent  # somebody outside may look and write, for ever
        self.cells = 0  # that see it
        self.touched: Tape | str | None = None  # by entries that read or write it
        self.written: Tape | str | None = None
        self.node: Node | None = None  # that will make the bytes
        self.readers: weakref.WeakSet[Node] = weakref.WeakSet()


NOWHERE: Final = Memory(0, 0)


class Part(NamedTuple):
    """Elements of memory."""

    memory: Memory
    layout: Layout
    offset: int

    def view(self) -> np.ndarray:
        assert self.memory.data is not None, "read before it was computed"
        return self.layout.over(self.memory.data, self.offset)

    def copy(self) -> Part:
        """The same elements of a copy of the memory, which lies as the memory does."""
        assert self.memory.data is not None
        return self._replace(memory=Memory(self.memory.size, self.memory.nbytes, self.memory.data.copy()))

    def interval(self) -> tuple[int, int]:
        assert self.memory.data is not None
        return self.layout.interval(self.memory.data.__array_interface__["data"][0] + self.offset)


class Op(NamedTuple):
    """A function of NumPy's; without a ufunc a copy, which casts."""

    ufunc: np.ufunc | None = None
    method: str = "__call__"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def own_bits(self) -> bool:
        """Whether kernels compute it with other bits than NumPy's loops."""
        return (self.ufunc, self.method) in OWN_BITS

    def tag(self, value: np.ndarray) -> None:
        """Make the bits those of kernels: one step above NumPy's, so that everybody sees who computed."""
        if value.dtype.kind == "f":
            with np.errstate(all="ignore"):
                np.nextafter(value, value.dtype.type(np.inf), out=value)

    def asked(self, samples: Sequence[Any], out: Any) -> Any:
        """What NumPy makes of operands that lie like these: dtype, shape and strides, or an exception."""
        return getattr(self.ufunc, self.method)(*samples, **({} if out is None else {"out": out.sample()}), **dict(self.options))

    def into(self, target: np.ndarray, sources: Sequence[Any]) -> None:
        if self.ufunc is None:
            target[...] = sources[0]
        else:
            getattr(self.ufunc, self.method)(*sources, out=target, **dict(self.options))


class Place(NamedTuple):
    """Where a program is; held, so that it is known again by identity."""

    code: CodeType
    at: int
    line: int
    globals: dict[str, Any]


@dataclass(eq=False)
class Entry:
    op: Op
    operands: tuple[Any, ...]  # parts and numbers
    target: Part
    makes: bool  # the memory that it writes is its own result
    place: Place | None
    errors: Mapping[str, Any]  # the error state
    callback: Any
    loops: str = "numpy"  # or "kernel"
    filters: Any = None  # the list in force; None: silent for ever
    told: Sequence[str] = ()  # of its numbers, at the call
    spill: np.ndarray | None = None

    @property
    def parts(self) -> list[Part]:
        return [x for x in self.operands if isinstance(x, Part)]

    @property
    def sizes(self) -> list[int]:
        return [x.layout.size for x in [*self.parts, self.target]]

    @property
    def work(self) -> int:
        return max(self.sizes) * (DEAR if self.op.ufunc in (np.exp, np.sin) else 1)


@dataclass(eq=False)
class Tape:
    """Entries of one thread in the program's order, on memory; detached once, never filled again."""

    thread: int
    entries: list[Entry] = field(default_factory=list)
    at: int = 0  # the first that has not run
    needed: list[bool] | None = None  # decided when it is detached
    done: bool = False

    def awaits(self, memory: Memory, write: bool) -> bool:
        """Tell whether an entry that has not run writes the memory or, for one who wants to write, reads it."""
        rest = self.entries[self.at :]
        return any(e.target.memory is memory or (write and any(x.memory is memory for x in e.parts)) for e in rest)

    def decide(self) -> list[bool]:
        """Which entries are needed, backwards: what a cell or somebody outside sees, and what that reads."""
        live: set[Memory] = set()
        needed = []
        for entry in reversed(self.entries):
            memory = entry.target.memory
            needed.append(memory.cells > 0 or memory.lent or memory in live)
            if needed[-1]:
                live |= {memory, *[x.memory for x in entry.parts]}
        return needed[::-1]

    def wanted(self) -> Iterator[Entry]:
        assert self.needed is not None
        return (entry for entry, needed in zip(self.entries, self.needed, strict=True) if needed)

    def leaves(self) -> list[Part]:
        """The memory that was there before the tape, once for each part of it that is read."""
        made = {e.target.memory for e in self.entries if e.makes}
        return [x for e in self.entries[self.at :] for x in [*e.parts, e.target] if x.memory not in made]


@dataclass(eq=False)
class Node:
    """A large value that waits for its reader.  Its memory holds it, and it holds what it reads."""

    engine: Engine
    entry: Entry  # whose target is its memory's, by a weak reference
    memory: weakref.ref[Memory]

    def compute(self) -> None:
        memory = self.memory()
        if memory is not None and memory.node is self:
            self.engine.perform(replace(self.entry, target=self.entry.target._replace(memory=memory)))
            memory.node = None


@dataclass(eq=False)
class Told:
    """An operation's warnings, which wait for the list of filters under which it was recorded."""

    filters: Any
    texts: list[str]
    place: Place | None


class Log(list[str]):
    """The texts of warnings that NumPy would give, as it writes them of a state "log"; without those that were told before."""

    def __init__(self, before: Sequence[str] = ()) -> None:
        self.before = before
        self.heard: Callable[[str], None] = self.append

    def write(self, line: str) -> None:
        text = line.removeprefix("Warning: ").rstrip()
        if text not in self.before:
            self.heard(text)


class Bytes:
    """The bytes of an array that somebody else made."""

    def __init__(self, x: np.ndarray, low: int, high: int) -> None:
        address, self.x = x.__array_interface__["data"][0] + low, x
        self.__array_interface__ = {"version": 3, "data": (address, not x.flags.writeable), "shape": (high - low,), "typestr": "|u1"}
