"""The functions that end a reduction, compiled once per process.

In: a combining operation and a dtype.  Out: native functions that halve lanes and keep the binary counter of chunk results (see
``lazynp/codegen/reduce.py``).  Promise: kernels call them by name, so their code is neither repeated in a kernel nor compiled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lazynp.backends.llvm import compiler, mathlib, scalars
from lazynp.backends.llvm.scalars import Lines, literal, memory_type
from lazynp.codegen import ir
from lazynp.graph.op import Op
from lazynp.schedule.chunks import LANES

Key = tuple[Op, ir.DType]

_provided: set[Key] = set()


def _name(kind: str, op: Op, dtype: ir.DType) -> str:
    return f"lz{kind}_{op.name}_{dtype.kind}{dtype.itemsize}"


def _in(lines: Lines, dtype: ir.DType, value: str) -> str:
    return lines.temp(f"icmp ne i8 {value}, 0") if dtype.kind == "b" else value


def _out(lines: Lines, dtype: ir.DType, value: str) -> str:
    return lines.temp(f"zext i1 {value} to i8") if dtype.kind == "b" else value


# Calls, from inside a kernel ---------------------------------------------------------------------------------------------


def halve(lines: Lines, needed: set[Key], op: Op, dtype: ir.DType, lanes: str) -> str:
    needed.add((op, dtype))
    return _in(lines, dtype, lines.temp(f"call {memory_type(dtype)} @{_name('halve', op, dtype)}(ptr {lanes})"))


def push(lines: Lines, needed: set[Key], op: Op, dtype: ir.DType, stack: str, value: str, number: str) -> None:
    needed.add((op, dtype))
    value = _out(lines, dtype, value)
    lines.emit(f"call void @{_name('push', op, dtype)}(ptr {stack}, {memory_type(dtype)} {value}, i64 {number})")


def collect(lines: Lines, needed: set[Key], op: Op, dtype: ir.DType, stack: str, count: str) -> str:
    needed.add((op, dtype))
    return _in(lines, dtype, lines.temp(f"call {memory_type(dtype)} @{_name('collect', op, dtype)}(ptr {stack}, i64 {count})"))


def declarations(needed: Iterable[Key]) -> str:
    texts = []
    pointer = "ptr nocapture"
    for op, dtype in sorted(needed, key=repr):
        t = memory_type(dtype)
        attributes = "nounwind willreturn memory(argmem: readwrite)"
        texts.append(f"declare {t} @{_name('halve', op, dtype)}({pointer}) {attributes}")
        texts.append(f"declare void @{_name('push', op, dtype)}({pointer}, {t}, i64) {attributes}")
        texts.append(f"declare {t} @{_name('collect', op, dtype)}({pointer}, i64) {attributes}")
    return "\n".join(texts)


# The functions ------------------------------------------------------------------------------------------------------------


def provide(kernels: Iterable[ir.Kernel], how: str = compiler.WAIT) -> None:
    """Compile what ``kernels`` call and make it known by name; ``how`` is ``compile_module``'s."""
    missing = sorted({key for kernel in kernels for phase in kernel.phases for key in _keys(phase.body)} - _provided, key=repr)
    if not missing:
        return
    names = [_name(kind, *key) for key in missing for kind in ("halve", "push", "collect")]
    compiler.define(compiler.compile_module(_module(missing), names, how=how))
    _provided.update(missing)


def _keys(statements: Iterable[ir.Statement]) -> Iterator[Key]:
    for statement in statements:
        if isinstance(statement, ir.Halve | ir.Push | ir.Collect):
            yield statement.op, statement.dtype
        elif isinstance(statement, ir.Loop | ir.If):
            yield from _keys(statement.body)


def _module(keys: Iterable[Key]) -> str:
    lines = Lines()
    texts = []
    for op, dtype in keys:
        texts += [_halve(lines, op, dtype), _push(lines, op, dtype), _collect(lines, op, dtype)]
    loops = "!1 = !{!\"llvm.loop.unroll.disable\"}\n!0 = distinct !{!0, !1}"
    return "\n".join([*sorted(lines.intrinsics), mathlib.prelude(lines.functions), *texts, loops])


def _combine(lines: Lines, op: Op, dtype: ir.DType, a: str, b: str) -> str:
    """a op b for values as they lie in memory."""
    result = scalars.compute(lines, op, dtype, (_in(lines, dtype, a), _in(lines, dtype, b)), dtype)
    return _out(lines, dtype, result)


