# ruff: noqa: E501 - a case is one line of the table
"""Reductions, running reductions and statistics against NumPy."""

from __future__ import annotations

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.namespace.compare import DTYPES, check, table, values

REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin", "count_nonzero", "ptp", "cumsum", "cumprod"]
NAN = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nancumsum", "nancumprod"]

# Sums of floats have another order here; how far they may be apart is counted in ulps of these short arrays.
ULPS = {"sum": 8, "prod": 8, "mean": 8, "var": 16, "std": 16, "cumsum": 8, "cumprod": 8}


def finite(dtype: str) -> numpy.ndarray:
    x = values(dtype)
    if x.dtype.kind in "fc":
        x = x[numpy.isfinite(x)]
        x = numpy.where(numpy.abs(x) > 100, 100, x).astype(dtype)
    return x


@pytest.mark.parametrize("name", REDUCTIONS + NAN)
def test_over_dtypes(name: str) -> None:
    for dtype in DTYPES:
        exact = name in ("max", "min", "any", "all", "argmax", "argmin", "count_nonzero", "nanmax", "nanmin", "ptp")
        x = values(dtype) if exact else finite(dtype)
        for array in (x, x[:6].reshape(2, 3) if x.size >= 6 else x.reshape(2, 2)):
            for axis in (None, 0, -1):
                ulps = 0 if exact or (array.dtype.kind in "biu" and "m" not in name[:4]) else 16
                check(lambda np, a=array, k=axis: getattr(np, name)(np.array(a), axis=k), 16 if not exact else ulps, f"{name} {dtype} axis={axis}")


SHAPES = [(), (1,), (5,), (0,), (0, 3), (3, 0), (2, 3, 4), (1, 4), (4, 1)]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_over_shapes_and_axes(name: str) -> None:
    rng = numpy.random.default_rng(1)
    for shape in SHAPES:
        x = rng.normal(size=shape)
        axes: list[object] = [None, 0, -1, 1, 7, "x", 1.0]
        if name not in ("argmax", "argmin", "cumsum", "cumprod"):
            axes += [(0, 1), (0, -1), (1, 1), (), (-1,)]
        for axis in axes:
            check(lambda np, a=x, k=axis: getattr(np, name)(np.array(a), axis=k), 64, f"{name} {shape} axis={axis}")
            if name not in ("cumsum", "cumprod"):
                check(lambda np, a=x, k=axis: getattr(np, name)(np.array(a), axis=k, keepdims=True), 64, f"{name} {shape} axis={axis} keepdims")


def test_nan_decides_extremes_and_their_positions() -> None:
    for dtype in ("float16", "float32", "float64", "complex128"):
        for position in range(4):
            x = numpy.array([3, 1, 7, 7], dtype)
            x[position] = numpy.nan
            for name in ("max", "min", "argmax", "argmin", "nanmax", "nanmin"):
                check(lambda np, a=x, n=name: getattr(np, n)(np.array(a)), 0, f"{name} {dtype} nan at {position}")


