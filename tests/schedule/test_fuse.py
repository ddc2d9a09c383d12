"""Which values share a kernel, which are stored, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lazynp as np
from lazynp.engine.realize import compiler
from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.claims import view_base
from lazynp.schedule.fuse import Partition, partition
from lazynp.schedule.simplify import simplify
from tests.schedule.graphs import matrix, softmax, values, vector
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")


def fused(wanted: Any, supported: Callable[[Program, int], bool] | None = None) -> Partition:
    return partition(simplify(program_of(wanted)), supported or compiler().supported)


def stored(parts: Partition) -> list[tuple[str, str]]:
    """What is stored besides what is asked for, with the reason."""
    entries = parts.program.entries
    return [(entries[e].op.name, reason) for e, reason in sorted(parts.reasons.items()) if e not in parts.program.outputs]


def shared() -> Any:
    x = vector()
    y = np.exp(x)
    return [y + 1, y * 2]


def dear_and_broadcast() -> Any:
    return np.exp(values(200)) * values(5000, 200)


def cheap_and_broadcast() -> Any:
    return (values(200) + 1) * values(50, 200)


def read_by_a_library() -> Any:
    return np.sort(vector() * 2) + 1


def twice_reduced() -> Any:
    x = matrix()
    return softmax(x, 1) @ x


def reduced_columns_of_rows() -> Any:
    x = matrix()
    return x - x.sum(axis=0)


def sum_at_two_indices() -> Any:
    s = values(60, 50).sum(axis=1)
    return s[:30] + s[30:]


def padded_sum() -> Any:
    return np.pad(matrix().sum(axis=1), 1)


# name -> graph, main extents of each kernel, entries a library computes, what is stored besides
TABLE: dict[str, tuple[Callable[[], Any], list[tuple[int, ...]], list[str], list[tuple[str, str]]]] = {
    "a chain is one kernel": (lambda: np.sqrt(vector() * 2 + 1), [(1000,)], [], []),
    "two results of one input": (shared, [(1000,)], [], []),
    "softmax of rows": (lambda: softmax(matrix(), 1), [(50, 200)], [], []),
    "a dear value along a broadcast axis": (
        dear_and_broadcast, [(5000, 200), (200,)], [],
        [("exp", "needed repeatedly along a broadcast axis: computing it 5e+03 times an element costs more than storing it")],
    ),
    "a cheap one": (cheap_and_broadcast, [(50, 200)], [], []),
    "what a library reads is stored": (read_by_a_library, [(1000,), (1000,)], ["call"], [("multiply", "read by call, a library call")]),
    "columns' sums are no part of a row": (
        reduced_columns_of_rows, [(50, 200), (200,)], [], [("reduce", "its axes are not the outermost loops of its consumer")],
    ),
    "a sum that is wanted at two indices": (sum_at_two_indices, [(30,), (60, 50)], [], [("reduce", "a reduction is never repeated")]),
    "a sum behind a border": (padded_sum, [(52,), (50, 200)], [], [("reduce", "a reduction is not computed under a padding condition")]),
    "a fence": (
        lambda: (vector() * 2).contiguous() + 1, [(1000,), (1000,)], [], [("contiguous", "contiguous() was asked for")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_partition(name: str) -> None:
    build, extents, library, reasons = TABLE[name]
    parts = fused(build())
    entries = parts.program.entries
    assert [tuple([r.extent for r in kernel.main]) for kernel in parts.kernels] == extents
    assert [entries[e].op.name for e in parts.library if entries[e].op is not o.OUTPUT] == library
    assert stored(parts) == reasons


def test_nothing_that_a_target_does_not_support_is_in_a_kernel() -> None:
    parts = fused(np.exp(vector()) * 2 + 1, lambda program, e: program.entries[e].op is not o.MULTIPLY)
    entries = parts.program.entries
    assert [entries[e].op for e in parts.library] == [o.MULTIPLY]
    assert [sorted({entries[e].op.name for e, _ in kernel.points} - {"const", "buffer"}) for kernel in parts.kernels] == [["add"], ["exp"]]


def test_a_stored_value_joins_a_kernel_over_its_loops_that_reads_the_same() -> None:
    x = matrix()
    assert len(fused([x.sum(axis=1), (x * 2).max(axis=1)]).kernels) == 1
    assert len(fused([x.sum(axis=1), (matrix() * 2).max(axis=1)]).kernels) == 2


def test_values_do_not_share_a_kernel_with_a_way_round_through_another() -> None:
    """What is added to ``y`` is sorted, which all of ``y`` has to be there for."""
    y = np.exp(vector())
    parts = fused([y, y + np.sort(y)])
    home = parts.home
    assert home[parts.program.outputs[0]] != home[parts.program.outputs[1]]


@pytest.mark.parametrize(("limit", "words"), [("KERNEL_NODES", "expression nodes already"), ("KERNEL_BUFFERS", "arrays already")])
def test_a_full_kernel_takes_no_more(monkeypatch: pytest.MonkeyPatch, limit: str, words: str) -> None:
    monkeypatch.setattr(cost, limit, 5)
    total = vector()
    for _ in range(12):
        total = total + vector() * 2
    parts = fused(total)
    assert len(parts.kernels) > 1
    assert any(words in reason for _, reason in stored(parts))


def test_a_value_wanted_at_many_indices_of_one_kernel_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def windows() -> Any:
        x = vector() + 1
        return sum([x[k : 990 + k] for k in range(1, 9)], x[:990])

    assert len(fused(windows()).kernels) == 1
    monkeypatch.setattr(cost, "KERNEL_POINTS", 8)
    assert [reason for _, reason in stored(fused(windows()))] == ["wanted at more than 8 indices"]


def test_a_write_is_a_kernel_over_its_region() -> None:
    x = values(100, 200) * 1.0
    x[10:90, 50:150] = values(80, 100) * 2
    parts = fused(x)
    (kernel,) = [k for k in parts.kernels if k.bases]
    assert [r.extent for r in kernel.main] == [80, 100]
    assert stored(parts) == [("multiply", "a part of it is overwritten")]


def test_view_base_looks_through_views_not_through_borders() -> None:
    program = simplify(program_of(np.sort(np.pad(vector(), 1)[3:].reshape(-1, 1).T)))
    (call,) = [e for e, entry in enumerate(program.entries) if entry.op is o.CALL]
    assert program.entries[view_base(program, program.entries[call].src[0])].op is o.PAD
