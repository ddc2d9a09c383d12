"""``ufunc.at`` and sums by number on a GPU: the bits of one write after the other, and nothing of it on the processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

from lazynp.namespace.device import accumulating
from tests.cuda.comparing import check
from tests.cuda.host import SEEDS, machine, on_host, transfers

RNG = numpy.random.default_rng(3)
INDEX = RNG.integers(-20, 20, 200)
VALUES = RNG.standard_normal(200) * 10.0 ** RNG.integers(-3, 4, 200)
START = RNG.standard_normal(20) * 10


@pytest.fixture(params=SEEDS)
def one(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


@pytest.fixture
def gpu() -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


def at(name: str, start: Any, index: Any, *values: Any) -> Callable[[Any], Any]:
    """A program that calls ``name.at`` on arrays of the module's."""

    def program(m: Any) -> Any:
        x = m.asarray(start.copy())
        getattr(m, name).at(x, m.asarray(index) if isinstance(index, numpy.ndarray) else index, *[
            m.asarray(value) if isinstance(value, numpy.ndarray) else value for value in values
        ])  # fmt: skip
        return x

    return program


REDUCTIONS = "add subtract multiply maximum minimum fmax fmin logical_or logical_and logical_xor bitwise_and bitwise_or bitwise_xor"


@pytest.mark.parametrize("name", REDUCTIONS.split())
def test_reductions(name: str, gpu: Any) -> None:
    for char in "?bHqQefdFD":
        kind = numpy.dtype(char).kind
        if (name.startswith("bitwise") and kind in "fc") or (name == "subtract" and char == "?"):
            continue
        called = (name in ("add", "subtract") and char == "e") or (kind == "c" and not name.startswith(("add", "sub", "log")))
        index, values = (INDEX[:60], VALUES[:60]) if called else (INDEX, VALUES)  # a call for each write is for few of them
        with numpy.errstate(all="ignore"):
            arrays = START.astype(char), index, values.astype(char)
        # Complex numbers have no kernel for these; products of float16 overflow.
        host = {name} if kind == "c" and name[0] in "mf" else {"multiply.at"} if (name, char) == ("multiply", "e") else set()
        check((name, char), at(name, *arrays), host)


