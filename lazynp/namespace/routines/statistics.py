"""Averages and spreads.

In: arrays, axes and the keywords of NumPy's functions.  Out: sums and elementwise nodes.  Promise: NumPy's accumulation dtypes
and its two-pass variance; a count of zero gives NumPy's warning and NaN.
"""

from __future__ import annotations

import warnings
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, result
from lazynp.conversion import asarray, converted
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand
from lazynp.graph.dtypes import BOOL, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT64, NATIVE, REAL_OF, DType
from lazynp.graph.node import Node, stacklevel
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import refused, warned
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc import reductions as red
from lazynp.namespace.ufunc.promotion import Foreign, array_node, broadcast
from lazynp.namespace.ufunc.reductions import NoValue, finish, laid_out, reduce_node
from lazynp.namespace.ufunc.ufuncs import need_array

_FEW: Final = "Degrees of freedom <= 0 for slice"

_DOUBLES: Final = frozenset({FLOAT64, COMPLEX128})


def _options(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not NoValue}


def mean_loops(x: Node, dtype: Any) -> tuple[DType, DType]:
    """(dtype of the sums, dtype of the result) of a mean or variance."""
    if dtype is not None:
        given = np.dtype(dtype)
        if given not in NATIVE:
            raise Foreign
        return given, given
    if x.dtype.kind in "biu":
        return FLOAT64, FLOAT64
    if x.dtype == FLOAT16:
        return FLOAT32, FLOAT16
    return x.dtype, x.dtype


def _kept(keepdims: Any) -> bool:
    return ax.keeps(keepdims)


class _Counted:
    """An array with the axes to reduce, the mask of what counts, and how many values each result is made of."""

    def __init__(self, a: Any, axis: Any, where: Any) -> None:
        self.source = a
        self.x = array_node(a)
        if axis is not None and not self.x.shape and axis != ():
            # Unlike a sum, NumPy's mean asks how long the axis is.
            ax.several(axis, 0)
        self.axes = ax.reduced(axis, len(self.x.shape), OverflowError)
        self.where: Any = None
        self.mask: Node | None = None
        self.count: Node | int = prod([self.x.shape[k] for k in self.axes])
        if where is not True and where is not NoValue:
            mask = array_node(where)
            if mask.dtype != BOOL or broadcast(self.x.shape, mask.shape) != self.x.shape:
                raise Foreign
            self.where, self.mask = asarray(where), mask
            self.count = reduce_node("add", cast(expand(mask, self.x.shape), INT64), self.axes, INT64, True)

    def total(self, x: Node, dtype: DType) -> Node:
        """The sum of what counts, reduced axes kept."""
        x = converted(x, dtype)
        if self.mask is not None:
            x = elementwise(o.WHERE, dtype, self.mask, x, const(0, dtype))
        return reduce_node("add", x, self.axes, dtype, True)

    def over(self, total: Node, count: Node | int, dtype: DType, last: bool = True) -> Node:
        """``total / count`` in the division loop that NumPy takes, as ``dtype``; at ``last`` NumPy divides numbers, not arrays."""
        divisor = cast(count, FLOAT64) if isinstance(count, Node) else const(float(count), FLOAT64)
        loop = total.dtype if total.dtype.kind in "fc" else FLOAT64
        divided = elementwise(o.DIVIDE, loop, cast(total, loop), cast(divisor, loop))
        if loop in _DOUBLES and (last or not self.x.shape) and len(self.axes) == len(self.x.shape):
            divided.err = divided.err.named("scalar divide")
        return cast(divided, dtype)

    def finished(self, kept: Node, keepdims: Any, out: Any, name: str) -> Any:
        if not _kept(keepdims):
            shape = tuple([n for k, n in enumerate(kept.shape) if k not in self.axes])
            kept = red.reshape(kept, shape)
        return finish(kept, out, name, self.source, self.axes, self.where)


@red.at_the_call(0)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue) -> Any:
    """Compute the arithmetic mean; see :func:`numpy.mean`."""
    if type(a) is ndarray and dtype is None and out is None and where is NoValue:
        x = node_of(a)
        axes = ax.reduced(axis, len(x.shape), OverflowError)
        count = 1
        for k in axes:
            count *= x.shape[k]
        loop, final = mean_loops(x, None)
        if count and x.shape:
            # What nearly every call is.
            total = reduce_node("add", x, axes, loop, ax.keeps(keepdims))
            divided = Node(o.DIVIDE, (total, const(loop.type(count), loop)), None, loop, total.shape, total.site)
            return laid_out(cast(divided, final), a, axes)
    red.checked_out(out)
    try:
        values = _Counted(a, axis, where)
        loop, final = mean_loops(values.x, dtype)
        if out is not None and dtype is None and values.x.dtype.kind in "fc" and loop is final:
            loop = red.reduction_loop("add", loop, None, out)
    except Foreign:
        return fallback.call(np.mean, "mean", (a,), _options(axis=axis, dtype=dtype, out=out, keepdims=keepdims, where=where))
    total = values.total(values.x, loop)
    if isinstance(out, (ndarray, np.ndarray)) and out.dtype in NATIVE:
        loop = final = out.dtype  # where NumPy puts the sum, and divides it
        total = converted(total, final)
    if isinstance(values.count, Node):
        # Before the division, which warns as well.
        total = warned(total, elementwise(o.EQUAL, BOOL, values.count, const(0, INT64)), "Mean of empty slice")
    elif not values.count:
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=stacklevel())
    return values.finished(cast(values.over(total, values.count, loop, last=not _kept(keepdims)), final), keepdims, out, "mean")


