"""Functions that are made of ufuncs and reductions: rounding, comparing, differences, parts of complex numbers, transforms.

In: arrays.  Out: whatever the functions below make of them.  Promise: the same steps as NumPy's own Python code, hence its dtypes
and bits.
"""

from __future__ import annotations

import math
import sys
import warnings
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, result, wrap, wrap_ordered
from lazynp.conversion import NO_COPY, anyarray
from lazynp.conversion import asarray as _asarray
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise
from lazynp.graph.dtypes import BOOL, FLOAT64, NATIVE, REAL_OF
from lazynp.graph.node import Node, stacklevel
from lazynp.layout import copy_order
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import native
from lazynp.namespace.routines.joining import concatenate
from lazynp.namespace.routines.selecting import where
from lazynp.namespace.routines.shaping import moveaxis, of_arrays
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc import reductions as red
from lazynp.namespace.ufunc.promotion import Foreign, array_node, concrete, overrides
from lazynp.namespace.ufunc.reductions import NoValue, laid_out
from lazynp.namespace.ufunc.ufuncs import NO_ARRAY, UFUNCS, castable, need_array, ordered, write_out
from lazynp.viewing import view_slice

U = UFUNCS

# Rounding ---------------------------------------------------------------------------------------------------------------------


def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Round values to a number of decimals, halves to even; see :func:`numpy.round`."""
    digits = index(decimals)
    need_array(out, NO_ARRAY)
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.round, "round", (a, digits), {} if out is None else {"out": out})
    order = "K"
    if x.dtype.kind in "iu" and digits >= 0:
        if out is None and x.shape:
            return wrap_ordered(x, copy_order(_asarray(a), "K"))  # NumPy copies, which is not the order of a ufunc's result
        if out is not None and not np.can_cast(x.dtype, out.dtype, "same_kind"):
            raise TypeError(f"Cannot cast array data from {x.dtype!r} to {out.dtype!r} according to the rule 'same_kind'")
        node = x
    elif x.dtype.kind == "c":
        real = REAL_OF[x.dtype]
        parts = [node_of(round(wrap(elementwise(part, real, x)), digits)) for part in (o.REAL, o.IMAG)]
        node = elementwise(o.COMPLEX, x.dtype, *parts)
        if out is not None and out.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        if out is None and x.shape:
            return wrap_ordered(node, copy_order(_asarray(a), "K"))  # NumPy rounds the parts of a copy
    elif x.dtype == BOOL and digits and out is None:
        raise np._core._exceptions._UFuncOutputCastingError(  # type: ignore[attr-defined]
            np.multiply if digits > 0 else np.divide, "same_kind", FLOAT64, BOOL, 2
        )
    else:
        node, order = _rounded(x, digits), "A" if digits else "K"
        if out is not None:
            first = np.rint if digits == 0 else np.multiply if digits > 0 else np.divide
            castable(FLOAT64 if x.dtype.kind in "iu" else node.dtype, out, first, 2 if digits else 1)
    if out is not None:
        return write_out(out, node)
    if not node.shape:
        return result(node)
    return ordered(node, (a,), "K") if order == "K" else wrap_ordered(node, copy_order(_asarray(a), order))


def _rounded(x: Node, digits: int) -> Node:
    array = wrap(x)
    if digits == 0:
        return node_of(U["rint"](array))
    if not -(1 << 31) <= digits < 1 << 31:
        raise OverflowError(f"signed integer is {'greater than maximum' if digits > 0 else 'less than minimum'}")
    factor = 10.0 ** abs(digits) if abs(digits) <= sys.float_info.max_10_exp else math.inf
    first, second = ("multiply", "divide") if digits > 0 else ("divide", "multiply")
    scaled = U["rint"](U[first](array, factor))
    node = node_of(U[second](scaled, factor))
    return cast(node, x.dtype) if x.dtype.kind in "iu" else node


def fix(x: Any, out: Any = None) -> Any:
    """Round values towards zero; see :func:`numpy.fix`."""
    return U["trunc"](x) if out is None else U["trunc"](x, out=out)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN and infinities by numbers; see :func:`numpy.nan_to_num`."""
    try:
        node = _without_nan(array_node(x), nan, posinf, neginf)
    except Foreign:
        return fallback.call(np.nan_to_num, "nan_to_num", (x, copy, nan, posinf, neginf), {})
    if copy:
        return laid_out(node, x)
    if not isinstance(x, (ndarray, np.ndarray)):
        raise ValueError(NO_COPY)
    return write_out(x, node)


