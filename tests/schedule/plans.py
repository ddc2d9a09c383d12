"""Schedules of arrays for tests: made, never run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazynp.arrays import node_of
from lazynp.codegen import pipeline
from lazynp.codegen.items import Schedule
from lazynp.codegen.measure import Measured, measure
from lazynp.engine.realize import compiler
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values import config


def pending(wanted: Any) -> list[Node]:
    """The nodes of ``wanted`` (an array or several) that have no value yet."""
    arrays: Sequence[Any] = wanted if isinstance(wanted, list | tuple) else (wanted,)
    return [node for node in map(node_of, arrays) if node.buffer is None]


def program_of(wanted: Any) -> Program:
    return Program.of(canonicalise(pending(wanted)))


def scheduled(wanted: Any) -> Schedule:
    """The schedule of ``wanted``, each pass checked against its specification."""
    with config.override(debug=True):
        return pipeline.scheduled(program_of(wanted), compiler())


def measured(wanted: Any) -> Measured:
    return measure(scheduled(wanted))
