"""Memory for values in host memory.

In: a number of bytes.  Out: a block, aligned to 64 bytes, with undefined contents.  Promises: a block's memory is used again only
when the block and every array made by its ``view`` are garbage.  What is kept for reuse is bounded, and in a process that held much, large
blocks go back to the system after ``DECAY_SECONDS`` in which they were not asked for.  Giving back works from any thread and while the
interpreter shuts down; memory that cannot be had is a ``MemoryError`` that says how much was asked for.

Blocks come in size classes, four to each doubling.  Small ones are cut from slabs, larger ones are mappings of their own, from
``HUGE_FROM`` bytes on aligned for huge pages, which cost far fewer page faults.  No lock is taken: a block changes hands by one
``list.pop`` or ``list.append``, which the interpreter makes atomic, and a finalizer may run in the middle of anything.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from _thread import start_new_thread
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.values.loading import late, load

if TYPE_CHECKING:
    from lazynp.values import limits
else:
    (limits,) = late("values.limits")

SLAB_BYTES: Final = 4 << 20
SMALL_LIMIT: Final = 256 << 10  # blocks up to this size come from slabs: the number of mappings of a process is bounded
HUGE_FROM: Final = 4 << 20
HUGE_PAGE: Final = 2 << 20
ASK_FROM: Final = 64 << 20  # free bytes from which on the bound is looked up
DECAY_FROM: Final = 64 << 20  # bytes in use and kept from which on what is kept decays
DECAY_SECONDS: Final = 2.0
POOL_SLACK: Final = 16 << 20  # bytes that may be in use and kept together beyond the most that was ever in use
KEEP_SHARE: Final = 8  # at most this part of the machine's memory is kept for reuse
HEAP_KEEPS: Final = 64 << 20  # bytes of what NumPy frees that are left to the C library when it is asked for the rest


class Block:
    """Memory lent by an allocator, given back when no reference to the block is left."""

    __slots__ = ("__weakref__", "_mapping", "_owner", "address", "nbytes")

    address: int
    nbytes: int  # of the size class, at least what was asked for

    def __init__(self, owner: Allocator, nbytes: int, address: int, mapping: Any) -> None:
        self._owner = owner
        self.nbytes = nbytes
        self.address = address
        self._mapping = mapping

    def __del__(self) -> None:
        self._owner._give_back(self.nbytes, self.address, self._mapping)

    def view(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return the first bytes as a C-contiguous array; the array and all views of it keep the block."""
        return np.asarray(Export(self, dtype, shape))


class Export:
    """The base of an array over a block; NumPy keeps it, and it keeps the block."""

    __slots__ = ("__array_interface__", "__weakref__", "block")

    def __init__(self, block: Block, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.block = block
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (block.address, False)}


class _Slab:
    """A mapping from which small blocks are cut, from its start to its end."""

    __slots__ = ("carved", "end", "mapping", "start")

    def __init__(self, start: int, mapping: Any) -> None:
        self.start = start
        self.mapping = mapping
        self.carved = 0
        self.end = start + SLAB_BYTES


