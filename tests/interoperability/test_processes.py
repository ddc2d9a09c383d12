"""Large arrays in other processes: joblib maps what it sends, and what it sends of ours arrives as NumPy's would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("joblib")

HEAD = """
import os, pickle, sys, tempfile
import joblib, numpy as np
def kind(a): return type(a).__name__, a.flags.writeable, a.dtype.str, a.shape, abs(complex(a[..., 0].sum()))
def doubled(a): return a * 2
def write(out, i, x): out[i] = x.sum() + i
def pair(a, b): return a is b, type(a).__name__, type(b).__name__
def refused(a):
    try: a[0] = 1
    except ValueError as error: return str(error)
def all_of(function, given, **options): return joblib.Parallel(2, **options)(joblib.delayed(function)(*each) for each in given)
if __name__ == "__main__":
    large = [np.arange(400_000.0) + 1, np.ones((1000, 1000), "f4").T * 3, np.arange(2_000_000) % 7, np.arange(900_000.0) * 1j]
    large.append(np.arange(100.0))
    one = [(a,) for a in large]
"""
PROGRAMS = {
    "large arrays are mapped, read-only": "print(all_of(kind, one))",
    "results are arrays": "print([(type(r).__name__, r.flags.writeable, float(abs(r).sum())) for r in all_of(doubled, one)])",
    "maps refuse writes": "print(all_of(refused, one[:3]))",
    "one array is sent once": "print(all_of(pair, [(a, a) for a in large[:2]]))",
    "nothing is mapped": "print(all_of(kind, one, max_nbytes=None))",
    "copies of pages": "print(all_of(kind, [(a[:3000],) for a in large[2:3]], max_nbytes='10K', mmap_mode='c'))",
    "threads": "print(all_of(kind, one, prefer='threads'))",
    "multiprocessing": "print(all_of(kind, one, backend='multiprocessing'))",
    "a map that workers write": """
    with tempfile.TemporaryDirectory() as d:
        out = np.memmap(os.path.join(d, "out"), float, "w+", shape=5)
        all_of(write, [(out, i, a.real) for i, a in enumerate(large)])
        print(out.tolist(), type(out).__name__, all_of(kind, [(out,), (out[2:],), (out[::2],)]))
        again = pickle.loads(pickle.dumps(out))
        print(type(again).__name__, again.tolist(), again.flags.writeable)
""".strip("\n"),
    "files": """
    with tempfile.TemporaryDirectory() as d:
        joblib.dump(large[:2], os.path.join(d, "dumped"))
        print([[kind(a) for a in joblib.load(os.path.join(d, "dumped"), mmap_mode=mode)] for mode in (None, "r", "c")])
""".strip("\n"),
}


def _said(script: Path, *how: str, **switches: str) -> str:
    environment = {**os.environ, "LAZYNP_TAPE_LIMIT": "786432", **switches}
    command = [sys.executable, *how, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=script.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_joblib_sends_what_it_sends_of_numpys(name: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    body = PROGRAMS[name]
    script.write_text(HEAD + (body if body.startswith(" ") else f"    {body}") + "\n")
    expected = _said(script)
    assert _said(script, "-m", "lazynp") == expected
    assert _said(script, "-m", "lazynp", LAZYNP_TAPE_LIMIT="0") == expected


@pytest.mark.slow
def test_a_program_that_names_lazynp_gets_maps_of_ours(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD.replace("numpy as np", "lazynp as np")
        + "    print(all_of(kind, one[:1]), [type(a.sum()).__module__ != '' and float(a.sum()) for a in all_of(doubled, one[:1])])\n"
    )
    said = _said(script)
    assert said.startswith("[('memmap', False, '<f8', (400000,), 1.0)] [160000400000.0]")


CLOUDPICKLED = """
import pickle, sys
import cloudpickle, numpy
import lazynp as np
kinds = [np.ndarray, np.float64, type(np.add), numpy.ndarray]
def function(x, kind=np.ndarray): return isinstance(x, kind) and type(x) is kind
again = pickle.loads(cloudpickle.dumps(function))
assert again(np.arange(3)) and again(np.arange(900_000.0))
for kind in kinds:
    found = pickle.loads(cloudpickle.dumps(kind))
    assert found is kind, (kind, found)
print("held")
"""


def test_classes_are_sent_by_cloudpickle(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "program.py"
    script.write_text(CLOUDPICKLED)
    assert _said(script) == "held\n"
