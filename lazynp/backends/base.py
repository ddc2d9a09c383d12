"""What a backend is.

In: a ``Program`` (the structure of what is wanted).  Out: a ``Plan`` that runs it, again and again, on other buffers, offsets and
scalars.  Promise: a plan either returns one buffer per output or raises; it writes to no buffer it was given, unless that was claimed for
it, and no two buffers it returns share memory with each other or with one it was given (an output asked for twice is one buffer, and
one that is an input is that input, marked as shared).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Protocol

import numpy as np

from lazynp.backends.common.ownership import Claim
from lazynp.graph import op as o
from lazynp.graph.op import Kind, Op
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.claims import Claims
from lazynp.values.buffer import Buffer


class ExecutionError(Exception):
    """Entry ``entry`` of the program could not be computed, because of ``error``."""

    def __init__(self, entry: int | None, error: BaseException) -> None:
        super().__init__(entry, error)
        self.entry = entry
        self.error = error


def in_kernels(program: Program, e: int, scalar: Callable[[Op, np.dtype[Any], tuple[np.dtype[Any], ...]], bool]) -> bool:
    """Tell whether entry e is a matter for loop nests, where ``scalar`` says which operations on which dtypes can be rendered."""
    entry = program.entries[e]
    op = entry.op
    sources = [program.entries[s] for s in entry.src]
    if not prod(entry.shape) or any(not prod(s.shape) for s in sources):
        return False
    if op.kind is Kind.ELEMENTWISE:
        return scalar(op, entry.dtype, tuple([s.dtype for s in (sources[1:] if op is o.WHERE else sources)]))
    if op is o.REDUCE:
        return scalar(entry.arg[0], entry.dtype, (entry.dtype,) * 2)
    return op in (o.STORE, o.GATHER, o.CONCAT, o.CONTIGUOUS)


class CompileError(Exception):
    """A program is beyond this backend, or its compiler failed; another backend can take it."""


class Plan(Protocol):
    """A program that is ready to run.

    ``claims`` are the buffer parameters that a run would write in place if it may; it is asked once before each run.
    ``tier`` says in words what runs it, and why.
    """

    @property
    def tier(self) -> str: ...

    @property
    def claims(self) -> Claims: ...

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any], claim: Claim | None = None) -> list[Buffer]:
        """One buffer per output, in order.  What ``claim`` holds may be overwritten, after its elements were saved.

        Raises
        ------
        ExecutionError
            Where an operation fails on this data (an index out of range, a singular matrix, no memory left).
        """
        ...


class Backend(Protocol):
    """A way to run programs."""

    name: str

    def prepare(self, program: Program) -> Plan:
        """The plan for ``program``; may raise ``CompileError``."""
        ...


class Layout(Protocol):
    buffers: int
    workspaces: int
    integers: int
    scalars: int
    threads: int
    error: int
    flags: int
    counters: int
    slots: int
    totals: list[int]


class Compiler(Backend, Protocol):
    """A backend that makes machine code, and keeps it for later processes."""

    def kept(self, program: Program) -> Plan | None:
        """The plan for ``program``, if all its machine code was kept, or an earlier process wanted it, too; else None."""
        ...

    @property
    def ahead(self) -> bool:
        """Tell whether programs can be compiled while others run."""
        ...

    def begin(self, program: Program) -> Plan | tuple[Any, ...]:
        """The plan for ``program``, or what compiles it meanwhile; once all of that is ``over`` it is to be asked for again."""
        ...
