"""``np.memory()``: what is held, and by which line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import lazynp as np
from lazynp.graph import report
from lazynp.values import allocator, config

pytestmark = pytest.mark.usefixtures("recorded")

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


def test_arrays_that_numpy_made_have_a_line() -> None:
    x = np.random.default_rng(0).standard_normal(SIZE)
    line = f"{__file__}:{sys._getframe().f_lineno - 1}"
    [row] = [row for row in np.memory()["lines"] if row["line"] == line]
    assert row["bytes"] == x.nbytes


def test_the_report_of_a_program_says_which_lines_held_most(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "x = np.random.default_rng(0).standard_normal(3_000_000)\n"
        "y = np.sqrt(np.abs(x)); y[0]\n"
        "del x, y\n"
        "z = np.ones(300_000) + 1; z[0]\n"
    )
    command = [sys.executable, "-m", "lazynp", "--report", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    held = done.stderr.split("memory held when it was most:\n")[1].splitlines()
    assert f"{program}:2" in held[0] + held[1] and f"{program}:3" in held[0] + held[1]
    assert "24,000,000 bytes" in held[0]


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


TRUE = """
import time, numpy, lazynp as np
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) << 12
def told():
    now = np.memory()
    return now["in_use"] + now["numpy"] + now["pooled"]
float((np.sin(np.asarray(numpy.ones(1_000_000))) * 2).realize()[0])  # compiles
numpy.random.default_rng(0).standard_normal(1)
before = resident() - told()
kept = [np.asarray(numpy.random.default_rng(k).standard_normal(2_000_000)) for k in range(10)]
made = [(np.sin(x) * k).realize() for k, x in enumerate(kept)]
apart = [resident() - told() - before]
pending = [(x * 2).sum() for x in kept]
del kept
lines = np.memory()
assert lines["pending"] == 160_000_000, lines
assert max(row["bytes"] for row in lines["lines"]) == 160_000_000
del pending, made
deadline = time.monotonic() + 30
while (np.memory()["pooled"] > 40_000_000 or resident() - told() - before > 24 << 20) and time.monotonic() < deadline:
    time.sleep(0.1)
apart.append(resident() - told() - before)
assert np.memory()["pooled"] <= 40_000_000
print(max(map(abs, apart)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system's own count is read from /proc")
def test_what_is_told_is_what_the_system_counts_and_goes_back_to_it() -> None:
    environment = {**os.environ, "LAZYNP_TIER": "compiled"}
    run = subprocess.run([sys.executable, "-c", TRUE], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 24 << 20
