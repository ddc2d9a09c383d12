"""Operators and functions with lists and numbers beside arrays at hand, and what ``array`` and its kin make: as NumPy does it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

OTHERS = (
    "[1, 2, 3]", "(1, 2, 3)", "[1.5, 2, True]", "[[1], [2]]", "[]", "()", "[1, [2, 3]]", "[1, 2]", "['a', 'b', 'c']", "[None, 1, 2]",
    "[x[0], 2, x[1]]", "[x, x]", "(x[0], [1, 2])", "[1j, 2, 3]", "[nan, -0.0, inf]", "[300, 1, 2]", "[[[1, 2, 3]]]",
    "[np.float32(1.5), 2, 3]", "range(3)", "[True, False, True]", "3", "2.5", "True", "[-1, 2, 3]",
)  # fmt: skip
ARRAYS = (
    "np.array([1.5, -2.0, 0.0])", "np.array([3, 0, 7], dtype='int8')", "np.array([True, False, True])",
    "np.array([[1, 2, 3], [4, 5, 6]])",
)  # fmt: skip
OPERATIONS = (
    "x + o", "o - x", "x * o", "x / o", "x // o", "o % x", "x ** o", "x == o", "o != x", "x < o", "x >= o", "x & o", "x @ o",
    "divmod(x, o)", "x.__iadd__(o)", "x.__imul__(o)", "np.add(x, o)", "np.maximum(o, x)", "np.add(o, o)", "np.exp(o)", "np.less(o, o)",
    "np.logaddexp(x, o)", "np.sum(o)", "np.mean(o, axis=0)", "np.shape(o)", "np.ndim(o)", "np.size(o)", "np.iscomplexobj(o)",
    "np.result_type(x, 1)", "np.dot(x, o)", "np.where(o, x, x)", "np.atleast_2d(o)", "np.array_equal(x, o)", "np.concatenate((x, o))",
    "np.diff(o)", "np.cumsum(o)",
)  # fmt: skip
LARGE = (
    "x + [2**70, 1, 2]", "x == [2**70, 1, 2]", "[1, 2**64, 2] > x", "np.add(x, [2**63, 1, 2])", "np.sum([2**64, 1])",
    "x * [-(2**63), 1, 2]",
)  # fmt: skip
MAKERS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
OPTIONS = (
    "", "float", "'f4'", "dtype=float", "dtype=np.float64", "dtype='i2'", "copy=True", "copy=False", "copy=None", "order='F'",
    "order='C'", "ndmin=2", "ndmin=1", "subok=True", "dtype=object", "dtype='U3'", "like=None", "float, copy=False",
    "dtype=complex, order='F'", "bogus=1",
)  # fmt: skip
GIVEN = (
    "x", "y", "y.T", "y[:, 1:]", "y[1]", "z", "r", "2.5", "3", "[1, 2]", "[[1, 2], [3, 4.5]]", "[x, x]", "[x[0], 2]", "[]", "range(4)",
    "'text'", "None", "(x, [1, 2, 3])", "[1, [2]]", "x[:0]", "x[0]", "[[[1.0, 2], [3, 4]], [[5, 6], [7, 8.5]]]", "[[1, 2], [3]]",
    "[[1.5], 2]", "[True, 1]", "[1, True]", "[False, True]", "[[True], [False]]", "[True, 0.5]", "[2**63]", "[2**62, 1.5]",
    "[2**53 + 1, 0.5]", "[1.5, 2**70]", "[-2**63, 5]", "[[[[[1]]]]]", "[[[[1.0]]]]", "[1, np.int64(2)]", "[np.int32(1), 2]",
    "[np.float64(1), np.int64(2)]", "[1.0, np.float32(2)]", "[1.0, 1j]", "[1, 'a']", "[1, None]", "[[], []]", "[[1, 2], (3, 4)]",
    "[1.0, x[0]]", "[[x[0]], [1]]", "[nan, -0.0, inf]", "[(1, 2.5), [3, 4]]",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=65536):
        yield


def names(np: Any) -> dict[str, Any]:
    y = np.array([[1.0, -2.0, 3.5], [0.0, numpy.nan, 7.0]])
    r = np.array([1, 2, 3])
    r.flags.writeable = False
    return {"np": np, "x": np.array([1.5, 2.5, -3.5]), "y": y, "z": np.array(4.0), "r": r, "nan": numpy.nan, "inf": numpy.inf}


def shown(value: Any) -> Any:
    """What must be the same: types, dtypes, shapes, strides, flags, values with the sign of zeros."""
    if isinstance(value, tuple):
        return tuple([shown(item) for item in value])
    if isinstance(value, (numpy.ndarray, lazynp.ndarray)):
        memory = numpy.asarray(value)
        flags = value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable, value.flags.owndata
        return value.dtype, value.shape, value.strides if memory.size > 1 else None, flags, str(memory.tolist())
    return type(value).__name__, str(value)


def outcome(run: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = run(*arguments)
        except Exception as error:
            return type(error), str(error)
    return found, sorted((w.category.__name__, str(w.message)) for w in caught)


def computed(np: Any, array: str, other: str, operation: str) -> Any:
    known: dict[str, Any] = {"np": np, "nan": numpy.nan, "inf": numpy.inf}
    known["x"] = eval(array, known)
    known["o"] = eval(other, known)
    return shown(eval(operation, known)), shown(known["x"])


def made(np: Any, maker: str, given: str, options: str) -> Any:
    known = names(np)
    value = eval(given, known)
    found = eval(f"np.{maker}(value, {options})", {**known, "value": value})
    shares = isinstance(value, np.ndarray) and found.dtype != object and numpy.shares_memory(found, value)
    return shown(found), found is value, shares, isinstance(found, np.ndarray)


@pytest.mark.parametrize("array", ARRAYS)
def test_operators_and_functions_take_lists_and_numbers_as_numpy_does(array: str) -> None:
    for operation, other in [*itertools.product(OPERATIONS, OTHERS), *itertools.product(LARGE, ["0"])]:
        expected, got = [outcome(computed, np, array, other, operation) for np in (numpy, lazynp)]
        assert got == expected, (operation, other)


@pytest.mark.parametrize("maker", MAKERS)
def test_arrays_are_made_as_numpy_makes_them(maker: str) -> None:
    for given, options in itertools.product(GIVEN, OPTIONS):
        expected, got = [outcome(made, np, maker, given, options) for np in (numpy, lazynp)]
        assert got == expected, (maker, given, options)
