"""Sparse matrices by rows.  Operands that are neither CuPy's own arrays, nor sparse, nor numbers are handed back to Python."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from gpu_emulator.fakecupy import library


def issparse(x: Any) -> bool:
    return isinstance(x, _spbase)


def _dense(shape: tuple[int, int], data: Any, indices: Any, indptr: Any) -> Any:
    """What a kernel makes of it; while shapes are found out, of zeros."""
    found = np.zeros(shape, data.dtype)
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr)) if len(indptr) and indptr[-1] else np.zeros(0, int)
    np.add.at(found, (rows, indices[: len(rows)]), data[: len(rows)])
    return found


class _spbase:
    __array_priority__ = 101

    @property
    def ndim(self) -> int:
        return 2

    def __matmul__(self, other: Any) -> Any:
        if np.isscalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._matmul_dispatch(other)

    def __rmatmul__(self, other: Any) -> Any:
        if np.isscalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._rmatmul_dispatch(other)

    def _rmatmul_dispatch(self, other: Any) -> Any:
        try:
            tr = other.T
        except AttributeError:
            return NotImplemented
        found = self.T._matmul_dispatch(tr)
        return found if found is NotImplemented else found.T

    def dot(self, other: Any) -> Any:
        return self * other if np.isscalar(other) else self @ other


class spmatrix:
    """``*`` is the product of matrices."""

    def __mul__(self, other: Any) -> Any:
        return self._matmul_dispatch(other) # type: ignore[attr-defined]

    def __rmul__(self, other: Any) -> Any:
        return self._rmatmul_dispatch(other) # type: ignore[attr-defined]


class _csr_base(_spbase):
    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        if isinstance(arg1, cupy.ndarray):
            if arg1.ndim != 2:
                raise TypeError("expected dimension <= 2 array or matrix")
            dense = arg1.get() # the real one counts on the device, and reads how many there are
            rows, columns = np.nonzero(dense)
            self._set(dense.shape, cupy.asarray(dense[rows, columns]), cupy.asarray(columns.astype(np.int32)),
                      cupy.asarray(np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)))
        elif isinstance(arg1, tuple) and len(arg1) == 3:
            if not all(isinstance(part, cupy.ndarray) and part.ndim == 1 for part in arg1):
                raise ValueError("data, indices, and indptr should be 1-D")
            self._set(tuple(shape), arg1[0], arg1[1], arg1[2])
        else:
            raise ValueError("Unsupported initializer format")

    def _set(self, shape: Any, data: Any, indices: Any, indptr: Any) -> None:
        self.shape, self.data, self.indices, self.indptr = tuple(shape), data, indices, indptr

    dtype = property(lambda self: self.data.dtype)
    nnz = property(lambda self: self.data.size)

    def _computed(self, name: str, function: Any, *others: Any) -> Any:
        def work(data: Any, indices: Any, indptr: Any, *rest: Any) -> Any:
            return function(_dense(self.shape, data, indices, indptr), *rest)

        return library.enqueue(name, work, (self.data, self.indices, self.indptr, *others), {})

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        return self._computed("csr2dense", lambda dense: dense)

    todense = toarray

    @property
    def T(self) -> Any:
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        return type(self)(self.toarray().T)

    def _matmul_dispatch(self, other: Any) -> Any:
        if np.isscalar(other):
            found = type(self).__new__(type(self))
            found._set(self.shape, self.data * other, self.indices, self.indptr)
            return found
        if issparse(other):
            return type(self)(self._computed("spgemm", np.matmul, other.toarray()))
        if isinstance(other, cupy.ndarray):
            return self._computed("spmv" if other.ndim == 1 else "spmm", np.matmul, other)
        return NotImplemented

    def multiply(self, other: Any) -> Any:
        if isinstance(other, cupy.ndarray) or np.isscalar(other):
            return type(self)(self._computed("multiply", np.multiply, other))
        raise TypeError("expected scalar, dense matrix/vector or csr matrix")

    def __add__(self, other: Any) -> Any:
        return self._computed("add", np.add, other) if isinstance(other, cupy.ndarray) else NotImplemented

    __radd__ = __add__


class csr_matrix(spmatrix, _csr_base):
    pass


class csr_array(_csr_base):
    def __mul__(self, other: Any) -> Any:
        return self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other)
