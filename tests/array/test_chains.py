"""Operations on values at hand that are recorded, and computed in one pass when a value is asked for: `array/chains.h`.

In: tables and random programs.  Out: failures.  Promise: NumPy is the oracle; how many passes are run, and when, is counted.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import itertools
import os
import pickle
import threading
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.graph import report
from lazynp.values import config
from tests.array import chained
from tests.test_script import launch

SIDE = 80
TURN, STEPS = 16, 498  # steps, from which on a turn of a loop begins another tape, and which a tape has at most
Counts = tuple[int, int, int]  # see ``core.chain_counts``


@pytest.fixture(autouse=True)
def _usual_limit() -> Iterator[None]:
    """Tapes as by default, none of which is compiled."""
    core.settle()  # what another test has left waiting is none of this one's
    with config.override(tape_limit=65536), chained.chains_of(chained.SIZES[0]):
        yield


def in_threads(program: Callable[[int], Any], count: int) -> None:
    """Run a program in ``count`` threads at once, each with its number."""
    threads = [threading.Thread(target=program, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def grid(xp: Any, seed: int = 0, dtype: Any = float) -> Any:
    return xp.asarray((numpy.random.default_rng(seed).standard_normal((SIDE, SIDE)) * 10).astype(dtype), copy=True)


def forced(result: Any) -> Any:
    """What a program has returned, computed; it stays what it was, and nobody is shown memory."""
    if type(result) is lazynp.ndarray:
        lazynp.realize(result)
    elif isinstance(result, (list, tuple)):
        for x in result:
            forced(x)
    return result


def counted(program: Callable[..., Any], *arguments: Any) -> tuple[Any, Counts]:
    """A result, and how many passes were run, how many tapes went step by step, and how many passes were machine code."""
    before = core.chain_counts()
    result = program(*arguments)
    passes, steps, compiled = (y - x for x, y in zip(before, core.chain_counts(), strict=True))
    return result, (passes, steps, compiled)


def passes(program: Callable[[], Any]) -> tuple[Any, tuple[int, int]]:
    """The same for a program whose result is asked for: how many passes, and how many tapes went step by step."""
    result, (one_pass, steps, _) = counted(lambda: forced(program()))
    return result, (one_pass, steps)


def same(ours: Any, theirs: Any) -> None:
    """Every array of a result, in lists and tuples, is NumPy's to the bit."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs, strict=True):
            same(x, y)
    else:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert numpy.asarray(ours).tobytes() == numpy.asarray(theirs).tobytes()


# What waits -----------------------------------------------------------------------------------------------------------------------


def statements(np: Any, a: Any, b: Any, c: Any) -> Any:
    x = a * b
    y = x + c
    x = y - a
    return x * 2


def of_the_module(np: Any, x: Any, y: Any) -> Any:
    longest = np.sqrt(x * x + y * y)
    return np.maximum(longest, 1)


def held(np: Any, a: Any, b: Any, c: Any) -> Any:
    x = a * b
    y = x + c
    return x, y, y / (x * x + 1)


def unread(np: Any, a: Any, b: Any, c: Any) -> Any:
    x = a * b
    x = x / c
    a + c
    del x
    return a - b


def in_turn(np: Any, x: Any, b: Any, turns: int) -> Any:
    for _ in range(turns):
        x = x * 0.5 + b
    return x


