"""NumPy's functions in Python, by the shortest way through NumPy's own loops.

In: arrays of NumPy's, and the arguments of a call.  Out: what NumPy's function of that name gives, to the bit: the same loops in the same
order, without the questions that it asks of any argument there may be.  Promise: where an argument is not plain NumPy's function itself
gets the very same call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy._core import umath

from lazynp.array import core

_MEMORY: Final = np.ndarray
_FLOATS: Final = frozenset(map(np.dtype, "fd"))  # themselves, which native arrays have
_DOUBLE: Final = np.dtype("d")
_WHOLE_NUMBERS: Final = frozenset(map(np.dtype, "ilqILQ"))
_WHOLE: Final = (slice(None),)
_NUMBERS: Final = frozenset({int, float})
_EXACT: Final = 1 << 53  # up to which whole numbers are floats
_add, _subtract, _multiply, _divide = np.add.reduce, np.subtract, np.multiply, np.divide
_clip = getattr(umath, "clip", None)  # the ufunc that NumPy's function calls
if _clip is not None:
    core.clips(_clip, np.maximum, np.minimum)


def _in_front(short: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return what lets NumPy's function answer where ours gives None."""

    @functools.wraps(theirs)
    def call(*args: Any, **named: Any) -> Any:
        found = short(*args, **named)
        return theirs(*args, **named) if found is None else found

    return call


def _unique(ar: Any = None, *rest: Any, **named: Any) -> Any:
    """Return the different ones of whole numbers: sorted in vectors they are found sooner than by a table."""
    if type(ar) is not _MEMORY or ar.dtype not in _WHOLE_NUMBERS or ar.size < 2 or rest or named:
        return None
    made = ar.flatten()
    made.sort()
    differs = np.empty(made.shape, bool)
    differs[0] = True
    np.not_equal(made[1:], made[:-1], differs[1:])
    return made[differs]


FUNCTIONS: Final = {"unique": _in_front(_unique, np.unique)}
