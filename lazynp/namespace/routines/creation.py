"""Making arrays.

In: shapes, values, ranges.  Out: arrays of constants and ranges (nothing is stored until it must be), or of the user's data.
Promise: NumPy's dtypes, lengths and bits; dtypes that the graph does not have give NumPy's own arrays.
"""

from __future__ import annotations

import sys
from math import ceil, prod
from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap, wrap_ordered
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT64, INT64_END, NATIVE
from lazynp.graph.node import Node, Shape
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc import axes as ax
from lazynp.values import config
from lazynp.values.loading import late, load
from lazynp.values.nesting import checked_shape

if TYPE_CHECKING:
    from lazynp import conversion, layout, viewing
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.graph.dtypes import DType
    from lazynp.namespace import standard
    from lazynp.namespace.ufunc import promotion
else:
    hand, conversion, build, layout, standard, promotion, viewing = late(
        "array.hand", "conversion", "graph.build", "layout", "namespace.standard", "namespace.ufunc.promotion", "viewing"
    )


def lengths_of(shape: Any) -> Shape:
    """One length or several as a tuple of ints, which truth values are not; they may be negative."""
    if type(shape) is not tuple:
        shape = (shape,) if hasattr(shape, "__index__") and not getattr(shape, "shape", ()) else tuple(shape)
    checked_shape(shape)
    found = tuple([index(n) for n in shape])
    if bool in map(type, shape):
        raise TypeError("an integer is required")
    return found


def shape_of(shape: Any) -> Shape:
    """A shape argument as a tuple of ints; raises what NumPy raises."""
    if type(shape) not in (int, tuple, list):
        shape = np.empty(shape, "V0").shape  # NumPy says what is none; elements without bytes take no memory
    found: Shape = (shape,) if type(shape) is int else lengths_of(shape)
    for n in found:
        if n < 0:
            raise ValueError("negative dimensions are not allowed")
    return found


def _laid_out(node: Node, order: str | None, device: str | None = None) -> ndarray:
    if device is not None or devices.gpus is not None:
        node = devices.pinned(node, device)
    if order is None or (order if order in layout.ORDERS else layout.checked_order(order)) != "F":
        return wrap(node)
    return wrap_ordered(node, tuple(range(len(node.shape)))[::-1])


def addressable(shape: Shape, dtype: np.dtype[Any]) -> Shape:
    """Return a shape whose elements could be addressed, at the call where NumPy finds that they could not."""
    if prod([n for n in shape if n] if 0 in shape else shape) * dtype.itemsize > sys.maxsize:
        raise ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.")
    return shape


def _constant(name: str, value: int, shape: Any, dtype: Any, order: str, device: Any) -> Any:
    place = standard.checked_device(device)
    try:
        found = conversion.as_dtype(float if dtype is None else dtype)
    except TypeError:
        shape_of(shape)  # of two that are wrong NumPy names the first
        raise
    if found not in NATIVE:
        return fallback.call(getattr(np, name), name, (shape, dtype, order), {})
    return _laid_out(build.expand(build.const(value, found), addressable(shape_of(shape), found)), order, place)


def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Make an array of zeros; see :func:`numpy.zeros`."""
    return _constant("zeros", 0, shape, dtype, order, device)


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Make an array of ones; see :func:`numpy.ones`."""
    return _constant("ones", 1, shape, dtype, order, device)


