"""Windows, positions, edits, grids, ranges, choices, packing and emath against NumPy."""

from __future__ import annotations

import types
import warnings

import numpy
import pytest

import lazynp
from tests.namespace.compare import DTYPES, check, table, values

RNG = numpy.random.default_rng(3)
NAMES = {
    "a": numpy.arange(12.0).reshape(3, 4),
    "f": numpy.asfortranarray(numpy.arange(12).reshape(3, 4)),
    "i": numpy.array([3, 1, 2]),
    "j": numpy.array([0, 1, 1, 0]),
    "m": RNG.normal(size=(3, 3)),
    "v": RNG.normal(size=5),
    "z": RNG.normal(size=3) + 1j * RNG.normal(size=3),
    "n": numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.5]),
    "b": numpy.array([True, False, True]),
    "u": numpy.array([[7, 130, 1], [255, 0, 3]], "uint8"),
    "t": numpy.array([0, 0, 1, 2, 0, 3, 0]),
    "e": numpy.zeros((0, 3)),
    "s": numpy.array(2.5),
}

test_exact = table(
    NAMES,
    """
    # windows
    np.bartlett(0)
    np.bartlett(1)
    np.bartlett(7)
    np.bartlett(8)
    np.hanning(1)
    np.hamming(0.5)
    np.blackman(-3)
    np.kaiser(1, 2)
    np.kaiser(5, 0)
    np.bartlett(3.5)
    np.bartlett(np.float32(4))
    # choosing
    np.choose(j, [a[0], -a[0]])
    np.choose([0, 1], [[1, 2], [3.5, 4]])
    np.choose([[0], [1]], [[1, 2], [3, 4]])
    np.choose([0, 5, -1], [[1, 2, 3], 9], mode='clip')
    np.choose([0, 5, -1], [[1, 2, 3], 9], mode='wrap')
    np.choose(1, [1, 2])
    np.choose(b, [i, 5])
    np.choose(j, [1, 2, 300])
    np.choose(j, [np.int8(1), 300])
    j.choose([5, 6])
    np.choose(j, [a[0], 2], out=np.zeros(4))
    np.choose(j, a[:2])
    np.choose([0, 0], [i[:2]])
    np.choose(np.zeros(0, int), [1, 2])
    ! np.choose([0, 9], [1, 2])
    ! np.choose([0.0, 1], [1, 2])
    ! np.choose(j, [1, 2], mode='x')
    ! np.choose(j, [])
    ! np.choose(j, [1, 2], out=np.zeros(3))
    ! np.choose([0, 1, 2], [[1, 2], [3, 4]])
    np.piecewise(a, [a < 3, a > 5], [-1, 1])
    np.piecewise(a, [a < 3], [0, lambda x: x * 2])
    np.piecewise(v, [v < 0, v >= 0], [lambda x, k: x * k, lambda x, k: x + k], 3)
    np.piecewise(2.0, [True], [5])
    np.piecewise(i, i > 1, [7, 8])
    np.piecewise(i, [b], [2.9])
    ! np.piecewise(a, [a < 3], [1, 2, 3])
    np.select([a > 8, a > 4], [a, -a], 7)
    np.select([b, b], [i, i[:, None]])
    np.select([a > 3], [a], default=np.nan)
    np.trim_zeros(t)
    np.trim_zeros(t, 'f')
    np.trim_zeros(t, 'B')
    np.trim_zeros([0, 1, 0])
    np.trim_zeros(np.zeros(3))
    np.trim_zeros(np.diag([0, 1, 0]))
    np.trim_zeros(np.diag([0, 1, 0]), axis=0)
    np.trim_zeros((0, 2, 0))
    ! np.trim_zeros(t, 'q')
    np.real_if_close(z)
    np.real_if_close(z.real + 0j)
    np.real_if_close([1 + 1e-15j, 2])
    np.real_if_close(i)
    np.real_if_close(np.array([1 + 1e-3j]), tol=1e-2)
    np.real_if_close(2 + 0j)
    np.real_if_close([1 + 1e-13j], 1000)
    np.apply_along_axis(np.sum, 0, a)
    np.apply_along_axis(np.cumsum, 1, a)
    np.apply_along_axis(lambda x: x[:2] * 2, 0, a)
    np.apply_along_axis(lambda x: np.outer(x, x), 1, a)
    np.apply_along_axis(np.sum, 0, i)
    np.apply_along_axis(sorted, 1, -a)
    np.apply_along_axis(lambda x, k, w=1: x.max() * k + w, -1, a, 2, w=5)
    ! np.apply_along_axis(np.sum, 5, a)
    ! np.apply_along_axis(np.sum, 1, e)
    np.apply_over_axes(np.sum, a, [0, 1])
    np.apply_over_axes(np.sum, a, -1)
    np.apply_over_axes(lambda x, k: np.sum(x, k, keepdims=True), a, (0,))
    ! np.apply_over_axes(lambda x, k: x[0, 0], a, [0])
    # edits
    np.delete(i, 1)
    np.delete(a, 1)
    np.delete(a, 1, 0)
    np.delete(a, [0, 2], 1)
    np.delete(a, slice(0, 3, 2), 1)
    np.delete(a, slice(3, 0, -1), 1)
    np.delete(i, [])
    np.delete(i, b)
    np.delete(i, [0, -1])
    np.delete(f, 1, 0)
    np.delete(i, np.array([1]))
    np.delete(a, slice(5, 2), 1)
    np.delete([1, 2, 3], -1)
    np.delete(f, 1, 0).flags.f_contiguous
    np.delete(f, [0], 1).strides
    np.delete(a, slice(1, 3), 1)
    np.delete(i, i - 1)
    np.delete(i, np.sum(b))
    np.delete(a, [[0, 1]], 0)
    ! np.delete(i, 9)
    ! np.delete(i, [0, 9])
    ! np.delete(a, 1, 5)
    ! np.delete(i, [True, False])
    ! np.delete(i, 1.5)
    np.insert(i, 1, 9)
    np.insert(a, 1, 9)
    np.insert(a, 1, [1, 2, 3], axis=1)
    np.insert(a, [1], [[1], [2], [3]], axis=1)
    np.insert(a, 1, [7, 8, 9, 10], axis=0)
    np.insert(i, [0, 2], [7, 8])
    np.insert(i, [0, 0], 7)
    np.insert(i, slice(0, 2), [5, 6])
    np.insert(i, [], [])
    np.insert(i, -1, 2.7)
    np.insert(i, 3, 1)
    np.insert(i, b, 5)
    np.insert(f, 1, 0, axis=0)
    np.insert(f, 1, 0, axis=0).flags.f_contiguous
    np.insert(a, [0, 3], [[1], [2], [3]], 1)
    np.insert(a, np.array([2, 0]), a[:2], 0)
    np.insert(i, 1, [4, 5])
    np.insert([1, 2], [1], [9.5])
    np.insert(i, np.sum(b), v[0])
    ! np.insert(i, 9, 1)
    ! np.insert(i, [0, 9], 1)
    ! np.insert(i, [[0]], 1)
    ! np.insert(i, [0, 1], [1, 2, 3])
    ! np.insert(i, 1.5, 1)
    np.resize(i, 7)
    np.resize(a, (2, 3))
    np.resize(a, (5, 5))
    np.resize(i, 0)
    np.resize([], (2, 2))
    np.resize(i, ())
    np.resize(3, (2,))
    np.resize(f, 4)
    np.resize(b, (2, 2))
    ! np.resize(i, (-1, 2))
    ! np.resize(i, 2.5)
    np.append(i, 3)
    np.append(a, a, 0)
    np.require(i, float)
    np.require(f, requirements='C').flags.c_contiguous
    np.require(a, 'f4', ['F', 'W']).flags.f_contiguous
    np.require(a[0], None, ['O']).flags.owndata
    np.require([1, 2], requirements=['A', 'E'])
    ! np.require(a, None, ['C', 'F'])
    ! np.require(a, None, ['Q'])
    np.row_stack([i, i])
    # positions
    np.ix_(i, b)
    np.ix_([], [0])
    np.ix_(i)
    np.ix_([True, False], i)
    a[np.ix_([0, 2], [1, 3])]
    np.ix_()
    ! np.ix_(a)
    np.diag_indices(3)
    np.diag_indices(2, 3)
    np.diag_indices_from(m)
    np.tril_indices(3)
    np.triu_indices(3, 1, 4)
    np.tril_indices_from(a, -1)
    np.triu_indices_from(a)
    np.mask_indices(3, np.triu, 1)
    a[np.triu_indices_from(a)]
    ! np.diag_indices_from(a)
    ! np.diag_indices_from(i)
    ! np.tril_indices_from(i)
    ! np.triu_indices_from(i)
    np.unravel_index(i, (2, 3))
    np.unravel_index(5, (3, 4))
    np.unravel_index([1, 2], (2, 2), order='F')
    np.ravel_multi_index((i, i), (4, 5))
    np.ravel_multi_index([[3, 9]], (4,), mode='clip')
    np.ravel_multi_index((1, 2), (3, 4))
    ! np.unravel_index(99, (2, 3))
    ! np.ravel_multi_index((i, i), (2, 2))
    # grids
    np.r_[1:4, 0, i]
    np.r_[0:1:5j]
    np.r_['0,2', i, i]
    np.r_['1,2,0', i, i]
    np.r_['-1', a, a]
    np.c_[i, v[:3]]
    np.c_[a, a]
    np.c_[1:4]
    np.r_[i, 1.5]
    np.r_[np.float32(1), i.astype('i1')]
    np.r_[1, 2.5]
    np.r_[b, 1]
    np.c_[i, 0 * i, i]
    len(np.r_)
    ! np.r_['x', i]
    ! np.r_[i, 'r']
    np.mgrid[0:3, 0:2]
    np.mgrid[0:5:2]
    np.mgrid[0:1:3j, 0:2]
    np.mgrid[-1:1:0.5]
    np.mgrid[2:0]
    np.ogrid[0:3, 0:2]
    np.ogrid[0:1:3j, 0:2:5j]
    np.mgrid[0:1:1j]
    np.ogrid[0:4]
    np.mgrid[0:3.5, 1:2]
    np.mgrid[:3, :2:1]
    np.ogrid[0:3, 0:1:2j]
    np.s_[1:2, ...]
    np.index_exp[1]
    # ranges
    np.linspace(0, 1, 5)
    np.linspace(0, 1, 0)
    np.linspace(0, 1, 1)
    np.linspace(3, 3, 4)
    np.linspace(0, 10, 4, False)
    np.linspace(0, 10, 5, dtype=int)
    np.linspace(0, i, 3)
    np.linspace(i, v[:3], 4, axis=1)
    np.linspace(0, 1, 3, retstep=True)
    np.linspace(0, [1, 2], 3, retstep=True)
    np.linspace(i, i, 3)
    np.linspace(np.float32(0), 1, 3)
    np.linspace(0, np.float16(1), 3)
    np.linspace(0, 1j, 3)
    np.linspace(b, 2, 3)
    np.linspace(np.sum(i), 10, 3)
    np.linspace(-5, 5, 7, dtype='i1')
    np.linspace(0, 1, 3, endpoint=False, retstep=True)
    np.linspace(0, 5e-324, 3)
    np.linspace(a, 2 * a, 3, axis=-1)
    ! np.linspace(0, 1, -1)
    ! np.linspace(0, 1, 2.5)
    # packing
    np.packbits(b)
    np.packbits(u)
    np.packbits(u, axis=0)
    np.packbits(u > 3, axis=1, bitorder='little')
    np.packbits(np.zeros((0, 3), bool))
    np.unpackbits(u)
    np.unpackbits(u, axis=1)
    np.unpackbits(u, axis=0, count=5)
    np.unpackbits(u[0], count=-3)
    np.unpackbits(u[0], count=40)
    np.unpackbits(u, bitorder='little')
    np.packbits(i)
    ! np.packbits(v)
    ! np.packbits(b, axis=3)
    ! np.packbits(b, bitorder='x')
    ! np.unpackbits(i)
    ! np.unpackbits(u[0], count=-99)
    np.einsum_path('ij,jk', a, a.T)[0]
    np.einsum_path(a, [0, 1], a, [0, 1])[0]
    # printing
    np.array2string(a)
    np.array2string(v, precision=2, separator=',')
    np.array_repr(i)
    np.array_str(a.T)
    np.format_float_positional(v[0])
    np.format_float_scientific(np.float32(1.1), precision=3)
    np.array_repr(e)
    np.array_repr(i.astype('i1'))
    np.array2string(i, formatter={'int': lambda x: f'<{x}>'})
    # linear algebra by the standard's names
    np.linalg.outer(i, v)
    np.linalg.diagonal(a)
    np.linalg.trace(m)
    np.linalg.cross(i, i[::-1])
    np.linalg.matrix_transpose(a)
    np.linalg.tensordot(i, i, axes=1)
    np.linalg.matmul(i, i)
    np.linalg.vecdot(i, i)
    np.linalg.diagonal(np.ones((2, 3, 4)), offset=1)
    ! np.linalg.outer(a, i)
    ! np.linalg.cross(a, a)
    np.bool(0)
    np.complex128(1, 2)
    np.complex64(np.float32(1), 2)
    np.ndarray((2,), buffer=b'0123456789abcdef')
    ! np.float64(1, 2)
    np.array([[1, 2], [3, 4]], dtype=object, ndmax=1).shape
    np.array([[1, 2]], ndmax=2)
    """,
)

