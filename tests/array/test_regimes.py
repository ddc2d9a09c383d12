"""`np.explain` and `--report` say which regime a value belongs to, and why."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.engine import tiers
from lazynp.engine.realize import forget_plans
from lazynp.graph import report
from lazynp.values import config

LIMIT = 4096


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=LIMIT, tier="auto"):
        forget_plans()
        yield


def large() -> Any:
    return np.asarray(numpy.arange(10_000.0)).copy().realize()


def here() -> str:
    return rf"{re.escape(__file__)}:\d+"


EXISTS = "nothing to do: the value exists;"
MORE = "more than LAZYNP_TAPE_LIMIT=4096"
TOLD: dict[str, tuple[Callable[[], Any], str]] = {
    "exists": (lambda: np.ones(6),
               f"{EXISTS} it has 6 elements, at most LAZYNP_TAPE_LIMIT=4096, so operations on it are recorded on a tape"),
    "on a tape": (lambda: np.ones(6) * 2, "recorded on a tape: it is computed block by block by NumPy's loops"),
    "one element": (lambda: np.ones((1, 1)), "nothing to do: the value exists; it has 1 element, at most"),
    "a view": (lambda: np.ones((3, 4)).T[1:], "nothing to do: the value exists; it has 9 elements, at most"),
    "a number": (lambda: np.ones(6).sum(), "a number: computed at the call"),
    "exists, large": (large, f"{EXISTS} it has 10,000 elements, {MORE}, so operations on it are recorded as a graph"),
    "exists, a large view": (lambda: large()[1:], "nothing to do: the value exists; it has 9,999 elements, more than"),
    "exists, small": (lambda: (large() + 1)[:3].realize(),
                      "nothing to do: the value exists; it has 3 elements, at most .* recorded on a tape"),
    "size": (lambda: large() + 1, f"recorded, because it has 10,000 elements, {MORE}"),
    "a view of what is pending": (lambda: (large() + 1)[1:], "recorded, because it has 10,000 elements, more than"),
    "an operand is large": (lambda: large().reshape(100, 100).sum(axis=0), f"recorded, because an operand has 10,000 elements, {MORE}"),
    "an operand is pending": (lambda: np.ones(3) + (large() + 1).sum(), "recorded on a tape: "),
    "a number of what is pending": (lambda: (large() + 1).sum(), "a number: computed at the call"),
    "an operand was pending": (lambda: (large() + 1).reshape(100, 100).sum(axis=0),
                               rf"recorded, because an operand is pending \({here()}\)"),
    "costly, but the core has it": (lambda: np.exp(np.ones(2000)), "recorded on a tape: "),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_explain_says_which_regime_and_why(name: str) -> None:
    make, expected = TOLD[name]
    made = make()
    lines = np.explain(made).splitlines()
    line = lines[1] if lines[0].startswith("1 kernel(s)") else lines[0]
    assert re.match(expected, line), line
    assert np.explain(made).splitlines() == lines, "asking changes nothing"


def test_where_everything_is_recorded_the_switch_is_the_reason() -> None:
    with config.override(tape_limit=0):
        x = np.asarray(numpy.ones(3))
        assert "recorded, because LAZYNP_TAPE_LIMIT=0 records everything" in np.explain(x + 1).splitlines()
        assert np.explain(x.realize()).endswith("are recorded, because LAZYNP_TAPE_LIMIT=0 records everything")


def test_of_several_values_each_is_told() -> None:
    lines = np.explain([np.ones(3), large() + 1], np.ones(2)).splitlines()
    assert lines[0].startswith("1 kernel(s)")
    assert [line.partition(",")[0] for line in lines[1:4]] == [
        "0: nothing to do: the value exists; it has 3 elements", "1: recorded", "2: nothing to do: the value exists; it has 2 elements"
    ]  # fmt: skip


def ran(make: Callable[[], Any]) -> str:
    [line] = [line for line in np.explain(make()).splitlines() if line.startswith("run by ")]
    return line


@pytest.fixture
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no earlier process had compiled anything, and no earlier test had run programs of the same structure."""
    from lazynp.backends.llvm.backend import LLVMBackend
    from lazynp.engine import realize

    getattr(realize.backend("auto"), "accounts", {}).clear()
    monkeypatch.setattr(LLVMBackend, "kept", lambda self, program: None)


