"""``reduce``, ``accumulate``, ``reduceat``, ``outer`` and ``at`` of ufuncs.

In: a ufunc of ours and the arguments of one of its methods.  Out: REDUCE and SCAN nodes where the ufunc has an associative operation,
broadcasting for ``outer``, else one item of the schedule that runs NumPy's own method.  Promise: NumPy judges the arguments at the call, on
stand-ins of one element, so dtypes and errors are its own; indices are checked at the call, and a failing one changes nothing.
"""

from __future__ import annotations

import warnings
from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray, node_of, update, wrap
from lazynp.conversion import asarray, from_numpy, loses_a_part, warn_complex
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.build import call
from lazynp.graph.dtypes import NATIVE, DType
from lazynp.graph.node import Node, Shape
from lazynp.namespace import assignment
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc import reductions
from lazynp.namespace.ufunc.promotion import Foreign, array_node, mask_node, overrides
from lazynp.namespace.ufunc.table import REDUCTIONS
from lazynp.protocols import to_host
from lazynp.storage import host

if TYPE_CHECKING:
    from lazynp.namespace.ufunc.ufuncs import ufunc

NoValue: Final[Any] = np._NoValue


def _options(**keywords: Any) -> dict[str, Any]:
    """The keywords that were given."""
    defaults = {"dtype": None, "out": None, "keepdims": False, "initial": NoValue, "where": True}
    return {name: value for name, value in keywords.items() if value is not defaults.get(name, NoValue)}


