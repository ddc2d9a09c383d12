"""``python -m bench.gpu``: the workloads on a GPU, through lazynp and through each GPU library that is installed.

In: a GPU (without one: a message and exit code 3).  Out: a table, the goals, and a file, ``bench/results/<gpu>.json`` by default.
Promise: inputs lie in device memory before anything is timed, the same for all libraries, and results stay there; libraries are timed in
turns, in batches, by events of the device; bytes a second are compared with what a copy from device memory to device memory reaches on
this card on this day; first calls are timed with empty caches of compiled code; each row is on disk when it is measured (``--rows``), no
library takes longer than its limit, and lazynp's rows say what of them was the host's.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.gpu_workloads import GPU_WORKLOADS, ROUND_TRIP
from bench.learning import LEARNING
from bench.machine import describe
from bench.measure import difference
from bench.peers import Run
from bench.workloads import WORKLOADS, Function, Workload

RESULTS = Path(__file__).parent / "results"
COPY_BYTES = 4 << 30
MIN_TURNS = 7
# How many times the inputs of the CPU benchmark, along the first axis: at least 1 GiB an array where memory is what is measured.
TIMES = {
    "exp/sqrt/sin chain": 8, "softmax over rows": 16, "layer norm": 16, "mean, std, min and max": 8, "sum of squares, axis 0": 16,
    "masked mean, where()": 8, "masked mean, where=": 8, "Horner, degree 24": 16, "gelu, float32": 16, "gelu with erf": 8,
    "entropies and likelihoods": 32, "logsumexp over rows": 16, "Black-Scholes": 8,
    "k-means, 10 turns": 16, "product": 8, "product, half of it zeros": 8, "row added, float32": 4, "inner part, float32": 8,
    "bias and relu, NCHW, float32": 8, "mean of 1M rows of 64": 8, "mean of 8M rows of 8": 8, "softmax over rows of 8192": 8,
}  # fmt: skip
MEMORY_BOUND = [
    "exp/sqrt/sin chain", "softmax over rows", "layer norm", "mean, std, min and max", "a.T + 2*b", "sum of squares, axis 0",
    "masked mean, where()", "gelu, float32", "product", "product, half of it zeros", "row added, float32", "inner part, float32",
    "bias and relu, NCHW, float32", "mean of 1M rows of 64", "mean of 8M rows of 8", "softmax over rows of 8192",
]  # fmt: skip
K_MEANS = "k-means, 10 turns"
SKIPPED = ["loop over elements"]  # a loop over elements has nothing for a GPU to do


# The libraries: how each takes arrays that lie in device memory, and host arrays; what it makes of a function ----------------------------


def _take_lazynp(array: Any) -> Any:
    import lazynp

    made = lazynp.asarray(array, device="cuda:0")
    lazynp.realize(made)
    return made


def _bind_lazynp(workload: Workload) -> Function:
    import lazynp

    function = workload.bind(lazynp)

    def run(*arrays: Any) -> Any:
        with lazynp.device("cuda:0"):
            result = function(*arrays)
            lazynp.realize(*(result if isinstance(result, tuple) else (result,)))
        return result

    return run


def _take_cupy(array: Any) -> Any:
    import cupy

    return cupy.asarray(array)


def _bind_cupy(workload: Workload, fused: bool = False) -> Function:
    import cupy

    return cupy.fuse(workload.bind(cupy)) if fused else workload.bind(cupy)


def _take_jax(array: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.device_put(array) if isinstance(array, np.ndarray) else jax.dlpack.from_dlpack(array)


def _bind_jax(workload: Workload) -> Function:
    import jax

    if jax.default_backend() != "gpu":
        raise RuntimeError("this JAX has no GPU: pip install 'jax[cuda13]'")
    jax.config.update("jax_enable_x64", True)
    return jax.jit(workload.bind(jax.numpy))


def _take_torch(array: Any) -> Any:
    import torch

    return torch.from_numpy(array).cuda() if isinstance(array, np.ndarray) else torch.from_dlpack(array)


def _bind_torch(workload: Workload) -> Function:
    """NumPy's own names, which the compiler reads as torch's (``torch._numpy``)."""
    import torch

    function = torch.compile(torch.compiler.wrap_numpy(workload.bind(np)))

    def run(*tensors: Any) -> Any:
        with torch.device("cuda"):
            return function(*tensors)

    return run


def _wait_jax(result: Any) -> None:
    import jax

    jax.block_until_ready(result)


def _pool_peak(run: Run) -> int:
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    run()
    return int(pool.total_bytes())  # it keeps what it once had


def _torch_peak(run: Run) -> int:
    import torch

    torch.cuda.reset_peak_memory_stats()
    run()
    return int(torch.cuda.max_memory_allocated())


class Peer(NamedTuple):
    """``wait``: for a result, where work is in streams that the default stream does not wait for; ``peak``: bytes, inputs among them."""

    package: str
    take: Callable[[Any], Any]
    bind: Callable[[Workload], Function]
    wait: Callable[[Any], None] | None = None
    peak: Callable[[Run], int] | None = None


PEERS: dict[str, Peer] = {
    "lazynp": Peer("lazynp", _take_lazynp, _bind_lazynp, peak=_pool_peak),
    "cupy": Peer("cupy", _take_cupy, _bind_cupy, peak=_pool_peak),
    "cupy.fuse": Peer("cupy", _take_cupy, partial(_bind_cupy, fused=True), peak=_pool_peak),
    "jax": Peer("jax", _take_jax, _bind_jax, _wait_jax),
    "torch": Peer("torch", _take_torch, _bind_torch, peak=_torch_peak),
}
OTHERS = [name for name in PEERS if name != "lazynp"]


def host(result: Any) -> list[np.ndarray[Any, Any]]:
    parts = result if isinstance(result, tuple | list) else (result,)
    return [part.get() if hasattr(part, "get") else np.asarray(part.cpu() if hasattr(part, "cpu") else part) for part in parts]


def prepared(workload: Workload, peer: Peer, arrays: Sequence[Any]) -> Run:
    function = peer.bind(workload)
    if workload.name == ROUND_TRIP:
        there = [array.get() for array in arrays]
        return lambda: host(function(*[peer.take(array) for array in there]))
    here = [peer.take(array) for array in arrays]
    return lambda: function(*here)


# Measuring ---------------------------------------------------------------------------------------------------------------


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` within the block when it has taken so long (at the next byte code, in the main thread)."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def inputs(workload: Workload, large: bool) -> list[Any]:
    """CuPy's arrays: one piece is made on the host, and repeated where it lies."""
    import cupy

    made = workload.make(np.random.default_rng(0), large)
    times = TIMES.get(workload.name, 1) if large else 1
    longest = max(a.shape[0] for a in made)
    pieces = [cupy.asarray(a) for a in made]
    return [cupy.concatenate([piece] * times) if times > 1 and piece.shape[0] == longest else piece for piece in pieces]