@pytest.mark.usefixtures("waiting")
@pytest.mark.usefixtures("_nothing_kept")
def test_explain_says_whether_the_plan_is_there_and_what_runs_it() -> None:
    x = large()
    assert ran(lambda: x + 1) == f"run by a new plan, in the NumPy tier, because {tiers.TINY}"
    (x + 1).realize()
    assert ran(lambda: x + 1) == "run by a plan from the cache, in the NumPy tier"
    middle = np.asarray(numpy.ones(1_000_000)).copy().realize()
    assert ran(lambda: middle * 3) == f"run by a new plan, in the NumPy tier, because {tiers.COUNTED}"
    (middle * 3).realize()
    assert re.fullmatch(
        r"run by a plan from the cache, in the NumPy tier, and compiled after \d+ more runs of its kind", ran(lambda: middle * 3)
    )
    square = middle.reshape(1000, 1000)
    assert ran(lambda: square.cumsum(axis=0)[:, ::-1] ** middle[:1000]) == f"run by a new plan, compiled, because {tiers.LARGE}"
    with config.override(tier="compiled"):
        assert ran(lambda: x * 7) == "run by a new plan, compiled: LAZYNP_TIER asks for it"
        (x * 7).realize()
        assert ran(lambda: x * 7) == "run by a plan from the cache, compiled"
    with config.override(backend="numpy"):
        assert ran(lambda: x * 7).startswith("run by a new plan, in the NumPy tier: LAZYNP_BACKEND")


@pytest.mark.usefixtures("waiting")
@pytest.mark.usefixtures("_nothing_kept")
def test_runs_left_count_down_to_compiling() -> None:
    x = np.asarray(numpy.ones(1_000_000)).copy().realize()
    left = []
    while True:
        y = x * 3 - 2
        told = ran(lambda: y)  # noqa: B023 - called at once
        y.realize()
        if "from the cache" not in told:
            continue
        if not (found := re.search(r"compiled after (\d+) more run", told)):
            break
        left.append(int(found[1]))
    assert len(left) > 2 and left == list(range(left[0], 0, -1))
    assert told == "run by a plan from the cache, compiled at its next run, because it came often"
    assert ran(lambda: x * 3 - 2) == "run by a plan from the cache, compiled, because it came often"


PROGRAM = """
import numpy as np
a = np.ones(1000)
b = np.arange(100_000.0)
def f(a):
    return (a * 2 + 1) * a
for k in range(10):
    c = f(a)
    d = np.sqrt(c) ; d -= 1
    e = np.where(a > 0, a, d)
s = b * 2 + 1
t = s[:10] + a[0]
a[3] = 1
v = np.var(b)
print(float(t[0]), float(v))
"""


def lines_of(tmp_path: Path, **environment: str) -> Counter[tuple[int, str]]:
    program, found = tmp_path / "program.py", tmp_path / "found.json"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "lazynp", "--report", "--report-json", str(found), str(program)]
    switches = {**os.environ, "LAZYNP_TAPE_LIMIT": str(LIMIT), "LAZYNP_CACHE": "0", **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=switches)
    assert float(done.stdout.split()[0]) == 2.0
    assert f"{program}:6\n" in done.stderr.partition("operations, and runs, by line:\n")[2]
    rows = json.loads(found.read_text())["regimes"]
    assert all(row["line"].startswith(f"{program}:") for row in rows)
    counts: Counter[tuple[int, str]] = Counter()
    for row in rows:  # an operation each
        counts[int(row["line"].rpartition(":")[2]), row["regime"]] += row["count"]
    return counts


AT_THE_CALL = f"at the call: at most LAZYNP_TAPE_LIMIT={LIMIT} elements"
ONE_PASS = f"recorded on a tape: at most LAZYNP_TAPE_LIMIT={LIMIT} elements"
SIZE = f"recorded: more than LAZYNP_TAPE_LIMIT={LIMIT} elements"
PENDING = "recorded: an operand is pending"


@pytest.mark.slow
def test_the_report_counts_regimes_by_line(tmp_path: Path) -> None:
    found = lines_of(tmp_path)
    assert found[3, AT_THE_CALL] == 1
    assert found[6, ONE_PASS] == 30
    assert found[9, ONE_PASS] == 20 and found[10, ONE_PASS] == 20
    assert found[11, SIZE] == 2 and found[12, PENDING] == 1, "a view is no operation"
    assert found[13, AT_THE_CALL] == 1
    assert found[14, PENDING] == found[14, SIZE] == 0, "what a function computes on its way is not counted; a number is run where it stands"
    runs = [(line, name) for (line, name), count in found.items() if line in (14, 15) and name.startswith("run by ") and count == 1]
    assert [line for line, _ in runs] == [14, 15]
    assert all(name.startswith("run by a new plan, in the NumPy tier, because ") for _, name in runs)


@pytest.mark.slow
def test_the_report_says_that_a_switch_records_everything(tmp_path: Path) -> None:
    found = lines_of(tmp_path, LAZYNP_TAPE_LIMIT="0")
    assert found[6, "recorded: LAZYNP_TAPE_LIMIT=0 records everything"] == 30


def test_nothing_is_counted_unless_somebody_asks() -> None:
    report.reset()
    float((np.ones(10) * 2).sum() + large().sum())
    assert report.counters()["regimes"] == []
    assert "by line:" not in np.report()
