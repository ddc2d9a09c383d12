"""Timing two ways of computing the same thing, in turns.

In: two functions of no arguments.  Out: the median of the ratios of neighbouring timings, and what belongs to it.  Promise: both
are warm before anything counts, each pair is measured back to back, and the order within the pairs alternates.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from bench.peers import Run, host

Clock = Callable[[], float]
Timer = Callable[[int], float]  # seconds per computation, over so many of them

MIN_PAIRS: Final = 5
WARM_UPS: Final = 2


def once(run: Run, clock: Clock) -> tuple[float, Any]:
    start = clock()
    result = run()
    return clock() - start, result


def batch(run: Run, count: int, clock: Clock) -> float:
    """Seconds per computation, over `count` of them."""
    start = clock()
    for _ in range(count):
        run()
    return (clock() - start) / count


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference, relative to the largest magnitude of each result."""
    import numpy as np

    worst = 0.0
    for a, b in zip(host(ours), host(theirs), strict=True):
        if a.shape != b.shape:
            return float("inf")
        with np.errstate(invalid="ignore"):
            apart = np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float64)))
        apart = np.where((a == b) | ((a != a) & (b != b)), 0.0, apart)  # infinities and NaNs are equal to their like
        scale = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))) or 1.0
        worst = max(worst, float(np.max(np.where(np.isnan(apart), np.inf, apart), initial=0.0)) / scale)
    return worst


def pairs(first: Run, second: Run, seconds: float, clock: Clock = time.perf_counter) -> dict[str, Any]:
    """Time `first` and `second` in turns for about `seconds` by `clock`; the ratio says how many times faster `second` is."""
    cold_first, a = once(first, clock)
    cold_second, b = once(second, clock)
    error = difference(b, a)
    del a, b
    row = in_turns(lambda count: batch(first, count, clock), lambda count: batch(second, count, clock), seconds)
    return {**row, "first_cold_seconds": cold_first, "second_cold_seconds": cold_second, "difference": error}


def in_turns(first: Timer, second: Timer, seconds: float) -> dict[str, Any]:
    """The same of two functions that compute `count` times and say the seconds of one."""
    quick = [(first(1), second(1)) for _ in range(WARM_UPS)][-1]
    # short computations are timed in batches of about a millisecond, so that the clock and the turn-taking do not show
    counts = [max(1, min(1000, int(1e-3 / max(once, 1e-7)))) for once in quick]
    times: tuple[list[float], list[float]] = ([], [])
    spent = 0.0
    while len(times[0]) < MIN_PAIRS or spent < seconds:
        order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
        for side in order:
            times[side].append((first, second)[side](counts[side]))
            spent += times[side][-1] * counts[side]
    ratios = sorted(a / b for a, b in zip(*times, strict=True))
    return {
        "ratio": statistics.median(ratios),
        "ratio_quartiles": [ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]],
        "pairs": len(ratios),
        "first_seconds": statistics.median(times[0]),
        "second_seconds": statistics.median(times[1]),
        "first_best_seconds": min(times[0]),
        "second_best_seconds": min(times[1]),
    }