class Point:
    """A class of a program's, whose methods compute with arrays."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Point) -> Point:
        return Point(self.x + other.x, self.y + other.y)

    def scaled(self, k: Any) -> Point:
        return Point(self.x * k, self.y * k)

    @property
    def length(self) -> Any:
        return (self.x**2 + self.y**2) ** 2


# Programs, and how many passes are run when their results are asked for.  Nothing is run before.
Program = Callable[[Any, Any, Any, Any], Any]
WAITING: dict[str, tuple[Program, int]] = {
    "one operator": (lambda np, a, b, c: a * b, 1),
    "one line": (lambda np, a, b, c: a * b + c, 1),
    "a line with functions": (lambda np, a, b, c: np.sqrt(a * a + b * b) * 0.5 - np.abs(a - b) / (1 + a * a), 1),
    "tests": (lambda np, a, b, c: (a < b) & ~(b < c) | (a == c), 1),
    "four statements": (statements, 1),
    "a function with the module": (lambda np, a, b, c: of_the_module(np, a - c, b) * 2, 1),
    "a function in another": (lambda np, a, b, c: statements(np, of_the_module(np, a, b), b, held(np, a, b, c)[1]), 1),
    "methods": (lambda np, a, b, c: a.__mul__(b).__radd__(c).__abs__(), 1),
    "a class": (lambda np, a, b, c: (Point(a, b).scaled(0.5) + Point(b, c)).length, 1),
    "held": (held, 1),
    "unread": (unread, 1),
    "a list": (lambda np, a, b, c: [a * k + b for k in range(5)], 1),
    "a generator": (lambda np, a, b, c: sum((x * 0.5 for x in (a, b, c)), a), 1),
    "evaluated": (lambda np, a, b, c: eval("a * b - c", {"a": a, "b": b, "c": c}), 1),
    "a map": (lambda np, a, b, c: list(map(lambda x, y: x * y - x, (a, b), (b, c))), 1),
    "a dictionary": (lambda np, a, b, c: list({"x": a - 1, "y": (a - 1) * b}.values()), 1),
    "a conditional": (lambda np, a, b, c: (a * b if len(a) else a) + (c or a if b is None else c * 2), 1),
    "rows": (lambda np, a, b, c: a * b[0] + c[:, :1] * 2, 2),
    "slices": (lambda np, a, b, c: a[1:-1, 2:] * 2 + a[:-2, 2:], 1),
    "two spaces": (lambda np, a, b, c: [a * b + c, a[1:] * b[1:] + c[1:]], 2),
    "one space in another": (lambda np, a, b, c: a[:5] * 2 + a[0] * b[0, :1], 2),
    "a few turns": (lambda np, a, b, c: in_turn(np, a, b, 7), 1),
}  # fmt: skip


@pytest.mark.parametrize("ignored", [False, True], ids=["heard", "ignored"])
@pytest.mark.parametrize("name", WAITING)
def test_operations_wait_until_a_value_is_asked_for(name: str, ignored: bool) -> None:
    program, wanted = WAITING[name]
    ours, theirs = ([grid(xp, seed) for seed in (1, 2, 3)] for xp in (lazynp, numpy))
    with numpy.errstate(all="ignore") if ignored else nullcontext():
        for _ in range(2):
            result, at_the_call = counted(program, lazynp, *ours)
            _, when_asked = counted(forced, result)
            assert (at_the_call, when_asked) == ((0, 0, 0), (wanted, 0, 0))
            _, again = counted(forced, result)
            assert again == (0, 0, 0)
            same(result, program(numpy, *theirs))
    same(ours, theirs)


def test_what_is_held_comes_out_of_one_pass() -> None:
    """All that somebody has is computed when one of them is asked for, and what nobody has is not."""
    a, b, c = (grid(lazynp, seed) for seed in (1, 2, 3))
    x, y, z = held(lazynp, a, b, c)
    _, counts = counted(forced, y)
    assert counts == (1, 0, 0)
    _, counts = counted(lambda: (forced([x, z]), x[1, 1], float(z.sum())))
    assert counts == (0, 0, 0)
    same([x, y, z], held(numpy, *(numpy.asarray(each) for each in (a, b, c))))


def test_what_nobody_has_is_not_computed() -> None:
    u, v = grid(lazynp), grid(lazynp, 1)
    _, counts = counted(lambda: [u * k + v for k in range(3)] and u[0, 0])
    assert counts == (0, 0, 0)
    u[3, 3] = 0.0
    lines: list[float] = []
    with chained.told() as told:
        x = v / u
        y = x + 1
        x = u * v
        del y
        forced(x)  # on the same tape
        with pytest.raises(IndexError):
            (v / u + 1) * lines[0]  # what an exception leaves behind
        forced(u + 1)
    assert not told
    same(x, numpy.asarray(u) * numpy.asarray(v))


@pytest.mark.parametrize("turns", [2, 3, TURN // 2])
def test_what_only_that_reads_is_not_computed_either(turns: int) -> None:
    """Tapes of whole functions, which one that several statements share reads."""
    u, v = grid(lazynp), grid(lazynp, 1)

    def program(xp: Any, u: Any, v: Any, turns: int, kept: int) -> Any:
        all_of_them = [xp.cbrt(u) + xp.arctan(v) for _ in range(turns)]
        return all_of_them[-kept:]

    for _ in range(2):  # loops are compared
        _, one = passes(lambda: program(lazynp, u, v, 1, 1))
    for kept in 1, 2:
        result, count = passes(lambda kept=kept: program(lazynp, u, v, turns, kept))
        assert count == (one[0] + 2 * (kept - 1), 0)
        same(result, program(numpy, numpy.asarray(u), numpy.asarray(v), turns, kept))


@pytest.mark.parametrize("turns", [1, TURN // 2, 100])
def test_loops_run_few_passes(turns: int) -> None:
    """A turn begins another tape when there are many steps, so that the tapes of a loop are alike."""
    a, b = grid(lazynp, 1), grid(lazynp, 2)
    result, (count, steps) = passes(lambda: in_turn(lazynp, a, b, turns))
    assert (count, steps) == (-(-2 * turns // TURN), 0)
    same(result, in_turn(numpy, numpy.asarray(a), numpy.asarray(b), turns))
    kept, (count, steps) = passes(lambda: [in_turn(lazynp, a + k, b, 2) for k in range(turns)])
    assert count <= 5 * turns // TURN + 1
    assert steps == 0
    for k in range(0, turns, 7):
        same(kept[k], in_turn(numpy, numpy.asarray(a) + k, numpy.asarray(b), 2))


@pytest.mark.parametrize("operators", [1, STEPS - 1, STEPS, STEPS + 1, 3 * STEPS + 1])
def test_a_tape_has_so_many_steps(operators: int) -> None:
    a, b = grid(lazynp, 1), grid(lazynp, 2)
    program = eval("lambda a, b: a" + "".join(f" {'+-*'[k % 3]} b" for k in range(operators)))
    result, counts = passes(lambda: program(a, b))
    assert counts == (-(-operators // STEPS), 0)
    same(result, program(numpy.asarray(a), numpy.asarray(b)))


def test_more_values_between_than_there_are_blocks() -> None:
    """They are computed step by step, as by NumPy."""

    def crossed(x: Any) -> Any:
        terms = [x * (k + 1) for k in range(180)]
        return sum(terms[k] * terms[-k - 1] - terms[k] for k in range(90))

    a = grid(lazynp, 1)
    for _ in range(3):
        same(forced(crossed(a)), crossed(numpy.asarray(a)))


# What does not wait ---------------------------------------------------------------------------------------------------------------


def raising() -> AbstractContextManager[Any]:
    return numpy.errstate(all="raise")


# Within these nothing waits: who is told at the call is told at the call, and what a block of filters hears is of its own lines.
BLOCKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "filters of a block": warnings.catch_warnings,
    "recorded warnings": lambda: warnings.catch_warnings(record=True),
    "raise": raising,
    "one kind": lambda: numpy.errstate(over="raise"),
    "print": lambda: numpy.errstate(divide="print"),
    "call": lambda: numpy.errstate(invalid="call", call=lambda *_: None),
    "log": lambda: numpy.errstate(all="log", call=io.StringIO()),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_in_which_nothing_waits(name: str) -> None:
    ours, theirs = ([grid(xp, seed) for seed in (1, 2, 3)] for xp in (lazynp, numpy))
    before = ours[0] * ours[1] + ours[2]  # waits, and is computed in there
    with BLOCKS[name]():
        _, counts = passes(lambda: before)
        assert counts == (1, 0)
        for program, _ in WAITING.values():
            result, at_the_call = counted(program, lazynp, *ours)
            assert at_the_call == counted(forced, result)[1] == (0, 0, 0)
            same(result, program(numpy, *theirs))
    _, counts = passes(lambda: ours[0] * ours[1] + ours[2])
    assert counts == (1, 0)
    same(before, theirs[0] * theirs[1] + theirs[2])


def test_a_setting_lets_nothing_wait() -> None:
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    with config.override(eager=True):
        assert passes(lambda: u * v + u)[1] == (0, 0)
        assert core.tape(lazynp.cumsum(u)) is None
    assert passes(lambda: u * v + u)[1] == (1, 0)


def test_filters_that_raise_let_nothing_wait() -> None:
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    with chained.told():
        warnings.simplefilter("error")
        assert passes(lambda: u * v + u)[1] == (0, 0)
        u[3, 3] = 0.0
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            v / u + v
        warnings.simplefilter("ignore")
        assert passes(lambda: v / u + v)[1] == (1, 0)
    assert passes(lambda: u * v + u)[1] == (1, 0)


# Programs no step of which waits: they write, or may fail for some elements.
NOT_WAITING: dict[str, Program] = {
    "a function that may fail": lambda np, a, b, c: np.linalg.inv(a),
    "out of another dtype": lambda np, a, b, c: np.add(a, b, out=np.empty(a.shape, "f4"), casting="same_kind"),
    "a dtype": lambda np, a, b, c: np.add(a, b, dtype="f4", casting="same_kind"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_WAITING)
def test_programs_in_which_nothing_waits(name: str) -> None:
    ours, theirs = ([grid(xp, seed) for seed in (1, 2, 3)] for xp in (lazynp, numpy))
    result, counts = passes(lambda: NOT_WAITING[name](lazynp, *ours))
    assert counts == (0, 0)
    same(result, NOT_WAITING[name](numpy, *theirs))


# Asking for values ----------------------------------------------------------------------------------------------------------------

ASKING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an element": lambda np, x, y: x[1, 2],
    "a row": lambda np, x, y: x[1],
    "a slice": lambda np, x, y: x[::7, 3:],
    "a mask": lambda np, x, y: x[x > 1],
    "as a mask": lambda np, x, y: y[x > 1],
    "rows": lambda np, x, y: [row.copy() for row in x],
    "rows in turn": lambda np, x, y: [np.array(row) for row, _ in zip(x, range(3), strict=False)],
    "a sum": lambda np, x, y: x.sum(),
    "sums": lambda np, x, y: np.sum(x, axis=0),
    "a number": lambda np, x, y: float(x[0, 0]),
    "truth": lambda np, x, y: bool((x > 1).any()),
    "contains": lambda np, x, y: 0.5 in x,
    "asarray": lambda np, x, y: numpy.asarray(x),
    "array": lambda np, x, y: numpy.array(x),
    "float32": lambda np, x, y: numpy.asarray(x, "f4"),
    "a list": lambda np, x, y: x.tolist(),
    "bytes": lambda np, x, y: x.tobytes(),
    "repr": lambda np, x, y: repr(x).replace(" ", ""),
    "format": lambda np, x, y: f"{x}",
    "a buffer": lambda np, x, y: memoryview(x).tobytes(),
    "an interface": lambda np, x, y: x.__array_interface__["shape"],
    "the data": lambda np, x, y: bytes(x.data),
    "dlpack": lambda np, x, y: numpy.from_dlpack(x).copy(),
    "pickle": lambda np, x, y: pickle.loads(pickle.dumps(x)),
    "a copy": lambda np, x, y: x.copy(),
    "copy.copy": lambda np, x, y: copy.copy(x),
    "copy.deepcopy": lambda np, x, y: copy.deepcopy(x),
    "a file": lambda np, x, y: np.save(file := io.BytesIO(), x) or file.getvalue(),
    "its form": lambda np, x, y: (x.shape, x.dtype.str, x.ndim, x.size, x.nbytes, x.itemsize, x.strides, len(x), np.shape(x)),
    "its flags": lambda np, x, y: (x.flags.writeable, x.flags.c_contiguous, x.base is None),
    "transposed": lambda np, x, y: x.T,
    "reshaped": lambda np, x, y: x.reshape(-1),
    "flat": lambda np, x, y: list(x.flat)[:9],
    "converted": lambda np, x, y: x.astype("f4"),
    "a function": lambda np, x, y: np.floor(x),
    "a remainder": lambda np, x, y: x % 3,
    "a power": lambda np, x, y: abs(x) ** 1.5,
    "a product": lambda np, x, y: x @ y,
    "with a condition": lambda np, x, y: np.where(x > 1, x, y),
    "joined": lambda np, x, y: np.concatenate([x, y, x]),
    "broadcast": lambda np, x, y: np.broadcast_to(x, (2, SIDE, SIDE)),
    "assigned": lambda np, x, y: (y.__setitem__(slice(1, 3), x[:2] * 2), y.copy())[1],
    "added in place": lambda np, x, y: y.__iadd__(x),
    "out": lambda np, x, y: np.multiply(x, 2, out=y),
    "beside NumPy's": lambda np, x, y: numpy.full((SIDE, SIDE), 0.5) + x,
    "beside a number of NumPy's": lambda np, x, y: numpy.float64(3) / x,
    "NumPy's function": lambda np, x, y: numpy.cumsum(x),
    "equality": lambda np, x, y: np.array_equal(x, x + 0),
    "everything": lambda np, x, y: (lazynp.realize(), None)[1],
}  # fmt: skip


def shown(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [shown(each) for each in x]
    if isinstance(x, (numpy.ndarray, lazynp.ndarray)):
        memory = numpy.asarray(x)
        return memory.dtype, memory.shape, memory.tobytes()
    return repr(x)


@pytest.mark.parametrize("holding", [False, True], ids=["alone", "held"])
@pytest.mark.parametrize("name", ASKING)
def test_whoever_asks_is_given_the_value(name: str, holding: bool) -> None:
    found = []
    for np in (numpy, lazynp):
        a, b, y = (grid(np, seed) for seed in (1, 2, 3))
        first = a * b
        second = abs(first) - a
        x = second / (b * b + 1)
        kept = [first, second, x - 1] if holding else []
        del first, second
        found.append(shown([ASKING[name](np, x, y), x, y, kept, a, b]))
    assert found[0] == found[1]


def test_who_does_not_ask_gets_by_without_it() -> None:
    u = grid(lazynp)
    x = u * 2.0 + 1
    _, counts = counted(lambda: (isinstance(x, lazynp.ndarray), type(x), id(x), x is u, [x, u], callable(x), weakref.ref(x), len(x)))
    assert counts == (0, 0, 0)
    assert type(x) is lazynp.ndarray


@pytest.mark.parametrize("name", [name for name in ASKING if name not in ("a sum", "a power")])  # kernels have other bits
def test_the_limit_may_be_another_one_when_a_value_is_asked_for(name: str) -> None:
    """What is computed then is a large array, or a small one, as if its operations had just been recorded."""
    found = []
    for np in (numpy, lazynp):
        a, b, y = (grid(np, seed) for seed in (1, 2, 3))
        first = a * b
        x = first / (b * b + 1)
        kept = [first, x - 1]
        with config.override(tape_limit=0):
            found.append(shown([ASKING[name](np, x, y), x + 1, x, kept]))
        found[-1] += shown([x + 1, x, kept, a, b, y])
    assert found[0] == found[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_waits_is_computed_on_both_sides_of_a_fork() -> None:
    a, b, c = (grid(lazynp, seed) for seed in (1, 2, 3))
    results = held(lazynp, a, b, c)
    wanted = held(numpy, *(grid(numpy, seed) for seed in (1, 2, 3)))
    child = os.fork()
    if not child:
        os._exit(0 if shown(list(results)) == shown(list(wanted)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    same(results, wanted)


AT_EXIT = """
import atexit
import lazynp as np
x = np.ones(1000) * 2
y = (x + 1) * x

