"""Window functions.

In: a number of points.  Out: arrays computed from one range.  Promise: NumPy's formulas, in its order of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp.namespace.bridge.fallback import Library
from lazynp.namespace.routines.creation import arange, ones, zeros
from lazynp.namespace.routines.selecting import where
from lazynp.namespace.ufunc.ufuncs import UFUNCS

_cos: Final = UFUNCS["cos"]


def _window(name: str, shape: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(M: Any) -> Any:  # noqa: N803
        points = np.array([0.0, M])[1]  # NumPy's reading of the argument, in its dtype
        if points < 1:
            return zeros(0, points.dtype)
        if points == 1:
            return ones(1, points.dtype)
        # Points on both sides of the middle, which is 0, and the distance from it to the ends.
        return shape(arange(1 - points, points, 2), points - 1)

    function.__name__ = function.__qualname__ = name
    return function


def _hat(n: Any, end: Any) -> Any:
    return where(UFUNCS["less_equal"](n, 0), 1 + n / end, 1 - n / end)


FUNCTIONS: Final = {
    "bartlett": _window("bartlett", _hat),
    "blackman": _window("blackman", lambda n, end: 0.42 + 0.5 * _cos(np.pi * n / end) + 0.08 * _cos(2.0 * np.pi * n / end)),
    "hamming": _window("hamming", lambda n, end: 0.54 + 0.46 * _cos(np.pi * n / end)),
    "hanning": _window("hanning", lambda n, end: 0.5 + 0.5 * _cos(np.pi * n / end)),
    "kaiser": Library(np.kaiser),
}
