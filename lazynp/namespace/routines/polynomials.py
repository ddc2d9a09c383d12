"""Polynomials as arrays of coefficients, highest power first.

In: coefficients, points, ``poly1d`` objects.  Out: sums, derivatives, values and Vandermonde matrices as recorded operations; what needs
the coefficients' values to know its shape or its way (products that drop leading zeros, division, roots, fits) is NumPy's own.
Promise: a ``poly1d`` among the arguments gives a ``poly1d``.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, result, wrap
from lazynp.conversion import asarray
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, expand, reshape
from lazynp.namespace.bridge.fallback import Library, call
from lazynp.namespace.routines.creation import arange, ones, zeros, zeros_like
from lazynp.namespace.routines.joining import concatenate
from lazynp.namespace.routines.shaping import atleast_1d
from lazynp.namespace.ufunc.promotion import has_subclass
from lazynp.namespace.ufunc.ufuncs import UFUNCS

_add, _multiply, _divide = UFUNCS["add"], UFUNCS["multiply"], UFUNCS["divide"]


def _coefficients(p: Any) -> Any:
    return asarray(p.coeffs if isinstance(p, np.poly1d) else p)


def _like(value: Any, *given: Any) -> Any:
    return np.poly1d(value) if any(isinstance(p, np.poly1d) for p in given) else value


def _combined(name: str, ufunc: Any) -> Callable[..., Any]:
    def function(a1: Any, a2: Any) -> Any:
        first, second = [atleast_1d(_coefficients(p)) for p in (a1, a2)]
        if type(first) is not ndarray or type(second) is not ndarray or has_subclass(a1, a2):
            return call(getattr(np, name), name, (a1, a2), {})
        longer = len(second) - len(first)
        if longer > 0:
            first = concatenate((zeros(longer, first.dtype), first))
        elif longer < 0:
            second = concatenate((zeros(-longer, second.dtype), second))
        return _like(ufunc(first, second), a1, a2)

    function.__name__ = function.__qualname__ = name
    return function


def polyder(p: Any, m: Any = 1) -> Any:
    """Compute the derivative of a polynomial; see :func:`numpy.polyder`."""
    order = int(m)
    if order < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    value = _coefficients(p)
    len(value)  # a number has no coefficients to number
    for _ in range(order):
        value = _multiply(value[:-1], arange(len(value) - 1, 0, -1))
    if value.ndim > 1:  # NumPy derives once more than it has to
        _multiply(value[:-1], arange(len(value) - 1, 0, -1))
    return _like(value, p)


def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    """Compute the antiderivative of a polynomial; see :func:`numpy.polyint`."""
    order = int(m)
    if order < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = atleast_1d(zeros(order) if k is None else asarray(k))
    if len(constants) == 1 and order > 1:
        constants = _multiply(constants[:1], ones(order))
    if len(constants) < order:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    value = _coefficients(p)
    for j in range(order):
        value = concatenate((_divide(value, arange(len(value), 0, -1)), constants[j : j + 1]))
    return _like(value, p)


def polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial; see :func:`numpy.polyval`."""
    if has_subclass(x):
        return call(np.polyval, "polyval", (p, x), {})
    coefficients = _coefficients(p)
    if isinstance(x, np.poly1d):
        y: Any = 0
    else:
        x = asarray(x)
        y = zeros_like(x)
    if type(coefficients) is not ndarray or (type(x) is not ndarray and type(x) is not np.poly1d):
        return call(np.polyval, "polyval", (p, x), {})
    if not coefficients.ndim:
        raise TypeError("iteration over a 0-d array")
    for k in range(len(coefficients)):
        # An element as a value that is computed with the others: reading it would compute it now.
        c = coefficients[k] if coefficients.ndim > 1 else result(reshape(build.slice_(node_of(coefficients), ((k, 1),), (1,)), ()))
        y = _add(_multiply(y, x), c) if type(x) is ndarray else y * x + c
    return y


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803
    """Make a matrix with powers of points as columns; see :func:`numpy.vander`."""
    points = asarray(x)
    if points.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    if type(points) is not ndarray:
        return call(np.vander, "vander", (x, N, increasing), {})
    n = len(points)
    columns = n if N is None else index(N)
    if columns < 0:
        raise ValueError("negative dimensions are not allowed")
    dtype = np.promote_types(points.dtype, int)
    node = expand(const(1, dtype), (n, min(columns, 1)))
    if columns > 1:
        repeated = expand(reshape(cast(node_of(points), dtype), (n, 1)), (n, columns - 1))
        node = build.concat([node, build.scan(o.MULTIPLY, repeated, 1)], 1)
    if not increasing and columns:
        node = build.slice_(node, ((0, 1), (columns - 1, -1)), (n, columns))
    return wrap(node)


FUNCTIONS: Final = {
    **{function.__name__: function for function in (polyder, polyint, polyval, vander)},
    "polyadd": _combined("polyadd", _add),
    "polysub": _combined("polysub", UFUNCS["subtract"]),
    **{name: Library(getattr(np, name)) for name in ("poly", "polydiv", "polyfit", "polymul", "roots")},
}
