"""The benchmark for GPUs, run on the fake one: that it measures nothing there is no reason not to run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_benchmark_runs(tmp_path: Path) -> None:
    path = tmp_path / "fake.json"
    only = [word for name in ("a.T", "learn Ridge", "learn PCA") for word in ("--only", name)]
    options = ["--size", "small", "--seconds", "0", "--peers", "cupy", "--json", str(path), *only]
    command = [sys.executable, "-m", "gpu_emulator", "-m", "bench.gpu", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())
    assert set(found) == {"machine", "copy_bytes_per_second", "fixed", "repeated", "goals", "rows"}
    ours = [row for row in found["rows"] if row["library"] == "lazynp"]
    assert len(ours) == 3 and not any("error" in row for row in ours)
    assert {"seconds", "cold_seconds", "peak_bytes", "least_bytes", "bytes_per_second", "difference"} <= set(ours[0])
    assert len(found["goals"]) == 8 and "against CuPy" in done.stdout
