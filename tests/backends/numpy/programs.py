"""Helpers of the NumPy tier's tests: nodes from arrays, and running them with every operation checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from lazynp.backends.numpy.backend import NumpyPlan
from lazynp.backends.numpy.source import translate
from lazynp.graph import build, floating
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Program, canonicalise


def leaf(array: Any) -> Node:
    return build.buffer(np.array(array, order="C"))


def evaluate(*nodes: Node, debug: bool = True) -> list[np.ndarray[Any, Any]]:
    """The values, run twice (a plan is for many runs), without touching the nodes; checks what ``Plan`` promises of memory."""
    canonical = canonicalise(nodes)
    before = [buffer.array.copy() for buffer in canonical.buffers]
    plan = NumpyPlan(Program.of(canonical), debug)
    plan.run(canonical.buffers, canonical.integers, canonical.scalars)
    buffers = plan.run(canonical.buffers, canonical.integers, canonical.scalars)
    floating.take()  # what was heard of errors: who runs a plan asks for it, or the next operation tells of it as its own
    arrays = [buffer.array for buffer in buffers]
    for given, copy in zip(canonical.buffers, before, strict=True):
        assert given.array.tobytes() == copy.tobytes(), "an input was written to"
    for n, (array, node) in enumerate(zip(arrays, canonical.wanted, strict=True)):
        assert type(array) is np.ndarray
        assert array.dtype == node.dtype and array.shape == node.shape
        assert array.flags.c_contiguous and array.flags.writeable
        assert not any(np.may_share_memory(array, given.array) for given in canonical.buffers), "an output aliases an input"
        for other in arrays[:n]:
            assert other is array or not np.may_share_memory(array, other), "two outputs share memory"
    return arrays[: len(nodes)]


def source(*nodes: Node) -> str:
    return translate(Program.of(canonicalise(nodes))).text


def same(got: np.ndarray[Any, Any], expected: Any) -> None:
    """Same dtype, shape and bits, except that any NaN equals any NaN."""
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    if expected.dtype.kind in "fc":
        for part in ("real", "imag")[: 1 + (expected.dtype.kind == "c")]:
            a, b = getattr(got, part), getattr(expected, part)
            np.testing.assert_array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))
