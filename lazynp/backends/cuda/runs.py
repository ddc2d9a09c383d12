"""What a thread puts into its stream of a GPU.

In: a place.  Out: runs, within which the device and the stream are CuPy's current ones.  Promise: what other streams did to memory that a
run uses is done before, what they do to it next comes after, and where it is wanted an event says when the run is done.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from lazynp.backends.cuda import driver

if TYPE_CHECKING:
    from lazynp.backends.cuda.graphs import Queue
    from lazynp.backends.cuda.memory import DeviceBlock, Place
    from lazynp.backends.cuda.words import Words


class Run:
    """Work that is being put into one stream, and the streams of other threads whose memory it touches.

    It is a ``with`` block within which the device and the stream are CuPy's current ones; it may be nested in itself.

    ``marked``: an event is wanted, ``done``, which tells from the end of the run on when the work is done.
    """

    __slots__ = ("depth", "done", "marked", "others", "place", "ptr", "queue", "stream")

    def __init__(self, place: Place, stream: Any, done: Any = None) -> None:
        self.place = place
        self.depth = 0  # of blocks that are entered
        self.stream = stream
        self.ptr: int = stream.ptr
        self.queue: Queue | None = None  # of work that is put together first
        self.others: list[Any] = []
        self.marked = False
        self.done = done

    def over(self) -> bool:
        """Tell whether the work is done."""
        return self.done is not None and self.done.done

    def __enter__(self) -> Run:
        if not self.depth:
            self.place.device.__enter__()
            self.stream.__enter__()
            self.place.local.run = self
        self.depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.depth:
            return
        place = self.place
        place.local.run = None
        try:
            if self.others or self.marked:
                done = self.done = place.reached(self.stream)
                for other in self.others:
                    other.wait_event(done)
                self.others.clear()
        finally:
            self.stream.__exit__(*error)
            place.device.__exit__(*error)


class Planned:
    """A ``with`` block for one plan within a run.

    A finalizer may compute in the midst of another plan: what that one put together is not mixed with this one's, and waits, for it needs
    nothing of it.
    """

    __slots__ = ("interrupted", "run")

    def __init__(self, run: Run) -> None:
        self.run = run

    def __enter__(self) -> None:
        self.interrupted, self.run.queue = self.run.queue, None

    def __exit__(self, *_: object) -> None:
        queue, self.run.queue = self.run.queue, self.interrupted
        if queue is not None:
            queue.put(self.run)  # something failed on the way: what was put together before that is done


class Local(threading.local):
    """A record of what one Python thread has on one GPU."""

    stream: Any = None
    lease: Any = None  # of the stream
    run: Run | None = None  # the one that is being put together
    counters: DeviceBlock | None = None
    event: Any = None  # by which streams are ordered

    def __init__(self) -> None:
        self.words: list[Words] = []  # those that no run has


class Forked:
    """The state of a process that was forked from one that used the GPU: it has nothing, and CUDA does not begin again there."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(driver.FORKED)
