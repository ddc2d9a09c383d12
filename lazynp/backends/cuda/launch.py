"""Running schedules on a GPU.

In: a ``Program`` and the device.  Out: a ``Plan``.  Promise: a run puts its kernels into this thread's stream and does not wait, unless a
kernel checks indices or floating-point errors are to be reported now.  What the checks find is decided by the NumPy tier on host
copies, so that exceptions and warnings are NumPy's; inputs in host memory are uploaded once.

The host waits for the kernels where

* a kernel checks indices,
* an error mode is ``raise``, ``call``, ``print`` or ``log``, a filter makes an exception of a warning, or warnings are being caught,
* a run writes into an array's own memory, computes a single number of one array, or may become a graph.

Otherwise up to 16 runs are read later (``backends/common/rechecks.py``), whose inputs hold at most 256 MiB together, or are those of one
run.  A program that ignores all errors and computes no index never waits.  What the host saves so is unmeasured on hardware;
``tests/cuda/test_ahead.py`` counts launches, waits and copies in the emulator.

On an H100, in microseconds, a launch costs 6.1 with a pointer to its arguments, and 14.5 with a structured array, as CuPy takes them.  An
event costs 0.7, waiting for an idle stream 0.7.  A cached program of ten operations on 100 elements takes the host 48 (goal: 25), and 51
until the device is done.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING, Any, Final

from lazynp.backends.base import ExecutionError, Plan
from lazynp.backends.common import rechecks
from lazynp.backends.common.compiled import CompiledPlan, KernelError, Launcher, native_fill
from lazynp.backends.common.ownership import Claim
from lazynp.backends.cuda import library, render
from lazynp.backends.cuda.graphs import SMALL, Graphs, Launch, Queue
from lazynp.backends.cuda.memory import DeviceBuffer, Place, Span
from lazynp.backends.cuda.runs import Planned, Run
from lazynp.backends.cuda.words import PAIR, Ticket, Words, borrowed
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.codegen.items import KernelItem, LibraryItem
from lazynp.graph import floating, report
from lazynp.graph import op as o
from lazynp.graph.node import caller
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.claims import Claims, nbytes
from lazynp.schedule.memory import Update, evaluate, meet
from lazynp.values import config
from lazynp.values.buffer import Buffer

if TYPE_CHECKING:
    from lazynp.backends.cuda.backend import CUDABackend

_ALONE: Final[Any] = nullcontext()  # of a plan that puts nothing together, within none that does
# A kernel computes indices in 32 bits where all that it can meet is below this: half of what fits, for loops step beyond their end.
NARROW: Final = 1 << 30
MAX_DYNAMIC_SHARED: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
UNASKED_SHARED: Final = 48 << 10  # bytes of shared memory that need no leave


class Phase:
    """One launch: the function, where its number of blocks stands, and what it needs of shared memory."""

    __slots__ = ("blocks", "cuda", "fixed", "function", "item", "shared", "slot", "threads")

    def __init__(self, phase: ir.Phase, function: Any, layout: Layout, cuda: Any) -> None:
        self.function = function
        self.cuda = cuda
        self.threads = (phase.threads, 1, 1)
        self.slot, self.blocks = _operand(phase.count, layout)
        self.shared, self.item, self.fixed = -1, 0, 0
        for local in phase.shared:
            slot, count = _operand(local.count, layout)
            if slot >= 0:
                self.shared, self.item = slot, local.dtype.itemsize
            else:
                self.fixed += count * local.dtype.itemsize

    def launch(self, block: Any, args: tuple[Any], run: Run) -> None:
        """Launch with the argument block that ``args`` points to, which is copied at the call."""
        blocks = self.blocks if self.slot < 0 else block[self.slot]
        if blocks > 0:
            shared = 0 if self.shared < 0 else block[self.shared] * self.item
            if shared + self.fixed > UNASKED_SHARED:
                self.cuda.driver.funcSetAttribute(self.function.ptr, MAX_DYNAMIC_SHARED, shared)
            if run.queue is None:
                self.function((blocks, 1, 1), self.threads, args, shared, run.stream)
            else:
                run.queue.work.append(Launch(self.function, (blocks, 1, 1), self.threads, args, shared, block))


def _operand(operand: ir.Operand, layout: Layout) -> tuple[int, int]:
    """(slot, 0) of an integer argument, (-1, value) of a literal."""
    return (layout.integers + int(operand[1:]), 0) if operand.startswith("n") else (-1, int(operand))


class DeviceKernel:
    """A kernel with 32-bit indices and, once it is needed, with 64-bit ones."""

    __slots__ = ("backend", "code", "divisors", "layout", "name", "phases")

    def __init__(self, backend: CUDABackend, code: ir.Kernel, name: str) -> None:
        self.backend = backend
        self.code = code
        self.name = name
        self.layout = Layout(code)
        self.divisors = [self.layout.integers + k for k in render.divisors(code)]  # slots
        self.phases: dict[bool, list[Phase]] = {}

    def linked(self, wide: bool, kernels: list[Any]) -> None:
        self.phases[wide] = [
            Phase(phase, kernel, self.layout, self.backend.place.cupy.cuda)
            for phase, kernel in zip(self.code.phases, kernels, strict=True)
        ]

    def of(self, wide: bool) -> list[Phase]:
        found = self.phases.get(wide)
        if found is None:
            self.backend.link([(self, wide)])
            found = self.phases[wide]
        return found


def is_wide(item: KernelItem, program: Program) -> bool:
    """Tell whether sizes alone demand 64-bit indices; offsets are looked at when they are known."""
    sizes = [prod(program.entries[e].shape) for e in item.body.buffers]
    sizes.append(prod([r.extent for r in item.body.main]))
    sizes += [abs(formula.const) for formula in item.launch.integers]
    sizes += item.launch.workspaces
    return max(sizes) >= NARROW


class DeviceLauncher(Launcher):
    """One kernel of one schedule, ready to be launched."""

    __slots__ = ("kernel", "operations", "place", "pointer", "wide", "word")

    def __init__(self, item: KernelItem, program: Program, kernel: DeviceKernel, place: Place) -> None:
        super().__init__(item, program, kernel, kernel.layout)  # type: ignore[arg-type]
        self.kernel = kernel
        self.place = place
        self.wide = is_wide(item, program)
        self.word = -1  # the number of its pair of words, if they are read
        self.pointer = place.cupy.cuda.function.CPointer

    def ready(self) -> None:
        """See ``Launcher.ready``."""
        super().ready()
        if not self.wide:
            for slot in self.kernel.divisors:  # extents, which are the same for all runs of a plan
                self.template[slot] = render.reciprocal(max(self.template[slot], 1))
        self.native = native_fill(self)

    def launch(
        self, values: dict[int, Buffer], integers: list[int], scalars: list[Any], words: int, run: Run, claim: Claim | None
    ) -> None:
        place = self.place
        block = self.template[:]
        for slot, e in self.reads:
            block[slot] = _here(values, e, place, run).address
        for slot, e, dtype, shape, size in self.outputs:
            made = values[e] = place.buffer(size, dtype, shape)
            block[slot] = made.address
        for slot, e, dtype, shape, dying in self.taken:
            values[e] = self.taking(values, dying, dtype, shape, run)
            block[slot] = values[e].address
        for slot, update, given in self.updates:
            made = values[update.entry] = _updated(values, update, given, integers, claim, place, run)
            block[slot] = made.address
        held = []
        for slot, size in self.workspaces:
            memory = place.allocate(size)
            held.append(memory)
            block[slot] = memory.address
        wide = self.wide
        if (self.native or self.fill)(block, integers, scalars) >= NARROW and not wide:
            wide = True
            for slot in self.kernel.divisors:
                block[slot] &= 0xFFFFFFFF
        layout = self.layout
        counters = block[layout.counters] = place.counters(run)
        word = words + PAIR * self.word if self.word >= 0 else counters + 4 * ir.COUNTERS
        block[layout.error] = word
        block[layout.flags] = word + 8
        args = (self.pointer(block.buffer_info()[0]),)
        for phase in self.kernel.of(wide):
            phase.launch(block, args, run)
        if run.queue is not None:
            run.queue.held += held

    def taking(self, values: dict[int, Buffer], dying: int, dtype: Any, shape: Any, run: Run) -> DeviceBuffer:
        """The memory of a temporary; of one that was uploaded a copy, for there may still be a reference to the original."""
        old = values[dying]
        found = _here(values, dying, self.place, run)
        if old is found and found.exclusive():
            return found.retyped(dtype, shape)
        made = self.place.buffer(found.nbytes, dtype, shape)
        self.place.copy(made.address, found.address, found.nbytes, run)
        return made


def _here(values: dict[int, Buffer], e: int, place: Place, run: Run) -> DeviceBuffer:
    """The value of an entry in this device's memory."""
    buffer = values[e]
    if buffer.place is not place:
        buffer = values[e] = place.uploaded(buffer)
    assert isinstance(buffer, DeviceBuffer)
    if buffer.block.stream is not run.stream:
        place.joined(run, buffer.block)
    return buffer


