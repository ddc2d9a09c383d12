"""Movement operations as index functions: every element of the result, against NumPy's views of numbered elements."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Atom, Offset, Space
from lazynp.schedule.canonicalise import ZERO, Entry
from lazynp.schedule.movement import NO_GUARDS, Guard, Point, guarded, offset_bounds, reshaped, source_point
from tests.graph.test_index import value

F8 = np.dtype("f8")
Array = np.ndarray[Any, Any]

# operation, its arg, shape of the source, shape of the result, integer parameters, the same in NumPy
MOVEMENTS: dict[str, tuple[o.Op, Any, tuple[int, ...], tuple[int, ...], list[int], Any]] = {
    "rows joined": (o.RESHAPE, None, (3, 4), (12,), [], lambda x: x.reshape(12)),
    "rows cut": (o.RESHAPE, None, (12,), (3, 4), [], lambda x: x.reshape(3, 4)),
    "other rows": (o.RESHAPE, None, (4, 6), (3, 8), [], lambda x: x.reshape(3, 8)),
    "a group alone": (o.RESHAPE, None, (5, 2, 3), (5, 6), [], lambda x: x.reshape(5, 6)),
    "axes of one element": (o.RESHAPE, None, (1, 3, 1), (3, 1, 1), [], lambda x: x.reshape(3, 1, 1)),
    "a transposition": (o.PERMUTE, (1, 0), (2, 3), (3, 2), [], lambda x: x.T),
    "three axes": (o.PERMUTE, (2, 0, 1), (2, 3, 4), (4, 2, 3), [], lambda x: x.transpose(2, 0, 1)),
    "a new axis": (o.EXPAND, None, (3,), (2, 3), [], lambda x: np.broadcast_to(x, (2, 3))),
    "a column": (o.EXPAND, None, (3, 1), (3, 4), [], lambda x: np.broadcast_to(x, (3, 4))),
    "from an offset": (o.SLICE, ((0, 1),), (9,), (4,), [3], lambda x: x[3:7]),
    "in steps": (o.SLICE, ((0, 2),), (9,), (3,), [2], lambda x: x[2:8:2]),
    "backwards": (o.SLICE, ((0, -1),), (5,), (5,), [4], lambda x: x[::-1]),
    "one row from the start": (o.SLICE, ((ZERO, 1), (0, 1)), (3, 5), (1, 2), [2], lambda x: x[:1, 2:4]),
    "a border": (o.PAD, (0,), (3,), (6,), [2], lambda x: np.pad(x, (2, 1), constant_values=-1)),
    "behind only": (o.PAD, (ZERO,), (3,), (5,), [], lambda x: np.pad(x, (0, 2), constant_values=-1)),
    "round a matrix": (o.PAD, (0, 1), (2, 3), (4, 6), [1, 2], lambda x: np.pad(x, ((1, 1), (2, 1)), constant_values=-1)),
}


def bounds_of(entry: Entry, src_shape: tuple[int, ...]) -> dict[int, ix.Bounds]:
    """Those of the parameters of an entry whose source is the first one."""
    source = Entry(o.BUFFER, (), 0, F8, src_shape)
    return offset_bounds([source, source, entry])


@pytest.mark.parametrize("name", MOVEMENTS)
def test_each_element_comes_from_where_numpy_takes_it(name: str) -> None:
    op, arg, src_shape, shape, integers, numpy_view = MOVEMENTS[name]
    entry = Entry(op, (0, 1) if op is o.PAD else (0,), arg, F8, shape)
    space = Space(bounds_of(entry, src_shape))
    ranges = space.ranges(shape)
    point = source_point(space, entry, src_shape, Point(tuple([ix.of(r) for r in ranges]), NO_GUARDS))
    assert point is not None
    numbered: Array = np.arange(np.prod(src_shape)).reshape(src_shape)
    made = np.empty(shape, int)
    for position in itertools.product(*map(range, shape)):
        at: dict[Atom, int] = dict(zip(ranges, position, strict=True))
        for i in (*point.index, *[g.index for g in point.guards]):
            at |= {atom: integers[atom.slot] for atom in ix.atoms(i) if isinstance(atom, Offset)}
        inside = all(0 <= value(g.index, at) < g.extent for g in point.guards)
        made[position] = numbered[tuple([value(i, at) for i in point.index])] if inside else -1
    np.testing.assert_array_equal(made, numpy_view(numbered))


def test_only_padding_is_guarded() -> None:
    for name, (op, arg, src_shape, shape, _, _) in MOVEMENTS.items():
        entry = Entry(op, (0, 1), arg, F8, shape)
        space = Space(bounds_of(entry, src_shape))
        index = tuple([ix.of(r) for r in space.ranges(shape)])
        point = source_point(space, entry, src_shape, Point(index, NO_GUARDS))
        assert point is not None
        assert bool(point.guards) == (op is o.PAD), name


def test_what_is_always_padding_has_no_source() -> None:
    entry = Entry(o.PAD, (0, 1), (ZERO,), F8, (6,))
    assert source_point(Space(), entry, (3,), Point((ix.constant(4),), NO_GUARDS)) is None
    assert source_point(Space(), entry, (3,), Point((ix.constant(2),), NO_GUARDS)) == Point((ix.constant(2),), NO_GUARDS)


def test_guard_that_always_holds_is_none_and_one_that_cannot_is_refused() -> None:
    i = ix.of(Space().range(5))
    assert guarded(NO_GUARDS, i, 5) == NO_GUARDS
    assert guarded(NO_GUARDS, i + -2, 3) == {Guard(i + -2, 3)}
    assert guarded(NO_GUARDS, i + 7, 7) is None
    assert guarded(NO_GUARDS, i + -5, 7) is None


@pytest.mark.parametrize(("shape", "src_shape"), [((4, 6), (2, 12)), ((2, 3, 4), (6, 4)), ((6, 4), (2, 3, 4)), ((7, 5, 3), (7, 15))])
def test_reshape_divides_only_where_groups_of_axes_differ(shape: tuple[int, ...], src_shape: tuple[int, ...]) -> None:
    space = Space()
    index = tuple([ix.of(r) for r in space.ranges(shape)])
    parts = reshaped(space, index, shape, src_shape)
    for n, part in zip(src_shape, parts, strict=True):
        if n in shape:
            assert part == index[shape.index(n)]


def test_parameters_lie_where_all_that_they_serve_have_elements() -> None:
    leaf = Entry(o.BUFFER, (), 0, F8, (10,))
    forwards, backwards = (Entry(o.SLICE, (0,), ((0, step),), F8, (3,)) for step in (2, -2))
    assert offset_bounds([leaf, forwards]) == {0: (0, 5)}
    assert offset_bounds([leaf, backwards]) == {0: (4, 9)}
    assert offset_bounds([leaf, forwards, backwards]) == {0: (4, 5)}
    assert offset_bounds([leaf, leaf, Entry(o.PAD, (0, 1), (0,), F8, (14,))]) == {0: (0, 4)}
    assert offset_bounds([leaf, Entry(o.BUFFER, (), 1, F8, (4,)), Entry(o.STORE, (0, 1), ((0, 1),), F8, (10,))]) == {0: (0, 6)}
    assert offset_bounds([leaf, Entry(o.SLICE, (0,), ((0, 1),), F8, (0,))]) == {0: (0, 10)}
