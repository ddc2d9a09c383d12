"""Expressions of values at hand that are computed in one pass: `array/chains.h` and `array/sites.py`.

In: tables and random programs.  Out: failures.  Promise: NumPy is the oracle; how many expressions took one pass is counted.
"""

from __future__ import annotations

import ctypes
import dis
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core, sites
from lazynp.array.sites import places
from lazynp.graph import report
from lazynp.values import config
from tests.array import chained

pytestmark = pytest.mark.skipif(not core.native, reason="the Python twin computes operator by operator")

SIDE = 80


@pytest.fixture(autouse=True)
def _usual_limit() -> Any:
    """Chains as by default, but in what runs for the first time, too."""
    with config.override(eager_below=65536), chained.chains_of(chained.SIZES[0]):
        yield


def grid(xp: Any, seed: int = 0, dtype: Any = float) -> Any:
    return xp.asarray((numpy.random.default_rng(seed).standard_normal((SIDE, SIDE)) * 10).astype(dtype), copy=True)


def passes(program: Callable[[], Any]) -> tuple[Any, tuple[int, int]]:
    """A result, and how many expressions took one pass, and how many went step by step."""
    before = core.chain_counts()
    result = program()
    after = core.chain_counts()
    return result, (after[0] - before[0], after[1] - before[1])


# Where an operator's result goes ---------------------------------------------------------------------------------------------------

# Expressions, and the operators in them that wait, in the order of the interpreter.
PLACES = [
    ("r = a * b + c", "*"),
    ("r = c + a * b", "*"),
    ("r = a * b", ""),
    ("r = (a + b) * (c - d) / 2", "+-*"),
    ("r = u[1:-1, 2:] * 2 + u[:-2, 2:]", "*"),
    ("r = a * b + o.c[1:]", "*"),
    ("r = -(a * b) + c", "*-"),
    ("r = a * a + b * b < c", "**+"),
    ("r = c > a * b", ""),  # a right operand of a comparison
    ("r = (a * b).sum()", ""),
    ("r = f(a * b)", ""),
    ("r = f(a * b) + c", ""),
    ("r = [a * b]", ""),
    ("r = (a * b)[1:] + c", ""),
    ("r = u[a * b] + c", ""),
    ("r = a * b + f(c)", ""),  # a function that may do anything
    ("r = a * b + (c if d else a)", ""),
    ("r = a * b or c", ""),
    ("a += b * c", ""),  # the sum is another pass
    ("a += b * c - d", "*"),
    ("r = a * b ** 2", "*"),
    ("r = a * b // c", ""),
    ("r = a * b @ c", ""),
    ("r = a * b % c", ""),
    ("r = a < b < c", ""),
    ("r = (a < b) & (b < c)", "<<"),
    ("r = a * b in c", ""),
    ("r = (c +\n a * b)", ""),  # on another line
    ("r = (x := a * b) + c", ""),
    ("assert a * b + c", "*"),
    ("r = np.sqrt(a * b)", "*"),
    ("r = np.sqrt(a * b) + c", "*()"),
    ("r = np.sqrt(a * a + b * b) * 0.5 - np.abs(a - b) / (1 + a * a)", "**+()*-()*+/"),
    ("r = sqrt(a * b) + abs(a - b)", "*()-()"),
    ("r = np.maximum(a * b, 0) + np.add(c, a + b)", "*()+()"),
    ("r = a * b + np.sqrt(c)", "*()"),
    ("r = a * b + np.exp(c)", "*"),  # no step, but it writes nothing
    ("r = np.exp(a * b) + c", ""),
    ("r = np.sqrt(a * b, out=c)", ""),
    ("r = np.sqrt(x=a * b) + c", ""),
    ("r = np.sum(a * b) + c", ""),
    ("r = np.random.rand(a * b) + c", ""),
    ("r = np.linalg.norm(a * b) + c", ""),
    ("r = o.sqrt(a * b) + c", ""),
    ("r = list(map(np.sqrt, [a, b]))[0] + c", ""),
    ("r = np.sqrt(*a) + c", ""),
    ("r = c + f(np.sqrt(a * b))", "*"),
    ("r = np.sqrt(np.sqrt(a * b)) * 2", "*()()"),
    ("r = (a * b)(c)", ""),
]
NAMES = {"np": lazynp, "sqrt": lazynp.sqrt, "o": object(), "f": len}
SIGNS = {"UNARY_NEGATIVE": "-", "CALL": "()"}