def empty(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Make an array to be filled; see :func:`numpy.empty`.

    Its content is undefined for NumPy and zero here: no memory is held before the array is written, computed or lent to other code.
    """
    return _constant("empty", 0, shape, dtype, order, device)


_OF_NUMBERS: Final = frozenset({(float, FLOAT64), (float, COMPLEX128), (complex, COMPLEX128)})  # the number is a constant of the dtype


def _filled(fill_value: Any, dtype: DType | None, shape: Shape) -> Node:
    if dtype is None:
        node = promotion.array_node(fill_value)
    elif type(fill_value) in (int, bool) or (type(fill_value), dtype) in _OF_NUMBERS:
        node = promotion.weak(fill_value, dtype)
    else:
        node = conversion.converted(promotion.array_node(fill_value), dtype)
    addressable(shape, node.dtype)
    given = node.shape
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
        node = build.reshape(node, given)
    if len(given) > len(shape) or any(n not in (1, m) for n, m in zip(given[::-1], shape[::-1], strict=False)):
        raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")
    return build.expand(node, shape)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Make an array of one value; see :func:`numpy.full`."""
    place = standard.checked_device(device)
    wanted = None if dtype is None else conversion.as_dtype(dtype)
    try:
        if wanted is not None and wanted not in NATIVE:
            raise promotion.Foreign
        return _laid_out(_filled(fill_value, wanted, shape_of(shape)), order, place)
    except promotion.Foreign:
        return fallback.call(np.full, "full", (shape, fill_value, dtype, order), {})


def _like(name: str, prototype: Any, value: Any, dtype: Any, order: str, subok: bool, shape: Any, device: Any) -> Any:
    place = standard.checked_device(device)
    model = conversion.anyarray(prototype) if subok else conversion.asarray(prototype)
    wanted = model.dtype if dtype is None else conversion.as_dtype(dtype)
    if type(model) is not ndarray or wanted not in NATIVE:
        args = (prototype, value) if name == "full_like" else (prototype,)
        return fallback.call(getattr(np, name), name, args, {"dtype": dtype, "order": order, "subok": subok, "shape": shape})
    try:
        node = _filled(value, wanted, model.shape if shape is None else shape_of(shape))
    except promotion.Foreign:
        return fallback.call(np.full_like, name, (prototype, value), {"dtype": dtype, "order": order, "subok": subok, "shape": shape})
    place = place or devices.home(node_of(model))
    if shape is not None and len(node.shape) != len(model.shape):
        return _laid_out(node, "F" if order == "A" and model.flags.fnc else order, place)
    node = devices.pinned(node, place)
    return wrap_ordered(node, layout.copy_order(model, order))


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """Make an array of zeros with the shape and dtype of another; see :func:`numpy.zeros_like`."""
    return _like("zeros_like", a, 0, dtype, order, subok, shape, device)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """Make an array of ones with the shape and dtype of another; see :func:`numpy.ones_like`."""
    return _like("ones_like", a, 1, dtype, order, subok, shape, device)


def empty_like(prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """Make an array to be filled, with the shape and dtype of another; see :func:`numpy.empty_like`.

    Its content is undefined for NumPy and zero here.
    """
    return _like("empty_like", prototype, 0, dtype, order, subok, shape, device)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Make an array of one value with the shape and dtype of another; see :func:`numpy.full_like`."""
    return _like("full_like", a, fill_value, dtype, order, subok, shape, device)


# From data ------------------------------------------------------------------------------------------------------------------


def _copying(copy: Any) -> bool | None:
    """A ``copy`` argument: always, never, or where it is needed."""
    if copy is True or copy is None or copy is False:
        return copy
    if isinstance(copy, np._CopyMode):
        return {0: False, 1: True}.get(copy.value)
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    return bool(copy)


def shared(x: Any, dtype: Any = None, order: str | None = None, copy: bool | None = None) -> Any:
    """The data as an array that shares the memory where NumPy's would, also that of a map."""
    if isinstance(x, np.memmap):
        x = load("lazynp.namespace.routines.maps").shown(x, dtype, order, copy)
    return conversion.asarray(x, dtype, order, copy)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: Any = np._NoValue,
    like: Any = None,
) -> Any:
    """Make a new array of some data; see :func:`numpy.array`."""
    if copy is True and ndmin == 0 and order == "K" and ndmax is np._NoValue and config.at_hand:
        known = hand.listed(object, dtype)
        if known is not None:
            return known
    copy = _copying(copy)
    if ndmax is not np._NoValue:
        # How deep sequences are taken apart is for NumPy to say; what lies deeper are objects.
        options = {"dtype": dtype, "copy": copy, "order": order, "subok": subok, "ndmin": ndmin, "ndmax": ndmax}
        return fallback.library_call(np.array, "array", (object,), options)
    object = conversion.told(object, dtype, copy) if subok else object
    if subok and isinstance(object, np.ndarray):
        return fallback.ours(np.array(object, dtype, copy=copy, order=order, subok=True, ndmin=ndmin))  # type: ignore[call-overload]
    made = shared(object, dtype, order, copy)
    if made.ndim < ndmin:
        shape = (1,) * (ndmin - made.ndim) + made.shape
        return made.reshape(shape) if type(made) is not ndarray else viewing.view_reshape(made, shape)
    return made


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, device: Any = None, copy: bool | None = None, like: Any = None) -> Any:
    """Return the data as an array, not copied if it is one; see :func:`numpy.asarray`."""
    if copy is None and order is None and device is None and config.at_hand:
        known = hand.listed(a, dtype)
        if known is not None:
            return known
    place = standard.checked_device(device)
    made = shared(a, dtype, order, _copying(copy))
    if device is not None and made.dtype.kind not in "biufc":
        # Code of the array API standard: what it gets back must be an array of this namespace, and it knows what to do if that cannot be.
        raise TypeError(f"an array on a device holds numbers or truth values, not {made.dtype}")
    return placed(made, place)


