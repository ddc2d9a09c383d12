"""The Python twin of the native graph: the same names and signatures, for where nothing could be compiled.

In: an operation and its sources.  Out: one immutable value of the program, not computed yet.  Promise: a node never changes what
it means; the one thing that happens to it is that its value comes to exist (``publish``), whereupon it forgets its sources, so
that a long-lived array never keeps its history alive.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp.graph.errstate import State, current
from lazynp.graph.op import BUFFER, Op

if TYPE_CHECKING:
    from lazynp.graph.native import Shape, Site
    from lazynp.values.buffer import Buffer

_next_number = itertools.count().__next__


class Node:
    """One value of the program.

    Attributes
    ----------
    op, src, arg, dtype, shape
        What it is; see ``lazynp.graph.op`` for each operation's ``arg``.
    number : int
        Position in recording order; a source always has a smaller number than its consumer.
    depth : int
        Longest chain of pending nodes up to this one; 0 for leaves.  Bounds the pending graph.
    site : (code, instruction offset) or None
        Where the user's program recorded it.
    err : State
        NumPy's floating-point error state when it was recorded.
    buffer : Buffer or None
        The value, once it exists.
    error : BaseException or None
        Why it could not be computed; every dependent raises it again.
    computed : bool
        It was computed before, on the way to another value, and not kept.  Whoever needs it again keeps it.
    """

    __slots__ = ("__weakref__", "arg", "buffer", "computed", "depth", "dtype", "err", "error", "number", "op", "shape", "site", "src")

    def __init__(
        self, op: Op, src: tuple[Node, ...], arg: Any, dtype: np.dtype[Any], shape: Shape, site: Site | None = None
    ) -> None:
        self.op = op
        self.src = src
        self.arg = arg
        self.dtype = dtype
        self.shape = shape
        self.site = site
        self.err: State = current()
        self.buffer: Buffer | None = None
        self.error: BaseException | None = None
        self.computed = False
        self.number = _next_number()
        depth: int = -1
        for source in src:
            if source.depth > depth:
                depth = source.depth
        self.depth: int = depth + 1

    def publish(self, buffer: Buffer) -> None:
        """The value exists now: become a leaf and let go of the history."""
        self.buffer = buffer
        self.op = BUFFER
        self.arg = None
        self.src = ()
        self.depth = 0

    def __repr__(self) -> str:
        return f"<{self.op!r} {self.dtype} {self.shape}>"


_ROOT = os.path.dirname(os.path.dirname(__file__)) + os.sep


def caller() -> Site:
    """Find the nearest frame outside lazynp: where the user's program stands."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_ROOT):
        back = frame.f_back
        if back is None:
            break
        frame = back
    return frame.f_code, frame.f_lasti


def marks(nodes: Iterable[Node]) -> tuple[Any, ...]:
    """Return the error state and the site of each node, as one tuple: state, code object or None, offset, state, ..."""
    return tuple([part for node in nodes for part in (node.err, *(node.site or (None, 0)))])


def mark_computed(nodes: Iterable[Node]) -> None:
    """Note that a program computed these nodes on the way to its values."""
    for node in nodes:
        node.computed = True


def register(cls: type, view: type, scalar: type, wrap: Callable[[Node], Any], node_of: Callable[[Any], Node], depth: int) -> None:
    """Make ``cls`` the class of arrays, ``view`` that of what views see, ``scalar`` the root of scalars.

    ``wrap`` makes the arrays of nodes deeper than ``depth``, and of others that are not plain; ``node_of`` finds the nodes of views.
    """


def recorder(slow: Callable[..., Any] | None, directs: dict[Any, Any], operands: int, power: bool) -> Any:
    """Return ``slow``, an operator or a ufunc; ``operands``: 0 two, 1 two in the other order, 2 one, 3 an array and a key."""
    return slow


def calls(slow: Callable[..., Any]) -> Any:
    """Return ``slow``, the ``__call__`` of a class of ufuncs."""
    return slow
