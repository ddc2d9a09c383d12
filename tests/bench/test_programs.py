"""The ordinary programs compute through lazynp what they compute through NumPy, whether small values are at hand or recorded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lazynp
from bench.ordinary import FAMILIES, PROGRAMS
from bench.processes import Ask, EndedError, conversation, rows
from bench.programs import answers, compare, first_runs, mismatch, prepare, summary
from lazynp.values import config


def test_four_programs_a_family() -> None:
    families = [family for family in FAMILIES for _ in range(13 if family == "small" else 4)]
    assert [program.family for program in PROGRAMS.values()] == families


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("tape_limit", [4096, 0])
def test_program_equals_numpy(name: str, tape_limit: int) -> None:
    program = PROGRAMS[name]
    want = prepare(program, program.tiny, np)()
    with config.override(tape_limit=tape_limit):
        ours = prepare(program, program.tiny, lazynp)
        for _ in range(2):  # a run leaves its inputs as they are
            assert mismatch(program, ours(), want) is None


def test_mismatch_sees_dtypes_shapes_and_values() -> None:
    exact = PROGRAMS["stencils.heat"]
    x = np.array([1.0, np.inf, np.nan])
    assert mismatch(exact, (x,), (x.copy(),)) is None
    assert mismatch(exact, (x, x), (x,)) == "2 results instead of 1"
    assert mismatch(exact, (x.astype("f"),), (x,)) == "result 0: float32[3] instead of float64[3]"
    assert mismatch(exact, (x[:2],), (x,)) == "result 0: float64[2] instead of float64[3]"
    assert mismatch(exact, (1, x + 1e-9), (1, x)) == "result 1: off by 1e-09, more than 0"
    assert mismatch(exact, (np.zeros(3),), (x,)) == "result 0: off by inf, more than 0"


def _side(*given: Any) -> Ask:
    """What a program's process answers, without a process."""
    questions: list[dict[str, Any]] = []
    found = answers(*given, iter(questions.pop, None))

    def ask(**question: Any) -> dict[str, Any]:
        questions.append(question)
        return next(found)

    return ask


def test_times_and_results_are_compared(tmp_path: Path) -> None:
    program = PROGRAMS["elements.counting"]
    sides = tuple(_side(program, xp, time.perf_counter) for xp in (np, lazynp))
    row = compare(program, program.tiny, sides, tmp_path, 0.0)
    assert {"ratio", "first_seconds", "second_seconds", "first_cold_seconds", "second_cold_seconds", "difference"} <= row.keys()
    assert not {"wrong", "error"} & row.keys()
    other = (sides[0], _side(PROGRAMS["elements.insertion_sort"], lazynp, time.perf_counter))
    assert compare(program, program.tiny, other, tmp_path, 0.0)["wrong"] == "2 results instead of 3 in the first run"
    assert compare(program, -1, sides, tmp_path, 0.0)["error"].startswith("NumPy's ValueError")


def test_first_runs_are_of_fresh_processes() -> None:
    (row,) = first_runs("elements.counting", ["tiny"], 2, "wall", 60.0)
    low, high = row["ratio_quartiles"]
    assert low <= high
    assert row["ratio"] == row["first_seconds"] / row["second_seconds"] > 0
    assert not {"wrong", "error"} & row.keys()
    (row,) = first_runs("elements.counting", ["tiny"], 1, "no clock", 60.0)
    assert "KeyError" in row["error"]


@pytest.mark.slow
def test_process_that_ends_or_is_late_says_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    wait = json.loads(line)['wait']\n"
        "    if wait < 0:\n"
        "        sys.exit('it is over')\n"
        "    time.sleep(wait)\n"
        "    print('noise')\n"
        "    print(json.dumps({'waited': wait}), flush=True)\n"
    )
    for wait, why in [(-1, "process ended, exit code 1: it is over"), (600, "not done in 5 s")]:
        with conversation([str(script)], limit=5.0) as ask:
            assert ask(wait=0) == {"waited": 0}
            with pytest.raises(EndedError, match=why):
                ask(wait=wait)


@pytest.mark.slow
def test_process_that_dies_or_hangs_is_a_row(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, time\n"
        "for name in sys.argv[1:]:\n"
        "    if name == 'dies':\n"
        "        sys.exit('it is over')\n"
        "    if name == 'hangs':\n"
        "        time.sleep(600)\n"
        "    print('{\"value\": \"%s%s\"}' % (name, os.environ['MARK']), flush=True)\n"
    )
    found = list(rows([str(script)], ["a", "dies", "b", "hangs", "c"], limit=5.0, switches={"MARK": "!"}))
    assert found == [
        ("a", {"value": "a!"}),
        ("dies", {"error": "process ended, exit code 1: it is over"}),
        ("b", {"value": "b!"}),
        ("hangs", {"error": "not done in 5 s"}),
        ("c", {"value": "c!"}),
    ]


def test_summary_has_means_verdicts_and_what_is_wrong() -> None:
    def row(program: str, size: str, ratio: float, **more: str) -> dict[str, object]:
        return {"program": program, "family": program.partition(".")[0], "size": size, "ratio": ratio, **more}

    measured = [
        row("stencils.heat", "small", 1.0), row("stencils.life", "small", 4.0), row("dense.lu", "small", 0.5, wrong="off"),
        row("stencils.heat", "large", 4.0), {"program": "dense.lu", "family": "dense", "size": "large", "error": "no"},
    ]  # fmt: skip
    lines = list(summary(measured))
    assert "in-place stencils                             2.00x    4.00x" in lines
    assert "small: 1.26x of 1.5x, 1 of 3 below 0.9x: MISS" in lines
    assert "large: 4.00x of 3x, 0 of 1 below 0.9x: pass" in lines
    assert "    0.50x  dense.lu, small" in lines
    assert lines[-2:] == ["WRONG: dense.lu, small: off", "ERROR: dense.lu, large: no"]
