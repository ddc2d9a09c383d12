"""Functions that the core answers, or NumPy by a shorter way, in every form of their calls.

In: tables of calls, plain and odd.  Out: failures.  Promise: NumPy is the oracle, for bits, dtypes, layouts, errors and warnings.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=65536):
        yield


def arrays(xp: Any) -> dict[str, Any]:
    rng = numpy.random.default_rng(0)
    row, table, cube = rng.standard_normal(23), rng.standard_normal((7, 5)), rng.standard_normal((2, 3, 4))
    odd = row.copy()
    odd[[2, 5, 9]] = numpy.nan, numpy.inf, -0.0
    return {
        "row": xp.array(row),
        "table": xp.array(table),
        "cube": xp.array(cube),
        "odd": xp.array(odd),
        "large": xp.array(row * 5e307),
        "turned": xp.array(table).T,
        "steps": xp.array(row)[::-2],
        "part": xp.array(table)[1:, 1:4],
        "single": xp.array(table, dtype=numpy.float32),
        "half": xp.array(row, dtype=numpy.float16),
        "whole": xp.array(row * 9, dtype=int),
        "bytes": xp.array(abs(row) * 9, dtype=numpy.uint8),
        "truth": xp.array(row > 0),
        "complex": xp.array(row + 1j),
        "one": xp.array([1.5]),
        "none": xp.array([]),
        "no rows": xp.array(table)[:0],
        "number": xp.array(2.5),
    }


SHIFTS = ("1", "-3", "0", "100", "True", "(1, 2)", "1.0", "None")
AXES = ("", ", 0", ", 1", ", -1", ", 7", ", None", ", (0, 1)")
ORDERS = ("", ", 1", ", 2", ", 0", ", -1", ", True", ", axis=0", ", axis=-1", ", axis=3", ", prepend=0", ", append=x[:1]", ", 1, -1")
LOW, HIGH = ("0", "-0.5", "None", "np.float64(0.1)", "x", "300", "2**70", "'a'"), ("1", "0.5", "None", "x", "-1", "float('nan')")
SPREADS = (
    "", ", 0", ", 1", ", -1", ", 5", ", (0, 1)", ", None", ", ddof=1", ", 0, ddof=2", ", ddof=100", ", ddof=0.5", ", dtype=np.float32",
    ", keepdims=True", ", 0, keepdims=True", ", where=x > 0", ", correction=1", ", mean=0.5", ", unknown=1",
)  # fmt: skip
OF_METHODS = ("", "0", "1", "-1", "5", "(0, 1)", "axis=0", "ddof=1", "0, None, None, 1", "keepdims=True", "unknown=1")
KEYS = (
    "x", "np.sort(x, axis=None)", "x[::-1]", "np.tile(x, 7)", "0.5", "[1, 2]", "x[:0]", "np.sort(x, axis=None)[::-1]", "np.arange(-9, 9)",
    "np.linspace(-3, 3, 99)",
)  # fmt: skip
SIDES = ("", ", 'right'", ", side='left'", ", side='r'", ", sorter=np.arange(x.size)", ", 'middle'", ", side=None", ", 1")
UNIQUE = ("", ", True", ", return_counts=True", ", axis=0", ", equal_nan=False", ", sorted=True", ", return_inverse=True", ", unknown=1")
CALLS: dict[str, list[str]] = {
    "roll": [f"np.roll(x, {shift}{axis})" for shift, axis in product(SHIFTS, AXES)],
    "diff": [f"np.diff(x{rest})" for rest in ORDERS],
    "clip": [
        *(f"np.clip(x, {low}, {high}{rest})" for low, high, rest in product(LOW, HIGH, ("", ", dtype=float"))),
        *(f"np.clip(x{rest})" for rest in ("", ", 0", ", min=0", ", min=0, max=1", ", 0, max=1", ", 0, 1, min=0", ", 0, 1, x.copy()")),
    ],
    "var": [f"np.{function}(x{rest})" for function, rest in product(("var", "std"), SPREADS)],
    "searchsorted": [
        *(f"np.searchsorted(np.sort(x, axis=None), {keys}{rest})" for keys, rest in product(KEYS, SIDES)),
        *(f"np.searchsorted(np.ravel(x), {keys}{rest})" for keys, rest in product(KEYS, SIDES)),  # there is something to find, too
        *(f"np.sort(x, axis=None).searchsorted({keys}{rest})" for keys, rest in product(KEYS, SIDES)),
    ],
    "unique": [f"np.unique({of}{rest})" for of, rest in product(("x", "x[::2]", "np.tile(x, 3)"), UNIQUE)],
    "x.var": [f"x.{function}({rest})" for function, rest in product(("var", "std"), OF_METHODS)],
}
STARTS = ("0", "1.5", "-2", "2**60", "2**70", "1e308", "float('nan')", "True", "np.float32(1)", "[1, 2]", "1j", "'a'")
STOPS = ("1", "0", "-1e308", "float('inf')", "5e-324", "3")
COUNTS = ("", ", 1", ", 0", ", 2", ", -1", ", 7, endpoint=False", ", 5, retstep=True", ", 4, dtype=int", ", num=3, axis=-1", ", 2.5")
SPACES = [f"np.linspace({start}, {stop}{rest})" for start, stop, rest in product(STARTS, STOPS, COUNTS)]


def outcome(text: str, xp: Any, x: Any) -> Any:
    """What a call gives: value, layout, errors and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = eval(compile(text, "<call>", "eval"), {"np": xp, "x": x})
        except Exception as error:
            return type(error), str(error).replace("lazynp", "numpy"), said(caught)
    found = found if isinstance(found, tuple) else (found,)
    return [describe(value) for value in found], said(caught)


