"""Operators on what is plain, by the shortest way that Python has: what the twin of the native core puts before the methods.

In: a method of arrays, and NumPy's loop for it.  Out: a method that lets the loop answer where the operands are arrays at hand and numbers,
and leaves everything else to the method it was given.  Promise: what comes out is what the method would have answered.

An operation of a few elements costs NumPy as much as ten lines of Python, so nothing here is called that can be written down.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp import arrays
from lazynp.array import core
from lazynp.array.calls import fits
from lazynp.array.hand import AS_THEY_ARE, NUMBERS, REAL, memory_of, result
from lazynp.graph.dtypes import NATIVE
from lazynp.graph.floating import heard, hearing, tell_here
from lazynp.protocols import OF_NUMBERS
from lazynp.scalars import OF_TYPE, number
from lazynp.values import config

Method = Callable[..., Any]

FRAMES: Final = 0 if core.native else 1
"""Python's frames between the program and a method of ours, which say where an operation was recorded."""
_MEMORY: Final = np.ndarray
_array: Final = arrays.ndarray
_as_they_are: Final = AS_THEY_ARE.issuperset
_new: Final = core.Cell.__new__
_ELSEWHERE: Final = (AttributeError, RuntimeError)
"""What tells that the first operand is no array of ours, or that another thread is computing: before anything was computed."""


def binary(slow: Method, loop: Method, costly: bool = False) -> Method:
    """The operator of two operands; ``costly``: of more than a quarter of what is at hand a kernel is faster."""

    def operate(a: Any, b: Any) -> Any:
        try:
            x = a._base
            if type(x) is not _MEMORY:
                x = memory_of(a)
            if x is not None:
                if type(b) is _array:
                    y = b._base
                    if type(y) is not _MEMORY:
                        y = memory_of(b)
                    plain = y is not None and (x.size * y.size <= config.at_hand or fits(x, y))
                else:
                    y = b
                    plain = type(b) in NUMBERS
                if plain and not (costly and x.size > config.at_hand >> 2):
                    value = hearing(loop, x, y)
                    if type(value) is not _MEMORY:
                        return number(value)
                    made = _new(_array)
                    made._base = value
                    made._view = made._node = None
                    made._readonly = False
                    return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = y = None  # whoever captures memory looks whether others hold it
        return slow(a, b)

    return _named(operate, slow)


def product(slow: Method, loop: Method) -> Method:
    """The operator of two arrays that have at most as many pairs of elements as is at hand; what adds up elements gives NumPy's scalars."""

    def operate(a: Any, b: Any) -> Any:
        try:
            x = a._base
            if type(x) is not _MEMORY:
                x = memory_of(a)
            if x is not None and type(b) is _array:
                y = b._base
                if type(y) is not _MEMORY:
                    y = memory_of(b)
                if y is not None and x.size * y.size <= config.at_hand:
                    value = hearing(loop, x, y)
                    if type(value) is not _MEMORY:
                        return number(value)
                    made = _new(_array)
                    made._base = value
                    made._view = made._node = None
                    made._readonly = False
                    return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = y = None
        return slow(a, b)

    return _named(operate, slow)


def reflected(slow: Method, loop: Method, costly: bool = False) -> Method:
    """The operator of a number and an array."""

    def operate(a: Any, b: Any) -> Any:
        try:
            x = a._base
            if type(x) is not _MEMORY:
                x = memory_of(a)
            if x is not None and type(b) in NUMBERS and not (costly and x.size > config.at_hand >> 2):
                value = hearing(loop, b, x)
                if type(value) is not _MEMORY:
                    return number(value)
                made = _new(_array)
                made._base = value
                made._view = made._node = None
                made._readonly = False
                return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = None  # whoever captures memory looks whether others hold it
        return slow(a, b)

    return _named(operate, slow)


def unary(slow: Method, loop: Method) -> Method:
    """The operator of one operand."""

    def operate(a: Any) -> Any:
        try:
            x = a._base
            if type(x) is not _MEMORY:
                x = memory_of(a)
            if x is not None:
                value = hearing(loop, x)
                if type(value) is not _MEMORY:
                    return number(value)
                made = _new(_array)
                made._base = value
                made._view = made._node = None
                made._readonly = False
                return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = None
        return slow(a)

    return _named(operate, slow)


def in_place(slow: Method, at_call: Method) -> Method:
    """The operator that changes its first operand."""

    def assign(a: Any, b: Any) -> Any:
        try:
            x = a._base
            if type(x) is _MEMORY:
                if type(b) is _array:
                    y = b._base
                    if type(y) is not _MEMORY:
                        y = memory_of(b)
                    plain = y is not None
                else:
                    y = b
                    plain = type(b) in NUMBERS
                if plain:
                    hearing(at_call, x, y)
                    return a
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = y = None  # whoever captures memory looks whether others hold it
        return slow(a, b)

    return _named(assign, slow)


