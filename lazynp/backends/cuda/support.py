"""The device functions that end a reduction.

In: a combining operation and a dtype.  Out: C++ functions that halve lanes, keep the binary counter of chunk results (see
``lazynp/codegen/reduce.py``), and fold the values of a warp.  Promise: the order of combination is that of the other backends, bit for bit;
elements narrower or wider than a shuffle takes go through it as words.
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.cuda import errors, scalars
from lazynp.backends.cuda.types import DType, code, literal, memory_type, type_of
from lazynp.codegen import ir
from lazynp.graph import op as o
from lazynp.graph.errors import ALL
from lazynp.graph.op import Op

KINDS: Final = ("halve", "push", "collect", "fold")
SHUFFLES: Final = ("down", "first")
OPS: Final = {op.name: op for op in o.COMBINING}
EVERY: Final = "0xffffffffu"  # all threads of a warp


def call(kind: str, op: Op, dtype: DType, *args: str) -> str:
    """The call of a function of this module."""
    return f"lz_{kind}_{op.name}_{code(dtype)}({', '.join([*args, 'noted'])})"


def is_combining(base: str) -> bool:
    kind, _, rest = base.partition("_")
    return base in SHUFFLES or (kind in KINDS and rest in OPS)


def definition(base: str, dtype: DType) -> str:
    """The function that ``call`` names, without its last part."""
    if base in SHUFFLES:
        return _shuffle(base, dtype)
    kind, _, rest = base.partition("_")
    return {"halve": _halve, "push": _push, "collect": _collect, "fold": _fold}[kind](OPS[rest], dtype)


def _combine(op: Op, dtype: DType, indent: int) -> str:
    """Statements that make ``both`` of ``a`` and ``b``, and note the errors: all, for the kernel drops what is not wanted."""
    statement, (make, *under) = _statement(op, dtype)
    noted = [errors.others(name, dtype, operations) for name, operations in errors.plan([statement], ALL).items()]
    return "".join([f"{' ' * indent}{line}\n" for line in (make, *under, *noted)])


def _statement(op: Op, dtype: DType) -> tuple[ir.Compute, list[str]]:
    statement = ir.Compute("both", op, dtype, ("a", "b"), dtype)
    lines = [f"const {type_of(dtype)} both = {scalars.expression(op, dtype, ('a', 'b'), dtype)};"]
    return statement, [*lines, errors.underflow([statement])] if errors.may_vanish(statement) else lines


def _element(dtype: DType, text: str) -> str:
    return f"{text} != 0" if dtype.kind == "b" else text


def _halve(op: Op, dtype: DType) -> str:
    from lazynp.schedule.chunks import LANES

    t, m = type_of(dtype), memory_type(dtype)
    return f"""{t} lz_halve_{op.name}_{code(dtype)}({m}* lanes, unsigned int& noted)
{{
    #pragma unroll
    for (int half = {LANES // 2}; half > 0; half /= 2) {{
        #pragma unroll
        for (int i = 0; i < half; ++i) {{
            const {t} a = {_element(dtype, 'lanes[i]')}, b = {_element(dtype, 'lanes[i + half]')};
{_combine(op, dtype, 12)}            lanes[i] = both;
        }}
    }}
    return {_element(dtype, 'lanes[0]')};
}}"""


def _push(op: Op, dtype: DType) -> str:
    t, m = type_of(dtype), memory_type(dtype)
    return f"""void lz_push_{op.name}_{code(dtype)}({m}* stack, {t} value, long long number, unsigned int& noted)
{{
    int level = 0;
    for (; number >> level & 1; ++level) {{
        const {t} a = {_element(dtype, 'stack[level]')}, b = value;
{_combine(op, dtype, 8)}        value = both;
    }}
    stack[level] = value;
}}"""


def _collect(op: Op, dtype: DType) -> str:
    t, m = type_of(dtype), memory_type(dtype)
    return f"""{t} lz_collect_{op.name}_{code(dtype)}(const {m}* stack, long long count, unsigned int& noted)
{{
    {t} value = {literal(op.identity(dtype), dtype)};
    for (int level = 0; count >> level != 0; ++level) {{
        if (count >> level & 1) {{
            const {t} a = {_element(dtype, 'stack[level]')}, b = value;
{_combine(op, dtype, 12)}            value = both;
        }}
    }}
    return value;
}}"""


def _fold(op: Op, dtype: DType) -> str:
    """Fold without a look at each step; if what comes out is not finite, which all threads see, once more with it."""
    t, k = type_of(dtype), code(dtype)
    statement, (make, *under) = _statement(op, dtype)
    again = ""
    if errors.plan([statement], ALL):
        again = f"""
    if (__builtin_expect({errors.not_finite('total', dtype)}, 0)) {{
        #pragma unroll 1
        for (unsigned int half = 16; half > 0; half /= 2) {{
            const {t} a = value, b = lz_down_{k}(value, half);
            {make}
            if ((threadIdx.x & 31u) < half)
                {errors.others('both', dtype, [statement])}
            value = both;
        }}
    }}"""
    return f"""{t} lz_fold_{op.name}_{k}({t} value, unsigned int& noted)
{{
    {t} total = value;
    #pragma unroll
    for (unsigned int half = 16; half > 0; half /= 2) {{
        const {t} a = total, b = lz_down_{k}(total, half);
        {make}
{''.join([f"        if ((threadIdx.x & 31u) < half) {line}" + chr(10) for line in under])}        total = both;
    }}
    total = lz_first_{k}(total);{again}
    return total;
}}"""


_PARAMETERS: Final = {"down": ", unsigned int distance", "first": ""}
_CALLS: Final = {"down": "__shfl_down_sync({}, {{}}, distance)", "first": "__shfl_sync({}, {{}}, 0)"}


def _shuffle(base: str, dtype: DType) -> str:
    """The value of a thread ``distance`` on in the warp, or of the first one."""
    t, k = type_of(dtype), code(dtype)
    one = _CALLS[base].format(EVERY)
    match k:
        case "i4" | "u4" | "i8" | "u8" | "f4" | "f8":
            result = one.format("value")
        case "c8" | "c16":
            result = f"{t}{{{one.format('value.re')}, {one.format('value.im')}}}"
        case _:
            result = f"({t}){one.format('(int)value')}"
    return f"""{t} lz_{base}_{k}({t} value{_PARAMETERS[base]})
{{
    return {result};
}}"""
