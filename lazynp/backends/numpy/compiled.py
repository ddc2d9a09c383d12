"""The kernels' mathematical functions that the native core has as C: nothing is compiled for them.

In: an array of floats, in any order of its axes.  Out: the function of its elements, with the bits of kernels.  Promise: errors are told as
NumPy tells them, by asking it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lazynp.array import core
from lazynp.backends.numpy.operations import UFUNCS
from lazynp.graph.op import Op
from lazynp.values import config


@functools.cache
def available(name: str, char: str) -> bool:
    """Tell whether the core has the function ``name`` of the dtype with that character."""
    return config.polynomials and char in "fd" and core.compiled(name, np.ones(1, char)) is not None


class Compiled:
    """A function of one array; called like a ufunc.  ``errors`` are those that somebody wants to hear of, as NumPy's bits.

    Not of numbers that vanish, of which kernels tell in another way.
    """

    __slots__ = ("errors", "loop", "name")

    def __init__(self, op: Op, errors: int) -> None:
        self.name = op.name
        self.loop: Any = UFUNCS[op]
        self.errors = errors

    def __call__(self, x: Any) -> Any:
        turned = x.ndim == 2 and abs(x.strides[0]) < abs(x.strides[1])  # as NumPy's loops give a transposed matrix for one
        rows = np.ascontiguousarray(x.T if turned else x)
        found, errors = core.compiled(self.name, rows)
        if errors & self.errors:
            self.loop(x)  # says what is to be told
        return found.T if turned else found.reshape(x.shape)
