"""A target whose kernels are rendered as CUDA C and run by the emulator, on the host's own memory.

In: loop nests of a grid.  Out: functions of an argument block, as a back end's.  It has nothing of a device's host code: what it tests is
the loop nests and their rendering.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_emulator import execution
from lazynp.backends.common.compiled import CompiledPlan
from lazynp.backends.cuda import render, scalars
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.codegen.items import LibraryItem
from lazynp.engine.realize import backend
from lazynp.graph import op as o
from lazynp.graph.errors import ALL
from lazynp.graph.node import Node
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Program, canonicalise
from tests.codegen.engines import Array, run
from tests.codegen.machine import GridMachine

# What a thread does at its end with the errors it noted, in tests of that.
EACH = "    flags[blockIdx.x * blockDim.x + threadIdx.x] = noted;"


def plan_of(
    nodes: Sequence[Node], wide: bool = False, order: str = "ascending", noted: Array | None = None, wanted: int = ALL
) -> CompiledPlan:
    """Kernels for a grid, rendered; ``wide`` is the renderer's, ``order`` the emulator's.

    With ``noted`` every thread of a kernel writes there what errors it notes, of those that are ``wanted``.
    """
    prepare = backend("numpy").prepare
    return CompiledPlan(Program.of(canonicalise(nodes)), RenderedTarget(prepare, wide, order, noted, wanted), prepare)


def compiled(nodes: Sequence[Node], library: bool = True) -> list[Array]:
    """What ``tests.codegen.engines.compiled`` gives, through the rendered kernels."""
    made = plan_of(nodes)
    if not library:
        assert not any(isinstance(item, LibraryItem) for item in made.schedule.items), made.schedule.partition.reasons
    return run(made, nodes)


class RenderedTarget(GridMachine):
    def __init__(self, numpy_plan: Any, wide: bool, order: str, noted: Array | None, wanted: int = ALL) -> None:
        super().__init__(numpy_plan)
        self.wanted = wanted
        self.noted = noted
        self.wide = wide
        self.options = execution.Options(order=order)

    def supported(self, program: Program, e: int) -> bool:
        entry = program.entries[e]
        if entry.op.kind is not Kind.ELEMENTWISE or 0 in entry.shape:
            return super().supported(program, e)
        sources = [program.entries[s].dtype for s in entry.src]
        return scalars.supported(entry.op, entry.dtype, sources[1:] if entry.op is o.WHERE else sources)

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> Any:
        # A module for each, named alike: equal kernels are compiled once.
        if self.noted is not None:
            for kernel in kernels:
                kernel.errors = self.wanted
        sources = [render.module([("k", kernel, self.wide)]) for kernel in kernels]
        if self.noted is not None:
            report = "\n".join(render._ends("noted", self.wanted))
            assert all("noted" not in source or report in source for source in sources)
            sources = [source.replace(report, EACH) for source in sources]
        execution.precompile(sources)
        modules = [execution.Module(source, self.options) for source in sources]
        return [(launcher(module, kernel, self.noted, self.wide), Layout(kernel)) for module, kernel in zip(modules, kernels, strict=True)]


def launcher(module: execution.Module, kernel: ir.Kernel, noted: Array | None, wide: bool) -> Callable[[int], None]:
    layout = Layout(kernel)
    counters = np.zeros(ir.COUNTERS, np.uint32)  # every launch leaves them so

    def run(address: int) -> None:
        slots = np.ctypeslib.as_array((ctypes.c_int64 * layout.slots).from_address(address))

        def value(operand: str) -> int:
            return int(slots[layout.integers + int(operand[1:])]) if operand[0] == "n" else int(operand)

        passed = slots.copy()
        passed[layout.error] = address + 8 * layout.error
        passed[layout.flags] = address + 8 * layout.flags if noted is None else noted.ctypes.data
        passed[layout.counters] = counters.ctypes.data
        for k in () if wide else render.divisors(kernel):
            passed[layout.integers + k] = render.reciprocal(int(passed[layout.integers + k]))
        for number, phase in enumerate(kernel.phases):
            dynamic = sum(value(x.count) * x.dtype.itemsize for x in phase.shared if not x.count.isdigit())
            module.function(f"k_p{number}")((value(phase.count), 1, 1), (phase.threads, 1, 1), passed.tobytes(), dynamic)

    return run