class Last:
    def __del__(self):
        print(float(self.value[0]))

last = Last()
last.value, last.itself = y - x, last
atexit.register(lambda: print(float(y[0])))
"""


def test_what_waits_when_the_program_ends(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(AT_EXIT, encoding="utf-8")
    found = launch(tmp_path, "main.py", module=False, LAZYNP_TAPE_LIMIT="4096")
    assert (found.stdout.split(), found.stderr) == (["6.0", "4.0"], "")


def test_values_that_wait_in_cycles_are_collected() -> None:
    u = grid(lazynp)
    gc.collect()
    before = core.chain_counts()
    ends = []
    for _ in range(50):
        x = u * 2.0
        box = [x, x + u]
        box.append(box)
        ends.append(weakref.ref(x))
        del x, box
    gc.collect()
    assert [end() for end in ends] == [None] * 50
    forced(u + 1)
    assert core.chain_counts()[0] - before[0] <= 8


def test_finalisers_that_compute_meanwhile() -> None:
    """A collection of garbage may begin while a step is recorded, or computed, and what it runs records and writes as it likes."""
    u, v = grid(lazynp, 1)[:9], grid(lazynp, 2)[:9]
    p, q = numpy.array(u), numpy.array(v)
    sums: list[tuple[float, Any]] = []

    class Last:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            if len(sums) % 3 == 0:
                v[...] = v * 1.0  # a write, which changes nothing
            x = u * 2.0
            sums.append((float((x + v).sum()), x - u))

    limits = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        found = []
        for k in range(60):
            Last()
            x = u * k
            y = x + v
            found.append((y, y * x))
            if k % 5 == 0:
                v = v * 1.0
    finally:
        gc.set_threshold(*limits)
        gc.collect()  # those that are left, which would compute in the middle of another test
    for k, (y, z) in enumerate(found):
        same([y, z], [p * k + q, (p * k + q) * (p * k)])
    assert sums
    assert {each for each, _ in sums} == {float((p * 2.0 + q).sum())}
    same(sums[-1][1], p * 2.0 - p)


# What is computed ----------------------------------------------------------------------------------------------------------------

EXPRESSIONS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "neighbours": (lambda u, v: 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]), 1),
    "polynomial": (lambda u, v: ((u * 0.3 + 0.2) * u - v) * u + 1.0, 1),
    "distances": (lambda u, v: (u[0][:, None] - u[0][None, :]) ** 2 + (v[0][:, None] - v[0][None, :]) ** 2, 1),
    "tests": (lambda u, v: (u * u + v * v < 25) & (u > 0), 1),
    "rows": (lambda u, v: u * v[0] + v[:, :1] * 2, 2),
    "sign": (lambda u, v: -(u + v) * 2, 1),
    "functions": (lambda u, v: lazynp.sqrt(u * u + v * v) * 0.5 - lazynp.abs(u - v) / (1 + u * u), 1),
    "limits": (lambda u, v: lazynp.maximum(u * 2 - v, 0) + lazynp.minimum(abs(u - v), 1), 1),
    "choices": (lambda u, v: lazynp.where((u > v) & (v < 3), u, v) * lazynp.where(u > 0, 1.5, v) + 1, 1),
    "choices of results": (lambda u, v: lazynp.where((u > v) & (v < 3), u * 2 - 1, -v) + 1, 1),
    "numbers that are chosen": (lambda u, v: lazynp.where(u > v, 1, 0) + lazynp.where(u < 0, 1.0, -1), 1),
    "bounds": (lambda u, v: lazynp.clip(u * 2, 0, 5) + (u - v).clip(None, 3) * lazynp.clip(v, 1, None) - lazynp.clip(u, v, v), 1),
    "a sum by itself": (lambda u, v: u + v, 1),
    "pairs of points": (lambda u, v: (u[:, None, :2] - u[None, :, :2]) * 2 + abs(v[None, :, 1:3] - v[:, None, :1]), 1),
    "planes": (lambda u, v: lazynp.where((u > v)[:, :, None], u[:, :, None] * v[:, :2] - v[:, :1, None], 0) * 3, 2),
    "planes and rows": (lambda u, v: (u[:9, None, :] * v[None, :7, :] - u[:1, None, :]) * v[:9, :1, None] + v[0], 1),
    "two expressions": (lambda u, v: (u * 2 + v).sum() + (u - v * 2).max(), 2),
}


@pytest.mark.parametrize("shape", [(700,), (300, 5), (40, 33), (1, 700)], ids=str)
def test_sums_and_products_of_complex_numbers_take_one_pass(shape: tuple[int, ...]) -> None:
    rng = numpy.random.default_rng(3)
    theirs = [rng.normal(size=shape) + 1j * rng.normal(size=shape) for _ in range(3)]
    x, y, z = (lazynp.array(each) for each in theirs)
    programs: list[Callable[..., Any]] = [
        lambda x, y, z: x * y + z, lambda x, y, z: (x - 2) * (0.5 * y) - 1j * z, lambda x, y, z: -(x * 1.5 + y) * x,
        lambda x, y, z: x**2 + y,
        lambda x, y, z: x[..., ::2] * y[..., ::2] + (3 - 2j), lambda x, y, z: x[..., 1:] * y[..., :-1] - z[..., 1:],
    ]  # fmt: skip
    for program in programs:
        result, at_the_call = counted(program, x, y, z)
        _, when_asked = counted(forced, result)
        assert numpy.asarray(result).tobytes() == program(*theirs).tobytes()
        assert (at_the_call, when_asked) == ((0, 0, 0), (1, 0, 0))
    theirs[0].flat[5] = complex(numpy.inf, 1)
    x = lazynp.array(theirs[0])
    for program in programs:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            expected = program(*theirs)
        for way in (chained.BLOCKS, chained.TOLD):
            with chained.hears(way) as ours:
                result = forced(program(x, y, z))
            assert numpy.array_equal(result, expected, equal_nan=True)
            assert [str(w.message) for w in ours] == [str(w.message) for w in heard]


def numpys(program: Callable[[Any, Any], Any], u: Any, v: Any, dtype: Any) -> Any:
    """What NumPy gives for the grids that ``u`` and ``v`` are; None where it raises an exception, and lazynp the same."""
    try:
        with numpy.errstate(all="ignore"):
            return forced(program(grid(numpy, 1, dtype), grid(numpy, 2, dtype)))  # functions of ours answer with arrays of ours
    except Exception as error:
        with pytest.raises(type(error)):
            program(u, v)
        return None


@pytest.mark.parametrize("dtype", [float, numpy.float32, int, numpy.uint8])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_takes_one_pass(name: str, dtype: Any) -> None:
    program, wanted = EXPRESSIONS[name]
    u, v = grid(lazynp, 1, dtype), grid(lazynp, 2, dtype)
    if (expected := numpys(program, u, v, dtype)) is None:
        return
    with numpy.errstate(all="ignore"):
        result, counts = passes(lambda: program(u, v))
    same(result, expected)
    if dtype is float:
        assert counts == (wanted, 0)


LAYOUTS: dict[str, Callable[[Any, Any, tuple[int, ...]], Any]] = {  # of the namespace, a generator of random numbers, and a shape
    "C": lambda np, rng, shape: np.array(rng.standard_normal(shape)),
    "F": lambda np, rng, shape: np.array(rng.standard_normal(shape), order="F"),
    "turned": lambda np, rng, shape: np.array(rng.standard_normal(shape[::-1])).T,
    "steps": lambda np, rng, shape: np.array(rng.standard_normal([2 * n for n in shape]))[tuple([slice(None, None, 2)] * len(shape))],
    "backwards": lambda np, rng, shape: np.array(rng.standard_normal(shape))[::-1],
    "rows backwards": lambda np, rng, shape: np.array(rng.standard_normal(shape))[..., ::-1],
    "a part": lambda np, rng, shape: np.array(rng.standard_normal([n + 3 for n in shape]))[tuple([slice(1, -2)] * len(shape))],
    "a part of F": lambda np, rng, shape: np.array(rng.standard_normal([n + 3 for n in shape]), order="F")[(slice(1, -2),) * len(shape)],
    "a row": lambda np, rng, shape: np.array(rng.standard_normal(shape[-1:])),
    "a column": lambda np, rng, shape: np.array(rng.standard_normal((*shape[:-1], 1))),
    "one row again": lambda np, rng, shape: np.broadcast_to(np.array(rng.standard_normal(shape[1:])), shape),
    "axes changed": lambda np, rng, shape: np.swapaxes(np.array(rng.standard_normal((*shape[:-2], *shape[:-3:-1]))), -1, -2),
}


@pytest.mark.parametrize("shape", [(300,), (30, 20), (20, 30), (1, 500), (500, 1), (5, 6, 11), (2, 3, 4, 13)], ids=str)
def test_results_lie_as_numpys(shape: tuple[int, ...]) -> None:
    """Whatever the order of its operands' axes is in memory, a result has NumPy's, also where it is one of several."""

    def program(x: Any, y: Any) -> list[Any]:
        first = x + 1
        return [first, first * y, x < y, (x * 2.0 + y) / (y * y + 1)]

    before = core.chain_counts()
    layouts = {name: made for name, made in LAYOUTS.items() if len(shape) > 1 or name != "axes changed"}
    for one, two in itertools.product(layouts, repeat=2):
        found = []
        for np in (numpy, lazynp):
            rng = numpy.random.default_rng(5)
            results = forced(program(layouts[one](np, rng, shape), layouts[two](np, rng, shape)))
            found.append([(x.dtype, x.shape, chained.lies(x), numpy.asarray(x).tobytes()) for x in results])
        assert found[0] == found[1], (one, two)
    assert core.chain_counts()[0] - before[0] > len(layouts)


def test_random_programs() -> None:
    before = core.chain_counts()
    for seed in range(150):
        assert (said := chained.differs(seed)) is None, said
    after = core.chain_counts()
    assert after[0] - before[0] > 150, "in one pass"
    assert after[1] - before[1] > 15, "step by step"


@pytest.mark.slow
def test_many_random_programs() -> None:
    for seed in range(1000, 6000):
        assert (said := chained.differs(seed)) is None, said


# Memory ---------------------------------------------------------------------------------------------------------------------------


def peak(program: Callable[[], Any]) -> tuple[Any, float]:
    """A result that was asked for, and how much memory was taken at most, in arrays of 62,500 floats."""
    forced(program())  # what is made once
    tracemalloc.start()
    try:
        result = forced(program())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return result, most / 500_000


def rebinding(u: Any, v: Any) -> Any:
    x = u * v
    x = x + u
    y = x * v
    x = y - u
    return x  # noqa: RET504 - as programs write it


MEMORY: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "an expression": (lambda u, v: (u * v + u) * v - u, 1),
    "statements": (rebinding, 1),
    "three results": (lambda u, v: [x := u * v + u, y := x * v - u, (x - y) * u + v], 3),
    "many turns": (lambda u, v: in_turn(lazynp, u, v, 7), 1),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_of_what_waits(name: str) -> None:
    """What nobody has is in no array: those are made that somebody has."""
    program, arrays = MEMORY[name]
    u, v = (lazynp.asarray(numpy.random.default_rng(seed).standard_normal(62_500), copy=True) for seed in (1, 2))
    _, most = peak(lambda: program(u, v))
    assert arrays <= most < arrays + 0.5


@pytest.mark.parametrize("kept", [False, True], ids=["a sum", "all results"])
def test_memory_that_only_tapes_hold_is_bounded(kept: bool) -> None:
    """Operands that the program has let go are read later; what comes of them is computed before they are many."""
    first = numpy.random.default_rng(1).standard_normal(62_500)

    def program() -> Any:
        found = [lazynp.array(first)]
        for k in range(100):
            x = lazynp.array(first * k)  # gone in the next turn
            if kept:
                found.append(x * 2 + 1)
            else:
                found[0] = found[0] * 0.5 + x
        return found

    found, most = peak(program)
    assert most < (100 if kept else 0) + 2 * STEPS + 16  # eight megabytes, and those of the tape that is computed then
    wanted = [first]
    for k in range(100):
        if kept:
            wanted.append(first * k * 2 + 1)
        else:
            wanted[0] = wanted[0] * 0.5 + first * k
    same(found, wanted)


# Errors --------------------------------------------------------------------------------------------------------------------------


Told = list[tuple[str, int, str]]


def said(caught: list[warnings.WarningMessage]) -> Told:
    return [(str(w.message), w.lineno, w.filename) for w in caught]


@pytest.mark.parametrize("way", [chained.BLOCKS, chained.TOLD])
def test_errors_are_told_by_the_operators_that_raise_them(way: str) -> None:
    found: list[Any] = []
    for xp in (numpy, lazynp):
        u = grid(xp)
        u[3, 3] = 0.0
        with chained.hears(way) as caught:
            result = forced((1.0 / u - 1.0 / u) * 1e308 + u)  # fmt: skip
        found.append(said(caught))
        found.append(numpy.asarray(result).tobytes())
    assert found[0] == found[2]
    assert len(found[0]) > 2


def failing(u: Any) -> Any:
    """Lines that divide by zero, and have no valid or too large a result."""
    x = 1.0 / u
    y = x - x
    z = [y * 0 + x for _ in range(2)]
    return [x, y, *z, (u * 1e200) * 1e200]


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "realize": lazynp.realize,
    "an element": lambda x: x[3, 3],
    "a sum": lambda x: x.sum(),
    "repr": repr,
    "asarray": numpy.asarray,
    "array": numpy.array,
    "a buffer": memoryview,
    "bytes": lambda x: x.tobytes(),
    "iteration": list,
    "a function": lazynp.median,
    "written": lambda x: x.__setitem__((0, 0), 1.0),
    "in place": lambda x: x[1:].__iadd__(1.0),  # of a view, whose memory others see
    "NumPy's operand": lambda x: numpy.ones((SIDE, SIDE)) + x,
    "a file": lambda x: numpy.save(io.BytesIO(), x),
    "a copy": copy.copy,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_errors_are_told_when_a_value_is_asked_for_at_the_line_that_recorded_it(name: str) -> None:
    u, v = grid(lazynp), grid(numpy)
    u[3, 3] = v[3, 3] = 0.0
    with chained.told() as heard:
        wanted = failing(v)
        of_numpy = said(heard)
        heard.clear()
        results = failing(u)
        assert not heard
        with numpy.errstate(all="ignore"):  # it is the state of the call that counts
            ANSWERS[name](results[0])
            assert said(heard) == of_numpy
            for x in results:
                ANSWERS[name](x)
    assert said(heard) == of_numpy, "once"
    assert len({line for _, line, _ in of_numpy}) == 3
    if name not in ("written", "in place"):
        for x, y in zip(results, wanted, strict=True):
            assert numpy.array_equal(x, y, equal_nan=True)


@pytest.mark.parametrize("name", ANSWERS)
def test_who_asks_for_a_value_is_told_by_an_exception_once(name: str) -> None:
    """Filters that make an exception of a warning, set when the operation was recorded: it is raised where the value is asked for."""
    u = grid(lazynp)
    u[3, 3] = 0.0
    with chained.told():
        x = 1.0 / u
        y = x * 2 + u
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in divide") as raised:
            ANSWERS[name](y)
        assert "recorded at" in str(raised.value.__notes__)
        if name == "a buffer":  # NumPy asks for one first, hears nothing of the exception, and asks again otherwise
            with pytest.raises(RuntimeWarning):
                forced(y)
        forced([x, y])
    with numpy.errstate(all="ignore"):
        v = numpy.asarray(u)
        same([x, y], [1.0 / v, 1.0 / v * 2 + v])


def test_errors_that_a_block_hears() -> None:
    """What is recorded in a block is told in it; what was recorded before and is asked for in there is told when it has ended."""
    u = grid(lazynp)
    u[3, 3] = 0.0
    with chained.told() as outside:
        x = 1.0 / u
        y = 2.0 / u
        with warnings.catch_warnings(record=True) as inside:
            warnings.simplefilter("always")
            forced(x)
            3.0 / u
        assert [str(w.message) for w in inside] == ["divide by zero encountered in divide"]
        assert not outside
        u + 1
        assert [str(w.message) for w in outside] == ["divide by zero encountered in divide"] * 2
        forced(y)
    assert len(outside) == 2


def test_errors_are_told_once_a_line_where_filters_say_so() -> None:
    u = grid(lazynp)
    u[3, 3] = 0.0
    with chained.told() as heard:
        warnings.simplefilter("default")
        forced([1.0 / u + k for k in range(5)])
    assert [str(w.message) for w in heard] == ["divide by zero encountered in divide"]


def test_states_of_errors_are_those_of_the_call() -> None:
    u = grid(lazynp)
    u[3, 3] = 0.0
    with chained.told() as heard:
        with numpy.errstate(divide="ignore"):
            x = 1.0 / u
        y = x * 0.0
        with numpy.errstate(all="ignore"):
            z = y * 2 + 2.0 / u
        w = z + 3.0 / u
        forced([x, y, z, w])
    assert [str(each.message) for each in heard] == ["invalid value encountered in multiply", "divide by zero encountered in divide"]


def test_errors_that_are_raised() -> None:
    u = grid(lazynp)
    u[3, 3] = 0.0
    kept = numpy.array(u)
    with lazynp.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        u * 2 + 1.0 / u * 3
    assert numpy.array_equal(u, kept)
    with lazynp.errstate(all="ignore"):
        assert numpy.array_equal(u * 2 + 1.0 / kept[3, 4], kept * 2 + 1.0 / kept[3, 4])


def test_a_handler_of_errors_computes_itself() -> None:
    u = grid(lazynp)
    u[3, 3] = 0.0
    heard: list[Any] = []

    def handler(kind: str, flag: int) -> None:
        heard.append((kind, float((u * u + 1.0).max())))

    with lazynp.errstate(divide="call", call=handler), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = 1.0 / u * 2 + u
    theirs = grid(numpy)
    theirs[3, 3] = 0.0
    assert heard == [("divide by zero", float((theirs * theirs + 1.0).max()))]
    with numpy.errstate(all="ignore"):
        assert numpy.array_equal(result, 1.0 / theirs * 2 + theirs)


def test_errors_that_nobody_minds_cost_nothing() -> None:
    u = grid(lazynp)
    u[3, 3] = numpy.inf
    with lazynp.errstate(all="ignore"):
        _, counts = counted(lambda: [forced(u * 0.0 + u) for _ in range(50)])
    assert counts == (50, 0, 0)
    with chained.told() as heard:
        _, counts = counted(lambda: [forced(u * 0.0 + u) for _ in range(50)])
    assert counts == (0, 50, 0)
    assert len(heard) == 50


def test_warnings_come_before_an_exception_of_the_same_line() -> None:
    u = grid(lazynp)
    u[3, 3] = 0.0
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught, pytest.raises(ZeroDivisionError):
        1.0 / u + 1 // 0 * u
    assert [w.filename for w in caught] == [__file__]


# What stands between operators ------------------------------------------------------------------------------------------------------


class Between:
    """Whoever asks for an attribute or an item runs a program."""

    def __init__(self, program: Callable[[], Any]) -> None:
        self.program = program

    @property
    def value(self) -> Any:
        return self.program()

    def __getitem__(self, key: Any) -> Any:
        return self.program()


@pytest.mark.parametrize("outside", [False, True], ids=["lazynp", "NumPy"])
@pytest.mark.parametrize("item", [False, True], ids=["attribute", "item"])
def test_what_stands_between_writes_an_operand(item: bool, outside: bool) -> None:
    found = []
    for xp in (numpy, lazynp):
        u = grid(xp)
        seen = numpy.asarray(u) if outside else u

        def program(u: Any = u, seen: Any = seen) -> Any:
            seen[:] = 7.0
            return u

        between = Between(program)
        found.append(numpy.array(u * 2.0 + between[0] * 1.0 if item else u * 2.0 + between.value * 1.0))
    assert found[0].tobytes() == found[1].tobytes()


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda np, u: u.sort(axis=1),
    "fill": lambda np, u: u.fill(3.0),
    "put": lambda np, u: np.put(u, [1, 2], 9.0),
    "copyto": lambda np, u: np.copyto(u, 5.0),
    "out": lambda np, u: np.add(u, 1.0, out=u),
    "flat": lambda np, u: u.flat.__setitem__(slice(None), 2.0),
    "at": lambda np, u: np.add.at(u, 0, 1.0),
    "in place": lambda np, u: u.__imul__(3.0),
    "view": lambda np, u: u[1:].T.__setitem__(0, 1.0),
    "shape": lambda np, u: setattr(u, "shape", (u.size,)),
    "buffer": lambda np, u: memoryview(u).cast("B").__setitem__(slice(0, 800), bytes(800)),
    "export": lambda np, u: numpy.asarray(u).__setitem__(0, 1.0),
    "shuffle": lambda np, u: np.random.default_rng(1).shuffle(u),
    "dtype": lambda np, u: setattr(u, "dtype", "i8"),
    "element": lambda np, u: u.__setitem__((0, 0), 1.0),
    "mask": lambda np, u: u.__setitem__(u > 0, 1.0),
    "positions": lambda np, u: u.__setitem__([0, 3], 1.0),
    "real": lambda np, u: u.real.__setitem__(0, 1.0),
    "turned": lambda np, u: u.T.fill(2.0),
    "reshaped": lambda np, u: u.reshape(-1).__iadd__(1.0),
    "rows": lambda np, u: [row.__setitem__(0, 5.0) for row in u],
    "swapped bytes": lambda np, u: u.byteswap(inplace=True),
    "partition": lambda np, u: u.partition(3),
    "place": lambda np, u: np.place(u, u > 0, [1.0, 2.0]),
    "putmask": lambda np, u: np.putmask(u, u > 0, 3.0),
    "diagonal": lambda np, u: np.fill_diagonal(u, 0.0),
    "put along an axis": lambda np, u: np.put_along_axis(u, np.zeros((1, u.shape[1]), int), 3.0, axis=0),
    "cumsum": lambda np, u: np.cumsum(u, axis=0, out=u),
    "clip": lambda np, u: u.clip(0, 1, out=u),
    "where": lambda np, u: np.multiply(u, 2.0, out=u, where=u > 0),
    "random": lambda np, u: np.random.default_rng(1).random(out=u),
    "iterator": lambda np, u: [x.__setitem__(..., 1.0) for x in np.nditer(u[:3], op_flags=["readwrite"])],
    "exported": lambda np, u: numpy.from_dlpack(u).fill(4.0),
    "a file": lambda np, u: io.BytesIO(bytes(800)).readinto(u),
    "NumPy's out": lambda np, u: numpy.add(1.0, 2.0, out=numpy.asarray(u)),
    "address": lambda np, u: ctypes.memset(u.ctypes.data, 0, 640),
}


@pytest.mark.parametrize("name", WRITES)
def test_no_write_reaches_an_operand_that_was_read(name: str) -> None:
    found = []
    for xp in (numpy, lazynp):
        u = grid(xp)

        def program(xp: Any = xp, u: Any = u) -> Any:
            WRITES[name](xp, u)
            return 1.0

        between = Between(program)
        found.append(numpy.array(u * 2.0 - between.value))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("holding", [False, True], ids=["alone", "held"])
@pytest.mark.parametrize("which", ["an operand", "its owner", "a part of it", "a step", "the result"])
@pytest.mark.parametrize("name", WRITES)
def test_no_write_reaches_what_was_recorded_before(name: str, which: str, holding: bool) -> None:
    """Whatever is written, an operand or a value that waits: what was recorded before has its values of then."""
    found = []
    for xp in (numpy, lazynp):
        whole = xp.concatenate([grid(xp), grid(xp, 1)])
        u = whole[:SIDE] if which == "its owner" else grid(xp)
        part = u[3:]
        x = u * 2.0
        y = x - part[0]
        z = y * y + u
        kept = [x, y] if holding or which == "a step" else []
        WRITES[name](xp, {"an operand": u, "its owner": whole, "a part of it": part, "a step": y, "the result": z}[which])
        del x, y
        found.append(shown([z, kept, whole, u, part, z * 0.5 if z.ndim else z]))
    assert found[0] == found[1]


@pytest.mark.parametrize("which", range(4))
def test_what_is_resized(which: int) -> None:
    """Operands keep the memory that was recorded, and results the values."""
    found = []
    for np in (numpy, lazynp):
        u = grid(np)
        x = u * 2.0
        y = x + u
        values = [u, x, y, y - 1]
        values[which].resize((9, 7), refcheck=False)
        found.append(shown([*values, values[which] * 2.0]))
    assert found[0] == found[1]


def test_operators_of_other_classes_see_arrays() -> None:
    """A class of the program's that combines arrays while its own operator runs, and arrays of objects, keep what operators return."""
    u = grid(lazynp)
    kept = numpy.array(u)

    objects = numpy.empty(2, object)
    objects[:] = [u, u]
    sums = objects * 2.0 + objects
    u[:] = 0.0
    assert [type(x) for x in sums] == [lazynp.ndarray] * 2
    assert numpy.array_equal(sums[0], kept * 3.0)


GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "asarray": lambda u, n: lazynp.asarray(n),
    "asarray of a view": lambda u, n: lazynp.asarray(n[:]),
    "copy=None": lambda u, n: lazynp.array(n, copy=None),
    "require": lambda u, n: lazynp.require(n),
    "out": lambda u, n: lazynp.add(u, 0.0, out=(n,)),
    "drawn": lambda u, n: lazynp.random.default_rng(1).random(out=n),
    "passed on": lambda u, n: lazynp.atleast_1d(u, n)[1],
    "checked": lambda u, n: lazynp.asarray_chkfinite(n),
}


@pytest.mark.parametrize("name", GIVEN)
def test_memory_that_the_program_has_given_is_read_at_once(name: str) -> None:
    """An array over NumPy's memory, which the program writes with NumPy, does not wait."""
    n = grid(numpy)
    u = GIVEN[name](grid(lazynp), n)
    n[...] = 1.0
    between = Between(lambda: n.fill(5.0) or 1.0)
    assert numpy.array_equal(u * 2.0 + between.value, numpy.full((SIDE, SIDE), 3.0))


def test_memory_that_numpy_hands_out_is_read_at_once() -> None:
    u = grid(lazynp)
    seen, kept = lazynp.broadcast(u, u).iters[0].base, numpy.array(u)
    between = Between(lambda: seen.fill(5.0) or 1.0)
    assert numpy.array_equal(u * 2.0 + between.value, kept * 2.0 + 1.0)


