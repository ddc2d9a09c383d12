"""Elementwise functions that are made of graph operations.

In: nodes in the dtypes of the loop that NumPy would choose.  Out: the node (or nodes) of the result.  Promise: exactly the values
of NumPy's own loops: where a composition could differ in a bit, the function is a library call instead.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, FLOAT16, FLOAT32, INT64, UINT64
from lazynp.graph.errstate import QUIET
from lazynp.graph.node import Node
from lazynp.graph.op import Op
from lazynp.scalars import computed
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp.graph import build
else:
    (build,) = late("graph.build")

DType = np.dtype[Any]
Lowered = Node | tuple[Node, ...]
Lowering = Callable[..., Lowered]
"""``lowering(nodes, outs)``: sources in loop dtypes, and the dtypes of the outputs."""
Sources = tuple[Node, ...]
Outputs = tuple[DType, ...]


def filled(value: Any, dtype: DType, *like: Node) -> Node:
    """A constant of the sources' common shape."""
    return build.expand(build.const(value, dtype), build.broadcast_shape(*[x.shape for x in like]))


def native(op: Op) -> Lowering:
    def lower(nodes: Sources, outs: Outputs) -> Node:
        return build.elementwise(op, outs[0], *nodes)

    return lower


def by_kind(otherwise: Lowering, **special: Lowering) -> Lowering:
    """Another lowering for some kinds of the first source's dtype (``b``, ``i``, ``u``, ``f``, ``c``)."""

    def lower(nodes: Sources, outs: Outputs) -> Lowered:
        return special.get(nodes[0].dtype.kind, otherwise)(nodes, outs)

    return lower


def library(name: str) -> Lowering:
    """NumPy's own loop, called as one item of the schedule."""

    def lower(nodes: Sources, outs: Outputs) -> Lowered:
        shape = build.broadcast_shape(*[x.shape for x in nodes])
        first = build.call(f"ufunc:{name}", (), nodes, outs[0], shape)
        if len(outs) == 1:
            return first
        return (first, *[build.output(first, k, outs[k], shape) for k in range(1, len(outs))])

    lower.answered = "library"  # type: ignore[attr-defined]
    return lower


def identity(nodes: Sources, outs: Outputs) -> Node:
    return build.cast(nodes[0], outs[0])


def always(value: bool) -> Lowering:
    def lower(nodes: Sources, outs: Outputs) -> Node:
        return filled(value, BOOL, *nodes)

    return lower


def truth(x: Node) -> Node:
    """``x != 0`` as a bool node."""
    if x.dtype == BOOL:
        return x
    return build.elementwise(o.NOT_EQUAL, BOOL, x, build.const(0, x.dtype))


def logical(op: Op) -> Lowering:
    def lower(nodes: Sources, outs: Outputs) -> Node:
        return build.elementwise(op, BOOL, *[truth(x) for x in nodes])

    return lower


def comparison(op: Op) -> Lowering:
    """int64 against uint64 is compared exactly, as NumPy's mixed loops do; any other pair has one dtype."""

    def lower(nodes: Sources, outs: Outputs) -> Node:
        a, b = nodes
        if a.dtype == b.dtype or {a.dtype, b.dtype} != {INT64, UINT64}:
            return build.elementwise(op, BOOL, a, b)
        signed = a if a.dtype == INT64 else b
        negative = build.elementwise(o.LESS, BOOL, signed, build.const(0, INT64))
        plain = build.elementwise(op, BOOL, build.cast(a, UINT64), build.cast(b, UINT64))
        # A negative number is below every unsigned one; the answer then depends on its side alone.
        below = signed is a
        answer = {
            o.LESS: below,
            o.LESS_EQUAL: below,
            o.GREATER: not below,
            o.GREATER_EQUAL: not below,
            o.EQUAL: False,
            o.NOT_EQUAL: True,
        }[op]
        return build.elementwise(o.WHERE, BOOL, negative, build.const(answer, BOOL), plain)

    return lower


def called(name: str, lower: Lowering) -> Lowering:
    """The same, where messages about its result name the function and not the graph operation."""

    def named(nodes: Sources, outs: Outputs) -> Lowered:
        values = lower(nodes, outs)
        for node in values if isinstance(values, tuple) else (values,):
            node.err = node.err.named(name)
        return values

    return named


