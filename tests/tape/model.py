"""The one engine as an executable specification: what is recorded, when it runs, whose bits it has, what is told of it.

In: NumPy's ufuncs, indices and writes on ``Array``; a thread's number in ``Engine.thread`` instead of threads, so that an interleaving is
data.  Out: arrays whose values, dtypes, shapes and strides are NumPy's, and warnings at the line that recorded them.  Promise: a program
cannot tell a tape from NumPy but by when it computes and when it warns; the native core keeps the same promise and is tested against it.

``notions`` has the nouns; ``rules`` what can be decided wrongly, by the holes of the design's review (1 to 18); this module what follows:
recording, order, running, telling.  An entry is one call of NumPy on the memory itself, where the core has groups and plans.  Left out:
positions and masks that are data (they ask for values), products, maps, in-place operations that need no write, speed.

What waits to be told is told while the list of filters is in force under which it was recorded, by what that list says then: who changes
the process's own list in place, outside of blocks, changes it for what is pending.

Holes that the model found beyond the review's, each with its rule:

19. An export is a write to come: it settles who has recorded a read, and computes nodes that read the memory, as a write does (``lend``).
20. A node that reads another node's result is a reader of memory that does not exist yet: readers belong to the result, with bytes or
    without (``register``).
21. What is computed at its call is never an entry: first the tapes that it waits for run, then it runs alone.  Otherwise a failure of
    memory leaves an entry behind of a write that the program believes not done (``alone``).
22. Waiting lets others record: whoever has waited looks again before it acts (``again``).
23. A tape that stopped half-way and its thread's next one are one order: the next one begins when the first is done (``chain``).  What it
    has computed already is there for everybody, though the rest fails.
24. A tape ends before an entry is recorded, never after, so that what its end raises is raised by an operation that is not done.  A tape
    that a dying cell ends has nobody to raise for: no signals, nothing told, no memory: it stays.
25. The value of a write is the memory: a write to memory that no cell and nobody outside sees is not needed, nor is what it reads.
26. From Python 3.14 on a call borrows a variable's reference, so a count of one does not show that an array is nobody else's (``ours``).
27. NumPy itself puts filters with a message into the process's list, so "a pattern depends" (rule 6) would compute everything at its
    call: a pattern that begins otherwise than any floating-point error says nothing (``may_match``).
28. Where the first of an operation's warnings raises NumPy tells no other: an operation's warnings wait, and are dropped, together.
29. A number that meets an array is cast at the call, and what is told of that (``x32 *= 1e300``) may raise before anything is done: it is
    told at the call, though the operation waits (``of_numbers``).  An element has it told when it is written, by NumPy (30).
30. What raises at its call leaves what NumPy leaves: all that it wrote, or, where NumPy puts values beside for an overlap, nothing.  So
    what is at the call is NumPy's own call, with our way of telling in it (``tell_now``).
31. What a loop casts is handed to NumPy as the program gave it: whether NumPy says "in cast" or "in add" depends on whether an operand
    was broadcast before.
32. A comparison with a number of NumPy's on the left brings it as an array without axes (rule 18): that is a number, read at the call.
33. Which of two NaNs a sum or product gives depends on whether an element is in a loop's vectors or in its rest (float64 and float32, with
    AVX-512): splitting into blocks, rows and writing in place change the sign of a NaN.  All NaNs are one when bits are compared.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tests.tape.notions import NOWHERE, Bounds, Bytes, Entry, Layout, Log, Memory, Node, Op, Part, Place, Tape, Told
from tests.tape.rules import AT_CALL, KINDS, NEVER, SEVERAL, Rules, in_force

INSIDE: Final = {__file__, NDArrayOperatorsMixin.__add__.__code__.co_filename}  # whose frames are not the program's
BOUNDS: Final = Bounds()


class Deadlock(Exception):
    """Somebody waits for a tape with the lock of another one in his hand."""


class Engine:
    """The tapes of all threads, what waits to be told, and who decides."""

    def __init__(self, bounds: Bounds = BOUNDS, rules: Rules | None = None, eager: bool = False) -> None:
        self.bounds, self.rules, self.eager = bounds, rules or Rules(), eager
        self.thread = 0  # that runs now
        self.tapes: list[Tape] = []  # not done, in the order in which they began
        self.current: dict[int, Tape] = {}  # those that are filled, by thread
        self.holding = False  # a tape's lock
        self.queue: list[Told] = []
        self.known = self.rules.layouts()
        self.read: Any = None  # which list of filters was, and what it said
        self.said = AT_CALL
        self.poll: Callable[[], None] | None = None  # between entries: signals and other threads
        self.asked: Callable[[int], None] | None = None  # for bytes: it may raise MemoryError
        self.trace: list[str] = []

    # Memory and layouts.

    def allocate(self, nbytes: int) -> np.ndarray:
        self.trace.append("memory")
        if self.asked is not None:
            self.asked(nbytes)
        return np.empty(max(nbytes, 1), np.uint8)

    def layout(self, x: np.ndarray, strides: tuple[int, ...] | None = None) -> Layout:
        key = (x.dtype, x.shape, x.strides if strides is None else strides)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Layout(*key)
        return found

    def part(self, x: np.ndarray, lent: bool = False) -> Part:
        """NumPy's array as memory."""
        layout = self.layout(x)
        low, high = layout.interval(0)
        data = np.asarray(Bytes(x, low, high))
        return Part(Memory((high - low) // (x.itemsize or 1), high - low, data, x, lent), layout, -low)

    def fresh(self, sample: np.ndarray) -> Part:
        """A result that lies as the sample does, without bytes yet."""
        layout = self.layout(sample, self.rules.strides(sample))
        low, high = layout.interval(0)
        return Part(Memory(layout.size, high - low), layout, -low)

    # What programs call.

    def array(self, x: Any) -> Array:
        return Array(self, self.part(np.array(self.ask(x.part) if isinstance(x, Array) else x)))

    def asarray(self, x: Any) -> Array:
        if isinstance(x, Array):
            return x
        if isinstance(x, np.ndarray):
            count = sys.getrefcount(x)
            ours = self.rules.ours(x, count)
            return Array(self, self.part(x, lent=not ours), x.flags.writeable)
        return self.array(x)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Array:
        x = self.asarray(x)
        return x.like(np.broadcast_to(x.sample(), shape))

    def operation(self, op: Op, inputs: Sequence[Any], out: Array | None, asked: Callable[[Sequence[Any]], Any]) -> Any:
        """Record an operation, or compute it now.  NumPy is asked of operands that lie like these, and raises what it raises of them."""
        operands = tuple(self.operand(x) for x in inputs)
        state, log = np.geterr(), Log()
        with np.errstate(call=log, **{kind: mode if mode == "ignore" else "log" for kind, mode in state.items()}):
            sample = asked([x.layout.sample() if isinstance(x, Part) else x for x in operands])
        target = self.fresh(np.asarray(sample)) if out is None else out.part
        entry = Entry(op, operands, target, out is None, self.place(), state, np.geterrcall())
        entry.loops = self.rules.loops(entry, self.bounds.large)
        self.tell()
        when = self.when(entry)
        entry.filters = None if when is NEVER else in_force()
        number = not isinstance(sample, np.ndarray)
        if when is AT_CALL or number or not (out is None or out.layout.shape):  # a number is asked for now, an element written
            self.rules.alone(self, entry)
            self.tell()
        else:
            entry.told = self.rules.of_numbers(log)
            self.hear(entry, entry.told)
            self.tell()
            self.append(entry)
        if number:
            return target.view()[()]
        return Array(self, target) if out is None else out

    def ask(self, part: Part) -> np.ndarray:
        """A value is asked for."""
        self.order([part.memory], [], own=True)
        value = self.rules.need(part)
        self.tell()
        return value

    def export(self, part: Part) -> np.ndarray:
        """A door that lasts."""
        self.rules.lend(self, part.memory)
        return self.ask(part)

    def close(self) -> None:
        """The program's end: what waits is told; what nobody asked for is not computed."""
        self.tell()

    # Recording.

    def operand(self, x: Any) -> Any:
        if isinstance(x, Array):
            return x.part
        if isinstance(x, np.ndarray):
            return self.part(x, lent=True) if x.ndim else x[()]
        return self.part(np.array(x)) if isinstance(x, list) else x

    def place(self) -> Place | None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename in INSIDE:
            frame = frame.f_back
        return None if frame is None else Place(frame.f_code, frame.f_lasti, frame.f_lineno, frame.f_globals)

    def when(self, entry: Entry) -> str:
        """When an operation is computed: by meaning, never by its size, but for lent memory that a large one reads."""
        lent = any(self.rules.is_lent(x.memory) for x in [*entry.parts, entry.target])
        modes = set(entry.errors.values())
        if self.eager or not self.rules.has_place(entry.place) or modes - {"ignore", "warn"}:
            return AT_CALL
        if lent and not self.rules.is_node(entry, self.bounds.large):
            return AT_CALL
        now = self.rules.identity(in_force())
        if self.read != now:
            self.read, self.said = now, self.rules.says(in_force())
        return NEVER if modes == {"ignore"} else self.said

    def append(self, entry: Entry) -> None:
        reads, writes = [x.memory for x in entry.parts], [entry.target.memory]
        while True:
            tape = self.current.get(self.thread)
            if tape is not None and tape.entries and self.rules.ends(tape, entry, self.bounds):
                self.settle(tape)
            elif waiting := self.waiting(reads, writes, own=False):
                self.settle(waiting[0])
            else:
                break
        entry.operands = tuple(
            self.rules.snapshot(x) if isinstance(x, Part) and self.rules.is_lent(x.memory) else x for x in entry.operands
        )
        if tape is None:
            tape = self.current[self.thread] = Tape(self.thread)
            self.tapes.append(tape)
        tape.entries.append(entry)  # from the look at who waits to here nothing runs that is not the engine's
        for memory in reads:
            memory.touched = self.rules.mark(memory.touched, tape)
        entry.target.memory.touched = entry.target.memory.written = tape  # the others that had touched it have run

    # Order.

    def waiting(self, reads: Sequence[Memory], writes: Sequence[Memory], own: bool) -> list[Tape]:
        """The tapes that come before one who reads and writes such memory."""
        found = []
        for memory, write in [*[(memory, False) for memory in reads], *[(memory, True) for memory in writes]]:
            mark = memory.touched if write else memory.written
            for tape in self.tapes if mark is SEVERAL else [mark] if isinstance(mark, Tape) else []:
                if self.rules.pending(tape) and tape.awaits(memory, write) and (own or self.rules.settles_others(tape, self.thread)):
                    found.append(tape)
        return found

    def order(self, reads: Sequence[Memory], writes: Sequence[Memory], own: bool) -> None:
        while waiting := self.waiting(reads, writes, own):
            for tape in waiting:
                self.settle(tape)
            if not self.rules.again():
                return

    def settle(self, tape: Tape, quiet: bool = False) -> None:
        """Detach, publish, tell, let go: in this order, for telling and letting go call the program."""
        if self.holding:
            raise Deadlock
        chain = self.rules.chain(self, tape)
        try:
            for each in chain:
                self.rules.detach(self, each)
                self.run(each, quiet)
            if not quiet:
                self.tell()
        finally:
            for each in chain:
                if each.done:
                    each.entries = []

    def settle_quietly(self, tape: Tape) -> None:
        """A destructor's way: nobody is there who could be told, or hear of a failure."""
        if not self.holding:
            with suppress(MemoryError):
                self.settle(tape, quiet=True)

    def dies(self, memory: Memory) -> None:
        """A cell has died."""
        memory.cells -= 1
        for tape in list(self.tapes):
            if self.rules.held(self) > self.bounds.held:
                self.settle_quietly(tape)

    def end_thread(self, thread: int) -> None:
        if thread in self.current:
            self.rules.thread_ends(self, self.current[thread])
            self.current.pop(thread, None)

    # Running.

    def run(self, tape: Tape, quiet: bool) -> None:
        if tape.needed is None:
            tape.needed = tape.decide()
            self.rules.take(self, tape)
        tape.at = self.rules.resume_at(tape)
        while not tape.done:
            if not quiet:
                self.rules.between(self)  # where somebody may run it to its end
            if tape.done:
                return
            if tape.at == len(tape.entries):
                tape.done = True
                self.tapes.remove(tape)
                return
            entry = tape.entries[tape.at]
            if tape.needed[tape.at]:
                self.holding = True
                try:
                    self.promote(entry) if self.rules.is_node(entry, self.bounds.large) else self.perform(entry)
                finally:
                    self.holding = False
            tape.at += 1

    def promote(self, entry: Entry) -> None:
        """A large value waits for its reader: the schedulers' world begins here."""
        operands = tuple(self.rules.leaf(x, self.bounds.large) if isinstance(x, Part) else x for x in entry.operands)
        memory = entry.target.memory
        memory.node = Node(self, replace(entry, operands=operands, target=entry.target._replace(memory=NOWHERE)), weakref.ref(memory))
        for part in memory.node.entry.parts:
            self.rules.register(memory.node, part.memory)

    def perform(self, entry: Entry, alone: bool = False) -> None:
        """Run an entry: first all that it needs is computed and all memory taken, then something changes."""
        memory = entry.target.memory
        if not entry.makes:
            self.rules.need(entry.target)
            for node in self.rules.readers(memory):
                node.compute()
        sources = [self.rules.need(x) if isinstance(x, Part) else x for x in entry.operands]
        if memory.data is None:
            memory.data = self.allocate(memory.nbytes)
        log = Log(entry.told)
        if alone:
            log.heard = partial(self.tell_now, entry)
        errors, _ = self.rules.error_state(entry)
        with np.errstate(call=log, **{kind: mode if mode == "ignore" else "log" for kind, mode in errors.items()}):
            self.store(entry, sources, alone)
        self.trace.append(entry.loops)
        self.hear(entry, self.rules.flags(log))

    def store(self, entry: Entry, sources: list[Any], alone: bool) -> None:
        """Compute an entry's values into its target, beside it where they would meet what is still to be read."""
        target, op = entry.target.view(), entry.op
        casts = any(x.dtype != target.dtype for x in sources if isinstance(x, np.ndarray | np.generic))
        if entry.loops == "kernel" and op.own_bits:
            beside = np.empty_like(target)
            op.into(beside, sources)
            op.tag(beside)
            target[...] = beside
        elif alone or entry.makes or not target.ndim or casts:  # NumPy's own call, and what it leaves where it raises
            op.into(target, sources)
        elif not any(self.rules.overlap(entry.target, x) for x in entry.parts) and op.method == "__call__":
            sources = [x[(0,) * (x.ndim - target.ndim)] if isinstance(x, np.ndarray) and x.ndim > target.ndim else x for x in sources]
            sources = [np.broadcast_to(x, target.shape) if isinstance(x, np.ndarray) else x for x in sources]
            for low in range(0, len(target), self.bounds.block):
                rows = slice(low, low + self.bounds.block)
                op.into(target[rows], [x[rows] if isinstance(x, np.ndarray) else x for x in sources])
        elif op.ufunc is None:  # within one memory NumPy's own copy decides
            op.into(target, sources)
        else:
            beside = np.ndarray(target.shape, target.dtype, self.allocate(target.nbytes) if entry.spill is None else entry.spill)
            op.into(beside, sources)
            target[...] = beside

    # Warnings.

    def tell_now(self, entry: Entry, text: str) -> None:
        """Tell within NumPy's call, which leaves behind what it leaves if that raises."""
        self.hear(entry, [text])
        self.tell()

    def hear(self, entry: Entry, texts: Sequence[str]) -> None:
        """Do with the warnings of an operation what its error state says."""
        errors, callback = self.rules.error_state(entry)
        told = Told(entry.filters, [], entry.place)
        for text in texts:
            kind = next(kind for kind in KINDS if text.startswith(kind))
            match errors[KINDS[kind]]:
                case "warn" if entry.filters is not None:
                    told.texts.append(text)
                case "raise":
                    raise FloatingPointError(text)
                case "call":
                    callback(kind, list(KINDS).index(kind))
        if told.texts:
            self.queue.append(told)

    def tell(self) -> None:
        """Tell what waits and may be told, each once, for a handler may come here again."""
        while waiting := next((told for told in self.queue if self.rules.may_tell(told)), None):
            self.queue.remove(waiting)
            for text in waiting.texts:  # where one raises NumPy tells no other of the operation
                self.warn(text, waiting.place)

    def warn(self, text: str, place: Place | None) -> None:
        if place is None:
            warnings.warn_explicit(text, RuntimeWarning, "<no frame>", 1)
        else:
            file, module = place.code.co_filename, place.globals.get("__name__", "<unknown>")
            warnings.warn_explicit(text, RuntimeWarning, file, place.line, module, self.rules.registry(place))


class Array(NDArrayOperatorsMixin):
    """A cell: what a program holds."""

    def __init__(self, engine: Engine, part: Part, writeable: bool = True) -> None:
        self.engine, self.part, self.writeable = engine, part, writeable
        part.memory.cells += 1

    def __del__(self) -> None:
        self.engine.dies(self.part.memory)

    layout = property(lambda self: self.part.layout)
    dtype = property(lambda self: self.layout.dtype)
    shape = property(lambda self: self.layout.shape)
    strides = property(lambda self: self.layout.strides)
    T = property(lambda self: self.like(self.sample().T))

    @property
    def pending(self) -> bool:
        """Whether the value waits, on a tape or as a node."""
        memory = self.part.memory
        return memory.node is not None or bool(self.engine.waiting([memory], [], own=True))

    def sample(self) -> np.ndarray:
        return self.layout.sample(self.writeable)

    def like(self, view: np.ndarray) -> Array:
        """The view that somebody took of the last sample."""
        low = self.layout.interval(0)[0]
        whole = view
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0] + low
        part = Part(self.part.memory, self.engine.layout(view), self.part.offset + offset)
        return Array(self.engine, part, view.flags.writeable)

    def __getitem__(self, index: Any) -> Any:
        view = self.sample()[index]
        if not isinstance(view, np.ndarray):
            return self.engine.ask(self.part)[index]
        assert view.base is not None, "positions that are data are not modelled"
        return self.like(view)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        view = self.sample()[index]
        if not isinstance(view, np.ndarray):  # an element
            view = self.sample()[(*index, ...) if isinstance(index, tuple) else (index, ...)]

        def asked(samples: Sequence[Any]) -> np.ndarray:
            self.sample()[index] = samples[0]
            return view

        self.engine.operation(Op(), [value], self.like(view), asked)

    def astype(self, dtype: Any) -> Array:
        return self.engine.operation(Op(), [self], None, lambda samples: samples[0].astype(dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self.engine.export(self.part)
        value.flags.writeable = self.writeable and value.flags.writeable
        return value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method not in ("__call__", "reduce"):
            return NotImplemented
        target = out[0] if out else None
        if isinstance(target, np.ndarray):
            target = Array(self.engine, self.engine.part(target, lent=True), target.flags.writeable)
        if not (target is None or isinstance(target, Array)):
            raise TypeError("return arrays must be of ArrayType")
        op = Op(ufunc, method, tuple(options.items()))
        made = self.engine.operation(op, inputs, target, lambda samples: op.asked(samples, target))
        return out[0] if out else made

    def __float__(self) -> float:
        return float(self.engine.ask(self.part))
