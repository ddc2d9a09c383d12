"""Functions that Cython compiles, given our arrays: memoryviews are the arrays' memory, and what asks for NumPy's type refuses."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

pytestmark = pytest.mark.slow

SOURCE = """
# cython: language_level=3
cimport numpy as cnp

def total(double[:] x):
    cdef double found = 0
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        found += x[i]
    return found

def fill(double[::1] x, double value):
    x[:] = value

def corner(const double[:, :] m):
    return m[m.shape[0] - 1, 0], m.strides[0], m.strides[1]

def columns(float[::1, :] m):
    return m.shape[1]

def flags(unsigned char[:] x):
    return x[0]

def typed(cnp.ndarray x):
    return x.size
"""
SETUP = """
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
setup(ext_modules=cythonize([Extension("compiled", ["compiled.pyx"], include_dirs=[numpy.get_include()])]))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("cython")
    (folder / "compiled.pyx").write_text(SOURCE)
    (folder / "setup.py").write_text(SETUP)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, env=os.environ | {"CFLAGS": "-O0 -w"}, check=True, capture_output=True)
    (path,) = [path for path in Path(folder).iterdir() if path.name.startswith("compiled.") and path.suffix in (".so", ".pyd")]
    spec = importlib.util.spec_from_file_location("compiled", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def filled(c: Any, x: Any) -> Any:
    y = x * 2
    z = y + 1  # of before
    c.fill(y, 7.0)
    c.fill(y[:3], 8.0)
    return [*map(float, y[:5])], float(z.max()), float((y + 1).sum())


def readonly(c: Any, x: Any) -> Any:
    y = x * 2
    y.flags.writeable = False
    return c.fill(y, 1.0)


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a whole array": lambda c, x, m: c.total(x),
    "a result": lambda c, x, m: c.total(x * 2 + 1),
    "parts": lambda c, x, m: (c.total(x[::2]), c.total(x[::-1]), c.total(m[:, 1]), c.total(x[3:4])),
    "writes": lambda c, x, m: filled(c, x),
    "matrices": lambda c, x, m: (c.corner(m), c.corner(m.T), c.corner(m[::2, 1:])),
    "Fortran order": lambda c, x, m: c.columns(m.astype("f4").T),
    "truth values as bytes": lambda c, x, m: c.flags((x > -9).view("u1")),
    "wrong order": lambda c, x, m: c.columns(m.astype("f4")),
    "wrong dtype": lambda c, x, m: c.total(x.astype(int)),
    "wrong dimensions": lambda c, x, m: c.total(m),
    "gaps": lambda c, x, m: c.fill(x[::2], 1.0),
    "read-only": lambda c, x, m: readonly(c, x),
}


def outcome(call: Callable[[Any, Any, Any], Any], compiled: ModuleType, np: Any, n: int) -> Any:
    x = np.arange(n) * 0.5
    try:
        return call(compiled, x, (np.arange(n) * 1.0).reshape(-1, 4))
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("below", [0, 65536])
@pytest.mark.parametrize("n", [40, 80_000])
@pytest.mark.parametrize("name", CALLS)
def test_memoryviews(name: str, n: int, below: int, compiled: ModuleType) -> None:
    want = outcome(CALLS[name], compiled, numpy, n)
    with config.override(tape_limit=below):
        assert outcome(CALLS[name], compiled, lazynp, n) == want


def test_what_asks_for_numpys_type_refuses(compiled: ModuleType) -> None:
    x = lazynp.arange(3.0)
    with pytest.raises(TypeError, match=r"ndarray"):
        compiled.typed(x)
    assert compiled.typed(x.to_numpy()) == 3
