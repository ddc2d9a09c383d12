"""``cupy.cuda.nvtx``: ranges for profilers.

In: names.  Out: the machine's lists of the ranges that are open in each thread and of all that there were, with the launches within.
Promise: what is popped was pushed by the same thread.
"""

from __future__ import annotations

from gpu_emulator.fakecupy.errors import Violation
from gpu_emulator.fakecupy.machine import machine


def RangePush(message: str, id_color: int = -1) -> None:
    fake = machine()
    fake.local.__dict__.setdefault("ranges", []).append((str(message), fake.launches))


def RangePop() -> None:
    fake = machine()
    opened = fake.local.__dict__.get("ranges")
    if not opened:
        raise Violation("a range is popped that nobody pushed")
    message, before = opened.pop()
    fake.ranges.append((message, fake.launches - before))
