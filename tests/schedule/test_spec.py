"""The specification of each phase finds faults that a pass could make."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazynp
from lazynp.codegen import ir, pipeline, spec
from lazynp.codegen.items import KernelItem, Schedule
from lazynp.engine.realize import compiler, forget_plans
from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.fuse import Partition, partition
from lazynp.schedule.lower import ACCUMULATE, LOAD
from lazynp.schedule.movement import Point
from lazynp.schedule.simplify import simplify
from lazynp.schedule.spec import rule_of
from lazynp.schedule.spec_rules import SpecError
from lazynp.values import config
from lazynp.values.records import Record
from tests.schedule.graphs import GRAPHS, Graph, layer_norm, matrix, softmax, stencil, stencils, vector
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")

F4, F8, I8, BOOL = (np.dtype(c) for c in ("f4", "f8", "i8", "?"))


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_every_graph_is_within_the_specification(graph: Graph) -> None:
    with config.override(debug=True):
        made, sources = pipeline.rendered(program_of(graph.build()), compiler())
    assert len(sources) == len(made.kernels)


# Programs ----------------------------------------------------------------------------------------------------------------

A = Entry(o.BUFFER, (), 0, F8, (4, 6))  # entry 0 of every faulty program
C = Entry(o.CONST, (), 0, F8, ())  # entry 1
M = Entry(o.BUFFER, (), 1, BOOL, (4, 6))  # entry 2
N = Entry(o.BUFFER, (), 2, I8, (5,))  # entry 3

FAULTS: dict[str, tuple[Entry, str]] = {
    "a source that comes later": (Entry(o.NEGATIVE, (4,), None, F8, (4, 6)), "come before"),
    "two sources of a unary operation": (Entry(o.EXP, (0, 0), None, F8, (4, 6)), "2 sources"),
    "a sum of two types": (Entry(o.ADD, (0, 3), None, F8, (4, 6)), "without a cast"),
    "a comparison that is no bool": (Entry(o.LESS, (0, 1), None, F8, (4, 6)), "not bool"),
    "a condition that is no bool": (Entry(o.WHERE, (0, 0, 1), None, F8, (4, 6)), "condition"),
    "bits of another size": (Entry(o.BITCAST, (2,), None, F8, (4, 6)), "do not fit"),
    "the real part of a real": (Entry(o.REAL, (0,), None, F8, (4, 6)), "is not"),
    "shapes that do not broadcast": (Entry(o.EQUAL, (0, 3), None, BOOL, (4, 6)), "mixes|broadcast"),
    "a shape that is not the sources'": (Entry(o.NEGATIVE, (0,), None, F8, (6, 4)), "not the sources'"),
    "a reshape of another size": (Entry(o.RESHAPE, (0,), None, F8, (25,)), "not reshaped"),
    "a movement that converts": (Entry(o.RESHAPE, (0,), None, F4, (24,)), "makes float32"),
    "axes that are no permutation": (Entry(o.PERMUTE, (0,), (0, 0), F8, (4, 4)), "no permutation"),
    "a broadcast that shrinks": (Entry(o.EXPAND, (0,), None, F8, (4, 1)), "does not broadcast"),
    "a slice past the end": (Entry(o.SLICE, (0,), ((-1, 1), (-1, 2)), F8, (4, 4)), "do not fit"),
    "a slice that stands still": (Entry(o.SLICE, (0,), ((-1, 1), (-1, 0)), F8, (4, 4)), "no start and step"),
    "a slice of too few axes": (Entry(o.SLICE, (0,), ((-1, 1),), F8, (4,)), "a region of"),
    "a border inside the array": (Entry(o.PAD, (0, 1), (0, 0), F8, (4, 5)), "does not lie in"),
    "a fill of another type": (Entry(o.PAD, (0, 2), (0, 0), F8, (4, 8)), "fill"),
    "a reduction that does not combine": (Entry(o.REDUCE, (0,), (o.SUBTRACT, (1,)), F8, (4,)), "does not combine"),
    "a reduction over no axis": (Entry(o.REDUCE, (0,), (o.ADD, ()), F8, (4, 6)), "axes"),
    "a reduction over an axis too many": (Entry(o.REDUCE, (0,), (o.ADD, (2,)), F8, (4, 6)), "axes"),
    "a reduction that keeps its axis": (Entry(o.REDUCE, (0,), (o.ADD, (1,)), F8, (4, 6)), "without axes"),
    "a running sum of another shape": (Entry(o.SCAN, (0,), (o.ADD, 0), F8, (4,)), "running"),
    "indices that are no integers": (Entry(o.GATHER, (0, 1), None, F8, (6,)), "indices"),
    "a gather of another shape": (Entry(o.GATHER, (0, 3), None, F8, (5,)), "gathered"),
    "a write of another type": (Entry(o.STORE, (0, 2), ((-1, 1), (-1, 1)), F8, (4, 6)), "stored in"),
    "parts that do not fill": (Entry(o.CONCAT, (0, 0), 0, F8, (7, 6)), "do not fill"),
    "parts of other extents": (Entry(o.CONCAT, (0, 0), 0, F8, (8, 5)), "other extents"),
    "a fence that converts": (Entry(o.CONTIGUOUS, (0,), None, F4, (4, 6)), "float32"),
    "an output of no call": (Entry(o.OUTPUT, (0,), 0, F8, (4, 6)), "library call"),
    "a constant of a shape": (Entry(o.CONST, (), 0, F8, (3,)), "no shape"),
    "a buffer without a number": (Entry(o.BUFFER, (), -1, F8, (3,)), "parameter number"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_entry_is_named(fault: str) -> None:
    entry, words = FAULTS[fault]
    with pytest.raises(SpecError, match=f"entry 4, {entry.op!r}.*({words})"):
        spec.check_structure(Program([A, C, M, N, entry], (4,)))


def test_every_operation_has_a_rule() -> None:
    assert all(rule_of(op) is not None for op in vars(o).values() if isinstance(op, o.Op))


SUM = Entry(o.ADD, (0, 1), None, F8, (4, 6))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (Program([A, C, M, SUM], (3,), origins=[0] * 4), "entry 2, BUFFER: nothing depends on it"),
        (Program([A, C, SUM, SUM, SUM._replace(src=(2, 3))], (4,), origins=[0] * 5), "entry 3, ADD: the same as entry 2"),
        (Program([A, C, SUM], (2,)), "origins"),
        (Program([A, C, SUM], (3,), origins=[0] * 3), "outputs"),
        (
            Program([A._replace(shape=(0, 6)), Entry(o.REDUCE, (0,), (o.ADD, (0,)), F8, (6,))], (1,), origins=[0] * 2),
            "entry 1, REDUCE: made of nothing",
        ),
    ],
)
def test_program_that_is_not_simplified_is_found(program: Program, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        spec.check_program(program)


# Partitions --------------------------------------------------------------------------------------------------------------


def parts_of(wanted: Any) -> Partition:
    return partition(simplify(program_of(wanted)), compiler().supported)


def no_home(parts: Partition) -> None:
    parts.home.clear()


def another_home(parts: Partition) -> None:
    parts.home[parts.program.outputs[0]] = 7


def root_inside_a_loop(parts: Partition) -> None:
    (value, point), e = parts.kernels[0].roots[0]
    parts.kernels[0].roots[0] = ((value, Point((point.index[0] + 1,), point.guards)), e)


def point_left_out(parts: Partition) -> None:
    kernel = parts.kernels[0]
    kernel.points.pop(next(request for request in kernel.points if parts.program.entries[request[0]].op is o.MULTIPLY))


def index_outside(parts: Partition) -> None:
    kernel = parts.kernels[0]
    (e, point), sources = next(iter(kernel.points.items()))
    kernel.points[e, Point((point.index[0] + 5,), point.guards)] = sources


def range_of_nobody(parts: Partition) -> None:
    kernel = parts.kernels[0]
    (e, _), sources = next(iter(kernel.points.items()))
    kernel.points[e, Point((ix.of(ix.Range(99, 3, "r99")),), frozenset())] = sources


def rank_too_high(parts: Partition) -> None:
    kernel = parts.kernels[0]
    (e, point), sources = next(iter(kernel.points.items()))
    kernel.points[e, Point((*point.index, ix.ZERO), frozenset())] = sources


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (no_home, "stored by nobody"),
        (another_home, "at home elsewhere"),
        (root_inside_a_loop, "not over the outermost loops"),
        (point_left_out, "neither computed here nor stored"),
        (index_outside, "leaves an axis"),
        (range_of_nobody, "no loop of the kernel"),
        (rank_too_high, "2 indices for shape"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_faulty_partition_is_found(fault: Callable[[Partition], None], words: str) -> None:
    parts = parts_of(vector() * 2 + 1)
    spec.check_partition(parts)
    fault(parts)
    with pytest.raises(SpecError, match=words):
        spec.check_partition(parts)


def test_reduction_over_other_ranges_is_found() -> None:
    parts = parts_of(matrix().sum(axis=1))
    kernel = parts.kernels[0]
    (request,) = kernel.reductions
    kernel.reductions[request] = (kernel.main[0],)
    with pytest.raises(SpecError, match="reduces"):
        spec.check_partition(parts)


# Bodies and kernels ------------------------------------------------------------------------------------------------------


def item_of(wanted: Any) -> tuple[KernelItem, Program]:
    made = pipeline.scheduled(program_of(wanted), compiler())
    (item,) = made.items
    assert isinstance(item, KernelItem)
    return item, made.program


def values_backwards(item: KernelItem) -> None:
    item.body.values.reverse()


def load_outside(item: KernelItem) -> None:
    load = next(v for v in item.body.values if v.op is LOAD and v.index is not None)
    assert load.index is not None
    load.index = load.index + 10**6


def load_of_the_output(item: KernelItem) -> None:
    next(v for v in item.body.values if v.op is LOAD).arg = item.body.outputs[0].buffer


def load_as_another_type(item: KernelItem) -> None:
    next(v for v in item.body.values if v.op is LOAD).dtype = F4


def half_an_output(item: KernelItem) -> None:
    item.body.outputs[0].index = ix.ZERO


def loop_forgotten(item: KernelItem) -> None:
    item.body.main.pop()


def reduction_of_nothing(item: KernelItem) -> None:
    next(v for v in item.body.values if v.op is ACCUMULATE).ranges = ()


def test_an_index_forgotten_by_its_load_is_found() -> None:
    # Each part is one number, read where the computed index falls into it: only the guards go through the index.
    x = lazynp.concatenate([vector()[k : k + 1] for k in (5, 3, 8)])
    item, program = item_of(x[lazynp.asarray([2, 0, 1])])
    load = next(v for v in item.body.values if v.op is LOAD and v.guards)
    assert load.src
    load.src = ()
    with pytest.raises(SpecError, match="not what it is computed from"):
        spec.check_body(item.body, program)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (values_backwards, "before its sources"),
        (load_outside, "nothing guards"),
        (load_of_the_output, "which the kernel writes"),
        (load_as_another_type, "as float32"),
        (half_an_output, "outer 2 loops"),
        (loop_forgotten, "no loop of the body|outer"),
        (reduction_of_nothing, "over"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_faulty_body_is_found(fault: Callable[[KernelItem], None], words: str) -> None:
    item, program = item_of(softmax(matrix(), 1))
    spec.check_body(item.body, program)
    fault(item)
    with pytest.raises(SpecError, match=words):
        spec.check_body(item.body, program)


def find(code: ir.Kernel, kind: type) -> tuple[list[Any], int]:
    """The first statement of a kind: the block it stands in, and where."""
    pending: list[list[Any]] = [phase.body for phase in code.phases]
    while pending:
        block = pending.pop(0)
        for k, statement in enumerate(block):
            if isinstance(statement, kind):
                return block, k
            if isinstance(statement, ir.Loop | ir.If):
                pending.append(statement.body)
    raise AssertionError(f"no {kind.__name__}")


def edit(kind: type[Record], /, **changes: Any) -> Callable[[ir.Kernel], None]:
    """A fault: the first statement of a kind with other fields."""

    def fault(code: ir.Kernel) -> None:
        block, k = find(code, kind)
        statement = block[k]
        block[k] = kind(**{name: getattr(statement, name) for name in kind.__match_args__} | changes)

    return fault


def remove(kind: type) -> Callable[[ir.Kernel], None]:
    def fault(code: ir.Kernel) -> None:
        block, k = find(code, kind)
        del block[k]

    return fault


def twice(kind: type) -> Callable[[ir.Kernel], None]:
    def fault(code: ir.Kernel) -> None:
        block, k = find(code, kind)
        block.insert(k, block[k])

    return fault


def unmarked(code: ir.Kernel) -> None:
    code.written = set()


KERNEL_FAULTS: dict[str, tuple[Callable[[ir.Kernel], None], str]] = {
    "an operand from nowhere": (edit(ir.Compute, args=("v999", "v999")), "not known here|v999"),
    "an operand of another type": (edit(ir.Store, dtype=F4), "holds float64, not float32"),
    "an unknown integer operation": (edit(ir.Integer, kind="pow"), "no integer operation"),
    "a definition left out": (remove(ir.Load), "not known here"),
    "a definition made twice": (twice(ir.Load), "defined twice"),
    "memory that is not there": (edit(ir.Load, memory=ir.Memory("workspace", 5)), "there is no"),
    "a load as another type": (edit(ir.Load, dtype=I8), "holds float64"),
    "a loop to nowhere": (edit(ir.Loop, hi="n99"), "not known here"),
    "a result that is not marked": (unmarked, "marked as written"),
    "another operation's dtype": (edit(ir.Compute, op=o.ISNAN), "sources|bool"),
}


@pytest.mark.parametrize("fault", KERNEL_FAULTS)
def test_faulty_kernel_is_found(fault: str) -> None:
    make, words = KERNEL_FAULTS[fault]
    item, _ = item_of(layer_norm())
    code = copy.deepcopy(item.code)
    code.written = {next(iter(item.code.written))}
    spec.check_kernel(item.code, item.launch)
    if "which the kernel writes" in words:
        make = edit(ir.Load, memory=ir.Memory("buffer", next(iter(code.written))))
    make(item.code)
    with pytest.raises(SpecError, match=words):
        spec.check_kernel(item.code, item.launch)


def test_arguments_that_are_not_passed_are_found() -> None:
    item, _ = item_of(vector() + 1)
    item.launch.integers.pop()
    with pytest.raises(SpecError, match="integers"):
        spec.check_kernel(item.code, item.launch)


def out_of_order(made: Schedule) -> None:
    made.items.reverse()


def dead_too_early(made: Schedule) -> None:
    made.items[0].dead = list(made.items[0].writes)


def dead_output(made: Schedule) -> None:
    made.items[-1].dead = list(made.program.outputs)


@pytest.mark.parametrize(("fault", "words"), [(out_of_order, "do not exist yet"), (dead_too_early, "no more"), (dead_output, "in the end")])
def test_faulty_schedule_is_found(fault: Callable[[Schedule], None], words: str) -> None:
    made = pipeline.scheduled(program_of((stencil(vector())).contiguous() * 2), compiler())
    spec.check_memory(made)
    fault(made)
    with pytest.raises(SpecError, match=words):
        spec.check_memory(made)


def test_source_that_is_missing_or_another_is_found() -> None:
    made, sources = pipeline.rendered(program_of(stencils(2)), compiler())
    assert len(sources) == 2
    spec.check_rendered(pipeline.Rendered(made, sources))
    assert sources[0] == sources[1]
    for faulty in ([sources[0], ""], [sources[0], sources[1] + " "]):
        with pytest.raises(SpecError, match="source: kernel 1"):
            spec.check_rendered(pipeline.Rendered(made, faulty))


# Where it runs -----------------------------------------------------------------------------------------------------------


def test_checks_run_under_debug_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    checks = ["check_structure", *[step.check for step in pipeline.PASSES]]
    assert len(set(checks)) == len(checks)
    for name in checks:
        monkeypatch.setattr(spec, name, lambda _, name=name: ran.append(name))
    for debug in (False, True):
        with config.override(backend="llvm", tier="compiled", eager=False, debug=debug):
            forget_plans()
            (vector() + 1).realize()
        assert ran == (checks if debug else [])
    forget_plans()
