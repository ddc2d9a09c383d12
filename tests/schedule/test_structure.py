"""What the scheduler makes of named programs: kernels, library calls, bytes; and that its work grows as the program does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.codegen import ir, pipeline
from lazynp.codegen.items import KernelItem, Schedule
from lazynp.codegen.measure import measure
from lazynp.engine.realize import compiler
from lazynp.graph import build, report
from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.schedule.fuse import partition
from lazynp.values import config
from tests.schedule.graphs import GRAPHS, Graph, stencil, values, vector
from tests.schedule.plans import measured, scheduled

pytestmark = pytest.mark.usefixtures("recorded")

F8 = numpy.dtype("f8")


def test_names_are_unique() -> None:
    assert len({graph.name for graph in GRAPHS}) == len(GRAPHS) >= 40


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_schedule_is_as_predicted(graph: Graph) -> None:
    schedule = scheduled(graph.build())
    m = measure(schedule)
    predicted = (graph.kernels, graph.library, graph.loads, graph.stores, graph.scratch)
    assert (m.kernels, m.library, m.loaded, m.stored, m.scratch) == predicted, schedule.partition.reasons


@pytest.mark.parametrize("graph", [g for g in GRAPHS if not g.because], ids=lambda graph: graph.name)
def test_loads_are_the_distinct_inputs_unless_the_row_says_why_not(graph: Graph) -> None:
    schedule = scheduled(graph.build())
    inputs = {e for item in schedule.items for e in item.reads}
    entries = schedule.program.entries
    assert graph.loads == sum(_nbytes(entries[e]) for e in inputs)


def _nbytes(entry: Any) -> int:
    size = entry.dtype.itemsize
    for n in entry.shape:
        size *= n
    return int(size)


def test_sum_of_a_range_runs_nothing() -> None:
    before = report.counters()
    assert int(np.arange(1000).sum()) == 499_500
    after = report.counters()
    assert (after["kernels"], after["schedule_misses"]) == (before["kernels"], before["schedule_misses"])


def test_each_exponential_of_softmax_is_computed_once() -> None:
    schedule = scheduled(next(g for g in GRAPHS if g.name == "softmax of rows").build())
    (item,) = schedule.items
    assert isinstance(item, KernelItem)
    # Twice in the text: the body of a chunk and its remainder, which share the elements between them.
    assert sum(statement.op.name == "exp" for statement in statements(item.code) if isinstance(statement, ir.Compute)) == 2
    assert sum(statement.op.name == "divide" for statement in statements(item.code) if isinstance(statement, ir.Compute)) == 1


def statements(code: ir.Kernel) -> list[ir.Statement]:
    found: list[ir.Statement] = []
    pending = [statement for phase in code.phases for statement in phase.body]
    while pending:
        statement = pending.pop()
        found.append(statement)
        if isinstance(statement, ir.Loop | ir.If):
            pending += statement.body
    return found


def test_reductions_sit_at_the_loop_they_belong_to() -> None:
    """In a centred matrix, a row's mean is divided once a row, not once an element."""
    x = values(50, 200)
    (item,) = scheduled(x - x.mean(axis=1, keepdims=True)).items
    assert isinstance(item, KernelItem)
    (phase,) = item.code.phases
    (rows,) = phase.body
    assert isinstance(rows, ir.Loop)
    assert [s.op.name for s in rows.body if isinstance(s, ir.Compute)] == ["divide"]
    loops = [s for s in rows.body if isinstance(s, ir.Loop)]
    assert [s.op.name for s in loops[-1].body if isinstance(s, ir.Compute)] == ["subtract"]


def test_reasons_are_kept_for_what_is_stored() -> None:
    row = np.exp(values(200)) * values(50, 200)
    reasons = scheduled(row).partition.reasons.values()
    assert any("broadcast axis" in reason for reason in reasons)


def test_schedule_is_the_same_every_time() -> None:
    for graph in GRAPHS:
        first, second = scheduled(graph.build()), scheduled(graph.build())
        assert repr([code(item) for item in first.items]) == repr([code(item) for item in second.items]), graph.name


def code(item: Any) -> Any:
    return (item.code, item.launch) if isinstance(item, KernelItem) else item.program.entries


def test_temporaries_die_where_they_are_read_last() -> None:
    u = values(100_000)
    for _ in range(6):
        u = stencil(u)
    schedule = scheduled(u)
    assert [len(item.dead) for item in schedule.items] == [1] * 6  # the first is the input
    assert schedule.peak_bytes < 2 * 8 * 100_000


# Operands of products ----------------------------------------------------------------------------------------------------

