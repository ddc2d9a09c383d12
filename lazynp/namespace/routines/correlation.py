"""Covariance and correlation.

In: observations, weights.  Out: a matrix product of centred data, scaled.  Promise: NumPy's steps in NumPy's order, and its errors; weights
that are not whole or negative are looked at now.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, result, wrap
from lazynp.conversion import asarray
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, reshape
from lazynp.graph.dtypes import BOOL, FLOAT64, NATIVE, REAL_OF, DType
from lazynp.graph.node import Node, stacklevel
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import native, warned
from lazynp.namespace.routines.creation import diagonal
from lazynp.namespace.routines.joining import concatenate
from lazynp.namespace.routines.statistics import average
from lazynp.namespace.submodules.linalg import dot
from lazynp.namespace.ufunc import reductions as red
from lazynp.namespace.ufunc.promotion import Foreign, array_node
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U


def _rows(m: Any, name: str, dtype: DType) -> tuple[ndarray, int]:
    """Observations as a matrix of their own, and how many dimensions they had."""
    x = array_node(m)
    if len(x.shape) > 2:
        raise ValueError(f"{name} has more than 2 dimensions")
    return wrap(cast(reshape(x, (1,) * (2 - len(x.shape)) + x.shape), dtype)), len(x.shape)


def _weights(given: Any, name: str, n: int) -> Any:
    w = asarray(wrap(array_node(given)), FLOAT64)
    if name == "fweights" and not red.all(U["equal"](w, U["rint"](w))):
        raise TypeError("fweights must be integer")
    if w.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if w.shape[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if red.any(U["less"](w, 0)):
        raise ValueError(f"{name} cannot be negative")
    return w


@fallback.library
@native
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Compute the covariance matrix; see :func:`numpy.cov`."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    parts = [array_node(m)] if y is None else [array_node(m), array_node(y)]
    kind = np.result_type(*[part.dtype for part in parts], FLOAT64) if dtype is None else np.dtype(dtype)
    if kind not in NATIVE:
        raise Foreign
    x, ndim = _rows(m, "m", kind)
    more = None if y is None else _rows(y, "y", kind)[0]
    if not rowvar and ndim != 1:
        x = x.T
    if not x.shape[0]:
        return wrap(expand(const(0.0, FLOAT64), (0, 0)))
    if more is not None:
        x = concatenate((x, more.T if not rowvar and more.shape[0] != 1 else more), 0)
    if ddof is None:
        ddof = 1 if bias == 0 else 0
    n = x.shape[1]
    frequencies = None if fweights is None else _weights(fweights, "fweights", n)
    importance = None if aweights is None else _weights(aweights, "aweights", n)
    w = frequencies if importance is None else importance if frequencies is None else U["multiply"](frequencies, importance)
    centre, total = average(x, axis=1, weights=w, returned=True)
    away = x - centre[:, None]
    product = dot(away, (away if w is None else away * w).T.conj())
    if w is None:
        return _scaled(product, _whole(n - ddof))
    # A sum of weights that was not looked at.
    total = total[0]
    spent = ddof if importance is None else ddof * red.sum(U["multiply"](w, importance)) / total
    left = _real(node_of(total if ddof == 0 else total - spent))
    none = elementwise(o.LESS_EQUAL, BOOL, left, const(0, left.dtype))
    degrees = elementwise(o.WHERE, left.dtype, none, const(0, left.dtype), left)
    return _scaled(product, result(warned(degrees, none, "Degrees of freedom <= 0 for slice")))


def _whole(degrees: Any) -> Any:
    if degrees > 0:
        return degrees
    warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=stacklevel())
    return 0.0


def _real(node: Node) -> Node:
    return node if node.dtype.kind != "c" else elementwise(o.REAL, REAL_OF[node.dtype], node)


def _scaled(product: ndarray, degrees: Any) -> ndarray:
    node = node_of(U["multiply"](product, U["divide"](1, degrees)))
    return wrap(reshape(cast(node, product.dtype), tuple([k for k in node.shape if k != 1])))


@fallback.library
@native
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Compute correlation coefficients; see :func:`numpy.corrcoef`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if type(c) is not ndarray:
        raise Foreign
    if not c.ndim:
        return U["divide"](c, c)
    node = node_of(c)
    n = node.shape[0]
    spread = U["sqrt"](diagonal(wrap(_real(node))))
    node = node_of(U["divide"](U["divide"](c, spread[:, None]), spread[None, :])) if n else node
    dtype = node.dtype
    if dtype.kind != "c":
        return wrap(_within_one(node))
    parts = [_within_one(elementwise(part, REAL_OF[dtype], node)) for part in (o.REAL, o.IMAG)]
    return wrap(elementwise(o.COMPLEX, dtype, *parts))


def _within_one(x: Node) -> Node:
    low = elementwise(o.MAXIMUM, x.dtype, x, const(-1, x.dtype))
    return elementwise(o.MINIMUM, x.dtype, low, const(1, x.dtype))


FUNCTIONS: Final = {function.__name__: function for function in (cov, corrcoef)}
