"""A target whose kernels are rendered as CUDA C and run by the emulator, on the host's own memory.

In: loop nests of a grid.  Out: functions of an argument block, as a back end's.  It has nothing of a device's host code: what it tests is the
loop nests and their rendering.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazynp.backends.cuda import render
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from tests.codegen.machine import GridMachine
from tests.cuda import emulator

ORDERS = ("ascending", "descending", "random")


class RenderedTarget(GridMachine):
    """``wide`` and ``order`` are the renderer's and the emulator's; ``races`` has conflicting accesses found."""

    def __init__(self, numpy_plan: Any, wide: bool = False, order: str = "ascending", races: bool = False) -> None:
        super().__init__(numpy_plan)
        self.wide = wide
        self.options = emulator.Options(order=order, races=races)

    def compile(self, kernels: Sequence[ir.Kernel]) -> Any:
        # A module for each, named alike: equal kernels are compiled once.
        sources = [render.module([("k", kernel, self.wide)]) for kernel in kernels]
        emulator.precompile(sources, self.options.races)
        modules = [emulator.Module(source, self.options) for source in sources]
        return [(launcher(module, kernel), Layout(kernel)) for module, kernel in zip(modules, kernels, strict=True)]


def launcher(module: emulator.Module, kernel: ir.Kernel) -> Callable[[int], None]:
    layout = Layout(kernel)

    def run(address: int) -> None:
        slots = np.ctypeslib.as_array((ctypes.c_int64 * layout.slots).from_address(address))

        def value(operand: str) -> int:
            return int(slots[layout.integers + int(operand[1:])]) if operand[0] == "n" else int(operand)

        passed = slots.copy()
        passed[layout.error] = address + 8 * layout.error
        passed[layout.flags] = address + 8 * layout.flags
        for number, phase in enumerate(kernel.phases):
            dynamic = sum(value(x.count) * x.dtype.itemsize for x in phase.shared if not x.count.isdigit())
            module.function(f"k_p{number}")((value(phase.count), 1, 1), (phase.threads, 1, 1), passed.tobytes(), dynamic)

    return run
