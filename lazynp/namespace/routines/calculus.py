"""Gradients and integrals, interpolation, convolution, unwrapped phases, a Bessel function.

In: samples.  Out: differences of slices; library calls.  Promise: NumPy's formulas term by term; the coordinates of a gradient are looked
at, because evenly spaced ones have a formula of their own, samples are not.
"""

from __future__ import annotations

from math import pi
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, result, wrap
from lazynp.conversion import asarray
from lazynp.graph.build import cast, concat, reshape, slice_
from lazynp.graph.dtypes import COMPLEX128, FLOAT64
from lazynp.graph.node import Node
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import item, native
from lazynp.namespace.routines.joining import concatenate
from lazynp.namespace.routines.mathematics import diff
from lazynp.namespace.routines.selecting import argsort, library, where
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.promotion import array_node, concrete
from lazynp.namespace.ufunc.reductions import cumsum, laid_like
from lazynp.namespace.ufunc.reductions import sum as add_up
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U
from lazynp.protocols import to_host
from lazynp.storage import host

# Gradients --------------------------------------------------------------------------------------------------------------------


def _spacing(given: Any, n: int) -> Any:
    """A step: a number, or the steps between coordinates where they differ."""
    if concrete(given) is not None:
        return given
    points = asarray(given)
    if not points.ndim:
        return given
    if points.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if points.shape[0] != n:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if points.dtype.kind in "iu":
        points = points.astype(FLOAT64)
    # Steps that are there are compared on the host.
    steps = np.diff(host(points, "coordinates"))
    return steps[0] if (steps == steps[0]).all() else steps


def _piece(x: Node, axis: int, start: int, length: int) -> ndarray:
    """``length`` samples from ``start`` on; negative: from the end."""
    n = x.shape[axis]
    region = [((start + n if start < 0 else start) if k == axis else 0, 1) for k in range(len(x.shape))]
    return wrap(slice_(x, region, tuple([length if k == axis else m for k, m in enumerate(x.shape)])))


def _weighted(terms: list[tuple[Any, ndarray]]) -> Any:
    found = U["multiply"](*terms[0])
    for factor, piece in terms[1:]:
        found = U["add"](found, U["multiply"](factor, piece))
    return found


def _interior(x: Node, axis: int, step: Any) -> Any:
    """Second-order differences between the ends."""
    n = x.shape[axis]
    before, here, after = [_piece(x, axis, k, n - 2) for k in range(3)]
    if np.ndim(step) == 0:
        return U["divide"](U["subtract"](after, before), 2.0 * step)
    first, second = step[:-1], step[1:]
    factors = -second / (first * (first + second)), (second - first) / (first * second), first / (second * (first + second))
    shape = [1] * len(x.shape)
    shape[axis] = -1
    return _weighted([(asarray(f.reshape(shape)), piece) for f, piece in zip(factors, (before, here, after), strict=True)])


def _end(x: Node, axis: int, step: Any, order: int, last: bool) -> Any:
    """The one-sided difference at an end."""
    even = np.ndim(step) == 0
    if order == 1:
        pair = [_piece(x, axis, k, 1) for k in ((-1, -2) if last else (1, 0))]
        return U["divide"](U["subtract"](*pair), step if even else step[-1 if last else 0])
    if even:
        factors = [0.5 / step, -2.0 / step, 1.5 / step] if last else [-1.5 / step, 2.0 / step, -0.5 / step]
    elif last:
        first, second = step[-2], step[-1]
        factors = [
            second / (first * (first + second)), -(second + first) / (first * second), (2.0 * second + first) / (second * (first + second)),
        ]  # fmt: skip
    else:
        first, second = step[0], step[1]
        factors = [
            -(2.0 * first + second) / (first * (first + second)), (first + second) / (first * second), -first / (second * (first + second)),
        ]  # fmt: skip
    return _weighted([(f, _piece(x, axis, k, 1)) for f, k in zip(factors, (-3, -2, -1) if last else (0, 1, 2), strict=True)])


