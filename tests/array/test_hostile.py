"""Operands that change while an operation holds them: nothing is read or written but what is there, and exceptions are NumPy's.

``LAZYNP_EXAMPLES=2000`` runs that many random programs (``hostile``) instead of some hundred.
"""

from __future__ import annotations

import copy
import gc
import operator
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.values import config

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = int(os.environ.get("LAZYNP_EXAMPLES", 240))
CHUNK: Final = 60
LARGE: Final = 786_433


@pytest.fixture(params=[786_432, 0], ids=["at hand", "recorded"], autouse=True)
def regime(request: pytest.FixtureRequest) -> Iterator[None]:
    with config.override(tape_limit=request.param):
        yield


def outcome(call: Callable[[], Any]) -> Any:
    """What comes of a call: the exception and its text, or the values."""
    try:
        found = call()
    except Exception as error:
        return type(error), str(error)
    return numpy.asarray(found).tolist()


# Iterators -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "taken", "after"),
    [
        ((2, 2), 1, (4,)),
        ((4,), 1, (2, 2)),
        ((2, 3), 0, (3, 2)),
        ((6,), 2, (1, 6)),
        ((1, 6), 0, (6, 1)),
        ((3, 2), 1, (1, 2, 3)),
        ((2, 2), 2, (4,)),
        ((4,), 4, (4, 1)),
    ],
)
def test_rows_of_an_array_that_gets_another_shape(before: tuple[int, ...], taken: int, after: tuple[int, ...]) -> None:
    def rows(np: Any) -> list[Any]:
        x = np.arange(float(numpy.prod(before))).reshape(before).copy()
        found = iter(x)
        for _ in range(taken):
            next(found)
        x.shape = after
        rest = list(found)
        assert all(type(row) is np.ndarray for row in rest) or x.ndim == 1
        return [numpy.asarray(row).tolist() for row in rest]

    assert rows(lazynp) == rows(numpy)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_rows_of_an_array_that_loses_its_axes(shape: tuple[int, ...]) -> None:
    x = lazynp.zeros(shape)
    rows = iter(x)
    x.shape = ()
    with pytest.raises((IndexError, TypeError)):
        next(rows)


def test_rows_of_an_array_that_is_resized() -> None:
    x = lazynp.arange(6.0)
    rows = iter(x)
    next(rows)
    x.resize(2, refcheck=False)
    assert [float(row) for row in rows] == [1.0]


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_iterators_are_copied_pickled_and_say_what_is_left(shape: tuple[int, ...]) -> None:
    with config.override(tape_limit=786_432):
        rows = iter(lazynp.zeros(shape) + 1)
        next(rows)
        assert operator.length_hint(rows) == 2
        assert len(list(copy.copy(rows))) == len(list(pickle.loads(pickle.dumps(rows)))) == len(list(rows)) == 2
    assert operator.length_hint(rows) == 0 and list(rows) == [] and list(copy.copy(rows)) == []


# Lists that hold themselves --------------------------------------------------------------------------------------------------------


def itself() -> list[Any]:
    x: list[Any] = []
    x.append(x)
    return x


def one_another() -> list[Any]:
    x: list[Any] = []
    x.append((1, [x]))
    return [x]


def deep() -> list[Any]:
    x: list[Any] = [1]
    for _ in range(5000):
        x = [x]
    return x


OF_ONE: Final = [
    "diag",
    "diagflat",
    "meshgrid",
    "ix_",
    "vander",
    "array",
    "asarray",
    "sum",
    "sin",
    "mean",
    "concatenate",
    "stack",
    "vstack",
    "unique",
    "sort",
    "median",
    "cumsum",
    "trace",
    "tril",
    "argmax",
    "nonzero",
    "isnan",
    "ravel",
    "gradient",
    "atleast_2d",
    "flip",
    "linalg.inv",
    "linalg.norm",
    "fft.fft",
]
OF_TWO: Final = [
    "kron",
    "outer",
    "add",
    "multiply.outer",
    "add.outer",
    "dot",
    "cross",
    "convolve",
    "isclose",
    "allclose",
    "searchsorted",
    "tensordot",
    "append",
    "intersect1d",
]
WITH_NUMBER: Final = ["tile", "repeat", "resize", "roll", "percentile", "full_like"]


@pytest.mark.parametrize("made", [itself, deep])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO, *WITH_NUMBER])
def test_a_list_that_holds_itself_is_refused_as_numpy_does(name: str, made: Callable[[], list[Any]]) -> None:
    x = made()
    rest = (x,) if name in OF_TWO else (2,) if name in WITH_NUMBER else ()
    assert outcome(lambda: operator.attrgetter(name)(lazynp)(x, *rest)) == outcome(lambda: operator.attrgetter(name)(numpy)(x, *rest))


@pytest.mark.parametrize("made", [itself, one_another, deep])
@pytest.mark.parametrize("n", [5, LARGE])
def test_such_lists_as_keys_and_operands(made: Callable[[], list[Any]], n: int) -> None:
    x = made()

    def written(a: Any, key: Any, value: Any) -> None:
        a[key] = value

    def added(a: Any) -> None:
        a += x

    calls: list[Callable[[Any], Any]] = [lambda a: a[x], lambda a: a[x, None], lambda a: a + x, lambda a: x * a, lambda a: a < x, added]
    calls += [lambda a: written(a, x, 1), lambda a: written(a, slice(None), x), lambda a: written(a, 0, x), lambda a: a.take(x)]
    for k, call in enumerate(calls):
        found, wanted = outcome(lambda: call(lazynp.arange(float(n)))), outcome(lambda: call(numpy.arange(float(n))))  # noqa: B023 - called here
        assert found[0] in (wanted[0], ValueError), k


