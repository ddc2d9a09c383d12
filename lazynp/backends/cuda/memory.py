"""Memory of a GPU, streams and transfers.

In: sizes, buffers.  Out: blocks of CuPy's allocator, buffers in them, host arrays.  Promise: everything is ordered by streams, one for
each Python thread and one for large uploads (``transfers.py``), and memory that another stream works on waits for it and is waited for; a
host buffer is uploaded once, a device buffer downloaded once; memory that cannot be had is a ``MemoryError`` that names what holds the
rest, after what can be freed was freed.

Nothing is reserved beforehand.  A stream of another library that waits for no other is not in this order (``non_blocking``, the side
streams of torch).  Its work must be done before the array is dropped, as with CuPy's own arrays.  Pending work that holds more than an
eighth of a device's memory is computed.  A run that needs more than half of the free memory, or than ``LAZYNP_MEMORY``, is cut into
several.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

from lazynp.backends.common import rechecks
from lazynp.backends.cuda import driver
from lazynp.backends.cuda.graphs import Copy
from lazynp.backends.cuda.runs import Forked, Local, Run
from lazynp.backends.cuda.watch import Watch
from lazynp.backends.cuda.words import PAIR
from lazynp.codegen.ir import COUNTERS
from lazynp.graph import report
from lazynp.graph.node import Shape, caller
from lazynp.values import config, forking, pressure
from lazynp.values.allocator import readable
from lazynp.values.buffer import Buffer

LARGE: Final = 1 << 20  # bytes from which on a buffer is remembered, to be named when memory runs out
NAMED: Final = 5
# Bytes up to which an upload is queued with the kernels: the driver takes that much at once, and their order costs nothing there.
SMALL: Final = 64 << 10


class DeviceBlock:
    """Memory lent by CuPy's pool, which takes it back when the block is garbage.

    ``stream`` is the one that the memory belongs to: code that works on it in another stream orders the two.
    """

    __slots__ = ("__weakref__", "address", "nbytes", "place", "pointer", "stream")

    def __init__(self, place: Place, pointer: Any, nbytes: int, stream: Any) -> None:
        self.place = place
        self.pointer = pointer
        self.address: int = pointer.ptr
        self.nbytes = nbytes
        self.stream = stream

    def join(self, run: Run) -> None:
        """Order the work of a run after what other streams did to the memory, and what they will do to it after the run."""
        other = self.stream
        if other is not run.stream and other not in run.others:
            self.place.order(other, run.stream)
            run.others.append(other)

    def awaited(self, current: Any) -> None:
        """Make what is put into a stream from now on come after what was done to the memory."""
        if current != self.stream:
            self.place.order(self.stream, current)


class DeviceBuffer(Buffer):
    """A value in device memory; its ``array`` is a copy in host memory, made when first asked for.

    ``origin`` is the host buffer that it was uploaded from, while that lives.  ``exported``: others know the address.
    """

    __slots__ = ("device", "exported", "origin", "place")
    block: DeviceBlock  # type: ignore[assignment]  # it has no view

    def __init__(self, block: DeviceBlock, dtype: np.dtype[Any], shape: Shape) -> None:
        self._array = None
        self._address = block.address
        self._lease = None
        self.shared = False
        self.views = None
        self.ends = None
        self.block = block
        self.dtype = dtype
        self.shape = shape
        self.place = block.place
        self.device = block.place.name
        self.origin: ref[Buffer] | None = None
        self.exported = False

    @property
    def at_hand(self) -> np.ndarray[Any, Any] | None:
        if self._array is None and self.origin is not None:
            origin = self.origin()
            return None if origin is None else origin.array
        return self._array

    def _exported(self) -> np.ndarray[Any, Any]:
        with forking.graph:
            array = self.at_hand
            if array is None:
                array = self._array = self.place.downloaded(self)
            return array

    def exclusive(self) -> bool:
        return not (self.shared or self.exported or self.origin is not None)

    def retyped(self, dtype: np.dtype[Any], shape: Shape) -> DeviceBuffer:
        return DeviceBuffer(self.block, dtype, shape)

    def at_home(self, device: str) -> Buffer:
        return self

    def recover(self, saved: list[tuple[Any, Any]]) -> None:
        """The value as it was before ``saved`` was overwritten, in memory of its own; its block has become another's."""
        place = self.place
        with place.running() as run:
            place.joined(run, self.block)
            block = place.allocate(self.nbytes)
            start, offset = self.address, block.address - self.address
            place.copy(block.address, start, self.nbytes, run)
            for span, old in reversed(saved):
                if start <= span.address < start + self.nbytes:
                    place.copy(span.address + offset, old.address, span.nbytes, run)
        self.block = block
        self._address = block.address


