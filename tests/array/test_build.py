"""What an installation makes of the compiler it finds."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def _copy(to: Path) -> Path:
    """A tree as an sdist or a clone has it."""
    (to / "lazynp").mkdir(parents=True)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md"):
        (to / name).write_bytes((ROOT / name).read_bytes())
    for source in (ROOT / "lazynp").rglob("*"):
        if source.suffix in (".py", ".pyi", ".pyx", ".h") or source.name == "py.typed":
            target = to / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return to


def _wheel(tree: Path, **environment: str) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tree / "wheels"), str(tree)]
    subprocess.run(command, env=os.environ | environment, check=True, capture_output=True)
    (wheel,) = (tree / "wheels").iterdir()
    return wheel


def _native(wheel: Path) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "lazynp/py.typed" in names
    assert not [name for name in names if not name.startswith(("lazynp/", "lazynp-"))]
    return any(name.startswith("lazynp/array/_core.") and name.endswith((".so", ".pyd")) for name in names)


def test_compiler_fails(tmp_path: Path) -> None:
    assert not _native(_wheel(_copy(tmp_path / "tree"), CC="/bin/false"))


def test_no_compiler(tmp_path: Path) -> None:
    assert not _native(_wheel(_copy(tmp_path / "tree"), CC="", PATH=str(tmp_path)))


def test_pure_by_switch(tmp_path: Path) -> None:
    wheel = _wheel(_copy(tmp_path / "tree"), LAZYNP_PURE="1")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not _native(wheel)


def test_source_distribution_has_c_sources(tmp_path: Path) -> None:
    tree = _copy(tmp_path / "tree")
    program = "import setuptools.build_meta as b; b.build_sdist('made')"
    (tree / "made").mkdir()
    subprocess.run([sys.executable, "-c", program], cwd=tree, check=True, capture_output=True)
    (made,) = (tree / "made").iterdir()
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"lazynp/array/{name}" for name in ("_core.pyx", "_core.c", "_core.pyi", "cell.h")} <= names
    assert {"setup.py", "pyproject.toml", "lazynp/py.typed"} <= names
