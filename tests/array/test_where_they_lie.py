"""Large arrays that exist, read and written where they lie: elements, views, iterators, sums at positions, contractions, products,
expressions of complex numbers.  What is asserted is counted: nothing is recorded, nothing runs, and no more memory than NumPy's is taken.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.backends.numpy.operations import iota
from lazynp.graph import op as o
from lazynp.graph import report
from lazynp.graph.node import Node
from lazynp.values import config

LIMIT = 40
SHAPES: list[tuple[int, ...]] = [(60,), (12, 15), (4, 5, 6), (6, 1, 12)]
DTYPES = ("f8", "i8", "f4", "u1", "?", "c16")


@pytest.fixture(autouse=True)
def few_at_hand() -> Iterator[None]:
    with config.override(tape_limit=LIMIT):
        yield


def counts() -> tuple[int, int]:
    """How many programs ran, and how many nodes were recorded."""
    return report.schedules.hits + report.schedules.misses, Node(o.CONST, (), numpy.float64(0), numpy.dtype("f8"), ()).number


class Nothing:
    """A block in which nothing is recorded and nothing runs."""

    def __enter__(self) -> None:
        self.before = counts()

    def __exit__(self, *error: object) -> None:
        runs, nodes = counts()
        if error[0] is None:
            assert (runs, nodes - 1) == self.before


def made(shape: tuple[int, ...], dtype: str) -> tuple[Any, numpy.ndarray[Any, Any]]:
    theirs = (numpy.arange(numpy.prod(shape)) % 7).astype(dtype).reshape(shape)
    ours = lazynp.asarray(theirs.copy())
    return ours, theirs


def states(shape: tuple[int, ...], dtype: str) -> Iterator[tuple[str, Any, Any]]:
    """A large array as it was made, computed, written (a draft), lent, and a part of one."""
    yield ("made", *made(shape, dtype))
    ours, theirs = made(shape, dtype)
    yield "computed", lazynp.realize(lazynp.where(ours == ours, ours, ours)), theirs
    ours, theirs = made(shape, dtype)
    ours = lazynp.realize(lazynp.where(ours == ours, ours, ours))
    at = (0,) * len(shape)
    ours[at] = theirs[at] = 1
    yield "written", ours, theirs
    ours, theirs = made((2, *shape), dtype)
    yield "a part", ours[1], theirs[1]


def same(a: Any, b: Any) -> None:
    assert a.__class__ is type(b) or isinstance(a, lazynp.ndarray)
    assert a.dtype == b.dtype and a.shape == b.shape and numpy.asarray(a).tobytes() == b.tobytes()


# Elements -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_elements_in_order(shape: tuple[int, ...], dtype: str) -> None:
    for _, ours, theirs in states(shape, dtype):
        list(ours.flat)  # which shows a view of Python's to the core
        with Nothing():
            assert list(map(repr, ours.flat)) == list(map(repr, theirs.flat))
            assert [ours.flat[k] for k in range(-theirs.size, theirs.size)] == [theirs.flat[k] for k in range(-theirs.size, theirs.size)]
            assert ours.flat[numpy.int64(3)].__class__ is type(theirs.flat[numpy.int64(3)])
            assert [ours.ravel()[k] for k in (0, -1, 7)] == [theirs.ravel()[k] for k in (0, -1, 7)]
            assert [ours.reshape(-1)[k] for k in (0, -1, 7)] == [theirs.reshape(-1)[k] for k in (0, -1, 7)]
            assert [x.tobytes() for x in ours] == [x.tobytes() for x in theirs] if ours.ndim == 1 else True
            at = (1,) * theirs.ndim
            assert theirs.T.shape == ours.T.shape and (theirs.T[at[:0] + (0,) * theirs.ndim] == ours.T[(0,) * theirs.ndim])
        for bad in (theirs.size, -theirs.size - 1):
            with pytest.raises(IndexError, match="out of bounds"):
                ours.flat[bad]


def test_elements_of_what_is_pending_are_computed_together() -> None:
    x = lazynp.asarray(numpy.arange(100.0)) * 2
    before = counts()[0]
    assert [float(v) for v in x.flat] == [2.0 * k for k in range(100)]
    assert counts()[0] == before + 1


@pytest.mark.parametrize("dtype", ["f8", "i8", "f4", "?"])
def test_elements_are_written_in_order(dtype: str) -> None:
    for name, ours, theirs in states((12, 15), dtype):
        ours.flat[0] = theirs.flat[0] = 1  # it gets memory of its own
        view, theirs_view = ours.T, theirs.T
        with Nothing():
            for k in (0, 5, -1, numpy.int64(9)):
                ours.flat[k] = theirs.flat[k] = 3
                view.flat[k] = theirs_view.flat[k] = 2
        same(ours, theirs)
        assert name
    x = lazynp.broadcast_to(lazynp.asarray(numpy.zeros(50)), (3, 50))
    with pytest.raises(ValueError, match="read-only"):
        x.flat[0] = 1
    it = lazynp.asarray(numpy.arange(60)).flat
    with pytest.raises(TypeError):
        del it[0]


def test_an_iterator_begins_anew_where_an_element_is_asked_for() -> None:
    def run(np: Any) -> list[Any]:
        it = np.arange(60).flat
        found = [next(it), next(it), it[7], next(it), it.index, it.coords]
        it[3] = 50
        return [*map(int, found[:5]), found[5], int(next(it)), it.index, len(it), int(it.base[3])]

    assert run(lazynp) == run(numpy)


@pytest.mark.parametrize("name", ["tanh", "exp", "log1p", "sqrt", "arctan", "sinh", "arcsinh", "expm1", "square"])
def test_functions_of_one_number(name: str) -> None:
    ours, theirs = getattr(lazynp, name), getattr(numpy, name)
    with Nothing():
        for value in (0.5, numpy.float64(0.25), 3, numpy.int64(2), numpy.float32(0.75), True, numpy.complex128(0.5 + 0.25j)):
            for _ in range(40):  # the first ones are compared with NumPy's
                found = ours(value)
            if type(value) is not numpy.complex128:
                assert repr(found) == repr(theirs(value)), value


# Views ----------------------------------------------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "ravel": lambda np, x: x.ravel(),
    "np.ravel": lambda np, x: np.ravel(x),
    "reshape": lambda np, x: x.reshape(-1),
    "reshape to rows": lambda np, x: x.reshape(-1, 2),
    "reshape twice": lambda np, x: x.reshape(3, -1).reshape(-1, 4),
    "np.reshape": lambda np, x: np.reshape(x, (2, -1)),
    "reshape a tuple": lambda np, x: x.reshape((4, -1)),
    "T": lambda np, x: x.T,
    "transpose": lambda np, x: x.transpose(),
    "np.transpose": lambda np, x: np.transpose(x),
    "squeeze": lambda np, x: x.squeeze(),
    "T of a reshape": lambda np, x: x.reshape(-1, 4).T,
    "a column of a reshape": lambda np, x: x.reshape(-1, 4)[:, 1],
    "rows of a reshape": lambda np, x: x.reshape(-1, 4)[1:],
    "a slice of all": lambda np, x: x.ravel()[3:-3:2],
    "a reshape of a slice": lambda np, x: x.reshape(-1)[12:36].reshape(4, 6),
    "the end of all": lambda np, x: x.ravel()[::-1],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_views_read_and_write(shape: tuple[int, ...], view: str) -> None:
    for state, ours, theirs in states(shape, "f8"):
        taken, wanted = VIEWS[view](lazynp, ours), VIEWS[view](numpy, theirs)
        same(taken, wanted)
        assert taken.strides == wanted.strides or wanted.base is None, state
        assert lazynp.shares_memory(taken, ours) == numpy.shares_memory(wanted, theirs)
        if numpy.shares_memory(wanted, theirs) and wanted is not theirs:
            assert taken.base is (ours if theirs.base is None or ours.base is None else ours.base), state
        same(taken * 2 + 1, wanted * 2 + 1)
        kept, of_then = taken + 1, wanted + 1
        at = (0,) * wanted.ndim
        taken[at] = wanted[at] = 9
        same(ours, theirs)
        ours[(-1,) * theirs.ndim] = theirs[(-1,) * theirs.ndim] = 8
        same(taken, wanted)
        same(kept, of_then)
        taken += 1
        wanted += 1
        same(ours, theirs)
        ours *= 2
        theirs *= 2
        same(taken, wanted)


@pytest.mark.parametrize("view", ["ravel", "reshape", "T", "transpose", "squeeze", "reshape to rows", "np.ravel", "a column of a reshape"])
def test_views_record_nothing(view: str) -> None:
    for _, ours, _ in states((12, 15) if "squeeze" not in view else (1, 60), "f8"):
        VIEWS[view](lazynp, ours)
        with Nothing():
            for _ in range(3):
                taken = VIEWS[view](lazynp, ours)
                assert isinstance(taken[(0,) * taken.ndim], numpy.float64)


def test_rows_record_nothing() -> None:
    for _, ours, theirs in states((12, 15), "f8"):
        with Nothing():
            for row, wanted in zip(ours, theirs, strict=True):
                assert [float(v) for v in row] == wanted.tolist() and row.shape == wanted.shape
    x, y = made((100,), "i8")
    seen = []
    for k, v in enumerate(x):  # what is written meanwhile is read
        seen.append(int(v))
        if k < 99:
            x[k + 1] = 100 + k
    assert seen == [int(y[0]), *range(100, 199)]


# Iterators ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [20, 90])
def test_iterators_write_into_the_memory(size: int) -> None:
    x = lazynp.asarray(numpy.arange(float(size)))
    before = x + 0
    with lazynp.nditer(x, flags=["external_loop", "buffered"], op_flags=["readwrite"], buffersize=7) as it:
        for chunk in it:
            chunk *= 2
    same(x, numpy.arange(size) * 2.0)
    same(before, numpy.arange(float(size)))
    it = lazynp.nditer(x, op_flags=["readwrite"])
    with Nothing():
        for k, v in enumerate(it):
            v[...] = v + 1
            assert x[k] == 2 * k + 1  # at once
    del it, v
    y = x[: size // 2]
    for a, b in lazynp.nditer([y, x[size // 2 :]], op_flags=[["writeonly"], ["readonly"]]):
        a[...] = b
    wanted = numpy.arange(size) * 2.0 + 1
    wanted[: size // 2] = wanted[size // 2 :]
    same(x, wanted)


def nested(np: Any, x: Any) -> None:
    outer, inner = np.nested_iters(x, [[0], [1]], op_flags=["readwrite"])
    for _ in outer:
        for v in inner:
            v += 1


@pytest.mark.parametrize(
    "write",
    [
        lambda np, x: [v.__setitem__(..., 3) for v in np.nditer(x.T, op_flags=["writeonly"])],
        lambda np, x: [v.__setitem__(..., v + 3) for v in np.nditer(x[::2], op_flags=[["readwrite"]])],
        lambda np, x: [w.__setitem__(..., v) for v, w in np.nditer([x[0].copy(), x], op_flags=[["readonly"], ["writeonly"]])],
        nested,
        lambda np, x: [v.__iadd__(1) for v in np.nditer(x, flags=["external_loop"], op_flags=["readwrite"], order="F")],
        lambda np, x: [v.__imul__(2) for v in np.nditer(x, ["buffered", "external_loop"], ["readwrite"], ["f8"], casting="unsafe")],
    ],
)
@pytest.mark.parametrize("shape", [(3, 4), (12, 15)])
def test_iterators_that_write(write: Any, shape: tuple[int, ...]) -> None:
    for _, ours, theirs in states(shape, "i8"):
        other, theirs_other = ours + 0, theirs + 0
        write(lazynp, ours)
        write(numpy, theirs)
        same(ours, theirs)
        same(other, theirs_other)
        ours += 1
        same(ours, theirs + 1)


def test_iterators_refuse_what_is_read_only() -> None:
    x = lazynp.broadcast_to(lazynp.asarray(numpy.arange(50)), (2, 50))
    with pytest.raises(ValueError, match="read-only"):
        lazynp.nditer(x, op_flags=["readwrite"])


def test_indices_with_values() -> None:
    for _, ours, theirs in states((12, 15), "f8"):
        assert list(lazynp.ndenumerate(ours)) == list(numpy.ndenumerate(theirs))
        assert [v.__class__ for _, v in lazynp.ndenumerate(ours[:2, 0])] == [numpy.float64] * 2
    words = lazynp.array(["a", "b"])
    assert list(lazynp.ndenumerate(words)) == [((0,), "a"), ((1,), "b")]


# At positions ---------------------------------------------------------------------------------------------------------------------

KEYS: dict[str, Callable[[Any], Any]] = {
    "positions": lambda rng: rng.integers(-12, 12, 90),
    "a pair": lambda rng: (rng.integers(0, 12, 90), rng.integers(0, 15, 90)),
    "positions and a slice": lambda rng: (rng.integers(0, 12, 50), slice(2, 9)),
    "a slice and positions": lambda rng: (slice(None), rng.integers(0, 15, 70)),
    "a mask": lambda rng: rng.random((12, 15)) < 0.5,
    "a slice": lambda rng: slice(1, 5),
    "a list": lambda rng: [0, 0, 3],
    "a number": lambda rng: 3,
}


@pytest.mark.parametrize("name", ["add", "subtract", "maximum", "multiply", "minimum", "power"])
@pytest.mark.parametrize("key", KEYS)
def test_at_positions(key: str, name: str) -> None:
    rng = numpy.random.default_rng(3)
    for state, ours, theirs in states((12, 15), "f8"):
        at = KEYS[key](rng)
        values = rng.random(theirs[at].shape)
        given = lazynp.asarray(values.copy())
        place = tuple([lazynp.asarray(k) if isinstance(k, numpy.ndarray) else k for k in at]) if isinstance(at, tuple) else at
        place = lazynp.asarray(at) if isinstance(at, numpy.ndarray) else place
        kept, of_then = ours + 0, theirs + 0
        for value, theirs_value in ((given, values), (2.0, 2.0), (given * 2, values * 2)):
            getattr(lazynp, name).at(ours, place, value)
            getattr(numpy, name).at(theirs, at, theirs_value)
            same(ours, theirs)
        same(kept, of_then)
        assert state


def test_at_positions_writes_into_the_memory() -> None:
    rng = numpy.random.default_rng(3)
    ours, theirs = made((12, 15), "f8")
    at, values = rng.integers(0, 12, 70), rng.random((70, 15))
    place, given = lazynp.asarray(at), lazynp.asarray(values)
    lazynp.add.at(ours, place, given)
    with Nothing():
        for _ in range(3):
            lazynp.add.at(ours, place, given)
            lazynp.subtract.at(ours, (place, slice(None)), 1.0)
            lazynp.negative.at(ours, slice(0, 3))
    numpy.add.at(theirs, at, values)
    for _ in range(3):
        numpy.add.at(theirs, at, values)
        numpy.subtract.at(theirs, (at, slice(None)), 1.0)
        numpy.negative.at(theirs, slice(0, 3))
    same(ours, theirs)


def test_at_positions_that_fail_change_nothing() -> None:
    ours, theirs = made((60,), "f8")
    for at, value in (([0, 99], 1.0), ([0, 1], numpy.ones(3)), ([0, 1], 1j)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = []
            for np, x in ((lazynp, ours), (numpy, theirs)):
                try:
                    np.add.at(x, np.asarray(at), value)
                except Exception as error:
                    errors.append((type(error), str(error)))
            assert not errors or errors[0] == errors[1]
        same(ours, theirs)
    ours.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        lazynp.add.at(ours, lazynp.asarray([0]), 1)


# Contractions, products, complex numbers ------------------------------------------------------------------------------------------


def peak_of(run: Callable[[], Any]) -> int:
    """Bytes that NumPy and lazynp allocate at most in a call, the second time."""
    run()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def windows(np: Any, *arguments: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(*arguments)


CONTRACTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "windows": lambda np, x: np.einsum("ijkl,kl->ij", windows(np, x, (7, 7)), x[:7, :7]),
    "windows of an axis": lambda np, x: np.einsum("ijk,k->ij", windows(np, x, 30, 1), x[0, :30]),
    "some windows": lambda np, x: np.einsum("ijkl->ij", windows(np, x, (9, 9))[::2, ::2]),
    "a broadcast": lambda np, x: np.einsum("ijk,jk->i", np.broadcast_to(x, (40, *x.shape)), x),
    "strides": lambda np, x: np.einsum("ij->i", np.lib.stride_tricks.as_strided(x, (99, 500), (8, 8))),
    "three": lambda np, x: np.einsum("ijk,j,k->i", windows(np, x[:, :50], 50, 0)[:40], x[0, :50], x[0, :50]),
    "windows of what is pending": lambda np, x: np.einsum("ijkl,kl->ij", windows(np, x * 2, (7, 7)), x[:7, :7]),
}


@pytest.mark.parametrize("which", CONTRACTIONS)
def test_contractions_copy_no_windows(which: str) -> None:
    theirs = numpy.random.default_rng(0).random((120, 120))
    ours = lazynp.asarray(theirs.copy())
    found, wanted = CONTRACTIONS[which](lazynp, ours), CONTRACTIONS[which](numpy, theirs)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    numpy.testing.assert_allclose(numpy.asarray(found), wanted, rtol=1e-12)
    least = peak_of(lambda: CONTRACTIONS[which](numpy, theirs))
    assert peak_of(lambda: numpy.asarray(CONTRACTIONS[which](lazynp, ours))) <= least + 2 * theirs.nbytes


def test_contractions_that_are_views() -> None:
    ours, theirs = made((12, 12), "f8")
    for subscripts in ("ij->ji", "ii->i"):
        view = lazynp.einsum(subscripts, ours)
        same(view, numpy.einsum(subscripts, theirs))
        assert view.base is ours
    same(lazynp.einsum("ii", ours), numpy.einsum("ii", theirs))


PRODUCTS: dict[str, Callable[..., Any]] = {
    "a number times": lambda np, a, b, x: 1.5 * a @ x,
    "two": lambda np, a, b, x: 1.5 * a @ x + 0.5 * b @ x,
    "a difference": lambda np, a, b, x: (a - b) @ x,
    "some steps": lambda np, a, b, x: ((a - b) / (b + 2.0) * -a) @ x,
    "np.dot": lambda np, a, b, x: np.dot(a + b, x),
    "dot": lambda np, a, b, x: (a * 2.0).dot(x),
    "some columns": lambda np, a, b, x: np.sqrt(a * a) @ b[:, :3],
    "a negative": lambda np, a, b, x: -a @ x,
}


@pytest.mark.parametrize("which", PRODUCTS)
def test_products_of_an_expression_in_passing(which: str) -> None:
    rng = numpy.random.default_rng(0)
    theirs = [rng.random((600, 500)), rng.random((500, 500)), rng.random((600, 500)), rng.random(500)]
    for square in (False, True):
        given = [theirs[1], theirs[1].T.copy(), theirs[3]] if square or which == "some columns" else [theirs[0], theirs[2], theirs[3]]
        mine = [lazynp.realize(lazynp.asarray(x) + 0.0) for x in given]
        with config.override(tape_limit=20_000):
            found = PRODUCTS[which](lazynp, *mine)
            wanted = PRODUCTS[which](numpy, *given)
            numpy.testing.assert_allclose(numpy.asarray(found), wanted, rtol=1e-12)
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            before = counts()[0]
            run = lambda mine=mine: PRODUCTS[which](lazynp, *mine)  # noqa: E731
            assert peak_of(run) < given[0].nbytes
            assert counts()[0] == before


def test_products_in_passing_warn_once() -> None:
    a, x = numpy.full((600, 500), 1e300), numpy.ones(500)
    mine = lazynp.realize(lazynp.asarray(a) + 0.0), lazynp.asarray(x)
    with config.override(tape_limit=20_000), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = numpy.asarray((1e10 * mine[0]) @ mine[1])
    assert numpy.isinf(found).all()
    assert [str(w.message) for w in heard] == ["overflow encountered in multiply"] and heard[0].filename == __file__
    with config.override(tape_limit=20_000), numpy.errstate(over="raise"), pytest.raises(FloatingPointError, match="multiply"):
        (1e10 * mine[0]) @ mine[1]


COMPLEX: dict[str, Callable[[Any, Any], Any]] = {
    "a product and a sum": lambda c, d: c * d + c,
    "a square": lambda c, d: c * c + d,
    "numbers": lambda c, d: 2.5j * c - d * 2 + 1,
    "their conjugates": lambda c, d: c * c.conj() - d.conjugate(),
    "sums": lambda c, d: (c + d) * (c - d),
    "slices": lambda c, d: c[::2] * d[::2] + c[::2],
    "a small one beside": lambda c, d: c.reshape(-1, 10) * d[:10] + d[:10],
    "then a function": lambda c, d: abs(c * d + 1),
}


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("which", COMPLEX)
def test_expressions_of_complex_numbers_take_one_pass(which: str, dtype: str) -> None:
    rng = numpy.random.default_rng(0)
    c, d = [(rng.random(3000) + 1j * rng.random(3000)).astype(dtype) for _ in range(2)]
    x, y = [lazynp.realize(lazynp.asarray(z) * 1) for z in (c, d)]
    run = COMPLEX[which]
    for _ in range(3):
        before, passes = counts()[0], core.chain_counts()[0]
        found = run(x, y)
        assert core.chain_counts()[0] == passes or which == "then a function", "what waits"
        lazynp.realize(found)
        assert core.chain_counts()[0] == passes + (which != "slices")
        assert counts()[0] == before
        same(found, run(c, d))
        found += 1
        same(found, run(c, d) + 1)
        same(found[3:9] * 2, (run(c, d) + 1)[3:9] * 2)


OF_REAL: dict[str, Callable[[Any, Any, Any], Any]] = {
    "parts": lambda r, s, c: r + 1j * s,
    "beside complex ones": lambda r, s, c: r * c + s,
    "on the right": lambda r, s, c: (c - r) * s,
    "numbers": lambda r, s, c: (r - 1j) * (s + (2 - 3j)) * c,
    "a complex result": lambda r, s, c: r * numpy.complex128(1 - 2j) - c * s,
    "a conjugate": lambda r, s, c: (r + 1j * s).conj() * c - r.conj(),
    "rows": lambda r, s, c: r[:100] * c.reshape(-1, 100) + 1j,
}


@pytest.mark.parametrize("below", [1000, 5000])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?"])
@pytest.mark.parametrize("which", OF_REAL)
def test_real_numbers_become_complex_in_the_pass(which: str, dtype: str, below: int) -> None:
    rng = numpy.random.default_rng(1)
    r, s = [(rng.random(3000) * 5).astype(dtype) for _ in range(2)]
    c = (rng.random(3000) - 1j * rng.random(3000)).astype("c8" if dtype == "f4" else "c16")
    for special in (numpy.inf, numpy.nan, -0.0, 1e38):
        if r.dtype.kind == "f":
            at = rng.integers(0, 3000, 6)
            r[at[:2]], s[at[2:4]], c[at[4:]] = special, -special, complex(special, -1)
    run = OF_REAL[which]
    with config.override(tape_limit=below), numpy.errstate(all="ignore"):
        mine = [lazynp.array(x) for x in (r, s, c)]
        for _ in range(3):
            before, passes = counts()[0], core.chain_counts()[0]
            found = run(*mine)
            assert core.chain_counts()[0] == passes, "what waits"
            lazynp.realize(found)
            if below > 3000:
                assert core.chain_counts()[0] == passes + 1
            assert counts()[0] == before
            same(found, run(r, s, c))


def test_what_complex_expressions_read_may_be_written_and_shown_meanwhile() -> None:
    z = numpy.arange(100) * (1 + 1j)
    x = lazynp.realize(lazynp.asarray(z) * 1)

    class Writes:
        @property
        def now(self) -> Any:
            x[0] = 77
            return x

    for _ in range(3):
        x[0] = 0
        found = x * 2 + Writes().now  # NumPy's has multiplied before
        same(found[:1], numpy.array([77 + 0j]))
    outside = numpy.asarray(x)
    for _ in range(3):
        same(x * x + x, outside * outside + outside)
        outside += 1


# Ranges ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(100,), (3, 103), (5, -95, -1), (0, 1000, 7), (-50, 50.0), (0.5, 100.5), (200, 0, -2)])
@pytest.mark.parametrize("dtype", [None, "i2", "i8", "f4", "f8"])
def test_ranges_need_no_program(arguments: tuple[Any, ...], dtype: str | None) -> None:
    wanted = numpy.arange(*arguments, dtype=dtype)
    ours = lazynp.arange(*arguments, dtype=dtype)
    before = counts()[0]
    assert ours[7] == wanted[7]
    same(ours, wanted)
    assert counts()[0] == before


def test_a_first_range_loads_no_engine() -> None:
    program = "import sys, lazynp as np; x = np.arange(1_000_000); x.flat[3], x[7]; print('lazynp.engine.realize' in sys.modules)"
    environment = {**os.environ, "LAZYNP_TAPE_LIMIT": "786432"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "False"


def test_ranges_that_wrap() -> None:
    for dtype, start, step in itertools.product(("i1", "u1", "i8"), (0, 5), (1, 3)):
        kind = numpy.dtype(dtype)
        wanted = (numpy.arange(100, dtype="i8") * step + start).astype(dtype)
        assert iota(100, kind.type(start), kind.type(step), kind).tobytes() == wanted.tobytes()
    last = numpy.int64(2**63 - 10)
    with numpy.errstate(all="ignore"):
        assert iota(20, last, numpy.int64(1), numpy.dtype("i8")).tobytes() == (numpy.arange(20) + last).tobytes()
