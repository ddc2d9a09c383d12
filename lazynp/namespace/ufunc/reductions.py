"""Reductions and running reductions.

In: arrays, axes and the keywords of NumPy's reductions.  Out: REDUCE and SCAN nodes.  Promise: NumPy's accumulation dtypes, its
errors for empty reductions, its rules for ``initial`` and ``where``; a 0-d result is a scalar.
"""

from __future__ import annotations

import functools
from builtins import all as all_
from collections.abc import Callable
from math import prod as product
from operator import index
from types import FunctionType
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, result, wrap, wrap_ordered
from lazynp.conversion import asarray, converted, loses_a_part
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, reshape
from lazynp.graph.dtypes import BOOL, INT64, NATIVE, DType
from lazynp.graph.node import Node
from lazynp.graph.op import Op
from lazynp.layout import copy_order, lies_in_c_order, reduction_order
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.loops import truth
from lazynp.namespace.ufunc.promotion import Foreign, array_node, broadcast, mask_node, operand, overrides
from lazynp.namespace.ufunc.table import ON_BOOL, REDUCTIONS
from lazynp.namespace.ufunc.ufuncs import NO_ARRAY, PER_OPERAND, UFUNCS, need_array, ufunc, write_out
from lazynp.scalars import is_scalar
from lazynp.storage import host, stand_in

NoValue: Final[Any] = np._NoValue

_accumulation: dict[tuple[str, DType], DType] = {}


def accumulation_dtype(name: str, dtype: DType) -> DType:
    """The dtype in which NumPy reduces values of ``dtype``; sums and products of small integers are done in int64 or uint64."""
    found = _accumulation.get((name, dtype))
    if found is None:
        found = getattr(np, name).resolve_dtypes((None, dtype, None), reduction=True)[0]
        _accumulation[name, dtype] = found
    return found


def identity(op: Op, dtype: DType) -> Node:
    """The identity of a combining operation as a constant."""
    return const(op.identity(dtype), dtype)


def laid_out(node: Node, source: Any, axes: tuple[int, ...] = (), mask: Any = None) -> Any:
    """A value made by reducing ``axes`` of ``source``, where ``mask`` is true, in the memory order that NumPy gives it."""
    if len(node.shape) < 2:
        return result(node)
    order = reduction_order(source, axes, len(node.shape), mask)
    return wrap(node) if order is None else wrap_ordered(node, order)


def laid_like(node: Node, source: Any) -> Any:
    """A value in the memory order of a copy of ``source``, which has its shape."""
    order = copy_order(source, "K") if type(source) is ndarray else None
    return wrap(node) if order is None else wrap_ordered(node, order)


def finish(node: Node, out: Any, name: str, source: Any = None, axes: tuple[int, ...] = (), mask: Any = None) -> Any:
    """A reduction's value as the caller gets it; ``source``, its reduced ``axes`` and the ``mask`` decide the memory order."""
    if out is None:
        return laid_out(node, source, axes, mask)
    if out is Ellipsis:
        return wrap(node) if not node.shape else laid_out(node, source, axes, mask)
    if isinstance(out, tuple):
        (out,) = out
    need_array(out)
    if len(out.shape) != len(node.shape):
        raise ValueError(
            f"output parameter for reduction operation {name} has the wrong number of dimensions: "
            f"Found {len(out.shape)} but expected {len(node.shape)}"
        )
    if out.shape != node.shape:
        shapes = [str(shape).replace(" ", "") for shape in (out.shape, node.shape)]
        raise ValueError(f"non-broadcastable output operand with shape {shapes[0]} doesn't match the broadcast shape {shapes[1]}")
    return write_out(out, node)


def is_negative_zero(node: Node) -> bool:
    """Tell whether a node is known to be -0.0 (in one part, where it is complex)."""
    value = node.arg if node.op is o.CONST else None
    return value is not None and value == 0 and node.dtype.kind in "fc" and bool(np.signbit(value.real) or np.signbit(value.imag))


def checked_out(out: Any) -> None:
    """Refuse what cannot be written to."""
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError("The 'out' tuple must have exactly one entry")
        (out,) = out
        if out is Ellipsis:
            raise TypeError(PER_OPERAND)
    if out is not Ellipsis:
        need_array(out)


