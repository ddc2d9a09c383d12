"""Running nodes through compiled kernels and through NumPy, without touching the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lazynp.backends.common.compiled import CompiledPlan
from lazynp.codegen.items import LibraryItem
from lazynp.engine.realize import backend
from lazynp.graph import build, floating
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Program, canonicalise

Array = np.ndarray[Any, Any]


def leaf(array: Any) -> Node:
    return build.buffer(np.array(array, order="C"))


def compiled_plan(nodes: Sequence[Node]) -> CompiledPlan:
    plan = backend("llvm").prepare(Program.of(canonicalise(nodes)))
    assert isinstance(plan, CompiledPlan)
    return plan


def run(plan: Any, nodes: Sequence[Node]) -> list[Array]:
    """The values of ``nodes``, copied; what is reported on the way is forgotten, before and after."""
    floating.take()
    canonical = canonicalise(nodes)
    with np.errstate(all="ignore"):
        buffers = plan.run(canonical.buffers, canonical.integers, canonical.scalars)
    floating.take()
    return [buffer.array.copy() for buffer in buffers[: len(nodes)]]


def compiled(nodes: Sequence[Node], library: bool = True) -> list[Array]:
    """Through kernels; with ``library=False`` nothing may be left to NumPy."""
    plan = compiled_plan(nodes)
    if not library:
        assert not any(isinstance(item, LibraryItem) for item in plan.schedule.items), plan.schedule.partition.reasons
    return run(plan, nodes)


def interpreted(nodes: Sequence[Node]) -> list[Array]:
    """Through NumPy, operation by operation: the oracle."""
    return run(backend("numpy").prepare(Program.of(canonicalise(nodes))), nodes)


def bits(array: Array) -> bytes:
    """The bytes of an array; all NaNs are one."""
    if array.dtype.kind in "fc":
        part = f"f{array.dtype.itemsize // (2 if array.dtype.kind == 'c' else 1)}"
        array = np.ascontiguousarray(array).reshape(-1).view(part)
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def first_difference(got: Array, expected: Array) -> str:
    """Where two arrays of one dtype and shape differ in bits (any NaN equals any NaN); empty where they do not."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
    if bits(got) == bits(expected):
        return ""
    wrong = [k for k in range(got.size) if bits(got.reshape(-1)[k : k + 1]) != bits(expected.reshape(-1)[k : k + 1])]
    k = wrong[0]
    return f"{len(wrong)} of {got.size} elements, the first at {k}: {got.reshape(-1)[k]!r} instead of {expected.reshape(-1)[k]!r}"
