"""Windows, segments and positions, for arrays on a GPU.

In: the arguments of functions that go along sequences: convolution, reductions of segments, fits, conversions of positions.  Out: the
same result out of recorded gathers and reductions, and CuPy's linear algebra.  Promise: NumPy's dtypes and shapes, and its values to the
bit where the order of their terms does not matter; None for what is not composed here, has an error or a warning: that is NumPy's to do,
on host copies, and counted.

``convolve`` and ``correlate`` are sums over windows, which fuse with what is around them.  ``reduceat`` of ufuncs that are reductions
combines pieces of at most ``PIECE`` elements.  Both are exact for whole numbers, and add up floats in an order of their own.  ``polyfit``
leaves ``full=True`` and ill-conditioned problems to NumPy; ``roots`` leaves polynomials of up to ``LARGE`` coefficients to the host.
"""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.conversion import asarray, from_numpy
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, gather, reshape
from lazynp.graph.dtypes import BOOL, FLOAT16, FLOAT32, INT64, REAL_OF, DType
from lazynp.graph.node import Node
from lazynp.namespace.device import sharing
from lazynp.namespace.device.accumulating import NEUTRAL, WHOLE, summed
from lazynp.namespace.device.placement import on_gpu
from lazynp.namespace.routines.joining import concatenate, stack
from lazynp.namespace.routines.polynomials import vander
from lazynp.namespace.routines.shaping import moveaxis
from lazynp.namespace.ufunc.loops import truth
from lazynp.namespace.ufunc.reductions import all as everywhere
from lazynp.namespace.ufunc.reductions import max as largest
from lazynp.namespace.ufunc.reductions import min as smallest
from lazynp.namespace.ufunc.reductions import sum as add_up
from lazynp.namespace.ufunc.table import ON_BOOL, REDUCTIONS
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U
from lazynp.storage import host

Array = Any  # of ours

PIECE: Final = 128
"""Elements of a segment that one reduction combines, in order."""

LARGE: Final = 64
"""Coefficients from which on the eigenvalues that are a polynomial's roots are dear enough for a GPU."""

# Windows ----------------------------------------------------------------------------------------------------------------------


def correlate(a: Array, v: Array, mode: str) -> Array:
    """Sums of products of one sequence with windows of the other."""
    x, y = node_of(a), node_of(v)
    if y.dtype.kind == "c":
        y = elementwise(o.CONJUGATE, y.dtype, y)
    if x.shape[0] >= y.shape[0]:
        return wrap(_slid(x, y, mode))
    return wrap(_slid(y, x, mode))[::-1]


def convolve(a: Array, v: Array, mode: str) -> Array:
    """The same with the window turned round."""
    x, y = (node_of(a), node_of(v)) if a.size >= v.size else (node_of(v), node_of(a))
    return wrap(_slid(x, node_of(wrap(y)[::-1]), mode))


