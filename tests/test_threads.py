"""Threads that record and realize at once, in a short form; `python -m tests.threads` is the long one."""

from __future__ import annotations

from typing import Any

import pytest

from lazynp.graph import report
from tests import threads


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_eight_threads_get_the_values_of_one(tier: Any) -> None:
    report.reset()
    with threads.config.override(tier=tier):
        made = threads.run(8, 40_000)
    assert made.wrong == []
    assert made.operations >= 40_000
    counts = report.counters()
    assert counts["schedule_hits"] + counts["schedule_misses"] > 1000
    assert counts["expressions_at_hand"]["one_pass"] > 100


def test_wrong_values_and_exceptions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(np: Any, a: Any, b: Any, k: int) -> list[Any]:
        if np is threads.lazynp and k == 5:
            raise ValueError("five")
        return [a + (np is threads.lazynp)]

    monkeypatch.setattr(threads, "TASKS", [threads.Task(threads.SMALL, 1, run)])
    found = threads.run(2, 200).wrong
    assert any("run with 3" in text for text in found)
    assert any(text.endswith("ValueError: five") for text in found)
