# ruff: noqa: E501 - a case is one line of the table
"""Selecting, sorting, mathematics, linear algebra, transforms against NumPy."""

from __future__ import annotations

import numpy
import pytest

from tests.namespace.compare import DTYPES, check, expression, values

RNG = numpy.random.default_rng(3)
NAMES = {
    "a": numpy.arange(12.0).reshape(3, 4),
    "i": numpy.array([3, 1, 2]),
    "m": RNG.normal(size=(3, 3)) + 3 * numpy.eye(3),
    "v": RNG.normal(size=5),
    "z": RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3)),
    "n": numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.5]),
    "b": numpy.array([True, False, True]),
}

EXACT = [
    "np.where(a > 5, a, -a), np.where(a > 5, a, 0), np.where(a > 5, 1, 0), np.where(b, i, 2.5), np.where(b, 1, 1j), np.where(i, a[:, :3], 0)",
    "np.where(b, np.array([1, 2, 3], 'int8'), 300), np.where(b, np.float32(3), 2.0), np.where(True, 1, 2), np.where(b), np.where(a > 5)",
    "np.where(b, a, 0)",
    "np.where(b, 1)",
    "np.where(b, 'x', 'y'), np.where(b, None, 1)",
    "np.clip(a, 2, 7), np.clip(a, None, 7), np.clip(a, 2, None), np.clip(i, 1.5, 2.5), np.clip(a, [1, 2, 3, 4], 9), a.clip(3), a.clip(max=3)",
    "np.clip(i.astype('uint8'), -1, 300), np.clip(i.astype('int8'), -1000, 2), np.clip(n, 0, 1), np.clip(a, np.nan, 3), np.clip(5, 1, 3), np.clip(b, False, True)",
    "np.clip(a, min=2), np.clip(a, max=3), np.clip(a, None, None), np.clip(a, 2, 7, out=np.zeros((3, 4))), np.clip(i, np.float32(0), 2)",
    "np.clip(a)",
    "np.clip(a, 1)",
    "np.clip(a, 1, 2, min=3)",
    "np.clip(a, 2.5, 7, out=np.zeros((3, 4), int))",
    "np.clip(z, 0, 1)",
    "np.take(a, [0, 5]), np.take(a, 3), np.take(a, [[0, 1], [2, 0]], axis=1), np.take(i, [-1, 0]), a.take([1], 0), np.take(i, [0, 9], mode='clip')",
    "np.take(i, [0, 4, -5], mode='wrap'), np.take(a, [2, 0, 9], axis=1, mode='clip'), np.take(i, []), np.take(a, np.array(1), axis=0)",
    "np.take(i, [0, 3])",
    "np.take(i, [1.5])",
    "np.take(a, [0], axis=5)",
    "np.take(np.zeros(0), [0])",
    "np.take_along_axis(a, np.argsort(-a, axis=1), axis=1), np.take_along_axis(a, np.array([[0, 1, 2, 0]]), 0), np.take_along_axis(i, np.array([2]), None)",
    "np.take_along_axis(a, np.array([0]), axis=1)",
    "np.compress([True, False, True], a, axis=0), np.compress([0, 1], i), a.compress([1, 0, 1], 1), np.extract(a > 4, a)",
    "np.nonzero(a > 4), np.nonzero(i), np.flatnonzero(a), np.argwhere(a > 9), a.nonzero(), np.nonzero(np.zeros(3))",
    "np.nonzero(np.float64(3))",
    "np.select([a > 8, a > 4], [a, -a], 7), np.select([b], [i], default=2.5)",
    "np.select([i], [i])",
    "np.select([b], [])",
    "np.sort(i), np.sort(-a), np.sort(-a, axis=0), np.sort(-a, axis=None), np.sort(n), np.sort(z), np.sort(b), np.sort(i, kind='stable')",
    "np.argsort(i), np.argsort(-a, axis=0), np.argsort(-a, axis=None, kind='stable'), i.argsort(), np.argsort(5)",
    "np.sort(5)",
    "np.sort(a, axis=7)",
    "np.sort(a, kind='nonsense')",
    "np.sort(a, order='x')",
    "np.partition(i, 1)[1], np.argpartition(i, 0)[0], np.searchsorted([1, 2, 3], 2.5), np.searchsorted(np.arange(5), [2, 3], side='right')",
    "np.partition(i, 7)",
    "np.searchsorted(a, 3)",
    "np.searchsorted(i, 3, side='middle')",
    "np.unique([3, 1, 3]), np.unique(a, return_counts=True), np.isin(i, [1, 2]), np.union1d(i, [5]), np.intersect1d(i, [1, 9]), np.unique_counts([1, 1])",
    "np.round(v, 2), np.round(i, -1), np.round(i, 1), np.round(2.5), np.round(b), np.round(z, 1), np.round(v.astype('float16'), 1), v.round(3), np.around(a)",
    "np.fix(v), np.nan_to_num(n), np.nan_to_num(n, nan=3, posinf=9), np.nan_to_num(n.astype('float32')), np.nan_to_num(i), np.nan_to_num(z / 0)",
    "np.real(z), np.imag(z), z.real, z.imag, np.real(a), np.imag(a), np.real(3), np.conj(z), z.conj(), a.conj() is a, np.iscomplexobj(z), np.isreal(z)",
    "np.iscomplex(z), np.iscomplex(a), np.isrealobj(a), np.isposinf(n), np.isneginf(n)",
    "np.isposinf(z)",
    "np.isclose(a, a + 1e-9), np.isclose(n, n), np.isclose(n, n, equal_nan=True), np.isclose(i, 1), np.isclose(1, 1), np.allclose(a, a), np.allclose(a, a + 1)",
    "np.array_equal(a, a), np.array_equal(a, i), np.array_equal(n, n), np.array_equal(n, n, equal_nan=True), np.array_equiv(i, [i, i]), np.array_equal('a', 'a')",
    "np.diff(i), np.diff(a, 2), np.diff(a, axis=0), np.diff(b), np.diff(i, prepend=0), np.diff(i, append=[7, 8]), np.diff(i, 5), np.diff(a, 0), np.ediff1d(a)",
    "np.diff(5)",
    "np.diff(a, -1)",
    "np.cross([1, 2, 3], i), np.cross(a[:, :3], a[:, 1:]), np.cross(a[:, :3], i, axis=-1)",
    "np.cross(a, a)",
    "np.convolve(i, [1, 2]), np.convolve(a[0], i, 'same'), np.convolve(i, [0, 1, 0.5], 'valid'), np.correlate(a[0], i), np.correlate(i, i, 'full')",
    "np.convolve(i, [])",
    "np.interp(2.5, [1, 2, 3], [3, 2, 0]), np.interp([0, 1.5, 9], [1, 2, 3], [3, 2, 0], left=-1), np.interp(a, [0, 5, 20], [1, 0, 1])",
    "np.trapezoid(a), np.trapezoid(a, dx=0.5, axis=0), np.trapezoid(a, [0, 1, 3, 4]), np.trapezoid([1, 2, 3])",
    "a.astype(int), a.astype('float32'), i.astype(bool), a.astype('int8', copy=False), a.astype(float, copy=False) is a, a.T.astype(int).flags.f_contiguous",
    "a.astype('int8', casting='safe')",
    "a.astype('U5'), i.astype(object), np.astype(i, 'float32'), np.sum(a).astype(int), a[0, 1].astype('float16')",
    "np.result_type(a, i), np.result_type(i, 1.0), np.result_type('f4', 3), np.can_cast(i.dtype, 'f8'), np.promote_types('i1', 'u1'), np.min_scalar_type(3)",
    "np.isscalar(np.sum(a)), np.isscalar(3), np.isscalar(a), np.finfo(np.float32).eps, np.iinfo(np.int8).max, np.finfo(a.dtype).max, np.issubdtype(a.dtype, np.floating)",
    "np.isdtype(a.dtype, 'real floating'), np.issubdtype(np.int8, np.integer), np.common_type(a, z) is not None, np.dtype(np.float32), np.isdtype(np.int8, np.int8)",
    "np.polyval([1, 2], a), np.gradient(a[0]), np.histogram(a, 3), np.bincount(i), np.meshgrid(i, i)[0], np.apply_along_axis(np.sum, 0, a), np.unwrap(v)",
    "np.packbits(b), np.bitwise_count(i), np.gcd(i, 2), np.lcm(i, 6), np.tri(2), np.kron(i, [1, 2]), np.kron(a[:2, :2], m)",
    "np.ix_(i, i), np.unravel_index(5, (3, 4)), np.ravel_multi_index(([1], [2]), (3, 4)), np.triu_indices(2)",
    "np.linalg.matrix_rank(m), np.ma.masked_array([1, 2], [True, False]).sum(), np.polynomial.polynomial.polyval(2, [1, 2])",
    "np.piecewise(a, [a < 3], [0, 1]), np.vectorize(lambda x: x + 1)(i), np.array_repr(a), np.array2string(i), np.array_str(a)",
    "np.iterable(a), np.iterable(np.sum(a)), np.may_share_memory(a, a), np.shares_memory(a, i), np.isfortran(a.T)",
]

