"""The defined order of reductions, by the threads of a grid.

In: reductions along a row, and the team of threads that has the row.  Out: the statements that combine.  Promise: the same bits as
``codegen/reduce.py``: a warp's threads are the accumulators of a chunk, folded by halving; what the chunks give is combined pairwise, level
after level, which is what a binary counter does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from lazynp.codegen import ir, reduce
from lazynp.codegen.emit import Result, Scope
from lazynp.codegen.grid.launch import Launches
from lazynp.codegen.ir import Memory, Operand
from lazynp.codegen.reduce import PARTIAL_CHUNKS, Iteration, accumulator
from lazynp.graph.index import Formula, Range
from lazynp.schedule.chunks import CHUNK, LANES
from lazynp.schedule.lower import Value

PARTS_BYTES = 32 << 10  # of a block's shared memory, for results of PARTIAL_CHUNKS chunks each
ALIGNED = 16  # bytes: what an array in shared memory begins at a multiple of
WARPS = 8  # of a block that reduces a piece of one long reduction
BLOCKS_WANTED = 1024  # of a long reduction: enough to fill the largest device several times over

Memories = dict[Value, Memory]


def longest(own: list[Value]) -> int:
    """Elements of a row that one block can reduce."""
    parts = PARTS_BYTES // sum([accumulator(v).itemsize for v in own])
    return ((1 << parts.bit_length()) >> 1) * reduce.PARTIAL


def elements(nest: Launches, total: Operand, body: Callable[[Operand], None]) -> None:
    """``body`` for each of the row's elements that this thread has: the same ones in every pass."""
    team = nest.team
    assert team is not None
    if team.warps == 1:
        with nest.loop(team.rank, total, step=str(LANES)) as position:
            body(position)
        return
    chunks = chunk_count(nest, total)
    with nest.loop(team.warp, chunks, step=str(team.warps)) as chunk, _chunk(nest, chunk, total, team.rank) as position:
        body(position)


