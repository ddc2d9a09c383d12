"""Making nodes: one function per operation, which fills in the shape and leaves out what changes nothing.

In: nodes whose dtypes already fit (conversions are explicit).  Out: a new node, or an old one where the operation is a no-op.
Promise: arguments were checked by the front end; nothing here raises on a user's mistake, and nothing here computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from lazynp.graph import op as o
from lazynp.graph.errstate import QUIET
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node, Shape, Site, caller
from lazynp.graph.op import Kind, Op
from lazynp.values.buffer import Buffer
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp.values import pressure
else:
    (pressure,) = late("values.pressure")

Axis = tuple[int, int]  # (start, step) of one sliced axis

# The OUTPUT nodes of each pending CALL.  Once its value exists a CALL forgets how it was made, so a run that computes it computes these.
outputs: WeakKeyDictionary[Node, WeakSet[Node]] = WeakKeyDictionary()


def buffer(array: np.ndarray[Any, Any]) -> Node:
    """A leaf for a C-contiguous NumPy array that no other code will write to; a large one is the user's line's."""
    return leaf(Buffer(array), caller() if array.nbytes >= pressure.COUNTED_FROM else None)


def leaf(value: Buffer, site: Site | None = None) -> Node:
    """A value that exists."""
    node = Node(o.BUFFER, (), None, value.dtype, value.shape, site)
    node.buffer = value
    if value.nbytes >= pressure.COUNTED_FROM:
        pressure.hold(value)
    return node


def const(value: Any, dtype: np.dtype[Any]) -> Node:
    """A 0-d constant; the value is converted as ``numpy.asarray(value, dtype)`` would."""
    if type(value) is not dtype.type:
        value = at_once(np.asarray, value, dtype)[()]
    return Node(o.CONST, (), value, dtype, ())


def iota(count: int, start: Any, step: Any, dtype: np.dtype[Any]) -> Node:
    """``start + i*step`` for i < count, in ``dtype``."""
    node = Node(o.IOTA, (), (dtype.type(start), dtype.type(step)), dtype, (count,), caller())
    node.err = QUIET  # as numpy.arange is
    return node


def broadcast_shape(*shapes: Shape) -> Shape:
    """The common shape; raises NumPy's ``ValueError`` where there is none."""
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            break
    else:
        return first
    return np.broadcast_shapes(*shapes)


def elementwise(op: Op, dtype: np.dtype[Any], *src: Node, site: Site | None = None) -> Node:
    """An elementwise operation; sources broadcast, and have the dtypes its loop wants."""
    return Node(op, src, None, dtype, broadcast_shape(*[s.shape for s in src]), site or caller())


def cast(x: Node, dtype: np.dtype[Any]) -> Node:
    if x.dtype == dtype:
        return x
    if x.op is o.CONST:
        # Of a complex number its real part, without NumPy's ComplexWarning, which belongs to the call.
        value = x.arg.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x.arg
        return Node(o.CONST, (), at_once(value.astype, dtype), dtype, ())
    return Node(o.CAST, (x,), None, dtype, x.shape, caller())


def bitcast(x: Node, dtype: np.dtype[Any]) -> Node:
    if x.dtype == dtype:
        return x
    return Node(o.BITCAST, (x,), None, dtype, x.shape, caller())


# Another thread may publish a node while it is looked at: it then has no argument and no sources.  ``publish`` changes the operation first,
# so a thread that reads that last knows that what was read before belongs to it.


def is_filled(x: Node) -> bool:
    """One value everywhere: any view of it is the same value in another shape."""
    sources = x.src
    return x.op is o.EXPAND and not sources[0].shape


def reshape(x: Node, shape: Shape) -> Node:
    if x.shape == shape:
        return x
    if is_filled(x):
        return expand(x, shape)
    sources = x.src
    while x.op is o.RESHAPE:
        x = sources[0]
        sources = x.src
    if x.shape == shape:
        return x
    return Node(o.RESHAPE, (x,), None, x.dtype, shape, x.site)


def permute(x: Node, axes: tuple[int, ...]) -> Node:
    sources, inner = x.src, x.arg
    if x.op is o.PERMUTE:
        axes = tuple([inner[a] for a in axes])
        x = sources[0]
    if axes == tuple(range(len(axes))):
        return x
    if is_filled(x):
        return expand(x, tuple([x.shape[a] for a in axes]))
    return Node(o.PERMUTE, (x,), axes, x.dtype, tuple([x.shape[a] for a in axes]), x.site)