def said(caught: list[warnings.WarningMessage]) -> list[Any]:
    return sorted({(w.category.__name__, str(w.message)) for w in caught})


def describe(value: Any) -> Any:
    memory = numpy.asarray(value)
    bits = memory.copy()
    if bits.dtype.kind in "fc":
        bits[numpy.isnan(bits)] = numpy.nan
    layout = (value.strides, value.flags.owndata, value.flags.c_contiguous, value.flags.f_contiguous) if getattr(value, "shape", ()) else ()
    return memory.dtype, memory.shape, bits.tobytes(), layout, isinstance(value, (numpy.ndarray, lazynp.ndarray))


@pytest.mark.parametrize("name", arrays(numpy))
@pytest.mark.parametrize("function", CALLS)
def test_calls(function: str, name: str) -> None:
    differing = []
    for text in CALLS[function]:
        theirs, ours = outcome(text, numpy, arrays(numpy)[name]), outcome(text, lazynp, arrays(lazynp)[name])
        if theirs != ours:
            differing.append((text, theirs, ours))
    assert not differing


def test_spaces() -> None:
    differing = [(text, a, b) for text in SPACES if (a := outcome(text, numpy, None)) != (b := outcome(text, lazynp, None))]
    assert not differing


SPREAD = [
    "np.std(x)", "np.var(x)", "x.std()", "x.var()", "np.std(x, ddof=1)", "x.var(ddof=2)", "np.var(x, ddof=0)", "x.std(ddof=x.size)",
    "np.std(x, None)", "np.std(x, axis=None)", "np.std(x, axis=0)", "x.var(0)", "x.std(-1)", "np.var(x, axis=-1, ddof=1)",
    "np.std(x, 1, ddof=1)", "x.std(axis=1, ddof=200)", "np.std(x, axis=0, keepdims=True)", "np.std(x, ddof=0.5)",
    "np.var(x, correction=1)", "x.std(7)", "x.var(ddof=-1)", "np.std(x, axis=(0,))", "np.std(x, dtype='f4')", "np.std(x, where=x > 0)",
    "np.std(x, mean=0.5)", "x.std(axis=True)", "np.std(a=x)",
]  # fmt: skip
LAID = {
    "C": lambda x: x, "F": lambda x: x.copy(order="F"), "steps": lambda x: x[..., ::2], "rows": lambda x: x[::2],
    "backwards": lambda x: x[::-1], "turned": lambda x: x.T, "a part": lambda x: x[..., 1:], "none": lambda x: x[:0],
    "float32": lambda x: x.astype("f4"), "whole": lambda x: x.astype(int),
}  # fmt: skip
SHAPES = [(1,), (2,), (7,), (8,), (9,), (129,), (1000,), (9000,), (3, 4), (40, 9), (9, 40), (130, 70), (1, 5), (5, 1), (4, 5, 6)]


@pytest.mark.parametrize("laid", LAID)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["ordinary", "equal", "huge", "infinite", "nan", "tiny"])
def test_spread(shape: tuple[int, ...], laid: str, kind: str) -> None:
    values = numpy.random.default_rng(1).normal(3, 2, shape)
    values *= {"huge": 1e300, "tiny": 1e-200, "equal": 0}.get(kind, 1)
    values.flat[0] = {"infinite": numpy.inf, "nan": numpy.nan}.get(kind, values.flat[0])
    for text in SPREAD:
        found = []
        for np in (numpy, lazynp):
            with config.override(tape_limit=1 << 20), warnings.catch_warnings(record=True) as caught, numpy.errstate(under="warn"):
                warnings.simplefilter("always")
                try:
                    given = {"np": np, "x": LAID[laid](np.array(values))}
                    got = numpy.asarray(eval(text, given))
                    one = got.dtype, got.shape, got.tobytes()
                except Exception as error:
                    one = type(error), (), b""
            found.append((one, sorted({str(w.message) for w in caught})))
        assert found[0] == found[1], text


