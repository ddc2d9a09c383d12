"""Tapes that come often, as machine code: `array/hot.h` and `backends/llvm/expressions.py`.

In: tables, random programs, compilers that misbehave.  Out: failures.  Promise: NumPy is the oracle; how many tapes machine code
computed is counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.backends.llvm import compiler, expression_ir, expressions
from lazynp.values import config
from tests.array import chained
from tests.array.test_chains import EXPRESSIONS, MEMORY, WAITING, counted, forced, grid, in_turn, numpys, same
from tests.test_script import launch


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    """Tapes are compiled when they come for the first time, and as machine code from the second time on."""
    with config.override(tape_limit=300_000), chained.chains_of(chained.SIZES[0], 0):
        yield


def by_machine_code(program: Callable[[], Any]) -> tuple[Any, int]:
    """A result that was asked for, and how many passes of machine code computed it."""
    result, counts = counted(lambda: forced(program()))
    return result, counts[2]


# What is computed -----------------------------------------------------------------------------------------------------------------

PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    **EXPRESSIONS,
    "rows": (EXPRESSIONS["rows"][0], 1),  # of one step there is none
    "pairs of points": (EXPRESSIONS["pairs of points"][0], 0),  # rows of two
    "planes": (EXPRESSIONS["planes"][0], 0),  # rows of two, and one step
    "a sum by itself": (EXPRESSIONS["a sum by itself"][0], 0),  # what has one step is NumPy's loop
    "quotients": (lambda u, v: (u / 3 + 1) / (v * v + 2), 1),
    "bits": (lambda u, v: (u & v | 5) ^ v, 1),
    "of truth": (lambda u, v: lazynp.logical_or(u < v, ~(u > 1)) & (v != 3) | (u == v), 1),
    "squares": (lambda u, v: lazynp.square(u - v) + lazynp.fabs(v * 2), 1),
    "steps": (lambda u, v: u[:, ::2] * 2 - v[:, ::2] * u[:, 1::2], 1),
    "a column": (lambda u, v: u[:, :1] * 2 + v[:, 3:4] - 1, 0),  # few elements
    "columns": (lambda u, v: u[:, :4] * 2 + v[:, 3:4] - 1, 1),
    "few columns": (lambda u, v: u[:, :5] * 2 + v[:, 3:8] - 1, 1),
    "one number": (lambda u, v: u * 1.5 + u[:1, :1] - 2, 1),
    "parts of rows": (lambda u, v: (u[::3] + v[:27]) * 2, 1),
}


@pytest.mark.parametrize("dtype", [float, numpy.float32, int, numpy.int16, numpy.uint8, numpy.uint64, bool])
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_computes_what_numpy_does(name: str, dtype: Any) -> None:
    program, wanted = PROGRAMS[name]
    u, v = grid(lazynp, 1, dtype), grid(lazynp, 2, dtype)
    if (expected := numpys(program, u, v, dtype)) is None:
        return
    with numpy.errstate(all="ignore"):
        forced(program(u, v))
        result, count = by_machine_code(lambda: program(u, v))
    same(result, expected)
    if dtype is float:
        assert count == wanted


def of_short_rows(x: Any, y: Any, row: Any) -> Any:
    """Planes, rows and elements apart, a row and a column for all; of truth values, and a division by zero in what is no part of them."""
    u, v, w = x[1:-1, 1:-1, 1:-1], y[2:, :-2, :-2:2], y[:-2, 1:-1, : x.shape[2] - 2]
    p = u * v - w * row
    q = numpy.where(p > 0, p, v * 2) if isinstance(x, numpy.ndarray) else lazynp.where(p > 0, p, v * 2)
    return [(q * q + p) / (u + 1) - x[1:-1, :1, :1] * q + w * v - u * (p - w) * (q + v) + p * q * 0.5]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [float, numpy.float32])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 6, 7, 8, 9, 15, 17, 31, 33, 65])
def test_short_rows_are_laid_side_by_side(length: int, dtype: Any, threads: int) -> None:
    numbers = numpy.random.default_rng(length)
    x, y = (numbers.random((23, 31, each)).astype(dtype) for each in (length + 2, 2 * length + 2))
    row = numbers.random(length).astype(dtype)
    expected = of_short_rows(x, y, row)
    given = [lazynp.array(each) for each in (x, y, row)]
    with config.override(threads=threads):
        forced(of_short_rows(*given))
        result, (passes, steps, compiled) = counted(lambda: forced(of_short_rows(*given)))
    same(result, expected)
    assert (compiled, steps) == (passes, 0)


# Several results -------------------------------------------------------------------------------------------------------------------


def three(u: Any, v: Any) -> Any:
    x = u * v
    y = x - u
    return x, y, y * x


def truths(u: Any, v: Any) -> Any:
    x = u < v
    y = ~x
    return x, y & (u > 0), u - v, x | y


RESULTS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "three": (three, 1),
    "truth values": (truths, 1),
    "of several sizes": (lambda u, v: [u * 2, u * 2 > v, (u > 0) == (v > 0)], 1),
    "the first": (lambda u, v: [x := u - v, (x * 2 - x) / (x * x + 1)], 1),
    "a list": (lambda u, v: [u * k - v for k in range(7)], 1),
    "the same twice": (lambda u, v: [u * v, u * v, u * v - 1], 1),
    "rows": (lambda u, v: [x := u - v[0], x * x, x * 2 - u[:, :1]], 1),
    "columns": (lambda u, v: [x := u[:, :5] * 2, x - v[:, 3:8]], 1),
    "apart": (lambda u, v: [x := u[:, ::2] * 2, x - v[:, 1::2]], 1),
    "from a number": (lambda u, v: [x := u[:1, :1] + v[:, :1], x - u], 0),  # over two spaces, of which the first is few elements
    "two tapes": (lambda u, v: [u * v - 1, u[:40] * v[:40] - 1, v - u], 2),
}


@pytest.mark.parametrize("dtype", [float, numpy.float32, int, numpy.uint8])
@pytest.mark.parametrize("name", RESULTS)
def test_several_results(name: str, dtype: Any) -> None:
    program, wanted = RESULTS[name]
    u, v = grid(lazynp, 1, dtype), grid(lazynp, 2, dtype)
    if (expected := numpys(program, u, v, dtype)) is None:
        return
    with numpy.errstate(all="ignore"):
        forced(program(u, v))
        result, count = by_machine_code(lambda: program(u, v))
    same(result, expected)
    if dtype is float:
        assert count == wanted


@pytest.mark.parametrize("name", WAITING)
def test_programs_of_several_statements(name: str) -> None:
    program, _ = WAITING[name]
    ours, theirs = ([grid(xp, seed) for seed in (1, 2, 3)] for xp in (lazynp, numpy))
    for _ in range(3):
        same(forced(program(lazynp, *ours)), program(numpy, *theirs))


def test_the_same_steps_with_other_results_are_another_function() -> None:
    """Which steps somebody has decides what is stored: each way is compiled by itself, and none is taken for another."""
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    expected = three(numpy.asarray(u), numpy.asarray(v))
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    found = []
    for _ in range(2):
        for wanted in (0b100, 0b101, 0b110, 0b111):
            results = [x if wanted >> k & 1 else None for k, x in enumerate(three(u, v))]
            _, counts = counted(forced, results)
            found.append(counts[2])
            for x, y in zip(results, expected, strict=True):
                if x is not None:
                    same(x, y)
    assert found == [0] * 4 + [1] * 4


def test_what_nobody_reads_changes_no_result() -> None:
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    p, q = grid(numpy, 1), grid(numpy, 2)
    for _ in range(3):
        x = u * v
        x = x / 3
        x = u - v
        y = x * x + u
        u / v
        same([x, y], [p - q, (p - q) * (p - q) + p])


def test_functions_of_what_functions_give_have_loops_of_their_own() -> None:
    """In one loop the second function waits for the first; functions beside one another gain by it."""
    a = lazynp.realize(lazynp.linspace(0.1, 2, 20_000) * 1)
    beside: list[Callable[[], Any]] = [lambda: lazynp.sin(a) * lazynp.cos(a * 2) + lazynp.exp(-a), lambda: lazynp.sqrt(lazynp.exp(a) + 1)]
    behind: list[Callable[[], Any]] = [lambda: lazynp.sin(lazynp.exp(-a) * 2) + 1, lambda: lazynp.exp(lazynp.sqrt(lazynp.sin(a)) - 1)]
    for programs, runs in ((beside, 1), (behind, 0)):
        for program in programs:
            by_machine_code(program)
            assert by_machine_code(program)[1] == runs


def test_turns_of_a_loop_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    compiled = expressions.compiled

    def counting(*arguments: Any) -> int:
        asked.append(arguments)
        return compiled(*arguments)

    monkeypatch.setattr(expressions, "compiled", counting)
    a, b = grid(lazynp, 1), grid(lazynp, 2)
    result, count = by_machine_code(lambda: in_turn(lazynp, a, b, 80))
    same(result, in_turn(numpy, numpy.asarray(a), numpy.asarray(b), 80))
    assert (len(asked), count) == (1, 9), "the first one of ten tapes is NumPy's"


@pytest.mark.parametrize("name", MEMORY)
def test_machine_code_stores_what_somebody_has(name: str) -> None:
    program, arrays = MEMORY[name]
    u, v = (lazynp.asarray(numpy.random.default_rng(seed).standard_normal(62_500), copy=True) for seed in (1, 2))
    for _ in range(2):
        forced(program(u, v))
    tracemalloc.start()
    try:
        _, count = by_machine_code(lambda: program(u, v))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1
    assert arrays <= most / u.nbytes < arrays + 0.5


def test_random_programs() -> None:
    before = core.chain_counts()[2]
    with config.override(optimize=False):
        for seed in range(70_000, 70_060):
            assert (said := chained.differs(seed, 0)) is None, said
    assert core.chain_counts()[2] - before > 10


@pytest.mark.slow
@pytest.mark.parametrize("optimize", [False, True])
def test_many_random_programs(optimize: bool) -> None:
    with config.override(optimize=optimize):
        for seed in range(80_000, 80_300):
            assert (said := chained.differs(seed, 0)) is None, said


def test_columns_and_numbers_are_operands_of_their_own() -> None:
    """One expression, whose operands lie in a row, apart, and are one element: each way is compiled by itself."""

    def program(u: Any, v: Any) -> Any:
        return (u + v) * u - v

    wide = grid(lazynp, 3)
    operands = [wide, wide[:, ::-1].copy(), wide[:, :1], wide[:1], lazynp.asarray(numpy.arange(160.0 * 80).reshape(80, 160))[:, ::2]]
    for _ in range(2):
        for u in operands:
            for v in operands:
                expected = program(numpy.array(u), numpy.array(v))
                assert numpy.array(program(u, v)).tobytes() == expected.tobytes()


# Errors ---------------------------------------------------------------------------------------------------------------------------


def test_errors_are_told_as_numpy_tells_them() -> None:
    said: list[Any] = []
    for xp in (lazynp, numpy):
        u = grid(xp)
        for k in range(3):
            if k:
                u[3, 3] = 0.0
            with chained.told() as caught:
                result = forced((1.0 / u - 1.0) * 3 + u)
            said.append(([(str(w.message), w.lineno, w.filename) for w in caught], numpy.asarray(result).tobytes()))
    assert said[:3] == said[3:]
    assert len(said[2][0]) == 1


@pytest.mark.parametrize(
    "program",
    [
        lambda u, v, w: (u / v < w) & (u / v > w),
        lambda u, v, w: (u / v < w) ^ (u / v < w),
        lambda u, v, w: (u / v < 1.0) & ((w < u) & (w > u)),
        lambda u, v, w: lazynp.where(v > 0.5, u / v, w) * 2,
    ],
    ids=["both", "itself", "another", "not chosen"],
)
def test_what_is_proved_of_comparisons_loses_no_error(program: Callable[..., Any]) -> None:
    """Whatever is divided, the result is another: the division is done, for its errors."""
    said = []
    with config.override(optimize=True):
        for xp in (lazynp, numpy):
            u, v, w = grid(xp), grid(xp, 1), grid(xp, 2)
            v[...] = abs(v) + 1
            for _ in range(2):
                forced(program(u, v, w))
            v[3, 3] = 0.0
            with chained.told() as caught:
                result = forced(program(u, v, w))
            said.append(([(str(each.message), each.filename, each.lineno) for each in caught], numpy.asarray(result).tobytes()))
    assert said[0] == said[1]
    assert said[1][0]


def test_an_error_that_follows_from_the_program_alone_is_told() -> None:
    """LLVM divides nothing where it knows both numbers beforehand."""
    told = []
    for xp in (lazynp, numpy):
        a, b = xp.arange(4550), xp.arange(4550) * 3
        for _ in range(3):
            with chained.told() as caught:
                forced((b ^ b) / (a - a))
            told.append([str(each.message) for each in caught])
    assert told == [["invalid value encountered in divide"]] * 6


BOUNDS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda xp, bound: bound,
    "one element": lambda xp, bound: xp.full((1, 1), bound),
    "elements": lambda xp, bound: xp.full((70, 65), bound),
}


@pytest.mark.parametrize("dtype", [float, numpy.float32])
@pytest.mark.parametrize("high", BOUNDS)
@pytest.mark.parametrize("low", BOUNDS)
def test_clipped_zeros_have_numpys_signs(low: str, high: str, dtype: Any) -> None:
    for least, most in ((0.0, 300.0), (-0.0, 300.0), (-1.0, -0.0), (-1.0, 0.0)):
        found = []
        for xp in (numpy, lazynp, lazynp, lazynp):
            x = xp.array(numpy.array([0.0, -0.0, 1.0, -1.0, numpy.nan] * 910, dtype).reshape(70, 65))
            bounds = [BOUNDS[low](xp, xp.asarray(least, dtype)[()]), BOUNDS[high](xp, xp.asarray(most, dtype)[()])]
            found.append(numpy.asarray(xp.clip(-x, *bounds) * 2).tobytes())
        assert found[1:] == found[:1] * 3, (least, most)


def test_flags_that_numpys_loops_do_not_raise() -> None:
    """Comparing NaN sets a flag in some vector instructions: NumPy's loops do it again, and after some times do it alone."""
    u, v = grid(lazynp), grid(lazynp, 1)
    u[4, 5] = numpy.nan
    expected = (numpy.array(u) * 2 < numpy.array(v)) & (numpy.array(u) > 0)
    with chained.told() as heard:
        for _ in range(12):
            result, _ = by_machine_code(lambda: (u * 2 < v) & (u > 0))
            assert numpy.array_equal(result, expected)
    assert not heard


