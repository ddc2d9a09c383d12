# ruff: noqa: E501 - a case is one line of the table
"""Creation against NumPy: dtypes, lengths, bits, errors."""

from __future__ import annotations

import numpy
import pytest

import lazynp
from tests.namespace.compare import DTYPES, check, table

test_calls = table(
    {"a": numpy.arange(9.0).reshape(3, 3), "i": numpy.arange(3)},
    """
    np.zeros(3)
    np.zeros((2, 3), int)
    np.ones((), 'complex64')
    np.ones([2, 1], bool)
    np.empty((2, 0)).shape
    np.zeros((2, 3), order='F').flags.f_contiguous
    ! np.zeros(-1)
    ! np.zeros((2, -3))
    ! np.zeros(2.5)
    ! np.zeros('a')
    ! np.zeros(3, dtype='nonsense')
    np.zeros(np.int64(3))
    np.zeros((np.int8(2), 2))
    np.zeros(3, 'U5')
    np.zeros(2, object)
    np.zeros(2, 'M8[s]')
    np.full(3, 7)
    np.full((2, 2), 1.5)
    np.full(2, True)
    np.full(2, 1j)
    np.full((2, 3), [1, 2, 3])
    np.full(3, 7, dtype='float32')
    np.full(3, 2.7, dtype=int)
    np.full(2, np.float32(2))
    ! np.full(3, 300, dtype='int8')
    ! np.full(3, [1, 2])
    np.zeros_like(a)
    np.ones_like(a, dtype=int)
    np.full_like(a, 2)
    np.full_like(i, 2.7)
    np.empty_like(a).shape
    np.zeros_like(a.T).flags.f_contiguous
    np.zeros_like(a.T, order='C').flags.c_contiguous
    np.zeros_like(a, shape=(4,))
    np.ones_like([1, 2, 3])
    np.zeros_like(3.0)
    np.full_like(i, [1, 2, 3])
    np.array([1, 2, 3])
    np.array([1, 2.5])
    np.array([[1, 2], [3, 4]], 'int8')
    np.array(5)
    np.array(5.0, ndmin=2)
    ! np.array([1, [2, 3]])
    np.array([1, 2], dtype=object)
    np.array(['a', 'bc'])
    np.array([None])
    np.array(a, dtype='float32')
    np.array(a, order='F').flags.f_contiguous
    np.asarray(a) is a
    np.array(a) is a
    np.asarray([True, 2])
    np.asarray((1, 2))
    np.asarray(range(4))
    np.asarray([np.float32(1), 2])
    np.asarray([a[0], a[1]])
    np.asarray([a.sum(), 1.0])
    np.array([[a[0, 0], 1], [2, a[1, 1]]])
    np.ascontiguousarray(a.T).flags.c_contiguous
    np.asfortranarray(a).flags.f_contiguous
    np.ascontiguousarray(5.0)
    np.copy(a)
    np.asarray_chkfinite([1.0, 2.0])
    ! np.asarray_chkfinite([1.0, np.nan])
    np.eye(3)
    np.eye(2, 4)
    np.eye(3, k=1)
    np.eye(3, k=-5)
    np.eye(3, dtype=int)
    np.eye(0)
    np.identity(3)
    np.eye(3, order='F')
    ! np.eye(-1)
    np.tri(3)
    np.tri(3, 4, 1)
    np.tri(2, dtype=bool)
    np.tri(3, k=-1)
    np.tril(a)
    np.triu(a)
    np.tril(a, -1)
    np.triu(a, 1)
    np.tril(np.arange(3))
    np.triu(np.ones((2, 3, 3)))
    np.diag([1, 2, 3])
    np.diag([1, 2], 1)
    np.diag([1.5, 2], -2)
    np.diag(a)
    np.diag(a, 1)
    np.diag(a, -1)
    np.diagflat([[1, 2], [3, 4]])
    ! np.diag(np.ones((2, 2, 2)))
    np.tril(a, 2**63 - 1)
    np.triu(a, 2**63 - 1)
    np.triu(a, 2**63)
    np.tri(3, k=2**63)
    np.tri(3, 1, -2**63 + 1)
    np.tril(a, 2**62)
    np.triu(a, -2**62)
    ! np.tril(a, -2**63)
    ! np.tril(a, 2**63 + 1)
    ! np.triu(a, -2**63)
    ! np.tri(3, k=-2**63 + 1)
    ! np.diagonal(a, 2**31)
    ! np.diag(a, -2**63)
    ! np.trace(a, 2**63)
    ! np.trace(a, 2**31)
    np.diagonal(np.arange(24).reshape(2, 3, 4), 0, 1, 2)
    np.diagonal(a).flags.writeable
    ! np.diagonal(np.arange(3))
    np.meshgrid([1, 2, 3], [4, 5])
    np.meshgrid([1, 2], [3.0, 4], indexing='ij', sparse=True)
    np.meshgrid(1, 2)
    np.indices((2, 3))
    np.indices((2, 3), sparse=True)
    np.indices((2,), dtype='float32')
    np.fromfunction(lambda i, j: i + j, (2, 3))
    np.mgrid[0:3, 0:2]
    np.ogrid[0:3]
    np.r_[1:4, 9]
    np.c_[[1, 2], [3, 4]]
    np.linspace(0, 1)
    np.linspace(0, 1, 7)
    np.linspace(2, 3, 5, endpoint=False)
    np.linspace(0, 1, 1)
    np.linspace(0, 1, 0)
    np.linspace(5, 5, 3)
    np.linspace(0, 10, 4, dtype=int)
    np.linspace(-3, 2.5, 1000)
    np.linspace(0, 1e-320, 5)
    np.linspace(0, 1, 5, retstep=True)
    np.linspace([0, 1], [2, 3], 3)
    np.linspace(0, 1j, 3)
    np.linspace(np.float32(0), np.float32(1), 9)
    ! np.linspace(0, 1, -2)
    np.logspace(0, 2, 5)
    np.logspace(0, 3, 4, base=2)
    np.geomspace(1, 1000, 4)
    np.arange(5)
    np.arange(2, 9)
    np.arange(2, 9, 3)
    np.arange(9, 2, -2)
    np.arange(5.0)
    np.arange(0.5, 3)
    np.arange(0, 1, 0.1)
    np.arange(3, 1)
    np.arange(0)
    np.arange(-3)
    np.arange(5, dtype='int8')
    np.arange(5, dtype='float16')
    np.arange(3, dtype=complex)
    np.arange(start=1, stop=4)
    np.arange(1, stop=4)
    np.arange(4, step=2)
    np.arange(1, 4, dtype=float)
    np.arange(stop=3)
    np.arange(np.float32(0), 2)
    np.arange(np.int8(3))
    np.arange(2, dtype=bool)
    np.arange(2**40, 2**40 + 3)
    np.arange(0.1, 3, 0.7, 'float32')
    np.arange(0, 2**63, 2**61)
    np.arange(0, 2**63, 2**62)
    np.arange(0, 2**63 - 1, 2**61)
    np.arange(-10**18, 2**63, 10**18)
    np.arange(2**63, 2**63 + 5)
    np.arange(0, -2**63, -2**61)
    np.arange(0, -2**63 - 1, -2**61)
    np.arange(0, 3, 2**63)
    np.arange(0., 2**63, 2**61)
    np.arange(0, 2**65, 2**64)
    ! np.arange()
    ! np.arange(1, 2, 0)
    np.arange(0, 1000, 7, dtype='int8')
    ! np.arange('a')
    np.arange(np.sum(i))
    np.arange(0, np.max(a), np.min(a) + 1)
    np.vander([1, 2, 3])
    np.fromiter(range(3), int)
    np.frombuffer(b'abcd', 'uint8')
    np.hanning(4)
    np.triu_indices(3)
    """,
)


