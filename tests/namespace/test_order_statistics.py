# ruff: noqa: E501 - a case is one line of the table
"""Medians, quantiles and orders against NumPy, with no call answered by NumPy itself."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from tests.namespace.compare import COMPLEX, DTYPES, check, table

METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "linear",
    "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
]  # fmt: skip
RNG = numpy.random.default_rng(5)
QUANTILES = [0, 0.3, 0.5, [0, 0.1, 1], numpy.array([[0.25, 0.5], [0.75, 1.0]]), numpy.float32(0.4), [], numpy.array([0.2, 0.55], "f4")]
SHAPES = [(1,), (2,), (7,), (8,), (3, 4), (2, 5, 3), (1, 1), (4, 1)]


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    lazynp.set_fallback("error")
    yield
    lazynp.set_fallback("silent")


def data(dtype: str, shape: tuple[int, ...], nan: float = 0.0) -> numpy.ndarray:
    x = RNG.integers(-50, 50, shape) if numpy.dtype(dtype).kind != "u" else RNG.integers(0, 100, shape)
    x = x.astype(dtype)
    if numpy.dtype(dtype).kind in "fc":
        x = (x / 7).astype(dtype)
        x[RNG.random(shape) < nan] = numpy.nan
    return x


@pytest.mark.parametrize("dtype", [pytest.param(each, marks=() if each in ("bool", "uint8", "float64") else pytest.mark.slow) for each in DTYPES])
def test_median(dtype: str) -> None:
    for shape in SHAPES:
        for nan in (0.0, 0.3):
            x = data(dtype, shape, nan)
            for axis in [None, *range(-len(shape), len(shape)), (), tuple(range(len(shape))), (0, -1)]:
                for keepdims in (False, True):
                    check(lambda np, x=x, axis=axis, k=keepdims: np.median(np.array(x), axis=axis, keepdims=k), note=f"{shape} {axis}")
                    check(lambda np, x=x, axis=axis, k=keepdims: np.nanmedian(np.array(x), axis=axis, keepdims=k), note=f"nan {shape} {axis}")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_quantiles_by_every_method(method: str) -> None:
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "float64"):
        for shape, nan in [((1,), 0.0), ((8,), 0.0), ((7,), 0.3), ((3, 4), 0.3), ((2, 3, 2), 0.0)]:
            x = data(dtype, shape, nan)
            for axis in [0, -1, (0, -1)] if len(shape) > 1 else [None]:
                for q in QUANTILES:
                    note = f"{dtype} {shape} {axis} {q}"
                    # With NaN NumPy's dtype may be the data's although the quantile's is wider: values decide it there.
                    wide = type(q) not in (int, float) and x.dtype.kind == "f" and dtype != "float64"
                    if not wide or not numpy.isnan(x).any():
                        check(lambda np, x=x, axis=axis, q=q: np.quantile(np.array(x), q, axis=axis, method=method), note=note)
                    # With quantiles of two dimensions NumPy's nanquantile mixes the axes up.
                    if not wide and (numpy.ndim(q) < 2 or axis != (0, -1)):
                        check(lambda np, x=x, axis=axis, q=q: np.nanquantile(np.array(x), q, axis=axis, method=method), note="nan " + note)


NAMES = {
    "a": numpy.arange(24.0).reshape(2, 3, 4)[:, ::-1],
    "v": RNG.normal(size=11),
    "n": numpy.array([[1.0, numpy.nan, 3.0], [4.0, 5.0, 6.0], [numpy.nan] * 3]),
    "i": numpy.array([5, 1, 4, 2]),
    "w": numpy.array([1, 2, 0, 3.5]),
    "z": numpy.array([1 + 2j, 0 - 1j, 1 - 1j]),
    "e": numpy.zeros((0, 3)),
    "big": numpy.array([numpy.inf, -numpy.inf, 1.0, 2.0]),
}

test_cases = table(
    NAMES,
    """
    np.median(3)
    np.median(3.5)
    np.median([1, 2])
    np.median(5.0, keepdims=True)
    np.median(np.array(2.0), axis=())
    np.median(big)
    np.median(z)
    np.median(e)
    np.median(e, axis=1)
    np.median([])
    np.median(e.T, axis=0, keepdims=True)
    np.nanmedian(e)
    np.nanmedian(e, axis=1)
    np.median(e, axis=0)
    ! np.median(a, axis=5)
    ! np.median(a, axis=(0, 0))
    ! np.median(5, axis=0)
    np.median(a, axis=0, out=np.zeros((3, 4)))
    np.median(a, axis=1, out=np.zeros((2, 1, 4), 'f4'), keepdims=True)
    np.median(n, axis=0, out=np.ones(3))
    np.median(a, axis=0, out=np.zeros((3, 4), int))
    ! np.median(a, axis=0, out=np.zeros((4, 3)))
    np.median(a.T, axis=0).flags.f_contiguous
    np.median(a.T, axis=0)
    np.median(a * 1, overwrite_input=True)
    np.median(a * 2 + 1, axis=(0, 2))
    np.median(n, axis=1)
    np.median(n)
    np.nanmedian(n, axis=1)
    np.nanmedian(n)
    np.nanmedian([np.nan])
    np.nanmedian(np.nan)
    np.nanmedian(i)
    np.nanmedian(z)
    np.nanmedian(n, axis=0, out=np.zeros(3))
    np.nanmedian(n, axis=0, keepdims=True)
    np.nanmedian(a, axis=(0, 2))
    np.nanmedian(3)
    np.nanmedian(np.array([1e308, 1e308, np.nan]))
    np.percentile(v, 30)
    np.percentile(v, [10, 90])
    np.percentile(v, (25, 50, 75), method='hazen')
    np.percentile(v.astype('f4'), 30)
    np.percentile(v.astype('f4'), [30])
    np.percentile(v, np.arange(0, 101, 20))
    np.quantile(v, np.linspace(0, 1, 12))
    np.percentile(i, 50)
    np.percentile(i, [0, 100])
    np.nanpercentile(n, 50)
    np.nanpercentile(n, [20, 60], axis=1)
    ! np.percentile(v, 101)
    ! np.percentile(v, [-1, 3])
    ! np.quantile(v, 1.5)
    ! np.quantile(v, np.nan)
    ! np.quantile(v, 0.5, method='nonsense')
    ! np.quantile(z, 0.5)
    ! np.nanquantile(z, 0.5)
    ! np.quantile(i > 2, 0.5)
    ! np.quantile(v, 0.5, axis=1)
    ! np.quantile(v, np.zeros((1, 1, 1)))
    ! np.quantile([], 0.5)
    ! np.quantile(e, 0.5, axis=0)
    np.quantile(e, 0.5, axis=1)
    np.quantile(e, [0.5, 0.2], axis=1, keepdims=True)
    np.nanquantile(e, 0.5)
    np.nanquantile(e, 0.5, axis=1)
    ! np.quantile(v, 'x')
    np.quantile(a, 0.3, axis=0, out=np.zeros((3, 4)))
    np.quantile(a, [0.3, 0.4], axis=0, out=np.zeros((2, 3, 4), 'f4'))
    np.quantile(v, 0.4, out=np.zeros(()))
    np.quantile(v, 0.4, out=np.zeros(1))
    np.quantile(a, 0.3, axis=(0, 1), keepdims=True, out=np.zeros((1, 1, 4)))
    np.nanquantile(a, 0.3, axis=0, out=np.zeros((3, 4)))
    np.quantile(i, 0.5, method='lower', out=np.zeros((), int))
    ! np.quantile(a, 0.3, axis=0, out=np.zeros((3, 4), int))
    ! np.quantile(a, 0.3, axis=0, out=np.zeros((3, 2)))
    np.quantile(big, 0.5)
    np.quantile(big, [0.2, 0.9])
    np.quantile(big, 1)
    np.quantile(-big, 0.0)
    np.quantile(3, 0.5)
    np.quantile(3.0, [0.5])
    np.quantile(i, 0.5, weights=w, method='inverted_cdf')
    np.quantile(v[:4], [0.1, 0.6], weights=w, method='inverted_cdf')
    np.percentile(i, 50, weights=i, method='inverted_cdf')
    np.quantile(a, 0.5, axis=2, weights=w, method='inverted_cdf')
    np.quantile(a, [0.5, 0.1], axis=(1, 2), weights=np.ones((3, 4)), method='inverted_cdf', keepdims=True)
    np.quantile(a, 0.2, weights=a, method='inverted_cdf')
    np.nanquantile(n[:2], 0.5, axis=1, weights=np.ones((2, 3)), method='inverted_cdf')
    np.nanpercentile(i, 50, weights=w, method='inverted_cdf')
    ! np.quantile(v, 0.5, weights=v)
    ! np.quantile(i, 0.5, weights=-i, method='inverted_cdf')
    ! np.quantile(i, 0.5, weights=0 * i, method='inverted_cdf')
    ! np.quantile(i, 0.5, weights=[1, 2], method='inverted_cdf')
    ! np.quantile(a, 0.5, axis=0, weights=[1, 2, 3], method='inverted_cdf')
    np.quantile(v, np.sum(v) * 0 + 0.25)
    np.quantile(v, [np.sum(v) * 0 + 0.25, 0.5])
    np.percentile(v, np.float32(40))
    np.percentile(v.astype('f2'), 40)
    np.quantile(v, np.array([0.25, 0.5]) * 1)
    np.lexsort((i, w))
    np.lexsort((w, i))
    np.lexsort([[3, 1, 2], [1, 1, 0]])
    np.lexsort((a, -a))
    np.lexsort((a, -a), axis=0)
    np.lexsort((5,))
    np.lexsort(a)
    np.lexsort(i[None])
    ! np.lexsort(())
    ! np.lexsort([np.asarray(3)], axis=1)
    ! np.lexsort(3)
    ! np.lexsort((i, v))
    ! np.lexsort((i, w), axis=1)
    np.lexsort(i)
    np.sort_complex(z)
    np.sort_complex(i)
    np.sort_complex(i.astype('i2'))
    np.sort_complex(v)
    np.sort_complex(v.astype('f4'))
    np.sort_complex(z.astype('F'))
    np.sort_complex([2, 1])
    ! np.sort_complex(3)
    np.sort_complex(i > 2)
    np.sort_complex(a)
    np.partition(v, 3)[3]
    np.partition(v, [2, -1])[[2, -1]]
    np.partition(a, 1, axis=0)
    np.partition(a, 1, axis=None)[1]
    np.argpartition(a, 1, axis=1)[:, 1]
    np.partition(v, np.array([2, 5]))[[2, 5]]
    np.partition(n, 1)[:, 1]
    np.partition(e, 0, axis=1)
    np.argpartition(i, (1, 2))[1:3]
    np.partition(i > 2, 1)
    np.partition(z, 1)[1]
    np.partition(v, 2, kind='introselect')[2]
    ! np.partition(v, 99)
    ! np.partition(v, 1.5)
    ! np.partition(v, 1, axis=2)
    ! np.partition(3, 0)
    ! np.argpartition(v, -99)
    np.searchsorted(np.sort(v), v)
    np.searchsorted(v, 0.2, sorter=np.argsort(v))
    np.searchsorted(v, [0.2, 1], side='right', sorter=np.argsort(v))
    np.searchsorted([1, 2], np.float32(1.5))
    np.searchsorted(i, [])
    np.searchsorted([], 3)
    ! np.searchsorted(i, 2, sorter=[0, 1])
    ! np.searchsorted(i, 2, sorter=[0.0, 1, 2, 3])
    ! np.searchsorted(i, 2, sorter=[[0, 1, 2, 3]])
    np.searchsorted(np.array([1, 3, 5], 'u1'), -1)
    np.searchsorted(np.array([1, 3, 5], 'u1'), 300)
    np.searchsorted(np.array([1.0, 2, np.nan]), [np.nan, 1.5])
    np.searchsorted(np.arange(4, dtype='i1'), np.array([2, 9], 'u8'))
    """,
)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_has_medians_and_no_quantiles(dtype: str) -> None:
    x = (RNG.normal(size=(3, 5)) + 1j * RNG.normal(size=(3, 5))).astype(dtype)
    check(lambda np: np.median(np.array(x), axis=1), 1)
    check(lambda np: np.percentile(np.array(x), 3))


@pytest.mark.usefixtures("recorded")
def test_medians_and_quantiles_stay_pending() -> None:
    x = lazynp.arange(100.0).reshape(10, 10) * 2
    centred = x - lazynp.median(x, axis=0) + lazynp.quantile(x, 0.25) + lazynp.nanquantile(x, [0.25, 0.5])[0]
    assert centred._node.buffer is None
    y = numpy.arange(100.0).reshape(10, 10) * 2
    want = y - numpy.median(y, axis=0) + numpy.quantile(y, 0.25) + numpy.nanquantile(y, [0.25, 0.5])[0]
    assert numpy.array_equal(numpy.asarray(centred), want)


@pytest.mark.usefixtures("recorded")
def test_an_all_nan_row_warns_once_a_row_where_somebody_listens() -> None:
    x = numpy.array([[1.0, 2.0], [numpy.nan, numpy.nan], [numpy.nan, numpy.nan]])
    for call in (lambda np, a: np.nanmedian(a, axis=1), lambda np, a: np.nanquantile(a, 0.3, axis=1)):
        counts = []
        for module in (numpy, lazynp):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                call(module, module.array(x))
            counts.append([str(w.message) for w in seen])
            assert all(w.filename == __file__ for w in seen) or module is numpy
        assert counts[0] == counts[1] == ["All-NaN slice encountered"] * 2


def made(np: types.ModuleType, n: int) -> Any:
    return np.abs((np.arange(n) * 7919.0) % 104729 - 3.25)


@pytest.mark.parametrize("n", [5000, 1_000_001])
@pytest.mark.parametrize(
    "call",
    [
        "median(x)", "nanmedian(x)", "percentile(x, 30)", "percentile(x, [10, 50, 99.5], method='nearest')", "quantile(x, 0.2)",
        "nanpercentile(x, 20)", "nanquantile(x, [0.5])", "median(x.reshape(-1, 1), axis=(0, 1))", "percentile(x, 70, keepdims=True)",
        "median(x, out=np.empty(()))", "partition(x, 5)[5]", "partition(x, (5, -3))[[5, -3]]", "sort(x)[:9]", "median(-x[::2])",
    ],
)  # fmt: skip
def test_in_memory_of_what_is_pending(call: str, n: int) -> None:
    """A copy that nobody else reads is put in order where it lies, by the places that are asked for."""
    found = [numpy.asarray(eval(f"np.{call}", {"np": np, "x": made(np, n)})) for np in (lazynp, numpy)]
    numpy.testing.assert_allclose(*found, rtol=1e-15)