def asanyarray(
    a: Any, dtype: Any = None, order: str | None = None, *, device: Any = None, copy: bool | None = None, like: Any = None
) -> Any:
    """Return the data as an array, or an array of a subclass; see :func:`numpy.asanyarray`."""
    place = standard.checked_device(device)
    a = conversion.told(a, dtype, copy)
    if type(a) is not ndarray and isinstance(a, np.ndarray) and type(a) is not np.ndarray:
        return np.asanyarray(a, dtype, order, copy=copy)  # type: ignore[arg-type]
    made = conversion.asarray(a, dtype, order, copy)
    return placed(made, place)


def _one_dimensional(x: Any) -> Any:
    return x if x.ndim else (viewing.view_reshape(x, (1,)) if type(x) is ndarray else x.reshape(1))


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return the data as an array of at least one dimension in C order; see :func:`numpy.ascontiguousarray`."""
    return _one_dimensional(shared(a, dtype, "C"))


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return the data as an array of at least one dimension in Fortran order; see :func:`numpy.asfortranarray`."""
    return _one_dimensional(shared(a, dtype, "F"))


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Copy an array; see :func:`numpy.copy`."""
    return array(a, order=order, subok=subok, copy=True)


def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Any:
    """Return the data as an array; refuse NaN and infinities; see :func:`numpy.asarray_chkfinite`."""
    xp = fallback.users()
    found = xp.asarray(a, dtype, order)
    if found.dtype.kind in "fc" and not xp.isfinite(found).all():
        raise ValueError("array must not contain infs or NaNs")
    return found


# Ranges ---------------------------------------------------------------------------------------------------------------------


_arange: Any = np.arange


def _number(x: Any) -> Any:
    """A range's limit as a Python or NumPy scalar."""
    value = promotion.concrete(x)
    if value is not None or x is None:
        return value
    if type(x) is ndarray or hasattr(x, "concrete"):
        return x.item() if x.ndim == 0 and x.size == 1 else np.asarray(x)
    return x


def arange(*args: Any, device: Any = None, like: Any = None, **options: Any) -> Any:
    """Make an array of evenly spaced values of an interval; see :func:`numpy.arange`."""
    place = standard.checked_device(device)
    names = ("start", "stop", "step", "dtype")
    given = {**dict(zip(names, args, strict=False)), **options}
    if len(args) > 4 or set(given) - set(names) or len(args) + len(options) != len(given) or "stop" not in given:
        if len(args) == 1 and args[0] is not None and set(options) <= {"step", "dtype"}:
            given = {"start": 0, "stop": args[0], **options}
        else:
            return placed(conversion.asarray(np.arange(*args, **options)), place)
    if given.get("start", 0) is None and given["stop"] is not None:
        return placed(conversion.asarray(np.arange(*args, **options)), place)
    if given.get("stop") is None:
        given["start"], given["stop"] = 0, given.get("start")
    start, stop, step = [_number(given.get(name)) for name in ("start", "stop", "step")]
    start = 0 if start is None else start
    step = 1 if step is None else step
    dtype = given.get("dtype")
    if dtype is not None:
        dtype = np.dtype(dtype)
    elif all(type(x) is float or (type(x) is int and -INT64_END <= x < INT64_END) for x in (start, stop, step)):
        dtype = FLOAT64 if float in (type(start), type(stop), type(step)) else INT64
    node = _range(start, stop, step, dtype) if dtype is not None and dtype in NATIVE else None
    if node is None:
        # Dates, big integers, complex numbers, arrays as limits, a step of zero, and whatever NumPy has to say about them.
        return placed(conversion.asarray(_arange(start, stop, step, given.get("dtype"))), place)
    return _laid_out(node, None, place)


def placed(made: Any, place: str | None) -> Any:
    if place is None:
        return made
    return load("lazynp.namespace.device.placement").moved(made, place)  # few programs name a device


arange.__wrapped__ = np.arange  # type: ignore[attr-defined]  # its signature, which calls with one argument do not fit


