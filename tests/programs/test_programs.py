"""Small programs as users of NumPy write them come to NumPy's results, in both tiers, and cost what the record says.

``python -m tests.programs --record`` writes the record anew.
"""

from __future__ import annotations

import pytest

from tests.programs import table

RECORDED = table.recorded()


def test_record_is_of_these_programs() -> None:
    assert len(table.PROGRAMS) >= 200
    assert list(RECORDED) == list(table.PROGRAMS)


@pytest.mark.parametrize("name", table.PROGRAMS)
def test_program(name: str) -> None:
    program = table.PROGRAMS[name]
    tolerance = getattr(program, "tolerance", 0.0)
    want = table.run_numpy(program)
    for tier in table.TIERS:
        got, counters = table.run_lazynp(program, tier)
        found = table.difference(got, want, tolerance)
        assert found is None, f"{tier}: {found}"
    assert table.work(counters) == RECORDED[name]
