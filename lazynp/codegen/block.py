"""The argument block of a kernel.

In: an ``ir.Kernel``.  Out: the number of the 8-byte slot of each thing that a launch passes.  Promise: the same for every backend; what one
of them has no use for (threads, on a device) is left as it is.

A row of slots: buffers, workspaces, integers, scalars (two slots each), threads, error word, floating-point errors, one chunk counter
per phase.  On the processor the last ones are the words themselves; on a device the slots of both words, and the first one of counters,
hold addresses, and an integer that indices are divided by has a multiplier in its upper half (``backends/cuda/render.py``).
"""

from __future__ import annotations

from lazynp.codegen import ir


class Layout:
    """Slot numbers of the argument block."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.buffers = 0
        self.workspaces = self.buffers + len(kernel.buffers)
        self.integers = self.workspaces + len(kernel.workspaces)
        self.scalars = self.integers + kernel.integers
        self.threads = self.scalars + 2 * len(kernel.scalars)
        self.error = self.threads + 1
        self.flags = self.error + 1
        self.counters = self.flags + 1
        self.slots = self.counters + len(kernel.phases)
        # What the counter of each phase counts to: the slot of an integer, or -1.
        counts = [phase.count for phase in kernel.phases]
        self.totals = [self.integers + int(count[1:]) if str(count).startswith("n") else -1 for count in counts]
