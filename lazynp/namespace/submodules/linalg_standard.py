"""The functions of ``numpy.linalg`` that the array API standard has too, under its signatures.

In: arrays.  Out: what the functions of the same name in the main namespace give, and norms.  Promise: nothing here that they do not have,
except the standard's defaults.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from lazynp.conversion import asarray
from lazynp.namespace.bridge.fallback import library
from lazynp.namespace.routines.creation import diagonal as _diagonal
from lazynp.namespace.routines.creation import trace as _trace
from lazynp.namespace.routines.mathematics import cross as _cross
from lazynp.namespace.routines.shaping import matrix_transpose
from lazynp.namespace.submodules import linalg
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.reductions import named
from lazynp.viewing import view_permute


@library
def matmul(x1: Any, x2: Any, /) -> Any:
    """Multiply matrices; see :func:`numpy.linalg.matmul`."""
    of: Any = linalg.FUNCTIONS["matmul"]
    return of(x1, x2)


@library
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sum products over axes; see :func:`numpy.linalg.tensordot`."""
    return linalg.tensordot(x1, x2, axes)


@library
def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """Compute the dot products of vectors; see :func:`numpy.linalg.vecdot`."""
    of: Any = linalg.FUNCTIONS["vecdot"]
    return of(x1, x2) if axis == -1 else of(x1, x2, axis=axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """Multiply all pairs of two vectors' elements; see :func:`numpy.linalg.outer`."""
    first, second = asarray(x1), asarray(x2)
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={first.ndim!r} and x2.ndim={second.ndim!r}.")
    return linalg.outer(first, second)


def diagonal(x: Any, /, *, offset: Any = 0) -> Any:
    """Take the diagonals of the last two axes; see :func:`numpy.linalg.diagonal`."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    """Add up the diagonals of the last two axes; see :func:`numpy.linalg.trace`."""
    return _trace(x, offset, -2, -1, dtype)


def cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """Compute the cross product of vectors of three; see :func:`numpy.linalg.cross`."""
    first, second = asarray(x1), asarray(x2)
    if first.shape[axis] != 3 or second.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {first.shape[axis]} and {second.shape[axis]} dimensional instead."
        )
    return _cross(first, second, axis=axis)


@library
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Compute the norms of matrices; see :func:`numpy.linalg.matrix_norm`."""
    return linalg.norm(asarray(x), ord, (-2, -1), keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Compute the norms of vectors; see :func:`numpy.linalg.vector_norm`."""
    values = asarray(x)
    shape = values.shape
    if axis is None:
        values, along = values.reshape(-1), 0
    elif isinstance(axis, tuple):
        axes = ax.several(axis, len(shape))
        rest = [k for k in range(len(shape)) if k not in axes]
        moved: Any = view_permute(values, (*axes, *rest))
        values, along = moved.reshape((prod([shape[k] for k in axes]), *[shape[k] for k in rest])), 0
    else:
        along = axis
    found = linalg.norm(values, ord, along)
    if not keepdims or not shape:
        return found
    gone = ax.reduced(axis, len(shape))
    return asarray(found).reshape(tuple([1 if k in gone else n for k, n in enumerate(shape)]))


FUNCTIONS: Final = {
    function.__name__: function for function in (matmul, tensordot, vecdot, outer, diagonal, trace, cross, matrix_norm, vector_norm)
} | {"matrix_transpose": named(matrix_transpose, "matrix_transpose")}  # NumPy has two
