"""Step 6: the order of kernels and library calls.

In: what each reads, what it writes, and who would like to overwrite what.  Out: an order that respects who reads whom, and, where that is
possible, in which a value is overwritten only after its last reader.  Promise: the order depends on the structure alone; a cycle is an
error, never a wrong answer.

There are three orders: library calls next to each other, which costs the fewest steps; the one in which the program was recorded, which
holds no more values at a time than NumPy does; and the one that takes next whatever adds least to what is held.

Kernel k has the number k, the library call that computes entry e the number -1 - e.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from lazynp.schedule import cost
from lazynp.values.loading import load


class CycleError(Exception):
    """Kernels wait for each other: a bug of the scheduler."""


def order(
    reads: Mapping[int, Iterable[int]],
    writes: Mapping[int, Iterable[int]],
    overwrites: Iterable[tuple[int, int]],
    recorded: bool = False,
    sizes: Mapping[int, int] | None = None,
) -> list[int]:
    """Topological, and library calls as close together as that allows, or everything as close to where it was ``recorded``, or, where
    ``sizes`` are given, holding little at a time.

    Parameters
    ----------
    reads, writes
        Entries by number of the work item.
    overwrites
        (number, entry): the item gains if everybody else has read the entry before it runs.
    sizes
        Bytes by entry that is freed after its last reader.
    """
    producer = {e: number for number, entries in writes.items() for e in entries}
    readers: dict[int, set[int]] = {}
    for number, entries in reads.items():
        for e in entries:
            readers.setdefault(e, set()).add(number)
    after: dict[int, dict[int, None]] = {number: {} for number in reads}  # item -> the items that wait for it
    for number, entries in reads.items():
        for e in entries:
            if e in producer:
                after[producer[e]][number] = None
    for number, e in overwrites:
        others = readers[e] - {number}
        if others and not _reaches(after, number, others):
            for other in sorted(others):
                after[other][number] = None
    if sizes is not None:
        return _frugal(after, reads, writes, readers, sizes)
    return _as_recorded(after, writes) if recorded else _sorted(after)


def grouped(ordered: Iterable[int]) -> list[list[int]]:
    """Kernels by themselves, library calls that follow one another together."""
    groups: list[list[int]] = []
    for number in ordered:
        if number < 0 and groups and groups[-1][0] < 0:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _reaches(after: Mapping[int, Iterable[int]], start: int, goals: set[int]) -> bool:
    """Tell whether one of ``goals`` has to wait for ``start``; a search that grows too long counts as yes."""
    pending, seen = [start], {start}
    while pending:
        for following in after[pending.pop()]:
            if following in goals or len(seen) > cost.SEARCH:
                return True
            if following not in seen:
                seen.add(following)
                pending.append(following)
    return False


def _as_recorded(after: Mapping[int, Iterable[int]], writes: Mapping[int, Iterable[int]]) -> list[int]:
    if len(after) < 2:
        return list(after)
    heapq = load("heapq")  # which a process's first programs, of one kernel mostly, do without
    waiting = _waiting(after)
    place = {number: min(writes[number], default=0) for number in after}
    ready = [(place[number], number) for number in after if not waiting[number]]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        number = heapq.heappop(ready)[1]
        found.append(number)
        for follower in after[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, (place[follower], follower))
    return found


def _frugal(
    after: Mapping[int, Iterable[int]],
    reads: Mapping[int, Iterable[int]],
    writes: Mapping[int, Iterable[int]],
    readers: Mapping[int, Iterable[int]],
    sizes: Mapping[int, int],
) -> list[int]:
    """Take of what is ready always that which adds least to what is held: what it makes, without what it reads last."""
    heapq = load("heapq")
    waiting = _waiting(after)
    left = {e: set(numbers) for e, numbers in readers.items()}

    def growth(number: int) -> int:
        freed = sum([sizes.get(e, 0) for e in dict.fromkeys(reads[number]) if len(left[e]) == 1])
        return sum([sizes.get(e, 0) for e in writes[number]]) - freed

    place = {number: min(writes[number], default=0) for number in after}
    ready = [(growth(number), place[number], number) for number in after if not waiting[number]]
    heapq.heapify(ready)
    found: dict[int, None] = {}
    while ready:
        number = heapq.heappop(ready)[2]
        if number in found:  # it was found to add less, and taken then
            continue
        found[number] = None
        changed: dict[int, None] = {}
        for e in dict.fromkeys(reads[number]):
            left[e].discard(number)
            if len(left[e]) == 1:
                (last,) = left[e]
                if not waiting[last]:
                    changed[last] = None
        for follower in after[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                changed[follower] = None
        for other in changed:
            heapq.heappush(ready, (growth(other), place[other], other))
    return list(found)


def _waiting(after: Mapping[int, Iterable[int]]) -> dict[int, int]:
    """Count what each item waits for."""
    waiting = dict.fromkeys(after, 0)
    for followers in after.values():
        for number in followers:
            waiting[number] += 1
    return waiting


def _sorted(after: Mapping[int, Iterable[int]]) -> list[int]:
    waiting = _waiting(after)
    ready: tuple[deque[int], deque[int]] = (deque(), deque())
    for number in sorted(after):
        if not waiting[number]:
            ready[number < 0].append(number)
    found: list[int] = []
    library = False
    while ready[0] or ready[1]:
        if not ready[library]:
            library = not library
        number = ready[library].popleft()
        found.append(number)
        for follower in after[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready[follower < 0].append(follower)
    if len(found) != len(after):
        raise CycleError(f"{len(after) - len(found)} of {len(after)} kernels and library calls wait for each other")
    return found
