"""array-api-compat and array-api-extra take our arrays for what they are: an unknown library that computes when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.namespace.standard import namespace_of

compat = pytest.importorskip("array_api_compat")
xpx = pytest.importorskip("array_api_extra")

pytestmark = pytest.mark.filterwarnings("ignore:`xpx.*is deprecated:DeprecationWarning")

MATRIX = [[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]]
GAPS = [[1.0, float("nan"), 2.0], [float("nan"), float("-inf"), 0.0]]

# Name -> calls of array-api-extra with a library's namespace; what they give is compared with NumPy's.
CALLS: dict[str, list[Callable[[Any], Any]]] = {
    "angle": [lambda xp: xpx.angle(xp.asarray([1 + 1j, -2j, 0j])), lambda xp: xpx.angle(xp.asarray([1.0, -1.0]), deg=True)],
    "apply_where": [
        lambda xp: xpx.apply_where(xp.asarray(MATRIX) > 0, xp.asarray(MATRIX), xp.log, fill_value=-1.0),
        lambda xp: xpx.apply_where(xp.asarray(MATRIX) > 0, xp.asarray(MATRIX), xp.log, lambda x: -x),
        lambda xp: xpx.apply_where(
            xp.asarray([True, False]), (xp.asarray([1, 2]), xp.asarray([0.5, 0.25])), lambda a, b: a / b, lambda a, b: a * b
        ),
        lambda xp: xpx.apply_where(xp.asarray(True), xp.asarray(2.0), lambda x: x + 1, fill_value=xp.asarray(0.0)),
        lambda xp: xpx.apply_where(xp.asarray([False, False]), xp.asarray([1.0, 2.0]), xp.sqrt, fill_value=xp.nan),
    ],
    "argpartition": [lambda xp: xp.take_along_axis(xp.asarray(MATRIX), xpx.argpartition(xp.asarray(MATRIX), 1), axis=-1)[:, 1]],
    "at": [
        lambda xp: xpx.at(xp.asarray([1.0, 2.0, 3.0]), 1).set(5),
        lambda xp: xpx.at(xp.asarray([1.0, 2.0, 3.0]))[1:].add(10),
        lambda xp: xpx.at(xp.asarray([1.0, -2.0, 3.0]), xp.asarray([1.0, -2.0, 3.0]) < 0).multiply(-1),
        lambda xp: xpx.at(xp.asarray(MATRIX), (slice(None), 0)).subtract(1.0, copy=True),
        lambda xp: xpx.at(xp.asarray([1, 2, 3]), xp.asarray([0, 2])).set(xp.asarray([7, 8])),
        lambda xp: xpx.at(xp.asarray([4.0, 9.0]), 0).divide(2),
        lambda xp: xpx.at(xp.asarray([4.0, 9.0]), ...).power(2),
        lambda xp: xpx.at(xp.asarray([4, 9]), 1).min(2),
        lambda xp: xpx.at(xp.asarray([4, 9]), 0).max(8),
        lambda xp: xpx.at(xp.sum(xp.asarray(MATRIX)), xp.asarray(True)).set(xp.nan),
        lambda xp: xpx.at(xp.sum(xp.asarray(MATRIX)), xp.sum(xp.asarray(MATRIX)) < 0).set(xp.nan),
        lambda xp: xpx.at(xp.broadcast_to(xp.asarray(2.0), (3,)), 0).set(1.0, copy=True),
    ],
    "atleast_nd": [lambda xp: xpx.atleast_nd(xp.asarray(3), ndim=2), lambda xp: xpx.atleast_nd(xp.asarray(MATRIX), ndim=3)],
    "broadcast_shapes": [lambda xp: xpx.broadcast_shapes((3, 1), (2,), xp=xp)],
    "cov": [
        lambda xp: xpx.cov(xp.asarray(MATRIX)),
        lambda xp: xpx.cov(xp.asarray(MATRIX)[0, ...]),
        lambda xp: xpx.cov(xp.asarray(MATRIX), correction=0, fweights=xp.asarray([1, 2, 1])),
    ],
    "create_diagonal": [
        lambda xp: xpx.create_diagonal(xp.asarray([1, 2, 3])),
        lambda xp: xpx.create_diagonal(xp.asarray([1.5, 2.5]), offset=-1),
        lambda xp: xpx.create_diagonal(xp.asarray(MATRIX), offset=1),
    ],
    "default_dtype": [lambda xp: str(xpx.default_dtype(xp)), lambda xp: str(xpx.default_dtype(xp, "integral"))],
    "deg2rad": [lambda xp: xpx.deg2rad(xp.asarray([0.0, 90.0, 180.0]))],
    "diag_indices": [lambda xp: xpx.diag_indices(3, ndim=3, xp=xp)],
    "expand_dims": [
        lambda xp: xpx.expand_dims(xp.asarray(MATRIX), axis=(0, 2)),
        lambda xp: xpx.expand_dims(xp.asarray(MATRIX), axis=-1),
    ],
    "isclose": [
        lambda xp: xpx.isclose(xp.asarray(GAPS), xp.asarray(GAPS), equal_nan=True),
        lambda xp: xpx.isclose(xp.asarray([1.0, 1.1]), 1.05, rtol=0.05),
        lambda xp: xpx.isclose(xp.asarray([1, 2]), xp.asarray([1, 3])),
    ],
    "isin": [
        lambda xp: xpx.isin(xp.asarray(MATRIX), xp.asarray([2.0, 4.0])),
        lambda xp: xpx.isin(xp.asarray([1]), xp.asarray([2]), invert=True),
    ],
    "kron": [lambda xp: xpx.kron(xp.asarray(MATRIX), xp.asarray([[1.0], [2.0]])), lambda xp: xpx.kron(xp.asarray([1, 2]), xp.asarray(3))],
    "lazy_apply": [
        lambda xp: xpx.lazy_apply(lambda x: x + 1, xp.asarray(MATRIX)),
        lambda xp: xpx.lazy_apply(numpy.sort, xp.asarray(MATRIX), as_numpy=True),
        lambda xp: xpx.lazy_apply(
            lambda x, y: (x + y, x.sum()), xp.asarray(MATRIX), 2.0, shape=[(2, 3), ()], dtype=[xp.float64, xp.float64], as_numpy=True
        ),
    ],
    "nan_to_num": [lambda xp: xpx.nan_to_num(xp.asarray(GAPS)), lambda xp: xpx.nan_to_num(xp.asarray(GAPS), fill_value=7.0)],
    "nanmax": [lambda xp: xpx.nanmax(xp.asarray(GAPS), axis=1), lambda xp: xpx.nanmax(xp.asarray(GAPS))],
    "nanmean": [lambda xp: xpx.nanmean(xp.asarray(GAPS), axis=0)],
    "nanmin": [lambda xp: xpx.nanmin(xp.asarray(GAPS), axis=0)],
    "nansum": [lambda xp: xpx.nansum(xp.asarray(GAPS), axis=1)],
    "nunique": [lambda xp: xpx.nunique(xp.asarray([3, 1, 3, 2])), lambda xp: xpx.nunique(xp.asarray(GAPS))],
    "one_hot": [
        lambda xp: xpx.one_hot(xp.asarray([1, 0, 2]), 3),
        lambda xp: xpx.one_hot(xp.asarray([[1], [0]]), 2, dtype=xp.int8, axis=0),
    ],
    "pad": [
        lambda xp: xpx.pad(xp.asarray(MATRIX), 1),
        lambda xp: xpx.pad(xp.asarray([1, 2]), (2, 1), constant_values=9),
        lambda xp: xpx.pad(xp.asarray(MATRIX), [(0, 1), (2, 0)], constant_values=0.5),
    ],
    "partition": [lambda xp: xpx.partition(xp.asarray(MATRIX), 1)[:, 1], lambda xp: xpx.partition(xp.asarray(MATRIX), 2, axis=None)[2:3]],
    "rad2deg": [lambda xp: xpx.rad2deg(xp.asarray([0.0, 1.5]))],
    "searchsorted": [
        lambda xp: xpx.searchsorted(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([2.0, 9.0])),
        lambda xp: xpx.searchsorted(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([2.0, 9.0]), side="right"),
    ],
    "setdiff1d": [lambda xp: xpx.setdiff1d(xp.asarray([6, 8, 1, 3, 4]), xp.asarray([4, 8]))],
    "sinc": [lambda xp: xpx.sinc(xp.asarray([-1.5, 0.0, 0.25]))],
    "tril_indices": [lambda xp: xpx.tril_indices(3, offset=-1, m=4, xp=xp)],
    "triu_indices": [lambda xp: xpx.triu_indices(3, offset=1, xp=xp)],
    "union1d": [lambda xp: xpx.union1d(xp.asarray([3, 1]), xp.asarray([2, 3]))],
    "unravel_index": [lambda xp: xpx.unravel_index(xp.asarray([5, 3]), (2, 3))],
}


def test_the_table_is_complete() -> None:
    assert set(xpx.__all__) - {"__version__", "testing"} == CALLS.keys()


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_extra_functions_give_what_they_give_with_numpy(name: str, call: Callable[[Any], Any]) -> None:
    with numpy.errstate(all="ignore"):
        ours, theirs = call(namespace_of(lazynp)), call(numpy)
    pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
    for found, expected in pairs:
        if not isinstance(expected, (numpy.ndarray, numpy.generic)):
            assert found == expected
            continue
        assert compat.array_namespace(found) is namespace_of(lazynp)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind in "fc":
            numpy.testing.assert_array_max_ulp(numpy.asarray(found), expected, maxulp=8)
        else:
            assert numpy.array_equal(found, expected)


def test_what_compat_says_of_our_arrays() -> None:
    for x in (lazynp.asarray(MATRIX), namespace_of(lazynp).sum(lazynp.asarray(MATRIX)), lazynp.asarray(2), lazynp.zeros((0, 3))):
        assert compat.is_array_api_obj(x)
        assert compat.array_namespace(x, 2.0, None) is namespace_of(lazynp)
        assert compat.is_writeable_array(x) is not isinstance(x, numpy.generic)
        assert not compat.is_lazy_array(x)
        assert compat.is_numpy_array(x) == isinstance(x, numpy.generic)
        assert compat.device(x) == "cpu"
        assert compat.size(x) == x.size
        assert compat.to_device(x, "cpu").tolist() == x.tolist()


def test_asking_whether_an_array_is_lazy_computes_it_once() -> None:
    for x in (lazynp.asarray(MATRIX) * 2 + 1, (lazynp.asarray(MATRIX) * 2).sum()):
        report.reset()
        assert not compat.is_lazy_array(x)
        assert sum(counted.count for counted in report.forced.values()) <= 2
        report.reset()
        assert not compat.is_lazy_array(x)
        x.tolist() if x.shape else float(x)
        assert sum(counted.count for counted in report.forced.values()) <= 1


def test_where_and_the_0d_update_compute_nothing() -> None:
    x = lazynp.asarray(MATRIX)
    report.reset()
    xpx.at(lazynp.sum(x), lazynp.any(x < 0)).set(lazynp.nan)
    xpx.at(x * 2, x < 0).set(0)
    xpx.expand_dims(xpx.pad(xpx.sinc(x), 1), axis=0)
    assert not report.forced
