"""From a flag to a warning: programs whose kernels raised a floating-point flag are evaluated again by NumPy.

In: a plan of compiled kernels one of which found a flag raised that is to be reported, and the program it was run for.  Out: the
errors, by operation.  Promise: the flags are a filter and nothing more: which operation raised what, or whether it was but a comparison
with NaN, is what NumPy says when it computes the same operations from the same inputs.  The kernels' values are kept.

Data full of NaN must not make programs slow.  An evaluation that reported nothing (nothing was wrong, or Python's filters had shown or
dropped all of it) lets the next hits of this plan at the same lines go by: 1 of them, then 3, 7, ... up to ``LONGEST``.  One that reported
something starts from anew, and so does a change of the filters.  Operations under a mode that acts at the call (raise, call, print, log)
are evaluated at every hit.

A device need not be waited for to hear of its errors: such a run is kept, with its inputs, until the device has done it.  It is looked at
by the next run, when a value is copied to the host, or at the program's end.  This is done only where nothing but the times could show the
difference: not within a block that catches warnings, and not where a mode or a filter makes an exception of them.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, Final

from lazynp.backends.base import ExecutionError
from lazynp.backends.common.ownership import Claim
from lazynp.graph import filters, floating, report
from lazynp.graph._native import marks
from lazynp.graph.errstate import current
from lazynp.graph.node import site_of
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Canonical, Program

LONGEST: Final = 255  # hits that go by
_KEPT: Final = 64  # places of one plan that are told apart
_AHEAD: Final = 16  # runs that are looked at later
_AHEAD_BYTES: Final = 256 << 20  # bytes that their inputs hold, if there are several


class Pause:
    """A pause counts the hits that go by at one place, and how many will after the next evaluation that tells nothing."""

    __slots__ = ("left", "length")

    def __init__(self) -> None:
        self.left = 0
        self.length = 0

    def learn(self, noticed: bool) -> None:
        self.length = 0 if noticed else min(2 * self.length + 1, LONGEST)
        self.left = self.length


class History:
    """A history of what the evaluations of one plan told."""

    __slots__ = ("_copy", "_filters", "_pauses")

    def __init__(self) -> None:
        self._filters: Any = None
        self._copy: Any = None
        self._pauses: dict[Any, Pause] = {}

    def pause(self, of: list[floating.Origin]) -> Pause:
        """That of the lines which recorded a program."""
        filters = warnings.filters
        if self._filters is not filters or self._copy != filters:
            self._pauses.clear()
            self._filters, self._copy = filters, list(filters)
        key = tuple([(id(site[0]), site[1]) for _, site in of if site is not None])  # code objects hash slowly
        found = self._pauses.get(key)
        if found is None:
            if len(self._pauses) >= _KEPT:
                self._pauses.clear()
            found = self._pauses[key] = Pause()
        return found


class Flagged:
    """A plan whose kernels raised a flag: its program, how to evaluate it again, and what came of that before."""

    __slots__ = ("evaluate", "history", "program")

    def __init__(self, evaluate: Callable[..., Any], program: Program) -> None:
        self.evaluate = evaluate
        self.program = program
        self.history = History()


class Found:
    """The findings that are to be told of one run, and the pause that learns from it."""

    __slots__ = ("findings", "pause")

    def __init__(self, findings: list[floating.Finding], pause: Pause | None) -> None:
        self.findings = findings
        self.pause = pause

    def tell(self) -> None:
        """Tell the user; see ``floating.tell``."""
        noticed = True
        try:
            noticed = floating.tell(self.findings)
        finally:
            if self.pause is not None:
                self.pause.learn(noticed)


def errors(canonical: Canonical, claim: Claim | None) -> Found | None:
    """The errors of the run that just ended; its nodes are not published yet.  None where there are none yet."""
    heard = floating.take()
    if heard is None:
        return None
    if heard.later is not None:
        _keep(Later(heard.later, heard.flagged, canonical))
        return None
    of = [(node.err, None if node.op.kind is Kind.LEAF else site_of(node)) for node in canonical.nodes]
    pause = None
    if heard.flagged is not None:
        pause = heard.flagged.history.pause(of)
        if pause.left and not any(state.eager for state, _ in of):
            pause.left -= 1
            pause = None
        else:
            heard = _evaluated(heard.flagged, canonical, claim)
    return Found(floating.findings(heard.notes, of), pause)


def _evaluated(flagged: Flagged, canonical: Canonical | Later, claim: Claim | None) -> floating.Heard:
    report.work.rechecks += 1
    # Where there is no memory left for it, the errors are not reported; the values are there.
    with nullcontext() if claim is None else claim.lifted(), suppress(ExecutionError):
        flagged.evaluate(canonical.buffers, canonical.integers, canonical.scalars)
    return floating.take() or floating.Heard()


# Later -------------------------------------------------------------------------------------------------------------------


class Later:
    """A run of a device that is not done yet, with what it takes to evaluate it again; ``ticket`` tells whether it has to be.

    Nodes are not held, for who else refers to them counts; nor are the values.
    """

    __slots__ = ("after", "before", "buffers", "flagged", "integers", "marks", "scalars", "ticket")

    def __init__(self, ticket: Any, flagged: Flagged, canonical: Canonical) -> None:
        self.ticket = ticket
        self.flagged = flagged
        self.buffers = canonical.buffers
        self.integers = canonical.integers
        self.scalars = canonical.scalars
        self.marks = marks(canonical.nodes)
        self.before = _held[0]  # so that what the inputs of several runs hold is one difference
        self.after = _held[0] = self.before + sum([buffer.nbytes for buffer in self.buffers])

    def origins(self) -> list[floating.Origin]:
        """Those of the program's entries: leaves are of no line, and what has none is of its nearest source's."""
        of: list[floating.Origin] = []
        parts = self.marks
        for state, code, offset, entry in zip(parts[::3], parts[1::3], parts[2::3], self.flagged.program.entries, strict=True):
            site = None if code is None else (code, offset)
            if entry.op.kind is Kind.LEAF:
                site = None
            elif site is None:
                site = next((of[e][1] for e in reversed(entry.src) if of[e][1] is not None), None)
            of.append((state, site))
        return of

    def evaluated(self) -> Found | None:
        """Return what there is to tell, where the device found a reason to look."""
        of = self.origins()
        pause = self.flagged.history.pause(of)
        if pause.left:
            pause.left -= 1
            return None
        return Found(floating.findings(_evaluated(self.flagged, self, None).notes, of), pause)


_held: Final = [0]  # bytes that the inputs of all such runs held, also of those that are done
later: Final[deque[Later]] = deque()  # in the order in which they were put into streams
looked: Final[deque[Found]] = deque()  # what was found and not told yet
_telling: Final[set[int]] = set()  # threads that are telling
_registered = False  # whether they are told of when the program ends
_BY_CONTEXT: Final = bool(getattr(sys.flags, "context_aware_warnings", False))


def patient() -> bool:
    """Tell whether floating-point errors of what runs now may be told later."""
    return filters.are_the_process() and not _BY_CONTEXT and not current().eager


class _Telling:
    """A ``with`` block within which this thread tells of nothing else; blocks may be nested."""

    __slots__ = ("outermost",)

    def __enter__(self) -> None:
        self.outermost = get_ident() not in _telling
        _telling.add(get_ident())

    def __exit__(self, *_: object) -> None:
        if self.outermost:
            _telling.discard(get_ident())


def _keep(run: Later) -> None:
    """Look at it later; where too many are kept, the oldest are waited for."""
    global _registered
    if not _registered:
        _registered = True
        atexit.register(tell, wait=True)
    later.append(run)
    try:
        while len(later) > _AHEAD or (len(later) > 1 and later[-1].after - later[0].before > _AHEAD_BYTES):
            _look()
    except IndexError:  # another thread took the last one
        return


def _look() -> None:
    """Look at the oldest one."""
    try:
        run = later.popleft()
    except IndexError:  # another thread took the last one
        return
    if run.ticket.read():
        with _Telling():
            found = run.evaluated()
        if found is not None:
            looked.append(found)


def look(wait: bool = True) -> None:
    """Look at runs that the device has done, or wait for all; what is to be told of them is kept."""
    while later:
        try:
            if not wait and not later[0].ticket.done:
                return
        except IndexError:  # another thread took the last one
            return
        _look()


def tell(wait: bool = False) -> None:
    """Tell of the errors of earlier runs that the device has done, or of all."""
    if _telling and get_ident() in _telling:
        return  # an evaluation copies values to the host; what comes after it is told after it
    if later:
        look(wait)
    if looked:
        with _Telling():
            while looked:
                looked.popleft().tell()


def _forked() -> None:
    """Answer for CUDA, which answers no more in a process that was forked."""
    for run in later:
        run.ticket.forget()
    later.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