def test_nan_that_is_handed_on_is_no_error() -> None:
    u, v = grid(lazynp), grid(lazynp, 1)
    u[4, 5] = numpy.nan
    with chained.told() as heard:
        for _ in range(3):
            result, count = by_machine_code(lambda: u * 2 + v)
    assert count == 1
    assert not heard
    assert numpy.array_equal(result, numpy.array(u) * 2 + numpy.array(v), equal_nan=True)


def test_errors_of_several_results() -> None:
    """Where machine code raises a flag NumPy computes all of them step by step, and each error is told at its line."""

    def program(u: Any) -> Any:
        x = 1.0 / u
        y = x * 0.0
        return x, y, u * 2 - 1

    found: list[Any] = []
    for xp in (lazynp, numpy):
        u = grid(xp)
        forced(program(u))
        forced(program(u))
        u[3, 3] = 0.0
        with chained.told() as caught:
            results = forced(program(u))
        found.append(([(str(w.message), w.lineno, w.filename) for w in caught], [numpy.asarray(x).tobytes() for x in results]))
    assert found[0] == found[1]
    assert len(found[0][0]) == 2


# When it is compiled ---------------------------------------------------------------------------------------------------------------


def test_it_is_compiled_when_it_has_cost_as_much_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    compiled = expressions.compiled

    def counted(*arguments: Any) -> int:
        asked.append(arguments)
        return compiled(*arguments) if not arguments[4] else 0

    monkeypatch.setattr(expressions, "compiled", counted)
    u, v = grid(lazynp), grid(lazynp, 1)  # 6400 elements, three steps
    cost = 3 * (6400 + 300)
    counts = []
    with chained.chains_of(chained.SIZES[0], 16 * cost):
        for _ in range(20):
            _, count = by_machine_code(lambda: (u + v) * u - v)
            counts.append(count)
    kept = [arguments[4] for arguments in asked]
    assert kept == [True, False], "it is looked for on disk, and then compiled"
    assert counts == [0] * 16 + [1] * 4
    names = [step[0] for step in asked[0][0]]
    assert names == ["add", "multiply", "subtract"]


