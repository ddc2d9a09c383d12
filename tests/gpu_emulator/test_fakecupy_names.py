"""Every name that the fake offers, and every one that the CUDA backend uses, exists in the real CuPy.

In: the fake's modules, the backend's source.  Out: failures with the names.  Promise: the real package is asked in a process of its own; it
imports where there is no driver.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_emulator import fakecupy
from gpu_emulator.fakecupy import importing, namespace
from gpu_emulator.fakecupy.library import ufunc

BACKEND = Path(__file__).parents[2] / "lazynp" / "backends" / "cuda"

# Reads a list of dotted names with parameters; prints those that the real package does not have.
ASK = r"""
import inspect, json, pathlib, re, sys
import cupy_backends, cupy, cupyx, cupyx.scipy, cupy.linalg, cupy.fft
from cupy.cuda import nvrtc, driver, runtime, memory, pinned_memory, stream, graph, device, function, compiler

def signature(found):
    for target in (found, getattr(found, "__init__", None)):
        try:
            known = inspect.signature(target).parameters.values()
        except (TypeError, ValueError):
            line = (getattr(target, "__doc__", None) or "").strip().partition("\n")[0]
            if re.match(r"\w+(\.\w+)*\(.*\)", line): # as Cython writes them: types before names
                inner = re.sub(r"\([^()]*\)|'[^']*'", "", line[line.index("(") + 1:line.rindex(")")])
                return {part.split("=")[0].split()[-1].lstrip("*") for part in inner.split(",") if part.strip() and part.strip() != "*"}
        else:
            return None if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in known) else {p.name for p in known}
    return None

def find(name):
    found = None
    parts = name.split(".")
    for k, part in enumerate(parts):
        if part == "cupy" and k == 0:
            found = cupy
        elif part == "cupyx" and k == 0:
            found = cupyx
        else:
            found = getattr(found, part)
    return found

missing = []
for name, parameters in json.load(sys.stdin):
    try:
        found = find(name)
    except AttributeError:
        missing.append(name)
        continue
    except ImportError: # cuBLAS is not installed: its module holds the name
        _, _, module, *members = name.split(".")
        binary = next(pathlib.Path(cupy_backends.__path__[0], "cuda", "libs").glob(module + ".*.so")).read_bytes()
        if not all(member.encode() in binary for member in members):
            missing.append(name)
        continue
    known = signature(found) if parameters else None
    if known is not None:
        missing.extend(f"{name}({each})" for each in parameters if each not in known)
print(json.dumps(missing))
"""


def ask(names: list[tuple[str, list[str]]]) -> list[str]:
    pytest.importorskip("cupy_backends", reason="the real CuPy is not installed", exc_type=ImportError)
    done = subprocess.run([sys.executable, "-c", ASK], input=json.dumps(names), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def parameters(found: Any) -> list[str]:
    try:
        known = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return []
    return [name for name, parameter in known.items() if name != "self" and parameter.kind not in (2, 4)] # named ones only


PYTHONS = {*dir(object), "__annotations__", "__del__", "__dict__", "__module__", "__slots__", "__weakref__"} # of every class


def extensions() -> dict[str, dict[str, Any]]:
    """The public names of the modules in files."""
    found = {}
    with fakecupy.installed():
        for path in sorted(Path(importing.EXTENSIONS).rglob("*.py")):
            name = ".".join(["cupyx", *path.relative_to(importing.EXTENSIONS).with_suffix("").parts]).removesuffix(".__init__")
            if name != "cupyx":
                members = vars(importlib.import_module(name)).items()
                found[name] = {key: value for key, value in members if key[0] != "_" and getattr(value, "__module__", "") == name}
    return found


def offered() -> Iterator[tuple[str, list[str]]]:
    tables = {**namespace._table(), **namespace.UNIMPORTABLE, **extensions()}
    for module, contents in tables.items():
        for name, value in contents.items():
            yield f"{module}.{name}", parameters(value) if callable(value) and not isinstance(value, ufunc) else []
            if isinstance(value, type) and value.__module__.startswith(("gpu_emulator.", "cupyx.")):
                for member, function in vars(value).items():
                    if member[0] != "_" or (member.endswith("__") and member not in PYTHONS):
                        plain = isinstance(function, types.FunctionType) and member[0] != "_"
                        yield f"{module}.{name}.{member}", parameters(function) if plain else []


def test_what_the_fake_offers_is_real() -> None:
    names = list(offered())
    assert len(names) > 500
    missing = ask(names)
    assert not missing, missing


# What the backend uses: chains of attributes that begin at the package or at something it gave.

ROOTS = {"cupy": "cupy", "cupyx": "cupyx", "nvrtc": "cupy.cuda.nvrtc", "runtime": "cupy.cuda.runtime", "pool": "cupy.cuda.MemoryPool",
         "stream": "cupy.cuda.Stream", "event": "cupy.cuda.Event", "graph": "cupy.cuda.Graph"}


def chain(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else parts if isinstance(node, ast.Call) else []


def used(source: str) -> set[str]:
    """Dotted names of the real package in a source, aliases of its modules resolved."""
    tree = ast.parse(source)
    found: set[str] = set()
    certain = {"cupy", "cupyx", "nvrtc"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.partition(".")[0] in ("cupy", "cupyx"))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("cupy", "cupyx"):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Attribute):
            parts = chain(node)
            for k, part in enumerate(parts[:-1]):
                if part in certain or (part == "runtime" and "lazynp" not in parts and k == len(parts) - 2):
                    found.add(".".join([ROOTS[part], *parts[k + 1:]]))
                    break
    return found


def table_names() -> Iterator[str]:
    """CuPy's functions that the backend's tables of library calls name: text that their functions hold."""
    from lazynp.backends.cuda import library

    for table in vars(library).values():
        if isinstance(table, dict):
            for row in table.values():
                yield from names_within(getattr(row, "call", None))


def names_within(function: Any) -> Iterator[str]:
    """Text that a function holds, or one that it holds."""
    for cell in getattr(function, "__closure__", None) or ():
        if isinstance(cell.cell_contents, str):
            yield f"cupy.{cell.cell_contents}"
        yield from names_within(cell.cell_contents)


def test_what_the_backend_uses_is_real() -> None:
    names = {name for path in BACKEND.glob("*.py") for name in used(path.read_text())}
    if (BACKEND / "library.py").exists():
        names.update(table_names())
    assert ask([(name, []) for name in sorted(names)]) == []


def test_the_check_sees_what_is_wrong() -> None:
    source = "import cupy\nclass A:\n    def f(self):\n        self.cupy.cuda.no_such_thing(1)\n        self.runtime.memcpyAsink(2)\n"
    assert used(source) == {"cupy", "cupy.cuda", "cupy.cuda.no_such_thing", "cupy.cuda.runtime.memcpyAsink"}
    names: list[tuple[str, list[str]]] = [(name, []) for name in sorted(used(source))]
    names += [("cupy.sort", ["a", "kynd"]), ("cupy.cuda.cublas.setMathMode", []), ("cupy.cuda.cublas.setMoodMode", [])]
    wrong = ["cupy.cuda.no_such_thing", "cupy.cuda.runtime.memcpyAsink", "cupy.sort(kynd)", "cupy.cuda.cublas.setMoodMode"]
    assert ask(names) == wrong
