# ruff: noqa: E501 - a case is one line of the table
"""Reductions that leave NaN out against NumPy: values, dtypes, errors, and when warnings come."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from tests.namespace.compare import COMPLEX, DTYPES, FLOATS, check, table

RNG = numpy.random.default_rng(6)
REDUCTIONS = ["nansum", "nanprod", "nanmin", "nanmax", "nanmean", "nanvar", "nanstd", "nanargmin", "nanargmax"]


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    lazynp.set_fallback("error")
    yield
    lazynp.set_fallback("silent")


def data(dtype: str, shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
    x = RNG.integers(1, 9, shape).astype(dtype)
    if numpy.dtype(dtype).kind in "fc":
        x[RNG.random(shape) < 0.3] = numpy.nan
    return x


@pytest.mark.slow
@pytest.mark.parametrize("name", [*REDUCTIONS, "nancumsum", "nancumprod"])
def test_dtypes_shapes_axes(name: str) -> None:
    ulps = 16 if name in ("nanvar", "nanstd", "nanmean") else 0
    for dtype in DTYPES:
        for shape in [(), (1,), (5,), (3, 4), (2, 3, 2), (0,), (0, 3), (3, 0)]:
            x = data(dtype, shape)
            axes: list[Any] = [None, 0, -1]
            if len(shape) > 1 and not name.startswith(("nanarg", "nancum")):
                axes += [(0, 1), (), (-1, 0)]
            for axis in axes:
                note = f"{name} {dtype} {shape} {axis}"
                check(lambda np, x=x, axis=axis: getattr(np, name)(np.array(x), axis=axis), ulps, note)
                if not name.startswith("nancum"):
                    check(lambda np, x=x, axis=axis: getattr(np, name)(np.array(x), axis=axis, keepdims=True), ulps, note)


NAMES = {
    "n": numpy.array([[1.0, numpy.nan, 3.0], [4.0, 5.0, 6.5], [numpy.nan] * 3]),
    "f": numpy.array([[1.0, numpy.nan], [2.5, 7.0]], "f4"),
    "i": numpy.array([[3, 1], [2, 9]]),
    "z": numpy.array([1 + 2j, numpy.nan, 1 - 1j]),
    "m": numpy.array([[True, False, True]]),
    "h": numpy.array([60000, 60000, numpy.nan], "f2"),
}

test_cases = table(
    NAMES,
    """
    np.nansum(n, dtype='f4')
    np.nansum(n, axis=0, out=np.zeros(3))
    np.nansum(n, initial=2)
    np.nansum(n, where=m)
    np.nansum(i, where=m[:, :2], axis=1)
    np.nansum(n, 1, None, None, True)
    np.nanprod(n, axis=1, initial=3, where=n > 1)
    np.nancumsum(n)
    np.nancumsum(n, axis=1, dtype='f4')
    np.nancumprod(n, axis=0, out=np.zeros((3, 3)))
    ! np.nansum(n, axis=3)
    np.nanmin(n)
    np.nanmin(n, 1)
    np.nanmin(n, axis=0, out=np.zeros(3))
    np.nanmin(n, initial=0)
    np.nanmax(n, initial=9, axis=1)
    np.nanmax(n, where=m, initial=-1)
    np.nanmin(i)
    np.nanmax(z)
    np.nanmin(3)
    ! np.nanmin([])
    ! np.nanmax(np.zeros((0, 2)), axis=0)
    ! np.nanmax(n, where=m)
    np.nanmax(np.zeros((0, 2)), axis=1)
    np.nanmin(n.T, axis=0)
    np.nanmax(np.zeros((0, 2)), initial=3)
    np.nanargmax(n[:2])
    np.nanargmin(n[:2], axis=1)
    np.nanargmax(n[:2], axis=1, keepdims=True)
    np.nanargmin(n[:2], 1, np.zeros(2, int))
    np.nanargmax(i)
    np.nanargmin(f, axis=0)
    np.nanargmax(z)
    np.nanargmax(3.0)
    ! np.nanargmax(n, axis=1)
    ! np.nanargmin(np.array([np.nan]))
    ! np.nanargmin(np.nan)
    ! np.nanargmin([])
    ! np.nanargmax(np.zeros((0, 2)), axis=0)
    np.nanargmax(np.zeros((0, 2)), axis=1)
    np.nanargmin(-np.inf * np.array([1, 1]))
    np.nanargmin(np.array([np.nan, np.inf]))
    ! np.nanargmax(n[:2], axis=1, out=np.zeros(3, int))
    ! np.nanargmax(n, axis=4)
    np.nanmean(n)
    np.nanmean(n, axis=0)
    np.nanmean(n, 1)
    np.nanmean(n, dtype='f4')
    np.nanmean(i)
    np.nanmean(i, dtype='f4')
    np.nanmean(n, where=m)
    np.nanmean(n, axis=1, where=n > 3)
    np.nanmean(h)
    np.nanmean(z)
    np.nanmean(np.nan)
    np.nanmean([])
    np.nanmean(n, axis=0, out=np.zeros(3, 'f4'))
    np.nanmean(n, axis=(0, 1), keepdims=True)
    np.nanmean(f, dtype='f8', axis=1)
    np.nanmean(f, dtype='D')
    np.nanmean(i, axis=0, keepdims=True)
    ! np.nanmean(n, dtype=int)
    ! np.nanmean(n, axis=0, out=np.zeros(3, int))
    ! np.nanmean(n, axis=0, out=np.zeros(2))
    ! np.nanmean(n, axis=2)
    np.nanvar(n, ddof=1)
    np.nanvar(n, axis=0, ddof=2)
    np.nanvar(n, axis=1, correction=1)
    np.nanvar(n, where=m)
    np.nanvar(z)
    np.nanstd(z, ddof=1)
    np.nanvar(f, dtype='f8')
    np.nanvar(f, dtype='D')
    np.nanvar(i, axis=0)
    np.nanvar(i, dtype='f4')
    np.nanstd(n, axis=1, keepdims=True)
    np.nanstd(n, axis=0, out=np.zeros(3))
    np.nanvar(n, mean=np.nanmean(n, keepdims=True))
    np.nanstd(n[:2], axis=1, mean=np.array([[1.0], [2]]))
    np.nanstd(i, mean=2.0)
    np.nanstd(f)
    np.nanvar(np.nan)
    np.nanvar([])
    np.nanstd(np.ones(1), ddof=3)
    ! np.nanvar(n, ddof=1, correction=1)
    ! np.nanstd(n, dtype='i4')
    np.nanmean(n.T, axis=0, keepdims=True)
    np.nanmean(np.asfortranarray(np.ones((2, 3, 4))), axis=0).flags.f_contiguous
    np.nanmax(np.asfortranarray(np.ones((2, 3, 4))), axis=0).flags.f_contiguous
    np.var(i, dtype='D')
    np.std(i, dtype='F', axis=0)
    np.var(z, dtype='D')
    np.std(z)
    np.var(z[:1], dtype='F')
    ! np.average(i, weights=[[0, 0], [0, 0]])
    ! np.average(i, axis=0, weights=[1, -1])
    np.average(i, axis=0, weights=[1, 2])
    np.average(i, axis=(1, 0), weights=[[1, 2], [3, 4]])
    np.average(n, weights=m * n, axis=1, keepdims=True)
    np.average(i, returned=True, axis=0, weights=[[1, 2], [3, 4]])
    """,
    ulps=2,
)


WARNING = [
    "np.nanmin(n)", "np.nanmin(n, axis=1)", "np.nanmax(n, axis=0, initial=np.nan)", "np.nanmean(n, axis=1)", "np.nanmean(n[2])",
    "np.nanvar(n, axis=1)", "np.nanstd(n, axis=1, ddof=2)", "np.nanmean(n, axis=0)", "np.nanvar(n[0], ddof=2)", "np.nanmean(z[1:2])",
    "np.mean([])", "np.mean(n, where=n > 9)", "np.mean(n, axis=1, where=n > 4)", "np.var(n, axis=0, where=m, ddof=1)", "np.std(n, axis=1, where=n > 4.5)", "np.var([1.0], ddof=1)", "np.cov([1.0])", "np.cov([1.0, 2.0], aweights=[0.5, 0.0], ddof=1)",
]  # fmt: skip


def messages(text: str, module: Any, action: str) -> list[str]:
    local = {name: module.array(value) for name, value in NAMES.items()}
    with warnings.catch_warnings(record=True) as seen, numpy.errstate(all="ignore"):
        warnings.simplefilter(action)  # type: ignore[arg-type]
        found = eval(text, {"np": module, **local})
        if action == "default" and module is lazynp:
            numpy.asarray(found)
    return [str(w.message) for w in seen if w.category is RuntimeWarning]


@pytest.mark.parametrize("text", WARNING)
def test_warnings_are_numpys(text: str) -> None:
    want = messages(text, numpy, "always")
    assert messages(text, lazynp, "always") == want
    assert messages(text, lazynp, "ignore") == []
    assert messages(text, lazynp, "default") == want
    if want:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match=want[0]):
                eval(text, {"np": lazynp, **{name: lazynp.array(value) for name, value in NAMES.items()}})


@pytest.mark.usefixtures("recorded")
def test_a_warning_waits_for_the_value_and_names_the_line_that_asked() -> None:
    x = lazynp.nanmean(lazynp.array([[numpy.nan, numpy.nan], [1.0, 2.0]]) * 2, axis=1)  # here
    assert x._node.buffer is None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert numpy.isnan(numpy.asarray(x)[0])
    (warning,) = seen
    assert warning.filename == __file__
    with open(__file__) as source:
        assert "# here" in source.read().splitlines()[warning.lineno - 1]


@pytest.mark.usefixtures("recorded")
def test_where_nobody_listens_nothing_stands_between_the_kernels() -> None:
    x = lazynp.array(RNG.normal(size=(8, 8)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        centred = x - lazynp.nanmean(x, axis=1, keepdims=True)
    assert len(lazynp.schedule(centred).items) == 1


@pytest.mark.usefixtures("recorded")
def test_an_error_that_values_decide_comes_with_them() -> None:
    x = lazynp.array([numpy.nan, 1.0])
    assert int(lazynp.nanargmax(x)) == 1
    with pytest.raises(ValueError, match="All-NaN slice encountered"):
        lazynp.nanargmax(lazynp.array([numpy.nan]))
    pending = lazynp.nanargmin(x[:1] * 2)
    with pytest.raises(ValueError, match="All-NaN slice encountered"):
        int(pending)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_positions_with_ties_and_infinities(dtype: str) -> None:
    x = numpy.array([numpy.nan, numpy.inf, 2.0, -numpy.inf, numpy.inf, 2.0, -numpy.inf, numpy.nan], dtype)
    for name in ("nanargmin", "nanargmax", "nanmin", "nanmax"):
        for part in (x, x[:3], x[2:4], x[5:6], x[::-1]):
            check(lambda np, part=part, name=name: getattr(np, name)(np.array(part)), note=name)