def batch(name: str, run: Run, count: int) -> float:
    """Seconds a computation, by the device's clock, over ``count`` of them."""
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(count):
        result = run()
    wait = PEERS[name].wait
    if wait is not None:
        wait(result)
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) * 1e-3 / count


def turns(runs: dict[str, Run], seconds: float, limit: float) -> dict[str, list[float]]:
    """Seconds a computation of each, in turns whose order rotates; ``MIN_TURNS`` of them if they do not take longer than ``limit``."""
    counts = {}
    for name, run in runs.items():
        batch(name, run, 1)
        counts[name] = max(1, min(1000, int(min(5e-3, seconds) / max(batch(name, run, 1), 1e-7))))
    found: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    begin = time.perf_counter()
    while True:
        taken = time.perf_counter() - begin
        done = len(found[names[0]])
        if done and (taken > limit or (taken > seconds and done >= MIN_TURNS)):
            return found
        names = names[1:] + names[:1]
        for name in names:
            found[name].append(batch(name, runs[name], counts[name]))


def copy_bandwidth(nbytes: int) -> float:
    """Bytes a second, read and written, of a copy inside device memory, by the device's own clock."""
    import cupy

    source, target = cupy.zeros(nbytes, "u1"), cupy.zeros(nbytes, "u1")
    best = math.inf
    for _ in range(10):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        target.data.copy_from_device_async(source.data, nbytes, cupy.cuda.get_current_stream())
        end.record()
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return 2 * nbytes / best


