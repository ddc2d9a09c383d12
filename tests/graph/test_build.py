"""Builders: shapes, and what they leave out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node, caller, where
from lazynp.values.buffer import Buffer
from tests.backends.numpy.programs import evaluate, leaf, same

X = np.arange(24.0).reshape(2, 3, 4)


def test_no_ops_are_left_out() -> None:
    x = leaf(X)
    assert build.reshape(x, X.shape) is x
    assert build.permute(x, (0, 1, 2)) is x
    assert build.expand(x, X.shape) is x
    assert build.slice_(x, [(0, 1)] * 3, X.shape) is x
    assert build.cast(x, X.dtype) is x
    assert build.bitcast(x, X.dtype) is x
    assert build.reduce(o.ADD, x, ()) is x
    assert build.concat([x], 0) is x
    assert build.pad(x, (0, 0, 0), X.shape, build.const(0, X.dtype)) is x
    assert build.contiguous(x) is x
    assert build.store(leaf(X), [(0, 1)] * 3, x) is x


class Published(Node):
    """A node that another thread publishes right after its operation was read."""

    @property
    def op(self) -> Any:  # type: ignore[override]
        found = Node.op.__get__(self)  # type: ignore[attr-defined]
        if found is not o.BUFFER:
            self.publish(Buffer(np.zeros(self.shape, self.dtype)))
        return found

    @op.setter
    def op(self, value: Any) -> None:
        Node.op.__set__(self, value)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("op", "arg", "build_on"),
    [
        (o.RESHAPE, None, lambda x: build.reshape(x, (3, 4))),
        (o.PERMUTE, (1, 0), lambda x: build.permute(x, (1, 0))),
        (o.EXPAND, None, lambda x: build.expand(x, (2, 4, 3))),
        (o.EXPAND, None, lambda x: build.reshape(x, (12,))),
        (o.SLICE, ((0, 1), (0, 1)), lambda x: build.slice_(x, ((1, 1), (0, 1)), (3, 3))),
    ],
)
def test_a_node_that_is_published_meanwhile(op: Any, arg: Any, build_on: Any) -> None:
    x = Published(op, (leaf(np.ones((4, 3))),), arg, np.dtype(float), (4, 3))
    assert build_on(x).dtype == x.dtype


def test_neighbours_merge() -> None:
    x = leaf(X)
    assert build.reshape(build.reshape(x, (24,)), (6, 4)).src == (x,)
    assert build.reshape(build.reshape(x, (24,)), X.shape) is x
    assert build.permute(build.permute(x, (1, 2, 0)), (2, 0, 1)) is x
    assert build.permute(build.permute(x, (1, 2, 0)), (1, 0, 2)).arg == (2, 1, 0)
    assert build.expand(build.expand(leaf([1.0]), (3, 1)), (3, 4)).shape == (3, 4)
    sliced = build.slice_(build.slice_(x, [(1, 1), (2, -1), (0, 2)], (1, 3, 2)), [(0, 1), (1, 1), (1, -1)], (1, 2, 2))
    assert sliced.src == (x,) and sliced.arg == ((1, 1), (1, -1), (2, -2))
    same(evaluate(sliced)[0], X[1:, ::-1, ::2][:, 1:3, ::-1])


def test_a_reversal_of_everything_is_no_no_op() -> None:
    x = leaf(X)
    same(evaluate(build.slice_(x, [(1, -1), (2, -1), (3, -1)], X.shape))[0], X[::-1, ::-1, ::-1])
    same(evaluate(build.store(x, [(1, -1), (2, -1), (3, -1)], x))[0], X[::-1, ::-1, ::-1])


def test_depth_counts_the_longest_pending_chain() -> None:
    x = leaf(X)
    y = build.elementwise(o.ADD, X.dtype, x, x)
    z = build.elementwise(o.ADD, X.dtype, y, x)
    assert (x.depth, y.depth, z.depth) == (0, 1, 2)
    assert z.number > y.number > x.number


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize(("count", "start", "step"), [(0, 5, 3), (1, 5, 3), (10, 5, 3), (100, 0, 1), (3000, 100, 1), (70, 20, -1)])
def test_the_sum_of_a_range_is_a_constant(dtype: str, count: int, start: int, step: int) -> None:
    if step < 0 and dtype.startswith("u"):
        start, step = 200, 1
    kind = np.dtype(dtype)
    start = min(start, 127)
    node = build.reduce(o.ADD, build.iota(count, start, step, kind), (0,))
    assert node.op is o.CONST
    with np.errstate(all="ignore"):
        expected = (np.arange(count, dtype=np.int64) * step + start).astype(kind).sum(dtype=kind)
    assert type(node.arg) is kind.type and node.arg == expected


@pytest.mark.parametrize(
    ("value", "dtype", "to"),
    [(2.7, "f8", "i4"), (-1, "i4", "u1"), (300, "i4", "i1"), (1 + 0j, "c16", "c8"), (0.1, "f8", "f2"), (0.0, "f8", "?")],
)
def test_casts_of_constants_fold(value: Any, dtype: str, to: str) -> None:
    node = build.cast(build.const(value, np.dtype(dtype)), np.dtype(to))
    assert node.op is o.CONST and type(node.arg) is np.dtype(to).type
    assert node.arg == np.array(value, dtype).astype(to)[()]


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="shape mismatch"):
        build.elementwise(o.ADD, X.dtype, leaf(X), leaf([1.0, 2.0, 3.0]))


def test_publish_forgets_the_history() -> None:
    x = leaf(X)
    y = build.elementwise(o.NEGATIVE, X.dtype, x)
    assert x.buffer is not None
    y.publish(x.buffer)
    assert (y.op, y.src, y.arg, y.depth) == (o.BUFFER, (), None, 0)


def record() -> Node:
    return build.elementwise(o.NEGATIVE, X.dtype, leaf(X))


def test_the_site_is_the_users_line() -> None:
    first = record.__code__.co_firstlineno
    assert where(record().site) == f"{__file__}:{first + 1}"
    assert where(None) == "an unknown line"
    assert where(caller()).startswith(__file__)


def test_operations_pickle_as_themselves() -> None:
    for op in o.ALL:
        assert pickle.loads(pickle.dumps(op)) is op
