"""Memory of results: how it begins, what becomes of it when it is resized or goes, and that it does not spread."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

SIZES = [1, 4095, 4096, 5000, 16_383, 16_384, 40_000, 120_000, 131_072, 600_000]


@pytest.fixture(autouse=True)
def at_hand() -> object:
    with config.override(tape_limit=1 << 20):
        yield


def results(n: int) -> list[numpy.ndarray]:
    x = lazynp.arange(n) * 1.0
    made = [x + 1, x * 2 + x, x > 3, lazynp.sqrt(x), x.copy(), lazynp.zeros(n), lazynp.cumsum(x), x.astype("f4"), -x[::-1]]
    made.append(lazynp.where(x > 2, x, 0.0))
    return [numpy.asarray(each) for each in made]


@pytest.mark.parametrize("n", SIZES)
def test_results_begin_with_a_line_of_the_cache(n: int) -> None:
    for turn in range(3):  # the later ones' memory was another one's
        for found in results(n):
            if found.nbytes >= 1 << 15 and found.flags.owndata:
                assert found.ctypes.data % 64 == 0, (turn, found.dtype)


def owner(x: Any) -> numpy.ndarray:
    found = numpy.asarray(x)
    while not found.flags.owndata:
        found = found.base.obj if isinstance(found.base, memoryview) else found.base
    return found


@pytest.mark.parametrize("n", SIZES)
def test_what_owns_its_memory_is_resized(n: int) -> None:
    want = numpy.arange(n) * 1.0 + 1
    for new in (0, 1, n // 2, n - 1, n + 1, n + n // 4, 3 * n, 100, 70_000):
        found = owner(lazynp.arange(n) * 1.0 + 1)
        found.resize(new, refcheck=False)
        expected = want.copy()
        expected.resize(new, refcheck=False)
        assert numpy.array_equal(found, expected)
        found.resize(n, refcheck=False)
        expected.resize(n, refcheck=False)
        assert numpy.array_equal(found, expected)


def test_memory_goes_back_in_any_order() -> None:
    rng = numpy.random.default_rng(0)
    held: list[tuple[float, numpy.ndarray]] = []
    for turn in range(3000):
        n = int(rng.choice(SIZES[:-1]))
        found = numpy.asarray(lazynp.full(n, 1.5) * float(turn))
        held.append((1.5 * turn, found))
        if len(held) > 20:
            value, one = held.pop(int(rng.integers(len(held))))
            assert (one == value).all(), "somebody else has written there"


def test_tracemalloc_sees_it_go() -> None:
    results(40_000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = results(40_000)
        assert tracemalloc.get_traced_memory()[0] - before > 9 * 160_000
        del kept
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


DEEP = """
import sys
import {} as np
if np.__name__ == "lazynp":
    from lazynp.array import core
    core.chain_sizes(256, 32, 1024, 1 << 62)  # nothing is compiled: that takes memory, too
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
def deep(n, x):
    y = x * 2.0 + n
    z = (y > 3) * 1.0
    w = np.sqrt(y) + z
    for _ in range(3 if n else 0):
        z = z + deep(n - 1, w)
    return z + y * w
a = np.ones(120_000)
before = most()
for _ in range(4):
    s = float(deep(5, a)[0])
print(most() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system says it elsewhere")
def test_memory_does_not_spread() -> None:
    """What the C library aligns fits nobody of the same size afterwards: arrays that come and go took up to six times NumPy's memory."""
    taken = []
    for library in ("numpy", "lazynp"):
        command = [sys.executable, "-c", DEEP.format(library)]
        taken.append(int(subprocess.run(command, capture_output=True, text=True, check=True, env=environment()).stdout))
    assert taken[1] < 1.25 * taken[0] + (6 << 10)  # KiB


def environment() -> dict[str, str]:
    import os

    return {key: value for key, value in os.environ.items() if key != "LAZYNP_TAPE_LIMIT"}