TURNED: dict[str, tuple[Callable[..., Any], bool]] = {
    "weighted rows": (lambda m, x, r: (r * x.T) @ x, True),
    "a chain": (lambda m, x, r: m.exp(-(x.T * 2.0 - r) / 99) @ x, True),
    "two transposes": (lambda m, x, r: m.dot(m.where(x.T > 0, x.T, r), x), True),
    "a column": (lambda m, x, r: x @ (x.T * m.arange(x.shape[1])[:, None]), True),
    "one that is not": (lambda m, x, r: (x.T + x.reshape(x.shape[::-1])) @ x, False),
    "read twice": (lambda m, x, r: m.sum((y := r * x.T) @ x) + m.max(y + y[0, 0]), False),
}


@pytest.mark.parametrize("name", TURNED)
def test_operand_of_a_product_is_stored_as_what_it_is_computed_from_lies(name: str) -> None:
    f, turned = TURNED[name]
    x = numpy.random.default_rng(0).integers(-9, 9, (70, 40)).astype("f8")
    r = numpy.arange(70.0)
    y, s = np.asarray(x), np.asarray(r)
    made = scheduled(f(np, y, s))
    stored = {made.program.entries[e].shape for item in made.items if isinstance(item, KernelItem) for e in item.writes}
    assert ((70, 40) in stored, (40, 70) in stored) == (turned, not turned)
    with config.override(tier="compiled", debug=True):
        numpy.testing.assert_allclose(f(np, y, s), f(numpy, x, r), rtol=1e-13, atol=1e-12)


