"""The example programs give through lazynp what they give through NumPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def launch(*command: str) -> dict[str, Any]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, *command], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_scripts_are_plain_numpy() -> None:
    for name in ("photo.py", "digits.py", "pipeline.py", "rhythm.py", "climate.py"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert "import numpy as np" in text
        assert "lazynp" not in text


@pytest.mark.slow
def test_photograph(tmp_path: Path) -> None:
    script, ours, theirs = str(EXAMPLES / "photo.py"), tmp_path / "lazynp.png", tmp_path / "numpy.png"
    arguments = (script, "--tiles", "1", "--repeat", "2", "--json", "--output")
    reported = launch("-m", "lazynp", *arguments, str(ours))
    assert reported["shape"] == launch(*arguments, str(theirs))["shape"] == [427, 640, 3]
    assert len(reported["compute"]) == 2
    a, b = (np.asarray(Image.open(path)).astype(int) for path in (ours, theirs))
    difference = np.abs(a - b)
    # a last-bit difference of a power may move a pixel across the edge of its histogram bin, never further
    assert difference.max() <= 3
    assert np.count_nonzero(difference) <= a.size // 10_000


@pytest.mark.slow
def test_digits() -> None:
    arguments = (str(EXAMPLES / "digits.py"), "--json")
    ours, theirs = launch("-m", "lazynp", *arguments)["results"], launch(*arguments)["results"]
    assert ours.keys() == theirs.keys()
    for key in theirs:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.slow
def test_pipeline() -> None:
    arguments = (str(EXAMPLES / "pipeline.py"), "--json")
    ours, theirs = launch("-m", "lazynp", *arguments), launch(*arguments)
    assert (ours["arrays"], theirs["arrays"]) == ("lazynp", "numpy")
    for key, want in theirs["results"].items():
        np.testing.assert_allclose(ours["results"][key], want, rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.slow
def test_rhythm() -> None:
    arguments = (str(EXAMPLES / "rhythm.py"), "--people", "12", "--json")
    ours, theirs = launch("-m", "lazynp", *arguments), launch(*arguments)
    assert (ours["arrays"], theirs["arrays"]) == ("lazynp", "numpy")
    for name, found in theirs["results"].items():
        for key, want in found.items():
            np.testing.assert_allclose(ours["results"][name][key], want, rtol=1e-7, atol=1e-9, err_msg=f"{name} {key}")


@pytest.mark.slow
def test_climate(tmp_path: Path) -> None:
    script, pictures = str(EXAMPLES / "climate.py"), [tmp_path / "lazynp.png", tmp_path / "numpy.png"]
    ours, theirs = (
        launch(*start, script, "--json", "--output", str(picture)) for start, picture in zip((("-m", "lazynp"), ()), pictures, strict=True)
    )
    assert (ours.pop("arrays"), theirs.pop("arrays")) == ("lazynp", "numpy")
    for key, want in theirs.items():
        np.testing.assert_allclose(ours[key], want, rtol=1e-9, atol=1e-12, err_msg=key)
    a, b = (np.asarray(Image.open(picture)).astype(int) for picture in pictures)
    assert a.shape == b.shape == (360, 1100, 4)
    assert np.count_nonzero(np.abs(a - b).max(axis=2) > 2) <= a.size // 10_000
