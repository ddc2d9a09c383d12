"""Launches, and what a thread of one is.

In: what ``Nest`` asks for where a processor would open parallel loops.  Out: phases of a grid, the numbers of their threads, and memory
that the threads of a block share.  Promise: inside a thread loops are what they are on a processor, but for what only pays where one
thread walks everything: none is cut or tiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from lazynp.codegen import ir
from lazynp.codegen.emit import Scope
from lazynp.codegen.ir import Memory, Operand
from lazynp.codegen.nest import Nest, Work
from lazynp.graph.index import Formula, Range
from lazynp.schedule.lower import Body
from lazynp.schedule.movement import Guard
from lazynp.values.records import Row

WARP = 32
FLAT_THREADS = 256  # threads of a block where each works alone


class Team(Row):
    """The threads that work on one row together: a warp, or all ``warps`` of a block.

    ``rank`` is the thread's number in its warp, ``warp`` the warp's in the block.
    """

    depth: int
    warps: int
    rank: Operand
    warp: Operand


class Launches(Nest):
    """``Nest`` whose phases are launches."""

    masks = False

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.team: Team | None = None
        self.serial = False  # the last phase is one thread's, and can take more
        self.launches_at = 0  # the depth whose passes are launches

    def short_range(self) -> None:
        """Take no short range: there is a thread for each element."""

    def plan_stages(self, statements: Any) -> None:
        """Plan no stage: ``rows`` does, which knows the team."""

    def open_stages(self) -> None:
        """Open no stage: ``rows`` does."""

    # Launches ----------------------------------------------------------------------------------------------------------

    def launch_of(self, blocks: Operand, threads: int) -> ir.Phase:
        self.phase = ir.Phase(count=blocks, threads=threads)
        self.kernel.phases.append(self.phase)
        self.scopes = [Scope(self.phase.body, anchor=True)]
        self.serial = False
        return self.phase

    def begin_phase(self, count: Operand = "", chunk: Operand = "") -> ir.Phase:
        """A phase of one thread."""
        assert not count
        if self.serial:
            return self.phase
        self.launch_of("1", WARP)
        self.alone()
        return self.phase

    def alone(self) -> None:
        """The rest of the phase, which has one block, is for one thread."""
        alone = ir.If(self.integer("eq", "thread", "0"))
        self.append(alone)
        self.scopes = [Scope(alone.body, anchor=True)]
        self.serial = True

    def threads_of(self, n: int, key: Any) -> Operand:
        """A launch with a thread for each of ``n`` things, and a few more; the thread's number.  ``key`` is their role."""
        self.launch_of(self.argument(("blocks", key), Formula(-(-n // FLAT_THREADS))), FLAT_THREADS)
        return self.integer("add", self.integer("mul", "block", str(FLAT_THREADS)), "thread")

    def total(self, ranges: Iterable[Range]) -> Operand:
        ranges = tuple(ranges)
        return self.argument(("total", ranges), Formula(prod([r.extent for r in ranges])))

    def shared(self, dtype: ir.DType, count: Operand) -> Memory:
        self.phase.shared.append(ir.Local(dtype, count))
        return Memory("shared", len(self.phase.shared) - 1)

    # What a thread that works alone does not do -----------------------------------------------------------------------------

    def segments(self, depth: int, work: Work) -> list[tuple[Operand | None, Operand | None, dict[Guard, bool]]]:
        return [(None, None, {})]

    def is_column_work(self, depth: int, work: Work) -> bool:
        return False

    def is_transposed(self, depth: int, work: Work) -> bool:
        return False
