"""Axis arguments.

In: what users pass as ``axis``.  Out: non-negative axes.  Promise: NumPy's exceptions for what does not fit.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.graph.node import Node, Shape
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp.graph import build
else:
    (build,) = late("graph.build")

_BEYOND: Final = {OverflowError: "Python int too large to convert to C int", ValueError: "integer won't fit into a C int"}


def one(axis: Any, ndim: int, name: str | None = None, beyond: type[Exception] = OverflowError) -> int:
    """One axis as a non-negative number; ``name`` is the argument's, for the error, ``beyond`` what is raised beyond the integers of C.

    Functions of NumPy's that read an axis as an integer of C take no truth value (``beyond`` is a ValueError then).
    """
    if beyond is ValueError and isinstance(axis, bool):
        raise TypeError("an integer is required for the axis")
    number = index(axis)
    if not -ndim <= number < ndim:
        np.intp(number)  # NumPy reads a C long first
        if not -(2**31) <= number < 2**31:
            raise beyond(_BEYOND[beyond])
        raise np.exceptions.AxisError(number, ndim, name)
    return number + ndim if number < 0 else number


def several(axis: Any, ndim: int, name: str | None = None, beyond: type[Exception] = OverflowError) -> tuple[int, ...]:
    """One or several different axes, in the order given."""
    if not isinstance(axis, (tuple, list)) and hasattr(axis, "__index__"):
        return (one(axis, ndim, name, beyond),)
    axes = tuple([one(a, ndim, name, beyond) for a in axis])
    if len(set(axes)) != len(axes):
        raise ValueError("repeated axis" if name is None else f"repeated axis in `{name}` argument")
    return axes


def reduced(axis: Any, ndim: int, beyond: type[Exception] = ValueError) -> tuple[int, ...]:
    """The axes of a reduction in increasing order; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int:
        if ndim == 0 and axis in (0, -1):
            return ()
        return (one(axis, ndim, None, beyond),)
    if isinstance(axis, tuple):
        axes = sorted([one(a, ndim, None, beyond) for a in axis])
        if len(set(axes)) != len(axes):
            raise ValueError("duplicate value in 'axis'")
        return tuple(axes)
    if type(axis) is bool:
        raise TypeError("an integer is required for the axis")
    return reduced(index(axis), ndim, beyond)


def keeps(keepdims: Any) -> bool:
    """Read a ``keepdims`` argument, which NumPy takes for a number; without one the axes go."""
    return keepdims is not np._NoValue and index(keepdims) != 0


def kept(node: Node, shape: Shape, axes: tuple[int, ...]) -> Node:
    """A reduced node with the reduced axes put back as length one."""
    return build.reshape(node, tuple([1 if axis in axes else n for axis, n in enumerate(shape)]))
