"""Nominal memory layout: where NumPy would have put the elements.

In: arrays.  Out: byte strides, and the memory order NumPy gives copies and elementwise results.  Promise: layout is known without
computing anything, and is NumPy's own choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazynp import arrays
from lazynp.graph.node import Shape
from lazynp.views import Geometry, View, memory_order, owned_strides

ORDERS = frozenset("CFAK")


def checked_order(order: Any) -> str:
    """A memory order that is none of ``ORDERS`` as it was written; NumPy takes small letters too."""
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in ORDERS:
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    return order.upper()


def geometry(x: arrays.ndarray) -> Geometry:
    """(byte offset in the base's memory, byte strides)."""
    if type(x._base) is arrays.ndarray:
        view: View = x._view
        return view.geometry()
    return 0, owned_strides(x.shape, x.dtype.itemsize)


def result_order(inputs: Sequence[Any], shape: Shape) -> tuple[int, ...] | None:
    """NumPy's memory order for an elementwise result of ``shape``: axes from slowest to fastest, None for C order."""
    if len(shape) < 2:
        return None
    for x in inputs:
        if type(x) is arrays.ndarray and type(x._base) is arrays.ndarray and not x._view.in_c_order():
            break
    else:
        return None
    return iteration_order([x for x in inputs if type(x) is arrays.ndarray], shape)


def reduction_order(x: Any, axes: Sequence[int], ndim: int) -> tuple[int, ...] | None:
    """NumPy's memory order for a result of ``ndim`` axes made by reducing ``axes`` of ``x`` (dropped, or kept with length one)."""
    if ndim < 2 or type(x) is not arrays.ndarray or type(x._base) is not arrays.ndarray or x._view.in_c_order():
        return None
    order = iteration_order([x], x.shape)
    if order is None:
        return None
    rest = [axis for axis in order if axis not in axes]
    if ndim == len(x.shape):
        return (*axes, *rest)
    names = sorted(rest)
    return tuple([names.index(axis) for axis in rest])


def joined_order(parts: Sequence[arrays.ndarray]) -> tuple[int, ...] | None:
    """NumPy's memory order for the concatenation of ``parts``, which have the same number of axes.

    This is ``PyArray_CreateMultiSortedStridePerm``: an insertion sort of the axes by the parts' strides, for C order where they disagree.
    """
    views = [x for x in parts if type(x._base) is arrays.ndarray and not x._view.in_c_order()]
    if not views:
        return None
    columns = [[0 if n == 1 else abs(stride) for n, stride in zip(x.shape, x.strides, strict=True)] for x in parts]
    shapes = [x.shape for x in parts]
    order = list(range(len(shapes[0])))
    for k in range(1, len(order)):
        axis = order[k]
        position = k
        for j in range(k - 1, -1, -1):
            other = order[j]
            decided, swap = False, False
            for shape, strides in zip(shapes, columns, strict=True):
                if shape[axis] != 1 and shape[other] != 1:
                    if strides[axis] <= strides[other]:
                        swap = False
                    elif not decided:
                        swap = True
                    decided = True
            if decided:
                if not swap:
                    break
                position = j
        if position != k:
            order.insert(position, order.pop(k))
    return None if order == list(range(len(order))) else tuple(order)


def copy_order(x: arrays.ndarray, order: str | None) -> tuple[int, ...] | None:
    """The memory order of a copy of ``x``: axes from slowest to fastest, None for C order."""
    if order is not None and order not in ORDERS:
        order = checked_order(order)
    if order == "F":
        return tuple(range(x.ndim - 1, -1, -1)) if x.ndim > 1 else None
    if order == "C" or type(x._base) is not arrays.ndarray:
        return None
    view: View = x._view
    _, strides = view.geometry()
    if order == "A":
        flags = x.flags
        return tuple(range(x.ndim - 1, -1, -1)) if flags.f_contiguous and not flags.c_contiguous else None
    return memory_order(view.shape, strides, view.dtype.itemsize)


def iteration_order(operands: Sequence[arrays.ndarray], shape: Shape) -> tuple[int, ...] | None:
    """The memory order NumPy's iterator gives a new operand of ``shape``: axes from slowest to fastest, None for C order.

    This is ``npyiter_find_best_axis_ordering``: an insertion sort of the axes by the operands' strides, where a conflict between operands
    is decided for C order.
    """
    ndim = len(shape)
    sized = [array for array in operands if array.shape]
    if all(array.shape == shape and array.flags.f_contiguous for array in sized):
        # Operands that one flat loop can walk do not get an iterator.
        return None if all(array.flags.c_contiguous for array in sized) else tuple(range(ndim - 1, -1, -1))
    columns = []
    for array in sized:
        own = array.shape
        strides = [0 if n == 1 else abs(stride) for n, stride in zip(own, array.strides, strict=True)]
        columns.append([0] * (ndim - len(own)) + strides)
    order = list(range(ndim - 1, -1, -1))  # from fastest to slowest
    for k in range(1, ndim):
        axis = order[k]
        position = k
        for j in range(k - 1, -1, -1):
            other = order[j]
            decided, swap = False, False
            for strides in columns:
                if strides[axis] and strides[other]:
                    if strides[other] <= strides[axis]:
                        swap = False
                    elif not decided:
                        swap = True
                    decided = True
            if decided:
                if not swap:
                    break
                position = j
        if position != k:
            order.insert(position, order.pop(k))
    order.reverse()
    if order == list(range(ndim)):
        return None
    return tuple(order)
