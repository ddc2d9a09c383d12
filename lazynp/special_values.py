"""Values at special arguments that the array API standard defines and NumPy leaves at NaN.

In: what the ufunc of the same name takes.  Out: what it gives, but for the complex arguments listed in ``conformance/conflicts.md``.  Promise:
one implementation for every way to compute: the NumPy tier, which complex functions always run in, and arithmetic of known numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np


def expm1(z: Any) -> Any:
    """exp(z) - 1 that is real where z is, and knows that exp(-inf) is 0 and exp(inf) infinite in whatever direction."""
    found = np.expm1(z)
    if found.dtype.kind != "c":
        return found
    a, b = np.real(z), np.imag(z)
    real = (b == 0) & ((a == 0) | ~np.isfinite(a))
    special = real | (np.isinf(a) & ~np.isfinite(b))
    if not special.any():
        return found
    # Without an angle the imaginary part is 0 below and unknown above; adding zero leaves -0 to nobody.
    values = np.empty(found.shape, found.dtype)
    values.real = np.expm1(a) + 0.0
    values.imag = np.where(real, b, np.where(a < 0, 0.0, np.nan))
    return np.where(special, values, found)[()]


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"expm1": expm1}
