"""Pending graphs stay bounded: chains are cut, turns of loops end, changed arrays are known.

In: the node that an array is about to hold.  Out: whether, and what, is computed now.  Promise: no program ever has to call ``realize()``;
a loop is cut at one of its own lines, so that its turns share a plan.
"""

# A chain deeper than some hundred operations is cut where a loop comes by; sums that a loop collects in place are computed when what they
# hold fills 8 MiB; a loop of large writes is computed turn by turn at the line where it writes. What only pending work holds may be a
# quarter of the memory that the program itself has held so far, and 16 MiB: beyond, results that are smaller than what only they hold are
# computed. And when large values hold more than an eighth of the machine's memory, the oldest pending results are computed
# (`values/pressure.py`). Where private memory is limited (`ulimit -d`), pending work and the pool have an eighth of what the limit
# leaves. A run that is planned to need more than the budget (`LAZYNP_MEMORY`; half of what is free) is cut at a place where more inputs
# are done with than values are on their way (`engine/budget.py`): inputs live to the end of a run.

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING
from weakref import ref

from lazynp.graph import op as o
from lazynp.graph.node import DEPTH_CUT, Node, Site
from lazynp.scalars import force, pending_scalars
from lazynp.values import config
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp.arrays import ndarray
    from lazynp.values import pressure
else:
    (pressure,) = late("values.pressure")

# Pending graphs stay bounded: a chain of operations longer than DEPTH_CUT is realized at a line where one was before, and longer than
# DEPTH_LIMIT wherever that is.
DEPTH_LIMIT = 1000
# A loop that writes large parts of an array is computed turn by turn, at the line where it writes: a write is not fused with the next one
# anyway, and its turns then share one plan and a few buffers.
TURN_ELEMENTS = 65536
TURN_WRITES = 8  # writes of one turn among which the line is looked for
_turn_site: Site | None = None
DEEP_ARRAYS = 4096  # arrays with deep pending nodes that are remembered, to be realized together
_cut_site: Site | None = None
_deep: list[ref[ndarray]] = []
CHANGED_ARRAYS = 64
_changed: dict[int, ref[ndarray]] = {}  # large arrays that are changed in place, by ``id``: sums that loops collect, most likely


def cut(node: Node) -> None:
    """Realize a deep pending node, at the line where the last one was cut if it comes by: a loop is then cut after equal numbers of turns,
    and every cut but the first finds its plan in the cache."""
    global _cut_site
    if node.depth > DEPTH_LIMIT or (node.site is not None and node.site == _cut_site):
        _cut_site = node.site
        # The other results that are held go along: left pending they would keep the history that this is about.
        others = {x._node: None for r in _deep if (x := r()) is not None and x._base is None and x._node.depth > DEPTH_CUT // 2}
        _deep.clear()
        force([node, *others, *pending_scalars()], "graph limit")


def remember(x: ndarray) -> None:
    """``x`` holds a deep pending node."""
    _deep.append(ref(x))
    if len(_deep) > DEEP_ARRAYS:
        alive = [r for r in _deep if (held := r()) is not None and held._base is None and held._node.depth > DEPTH_CUT // 2]
        _deep[:] = alive[-DEEP_ARRAYS // 2 :]


def changes(x: ndarray, node: Node) -> None:
    """``x`` was changed in place as a whole; what is large is looked for when memory is short, and may lie where its operand lies."""
    nbytes = prod(node.shape) * node.dtype.itemsize
    if nbytes >= pressure.COUNTED_FROM and node.op.kind is o.Kind.ELEMENTWISE:
        pressure.assigned.append(ref(node))
    if nbytes >= pressure.COUNTED_FROM and node.buffer is None:
        _changed[id(x)] = ref(x)
        if len(_changed) > CHANGED_ARRAYS:
            _changed.clear()


def changed() -> list[Node]:
    """Return the pending nodes of large arrays that were changed in place since the last time."""
    found = [x._node for r in list(_changed.values()) if (x := r()) is not None and x._base is None and x._node.buffer is None]
    _changed.clear()
    return found


def goes_to_what_exists(node: Node) -> bool:
    """Tell whether a part of an array that exists is written: a kernel ends there in any case, and afterwards the array's other parts are
    in memory."""
    src = node.src
    if not config.at_hand or not src:
        return False
    old = src[0].buffer
    return old is not None and old.place is None and prod(src[1].shape) < prod(node.shape)


def ends_turn(node: Node) -> bool:
    """Tell whether a large write comes by the line of an earlier one of the same array."""
    global _turn_site
    src = node.src
    if not src or prod(src[1].shape) < TURN_ELEMENTS:
        return False
    site = node.site
    if site == _turn_site:
        return True
    for _ in range(TURN_WRITES):
        node = src[0]
        src = node.src  # before its operation: another thread may publish it in between
        if node.op is not o.STORE or not src:
            return False
        if node.site == site:
            _turn_site = site
            return True
    return False
