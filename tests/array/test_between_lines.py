"""Operations in whose middle other code works with the same arrays, as a handler of a signal does that comes between two lines.

In: arrays in their states, operations, and what the handler does, at every line of lazynp that an operation runs through. Out: failures.
Promise: an operation is one step to the handler: what comes of both is what NumPy computes of them one after the other, in one of the two
orders. Where the handler gives the array another shape, that has one shape and one dtype afterwards, which its value has, too, and so has
what is computed from it; an operation that was made for the shape before raises a ``ValueError`` or an ``IndexError``, and no kernel reads
beyond the memory.
"""

from __future__ import annotations

import itertools
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
STRIDE: Final = 5  # lines from one at which something comes to the next; each case begins at another one
STATES: Final = ("new", "exported", "pending", "computed")
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
        for turn, (state, part, name) in enumerate(itertools.product(STATES, (False, True), DEEDS)):
            for at in itertools.count(1 + turn % STRIDE, STRIDE):
                x = made(state)
                v = x[1:-1] if part else x
                if not interrupted(OPERATIONS[operation], DEEDS[name], v, at):
                    break
                came += 1
                told, dtype = v.shape, v.dtype
                case = (state, part, name, at)
                for shown in (v + 0, v):
                    assert (numpy.asarray(shown).shape, numpy.asarray(shown).dtype) == (told, dtype), case
                assert (v.shape, v.dtype) == (told, dtype), case
    assert came > 0 or limit > N


Step = Callable[[Any, Any, Any], Any]  # of the module and two arrays
STEPS: Final[dict[str, Step]] = {
    "v * 2": lambda xp, v, w: v * 2,
    "v + w": lambda xp, v, w: v + w,
    "v.sum()": lambda xp, v, w: v.sum(),
    "v.std()": lambda xp, v, w: v.std(),
    "v += 1": lambda xp, v, w: v.__iadd__(1) is None,
    "v += w": lambda xp, v, w: v.__iadd__(w) is None,
    "v **= 2": lambda xp, v, w: v.__ipow__(2) is None,
    "v[3:80] = 5": lambda xp, v, w: v.__setitem__(slice(3, 80), 5),
    "v[3:80] = w": lambda xp, v, w: v.__setitem__(slice(3, 80), w[3:80]),
    "v[90] = 1": lambda xp, v, w: v.__setitem__(90, 1),
    "v[places] = 5": lambda xp, v, w: v.__setitem__(PLACES, 5),
    "v[mask] = 5": lambda xp, v, w: v.__setitem__(numpy.arange(v.size) % 3 == 0, 5),
    "v[places]": lambda xp, v, w: v[PLACES],
    "v[5:50]": lambda xp, v, w: v[5:50],
    "float(v[3])": lambda xp, v, w: float(v[3]),
    "v @ w": lambda xp, v, w: v @ w,
    "sort": lambda xp, v, w: v.sort(),
    "fill": lambda xp, v, w: v.fill(3),
    "tolist": lambda xp, v, w: v.tolist(),
    "copy": lambda xp, v, w: v.copy(),
    "concatenate": lambda xp, v, w: xp.concatenate([v, w]),
    "add into v": lambda xp, v, w: xp.add(v, w, out=v) is None,
    "exp": lambda xp, v, w: xp.exp(v * -0.1),
    "cumsum": lambda xp, v, w: xp.cumsum(v),
    "put": lambda xp, v, w: xp.put(v, [3, 4], [1, 2]),
    "copyto": lambda xp, v, w: xp.copyto(v, w),
    "add at places": lambda xp, v, w: xp.add.at(v, PLACES, 1),
    "partition": lambda xp, v, w: v.partition(5),
}
BESIDE: Final[dict[str, Step]] = {
    "v[...] = 7": lambda xp, v, w: v.__setitem__(..., 7),
    "v[2:60] *= 3": lambda xp, v, w: v[2:60].__imul__(3.0),
    "v[5] = 99": lambda xp, v, w: v.__setitem__(5, 99),
    "read": lambda xp, v, w: xp.asarray(v).sum(),
    "write from outside": lambda xp, v, w: numpy.asarray(v).__setitem__(7, -1),
}


def beside(xp: Any, state: str, part: bool) -> tuple[Any, Any, Any]:
    """An array, what is worked with of it, and a second operand."""
    x = xp.arange(N).astype("f8")
    if state == "exported":
        numpy.asarray(x)
    elif state != "new":
        x = xp.sqrt(x) + xp.arange(N)
        if state == "computed" and xp is np:
            np.realize(x)
    v = x[1:-1] if part else x
    return x, v, xp.sqrt(xp.arange(v.size)) * 0.5


def one_after_the_other(state: str, part: bool, operation: Step, other: Step, first: bool) -> list[Any]:
    """What comes of both in NumPy: the operation's result, the array, the second operand."""
    x, v, w = beside(numpy, state, part)
    if not first:
        other(numpy, v, w)
    result = operation(numpy, v, w)
    if first:
        other(numpy, v, w)
    return [numpy.asarray(result), x, w]


def agrees(found: list[Any], known: list[Any]) -> bool:
    return all(
        x.shape == y.shape and (x.dtype == object or numpy.allclose(x.astype(float), y.astype(float), 1e-12, 0))
        for x, y in zip(map(numpy.asarray, found), known, strict=True)
    )


@pytest.mark.parametrize("operation", STEPS)
@pytest.mark.parametrize("limit", [40, 0])
def test_an_operation_is_one_step_to_who_comes_between(limit: int, operation: str) -> None:
    came = 0
    with config.override(tape_limit=limit):
        for turn, (state, part, name) in enumerate(itertools.product(STATES, (False, True), BESIDE)):
            known = [one_after_the_other(state, part, STEPS[operation], BESIDE[name], first) for first in (True, False)]
            for at in itertools.count(1 + turn % STRIDE, STRIDE):
                x, v, w = beside(np, state, part)
                results: list[Any] = []

                def step(v: Any, w: Any = w, results: list[Any] = results) -> None:
                    results.append(STEPS[operation](np, v, w))

                def other(v: Any, w: Any = w, name: str = name) -> None:
                    BESIDE[name](np, v, w)

                if not interrupted(step, other, v, at):
                    break
                came += 1
                case = (state, part, name, at)
                assert results, case
                found = [numpy.asarray(results[0]), x, w]
                assert any(agrees(found, one) for one in known), case
    assert came > 0 or operation in ("v[90] = 1", "float(v[3])")
