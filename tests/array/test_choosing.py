"""What is chosen or named in an array at hand: views and writes by integers and slices, masks, positions, `where`, sums of short rows.

In: tables of dtypes, shapes, layouts and keys.  Out: failures.  Promise: NumPy is the oracle for values, dtypes, strides and errors.
"""

from __future__ import annotations

import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from operator import getitem, setitem
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.values import config

DTYPES = [bool, numpy.int8, numpy.int16, numpy.int32, int, numpy.uint64, numpy.float16, numpy.float32, float, numpy.complex64, complex]
SHAPES = [(5,), (64,), (130,), (0,), (7, 9), (3, 70), (70, 3), (5, 1), (1, 5), (4, 5, 6), (0, 3), (3, 0), (2, 2)]
LAYOUTS = {
    "as it is": lambda x: x,
    "backwards": lambda x: x[::-1],
    "every other": lambda x: x[::2],
    "without the first": lambda x: x[1:],
    "transposed": lambda x: x.T,
    "inner": lambda x: x[..., 1:-1],
}
KEYS: list[Any] = [
    0, -1, 1, 99, numpy.int64(2), slice(1, -1), slice(None), slice(None, None, 2), slice(None, None, -1), slice(5, 2), slice(-3, None),
    slice(2**60, None), slice(None, None, 2**60), slice(numpy.int64(1), None), slice(None, None, 0), slice(1.5, None), None, Ellipsis, (),
    True, (0, slice(1, None)), (slice(1, None), 0), (slice(1, -1), slice(1, -1)), (slice(None), None, 1), (None, 0), (..., 0),
    (0, 0, slice(None)), (0, 99), (2**70, 0), (slice(None),) * 4, (None,) * 9, (slice(None, None, -1), slice(None, None, -2)),
    ([0, 1], slice(None)), "field",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=4096):
        yield


def same(found: Any, wanted: Any) -> None:
    memory = numpy.asarray(found)
    assert (memory.dtype, memory.shape) == (wanted.dtype, wanted.shape)
    assert memory.tobytes() == wanted.tobytes()
    if wanted.size and 1 not in wanted.shape and wanted.ndim:
        assert memory.strides == wanted.strides
        assert memory.flags.writeable == wanted.flags.writeable


def pairs(rng: numpy.random.Generator, shape: Any, dtype: Any) -> Iterator[tuple[Any, Any]]:
    """The same elements, as NumPy has them and at hand, in all layouts."""
    base = (rng.random(shape) * 100 - 20).astype(dtype)
    for layout in LAYOUTS.values():
        yield layout(base.copy()), layout(lazynp.array(base))


def told(function: Any, *args: Any) -> Any:
    """What a function returns, or its exception."""
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_views_are_numpys(shape: Any) -> None:
    for theirs, ours in pairs(numpy.random.default_rng(0), shape, float):
        for key in KEYS:
            wanted, found = told(getitem, theirs, key), told(getitem, ours, key)
            if isinstance(wanted, tuple):
                assert found == wanted, key
                continue
            same(found, wanted)
            if wanted.size:
                assert numpy.shares_memory(numpy.asarray(found), numpy.asarray(ours)) == numpy.shares_memory(wanted, theirs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [bool, numpy.int16, int, numpy.float32, float, complex])
def test_writes_are_numpys(shape: Any, dtype: Any) -> None:
    rng = numpy.random.default_rng(1)
    for theirs, ours in pairs(rng, shape, dtype):
        for key in KEYS:
            part = told(getitem, theirs, key)
            number: Any = True if dtype is bool else 3
            values = [number, 2.5, 2**40, numpy.ones(3, dtype), None if isinstance(part, tuple) else rng.random(part.shape).astype(dtype)]
            for value in values:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = told(setitem, theirs, key, value)
                    found = told(setitem, ours, key, lazynp.array(value) if isinstance(value, numpy.ndarray) else value)
                assert found == wanted, (key, value)
                same(ours, theirs)


