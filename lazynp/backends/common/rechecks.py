"""From a flag to a warning: programs whose kernels raised a floating-point flag are evaluated again by NumPy.

In: a plan of compiled kernels one of which found a flag raised that somebody wants to hear of, and the program it was run for.  Out: the
errors, by operation.  Promise: the flags are a filter and nothing more: which operation raised what, or whether it was but a comparison
with NaN, is what NumPy says when it computes the same operations from the same inputs.  The kernels' values are kept.

Data full of NaN must not make programs slow.  An evaluation that told nobody anything (nothing was wrong, or Python's filters had shown or
dropped all of it) lets the next hits of this plan at the same lines go by: 1 of them, then 3, 7, ... up to ``LONGEST``.  One that told
something starts from anew, and so does a change of the filters.  Operations under a mode that acts at the call (raise, call, print, log)
are evaluated at every hit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, Final

from lazynp.backends.base import ExecutionError
from lazynp.backends.common.ownership import Claim
from lazynp.graph import floating, report
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Canonical

LONGEST: Final = 255  # hits that go by
_KEPT: Final = 64  # places of one plan that are told apart


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

    def pause(self, canonical: Canonical) -> Pause:
        """That of the lines which recorded a program."""
        filters = warnings.filters
        if self._filters is not filters or self._copy != filters:
            self._pauses.clear()
            self._filters, self._copy = filters, list(filters)
        # The operations are nodes that the run has not published yet; code objects hash slowly.
        sites = [node.site for node in canonical.nodes if node.op.kind is not Kind.LEAF]
        key = tuple([(id(site[0]), site[1]) for site in sites if site is not None])
        found = self._pauses.get(key)
        if found is None:
            if len(self._pauses) >= _KEPT:
                self._pauses.clear()
            found = self._pauses[key] = Pause()
        return found


class Flagged:
    """A plan whose kernels raised a flag: how to evaluate it again, and what came of that before."""

    __slots__ = ("evaluate", "history")

    def __init__(self, evaluate: Callable[..., Any]) -> None:
        self.evaluate = evaluate
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
    """The errors of the run that just ended; its nodes are not published yet."""
    heard = floating.take()
    if heard is None:
        return None
    flagged: Flagged | None = heard.flagged
    pause = None
    if flagged is not None:
        pause = flagged.history.pause(canonical)
        if pause.left and not any(node.err.eager for node in canonical.nodes):
            pause.left -= 1
            pause = None
        else:
            heard = _evaluated(flagged, canonical, claim)
    return Found(floating.findings(heard.notes, canonical.nodes), pause)


def _evaluated(flagged: Flagged, canonical: Canonical, claim: Claim | None) -> floating.Heard:
    report.work.rechecks += 1
    # Where there is no memory left for it, nobody hears of the errors; the values are there.
    with nullcontext() if claim is None else claim.lifted(), suppress(ExecutionError):
        flagged.evaluate(canonical.buffers, canonical.integers, canonical.scalars)
    return floating.take() or floating.Heard()
