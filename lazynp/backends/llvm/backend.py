"""The LLVM target: loop nests to machine code for this processor.

In: loop nests.  Out: functions of an argument block.  Promise: one module per schedule miss, holding only the kernels that were not
compiled before in this process; what was compiled before in another one comes from the disk cache.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from math import prod

from lazynp.backends.base import CompileError, Plan, in_kernels
from lazynp.backends.common import disk_cache
from lazynp.backends.common.compiled import CompiledPlan
from lazynp.backends.common.disk_cache import digest
from lazynp.backends.common.interrupts import aside
from lazynp.backends.llvm import compiler, phases, render, scalars, support, threads
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.families import is_of_family, prepared, shares
from lazynp.schedule.lower import Body
from lazynp.values import config

_can_be_rendered = cache(scalars.supported)  # asked of every operation of every program


class LLVMBackend:
    """Compiles programs; library calls and unsupported operations go through the NumPy tier."""

    name = "llvm"
    joins_calls = True

    def __init__(self, numpy_plan: Callable[[Program], Plan]) -> None:
        self.numpy_plan = numpy_plan
        # by whether they are optimised, and the digest of their text, which need not stay
        self.kernels: dict[tuple[bool, bytes], tuple[Callable[[int], None], Layout]] = {}
        self.asks_llvm = True  # else only for what is kept

    @property
    def compiled(self) -> int:
        """Return the number of kernels there is machine code for."""
        return len(self.kernels)

    def kept(self, program: Program) -> Plan | None:
        """The plan of a program whose machine code is there, or was looked for by an earlier process, too; else None."""
        looking = copy.copy(self)
        looking.asks_llvm = False
        try:
            plan = aside(CompiledPlan, program, looking, self.numpy_plan)
            if is_of_family(program):
                return self.prepare(program)
            plan.target = self
            return plan
        except (CompileError, OSError, MemoryError):  # the NumPy tier needs neither LLVM nor as much memory
            return None

    def prepare(self, program: Program) -> Plan:
        def make() -> Plan:
            made: Plan = prepared(self.name, program, lambda program: CompiledPlan(program, self, self.numpy_plan))
            return made

        try:
            return make() if shares(self.name, program) else aside(make)
        except OSError as error:  # LLVM itself: no memory to map it, or it is not all there
            raise CompileError(f"LLVM could not be loaded: {error}") from error

    def threads(self) -> int:
        return threads.count()

    def supported(self, program: Program, e: int) -> bool:
        entry = program.entries[e]
        if entry.op is o.STORE and prod(program.entries[entry.src[1]].shape) < cost.SMALL_STORE:
            return False
        return in_kernels(program, e, _can_be_rendered)

    def emit(self, body: Body) -> tuple[ir.Kernel, ir.Launch]:
        from lazynp.codegen.nest import emit  # the first time something is compiled

        return emit(body)

    def render(self, code: ir.Kernel) -> str:
        return render.render([("lzk", code)])

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> list[tuple[Callable[[int], None], Layout]]:
        keys = [(config.optimize, digest(source.encode())) for source in sources]
        missing = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in self.kernels}
        if missing:
            aside(self._add if self.asks_llvm else self._look, missing)
        return [self.kernels[key] for key in keys]

    def _look(self, kernels: dict[tuple[bool, bytes], ir.Kernel]) -> None:
        """Take kernels from the disk, or compile them if another process looked for them before."""
        try:
            self._add(kernels, kept=True)
        except CompileError:
            if not disk_cache.shared().wanted(digest(b"".join([source for _, source in kernels])).hex()):
                raise
            self._add(kernels)

    def _add(self, kernels: dict[tuple[bool, bytes], ir.Kernel], kept: bool = False) -> None:
        """Compile kernels into one module; ``kept``: take it from the disk."""
        names = {key: f"lzk{position}" for position, key in enumerate(kernels)}
        try:
            support.provide(kernels.values(), kept)
            phases.provide(kernels.values(), kept)
            module = render.render([(names[key], kernel) for key, kernel in kernels.items()])
            level = 3 if any(map(render.tests_divisors, kernels.values())) else 1
            addresses = compiler.compile_module(module, list(names.values()), level, kept)
        except compiler.CompileError as error:
            raise CompileError(str(error)) from error
        for key, kernel in kernels.items():
            self.kernels[key] = _PROTOTYPE(addresses[names[key]]), Layout(kernel)


_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
