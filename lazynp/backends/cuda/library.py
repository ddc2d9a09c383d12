"""Library calls that CuPy does.

In: a program of one library call and the views of its operands.  Out: a function of device buffers, or None where the call is NumPy's to
do.  Promise: a call is in the table only where CuPy's result has NumPy's dtype, shape and meaning, errors included; everything else runs in the
NumPy tier on host copies, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from lazynp.graph import op as o
from lazynp.runtime.buffer import Buffer
from lazynp.schedule.canonicalise import Entry, Program

if TYPE_CHECKING:
    from lazynp.backends.cuda.memory import Place

Call = Callable[[list[Any], list[int], list[Any]], "list[Buffer] | None"]
Function = Callable[[Any, list[Any], tuple[Any, ...]], Any]  # of CuPy, operands and parameters


def name_of(entry: Entry) -> str:
    """An operation as reports name it."""
    if entry.op is not o.CALL:
        return entry.op.name if entry.op.kind is not o.Kind.REDUCTION else f"{entry.arg[0].name}.{entry.op.name}"
    name, params = entry.arg
    return str(params[0]) if name in ("numpy", "apply", "write") else str(name)


FUNCTIONS: Final[dict[str, Function]] = {}


def compiled(program: Program, place: Place) -> Call | None:
    """How CuPy computes a program of one call; None where it does not."""
    return None
