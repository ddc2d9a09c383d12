"""Device memory and pinned memory: what is where, and whether it may be touched now.

In: sizes, addresses.  Out: blocks between guard pages, copies, NumPy views of device memory.  Promise: nothing outside a live block is
touched from here: a copy or a library function that would is a ``Violation``; a kernel that does faults in the emulator.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import threading
from typing import Any

import numpy as np

from gpu_emulator import execution
from gpu_emulator.fakecupy.errors import CUDARuntimeError
from gpu_emulator.fakecupy.machine import StreamState, machine

UNIT = 512 # what sizes are rounded up to, as the pool and the device do
POISON = 0xFF # a NaN in every float, and -1 in every integer


def rounded(size: int) -> int:
    return -(-size // UNIT) * UNIT


class Block:
    """Memory of a device: ``size`` bytes at ``address``; whether it is live for work that runs now; whether its address faults."""

    __slots__ = ("address", "device", "gone", "live", "size")

    def __init__(self, address: int, size: int, device: int) -> None:
        self.address, self.size, self.device, self.live, self.gone = address, size, device, True, False


class Pinned:
    """Page-locked memory of the host."""

    __slots__ = ("address", "live", "owner", "size")

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.address, self.size, self.owner, self.live = address, size, owner, True


class Ranges:
    """Blocks by address; any thread may ask while another one adds."""

    def __init__(self) -> None:
        self.lock = threading.RLock() # a collection within may free blocks
        self.starts: list[int] = []
        self.blocks: dict[int, Any] = {}

    def add(self, block: Any) -> None:
        """A new block; freed ones whose addresses it has are forgotten."""
        with self.lock:
            at = bisect.bisect_left(self.starts, block.address)
            if at and self.blocks[self.starts[at - 1]].address + self.blocks[self.starts[at - 1]].size > block.address:
                at -= 1
            while at < len(self.starts) and self.starts[at] < block.address + max(block.size, 1):
                del self.blocks[self.starts.pop(at)]
            self.starts.insert(at, block.address)
            self.blocks[block.address] = block

    def remove(self, block: Any) -> None:
        with self.lock:
            if self.blocks.pop(block.address, None) is not None:
                del self.starts[bisect.bisect_left(self.starts, block.address)]

    def before(self, address: int) -> Any:
        """The last block that begins at or before the address, or None."""
        with self.lock:
            at = bisect.bisect_right(self.starts, address) - 1
            return self.blocks[self.starts[at]] if at >= 0 else None

    def find(self, address: int) -> Any:
        """The block that holds the address; a block without bytes holds its own."""
        block = self.before(address)
        return block if block is not None and address < block.address + max(block.size, 1) else None

    def near(self, address: int) -> bool:
        """Whether it is the end of a block, where an empty view may begin."""
        block = self.before(address)
        return block is not None and address <= block.address + block.size + 64


class Store:
    """The memory of all devices of one machine."""

    def __init__(self, devices: int, capacity: int) -> None:
        self.device = Ranges()
        self.pinned = Ranges()
        self.used = [0] * devices
        self.capacity = capacity
        self.peers: set[tuple[int, int]] = set()
        self.spare: dict[int, list[Pinned]] = {} # freed pinned memory by size

    # device memory

    def allocate(self, size: int, device: int) -> Block:
        with self.device.lock:
            if self.used[device] + rounded(size) > self.capacity:
                raise CUDARuntimeError(2)
            self.used[device] += rounded(size)
        block = Block(execution.allocate(size), size, device)
        self.device.add(block)
        return block

    def release(self, block: Block) -> None:
        """Back to the device; from now on touching it is a fault."""
        with self.device.lock:
            self.used[block.device] -= rounded(block.size)
        self.discard(block)

    def discard(self, block: Block) -> None:
        """Make its address unusable for ever; what it counts stays with whoever counts."""
        if not block.gone:
            block.live, block.gone = False, True
            execution.free(block.address)

    def close(self) -> list[BaseException]:
        """Free what nobody freed; what the guards have to say."""
        found: list[BaseException] = []
        for block in self.device.blocks.values():
            try:
                self.discard(block)
            except execution.EmulationError as error:
                found.append(error)
        return found

    # checks

    def kind(self, address: int) -> str:
        return "device" if self.device.find(address) is not None else "pinned" if self.pinned.find(address) is not None else "pageable"

    def check(self, address: int, size: int, what: str) -> None:
        """That ``size`` bytes at a device or pinned address may be touched by work that runs now."""
        if not size:
            return
        block = self.device.find(address) or self.pinned.find(address)
        if block is None:
            raise machine().violation(f"{what}: {address:#x} is not in device memory")
        if not block.live:
            raise machine().violation(f"{what}: {size} bytes at {address:#x}, in a block that was freed")
        if address + size > block.address + block.size:
            over = address + size - block.address - block.size
            raise machine().violation(f"{what}: {size} bytes at {address:#x} end {over} bytes after their block of {block.size}")

    def fill(self, address: int, value: int, size: int, what: str) -> None:
        self.check(address, size, what)
        ctypes.memset(address, value, size)

    def copy(self, target: int, source: int, size: int, what: str) -> None:
        for address in (target, source):
            if self.kind(address) != "pageable":
                self.check(address, size, what)
        ctypes.memmove(target, source, size)

    # pinned memory

    def pin(self, size: int) -> Pinned:
        with contextlib.suppress(KeyError, IndexError):
            pinned = self.spare[size].pop()
            pinned.live = True
            return pinned
        owner = np.full(max(size, 1) + 64, POISON, np.uint8)
        start = -owner.ctypes.data % 64
        pinned = Pinned(owner.ctypes.data + start, size, owner)
        self.pinned.add(pinned)
        return pinned

    def unpin(self, pinned: Pinned) -> None:
        """The memory may be another's at once: nothing waits for copies from or to it."""
        pinned.live = False
        ctypes.memset(pinned.address, POISON, pinned.size)
        self.spare.setdefault(pinned.size, []).append(pinned)


