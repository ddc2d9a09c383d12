"""Memory that only pending work keeps alive.

In: large values as they come to exist.  Out: nothing, or pending results computed, so that what they were to be computed from can go.
Promise: a program that collects a thousand pending means of a thousand large arrays runs in bounded memory; nothing is registered when an
array is made, and small arrays are not even counted.

There are two bounds.  Pending work may hold a quarter of what the program itself has held so far, and ``SLACK``: beyond, results that are
smaller than what only they hold are computed.  And when large values hold more than ``limit()`` bytes together, a share of the machine's
memory or all of ``LAZYNP_MEMORY``, the oldest pending results are computed whatever they take.  Where private memory is limited
(``ulimit -d``), what only pending work holds and what is kept for reuse may be ``TIGHT_SHARE`` of what the limit leaves.

Memory of a GPU is no memory of the machine's: each has an account of its own, with the same bounds, and what is computed for its sake
reads something that is there.

What is pending, and how it is computed, is handed over by those who know (``loading.handed``).  Finding it takes milliseconds, and
happens only when that much more memory has filled up; the sums that loops collect in place are known without looking for them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from math import inf, prod
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize, ref

from lazynp.values import config
from lazynp.values.loading import handed, late

if TYPE_CHECKING:
    from lazynp.values import allocator, limits
    from lazynp.values.buffer import Buffer
else:
    allocator, limits = late("values.allocator", "values.limits")

COUNTED_FROM: Final = 1 << 19  # bytes of a value that counts
ALONE_FROM = 32 << 20  # bytes of an array from which on a second one beside it is worth avoiding
SUMS: Final = 8 << 20  # bytes, a share of a cache, that may come to be held before the sums that loops collect in place are computed
NOTED_SHARE: Final = 8  # a peak is noted where it is that part higher than the last one
SLACK: Final = 16 << 20  # bytes that only pending work may hold, however little the program holds
HELD_SHARE: Final = 8  # pending work may hold this part of the machine's memory
FREE_SHARE: Final = 2  # a run may take this part of the memory that is free
TIGHT_SHARE: Final = 8  # of private memory that a limit leaves
TOGETHER: Final = 64  # results computed in one program


assigned: Final[list[ref[Any]]] = []  # nodes: new values of large arrays, of which NumPy would hold no second one


class _Held:
    """An account of what large values hold."""

    __slots__ = ("bound", "foreign", "note", "noted_at", "peak", "relieved_at", "settled", "sums_at")

    def __init__(self) -> None:
        self.peak = 0  # the most bytes that were held when it was asked for
        self.noted_at = inf  # bytes held from which on a peak is noted, where peaks are watched
        self.note: Callable[[], object] = list
        self.foreign = 0  # bytes of NumPy's own memory in large values
        self.bound = SLACK  # bytes from which on it is asked what only pending work holds
        self.relieved_at = 0  # bytes that were held after the last time
        self.sums_at = SUMS  # and of the sums that are collected in place
        self.settled = 0  # bytes that were held when what only pending work held was last computed


_held: Final = _Held()


class Account:
    """An account of what large values hold in the memory of one device, ``place``, and of when pending work is computed for its sake.

    What is too much waits in ``crowded`` until no run is under way.
    """

    __slots__ = ("bound", "held", "peak", "place", "relieved_at", "total")

    def __init__(self, place: Any, total: int) -> None:
        self.place = place
        self.total = total  # bytes of memory there
        self.held = self.peak = 0
        self.bound = SLACK  # bytes from which on it is asked what only pending work holds
        self.relieved_at = 0  # bytes that were held after the last time

    def limit(self) -> int:
        """Bytes that large values may hold before pending work is computed."""
        share = self.total // HELD_SHARE
        return share if config.memory is None else min(config.memory, share)

    def count(self, value: Buffer) -> None:
        """A large value exists from now on."""
        nbytes = value.nbytes
        finalize(value, self.released, nbytes).atexit = False
        self.held += nbytes
        if self.held > self.peak:
            self.peak = self.held
        if self.held > self.bound or self.held - self.relieved_at > self.limit():
            crowded[self] = None

    def released(self, nbytes: int) -> None:
        self.held -= nbytes
        if self.held < self.relieved_at < _NOT_NOW:
            self.relieved_at = self.held

    def relieve(self) -> None:
        """See ``relieve``, which this is for one device."""
        if self.held > self.bound:
            self.bound = _NOT_NOW
            try:
                _compute(held_only_by(self.pending())[0], lambda: False)
            finally:
                self.bound = self.held + self.held // 4 + SLACK
        if self.held - self.relieved_at > self.limit():
            self.relieved_at = _NOT_NOW
            try:
                _compute(self.pending(), lambda: self.held <= self.limit() // 2)
            finally:
                self.relieved_at = max(0, self.held - self.limit() // 2)

    def pending(self) -> list[Any]:
        """List the pending results that are computed, on the way or in the end, with something that lies here."""
        pending = handed["pending"]()
        group, readers = _walked(pending)
        ours = {_top(group, nodes[0]) for value, nodes in readers.items() if value.buffer.place is self.place}
        return [node for node in pending if _top(group, node) in ours]


_NOT_NOW: Final = 1 << 62  # bytes that never are: not again from within
crowded: Final[dict[Account, None]] = {}  # that hold more than they should
devices: Final[dict[str, Account]] = {}  # by the names of those in use


def limit() -> int:
    """Bytes that large values may hold before pending work is computed."""
    return _share() if config.memory is None else min(config.memory, _share())


@functools.cache
def _share() -> int:
    return limits.memory() // HELD_SHARE


def budget() -> int:
    """Bytes that one run may need besides what exists before it."""
    return limits.free() // FREE_SHARE if config.memory is None else config.memory


def held() -> int:
    """Bytes of memory in large values and in blocks of the allocator."""
    return _held.foreign + allocator.in_use()


def hold(value: Buffer) -> None:
    """A large value exists from now on."""
    if value.block is None:
        count(value)
    left = limits.private()
    if left != inf:
        _tighten(int(left) // TIGHT_SHARE)
    relieve()


def _tighten(share: int) -> None:
    """Private memory is limited: neither pending work nor the pool may hold much more than ``share`` bytes."""
    _held.bound = min(_held.bound, _held.settled + share)
    if allocator.pooled() > share:
        allocator.trim(share)


def count(value: Buffer) -> None:
    """A large value in NumPy's own memory."""
    nbytes = value.nbytes
    _held.foreign += nbytes
    finalize(value, _released, nbytes).atexit = False