class Span:
    """Device memory that a claim saves and restores; see ``ownership.Claim``."""

    __slots__ = ("address", "block", "nbytes")

    def __init__(self, block: DeviceBlock, address: int, nbytes: int) -> None:
        self.block = block
        self.address = address
        self.nbytes = nbytes

    def copy(self) -> Span:
        place = self.block.place
        with place.running() as run:
            place.joined(run, self.block)
            block = place.allocate(self.nbytes)
            place.copy(block.address, self.address, self.nbytes, run)
        return Span(block, block.address, self.nbytes)

    def __setitem__(self, key: Any, value: Span) -> None:
        place = self.block.place
        with place.running() as run:
            place.joined(run, self.block)
            place.copy(self.address, value.address, self.nbytes, run)


class Lease:
    """A stream of a thread's, which another one may have when the thread has ended."""

    __slots__ = ("stream", "streams")

    def __init__(self, place: Place) -> None:
        self.streams = place._streams
        self.stream = place.leased()

    def __del__(self) -> None:
        self.streams.append(self.stream)


class Place:
    """One GPU."""

    def __init__(self, number: int) -> None:
        from lazynp.backends.cuda.transfers import Uploads

        self.cupy = driver.cupy()
        self.runtime = self.cupy.cuda.runtime
        self.number = number
        self.name = f"cuda:{number}"
        self.device = self.cupy.cuda.Device(number)
        properties = self.runtime.getDeviceProperties(number)
        self.title: str = properties["name"].decode() if isinstance(properties["name"], bytes) else properties["name"]
        self.capability = (int(properties["major"]), int(properties["minor"]))
        self.shared = int(properties["sharedMemPerBlockOptin"])  # bytes of shared memory that a block may have
        self.account = pressure.Account(self, int(properties["totalGlobalMem"]))
        # What lives as long as streams do has a pool of its own: in a free block of another one it would keep that from being given back.
        self.lasting = self.cupy.cuda.MemoryPool()
        self.local: Any = Local()
        self._streams: list[Any] = []  # of threads that have ended
        self._twins: WeakKeyDictionary[Buffer, DeviceBuffer] = WeakKeyDictionary()
        self._large: WeakSet[DeviceBuffer] = WeakSet()
        self._watch: Watch | None = None
        self.uploads = Uploads(self)
        self.backend: Any = None  # what compiles and launches here; the engine makes it

    def __repr__(self) -> str:
        return f"<{self.name}: {self.title}>"

    # Streams ---------------------------------------------------------------------------------------------------------------

    def stream(self) -> Any:
        """The stream of this thread.

        It waits for the default stream and is waited for by it, so that what users of CuPy do there with our memory is in order.
        """
        found = self.local.stream
        if found is None:
            lease = self.local.lease = Lease(self)
            found = self.local.stream = lease.stream
        return found

    def leased(self) -> Any:
        """A stream that no thread has; none is ever destroyed, for CuPy keeps memory by streams' handles, which CUDA gives again."""
        try:
            return self._streams.pop()
        except IndexError:
            with self.device:
                return self.cupy.cuda.Stream()

    def running(self) -> Run:
        """Make this device and this thread's stream CuPy's current ones, within the block."""
        run = self.local.run
        return Run(self, self.stream()) if run is None else run

    @contextmanager
    def apart(self, stream: Any) -> Iterator[None]:
        """Make another stream the current one within the block, inside a run; what a finalizer computes meanwhile is a run of its own."""
        local = self.local
        run, local.run = local.run, None
        try:
            with stream:
                yield
        finally:
            local.run = run

    @contextmanager
    def range(self, text: str) -> Iterator[None]:
        """Give a name to what the host does within the block, and to what it launches, for profilers (an NVTX range)."""
        nvtx = self.cupy.cuda.nvtx
        nvtx.RangePush(text)
        try:
            yield
        finally:
            nvtx.RangePop()

    def joined(self, run: Run, block: DeviceBlock) -> Run:
        """Order the work of this run after what other streams did to a block, and what they will do after this run."""
        block.join(run)
        return run

    def reached(self, stream: Any) -> Any:
        """An event: what is in a stream now is done."""
        return stream.record(self.cupy.cuda.Event(disable_timing=True))

    def order(self, first: Any, then: Any) -> None:
        """Make what is put into a stream from now on wait for what is in another one by now."""
        event = self.local.event  # a wait is for what was recorded last when it is asked for: one event does for all
        if event is None:
            event = self.local.event = self.cupy.cuda.Event(disable_timing=True)
        first.record(event)
        then.wait_event(event)

    def synchronize(self) -> None:
        """Wait for this thread's work."""
        self.stream().synchronize()

    # Memory ----------------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> DeviceBlock:
        """Device memory with undefined contents; within ``running``.

        Raises
        ------
        MemoryError
            There is none, even without what CuPy and we keep for reuse.
        """
        return DeviceBlock(self, self.obtained(nbytes, self.cupy.cuda.alloc), nbytes, self.local.stream)

    def allocate_lasting(self, nbytes: int) -> DeviceBlock:
        """The same for a little that is kept for as long as the stream is."""
        return DeviceBlock(self, self.obtained(nbytes, self.lasting.malloc), nbytes, self.local.stream)

    def obtained(self, nbytes: int, malloc: Callable[[int], Any]) -> Any:
        """A pointer to memory that is given back when the pointer is garbage; raises as ``allocate``."""
        try:
            return malloc(nbytes or 1)
        except self.cupy.cuda.memory.OutOfMemoryError:
            pass
        try:
            return self.retrying(lambda: malloc(nbytes or 1))
        except self.cupy.cuda.memory.OutOfMemoryError:
            raise MemoryError(self._full(nbytes)) from None

    def retrying(self, call: Callable[[], Any]) -> Any:
        """Return what ``call`` gives; it may run again after uploads that are not wanted any more were freed, and once more after
        copies of host buffers, garbage and what CuPy keeps for reuse were."""
        for thorough in (False, True) if self.uploads.leaving else (True,):
            try:
                return call()
            except self.cupy.cuda.memory.OutOfMemoryError:
                pass
            if thorough:
                self.give_back()
            self.uploads.give_back(-1)
        self.cupy.get_default_memory_pool().free_all_blocks()
        return call()

    def give_back(self) -> None:
        """Give up what is kept because it may be wanted again: copies of host buffers, garbage, memory that plans of FFTs work in."""
        rechecks.look()  # runs that are not looked at yet hold their inputs
        self._twins.clear()
        self.cupy.fft.config.clear_plan_cache()
        gc.collect()
        self.synchronize()

    def free(self) -> int:
        """Give back all memory without references; tells how many bytes the pool has less."""
        pool = self.cupy.get_default_memory_pool()
        with self.running():
            before: int = pool.total_bytes()
            self.give_back()
            self.uploads.give_back(-1)
            pool.free_all_blocks()
            return before - int(pool.total_bytes())

    def memory(self) -> dict[str, Any]:
        """Return what is held there: see ``lazynp.cuda.memory``."""
        pool = self.cupy.get_default_memory_pool()
        with self.running():
            free, total = self.device.mem_info
            return {
                "device": self.name, "total": int(total), "free": int(free), "pool_used": int(pool.used_bytes()),
                "pooled": int(pool.free_bytes()), "copies": sum([twin.nbytes for twin in list(self._twins.values())]),
            }  # fmt: skip

    def budget(self) -> int:
        """Bytes that one run may need there besides what exists before it."""
        if config.memory is not None:
            return config.memory
        with self.running():
            free: int = self.device.mem_info[0]
            return (free + int(self.cupy.get_default_memory_pool().free_bytes())) // pressure.FREE_SHARE

    def _full(self, nbytes: int) -> str:
        try:
            free, total = self.device.mem_info
            room = f"{readable(free)} of {readable(total)} are free"
        except self.runtime.CUDARuntimeError:
            room = "its memory is full"
        large = sorted(self._large, key=lambda buffer: -buffer.nbytes)[:NAMED]
        held = ", ".join(f"{buffer.dtype}{list(buffer.shape)} ({readable(buffer.nbytes)})" for buffer in large)
        return f"Unable to allocate {readable(nbytes)} on {self.name}: {room}" + (f"; the largest arrays there: {held}" if held else "")

    def buffer(self, nbytes: int, dtype: np.dtype[Any], shape: Shape) -> DeviceBuffer:
        """A buffer with undefined contents; within ``running``."""
        made = DeviceBuffer(self.allocate(nbytes), dtype, shape)
        return made if nbytes < LARGE else self._counted(made)

    def _counted(self, buffer: DeviceBuffer) -> DeviceBuffer:
        if buffer.nbytes >= LARGE:
            self._large.add(buffer)
            self.account.count(buffer)
        return buffer

    def watched(self) -> Watch:
        """Return what looks through results of libraries."""
        if self._watch is None:
            self._watch = Watch(self)
        return self._watch

    def counters(self, run: Run) -> int:
        """The address of this stream's counters of blocks: each launch that uses one leaves it at 0.

        Behind them is a pair of words that kernels may set and that is not read.
        """
        block = self.local.counters
        if block is None:
            block = self.local.counters = self.allocate_lasting(4 * COUNTERS + PAIR)
            self.runtime.memsetAsync(block.address, 0, block.nbytes, run.ptr)
        return block.address

    def copy(self, target: int, source: int, nbytes: int, run: Run) -> None:
        """Copy within the device."""
        if nbytes:
            piece = Copy(self.runtime, target, source, nbytes)
            if run.queue is None:
                piece.put(run.stream)
            else:
                run.queue.work.append(piece)

    # Transfers -------------------------------------------------------------------------------------------------------------

    def uploaded(self, buffer: Buffer) -> DeviceBuffer:
        """The same value in this device's memory: itself, or a copy that is kept as long as the original lives."""
        if buffer.place is self:
            assert isinstance(buffer, DeviceBuffer)
            return buffer
        twin = self._twins.get(buffer)
        if twin is not None:
            return twin
        if isinstance(buffer, DeviceBuffer) and buffer.at_hand is None:
            return self._from_another(buffer)
        array, nbytes = buffer.array, buffer.nbytes
        with self.running() as run:
            if nbytes > SMALL:
                twin = self._counted(DeviceBuffer(self.uploads.upload(array), buffer.dtype, buffer.shape))
            else:
                twin = self.buffer(nbytes, buffer.dtype, buffer.shape)
                if nbytes:
                    # From ordinary memory: it has been read when the call returns.
                    address: int = array.__array_interface__["data"][0]
                    self.runtime.memcpyAsync(twin.address, address, nbytes, self.runtime.memcpyHostToDevice, run.ptr)
        report.count_transfer(f"to {self.name}", nbytes, caller())
        twin.origin = ref(buffer)
        self._twins[buffer] = twin
        return twin

    def _from_another(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """A copy of a value of another GPU, which does not come to the host: the driver goes around it where it can."""
        there, block = buffer.place, buffer.block
        with self.running() as run:
            twin = self.buffer(buffer.nbytes, buffer.dtype, buffer.shape)
            if buffer.nbytes:
                with there.running() as source:  # an event is recorded in a stream of its own device
                    block.join(source)
                    made = there.reached(source.stream)
                    with self.device:
                        run.stream.wait_event(made)
                        self.runtime.memcpyPeerAsync(twin.address, self.number, block.address, there.number, buffer.nbytes, run.ptr)
                        copied = self.reached(run.stream)
                    source.stream.wait_event(copied)  # before the memory is used again
        report.count_transfer(f"from {there.name} to {self.name}", buffer.nbytes, caller())
        twin.origin = ref(buffer)
        self._twins[buffer] = twin
        return twin

    def downloaded(self, buffer: DeviceBuffer) -> np.ndarray[Any, Any]:
        """The value in host memory, read-only."""
        found = np.empty(buffer.shape, buffer.dtype)
        self.read(buffer.block, buffer.address, found)
        report.count_transfer(f"from {self.name}", buffer.nbytes, caller())
        found.flags.writeable = False
        if rechecks.later or rechecks.looked:
            rechecks.tell()  # what was computed before is done
        return found

    def read(self, block: DeviceBlock, address: int, into: np.ndarray[Any, Any]) -> None:
        """Copy device memory into an array, and wait for it."""
        if into.nbytes:
            with self.running() as run:
                self.joined(run, block)
                self.uploads.download(address, into, run)

    # CuPy's arrays -----------------------------------------------------------------------------------------------------------

    def lent(self, buffer: DeviceBuffer, shape: Shape, dtype: np.dtype[Any], offset: int = 0, strides: Shape | None = None) -> Any:
        """The buffer's memory as an array of CuPy's, which keeps it; what this thread does with it next waits for our work."""
        memory = self.cupy.cuda.UnownedMemory(buffer.address, buffer.nbytes, buffer.block, self.number)
        buffer.block.awaited(self.cupy.cuda.get_current_stream())
        return self.cupy.ndarray(shape, dtype, self.cupy.cuda.MemoryPointer(memory, offset), strides)

    def kept(self, array: Any, run: Run) -> DeviceBuffer:
        """An array that CuPy made just now, in this run, as a buffer of our own."""
        if not array.flags.c_contiguous:
            array = self.cupy.ascontiguousarray(array)
        if isinstance(array.data.mem, self.cupy.cuda.UnownedMemory):
            array = array.copy()  # it shows memory of an operand
        return self._counted(DeviceBuffer(DeviceBlock(self, array.data, array.nbytes, run.stream), array.dtype, array.shape))

    def adopted(self, array: Any) -> DeviceBuffer:
        """A C-contiguous array of CuPy's as a buffer; the memory is shared, and we never write to it."""
        found = DeviceBuffer(DeviceBlock(self, array.data, array.nbytes, self.cupy.cuda.get_current_stream()), array.dtype, array.shape)
        found.exported = True
        return found


_places: dict[str, Place] = {}


def place(name: str) -> Place:
    """The GPU of that name; raises ``ValueError`` where it is not there."""
    found = _places.get(name)
    if found is None:
        number = driver.checked(name)
        with forking.loading:
            found = _places.get(name)
            if found is None:
                found = _places[name] = Place(number)
                pressure.devices[name] = found.account
    return found


def forget() -> None:
    """Let go of all devices: for tests, which install and remove CuPy."""
    _places.clear()
    pressure.devices.clear()
    pressure.crowded.clear()
    driver.forget()


def _forked() -> None:
    for found in _places.values():
        found.local = Forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
