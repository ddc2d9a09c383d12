"""The loops around a kernel's statements.

In: a ``Body``.  Out: phases of loop nests.  A *statement* is an output to store or a reduction to update; its *time* says, for each depth,
in which pass over the loops below it runs.  At depth 0 a pass is a phase of its own (parallel, with a barrier after it); deeper, passes
follow one another inside an iteration: ``for row: m = max(...); s = sum(exp(...)); for column: store``.
Promise: which order floating-point numbers are combined in depends on the reduced extents alone (``codegen/reduce.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf, prod
from typing import Any

from lazynp.codegen import ir, reduce
from lazynp.codegen.emit import (
    COLUMNS,
    LONG_ROW,
    PARALLEL_ELEMENTS,
    TILE_COLUMNS,
    TILE_ROWS,
    Emitter,
    Result,
    Scope,
    Stage,
)
from lazynp.codegen.ir import Memory, Operand
from lazynp.graph.index import Formula, Offset, Range
from lazynp.schedule import cost
from lazynp.schedule.chunks import CHUNK
from lazynp.schedule.lower import ACCUMULATE, CHECKED, LOAD, SCALAR, Body, Output, Value
from lazynp.schedule.movement import Guard
from lazynp.values.records import Record


class Work(Record):
    """Statements that share loops."""

    outputs: list[Output]
    reductions: list[Value]

    def __bool__(self) -> bool:
        return bool(self.outputs or self.reductions)


def emit(body: Body) -> tuple[ir.Kernel, ir.Launch]:
    """The loop nest of ``body`` for a processor, and the launch that fits this schedule's shapes."""
    return Nest(body).run()