def test_memory_waits_again_when_nobody_outside_has_it() -> None:
    u = lazynp.asarray(grid(numpy))
    _, (one_pass, _) = passes(lambda: u[1:] * 2.0 + u[:-1])
    seen = numpy.asarray(u)
    _, (lent, _) = passes(lambda: u * 2.0 + u)
    _, (partly, _) = passes(lambda: u * 2.0 - 1.0)  # the product is nobody else's
    del seen
    _, (again, _) = passes(lambda: u * 2.0 + u)
    first, second = lazynp.meshgrid(u[0], u[1])
    _, (several, _) = passes(lambda: first * 2.0 + second)
    assert (one_pass, lent, partly, again, several) == (1, 0, 1, 1, 1)


def test_memory_that_was_lent_is_read_at_once() -> None:
    """Whoever was shown the memory of an array writes it when he likes: every operation reads what is there at its call."""
    u = grid(lazynp)
    kept = numpy.array(u)
    for show in (numpy.asarray, memoryview, lambda x: x.data, lambda x: numpy.asarray(x[1:]).base, numpy.from_dlpack):
        memory: Any = show(u)
        seen = numpy.asarray(memory).reshape(-1)
        x, y = u * 2.0, u[1:] - 1.0
        assert counted(forced, [x, y])[1] == (0, 0, 0)
        seen[:] = 5.0
        z = u + 1.0
        seen[:] = kept.reshape(-1)[-len(seen) :]
        same([x, y], [kept * 2.0, kept[1:] - 1.0])
        assert float(z[-1, -1]) == 6.0
        del memory, seen
    assert passes(lambda: u * 2.0)[1] == (1, 0)
    x = u * 2.0
    numpy.asarray(u)[:] = 7.0  # it is lent, which computes what waits, and written then
    same(x, kept * 2.0)


