"""Set operations, membership, counting against NumPy, with no call answered by NumPy itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import pytest

import lazynp
from tests.namespace.compare import DTYPES, check, table, values

RNG = numpy.random.default_rng(7)


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    lazynp.set_fallback("error")
    yield
    lazynp.set_fallback("silent")


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets_of_every_dtype(dtype: str) -> None:
    few = RNG.integers(0, 5, (3, 4)).astype(dtype)
    other = RNG.integers(3, 9, 7).astype(dtype)
    special = numpy.repeat(values(dtype), 2)
    for x in (few, special, few[:0], few[0, 0]):
        check(lambda np, x=x: np.unique(np.array(x)))
        check(lambda np, x=x: np.unique(np.array(x), True, True, True))
        check(lambda np, x=x: np.unique(np.array(x), return_inverse=True, equal_nan=False))
        check(lambda np, x=x: np.unique(np.array(x), return_counts=True))
        for name in ("unique_all", "unique_counts", "unique_inverse"):
            check(lambda np, x=x, name=name: getattr(np, name)(np.array(x)), note=name)
        check(lambda np, x=x: np.sort(np.unique_values(np.array(x))))
        for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d"):
            check(lambda np, x=x, name=name: getattr(np, name)(np.array(x), np.array(other)), note=name)
        check(lambda np, x=x: np.isin(np.array(x), np.array(other)))
        check(lambda np, x=x: np.isin(np.array(x), np.array(special[:5]), invert=True))
        check(lambda np, x=x: np.isin(np.array(x) * 1, np.array(other) * 1))
    check(lambda np: np.unique(np.array(few), axis=0, return_index=True))
    check(lambda np: np.unique(np.array(few), axis=1, return_inverse=True))


NAMES = {
    "a": RNG.integers(0, 6, (3, 4)),
    "i": numpy.array([5, 1, 4, 1]),
    "u": numpy.array([1, 4, 5]),
    "n": numpy.array([1.0, numpy.nan, 3.0, numpy.nan]),
    "v": RNG.normal(size=200),
    "x": RNG.normal(size=50),
    "y": RNG.normal(size=50),
    "w": RNG.random(50),
    "p": RNG.normal(size=(40, 3)),
    "z": RNG.normal(size=50) + 1j,
}

test_cases = table(
    NAMES,
    """
    np.unique([3, 1, 3])
    np.unique(a, axis=None)
    np.unique(n)
    np.unique(n, equal_nan=False)
    np.unique([[1, 1], [1, 1]], axis=-1)
    np.unique(3)
    np.unique(np.zeros((0, 2)), axis=0)
    np.unique(i, sorted=True)
    ! np.unique(a, axis=2)
    ! np.unique(i, axis=1)
    ! np.unique(a, nonsense=1)
    np.unique_all(i).values
    np.unique_all(i).indices
    np.unique_all(i).inverse_indices
    np.unique_all(i).counts
    np.unique_counts(a).counts
    np.unique_inverse(a).inverse_indices.shape
    np.intersect1d(i, u, return_indices=True)
    np.intersect1d(u, u[1:], assume_unique=True)
    np.intersect1d(u, [4.0, 7], True, True)
    np.intersect1d([], i)
    np.intersect1d(a, 3)
    np.union1d(i, [0.5])
    np.union1d([], [])
    np.setdiff1d(i, u[:1])
    np.setdiff1d(u, [1], assume_unique=True)
    np.setdiff1d(i, [])
    np.setxor1d(i, [1, 9])
    np.setxor1d(u, [1, 9], assume_unique=True)
    np.setxor1d([], [])
    np.union1d(i.astype('i1'), 4)
    np.union1d(2, i.astype('f4'))
    np.union1d(i.astype('u1'), [4])
    np.union1d(2.5, i.astype('i2'))
    np.setxor1d(i.astype('i1'), 4)
    np.setdiff1d(i.astype('i1'), 4)
    np.intersect1d(i.astype('i1'), 4)
    np.union1d(a, a[0] + 3)
    np.union1d(n, n)
    np.union1d(i.astype('u1'), 300)
    np.isin(i, u)
    np.isin(a, [1, 2])
    np.isin(3, [1, 3])
    np.isin(3, 3)
    np.isin(i, [])
    np.isin([], i)
    np.isin(n, [np.nan, 1])
    np.isin(i, u, kind='sort')
    np.isin(i, u, kind='table', invert=True)
    np.isin(u, i[:2], assume_unique=True)
    np.isin(i, [1.0, 4.5])
    np.isin(a, np.arange(3))
    np.isin(np.array([1, 200], 'u1'), [-1, 200, 300])
    ! np.isin(n, [1.0], kind='table')
    ! np.isin(i, u, kind='other')
    np.isin(np.array([1, 2**63], 'u8'), np.array([-1, 1]))
    np.isin(np.array([1, -2], 'i8'), np.arange(20, dtype='u8'))
    np.isin(v, v[:30])
    np.isin(i > 2, [True])
    np.isin(i, [True, False])
    np.histogram(v)
    np.histogram(v, 5)
    np.histogram(v, bins=5, range=(-1, 1))
    np.histogram(v, 7, (-2, 2.5), True)
    np.histogram(v, density=True)
    np.histogram(v.astype('f4'), 4)
    np.histogram(v.astype('f2'), 4)
    np.histogram(i)
    np.histogram(i.astype('i1'), 3)
    np.histogram(i.astype('u1'), 3)
    np.histogram(i.astype('u8'), 3, range=(0, 9))
    np.histogram(x, weights=w)
    np.histogram(x, weights=w.astype('f4'))
    np.histogram(x, weights=(w * 9).astype(int))
    np.histogram(x, weights=z)
    np.histogram(x, 4, weights=z.astype('F'), density=True)
    np.histogram(x, 4, weights=w, density=True)
    np.histogram(x, [-1, 0, 1], weights=w)
    np.histogram(x, [-1, 0, 2.5], weights=w.astype('f4'))
    np.histogram(x, [-1, 0, 1], weights=z)
    np.histogram(v, [-1, 0, 1])
    np.histogram(v, bins=np.array([-1.0, 0.5, 3]), density=True)
    np.histogram(v, np.linspace(-3, 3, 9))
    np.histogram(i, [0, 2, 6])
    np.histogram(v, [])
    np.histogram(v, [1])
    np.histogram(v, [0.0, 0.0, 1.0])
    np.histogram(v, (0, 1))
    np.histogram(v, np.arange(3, dtype='u1'))
    np.histogram([])
    np.histogram([], 3, density=True)
    np.histogram([], [0, 1, 2])
    np.histogram([[1, 2], [3, 4]], 2)
    np.histogram(3)
    np.histogram(np.ones(4), 3)
    np.histogram(v * 2 + 1, 5)
    np.histogram([0, 1], bins=np.int64(3))
    np.histogram(v, np.sum(i))
    np.histogram(v, 'auto')
    np.histogram(v, 'fd')
    np.histogram(v, 'sturges', (-1, 1))
    np.histogram_bin_edges(v, 'scott')
    np.histogram(i, 'auto')
    np.histogram([], 'rice')
    np.histogram_bin_edges(v, 'stone')
    ! np.histogram(v, 'auto', weights=v)
    ! np.histogram(v, 'nonsense')
    ! np.histogram(v, 0)
    ! np.histogram(v, -3)
    ! np.histogram(v, 2.5)
    ! np.histogram(v, [[1, 2]])
    ! np.histogram(v, [2, 1])
    ! np.histogram(v, range=(1, 0))
    ! np.histogram(v, range=(0, np.inf))
    ! np.histogram(v, range=(0, 1, 2))
    ! np.histogram(n)
    ! np.histogram(x, weights=w[:3])
    np.histogram(z)
    np.histogram_bin_edges(v)
    np.histogram_bin_edges(v, 3)
    np.histogram_bin_edges(v, 3, (0, 1))
    np.histogram_bin_edges(v.astype('f4'), 3)
    np.histogram_bin_edges(i, 4)
    np.histogram_bin_edges(v, [1, 2, 5])
    np.histogram_bin_edges([], 2)
    np.histogram_bin_edges(v, 3, weights=v)
    np.histogram_bin_edges(v * 2, 3)
    ! np.histogram_bin_edges(v, [2, 1])
    ! np.histogram_bin_edges(v, 0)
    ! np.histogram_bin_edges(n)
    np.histogram2d(x, y)
    np.histogram2d(x, y, 4)
    np.histogram2d(x, y, [3, 5])
    np.histogram2d(x, y, [[-1, 0, 1], 4])
    np.histogram2d(x, y, np.linspace(-2, 2, 5))
    np.histogram2d(x, y, 3, [[-1, 1], [-2, 2]])
    np.histogram2d(x, y, 3, density=True)
    np.histogram2d(x, y, 3, weights=w)
    np.histogram2d([1, 2], [3, 4], 2)
    ! np.histogram2d(x, y[:3])
    ! np.histogram2d(x, y, 0)
    ! np.histogram2d(x, y, [3, 2.5])
    np.histogramdd(p, 2)
    np.histogramdd(p, (2, 3, 4))
    np.histogramdd((x, y), 3)
    np.histogramdd([x, y], [2, [-1, 0, 2]], density=True)
    np.histogramdd(p, 2, [(-1, 1), None, (-2, 2)])
    np.histogramdd(x, 4)
    np.histogramdd(p * 2, 2, weights=w[:40])
    np.histogramdd([[], []], 2)
    np.histogramdd(i[:, None], 2)
    np.histogramdd([x, y], (np.arange(3), np.linspace(-1, 1, 4)))
    ! np.histogramdd(p, (2, 3))
    ! np.histogramdd(p, 0)
    ! np.histogramdd(p, [2, 3, [3, 1, 2]])
    ! np.histogramdd(p, 2, [(0, 1)])
    ! np.histogramdd(p, [2, 2, 2.5])
    ! np.histogramdd(p, 3, weights=w)
    np.digitize(v, [-1, 0, 1])
    np.digitize(v, [-1, 0, 1], right=True)
    np.digitize(i, [1, 4])
    np.digitize(i, [4, 1])
    np.digitize(i, [4, 1], True)
    np.digitize(0.5, [0, 1])
    np.digitize([], [1])
    np.digitize(a, [1.5, 3])
    np.digitize(n, [1, 2])
    np.digitize(v, [])
    np.digitize(v, np.sort(x) * 2)
    np.digitize(v, [1, 1])
    ! np.digitize(v, [1, 3, 2])
    ! np.digitize(z, [1])
    ! np.digitize(v, [[1]])
    ! np.digitize(v, 1)
    np.bincount(i)
    np.bincount(i, minlength=9)
    np.bincount(i, [1, 2, 3, 4.5])
    np.bincount(i, i)
    np.bincount([])
    np.bincount([], minlength=3)
    np.bincount(i.astype('u1'))
    np.bincount(i > 2)
    np.bincount(i * 2, minlength=np.int64(3))
    np.bincount([1, 2], weights=[1, 2])
    ! np.bincount(i - 3)
    ! np.bincount(v)
    ! np.bincount(a)
    ! np.bincount(i, [1, 2])
    ! np.bincount(i, minlength=-1)
    np.bincount(i.astype('u8'))
    ! np.bincount(i, z[:4])
    ! np.bincount(i, minlength=None)
    ! np.bincount(x=i)
    """,
)


@pytest.mark.parametrize("bounds", [(1 + numpy.finfo(numpy.longdouble).eps, 2), (0, 1 - numpy.finfo(numpy.longdouble).eps)])
def test_a_histogram_has_edges_of_a_wider_dtype(bounds: tuple[float, float]) -> None:
    for dtype in (numpy.float16, numpy.float32, numpy.float64):
        check(lambda np, dtype=dtype: np.histogram(np.array([1.0], dtype), 1, np.array(bounds, np.longdouble)))


def test_named_results_have_numpys_names() -> None:
    x = lazynp.array([3, 1, 3])
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        assert type(getattr(lazynp, name)(x)) is type(getattr(numpy, name)([1])), name
    assert all(type(part) is lazynp.ndarray for part in lazynp.unique_all(x))


@pytest.mark.usefixtures("processor")
@pytest.mark.usefixtures("recorded")
def test_what_has_a_known_shape_stays_pending() -> None:
    x = lazynp.arange(100.0) * 0.5
    small = lazynp.isin(x, [1, 2, 3])
    counts, edges = lazynp.histogram(x, 5)
    given, _ = lazynp.histogram(x, [0, 10, 20])
    where = lazynp.digitize(x, [3.0, 9.0])
    pending = [small, counts, edges, given, where]
    assert all(part._node.buffer is None for part in pending)
    assert len(lazynp.schedule(small).items) == 1
    y = numpy.arange(100.0) * 0.5
    want = [numpy.isin(y, [1, 2, 3]), *numpy.histogram(y, 5), numpy.histogram(y, [0, 10, 20])[0], numpy.digitize(y, [3.0, 9.0])]
    assert all(numpy.array_equal(numpy.asarray(p), w) for p, w in zip(pending, want, strict=True))


@pytest.mark.usefixtures("processor")
@pytest.mark.usefixtures("recorded")
def test_pending_data_out_of_its_mind_fails_with_the_counts() -> None:
    counts, edges = lazynp.histogram(lazynp.array([1.0, numpy.nan]) * 2)
    with pytest.raises(ValueError, match="autodetected range of"):
        numpy.asarray(counts)
    with pytest.raises(ValueError, match="autodetected range of"):
        numpy.asarray(edges)


def test_bool_data_is_counted_with_numpys_warning() -> None:
    for module in (numpy, lazynp):
        with pytest.warns(RuntimeWarning, match="Converting input from bool to"):
            counts, _ = module.histogram(module.array([True, False, True]), 2)
        assert numpy.asarray(counts).tolist() == [1, 2]
