"""What may change without a new schedule, and what without a new compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.engine.realize import backend, forget_plans
from lazynp.graph import report
from lazynp.values import config

pytestmark = pytest.mark.usefixtures("recorded")


@pytest.fixture(autouse=True)
def _compiled_tier() -> Iterator[None]:
    with config.override(backend="llvm", tier="compiled", eager=False):
        forget_plans()
        yield
    forget_plans()


def count(action: Callable[[], object]) -> tuple[int, int]:
    """(schedules made, kernels compiled) by ``action``."""
    llvm: Any = backend("llvm")
    misses, kernels = report.schedules.misses, llvm.compiled
    action()
    return report.schedules.misses - misses, llvm.compiled - kernels


def given(*shape: int) -> Any:
    return np.asarray(numpy.random.default_rng(0).standard_normal(shape))


def test_thousand_step_sizes_are_one_schedule() -> None:
    x, gradient = given(500), given(500)
    expected = numpy.asarray(x).copy()

    def descend() -> None:
        nonlocal x, expected
        for k in range(1000):
            step = 0.1 / (k + 1)
            x = (x - step * gradient).realize()
            expected -= step * numpy.asarray(gradient)

    misses, kernels = count(descend)
    assert misses == 1
    assert kernels <= 1
    numpy.testing.assert_allclose(numpy.asarray(x), expected, rtol=1e-12)


@pytest.mark.parametrize("steps", [[0.0, 1.0, -1.0, 2.0, 0.5, float("nan"), float("inf"), -0.0] * 4, list(range(-16, 16))])
def test_no_scalar_value_is_special(steps: list[Any]) -> None:
    x = given(100)
    misses, _ = count(lambda: [(x * step + step).realize() for step in steps])
    assert misses == 1


def test_which_literals_are_equal_is_structure() -> None:
    x, y = given(100), given(100)

    def turn(a: float, b: float) -> None:
        expected = numpy.asarray(x) * a + numpy.asarray(y) * b
        numpy.testing.assert_array_equal(numpy.asarray(x * a + y * b), expected)

    assert count(lambda: [turn(k / 7, k / 7) for k in range(1, 200)])[0] == 1
    assert count(lambda: [turn(k / 7, -k / 7) for k in range(1, 200)])[0] == 1
    assert count(lambda: [turn(j, k) for j in range(8) for k in range(8)])[0] == 0


def moving_window(x: Any, k: int) -> Any:
    return x[k : k + 100] * 2


def two_windows(x: Any, k: int) -> Any:
    return x[k : k + 100] - x[2 * k : 2 * k + 100]


def row(x: Any, k: int) -> Any:
    return x.reshape(2000, 2)[k] + 1


def backwards(x: Any, k: int) -> Any:
    return x[k + 99 : (k - 1 if k else None) : -1] + 1


def write(x: Any, k: int) -> Any:
    y = x[:1200] + 0
    y[k : k + 100] = x[:100]
    return y


def border(x: Any, k: int) -> Any:
    return numpy.pad(x[:100], (k, 1000 - k)) + 1


def into_zeros(x: Any, k: int) -> Any:
    z = numpy.zeros_like(x, shape=(2, 2000))
    z[1, k : k + 100] = x[:100] * 2
    return z + 1


@pytest.mark.parametrize("window", [moving_window, two_windows, row, backwards, write, border, into_zeros])
def test_thousand_offsets_are_few_schedules(window: Callable[[Any, int], Any]) -> None:
    x = given(4000)
    host = numpy.asarray(x).copy()

    def walk(start: int, stop: int) -> None:
        for k in range(start, stop):
            got = numpy.asarray(window(x, k).realize())
            assert numpy.array_equal(got, window(host, k)), k

    misses, kernels = count(lambda: walk(0, 16))
    assert misses <= 4
    assert kernels <= 2 * misses
    assert count(lambda: walk(16, 1000)) == (0, 0)


def elementwise(n: int) -> Any:
    x = np.full(n, 3.0).realize()
    return (x * 2 + 1) / x


def rows(n: int) -> Any:
    x = np.full((n, 7), 3.0).realize()
    return x * np.full(7, 2.0).realize() + 1


def total(n: int) -> Any:
    return np.full(n + 8, 3.0).realize().sum()


@pytest.mark.slow
@pytest.mark.parametrize("build", [elementwise, rows, total])
def test_thousand_shapes_are_two_compilations(build: Callable[[int], Any]) -> None:
    def grow() -> None:
        for n in range(1, 1001):
            build(n).realize()

    build(3).realize()  # the kernels that make the inputs
    misses, kernels = count(grow)
    assert misses >= 999
    assert kernels <= 2


def test_two_expressions_of_one_shape_share_their_kernel() -> None:
    """Which buffers, scalars and entries a kernel works on is no part of it."""
    x, y = given(100), given(100)
    first, second = count(lambda: (x * 3.0 + y).realize()), count(lambda: (y * 4.0 + x).realize())
    assert first[1] <= 1
    assert second[1] == 0


def test_second_process_of_a_program_is_not_a_second_schedule() -> None:
    """The same program recorded again finds its schedule, whatever else is alive."""
    def program() -> Any:
        x = given(60, 40)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return (e / e.sum(axis=1, keepdims=True)).realize()

    first = program()
    misses, kernels = count(lambda: [program() for _ in range(5)])
    assert (misses, kernels) == (0, 0)
    assert first.shape == (60, 40)
