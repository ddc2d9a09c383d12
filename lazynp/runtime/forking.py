"""Locks that a child process can use after ``fork``.

In: the few places that take a lock.  Out: their locks.  Promise: ``fork`` waits until none of them is held by another thread, so that a
child, in which that thread does not exist, finds every lock free, no module half imported and no memory half written.  Threads that
compute without a lock do not make it wait.

Who holds one of these locks may take a later one, never an earlier one.
"""

from __future__ import annotations

import os
import threading
from typing import Final

loading: Final = threading.RLock()  # the first value imports the runtime
graph: Final = threading.RLock()  # nodes are walked and published, inputs are claimed, a backend is imported
compiler: Final = threading.RLock()  # LLVM, which has locks of its own

_ORDER: Final = (loading, graph, compiler)


def _before() -> None:
    for lock in _ORDER:
        lock.acquire()


def _after() -> None:
    for lock in reversed(_ORDER):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