def _range(start: Any, stop: Any, step: Any, dtype: DType) -> Node | None:
    if any(type(x) not in (int, float) and not isinstance(x, (np.integer, np.floating)) for x in (start, stop, step)) or not step:
        return None
    try:
        count = max(ceil((stop - start) / step), 0)
    except (OverflowError, ValueError):
        return None
    if count >= 1 << 62:
        return None
    if dtype.kind in "iu":
        first, second = int(start), int(start + step)
        limits = np.iinfo(dtype)
        last = first + (count - 1) * (second - first)
        if not all(limits.min <= x <= limits.max for x in (first, second, last)):
            return None
        return build.iota(count, first, second - first, dtype) if dtype.kind == "i" or second >= first else None
    if dtype.kind != "f":
        return None
    # NumPy fills in the first two values and continues their difference; float16 does so in float32.
    head = dtype.type(start), dtype.type(start + step)
    loop = FLOAT32 if dtype == FLOAT16 else dtype
    first, second = loop.type(head[0]), loop.type(head[1])
    delta = loop.type(second - first)
    if count > 1 and loop.type(first + delta) != second:
        return None
    return build.cast(build.iota(count, first, delta, loop), dtype)


# Matrices -------------------------------------------------------------------------------------------------------------------


def _triangle(n: int, m: int, k: int, op: o.Op) -> Node:
    """Bool (n, m): ``row + k  op  column``."""
    rows = build.reshape(build.iota(n, k, 1, INT64), (n, 1))
    return build.elementwise(op, BOOL, rows, build.iota(m, 0, 1, INT64))