test_close = table(
    NAMES,
    """
    np.hanning(7)
    np.hamming(8)
    np.blackman(9)
    np.kaiser(6, 3.5)
    np.hanning(2)
    np.blackman(2)
    np.geomspace(1, 1000, 4)
    np.geomspace(1, 256, 9, dtype=int)
    np.geomspace(-1, -1000, 4)
    np.geomspace(1j, 1000j, 4)
    np.geomspace(1, [10, 100], 3)
    np.geomspace(1, 8, 4, endpoint=False)
    np.geomspace(np.float32(1), np.float32(8), 4)
    np.geomspace(1, 10, 0)
    np.geomspace([1, 2], 10, 3, axis=1)
    np.geomspace(1, 10, 1)
    ! np.geomspace(0, 1)
    np.logspace(0, 2, 5)
    np.logspace(0, 2, 3, base=2)
    np.logspace(0, 2, 3, dtype=int)
    np.logspace(0, 2, 3, base=[2, 3], axis=-1)
    np.logspace(0, 2, 3, base=i)
    np.logspace(i, 2, 4)
    np.logspace(0, 1, 3, False)
    np.emath.sqrt(v)
    np.emath.sqrt(v * v)
    np.emath.sqrt(-1)
    np.emath.sqrt(i)
    np.emath.log(-v * v)
    np.emath.log2(i)
    np.emath.log10(-i)
    np.emath.logn(2, v)
    np.emath.logn(2, 8)
    np.emath.power(v, 2)
    np.emath.power(i, -i)
    np.emath.power(2, -1)
    np.emath.power(i, 2)
    np.emath.arccos(v)
    np.emath.arccos(0.5)
    np.emath.arcsin(i)
    np.emath.arctanh(v / 10)
    np.emath.arctanh(i)
    np.emath.sqrt(i.astype('i1') - 2)
    np.emath.sqrt(v.astype('f4'))
    np.emath.sqrt(z)
    np.emath.sqrt(z.real + 0j)
    np.emath.sqrt(b)
    np.emath.log(n)
    np.lib.scimath.sqrt(-2)
    np.linalg.vector_norm(a)
    np.linalg.vector_norm(a, axis=0, keepdims=True)
    np.linalg.vector_norm(a, axis=(0, 1), keepdims=True)
    np.linalg.vector_norm(v, ord=1)
    np.linalg.matrix_norm(a)
    np.linalg.matrix_norm(m, ord=2)
    np.linalg.svdvals(m)
    np.linalg.qr(m)[1] ** 2
    np.linalg.norm(a, 'fro')
    np.linalg.vector_norm(a, axis=1, ord=np.inf)
    """,
    ulps=1 << 12,
)


