"""Repeated schedules as CUDA graphs.

In: what one run of a schedule puts into its stream, put together before anything of it is.  Out: the same work, launched piece by piece or
as one graph.  Promise: a graph is replayed only where each argument of each piece is what was captured, addresses included, and by the
thread that captured it; what cannot be captured is launched piece by piece; nothing is decided by the clock.

A replay saves the driver's work for each launch.  It pays where kernels are many and short, so only schedules are looked at that write
little memory, which is held until all is in the stream.  Steady loops repeat their addresses, because the pool gives back what was just
freed: one that replaces an array at each turn has two sets of them.

Arguments that change at every turn, such as a number, make a new set each time.  After ``PATIENCE`` sets without a repetition the schedule
is launched piece by piece for good.  On an H100 a loop of eight short kernels takes 141 us a turn launched one by one, and 182 us as a
graph.  Therefore graphs are off unless ``LAZYNP_CUDA_GRAPHS`` asks for them; ``make bench-gpu`` measures both ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lazynp.graph import report

if TYPE_CHECKING:
    from lazynp.backends.cuda.memory import Place
    from lazynp.backends.cuda.runs import Run

SMALL: Final = 32 << 20  # bytes that the kernels of a schedule may write
REPEATS: Final = 2  # how often the same arguments are launched before they are captured
KEPT: Final = 8  # graphs of one schedule
PATIENCE: Final = 64  # sets of arguments that were launched and did not repeat, until nothing is expected to


class Launch:
    """One kernel."""

    __slots__ = ("args", "block", "blocks", "function", "shared", "threads")

    def __init__(
        self, function: Any, blocks: tuple[int, int, int], threads: tuple[int, int, int], args: tuple[Any], shared: int, block: Any
    ) -> None:
        self.function = function
        self.blocks = blocks
        self.threads = threads
        self.args = args
        self.shared = shared
        self.block = block  # what ``args`` points to

    def key(self) -> Any:
        return id(self.function), self.block.tobytes()  # the numbers of blocks and bytes are among the arguments

    def put(self, stream: Any) -> None:
        self.function(self.blocks, self.threads, self.args, self.shared, stream)


class Copy:
    """One copy within the device."""

    __slots__ = ("nbytes", "runtime", "source", "target")

    def __init__(self, runtime: Any, target: int, source: int, nbytes: int) -> None:
        self.runtime = runtime
        self.target = target
        self.source = source
        self.nbytes = nbytes

    def key(self) -> Any:
        return self.target, self.source, self.nbytes

    def put(self, stream: Any) -> None:
        self.runtime.memcpyAsync(self.target, self.source, self.nbytes, self.runtime.memcpyDeviceToDevice, stream.ptr)


class Queue:
    """A queue holds what a run is going to put into its stream, and the memory that it needs until then."""

    __slots__ = ("held", "work")

    def __init__(self) -> None:
        self.work: list[Launch | Copy] = []
        self.held: list[Any] = []

    def put(self, run: Run) -> None:
        """Put it there piece by piece."""
        work, self.work = self.work, []
        for piece in work:
            piece.put(run.stream)
        self.held.clear()


class Graphs:
    """The graphs of one schedule."""

    __slots__ = ("counts", "graphs", "hopeless")

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}  # of arguments that were launched piece by piece
        self.graphs: dict[Any, Any] = {}
        self.hopeless = False  # whether nothing is expected to repeat, or CUDA makes no graph of it

    def put(self, queue: Queue, place: Place, run: Run) -> None:
        """Put a queue into the stream of a run, as a graph where there is one or it is time for one."""
        key = (run.ptr, *[piece.key() for piece in queue.work])
        graph = self.graphs.get(key)
        if graph is None:
            count = self.counts[key] = self.counts.get(key, 0) + 1
            if count > REPEATS:
                graph = self._made(key, queue, place)
            elif len(self.counts) > PATIENCE:
                self.hopeless = True
                self.counts.clear()
        if graph is None:
            queue.put(run)
            return
        work, queue.work = queue.work, []  # before: an interrupt that comes during the call is raised behind it
        try:
            graph.launch(run.stream)
        except place.runtime.CUDARuntimeError:
            self.hopeless = True
            queue.work = work
            queue.put(run)
            return
        report.work.graphs += 1
        queue.held.clear()

    def _made(self, key: Any, queue: Queue, place: Place) -> Any:
        """A graph of the queue's work; None where CUDA makes none."""
        stream = place.cupy.cuda.Stream(non_blocking=True)  # one that waits for others would drag them into the graph
        try:
            stream.begin_capture()
            try:
                for piece in queue.work:
                    piece.put(stream)
            finally:
                graph = stream.end_capture()
        except place.runtime.CUDARuntimeError:
            self.hopeless = True
            return None
        self.counts.clear()
        if len(self.graphs) >= KEPT:
            del self.graphs[next(iter(self.graphs))]  # if it is still running, it is destroyed when it is done
        self.graphs[key] = graph
        return graph