CLOSE = [
    "np.{}(x, y)", "np.{}(x, x)", "np.{}(y, x, 0.1)", "np.{}(x, y, 1e-3, 0.5)", "np.{}(x, y, rtol=0.2)", "np.{}(x, y, atol=1.0)",
    "np.{}(x, 3.0)", "np.{}(2, x)", "np.{}(x, y, equal_nan=True)", "np.{}(x, x[:1])", "np.{}(x, y, 1, 1)", "np.{}(x, y, rtol=-1.0)",
    "np.{}(x, y, atol=np.nan)", "np.{}(x, np.nan)", "np.{}(x, y, 0.1, 0.1, True)", "np.{}(x, numpy.asarray(y))", "np.{}(a=x, b=y)",
    "np.{}(x, y.astype('f4'))", "np.{}(x.astype(int), y)", "np.{}(x, [1.0])", "np.{}(x, 'a')", "np.{}(x)", "np.{}(x > 0, y)",
    "np.{}(x, None)", "np.{}(x, y, bogus=1)",
]  # fmt: skip
NUMBERS = [
    1.0, 1, -0.0, 1 + 1e-9, float("inf"), float("-inf"), float("nan"), 2**53 + 1, 1e308, -1e308, 5e-324, True, 1j, numpy.float64(1),
    numpy.int64(2**60), numpy.float32(1),
]  # fmt: skip


def outcome_of(text: str, np: Any, given: dict[str, Any]) -> Any:
    with config.override(tape_limit=1 << 20), warnings.catch_warnings(record=True) as caught, numpy.errstate(under="warn"):
        warnings.simplefilter("always")
        try:
            got = eval(text, given | {"np": np, "numpy": numpy})
            kind = type(got) if not isinstance(got, (numpy.ndarray, lazynp.ndarray)) else (got.dtype, got.shape, got.strides)
            found: Any = kind, numpy.asarray(got).tolist()
        except Exception as error:
            found = type(error)
    return found, sorted(str(w.message) for w in caught)


@pytest.mark.parametrize("function", ["isclose", "allclose"])
@pytest.mark.parametrize("kind", ["near", "far", "infinite", "nan", "huge", "none", "matrix", "turned", "steps", "long"])
def test_close(function: str, kind: str) -> None:
    x = numpy.random.default_rng(2).normal(size=(40, 70) if kind in ("matrix", "turned", "long") else 90)
    y = x * (1 + 1e-7) if kind != "far" else x + 1
    x, y = {"none": (x[:0], y[:0]), "turned": (x.T, y.T), "steps": (x[::2], y[::2]), "huge": (x * 1e308, -y * 1e308)}.get(kind, (x, y))
    for special in ([numpy.inf, -numpy.inf, numpy.inf] if kind == "infinite" else [numpy.nan, 1.0, numpy.nan] if kind == "nan" else []):
        x = numpy.append(x, special)
        y = numpy.append(y, special if special != 1.0 else numpy.nan)
    for text in [each.format(function) for each in CLOSE]:
        both = [outcome_of(text, np, {"x": np.array(x), "y": np.array(y)}) for np in (lazynp, numpy)]
        assert both[0] == both[1], text


@pytest.mark.parametrize("function", ["isclose", "allclose"])
def test_close_numbers(function: str) -> None:
    for a, b in product(NUMBERS, NUMBERS):
        for rest in ("", ", 0.0, 0.0", ", rtol=1e-3"):
            text = f"np.{function}(a, b{rest})"
            assert outcome_of(text, lazynp, {"a": a, "b": b}) == outcome_of(text, numpy, {"a": a, "b": b}), (text, a, b)


@pytest.mark.parametrize("char", "dfli")
@pytest.mark.parametrize("n", [4095, 4096, 20_000])
def test_positions_that_sort_keep_the_order_of_equal_elements(char: str, n: int) -> None:
    draw = numpy.random.default_rng(n)
    kinds = [draw.integers(0, 50, n), draw.integers(0, 10**6, n), numpy.zeros(n), numpy.arange(n)[::-1], draw.integers(-3, 3, n) * 0.5]
    if char in "df":
        seldom = draw.random(n) < 0.2
        kinds += [draw.random(n), numpy.where(seldom, numpy.nan, draw.integers(0, 9, n)), numpy.where(seldom, 0.0, -0.0)]
    for x in kinds:
        x = x.astype(char)
        assert numpy.asarray(lazynp.argsort(lazynp.array(x))).tolist() == numpy.argsort(x, kind="stable").tolist()


RARE_SPACES = [
    "np.linspace(0.0, 1.0, num=2**70)", "np.linspace(0.0, 1.0, 2**63)", "np.linspace(0, 1e-307, 1000)", "np.linspace(1e-310, 2e-310, 7)",
    "np.linspace(-1e-308, 1e-308, 5)", "np.linspace(0, 1e-307, 1000, endpoint=False)",
]  # fmt: skip


@pytest.mark.parametrize("under", ["ignore", "raise"])
def test_spaces_that_fail_or_underflow(under: str) -> None:
    for text in RARE_SPACES:
        with numpy.errstate(under=under):
            theirs, ours = outcome(text, numpy, None), outcome(text, lazynp, None)
        assert ours == theirs, text
