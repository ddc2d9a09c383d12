"""Host programs with planted bugs: each right one passes under every seed, each bug is noticed under one at least.

In: ``hosts.HOSTS``.  Out: failures.  Promise: ``python -m tests.gpu_emulator.test_hosts`` prints which seed notices what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpu_emulator import fakecupy
from tests.gpu_emulator.hosts import HOSTS

SEEDS = range(2 * len(fakecupy.SEEDS))


def outcome(program: Callable[[Any, bool], None], planted: bool, seed: int) -> BaseException | None:
    """What a program ended with under a seed."""
    try:
        with fakecupy.installed(seed=seed, devices=2):
            import cupy

            program(cupy, planted)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("program", HOSTS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_right_program(program: Callable[[Any, bool], None], seed: int) -> None:
    error = outcome(program, False, seed)
    if error is not None:
        raise error


@pytest.mark.parametrize("program", HOSTS, ids=lambda program: program.__name__)
def test_planted_bug_is_noticed(program: Callable[[Any, bool], None]) -> None:
    assert any(outcome(program, True, seed) for seed in SEEDS)


def main() -> None:
    for program in HOSTS:
        found = {seed: error for seed in SEEDS if (error := outcome(program, True, seed))}
        first = next(iter(found.values()), None)
        marks = "".join("x" if seed in found else "." for seed in SEEDS)
        print(f"{program.__name__:28} {marks}  {type(first).__name__}: {' '.join(str(first).split())[:100]}")


if __name__ == "__main__":
    main()