def expand(x: Node, shape: Shape) -> Node:
    if x.shape == shape:
        return x
    sources = x.src
    if x.op is o.EXPAND:
        x = sources[0]
    return Node(o.EXPAND, (x,), None, x.dtype, shape, x.site or caller())


def slice_(x: Node, axes: Sequence[Axis], shape: Shape) -> Node:
    """Elements ``start + k*step`` for k < shape[axis] of every axis; all of them exist."""
    if x.shape == shape and all(start == 0 and (step == 1 or n <= 1) for (start, step), n in zip(axes, shape, strict=True)):
        return x
    if is_filled(x):
        return expand(x, shape)
    sources, first = x.src, x.arg
    if x.op is o.SLICE:
        axes = [(s0 + s1 * d0, d0 * d1) for (s0, d0), (s1, d1) in zip(first, axes, strict=True)]
        x = sources[0]
    # Along an axis of length one any step is the same.
    region = tuple([(start, step) if n > 1 else (start, 1) for (start, step), n in zip(axes, shape, strict=True)])
    return Node(o.SLICE, (x,), region, x.dtype, shape, x.site)


def pad(x: Node, before: Shape, shape: Shape, fill: Node) -> Node:
    if x.shape == shape:
        return x
    return Node(o.PAD, (x, fill), before, x.dtype, shape, caller())


def reduce(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """Combine over ``axes`` (increasing); ``keepdims`` is a reshape around this."""
    if not axes:
        return x
    steps = x.arg
    if op is o.ADD and x.op is o.IOTA and x.dtype.kind in "iu":
        # The sum of a range is known: nothing has to run.
        start, step = int(steps[0]), int(steps[1])
        n = x.shape[0]
        total = n * start + step * (n * (n - 1) // 2)
        bits = x.dtype.itemsize * 8
        total &= (1 << bits) - 1
        if x.dtype.kind == "i" and total >> (bits - 1):
            total -= 1 << bits
        return const(total, x.dtype)
    shape = tuple([n for axis, n in enumerate(x.shape) if axis not in axes])
    return Node(o.REDUCE, (x,), (op, axes), x.dtype, shape, caller())


def scan(op: Op, x: Node, axis: int) -> Node:
    return Node(o.SCAN, (x,), (op, axis), x.dtype, x.shape, caller())


def gather(x: Node, *indices: Node) -> Node:
    """``x[i0, i1, ...]``: the indices are int64 and of one shape, and stand for x's first axes."""
    return Node(o.GATHER, (x, *indices), None, x.dtype, indices[0].shape + x.shape[len(indices) :], caller())


def store(base: Node, axes: Sequence[Axis], value: Node) -> Node:
    """``base`` with the region (start, step) x value.shape replaced by ``value``."""
    if value.shape == base.shape and all(start == 0 and (step == 1 or n <= 1) for (start, step), n in zip(axes, base.shape, strict=True)):
        return value
    return Node(o.STORE, (base, value), tuple(axes), base.dtype, base.shape, caller())


def concat(parts: Sequence[Node], axis: int) -> Node:
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return Node(o.CONCAT, tuple(parts), axis, parts[0].dtype, tuple(shape), caller())


def call(name: str, params: tuple[Any, ...], src: Sequence[Node], dtype: np.dtype[Any], shape: Shape) -> Node:
    """A library function (``lazynp.backends.*.library`` says which); its only or first output."""
    return Node(o.CALL, tuple(src), (name, params), dtype, shape, caller())


def output(of: Node, k: int, dtype: np.dtype[Any], shape: Shape) -> Node:
    """The k-th output (k >= 1) of a CALL."""
    node = Node(o.OUTPUT, (of,), k, dtype, shape, of.site)
    siblings = outputs.get(of)
    if siblings is None:
        siblings = outputs[of] = WeakSet()
    siblings.add(node)
    return node


def contiguous(x: Node) -> Node:
    if x.op is o.BUFFER or x.op is o.CONTIGUOUS:
        return x
    return Node(o.CONTIGUOUS, (x,), None, x.dtype, x.shape, caller())


def copied(x: Node) -> Node:
    """The value of a copy.  NumPy multiplies complex64 numbers with other bits where they run backwards: a copy of a view is stored."""
    return contiguous(x) if x.dtype.char == "F" and x.op.kind is Kind.MOVEMENT else x


def size(x: Node) -> int:
    return prod(x.shape)