OTHERS: dict[str, str] = {
    "divide": "ded", "floor_divide": "bd", "remainder": "ld", "power": "l", "hypot": "d", "copysign": "ld", "nextafter": "fd",
    "greater": "?d", "equal": "ld", "left_shift": "lB", "gcd": "l", "negative": "lfD", "sign": "bd", "floor": "e", "conjugate": "D",
    "square": "ld", "sqrt": "d", "logical_not": "?dD", "isnan": "fd", "invert": "?l", "absolute": "l",
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_functions_that_are_no_reductions(name: str, gpu: Any) -> None:
    few = INDEX[:40]
    for char in OTHERS[name]:
        start, values = (abs(START) % 3 + 1).astype(char), (abs(VALUES[:40]) % 2 + 1).astype(char)
        host = {"power"} if name == "power" else {"sqrt"} if char == "D" and name == "sqrt" else set()
        check((name, char), at(name, start, few, *([values] if getattr(numpy, name).nin == 2 else [])), host)


MIXED: dict[str, tuple[str, str, Any]] = {
    "float64 into float32": ("add", "f", VALUES),
    "int64 into int8": ("add", "b", numpy.arange(200) * 7),
    "int8 into uint8": ("multiply", "B", (numpy.arange(200) % 250).astype("b")),
    "int64 into int8, the larger": ("maximum", "b", numpy.arange(200) * 7),
    "a number": ("add", "d", 3),
    "a number with a fraction into integers": ("add", "l", 2.5),
    "a NumPy scalar": ("add", "f", numpy.float64(0.1)),
    "truth values": ("add", "d", numpy.arange(200) % 3 == 0),
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_of_other_dtypes(name: str, gpu: Any) -> None:
    function, char, values = MIXED[name]
    check(name, at(function, START.astype(char), INDEX[:60], values[:60] if getattr(values, "ndim", 0) else values), set())


def test_positions_with_very_different_numbers_of_writes(one: Any) -> None:
    index = numpy.concatenate([numpy.zeros(600, int), numpy.full(256, 5), RNG.integers(0, 40, 90), numpy.full(70, 7)])
    RNG.shuffle(index)
    values = RNG.standard_normal(index.size)
    for char in "dDlb":
        check(char, at("add", numpy.zeros(41, char), index, values.astype(char)), set())
    check("one position", at("add", numpy.ones(1), numpy.zeros(40, int), values[:40]), set())
    check("one of two", at("subtract", numpy.ones(2), numpy.ones(300, int), values[:300]), set())


def test_a_busy_position_is_left_to_numpy(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulating, "PASSES", 1)
    index = numpy.zeros(600, int)
    values = RNG.standard_normal(600)
    check("floats", at("add", numpy.ones(4), index, values))
    assert on_host() == {"add.at"}
    check("integers have no order", at("add", numpy.ones(4, int), index, (values * 9).astype(int)), set())
    check("calls", at("hypot", numpy.ones(4), index, values))
    assert on_host() == {"hypot.at"}


def test_zeros_keep_their_sign(gpu: Any) -> None:
    minus = numpy.full(3, -0.0)
    for name in ("add", "subtract", "multiply", "maximum"):
        for values in ([-0.0, -0.0, -0.0], [-0.0, 0.0, 0.0], [0.0, -0.0, 1.0]):
            check((name, values), at(name, minus, numpy.array([0, 0, 1]), numpy.array(values)), set())
            check((name, values), at(name, minus + 0j, numpy.array([0, 0, 1]), numpy.array(values) + 0j))
    for name in ("maximum", "minimum", "fmax", "fmin"):
        for first in (0.0, -0.0):  # by one more write, and by as many as another position takes
            values = numpy.array([-first, first, -first, -first, first, -first, first])
            check((name, first), at(name, numpy.full(4, first), numpy.array([0, 1, 1, 2, 2, 2, 2]), values), set())
    nan = numpy.array([1.0, numpy.nan, 2.0])
    for name in ("add", "maximum", "minimum", "fmax", "fmin"):
        host = {f"{name}.at"} if name in ("maximum", "minimum") else set()  # it warns
        check((name, "nan"), at(name, nan, numpy.array([0, 0, 1, 2, 2]), numpy.array([numpy.nan, 1, 5, 3, numpy.nan])), host)


def test_floating_point_errors_are_numpys(one: Any) -> None:
    big = numpy.array([1e308, 0.0, 1.0])
    index = numpy.array([0, 0, 1])
    check("overflow", at("add", big, index, 1e308))
    check("division", at("divide", big, index, 0.0))
    check("logarithm", at("log", big, index))

    def refused(m: Any) -> Any:
        x = m.asarray(big)
        with numpy.errstate(all="raise"):
            m.add.at(x, m.asarray(index), 1e308)
        return x

    check("raised", refused)


KEYS: dict[str, tuple[Any, Any, bool]] = {
    "tuple": (([0, 0, 1], [1, 1, 2]), 1, True),
    "beside a slice": (([0, 0, 1], slice(1, 3)), lambda m, x: m.arange(6.0).reshape(3, 2), True),
    "a mask": (lambda m, x: x > 3, 1, True),
    "a mask, as many values": (lambda m, x: x > 3, lambda m, x: m.arange(16.0), True),
    "a mask, too few values": (lambda m, x: x > 3, lambda m, x: m.arange(15.0), False),
    "a mask of rows": (lambda m, x: x[:, 0] > 3, lambda m, x: m.arange(5.0), True),
    "a slice": (slice(1, 3), lambda m, x: m.arange(5.0), True),
    "an integer": (1, lambda m, x: m.arange(5.0), True),
    "everything": (..., lambda m, x: m.arange(5.0), True),
    "a new axis": ((None, [1, 1]), lambda m, x: m.arange(5.0), True),
    "a list": ([1, 1], lambda m, x: m.arange(5.0), True),
    "nothing": ([], lambda m, x: m.arange(5.0), True),
    "nothing, values of another shape": ([], lambda m, x: m.arange(15.0).reshape(3, 5), False),
    "two dimensions": (lambda m, x: m.asarray([[0, 1], [1, 0]]), lambda m, x: m.arange(5.0), True),
    "unsigned": (lambda m, x: m.asarray([0, 1, 1]).astype("u1"), 2, True),
    "of itself": (lambda m, x: m.asarray([0, 1, 1, 2]), lambda m, x: x, True),
    "out of range": ([1, 9], lambda m, x: m.arange(5.0), False),
    "computed, out of range": (lambda m, x: m.asarray([1, 8]) + 1, lambda m, x: m.arange(5.0), False),
    "values of another shape": ([1, 1], lambda m, x: m.arange(4.0), False),
    "values of more dimensions": ([1, 1], lambda m, x: m.arange(10.0).reshape(1, 2, 5), False),
    "too many indices": (([1], [1], [1]), 1, False),
    "words": (["a"], 1, False),
    "fractions": ([1.0], 1, False),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys(name: str, one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    key, values, on_gpu = KEYS[name]
    monkeypatch.setattr(accumulating, "FEW", -1)

    def program(m: Any) -> Any:
        x = m.asarray(numpy.arange(20.0).reshape(4, 5))
        view, before = x.T[1:4], x + 1
        given = values(m, x) if callable(values) else values
        m.add.at(x, key(m, x) if callable(key) else key, given)
        m.multiply.at(view, [0, 0, 2], x[:3, :4])
        return [x, view, before]

    check(name, program, set() if on_gpu else None)


def test_a_few_numbers_go_into_the_hosts_copy(gpu: Any) -> None:
    def program(m: Any) -> Any:
        x = m.asarray(numpy.zeros(100))
        for k in range(20):
            m.add.at(x, [k, 3, 3], [1.0, 2.0, k])
        return x * 2

    check("a loop", program)
    assert on_host() == {"add.at"}
    assert sum(transfers().values()) <= 2


def test_sums_by_number(gpu: Any) -> None:
    for char in "?bldf":
        check(char, lambda m, char=char: m.bincount(abs(m.asarray(INDEX)), m.asarray(VALUES.astype(char)), 25), set())
    check("negative", lambda m: m.bincount(m.asarray(INDEX), m.asarray(VALUES)))
    check("complex", lambda m: m.bincount(m.asarray(abs(INDEX)), m.asarray(VALUES * 1j)))
    check("shapes", lambda m: m.bincount(m.asarray(abs(INDEX)), m.asarray(VALUES[1:])))
    check("nan", lambda m: m.bincount(m.asarray(abs(INDEX)), m.asarray(VALUES) * m.inf), set())