def _slid(x: Node, window: Node, mode: str) -> Node:
    """The window at each place of the mode; a sum has its terms in order, one thread for each."""
    n, m = x.shape[0], window.shape[0]
    before, length = {"valid": (0, n - m + 1), "same": (m // 2, n), "full": (m - 1, n + m - 1)}[mode]
    dtype = x.dtype
    if dtype == FLOAT16:
        x, window = cast(x, FLOAT32), cast(window, FLOAT32)  # rounded once, at the end
    column = expand(reshape(build.iota(length, -before, 1, INT64), (1, length)), (m, length))
    place = elementwise(o.ADD, INT64, column, reshape(build.iota(m, 0, 1, INT64), (m, 1)))
    last = const(n - 1, INT64)
    at = elementwise(o.MINIMUM, INT64, elementwise(o.MAXIMUM, INT64, place, const(0, INT64)), last)
    terms = elementwise(o.BITWISE_AND if dtype == BOOL else o.MULTIPLY, x.dtype, gather(x, at), reshape(window, (m, 1)))
    inside = elementwise(o.EQUAL, BOOL, at, place)
    terms = elementwise(o.WHERE, x.dtype, inside, terms, const(0, x.dtype))
    return cast(build.reduce(o.BITWISE_OR if dtype == BOOL else o.ADD, terms, (0,)), dtype)


# Segments ---------------------------------------------------------------------------------------------------------------------


def reduceat(of: Any, x: Node, at: np.ndarray[Any, Any], axis: int, dtype: DType) -> Node | None:
    """``of.reduceat`` of a value on a GPU; None where NumPy does it.

    Segments are cut into pieces, and the pieces of a segment are its segment when each is one number.
    """
    n = x.shape[axis]
    if of.__name__ not in REDUCTIONS or not at.size or not build.size(x) or not on_gpu(wrap(x)) or np.geterr()["under"] != "ignore":
        return None
    op, truths = REDUCTIONS[of.__name__]
    x = truth(x) if truths else cast(x, dtype)
    if x.dtype.kind == "c":
        if op is not o.ADD:
            return None
        real = REAL_OF[x.dtype]
        parts = [reduceat(of, elementwise(part, real, x), at, axis, real) for part in (o.REAL, o.IMAG)]
        return None if None in parts else elementwise(o.COMPLEX, x.dtype, *[part for part in parts if part is not None])
    op = ON_BOOL.get(op, op) if x.dtype == BOOL else WHOLE.get(op, op) if x.dtype.kind != "f" else op
    x = node_of(moveaxis(wrap(x), axis, 0))
    count = np.maximum(np.append(at[1:], n) - at, 1)
    while True:
        width = min(int(count.max()), PIECE, 2 << int(count.mean()).bit_length())
        pieces = -(-count // width)
        first = np.cumsum(pieces) - pieces
        begin = np.repeat(at, pieces) + width * (np.arange(pieces.sum()) - np.repeat(first, pieces))
        x = _pieces(op, x, begin, np.minimum(np.repeat(at + count, pieces) - begin, width), width)
        at, count = first, pieces
        if len(pieces) == len(begin):
            return node_of(moveaxis(wrap(x), 0, axis))


def _pieces(op: o.Op, x: Node, begin: np.ndarray[Any, Any], size: np.ndarray[Any, Any], width: int) -> Node:
    """Combine ``size`` rows of ``x``, at most ``width``, from each of ``begin`` on."""
    row = reshape(build.iota(width, 0, 1, INT64), (width, 1))
    start, length = [node_of(from_numpy(part)) for part in (begin, size)]
    number = elementwise(o.MINIMUM, INT64, row, elementwise(o.SUBTRACT, INT64, length, const(1, INT64)))
    terms = gather(x, elementwise(o.ADD, INT64, start, number))
    if op in NEUTRAL:
        inside = elementwise(o.EQUAL, BOOL, number, row)
        inside = reshape(inside, inside.shape + (1,) * (len(x.shape) - 1))
        terms = elementwise(o.WHERE, x.dtype, inside, terms, const(NEUTRAL[op], x.dtype))
    return summed(terms) if op is o.ADD else build.reduce(op, terms, (0,))


# Positions --------------------------------------------------------------------------------------------------------------------


def _positions(x: Any) -> Array:
    """Positions as NumPy takes them."""
    if x.dtype.kind not in "iu" or x.dtype.char in "LQ":
        raise ValueError
    return x.astype(INT64)


def unravel_index(indices: Array, shape: Any, order: str = "C") -> Any:
    """The position along each axis of what has a number."""
    lengths = [index(n) for n in shape] if np.iterable(shape) else [index(shape)]
    x = _positions(indices)
    ends = host(stack([asarray(smallest(x)), asarray(largest(x))]), "unravel_index")
    if order not in ("C", "F") or not lengths or ends[0] < 0 or ends[1] >= prod(lengths):
        return None
    found = []
    for n in lengths[:0:-1] if order == "C" else lengths[:-1]:
        found.append(x % n)
        x = x // n
    found.append(x)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """The number of what has a position along each axis."""
    lengths = [index(n) for n in dims] if np.iterable(dims) else [index(dims)]
    modes = [mode] * len(lengths) if isinstance(mode, str) else list(mode)
    parts = list(multi_index)
    if order not in ("C", "F") or not len(lengths) == len(modes) == len(parts) or not set(modes) <= {"raise", "wrap", "clip"}:
        return None
    places = []
    for part, n, how in zip(parts, lengths, modes, strict=True):
        x = _positions(asarray(part))
        if how == "wrap":
            x = U["remainder"](x, n)
        elif how == "clip":
            x = U["minimum"](U["maximum"](x, 0), n - 1)
        elif host(asarray((smallest(x) < 0) | (largest(x) >= n)), "ravel_multi_index"):
            return None
        places.append(x)
    pairs = list(zip(places, lengths, strict=True))
    found: Any = 0
    for x, n in pairs if order == "C" else pairs[::-1]:
        found = found * n + x
    return found


# Polynomials ------------------------------------------------------------------------------------------------------------------


def _linalg(name: str, *args: Any) -> Any:
    """CuPy's function; None where it refuses."""
    return sharing.computed(f"linalg.{name}", args, {}, [node_of(x) for x in args if type(x) is ndarray])


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    """Coefficients of least squares; what is ill conditioned is NumPy's to warn of."""
    order = index(deg) + 1
    x, y = [asarray(each) + 0.0 for each in (x, y)]
    if order < 1 or full or x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        return None
    if cov and cov != "unscaled" and len(x) <= order:
        return None
    powers, values = vander(x, order), y
    if w is not None:
        w = asarray(w) + 0.0
        if w.shape != x.shape:
            return None
        powers = (powers * w[:, None]).astype(powers.dtype)
        values = (values * (w[:, None] if values.ndim == 2 else w)).astype(values.dtype)
    scale = U["sqrt"](add_up(powers * powers, 0))
    powers = powers / scale
    limit = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    solved = _linalg("lstsq", powers, values, limit)
    if solved is None:
        return None
    found, residuals, rank, _ = solved
    found = (found.T / scale).T
    if rank != order or not host(asarray(everywhere(U["isfinite"](found))), "polyfit"):
        return None
    if not cov:
        return found
    product = node_of(powers.T @ powers)
    inverse = wrap(build.call("numpy", ("linalg.inv", ()), (product,), product.dtype, product.shape))
    spread = inverse / (scale[:, None] * scale)
    factor = 1 if cov == "unscaled" else residuals / (len(x) - order)
    return found, (spread if y.ndim == 1 else spread[:, :, None]) * factor


def roots(p: Any) -> Any:
    """Eigenvalues of the companion matrix."""
    known = host(p, "roots")
    (places,) = np.nonzero(known)
    if known.ndim != 1 or len(places) < 2 or places[-1] - places[0] < LARGE:
        return None
    kept = known[places[0] : places[-1] + 1]
    kept = kept if kept.dtype.kind in "fc" else kept.astype(float)
    matrix = np.diag(np.ones(len(kept) - 2, kept.dtype), -1)
    matrix[0] = -kept[1:] / kept[0]
    found = _linalg("eigvals", asarray(matrix))
    return None if found is None else concatenate([found, asarray(np.zeros(len(known) - places[-1] - 1, found.dtype))])


# What records operations and looks at no value of the arrays.
LAZY: Final = frozenset({"convolve", "correlate"})

ITEMS: Final = {function.__name__: function for function in (convolve, correlate)}
"""Items of the schedule, by name."""

AT_CALL: Final = {function.__name__: function for function in (unravel_index, ravel_multi_index, polyfit, roots)}
"""Functions that are NumPy's own otherwise, with the user's arguments."""
