"""Kernels that lazynp makes, on guarded memory: in several orders and under the race detector, and what they ask of memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import pytest

from lazynp.runtime import config
from tests.codegen.engines import compiled, first_difference
from tests.codegen.programs import program
from tests.codegen.test_grid import ROWS, STRUCTURE, nodes_of, operations
from tests.codegen.test_random_kernels import batches
from tests.cuda import guarded
from tests.cuda.emulator import Options

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # the values are at issue here

PROGRAMS = 60
OPTIONS = [Options("descending"), Options("random", 1), Options("random", 2, races=True)]
ROUNDED = {"exp", "sin", "log", "tanh"}  # the host's functions and the compiled ones differ in last bits


@pytest.fixture(autouse=True)
def _every_pass_is_checked() -> Iterator[None]:
    with config.override(debug=True):
        yield


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_every_kind_of_launch(name: str, options: Options) -> None:
    function, shape = ROWS[name]
    nodes = nodes_of(function, numpy.random.default_rng(0).standard_normal(shape).astype("f"))
    (got,), target = guarded.run(nodes, options)
    assert target.launches
    assert not first_difference(got, compiled(nodes)[0])


@pytest.mark.parametrize("seeds", batches(PROGRAMS), ids=lambda seeds: f"seeds {seeds.start}-{seeds.stop - 1}")
def test_random_programs(seeds: range) -> None:
    for seed in seeds:
        nodes = program(seed)
        if not nodes:
            continue
        expected = compiled(nodes)
        for options in OPTIONS:
            got, _ = guarded.run(nodes, options, wide=seed % 2 == 1)
            if ROUNDED & {op.name for op in operations(nodes)}:
                continue
            for k, (a, b) in enumerate(zip(got, expected, strict=True)):
                assert not first_difference(a, b), f"seed {seed}, output {k}"
