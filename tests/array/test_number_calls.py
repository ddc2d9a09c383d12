"""Ufuncs of one or two numbers, NumPy's and Python's: NumPy's numbers, to the bit, with its errors."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

NUMBERS = (
    0.0, -0.0, 1.0, -2.5, 3, -7, 0, 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**70, 1e308, 5e-324, float("nan"), float("inf"),
    -float("inf"), True, 2j, numpy.float64(0.7), numpy.float64(-1e300), numpy.float64("nan"),
    numpy.int64(5), numpy.int64(-3), numpy.int64(2**62),
    numpy.int64(0), numpy.float32(1.5), numpy.int32(7), numpy.uint8(200), numpy.bool(True), numpy.complex128(1 + 2j), numpy.uint64(2**63),
)  # fmt: skip
UFUNCS = sorted(
    name
    for name, ufunc in vars(numpy).items()
    if isinstance(ufunc, numpy.ufunc) and ufunc.nin < 3 and ufunc.nout == 1 and ufunc.signature is None
)


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=1 << 16):
        yield


def outcome(ufunc: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = ufunc(*given)
            value = numpy.asarray(found)
            bits = repr(found) if value.dtype.hasobject else value.tobytes()  # of objects the bytes are places
            said = type(found).__name__, value.dtype, bits if found == found else "nan"
        except (TypeError, ValueError, OverflowError) as error:
            said = (type(error).__mro__,)
    return said, [(str(w.message), w.category) for w in told]


@pytest.mark.parametrize("name", UFUNCS)
def test_calls_with_numbers(name: str) -> None:
    theirs, ours = getattr(numpy, name), getattr(lazynp, name)
    for given in itertools.product(NUMBERS, repeat=theirs.nin):
        assert outcome(ours, given) == outcome(theirs, given), given


@pytest.mark.parametrize("name", UFUNCS)
def test_ordinary_numbers(name: str) -> None:
    theirs, ours = getattr(numpy, name), getattr(lazynp, name)
    rng = numpy.random.default_rng(1)
    for x, y in rng.uniform(-3, 3, (300, 2)):
        for given in ((x, y), (float(x), y), (int(x * 9), y), (numpy.int64(x * 9), int(y * 9)))[: 4 if theirs.nin == 2 else 3]:
            assert outcome(ours, given[: theirs.nin]) == outcome(theirs, given[: theirs.nin]), given


def test_exponents_that_numpy_takes_for_other_functions() -> None:
    """After so many calls that none is compared with NumPy's any more."""
    rng = numpy.random.default_rng(2)
    for x in (*rng.uniform(0.1, 9, 60), -0.0, -numpy.inf, numpy.inf, numpy.nan, -2.5):
        for y in (3.0, 2.0, -1.0, 0.5, 0.0, 1.0, 2):
            assert outcome(lazynp.power, (x, y)) == outcome(numpy.power, (x, y)), (x, y)
