"""Random programs give what NumPy gives; see ``programs`` for what is compared.

``LAZYNP_EXAMPLES=3000`` runs that many instead of a few hundred, two in fifteen of them compiled; the same ones every time, unless
``LAZYNP_NEW_EXAMPLES=1``.  Every report names its seed.
"""

from __future__ import annotations

import os
import random
from typing import Any, Final

import numpy
import pytest

import lazynp
from tests.differential.bounds import Bounded, Unbounded, words
from tests.differential.programs import check, difference, grammar_of, report
from tests.differential.statements import write
from tests.differential.writer import Program

EXAMPLES: Final = int(os.environ.get("LAZYNP_EXAMPLES", 300))
COMPILED: Final = EXAMPLES * 2 // 15
if os.environ.get("LAZYNP_NEW_EXAMPLES") == "1":
    # Workers of xdist inherit the environment, and with it the first seed.
    os.environ.setdefault("LAZYNP_SEED", str(random.randrange(10**9)))
FIRST: Final = int(os.environ.get("LAZYNP_SEED", 0))
CHUNK: Final = 50


def chunks(first: int, end: int, size: int) -> list[Any]:
    """First seeds of chunks; the quick pass has one chunk."""
    return [pytest.param(seed, marks=pytest.mark.slow if seed > first else ()) for seed in range(first, end, size)]


@pytest.mark.parametrize("seed", chunks(FIRST, FIRST + EXAMPLES - COMPILED, CHUNK))
def test_programs(seed: int) -> None:
    found = [check(k, grammar_of(k), "auto") for k in range(seed, min(seed + CHUNK, FIRST + EXAMPLES - COMPILED))]
    assert not any(found), "\n\n".join([text for text in found if text])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COMPILED, CHUNK // 5))
def test_compiled_programs(seed: int) -> None:
    found = [check(k, grammar_of(k), "compiled") for k in range(seed, min(seed + CHUNK // 5, FIRST + COMPILED))]
    assert not any(found), "\n\n".join([text for text in found if text])


def test_a_seed_is_a_program() -> None:
    assert write(7, "exact").lines == write(7, "exact").lines != write(8, "exact").lines


@pytest.mark.slow
@pytest.mark.parametrize("grammar", ["exact", "inexact"])
def test_every_kind_of_statement_is_written(grammar: str) -> None:
    text = "\n".join([line for seed in range(150) for line in write(seed, grammar).lines])
    both = words("[::-1] .T .ravel( [...] += out= where= np.copyto( np.put( np.place( .flat .shape np.ix_ i] force( see(")
    for part in both + words("see(repr( .at( .sort( .view( np.putmask( 99" if grammar == "exact" else "np.exp( np.sum( @"):
        assert part in text, part


@pytest.mark.slow
def test_a_wrong_function_is_found_and_its_program_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    roll = lazynp.roll
    monkeypatch.setattr(lazynp, "roll", lambda x, shift, axis=None: roll(x, shift + 1, axis))
    wrong = next(program for seed in range(1000) if difference(program := write(seed, "exact")))
    text = report(wrong, "auto")
    assert "np.roll(" in text
    assert f"seed {wrong.seed}" in text
    assert len([line for line in text.splitlines() if line.startswith("v")]) < 8


def test_a_forced_read_that_changes_something_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def realize(x: Any) -> None:
        x[...] = 7

    monkeypatch.setattr(lazynp.ndarray, "realize", realize)
    program = Program(0, "exact", ["v0 = np.zeros(3)", "force(v0)"])
    assert (difference(program) or "").startswith("value: v0")


def test_bounds_follow_views_and_refuse_decisions() -> None:
    x = Bounded(numpy.ones((2, 3)))
    y = numpy.exp(x)
    assert (y.e > 0).all()
    x[0, ::2] = y[1, ::-2]
    assert (x.T.e > 0).tolist() == [[True, False], [False, False], [True, False]]
    with pytest.raises(Unbounded):
        y > 1
    with pytest.raises(Unbounded):
        y.astype(int)
    with pytest.raises(Unbounded):
        numpy.ones(3)[y]
