"""Where kernels report: pairs of words in device memory, and the way of their values to the host.

In: how many kernels of a run report.  Out: the address of their pairs, and after the kernels are done their values.  Promise: every pair is
0 when a run begins; in the usual case, nothing to report, that costs no work on the device, and reading them is one copy and one wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from lazynp.backends.cuda.memory import Place
    from lazynp.backends.cuda.runs import Run

PAIR: Final = 16  # bytes: whether an index was out of range, and the floating-point errors that were met
ROOM: Final = 64  # pairs at least


class Words:
    """Pairs of words for one run at a time, in the order of one stream."""

    __slots__ = ("address", "block", "capacity", "host", "pinned")

    def __init__(self, place: Place, pairs: int, run: Run) -> None:
        self.capacity = max(pairs, ROOM)
        self.block = place.allocate(PAIR * self.capacity)
        self.address = self.block.address
        # Page-locked: a copy into other memory goes through memory of the driver's.
        self.pinned: Any = place.cupy.cuda.alloc_pinned_memory(PAIR * self.capacity)
        self.host = np.frombuffer(self.pinned, np.int64, 2 * self.capacity)
        self.clear(self.capacity, place, run)

    def clear(self, pairs: int, place: Place, run: Run) -> None:
        place.runtime.memsetAsync(self.address, 0, PAIR * pairs, run.ptr)

    def read(self, pairs: int, place: Place, run: Run) -> list[int]:
        """The first pairs, one word after the other, when all that was put into the stream is done; then they are 0 again."""
        try:
            place.runtime.memcpyAsync(self.pinned.ptr, self.address, PAIR * pairs, place.runtime.memcpyDeviceToHost, run.ptr)
        finally:
            run.stream.synchronize()  # after an interrupt too: the copy must not come when the memory is another's
        found: list[int] = self.host[: 2 * pairs].tolist()
        if any(found):
            self.clear(pairs, place, run)
        return found


def borrowed(pairs: int, place: Place, run: Run) -> Words:
    """This thread's words; who returns them says that they are 0.  What is not returned, because its run failed, is not used again."""
    found: Words | None = place.local.words
    if found is None or found.capacity < pairs:
        return Words(place, pairs, run)
    place.local.words = None
    return found


def returned(words: Words, place: Place) -> None:
    place.local.words = words