def _updated(
    values: dict[int, Buffer], update: Update, given: bool, integers: list[int], claim: Claim | None, place: Place, run: Run
) -> DeviceBuffer:
    """Memory for a STORE, in which everything but the region it writes is as in the base: the base's where that may be overwritten."""
    before = values[update.base]
    old = _here(values, update.base, place, run)
    lo, hi = _reach(update, old, integers)
    claimed = claim is not None and old.block in claim.blocks and 2 * (hi - lo) <= old.nbytes
    free = update.last and (claimed or (not given and before is old and old.exclusive()))
    if free and not any(meet(update.written, box, integers) for box in update.reads):
        if claimed:
            assert claim is not None
            claim.save(Span(old.block, old.address + lo, hi - lo))  # type: ignore[arg-type]
        report.work.in_place += 1
        return old.retyped(old.dtype, old.shape)
    new = place.buffer(old.nbytes, old.dtype, old.shape)
    if update.whole or not _solid(update):
        lo = hi = old.nbytes
    place.copy(new.address, old.address, lo, run)
    place.copy(new.address + hi, old.address + hi, old.nbytes - hi, run)
    report.work.bytes_copied += old.nbytes - (hi - lo)
    return new


def _reach(update: Update, old: DeviceBuffer, integers: list[int]) -> tuple[int, int]:
    """The bytes from the first to the last element that a STORE writes."""
    first = last = 0
    for span, edge in zip(update.written, update.region, strict=True):
        lo = evaluate(span.start, integers)
        first = first * edge.extent + lo
        last = last * edge.extent + lo + span.reach
    size = old.dtype.itemsize
    return first * size, (last + 1) * size