def _without_nan(x: Node, nan: Any, posinf: Any, neginf: Any) -> Node:
    dtype = x.dtype
    if dtype.kind == "c":
        real = REAL_OF[dtype]
        parts = [_without_nan(elementwise(part, real, x), nan, posinf, neginf) for part in (o.REAL, o.IMAG)]
        return elementwise(o.COMPLEX, dtype, *parts)
    if dtype.kind != "f":
        return x
    limits = np.finfo(dtype)
    node = x
    for test, value in (
        (elementwise(o.ISNAN, BOOL, x), nan),
        (elementwise(o.EQUAL, BOOL, x, const(np.inf, dtype)), limits.max if posinf is None else posinf),
        (elementwise(o.EQUAL, BOOL, x, const(-np.inf, dtype)), limits.min if neginf is None else neginf),
    ):
        known = concrete(value)
        other = const(known, dtype) if known is not None else cast(array_node(value), dtype)
        if build.broadcast_shape(other.shape, x.shape) != x.shape:
            raise ValueError(f"could not broadcast input array from shape {other.shape} into shape {x.shape}")
        node = elementwise(o.WHERE, dtype, test, other, node)
    return node


# Complex numbers --------------------------------------------------------------------------------------------------------------


def real(val: Any) -> Any:
    """Take the real part; see :func:`numpy.real`."""
    try:
        return val.real
    except AttributeError:
        return anyarray(val).real


def imag(val: Any) -> Any:
    """Take the imaginary part; see :func:`numpy.imag`."""
    try:
        return val.imag
    except AttributeError:
        return anyarray(val).imag


def angle(z: Any, deg: bool = False) -> Any:
    """Compute the argument of complex numbers; see :func:`numpy.angle`."""
    try:
        node = array_node(z)
    except Foreign:
        return fallback.call(np.angle, "angle", (z, deg), {})
    if node.dtype.kind == "c":
        kind = REAL_OF[node.dtype]
        found = U["arctan2"](*[laid_out(elementwise(part, kind, node), z) for part in (o.IMAG, o.REAL)])
    else:
        found = U["arctan2"](0, laid_out(node, z))
    return U["multiply"](found, 180 / np.pi) if deg else found


