"""``cupy.cuda.memory``: memory objects, pointers, the pool.

In: sizes, pointers, streams.  Out: ``MemoryPointer`` objects that keep their memory alive.  Promise: the pool counts as CuPy's does
(sizes rounded to 512 bytes, an arena for each stream, best fit with split chunks, a limit that counts free chunks too); memory is given
back in stream order, so that work of the block's own stream may still use it and any other may not.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from gpu_emulator.fakecupy import blocks
from gpu_emulator.fakecupy.blocks import Block, rounded, store
from gpu_emulator.fakecupy.errors import CUDARuntimeError, OutOfMemoryError
from gpu_emulator.fakecupy.machine import StreamState, machine


def _device(number: int) -> Any:
    from gpu_emulator.fakecupy.device import Device

    return Device(number)


def _current() -> StreamState:
    from gpu_emulator.fakecupy.stream import get_current_stream

    return get_current_stream()._state


def _state(stream: Any) -> StreamState:
    return _current() if stream is None else machine().stream(stream.ptr)


def _address(pointer: Any) -> int:
    return int(pointer if isinstance(pointer, int) else pointer.value or 0)


class BaseMemory:
    """``ptr``, ``size``, ``device_id``."""

    ptr: int
    size: int
    device_id: int

    def __int__(self) -> int:
        return self.ptr

    @property
    def device(self) -> Any:
        return _device(self.device_id)


class Memory(BaseMemory):
    """Memory straight from the device."""

    def __init__(self, size: int) -> None:
        self.ptr, self.size, self.device_id = 0, size, machine().device
        self._block: Block | None = None
        self._store = store()
        if size:
            self._block = self._store.allocate(size, self.device_id)
            self.ptr = self._block.address

    def __del__(self) -> None:
        block = getattr(self, "_block", None)
        if block is not None:
            with contextlib.suppress(RuntimeError):
                machine().drain(self.device_id) # as cudaFree does
            self._store.release(block)


class UnownedMemory(BaseMemory):
    """Memory that somebody else owns."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        if device_id < 0:
            if ptr == 0:
                device_id = machine().device
            else:
                block = store().device.find(ptr)
                if block is None:
                    raise RuntimeError("Unable to determine a device from a pointer. Please specify `device_id`.")
                device_id = block.device
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


class MemoryPointer:
    """A place in a memory object, which it keeps alive."""

    def __init__(self, mem: BaseMemory, offset: int) -> None:
        if not (mem.ptr or not offset):
            raise ValueError("offset without memory")
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    @property
    def device(self) -> Any:
        return _device(self.device_id)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        if size:
            blocks.copy_async(self.ptr, src.ptr, size, blocks.ON_DEVICE, machine().stream(0))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        blocks.copy_async(self.ptr, src.ptr, size, blocks.ON_DEVICE, _state(stream))

    def copy_from_host(self, mem: Any, size: int) -> None:
        blocks.copy_now(self.ptr, _address(mem), size, blocks.TO_DEVICE)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        blocks.copy_async(self.ptr, _address(mem), size, blocks.TO_DEVICE, _state(stream))

    def copy_from(self, mem: Any, size: int) -> None:
        (self.copy_from_device if isinstance(mem, MemoryPointer) else self.copy_from_host)(mem, size)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        (self.copy_from_device_async if isinstance(mem, MemoryPointer) else self.copy_from_host_async)(mem, size, stream)

    def copy_to_host(self, mem: Any, size: int) -> None:
        blocks.copy_now(_address(mem), self.ptr, size, blocks.TO_HOST)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        blocks.copy_async(_address(mem), self.ptr, size, blocks.TO_HOST, _state(stream))

    def memset(self, value: int, size: int) -> None:
        blocks.fill_async(self.ptr, value, size, machine().stream(0))

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        blocks.fill_async(self.ptr, value, size, _state(stream))


