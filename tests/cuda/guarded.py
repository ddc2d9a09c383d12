"""Rendered kernels on guarded device memory: every buffer ends at a page that faults, and is NaN before it is written.

In: nodes and how the emulator runs.  Out: their values, and what was traced.  Promise: results, temporaries, workspaces and copies of
the inputs have their exact sizes, so that an access past any end, a read of what nobody wrote, and with ``races`` any conflict is found.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gpu_emulator import execution
from lazynp.backends.common import compiled
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.engine.realize import backend
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values.buffer import Buffer
from tests.codegen.engines import Array
from tests.cuda.rendered import RenderedTarget, render


class Block:
    """Guarded memory where a plan expects a block of the allocator."""

    align = 16

    def __init__(self, nbytes: int) -> None:
        self.address = execution.allocate(nbytes, align=self.align)
        self.nbytes = nbytes

    def __del__(self) -> None:
        execution.free(self.address)

    def view(self, dtype: Any, shape: tuple[int, ...]) -> Array:
        return execution.view(self.address, shape, dtype)


def copied(buffer: Buffer) -> Buffer:
    block: Any = Block(buffer.array.nbytes)
    block.view(buffer.dtype, buffer.shape)[...] = buffer.array
    return Buffer.of_block(block, buffer.dtype, buffer.shape)


class GuardedTarget(RenderedTarget):
    """Kernels in the emulator; ``launches`` are those that ran, with their traces."""

    def __init__(self, options: execution.Options, wide: bool) -> None:
        super().__init__(backend("numpy").prepare, wide, options.order, None)
        self.options = options
        self.launches: list[tuple[execution.Function, list[execution.Access]]] = []

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> Any:
        sources = [render.module([("k", kernel, self.wide)]) for kernel in kernels]
        execution.precompile(sources, self.options.races or self.options.trace)
        modules = [execution.Module(source, self.options) for source in sources]
        return [(self.launcher(module, kernel), Layout(kernel)) for module, kernel in zip(modules, kernels, strict=True)]

    def launcher(self, module: execution.Module, kernel: ir.Kernel) -> Callable[[int], None]:
        layout = Layout(kernel)

        def run(address: int) -> None:
            slots = np.ctypeslib.as_array((ctypes.c_int64 * layout.slots).from_address(address))

            def value(operand: str) -> int:
                return int(slots[layout.integers + int(operand[1:])]) if operand[0] == "n" else int(operand)

            words = Block(16)
            words.view(np.int64, (2,))[:] = slots[layout.error], slots[layout.flags]
            passed = slots.copy()
            passed[layout.error], passed[layout.flags] = words.address, words.address + 8
            counters = Block(4 * ir.COUNTERS)
            counters.view(np.dtype(np.uint32), (ir.COUNTERS,))[:] = 0
            passed[layout.counters] = counters.address
            for k in () if self.wide else render.divisors(kernel):
                passed[layout.integers + k] = render.reciprocal(int(passed[layout.integers + k]))
            for number, phase in enumerate(kernel.phases):
                dynamic = sum(value(x.count) * x.dtype.itemsize for x in phase.shared if not x.count.isdigit())
                function = module.function(f"k_p{number}")
                function((value(phase.count), 1, 1), (phase.threads, 1, 1), passed.tobytes(), dynamic)
                self.launches.append((function, function.trace))
            slots[layout.error], slots[layout.flags] = words.view(np.int64, (2,))
            assert not counters.view(np.dtype(np.uint32), (ir.COUNTERS,)).any(), "a counter that the next launch would find"

        return run


def run(nodes: Sequence[Node], options: execution.Options, wide: bool = False) -> tuple[list[Array], GuardedTarget]:
    """The values of ``nodes``, and the target with its launches."""
    target = GuardedTarget(options, wide)
    made = compiled.CompiledPlan(Program.of(canonicalise(nodes)), target, backend("numpy").prepare)
    canonical = canonicalise(nodes)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(compiled, "allocate", Block)
        patch.setattr(Block, "align", 512 if options.trace else 16)  # as CuPy's memory is, and as near to the guard as can be
        buffers = made.run([copied(buffer) for buffer in canonical.buffers], canonical.integers, canonical.scalars)
        return [buffer.array.copy() for buffer in buffers[: len(nodes)]], target
