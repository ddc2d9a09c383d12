"""Medians, quantiles, orders by several keys.

In: arrays, axes, quantiles and the keywords of NumPy's functions.  Out: a library call that sorts or partitions, and the interpolation as
elementwise nodes around it.  Promise: NumPy's thirteen methods with its dtypes and, operation by operation, its rounding; quantiles are
numbers that are looked at, the data is not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.arrays import node_of, result, wrap
from lazynp.conversion import asarray
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, reshape
from lazynp.graph.dtypes import BOOL, COMPLEX64, COMPLEX128, FLOAT16, INT64, NATIVE
from lazynp.graph.node import Node, Shape
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import at_once, item, native, warned
from lazynp.namespace.routines.selecting import gathered, library, sort, where
from lazynp.namespace.routines.statistics import aligned_weights, mean, mean_loops
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.promotion import Foreign, array_node
from lazynp.namespace.ufunc.reductions import NoValue, finish, reduce_node
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U
from lazynp.namespace.ufunc.ufuncs import castable, need_array, write_out
from lazynp.protocols import to_host
from lazynp.values.loading import load

ALL_NAN: Final = "All-NaN slice encountered"


class Lanes:
    """An array as rows: the axes to reduce become the last one, the others keep their order."""

    def __init__(self, a: Any, axis: Any) -> None:
        self.source = a
        self.x = x = array_node(a)
        ndim = len(x.shape)
        self.axes = tuple(range(ndim)) if axis is None else tuple(sorted(ax.several(axis, ndim)))
        kept = [k for k in range(ndim) if k not in self.axes]
        self.shape: Shape = tuple([x.shape[k] for k in kept])
        self.length = prod([x.shape[k] for k in self.axes])
        self.node = reshape(build.permute(x, (*kept, *self.axes)), (*self.shape, self.length))

    def finished(self, node: Node, keepdims: Any, out: Any, name: str, leading: int | None = None) -> Any:
        """The result as the caller gets it; quantiles have ``leading`` axes of their own before it."""
        if keepdims is not NoValue and keepdims:
            if out is None:  # a view of the result, as NumPy's is
                key = [None if k in self.axes else slice(None) for k in range(len(self.x.shape))]
                return asarray(self.finished(node, NoValue, None, name, leading))[(..., *key)]
            node = reshape(node, node.shape[: leading or 0] + tuple([1 if k in self.axes else n for k, n in enumerate(self.x.shape)]))
        if out is not None:
            return finish(node, out, name) if leading is None else write_out(out, node)
        if leading is not None:
            return result(node)
        return finish(node, None, name, self.source, self.axes)


def _piece(rows: Node, start: int, length: int) -> Node:
    """A part of the last axis."""
    region = [(0, 1)] * (len(rows.shape) - 1) + [(start, 1)]
    return build.slice_(rows, region, (*rows.shape[:-1], length))


def _element(rows: Node, place: int) -> Node:
    return reshape(_piece(rows, place, 1), rows.shape[:-1])


# Dtypes whose sort NumPy vectorises: sorting a row then costs less than finding several places in it.
_SORTED_FAST: Final = frozenset("hHiIlLqQfd")


class Placed:
    """The values that sorting every row would put at some places; NaN sorts to the end, and a row with one is NaN altogether."""

    def __init__(self, rows: Node, places: Any) -> None:
        n = rows.shape[-1]
        wanted = np.unique(np.asarray(places).astype(np.intp) % n)
        first, last = int(wanted[0]), int(wanted[-1])
        inexact = rows.dtype.kind in "fc"
        self.missing: Node | None = None
        self.found: dict[int, Node] | None = None
        if last - first <= 1 and rows.dtype.kind != "c":
            # One place is found fastest. The place before it holds the largest of what is below.
            rows = library("partition", (rows, build.buffer(wanted[-1:])), rows.dtype, rows.shape, axis=-1)
            axis = len(rows.shape) - 1
            self.found = {last: _element(rows, last)}
            if first < last:
                self.found[first] = reduce_node("maximum", _piece(rows, 0, last), (axis,), rows.dtype)
            if inexact:
                above = _piece(rows, last, n - last)
                self.missing = build.reduce(o.BITWISE_OR, elementwise(o.NOT_EQUAL, BOOL, above, above), (axis,))
                self.nan = const(np.nan, rows.dtype)
        else:
            if rows.dtype.char in _SORTED_FAST:
                rows = node_of(sort(wrap(rows)))
            else:
                places = build.buffer(np.append(wanted, [n - 1] if inexact and last < n - 1 else []).astype(np.intp))
                rows = library("partition", (rows, places), rows.dtype, rows.shape, axis=-1)
            if inexact:
                self.nan = _element(rows, n - 1)
                self.missing = elementwise(o.NOT_EQUAL, BOOL, self.nan, self.nan)
        self.rows = rows

    def at(self, places: np.ndarray[Any, Any]) -> Node:
        """The elements at places of every row; the places' axes come first."""
        rows, places = self.rows, places.astype(np.int64)
        shape = places.shape + rows.shape[:-1]
        if self.found is not None:
            parts = [reshape(self.found[k], (1, *rows.shape[:-1])) for k in (places % rows.shape[-1]).ravel().tolist()]
            return reshape(build.concat(parts, 0), shape)
        axis = len(rows.shape) - 1
        found = gathered(rows, build.buffer(np.ascontiguousarray(places.ravel())), axis)
        return reshape(build.permute(found, (axis, *range(axis))), shape)

    def or_nan(self, value: Node) -> Node:
        """``value``, whose last axes are those of the rows, or NaN where there is one in the row."""
        if self.missing is None:
            return value
        return elementwise(o.WHERE, value.dtype, self.missing, cast(self.nan, value.dtype), value)


