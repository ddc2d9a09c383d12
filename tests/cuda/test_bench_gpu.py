"""The benchmark for GPUs, run on the fake one: that it measures nothing there is no reason not to run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpu_emulator", "-m", "bench.gpu", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_benchmark_runs(tmp_path: Path) -> None:
    path, rows = tmp_path / "fake.json", tmp_path / "rows.jsonl"
    names = ["a.T", "learn Ridge", "learn PCA", "product, half of it zeros", "ten small products", "scalar read", "upload"]
    names += ["a loop of eight", "ten operations"]
    only = [word for name in names for word in ("--only", name)]
    options = ["--size", "small", "--seconds", "0", "--limit", "30", "--peers", "cupy", "--rows", str(rows), "--json", str(path), *only]
    done = bench(*options)
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())
    assert set(found) == {"machine", "copy_bytes_per_second", "fixed", "repeated", "goals", "rows"}
    ours = {row["workload"]: row for row in found["rows"] if row["library"] == "lazynp"}
    assert len(ours) == 7 and not any("error" in row for row in ours.values())
    assert {"seconds", "cold_seconds", "peak_bytes", "least_bytes", "bytes_per_second", "difference", "uses"} <= set(ours["a.T + 2*b"])
    assert len(found["goals"]) == 8 and "against CuPy" in done.stdout
    assert ours["a.T + 2*b"]["uses"] == {"kernels": 1, "library_calls": 0, "copies": {}, "on_host": []}
    assert ours["ten small products"]["uses"]["library_calls"] == 10
    assert ours["upload, compute, download"]["uses"]["copies"] == {"to cuda:0": 1, "from cuda:0": 1}
    assert ours["a scalar read in a loop"]["uses"]["copies"] == {"from cuda:0": 10}
    assert max(row["difference"] for row in ours.values()) == 0 and found["fixed"] and found["repeated"]
    again = bench("--collect", str(rows), "--json", str(tmp_path / "again.json"))
    assert again.returncode == 0 and json.loads((tmp_path / "again.json").read_text()) == found


def test_a_library_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    done = bench("--size", "small", "--only", "Horner", "--limit", "1e-5", "--peers", "cupy", "--json", str(path))
    assert done.returncode == 0, done.stderr
    rows = json.loads(path.read_text())["rows"]
    assert [row["library"] for row in rows] == ["lazynp", "cupy"] and "TimeoutError: took more than 1e-05 s" in rows[0]["error"]


def test_workloads_are_listed() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.gpu", "--list"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()
    assert len(names) == len(set(names)) > 30 and {"product", "ten operations on 100 elements", "scikit-learn PCA"} < set(names)
