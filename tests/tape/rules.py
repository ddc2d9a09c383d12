"""What the engine can decide wrongly, one method a rule, in the order of the holes that they close.

In: memories, entries, tapes of ``model``.  Out: decisions.  Promise: each is needed: ``test_model`` replaces one after the other and shows
the program that goes wrong.
"""

from __future__ import annotations

import _warnings
import re
import sys
import warnings
import weakref
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tests.tape.notions import Bounds, Entry, Layout, Memory, Node, Part, Place, Tape, Told

if TYPE_CHECKING:
    from tests.tape.model import Engine

LATER: Final = "later"
NEVER: Final = "never told"
AT_CALL: Final = "at the call"
SEVERAL: Final = "several tapes"
KINDS: Final = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}  # in NumPy's order


def references(x: Any) -> int:
    return sys.getrefcount(x)


TEMPORARY: Final = references(np.empty(0))  # what a function counts of an argument that only the call holds


@dataclass(frozen=True)
class Held:
    """An object that is compared by identity, and lives as long as it may be."""

    x: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.x is other.x


def in_force() -> Any:
    """The list of filters in force, of the context where Python has one for each."""
    return getattr(warnings, "_get_filters", lambda: warnings.filters)()


class Rules:
    """What can be decided wrongly."""

    # 1. Promotion: who computes is a matter of an operation's own sizes, and a node's operands stay what they were.

    def loops(self, entry: Entry, large: int) -> str:
        return "kernel" if max(entry.sizes) > large else "numpy"

    def is_node(self, entry: Entry, large: int) -> bool:
        return entry.makes and entry.target.layout.size > large

    def leaf(self, part: Part, large: int) -> Part:
        """What a node reads: a copy of small memory, large memory itself."""
        return part if part.memory.size > large else part.copy()

    def need(self, part: Part) -> np.ndarray:
        """What an entry reads; what is a node is computed here, in the middle of the tape if it is a small entry or a write that asks."""
        if part.memory.node is not None:
            part.memory.node.compute()
        return part.view()

    # 2. Who waits to read memory.

    def mark(self, before: Tape | str | None, tape: Tape) -> Tape | str:
        if before is None or before is tape or (not isinstance(before, str) and before.done):
            return tape
        return SEVERAL

    def pending(self, tape: Tape) -> bool:
        """A tape that runs is pending like one that waits."""
        return not tape.done

    def readers(self, memory: Memory) -> list[Node]:
        return list(memory.readers)

    # 3, 4, 8. What the outside sees.

    def ours(self, x: np.ndarray, count: int) -> bool:
        alone = type(x) is np.ndarray and x.base is None and x.flags.owndata and count == TEMPORARY and not weakref.getweakrefcount(x)
        return alone and x.flags.aligned and x.flags.writeable and x.dtype.isnative and sys.version_info < (3, 14)

    def is_lent(self, memory: Memory) -> bool:
        return memory.lent

    def snapshot(self, part: Part) -> Part:
        """What a large entry reads of lent memory."""
        return part.copy()

    # 5, 6, 7. Filters of warnings.

    def may_tell(self, told: Told) -> bool:
        return told.filters is in_force()

    def identity(self, filters: Any) -> Any:
        """What a list that was read is known by: held, so that no other one lies at its address."""
        return Held(filters), Held(filters[0] if filters else None), len(filters)

    def own_list(self) -> Any:
        return _warnings.filters

    def says(self, filters: Any) -> str:
        """What a list says of floating-point errors; a pattern depends, and what depends, or is in a block, is seen at the call."""
        action = warnings.defaultaction  # type: ignore[attr-defined]
        for said, message, category, module, line in filters:
            if issubclass(RuntimeWarning, category) and self.may_match(message):
                if message is not None or module is not None or line:
                    return AT_CALL
                action = said
                break
        if action == "ignore":
            return NEVER
        return AT_CALL if action == "error" else self.in_block(filters)

    def may_match(self, message: Any) -> bool:
        """Tell whether a filter's text may be that of a floating-point error: compare what it begins with."""
        pattern = message if isinstance(message, str | None) else message.pattern
        head = "" if pattern is None or "|" in pattern else re.split(r"[\\.^$*+?{}\[\]|()]", pattern)[0].lower()
        return any(kind.startswith(head) or head.startswith(kind) for kind in KINDS)

    def in_block(self, filters: Any) -> str:
        return LATER if filters is self.own_list() else AT_CALL

    def error_state(self, entry: Entry) -> tuple[Mapping[str, Any], Any]:
        return entry.errors, entry.callback

    # 9, 10, 11. Bounds, failures, signals.

    def held(self, engine: Engine) -> int:
        """Bytes that only tapes hold, of all threads, however often a tape reads them."""
        leaves = {x.memory for tape in engine.tapes for x in tape.leaves()}
        return sum(memory.nbytes for memory in leaves if memory.data is not None and not memory.cells and not memory.lent)

    def take(self, engine: Engine, tape: Tape) -> None:
        """Take all memory of a tape before its first entry runs; what cannot be had is taken entry by entry."""
        taken = []
        try:
            for entry in tape.wanted():
                if entry.makes and not self.is_node(entry, engine.bounds.large) and entry.target.memory.data is None:
                    entry.target.memory.data = engine.allocate(entry.target.memory.nbytes)
                    taken.append(entry.target.memory)
                elif not entry.makes and entry.op.ufunc is not None:
                    entry.spill = engine.allocate(entry.target.layout.size * entry.target.layout.dtype.itemsize)
        except MemoryError:
            for memory in taken:
                memory.data = None

    def resume_at(self, tape: Tape) -> int:
        """The entry at which a tape goes on that failed, or was interrupted: written entries never run again."""
        return tape.at

    def between(self, engine: Engine) -> None:
        """Between entries no lock is held: signals are handled, other threads run."""
        if engine.poll is not None:
            engine.poll()

    def ends(self, tape: Tape, entry: Entry, bounds: Bounds) -> bool:
        first = tape.entries[0].place
        turn = first is not None and entry.place is not None and entry.place[:2] == first[:2] and len(tape.entries) >= bounds.turn
        full = len(tape.entries) >= bounds.entries or len(tape.leaves()) + len(entry.operands) > bounds.leaves
        return turn or full or self.too_much(sum(e.work for e in tape.entries) + entry.work, bounds)

    def too_much(self, work: int, bounds: Bounds) -> bool:
        return work > bounds.work

    # 12, 13, 14. Layouts.

    def overlap(self, x: Part, y: Part) -> bool:
        """Tell whether a write to the one, row by row, may change what is yet to be read of the other."""
        (low, high), (first, end) = x.interval(), y.interval()
        return low < end and first < high and not (x.layout is y.layout and x.interval() == y.interval() and 0 not in x.layout.strides)

    def strides(self, sample: np.ndarray) -> tuple[int, ...]:
        """A result lies as NumPy's would."""
        return sample.strides

    def layouts(self) -> MutableMapping[Any, Layout]:
        """The table of layouts; what nobody uses is dropped."""
        return weakref.WeakValueDictionary()

    # 15. Detach, publish, tell, let go.

    def detach(self, engine: Engine, tape: Tape) -> None:
        if engine.current.get(tape.thread) is tape:
            del engine.current[tape.thread]

    # 16. Threads.

    def settles_others(self, tape: Tape, thread: int) -> bool:
        """What another thread has pending is settled when an operand is recorded, so that a tape that runs needs no other one."""
        return tape.thread != thread

    def thread_ends(self, engine: Engine, tape: Tape) -> None:
        engine.settle_quietly(tape)

    def fork(self, engine: Engine) -> None:
        """Before a fork the own tape is settled, and those that run: otherwise both processes would tell of it."""
        for tape in [tape for tape in engine.tapes if tape is engine.current.get(engine.thread) or tape.needed is not None]:
            engine.settle(tape)

    # 17. Whom a warning names.

    def registry(self, place: Place) -> dict[Any, Any]:
        return place.globals.setdefault("__warningregistry__", {})

    def has_place(self, place: Place | None) -> bool:
        """What no line of Python asks for could not be told of later."""
        return place is not None

    def flags(self, texts: Iterable[str]) -> list[str]:
        """The warnings of an operation: one a flag, in NumPy's order."""
        return sorted(set(texts), key=lambda text: [text.startswith(kind) for kind in KINDS].index(True))

    # 19 on. What the model found.

    def lend(self, engine: Engine, memory: Memory) -> None:
        """Give memory to the outside, for ever, which may write there from now on."""
        engine.order([], [memory], own=True)
        for node in self.readers(memory):
            node.compute()
        memory.lent = True

    def register(self, node: Node, memory: Memory) -> None:
        """Large memory knows which nodes will read it, before it has bytes too; of small memory they have copies."""
        if memory.size > node.engine.bounds.large:
            memory.readers.add(node)

    def alone(self, engine: Engine, entry: Entry) -> None:
        engine.order([x.memory for x in entry.parts], [entry.target.memory], own=True)
        engine.perform(entry, alone=True)

    def again(self) -> bool:
        return True

    def of_numbers(self, texts: Iterable[str]) -> list[str]:
        """What is told before an operation is done: numbers are cast at the call, where the zeros beside them raise nothing."""
        return [text for text in texts if text.endswith(" in cast")]

    def chain(self, engine: Engine, tape: Tape) -> list[Tape]:
        """A tape after those that its thread has begun before it."""
        same = [each for each in engine.tapes if each.thread == tape.thread]
        return same[: same.index(tape) + 1] if tape in same else []
