"""Choosing by number, by pieces and by slices; functions applied along axes.

In: arrays, choices, functions of the user's.  Out: WHERE nodes, views, or what the functions give.  Promise: NumPy's dtypes and errors;
values are looked at where NumPy's result depends on them (indices out of range, the zeros to trim) and nowhere else.
"""

from __future__ import annotations

from itertools import product
from operator import setitem
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from lazynp.array import hand
from lazynp.arrays import ndarray, node_of, result, wrap
from lazynp.conversion import asarray, from_numpy
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand
from lazynp.graph.dtypes import BOOL, INT64, NATIVE
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.selecting import nonzero
from lazynp.namespace.routines.types import isscalar
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc import reductions as red
from lazynp.namespace.ufunc.promotion import has_subclass
from lazynp.namespace.ufunc.ufuncs import NO_ARRAY, UFUNCS, need_array, write_out
from lazynp.storage import host
from lazynp.values import config
from lazynp.values.nesting import MOST_AXES
from lazynp.viewing import view_permute

# choose -----------------------------------------------------------------------------------------------------------------------


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Choose values from several arrays, by number; see :func:`numpy.choose`."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    numbers = asarray(a)
    if not len(choices):
        raise ValueError("0-length sequence.")
    if len(choices) >= MOST_AXES:  # as many arrays as NumPy walks at once, the numbers being one of them
        raise ValueError(f"Need at least 0 and at most {MOST_AXES} array objects.")
    given = [choices[k] for k in range(len(choices))] if type(choices) is ndarray else list(choices)
    parts = [asarray(choice) for choice in given]
    if any(type(x) is not ndarray for x in (numbers, *parts)) or has_subclass(a, *given):
        return fallback.call(np.choose, "choose", (a, choices, out, mode), {})
    if not np.can_cast(numbers.dtype, INT64):
        raise TypeError(f"Cannot cast array data from {numbers.dtype!r} to {INT64!r} according to the rule 'safe'")
    dtype = np.result_type(*[choice if type(choice) in (int, float, complex) else x.dtype for choice, x in zip(given, parts, strict=True)])
    shape = np.broadcast_shapes(numbers.shape, *[x.shape for x in parts])
    number = _number(cast(node_of(numbers), INT64), len(parts), mode)
    nodes = [_as(choice, node_of(x), dtype) for choice, x in zip(given, parts, strict=True)]
    found = nodes[-1]
    for k in range(len(nodes) - 2, -1, -1):
        found = elementwise(o.WHERE, dtype, elementwise(o.EQUAL, BOOL, number, const(k, INT64)), nodes[k], found)
    found = expand(found, shape)
    need_array(out, NO_ARRAY)
    if out is None:
        return result(found)
    if out.shape != shape:
        raise TypeError("choose: invalid shape for output array.")
    return write_out(out, found)


def _as(choice: Any, node: Node, dtype: np.dtype[Any]) -> Node:
    # Unlike elsewhere, a Python int that does not fit wraps around.
    return const(np.asarray(choice).astype(dtype)[()], dtype) if type(choice) in (int, float, complex) else cast(node, dtype)


def _number(number: Node, n: int, mode: str) -> Node:
    """Return which of ``n`` choices a number stands for, in range."""
    if mode == "wrap":
        return elementwise(o.REMAINDER, INT64, number, const(n, INT64))
    if mode == "clip":
        return elementwise(o.MINIMUM, INT64, elementwise(o.MAXIMUM, INT64, number, const(0, INT64)), const(n - 1, INT64))
    known = host(wrap(number), "choose")
    if known.size and (known.min() < 0 or known.max() >= n):
        raise ValueError("invalid entry in choice array")
    return number


