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
from lazynp.graph import op as o
from lazynp.values import config
from tests.differential import history
from tests.differential.bounds import Bounded, Unbounded, words
from tests.differential.programs import check, difference, grammar_of, report
from tests.differential.statements import write
from tests.differential.writer import Program

EXAMPLES: Final = int(os.environ.get("LAZYNP_EXAMPLES", 300))
COMPILED: Final = EXAMPLES * 2 // 15
HISTORIES: Final = EXAMPLES // 15  # programs that run again and again
if os.environ.get("LAZYNP_NEW_EXAMPLES") == "1":
    # Workers of xdist inherit the environment, and with it the first seed.
    os.environ.setdefault("LAZYNP_SEED", str(random.randrange(10**9)))
FIRST: Final = int(os.environ.get("LAZYNP_SEED", 0))
CHUNK: Final = 50


def chunks(first: int, end: int, size: int) -> list[Any]:
    """First seeds of chunks; the quick pass has one chunk."""
    return [pytest.param(seed, marks=pytest.mark.slow if seed > first else ()) for seed in range(first, end, size)]


LIMITS: Final = (config.tape_limit, 0, 40)  # the user's configuration, everything recorded, and arrays on both sides of the limit


@pytest.mark.parametrize("seed", chunks(FIRST, FIRST + EXAMPLES - COMPILED, CHUNK))
def test_programs(seed: int) -> None:
    found = []
    for k in range(seed, min(seed + CHUNK, FIRST + EXAMPLES - COMPILED)):
        below = LIMITS[k // 3 % 3]
        with config.override(tape_limit=below):
            text = check(k, grammar_of(k), "auto")
        found.append(text and f"LAZYNP_TAPE_LIMIT={below}\n{text}")
    assert not any(found), "\n\n".join([text for text in found if text])


@pytest.mark.slow
@pytest.mark.usefixtures("recorded", "compiled")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COMPILED, CHUNK // 5))
def test_compiled_programs(seed: int) -> None:
    found = [check(k, grammar_of(k), "compiled") for k in range(seed, min(seed + CHUNK // 5, FIRST + COMPILED))]
    assert not any(found), "\n\n".join([text for text in found if text])


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("seed", chunks(FIRST, FIRST + HISTORIES, CHUNK // 10))
def test_programs_have_the_same_bits_in_every_run(seed: int, recorded: bool) -> None:
    with config.override(tape_limit=0 if recorded else 40):
        found = [history.check(k) for k in range(seed, min(seed + CHUNK // 10, FIRST + HISTORIES))]
    assert not any(found), "\n\n".join([text for text in found if text])


# Where the bits of NumPy's routines depend on how their operands lie in memory.
LAYOUTS: Final = {
    "complex sums": ["v1 = v0.T * 1.1 + 1j * v0.T", "v2 = (v1 * v1).sum(axis=1)", "v3 = (v1 * v1).sum()"],
    "running sums": ["v1 = (v0.T * 1.1).cumsum(axis=0)", "v2 = np.cumsum(v0.T * 1.3)"],
    "products": ["v1 = (v0.T * 1.1) @ (v0 * 0.3)", "v2 = np.exp(v0.T) @ v0[:, 0]", "v3 = np.sqrt(v0).T @ v0[:, 3]"],
    "library calls": ["v1 = np.einsum('ij,ji->i', v0 * 1.1, v0.T * 1.2)", "v2 = np.linalg.inv(v0 @ v0.T + np.eye(40))"],
    "means": ["v1 = np.var(v0.T * 1.3, axis=1)", "v2 = np.std(v0 * 0.3)", "v3 = np.linalg.norm(v0.T * 1.7, axis=0)"],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_transposed_operands_have_the_same_bits_in_every_run(name: str) -> None:
    with config.override(tape_limit=0):
        assert not history.difference(Program(0, "exact", ["v0 = (np.arange(2400.0).reshape(40, 60) % 7.3) * 0.1", *LAYOUTS[name]]))


def test_a_program_that_changes_its_bits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(o.EXP, "rounds", "")
    with config.override(tape_limit=0), lazynp.device("cpu"):  # whose NumPy tier this is about
        text = history.difference(Program(0, "inexact", ["v0 = np.exp(np.linspace(-3.0, 3.0, 200))"])) or ""
    assert text.startswith("v0 with nothing compiled")


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
    text = report(wrong, "auto", difference(wrong) or "")
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