CLOSE = [
    "a @ a.T, a @ i[:1].repeat(4), np.dot(a, a.T), np.dot(i, i), np.dot(a, 2), np.dot(2, 3), np.matmul(i, i), np.matmul(a.astype('float32'), a.T)",
    "np.matmul(np.ones((2, 1, 3, 4)), np.ones((5, 4, 2))), np.matmul(b, b), np.matmul(np.ones((0, 3)), np.ones((3, 2))), np.matmul(z, z.T)",
    "np.matmul(a, a)",
    "np.matmul(a, 3)",
    "np.matmul(i, np.ones(4))",
    "np.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 5)))",
    "np.matmul(a, a.T, out=np.zeros((3, 3)))",
    "np.matmul(a, a.T, out=np.zeros((3, 2)))",
    "np.matmul(a, a.T, out=np.zeros((3, 3), int))",
    "np.matmul('a', a)",
    "np.dot(a, a)",
    "np.dot(a, a.T, out=np.zeros((3, 3), int))",
    "np.dot(np.ones((2, 3, 4)), np.ones((5, 4, 6))), np.dot(np.ones((2, 3, 4)), np.ones(4)), a.dot(a.T), np.dot(i.astype('int8'), 2), np.dot(a.astype('f4'), 2.0)",
    "np.inner(a, a), np.inner(i, i), np.inner(a, 2), np.outer(i, a), np.outer(2, i), np.vdot(z, z), np.vdot(a, a), np.vdot(i, 1 * i)",
    "np.inner(a, i)",
    "np.vdot(a, i)",
    "np.tensordot(a, a, ([1], [1])), np.tensordot(a, a), np.tensordot(i, i, 0), np.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 2)), ([1, 2], [1, 0]))",
    "np.tensordot(a, a, 1)",
    "np.tensordot(a, a, ([5], [0]))",
    "np.einsum('ij,kj->ik', a, a), np.einsum('ij->', a), np.einsum('ii', m), np.einsum('ij,j', a, a[0]), np.einsum('i,j,k->ijk', i, i, i), np.einsum('...i->...', a)",
    "np.einsum('ij,jk', a, a)",
    "np.einsum('ij', i)",
    "np.einsum('ij->ijk', a)",
    "np.einsum('i,i')",
    "np.einsum(a, [0, 1], [1, 0]), np.einsum('ij->ji', a), np.einsum('ij->i', a, dtype='float32', casting='same_kind')",
    "np.einsum('ij->i', a, dtype='float32')",
    "np.vecdot(a, a), np.matvec(a, a[0]), np.vecmat(i, a), np.vecdot(z, z)",
    "np.vecdot(a, i)",
    "np.linalg.inv(m), np.linalg.det(m), np.linalg.solve(m, i), np.linalg.solve(m, a), np.linalg.cholesky(m @ m.T), np.linalg.matrix_power(m, 5)",
    "np.linalg.inv(a)",
    "np.linalg.inv(i)",
    "np.linalg.solve(m, a.T)",
    "np.linalg.det(m.astype('float16'))",
    "np.linalg.norm(a), np.linalg.norm(i), np.linalg.norm(a, axis=1), np.linalg.norm(z), np.linalg.norm(a, 2), np.linalg.norm(a, axis=0, keepdims=True), np.linalg.norm(i, 1)",
    "np.linalg.matrix_power(m, -2), np.linalg.pinv(m), np.linalg.eigvalsh(m + m.T), np.linalg.matrix_power(m, 0), np.linalg.slogdet(m)",
    "np.angle(z), np.angle(a - 3), np.angle(z, deg=True), np.angle(1j), np.sinc(v), np.sinc(0)",
    "np.fft.fft(v), np.fft.ifft(z), np.fft.rfft(v), np.fft.irfft(z), np.fft.fft(v.astype('float32')), np.fft.fft(v, 8), np.fft.fft2(a), np.fft.fftn(a, norm='ortho')",
    "np.fft.fftshift(v), np.fft.ifftshift(a), np.fft.fftfreq(5), np.fft.rfft(v, axis=0), np.fft.irfft(z, 7), np.fft.rfftn(a), np.fft.hfft(z)",
    "np.fft.fft(5)",
    "np.fft.fft(v, 0)",
    "np.fft.fft(v, axis=3)",
]