def test_writes_of_what_overlaps_and_of_itself() -> None:
    for key, other in [
        (slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None)), (slice(None), slice(None, None, -1)),
        ((slice(None), 0), (slice(None), 2)), (1, 1), (slice(2, 5), slice(2, 5)), ((slice(None), slice(1, 3)), (slice(None), slice(2, 4))),
    ]:  # fmt: skip
        theirs, ours = numpy.arange(48.0).reshape(8, 6), lazynp.array(numpy.arange(48.0).reshape(8, 6))
        for x in (theirs, ours):
            x[key] = x[other]
            x[key] += 1
        same(ours, theirs)
    fixed = lazynp.zeros(4)
    fixed.flags.writeable = False
    for value in (1.0, fixed[:2], lazynp.ones(2)):
        with pytest.raises(ValueError, match="read-only"):
            fixed[:2] = value


@pytest.fixture(params=[True, False], ids=["by vectors", "one by one"])
def vectors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Elements are chosen by vectors, where the processor can, and not."""
    by_vectors = import_module("lazynp.array._core").by_vectors
    by_vectors(request.param)
    yield
    by_vectors(True)


@pytest.mark.usefixtures("vectors")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_positions_and_where(shape: Any, dtype: Any) -> None:
    rng = numpy.random.default_rng(2)
    number: Any = True if dtype is bool else 1
    for share in (0, 0.1, 0.5, 0.9, 1):
        for theirs, ours in pairs(rng, shape, dtype):
            for axes in range(1, theirs.ndim + 1):
                mask = rng.random(theirs.shape[:axes]) < share
                given = lazynp.array(mask)
                same(ours[given], theirs[mask])
                values = (rng.random((mask.sum(), *theirs.shape[axes:])) * 50).astype(dtype)
                theirs[mask], ours[given] = values, lazynp.array(values)
                same(ours, theirs)
                if dtype is not bool:
                    theirs[mask] -= values
                    ours[given] -= lazynp.array(values)
                    same(ours, theirs)
            theirs[mask], ours[given] = number, number
            same(ours, theirs)
            other = (rng.random(theirs.shape) * 100).astype(dtype)
            same(lazynp.where(given, ours, lazynp.array(other)), numpy.where(mask, theirs, other))
            same(lazynp.where(given, ours, number), numpy.where(mask, theirs, number))
            same(lazynp.where(given, number, ours), numpy.where(mask, number, theirs))
            if theirs.ndim == 2:
                same(lazynp.where(given[:, :1], ours, lazynp.array(other)[:1]), numpy.where(mask[:, :1], theirs, other[:1]))
                same(lazynp.where(given[:, :, None], ours[:, None], number), numpy.where(mask[:, :, None], theirs[:, None], number))
            for count in (0, 1, 2, 9) if len(theirs) else ():
                places = rng.integers(-len(theirs), len(theirs), count)
                same(ours[lazynp.array(places)], theirs[places])


@pytest.mark.parametrize("layout", ["as it is", "backwards", "every other"])
@pytest.mark.parametrize("dtype", [*DTYPES, "f4,f4", "S3", object])
def test_elements_at_positions(dtype: Any, layout: str) -> None:
    rng = numpy.random.default_rng(5)
    whole = (rng.random(40) * 50).astype(dtype)
    ours, theirs = LAYOUTS[layout](lazynp.array(whole)), LAYOUTS[layout](whole)
    same(ours, theirs)
    n = len(theirs)
    for shape in ((1,), (7,), (600,), (3, 4), (2, 0), (2, 3, 4), (1, 2, 1, 2, 1)):
        places = rng.integers(-n, n, shape)
        for given in (places, places.T, places[..., ::-1], places.astype(numpy.int32)):
            same(ours[lazynp.array(given)], theirs[given])
        values = theirs[rng.integers(0, n, shape)]
        theirs[places], ours[lazynp.array(places)] = values, lazynp.array(values)
        same(ours, theirs)
        theirs[places], ours[lazynp.array(places)] = theirs[0], ours[0]
        same(ours, theirs)
    for bad in ([n], [-n - 1], [0, 3, 2**62], [1, -(2**63)]):
        before = theirs.copy()
        raised = [caught(lambda x=x, key=key: x[key]) for x, key in ((theirs, numpy.array(bad)), (ours, lazynp.array(bad)))]
        assert raised[0] == raised[1] and raised[0][0] is IndexError
        raised = [caught(lambda x=x, key=key: setitem(x, key, x[1])) for x, key in ((theirs, numpy.array(bad)), (ours, lazynp.array(bad)))]
        assert raised[0] == raised[1] and raised[0][0] is IndexError
        assert numpy.asarray(ours).tobytes() == before.tobytes()


def caught(call: Callable[[], Any]) -> tuple[type, str]:
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return type(None), ""


def test_positions_that_are_written_while_they_are_used() -> None:
    theirs, ours = numpy.arange(20)[::-1].copy(), lazynp.array(numpy.arange(20)[::-1])
    for x in (theirs, ours):
        x[x] = 3
    same(ours, theirs)
    theirs, ours = numpy.arange(20), lazynp.arange(20)
    for x in (theirs, ours):
        x[x[::-1][:10]] = x[:10]
        x[x[5:9]] = x[:4]
    same(ours, theirs)


@pytest.mark.usefixtures("vectors")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 7, 8, 63, 64, 65, 127, 200, 1000])
def test_masks_of_all_densities(dtype: Any, length: int) -> None:
    rng = numpy.random.default_rng(length)
    for share in (0, 0.02, 0.3, 0.7, 0.98, 1):
        # what is not chosen is not read, nor written: it lies behind the memory's end
        whole = (rng.random((length, 2)) * 100).astype(dtype)[:, 0].copy()
        mask = rng.random(length) < share
        ours = lazynp.array(whole)
        same(ours[lazynp.array(mask)], whole[mask])
        values = whole[mask][::-1].copy()
        whole[mask], ours[lazynp.array(mask)] = values, lazynp.array(values)
        same(ours, whole)
        whole[mask], ours[lazynp.array(mask)] = dtype(True), dtype(True)
        same(ours, whole)


def test_masks_of_other_bytes_strides_and_counts() -> None:
    theirs, ours = numpy.arange(200.0).reshape(20, 10), lazynp.arange(200.0).reshape(20, 10)
    odd = numpy.array([0, 1, 2, 255] * 50, numpy.uint8).reshape(20, 10).view(bool)
    wide = numpy.random.default_rng(3).random((20, 20)) < 0.5
    for mask in (odd, wide[:, :10], wide[:, ::2], numpy.asfortranarray(wide[:, 10:])):
        given = lazynp.asarray(mask)
        if mask is not odd:  # which of its bytes NumPy takes for true is not the same everywhere
            same(ours[given], theirs[mask])
        assert ours[given].tolist() == [x for x, chosen in zip(theirs.ravel(), mask.ravel(), strict=True) if chosen]
        for values in (numpy.ones(3), numpy.ones(1), numpy.ones((2, 2)), 1 + 2j):
            wanted, found = told(setitem, theirs, mask, values), told(setitem, ours, given, values)
            assert (found is None) == (wanted is None)
            same(ours, theirs)
    truth = lazynp.array([True, False, True])
    truth[truth] = False
    assert not truth.any()


def test_places_out_of_bounds_are_told_in_numpys_words() -> None:
    theirs = numpy.arange(12.0).reshape(4, 3)
    ours = lazynp.array(theirs)
    for places in ([0, 4], [-5, 1]):
        wanted = told(getitem, theirs, numpy.array(places))
        assert told(getitem, ours, lazynp.array(places)) == wanted


def test_nothing_is_written_but_what_is_chosen() -> None:
    """Another thread may write the other elements of the same array meanwhile."""
    x = lazynp.zeros(4000)
    mask = lazynp.arange(4000) % 2 == 0
    memory = numpy.asarray(x)
    other = numpy.arange(1, 4000, 2)

    def beside() -> None:
        for k in range(200):
            memory[other] = k

    thread = threading.Thread(target=beside)
    thread.start()
    for k in range(200):
        x[mask] = float(k)
    thread.join()
    assert set(memory.tolist()) == {199.0}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "any", "all"])
def test_short_rows(name: str, dtype: Any) -> None:
    rng = numpy.random.default_rng(4)
    for rows in (2, 7, 8, 9, 100):
        for columns in range(2, 10):
            theirs = ((rng.random((rows, columns)) - 0.5) * 100).astype(dtype)
            theirs[rng.random(theirs.shape) < 0.3] = -0.0 if numpy.dtype(dtype).kind in "fc" else 0
            for x in (theirs, theirs[:, :-1], theirs[::2]):
                for keeps in (False, True):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        wanted = getattr(numpy, name)(x, axis=1, keepdims=keeps)
                        same(getattr(lazynp, name)(lazynp.array(x), axis=1, keepdims=keeps), wanted)


def test_short_rows_warn_as_numpy_does() -> None:
    said = []
    for np in (numpy, lazynp):
        x = np.full((20, 3), 1e308)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            np.sum(x, axis=1)
        said.append([(str(w.message), w.lineno, w.filename) for w in caught])
    assert said[0][0][0] == said[1][0][0]
    assert said[1][0][2] == __file__


@pytest.mark.parametrize("size", [5, 600, 6000])
@pytest.mark.parametrize("dtype", [bool, int, numpy.float32, float, complex])
def test_numpys_doubles_leave_operators_to_arrays(size: int, dtype: Any) -> None:
    theirs = numpy.arange(size).astype(dtype)
    own = type("Own", (numpy.float64,), {})(3)
    for function in (operator.add, operator.sub, operator.mul, operator.truediv):
        for ours in (lazynp.array(theirs), lazynp.array(theirs) + lazynp.array(theirs) * 0, lazynp.array(theirs)[1:]):
            memory = numpy.asarray(ours)
            for number in (numpy.float64(3), own):
                with numpy.errstate(all="ignore"), lazynp.errstate(all="ignore"):
                    wanted, found = function(number, memory), function(number, ours)
                assert type(found) is lazynp.ndarray
                same(found, wanted)
        for number, other in ((numpy.float64(3), 2), (3, numpy.float64(2)), (own, own), (numpy.float64(3), numpy.arange(1, 4))):
            wanted = function(float(number), other if isinstance(other, numpy.ndarray) else float(other))
            assert numpy.array_equal(function(number, other), wanted)
        assert function(numpy.float64(1), _Reflecting()) == "reflected"
        with pytest.raises(TypeError):
            function(numpy.float64(1), "a")


class _Reflecting:
    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "reflected"

    __rsub__ = __rmul__ = __rtruediv__ = __radd__


def test_errors_of_numpys_doubles_and_arrays_name_the_line() -> None:
    said = []
    for np in (numpy, lazynp):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            numpy.float64(1) / np.zeros(5)
        said.append([(str(w.message), w.lineno, w.filename) for w in caught])
    assert said[0] == said[1]
    assert len(said[0]) == 1


@pytest.mark.parametrize("size", [3, 300])
def test_many_arrays_joined(size: int) -> None:
    theirs = numpy.arange(float(size))
    ours = lazynp.array(theirs)
    lists: list[Callable[[Any], Any]] = [
        lambda x: [x, x[1:2], x[:0]], lambda x: (x,), lambda x: [x[k : k + 2] for k in range(size)], lambda x: [x[:0]],
        lambda x: [x[::2], x], lambda x: [x, x.astype(int)], lambda x: [x, x > 1], lambda x: [x[None], x[None]], lambda x: [x, x[None]],
        lambda x: [], lambda x: [x[0]], lambda x: [x, [1.0, 2.0]], lambda x: [x, 1.0],
    ]  # fmt: skip
    for made in lists:
        wanted, found = told(numpy.concatenate, made(theirs)), told(lazynp.concatenate, made(ours))
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            same(found, wanted)
            assert not numpy.shares_memory(numpy.asarray(found), numpy.asarray(ours))


def test_rows_of_large_arrays_in_one_pass() -> None:
    """Rows are operands of expressions as long as nobody outside may write them."""

    def program(np: Any, x: Any, y: Any) -> Any:
        for k in range(1, len(x)):
            y[k] = (x[k] - 0.5 * y[k - 1]) / 1.5 + x[k - 1]
        return y

    def grid(np: Any) -> tuple[Any, Any]:
        x = np.linspace(0, 1, 40 * 300).reshape(40, 300) + 0.0
        return x, np.zeros((40, 300))

    wanted = program(numpy, *grid(numpy))
    x, y = grid(lazynp)
    lazynp.realize(x, y)
    before = core.chain_counts()[0]
    same(program(lazynp, x, y), wanted)
    assert core.chain_counts()[0] - before == 39, "one a turn"
    (x, y), (p, q) = grid(lazynp), grid(numpy)
    memory = numpy.asarray(x)
    same(program(lazynp, x, y), wanted)
    for k in range(1, len(x)):
        z, w = x[k] - x[k - 1], p[k] - p[k - 1]  # at the call
        memory[k] += 1.0
        p[k] += 1.0
        before = core.chain_counts()[0]
        y[k], q[k] = lazynp.realize(z), w
        assert core.chain_counts()[0] == before
    same(x, p)
    same(y[1:], q[1:])
    del memory


def test_truth_values_that_somebody_writes_meanwhile() -> None:
    """Who needs no interpreter may write memory that he was shown while elements are chosen by it: no more are taken than were counted."""
    n = 60_000
    with config.override(tape_limit=100_000):
        x, y = lazynp.arange(float(n)), lazynp.arange(float(n))
        mask = lazynp.zeros(n, dtype=bool)
    again = numpy.lib.stride_tricks.as_strided(numpy.asarray(mask), (2000, n), (0, 1))  # the mask's memory, 2000 times
    values = numpy.broadcast_to(numpy.arange(2000)[:, numpy.newaxis] % 2 == 1, again.shape)
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            numpy.copyto(again, values)  # without the interpreter's lock

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with config.override(tape_limit=100_000):
            for _ in range(1000):
                found = numpy.asarray(x[mask])
                assert found.size <= n and (found.size == 0 or 0 <= found.min() <= found.max() < n)
                y[mask] = 1.0
    finally:
        over.set()
        writer.join()


# Positions and points, at random ---------------------------------------------------------------------------------------------------

CHOSEN_FROM: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "backwards": lambda x: x[::-1],
    "rows backwards": lambda x: x[..., ::-1],
    "turned": lambda x: x.T,
    "every other": lambda x: x[::2],
}


def positions(rng: Any, n: int, length: int) -> tuple[Any, Any]:
    """Positions along an axis, NumPy's and ours: in a list, an array, one that waits, one of int32; sometimes one is out of range."""
    listed = [int(k) for k in rng.integers(-length, length, n)]
    if rng.random() < 1 / 30:
        listed[0] = length
    way = rng.integers(0, 4)
    if way == 0:
        return listed, listed
    x = numpy.array(listed, dtype="i4" if way == 1 else "i8")
    return x, lazynp.array(x) + 0 if way == 2 else lazynp.array(x)


