"""The plan of a pending value, as data and as text.

In: pending nodes, and what is to be said of each value.  Out: that, how the plan would run, and what: kernels and library calls in order,
what each reads, writes and computes, its loop nest, and for every value that is stored the reason why it was not fused.  Promise: nothing
is computed, compiled or changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lazynp.codegen.items import KernelItem, LibraryItem, Schedule
from lazynp.codegen.pipeline import scheduled
from lazynp.codegen.show import show
from lazynp.engine.realize import compiler, way
from lazynp.graph import op as o
from lazynp.graph.node import Node, where
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Canonical, Program, canonicalise


def schedule(nodes: Sequence[Node]) -> Schedule:
    """The schedule that would compute ``nodes``, not run."""
    return _schedule(nodes)[1]


def _schedule(nodes: Sequence[Node]) -> tuple[Canonical, Schedule]:
    canonical = canonicalise([node for node in nodes if node.buffer is None])
    return canonical, scheduled(Program.of(canonical), compiler(canonical.wanted))


def explain(nodes: Sequence[Node], said: Sequence[str]) -> str:
    """The same as text, with what is ``said`` of the values."""
    if all(node.buffer is not None for node in nodes):
        return "\n".join(said)
    canonical, made = _schedule(nodes)
    program = made.program
    names = {e: f"t{e}" for e in range(len(program.entries))}
    for e, entry in enumerate(program.entries):
        if entry.op is o.BUFFER:
            names[e] = f"in{entry.arg}"
    for k, e in enumerate(program.outputs):
        names[e] = f"out{k}"

    def array(e: int) -> str:
        entry = program.entries[e]
        return f"{names[e]}: {entry.dtype}{list(entry.shape)}"

    def line(e: int) -> str:
        return where(canonical.nodes[program.origins[e]].site)

    kernels = sum(isinstance(item, KernelItem) for item in made.items)
    text = [f"{kernels} kernel(s), {len(made.items) - kernels} library call(s), at most {made.peak_bytes:,} bytes of results alive"]
    text += [*said, f"run by {way(nodes)}"]
    for number, item in enumerate(made.items):
        text.append("")
        if isinstance(item, LibraryItem):
            text.append(f"[{number}] library call: {', '.join(_operation(program, e) for e in item.entries)}")
            text += [f"  reads   {array(e)}" for e in item.reads]
            text += [f"  writes  {array(e)}  ({line(e)})" for e in item.writes]
            continue
        operations = [e for e in sorted({e for e, _ in item.kernel.points}) if program.entries[e].op.kind is not Kind.MOVEMENT]
        text.append(f"[{number}] kernel over {[r.extent for r in item.body.main]}: {len(operations)} operation(s)")
        text += [f"  reads   {array(e)}" for e in item.reads]
        text += [f"  writes  {array(e)}  ({line(e)}): {made.partition.reasons[e]}" for e in item.writes]
        text.append(f"  computes {', '.join(_operation(program, e) for e in operations)}")
        text += ["  " + row for row in show(item.code).splitlines()]
    return "\n".join(text)


def _operation(program: Program, e: int) -> str:
    entry = program.entries[e]
    if entry.op is o.REDUCE:
        return f"{entry.arg[0].name}.reduce{list(entry.arg[1])}"
    if entry.op is o.CALL:
        return str(entry.arg[0])
    return entry.op.name if prod(entry.shape) != 1 else f"{entry.op.name} (scalar)"
