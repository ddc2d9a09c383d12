"""Functions that wait and are computed by loops of our own or as steps: ``roll``, ``round``, counts of truth values; and small broadcasts.

In: calls over dtypes, shapes, sizes on both sides of the limit of small tapes.  Out: failures.  Promise: NumPy is the oracle: bits, dtypes,
strides, bases, warnings.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import lazynp
from tests.array import chained

SHAPES = [(5,), (300,), (4, 6), (3, 1, 7), (2, 3, 4), (90, 40)]


def same(call: str, waits: bool = True, **values: Any) -> None:
    """Compare what a call on what waits gives with NumPy's; tell whether it ``waits``, too."""
    found = []
    for np in (numpy, lazynp):
        names = {"np": np} | {name: np.asarray(value.copy()) for name, value in values.items()}
        if np is lazynp and waits:
            assert lazynp.schedule(eval(call, names)).items, call
        with chained.told() as heard:
            y = eval(call, names)
            array = numpy.asarray(y)
        found.append(
            (array.dtype, array.shape, array.strides, array.tobytes(), y.base is None, sorted(str(each.message) for each in heard))
        )
    assert found[0] == found[1], call


def numbers(shape: tuple[int, ...], dtype: str = "d") -> Any:
    return (numpy.random.default_rng(len(shape)).standard_normal(shape) * 100).astype(dtype)


