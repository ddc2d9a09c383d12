"""Where the program is, as the core reads it from the interpreter's frames (`array/frames.h`), whose layout is Python's own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core

Place = tuple[Any, int]


def place_of(x: Any) -> Place:
    """The place at which an operation that waits was recorded, as the line of its code."""
    (*_, sites) = core.tape(x)
    code, offset = sites[-1]
    return code, next(line for begin, end, line in code.co_lines() if begin <= offset < end)


def here() -> Place:
    frame = sys._getframe(1)
    return frame.f_code, frame.f_lineno


def plainly(a: Any) -> tuple[Any, Place]:
    return a + 1, here()


def in_a_generator(a: Any) -> tuple[Any, Place]:
    def pairs() -> Iterator[tuple[Any, Place]]:
        yield a + 1, here()

    return next(pairs())


def in_a_comprehension(a: Any) -> tuple[Any, Place]:
    return [(a + k, here()) for k in range(2)][-1]


def with_cells(a: Any) -> tuple[Any, Place]:
    def inner() -> tuple[Any, Place]:
        return a * 2, here()

    return inner()


def from_c(a: Any) -> tuple[Any, Place]:
    return next(map(plainly, [a]))


def in_executed_text(a: Any) -> tuple[Any, Place]:
    names = {"a": a, "here": here}
    exec("\n\nfound = a + 3, here()", names)
    return names["found"]  # type: ignore[no-any-return]


def in_a_class(a: Any) -> tuple[Any, Place]:
    class Made:
        found = (a + 4, here())

    return Made.found


def after_an_exception(a: Any) -> tuple[Any, Place]:
    with contextlib.suppress(ZeroDivisionError):
        1 // 0
    return a + 5, here()


@pytest.mark.parametrize(
    "program", [plainly, in_a_generator, in_a_comprehension, with_cells, from_c, in_executed_text, in_a_class, after_an_exception]
)
@pytest.mark.parametrize("times", [1, 3])
def test_an_operation_knows_its_place(program: Callable[[Any], tuple[Any, Place]], times: int) -> None:
    a = lazynp.asarray(numpy.arange(9.0), copy=True)
    for _ in range(times):  # the first one looks at the code, the others know it
        found, place = program(a)
        assert place_of(found) == place
