"""Running schedules of compiled kernels.

In: a ``Program`` and a target that can compile loop nests.  Out: a ``Plan``.  Promise: running a plan is one pass over its items: fill in
an argument block, call; no rewriting, no compiler, no per-node work.  Small programs, and what a kernel reports to have failed, go to
the NumPy tier, which decides what the error is.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from ctypes import memmove
from math import prod
from typing import Any

from lazynp.backends.base import ExecutionError, Layout, Plan, Target
from lazynp.graph import op as o
from lazynp.runtime import config, report
from lazynp.runtime.allocator import allocate
from lazynp.runtime.buffer import Buffer
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.fuse import partition
from lazynp.schedule.plan import KernelItem, LibraryItem, Schedule, schedule
from lazynp.schedule.simplify import simplify

PARALLEL_WORK = 200_000.0  # cost units from which more than one thread is worth waking


def make_schedule(program: Program, target: Target) -> Schedule:
    """Steps 2 to 7: everything but the machine code."""
    if config.debug:
        return _checked_schedule(program, target)
    return schedule(partition(simplify(program), target.supported))


def _checked_schedule(program: Program, target: Target) -> Schedule:
    """The same, and what each step hands to the next is checked."""
    from lazynp.schedule import spec  # only for who debugs

    spec.check_program(program, simplified=False)
    simplified = simplify(program)
    spec.check_program(simplified)
    parts = partition(simplified, target.supported)
    spec.check_partition(parts)
    made = schedule(parts)
    spec.check_schedule(made)
    return made


class Launcher:
    """One kernel of one schedule, ready to be called."""

    __slots__ = (
        "error", "fused", "integers", "layout", "outputs", "reads", "run", "saved", "scalars", "template", "threaded",
        "updates", "workspaces",
    )  # fmt: skip

    def __init__(self, item: KernelItem, program: Program, function: Callable[[int], None], layout: Layout) -> None:
        self.run = function
        self.layout = layout
        body, launch = item.body, item.launch
        self.template = array("q", bytes(8 * layout.slots))
        self.integers: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
        for k, formula in enumerate(launch.integers):
            if formula.offsets:
                self.integers.append((layout.integers + k, formula.const, formula.offsets))
            else:
                self.template[layout.integers + k] = formula.const
        self.reads = [(layout.buffers + b, e) for b, e in enumerate(body.buffers) if b not in body.stored]
        self.outputs = []
        self.updates = []
        for b, e in enumerate(body.buffers):
            if b in body.stored:
                entry = program.entries[e]
                output = (layout.buffers + b, e, entry.dtype, entry.shape, _bytes(program, e))
                if e in item.kernel.bases:
                    base = item.kernel.bases[e]
                    # Nobody reads the old value after this, nor this kernel itself: its memory becomes the new one's.
                    last = base in item.dead and base not in body.buffers
                    self.updates.append((*output, base, last))
                else:
                    self.outputs.append(output)
        self.scalars = [
            (8 * (layout.scalars + 2 * k), _FORMATS[dtype.char], slot)
            for k, (slot, dtype) in enumerate(zip(body.scalars, body.scalar_types, strict=True))
        ]
        self.workspaces = [
            (layout.workspaces + k, max(1, count) * dtype.itemsize)
            for k, (count, dtype) in enumerate(zip(launch.workspaces, item.code.workspaces, strict=True))
        ]
        self.threaded = launch.work >= PARALLEL_WORK
        self.error = bool(item.code.flags)
        operations = {e for e, _ in item.kernel.points} | {e for _, e in item.kernel.roots}
        operations = {e for e in operations if program.entries[e].op.kind is not o.Kind.MOVEMENT}
        self.fused = len(operations) if len(operations) > 1 else 0
        stored = {output[1] for output in (*self.outputs, *self.updates)}
        self.saved = sum(2 * _bytes(program, e) for e in operations - stored)

    def __call__(self, values: dict[int, Buffer], integers: list[int], scalars: list[Any], threads: int) -> None:
        """Compute; raises ``KernelError`` where a checked index was out of range."""
        block = self.template[:]
        for slot, e in self.reads:
            block[slot] = values[e].address
        held = []
        for slot, e, dtype, shape, nbytes in self.outputs:
            memory = allocate(nbytes)
            block[slot] = memory.address
            values[e] = Buffer.of_block(memory, dtype, shape)
        for slot, e, dtype, shape, nbytes, base, last in self.updates:
            if last:
                values[e] = values[base]
            else:
                memory = allocate(nbytes)
                memmove(memory.address, values[base].address, nbytes)
                values[e] = Buffer.of_block(memory, dtype, shape)
            block[slot] = values[e].address
        for slot, nbytes in self.workspaces:
            memory = allocate(nbytes)
            held.append(memory)
            block[slot] = memory.address
        for slot, const, offsets in self.integers:
            for parameter, k in offsets:
                const += k * integers[parameter]
            block[slot] = const
        for offset, form, slot in self.scalars:
            value = scalars[slot]
            if len(form) == 2:
                struct.pack_into(form, block, offset, value.real, value.imag)
            else:
                struct.pack_into(form, block, offset, value)
        block[self.layout.threads] = threads if self.threaded else 1
        self.run(block.buffer_info()[0])
        if self.error and block[self.layout.error]:
            raise KernelError


class KernelError(Exception):
    """A kernel found an index out of range; nothing it wrote was published."""


_FORMATS = {
    "?": "?", "b": "b", "h": "h", "i": "i", "l": "q", "q": "q", "B": "B", "H": "H", "I": "I", "L": "Q", "Q": "Q", "e": "e", "f": "f",
    "d": "d", "F": "ff", "D": "dd",
}  # fmt: skip


def _bytes(program: Program, e: int) -> int:
    entry = program.entries[e]
    return prod(entry.shape) * entry.dtype.itemsize


class LibraryStep:
    """Library calls of one schedule, run by the NumPy tier."""

    __slots__ = ("origins", "plan", "reads", "writes")

    def __init__(self, item: LibraryItem, plan: Plan, origins: list[int]) -> None:
        self.plan = plan
        self.reads = item.reads
        self.writes = item.writes
        self.origins = [origins[e] for e in item.program.origins]

    def __call__(self, values: dict[int, Buffer], integers: list[int], scalars: list[Any], threads: int) -> None:
        try:
            results = self.plan.run([values[e] for e in self.reads], integers, scalars)
        except ExecutionError as failure:
            if failure.entry is not None:
                failure.entry = self.origins[failure.entry]
            raise
        for e, buffer in zip(self.writes, results, strict=True):
            values[e] = buffer


class CompiledPlan:
    """A schedule with its machine code."""

    __slots__ = ("constants", "empty", "inputs", "numpy_plan", "original", "outputs", "schedule", "steps", "target")

    def __init__(self, original: Program, target: Target, numpy_plan: Callable[[Program], Plan]) -> None:
        made = make_schedule(original, target)
        program = made.program
        self.original = original
        self.schedule = made
        self.target = target
        self.numpy_plan = numpy_plan
        self.constants = program.constants
        self.inputs = [(e, entry.arg) for e, entry in enumerate(program.entries) if entry.op is o.BUFFER]
        self.outputs = program.outputs
        kernels = [item for item in made.items if isinstance(item, KernelItem)]
        compiled = iter(target.compile([item.code for item in kernels]))
        self.steps: list[tuple[Launcher | LibraryStep, list[int]]] = []
        for item in made.items:
            if isinstance(item, KernelItem):
                function, layout = next(compiled)
                self.steps.append((Launcher(item, program, function, layout), item.dead))
            else:
                self.steps.append((LibraryStep(item, numpy_plan(item.program), program.origins), item.dead))

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any]) -> list[Buffer]:
        values = {e: buffers[slot] for e, slot in self.inputs}
        if self.constants:
            scalars = [*scalars, *self.constants]
        threads = self.target.threads()
        work = report.work
        try:
            for step, dead in self.steps:
                step(values, integers, scalars, threads)
                if type(step) is Launcher:
                    work.kernels += 1
                    work.fused_ops += step.fused
                    work.bytes_saved += step.saved
                for e in dead:
                    del values[e]
        except KernelError:
            # The NumPy tier raises the very error NumPy has for it.
            self.numpy_plan(self.original).run(buffers, integers, scalars)
            raise AssertionError("a kernel reported an index that NumPy accepts") from None
        except MemoryError as error:
            raise ExecutionError(None, error) from None
        return [values[e] for e in self.outputs]
