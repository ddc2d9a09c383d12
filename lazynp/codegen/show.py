"""The loop nest as text, for people.

In: an ``ir.Kernel``.  Out: lines that read like Python.  Promise: shows what is rendered, statement for statement.
"""

from __future__ import annotations

from lazynp.codegen import ir

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "//", "rem": "%", "shl": "<<", "lt": "<", "ge": ">=", "eq": "==", "and": "and", "or": "or",
}  # fmt: skip
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip


def show(kernel: ir.Kernel) -> str:
    lines: list[str] = []
    for number, phase in enumerate(kernel.phases):
        if phase.threads:
            lines.append(f"{phase.threads} threads in each of {phase.count} blocks:  # phase {number}")
            for k, scratch in enumerate(phase.shared):
                lines.append(f"    x{k} = {scratch.dtype}[{scratch.count}] of the block")
        elif phase.count:
            lines.append(f"parallel, for each piece [lo, hi) of [0, {phase.count}), {phase.chunk} long:  # phase {number}")
        else:
            lines.append(f"once:  # phase {number}")
        for k, local in enumerate(phase.locals):
            lines.append(f"    l{k} = {local.dtype}[{local.count}]")
        _statements(phase.body, 1, lines)
    return "\n".join(lines)


def _memory(memory: ir.Memory) -> str:
    return f"{'x' if memory.space == 'shared' else memory.space[0]}{memory.number}"


def _statements(statements: list[ir.Statement], depth: int, lines: list[str]) -> None:
    pad = "    " * depth
    for s in statements:
        match s:
            case ir.Compute(dst, op, dtype, args, _):
                if op.name in _INFIX and len(args) == 2:
                    lines.append(f"{pad}{dst} = {args[0]} {_INFIX[op.name]} {args[1]}")
                elif op.name == "where":
                    lines.append(f"{pad}{dst} = {args[1]} if {args[0]} else {args[2]}")
                elif op.name in ("cast", "bitcast"):
                    lines.append(f"{pad}{dst} = {op.name}[{dtype}]({args[0]})")
                else:
                    lines.append(f"{pad}{dst} = {op.name}({', '.join(args)})")
            case ir.Constant(dst, dtype, value):
                lines.append(f"{pad}{dst} = {dtype}({value})")
            case ir.Integer(dst, kind, a, b):
                text = f"{a} {_SIGNS[kind]} {b}" if kind in _SIGNS else f"{kind}({a}, {b})"
                lines.append(f"{pad}{dst} = {text}")
            case ir.Load(dst, _, memory, index, guard):
                otherwise = f" if {guard} else 0" if guard else ""
                lines.append(f"{pad}{dst} = {_memory(memory)}[{index}]{otherwise}")
            case ir.Store(_, memory, index, value):
                lines.append(f"{pad}{_memory(memory)}[{index}] = {value}")
            case ir.LoadVector(dsts, _, memory, index):
                lines.append(f"{pad}{', '.join(dsts)} = {_memory(memory)}[{index} ...]")
            case ir.StoreVector(_, memory, index, values):
                lines.append(f"{pad}{_memory(memory)}[{index} ...] = {', '.join(values)}")
            case ir.Halve(dst, op, _, memory):
                lines.append(f"{pad}{dst} = halve({op.name}, {_memory(memory)})")
            case ir.Push(op, _, memory, value, number):
                lines.append(f"{pad}push({op.name}, {_memory(memory)}, {value}, {number})")
            case ir.Collect(dst, op, _, memory, count):
                lines.append(f"{pad}{dst} = collect({op.name}, {_memory(memory)}, {count})")
            case ir.Fold(dst, op, _, value):
                lines.append(f"{pad}{dst} = fold({op.name}, {value})")
            case ir.Barrier():
                lines.append(f"{pad}barrier")
            case ir.Last(dst, count, counter):
                lines.append(f"{pad}{dst} = last of {count} at counter {counter}")
            case ir.Raise(condition, flag):
                lines.append(f"{pad}if {condition}: raise flag {flag}")
            case ir.Loop(var, lo, hi, body, lanes, step):
                stride = f", {step}" if step != "1" else ""
                lines.append(f"{pad}for {var} in range({lo}, {hi}{stride}):{'  # lanes' if lanes else ''}")
                _statements(body, depth + 1, lines)
            case ir.If(condition, body):
                lines.append(f"{pad}if {condition}:")
                _statements(body, depth + 1, lines)