DTYPE_CASES = {
    "polyadd": lambda np, x: np.polyadd(x, x[:2]),
    "polyval": lambda np, x: np.polyval([1, 2], x),
    "vander": lambda np, x: np.vander(x[:3], 3),
    "polyder": lambda np, x: np.polyder(x),
    "polyint": lambda np, x: np.polyint(x),
    "delete": lambda np, x: np.delete(x, 1),
    "insert": lambda np, x: np.insert(x, 1, 1),
    "resize": lambda np, x: np.resize(x, (4, 4)),
    "choose": lambda np, x: np.choose([1, 0, 1], [x[:3], 1]),
    "piecewise": lambda np, x: np.piecewise(x, [x > 1], [1, 0]),
    "trim_zeros": lambda np, x: np.trim_zeros(x),
    "r_": lambda np, x: np.r_[x, 1],
    "c_": lambda np, x: np.c_[x, x],
    "real_if_close": lambda np, x: np.real_if_close(x),
}


@pytest.mark.parametrize("name", DTYPE_CASES)
def test_over_dtypes(name: str) -> None:
    for dtype in DTYPES:
        x = values(dtype)
        check(lambda np, x=x: DTYPE_CASES[name](np, np.array(x)), 0, f"{name} {dtype}")


@pytest.mark.usefixtures("recorded")
def test_evaluation_is_recorded() -> None:
    x = lazynp.ones(5) + 1
    made = (
        lazynp.polyval([1, 2, 3], x),
        lazynp.polynomial.Polynomial([1, 2, 3])(x),
        lazynp.polynomial.polynomial.polyval(x, [1, 2]),
        lazynp.polynomial.chebyshev.chebval(x, [1, 2, 3]),
        lazynp.insert(x, 1, 5.0),
        lazynp.delete(x, 2),
        lazynp.vander(x),
        lazynp.resize(x, 9),
        lazynp.r_[x, 1.0],
        lazynp.packbits(x > 1),
    )
    for result in made:
        assert type(result) is lazynp.ndarray
        assert result._node is None or result._node.buffer is None
    assert x._node.buffer is None


