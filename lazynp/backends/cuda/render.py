"""From the loop-nest IR to CUDA C++.

In: an ``ir.Kernel`` whose phases have threads.  Out: a ``__global__`` function for each phase, named after the kernel and the phase's
number, and before all kernels of a module the device functions they call.  Promise: equal kernels give equal text; nothing is included, for
a machine with a driver and NVRTC may have no header; no statement touches memory that the IR does not.

A kernel's only parameter is the argument block (``lazynp/codegen/block.py``) by value; it is taken apart there, and the work is done by an
inlined function whose parameters say that no two buffers overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Final

import numpy as np

from lazynp.backends.cuda import errors, functions, looks, scalars, support
from lazynp.backends.cuda.looks import Looks
from lazynp.backends.cuda.types import literal, memory_type, type_of
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.codegen.ir import DType, Operand
from lazynp.codegen.vectors import vectorise
from lazynp.graph import op as o
from lazynp.graph.errors import UNDER

BOOL: Final = np.dtype(np.bool_)
INT64: Final = np.dtype(np.int64)
INFIX: Final = {"add": "+", "sub": "-", "mul": "*", "shl": "<<", "lt": "<", "ge": ">=", "eq": "==", "and": "&&", "or": "||"}
UNSIGNED: Final = {"div": "/", "rem": "%"}
CONDITIONS: Final = ("lt", "ge", "eq", "and", "or")
NAMED: Final = 4  # operations that a kernel's name has; of more it has the number
UNROLLED: Final = 8  # iterations of a loop that is written out by the compiler
supported = scalars.supported  # what can be rendered
PREFIX: Final = {"buffer": "b", "workspace": "w", "shared": "x", "local": "l"}


def name_of(kernel: ir.Kernel) -> str:
    """Return what profilers call a kernel: its operations in the order of its text, then its reductions.

    Equal kernels have equal names, whatever line of a program they are for.
    """
    statements = [s for phase in kernel.phases for s in errors.walk(phase.body)]
    reduced = dict.fromkeys([s.op for s in statements if isinstance(s, ir.Fold | ir.Halve | ir.Push | ir.Collect)])
    computed = dict.fromkeys([s.op for s in statements if isinstance(s, ir.Compute) and s.op not in (o.CAST, o.BITCAST, *reduced)])
    found = [*[op.name for op in computed], *[f"{op.name}_reduce" for op in reduced]]
    shown = found[:NAMED] or ["move"]
    more = [f"and_{len(found) - NAMED}_more"] if len(found) > NAMED else []
    return re.sub(r"\W", "_", "_".join(["lazynp", *shown, *more]))


def divisors(kernel: ir.Kernel) -> list[int]:
    """List the integer arguments that 32-bit indices are divided by, each of which a launch passes as ``reciprocal`` does.

    What a launch itself counts by is none of them.
    """
    divided = [s.b for phase in kernel.phases for s in errors.walk(phase.body) if isinstance(s, ir.Integer) and s.kind in UNSIGNED]
    counts = {phase.count for phase in kernel.phases} | {x.count for phase in kernel.phases for x in (*phase.shared, *phase.locals)}
    return sorted({int(b[1:]) for b in divided if b.startswith("n") and b not in counts})


def reciprocal(divisor: int) -> int:
    """Return a divisor below 2**31, and in the upper half the multiplier whose product's upper bits are the quotient (``lz_quotient``).

    The multiplier is 2**(31 + bits) / divisor, rounded up, between 2**31, which is left out, and 2**32 (Granlund and Montgomery, 1994).
    """
    multiplier = -(-(1 << 31 + (divisor - 1).bit_length()) // divisor)
    return divisor | multiplier - (1 << 31) << 32


def render(name: str, kernel: ir.Kernel, wide: bool) -> str:
    """All phases of a kernel; ``wide``: indices need 64 bits."""
    return _Kernel(name, kernel, wide).text()


def prelude(kernels: Iterable[ir.Kernel]) -> str:
    """Collect what kernels need before them in a module."""
    return _prelude([render("k", kernel, False) for kernel in kernels])


def module(kernels: Sequence[tuple[str, ir.Kernel, bool]]) -> str:
    """The whole source of several kernels."""
    texts = [render(*kernel) for kernel in kernels]
    return "\n".join([_prelude(texts), *texts])


def _prelude(texts: Sequence[str]) -> str:
    return f"{functions.closure(chr(10).join(texts))}\n"


class _Kernel:
    def __init__(self, name: str, kernel: ir.Kernel, wide: bool) -> None:
        self.name = name
        self.kernel = kernel
        self.layout = Layout(kernel)
        self.index = "long long" if wide else "int"
        self.divisors = () if wide else tuple(divisors(kernel))
        self.lines: list[str] = []
        self.depth = 1
        self.values: set[Operand] = set()  # 64-bit integers that are values, not indices
        self.types: dict[Operand, str] = {}  # of all that is known in the phase
        self.looks = Looks("", "", {})
        self.phase = ir.Phase()
        self.bad = ""  # in a loop that may run again: what is set where a result is not finite
        self.again = False  # and whether this is the second time
        self.kept: dict[Operand, ir.Memory] = {}  # results that need no look in such a loop

    def text(self) -> str:
        slots = f"struct {self.name}_args {{ unsigned long long slot[{self.layout.slots}]; }};"
        return "\n".join([slots, *[self.function(number, phase) for number, phase in enumerate(self.kernel.phases)]]) + "\n"

    # Functions -----------------------------------------------------------------------------------------------------------

    def function(self, number: int, phase: ir.Phase) -> str:
        """The function of a phase, and the kernel that calls it."""
        self.lines = []
        self.phase = phase
        self.values = set()
        self.types = {f"s{k}": type_of(dtype) for k, dtype in enumerate(self.kernel.scalars)}
        self.types |= dict.fromkeys(["block", "thread", *[f"n{k}" for k in range(self.kernel.integers)]], self.index)
        places = {f"s{k}": self.scalar(k) for k in range(len(self.kernel.scalars))}
        self.looks = Looks(f"{self.name}_p{number}", f"{self.name}_args", places)
        self.statements(vectorise(phase.body))
        body = "\n".join(self.lines)
        name = f"{self.name}_p{number}"
        parameters = list(self.parameters(phase, body))
        inner = ", ".join(f"{t} {operand}" for t, operand, _ in parameters)
        passed = ", ".join(value for _, _, value in parameters)
        constant = "__grid_constant__ " if self.looks.read else ""
        return "\n".join(
            [
                *self.looks.definitions(),
                f"static __device__ __forceinline__ void {name}_body({inner})",
                "{",
                *self.declarations(phase, body),
                body,
                *_ends(body, self.kernel.errors),
                "}",
                f'extern "C" __global__ void __launch_bounds__({phase.threads}) {name}(const {constant}{self.name}_args a)',
                "{",
                *_shared(phase),
                f"    {name}_body({passed});",
                "}",
            ]
        )

    def parameters(self, phase: ir.Phase, body: str) -> Iterator[tuple[str, Operand, str]]:
        """(type, name, where the kernel has it) of what a phase uses."""
        kernel, layout = self.kernel, self.layout
        used = set(re.findall(r"\b[bdwxns]\d+\b", body))
        found = [*self.arrays(phase)]
        found += [(f"{memory_type(local.dtype)}*", f"x{k}", f"x{k}") for k, local in enumerate(phase.shared)]
        found += [(f"const {self.index}", f"n{k}", f"({self.index})a.slot[{layout.integers + k}]") for k in range(kernel.integers)]
        found += [("const unsigned long long", f"d{k}", f"a.slot[{layout.integers + k}]") for k in self.divisors]
        found += [(f"const {type_of(dtype)}", f"s{k}", self.scalar(k)) for k, dtype in enumerate(kernel.scalars)]
        if self.looks.read:
            yield f"const {self.name}_args&", "a", "a"
        yield from [parameter for parameter in found if parameter[1] in used]
        for word, name, slot, told in (("raised", "error", layout.error, True), ("noted", "flags", layout.flags, kernel.errors)):
            if word in body and told:
                yield "unsigned long long*", name, f"(unsigned long long*)a.slot[{slot}]"
        if "counters" in body:
            yield "unsigned int*", "counters", f"(unsigned int*)a.slot[{layout.counters}]"

    def scalar(self, k: int) -> str:
        """A scalar argument, from its slots."""
        slot = self.layout.scalars + 2 * k
        return _scalar(self.kernel.scalars[k], f"a.slot[{slot}]", f"a.slot[{slot + 1}]")

    def arrays(self, phase: ir.Phase) -> Iterator[tuple[str, Operand, str]]:
        """Buffers and workspaces.

        What a pointer is restricted to may stay in registers beyond a barrier: a phase that has one must not read so what it writes.
        """
        kernel, layout = self.kernel, self.layout
        read, written = set[ir.Memory](), set[ir.Memory]()
        barrier = _accesses(phase.body, read, written)
        spaces = (("buffer", kernel.buffers, layout.buffers), ("workspace", kernel.workspaces, layout.workspaces))
        for space, dtypes, first in spaces:
            for k, dtype in enumerate(dtypes):
                memory = ir.Memory(space, k)
                t = f"{'' if memory in written else 'const '}{memory_type(dtype)}*"
                restrict = "" if barrier and memory in read & written else " __restrict__"
                yield f"{t}{restrict}", _base(memory), f"({t})a.slot[{first + k}]"

    def declarations(self, phase: ir.Phase, body: str) -> Iterator[str]:
        for name, builtin in (("block", "blockIdx.x"), ("thread", "threadIdx.x")):
            if re.search(rf"\b{name}\b", body):
                yield f"    const {self.index} {name} = {builtin};"
        for k, local in enumerate(phase.locals):
            size = "" if self.is_register(ir.Memory("local", k)) else f"[{local.count}]"
            yield f"    {type_of(local.dtype) if not size else memory_type(local.dtype)} l{k}{size};"
        if "raised" in body:
            yield "    unsigned long long raised = 0;"
        if "noted" in body:
            yield "    unsigned int noted = 0;"

    def is_register(self, memory: ir.Memory) -> bool:
        return memory.space == "local" and self.phase.locals[memory.number].count == "1"

    # Statements ------------------------------------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, head: str, body: Sequence[ir.Statement]) -> None:
        self.emit(f"{head} {{")
        self.depth += 1
        self.statements(body)
        self.depth -= 1
        self.emit("}")

    def define(self, dst: Operand, dtype: DType, text: str) -> None:
        if dtype == INT64:
            self.values.add(dst)
        self.declare(dst, type_of(dtype), text)

    def declare(self, dst: Operand, t: str, text: str) -> None:
        self.types[dst] = t
        self.emit(f"const {t} {dst} = {text};")

    def statements(self, statements: Sequence[ir.Statement]) -> None:
        watched = errors.plan(statements, self.kernel.errors)
        apart = [] if self.bad or self.again else looks.groups(statements, self.kernel.errors)
        first = last = ""
        if apart:
            watched = errors.plan(statements, self.kernel.errors, inf)
            computed = [s.dst for s in statements if isinstance(s, ir.Compute)]
            first, last = computed[0], [dst for dst in computed if dst in watched][-1]
        vanishing: list[ir.Compute] = []  # since underflows were last looked for
        for statement in statements:
            match statement:
                case ir.Compute(dst, op, dtype, args, source):
                    if dst == first:
                        self.bad, self.kept = f"bad_{last}", {}
                        self.emit(f"bool {self.bad} = false;")
                    self.define(dst, dtype, scalars.expression(op, dtype, args, source))
                    if self.kernel.errors & UNDER and errors.may_vanish(statement):
                        vanishing.append(statement)
                    if dst in watched:
                        self.look_for_underflows(vanishing)
                        self.look_for_errors(statement, watched[dst])
                    if dst == last:
                        self.look_apart(apart, errors.looked(statements, self.kernel.errors))
                case ir.Constant(dst, dtype, value):
                    self.define(dst, dtype, literal(value, dtype))
                case ir.Integer(dst, kind, a, b):
                    self.integer(dst, kind, a, b)
                case ir.Load(dst, dtype, memory, index, guard):
                    self.load(dst, dtype, memory, index, guard)
                case ir.LoadVector():
                    self.load_vector(statement)
                case ir.Store(_, memory, index, value):
                    self.emit(f"{self.element(memory, index)} = {value};")
                case ir.StoreVector():
                    self.store_vector(statement)
                case ir.Halve(dst, op, dtype, memory):
                    self.define(dst, dtype, support.call("halve", op, dtype, _base(memory)))
                case ir.Push(op, dtype, memory, value, number):
                    self.emit(f"{support.call('push', op, dtype, _base(memory), value, number)};")
                case ir.Collect(dst, op, dtype, memory, count):
                    self.define(dst, dtype, support.call("collect", op, dtype, _base(memory), count))
                case ir.Fold(dst, op, dtype, value):
                    self.define(dst, dtype, support.call("fold", op, dtype, value))
                case ir.Barrier():
                    self.emit("__syncthreads();")
                case ir.Last(dst, count, counter):
                    # The counter wraps to 0 with the last block: so it is there for the next launch in this stream.  Between two barriers
                    # one thread passes on what all have written, and passes to all what other blocks have.
                    self.emit("__syncthreads();")
                    self.emit(f"bool {dst}_ = false;")
                    self.emit("if (threadIdx.x == 0) {")
                    self.emit("    __threadfence();")
                    self.emit(f"    {dst}_ = atomicInc(counters + {counter}, (unsigned int){count} - 1u) == (unsigned int){count} - 1u;")
                    self.emit("    __threadfence();")
                    self.emit("}")
                    self.emit(f"const bool {dst} = __syncthreads_or({dst}_) != 0;")
                case ir.Raise(condition, flag):
                    self.emit(f"raised |= {condition} ? {1 << min(flag, 62)}ull : 0ull;")
                case ir.Loop():
                    self.loop(statement)
                case ir.If(condition, body):
                    self.block(f"if ({condition})", body)
        self.look_for_underflows(vanishing)

    def look_for_underflows(self, operations: list[ir.Compute]) -> None:
        if operations:
            self.emit(errors.underflow(operations))
            operations.clear()

    def look_for_errors(self, statement: ir.Compute, operations: Sequence[ir.Compute]) -> None:
        if not self.bad:
            self.emit(errors.others(statement.dst, statement.dtype, operations))
        elif statement.dst not in self.kept:
            self.emit(f"{self.bad} |= {errors.not_finite(statement.dst, statement.dtype)};")

    def look_apart(self, groups: Sequence[looks.Group], looked: set[Operand]) -> None:
        """Look for the errors of what is computed by now, where there is a reason."""
        calls = [self.looks.call(group, looked, self.types) for group in groups]
        self.emit(f"if (__builtin_expect({self.bad}, 0)) noted |= {' | '.join(calls)};")
        self.bad = ""

    def integer(self, dst: Operand, kind: str, a: Operand, b: Operand) -> None:
        t = self.index
        if a in self.values or b in self.values:
            t = "long long"
        if kind in CONDITIONS:
            self.declare(dst, "bool", f"{a} {INFIX[kind]} {b}")
            return
        if t != self.index:
            self.values.add(dst)
        if kind in INFIX:
            text = f"{a} {INFIX[kind]} {b}" if t == "int" else f"({t}){a} {INFIX[kind]} {b}"
        elif kind in UNSIGNED and t == "int" and b.startswith("n") and int(b[1:]) in self.divisors:
            text = f"lz_quotient({a}, d{b[1:]})"
            if kind == "rem":
                text = f"{a} - {text} * {b}"
        elif kind in UNSIGNED:
            word = f"unsigned {t}"
            text = f"({t})(({word}){a} {UNSIGNED[kind]} ({word}){b})"
        else:
            assert kind in ("min", "max")
            text = f"{a} {'<' if kind == 'min' else '>'} {b} ? {a} : {b}"
        self.declare(dst, t, text)

    def element(self, memory: ir.Memory, index: Operand) -> str:
        return _base(memory) if self.is_register(memory) else f"{_base(memory)}[{index}]"

    def load(self, dst: Operand, dtype: DType, memory: ir.Memory, index: Operand, guard: Operand | None) -> None:
        text = self.element(memory, index)
        if dtype.kind == "b" and not self.is_register(memory):
            text = f"{text} != 0"
        if guard is not None:
            text = f"{guard} ? {text} : {literal(0, dtype)}"
        self.define(dst, dtype, text)

    # Consecutive elements: one access where the address allows it, which is the same for all threads.

    def load_vector(self, s: ir.LoadVector) -> None:
        t, n = memory_type(s.dtype), len(s.dsts)
        vector, place = f"lz_vector<{t}, {n}>", f"{_base(s.memory)} + {s.index}"
        names = [f"{dst}_" for dst in s.dsts] if s.dtype.kind == "b" else s.dsts
        self.emit(f"{t} {', '.join(names)};")
        self.emit(f"if (lz_aligned({place}, {n * s.dtype.itemsize}u)) {{")
        self.emit(f"    const {vector} t = *(const {vector}*)({place});")
        self.emit("    " + " ".join([f"{name} = t.e[{k}];" for k, name in enumerate(names)]))
        self.emit("} else {")
        self.emit("    " + " ".join([f"{name} = {_base(s.memory)}[{_plus(s.index, k)}];" for k, name in enumerate(names)]))
        self.emit("}")
        self.types.update(dict.fromkeys(s.dsts, type_of(s.dtype)))
        for name, dst in zip(names, s.dsts, strict=True):
            if name != dst:
                self.emit(f"const bool {dst} = {name} != 0;")
        if s.dtype == INT64:
            self.values.update(s.dsts)

    def store_vector(self, s: ir.StoreVector) -> None:
        t, n = memory_type(s.dtype), len(s.values)
        vector, place = f"lz_vector<{t}, {n}>", f"{_base(s.memory)} + {s.index}"
        values = [f"({t}){v}" if s.dtype.kind in "biu" or s.dtype.char == "e" else v for v in s.values]
        self.emit(f"if (lz_aligned({place}, {n * s.dtype.itemsize}u)) {{")
        self.emit(f"    *({vector}*)({place}) = {vector}{{{{{', '.join(values)}}}}};")
        self.emit("} else {")
        self.emit("    " + " ".join([f"{_base(s.memory)}[{_plus(s.index, k)}] = {v};" for k, v in enumerate(s.values)]))
        self.emit("}")

    def loop(self, loop: ir.Loop) -> None:
        """A loop that does nothing but accumulate runs without a look at each result, and once more with it if that finds a reason.

        The loads of several iterations are then under way together, for there is no branch between them.
        """
        kept = errors.accumulators(loop.body)
        if self.bad or self.again or not self.accumulates(loop.body) or not self.is_watched(loop.body):
            self.plain_loop(loop)
            return
        self.bad, self.kept = f"bad_{loop.var}", kept
        registers = sorted({s.memory for s in errors.walk(loop.body) if isinstance(s, ir.Store)})
        types = {m: self.phase.locals[m.number].dtype for m in registers}
        for m in registers:
            self.emit(f"const {type_of(types[m])} {_base(m)}_{loop.var} = {_base(m)};")
        self.emit(f"bool {self.bad} = false;")
        self.plain_loop(loop)
        tests = [self.bad, *[errors.not_finite(_base(m), types[m]) for m in registers if m in kept.values()]]
        self.bad, self.again = "", True
        self.emit(f"if (__builtin_expect({' || '.join(tests)}, 0)) {{")
        self.depth += 1
        for m in registers:
            self.emit(f"{type_of(types[m])} {_base(m)} = {_base(m)}_{loop.var};")
        self.plain_loop(loop)
        self.depth -= 1
        self.emit("}")
        self.again = False

    def is_watched(self, statements: Sequence[ir.Statement]) -> bool:
        return any(errors.plan(block, self.kernel.errors) for block in errors.blocks(statements))

    def accumulates(self, statements: Sequence[ir.Statement]) -> bool:
        """Tell whether nothing is written but registers, and no other thread takes part."""
        return all(
            self.is_register(s.memory) if isinstance(s, ir.Store) else isinstance(s, _REPEATABLE) for s in errors.walk(statements)
        )

    def plain_loop(self, loop: ir.Loop) -> None:
        lo, hi, step = loop.lo, loop.hi, loop.step
        t = "long long" if not {lo, hi}.isdisjoint(self.values) else self.index
        if t != self.index:
            self.values.add(loop.var)
        self.types[loop.var] = t
        known = lo.isdigit() and hi.isdigit() and step.isdigit()
        inside = errors.walk(loop.body)
        if self.again or any(isinstance(s, ir.Barrier | ir.Last) or (not known and step == "1" and _is_output(s)) for s in inside):
            # Written out it would be long and no faster: barriers inside, or a thread's few elements at the end of an array.
            self.emit("#pragma unroll 1")
        elif known and int(hi) - int(lo) <= UNROLLED * int(step):
            self.emit("#pragma unroll")
        advance = f"++{loop.var}" if step == "1" else f"{loop.var} += {step}"
        self.block(f"for ({t} {loop.var} = {lo}; {loop.var} < {hi}; {advance})", loop.body)


_REPEATABLE: Final = (ir.Compute, ir.Constant, ir.Integer, ir.Load, ir.Raise, ir.Loop, ir.If)


def _is_output(s: ir.Statement) -> bool:
    return isinstance(s, ir.Store) and s.memory.space == "buffer"


def _base(memory: ir.Memory) -> str:
    return f"{PREFIX[memory.space]}{memory.number}"


def _plus(index: Operand, k: int) -> str:
    return f"{index} + {k}" if k else index


def _scalar(dtype: DType, slot: str, second: str) -> str:
    """A scalar argument from its slots."""
    match dtype.kind + str(dtype.itemsize):
        case "b1":
            return f"({slot} & 255u) != 0"
        case "f4":
            return f"__uint_as_float((unsigned int){slot})"
        case "f8":
            return f"__longlong_as_double((long long){slot})"
        case "c8":
            return f"lz_c8{{__uint_as_float((unsigned int){slot}), __uint_as_float((unsigned int)({slot} >> 32))}}"
        case "c16":
            return f"lz_c16{{__longlong_as_double((long long){slot}), __longlong_as_double((long long){second})}}"
        case _:
            return f"({type_of(dtype)}){slot}"


def _shared(phase: ir.Phase) -> Iterator[str]:
    """The scratch of a block: at most one array is as long as the launch says."""
    for k, local in enumerate(phase.shared):
        t = memory_type(local.dtype)
        if local.count.isdigit():
            yield f"    __shared__ {t} x{k}[{local.count}];"
        else:
            yield "    extern __shared__ __align__(16) unsigned char dynamic_[];"
            yield f"    {t}* const x{k} = ({t}*)dynamic_;"


def _ends(body: str, wanted: int) -> Iterator[str]:
    """Write what a thread reports, if it has something to report that is wanted."""
    if "raised" in body:
        yield "    if (raised != 0)"
        yield "        atomicOr(error, raised);"
    if "noted" in body and wanted:
        # Of the threads of a warp, which all get here, those that noted the same have one that speaks; and most often another warp has
        # noted it, too: the word is read before it is locked.
        yield f"    noted &= {wanted}u;"
        yield f"    if (__any_sync({support.EVERY}, noted != 0)) {{"
        yield f"        const unsigned int alike = __match_any_sync({support.EVERY}, noted);"
        yield "        if (noted != 0 && (threadIdx.x & 31u) + 1 == __ffs(alike) && (noted & ~*(volatile unsigned long long*)flags) != 0)"
        yield "            atomicOr(flags, (unsigned long long)noted);"
        yield "    }"


def _accesses(statements: Iterable[ir.Statement], read: set[ir.Memory], written: set[ir.Memory]) -> bool:
    """Gather what is read and written; whether there is a barrier."""
    barrier = False
    for s in statements:
        match s:
            case ir.Load() | ir.LoadVector() | ir.Collect():
                read.add(s.memory)
            case ir.Store() | ir.StoreVector():
                written.add(s.memory)
            case ir.Halve() | ir.Push():
                read.add(s.memory)
                written.add(s.memory)
            case ir.Loop() | ir.If():
                barrier |= _accesses(s.body, read, written)
            case ir.Barrier() | ir.Last():
                barrier = True
    return barrier
