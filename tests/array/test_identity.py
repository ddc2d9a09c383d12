"""Whose memory it is: arrays that are resized, strides that are set, pickles with buffers, broadcast arrays; NumPy is the oracle."""

from __future__ import annotations

import copy
import pickle
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

CASES: dict[str, tuple[int, int | None]] = {"small": (16, None), "large": (900_000, None), "recorded": (16, 0)}
Program = Callable[[Any, int], Any]


@pytest.fixture(params=CASES)
def n(request: pytest.FixtureRequest) -> Iterator[int]:
    """Sizes on both sides of the limit; and a small one where everything is recorded."""
    size, limit = CASES[request.param]
    with config.override(tape_limit=config.tape_limit if limit is None else limit):
        yield size


def outcome(program: Program, np: Any, n: int) -> Any:
    """What a program returns or raises, and what is said meanwhile, with the lines of this file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            value = program(np, n)
        except Exception as error:
            value = type(error).__name__, str(error)
    return value, [(entry.category.__name__, str(entry.message), entry.filename, entry.lineno) for entry in said]


def check(program: Program, n: int) -> None:
    assert outcome(program, lazynp, n) == outcome(program, numpy, n)


# Resizing -------------------------------------------------------------------------------------------------------------------------


def grown(np: Any, n: int) -> Any:
    x = np.arange(n)
    x.resize(n + 2)
    return x.shape, x[-3:].tolist()


def grown_of_what_was_pending(np: Any, n: int) -> Any:
    x = np.arange(n) * 2 + 1
    y = x + 1
    x.resize(n + 2)
    return x[-3:].tolist(), y[:3].tolist()


def shrunk(np: Any, n: int) -> Any:
    x = np.arange(n) + 1.5
    x[2:5] = 7
    x.resize(n // 2)
    return x.shape, x[:6].tolist(), x[-3:].tolist()


def in_rows(np: Any, n: int) -> Any:
    x = np.zeros((n, 2), "f4")
    x[:] = 7
    x.resize((2, n + 1))
    return x.shape, x[:, -2:].tolist()


def columns(np: Any, n: int) -> Any:
    x = np.arange(2 * n).reshape(n, 2).copy("F")
    x.resize((n, 3))
    return x[:2].tolist(), x[-2:].tolist(), x.flags.f_contiguous


def under_a_slice(np: Any, n: int) -> None:
    x = np.arange(n)
    part = x[1:]
    x.resize(n + 2)
    del part


def under_a_few_elements(np: Any, n: int) -> None:
    x = np.arange(n)
    part = x[1:3]
    str(part)
    x.resize(n + 2)


def under_a_row(np: Any, n: int) -> None:
    x = np.zeros((n, 2))
    row = x[1]
    x.resize((n, 3))
    del row


def under_its_transpose(np: Any, n: int) -> None:
    x = np.zeros((n, 2))
    turned = x.T
    x.resize((n, 3))
    del turned


def under_its_real_part(np: Any, n: int) -> None:
    x = np.arange(n) * 1j
    part = x.real
    x.resize(n + 2)
    del part


def of_two_names(np: Any, n: int) -> None:
    x = y = np.arange(n)
    x.resize(n + 2)
    del y


def in_a_list(np: Any, n: int) -> None:
    x = np.arange(n)
    held = [x]
    x.resize(n + 2)
    del held


def under_a_memoryview(np: Any, n: int) -> None:
    x = np.arange(n)
    seen = x.data
    x.resize(n + 1)
    del seen


def under_an_iterator(np: Any, n: int) -> None:
    x = np.arange(n)
    turns = iter(x)
    x.resize(n + 1)
    del turns


def under_flat(np: Any, n: int) -> None:
    x = np.arange(n)
    flat = x.flat
    x.resize(n + 1)
    del flat


def of_an_argument(np: Any, n: int) -> None:
    def grow(x: Any) -> None:
        x.resize(n + 1)

    x = np.arange(n)
    grow(x)


def after_its_view_is_gone(np: Any, n: int) -> Any:
    x = np.arange(n)
    part = x[1:]
    del part
    x.resize(n + 2)
    return x.shape


def unbound(np: Any, n: int) -> Any:
    x = np.arange(n)
    np.ndarray.resize(x, n + 1)
    return x.shape


def of_the_same_size(np: Any, n: int) -> Any:
    x = np.arange(2 * n)
    part = x[1:]
    x.resize((2, n))
    return x.shape, part[:2].tolist(), x[1, :2].tolist()


def a_view_of_the_same_size(np: Any, n: int) -> Any:
    x = np.arange(2 * n)
    part = x[2:]
    part.resize((2, n - 1))
    part[0, 0] = 9
    return part.shape, x[:4].tolist()


def a_view(np: Any, n: int) -> None:
    np.arange(2 * n)[2:].resize(3)


def with_gaps(np: Any, n: int) -> None:
    np.arange(2 * n)[::2].resize(3)


def to_nonsense(np: Any, n: int) -> None:
    np.arange(n).resize(-1)


def to_nothing(np: Any, n: int) -> Any:
    x = np.arange(n)
    x.resize((0, 3))
    x.resize(4)
    x.resize(None)
    x.resize()
    return x.tolist()


def without_looking(np: Any, n: int) -> Any:
    x = y = np.arange(n)
    x.resize(n + 2, refcheck=False)
    return y.shape, x[-2:].tolist()


def what_is_read_only(np: Any, n: int) -> Any:
    x = np.arange(n)
    x.flags.writeable = False
    x.resize(n + 1)
    return x.flags.writeable, x.shape


def again_and_again(np: Any, n: int) -> Any:
    x = np.arange(3)
    for k in range(200):
        x.resize(3 + k % 5)
    return x.tolist()


def whose_address_was_told(np: Any, n: int) -> Any:
    x = np.arange(n)
    told = x.__array_interface__["data"][0], x.ctypes.data
    x.resize(n + 2)
    return told[0] == told[1], x[-3:].tolist()


def whose_address_was_told_under_a_view(np: Any, n: int) -> Any:
    x = np.arange(n)
    x.ctypes.data
    rest = x[1:]
    x.resize(n + 2)
    return rest.tolist()


def in_the_other_order(np: Any, n: int) -> Any:
    x = np.zeros((n // 2, 2), order="F")
    x.resize((3, 2))
    return x.tolist(), x.flags.f_contiguous


def in_the_other_order_under_an_export(np: Any, n: int) -> Any:
    x = np.zeros((n // 2, 2), order="F")
    seen = numpy.asarray(x)
    x.resize((3, 2))
    return seen.shape


def in_the_other_order_under_a_memoryview(np: Any, n: int) -> Any:
    x = np.zeros((n // 2, 2), order="F")
    seen = memoryview(x)
    x.resize((3, 2))
    return seen.shape


def known_by_a_weak_reference(np: Any, n: int) -> Any:
    x = np.arange(n)
    known = weakref.ref(x)
    x.resize(n + 1)
    return known() is x


RESIZED = [
    in_the_other_order, in_the_other_order_under_an_export, in_the_other_order_under_a_memoryview, known_by_a_weak_reference,
    whose_address_was_told, whose_address_was_told_under_a_view,
    grown, grown_of_what_was_pending, shrunk, in_rows, columns, under_a_slice, under_a_few_elements, under_a_row, under_its_transpose,
    under_its_real_part, of_two_names, in_a_list, under_a_memoryview, under_an_iterator, under_flat, of_an_argument, after_its_view_is_gone,
    unbound, of_the_same_size, a_view_of_the_same_size, a_view, with_gaps, to_nonsense, to_nothing, without_looking, what_is_read_only,
    again_and_again,
]  # fmt: skip


@pytest.mark.parametrize("program", RESIZED)
def test_resize(program: Program, n: int) -> None:
    check(program, n)


def test_an_export_refuses_to_be_resized(n: int) -> None:
    x = lazynp.arange(n)
    seen = numpy.asarray(x)
    with pytest.raises(ValueError, match="cannot resize an array that references or is referenced"):
        x.resize(n + 1)
    assert seen[1] == x[1] == 1


def test_views_keep_the_memory_of_what_was_resized(n: int) -> None:
    x = lazynp.arange(n)
    rest, few, rows = x[1:], x[2:4], x.reshape(2, -1)
    str(few)
    inner, pending = rest[::2], rest + 1
    x.resize(n + 2, refcheck=False)
    rest[0] = 70
    x[0] = 80
    assert (rest[:3].tolist(), few.tolist(), inner[:2].tolist(), rows[0, :3].tolist()) == ([70, 2, 3], [2, 3], [70, 3], [0, 70, 2])
    assert (pending[:3].tolist(), x[:3].tolist(), x.shape) == ([2, 3, 4], [80, 1, 2], (n + 2,))


# Strides, shape and dtype that are set ----------------------------------------------------------------------------------------------


def a_diagonal(np: Any, n: int) -> Any:
    x = np.zeros((n, 3))
    row = x[0]
    row.strides = (x.strides[0] + x.strides[1],)
    row[:] = 1
    return x[:4].tolist(), row.strides, row.flags.c_contiguous


def turned_around(np: Any, n: int) -> Any:
    x = np.arange(3 * n).reshape(n, 3)[:3]
    x.strides = x.strides[::-1]
    x[0, 1] = 99
    return x.tolist(), x.strides


def an_owner(np: Any, n: int) -> Any:
    m = int(n**0.5)
    x = np.zeros((m, m))
    x[0, 1] = 5
    row, column = x[0], x[:, 1]
    str(column)
    x.strides = x.strides[::-1]
    x[0, 2] = 8
    more = x + 1
    row[0] = 3
    return x[:3, :3].tolist(), row[:3].tolist(), column[:3].tolist(), more[:3, :3].tolist(), x.strides, x.base is None, row.base is x


def one_for_all(np: Any, n: int) -> Any:
    x = np.arange(n) * 2
    x.strides = (0,)
    return x[:4].tolist(), x.strides, float(x.sum())


def every_other(np: Any, n: int) -> Any:
    x = np.arange(n)
    part = x[:3]
    part.strides = (16,)
    part[1] = 70
    return x[:4].tolist(), part.tolist()


def between_elements(np: Any, n: int) -> Any:
    part = np.arange(n).astype("f4")[1:3]
    part.strides = (2,)
    return part.tolist()


def backwards(np: Any, n: int) -> Any:
    part = np.arange(n)[::-1][:4]
    part.strides = (-16,)
    return part.tolist()


def windows(np: Any, n: int) -> Any:
    part = np.arange(n)[:6].reshape(2, 3)
    part.strides = (8, 8)
    return part.tolist()


def the_same(np: Any, n: int) -> Any:
    x = np.arange(n)
    x.strides = (8,)
    return x[:3].tolist()


def beyond_the_memory(np: Any, n: int) -> None:
    x = np.arange(n)
    x.strides = (16,)


def too_many(np: Any, n: int) -> None:
    x = np.arange(n)
    x.strides = (8, 8)


def no_numbers(np: Any, n: int) -> None:
    x = np.arange(n)
    x.strides = "a"


def another_shape(np: Any, n: int) -> Any:
    x = np.arange(n)
    part = x[:6]
    part.shape = (2, 3)
    part[1] = 5
    return x[:6].tolist(), part.shape


def another_dtype(np: Any, n: int) -> Any:
    x = np.arange(n, dtype="f8")
    part = x[2:6]
    part.dtype = "i8"
    part[0] = 0
    return x[:5].tolist(), part.tolist()


SET = [
    a_diagonal, turned_around, an_owner, one_for_all, every_other, between_elements, backwards, windows, the_same, beyond_the_memory,
    too_many, no_numbers, another_shape, another_dtype,
]  # fmt: skip


@pytest.mark.parametrize("program", SET)
def test_attributes_that_are_set(program: Program, n: int) -> None:
    check(program, n)


# Pickles ------------------------------------------------------------------------------------------------------------------------------


def out_of_band(np: Any, x: Any) -> Any:
    kept: list[Any] = []
    text = pickle.dumps(x, protocol=5, buffer_callback=kept.append)
    y = pickle.loads(text, buffers=kept)
    flags = y.flags.writeable, y.flags.c_contiguous, y.flags.f_contiguous
    return len(kept), len(text) < 500, bool(np.shares_memory(x, y)), y.shape, str(y.dtype), flags, y.ravel()[:4].tolist()


def frozen(x: Any) -> Any:
    x.flags.writeable = False
    return x


PICKLED: dict[str, Program] = {
    "plain": lambda np, n: np.arange(n) + 0.5,
    "read-only": lambda np, n: frozen(np.arange(n) + 0.5),
    "turned": lambda np, n: np.arange(2 * n).reshape(n, 2).T,
    "columns": lambda np, n: np.arange(2 * n).reshape(n, 2).copy("F"),
    "with gaps": lambda np, n: np.arange(2 * n)[::2],
    "the rest": lambda np, n: np.arange(2 * n)[3:],
    "nothing": lambda np, n: np.zeros((0, 3)),
    "small numbers": lambda np, n: np.arange(n, dtype="i1"),
}


@pytest.mark.parametrize("name", PICKLED)
def test_buffers_of_pickles(name: str, n: int) -> None:
    check(lambda np, n: out_of_band(np, PICKLED[name](np, n)), n)


@pytest.mark.parametrize("name", PICKLED)
def test_pickles_of_all_protocols(name: str, n: int) -> None:
    def program(np: Any, n: int) -> Any:
        x = PICKLED[name](np, n)
        found: list[Any] = []
        for protocol in range(6):
            y = pickle.loads(pickle.dumps(x, protocol=protocol))
            told = x.__reduce_ex__(protocol)
            flags = y.flags.writeable, y.flags.f_contiguous
            found.append((y.shape, y.strides if y.size else None, str(y.dtype), flags, bool((y == x).all())))
            found.append((told[0].__name__, len(told), type(y) is np.ndarray))
        return found

    check(program, n)


def test_what_was_loaded_and_what_was_pickled_share_writes(n: int) -> None:
    def program(np: Any, n: int) -> Any:
        x = np.arange(n) + 0.5
        kept: list[Any] = []
        text = pickle.dumps(x, protocol=5, buffer_callback=kept.append)
        y = pickle.loads(text, buffers=kept)
        y[1], x[2] = 77, 78
        raw = bytearray(kept[0].raw())
        z = pickle.loads(text, buffers=[raw])
        z[0] = 5
        return x[:4].tolist(), y[:4].tolist(), (y + 1)[:4].tolist(), z[:3].tolist(), numpy.frombuffer(raw)[:3].tolist()

    check(program, n)


def test_states(n: int) -> None:
    def program(np: Any, n: int) -> Any:
        x = np.arange(n) + 0.5
        told = x.__reduce__()
        y = np.zeros(3)
        y.__setstate__(told[2])
        y[0] = 9
        again = copy.deepcopy([x, x])
        state = told[2][0], told[2][1], str(told[2][2]), told[2][3], type(told[2][4])
        return told[0].__name__, told[1][1:], state, y.shape, y[:3].tolist(), x[:3].tolist(), again[0] is again[1]

    check(program, n)


# Broadcast arrays ---------------------------------------------------------------------------------------------------------------------

BROADCAST: list[Callable[[Any, Any], Any]] = [
    lambda u, v: u.flags.writeable,
    lambda u, v: (u.flags.carray, u.flags.behaved, u.flags["W"]),
    lambda u, v: str(u.flags).count("WARN_ON_WRITE"),
    lambda u, v: (u.__setitem__(0, 1), u.__setitem__(0, 1)),
    lambda u, v: v.__setitem__(0, 1),
    lambda u, v: u.T.__setitem__(0, 1),
    lambda u, v: u[:, ::-1].flags.writeable,
    lambda u, v: u.copy().__setitem__(0, 1),
    lambda u, v: u.data.readonly,
    lambda u, v: (u.setflags(write=True), u.__setitem__(0, 1)),
    lambda u, v: (setattr(u.flags, "writeable", False), u.__setitem__(0, 1)),
    lambda u, v: u.sort(),
    lambda u, v: u.fill(3),
    lambda u, v: float(u.sum()),
    lambda u, v: (u + v)[0, :2].tolist(),
    lambda u, v: u.view().__setitem__(0, 1),
    lambda u, v: u.__iadd__(v)[:, :3].tolist(),
    lambda u, v: u.__setitem__((slice(None), [1, 0]), 4),
    lambda u, v: u.__setitem__(u > 0, 4),
    lambda u, v: u.put([0], 3),
]


@pytest.mark.parametrize("number", range(len(BROADCAST)))
def test_broadcast_arrays_warn_of_writes(number: int, n: int) -> None:
    check(lambda np, n: BROADCAST[number](*np.broadcast_arrays(np.ones(n // 2), np.ones((2, n // 2)))), n)


def test_meshgrid_without_copies_shows_the_memory(n: int) -> None:
    def program(np: Any, n: int) -> Any:
        x, y = np.arange(2.0), np.arange(3.0)
        thin = np.meshgrid(x, y, copy=False, sparse=True)
        thin[0][0] = 5
        full = np.meshgrid(x, y, copy=False)
        full[1][0] = 7
        return x.tolist(), y.tolist(), [one.shape for one in (*thin, *full)], bool(np.shares_memory(full[0], x))

    check(program, n)
