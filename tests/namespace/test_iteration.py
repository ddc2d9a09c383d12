"""Iterators over arrays against NumPy, also those that write."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp
from tests.namespace.compare import check


def both(run: Any) -> None:
    check(run)


def test_indices_and_values() -> None:
    both(lambda np: [(at, value) for at, value in np.ndenumerate(np.arange(6.0).reshape(2, 3).T)])
    both(lambda np: list(np.ndindex(2, np.int64(3))))
    both(lambda np: [at for at, _ in np.ndenumerate([[1, 2], [3, 4]])])
    assert isinstance(lazynp.ndenumerate(lazynp.zeros(2)), numpy.ndenumerate)


@pytest.mark.usefixtures("recorded")
def test_broadcast() -> None:
    def run(np: Any) -> object:
        b = np.broadcast(np.arange(3.0), np.array([[1], [2]]), 5)
        shape = b.shape, b.ndim, b.nd, b.size, b.numiter, b.index
        values = list(b)
        b.reset()
        return shape, values, next(b), b.index

    both(run)
    both(lambda np: np.broadcast(np.zeros(3), np.zeros(4)))
    x = lazynp.arange(3.0) + 1
    b = lazynp.broadcast(x, lazynp.zeros((2, 1)))
    assert b.shape == (2, 3)
    assert x._node.buffer is None
    assert isinstance(b, lazynp.broadcast)
    assert isinstance(b, numpy.broadcast)


def test_nditer_reads() -> None:
    def run(np: Any) -> object:
        x, y = np.arange(6.0).reshape(2, 3), np.arange(3)
        it = np.nditer(x.T, flags=["multi_index"], order="C")
        seen = [(it.multi_index, float(v)) for v in it]
        pairs = [(float(a), int(b)) for a, b in np.nditer([x, y])]
        chunks = [c.tolist() for c in np.nditer(x, flags=["external_loop"], order="F")]
        return [list(map(str, seen)), list(map(str, pairs)), chunks]

    assert run(lazynp) == run(numpy)


def test_nditer_makes_results() -> None:
    def run(np: Any) -> object:
        it = np.nditer([np.arange(3.0), np.array([[1], [2]]), None])
        with it:
            for a, b, out in it:
                out[...] = a * b
            return it.operands[2]

    both(run)
    it = lazynp.nditer([lazynp.arange(3), None])
    for x, y in it:
        y[...] = x
    assert type(it.operands[1]) is lazynp.ndarray


def test_nditer_reduces_into_what_it_made() -> None:
    def run(np: Any) -> object:
        x = np.arange(24).reshape(2, 3, 4)
        it = np.nditer([x, None], flags=["reduce_ok"], op_flags=[["readonly"], ["readwrite", "allocate"]], op_axes=[None, [0, 1, -1]])
        with it:
            it.operands[1][...] = 0
            for a, b in it:
                b[...] += a
            return it.operands[1]

    both(run)


def test_nditer_writes() -> None:
    def run(np: Any) -> object:
        x = np.arange(6.0).reshape(2, 3)
        view, before = x[:, 1:], x + 0
        with np.nditer(view, op_flags=["readwrite"]) as it:
            for v in it:
                v[...] = 2 * v
        y = np.arange(4)
        for v in np.nditer(y, op_flags=[["readwrite"]]):
            v[...] = v + 1
        y[0] = 50
        z = np.zeros(3)
        for v in np.nditer(z, op_flags=["writeonly"]):
            v[...] = 7
            break
        del v
        w = np.zeros(4, int)
        it = np.nditer([np.arange(4), w], op_flags=[["readonly"], ["readwrite"]], flags=["external_loop", "buffered"])
        with it:
            for a, b in it:
                b[...] = a * 3
        w += 1
        return x, view, before, y, z, w

    both(run)
    both(lambda np: np.nditer(np.broadcast_to(np.zeros(2), (2, 2)), op_flags=["readwrite"]))


def test_nditer_by_hand() -> None:
    def run(np: Any) -> object:
        x = np.arange(4.0)
        it = np.nditer(x, flags=["c_index"], op_flags=["readwrite"])
        while not it.finished:
            it[0] = it[0] * 2 + it.index
            it.iternext()
        it.reset()
        return x, it.itersize, it.ndim, len(it)

    both(run)


def test_nested_iterators() -> None:
    def run(np: Any) -> list[list[int]]:
        outer, inner = np.nested_iters(np.arange(6).reshape(2, 3), [[0], [1]], flags=["multi_index"])
        return [[int(v) for v in inner] for _ in outer]

    assert run(lazynp) == run(numpy)
    both(lambda np: [[int(v) for v in inner] for outer, inner in [np.nested_iters(np.zeros(2), [[0], [3]])]])
