"""``cupy.cuda.stream`` and ``cupy.cuda.graph``: streams, events, graphs, and each thread's current stream.

In: calls of the host.  Out: operations in the machine's streams.  Promise: what CuPy checks itself is checked here (a stream of another
device than the current one, a capture of the default stream); what the runtime checks is checked in the machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from gpu_emulator.fakecupy.errors import CUDARuntimeError
from gpu_emulator.fakecupy.machine import LEGACY, PER_THREAD, EventState, GraphState, StreamState, machine

RELAXED = 2


class Event:
    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.ptr = 0
        self._machine = machine()
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        self.ptr = machine().create_event(not disable_timing)

    def __del__(self) -> None:
        self._machine.events.pop(self.ptr, None) # of a machine that is gone as well: another one has the same handles

    @property
    def _state(self) -> EventState:
        return machine().event(self.ptr)

    @property
    def done(self) -> bool:
        return query_event(self._state)

    def record(self, stream: Any = None) -> None:
        machine().record(self._state, machine().stream((stream or get_current_stream()).ptr))

    def synchronize(self) -> None:
        synchronize_event(self._state)


def query_event(event: EventState) -> bool:
    fake = machine()
    if event.capture is not None and event.capture in fake.captures:
        event.capture.invalid = True
        raise CUDARuntimeError(907)
    return fake.poll(event.mark)


def synchronize_event(event: EventState) -> None:
    if event.capture is not None and event.capture in machine().captures:
        event.capture.invalid = True
        raise CUDARuntimeError(907)
    machine().waits += 1
    machine().settle([event.mark])


def elapsed(start: EventState, stop: EventState) -> float:
    """Milliseconds: a microsecond for each operation between."""
    for event in (start, stop):
        if not event.timing or event.mark is None:
            raise CUDARuntimeError(400)
        if not event.mark.done:
            raise CUDARuntimeError(600)
    assert start.mark is not None
    assert stop.mark is not None
    return max(stop.mark.number - start.mark.number, 1) / 1000


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    return elapsed(start_event._state, end_event._state)


class _BaseStream:
    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id = ptr, device_id

    @property
    def _state(self) -> StreamState:
        return machine().stream(self.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def _check_device(self) -> int:
        current = machine().device
        if self.device_id not in (-1, current):
            raise RuntimeError(f"The device that the stream is created on ({self.device_id})"
                               f" does not match with the current device ({current})")
        return current

    def __enter__(self) -> _BaseStream:
        device = self._check_device()
        _stacks().append((device, _current(device)))
        _streams()[device] = self
        return self

    def __exit__(self, *args: object) -> None:
        device, before = _stacks().pop()
        _streams()[device] = before

    def use(self) -> _BaseStream:
        _streams()[self._check_device()] = self
        return self

    @property
    def done(self) -> bool:
        return query(self._state)

    def synchronize(self) -> None:
        machine().synchronize_stream(self._state)

    def add_callback(self, callback: Callable[..., None], arg: Any) -> None:
        if self._state.capture is not None:
            raise CUDARuntimeError(900)
        machine().enqueue(self._state, lambda: callback(self, 0, arg), "callback")

    def launch_host_func(self, callback: Callable[[Any], None], arg: Any) -> None:
        machine().enqueue(self._state, lambda: callback(arg), "host function")

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        machine().wait(self._state, event._state)

    def begin_capture(self, mode: int | None = None) -> None:
        if self.ptr in (0, LEGACY):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        machine().begin_capture(self._state, RELAXED if mode is None else mode)

    def end_capture(self) -> Graph:
        return Graph._made(machine().end_capture(self._state))

    def is_capturing(self) -> bool:
        return self._state.capture is not None

    @property
    def is_non_blocking(self) -> bool:
        return not self._state.blocking

    @property
    def priority(self) -> int:
        return self._state.priority


def query(stream: StreamState) -> bool:
    if stream.capture is not None:
        stream.capture.invalid = True
        raise CUDARuntimeError(900)
    return machine().poll(stream.tail)


class Stream(_BaseStream):
    null: Stream
    ptds: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None) -> None:
        if null or ptds:
            super().__init__(0 if null else PER_THREAD, -1)
        else:
            self._machine = machine()
            super().__init__(self._machine.create_stream(non_blocking, priority or 0), self._machine.device)

    def __del__(self) -> None:
        if getattr(self, "ptr", 0) > PER_THREAD:
            with contextlib.suppress(RuntimeError): # the handle may be gone
                self._machine.destroy_stream(self.ptr)

    @staticmethod
    def from_external(obj: Any) -> ExternalStream:
        version, pointer = obj.__cuda_stream__()
        if version != 0:
            raise ValueError(f"unsupported version {version} of the CUDA stream protocol")
        return ExternalStream(pointer)


class ExternalStream(_BaseStream):
    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(ptr, device_id)


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def _streams() -> dict[int, _BaseStream]:
    local = machine().local
    if not hasattr(local, "streams"):
        local.streams, local.stacks = {}, []
    return local.streams


def _stacks() -> list[tuple[int, _BaseStream]]:
    _streams()
    return machine().local.stacks


def _current(device: int) -> _BaseStream:
    return _streams().get(device, Stream.null)


def get_current_stream(device_id: int = -1) -> Any:
    return _current(machine().device if device_id < 0 else device_id)


class Graph:
    """Made by ``end_capture`` only."""

    _state: GraphState

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("currently this class cannot be initiated by the user and must be created via stream capture")

    @classmethod
    def _made(cls, state: GraphState) -> Graph:
        graph = cls.__new__(cls)
        graph._state = state
        return graph

    def launch(self, stream: Any = None) -> None:
        machine().launch_graph(self._state, machine().stream((stream or get_current_stream()).ptr))

    def upload(self, stream: Any = None) -> None:
        machine().stream((stream or get_current_stream()).ptr)
