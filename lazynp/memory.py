"""Values in host memory: reading an array through NumPy, and filling one element by element.

In: arrays.  Out: NumPy arrays over their memory with the nominal strides, and *drafts*.  Promise: ``host`` computes what is pending and
copies nothing; a draft is seen by one cell only, and becomes a node, never to be written again, before anybody else may see it; while one
is lent to the world outside, which may write at any time, whoever reads the array gets a copy of what the memory holds then.
"""

from __future__ import annotations

import gc
from math import prod
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from lazynp import arrays
from lazynp.array import core, hand
from lazynp.conversion import asarray
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node, Shape
from lazynp.scalars import CLASSES, force
from lazynp.values import buffer as buffers
from lazynp.values import config, forking, pressure
from lazynp.values.allocator import allocate
from lazynp.values.buffer import Buffer
from lazynp.views import View, origin_of, part

DRAFT_BYTES = 65536
"""Up to this size an element write copies the array, so that the following ones cost next to nothing."""

_MEMORY = np.ndarray

_lent: WeakValueDictionary[int, arrays.ndarray] = WeakValueDictionary()  # by their id: arrays whose memory somebody outside has filled


class Draft:
    """Memory of an array that is being filled: owned by one cell, seen by nobody else, unless it is lent.

    ``lease`` refers to what the arrays outside keep: it is dead when none is left.
    """

    __slots__ = ("array", "buffer", "dtype", "lease", "shape", "views")

    def __init__(self, buffer: Buffer) -> None:
        self.lease: ref[Any] | None = None
        self.buffer = buffer
        self.array = buffer.array
        self.dtype = buffer.dtype
        self.shape = buffer.shape
        self.views: dict[View, np.ndarray[Any, Any]] | None = None


def host(x: Any, reason: str = "__array__") -> np.ndarray[Any, Any]:
    """The value as a NumPy array with the nominal strides; no copy, so callers must not write to it."""
    if type(x) is not arrays.ndarray:
        if type(x) in CLASSES:
            return np.asarray(x.concrete(reason))
        return host(asarray(x), reason) if not isinstance(x, np.ndarray) else x
    base = x._base
    if type(base) is _MEMORY:
        return base
    root = base if type(base) is arrays.ndarray else x
    if type(root._base) is _MEMORY:
        return shown(x, root._base)
    node = arrays.root_node(root)
    if node.op is o.CONST:
        array = np.asarray(node.arg)
    else:
        if node.buffer is None:
            force([node], reason)
        assert node.buffer is not None
        array = node.buffer.array
    if root is x:
        return array
    return shown(x, array)


