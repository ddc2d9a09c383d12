"""The NumPy tier with the bits of compiled programs.

In: a ``Program``.  Out: a plan of the NumPy tier that runs it operation by operation.  Promise: the values are, to the bit, those of the
program compiled: a program gives the same in its first run and its thousandth.

Most of NumPy's loops have the bits of kernels: what IEEE arithmetic defines, integers, whatever moves elements (``Op.rounds`` and
``Op.ordered`` say which have not).  In place of the others run

* functions such as ``exp``: the native core's C (``compiled.py``), or where it has none a kernel of one operation over elements in a row,
  ready-made for all sizes, compiled once and kept on disk;
* reductions whose order shows: NumPy's loops in our order (``ordered.py``), for which nothing has to be compiled.

What kernels cannot do (complex numbers, long doubles, library calls) is NumPy's in every tier.

NumPy's loops have the bits of kernels wherever the result is defined: IEEE arithmetic, integers, comparisons, whatever moves elements.
Where they have not, ``Op.rounds`` (the last bits of ``exp``, ``power``, ...; which of two zeros ``fmax`` gives) and ``Op.ordered``
(reductions of floating-point numbers) say so, and the tier runs something else (``backends/numpy/ready.py``): for functions a *ready-made
kernel*, of one operation over elements in a row, for all sizes, which is compiled once on a machine and then comes from the disk cache;
for reductions the order above in C, or made of NumPy's loops (``ordered.py``). A test computes every operation with every dtype in many
layouts both ways (``tests/backends/test_bits.py``), and random programs run 20 times while their parts are compiled one after another
(``tests/differential/history.py``). So a recorded program gives the same bits in its first run and its thousandth, with any number of
threads, and with ``LAZYNP_TIER=compiled``. What kernels cannot do (complex numbers, long doubles, library calls) is NumPy's in every
tier. Not promised: the sign and payload of a NaN; which zero the extremum of zeros of both signs is; matrix products, whose bits are the
BLAS library's and follow from how the operands lie in memory, which fusion can change; values after ``LAZYNP_BACKEND=numpy``, or where
LLVM is not there, which are NumPy's; and values of small arrays in memory: all of them are NumPy's, by sizes alone.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.backends.numpy import compiled, ordered
from lazynp.backends.numpy.backend import NumpyPlan
from lazynp.backends.numpy.operations import SPECIAL, UFUNCS
from lazynp.backends.numpy.source import Expression, Memory, Writer
from lazynp.graph import floating
from lazynp.graph import op as o
from lazynp.graph.errors import UNDER, possible
from lazynp.graph.op import Kind, Op
from lazynp.schedule.canonicalise import Entry, Program
from lazynp.schedule.families import Family, prepared
from lazynp.values import config
from lazynp.values.buffer import Buffer

if TYPE_CHECKING:
    from lazynp.backends.common.target import Target

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

SIZES: Final = 64  # numbers of elements for which a kernel's plan is kept


class Kernel:
    """One elementwise operation on arrays of any shape and layout; called like a ufunc."""

    __slots__ = ("compiler", "family", "loop", "plans")

    def __init__(self, compiler: Any, op: Op, dtype: DType, sources: tuple[DType, ...], errors: int) -> None:
        self.compiler = compiler
        self.loop: Any = UFUNCS.get(op) or SPECIAL[op]
        self.family = Family()
        leaves = [Entry(o.BUFFER, (), k, source, (2,)) for k, source in enumerate(sources)]
        entry = Entry(op, tuple(range(len(leaves))), None, dtype, (2,))
        self.family.begin(Program([*leaves, entry], (len(leaves),), errors=errors), (2,))
        self.plans: dict[int, Any] = {}

    def ready(self, n: int) -> Any:
        """Return the plan for n elements; who calls it for the first time holds no lock."""
        plan = self.plans.get(n)
        if plan is None:
            # The loops of a single element are others, but an element has the same bits everywhere.
            plan = self.compiler.prepare(self.family.member((max(n, 2),)))
            while len(self.plans) >= SIZES:
                self.plans.pop(next(iter(self.plans)), None)
            self.plans[n] = plan
        return plan

    def __call__(self, *arrays: Any) -> Any:
        shape = arrays[0].shape if len(arrays) == 1 else np.broadcast_shapes(*[x.shape for x in arrays])
        n = prod(shape)
        # Transposed matrices give one, as NumPy's loops do: a product tells the difference.
        turned = False
        if len(shape) == 2:
            whole = [x for x in arrays if x.shape == shape]
            turned = bool(whole) and all(abs(x.strides[0]) < abs(x.strides[1]) for x in whole)
        buffers = []
        for x in arrays:
            if x.shape != shape:
                x = np.broadcast_to(x, shape)
            if turned:
                x = x.T
            flat = np.ascontiguousarray(x).reshape(-1)
            buffers.append(Buffer(flat if n > 1 else np.concatenate((flat, flat))))
        found, flags = self.ready(n).values(buffers)
        if flags:
            self.loop(*arrays)  # says what is to be told
        result = found[0].array
        if turned:
            return result.reshape(shape[::-1]).T if n > 1 else result[:1].reshape(shape)
        return (result if n > 1 else result[:1]).reshape(shape)


class Reduction:
    """One reduction in the order of kernels, of arrays of any shape and layout; ``errors`` are those that are to be reported."""

    __slots__ = ("dtype", "errors", "identity", "loop", "name")

    def __init__(self, op: Op, dtype: DType, errors: int) -> None:
        self.name = op.name
        self.loop: Any = UFUNCS[op]
        self.dtype = dtype
        self.identity = dtype.type(op.identity(dtype))
        self.errors = errors

    def __call__(self, x: Array, axes: tuple[int, ...]) -> Array:
        before = floating.listen(0)
        try:
            result = ordered.reduce(self.name, x, axes, self.identity)
        finally:
            floating.stop(before)
        if self.errors and (self.errors & UNDER or not np.isfinite(result).all()):
            self.loop.reduce(x, axes, self.dtype)  # says what is to be told
        return result


class Kernels:
    """All that stands in for NumPy's loops: see ``source.Ours``."""

    def __init__(self, compiler: Target) -> None:
        self.compiler = compiler
        self.known: dict[tuple[Any, ...], Kernel] = {}
        self.reductions: dict[tuple[Any, ...], Reduction] = {}
        self.functions: dict[tuple[Op, int], compiled.Compiled] = {}

    def expression(self, w: Writer, number: int, entry: Entry) -> Expression | None:
        op, kind = entry.op, entry.op.kind
        if kind is Kind.ELEMENTWISE:
            sources = tuple([w.program.entries[s].dtype for s in entry.src])
            if op is o.CAST:
                if entry.dtype.char not in "IL" or entry.dtype.itemsize != 4 or sources[0].kind != "f":
                    return None
                return f"ordered.unsigned({w.names[entry.src[0]]})", Memory(number, True, True, w.memory[entry.src[0]].c_order)
            if sources[0].kind not in op.rounds or not self.compiler.supported(w.program, number):
                return None
            arguments = ", ".join([w.names[s] for s in entry.src])
            if op.name in ordered.COMPOSED:
                return f"ordered.{op.name}({arguments})", Memory(number, True, True, False)
            errors = w.program.errors & possible(op, None, entry.dtype, sources[0])
            c_order = len(entry.shape) != 2 or all(w.memory[s].c_order for s in entry.src)
            if not errors & UNDER and set(sources) == {entry.dtype} and compiled.available(op, entry.dtype.char):
                return f"{w.constant(self.function(op, errors))}({arguments})", Memory(number, True, True, c_order)
            kernel = self.kernel(op, entry.dtype, sources, errors)
            w.needs.append((kernel, prod(entry.shape)))
            return f"{w.constant(kernel)}({arguments})", Memory(number, True, True, c_order)
        if op is o.REDUCE and entry.dtype.kind in entry.arg[0].ordered and self.compiler.supported(w.program, number):
            over, axes = entry.arg
            errors = w.program.errors & possible(op, entry.arg, entry.dtype, entry.dtype)
            reduction = self.reductions.get((over, entry.dtype, errors))
            if reduction is None:
                reduction = self.reductions[over, entry.dtype, errors] = Reduction(over, entry.dtype, errors)
            text = f"{w.constant(reduction)}({w.names[entry.src[0]]}, {w.constant(axes)})"
            return text, Memory(number, True, True, True)
        return None

    def function(self, op: Op, errors: int) -> compiled.Compiled:
        """The native core's C for an operation, made when first asked for."""
        found = self.functions.get((op, errors))
        if found is None:
            found = self.functions[op, errors] = compiled.Compiled(op, errors)
        return found

    def kernel(self, op: Op, dtype: DType, sources: tuple[DType, ...], errors: int) -> Kernel:
        """The kernel of an operation, made when first asked for."""
        key = (op, dtype, sources, errors)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Kernel(self.compiler, op, dtype, sources, errors)
        return found


class ReadyBackend:
    """See ``Backend``."""

    name = "ready"

    def __init__(self, compiler: Target) -> None:
        self.kernels = Kernels(compiler)

    def prepare(self, program: Program) -> NumpyPlan:
        """See ``Backend.prepare``; the kernels are ready when this returns, for what compiles them must hold no lock."""
        made: NumpyPlan = prepared(self.name, program, lambda program: NumpyPlan(program, config.debug, self.kernels))
        for kernel, n in made.source.needs:
            kernel.ready(n)
        return made