class Allocator:
    """A pool of blocks.

    Parameters
    ----------
    keep : int, optional
        Bytes of free blocks kept for reuse; beyond it, the ones unused for longest go back to the system. Left out, it is a share
        of the memory that this process may use, looked up when it first matters.
    """

    __slots__ = (
        "_allocations", "_decaying", "_free", "_full", "_in_use", "_keep", "_large", "_open", "_peak", "_pooled", "_reuses", "_threshold",
    )  # fmt: skip

    def __init__(self, keep: int | None = None) -> None:
        self._keep = keep
        self._threshold = ASK_FROM if keep is None else keep
        # Size class -> (address, mapping); blocks from slabs have no mapping of their own.
        self._free: dict[int, list[tuple[int, Any]]] = {}
        # Address -> size class of the free mappings and since when they are, oldest first.
        self._large: OrderedDict[int, tuple[int, float]] = OrderedDict()
        self._decaying = False
        self._open: list[_Slab] = []  # who pops a slab may cut from it
        self._full: list[_Slab] = []
        self._in_use = self._pooled = self._peak = self._allocations = self._reuses = 0

    def allocate(self, nbytes: int) -> Block:
        """Return a block of at least ``nbytes`` bytes with undefined contents.

        Raises
        ------
        MemoryError
            The system has no memory left, even without what was kept for reuse.
        """
        if nbytes > 512:
            shift = (nbytes - 1).bit_length() - 3
            size = ((nbytes - 1 >> shift) + 1) << shift
        else:
            size = (nbytes + 63 & -64) or 64
        try:
            address, mapping = self._free[size].pop()
        except LookupError:
            size, address, mapping = self._larger(size) or self._fresh(size, nbytes)
        else:
            self._reuses += 1
            self._pooled -= size
            if mapping is not None:
                self._large.pop(address, None)
        self._allocations += 1
        in_use = self._in_use = self._in_use + size
        if in_use > self._peak:
            self._peak = in_use
        return Block(self, size, address, mapping)

    def in_use(self) -> int:
        """Return the bytes lent out."""
        return self._in_use

    def pooled(self) -> int:
        """Return the bytes that are free and kept for reuse."""
        return self._pooled

    def memory(self) -> dict[str, int]:
        """Return counters.

        Bytes ``in_use``, ``pooled`` (free, kept for reuse) and at ``peak``, the numbers of ``allocations`` and of ``reuses`` among them.
        """
        return {
            "in_use": self._in_use,
            "pooled": self._pooled,
            "peak": self._peak,
            "allocations": self._allocations,
            "reuses": self._reuses,
        }

    def trim(self, keep: int = 0) -> None:
        """Give free memory back to the system until at most ``keep`` bytes are kept, oldest first, slabs last."""
        while self._pooled > keep:
            try:
                address, (size, _) = self._large.popitem(last=False)
            except KeyError:
                break
            self._take(size, address)
        if self._pooled > keep:
            self._trim_slabs()

    def decay(self, before: float) -> None:
        """Give those large blocks back to the system that are free since a time ``before`` (of ``time.monotonic``)."""
        while True:
            try:
                address, (size, since) = self._large.popitem(last=False)
            except KeyError:
                return
            if since >= before:
                self._large[address] = size, since
                self._large.move_to_end(address, last=False)
                return
            self._take(size, address)

    def _watch(self) -> None:
        """Run in a thread of its own, for as long as there is much to give back."""
        while self._in_use + self._pooled > DECAY_FROM // 2:
            time.sleep(DECAY_SECONDS / 2)
            self.decay(time.monotonic() - DECAY_SECONDS)
        release_heap(HEAP_KEEPS)  # what NumPy freed below a small block that is in use, the C library keeps until it is asked
        self._decaying = False

    def _give_back(self, size: int, address: int, mapping: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._in_use -= size
        self._pooled += size
        if mapping is not None:
            self._large[address] = size, now()  # an argument: at exit modules are emptied
        try:
            self._free[size].append((address, mapping))
        except KeyError:
            self._free.setdefault(size, []).append((address, mapping))
        if self._pooled > self._threshold and not sys.is_finalizing():  # at the end nothing is worth keeping or freeing
            keep = self._keep
            if keep is None:
                keep = self._keep = limits.memory() // KEEP_SHARE
            self.trim(keep)
            # Slabs in use cannot go: do not look again for every small block that comes back.
            self._threshold = keep if self._pooled <= keep else self._pooled + keep // 4

    def _take(self, size: int, address: int) -> bool:
        """Remove one free block; False when another thread was faster."""
        blocks = self._free[size]
        for block in blocks[:]:
            if block[0] == address:
                try:
                    blocks.remove(block)
                except ValueError:
                    return False
                self._pooled -= size
                return True
        return False

    def _larger(self, size: int) -> tuple[int, int, Any] | None:
        """Take a free mapping up to twice as large: pages that were touched before are worth more than the room they waste."""
        if size <= SMALL_LIMIT:
            return None
        step = 1 << (size - 1).bit_length() - 3
        for larger in range(size + step, 2 * size + 1, step):
            blocks = self._free.get(larger)
            if blocks:
                try:
                    address, mapping = blocks.pop()
                except IndexError:
                    continue
                self._reuses += 1
                self._pooled -= larger
                self._large.pop(address, None)
                return larger, address, mapping
        return None

    def _fresh(self, size: int, nbytes: int) -> tuple[int, int, Any]:
        if nbytes < 0:
            raise ValueError(f"cannot allocate {nbytes} bytes")
        if size > SMALL_LIMIT:
            # What is kept is of other sizes than what is asked for.
            beyond = self._in_use + self._pooled + size - self._peak - POOL_SLACK
            if beyond > 0 and self._pooled:
                self.trim(max(0, self._pooled - beyond))
            if size >= HUGE_FROM and self._in_use + size > self._peak:
                release_heap(0)  # what it keeps would lie beside a new peak
            if not self._decaying and self._in_use + self._pooled > DECAY_FROM:
                self._decaying = True
                with contextlib.suppress(RuntimeError):  # no thread to be had
                    start_new_thread(self._watch, ())
            return (size, *self._map(size, nbytes, size >= HUGE_FROM))
        try:
            slab = self._open.pop()
        except IndexError:
            slab = self._new_slab(nbytes)
        if slab.carved + size > SLAB_BYTES:
            self._full.append(slab)
            slab = self._new_slab(nbytes)
        address = slab.start + slab.carved
        slab.carved += size
        self._open.append(slab)
        return size, address, None

    def _new_slab(self, nbytes: int) -> _Slab:
        # The first slab is left to small pages: a process that computes little should stay small.
        return _Slab(*self._map(SLAB_BYTES, nbytes, bool(self._full)))

    def _map(self, size: int, nbytes: int, huge: bool) -> tuple[int, Any]:
        try:
            return _map(size, huge)
        except (OSError, OverflowError, ValueError, MemoryError):
            self.trim()
        try:
            return _map(size, huge)
        except (OSError, OverflowError, ValueError, MemoryError) as error:
            raise MemoryError(
                f"Unable to allocate {readable(nbytes)}: {readable(self._in_use)} are in use by arrays of this process"
            ) from error

    def _trim_slabs(self) -> None:
        """Give back the full slabs of which every block is free."""
        full = []
        while self._full:
            full.append(self._full.pop())
        full.sort(key=lambda slab: slab.start)
        starts = np.array([slab.start for slab in full], np.int64)
        members: list[list[tuple[int, int]]] = [[] for _ in full]  # of each slab: its free blocks as (address, size)
        for size, blocks in list(self._free.items()):
            if size > SMALL_LIMIT:
                continue
            elsewhere = []
            while blocks:
                block = blocks.pop()
                k = int(starts.searchsorted(block[0], "right")) - 1
                if k >= 0 and block[0] < full[k].end:
                    members[k].append((block[0], size))
                else:
                    elsewhere.append(block)
            blocks.extend(elsewhere)
        for slab, free in zip(full, members, strict=True):
            if sum(size for _, size in free) == slab.carved:
                self._pooled -= slab.carved
                continue
            self._full.append(slab)
            for address, size in free:
                self._free[size].append((address, None))


def readable(nbytes: int) -> str:
    """Return a size as NumPy writes it: 7.28 TiB."""
    value = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if value < 1024 or unit == "EiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}"


def _map(size: int, huge: bool) -> tuple[int, Any]:
    """Map fresh memory; return its address and an object that keeps it."""
    mmap = load("mmap")
    length = size + HUGE_PAGE if huge else size
    if sys.platform == "win32":
        memory = mmap.mmap(-1, length)
    else:
        # Python's default, a shared mapping, would be seen by children after fork, and gets no huge pages.
        memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    keep = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(keep)
    if huge:
        address = address + HUGE_PAGE - 1 & -HUGE_PAGE
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None:
            with contextlib.suppress(OSError):  # a kernel without huge pages
                memory.madvise(advice)
    return address, keep


def _releasing() -> Callable[[int], object]:
    """Return what makes the C library give back all but a number of bytes of what it keeps."""
    release: Callable[[int], object] = getattr(ctypes.CDLL(None), "malloc_trim", int) if sys.platform.startswith("linux") else int
    return release


release_heap: Final = _releasing()
_pool = Allocator()
allocate = _pool.allocate
in_use = _pool.in_use
pooled = _pool.pooled
memory = _pool.memory
trim = _pool.trim


def _unwatched() -> None:
    """A child after ``fork`` has no thread but its own."""
    _pool._decaying = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unwatched)
