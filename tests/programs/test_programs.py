"""Small programs as users of NumPy write them come to NumPy's results, in both tiers, and cost what the record says.

``python -m tests.programs --record`` writes the record anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lazynp.engine.realize import forget_plans
from lazynp.schedule import cost
from lazynp.values import config
from tests.programs import table

RECORDED = table.recorded()


def test_record_is_of_these_programs() -> None:
    assert len(table.PROGRAMS) >= 200
    assert list(RECORDED) == list(table.PROGRAMS)


@pytest.mark.parametrize("name", table.PROGRAMS)
def test_program(name: str) -> None:
    program = table.PROGRAMS[name]
    got, _ = table.run_lazynp(program, "auto", counted=False)
    assert table.difference(got, table.run_numpy(program), table.tolerance(program)) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", table.PROGRAMS)
def test_compiled_program_and_its_work(name: str) -> None:
    program = table.PROGRAMS[name]
    got, counters = table.run_lazynp(program, "compiled")
    assert table.difference(got, table.run_numpy(program), table.tolerance(program)) is None
    if not config.at_hand:  # else most of the arrays were computed at the call
        assert table.work(counters) == RECORDED[name]


@pytest.fixture
def _every_write_a_kernel_in_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sizes from which on writes are compiled and claim their array's memory, lowered to what these programs have."""
    monkeypatch.setattr(cost, "SMALL_STORE", 1)
    monkeypatch.setattr(cost, "CLAIM_BYTES", 1)
    monkeypatch.setattr(cost, "CLAIM_SHARE", 1.0)
    forget_plans()
    yield
    forget_plans()


@pytest.mark.slow
@pytest.mark.usefixtures("_every_write_a_kernel_in_place")
@pytest.mark.parametrize("name", table.PROGRAMS)
def test_program_with_every_write_a_kernel(name: str) -> None:
    program = table.PROGRAMS[name]
    got, _ = table.run_lazynp(program, "compiled", counted=False)
    assert table.difference(got, table.run_numpy(program), table.tolerance(program)) is None