def store() -> Store:
    return machine().store


def host_view(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A NumPy array over any memory; nothing is touched by making it."""
    if 0 in shape or not dtype.itemsize:
        return np.empty(shape, dtype)
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(shape, dtype, memory, -low, strides)


def extent(address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The first byte and the number of bytes that an array spans."""
    if 0 in shape:
        return address, 0
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + itemsize
    return address + low, high - low


def checked_view(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], what: str) -> np.ndarray[Any, Any]:
    """A view for work that runs now."""
    store().check(*extent(address, shape, strides, dtype.itemsize), what)
    return host_view(address, shape, strides, dtype)


# copies, as the runtime orders them

TO_DEVICE, TO_HOST, ON_DEVICE, BY_ADDRESS, ON_HOST = 1, 2, 3, 4, 0
_SIDES = {TO_DEVICE: (True, False), TO_HOST: (False, True), ON_DEVICE: (True, True), ON_HOST: (False, False)}


def _check_direction(target: int, source: int, kind: int) -> None:
    if kind == BY_ADDRESS:
        return
    if kind not in _SIDES:
        raise CUDARuntimeError(21)
    if tuple(store().kind(address) == "device" for address in (target, source)) != _SIDES[kind]:
        raise CUDARuntimeError(1)


def copy_async(target: int, source: int, size: int, kind: int, stream: StreamState) -> None:
    """Pinned memory is read and written when the copy runs; pageable memory is staged on the way in and waited for on the way out."""
    if not size:
        return
    _check_direction(target, source, kind)
    memory, fake = store(), machine()
    fake.copies += 1
    what = f"copy of {size} bytes in stream {stream.handle:#x}"
    pageable = [memory.kind(address) == "pageable" for address in (target, source)]
    if any(pageable) and stream.capture is not None:
        fake.invalidate(stream)
        raise CUDARuntimeError(900)
    if pageable[1] and not pageable[0]:
        staged = ctypes.string_at(source, size)

        def work() -> None:
            memory.check(target, size, what)
            ctypes.memmove(target, staged, size)

        fake.enqueue(stream, work, what)
        return
    if memory.kind(target) == "pinned" and stream.capture is None:
        ctypes.memset(target, POISON, size) # until the copy has run, what is there means nothing
    fake.enqueue(stream, lambda: memory.copy(target, source, size, what), what)
    if pageable[0]:
        fake.synchronize_stream(stream)


def copy_now(target: int, source: int, size: int, kind: int) -> None:
    """The synchronous copy: in the legacy stream, and waited for."""
    fake = machine()
    fake.refuse_capture(fake.device)
    if not size:
        return
    _check_direction(target, source, kind)
    memory = store()
    legacy = fake.stream(0)
    what = f"copy of {size} bytes"
    fake.enqueue(legacy, lambda: memory.copy(target, source, size, what), what)
    fake.synchronize_stream(legacy)


def fill_async(target: int, value: int, size: int, stream: StreamState) -> None:
    memory = store()
    if memory.kind(target) == "pageable":
        raise CUDARuntimeError(1)
    what = f"memset of {size} bytes in stream {stream.handle:#x}"
    machine().enqueue(stream, lambda: memory.fill(target, value, size, what), what)