def test_arrays_of_objects_read_what_waits_twice() -> None:
    u, v, w = grid(lazynp, 1), grid(lazynp, 2), grid(lazynp, 3)
    one, two = numpy.empty(1, object), numpy.empty((2, 1), object)
    one[0], two[0, 0], two[1, 0] = u, v, w
    sums = one * 2.0 + two
    for k, x in enumerate((v, w)):
        assert type(sums[k, 0]) is lazynp.ndarray
        assert numpy.array_equal(sums[k, 0], numpy.asarray(u) * 2.0 + numpy.asarray(x))


def test_another_thread_hears_no_errors_of_this_one() -> None:
    u, v = grid(lazynp), grid(lazynp, 1)
    u[3, 3] = 0.0
    failed: list[Any] = []

    def elsewhere() -> None:
        try:
            with lazynp.errstate(all="raise"):
                v.fill(2.0)
        except Exception as error:
            failed.append(error)

    def program() -> float:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return 1.0

    between, kept = Between(program), numpy.array(v)
    with numpy.errstate(all="ignore"), lazynp.errstate(all="ignore"):
        result = v / u + between.value
        assert numpy.array_equal(result, kept / numpy.asarray(u) + 1.0)
    assert not failed


def test_threads() -> None:
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    expected = numpy.asarray(u) * numpy.asarray(v) + numpy.asarray(u) * 0.5 - 1.0
    failed: list[Any] = []

    def program() -> None:
        for _ in range(300):
            x = u * v
            y = u * 0.5
            if not numpy.array_equal(x + y - 1.0, expected):
                failed.append(1)

    in_threads(lambda _: program(), 4)
    assert not failed


