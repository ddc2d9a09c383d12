"""Reductions along few columns of many rows, by the threads of a grid.

In: reductions over outer axes.  Out: two launches for each pass: threads for every block of rows of every column, then a thread for each
column that combines what the blocks gave.  Promise: the order of ``reduce.columns``: ``ROWS`` rows one after the other, then the blocks.
"""

from __future__ import annotations

from math import prod

from lazynp.codegen import ir, reduce
from lazynp.codegen.emit import Result
from lazynp.codegen.grid import reduce as grid_reduce
from lazynp.codegen.grid.launch import Launches
from lazynp.codegen.ir import Memory, Operand
from lazynp.codegen.nest import Work
from lazynp.codegen.reduce import ROWS, accumulator
from lazynp.graph.index import Formula, Range
from lazynp.schedule.lower import Output, Value

COLUMNS_ENOUGH = 1 << 16  # from so many columns on, a thread for each keeps the device busy


def fit(depth: int, work: Work, columns: int) -> bool:
    """Tell whether all there is are such reductions at ``depth`` and what is computed from them there."""
    return (
        columns < COLUMNS_ENOUGH
        and all(v.depth == depth and v.arg.outer for v in work.reductions)
        and all(out.depth == depth for out in work.outputs)
        and min(prod([r.extent for r in v.ranges]) for v in work.reductions) > ROWS
    )


def columns(nest: Launches, depth: int, work: Work) -> None:
    """Pass after pass: reduce, then store what is known by then."""
    place = tuple(nest.body.main[:depth])
    times = sorted({v.time[depth] for v in work.reductions})
    for time in times:
        own = [v for v in work.reductions if v.time[depth] == time]
        groups: dict[tuple[Range, ...], list[Value]] = {}
        for v in own:
            groups.setdefault(v.ranges, []).append(v)
        partial: dict[Value, Memory] = {}
        for ranges, values in groups.items():
            partial |= _blocks(nest, place, ranges, values)
        ready = [out for out in work.outputs if nest.time(out)[depth] <= time + 1]
        work = Work([out for out in work.outputs if out not in ready], work.reductions)
        _combine(nest, place, groups, partial, ready, more=time != times[-1])


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


def _combine(
    nest: Launches,
    place: tuple[Range, ...],
    groups: dict[tuple[Range, ...], list[Value]],
    partial: dict[Value, Memory],
    ready: list[Output],
    more: bool,
) -> None:
    """A launch in which a thread finishes a column, and stores what can be computed; ``more``: later passes want the results."""
    width = prod([r.extent for r in place])
    n = nest.total(place)
    kept = {v: nest.workspace(accumulator(v), width) for v in partial} if more else {}
    number = nest.threads_of(width, place)
    with nest.when(nest.integer("lt", number, n)):
        nest.bind_rows(place, number)
        for ranges, own in groups.items():
            sums = grid_reduce.accumulators(nest, own)
            with nest.loop("0", nest.argument(("row blocks", ranges), Formula(_count(ranges)))) as k:
                at = nest.integer("add", nest.integer("mul", k, n), number)
                for v in own:
                    reduce.update(nest, v, sums[v], "0", grid_reduce.load(nest, v, partial[v], at))
            for v in own:
                _finish(nest, v, sums[v], kept.get(v), number)
        for out in ready:
            nest.store(out)
    for v, memory in kept.items():
        nest.results[v] = Result(memory, accumulator(v), ranges=place)


def _finish(nest: Launches, v: Value, total: Memory, kept: Memory | None, number: Operand) -> None:
    nest.results[v] = Result(total, accumulator(v))
    if kept is not None:
        nest.append(ir.Store(accumulator(v), kept, number, grid_reduce.load(nest, v, total, "0")))


def _count(ranges: tuple[Range, ...]) -> int:
    return -(-prod([r.extent for r in ranges]) // ROWS)
