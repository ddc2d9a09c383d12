"""The core in use: which one it is, and that both are alike."""

import inspect
import os
import subprocess
import sys

import pytest

from lazynp.array import _python, core

PROGRAM = """
import sys
{before}
from lazynp.array import core
import lazynp as np
from lazynp.graph import report
x = np.arange(5.0)
print(core.native, core.broken)
print(core.reason)
print(float((x * 2 + 1).sum()))
print(report.report().splitlines()[0])
"""


def _run(before: str = "", **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_pure_by_switch() -> None:
    assert _run(LAZYNP_PURE="1") == [
        "False False", "turned off by LAZYNP_PURE", "25.0", "core: Python (turned off by LAZYNP_PURE)"
    ]  # fmt: skip


def test_not_built() -> None:
    lines = _run("sys.modules['lazynp.array._core'] = None", LAZYNP_PURE="0")
    assert lines[0] == "False False"
    assert lines[1].startswith("not built when")
    assert lines[2] == "25.0"


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
    lines = _run(before, LAZYNP_PURE="0")
    assert lines[0] == "False True"
    assert lines[1] == "does not load: ValueError: numpy.ufunc size changed, may indicate binary incompatibility"
    assert lines[2:] == ["25.0", f"core: Python ({lines[1]})"]


@pytest.mark.slow
def test_doctor_says_which() -> None:
    done = subprocess.run([sys.executable, "-m", "lazynp", "doctor"], env=os.environ | {"LAZYNP_PURE": "1"}, capture_output=True, text=True)
    line = next(line for line in done.stdout.splitlines() if "native core" in line)
    assert line.startswith("--")
    assert "turned off by LAZYNP_PURE" in line


def test_same_names() -> None:
    names = {name for name in core.__all__ if name not in ("broken", "native", "reason")}
    assert all(hasattr(_python, name) for name in names)
    there = {name for name, value in vars(_python).items() if getattr(value, "__module__", None) == _python.__name__ and name[0] != "_"}
    assert there == names - {"number_classes_of"}


def test_same_signatures() -> None:
    for name in core.__all__:
        if inspect.isfunction(function := getattr(_python, name, None)):
            assert inspect.signature(getattr(core, name)).parameters.keys() == inspect.signature(function).parameters.keys(), name


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_call_ends_the_interpreter(every: bool) -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.array.any_arguments", *(["--all"] if every else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.splitlines()[-1]) > 100_000
