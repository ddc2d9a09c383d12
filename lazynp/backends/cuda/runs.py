"""What a thread puts into its stream of a GPU.

In: a place.  Out: runs, within which the device and the stream are CuPy's current ones.  Promise: what other streams did to memory that a
run uses is done before, what they do to it next comes after, and whoever wants to know when the run is done has an event that says so.
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

    ``marked``: somebody wants to know when the work is done, which ``done``, an event, tells from the end of the run on.
    """

    __slots__ = ("done", "marked", "others", "queue", "stream")

    def __init__(self, stream: Any, done: Any = None) -> None:
        self.stream = stream
        self.queue: Queue | None = None  # of work that is put together first
        self.others: list[Any] = []
        self.marked = False
        self.done = done

    def over(self) -> bool:
        """Tell whether the work is done."""
        return self.done is not None and self.done.done

    @property
    def ptr(self) -> int:
        found: int = self.stream.ptr
        return found


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
    run: Run | None = None  # the one that is being put together
    counters: DeviceBlock | None = None

    def __init__(self) -> None:
        self.words: list[Words] = []  # those that no run has


class Forked:
    """The state of a process that was forked from one that used the GPU: it has nothing, and CUDA does not begin again there."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(driver.FORKED)


class Running:
    """A ``with`` block within which a device and this thread's stream are CuPy's current ones; blocks may be nested."""

    __slots__ = ("outermost", "place")

    def __init__(self, place: Place) -> None:
        self.place = place

    def __enter__(self) -> Run:
        place = self.place
        run = place.local.run
        self.outermost = run is None
        if run is None:
            stream = place.stream()
            place.device.__enter__()
            stream.__enter__()
            run = place.local.run = Run(stream)
        return run

    def __exit__(self, *error: object) -> None:
        if not self.outermost:
            return
        place = self.place
        run = place.local.run
        assert run is not None
        place.local.run = None
        try:
            if run.others or run.marked:
                done = run.done = place.reached(run.stream)
                for other in run.others:
                    other.wait_event(done)
                run.others.clear()
        finally:
            run.stream.__exit__(*error)
            place.device.__exit__(*error)
