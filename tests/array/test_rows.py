"""Reductions of rows and columns in C: NumPy's bits at every length.

In: matrices of rows and columns of many lengths, with special values and without.  Out: failures.  Promise: sums are added in NumPy's
order; zeros and NaN among extremes are NumPy's; what it warns of is warned of.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core

LENGTHS: Final = (2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31, 47, 48, 64, 100, 127, 128, 129, 136, 200, 255, 256, 257, 300, 1000, 2051)
Reduced = Callable[[Any, Any, int], Any]
FUNCTIONS: Final[dict[str, Reduced]] = {
    "sum": lambda np, x, axis: np.sum(x, axis=axis),
    "mean": lambda np, x, axis: x.mean(axis=axis, keepdims=True),
    "max": lambda np, x, axis: np.max(x, axis=axis),
    "min": lambda np, x, axis: x.min(axis=axis, keepdims=True),
    "var": lambda np, x, axis: x.var(axis=axis),
    "std": lambda np, x, axis: np.std(x, axis=axis, keepdims=True),
    "ddof": lambda np, x, axis: np.var(x, axis=axis, ddof=1, keepdims=True),
    "an expression": lambda np, x, axis: (x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True),
}
SPECIAL: Final = (0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1e300, -1e300, 1e-310, 3.0)


def heard(call: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """The bytes of a result, how it lies, and what was warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        x = numpy.asarray(call(*args))
    bits = x.copy()
    if bits.dtype.kind == "f":
        bits[numpy.isnan(bits)] = numpy.nan
    steps = tuple(step for step, length in zip(x.strides, x.shape, strict=True) if length > 1)  # that of one element leads nowhere
    return bits.tobytes(), x.dtype, x.shape, steps, sorted(str(one.message) for one in told)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "?", "c16", "f2"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_and_columns(name: str, dtype: str) -> None:
    rng = numpy.random.default_rng(len(name))
    function = FUNCTIONS[name]
    for length in LENGTHS:
        for shape in ((length, 9), (9, length), (3, length, 5), (4, 3, length)):
            values = rng.standard_normal(shape) * 10
            x = values.astype(dtype)
            y = lazynp.array(x)
            for axis in range(len(shape)):
                assert heard(function, numpy, x, axis) == heard(function, lazynp, y, axis), (shape, axis)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, dtype: str) -> None:
    rng = numpy.random.default_rng(len(name))
    function = FUNCTIONS[name]
    for length in LENGTHS[:20]:
        for kinds in (SPECIAL, SPECIAL[:2], SPECIAL[:3], SPECIAL[3:5], (-0.0,), (1.0, numpy.nan)):
            with numpy.errstate(over="ignore"):
                x = rng.choice(kinds, (24, length)).astype(dtype)
            for z in (x, x.T.copy()):
                y = lazynp.array(z)
                for axis in (0, 1):
                    assert heard(function, numpy, z, axis) == heard(function, lazynp, y, axis), (length, kinds, axis)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_waits_and_parts(name: str) -> None:
    """Operands that wait, rows that lie apart, and more elements than one thread takes; recorded, where NumPy's answer is an array."""
    function = FUNCTIONS[name]
    for shape in ((40, 11), (11, 40), (30_000, 10), (10, 30_000), (600, 500)):
        x = numpy.random.default_rng(0).random(shape)
        y = lazynp.realize(lazynp.array(x) * 1)
        for axis in (0, 1):
            want = heard(function, numpy, x * 2 + 1, axis)
            made = function(lazynp, y * 2 + 1, axis)
            assert core.tape(made) is not None
            assert heard(numpy.asarray, made) == want
            part, theirs = y[:, 2:-1], x[:, 2:-1]
            assert heard(function, numpy, theirs, axis) == heard(function, lazynp, part, axis)


def test_few_elements() -> None:
    """Fewer than are taken off, and none: NumPy warns."""

    def variance(x: Any, ddof: int) -> Any:
        return x.var(axis=1, ddof=ddof)

    x = numpy.ones((3, 2))
    y = lazynp.array(x)
    for ddof in (1, 2, 3):
        assert heard(variance, x, ddof) == heard(variance, y, ddof)
    assert heard(variance, numpy.ones((3, 0)), 0) == heard(variance, lazynp.ones((3, 0)), 0)


def test_differences_are_steps() -> None:
    x = numpy.random.default_rng(0).random((30, 40))
    y = lazynp.realize(lazynp.array(x) * 1)
    calls: tuple[Callable[[Any, Any], Any], ...] = (
        lambda np, x: np.diff(x), lambda np, x: np.diff(x, axis=0), lambda np, x: np.diff(x, 1, -2),
        lambda np, x: np.diff(x[0], n=1, axis=0), lambda np, x: np.diff(x * 2) + 1, lambda np, x: np.diff(x.T),
        lambda np, x: np.diff((x * 100).astype("u2"), axis=1),
    )  # fmt: skip
    for call in calls:
        made = call(lazynp, y)
        assert core.tape(made) is not None
        assert heard(numpy.asarray, made) == heard(call, numpy, x)
    others: tuple[Callable[[Any, Any], Any], ...] = (
        lambda np, x: np.diff(x, 2), lambda np, x: np.diff(x, 0), lambda np, x: np.diff(x > 0.5), lambda np, x: np.diff(x, prepend=0),
        lambda np, x: np.diff(x, axis=2), lambda np, x: np.diff(x, -1), lambda np, x: np.diff(x[:, :1]), lambda np, x: np.diff(x, True),
        lambda np, x: np.diff(x, 1, n=1), lambda np, x: np.diff(x, 1, -1, axis=0), lambda np, x: np.diff(x, 1, axis=0),
        lambda np, x: np.diff(x, order=1),
    )  # fmt: skip
    for call in others:
        try:
            want = heard(call, numpy, x)
        except Exception as error:
            with pytest.raises(type(error)):
                call(lazynp, y)
        else:
            assert heard(call, lazynp, y)[:3] == want[:3]