def _variance(
    a: Any, axis: Any, dtype: Any, ddof: float, where: Any, keepdims: Any, given_mean: Any = NoValue
) -> tuple[_Counted, Node, DType]:
    values = _Counted(a, axis, where)
    x = values.x
    loop, final = mean_loops(x, dtype)
    if given_mean is not NoValue:
        centre = array_node(given_mean)
    else:
        centre = values.over(values.total(x, loop), values.count, loop, last=False)
    wide = np.result_type(x.dtype, centre.dtype)
    away = elementwise(o.SUBTRACT, wide, cast(x, wide), cast(centre, wide))
    if 0 in x.shape:
        values.source = None  # NumPy sums the differences, and a new array of no elements lies in no order
    if wide.kind == "c":
        real = REAL_OF[wide]
        parts = [elementwise(part, real, away) for part in (o.REAL, o.IMAG)]
        squares = elementwise(o.ADD, real, *[elementwise(o.MULTIPLY, real, p, p) for p in parts])
        for part in squares.src:
            part.err = part.err.named("square")
        if dtype is None:
            # The squares are real, and so is their sum unless a dtype was asked for.
            loop = final = real
    else:
        squares = elementwise(o.MULTIPLY, wide, away, away)
        squares.err = squares.err.named("square")
    if isinstance(values.count, Node):
        left = elementwise(o.SUBTRACT, FLOAT64, cast(values.count, FLOAT64), const(float(ddof), FLOAT64))
        spent = elementwise(o.LESS_EQUAL, BOOL, left, const(0.0, FLOAT64))
        count: Node | float = warned(elementwise(o.MAXIMUM, FLOAT64, left, const(0.0, FLOAT64)), spent, _FEW)
    else:
        if values.count <= ddof:
            warnings.warn(_FEW, RuntimeWarning, stacklevel=stacklevel())
        count = max(values.count - ddof, 0)
    return values, values.over(values.total(squares, loop), count, loop, last=not _kept(keepdims)), final  # type: ignore[arg-type]


def corrected(ddof: Any, correction: Any) -> Any:
    if correction is NoValue:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@red.at_the_call(0)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NoValue, *,
    where: Any = NoValue, mean: Any = NoValue, correction: Any = NoValue,
) -> Any:  # fmt: skip
    """Compute the variance, in two passes; see :func:`numpy.var`."""
    ddof = corrected(ddof, correction)
    try:
        values, node, final = _variance(a, axis, dtype, ddof, where, keepdims, mean)
    except Foreign:
        return fallback.call(
            np.var, "var", (a,), _options(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
        )
    return values.finished(cast(node, final), keepdims, out, "var")


@red.at_the_call(0)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NoValue, *,
    where: Any = NoValue, mean: Any = NoValue, correction: Any = NoValue,
) -> Any:  # fmt: skip
    """Compute the standard deviation; see :func:`numpy.std`."""
    ddof = corrected(ddof, correction)
    try:
        values, node, final = _variance(a, axis, dtype, ddof, where, keepdims, mean)
    except Foreign:
        return fallback.call(
            np.std, "std", (a,), _options(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
        )
    # NumPy rounds a float16 variance before it takes the root, and puts the root where the variance is: numbers are converted, arrays cast.
    need_array(out)
    node = cast(node, final)
    place = final if out is None else out.dtype
    if place.kind in "biu" and (out is not None or _kept(keepdims) or len(values.axes) < len(values.x.shape)):
        np.sqrt(nothing := np.empty(0, place), out=nothing)
    root = elementwise(o.SQRT, node.dtype, node) if node.dtype.kind in "fc" else cast(
        elementwise(o.SQRT, FLOAT64, cast(node, FLOAT64)), final
    )  # fmt: skip
    return values.finished(root, keepdims, out, "std")


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NoValue) -> Any:
    """Compute the weighted mean; see :func:`numpy.average`."""
    kept = ax.keeps(keepdims)
    try:
        x = array_node(a)
        w = None if weights is None else array_node(weights)
        axes = ax.reduced(axis if axis is None else ax.several(axis, len(x.shape)), len(x.shape))
    except Foreign:
        return fallback.call(np.average, "average", (a,), _options(axis=axis, weights=weights, returned=returned, keepdims=keepdims))
    if w is None:
        found = mean(a, axes, keepdims=kept)
        if 0 in found.shape:
            raise ZeroDivisionError("division by zero")  # NumPy counts how many values there are for each mean
        if not returned:
            return found
        count = prod([x.shape[k] for k in axes])
        total = expand(const(count, node_of(found).dtype), found.shape)
        return found, result(total)
    given = w
    w = aligned_weights(w, x, None if axis is None else ax.several(axis, len(x.shape)))
    loop = np.result_type(x.dtype, w.dtype, *([FLOAT64] if x.dtype.kind in "biu" else []))
    w = cast(w, loop)
    total = reduce_node("add", expand(w, x.shape), axes, loop, kept)
    zero = elementwise(o.EQUAL, BOOL, total, const(0, loop))
    total = refused(total, zero, ZeroDivisionError, "Weights sum to zero, can't be normalized", given)
    weighted = reduce_node("add", elementwise(o.MULTIPLY, loop, cast(x, loop), w), axes, loop, kept)
    found = result(elementwise(o.DIVIDE, loop, weighted, total))
    return (found, result(total)) if returned else found


def aligned_weights(w: Node, x: Node, axes: tuple[int, ...] | None) -> Node:
    """Weights of all values, or of those along ``axes``, in a shape that broadcasts with the data's."""
    if w.shape == x.shape:
        return w
    if axes is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if tuple([x.shape[k] for k in axes]) != w.shape:
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    return red.reshape(red.build.permute(w, tuple(order)), tuple([n if k in axes else 1 for k, n in enumerate(x.shape)]))


FUNCTIONS: Final = {function.__name__: function for function in (mean, var, std, average)}