# Keys that change ------------------------------------------------------------------------------------------------------------------


class Whole:
    """A whole number that does something when it is used."""

    def __init__(self, value: int, deed: Callable[[], Any]) -> None:
        self.value, self.deed = value, deed

    def __index__(self) -> int:
        self.deed()
        return self.value


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("more", [[object()], [1] * 5000, [None], ["x"], [[1, 2]]])
def test_a_list_in_a_key_that_grows_when_a_tuple_is_made(more: list[Any], written: bool) -> None:
    x, positions, numbers, armed = lazynp.arange(12.0).reshape(3, 4), lazynp.array([0, 1]), [1, 2], False

    def collected(phase: str, info: dict[str, int]) -> None:
        if armed and len(numbers) == 2:
            numbers.extend(more)

    threshold = gc.get_threshold()
    gc.callbacks.append(collected)
    try:
        for _ in range(100):
            armed = False
            gc.set_threshold(0)
            numbers[:] = [1, 2]
            key = (positions, numbers) + (None,) * 30
            gc.set_threshold(1)
            armed = True
            try:
                if written:
                    x[key] = 1
                else:
                    x[key]
            except (IndexError, ValueError, TypeError):
                pass
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)
    assert x.shape == (3, 4)


@pytest.mark.parametrize("n", [24, LARGE + 23])
@pytest.mark.parametrize("use", ["read", "write", "read a slice", "write a slice", "reshape", "take", "sum"])
@pytest.mark.parametrize("deed", ["reshape", "resize", "retype", "write", "let go"])
def test_an_array_that_changes_when_a_key_is_asked_for_its_value(deed: str, use: str, n: int) -> None:
    held = [lazynp.arange(float(n))]

    def deeds() -> None:
        if deed == "let go":
            held.clear()
            gc.collect()
            return
        x = held[0]
        if deed == "reshape":
            x.shape = (2, -1)
        elif deed == "resize":
            x.resize(5, refcheck=False)
        elif deed == "retype":
            x.dtype = "u1"
        else:
            x[...] = 7

    k = Whole(1, deeds)
    try:
        if use == "read":
            held[0][k]
        elif use == "write":
            held[0][k] = 5
        elif use == "read a slice":
            held[0][k:k:k].sum()
        elif use == "write a slice":
            held[0][k:9] = 5
        elif use == "reshape":
            held[0].reshape(k, -1).sum()
        elif use == "take":
            held[0].take([k, k])
        else:
            held[0].sum(axis=k)
    except (IndexError, ValueError, TypeError):
        pass
    for x in held:
        assert numpy.asarray(x).shape == x.shape


# resize -----------------------------------------------------------------------------------------------------------------------------


def resized_with(np: Any, n: int, other: Callable[[Any], Any]) -> Any:
    a = np.arange(float(n))
    kept = other(a)
    a.resize(10)
    del kept
    return a


@pytest.mark.parametrize("n", [40, LARGE])
@pytest.mark.parametrize(
    "other",
    [
        lambda a: a[5:10],
        lambda a: a,
        lambda a: a.reshape(1, -1),
        lambda a: a.T[::2],
        lambda a: a[1:][1:],
        lambda a: a.view("i8"),
        lambda a: a.flat,
        iter,
        lambda a: a + 1,
        lambda a: float(a[3]),
        lambda a: None,
        lambda a: a[[1, 2]],
        lambda a: a[5:10].sum(),
    ],
)
def test_what_somebody_else_has_is_not_resized(other: Callable[[Any], Any], n: int) -> None:
    assert outcome(lambda: resized_with(lazynp, n, other)) == outcome(lambda: resized_with(numpy, n, other))


@pytest.mark.parametrize("n", [40, LARGE + 1])
def test_to_the_same_size_it_is_another_shape_of_the_same_memory(n: int) -> None:
    a = lazynp.arange(float(n))
    part = a[2:5]
    a.resize(n // 2, 2)
    part[:] = 0
    assert a.shape == (n // 2, 2) and a[:3].tolist() == [[0, 1], [0, 0], [0, 5]]


def test_forms_of_the_call_that_numpy_takes() -> None:
    for call in (
        lambda a: a.resize(*(3,)),
        lambda a: a.resize((3,), refcheck=True),
        lambda a: lazynp.ndarray.resize(a, 3),
        lambda a: operator.attrgetter("resize")(a)(3),
    ):
        held = [lazynp.arange(5.0)]
        call(held.pop())
    x = lazynp.arange(5.0)
    x.resize()
    x.resize(None)
    assert x.shape == (5,)


# Nothing to read ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8", "u1"])
@pytest.mark.parametrize("shape", [(64,), (8, 8), (3000,)])
def test_a_mask_that_chooses_nothing_reads_nothing(dtype: str, shape: tuple[int, ...]) -> None:
    x = lazynp.arange(numpy.prod(shape)).astype(dtype).reshape(shape)
    empty = numpy.lib.stride_tricks.as_strided(numpy.zeros(0, dtype), (0,), (0,))
    before = x.tolist()
    x[x != x] = lazynp.asarray(empty)
    assert x.tolist() == before


# Random programs ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="timers are POSIX's")
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow if seed else ()) for seed in range(0, EXAMPLES, CHUNK)])
def test_programs_whose_code_runs_in_between(seed: int, regime: None, request: pytest.FixtureRequest) -> None:
    if config.tape_limit == 0:
        return  # each program chooses its own
    command = [sys.executable, "-m", "tests.array.hostile", "--seed", str(seed), "--count", str(min(CHUNK, EXAMPLES - seed))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-20:]}\n{done.stderr[-6000:]}"