# Medians ----------------------------------------------------------------------------------------------------------------------


@fallback.library
@native
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """Compute the middle of the sorted values, or the mean of the two there; see :func:`numpy.median`."""
    lanes = Lanes(a, axis)
    n = lanes.length
    if 0 in lanes.shape and axis is not None and len(lanes.axes) != 1:
        np.empty(lanes.x.shape, bool).reshape(*lanes.shape, -1)  # NumPy's error: how long the rows are cannot be told
    if not n:
        lanes.source = None  # NumPy takes the mean of a copy, which lies in no order
        return lanes.finished(node_of(mean(wrap(lanes.node), -1)), keepdims, out, "median")
    places = np.array([(n - 1) // 2, n // 2])
    rows = Placed(lanes.node, places)
    low, high = [rows.at(place) for place in places]
    middle = _halfway(low, high, None) if n % 2 == 0 else cast(low, mean_loops(low, None)[1])
    return lanes.finished(rows.or_nan(middle), keepdims, out, "median")


def _halfway(low: Node, high: Node, even: Node | None) -> Node:
    """The mean of the two in the middle; of an odd number (``even`` says which are) the one, for its double might overflow."""
    loop, final = mean_loops(low, None)
    low, high = cast(low, loop), cast(high, loop)
    both = elementwise(o.ADD, loop, low, high)
    both.err = both.err.named("reduce")  # NumPy takes the mean of the two
    half = elementwise(o.DIVIDE, loop, both, const(2, loop))
    return cast(half if even is None else elementwise(o.WHERE, loop, even, half, low), final)


def _sorted_rows(lanes: Lanes) -> tuple[Node, Node]:
    """(rows with NaN after everything else, how many values of each row are not NaN)."""
    rows = node_of(sort(wrap(lanes.node)))
    if rows.dtype == FLOAT16:
        # The NaN that NumPy's vectorised sort of half precision puts there signals: whatever computes with it would warn.
        rows = elementwise(o.WHERE, FLOAT16, elementwise(o.NOT_EQUAL, BOOL, rows, rows), const(np.nan, FLOAT16), rows)
    here = cast(elementwise(o.EQUAL, BOOL, lanes.node, lanes.node), INT64)
    return rows, reduce_node("add", here, (len(lanes.shape),), INT64)


def _picked(rows: Node, places: Node) -> Node:
    """An element of every row; axes of ``places`` before those of the rows pick several."""
    lanes = prod(rows.shape[:-1])
    flat = reshape(places, (build.size(places) // max(lanes, 1), lanes))
    numbers = build.expand(build.iota(lanes, 0, 1, INT64), flat.shape)
    return reshape(build.gather(reshape(rows, (lanes, rows.shape[-1])), numbers, flat), places.shape)


def _none_left(count: Node) -> Node:
    return elementwise(o.EQUAL, BOOL, count, const(0, INT64))


@fallback.library
@native
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = NoValue) -> Any:
    """Compute the median of what is not NaN; see :func:`numpy.nanmedian`."""
    x = array_node(a)
    if out is not None and axis is None and (keepdims is NoValue or not keepdims) and build.size(x):
        out[...] = nanmedian(a)  # NumPy does not look at the shape of the output here
        return out
    if not build.size(x):
        return load("lazynp.namespace.routines.nan_functions").nanmean(a, axis, out=out, keepdims=keepdims)
    if x.dtype.kind not in "fc":
        return median(a, axis, out, overwrite_input, keepdims is not NoValue and keepdims)
    lanes = Lanes(a, axis)
    rows, count = _sorted_rows(lanes)
    less = elementwise(o.SUBTRACT, INT64, count, const(1, INT64))
    places = [elementwise(o.RIGHT_SHIFT, INT64, k, const(1, INT64)) for k in (less, count)]
    even = elementwise(o.BITWISE_AND, BOOL, elementwise(o.NOT_EQUAL, BOOL, *places), elementwise(o.GREATER, BOOL, count, const(0, INT64)))
    low, high = [_picked(rows, place) for place in places]
    middle = _halfway(low, high, even)
    return lanes.finished(warned(middle, _none_left(count), ALL_NAN, each=True), keepdims, out, "nanmedian")


# Quantiles --------------------------------------------------------------------------------------------------------------------


def _between(alpha: float, beta: float) -> Callable[..., Any]:
    return lambda n, m, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _step(index: Any, even: bool) -> Any:
    """The place before a step of the distribution function, or after it; ``even``: ties go to even numbers."""
    before = np.floor(index)
    tie = index - before == 0
    if even:
        tie = tie & (np.floor(index) % 2 == 1)
    return np.maximum(np.where(tie, before, before + 1), 0)


# Method -> place of a quantile in n sorted values, m being n - 1; between places for those that interpolate.
_PLACES: Final[dict[str, Callable[..., Any]]] = {
    "inverted_cdf": lambda n, m, q: _step(n * q - 1, False),
    "averaged_inverted_cdf": lambda n, m, q: n * q - 1,
    "closest_observation": lambda n, m, q: _step(n * q - 1 - 0.5, True),
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "linear": lambda n, m, q: m * q,
    "median_unbiased": _between(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _between(3 / 8.0, 3 / 8.0),
    "lower": lambda n, m, q: np.floor(m * q),
    "higher": lambda n, m, q: np.ceil(m * q),
    "midpoint": lambda n, m, q: 0.5 * (np.floor(m * q) + np.ceil(m * q)),
    "nearest": lambda n, m, q: np.rint(m * q),
}
_DISCRETE: Final = frozenset({"inverted_cdf", "closest_observation", "lower", "higher", "nearest"})
# How far between two places, where that is not what is left of the place.
_FRACTIONS: Final[dict[str, Callable[..., Any]]] = {
    "averaged_inverted_cdf": lambda gamma, at: np.where(gamma == 0, 0.5, 1.0),
    "midpoint": lambda gamma, at: np.where(at % 1 == 0, 0.0, 0.5),
}


def _neighbours(at: Any, last: Any) -> list[Any]:
    """The places before and after ``at``; past an end both are that end (-1: the last)."""
    before = np.floor(at)
    above, below = at >= last, at < 0
    return [np.where(below, 0, np.where(above, -1, place)) for place in (before, before + 1)]


def _fraction(method: str, at: Any, start: Any) -> Any:
    gamma = at - start
    fix = _FRACTIONS.get(method)
    return gamma if fix is None else fix(gamma, at)


def _interpolated(a: Any, b: Any, t: Any, rest: Any, upper: Any) -> Any:
    """``a + (b - a) t``, from the nearer end; ``rest`` is 1 - t and ``upper`` whether t >= 1/2."""
    away = U["subtract"](b, a)
    if upper is True:
        return U["subtract"](b, U["multiply"](away, rest))
    from_a = U["add"](a, U["multiply"](away, t))
    return from_a if upper is False else where(upper, U["subtract"](b, U["multiply"](away, rest)), from_a)


def _quantile_node(lanes: Lanes, q: np.ndarray[Any, Any], method: str, weak: bool) -> Node:
    n = lanes.length
    at = np.asanyarray(_PLACES[method](n, n - 1, q))
    if method in _DISCRETE or (method == "linear" and at.dtype.kind in "iu"):
        rows = Placed(lanes.node, at)
        value = rows.at(at)
    else:
        start, after = _neighbours(at, n - 1)
        rows = Placed(lanes.node, [start, after])
        low, high = wrap(rows.at(start)), wrap(rows.at(after))
        gamma = np.asanyarray(_fraction(method, at, start.astype(np.intp)), at.dtype)
        if weak:
            t: Any = float(gamma)
            value = node_of(_interpolated(low, high, t, 1 - t, t >= 0.5))
        else:
            gamma = gamma.reshape(at.shape + (1,) * len(lanes.shape))
            t, rest, upper = [wrap(build.buffer(np.ascontiguousarray(v).reshape(gamma.shape))) for v in (gamma, 1 - gamma, gamma >= 0.5)]
            value = node_of(_interpolated(low, high, t, rest, upper))
    return rows.or_nan(value)


def _nan_quantile_node(lanes: Lanes, q: np.ndarray[Any, Any], method: str, weak: bool) -> Node:
    """Rows differ in how many values they have: places and fractions are arrays like any other."""
    rows, count = _sorted_rows(lanes)
    kind = INT64 if q.dtype.kind in "iub" else q.dtype
    quantiles = wrap(build.buffer(np.ascontiguousarray(q, kind).reshape(q.shape + (1,) * len(lanes.shape))))
    n, m = wrap(cast(count, kind)), wrap(cast(elementwise(o.SUBTRACT, INT64, count, const(1, INT64)), kind))
    at = _PLACES[method](n, m, quantiles)
    if method in _DISCRETE or (method == "linear" and kind == INT64):
        value = _picked(rows, cast(node_of(at), INT64))
    else:
        start, after = _neighbours(at, m)
        low, high = [wrap(_picked(rows, cast(node_of(where(place < 0, m, place)), INT64))) for place in (start, after)]
        t = _fraction(method, at, start).astype(at.dtype)
        rest, upper = 1 - t, t >= 0.5
        if weak:
            t, rest = t.astype(rows.dtype), rest.astype(rows.dtype)
        value = node_of(_interpolated(low, high, t, rest, upper))
    return warned(value, _none_left(count), ALL_NAN, each=True)


def _quantile(name: str, a: Any, q: Any, percent: bool, axis: Any, out: Any, method: Any, keepdims: Any, weights: Any) -> Any:
    x = array_node(a)
    if x.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    weak = type(q) in (int, float)
    quantiles = np.asanyarray(to_host(q, "quantiles"))
    if percent:
        quantiles = np.asanyarray(np.true_divide(quantiles if not weak else q, 100))
    nan = name.startswith("nan")
    if not build.size(x):
        # Nothing to look at: NumPy's answer, or its error, does not depend on values.
        options = {"axis": axis, "method": method, "keepdims": keepdims is not NoValue and keepdims}
        made = at_once(name, np.empty(x.shape, x.dtype), to_host(q, "quantiles"), weights=to_host(weights, "weights"), **options)
        return made if out is None else finish(node_of(made), out, name)
    if not _all_within_one(quantiles):
        raise ValueError("Percentiles must be in the range [0, 100]" if percent else "Quantiles must be in the range [0, 1]")
    if quantiles.dtype not in NATIVE:
        raise Foreign
    lanes = Lanes(a, axis)
    if weights is not None:
        return _weighted(name, lanes, quantiles, axis, out, method, keepdims, weights)
    if quantiles.ndim > 2:
        raise ValueError("q must be a scalar or 1d")
    if method not in _PLACES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {_PLACES.keys()}")
    if not quantiles.size:
        dtype = np.quantile(np.ones(2, x.dtype), quantiles, method=method).dtype
        node = build.expand(const(0, dtype), quantiles.shape + lanes.shape)
    elif nan and x.dtype.kind == "f":
        node = _nan_quantile_node(lanes, quantiles, method, weak)
    else:
        node = _quantile_node(lanes, quantiles, method, weak)
    need_array(out)
    if out is not None and not nan:
        castable(node.dtype, out)
    return lanes.finished(node, keepdims, out, name, quantiles.ndim)


def _all_within_one(q: np.ndarray[Any, Any]) -> bool:
    if q.ndim == 1 and not q.size:
        return True
    return bool(q.min() >= 0 and q.max() <= 1)


def _weighted(name: str, lanes: Lanes, q: np.ndarray[Any, Any], axis: Any, out: Any, method: Any, keepdims: Any, weights: Any) -> Any:
    """Weighted quantiles are steps of a distribution function that is searched row by row: NumPy's own, as an item of the schedule."""
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    w = array_node(weights)
    aligned_weights(w, lanes.x, None if axis is None else ax.several(axis, len(lanes.x.shape)))
    if q.ndim > 2:
        raise ValueError("q must be a scalar or 1d")
    options = {"axis": axis if axis is None else lanes.axes, "method": method, "weights": w}
    shape = q.shape + lanes.shape
    name_of = "nanquantile" if name.startswith("nan") else "quantile"
    places = build.buffer(np.ascontiguousarray(q).reshape(q.shape))
    (node,) = item(name_of, (lanes.x, places), options, [(lanes.x.dtype, shape)], fails=True)
    found = lanes.finished(node, keepdims, out, name, q.ndim)
    return wrap(node) if found.shape == () and out is None else found


@fallback.library
@native
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = False, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    """Compute the values below which a part of the data lies; see :func:`numpy.quantile`."""
    return _quantile("quantile", a, q, False, axis, out, method, keepdims, weights)


@fallback.library
@native
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = False, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles, in percent; see :func:`numpy.percentile`."""
    return _quantile("percentile", a, q, True, axis, out, method, keepdims, weights)


@fallback.library
@native
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = NoValue, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles of what is not NaN; see :func:`numpy.nanquantile`."""
    return _quantile("nanquantile", a, q, False, axis, out, method, keepdims, weights)


@fallback.library
@native
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = NoValue, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles of what is not NaN, in percent; see :func:`numpy.nanpercentile`."""
    return _quantile("nanpercentile", a, q, True, axis, out, method, keepdims, weights)


# Orders -----------------------------------------------------------------------------------------------------------------------


@fallback.library
@native
def lexsort(keys: Any, axis: Any = -1) -> Any:
    """Find the positions that sort by the last key, ties by the one before, ...; see :func:`numpy.lexsort`."""
    nodes = [array_node(key) for key in keys]
    if not nodes:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shape = nodes[0].shape
    if any(node.shape != shape for node in nodes):
        raise ValueError("all keys need to be the same shape")
    if not shape:
        np.lexsort((np.zeros(()),), axis)
        return result(const(0, INT64))
    (node,) = item("lexsort", (nodes,), {"axis": ax.one(axis, len(shape))}, [(INT64, shape)])
    return wrap(node)


@fallback.library
@native
def sort_complex(a: Any) -> Any:
    """Sort by real part, then by imaginary part, as complex numbers; see :func:`numpy.sort_complex`."""
    x = array_node(a)
    final = COMPLEX64 if x.dtype.char in "bhBHF" else COMPLEX128
    return wrap(cast(node_of(sort(a)), final))


FUNCTIONS: Final = {
    function.__name__: function for function in (median, nanmedian, quantile, percentile, nanquantile, nanpercentile, lexsort, sort_complex)
}
