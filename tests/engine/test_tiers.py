"""When programs that come in small pieces are compiled: counted within a process, and what one process leaves for the next."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lazynp as np
from lazynp.values import config

pytestmark = pytest.mark.usefixtures("recorded")

PROGRAM = """
import json
import lazynp as np
from lazynp.backends.llvm.compiler import STATISTICS
from lazynp.engine import tiers

x = np.arange(1_000_000.0).reshape(1000, 1000).copy().realize()
said = []
for _ in range(RUNS):
    before = STATISTICS.compiled
    y = x * 3.0 - 2.0
    (told,) = [line for line in np.explain(y).splitlines() if line.startswith("run by ")]
    total = float(y.realize()[-1, -1])
    said.append(["compiled, " in told, STATISTICS.compiled - before])
print(json.dumps([said, total]))
"""


def run(folder: Path, runs: int) -> list[list[int]]:
    """Whether the plan of each of some runs was machine code, and how many modules LLVM was asked for in it."""
    environment = {**os.environ, "LAZYNP_CACHE_DIR": str(folder), "LAZYNP_TAPE_LIMIT": "0", "LAZYNP_TIER": "auto"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("RUNS", str(runs))], env=environment, capture_output=True, text=True, check=True
    )
    said, total = json.loads(done.stdout)
    assert total == 3.0 * 999_999 - 2.0
    return said


@pytest.mark.usefixtures("waiting")
@pytest.mark.slow
def test_what_comes_often_in_several_processes_is_compiled_in_the_second_and_kept_for_the_third(tmp_path: Path) -> None:
    first, second, third = (run(tmp_path, 12) for _ in range(3))
    assert not any(compiled for compiled, _ in first), "one process alone does not come often enough"
    assert not any(modules for _, modules in first), "who only looks does not ask LLVM"
    assert second[-1][0], "what two processes looked for is wanted"
    assert sum(modules for _, modules in second) > 0
    assert third[-1][0]
    assert not any(modules for _, modules in third), "what is kept is not compiled again"


@pytest.mark.slow
def test_what_comes_once_in_a_process_is_not_compiled(tmp_path: Path) -> None:
    for _ in range(3):
        assert run(tmp_path, 1) == [[False, 0]]


def test_a_look_that_finds_nothing_leaves_a_program_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from lazynp.backends.llvm.backend import LLVMBackend

    asked: list[object] = []
    monkeypatch.setattr(LLVMBackend, "kept", lambda self, program: asked.append(program))
    with config.override(backend=None, tier="auto"):
        x = np.asarray([1.5] * 700_000).copy().realize()
        values = [float((x / 7.0 - 11.0).realize()[0]) for _ in range(16)]
    assert len(asked) == 1
    assert set(values) == {1.5 / 7.0 - 11.0}