def shown(x: arrays.ndarray, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what a view shows of its base's memory."""
    view: View = x._view
    if memory.shape != view.root or memory.dtype != view.root_dtype:
        memory = memory.reshape(-1).view(view.root_dtype).reshape(view.root)
    return view.memory(memory)


def elements(x: arrays.ndarray) -> np.ndarray[Any, Any] | None:
    """The memory of an array whose value exists in host memory, in its shape and with the nominal strides; None for all others."""
    base = x._base
    if type(base) is _MEMORY:
        return base
    if type(base) is not arrays.ndarray:
        if base is not None:
            return base.array
        buffer = x._node.buffer
        return None if buffer is None else buffer.at_hand
    inner = base._base
    if type(inner) is _MEMORY:
        return shown(x, inner)
    memory = base._node.buffer if inner is None else inner
    if memory is None:
        return None
    # Kept with the memory, not with the view: a view that nobody reads any more must not keep old memory.
    view: View = x._view
    kept = memory.views
    if kept is None:
        kept = memory.views = {}
    found: np.ndarray[Any, Any] | None = kept.get(view)
    if found is None:
        array = memory.array if inner is not None else memory.at_hand
        if array is not None:
            found = kept[view] = shown(x, array)
            origin = origin_of(view) if config.at_hand and 0 not in view.shape else None
            if origin is not None:
                core.show(x, found[...], array, origin)
    return found


def is_lent(draft: Draft) -> bool:
    """Tell whether somebody outside may write into the memory."""
    return draft.lease is not None and draft.lease() is not None


def lend(x: arrays.ndarray) -> np.ndarray[Any, Any] | None:
    """The memory of an array that waits to be filled, writable, and seen by both sides as NumPy's arrays see each other's.

    What ``np.empty``, ``np.zeros``, ``np.full`` made waits to be filled as long as nobody computed or wrote it, and again whenever it was
    lent before: C code that is given such an array for its results (SciPy's ``output=``, a file's ``readinto``) expects to reach it so,
    in several threads if need be, each of which fills a part.  None for all others.
    """
    if type(x._base) is _MEMORY:
        return x._base[...]
    if x._readonly:
        return None
    root = x._base if type(x._base) is arrays.ndarray else x
    if type(root._base) is _MEMORY:
        return shown(x, root._base)
    if root._base is None and _lent.get(id(root)) is root:
        host(root, "__array__")  # what is computed is so before the lock is taken
    with forking.graph:
        held = root._base
        export = None if held is None or held.lease is None else held.lease()
        if export is not None:
            array = np.asarray(export)
        else:
            known = _lent.get(id(root)) is root
            if held is not None and not known:
                return None
            node = arrays.root_node(root)
            sources = node.src
            filled = node.op is o.EXPAND and sources[0].op is o.CONST
            buffer = node.buffer if known else None
            if not filled and buffer is None:
                return None
            block = allocate(prod(node.shape) * node.dtype.itemsize)
            array = block.view(node.dtype, node.shape)
            array[...] = sources[0].arg if buffer is None else buffer.array
            held = Draft(Buffer.of_block(block, node.dtype, node.shape))
            held.lease = ref(array.base)
            root._base = root._view = held
            root._node = None
            _lent[id(root)] = root
    return array if root is x else shown(x, array)


def overwritten(root: arrays.ndarray, node: Node) -> bool:
    """Put a new value into memory that is lent, where those outside see it; tells whether it was."""
    held = root._base
    if type(held) is _MEMORY:
        held[...] = host(arrays.wrap(node), "a value at hand")
        return True
    if not is_lent(held):
        root._base = root._view = None
        return False
    held.array[...] = host(arrays.wrap(node), "shared memory")
    root._node = None
    return True


def published(root: arrays.ndarray) -> Node:
    """The node of an array that was being filled; its memory is not written again, or it is a copy."""
    held = root._base
    if type(held) is _MEMORY:
        return hand.captured(root)
    if held.lease is None:
        return _taken_back(root, held)
    with forking.graph:
        held = root._base
        if held is None:  # another thread was here first
            node: Node = root._node
            return node
        if not is_lent(held):
            return _taken_back(root, held)
        buffer = _empty(held.shape, held.dtype)
        buffer.array[...] = held.array
        device = held.buffer.device
        return build.leaf(buffer if device is None else buffer.at_home(device))


def _taken_back(root: arrays.ndarray, held: Draft) -> Node:
    node = build.leaf(held.buffer)
    root._node = node
    root._base = root._view = None
    return node


def draft(root: arrays.ndarray, copy: bool = True) -> np.ndarray[Any, Any] | None:
    """Memory of a plain array that may be written now, because nobody else sees it.

    It is the array's own where no other cell and nothing pending refers to its value; else a copy, or None if none is wanted.
    """
    if hand.own_memory(root) is not None:
        return root._base
    base = root._base
    if base is None:
        node = root._node
        sources = node.src
        one = sources[0] if node.op is o.EXPAND else node
        del sources
        if one.op is o.CONST:
            buffer = _empty(node.shape, node.dtype)
            buffer.array.fill(one.arg)
        else:
            del one
            force([node], "element writes")
            buffer = node.buffer
            if buffer.place is None and buffer.exclusive():
                # Ours alone if the node goes with this cell.
                root._node = None
                look = ref(node)
                del node
                root._node = look()
            if root._node is None:
                buffer = buffer.retyped(buffer.dtype, buffer.shape)
            elif not copy:
                return None
            else:
                old = buffer.array
                device = buffer.device
                buffer = _empty(old.shape, old.dtype)
                buffer.array[...] = old
                if device is not None:
                    buffer = buffer.at_home(device)
        base = root._base = root._view = Draft(buffer)
        root._node = None
    found: np.ndarray[Any, Any] = base.array
    return found


def _empty(shape: Shape, dtype: np.dtype[Any]) -> Buffer:
    """Memory that can be recognised as one's own later on, where it is large enough for that to matter."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < DRAFT_BYTES:
        return Buffer(np.empty(shape, dtype))
    return Buffer.of_block(allocate(nbytes), dtype, shape)


def _pending() -> list[Node]:
    """Return the nodes of arrays and scalars that wait to be computed, oldest first; the garbage collector knows the objects."""
    ours = {id(arrays.ndarray), *map(id, CLASSES)}  # other classes need not even have a hash
    found: dict[Node, None] = {}
    for x in gc.get_objects():
        # Another thread may have got no further than to make the object.
        if id(type(x)) in ours and type(getattr(x, "_base", None)) is not arrays.ndarray:
            node = getattr(x, "_node", None)
            if node is not None and node.buffer is None and node.src:
                found[node] = None
    return sorted(found, key=lambda node: node.number)


pressure.hand_over(_pending, force)
core.register_parts(Node, Buffer, Draft, part)
buffers.release = core.release
