"""The loop-nest IR: what both backends render.

In: built by ``codegen/emit.py``.  Out: read by a renderer.  A kernel is a list of phases, run one after the other; a phase is a tree of
loops over scalar statements.  Operands are names of scalars or integer literals, both strings.  Promise: equal kernels are equal trees:
names are numbered in order of appearance and nothing here depends on a particular shape, buffer, offset or scalar value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazynp.graph.errors import ALL, UNDER
from lazynp.graph.index import Formula
from lazynp.graph.op import Op
from lazynp.values.records import Record, Row, field

DType = np.dtype[Any]
Operand = str

COUNTERS = 1024


class Memory(Row):
    """The memory an element lives in: a buffer argument, a workspace argument (shared by phases), scratch shared by the threads of a block,
    or local scratch of one thread."""

    space: str  # "buffer", "workspace", "shared" or "local"
    number: int


class Compute(Record):
    """``dst = op(args)`` on scalars; ``source`` is the dtype of the last argument."""

    dst: Operand
    op: Op
    dtype: DType
    args: tuple[Operand, ...]
    source: DType


class Constant(Record):
    """``dst = value``, a Python number that belongs to the structure (an identity element, say)."""

    dst: Operand
    dtype: DType
    value: Any


class Integer(Record):
    """``dst = a kind b`` in int64: add sub mul min max, div and rem of non-negative by positive, shl, lt eq ge with a bool result,
    and and or of bools."""

    dst: Operand
    kind: str
    a: Operand
    b: Operand


class Load(Record):
    """``dst = memory[index]``; with a guard, 0 where it is false, and nothing is touched."""

    dst: Operand
    dtype: DType
    memory: Memory
    index: Operand
    guard: Operand | None = None


class Store(Record):
    dtype: DType
    memory: Memory
    index: Operand
    value: Operand


class LoadVector(Record):
    """``dsts`` = the elements of memory from ``index`` on (on a grid; ``codegen/vectors.py`` makes them)."""

    dsts: tuple[Operand, ...]
    dtype: DType
    memory: Memory
    index: Operand


class StoreVector(Record):
    """The elements of memory from ``index`` on = ``values``."""

    dtype: DType
    memory: Memory
    index: Operand
    values: tuple[Operand, ...]


class Halve(Record):
    """``dst`` = the accumulator lanes in ``memory`` combined by halving: lane l with lane l + half, half after half."""

    dst: Operand
    op: Op
    dtype: DType
    memory: Memory


class Push(Record):
    """Add ``value``, the ``number``-th of its kind, to the binary counter in ``memory``: equal powers of two combine pairwise."""

    op: Op
    dtype: DType
    memory: Memory
    value: Operand
    number: Operand


class Collect(Record):
    """``dst`` = what the binary counter in ``memory`` holds after ``count`` pushes, combined from the short end."""

    dst: Operand
    op: Op
    dtype: DType
    memory: Memory
    count: Operand


class Fold(Record):
    """``dst``, in every thread of a warp, = ``value`` of its 32 threads combined by halving; all of them get here together."""

    dst: Operand
    op: Op
    dtype: DType
    value: Operand


class Barrier(Record):
    """No thread of the block goes on before all are here, and what they wrote is seen by all."""


class Last(Record):
    """``dst``, in every thread of the block: whether this is the last of ``count`` blocks of the launch to get to counter ``counter``.

    All threads get here together; what the other blocks wrote before they came is seen by the last one.  There are ``COUNTERS``.
    """

    dst: Operand
    count: Operand
    counter: Operand


class Raise(Record):
    """Set bit ``flag`` of the kernel's error word where ``condition`` holds."""

    condition: Operand
    flag: int


class Loop(Record):
    """``for var in range(lo, hi, step)``.  ``lanes``: the trip count is the constant number of accumulator lanes; vectorise before
    unrolling.  ``step`` is not 1 only in phases of a grid, where it is the number of threads that share the loop.  ``long``: on the
    processor it is left when the run is stopped, for one piece of work may be all of it."""

    var: Operand
    lo: Operand
    hi: Operand
    body: list[Statement] = field(factory=list)
    lanes: bool = False
    step: Operand = "1"
    long: bool = False


class If(Record):
    condition: Operand
    body: list[Statement] = field(factory=list)


Statement = (
    Compute | Constant | Integer | Load | LoadVector | Store | StoreVector | Halve | Push | Collect | Fold | Barrier | Last | Raise
    | Loop | If
)  # fmt: skip


class Local(Record):
    """Scratch of one thread: ``count`` elements, a literal or an integer parameter."""

    dtype: DType
    count: Operand


class Phase(Record):
    """A piece of work between barriers of the whole kernel.

    On the processor: with ``count``, ``body`` runs for pieces [lo, hi) of [0, count), ``chunk`` long, handed to threads as they come;
    without, once.  On a grid (``threads`` > 0): ``body`` is what one thread does, which knows itself by the integers ``block``, below
    ``count``, and ``thread``, below ``threads``, a multiple of 32; ``shared`` is the scratch of a block,
    of which at most one array is as long as an integer argument says.
    """

    body: list[Statement] = field(factory=list)
    count: Operand = ""
    chunk: Operand = ""
    locals: list[Local] = field(factory=list)
    threads: int = 0
    shared: list[Local] = field(factory=list)


class Kernel(Record):
    """Arguments, in order: buffers, workspaces, integers n0.., scalars s0.., the error word."""

    phases: list[Phase] = field(factory=list)
    buffers: list[DType] = field(factory=list)
    written: set[int] = field(factory=set)
    workspaces: list[DType] = field(factory=list)
    scalars: list[DType] = field(factory=list)
    integers: int = 0
    flags: int = 0
    errors: int = ALL & ~UNDER  # bits of the floating-point errors that are to be reported


class Launch(Record):
    """A launch is what one schedule passes to a kernel: values of its integer arguments and sizes of its workspaces (in elements)."""

    integers: list[Formula] = field(factory=list)
    workspaces: list[int] = field(factory=list)
    work: float = 0.0  # estimated cost in units of the cost model
