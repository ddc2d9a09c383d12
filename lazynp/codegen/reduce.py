"""The defined order of reductions.

In: reductions that share loops.  Out: the statements that combine.  Promise: for floating-point sums and products the order is a
function of the number of reduced elements n and of whether the innermost axis is among the reduced ones, never of fusion, thread
count, vector width or machine:

* innermost axis reduced: the n elements, in C order of the reduced axes, are cut into chunks of ``CHUNK``; inside a chunk, element k
  goes to accumulator k mod ``LANES`` (each starts from the identity), accumulators are combined by halving (l with l+16, l+8, ...);
  chunk results are combined as a binary counter does (equal powers of two pairwise, the rest from the short end).  Up to
  ``SMALL_REDUCTION`` elements: halving only.
* otherwise: ``ROWS`` rows in order into one accumulator per element; the results of such blocks are combined as a binary counter does, too.

An error bound of about CHUNK/LANES + log2(LANES) + log2(n/CHUNK) roundings, as NumPy's pairwise summation; of ROWS + log2(n/ROWS) where
columns are left.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from lazynp.codegen import ir
from lazynp.codegen.emit import COLUMNS, Emitter, Result
from lazynp.codegen.ir import Memory, Operand
from lazynp.graph import op as o
from lazynp.graph.index import Formula, Range
from lazynp.schedule.chunks import CHUNK, LANES, ROWS
from lazynp.schedule.lower import LOAD, Output, Value

PARTIAL_CHUNKS = 64  # a power of two, so that partial results are whole subtrees
PARTIAL = CHUNK * PARTIAL_CHUNKS
PIECE_BLOCKS = 16  # of rows, a power of two: what a thread takes at a time where columns are few
PIECE = ROWS * PIECE_BLOCKS
ROWS_TOGETHER = 4  # rows added in one go where columns are reduced: as many streams, and accumulators stay in registers between
MASKED = 128  # elements of a row up to which its last, incomplete group of lanes matters
LEVELS = 48  # enough for 2**48 chunks

Iteration = Callable[[], None]


def accumulator(v: Value) -> ir.DType:
    """The dtype a reduction accumulates in: float16 sums run in float32."""
    if v.dtype == np.float16 and v.arg.op is o.ADD:
        return np.dtype(np.float32)
    return v.dtype


def combine(nest: Emitter, v: Value, a: Operand, b: Operand) -> Operand:
    dtype = accumulator(v)
    return nest.scalar(v.arg.op, dtype, (a, b), dtype)


def contribution(nest: Emitter, v: Value) -> Operand:
    """The element to be reduced, in the accumulator's dtype."""
    x = nest.operand(v.src[0])
    if accumulator(v) != v.dtype:
        return nest.scalar(o.CAST, accumulator(v), (x,), v.dtype)
    return x


def update(nest: Emitter, v: Value, memory: Memory, index: Operand, x: Operand) -> None:
    """memory[index] = memory[index] op x"""
    dtype = accumulator(v)
    old = nest.name()
    nest.append(ir.Load(old, dtype, memory, index))
    nest.append(ir.Store(dtype, memory, index, combine(nest, v, old, x)))


