"""The script for the first minutes on a GPU, end to end on the imitation: that it is not out of date when there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands for profilers, which there are none of here: runs the program that it is given and prints a line as they do.
PROFILER = """#!/bin/bash
while [ "$1" != "$PYTHON" ]; do shift; done
"$@" && echo '"ID","Kernel Name","Metric"'
"""
STEPS = {
    "smoke": ["doctor", "one", "standard", "probe", "row"],
    "tests": ["hardware", "host", "differential", "memcheck", "racecheck", "initcheck"],
    "bench": ["bench_product_", "bench_ten_operations_on_100_elements_", "goals"],
    "profile": ["ncu_product_", "ncu_ten_operations_on_100_elements_", "overheads"],
}
FILES = {
    "smoke": {"steps.tsv", "env.txt", "probe.jsonl", "bench.jsonl", "bench.json", "logs.tgz"},
    "tests": {"steps.tsv", "junit.xml", "logs.tgz"},
    "bench": {"steps.tsv", "bench.jsonl", "bench.json", "logs.tgz"},
    "profile": {"steps.tsv", "ncu.csv", "probe.jsonl", "logs.tgz"},
}
TESTS = {
    "smoke": "across",
    "tests": "(test_programs and elementwise and 0) or (busy and 0) or Fortran",
}


def light(stage: str, out: Path, seconds: int = 600, **variables: str) -> subprocess.CompletedProcess[str]:
    tools = out.parent / "bin"
    tools.mkdir(exist_ok=True)
    for name in ("ncu", "compute-sanitizer"):
        (tools / name).write_text(PROFILER)
        (tools / name).chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LAZYNP_", "PYTEST_"))},
        "DEVICE": "emulated", "PYTHON": sys.executable, "OUT": str(out), "WORKERS": "1", "PEERS": "cupy", "EACH": "200",
        "ONLY": "^product$|^ten operations", "PATH": f"{tools}:{os.environ['PATH']}", **variables,
    }  # fmt: skip
    command = ["bash", str(ROOT / "tools" / "first_light.sh"), stage, str(seconds)]
    return subprocess.run(command, cwd=out.parent, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("stage", STEPS)
def test_a_stage_runs_to_its_end(stage: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = light(stage, out, TESTS=TESTS.get(stage, ""))
    steps = [line.split("\t") for line in (out / "steps.tsv").read_text().splitlines()]
    assert [name for name, _, _ in steps] == STEPS[stage], done.stderr
    assert {status for _, status, _ in steps} == {"0"}, done.stdout
    assert done.returncode == 0 and not done.stderr
    assert {path.name for path in out.iterdir()} == FILES[stage]
    assert all(path.stat().st_size for path in out.iterdir())
    for path in out.glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines and not any("error" in line for line in lines)


def test_no_more_than_eight_files_come_back() -> None:
    assert len(set().union(*FILES.values())) <= 8


def test_what_fails_or_finds_no_time_stops_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = light("bench", out, PEERS="no such library")
    assert done.returncode == 1
    assert [line.split("\t")[1] for line in (out / "steps.tsv").read_text().splitlines()] == ["1", "1", "1"]
    out = tmp_path / "late"
    done = light("bench", out, seconds=20)
    assert done.returncode == 1 and "no time" in (out / "steps.tsv").read_text()
    assert light("noon", tmp_path / "none").returncode == 2
