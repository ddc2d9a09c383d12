"""The CUDA target: loop nests of a grid to functions on one GPU.

In: programs.  Out: plans that run there.  Promise: one module per schedule miss, holding only the kernels that were not compiled before in
this process; nothing is decided by the clock, and every program is compiled: an operation of a handful of elements costs a launch.

A kernel serves every shape.  It looks only for the floating-point errors that the error state at recording asks for, so another state may
be another kernel.  In a profiler its name is its operations and the digest of its code, as in ``lazynp_exp_add_reduce_1f0c2b9a8d7e_p0``:
equal code is one kernel, whichever line it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lazynp.backends.base import CompileError, Plan, in_kernels
from lazynp.backends.common.disk_cache import digest
from lazynp.backends.cuda import compiler, render, scalars
from lazynp.backends.cuda.launch import DeviceKernel, DevicePlan, HostPlan
from lazynp.codegen import ir
from lazynp.codegen.grid import nest as grid
from lazynp.graph import op as o
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.lower import Body

if TYPE_CHECKING:
    from lazynp.backends.cuda.memory import Place

DIGITS: Final = 12  # of a kernel's digest, in its name: a module depends on no order, nor on what else was compiled

_can_be_rendered = cache(scalars.supported)  # asked of every operation of every program


def supported(program: Program, e: int) -> bool:
    """Tell whether entry e can be computed inside a kernel."""
    entry = program.entries[e]
    if entry.op is o.REDUCE and entry.arg[0] is o.MULTIPLY and entry.dtype.kind == "c":
        return False  # which of the parts overflow, and what comes of it, is a matter of the order
    return in_kernels(program, e, _can_be_rendered)


class CUDABackend:
    """Compiles programs for one GPU."""

    joins_calls = False  # each library call may be CuPy's

    def __init__(self, place: Place, numpy_plan: Callable[[Program], Plan]) -> None:
        self.place = place
        self.numpy_plan = numpy_plan
        self.name = place.name
        self.kernels: dict[bytes, DeviceKernel] = {}  # by the digest of their source with 32-bit indices
        self.compiled = 0

    def prepare(self, program: Program) -> Plan:
        return DevicePlan(program, self, self.numpy_plan)

    def on_host(self, program: Program) -> Plan:
        """The plan of a program that does not compile."""
        return HostPlan(self.numpy_plan(program), self.name)

    def threads(self) -> int:
        return 1

    def supported(self, program: Program, e: int) -> bool:
        return supported(program, e)

    def emit(self, body: Body) -> tuple[ir.Kernel, ir.Launch]:
        return grid.emit(body, self.place.shared)

    def render(self, code: ir.Kernel) -> str:
        return render.render("lzk", code, False)

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> list[tuple[Callable[[int], None], Any]]:
        raise NotImplementedError("kernels of a grid are launched by plans")

    def kernels_of(self, codes: Sequence[ir.Kernel], sources: Sequence[str], wide: Sequence[bool]) -> list[DeviceKernel]:
        """The kernels of these loop nests, compiled, with 64-bit indices where ``wide`` says so."""
        found = []
        missing: dict[tuple[int, bool], tuple[DeviceKernel, bool]] = {}
        for code, source, is_wide in zip(codes, sources, wide, strict=True):
            key = digest(source.encode())
            kernel = self.kernels.get(key)
            if kernel is None:
                kernel = self.kernels[key] = DeviceKernel(self, code, f"{render.name_of(code)}_{key.hex()[:DIGITS]}")
            if is_wide not in kernel.phases:
                missing[id(kernel), is_wide] = kernel, is_wide
            found.append(kernel)
        if missing:
            self.link(list(missing.values()))
        return found

    def link(self, kernels: Sequence[tuple[DeviceKernel, bool]]) -> None:
        """Compile kernels, all in one module."""
        names = [kernel.name + "_wide" * wide for kernel, wide in kernels]
        source = render.module([(name, kernel.code, wide) for name, (kernel, wide) in zip(names, kernels, strict=True)])
        functions = [[f"{name}_p{k}" for k in range(len(kernel.code.phases))] for name, (kernel, _) in zip(names, kernels, strict=True)]
        with self.place.running():
            try:
                found = compiler.functions(self.place.cupy, source, [name for row in functions for name in row], self.place.capability)
            except CompileError:
                # What was entered for this module must not be found without its code.
                self.kernels = {key: kernel for key, kernel in self.kernels.items() if kernel.phases}
                raise
            for (kernel, wide), row in zip(kernels, functions, strict=True):
                kernel.linked(wide, [found[name] for name in row])
        self.compiled += len(kernels)
