"""How far a program's floating-point results may be from NumPy's.

In: a program.  Out: the same function with ``tolerance`` and ``reason``.  Promise: without a mark results are equal, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def close(tolerance: float, reason: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """At most ``tolerance`` times the largest magnitude of the array an element is in."""

    def mark(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
        program.tolerance, program.reason = tolerance, reason  # type: ignore[attr-defined]
        return program

    return mark
