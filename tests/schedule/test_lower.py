"""What a kernel's values say about themselves: which loops they change with, when they can be computed, what they load."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.engine.realize import compiler
from lazynp.graph import op as o
from lazynp.schedule.fuse import partition
from lazynp.schedule.lower import ACCUMULATE, CHECKED, INSIDE, LOAD, POSITION, SCALAR, Body, Value, lower
from lazynp.schedule.simplify import simplify
from tests.schedule.graphs import layer_norm, matrix, softmax, values
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")


def body_of(wanted: Any) -> Body:
    """The body of the only kernel."""
    (body,) = lower(partition(simplify(program_of(wanted)), compiler().supported)).bodies
    return body


def find(body: Body, op: o.Op) -> list[Value]:
    return [v for v in body.values if v.op is op]


# Ranges that are walked as one -------------------------------------------------------------------------------------------

LOOPS: dict[str, tuple[Any, list[int]]] = {
    "contiguous work of any rank is one loop": (lambda: values(4, 5, 6) * 2, [120]),
    "a row that is broadcast": (lambda: values(4, 5, 6) * values(6), [20, 6]),
    "a column that is broadcast": (lambda: values(4, 5, 6) * values(4, 1, 1), [4, 30]),
    "a window": (lambda: values(4, 8)[:, 1:6] * 2, [4, 5]),
    "whole rows of a window": (lambda: values(9, 4, 8)[1:6] * 2, [160]),
    "a transposition": (lambda: values(4, 5).T * values(5, 4), [5, 4]),
    "a transposition of planes": (lambda: values(4, 5, 6).transpose(1, 2, 0) * 2.0, [30, 4]),
    "rows that are reduced": (lambda: (values(4, 5, 6) * 2).sum(axis=2), [20, 6]),
    "planes that are reduced": (lambda: (values(4, 5, 6) * 2).sum(axis=(1, 2)), [4, 30]),
    "a reduction of everything": (lambda: (values(4, 5, 6) * 2).sum(), [120]),
    "reduced columns stay loops of their own": (lambda: (values(4, 5, 6) * 2).sum(axis=0), [30]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_adjacent_ranges_that_every_access_walks_as_one_are_merged(name: str) -> None:
    build, extents = LOOPS[name]
    assert [r.extent for r in body_of(build()).main] == extents


def test_ranges_of_a_reduction_over_outer_axes_are_merged_too() -> None:
    (total,) = find(body_of((values(4, 5, 6) * 2).sum(axis=(0, 1))), ACCUMULATE)
    assert [r.extent for r in total.ranges] == [20]
    assert total.arg.outer


# What a value knows ------------------------------------------------------------------------------------------------------


def test_softmax_runs_in_three_passes_over_a_row() -> None:
    body = body_of(softmax(matrix(), 1))
    largest, total = find(body, ACCUMULATE)
    assert (largest.arg.op, total.arg.op) == (o.MAXIMUM, o.ADD)
    assert [v.time[1] for v in (largest, total, *find(body, o.DIVIDE))] == [0, 1, 2]
    assert {v.time[0] for v in body.values} == {0}
    assert largest.arg.depth == total.arg.depth == 1


def test_what_follows_a_reduction_of_everything_is_a_later_phase() -> None:
    x = values(50)
    body = body_of(x - x.sum())
    assert [v.time for v in find(body, o.SUBTRACT)] == [(1, 0)]


def test_a_value_changes_with_the_loops_it_reads_along() -> None:
    body = body_of(np.exp(values(4, 1)) * values(4, 5) + values(5))
    i, j = body.main
    free = {v.arg: v.free for v in find(body, LOAD)}
    assert sorted(free.values(), key=len) == sorted([{i}, {j}, {i, j}], key=len)
    (exp,) = find(body, o.EXP)
    assert (exp.free, exp.depth) == ({i}, 1)


def test_weights_add_up_and_start_again_behind_a_reduction() -> None:
    body = body_of(layer_norm())
    for v in body.values:
        if v.op is ACCUMULATE:
            assert v.weight == 0
        else:
            assert v.weight == v.op.cost + sum(s.weight for s in v.src if s.op is not ACCUMULATE)


def test_equal_values_are_one() -> None:
    x = values(8)
    body = body_of([np.exp(x) + 1, np.exp(x) * 2])
    assert (len(find(body, o.EXP)), len(find(body, LOAD)), len(body.outputs)) == (1, 1, 2)


def test_scalars_and_positions_need_no_memory() -> None:
    body = body_of(np.arange(10) * 3)
    assert not find(body, LOAD)
    assert len(body.buffers) == 1
    assert len(find(body, POSITION)) == 1
    assert len(find(body, SCALAR)) == len(body.scalars) == 3


# What is left of movement ------------------------------------------------------------------------------------------------


def test_a_view_is_a_linear_position() -> None:
    (load,) = find(body_of(values(4, 5)[::2, ::-1] * 2), LOAD)
    assert load.index is not None
    assert [load.index.coefficient(r) for r in sorted(load.free, key=lambda r: r.number)] == [10, -1]
    assert not load.guards


def test_a_border_is_a_choice_between_a_guarded_load_and_the_fill() -> None:
    body = body_of(np.pad(values(6) * 2, (1, 2)))
    (choice,) = find(body, o.WHERE)
    (condition,) = find(body, INSIDE)
    (load,) = find(body, LOAD)
    assert choice.src[0] is condition
    assert choice.src[2].op is SCALAR
    assert condition.guards == load.guards
    assert len(load.guards) == 1


def test_a_computed_index_is_checked_before_it_is_read_through() -> None:
    rows = np.asarray(numpy.array([2, 0, 1])) + 0
    body = body_of(values(4, 5)[rows] * 2)
    (checked,) = find(body, CHECKED)
    assert checked.arg == (4, 0)
    assert len(body.flags) == 1
    (load,) = [v for v in find(body, LOAD) if v.src]
    assert load.src == (checked,)


def test_every_value_comes_after_its_sources_and_is_needed() -> None:
    body = body_of(layer_norm())
    needed = {out.value for out in body.outputs}
    for v in reversed(body.values):
        assert v in needed
        needed.update(v.src)
        assert all(source.number < v.number for source in v.src)
