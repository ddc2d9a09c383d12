"""Which programs are compiled, and when.

In: a ``Program``.  Out: a ``Plan``.  Promise: the choice depends on sizes and counts only, never on a clock: work that is large is compiled
when first seen, work that is small runs through the NumPy tier until it has come often enough to pay for its compilation, and work that
is tiny stays there.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import Any

from lazynp.backends.base import Backend, CompileError, Plan
from lazynp.graph.op import Kind
from lazynp.runtime.buffer import Buffer
from lazynp.schedule.canonicalise import Program

COMPILE_WORK = 6_000_000  # cost units (element operations) that pay for compiling one operation: some milliseconds each
TINY_WORK = 16_384  # below this a run is all overhead, and NumPy's is the smaller one


def work(program: Program) -> tuple[int, int]:
    """(cost of one run in vectorised element operations, what a compilation costs in the same unit)."""
    total = operations = 0
    for entry in program.entries:
        kind = entry.op.kind
        if kind is not Kind.LEAF and kind is not Kind.MOVEMENT:
            operations += 1
            total += prod(entry.shape) * max(entry.op.cost, 1)
        if kind is Kind.REDUCTION:
            total += prod(program.entries[entry.src[0]].shape)
    return total, operations * COMPILE_WORK


class TieredPlan:
    """A plan of the NumPy tier that counts what it does, and is compiled once that has cost enough."""

    __slots__ = ("compiler", "cost", "left", "plan", "program")

    def __init__(self, program: Program, plan: Plan, compiler: Backend, cost: int, price: int) -> None:
        self.program: Program | None = program
        self.plan = plan
        self.compiler = compiler
        self.cost = cost
        self.left = price

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any]) -> list[Buffer]:
        program = self.program
        if program is not None:
            self.left -= self.cost
            if self.left < 0:
                self.program = None
                # Where it cannot be compiled, the NumPy tier keeps serving this program.
                with suppress(CompileError):
                    self.plan = self.compiler.prepare(program)
        return self.plan.run(buffers, integers, scalars)


class TieredBackend:
    """Chooses between the NumPy tier and a compiling backend."""

    name = "auto"

    def __init__(self, numpy: Backend, compiler: Backend) -> None:
        self.numpy = numpy
        self.compiler = compiler

    def prepare(self, program: Program) -> Plan:
        cost, price = work(program)
        if cost >= price:
            return self.compiler.prepare(program)
        plan = self.numpy.prepare(program)
        if cost < TINY_WORK:
            return plan
        return TieredPlan(program, plan, self.compiler, cost, price)
