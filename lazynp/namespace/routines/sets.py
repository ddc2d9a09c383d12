"""Arrays as sets.

In: arrays.  Out: sorted values without repetition, and which values are in another array.  Promise: what decides a shape is computed
now, by NumPy; membership has the shape of its input and stays lazy, as a few comparisons where the other set is small.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.arrays import wrap
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, reshape
from lazynp.graph.dtypes import BOOL
from lazynp.graph.node import Node
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import at_once, item, known, native
from lazynp.namespace.ufunc.promotion import array_node

FEW: Final = 8  # values up to which comparing with each is what NumPy does, too


@fallback.library
@native
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None, *,
    equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """Find the different values; see :func:`numpy.unique`."""
    if sorted and axis is None and not (return_index or return_inverse or return_counts):
        return _distinct(array_node(ar), bool(equal_nan))
    return at_once("unique", array_node(ar), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan, sorted=sorted)


@fallback.library
@native
def unique_all(x: Any) -> Any:
    """Find the different values, where they are and how often; see :func:`numpy.unique_all`."""
    return at_once("unique_all", array_node(x))


@fallback.library
@native
def unique_counts(x: Any) -> Any:
    """Find the different values and how often they are there; see :func:`numpy.unique_counts`."""
    return at_once("unique_counts", array_node(x))


@fallback.library
@native
def unique_inverse(x: Any) -> Any:
    """Find the different values and which of them is where; see :func:`numpy.unique_inverse`."""
    return at_once("unique_inverse", array_node(x))


@fallback.library
@native
def unique_values(x: Any) -> Any:
    """Find the different values; see :func:`numpy.unique_values`.

    NumPy leaves the order open; here they are sorted, which other libraries count on.
    """
    return _distinct(array_node(x), False)


def _distinct(x: Node, equal_nan: bool) -> Any:
    """The different values, sorted."""
    return at_once("unique", x, equal_nan=equal_nan)


@fallback.library
@native
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Find the values that are in both arrays; see :func:`numpy.intersect1d`."""
    return at_once("intersect1d", array_node(ar1), array_node(ar2), assume_unique, return_indices)


@fallback.library
@native
def union1d(ar1: Any, ar2: Any) -> Any:
    """Find the values that are in at least one array; see :func:`numpy.union1d`."""
    # Python's numbers are weak here, and only here.
    return at_once("union1d", *[x if type(x) in (int, float, complex) else array_node(x) for x in (ar1, ar2)])


@fallback.library
@native
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Find the values of the first array that are not in the second; see :func:`numpy.setdiff1d`."""
    return at_once("setdiff1d", array_node(ar1), array_node(ar2), assume_unique)


@fallback.library
@native
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Find the elements of exactly one input; see :func:`numpy.setxor1d`."""
    return at_once("setxor1d", array_node(ar1), array_node(ar2), assume_unique)


@native
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    """Tell which values are in another array; see :func:`numpy.isin`."""
    x, y = array_node(element), array_node(test_elements)
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if kind == "table" and any(node.dtype.kind not in "uib" for node in (x, y)):
        raise ValueError("The 'table' method is only supported for boolean or integer arrays. Please select 'sort' or None for kind.")
    if kind is None and build.size(y) <= FEW and known(y):
        return wrap(_compared(x, y, invert))
    options = {"assume_unique": bool(assume_unique), "invert": bool(invert), "kind": kind}
    (node,) = item("isin", (x, y), options, [(BOOL, x.shape)], fails=kind == "table")
    return wrap(node)


def _compared(x: Node, y: Node, invert: bool) -> Node:
    """Equal to one of a few."""
    n = build.size(y)
    loop = np.result_type(x.dtype, y.dtype)
    flat, left = reshape(y, (n,)), cast(x, loop)
    found = expand(const(bool(invert), BOOL), x.shape)
    for k in range(n):
        one = cast(reshape(build.slice_(flat, [(k, 1)], (1,)), ()), loop)
        same = elementwise(o.NOT_EQUAL if invert else o.EQUAL, BOOL, left, one)
        found = same if k == 0 else elementwise(o.BITWISE_AND if invert else o.BITWISE_OR, BOOL, found, same)
    return found


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        unique, unique_all, unique_counts, unique_inverse, unique_values, intersect1d, union1d, setdiff1d, setxor1d, isin,
    )
}  # fmt: skip