def _halve(lines: Lines, op: Op, dtype: ir.DType) -> str:
    lines.lines = []
    t = memory_type(dtype)
    label, half = "entry", LANES // 2
    while half:
        step, after = f"step{half}", f"after{half}"
        lines.emit(f"br label %{step}")
        lines.open(step)
        i, j = f"%i{half}", f"%j{half}"
        lines.emit(f"{i} = phi i64 [ 0, %{label} ], [ {j}, %{step} ]")
        left = lines.temp(f"getelementptr inbounds {t}, ptr %lanes, i64 {i}")
        right = lines.temp(f"getelementptr inbounds {t}, ptr %lanes, i64 {lines.temp(f'add i64 {i}, {half}')}")
        a, b = lines.temp(f"load {t}, ptr {left}"), lines.temp(f"load {t}, ptr {right}")
        lines.emit(f"store {t} {_combine(lines, op, dtype, a, b)}, ptr {left}")
        lines.emit(f"{j} = add i64 {i}, 1")
        lines.emit(f"br i1 {lines.temp(f'icmp ult i64 {j}, {half}')}, label %{step}, label %{after}, !llvm.loop !0")
        lines.open(after)
        label, half = after, half // 2
    lines.emit(f"ret {t} {lines.temp(f'load {t}, ptr %lanes')}")
    return "\n".join([f"define {t} @{_name('halve', op, dtype)}(ptr %lanes) {{\nentry:", *lines.lines, "}"])


def _push(lines: Lines, op: Op, dtype: ir.DType) -> str:
    lines.lines = []
    t = memory_type(dtype)
    lines.emit("br label %test")
    lines.open("test")
    lines.emit("%level = phi i64 [ 0, %entry ], [ %up, %merge ]")
    lines.emit(f"%value = phi {t} [ %x, %entry ], [ %sum, %merge ]")
    slot = lines.temp(f"getelementptr inbounds {t}, ptr %stack, i64 %level")
    full = lines.temp(f"trunc i64 {lines.temp('lshr i64 %number, %level')} to i1")
    lines.emit(f"br i1 {full}, label %merge, label %done")
    lines.open("merge")
    lines.emit("%up = add i64 %level, 1")
    held = lines.temp(f"load {t}, ptr {slot}")
    lines.emit(f"%sum = {_as_copy(t, _combine(lines, op, dtype, held, '%value'))}")
    lines.emit("br label %test")
    lines.open("done")
    lines.emit(f"store {t} %value, ptr {slot}")
    lines.emit("ret void")
    head = f"define void @{_name('push', op, dtype)}(ptr %stack, {t} %x, i64 %number) {{\nentry:"
    return "\n".join([head, *lines.lines, "}"])


def _as_copy(t: str, value: str) -> str:
    return f"select i1 true, {t} {value}, {t} {value}"


def _collect(lines: Lines, op: Op, dtype: ir.DType) -> str:
    lines.lines = []
    t = memory_type(dtype)
    zero = literal(op.identity(dtype), dtype)
    zero = {"true": "1", "false": "0"}.get(zero, zero)
    lines.emit("br label %test")
    lines.open("test")
    lines.emit("%level = phi i64 [ 0, %entry ], [ %up, %next ]")
    lines.emit(f"%value = phi {t} [ {zero}, %entry ], [ %new, %next ]")
    rest = lines.temp("lshr i64 %count, %level")
    lines.emit(f"br i1 {lines.temp(f'icmp eq i64 {rest}, 0')}, label %done, label %look")
    lines.open("look")
    slot = lines.temp(f"getelementptr inbounds {t}, ptr %stack, i64 %level")
    lines.emit(f"br i1 {lines.temp(f'trunc i64 {rest} to i1')}, label %merge, label %next")
    lines.open("merge")
    held = lines.temp(f"load {t}, ptr {slot}")
    merged = _combine(lines, op, dtype, held, "%value")
    lines.emit("br label %next")
    lines.open("next")
    lines.emit(f"%new = phi {t} [ %value, %look ], [ {merged}, %merge ]")
    lines.emit("%up = add i64 %level, 1")
    lines.emit("br label %test")
    lines.open("done")
    lines.emit(f"ret {t} %value")
    head = f"define {t} @{_name('collect', op, dtype)}(ptr %stack, i64 %count) {{\nentry:"
    return "\n".join([head, *lines.lines, "}"])
