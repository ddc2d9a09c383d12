"""Which operations kernels of the processor compute.

In: an entry of a program.  Out: yes or no.  Promise: LLVM, and what writes for it, is not loaded for that.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Final

from lazynp.backends.base import in_kernels
from lazynp.backends.llvm import scalars
from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program

_can_be_rendered: Final = cache(scalars.supported)  # asked of every operation of every program


def supported(program: Program, e: int) -> bool:
    """Tell whether entry e of a program is a matter for kernels."""
    entry = program.entries[e]
    if entry.op is o.STORE and prod(program.entries[entry.src[1]].shape) < cost.SMALL_STORE:
        return False
    return in_kernels(program, e, _can_be_rendered)
