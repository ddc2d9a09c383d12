"""Comparing lazynp with NumPy, call by call.

In: a function of the namespace (``lambda np: np.exp(x)``).  Out: an assertion error that shows both answers.  Promise: dtype,
shape, kind of result (array or scalar), values and exception types are compared; values exactly unless a number of ulps is
allowed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.scalars import is_scalar

FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 7.25, float("inf"), float("-inf"), float("nan"), 60000.0, 1e-7]


def values(dtype: str) -> numpy.ndarray[Any, Any]:
    """Special and ordinary values of a dtype, one dimension."""
    kind = numpy.dtype(dtype).kind
    if kind == "b":
        return numpy.array([False, True, True, False], dtype)
    if kind in "iu":
        limits = numpy.iinfo(dtype)
        return numpy.array([0, 1, 2, 3, 5, 7, 100, limits.min, limits.max, limits.max - 1, limits.min + 1], dtype)
    real = numpy.array(SPECIAL, "float64").astype("float16" if dtype == "float16" else "float64")
    if kind == "f":
        return real.astype(dtype)
    finite = numpy.array([0.0, 1.0, -1.0, 0.5, 2.5, -3.0])
    return (finite[:, None] + 1j * finite[None, :]).ravel().astype(dtype)


def outcome(call: Callable[[Any], Any], module: Any) -> Any:
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return plain(call(module))
        except Exception as error:
            return error


def plain(result: Any) -> Any:
    """A result with its arrays and scalars as NumPy's; the kind of what it was is kept beside it."""
    if type(result) is lazynp.ndarray:
        return "array", numpy.array(result)
    if type(result) is numpy.ndarray:
        return "array", result
    if is_scalar(result):
        return "scalar", result.concrete("test")
    if issubclass(type(result), numpy.generic):
        return "scalar", result
    if isinstance(result, (tuple, list)):
        return type(result).__name__, [plain(item) for item in result]
    return "object", result


def ordered_bits(x: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    bits = x.view(f"int{8 * x.dtype.itemsize}").astype(object)
    low = numpy.iinfo(f"int{8 * x.dtype.itemsize}").min
    return numpy.where(bits < 0, low - bits, bits)


def same(got: numpy.ndarray[Any, Any], want: numpy.ndarray[Any, Any], ulps: int) -> str | None:
    if got.dtype != want.dtype:
        return f"dtype {got.dtype} instead of {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if got.dtype.kind != "O" and got.tobytes() == want.tobytes():
        return None  # nearly always, and far cheaper than what tells how close they are
    got, want = numpy.atleast_1d(got), numpy.atleast_1d(want)
    if got.dtype.kind == "c":
        return same(got.real.copy(), want.real.copy(), ulps) or same(got.imag.copy(), want.imag.copy(), ulps)
    if got.dtype.kind != "f":
        return None if numpy.array_equal(got, want) else f"{got!r} instead of {want!r}"
    if not numpy.array_equal(numpy.isnan(got), numpy.isnan(want)):
        return f"{got!r} instead of {want!r}"
    got, want = numpy.nan_to_num(got, nan=0.0), numpy.nan_to_num(want, nan=0.0)
    distance = numpy.abs(ordered_bits(got) - ordered_bits(want)) if got.size else numpy.zeros(1)
    if ulps == 0:
        distance = numpy.where(got == want, numpy.where(numpy.signbit(got) == numpy.signbit(want), 0, 1), distance)
    return None if (distance <= ulps).all() else f"{got!r} instead of {want!r}"


def difference(got: Any, want: Any, ulps: int) -> str | None:
    if isinstance(want, Exception) or isinstance(got, Exception):
        if type(got) is type(want):
            return None
        # An exception of a more special class is as good: NumPy's AxisError is a ValueError and an IndexError.
        return f"{got!r} instead of {want!r}"
    if got[0] != want[0]:
        return f"{got[0]} {got[1]!r} instead of {want[0]} {want[1]!r}"
    if got[0] in ("array", "scalar"):
        return same(numpy.asarray(got[1]), numpy.asarray(want[1]), ulps)
    if got[0] == "object":
        return None if type(got[1]) is type(want[1]) and (got[1] == want[1] or got[1] != got[1]) else f"{got[1]!r} instead of {want[1]!r}"
    if len(got[1]) != len(want[1]):
        return f"{len(got[1])} results instead of {len(want[1])}"
    for one, other in zip(got[1], want[1], strict=True):
        found = difference(one, other, ulps)
        if found:
            return found
    return None


def check(call: Callable[[Any], Any], ulps: int = 0, note: str = "", raises: bool | None = None) -> None:
    """Assert that ``call(lazynp)`` and ``call(numpy)`` come to the same, and that NumPy raises or does not where that is said."""
    want = outcome(call, numpy)
    assert raises is None or raises == isinstance(want, Exception), f"{note}: NumPy gives {want!r}"
    got = outcome(call, lazynp)
    found = difference(got, want, ulps)
    assert found is None, f"{note}: {found}"


def expression(text: str, ulps: int = 0, raises: bool | None = None, **names: Any) -> None:
    """``check`` of an expression in ``np``; NumPy arrays among the names become arrays of the module under test."""

    def call(module: Any) -> Any:
        local = {name: module.array(value) if isinstance(value, numpy.ndarray) else value for name, value in names.items()}
        return eval(text, {"np": module, **local})

    check(call, ulps, text, raises)


def table(operands: dict[str, Any], cases: str, ulps: int = 0) -> Callable[[str], None]:
    """Return the test of a table: a case is a line with one call, which NumPy answers, or with ``!`` before it one that NumPy refuses.

    Parameters
    ----------
    operands : dict
        What the names in the calls are; arrays become arrays of the module under test.
    cases : str
        The lines; those that begin with ``#`` are headings.
    ulps : int
        How far floating-point results may be from NumPy's.
    """

    @pytest.mark.parametrize("case", [line for line in map(str.strip, cases.splitlines()) if line and line[0] != "#"])
    def test(case: str) -> None:
        expression(case.removeprefix("! "), ulps, case.startswith("! "), **operands)

    return test
