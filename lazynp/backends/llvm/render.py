"""From the loop-nest IR to LLVM IR text.

In: an ``ir.Kernel``.  Out: the text of ``void @name(ptr %args)`` and what it needs.  Each phase is a function over [lo, hi) whose arrays
are ``noalias`` parameters, in plain scalar loops that LLVM's loop vectoriser likes; ``phases`` unpacks the argument block and claims
chunks with an atomic counter, so that any number of threads can run it.  Promise: chunk edges, and with them every bit of the result,
do not depend on the number of threads.

The argument block is that of ``lazynp/codegen/block.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lazynp.backends.common.interrupts import BEHIND_THE_END
from lazynp.backends.llvm import flags, mathlib, phases, roots, scalars, support
from lazynp.backends.llvm.messages import TAIL
from lazynp.backends.llvm.scalars import Lines, literal, memory_type, type_of
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.codegen.ir import Operand
from lazynp.graph import op as o
from lazynp.graph.errors import UNDER, raises
from lazynp.graph.op import Op

BOOL = np.dtype(np.bool_)


def render(kernels: list[tuple[str, ir.Kernel]]) -> str:
    """One module with all ``kernels``."""
    intrinsics: set[str] = set()
    functions: set[tuple[str, str]] = set()
    helpers: set[support.Key] = set()
    called: set[str] = set()
    texts: list[str] = []
    for name, kernel in kernels:
        rendered = _Kernel(name, kernel)
        texts.append(rendered.text())
        intrinsics |= rendered.lines.intrinsics
        functions |= rendered.lines.functions
        helpers |= rendered.support
        called.add(phases.declaration(phases.size(rendered.layout)))
    head = [*sorted(called), *sorted(intrinsics), support.declarations(helpers), mathlib.prelude(functions)]
    return "\n".join([*head, *texts, TAIL])


STRIP = 1 << 16  # elements that a loop takes between two looks whether the run was stopped

_COMPARE = {"lt": "slt", "ge": "sge", "eq": "eq"}
_WORDS = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw", "div": "udiv", "rem": "urem", "shl": "shl nsw", "and": "and", "or": "or"}


class _Kernel:
    def __init__(self, name: str, kernel: ir.Kernel) -> None:
        self.name = name
        self.kernel = kernel
        self.layout = Layout(kernel)
        self.lines = Lines()
        self.label_count = 0
        self.loops: list[str] = []
        self.types: dict[Operand, str] = {}
        self.renames: dict[Operand, Operand] = {}
        self.counter = 0  # of the phase's pieces: how far behind the error word
        self.support: set[support.Key] = set()
        self.checked: set[int] = set()  # phases after which the processor's flags are looked at

    def text(self) -> str:
        parts = []
        # Conversions of single halves set flags for whatever lies in the rest of the register.
        watched = not flags.known() or any(dtype.char == "e" for dtype in (*self.kernel.buffers, *_types(self.kernel)))
        self.lines.watched = watched
        self.lines.underflow = bool(self.kernel.errors & UNDER)
        self.lines.multiplied = roots.pays(*_work([each for phase in self.kernel.phases for each in phase.body]))
        for number, phase in enumerate(self.kernel.phases):
            if not watched and _may_raise(phase.body):
                self.checked.add(number)
            parts.append(self.body(number, phase))
        parts.append(self.entry())
        parts += self.loops
        return "\n".join(parts)

    # Functions ---------------------------------------------------------------------------------------------------------

    def parameters(self) -> list[str]:
        """Everything a phase may use, in the order of the argument block."""
        kernel = self.kernel
        found = ["i64 %lo", "i64 %hi", "ptr noalias %error"]
        found += [f"ptr noalias{'' if k in kernel.written else ' readonly'} %b{k}" for k in range(len(kernel.buffers))]
        found += [f"ptr noalias %w{k}" for k in range(len(kernel.workspaces))]
        found += [f"i64 %n{k}" for k in range(kernel.integers)]
        found += [f"i64 %s{k}.{half}" for k in range(len(kernel.scalars)) for half in (0, 1)]
        return found

    def scalar(self, k: int, dtype: ir.DType) -> str:
        """The scalar argument ``k``, of its two words."""
        lines, t, word = self.lines, type_of(dtype), f"%s{k}.0"
        if t == "i64":
            return word
        if t == "i128":
            low, high = lines.temp(f"zext i64 {word} to i128"), lines.temp(f"zext i64 %s{k}.1 to i128")
            return lines.temp(f"or i128 {low}, {lines.temp(f'shl i128 {high}, 64')}")
        if dtype.kind == "b":
            return lines.temp(f"icmp ne i8 {lines.temp(f'trunc i64 {word} to i8')}, 0")
        bits = f"i{8 * dtype.itemsize}"
        if bits != "i64":
            word = lines.temp(f"trunc i64 {word} to {bits}")
        return lines.temp(f"bitcast {bits} {word} to {t}") if dtype.kind == "f" else word

    def body(self, number: int, phase: ir.Phase) -> str:
        """The phase itself over [lo, hi)."""
        lines = self.lines
        lines.lines = []
        lines.label = "entry"
        lines.count = 0
        self.renames = {}
        head = f"define internal void @{self.name}.p{number}({', '.join(self.parameters())}) #0 {{\nentry:"
        for k, dtype in enumerate(self.kernel.scalars):
            self.define(f"s{k}", self.scalar(k, dtype))
        for k, local in enumerate(phase.locals):
            t = memory_type(local.dtype)
            lines.emit(f"%l{k} = alloca {t}, i64 {self.operand(local.count)}, align 64")
        if self.kernel.flags:
            lines.emit("%raised = alloca i64, align 8")
            lines.emit("store i64 0, ptr %raised")
        self.counter = self.layout.counters + number - self.layout.error
        start = len(lines.lines)
        lines.noted = False
        self.statements(phase.body)
        if lines.noted:
            lines.lines[start:start] = ["  %noted = alloca i8, align 1", "  store i8 0, ptr %noted"]
            noted = lines.temp(f"zext i8 {lines.temp('load i8, ptr %noted')} to i64")
            noted_in = lines.temp("getelementptr inbounds i64, ptr %error, i64 1")
            lines.temp(f"atomicrmw or ptr {noted_in}, i64 {noted} monotonic")
        if self.kernel.flags:
            word = lines.temp("load i64, ptr %raised")
            lines.temp(f"atomicrmw or ptr %error, i64 {word} monotonic")
        lines.emit("ret void")
        return "\n".join([head, *lines.lines, "}"])

    def entry(self) -> str:
        """The kernel: its phases one after the other, each run by ``phases``."""
        lines = Lines()
        layout = self.layout
        tail = lines.temp(f"getelementptr inbounds i64, ptr %args, i64 {layout.threads}")
        for number, phase in enumerate(self.kernel.phases):
            counter = lines.temp(f"getelementptr inbounds i64, ptr %args, i64 {layout.counters + number}")
            # What runs once is one piece.
            count, chunk = (self.integer_slot(lines, each or "1") for each in (phase.count, phase.chunk))
            mask = -1 if number in self.checked else 0
            passed = f"ptr @{self.name}.p{number}, ptr %args, ptr {tail}, ptr {counter}, i64 {count}, i64 {chunk}, i64 {mask}"
            lines.emit(f"call void @{phases.name(phases.size(layout))}({passed})")
        lines.emit("ret void")
        return "\n".join([f"define void @{self.name}(ptr %args) #0 {{\nentry:", *lines.lines, "}"])

    def integer_slot(self, lines: Lines, operand: Operand) -> str:
        if not operand.startswith("n"):
            return operand
        slot = self.layout.integers + int(operand[1:])
        pointer = lines.temp(f"getelementptr inbounds i64, ptr %args, i64 {slot}")
        return lines.temp(f"load i64, ptr {pointer}")

    # Statements ---------------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand) -> str:
        operand = self.renames.get(operand, operand)
        if operand[0] in "-0123456789%" or operand in ("true", "false"):
            return operand
        return f"%{operand}"

    def define(self, dst: Operand, value: str) -> None:
        """``dst`` is what ``value`` (an operand of IR text) names."""
        self.renames[dst] = value

    def statements(self, statements: list[ir.Statement]) -> None:
        for statement in statements:
            match statement:
                case ir.Compute(dst, op, dtype, args, source):
                    operands = tuple([self.operand(a) for a in args])
                    self.define(dst, scalars.compute(self.lines, op, dtype, operands, source))
                case ir.Constant(dst, dtype, value):
                    self.define(dst, literal(value, dtype))
                case ir.Integer(dst, kind, a, b):
                    self.define(dst, self.integer(kind, self.operand(a), self.operand(b)))
                case ir.Load():
                    self.load(statement)
                case ir.Store(dtype, memory, index, value):
                    self.store(dtype, memory, self.operand(index), self.operand(value))
                case ir.Halve(dst, op, dtype, memory):
                    lanes = self.pointer(dtype, memory, "0")
                    self.define(dst, self.watched(op, dtype, support.halve(self.lines, self.support, op, dtype, lanes)))
                case ir.Push(op, dtype, memory, value, number):
                    stack = self.pointer(dtype, memory, "0")
                    support.push(self.lines, self.support, op, dtype, stack, self.operand(value), self.operand(number))
                case ir.Collect(dst, op, dtype, memory, count):
                    stack = self.pointer(dtype, memory, "0")
                    sum_ = support.collect(self.lines, self.support, op, dtype, stack, self.operand(count))
                    self.define(dst, self.watched(op, dtype, sum_))
                case ir.Raise(condition, flag):
                    lines = self.lines
                    old = lines.temp("load i64, ptr %raised")
                    bit = lines.select(self.operand(condition), "i64", str(1 << min(flag, 62)), "0")
                    lines.emit(f"store i64 {lines.temp(f'or i64 {old}, {bit}')}, ptr %raised")
                case ir.Loop():
                    self.loop(statement)
                case ir.If(condition, body):
                    inside, after = self.labels("if", "endif")
                    self.lines.emit(f"br i1 {self.operand(condition)}, label %{inside}, label %{after}")
                    self.lines.open(inside)
                    self.statements(body)
                    self.lines.emit(f"br label %{after}")
                    self.lines.open(after)

    def watched(self, op: Op, dtype: ir.DType, value: str) -> str:
        errors = raises(op, dtype, dtype)
        if errors and self.lines.watched and dtype.kind == "f":
            self.lines.watch(value, type_of(dtype), errors)
        return value

    def labels(self, *names: str) -> list[str]:
        self.label_count += 1
        return [f"{name}{self.label_count}" for name in names]

    def integer(self, kind: str, a: str, b: str) -> str:
        lines = self.lines
        if kind in ("and", "or"):
            return lines.temp(f"{kind} i1 {a}, {b}")
        if kind in _WORDS:
            return lines.temp(f"{_WORDS[kind]} i64 {a}, {b}")
        if kind in _COMPARE:
            return lines.temp(f"icmp {_COMPARE[kind]} i64 {a}, {b}")
        assert kind in ("min", "max")
        return lines.intrinsic(f"s{kind}", "i64", a, b)

    def pointer(self, dtype: ir.DType, memory: ir.Memory, index: str) -> str:
        base = {"buffer": "%b", "workspace": "%w", "local": "%l"}[memory.space] + str(memory.number)
        if index == "0":
            return base
        return self.lines.temp(f"getelementptr inbounds {memory_type(dtype)}, ptr {base}, i64 {index}")

    def load(self, statement: ir.Load) -> None:
        lines = self.lines
        alignment = f"align {max(1, min(statement.dtype.itemsize, 8))}"
        if statement.guard is None:
            pointer = self.pointer(statement.dtype, statement.memory, self.operand(statement.index))
            value = lines.temp(f"load {memory_type(statement.dtype)}, ptr {pointer}, {alignment}")
        else:
            t = memory_type(statement.dtype)
            inside, after = self.labels("load", "loaded")
            before = lines.label
            lines.emit(f"br i1 {self.operand(statement.guard)}, label %{inside}, label %{after}")
            lines.open(inside)
            pointer = self.pointer(statement.dtype, statement.memory, self.operand(statement.index))
            read = lines.temp(f"load {t}, ptr {pointer}, {alignment}")
            lines.emit(f"br label %{after}")
            lines.open(after)
            zero = literal(0, statement.dtype) if statement.dtype.kind == "f" else "0"
            value = lines.temp(f"phi {t} [ {zero}, %{before} ], [ {read}, %{inside} ]")
        if statement.dtype.kind == "b":
            value = lines.temp(f"icmp ne i8 {value}, 0")
        self.define(statement.dst, value)

    def store(self, dtype: ir.DType, memory: ir.Memory, index: str, value: str) -> None:
        if dtype.kind == "b":
            value = self.lines.temp(f"zext i1 {value} to i8")
        pointer = self.pointer(dtype, memory, index)
        alignment = f"align {max(1, min(dtype.itemsize, 8))}"
        self.lines.emit(f"store {memory_type(dtype)} {value}, ptr {pointer}, {alignment}")

    def strips(self, loop: ir.Loop) -> None:
        """A long loop over elements, ``STRIP`` at a time."""
        lo, hi = self.operand(loop.lo), self.operand(loop.hi)
        length = self.integer("max", self.integer("sub", hi, lo), "0")
        count = self.integer("div", self.integer("add", length, str(STRIP - 1)), str(STRIP))
        strip, before, start, end, least = [f"{name}.{loop.var}" for name in ("strip", "before", "start", "end", "least")]
        self.loop(ir.Loop(strip, "0", count, [
            ir.Integer(before, "mul", strip, str(STRIP)), ir.Integer(start, "add", lo, before), ir.Integer(end, "add", start, str(STRIP)),
            ir.Integer(least, "min", end, hi), ir.Loop(loop.var, start, least, loop.body, loop.lanes),
        ], long=True))  # fmt: skip

    def loop(self, loop: ir.Loop) -> None:
        if loop.long and not _has_loops(loop.body):
            self.strips(loop)
            return
        lines = self.lines
        head, body, after = self.labels("head", "body", "after")
        lo, hi = self.operand(loop.lo), self.operand(loop.hi)
        before = lines.label
        constant = lo.isdigit() and hi.isdigit()
        if constant and int(lo) >= int(hi):
            return
        if not constant:
            any_ = lines.temp(f"icmp slt i64 {lo}, {hi}")
            lines.emit(f"br i1 {any_}, label %{head}, label %{after}")
            lines.open(head)
            before = head
        lines.emit(f"br label %{body}")
        lines.open(body)
        var, next_ = f"%i{self.label_count}", f"%j{self.label_count}"
        phi = len(lines.lines)
        lines.lines.append("")
        self.define(loop.var, var)
        self.statements(loop.body)
        latch = lines.label
        lines.lines[phi] = f"  {var} = phi i64 [ {lo}, %{before} ], [ {next_}, %{latch} ]"
        lines.emit(f"{next_} = add nuw nsw i64 {var}, 1")
        again = lines.temp(f"icmp slt i64 {next_}, {hi}")
        if loop.long:
            # who stops a run sets the counters of its pieces behind their end (``interrupts``)
            counter = lines.temp(f"getelementptr inbounds i64, ptr %error, i64 {self.counter}")
            claimed = lines.temp(f"load atomic i64, ptr {counter} monotonic, align 8")
            again = lines.temp(f"and i1 {again}, {lines.temp(f'icmp slt i64 {claimed}, {BEHIND_THE_END}')}")
        metadata = ""
        if loop.lanes:
            number = 10 + len(self.loops) + _metadata_base(self.name)
            self.loops.append(f"!{number} = distinct !{{!{number}, !1, !2}}")
            metadata = f", !llvm.loop !{number}"
        lines.emit(f"br i1 {again}, label %{body}, label %{after}{metadata}")
        lines.open(after)


def tests_divisors(kernel: ir.Kernel) -> bool:
    """Tell whether loops look at a divisor, which is often the same for all elements: a scalar argument."""
    return any(isinstance(each, ir.Compute) and each.op in _DIVISIONS for each in _leaves(kernel))


_DIVISIONS = frozenset([o.FLOOR_DIVIDE, o.REMAINDER, o.FMOD])


def _leaves(kernel: ir.Kernel) -> Iterator[ir.Statement]:
    """All statements but loops and branches."""
    pending = [phase.body for phase in kernel.phases]
    while pending:
        for statement in pending.pop():
            if isinstance(statement, ir.Loop | ir.If):
                pending.append(statement.body)
            else:
                yield statement


UNKNOWN = 16  # turns of a loop, where only the run knows


def _work(statements: list[ir.Statement]) -> tuple[int, int, int]:
    """Count operations, quotients and roots of loops; the turns of one that has roots are the same for all that is in it."""
    others = quotients = square_roots = 0
    for statement in statements:
        if isinstance(statement, ir.Compute):
            quotients += statement.op is o.DIVIDE
            square_roots += statement.op is o.SQRT and statement.dtype.char == "d"
            others += max(statement.op.cost, 1) if statement.op not in (o.DIVIDE, o.SQRT) else 0
        elif isinstance(statement, ir.Loop | ir.If):
            inner = _work(statement.body)
            turns = 1
            if isinstance(statement, ir.Loop) and not inner[2]:
                turns = max(int(statement.hi) - int(statement.lo), 0) if statement.lo.isdigit() and statement.hi.isdigit() else UNKNOWN
            others, quotients, square_roots = (a + turns * b for a, b in zip((others, quotients, square_roots), inner, strict=True))
    return others, quotients, square_roots


def _has_loops(statements: list[ir.Statement]) -> bool:
    return any(isinstance(each, ir.Loop) or (isinstance(each, ir.If) and _has_loops(each.body)) for each in statements)


def _types(kernel: ir.Kernel) -> set[ir.DType]:
    """The dtypes that are computed with."""
    return {dtype for each in _leaves(kernel) if isinstance(each, ir.Compute) for dtype in (each.dtype, each.source)}


def _may_raise(statements: list[ir.Statement]) -> bool:
    """Tell whether an operation can set a floating-point flag that NumPy would report."""
    for statement in statements:
        match statement:
            case ir.Compute(_, op, dtype, _, source):
                found = bool(raises(op, dtype, source))
            case ir.Halve(_, op, dtype) | ir.Push(op, dtype) | ir.Collect(_, op, dtype):
                found = bool(raises(op, dtype, dtype))
            case ir.Loop() | ir.If():
                found = _may_raise(statement.body)
            case _:
                found = False
        if found:
            return True
    return False


def _metadata_base(name: str) -> int:
    """Loops of one kernel get numbers of their own; a kernel has at most a few thousand."""
    digits = "".join(c for c in name if c.isdigit())
    return 10_000 * (int(digits or 0) + 1)


