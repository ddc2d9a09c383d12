"""The text of a tape as machine code.

In: the steps of an expression, the dtypes of its arrays and how they lie along a row, or these in words (``expressions.py``).  Out: a
module of LLVM's that defines ``void lzx(ptr at, ptr across, ptr along, ptr numbers, ptr to, i64 rows, i64 length)``, or nothing.  Promise:
IEEE arithmetic and integers, one operation a step, so that the bits are NumPy's, and functions where they are to be the kernels';
floating-point errors are in the processor's flags, and nothing is written but ``to``.  The process that compiles writes the text: it needs
no NumPy, and follows from the words, the machine, ``LAZYNP_LIBMVEC`` and ``LAZYNP_POLYNOMIALS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lazynp.backends.llvm import mathlib, roots, scalars
from lazynp.backends.llvm.messages import NAME, TAIL
from lazynp.backends.llvm.scalars import Lines, Scalar, memory_type
from lazynp.graph import op as o
from lazynp.graph.op import Op

if TYPE_CHECKING:
    import numpy as np

    DType = np.dtype[Any] | Scalar
    Operand = tuple[int, int]  # kind and number
    Step = tuple[str, DType, DType, tuple[Operand, ...]]  # NumPy's function, the dtypes of its operands and of its result, its operands

ARRAY, NUMBER, STEP = 0, 1, 2  # kinds of operands
ONE, APART = "o", "s"  # how an array lies along a row: one element, elements apart; else, side by side
NUMBER_BYTES: Final = 16  # what a number takes in memory
FLOATS: Final = {2: "e", 4: "f", 8: "d"}  # the characters of floating-point numbers, by their bytes
KERNELS: Final = "kernels "  # how the names of functions begin that are to have the kernels' bits

_OTHER_NAMES: Final = {"square": o.MULTIPLY, "fabs": o.ABSOLUTE}
_CHOOSES: Final = frozenset({"maximum", "minimum", "where", "clip"})
_OF_TRUTH: Final = {"logical_and": o.BITWISE_AND, "logical_or": o.BITWISE_OR, "logical_not": o.INVERT}


def text_of(words: str) -> str:
    """Return the text of an expression's module, which is given in words."""
    lies, outs, dtypes, *steps = words.split("\n")
    found = []
    for step in steps:
        name, dtype, result, operands = step.split("\t")
        pairs = tuple((int(kind), int(k)) for kind, k in (operand.split(":") for operand in operands.split()))
        found.append((name, _scalar(dtype), _scalar(result), pairs))
    return source(found, [_scalar(dtype) for dtype in dtypes.split()], lies, [int(k) for k in outs.split()])


def _scalar(word: str) -> Scalar:
    kind, itemsize = word[0], int(word[1:])
    return Scalar(kind, FLOATS.get(itemsize, "g") if kind == "f" else kind, itemsize)


