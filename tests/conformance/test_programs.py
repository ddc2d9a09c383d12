"""``python -m conformance programs``: what two libraries leave is compared, and nothing else is taken for a difference."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest

from conformance import programs
from conformance.programs import Run

SAME = """
import os, sys
import numpy as np
x = np.linspace(0, 1, 9)
np.savetxt("out.txt", x * np.random.rand())
print(x.sum(), os.path.basename(__file__), sys.argv[1:])
"""
OTHER = "import numpy as np\nname = 'lazynp' if hasattr(np, 'realize') else 'numpy'\nx = np.ones(3) * (name == 'numpy')\nprint(name)\n"
TESTS = """
import numpy as np
def test_sum():
    assert np.arange(3).sum() == 3
def test_name():
    assert not hasattr(np, "realize")
"""
ROWS: list[dict[str, Any]] = [
    {"name": "same", "repository": "somebody/work", "field": "simulation", "script": ["main.py", "--flag"]},
    {"name": "other", "repository": "somebody/work", "field": "simulation", "folder": "inner", "script": "other.py"},
    {"name": "broken", "repository": "somebody/work", "field": "games", "module": "broken"},
    {"name": "tests", "repository": "somebody/work", "field": "games", "pytest": ["checks.py", "-c", "/dev/null", "--rootdir", "."]},
]


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "clones" / "somebody+work"
    for name, text in {"main.py": SAME, "inner/other.py": OTHER, "broken.py": "import nothing_of_the_kind", "checks.py": TESTS}.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(programs, "listed", lambda: ROWS)
    return tmp_path / "clones"


def run(clones: Path, *names: str) -> tuple[int, dict[str, Any]]:
    parser = argparse.ArgumentParser()
    programs.add_arguments(parser.add_subparsers())
    target = clones.parent / "results.json"
    options = parser.parse_args(["programs", *names, "--checkout", str(clones), "--json", str(target), "--pairs", "1", "--seconds", "100"])
    code = programs.main(options)
    rows = json.loads(target.read_text())["programs"] if target.exists() else []
    return code, {row["name"]: row for row in rows}


def test_a_program_that_leaves_the_same(clones: Path) -> None:
    code, rows = run(clones, "same")
    assert code == 0
    assert rows["same"]["same"] and not rows["same"]["differences"] and not rows["same"]["unusable"]
    assert rows["same"]["command"].endswith("main.py --flag")
    assert all(math.isfinite(rows["same"][name][part]) for name in ("numpy", "lazynp") for part in ("cpu", "wall", "peak"))


@pytest.mark.slow
def test_differences_and_programs_that_numpy_cannot_run(clones: Path) -> None:
    code, rows = run(clones)
    assert code == 1
    assert list(rows) == ["same", "other", "broken", "tests"]
    assert [text.partition(":")[0] for text in rows["other"]["differences"]] == ["printed", "name", "x"]
    assert "nothing_of_the_kind" in rows["broken"]["unusable"] and not rows["broken"]["same"]
    assert rows["tests"]["tests"] == 2
    assert [text.partition(":")[0] for text in rows["tests"]["differences"]] == ["checks.py"]
    assert run(clones, "same")[1].keys() == rows.keys()  # the others' results are kept


def test_a_checkout_that_is_missing_is_named(clones: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(clones.parent, "same")[0] == 2
    assert "no checkout of somebody/work" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (Run(output="step 1: 0.5000000001\n"), Run(output="step 1: 0.5\n"), True),
        (Run(output="step 1: 0.51\n"), Run(output="step 1: 0.5\n"), False),
        (Run(output="a 1\n"), Run(output="b 1\n"), False),
        (Run(errors="w: one\nw: two\n"), Run(errors="w: two\nw: one\n"), True),
        (Run(found={"values": {"x": numpy.ones(3)}}), Run(found={"values": {"x": numpy.ones(3) * (1 + 1e-9)}}), True),
        (Run(found={"values": {"x": numpy.ones(3)}}), Run(found={"values": {"x": numpy.ones(3, "f4")}}), False),
        (Run(found={"values": {"x": numpy.array([1, numpy.nan])}}), Run(found={"values": {"x": numpy.array([1.0, 2.0])}}), False),
        (Run(found={"values": {"x": 1}}), Run(found={"values": {}}), False),
        (Run(files={"a.txt": b"1.0 2.0"}), Run(files={"a.txt": b"1.0 2.0000000001"}), True),
        (Run(files={"a.bin": b"1"}), Run(files={"a.bin": b"2"}), False),
        (Run(), Run(error="ValueError: no"), False),
        (Run(found={"tests": {"a": ("passed", "")}}), Run(found={"tests": {}}), False),
        (Run(found={"tests": {"a": ("failed", "")}}), Run(found={"tests": {"a": ("passed", "")}}), True),
    ],
)
def test_what_is_a_difference(want: Run, got: Run, same: bool) -> None:
    assert (not programs.differences({}, want, got)) == same


def test_the_recorded_rows_are_the_lists() -> None:
    listed = {row["name"] for row in programs.listed()}
    recorded = {row["name"] for row in json.loads(programs.RESULTS.read_text())["programs"]}
    assert recorded <= listed
    assert len(listed) == len(programs.listed())
