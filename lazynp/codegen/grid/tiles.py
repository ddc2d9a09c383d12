"""Arrays that are walked across their rows, by the threads of a grid.

In: plain work over two innermost loops, where some array is read along the outer one.  Out: a launch of tiles: a block reads its part of
such arrays along their own rows into shared memory, and computes along the rows of what it stores.  Promise: all global accesses of a warp
are to neighbours; a tile's rows are one element longer than needed, so that a column of it lies in different banks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from lazynp.codegen import ir
from lazynp.codegen.grid.launch import Launches
from lazynp.codegen.ir import Operand
from lazynp.codegen.nest import Work
from lazynp.graph.index import Formula, Range
from lazynp.schedule.lower import LOAD, Value

TILE = 32
ROWS = 8  # rows of threads of a block
PITCH = TILE + 1
SHARED_BYTES = 44 * 1024


def across(nest: Launches, depth: int, work: Work) -> list[Value]:
    """List what is read along the outer of the two innermost loops."""
    main = nest.body.main
    if depth != len(main) or depth < 2:
        return []
    row, column = main[-2:]
    if row.extent < TILE or column.extent < TILE:
        return []
    pending, seen = [out.value for out in work.outputs], set[Value]()
    found = []
    while pending:
        v = pending.pop()
        if v in seen:
            continue
        seen.add(v)
        pending += v.src
        index = v.index
        plain = v.op is LOAD and not v.guards and not v.src
        if plain and index is not None and index.coefficient(row) == 1 and index.coefficient(column) not in (0, 1):
            found.append(v)
    found.sort(key=lambda v: v.number)
    size = sum(PITCH * TILE * v.dtype.itemsize for v in found)
    return found if size <= SHARED_BYTES else []


def tiles(nest: Launches, depth: int, work: Work, across: list[Value]) -> None:
    *outer, row, column = nest.body.main[:depth]
    down, right = (nest.argument(("tiles", r, TILE), Formula(-(-r.extent // TILE))) for r in (row, column))
    count = prod([r.extent for r in outer]) * prod([-(-r.extent // TILE) for r in (row, column)])
    nest.launch_of(nest.argument(("tiles", row, column), Formula(count)), TILE * ROWS)
    memories = {v: nest.shared(v.dtype, str(TILE * PITCH)) for v in across}
    x, y = nest.integer("rem", "thread", str(TILE)), nest.integer("div", "thread", str(TILE))
    rest = nest.integer("div", "block", right)
    left = nest.integer("mul", nest.integer("rem", "block", right), str(TILE))
    top = nest.integer("mul", nest.integer("rem", rest, down), str(TILE))
    nest.bind_rows(tuple(outer), nest.integer("div", rest, down))

    for step in range(0, TILE, ROWS):
        across_y = nest.integer("add", y, str(step))
        with _inside(nest, row, column, nest.integer("add", top, x), nest.integer("add", left, across_y)):
            place = nest.integer("add", nest.integer("mul", across_y, str(PITCH)), x)
            for v in across:
                nest.append(ir.Store(v.dtype, memories[v], place, nest.operand(v)))
    nest.append(ir.Barrier())
    for step in range(0, TILE, ROWS):
        down_y = nest.integer("add", y, str(step))
        with _inside(nest, row, column, nest.integer("add", top, down_y), nest.integer("add", left, x)):
            place = nest.integer("add", nest.integer("mul", x, str(PITCH)), down_y)
            for v in across:
                dst = nest.name()
                nest.append(ir.Load(dst, v.dtype, memories[v], place))
                nest.scopes[-1].memo[v] = dst
            for out in work.outputs:
                nest.store(out)


@contextmanager
def _inside(nest: Launches, row: Range, column: Range, i: Operand, j: Operand) -> Iterator[None]:
    """Emit what is done at (i, j), if that is an element."""
    there = nest.integer("and", nest.integer("lt", i, nest.extent(row)), nest.integer("lt", j, nest.extent(column)))
    with nest.when(there):
        nest.bind(row, i)
        nest.bind(column, j)
        yield