A = numpy.arange(12.0).reshape(3, 4)
test_keywords_and_errors = table(
    {"a": A, "i": numpy.arange(12).reshape(3, 4)},
    """
    np.sum(a, dtype='float32')
    np.sum(a, axis=0, dtype=int)
    np.sum(i, dtype='int8')
    np.sum(i.astype('int8'), axis=1)
    np.sum(i.astype('uint8')).dtype
    np.sum(i > 3)
    np.sum(a, initial=10.0)
    np.sum(a, axis=1, initial=10)
    np.sum(a, where=a > 5)
    np.sum(a, axis=0, where=[True, False, True, False])
    np.sum(a, where=a > 50)
    np.prod(a, where=a > 9)
    ! np.max(a, where=a < 5)
    np.max(a, where=a < 5, initial=-1)
    np.max(a, axis=0, initial=6)
    np.min(np.zeros((0, 3)), axis=0, initial=6)
    np.any(a, axis=0, where=a > 100)
    np.all(a, axis=0, where=a > 100)
    np.sum(a, out=np.zeros(()))
    np.sum(a, axis=0, out=np.zeros(4))
    np.sum(a, axis=0, out=np.zeros(4, int))
    ! np.sum(a, axis=0, out=np.zeros(3))
    ! np.sum(a, axis=0, out=np.zeros((1, 4)))
    np.sum(a, axis=0, keepdims=True, out=np.zeros((1, 4)))
    np.mean(a, axis=1, out=np.zeros(3))
    np.mean(a, dtype='float32')
    np.mean(i, dtype=int)
    np.mean(a, where=a > 3)
    np.mean(a, axis=0, where=a > 3)
    np.mean(a.astype('float16'))
    np.mean(np.full(3000, 60.0, 'float16'))
    np.mean(a, axis=(0, 1), keepdims=True)
    np.var(a, ddof=1)
    np.var(a, axis=0, correction=1)
    ! np.var(a, ddof=1, correction=1)
    np.var(a, axis=0, where=a > 3)
    np.std(a, axis=0, where=a > 3, ddof=1)
    np.std(a.astype('float16'), axis=1)
    np.var(a, mean=np.mean(a))
    np.var(a, axis=1, mean=np.mean(a, axis=1, keepdims=True))
    np.std(a, axis=1, keepdims=True)
    np.std(a + 1j * a)
    np.average(a)
    np.average(a, axis=1, weights=[1, 2, 3, 4])
    np.average(a, axis=0, weights=[1, 2, 3], returned=True)
    ! np.average(a, weights=[1, 2, 3])
    ! np.average([1, 2, 3], weights=[0, 0, 0])
    np.average(a, axis=1, returned=True)
    np.median(a)
    np.median(a, axis=0)
    np.percentile(a, 30)
    np.quantile(a, [0.25, 0.5], axis=1)
    np.cumsum(i.astype('int8'))
    np.cumsum(i.astype('uint8'), axis=1, dtype='uint8')
    np.cumsum(i > 2)
    np.cumsum(a, axis=1, out=np.zeros((3, 4)))
    np.cumprod(a + 1, axis=0)
    np.cumulative_sum(np.arange(4), include_initial=True)
    np.cumulative_sum(a, axis=1, include_initial=True)
    ! np.cumulative_sum(a)
    np.cumulative_prod(np.arange(1, 4.0))
    np.argmax(a)
    np.argmax(a, axis=0)
    np.argmin(a, axis=1, keepdims=True)
    np.argmax(a, keepdims=True)
    np.argmax(a, axis=0, out=np.zeros(4, int))
    ! np.argmax(a, axis=0, out=np.zeros(3, int))
    np.argmax([True, False])
    np.argmin([True, False])
    np.count_nonzero(a)
    np.count_nonzero(a, axis=0)
    np.count_nonzero(a, axis=1, keepdims=True)
    np.ptp(a, axis=0)
    np.ptp(i, keepdims=True)
    np.sum([1, 2, 3])
    np.sum(5)
    np.max([1.5, 2])
    np.mean([1, 2])
    np.any([0, 1])
    np.all(())
    np.sum([[1, 2], [3, 4]], axis=(0, 1))
    ! np.sum('abc')
    np.amax(a)
    np.amin(a, 0)
    a.sum(0)
    a.sum(axis=1, keepdims=True)
    a.prod()
    a.mean(1)
    a.var(0)
    a.std()
    a.max(0)
    a.min()
    a.any()
    a.all(1)
    a.argmax()
    a.argmin(1)
    a.cumsum()
    a.cumsum(1)
    a.cumprod(0)
    a.round(1)
    a.trace()
    a.T.sum(0)
    a[:, ::-1].cumsum(1)
    a[::2, 1:].mean(0)
    a.T.argmax(0)
    ! a.sum(axis=-3)
    np.sum(a) .shape
    np.sum(a).ndim
    np.sum(a).dtype
    np.nanmean(np.where(a > 3, a, np.nan), axis=0)
    np.nanvar(np.where(a > 3, a, np.nan), axis=0, ddof=1)
    np.nansum(np.where(a > 3, a, np.nan), axis=1, keepdims=True)
    np.nanmax(np.where(a > 3, a, np.nan), axis=1)
    np.nanmean(i)
    np.nanmedian(a)
    np.nanargmax(a)
    np.trace(a)
    np.trace(a, 1)
    np.trace(i.astype('int8'))
    ! np.trace(np.ones(3))
    np.cov(a)
    np.corrcoef(a)
    np.histogram(a, 3)
    np.bincount([1, 1, 3])
    np.digitize(a, [2, 4])
    """,
    ulps=16,
)


@pytest.mark.usefixtures("recorded")
def test_mean_of_nothing_warns_as_numpy_does() -> None:
    with pytest.warns(RuntimeWarning, match="Mean of empty slice") as caught:
        lazynp.mean(lazynp.zeros(0)).item()
    assert caught[0].filename == __file__


@pytest.mark.usefixtures("recorded")
def test_nothing_is_computed_by_recording() -> None:
    x = lazynp.arange(1000.0) + 1
    found = [x.sum(), x.mean(), x.var(), x.max(), x.argmax(), lazynp.cumsum(x), lazynp.average(x)]
    assert x._node.buffer is None
    assert all(y._node is not None and y._node.buffer is None for y in found)


# Of zeros of both signs NumPy's loops for float32 and float64 take one by vector width, length and place in memory: either is right. Those
# for float16 and complex numbers take the first, which ours do elementwise; a reduction may end with any of the zeros that are there.
@pytest.mark.parametrize("tier", ["auto", pytest.param("compiled", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_extremes_of_zeros_of_both_signs(dtype: str, tier: str) -> None:
    def signs(x: numpy.ndarray) -> numpy.ndarray:
        return numpy.signbit(numpy.asarray(x).real)

    rng = numpy.random.default_rng(2)
    calls = ["np.minimum.reduce(x)", "np.fmin.reduce(x)", "np.nanmin(x)", "np.maximum.reduce(-x)", "np.fmax.reduce(-x)", "np.nanmax(-x)"]
    with config.override(tier=tier):
        for n in (1, 2, 3, 8, 17, 100, 700):
            x, y = [numpy.where(rng.random(n) < 0.5, 0.0, -0.0).astype(dtype) for _ in range(2)]
            for name in ("minimum", "maximum", "fmin", "fmax"):
                found = getattr(lazynp, name)(lazynp.array(x), lazynp.array(y))
                numpy.testing.assert_array_equal(found, getattr(numpy, name)(x, y))
                first, second = signs(found) == signs(x), signs(found) == signs(y)
                assert (first if dtype not in ("float32", "float64") else first | second).all(), (name, n)
            x[rng.random(n) < 0.3] = 1
            for call in calls:
                want, got = eval(call, {"np": numpy, "x": x}), eval(call, {"np": lazynp, "x": lazynp.array(x)})
                assert got == want, (call, n)
                assert signs(got) in signs((-x if "-" in call else x)[abs(x) == abs(want)]), (call, n)
