"""Reductions that leave NaN out.

In: arrays, axes and the keywords of NumPy's functions.  Out: the plain reductions of arrays with NaN replaced.  Promise: the steps of
NumPy's own functions, hence their dtypes; slices with nothing but NaN give NumPy's warning or error when their values are computed, or at
the call where Python's warning filters ask for it (``lazynp.namespace.bridge.library.warned``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, reduce, reshape
from lazynp.graph.dtypes import BOOL, FLOAT64, INT64, NATIVE, REAL_OF, DType
from lazynp.graph.node import Node
from lazynp.namespace.bridge.library import native, refused, warned
from lazynp.namespace.routines import statistics
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc import reductions as red
from lazynp.namespace.ufunc.promotion import Foreign, array_node
from lazynp.namespace.ufunc.reductions import NoValue, finish, laid_like
from lazynp.namespace.ufunc.ufuncs import UFUNCS, castable

ALL_NAN: Final = "All-NaN slice encountered"


def _is_nan(x: Node) -> Node:
    return elementwise(o.NOT_EQUAL, BOOL, x, x)


def _without_nan(a: Any, value: float) -> Any:
    """``a`` with NaN replaced, laid out as a copy of it; ``a`` itself where the dtype has no NaN."""
    x = array_node(a)
    if x.dtype.kind not in "fc":
        return a
    return laid_like(elementwise(o.WHERE, x.dtype, _is_nan(x), const(value, x.dtype), x), a)


# Sums and products ------------------------------------------------------------------------------------------------------------


@native
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    """Compute the sum of what is not NaN; see :func:`numpy.nansum`."""
    return red.sum(_without_nan(a, 0), axis, dtype, out, keepdims, initial, where)


@native
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    """Compute the product of what is not NaN; see :func:`numpy.nanprod`."""
    return red.prod(_without_nan(a, 1), axis, dtype, out, keepdims, initial, where)


@native
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute the running sum of what is not NaN; see :func:`numpy.nancumsum`."""
    return red.cumsum(_without_nan(a, 0), axis, dtype, out)


@native
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute the running product of what is not NaN; see :func:`numpy.nancumprod`."""
    return red.cumprod(_without_nan(a, 1), axis, dtype, out)


# Extremes ---------------------------------------------------------------------------------------------------------------------


def _extreme(ufunc: str, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    x = array_node(a)
    kept = ax.keeps(keepdims)
    array = a if type(a) is ndarray else wrap(x)
    found = red.reduce(UFUNCS[ufunc], array, axis, None, None, kept, initial, True if where is NoValue else where)
    node = node_of(found)
    if node.dtype.kind in "fc":
        checked = warned(node, _is_nan(node), ALL_NAN)
        if checked is not node:
            node, found = checked, finish(checked, None, ufunc, array, ax.reduced(axis, len(x.shape)))
    return found if out is None else finish(node, out, ufunc)


@native
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue) -> Any:
    """Compute the smallest of what is not NaN; see :func:`numpy.nanmin`."""
    return _extreme("fmin", a, axis, out, keepdims, initial, where)


@native
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue) -> Any:
    """Compute the largest of what is not NaN; see :func:`numpy.nanmax`."""
    return _extreme("fmax", a, axis, out, keepdims, initial, where)


def _position(function: Callable[..., Any], worst: float, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = array_node(a)
    if x.dtype.kind not in "fc" or not x.shape:
        # Of a 0-d array NumPy looks at the one value only if it may be NaN; the axis is checked by the position itself.
        axes: tuple[int, ...] = ()
    else:
        axes = ax.reduced(axis, len(x.shape))
    found = function(_without_nan(a, worst), axis, None, keepdims=keepdims)
    if x.dtype.kind not in "fc" or 0 in x.shape:
        return found if out is None else function(a, axis, out, keepdims=keepdims)
    node = refused(node_of(found), reduce(o.BITWISE_AND, _is_nan(x), axes), ValueError, ALL_NAN, x)
    if out is not None:
        function(wrap(x), axis, out, keepdims=keepdims)  # refuses what does not fit
    return finish(node, out, function.__name__)


@native
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Any:
    """Find the index of the smallest of what is not NaN; see :func:`numpy.nanargmin`."""
    return _position(red.argmin, np.inf, a, axis, out, keepdims)


@native
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Any:
    """Find the index of the largest of what is not NaN; see :func:`numpy.nanargmax`."""
    return _position(red.argmax, -np.inf, a, axis, out, keepdims)


# Moments ----------------------------------------------------------------------------------------------------------------------


def _inexact(dtype: Any, out: Any) -> DType | None:
    """The dtype of the sums, or the refusal of one that cannot hold NaN."""
    if dtype is not None:
        dtype = np.dtype(dtype)
        if dtype.kind not in "fc":
            raise TypeError("If a is inexact, then dtype must be inexact")
        if dtype not in NATIVE:
            raise Foreign
    if out is not None and out.dtype.kind not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")
    return dtype


def _divided(total: Node, count: Node) -> Node:
    """``total / count`` in the loop that NumPy takes for an integer count, in the total's dtype."""
    loop = np.result_type(total.dtype, FLOAT64)
    divided = elementwise(o.DIVIDE, loop, cast(total, loop), cast(count, loop))
    divided.err = divided.err.without("divide", "invalid")
    return cast(divided, total.dtype)


