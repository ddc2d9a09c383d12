"""The NumPy tier as a whole: memory, long programs, code sharing."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest

from lazynp.backends.numpy import backend
from lazynp.backends.numpy.backend import NumpyBackend
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Program, canonicalise
from tests.backends.numpy.programs import evaluate, leaf, same, source

pytestmark = pytest.mark.usefixtures("recorded")

FLOAT = np.dtype(float)


def add(a: Node, b: Node) -> Node:
    return build.elementwise(o.ADD, a.dtype, a, b)


def negative(a: Node) -> Node:
    return build.elementwise(o.NEGATIVE, a.dtype, a)


def test_straight_line_code_drops_temporaries_at_their_last_use() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    c = add(a, b)
    text = source(add(c, add(c, b)))
    assert "t3 = add(t2, t1)\n    t4 = add(t2, t3)\n    del t2, t3\n" in text


def test_large_temporaries_are_written_over() -> None:
    x = np.arange(10000.0)
    node = add(negative(negative(leaf(x))), leaf(x))
    assert "negative(t1, t1)" in source(node)
    same(evaluate(node)[0], x + x)


def test_writing_over_a_temporary_warns_of_nothing() -> None:
    x = np.linspace(-1, 1, 10000)
    for op, ufunc in ((o.MAXIMUM, np.maximum), (o.MINIMUM, np.minimum), (o.FMAX, np.fmax), (o.MULTIPLY, np.multiply)):
        node = build.elementwise(op, FLOAT, negative(leaf(x)), leaf(x))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(evaluate(node)[0], ufunc(-x, x))


def test_a_temporary_that_is_seen_again_is_not_written_over() -> None:
    x = np.arange(10000.0).reshape(100, 100)
    once = negative(leaf(x))
    turned = build.permute(once, (1, 0))
    twice = negative(once)
    got = evaluate(twice, turned, add(twice, turned))
    for value, expected in zip(got, (x, -x.T, x - x.T), strict=True):
        same(value, expected)
    # Its own transpose as the other operand: the same memory, read in another order.
    same(evaluate(add(once, turned))[0], -x - x.T)
    same(evaluate(add(turned, once))[0], -x.T - x)


def test_a_temporary_is_sorted_where_it_is() -> None:
    x = np.random.default_rng(0).integers(0, 99, 10000).astype(float)
    once = negative(leaf(x))
    ordered = build.call("numpy", ("sort", (("axis", -1),)), (once,), FLOAT, (10000,))
    split = build.call("numpy", ("partition", (("kth", 5000), ("axis", -1))), (negative(ordered),), FLOAT, (10000,))
    assert source(ordered).count("changed(") == 1 and source(split).count("changed(") == 2
    square = build.reshape(once, (100, 100))
    for nodes, texts in (((ordered,), 1), ((ordered, once), 0), ((square, ordered), 0), ((ordered, split), 2)):
        assert source(*nodes).count("changed(") == texts
        same(evaluate(*nodes)[nodes.index(ordered)], np.sort(-x))
    same(evaluate(split)[0], np.partition(-np.sort(-x), 5000))
    turned = build.permute(build.reshape(negative(leaf(x)), (100, 100)), (1, 0))
    columns = build.call("numpy", ("sort", (("axis", 0),)), (turned,), FLOAT, (100, 100))
    same(evaluate(columns)[0], np.sort(-x.reshape(100, 100).T, axis=0))
    same(evaluate(build.call("numpy", ("sort", ()), (leaf(x),), FLOAT, (10000,)))[0], np.sort(x))


def test_store_reads_what_it_overwrites_first() -> None:
    x = np.arange(6.0)
    base = negative(leaf(x))
    shifted = build.store(base, [(1, 1)], build.slice_(base, [(0, 1)], (5,)))
    expected = -x
    expected[1:] = expected[:-1].copy()
    same(evaluate(shifted)[0], expected)
    assert "copied" not in source(shifted).split("return")[0].replace("Buffer(copied", "")
    later = add(shifted, base)
    same(evaluate(later)[0], expected - x)


def test_store_into_a_broadcast_base() -> None:
    for n in (3, 100):
        base = build.expand(leaf(np.arange(float(n))), (n, n))
        node = build.store(base, [(1, 1), (0, 1)], leaf(np.full((1, n), -1.0)))
        expected = np.tile(np.arange(float(n)), (n, 1))
        expected[1] = -1
        same(evaluate(node)[0], expected)


def test_store_through_a_reshaped_temporary() -> None:
    base = build.reshape(negative(leaf(np.arange(1.0, 7.0))), (2, 3))
    node = build.store(base, [(1, 1), (0, 1)], leaf(np.full((1, 3), 9.0)))
    same(evaluate(node)[0], np.array([[-1.0, -2, -3], [9, 9, 9]]))
    strided = build.reshape(build.permute(base, (1, 0)), (6,))
    same(evaluate(build.store(strided, [(0, 1)], leaf([7.0])))[0], np.array([7.0, -4, -2, -5, -3, -6]))


def test_a_fence_is_another_name_for_its_value() -> None:
    x = negative(leaf(np.arange(3.0)))
    fence = build.contiguous(x)
    got = evaluate(add(negative(fence), x), fence)
    same(got[0], np.zeros(3))
    same(got[1], -np.arange(3.0))
    same(evaluate(x, fence)[1], -np.arange(3.0))


def test_outputs_do_not_share_memory() -> None:
    x = negative(leaf(np.arange(6.0)))
    evaluate(x, build.reshape(x, (2, 3)), build.slice_(x, [(0, 1)], (3,)), build.reshape(x, (3, 2)), x)
    evaluate(build.reshape(x, (2, 3)), build.reshape(x, (3, 2)))
    evaluate(build.reshape(leaf(np.arange(6.0)), (2, 3)))
    z = leaf(np.array([1 + 2j]))
    evaluate(*[build.elementwise(op, FLOAT, z) for op in (o.REAL, o.IMAG)])


def test_many_stores_are_linear() -> None:
    def seconds(n: int) -> float:
        node = negative(leaf(np.zeros(100_000)))
        value = leaf([1.0])
        for k in range(n):
            node = build.store(node, [(7 * k + 1, 1)], value)
        canonical = canonicalise([node])
        plan = NumpyBackend().prepare(Program.of(canonical))
        started = time.perf_counter()
        [got] = plan.run(canonical.buffers, canonical.integers, canonical.scalars)
        elapsed = time.perf_counter() - started
        assert got.array.sum() == n
        return elapsed

    seconds(10)
    # One copy of the base is about 0.1 ms: 2000 of them would be 0.2 s.
    assert seconds(2000) < 0.05


def test_a_program_of_thousands_of_operations() -> None:
    node = leaf(np.zeros(3))
    one = leaf(np.ones(3))
    for _ in range(5000):
        node = add(node, one)
    same(evaluate(node, debug=False)[0], np.full(3, 5000.0))


def test_byte_code_is_shared_between_shapes() -> None:
    def program(n: int) -> Node:
        x = leaf(np.arange(float(n)))
        return build.reduce(o.ADD, build.slice_(add(x, x), [(1, 2)], (n // 2,)), (0,))

    texts: Any = [source(program(n)) for n in (10, 20, 30)]
    assert texts[0] == texts[1] == texts[2]
    for n in (10, 20, 30):
        same(evaluate(program(n), debug=False)[0], (2 * np.arange(float(n)))[1::2].sum())
    assert texts[0] in backend._codes


def test_nothing_warns(recwarn: Any) -> None:
    zero = leaf(np.zeros(2))
    evaluate(build.elementwise(o.DIVIDE, FLOAT, zero, zero), build.elementwise(o.LOG, FLOAT, zero))
    assert not recwarn.list


def test_a_small_cached_program_costs_little_over_numpy() -> None:
    x, one = np.arange(100.0), np.ones(100)
    node, b = leaf(x), leaf(one)
    for k in range(10):
        node = add(node, b) if k % 2 else build.elementwise(o.MULTIPLY, FLOAT, node, b)
    canonical = canonicalise([node])
    plan = NumpyBackend().prepare(Program.of(canonical))

    def best(function: Any) -> float:
        times = []
        for _ in range(300):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
        return min(times)

    def plain() -> None:
        y = x
        for k in range(10):
            y = np.add(y, one) if k % 2 else np.multiply(y, one)

    ours = best(lambda: plan.run(canonical.buffers, canonical.integers, canonical.scalars))
    assert ours - best(plain) < 10e-6
