"""How far the special functions are from exact values.

In: results of a function, and the exact values as ``bench/special_functions.py`` writes them.  Out: errors in units in the last place, and
the functions as the two tiers compute them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lazynp
import lazynp.special
from lazynp.values import config


def exact_values(value: Any, rest: Any, exponent: Any) -> Any:
    """As long doubles."""
    wide = np.longdouble
    return np.ldexp(value.astype(wide) + rest.astype(wide) / (127 * 2.0**53), exponent.astype(int))


def errors_in_ulps(result: Any, value: Any, rest: Any, exponent: Any, name: str = "", x: Any = None) -> Any:
    """Units in the last place of the exact value, infinite for a NaN; where a name is of negative arguments, of 1 if that is more."""
    wide, info = np.longdouble, np.finfo(result.dtype)
    exact = exact_values(value, rest, exponent)
    top = wide(info.max) * (1 + wide(info.eps) / 2)  # one unit past the largest number stands for infinity
    size = np.clip(np.abs(exact), wide(info.tiny), wide(info.max))
    if name.endswith("_mirrored"):
        size = np.maximum(size, 1)
    if name == "kl_div":
        size = np.maximum(size, np.abs(x).max(axis=0))
    with np.errstate(all="ignore"):
        unit = np.ldexp(wide(info.eps), np.floor(np.log2(size)).astype(int))
        error = np.abs(np.clip(result.astype(wide), -top, top) - np.clip(exact, -top, top)) / unit
    return np.where(np.isnan(error), np.inf, error)


def _under(name: str, **settings: Any) -> Callable[..., Any]:
    of = getattr(lazynp.special, name)

    def function(*arrays: Any) -> Any:
        with config.override(**settings):
            return np.asarray(of(*[lazynp.asarray(x) for x in arrays]))

    return function


def functions(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function in the NumPy tier, and compiled."""
    return _under(name, backend="numpy"), _under(name, backend="llvm", tier="compiled")
