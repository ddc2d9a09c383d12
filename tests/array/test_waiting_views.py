"""Views of what waits wait, too: they are views of the same memory, whoever is computed, written or dropped first."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.values import config


@pytest.fixture(autouse=True)
def _usual_limit() -> Iterator[None]:
    with config.override(tape_limit=65536):
        yield


def grid(np: Any, seed: int = 0) -> Any:
    return np.array(numpy.random.default_rng(seed).standard_normal((3, 4)))


VIEWS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "rows": lambda np, y: y[1:],
    "a row": lambda np, y: y[2],
    "a column": lambda np, y: y[:, 1],
    "every other": lambda np, y: y[::2, ::-1],
    "a new axis": lambda np, y: y[:, None],
    "all": lambda np, y: y[...],
    "T": lambda np, y: y.T,
    "transpose": lambda np, y: np.transpose(y),
    "a method": lambda np, y: y.transpose(),
    "reshape": lambda np, y: y.reshape(2, -1),
    "reshape to a tuple": lambda np, y: np.reshape(y, (4, 3)),
    "ravel": lambda np, y: y.ravel(),
    "squeeze": lambda np, y: np.squeeze(y[:1]),
    "expand_dims": lambda np, y: np.expand_dims(y, 1),
    "swapaxes": lambda np, y: y.swapaxes(0, 1),
    "flip": lambda np, y: np.flip(y),
    "flip an axis": lambda np, y: np.flip(y, 1),
    "a view of a view": lambda np, y: y[1:].T[::2],
    "a view of a view of a view": lambda np, y: y.ravel()[2:].reshape(2, 5)[:, ::2],
}

# Programs of a value that waits and a view of it: what is left.
PROGRAMS: Final[dict[str, Callable[[Any, Any, Any], list[Any]]]] = {
    "read": lambda np, y, v: [v + 1, y],
    "read by another tape": lambda np, y, v: [(v + 1).sum(axis=-1), y * 2],
    "write the value": lambda np, y, v: [wrote(y, (0, 0), 7.0), v],
    "write all of it": lambda np, y, v: [wrote(y, ..., 7.0), v],
    "write the view": lambda np, y, v: [wrote(v, 0, 5.0), y],
    "add to the value": lambda np, y, v: [added(y, 1.0), v],
    "add to the view": lambda np, y, v: [added(v, 1.0), y],
    "read, then write": lambda np, y, v: [v * 3, wrote(y, (slice(None), 2), 1.0), v],
    "read, then add": lambda np, y, v: [v * 3, added(y, y), v],
    "drop the value": lambda np, y, v: [v],
    "multiply": lambda np, y, v: [v @ v.T if v.ndim == 2 else v.sum(), y],
    "join": lambda np, y, v: [np.concatenate([v, v]), y],
    "compute the view first": lambda np, y, v: [np.asarray(v).sum(), y],
    "write through NumPy": lambda np, y, v: [through(v), y],
}


def wrote(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def added(x: Any, y: Any) -> Any:
    x += y
    return x


def through(x: Any) -> Any:
    numpy.asarray(x)[...] = 3
    return x


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_a_value_and_its_view(program: str, view: str) -> None:
    def run(np: Any) -> list[Any]:
        y = grid(np) * grid(np, 1)
        v = VIEWS[view](np, y)
        return [*PROGRAMS[program](np, y, v), v]

    for got, expected in zip(run(lazynp), run(numpy), strict=True):
        numpy.testing.assert_array_equal(numpy.asarray(got), expected)
        if isinstance(expected, numpy.ndarray):
            assert (got.shape, got.dtype, got.strides) == (expected.shape, expected.dtype, expected.strides)


@pytest.mark.parametrize("view", VIEWS)
def test_they_wait_and_are_views(view: str) -> None:
    y = grid(lazynp) * 2
    v = VIEWS[view](lazynp, y)
    assert core.tape(v) is not None
    assert core.tape(y) is not None
    expected = VIEWS[view](numpy, grid(numpy) * 2)
    assert (v.shape, v.ndim, v.size, len(v), v.dtype) == (expected.shape, expected.ndim, expected.size, len(expected), expected.dtype)
    assert lazynp.schedule(v).items
    assert core.tape(v) is not None
    assert v.base is y
    assert lazynp.shares_memory(v, y)
    assert v.strides == expected.strides
    assert (v.flags.c_contiguous, v.flags.owndata) == (expected.flags.c_contiguous, False)


def test_a_contiguous_view_is_an_operand_of_what_waits() -> None:
    y = grid(lazynp) * 2
    z = y.ravel()[1:] - y.ravel()[:-1]
    assert core.tape(y) is not None
    x = grid(numpy).ravel() * 2
    numpy.testing.assert_array_equal(numpy.asarray(z), x[1:] - x[:-1])


def test_what_nobody_has_is_not_computed() -> None:
    before = core.chain_counts()
    y = grid(lazynp) * 2
    v = y[1:].T
    del y, v
    gc.collect()
    assert core.chain_counts() == before


def test_views_of_views_without_end() -> None:
    v = grid(lazynp) * 2
    for _ in range(100_000):
        v = v[:, :]
    numpy.testing.assert_array_equal(numpy.asarray(v), grid(numpy) * 2)


def test_a_value_that_comes_to_be_a_graph() -> None:
    y = lazynp.sort(grid(lazynp) * 2, axis=0)
    v, w = y[1:], y.T[::2][1:]
    with config.override(tape_limit=0):
        lazynp.realize(w, v)
    x = numpy.sort(grid(numpy) * 2, axis=0)
    y[1, 1] = x[1, 1] = 99
    for got, expected in [(v, x[1:]), (w, x.T[::2][1:]), (y, x)]:
        numpy.testing.assert_array_equal(numpy.asarray(got), expected)


def test_an_exception_is_told_to_who_asks() -> None:
    y = grid(lazynp) * 2
    with pytest.raises(IndexError):
        y[5]
    with pytest.raises(ValueError, match="reshape"):
        y.reshape(5, 5)
    assert lazynp.realize(y[1:]).shape == (2, 4)


def test_real_parts_of_real_numbers_are_the_numbers_and_nothing_is_squeezed() -> None:
    y = grid(lazynp) * 2
    assert y.real is y
    assert y.squeeze() is y
    assert core.tape(y) is not None
