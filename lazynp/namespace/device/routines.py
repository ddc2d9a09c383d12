"""NumPy's routines composed of others, for arrays on a GPU.

In: the arguments of a function that a routine of NumPy's does for the processor's arrays: counting, interpolation, sets.  Out: the same
result out of sorting, searching, running sums and elementwise operations, which a GPU has.  Promise: NumPy's values, to the bit, in
NumPy's dtypes; None for what is not composed here, has an error or a warning: that is NumPy's to do, on host copies, and counted.

Left to NumPy, among others: bins of histograms by name, and weights between given edges.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, DType
from lazynp.graph.node import Node
from lazynp.namespace.device import accumulating, sequences
from lazynp.namespace.device.scattering import REFUSALS, scattered
from lazynp.namespace.routines import histograms, sets
from lazynp.namespace.routines.creation import arange, zeros
from lazynp.namespace.routines.joining import concatenate, stack
from lazynp.namespace.routines.mathematics import diff
from lazynp.namespace.routines.selecting import argsort, nonzero, searchsorted, sort, take_along_axis, where
from lazynp.namespace.routines.shaping import moveaxis
from lazynp.namespace.ufunc.reductions import all as everywhere
from lazynp.namespace.ufunc.reductions import any as anywhere
from lazynp.namespace.ufunc.reductions import cumsum
from lazynp.namespace.ufunc.reductions import max as largest
from lazynp.namespace.ufunc.reductions import min as smallest
from lazynp.namespace.ufunc.reductions import sum as add_up
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U
from lazynp.scalars import force
from lazynp.storage import host

Array = Any  # of ours
UINT8: Final = np.dtype(np.uint8)

COLUMNS: Final = 32
"""Longer rows are NumPy's to compare: each column is sorted by."""

BLOCK: Final = 65536
"""Values whose weights NumPy's histogram adds up before it adds them to the counts."""


def composed(name: str, args: Any, options: dict[str, Any], nodes: list[Node], table: Any = None) -> Any:
    """Compute what a function gives for arrays that live on a GPU; None for NumPy's to do.

    Parameters
    ----------
    name : str
    args, options
        Its arguments, with nodes for arrays.
    nodes : list of Node
        These nodes.
    table : dict
        Where the function is, ``FUNCTIONS`` if not given.
    """
    function = (FUNCTIONS if table is None else table).get(name)
    if function is None or not all(build.size(node) for node in nodes):
        return None
    home = devices.join(devices.homes(nodes).values(), nodes[-1]) or devices.default()
    if home == devices.CPU or np.geterr()["under"] != "ignore":
        return None
    with devices.making(home), np.errstate(all="ignore"):
        try:
            found = function(*_wrapped(args), **{key: _wrapped(value) for key, value in options.items()})
            if found is not None and name not in _LAZY:
                force([node_of(asarray(each)) for each in (found if isinstance(found, tuple) else (found,))], name)
        except REFUSALS:
            return None
        return found


def _wrapped(value: Any) -> Any:
    if isinstance(value, Node):
        return wrap(value)
    return type(value)([_wrapped(item) for item in value]) if isinstance(value, (tuple, list)) else value


def _flat(x: Array) -> Array:
    return wrap(build.reshape(node_of(x), (x.size,)))


def _ends(x: Array) -> np.ndarray[Any, Any]:
    """The smallest and the largest value, on the host."""
    return host(stack([asarray(smallest(x)), asarray(largest(x))]), "range")


# Counting ---------------------------------------------------------------------------------------------------------------------


def bincount(x: Array, weights: Array, minlength: Any) -> Any:
    """Sums of weights by number, each in order; without weights CuPy counts."""
    if (
        weights is None
        or type(x) is not ndarray
        or x.ndim != 1
        or weights.shape != x.shape
        or not all(np.can_cast(array.dtype, dtype) for array, dtype in ((x, INT64), (weights, FLOAT64)))
    ):
        return None
    least, most = _ends(x).tolist()
    return None if least < 0 or minlength < 0 else _added(x, weights, max(most + 1, int(minlength)))


def _added(x: Array, weights: Array, count: int) -> Array:
    """The weights of each number below ``count``, added in order."""
    sums = zeros(count)
    source = build.contiguous(node_of(weights.astype(FLOAT64)))
    target, found = accumulating.combined(U["add"], node_of(sums), x.astype(INT64), [source])
    return wrap(scattered(sums, wrap(target), found, False))


def _counted(index: Array, count: int) -> Array:
    return histograms.bincount(index, minlength=count)