def _stand_in(shape: Shape, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Make what NumPy is asked with: the rank, the dtype and the emptiness of an array, but at most one element."""
    return np.ones(tuple([1 if n else 0 for n in shape]), dtype)


def _is_pythons(of: ufunc) -> bool:
    """Tell whether a ufunc is a function of Python's, which takes and gives any object."""
    return all(set(loop) == {"O", "-", ">"} for loop in of._numpy.types)


def _asked(of: ufunc, method: str, nodes: list[Node], *args: Any, **options: Any) -> Any:
    """NumPy's answer for stand-ins; its dtype is the result's, its errors are the call's."""
    if _is_pythons(of):
        raise Foreign
    out = options.get("out")
    if out is not None:
        given = out[0] if type(out) is tuple and len(out) == 1 else out
        if isinstance(given, (ndarray, np.ndarray)) and given.dtype.kind == "c":
            raise Foreign  # a loop of real numbers may begin with what is in there, and NumPy warns of the part that it loses
        options["out"] = _stand_in(given.shape, given.dtype) if isinstance(given, (ndarray, np.ndarray)) else given
    with np.errstate(all="ignore"):
        found = getattr(of._numpy, method)(*[_stand_in(node.shape, node.dtype) for node in nodes], *args, **options)
    if found is not None and found.dtype not in NATIVE:
        raise Foreign
    return found


def _library(of: ufunc, method: str, nodes: list[Node], loop: Any, shape: Shape, extra: tuple[str, ...] = (), **static: Any) -> Node:
    """NumPy's method as one item of the schedule; the last nodes are its keywords ``extra``."""
    return call(f"ufunc:{of.__name__}.{method}", (extra, tuple(static.items())), nodes, loop, shape)


def _into(out: Any, dtype: DType, shape: Shape) -> dict[str, Any]:
    """Have a recorded method compute into an array like its output, whose dtype has a say in which loop it is."""
    return {} if out is None or out is Ellipsis else {"out": (dtype, shape)}


def _check_binary(of: ufunc, method: str, *args: Any) -> None:
    """NumPy's error where the ufunc has no such method."""
    if of.nin != 2 or of.nout != 1 or of.signature is not None:
        getattr(of._numpy, method)(np.ones(1), *args)


def reduce(of: ufunc, array: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """``of.reduce(array, ...)``."""
    if of.__name__ in REDUCTIONS and initial is not None:
        return reductions.reduce(of, array, axis, dtype, out, keepdims, initial, where)
    _check_binary(of, "reduce")
    options = _options(axis=axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where)
    try:
        x = array_node(array)
        extra: dict[str, Node] = {}
        asked = dict(options)
        if where is not True:
            extra["where"] = mask_node(where)
            asked["where"] = _stand_in(extra["where"].shape, extra["where"].dtype)
        if initial is not NoValue and initial is not None:
            extra["initial"] = node_of(asarray(initial))
            asked["initial"] = _stand_in(extra["initial"].shape, extra["initial"].dtype)[()]
        found = _asked(of, "reduce", [x], **asked).dtype
    except Foreign:
        return fallback.call(of._numpy.reduce, f"{of.__name__}.reduce", (array,), options)
    axes = ax.reduced(axis, len(x.shape))
    shape = tuple([1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes])
    static: dict[str, Any] = {"axis": axes, "keepdims": bool(keepdims)}
    if dtype is not None:
        static["dtype"] = np.dtype(dtype)
    if initial is None:
        static["initial"] = None
    static |= _into(out, found, shape)
    node = _library(of, "reduce", [x, *extra.values()], found, shape, tuple(extra), **static)
    return reductions.finish(node, out, of.__name__, array, axes, None if where is True else asarray(where))


def accumulate(of: ufunc, array: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """``of.accumulate(array, ...)``."""
    reductions.checked_out(out)
    _check_binary(of, "accumulate")
    try:
        x = array_node(array)
        axis = _single(axis, x, "accumulate")
        if of.__name__ in REDUCTIONS:
            return reductions.accumulate(of, array, axis, dtype, out)
        found = _asked(of, "accumulate", [x], **_options(axis=axis, dtype=dtype, out=out)).dtype
    except Foreign:
        return fallback.call(of._numpy.accumulate, f"{of.__name__}.accumulate", (array,), _options(axis=axis, dtype=dtype, out=out))
    static = ({} if dtype is None else {"dtype": np.dtype(dtype)}) | _into(out, found, x.shape)
    node = _library(of, "accumulate", [x], found, x.shape, axis=axis, **static)
    return reductions.finish(node, out, of.__name__, array)


def _single(axis: Any, x: Node, method: str) -> int:
    """One axis; NumPy takes a tuple of one, and None where there is one."""
    ndim = len(x.shape)
    if axis is None:
        axes = list(range(ndim))
    elif type(axis) is tuple:
        axes = [ax.one(k, ndim, beyond=ValueError) for k in axis]
    else:
        axes = [ax.one(axis, ndim or 1, beyond=ValueError)]
    if not ndim:
        raise TypeError(f"cannot {method} on a scalar")
    if len(axes) != 1:
        raise ValueError(f"{method} does not allow multiple axes")
    return axes[0]


def reduceat(of: ufunc, array: Any, indices: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """``of.reduceat(array, indices, ...)``."""
    reductions.checked_out(out)
    _check_binary(of, "reduceat", [0])
    try:
        x = array_node(array)
        axis = _single(axis, x, "reduceat")
        n = x.shape[axis]
        # A list is converted as a cast would; an array has to have integers.
        at = np.asarray(to_host(indices, "index"), np.intp if isinstance(indices, (list, tuple, int, float)) else None)
        wrong = at.dtype.kind in "iu" and at.ndim == 1 and at.size and (at.min() < 0 or at.max() >= n)
        for k in at[(at < 0) | (at >= n)] if wrong else ():
            raise IndexError(f"index {k} out-of-bounds in {of.__name__}.reduceat [0, {n})")
        asked = np.zeros((1 if at.size and 0 not in x.shape else 0,) * at.ndim, at.dtype if at.size else np.intp)
        found = _asked(of, "reduceat", [x], asked, **_options(axis=axis, dtype=dtype, out=out)).dtype
    except Foreign:
        options = _options(axis=axis, dtype=dtype, out=out)
        return fallback.call(of._numpy.reduceat, f"{of.__name__}.reduceat", (array, indices), options)
    at = at.astype(np.intp, copy=False)
    shape = (*x.shape[:axis], len(at), *x.shape[axis + 1 :])
    static = ({} if dtype is None else {"dtype": np.dtype(dtype)}) | _into(out, found, shape)
    node = devices.gpus.reduceat(of, x, at, axis, found) if devices.gpus is not None else None
    if node is None:
        node = _library(of, "reduceat", [x, node_of(from_numpy(at))], found, shape, axis=axis, **static)
    # The axis itself has no say in the memory order of the result, as one of length one has not.
    source = array[(slice(None),) * axis + (slice(0, 1),)] if type(array) is ndarray else array
    return reductions.finish(node, out, of.__name__, source)


def outer(of: ufunc, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``of.outer(a, b, ...)``."""
    if of.nin != 2 or of.signature is not None or len(args) != 2:
        return of._numpy.outer(*args, **options)  # NumPy's error
    # Python numbers are arrays here, and therefore strong.
    left, right = [asarray(x) if not overrides(x) else x for x in args]
    if type(left) is not ndarray or type(right) is not ndarray:
        return fallback.call(of._numpy.outer, f"{of.__name__}.outer", args, options)
    return of(left[(..., *(None,) * right.ndim)], right, **options)


# at ---------------------------------------------------------------------------------------------------------------------------


def at(of: ufunc, a: Any, indices: Any, values: tuple[Any, ...]) -> None:
    """``of.at(a, indices, *values)``: every occurrence of an index counts."""
    if type(a) is not ndarray:
        getattr(of._numpy, "at")(to_host(a, "ufunc.at"), to_host(indices, "index"), *to_host(values, "ufunc.at"))  # noqa: B009 - mypy thinks it never returns
        return
    if a._readonly:
        raise ValueError("assignment destination is read-only")
    try:
        if _is_pythons(of):
            raise Foreign
        nodes = [array_node(value) for value in values]
        # An empty index: NumPy then checks only loop and operand count.
        nothing = np.zeros(0, np.intp)
        lossy = any(loses_a_part(node.dtype, a.dtype) for node in nodes)
        of._numpy.at(np.ones(1, np.complex128 if lossy else a.dtype), nothing, *[np.ones((), node.dtype) for node in nodes])
    except Foreign:
        fallback.call(of._numpy.at, f"{of.__name__}.at", (a, to_host(indices, "index"), *values), {}, (0,))
        return
    if devices.gpus is not None and not lossy and devices.gpus.at(of, a, indices, nodes):
        return
    key = to_host(indices, "index")
    if not (lossy or (_is_known(a) and all(_exists(node) for node in nodes))):
        chosen = np.broadcast_to(np.False_, a.shape)[key]
        for node in nodes:
            if len(node.shape) > chosen.ndim or any(n not in (1, m) for n, m in zip(node.shape[::-1], chosen.shape[::-1], strict=False)):
                raise ValueError("array is not broadcastable to correct shape")
        described, arrays = _described(key)
        if described is not None:
            sources = [*[node_of(from_numpy(array)) for array in arrays], *nodes]
            if update(a, lambda old: call(f"ufunc:{of.__name__}.at", described, [old, *sources], old.dtype, old.shape)):
                return
    # Memory that only this array shows takes this and the calls that follow, and is not copied for each.
    values = tuple([host(wrap(node), "ufunc.at") for node in nodes])
    with core.writing(a):
        memory = assignment.memory(a, f"{of.__name__}.at")
        if not lossy:
            of._numpy.at(memory, key, *values)
            return
        warn_complex()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # NumPy's own names a line of ours
            of._numpy.at(memory, key, *values)


def _exists(node: Node) -> bool:
    return node.buffer is not None or node.op is o.CONST


def _is_known(x: ndarray) -> bool:
    """Tell whether the memory behind an array exists (a draft, or a value that was computed)."""
    root = x._base if type(x._base) is ndarray else x
    held, node = root._base, root._node  # with nothing in between
    return held is not None or _exists(node.src[0] if node.op is o.EXPAND else node)


def _described(key: Any) -> tuple[tuple[Any, ...] | None, list[np.ndarray[Any, Any]]]:
    """A key as hashable parameters of a CALL and the arrays in it; no parameters for kinds of keys that are seldom."""
    parts: list[Any] = []
    arrays: list[np.ndarray[Any, Any]] = []
    for part in key if type(key) is tuple else (key,):
        if part is Ellipsis or part is None:
            parts.append(part)
        elif type(part) is slice:
            parts.append(("slice", part.start, part.stop, part.step))
        elif type(part) is int or isinstance(part, np.integer):
            parts.append(index(part))
        elif isinstance(part, (list, np.ndarray)):
            array = np.asarray(part)
            if not array.size:
                array = array.astype(np.intp)
            if array.dtype not in NATIVE:
                return None, []
            arrays.append(array)
            parts.append("array")
        else:
            return None, []
    return (tuple(parts) if type(key) is tuple else parts[0],), arrays
