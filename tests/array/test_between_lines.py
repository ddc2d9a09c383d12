"""Operations in whose middle a handler gives the array another shape, as a handler of a signal does that comes between two lines.

In: arrays in their states, operations, and what the handler does, at every line of lazynp that an operation runs through. Out: failures.
Promise: the array has one shape and one dtype afterwards, which its value has, too, and so has what is computed from it; where an operation
was made for the shape that the array had before, it raises a ``ValueError`` or an ``IndexError``, and no kernel reads beyond the memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final

import numpy
import pytest

import lazynp as np
from lazynp.values import config

N: Final = 98
PLACES: Final = numpy.array([1, 90])
Deed = Callable[[Any], Any]
OPERATIONS: Final[dict[str, Deed]] = {
    "asarray": numpy.asarray,
    "v + 1": lambda v: v + 1,
    "v.sum()": lambda v: float(v.sum()),
    "v[5:]": lambda v: v[5:],
    "v[90]": lambda v: v[90],
    "v[places]": lambda v: v[PLACES],
    "v[v > 2]": lambda v: v[v > 2],
    "flip": np.flip,
    "diagonal": lambda v: v.reshape(2, -1).diagonal(),
    "windows": lambda v: np.lib.stride_tricks.sliding_window_view(v, 3),
    "v += 1": lambda v: v.__iadd__(1),
    "v[3:80] = 5": lambda v: v.__setitem__(slice(3, 80), 5),
    "v[...] = values": lambda v: v.__setitem__(..., np.arange(v.size * 1.0)),
    "v[90] = 1": lambda v: v.__setitem__(90, 1),
    "v[places] = 5": lambda v: v.__setitem__(PLACES, 5),
    "shape": lambda v: setattr(v, "shape", (-1, 3)),
    "dtype": lambda v: setattr(v, "dtype", "i8"),
}
DEEDS: Final[dict[str, Deed]] = {
    "shape": lambda v: setattr(v, "shape", (2, -1)),
    "dtype": lambda v: setattr(v, "dtype", "i8"),
    "resize": lambda v: v.resize((3, 5), refcheck=False),
    "resize to a row": lambda v: v.resize((15,), refcheck=False),
    "resize to nothing": lambda v: v.resize((0,), refcheck=False),
    "write": lambda v: v.__setitem__(..., 7),
    "asarray": numpy.asarray,
}


def made(state: str) -> Any:
    x = np.arange(N).astype("f8")
    if state == "exported":
        numpy.asarray(x)
    elif state == "pending":
        x = np.sqrt(x) + np.arange(N)
    elif state == "computed":
        x = np.sqrt(x) + np.arange(N)
        np.realize(x)
    return x


def interrupted(operation: Deed, deed: Deed, v: Any, at: int) -> bool:
    """Do the deed at a line of lazynp's in the middle of an operation; tells whether there was such a line.

    In a context of its own: Python 3.11 does not hold the value of a context variable while another one is set and finalizers run.
    """
    seen, came = 0, False

    def line(frame: Any, event: str, argument: Any) -> Any:
        nonlocal seen, came
        if event == "line" and not came:
            seen += 1
            if seen == at:
                came = True
                sys.settrace(None)
                with suppress(ValueError, TypeError, AttributeError):
                    copy_context().run(deed, v)
        return line

    def call(frame: Any, event: str, argument: Any) -> Any:
        return line if not came and "lazynp" in frame.f_globals.get("__name__", "") else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        with suppress(ValueError, TypeError, AttributeError, IndexError):
            operation(v)
    finally:
        sys.settrace(before)
    return came


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("limit", [786_432, 40, 0])
def test_what_comes_between_two_lines_leaves_an_array_that_can_be_read(limit: int, operation: str) -> None:
    came = 0
    with config.override(tape_limit=limit):
        for state in ("new", "exported", "pending", "computed"):
            for part in (False, True):
                for name, deed in DEEDS.items():
                    at = 0
                    while True:
                        at += 1
                        x = made(state)
                        v = x[1:-1] if part else x
                        if not interrupted(OPERATIONS[operation], deed, v, at):
                            break
                        came += 1
                        told, dtype = v.shape, v.dtype
                        case = (state, part, name, at)
                        for shown in (v + 0, v):
                            assert (numpy.asarray(shown).shape, numpy.asarray(shown).dtype) == (told, dtype), case
                        assert (v.shape, v.dtype) == (told, dtype), case
    assert came > 0 or limit > N
