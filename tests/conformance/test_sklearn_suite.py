"""scikit-learn with lazynp's arrays: a slice of its own tests, the runner of all of them, and what its calls cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import __main__ as command
from conformance import sklearn_suite
from conformance.numpy_suite import MissingTests, Outcomes
from conformance.sklearn_suite import compared, found, record, regressions, run_file

ROOT = Path(__file__).parents[2]

# Values that a warm call may force; counted at 2000 rows, which change nothing but the time.
FORCED = {
    "StandardScaler": 4, "MinMaxScaler": 1, "Normalizer": 1, "PCA, full": 3, "Ridge, svd": 5, "LinearDiscriminantAnalysis": 13,
    "StandardScaler, PCA, Ridge": 13, "GridSearchCV(Ridge, svd)": 214, "pairwise_distances": 2, "rbf_kernel": 1, "cosine_similarity": 1,
    "r2_score": 4, "mean_squared_error": 1,
}  # fmt: skip


def launch(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    variables = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env={**variables, "PYTHONPATH": paths, **environment}, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("below", [None, "0"], ids=["by default", "recorded"])
@pytest.mark.parametrize("path", ["tests/test_naive_bayes.py", "preprocessing/tests/test_label.py"])
def test_scikit_learns_own_tests(path: str, below: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if below is not None:
        monkeypatch.setenv("LAZYNP_TAPE_LIMIT", below)
    ours = run_file(path, "lazynp", 300)
    assert not ours.crash
    assert sum("lazynp-cpu-float32" in test for test in ours.collected) == sum("lazynp-cpu-float64" in test for test in ours.collected) > 0
    assert {test: reason for test in ours.collected if (reason := ours.failed(test))} == {}
    assert ours.work["forced"] > 0 or below is None
    assert ours.work["fallbacks"] == 0


@pytest.mark.slow
def test_the_plugin_says_when_it_comes_too_late() -> None:
    done = launch("-c", "import scipy, lazynp.testing.sklearn")
    assert done.returncode
    assert "before SCIPY_ARRAY_API was set" in done.stderr
    assert launch("-c", "import lazynp.testing.sklearn, scipy").returncode == 0


@pytest.mark.slow
def test_calls_give_what_they_give_with_numpy_and_force_little(tmp_path: Path) -> None:
    target = tmp_path / "calls.json"
    done = launch("-m", "bench.sklearn_calls", "--rows", "2000", "--seconds", "0", "--json", str(target), LAZYNP_FALLBACK="error")
    assert done.returncode == 0, done.stderr
    rows = {row["call"]: row for row in json.loads(target.read_text(encoding="utf-8"))["rows"]}
    assert {name: row["difference"] for name, row in rows.items() if not row["equal"]} == {}
    assert {name: row["forced"] for name, row in rows.items() if row["forced"] > FORCED.get(name, row["forced"])} == {}
    assert rows.keys() >= FORCED.keys()


# The runner ---------------------------------------------------------------------------------------------------------------------


def outcomes(**tests: str) -> Outcomes:
    return Outcomes(list(tests), dict(tests), {name: f"why {name}" for name in tests})


def test_rows_compare_with_array_api_strict() -> None:
    ours = Outcomes(
        ["f[lazynp-cpu-float64]", "f[lazynp-cpu-float32]", "g[lazynp]", "h", "i", "j"],
        {"f[lazynp-cpu-float64]": "passed", "f[lazynp-cpu-float32]": "failed", "g[lazynp]": "skipped", "h": "skipped", "i": "xfailed"},
        {"f[lazynp-cpu-float32]": "wrong", "g[lazynp]": "no such thing", "h": "no GPU"},
        "the process died",
    )
    names = ["f[array_api_strict-CPU_DEVICE-float64]", "f[array_api_strict-device1-float32]", "g[array_api_strict]", "h", "i", "j"]
    theirs = Outcomes(names, dict(zip(names, ["passed", "passed", "passed", "skipped", "xfailed", "passed"], strict=True)))
    row = compared("file", theirs, ours)
    assert [row[name] for name in sklearn_suite.COUNTS] == [1, 2, 2, 1]
    assert row["failures"]["f[lazynp-cpu-float32]"] == {"reason": "wrong", "array_api_strict": "passed"}
    assert row["failures"]["j"]["reason"] == "the process died"
    assert row["new_skips"] == {"g[lazynp]": "no such thing"}
    assert row["array_api_strict"]["passed"] == 4


def test_what_is_worse_than_recorded_is_said(tmp_path: Path) -> None:
    target = tmp_path / "sklearn.json"
    record([compared("file", Outcomes(), outcomes(a="passed", b="failed", c="skipped"))], target)
    assert json.loads(target.read_text(encoding="utf-8"))["total"]["failed"] == 1
    assert regressions([compared("file", Outcomes(), outcomes(a="passed", b="failed", c="skipped"))], target) == []
    worse = regressions([compared("file", Outcomes(), outcomes(a="failed", b="passed", c="skipped", d="skipped"))], target)
    assert worse == ["file::a: why a", "file: 1 skipped: why d"]


def test_files_are_found_by_name_and_by_path() -> None:
    assert found(["test_pca"]) == found(["decomposition/tests/test_pca.py"]) == ["decomposition/tests/test_pca.py"]
    assert len(found(["test_common"])) > 1
    with pytest.raises(MissingTests, match="no array-API tests in a file 'test_nothing'"):
        found(["test_nothing"])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(path: str, library: str, seconds: float = 0) -> Any:
        return outcomes(**{"a": "passed", "b": "failed"} if library == "lazynp" else {"a": "passed", "b": "passed"})

    monkeypatch.setattr(sklearn_suite, "run_file", run)
    target = str(tmp_path / "sklearn.json")
    assert command.main(["sklearn", "test_pca", "--json", target]) == 1
    assert "decomposition/tests/test_pca.py::b: why b" in capsys.readouterr().out
    assert command.main(["sklearn", "test_pca", "--check", "--json", target]) == 0
    assert "worse than recorded: 0" in capsys.readouterr().out
    assert command.main(["sklearn", "test_nothing"]) == 2