def some_key(rng: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    n, way = int(rng.integers(1, 6)), rng.integers(0, 4)
    if way == 0 or len(shape) == 1:
        return positions(rng, n, shape[0])
    if way == 1:
        mask = rng.random(shape) > 0.5
        return mask, lazynp.array(mask * 1.0) > 0 if rng.random() < 0.5 else lazynp.array(mask)
    if way == 2:
        theirs, ours = positions(rng, n, shape[0])
        return (theirs, slice(None)), (ours, slice(None))
    parts = [positions(rng, n, length) if rng.random() < 0.7 else (int(rng.integers(-length, length)),) * 2 for length in shape]
    return tuple([theirs for theirs, _ in parts]), tuple([ours for _, ours in parts])


def outcome(program: Callable[[], Any]) -> Any:
    """Bytes, dtype, shape and strides of what a program returns; or its exception."""
    try:
        x = numpy.asarray(program())
    except Exception as error:
        return type(error), str(error)
    return x.tobytes(), x.dtype, x.shape, [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1", "?", "c16", "c8", "g"])
def test_positions_and_points_are_numpys(dtype: str, seed: int) -> None:
    rng = numpy.random.default_rng([seed, ord(dtype[0])])
    for _ in range(60):
        made = (rng.random(tuple(rng.integers(1, 6, rng.integers(1, 5)).tolist())) * 50).astype(dtype)
        lies = CHOSEN_FROM[str(rng.choice(list(CHOSEN_FROM)))]
        x, y = lies(made.copy()), lies(lazynp.array(made))
        theirs, ours = some_key(rng, x.shape)
        found = outcome(lambda x=x, key=theirs: x[key])
        assert outcome(lambda y=y, key=ours: y[key]) == found
        if not isinstance(found[0], bytes):
            continue
        shape = found[2] if rng.random() < 0.5 else found[2][1:]
        value = (rng.random(shape) * 9).astype(dtype) if rng.random() < 0.7 else 3

        def write(to: Any, key: Any, value: Any) -> Any:
            to[key] = value
            return to

        ready = lazynp.array(value) if isinstance(value, numpy.ndarray) else value
        assert outcome(partial(write, y, ours, ready)) == outcome(partial(write, x, theirs, value))