class Trees:
    """Lanes and binary counters of reductions that run in the same loops."""

    def __init__(self, nest: Emitter, values: list[Value], lanes: bool = True) -> None:
        self.nest = nest
        self.values = values
        self.lanes = {v: nest.local(accumulator(v), str(LANES)) for v in values} if lanes else {}
        self.stack = {v: nest.local(accumulator(v), str(LEVELS)) for v in values}

    def chunk_count(self, ranges: tuple[Range, ...]) -> Operand:
        total = 1
        for r in ranges:
            total *= r.extent
        return self.nest.argument(("chunks", ranges), Formula(-(-total // CHUNK)))

    def start_lanes(self) -> None:
        nest = self.nest
        identities = {v: nest.constant(v.arg.op.identity(accumulator(v)), accumulator(v)) for v in self.values}
        with nest.loop("0", str(LANES), lanes=True) as lane:
            for v in self.values:
                nest.append(ir.Store(accumulator(v), self.lanes[v], lane, identities[v]))

    def end_lanes(self, chunk: Operand) -> None:
        """Combine the lanes and push the result."""
        for v, x in self.halve():
            self.push(v, x, chunk)

    def halve(self) -> list[tuple[Value, Operand]]:
        results = []
        for v in self.values:
            x = self.nest.name()
            self.nest.append(ir.Halve(x, v.arg.op, accumulator(v), self.lanes[v]))
            results.append((v, x))
        return results

    def push(self, v: Value, x: Operand, number: Operand) -> None:
        """Add the ``number``-th result to the binary counter."""
        self.nest.append(ir.Push(v.arg.op, accumulator(v), self.stack[v], x, number))

    def finish(self, count: Operand) -> list[tuple[Value, Operand]]:
        """Tell what the counters hold after ``count`` pushes."""
        results = []
        for v in self.values:
            x = self.nest.name()
            self.nest.append(ir.Collect(x, v.arg.op, accumulator(v), self.stack[v], count))
            results.append((v, x))
        return results


def chunks(
    nest: Emitter,
    trees: Trees,
    ranges: tuple[Range, ...],
    first: Operand,
    last: Operand | None,
    iteration: Iteration,
    rows: list[Output],
) -> None:
    """Reduce chunks [first, last) of the elements that ``ranges`` enumerate in C order; ``iteration`` runs the rest of the loop body."""
    if last is None:
        last = trees.chunk_count(ranges)
    if len(ranges) == 1:
        _flat_chunks(nest, trees, ranges[0], first, last, iteration)
    else:
        _row_chunks(nest, trees, ranges, first, last, iteration, rows)


def _flat_chunks(nest: Emitter, trees: Trees, r: Range, first: Operand, last: Operand, iteration: Iteration) -> None:
    n = nest.extent(r)
    with nest.loop(first, last, long=True) as chunk:
        lo = nest.integer("mul", chunk, str(CHUNK))
        hi = nest.integer("min", nest.integer("add", lo, str(CHUNK)), n)
        _lanes(nest, trees, r, lo, nest.integer("sub", hi, lo), iteration)
        # The counter of a thread starts at its own first chunk.
        trees.end_lanes(nest.integer("sub", chunk, first))


def single_chunk(nest: Emitter, trees: Trees, r: Range, iteration: Iteration | None) -> list[tuple[Value, Operand]]:
    """A reduction that fits one chunk: the lanes, halved.  ``iteration`` is None where the loop does nothing else."""
    masked = iteration is None and nest.masks and r.extent <= MASKED and all(_maskable(nest, v, r) for v in trees.values)
    _lanes(nest, trees, r, "0", nest.extent(r), iteration or (lambda: None), masked)
    return trees.halve()


# What computes nothing but numbers from zeros. Infinity times such a zero raises a flag, which NumPy finds to be no error of the program.
HARMLESS = frozenset([o.ADD, o.SUBTRACT, o.MULTIPLY, o.ABSOLUTE, o.NEGATIVE, o.MAXIMUM, o.MINIMUM, o.FMAX, o.FMIN])


def _maskable(nest: Emitter, v: Value, r: Range) -> bool:
    """Tell whether the elements of ``v`` may be computed from zeros where there are none, without a trace."""
    pending, seen = [v.src[0]], {v}
    while pending:
        value = pending.pop()
        if r not in value.free or value in seen:
            continue
        seen.add(value)
        load = value.op is LOAD and not value.guards and not value.src and value.dtype.itemsize >= 4
        if not (load or value.op in HARMLESS) or value.dtype.kind not in "iuf" or value in nest.stages:
            return False
        pending += value.src
    return True


def _lanes(
    nest: Emitter, trees: Trees, r: Range, lo: Operand, length: Operand, iteration: Iteration, masked: bool = False
) -> None:
    """Elements lo .. lo + length into the lanes; ``masked``: all lanes take the last, incomplete group together."""
    trees.start_lanes()
    groups = nest.integer("div", length, str(LANES))

    def element(position: Operand, lane: Operand) -> None:
        nest.bind(r, position)
        iteration()
        for v in trees.values:
            update(nest, v, trees.lanes[v], lane, contribution(nest, v))

    with nest.loop("0", groups) as group:
        base = nest.integer("add", lo, nest.integer("mul", group, str(LANES)))
        with nest.loop("0", str(LANES), lanes=True) as lane:
            element(nest.integer("add", base, lane), lane)
    done = nest.integer("mul", groups, str(LANES))
    base = nest.integer("add", lo, done)
    rest = nest.integer("sub", length, done)
    if not masked:
        with nest.loop("0", rest) as lane:
            element(nest.integer("add", base, lane), lane)
        return
    # Lanes that are stored one by one and then read as vectors wait for the memory, longer than the whole row takes.
    with nest.when(nest.integer("lt", "0", rest)), nest.loop("0", str(LANES), lanes=True) as lane:
        inside = nest.integer("lt", lane, rest)
        nest.bind(r, nest.integer("add", base, lane))
        with nest.masked(r, inside):
            for v in trees.values:
                dtype, old = accumulator(v), nest.name()
                nest.append(ir.Load(old, dtype, trees.lanes[v], lane))
                new = combine(nest, v, old, contribution(nest, v))
                nest.append(ir.Store(dtype, trees.lanes[v], lane, nest.scalar(o.WHERE, dtype, (inside, new, old), dtype)))


def _row_chunks(
    nest: Emitter,
    trees: Trees,
    ranges: tuple[Range, ...],
    first: Operand,
    last: Operand,
    iteration: Iteration,
    rows: list[Output],
) -> None:
    """Loops that cannot be walked as one: each chunk is filled row piece by row piece, then reduced."""
    *outer, inner = ranges
    m = nest.extent(inner)
    total = 1
    for r in ranges:
        total *= r.extent
    n = nest.argument(("total", ranges), Formula(total))
    fill = {v: nest.local(accumulator(v), str(CHUNK)) for v in trees.values}
    begin = nest.integer("mul", first, str(CHUNK))
    end = nest.integer("min", nest.integer("mul", last, str(CHUNK)), n)
    top = nest.integer("div", begin, m)
    bottom = nest.integer("add", nest.integer("div", nest.integer("sub", end, "1"), m), "1")
    with nest.loop(top, bottom, long=True) as row:
        nest.bind_rows(tuple(outer), row)
        for out in rows:
            nest.store(out)
        start = nest.integer("mul", row, m)
        lo = nest.integer("max", start, begin)
        hi = nest.integer("min", nest.integer("add", start, m), end)
        first_chunk = nest.integer("div", lo, str(CHUNK))
        last_chunk = nest.integer("add", nest.integer("div", nest.integer("sub", hi, "1"), str(CHUNK)), "1")
        with nest.loop(first_chunk, last_chunk, long=True) as chunk:
            left = nest.integer("mul", chunk, str(CHUNK))
            right = nest.integer("min", nest.integer("add", left, str(CHUNK)), n)
            a = nest.integer("max", lo, left)
            b = nest.integer("min", hi, right)
            shift = nest.integer("sub", start, left)
            with nest.loop(nest.integer("sub", a, start), nest.integer("sub", b, start), inner) as column:
                iteration()
                place = nest.integer("add", shift, column)
                for v in trees.values:
                    nest.append(ir.Store(accumulator(v), fill[v], place, contribution(nest, v)))
            with nest.when(nest.integer("eq", b, right)):
                _filled_chunk(nest, trees, fill, nest.integer("sub", right, left))
                trees.end_lanes(nest.integer("sub", chunk, first))


def _filled_chunk(nest: Emitter, trees: Trees, fill: dict[Value, Memory], length: Operand) -> None:
    """Add the ``length`` elements of a chunk that lie in ``fill`` to the lanes."""
    trees.start_lanes()
    groups = nest.integer("div", length, str(LANES))

    def add(position: Operand, lane: Operand) -> None:
        for v in trees.values:
            x = nest.name()
            nest.append(ir.Load(x, accumulator(v), fill[v], position))
            update(nest, v, trees.lanes[v], lane, x)

    with nest.loop("0", groups) as group:
        base = nest.integer("mul", group, str(LANES))
        with nest.loop("0", str(LANES), lanes=True) as lane:
            add(nest.integer("add", base, lane), lane)
    base = nest.integer("mul", groups, str(LANES))
    with nest.loop("0", nest.integer("sub", length, base)) as lane:
        add(nest.integer("add", base, lane), lane)


def unrolled(nest: Emitter, r: Range, values: list[Value], iteration: Iteration) -> None:
    """A short reduction: all elements as scalars, halved as the lanes would be."""
    elements: dict[Value, list[Operand]] = {v: [] for v in values}
    for k in range(r.extent):
        with nest.element(r, k):
            iteration()
            for v in values:
                elements[v].append(contribution(nest, v))
    for v in values:
        dtype = accumulator(v)
        lanes = elements[v]
        half = LANES // 2
        while half:
            lanes = [
                combine(nest, v, lanes[i], lanes[i + half]) if i + half < len(lanes) else lanes[i]
                for i in range(min(half, len(lanes)))
            ]
            half //= 2
        cell = nest.local(dtype, "1")
        total = combine(nest, v, nest.constant(v.arg.op.identity(dtype), dtype), lanes[0])
        nest.append(ir.Store(dtype, cell, "0", total))
        nest.results[v] = Result(cell, dtype)


class Counters:
    """Binary counters side by side: what is counted are rows of ``width`` results, the next of which is made in ``block``.

    ``levels`` of them are enough for all but the last, which takes over all that is there and stays in ``block``.
    """

    def __init__(self, nest: Emitter, values: list[Value], width: Operand, levels: Operand, size: Operand) -> None:
        self.nest = nest
        self.values = values
        self.width = width
        self.levels = levels
        self.block = {v: nest.local(accumulator(v), str(COLUMNS)) for v in values}
        self.stack = {v: nest.local(accumulator(v), size) for v in values}

    def clear(self) -> None:
        nest = self.nest
        identities = {v: nest.constant(v.arg.op.identity(accumulator(v)), accumulator(v)) for v in self.values}
        with nest.loop("0", self.width) as k:
            for v in self.values:
                nest.append(ir.Store(accumulator(v), self.block[v], k, identities[v]))

    def push(self, number: Operand, count: Operand) -> None:
        """The ``number``-th of ``count`` is made."""
        nest = self.nest
        following = nest.integer("add", number, "1")
        last = nest.integer("eq", following, count)
        with nest.loop("0", self.levels) as level:
            span = nest.integer("shl", "1", level)
            both = nest.integer("add", span, span)
            there = nest.integer("ge", nest.integer("rem", number, both), span)
            left = nest.integer("rem", following, both)
            begin = nest.integer("mul", level, self.width)
            taken = nest.integer("and", there, nest.integer("or", nest.integer("eq", left, "0"), last))
            with nest.when(taken), nest.loop("0", self.width) as k:
                for v in self.values:
                    held = nest.name()
                    nest.append(ir.Load(held, accumulator(v), self.stack[v], nest.integer("add", begin, k)))
                    nest.append(ir.Store(accumulator(v), self.block[v], k, combine(nest, v, held, self.at(v, k))))
            with nest.when(nest.integer("eq", left, span)), nest.loop("0", self.width) as k:
                for v in self.values:
                    nest.append(ir.Store(accumulator(v), self.stack[v], nest.integer("add", begin, k), self.at(v, k)))

    def at(self, v: Value, k: Operand) -> Operand:
        x = self.nest.name()
        self.nest.append(ir.Load(x, accumulator(v), self.block[v], k))
        return x


def columns(nest: Emitter, ranges: tuple[Range, ...], values: list[Value], column: Range, lo: Operand, hi: Operand) -> None:
    """Reductions over outer axes for columns [lo, hi): whole rows are read along."""
    levels = (_blocks(ranges) - 1).bit_length()
    size = nest.argument(("counters", ranges), Formula(levels * COLUMNS))
    counters = Counters(nest, values, nest.integer("sub", hi, lo), nest.argument(("levels", ranges), Formula(levels)), size)
    _column_blocks(nest, ranges, counters, column, lo, hi, "0", _block_count(nest, ranges))
    for v in values:
        nest.results[v] = Result(counters.block[v], accumulator(v), column, lo)


def column_piece(
    nest: Emitter, ranges: tuple[Range, ...], values: list[Value], column: Range, number: Operand, partial: dict[Value, Memory]
) -> None:
    """The ``number``-th piece of all columns, of PIECE rows, to that row of ``partial``."""
    n = nest.extent(column)
    first = nest.integer("mul", number, str(PIECE_BLOCKS))
    last = nest.integer("min", nest.integer("add", first, str(PIECE_BLOCKS)), _block_count(nest, ranges))
    levels = PIECE_BLOCKS.bit_length() - 1
    counters = Counters(nest, values, n, str(levels), str(levels * COLUMNS))
    _column_blocks(nest, ranges, counters, column, "0", n, first, last)
    begin = nest.integer("mul", number, n)
    with nest.loop("0", n) as k:
        for v in values:
            nest.append(ir.Store(accumulator(v), partial[v], nest.integer("add", begin, k), counters.at(v, k)))


def column_pieces(nest: Emitter, ranges: tuple[Range, ...], values: list[Value], column: Range, partial: dict[Value, Memory]) -> None:
    """Combine the pieces of all columns."""
    n, pieces = nest.extent(column), piece_count(ranges)
    levels = (pieces - 1).bit_length()
    size = nest.argument(("counters of pieces", ranges), Formula(levels * COLUMNS))
    counters = Counters(nest, values, n, nest.argument(("levels of pieces", ranges), Formula(levels)), size)
    count = nest.argument(("pieces of rows", ranges), Formula(pieces))
    with nest.loop("0", count) as number:
        begin = nest.integer("mul", number, n)
        with nest.loop("0", n) as k:
            for v in values:
                x = nest.name()
                nest.append(ir.Load(x, accumulator(v), partial[v], nest.integer("add", begin, k)))
                nest.append(ir.Store(accumulator(v), counters.block[v], k, x))
        counters.push(number, count)
    for v in values:
        # Phases to come read it there.
        memory = nest.workspace(accumulator(v), column.extent)
        with nest.loop("0", n) as k:
            nest.append(ir.Store(accumulator(v), memory, k, counters.at(v, k)))
        nest.results[v] = Result(memory, accumulator(v), column)


def piece_count(ranges: tuple[Range, ...]) -> int:
    return -(-row_count(ranges) // PIECE)


def _column_blocks(
    nest: Emitter, ranges: tuple[Range, ...], counters: Counters, column: Range, lo: Operand, hi: Operand, first: Operand, last: Operand
) -> None:
    """Blocks [first, last) of rows of columns [lo, hi), counted."""
    block, count = counters.block, nest.integer("sub", last, first)

    def rows(row: Operand, together: int) -> None:
        """The next ``together`` rows, one after the other into accumulators that are loaded and stored once."""
        with nest.loop(lo, hi, column) as j:
            place = nest.integer("sub", j, lo)
            sums = {v: counters.at(v, place) for v in counters.values}
            for k in range(together):
                with nest.shared_scope():
                    nest.bind_rows(ranges, nest.integer("add", row, str(k)))
                    for v in counters.values:
                        sums[v] = combine(nest, v, sums[v], contribution(nest, v))
            for v in counters.values:
                nest.append(ir.Store(accumulator(v), block[v], place, sums[v]))

    def done(number: Operand) -> None:
        counters.push(nest.integer("sub", number, first), count)

    _row_blocks(nest, ranges, first, last, counters.clear, rows, done, ROWS_TOGETHER)


def sequential(nest: Emitter, ranges: tuple[Range, ...], values: list[Value], iteration: Iteration) -> None:
    """The same order as ``columns`` for one element."""
    block = {v: nest.local(accumulator(v), "1") for v in values}
    trees = Trees(nest, values if row_count(ranges) > ROWS else [], lanes=False)  # one block is not counted

    def clear() -> None:
        for v in values:
            dtype = accumulator(v)
            nest.append(ir.Store(dtype, block[v], "0", nest.constant(v.arg.op.identity(dtype), dtype)))

    def rows(row: Operand, together: int) -> None:
        nest.bind_rows(ranges, row)
        iteration()
        for v in values:
            update(nest, v, block[v], "0", contribution(nest, v))

    def done(number: Operand) -> None:
        for v in trees.values:
            x = nest.name()
            nest.append(ir.Load(x, accumulator(v), block[v], "0"))
            trees.push(v, x, number)

    blocks = _block_count(nest, ranges)
    _row_blocks(nest, ranges, "0", blocks, clear, rows, done, 1)
    for v, total in trees.finish(blocks):
        nest.append(ir.Store(accumulator(v), block[v], "0", total))
    for v in values:
        nest.results[v] = Result(block[v], accumulator(v))


def row_count(ranges: tuple[Range, ...]) -> int:
    return prod([r.extent for r in ranges])


def _blocks(ranges: tuple[Range, ...]) -> int:
    return -(-row_count(ranges) // ROWS)


def _block_count(nest: Emitter, ranges: tuple[Range, ...]) -> Operand:
    return nest.argument(("row blocks", ranges), Formula(_blocks(ranges)))


def _row_blocks(
    nest: Emitter,
    ranges: tuple[Range, ...],
    first: Operand,
    last: Operand,
    clear: Iteration,
    rows: Callable[[Operand, int], None],
    done: Callable[[Operand], None],
    together: int,
) -> None:
    """Rows (all ``ranges``, in C order) in blocks of ROWS, of which [first, last) are wanted, ``together`` at a time."""
    n = nest.argument(("rows", ranges), Formula(row_count(ranges)))
    with nest.loop(first, last, long=True) as number:
        clear()
        lo = nest.integer("mul", number, str(ROWS))
        hi = nest.integer("min", nest.integer("add", lo, str(ROWS)), n)
        if together > 1:
            groups = nest.integer("div", nest.integer("sub", hi, lo), str(together))
            with nest.loop("0", groups) as group:
                rows(nest.integer("add", lo, nest.integer("mul", group, str(together))), together)
            lo = nest.integer("add", lo, nest.integer("mul", groups, str(together)))
        with nest.loop(lo, hi) as row:
            rows(row, 1)
        done(number)
