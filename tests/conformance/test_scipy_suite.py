"""SciPy with lazynp's arrays: a slice of its own array-API tests, and the runner of all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import __main__ as command
from conformance import scipy_suite
from conformance.numpy_suite import MissingTests, Outcomes
from conformance.scipy_suite import PARTS, SLICES, cause_of, causes, found, record, regressions, run_file, summary

ROOT = Path(__file__).parents[2]

# A test file as SciPy's are.
SUITE = """
import numpy as np
import pytest
from scipy._lib._array_api import array_namespace, make_xp_test_case, xp_assert_close
from scipy.special import expit
from scipy.signal import czt

skip = pytest.mark.skip_xp_backends

def test_namespace(xp):
    assert xp.__name__ == "lazynp" and array_namespace(xp.ones(3)) is xp
    xp_assert_close(xp.sum(xp.ones(3)), xp.asarray(3.0))

@make_xp_test_case(expit)
def test_function(xp):
    assert xp.__name__ == "lazynp"

@skip("array_api_strict")
@skip("jax.numpy", reason="lazy")
@skip(cpu_only=True)
@skip(eager_only=True)
def test_skipped_for_others(xp):
    assert xp.__name__ == "lazynp"

@skip(np_only=True, reason="only NumPy")
def test_numpy_only(xp):
    assert False

@make_xp_test_case(czt)
def test_no_support(xp):
    assert False

def test_devices(xp, devices):
    assert [xp.ones(1, device=d).device for d in devices] == ["cpu", "cpu"]

def test_of_something_else():
    assert False

@pytest.mark.array_api_backends
def test_of_all_libraries():
    pass

@pytest.mark.parametrize("n", [0, 1])
def test_parameters(n, xp):
    assert n == 0, "one is too much"
"""


def launch(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    variables = {name: value for name, value in os.environ.items() if name not in ("SCIPY_ARRAY_API", "PYTEST_ADDOPTS")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env={**variables, "PYTHONPATH": paths}, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_the_plugin_runs_what_is_for_arrays_of_any_library(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SUITE, encoding="utf-8")
    arguments = ["-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "lazynp.testing.scipy", "-p", "scipy.conftest"]
    done = launch(*arguments, "-p", "no:cacheprovider", "-p", "no:xdist", "-rA", "-W", "error", "test_sample.py", cwd=tmp_path)
    said = {line.split("::")[-1].split(" ")[0]: line.split(" ")[0] for line in done.stdout.splitlines() if "test_sample.py::test" in line}
    assert said == {
        **dict.fromkeys(
            ["test_namespace[lazynp]", "test_function[lazynp]", "test_skipped_for_others[lazynp]", "test_devices[lazynp]"], "PASSED"
        ),
        "test_of_all_libraries": "PASSED",
        "test_parameters[0-lazynp]": "PASSED",
        "test_parameters[1-lazynp]": "FAILED",
    }, done.stdout
    assert "1 failed, 6 passed, 2 skipped, 1 deselected" in done.stdout


@pytest.mark.slow
def test_the_plugin_says_when_it_comes_too_late() -> None:
    done = launch("-c", "import scipy, lazynp.testing.scipy")
    assert done.returncode
    assert "before SCIPY_ARRAY_API was set" in done.stderr
    assert launch("-c", "import lazynp.testing.scipy, scipy").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", ["stats/tests/test_rank.py", "ndimage/tests/test_splines.py"])
def test_scipys_own_tests(path: str) -> None:
    result = run_file(path, 300)
    assert not result.crash
    assert len(result.collected) > 15
    assert {test: reason for test in result.collected if (reason := result.failed(test))} == {}


# The runner ---------------------------------------------------------------------------------------------------------------------


def outcomes(**tests: str) -> Outcomes:
    return Outcomes(list(tests), dict(tests), {name: f"why {name}" for name in tests})


def test_counts_and_causes() -> None:
    result = outcomes(a="passed", b="failed", c="skipped", d="xfailed", e="passed")
    result.collected.append("f")
    result.crash = "the interpreter died"
    row = summary("stats", {"stats/x.py": result, "stats/y.py": outcomes(g="passed")})
    assert [row[name] for name in scipy_suite.COUNTS] == [7, 5, 3, 2, 1, 1]
    assert row["skips"] == {"why c": 1}
    assert row["crashes"] == {"stats/x.py": "the interpreter died"}
    assert [failure["test"] for failure in row["failures"]] == ["stats/x.py::b", "stats/x.py::f"]
    assert row["causes"] == {scipy_suite.UNKNOWN: 2}


def test_known_causes() -> None:
    known = causes()
    for row in known:
        assert row.keys() <= {"test", "message", "cause"}
        assert len(row["cause"]) > 20
    assert "truth value" in cause_of("any", "TypeError: Multiple namespaces for array inputs: ...", known)
    assert cause_of("any", "Segmentation fault", known) == scipy_suite.UNKNOWN


def test_what_is_worse_than_recorded_is_said(tmp_path: Path) -> None:
    target = tmp_path / "scipy.json"
    record([summary("stats", {"stats/x.py": outcomes(a="passed", b="failed")})], target)
    record([summary("fft", {"fft/x.py": outcomes(a="passed")})], target)
    document = json.loads(target.read_text(encoding="utf-8"))
    assert [row["part"] for row in document["parts"]] == ["stats", "fft"]
    assert (document["total"]["passed"], document["total"]["failed"]) == (2, 1)
    assert regressions([summary("stats", {"stats/x.py": outcomes(a="passed", b="failed")})], target) == []
    assert regressions([summary("fft", {"fft/x.py": outcomes(a="failed")})], target) == ["fft/x.py::a: why a"]


def test_files_are_found() -> None:
    paths = found([])
    assert list(paths) == list(PARTS)
    assert sum(map(len, paths.values())) > 50
    everything = {path for files in paths.values() for path in files}
    for name, files in SLICES.items():
        assert set(files) <= everything
        assert found([], name).keys() == paths.keys()
    with pytest.raises(MissingTests, match="has no part 'nothing'"):
        found(["nothing"])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(path: str, seconds: float = 0) -> Any:
        return outcomes(a="passed", b="failed")

    monkeypatch.setattr(scipy_suite, "run_file", run)
    target = str(tmp_path / "scipy.json")
    assert command.main(["scipy", "constants", "--json", target]) == 1
    assert "1 failed: not looked into" in capsys.readouterr().out
    assert command.main(["scipy", "constants", "--check", "--json", target]) == 0
    assert "worse than recorded: 0" in capsys.readouterr().out
    assert command.main(["scipy", "fft", "--slice", "ci", "--json", target]) == 1
    assert "fft/tests/test_helper.py::b: why b" in capsys.readouterr().out
    assert command.main(["scipy", "nothing"]) == 2


def test_recorded_results() -> None:
    document = json.loads(scipy_suite.RESULTS.read_text(encoding="utf-8"))
    assert [row["part"] for row in document["parts"]] == list(PARTS)
    assert document["total"]["passed"] >= scipy_suite.GOAL * document["total"]["run"]
    for row in document["parts"]:
        assert row["passed"] + len(row["failures"]) == row["run"]
        assert scipy_suite.UNKNOWN not in row["causes"]
        assert not row["crashes"]
