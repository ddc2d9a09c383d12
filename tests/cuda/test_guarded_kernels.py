"""Kernels that lazynp makes, on guarded memory: in several orders and under the race detector, and what they ask of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

from gpu_emulator.execution import EmulationError, Options
from lazynp.backends.cuda import render
from lazynp.values import config
from tests.codegen.engines import compiled, first_difference
from tests.codegen.programs import program
from tests.codegen.test_grid import ROWS, nodes_of, operations
from tests.codegen.test_random_kernels import batches
from tests.cuda import guarded

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning"),  # the values are at issue here
    pytest.mark.usefixtures("numbers_wait"),
]

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


def test_the_last_block_sees_the_pieces_of_others_by_a_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = nodes_of(lambda m, x: x.sum(), numpy.ones(20_000, "f"))
    module = render.module
    monkeypatch.setattr(render, "module", lambda kernels: module(kernels).replace("__threadfence();", "", 1))
    with pytest.raises(EmulationError, match="race"):
        guarded.run(nodes, Options(races=True))


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


# What they ask of memory --------------------------------------------------------------------------------------------------


def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# function, shape, elements read of each element of the input, transactions over the least possible: of device memory, of shared memory
STANDARD: dict[str, tuple[Callable[..., Any], tuple[int, ...], float, float, float]] = {
    "elementwise": (lambda m, x: x * 2 - 1, (8192,), 1, 1, 1),
    "elementwise, many": (lambda m, x: x * 2 - 1, (1 << 18,), 1, 1, 1),
    "two uses of a value": (lambda m, x: x * x - m.abs(x), (8192,), 1, 1, 1),
    "transposed": (lambda m, x: m.ascontiguousarray(x.T) * 2, (64, 128), 1, 1, 1),
    "with its transpose": (lambda m, x: x + x.T, (64, 64), 2, 1, 1),
    "row sums": (lambda m, x: x.sum(axis=1), (64, 512), 1, 1, 1),
    "long row sums": (lambda m, x: x.sum(axis=1), (4, 32768), 1, 1, 1.5),
    "sum": (lambda m, x: x.sum(), (1 << 16,), 1, 1.05, 1),
    "column sums": (lambda m, x: x.sum(axis=0), (256, 512), 1, 1, 1),
    "softmax": (softmax, (16, 1024), 1, 1, 1),
    "normalised rows": (lambda m, x: (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True), (16, 1024), 1, 1, 1),
    "every second": (lambda m, x: x[::2] + 1, (8192,), 0.5, 2, 1),
}


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", STANDARD)
def test_access_patterns(name: str, dtype: str) -> None:
    function, shape, read, of_device, of_block = STANDARD[name]
    x = numpy.random.default_rng(0).standard_normal(shape).astype(dtype)
    nodes = nodes_of(function, x)
    (got,), target = guarded.run(nodes, Options(trace=True))
    numpy.testing.assert_allclose(got, function(numpy, x), rtol=2e-4, atol=1e-4)
    accesses = [access for _, trace in target.launches for access in trace]
    for space, limit in (("global", of_device), ("shared", of_block)):
        here = [access for access in accesses if access.space == space]
        transactions, ideal = sum(access.transactions for access in here), sum(access.ideal for access in here)
        assert transactions <= limit * ideal, (space, here)
    # a word that all lanes read alike is not the input
    loads = [a for a in accesses if (a.space, a.write) == ("global", False) and (a.ideal > a.requests or a.lanes == a.requests)]
    assert sum(access.lanes * access.size for access in loads) <= 1.05 * read * x.nbytes
