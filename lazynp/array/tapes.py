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

from lazynp.graph.errstate import State, current
from lazynp.graph.floating import Finding, heard, listen_to_all, stop, take
from lazynp.graph.floating import tell as tell_all
from lazynp.values import config

ROOT: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # where lazynp's own code lies
RAISED: Final = {1: "divide by zero", 2: "overflow", 4: "underflow", 8: "invalid value"}  # NumPy's words, in its order
NUMBERED: Final = "?bBhHiIlLqQfdgFDG"  # the characters of dtypes, by NumPy's numbers


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


def raised(errors: State, code: CodeType, offset: int, name: str, bits: int) -> None:
    """Tell of the errors, NumPy's bits, that a loop of NumPy's function ``name`` has raised."""
    tell_all([Finding(errors, (code, offset), f"{what} encountered in {name}", None) for bit, what in RAISED.items() if bits & bit])


def tell(errors: State, code: CodeType, offset: int) -> None:
    """Tell of the errors that were heard of an operation that was recorded at a place of the program."""
    found = take()
    if found is not None:
        tell_all([Finding(errors, (code, offset), text, None) for _, text in found.notes])
