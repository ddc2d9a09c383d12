"""The graph in use: the native one, or its Python twin.

In: what was built, and ``LAZYNP_PURE``.  Out: the names of whichever it is; ``native`` says which.  Promise: a native one that does not
load is no error.
"""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING, Any

from lazynp.values import config

__all__ = [
    "Node", "Shape", "Site", "bind", "caller", "calls", "mark_computed", "marks", "native", "recorder", "register", "walk", "without_sizes",
]  # fmt: skip

Shape = tuple[int, ...]
Site = tuple[CodeType, int]

native = False
if not TYPE_CHECKING and not config.pure:
    try:
        from lazynp.graph._native import Node, bind, caller, calls, mark_computed, marks, recorder, register, walk, without_sizes

        native = True
    except Exception:  # ``array/core.py`` says why, for both
        pass
if not native:
    from lazynp.graph._python import Node, caller, calls, mark_computed, marks, recorder, register

    bind: Any = None
    walk: Any = None
    without_sizes: Any = None
