"""How far a long run is, shown on standard error.

In: a run of a schedule, and from it which step it is at.  Out: on a terminal one line that is drawn anew (with rich, where it is installed)
and taken away when the run is over; elsewhere a line every ``PLAIN_SECONDS``.  Promise: nothing is shown of a run that takes less than
``AFTER_SECONDS``; who did not ask for it (``LAZYNP_PROGRESS=1``, ``np.progress()``) pays one comparison a run and starts no thread.

A run says what it does by assigning attributes; a thread of its own looks at them a few times a second, and at the chunk counters in
the argument block of the kernel.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import start_new_thread
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from lazynp.graph.node import Node, where
from lazynp.values.loading import load

AFTER_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.2
PLAIN_SECONDS: Final = 5.0  # between lines where there is no terminal
IDLE_LOOKS: Final = 50  # after which the thread ends; the next run starts another


class Run:
    """One run, for the length of a ``with`` block: ``step`` of ``steps``, what it does and for which node; bytes moved before it."""

    __slots__ = ("counters", "doing", "done", "moving", "node", "nodes", "outer", "started", "step", "steps", "totals")

    def __init__(self, steps: int, node: Node) -> None:
        self.steps = steps
        self.node = node
        self.nodes: list[Node] = []  # of the program, by entry
        self.step = 0
        self.doing = "NumPy"
        self.done = self.moving = 0
        self.counters: array[int] | None = None
        self.totals: Sequence[tuple[int, int]] = ()
        self.outer: Run | None = None
        self.started = 0.0

    def begin(self, doing: str, entry: int, moving: int) -> None:
        """The next step, which is for an entry of the program and moves so many bytes."""
        self.counters = None
        self.done += self.moving
        self.moving = moving
        self.step += 1
        self.doing = doing
        self.node = self.nodes[entry]

    def inside(self, block: array[int], totals: Sequence[tuple[int, int]]) -> None:
        """A kernel with this argument block is about to run: (slot of a counter, slot of what it counts to or -1) of each phase."""
        self.totals = totals
        self.counters = block

    def fraction(self) -> float:
        """Return how much of the step is done, as far as it is known."""
        block = self.counters
        if block is None:
            return 0.0
        goals = [(block[slot], block[total] if total >= 0 else 1) for slot, total in self.totals]
        whole = sum([goal for _, goal in goals])
        return min(1.0, sum([min(count, goal) for count, goal in goals]) / whole) if whole > 0 else 0.0

    def text(self, seconds: float) -> str:
        """Return a line: the step, where it was recorded, bytes, their rate, and the time."""
        part = self.fraction()
        moved = self.done + part * self.moving
        share = f" ({part:.0%})" if part else ""
        rate = f"{moved / 1e9:.2f} GB at {moved / seconds / 1e9:.2f} GB/s, " if moved else ""
        step = f"{self.step} of {self.steps}" if self.step else f"{self.steps} operations"
        return f"lazynp: {self.doing} {step}{share}, {where(self.node.site)}, {rate}{seconds:.0f} s"

    def __enter__(self) -> Run:
        self.outer, _monitor.current = _monitor.current, self
        self.started = time.monotonic()
        _monitor.look()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _monitor.current = self.outer
        if _monitor.shown is self:
            _monitor.clear()


class _Monitor:
    """The thread that looks, and what it has drawn: ``shown`` is the run whose line is on the terminal."""

    __slots__ = ("bar", "current", "looking", "shown", "told")

    def __init__(self) -> None:
        self.current: Run | None = None
        self.shown: Run | None = None
        self.looking = False
        self.told = 0.0  # when a plain line was written
        self.bar: Any = None

    def look(self) -> None:
        """Start the thread, if there is none."""
        if not self.looking:
            self.looking = True
            try:
                start_new_thread(self._watch, ())
            except RuntimeError:  # no thread to be had
                self.looking = False

    def _watch(self) -> None:
        idle = 0
        while idle < IDLE_LOOKS:
            time.sleep(LOOK_SECONDS)
            run = self.current
            idle = idle + 1 if run is None else 0
            if run is not None:
                with suppress(Exception):  # a closed stream; whatever it is, the run goes on
                    self.tell(run, time.monotonic())
        self.looking = False

    def tell(self, run: Run, now: float) -> None:
        """Show a run, if it is time to."""
        seconds = now - run.started
        if seconds < AFTER_SECONDS:
            return
        if sys.stderr.isatty():
            self.shown = run
            self._draw(run.text(seconds))
            if self.current is not run:
                self.clear()
        elif now - self.told >= PLAIN_SECONDS:
            self.told = now
            sys.stderr.write(run.text(seconds) + "\n")
            sys.stderr.flush()

    def _draw(self, text: str) -> None:
        if self.bar is None:
            self.bar = _bar()
        self.bar(text)

    def clear(self) -> None:
        """Take the line away."""
        self.shown = None
        if self.bar is not None:
            with suppress(Exception):
                self.bar("")


def _bar() -> Callable[[str], None]:
    """Return what draws the line: rich's status, or else plain characters."""
    try:
        consoles, statuses = load("rich.console"), load("rich.status")
    except ImportError:
        return _plain
    console = consoles.Console(stderr=True)
    shown: list[Any] = []

    def draw(text: str) -> None:
        if not text:
            while shown:
                shown.pop().stop()
        elif shown:
            shown[0].update(text)
        else:
            shown.append(statuses.Status(text, console=console))
            shown[0].start()

    return draw


def _plain(text: str) -> None:
    width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
    sys.stderr.write("\r\x1b[2K" + text[:width])
    sys.stderr.flush()


_monitor: Final = _Monitor()


def current() -> Run | None:
    """Return the run that is watched."""
    return _monitor.current


def _unwatched() -> None:
    """A child after ``fork`` has no thread but its own."""
    _monitor.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unwatched)