def _solid(update: Update) -> bool:
    """Tell whether the region is one run of memory."""
    inside = False  # an axis of which more than one position is written: the ones after it must be whole
    for edge in update.region:
        if inside and edge.length != edge.extent:
            return False
        inside = inside or edge.length > 1
        if edge.length > 1 and edge.step not in (1, -1):
            return False
    return True


class DeviceLibraryStep:
    """A library call of one schedule: CuPy's where it means what NumPy's does, else NumPy's on host copies."""

    __slots__ = ("call", "counts", "error", "host", "names", "origins", "place", "program", "reads", "wanted", "word", "writes")

    def __init__(self, item: LibraryItem, plan: Plan, program: Program, place: Place) -> None:
        self.place = place
        self.program = item.program
        self.host = plan
        self.reads = item.reads
        self.writes = item.writes
        self.origins = [program.origins[e] for e in item.program.origins]
        self.call, self.wanted = library.compiled(item.program, place)
        self.error = False  # of an index
        self.word = -1  # the number of its pair of words, if its errors are to be reported
        if self.wanted:
            place.watched()
        self.counts = any(prod(program.entries[e].shape) for e in item.entries)  # nothing is computed of empty arrays
        self.names = " ".join([library.name_of(program.entries[e]) for e in item.entries if program.entries[e].op is not o.OUTPUT])

    def ready(self) -> None:
        """See ``Launcher.ready``."""

    def run(self, values: dict[int, Buffer], integers: list[int], scalars: list[Any], words: int, run: Run) -> list[floating.Note]:
        """Compute; returns what NumPy reported of entries of the program.  A word will say what may be wrong with CuPy's result."""
        if self.call is not None:
            given = [_here(values, e, self.place, run) for e in self.reads]
            found = self.call(given, integers, scalars, run)
            if found is not None:
                report.work.library_calls += 1
                values[self.writes[0]] = found
                if self.word >= 0:
                    self.place.watched().look(found, words + PAIR * self.word + 8, run)
                return []
        hosts = [values[e] for e in self.reads]
        if self.counts:
            report.count_on_host(self.names, sum(buffer.nbytes for buffer in hosts), caller())
        try:
            made = self.host.run(hosts, integers, scalars)
        except ExecutionError as failure:
            if failure.entry is not None:
                failure.entry = self.origins[failure.entry]
            raise
        values.update(zip(self.writes, made, strict=True))
        heard = floating.take() if floating.heard else None
        return [] if heard is None else [(e if e is None else self.origins[e], text) for e, text in heard.notes]


