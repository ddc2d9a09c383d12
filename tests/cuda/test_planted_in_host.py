"""Bugs planted in the CUDA backend's host code are noticed on the fake device, and the programs that notice them pass without.

In: ``planted.BUGS`` and ``planted.SCENARIOS``.  Out: failures.  Promise: each bug runs in a process of its own.
"""

from __future__ import annotations

import pytest

from gpu_emulator import fakecupy
from tests.cuda import planted


@pytest.mark.parametrize("seed", fakecupy.SEEDS)
@pytest.mark.parametrize("scenario", planted.SCENARIOS)
def test_scenario(scenario: str, seed: int) -> None:
    planted.run(scenario, seed)


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name)
def test_planted_bug_is_noticed(bug: planted.Bug) -> None:
    seed, _ = planted.noticed(bug)
    assert seed >= 0
