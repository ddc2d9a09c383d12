"""The same operation in every layout, for comparing the bits of two ways to compute it.

In: an operation, combining one or not, and a dtype.  Out: pending nodes that compute it of ordinary and special values, in memory order,
with steps, backwards, transposed, broadcast, with a number, without axes; reduced over every set of axes of several shapes.  Run as a
script it prints which operations NumPy's loops and kernels compute with different bits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from lazynp.backends.llvm import scalars
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.graph.op import Kind, Op
from tests.codegen.engines import Array, compiled, first_difference, interpreted, leaf

CHARS = "?bBhHiIqQefdFD"
LENGTHS = (1, 2, 3, 7, 8, 31, 67, 1003)
SHAPES = (
    (1,), (2,), (5,), (8,), (9,), (33,), (129,), (513,), (1003,), (20_011,),
    (7, 5), (1, 300), (300, 1), (40, 300), (300, 40), (700, 3), (5, 6, 7), (3, 130, 9), (2, 1, 300),
)  # fmt: skip


def result(op: Op, dtype: np.dtype) -> np.dtype:
    """The dtype of what ``op`` makes of elements of ``dtype``, which is NumPy's rule."""
    if op.predicate:
        return np.dtype(np.bool_)
    if op is o.BITWISE_COUNT:
        return np.dtype(np.uint8)
    if op in (o.REAL, o.IMAG) or (op is o.ABSOLUTE and dtype.kind == "c"):
        return np.dtype(f"f{dtype.itemsize // 2}")
    if op is o.COMPLEX:
        return np.dtype(f"c{dtype.itemsize * 2}")
    return dtype


