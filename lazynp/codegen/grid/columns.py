"""Reductions along few columns of many rows, by the threads of a grid.

In: reductions over outer axes.  Out: launches for each pass: threads for every block of rows of every column, then blocks of threads that
combine what those gave, of some columns each, in shared memory; where the columns are long, in several launches.  Promise: the order of
``reduce.columns``: ``ROWS`` rows one after the other, then neighbours, level after level.
"""

from __future__ import annotations

from math import prod

from lazynp.codegen import ir, reduce
from lazynp.codegen.emit import Result
from lazynp.codegen.grid import reduce as grid_reduce
from lazynp.codegen.grid.launch import FLAT_THREADS, WARP, Launches
from lazynp.codegen.ir import Memory, Operand
from lazynp.codegen.nest import Work
from lazynp.codegen.reduce import accumulator
from lazynp.graph.index import Formula, Range
from lazynp.schedule.chunks import ROWS
from lazynp.schedule.lower import Output, Value

COLUMNS_ENOUGH = 1 << 16  # from so many columns on, a thread for each keeps the device busy
RESULTS = 2048  # of blocks of rows, for each value, that a block of threads combines
RESULTS_BYTES = 32 << 10  # of its shared memory, at most
NEIGHBOURS = 8  # columns that it has at least: what it reads lies together

Groups = dict[tuple[Range, ...], list[Value]]


def fit(depth: int, work: Work, columns: int) -> bool:
    """Tell whether all there is are such reductions at ``depth`` and what is computed from them there."""
    return (
        columns < COLUMNS_ENOUGH
        and all(v.depth == depth and v.arg.outer for v in work.reductions)
        and all(out.depth == depth for out in work.outputs)
        and min(reduce.row_count(v.ranges) for v in work.reductions) > ROWS
    )


def columns(nest: Launches, depth: int, work: Work) -> None:
    """Pass after pass: reduce, then store what is known by then."""
    place = tuple(nest.body.main[:depth])
    times = sorted({v.time[depth] for v in work.reductions})
    for time in times:
        own = [v for v in work.reductions if v.time[depth] == time]
        room = RESULTS
        while room > 2 and room * sum([accumulator(v).itemsize for v in own]) > RESULTS_BYTES:
            room //= 2
        groups: Groups = {}
        for v in own:
            groups.setdefault(v.ranges, []).append(v)
        partial: dict[Value, Memory] = {}
        counts: dict[tuple[Range, ...], int] = {}
        for ranges, values in groups.items():
            found = _blocks(nest, place, ranges, values)
            counts[ranges] = _count(ranges)
            while counts[ranges] > _longest(room):
                pieces = Pieces(nest, place, {ranges: values}, counts, room)
                found = pieces.kept(found)
                counts[ranges] = pieces.count
            partial |= found
        ready = [out for out in work.outputs if nest.time(out)[depth] <= time + 1]
        work = Work([out for out in work.outputs if out not in ready], work.reductions)
        Pieces(nest, place, groups, counts, room).finish(partial, ready, more=time != times[-1])


