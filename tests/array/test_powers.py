"""Whole powers of signed floats at hand: NumPy's bits, flags and warnings."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.values import config

EXPONENTS = (-17, -16, -7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 16, 17, 0.5, -1.5, 2.5, 3.0, -4.0, numpy.nan, numpy.inf)
SPECIAL = (0.0, -0.0, 1.0, -1.0, -2.0, -0.5, 3.0, -numpy.inf, numpy.inf, numpy.nan, -numpy.nan, -1e300, 1e300, -1e-300, 5e-324, -5e-324)


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=1 << 16):
        yield


def values(kind: str, n: int, dtype: str) -> numpy.ndarray:
    rng = numpy.random.default_rng(n)
    found = rng.standard_normal(n)
    if kind == "scales":
        found *= 10.0 ** rng.uniform(-40, 40, n)
    elif kind == "whole":
        found = rng.integers(-9, 10, n).astype(float)
    elif kind == "special":
        found = numpy.resize(SPECIAL, n)
    elif kind == "one negative":
        found = abs(found)
        found[n // 2 : n // 2 + 1] *= -1
    with numpy.errstate(all="ignore"):
        return found.astype(dtype)


def outcome(xp: Any, x: Any, call: str, e: Any) -> tuple[Any, ...]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = eval(call, {"np": xp, "x": x, "e": e})
    said = [(str(w.message), w.category) for w in told]
    array = numpy.asarray(found)
    return array.dtype, array.shape, numpy.where(array != array, 0, array).tobytes(), (array != array).tobytes(), said


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("kind", ["normal", "scales", "whole", "special", "one negative"])
def test_powers(kind: str, dtype: str) -> None:
    sizes = (1, 7, 255, 256, 257, 1000, 5000)
    calls = ("x ** e", "np.power(x, e)", "x[::2] ** e", "x[::-1] ** e", "np.power(x, e, out=x.copy())", "np.power(x, x.dtype.type(e))")
    for n, call, e in itertools.product(sizes, calls, EXPONENTS):
        theirs = values(kind, n, dtype)
        ours = lazynp.asarray(theirs, copy=True)
        assert outcome(lazynp, ours, call, e) == outcome(numpy, theirs, call, e), (n, call, e)


def test_in_place() -> None:
    for e, n in itertools.product((2, 3, 3.0, -2, 5), (300, 3000, 30000)):
        theirs = values("normal", n, "f8")
        ours = lazynp.asarray(theirs, copy=True)
        theirs **= e
        ours **= e
        assert numpy.asarray(ours).tobytes() == theirs.tobytes(), (e, n)


@pytest.mark.slow
def test_millions() -> None:
    """So many that some lie next to the middle between two floats."""
    for dtype, e in itertools.product(("f8", "f4"), (-3, -1, 2, 3, 4, 7, 13)):
        for seed in range(8):
            rng = numpy.random.default_rng(seed)
            theirs = (-abs(rng.standard_normal(60_000)) * 2.0 ** rng.uniform(-6, 6, 60_000)).astype(dtype)
            with config.override(tape_limit=1 << 18):  # so that as many are NumPy's: kernels compute more than a quarter
                found = numpy.asarray(numpy.power(lazynp.asarray(theirs), e))
            assert found.tobytes() == numpy.power(theirs, e).tobytes(), (dtype, e, seed)


@pytest.mark.parametrize("e", [2, 0.5, -1, 3, 2.5])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_powers_of_what_waits_are_steps(dtype: str, e: float) -> None:
    for n in (5, 700):
        theirs = abs(values("normal", n, dtype)) + 1
        ours = lazynp.asarray(theirs.copy()) * 1
        lazynp.realize(ours)
        before = sum(core.chain_counts()[:2])
        found = (ours + 1) ** e * 2
        lazynp.realize(found)
        assert sum(core.chain_counts()[:2]) == before + 1
        expected = (theirs + 1) ** e * 2
        assert numpy.asarray(found).dtype == expected.dtype
        assert numpy.asarray(found).tobytes() == expected.tobytes()
