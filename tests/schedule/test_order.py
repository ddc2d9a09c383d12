"""The order of kernels and library calls: who reads whom, and who overwrites whom."""

from __future__ import annotations

import pytest

from lazynp.schedule import cost
from lazynp.schedule.order import CycleError, grouped, order

# Kernel k is number k, the library call that computes entry e is -1 - e.
Table = dict[int, list[int]]
ORDERS: dict[str, tuple[Table, Table, list[tuple[int, int]], list[int]]] = {
    # reads, writes, overwrites (item, entry), the order
    "nothing to wait for": ({0: [], 1: []}, {0: [10], 1: [11]}, [], [0, 1]),
    "a chain that is numbered backwards": ({0: [11], 1: [10], 2: []}, {0: [12], 1: [11], 2: [10]}, [], [2, 1, 0]),
    "a diamond": ({0: [11, 12], 1: [10], 2: [10], 3: []}, {0: [13], 1: [11], 2: [12], 3: [10]}, [], [3, 1, 2, 0]),
    "calls stay together": ({0: [], -5: [], 1: [], -7: []}, {0: [10], -5: [4], 1: [11], -7: [6]}, [], [0, 1, -7, -5]),
    "a call between kernels": ({0: [4], -5: [10], 1: []}, {0: [11], -5: [4], 1: [10]}, [], [1, -5, 0]),
    "who overwrites comes last": ({0: [9], 1: [9], 2: [9]}, {0: [10], 1: [11], 2: [12]}, [(0, 9)], [1, 2, 0]),
    "an overwrite that others wait for": ({0: [9], 1: [9, 10]}, {0: [10], 1: [11]}, [(0, 9)], [0, 1]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_order(name: str) -> None:
    reads, writes, overwrites, expected = ORDERS[name]
    assert order(reads, writes, overwrites) == expected


def test_a_cycle_is_an_error() -> None:
    with pytest.raises(CycleError, match="2 of 3"):
        order({0: [], 1: [12], 2: [11]}, {0: [10], 1: [11], 2: [12]}, [])


def test_a_search_that_grows_too_long_gives_the_overwrite_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 0 would overwrite 9, which 6 reads; 1 to 5 wait for 0, one after the other."""
    writes = {k: [10 + k] for k in range(7)}
    reads = {k: ([9] if k in (0, 6) else [9 + k]) for k in range(7)}
    assert order(reads, writes, [(0, 9)])[:2] == [6, 0]
    monkeypatch.setattr(cost, "SEARCH", 2)
    assert order(reads, writes, [(0, 9)])[:2] == [0, 6]


def test_as_recorded_each_value_goes_before_the_next_comes() -> None:
    """Three times a kernel, a call, a kernel; entries are numbered as they were recorded."""
    reads: Table = {0: [1], 1: [4], 2: [7], -2: [0], -5: [3], -8: [6], 3: [], 4: [], 5: []}
    writes: Table = {0: [2], 1: [5], 2: [8], -2: [1], -5: [4], -8: [7], 3: [0], 4: [3], 5: [6]}
    assert order(reads, writes, []) == [3, 4, 5, -2, -5, -8, 0, 1, 2]
    assert order(reads, writes, [], recorded=True) == [3, -2, 0, 4, -5, 1, 5, -8, 2]


def test_with_sizes_what_adds_least_goes_first() -> None:
    """Three large values that are made, sorted and summed up; and one whose small result frees two."""
    reads: Table = {0: [], 1: [], 2: [], -4: [0], -5: [1], -6: [2], 6: [3, 4, 5]}
    writes: Table = {0: [0], 1: [1], 2: [2], -4: [3], -5: [4], -6: [5], 6: [6]}
    sizes = {0: 100, 1: 100, 2: 100, 3: 1, 4: 1, 5: 1}
    assert order(reads, writes, []) == [0, 1, 2, -4, -5, -6, 6]
    assert order(reads, writes, [], sizes=sizes) == [0, -4, 1, -5, 2, -6, 6]
    reads = {0: [], 1: [0], 2: [0], 3: [1, 2]}
    writes = {0: [0], 1: [1], 2: [2], 3: [3]}
    assert order(reads, writes, [], sizes={0: 100, 1: 100, 2: 1}) == [0, 2, 1, 3]  # the second reader of 0 frees it


def test_calls_that_follow_one_another_are_one_group() -> None:
    assert grouped([0, -3, -9, 1, 2, -4]) == [[0], [-3, -9], [1], [2], [-4]]
    assert grouped([]) == []
