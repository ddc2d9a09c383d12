"""The LLVM target: loop nests to machine code for this processor.

In: loop nests.  Out: functions of an argument block.  Promise: one module per schedule miss, holding only the kernels that were not
compiled before in this process; what was compiled before in another one comes from the disk cache.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from lazynp.backends.base import CompileError, Plan
from lazynp.backends.common import disk_cache
from lazynp.backends.common.compiled import CompiledPlan
from lazynp.backends.common.disk_cache import digest
from lazynp.backends.common.interrupts import aside
from lazynp.backends.llvm import client, compiler, phases, render, support, threads
from lazynp.backends.llvm import loader as _loader  # noqa: F401 (a kernel is compiled in a thread, which imports nothing)
from lazynp.backends.llvm import toolchain as _toolchain  # noqa: F401
from lazynp.backends.llvm.polynomials import functions  # noqa: F401
from lazynp.backends.llvm.supported import supported
from lazynp.codegen import ir, pipeline
from lazynp.codegen.block import Layout
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.families import is_of_family, prepared, shares
from lazynp.schedule.lower import Body
from lazynp.values import config
from lazynp.values.loading import load

NEST = "lazynp.codegen.nest"  # loaded the first time something is compiled
RENDERED = 64  # programs whose kernels are kept as text, for they are soon asked for again


class LLVMBackend:
    """Compiles programs; library calls and unsupported operations go through the NumPy tier."""

    name = "llvm"
    joins_calls = True

    def __init__(self, numpy_plan: Callable[[Program], Plan]) -> None:
        self.numpy_plan = numpy_plan
        # by whether they are optimised, and the digest of their text, which need not stay
        self.kernels: dict[tuple[bool, bytes], tuple[Callable[[int], None], Layout]] = {}
        self.how = compiler.WAIT  # see ``compile_module``
        self.rendered: dict[int, tuple[Program, Any]] = {}  # what was not compiled yet, by the program's identity

    @property
    def compiled(self) -> int:
        """Return the number of kernels there is machine code for."""
        return len(self.kernels)

    def kept(self, program: Program) -> Plan | None:
        """The plan of a program whose machine code is there, or was looked for by an earlier process, too; else None."""
        try:
            return self._made(program, compiler.LOOK)
        except (CompileError, compiler.CompilingError, OSError, MemoryError):  # the NumPy tier needs neither LLVM nor as much memory
            return None

    @property
    def ahead(self) -> bool:
        """Tell whether programs are compiled while others run."""
        return client.ahead()

    def begin(self, program: Program) -> Plan | tuple[Any, ...]:
        """The plan of a program, or what compiles it meanwhile: when all of that is over, it is to be asked for again."""
        try:
            return self._made(program, compiler.BEGIN)
        except compiler.CompilingError as error:
            return error.works
        except OSError as error:
            raise CompileError(f"LLVM could not be loaded: {error}") from error

    def _made(self, program: Program, how: str) -> Plan:
        """Compile a program in another way than by waiting for it."""
        load(NEST)
        other = copy.copy(self)
        other.how = how
        _, rendered = self.rendered.pop(id(program), (None, None))
        rendered = rendered or aside(pipeline.rendered, program, other)
        try:
            plan = aside(CompiledPlan, program, other, self.numpy_plan, rendered)
        except (compiler.CompilingError, CompileError):
            if self.ahead:
                if len(self.rendered) >= RENDERED:
                    self.rendered.clear()
                self.rendered[id(program)] = program, rendered
            raise
        if is_of_family(program):
            return self.prepare(program)
        plan.target = self
        return plan

    def prepare(self, program: Program) -> Plan:
        def make() -> Plan:
            made: Plan = prepared(self.name, program, lambda program: CompiledPlan(program, self, self.numpy_plan))
            return made

        load(NEST)
        try:
            return make() if shares(self.name, program) else aside(make)
        except OSError as error:  # LLVM itself: no memory to map it, or it is not all there
            raise CompileError(f"LLVM could not be loaded: {error}") from error

    def threads(self) -> int:
        return threads.count()

    def supported(self, program: Program, e: int) -> bool:
        return supported(program, e)

    def emit(self, body: Body) -> tuple[ir.Kernel, ir.Launch]:
        launch: tuple[ir.Kernel, ir.Launch] = load(NEST).emit(body)
        return launch

    def render(self, code: ir.Kernel) -> str:
        return render.render([("lzk", code)])

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> list[tuple[Callable[[int], None], Layout]]:
        keys = [(config.optimize, digest(source.encode())) for source in sources]
        missing = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in self.kernels}
        if missing:
            aside(self._look if self.how == compiler.LOOK else self._add, missing, self.how)
        return [self.kernels[key] for key in keys]

    def _look(self, kernels: dict[tuple[bool, bytes], ir.Kernel], how: str) -> None:
        """Take kernels from the disk, or compile them if another process looked for them before."""
        try:
            self._add(kernels, how)
        except CompileError:
            if not disk_cache.shared().wanted(digest(b"".join([source for _, source in kernels])).hex()):
                raise
            self._add(kernels, compiler.BEGIN if self.ahead else compiler.WAIT)

    def _add(self, kernels: dict[tuple[bool, bytes], ir.Kernel], how: str) -> None:
        """Compile kernels into one module."""
        names = {key: f"lzk{position}" for position, key in enumerate(kernels)}
        try:
            module = render.render([(names[key], kernel) for key, kernel in kernels.items()])
            level = 3 if any(map(render.tests_divisors, kernels.values())) else 1
            works = [compiler.begin(module, list(names.values()), level)] if how == compiler.BEGIN else []
            for provide in (support.provide, phases.provide):  # what it is linked to
                try:
                    provide(kernels.values(), how)
                except compiler.CompilingError as error:
                    works += error.works
            works = [work for work in works if work is not None]
            if works:
                raise compiler.CompilingError(tuple(works))
            addresses = compiler.compile_module(module, list(names.values()), level, how)
        except compiler.CompilingError:
            raise
        except compiler.CompileError as error:
            raise CompileError(str(error)) from error
        for key, kernel in kernels.items():
            self.kernels.setdefault(key, (_PROTOTYPE(addresses[names[key]]), Layout(kernel)))  # another thread may have been as quick


_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
