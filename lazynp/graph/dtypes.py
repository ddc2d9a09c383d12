"""The dtypes that graph nodes may have.

In: any NumPy dtype.  Out: whether the graph computes with it.  Promise: one place decides; every other dtype (longdouble, object,
strings, dates, structures, foreign byte order) stays in NumPy arrays and goes through the counted fallback.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

DType = np.dtype[Any]
NATIVE: Final[frozenset[np.dtype[Any]]] = frozenset(np.dtype(char) for char in "?bBhHiIlLqQefdFD")

BOOL: Final[np.dtype[Any]] = np.dtype(np.bool_)
INT64: Final[np.dtype[Any]] = np.dtype(np.int64)
UINT64: Final[np.dtype[Any]] = np.dtype(np.uint64)
FLOAT16: Final[np.dtype[Any]] = np.dtype(np.float16)
FLOAT32: Final[np.dtype[Any]] = np.dtype(np.float32)
FLOAT64: Final[np.dtype[Any]] = np.dtype(np.float64)
COMPLEX64: Final[np.dtype[Any]] = np.dtype(np.complex64)
COMPLEX128: Final[np.dtype[Any]] = np.dtype(np.complex128)

REAL_OF: Final = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}

INT64_END: Final = 1 << 63  # int64 has the numbers from -INT64_END to INT64_END - 1