def _difference(a: Any, b: Any) -> Any:
    """``a - b`` where a is not less than b: whole numbers without a sign, which have room for it."""
    dtype = np.result_type(a, b)
    if dtype.kind == "i":
        return np.subtract(np.asarray(a, dtype), np.asarray(b, dtype), dtype=np.dtype(dtype.char.upper()), casting="unsafe")
    return np.subtract(a, b, dtype=dtype)


def histogram_bin_edges(x: Array, bins: Any, range: Any = None, weights: Any = None) -> Any:
    """Compute where equal bins begin and end."""
    return asarray(np.histogram_bin_edges(_ends(x), bins, range)) if isinstance(bins, int) and x.dtype.kind in "iuf" else None


def histogram(x: Array, bins: Any, range: Any, density: Any, weights: Array) -> Any:
    """Counts in bins, of equal width or between edges."""
    x = _flat(x)
    if x.dtype.kind not in "iuf" or isinstance(bins, str):
        return None
    if not isinstance(bins, int):
        return None if weights is not None else _divided(_between(x, bins), bins, density)
    ends = _ends(x)
    edges = np.histogram_bin_edges(ends, bins, range)
    first, last = ends if range is None else range
    if first == last:
        first, last = first - 0.5, last + 0.5
    index = _bin(x, edges, first, last)
    if weights is None:
        counts = _counted(index, bins + 1)[:bins]
    else:
        counts = _weighed(index, _flat(weights), bins)
    return None if counts is None else (_divided(counts, asarray(edges), density), asarray(edges))


def _bin(x: Array, edges: np.ndarray[Any, Any], first: Any, last: Any) -> Array:
    """The bin of equal width that each value is in; one beyond the last for what is in none."""
    bins = len(edges) - 1
    width = _difference(last, first)
    if not np.isfinite(width) or width < np.finfo(np.result_type(width, FLOAT16)).tiny:
        raise ValueError  # what follows may overflow
    inside = (x >= first) & (x <= last)
    value = where(inside, x.astype(edges.dtype), edges[0])
    steps = U["subtract"](value, first, dtype=np.result_type(edges.dtype, first)) / width * bins
    index = steps.astype(INT64)
    index = index - (index == bins)
    # Rounding may have put a value next to an edge on its other side.
    places = asarray(edges)
    index = index - (value < places[index])
    index = index + ((value >= places[index + 1]) & (index != bins - 1))
    return where(inside, index, bins)


def _between(x: Array, edges: Array) -> Array:
    """Counts between edges; the last one belongs to the last bin."""
    known = host(edges, "bins")
    if edges.ndim != 1 or len(known) < 2 or edges.dtype.kind not in "iuf" or not (known[:-1] <= known[1:]).all():
        raise ValueError
    n = len(known)
    index = searchsorted(edges, x, "right")
    index = where(x == known[-1], n - 1, where(x == x, index, 0))
    return _counted(index, n + 1)[1:n]


