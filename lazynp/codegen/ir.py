"""The loop-nest IR: what both backends render.

In: built by ``codegen/emit.py``.  Out: read by a renderer.  A kernel is a list of phases, run one after the other; a phase is a tree of
loops over scalar statements.  Operands are names of scalars or integer literals, both strings.  Promise: equal kernels are equal trees:
names are numbered in order of appearance and nothing here depends on a particular shape, buffer, offset or scalar value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lazynp.graph.op import Op

DType = np.dtype[Any]
Operand = str


@dataclass(slots=True, frozen=True)
class Memory:
    """Where an element lives: a buffer argument, a workspace argument (shared by phases) or local scratch of one thread."""

    space: str  # "buffer", "workspace" or "local"
    number: int


@dataclass(slots=True)
class Compute:
    """``dst = op(args)`` on scalars; ``source`` is the dtype of the first argument."""

    dst: Operand
    op: Op
    dtype: DType
    args: tuple[Operand, ...]
    source: DType


@dataclass(slots=True)
class Constant:
    """``dst = value``, a Python number that belongs to the structure (an identity element, say)."""

    dst: Operand
    dtype: DType
    value: Any


@dataclass(slots=True)
class Integer:
    """``dst = a kind b`` in int64: add sub mul min max, div and rem of non-negative by positive, lt eq ge with a bool
    result, and and or of bools."""

    dst: Operand
    kind: str
    a: Operand
    b: Operand


@dataclass(slots=True)
class Load:
    """``dst = memory[index]``; with a guard, 0 where it is false, and nothing is touched."""

    dst: Operand
    dtype: DType
    memory: Memory
    index: Operand
    guard: Operand | None = None


@dataclass(slots=True)
class Store:
    dtype: DType
    memory: Memory
    index: Operand
    value: Operand


@dataclass(slots=True)
class Halve:
    """``dst`` = the accumulator lanes in ``memory`` combined by halving: lane l with lane l + half, half after half."""

    dst: Operand
    op: Op
    dtype: DType
    memory: Memory


@dataclass(slots=True)
class Push:
    """Add ``value``, the ``number``-th of its kind, to the binary counter in ``memory``: equal powers of two combine pairwise."""

    op: Op
    dtype: DType
    memory: Memory
    value: Operand
    number: Operand


@dataclass(slots=True)
class Collect:
    """``dst`` = what the binary counter in ``memory`` holds after ``count`` pushes, combined from the short end."""

    dst: Operand
    op: Op
    dtype: DType
    memory: Memory
    count: Operand


@dataclass(slots=True)
class Raise:
    """Set bit ``flag`` of the kernel's error word where ``condition`` holds."""

    condition: Operand
    flag: int


@dataclass(slots=True)
class Loop:
    """``for var in range(lo, hi)``.  ``lanes``: the trip count is the constant number of accumulator lanes; vectorise before unrolling."""

    var: Operand
    lo: Operand
    hi: Operand
    body: list[Statement] = field(default_factory=list)
    lanes: bool = False


@dataclass(slots=True)
class If:
    condition: Operand
    body: list[Statement] = field(default_factory=list)


Statement = Compute | Constant | Integer | Load | Store | Halve | Push | Collect | Raise | Loop | If


@dataclass(slots=True)
class Local:
    """Scratch of one thread: ``count`` elements, a literal or an integer parameter."""

    dtype: DType
    count: Operand


@dataclass(slots=True)
class Phase:
    """A piece of work between barriers.

    With ``count``: ``body`` runs for pieces [lo, hi) of [0, count), ``chunk`` long, handed to threads as they come; without: once.
    """

    body: list[Statement] = field(default_factory=list)
    count: Operand = ""
    chunk: Operand = ""
    locals: list[Local] = field(default_factory=list)


@dataclass(slots=True)
class Formula:
    """An integer argument: ``const + sum(k * offset[slot])``, evaluated by the host at launch."""

    const: int
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Kernel:
    """Arguments, in order: buffers, workspaces, integers n0.., scalars s0.., the error word."""

    phases: list[Phase] = field(default_factory=list)
    buffers: list[DType] = field(default_factory=list)
    written: set[int] = field(default_factory=set)
    workspaces: list[DType] = field(default_factory=list)
    scalars: list[DType] = field(default_factory=list)
    integers: int = 0
    flags: int = 0


@dataclass(slots=True)
class Launch:
    """What one schedule passes to a kernel: values of its integer arguments and sizes of its workspaces (in elements)."""

    integers: list[Formula] = field(default_factory=list)
    workspaces: list[int] = field(default_factory=list)
    work: float = 0.0  # estimated cost in units of the cost model
