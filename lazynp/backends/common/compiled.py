"""Running schedules of compiled kernels.

In: a ``Program`` and a target that can compile loop nests.  Out: a ``Plan``.  Promise: running a plan is one pass over its items: fill in
an argument block, call; no rewriting, no compiler, no per-node work.  Small programs, and what a kernel reports to have failed, go to
the NumPy tier, which decides what the error is.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable
from ctypes import memmove
from typing import TYPE_CHECKING, Any

from lazynp.backends.base import ExecutionError, Layout, Plan
from lazynp.backends.common import _launch, interrupts  # type: ignore[attr-defined]
from lazynp.backends.common.ownership import Claim
from lazynp.backends.common.rechecks import Flagged
from lazynp.codegen import pipeline
from lazynp.codegen.items import KernelItem, LibraryItem
from lazynp.graph import floating, report
from lazynp.graph import op as o
from lazynp.graph.errors import possible
from lazynp.graph.size import Size, recipe
from lazynp.schedule.canonicalise import ZERO, Program
from lazynp.schedule.claims import Claims, nbytes
from lazynp.schedule.memory import Update, evaluate, meet
from lazynp.values import config
from lazynp.values.allocator import allocate
from lazynp.values.buffer import Buffer
from lazynp.values.loading import load

if TYPE_CHECKING:
    from lazynp.backends.common.target import Target
    from lazynp.graph.progress import Run

PARALLEL_WORK = 200_000.0  # cost units from which more than one thread is worth waking
SIZED = ("template", "integers", "outputs", "taken", "updates", "workspaces", "saved")  # what of a launcher depends on sizes

Numbers = tuple[Any, ...]


class Launcher:
    """One kernel of one schedule, ready to be called."""

    __slots__ = (
        "counters",
        "error",
        "fused",
        "integers",
        "layout",
        "native",
        "outputs",
        "reads",
        "run",
        "saved",
        "scalars",
        "taken",
        "template",
        "threaded",
        "updates",
        "wanted",
        "workspaces",
    )  # fmt: skip

    def __init__(self, item: KernelItem, program: Program, function: Callable[[int], None], layout: Layout) -> None:
        self.run = function
        self.layout = layout
        body, launch = item.body, item.launch
        self.template: Any = [0] * layout.slots
        self.integers: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
        for k, formula in enumerate(launch.integers):
            if formula.offsets:
                self.integers.append((layout.integers + k, formula.const, formula.offsets))
            else:
                self.template[layout.integers + k] = formula.const
        self.reads = [(layout.buffers + b, e) for b, e in enumerate(body.buffers) if b not in body.stored]
        self.outputs: list[tuple[int, int, Any, Any, int]] = []
        self.taken: list[tuple[int, int, Any, Any, int]] = []
        self.updates: list[tuple[int, Update, bool]] = []
        changes = {update.entry: update for update in item.updates}
        for b, e in enumerate(body.buffers):
            if b in body.stored:
                entry = program.entries[e]
                if e in changes:
                    self.updates.append((layout.buffers + b, changes[e], program.entries[changes[e].base].op is o.BUFFER))
                elif e in item.taken:
                    self.taken.append((layout.buffers + b, e, entry.dtype, entry.shape, item.taken[e]))
                else:
                    self.outputs.append((layout.buffers + b, e, entry.dtype, entry.shape, nbytes(entry)))
        self.scalars = [
            (8 * (layout.scalars + 2 * k), _FORMATS[dtype.char], slot)
            for k, (slot, dtype) in enumerate(zip(body.scalars, body.scalar_types, strict=True))
        ]
        self.workspaces = [
            (layout.workspaces + k, max(1, count) * dtype.itemsize)
            for k, (count, dtype) in enumerate(zip(launch.workspaces, item.code.workspaces, strict=True))
        ]
        self.threaded = launch.work >= PARALLEL_WORK
        # a unit of work is an addition of eight bytes: of a narrower type one instruction makes more
        widest = max([value.dtype.itemsize for value in body.values], default=8)
        self.counters = range(layout.counters, layout.slots) if launch.work * widest / 8 >= interrupts.LONG_WORK else None
        self.error = bool(item.code.flags)
        operations = {e for e, _ in item.kernel.points} | {e for _, e in item.kernel.roots}
        operations = {e for e in operations if program.entries[e].op.kind is not o.Kind.MOVEMENT}
        self.wanted = 0
        for e in operations:
            entry = program.entries[e]
            source = program.entries[entry.src[0]].dtype if entry.src else entry.dtype
            self.wanted |= program.errors & possible(entry.op, entry.arg, entry.dtype, source)
        self.fused = len(operations) if len(operations) > 1 else 0
        self.saved = sum(2 * nbytes(program.entries[e]) for e in operations - set(item.writes))
        self.native: Any = None  # the same as ``__call__``, or on a device as ``fill``

    @property
    def natively(self) -> bool:
        """Tell whether the native launcher can do this."""
        return type(self) is Launcher and self.counters is None

    def ready(self) -> None:
        """Make what runs; all numbers are known."""
        self.template = array("q", self.template)
        report.work.scratch = max(report.work.scratch, sum([size for _, size in self.workspaces]))

    def described(self) -> Any:
        """See ``CompiledPlan.described``."""
        return [getattr(self, name) for name in Launcher.__slots__ if name not in ("layout", "native")]

    def sized(self, results: list[Size]) -> Callable[[Numbers], Launcher]:
        """Return what makes the launcher for other sizes; the numbers that it needs are added to ``results``."""
        fields = [(name, made) for name in SIZED if (made := recipe(getattr(self, name), results)) is not None]

        def at(numbers: Numbers) -> Launcher:
            launcher = Launcher.__new__(Launcher)
            for name in Launcher.__slots__:
                setattr(launcher, name, getattr(self, name))
            for name, made in fields:
                setattr(launcher, name, made(numbers))
            return launcher

        return at

    def __call__(
        self, values: dict[int, Buffer], integers: list[int], scalars: list[Any], threads: int, claim: Claim | None
    ) -> int:
        """Compute; returns the floating-point errors among the wanted ones, raises ``KernelError`` where an index was out of range."""
        block = self.template[:]
        for slot, e in self.reads:
            block[slot] = values[e].address
        held = []
        for slot, e, dtype, shape, size in self.outputs:
            memory = allocate(size)
            block[slot] = memory.address
            values[e] = Buffer.of_block(memory, dtype, shape)
        for slot, e, dtype, shape, dying in self.taken:
            values[e] = values[dying].retyped(dtype, shape)
            block[slot] = values[e].address
        for slot, update, given in self.updates:
            values[update.entry] = updated(values[update.base], update, given, integers, claim)
            block[slot] = values[update.entry].address
        for slot, size in self.workspaces:
            memory = allocate(size)
            held.append(memory)
            block[slot] = memory.address
        self.fill(block, integers, scalars)
        block[self.layout.threads] = threads if self.threaded else 1
        if self.counters is None:
            self.run(block.buffer_info()[0])
        else:
            if config.progress:
                self.watched(block)
            interrupts.run(self.run, block, self.counters)
        if self.error and block[self.layout.error]:
            raise KernelError
        return block[self.layout.flags] & self.wanted

    def fill(self, block: array[int], integers: list[int], scalars: list[Any]) -> int:
        """Put the numbers of a run into its argument block; returns the largest of the integers without their signs."""
        largest = 0
        for slot, const, offsets in self.integers:
            for parameter, k in offsets:
                const += k * integers[parameter]
            block[slot] = const
            largest = max(largest, abs(const))
        for offset, form, slot in self.scalars:
            value = scalars[slot]
            if len(form) == 2:
                struct.pack_into(form, block, offset, value.real, value.imag)
            else:
                struct.pack_into(form, block, offset, value)
        return largest

    def watched(self, block: array[int]) -> None:
        """Let the progress of a long kernel be seen."""
        run = _watching()
        if run is not None:
            run.inside(block, list(zip(self.counters or (), self.layout.totals, strict=False)))


def _watching() -> Run | None:
    run: Run | None = load("lazynp.graph.progress").current()  # for who asked for it
    return run


class KernelError(Exception):
    """A kernel found an index out of range; nothing it wrote was published."""


_FORMATS = {
    "?": "?", "b": "b", "h": "h", "i": "i", "l": "q", "q": "q", "B": "B", "H": "H", "I": "I", "L": "Q", "Q": "Q", "e": "e", "f": "f",
    "d": "d", "F": "ff", "D": "dd",
}  # fmt: skip


def updated(old: Buffer, update: Update, given: bool, integers: list[int], claim: Claim | None) -> Buffer:
    """Memory for a STORE, in which everything but the region it writes is as in ``old``: that memory itself where it may be overwritten."""
    claimed = claim is not None and old.block in claim.blocks
    free = update.last and (claimed or not given)
    if free and not any(meet(update.written, box, integers) for box in update.reads):
        if claimed:
            assert claim is not None
            claim.save(old.array[_subscript(update, integers)])
        report.work.in_place += 1
        return old.retyped(old.dtype, old.shape)
    new = Buffer.of_block(allocate(old.nbytes), old.dtype, old.shape)
    report.work.bytes_copied += _copy_around(old, new, update, integers)
    return new


def _subscript(update: Update, integers: list[int]) -> tuple[slice, ...]:
    parts = []
    for slot, step, n, _ in update.region:
        start = 0 if slot == ZERO else integers[slot]
        stop = start + step * n
        parts.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(parts)


def _copy_around(old: Buffer, new: Buffer, update: Update, integers: list[int]) -> int:
    """Copy what a STORE leaves alone, axis by axis: what lies before and behind the region; returns the number of bytes."""
    if update.whole or not old.shape or any(step not in (1, -1) and n > 1 for _, step, n, _ in update.region):
        memmove(new.address, old.address, old.nbytes)
        return old.nbytes
    source, target = old.array, new.array
    copied = 0
    around: tuple[slice, ...] = ()
    for span, edge in zip(update.written, update.region, strict=True):
        lo = evaluate(span.start, integers)
        hi = lo + span.reach + 1
        for piece in (slice(0, lo), slice(hi, edge.extent)):
            if piece.start < piece.stop:
                part = source[(*around, piece)]
                target[(*around, piece)] = part
                copied += part.nbytes
        around = (*around, slice(lo, hi))
    return copied


def native_fill(launcher: Launcher) -> Any:
    """Return ``launcher.fill`` of the native launcher."""
    return _launch.kernels([(launcher, [])], [], (), 0).fill


_launch.bind(globals(), KernelError)


class LibraryStep:
    """Library calls of one schedule, run by the NumPy tier."""

    __slots__ = ("changed", "inputs", "origins", "owned", "plan", "reads", "writes")

    def __init__(self, item: LibraryItem, plan: Any, program: Program) -> None:
        self.plan = plan
        dying = [slot for slot in plan.claims if item.reads[slot] in item.dead]
        self.inputs = [slot for slot in dying if program.entries[item.reads[slot]].op is o.BUFFER]
        self.owned = [slot for slot in dying if slot not in self.inputs]
        self.changed = [e for slot in plan.changes if (e := item.reads[slot]) in item.dead and program.entries[e].op is not o.BUFFER]
        self.reads = item.reads
        self.writes = item.writes
        self.origins = [program.origins[e] for e in item.program.origins]

    def ready(self) -> None:
        """See ``Launcher.ready``."""

    def described(self) -> Any:
        """See ``CompiledPlan.described``."""
        return self.plan.described(), self.inputs, self.owned, self.changed, self.reads, self.writes, self.origins

    def sized(self, results: list[Size]) -> Callable[[Numbers], LibraryStep]:
        """See ``Launcher.sized``."""
        plan_at = self.plan.sized(results)

        def at(numbers: Numbers) -> LibraryStep:
            step = LibraryStep.__new__(LibraryStep)
            for name in LibraryStep.__slots__:
                setattr(step, name, getattr(self, name))
            step.plan = plan_at(numbers)
            return step

        return at

    def __call__(
        self, values: dict[int, Buffer], integers: list[int], scalars: list[Any], threads: int, claim: Claim | None
    ) -> list[floating.Note] | None:
        """Compute; returns what NumPy reported of entries of the original program, if anything."""
        given = [values[e] for e in self.reads]
        mine = None
        if self.owned or self.changed or claim is not None:
            # Temporaries that die here are this run's own.
            mine = Claim([given[slot].block for slot in self.owned], [values[e].block for e in self.changed])
            if claim is not None:
                mine.blocks |= claim.blocks.intersection([given[slot].block for slot in self.inputs])
                mine.saved = claim.saved
            mine.blocks.discard(None)
            mine.own.discard(None)
        try:
            results = self.plan.run(given, integers, scalars, mine)
        except ExecutionError as failure:
            if failure.entry is not None:
                failure.entry = self.origins[failure.entry]
            raise
        for e, buffer in zip(self.writes, results, strict=True):
            values[e] = buffer
        heard = floating.take() if floating.heard else None
        if heard is None:
            return None
        return [(e if e is None else self.origins[e], text) for e, text in heard.notes]


class CompiledPlan:
    """A schedule with its machine code."""

    __slots__ = (
        "claims", "constants", "entries", "flagged", "fused", "inputs", "kernels", "numpy_plan", "oracle", "original", "origins", "outputs",
        "passed",
        "saved", "schedule", "steps", "target", "threaded",
    )  # fmt: skip
    tier = "compiled"

    def __init__(self, original: Program, target: Target, numpy_plan: Callable[[Program], Plan], rendered: Any = None) -> None:
        made, sources = rendered or pipeline.rendered(original, target)
        program = made.program
        self.original = original
        self.schedule = made
        self.target = target
        self.numpy_plan = numpy_plan
        self.oracle: Plan | None = None
        self.flagged = Flagged(self.evaluate, original)
        self.constants = program.constants
        self.origins = program.origins
        self.inputs = [(e, entry.arg) for e, entry in enumerate(program.entries) if entry.op is o.BUFFER]
        self.outputs = program.outputs
        self.passed = {e: program.entries[e].arg for e in program.outputs if program.entries[e].op is o.BUFFER}  # entry -> its buffer
        self.claims = Claims([program.entries[e].arg for e in made.claims])
        launchers = iter(self.link(made.kernels, sources, program))
        self.steps: list[tuple[Any, list[int]]] = []  # launchers and library steps, and the entries that die with each
        for item in made.items:
            self.steps.append((next(launchers) if isinstance(item, KernelItem) else self.call(item, program), item.dead))
        self.kernels: Any = None  # what runs all steps natively, where all are kernels on the processor
        self.entries = len(program.entries)
        if not original.traced:
            self.ready()

    def ready(self) -> None:
        """Make what runs; all numbers are known."""
        for step, _ in self.steps:
            step.ready()
        if all(isinstance(step, Launcher) and step.natively for step, _ in self.steps):
            self.kernels = _launch.kernels(self.steps, self.inputs, self.outputs, self.entries)
            self.threaded = any(step.threaded for step, _ in self.steps)
            self.fused = sum([step.fused for step, _ in self.steps])
            self.saved = sum([step.saved for step, _ in self.steps])
            return
        for step, _ in self.steps:
            if isinstance(step, Launcher) and step.natively:
                step.native = _launch.kernels([(step, [])], [], (), self.entries).step

    def sized(self, results: list[Size]) -> Callable[[Numbers, Program], CompiledPlan]:
        """Return what makes the plan of the same program with other sizes; the numbers that it needs are added to ``results``."""
        steps = [(step.sized(results), dead) for step, dead in self.steps]

        def at(numbers: Numbers, original: Program) -> CompiledPlan:
            plan = CompiledPlan.__new__(CompiledPlan)
            plan.original = original
            plan.target, plan.numpy_plan, plan.oracle, plan.kernels = self.target, self.numpy_plan, None, None
            plan.flagged = Flagged(plan.evaluate, original)
            plan.origins = self.origins
            plan.constants, plan.inputs, plan.outputs, plan.passed = self.constants, self.inputs, self.outputs, self.passed
            plan.claims, plan.entries = self.claims, self.entries  # who contests them contests those of other sizes, too
            plan.steps = [(made(numbers), dead) for made, dead in steps]
            plan.ready()
            return plan

        return at

    def described(self) -> Any:
        """All that runs, to be compared with another plan's."""
        steps, dead = [step.described() for step, _ in self.steps], [dead for _, dead in self.steps]
        return steps, dead, self.inputs, self.outputs, self.claims.described()

    def link(self, kernels: list[KernelItem], sources: list[str], program: Program) -> Iterable[Launcher]:
        """Launchers of kernels, with their code."""
        compiled = self.target.compile([item.code for item in kernels], sources)
        return [Launcher(item, program, function, layout) for item, (function, layout) in zip(kernels, compiled, strict=True)]

    def call(self, item: LibraryItem, program: Program) -> Any:
        """Return what runs library calls."""
        return LibraryStep(item, self.numpy_plan(item.program), program)

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any], claim: Claim | None = None) -> list[Buffer]:
        if self.constants:
            scalars = [*scalars, *self.constants]
        notes: list[floating.Note] = []
        try:
            if self.kernels is not None:
                found, flags = self.kernels.run(buffers, integers, scalars, self.target.threads() if self.threaded else 1, claim)
                work = report.work
                work.kernels += len(self.steps)
                work.fused_ops += self.fused
                work.bytes_saved += self.saved
            else:
                found, flags = self.stepwise(buffers, integers, scalars, claim, notes)
        except KernelError:
            # The NumPy tier raises the very error NumPy has for it.
            if claim is not None:
                claim.undo()
            self.numpy_plan(self.original).run(buffers, integers, scalars)
            raise AssertionError("a kernel reported an index that NumPy accepts") from None
        except MemoryError as error:
            raise ExecutionError(None, error) from None
        for slot in self.passed.values():
            buffers[slot].shared = True
        if flags or notes:
            heard = floating.own()
            heard.notes = notes
            heard.flagged = self.flagged if flags else None
        return found

    def values(self, buffers: list[Buffer]) -> tuple[list[Buffer], int]:
        """The outputs, and the floating-point errors of kernels that are to be reported; of a plan of kernels without parameters."""
        if self.kernels is None:
            return self.stepwise(buffers, [], [], None, [])
        found: tuple[list[Buffer], int] = self.kernels.run(buffers, [], [], self.target.threads() if self.threaded else 1, None)
        return found

    def stepwise(
        self,
        buffers: list[Buffer],
        integers: list[int],
        scalars: list[Any],
        claim: Claim | None,
        notes: list[floating.Note],
    ) -> tuple[list[Buffer], int]:
        """Run the steps one by one; returns the outputs and the errors of kernels, and adds those of library calls to ``notes``."""
        values = {e: buffers[slot] for e, slot in self.inputs}
        threads = self.target.threads()
        work = report.work
        flags = 0
        watched = _watching() if config.progress else None
        for step, dead in self.steps:
            if watched is not None:
                self.show(watched, step, values)
            if isinstance(step, LibraryStep):
                notes += step(values, integers, scalars, threads, claim) or ()
            else:
                flags |= (step.native or step)(values, integers, scalars, threads, claim)
                work.kernels += 1
                work.fused_ops += step.fused
                work.bytes_saved += step.saved
            for e in dead:
                del values[e]
        return [values[e] for e in self.outputs], flags

    def show(self, run: Run, step: Any, values: dict[int, Buffer]) -> None:
        """Tell which step of a run begins."""
        if isinstance(step, LibraryStep):
            run.begin("library call", step.origins[-1], sum([values[e].nbytes for e in step.reads]))
            return
        made = [*step.outputs, *step.taken]
        moved = sum([values[e].nbytes for _, e in step.reads]) + sum([size for *_, size in step.outputs])
        e = made[-1][1] if made else step.updates[-1][1].entry
        run.begin("kernel", self.origins[e], moved)

    def evaluate(self, buffers: list[Buffer], integers: list[int], scalars: list[Any]) -> None:
        """Have NumPy compute the same once more, to hear what it reports; the values are dropped."""
        if self.oracle is None:
            self.oracle = self.numpy_plan(self.original)
        self.oracle.run(buffers, integers, scalars)
