"""The graph node, and where the user's program recorded it.

In: the native node (``_native.pyi`` says what its attributes mean).  Out: nodes and lines.  Promise: a node never changes what
it means; the one thing that happens to it is that its value comes to exist (``publish``), whereupon it forgets its sources, so
that a long-lived array never keeps its history alive.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CodeType, FrameType

from lazynp.graph._native import Node, caller

Shape = tuple[int, ...]
Site = tuple[CodeType, int]
DEPTH_CUT = 250  # operations in a chain, of which longer ones are cut at a line: see `bounds.py`

__all__ = ["DEPTH_CUT", "Node", "Shape", "Site", "caller", "line_of", "site_of", "span", "stacklevel", "user_frame", "where"]


def user_frame() -> FrameType:
    """The same as a running frame, which has the names that the user's module knows."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "lazynp":
        frame = frame.f_back
    return frame


def stacklevel() -> int:
    """Depth of the first frame outside lazynp, for ``warnings.warn`` in the caller."""
    depth, frame, user = 1, sys._getframe(1), user_frame()
    while frame is not user and frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


def site_of(node: Node) -> Site | None:
    """The line of a node; of the nearest source that has one where it has none."""
    pending = [node]
    while pending:
        at = pending.pop()
        if at.site is not None:
            return at.site
        pending += at.src
    return None


def line_of(site: Site) -> int:
    """The line number of a site."""
    code, offset = site
    for start, stop, number in code.co_lines():
        if start <= offset < stop and number is not None:
            return number
    return code.co_firstlineno


def where(site: Site | None) -> str:
    """``file:line`` of a site, made only when an error or a report wants it."""
    if site is None:
        return "an unknown line"
    return f"{site[0].co_filename}:{line_of(site)}"


def span(nodes: Sequence[Node]) -> str:
    """``file:first-last``: the lines of nodes, in the file of the last one that has a line."""
    sites = [node.site for node in nodes if node.site is not None]
    if not sites:
        return where(site_of(nodes[-1]))
    file = sites[-1][0].co_filename
    lines = [line_of(site) for site in sites if site[0].co_filename == file]
    return f"{file}:{min(lines)}" + (f"-{max(lines)}" if max(lines) > min(lines) else "")
