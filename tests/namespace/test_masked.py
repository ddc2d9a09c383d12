"""``numpy.ma`` and records of our arrays: the same memory, in both directions, and outputs that are written; NumPy is the oracle."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from numpy.lib import recfunctions as numpys_recfunctions

import lazynp
from lazynp.values import config

CASES: dict[str, tuple[int, int | None]] = {"small": (6, None), "large": (900_000, None), "recorded": (6, 0)}


@pytest.fixture(params=CASES)
def n(request: pytest.FixtureRequest) -> Iterator[int]:
    """Sizes on both sides of the limit; and a small one where everything is recorded."""
    size, limit = CASES[request.param]
    with config.override(tape_limit=config.tape_limit if limit is None else limit):
        yield size


def listed(x: Any) -> Any:
    return type(x).__name__, x.ravel()[:5].tolist() if hasattr(x, "ravel") else x


def check(program: Callable[[Any, Any, int], Any], n: int) -> None:
    found = []
    for np in (numpy, lazynp):
        x = np.arange(n, dtype=float) - 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = program(np, x, n)
            except Exception as error:
                value = type(error).__name__, str(error)
        found.append(repr((value, x[:5].tolist())))
    assert found[0] == found[1]


MADE: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda ma, x: ma.array(x, copy=False),
    "array with a mask": lambda ma, x: ma.array(x, mask=x > 2, copy=False),
    "of a part": lambda ma, x: ma.array(x[1:], copy=False),
    "MaskedArray": lambda ma, x: ma.MaskedArray(x),
    "masked_array": lambda ma, x: ma.masked_array(x),
    "a copy": lambda ma, x: ma.array(x, copy=True),
    "asarray": lambda ma, x: ma.asarray(x),
    "asanyarray": lambda ma, x: ma.asanyarray(x),
    "masked_where": lambda ma, x: ma.masked_where(x < 2, x, copy=False),
    "masked_where, a copy": lambda ma, x: ma.masked_where(x < 2, x),
    "masked_greater": lambda ma, x: ma.masked_greater(x, 2, copy=False),
    "masked_inside": lambda ma, x: ma.masked_inside(x, 1, 2, copy=False),
    "masked_invalid": lambda ma, x: ma.masked_invalid(x, copy=False),
    "masked_values": lambda ma, x: ma.masked_values(x, 1.0, copy=False),
    "fix_invalid": lambda ma, x: ma.fix_invalid(x, copy=False),
    "getdata": lambda ma, x: ma.getdata(x),
    "filled": lambda ma, x: ma.filled(x),
    "ravel": lambda ma, x: ma.ravel(x),
    "squeeze": lambda ma, x: ma.squeeze(x),
    "transpose": lambda ma, x: ma.transpose(x),
    "frombuffer": lambda ma, x: ma.frombuffer(x),
    "data": lambda ma, x: ma.array(x, copy=False).data,
}


@pytest.mark.parametrize("name", MADE)
def test_masked_arrays_share_memory(name: str, n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        m = MADE[name](np.ma, x)
        m[3] = 7
        seen = x[:5].tolist()
        x[2] = 50
        return seen, listed(m), bool(np.shares_memory(m, x)), m.flags.writeable

    check(program, n)


def test_data_of_an_array_is_the_array() -> None:
    x = lazynp.arange(5.0)
    assert lazynp.ma.getdata(x) is x


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10", "arcsin", "arccosh", "arctanh", "exp", "sin", "negative", "abs"])
def test_functions_write_into_outputs(name: str, n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        function, out = getattr(np.ma, name), np.zeros(n)
        other = function(x, out=out)
        return listed(function(x, out=x)), listed(other), out[:5].tolist()

    check(program, n)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "floor_divide", "remainder", "hypot", "arctan2", "less"])
def test_functions_of_two_write_into_outputs(name: str, n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        out = np.zeros(n)
        return listed(getattr(np.ma, name)(x, x + 1, out)), out[:5].tolist(), listed(getattr(np.ma, name)(x, x + 1, x))

    check(program, n)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "min", "max", "var", "cumsum", "cumprod"])
def test_reductions_write_into_outputs(name: str, n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        shape = 6 if "cum" in name else ()
        plain, masked = np.zeros(shape), np.ma.zeros(shape)
        m = np.ma.array(x[:6], mask=x[:6] > 2)
        found = [listed(getattr(np.ma, name)(m, out=out)) for out in (plain, masked)]
        return found, listed(plain), listed(masked)

    check(program, n)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv"])
def test_operators_in_place(name: str, n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        operate = getattr(operator, name)
        m = np.ma.array(x, mask=x > 3, copy=False)
        m[1] = np.ma.masked
        changed = operate(m, x[::-1] + 1)
        y = x + 0
        return changed is m, listed(m), listed(m.data), listed(operate(y, m))

    check(program, n)


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1), "keepdims": True}])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "ptp"])
def test_functions_of_the_namespace_ask_masked_arrays(name: str, options: dict[str, Any]) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        m = np.ma.masked_greater(np.arange(12.0).reshape(3, 4), 7)
        return repr(getattr(np, name)(m, **options)).replace("lazynp.", "")

    check(program, 6)


# Records ------------------------------------------------------------------------------------------------------------------------------


def test_structured_arrays_and_plain_ones_share_memory(n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        recfunctions = numpys_recfunctions if np is numpy else lazynp.lib.recfunctions
        records = np.zeros(n, [("a", "f8"), ("b", "f8")])
        plain = recfunctions.structured_to_unstructured(records)
        plain[0] = 3
        pairs = x.reshape(-1, 2)
        named = recfunctions.unstructured_to_structured(pairs, np.dtype([("a", "f8"), ("b", "f8")]))
        named["a"][0] = 33
        field = records["b"]
        field += 1
        shared = bool(np.shares_memory(plain, records)), bool(np.shares_memory(pairs, named))
        return records[0].tolist(), plain.shape, type(plain) is np.ndarray, shared, named.flags.writeable

    check(program, n)


def test_matrices_and_record_arrays_share_memory(n: int) -> None:
    def program(np: Any, x: Any, n: int) -> Any:
        matrix = np.asmatrix(x)
        matrix[0, 0] = 5
        seen = x.view(np.recarray)
        seen[1] = 6
        return type(matrix).__name__, type(seen).__name__

    check(program, n)
