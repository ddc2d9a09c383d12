"""A machine for kernels of a grid that needs no compiler: NumPy, all threads of a block in step.

In: an ``ir.Kernel`` whose phases have threads.  Out: a function of an argument block, as a back end's.  An operand is an array with
an element for each thread; a condition is a mask.  It shows what a loop nest means; races, barriers and bounds are another tester's work.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazynp.backends.llvm.backend import LLVMBackend
from lazynp.backends.numpy.operations import COMPLEX, SPECIAL, UFUNCS
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.codegen.grid import nest as grid
from lazynp.codegen.show import show
from lazynp.graph import op as o
from lazynp.schedule.lower import Body

Array = np.ndarray[Any, Any]
FAR = 1 << 40  # bytes an address is taken to lead to
WARP = 32

INTEGER: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "div": np.floor_divide,
    "rem": np.remainder, "shl": np.left_shift, "lt": np.less, "eq": np.equal, "ge": np.greater_equal, "and": np.logical_and,
    "or": np.logical_or,
}  # fmt: skip


def compute(op: o.Op, dtype: ir.DType, args: Sequence[Array]) -> Array:
    """An elementwise operation, or one that a reduction combines with."""
    if op is o.CAST:
        return args[0].astype(dtype)
    if op is o.BITCAST:
        return args[0].view(dtype)
    if op is o.WHERE:
        return np.where(args[0].astype(bool), args[1], args[2]).astype(dtype)
    if op is o.REAL or op is o.IMAG:
        return getattr(args[0], op.name).astype(dtype)
    if op is o.COMPLEX:
        result = np.empty(len(args[0]), dtype)
        result.real, result.imag = args
        return result
    function = SPECIAL.get(op) or (COMPLEX.get(op) if dtype.kind == "c" else None) or UFUNCS[op]
    return np.asarray(function(*args)).astype(dtype)


class Block:
    """The threads of one block."""

    def __init__(self, kernel: ir.Kernel, phase: ir.Phase, slots: Array, block: int, arrived: Counter[int]) -> None:
        self.arrived = arrived
        layout = Layout(kernel)
        threads = phase.threads
        self.threads = threads
        self.values: dict[str, Any] = {
            "block": np.full(threads, block, np.int64), "thread": np.arange(threads), "true": np.ones(threads, bool)
        }  # fmt: skip
        for k in range(kernel.integers):
            self.values[f"n{k}"] = np.full(threads, slots[layout.integers + k])
        for k, dtype in enumerate(kernel.scalars):
            scalar = slots[layout.scalars + 2 * k : layout.scalars + 2 * k + 2].view(np.uint8)[: dtype.itemsize].view(dtype)
            self.values[f"s{k}"] = np.repeat(scalar, threads)
        self.memory: dict[ir.Memory, Array] = {}
        for k, dtype in enumerate(kernel.buffers):
            self.memory[ir.Memory("buffer", k)] = at(int(slots[layout.buffers + k]), dtype)
        for k, dtype in enumerate(kernel.workspaces):
            self.memory[ir.Memory("workspace", k)] = at(int(slots[layout.workspaces + k]), dtype)
        for k, local in enumerate(phase.shared):
            self.memory[ir.Memory("shared", k)] = poisoned(int(self.read(local.count)[0]), local.dtype)
        for k, local in enumerate(phase.locals):
            self.memory[ir.Memory("local", k)] = poisoned(threads * int(local.count), local.dtype)
        self.lengths = {ir.Memory("local", k): int(local.count) for k, local in enumerate(phase.locals)}
        self.error = 0

    def read(self, operand: str) -> Any:
        if operand in self.values:
            return self.values[operand]
        return np.full(self.threads, int(operand), np.int64)

    def place(self, memory: ir.Memory, index: str) -> Array:
        """Where each thread's element lies."""
        found: Array = self.read(index)
        if memory.space == "local":
            found = found + np.arange(self.threads) * self.lengths[memory]
        return found

    def run(self, statements: Sequence[ir.Statement], mask: Array) -> None:
        for s in statements:
            match s:
                case ir.Compute(dst, op, dtype, args):
                    inputs = [np.asarray(self.read(a)) for a in args]
                    self.values[dst] = compute(op, dtype, inputs)
                case ir.Constant(dst, dtype, value):
                    self.values[dst] = np.full(self.threads, value, dtype)
                case ir.Integer(dst, kind, a, b):
                    x, y = self.read(a), self.read(b)
                    if kind in ("div", "rem"):
                        y = np.where(mask, y, 1)
                    self.values[dst] = INTEGER[kind](x, y)
                case ir.Load(dst, dtype, memory, index, guard):
                    here = mask if guard is None else mask & self.read(guard)
                    place = self.place(memory, index)
                    value = np.zeros(self.threads, dtype)
                    value[here] = self.memory[memory][place[here]]
                    self.values[dst] = value
                case ir.Store(_, memory, index, value):
                    place = self.place(memory, index)
                    assert memory.space != "shared" or len(np.unique(place[mask])) == mask.sum(), "two threads write one element"
                    self.memory[memory][place[mask]] = np.asarray(self.read(value))[mask]
                case ir.Fold(dst, op, dtype, value):
                    self.values[dst] = self.fold(op, dtype, np.asarray(self.read(value)), mask)
                case ir.Last(dst, count, counter):
                    assert mask.all(), "not all threads of a block are here together"
                    self.arrived[int(self.read(counter)[0])] += 1
                    last = self.arrived[int(self.read(counter)[0])] == int(self.read(count)[0])
                    self.values[dst] = np.full(self.threads, last)
                case ir.Barrier():
                    assert mask.all(), "a barrier that not all threads reach"
                case ir.Raise(condition, flag):
                    if (self.read(condition) & mask).any():
                        self.error |= 1 << min(flag, 62)
                case ir.If(condition, body):
                    inside = mask & self.read(condition)
                    if inside.any():
                        self.run(body, inside)
                case ir.Loop(var, lo, hi, body, _, step):
                    at_, end, by = self.read(lo).copy(), self.read(hi), int(step)
                    while (inside := mask & (at_ < end)).any():
                        self.values[var] = at_.copy()
                        self.run(body, inside)
                        at_ += by
                case ir.Halve() | ir.Push() | ir.Collect():
                    self.support(s, mask)

    def fold(self, op: o.Op, dtype: ir.DType, value: Array, mask: Array) -> Array:
        warps = mask.reshape(-1, WARP)
        assert (warps.all(axis=1) | ~warps.any(axis=1)).all(), "a fold that part of a warp reaches"
        lanes = value.reshape(-1, WARP).copy()
        return np.repeat(halved(op, dtype, lanes.T), WARP)

    def support(self, s: Any, mask: Array) -> None:
        """The serial tree, thread by thread."""
        memory, length = self.memory[s.memory], self.lengths[s.memory]
        result = np.zeros(self.threads, s.dtype)
        for t in np.flatnonzero(mask):
            cells = memory[t * length : (t + 1) * length]

            def combine(a: Any, b: Any) -> Any:
                return compute(s.op, s.dtype, [np.array([a], s.dtype), np.array([b], s.dtype)])[0]

            if isinstance(s, ir.Halve):
                result[t] = halved(s.op, s.dtype, cells.copy()[:, None])[0]
            elif isinstance(s, ir.Push):
                value, number, level = self.read(s.value)[t], int(self.read(s.number)[t]), 0
                while number >> level & 1:
                    value = combine(cells[level], value)
                    level += 1
                cells[level] = value
            else:
                count, value = int(self.read(s.count)[t]), None
                for level in range(count.bit_length()):
                    if count >> level & 1:
                        value = cells[level] if value is None else combine(cells[level], value)
                result[t] = value
        if not isinstance(s, ir.Push):
            self.values[s.dst] = result