@pytest.mark.skipif(not config.cache, reason="the disk cache is turned off")
def test_what_an_earlier_run_left_on_disk_is_taken_early() -> None:
    u, v = grid(lazynp), grid(lazynp, 1)

    def program() -> Any:
        return (u - v) * u - v * 1.25

    forced(program())
    forced(program())  # compiled, and on disk
    before = compiler.STATISTICS.compiled
    cost = 4 * (6400 + 300)
    counts = []
    with chained.chains_of(chained.SIZES[0], 80 * cost):
        for _ in range(14):
            _, count = by_machine_code(program)
            counts.append(count)
    assert counts == [0] * 10 + [1] * 4
    assert compiler.STATISTICS.compiled == before


def test_a_function_that_computes_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = expressions.compiled

    def wrong(steps: Any, dtypes: Any, lies: str, outs: Any, kept: bool) -> int:
        return compiled([("subtract", *step[1:]) if step[0] == "add" else step for step in steps], dtypes, lies, outs, kept)

    monkeypatch.setattr(expressions, "compiled", wrong)
    u, v = grid(lazynp), grid(lazynp, 1)
    for _ in range(3):
        result, count = by_machine_code(lambda: (u + v) * u - v)
        assert count == 0
        assert numpy.array_equal(result, (numpy.array(u) + numpy.array(v)) * numpy.array(u) - numpy.array(v))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_function_that_computes_something_else_in_one_of_its_results_is_not_used(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = expressions.compiled

    def wrong(steps: Any, dtypes: Any, lies: str, outs: Any, kept: bool) -> int:
        return compiled(steps, dtypes, lies, [0 if k == which and out else 2 if k == which else out for k, out in enumerate(outs)], kept)

    monkeypatch.setattr(expressions, "compiled", wrong)
    u, v = grid(lazynp), grid(lazynp, 1)
    expected = three(grid(numpy), grid(numpy, 1))
    for _ in range(3):
        result, count = by_machine_code(lambda: three(u, v))
        assert count == 0
        same(result, expected)


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, OSError])
def test_a_compiler_that_fails_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    asked = []

    def fails(*arguments: Any) -> int:
        asked.append(arguments)
        raise error("no")

    monkeypatch.setattr(expressions, "compiled", fails)
    u, v = grid(lazynp), grid(lazynp, 1)
    for _ in range(5):
        result = (u + v) * u - v
        assert numpy.array_equal(result, (numpy.array(u) + numpy.array(v)) * numpy.array(u) - numpy.array(v))
    assert len(asked) == 1