def source(steps: Sequence[Step], dtypes: Sequence[DType], lies: str, outs: Sequence[int]) -> str:
    """Return the text of an expression's module, an empty one where there is none."""
    if any(dtype.kind == "c" or dtype.char == "e" for _, *both, _ in steps for dtype in both):
        return ""
    lines = Lines()
    steps, reads = _reads(steps, len(dtypes))
    dtypes, lies = [dtypes[k] for k in reads], "".join(lies[k] for k in reads)
    arrays = range(len(reads))
    loads = [_load(lines, f"%p{k}", dtypes[k]) if lies[k] == ONE else "" for k in arrays]
    number_dtypes = {k: dtype for _, dtype, _, operands in steps for kind, k in operands if kind == NUMBER}
    numbers = {k: _load(lines, f"%n{k}", dtype) for k, dtype in number_dtypes.items()}
    outside, lines.lines = lines.lines, []
    for k in arrays:
        if lies[k] != ONE:
            at = f"getelementptr inbounds {memory_type(dtypes[k])}, ptr %p{k}, i64 %i"
            if lies[k] == APART:
                at = f"getelementptr inbounds i8, ptr %p{k}, i64 {lines.temp(f'mul nsw i64 %i, %s{k}')}"
            loads[k] = _load(lines, lines.temp(at), dtypes[k])
    square_roots, quotients = (sum(name == each for name, *_ in steps) for each in ("sqrt", "divide"))
    lines.multiplied = roots.pays(len(steps) - square_roots - quotients, quotients, square_roots)
    values: list[str] = []
    needed: dict[str, list[str]] = {}  # by their type
    floats = any(dtype.kind == "f" for _, dtype, _, _ in steps)
    for name, dtype, result, operands in steps:
        if name == "where" and dtype.kind != "b" and floats:
            needed.setdefault(memory_type(dtype), []).extend(values[k] for kind, k in operands[1:] if kind == STEP)
        found = [values[k] if kind == STEP else numbers[k] if kind == NUMBER else loads[k] for kind, k in operands]
        one = all(kind == NUMBER or (kind == ARRAY and lies[k] == ONE) for kind, k in operands[1:])
        value = _clip(lines, dtype, found, one) if name == "clip" else _step(lines, name, dtype, result, found)
        if value is None or lines.noted:
            return ""
        values.append(value)
    for k, out in enumerate(outs):
        to = steps[out][2]
        stored = lines.temp(f"zext i1 {values[out]} to i8") if to.kind == "b" else values[out]
        place = lines.temp(f"getelementptr inbounds {memory_type(to)}, ptr %to{k}, i64 %i")
        lines.emit(f"store {memory_type(to)} {stored}, ptr {place}, align {to.itemsize}")

    begin, behind = _gathered(lines, needed, outside)
    taken = [*(f"ptr noalias %to{k}" for k in range(len(outs))), "i64 %length", *(f"ptr noalias readonly %p{k}" for k in arrays)]
    taken += [f"i64 %s{k}" for k in arrays]
    taken += [f"ptr noalias readonly %n{k}" for k in numbers]
    words = "\n".join(
        f"  %a{k} = getelementptr ptr, ptr %at, i64 {reads[k]}\n  %p{k} = load ptr, ptr %a{k}\n"
        f"  %b{k} = getelementptr i64, ptr %across, i64 {reads[k]}\n  %c{k} = load i64, ptr %b{k}\n"
        f"  %d{k} = getelementptr i64, ptr %along, i64 {reads[k]}\n  %s{k} = load i64, ptr %d{k}"
        for k in arrays
    )
    words += "".join(f"\n  %e{k} = getelementptr ptr, ptr %to, i64 {k}\n  %t{k} = load ptr, ptr %e{k}" for k in range(len(outs)))
    words += "".join(f"\n  %n{k} = getelementptr i8, ptr %numbers, i64 {k * NUMBER_BYTES}" for k in numbers)
    rows = "\n".join(f"  %o{k} = mul i64 %row, %c{k}\n  %q{k} = getelementptr i8, ptr %p{k}, i64 %o{k}" for k in arrays)
    rows += "".join(
        f"\n  %x{k} = mul i64 %before, {steps[out][2].itemsize}\n  %h{k} = getelementptr i8, ptr %t{k}, i64 %x{k}"
        for k, out in enumerate(outs)
    )
    passed = [*(f"ptr %h{k}" for k in range(len(outs))), "i64 %length", *(f"ptr %q{k}" for k in arrays), *(f"i64 %s{k}" for k in arrays)]
    passed += [f"ptr %n{k}" for k in numbers]
    body = _TEXT % {
        "taken": ", ".join(taken), "outside": "\n".join(outside), "inside": "\n".join(begin + lines.lines), "behind": "\n".join(behind),
        "words": words, "rows": rows, "passed": ", ".join(passed), "name": NAME,
    }  # fmt: skip
    return "\n".join([*sorted(lines.intrinsics), mathlib.prelude(lines.functions), body, TAIL])


def _gathered(lines: Lines, needed: Mapping[str, Sequence[str]], outside: list[str]) -> tuple[list[str], list[str]]:
    """Emit what makes a loop compute numbers whether they are chosen or not; return what stands at its beginning, and behind it.

    LLVM may compute what a ``select`` chooses under a mask, or behind a branch: an error of what is not chosen was lost.  So the bits of
    all that is chosen from are gathered in a word, which is stored where it is not read.
    """
    begin: list[str] = []
    behind: list[str] = []
    for kind, values in needed.items():
        if not values:
            continue
        word = first = f"%gathered.{kind}"
        bits = f"i{scalars.FLOAT_BITS[kind]}" if kind in scalars.FLOAT_BITS else kind
        for value in values:
            word = lines.temp(f"or {bits} {word}, {lines.temp(f'bitcast {kind} {value} to {bits}')}")
        begin.append(f"  {first} = phi {bits} [ 0, %entry ], [ {word}, %body ]")
        outside.append(f"  %unread.{kind} = alloca {bits}")
        behind.append(f"  store volatile {bits} {word}, ptr %unread.{kind}")
    return begin, behind