def test_row_stack_and_ill_conditioned_fits_warn() -> None:
    with pytest.warns(DeprecationWarning, match="row_stack"):
        lazynp.row_stack([lazynp.arange(2)])
    with pytest.warns(numpy.exceptions.RankWarning):
        lazynp.polyfit(lazynp.ones(4), lazynp.arange(4.0), 2)


def test_subclasses_are_kept() -> None:
    m = numpy.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    for text in ("np.polyval([1, 2], m)", "np.linspace(m, 2, 3)", "np.real_if_close(m)", "np.polyadd(m, 1)"):
        for given in (m, m[:2]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, want = [type(eval(text, {"np": module, "m": given})) for module in (lazynp, numpy)]
            assert found is want, text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert type(lazynp.delete(numpy.asmatrix([[1, 2]]), 0, 1)) is numpy.matrix
        assert type(lazynp.insert(numpy.asmatrix([[1, 2]]), 0, 1, 1)) is numpy.matrix


def test_python_numbers_of_scalars() -> None:
    assert type(3j * lazynp.float64(2)) is type(3j * numpy.float64(2))
    with pytest.raises(TypeError, match="sequence"):
        lazynp.column_stack(x for x in [lazynp.zeros(2)])


def test_arguments_that_are_ours() -> None:
    def run(np: types.ModuleType) -> object:
        k = np.sum(np.array([1, 1]))
        x = np.arange(6.0)
        return (
            np.delete(x, np.array([1, 2])),
            np.insert(x, np.array([1, 2]), x[:2]),
            np.mgrid[0 : np.max(np.array([3])), 0:2],
            np.r_[0:k, x],
            np.linspace(x[0], x[5], int(k)),
            np.resize(x, (int(k), 2)),
            np.unravel_index(np.argmax(x), (2, 3)),
            np.choose(np.array([0, 1]), (x[:2], x[2:4])),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(run)


test_keywords = table(
    NAMES,
    """
    np.nan_to_num(n, copy=False)
    np.nan_to_num(n, nan=np.sum(v))
    np.nan_to_num(z / 0, posinf=5)
    np.nan_to_num(n, nan=[1, 2, 3, 4, 5, 6])
    ! np.nan_to_num(n, nan=[1, 2])
    np.ediff1d(i, 9, [1, 2])
    np.ediff1d(a, to_begin=-1)
    np.ediff1d([])
    np.ediff1d([5])
    np.ediff1d(v, to_end=i)
    np.ediff1d(i.astype('i1'), to_end=3)
    ! np.ediff1d(i, to_end=2.5)
    np.searchsorted(i, [1, 2.5, 3], sorter=np.argsort(i))
    np.searchsorted(i, 2, 'right', sorter=[1, 2, 0])
    ! np.searchsorted(i, 2, sorter=[1.0, 2, 0])
    ! np.searchsorted(i, 2, sorter=[1, 2])
    np.pad(a, 1, constant_values=(4, 5))
    np.pad(a, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4)))
    np.pad(i, 2, constant_values=np.max(i))
    np.pad(a, 1, 'linear_ramp')
    np.pad(a, 1, 'mean')
    np.pad(i, (1, 2), 'empty').shape
    np.pad(i, 2, 'reflect', reflect_type='odd')
    np.pad(a, 1, 'maximum', stat_length=2)
    ! np.pad(a, 1, constant_values=(1, 2, 3))
    ! np.pad(a, 1, 'nonsense')
    ! np.pad(a, 1, 'edge', stat_length=2)
    np.interp(v, [0, 1], [2, 3], period=1.5)
    np.interp(v, [0, 1], [2j, 3])
    np.interp(v, [0, 1], [2, 3], left=np.sum(i))
    ! np.interp(v, [], [])
    np.fft.fft2(a, s=(2, 2))
    np.fft.fft(v, out=np.zeros(5, complex))
    np.fft.rfftn(a, s=(3, 3), axes=(0, 1))
    ! np.fft.fft(v, norm='x')
    np.full_like(a, i[0])
    np.empty(2).shape
    np.zeros(2, None)
    np.array([1, 2], ndmin=3)
    np.clip(a, 2, 5, dtype='f4')
    np.where(b, 1, i)
    np.arange(3, dtype=float)
    np.arange(1, 3)
    np.arange(4, step=2)
    np.arange(start=1, stop=4)
    np.sum(a, keepdims=np._NoValue)
    np.max(a, axis=0, where=np._NoValue)
    np.any(a, keepdims=True, where=[True, False, True, False])
    np.ptp(a, keepdims=True)
    np.argmax(a, axis=1, keepdims=True)
    np.nanstd(n[3:], ddof=1)
    np.nansum(a, keepdims=True, where=a > 3)
    np.dstack((i, i))
    np.vstack((i, i), dtype='f4')
    np.hstack((i, v), casting='same_kind')
    ! np.dstack((i, i), dtype='f4')
    """,
    ulps=1 << 10,
)