def iscomplexobj(x: Any) -> bool:
    """Tell whether the dtype is complex; see :func:`numpy.iscomplexobj`."""
    kind: Any = getattr(getattr(x, "dtype", None), "type", None)
    return issubclass(np.asarray(x).dtype.type if kind is None else kind, np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Tell whether the dtype is not complex; see :func:`numpy.isrealobj`."""
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Any:
    """Tell which values have an imaginary part; see :func:`numpy.iscomplex`."""
    try:
        node = array_node(x)
    except Foreign:
        return fallback.call(np.iscomplex, "iscomplex", (x,), {})
    if node.dtype.kind != "c":
        return result(build.expand(const(False, BOOL), node.shape))
    return U["not_equal"](result(elementwise(o.IMAG, REAL_OF[node.dtype], node)), 0)


def isreal(x: Any) -> Any:
    """Tell which values have no imaginary part; see :func:`numpy.isreal`."""
    try:
        array_node(x)
    except Foreign:
        return fallback.call(np.isreal, "isreal", (x,), {})
    return U["logical_not"](iscomplex(x))


def isposinf(x: Any, out: Any = None) -> Any:
    """Tell where there is positive infinity; see :func:`numpy.isposinf`."""
    return _signed_infinity(x, out, False)


def isneginf(x: Any, out: Any = None) -> Any:
    """Tell where there is negative infinity; see :func:`numpy.isneginf`."""
    return _signed_infinity(x, out, True)


def _signed_infinity(x: Any, out: Any, negative: bool) -> Any:
    infinite = U["isinf"](x)
    try:
        sign = U["signbit"](x)
    except TypeError:
        dtype = _asarray(x).dtype
        raise TypeError(f"This operation is not supported for {dtype} values because it would be ambiguous.") from None
    if not negative:
        sign = U["logical_not"](sign)
    return U["logical_and"](infinite, sign, **({} if out is None else {"out": out}))


# Comparing --------------------------------------------------------------------------------------------------------------------


def _invalid(message: str) -> None:
    """Do what NumPy's error state asks for where a value is invalid."""
    mode = np.geterr()["invalid"]
    if mode == "raise":
        raise FloatingPointError(message)
    if mode == "warn":
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    elif mode == "print":
        sys.stdout.write(message + "\n")


def isclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: bool = False) -> Any:
    """Tell where values are equal within a tolerance; see :func:`numpy.isclose`."""
    weak = (int, float, complex)
    x, y, small, relative = [v if isinstance(v, weak) or overrides(v) else _asarray(v) for v in (a, b, atol, rtol)]
    if any(overrides(v) or getattr(v, "dtype", BOOL) not in NATIVE for v in (x, y)):
        return fallback.call(np.isclose, "isclose", (a, b, rtol, atol, equal_nan), {})
    if not all(np.isfinite(value) for v in (small, relative) if (value := concrete(v)) is not None):
        _invalid(f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}")
    if type(y) is ndarray:
        y = _asarray(y, np.result_type(y.dtype, 1.0))
    elif isinstance(y, int):
        y = float(y)
    with np.errstate(invalid="ignore"):
        # Operators: what the user gave as Python numbers stays weak.
        bound = small + relative * abs(y)
        near = U["less_equal"](abs(x - y), bound)
        found = U["bitwise_or"](U["bitwise_and"](near, U["isfinite"](y)), U["equal"](x, y))
        if equal_nan:
            found = U["bitwise_or"](found, U["bitwise_and"](U["isnan"](x), U["isnan"](y)))
    return found


def allclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: bool = False) -> bool:
    """Tell whether all values are equal within a tolerance; see :func:`numpy.allclose`."""
    return bool(red.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Tell whether shapes and values are the same; see :func:`numpy.array_equal`."""
    try:
        x, y = _asarray(a1), _asarray(a2)
    except Exception:
        return False
    if x.shape != y.shape:
        return False
    if type(x) is not ndarray or type(y) is not ndarray:
        return bool(fallback.call(np.array_equal, "array_equal", (a1, a2, equal_nan), {}))
    same = U["equal"](x, y)
    if equal_nan:
        same = U["bitwise_or"](same, U["bitwise_and"](U["isnan"](x), U["isnan"](y)))
    return bool(red.all(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Tell whether values are the same after broadcasting; see :func:`numpy.array_equiv`."""
    try:
        x, y = _asarray(a1), _asarray(a2)
        np.broadcast_shapes(x.shape, y.shape)
    except Exception:
        return False
    return bool(red.all(x == y))


# Differences and products -----------------------------------------------------------------------------------------------------


def _cut(x: ndarray, axis: int, start: int, stop: int) -> ndarray:
    shape = x.shape
    region = tuple([(start, 1) if k == axis else (0, 1) for k in range(len(shape))])
    return view_slice(x, shape, region, tuple([max(stop - start, 0) if k == axis else n for k, n in enumerate(shape)]))


@of_arrays
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NoValue, append: Any = NoValue) -> Any:
    """Compute the differences of neighbours; see :func:`numpy.diff`."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = ax.one(axis, a.ndim)
    parts = [a]
    for extra, first in ((prepend, True), (append, False)):
        if extra is NoValue:
            continue
        piece = _asarray(extra)
        if piece.ndim == 0:
            piece = wrap(build.expand(node_of(piece), tuple([1 if k == axis else m for k, m in enumerate(a.shape)])))
        parts.insert(0 if first else len(parts), piece)
    x = concatenate(parts, axis) if len(parts) > 1 else a
    subtract = U["not_equal"] if x.dtype == BOOL else U["subtract"]
    for _ in range(n):
        m = x.shape[axis]
        x = subtract(_cut(x, axis, 1 if m else 0, m), _cut(x, axis, 0, m - 1))
    return x


@native
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Compute the differences of the flattened array's neighbours; see :func:`numpy.ediff1d`."""
    x = array_node(ary)
    flat = wrap(build.reshape(x, (build.size(x),)))
    n = flat.shape[0]
    parts = [node_of(U["subtract"](_cut(flat, 0, min(n, 1), n), _cut(flat, 0, 0, n - 1)))]
    for name, given, place in (("to_begin", to_begin, 0), ("to_end", to_end, 2)):
        if given is None:
            continue
        piece = array_node(given)
        if not np.can_cast(piece.dtype, x.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        parts.insert(place, cast(build.reshape(piece, (build.size(piece),)), x.dtype))
    return wrap(build.concat(parts, 0))


@native
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    """Compute the cross product of vectors; see :func:`numpy.cross`."""
    x, y = wrap(array_node(a)), wrap(array_node(b))
    if axis is not None:
        axisa = axisb = axisc = axis
    if not x.ndim or not y.ndim:
        raise ValueError("At least one array has zero dimension")
    x = _last(x, ax.one(axisa, x.ndim))
    y = _last(y, ax.one(axisb, y.ndim))
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if 2 in (x.shape[-1], y.shape[-1]):
        warnings.warn(
            "Arrays of 2-dimensional vectors are deprecated. Use arrays of 3-dimensional vectors instead. (deprecated in NumPy 2.0)",
            DeprecationWarning,
            stacklevel=stacklevel(),
        )
    dtype = np.result_type(x.dtype, y.dtype)
    x, y = _asarray(x, dtype), _asarray(y, dtype)
    p, q = [[v[..., k] for k in range(v.shape[-1])] for v in (x, y)]
    if len(p) == len(q) == 2:
        return wrap(node_of(_minor(p, q, 0, 1)))
    parts = [node_of(_minor(p, q, i, j)) for i, j in ((1, 2), (2, 0), (0, 1))]
    node = build.concat([build.reshape(part, (*part.shape, 1)) for part in parts], len(parts[0].shape))
    return moveaxis(wrap(node), -1, ax.one(axisc, len(node.shape)))


def _minor(p: list[Any], q: list[Any], i: int, j: int) -> Any:
    """``p[i] q[j] - p[j] q[i]``; a vector of two has no third component to multiply with."""
    first, second = [U["multiply"](p[k], q[m]) if k < len(p) and m < len(q) else None for k, m in ((i, j), (j, i))]
    if first is None:
        return U["negative"](second)
    return first if second is None else U["subtract"](first, second)


def _last(x: ndarray, axis: int) -> ndarray:
    found: ndarray = moveaxis(x, axis, -1)
    return found


def sinc(x: Any) -> Any:
    """Compute ``sin(pi x) / (pi x)``; see :func:`numpy.sinc`."""
    try:
        node = array_node(x)
    except Foreign:
        return fallback.call(np.sinc, "sinc", (x,), {})
    y = U["multiply"](np.pi, laid_out(node, x))
    eps = np.finfo(y.dtype).eps if y.dtype.kind in "fc" else 1e-20
    y = where(U["not_equal"](y, 0), y, eps) if y.ndim else U["multiply"](where(U["not_equal"](y, 0), y, eps), 1)
    return U["divide"](U["sin"](y), y)


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        round, fix, nan_to_num, real, imag, angle, iscomplexobj, isrealobj, iscomplex, isreal, isposinf, isneginf, isclose, allclose,
        array_equal, array_equiv, diff, ediff1d, cross, sinc,
    )
} | {"around": red.named(round, "around")}  # fmt: skip
