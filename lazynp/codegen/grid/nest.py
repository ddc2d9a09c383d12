"""The loops around a kernel's statements, for a grid of threads.

In: a ``Body``.  Out: phases of a grid (``ir.Phase.threads``), each one launch.  What runs inside one thread is arranged by ``Nest``; here
is decided what a thread, a team of threads and a launch are:

* *flat*: no reduction, or none that a thread cannot do alone: one thread for each iteration of the outer loops, in memory order, a few
  elements each where all accesses walk along;
* *team*: a reduction along rows: a warp or a block for each row; every pass over the row gives a thread the same elements, so what one
  pass stages in shared memory the next one reads without a barrier;
* *split* (``reduce``): few long reductions: blocks reduce pieces of fixed size, the last one of a row combines them;
* *columns* (``columns``): reductions along few columns of many rows: threads for blocks of rows, then one for each column;
* *tiles* (``tiles``): an array that is walked across its rows goes through shared memory.

Promise: the order in which floating-point numbers are combined is that of ``codegen/reduce.py``, so every bit of a sum is the same as on
the processor: the 32 accumulators of a chunk are the 32 threads of a warp.

Rows of float32, sums of matrices and rows, slices and planes with a bias take 16 bytes an access and one quotient for four elements, which
is a multiplication (``lz_quotient``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod

from lazynp.codegen import ir, reduce
from lazynp.codegen.emit import Stage
from lazynp.codegen.grid import columns, tiles
from lazynp.codegen.grid import reduce as grid_reduce
from lazynp.codegen.grid.launch import WARP, Launches, Team
from lazynp.codegen.ir import Memory, Operand
from lazynp.codegen.nest import Work
from lazynp.graph.index import Formula, Offset, Range
from lazynp.schedule import cost
from lazynp.schedule.chunks import CHUNK
from lazynp.schedule.lower import ACCUMULATE, CHECKED, LOAD, SCALAR, Body, Output, Value

ACCESS_BYTES = 16  # that a thread reads or writes at once where all accesses are along memory
MOST_ELEMENTS = 8  # of narrow types
GROUPS = 16  # of neighbours that a row has at least: the last one of it may be short
ELEMENTS_FROM = 1 << 16  # below this many there are too few threads to give each several
WARPS = 8  # of a block that has one row
FEW_ROWS = 256  # so few rows, longer than
LONG_ROW = 1 << 17  # this, are each reduced by many blocks
TEAMS = 4  # rows of a block whose warps have one each
FEW = 8  # a row of at most this many elements is reduced by one thread
ALONE = 32  # a row of at most this many elements is reduced by one thread, if there are
ALONE_ROWS = 1 << 12  # at least so many rows


def emit(body: Body, shared: int = 0) -> tuple[ir.Kernel, ir.Launch]:
    """The kernel of a body, and what a launch passes; ``shared``: bytes of shared memory that a block may have, where it is known."""
    nest = GridNest(body)
    nest.most_shared = shared
    return nest.run()


class GridNest(Launches):
    """``Nest`` with launches and teams in place of parallel loops."""

    most_shared: int

    # Choosing ----------------------------------------------------------------------------------------------------------

    def one_pass(self, depth: int, work: Work) -> None:
        if self.team is None and depth == self.launches_at:
            self.launched_pass(depth, work)
        elif self.team is not None and depth == self.team.depth:
            self.team_pass(depth, work)
        else:
            super().one_pass(depth, work)

    def launched_pass(self, depth: int, work: Work) -> None:
        """A pass whose reductions over main[depth:] are launches of their own, for all iterations of main[:depth] together."""
        here = Work([out for out in work.outputs if out.depth == depth], [])
        if here and depth:
            self.flat(depth, here)
        elif here:
            self.begin_phase()
            for out in here.outputs:
                self.store(out)
        groups, rest = self.shared_loops(depth, work)
        for ranges, own, inside in groups:
            if own[0].arg.outer:
                assert depth == 0
                self.reduction_loops(0, ranges, inside)
            else:
                grid_reduce.split(self, tuple(self.body.main[:depth]), ranges, own, self.inside(ranges, inside))
        if rest:
            self.rows_or_flat(rest)

    def shared_loops(self, depth: int, work: Work) -> tuple[list[tuple[tuple[Range, ...], list[Value], Work]], Work]:
        """Reductions at ``depth`` by the loops they share: the ranges, they, all that the loops do; and what is left for other loops."""
        outputs = [out for out in work.outputs if out.depth > depth]
        deeper = [v for v in work.reductions if v.depth > depth]
        together: dict[tuple[tuple[Range, ...], bool], list[Value]] = {}
        for v in work.reductions:
            if v.depth == depth:
                together.setdefault((v.ranges, v.arg.outer), []).append(v)
        groups = []
        for (ranges, outer), own in together.items():
            inside = Work([], own)
            end = depth + len(ranges)
            if not outer and ranges == tuple(self.body.main[depth:end]):
                inside.outputs = [out for out in outputs if out.depth == end]
                outputs = [out for out in outputs if out.depth != end]
            inside.reductions = own + self.needed(inside, deeper)
            groups.append((ranges, own, inside))
        rest = Work(outputs, [])
        rest.reductions = self.needed(rest, deeper)
        return groups, rest

    @contextmanager
    def launching(self, depth: int) -> Iterator[None]:
        """Passes at ``depth`` are launches (-1: none is, this is inside a thread)."""
        before, self.launches_at = self.launches_at, depth
        yield
        self.launches_at = before

    def inside(self, ranges: tuple[Range, ...], work: Work) -> reduce.Iteration:
        """List what an iteration of a reduction does besides contributing: deeper reductions, and stores."""
        own = [v for v in work.reductions if v.ranges == ranges]
        rest = Work(work.outputs, [v for v in work.reductions if v not in own])
        below = own[0].depth + len(ranges) if ranges[0] in self.body.main else len(self.body.main)

        def iteration() -> None:
            if rest:
                self.block(below, rest)

        return iteration

    def rows_or_flat(self, work: Work) -> None:
        """Outputs below the outermost loop, with the reductions they need."""
        if not work.reductions:
            for depth in sorted({out.depth for out in work.outputs}):
                alike = Work([out for out in work.outputs if out.depth == depth], [])
                across = tiles.across(self, depth, alike)
                if across:
                    tiles.tiles(self, depth, alike, across)
                else:
                    self.flat(depth, alike)
            return
        depth = min(v.depth for v in work.reductions)
        before = [out for out in work.outputs if out.depth < depth]
        if before:
            self.rows_or_flat(Work(before, []))
        inside = Work([out for out in work.outputs if out.depth >= depth], work.reductions)
        rows = prod([r.extent for r in self.body.main[:depth]])
        at = [v for v in work.reductions if v.depth == depth]
        longest = max(prod([r.extent for r in v.ranges]) for v in at)
        if columns.fit(depth, inside, rows):
            columns.columns(self, depth, inside)
            return
        if rows < FEW_ROWS and longest > LONG_ROW and not any(v.arg.outer for v in at):
            with self.launching(depth):
                self.block(depth, inside)
            return
        short = longest > grid_reduce.longest(at) or longest <= FEW or (longest <= ALONE and rows >= ALONE_ROWS)
        if short or all(v.arg.outer for v in at):
            self.flat(depth, inside)
        else:
            self.rows(depth, inside, longest)

    # One thread for each iteration -----------------------------------------------------------------------------------------

    def flat(self, depth: int, work: Work) -> None:
        """Threads for main[:depth], in C order; below that each thread works alone."""
        ranges = tuple(self.body.main[:depth])
        n = prod([r.extent for r in ranges])
        each = self.elements(ranges, work) if n >= ELEMENTS_FROM else 1
        if each > 1:
            self.neighbours(ranges, each, work)
            return
        number = self.threads_of(n, (ranges, each))
        with self.launching(-1), self.when(self.integer("lt", number, self.total(ranges))):
            self.bind_rows(ranges, number)
            self.block(depth, work)

    def neighbours(self, ranges: tuple[Range, ...], each: int, work: Work) -> None:
        """A thread for ``each`` elements of a row, the last range, that are side by side; the last one of a row may have fewer."""
        *outer, inner = ranges
        groups = -(-inner.extent // each)
        number = self.threads_of(prod([r.extent for r in outer]) * groups, (ranges, each))
        count, depth = self.extent(inner), len(ranges)
        with self.launching(-1), ExitStack() as stack:
            if outer:
                threads = self.argument(("threads", ranges, each), Formula(prod([r.extent for r in outer]) * groups))
                stack.enter_context(self.when(self.integer("lt", number, threads)))
                row = self.argument(("groups", inner, each), Formula(groups))
                self.bind_rows(tuple(outer), self.integer("div", number, row))
                number = self.integer("rem", number, row)
            base = self.integer("mul", number, str(each))
            end = self.integer("add", base, str(each))
            with self.when(self.integer("ge", count, end)):
                self.several(inner, base, each, work)
            with self.when(self.integer("lt", count, end)), self.loop(base, count, inner):
                self.block(depth, work)

    def several(self, r: Range, base: Operand, each: int, work: Work) -> None:
        """The iterations base .. base + each of one thread: everything is read before anything is written."""
        values: list[tuple[Output, Operand, Operand]] = []
        for k in range(each):
            with self.shared_scope():
                self.bind(r, self.integer("add", base, str(k)))
                values += [(out, self.index(out.index), self.operand(out.value)) for out in work.outputs]
        for out in work.outputs:
            for of, index, value in values:
                if of is out:
                    self.append(ir.Store(out.value.dtype, Memory("buffer", out.buffer), index, value))

    def elements(self, ranges: tuple[Range, ...], work: Work) -> int:
        """Choose how many neighbours one thread takes: several if every access walks along the innermost loop, or stays."""
        if work.reductions:
            return 1
        r = ranges[-1]
        accesses = [(out.index, out.value.dtype.itemsize) for out in work.outputs]
        pending, seen = [out.value for out in work.outputs], set[Value]()
        while pending:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            if v.guards or v.op is CHECKED:
                return 1
            if v.index is not None:
                accesses.append((v.index, v.dtype.itemsize))
            if v.op is not ACCUMULATE:
                pending += v.src
        for index, _ in accesses:
            if index.coefficient(r) not in (0, 1) or any(atom not in ranges and not isinstance(atom, Offset) for atom, _ in index.terms):
                return 1
        each = max(1, min(MOST_ELEMENTS, ACCESS_BYTES // max(size for _, size in accesses)))
        return each if len(ranges) == 1 or r.extent >= GROUPS * each else 1

    # A team for each row --------------------------------------------------------------------------------------------------

    def rows(self, depth: int, work: Work, longest: int) -> None:
        """Teams for main[:depth], in C order."""
        ranges = tuple(self.body.main[:depth])
        n = prod([r.extent for r in ranges])
        chunks = -(-longest // CHUNK)
        warps = min(WARPS, 1 << (chunks - 1).bit_length())
        if warps == 1:
            teams = TEAMS
            self.launch_of(self.argument(("blocks", ranges, teams), Formula(-(-n // teams))), WARP * teams)
        else:
            teams = 1
            self.launch_of(self.total(ranges), WARP * warps)
        rank, warp = self.integer("rem", "thread", str(WARP)), self.integer("div", "thread", str(WARP))
        self.team = Team(depth, warps, rank, warp)
        if teams == 1:
            self.bind_rows(ranges, "block")
            self.stage(depth, work, teams)
            self.block(depth, work)
        else:
            row = self.integer("add", self.integer("mul", "block", str(teams)), warp)
            with self.when(self.integer("lt", row, self.total(ranges))):
                self.bind_rows(ranges, row)
                self.stage(depth, work, teams)
                self.block(depth, work)
        self.team = None
        self.stages = {}

    def team_pass(self, depth: int, work: Work) -> None:
        """A pass over a row by its team."""
        team = self.team
        assert team is not None
        here = [out for out in work.outputs if out.depth == depth]
        if here:
            leader = self.integer("eq", "thread" if team.warps > 1 else team.rank, "0")
            with self.when(leader):
                for out in here:
                    self.store(out)
        groups, rest = self.shared_loops(depth, work)
        for ranges, own, inside in groups:
            if own[0].arg.outer:
                # In the order of rows, which every thread follows for itself.
                self.reduction_loops(depth, ranges, Work([], inside.reductions))
                assert not inside.outputs
            else:
                grid_reduce.row(self, ranges, own, self.inside(ranges, inside))
        # Deeper than the shallowest reduction or store each thread works alone.
        while rest:
            end = min([out.depth for out in rest.outputs] + [v.depth for v in rest.reductions])
            now = [out for out in rest.outputs if out.depth == end] or rest.outputs
            part = Work(now, [])
            part.reductions = self.needed(part, rest.reductions)
            self.along(depth, end, part)
            rest.outputs = [out for out in rest.outputs if out not in now]
            rest.reductions = self.needed(rest, rest.reductions)

    def along(self, depth: int, end: int, work: Work) -> None:
        """The team walks main[depth:end], each thread the elements it has in every pass."""
        ranges = tuple(self.body.main[depth:end])

        def element(position: Operand) -> None:
            self.bind_rows(ranges, position)
            self.block(end, work)

        grid_reduce.elements(self, self.total(ranges), element)

    # Staging -----------------------------------------------------------------------------------------------------------

    def stage(self, depth: int, work: Work, teams: int) -> None:
        """Keep in shared memory what one pass over the row loads or computes and a later one needs again.

        Every pass must walk the same ranges, so that a thread finds what it wrote itself.
        """
        statements = [(v.src[0], v.time[depth], v.ranges) for v in work.reductions]
        statements += [
            (out.value, self.time(out)[depth], tuple(self.body.main[depth : out.depth])) for out in work.outputs if out.depth > depth
        ]
        ranges = statements[0][2]
        if any(other != ranges for _, _, other in statements) or ranges != tuple(self.body.main[depth:]):
            return
        length = prod([r.extent for r in ranges])
        assert self.team is not None
        room = cost.SHARED_BYTES
        if teams == 1:
            room = max(room, self.most_shared - grid_reduce.row_bytes(work.reductions, self.team.warps))
        regions: list[Value] = []  # what lies in each at last
        places: dict[Value, int] = {}
        wanted = self.wanted_again(statements, ranges)
        for v, (first, _) in sorted(wanted.items(), key=lambda item: (item[1][0], -item[0].weight, item[0].number)):
            if regions and v.dtype != regions[0].dtype:
                continue
            # What is read for the last time, on the way to this value, makes room for it.
            free = [k for k, u in enumerate(regions) if wanted[u][1] <= first and _comes_from(v, u)]
            if free:
                regions[free[0]] = v
                places[v] = free[0]
            elif length * (len(regions) + 1) * teams * v.dtype.itemsize <= room:
                regions.append(v)
                places[v] = len(regions) - 1
        if not places:
            return
        count = len(regions)
        memory = self.shared(regions[0].dtype, self.argument(("staged", count), Formula(length * count * teams)))
        for v, k in places.items():
            number = str(k) if teams == 1 else self.integer("add", self.integer("mul", self.team.warp, str(count)), str(k))
            self.stages[v] = Stage(memory, depth, ranges, base=self.integer("mul", self.total(ranges), number))

    def wanted_again(
        self, statements: list[tuple[Value, int, tuple[Range, ...]]], ranges: tuple[Range, ...]
    ) -> dict[Value, tuple[int, int]]:
        """Values that several passes want, with the first and the last of them."""
        first: dict[Value, int] = {}
        wanted: dict[Value, tuple[int, int]] = {}
        for root, time, _ in sorted(statements, key=lambda statement: statement[1]):
            pending, seen = [root], set[Value]()
            while pending:
                v = pending.pop()
                if v in seen or v.op in (ACCUMULATE, SCALAR, CHECKED):
                    continue
                seen.add(v)
                again = first.setdefault(v, time) != time
                if again and v.free.issuperset(ranges) and (v.op is LOAD or v.weight >= cost.STAGE_COST):
                    wanted[v] = first[v], time
                else:
                    pending += v.src
        return wanted

def _comes_from(v: Value, u: Value) -> bool:
    pending, seen = [v], set[Value]()
    while pending:
        at = pending.pop()
        if at is u:
            return True
        if at not in seen and at.number > u.number and at.op is not ACCUMULATE:
            seen.add(at)
            pending += at.src
    return False
