"""The package ``numpy.polynomial``.

In: coefficients and points.  Out: NumPy's own code, run on arrays of ours where it only computes with its points (evaluation records
operations and stays lazy), else on their values.  Promise: results are arrays of ours; the classes are NumPy's, evaluated lazily.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.conversion import asarray
from lazynp.namespace.bridge.fallback import library_attribute, ours, submodule
from lazynp.storage import host

# Clenshaw's and Horner's schemes: a loop over the coefficients of operations on whole arrays of points.
_EVALUATION: Final = frozenset({"polyval", "chebval", "hermval", "hermeval", "lagval", "legval"})

_NAMES: Final = frozenset({"Polynomial", "Chebyshev", "Hermite", "HermiteE", "Laguerre", "Legendre"})


def _evaluated(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def evaluate(x: Any, c: Any, tensor: bool = True) -> Any:
        c = host(c, function.__name__) if type(c) is ndarray else np.asarray(c)
        if isinstance(x, (tuple, list)):
            x = asarray(x)
        if type(x) is not ndarray:
            return ours(function(x, c, tensor))
        # NumPy gives every set of coefficients the points' axes; it does not know our arrays for arrays here.
        return function(x, c.reshape(c.shape + (1,) * x.ndim) if tensor and c.ndim > 1 else c, False)

    return evaluate


@cache
def _class(theirs: Any) -> Any:
    """NumPy's class of series with values of ours."""
    evaluate = _evaluated(theirs._val)

    def call(self: Any, arg: Any) -> Any:
        offset, scale = self.mapparms()
        return evaluate(offset + scale * (asarray(arg) if isinstance(arg, (tuple, list, np.ndarray)) else arg), self.coef)

    def linspace(self: Any, n: int = 100, domain: Any = None) -> Any:
        return ours(theirs.linspace(self, n, domain))

    def roots(self: Any) -> Any:
        return ours(theirs.roots(self))

    members: dict[str, Any] = {"__call__": call, "linspace": linspace, "roots": roots}
    for name, member in members.items():
        member.__doc__ = getattr(theirs, name).__doc__
    return type(theirs.__name__, (theirs,), {"__module__": __name__, "__doc__": theirs.__doc__, "answered": "library", **members})


def __getattr__(name: str) -> Any:
    # Pickle looks the classes up here.
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _class(getattr(np.polynomial, name))


def attribute(value: Any, name: str) -> Any:
    """Make what ``lazynp.polynomial.<name>`` and ``lazynp.polynomial.<basis>.<name>`` are."""
    if isinstance(value, ModuleType):
        package, _, path = value.__name__.partition(".")
        return submodule(path) if package == "numpy" else value
    if isinstance(value, type):
        return _class(value) if name in _NAMES else value
    if type(value) is np.ndarray:
        return ours(value)
    if name in _EVALUATION:
        return _evaluated(value)
    return library_attribute(value, f"{getattr(value, '__module__', '').removeprefix('numpy.')}.{name}")


FUNCTIONS: Final[dict[str, Any]] = {}
