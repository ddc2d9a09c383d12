"""Writing in place: a transaction on memory that may still be read.

In: the inputs that a plan would overwrite.  Out: a ``Claim`` on those whose memory only the graph can reach.  Promise:
whatever happens, every value that can still be asked for is there afterwards.

A STORE may be written into the memory of the array it changes if the old elements are not wanted any more.  References to them are not
counted while the program is recorded: that would cost every operation.  Instead the run saves what it overwrites (a plan claims an input
only where that is the smaller part), and looks when it is over.  If the node of the old value died with the graph that the run consumed,
the value is not wanted.  If it lives, or if the run failed, the old elements are put back.  Where there is no memory for an old value
beside the new one, what was saved stays until it is read (``Displaced``).  So the value can be missing for a while, but is never lost.

Before memory is claimed it is detached from its node, so that other threads, which may hold that node, come to ``realize`` and wait there;
memory that was exported, or that another run reads, is not claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import ref

import numpy as np

from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Canonical
from lazynp.values import forking
from lazynp.values.buffer import Buffer

ATTEMPTS: Final = 100  # to put values back: each fails if a signal comes meanwhile

Saved = list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]  # regions, and what they held


class Displaced(Buffer):
    """An old value that there was no memory for: it is put together when it is first read, or raises ``MemoryError`` then.

    The memory that it shares with the new value must not be overwritten again.
    """

    __slots__ = ("_new", "_saved", "device")
    device: str | None

    def __init__(self, new: Buffer, saved: Saved) -> None:
        self._array = self._address = self._lease = self.views = self.ends = self.block = None
        self.shared = True
        self.dtype = new.dtype
        self.shape = new.shape
        self.device = new.device
        self._new: Buffer | None = new
        self._saved = saved

    def _exported(self) -> np.ndarray[Any, Any]:
        with forking.graph:
            array = self._array
            if array is None:
                assert self._new is not None
                array = self._array = before(self._new, self._saved)
                self._new = None
                self._saved = []
            return array

    def at_home(self, device: str) -> Buffer:
        self._exported()
        return super().at_home(device)


class Claim:
    """Memory that one run may overwrite, and what it overwrote; ``new`` are the values of the run.

    ``own`` are blocks of temporaries that are not read again: of those nothing need be saved.
    """

    __slots__ = ("blocks", "held", "new", "own", "saved")

    def __init__(self, blocks: Iterable[Any] = (), own: Iterable[Any] = ()) -> None:
        self.blocks = set(blocks)
        self.own = set(own)
        self.held: list[tuple[ref[Node], Buffer]] = []
        self.new: list[Buffer] = []
        self.saved: Saved = []

    def take(self, canonical: Canonical, slots: Iterable[int]) -> bool:
        """Claim the inputs ``slots`` as far as only the graph can reach them; tells whether there are any."""
        wanted = {id(buffer) for buffer in [canonical.buffers[slot] for slot in slots] if buffer.exclusive()}
        if wanted:
            for node in canonical.nodes:
                buffer = node.buffer
                if buffer is not None and id(buffer) in wanted:
                    self.blocks.add(buffer.block)
                    self.held.append((ref(node), buffer))
                    node.buffer = None
        return bool(wanted)

    def save(self, region: np.ndarray[Any, Any]) -> None:
        """Called before ``region``, a view of claimed memory, is overwritten."""
        self.saved.append((region, region.copy()))

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Put the memory back as it was before the run, within the block, and afterwards as the run left it."""
        new = [region.copy() for region, _ in self.saved]
        for region, old in reversed(self.saved):
            region[...] = old
        try:
            yield
        finally:
            for (region, _), elements in zip(self.saved, new, strict=True):
                region[...] = elements

    def end(self, canonical: Canonical) -> None:
        """The run failed, or was stopped: every value that can be asked for is put back, also if further signals come meanwhile."""
        attempts = 0
        while self.held and attempts < ATTEMPTS:
            attempts += 1
            try:
                values = [node.buffer for node in canonical.wanted if node.buffer is not None]
                self.new = self.new or [value for value in values if value.block in self.blocks]
                if self.new:  # it was stopped when it had published some of them
                    self.settle()
                else:
                    self.undo()
            except BaseException:
                continue

    def undo(self) -> None:
        """The run failed: everything is as before; who is stopped in here begins anew."""
        for region, old in reversed(self.saved):
            region[...] = old
        for look, buffer in self.held:
            node = look()
            if node is not None:
                node.buffer = buffer
        self.saved.clear()
        self.held.clear()

    def settle(self) -> bool:
        """The run is over, its values published and its program forgotten; tells whether an old value was still wanted.

        If it is stopped by an exception, the next call goes on where it was.
        """
        wanted = False
        while self.held:
            look, buffer = self.held[-1]
            node = look()
            wanted = wanted or node is not None
            if node is not None and node.buffer is None and node.error is None:
                try:
                    if buffer.place is None:
                        buffer.moved(before(buffer, self.saved))
                    else:
                        buffer.recover(self.saved)
                    node.buffer = buffer
                except MemoryError as error:
                    if buffer.place is None:
                        node.buffer = self._displaced(buffer)
                    else:
                        node.error = error
            self.held.pop()
        return wanted

    def _displaced(self, buffer: Buffer) -> Displaced:
        for value in self.new:
            if value.block is buffer.block:
                value.shared = True
        return Displaced(buffer, self.saved)


def before(buffer: Buffer, saved: Saved) -> np.ndarray[Any, Any]:
    """Return the value that ``buffer`` had before ``saved`` was overwritten, in memory of its own."""
    old = buffer.array.copy()
    start: int = buffer.address
    for region, elements in reversed(saved):
        at = region.__array_interface__["data"][0] - start
        if region.size and 0 <= at < old.nbytes:
            np.ndarray(region.shape, region.dtype, old, at, region.strides)[...] = elements
    return old
