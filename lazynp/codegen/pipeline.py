"""All passes, from the structure of a program to the source of its kernels: the file to open first.

In: a ``Program`` (``schedule/canonicalise.py`` made it of nodes) and the target it is made for.  Out: its ``Schedule``, and the source of
each kernel.  Promise: this list is the only place where passes are put together; each takes what the one before it made, and under
``LAZYNP_DEBUG`` what it hands on is checked against its specification.

What comes after is the target's: a source is the key of its kernel cache, and what is not there is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from lazynp.codegen import ir
from lazynp.codegen.items import Rendered, Schedule, arranged, assign, generate, render
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.fuse import partition
from lazynp.schedule.lower import Body, lower
from lazynp.schedule.simplify import simplify
from lazynp.values import config
from lazynp.values.loading import load
from lazynp.values.records import Row


class Target(Protocol):
    """A target is what kernels are made for, as far as the passes ask."""

    joins_calls: bool  # whether library calls that follow one another are run as one

    def supported(self, program: Program, e: int) -> bool:
        """Tell whether entry e can be computed inside a kernel."""
        ...

    def emit(self, body: Body) -> tuple[ir.Kernel, ir.Launch]:
        """The loop nest of a kernel."""
        ...

    def render(self, code: ir.Kernel) -> str:
        """The source of a loop nest: equal ones have equal sources."""
        ...


class Pass(Row):
    """A pass is a step: ``run(product of the one before, target)``; ``check`` is the function of ``codegen/spec.py`` for what it makes."""

    name: str
    run: Callable[[Any, Target], Any]
    check: str


PASSES: Final = (
    Pass("simplify", lambda program, _: simplify(program), "check_program"),  # Program -> Program
    Pass("fuse", lambda program, target: partition(program, target.supported), "check_partition"),  # -> Partition
    Pass("lower", lambda parts, _: lower(parts), "check_lowered"),  # -> Lowered
    Pass("order", lambda lowered, target: arranged(lowered, target.supported, target.joins_calls), "check_order"),  # -> Schedule
    Pass("memory", lambda schedule, _: assign(schedule), "check_memory"),  # the same, filled in
    Pass("nest", lambda schedule, target: generate(schedule, target.emit), "check_kernels"),  # likewise
    Pass("render", lambda schedule, target: render(schedule, target.render), "check_rendered"),  # -> Rendered
)


def rendered(program: Program, target: Target) -> Rendered:
    """Make the schedule of ``program`` with the sources of its kernels: every pass."""
    made: Rendered = _run(program, target, PASSES)
    return made


def scheduled(program: Program, target: Target) -> Schedule:
    """Make the schedule of ``program``, as it is before rendering."""
    made: Schedule = _run(program, target, PASSES[:-1])
    return made


def _run(program: Program, target: Target, passes: Iterable[Pass]) -> Any:
    # The checks would find out all about the sizes of a traced program; what is made of it is compared with a plan of plain numbers.
    check = _check if config.debug and not program.traced else None
    product: Any = program
    if check:
        check("check_structure", product)
    for step in passes:
        product = step.run(product, target)
        if check:
            check(step.check, product)
    return product


def _check(name: str, product: Any) -> None:
    getattr(load("lazynp.codegen.spec"), name)(product)  # only for who debugs
