"""Kernels of named programs, as CUDA C.

In: the tables of graphs of the scheduler's tests and of kinds of launches, random programs by seed.  Out: for each name the sources of
its kernels, one function a launch; equal kernels are one source.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from lazynp.backends.cuda import render
from lazynp.codegen import pipeline
from lazynp.codegen.items import KernelItem
from lazynp.engine.realize import backend
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values import config
from tests.codegen.machine import GridMachine
from tests.codegen.programs import program
from tests.codegen.test_grid import ROWS, STRUCTURE, nodes_of
from tests.schedule.graphs import GRAPHS
from tests.schedule.plans import pending


def sources(nodes: Sequence[Node]) -> list[str]:
    schedule = pipeline.scheduled(Program.of(canonicalise(nodes)), GridMachine(backend("numpy").prepare))
    return [render.module([("k", item.code, False)]) for item in schedule.items if isinstance(item, KernelItem)]


def _programs() -> Iterator[tuple[str, Sequence[Node]]]:
    for graph in GRAPHS:
        yield graph.name, pending(graph.build())
    for table in (ROWS, STRUCTURE):
        for name, (function, shape, *_) in table.items():
            for dtype in ("f8", "f4"):
                yield f"{name}, {dtype}", nodes_of(function, np.ones(shape, dtype))


@functools.cache
def named() -> dict[str, list[str]]:
    """The sources of the named programs."""
    with config.override(numbers="wait"):  # as on GPUs, whoever asks first
        return {name: sources(nodes) for name, nodes in _programs() if nodes}


@functools.cache
def of_random_programs(count: int) -> list[str]:
    """Distinct sources of the first random programs."""
    found: dict[str, None] = {}
    for seed in range(count):
        nodes = program(seed)
        if nodes:
            found.update(dict.fromkeys(sources(nodes)))
    return list(found)
