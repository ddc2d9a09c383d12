"""What NumPy says of a call that is refused.

In: a public function or method of ours, a call of it, and the exception that it raised.  Out: the exception that NumPy raises for that
call, so that classes and texts are NumPy's; none where NumPy would answer, or is not to be asked.  Promise: a call that is answered never
comes here; nothing of the program's is written or called, and nothing large is computed: NumPy sees copies of what is in memory or has few
elements, and ones where arrays are pending or large.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from math import prod
from types import EllipsisType, NoneType
from typing import Any, Final

import numpy as np

from lazynp.array import calls, core, dispatch, hand
from lazynp.arrays import ndarray
from lazynp.namespace import standard
from lazynp.namespace.bridge import fallback, proxies
from lazynp.namespace.ufunc.promotion import Foreign
from lazynp.scalars import is_scalar
from lazynp.storage import host
from lazynp.subclasses import original
from lazynp.values import config
from lazynp.values.nesting import MOST_AXES

_OURS: Final = (TypeError, ValueError, IndexError, AttributeError, Foreign)
"""What may be said in NumPy's words.  Others are of values or of the machine (no memory, an interrupt, a fallback that is refused)."""
_DISPATCHED: Final = type(np.concatenate)
_MOST: Final = 1 << 21
"""Elements of all arrays of a call together, up to which NumPy is asked with arrays of their sizes."""
_OF_PAIRS: Final = 1 << 20
"""The same of functions whose work grows faster than their arguments."""
_PAIRS: Final = frozenset(
    {
        "apply_along_axis", "apply_over_axes", "convolve", "corrcoef", "correlate", "cov", "einsum", "histogramdd", "lexsort", "poly",
        "polydiv", "polyfit", "polymul", "polyval", "roots", "tensordot", "vander",
    }
)  # fmt: skip
_FILES: Final = frozenset({"save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex"})
_PLAIN: Final = frozenset(
    {int, float, bool, complex, str, bytes, NoneType, EllipsisType, slice, range, type(np._NoValue), np.datetime64, np.timedelta64}
)
_BY_NUMPY: Final = frozenset({fallback._performed.__code__, fallback._at_once.__code__, calls._answer.__code__})
_SPREAD: Final = 16  # times the bytes of the elements that an array may lie over
_LONG: Final = 1 << 10  # a number from which on it may say the size of a result


class _Unknown(Exception):  # noqa: N818 - NumPy is not asked
    """An argument that runs code of the program's, or of which nothing is known."""


class _Witness(np.ndarray[Any, Any]):
    """An operand that keeps NumPy from computing: arguments are looked at as far as NumPy does to learn whose call it is."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self


class _Arguments:
    """The arguments of a call as NumPy sees them; ``extent`` bounds what it may take to compute with them."""

    def __init__(self, witnesses: bool) -> None:
        self.witnesses = witnesses
        self.made: dict[int, Any] = {}
        self.made_up = False  # of some arrays the values are not the program's
        self.factor = 1
        self.total = 0
        self.grid: list[int] = []  # the shape that all have together, last axis first

    def of(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        if kind is int and abs(value) > _LONG:
            self.factor *= abs(value)
        if kind in _PLAIN or issubclass(kind, np.dtype):
            return value
        if kind is ndarray or kind is np.ndarray:
            found = self.made.get(id(value))
            if found is None:
                found = self.made[id(value)] = self._array(value)
            return found
        if is_scalar(value):
            return self._computed(value.concrete)
        if isinstance(value, np.generic):
            return core.numpys_number(value)
        if kind is list or kind is tuple:
            if depth > MOST_AXES or len(value) > _OF_PAIRS:
                raise _Unknown
            return kind([self.of(item, depth + 1) for item in value])
        stands_for = proxies.stands_for(value)
        if stands_for is not None:
            return stands_for
        if isinstance(value, type):
            return value
        if self.witnesses:
            return value
        raise _Unknown

    def _computed(self, force: Callable[[str], Any]) -> Any:
        """A value that some exceptions tell of, where it can be had."""
        try:
            return force("an exception")
        except Exception:
            raise _Unknown from None

    def _array(self, value: Any) -> Any:
        self.total += value.size
        for axis, n in enumerate(reversed(value.shape)):
            self.grid[axis : axis + 1] = [max(n, *self.grid[axis : axis + 1], 1)]
        if self.witnesses:
            return np.broadcast_to(np.zeros((), value.dtype), value.shape).view(_Witness)
        if self.total > _MOST:
            raise _Unknown  # before there is memory for it
        memory = value if type(value) is np.ndarray else hand.memory_of(value)
        if memory is None and value.size <= _LONG:  # positions, weights: often the values are what is wrong
            memory = self._computed(functools.partial(host, value))
        if memory is None or memory.size > max(config.at_hand, _LONG):
            made = _laid_like(value)
            made[...] = 1
            self.made_up = True
        else:
            made = _laid_like(memory)
            made[...] = memory
        made.flags.writeable = not value._readonly if type(value) is ndarray else value.flags.writeable
        return made


def _laid_like(x: Any) -> np.ndarray[Any, Any]:
    """Memory for an array that lies as ``x`` does, of which some exceptions tell; without gaps where they are large, or hold objects."""
    ends = [(n - 1) * stride for n, stride in zip(x.shape, x.strides, strict=True)]
    before, after = -sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + x.dtype.itemsize
    if not x.size or x.dtype.hasobject or before + after > _SPREAD * x.nbytes + _LONG:
        return np.empty(x.shape, x.dtype)
    return np.ndarray(x.shape, x.dtype, np.zeros(before + after, np.uint8), before, x.strides)


def _numpys(function: Any) -> tuple[Any, str]:
    """NumPy's public function, or method of arrays, in whose place one of ours is, with its name; None where there is none."""
    if isinstance(function, core.Ufunc):
        name = function.__name__  # type: ignore[attr-defined]
        theirs = getattr(np, name, None)
        return (theirs if function._numpy is theirs else None), name  # type: ignore[attr-defined]
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if isinstance(function, (fallback.Library, fallback.Fallback)):
        return function.__wrapped__, function._name
    if module == "lazynp" and name.startswith("ndarray."):
        return getattr(np.ndarray, name[8:], None), name
    if module not in dispatch.MODULES or "." in name:
        return None, name
    found = original(function)
    return (None if found is function else found), f"{module[7:]}.{name}".lstrip(".")


