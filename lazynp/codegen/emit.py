"""The statements of a loop nest: scopes, operands, scalars.

In: a ``Body`` (what one iteration computes).  Out: the statements of the current block; which loops are around it is arranged by ``nest``
or ``grid``, and how reductions combine by ``reduce``.
Promise: a value is computed at the loop level it belongs to, once a pass; dear values that a later pass over the same axis needs again are
staged in scratch; extents, strides, offsets and scalars are arguments, so that one kernel serves every shape of its pattern.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lazynp.codegen import ir
from lazynp.codegen.ir import Memory, Operand
from lazynp.graph import index as ix
from lazynp.graph import op as o
from lazynp.graph.index import Formula, Index, Loaded, Offset, Quotient, Range, Remainder
from lazynp.schedule import cost
from lazynp.schedule.lower import ACCUMULATE, CHECKED, INSIDE, LOAD, POSITION, SCALAR, Body, Output, Value
from lazynp.schedule.movement import Guard
from lazynp.values.records import Record, field

INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)

PARALLEL_ELEMENTS = 32_768  # iterations of the innermost loop handed to a thread at a time
LONG_ROW = 1 << 18  # elements of a row, all of which are one piece of work, from which on it is looked whether the run was stopped
COLUMNS = 512  # columns accumulated together where an outer axis is reduced
TILE_ROWS, TILE_COLUMNS = 32, 64  # tile of a transposed access: its cache lines stay in the first level
LITERAL_STRIDE = 4  # strides up to this are part of the kernel: interleaved channels vectorise


class Scope(Record):
    """An open block of statements; ``ranges`` are the loop variables it binds.

    Nothing moves out of an ``anchor`` or a ``fence``; in a fence, a conditional block, what is known outside is known.
    ``elements`` are the iterations of short loops that are written out in this block, by range and number: what one pass over them
    computed the next one knows.
    """

    statements: list[ir.Statement]
    ranges: set[Range] = field(factory=set)
    anchor: bool = False
    fence: bool = False
    memo: dict[Any, Operand] = field(factory=dict)
    elements: dict[tuple[Range, int], Scope] = field(factory=dict)


class Result(Record):
    """The place where a finished reduction is read: ``memory[0]``, for a tile of columns (column - base), or the place of ``ranges``."""

    memory: Memory
    dtype: ir.DType
    column: Range | None = None
    base: Operand = "0"
    ranges: tuple[Range, ...] = ()


class Stage(Record):
    """Scratch that keeps a value from one pass for the next ones, from ``memory[base]`` on.

    ``written`` maps each piece of a loop in which the value is computed (None: all of the loop) to the pass that did so.  A value that
    is wanted under a condition is not computed in every piece.
    """

    memory: Memory
    depth: int
    ranges: tuple[Range, ...]
    written: dict[int | None, object] = field(factory=dict)
    base: Operand = "0"


class Emitter:
    """Scopes, operands and scalar statements; ``Nest`` arranges the loops.

    ``masks``: the processor loads parts of vectors.
    """

    masks = platform.machine() in ("x86_64", "AMD64")

    def __init__(self, body: Body) -> None:
        self.body = body
        self.kernel = ir.Kernel()
        self.launch = ir.Launch()
        self.scopes: list[Scope] = []
        self.bound: dict[Range, Operand] = {}
        self.results: dict[Value, Result] = {}
        self.stages: dict[Value, Stage] = {}
        self.tokens: list[object] = [None] * (len(body.main) + 1)
        self.integer_names: dict[Any, Operand] = {}
        self.assumed: dict[Guard, bool] = {}  # conditions whose outcome is known in the current loop
        self.piece: tuple[int | None, int] = (None, 1)  # which of how many pieces of its loop this is
        self.mask: tuple[Range, Operand] | None = None  # a range and where in its loop there is something to load
        self.count = 0
        self.phase = ir.Phase()
        self.short = self.short_range()
        main = body.main if self.short is None else body.main[:-1]
        self.inner = main[-1] if main else None

    def short_range(self) -> Range | None:
        """The innermost range, if its loop is written out: the loop over the rows is the innermost one then, and vectorises.

        The elements of a row are neighbours, and what one pass over a row computed the next one knows.
        """
        values = self.body.values
        if len(self.body.main) < 2:
            return None
        *rows, r = self.body.main
        reductions = [v for v in values if v.op is ACCUMULATE]
        if r.extent > cost.SHORT_ROW or r.extent * len(values) > cost.SHORT_VALUES or any(v.arg.depth > len(rows) for v in reductions):
            return None
        reduced = any(v.ranges == (r,) and not v.arg.outer for v in reductions)
        dear = any(v.op.cost >= cost.STAGE_COST and r in v.free for v in values)
        return r if reduced or dear or r.extent <= LITERAL_STRIDE else None

    # Names and arguments ----------------------------------------------------------------------------------------------

    def name(self) -> Operand:
        self.count += 1
        return f"v{self.count}"

    def argument(self, key: Any, formula: Formula) -> Operand:
        """An integer argument; ``key`` is its role, never its value."""
        name = self.integer_names.get(key)
        if name is None:
            name = self.integer_names[key] = f"n{len(self.launch.integers)}"
            self.launch.integers.append(formula)
        return name

    def extent(self, r: Range) -> Operand:
        return self.argument(("extent", r), Formula(r.extent))

    def workspace(self, dtype: ir.DType, count: int) -> Memory:
        self.kernel.workspaces.append(dtype)
        self.launch.workspaces.append(count)
        return Memory("workspace", len(self.kernel.workspaces) - 1)

    def local(self, dtype: ir.DType, count: Operand) -> Memory:
        self.phase.locals.append(ir.Local(dtype, count))
        return Memory("local", len(self.phase.locals) - 1)

    # Scopes ------------------------------------------------------------------------------------------------------------

    def append(self, statement: ir.Statement) -> None:
        self.scopes[-1].statements.append(statement)

    @contextmanager
    def loop(
        self, lo: Operand, hi: Operand, bind: Range | None = None, lanes: bool = False, step: Operand = "1", long: bool = False
    ) -> Any:
        """An open loop; its variable is yielded, and stands for ``bind`` if given."""
        var = self.name()
        statement = ir.Loop(var, lo, hi, [], lanes, step, long)
        scope = Scope(statement.body)
        self.scopes.append(scope)
        if bind is not None:
            self.bind(bind, var)
        yield var
        self.scopes.pop()
        self.append(statement)

    @contextmanager
    def when(self, condition: Operand) -> Any:
        statement = ir.If(condition)
        self.scopes.append(Scope(statement.body, fence=True))
        yield
        self.scopes.pop()
        self.append(statement)

    @contextmanager
    def masked(self, r: Range, inside: Operand) -> Any:
        """Loads that change with ``r`` give 0 where ``inside`` is false, and touch nothing."""
        self.mask = r, inside
        yield
        self.mask = None

    @contextmanager
    def shared_scope(self) -> Any:
        """A scope of its own in the current block: what depends on a range bound in it is not shared with what follows."""
        self.scopes.append(Scope(self.scopes[-1].statements))
        yield
        self.scopes.pop()

    @contextmanager
    def element(self, r: Range, k: int) -> Any:
        """Iteration ``k`` of a loop over ``r`` that is written out; entered again, it knows what it knew."""
        block = self.scopes[-1]
        scope = block.elements.get((r, k))
        if scope is None:
            scope = block.elements[r, k] = Scope(block.statements)
        self.scopes.append(scope)
        self.bind(r, str(k))
        yield
        self.scopes.pop()

    def bind_rows(self, ranges: tuple[Range, ...], position: Operand) -> None:
        """Bind ``ranges`` to the element at ``position`` in their C order."""
        for k, r in enumerate(reversed(ranges)):
            if k == len(ranges) - 1:
                self.bind(r, position)
            else:
                extent = self.extent(r)
                self.bind(r, self.integer("rem", position, extent))
                position = self.integer("div", position, extent)

    def bind(self, r: Range, operand: Operand) -> None:
        """Let ``r`` be ``operand`` from here on, in the innermost scope."""
        self.bound[r] = operand
        self.scopes[-1].ranges.add(r)

    def home(self, free: Iterable[Range]) -> Scope:
        """The outermost scope in which everything ``free`` is known."""
        wanted = set(free)
        for scope in reversed(self.scopes):
            if scope.anchor or scope.fence or scope.ranges & wanted:
                return scope
        return self.scopes[0]

    # Integers ----------------------------------------------------------------------------------------------------------

    def integer(self, kind: str, a: Operand, b: Operand, scope: Scope | None = None) -> Operand:
        if b == "0" and kind in ("add", "sub"):
            return a
        if a == "0" and kind == "add":
            return b
        if kind == "mul" and "0" in (a, b):
            return "0"
        if kind == "mul" and a == "1":
            return b
        if kind in ("mul", "div") and b == "1":
            return a
        if kind == "rem" and b == "1":
            return "0"
        target = scope or self.scopes[-1]
        key = (kind, a, b)
        if key in target.memo:
            return target.memo[key]
        dst = self.name()
        target.statements.append(ir.Integer(dst, kind, a, b))
        target.memo[key] = dst
        return dst

    def index(self, index: Index) -> Operand:
        """An index expression as an operand, in the scope where its ranges are known."""
        if not index.terms and not index.const:
            return "0"
        for scope in reversed(self.scopes):
            if index in scope.memo:
                return scope.memo[index]
            if scope.anchor:
                break
        scope = self.home(self.free(index))
        offsets: list[tuple[int, int]] = []
        parts: list[tuple[Operand, Operand]] = []
        for atom, k in index.terms:
            if isinstance(atom, Offset):
                offsets.append((atom.slot, k))
                continue
            if isinstance(atom, Range):
                operand = self.bound[atom]
            elif isinstance(atom, Quotient | Remainder):
                operand = self.divided(atom, scope)
            else:
                assert isinstance(atom, Loaded)
                operand = self.operand(self.body.loaded[atom])
            parts.append((operand, self.stride(index, atom, k)))
        total: Operand = "0"
        if index.const or offsets:
            total = self.argument(("offset", index), Formula(index.const, tuple(offsets)))
        for operand, stride in parts:
            total = self.integer("add", total, self.integer("mul", operand, stride, scope), scope)
        scope.memo[index] = total
        return total

    def divided(self, atom: Quotient | Remainder, scope: Scope) -> Operand:
        """Floor division, or its remainder, by instructions for unsigned numbers: multiples of the divisor keep the dividend positive."""
        multiples = max(0, -(atom.inner.bounds()[0] // atom.divisor))
        dividend = self.index(atom.inner + multiples * atom.divisor)
        divisor = self.argument(("divisor", atom), Formula(atom.divisor))
        if isinstance(atom, Remainder):
            return self.integer("rem", dividend, divisor, scope)
        quotient = self.integer("div", dividend, divisor, scope)
        if multiples:
            quotient = self.integer("sub", quotient, self.argument(("multiples", atom), Formula(multiples)), scope)
        return quotient

    def stride(self, index: Index, atom: ix.Atom, k: int) -> Operand:
        if k in (0, 1) or (atom is self.inner and 1 < k <= (LITERAL_STRIDE if self.short is None else self.short.extent)):
            return str(k)
        return self.argument(("stride", index, atom), Formula(k))

    def free(self, index: Index) -> set[Range]:
        found: set[Range] = set()
        for atom in ix.atoms(index):
            if isinstance(atom, Range):
                found.add(atom)
            elif isinstance(atom, Loaded):
                found |= self.body.loaded[atom].free
        return found

    def guard(self, guards: Sequence[Guard], target: Scope) -> Operand | None:
        """All guards as one bool in ``target``; only the sides that the intervals leave open are tested."""
        result: Operand | None = None
        for g in guards:
            if self.assumed.get(g):
                continue
            scope = self.home(self.free(g.index))
            lo, hi = g.index.bounds()
            operand = self.index(g.index)
            tests = []
            if lo < 0:
                tests.append(self.integer("ge", operand, "0", scope))
            if hi >= g.extent:
                tests.append(self.integer("lt", operand, self.argument(("guard", g), Formula(g.extent)), scope))
            for test in tests:
                result = test if result is None else self.integer("and", result, test, target)
        return result

    # Values ------------------------------------------------------------------------------------------------------------

    def operand(self, value: Value) -> Operand:
        """``value`` as a scalar in the current iteration, computed if it is not yet known here."""
        known = self.known(value)
        if known is not None:
            return known
        needed: set[Value] = set()
        pending = [value]
        while pending:
            v = pending.pop()
            if v in needed or self.known(v) is not None:
                continue
            needed.add(v)
            if not self.is_read_back(v):
                pending += self.sources(v)
        for v in sorted(needed, key=_number):
            if self.known(v) is None:
                self.compute(v)
        result = self.known(value)
        assert result is not None
        return result

    def known(self, value: Value) -> Operand | None:
        if value.op is SCALAR:
            return f"s{value.arg}"
        for scope in reversed(self.scopes):
            operand = scope.memo.get(value)
            if operand is not None:
                return operand
            if scope.anchor:
                break
        return None

    def decided(self, value: Value) -> bool | None:
        """Return what is known here about a condition: the outcome of an INSIDE, else None."""
        if value.op is not INSIDE:
            return None
        outcomes = [self.assumed.get(g) for g in value.guards]
        if any(known is False for known in outcomes):
            return False
        return True if all(outcomes) else None

    def sources(self, value: Value) -> tuple[Value, ...]:
        """List what ``value`` is computed from here: of a selection that is decided, only the chosen side; no condition that is decided."""
        if value.op is o.WHERE:
            known = self.decided(value.src[0])
            if known is not None:
                return (value.src[1 if known else 2],)
        if value.op is CHECKED and len(value.src) == 2 and self.decided(value.src[1]) is not None:
            return value.src[:1]
        return value.src

    def is_read_back(self, value: Value) -> bool:
        """Tell whether it lies in memory by now: a finished reduction, or staged by an earlier pass."""
        return value.op is ACCUMULATE or self.is_staged(value)

    def is_staged(self, value: Value) -> bool:
        """Tell whether an earlier pass has put it in scratch."""
        stage = self.stages.get(value)
        if stage is None:
            return False
        now = self.tokens[stage.depth]
        return any(stage.written.get(piece, now) is not now for piece in (None, self.piece[0]))

    def compute(self, value: Value) -> None:
        scope = self.home(value.free)
        op = value.op
        stage = self.stages.get(value)
        if stage is not None and self.is_staged(value):
            dst = self.name()
            scope.statements.append(ir.Load(dst, value.dtype, stage.memory, self.stage_index(stage, scope)))
            scope.memo[value] = dst
            return
        if op is ACCUMULATE:
            result = self.results[value]
            index = "0"
            if result.column is not None:
                index = self.integer("sub", self.bound[result.column], result.base, scope)
            for r in result.ranges:
                index = self.integer("add", self.integer("mul", index, self.extent(r), scope), self.bound[r], scope)
            dst = self.name()
            scope.statements.append(ir.Load(dst, result.dtype, result.memory, index))
            if result.dtype != value.dtype:
                dst = self.scalar(o.CAST, value.dtype, (dst,), result.dtype, scope)
            scope.memo[value] = dst
            return
        if op is LOAD:
            dst = self.name()
            index = self.index(value.index or ix.ZERO)
            guard = self.guard(value.guards, scope)
            if self.mask is not None and self.mask[0] in value.free:
                guard = self.mask[1]
            scope.statements.append(ir.Load(dst, value.dtype, Memory("buffer", value.arg), index, guard))
        elif op is POSITION:
            dst = self.index(value.index or ix.ZERO)
        elif op is INSIDE:
            condition = self.guard(value.guards, scope)
            dst = self.integer("eq", "0", "0", scope) if condition is None else condition  # split loops may show more than guards knew
        elif op is CHECKED:
            dst = self.checked(value, scope)
        elif len(sources := self.sources(value)) < len(value.src):
            dst = self.operand(sources[0])
        else:
            args = tuple([self.operand(source) for source in value.src])
            dst = self.scalar(op, value.dtype, args, value.src[-1].dtype, scope)
        scope.memo[value] = dst
        if stage is not None:
            self.put(stage, value, dst, scope)

    def scalar(self, op: o.Op, dtype: ir.DType, args: tuple[Operand, ...], source: ir.DType, scope: Scope | None = None) -> Operand:
        dst = self.name()
        (scope or self.scopes[-1]).statements.append(ir.Compute(dst, op, dtype, args, source))
        return dst

    def constant(self, value: Any, dtype: ir.DType) -> Operand:
        dst = self.name()
        self.append(ir.Constant(dst, dtype, value))
        return dst

    def checked(self, value: Value, scope: Scope) -> Operand:
        extent, flag = value.arg
        n = self.argument(("checked", value), Formula(extent))
        x = self.operand(value.src[0])
        negative = self.integer("lt", x, "0", scope)
        wrapped = self.integer("add", x, n, scope)
        x = self.scalar(o.WHERE, INT64, (negative, wrapped, x), INT64, scope)
        bad = self.integer("or", self.integer("lt", x, "0", scope), self.integer("ge", x, n, scope), scope)
        failed = bad
        if len(value.src) == 2:
            known = self.decided(value.src[1])
            if known is None:
                failed = self.integer("and", bad, self.operand(value.src[1]), scope)
            elif not known:
                failed = ""
        if failed:
            scope.statements.append(ir.Raise(failed, flag))
        return self.scalar(o.WHERE, INT64, (bad, "0", x), INT64, scope)

    def store(self, output: Output) -> None:
        value = self.operand(output.value)
        self.append(ir.Store(output.value.dtype, Memory("buffer", output.buffer), self.index(output.index), value))

    # Staging -----------------------------------------------------------------------------------------------------------

    def put(self, stage: Stage, value: Value, computed: Operand, scope: Scope) -> None:
        """Keep what was just computed for the passes to come."""
        scope.statements.append(ir.Store(value.dtype, stage.memory, self.stage_index(stage, scope), computed))
        piece, pieces = self.piece
        stage.written[piece] = self.tokens[stage.depth]
        if all(k in stage.written for k in range(pieces)):
            stage.written[None] = self.tokens[stage.depth]

    def stage_index(self, stage: Stage, scope: Scope) -> Operand:
        total: Operand = "0"
        for r in stage.ranges:
            total = self.integer("mul", total, self.extent(r), scope)
            total = self.integer("add", total, self.bound[r], scope)
        return self.integer("add", stage.base, total, scope)


def _number(value: Value) -> int:
    return value.number