class DevicePlan(CompiledPlan):
    """A schedule with its kernels on a GPU."""

    __slots__ = ("graphs", "number", "place", "reports", "words")
    tier = "compiled for the GPU"

    target: CUDABackend

    def link(self, kernels: list[KernelItem], sources: list[str], program: Program) -> list[Launcher]:
        self.place = self.target.place
        self.words = 0
        compiled = self.target.kernels_of([item.code for item in kernels], sources, [is_wide(item, program) for item in kernels])
        found: list[Launcher] = []
        for item, kernel in zip(kernels, compiled, strict=True):
            launcher = DeviceLauncher(item, program, kernel, self.place)
            if launcher.error or launcher.wanted:
                launcher.word = self.words
                self.words += 1
            found.append(launcher)
        self.graphs = Graphs() if self.is_short(kernels, program) else None
        # One number of one array: it is read at once, and kept as a fact of the array where no error came of it.
        self.number = len(self.inputs) == len(self.outputs) == 1 and program.entries[self.outputs[0]].shape == ()
        return found

    def ready(self) -> None:
        """See ``CompiledPlan.ready``."""
        super().ready()
        self.reports = [(step.word, step.wanted) for step, _ in self.steps if step.word >= 0]

    def is_short(self, kernels: list[KernelItem], program: Program) -> bool:
        """Tell whether all work is kernels that are worth a graph, if they repeat: several, with little to write."""
        if not config.graphs or len(kernels) < max(config.graphs, len(self.schedule.items)):
            return False
        return sum(nbytes(program.entries[e]) for item in kernels for e in item.writes) <= SMALL

    def call(self, item: LibraryItem, program: Program) -> Any:
        step = DeviceLibraryStep(item, self.numpy_plan(item.program), program, self.target.place)
        if step.wanted:
            step.word = self.words
            self.words += 1
        return step

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any], claim: Claim | None = None) -> list[Buffer]:
        given = scalars
        values = {e: buffers[slot] for e, slot in self.inputs}
        if self.constants:
            scalars = [*scalars, *self.constants]
        place, work = self.place, report.work
        notes: list[floating.Note] = []
        flags = 0
        later: Ticket | None = None
        try:
            with place.running() as run, Planned(run) if self.graphs or run.queue else _ALONE:
                words = borrowed(self.words, place, run) if self.words else None
                address = words.address if words is not None else 0
                graphs = self.graphs
                if graphs is not None and not graphs.hopeless and all(values[e].place is place for e in values):
                    run.queue = Queue()
                launched: list[DeviceLauncher | DeviceLibraryStep] = []  # those that report
                indexed = False  # whether one of them looks at indices
                for step, dead in self.steps:
                    if isinstance(step, DeviceLauncher):
                        step.launch(values, integers, scalars, address, run, claim)
                        work.kernels += 1
                        work.fused_ops += step.fused
                        work.bytes_saved += step.saved
                        indexed = indexed or step.error
                    else:
                        assert isinstance(step, DeviceLibraryStep)
                        if indexed:  # what a kernel found out of range must not reach a library
                            flags |= self.checked(words, launched, run)
                            indexed = False
                        notes += step.run(values, integers, scalars, address, run)
                    if step.word >= 0:
                        launched.append(step)
                    if run.queue is not None:
                        run.queue.held += [values[e] for e in dead]
                    for e in dead:
                        del values[e]
                if run.queue is not None and graphs is not None:
                    graphs.put(run.queue, place, run)
                    run.queue = None
                if words is not None:
                    if launched and not (indexed or flags or notes or claim or self.number or graphs) and rechecks.patient():
                        words.ask(self.words, place, run)
                        later = Ticket(words, self.words, self.reports)
                    else:
                        flags |= self.checked(words, launched, run)
                        words.home.append(words)
                for e in self.outputs:
                    values[e] = values[e].at_home(place.name)
        except KernelError:
            # The NumPy tier raises the very error NumPy has for it.
            if claim is not None:
                claim.undo()
            self.numpy_plan(self.original).run(buffers, integers, given)
            raise AssertionError("a kernel reported an index that NumPy accepts") from None
        except MemoryError as error:
            raise ExecutionError(None, error) from None
        for e, slot in self.passed.items():
            values[e].shared = buffers[slot].shared = True
        if flags or notes or later:
            heard = floating.own()
            heard.notes = notes
            heard.flagged = self.flagged if flags or later else None
            heard.later = later
        return [values[e] for e in self.outputs]

    def checked(self, words: Words | None, launched: list[DeviceLauncher | DeviceLibraryStep], run: Run) -> int:
        """The floating-point errors that kernels found, among the wanted ones; raises ``KernelError`` where an index was out of range."""
        if words is None or not launched:
            return 0
        words.ask(self.words, self.place, run)
        found = words.read(self.words)
        flags = 0
        for step in launched:
            if step.error and found[2 * step.word]:
                raise KernelError
            flags |= found[2 * step.word + 1] & step.wanted
        launched.clear()
        return flags


class HostPlan:
    """A program that the device has no code for, on the processor; its values belong to the device."""

    __slots__ = ("claims", "name", "plan")
    tier = "on the processor, because the GPU has no code for it"

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan = plan
        self.name = name
        self.claims = Claims()

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any], claim: Claim | None = None) -> list[Buffer]:
        report.count_on_host("a whole program", sum(buffer.nbytes for buffer in buffers), caller())
        return [value.at_home(self.name) for value in self.plan.run(buffers, integers, scalars)]


