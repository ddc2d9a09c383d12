"""Exceptions of a program's own code, that came while lazynp computed: a signal handler's, a callback's.

In: an exception that came out of a computation.  Out: whether the computation is to blame.  Promise: what a handler
of signals raises, or meets, fails no value for good, whatever class of exception it is.
"""

from __future__ import annotations

import sys
from typing import Final


class BeingWrittenError(RuntimeError):
    """An array was asked for by code that came in between the pieces of its own computation; when that is done it can be had."""

    def __init__(self) -> None:
        super().__init__("the array is being written by the computation that was interrupted to get here")


_INSIDE: Final = frozenset({"lazynp", "numpy", "scipy", "", *sys.stdlib_module_names})


def from_outside(error: BaseException) -> bool:
    """Tell whether code of the program's own was on the way to it, whatever raised it: trying again may not fail."""
    if isinstance(error, BeingWrittenError):
        return True
    traceback = error.__traceback__
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if name == "__main__" or name not in _INSIDE:
            return True
        traceback = traceback.tb_next
    return False
