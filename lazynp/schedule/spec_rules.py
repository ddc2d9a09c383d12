"""What holds for operations in every phase, and how a broken rule is told.

In: an operation and dtypes.  Out: complaints.  Promise: imported only by the checks of ``schedule/spec.py`` and ``codegen/spec.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lazynp.graph import op as o
from lazynp.graph.op import Op

DType = np.dtype[Any]
Complaints = Iterator[str]

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)


class SpecError(AssertionError):
    """A pass broke its promise."""


def refuse(phase: str, place: str, complaints: Complaints) -> None:
    for complaint in complaints:
        raise SpecError(f"{phase}: {place}: {complaint}")


# Operations: what holds for them in every phase ------------------------------------------------------------------------

def scalar_rule(op: Op, dtype: DType, sources: Sequence[DType]) -> Complaints:
    """Say what is wrong with an elementwise operation of these dtypes."""
    if len(sources) != op.arity:
        yield f"{op!r} has {len(sources)} sources, not {op.arity}"
        return
    first = sources[0]
    if not op.takes(first):
        yield f"{op!r} of {first} is not defined"
        return
    if op is o.WHERE:
        if first != BOOL:
            yield f"the condition is {first}, not bool"
        sources = sources[1:]
    elif op is o.CAST or op is o.LDEXP:
        return
    elif op is o.BITCAST:
        if first.itemsize != dtype.itemsize:
            yield f"the bits of {first} do not fit {dtype}"
        return
    elif op is o.REAL or op is o.IMAG or (op is o.ABSOLUTE and first.kind == "c"):
        if first.kind != "c" or dtype.kind != "f" or first.itemsize != 2 * dtype.itemsize:
            yield f"{op!r} of {first} is not {dtype}"
        return
    elif op is o.COMPLEX:
        if dtype.kind != "c" or any(s.kind != "f" or 2 * s.itemsize != dtype.itemsize for s in sources):
            yield f"{dtype} is not made of {', '.join(map(str, sources))}"
        return
    elif op is o.BITWISE_COUNT:
        if dtype != np.uint8:
            yield f"the count of the bits of {first} is not {dtype}"
        return
    elif op.predicate:
        if dtype != BOOL:
            yield f"{op!r} gives {dtype}, not bool"
        dtype = first
    if any(s != dtype for s in sources):
        yield f"{op!r} mixes {', '.join(map(str, dict.fromkeys((dtype, *sources))))} without a cast"


# Programs ----------------------------------------------------------------------------------------------------------------