class _Chunk:
    """A part of memory that the pool got from the device: split off and merged as sizes ask for it.  Counts only: addresses are blocks'."""

    __slots__ = ("following", "preceding", "size", "spare", "stream")

    def __init__(self, size: int, stream: StreamState) -> None:
        self.size, self.stream = size, stream
        self.preceding: _Chunk | None = None
        self.following: _Chunk | None = None
        self.spare: Block | None = None # the block that it was last, whole

    def split(self, size: int) -> _Chunk | None:
        """Keep ``size`` bytes; the rest is another chunk."""
        if self.size == size:
            return None
        rest = _Chunk(self.size - size, self.stream)
        rest.preceding, rest.following = self, self.following
        if self.following is not None:
            self.following.preceding = rest
        self.following, self.size, self.spare = rest, size, None
        return rest

    def merge(self, other: _Chunk) -> None:
        self.size += other.size
        self.following = other.following
        if other.following is not None:
            other.following.preceding = self
        self.spare = None


class PooledMemory(BaseMemory):
    """Memory of a pool; goes back to it when it is dropped."""

    def __init__(self, chunk: Any, pool: Any) -> None:
        self._chunk, self._pool = chunk, pool
        self.size, self.device_id = chunk.size, pool()._device_id
        self.ptr = 0
        self._block: Block | None = None

    @property
    def pool(self) -> Any:
        return self._pool

    def free(self) -> None:
        self.ptr, block = 0, self._block
        self._block = None
        pool = self._pool()
        if block is not None and pool is not None:
            pool._late.append((self._chunk, block))
            if not pool._lock._is_owned(): # the collector may come here in the midst of the pool's own work
                pool._drain()

    def __del__(self) -> None:
        if getattr(self, "_block", None) is not None:
            self.free()


class SingleDeviceMemoryPool:
    """The pool of one device."""

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None) -> None:
        self._device_id = machine().device
        self._machine, self._store = machine(), store()
        self._used: dict[_Chunk, None] = {}
        self._arenas: dict[StreamState, dict[_Chunk, None]] = {}
        self._total = self._limit = 0
        self._lock: Any = machine().lock
        self._late: deque[tuple[_Chunk, Block]] = deque()

    def _drain(self) -> None:
        """Take back what was dropped."""
        with self._lock:
            while self._late:
                self._free(*self._late.popleft())

    def malloc(self, size: int) -> MemoryPointer:
        if not size:
            return MemoryPointer(Memory(0), 0)
        wanted, stream = rounded(size), _current()
        with self._lock:
            self._drain()
            arena = self._arenas.setdefault(stream, {})
            fitting = [chunk for chunk in arena if chunk.size >= wanted]
            if fitting:
                chunk = min(fitting, key=lambda found: found.size)
                del arena[chunk]
                rest = chunk.split(wanted)
                if rest is not None:
                    arena[rest] = None
            else:
                self._reserve(wanted)
                chunk = _Chunk(wanted, stream)
            memory = PooledMemory(chunk, weakref.ref(self))
            memory._block = self._place(chunk, size)
            memory.ptr = memory._block.address
            self._used[chunk] = None
            return MemoryPointer(memory, 0)

    def _reserve(self, size: int) -> None:
        """Count ``size`` more bytes of the device, as the real pool gets them: a limit is kept at once, a full device after freeing."""
        if self._limit and self._total + size > self._limit:
            raise OutOfMemoryError(size, self._total, self._limit)
        for attempt in range(3):
            if self._store.used[self._device_id] + size <= self._store.capacity:
                self._store.used[self._device_id] += size
                self._total += size
                return
            if attempt == 1:
                gc.collect()
            self.free_all_blocks()
        raise OutOfMemoryError(size, self._total, self._limit)

    def _place(self, chunk: _Chunk, size: int) -> Block:
        """Bytes for a chunk: the address that it had before, if it is whole and the adversary wants it so, else one never used before."""
        block, chunk.spare = chunk.spare, None
        if block is not None and block.size == size and chunk.stream.capture is None:
            self._machine.enqueue(chunk.stream, lambda: _revive(block), "reuse of memory", quiet=True)
            return block
        block = Block(blocks.execution.allocate(size), size, self._device_id)
        self._store.device.add(block)
        return block

    def _free(self, chunk: _Chunk, block: Block) -> None:
        with self._lock:
            del self._used[chunk]
            memory, fake = self._store, self._machine
            keep = not block.gone and fake.random.random() < fake.policy.reuse and chunk.stream.capture is None
            chunk.spare = block if keep else None
            if chunk.stream.capture is None:
                fake.enqueue(chunk.stream, lambda: _retire(memory, block, keep), "free of memory", quiet=True)
            else: # what is being recorded does not run now: when it does, the memory is another's
                after = () if chunk.stream.tail is None else (chunk.stream.tail,)
                fake.append(chunk.stream, lambda: _retire(memory, block, keep), "free of memory", after)
            arena = self._arenas.setdefault(chunk.stream, {})
            other = chunk.following
            if other is not None and other in arena:
                del arena[other]
                chunk.merge(other)
            other = chunk.preceding
            if other is not None and other in arena:
                del arena[other]
                other.merge(chunk)
                chunk = other
            arena[chunk] = None

    def free_all_blocks(self, stream: Any = None) -> None:
        wanted = None if stream is None else machine().stream(stream.ptr)
        with self._lock:
            self._drain()
            for owner, arena in self._arenas.items():
                if wanted is None or owner is wanted:
                    for chunk in [c for c in arena if c.preceding is None and c.following is None]:
                        self._machine.drain(self._device_id) # giving memory back waits for the device
                        del arena[chunk]
                        self._total -= chunk.size
                        self._store.used[self._device_id] -= chunk.size
                        if chunk.spare is not None:
                            self._store.discard(chunk.spare)

    def n_free_blocks(self) -> int:
        self._drain()
        return sum(map(len, self._arenas.values()))

    def used_bytes(self) -> int:
        self._drain()
        return sum(chunk.size for chunk in list(self._used))

    def free_bytes(self) -> int:
        self._drain()
        return sum(chunk.size for arena in self._arenas.values() for chunk in arena)

    def total_bytes(self) -> int:
        return self._total

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = int(fraction * self._store.capacity)
        if (size or 0) < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        self._limit = int(size or 0)

    def get_limit(self) -> int:
        return self._limit


