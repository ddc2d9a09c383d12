"""The runner of the array API suite: where it finds a checkout, what it runs, what it says where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance import __main__ as command
from conformance import array_api, conflicts, page
from conformance.numpy_suite import MissingTests
from lazynp.values import config

CONFTEST = """
def pytest_addoption(parser):
    for name in ("--skips-file", "--xfails-file", "--max-examples", "--hypothesis-seed"):
        try:
            parser.addoption(name)
        except ValueError:
            pass  # Hypothesis is installed
    parser.addoption("--disable-deadline", action="store_true")
"""
TESTS = """
import os
import pytest
import lazynp

def test_runs():
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "lazynp" and os.environ["ARRAY_API_TESTS_VERSION"] == lazynp.__array_api_version__

@pytest.mark.skip(reason="flaky")
@pytest.mark.parametrize("n", [1, 2])
def test_is_marked(n, request):
    assert n == 1
    assert int(request.config.getoption("--max-examples")) == 7

def test_skips():
    pytest.skip("something is missing")

def test_in_conflicts():
    assert False
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What looks like a checkout of the suite."""
    place = tmp_path / "suite"
    (place / "array_api_tests").mkdir(parents=True)
    (place / "array-api" / "src" / "array_api_stubs" / "_2025_12").mkdir(parents=True)
    (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (place / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (place / "array_api_tests" / "test_sample.py").write_text(TESTS, encoding="utf-8")
    monkeypatch.setattr(array_api, "NEEDED", {})
    monkeypatch.setattr(array_api, "PACKAGES", ("numpy", "pytest"))
    return place


@pytest.mark.slow
def test_every_test_runs_and_every_failure_is_explained_or_shown(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "array_api_tests" / "test_broken.py").write_text("import no_such_module\n", encoding="utf-8")
    monkeypatch.setattr(conflicts, "tests", lambda: {"test_sample.py::test_in_conflicts": "Heading"})
    monkeypatch.setenv("ARRAY_API_TESTS_MODULE", "numpy")
    target = tmp_path / "results.json"
    arguments = ["array-api", "--suite", str(checkout), "--max-examples", "7", "--seed", "1", "2", "--json", str(target)]
    assert command.main(arguments) == 1
    document = json.loads(target.read_text(encoding="utf-8"))
    assert document["suite"]["repository"] == array_api.REPOSITORY
    assert [(run["seed"], run["examples"]) for run in document["runs"]] == [(1, 7), (2, 7)]
    for run in document["runs"]:
        assert (run["tests"], run["passed"], run["failed"], run["skipped"]) == (6, 2, 3, 1)
        assert run["unexplained"] == ["test_broken.py", "test_sample.py::test_is_marked[2]"]
    outcomes = document["tests"]["test_sample.py"]
    assert [test for test, outcome in outcomes.items() if outcome == "passed"] == ["test_runs", "test_is_marked[1]"]
    assert [test for test, outcome in outcomes.items() if outcome == "failed"] == ["test_is_marked[2]", "test_in_conflicts"]
    assert outcomes["test_skips"] == "skipped"
    told = capsys.readouterr()
    assert "not in conflicts.md: test_sample.py::test_is_marked[2]: assert 2 == 1" in told.out
    assert "[2/2]" in told.err
    assert "unknown commit" in told.err or "is at" in told.err

    # What was recorded under the same settings is replaced, all else is kept.
    (checkout / "array_api_tests" / "test_broken.py").unlink()
    failing = [f"test_sample.py::{test}" for test in ("test_in_conflicts", "test_is_marked[2]")]
    monkeypatch.setattr(conflicts, "tests", lambda: dict.fromkeys(failing, ""))
    command.main([*arguments[:6], "1", "--json", str(target)])
    document = json.loads(target.read_text(encoding="utf-8"))
    assert [(run["seed"], run["tests"], run["unexplained"] == []) for run in document["runs"]] == [(1, 5, True), (2, 6, False)]


def test_a_checkout_is_given_or_cached_or_cloned(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert array_api.suite(checkout) == checkout.resolve()
    monkeypatch.setattr(config, "cache_dir", str(tmp_path / "cache"))
    asked = []
    place = array_api.suite(None, asked.append)
    assert asked == [place]
    place.parent.mkdir(parents=True)
    checkout.rename(place)
    assert array_api.suite(None, asked.append) == place
    assert len(asked) == 1


@pytest.mark.usefixtures("checkout")
def test_without_a_suite_nothing_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(array_api, "REPOSITORY", str(tmp_path / "nowhere"))
    monkeypatch.setattr(config, "cache_dir", str(tmp_path / "cache"))
    assert command.main(["array-api"]) == array_api.MISSING == 3
    told = capsys.readouterr().err
    assert "did not run" in told and "could not be cloned" in told and "--suite PATH" in told
    assert not list((tmp_path / "cache").iterdir())
    assert command.main(["array-api", "--suite", str(tmp_path)]) == array_api.MISSING
    assert "no checkout" in capsys.readouterr().err
    monkeypatch.setattr(array_api, "NEEDED", {"no_such_module": "some-package"})
    with pytest.raises(MissingTests, match="pip install some-package"):
        array_api.suite(tmp_path)


def test_recorded_failures_are_explained() -> None:
    document = json.loads(array_api.RESULTS.read_text(encoding="utf-8"))
    assert document["suite"]["commit"] == array_api.COMMIT
    for run in document["runs"]:
        assert run["unexplained"] == [] and run["skipped"] == 0
        assert run["passed"] + run["failed"] == run["tests"] == sum(map(len, document["tests"].values()))


def test_the_page_is_current() -> None:
    """``python -m conformance page`` writes it."""
    assert page.PAGE.read_text(encoding="utf-8") == page.page()
