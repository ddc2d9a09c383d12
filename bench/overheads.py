"""``python -m bench.overheads``: what lazynp costs where no array is large.

In: nothing.  Out: a table of fixed costs with their targets, and JSON where asked.  Each cost is the best of many for what happens
inside one process, and best and median for what needs a fresh one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.machine import describe

FRESH = 9  # processes for each cost that needs new ones


@dataclass(frozen=True)
class Cost:
    name: str
    unit: str
    best: float
    median: float
    target: float | None = None


def best_of(function: Callable[[], object], number: int = 2000, repeat: int = 15) -> tuple[float, float]:
    """Best and median microseconds per call."""
    function()
    times = [seconds / number * 1e6 for seconds in timeit.repeat(function, number=number, repeat=repeat)]
    return min(times), statistics.median(times)


def ten_operations(xp: Any, x: Any, y: Any) -> Any:
    return ((x + y) * x - y) / (y * y + 2.0) + (x * 0.5 - y) * x


def recording() -> Iterator[Cost]:
    import numpy as np

    import lazynp

    rng = np.random.default_rng(0)
    arrays = [rng.uniform(1, 2, 100) for _ in range(2)]
    x, y = (lazynp.asarray(array, copy=True) for array in arrays)
    lazynp.realize(x, y)
    a, b = arrays
    yield Cost("record one binary operation", "us", *best_of(lambda: x + y), target=2)
    yield Cost("  with a Python scalar", "us", *best_of(lambda: x + 2.5))
    yield Cost("  a ufunc with one argument", "us", *best_of(lambda: lazynp.exp(x)))
    yield Cost("  a slice", "us", *best_of(lambda: x[1:]))
    yield Cost("  a sum", "us", *best_of(lambda: x.sum()))
    yield Cost("NumPy, one binary operation on 100 elements", "us", *best_of(lambda: a + b))


def realizing() -> Iterator[Cost]:
    import numpy as np

    import lazynp

    rng = np.random.default_rng(0)
    arrays = [rng.uniform(1, 2, 100) for _ in range(2)]
    x, y = (lazynp.asarray(array, copy=True) for array in arrays)
    lazynp.realize(x, y)

    def both() -> None:
        lazynp.realize(ten_operations(lazynp, x, y))

    for _ in range(50):  # past every threshold by counts
        both()
    pending: list[Any] = []
    realize = lazynp.realize

    def realize_one() -> None:
        realize(pending.pop())

    times = []
    for _ in range(15):
        pending.extend(ten_operations(lazynp, x, y) for _ in range(200))
        times.append(timeit.timeit(realize_one, number=200) / 200 * 1e6)
    yield Cost("realize a cached 10-operation schedule, 100 elements", "us", min(times), statistics.median(times), target=40)
    yield Cost("  recording it included", "us", *best_of(both, number=200))
    a, b = arrays
    yield Cost("NumPy, the same 10 operations", "us", *best_of(lambda: ten_operations(np, a, b), number=200))


def fresh(code: str, count: int, environment: dict[str, str]) -> list[float]:
    """Milliseconds that each of `count` new processes prints."""
    times = []
    for _ in range(count):
        # byte code is cached, as in any installation
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run([sys.executable, "-c", code], env={**inherited, **environment}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"a fresh process failed:\n{done.stderr}")
        times.append(float(done.stdout) * 1e3)
    return times


IMPORT = "import numpy, time\nt = time.perf_counter()\nimport lazynp\nprint(time.perf_counter() - t)"
FIRST = """
import numpy, time
t = time.perf_counter()
import lazynp as np
x = np.linspace(0, 1, 4_000_000)
(np.exp(-x) * np.sqrt(x) + 1).realize()
print(time.perf_counter() - t)
"""


def starting() -> Iterator[Cost]:
    def cost(name: str, times: list[float], target: float) -> Cost:
        return Cost(name, "ms", min(times), statistics.median(times), target)

    yield cost("import lazynp, beyond import numpy", fresh(IMPORT, FRESH, {}), 30)
    with tempfile.TemporaryDirectory() as scratch:
        empty = []
        for number in range(FRESH):
            empty += fresh(FIRST, 1, {"LAZYNP_CACHE_DIR": str(Path(scratch) / str(number))})
        yield cost("first result of a large chain, empty disk cache", empty, 200)
        warm = fresh(FIRST, FRESH, {"LAZYNP_CACHE_DIR": str(Path(scratch) / "0")})
        yield cost("first result of a large chain, warm disk cache", warm, 100)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overheads", description="Fixed costs of lazynp.")
    parser.add_argument("--json", metavar="FILE", help="write everything, with the machine named, to FILE")
    options = parser.parse_args()
    machine = describe(["numpy", "lazynp", "llvmlite"])
    print(f"{machine['cpu']}, {machine['usable_cores']} of {machine['cores']} cores, Python {machine['python']}, {machine['versions']}")
    print(f"{'':<56} {'best':>10} {'median':>10}")
    costs = []
    for group in (recording, realizing, starting):
        for cost in group():
            costs.append(cost)
            judged = "" if cost.target is None else f"  {'pass' if cost.best <= cost.target else 'MISS'} (<= {cost.target:g} {cost.unit})"
            print(f"{cost.name:<56} {cost.best:>7.2f} {cost.unit} {cost.median:>7.2f} {cost.unit}{judged}", flush=True)
    if options.json:
        path = Path(options.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine, "costs": [asdict(cost) for cost in costs]}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
