"""Memory that only pending work keeps alive.

In: large values as they come to exist.  Out: nothing, or, when they hold more than ``limit()`` bytes together, the oldest pending results
computed, so that what they were to be computed from can go.  Promise: a program that collects a thousand pending means of a thousand large
arrays runs in bounded memory; nothing is registered when an array is made, and small arrays are not even counted.

What is pending is found by asking Python's garbage collector for the arrays and scalars that exist: that takes milliseconds, and happens
only when another ``limit()`` of memory has filled up.
"""

from __future__ import annotations

import functools
import gc
from contextlib import suppress
from typing import Any, Final
from weakref import finalize

from lazynp.values import limits
from lazynp.values.allocator import in_use
from lazynp.values.buffer import Buffer

COUNTED_FROM: Final = 1 << 20  # bytes of a value that counts
HELD_SHARE: Final = 8  # pending work may hold this part of the machine's memory
TOGETHER: Final = 64  # results computed in one program

_foreign = 0  # bytes of NumPy's own memory in large values
_relieved_at = 0  # bytes that were held after the last time


@functools.cache
def limit() -> int:
    """Bytes that large values may hold before pending work is computed."""
    return limits.memory() // HELD_SHARE


def held() -> int:
    """Bytes of memory in large values and in blocks of the allocator."""
    return _foreign + in_use()


def hold(value: Buffer) -> None:
    """A large value exists from now on."""
    if value.block is None:
        count(value)
    relieve()


def count(value: Buffer) -> None:
    """A large value in NumPy's own memory."""
    global _foreign
    nbytes = value.nbytes
    _foreign += nbytes
    finalize(value, _released, nbytes).atexit = False


def _released(nbytes: int) -> None:
    global _foreign
    _foreign -= nbytes


def relieve() -> None:
    """Compute the oldest pending results if too much memory is held."""
    global _relieved_at
    now = held()
    if now - _relieved_at <= limit():
        if now < _relieved_at:
            _relieved_at = now
        return
    _relieved_at = 1 << 62  # not again from within
    try:
        _compute_oldest()
    finally:
        _relieved_at = max(0, held() - limit() // 2)


def _compute_oldest() -> None:
    from lazynp.arrays import ndarray
    from lazynp.engine.realize import realize
    from lazynp.scalars import CLASSES

    ours = {id(ndarray), *map(id, CLASSES)}  # other classes need not even have a hash
    pending: dict[Any, None] = {}
    for x in gc.get_objects():
        # Another thread may have got no further than to make the object.
        if id(type(x)) in ours and type(getattr(x, "_base", None)) is not ndarray:
            node = getattr(x, "_node", None)
            if node is not None and node.buffer is None and node.src:
                pending[node] = None
    oldest = sorted(pending, key=lambda node: node.number)
    for start in range(0, len(oldest), TOGETHER):
        together = [node for node in oldest[start : start + TOGETHER] if node.buffer is None]
        try:
            realize(together, "memory limit")
        except Exception:
            # What fails is its owner's to hear of, when it is asked for.
            for node in together:
                with suppress(Exception):
                    realize([node], "memory limit")
        if held() - limit() // 2 <= 0:
            break
