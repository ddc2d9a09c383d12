"""What type checkers see: every name and member, returning what calls return."""

from __future__ import annotations

import ast
import io
import pathlib
import subprocess
import sys
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from bench.stubs import MODULES, PACKAGE, stubs
from lazynp.namespace.coverage import public_names
from tests.namespace.calls import CALLS, arrays, ufunc_call
from tests.namespace.test_help import METHODS, method_call

FILES = ("__init__.pyi", "typing.pyi", *[f"{path}.pyi" for path in MODULES])
TEXTS = {file: (PACKAGE / file).read_text(encoding="utf-8") for file in FILES}


def declared(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Name -> what a stub says of it: one statement, or one an overload."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.setdefault(name, []).append(statement)
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                for alias in names:
                    found[alias.asname or alias.name] = [statement]
    return found


PACKAGE_STUB = declared(ast.parse(TEXTS["__init__.pyi"]).body)
(ARRAY,) = PACKAGE_STUB["ndarray"]
assert isinstance(ARRAY, ast.ClassDef)
MEMBERS = declared(ARRAY.body)


def test_the_stubs_are_current() -> None:
    """``python -m bench.stubs`` writes them."""
    if f"with NumPy {numpy.__version__}." in TEXTS["__init__.pyi"]:  # another NumPy has other names and parameters
        assert stubs() == TEXTS


def test_every_name_is_there() -> None:
    assert not set(lazynp.__all__) - PACKAGE_STUB.keys() - {"__version__"}
    assert {name for name in dir(lazynp.ndarray) if name[0] != "_"} <= MEMBERS.keys()
    for path in MODULES:
        assert set(public_names(getattr(numpy, path))) - {"test"} <= declared(ast.parse(TEXTS[f"{path}.pyi"]).body).keys()
    assert (PACKAGE / "py.typed").exists()


def kinds(statements: list[ast.stmt]) -> set[str]:
    return {ast.unparse(s.returns) for s in statements if isinstance(s, ast.FunctionDef) and s.returns is not None}


def fits(value: Any, kind: str) -> bool:
    """Whether a result is what a stub says it is."""
    if kind == "Any":
        return True
    if kind == "None":
        return value is None
    if kind.startswith("tuple["):
        return isinstance(value, tuple) and (not kind.startswith("tuple[ndarray, ...") or all(type(x) is lazynp.ndarray for x in value))
    if kind.startswith("list["):
        return isinstance(value, list) and all(type(x) is lazynp.ndarray for x in value)
    types = {"ndarray": lazynp.ndarray, "_bool": bool, "int": int, "str": str, "bytes": bytes, "numpy.ndarray[Any, Any]": numpy.ndarray}
    return type(value) is types[kind]


def calls() -> list[tuple[str, str, list[ast.stmt]]]:
    table = [(name, CALLS[name], PACKAGE_STUB[name]) for name in CALLS if isinstance(PACKAGE_STUB[name][0], ast.FunctionDef)]
    return table + [(f"ndarray.{name}", method_call(name), MEMBERS[name]) for name in METHODS]


def test_calls_return_what_the_stubs_say(tmp_path: pathlib.Path) -> None:
    file = str(tmp_path / "three.npy")
    wrong = []
    for name, text, statements in calls():
        numpy.save(file, numpy.arange(3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(text, {**arrays(lazynp), "io": io, "FILE": file, "NPY": file})
        if not any(fits(value, kind) for kind in kinds(statements)):
            wrong.append((name, type(value), kinds(statements)))
    assert not wrong


def test_ufuncs_return_arrays() -> None:
    for name, (statement, *_) in PACKAGE_STUB.items():
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) == "ufunc":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert isinstance(getattr(lazynp, name), lazynp.ufunc)
                if name != "isnat":
                    assert not isinstance(eval(ufunc_call(name), arrays(lazynp)), tuple)


PROGRAM = """
import lazynp as np
import lazynp.typing as npt

x: np.ndarray = np.zeros(3)
y: npt.NDArray[np.float64] = x + 1
n: int = x.ndim
total: float = np.sum(x)
root: float = np.sin(0.5)
reveal_type(np.zeros(3).sum(axis=0))
reveal_type(x.T.shape)
reveal_type(np.sin(x))
reveal_type(np.clip([1, 2], 0, 1))
reveal_type(np.linalg.inv(x))
x.realise()
np.zeroes(3)
"""
TOLD = [
    'note: Revealed type is "lazynp.ndarray[Any, Any]"',
    'note: Revealed type is "tuple[int, ...]"',
    'note: Revealed type is "lazynp.ndarray[Any, Any]"',
    'note: Revealed type is "lazynp.ndarray[Any, Any]"',
    'note: Revealed type is "lazynp.ndarray[Any, Any]"',
    'error: "ndarray[Any, Any]" has no attribute "realise"; maybe "realize"?',
    'error: Module has no attribute "zeroes"; maybe "zeros"?',
]


@pytest.mark.slow
def test_a_checker_knows_the_members(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--hide-error-codes", "--no-error-summary", str(program)]
    told = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True).stdout.splitlines()
    assert [line.partition(": ")[2] for line in told] == TOLD