def ufunc(loop: np.ufunc | None, costly: bool) -> Callable[[tuple[Any, ...]], Any]:
    """The answer to a call without keywords, of arrays at hand and numbers; else ``NotImplemented``.

    ``loop``: NumPy's, where it computes all of them.
    """

    def one(args: tuple[Any, ...]) -> Any:
        try:
            if len(args) == 1:
                a = args[0]
                if type(a) is not _array:
                    return number(hearing(loop, a)) if type(a) in NUMBERS else NotImplemented
                x = a._base
                if type(x) is not _MEMORY:
                    x = memory_of(a)
                if x is not None and not (costly and x.size > config.at_hand >> 2):
                    value = hearing(loop, x)
                    if type(value) is not _MEMORY:
                        return number(value)
                    made = _new(_array)
                    made._base = value
                    made._view = made._node = None
                    made._readonly = False
                    return made
        except RuntimeError:
            pass
        finally:
            if heard:
                tell_here()
        return NotImplemented

    def two(args: tuple[Any, ...]) -> Any:
        try:
            if len(args) == 2:
                a, b = args
                array = type(a) is _array
                x = a._base if array else a
                if type(b) is _array:
                    y = b._base
                    plain = type(x) is type(y) is _MEMORY and (x.size * y.size <= config.at_hand or fits(x, y))
                else:
                    y = b
                    plain = type(b) in NUMBERS and (type(x) is _MEMORY if array else type(x) in NUMBERS)
                if plain and not (costly and array and x.size > config.at_hand >> 2):
                    value = hearing(loop, x, y)
                    if type(value) is not _MEMORY:
                        return number(value)
                    made = _new(_array)
                    made._base = value
                    made._view = made._node = None
                    made._readonly = False
                    return made
        except RuntimeError:
            pass
        finally:
            if heard:
                tell_here()
        return NotImplemented

    if loop is None or loop.nout != 1 or loop.nin > 2 or core.native:
        return _not_plain
    return one if loop.nin == 1 else two


def method(slow: Method, theirs: Method, warns_below: int) -> Method:
    """A method that NumPy's answers where the arguments are numbers and names, and arrays have at least so many elements."""

    @functools.wraps(slow)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            x = self._base
            if type(x) is _MEMORY and x.dtype in REAL and x.size >= warns_below:
                for value in args:
                    if type(value) not in AS_THEY_ARE and not (type(value) is tuple and _as_they_are(map(type, value))):
                        break
                else:
                    if not kwargs or _as_they_are(map(type, kwargs.values())):
                        if kwargs:
                            value = hearing(theirs, x, *args, **kwargs)
                        else:
                            value = hearing(theirs, x, *args) if args else hearing(theirs, x)
                        if type(value) is not _MEMORY:
                            return number(value) if type(value) in OF_TYPE else result(value, (self,))
                        if value.base is not None or value is x or value.dtype not in NATIVE or value.size > config.at_hand:
                            return result(value, (self,))
                        made = _new(_array)
                        made._base = value
                        made._view = made._node = None
                        made._readonly = False
                        return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = None
        return slow(self, *args, **kwargs)

    return call


def reduction(slow: Method, theirs: Method, warns_below: int) -> Method:
    """``method`` for those whose first argument is an axis, or None for all."""

    @functools.wraps(slow)
    def call(self: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        try:
            x = self._base
            if type(x) is not _MEMORY:
                x = memory_of(self)
            if (
                x is not None
                and not args
                and (axis is None or type(axis) is int)
                and (not kwargs or _as_they_are(map(type, kwargs.values())))
                and x.dtype in REAL
                and x.size >= warns_below
            ):
                value = hearing(theirs, x, axis, **kwargs) if kwargs else hearing(theirs, x, axis)
                if type(value) is not _MEMORY:
                    return number(value) if type(value) in OF_TYPE else result(value, (self,))
                if value.base is not None or value is x or value.dtype not in NATIVE or value.size > config.at_hand:
                    return result(value, (self,))
                made = _new(_array)
                made._base = value
                made._view = made._node = None
                made._readonly = False
                return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = None
        return slow(self, axis, *args, **kwargs)

    return call


ALONG: Final = frozenset(
    {"all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var"}
)
"""Methods whose first argument is an axis, or None."""


def _foreign(slow: Method, theirs: Method) -> Method:
    """``__array_ufunc__``: NumPy's own number is on the left of an operator."""

    @functools.wraps(slow)
    def call(self: Any, loop: np.ufunc, how: str, *args: Any, **kwargs: Any) -> Any:
        try:
            if how == "__call__" and not kwargs and len(args) == 2 and loop in OF_NUMBERS:
                a, b = args
                if type(a) in NUMBERS and type(b) is _array:
                    x = memory_of(b)
                    if x is not None:
                        value = hearing(loop, a, x)
                        if type(value) is not _MEMORY:
                            return number(value)
                        made = _new(_array)
                        made._base = value
                        made._view = made._node = None
                        made._readonly = False
                        return made
        except _ELSEWHERE:
            pass
        finally:
            if heard:
                tell_here()
        x = None
        return slow(self, loop, how, *args, **kwargs)

    return call


def _told(slow: Method, theirs: Method) -> Method:
    """A method whose answer has no arrays in it."""

    @functools.wraps(slow)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        x = self._base
        if type(x) is _MEMORY:
            return theirs(x, *args, **kwargs)
        return slow(self, *args, **kwargs)

    return call


def _copied(slow: Method, theirs: Method) -> Method:
    return method(slow, theirs, 0)


OTHERS: Final[dict[str, Callable[[Method, Method], Method]]] = {
    "__array_ufunc__": _foreign,
    **dict.fromkeys(("__copy__", "copy"), _copied),
    **dict.fromkeys(("item", "tobytes", "tolist"), _told),
}
"""What is in front of other methods."""


def _not_plain(args: tuple[Any, ...]) -> Any:
    return NotImplemented


def _named(method: Method, slow: Method) -> Method:
    method.__name__ = method.__qualname__ = slow.__name__
    return method
