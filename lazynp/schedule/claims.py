"""Whose memory a program reads and writes: views that a library follows, and inputs that are worth writing in place.

In: a ``Program``.  Out: entries.  Promise: sizes alone decide, the same for every backend; whether an input has no other reference
is found out when the program runs (``backends/common/ownership.py``).
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Final

from lazynp.graph import op as o
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program

VIEWS: Final = frozenset({o.PERMUTE, o.EXPAND, o.SLICE, o.RESHAPE})


def view_base(program: Program, e: int) -> int:
    """The entry under a chain of views."""
    while program.entries[e].op in VIEWS:
        e = program.entries[e].src[0]
    return e


def read_base(program: Program, e: int, reader: Entry) -> int:
    """The entry whose memory a library call reads for entry e: that under a chain of views, or what a kernel writes out of them.

    Windows and reshaped broadcasts, of which NumPy would write more than there is, are written as they are read, in C's order: most loops
    want it.  A product of matrices reads either order, and what is written for it is the rows that windows repeat, which are long.
    """
    entries, chain = program.entries, [e]
    while entries[chain[-1]].op in VIEWS:
        chain.append(entries[chain[-1]].src[0])
    base = chain.pop()
    held = prod(entries[base].shape)
    written = [prod(entries[k].shape) if is_copied(program, entries[k]) else 0 for k in chain]
    if reader.op is not o.CALL or reader.arg[0] not in o.PRODUCTS:
        written = [*accumulate(written[::-1], max)][::-1]  # of this view, and of those under it
    found = [k for k, size in zip(chain, written, strict=True) if size > held and entries[k].op is not o.EXPAND]
    return found[0] if found else base


def is_copied(program: Program, entry: Entry) -> bool:
    """Tell whether NumPy copies what a movement moves: windows are rows repeated and read again with another length."""
    if entry.op is not o.RESHAPE:
        return entry.op is o.PAD
    source = program.entries[entry.src[0]]
    return source.op in (o.EXPAND, o.PERMUTE) or (source.op is o.SLICE and len(source.shape) > 1)


class Claims(list[int]):
    """The buffer parameters that a plan would overwrite; empty once others have wanted the old values again and again."""

    contests = 0
    given_up: tuple[int, ...] = ()

    def settled(self, contested: bool) -> None:
        self.contests = self.contests + 1 if contested else 0
        if self.contests == cost.CLAIM_CONTESTS:
            self.given_up = tuple(self)
            self.clear()

    def described(self) -> list[int]:
        """Those of the plan, whatever others wanted since."""
        return list(self.given_up) or list(self)


def nbytes(entry: Entry) -> int:
    return prod(entry.shape) * entry.dtype.itemsize


def claims(program: Program) -> frozenset[int]:
    """Inputs that are large and overwritten in small part, so that saving that part is cheaper than a copy of the whole."""
    covered: dict[int, int] = {}
    root: dict[int, int] = {}  # entry -> the input whose memory it would have
    for e, entry in enumerate(program.entries):
        if entry.op is o.BUFFER:
            if nbytes(entry) >= cost.CLAIM_BYTES:
                root[e] = e
        elif entry.op is o.STORE and entry.src[0] in root:
            base = root[e] = root[entry.src[0]]
            covered[base] = covered.get(base, 0) + nbytes(program.entries[entry.src[1]])
    return frozenset([e for e, size in covered.items() if size <= cost.CLAIM_SHARE * nbytes(program.entries[e])])
