"""Counting: histograms, bins.

In: data, bins, weights.  Out: library items, for the number of bins is known; at once where values decide it.  Promise: dtypes and what is
refused are NumPy's own answer to two values in place of the data; the data is looked at when the counts are needed, or at the call if it
is there already.
"""

from __future__ import annotations

import warnings
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, result, wrap
from lazynp.conversion import asarray as _asarray
from lazynp.graph import build
from lazynp.graph.build import cast, reshape
from lazynp.graph.dtypes import BOOL, INT64
from lazynp.graph.node import Node, stacklevel
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge.library import at_once, item, known, native, values
from lazynp.namespace.routines.joining import stack
from lazynp.namespace.ufunc.promotion import array_node
from lazynp.protocols import to_host
from lazynp.scalars import generic


def _ones(node: Node) -> np.ndarray[Any, Any]:
    """Two values in place of a node's, none where it has none: enough to ask NumPy what it would make of them."""
    return np.arange(min(build.size(node), 2)).astype(node.dtype)


def _data(a: Any, weights: Any) -> tuple[Node, Node | None]:
    x = array_node(a)
    if x.dtype == BOOL:
        warnings.warn("Converting input from bool to <class 'numpy.uint8'> for compatibility.", RuntimeWarning, stacklevel=stacklevel())
        x = cast(x, np.dtype(np.uint8))
    if weights is None:
        return x, None
    w = array_node(weights)
    if w.shape != x.shape:
        raise ValueError("weights should have the same shape as a.")
    return x, w


def _limits(range: Any) -> Any:
    """``range=`` as numbers that are known."""
    limits = to_host(range, "range")
    return tuple([to_host(limit, "range") for limit in limits]) if isinstance(limits, (list, tuple, np.ndarray)) else limits


class _Bins:
    """``bins=`` of one dimension: how many, or where they begin and end."""

    def __init__(self, bins: Any) -> None:
        self.edges: Node | None = None
        self.given: Any
        self.count = 1
        if isinstance(bins, (str, int)) or np.ndim(bins) == 0:
            self.given = bins if isinstance(bins, (str, int)) else to_host(bins, "bins")
            return
        self.given = _asarray(bins)
        self.edges = array_node(self.given)
        self.count = self.edges.shape[0] - 1

    @property
    def named(self) -> bool:
        return isinstance(self.given, str)

    def stand_in(self, range: Any) -> Any:
        """Make what NumPy is asked about: as many bins, but one where the data decides how wide they are."""
        if self.edges is not None:
            shape = self.edges.shape
            return np.arange(shape[0]).astype(self.edges.dtype) if len(shape) == 1 else np.zeros((1,) * len(shape))
        return self.given if range is not None or not isinstance(self.given, (int, np.integer)) else min(int(self.given), 1)

    @property
    def argument(self) -> Any:
        return self.edges if self.edges is not None else self.given if self.named else index(self.given)


@fallback.library
@native
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Compute where the bins of a histogram begin and end; see :func:`numpy.histogram_bin_edges`."""
    x, w = _data(a, weights)
    limits, wanted = _limits(range), _Bins(bins)
    if wanted.named:
        return at_once("histogram_bin_edges", x, wanted.given, limits, w)
    edges = np.histogram_bin_edges(_ones(x), wanted.stand_in(limits), limits)
    if wanted.edges is not None:
        _check_increasing(wanted.edges)
        return wanted.given
    if limits is not None or not build.size(x):
        return wrap(build.buffer(edges if limits is not None else np.histogram_bin_edges(_ones(x), wanted.given)))
    n = index(wanted.given)
    return wrap(item("histogram_bin_edges", (x, n), {}, [(edges.dtype, (n + 1,))], fails=True)[0])


def _check_if_known(edges: Node, message: str = "`bins` must increase monotonically, when an array") -> None:
    if known(edges):
        _check_increasing(edges, message)


def _check_increasing(edges: Node, message: str = "`bins` must increase monotonically, when an array") -> None:
    (found,) = values(edges, reason="bins")
    if (found[:-1] > found[1:]).any():
        raise ValueError(message)


@fallback.library
@native
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Count the values in each bin; see :func:`numpy.histogram`."""
    x, w = _data(a, weights)
    limits, wanted = _limits(range), _Bins(bins)
    if wanted.named or x.dtype.kind == "c":
        # What is no number on a line NumPy counts with a warning: it is asked once.
        counts, edges = at_once("histogram", x, wanted.argument, limits, density, w)
        return counts, edges if wanted.edges is None else wanted.given
    weight = None if w is None else _ones(w)
    with np.errstate(all="ignore"):
        counts, edges = np.histogram(_ones(x), wanted.stand_in(limits), limits, density, weight)
    options = {"range": limits, "density": density, "weights": w}
    if wanted.edges is not None:
        _check_if_known(wanted.edges)
        (found,) = item("histogram", (x, wanted.edges), options, [(counts.dtype, counts.shape)], fails=True)
        return wrap(found), wanted.given
    n = index(wanted.given)
    outs = [(counts.dtype, (n,)), (edges.dtype, (n + 1,))]
    return tuple([wrap(node) for node in item("histogram", (x, n), options, outs, fails=True)])