@pytest.mark.parametrize("text", EXACT)
def test_exact(text: str) -> None:
    expression(text, 0, **NAMES)


@pytest.mark.parametrize("text", CLOSE)
def test_close(text: str) -> None:
    # Another order of the sums in a contraction: far from cancellation a few ulps, near it an absolute error.
    expression(text, 1 << 12, **NAMES)


@pytest.mark.parametrize("name", ["sort", "argsort", "clip", "where", "round", "diff", "isclose", "nan_to_num"])
def test_over_dtypes(name: str) -> None:
    calls = {
        "clip": lambda np, x: np.clip(x, 0, 2),
        "where": lambda np, x: np.where(x > 1, x, 0),
        "isclose": lambda np, x: np.isclose(x, 1),
        "argsort": lambda np, x: np.argsort(x, kind="stable"),
    }
    for dtype in DTYPES:
        call = calls.get(name, lambda np, x: getattr(np, name)(x))
        x = values(dtype)
        check(lambda np, x=x, c=call: c(np, np.array(x)), 0, f"{name} {dtype}")


def test_sort_and_fill_write_in_place() -> None:
    def run(np: object) -> object:
        x = np.array([3.0, 1.0, 2.0, 9.0])  # type: ignore[attr-defined]
        x[:3].sort()
        y = np.zeros((2, 2), int)  # type: ignore[attr-defined]
        y.fill(2.7)
        y[0].fill(5)
        return x, y

    check(run)


def test_writing_functions_write() -> None:
    def run(np: object) -> object:
        x = np.zeros((3, 3))  # type: ignore[attr-defined]
        np.fill_diagonal(x, 2)  # type: ignore[attr-defined]
        np.put(x, [1, 2], [7, 8])  # type: ignore[attr-defined]
        np.copyto(x[2], [1, 2, 3])  # type: ignore[attr-defined]
        np.copyto(x[1], 9, where=np.array([True, False, False]))  # type: ignore[attr-defined]
        np.place(x, x == 2, [4])  # type: ignore[attr-defined]
        np.putmask(x, x == 0, [-1])  # type: ignore[attr-defined]
        y = np.arange(3)  # type: ignore[attr-defined]
        np.put_along_axis(y, np.array([0]), 5, 0)  # type: ignore[attr-defined]
        return x, y

    check(run)
