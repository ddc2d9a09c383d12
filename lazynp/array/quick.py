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


def _roll(a: Any = None, shift: Any = None, axis: Any = None, *rest: Any, **named: Any) -> Any:
    if type(a) is not _MEMORY or type(shift) is not int or a.size == 0 or rest or named:
        return None
    if axis is None:
        return None if a.ndim != 1 else _roll(a, shift, 0).reshape(a.shape)  # NumPy's is a view, too
    if type(axis) is not int or not 0 <= (axis := axis + a.ndim if axis < 0 else axis) < a.ndim:
        return None
    made = np.empty_like(a)
    shift %= a.shape[axis]
    if shift == 0:
        made[...] = a
        return made
    before = _WHOLE * axis
    made[(*before, slice(shift, None))] = a[(*before, slice(-shift))]
    made[(*before, slice(shift))] = a[(*before, slice(-shift, None))]
    return made


def _diff(a: Any = None, n: Any = 1, axis: Any = -1, *rest: Any, **named: Any) -> Any:
    if type(a) is not _MEMORY or a.dtype not in _FLOATS or type(n) is not int or n != 1 or type(axis) is not int or rest or named:
        return None
    if a.ndim == 1 and axis in (0, -1):
        return _subtract(a[1:], a[:-1])
    if a.ndim == 2 and axis in (0, 1, -1):
        return _subtract(a[1:], a[:-1]) if axis == 0 else _subtract(a[:, 1:], a[:, :-1])
    return None


def _clipped(a: Any = None, a_min: Any = None, a_max: Any = None, *rest: Any, **named: Any) -> Any:
    plain = type(a) is _MEMORY and a.dtype in _FLOATS and type(a_min) in _NUMBERS and type(a_max) in _NUMBERS
    return _clip(a, a_min, a_max) if plain and not rest and not named and _clip is not None else None


def _linspace(start: Any = None, stop: Any = None, num: Any = 50, *rest: Any, **named: Any) -> Any:
    if rest or named or type(start) not in _NUMBERS or type(stop) not in _NUMBERS or type(num) is not int or num < 2:
        return None
    if not (-_EXACT < start < _EXACT and -_EXACT < stop < _EXACT):
        return None
    step = (stop - start) / (num - 1)
    if step == 0.0 or not isfinite(step):
        return None
    made = np.arange(0.0, num).reshape(-1)
    _multiply(made, step, made)
    np.add(made, start, made)
    made[-1] = stop
    return made


def _var(a: Any = None, axis: Any = None, *rest: Any, ddof: Any = 0, **named: Any) -> Any:
    """Return the variance of doubles over all axes or one."""
    if type(a) is not _MEMORY or a.dtype is not _DOUBLE or type(ddof) is not int or a.ndim == 0 or rest or named:
        return None
    if axis is None:
        count = a.size
    elif type(axis) is int and -a.ndim <= axis < a.ndim:
        count = a.shape[axis]
    else:
        return None
    if count - ddof <= 0:
        return None
    mean = _add(a, axis, keepdims=True)
    _divide(mean, count, mean)
    apart = _subtract(a, mean)
    np.square(apart, apart)
    found = _add(apart, axis)
    return _divide(found, count - ddof, found) if type(found) is _MEMORY else _divide(found, count - ddof)


def _std(*args: Any, **named: Any) -> Any:
    found = _var(*args, **named)
    return None if found is None else np.sqrt(found, found) if type(found) is _MEMORY else np.sqrt(found)


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


# Each takes any arguments, and names those that it knows as NumPy does.
_SHORT: Final = {"clip": _clipped, "diff": _diff, "linspace": _linspace, "roll": _roll, "std": _std, "unique": _unique, "var": _var}
FUNCTIONS: Final = {name: _in_front(short, getattr(np, name)) for name, short in _SHORT.items()}
METHODS: Final = {name: _in_front(_SHORT[name], getattr(np.ndarray, name)) for name in ("std", "var")}