def values(dtype: np.dtype, n: int, seed: int) -> Array:
    """n elements: a third of them near 1, a third of all magnitudes, and what is special (zeros of both signs, infinities, NaN)."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        few = rng.integers(max(info.min, -9), 9, n).astype(dtype)
        wide = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        return np.where(rng.random(n) < 0.6, few, wide)
    if dtype.kind == "c":
        found = np.empty(n, dtype)
        found.real, found.imag = values(found.real.dtype, n, seed + 1), values(found.real.dtype, n, seed + 2)
        return found
    info = np.finfo(dtype)
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, info.max, -info.tiny, info.smallest_subnormal], dtype)
    with np.errstate(all="ignore"):
        wide = (rng.choice([-1.0, 1.0], n) * np.exp2(rng.uniform(info.minexp, info.maxexp, n))).astype(dtype)
    near = rng.normal(size=n).astype(dtype)
    found = np.choose(rng.integers(0, 4, n), [near, near * dtype.type(30), wide, rng.choice(special, n)])
    return np.where(rng.random() < 0.3, near, found).astype(dtype)


def zeros(dtype: np.dtype, n: int, seed: int) -> Array:
    """n zeros of both signs."""
    return np.random.default_rng(seed).choice(np.array([0.0, -0.0], dtype), n)


def _step(x: Node, step: int) -> Node:
    n = x.shape[0] // 2
    return build.slice_(x, ((0, 2) if step > 0 else (x.shape[0] - 1, -1),), (n,))


def elementwise(op: Op, dtype: np.dtype) -> Iterator[tuple[str, Node]]:
    """Nodes that compute ``op``, with names of their layouts."""
    arity = op.arity or 1

    def operands(n: int) -> list[Node]:
        made = [leaf(values(dtype, n, 10 * n + k)) for k in range(arity)]
        if op is o.LDEXP:
            made[1] = leaf(np.random.default_rng(n).integers(-40, 40, n).astype(np.intc))
        return made

    def of(*nodes: Node) -> Node:
        return build.elementwise(op, result(op, dtype), *nodes)

    for n in LENGTHS:
        yield f"{n}", of(*operands(n))
    for step in (2, -1):
        yield f"step {step}", of(*[_step(x, step) for x in operands(502)])
    yield "turned", of(*[build.permute(build.reshape(x, (17, 59)), (1, 0)) for x in operands(1003)])
    yield "no axes", of(*[build.reshape(x, ()) for x in operands(1)])
    if arity == 2 and dtype.kind == "f" and op is not o.LDEXP:
        yield "zeros", of(leaf(zeros(dtype, 1003, 1)), leaf(zeros(dtype, 1003, 2)))
    if arity == 2:
        x, y = operands(1003)
        first = build.slice_(y, ((1, 1),), (59,)), build.slice_(x, ((1, 1),), (59,))
        yield "row", of(build.reshape(x, (17, 59)), first[0])
        yield "row first", of(first[1], build.reshape(y, (17, 59)))
        yield "column", of(build.reshape(x, (17, 59)), build.reshape(build.slice_(y, ((1, 1),), (17,)), (17, 1)))
        numbers = [-3, 0, 1, 2, 3, 10] if dtype.kind in "ifc" and op is not o.LDEXP else [0, 1, 1]
        for number in [*numbers, *([-0.5, 0.5, -1.0, 1.5, np.inf, np.nan] if dtype.kind in "fc" and op is not o.LDEXP else [])]:
            yield f"number {number}", of(x, build.const(number, y.dtype))
            yield f"number first {number}", of(build.const(number, x.dtype), y)


def casts(source: np.dtype, target: np.dtype) -> Iterator[tuple[str, Node]]:
    """Nodes that convert."""
    for n in LENGTHS:
        yield f"{n}", build.cast(leaf(values(source, n, n)), target)
    yield "step", build.cast(_step(leaf(values(source, 502, 7)), 2), target)


def reduced(op: Op, dtype: np.dtype, of: object = values) -> Iterator[tuple[str, Node]]:
    """Nodes that reduce by ``op``."""
    for k, shape in enumerate(SHAPES):
        data = of(dtype, int(np.prod(shape)), k)
        if dtype.kind in "fc" and op in (o.ADD, o.MULTIPLY):
            with np.errstate(all="ignore"):
                data = np.where(np.isfinite(data) & (abs(data) < 1e3), data, dtype.type(1.25))
                data = data if op is o.ADD else np.exp2(0.1 * np.tanh(data.real)).astype(dtype)
        x = build.reshape(leaf(data), shape)
        for axes in [c for r in range(1, len(shape) + 1) for c in combinations(range(len(shape)), r)]:
            yield f"{shape} over {axes}", build.reduce(op, x, axes)
            if len(shape) > 1:
                turned = build.permute(x, tuple(range(len(shape)))[::-1])
                yield f"{shape[::-1]} over {axes}, turned", build.reduce(op, turned, axes)


def differences(cases: Iterator[tuple[str, Node]], one: object = interpreted, other: object = compiled) -> list[str]:
    """The layouts in which two ways to compute give different bits."""
    names, nodes = zip(*cases, strict=True)
    found = []
    for name, a, b in zip(names, other(nodes), one(nodes), strict=True):
        difference = first_difference(a, b)
        if difference:
            found.append(f"{name}: {difference}")
    return found


def all_cases() -> Iterator[tuple[str, Op, np.dtype, Iterator[tuple[str, Node]]]]:
    """Every operation that kernels have, with every dtype."""
    for op in o.ALL:
        if op.kind is Kind.ELEMENTWISE and op not in (o.CAST, o.BITCAST, o.WHERE, o.REAL, o.IMAG, o.COMPLEX):
            for char in CHARS:
                if scalars.supported(op, result(op, np.dtype(char)), (np.dtype(char),) * (op.arity or 1)):
                    yield op.name, op, np.dtype(char), elementwise(op, np.dtype(char))
    for op in o.COMBINING:
        for char in CHARS:
            if scalars.supported(op, np.dtype(char), (np.dtype(char),) * 2):
                yield f"reduce {op.name}", op, np.dtype(char), reduced(op, np.dtype(char))
                if char in "efd":
                    yield f"reduce {op.name} of zeros", op, np.dtype(char), reduced(op, np.dtype(char), zeros)


if __name__ == "__main__":
    for name, _, dtype, cases in all_cases():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        found = differences(cases)
        if found:
            print(f"{name} {dtype}: {len(found)} layouts, {found[0]}", flush=True)
