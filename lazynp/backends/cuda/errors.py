"""Where floating-point errors are noted: a device has no flags, so results tell.

In: the statements of one block, and which errors are to be reported.  Out: for the name of a result, the operations whose errors are
looked for once it is known.  Promise: no such error that NumPy would report goes unnoticed, what is noted without need costs a recheck and
nothing else; and as long as all is well, one comparison for a whole chain of operations: an infinity or NaN is carried along by most of
them, so that the last one tells of all.  Underflow leaves no trace in what follows and is noted where it may happen.

Only where that comparison fails are the operations looked at one by one, and one whose operands were already infinite or NaN is excused.
A loop that only accumulates looks at its result once and, if there is a reason, runs again with a look at each step.  Long chains do the
same in a function of their own (``looks.py``), so that what is looked at does not stay in registers.  Hence data full of NaN are not
evaluated again for nothing.

What looking costs, by NVRTC 13.0 for sm_90 at large sizes: registers and instructions of a launch under the default error state, then
where all errors are ignored.

    a + b, float64             24 144   18 80    a + b, float32             24 176   18 88    exp/sqrt/sin chain         40 888  38 680
    Horner, degree 24         32 1128  14 256    Black-Scholes             64 2904 64 1512    Mandelbrot, 20 steps      64 3984  36 984
    gelu, float32              32 640  25 184    gelu with erf             42 1080  38 912    entropies and likelihoods 48 2928 42 1536
    softmax over rows         44 1840 48 1400    softmax, rows of 8192     48 1800 40 1480    layer norm                56 1728 48 1432
    logsumexp over rows       48 1608 48 1608    pairwise distances         54 432  34 168    mean, std, min, max: 1    40 1808 32 1504
    mean, std, min, max: 2    32 1128  32 824    masked mean, where()      40 1384 32 1064    sum of squares: 1          32 272  32 208
    sum of squares: 2          32 648  32 528    8M rows of 8, mean: 1      31 240  32 176    8M rows of 8, mean: 2      32 648  32 528
    8M rows of 8, mean: 3      38 848  32 656    a.T + 2*b                  28 312  32 152    a heat step                18 160   12 64
    row added, float32         24 192  18 104    inner part, float32        19 224   14 96    bias and relu, NCHW        22 216  16 128
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lazynp.backends.cuda.complex import part_of
from lazynp.backends.cuda.types import INFINITY, TINY, code
from lazynp.codegen import ir
from lazynp.graph import op as o
from lazynp.graph.errors import UNDER, raises
from lazynp.graph.op import Op

# Arguments of which every infinity and NaN makes the result one.
CARRIERS: Final[dict[Op, tuple[int, ...]]] = {
    o.ADD: (0, 1), o.SUBTRACT: (0, 1), o.MULTIPLY: (0, 1), o.DIVIDE: (0,), o.FMOD: (0,), o.REMAINDER: (0,), o.COPYSIGN: (0,), o.CAST: (0,),
    **dict.fromkeys([
        o.NEGATIVE, o.ABSOLUTE, o.SQRT, o.CBRT, o.FLOOR, o.CEIL, o.TRUNC, o.RINT, o.LOG, o.LOG2, o.LOG10, o.LOG1P, o.SIN, o.COS, o.TAN,
        o.SINH, o.COSH, o.ARCSIN, o.ARCCOS, o.ARCSINH, o.ARCCOSH, o.ARCTANH,
    ], (0,)),
}  # fmt: skip
# Where an infinite operand does not excuse an infinite result.
STRICT: Final = frozenset({o.FLOOR_DIVIDE, o.POWER, o.NEXTAFTER})
TOGETHER: Final = 12  # operations that one comparison stands for: they stay in registers until then

Plan = dict[str, list[ir.Compute]]


def possible(op: Op, dtype: ir.DType, source: ir.DType) -> int:
    """The errors to look for in a floating-point result."""
    if dtype.kind not in "fc":
        return 0
    return raises(op, dtype, dtype if op is o.LDEXP else source)


def plan(statements: Iterable[ir.Statement], wanted: int, together: float = TOGETHER) -> Plan:
    """List for each result of a block the operations whose errors are tested there, of which one stands for ``together`` at most."""
    if not wanted & ~UNDER:
        return {}
    computes = [s for s in statements if isinstance(s, ir.Compute) and s.dtype.kind in "fc"]
    last: dict[str, str] = {}  # a result -> the one that tells of it
    members: dict[str, int] = {}
    carried: dict[str, str] = {}
    for s in reversed(computes):
        end = carried.get(s.dst, s.dst)
        if members.get(end, 0) >= together:
            end = s.dst
        members[end] = members.get(end, 0) + 1
        last[s.dst] = end
        if s.source.kind == s.dtype.kind == "f":
            for k in CARRIERS.get(s.op, ()):
                carried[s.args[k]] = end
    found: Plan = {}
    for s in computes:
        if possible(s.op, s.dtype, s.source) & wanted & ~UNDER:
            found.setdefault(last[s.dst], []).append(s)
    return found


def looked(statements: Iterable[ir.Statement], wanted: int) -> set[str]:
    """The results of a block whose errors are tested somewhere."""
    return {s.dst for operations in plan(statements, wanted).values() for s in operations}


def accumulators(statements: Sequence[ir.Statement]) -> dict[str, ir.Memory]:
    """Results that are kept in a place where nothing else is kept, and carry what was there: it is enough to look there in the end."""
    stores = [s for s in walk(statements) if isinstance(s, ir.Store)]
    found: dict[str, ir.Memory] = {}
    for block in blocks(statements):
        loaded = {s.dst: s.memory for s in block if isinstance(s, ir.Load)}
        kept = {s.value: s.memory for s in block if isinstance(s, ir.Store)}
        for s in block:
            if isinstance(s, ir.Compute) and s.dst in kept and s.dtype.kind == "f":
                carried = [loaded.get(s.args[k]) for k in CARRIERS.get(s.op, ())]
                if kept[s.dst] in carried and [store.memory for store in stores].count(kept[s.dst]) == 1:
                    found[s.dst] = kept[s.dst]
    return found


def blocks(statements: Sequence[ir.Statement]) -> Iterator[Sequence[ir.Statement]]:
    yield statements
    for s in statements:
        if isinstance(s, ir.Loop | ir.If):
            yield from blocks(s.body)


def walk(statements: Sequence[ir.Statement]) -> Iterator[ir.Statement]:
    for block in blocks(statements):
        yield from block


def may_vanish(s: ir.Compute) -> bool:
    """Tell whether the operation can underflow."""
    return bool(possible(s.op, s.dtype, s.source) & UNDER)


def underflow(operations: Iterable[ir.Compute]) -> str:
    """The statement that notes what may be an underflow of any of these operations: one comparison each, and a look at zeros."""
    return f"noted |= {' | '.join([_vanished(s) for s in operations])} ? {UNDER}u : 0u;"


def _vanished(s: ir.Compute) -> str:
    """Tell in C whether a result is tiny; one that a zero makes is none that was lost."""
    factors = {o.MULTIPLY: s.args, o.DIVIDE: s.args[:1]}.get(s.op, ()) if s.dtype.kind == "f" else ()
    zero = "({} & 0x7fffu) != 0" if s.dtype.char == "e" else "{} != 0"
    return f"({' && '.join([_tiny(s.dst, s.dtype), *[zero.format(factor) for factor in factors]])})"


def others(dst: str, dtype: ir.DType, operations: Iterable[ir.Compute], function: str = "wrong") -> str:
    """The statement that looks for the other errors of ``operations`` once ``dst`` is known, most often by ``function``."""
    result = " | ".join([_wrong(s, function) for s in operations])
    return f"if (__builtin_expect({not_finite(dst, dtype)}, 0)) noted |= {result};"


def _tiny(x: str, dtype: ir.DType) -> str:
    if dtype.kind == "c":
        return "true"  # a product of parts may be lost in any of them
    if dtype.char == "e":
        return f"(({x} & 0x7c00u) == 0)"
    return f"(fabs{_suffix(dtype)}({x}) < {TINY[code(dtype)]})"


def not_finite(x: str, dtype: ir.DType) -> str:
    if dtype.kind == "c":
        return " || ".join([not_finite(f"{x}.{part}", part_of(dtype)) for part in ("re", "im")])
    if dtype.char == "e":
        return f"({x} & 0x7c00u) == 0x7c00u"
    return f"!(fabs{_suffix(dtype)}({x}) < {INFINITY[code(dtype)]})"


def _suffix(dtype: ir.DType) -> str:
    return "f" if dtype.itemsize == 4 else ""


def _wrong(s: ir.Compute, function: str) -> str:
    """The errors of one operation, from its result and operands; of complex numbers any, for their parts meet in many ways."""
    if s.dtype.kind == "c":
        return f"({not_finite(s.dst, s.dtype)} ? {possible(s.op, s.dtype, s.source) & ~UNDER}u : 0u)"
    source = part_of(s.source) if s.source.kind == "c" else s.source
    wide = "f8" if "f8" in (code(s.dtype), code(source)) else "f4"
    if s.op is o.LDEXP:
        operands = [_number(s.args[0], s.dtype)]
    elif s.source.kind == "c":
        operands = [f"{s.args[0]}.re", f"{s.args[0]}.im"]
    else:
        operands = [_number(a, s.source) for a in s.args] if s.source.kind == "f" else []
    operands = [*operands, "0", "0"][:2]
    errors = possible(s.op, s.dtype, s.source) & ~UNDER
    if s.op in STRICT:
        function = "strict"
    return f"lz_{function}_{wide}({_number(s.dst, s.dtype)}, {operands[0]}, {operands[1]}, {errors}u)"


def _number(x: str, dtype: ir.DType) -> str:
    return f"lz_single({x})" if dtype.char == "e" else x
