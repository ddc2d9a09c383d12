"""Nothing stops running: what tells arrays and numbers by NumPy's exact types leaves the same under ``python -m lazynp``, and with
``import lazynp as np`` where a library can be told."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import pytest

from tests.interoperability.mapped_programs import PROGRAMS, START
from tests.test_script import launch, output, write

MAPPED_ONLY = {"types", "numbers", "shuffled"}  # what Python and NumPy tell by exact types


@functools.cache
def numpys(name: str, folder: Path) -> str:
    return printed(name, folder, module=False)


def printed(name: str, folder: Path, module: bool, numpy: str = "numpy", **environment: str) -> str:
    text = START.replace("import numpy as np", f"import {numpy} as np") + PROGRAMS[name]
    (folder / "program.py").write_text(text, encoding="utf-8")
    done = launch(folder, "program.py", module=module, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("lazynp", "numpy")


@pytest.mark.parametrize("below", ["0", "65536"])
@pytest.mark.parametrize(
    ("name", "module"),
    [("types", True), ("json", False)]
    + [pytest.param(name, True, marks=pytest.mark.slow) for name in PROGRAMS if name != "types"]
    + [pytest.param(name, False, marks=pytest.mark.slow) for name in PROGRAMS if name not in {*MAPPED_ONLY, "json"}],
)
def test_a_program_prints_what_it_prints_with_numpy(name: str, module: bool, below: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if name in ("cv2", "h5py") and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name}: not installed")
    folder = tmp_path_factory.getbasetemp()
    got = printed(name, folder, module, "numpy" if module else "lazynp", LAZYNP_TAPE_LIMIT=below)
    assert got.splitlines() == numpys(name, folder).splitlines()


FROM_NUMPY = "import numpy\ndef from_numpy(x):\n    return x if type(x) is numpy.ndarray else None\n"


def test_a_neighbour_is_what_is_installed_under_that_name(tmp_path: Path) -> None:
    write(tmp_path, site__slash__torch=FROM_NUMPY, app__slash__pandas="import numpy\nname = numpy.__spec__.name\n", app__slash__main="""
import sys; sys.path.append(sys.path[0] + "/../site")
import numpy as np, pandas, torch
x = np.zeros(3)
torch.from_numpy(x)[0] = 7
print(pandas.name, x)
""")  # fmt: skip
    assert output(tmp_path, "app/main.py").split() == ["lazynp", "[7.", "0.", "0.]"]
