"""Counting, interpolation and sets on a GPU: NumPy's bits, and nothing of it on the processor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from tests.cuda.comparing import check
from tests.cuda.host import machine

RNG = numpy.random.default_rng(5)
DATA = RNG.standard_normal(300) * 10
HOLES = numpy.where(numpy.arange(300) % 7 == 0, numpy.nan, DATA)
HOLES[1::50] = numpy.inf
POINTS = RNG.standard_normal((200, 3))
CHARS = "?bBlfde"


@pytest.fixture
def gpu() -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


def data(char: str) -> Any:
    return (abs(DATA) if char == "B" else DATA).astype(char)


@pytest.mark.parametrize("char", CHARS)
def test_histograms(char: str, gpu: Any) -> None:
    values = data(char)
    for bins in (1, 10, 37, [-3, 0, 1, 1, 5.5], [-2, 1, 4]):
        for limits in (None, (-3, 4), (2, 2)):

            def program(m: Any, bins: Any = bins, limits: Any = limits) -> Any:
                return m.histogram(m.asarray(values), bins if isinstance(bins, int) else m.asarray(bins), limits)

            check((bins, limits), program, set())
    weights = DATA.astype("f") if char == "e" else DATA
    check("weights", lambda m: m.histogram(m.asarray(values), 10, weights=m.asarray(weights)), set())
    check("density", lambda m: m.histogram(m.asarray(values), 10, density=True), set())
    check("density of weights", lambda m: m.histogram(m.asarray(values), 70, density=True, weights=m.asarray(abs(weights))), set())
    check("edges", lambda m: m.histogram_bin_edges(m.asarray(values), 10), set())


def test_histograms_of_what_numpy_refuses(gpu: Any) -> None:
    holes = HOLES.copy()
    check("nan", lambda m: m.histogram(m.asarray(holes), 10))
    check("nan, limits", lambda m: m.histogram(m.asarray(holes), 10, (-1, 1)), set())
    check("nan, edges", lambda m: m.histogram(m.asarray(holes), m.asarray([-1, 0, 1.0])), set())
    check("edges that decrease", lambda m: m.histogram(m.asarray(DATA), m.asarray([1, 0.0])))
    check("limits that decrease", lambda m: m.histogram(m.asarray(DATA), 4, (1, 0)))
    check("no bins", lambda m: m.histogram(m.asarray(DATA), 0))
    check("nothing to divide", lambda m: m.histogram(m.asarray([1.0, 2]), bins=[5, 6, 7], density=True))
    check("complex weights", lambda m: m.histogram(m.asarray(DATA), 4, weights=m.asarray(DATA * 1j)))
    check("empty", lambda m: m.histogram(m.asarray([]), 4))


def test_histograms_of_several_blocks(gpu: Any) -> None:
    values, weights = RNG.standard_normal(150_000), RNG.standard_normal(150_000)
    for char in ("d", "f", "i"):
        check(char, lambda m, char=char: m.histogram(m.asarray(values), 200, weights=m.asarray(weights.astype(char))), set())
    check("counts", lambda m: m.histogram(m.asarray(values), 200), set())


def test_histograms_of_several_dimensions(gpu: Any) -> None:
    check("equal", lambda m: m.histogramdd(m.asarray(POINTS), 5), set())
    check("limits", lambda m: m.histogramdd(m.asarray(POINTS), (5, 4, 3), ((-1, 1), None, (-1, 2))), set())
    weights = POINTS[:, 0].copy()
    check("edges", lambda m: m.histogramdd(m.asarray(POINTS), (5, 4, m.asarray([-1, 0, 1, 1.0])), weights=m.asarray(weights)), set())
    check("density", lambda m: m.histogramdd(m.asarray(POINTS), 5, density=True), set())
    check("density of weights", lambda m: m.histogramdd(m.asarray(POINTS), 5, density=True, weights=m.asarray(weights**2)), set())
    check("plane", lambda m: m.histogram2d(m.asarray(weights), m.asarray(POINTS[:, 1].copy()), bins=(5, 7)), set())
    check("refused", lambda m: m.histogramdd(m.asarray(POINTS), (5, 4, m.asarray([1.0, 0]))))


@pytest.mark.parametrize("char", CHARS)
def test_bins_and_sets(char: str, gpu: Any) -> None:
    values = data(char)
    square = values.reshape(15, 20)
    host = {"sort", "stable_argsort", "searchsorted"} if char == "e" else set()
    check("digitize", lambda m: m.digitize(m.asarray(values), m.asarray([0.0, 1, 5])), host)
    check("digitize, down", lambda m: m.digitize(m.asarray(values), m.asarray([5, 1, -1]), right=True), host)
    check("digitize, neither", lambda m: m.digitize(m.asarray(values), m.asarray([5, 1, 8])))
    check("digitize, complex", lambda m: m.digitize(m.asarray(values), m.asarray([1, 2, 4]) + 1j))
    check("isin", lambda m: m.isin(m.asarray(square), m.asarray(values[:20].astype("d"))), host)
    check("isin, not", lambda m: m.isin(m.asarray(values), m.asarray(values[:20]), invert=True), host)
    for options in ({"return_index": True}, {"return_inverse": True}, {"return_counts": True}, {}):
        check(options, lambda m, options=options: m.unique(m.asarray(square), **options), host)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        check(name, lambda m, name=name: list(getattr(m, name)(m.asarray(square))), host)
    for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d"):
        check(name, lambda m, name=name: getattr(m, name)(m.asarray(values), m.asarray(values[::3] + values[0])), host)
    check("lexsort", lambda m: m.lexsort((m.asarray(values), m.asarray(values[::-1].astype("b") // 4))), host)


def test_sets_of_numbers_that_are_none(gpu: Any) -> None:
    for options in ({}, {"return_inverse": True}, {"return_index": True, "return_counts": True}, {"equal_nan": False}):
        check(options, lambda m, options=options: m.unique(m.asarray(HOLES), **options), set())
    check("isin", lambda m: m.isin(m.asarray(HOLES), m.asarray(HOLES[:9])), set())
    large = numpy.array([0, 2**64 - 1, 2**64 - 2], "Q")
    check("isin, large", lambda m: m.isin(m.asarray(large), m.asarray([-(2**62), 2**62, *range(20)])))
    check("union1d", lambda m: m.union1d(m.asarray(HOLES), m.asarray(HOLES[:9])), set())
    check("digitize", lambda m: m.digitize(m.asarray(HOLES), m.asarray(numpy.sort(DATA[:9]))), set())
    check("empty", lambda m: m.unique(m.asarray([]), return_inverse=True))


def test_different_rows(gpu: Any) -> None:
    rows = RNG.integers(0, 3, (60, 3))
    for char in "ldb?":
        for options in ({}, {"return_inverse": True}, {"return_index": True, "return_counts": True}):
            check((char, options), lambda m, char=char, options=options: m.unique(m.asarray(rows.astype(char)), axis=0, **options), set())
    check("last axis", lambda m: m.unique(m.asarray(rows.T.reshape(3, 2, 30)), axis=-1, return_inverse=True), set())
    check("no such axis", lambda m: m.unique(m.asarray(rows), axis=5))
    check("along the first axis", lambda m: m.lexsort(m.asarray(rows.T.reshape(3, 6, 10)), axis=0), set())


def test_interpolation(gpu: Any) -> None:
    x = numpy.sort(RNG.standard_normal(20))
    y = RNG.standard_normal(20)
    at = numpy.concatenate([RNG.standard_normal(100), x, [numpy.nan, numpy.inf, -numpy.inf]]).reshape(3, 41)
    wild = y.copy()
    wild[[3, 4, 5, 12]], wild[9], wild[1] = [numpy.inf, numpy.inf, numpy.inf, -numpy.inf], numpy.nan, wild[0]
    ends, twice = x.copy(), x.copy()
    ends[0], ends[-1], twice[3:6] = -numpy.inf, numpy.inf, twice[3]
    both = wild.astype(complex)
    both.imag = wild[::-1]
    for heights in (y, wild, y * 1j, both):
        for places in (x, ends, twice):
            check("lines", lambda m, p=places, h=heights: m.interp(m.asarray(at), m.asarray(p), m.asarray(h)), set())
    check("sides", lambda m: m.interp(m.asarray(at), m.asarray(x), m.asarray(y), left=-1, right=numpy.nan), set())
    check("complex sides", lambda m: m.interp(m.asarray(at), m.asarray(x), m.asarray(y * 1j), right=3 + 4j), set())
    check("period", lambda m: m.interp(m.asarray(at), m.asarray(x), m.asarray(y), period=1.5), set())
    check("one point", lambda m: m.interp(m.asarray(at), m.asarray(x[:1]), m.asarray(y[:1]), left=3), set())
    check("integers", lambda m: m.interp(m.arange(9), m.asarray([0, 4, 9]), m.asarray([1, 0, 3])), set())
    check("a number", lambda m: m.interp(0.3, m.asarray(x), m.asarray(y)), set())