@pytest.mark.parametrize("dtype", ["d", "f", "i2", "?", "D"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_roll(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    other = x ^ x if dtype == "?" else x * 0
    text = "x ^ y" if dtype == "?" else "x + y"
    for shift in (0, 1, -1, 3, -100, 2**40):
        same(f"np.roll({text}, {shift})", len(shape) == 1, x=x, y=other)
        for axis in range(-len(shape), len(shape)):
            same(f"np.roll({text}, {shift}, {axis})", x=x, y=other)
            same(f"np.roll({text}, {shift}, axis={axis})", x=x, y=other)


ODD = [
    "1, 2",
    "None",
    "[[1]]",
    "(1, 2), (0, 1)",
    "1.5",
    "'1'",
    "True",
    "1, (0, 0)",
    "2**70",
    "1, None",
    "1, 0, 2",
    "shift=1, axis=1",
    "1, axes=1",
]


@pytest.mark.parametrize("rest", ODD)
def test_what_else_roll_is_called_with(rest: str) -> None:
    found: list[Any] = []
    for np in (numpy, lazynp):
        x = np.arange(12.0).reshape(3, 4) * 2
        try:
            found.append(eval(f"np.roll(x, {rest}).tolist()", {"np": np, "x": x}))
        except Exception as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["d", "f"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_round(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    x.reshape(-1)[:5] = [0.5, -0.0, numpy.inf, numpy.nan, 2.5]
    for decimals in (0, 1, 3, 8, -1, -2):
        for call in ("np.round(x * 1, {})", "np.around(x * 1, {})", "(x * 1).round({})", "np.round(x * 1, decimals={}) * 2"):
            same(call.format(decimals), x=x)
    same("(x * 1).round()", x=x)
    same("np.round(x * 1, 2)", x=numpy.full(shape, numpy.finfo(dtype).max))  # overflows in the product
    same("x - 2 * np.round(x / 2)", x=x)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint"])
@pytest.mark.parametrize("dtype", ["d", "f", "e"])
def test_whole_numbers_are_steps_of_an_expression(name: str, dtype: str) -> None:
    x = numbers((700,), dtype)
    x[:4] = [-0.0, 7.0 if dtype == "e" else numpy.inf, numpy.nan, -0.3]  # halves are computed, and tell of errors, at the call
    same(f"(x * 2 - np.{name}(x * 2)) * x", dtype != "e", x=x)
    same(f"np.copysign(np.{name}(x * 2), x)", dtype != "e", x=x)


@pytest.mark.parametrize("shape", [(4, 6), (3, 1, 7), (2, 3, 4), (300, 40), (3, 300, 260), (1, 600)], ids=str)
def test_truth_values_are_counted(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    x[0] = 1  # all of a row
    for axis, keeps, name in itertools.product(range(-len(shape), len(shape)), (False, True), ("sum", "mean", "any", "all", "prod")):
        same(f"(x > 0).{name}(axis={axis}, keepdims={keeps})", x=x)
        same(f"np.{name}(x > 0, axis={axis})", x=x)


def test_truth_values_may_be_any_byte() -> None:
    x = numpy.arange(60, dtype="u1").reshape(5, 12)
    for axis in (0, 1):
        assert numpy.sum(x.view(bool), axis).tolist() == lazynp.sum(lazynp.asarray(x).view(bool), axis).tolist()


OPERANDS = ["row", "column", "x[:1]", "x[:, :1]", "x[:, ::-1]", "x[::2].repeat(2, 0)[:9]", "wide[:, 2:9]", "2.0"]


@pytest.mark.parametrize("dtype", ["d", "f", "i4", "i1", "D"])
def test_small_broadcasts(dtype: str) -> None:
    x, row, column, wide = (numbers(shape, dtype) for shape in ((9, 7), (7,), (9, 1), (9, 11)))
    for one, two in itertools.product(OPERANDS, repeat=2):
        y = {"x": x, "row": row, "column": column, "wide": wide}
        same(f"x + {one} * {two} - {one}" if one != two else f"x * {one}", "::-1" not in one + two, **y)
        same(f"(x - {one})[:, None] * x", "::-1" not in one, **y)


SOUGHT = [
    -7.0,
    0.0,
    -0.0,
    3.0,
    3.5,
    99.0,
    float("nan"),
    numpy.float64(2.0),
    3,
    numpy.int64(-2),
    True,
    2**70,
    -(2**63),
    numpy.float32(1.5),
    1j,
]


@pytest.mark.parametrize("dtype", ["d", "q", "f", "i4", "D"])
def test_where_one_number_belongs(dtype: str) -> None:
    rng = numpy.random.default_rng(3)
    for size in (0, 1, 2, 7, 300):
        for order in (numpy.sort, lambda a: a):  # NumPy finds a place among numbers that are not in order, too
            a = order(rng.integers(-5, 5, size)).astype(dtype)
            if size == 7 and dtype in "df":
                a[-1] = numpy.nan
            for v, side in itertools.product(SOUGHT, ((), ("left",), ("right",))):
                found: list[Any] = []
                for np in (numpy, lazynp):
                    x = np.asarray(a.copy())
                    for call in (lambda: np.searchsorted(x, v, *side), lambda: x.searchsorted(v, *side)):  # noqa: B023
                        try:
                            place = call()
                            found.append((int(place), isinstance(place, numpy.int64)))
                        except Exception as error:
                            found.append((type(error), str(error)))
                assert found[:2] == found[2:], (a, v, side)


@pytest.mark.parametrize("dtype", ["d", "f", "i2", "?", "D"])
def test_columns_of_vectors(dtype: str) -> None:
    vectors = [numbers((300,), dtype) for _ in range(3)]
    ours = [lazynp.asarray(x.copy()) for x in vectors]
    found, expected = lazynp.column_stack(ours), numpy.column_stack(vectors)
    assert (found.dtype, found.strides, numpy.asarray(found).tobytes()) == (expected.dtype, expected.strides, expected.tobytes())


def test_the_base_of_a_roll_without_an_axis_has_one() -> None:
    y = lazynp.roll((lazynp.arange(6) * 1.0).reshape(2, 3), 2)
    base = y.base
    base[4] = 7
    assert base.shape == (6,)
    assert y.tolist() == [[4, 5, 0], [1, 7, 3]]


@pytest.mark.parametrize("call", ["outer(x, -x)", "reduce(np.stack([x, -x]))", "accumulate(np.stack([x, -x]))"])
def test_powers_of_integers_raise_at_the_call(call: str) -> None:
    x = lazynp.arange(3) + 2
    with pytest.raises(ValueError, match="negative integer powers"):
        eval(f"np.power.{call}", {"np": lazynp, "x": x})