EXPRESSIONS: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    "squares": lambda np, x, c: x * x,
    "several steps": lambda np, x, c: (x * 2 + 1) / (x * x + 3) - x,
    "a column": lambda np, x, c: np.sqrt(abs(x - c)),
    "a row": lambda np, x, c: (x - x[0]) * 2,
    "a part": lambda np, x, c: x[1:] - x[:-1],
    "of bits": lambda np, x, c: (x > 0.5) * x,
    "transposed": lambda np, x, c: x.T * 2,
    "errors": lambda np, x, c: 1 / (x - x),
    "overflow": lambda np, x, c: x * 1e308 * 10,
}


SHAPES: Final = (
    (40, 11), (300, 10), (7, 600), (64, 64), (400, 100), (9, 1025), (30, 2000), (3, 8192), (2, 8193), (9, 40, 12), (20_000, 8),
)  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_rows_of_what_waits(name: str, compiled: bool, waiting: None) -> None:
    """A reduction goes with the steps that compute its operand, whether the program has that as well or not."""
    expression = EXPRESSIONS[name]
    core.chain_sizes(1, 512, 1024, 0 if compiled else 1 << 62)
    try:
        for shape in SHAPES:
            for dtype in ("f8", "f4"):
                x = (numpy.random.default_rng(1).random(shape) * 3).astype(dtype)
                c = x.max(axis=-1, keepdims=True)
                a, b = lazynp.realize(lazynp.array(x) * 1, lazynp.array(c) * 1)
                for function in FUNCTIONS.values():

                    def both(np: Any, x: Any, c: Any, function: Reduced = function) -> Any:
                        return function(np, expression(np, x, c), -1)

                    want = heard(both, numpy, x, c)
                    assert heard(both, lazynp, a, b) == want, (shape, dtype)
                    made = function(lazynp, expression(lazynp, a, b), -1)
                    assert heard(numpy.asarray, made)[:4] == want[:4]
                    kept = expression(lazynp, a, b)
                    made, other = function(lazynp, kept, -1), kept * 2
                    assert heard(numpy.asarray, made)[:4] == want[:4]
                    assert heard(numpy.asarray, kept)[:4] == heard(expression, numpy, x, c)[:4]
                    assert heard(numpy.asarray, other)[:4] == heard(lambda *of: expression(*of) * 2, numpy, x, c)[:4]
                    made, a[:] = function(lazynp, expression(lazynp, a, b), -1), 0.0
                    assert heard(numpy.asarray, made)[:4] == want[:4]
                    a[:] = x
    finally:
        core.chain_sizes(1, 512, 1024)


WAITING: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "negative": lambda np, x: -x,
    "absolute": lambda np, x: abs(x),
    "maximum": lambda np, x: np.maximum(x, 0.0),
    "a choice": lambda np, x: np.where(x > 0.5, x, 1.0),
    "a product": lambda np, x: x * 1.0,
}


MISSED: Final = """
import sys, warnings
import numpy, lazynp
from tests.array.test_rows import FUNCTIONS, WAITING

expression, row = WAITING[sys.argv[1]], int(sys.argv[2])
x = numpy.ones((3000, 50))
for _ in range(3):  # what is compared with NumPy before its first use is, by then
    lazynp.var(expression(lazynp, lazynp.ones((3000, 50))), axis=1).tolist()
x[row] = numpy.arange(50) * 1e200
a = lazynp.realize(lazynp.array(x) * 1)
told = []
warnings.showwarning = lambda message, *_, **__: told.append(str(message).replace("multiply", "square"))

def program(np, x, function):
    with np.errstate(all="ignore"):
        y = expression(np, x)
    found = function(np, y, 1)
    del y
    with np.errstate(all="ignore"):
        numpy.array(found)
    lazynp.realize(lazynp.ones(3) + 1)  # what is put off is told by the next operation
    heard = told[:]
    told.clear()
    return heard

for name in ("var", "std", "sum"):
    theirs, ours = program(numpy, x, FUNCTIONS[name]), program(lazynp, a, FUNCTIONS[name])
    assert theirs == ours and bool(theirs) == (name != "sum"), (name, theirs, ours)
"""


@pytest.mark.parametrize("row", [0, 1500, -1])
@pytest.mark.parametrize("name", WAITING)
def test_no_error_of_a_row_is_missed(name: str, row: int) -> None:
    """Steps of later rows clear the processor's flags; whose errors are minded is said where the reduction is recorded."""
    command = [sys.executable, "-W", "always", "-c", MISSED, name, str(row)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["F", "D"])
def test_products_of_complex_numbers_begin_with_one(dtype: str, axis: int | None) -> None:
    for shape in [(1, 3), (3, 4), (2, 2), (5,)][: 3 if axis else 4]:
        for x in (numpy.full(shape, complex(1.0, -0.0), dtype), numpy.full(shape, complex(-0.0, -1.0), dtype)):
            wanted = numpy.prod(x, axis=axis)
            for _ in range(3):  # the first call is compared with NumPy's
                assert numpy.asarray(lazynp.prod(lazynp.array(x), axis=axis)).tobytes() == wanted.tobytes()
                assert numpy.asarray(lazynp.array(x).prod(axis=axis)).tobytes() == wanted.tobytes()