def _weighed(index: Array, weights: Array, bins: int) -> Array:
    """Weights added up by bin, those of a block of values first, as NumPy does."""
    dtype = weights.dtype
    if not np.can_cast(dtype, FLOAT64):
        return None
    blocks = -(-index.size // BLOCK)
    if blocks > 1:
        index = index + (bins + 1) * (arange(index.size) // BLOCK)
        if dtype == FLOAT16:
            return None  # a reduction adds it up in float32
    sums = _added(index, weights, blocks * (bins + 1)).reshape(blocks, bins + 1)
    total = zeros(bins + 1, dtype)
    for k in range(0, blocks, accumulating.ROWS):
        part = sums[k : k + accumulating.ROWS].astype(dtype)
        total = add_up(concatenate([total[None], part]), 0, dtype)
    return total[:bins]


def _divided(counts: Array, edges: Array, density: Any) -> Array:
    """Counts, or what they are of a unit of length and of all."""
    return _finite(counts / diff(edges).astype(FLOAT64) / _total(counts, ...)) if density else counts


def _total(counts: Array, part: Any) -> Any:
    """The sum of a part of what was counted: of weights in NumPy's order, which depends on where they lie."""
    return add_up(counts[part]) if counts.dtype.kind in "iu" else host(counts, "histogram")[part].sum()


def _finite(x: Array) -> Array:
    """Numbers that were divided without an error to warn of."""
    if not host(asarray(everywhere(U["isfinite"](x))), "histogram"):
        raise ValueError
    return x


def histogramdd(x: Array, bins: list[Any], range: Any, density: Any, weights: Array) -> Any:
    """Counts in boxes."""
    if x.ndim != 2 or x.dtype.kind not in "iuf" or (weights is not None and not np.can_cast(weights.dtype, FLOAT64)):
        return None
    index: Any = 0
    shape, edges = [], []
    for k, wanted in enumerate(bins):
        values = x[:, k]
        if isinstance(wanted, int):
            limits = None if range is None or range[k] is None else [range[k]]
            known = np.histogramdd(_ends(values)[:, None], [wanted], limits)[1][0]
            edges.append(asarray(known))
        else:
            known = host(wanted, "bins")
            if wanted.ndim != 1 or not len(known) or not (known[:-1] <= known[1:]).all():
                return None
            edges.append(wanted)
        n = len(known) + 1  # with what lies before and beyond
        index = index * n + (searchsorted(edges[-1], values, "right") - (values == known[-1]))
        shape.append(n)
    sums = _counted(index, prod(shape)) if weights is None else _added(index, weights, prod(shape))
    sums, core = sums.reshape(shape), (slice(1, -1),) * len(shape)
    counts = sums.astype(FLOAT64)[core]
    if density:
        total = _total(sums, core)
        for k, edge in enumerate(edges):
            counts = counts / diff(edge).reshape([-1 if j == k else 1 for j, _ in enumerate(shape)])
        counts = _finite(counts / total)
    return (counts, *edges)


def digitize(x: Array, bins: Array, right: bool) -> Any:
    """The bins that values fall into."""
    if bins.dtype.kind == "c":
        return None
    edges = host(bins, "bins")
    side = "left" if right else "right"
    if (edges[:-1] <= edges[1:]).all():
        return searchsorted(bins, x, side)
    if (edges[:-1] >= edges[1:]).all():
        return len(edges) - searchsorted(bins[::-1], x, side)
    return None


# Interpolation ----------------------------------------------------------------------------------------------------------------


def interp(at: Array, points: Array, heights: Array, left: Any = None, right: Any = None) -> Any:
    """Lines between points, as NumPy's loop draws them: it tells of no floating-point error."""
    first, last = heights[0] if left is None else left, heights[-1] if right is None else right
    found = heights[0] if points.size == 1 else _drawn(at, points, heights)
    return where(at > points[-1], last, where(at < points[0], first, found))


def _drawn(at: Array, points: Array, heights: Array) -> Array:
    """The height at each place between the first and the last point."""
    place = U["maximum"](U["minimum"](searchsorted(points, at, "right") - 1, points.size - 2), 0)
    x, next_x = points[place], points[place + 1]
    complex_ = heights.dtype.kind == "c"
    parts = []
    for part, unknown in ((heights.real, at), (heights.imag, 0.0)) if complex_ else ((heights, at),):
        y, next_y = part[place], part[place + 1]
        slope = (next_y - y) * (1.0 / (next_x - x)) if complex_ else (next_y - y) / (next_x - x)
        found, other = slope * (at - x) + y, slope * (at - next_x) + next_y
        # Where one end gives nan the other may not.
        found = where(found == found, found, where((other != other) & (y == next_y), y, other))
        found = where(at == points[-1], part[-1], where(at == x, y, found))
        parts.append(where(at == at, found, unknown))
    if not complex_:
        return parts[0]
    return wrap(build.elementwise(o.COMPLEX, heights.dtype, *map(node_of, parts)))


# Sets -------------------------------------------------------------------------------------------------------------------------


def _comparable(x: Array, dtype: DType) -> Array:
    """Flat, in a dtype that CuPy sorts and searches."""
    return _flat(x).astype({BOOL: UINT8, FLOAT16: FLOAT32}.get(dtype, dtype))


def isin(x: Array, among: Array, assume_unique: bool, invert: bool, kind: Any) -> Any:
    """Tell which values are in another array: each is looked up among the sorted ones."""
    loop = np.result_type(x.dtype, among.dtype)
    if assume_unique or kind == "table" or loop.kind == "c" or (loop.kind == "f" and x.dtype.kind in "iu" and among.dtype.kind in "iu"):
        return None  # as float64, where numbers of one array may be equal, which NumPy takes for one of each
    values, known = _comparable(x, loop), sort(_comparable(among, loop))
    place = U["minimum"](searchsorted(known, values), known.size - 1)
    return U["not_equal" if invert else "equal"](known[place], values).reshape(x.shape)


def _first_of_each(values: Array, equal_nan: bool) -> Array:
    """Find where sorted values differ from the one before."""
    differ = values[1:] != values[:-1]
    if equal_nan and values.dtype.kind == "f":
        differ = differ & ((values[1:] == values[1:]) | (values[:-1] == values[:-1]))
    return concatenate([asarray([True]), differ])


def unique(
    x: Array, index: Any = False, inverse: Any = False, counts: Any = False, axis: Any = None, equal_nan: Any = True, sorted: Any = True
) -> Any:
    """The different values, or rows, where they are first, which of them is where, and how often."""
    if not sorted or x.dtype.kind not in "biuf":
        return None
    if axis is None:
        values = _comparable(x, x.dtype)
        order: Array = argsort(values, kind="stable") if index or inverse else None
        ranked = sort(values) if order is None else values[order]
        first = _first_of_each(ranked, equal_nan)
    else:
        rows = moveaxis(x, axis, 0)
        values = _comparable(rows, x.dtype).reshape(rows.shape[0], -1)
        if values.shape[1] > COLUMNS:
            return None
        order = lexsort([values[:, k] for k in range(values.shape[1])][::-1], 0)
        ranked = values[order]
        first = concatenate([asarray([True]), anywhere(ranked[1:] != ranked[:-1], 1)])
    (starts,) = nonzero(first)
    kept = ranked[starts].astype(x.dtype)
    found = [kept if axis is None else moveaxis(kept.reshape(-1, *rows.shape[1:]), 0, axis)]
    if index:
        found.append(order[starts])
    if inverse:
        number = cumsum(first, dtype=INT64) - 1
        places: Array = wrap(scattered(zeros(first.size, INT64), order, node_of(number), False))
        found.append(places.reshape(x.shape) if axis is None else places)
    if counts:
        found.append(diff(concatenate([starts, asarray([first.size])])))
    return tuple(found) if len(found) > 1 else found[0]


def _standard(function: Any, index: bool, inverse: bool, counts: bool) -> Any:
    """A function of the array API standard, whose results are named."""

    def call(x: Array) -> Any:
        found = unique(x, index, inverse, counts, equal_nan=False)
        return found if found is None else type(function(np.zeros(1)))(*found)

    return call


def _pair(a: Array, b: Array, assume_unique: Any) -> list[Array]:
    return [_flat(x) if assume_unique else sets.unique(x) for x in (a, b)]


def intersect1d(a: Array, b: Array, assume_unique: Any, return_indices: Any) -> Any:
    """Values that are in both."""
    if return_indices:
        return None
    both = sort(concatenate(_pair(a, b, assume_unique)))
    return both[:-1][nonzero(both[1:] == both[:-1])[0]]


def union1d(a: Any, b: Any) -> Any:
    """Values that are in one or the other."""
    return sets.unique(concatenate((a, b), None))


def setdiff1d(a: Array, b: Array, assume_unique: Any) -> Any:
    """Values of the first that are not in the second."""
    values, others = _pair(a, b, assume_unique)
    return values[nonzero(sets.isin(values, others, invert=True))[0]]


def setxor1d(a: Array, b: Array, assume_unique: Any) -> Any:
    """Values that are in one of the two only."""
    both = sort(concatenate(_pair(a, b, assume_unique)))
    ends = asarray([True])
    alone = concatenate([ends, both[1:] != both[:-1], ends])
    return both[nonzero(alone[1:] & alone[:-1])[0]]


def lexsort(keys: Any, axis: int) -> Any:
    """Positions that sort by several keys: by one after the other, each time keeping the order of what is equal."""
    order = None
    for key in keys:
        if order is None:
            order = argsort(key, axis, kind="stable")
        else:
            again = argsort(take_along_axis(key, order, axis), axis, kind="stable")
            order = take_along_axis(order, again, axis)
    return order


# What records operations and looks at no value of the arrays: computed when it is needed.
_LAZY: Final = frozenset({"interp", "isin", "digitize", "lexsort"}) | sequences.LAZY

FUNCTIONS: Final = {
    **{
        function.__name__: function
        for function in (
            bincount, histogram_bin_edges, histogram, histogramdd, digitize, interp, isin, unique, intersect1d, union1d, setdiff1d,
            setxor1d, lexsort,
        )
    },
    **sequences.ITEMS,
    "unique_all": _standard(np.unique_all, True, True, True),
    "unique_counts": _standard(np.unique_counts, False, False, True),
    "unique_inverse": _standard(np.unique_inverse, False, True, False),
}  # fmt: skip