# Pieces -----------------------------------------------------------------------------------------------------------------------


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Compute another function where another condition holds; see :func:`numpy.piecewise`."""
    xp = fallback.users()
    values = xp.asarray(x)
    if type(values) is not ndarray or has_subclass(x):
        return fallback.call(np.piecewise, "piecewise", (x, condlist, funclist, *args), kw)
    if isscalar(condlist) or (not isinstance(condlist[0], (list, ndarray)) and values.ndim != 0):
        condlist = [condlist]
    conditions = xp.asarray(condlist, BOOL)
    n = len(conditions)
    if n == len(funclist) - 1:
        conditions = xp.concatenate([conditions, ~xp.any(conditions, axis=0, keepdims=True)], axis=0)
    elif n != len(funclist):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    y = xp.zeros_like(values)
    for k, function in enumerate(funclist):
        condition = conditions[k]
        if not callable(function):
            _write(y, condition, function)
            continue
        chosen = values[condition]
        if chosen.size:
            _write(y, condition, function(chosen, *args, **kw))
    return y


def _write(y: ndarray, condition: ndarray, value: Any) -> None:
    """``y[condition] = value``, whose warnings are of the user's line."""
    memory = hand.own_memory(y)
    if memory is None:
        y[condition] = value
    else:
        hand.write(memory, condition, value)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Cut off the zeros around an array; see :func:`numpy.trim_zeros`."""
    values = asarray(filt)
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    if type(values) is not ndarray:
        return fallback.call(np.trim_zeros, "trim_zeros", (filt, trim), {} if axis is None else {"axis": axis})
    axes = ax.reduced(None, values.ndim) if axis is None else ax.several(axis, values.ndim)
    if not axes:
        return filt
    found = [host(positions, "trim_zeros") for positions in nonzero(values)]
    empty = not found[0].size
    key = tuple(
        [
            slice(
                None if "f" not in trim and not empty else 0 if empty else int(found[k].min()),
                None if "b" not in trim and not empty else 0 if empty else int(found[k].max()) + 1,
            )
            if k in axes
            else slice(None)
            for k in range(values.ndim)
        ]
    )
    return filt[key[0]] if len(key) == 1 else filt[key]


def real_if_close(a: Any, tol: Any = 100) -> Any:
    """Take the real part where the imaginary part is next to nothing; see :func:`numpy.real_if_close`."""
    values = a if has_subclass(a) else asarray(a)
    if values.dtype.kind != "c":
        return values
    if tol > 1:
        tol = np.finfo(values.dtype).eps * tol
    return values.real if red.all(UFUNCS["less"](UFUNCS["absolute"](values.imag), tol)) else values


# Functions along axes -----------------------------------------------------------------------------------------------------------


@fallback.library
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function to every one-dimensional slice; see :func:`numpy.apply_along_axis`."""
    values = fallback.users().asarray(arr)
    if type(values) is not ndarray or has_subclass(arr):
        return fallback.call(np.apply_along_axis, "apply_along_axis", (func1d, axis, arr, *args), kwargs)
    ndim = values.ndim
    axis = normalize_axis_index(axis, ndim)
    order: tuple[int, ...] = (*range(axis), *range(axis + 1, ndim), axis)
    memory = hand.own_memory(values)
    rows: Any = view_permute(values, order) if memory is None else memory.transpose(order)
    outer = rows.shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    if memory is None:
        rows.realize()
    # Slice after slice, as NumPy: each result is needed before the next call, and equal slices find their plan in the cache.
    found: np.ndarray[Any, Any] | None = None
    for place in product(*[range(n) for n in outer]):
        at: Any = (*place, ...)
        row = rows[at]
        value = func1d(row if memory is None else hand.cell(row, hand.owner_of(values)), *args, **kwargs)
        value = np.asarray(value) if type(value) in hand.NUMBERS else host(asarray(value), "apply_along_axis")
        if found is None:
            found = np.zeros(outer + value.shape, value.dtype)
        if value.dtype == found.dtype:
            found[at] = value
        else:
            at_once(setitem, found, at, value)
    assert found is not None
    inner = found.ndim - len(outer)
    order = (*range(axis), *range(found.ndim - inner, found.ndim), *range(axis, len(outer)))
    if found.dtype not in NATIVE or found.size <= config.at_hand > 0:
        return hand.result(found.transpose(order))
    return view_permute(from_numpy(found, copy=False), order)


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """Apply a function over one axis after the other; see :func:`numpy.apply_over_axes`."""
    xp = fallback.users()
    values = xp.asarray(a)
    ndim = a.ndim
    for axis in (axes,) if xp.ndim(axes) == 0 else axes:
        if axis < 0:
            axis += ndim
        found = func(values, axis)
        if found.ndim != values.ndim:
            found = xp.expand_dims(found, axis)
            if found.ndim != values.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        values = found
    return values


FUNCTIONS: Final = {
    function.__name__: function for function in (choose, piecewise, trim_zeros, real_if_close, apply_along_axis, apply_over_axes)
}
