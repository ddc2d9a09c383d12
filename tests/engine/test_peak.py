"""How much memory programs take: counted by the allocator and the schedule, and as the system sees a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.codegen import pipeline
from lazynp.engine.realize import compiler
from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.schedule.memory import recorded_peak

pytestmark = pytest.mark.usefixtures("numbers_wait")

N = 1_000_000
ARRAY = 8 * N


def sorts(x: Any) -> Any:
    total = 0.0
    for i in range(40):
        total += np.sort(x * i).sum()
    return total


def layers(x: Any) -> Any:
    h, w = x.reshape(1000, 1000), x[: 1000 * 1000].reshape(1000, 1000)
    for _ in range(20):
        h = np.tanh(h @ w) * 0.1
    return h


def accumulated(x: Any) -> Any:
    total = x * 0
    for i in range(20):
        total = total + np.sort(x * i) * 0.5 + np.cumsum(x)[::-1]
    return total


def gradients(x: Any) -> Any:
    a, w, losses = x.reshape(1000, 1000), x[: 1000 * 1000].reshape(1000, 1000) * 0.01, []
    for _ in range(8):
        y = np.tanh(a @ w)
        e = y - a
        losses.append((e * e).mean())
        w = w - 0.01 * (a.T @ (e * (1 - y * y)))
    return sum(losses) + w.sum()


def orders(x: Any) -> Any:
    """Twelve values that are all made early and whose small results are read late."""
    made = [np.cumsum(x * i) for i in range(12)]
    return sum(np.sort(y)[:: 1000] for y in reversed(made)).sum()


@pytest.mark.parametrize("program", [sorts, layers, accumulated, gradients, orders], ids=lambda program: program.__name__)
def test_a_schedule_is_fused_for_less_memory_where_it_would_hold_more_than_numpy(program: Callable[[Any], Any]) -> None:
    x = np.asarray(numpy.ones(4 * N))[: 4 * N] if program is not layers and program is not gradients else np.asarray(numpy.ones(N))
    schedule = pipeline.scheduled(Program.of(canonicalise([node_of(program(x))])), compiler())
    theirs = recorded_peak(schedule.program)
    assert schedule.peak_bytes + x.nbytes <= theirs + theirs // cost.PEAK_SHARE + cost.PEAK_BYTES


# Arrays of x's size that NumPy needs at a time, besides x and the result.
NEEDED: dict[Callable[[Any], Any], int] = {sorts: 2, layers: 2, accumulated: 3}


@pytest.mark.parametrize("program", NEEDED, ids=lambda program: program.__name__)
def test_a_schedule_needs_little_more_at_a_time_than_numpy(program: Callable[[Any], Any]) -> None:
    x = np.asarray(numpy.ones(N))
    y = program(x)
    schedule = pipeline.scheduled(Program.of(canonicalise([node_of(y)])), compiler())
    assert schedule.peak_bytes <= ARRAY * (NEEDED[program] + 2) + cost.JOINED_BYTES + cost.PEAK_BYTES


def test_what_is_held_is_kept_in_place_of_the_calls_under_it() -> None:
    total = accumulated(np.asarray(numpy.ones(N)))
    program = Program.of(canonicalise([node_of(total.sum())]))
    assert [program.entries[e].op for e in program.outputs] == [o.REDUCE, o.ADD]


PROGRAMS = {
    "layers": """
h = np.asarray(rng.standard_normal((512, 1024))); W = np.asarray(rng.standard_normal((1024, 1024)) / 32)
for _ in range(50):
    h = np.tanh(h @ W) * .1
result = float(h.sum())
""",
    "sorts": """
x = np.asarray(rng.standard_normal(1_000_000)); tot = 0.0
for i in range(40):
    tot += np.sort(x * i).sum()
result = float(tot)
""",
    "transforms": """
x = np.asarray(rng.standard_normal(1_000_000))
for _ in range(10):
    x = np.fft.ifft(np.fft.fft(x) * 0.5).real
result = float(x.sum())
""",
    "means of arrays that go": """
means = []
for _ in range(60):
    x = np.asarray(rng.standard_normal(1_000_000))
    means.append((x * x).mean())
result = float(sum(means))
""",
    "an accumulation that is held": """
x = np.asarray(rng.standard_normal(1_000_000)); acc = x * 0
for i in range(20):
    acc = acc + np.sort(x * i) * .5
result = float(acc.sum())
""",
}
MEASURED = """
import sys, resource
import numpy
import {} as np
rng = numpy.random.default_rng(1)
{}
print(repr(result), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measured(library: str, name: str, tier: str) -> tuple[float, float]:
    """Return the result of a program, and the most memory its process took, in MiB."""
    environment = {**os.environ, "LAZYNP_TIER": tier, "LAZYNP_TAPE_LIMIT": "16384"}
    code = MEASURED.format(library, PROGRAMS[name])
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    result, peak = run.stdout.split()
    return float(result), int(peak) / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_process_takes_no_more_than_a_quarter_more_than_with_numpy(name: str) -> None:
    expected, peak = measured("numpy", name, "auto")
    for tier in ("auto", "compiled"):
        measured("lazynp", name, tier)  # compiles, for which it loads LLVM
        result, ours = measured("lazynp", name, tier)
        numpy.testing.assert_allclose(result, expected, rtol=1e-9)
        assert ours <= 1.25 * peak + 64, (ours, peak)
