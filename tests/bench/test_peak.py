"""What programs hold at most, counted: NumPy's memory and blocks of the allocator together; and the tool that asks the system."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
import tracemalloc
from typing import Any

import numpy
import pytest

import lazynp
from bench import peak
from bench.memory_programs import PROGRAMS
from lazynp.values import allocator

N = 400_000
SLACK = 24 << 20  # what pending work may hold, and some
SLICE = ["layers", "sorts", "sorts_added", "statistics", "statistics_of_rows", "transforms", "many_of_one", "powers", "in_place", "outer",
         "joined", "history", "gradients"]  # fmt: skip
DOMAIN = 7  # of tracemalloc


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are known to ``tracemalloc``, as NumPy's memory is; a free one that is too large does not serve, for it would count."""
    allocator.trim()
    monkeypatch.setattr(allocator.Allocator, "_larger", lambda self, size: None)
    track, untrack = ctypes.pythonapi.PyTraceMalloc_Track, ctypes.pythonapi.PyTraceMalloc_Untrack
    track.argtypes, untrack.argtypes = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t], [ctypes.c_uint, ctypes.c_size_t]
    made, gone = allocator.Block.__init__, allocator.Block.__del__

    def init(self: Any, *arguments: Any) -> None:
        made(self, *arguments)
        track(DOMAIN, self.address, self.nbytes)

    def delete(self: Any) -> None:
        untrack(DOMAIN, self.address)
        gone(self)

    monkeypatch.setattr(allocator.Block, "__init__", init)
    monkeypatch.setattr(allocator.Block, "__del__", delete)


def most(name: str, xp: Any) -> int:
    gc.collect()
    tracemalloc.start(1)
    try:
        PROGRAMS[name](xp, N)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("name", SLICE)
def test_a_program_holds_little_more_than_with_numpy(name: str) -> None:
    most(name, lazynp)  # compiles
    ours, theirs = most(name, lazynp), most(name, numpy)
    assert theirs > 8 * N  # it was counted
    assert ours <= peak.SHARE * theirs + SLACK, (ours, theirs)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the peak of a process, and forgets it when asked to")
def test_a_row_and_its_line() -> None:
    assert peak.allowed(4 << 20) == (69 << 20)
    text = peak.line({"program": "memory:sorts", "numpy": 100 << 20, "lazynp": 200 << 20, "held": 30 << 20, "files": 1 << 20})
    assert text.split() == ["memory:sorts", "100.0", "200.0", "30.0", "1.0", "EXCEEDS", "by", "11.0"]
    assert peak.line({"program": "x", "error": "it is over"}).split() == ["x", "it", "is", "over"]
    assert {name.partition(":")[0] for suite in peak.SUITES for name in peak.names(suite, "tiny")} == set(peak.SUITES)

    def touch() -> None:
        with mmap.mmap(-1, 32 << 20) as fresh:  # the C library may have kept pages of its own
            fresh.write(b"x" * (1 << 20) * 32)

    assert peak.peak_of(touch) >= 31 << 20
