"""Evenly spaced values between limits, on a linear or a logarithmic scale.

In: limits, which may be arrays.  Out: arrays computed from one range.  Promise: NumPy's dtypes and its order of operations, so that the
ends are met as NumPy meets them.
"""

from __future__ import annotations

from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.conversion import asarray, converted
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.build import call, cast, const, elementwise, expand, iota, reshape
from lazynp.graph.dtypes import BOOL, FLOAT64, INT64, NATIVE
from lazynp.graph.node import Node
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.creation import _number
from lazynp.namespace.routines.shaping import expand_dims, moveaxis
from lazynp.namespace.standard import checked_device
from lazynp.namespace.ufunc.promotion import has_subclass
from lazynp.namespace.ufunc.reductions import any as any_
from lazynp.namespace.ufunc.ufuncs import UFUNCS

_NUMBERS: Final = frozenset({int, float, np.float64, np.float32, np.int64})


def _kind(x: Any) -> Any:
    """A limit in NumPy's question which dtype a range has: Python's numbers that dtypes of ours hold stay as they are, and weak."""
    return x if type(x) in (float, complex) or (type(x) is int and -(2**63) <= x < 2**64) else asarray(x).dtype


def _placed(node: Node, position: int, value: Any) -> Node:
    """A range with a limit as it was given at one position of the first axis."""
    there = elementwise(o.EQUAL, BOOL, iota(node.shape[0], 0, 1, INT64), const(position, INT64))
    given = expand(cast(node_of(asarray(value)), node.dtype), node.shape)
    return elementwise(o.WHERE, node.dtype, reshape(there, node.shape[:1] + (1,) * (len(node.shape) - 1)), given, node)


MOST: Final = 1 << 58  # numbers: more are no array


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """Make an array of evenly spaced values between two limits; see :func:`numpy.linspace`."""
    place = checked_device(device)
    count = index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if count > MOST:
        np.linspace(0.0, 1.0, count)  # it says why there is none
    loop = np.result_type(_kind(start), _kind(stop), 0.0)
    final = loop if dtype is None else np.dtype(dtype)
    if loop not in NATIVE or final not in NATIVE or has_subclass(start, stop):
        options = {"endpoint": endpoint, "retstep": retstep, "dtype": dtype, "axis": axis}
        return fallback.call(np.linspace, "linspace", (start, stop, num), options)
    first, last = _number(start), _number(stop)
    if np.ndim(first) or np.ndim(last):
        first, last = asarray(start), asarray(stop)
    parts = count - 1 if endpoint else count
    delta = (UFUNCS["subtract"] if type(first) is ndarray else np.subtract)(last, first, dtype=loop)
    ndim = delta.ndim
    steps: Any = wrap(reshape(cast(iota(count, 0, 1, INT64), loop), (count,) + (1,) * ndim))
    step: Any = np.nan
    multiply = UFUNCS["multiply"]
    if parts > 0:
        step = delta / parts
        # NumPy divides first where a step is too small to be anything but zero.
        vanishing = step == 0 if not ndim else bool(any_(UFUNCS["equal"](step, 0)))
        y = multiply(UFUNCS["divide"](steps, parts), delta) if vanishing else multiply(steps, step)
    else:
        y = multiply(steps, delta)
    node = cast(node_of(UFUNCS["add"](y, first)), y.dtype)
    if endpoint and count > 1:
        node = _placed(node, count - 1, last)
    if final.kind in "iu":
        node = elementwise(o.FLOOR, node.dtype, node)
    made = wrap(devices.pinned(converted(node, final), place))
    if axis != 0:
        made = moveaxis(made, 0, axis)
    return (made, fallback.ours(step)) if retstep else made


@fallback.library
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0) -> Any:
    """Make an array of powers of a base with evenly spaced exponents; see :func:`numpy.logspace`."""
    if not isinstance(base, (float, int)) and np.ndim(base):
        parts: list[Any] = [asarray(x) for x in (start, stop, base)]
        ndim = len(np.broadcast_shapes(*[x.shape for x in parts]))
        start, stop, base = [x.reshape((1,) * (ndim - x.ndim) + x.shape) for x in parts]
        base = expand_dims(base, axis)
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    made: Any
    if devices.gpus is None and all(type(x) in (int, float) for x in (start, stop, base)):
        # Powers of ten that are whole numbers are exact by NumPy's loop; kernels round in another way.
        powers = call("ufunc:power", (), (const(float(base), FLOAT64), node_of(exponents)), FLOAT64, exponents.shape)
        made = wrap(powers)
    else:
        made = UFUNCS["power"](base, exponents)
    return made if dtype is None else made.astype(dtype, copy=False)


@fallback.library
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: Any = 0) -> Any:
    """Make an array of values in geometric progression; see :func:`numpy.geomspace`."""
    numbers = devices.gpus is None and type(start) in _NUMBERS and type(stop) in _NUMBERS
    made_of: Any = np.asarray if numbers else asarray
    first, last = made_of(start), made_of(stop)
    if not numbers and (type(first) is not ndarray or type(last) is not ndarray or has_subclass(start, stop)):
        return fallback.call(np.geomspace, "geomspace", (start, stop, num, endpoint, dtype, axis), {})
    ufuncs = vars(np) if numbers else UFUNCS
    equal = ufuncs["equal"]
    if any_(equal(first, 0)) or any_(equal(last, 0)):
        raise ValueError("Geometric sequence cannot include zero")
    loop = np.result_type(first.dtype, last.dtype, float(num), np.zeros((), dtype))
    first, last = made_of(first, loop), made_of(last, loop)
    sign = ufuncs["sign"](first)
    first, last = ufuncs["divide"](first, sign), ufuncs["divide"](last, sign)
    ends = [ufuncs["log10"](end) for end in (first, last)]
    if numbers and loop == FLOAT64:
        ends = [float(end) for end in ends]
    node = node_of(logspace(*ends, num, endpoint, 10.0, loop))
    count = node.shape[0]
    if count > 0:
        node = _placed(node, 0, first)
        if count > 1 and endpoint:
            node = _placed(node, count - 1, last)
    made: Any = UFUNCS["multiply"](wrap(node), sign)
    if axis != 0:
        made = moveaxis(made, 0, axis)
    return made.astype(loop if dtype is None else dtype, copy=False)


FUNCTIONS: Final = {function.__name__: function for function in (linspace, logspace, geomspace)}
