"""That a run of tests on a device fails where NumPy did a kernel's work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import numpy, pytest
import lazynp as np
from gpu_emulator import fakecupy
from lazynp.backends.cuda import compiler

fakecupy.install()

def compute():
    with np.device("cuda"):
        return (np.asarray(numpy.ones(3)) + 1).tolist()

def test_that_launches():
    assert compute() == [2.0] * 3

def refused(monkeypatch):
    def refuse(*_):
        raise compiler.CompileError("NVRTC refused a generated module: no")
    monkeypatch.setattr(compiler, "functions", refuse)
    from lazynp.engine import realize
    from lazynp.backends.cuda import memory
    realize.forget_plans()
    memory.place("cuda:0").backend = None
    with pytest.warns(RuntimeWarning):
        assert compute() == [2.0] * 3

def test_that_is_refused(monkeypatch):
    refused(monkeypatch)

@pytest.mark.refused
def test_that_means_to_be_refused(monkeypatch):
    refused(monkeypatch)

def test_that_does_nothing():
    pass
"""


def run(tmp_path: Path, *options: str, device: str = "cpu") -> tuple[int, str]:
    path = tmp_path / "test_that.py"
    path.write_text(TESTS)
    environment = {**os.environ, "LAZYNP_DEVICE": device, "PYTHONPATH": str(ROOT)}
    plain = ["-p", "tests.cuda.counts", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *plain, *options, str(path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_test_fails_whose_program_went_to_the_host(tmp_path: Path) -> None:
    code, said = run(tmp_path)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 3 passed" in said
    assert "FAILED" in said and "test_that_is_refused" in said
    assert "the device has no code for these programs, and NumPy ran them: " in said
    assert "device (on an imitation): 1 launches of lazynp's; 2 programs had no code" in said


def test_a_run_on_a_device_that_launches_nothing_fails(tmp_path: Path) -> None:
    code, said = run(tmp_path, "-k", "nothing", device="cuda")
    assert code == pytest.ExitCode.TESTS_FAILED and "nothing was launched there" in said
    code, said = run(tmp_path, "-k", "nothing or launches", device="cuda")
    assert code == 0 and "FAILED" not in said
