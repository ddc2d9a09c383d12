"""Functions whose layout follows from the signature of a call wait.

Values, dtypes, layouts and exceptions are NumPy's, for every way an operand lies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core, tapes
from lazynp.values import config
from tests.array import chained


@pytest.fixture(autouse=True)
def _usual_limit() -> Iterator[None]:
    core.layouts(tapes.layout)  # whatever lengths other tests had
    with config.override(tape_limit=786_432):
        yield


def grid(np: Any, rows: int = 4, columns: int = 5) -> Any:
    return np.array(numpy.random.default_rng(0).standard_normal((rows, columns)))


# Of a matrix, in the ways that it may lie.
OPERANDS: Final[dict[str, Callable[[Any], Any]]] = {
    "at rest": lambda np: grid(np),
    "waits": lambda np: grid(np) * 2,
    "a view that waits": lambda np: (grid(np, 6) * 2)[1:5],
    "transposed": lambda np: grid(np, 5, 4).T,
    "transposed, and waits": lambda np: (grid(np, 5, 4) * 2).T,
    "backwards": lambda np: grid(np)[::-1, ::-1],
    "with gaps": lambda np: grid(np, 8, 10)[::2, ::2],
    "float32": lambda np: grid(np).astype("f4"),
    "int16": lambda np: (grid(np) * 9).astype("i2"),
    "truths": lambda np: grid(np) > 0,
    "complex": lambda np: grid(np) + 1j,
    "many": lambda np: grid(np, 600, 500),
}

CALLS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "tile": lambda np, x: np.tile(x, 2),
    "tile a list": lambda np, x: np.tile(x, [2, 3]),
    "repeat": lambda np, x: np.repeat(x, 2),
    "repeat an axis": lambda np, x: x.repeat(3, axis=1),
    "roll": lambda np, x: np.roll(x, 1),
    "roll an axis": lambda np, x: np.roll(x, -2, axis=0),
    "pad": lambda np, x: np.pad(x, 1),
    "pad the edge": lambda np, x: np.pad(x, ((1, 0), (2, 1)), mode="edge"),
    "tril": lambda np, x: np.tril(x),
    "triu": lambda np, x: np.triu(x, 1),
    "stack": lambda np, x: np.stack([x, x]),
    "stack an axis": lambda np, x: np.stack((x, x), axis=-1),
    "vstack": lambda np, x: np.vstack([x, x[:1]]),
    "hstack": lambda np, x: np.hstack([x, x]),
    "dstack": lambda np, x: np.dstack([x, x]),
    "column_stack": lambda np, x: np.column_stack([x[:, 0], x]),
    "concatenate": lambda np, x: np.concatenate([x, x], axis=1),
    "append": lambda np, x: np.append(x, x),
    "delete": lambda np, x: np.delete(x, 1, axis=0),
    "insert": lambda np, x: np.insert(x, 1, 7, axis=1),
    "median": lambda np, x: np.median(x, axis=0),
    "percentile": lambda np, x: np.percentile(x, 30, axis=1),
    "quantiles": lambda np, x: np.quantile(x, [0.2, 0.7], axis=0),
    "average": lambda np, x: np.average(x, axis=1),
    "ptp": lambda np, x: np.ptp(x, axis=0),
    "count_nonzero": lambda np, x: np.count_nonzero(x, axis=0),
    "nansum": lambda np, x: np.nansum(x, axis=1),
    "nan_to_num": lambda np, x: np.nan_to_num(x),
    "norm": lambda np, x: np.linalg.norm(x, axis=1),
    "sum": lambda np, x: x.sum(axis=0),
    "sum of two axes": lambda np, x: x.sum(axis=(0, 1), keepdims=True),
    "sum in single precision": lambda np, x: x.sum(axis=0, dtype="F"),
    "mean": lambda np, x: np.mean(x, axis=0, keepdims=True),
    "max": lambda np, x: x.max(axis=1),
    "argmax": lambda np, x: x.argmax(axis=1),
    "any": lambda np, x: x.any(axis=0),
    "cumsum": lambda np, x: np.cumsum(x, axis=1),
    "sort": lambda np, x: np.sort(x, axis=0),
    "stable sort": lambda np, x: np.sort(x, kind="stable"),
    "argsort": lambda np, x: np.sort(np.argsort(x, axis=0), axis=0),
    "diff": lambda np, x: np.diff(x, n=2, axis=1),
    "ediff1d": lambda np, x: np.ediff1d(x),
    "round": lambda np, x: np.round(x, decimals=1),
    "unwrap": lambda np, x: np.unwrap(x),
    "einsum": lambda np, x: np.einsum("ij,kj->ik", x, x),
    "tensordot": lambda np, x: np.tensordot(x, x.T, 1),
    "inner": lambda np, x: np.inner(x, x),
    "kron": lambda np, x: np.kron(x[:2, :2], x[:3, :2]),
    "outer": lambda np, x: np.outer(x[0], x[1]),
    "convolve": lambda np, x: np.convolve(x[0], x[1]),
    "correlate": lambda np, x: np.correlate(x[0], x[1], "same"),
    "interp": lambda np, x: np.interp(x[0].real, np.arange(3.0), np.arange(3.0) * 2),
    "searchsorted": lambda np, x: np.searchsorted(np.arange(-2.0, 3.0), x.real),
    "polyval": lambda np, x: np.polyval([1.0, 2.0, 3.0], x),
    "vander": lambda np, x: np.vander(x[0][:4]),
    "diag": lambda np, x: np.diag(x[0][:5], 1),
    "trapezoid": lambda np, x: np.trapezoid(x, axis=1),
    "gradient": lambda np, x: np.gradient(x[0]),
    "fft": lambda np, x: np.fft.fft(x),
    "rfft2": lambda np, x: np.fft.rfft2(x.real),
    "fftshift": lambda np, x: np.fft.fftshift(x),
    "add.reduce": lambda np, x: np.add.reduce(x, axis=1),
    "maximum.accumulate": lambda np, x: np.maximum.accumulate(x, axis=1),
    "subtract.outer": lambda np, x: np.subtract.outer(x[0], x[:, 0]),
    # elementwise, of operands that lie otherwise than their result
    "add": lambda np, x: x + 1,
    "add itself": lambda np, x: x * x,
    "from the other end": lambda np, x: x[::-1] - x,
    "negative": lambda np, x: -x[::-1] if x.dtype != bool else ~x[::-1],
    "compared": lambda np, x: x[:, ::-1] == x,
    # what is refused, at the call
    "a wrong axis": lambda np, x: np.median(x, axis=2),
    "a wrong length": lambda np, x: np.stack([x, x[0]]),
    "a wrong mode": lambda np, x: np.pad(x, 1, mode="nothing"),
    "wrong subscripts": lambda np, x: np.einsum("ij,jk", x, x),
}
WAITS_NOT: Final = ("a wrong", "wrong")


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, operand: str) -> None:
    call = CALLS[name]
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected: Any = call(numpy, OPERANDS[operand](numpy))
        except Exception as error:
            expected = error
    for _ in range(3):  # the second time the layout is known
        with numpy.errstate(all="ignore"):
            x = OPERANDS[operand](lazynp)
            if isinstance(expected, Exception):
                with pytest.raises(type(expected)):
                    call(lazynp, x)
                continue
            got = call(lazynp, x)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            numpy.testing.assert_array_equal(numpy.asarray(got), expected)
            assert (got.strides, got.flags.owndata or got.base is not None) == (expected.strides, True)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith(WAITS_NOT)])
def test_they_wait(name: str) -> None:
    for operand in ("at rest", "waits", "with gaps", "transposed"):
        x = OPERANDS[operand](lazynp)
        if name in ("interp", "searchsorted", "rfft2") and operand == "transposed":
            continue
        assert core.tape(CALLS[name](lazynp, x)) is not None, operand


def test_an_array_for_the_result_is_written_at_the_call() -> None:
    x, out = grid(lazynp), lazynp.zeros(5)
    assert lazynp.median(x, 0, out) is out
    assert lazynp.add.reduce(x, 0, None, out) is out
    numpy.testing.assert_array_equal(numpy.asarray(out), grid(numpy).sum(axis=0))


def test_operands_that_may_be_written_are_written_at_the_call() -> None:
    for call in (
        lambda np, x: np.median(x, 0, None, True),
        lambda np, x: np.median(x, axis=0, overwrite_input=True),
        lambda np, x: np.percentile(x, 50, 0, None, True),
        lambda np, x: np.nan_to_num(x, False),
        lambda np, x: np.nan_to_num(x, copy=False),
    ):
        ours, theirs = grid(lazynp, 7, 3), grid(numpy, 7, 3)
        ours[0, 0] = theirs[0, 0] = numpy.nan if "nan" in call.__code__.co_names[0] else 3
        found = call(lazynp, ours)
        assert core.tape(found) is None
        numpy.testing.assert_array_equal(numpy.asarray(found), call(numpy, theirs))
        numpy.testing.assert_array_equal(numpy.asarray(ours), theirs)


def test_views_of_operands_are_views() -> None:
    x = lazynp.arange(6)
    assert lazynp.einsum("i", x).base is x
    assert lazynp.diag(grid(lazynp)).base is not None


def test_ufuncs_of_a_program_are_called_once() -> None:
    heard: list[float] = []
    double = lazynp.frompyfunc(lambda x, y: heard.append(x) or x + y, 2, 1)
    double.outer(lazynp.arange(2.0), lazynp.arange(3.0))
    assert len(heard) == 6


def test_what_is_written_in_place_keeps_its_order() -> None:
    for waits in (False, True):
        for other in (grid, lambda np: np.asfortranarray(grid(np))):
            x, y = (np.asfortranarray(grid(np)) * 2 if waits else np.asfortranarray(grid(np)) for np in (lazynp, numpy))
            x *= other(lazynp) + 1
            y *= other(numpy) + 1
            assert x.strides == y.strides
            numpy.testing.assert_array_equal(numpy.asarray(x), y)


def test_errors_are_told_where_the_call_was() -> None:
    x = lazynp.array([[1e308, 1e308], [1.0, numpy.inf]])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        numpy.linalg.norm(numpy.asarray(x), axis=1)
        numpy.trapezoid(numpy.asarray(x), axis=1)
        expected = [str(w.message) for w in heard]
    assert expected
    with lazynp.errstate(all="warn"):
        y, z = lazynp.linalg.norm(x, axis=1), lazynp.trapezoid(x, axis=1)
    with chained.told() as ours:
        lazynp.realize(y, z)
    assert [str(w.message) for w in ours] == expected


def test_lengths_that_never_come_again_are_asked_for_a_few_times() -> None:
    asked = []

    def counting(*given: Any) -> Any:
        asked.append(given)
        return tapes.layout(*given)

    core.layouts(counting)
    try:
        for n in range(2, 1000):
            x = lazynp.arange(float(n))
            numpy.testing.assert_array_equal(numpy.asarray(lazynp.roll(x, 3)), numpy.roll(numpy.arange(float(n)), 3))
    finally:
        core.layouts(tapes.layout)
    assert len(asked) < 60
