"""What profilers show of the work on a GPU: kernels by their operations, runs by the program's lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.cuda import compiler, render
from lazynp.codegen import ir, pipeline
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values import config
from tests.cuda.host import EMULATED, machine

A = numpy.random.default_rng(9).random((30, 40))


@pytest.fixture
def one() -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda").realize()


def kernels(x: Any) -> list[ir.Kernel]:
    from lazynp.engine import realize

    program = Program.of(canonicalise([x._node]))
    return [item.code for item in pipeline.scheduled(program, realize.compiler([x._node])).kernels]


NAMES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "elementwise": (lambda x: np.sqrt(x + 1) * x, "lazynp_add_sqrt_multiply"),
    "a sum": (lambda x: np.exp(x).sum(axis=1), "lazynp_exp_add_reduce"),
    "many": (lambda x: np.sin(np.cos(np.exp(np.sqrt(x) + 1) - 2) * 3) / 4, "lazynp_sqrt_add_exp_subtract_and_4_more"),
    "a copy": (lambda x: x.T.copy(), "lazynp_move"),
    "a conversion": (lambda x: x.astype("f4"), "lazynp_move"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_has_the_name_of_its_operations(name: str, one: Any) -> None:
    program, expected = NAMES[name]
    found = [render.name_of(code) for code in kernels(program(np.asarray(A, device="cuda")))]
    assert found == [expected]
    assert re.fullmatch(r"[a-z][a-z0-9_]*", found[0])


def test_equal_code_of_two_lines_is_one_kernel(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []
    loaded = compiler.functions
    monkeypatch.setattr(compiler, "functions", lambda cupy, source, names, *rest: named.extend(names) or loaded(cupy, source, names, *rest))
    x = there(A)
    first = (x * 2 + 1).realize()
    second = (there(A[1:]) * 3 + 4).realize()  # another shape, other numbers: equal code
    third = (x * 2 + 1).sum().realize()
    numpy.testing.assert_array_equal(first, A * 2 + 1)
    numpy.testing.assert_array_equal(second, A[1:] * 3 + 4)
    assert float(third) == pytest.approx((A * 2 + 1).sum())
    assert len(named) == len(set(named))
    assert sum(name.startswith("lazynp_multiply_add_") and "reduce" not in name for name in named) == 1
    assert all(re.fullmatch(r"[A-Za-z_]\w{0,120}", name) for name in named)


def test_the_module_of_a_kernel_depends_on_nothing_else_that_was_compiled(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []
    loaded = compiler.functions
    monkeypatch.setattr(compiler, "functions", lambda cupy, source, *rest: sources.append(source) or loaded(cupy, source, *rest))
    x = there(A)
    for k in range(2):
        from lazynp.engine import realize

        realize.forget_plans()
        if x.device and (place := realize.devices.place("cuda:0")).backend is not None:
            place.backend = None
        if k:
            (x - 5).realize()
        (x * 2 + 1).realize()
    assert sources[0] == sources[-1] != sources[1]


# Ranges ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not EMULATED, reason="reads what the fake CuPy records")
def test_a_run_is_a_range_that_names_its_lines(one: Any) -> None:
    x = there(A)
    one.ranges.clear()
    with config.override(nvtx=True):
        y = x + 1
        y = y * 2
        first = y.sum().realize()
    assert float(first) == pytest.approx(((A + 1) * 2).sum())
    ((text, launches),) = one.ranges
    file, _, lines = text.rpartition(":")
    low, high = map(int, lines.split("-"))
    assert file == __file__ and high == low + 2 and launches >= 1
    (x + 3).realize()
    assert len(one.ranges) == 1  # nobody looks any more


@pytest.mark.skipif(not EMULATED, reason="reads what the fake CuPy records")
def test_a_range_ends_where_the_run_fails(one: Any) -> None:
    x = there(A)
    index = np.asarray([0, 99], device="cuda")
    with config.override(nvtx=True), pytest.raises(IndexError):
        x[index].realize()
    assert len(one.ranges) >= 1 and not one.local.ranges


def test_what_asks_for_ranges() -> None:
    assert not config.parse({})["nvtx"]
    assert config.parse({"LAZYNP_NVTX": "1"})["nvtx"]
    assert config.parse({"NVTX_INJECTION64_PATH": "/opt/libToolsInjection64.so"})["nvtx"]
    assert not config.parse({"NVTX_INJECTION64_PATH": "/opt/libToolsInjection64.so", "LAZYNP_NVTX": "0"})["nvtx"]
    with config.override(nvtx=True):
        assert config.watched
    assert config.watched == (config.progress or config.nvtx)