def power_of_numbers(nodes: Sources, outs: Outputs) -> Node:
    """The operator of numbers, where NumPy calls C's function whatever the exponent."""
    base, exponent = nodes
    if outs[0].kind == "i" and 0 not in base.shape and 0 not in exponent.shape and _any_negative(exponent):
        raise ValueError("Integers to negative integer powers are not allowed.")
    return build.elementwise(o.POWER, outs[0], base, exponent)


def power(nodes: Sources, outs: Outputs) -> Node:
    base, exponent = nodes
    if exponent.shape == () and exponent.op is o.CONST and exponent.arg == 0.5 and outs[0].char in "fd":
        root = build.elementwise(o.SQRT, outs[0], base)  # NumPy's loop does, which differs for -0 and -inf
        root.err = root.err.named("power")
        return root
    return power_of_numbers(nodes, outs)


def _any_negative(x: Node) -> bool:
    """Computed now where it is not known: NumPy refuses at the call, and a write that fails later would damage the array."""
    while x.op is o.EXPAND or x.op is o.RESHAPE or x.op is o.PERMUTE:
        x = x.src[0]
    if x.op is o.CONST:
        return bool(x.arg < 0)
    if x.dtype.kind in "bu":
        return False
    known = computed(x, "integer power").at_hand
    if known is not None:
        return bool((known < 0).any())
    found = build.reduce(o.BITWISE_OR, build.elementwise(o.LESS, BOOL, x, build.const(0, x.dtype)), tuple(range(len(x.shape))))
    return bool(computed(found, "integer power").array)


def square(nodes: Sources, outs: Outputs) -> Node:
    return build.elementwise(o.MULTIPLY, outs[0], nodes[0], nodes[0])


def reciprocal(nodes: Sources, outs: Outputs) -> Node:
    return build.elementwise(o.DIVIDE, outs[0], build.const(1, outs[0]), nodes[0])


def absolute(nodes: Sources, outs: Outputs) -> Node:
    return build.elementwise(o.ABSOLUTE, outs[0], nodes[0])


def scaled(factor: float, factor32: np.float32) -> Lowering:
    """``x * factor``; float16 goes through float32 and float32 has its own rounding of the factor, as in NumPy's loops."""

    def lower(nodes: Sources, outs: Outputs) -> Node:
        x = nodes[0]
        if x.dtype == FLOAT16:
            return build.cast(build.elementwise(o.MULTIPLY, FLOAT32, build.cast(x, FLOAT32), build.const(factor32, FLOAT32)), FLOAT16)
        value = factor32 if x.dtype == FLOAT32 else factor
        return build.elementwise(o.MULTIPLY, outs[0], x, build.const(value, x.dtype))

    return lower


deg2rad = scaled(pi / 180.0, np.float32(pi) / np.float32(180))
rad2deg = scaled(180.0 / pi, np.float32(180) / np.float32(pi))


def heaviside(nodes: Sources, outs: Outputs) -> Node:
    x, at_zero = nodes
    dtype = outs[0]
    zero, one = build.const(0, dtype), build.const(1, dtype)
    # NaN fails every comparison and passes through.
    result = build.elementwise(o.WHERE, dtype, build.elementwise(o.EQUAL, BOOL, x, zero), at_zero, x)
    result = build.elementwise(o.WHERE, dtype, build.elementwise(o.LESS, BOOL, x, zero), zero, result)
    return build.elementwise(o.WHERE, dtype, build.elementwise(o.GREATER, BOOL, x, zero), one, result)


def divmod_(nodes: Sources, outs: Outputs) -> tuple[Node, ...]:
    return (
        build.elementwise(o.FLOOR_DIVIDE, outs[0], *nodes),
        build.elementwise(o.REMAINDER, outs[1], *nodes),
    )


def modf(nodes: Sources, outs: Outputs) -> tuple[Node, ...]:
    x = nodes[0]
    whole = build.elementwise(o.TRUNC, outs[1], x)
    rest = build.elementwise(o.SUBTRACT, outs[0], x, whole)
    rest.err = QUIET
    # inf - inf would be NaN where NumPy answers a zero of x's sign.
    rest = build.elementwise(o.WHERE, outs[0], build.elementwise(o.ISINF, BOOL, x), build.const(0, outs[0]), rest)
    return build.elementwise(o.COPYSIGN, outs[0], rest, x), whole


def ldexp(nodes: Sources, outs: Outputs) -> Node:
    return build.elementwise(o.LDEXP, outs[0], *nodes)