def test_arange_has_numpys_bits() -> None:
    rng = numpy.random.default_rng(0)
    for _ in range(200):
        start, step = rng.normal(size=2).round(3)
        stop = start + step * rng.integers(0, 50)
        for dtype in (None, "float64", "float32", "float16"):
            check(lambda np, a=start, b=stop, c=step, t=dtype: np.arange(float(a), float(b), float(c), t), 0, f"arange({start}, {stop}, {step}, {dtype})")


def test_linspace_has_numpys_bits() -> None:
    rng = numpy.random.default_rng(0)
    for _ in range(100):
        start, stop = (rng.normal(size=2) * 10.0 ** rng.integers(-3, 4)).tolist()
        n = int(rng.integers(0, 60))
        for endpoint in (True, False):
            check(lambda np, a=start, b=stop, n=n, e=endpoint: np.linspace(a, b, n, endpoint=e), 0, f"linspace({start}, {stop}, {n})")


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_are_constructors_dtypes_and_isinstance_targets(dtype: str) -> None:
    kind = getattr(lazynp, dtype)
    assert lazynp.dtype(kind) == numpy.dtype(dtype)
    assert lazynp.zeros(2, kind).dtype == kind
    x = kind(1)
    assert isinstance(x, kind)
    assert isinstance(numpy.dtype(dtype).type(1), kind)
    assert isinstance(lazynp.ones(3, dtype).sum() if dtype.startswith(("f", "c")) else lazynp.ones(3, dtype)[0], kind)
    assert isinstance(x, lazynp.generic)
    assert lazynp.issubdtype(lazynp.dtype(dtype), kind)


def test_constants_take_no_memory_until_needed() -> None:
    x = lazynp.zeros((1 << 20, 1 << 20))
    assert x.shape == (1 << 20, 1 << 20)
    assert x._node.buffer is None
