"""The runner of NumPy's own tests: what it maps, what it counts, what it says where something is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import __main__ as command
from conformance import numpy_suite
from conformance.numpy_suite import MissingTests, Outcomes, compared, counterparts, found, is_excluded, outcomes

# A test file as NumPy's are: it stands in a directory `tests` below NumPy's for the finder, so the root is moved for it.
SUITE = """
import os
import numpy as np
from numpy.testing import assert_array_equal, assert_raises
from numpy.linalg import norm
import numpy._core.umath as ncu

def test_np_is_lazynp():
    assert hasattr(np, "realize") == (LIBRARY == "lazynp") and type(np.zeros(3)) is np.ndarray
    assert ncu.sin is np.sin

def test_assertions_take_arrays():
    assert_array_equal(np.arange(3) + 1, [1, 2, 3])
    assert_raises(ValueError, np.zeros(3).reshape, 2)
    assert norm(np.array([3.0, 4.0])) == 5

def test_fails_with_lazynp():
    assert LIBRARY == "numpy", "only NumPy"

def test_fails_with_both():
    assert False
"""


def suite(root: Path, text: str, library: str) -> Outcomes:
    """One file, as if it were one of NumPy's."""
    place = root / "tests"
    place.mkdir(exist_ok=True)
    (place / "test_sample.py").write_text(text.replace("LIBRARY", repr(library)), encoding="utf-8")
    return numpy_suite.run_file(str(place / "test_sample.py"), library, 60)


@pytest.fixture(autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_ROOT", str(tmp_path))


@pytest.mark.slow
def test_both_libraries_run_the_same_file(tmp_path: Path) -> None:
    theirs, ours = suite(tmp_path, SUITE, "numpy"), suite(tmp_path, SUITE, "lazynp")
    assert not theirs.crash
    row = compared("sample", theirs, ours)
    assert (row["numpy_passes"], row["counted"], row["passed"]) == (3, 3, 2), row["failures"]
    assert list(row["failures"]) == ["test_fails_with_lazynp"]
    assert "only NumPy" in row["failures"]["test_fails_with_lazynp"]


@pytest.mark.slow
def test_a_crash_fails_what_was_left(tmp_path: Path) -> None:
    text = SUITE.replace('assert LIBRARY == "numpy", "only NumPy"', 'LIBRARY == "numpy" or os._exit(139)')
    row = compared("sample", suite(tmp_path, text, "numpy"), suite(tmp_path, text, "lazynp"))
    assert row["passed"] == 2
    assert "interpreter died" in row["failures"]["test_fails_with_lazynp"]
    assert "test_fails_with_lazynp" in row["crash"]


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_fails_as_a_whole(tmp_path: Path) -> None:
    ours = suite(tmp_path, "import no_such_module\n" + SUITE, "lazynp")
    row = compared("sample", suite(tmp_path, SUITE, "numpy"), ours)
    assert row["passed"] == 0
    assert "could not be collected" in row["crash"]


def test_results_stay_where_numpys_tests_do_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_made.py").write_text("import what_is_not_installed\n")
    monkeypatch.setattr(numpy_suite, "NUMPY", tmp_path)
    monkeypatch.setattr(numpy_suite, "found", lambda files: ["tests/test_made.py"])
    monkeypatch.setattr(sys, "argv", ["conformance", "numpy", "--json", str(tmp_path / "results.json")])
    assert command.main() == 2
    assert "tests/test_made.py with NumPy: " in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()


def test_events_may_be_cut_off() -> None:
    lines = ['{"collected": ["a.py::t1", "a.py::t2"]}', '{"test": "a.py::t1", "outcome": "passed", "reason": ""}', '{"test": "a.p']
    result = outcomes(lines, "timeout")
    assert result.collected == ["t1", "t2"]
    assert not result.failed("t1")
    assert result.failed("t2") == "timeout"


def test_tests_are_matched_by_id_and_else_by_place() -> None:
    theirs = ["f[numpy.random]", "f[1]", "g[a]", "g[b]", "h"]
    ours = ["f[lazynp.random]", "f[1]", "g[a]", "g[c]", "g[d]"]
    assert counterparts(theirs, ours) == {"f[numpy.random]": "f[lazynp.random]", "f[1]": "f[1]", "g[a]": "g[a]"}


def test_exclusions_name_a_test_a_function_or_a_class() -> None:
    excluded = {"TestC::test_refs": "why", "test_f[a]": "why", "TestAll": "why"}
    assert is_excluded("TestC::test_refs[3]", excluded)
    assert is_excluded("test_f[a]", excluded)
    assert is_excluded("TestAll::test_x", excluded)
    assert not is_excluded("TestC::test_refs_too", excluded)
    assert not is_excluded("test_f[b]", excluded)


def test_every_exclusion_has_a_reason_and_a_known_file() -> None:
    import tomllib

    for path, tests in tomllib.loads(numpy_suite.EXCLUSIONS.read_text(encoding="utf-8")).items():
        assert path in numpy_suite.FILES
        assert all(isinstance(why, str) and len(why) > 10 for why in tests.values())


def test_recorded_results_exclude_little() -> None:
    for row in json.loads(numpy_suite.RESULTS.read_text(encoding="utf-8"))["files"]:
        assert row["excluded"] <= 0.05 * row["numpy_passes"], row["file"]
        assert row["passed"] + len(row["failures"]) == row["counted"]


def test_missing_files_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(numpy_suite, "NUMPY", tmp_path)
    assert command.main(["numpy"]) == 2
    assert "without its tests" in capsys.readouterr().err
    (tmp_path / "lib" / "tests").mkdir(parents=True)
    (tmp_path / "lib" / "tests" / "test_io.py").touch()
    with pytest.raises(MissingTests, match="no test file 'test_no_such'"):
        found(["test_io", "test_no_such"])


def test_names_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numpy_suite, "NUMPY", tmp_path)
    for path in numpy_suite.FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert found(["lib/test_shape_base"]) == ["lib/tests/test_shape_base.py"]
    assert found(["test_shape_base"]) == ["_core/tests/test_shape_base.py", "lib/tests/test_shape_base.py"]
    assert found(["_core/tests/test_ufunc.py"]) == ["_core/tests/test_ufunc.py"]
    assert found([]) == list(numpy_suite.FILES)


def test_results_of_other_files_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def row(path: str) -> dict[str, Any]:
        return {"file": path, "numpy_passes": 2, "excluded": 0, "counted": 2, "passed": 1, "goal": 0.9, "crash": "", "failures": {"t": "x"}}

    target = tmp_path / "results.json"
    numpy_suite.record([row("b.py"), row("_core/tests/test_umath.py")], target)
    numpy_suite.record([row("_core/tests/test_numeric.py")], target)
    document = json.loads(target.read_text(encoding="utf-8"))
    assert [entry["file"] for entry in document["files"]] == ["_core/tests/test_numeric.py", "_core/tests/test_umath.py", "b.py"]
    assert {"numpy", "python"} <= set(document["versions"])
    monkeypatch.setitem(sys.modules, "rich.console", None)
    command.show(document["files"])
    assert "MISS (>= 90%)" in capsys.readouterr().out
