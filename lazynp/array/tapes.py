"""What a tape asks of Python: under which error state an operation waits, and a step alone, whose errors are told where it was recorded.

In: the state that is current when an operation is recorded, its place in the program, its loop.  Out: NumPy's result.  Promise: a warning
names the line that recorded the operation, as of large arrays.
"""

from __future__ import annotations

import os
from types import CodeType
from typing import Any, Final

from lazynp.graph.errstate import State, current
from lazynp.graph.floating import Finding, heard, listen_to_all, stop, take, tell
from lazynp.graph.node import caller


ROOT: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # where lazynp's own code lies


def state() -> tuple[State, int] | None:
    """Return the error state of what is recorded now, and the bits of what it minds; None where errors are told at the call."""
    found = current()
    return None if found.eager else (found, found.kinds)


def place() -> Any:
    """Return where the user's program stands, for operations of lazynp's own code."""
    return caller()


def step(errors: State, code: CodeType, offset: int, function: Any, *operands: Any) -> Any:
    """Compute a step, and tell of its errors."""
    before = listen_to_all()
    try:
        return function(*operands)
    finally:
        stop(before)
        if heard and (found := take()) is not None:
            tell([Finding(errors, (code, offset), text, None) for _, text in found.notes])
