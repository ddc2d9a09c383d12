"""NumPy's public surface: every name is here, callable with NumPy's arguments, and says truly who answers it."""

from __future__ import annotations

import importlib
import inspect
import io
import pathlib
import pickle
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.arrays import node_of, root_node
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.namespace.bridge.fallback import FallbackError
from lazynp.namespace.coverage import ANSWERS, MODULES, coverage, public_names
from lazynp.namespace.standard import EXCHANGED, KEYWORDS
from lazynp.scalars import is_scalar
from tests.namespace.calls import CALLS, arrays, ufunc_call

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "coverage.md"
BASES = tuple(f"polynomial.{name}" for name in ("polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre"))


def module_of(package: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        package = getattr(package, part)
    return package


@pytest.fixture
def _no_fallback() -> Iterator[None]:
    lazynp.set_fallback("error")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    lazynp.set_fallback("silent")


@pytest.mark.parametrize("path", [*MODULES, *BASES, "emath", "lib"])
def test_every_public_name_is_here(path: str) -> None:
    theirs, ours = module_of(numpy, path), module_of(lazynp, path)
    for name in public_names(theirs):
        value = getattr(theirs, name)
        assert callable(getattr(ours, name)) == callable(value), name
        assert name in dir(ours)


@pytest.mark.parametrize("path", [*MODULES[1:], *BASES, "emath", "lib", "lib.npyio", "lib.format", "ma.extras"])
def test_modules_can_be_imported(path: str) -> None:
    assert importlib.import_module(f"lazynp.{path}") is module_of(lazynp, path)


def test_import_statements() -> None:
    script = (
        "import sys, lazynp.linalg, lazynp.testing, lazynp.typing as typing\n"
        "from lazynp.lib.stride_tricks import sliding_window_view, as_strided\n"
        "from lazynp.polynomial import Polynomial\n"
        "from lazynp.polynomial.chebyshev import chebval\n"
        "from lazynp.exceptions import AxisError\n"
        "from lazynp import *\n"
        "import numpy\n"
        "assert AxisError is numpy.exceptions.AxisError and lazynp.testing.suppress_warnings is numpy.testing.suppress_warnings\n"
        "assert typing.NDArray is not None and sys.modules['numpy'] is numpy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_modules_that_are_no_data_hold_numpys_objects() -> None:
    assert lazynp.exceptions.AxisError is numpy.exceptions.AxisError
    assert lazynp.testing.assert_raises is numpy.testing.assert_raises
    assert lazynp.dtypes.Float64DType is numpy.dtypes.Float64DType
    assert isinstance(lazynp.testing, types.ModuleType)


def test_assertions_compare_our_arrays() -> None:
    x = lazynp.arange(3.0)
    lazynp.testing.assert_equal(x, [0, 1, 2])
    lazynp.testing.assert_equal({"x": (x, x.dtype)}, {"x": (x + 0, lazynp.float64)})
    lazynp.testing.assert_allclose(x + 1, x + 1 + 1e-12)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        lazynp.testing.assert_array_equal(x, x + 1)
    with lazynp.testing.assert_raises(ValueError):
        x.reshape(2, 2)


# Who answers -------------------------------------------------------------------------------------------------------------------


def recorded(x: Any) -> list[Node]:
    """The nodes of a result."""
    if type(x) is lazynp.ndarray:
        return [root_node(x._base) if type(x._base) is lazynp.ndarray else node_of(x)]
    if is_scalar(x):
        return [x._node] if x._node is not None else []
    return [node for item in x for node in recorded(item)] if isinstance(x, (tuple, list)) else []


def holds_a_call(nodes: list[Node]) -> bool:
    seen: set[int] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            if node.op is o.CALL:
                return True
            pending += node.src
    return False


def test_the_table_of_calls_is_complete() -> None:
    functions = {row.name for row in coverage().of("", "function")}
    assert set(CALLS) == {name for name in functions if not isinstance(getattr(numpy, name), type)}


@pytest.mark.usefixtures("_no_fallback")
def test_every_function_is_answered_as_it_says(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "three.npy")
    numpy.save(path, numpy.arange(3))
    answered = 0
    for row in coverage().of("", ("function", "ufunc")):
        text = CALLS[row.name] if row.kind == "function" else ufunc_call(row.name)
        names = {**arrays(lazynp), "io": io, "FILE": path, "NPY": path}
        if row.answer == "fallback":
            with pytest.raises(FallbackError):
                eval(text, names)
            continue
        result = eval(text, names)
        answered += row.answer in ("native", "library")
        if row.answer == "native":
            assert not holds_a_call([*recorded(result), *recorded(names["a"])]), f"{row.name} is a library function"
    assert answered >= 300


DATES_AND_MATRICES = "asmatrix bmat busday_count busday_offset datetime_as_string is_busday isnat"


def test_no_other_function_falls_back() -> None:
    assert {row.name for row in coverage().of("", answer="fallback")} <= {*DATES_AND_MATRICES.split(), "frompyfunc"}


def test_coverage_is_a_table() -> None:
    table = coverage()
    assert {row.answer for row in table} <= set(ANSWERS)
    assert table.of("", answer="native").of(kind="ufunc")
    assert str(table) == repr(table) == str(lazynp.coverage())
    assert [row.path for row in table.of("linalg") if row.name == "inv"] == ["linalg.inv"]


def test_the_page_is_current() -> None:
    """``python -m lazynp --coverage docs/coverage.md`` writes it."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    module, answer, told = "", "", {}
    for line in lines:
        if line.startswith("## numpy"):
            module = line.removeprefix("## numpy").removeprefix(".")
        elif line.startswith("**"):
            answer, _, names = line.removeprefix("**").partition("**: ")
            told.update({(module, name): answer for name in names.replace("`", "").split()})
    table = {(row.module, row.name): row.answer for row in coverage()}
    if f"NumPy {numpy.__version__}." in lines[2]:
        assert PAGE.read_text(encoding="utf-8") == coverage().page()
    # Another NumPy has other names; those that both have are answered the same way.
    assert {key: told[key] for key in told if key in table} == {key: table[key] for key in told if key in table}


@pytest.mark.slow
def test_the_command_prints_and_writes(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    command = [sys.executable, "-m", "lazynp", "--coverage"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"{coverage()}\n"
    subprocess.run([*command, str(page)], check=True)
    assert page.read_text(encoding="utf-8") == coverage().page()


# Signatures ---------------------------------------------------------------------------------------------------------------------


def signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def expected_signature(path: str, function: Any) -> inspect.Signature | None:
    """NumPy's, with what the array API standard asks beyond it (the tables of ``namespace/standard.py``)."""
    theirs = signature(function)
    if theirs is None:
        return None
    row = EXCHANGED.get(path, {})
    names = {**row, **{shown: name for name, shown in row.items()}}
    parameters = [p.replace(name=names.get(p.name, p.name)) for p in theirs.parameters.values()]
    last = [parameters.pop()] if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    for name, default in KEYWORDS.get(path, {}).items():
        if name not in theirs.parameters:
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return theirs.replace(parameters=[*parameters, *last])


@pytest.mark.parametrize("path", [*MODULES, *BASES])
def test_signatures_are_numpys(path: str) -> None:
    theirs, ours = module_of(numpy, path), module_of(lazynp, path)
    for name in public_names(theirs):
        value = getattr(theirs, name)
        if callable(value) and not isinstance(value, type):
            expected = expected_signature(f"{path}.{name}".lstrip("."), value)
            assert expected is None or signature(getattr(ours, name)) == expected, name


def test_first_arguments_go_by_name() -> None:
    a = lazynp.arange(6.0).reshape(2, 3)
    assert lazynp.flip(m=a, axis=0)[0, 0] == 3
    assert lazynp.broadcast_to(array=a, shape=(2, 2, 3)).shape == (2, 2, 3)
    assert lazynp.repeat(a=a, repeats=2).size == 12
    with pytest.raises(TypeError):
        lazynp.reshape(a=a, shape=(3, 2))
    with pytest.raises(TypeError):
        lazynp.flip()


def test_functions_pickle() -> None:
    for row in coverage().of(kind=("function", "ufunc")):
        function = getattr(module_of(lazynp, row.module), row.name)
        if row.answer != "numpy's own":
            assert pickle.loads(pickle.dumps(function)) is function, row.path
    p = lazynp.polynomial.Polynomial([1, 2, 3])
    assert pickle.loads(pickle.dumps(p)) == p