def _count(x: Node, axis: Any, keepdims: Any, where: Any) -> Node:
    here = elementwise(o.EQUAL, BOOL, x, x)
    return node_of(red.sum(wrap(here), axis, INT64, None, keepdims, NoValue, where))


def _finished(node: Node, a: Any, axis: Any, out: Any, name: str) -> Any:
    if out is not None:
        castable(node.dtype, out)
        return finish(node, out, name)
    shape = array_node(a).shape
    source = None if 0 in shape else a  # NumPy sums a copy, and one of no elements lies in no order
    return finish(node, None, name, source, ax.reduced(axis, len(shape)))


@native
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue) -> Any:
    """Compute the mean of what is not NaN; see :func:`numpy.nanmean`."""
    x = array_node(a)
    if x.dtype.kind not in "fc":
        return statistics.mean(a, axis, dtype, out, keepdims, where=where)
    loop = _inexact(dtype, out)
    count = _count(x, axis, keepdims, where)
    total = node_of(red.sum(_without_nan(a, 0), axis, loop, None, keepdims, NoValue, where))
    empty = elementwise(o.EQUAL, BOOL, count, const(0, INT64))
    return _finished(warned(_divided(total, count), empty, "Mean of empty slice"), a, axis, out, "nanmean")


def _variance(a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any) -> Node:
    x = array_node(a)
    loop = _inexact(dtype, out)
    ddof = statistics.corrected(ddof, correction)
    count = _count(x, axis, True, where)
    filled = _without_nan(a, 0)
    if mean is NoValue:
        centre = _divided(node_of(red.sum(filled, axis, loop, None, True, NoValue, where)), count)
    else:
        centre = array_node(mean)
    wide = np.result_type(x.dtype, centre.dtype)
    away = cast(elementwise(o.SUBTRACT, wide, cast(node_of(filled), wide), cast(centre, wide)), x.dtype)
    away = elementwise(o.WHERE, x.dtype, _is_nan(x), const(0, x.dtype), away)
    if x.dtype.kind == "c":
        parts = [elementwise(part, REAL_OF[x.dtype], away) for part in (o.REAL, o.IMAG)]
        squares = elementwise(o.ADD, parts[0].dtype, *[elementwise(o.MULTIPLY, part.dtype, part, part) for part in parts])
    else:
        squares = elementwise(o.MULTIPLY, x.dtype, away, away)
    total = node_of(red.sum(laid_like(squares, a), axis, loop, None, keepdims, NoValue, where))
    left = elementwise(o.SUBTRACT, FLOAT64, cast(reshape(count, total.shape), FLOAT64), const(float(ddof), FLOAT64))
    spent = elementwise(o.LESS_EQUAL, BOOL, left, const(0.0, FLOAT64))
    # Negative numbers and infinities are no variances either.
    found = elementwise(o.WHERE, total.dtype, spent, const(np.nan, total.dtype), _divided(total, left))
    return warned(found, spent, "Degrees of freedom <= 0 for slice.")


@native
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NoValue, *,
    where: Any = NoValue, mean: Any = NoValue, correction: Any = NoValue,
) -> Any:  # fmt: skip
    """Compute the variance of what is not NaN; see :func:`numpy.nanvar`."""
    if array_node(a).dtype.kind not in "fc":
        return statistics.var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    return _finished(_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction), a, axis, out, "nanvar")


@native
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NoValue, *,
    where: Any = NoValue, mean: Any = NoValue, correction: Any = NoValue,
) -> Any:  # fmt: skip
    """Compute the standard deviation of what is not NaN; see :func:`numpy.nanstd`."""
    if array_node(a).dtype.kind not in "fc":
        return statistics.std(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    variance = _variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    root = node_of(UFUNCS["sqrt"](wrap(variance)))
    return _finished(root, a, axis, out, "nanstd")


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        nansum, nanprod, nancumsum, nancumprod, nanmin, nanmax, nanargmin, nanargmax, nanmean, nanvar, nanstd,
    )
}  # fmt: skip