def refusal(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception | None:
    """Return the exception that NumPy raises for a call that ours refused with ``error``.

    Parameters
    ----------
    function : callable
        Ours, as users know it.
    args, kwargs
        The user's arguments.
    error : Exception
        What ours raised.

    Returns
    -------
    Exception or None
        NumPy's; None where ours is as good.
    """
    if not isinstance(error, _OURS) or isinstance(error, np.linalg.LinAlgError):
        return None
    theirs, name = _numpys(function)
    if theirs is None or name == "ndarray.resize" or not standard.KEYWORDS.get(name, {}).keys().isdisjoint(kwargs):
        return None
    if kwargs.get("device") is not None:
        return None
    dispatched = type(theirs) is _DISPATCHED
    if name not in _FILES:
        try:
            seen = _Arguments(False)
            values, named = seen.of(args), {key: seen.of(value) for key, value in kwargs.items()}
            if _extent(name, args, kwargs, seen) <= (_OF_PAIRS if name in _PAIRS or name.startswith("linalg.") else _MOST):
                said = _said(theirs, values, named)
                return None if seen.made_up and (_knew_the_values(error) or _same_but_numbers(error, said)) else said
        except _Unknown:
            pass
    if dispatched and isinstance(error, TypeError):
        seen = _Arguments(True)
        values, named = seen.of(args), {key: seen.of(value) for key, value in kwargs.items()}
        if seen.made or not (args or kwargs):
            said = _said(theirs, values, named)
            return said if isinstance(said, TypeError) else None
    return None


def _knew_the_values(error: Exception) -> bool:
    """Tell whether NumPy has said it already, of the program's values."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in _BY_NUMPY:
            return True
        trace = trace.tb_next
    return False


def _same_but_numbers(ours: Exception, theirs: Exception | None) -> bool:
    """Tell whether two exceptions say the same of different values, of which NumPy has not seen the program's."""
    texts = [re.sub(r"-?[0-9]+", "0", str(error)) for error in (ours, theirs)]
    return type(ours) is type(theirs) and "out of bounds" in texts[0] and texts[0] == texts[1]


def _extent(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], seen: _Arguments) -> int:
    grows = name in dispatch.GROWING or name in dispatch.SIZES
    return calls.bound(args) * calls.bound([*kwargs.values()]) if grows else max(seen.total, prod(seen.grid)) * seen.factor


def _said(theirs: Callable[..., Any], args: Any, kwargs: Any) -> Exception | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            theirs(*args, **kwargs)
        except MemoryError:
            return None
        except Exception as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            return error
    return None
