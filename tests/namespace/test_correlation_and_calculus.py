# ruff: noqa: E501 - a case is one line of the table
"""Covariance, gradients, integrals, interpolation, convolution, phases against NumPy, with no call answered by NumPy itself."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator

import numpy
import pytest

import lazynp
from lazynp.namespace import names
from tests.namespace.compare import DTYPES, check, expression, table

RNG = numpy.random.default_rng(8)


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    lazynp.set_fallback("error")
    yield
    lazynp.set_fallback("silent")


NAMES = {
    "a": RNG.normal(size=(3, 5)),
    "b": RNG.normal(size=(2, 5)),
    "v": RNG.normal(size=6),
    "i": numpy.array([[1, 5, 2, 9], [4, 4, 8, 0]]),
    "z": RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)),
    "w": numpy.array([1, 2, 0, 3, 1]),
    "c": RNG.normal(size=(4, 5, 6)),
    "p": numpy.array([0, 0.5, 4.0, 9.5, -2.0, 3.1, 3.1 + numpy.pi, 0.0]),
    "t": numpy.array([0.0, 1, 1.5, 3, 4, 4.5]),
    "n": numpy.array([1.0, numpy.nan, 2.0, 5.0]),
}

test_close_cases = table(
    NAMES,
    """
    np.cov(a)
    np.cov(a, rowvar=False)
    np.cov(a, b)
    np.cov(a[0], b[1])
    np.cov(v)
    np.cov(i)
    np.cov(a, bias=True)
    np.cov(a, ddof=0)
    np.cov(a, ddof=2.0)
    np.cov(a.astype('f4'))
    np.cov(a, dtype='f4')
    np.cov(z)
    np.cov(z, dtype='F')
    np.cov(i, i.astype('f4'))
    np.cov(a.T, b.T, rowvar=False)
    np.cov([1.0, 2.0, 4.0])
    np.cov(a * 2)
    np.cov(a, fweights=w)
    np.cov(a, aweights=w)
    np.cov(a, fweights=w, aweights=w * 0.5)
    np.cov(a, aweights=w, ddof=0)
    np.cov(a, fweights=w, ddof=2)
    np.cov(a, fweights=w, aweights=w, bias=True)
    np.cov(z, aweights=[1, 2, 3, 0.5])
    np.cov(a, fweights=[1.0, 2, 1, 1, 0])
    np.cov(np.zeros((0, 3)))
    np.cov(np.zeros((2, 0)))
    np.cov([])
    np.cov(np.zeros((3, 1)))
    np.cov(3.0)
    np.cov(n)
    ! np.cov(c)
    ! np.cov(a, c)
    ! np.cov(a, ddof=1.5)
    ! np.cov(a, fweights=w + 0.5)
    ! np.cov(a, fweights=-w)
    ! np.cov(a, fweights=w[:3])
    ! np.cov(a, fweights=[w])
    ! np.cov(a, aweights=-w)
    ! np.cov(a, aweights=w[:2])
    ! np.cov(a, aweights=[w])
    ! np.cov(a, b[:, :2])
    np.corrcoef(a)
    np.corrcoef(a, b)
    np.corrcoef(a, rowvar=False)
    np.corrcoef(v)
    np.corrcoef(z)
    np.corrcoef(i)
    np.corrcoef(a, dtype='f4')
    np.corrcoef(a[0], a[1])
    np.corrcoef(np.zeros((2, 3)))
    np.corrcoef(np.zeros((0, 2)))
    np.corrcoef([1.0])
    np.corrcoef(z, dtype='F')
    ! np.corrcoef(c)
    """,
    ulps=512,
)

test_cases = table(
    NAMES,
    """
    np.gradient(v)
    np.gradient(a)
    np.gradient(a, axis=0)
    np.gradient(a, 2)
    np.gradient(a, 2, 0.5)
    np.gradient(v, t)
    np.gradient(v, t, edge_order=2)
    np.gradient(v, edge_order=2)
    np.gradient(v, 3, edge_order=2)
    np.gradient(v, [0, 2, 4, 6, 8, 10])
    np.gradient(a, [0, 1, 4], 0.5)
    np.gradient(c, axis=(0, -1))
    np.gradient(c, 2.0, axis=(1,))
    np.gradient(c, t[:4], 1, axis=(0, 2))
    np.gradient(i, axis=1)
    np.gradient(i.astype('u1'), axis=1)
    np.gradient(a.astype('f4'), axis=0)
    np.gradient(a.astype('f4'), t[:3], axis=0)
    np.gradient(a.astype('f2'), 2, axis=1)
    np.gradient(z, axis=0)
    np.gradient(v, np.float32(2))
    np.gradient(v, np.arange(6))
    np.gradient(a.T, axis=0).flags.f_contiguous
    np.gradient(v, np.sum(v))
    np.gradient(v, t * 2)
    np.gradient([1, 2])
    np.gradient(v.astype('f4'), t.astype('f4'), edge_order=2)
    np.gradient(a, axis=())
    ! np.gradient(i > 3, axis=1)
    ! np.gradient(v, [1, 2])
    ! np.gradient(v, [[1, 2]])
    ! np.gradient(a, 1, 2, 3)
    ! np.gradient(v, edge_order=3)
    ! np.gradient([1])
    ! np.gradient([1, 2], edge_order=2)
    ! np.gradient(a, axis=2)
    ! np.gradient(a, axis=(0, 0))
    np.gradient(3.0)
    ! np.gradient(v, t, axis=0, nonsense=1)
    np.unwrap(p)
    np.unwrap(p, 4)
    np.unwrap(p, axis=0)
    np.unwrap(p, period=4)
    np.unwrap(i, period=6)
    np.unwrap(i, period=5)
    np.unwrap(i, period=6, axis=0)
    np.unwrap(a * 9)
    np.unwrap(p.astype('f4'))
    np.unwrap(p.astype('f2'))
    np.unwrap(i, discont=3, period=4)
    np.unwrap(c, axis=1)
    np.unwrap([1.0])
    np.unwrap([])
    np.unwrap(n)
    np.unwrap(i.astype('i1'), period=7)
    np.unwrap(i.astype('f4'), period=np.float64(3))
    np.unwrap(np.zeros((0, 3)), axis=0)
    ! np.unwrap(3.0)
    ! np.unwrap(p, axis=1)
    ! np.unwrap(z)
    np.i0(v)
    np.i0(3)
    np.i0(3.0)
    np.i0(i)
    np.i0(a.astype('f4'))
    np.i0(v.astype('f2'))
    np.i0([])
    np.i0(n)
    np.i0(c * 5)
    ! np.i0(z)
    np.trapezoid(a)
    np.trapezoid(a, dx=0.5, axis=0)
    np.trapezoid(a, [0, 1, 3, 4, 6])
    np.trapezoid([1, 2, 3])
    np.trapezoid(v, t)
    np.trapezoid(a, a)
    np.trapezoid(i, dx=2)
    np.trapezoid(z, axis=0)
    np.trapezoid(i > 3)
    np.trapezoid([])
    np.trapezoid([1])
    np.trapezoid(a.astype('f4'))
    np.trapezoid(c, t[:4], axis=0)
    np.trapezoid(a, dx=[1, 2, 3, 4])
    np.trapezoid(i, x=[1, 2, 4, 8], axis=1)
    ! np.trapezoid(3)
    ! np.trapezoid(a, axis=2)
    ! np.trapezoid(a, a, axis=2)
    np.trapezoid(a, [1, 2])
    ! np.trapezoid(a, 3)
    np.interp(2.5, [1, 2, 3], [3, 2, 0])
    np.interp(v, t, v)
    np.interp(a, t, v, left=-1, right=7)
    np.interp([0, 5, 361], [10, 350, 180], [1, 2, 3], period=360)
    np.interp(v, t, v, period=-3.0)
    np.interp(1, t, 1j * v)
    np.interp(v, t, 1j * v, left=1, right=2j)
    np.interp(v, t, 1j * v, period=4)
    np.interp([], t, v)
    np.interp(i, t, v.astype('f4'))
    np.interp(n, t, v)
    np.interp(v, [1], [2])
    np.interp(2, t, v, np.sum(v))
    np.interp(np.float32(1.2), t, v)
    np.interp(i > 2, t, v)
    np.interp(v, np.arange(40) % 7, np.arange(40.0), period=3)
    np.interp(v, np.arange(40) % 3, np.arange(40) * 1j, period=3)
    np.interp(v, np.arange(300.0)[::-1], np.arange(300), period=5)
    np.interp(v, [1, 4, 7], [1, 2, 3], period=3)
    ! np.interp(v, t, v[:3])
    ! np.interp(v, [], [])
    ! np.interp(v, [t], [v])
    ! np.interp(v, 3, 4)
    ! np.interp(v, t, v, period=0)
    ! np.interp(v, t, v[:3], period=2)
    ! np.interp(v, [t], [v], period=2)
    ! np.interp(z, t, v)
    ! np.interp(v, t, v, left=1j)
    ! np.interp(v, t, v, left='x')
    np.cross([1, 2, 3], i[0, :3])
    np.cross(a[:, :3], a[:, 1:4])
    np.cross(a[:, :3], v[:3], axis=-1)
    np.cross(c[:, :3], c[:, 1:4], axis=1)
    np.cross(c[..., :3], c[..., 2:5], axisc=0)
    np.cross(a, a.T, 0, 1)
    np.cross(z.T[:, :3], [1, 2, 3])
    np.cross([1, 2], [3, 4])
    np.cross([1, 2, 3], [4, 5])
    np.cross([4, 5], [1, 2, 3])
    np.cross(b.T, b.T)
    np.cross(b.T, v[:3])
    np.cross(i[:, :3].astype('u1'), [1, 1, 2])
    ! np.cross(a, a)
    ! np.cross(1, [1, 2, 3])
    ! np.cross(a[:, :3], a[:, :3], axis=2)
    ! np.cross(a[:, :3], a[:2, :3])
    ! np.cross(a[:, :3] > 0, a[:, :3] > 0)
    np.kron(v, t)
    np.kron(i, [1, 2])
    np.kron(a, i)
    np.kron(2, i)
    np.kron(2, 3)
    np.kron(i, 3.5)
    np.kron(c, v)
    np.kron([], v)
    np.kron(i.T, z)
    np.kron(i > 2, [True, False])
    np.kron(np.array(2), np.array(3))
    np.convolve(v, [1, 2])
    np.convolve(v, t, 'same')
    np.convolve(i[0], [0, 1, 0.5], 'valid')
    np.convolve([1, 2], v)
    np.convolve(3, 4)
    np.convolve(z[0], z[1])
    np.convolve(i[0] > 2, [True, False])
    np.convolve(v.astype('f4'), [1, 2])
    np.convolve(i[0].astype('i1'), i[1].astype('u1'))
    np.convolve(v * 2, v, mode='full')
    np.convolve(v.astype('f2'), v[:2].astype('f2'))
    ! np.convolve(v, [])
    ! np.convolve([], v)
    ! np.convolve(a, v)
    ! np.convolve(v, t, 'nonsense')
    np.correlate(v, t)
    np.correlate(v, [1, 2, 3])
    np.correlate([1, 2], v)
    np.correlate(v, t, 'full')
    np.correlate(v, t[:3], 'same')
    np.correlate(z[0], z[1])
    np.correlate(z[0], z[1], 'full')
    np.correlate(i[0], [0.5])
    np.correlate(i[0] > 2, i[1] > 2)
    np.ediff1d(a)
    np.ediff1d(i, 9)
    np.ediff1d(i, to_begin=[1, 2])
    np.ediff1d(i.astype('i1'), to_end=300, to_begin=2)
    np.ediff1d([])
    np.ediff1d(3, 4)
    np.ediff1d(v, a, i)
    ! np.ediff1d(i, 1.5)
    ! np.ediff1d(i > 2)
    ! np.correlate(v, [])
    ! np.correlate([], v)
    ! np.correlate(3, 4)
    ! np.correlate(a, v)
    ! np.correlate(v, t, mode='nonsense')
    """,
    ulps=8,
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = RNG.integers(0, 9, (3, 6)).astype(dtype)
    for text in (
        "np.gradient(x, axis=1)", "np.gradient(x, 2, axis=0, edge_order=2)", "np.unwrap(x)", "np.unwrap(x, period=4)", "np.trapezoid(x)",
        "np.trapezoid(x, dx=2)", "np.interp(x, [0, 9], [1, 2])", "np.interp(3, x[0] * 0 + np.arange(6), x[1])", "np.convolve(x[0], x[1])",
        "np.correlate(x[0], x[1], 'same')", "np.cross(x[:, :3], x[:, 3:])", "np.kron(x, x[:2])", "np.i0(x)", "np.digitize(x, [2, 5])",
    ):  # fmt: skip
        expression(text, 8, x=x)
    for text in ("np.cov(x)", "np.corrcoef(x)", "np.cov(x, x, False)"):
        expression(text, 1 << 12, x=x)


@pytest.mark.usefixtures("recorded")
def test_gradients_and_phases_fuse() -> None:
    x = lazynp.array(RNG.normal(size=100))
    g = lazynp.gradient(x * 2) + lazynp.unwrap(x)
    assert g._node.buffer is None
    y = numpy.asarray(x)
    assert numpy.allclose(numpy.asarray(g), numpy.gradient(y * 2) + numpy.unwrap(y))


TOPICS = {"order_statistics", "nan_functions", "sets", "histograms", "correlation", "calculus"}


def test_signatures_are_numpys() -> None:
    for name in [*[n for n, topic in names.LATER.items() if topic in TOPICS], "cross", "ediff1d", "median", "searchsorted", "partition", "argpartition", "mean", "average"]:
        assert inspect.signature(getattr(lazynp, name)) == inspect.signature(getattr(numpy, name)), name
        assert getattr(lazynp, name).__name__ == name


LOADED = """
import sys
import lazynp as np

