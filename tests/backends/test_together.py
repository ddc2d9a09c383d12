"""Operations of the NumPy tier that run in one pass."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.backends.numpy import compiled, source, together
from lazynp.engine import realize
from lazynp.graph import op as o
from lazynp.values import config
from tests.array import chained
from tests.differential import history
from tests.differential.programs import check, grammar_of

pytestmark = [pytest.mark.usefixtures("recorded")]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operations each pass had; passes of few elements, too."""
    found: list[int] = []

    def counted(of: Any, arrays: Any, numbers: Any, errors: int, room: Any) -> Any:
        made = core.pass_over(of, arrays, numbers, errors, room)
        found.append(0 if made is None else len(made))
        return made

    monkeypatch.setitem(source.NAMESPACE, "pass_over", counted)
    monkeypatch.setattr(together, "LEAST", 1)
    realize.forget_plans()
    return found


def test_random_programs(passes: list[int]) -> None:
    with config.override(tape_limit=0):
        found = [check(seed, grammar_of(seed), "auto") for seed in range(7_100_000, 7_100_120)]
    assert not any(found), "\n\n".join([text for text in found if text])
    assert sum(map(bool, passes)) > 10


def test_bits_are_the_same_in_every_run(passes: list[int]) -> None:
    with config.override(tape_limit=0):
        found = [history.check(seed) for seed in range(7_200_000, 7_200_012)]
    assert not any(found), "\n\n".join([text for text in found if text])
    assert passes


def test_an_expression_is_one_pass(passes: list[int]) -> None:
    a, b = lazynp.asarray(numpy.arange(1.0, 9)).copy(), lazynp.asarray(numpy.arange(8.0)).copy()
    lazynp.realize(a, b)
    passes.clear()
    y = lazynp.sqrt(a * a + b * b) * 0.5 - abs(a - b) / (1.0 + a * a)
    x, z = numpy.arange(1.0, 9), numpy.arange(8.0)
    assert numpy.asarray(y).tolist() == (numpy.sqrt(x * x + z * z) * 0.5 - abs(x - z) / (1.0 + x * x)).tolist()
    assert passes == [1]


def test_choices_are_in_the_pass(passes: list[int]) -> None:
    x, z = numpy.array([0.5, -0.0, 3.0, numpy.nan, -2.0, 0.0, 9.0, numpy.inf]), numpy.arange(8.0)
    a, b = lazynp.asarray(x).copy(), lazynp.asarray(z).copy()
    lazynp.realize(a, b)
    passes.clear()
    y = lazynp.clip(lazynp.where(a > b, a * 2, -b), 0.0, lazynp.where(b > 3, 1.0, b)) + 1
    with numpy.errstate(invalid="ignore"):
        expected = numpy.clip(numpy.where(x > z, x * 2, -z), 0.0, numpy.where(z > 3, 1.0, z)) + 1
    assert numpy.asarray(y).tobytes() == expected.tobytes()
    assert passes == [1]


def test_errors_are_told_at_the_line_that_raised_them(passes: list[int]) -> None:
    a = lazynp.asarray(numpy.array([1.0, 0.0, 3.0])).copy()
    lazynp.realize(a)
    y = (a + 1) * 2
    y = y / a
    y = y - 1
    with chained.told() as told:
        assert numpy.asarray(y).tolist() == [3.0, numpy.inf, 4 / 3 * 2 - 1]
    (warning,) = told
    assert str(warning.message) == "divide by zero encountered in divide"
    assert Path(warning.filename).read_text(encoding="utf-8").splitlines()[warning.lineno - 1].strip() == "y = y / a"
    assert passes[-1] == 0


@pytest.mark.skipif(not compiled.available(o.EXP, "d"), reason="the core has no functions of its own here")
def test_first_runs_of_large_arrays_load_no_compiler() -> None:
    program = """
import sys
import lazynp as np
a = np.random.default_rng(0).random(2_000_000)
float((np.exp(-a) * np.sin(3 * a) + 1).sum())
u = np.sqrt(a * a + 1) * 0.5 - np.abs(a - 2) / (1.0 + a)
u.realize()
print([name for name in sys.modules if name in ("llvmlite.binding", "lazynp.codegen.pipeline", "lazynp.backends.llvm.backend")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
