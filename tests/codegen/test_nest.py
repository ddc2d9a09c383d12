"""The loops around a kernel's statements: which loops there are, what runs in each, and which threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.llvm import render as llvm_render
from lazynp.codegen import ir, nest
from lazynp.codegen.emit import LONG_ROW
from lazynp.codegen.nest import Nest
from lazynp.engine.realize import forget_plans
from lazynp.schedule import cost
from lazynp.values import config
from tests.schedule.graphs import matrix, softmax, values, vector
from tests.schedule.plans import scheduled

pytestmark = pytest.mark.usefixtures("recorded")


def outline(statements: Iterable[ir.Statement]) -> str:
    """Loops, operations and stores to buffers, by name."""
    parts = []
    for s in statements:
        match s:
            case ir.Loop():
                parts.append(f"{'lanes' if s.lanes else 'for'}[{outline(s.body)}]")
            case ir.If():
                parts.append(f"if[{outline(s.body)}]")
            case ir.Compute():
                parts.append(s.op.name)
            case ir.Store(memory=memory) if memory.space == "buffer":
                parts.append("store")
            case ir.Halve() | ir.Push() | ir.Collect():
                parts.append(type(s).__name__.lower())
    return " ".join(parts)


def phases(wanted: Any) -> list[str]:
    (item,) = scheduled(wanted).kernels
    return [f"{'each' if phase.count else 'once'}: {outline(phase.body)}" for phase in item.code.phases]


SUM = "lanes[] for[lanes[add]] for[add] halve"  # a row of at most a chunk: clear the lanes, whole groups, the rest, halve
COUNT = "for[if[for[add]] if[for[]]]"  # a row of results to binary counters: on each level it takes over what is there, or stays
BLOCKS = f"for[for[] for[for[add add add add]] for[for[add]] {COUNT}]"  # of rows: clear, four rows at a time, the rest
PRODUCTS = "for[lanes[] for[lanes[multiply add]] for[multiply add] halve push] collect"
NEAREST = "not_equal equal bitwise_or cast multiply add where minimum"
TABLE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "contiguous work of any rank is one loop": (lambda: values(4, 5, 6) * 2 + 1, ["each: for[multiply add store]"]),
    "what a row shares is computed once a row": (lambda: np.exp(values(50, 1)) * matrix(), ["each: for[exp for[multiply store]]"]),
    "softmax: three passes over a row, which one loop holds": (
        lambda: softmax(matrix(), 1),
        ["each: for[lanes[] for[lanes[maximum]] for[maximum] halve lanes[] for[lanes[subtract exp add]] for[subtract exp add] halve "
         "for[divide store]]"],
    ),
    "a reduction that two passes need is kept, not computed again": (
        lambda: (values(50, 1, 600) * values(90, 600)).sum(axis=2).argmin(axis=1),
        [f"each: for[lanes[] for[lanes[{PRODUCTS} minimum]] for[{PRODUCTS} minimum] halve "
         f"lanes[] for[lanes[{NEAREST}]] for[{NEAREST}] halve store]"],
    ),
    "a mean is divided once a row": (
        lambda: (x := matrix()) - x.mean(axis=1, keepdims=True), [f"each: for[{SUM} divide for[subtract store]]"],
    ),
    "reductions of one row share their loops": (
        lambda: [(x := matrix()).sum(axis=1), x.max(axis=1)],
        ["each: for[lanes[] for[lanes[maximum add]] for[maximum add] halve halve store store]"],
    ),
    "what is stored runs along with the reduction over its loops": (
        lambda: [(x := matrix()) * 2, x.sum(axis=1)],
        ["each: for[lanes[] for[lanes[multiply store add]] for[multiply store add] halve store]"],
    ),
    "a reduction of everything has partial results, then combines them": (
        lambda: vector().sum(), [f"each: for[for[{SUM} push] collect]", "once: for[push] collect store"],
    ),
    "what needs it is a phase behind it": (
        lambda: (x := vector()) - x.sum(),
        [f"each: for[for[{SUM} push] collect]", "once: for[push] collect", "each: for[subtract store]"],
    ),
    "rows of several chunks": (lambda: values(5, 1000).sum(axis=1), [f"each: for[for[{SUM} push] collect store]"]),
    "loops that are no single walk fill chunks": (
        lambda: values(40, 60)[:, :30].sum(),
        [f"each: for[for[for[for[] if[{SUM} push]]] collect]", "once: for[push] collect store"],
    ),
    "columns: blocks of rows, four at a time": (
        lambda: matrix().sum(axis=0), [f"each: for[{BLOCKS} for[store]]"],
    ),
    "few columns: pieces of the rows, then they are combined": (
        lambda: values(5000, 7).sum(axis=0), [f"each: for[{BLOCKS} for[]]", f"once: for[for[] {COUNT}] for[] for[store]"],
    ),
    "a short row is written out": (lambda: values(50, 3).sum(axis=1), ["each: for[add add add store]"]),
    "a transposition walks tiles": (lambda: values(64, 80).T * values(80, 64), ["each: for[for[for[for[multiply store]]]]"]),
    "a border is cut off": (lambda: np.pad(vector() * 2, 1), ["each: for[store] for[multiply store] for[store]"]),
    "rows and columns of a border are cut off": (
        lambda: np.pad(matrix() * 2, 1),
        ["each: for[for[store]] for[for[store] for[multiply store] for[store]] for[for[store]]"],
    ),
    "parts are loops of their own": (
        lambda: np.concatenate([vector() * 2, vector() + 3]), ["each: for[multiply store] for[add store]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_loops(name: str) -> None:
    build, expected = TABLE[name]
    assert phases(build()) == expected


def test_dear_values_of_an_earlier_pass_are_staged_and_cheap_ones_are_not() -> None:
    def second_pass(f: Callable[[Any], Any]) -> Any:
        e = f(matrix())
        return e / e.sum(axis=1, keepdims=True)

    for f, staged in ((np.exp, [200]), (lambda x: x + 1, [])):
        (item,) = scheduled(second_pass(f)).kernels
        counts = [local.count for phase in item.code.phases for local in phase.locals if local.count.startswith("n")]
        assert [item.launch.integers[int(count[1:])].const for count in counts] == staged


def test_staging_stops_where_scratch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "SCRATCH_BYTES", 8 * 199)
    (item,) = scheduled(softmax(matrix(), 1)).kernels
    assert not [local for phase in item.code.phases for local in phase.locals if local.count.startswith("n")]
    assert phases(softmax(matrix(), 1))[0].count("exp") == 3


@pytest.mark.parametrize(("columns", "loops"), [(7, False), (8, True)])
def test_rows_are_written_out_up_to_a_length(columns: int, loops: bool) -> None:
    (phase,) = phases(softmax(values(40, columns), 1))
    assert ("for[" in phase.removeprefix("each: for[")) is loops


def test_a_loop_is_cut_into_few_pieces_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def joined() -> Any:
        return np.concatenate([vector() * k for k in range(2, 6)])

    def bordered() -> Any:
        return np.pad(matrix() * 2, 1)

    assert phases(joined())[0].count("for[") == 4
    assert phases(bordered())[0].count("for[") == 8
    monkeypatch.setattr(cost, "SEGMENT_VALUES", 24)
    assert phases(bordered())[0].count("for[") == 4
    monkeypatch.setattr(cost, "SEGMENTS", 3)
    assert phases(joined())[0].count("for[") == 1
    monkeypatch.setattr(cost, "SEGMENTS", 2)
    assert phases(bordered())[0].count("for[") == 2


def test_the_last_lanes_are_taken_together_where_vectors_load_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for masks, rest in ((True, "if[lanes[add where]]"), (False, "for[add]")):
        monkeypatch.setattr(Nest, "masks", masks)
        assert phases(values(50, 33).sum(axis=1)) == [f"each: for[lanes[] for[lanes[add]] {rest} halve store]"]


def test_shapes_offsets_and_scalars_are_arguments() -> None:
    def codes(rows: int, columns: int, start: int, factor: float) -> list[ir.Kernel]:
        return [item.code for item in scheduled(softmax(values(rows, columns)[start:] * factor, 1)).kernels]

    assert repr(codes(50, 200, 3, 2.0)) == repr(codes(70, 330, 9, 5.0))


def test_small_work_is_not_handed_to_threads_one_by_one() -> None:
    (item,) = scheduled(values(1000, 40) - values(40)).kernels
    (phase,) = item.code.phases
    assert item.launch.integers[int(phase.chunk[1:])].const > 100
    assert item.launch.work >= 1000 * 40 * (1 + cost.LOAD)


def long_loops(statements: Iterable[ir.Statement]) -> int:
    return sum([(isinstance(s, ir.Loop) and s.long) + long_loops(s.body) for s in statements if isinstance(s, ir.Loop | ir.If)])


# Work of which one piece may be all: few rows, few columns.  It is left when the run is stopped.
LONG: dict[str, tuple[Callable[[], Any], int]] = {
    "sums of long rows": (lambda: values(2, 2000).sum(axis=1), 1),
    "sums of columns": (lambda: matrix().sum(axis=0), 1),
    "sums of a middle axis": (lambda: values(4, 300, 4).sum(axis=1), 1),
    "the sum of everything": (lambda: values(90_000).sum(), 1),
    "long rows that share something": (lambda: values(2, 1) * values(2, LONG_ROW), 1),
    "short rows that share something": (lambda: values(2, 1) * values(2, 1000), 0),
    "contiguous work, of which there are many pieces": (lambda: values(LONG_ROW) * 2, 0),
}


@pytest.mark.parametrize("name", LONG)
def test_what_may_be_one_piece_of_work_is_left_when_the_run_is_stopped(name: str) -> None:
    make, loops = LONG[name]
    (item,) = scheduled(make()).kernels
    assert sum([long_loops(phase.body) for phase in item.code.phases]) == loops
    assert llvm_render.render([("k", item.code)]).count("load atomic") == loops


@pytest.mark.parametrize("strip", [1, 3, 7])
@pytest.mark.usefixtures("recorded")
def test_long_rows_are_computed_strip_by_strip(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nest, "LONG_ROW", 2)
    monkeypatch.setattr(llvm_render, "STRIP", strip)
    x = numpy.arange(-100.0, 100.0).reshape(4, 50)
    for n in (1, 2, 6, 7, 50):
        with config.override(tier="compiled"):
            forget_plans()
            y = np.asarray(x[:, :n].copy())
            z = np.pad(y * y[:, :1], ((0, 0), (1, 2))) + np.arange(4.0)[:, None]
        expected = numpy.pad(x[:, :n] * x[:, :1], ((0, 0), (1, 2))) + numpy.arange(4.0)[:, None]
        with config.override(tier="compiled"):
            assert (numpy.asarray(z) == expected).all()
    forget_plans()