def _longest(room: int) -> int:
    """Results of a column that a block of threads combines at most."""
    return max(2, room // NEIGHBOURS)


class Pieces:
    """A launch that combines results of blocks of rows: a block of threads has a piece of some columns next to each other."""

    def __init__(self, nest: Launches, place: tuple[Range, ...], groups: Groups, counts: dict[tuple[Range, ...], int], room: int) -> None:
        self.nest = nest
        self.place = place
        self.groups = groups
        self.width = prod([r.extent for r in place])
        self.n = nest.total(place)
        longest = max([counts[ranges] for ranges in groups])
        rows = min(1 << (longest - 1).bit_length(), _longest(room))
        self.count = -(-longest // rows)  # of pieces of a column
        across = -(-self.width // (room // rows))
        launch = len(nest.kernel.phases)

        def argument(role: str, number: int) -> Operand:
            return nest.argument((role, launch), Formula(number))

        self.rows, together, groups_across = argument("rows", rows), argument("columns", room // rows), argument("across", across)
        self.levels = argument("levels", (rows - 1).bit_length())
        self.counts = {ranges: argument(f"results {k}", counts[ranges]) for k, ranges in enumerate(groups)}
        nest.launch_of(argument("blocks", across * self.count), FLAT_THREADS)
        self.shared = {v: nest.shared(accumulator(v), str(room)) for values in groups.values() for v in values}
        self.piece = nest.integer("div", "block", groups_across)
        self.left = nest.integer("mul", nest.integer("rem", "block", groups_across), together)
        self.columns = nest.integer("min", together, nest.integer("sub", self.n, self.left))

    def combine(self, partial: dict[Value, Memory]) -> None:
        """Combine the rows of the piece to the first of ``shared``."""
        nest = self.nest
        first = nest.integer("mul", self.piece, self.rows)
        for ranges, own in self.groups.items():
            rows = nest.integer("min", self.rows, nest.integer("sub", self.counts[ranges], first))
            with nest.loop("thread", nest.integer("mul", rows, self.columns), step=str(FLAT_THREADS)) as k:
                row = nest.integer("add", first, nest.integer("div", k, self.columns))
                column = nest.integer("add", self.left, nest.integer("rem", k, self.columns))
                at = nest.integer("add", nest.integer("mul", row, self.n), column)
                for v in own:
                    nest.append(ir.Store(accumulator(v), self.shared[v], k, grid_reduce.load(nest, v, partial[v], at)))
            grid_reduce.tree(nest, own, self.shared, rows, self.levels, FLAT_THREADS // WARP, width=self.columns)

    def kept(self, partial: dict[Value, Memory]) -> dict[Value, Memory]:
        """Return what the pieces give, by piece and column, for the next launch."""
        nest = self.nest
        self.combine(partial)
        found = {v: nest.workspace(accumulator(v), self.count * self.width) for v in self.shared}
        begin = nest.integer("add", nest.integer("mul", self.piece, self.n), self.left)
        with nest.loop("thread", self.columns, step=str(FLAT_THREADS)) as k:
            for v in self.shared:
                x = grid_reduce.load(nest, v, self.shared[v], k)
                nest.append(ir.Store(accumulator(v), found[v], nest.integer("add", begin, k), x))
        return found

    def finish(self, partial: dict[Value, Memory], ready: list[Output], more: bool) -> None:
        """A column is one piece: store what can be computed; ``more``: later passes want the results."""
        nest = self.nest
        self.combine(partial)
        kept = {v: nest.workspace(accumulator(v), self.width) for v in self.shared} if more else {}
        with nest.loop("thread", self.columns, step=str(FLAT_THREADS)) as k:
            number = nest.integer("add", self.left, k)
            nest.bind_rows(self.place, number)
            for v in self.shared:
                x = grid_reduce.load(nest, v, self.shared[v], k)
                grid_reduce.keep(nest, v, x)
                if more:
                    nest.append(ir.Store(accumulator(v), kept[v], number, x))
            for out in ready:
                nest.store(out)
        for v, memory in kept.items():
            nest.results[v] = Result(memory, accumulator(v), ranges=self.place)


def _blocks(nest: Launches, place: tuple[Range, ...], ranges: tuple[Range, ...], own: list[Value]) -> dict[Value, Memory]:
    """A launch in which thread (b, column) reduces the b-th block of rows of a column; what each found, by b and column."""
    width, count = prod([r.extent for r in place]), _count(ranges)
    n = nest.total(place)
    threads = nest.argument(("row blocks of columns", place, ranges), Formula(width * count))
    number = nest.threads_of(width * count, (place, ranges))
    partial = {v: nest.workspace(accumulator(v), width * count) for v in own}
    with nest.when(nest.integer("lt", number, threads)):
        nest.bind_rows(place, nest.integer("rem", number, n))
        first = nest.integer("mul", nest.integer("div", number, n), str(ROWS))
        last = nest.integer("min", nest.integer("add", first, str(ROWS)), nest.total(ranges))
        sums = grid_reduce.accumulators(nest, own)
        with nest.loop(first, last) as row:
            grid_reduce.element(nest, ranges, own, lambda: None, sums, row)
        for v in own:
            nest.append(ir.Store(accumulator(v), partial[v], number, grid_reduce.load(nest, v, sums[v], "0")))
    return partial


def _count(ranges: tuple[Range, ...]) -> int:
    return -(-reduce.row_count(ranges) // ROWS)
