"""The same program in NumPy and on a GPU.

In: a function of the module that it is to use.  Out: what it gave, as comparable objects: values with dtypes and shapes to the bit
(every NaN is one), or the exception; and the warnings.  Promise: nothing of the program's own is computed twice in one module.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy

import lazynp as np
from lazynp.graph import report
from tests.cuda.host import on_host

Program = Callable[[Any], Any]


def outcome(program: Program, module: Any) -> tuple[Any, list[str]]:
    """What a program gives with one module, and what it warns of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = comparable(program(module))
        except Exception as error:
            found = type(error), str(error)
    return found, [str(warning.message) for warning in warned]


def comparable(value: Any) -> Any:
    """Values as objects that compare by their bits."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [comparable(item) for item in value]
    array = numpy.asarray(value)
    if array.dtype.kind == "c":
        return comparable([array.real, array.imag])
    if array.dtype.kind == "f":
        array = numpy.where(array == array, array, array.dtype.type(numpy.nan))
    return array.dtype.str, array.shape, array.tobytes()


def check(name: Any, program: Program, host: set[str] | None = None) -> None:
    """The outcome is NumPy's; ``host`` is what the processor may have computed, None: whatever it likes."""
    expected = outcome(program, numpy)
    report.reset()
    with np.device("cuda"):
        found = outcome(program, np)
    assert found == expected, name
    assert host is None or on_host() <= host, name
