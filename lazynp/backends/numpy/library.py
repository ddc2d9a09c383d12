"""Library functions behind CALL, done by NumPy.

In: the ``(name, params)`` of a CALL node.  Out: a function of (arrays, params) that gives an array or a tuple of arrays.
Promise: a name that is not here is refused when the program is prepared, with the names that are.

==============  ====================================  ==================================================================
name            params                                value
==============  ====================================  ==================================================================
matmul          ()                                    ``numpy.matmul(a, b)``
dot             ()                                    ``numpy.dot(a, b)``
tensordot       (axes,)                               ``numpy.tensordot(a, b, axes)``; axes an int or two tuples of ints
einsum          (subscripts,)                         ``numpy.einsum(subscripts, *arrays)``
reinterpret     (dtype,)                              the same bytes as another item size, along the last axis
numpy           (dotted name, ((key, value), ...))    that function of the arrays in order, with static keyword arguments
ufunc:<name>    () or (((key, value), ...),)          that ufunc; several outputs as OUTPUT nodes
==============  ====================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

Arrays = tuple[Any, ...]
Function = Callable[[Arrays, tuple[Any, ...]], Any]


def _tensordot(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    a, b = arrays
    return np.tensordot(a, b, axes=params[0])


def _einsum(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    # Three and more operands: a pairwise order, as any user of einsum on large arrays asks for.
    return np.einsum(params[0], *arrays, optimize=len(arrays) > 2)


@lru_cache(maxsize=256)
def resolve(name: str) -> Callable[..., Any]:
    """The NumPy function of a dotted name such as ``linalg.solve``."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"numpy.{name} is not a function")
    return found


def _numpy(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    return resolve(params[0])(*arrays, **dict(params[1] if len(params) > 1 else ()))


FUNCTIONS: Final[dict[str, Function]] = {
    "matmul": lambda arrays, params: np.matmul(*arrays),
    "dot": lambda arrays, params: np.dot(*arrays),
    "tensordot": _tensordot,
    "einsum": _einsum,
    "reinterpret": lambda arrays, params: np.ascontiguousarray(arrays[0]).view(params[0]),
    "numpy": _numpy,
}


def register(name: str, function: Function) -> None:
    """Make ``function`` the meaning of ``CALL name``."""
    FUNCTIONS[name] = function


def lookup(name: str) -> Function:
    """The function behind ``CALL name``."""
    function = FUNCTIONS.get(name)
    if function is None:
        prefix, _, ufunc = name.partition(":")
        if prefix != "ufunc" or not isinstance(getattr(np, ufunc, None), np.ufunc):
            raise KeyError(f"CALL {name!r}: there are {', '.join(sorted(FUNCTIONS))} and ufunc:<name>")
        of: np.ufunc = getattr(np, ufunc)

        def function(arrays: Arrays, params: tuple[Any, ...]) -> Any:
            return of(*arrays, **dict(params[0] if params else ()))

        FUNCTIONS[name] = function
    return function
