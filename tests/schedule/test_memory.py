"""The life of buffers: when they die, whose memory a result takes, what a write may overwrite."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.codegen import pipeline
from lazynp.codegen.items import Schedule
from lazynp.engine.realize import compiler
from lazynp.graph import op as o
from lazynp.graph.index import Formula
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.claims import Claims, claims
from lazynp.schedule.memory import Span, evaluate, lifetimes, meet
from lazynp.schedule.simplify import simplify
from lazynp.values import config
from tests.schedule.graphs import values, vector
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")

F8 = numpy.dtype("f8")


def entries(*shapes: tuple[int, ...], inputs: int = 0) -> list[Entry]:
    return [Entry(o.BUFFER if e < inputs else o.NEGATIVE, (), e, F8, shape) for e, shape in enumerate(shapes)]


# Lifetimes ---------------------------------------------------------------------------------------------------------------

CHAIN = Program(entries((10,), (10,), (20,), (5,), inputs=1), (3,))


@pytest.mark.parametrize(
    ("work", "dead", "peak"),
    [
        # a chain: each dies with its reader; 10 and 20 elements are alive together
        ([([0], [1]), ([1], [2]), ([2], [3])], [[0], [1], [2]], 8 * 30),
        # read again at the end: alive until then
        ([([0], [1]), ([1], [2]), ([2, 1], [3])], [[0], [], [2, 1]], 8 * 35),
        # nobody reads it: dead where it is made
        ([([0], [1, 2]), ([0], [3])], [[1, 2], [0]], 8 * 30),
        # the output does not die, an input does
        ([([0], [3])], [[0]], 8 * 5),
    ],
)
def test_lifetimes(work: Any, dead: list[list[int]], peak: int) -> None:
    assert lifetimes(CHAIN, work) == (dead, peak)


# Boxes -------------------------------------------------------------------------------------------------------------------


def span(start: int, reach: int, step: int = 1, slot: int | None = None) -> Span:
    return Span(Formula(start, () if slot is None else ((slot, 1),)), reach, step)


@pytest.mark.parametrize(
    ("a", "b", "integers", "together"),
    [
        (span(0, 4), span(5, 4), [], False),
        (span(0, 5), span(5, 4), [], True),
        (span(0, 4, slot=0), span(3, 4), [10], False),
        (span(0, 4, slot=0), span(3, 4), [7], True),
        (span(0, 100, 2), span(1, 100, 2), [], False),  # even and odd positions
        (span(0, 100, 2), span(2, 100, 4), [], True),
        (span(0, 100, 2, slot=0), span(0, 100, 2), [3], False),
        (span(7, 0, 0), span(0, 100, 2), [], False),  # one position, an odd one
        (span(8, 0, 0), span(0, 100, 2), [], True),
    ],
)
def test_boxes_meet_where_their_spans_do_on_every_axis(a: Span, b: Span, integers: list[int], together: bool) -> None:
    assert meet((a,), (b,), integers) is meet((b,), (a,), integers) is together
    apart = span(1000, 1), span(0, 1)
    assert not meet((a, apart[0]), (b, apart[1]), integers)


def test_formula_is_evaluated_from_the_offsets_of_a_run() -> None:
    assert evaluate(Formula(5, ((0, 1), (2, -3))), [10, 99, 2]) == 9


# Taking over memory that is free ------------------------------------------------------------------------------------------


def only_first(wanted: Any) -> Schedule:
    """The schedule of the first thing that is wanted: what lies behind a fence is a temporary then, and not kept for the user."""
    program = program_of(wanted)
    program.outputs = program.outputs[:1]
    with config.override(debug=True):
        return pipeline.scheduled(program, compiler())


TAKEN: dict[str, tuple[Any, bool]] = {
    "element by element": (lambda x: np.exp(x) + 1, True),
    "a shape of as many elements": (lambda x: x.reshape(10, 100) * 2, True),
    "after a reduction of it": (lambda x: x - x.sum(), True),
    "neighbours are read": (lambda x: x + np.roll(x, 1), False),
    "backwards": (lambda x: x[::-1] + 1, False),
    "under a border": (lambda x: np.pad(x[1:], (0, 1)), False),
    "another type": (lambda x: x > 1, False),
    "fewer elements": (lambda x: x[1:] + 1, False),
}


@pytest.mark.parametrize("name", TAKEN)
def test_result_takes_a_dying_temporary_read_only_where_it_is_written(name: str) -> None:
    f, expected = TAKEN[name]
    made = only_first(f((vector() * 2).contiguous()))
    assert [bool(item.taken) for item in made.kernels] == [False, expected]


def test_a_temporary_that_lives_on_is_not_taken() -> None:
    x = (vector() * 2).contiguous()
    y = np.exp(x).contiguous()
    made = only_first(y[1:] + x[:-1])
    assert [bool(item.taken) for item in made.kernels] == [False] * 3


# Writing over a base -----------------------------------------------------------------------------------------------------


def update_of(write: Any) -> Any:
    """The only update of a program that writes into a temporary of 300 rows."""
    x = (values(300, 400) * 2).contiguous()
    (update,) = [u for item in only_first(write(x)).kernels for u in item.updates]
    return update


def written(value: Any) -> Any:
    def write(x: Any) -> Any:
        x[10:200, 20:300] = value(x)
        return x

    return write


def test_region_that_reads_itself_is_written_in_place() -> None:
    update = update_of(written(lambda x: x[10:200, 20:300] * 2))
    assert (update.last, update.whole, update.reads) == (True, True, [])


def test_region_that_reads_nothing_of_its_base_is_written_in_place() -> None:
    update = update_of(written(lambda x: values(190, 280) * 2))
    assert (update.last, update.whole, update.reads) == (True, False, [])


def test_reads_of_neighbours_are_compared_at_run_time() -> None:
    update = update_of(written(lambda x: x[11:201, 20:300] * 2))
    assert (update.last, update.whole, len(update.reads)) == (True, False, 1)
    assert [(edge.length, edge.extent) for edge in update.region] == [(190, 300), (280, 400)]


def test_base_that_is_read_later_is_not_overwritten() -> None:
    def write(x: Any) -> Any:
        before = x + 1
        x[10:200, 20:300] = values(190, 280) * 2
        return before * np.sort(x.sum(axis=1, keepdims=True))

    assert not update_of(write).last


# Claims ------------------------------------------------------------------------------------------------------------------


def test_large_inputs_that_are_overwritten_in_small_part_are_claimed() -> None:
    def claimed(rows: int, columns: int, part: int) -> bool:
        x = values(rows, columns)
        x[:part] = values(part, columns) * 2
        return bool(claims(simplify(program_of(x))))

    assert cost.CLAIM_BYTES == 8 * 64 * 128
    assert claimed(64, 128, 8)
    assert claimed(64, 128, 32)
    assert not claimed(64, 128, 33)  # more than half
    assert not claimed(63, 128, 8)  # too small


def test_claims_that_were_for_nothing_again_and_again_are_given_up() -> None:
    found = Claims([3])
    for contested in [True] * (cost.CLAIM_CONTESTS - 1) + [False] + [True] * (cost.CLAIM_CONTESTS - 1):
        found.settled(contested)
    assert found == [3]
    found.settled(True)
    assert found == []
