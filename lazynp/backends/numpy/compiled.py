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
from lazynp.graph.op import Kind, Op
from lazynp.values import config


@functools.cache
def available(op: Op, char: str) -> bool:
    """Tell whether the core has the function of the dtype with that character."""
    if not config.polynomials or char not in "fd" or op.kind is not Kind.ELEMENTWISE or op.special:
        return False
    one = np.ones(1, char)
    return core.compiled(op.name, one, *[one] * ((op.arity or 1) - 1)) is not None


class Compiled:
    """A function of one array or two; called like a ufunc.  ``errors`` are those that are to be reported, as NumPy's bits.

    Not of numbers that vanish, of which kernels tell in another way.
    """

    __slots__ = ("errors", "loop", "name")

    def __init__(self, op: Op, errors: int) -> None:
        self.name = op.name
        self.loop: Any = UFUNCS[op]
        self.errors = errors

    def __call__(self, *arrays: Any) -> Any:
        shape = arrays[0].shape if len(arrays) == 1 else np.broadcast_shapes(*[x.shape for x in arrays])
        whole = [x for x in arrays if x.shape == shape]
        # As NumPy's loops give a transposed matrix for one.
        turned = len(shape) == 2 and bool(whole) and all(abs(x.strides[0]) < abs(x.strides[1]) for x in whole)
        given = [x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays]
        found, errors = core.compiled(self.name, *[np.ascontiguousarray(x.T if turned else x) for x in given])
        if errors & self.errors:
            self.loop(*arrays)  # says what is to be told
        return found.T if turned else found.reshape(shape)