def halved(op: o.Op, dtype: ir.DType, lanes: Array) -> Array:
    half = len(lanes) // 2
    while half:
        for k in range(half):
            lanes[k] = compute(op, dtype, [lanes[k], lanes[k + half]])
        half //= 2
    return lanes[0]


def at(address: int, dtype: ir.DType) -> Array:
    return np.ctypeslib.as_array((ctypes.c_uint8 * FAR).from_address(address)).view(dtype)


def poisoned(count: int, dtype: ir.DType) -> Array:
    return np.full(count * dtype.itemsize, 0xFF if dtype.kind != "b" else 1, np.uint8).view(dtype)


class GridMachine(LLVMBackend):
    """A target whose kernels are loop nests of a grid, run by the machine above, in host memory."""

    name = "grid"

    def emit(self, body: Body) -> tuple[ir.Kernel, ir.Launch]:
        return grid.emit(body)

    def render(self, code: ir.Kernel) -> str:
        return show(code)

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> Any:
        return [(self.function(kernel), Layout(kernel)) for kernel in kernels]

    def function(self, kernel: ir.Kernel) -> Callable[[int], None]:
        layout = Layout(kernel)

        def run(address: int) -> None:
            slots = np.ctypeslib.as_array((ctypes.c_int64 * layout.slots).from_address(address))
            with np.errstate(all="ignore"):
                for phase in kernel.phases:
                    assert phase.threads % WARP == 0 < phase.threads
                    blocks = int(slots[layout.integers + int(phase.count[1:])]) if phase.count[0] == "n" else int(phase.count)
                    arrived = Counter[int]()
                    for k in range(blocks):
                        block = Block(kernel, phase, slots, k, arrived)
                        block.run(phase.body, np.ones(phase.threads, bool))
                        slots[layout.error] |= block.error

        return run
