"""The machine: devices, streams, and the adversary that chooses when queued work runs.

In: operations (a callable and what it comes after), waits.  Out: the operations run, each once, never before what it comes after.
Promise: an operation runs when somebody waits for it, or, by the seed, at any earlier moment that the rules of CUDA allow; work that no
rule orders runs in an order that the seed chooses.  A fault while an operation runs is written down in ``violations`` and raised where it
ran.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gpu_emulator.fakecupy.errors import CUDARuntimeError, Violation

POLLS = 5 # so often an operation may be asked for in vain
LEGACY, PER_THREAD = 1, 2  # the handles cudaStreamLegacy and cudaStreamPerThread; 0 is the legacy stream too


class Policy(NamedTuple):
    """How the adversary behaves.

    ``rate``: how often an enqueued operation sets others going. ``pick``: which of several that are ready runs first. ``others``: how
    often a wait lets all that it does not wait for go first. ``reuse``: how often a freed block's address serves the next allocation of
    its size on its stream, as CuPy's pool does; otherwise it never serves again, so that a late access faults. ``order``: of a kernel's
    threads.
    """

    rate: float
    pick: str
    others: float
    reuse: float
    order: str


POLICIES = (
    Policy(0.0, "oldest", 0.0, 0.0, "ascending"), # all as late as possible
    Policy(1.0, "oldest", 0.0, 1.0, "descending"), # all at once
    Policy(0.0, "newest", 1.0, 1.0, "random"), # late, and what nobody waits for goes first
    Policy(0.0, "random", 0.5, 0.5, "descending"),
    Policy(0.2, "random", 0.5, 0.5, "random"),
    Policy(0.6, "newest", 0.3, 0.5, "ascending"),
)


class Operation:
    """Work in a stream, a node of a graph while a stream is captured, and a mark of an event (no work)."""

    __slots__ = ("after", "done", "label", "number", "polls", "stream", "work")

    def __init__(self, number: int, stream: StreamState, work: Callable[[], None] | None, after: tuple[Operation, ...], label: str) -> None:
        self.number, self.stream, self.work, self.after, self.label = number, stream, work, after, label
        self.done = False
        self.polls = 0

    def __repr__(self) -> str:
        return f"<{self.label} of stream {self.stream.handle}>"


class Capture:
    """A capture under way: its nodes, and the streams that joined it."""

    def __init__(self, origin: StreamState, thread: int, mode: int) -> None:
        self.origin, self.thread, self.mode = origin, thread, mode
        self.nodes: list[Operation] = []
        self.streams = [origin]
        self.invalid = False


class StreamState:
    """A stream: the last operation in it; while it is captured, the capture and the nodes that its next one comes after."""

    def __init__(self, handle: int, device: int, blocking: bool, priority: int = 0) -> None:
        self.handle, self.device, self.blocking, self.priority = handle, device, blocking, priority
        self.tail: Operation | None = None
        self.capture: Capture | None = None
        self.ends: list[Operation] = []

    @property
    def legacy(self) -> bool:
        return self.handle == 0


class GraphState:
    """An instantiated graph: its nodes, and the end of its last launch, which the next one comes after."""

    def __init__(self, nodes: list[Operation], device: int) -> None:
        self.nodes, self.device = nodes, device
        self.last: Operation | None = None


class EventState:
    """An event: the mark of its last record, of a stream or of a capture."""

    def __init__(self, handle: int, timing: bool, device: int) -> None:
        self.handle, self.timing, self.device = handle, timing, device
        self.mark: Operation | None = None
        self.capture: Capture | None = None


def _closure(targets: Iterable[Operation]) -> set[Operation]:
    """The targets and all that they come after."""
    found: set[Operation] = set()
    stack = list(targets)
    while stack:
        operation = stack.pop()
        if operation not in found:
            found.add(operation)
            stack.extend(other for other in operation.after if not other.done)
    return found


class Machine:
    """All state of the fake: made by ``install``, and gone with it."""

    def __init__(self, seed: int, devices: int, capability: tuple[int, int], memory: int, real_nvrtc: bool, races: bool) -> None:
        self.seed, self.devices, self.capability, self.memory = seed, devices, capability, memory
        self.real_nvrtc, self.races = real_nvrtc, races
        self.process = os.getpid()
        self.policy = POLICIES[seed % len(POLICIES)]
        self.random = random.Random(seed)
        self.lock = threading.RLock()
        self.violations: list[BaseException] = []
        self.pending: dict[Operation, None] = {}
        self.handles = itertools.count(0x51000000, 0x40)
        self.streams: dict[int, StreamState] = {}
        self.events: dict[int, EventState] = {}
        self.defaults: dict[Any, StreamState] = {}
        self.destroyed: list[StreamState] = [] # with work that still runs
        self.graphs: dict[int, GraphState] = {}
        self.captures: list[Capture] = []
        self.local = threading.local()
        self.numbers = itertools.count()
        self.executed: deque[str] = deque(maxlen=64) # the last operations run, for messages
        self.ranges: list[tuple[str, int]] = [] # those that were closed, with the launches within
        self.launches = self.copies = self.waits = 0 # of kernels, of memory, and of the host for the device
        self.store: Any = None # what follows belongs to other modules, which `install` asks for it
        self.pool: Any = None
        self.pinned_pool: Any = None
        self.allocator: Any = None
        self.pinned_allocator: Any = None

    # what runs when

    def enqueue(self, stream: StreamState, work: Callable[[], None] | None, label: str, after: Iterable[Operation] = (), *,
                quiet: bool = False) -> Operation:
        """Put work into a stream; work of captured streams becomes a node of the graph.  ``quiet``: nothing runs now."""
        with self.lock:
            if stream.capture is not None:
                return self._record(stream, work, label, after)
            operation = Operation(next(self.numbers), stream, work, self._order(stream, after), label)
            stream.tail = operation
            self.pending[operation] = None
            if not quiet:
                self._stir()
            return operation

    def append(self, stream: StreamState, work: Callable[[], None] | None, label: str, after: tuple[Operation, ...]) -> Operation:
        """Pending work that comes after nothing but ``after``: the nodes of a graph that was launched."""
        operation = Operation(next(self.numbers), stream, work, after, label)
        self.pending[operation] = None
        return operation

    def _order(self, stream: StreamState, after: Iterable[Operation]) -> tuple[Operation, ...]:
        """What an operation put into the stream now comes after: the stream's last one, and what the legacy stream's rule adds."""
        before = [*after] if stream.tail is None else [stream.tail, *after]
        if stream.legacy:
            for other in self._of_device(stream.device):
                if other.blocking and other is not stream:
                    if other.capture is not None:
                        self._invalidate(other.capture)
                        raise CUDARuntimeError(906)
                    if other.tail is not None:
                        before.append(other.tail)
        elif stream.blocking:
            legacy = self.defaults.get(stream.device)
            if legacy is not None and legacy.tail is not None:
                before.append(legacy.tail)
        return tuple(operation for operation in before if not operation.done)

    def _record(self, stream: StreamState, work: Callable[[], None] | None, label: str, after: Iterable[Operation]) -> Operation:
        capture = stream.capture
        assert capture is not None
        if capture.invalid:
            raise CUDARuntimeError(901)
        node = Operation(next(self.numbers), stream, work, (*stream.ends, *after), label)
        stream.ends = [node]
        capture.nodes.append(node)
        return node

    def _of_device(self, device: int) -> list[StreamState]:
        return [s for s in (*self.streams.values(), *self.defaults.values(), *self.destroyed) if s.device == device]

    def _ready(self) -> list[Operation]:
        return [operation for operation in self.pending if all(other.done for other in operation.after)]

    def _choose(self, ready: list[Operation]) -> Operation:
        if self.policy.pick == "random":
            return self.random.choice(sorted(ready, key=lambda op: op.number)) # sets have no order of their own
        return max(ready, key=lambda op: op.number) if self.policy.pick == "newest" else min(ready, key=lambda op: op.number)

    def _stir(self) -> None:
        """The adversary's moment: it may run work that nobody waits for yet."""
        while self.pending and self.random.random() < self.policy.rate:
            self._execute(self._choose(self._ready()))

    def _execute(self, operation: Operation) -> None:
        operation.done = True # before it runs: one that faults does not run again
        self.pending.pop(operation, None)
        if operation.stream.tail is operation:
            operation.stream.tail = None
        operation.after = ()
        work, operation.work = operation.work, None
        if work is not None:
            self.executed.append(operation.label)
            try:
                work()
            except BaseException as error:
                self.violations.append(error)
                raise

    def settle(self, targets: Iterable[Operation | None]) -> None:
        """Run the targets and all that they come after."""
        with self.lock:
            targets = [target for target in targets if target is not None and not target.done]
            if not targets:
                return
            needed = _closure(targets)
            others = self.random.random() < self.policy.others
            wanted = needed | _closure(self.pending) if others else needed
            lists: dict[Operation, list[Operation]] = {}
            missing: dict[Operation, int] = {}
            for operation in wanted:
                before = {other for other in operation.after if not other.done}
                missing[operation] = len(before)
                for other in before:
                    lists.setdefault(other, []).append(operation)
            ready = [operation for operation in wanted if not missing[operation]]
            while ready:
                operation = self._choose([op for op in ready if op not in needed] or ready)
                ready.remove(operation)
                if not operation.done:
                    self._execute(operation)
                for other in lists.get(operation, ()):
                    missing[other] -= 1
                    if not missing[other]:
                        ready.append(other)

    def poll(self, operation: Operation | None) -> bool:
        """Whether it has run.  Who asks again and again gets there: the device does not stand still."""
        with self.lock:
            self._stir()
            if operation is None or operation.done:
                return True
            operation.polls += 1
            if operation.polls == POLLS:
                self.settle([operation])
            return operation.done

    def violation(self, text: str) -> Violation:
        """A violation found at the call itself, written down; for the caller to raise."""
        error = Violation(text)
        self.violations.append(error)
        return error

    # waiting

    def synchronize_stream(self, stream: StreamState) -> None:
        self.waits += 1
        with self.lock:
            if stream.capture is not None:
                self._invalidate(stream.capture)
                raise CUDARuntimeError(900)
            if stream.legacy:
                self.settle(self._order(stream, ()))
            self.settle([stream.tail])

    def synchronize_device(self, device: int) -> None:
        self.waits += 1
        with self.lock:
            self.refuse_capture(device)
            self.drain(device)

    def drain(self, device: int) -> None:
        """Run all that is queued on a device; a capture under way does not mind."""
        with self.lock:
            self.settle([operation for operation in self.pending if operation.stream.device == device])

    def refuse_capture(self, device: int) -> None:
        """What waits for the whole device, or uses the legacy stream, is not allowed while a stream of it is captured by this thread."""
        for capture in self.captures:
            if capture.origin.device == device and (capture.thread == threading.get_ident() or capture.mode == 0):
                self._invalidate(capture)
                raise CUDARuntimeError(900)

    # streams and events

    def stream(self, handle: int, device: int | None = None) -> StreamState:
        """The stream with a handle, as a call of the current thread means it."""
        device = self.device if device is None else device
        if handle in (0, LEGACY):
            return self._default(device, 0, True)
        if handle == PER_THREAD:
            return self._default((device, threading.get_ident()), PER_THREAD, True, device)
        try:
            return self.streams[handle]
        except KeyError:
            raise CUDARuntimeError(400) from None

    def _default(self, key: Any, handle: int, blocking: bool, device: int | None = None) -> StreamState:
        with self.lock:
            state = self.defaults.get(key)
            if state is None:
                state = self.defaults[key] = StreamState(handle, key if device is None else device, blocking)
            return state

    def create_stream(self, non_blocking: bool, priority: int = 0) -> int:
        handle = next(self.handles)
        self.streams[handle] = StreamState(handle, self.device, not non_blocking, priority)
        return handle

    def destroy_stream(self, handle: int) -> None:
        """Its work goes on: other work may come after it, and the device is waited for by device."""
        with self.lock:
            stream = self.streams.pop(handle, None)
            if stream is None:
                raise CUDARuntimeError(400)
            if stream.capture is not None:
                self._invalidate(stream.capture)
            self.destroyed = [old for old in (*self.destroyed, stream) if old.tail is not None]

    def event(self, handle: int) -> EventState:
        try:
            return self.events[handle]
        except KeyError:
            raise CUDARuntimeError(400) from None

    def create_event(self, timing: bool) -> int:
        handle = next(self.handles)
        self.events[handle] = EventState(handle, timing, self.device)
        return handle

    def record(self, event: EventState, stream: StreamState) -> None:
        with self.lock:
            if event.device != stream.device:
                raise CUDARuntimeError(400)
            event.capture = stream.capture
            event.mark = self.enqueue(stream, None, f"record of event {event.handle:#x}")

    def wait(self, stream: StreamState, event: EventState) -> None:
        """The stream's further work comes after the event; a captured event draws the stream into its capture."""
        with self.lock:
            capture = event.capture
            if event.mark is None:
                return
            if capture is None or capture not in self.captures:
                if stream.capture is not None:
                    self._invalidate(stream.capture)
                    raise CUDARuntimeError(905)
                if capture is not None:
                    raise CUDARuntimeError(907)
                if not event.mark.done:
                    self.enqueue(stream, None, f"wait for event {event.handle:#x}", (event.mark,))
                return
            if stream.capture is None:
                if stream.legacy:
                    self._invalidate(capture)
                    raise CUDARuntimeError(906)
                stream.capture = capture
                capture.streams.append(stream)
            elif stream.capture is not capture:
                self._invalidate(capture)
                raise CUDARuntimeError(902)
            stream.ends.append(event.mark)

    # capture

    def _invalidate(self, capture: Capture) -> None:
        capture.invalid = True

    def invalidate(self, stream: StreamState) -> None:
        """Something that a captured stream does not allow was asked of it."""
        if stream.capture is not None:
            stream.capture.invalid = True

    def begin_capture(self, stream: StreamState, mode: int) -> None:
        with self.lock:
            if stream.capture is not None:
                raise CUDARuntimeError(1)
            if stream.legacy:
                raise CUDARuntimeError(900)
            stream.capture = Capture(stream, threading.get_ident(), mode)
            stream.ends = []
            self.captures.append(stream.capture)

    def end_capture(self, stream: StreamState) -> GraphState:
        with self.lock:
            capture = stream.capture
            if capture is None:
                raise CUDARuntimeError(1)
            if capture.origin is not stream:
                raise CUDARuntimeError(903)
            if capture.mode != 2 and capture.thread != threading.get_ident():
                raise CUDARuntimeError(1)
            ends = list(stream.ends)
            self.captures.remove(capture)
            joined = set(ends)
            stack = list(ends)
            while stack:
                for other in stack.pop().after:
                    if other not in joined:
                        joined.add(other)
                        stack.append(other)
            for member in capture.streams:
                member.capture, member.ends = None, []
            if capture.invalid:
                raise CUDARuntimeError(901)
            if not joined.issuperset(capture.nodes):
                raise CUDARuntimeError(904)
            return GraphState(capture.nodes, stream.device)

    def launch_graph(self, graph: GraphState, stream: StreamState) -> None:
        """All nodes between what is in the stream and what comes later; among them only the graph's own edges order."""
        with self.lock:
            nodes = graph.nodes
            if graph.device != stream.device:
                raise CUDARuntimeError(400)
            if stream.capture is not None:
                copies: dict[Operation, Operation] = {}
                before = list(stream.ends)
                for node in nodes:
                    stream.ends = [copies[other] for other in node.after] or before
                    copies[node] = self._record(stream, node.work, node.label, ())
                stream.ends = list(copies.values()) or before
                return
            first = self._order(stream, () if graph.last is None else (graph.last,))
            made: dict[Operation, Operation] = {}
            for node in nodes:
                made[node] = self.append(stream, node.work, node.label, tuple(made[other] for other in node.after) or first)
            graph.last = self.enqueue(stream, None, "end of a graph", tuple(made.values()))

    # the current device

    @property
    def device(self) -> int:
        return getattr(self.local, "device", 0)

    @device.setter
    def device(self, number: int) -> None:
        if not 0 <= number < self.devices:
            raise CUDARuntimeError(101)
        self.local.device = number


_machine: Machine | None = None


def machine() -> Machine:
    """The machine that is installed."""
    if _machine is None:
        raise RuntimeError("the fake CuPy is not installed")
    if _machine.process != os.getpid():
        raise CUDARuntimeError(3) # CUDA does not outlive a fork
    return _machine


def replace(new: Machine | None) -> Machine | None:
    """Install a machine; the one before."""
    global _machine
    old, _machine = _machine, new
    return old
