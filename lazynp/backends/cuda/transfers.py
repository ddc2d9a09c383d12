"""Uploads that go on while kernels run, and downloads.

In: arrays in host memory.  Out: blocks of device memory that hold the same, and the other way.  Promise: an upload waits for no kernel, and
only the work that reads it waits for it; the host's array has been read when the call returns; memory of an upload is used again only after
what read it, and how much of it waits for that is bounded.

There is one stream for the uploads of a device, whichever threads they are of: the device copies one after the other in any case, and the
threads share what was uploaded, the memory that it leaves, and the staging memory.

CuPy's pool gives memory back in the order of one stream: what is returned to the arena of this one is overwritten by the next upload,
whatever still reads it.  If this stream waited for the readers, so would the next upload.  Therefore a block remembers the runs that read
it, and when it is garbage its memory is kept here until they are done.  Only where too much is waiting, or memory runs out, the stream
waits for them.

No lock is held here: blocks become garbage in any thread at any moment, also in the midst of this code.

Within a run uploads always overlap with kernels; from one run to the next only where a run does not end by waiting (``launch.py``).  A loop
``for batch in batches: total = total + f(np.asarray(batch))`` needs room for about two batches.

On an H100 uploads move 8.5 GB/s and downloads 4; page-locked memory itself 51 and 27, one thread's copy into it 10.  That an upload comes
after no kernel is seen in the queue of the imitated device.  What the overlap saves on hardware is unmeasured, and so are the sizes
``SMALL``, ``PIECE``, ``PIECES`` and ``WAITING``.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.backends.cuda.memory import DeviceBlock
from lazynp.backends.cuda.runs import Run

if TYPE_CHECKING:
    from lazynp.backends.cuda.memory import Place

# Only page-locked memory is sure to be copied while kernels run; of ordinary memory the driver "may synchronize with the stream and stage
# the copy" (CUDA's reference, "API synchronization behavior").  So we stage it, in a ring of pieces that are locked once, because locking
# waits for the device: two would do for filling one while the other is copied, more let the host run ahead, and let threads share them.
PIECE: Final = 4 << 20
PIECES: Final = 4
# Bytes of garbage that may wait for its readers; one upload of any size always may, so that the next one can go on meanwhile.  A block
# counts as LEAST bytes at least, which bounds the number of events that are looked at.
WAITING: Final = 256 << 20
LEAST: Final = 1 << 20


class Use:
    """A use outlives its block: it holds the memory and for each stream that read it the last run that did."""

    __slots__ = ("nbytes", "pointer", "runs")

    def __init__(self, pointer: Any, nbytes: int) -> None:
        self.pointer = pointer
        self.nbytes = max(nbytes, LEAST)
        self.runs: dict[int, Run] = {}


class UploadedBlock(DeviceBlock):
    """Memory of an upload, which is read by work of any stream, and written by none.  ``ready`` is the event of its last copy."""

    __slots__ = ("leaving", "ready", "use")

    def __init__(self, place: Place, pointer: Any, nbytes: int, stream: Any) -> None:
        super().__init__(place, pointer, nbytes, stream)
        self.use = Use(pointer, nbytes)
        self.leaving = place.uploads.leaving
        self.ready: Any = None

    def __del__(self) -> None:
        self.leaving.append(self.use)

    def join(self, run: Run) -> None:
        runs, key = self.use.runs, run.stream.ptr
        last = runs.get(key)
        if last is not None and last.done is None:
            return  # this run; or the one that it interrupts, which ends later
        if last is None:
            run.stream.wait_event(self.ready)
            for old in list(runs):  # threads come and go
                found = runs.pop(old, None)
                if found is not None and not found.over():
                    runs.setdefault(old, found)
        run.marked = True
        runs[key] = run

    def awaited(self, current: Any) -> None:
        if current.ptr not in self.use.runs:
            current.wait_event(self.ready)


class Piece:
    """Page-locked memory for a part of an upload, and the event of the copy that reads it."""

    __slots__ = ("event", "memory")

    def __init__(self) -> None:
        self.memory: Any = None

    def room(self, size: int, cupy: Any) -> np.ndarray[Any, Any] | None:
        """So many bytes of page-locked memory, when the copy before is done; None where there is no such memory."""
        if self.memory is None:
            try:
                memory = cupy.cuda.alloc_pinned_memory(PIECE)
            except cupy.cuda.runtime.CUDARuntimeError:
                return None
            self.event, self.memory = cupy.cuda.Event(disable_timing=True), memory
        if not self.event.done:
            self.event.synchronize()
        return np.frombuffer(self.memory, np.uint8, size)

    def filled(self, part: np.ndarray[Any, Any], cupy: Any) -> np.ndarray[Any, Any] | None:
        """The bytes in page-locked memory; None where there is none."""
        found = self.room(part.size, cupy)
        if found is not None:
            found[...] = part
        return found


class Uploads:
    """The uploads to one device, and the page-locked memory of all its transfers."""

    def __init__(self, place: Place) -> None:
        self.place = place
        with place.device:
            # As those of threads it waits for the default stream: there CuPy's users may still read what they have dropped.
            self.stream = place.cupy.cuda.Stream()
        self.leaving: deque[Use] = deque()
        # All that are read or leaving: the collector finalizes the parts of a garbage cycle in any order, and they must not be such.
        self._uses: set[Use] = set()
        self._pieces = tuple(Piece() for _ in range(PIECES))
        self._ring = deque(self._pieces)  # who takes a piece out of it has it until he puts it back

    def upload(self, array: np.ndarray[Any, Any]) -> UploadedBlock:
        """A copy of a C-contiguous array; within ``running``.

        Raises
        ------
        MemoryError
            There is no room for it on the device.
        """
        place, nbytes = self.place, array.nbytes
        self.give_back(max(WAITING, nbytes))
        block = UploadedBlock(place, place.obtained(nbytes, self._malloc), nbytes, self.stream)
        self._uses.add(block.use)
        source = array.reshape(-1).view(np.uint8)
        for start in range(0, nbytes, PIECE):
            self._copy(block.address + start, source[start : start + PIECE])
        block.ready = place.reached(self.stream)
        return block

    def _malloc(self, nbytes: int) -> Any:
        with self.place.apart(self.stream):
            return self.place.cupy.cuda.alloc(nbytes)

    def _copy(self, target: int, part: np.ndarray[Any, Any]) -> None:
        """Copy bytes to the device; they have been read when this returns."""
        try:
            piece = self._ring.popleft()
        except IndexError:  # other threads have them all
            self._send(target, part)
            return
        try:
            staged = piece.filled(part, self.place.cupy)
            self._send(target, part if staged is None else staged)
            if staged is not None:
                piece.event.record(self.stream)
        finally:
            self._ring.append(piece)

    def _send(self, target: int, part: np.ndarray[Any, Any]) -> None:
        """Queue a copy; what is not page-locked the driver stages, and has read when the call returns."""
        runtime = self.place.runtime
        address: int = part.__array_interface__["data"][0]
        runtime.memcpyAsync(target, address, part.size, runtime.memcpyHostToDevice, self.stream.ptr)

    def download(self, address: int, into: np.ndarray[Any, Any], run: Run) -> None:
        """Copy device memory into a C-contiguous array, in the order of a run, and wait for it.

        The host takes one piece out of page-locked memory while the next one comes.
        """
        target = into.reshape(-1).view(np.uint8)
        free: deque[Piece] = deque()
        coming: deque[tuple[Piece, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = deque()
        direct = False  # whether some of it goes into the array itself
        try:
            for start in range(0, target.size, PIECE):
                part = target[start : start + PIECE]
                if len(free) + len(coming) < 2:
                    with suppress(IndexError):  # other threads have them all
                        free.append(self._ring.popleft())
                if not free and coming:
                    self._arrived(coming, free)
                staged = free[0].room(part.size, self.place.cupy) if free else None
                self._receive(address + start, part if staged is None else staged, run)
                if staged is None:
                    direct = True
                else:
                    piece = free.popleft()
                    coming.append((piece, staged, part))
                    piece.event.record(run.stream)
            while coming:
                self._arrived(coming, free)
            if direct:
                run.stream.synchronize()
        except BaseException:
            run.stream.synchronize()  # what is under way must not come when the memory is another's
            raise
        finally:
            self._ring.extend([*free, *[piece for piece, _, _ in coming]])

    def _arrived(self, coming: deque[tuple[Piece, np.ndarray[Any, Any], np.ndarray[Any, Any]]], free: deque[Piece]) -> None:
        """Take the oldest part out of page-locked memory as soon as it is there."""
        piece, staged, part = coming[0]
        piece.event.synchronize()
        part[...] = staged
        coming.popleft()
        free.append(piece)

    def _receive(self, source: int, part: np.ndarray[Any, Any], run: Run) -> None:
        runtime = self.place.runtime
        address: int = part.__array_interface__["data"][0]
        runtime.memcpyAsync(address, source, part.size, runtime.memcpyDeviceToHost, run.ptr)

    def give_back(self, most: int) -> None:
        """Give memory whose readers are done back to the pool.

        While more than ``most`` bytes remain, what comes next in the stream of uploads waits for the readers of the oldest, on the device.
        """
        free: list[Use] = []
        waiting: list[tuple[Use, list[Any]]] = []
        for use in self.leaving.copy():
            events = self._readers(use)
            if events:
                waiting.append((use, events))
            elif events is not None:
                free.append(use)
        total = sum(use.nbytes for use, _ in waiting)
        for use, events in waiting:
            if total <= most:
                break
            for event in events:
                self.stream.wait_event(event)
            total -= use.nbytes
            free.append(use)
        for use in free:
            with suppress(ValueError):  # another thread did it
                self.leaving.remove(use)
            self._uses.discard(use)

    def _readers(self, use: Use) -> list[Any] | None:
        """The events that garbage waits for; None where a run of another thread that read it is not over."""
        events = []
        here = self.place.stream()
        for key, run in list(use.runs.items()):
            if run.done is None:
                if run.stream is not here:
                    return None
                run = use.runs[key] = Run(self.place, here, self.place.reached(here))  # whatever reads it is in the stream: it is garbage
            if run.over():
                use.runs.pop(key, None)
            else:
                events.append(run.done)
        return events
