"""What the last passes must hand on: the grammar of schedules and of ``codegen/ir.py``; and all checks of the pipeline together.

In: the product of a pass.  Out: nothing, or a ``SpecError``.  Promise: what passes can be rendered; on a grid, all threads of a block reach
every barrier together, and all threads of a warp every fold.
"""

from __future__ import annotations

from lazynp.codegen import ir
from lazynp.codegen.items import Rendered, Schedule
from lazynp.graph import op as o
from lazynp.schedule.spec import check_body, check_lowered, check_partition, check_program, check_structure
from lazynp.schedule.spec_rules import BOOL, INT64, DType, SpecError, scalar_rule


def check_order(schedule: Schedule) -> None:
    """Check that what an item reads exists by then, and outputs exist in the end.

    Raises
    ------
    SpecError
        Naming the first item that breaks a rule.
    """
    entries = schedule.program.entries
    made: set[int] = {e for e, entry in enumerate(entries) if entry.op is o.BUFFER}
    dead: set[int] = set()
    for position, item in enumerate(schedule.items):
        reads = [e for e in item.reads if entries[e].op not in (o.CONST, o.IOTA)]
        missing = [e for e in reads if e not in made or e in dead]
        if missing:
            raise SpecError(f"schedule: item {position}: reads entries {missing}, which do not exist yet or no more")
        made.update(item.writes)
        dead.update(item.dead)
    lost = [e for e in schedule.program.outputs if e not in made or e in dead]
    if lost:
        raise SpecError(f"schedule: outputs {lost} are not there in the end")


def check_memory(schedule: Schedule) -> None:
    """Nothing is read that died before, and what is written over is read only where it is written.

    Raises
    ------
    SpecError
        Naming the first item or value that breaks a rule.
    """
    check_order(schedule)
    for item in schedule.kernels:
        check_body(item.body, schedule.program, {*item.taken, *[update.entry for update in item.updates if update.whole]})


def check_kernels(schedule: Schedule) -> None:
    """``check_kernel`` for the loop nest of every kernel.

    Raises
    ------
    SpecError
        Naming the first statement that breaks a rule.
    """
    for item in schedule.kernels:
        check_kernel(item.code, item.launch)


def check_rendered(rendered: Rendered) -> None:
    """Each kernel has a source, and equal loop nests have equal ones.

    Raises
    ------
    SpecError
        Naming the first kernel without a source of its own.
    """
    kernels = [repr(item.code) for item in rendered.schedule.kernels]
    found: dict[str, str] = {}
    for k, (code, source) in enumerate(zip(kernels, rendered.sources, strict=True)):
        if not source or found.setdefault(code, source) != source:
            raise SpecError(f"source: kernel {k}: none, or another one than that of an equal kernel")


def check_kernel(code: ir.Kernel, launch: ir.Launch) -> None:
    """Operands are defined once, before and around their uses, and have the types the statements want.

    Raises
    ------
    SpecError
        Naming the first statement that breaks a rule.
    """
    if len(launch.integers) != code.integers or len(launch.workspaces) != len(code.workspaces):
        raise SpecError(f"kernel: {len(launch.integers)} integers and {len(launch.workspaces)} workspaces are passed, not "
                        f"{code.integers} and {len(code.workspaces)}")  # fmt: skip
    arguments = {f"n{k}": INT64 for k in range(code.integers)} | {f"s{k}": dtype for k, dtype in enumerate(code.scalars)}
    stored: set[int] = set()
    for phase in code.phases:
        _Checker(code, phase, arguments, stored).run()
    if stored != code.written:
        raise SpecError(f"kernel: buffers {sorted(stored)} are stored to, {sorted(code.written)} are marked as written")


_BOOLEAN = frozenset(["lt", "ge", "eq", "and", "or"])
_INTEGER = frozenset(["add", "sub", "mul", "min", "max", "div", "rem", "shl"])

BLOCK, WARP, THREAD = range(3)  # within what an operand is the same, and control flow with it


