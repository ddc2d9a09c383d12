"""Which operations kernels of the processor compute.

In: an entry of a program.  Out: yes or no.  Promise: what writes code is not loaded for that; its table of texts (``scalars.py``) has all
that is said to be supported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

from lazynp.graph import op as o
from lazynp.graph.op import Kind, Op
from lazynp.schedule import cost
from lazynp.values.loading import load

if TYPE_CHECKING:
    import numpy as np

    from lazynp.schedule.canonicalise import Program

    DType = np.dtype[Any]

# What is put together from other operations before it comes here, or left to NumPy.
WITHOUT: Final = frozenset(
    [o.LOGADDEXP, o.LOGADDEXP2, o.NEXTAFTER, o.SPACING, o.LDEXP, o.GCD, o.LCM, o.REAL, o.IMAG, o.COMPLEX, o.CONJUGATE]
)
# Of the operations with a name in C, those that instructions compute, of integers, too.
INSTRUCTIONS: Final = frozenset([o.ABSOLUTE, o.SQRT, o.FLOOR, o.CEIL, o.TRUNC, o.RINT, o.COPYSIGN, o.FMOD])


def supported(program: Program, e: int) -> bool:
    """Tell whether entry e of a program is a matter for kernels."""
    entry = program.entries[e]
    if entry.op is o.STORE and prod(program.entries[entry.src[1]].shape) < cost.SMALL_STORE:
        return False
    found: bool = load("lazynp.backends.base").in_kernels(program, e, can_be_rendered)  # single steps of tapes are asked without
    return found


@cache
def can_be_rendered(op: Op, dtype: DType, sources: Sequence[DType]) -> bool:
    """Tell whether there is code for an operation on numbers of these dtypes."""
    if any(d.kind not in "biufc" or d.char in "gG" for d in (dtype, *sources)):
        return False
    if op is o.WHERE:
        return True
    if any(d.kind == "c" for d in (dtype, *sources)):
        return op is o.BITCAST and dtype.itemsize == sources[0].itemsize
    if op is o.CAST:
        return True
    if op is o.BITCAST:
        return dtype.kind != "b" and sources[0].kind != "b"
    if op.kind is not Kind.ELEMENTWISE or op in WITHOUT or any(d != sources[0] for d in sources):
        return False
    return op.takes(sources[0]) and (sources[0].kind == "f" or not op.c_name or op in INSTRUCTIONS)