# What a library reads of windows and broadcasts, and the value that a kernel writes for it.
WINDOWS: dict[str, tuple[Callable[..., Any], tuple[int, ...] | None]] = {
    "sorted": (lambda m, w, x: m.sort(w, axis=1), (94, 7)),
    "sums along them": (lambda m, w, x: m.cumsum(w, axis=1), (94, 7)),
    "a product": (lambda m, w, x: w @ x[:7], (800,)),  # rows repeated, one longer than the array
    "flat": (lambda m, w, x: m.sort(w.reshape(-1)), (658,)),
    "a broadcast": (lambda m, w, x: m.sort(m.broadcast_to(x, (3, 100)).reshape(-1)), (300,)),
    "no more than there is": (lambda m, w, x: m.sort(x.reshape(10, 10).T.reshape(-1)), None),
    "a view": (lambda m, w, x: m.sort(m.broadcast_to(x, (3, 100)), axis=0), None),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_that_a_library_reads_are_written_by_a_kernel(name: str) -> None:
    f, written = WINDOWS[name]
    x = numpy.random.default_rng(0).integers(-9, 9, 100).astype("f8")
    y = np.asarray(x)
    wide = np.lib.stride_tricks.sliding_window_view
    made = scheduled(f(np, wide(y, 7), y))
    stored = [made.program.entries[e].shape for item in made.items if isinstance(item, KernelItem) for e in item.writes]
    assert stored == ([] if written is None else [written])
    with config.override(tier="compiled", debug=True):
        numpy.testing.assert_array_equal(f(np, wide(y, 7), y), f(numpy, numpy.lib.stride_tricks.sliding_window_view(x, 7), x))


# Growth ----------------------------------------------------------------------------------------------------------------


# Nodes are made directly: arrays never let that many become pending.


def chain(length: int) -> Program:
    x, half = node_of(vector()), build.const(0.5, F8)
    for k in range(length):
        x = build.elementwise(o.MULTIPLY if k % 2 else o.ADD, F8, x, half)
    return Program.of(canonicalise([x]))


def expression(length: int) -> Program:
    """One expression over two arrays, most of whose values are used twice."""
    x, y, quarter = node_of(vector()), node_of(values(1000)), build.const(0.25, F8)
    for _ in range(length // 3):
        product = build.elementwise(o.ADD, F8, build.elementwise(o.MULTIPLY, F8, x, y), quarter)
        x, y = product, build.elementwise(o.SUBTRACT, F8, x, y)
    return Program.of(canonicalise([build.elementwise(o.ADD, F8, x, y)]))


def schedule_of(program: Program) -> Schedule:
    return pipeline.scheduled(program, compiler())


def calls_made(action: Callable[[], object]) -> int:
    """Calls of Python functions: a count of work that does not depend on the machine."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call":
            count += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.slow
@pytest.mark.parametrize(("grow", "length"), [(chain, 1000), (expression, 600), (expression, 1200)])
def test_scheduling_grows_linearly(grow: Callable[[int], Program], length: int) -> None:
    def work(n: int) -> int:
        program = grow(n)
        return calls_made(lambda: schedule_of(program))

    work(6)
    assert work(2 * length) < 2.2 * work(length)


@pytest.mark.slow
def test_chain_of_a_hundred_thousand_operations() -> None:
    """No pass recurses, no kernel outgrows its limit, and kernels are few: about one for each full one."""
    length = 100_000
    m = measure(schedule_of(chain(length)))
    assert all(len(step.computes) <= cost.KERNEL_NODES + 2 for step in m.steps)
    assert sum(len(step.computes) for step in m.steps) == length
    assert m.kernels <= length // cost.KERNEL_NODES + 1
    assert m.loaded == m.stored == 8000 * m.kernels


def test_no_kernel_outgrows_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "KERNEL_NODES", 20)
    schedule = schedule_of(expression(600))
    assert len(schedule.items) > 20
    assert max(len(kernel.points) for kernel in schedule.partition.kernels) < 60


def test_many_inputs_are_split_over_kernels() -> None:
    total = vector()
    for _ in range(3 * cost.KERNEL_BUFFERS):
        total = total + values(1000)
    m = measured(total)
    assert 3 <= m.kernels <= 4
    assert max(len(step.reads) for step in m.steps) <= cost.KERNEL_BUFFERS + 2


def test_partition_asks_the_target_once_per_operation() -> None:
    asked = 0

    def supported(program: Any, e: int) -> bool:
        nonlocal asked
        asked += 1
        return True

    partition(chain(500), supported)
    assert asked == 500


MOVED: dict[str, Callable[[Any, Any], Any]] = {
    "tile": lambda x, v: np.tile(v, 60),
    "repeat": lambda x, v: np.repeat(v, 50),
    "ravel of a transposed array": lambda x, v: x.T.ravel(),
    "backwards": lambda x, v: x[:, ::-1] * 2,
    "part of a reshape": lambda x, v: x[1:-1, 1:-1] + x[2:, :-2],
    "every third": lambda x, v: x[2::3, 40:3:-3] * 2,
    "joined": lambda x, v: np.concatenate([x, x * 2]),
    "joined along the other axis": lambda x, v: np.concatenate([x, x * 2], axis=1),
    "padded": lambda x, v: np.pad(x, 2) + 1,
    "rolled": lambda x, v: np.roll(x, 3, axis=0),
    "blocks": lambda x, v: x.reshape(6, 10, 5, 10).transpose(0, 2, 1, 3).reshape(30, 100) + 1,
    "outer product in one row": lambda x, v: (v[:, None] * v).ravel(),
    "written part": lambda x, v: _written(x * 1),
}  # fmt: skip


def _written(x: Any) -> Any:
    x[2:-2, ::2] = x[2:-2, ::2] * 3
    return x


@pytest.mark.parametrize("name", MOVED)
def test_no_element_costs_a_division(name: str) -> None:
    """Of arrays in shapes that reshapes have given them."""
    x, v = (np.array(numpy.arange(float(n))) for n in (3000, 50))
    y = MOVED[name](x.reshape(60, 50), v)
    kernels = [item for item in np.schedule(y).items if type(item) is KernelItem]
    found = [statement for item in kernels for phase in item.code.phases for statement in _statements(phase.body)]
    assert found and not [s for s in found if isinstance(s, ir.Integer) and s.kind in ("div", "rem")]


@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_parts_of_what_was_moved_by_the_same_number(tier: str) -> None:
    """One parameter starts several slices, of which one says more of it than another."""
    calls: list[Callable[[Any, Any], Any]] = [
        lambda np, b: np.roll(b, -1, axis=0)[1] + 1,
        lambda np, b: np.roll(np.concatenate([b * 2, np.sqrt(b * 2)]), -2, axis=0)[2:3] * 2.0,
        lambda np, b: np.roll(b[1:], 1, axis=0)[1:] + np.pad(b, 1)[1:3, 1:-1],
        lambda np, b: np.roll(np.roll(b, 2, axis=0)[2:], 2, axis=1)[:, 2:],
        lambda np, b: np.concatenate([b, b])[3:][::-1][3:] * 2,
    ]
    b = numpy.arange(40.0).reshape(4, 10)
    with config.override(tier=tier):
        for call in calls:
            assert numpy.array_equal(numpy.asarray(call(np, np.array(b) * 1)), call(numpy, b))


def _statements(block: Any) -> list[Any]:
    found = []
    for statement in block:
        found.append(statement)
        for part in ("body", "then", "otherwise"):
            found += _statements(getattr(statement, part, ()))
    return found
