"""Memory that only pending work keeps alive.

In: large values as they come to exist.  Out: nothing, or, when they hold more than ``limit()`` bytes together, the oldest pending results
computed, so that what they were to be computed from can go.  Promise: a program that collects a thousand pending means of a thousand large
arrays runs in bounded memory; nothing is registered when an array is made, and small arrays are not even counted.

What is pending, and how it is computed, is handed over by those who know (``hand_over``).  Finding it takes milliseconds, and happens only
when another ``limit()`` of memory has filled up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from weakref import finalize

from lazynp.values import limits
from lazynp.values.allocator import in_use
from lazynp.values.buffer import Buffer

COUNTED_FROM: Final = 1 << 20  # bytes of a value that counts
HELD_SHARE: Final = 8  # pending work may hold this part of the machine's memory
TOGETHER: Final = 64  # results computed in one program


class _Held:
    """An account of what large values hold, and of who finds and computes what is pending; before that was handed over, nothing is."""

    __slots__ = ("compute", "foreign", "pending", "relieved_at")

    def __init__(self) -> None:
        self.foreign = 0  # bytes of NumPy's own memory in large values
        self.relieved_at = 0  # bytes that were held after the last time
        self.pending: Callable[[], list[Any]] = list
        self.compute: Callable[[list[Any], str], object] = lambda nodes, reason: None


_held: Final = _Held()


def hand_over(pending: Callable[[], list[Any]], compute: Callable[[list[Any], str], object]) -> None:
    """Take what finds the nodes of pending results, oldest first, and what computes some of them for a reason."""
    _held.pending, _held.compute = pending, compute


@functools.cache
def limit() -> int:
    """Bytes that large values may hold before pending work is computed."""
    return limits.memory() // HELD_SHARE


def held() -> int:
    """Bytes of memory in large values and in blocks of the allocator."""
    return _held.foreign + in_use()


def hold(value: Buffer) -> None:
    """A large value exists from now on."""
    if value.block is None:
        count(value)
    relieve()


def count(value: Buffer) -> None:
    """A large value in NumPy's own memory."""
    nbytes = value.nbytes
    _held.foreign += nbytes
    finalize(value, _released, nbytes).atexit = False


def _released(nbytes: int) -> None:
    _held.foreign -= nbytes


def relieve() -> None:
    """Compute the oldest pending results if too much memory is held."""
    now = held()
    if now - _held.relieved_at <= limit():
        if now < _held.relieved_at:
            _held.relieved_at = now
        return
    _held.relieved_at = 1 << 62  # not again from within
    try:
        _compute_oldest()
    finally:
        _held.relieved_at = max(0, held() - limit() // 2)


def _compute_oldest() -> None:
    oldest = _held.pending()
    for start in range(0, len(oldest), TOGETHER):
        together = [node for node in oldest[start : start + TOGETHER] if node.buffer is None]
        try:
            _held.compute(together, "memory limit")
        except Exception:
            # What fails is its owner's to hear of, when it is asked for.
            for node in together:
                with suppress(Exception):
                    _held.compute([node], "memory limit")
        if held() - limit() // 2 <= 0:
            break
