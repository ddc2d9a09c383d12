"""What an operation asks of its sources: the points of one kernel, walked from its output."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Loaded, Space
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.movement import NO_GUARDS, Guard, Point, offset_bounds
from lazynp.schedule.rangeify import Kernel, Walk, nontrivial
from tests.schedule.graphs import values
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")


def kernel_over(*extents: int, program: Program | None = None) -> Kernel:
    space = Space(offset_bounds(program.entries) if program else None)
    return Kernel(0, space.ranges(extents), space)


def walked(wanted: Any) -> tuple[Kernel, Program]:
    """All of a program inside one kernel over its output."""
    program = program_of(wanted)
    (output,) = program.outputs
    entry = program.entries[output]
    kernel = kernel_over(*nontrivial(entry.shape), program=program)
    walk = Walk(program, {})
    index = kernel.identity(entry.shape)
    assert index is not None
    pending = [(output, Point(index, NO_GUARDS))]
    for e, point in pending:
        walk.expand(kernel, e, point)
        pending += [s for s in kernel.points[e, point] if s is not None and s not in kernel.points]
    return kernel, program


def asked(kernel: Kernel, program: Program, op: o.Op) -> list[Point]:
    return [point for e, point in kernel.points if program.entries[e].op is op]


# Kernels -----------------------------------------------------------------------------------------------------------------


def test_prefix_is_the_number_of_outermost_loops_an_index_names() -> None:
    kernel = kernel_over(4, 5)
    i, j = map(ix.of, kernel.main)
    table: list[tuple[tuple[Any, ...], int | None]] = [
        ((), 0), ((i,), 1), ((i, j), 2), ((ix.ZERO, i, ix.ZERO, j), 2),
        ((j,), None), ((j, i), None), ((i + 1,), None), ((i * 2,), None), ((i, i), None),
    ]  # fmt: skip
    for index, depth in table:
        assert kernel.prefix(index) == depth, index


def test_identity_is_the_index_of_a_shape_over_the_outermost_loops() -> None:
    kernel = kernel_over(4, 5)
    i, j = map(ix.of, kernel.main)
    table: list[tuple[tuple[int, ...], Any]] = [
        ((), ()), ((4,), (i,)), ((4, 5), (i, j)), ((1, 4, 1, 5), (ix.ZERO, i, ix.ZERO, j)), ((5,), None), ((4, 5, 2), None), ((5, 4), None),
    ]  # fmt: skip
    for shape, index in table:
        assert kernel.identity(shape) == index, shape


def test_a_reduction_walks_the_main_loops_that_follow_or_loops_it_shares() -> None:
    kernel = kernel_over(4, 5)
    assert kernel.open_reduction(1, (5,)) == tuple(kernel.main[1:])
    own = kernel.open_reduction(1, (7,))
    assert [r.extent for r in own] == [7]
    assert own[0] not in kernel.main
    assert kernel.open_reduction(1, (7,)) is own
    assert kernel.open_reduction(0, (7,)) is not own


# Operations --------------------------------------------------------------------------------------------------------------


def test_elementwise_operations_pass_the_index_on_and_broadcast() -> None:
    kernel, program = walked(values(4, 5) * values(5) + values(4, 1))
    i, j = map(ix.of, kernel.main)
    assert {point.index for point in asked(kernel, program, o.BUFFER)} == {(i, j), (j,), (i, ix.ZERO)}


def test_movement_becomes_index_arithmetic() -> None:
    kernel, program = walked(values(4, 5).T[::-1] + 1)
    j, i = map(ix.of, kernel.main)
    (at,) = asked(kernel, program, o.BUFFER)
    row, column = at.index
    ((offset, _),) = [term for term in column.terms if term[0] is not kernel.main[0]]
    assert row == i
    assert column == ix.of(offset) + j * -1


def test_padding_guards_what_is_inside_and_not_its_fill() -> None:
    kernel, program = walked(np.pad(values(6) * 2, 1))
    ((padded, fill),) = [sources for (e, _), sources in kernel.points.items() if program.entries[e].op is o.PAD]
    assert padded is not None
    assert fill is not None
    ((index, extent),) = padded[1].guards
    assert padded[1].index == (index,)
    assert (index.coefficient(kernel.main[0]), extent) == (1, 6)
    assert fill[1] == Point((), NO_GUARDS)
    assert asked(kernel, program, o.MULTIPLY) == [padded[1]]


def test_each_part_that_is_joined_is_asked_for_where_it_lies() -> None:
    a, b = values(3) * 2, values(4) * 3
    kernel, program = walked(np.concatenate([a, b]))
    i = ix.of(kernel.main[0])
    points = asked(kernel, program, o.MULTIPLY)
    assert {(p.index[0], tuple(p.guards)) for p in points} == {(i, (Guard(i, 3),)), (i + -3, (Guard(i + -3, 4),))}


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_opens_ranges_for_the_axes_it_reduces(axis: int) -> None:
    kernel, program = walked((values(4, 5) * 2).sum(axis=axis))
    (kept,) = map(ix.of, kernel.main)
    ((_, ranges),) = kernel.reductions.items()
    (reduced,) = ranges
    assert reduced.extent == (4, 5)[axis]
    (point,) = asked(kernel, program, o.MULTIPLY)
    assert point.index == ((ix.of(reduced), kept) if axis == 0 else (kept, ix.of(reduced)))


def test_a_gather_reads_through_a_computed_index() -> None:
    rows = np.asarray(numpy.array([2, 0, 1, 2])) + 0
    kernel, program = walked(values(3, 5)[rows])
    (atom,) = kernel.gathers
    assert isinstance(atom, Loaded)
    assert (atom.lo, atom.hi) == (0, 2)
    at = next(point for point in asked(kernel, program, o.BUFFER) if len(point.index) == 2)
    assert at.index == (ix.of(atom), ix.of(kernel.main[1]))


def test_a_point_is_expanded_once() -> None:
    x = values(8)
    y = x * 2
    kernel, program = walked((y + 1) * (y - 1))
    assert len(asked(kernel, program, o.MULTIPLY)) == 2  # y, and the product of the sums


def test_what_is_stored_is_loaded_not_computed() -> None:
    program = program_of(values(8) * 2 + 1)
    (output,) = program.outputs
    inner = next(e for e, entry in enumerate(program.entries) if entry.op is o.MULTIPLY)
    kernel = kernel_over(8)
    walk = Walk(program, {inner: "because"})
    at = Point((ix.of(kernel.main[0]),), NO_GUARDS)
    walk.expand(kernel, output, at)
    assert inner in kernel.buffers
    assert walk.requests[inner] == {0: {at: None}}
