"""Statements of kernels where conditions, scratch and index arithmetic meet: what compiled kernels give is what NumPy gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.runtime import config
from lazynp.schedule import cost
from tests.schedule.plans import measured


@pytest.fixture(autouse=True)
def _compiled_and_checked() -> Iterator[None]:
    with config.override(tier="compiled", debug=True):
        yield


def table(*shape: int) -> Any:
    return numpy.random.default_rng(0).integers(-50, 50, shape).astype("f8")


# Index arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (40, 30)])
def test_flipped_part_behind_another_divides_negative_positions(shape: tuple[int, ...]) -> None:
    x = table(*shape)
    y = np.asarray(x)
    numpy.testing.assert_array_equal(
        np.concatenate([y.reshape(-1), y.reshape(-1)[::-1]]), numpy.concatenate([x.reshape(-1), x.reshape(-1)[::-1]])
    )
    rows = (-1, shape[-1] * 2)
    numpy.testing.assert_array_equal(
        np.concatenate([y.reshape(rows), y.reshape(rows)[::-1]]), numpy.concatenate([x.reshape(rows), x.reshape(rows)[::-1]])
    )


# Computed indices under a condition -------------------------------------------------------------------------------------


def joined(m: Any, x: Any, rows: Any) -> Any:
    return m.concatenate([x[rows - 10], x])


def padded(m: Any, x: Any, rows: Any) -> Any:
    return m.pad(x[rows - 10], ((3, 2), (2, 1)))


def padded_twice(m: Any, x: Any, rows: Any) -> Any:
    return m.pad(m.pad(x[rows - 10], 1)[m.pad(rows - 10, (2, 2))], 1)


def padded_columns(m: Any, x: Any, rows: Any) -> Any:
    return m.pad(x[:, rows[:6] - 10], ((3, 2), (2, 1))).sum(axis=0)


@pytest.mark.parametrize("f", [joined, padded, padded_twice, padded_columns])
def test_index_behind_a_border_raises_nothing(f: Any) -> None:
    x, rows = table(20, 6), numpy.arange(10, 30)
    numpy.testing.assert_array_equal(f(np, np.asarray(x), np.asarray(rows)), f(numpy, x, rows))


@pytest.mark.parametrize("f", [joined, padded, padded_columns])
def test_index_inside_the_border_is_checked(f: Any) -> None:
    x, rows = table(20, 6), numpy.arange(10, 30)
    rows[5] = 99
    with pytest.raises(IndexError, match="89 is out of bounds"):
        f(np, np.asarray(x), np.asarray(rows)).realize()


# Joined parts -----------------------------------------------------------------------------------------------------------


def test_condition_that_holds_already_is_not_asked_again() -> None:
    def f(m: Any, x: Any) -> Any:
        c = m.concatenate([x + 1, x * 2])
        return m.concatenate([c[: len(x)] + 1, c[len(x) :], c[4:9]])

    x = table(7)
    numpy.testing.assert_array_equal(f(np, np.asarray(x)), f(numpy, x))


# Scratch -----------------------------------------------------------------------------------------------------------------


def test_value_staged_in_one_piece_only_is_computed_in_the_others() -> None:
    def f(m: Any, x: Any, z: Any) -> tuple[Any, Any]:
        a = m.exp(m.arange(200) * 0.01)
        return x * m.pad(a[:100], (0, 100)), a * x / m.sum(z, axis=1, keepdims=True)

    x, z = table(2, 200), abs(table(2, 70)) + 1
    got = f(np, np.asarray(x), np.asarray(z))
    np.realize(*got)
    for a, b in zip(got, f(numpy, x, z), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-13)


def test_scratch_of_many_staged_values_fits_the_stack() -> None:
    def f(m: Any, x: Any) -> Any:
        return sum(e / m.sum(e, axis=1, keepdims=True) for e in [m.exp(x * (0.01 * k)) for k in range(1, 41)])

    x = table(2, 32_768) / 50
    y = f(np, np.asarray(x))
    assert 0 < measured(y).scratch <= cost.SCRATCH_TOTAL
    numpy.testing.assert_allclose(y, f(numpy, x), rtol=1e-12)
