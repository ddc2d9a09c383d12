"""``numpy.emath``: functions that answer with complex numbers outside their real domain.

In: arrays.  Out: the ufunc of the same name, of the complex array where some value is outside.  Promise: NumPy's dtypes; whether a value
is outside is the one thing that is computed at the call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.conversion import asarray
from lazynp.graph.dtypes import COMPLEX128
from lazynp.namespace.bridge.fallback import library_call
from lazynp.namespace.ufunc.reductions import any as any_
from lazynp.namespace.ufunc.ufuncs import UFUNCS

_COMPLEX64 = np.dtype(np.complex64)
_NARROW = frozenset("bhBHfF")


def _below_zero(x: Any) -> Any:
    return UFUNCS["less"](x, 0)


def _beyond_one(x: Any) -> Any:
    return UFUNCS["greater"](UFUNCS["absolute"](x), 1)


def _holds(x: Any, outside: Any) -> bool:
    """Tell whether some real value of ``x`` is outside."""
    if x.dtype.kind in "bu" and outside is _below_zero:
        return False
    found = outside(x)
    if x.dtype.kind == "c":
        found = UFUNCS["bitwise_and"](UFUNCS["equal"](x.imag, 0), found)
    return bool(any_(found))


def _extended(x: Any, outside: Any) -> Any:
    """``x`` as an array, complex where a real value is outside the domain."""
    if not _holds(x, outside):
        return x
    return x.astype(_COMPLEX64 if x.dtype.char in _NARROW else COMPLEX128)


def _unary(name: str, ufunc_name: str, outside: Any) -> Any:
    theirs = getattr(np.emath, name)
    of = UFUNCS[ufunc_name]

    def function(x: Any) -> Any:
        values = asarray(x)
        if type(values) is not ndarray:
            return library_call(theirs, f"emath.{name}", (x,), {})
        return of(_extended(values, outside))

    function.__name__ = function.__qualname__ = name
    return function


def logn(n: Any, x: Any) -> Any:
    """Compute the logarithm to base ``n``; see :func:`numpy.emath.logn`."""
    logarithm = UFUNCS["log"]
    return UFUNCS["divide"](*[logarithm(_extended(asarray(value), _below_zero)) for value in (x, n)])


def power(x: Any, p: Any) -> Any:
    """Raise ``x`` to the power ``p``; see :func:`numpy.emath.power`."""
    base, exponent = _extended(asarray(x), _below_zero), asarray(p)
    if _holds(exponent, _below_zero):
        exponent = UFUNCS["multiply"](exponent, 1.0)
    return UFUNCS["power"](base, exponent)


FUNCTIONS: Final = {
    **{name: _unary(name, name, _below_zero) for name in ("sqrt", "log", "log2", "log10")},
    **{name: _unary(name, name, _beyond_one) for name in ("arccos", "arcsin", "arctanh")},
    "logn": logn,
    "power": power,
}