def combined(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """REDUCE as NumPy means it also where there is nothing to reduce: a sum starts from zero, which makes -0.0 a 0.0."""
    if not axes and op is o.ADD and x.dtype.kind in "fc":
        return elementwise(o.ADD, x.dtype, const(0, x.dtype), x)
    return build.reduce(op, x, axes)


def reduce_node(name: str, x: Node, axes: tuple[int, ...], dtype: DType | None = None, keepdims: bool = False) -> Node:
    """REDUCE by a ufunc of ``REDUCTIONS``, in NumPy's accumulation dtype or the given one."""
    op, on_truth = REDUCTIONS[name]
    shape = x.shape
    if on_truth:
        x = truth(x)
    else:
        x = cast(x, dtype or accumulation_dtype(name, x.dtype))
        if x.dtype == BOOL:
            op = ON_BOOL.get(op, op)
    if op is o.MULTIPLY and x.dtype.kind == "c" and all_(shape[k] == 1 for k in axes):
        # NumPy multiplies by the identity 1+0j, which makes inf+0j a NaN.
        x = elementwise(o.MULTIPLY, x.dtype, const(1, x.dtype), x)
        x.err = x.err.named("reduce")
        return x if keepdims else reshape(x, tuple([n for k, n in enumerate(shape) if k not in axes]))
    reduced = combined(op, x, axes)
    return ax.kept(reduced, shape, axes) if keepdims else reduced


def at_the_call(place: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a reduction of memory that is lent, its argument at ``place``, compute before it returns: it needs no copy of that, then."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            lent = stand_in(args[place]) if len(args) > place else None
            if lent is None:
                return function(*args, **kwargs)
            found = function(*args[:place], lent, *args[place + 1 :], **kwargs)
            if type(found) is ndarray:
                if np.may_share_memory(host(found, "shared memory"), host(lent)):  # nothing was reduced
                    return function(*args, **kwargs)
            elif is_scalar(found):
                found.concrete("shared memory")
            return found

        return call

    return wrapped


@at_the_call(1)
def reduce(
    of: ufunc,
    array: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: bool,
    initial: Any = NoValue,
    where: Any = True,
    function: str | None = None,
) -> Any:
    """``of.reduce(array, ...)``, for the namespace's function of that name if there is one."""
    name = of.__name__
    if type(array) is ndarray and dtype is None and out is None and initial is NoValue and where is True:
        # What nearly every call is.
        x = node_of(array)
        shape = x.shape
        axes = ax.reduced(axis, len(shape))
        if 0 not in shape or of.identity is not None:
            return laid_out(reduce_node(name, x, axes, None, keepdims), array, axes)
    checked_out(out)
    mask = None if where is True else asarray(where)
    try:
        node, axes = _reduced(of, array, axis, dtype, out, keepdims, initial, where)
    except Foreign:
        given = {key: value for key, value in {"dtype": dtype, "out": out, "keepdims": keepdims or None}.items() if value is not None}
        given |= {key: value for key, value in {"initial": initial, "where": where}.items() if value is not NoValue and value is not True}
        if function is not None:  # NumPy's has a dtype of its own (of truth), and asks another library's array for its method
            return fallback.call(getattr(np, function), function, (array, axis), given)
        return fallback.call(getattr(np, name).reduce, f"{name}.reduce", (array, axis), given)
    return finish(node, out, name, array, axes, mask)


def _reduced(
    of: ufunc, array: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> tuple[Node, tuple[int, ...]]:
    name = of.__name__
    op, on_truth = REDUCTIONS[name]
    # NumPy's: its max and min have none, not even on bools, where they are logical operations.
    neutral_exists = of.identity is not None
    x = array_node(array)
    shape = x.shape
    axes = ax.reduced(axis, len(shape))
    loop = reduction_loop(name, x.dtype, dtype, out)
    place = out[0] if type(out) is tuple else out
    if isinstance(place, (ndarray, np.ndarray)) and loses_a_part(place.dtype, loop):
        raise Foreign  # NumPy reads what is in there, and warns of the part that it loses
    x = truth(x) if on_truth else converted(x, loop)
    if x.dtype == BOOL:
        op = ON_BOOL.get(op, op)
    first = None
    if initial is not NoValue:
        first, _ = operand(initial)
        first = truth(node_of(asarray(initial))) if on_truth else converted(first, loop) if first else const(initial, loop)
        if first.shape or (op is o.ADD and is_negative_zero(first)):  # our sums start from +0
            raise Foreign
    if where is not True:
        mask = mask_node(where)
        if len(mask.shape) > len(shape):
            raise ValueError("input operand has more dimensions than allowed by the axis remapping")
        both = broadcast(shape, mask.shape)
        if both != shape:
            raise ValueError(f"non-broadcastable operand with shape {shape} doesn't match the broadcast shape {both}")
        if neutral_exists:
            neutral = identity(op, x.dtype)
        elif first is not None:
            neutral = first
        else:
            raise ValueError(f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'")
        x = elementwise(o.WHERE, x.dtype, mask, x, neutral)
    if not neutral_exists and first is None and 0 in [shape[k] for k in axes]:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if not neutral_exists and first is not None and 0 in [shape[k] for k in axes]:
        node = expand(first, tuple([n for k, n in enumerate(shape) if k not in axes]))
    else:
        node = combined(op, x, axes)
        if first is not None:
            node = elementwise(op, node.dtype, first, node)
    return ax.kept(node, shape, axes) if keepdims else node, axes


def reduction_loop(name: str, given: DType, dtype: Any, out: Any) -> DType:
    """The dtype of NumPy's loop for values of a dtype; an output has a say where no ``dtype`` is given."""
    if isinstance(out, tuple):
        (out,) = out
    if dtype is not None:
        dtype = np.dtype(dtype)
        if dtype not in NATIVE:
            raise Foreign
        found = getattr(np, name).resolve_dtypes((None, given, None), signature=(dtype, None, None), reduction=True, casting="unsafe")[0]
    elif out is not None and out is not Ellipsis:
        found = getattr(np, name).resolve_dtypes((out.dtype, given, None), reduction=True, casting="unsafe")[0]
    else:
        found = accumulation_dtype(name, given)
    if found not in NATIVE:
        raise Foreign
    return found


def accumulate(of: ufunc, array: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """``of.accumulate(array, ...)``."""
    name = of.__name__
    checked_out(out)
    try:
        x = array_node(array)
        op, on_truth = REDUCTIONS[name]
        loop = reduction_loop(name, x.dtype, dtype, out)
    except Foreign:
        return fallback.call(getattr(np, name).accumulate, f"{name}.accumulate", (array,), {"axis": axis, "dtype": dtype, "out": out})
    if not x.shape:
        raise TypeError("cannot accumulate on a scalar")
    x = truth(x) if on_truth else converted(x, loop)
    if x.dtype == BOOL:
        op = ON_BOOL.get(op, op)
    return finish(build.scan(op, x, ax.one(axis, len(x.shape), beyond=ValueError)), out, name, array)


# The functions of the namespace -----------------------------------------------------------------------------------------


def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    """Add up the elements over axes; see :func:`numpy.sum`."""
    return reduce(UFUNCS["add"], a, axis, dtype, out, ax.keeps(keepdims), initial, _mask(where), "sum")


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue
) -> Any:
    """Multiply the elements over axes; see :func:`numpy.prod`."""
    return reduce(UFUNCS["multiply"], a, axis, dtype, out, ax.keeps(keepdims), initial, _mask(where), "prod")


def max(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue) -> Any:
    """Compute the largest value over axes, NaN if there is one; see :func:`numpy.max`."""
    return reduce(UFUNCS["maximum"], a, axis, None, out, ax.keeps(keepdims), initial, _mask(where), "max")


def min(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, initial: Any = NoValue, where: Any = NoValue) -> Any:
    """Compute the smallest value over axes, NaN if there is one; see :func:`numpy.min`."""
    return reduce(UFUNCS["minimum"], a, axis, None, out, ax.keeps(keepdims), initial, _mask(where), "min")


def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue) -> Any:
    """Tell whether something is true along axes; see :func:`numpy.any`."""
    return reduce(UFUNCS["logical_or"], a, axis, None, out, ax.keeps(keepdims), NoValue, _mask(where), "any")


def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue, *, where: Any = NoValue) -> Any:
    """Tell whether everything is true along axes; see :func:`numpy.all`."""
    return reduce(UFUNCS["logical_and"], a, axis, None, out, ax.keeps(keepdims), NoValue, _mask(where), "all")


def named(function: Any, name: str) -> Any:
    """Copy a function: of some NumPy has another under an older name, and a table of functions tells the two."""
    copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__kwdefaults__, copy.__doc__ = function.__kwdefaults__, function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


def _mask(where: Any) -> Any:
    return True if where is NoValue else where


def _flat_or_axis(x: Node, axis: Any) -> tuple[Node, int]:
    if axis is None:
        return reshape(x, (product(x.shape),)), 0
    if not x.shape and index(axis) in (0, -1):
        return reshape(x, (1,)), 0
    return x, ax.one(axis, len(x.shape), beyond=ValueError)


def _cumulative(of: ufunc, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    name = of.__name__
    need_array(out, NO_ARRAY)
    try:
        x, axis = _flat_or_axis(array_node(a), axis)
        loop = reduction_loop(name, x.dtype, dtype, out)
    except Foreign:
        function = {"add": "cumsum", "multiply": "cumprod"}[name]
        return fallback.call(getattr(np, function), function, (a,), {"axis": axis, "dtype": dtype, "out": out})
    op = REDUCTIONS[name][0]
    x = converted(x, loop)
    return finish(build.scan(ON_BOOL.get(op, op) if x.dtype == BOOL else op, x, axis), out, name, a)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute the running sum; see :func:`numpy.cumsum`."""
    return _cumulative(UFUNCS["add"], a, axis, dtype, out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute the running product; see :func:`numpy.cumprod`."""
    return _cumulative(UFUNCS["multiply"], a, axis, dtype, out)


def _cumulative_standard(of: ufunc, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> Any:
    name = {"add": "sum", "multiply": "prod"}[of.__name__]
    try:
        node = array_node(x)
    except Foreign:
        options = {"axis": axis, "dtype": dtype, "out": out, "include_initial": include_initial}
        return fallback.call(getattr(np, f"cumulative_{name}"), f"cumulative_{name}", (x,), options)
    if axis is None:
        if len(node.shape) >= 2:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    if not include_initial:
        return _cumulative(of, x, axis, dtype, out)
    node, axis = _flat_or_axis(node, axis)
    running = node_of(_cumulative(of, wrap(node), axis, dtype, None))
    first = list(node.shape)
    first[axis] = 1
    initial = expand(identity(REDUCTIONS[of.__name__][0], running.dtype), tuple(first))
    return finish(build.concat([initial, running], axis), out, of.__name__)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
    """Compute the running sum as the array API standard has it; see :func:`numpy.cumulative_sum`."""
    return _cumulative_standard(UFUNCS["add"], x, axis, dtype, out, include_initial)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
    """Compute the running product as the array API standard has it; see :func:`numpy.cumulative_prod`."""
    return _cumulative_standard(UFUNCS["multiply"], x, axis, dtype, out, include_initial)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NoValue) -> Any:
    """Compute the largest minus the smallest value; see :func:`numpy.ptp`."""
    if overrides(a):
        given = {"out": out, "keepdims": keepdims}
        options = {key: value for key, value in given.items() if value is not None and value is not NoValue}
        return fallback.call(np.ptp, "ptp", (a, axis), options)
    high, low = max(a, axis, out, keepdims=keepdims), min(a, axis, keepdims=keepdims)
    return UFUNCS["subtract"](high, low) if out is None else UFUNCS["subtract"](high, low, out=out)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Count the values that are not zero; see :func:`numpy.count_nonzero`."""
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.count_nonzero, "count_nonzero", (a,), {"axis": axis, "keepdims": keepdims})
    axes = ax.reduced(axis, len(x.shape))
    if x.dtype != BOOL and not lies_in_c_order(a):
        a = laid_like(truth(x), a)  # NumPy counts a copy, whose broadcast axes lie elsewhere
    return laid_out(reduce_node("add", cast(truth(x), INT64), axes, INT64, keepdims is not None and ax.keeps(keepdims)), a, axes)


def _flag(keepdims: Any) -> bool:
    """Read a ``keepdims`` argument of what finds positions, which takes any object for true or false."""
    return keepdims is not NoValue and bool(keepdims)


def _position(a: Any, axis: Any, out: Any, keepdims: Any, name: str) -> Any:
    """Index of the first extreme value; the first NaN counts as extreme."""
    try:
        x = array_node(a)
    except Foreign:
        options = {"axis": axis, "out": out, "keepdims": _flag(keepdims)}
        return fallback.call(getattr(np, name), name, (a,), options)
    ndim = len(x.shape)
    flat, along = _flat_or_axis(x, axis)
    n = flat.shape[along]
    if n == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    extreme = reduce_node("maximum" if name == "argmax" else "minimum", flat, (along,), flat.dtype, True)
    found = elementwise(o.EQUAL, BOOL, flat, extreme)
    if flat.dtype.kind in "fc":
        found = elementwise(o.BITWISE_OR, BOOL, found, elementwise(o.NOT_EQUAL, BOOL, flat, flat))
    positions = reshape(build.iota(n, 0, 1, INT64), (n,) + (1,) * (len(flat.shape) - along - 1))
    candidates = elementwise(o.WHERE, INT64, found, positions, const(n, INT64))
    node = build.reduce(o.MINIMUM, candidates, (along,))
    if _flag(keepdims):
        node = reshape(node, (1,) * ndim if axis is None else tuple([1 if k == along else m for k, m in enumerate(x.shape)]))
    need_array(out, NO_ARRAY)
    if out is not None:
        if out.shape != node.shape:
            raise ValueError(f"output array does not match result of np.{name}.")
        if not np.can_cast(out.dtype, INT64):  # NumPy has the output as integers, and writes them back
            raise TypeError(f"Cannot cast array data from {out.dtype!r} to {INT64!r} according to the rule 'safe'")
    return finish(node, out, name)


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Any:
    """Find the index of the largest value; see :func:`numpy.argmax`."""
    return _position(a, axis, out, keepdims, "argmax")


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NoValue) -> Any:
    """Find the index of the smallest value; see :func:`numpy.argmin`."""
    return _position(a, axis, out, keepdims, "argmin")


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        sum, prod, max, min, any, all, cumsum, cumprod, cumulative_sum, cumulative_prod, ptp, count_nonzero, argmax, argmin,
    )
} | {"amax": named(max, "amax"), "amin": named(min, "amin")}  # fmt: skip
