"""First facts of a machine with a GPU, a line of JSON each: ``python tools/gpu_probe.py OUT.jsonl``.

In: a GPU.  Out: what calls of the driver cost on the host, what memory and the bus reach, what lazynp's parts cost there; appended, and
printed.  Promise: every item stands alone and may fail alone; an item that failed makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Say = Callable[..., None]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # which a result does not name
SOURCE = """struct args { unsigned long long slot[12]; };
extern "C" __global__ void k(const args a) { if (a.slot[0]) *(int*)a.slot[0] = 1; }"""


def host_us(f: Callable[[], Any], count: int, wait: Callable[[], Any] | None = None) -> float:
    """Microseconds of the host for one call, the median of seven batches."""
    f()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            f()
        times.append((time.perf_counter() - start) / count * 1e6)
        if wait is not None:
            wait()
    return round(statistics.median(times), 2)


def device_seconds(f: Callable[[], Any], count: int = 10) -> float:
    import cupy

    f()
    times = []
    for _ in range(count):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        f()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return statistics.median(times)


def first(say: Say, large: bool) -> None:
    """A kernel, a sort, a product and half precision, with every refusal an error."""
    import lazynp as xp
    from lazynp.graph import report
    from lazynp.values import config

    config.update(debug=True)
    with xp.device("cuda"):
        x = xp.asarray(np.arange(10_000.0))
        square = x.reshape(100, 100)
        half = xp.arange(8, dtype="f2") + np.float16(1)
        say(sum=float((x * 2 + 1).sum()), last=float(xp.sort(x)[-1]), trace=float((square @ square).trace()), half=half.tolist())
    counts = report.counters()
    say(**{key: counts[key] for key in ("kernels", "library_calls", "transfers", "on_host")})
    if counts["on_host"]:
        raise RuntimeError("NumPy computed some of it")


def machine(say: Say, large: bool) -> None:
    import cupy

    found = cupy.cuda.runtime.getDeviceProperties(0)
    names = ("name", "multiProcessorCount", "l2CacheSize", "sharedMemPerBlockOptin", "sharedMemPerMultiprocessor", "clockRate")
    about = {name: found[name].decode() if isinstance(found.get(name), bytes) else found.get(name) for name in names}
    say(**about, memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), cores=os.cpu_count())


def launches(say: Say, large: bool) -> None:
    import cupy
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(SOURCE, "probe.cu", (), ())
    nvrtc.compileProgram(program, ("--std=c++17", "-arch=sm_{}{}".format(*cupy.cuda.Device().compute_capability)))
    module = cupy.cuda.Module()
    module.load(bytes(nvrtc.getCUBIN(program)))
    kernel, stream, block = module.get_function("k"), cupy.cuda.Stream(), bytearray(96)
    structured = np.dtype([("slot", np.uint64, (12,))])
    pointer = cupy.cuda.function.CPointer(np.frombuffer(block, np.uint8).ctypes.data)
    grid = (1, 1, 1), (32, 1, 1)
    ways: dict[str, Callable[[], Any]] = {
        "a structured array": lambda: kernel(*grid, (np.frombuffer(block, structured),), 0, stream),
        "a pointer": lambda: kernel(*grid, (pointer,), 0, stream),
    }
    for name, way in ways.items():
        say(launch_with=name, us=host_us(way, 1000 if large else 2, stream.synchronize))


def host(say: Say, large: bool) -> None:
    """What the host pays for each kind of call, and for lazynp's cached runs."""
    import cupy

    import lazynp as xp

    count = 2000 if large else 2
    runtime, stream, device = cupy.cuda.runtime, cupy.cuda.Stream(), cupy.cuda.Device(0)
    words, pinned, ordinary = cupy.cuda.alloc(1024), cupy.cuda.alloc_pinned_memory(1024), np.zeros(16, np.uint8)
    event = cupy.cuda.Event(disable_timing=True)

    def read(target: int) -> None:
        runtime.memcpyAsync(target, words.ptr, 16, runtime.memcpyDeviceToHost, stream.ptr)
        stream.synchronize()

    def entered() -> None:
        with device, stream:
            pass

    calls: dict[str, Callable[[], Any]] = {
        "read 16 bytes into pinned memory and wait": lambda: read(pinned.ptr),
        "read 16 bytes into ordinary memory and wait": lambda: read(ordinary.ctypes.data),
        "wait for an idle stream": stream.synchronize,
        "record an event": lambda: stream.record(event),
        "make and record an event": lambda: stream.record(cupy.cuda.Event(disable_timing=True)),
        "ask an event": lambda: event.done,
        "take 1 MiB from the pool": lambda: cupy.cuda.alloc(1 << 20),
        "enter a device and a stream": entered,
    }
    for name, call in calls.items():
        say(what=name, us=host_us(call, count, stream.synchronize))
    x = xp.asarray(np.arange(100.0), device="cuda")
    a, w = (xp.asarray(np.random.default_rng(k).random((256, 256)) / 256, device="cuda") for k in range(2))

    def ten() -> None:
        y = ((x + 1) * 2 - x) / 3
        xp.realize(xp.sqrt(y * y + 1) - y * 0.5 + x)

    def layers() -> None:
        y = a
        for _ in range(10):
            y = xp.maximum(y @ w, 0.1)
        xp.realize(y)

    wait = device.synchronize
    for state in ("warn", "ignore"):
        with np.errstate(divide=state, over=state, invalid=state):
            say(what="ten operations on 100 elements", errors=state, us=host_us(ten, 300 if large else 1, wait))
            say(what="ten small products", errors=state, us=host_us(layers, 30 if large else 1, wait))


