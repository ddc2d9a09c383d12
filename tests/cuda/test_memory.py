"""Memory of GPUs: what is told of it, what is given back, and that each device has an account of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.cuda import memory
from lazynp.engine import realize
from lazynp.graph import report
from lazynp.values import config, pressure
from tests.cuda.host import EMULATED, SEEDS, machine

SIZE = 1 << 17  # elements: one mebibyte
MIB = 1 << 20


@pytest.fixture
def one() -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


@pytest.fixture(params=SEEDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda").realize()


def made(value: float) -> Any:
    """An array that was computed on the device."""
    return np.full(SIZE, value, device="cuda").contiguous().realize()


# What is told ---------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unheard")
def test_what_values_hold_by_line(one: Any) -> None:
    x = made(2.0)
    y = (x * 2).realize()
    found = np.cuda.memory()
    assert found["device"] == "cuda:0" and found["total"] > found["free"] > 0
    assert found["held"] >= found["large"] == 2 * MIB <= found["large_peak"]
    assert found["pool_used"] >= found["held"]
    assert [row["bytes"] for row in found["lines"]][:2] == [MIB, MIB] and all(__file__ in row["line"] for row in found["lines"])
    assert found == np.cuda.memory("cuda:0") == np.cuda.memory("cuda")
    del x, y
    gc.collect()
    after = np.cuda.memory()
    assert after["held"] == after["large"] == 0 and after["large_peak"] == 2 * MIB


def test_memory_by_device(one: Any) -> None:
    assert np.memory()["devices"] == {}
    before = np.memory()["numpy"]
    x = made(1.0)
    told = np.memory()
    assert told["numpy"] == before  # no byte of a device is one of the machine's
    there_ = told["devices"]["cuda:0"]
    assert (there_["held"], there_["large"], len(there_["lines"])) == (MIB, MIB, 1)
    assert f"memory held on cuda:0: {MIB:,} bytes" in np.report()
    assert all(row["bytes"] != MIB or "test_memory" not in row["line"] for row in told["lines"])
    assert float(x[0]) == 1


def test_two_devices_have_two_accounts() -> None:
    with machine(seed=0, devices=2):
        x, y = made(1.0), (np.full(SIZE, 2.0, device="cuda:1") * np.full(SIZE, 3.0, device="cuda:1")).realize()
        assert y.device == "cuda:1"
        for name in ("cuda:0", "cuda:1"):
            assert np.cuda.memory(name)["large"] == np.memory()["devices"][name]["held"] == MIB
        del y
        gc.collect()
        assert np.cuda.memory("cuda:1")["held"] == 0 and np.cuda.memory("cuda:0")["held"] == MIB
        assert float(x[0]) == 1


def test_without_a_gpu_each_function_says_why() -> None:
    with machine(seed=0, devices=0):
        for function in (np.cuda.memory, np.cuda.free):
            for arguments in ((), ("cuda",), ("cuda:3",)):
                with pytest.raises(ValueError, match="cannot be used"):
                    function(*arguments)


def test_devices_that_are_none(one: Any) -> None:
    for function in (np.cuda.memory, np.cuda.free):
        with pytest.raises(ValueError, match=r"is no GPU: lazynp.memory\(\)"):
            function("cpu")
        with pytest.raises(ValueError, match="this machine has cuda:0"):
            function("cuda:7")
        with pytest.raises(ValueError, match="not understood"):
            function("tpu")


# What is given back ---------------------------------------------------------------------------------------------------------


def test_free_gives_back_what_nobody_holds(gpu: Any) -> None:
    x = made(3.0)
    host = np.asarray(numpy.ones(SIZE))
    both = (x + host).realize()
    assert np.cuda.memory()["copies"] == MIB
    gone = (both * 2).realize()
    del gone
    gc.collect()
    assert np.cuda.free() >= MIB
    told = np.cuda.memory()
    assert told["copies"] == told["pooled"] == 0
    numpy.testing.assert_array_equal(both, numpy.full(SIZE, 4.0))
    numpy.testing.assert_array_equal((x + host).realize(), numpy.full(SIZE, 4.0))  # and what is wanted again comes again


@pytest.mark.skipif(not EMULATED, reason="the policy of reuse is the imitation's")
def test_what_streams_keep_holds_no_large_block(one: Any) -> None:
    """The first run comes after a large block was given back, from which its words and counters must not be split off."""
    place = memory.place("cuda:0")
    with place.running():
        large = place.allocate(64 * MIB)
        del large
    x = there(numpy.arange(5.0))
    assert float(np.sqrt(x + 9).sum()) > 15  # with words
    assert float(np.full(10**5, 1.0, device="cuda").contiguous().sum()) == 10**5  # with counters
    del x
    gc.collect()
    np.cuda.free()
    assert one.pool.total_bytes() == 0
    assert place.lasting.used_bytes() > 0


# Pressure -------------------------------------------------------------------------------------------------------------------


def test_pending_work_that_holds_a_device_is_computed(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.place("cuda:0").account.total = 64 * MIB  # an eighth of it may be held
    report.reset()
    means, most = [], 0
    for k in range(60):
        means.append((made(float(k)) * 2).mean())
        most = max(most, np.cuda.memory()["large"])
    assert most < 20 * MIB
    assert "memory limit" in {row.name for row in report.forced.values()}
    assert [float(m) for m in means] == [2.0 * k for k in range(60)]


@pytest.mark.usefixtures("recorded")
def test_a_device_that_is_full_computes_nothing_of_the_host(one: Any) -> None:
    memory.place("cuda:0").account.total = 64 * MIB
    host = np.asarray(numpy.ones(1 << 20))
    waiting = (host * 2).sum()
    held = [made(float(k)) for k in range(40)]
    assert waiting._node.buffer is None
    assert float(waiting) == 2 << 20 and float(held[3][0]) == 3


def test_bytes_of_a_device_do_not_press_on_the_host(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setattr(pressure, "limit", lambda: 8 * MIB)
    monkeypatch.setattr(pressure._held, "relieved_at", pressure.held())
    report.reset()
    held = [made(float(k)) for k in range(12)]
    waiting = (held[0] + 1).sum()
    assert (held[1] * 2).realize() is not None
    assert waiting._node.buffer is None and "memory limit" not in {row.name for row in report.forced.values()}


# Budget ---------------------------------------------------------------------------------------------------------------------


def test_a_run_that_needs_more_than_a_device_has_is_cut(one: Any) -> None:
    parts = [numpy.full(SIZE, float(k)) for k in range(6)]
    arrays = [np.asarray(part, device="cuda").contiguous().realize() for part in parts]

    def program(xp: Any, xs: list[Any]) -> Any:
        total = xp.sort(xs[0] * 2)
        for x in xs[1:]:
            total = xp.sort(total + xp.sort(x * 3))
        return total

    expected = program(numpy, parts)
    with config.override(memory=2 * MIB):
        report.reset()
        total = program(np, arrays)
        arrays.clear()
        numpy.testing.assert_array_equal(total.realize(), expected)
        assert total.device == "cuda:0" and report.schedules.cuts
    realize.forget_plans()


def test_a_device_has_a_budget_of_its_own(one: Any) -> None:
    place = memory.place("cuda:0")
    free, total = place.device.mem_info
    assert place.budget() == (free + one.pool.free_bytes()) // 2 <= total
    with config.override(memory=12345):
        assert place.budget() == 12345
