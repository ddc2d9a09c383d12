"""Random programs over all kinds of operations, made from a seed: small arrays, all dtypes, special values, awkward shapes."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from lazynp.backends.llvm import scalars
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node, Shape
from tests.codegen.engines import leaf

DTYPES = [np.dtype(t) for t in ("f8", "f4", "i8", "i4", "i1", "u1", "u8", "?", "f2", "c16")]
# Around the extents where code changes: lanes of 32, chunks of 512, column tiles of 512, segments, short reductions.
SHAPES: list[Shape] = [
    (), (1,), (7,), (33,), (600,), (1100,), (5, 7), (7, 5), (1, 7), (5, 1), (40, 40), (2, 600), (600, 3), (3, 5, 7), (4, 3, 300), (300, 9),
]  # fmt: skip
SIZE = 6000  # elements of the largest value
BINARY = [
    o.ADD, o.SUBTRACT, o.MULTIPLY, o.DIVIDE, o.FLOOR_DIVIDE, o.REMAINDER, o.LESS, o.EQUAL, o.NOT_EQUAL, o.GREATER_EQUAL,
    o.MAXIMUM, o.MINIMUM, o.FMAX, o.BITWISE_AND, o.BITWISE_XOR, o.LEFT_SHIFT, o.RIGHT_SHIFT,
]  # fmt: skip
UNARY = [
    o.NEGATIVE, o.ABSOLUTE, o.SIGN, o.SQRT, o.FLOOR, o.RINT, o.ISNAN, o.SIGNBIT, o.INVERT, o.EXP, o.SIN, o.LOG, o.TANH,
]  # fmt: skip
FLOAT_UNARY = frozenset([o.SQRT, o.FLOOR, o.RINT, o.ISNAN, o.SIGNBIT, o.EXP, o.SIN, o.LOG, o.TANH])
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]
BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)


class Maker:
    """Grows a pool of nodes; each method makes one more node, or None where nothing in the pool fits."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.pool = [self.leaf() for _ in range(6)]

    def leaf(self) -> Node:
        r, rng = self.random, self.numbers
        dtype, shape = r.choice(DTYPES), r.choice(SHAPES)
        if dtype.kind == "f":
            values = np.asarray(rng.standard_normal(shape)).astype(dtype)
            if values.size and r.random() < 0.3:
                values.flat[r.randrange(values.size)] = r.choice(SPECIAL)
        elif dtype.kind == "c":
            values = np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        elif dtype.kind == "b":
            values = np.asarray(rng.random(shape) > 0.5)
        else:
            values = np.asarray(rng.integers(0 if dtype.kind == "u" else -50, 50, shape)).astype(dtype)
        return leaf(values)

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            makers, weights = zip(*MAKERS, strict=True)
            maker: Callable[[Maker, Node], Node | None] = self.random.choices(makers, weights)[0]
            node = maker(self, self.random.choice(self.pool))
            if node is not None and prod(node.shape) <= SIZE:
                self.pool.append(node)

    def partner(self, x: Node) -> Node | None:
        """Another value that broadcasts against x and has its dtype."""
        for y in self.random.sample(self.pool, len(self.pool)):
            if y.dtype == x.dtype and broadcasts(x.shape, y.shape):
                return y
        return None

    # One of each kind ----------------------------------------------------------------------------------------------------

    def binary(self, x: Node) -> Node | None:
        op, y = self.random.choice(BINARY), self.partner(x)
        if y is None or not scalars.supported(op, x.dtype, [x.dtype] * 2):
            return None
        return build.elementwise(op, BOOL if op in o.COMPARISONS else x.dtype, x, y)

    def unary(self, x: Node) -> Node | None:
        op = self.random.choice(UNARY)
        if not scalars.supported(op, x.dtype, [x.dtype]) or (op in FLOAT_UNARY and x.dtype.kind != "f"):
            return None
        return build.elementwise(op, BOOL if op in (o.ISNAN, o.SIGNBIT) else x.dtype, x)

    def cast(self, x: Node) -> Node | None:
        dtype = self.random.choice(DTYPES)
        # What is not defined (a number that does not fit) or loses a part is not converted.
        if (x.dtype.kind == "c" and dtype.kind != "c") or (x.dtype.kind == "f" and dtype.kind in "iu"):
            return None
        return build.cast(x, dtype)

    def where(self, x: Node) -> Node | None:
        conditions = [c for c in self.pool if c.dtype == BOOL and broadcasts(c.shape, x.shape)]
        y = self.partner(x)
        if not conditions or y is None:
            return None
        condition = self.random.choice(conditions)
        if not broadcasts(condition.shape, build.broadcast_shape(x.shape, y.shape)):
            return None
        return build.elementwise(o.WHERE, x.dtype, condition, x, y)

    def permute(self, x: Node) -> Node:
        return build.permute(x, tuple(self.random.sample(range(len(x.shape)), len(x.shape))))

    def region(self, shape: Shape) -> tuple[list[tuple[int, int]], Shape]:
        r = self.random
        axes, lengths = [], []
        for n in shape:
            step = r.choice([1, 1, 1, 2, -1, -2, 3])
            length = r.randint(1, (n - 1) // abs(step) + 1)
            span = (length - 1) * abs(step)
            low = r.randint(0, n - 1 - span)
            axes.append((low if step > 0 else low + span, step))
            lengths.append(length)
        return axes, tuple(lengths)

    def slice(self, x: Node) -> Node:
        return build.slice_(x, *self.region(x.shape))

    def store(self, x: Node) -> Node | None:
        axes, lengths = self.region(x.shape)
        values = [y for y in self.pool if y.dtype == x.dtype and expands(y.shape, lengths)]
        if not values:
            return None
        return build.store(x, axes, build.expand(self.random.choice(values), lengths))

    def reshape(self, x: Node) -> Node:
        n = prod(x.shape)
        shapes: list[Shape] = [(n,), (1, n), (n, 1)]
        for k in (2, 3, 4, 5, 7):
            if n % k == 0:
                shapes += [(k, n // k), (n // k, k)]
        return build.reshape(x, self.random.choice(shapes))

    def expand(self, x: Node) -> Node:
        return build.expand(x, (self.random.choice([2, 3]), *x.shape))

    def pad(self, x: Node) -> Node:
        before = tuple([self.random.randint(0, 2) for _ in x.shape])
        shape = tuple([n + b + self.random.randint(0, 2) for n, b in zip(x.shape, before, strict=True)])
        return build.pad(x, before, shape, build.const(self.random.choice([0, 1]), x.dtype))

    def reduce(self, x: Node) -> Node | None:
        op = self.random.choice([o.ADD, o.ADD, o.MAXIMUM, o.MINIMUM, o.MULTIPLY])
        # A float product overflows or vanishes soon, and then says nothing.
        if not x.shape or x.dtype.kind in "bc" or (op is o.MULTIPLY and x.dtype.kind == "f"):
            return None
        axes = self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape)))
        return build.reduce(op, x, tuple(sorted(axes)))

    def normalise(self, x: Node) -> Node | None:
        """Something computed from an array and its own reduction."""
        if not x.shape or x.dtype.kind != "f":
            return None
        axis = self.random.randrange(len(x.shape))
        op = self.random.choice([o.ADD, o.MAXIMUM])
        kept = tuple([1 if a == axis else n for a, n in enumerate(x.shape)])
        return build.elementwise(o.SUBTRACT, x.dtype, x, build.reshape(build.reduce(op, x, (axis,)), kept))

    def concat(self, x: Node) -> Node | None:
        if not x.shape:
            return None
        axis = self.random.randrange(len(x.shape))
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        fitting = [
            y for y in self.pool
            if y.dtype == x.dtype and len(y.shape) == len(x.shape) and y.shape[:axis] + y.shape[axis + 1 :] == rest
        ]  # fmt: skip
        return build.concat([x, self.random.choice(fitting), self.random.choice(fitting)], axis)

    def gather(self, x: Node) -> Node | None:
        if not x.shape:
            return None
        shape = self.random.choice([(4,), (3, 2), (), *[y.shape for y in self.pool if y.dtype == INT64 and prod(y.shape) <= 40]])
        return build.gather(x, *[self.indices(n, shape) for n in x.shape[: self.random.choice([1, 1, 2])]])

    def indices(self, n: int, shape: Shape) -> Node:
        """Indices of an axis of n, stored or computed."""
        found = [y for y in self.pool if y.dtype == INT64 and y.shape == shape]
        if found and self.random.random() < 0.5:
            return build.elementwise(o.REMAINDER, INT64, self.random.choice(found), build.const(n, INT64))
        return leaf(np.asarray(self.numbers.integers(-n, n, shape)).astype(np.int64))

    def row(self, x: Node) -> Node | None:
        """Single elements side by side, read in some order."""
        if not x.shape or x.shape[0] < 2:
            return None
        singles = []
        for _ in range(self.random.randint(2, 4)):
            single = build.slice_(x, [(self.random.randrange(n), 1) for n in x.shape], (1,) * len(x.shape))
            singles.append(self.unary(single) or single if self.random.random() < 0.5 else single)
        if any(single.dtype != x.dtype for single in singles):
            return None
        together = build.concat(singles, 0)
        return build.gather(together, self.indices(len(singles), self.random.choice([(4,), (3, 2), ()])))

    def fence(self, x: Node) -> Node:
        return build.contiguous(x)

    def scan(self, x: Node) -> Node | None:
        """A library call."""
        if not x.shape or x.dtype.kind not in "iu":
            return None
        return build.scan(o.ADD, x, self.random.randrange(len(x.shape)))


MAKERS: list[tuple[Callable[[Maker, Node], Node | None], float]] = [
    (Maker.binary, 35), (Maker.unary, 15), (Maker.cast, 5), (Maker.where, 4), (Maker.permute, 6), (Maker.slice, 7), (Maker.store, 3),
    (Maker.reshape, 6), (Maker.expand, 4), (Maker.pad, 4), (Maker.reduce, 11), (Maker.normalise, 3), (Maker.concat, 4), (Maker.gather, 4),
    (Maker.row, 2), (Maker.fence, 1), (Maker.scan, 1),
]  # fmt: skip


def broadcasts(*shapes: Shape) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def expands(shape: Shape, target: Shape) -> bool:
    return broadcasts(shape, target) and np.broadcast_shapes(shape, target) == target


def program(seed: int) -> list[Node]:
    """The wanted nodes of the program of ``seed``: some of those made, and often values others are computed from."""
    maker = Maker(seed)
    maker.grow(maker.random.randint(4, 16))
    made: list[Any] = [node for node in maker.pool if node.buffer is None and node.op is not o.CONST]
    return maker.random.sample(made, min(len(made), maker.random.randint(1, 3)))