@pytest.mark.parametrize(("source", "waiting"), PLACES, ids=[source for source, _ in PLACES])
def test_an_operator_waits_where_only_the_next_one_sees_its_result(source: str, waiting: str) -> None:
    code = compile(source, "<places>", "exec")
    operators = [i for i in dis.get_instructions(code) if i.opname in ("BINARY_OP", "COMPARE_OP", "UNARY_NEGATIVE", "CALL")]
    waits = places(code, NAMES)
    found = "".join(SIGNS.get(i.opname, i.argrepr) for i in operators if waits[i.offset // 2])
    if "** 2" in source:
        assert found in ("*", "**"), "the power binds more tightly: it is what waits"
    else:
        assert found == waiting


def test_places_that_are_no_operators() -> None:
    code = compile("r = f(a) + b[1]", "<places>", "exec")
    operators = {i.offset // 2 for i in dis.get_instructions(code) if i.opname == "BINARY_OP"}
    waits = places(code, NAMES)
    assert len(waits) == len(code.co_code) // 2
    assert not any(waits[at] for at in range(len(waits)) if at not in operators)


# What is computed ----------------------------------------------------------------------------------------------------------------

EXPRESSIONS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "neighbours": (lambda u, v: 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]), 1),
    "polynomial": (lambda u, v: ((u * 0.3 + 0.2) * u - v) * u + 1.0, 1),
    "distances": (lambda u, v: (u[0][:, None] - u[0][None, :]) ** 2 + (v[0][:, None] - v[0][None, :]) ** 2, 1),
    "tests": (lambda u, v: (u * u + v * v < 25) & (u > 0), 1),
    "rows": (lambda u, v: u * v[0] + v[:, :1] * 2, 1),
    "sign": (lambda u, v: -(u + v) * 2, 1),
    "functions": (lambda u, v: lazynp.sqrt(u * u + v * v) * 0.5 - lazynp.abs(u - v) / (1 + u * u), 1),
    "limits": (lambda u, v: lazynp.maximum(u * 2 - v, 0) + lazynp.minimum(abs(u - v), 1), 1),
    "a sum by itself": (lambda u, v: u + v, 0),
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
        result, (one_pass, steps) = passes(lambda program=program: program(x, y, z))
        assert numpy.asarray(result).tobytes() == program(*theirs).tobytes()
        assert (one_pass, steps) == (1, 0)
    theirs[0].flat[5] = complex(numpy.inf, 1)
    x = lazynp.array(theirs[0])
    for program in programs:
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            result = program(x, y, z)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            expected = program(*theirs)
        assert numpy.array_equal(result, expected, equal_nan=True)
        assert [str(w.message) for w in ours] == [str(w.message) for w in heard]



@pytest.mark.parametrize("dtype", [float, numpy.float32, int, numpy.uint8])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_takes_one_pass(name: str, dtype: Any) -> None:
    program, wanted = EXPRESSIONS[name]
    u, v = grid(lazynp, 1, dtype), grid(lazynp, 2, dtype)
    try:
        with numpy.errstate(all="ignore"):
            expected = program(grid(numpy, 1, dtype), grid(numpy, 2, dtype))
    except Exception as error:
        with pytest.raises(type(error)):
            program(u, v)
        return
    result, (one_pass, steps) = passes(lambda: program(u, v))
    assert result.dtype == expected.dtype
    assert numpy.array_equal(result, expected)
    if dtype is float:
        assert (one_pass, steps) == (wanted, 0)


def test_random_programs() -> None:
    before = core.chain_counts()
    for seed in range(150):
        assert (said := chained.differs(seed)) is None, said
    after = core.chain_counts()
    assert after[0] - before[0] > 15, "in one pass"
    assert after[1] - before[1] > 15, "step by step"


@pytest.mark.slow
def test_many_random_programs() -> None:
    for seed in range(1000, 3500):
        assert (said := chained.differs(seed)) is None, said


def test_memory_of_an_expression() -> None:
    """What is between operators is in no array: one is made, that of the result."""
    u, v = (lazynp.asarray(numpy.random.default_rng(seed).standard_normal(62_500), copy=True) for seed in (1, 2))
    (u * v + u) * v - u  # what is made once
    tracemalloc.start()
    try:
        result = (u * v + u) * v - u
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.nbytes <= peak < 1.5 * result.nbytes + 4096


# Errors --------------------------------------------------------------------------------------------------------------------------


def test_errors_are_told_by_the_operators_that_raise_them() -> None:
    said: list[Any] = []
    for xp in (numpy, lazynp):
        u = grid(xp)
        u[3, 3] = 0.0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = (1.0 / u - 1.0 / u) * 1e308 + u  # fmt: skip
        said.append([(str(w.message), w.lineno, w.filename) for w in caught])
        said.append(numpy.asarray(result).tobytes())
    assert said[0] == said[2]
    assert len(said[0]) > 2


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


def test_what_raises_errors_again_and_again_waits_no_more() -> None:
    u = grid(lazynp)
    u[3, 3] = numpy.inf
    before = core.chain_counts()
    with lazynp.errstate(all="ignore"):
        for _ in range(50):
            u * 0.0 + u
    after = core.chain_counts()
    assert after[1] - before[1] < 10


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
    assert numpy.array_equal(*found)


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
    assert numpy.array_equal(*found)


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
    del seen
    _, (again, _) = passes(lambda: u * 2.0 + u)
    first, second = lazynp.meshgrid(u[0], u[1])
    _, (several, _) = passes(lambda: first * 2.0 + second)
    assert (one_pass, lent, again, several) == (1, 0, 1, 1)


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


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pieces of programs that are looked at from now on, as by default: when they run again."""
    found: list[Any] = []
    monkeypatch.setattr(sites, "places", lambda code, names: found.append(code) or places(code, names))
    core.chain_sizes(*chained.SIZES[0])
    return found


def test_a_piece_of_a_program_is_looked_at_once(looked: list[Any]) -> None:
    """However long it is; what runs but once (each line that is evaluated is new) is not looked at."""
    u, v = grid(lazynp, 1)[0] + lazynp.zeros((4, 1)), grid(lazynp, 2)[0]
    lines = [f"    x{k} = u * v + u" for k in range(700)]
    names: dict[str, Any] = {"u": u, "v": v}
    exec("def long(u, v):\n" + "\n".join(lines), names)
    counts = [passes(lambda: names["long"](u, v))[1][0] for _ in range(4)]
    assert counts == [0, 700, 700, 700]
    assert looked == [names["long"].__code__]
    for _ in range(50):
        eval("u * v + u", names)
    assert len(looked) == 1


def test_looking_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    u = grid(lazynp)

    def interrupted(code: Any, names: Any) -> Any:
        raise KeyboardInterrupt

    def failing(code: Any, names: Any) -> Any:
        raise RecursionError

    for raising, line in ((failing, "u * u + u"), (interrupted, "u * u - u")):
        monkeypatch.setattr(sites, "places", raising)
        code = compile(line, "<interrupted>", "eval")
        if raising is failing:
            assert numpy.array_equal(eval(code), numpy.asarray(u) * numpy.asarray(u) + numpy.asarray(u))
        else:
            with pytest.raises(KeyboardInterrupt):
                eval(code)


def test_threads() -> None:
    u, v = grid(lazynp, 1), grid(lazynp, 2)
    expected = numpy.asarray(u) * numpy.asarray(v) + numpy.asarray(u) * 0.5 - 1.0
    failed: list[Any] = []

    def program() -> None:
        for _ in range(300):
            if not numpy.array_equal(u * v + u * 0.5 - 1.0, expected):
                failed.append(1)

    threads = [threading.Thread(target=program) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_the_report_counts_expressions() -> None:
    u = grid(lazynp)
    report.reset()
    u * 2.0 + u * u
    with lazynp.errstate(all="ignore"):  # of which nobody is told
        u / 0.0 + u
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        u / 0.0 + u
    assert report.counters()["expressions_at_hand"] == {"one_pass": 2, "step_by_step": 1, "machine_code": 0}
    assert "expressions of values at hand: 2 in one pass, 1 operator by operator" in lazynp.report()


def test_c_code_that_is_called_at_a_place_of_the_program_may_import() -> None:
    imported = ctypes.pythonapi.PyImport_ImportModule
    imported.restype, imported.argtypes = ctypes.py_object, [ctypes.c_char_p]
    code = test_c_code_that_is_called_at_a_place_of_the_program_may_import.__code__
    assert sites.there(code, 0)(imported, b"colorsys").__name__ == "colorsys"