class _Checker:
    """Scopes of one phase: which operands are known, and their dtypes."""

    def __init__(self, code: ir.Kernel, phase: ir.Phase, arguments: dict[str, DType], stored: set[int]) -> None:
        self.code = code
        self.phase = phase
        self.known = dict(arguments)
        self.ever = set(arguments)
        self.stored = stored
        self.varies: dict[str, int] = {}  # operand -> within what it is the same; without an entry: everywhere
        self.control = BLOCK  # within what all threads are here

    def run(self) -> None:
        phase = self.phase
        for local in (*phase.locals, *phase.shared):
            self.want(local, INT64, local.count)
        if phase.threads:
            if phase.threads % 32 or phase.threads > 1024:
                self.fail(phase, f"{phase.threads} threads are no whole warps of one block")
            if any(not local.count.isdecimal() for local in phase.locals) or sum(not s.count.isdecimal() for s in phase.shared) > 1:
                self.fail(phase, "scratch whose length is not known")
            self.want(phase, INT64, phase.count)
            self.define(phase, "block", INT64)
            self.define(phase, "thread", INT64)
            self.varies["thread"] = THREAD
        elif phase.count:
            self.want(phase, INT64, phase.count, phase.chunk)
            self.define(phase, "lo", INT64)
            self.define(phase, "hi", INT64)
        self.block(phase.body)

    def fail(self, statement: object, complaint: str) -> None:
        raise SpecError(f"kernel: {type(statement).__name__}: {complaint} in {str(statement)[:200]}")

    def want(self, statement: object, dtype: DType, *operands: str) -> None:
        for operand in operands:
            if operand.lstrip("-").isdigit():
                if dtype.kind not in "iu":
                    self.fail(statement, f"literal {operand} is no {dtype}")
            elif operand not in self.known:
                self.fail(statement, f"operand {operand} is not known here")
            elif self.known[operand] != dtype:
                self.fail(statement, f"operand {operand} is {self.known[operand]}, not {dtype}")

    def define(self, statement: object, name: str, dtype: DType) -> None:
        if name in self.ever:
            self.fail(statement, f"{name} is defined twice")
        self.ever.add(name)
        self.known[name] = dtype

    def memory(self, statement: object, memory: ir.Memory, dtype: DType) -> None:
        places = {"buffer": self.code.buffers, "workspace": self.code.workspaces, "local": [local.dtype for local in self.phase.locals]}
        places["shared"] = [local.dtype for local in self.phase.shared]
        held = places[memory.space]
        if not 0 <= memory.number < len(held):
            self.fail(statement, f"there is no {memory}")
        if held[memory.number] != dtype:
            self.fail(statement, f"{memory} holds {held[memory.number]}, not {dtype}")

    def inside(self, body: list[ir.Statement], control: int, bound: str = "") -> None:
        outer, before = dict(self.known), self.control
        self.control = max(before, control)
        if bound:
            self.define(body, bound, INT64)
            self.varies[bound] = control
        self.block(body)
        self.known, self.control = outer, before

    def level(self, *operands: str) -> int:
        """Find the innermost level within which all of ``operands`` are the same."""
        return max([self.varies.get(operand, BLOCK) for operand in operands], default=BLOCK)

    def together(self, statement: ir.Statement, wanted: int) -> None:
        if not self.phase.threads or self.control > wanted:
            self.fail(statement, f"not all threads of a {('block', 'warp')[wanted]} are here together")

    def block(self, statements: list[ir.Statement]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Compute(dst, op, dtype, args, source):
                wanted = [source] * len(args)
                if op is o.WHERE:
                    wanted[0] = BOOL
                for operand, expected in zip(args, wanted, strict=True):
                    self.want(statement, expected, operand)
                for complaint in scalar_rule(op, dtype, wanted):
                    self.fail(statement, complaint)
                self.define(statement, dst, dtype)
                self.varies[dst] = self.level(*args)
            case ir.Constant(dst, dtype, _):
                self.define(statement, dst, dtype)
            case ir.Integer(dst, kind, a, b):
                if kind not in _BOOLEAN and kind not in _INTEGER:
                    self.fail(statement, f"{kind!r} is no integer operation")
                self.want(statement, BOOL if kind in ("and", "or") else INT64, a, b)
                self.define(statement, dst, BOOL if kind in _BOOLEAN else INT64)
                # The number of a warp is the same in all its threads.
                self.varies[dst] = WARP if (kind, a) == ("div", "thread") and b == "32" else self.level(a, b)
            case ir.Load(dst, dtype, memory, index, guard):
                self.memory(statement, memory, dtype)
                self.want(statement, INT64, index)
                if guard is not None:
                    self.want(statement, BOOL, guard)
                self.define(statement, dst, dtype)
                self.varies[dst] = THREAD
            case ir.Store(dtype, memory, index, value):
                self.memory(statement, memory, dtype)
                self.want(statement, INT64, index)
                self.want(statement, dtype, value)
                if memory.space == "buffer":
                    self.stored.add(memory.number)
            case ir.Halve(dst, _, dtype, memory):
                self.memory(statement, memory, dtype)
                self.define(statement, dst, dtype)
            case ir.Push(_, dtype, memory, value, number):
                self.memory(statement, memory, dtype)
                self.want(statement, dtype, value)
                self.want(statement, INT64, number)
            case ir.Collect(dst, _, dtype, memory, count):
                self.memory(statement, memory, dtype)
                self.want(statement, INT64, count)
                self.define(statement, dst, dtype)
            case ir.Fold(dst, _, dtype, value):
                self.together(statement, WARP)
                self.want(statement, dtype, value)
                self.define(statement, dst, dtype)
                self.varies[dst] = WARP
            case ir.Barrier():
                self.together(statement, BLOCK)
            case ir.Last(dst, count, counter):
                self.together(statement, BLOCK)
                self.want(statement, INT64, count, counter)
                self.define(statement, dst, BOOL)
            case ir.Raise(condition, flag):
                self.want(statement, BOOL, condition)
                if not 0 <= flag < self.code.flags:
                    self.fail(statement, f"flag {flag} of {self.code.flags}")
            case ir.Loop(var, lo, hi, body, _, step):
                self.want(statement, INT64, lo, hi, step)
                self.inside(body, self.level(lo, hi), var)
            case ir.If(condition, body):
                self.want(statement, BOOL, condition)
                self.inside(body, self.level(condition))


__all__ = [
    "SpecError", "check_kernel", "check_kernels", "check_lowered", "check_memory", "check_order", "check_partition", "check_program",
    "check_rendered", "check_structure",
]  # fmt: skip