def row(nest: Launches, ranges: tuple[Range, ...], own: list[Value], iteration: Iteration) -> None:
    """Reduce one row by its team; every thread has the result in a register."""
    team = nest.team
    assert team is not None
    total = nest.total(ranges)
    if team.warps == 1:
        sums = accumulators(nest, own)
        elements(nest, total, lambda position: element(nest, ranges, own, iteration, sums, position))
        for v in own:
            keep(nest, v, _folded(nest, v, sums))
        return
    count = prod([r.extent for r in ranges])
    chunks = chunk_count(nest, total)
    places = _places(count, team.warps)
    results = {v: nest.shared(accumulator(v), str(places)) for v in own}
    if count <= reduce.PARTIAL:
        _chunks(nest, ranges, own, iteration, results, "0", chunks, team.warps)
        tree(nest, own, results, chunks, str(places.bit_length() - 1), team.warps)
    else:
        pieces = -(-count // reduce.PARTIAL)
        levels = (pieces - 1).bit_length()
        n = nest.argument(("pieces", ranges), Formula(pieces))
        parts = {v: nest.shared(accumulator(v), str(1 << levels)) for v in own}
        with nest.loop("0", n) as piece:
            first, last = _piece(nest, piece, str(PARTIAL_CHUNKS), chunks)
            _chunks(nest, ranges, own, iteration, results, first, last, team.warps)
            tree(nest, own, results, nest.integer("sub", last, first), str(PARTIAL_CHUNKS.bit_length() - 1), team.warps)
            with nest.when(nest.integer("eq", "thread", "0")):
                for v in own:
                    nest.append(ir.Store(accumulator(v), parts[v], piece, load(nest, v, results[v], "0")))
            nest.append(ir.Barrier())
        tree(nest, own, parts, n, str(levels), team.warps)
        results = parts
    for v in own:
        keep(nest, v, load(nest, v, results[v], "0"))


def _places(count: int, warps: int) -> int:
    """Results of chunks that a block combines together."""
    return PARTIAL_CHUNKS if count > warps * CHUNK else warps


def row_bytes(values: list[Value], warps: int) -> int:
    """Bytes of a block's shared memory that ``row`` takes for these reductions, at most."""
    total = 0
    for v in values:
        count = prod([r.extent for r in v.ranges])
        pieces = -(-count // reduce.PARTIAL)
        total += (_places(count, warps) + (1 << (pieces - 1).bit_length())) * accumulator(v).itemsize + ALIGNED
    return total


def split(nest: Launches, place: tuple[Range, ...], ranges: tuple[Range, ...], own: list[Value], iteration: Iteration) -> None:
    """Reduce every row, of which there is one for each iteration of ``place``.

    Every block reduces a piece of a row; the block of a row that is done last combines its pieces, or a block of a second launch does
    where there are too many rows to count.
    """
    rows, count = prod([r.extent for r in place]), prod([r.extent for r in ranges])
    each = PARTIAL_CHUNKS
    while each > WARPS and rows * count < each * CHUNK * BLOCKS_WANTED:
        each //= 2
    pieces = -(-count // (each * CHUNK))
    n = nest.argument(("pieces", place, ranges), Formula(pieces))
    nest.launch_of(nest.argument(("pieces of all", place, ranges), Formula(rows * pieces)) if place else n, WARPS * LANES)
    partial = {v: nest.workspace(accumulator(v), rows * pieces) for v in own}
    results = {v: nest.shared(accumulator(v), str(PARTIAL_CHUNKS)) for v in own}
    number = "block"
    if place:
        nest.bind_rows(place, nest.integer("div", "block", n))
        number = nest.integer("rem", "block", n)
    first, last = _piece(nest, number, nest.argument(("chunks each", ranges), Formula(each)), chunk_count(nest, nest.total(ranges)))
    _chunks(nest, ranges, own, iteration, results, first, last, WARPS)
    tree(nest, own, results, nest.integer("sub", last, first), str(PARTIAL_CHUNKS.bit_length() - 1), WARPS)
    with nest.when(nest.integer("eq", "thread", "0")):
        for v in own:
            nest.append(ir.Store(accumulator(v), partial[v], "block", load(nest, v, results[v], "0")))
    if pieces > 1 or place:
        row, start, done = "0", "0", rows <= ir.COUNTERS
        if done:
            if place:
                row = nest.integer("div", "block", n)
            _last(nest, n, row)
        else:
            nest.launch_of(nest.total(place), WARPS * LANES)
            row = "block"
        if place:
            start = nest.integer("mul", row, n)
        tree(nest, own, partial, n, nest.argument(("levels", place, ranges), Formula((pieces - 1).bit_length())), WARPS, start)
        if place:
            total = {v: nest.workspace(accumulator(v), rows) for v in own}
            with nest.when(nest.integer("eq", "thread", "0")):
                for v in own:
                    nest.append(ir.Store(accumulator(v), total[v], row, load(nest, v, partial[v], start)))
            partial = total
    if not place:
        nest.alone()
    for v in own:
        nest.results[v] = Result(partial[v], accumulator(v), ranges=place)


def _last(nest: Launches, count: Operand, counter: Operand) -> None:
    """The rest of the phase is for the block of ``count`` that gets here last."""
    last = nest.name()
    nest.append(ir.Last(last, count, counter))
    rest = ir.If(last)
    nest.append(rest)
    nest.scopes = [Scope(rest.body, anchor=True)]


def tree(
    nest: Launches,
    own: list[Value],
    memories: Memories,
    count: Operand,
    levels: Operand,
    warps: int,
    start: Operand = "0",
    width: Operand = "1",
) -> None:
    """Combine ``count`` rows of each memory, ``width`` long, into the first, at ``start``: neighbours first, by all of the block."""
    nest.append(ir.Barrier())
    with nest.loop("0", levels) as level:
        distance = nest.integer("shl", "1", level)
        stride = nest.integer("add", distance, distance)
        pairs = nest.integer("div", nest.integer("sub", nest.integer("add", count, distance), "1"), stride)
        apart = nest.integer("mul", distance, width)
        with nest.loop("thread", nest.integer("mul", pairs, width), step=str(warps * LANES)) as number:
            pair, column = nest.integer("div", number, width), nest.integer("rem", number, width)
            left = nest.integer("add", start, nest.integer("mul", pair, nest.integer("mul", stride, width)))
            left = nest.integer("add", left, column)
            right = nest.integer("add", left, apart)
            for v in own:
                a, b = load(nest, v, memories[v], left), load(nest, v, memories[v], right)
                nest.append(ir.Store(accumulator(v), memories[v], left, reduce.combine(nest, v, a, b)))
        nest.append(ir.Barrier())


def chunk_count(nest: Launches, total: Operand) -> Operand:
    return nest.integer("div", nest.integer("add", total, str(CHUNK - 1)), str(CHUNK))


def _chunk(nest: Launches, chunk: Operand, total: Operand, rank: Operand) -> Any:
    """The loop over a thread's elements of one chunk."""
    start = nest.integer("mul", chunk, str(CHUNK))
    end = nest.integer("min", nest.integer("add", start, str(CHUNK)), total)
    return nest.loop(nest.integer("add", start, rank), end, step=str(LANES))


def _chunks(
    nest: Launches,
    ranges: tuple[Range, ...],
    own: list[Value],
    iteration: Iteration,
    results: Memories,
    first: Operand,
    last: Operand,
    warps: int,
) -> None:
    """Warp after warp, reduce the chunks [first, last) to ``results[0..last - first]``."""
    rank, warp = nest.integer("rem", "thread", str(LANES)), nest.integer("div", "thread", str(LANES))
    with nest.loop(nest.integer("add", first, warp), last, step=str(warps)) as chunk:
        sums = accumulators(nest, own)
        with _chunk(nest, chunk, nest.total(ranges), rank) as position:
            element(nest, ranges, own, iteration, sums, position)
        folded = [(v, _folded(nest, v, sums)) for v in own]
        place = nest.integer("sub", chunk, first)
        with nest.when(nest.integer("eq", rank, "0")):
            for v, x in folded:
                nest.append(ir.Store(accumulator(v), results[v], place, x))


def _piece(nest: Launches, number: Operand, each: Operand, chunks: Operand) -> tuple[Operand, Operand]:
    first = nest.integer("mul", number, each)
    return first, nest.integer("min", nest.integer("add", first, each), chunks)


def accumulators(nest: Launches, own: list[Value]) -> Memories:
    sums = {v: nest.local(accumulator(v), "1") for v in own}
    for v in own:
        dtype = accumulator(v)
        nest.append(ir.Store(dtype, sums[v], "0", nest.constant(v.arg.op.identity(dtype), dtype)))
    return sums


def element(nest: Launches, ranges: tuple[Range, ...], own: list[Value], iteration: Iteration, sums: Memories, position: Operand) -> None:
    nest.bind_rows(ranges, position)
    iteration()
    for v in own:
        reduce.update(nest, v, sums[v], "0", reduce.contribution(nest, v))


def _folded(nest: Launches, v: Value, sums: Memories) -> Operand:
    dtype = accumulator(v)
    dst = nest.name()
    nest.append(ir.Fold(dst, v.arg.op, dtype, load(nest, v, sums[v], "0")))
    return dst


def load(nest: Launches, v: Value, memory: Memory, index: Operand) -> Operand:
    dst = nest.name()
    nest.append(ir.Load(dst, accumulator(v), memory, index))
    return dst


def keep(nest: Launches, v: Value, value: Operand) -> None:
    cell = nest.local(accumulator(v), "1")
    nest.append(ir.Store(accumulator(v), cell, "0", value))
    nest.results[v] = Result(cell, accumulator(v))
