"""The native core: whether there is one, what its stub says, and what is done where there is none."""

import ast
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lazynp.array import core

PROGRAM = """
import sys
{before}
from lazynp.array import core
import lazynp as np
x = np.arange(5.0)
print(core.native, core.broken)
print(core.reason)
print(float((x * 2 + 1).sum()), type(x).__module__)
print(np.report().splitlines()[0])
"""
WITHOUT = "NumPy computes each operation at its call: lazynp's native core is "


def _python(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=os.environ | environment, input=text, capture_output=True, text=True, check=True)


def _run(before: str = "", **environment: str) -> tuple[list[str], str]:
    done = _python("-W", "always", "-c", PROGRAM.format(before=before), **environment)
    return done.stdout.splitlines(), done.stderr


def test_without_the_core_by_switch() -> None:
    why = "turned off by LAZYNP_PURE"
    assert _run(LAZYNP_PURE="1") == (["False False", why, "25.0 numpy", WITHOUT + why], ""), "who asked for it need not be told"


@pytest.mark.parametrize("module", core.MODULES)
def test_not_built(module: str) -> None:
    lines, told = _run(f"sys.modules[{module!r}] = None", LAZYNP_PURE="0")
    assert lines[0] == "False False"
    assert lines[1].startswith("not built when") and module in lines[1]
    assert lines[2] == "25.0 numpy" and lines[3] == WITHOUT + lines[1]
    assert told.count("RuntimeWarning: " + lines[3]) == 1 and told.startswith("<string>:4:"), "the line that imports the package"


def test_built_for_another_numpy() -> None:
    # what Cython raises where a structure of NumPy's has another size
    before = """
import importlib.abc, importlib.machinery
class Refusing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "lazynp.array._core" else None
    def exec_module(self, module):
        raise ValueError("numpy.ufunc size changed, may indicate binary incompatibility")
sys.meta_path.insert(0, Refusing())
"""
    lines, told = _run(before, LAZYNP_PURE="0")
    assert lines[0] == "False True"
    assert lines[1] == "does not load: ValueError: numpy.ufunc size changed, may indicate binary incompatibility"
    assert lines[2:] == ["25.0 numpy", WITHOUT + lines[1]] and lines[1] in told


def test_without_the_core_every_name_is_numpys() -> None:
    program = """
import numpy, lazynp
import lazynp.linalg, lazynp.random as r, lazynp.lib.stride_tricks
from lazynp import *
from lazynp.fft import fft
assert array is numpy.array and r is numpy.random and fft is numpy.fft.fft
assert all(getattr(lazynp, name) is getattr(numpy, name) for name in numpy.__all__)
assert set(dir(numpy)) <= set(dir(lazynp))
x = lazynp.ones((2, 3))
assert lazynp.realize(x) is x and lazynp.kernelize(x, [x])[1][0] is x
assert list(lazynp.schedule(x).items) == [] and lazynp.schedule(x).peak_bytes == 0
assert "native core" in lazynp.explain(x) and lazynp.memory()["peak"] == 0
assert lazynp.__version__ == numpy.__version__ and lazynp.lazynp_version
with lazynp.progress(), lazynp.device("cpu"):
    assert lazynp.__array_namespace_info__().devices() == ["cpu"]
for call in ("lazynp.realize(1)", "lazynp.device('cuda')", "lazynp.set_fallback('x')", "lazynp.set_fallback('error')", "lazynp.nonsense"):
    try:
        eval(call)
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        print(type(error).__name__, error)
"""
    lines = _python("-c", program, LAZYNP_PURE="1").stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["TypeError", "ValueError", "ValueError", "RuntimeError", "AttributeError"]


def test_without_the_core_python_runs_programs(tmp_path: Path) -> None:
    path = str(tmp_path / "program.py")
    Path(path).write_text("import sys, numpy\nprint(sys.argv, numpy.arange(3).sum(), numpy.__name__, __name__, sys.flags.dev_mode)")
    environment = {"LAZYNP_PURE": "1", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    expected = "3 numpy __main__"
    assert _python("-m", "lazynp", path, "-a", "b", **environment).stdout == f"[{path!r}, '-a', 'b'] {expected} False\n"
    assert _python("-X", "dev", "-m", "lazynp", path, **environment).stdout == f"[{path!r}] {expected} True\n"
    assert _python("-m", "lazynp", "-m", "program", "-a", **environment).stdout.endswith(f"'-a'] {expected} False\n")
    assert _python("-m", "lazynp", "-c", "import numpy; print(numpy.__name__)", **environment).stdout == "numpy\n"
    assert _python("-m", "lazynp", text="print(1)", **environment).stdout == "1\n"
    told = _python("-m", "lazynp", "--report", "--report-json", str(tmp_path / "counts"), path, **environment).stderr
    assert told == f"{WITHOUT}turned off by LAZYNP_PURE\n"
    assert json.loads((tmp_path / "counts").read_text()) == {"core": "turned off by LAZYNP_PURE"}


@pytest.mark.parametrize("pure", ["0", "1"])
def test_doctor_says_which(pure: str) -> None:
    lines = _python("-m", "lazynp", "doctor", LAZYNP_PURE=pure).stdout.splitlines()
    (line,) = [line for line in lines if "native core" in line]
    assert line.startswith("--" if pure == "1" else "ok") and ("turned off by LAZYNP_PURE" in line) is (pure == "1")
    assert any("kernel on the processor" in line for line in lines) is (pure == "0")


def test_the_stub_has_what_the_core_has() -> None:
    stub = ast.parse((Path(core.__file__).parent / "_core.pyi").read_text())
    there = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert there.keys() | {"number_classes_of"} == set(core.__all__)
    for name, node in there.items():
        if isinstance(node, ast.FunctionDef):
            with warnings.catch_warnings(action="ignore"):
                code = getattr(core, name).__code__
            assert code.co_varnames[: code.co_argcount] == tuple(each.arg for each in node.args.args), name
    assert all(isinstance(there[kind.__name__], ast.ClassDef) for kind in (core.Cell, core.Elements, core.Ufunc))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_call_ends_the_interpreter(every: bool) -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.array.any_arguments", *(["--all"] if every else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.splitlines()[-1]) > 100_000
