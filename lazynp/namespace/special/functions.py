"""Functions of ``lazynp.special`` that are no ufuncs: sums of exponentials, and what else is made of other functions.

In: arrays.  Out: arrays, recorded like any program of a user.  Promise: SciPy's results, signatures and special values; no warnings.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.conversion import asarray
from lazynp.graph.dtypes import FLOAT64
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.creation import full
from lazynp.namespace.routines.mathematics import sinc
from lazynp.namespace.routines.selecting import where
from lazynp.namespace.special.ufuncs import scipys
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc import reductions as r
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U

_exp, _log, _log1p, _sign, _abs = (U[name] for name in ("exp", "log", "log1p", "sign", "absolute"))


def _array(x: Any) -> Any:
    """An array of ours, floating at least; anything else as it is."""
    values: Any = asarray(x)
    return values.astype(FLOAT64) if values.dtype.kind in "biu" else values


def _finished(value: Any, axes: Any, keepdims: bool) -> Any:
    """A result whose reduced axes were kept, as the caller wants it; a scalar where it has no axes left."""
    if not keepdims:
        value = value.reshape(tuple([n for k, n in enumerate(value.shape) if k not in axes]))
    return value if value.ndim else value[()]


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Logarithm of the sum of exponentials; see :func:`scipy.special.logsumexp`.

    The largest elements are summed apart, so that little is lost where they outweigh the rest.
    """
    values, weights = _array(a), None if b is None else _array(b)
    if any(type(x) is not ndarray or x.dtype.kind != "f" for x in (values, weights) if x is not None):
        return fallback.call(scipys("logsumexp"), "scipy.special.logsumexp", (a, axis, b, keepdims, return_sign), {})
    with np.errstate(all="ignore"):
        if weights is not None:
            dtype = np.result_type(values.dtype, weights.dtype)
            values, weights = values.astype(dtype), weights.astype(dtype)
            # What has no weight adds nothing, even where it is infinite or NaN.
            values = where(weights != 0, values, -np.inf)
        if not values.ndim:
            values = values.reshape(1)
        axes = ax.reduced(axis, values.ndim)
        if not values.size:
            out = full(tuple([1 if k in axes else n for k, n in enumerate(values.shape)]), -np.inf, values.dtype)
            sign = _sign(out)
        else:
            out, sign = _logsumexp(values, weights, axes, return_sign)
    out = _finished(out, axes, keepdims)
    return (out, _finished(sign, axes, keepdims)) if return_sign else out


def _logsumexp(a: Any, b: Any, axes: tuple[int, ...], wants_sign: bool) -> tuple[Any, Any]:
    largest = r.max(a, axes, keepdims=True)
    top = a == largest
    power = _exp(where(top, 0.0, a - largest))
    weighted = power if b is None else b * power
    most = r.sum(where(top, weighted, 0.0), axes, keepdims=True)
    rest = r.sum(where(top, 0.0, weighted), axes, keepdims=True)
    if b is None and not wants_sign:
        return _log1p(rest / most) + _log(most) + largest, None
    nothing = most == 0
    ratio = where(nothing, 0.0, rest / most)
    sign = where(nothing, _sign(rest), _sign(ratio + 1) * _sign(most))
    sign = where(largest == -np.inf, 0.0, sign)
    size = _log1p(where(ratio < -1, -ratio - 2, ratio)) + _log(_abs(most))
    out = where(nothing, _log(_abs(rest)), size) + largest
    return out if wants_sign else where(sign < 0, np.nan, out), sign


def softmax(x: Any, axis: Any = None) -> Any:
    """``exp(x)`` divided by its sum along an axis; see :func:`scipy.special.softmax`."""
    values = asarray(x)
    power = _exp(values - r.max(values, axis, keepdims=True))
    return power / r.sum(power, axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of ``softmax``; see :func:`scipy.special.log_softmax`."""
    values = asarray(x)
    largest = r.max(values, axis, keepdims=True)
    shifted = values - where(U["isfinite"](largest), largest, 0)
    with np.errstate(divide="ignore"):
        return shifted - _log(r.sum(_exp(shifted), axis, keepdims=True))


def softplus(x: Any, **kwargs: Any) -> Any:
    """``log(1 + exp(x))``; see :func:`scipy.special.softplus`."""
    return U["logaddexp"](0, x, **kwargs)


FUNCTIONS: Final = {
    function.__name__: function for function in (logsumexp, softmax, log_softmax, softplus)
} | {"sinc": sinc}  # fmt: skip