@native
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Compute central differences, one-sided at the ends; see :func:`numpy.gradient`."""
    x = array_node(f)
    ndim = len(x.shape)
    axes = tuple(range(ndim)) if axis is None else ax.several(axis, ndim)
    if not varargs:
        steps: list[Any] = [1.0] * len(axes)
    elif len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        steps = list(varargs) * len(axes)
    elif len(varargs) == len(axes):
        steps = [_spacing(given, x.shape[k]) for given, k in zip(varargs, axes, strict=True)]
    else:
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    final = x.dtype if x.dtype.kind in "fc" else FLOAT64
    samples = cast(x, FLOAT64) if x.dtype.kind in "iu" else x
    found = []
    for k, step in zip(axes, steps, strict=True):
        if x.shape[k] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.")
        parts = [_end(samples, k, step, edge_order, False), _interior(samples, k, step), _end(samples, k, step, edge_order, True)]
        found.append(laid_like(concat([cast(node_of(part), final) for part in parts], k), f))
    return found[0] if len(axes) == 1 else tuple(found)


# Phases -----------------------------------------------------------------------------------------------------------------------


@native
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * pi) -> Any:
    """Take jumps of more than half a period out of a sequence; see :func:`numpy.unwrap`."""
    x = wrap(array_node(p))
    steps = diff(x, axis=axis)
    if discont is None:
        discont = period / 2
    along = ax.one(axis, x.ndim)
    dtype = np.result_type(steps.dtype, period if type(period) in (int, float) else asarray(period).dtype)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = bool(rest == 0)
    else:
        high, ambiguous = period / 2, True
    low = -high
    wrapped = U["add"](U["remainder"](U["subtract"](steps, low), period), low)
    if ambiguous:
        # A jump of exactly half a period keeps its sign.
        wrapped = where(U["logical_and"](U["equal"](wrapped, low), U["greater"](steps, 0)), high, wrapped)
    correction = where(U["less"](U["absolute"](steps), discont), 0, U["subtract"](wrapped, steps))
    first = cast(node_of(_piece(node_of(x), along, 0, 1)), dtype) if x.shape[along] else cast(node_of(x), dtype)
    if x.shape[along] < 2:
        return wrap(first)
    rest_ = U["add"](_piece(node_of(x), along, 1, x.shape[along] - 1), cumsum(correction, along))
    return wrap(concat([first, cast(node_of(rest_), dtype)], along))


# Integrals, interpolation, convolution -----------------------------------------------------------------------------------------


@native
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Integrate by the trapezoidal rule; see :func:`numpy.trapezoid`."""
    values = array_node(y)
    ndim = len(values.shape)
    step: Any = dx
    if x is not None:
        points = wrap(array_node(x))
        step = diff(points) if points.ndim == 1 else diff(points, axis=axis)
    if not -ndim <= index(axis) < ndim:
        raise IndexError("list assignment index out of range")
    along = axis % ndim
    if x is not None and points.ndim == 1:
        step = step.reshape([step.shape[0] if k == along else 1 for k in range(ndim)])
    n = values.shape[along]
    after, before = [_piece(values, along, min(k, n), max(n - 1, 0)) for k in (1, 0)]
    return add_up(U["divide"](U["multiply"](step, U["add"](after, before)), 2.0), axis)


def _one_dimensional(node: Node) -> Node:
    if len(node.shape) != 1:
        raise ValueError("object too deep for desired array" if node.shape else "object of too small depth for desired array")
    return node