def is_loaded(module):
    return f"lazynp.namespace.{module}" in sys.modules

x, m = np.array([1.0, 2.0]), np.eye(2)
answers = np.median(x), np.concatenate([x, x]), np.dot(x, x), np.linalg.norm(x), np.linalg.solve(m, x), np.diff(x), np.bincount([1])
assert [float(np.sum(y)) for y in answers] == [1.5, 6.0, 5.0, 5.0**0.5, 3.0, 1.0, 1.0]
for module in "routines.order_statistics", "routines.joining", "submodules.linalg", "routines.mathematics", "routines.histograms":
    assert not is_loaded(module), module
assert np.median.__name__ == "median" and is_loaded("routines.order_statistics")
assert np.concat is np.concatenate and not is_loaded("routines.joining")
large = np.arange(2e6)
assert np.concatenate([large, large[:1]])[-1] == 0 and is_loaded("routines.joining")
"""


def test_functions_are_loaded_where_numpys_answer_will_not_do() -> None:
    subprocess.run([sys.executable, "-c", LOADED], check=True)


PATCHED = """
import functools
import numpy
numpys = numpy.linalg.det
numpy.linalg.det = functools.wraps(numpys)(lambda *args, **kwargs: numpys(*args, **kwargs))
import lazynp
assert float(lazynp.linalg.det(lazynp.eye(2) * 2)) == 4.0
"""


def test_a_function_of_numpys_that_a_program_has_wrapped_is_found() -> None:
    subprocess.run([sys.executable, "-c", PATCHED], check=True)


def test_foreign_operands_are_numpys_and_counted() -> None:
    text = numpy.array(["b", "a", "b"])
    lazynp.set_fallback("silent")
    check(lambda np: np.unique(text, return_counts=True))
    lazynp.set_fallback("error")
    with pytest.raises(RuntimeError, match=r"numpy.unique is answered by NumPy itself"):
        lazynp.unique(text)