class Nest(Emitter):
    def run(self) -> tuple[ir.Kernel, ir.Launch]:
        body = self.body
        reductions = [v for v in body.values if v.op is ACCUMULATE]
        statements = [(v.src[0], v.time) for v in reductions] + [(out.value, self.time(out)) for out in body.outputs]
        if not any(v.arg.outer for v in reductions):
            self.plan_stages(sorted(statements, key=lambda s: s[1]))
        self.block(0, Work(body.outputs, reductions))
        self.kernel.scalars = body.scalar_types
        self.kernel.flags = len(body.flags)
        self.kernel.written = body.stored
        self.kernel.integers = len(self.launch.integers)
        self.launch.work = self.work(statements)
        return self.kernel, self.launch

    def time(self, output: Output) -> tuple[int, ...]:
        value = output.value
        if value.op is ACCUMULATE:
            d = value.depth
            return (*value.time[:d], value.time[d] + 1, *[0] * (len(value.time) - d - 1))
        return value.time

    def work(self, statements: Sequence[tuple[Value, tuple[int, ...]]]) -> float:
        total = 0.0
        for value, _ in statements:
            ranges = set(self.body.main) | set(value.free)
            total += (value.weight + cost.LOAD) * prod([r.extent for r in ranges])
        return total

    # Phases ------------------------------------------------------------------------------------------------------------

    def begin_phase(self, count: Operand = "", chunk: Operand = "") -> ir.Phase:
        """A new phase; a serial one right after a serial one continues it."""
        if not count and self.kernel.phases and not self.kernel.phases[-1].count:
            return self.phase
        self.phase = ir.Phase(count=count, chunk=chunk)
        self.kernel.phases.append(self.phase)
        self.scopes = [Scope(self.phase.body, anchor=True)]
        self.open_stages()
        return self.phase

    # Staging -----------------------------------------------------------------------------------------------------------

    def plan_stages(self, statements: Sequence[tuple[Value, tuple[int, ...]]]) -> None:
        """Choose the values that one pass computes and a later pass over the same loops keeps in scratch.

        ``statements`` are (value, time) in the order they run.
        """
        first: dict[Value, tuple[int, ...]] = {}
        wanted: dict[Value, int] = {}
        used: dict[Value, int] = {}
        place = {r: k for k, r in enumerate(self.body.main)}
        for root, time in statements:
            pending = [root]
            seen: set[Value] = set()
            while pending:
                value = pending.pop()
                if value in seen or value.op is SCALAR:
                    continue
                seen.add(value)
                if value.op is CHECKED:
                    continue
                earlier = first.setdefault(value, time)
                depth = next((d for d, (a, b) in enumerate(zip(earlier, time, strict=True)) if a != b), -1)
                reduced = value.op is ACCUMULATE
                # A reduction is always dear, if it lies within the loops that another pass walks again.
                if depth >= 1 and (value.depth > depth if reduced else value.weight >= cost.STAGE_COST):
                    deeper = [r for r in value.free if place.get(r, depth) >= depth]
                    size = prod([r.extent for r in deeper]) * value.dtype.itemsize
                    others = sum(used.values()) - used.get(value, 0)
                    # What a row that is written out computed is known without.
                    if any(r is not self.short for r in deeper) and size <= cost.SCRATCH_BYTES and others + size <= cost.SCRATCH_TOTAL:
                        wanted[value] = depth
                        used[value] = size
                        continue
                if not reduced:
                    pending += value.src
        for value, depth in sorted(wanted.items(), key=lambda item: item[0].number):
            ranges = tuple(sorted([r for r in value.free if place.get(r, depth) >= depth], key=lambda r: r.number))
            self.stages[value] = Stage(Memory("local", -1), depth, ranges)

    def open_stages(self) -> None:
        """Give the stages scratch in the phase that now begins."""
        for value, stage in self.stages.items():
            size = prod([r.extent for r in stage.ranges])
            count = self.argument(("stage", value), Formula(size))
            stage.memory = self.local(value.dtype, count)
            stage.written = {}

    # Blocks ------------------------------------------------------------------------------------------------------------

    def block(self, depth: int, work: Work) -> None:
        """Everything at ``depth`` main loops, pass after pass."""
        for stage in self.stages.values():
            if stage.depth == depth:
                stage.written = {}
        here = [v for v in work.reductions if v.depth == depth]
        deeper = [v for v in work.reductions if v.depth > depth]
        times = {self.time(out)[depth] for out in work.outputs} | {v.time[depth] for v in here}
        for time in sorted(times):
            self.tokens[depth] = object()
            now = Work(
                [out for out in work.outputs if self.time(out)[depth] == time],
                [v for v in here if v.time[depth] == time],
            )
            now.reductions += self.needed(now, deeper)
            self.one_pass(depth, now)

    def one_pass(self, depth: int, work: Work) -> None:
        here = [out for out in work.outputs if out.depth == depth]
        if here:
            if depth == 0:
                self.begin_phase()
            for out in here:
                self.store(out)
        deeper = Work([out for out in work.outputs if out.depth > depth], [])
        # Reductions that sit here, by (their ranges, which order of combination they have).
        groups: dict[tuple[tuple[Range, ...], bool], list[Value]] = {}
        for v in work.reductions:
            if v.depth > depth:
                deeper.reductions.append(v)
            else:
                groups.setdefault((v.ranges, v.arg.outer), []).append(v)
        # Stores run along with the longest reduction over the main loops, if it can take them.
        hosts = [ranges for ranges, outer in groups if not outer and ranges[0] in self.body.main]
        host = max(hosts, key=len, default=None)
        for (ranges, outer), values in groups.items():
            inside = Work([], values)
            if ranges is host and not outer:
                end = depth + len(ranges)
                inside.outputs = [out for out in deeper.outputs if out.depth <= end]
                deeper.outputs = [out for out in deeper.outputs if out.depth > end]
            inside.reductions = values + self.needed(inside, deeper.reductions)
            self.reduction_loops(depth, ranges, inside)
        rest = Work(deeper.outputs, [])
        rest.reductions = self.needed(rest, deeper.reductions)
        if rest:
            self.plain_loop(depth, rest)

    def needed(self, work: Work, candidates: list[Value]) -> list[Value]:
        """List those of ``candidates`` (deeper reductions) that the statements of ``work`` are computed from."""
        wanted: set[Value] = set()
        pending = [out.value for out in work.outputs] + [v.src[0] for v in work.reductions]
        seen: set[Value] = set()
        possible = {v for v in candidates if not self.is_staged(v)}
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in possible:
                wanted.add(value)
            if value.op is not ACCUMULATE or value in possible:
                pending += value.src
        return [v for v in candidates if v in wanted]

    # Loops without a reduction of their own ------------------------------------------------------------------------------

    def plain_loop(self, depth: int, work: Work) -> None:
        """The loop over main range ``depth``, with everything below it."""
        r = self.body.main[depth]
        if r is self.short:
            for k in range(r.extent):
                with self.element(r, k):
                    self.block(depth + 1, work)
            return
        lo, hi = "0", self.extent(r)
        if self.is_column_work(depth, work):
            self.column_loop(depth, work)
            return
        if self.is_transposed(depth, work):
            self.tiled_loops(depth, work)
            return
        if depth == 0:
            inner = prod([x.extent for x in self.body.main[1:]])
            for v in work.reductions:
                inner = max(inner, prod([x.extent for x in self.body.main[1 : v.depth]]) * prod([x.extent for x in v.ranges]))
            self.begin_phase(hi, self.chunk(inner))
            lo, hi = "lo", "hi"
        pieces = self.segments(depth, work)
        for k, (left, right, known) in enumerate(pieces):
            a = lo if left is None else self.integer("max", lo, left)
            b = hi if right is None else self.integer("min", hi, right)
            before = self.assumed, self.piece
            self.assumed = self.assumed | known
            if len(pieces) > 1:
                self.piece = k, len(pieces)
            with self.loop(a, b, r, long=depth > 0 and r.extent >= LONG_ROW):
                self.block(depth + 1, work)
            self.assumed, self.piece = before

    def segments(self, depth: int, work: Work) -> list[tuple[Operand | None, Operand | None, dict[Guard, bool]]]:
        """Pieces of a loop inside which the conditions of padding and joining are known.

        The pieces are in order; None is the end of the loop.  The innermost loop is cut, and a plain one around it, whose conditions
        would be looked at with every element.
        """
        r = self.body.main[depth]
        whole: list[tuple[Operand | None, Operand | None, dict[Guard, bool]]] = [(None, None, {})]
        around = depth == len(self.body.main) - 2 and not work.reductions and not self.stages
        if r is not self.inner and not around:
            return whole
        # By the run-time offsets of the ends: those of one kind are in a known order, and the loops' ends keep them inside the range.
        kinds: dict[tuple[tuple[int, int], ...], dict[Guard, tuple[int, int]]] = {}
        for v in self.body.values:
            if any(self.assumed.get(g) is False for g in v.guards):
                continue
            for g in v.guards:
                others = [(atom, k) for atom, k in g.index.terms if atom is not r]
                if g.index.coefficient(r) == 1 and g not in self.assumed and all(isinstance(atom, Offset) for atom, _ in others):
                    offsets = tuple([(atom.slot, -k) for atom, k in others if isinstance(atom, Offset)])
                    kinds.setdefault(offsets, {})[g] = -g.index.const, g.extent - g.index.const
        if not kinds:
            return whole
        offsets, inside = max(kinds.items(), key=lambda kind: len(kind[1]))
        points: list[Any] = sorted({end for pair in inside.values() for end in pair})
        if not offsets:
            points = [p for p in points if 0 < p < r.extent]
        points = [-inf, *points, inf]
        count = len(points) - 1
        if count > cost.SEGMENTS or (count**2 if around else count) * len(self.body.values) > cost.SEGMENT_VALUES:
            return whole
        # The pieces of a row are others in each piece of the rows: values that are not there cut nothing.
        of_rows = self.piece[0]
        ends: list[Operand | None] = [
            None if p in (-inf, inf) else self.argument(("segment", r, k, of_rows), Formula(p, offsets))
            for k, p in enumerate(points)
        ]
        found: list[tuple[Operand | None, Operand | None, dict[Guard, bool]]] = []
        for (a, left), (b, right) in pairwise(zip(points, ends, strict=True)):
            if not offsets:
                a, b = max(a, 0), min(b, r.extent)
            found.append((left, right, {g: lo <= a and b <= hi for g, (lo, hi) in inside.items()}))
        return found

    def chunk(self, inner: int) -> Operand:
        """Iterations handed out at a time, from what one iteration does; a function of shapes alone."""
        return self.argument(("chunk", len(self.kernel.phases)), Formula(max(1, PARALLEL_ELEMENTS // max(inner, 1))))

    def is_transposed(self, depth: int, work: Work) -> bool:
        """Two innermost loops over plain work where some array is walked across its rows."""
        main = self.body.main
        if depth != len(main) - 2 or work.reductions:
            return False
        if any(out.depth != len(main) for out in work.outputs):
            return False
        row, column = main[depth], main[depth + 1]
        for v in self.body.values:
            index = v.index
            if v.op is not LOAD or index is None or v.guards:
                continue
            if index.coefficient(row) == 1 and index.coefficient(column) not in (0, 1):
                return True
        return False

    def tiled_loops(self, depth: int, work: Work) -> None:
        row, column = self.body.main[depth], self.body.main[depth + 1]
        n, m = self.extent(row), self.extent(column)
        rows = self.tiles(row, TILE_ROWS)
        if depth == 0:
            self.begin_phase(rows, self.chunk(TILE_ROWS * column.extent))
            with self.loop("lo", "hi") as var:
                self.tile(var, row, column, n, m, work, depth)
        else:
            with self.loop("0", rows) as var:
                self.tile(var, row, column, n, m, work, depth)

    def tiles(self, r: Range, size: int) -> Operand:
        return self.argument(("tiles", r, size), Formula(-(-r.extent // size)))

    def tile(self, var: Operand, row: Range, column: Range, n: Operand, m: Operand, work: Work, depth: int) -> None:
        lo = self.integer("mul", var, str(TILE_ROWS))
        hi = self.integer("min", self.integer("add", lo, str(TILE_ROWS)), n)
        with self.loop("0", self.tiles(column, TILE_COLUMNS)) as across:
            left = self.integer("mul", across, str(TILE_COLUMNS))
            right = self.integer("min", self.integer("add", left, str(TILE_COLUMNS)), m)
            with self.loop(lo, hi, row), self.loop(left, right, column):
                self.block(depth + 2, work)

    # Columns: an outer axis is reduced ------------------------------------------------------------------------------------

    def is_column_work(self, depth: int, work: Work) -> bool:
        """Below this loop only reductions over outer axes and what is computed from them."""
        return (
            depth == len(self.body.main) - 1
            and bool(work.reductions)
            and all(v.depth == depth + 1 and v.arg.outer for v in work.reductions)
            and all(out.depth == depth + 1 for out in work.outputs)
        )

    def column_loop(self, depth: int, work: Work) -> None:
        """``for tile of columns: for row: for column of the tile: accumulate``: rows are read along."""
        r = self.body.main[depth]
        tiles = self.tiles(r, COLUMNS)
        rows = max([reduce.row_count(v.ranges) for v in work.reductions])
        if depth == 0 and r.extent <= COLUMNS and rows > reduce.PIECE:
            self.few_columns(r, work)
        elif depth == 0:
            self.begin_phase(tiles, self.chunk(rows * min(COLUMNS, r.extent)))
            with self.loop("lo", "hi") as var:
                self.column_tile(var, r, depth + 1, work)
        else:
            with self.loop("0", tiles) as var:
                self.column_tile(var, r, depth + 1, work)

    def column_tile(self, var: Operand, r: Range, depth: int, work: Work) -> None:
        lo = self.integer("mul", var, str(COLUMNS))
        hi = self.integer("min", self.integer("add", lo, str(COLUMNS)), self.extent(r))
        for outputs, groups in self.column_passes(depth, work):
            if outputs:
                with self.loop(lo, hi, r):
                    for out in outputs:
                        self.store(out)
            for ranges, values in groups.items():
                reduce.columns(self, ranges, values, r, lo, hi)

    def few_columns(self, r: Range, work: Work) -> None:
        """Columns of one tile, and many rows: threads take pieces of the rows, then the pieces are combined."""
        n = self.extent(r)
        for outputs, groups in self.column_passes(1, work):
            if outputs:
                self.begin_phase()
                with self.loop("0", n, r):
                    for out in outputs:
                        self.store(out)
            for ranges, values in groups.items():
                count = reduce.piece_count(ranges)
                self.begin_phase(self.argument(("pieces of rows", ranges), Formula(count)), self.chunk(reduce.PIECE * r.extent))
                partial = {v: self.workspace(reduce.accumulator(v), count * r.extent) for v in values}
                with self.loop("lo", "hi") as number:
                    reduce.column_piece(self, ranges, values, r, number, partial)
                self.begin_phase()
                reduce.column_pieces(self, ranges, values, r, partial)

    def column_passes(self, depth: int, work: Work) -> Iterator[tuple[list[Output], dict[tuple[Range, ...], list[Value]]]]:
        """Pass after pass: what is stored in it, then what is reduced in it, by the rows it is reduced over."""
        times = {self.time(out)[depth] for out in work.outputs} | {v.time[depth] for v in work.reductions}
        for time in sorted(times):
            self.tokens[depth] = object()
            groups: dict[tuple[Range, ...], list[Value]] = {}
            for v in work.reductions:
                if v.time[depth] == time:
                    groups.setdefault(v.ranges, []).append(v)
            yield [out for out in work.outputs if self.time(out)[depth] == time], groups

    # Loops with reductions ------------------------------------------------------------------------------------------------

    def is_dear(self, reductions: list[Value], r: Range) -> bool:
        """Tell whether something dear is computed for every element of reductions over ``r``."""
        pending, seen = [v.src[0] for v in reductions], set(reductions)
        while pending:
            value = pending.pop()
            if r not in value.free or value in seen or value in self.stages:
                continue
            if value.op.cost >= cost.STAGE_COST:
                return True
            seen.add(value)
            pending += value.src
        return False

    def reduction_loops(self, depth: int, ranges: tuple[Range, ...], work: Work) -> None:
        """Loops over ``ranges`` that update the reductions sitting at ``depth`` and run what else lies inside."""
        own = [v for v in work.reductions if v.depth == depth]
        inside = Work(work.outputs, [v for v in work.reductions if v.depth > depth])
        below = depth + len(ranges) if ranges[0] in self.body.main else len(self.body.main)

        def iteration() -> None:
            if inside:
                self.block(below, inside)

        if own[0].arg.outer:
            if depth == 0:
                self.begin_phase()
            reduce.sequential(self, ranges, own, iteration)
            if depth == 0:
                self.share([(v, self.load_result(self.results[v])) for v in own])
            return
        inside.outputs = [out for out in inside.outputs if out.depth >= below]
        rows = [out for out in work.outputs if out.depth < below]
        if depth == 0:
            self.parallel_reduction(ranges, own, iteration, rows)
        elif (
            len(ranges) == 1
            and ranges[0].extent <= (cost.SMALL_DEAR_REDUCTION if self.is_dear(own, ranges[0]) else cost.SMALL_REDUCTION)
            and ranges[0].extent * len(self.body.values) <= cost.SHORT_VALUES
            and not inside.reductions
            and all(out.depth == below for out in inside.outputs)
        ):
            reduce.unrolled(self, ranges[0], own, iteration)
        else:
            trees = reduce.Trees(self, own)
            if len(ranges) == 1 and ranges[0].extent <= CHUNK:
                totals = reduce.single_chunk(self, trees, ranges[0], iteration if inside else None)
            else:
                reduce.chunks(self, trees, ranges, "0", None, iteration, rows)
                totals = trees.finish(trees.chunk_count(ranges))
            for v, total in totals:
                cell = self.local(reduce.accumulator(v), "1")
                self.append(ir.Store(reduce.accumulator(v), cell, "0", total))
                self.results[v] = Result(cell, reduce.accumulator(v))
        for v in own:
            if v in self.stages:
                self.put(self.stages[v], v, self.operand(v), self.scopes[-1])

    def parallel_reduction(
        self, ranges: tuple[Range, ...], own: list[Value], iteration: reduce.Iteration, rows: list[Output]
    ) -> None:
        """Two phases: threads reduce chunks of fixed size, then the partial results are combined in a fixed order."""
        total = prod([r.extent for r in ranges])
        count = -(-total // reduce.PARTIAL)
        self.begin_phase(self.argument(("partials", ranges), Formula(count)), "1")
        partial = {v: self.workspace(reduce.accumulator(v), count) for v in own}
        trees = reduce.Trees(self, own)
        chunks = trees.chunk_count(ranges)
        with self.loop("lo", "hi") as number:
            first = self.integer("mul", number, str(reduce.PARTIAL_CHUNKS))
            last = self.integer("min", self.integer("add", first, str(reduce.PARTIAL_CHUNKS)), chunks)
            reduce.chunks(self, trees, ranges, first, last, iteration, rows)
            for v, part in trees.finish(self.integer("sub", last, first)):
                self.append(ir.Store(reduce.accumulator(v), partial[v], number, part))
        self.begin_phase()
        final = reduce.Trees(self, own, lanes=False)
        n = self.argument(("partials", ranges), Formula(count))
        with self.loop("0", n) as k:
            for v in own:
                value = self.name()
                self.append(ir.Load(value, reduce.accumulator(v), partial[v], k))
                final.push(v, value, k)
        self.share(final.finish(n))

    def load_result(self, result: Result) -> Operand:
        value = self.name()
        self.append(ir.Load(value, result.dtype, result.memory, "0"))
        return value

    def share(self, totals: list[tuple[Value, Operand]]) -> None:
        """Put results where the phases to come can read them."""
        for v, total in totals:
            memory = self.workspace(reduce.accumulator(v), 1)
            self.append(ir.Store(reduce.accumulator(v), memory, "0", total))
            self.results[v] = Result(memory, reduce.accumulator(v))