def test_who_is_interrupted_meanwhile_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(expressions, "compiled", interrupted)
    u, v = grid(lazynp), grid(lazynp, 1)
    kept = numpy.array(u)

    def program() -> Any:
        return (u + v) * u - v

    x = program()
    with pytest.raises(KeyboardInterrupt):
        forced(x)
    assert numpy.array_equal(x, (kept + numpy.array(v)) * kept - numpy.array(v))
    monkeypatch.undo()
    forced(program())  # somebody asks again
    result, count = by_machine_code(program)
    assert numpy.array_equal(result, (kept + numpy.array(v)) * kept - numpy.array(v))
    assert count == 1


def test_a_compiler_that_computes_other_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs while something is compiled (a program's finaliser) may fill every place of the table."""
    compiled = expressions.compiled
    depth: list[int] = []

    def busy(*arguments: Any) -> int:
        if not depth:
            depth.append(1)
            w = grid(lazynp, 5)
            for k in range(1, 1500):
                text = f"w {'+-*'[k % 3]} {k} {'+-*'[k // 3 % 3]} w {'+-*'[k // 9 % 3]} (w {'+-*'[k // 27 % 3]} 2)"
                forced(eval(text, {"w": w[: 4 + k % 30]}))
            depth.clear()
        return compiled(*arguments)

    monkeypatch.setattr(expressions, "compiled", busy)
    u, v = grid(lazynp), grid(lazynp, 1)
    with config.override(optimize=False):
        for _ in range(2):
            result = forced((u + v) * u - v)
    assert numpy.array_equal(result, (numpy.array(u) + numpy.array(v)) * numpy.array(u) - numpy.array(v))


def test_many_expressions_are_forgotten_and_found_again() -> None:
    w, kept = grid(lazynp, 5), grid(numpy, 5)
    signs = "+-*"
    with config.override(optimize=False), chained.chains_of(chained.SIZES[0]):
        for k in list(range(2000)) * 2:
            text = f"w {signs[k % 3]} 1.5 {signs[k // 3 % 3]} w {signs[k // 9 % 3]} (w {signs[k // 27 % 3]} 2) {signs[k // 81 % 3]} w"
            if k % 97 == 0:
                assert numpy.array_equal(eval(text, {"w": w}), eval(text, {"w": kept}))
            else:
                forced(eval(text, {"w": w}))


# Threads ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
@pytest.mark.parametrize("shape", [(262_144,), (99_991,), (70_001, 3), (700, 311), (3, 65_537)], ids=str)
def test_large_expressions_on_several_threads(shape: tuple[int, ...], threads: int | None) -> None:
    rng = numpy.random.default_rng(0)
    kept = rng.standard_normal(tuple(n + 1 for n in shape))[tuple(slice(1, None) for _ in shape)]
    u = lazynp.zeros(tuple(n + 1 for n in shape))[tuple(slice(1, None) for _ in shape)]
    u[...] = kept
    v = lazynp.asarray(kept * 2.5 + 1)

    def program(u: Any, v: Any) -> Any:
        return ((u * v + 1.5) * u - v) * u + v * 0.5 - abs(u - v) * 3

    expected = program(kept, kept * 2.5 + 1)
    with config.override(threads=threads):
        for _ in range(4):
            assert numpy.asarray(program(u, v)).tobytes() == expected.tobytes()


def test_an_error_in_any_threads_piece_is_told() -> None:
    u = lazynp.asarray(numpy.linspace(1, 2, 262_144), copy=True)

    def program(u: Any) -> Any:
        return ((1.0 / u + 1.5) * u - 1) * u + (u * 0.5 - 3) * u

    with config.override(threads=4):
        for _ in range(3):
            forced(program(u))
        for at in (-1, 0, 100_000):
            value = float(u[at])
            u[at] = 0.0
            with chained.told() as caught:
                result = forced(program(u))
            assert "divide by zero encountered in divide" in [str(w.message) for w in caught]
            with numpy.errstate(all="ignore"):
                assert numpy.array_equal(result, program(numpy.array(u)), equal_nan=True)
            u[at] = value


@pytest.mark.parametrize("threads", [1024, 1025, 65_537, 2**31, 2**32 + 1, 2**70])
def test_more_threads_than_there_can_be(threads: int) -> None:
    u = lazynp.asarray(numpy.linspace(1, 2, 262_144), copy=True)

    def program(u: Any) -> Any:
        return ((u * 2 + 1.5) * u - 1) * u + (u * 0.5 - 3) * u

    expected = program(numpy.array(u))
    with config.override(threads=None):
        forced(program(u))
        forced(program(u))
    with config.override(threads=threads):
        for _ in range(3):
            assert numpy.asarray(program(u)).tobytes() == expected.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_computes_alone() -> None:
    u = lazynp.asarray(numpy.linspace(1, 2, 262_144), copy=True)

    def program() -> Any:
        return (((u * 2 + 1.5) * u - 1) * u + (u * 0.5 - 3) * u).sum()

    with config.override(threads=2):
        for _ in range(3):
            expected = float(program())
        child = os.fork()
        if not child:
            os._exit(0 if float(program()) == expected else 1)
        assert os.waitpid(child, 0)[1] == 0


# The text --------------------------------------------------------------------------------------------------------------------------

FLOAT, TRUTH = numpy.dtype(float), numpy.dtype(bool)


def test_what_has_not_numpys_bits_is_not_compiled() -> None:
    operand = (0, 0)
    for name in ("exp", "power", "sin", "arctan2", "no_function"):
        assert expression_ir.source([(name, FLOAT, FLOAT, (operand, operand))], [FLOAT], "c", [0]) == ""
    assert expression_ir.source([("logical_and", FLOAT, TRUTH, (operand, operand))], [FLOAT], "c", [0]) == ""
    assert expressions.compiled([("exp", FLOAT, FLOAT, (operand,))], [FLOAT], "c", [0]) == 0


def test_loops_over_rows_are_vectors() -> None:
    steps = [("multiply", FLOAT, FLOAT, ((0, 0), (expression_ir.NUMBER, 0))), ("sqrt", FLOAT, FLOAT, ((expression_ir.STEP, 0),))]
    for outs in ([1], [0, 1]):
        text = compiler.optimised_ir(expression_ir.source(steps, [FLOAT], "c", outs), [expression_ir.NAME])
        assert "x double> @llvm.sqrt" in text


def test_the_text_stores_what_is_wanted() -> None:
    operand = (expression_ir.ARRAY, 0)
    steps = [("multiply", FLOAT, FLOAT, (operand, operand)), ("less", FLOAT, TRUTH, ((expression_ir.STEP, 0), operand))]
    for outs in ([0], [1], [0, 1]):
        text = expression_ir.source(steps, [FLOAT], "c", outs)
        assert (text.count("store double"), text.count("store i8")) == (outs.count(0), outs.count(1))
        assert expressions.compiled(steps, [FLOAT], "c", outs)


def test_a_process_that_computes_little_loads_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import sys\nimport lazynp as np\nfrom lazynp.array import core\n"
        "x = np.linspace(0, 1, 5000).copy()\nfor _ in range(100):\n    y = x * 2 + x * x - 1\n    y[0]\n"
        "assert core.chain_counts()[0] > 90\n"
        "print(any(name.startswith('llvmlite') or name.endswith(('expressions', 'expression_ir')) for name in sys.modules))\n",
        encoding="utf-8",
    )
    found = launch(tmp_path, "main.py", module=False, LAZYNP_TAPE_LIMIT="524288")
    assert (found.stdout.strip(), found.returncode) == ("False", 0), found.stderr


FIRST_RUNS = """
import lazynp as np
from lazynp.array import core

def line(a, b):
    return (a + b) * a - b

u = np.asarray([0.5, 1.5] * 3200).reshape(80, 80).copy()
v = np.realize(u * 2.0)
core.chain_sizes(256, 32, 1024, 160 * 3 * (6400 + 300))
for _ in range(40):
    np.realize(line(u, v))
before = core.chain_counts()[2]
np.realize(line(u, v))
print(core.chain_counts()[2] - before)
"""


@pytest.mark.usefixtures("waiting")
@pytest.mark.slow
def test_what_several_processes_looked_for_is_compiled_though_none_of_them_needs_it_often(tmp_path: Path) -> None:
    environment = {**os.environ, "LAZYNP_CACHE_DIR": str(tmp_path), "LAZYNP_TAPE_LIMIT": "100000"}
    found = [
        subprocess.run([sys.executable, "-c", FIRST_RUNS], env=environment, capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(3)
    ]
    assert found == ["0", "1", "1"]