def _released(nbytes: int) -> None:
    _held.foreign -= nbytes


def relieve() -> None:
    """Compute the oldest pending results if too much memory is held."""
    while crowded:
        crowded.popitem()[0].relieve()
    now = held()
    if now > _held.peak:
        _held.peak = now
        if now > _held.noted_at:
            _held.noted_at = now + now // NOTED_SHARE
            _held.note()
    if now > _held.sums_at:
        _held.sums_at = _NOT_NOW
        try:
            _compute(handed["changed"](), lambda: False)
        finally:
            now = held()
            _held.sums_at = now + SUMS
    elif now < _held.sums_at - SUMS:
        _held.sums_at = now + SUMS
    if now > _held.bound:
        _held.bound = _NOT_NOW
        try:
            _release()
        finally:
            # NumPy would hold what is still there: never less is allowed again.
            now = _held.settled = held()
            _held.bound = now + now // 4 + SLACK
    if now - _held.relieved_at <= limit():
        if now < _held.relieved_at:
            _held.relieved_at = now
        return
    _held.relieved_at = _NOT_NOW
    try:
        _compute_oldest()
    finally:
        _held.relieved_at = max(0, held() - limit() // 2)


def _compute_oldest() -> None:
    _compute(handed["pending"](), lambda: held() - limit() // 2 <= 0)


def _compute(oldest: list[Any], enough: Callable[[], bool]) -> None:
    for start in range(0, len(oldest), TOGETHER):
        together = [node for node in oldest[start : start + TOGETHER] if node.buffer is None]
        try:
            handed["compute"](together, "memory limit")
        except Exception:
            # What fails is its owner's to hear of, when it is asked for.
            for node in together:
                with suppress(Exception):
                    handed["compute"]([node], "memory limit")
        if enough():
            break


def _release() -> None:
    """Compute the pending results that take less memory than what only they hold."""
    worth = held_only_by(handed["pending"]())[0]
    _compute(worth, lambda: False)


def watch(note: Callable[[], object]) -> None:
    """Call ``note`` from now on at each peak that is notably higher than the last one, if it is one of large values."""
    _held.note, _held.noted_at = note, COUNTED_FROM


def accounts() -> dict[str, int]:
    """Return the bytes of large values in NumPy's memory, the peak of what values held, and what exists for pending work only."""
    return {"numpy": _held.foreign, "held_peak": max(_held.peak, held()), "pending": held_only_by(handed["pending"]())[1]}


def held_only_by(pending: list[Any]) -> tuple[list[Any], int]:
    """List those of the nodes ``pending`` whose values are smaller than the large ones that exist for them only.

    What is computed from the same values is weighed together.  Also returned: how many bytes exist for pending nodes only.
    """
    group, readers = _walked(pending)
    counted = references(readers)
    only = [(value.buffer.nbytes, nodes) for (value, nodes), count in zip(readers.items(), counted, strict=True) if count <= len(nodes)]
    for _, nodes in only:
        for node in nodes:
            _join(group, nodes[0], node)
    gains: dict[Any, int] = {}
    for nbytes, nodes in only:
        top = _top(group, nodes[0])
        gains[top] = gains.get(top, 0) + nbytes
    for node in pending:
        top = _top(group, node)
        if top in gains:
            gains[top] -= prod(node.shape) * node.dtype.itemsize
    return [node for node in pending if gains.get(_top(group, node), 0) > 0], sum([nbytes for nbytes, _ in only])


def _walked(pending: list[Any]) -> tuple[dict[Any, Any], dict[Any, list[Any]]]:
    """Collect what is pending, as a forest (a node -> another of its group), and large values with the nodes that read them."""
    group: dict[Any, Any] = dict.fromkeys(pending)
    readers: dict[Any, list[Any]] = {}
    waiting = list(pending)
    while waiting:
        node = waiting.pop()
        for source in node.src:
            value = source.buffer
            if value is None:
                if source not in group:
                    group[source] = None
                    waiting.append(source)
                _join(group, node, source)
            elif value.nbytes >= COUNTED_FROM:
                readers.setdefault(source, []).append(node)
    return group, readers


def references(values: dict[Any, Any]) -> list[int]:
    """Count who refers to each key of ``values``, besides that dictionary."""
    nobody = object()  # which has a name where the others have the dictionary
    counts = [sys.getrefcount(value) for value in (*values, nobody)]
    own = counts.pop()
    return [count - own for count in counts]


def _top(group: dict[Any, Any], node: Any) -> Any:
    above = group[node]
    while above is not None:
        further = group[above]
        if further is None:
            return above
        group[node] = further
        node, above = further, group[further]
    return node


def _join(group: dict[Any, Any], a: Any, b: Any) -> None:
    a, b = _top(group, a), _top(group, b)
    if a is not b:
        group[b] = a
