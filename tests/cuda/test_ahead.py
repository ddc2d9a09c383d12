"""How far the host runs ahead of the device: launches, waits and copies of a run; and how errors come out that nobody waited for."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import numpy
import pytest

import lazynp as np
from lazynp.backends.common import rechecks
from lazynp.graph import report
from tests.cuda.host import EMULATED, SEEDS, ahead, machine

ROOT = Path(__file__).parents[2]
RNG = numpy.random.default_rng(3)


@pytest.fixture(params=SEEDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


@pytest.fixture
def one() -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda").realize()


# What a run costs -------------------------------------------------------------------------------------------------------------


def ten_operations(xp: Any, x: Any) -> Any:
    y = ((x + 1) * 2 - x) / 3
    return xp.sqrt(y * y + 1) - y * 0.5 + x


def training_step(xp: Any, w: Any, x: Any, y: Any) -> Any:
    error = x @ w - y
    return w - 0.1 * (x.T @ error) / len(y)


def products(xp: Any, x: Any, w: Any) -> Any:
    for _ in range(4):
        x = xp.maximum(x @ w, 0.1)
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, int]]] = {
    "ten operations": (ten_operations, (RNG.random(100),), {"kernels": 1, "looks": 0}),
    "a training step": (training_step, (RNG.random(5), RNG.random((40, 5)), RNG.random(40)), {"kernels": 2, "looks": 2}),
    "products in a loop": (products, (RNG.random((8, 8)), RNG.random((8, 8))), {"kernels": 4, "looks": 4}),
}


def counted(fake: Any, run: Callable[[], Any]) -> dict[str, int]:
    names = ("launches", "waits", "copies")
    before = [getattr(fake, name) for name in names]
    run()
    return {name: getattr(fake, name) - count for name, count in zip(names, before, strict=True)}


@pytest.mark.skipif(not EMULATED, reason="counts what the fake CuPy records")
@pytest.mark.parametrize("name", PROGRAMS)
def test_launches_waits_and_copies_of_a_run(name: str, one: Any) -> None:
    function, inputs, costs = PROGRAMS[name]
    arrays = [there(x) for x in inputs]

    def run() -> None:
        np.realize(function(np, *arrays))

    with ahead() as heard:
        run()
        rechecks.tell(wait=True)
        assert counted(one, run) == {"launches": costs["kernels"] + costs["looks"], "waits": 0, "copies": 1}  # the copy is of words
        with numpy.errstate(all="ignore"):
            run()
            assert counted(one, run) == {"launches": costs["kernels"], "waits": 0, "copies": 0}
        with numpy.errstate(all="raise"):
            run()
            assert counted(one, run)["waits"] >= 1
        numpy.testing.assert_allclose(function(np, *arrays), function(numpy, *inputs), rtol=1e-12)
    assert not heard


@pytest.mark.skipif(not EMULATED, reason="counts what the fake CuPy records")
def test_the_host_waits_for_no_more_than_it_must(one: Any) -> None:
    x = there(RNG.random(100))
    with ahead():
        y = x
        before = one.waits
        for _ in range(40):  # on a device that never runs by itself
            y = (y * 0.5 + x / 3).realize()
        assert one.waits - before == 40 - 16
        assert len(rechecks.later) == 16
        large = there(numpy.ones(20 << 20))
        for _ in range(4):
            large = (large * 0.5).realize()
        assert sum(buffer.nbytes for run in rechecks.later for buffer in run.buffers) <= 256 << 20


# How errors come out ------------------------------------------------------------------------------------------------------------


def line() -> int:
    return sys._getframe(1).f_lineno


def messages(heard: list[Any]) -> list[tuple[str, int]]:
    assert all(warning.filename == __file__ for warning in heard)
    return [(str(warning.message), warning.lineno) for warning in heard]


def test_the_next_run_tells(gpu: Any) -> None:
    x, w = there(numpy.array([1.0, 0.0])), there(numpy.array([[1e308, 0.0], [0.0, 1.0]]))
    with ahead() as heard:
        at = line() + 1
        y = (1 / x).realize()
        z = (w @ w).realize()
        for _ in range(20):
            np.realize(x + 1, x * 2)
        assert messages(heard) == [("divide by zero encountered in divide", at), ("overflow encountered in matmul", at + 1)]
        numpy.testing.assert_array_equal(y, [1.0, numpy.inf])
        numpy.testing.assert_array_equal(z, [[numpy.inf, 0.0], [0.0, 1.0]])
        assert len(heard) == 2 and not rechecks.later


def test_a_value_that_is_read_tells(gpu: Any) -> None:
    x = there(numpy.array([1.0, 0.0]))
    with ahead() as heard:
        at = line() + 1
        y = (1 / x).realize()
        numpy.testing.assert_array_equal(x + 5, [6.0, 5.0])
        assert messages(heard) == [("divide by zero encountered in divide", at)]
        at = line() + 1
        numpy.testing.assert_array_equal(-1 / x, [-1.0, -numpy.inf])
        assert messages(heard)[1:] == [("divide by zero encountered in divide", at)]
        del y


def test_who_catches_warnings_hears_them_at_once(gpu: Any) -> None:
    x = there(numpy.array([1.0, 0.0]))
    with ahead() as heard:
        (x / 3).realize()
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            (1 / x).realize()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                (2 / x).realize()
        with numpy.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            (3 / x).realize()
        calls: list[str] = []
        with numpy.errstate(divide="call", call=lambda text, _: calls.append(text)):
            (4 / x).realize()
        assert calls == ["divide by zero"]
        warnings.simplefilter("error")  # for the whole program
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            (5 / x).realize()
    assert not heard


def test_inputs_are_kept_no_longer_than_needed(gpu: Any) -> None:
    with ahead():
        x = there(numpy.arange(1.0, 5.0))
        y = (x * 2).realize()
        node, buffer = ref(y._node), ref(x._node.buffer)
        del x, y
        rechecks.tell(wait=True)
        gc.collect()
        assert node() is None and buffer() is None and not rechecks.later


@pytest.mark.skipif(not EMULATED, reason="counts what the fake CuPy records")
def test_words_of_a_run_that_nobody_looks_at_wait_for_their_copy(one: Any) -> None:
    with ahead():
        x = there(RNG.random(100))
        (x * 2 + 1).realize()
        before = one.waits
        rechecks.later.clear()
        gc.collect()
        assert one.waits == before + 1


def test_what_is_written_in_place_is_looked_at_before(gpu: Any) -> None:
    start = numpy.arange(60_000.0)
    with ahead() as heard:
        x = (there(start) * 1).realize()
        for turn in range(3):
            at = line() + 1
            y = (1 / x).realize()
            x[turn : turn + 1] = 7
            x.realize()
            start = start.copy()
            start[turn : turn + 1] = 7
            assert heard and messages(heard)[:1] == [("divide by zero encountered in divide", at)]
            numpy.testing.assert_array_equal(x, start)
            del y
            if turn == 0:
                break
        assert report.work.in_place >= 1


def test_memory_that_is_full_is_not_held(one: Any) -> None:
    if not EMULATED:
        pytest.skip("fills the device")
    with ahead() as heard:
        big = numpy.ones(12 << 20)  # 96 MiB of 1 GiB
        x = there(big)
        for k in range(30):
            x = (x * 0.5 + k).realize()
        assert x[0] > 0
    assert not heard


def test_a_program_that_ends_tells(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    lines = ["import numpy, lazynp as np", "x = np.asarray(numpy.zeros(3), device='cuda')", "(1 / x).realize()", "print('the last line')"]
    program.write_text("\n".join(lines))
    command = [sys.executable, *(["-m", "gpu_emulator"] if EMULATED else []), str(program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "the last line\n")
    assert f"{program}:3: RuntimeWarning: divide by zero encountered in divide" in done.stderr


def test_a_warning_that_was_shown_costs_little(one: Any) -> None:
    x = there(numpy.array([1.0, 0.0]))
    with ahead() as heard:
        warnings.simplefilter("default")
        for _ in range(40):
            (1 / x).realize()
        rechecks.tell(wait=True)
    assert len(heard) == 1 and 2 <= report.work.rechecks <= 8