def eye(
    N: Any,  # noqa: N803
    M: Any = None,  # noqa: N803
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Make a matrix with ones on a diagonal; see :func:`numpy.eye`."""
    place = standard.checked_device(device)
    dtype = np.dtype(dtype)
    if dtype not in NATIVE:
        return fallback.call(np.eye, "eye", (N, M, k, dtype, order), {})
    n, m = addressable(shape_of((N, N if M is None else M)), dtype)
    k = m if k >= m else max(-n, index(k))  # any further is as far
    return _laid_out(build.cast(_triangle(n, m, k, o.EQUAL), dtype), order, place)


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Make an identity matrix; see :func:`numpy.identity`."""
    return eye(n, dtype=float if dtype is None else dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:  # noqa: N803
    """Make a matrix with ones at and below a diagonal; see :func:`numpy.tri`."""
    dtype = np.dtype(dtype)
    sizes = (N, 0 if M is None else M, k)
    if dtype not in NATIVE or not all(hasattr(number, "__index__") and not getattr(number, "shape", ()) for number in sizes):
        return fallback.call(np.tri, "tri", (N, M, k, dtype), {})
    n = max(index(N), 0)
    m = n if M is None else max(index(M), 0)
    return _laid_out(build.cast(_lower_triangle(n, m, index(k)), dtype), None)


def _lower_triangle(n: int, m: int, k: int) -> Node:
    """Bool (n, m): what is at and below a diagonal."""
    if not -INT64_END <= -k < INT64_END - (m > 1):
        raise OverflowError("Python int too large to convert to C long")  # NumPy's columns are numbered from -k on
    return _triangle(n, m, max(-n, min(k, m)), o.GREATER_EQUAL)


def _trimmed(name: str, m: Any, k: Any) -> Any:
    try:
        x = promotion.array_node(m)
        if not hasattr(k, "__index__"):
            raise promotion.Foreign  # between two diagonals
    except promotion.Foreign:
        return fallback.call(getattr(np, name), name, (m,), {"k": k})
    if not x.shape:
        raise TypeError("tri() missing 1 required positional argument: 'N'")
    if len(x.shape) == 1:
        x = build.expand(x, x.shape * 2)
    lower = _lower_triangle(x.shape[-2], x.shape[-1], index(k) if name == "tril" else index(k) - 1)
    zero = build.const(0, x.dtype)
    node = build.elementwise(o.WHERE, x.dtype, lower, *((x, zero) if name == "tril" else (zero, x)))
    if layout.lies_in_c_order(m):
        return wrap(node)
    return wrap_ordered(node, layout.result_order((wrap(lower), m), node.shape))


def tril(m: Any, k: Any = 0) -> Any:
    """Keep what is at and below a diagonal, with zeros above; see :func:`numpy.tril`."""
    return _trimmed("tril", m, k)


def triu(m: Any, k: Any = 0) -> Any:
    """Keep what is at and above a diagonal, with zeros below; see :func:`numpy.triu`."""
    return _trimmed("triu", m, k)


def diag(v: Any, k: Any = 0) -> Any:
    """Take a diagonal, or make the matrix of one; see :func:`numpy.diag`."""
    try:
        x = promotion.array_node(v)
    except promotion.Foreign:
        return fallback.call(np.diag, "diag", (v, k), {})
    k = index(k)
    if len(x.shape) == 2:
        _SQUARE.diagonal(k)
        return viewing.view_diagonal(conversion.asarray(v), k, 0, 1)
    if len(x.shape) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = x.shape[0] + abs(k)
    addressable((n, n), x.dtype)
    rows = build.pad(x, (max(-k, 0),), (n,), build.const(0, x.dtype))
    return wrap(build.elementwise(o.WHERE, x.dtype, _triangle(n, n, k, o.EQUAL), build.reshape(rows, (n, 1)), build.const(0, x.dtype)))


def diagflat(v: Any, k: Any = 0) -> Any:
    """Make the matrix whose diagonal is the flattened input; see :func:`numpy.diagflat`."""
    x = conversion.asarray(v)
    return diag(viewing.view_reshape(x, (-1,)) if type(x) is ndarray else x.reshape(-1), k)


def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """Take a diagonal, as a read-only view; see :func:`numpy.diagonal`."""
    if isinstance(a, np.memmap):
        return np.diagonal(a, offset, axis1, axis2)
    x = conversion.asarray(a)
    if type(x) is not ndarray:
        return fallback.call(np.diagonal, "diagonal", (a, offset, axis1, axis2), {})
    ndim = x.ndim
    if ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = ax.one(axis1, ndim), ax.one(axis2, ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    offset = index(offset)
    _SQUARE.diagonal(offset)
    return viewing.view_diagonal(x, offset, first, second)


_SQUARE = np.empty((1, 1))  # by which NumPy tells what it refuses: an offset is an int of C


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    """Add up a diagonal; see :func:`numpy.trace`."""
    from lazynp.namespace.ufunc.ufuncs import NO_ARRAY, need_array

    need_array(out, NO_ARRAY)
    _SQUARE.trace(offset)
    public = fallback.users()
    return public.sum(public.diagonal(a, offset, axis1, axis2), -1, dtype, out)


# Grids ----------------------------------------------------------------------------------------------------------------------


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Make coordinate arrays; see :func:`numpy.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    try:
        nodes = [promotion.array_node(x) for x in xi]
    except promotion.Foreign:
        return fallback.call(np.meshgrid, "meshgrid", xi, {"copy": copy, "sparse": sparse, "indexing": indexing})
    sizes = [max(_size(node), 0) for node in nodes]
    ndim = len(nodes)
    places = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        places[:2] = [1, 0]
    shape = [1] * ndim
    for place, n in zip(places, sizes, strict=True):
        shape[place] = n
    thin = [tuple([n if k == place else 1 for k in range(ndim)]) for place, n in zip(places, sizes, strict=True)]
    if not copy:
        views = [viewing.view_reshape(shared(x), one) for x, one in zip(xi, thin, strict=True)]
        return tuple(views) if sparse else load("lazynp.namespace.routines.shaping").broadcast_arrays(*views)
    grids = [build.reshape(node, one) for node, one in zip(nodes, thin, strict=True)]
    return tuple([wrap(grid if sparse else build.expand(grid, tuple(shape))) for grid in grids])


def _size(node: Node) -> int:
    size = 1
    for n in node.shape:
        size *= n
    return size


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Make index grids; see :func:`numpy.indices`."""
    dimensions = tuple(dimensions)
    shape = shape_of((len(dimensions), *dimensions))[1:]
    dtype = np.dtype(dtype)
    if dtype not in NATIVE or dtype.kind in "bc":
        return fallback.call(np.indices, "indices", (dimensions, dtype, sparse), {})
    thin = [
        build.reshape(build.cast(build.iota(n, 0, 1, INT64), dtype), tuple([n if k == axis else 1 for k in range(len(shape))]))
        for axis, n in enumerate(shape)
    ]
    if sparse:
        return tuple([wrap(node) for node in thin])
    if not shape:
        return wrap(build.expand(build.const(0, dtype), (0,)))

    addressable((len(shape), *shape), dtype)
    return wrap(build.concat([build.reshape(build.expand(node, shape), (1, *shape)) for node in thin], 0))


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any) -> Any:
    """Call a function with index grids; see :func:`numpy.fromfunction`."""
    return function(*fallback.users().indices(shape, dtype=dtype), **kwargs)


class builtin(staticmethod):
    """A function that is a builtin in NumPy: as an attribute of a class it does not become a method."""

    def __init__(self, function: Any) -> None:
        function.__wrapped__ = getattr(np, function.__name__)  # its signature
        super().__init__(function)
        self.__module__ = "lazynp"

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        ones, full, zeros_like, ones_like, empty_like, full_like, copy, asarray_chkfinite, eye, identity, tri, tril, triu, diag, diagflat,
        diagonal, trace, meshgrid, indices, fromfunction,
    )
} | {
    function.__name__: builtin(function)
    for function in (zeros, empty, array, asarray, asanyarray, ascontiguousarray, asfortranarray, arange)
}  # fmt: skip
