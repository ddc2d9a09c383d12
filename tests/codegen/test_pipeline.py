"""The list of passes: it is complete, it is the only one, and each of its passes is tested by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazynp as np
from lazynp.codegen import pipeline, spec
from lazynp.codegen.items import Schedule
from lazynp.codegen.pipeline import PASSES
from lazynp.engine.realize import compiler
from lazynp.values import config
from tests.schedule.graphs import matrix, softmax, vector
from tests.schedule.plans import program_of

pytestmark = pytest.mark.usefixtures("recorded")

TESTS = Path(__file__).parent.parent


def test_passes_by_name() -> None:
    assert [step.name for step in PASSES] == ["simplify", "fuse", "lower", "order", "memory", "nest", "render"]


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
def test_each_pass_has_a_check_and_a_test_of_its_own(step: pipeline.Pass) -> None:
    assert callable(getattr(spec, step.check))
    assert step.check in spec.__all__
    assert list(TESTS.glob(f"*/test_{step.name}.py")) or step.name == "render"


def test_a_schedule_is_whole_before_it_is_rendered() -> None:
    made = pipeline.scheduled(program_of(softmax(matrix(), 1)), compiler())
    assert isinstance(made, Schedule)
    assert [bool(item.code.phases) for item in made.kernels] == [True]


def test_sources_are_those_of_the_kernels_in_order() -> None:
    target = compiler()
    made, sources = pipeline.rendered(program_of([np.exp(vector()), np.sort(vector()), matrix().sum(axis=1)]), target)
    assert sources == [target.render(item.code) for item in made.kernels]
    assert "exp" in "".join(sources)


def test_a_pass_that_breaks_its_promise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(program: object, target: object) -> object:
        made = PASSES[0].run(program, target)
        made.outputs = (len(made.entries),)
        return made

    monkeypatch.setattr(pipeline, "PASSES", (PASSES[0]._replace(run=forgetful), *PASSES[1:]))
    with config.override(debug=True), pytest.raises(spec.SpecError, match="program: outputs"):
        pipeline.scheduled(program_of(vector() * 2), compiler())
