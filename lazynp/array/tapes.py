"""What a tape asks of Python: under which error state an operation waits, and a step alone, whose errors are told where it was recorded.

In: the state that is current when an operation is recorded, its place in the program, its loop.  Out: NumPy's result.  Promise: a warning
names the line that recorded the operation, as of large arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

import numpy as np

from lazynp.graph.dtypes import NATIVE
from lazynp.graph.errstate import State, current
from lazynp.graph.floating import Finding, heard, listen_to_all, stop, take
from lazynp.graph.floating import tell as tell_all
from lazynp.values import config

ROOT: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # where lazynp's own code lies
RAISED: Final = {1: "divide by zero", 2: "overflow", 4: "underflow", 8: "invalid value"}  # NumPy's words, in its order
NUMBERED: Final = "?bBhHiIlLqQfdgFDGOSUVMme"  # the characters of dtypes, by NumPy's numbers


def state() -> tuple[State, int] | None:
    """Return the error state of what is recorded now, and the bits of what it minds; None where operations are computed at their call."""
    found = current()
    return None if found.eager or config.eager else (found, found.kinds)


def cast(number: int) -> Callable[[Any], Any]:
    """Return what casts an array of NumPy's to the dtype with NumPy's number ``number``."""
    dtype = np.dtype(NUMBERED[number])

    def cast(x: Any) -> Any:
        return x.astype(dtype)

    return cast


def step(errors: State, code: CodeType, offset: int, function: Any, *operands: Any) -> Any:
    """Compute a step, and tell of its errors."""
    before = listen_to_all()
    try:
        return function(*operands)
    finally:
        stop(before)
        if heard:
            tell(errors, code, offset)


def layout(function: Any, args: tuple[Any, ...], names: tuple[str, ...] | None) -> tuple[Any, ...] | None:
    """Return what NumPy's ``function`` gives for arrays of ones: a dtype's number, a shape, whether it lies in C's order; or None.

    Of the two results of a ufunc, which have one shape, the second one's dtype as well.
    """
    count = len(args) - len(names or ())
    try:
        with np.errstate(all="ignore"):
            found = function(*args[:count], **dict(zip(names or (), args[count:], strict=True)))
    except Exception:
        return None  # it will be raised for the call itself
    several = type(found) is tuple
    parts = found if several else (found,)
    if several and not (isinstance(function, np.ufunc) or function is divmod):  # of others shapes may follow from elements
        return None
    if not 1 <= len(parts) <= 2 or not all(type(x) is np.ndarray and x.ndim and x.size and x.flags.writeable for x in parts):
        return None
    arrays = [x for x in [*args, *(args[0] if args and type(args[0]) is tuple else ())] if type(x) is np.ndarray]
    if any(x.dtype not in NATIVE or any(np.may_share_memory(x, y) for y in arrays) for x in parts):  # a view of an operand
        return None
    first, *others = parts
    if any(x.shape != first.shape or _order(x) != _order(first) or np.may_share_memory(x, first) for x in others):
        return None
    return first.dtype.num, first.shape, first.flags.c_contiguous, *[x.dtype.num for x in others]


def _order(x: np.ndarray[Any, Any]) -> list[int]:
    return [step // x.itemsize for step in x.strides]


def raised(errors: State, code: CodeType, offset: int, name: str, bits: int) -> None:
    """Tell of the errors, NumPy's bits, that a loop of NumPy's function ``name`` has raised."""
    tell_all([Finding(errors, (code, offset), f"{what} encountered in {name}", None) for bit, what in RAISED.items() if bits & bit])


def tell(errors: State, code: CodeType, offset: int) -> None:
    """Tell of the errors that were heard of an operation that was recorded at a place of the program."""
    found = take()
    if found is not None:
        tell_all([Finding(errors, (code, offset), text, None) for _, text in found.notes])