@fallback.library
@native
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Interpolate linearly between points; see :func:`numpy.interp`."""
    at, points, heights = array_node(x), array_node(xp), array_node(fp)
    for node in (at, points):
        if not np.can_cast(node.dtype, FLOAT64):
            raise TypeError(f"Cannot cast array data from {node.dtype!r} to {FLOAT64!r} according to the rule 'safe'")
    dtype = COMPLEX128 if heights.dtype.kind == "c" else FLOAT64
    at, points, heights = cast(at, FLOAT64), cast(points, FLOAT64), cast(heights, dtype)
    if period is not None:
        left = right = None
        at, points, heights = _periodic(at, points, heights, period)
    _one_dimensional(points)
    _one_dimensional(heights)
    if not points.shape[0]:
        raise ValueError("array of sample points is empty")
    if points.shape != heights.shape:
        raise ValueError("fp and xp are not of the same length.")
    sides = {name: to_host(v, "interp") for name, v in (("left", left), ("right", right)) if v is not None}
    if sides:
        # What is no number is refused by NumPy itself.
        np.interp(np.empty(0), np.zeros(1), np.zeros(1, dtype), **sides)
        sides = {name: dtype.type(v).item() for name, v in sides.items()}
    return result(item("interp", (at, points, heights), sides, [(dtype, at.shape)])[0])


def _periodic(at: Node, points: Node, heights: Node, period: Any) -> tuple[Node, Node, Node]:
    """Everything moved into one period, which the samples overlap by one at either end."""
    if period == 0:
        raise ValueError("period must be a non-zero value")
    if len(points.shape) != 1 or len(heights.shape) != 1:
        raise ValueError("Data points must be 1-D sequences")
    if points.shape != heights.shape:
        raise ValueError("fp and xp are not of the same length")
    period = abs(period)
    place, start = U["remainder"](wrap(at), period), U["remainder"](wrap(points), period)
    order = argsort(start, kind="quicksort")  # of equal places NumPy takes the one that its own order puts last, or first
    start, height = start[order], wrap(heights)[order]
    starts = concatenate((start[-1:] - period, start, start[:1] + period))
    return node_of(place), node_of(starts), node_of(concatenate((height[-1:], height, height[:1])))


def _sliding(name: str, nodes: list[Node], mode: Any) -> Any:
    x, y = nodes
    # Of two and two values NumPy's modes keep one, two or three: it is asked which mode that is, and refuses what is none.
    kept = len(np.correlate(np.ones(2), np.ones(2), mode))
    n, m = x.shape[0], y.shape[0]
    mode, length = [("valid", max(n, m) - min(n, m) + 1), ("same", max(n, m)), ("full", n + m - 1)][kept - 1]
    dtype = np.result_type(x.dtype, y.dtype)
    return wrap(item(name, (cast(x, dtype), cast(y, dtype)), {"mode": mode}, [(dtype, (length,))])[0])


@fallback.library
@native
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """Compute the discrete convolution of sequences; see :func:`numpy.convolve`."""
    nodes = []
    for name, node in (("a", array_node(a)), ("v", array_node(v))):
        if 0 in node.shape[:1]:
            raise ValueError(f"{name} cannot be empty")
        nodes.append(_one_dimensional(node if node.shape else reshape(node, (1,))))
    return _sliding("convolve", nodes, mode)


@fallback.library
@native
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Compute the cross-correlation of sequences; see :func:`numpy.correlate`."""
    nodes = [_one_dimensional(array_node(x)) for x in (a, v)]
    for place, node in zip(("first", "second"), nodes, strict=True):
        if not node.shape[0]:
            raise ValueError(f"{place} array argument cannot be empty")
    return _sliding("correlate", nodes, mode)


# Functions --------------------------------------------------------------------------------------------------------------------


@fallback.library
@native
def i0(x: Any) -> Any:
    """Compute the modified Bessel function of the first kind, order 0; see :func:`numpy.i0`."""
    node = array_node(x)
    if node.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    dtype = node.dtype if node.dtype.kind == "f" else FLOAT64
    return wrap(library("i0", (cast(node, dtype),), dtype, node.shape))


FUNCTIONS: Final = {function.__name__: function for function in (gradient, unwrap, trapezoid, interp, convolve, correlate, i0)}