@pytest.mark.parametrize("size", [6400, 60_000])
def test_threads_that_ask_for_values_of_one_tape(size: int) -> None:
    """Somebody computes the tape, and the others wait, compute it again, or find it done; all get the same values, and hold them."""
    p, q = (numpy.random.default_rng(seed).standard_normal(size) for seed in (1, 2))
    u, v = lazynp.array(p), lazynp.array(q)
    wanted = [p * q, p * q + p, (p * q + p) * q - 1.0]
    failed: list[Any] = []
    for turn in range(60):
        x = u * v
        y = x + u
        values = [x, y, y * v - 1.0]
        del x, y
        start = threading.Barrier(4)

        def program(k: int, values: list[Any] = values, start: threading.Barrier = start, turn: int = turn) -> None:
            start.wait()
            for j in (k, k + 1, k + 2):
                x = values[j % 3]
                found = numpy.asarray(x) if turn % 2 else numpy.asarray(x + 0.0)
                if found.tobytes() != wanted[j % 3].tobytes():
                    failed.append((turn, k, j))

        in_threads(program, 4)
    assert not failed


def test_threads_that_record_on_one_tape_and_let_go() -> None:
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    p, q = numpy.array(u), numpy.array(v)
    failed: list[Any] = []

    def program(k: int) -> None:
        for turn in range(150):
            x = u * k
            y = x + v
            if turn % 3 == 0:
                del x
            z = y * y - turn
            if turn % 4 == 0:
                own = u.copy()
                own += z
                own *= 0.5
                if own.tobytes() != ((p + ((p * k + q) * (p * k + q) - turn)) * 0.5).tobytes():
                    failed.append((k, turn, "own"))
            if numpy.asarray(z).tobytes() != ((p * k + q) * (p * k + q) - turn).tobytes():
                failed.append((k, turn))

    in_threads(program, 5)
    assert not failed


