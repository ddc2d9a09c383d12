"""Nothing stops running: programs that hand arrays and results to what knows NumPy's alone leave the same with lazynp.

Every row runs with small arrays and with large ones, with everything recorded and with small values at hand.
"""

from __future__ import annotations

import array
import functools
import importlib.util
import json
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.interoperability import mapped_rows
from tests.interoperability.swapped_programs import COMPILED, LIBRARIES, PYTHON
from tests.interoperability.torch_programs import TORCH
from tests.test_script import launch

matplotlib.use("Agg")

ROWS = PYTHON | LIBRARIES | TORCH
OPTIONAL = (
    "IPython", "autograd", "cloudpickle", "cv2", "h5py", "hypothesis", "networkx", "numba", "numexpr", "pyarrow", "rich", "sympy",
    "torch", "trimesh", "zarr",
)  # fmt: skip
SIZES = {"small": 120, "large": 40_000}


def missing(text: str) -> list[str]:
    """The libraries of a program that are not installed."""
    return [name for name in OPTIONAL if re.search(rf"\b(import|from) {name}\b", text) and importlib.util.find_spec(name) is None]


def run(text: str, np: Any, n: int, folder: Path) -> Any:
    x = np.linspace(-1, 1, n)
    x = np.rint((x * x * x + x) * 2**20) / 2**20  # whose sums are exact in any order
    space = {
        "np": np, "numpy": numpy, "n": n, "folder": folder, "x": x, "i": np.arange(n) * 7 % 11 + 1, "b": x * 3 % 1 > 0.4,
        "m": (np.arange(n) * 0.7 % 5 - 2).reshape(-1, 8),  # of operations that have one result
    }  # fmt: skip
    folder.mkdir()
    exec(text, space)
    return space["result"]


def assert_same(got: Any, want: Any) -> None:
    import pandas

    if isinstance(want, (pandas.DataFrame, pandas.Series, pandas.Index)):
        assert type(got) is type(want)
        assert_same(got.to_numpy(), want.to_numpy())
    elif isinstance(want, Mapping):
        assert_same(list(got), list(want))
        assert_same(list(got.values()), list(want.values()))
    elif isinstance(want, tuple | list):
        assert isinstance(got, type(want)) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
    elif isinstance(want, numpy.ndarray | numpy.generic | float):
        assert isinstance(got, numpy.ndarray | numpy.generic | float | lazynp.ndarray)
        one, other = numpy.asarray(got), numpy.asarray(want)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if other.dtype.kind in "fc":
            numpy.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        else:
            numpy.testing.assert_array_equal(one, other)
    elif isinstance(want, str):
        assert got.replace("lazynp", "numpy") == want
    elif isinstance(want, type):
        assert got == want
    else:
        assert got == want or isinstance(want, array.array)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba: not installed")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("module", [True, False])
def test_functions_that_numba_compiles(module: bool, size: str, tmp_path: Path) -> None:
    program, swapped = tmp_path / "compiled.py", tmp_path / "swapped.py"
    text = COMPILED.replace("N)", f"{SIZES[size]})")
    program.write_text(text)
    swapped.write_text(text if module else text.replace("import numpy as", "import lazynp as").replace("from numpy", "from lazynp"))
    theirs = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    command = [sys.executable, *(["-m", "lazynp"] if module else []), str(swapped)]
    ours = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ours.stdout == theirs.stdout, ours.stderr
    assert not ours.stderr


@functools.cache
def numpys(row: str, size: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return run(ROWS[row], numpy, SIZES[size], Path(folder) / "numpy")


@pytest.mark.parametrize(
    ("size", "below"),
    [("small", 16384), ("large", 0), *(pytest.param(*each, marks=pytest.mark.slow) for each in [("small", 0), ("large", 16384)])],
)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_a_program_leaves_what_it_leaves_with_numpy(row: str, size: str, below: int, tmp_path: Path) -> None:
    text = ROWS[row]
    if libraries := missing(text):
        pytest.skip(f"{', '.join(libraries)}: not installed")
    want = numpys(row, size)
    with config.override(tape_limit=below):
        got = run(text, lazynp, SIZES[size], tmp_path / "lazynp")
        assert_same(got, want)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "below"), [("small", "0"), ("large", "16384")])
def test_all_of_them_leave_the_same_where_numpy_means_lazynp(size: str, below: str, tmp_path: Path) -> None:
    rows = {name: text for name, text in ROWS.items() if not missing(text)}
    shutil.copy(mapped_rows.__file__, tmp_path / "mapped_rows.py")
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    left = {}
    for module in (False, True):
        results = tmp_path / f"results-{module}"
        arguments = ("mapped_rows.py", str(SIZES[size]), "rows.json", str(results))
        done = launch(tmp_path, *arguments, module=module, LAZYNP_TAPE_LIMIT=below, MPLBACKEND="Agg")
        assert done.returncode == 0, done.stderr
        left[module] = pickle.loads(results.read_bytes())
    assert list(left[True]) == list(left[False]) == list(rows)
    for name, want in left[False].items():
        assert want[0] != "raised", (name, want)
        try:
            assert_same(left[True][name], want)
        except AssertionError as error:
            raise AssertionError(f"{name}: {left[True][name]!r} instead of {want!r}") from error
