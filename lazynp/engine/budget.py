"""Runs that need more memory than there is, cut into several.

In: what one run would compute, on the processor or a GPU.  Out: what to compute first, if that lets inputs go.  Promise: only runs that are
planned to need more than the budget (``LAZYNP_MEMORY``; else half of what is free) are cut, at a place where less is on its way from the
first run to the second than the inputs take that only the first one reads; what is found depends on sizes alone.

Within one run temporaries go at their last reader, but inputs stay to its end: the program might hold them.  Between runs those that are
not held go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from lazynp.graph.node import Node
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Canonical, Program
from lazynp.schedule.claims import VIEWS, nbytes
from lazynp.values import config, limits, pressure
from lazynp.values.loading import load

ASK_SHARE: Final = 16  # of the machine's memory: a run that needs less is not asked about
MOST: Final = 4096  # programs that are remembered


def ask_from() -> int:
    """Bytes from which on a run is compared with the budget."""
    return limits.memory() // ASK_SHARE if config.memory is None else config.memory


def on_gpu(place: Any) -> Large:
    """A table for the programs of one GPU."""
    return Large(place.account.total // ASK_SHARE if config.memory is None else config.memory, place.budget)


class Large(dict[Any, int]):
    """A table of the programs that need much: the bytes that each is planned to hold beside its inputs, by key."""

    __slots__ = ("budget", "least")

    def __init__(self, least: int | None = None, budget: Callable[[], int] | None = None) -> None:
        self.least = ask_from() if least is None else least
        self.budget = budget  # of a GPU; the machine's own memory is asked where there is none

    def weigh(self, canonical: Canonical, target: Callable[[], Any] | None) -> None:
        """Enter a program that was not seen before, if it needs much; NumPy would run it where there is no ``target``."""
        total = sum([_size(node) for node in canonical.nodes if node.op.kind is not Kind.LEAF and node.op.kind is not Kind.MOVEMENT])
        if total <= self.least:
            return
        pipeline, recorded_peak = load("lazynp.codegen.pipeline"), load("lazynp.schedule.memory").recorded_peak  # few programs need much
        program = Program.of(canonical)
        given = sum([nbytes(entry) for entry in program.entries if entry.op.kind is Kind.LEAF])
        peak = recorded_peak(program) - given
        if peak > self.least and target is not None:
            peak = pipeline.scheduled(program, target()).peak_bytes
        if peak > self.least:
            if len(self) >= MOST:
                self.clear()
            self[canonical.key] = peak

    def first(self, canonical: Canonical) -> list[Node]:
        """List what is to be computed before the rest; nothing where the program fits, or cannot be cut to advantage."""
        peak = self.get(canonical.key)
        return cut(canonical.wanted) if peak is not None and peak > (self.budget or pressure.budget)() else []


def _size(node: Node) -> int:
    return prod(node.shape) * node.dtype.itemsize


def cut(wanted: Sequence[Node]) -> list[Node]:
    """List the values on their way at the best place to cut: where the inputs that are done with outweigh them most.

    The order is that of recording, in which NumPy would compute.
    """
    order = _pending(wanted)
    base = {node: node for node in order}
    for node in order:
        if node.op in VIEWS and node.src[0] in base:
            base[node] = base[node.src[0]]
    last: dict[Node, int] = {}
    for position, node in enumerate(order):
        for source in node.src:
            last[base.get(source, source)] = position
    kept = {base[node] for node in wanted if node in base}
    ends: dict[int, list[Node]] = {}
    for node, position in last.items():
        ends.setdefault(position, []).append(node)
    inputs = sum([_size(node) for node in last if node.buffer is not None])
    alive: dict[Node, None] = {}
    passing = done = 0
    best, gain = -1, 0
    for position, node in enumerate(order[:-1]):
        if base[node] is node:
            alive[node] = None
            if node not in kept:
                passing += _size(node)
        for ended in ends.get(position, ()):
            if ended.buffer is not None:
                done += _size(ended)
            elif ended in alive and ended not in kept:
                passing -= _size(ended)
                del alive[ended]
        worth = min(done, inputs - done) - passing  # half way is best: what is left is looked at again
        if alive and worth > gain:
            best, gain = position, worth
    if best < 0:
        return []
    found = {base[node] for node in order[: best + 1] if last.get(base[node], -1) > best or base[node] in kept}
    return [node for node in order[: best + 1] if node in found]


def _pending(wanted: Sequence[Node]) -> list[Node]:
    """List what is to be computed, in the order of recording."""
    seen: set[Node] = set()
    pending = [node for node in wanted if node.buffer is None]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += [source for source in node.src if source.buffer is None and source.op.kind is not Kind.LEAF]
    return sorted(seen, key=lambda node: node.number)
