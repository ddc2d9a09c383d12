"""What starting costs, counted: modules that importing loads, threads that the first value waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lazynp.backends.llvm import client
from lazynp.namespace import methods, names

PROGRAM = """
import sys
from pathlib import Path
import numpy
before = set(sys.modules)
import lazynp as np
imported = set(sys.modules) - before
from lazynp.backends.common import interrupts
started, start = [], interrupts.start_new_thread
interrupts.start_new_thread = lambda *args: started.append(args) or start(*args)
large = np.ones(2_000_000)
large[5] = 2.0
np.realize(large, large[3:])
print("lazynp.engine.realize" in sys.modules, end=" ")
(np.exp(np.linspace(0, 1, 1_000_000)) + 1).realize()
print(len(started), *sorted(imported))
"""


@pytest.fixture(scope="module")
def process() -> list[str]:
    switches = {"THREADS": "1", "TIER": "compiled", "BACKEND": "llvm", "TAPE_LIMIT": "1000", "CACHE": "0"}
    environment = {**os.environ, **{f"LAZYNP_{name}": value for name, value in switches.items()}}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_loads_no_engine_and_no_topic_that_few_programs_need(process: list[str]) -> None:
    rooms = ("backends.llvm", "backends.numpy", "backends.base", "codegen", "schedule", "engine.realize", "namespace.device")
    topics = {f"lazynp.namespace.{module}" for module in names.LATER.values()}
    engine = tuple(f"lazynp.{room}" for room in rooms)
    assert [name for name in process[2:] if name in topics or name.startswith(engine)] == ["lazynp.schedule"]
    assert "llvmlite" not in process
    assert not {"inspect", "threading", "heapq", "array"} & set(process)


def test_the_first_value_waits_for_one_other_thread_and_what_it_wants(process: list[str]) -> None:
    # The program is compiled; once more for llvmlite, whose version is part of what is compiled; and for LLVM itself where no other process
    # loads it.
    assert process[1] == ("3" if client.reason() else "2")


def test_a_short_program_loads_no_more_than_it_needs(process: list[str]) -> None:
    program = "a = np.arange(9.0); b = (a * 2 + a)[1:] - 1; b[2] = 3; print(float(b.sum()), b.shape, b.max() > 2)"
    told = "print(*sorted(name for name in sys.modules if name.startswith('lazynp.')))"
    text = f"import sys\nimport lazynp as np\n{program}\n{told}"
    loaded = set(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()[5:])
    # of what computes large arrays, views, graphs and calls of NumPy; the rest takes a few milliseconds
    late = "array.calls array.hand bounds conversion graph.build layout storage values.allocator values.pressure viewing views"
    late += " namespace.assignment namespace.indexing namespace.routines.creation namespace.ufunc.promotion namespace.ufunc.table"
    assert not loaded & {f"lazynp.{name}" for name in late.split()}


def test_what_has_its_value_waits_for_nothing(process: list[str]) -> None:
    assert process[0] == "False"


@pytest.mark.parametrize("module", sorted(set(names.LATER.values()) - {"coverage"}))
def test_a_topic_has_the_names_that_are_looked_for_there(module: str) -> None:
    found = __import__(f"lazynp.namespace.{module}", fromlist=["FUNCTIONS"]).FUNCTIONS
    assert {name for name, topic in names.LATER.items() if topic == module} <= set(found)
    assert not {name for name in found if names.LATER.get(name) != module and name not in names.ALL}


LATER = sorted(name for name, method in methods.SHARED.items() if method.__code__.co_qualname.startswith("_later."))


@pytest.mark.parametrize("name", LATER)
def test_a_method_that_loads_its_function_says_what_that_says(name: str) -> None:
    assert len(LATER) > 20
    function = __import__(f"lazynp.namespace.{names.LATER[name]}", fromlist=["FUNCTIONS"]).FUNCTIONS[name]
    method = methods.SHARED[name]
    assert method.__doc__ == str.__str__(function.__doc__).partition("\n")[0] or str(function.__doc__).startswith(str(method.__doc__))
    assert getattr(method, "answered", None) == getattr(function, "answered", None)


MAPPED = "import sys\nloaded = set(sys.modules)\nimport numpy as np\nprint(np.arange(3).sum(), *sorted(loaded))\n"


def test_a_mapped_program_starts_with_few_modules_beyond_numpys(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MAPPED)
    (tmp_path / "plain.py").write_text("import numpy, sys, site\nprint(*sorted(sys.modules))\n")

    def words(*command: str) -> list[str]:
        return subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()

    total, *loaded = words("-m", "lazynp", "program.py", "--report")
    assert total == "3"
    others = {name for name in loaded if name.partition(".")[0] != "lazynp"} - set(words("plain.py"))
    assert not {"argparse", "code", "inspect", "json", "random", "tempfile", "threading", "traceback", "urllib.parse"} & others
    assert len(others) < 30, others


AT_THE_END = """
import numpy as np, gc, sys, weakref
class Owner:
    def __init__(self, name):
        self.me, self.name, self.data = self, name, np.arange(3.0) + 1
    def __del__(self):
        print("gone", self.name, float(self.data.sum()))
kept = Owner("kept")
Owner("collected")
print(gc.collect() > 0, gc.isenabled())
Owner("left")
"""


def test_what_a_program_leaves_in_circles_goes_as_in_python(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AT_THE_END)
    (tmp_path / "__main__.py").write_text(AT_THE_END)
    runs = [
        subprocess.run([sys.executable, *how], cwd=tmp_path, capture_output=True, text=True, check=True)
        for how in (["program.py"], ["-m", "lazynp", "program.py"], ["-m", "lazynp", "."], ["-m", "lazynp", "-m", "program"])
    ]
    assert runs[0].stdout.splitlines()[-1] == "gone kept 6.0"
    for mapped in runs[1:]:
        assert (mapped.stdout.splitlines(), mapped.stderr) == (runs[0].stdout.splitlines(), runs[0].stderr)


LAST = """
import atexit
{before}
@atexit.register
def last():
    {within}
    x = np.arange(3e5)
    print(float((np.sin(x) * 0 + x).sum()))
{after}
"""


@pytest.mark.parametrize("tier", ["auto", "compiled"])
@pytest.mark.parametrize("place", ["before", "within", "after"])
def test_the_first_value_of_a_process_may_be_its_last(tier: str, place: str, tmp_path: Path) -> None:
    program = LAST.format(**{"before": "", "within": "pass", "after": "", place: "import lazynp as np"})
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "LAZYNP_CACHE_DIR": str(tmp_path), "LAZYNP_TIER": tier, "LAZYNP_TAPE_LIMIT": "0"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("44999850000.0\n", "")
