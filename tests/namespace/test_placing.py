
"""Functions that write: through views, lazily, with NumPy's casts and refusals."""

from __future__ import annotations

import types
import warnings
from itertools import product
from math import prod
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.namespace.compare import DTYPES, check

# What is written to, as an expression in ``x`` (a fresh array of 3 x 4 numbers): the array itself and views of every kind.
TARGETS = {
    "whole": "x",
    "rows": "x[1:]",
    "steps": "x[::-1, ::2]",
    "transposed": "x.T",
    "column": "x[:, 1]",
    "reshaped": "x.reshape(-1)",
    "empty": "x[:0]",
    "new": "x + 0",
}

WRITES = [
    "np.putmask(y, y > 3, 7)",
    "np.putmask(y, y > 3, [7, 8, 9])",
    "np.putmask(y, y % 2, -y)",
    "np.putmask(y, y > 3, [])",
    "np.putmask(y, y > 3, 2.5)",
    "np.putmask(y, y > 3, np.array([2.5]))",
    "np.putmask(y, y > 3, 1j)",
    "np.putmask(y, [True], 7)",
    "np.place(y, y > 3, [7, 8])",
    "np.place(y, y > 3, 9)",
    "np.place(y, y % 3, np.array([[1], [2], [3]]))",
    "np.place(y, y > 3, [])",
    "np.place(y, y > 99, [])",
    "np.place(y, [True], 7)",
    "np.place(y, y > 3, np.array([2.5, 3]))",
    "np.fill_diagonal(y, 7)",
    "np.fill_diagonal(y, [7, 8])",
    "np.fill_diagonal(y, [1, 2, 3, 4, 5, 6])",
    "np.fill_diagonal(y, 2.7, wrap=True)",
    "np.fill_diagonal(y, np.array([300.5, 2]))",
    "np.fill_diagonal(y, [])",
    "np.fill_diagonal(y, 'x')",
    "np.put(y, [0, 1], [7, 8])",
    "np.put(y, [0, -1, 0], [7, 8])",
    "np.put(y, 1, 5)",
    "np.put(y, [0, 99], 5)",
    "np.put(y, [0, 99, -99], 5, mode='clip')",
    "np.put(y, [0, 99, -99], [5, 6, 7], mode='wrap')",
    "np.put(y, [0], 5, mode='x')",
    "np.put(y, [0, 1], [])",
    "np.put(y, [], 1)",
    "np.put(y, np.array([1.5]), 1)",
    "np.put(y, [1], np.array([2.5]))",
    "y.put([0, 1], -1)",
    "np.put_along_axis(y, np.argmax(y, axis=-1, keepdims=True), 99, axis=-1)",
    "np.put_along_axis(y, np.zeros((1,) * y.ndim, int), 5, axis=0)",
    "np.put_along_axis(y, np.array([1, 0]), [5, 6], axis=None)",
    "np.put_along_axis(y, np.zeros((1,) * y.ndim), 5, axis=0)",
    "np.put_along_axis(y, np.array([0]), 5, axis=0)",
    "np.put_along_axis(y, np.full((1,) * y.ndim, 99), 5, axis=0)",
    "np.put_along_axis(y, np.zeros((1,) * y.ndim, int), 5, axis=7)",
    "np.copyto(y, 3)",
    "np.copyto(y, y[::-1])",
    "np.copyto(y, 2.5)",
    "np.copyto(y, 2.5, casting='unsafe')",
    "np.copyto(y, 9, where=y > 3)",
    "np.copyto(y, 9, where=y)",
    "np.copyto(y, 9, where=[1] * y.shape[-1])",
    "np.copyto(y, np.arange(99))",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", WRITES)
def test_writes(text: str, target: str) -> None:
    def run(np: Any) -> object:
        x = np.arange(12).reshape(3, 4) + 0
        y = eval(TARGETS[target], {"x": x})
        before = x[0] * 1
        exec(text, {"np": np, "y": y})
        return x, y, before

    check(run, note=f"{text} on {target}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes_convert(dtype: str) -> None:
    for text in ("np.putmask(y, y != 0, 1)", "np.place(y, y == 0, [True])", "np.fill_diagonal(y, 1.9)", "np.put(y, [0, 5], [1, 0])"):

        def run(np: Any, text: str = text) -> object:
            y = np.array(numpy.arange(9).reshape(3, 3) % 3, dtype)
            exec(text, {"np": np, "y": y})
            return y

        check(run, note=f"{text} {dtype}")


def test_numbers_must_fit() -> None:
    for text in ("np.putmask(y, y == 0, 300)", "np.place(y, y == 0, 300)", "np.fill_diagonal(y, 300)", "np.put(y, 0, 300)"):

        def run(np: Any, text: str = text) -> object:
            y = np.zeros((2, 2), "int8")
            exec(text, {"np": np, "y": y})
            return y

        check(run, note=text)


def test_three_dimensional_diagonals() -> None:
    def run(np: Any) -> object:
        x, y = np.zeros((3, 3, 3)), np.zeros((5, 2), int)
        np.fill_diagonal(x, [1, 2, 3])
        np.fill_diagonal(y, 4, True)
        return x, y

    check(run)
    check(lambda np: np.fill_diagonal(np.zeros((2, 2, 3)), 1))
    check(lambda np: np.fill_diagonal(np.zeros(3), 1))


@pytest.mark.parametrize("name", ["put", "place", "putmask", "put_along_axis", "fill_diagonal"])
def test_what_is_no_array_or_read_only_is_refused(name: str) -> None:
    arguments = {"put": "[0], 1", "place": "[[True, True], [True, True]], 1", "putmask": "[[True, True], [True, True]], 1",
                 "put_along_axis": "np.array([[0]]), 1, 0", "fill_diagonal": "1"}[name]  # fmt: skip
    check(lambda np: eval(f"np.{name}([[1, 2], [3, 4]], {arguments})", {"np": np}), note=f"{name} of a list")
    check(lambda np: eval(f"np.{name}(np.broadcast_to(np.zeros(2), (2, 2)), {arguments})", {"np": np}), note=f"{name} read-only")


@pytest.mark.usefixtures("processor")
@pytest.mark.usefixtures("recorded")
def test_writes_are_recorded_not_computed() -> None:
    x = lazynp.ones((4, 4)) + 1
    view = x[1:, 1:]
    old = x + 0
    lazynp.putmask(view, view > 1, lazynp.arange(3.0))
    lazynp.place(view, view > 1, [5.0, 6.0])
    lazynp.fill_diagonal(view, 9)
    lazynp.put(x, [0, 3], -1)
    lazynp.put_along_axis(x, lazynp.array([[2]]), 8, 0)
    assert x._node.buffer is None
    assert (old == 2).all()
    want = numpy.full((4, 4), 2.0)
    seen = want[1:, 1:]
    numpy.putmask(seen, seen > 1, numpy.arange(3.0))
    numpy.place(seen, seen > 1, [5.0, 6.0])
    numpy.fill_diagonal(seen, 9)
    numpy.put(want, [0, 3], -1)
    numpy.put_along_axis(want, numpy.array([[2]]), 8, 0)
    assert (numpy.asarray(x) == want).all()
    assert (numpy.asarray(view) == seen).all()


def test_numpys_arrays_are_written_in_place() -> None:
    x = numpy.zeros((2, 2))
    lazynp.fill_diagonal(x, lazynp.array(3.0))
    lazynp.put(x, lazynp.array([1]), 4)
    lazynp.putmask(x, lazynp.array([[False, False], [True, False]]), 5)
    assert x.tolist() == [[3, 4], [5, 3]]


@pytest.mark.usefixtures("recorded")
def test_a_position_that_is_out_of_range_only_when_computed() -> None:
    x = lazynp.zeros(3)
    lazynp.put(x, lazynp.arange(3) * 5, 1)
    with pytest.raises(IndexError):
        x.realize()


def test_complex_values_warn_where_numpy_warns() -> None:
    for module in (numpy, lazynp):
        x = module.zeros((2, 2))
        with pytest.warns(numpy.exceptions.ComplexWarning):
            module.fill_diagonal(x, module.array([1 + 2j]))


def test_writes_in_a_loop() -> None:
    def run(np: types.ModuleType) -> object:
        x = np.zeros(50)
        for k in range(50):
            np.put(x, k, x[k - 1] + k)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(run)


SHAPES: Final = [(6,), (1, 6), (2, 6), (6, 1), (1,), (), (2, 1, 6), (1, 1, 6), (2, 3, 6), (3,), (0,), (1, 2, 6)]


def copied(np: Any, to: tuple[int, ...], of: tuple[int, ...], where: tuple[int, ...], kind: int) -> Any:
    a = np.zeros(to) + 1
    b = a if kind == 1 else np.full(of, -1.0) * 2
    mask = np.arange(prod(where)).reshape(where) % 2 == 0
    try:
        np.copyto(a, b, where=~mask if kind else mask)
    except Exception as error:
        return type(error), str(error)
    return numpy.asarray(a).tolist()


@pytest.mark.parametrize("limit", [None, 0])
def test_masks_fit_what_is_written(limit: int | None) -> None:
    with config.override(**{} if limit is None else {"tape_limit": limit, "numbers": "wait"}):
        for *shapes, kind in product(SHAPES, SHAPES, SHAPES, range(2)):
            assert copied(lazynp, *shapes, kind) == copied(numpy, *shapes, kind), (shapes, kind)