def _sample(sample: Any) -> Node:
    """Points as rows."""
    if len(getattr(sample, "shape", ())) == 2:
        return array_node(sample)
    if isinstance(sample, (list, tuple)) and any(type(part) is ndarray for part in sample):
        sample = stack([_asarray(part) for part in sample])
    x = array_node(sample)
    if len(x.shape) < 2:
        return reshape(x, (build.size(x), 1))
    return build.permute(x, tuple(range(len(x.shape) - 1, -1, -1)))


@fallback.library
@native
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Count points in the bins of several dimensions; see :func:`numpy.histogramdd`."""
    x = _sample(sample)
    n, d = x.shape
    w = None if weights is None else array_node(weights)
    try:
        several = len(bins)
    except TypeError:
        bins = (bins,) * d
    else:
        if several != d:
            raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    wanted = [_Bins(part) for part in bins]
    limits: Any = None if range is None else tuple([None if part is None else _limits(part) for part in range])
    if limits is not None and len(limits) != d:
        raise ValueError("range argument must have one entry per dimension")
    if w is not None and w.shape != (n,):
        raise ValueError("The weights and list don't have the same length.")
    points = np.repeat(_ones(reshape(x, (n * d,)))[:, None], d, 1) if n else np.empty((0, d), x.dtype)
    stand_ins = [part.stand_in(None if limits is None else limits[k]) for k, part in enumerate(wanted)]
    with np.errstate(all="ignore"):
        counts, edges = np.histogramdd(points, stand_ins, limits, density, None if w is None else np.ones(len(points), w.dtype))
    sizes = tuple([part.count if part.edges is not None else index(part.given) for part in wanted])
    for k, part in enumerate(wanted):
        if part.edges is not None:
            _check_if_known(part.edges, f"`bins[{k}]` must be monotonically increasing, when an array")
    outs = [(counts.dtype, sizes), *[(edge.dtype, (size + 1,)) for edge, size in zip(edges, sizes, strict=True)]]
    options = {"range": limits, "density": density, "weights": w}
    found = [wrap(node) for node in item("histogramdd", (x, [part.argument for part in wanted]), options, outs, fails=True)]
    return found[0], [part.given if part.edges is not None else edge for part, edge in zip(wanted, found[1:], strict=True)]


@fallback.library
@native
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Count points in the bins of a plane; see :func:`numpy.histogram2d`."""
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    try:
        count = len(bins)
    except TypeError:
        count = 1
    if count not in (1, 2):
        edges = _asarray(bins)
        bins = [edges, edges]
    counts, edges = histogramdd([_asarray(x), _asarray(y)], bins, range, density, weights)
    return counts, edges[0], edges[1]


@fallback.library
@native
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Find the bins that values fall into; see :func:`numpy.digitize`."""
    values_, edges = array_node(x), array_node(bins)
    if values_.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if len(edges.shape) != 1:
        raise ValueError("object too deep for desired array" if edges.shape else "object of too small depth for desired array")
    if known(edges):
        # Bins that are there are checked now, on nothing.
        np.digitize(np.empty(0), values(edges, reason="bins")[0])
    return result(item("digitize", (values_, edges), {"right": bool(right)}, [(INT64, values_.shape)])[0])


@fallback.library
@native
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Count how often each non-negative integer is there; see :func:`numpy.bincount`."""
    # An empty list counts as integers here: what is not an array is NumPy's to read.
    given = array_node(x) if isinstance(x, (ndarray, generic)) else x
    w = None if weights is None else array_node(weights)
    return at_once("bincount", given, w, to_host(minlength, "minlength"))


FUNCTIONS: Final = {
    function.__name__: function for function in (histogram, histogram_bin_edges, histogram2d, histogramdd, digitize, bincount)
}
