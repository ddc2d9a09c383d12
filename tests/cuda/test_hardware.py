"""What an imitation cannot vouch for and a GPU can: threads, graphs, other libraries' streams, memory that runs out; values are checked.

Each runs on the imitation too, smaller, so that it is a test that works when there is a GPU.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.values import config
from tests.cuda.host import EMULATED, SEEDS, machine
from tests.in_turns import in_threads

SIZE = 2_000 if EMULATED else 3_000_000
TURNS = 6 if EMULATED else 1_000
LIMIT = 64 << 20 if EMULATED else 1 << 30  # bytes of device memory in the test of what happens without
OTHERS = ["cupy", *[name for name in ("torch", "jax") if not EMULATED and importlib.util.find_spec(name)]]


@pytest.fixture(params=SEEDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda")


def turned(xp: Any, x: Any) -> Any:
    x = x - x.mean(axis=0)
    x = x / (x * x).max(axis=0)
    return xp.sqrt(x * x + 1) - x


# Threads -----------------------------------------------------------------------------------------------------------------


def test_four_threads_upload_compute_and_download(gpu: Any) -> None:
    shared = there(numpy.arange(float(SIZE)))

    def work(number: int) -> None:
        rng = numpy.random.default_rng(number)
        for _ in range(min(TURNS, 50)):
            x = rng.standard_normal(int(rng.integers(1, SIZE)))
            numpy.testing.assert_array_equal(there(x) * 2 + shared[: len(x)], x * 2 + numpy.arange(float(len(x))))
            numpy.testing.assert_array_equal(np.sort(there(x))[::-1] - 1, numpy.sort(x)[::-1] - 1)

    in_threads(4, work)


def test_arrays_go_from_thread_to_thread(gpu: Any) -> None:
    box: list[Any] = [there(numpy.zeros(SIZE))] * 4
    lock = threading.Lock()

    def work(number: int) -> None:
        for turn in range(min(TURNS, 50)):
            with lock:
                at = (number + turn) % 4
                box[at] = np.add(box[at], 1).realize()

    in_threads(4, work)
    numpy.testing.assert_array_equal(sum(box[1:], box[0]), numpy.full(SIZE, 4.0 * min(TURNS, 50)))


# Graphs --------------------------------------------------------------------------------------------------------------------


def test_graphs_have_the_bits_of_launches(gpu: Any) -> None:
    start = numpy.random.default_rng(1).standard_normal((min(SIZE // 20, 256), 20))
    found = []
    for graphs in (0, 2):
        with config.override(graphs=graphs):
            x, kept = there(start), []
            for turn in range(TURNS):
                x = turned(np, x).realize()
                if turn % 7 == 3:
                    kept.append(x + turn)  # memory that does not come back changes the addresses
            found.append(numpy.stack([numpy.asarray(each) for each in (x, *kept)]))
    numpy.testing.assert_array_equal(*found)


# Other libraries ---------------------------------------------------------------------------------------------------------------


def busy() -> Any:
    """A stream that waits for nothing, with work in it that takes a while."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.ones((64, 64) if EMULATED else (4096, 4096))
        for _ in range(5):
            x = x @ x * 1e-4
    return stream, x


@pytest.mark.parametrize("name", OTHERS)
def test_memory_is_shared_while_streams_are_busy(name: str, gpu: Any) -> None:
    values = numpy.random.default_rng(2).standard_normal(SIZE)
    kept = busy()
    for _ in range(min(TURNS, 20)):
        x = (there(values) * 2 + 1).realize()
        if name == "cupy":
            import cupy

            theirs = cupy.from_dlpack(x)
            back, there_ = theirs + 1, cupy.asnumpy
        elif name == "torch":
            import torch

            theirs = torch.from_dlpack(x)
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.ones(1 << 20, device="cuda").sum()
            back, there_ = theirs + 1, lambda each: each.cpu().numpy()
        else:
            import jax

            jax.config.update("jax_enable_x64", True)
            theirs = jax.dlpack.from_dlpack(x)
            back, there_ = theirs + 1, numpy.asarray
        y = np.from_dlpack(back) * 2
        numpy.testing.assert_array_equal(y, (values * 2 + 1 + 1) * 2)
        numpy.testing.assert_array_equal(there_(theirs), values * 2 + 1)
    kept[0].synchronize()


# Memory ------------------------------------------------------------------------------------------------------------------------


def test_memory_that_runs_out_is_an_error_and_comes_back(gpu: Any) -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.get_limit()
    pool.set_limit(size=pool.used_bytes() + LIMIT)
    try:
        x = there(numpy.ones(LIMIT // 64)).realize()  # an eighth
        with pytest.raises(MemoryError, match=r"Unable to allocate .* on cuda:0"):
            [(x + k).realize() for k in range(10)]
        numpy.testing.assert_array_equal((x + 1)[:3], [2.0] * 3)
        for k in range(20):  # uploads that nobody wants any more make room
            y = (there(numpy.full(LIMIT // 64, float(k))) + x).realize()
        assert y[-1] == 20
    finally:
        pool.set_limit(size=before)


def test_an_error_on_the_device_stops_no_other_program(gpu: Any) -> None:
    x = there(numpy.arange(float(SIZE)))
    for _ in range(min(TURNS, 20)):
        with pytest.raises(IndexError, match="out of bounds"):
            x[(x * 2).astype(int)].realize()
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            (1 / x).realize()
        numpy.testing.assert_array_equal(x + 1, numpy.arange(1.0, SIZE + 1))