def used(run: Run) -> dict[str, Any]:
    """What one computation through lazynp is made of, and what of it was the host's."""
    from lazynp.graph import report

    report.reset()
    run()
    counts = report.counters()
    return {
        "kernels": counts["kernels"],
        "library_calls": counts["library_calls"],
        "copies": {row["direction"]: row["count"] for row in counts["transfers"]},
        "on_host": sorted({row["function"] for row in [*counts["on_host"], *counts["fallbacks"]]}),
    }


def measured(workload: Workload, peers: list[str], large: bool, seconds: float, limit: float) -> Iterator[dict[str, Any]]:
    """A row for lazynp and one for each library, or why there is none."""
    arrays = inputs(workload, large)
    runs: dict[str, Run] = {}
    cold: dict[str, float] = {}
    peaks: dict[str, int | None] = {}
    results: dict[str, Any] = {}
    uses: dict[str, Any] = {}
    for name in ["lazynp", *peers]:
        peer = PEERS[name]
        try:
            with limited(limit):
                run = prepared(workload, peer, arrays)
                start = time.perf_counter()
                results[name] = host(run())
                cold[name] = time.perf_counter() - start
                peaks[name] = peer.peak(run) if peer.peak is not None else None
                uses[name] = used(run) if name == "lazynp" else None
                runs[name] = run
        except Exception as error:  # whatever another library raises is its answer for this row
            yield {"workload": workload.name, "library": name, "error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    if "lazynp" not in runs:
        return
    moved = sum(a.nbytes for a in arrays) + sum(r.nbytes for r in results["lazynp"])
    for name, times in turns(runs, seconds, limit).items():
        middle = statistics.median(times)
        yield {
            "workload": workload.name,
            "library": name,
            "seconds": middle,
            "best_seconds": min(times),
            "turns": len(times),
            "cold_seconds": cold[name],
            "peak_bytes": peaks[name],
            "least_bytes": moved,
            "bytes_per_second": moved / middle,
            "difference": difference(results[name], results["lazynp"]),
            "uses": uses[name],
        }


def overhead(seconds: float) -> dict[str, float]:
    """Host seconds of a cached ten-operation schedule on 100 elements, with and without waiting for the device."""
    import cupy

    import lazynp as xp

    with xp.device("cuda:0"):
        x = xp.arange(100.0)
        xp.realize(x)

        def ten() -> Any:
            y = ((x + 1) * 2 - x) / 3
            result = xp.sqrt(y * y + 1) - y * 0.5 + x
            xp.realize(result)
            return result

        ten()
        times: list[float] = []
        waited: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < MIN_TURNS:
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            ten()
            times.append(time.perf_counter() - start)
            cupy.cuda.Device().synchronize()
            waited.append(time.perf_counter() - start)
    return {"cached_ten_operations": statistics.median(times), "until_the_device_is_done": statistics.median(waited)}


def repeated(seconds: float) -> dict[str, float]:
    """Seconds for a turn of a loop of eight short kernels, launched one by one and replayed as a CUDA graph."""
    import cupy

    import lazynp as xp
    from lazynp.values import config

    found = {}
    count = 100 if seconds else 1
    for name, graphs in (("one_by_one", 0), ("as_a_graph", 2)):
        with config.override(graphs=graphs), xp.device("cuda:0"):
            x = xp.arange(65536.0).reshape(256, 256) / 65536

            def turn(x: Any) -> Any:
                for _ in range(2):
                    x = x - x.mean(axis=0)
                    x = x / (x * x).max(axis=0)
                xp.realize(x)
                return x

            for _ in range(20):
                x = turn(x)
            times: list[float] = []
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or len(times) < MIN_TURNS:
                cupy.cuda.Device().synchronize()
                start = time.perf_counter()
                for _ in range(count):
                    x = turn(x)
                cupy.cuda.Device().synchronize()
                times.append((time.perf_counter() - start) / count)
        found[name] = statistics.median(times)
    return found


def missing() -> str:
    """Why there is nothing to measure; empty if there is a device."""
    if find_spec("cupy") is None:
        return "CuPy is not installed: pip install 'lazynp[cuda]'"
    import cupy

    return "" if cupy.cuda.is_available() else "there is no CUDA device, or no driver for it"


def line(row: dict[str, Any], ours: float | None, bandwidth: float) -> str:
    head = f"{row['workload']:<26} {row['library']:<10}"
    if "error" in row:
        return f"{head} {row['error'][:90]}"
    ratio = f"{row['seconds'] / ours:>7.2f}x" if ours else f"{'':>8}"
    share = row["bytes_per_second"] / bandwidth
    timing = f"{row['seconds'] * 1e3:>10.3f} ms {ratio} {share:>7.0%} of a copy {row['cold_seconds'] * 1e3:>9.1f} ms cold"
    peak = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**30:>7.2f} GiB"
    return f"{head} {timing} {row['difference']:>9.1e} {peak}"


