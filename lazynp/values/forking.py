"""Locks that a child process can use after ``fork``.

In: the few places that take a lock.  Out: their locks.  Promise: ``fork`` waits until none of them is held by another thread, so that a
child, in which that thread does not exist, finds every lock free, no module half imported and no memory half written.  Threads that
compute without a lock do not make it wait.

Who holds one of these locks may take a later one, never an earlier one.  Modules that are imported when they are needed have locks of
their own, Python's: ``fork`` waits for those as well.
"""

from __future__ import annotations

import importlib
import os
import time
from _thread import RLock, get_ident
from typing import Any, Final

loading: Final = RLock()  # a GPU is looked for
graph: Final = RLock()  # nodes are walked and published, inputs are claimed, a backend is imported
compiler: Final = RLock()  # LLVM, which has locks of its own

_ORDER: Final = (loading, graph, compiler)


# Python's locks of the modules that are being imported: name -> weak reference to a lock with an owner.
_imports: Final[dict[str, Any]] = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
PATIENCE: Final = 2.0  # seconds


def _before() -> None:
    for lock in _ORDER:
        lock.acquire()
    deadline = time.monotonic() + PATIENCE
    while _imported_elsewhere() and time.monotonic() < deadline:
        time.sleep(0.0005)


def _imported_elsewhere() -> bool:
    here = (None, get_ident())
    return any(getattr(look(), "owner", None) not in here for look in list(_imports.values()))


def _after() -> None:
    for lock in reversed(_ORDER):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
