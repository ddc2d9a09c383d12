"""Loop nests of a grid: what they compute is what the processor's kernels compute, to the bit, and their structure is the intended one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.backends.common.compiled import CompiledPlan
from lazynp.codegen import ir
from lazynp.codegen.grid import columns
from lazynp.codegen.grid import nest as grid
from lazynp.codegen.items import KernelItem
from lazynp.codegen.spec import check_kernel
from lazynp.engine.realize import backend
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.graph.op import Op
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.schedule.spec import SpecError
from lazynp.values import config
from tests.codegen.engines import Array, bits, compiled, first_difference, interpreted, run
from tests.codegen.machine import GridMachine
from tests.codegen.programs import program
from tests.codegen.test_random_kernels import batches, close, precision

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning"),  # the values are at issue here
    pytest.mark.usefixtures("recorded"),
]

PROGRAMS = 120
ROUNDED = {"exp", "sin", "log", "tanh"}  # NumPy's functions and the compiled ones differ in last bits


@pytest.fixture(autouse=True)
def _every_pass_is_checked() -> Iterator[None]:
    with config.override(debug=True):
        yield


def on_a_grid(nodes: Sequence[Node]) -> CompiledPlan:
    """Kernels for a grid, which a machine runs."""
    prepare = backend("numpy").prepare
    return CompiledPlan(Program.of(canonicalise(nodes)), GridMachine(prepare), prepare)


def operations(nodes: Sequence[Node]) -> set[Op]:
    seen, pending = set(nodes), list(nodes)
    while pending:
        new = set(pending.pop().src) - seen
        seen |= new
        pending += new
    return {node.op for node in seen}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", batches(PROGRAMS), ids=lambda seeds: f"seeds {seeds.start}-{seeds.stop - 1}")
def test_random_programs_have_the_bits_of_the_processors_kernels(seeds: range) -> None:
    for seed in seeds:
        nodes = program(seed)
        if not nodes:
            continue
        got, expected, oracle = run(on_a_grid(nodes), nodes), compiled(nodes), interpreted(nodes)
        exact = not ROUNDED & {op.name for op in operations(nodes)}
        for k, (a, b, c) in enumerate(zip(got, expected, oracle, strict=True)):
            assert close(a, c, precision([nodes[k]])), f"seed {seed}, output {k}: {first_difference(a, c)}"
            assert not exact or bits(a) == bits(b), f"seed {seed}, output {k}: {first_difference(a, b)}"


# Kinds of launches ------------------------------------------------------------------------------------------------------

ROWS = {
    "elements": (lambda m, x: x * 2 - 1, (300, 7)),
    "several elements a thread": (lambda m, x: x * 2 - 1, (70_000,)),
    "several elements of a row": (lambda m, x: x + x[0], (300, 260)),
    "several elements of a row that is cut": (lambda m, x: x[1:-1, 1:-1] * 2 + x[1:-1, 2:], (302, 263)),
    "short rows": (lambda m, x: x.sum(axis=1), (300, 7)),
    "warps": (lambda m, x: (x - x.max(axis=1, keepdims=True)).sum(axis=1), (20, 400)),
    "blocks": (lambda m, x: (x / x.sum(axis=1, keepdims=True)).max(axis=1), (7, 3000)),
    "long rows": (lambda m, x: x.sum(axis=1), (2, 40_000)),
    "few long rows": (lambda m, x: (x - x.mean(axis=1, keepdims=True)).std(axis=1) + 1, (2, 140_000)),
    "few long rows, and their elements": (lambda m, x: x / x.max(axis=1, keepdims=True), (2, 140_000)),
    "rows of two axes": (lambda m, x: x[:, ::2, :].sum(axis=(1, 2)), (5, 40, 30)),
    "everything, small": (lambda m, x: (x - x.mean()) / x.std(), (700,)),
    "everything, long": (lambda m, x: x.std(), (600, 100)),
    "columns": (lambda m, x: x.std(axis=0), (3000, 5)),
    "columns of many pieces": (lambda m, x: (x * 2).std(axis=0), (66_000, 3)),
    "columns of more rows and of fewer": (lambda m, x: x.sum(axis=(0, 1)) + x[:, 0].sum(axis=0), (600, 4, 5)),
    "columns in the middle": (lambda m, x: x.mean(axis=1) * 2, (3, 1100, 5)),
    "short columns": (lambda m, x: x.min(axis=0), (200, 50)),
    "rows and columns": (lambda m, x: x.sum(axis=(0, 2)), (20, 6, 30)),
    "across": (lambda m, x: x + x.T, (70, 70)),
    "across, batched": (lambda m, x: x.transpose(0, 2, 1) * 3, (3, 50, 70)),
    "all pairs": (lambda m, x: ((x[:, None] - x[None]) ** 2).sum(axis=-1), (40, 9)),
    "nearest of all": (lambda m, x: ((x[:, None] - x[None]) ** 2).sum(axis=-1).max(axis=1), (40, 9)),
    "padded": (lambda m, x: m.pad(x, 2)[1:] + 1, (30, 9)),
    "shifted writes": (lambda m, x: shifted(m, x), (50, 40)),
    "picked": (lambda m, x: x[m.arange(40) * 7 % 30], (30, 9)),
}  # fmt: skip


def shifted(m: Any, x: Any) -> Any:
    u = x.copy()
    u[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1]
    return u


def nodes_of(function: Callable[..., Any], x: Array) -> list[Node]:
    return [node_of(function(np, np.asarray(x)))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_kind_of_launch_has_the_bits_of_the_processors_kernels(name: str) -> None:
    function, shape = ROWS[name]
    x = numpy.random.default_rng(0).standard_normal(shape)
    nodes = nodes_of(function, x)
    (got,), (expected,) = run(on_a_grid(nodes), nodes), compiled(nodes)
    assert not first_difference(got, expected)
    numpy.testing.assert_allclose(got, function(numpy, x), rtol=1e-10, atol=1e-12)


# Structure -------------------------------------------------------------------------------------------------------------


def kernels(function: Callable[..., Any], x: Array) -> list[ir.Kernel]:
    return [item.code for item in on_a_grid(nodes_of(function, x)).schedule.items if isinstance(item, KernelItem)]


def statements(body: Sequence[ir.Statement]) -> Iterator[ir.Statement]:
    for s in body:
        yield s
        if isinstance(s, ir.Loop | ir.If):
            yield from statements(s.body)


def counts(kernel: ir.Kernel) -> dict[str, int]:
    everything = [s for phase in kernel.phases for s in statements(phase.body)]
    loads = [s.memory.space for s in everything if isinstance(s, ir.Load)]
    return {
        "launches": len(kernel.phases),
        "threads": kernel.phases[0].threads,
        "reads": loads.count("buffer"),
        "folds": sum(isinstance(s, ir.Fold) for s in everything),
        "barriers": sum(isinstance(s, ir.Barrier) for s in everything),
        "shared": sum(len(phase.shared) for phase in kernel.phases),
    }


def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


STRUCTURE = {
    "elementwise": (lambda m, x: x + 1, (10, 20), {"launches": 1, "threads": 256, "reads": 1, "folds": 0, "barriers": 0, "shared": 0}),
    "two elements a thread": (lambda m, x: x + 1, (1000, 70), {"launches": 1, "threads": 256, "reads": 3}),
    "softmax of short rows: a warp each, read once": (
        softmax, (100, 300), {"launches": 1, "threads": 128, "reads": 1, "folds": 2, "barriers": 0, "shared": 1}),
    "softmax of longer rows: a block each, read once": (
        softmax, (9, 3000), {"launches": 1, "threads": 256, "reads": 1, "folds": 2, "shared": 3}),
    "sum of everything: one launch": (lambda m, x: x.sum(), (100, 600), {"launches": 1, "threads": 256, "reads": 1, "folds": 1}),
    "sum of few columns: two launches": (lambda m, x: x.sum(axis=0), (3000, 9), {"launches": 2, "reads": 1, "folds": 0}),
    "of very many rows: three": (lambda m, x: (x * 2).sum(axis=0), (66_000, 2), {"launches": 3, "reads": 1, "folds": 0, "shared": 2}),
    "transposed: through shared memory": (lambda m, x: x.T + 1, (100, 1000), {"launches": 1, "reads": 4, "barriers": 1, "shared": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure(name: str) -> None:
    function, shape, expected = STRUCTURE[name]
    (kernel,) = kernels(function, numpy.ones(shape))
    found = counts(kernel)
    assert {key: found[key] for key in expected} == expected


def test_equal_patterns_are_one_kernel_for_every_shape() -> None:
    for name, other in (((50, 300), (71, 400)), ((9, 3000), (12, 4000)), ((100, 9), (333, 12))):
        assert kernels(softmax, numpy.ones(name)) == kernels(softmax, numpy.ones(other))


# What the spec refuses ---------------------------------------------------------------------------------------------------

FLOAT = numpy.dtype("f8")
BARRIER: list[ir.Statement] = [ir.Barrier()]
FAULTS: dict[str, tuple[str, list[ir.Statement], int]] = {
    "a barrier under a condition": ("not all threads of a block", [ir.Integer("c", "eq", "thread", "0"), ir.If("c", BARRIER)], 64),
    "a barrier in a loop of some": ("not all threads of a block", [ir.Loop("i", "thread", "9", BARRIER, False, "64")], 64),
    "a fold of some threads": (
        "not all threads of a warp",
        [ir.Integer("c", "lt", "thread", "5"), ir.If("c", [ir.Constant("x", FLOAT, 1.0), ir.Fold("y", o.ADD, FLOAT, "x")])],
        64,
    ),
    "part of a warp": ("no whole warps", [], 33),
    "an operand of another phase": ("not known", [ir.Loop("i", "0", "v9", [])], 64),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str) -> None:
    message, body, threads = FAULTS[name]
    with pytest.raises(SpecError, match=message):
        check_kernel(ir.Kernel(phases=[ir.Phase(body, count="1", threads=threads)]), ir.Launch())


# The same bits, whatever kind of launch is chosen ------------------------------------------------------------------------

LIMITS = {
    "every row is a launch": {"FEW_ROWS": 1 << 60, "LONG_ROW": 0},
    "no row is": {"FEW_ROWS": 0},
    "nothing is staged": {"SHARED_BYTES": 0},
    "several elements a thread, always": {"ELEMENTS_FROM": 0},
    "several elements of short rows, always": {"ELEMENTS_FROM": 0, "GROUPS": 0},
    "never": {"ELEMENTS_FROM": 1 << 60},
    "columns are combined two by two": {"RESULTS": 2},
    "no column is": {"COLUMNS_ENOUGH": 0},
    "rows are a thread's": {"ALONE": 1 << 60, "ALONE_ROWS": 0},
    "rows are a team's": {"ALONE": 0},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_a_forced_limit_changes_no_bit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for limit, value in LIMITS[name].items():
        monkeypatch.setattr(next(module for module in (cost, columns, grid) if hasattr(module, limit)), limit, value)
    for seed in range(1000, 1025):
        nodes = program(seed)
        if nodes and not ROUNDED & {op.name for op in operations(nodes)}:
            for k, (a, b) in enumerate(zip(run(on_a_grid(nodes), nodes), compiled(nodes), strict=True)):
                assert bits(a) == bits(b), f"seed {seed}, output {k}: {first_difference(a, b)}"


@pytest.mark.parametrize("n", [1 << 24, 1 << 26, 1 << 27])
def test_shared_memory_of_long_rows_needs_no_leave(n: int) -> None:
    x = np.asarray(numpy.ones((300, 1))) + np.arange(n)  # of no memory
    plan = on_a_grid([node_of(x.sum(axis=1)), node_of(x.max(axis=1)), node_of(x.min(axis=1))])
    kernels = [item for item in plan.schedule.items if isinstance(item, KernelItem)]
    used = [sum(int(local.count) * local.dtype.itemsize for local in phase.shared) for item in kernels for phase in item.code.phases]
    assert used and max(used) <= 48 << 10
    assert (max(used) > 0) == (n < 1 << 26)