def _wanted(name: str, only: list[str] | None) -> bool:
    return not only or any(text == name or (text not in NAMES and text.lower() in name.lower()) for text in only)


def mean(ratios: list[float]) -> float | None:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


Goal = dict[str, Any]


def goals(rows: list[dict[str, Any]], fixed: dict[str, float], bandwidth: float) -> list[Goal]:
    """What was aimed at for an H200, and what was found; None where it was not measured."""
    seconds = {(row["workload"], row["library"]): row["seconds"] for row in rows if "seconds" in row}
    ours = {workload: value for (workload, library), value in seconds.items() if library == "lazynp"}
    learning = [*[workload.name for workload in LEARNING], K_MEANS]
    shares = [
        row["bytes_per_second"] / bandwidth
        for row in rows
        if row["library"] == "lazynp" and row["workload"] in MEMORY_BOUND and "seconds" in row
    ]

    def ratios(*libraries: str) -> dict[str, float]:
        """How many times longer the fastest of these libraries takes."""
        found = {}
        for workload, own in ours.items():
            theirs = [seconds[workload, library] for library in libraries if (workload, library) in seconds]
            if theirs:
                found[workload] = min(theirs) / own
        return found

    eager, compiled = ratios("cupy"), ratios("jax", "torch")
    found: list[tuple[str, str, float | None, float]] = [
        ("memory-bound workloads, least share of a copy", ">=", min(shares, default=None), 0.85),
        ("geometric mean against CuPy", ">=", mean([value for name, value in eager.items() if name not in learning]), 4.0),
        ("geometric mean against the better of JAX and torch", ">=", mean(list(compiled.values())), 1.1),
        ("cached ten operations on 100 elements, us", "<=", fixed["cached_ten_operations"] * 1e6 if fixed else None, 25.0),
        *[(f"{name}, against CuPy's arrays", ">=", eager.get(name), 1.0) for name in learning],
    ]
    return [
        {
            "goal": name, "sign": sign, "target": target, "found": value,
            "met": None if value is None else value >= target if sign == ">=" else value <= target,
        }
        for name, sign, value, target in found
    ]  # fmt: skip


LOOPS: dict[str, tuple[str, Callable[[float], dict[str, float]]]] = {
    "ten operations on 100 elements": ("fixed", overhead),
    "a loop of eight kernels": ("repeated", repeated),
}

NAMES = [*[w.name for w in (*WORKLOADS, *GPU_WORKLOADS, *LEARNING) if w.name not in SKIPPED], *LOOPS]


