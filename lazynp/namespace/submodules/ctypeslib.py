"""Arrays and ctypes.

In: arrays, ctypes objects.  Out: NumPy's argument types, which take our arrays too, and arrays over memory of ctypes.  Promise: C code that
is given an array sees its memory, and writes there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.conversion import asarray
from lazynp.protocols import memory_of

_types: Final[dict[type, type]] = {}


def ndpointer(dtype: Any = None, ndim: Any = None, shape: Any = None, flags: Any = None) -> Any:
    """Make a ctypes type for arrays that are arguments or results; see :func:`numpy.ctypeslib.ndpointer`."""
    theirs: Any = np.ctypeslib.ndpointer(dtype, ndim, shape, flags)
    found = _types.get(theirs)
    if found is None:

        def from_param(cls: type, obj: Any) -> Any:
            return theirs.from_param(memory_of(obj))

        found = _types[theirs] = type(theirs.__name__, (theirs,), {"from_param": classmethod(from_param)})
    return found


def as_array(obj: Any, shape: Any = None) -> Any:
    """Show the memory of a ctypes array or pointer; see :func:`numpy.ctypeslib.as_array`."""
    return asarray(np.ctypeslib.as_array(memory_of(obj), shape))


FUNCTIONS: Final = {function.__name__: function for function in (ndpointer, as_array)}
