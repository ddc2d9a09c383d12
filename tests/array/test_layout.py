"""Memory order of results: strides, and which results are views, as NumPy has them for inputs that are not in C order."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

AXES = ["0", "1", "-1", "(0, 1)", "()"]
REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "ptp", "count_nonzero", "nansum", "nanmax", "nanmean"]
ALONG = {
    "sort": "np.sort(a, axis={})",
    "argsort": "np.argsort(a, axis={}, kind='stable')",
    "partition": "np.partition(a, 1, axis={})",
    "argpartition": "np.argpartition(a, 1, axis={})",
    "cumsum": "np.cumsum(a, axis={})",
    "cumprod": "np.cumprod(a, axis={})",
    "accumulate": "np.maximum.accumulate(a, axis={})",
    "argmax": "np.argmax(a, axis={})",
    "stack": "np.stack([a, a], axis={})",
    "stack with a C-ordered array": "np.stack([a, np.ascontiguousarray(a)], axis={})",
    "concatenate": "np.concatenate([a, a], axis={})",
    "concatenate different orders": "np.concatenate([a, np.ascontiguousarray(a)], axis={})",
    "append": "np.append(a, a, axis={})",
    "roll": "np.roll(a, 1, axis={})",
    "repeat": "np.repeat(a, 2, axis={})",
    "take": "np.take(a, [0, 1], axis={})",
    "diff": "np.diff(a, axis={})",
}
WHOLE = {
    **{f"ravel {order}": f"a.ravel({order!r})" for order in "CFAK"},
    "imag": "a.imag",
    "flatten": "a.flatten('K')",
    "reshape": "a.reshape(-1)",
    "pad": "np.pad(a, 1)",
    "pad edge": "np.pad(a, 1, mode='edge')",
    "tile": "np.tile(a, 2)",
    "tile once": "np.tile(a, 1)",
    "roll": "np.roll(a, 1)",
    "hstack": "np.hstack([a, a])",
    "argwhere": "np.argwhere(a)",
}


def arrays(np: Any) -> Iterator[tuple[str, Any]]:
    cube = np.asarray(numpy.arange(24.0).reshape(4, 3, 2)[::-1].copy())
    vector = np.asarray(numpy.arange(6.0))
    yield "C order", cube
    yield "Fortran order", cube.T
    yield "permuted", np.transpose(cube, (1, 2, 0))
    yield "permuted the other way", np.transpose(cube, (2, 0, 1))
    yield "reversed", cube[::-1, :, ::-1]
    yield "Fortran order, reversed", cube.T[::-1]
    yield "every second", cube.T[:, ::2]
    yield "matrix", np.asarray(numpy.arange(6.0).reshape(2, 3)).T
    yield "axis of length one", vector.reshape(2, 1, 3).T
    yield "reversed vector", vector[::-1]
    yield "every second of a vector", vector[::2]


def attempt(expression: str, np: Any, a: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(expression, {"np": np, "a": a})
    except (ValueError, TypeError, IndexError) as error:  # an axis that is not there, axes where one is taken
        return type(error)


def compare(expression: str) -> None:
    for (name, theirs), (_, ours) in zip(arrays(numpy), arrays(lazynp), strict=True):
        expected, got = attempt(expression, numpy, theirs), attempt(expression, lazynp, ours)
        if isinstance(expected, type):
            assert got is expected, name
            continue
        assert got.shape == expected.shape
        if not isinstance(expected, numpy.ndarray) or expected.size < 2:
            continue
        # NumPy itself leaves the stride of an axis of length 1 to chance.
        steps = [(a, b) for a, b, n in zip(got.strides, expected.strides, expected.shape, strict=True) if n > 1]
        assert all(a == b for a, b in steps), f"{name}: strides {got.strides}, expected {expected.strides}"
        assert lazynp.shares_memory(got, ours) == numpy.shares_memory(expected, theirs), name
        numpy.testing.assert_allclose(numpy.asarray(got), expected, err_msg=name)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", AXES)
def test_reductions(name: str, axis: str) -> None:
    compare(f"np.{name}(a, axis={axis})")
    compare(f"np.{name}(a, axis={axis}, keepdims=True)")


KEPT = ["sum", "min", "any", "mean", "std", "nanmean", "nanstd", "median", "nanmedian", "count_nonzero"]
MASKED = {"sum", "min", "any", "mean", "std", "nanmean", "nanstd"}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("below", [0, 40])
@pytest.mark.parametrize("written", [False, True])
def test_kept_axes_and_arrays_without_elements(name: str, below: int, written: bool) -> None:
    """The strides of a reduction's axes of length one, and of the results of arrays that have no elements, are NumPy's."""
    keys = ["[...]", "[:0]", "[:, 1:1]", "[..., :0]", "[1:, ::-1]"]
    options = ["", ", keepdims=True"] + [f", keepdims={kept}, initial=5.0" for kept in (False, True) if name in ("sum", "min")]
    if name in MASKED:
        options += [f"{option}, where=a > 1" + ", initial=5.0" * (name == "min" and "initial" not in option) for option in options]
    with config.override(tape_limit=below):
        for key in keys:
            for (what, theirs), (_, ours) in zip(arrays(numpy), arrays(lazynp), strict=True):
                if theirs.ndim < 2 or 1 in theirs.shape:  # NumPy leaves the stride of such an axis to chance where it is not reduced
                    continue
                a, b = eval(f"a{key}", {"a": theirs + 0}), eval(f"a{key}", {"a": ours + 0})
                if written:
                    a += 1
                    b += 1
                for axis in AXES[:4]:
                    for option in options:
                        expression = f"np.{name}(a, axis={axis}{option})"
                        expected, got = attempt(expression, numpy, a), attempt(expression, lazynp, b)
                        if isinstance(expected, type):
                            assert got is expected, (what, key, expression)
                        else:
                            assert (got.shape, got.strides) == (expected.shape, expected.strides), (what, key, expression)


@pytest.mark.parametrize("name", ALONG)
def test_along_an_axis(name: str) -> None:
    for axis in ("0", "1", "-1"):
        compare(ALONG[name].format(axis))


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_array(name: str) -> None:
    compare(WHOLE[name])


def test_what_ravel_copies_is_not_written_through() -> None:
    x = lazynp.arange(6.0)
    x[::2].ravel()[0] = 9
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    x[1:4].ravel()[0] = 9
    assert x.tolist() == [0, 9, 2, 3, 4, 5]


@pytest.mark.parametrize("key", ["i", "i, 1:", ":, i", "..., i", "i, None", "i, i", "i, ::-1, i", "i, i, i", "..., i, i, i"])
def test_a_zero_dimensional_index_array_copies(key: str) -> None:
    theirs = numpy.arange(24).reshape(2, 3, 4)
    ours = lazynp.asarray(theirs)
    index = numpy.array(1)
    for at in (index, lazynp.asarray(index)):
        for turn in (lambda x: x, lambda x: x.T[1:3], lambda x: x[:, ::-1]):
            a, b = turn(ours), turn(theirs)
            got, expected = eval(f"a[{key}]", {"a": a, "i": at}), eval(f"b[{key}]", {"b": b, "i": index})
            assert isinstance(got, lazynp.ndarray) == isinstance(expected, numpy.ndarray)
            assert got.strides == expected.strides
            numpy.testing.assert_array_equal(numpy.asarray(got), expected)
            if got.ndim:
                got[...] = -1
    numpy.testing.assert_array_equal(numpy.asarray(ours), theirs)