def collected(lines: Iterable[dict[str, Any]]) -> Goal:
    """What lines of JSON say together, of one process or of several on the same machine."""
    found: Goal = {"machine": {}, "copy_bytes_per_second": 0.0, "fixed": {}, "repeated": {}, "goals": [], "rows": []}
    for entry in lines:
        if "workload" in entry:
            found["rows"].append(entry)
        elif "copy_bytes_per_second" in entry:
            entry["copy_bytes_per_second"] = max(entry["copy_bytes_per_second"], found["copy_bytes_per_second"])
            found.update(entry)
        else:
            found.update(entry)
    found["goals"] = goals(found["rows"], found["fixed"], found["copy_bytes_per_second"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="print the names of the workloads, and measure nothing")
    parser.add_argument("--only", metavar="TEXT", action="append", help="the workload of that name, or those with TEXT in it (repeatable)")
    parser.add_argument("--peers", metavar="NAMES", help=f"comma separated, of {', '.join(OTHERS)} (default: what is installed)")
    parser.add_argument("--size", choices=("large", "small"), default="large", help="small: about 1000 elements")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each workload is measured")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a library is given up for a workload")
    parser.add_argument("--rows", metavar="FILE", help="where each row is appended, as a line of JSON, when it is measured")
    parser.add_argument("--collect", metavar="FILE", help="measure nothing: make the table and the goals of such rows")
    parser.add_argument("--json", metavar="FILE", help="where everything is written (default: bench/results/<gpu>.json)")
    options = parser.parse_args()
    if options.list:
        print(*NAMES, sep="\n")
        return 0
    if options.collect:
        lines = [json.loads(text) for text in Path(options.collect).read_text().splitlines()]
        return written(lines, options)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of the device's memory
    os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: scikit-learn's dispatch asks for it
    why = missing()
    if why:
        print(f"nothing is measured: {why}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="lazynp-bench-") as folder:  # first calls find no code of earlier processes
        for name in ("LAZYNP_CACHE_DIR", "CUPY_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            os.environ[name] = os.path.join(folder, name)
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    import cupy

    peers = options.peers.split(",") if options.peers else [name for name in OTHERS if find_spec(PEERS[name].package)]
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    gpu = properties["name"].decode() if isinstance(properties["name"], bytes) else properties["name"]
    machine = describe(["numpy", "lazynp", "cupy-cuda13x", *sorted({PEERS[name].package for name in peers})])
    machine["gpu"] = gpu
    large = options.size == "large"
    bandwidth = copy_bandwidth(min(COPY_BYTES, cupy.cuda.Device(0).mem_info[0] // 4) if large else 1 << 20)
    print(f"{gpu}: a copy moves {bandwidth / 1e9:.0f} GB/s; {machine['versions']}")
    lines: list[dict[str, Any]] = []

    def add(entry: dict[str, Any]) -> None:
        lines.append(entry)
        if options.rows:
            with open(options.rows, "a") as file:
                file.write(json.dumps(entry) + "\n")

    add({"machine": machine, "copy_bytes_per_second": bandwidth})
    wanted = [name for name in NAMES if _wanted(name, options.only)]
    for workload in [*WORKLOADS, *GPU_WORKLOADS, *LEARNING]:
        if workload.name not in wanted:
            continue
        ours = None
        against = [name for name in peers if name == "cupy"] if workload in LEARNING else peers
        try:
            for row in measured(workload, against, large, options.seconds, options.limit):
                add(row)
                ours = row.get("seconds") if row["library"] == "lazynp" else ours
                print(line(row, ours, bandwidth), flush=True)
        except Exception as error:  # out of memory, say: the next workload is another matter
            add({"workload": workload.name, "library": "all", "error": f"{type(error).__name__}: {str(error)[:200]}"})
            print(line(lines[-1], None, bandwidth), flush=True)
        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        if "torch" in sys.modules:
            sys.modules["torch"].cuda.empty_cache()
    for name, (key, loop) in LOOPS.items():
        if name in wanted:
            found = loop(options.seconds)
            add({key: found})
            print(f"{name}: " + ", ".join(f"{what} {seconds * 1e6:.1f} us" for what, seconds in found.items()), flush=True)
    return written(lines, options)


def written(lines: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Say which goals are met, and keep everything in one file."""
    found = collected(lines)
    for aim in found["goals"]:
        said = "not measured" if aim["met"] is None else f"{aim['found']:.2f} {'' if aim['met'] else 'NOT '}met"
        print(f"{aim['goal']:<56} {aim['sign']} {aim['target']:<5g} {said}")
    gpu = found["machine"].get("gpu", "nothing")
    path = Path(options.json) if options.json else RESULTS / (re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json")
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
