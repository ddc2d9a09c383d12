"""Random programs: compiled kernels give NumPy's values, and the same bits however the work is cut into kernels and threads.

``LAZYNP_KERNELS=5000`` runs that many programs instead of the few that every run takes; a failure names its seed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lazynp.backends.common import compiled as runtime
from lazynp.codegen import nest, reduce
from lazynp.engine.realize import backend
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.schedule import cost
from lazynp.schedule.chunks import CHUNK, ROWS
from lazynp.values import config
from tests.codegen.engines import Array, bits, compiled, compiled_plan, first_difference, interpreted, leaf, run
from tests.codegen.programs import program

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # the values are at issue here

PROGRAMS = int(os.environ.get("LAZYNP_KERNELS", "200"))
CUT_PROGRAMS = max(PROGRAMS // 8, 1)
BATCH = 20


@pytest.fixture(autouse=True)
def _every_pass_is_checked() -> Any:
    with config.override(debug=True):
        yield


def precision(nodes: Sequence[Node]) -> float:
    """The rounding error of the coarsest floating-point type that ``nodes`` are computed in."""
    coarsest, seen, pending = 0.0, set(nodes), list(nodes)
    while pending:
        node = pending.pop()
        if node.dtype.kind in "fc":
            coarsest = max(coarsest, float(np.finfo(node.dtype).eps))
        new = set(node.src) - seen
        seen |= new
        pending += new
    return coarsest


def close(got: Array, expected: Array, eps: float) -> bool:
    """Equal, up to the rounding errors of a program of a dozen operations where it computes with floats.

    Sums are combined in another order than NumPy's, and what follows may amplify that: the scale is the largest value of the array.
    """
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return np.array_equal(got, expected)
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(np.isnan(got), np.isnan(expected)):
            return False
        wide = expected.astype("c16" if expected.dtype.kind == "c" else "f8")
        scale = max(1.0, np.max(np.abs(wide[finite]), initial=0))
        error = np.max(np.abs(got.astype(wide.dtype)[finite] - wide[finite]), initial=0)
        return bool(error <= scale * eps * (2000 if eps < 1e-4 else 60))


def batches(count: int) -> list[range]:
    return [range(start, min(start + BATCH, count)) for start in range(0, count, BATCH)]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", batches(PROGRAMS), ids=lambda seeds: f"seeds {seeds.start}-{seeds.stop - 1}")
def test_kernels_give_the_values_of_numpy(seeds: range) -> None:
    for seed in seeds:
        nodes = program(seed)
        if nodes:
            for k, (got, expected) in enumerate(zip(compiled(nodes), interpreted(nodes), strict=True)):
                assert close(got, expected, precision([nodes[k]])), f"seed {seed}, output {k}: {first_difference(got, expected)}"


# The same bits, whatever the scheduler decides -------------------------------------------------------------------------


def same_bits(seed: int, got: Sequence[Array], expected: Sequence[Array], how: str) -> None:
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert bits(a) == bits(b), f"seed {seed}, output {k}, {how}: {first_difference(a, b)}"


LIMITS: dict[str, tuple[float, float]] = {
    "KERNEL_NODES": (1, 100_000),
    "KERNEL_BUFFERS": (1, 10_000),
    "KERNEL_POINTS": (1, 1000),
    "STAGE_COST": (0.0, 1e9),
    "SCRATCH_BYTES": (0, 1 << 20),
    "SCRATCH_TOTAL": (0, 1 << 21),
    "LAUNCH": (0.0, 1e12),
    "LOAD": (0.0, 1e6),
    "STORE": (0.0, 1e9),
    "SPLIT_FROM": (2, 1 << 30),
    "JOINED": (1, 1000),
    "SEARCH": (0, 1 << 30),
    "JOINED_BYTES": (0, 1 << 60),
    "PEAK_BYTES": (0, 1 << 60),
    "PEAK_SHARE": (1, 1 << 60),
    "SMALL_STORE": (1, 1 << 30),
    "SHORT_ROW": (0, 1 << 30),
    "SHORT_VALUES": (0, 1 << 30),
    "SEGMENTS": (1, 1000),
    "SEGMENT_VALUES": (0, 1 << 30),
}
# Forced elsewhere: in kernels of a grid, in runs that claim, in what is kept of calls, and where the order of sums is compared; or a matter
# of products' bits.
OTHERS = {
    "TURNED", "SHARED_BYTES", "CLAIM_BYTES", "CLAIM_SHARE", "CLAIM_CONTESTS", "SMALL_REDUCTION", "SMALL_DEAR_REDUCTION", "ESTIMATE_CAP",
    "KEPT_BYTES", "KEPT_SMALL", "HELD_CAP",
}  # fmt: skip


def cut_programs() -> list[tuple[int, list[Node]]]:
    """Programs that are large enough to be cut in more than one way."""
    return [(seed, nodes) for seed in range(1000, 1000 + CUT_PROGRAMS) if (nodes := program(seed))]


def test_every_limit_of_the_cost_model_is_forced() -> None:
    numbers = {name for name, value in vars(cost).items() if name.isupper() and isinstance(value, int | float)}
    assert numbers == LIMITS.keys() | OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("side", [0, 1], ids=["low", "high"])
@pytest.mark.parametrize("limit", LIMITS)
def test_a_forced_limit_changes_no_bit(monkeypatch: pytest.MonkeyPatch, limit: str, side: int) -> None:
    for seed, nodes in cut_programs():
        expected = compiled(nodes)
        with monkeypatch.context() as patch:
            patch.setattr(cost, limit, LIMITS[limit][side])
            got = compiled(nodes)
        same_bits(seed, got, expected, f"{limit} = {LIMITS[limit][side]}")


@pytest.mark.slow
def test_company_changes_no_bit() -> None:
    """Computed alone, together, or with everything on the way kept as well."""
    for seed, nodes in cut_programs():
        together = compiled(nodes)
        same_bits(seed, [compiled([node])[0] for node in nodes], together, "alone")
        inner = [source for node in nodes for source in node.src if source.buffer is None and source.src]
        same_bits(seed, compiled([*nodes, *inner])[: len(nodes)], together, "with its sources")


def set_threads(patch: pytest.MonkeyPatch, count: int) -> None:
    patch.setattr(type(backend("llvm")), "threads", lambda self: count)


@pytest.mark.slow
def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread, or two that take small pieces as they come, run after run."""
    for seed, nodes in cut_programs():
        set_threads(monkeypatch, 1)
        expected = compiled(nodes)
        set_threads(monkeypatch, 2)
        with monkeypatch.context() as patch:
            patch.setattr(runtime, "PARALLEL_WORK", 0.0)
            patch.setattr(nest, "PARALLEL_ELEMENTS", 64)
            patch.setattr(reduce, "PARTIAL_CHUNKS", 1)
            patch.setattr(reduce, "PARTIAL", CHUNK)
            patch.setattr(reduce, "PIECE_BLOCKS", 1)
            patch.setattr(reduce, "PIECE", ROWS)
            plan = compiled_plan(nodes)
            for _ in range(3):
                same_bits(seed, run(plan, nodes), expected, "two threads")


@pytest.mark.slow
def test_threads_change_no_bit_of_large_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(np.random.default_rng(0).standard_normal((700, 1000)))
    dtype = x.dtype
    total = build.reduce(o.ADD, x, (0, 1))
    rows, columns = build.reduce(o.ADD, x, (1,)), build.reduce(o.ADD, x, (0,))
    shifted = build.elementwise(o.SUBTRACT, dtype, x, build.reshape(rows, (700, 1)))
    turned = build.elementwise(o.ADD, dtype, build.permute(x, (1, 0)), build.reshape(columns, (1000, 1)))
    nodes = [total, rows, columns, shifted, turned, build.elementwise(o.EXP, dtype, x)]
    set_threads(monkeypatch, 1)
    expected = compiled(nodes, library=False)
    set_threads(monkeypatch, 2)
    plan = compiled_plan(nodes)
    for _ in range(5):
        same_bits(0, run(plan, nodes), expected, "two threads")
    for node, alone in zip(nodes, expected, strict=True):
        same_bits(0, compiled([node]), [alone], "alone")
