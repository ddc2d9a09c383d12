"""``np.memory()``: what is held, and by which line."""

from __future__ import annotations

import sys
import time

import numpy
import pytest

import lazynp as np
from lazynp.graph import report
from lazynp.values import allocator, config

SIZE = 1 << 18  # elements: two mebibytes


def test_memory_says_which_line_made_what_exists() -> None:
    x = np.asarray(numpy.ones(SIZE))
    before = np.memory()
    with config.override(tier="compiled"):
        y = (x * 3 + 1).realize()
        line = f"{__file__}:{sys._getframe().f_lineno - 1}"
    after = np.memory()
    [row] = [row for row in after["lines"] if row["line"] == line]
    assert row["bytes"] == 8 * SIZE and row["values"] == 1
    assert after["in_use"] - before["in_use"] >= 8 * SIZE
    assert after["held_peak"] >= after["in_use"] + after["numpy"]
    del y
    assert not [row for row in np.memory()["lines"] if row["line"] == line]


def test_memory_says_what_only_pending_work_holds() -> None:
    before = np.memory()["pending"]
    mean = np.asarray(numpy.ones(SIZE)).mean()
    assert np.memory()["pending"] - before == 8 * SIZE
    assert "memory held: " in np.report() and "for pending work only: " in np.report()
    assert report.counters()["memory"]["pending"] - before == 8 * SIZE
    assert float(mean) == 1.0
    assert np.memory()["pending"] == before


def test_large_blocks_go_back_to_the_system_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "DECAY_FROM", 16 << 20)
    monkeypatch.setattr(allocator, "DECAY_SECONDS", 0.2)
    pool = allocator.Allocator(keep=1 << 30)
    blocks = [pool.allocate(8 << 20) for _ in range(8)]
    del blocks[1:]
    assert pool.memory()["pooled"] == 56 << 20
    deadline = time.monotonic() + 20
    while pool.memory()["pooled"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pool.memory()["pooled"] == 0 and pool.memory()["in_use"] == 8 << 20
    del blocks


def test_what_is_used_again_and_again_is_kept() -> None:
    pool = allocator.Allocator(keep=1 << 30)
    pool.allocate(8 << 20)
    since = time.monotonic()
    pool.allocate(8 << 20)
    pool.decay(since)
    assert pool.memory()["pooled"] == 8 << 20
    pool.decay(time.monotonic() + 1)
    assert pool.memory()["pooled"] == 0
