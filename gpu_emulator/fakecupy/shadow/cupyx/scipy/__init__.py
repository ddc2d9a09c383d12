"""A few of ``cupyx.scipy``'s functions, as far as a library that hands arrays to them needs them.

In: the fake's own arrays.  Out: its own arrays, made in stream order.  Promise: these are modules in files, which Python's machinery loads
as it loads the real ones; what the real functions refuse (NumPy's arrays, arrays of other libraries where they ask for CuPy's class) is
refused.
"""

from __future__ import annotations

import sys
from typing import Any

import cupy


def get_array_module(*args: Any) -> Any:
    from cupyx.scipy.sparse import issparse

    if any(isinstance(arg, cupy.ndarray) or issparse(arg) for arg in args):
        return sys.modules[__name__]
    import scipy

    return scipy
