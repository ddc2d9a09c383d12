"""What is known of a buffer: single numbers that were once computed from it.

In: programs that make one number from one buffer (``isfinite(sum(x))``, ``any(x < 0)``, a maximum), and their values.  Out: the value,
when the same program is asked for again.  Promise: a buffer never changes, so a fact holds as long as the buffer lives; what NumPy would
warn of is not remembered, so that it warns again.  Libraries validate the same array at every call: that costs one pass over it, not one
each.
"""

from __future__ import annotations

from typing import Any

from lazynp.backends.base import Plan
from lazynp.graph import op as o
from lazynp.schedule.canonicalise import Canonical
from lazynp.values.buffer import SMALLEST, Buffer


def _subject(canonical: Canonical) -> Buffer | None:
    """The buffer that a program is about; None where what it makes first is no number, or is made from more than a buffer."""
    wanted, buffers = canonical.wanted, canonical.buffers
    if len(buffers) == 1 and wanted[0].shape == () and buffers[0].nbytes >= SMALLEST:
        return buffers[0]
    return None


def _key(plan: Plan, canonical: Canonical) -> Any:
    # Parameters as text: zeros of either sign are equal as numbers.
    return id(plan), f"{canonical.integers}{canonical.scalars}"


def recalled(plan: Plan, canonical: Canonical) -> Buffer | None:
    """The value of a program that was asked for one number, where it is known; what it would make along the way stays pending."""
    subject = _subject(canonical)
    if subject is None or subject.facts is None:
        return None
    found = subject.facts.get(_key(plan, canonical))
    return None if found is None else found[1]


def remember(plan: Plan, canonical: Canonical, value: Buffer) -> None:
    """Keep the first value of a program that raised no floating-point error, with the buffer it was computed from."""
    subject = _subject(canonical)
    if subject is None or any(node.op is o.CALL for node in canonical.nodes):
        return
    key = _key(plan, canonical)
    if "nan" in key[1]:  # NaN has a sign, too, which its text does not show
        return
    value.shared = True
    subject.remember(key, (plan, value))  # the plan is kept, so that no other one gets its number