def _revive(block: Block) -> None:
    block.live = True


def _retire(memory: blocks.Store, block: Block, keep: bool) -> None:
    """A block that was freed, in its stream's order: nothing in it means anything any more."""
    if keep:
        memory.fill(block.address, blocks.POISON, block.size, "free of memory")
        block.live = False
    else:
        memory.discard(block)


class MemoryPool:
    """A pool for each device."""

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None) -> None:
        self._pools: dict[int, SingleDeviceMemoryPool] = {}

    def _here(self) -> SingleDeviceMemoryPool:
        device = machine().device
        if device not in self._pools:
            self._pools[device] = SingleDeviceMemoryPool()
        return self._pools[device]

    def malloc(self, size: int) -> MemoryPointer:
        return self._here().malloc(size)

    def free_all_blocks(self, stream: Any = None) -> None:
        self._here().free_all_blocks(stream)

    def n_free_blocks(self) -> int:
        return self._here().n_free_blocks()

    def used_bytes(self) -> int:
        return self._here().used_bytes()

    def free_bytes(self) -> int:
        return self._here().free_bytes()

    def total_bytes(self) -> int:
        return self._here().total_bytes()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        self._here().set_limit(size, fraction)

    def get_limit(self) -> int:
        return self._here().get_limit()


_local = threading.local()


def _malloc(size: int) -> MemoryPointer:
    """The allocator that uses no pool."""
    try:
        return MemoryPointer(Memory(rounded(size)), 0)
    except CUDARuntimeError as error:
        if error.status != 2:
            raise
        raise OutOfMemoryError(rounded(size), store().used[machine().device]) from None


def get_default_memory_pool() -> MemoryPool:
    return machine().pool


def get_allocator() -> Callable[[int], MemoryPointer]:
    return getattr(_local, "allocator", None) or machine().allocator


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    if getattr(_local, "allocator", None) is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    machine().allocator = allocator or _malloc


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    before = getattr(_local, "allocator", None)
    _local.allocator = allocator or _malloc
    try:
        yield
    finally:
        _local.allocator = before


def alloc(size: int) -> MemoryPointer:
    return get_allocator()(size)