def test_errors_that_another_thread_hears() -> None:
    """They are told to whoever asks for the value, under the state of the thread that recorded it."""
    u = grid(lazynp)
    u[3, 3] = 0.0
    failed: list[Any] = []
    with chained.told() as heard:
        x = 1.0 / u
        y = x + 1.0

        def elsewhere() -> None:
            try:
                with numpy.errstate(all="raise"):
                    forced(y)
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert not failed
    assert [str(w.message) for w in heard] == ["divide by zero encountered in divide"]
    assert heard[0].filename == __file__


def test_the_report_counts_expressions() -> None:
    u = grid(lazynp)
    report.reset()
    forced(u * 2.0 + u * u)
    with lazynp.errstate(all="ignore"):  # of which nobody is told
        forced(u / 0.0 + u)
    with chained.told() as heard:
        forced(u / 0.0 + u)
    assert len(heard) == 1
    with pytest.warns(RuntimeWarning, match="divide by zero"):  # at the call
        u / 0.0 + u
    assert report.counters()["expressions_at_hand"] == {"one_pass": 2, "step_by_step": 1, "machine_code": 0}
    assert "tapes: 2 computed in one pass, 1 operator by operator" in lazynp.report()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", ["first", "second", "both", "number", "inner", "whole"])
def test_machine_code_tells_of_errors_of_what_is_not_chosen(form: str, dtype: str) -> None:
    """Wherever the element lies, in a vector or behind the last one: LLVM may divide under a mask, or behind a branch."""

    def work(np: Any, m: Any, a: Any, b: Any) -> Any:
        if form == "first":
            return np.where(m, a / b, a)
        if form == "second":
            return np.where(~m, a, a / b) * 2
        if form == "both":
            return np.where(m, a / b, a + b)
        if form == "number":
            return np.where(m, a / b + 1, 0.5)
        if form == "inner":
            return np.where(m, np.where(m, a / b, b), a) + a
        return np.where(m, (a / b).astype("int32"), 7) + 1

    n = 333
    a = numpy.arange(1, n + 1).astype(dtype)
    runs = core.chain_counts()[2]
    with chained.chains_of(chained.SIZES[0], 0):
        for at in (-1, -1, *range(8), *range(n - 70, n), -1):
            m, b = numpy.ones(n, bool), numpy.full(n, 3, dtype)
            if at >= 0:
                m[at] = b[at] = 0
            told = []
            for np in (lazynp, numpy):
                given = [np.array(x) for x in (m, a, b)]
                with chained.told() as heard:
                    warnings.simplefilter("always")
                    found = numpy.asarray(work(np, *given))
                told.append((sorted(str(each.message) for each in heard), found.dtype, found.tobytes()))
            assert told[0] == told[1], at
    assert form == "whole" or core.chain_counts()[2] == runs + 2  # those without an error


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "mod", "lt", "eq", "pow"])
def test_methods_with_the_names_of_operators_record(name: str) -> None:
    """They do what the operator does, with no function of Python's in between."""
    x, y = lazynp.arange(1.0, 40.0), lazynp.arange(2.0, 41.0)
    numpy_x, numpy_y = numpy.arange(1.0, 40.0), numpy.arange(2.0, 41.0)
    for other, theirs in [(y, numpy_y), (2, 2), (0.5, 0.5)]:
        found = getattr(x, f"__{name}__")(other)
        assert name == "pow" or core.tape(found) is not None
        assert numpy.asarray(found).tobytes() == getattr(numpy_x, f"__{name}__")(theirs).tobytes()
