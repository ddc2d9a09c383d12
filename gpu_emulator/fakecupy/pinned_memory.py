"""``cupy.cuda.pinned_memory``: page-locked memory of the host.

In: sizes.  Out: ``PinnedMemoryPointer`` objects, which are buffers.  Promise: memory that is dropped is overwritten and given out again
at once, as the real pool does, whatever copies are still to come.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gpu_emulator.fakecupy.blocks import Store, rounded, store
from gpu_emulator.fakecupy.machine import machine


class PinnedMemory:
    def __init__(self, size: int, flags: int = 0) -> None:
        self._store: Store = store()
        self._pinned = self._store.pin(size)
        self.ptr, self.size = self._pinned.address, size

    def __del__(self) -> None:
        if hasattr(self, "_pinned"):
            self._store.unpin(self._pinned)


class PinnedMemoryPointer:
    """A place in pinned memory; it exports a buffer of the bytes from there on."""

    mem: Any
    ptr: int

    def __new__(cls, mem: Any, offset: int) -> PinnedMemoryPointer:
        size = mem.size - offset
        pointer: Any = type(cls.__name__, (cls, ctypes.c_char * size), {}).from_address(mem.ptr + offset)
        pointer.mem, pointer.ptr = mem, mem.ptr + offset
        return pointer

    def __init__(self, mem: Any, offset: int) -> None:
        """Not that of the buffer's class, which would want bytes."""

    def size(self) -> int:
        return self.mem.size - (self.ptr - self.mem.ptr)


class PinnedMemoryPool:
    def __init__(self, allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
        self._allocator = allocator or _malloc

    def malloc(self, size: int) -> PinnedMemoryPointer:
        return self._allocator(rounded(size))

    def free_all_blocks(self) -> None:
        store().spare.clear()

    def n_free_blocks(self) -> int:
        return sum(map(len, store().spare.values()))


def _malloc(size: int) -> PinnedMemoryPointer:
    return PinnedMemoryPointer(PinnedMemory(size), 0)


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    return machine().pinned_allocator(size)


def set_pinned_memory_allocator(allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
    machine().pinned_allocator = allocator or _malloc


def is_memory_pinned(data: int) -> bool:
    found = store().pinned.find(data)
    return found is not None and found.live


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    return machine().pinned_pool