def bandwidth(say: Say, large: bool) -> None:
    import cupy

    for mib in (256, 1024, 4096) if large else (1,):
        n = mib << 20
        source, target = cupy.empty(n, "u1"), cupy.empty(n, "u1")
        say(copy_mib=mib, gb_per_s=round(2 * n / device_seconds(partial(target.data.copy_from_device_async, source.data, n)) / 1e9))


def transfers(say: Say, large: bool) -> None:
    import cupy

    import lazynp as xp

    values = np.random.default_rng(0).random(1 << (27 if large else 12))
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(values.nbytes), np.float64, values.size)
    there, runtime = cupy.empty(values.size), cupy.cuda.runtime

    def timed(what: str, f: Callable[[], Any]) -> None:
        start = time.perf_counter()
        f()
        cupy.cuda.Device().synchronize()
        say(what=what, gb_per_s=round(values.nbytes / (time.perf_counter() - start) / 1e9, 1))

    def copied(target: int, source: int, kind: int) -> None:
        runtime.memcpyAsync(target, source, values.nbytes, kind, 0)

    for turn in ("first", "again"):
        timed(f"the host's copy into pinned memory, {turn}", lambda: np.copyto(pinned, values))
    for name, array in (("ordinary", values), ("pinned", pinned)):
        timed(f"from {name} memory", partial(copied, there.data.ptr, array.ctypes.data, runtime.memcpyHostToDevice))
        timed(f"into {name} memory", partial(copied, array.ctypes.data, there.data.ptr, runtime.memcpyDeviceToHost))
    for turn in ("first", "again"):
        x = xp.asarray(values, device="cuda")
        timed(f"lazynp's upload, {turn}", lambda x=x: xp.realize(x))
        y = x + 0
        xp.realize(y)
        timed(f"lazynp's download, {turn}", lambda y=y: np.asarray(y))


ITEMS: dict[str, Callable[[Say, bool], None]] = {
    "first": first, "machine": machine, "launches": launches, "host": host, "bandwidth": bandwidth, "transfers": transfers,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tools/gpu_probe.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", metavar="OUT", help="where the lines are appended")
    parser.add_argument("--items", default=",".join(ITEMS), help="comma separated (default: %(default)s)")
    parser.add_argument("--size", choices=("large", "small"), default="large", help="small: that it runs, not how fast")
    options = parser.parse_args()
    failed = 0
    with open(options.file, "a") as file:

        def say(item: str, **values: Any) -> None:
            text = json.dumps({"item": item, **values}).replace(ROOT, "")
            print(text, file=file, flush=True)
            print(text, flush=True)

        for name in options.items.split(","):
            try:
                ITEMS[name](partial(say, name), options.size == "large")
            except Exception as error:
                failed = 1
                say(name, error=f"{type(error).__name__}: {str(error)[:300]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
