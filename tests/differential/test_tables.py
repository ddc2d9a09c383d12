"""Every function of the tables over dtypes, shapes, layouts and special values, against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest

import lazynp
from tests.differential import oracle, tables
from tests.differential.programs import public


def flat(value: Any) -> dict[str, Any]:
    """Results by name: functions may return several."""
    if isinstance(value, (tuple, list)):
        return {str(k): item for k, item in enumerate(value)}
    return {"result": value}


def quietly(make: Callable[[], dict[str, Any]]) -> dict[str, Any] | Exception:
    """What it returns, or the error that it raises."""
    try:
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make()
    except Exception as error:
        return error


def attempt(expression: str, module: Any, arrays: Sequence[Any]) -> dict[str, Any] | Exception:
    def call() -> dict[str, Any]:
        return flat(eval(expression, {"np": module, **dict(zip("ab", [module.asarray(array) for array in arrays], strict=False))}))

    return quietly(call)


Case = tuple[str, Sequence[Any], str]  # an expression, its operands, what they are


def compare(expression: str, arrays: Sequence[Any], label: str) -> str | None:
    """What is wrong, or None."""
    return judge((expression, arrays, label), attempt(expression, lazynp, arrays))


def compare_together(cases: Sequence[Case]) -> list[str | None]:
    """``compare`` for each; what they record is computed by one program, that is compiled once."""
    recorded = [attempt(expression, lazynp, arrays) for expression, arrays, _ in cases]
    pending = [value for each in recorded if isinstance(each, dict) for value in each.values() if type(value) is lazynp.ndarray]
    quietly(lambda: {"": lazynp.realize(*pending)})  # an error comes again where the value that has it is read
    return [judge(case, each) for case, each in zip(cases, recorded, strict=True)]


def judge(case: Case, recorded: dict[str, Any] | Exception) -> str | None:
    expression, arrays, label = case
    expected, got = attempt(expression, oracle.Standard(), arrays), recorded
    if isinstance(recorded, dict):
        got = quietly(lambda: {name: numpy.asarray(value) for name, value in recorded.items()})
    if isinstance(expected, Exception):
        if isinstance(got, public(type(expected))):
            return None
        return f"{expression} on {label}: {got!r}, expected {type(expected).__name__}: {expected}"
    if isinstance(got, Exception):
        return f"{expression} on {label}: raised {got!r}"

    def program(module: Any) -> dict[str, Any]:
        names = {"np": module, **dict(zip("ab", arrays, strict=False))}
        return flat(eval(expression, names))

    if got.keys() != expected.keys():
        return f"{expression} on {label}: {len(got)} results, expected {len(expected)}"
    wrong = oracle.complaints(program, expected, got)
    return f"{expression} on {label}: {next(iter(wrong.values()))}" if wrong else None


def verdict(complaints: list[str | None]) -> None:
    found = [complaint for complaint in complaints if complaint is not None]
    assert not found, f"{len(found)} of {len(complaints)} cases differ:\n" + "\n".join(found[:10])


def rows(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, char) for name, chars in table.items() for char in chars]


@pytest.mark.parametrize(("name", "char"), rows(tables.UNARY))
def test_unary(engine: str, name: str, char: str) -> None:
    dtype = numpy.dtype(char)
    verdict([compare(f"np.{name}(a)", [array], f"{dtype} {label}") for label, array in tables.layouts(dtype)])


@pytest.mark.parametrize(("name", "char"), rows(tables.BINARY))
def test_binary(engine: str, name: str, char: str) -> None:
    dtype = numpy.dtype(char)
    verdict([compare(f"np.{name}(a, b)", [a, b], f"{dtype} {label}") for label, a, b in tables.pairs(dtype, dtype)])


@pytest.mark.parametrize("first", tables.NATIVE)
@pytest.mark.parametrize("name", ["add", "divide", "less", "power"])
def test_mixed_dtypes(engine: str, name: str, first: str) -> None:
    small = [numpy.array([0, 1, 2], dtype=second) for second in tables.NATIVE]
    a = numpy.array([1, 0, 2], dtype=first)
    scalars = ["1", "2.5", "True", "-1", "300", "2j", "10**10", "np.float32(2)"]
    arrays = [(f"np.{name}(a, b)", [a, b], f"{first} {b.dtype}") for b in small]
    verdict(compare_together([*arrays, *((f"np.{name}(a, {scalar})", [a], f"{first} {scalar}") for scalar in scalars)]))


@pytest.mark.parametrize(("name", "char"), rows(tables.REDUCTIONS))
def test_reductions(engine: str, name: str, char: str) -> None:
    dtype = numpy.dtype(char)
    cases = [
        (f"np.{name}(a, axis={axis}{keep})", [array], f"{dtype} {label}")
        for label, array in tables.layouts(dtype)
        for axis in tables.AXES
        for keep in ([""] if name.startswith("cum") or axis == "5" else ["", ", keepdims=True"])
    ]
    verdict(compare_together(cases) if engine == "numpy" else [compare(*case) for case in cases])  # kernels are of one reduction each


@pytest.mark.parametrize("name", tables.MOVEMENT)
def test_movement(engine: str, name: str) -> None:
    verdict(
        [
            compare(tables.MOVEMENT[name], [array], f"{char} {label}")
            for char in "?bLedD"
            for label, array in tables.layouts(numpy.dtype(char))
        ]
    )


@pytest.mark.parametrize("expression", tables.CREATION)
def test_creation(engine: str, expression: str) -> None:
    verdict([compare(expression, [], "nothing")])


@pytest.mark.parametrize("char", tables.NATIVE)
def test_casts(engine: str, char: str) -> None:
    array = tables.special(numpy.dtype(char))
    if array.dtype.kind in "fc":
        # What is out of range of an integer type is up to the processor.
        array = array[numpy.isfinite(array) & (abs(array) < 100) & (array.real >= 0)]
    verdict([compare(f"a.astype({to!r})", [array], char) for to in tables.NATIVE])
