"""Complex functions at infinities and zeros, where the array API standard has another value than NumPy.

In: what the ufunc of the same name takes.  Out: what it gives, but for the arguments listed in ``conformance/conflicts.md``.  Promise: one
implementation for every way to compute: the NumPy tier, where all complex functions run, and arithmetic of known numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np


def _corrected(found: Any, special: Any, real: Any, imag: Any) -> Any:
    """``found`` with these parts where ``special``."""
    values = np.empty(found.shape, found.dtype)
    values.real, values.imag = real, imag
    return np.where(special, values, found)[()]


def expm1(z: Any) -> Any:
    """exp(z) - 1, real where z is real; without an angle, its imaginary part is 0 at -inf and unknown at inf."""
    found = np.expm1(z)
    if found.dtype.kind != "c":
        return found
    a, b = np.real(z), np.imag(z)
    real = (b == 0) & ((a == 0) | ~np.isfinite(a))
    special = real | (np.isinf(a) & ~np.isfinite(b))
    if not np.any(special):
        return found
    # Nothing is told of the other elements a second time; adding zero leaves no -0.
    return _corrected(found, special, np.expm1(np.where(special, a, 0)) + 0.0, np.where(real, b, np.where(a < 0, 0.0, np.nan)))


def tanh(z: Any) -> Any:
    """tanh z, whose imaginary part at an infinity has the sign of z's; C's is that of sin(2 Im z)."""
    found = np.tanh(z)
    if found.dtype.kind != "c":
        return found
    a, b = np.real(z), np.imag(z)
    special = np.isinf(a) & np.isfinite(b)
    return _corrected(found, special, np.real(found), np.copysign(0.0, b)) if np.any(special) else found


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"expm1": expm1, "tanh": tanh}