def _reads(steps: Sequence[Step], count: int) -> tuple[Sequence[Step], Sequence[int]]:
    """Return the steps with what they read for arrays, and of which of the ``count`` arrays each of these is.

    Where steps compare or choose, LLVM must not know that two of them read the same: of ``(u / v < w) & (u / v > w)`` it would prove
    that it is false, and divide nothing, so that an error of the division was lost.  Of what is read once nothing can be proved.
    """
    if not any(result.kind == "b" or name in _CHOOSES for name, _, result, _ in steps):
        return steps, range(count)
    reads: list[int] = []
    apart = []
    for name, dtype, result, operands in steps:
        found = []
        for kind, k in operands:
            if kind == ARRAY:
                reads.append(k)
            found.append((kind, len(reads) - 1 if kind == ARRAY else k))
        apart.append((name, dtype, result, tuple(found)))
    return apart, reads


def _load(lines: Lines, pointer: str, dtype: DType) -> str:
    value = lines.temp(f"load {memory_type(dtype)}, ptr {pointer}, align {dtype.itemsize}")
    return lines.temp(f"icmp ne i8 {value}, 0") if dtype.kind == "b" else value


def _step(lines: Lines, name: str, dtype: DType, result: DType, operands: list[str]) -> str | None:
    """One step, None where it is none of those that have NumPy's bits."""
    if name == "cast":
        if dtype.kind == "f" and result.kind in "iu":  # what is in no range raises a flag, which guarded code does not
            return None
        return scalars.cast(lines, operands[0], dtype, result)
    kernels = name.startswith(KERNELS)
    op = _operation(name.removeprefix(KERNELS), dtype)
    if op is None:
        return None
    if op is o.WHERE:
        return scalars.compute(lines, op, result, tuple(operands), dtype)
    if name == "square":
        operands = operands * 2
    if op is o.DIVIDE and dtype.kind in "iu":  # of integers: NumPy divides them as floats
        operands, dtype = [scalars.cast(lines, x, dtype, result) for x in operands], result
    if (dtype.kind in op.rounds and not kernels) or not scalars.supported(op, result, [dtype] * len(operands)):
        return None
    return scalars.compute(lines, op, result, tuple(operands), dtype)


def _clip(lines: Lines, dtype: DType, operands: Sequence[str], one: bool) -> str | None:
    """Emit ``clip(x, low, high)``: the larger one of ``x`` and ``low``, then the smaller one of that and ``high``; no number stays none.

    Of zeros that are equal, the loop takes ``x`` if there is ``one`` bound on each side for all elements, else the bound.
    """
    x, low, high = operands
    kind = memory_type(dtype)
    if dtype.char not in "fd" and dtype.kind not in "iu":
        return None
    above, below = ("oge", "ole") if one else ("ogt", "olt")
    for bound, (of_floats, of_signed, of_unsigned) in ((low, (above, "sgt", "ugt")), (high, (below, "slt", "ult"))):
        if dtype.kind == "f":
            kept = lines.temp(f"fcmp {of_floats} {kind} {x}, {bound}")
            kept = lines.temp(f"or i1 {kept}, {lines.temp(f'fcmp uno {kind} {x}, {x}')}")
        else:
            kept = lines.temp(f"icmp {of_signed if dtype.kind == 'i' else of_unsigned} {kind} {x}, {bound}")
        x = lines.select(kept, kind, x, bound)
    return x


def _operation(name: str, dtype: DType) -> Op | None:
    if name in _OF_TRUTH:
        return _OF_TRUTH[name] if dtype.kind == "b" else None
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    return next((op for op in scalars.LOWERINGS if op.name == name), None)


_TEXT: Final = """
define internal void @row(%(taken)s) #0 {
entry:
%(outside)s
  br label %%body
body:
  %%i = phi i64 [ 0, %%entry ], [ %%j, %%body ]
%(inside)s
  %%j = add nuw nsw i64 %%i, 1
  %%more = icmp slt i64 %%j, %%length
  br i1 %%more, label %%body, label %%after
after:
%(behind)s
  ret void
}

define void @%(name)s(ptr %%at, ptr %%across, ptr %%along, ptr %%numbers, ptr %%to, i64 %%rows, i64 %%length) #0 {
entry:
%(words)s
  br label %%each
each:
  %%row = phi i64 [ 0, %%entry ], [ %%next, %%each ]
  %%before = mul i64 %%row, %%length
%(rows)s
  call void @row(%(passed)s)
  %%next = add nuw nsw i64 %%row, 1
  %%again = icmp slt i64 %%next, %%rows
  br i1 %%again, label %%each, label %%over
over:
  ret void
}
"""
