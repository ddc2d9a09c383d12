"""Values in host memory: reading an array through NumPy, and filling one element by element.

In: arrays.  Out: NumPy arrays over their memory with the nominal strides, and *drafts*.  Promise: ``host`` computes what is pending and
copies nothing.  A draft is seen by one cell only, and becomes a node, never to be written again, before anything else may see it.  While
one is lent to the world outside, which may write at any time, what is recorded of the array is a copy of what the memory holds then.  What
is written to the array goes into that memory.
"""

# `x[i]` is a number: a program that reads an element wants a number, and Python's loops over elements should cost what NumPy's do. An array
# that is written element by element holds a *draft* meanwhile: memory that no other cell and nothing pending refers to, into which known
# values go straight, without a node. The first whole-array use makes the draft the array's value again. A large array that waits is
# computed when a second small part of it (a sixteenth, or less) is asked for, or its rows are gone through (`partial_read`): each
# part would be computed by itself else, with all that it comes from. After eight writes in a row, through views or not, it becomes a draft
# (`assignment._is_run`). Reshapes, transposes and rows of a large array that exists are parts of it like slices (`large_view` in
# `parts.h`), `flat` and iteration read from its memory, NumPy's iterators write into it (it is lent to them), and `ufunc.at` writes into a
# draft. A range (`arange`) that is wanted as it is is counted by NumPy, without a program.
#
# An export (`numpy.asarray(x)`, the buffer protocol, DLPack, `x.ctypes`, a view as a subclass) is the array's memory itself, at any size
# (`lend`): what is pending is computed, and the array becomes a draft; where something pending, or another cell, holds the value
# as well, that draft is a copy. The arrays outside hang on a base of their own, and a weak reference to it says whether one of them is
# left. As long as one is, the array is *lent*: its elements are what the memory holds at that moment. Operations that tapes compute read it
# at their call, where it lies, with what of their operands waits (`step_made`, `operand_now`); what follows waits. What a graph records of
# it (above `first_limit`, and what is no tape's) is a copy of what it shows then (`published`, `shown_now`); the last copy again where a
# comparison finds that nothing was written since, so an expression that reads the array twice still reads one buffer. Writes go into the
# memory. Reductions of a lent array are computed at the call (`reductions.at_the_call`), without the copy. Afterwards the memory is the
# array's node again, without a copy. An address that was told (`x.ctypes.data`, `__array_interface__`) keeps the array lent as long as it
# lives. What the library itself gives to a function of NumPy's for the length of a call (`protocols.snapshot`) lends nothing; functions
# whose results show what they are given (`np.ma`, records) get the memory itself. An array that is resized, or whose strides are set,
# leaves its value to its views (`left_behind`); `resize` is refused where the reference count of the array says that there is
# another holder, as NumPy does. Memory that comes from outside (`np.asarray` of NumPy's arrays, `frombuffer`, `from_dlpack`,
# `np.ndarray(buffer=)`) is a draft, too (`adopted`; small arrays keep it as their memory). It is lent as long as the reference count
# of NumPy's array says that there is another holder, for ever where that cannot be known, and then the array's own.

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import MutableMapping
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, getweakrefcount, ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from lazynp import arrays
from lazynp.array import core
from lazynp.engine import devices
from lazynp.graph import _native
from lazynp.graph import op as o
from lazynp.graph.node import Node, Shape
from lazynp.scalars import CLASSES, computed, force
from lazynp.subclasses import owner_of
from lazynp.values import config, forking
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion, layout, viewing, views
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.values import allocator, pressure
    from lazynp.values import buffer as buffers
else:
    hand, conversion, build, layout, allocator, buffers, pressure, viewing, views = late(
        "array.hand", "conversion", "graph.build", "layout", "values.allocator", "values.buffer", "values.pressure",
        "viewing", "views",
    )  # fmt: skip

DRAFT_BYTES = 65536
"""Up to this size an element write copies the array, so that the following ones cost next to nothing."""

FEW = 4096
"""Elements of a part that are copied for an operation that records it: what is written next is written in place, then."""

READERS = 64
"""Pending operations that are looked at for readers of an array that is changed."""

COMPARED = 1 << 17
"""Words that are compared with a snapshot at a time."""

_MEMORY = np.ndarray


class Draft:
    """Memory of an array that is being filled: owned by one cell, seen through no other, unless it is lent.

    ``lease`` refers to what the arrays outside keep: it is dead when none is left.  ``pinned`` is such an array, kept because an address
    was told.  ``snapshot`` refers to the last node that was made of lent memory.  ``outside`` is a NumPy array over memory that came from
    outside, where ``viewed`` says that it is a view there, too; ``file`` is the map that it is a read-only part of.
    """

    __slots__ = ("array", "buffer", "dtype", "file", "lease", "outside", "pinned", "shape", "snapshot", "viewed", "views")

    def __init__(self, buffer: buffers.Buffer, outside: np.ndarray[Any, Any] | None = None, viewed: bool = False, file: Any = None) -> None:
        self.lease: ref[Any] | None = None
        self.outside = outside
        self.viewed = viewed
        self.file = file
        self.pinned: np.ndarray[Any, Any] | None = None
        self.snapshot: ref[Node] | None = None
        self._hold(buffer)

    def _hold(self, buffer: buffers.Buffer) -> None:
        self.buffer = buffer
        self.array = buffer.array
        self.dtype = buffer.dtype
        self.shape = buffer.shape
        self.views: MutableMapping[object, np.ndarray[Any, Any]] | None = None

    def become(self, dtype: np.dtype[Any], shape: Shape) -> None:
        """Show the same memory in another shape, or as another dtype."""
        buffer = self.buffer.retyped(dtype, shape)
        core.set_together(self, {"buffer": buffer, "array": buffer.array, "dtype": buffer.dtype, "shape": buffer.shape, "views": None})

    @property
    def base(self) -> Any:
        """The owner of memory that came from outside; None of an array's own."""
        if self.outside is None or not self.viewed:
            return None
        base: Any = self.outside.base
        return base if type(base) is not _MEMORY or base.base is None else base.base

    def exported(self) -> np.ndarray[Any, Any]:
        """The memory as an array of the world outside, whose base every view of it keeps, and nothing of ours."""
        export = None if self.lease is None else self.lease()
        if export is None:
            block = self.buffer.block
            array = _over(self.array, self.buffer.address, self.dtype, self.shape) if block is None else block.view(self.dtype, self.shape)
            self.lease = ref(array.base)
            return array
        array = np.asarray(export)
        return array if array.dtype == self.dtype and array.shape == self.shape else array.reshape(-1).view(self.dtype).reshape(self.shape)


class Export:
    """The base of an array over memory that is no block; NumPy keeps it, and it keeps whose memory that is."""

    __slots__ = ("__array_interface__", "__weakref__", "owner")

    def __init__(self, owner: np.ndarray[Any, Any], address: int, dtype: np.dtype[Any], shape: Shape) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.str, "data": (address, not owner.flags.writeable),
        }  # fmt: skip


def _over(owner: np.ndarray[Any, Any], address: int, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    return np.asarray(Export(owner, address, dtype, shape))


def _holders(array: np.ndarray[Any, Any]) -> int:
    owner = array.base
    return sys.getrefcount(owner)


_ALONE = _holders(np.empty(1)[...])


def _others_hold(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether other code may reach the memory that a view of NumPy's shows, or must not be given it as it is."""
    owner: Any = array.base
    if not isinstance(owner, _MEMORY) or owner.base is not None or not owner.flags.owndata or not array.flags.aligned:
        return True
    del owner
    return _holders(array) > _ALONE or getweakrefcount(array.base) > 0


def _without_gaps(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same view of memory that is some array's in C order, as ``hand.whole`` wants it."""
    owner = array
    while type(owner.base) is _MEMORY:
        owner = owner.base
    strides = owner.strides
    if not array.size or owner.transpose(sorted(range(owner.ndim), key=lambda axis: -abs(strides[axis]))).flags.c_contiguous:
        return array
    start, end = byte_bounds(array)
    span = _over(array, start, np.dtype(np.uint8), (end - start,))
    return np.ndarray(array.shape, array.dtype, span, array.__array_interface__["data"][0] - start, array.strides)


def adopted(array: np.ndarray[Any, Any]) -> arrays.ndarray:
    """An array over memory of NumPy's, or of an object it got it from: both sides see what the other writes.

    A large one is lent as long as other code can reach the memory; afterwards the memory is its own.
    """
    if array.flags.num >= 0:
        return _adopted(array)
    with warnings.catch_warnings():  # of what is broadcast, where its address is asked for
        warnings.simplefilter("ignore", FutureWarning)
        return _adopted(array)


def _adopted(array: np.ndarray[Any, Any]) -> arrays.ndarray:
    readonly = not array.flags.num & hand.WRITEABLE
    owner = owner_of(array)
    if config.at_hand and array.size <= config.at_hand:
        x = hand.cell(_without_gaps(array), owner)
        x._readonly = readonly
        return x
    if type(owner) is arrays.ndarray and array.size and hand.own_memory(owner) is None and (lent := lend(owner)) is not None:
        offset = layout.geometry(owner)[0] + array.__array_interface__["data"][0] - lent.__array_interface__["data"][0]
        lies = offset, array.strides
        x = viewing.derived(owner, owner.shape, (views.STRIDED, (*lies, array.dtype), array.shape), geometry=lies)
        x._readonly = readonly
        return x
    if not array.size or (devices.gpus is not None and devices.default() != devices.CPU):
        x = conversion.from_numpy(array)
        x._readonly = readonly
        return x
    shape, strides, dtype = array.shape, array.strides, array.dtype
    start = address = array.__array_interface__["data"][0]
    axes = views.memory_order(shape, strides, dtype.itemsize)
    laid = shape if axes is None else tuple([shape[axis] for axis in axes])
    dense = (array if axes is None else array.transpose(axes)).flags.c_contiguous
    if not dense:  # what lies between its elements belongs to the root as well
        start, end = byte_bounds(array)
        whole = all(stride % dtype.itemsize == 0 for stride in strides)
        root_dtype = dtype if whole else np.dtype(np.uint8)
        laid = ((end - start) // root_dtype.itemsize,)
    else:
        root_dtype = dtype
    root: arrays.ndarray = core.Cell.__new__(arrays.ndarray)
    outside = array[...]
    root._node = None
    root._base = root._view = held = Draft(
        buffers.Buffer(_over(outside, start, root_dtype, laid)), outside, array.base is not None, file_of(array) if readonly else None
    )
    root._readonly = readonly
    if dense and axes is None:
        return root
    x = core.Cell.__new__(arrays.ndarray)
    if dense:
        assert axes is not None
        order = [axes.index(axis) for axis in range(len(axes))]
        x._view = views.View(laid, dtype, ((views.AXES, tuple(order), shape),), shape, dtype, None)
    else:
        x._view = views.part(root, (None, (), held.shape), address - start, shape, strides, dtype)
    x._base = root
    x._node = x._stamp = None
    x._readonly = readonly
    return x


def file_of(array: np.ndarray[Any, Any]) -> Any:
    """The map of a file whose elements an array of NumPy's shows; None of all others."""
    at: Any = array
    while isinstance(at, np.ndarray):
        if isinstance(at, np.memmap):
            return at._mmap  # type: ignore[attr-defined]
        at = at.base
    return None


def host(x: Any, reason: str = "__array__") -> np.ndarray[Any, Any]:
    """The value as a NumPy array with the nominal strides; no copy, so callers must not write to it."""
    if type(x) is not arrays.ndarray:
        if type(x) in CLASSES:
            return np.asarray(x.concrete(reason))
        return host(conversion.asarray(x), reason) if not isinstance(x, np.ndarray) else x
    base = x._base
    if type(base) is _MEMORY:
        return base
    root = base if type(base) is arrays.ndarray else x
    held = root._base
    if type(held) is _MEMORY:
        return shown(x, held)
    if held is not None and is_lent(root):
        array = held.array
    else:
        node = arrays.root_node(root)
        if node.op is o.CONST:
            array = np.asarray(node.arg)
        else:
            array = computed(node, reason).array
    if root is x:
        return array
    return shown(x, array)


def shown(x: arrays.ndarray, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what a view shows of its base's memory."""
    return x._view.of(memory)


class _Mark:
    """The key of what a view shows of some memory, which is kept there as long as the view is."""

    __slots__ = ("__weakref__",)


def elements(x: arrays.ndarray) -> np.ndarray[Any, Any] | None:
    """The memory of an array whose value exists in host memory, in its shape and with the nominal strides; None for all others."""
    base = x._base
    if type(base) is _MEMORY:
        return base
    if type(base) is not arrays.ndarray:
        if base is not None:
            return base.array
        node = x._node
        if node is None:  # another thread made it a draft
            return elements(x)
        buffer = node.buffer
        return None if buffer is None else buffer.at_hand
    inner, node = base._base, base._node
    if type(inner) is _MEMORY:
        return shown(x, inner)
    memory = node.buffer if inner is None else inner
    if memory is None:
        return None
    if type(x._view) is views.Keyed:
        array = memory.array if inner is not None else memory.at_hand
        return None if array is None else shown(x, array)
    # Kept with the memory, not with the view: a view that is not read any more must not keep old memory.
    view: views.View = x._view
    kept = memory.views
    if kept is None:
        kept = memory.views = WeakKeyDictionary()
    mark = view.mark
    if mark is None:
        mark = view.mark = _Mark()
    found: np.ndarray[Any, Any] | None = kept.get(mark)
    if found is None:
        array = memory.array if inner is not None else memory.at_hand
        if array is not None:
            found = kept[mark] = view.of(array)
            origin = views.origin_of(view) if config.at_hand and 0 not in view.shape else None
            if origin is not None:
                core.show(x, view, found[...], array, origin)
    return found


PARTIAL_READS = 2
"""Reads of small parts after which a large array that is pending is computed whole."""

SMALL_PART = 16
"""A part of at most one element in so many is small; ``graph/record.h`` has the number, too."""

_NO_ROOM = -(1 << 30)


def partial_read(x: arrays.ndarray, size: int, times: int = 1) -> None:
    """Count ``times`` reads of ``size`` elements each of an array, and compute a large pending one whose small parts are read one by one.

    Each part would else be computed by itself, with all that it comes from, whenever it is used; and is, where memory is too short for the
    whole.
    """
    root = x._base if type(x._base) is arrays.ndarray else x
    if root._base is not None or devices.gpus is not None:
        return
    node = root._node
    if node is None or node.buffer is not None or size * SMALL_PART > prod(node.shape):
        return
    root._partial_reads = min(root._partial_reads + times, PARTIAL_READS)
    if root._partial_reads < PARTIAL_READS:
        return
    try:
        if _is_known(node):
            draft(root)
        else:
            force([node], "parts one by one")
    except MemoryError:
        root._partial_reads = _NO_ROOM
        return
    if root is not x:
        elements(x)


def is_lent(root: arrays.ndarray, own: int = 0) -> bool:
    """Tell whether the memory of a plain array may be written while we look: by code outside, or by a write that is under way.

    ``own`` are the caller's own writes (``core.writing``).
    """
    held = root._base
    if type(held) is not Draft:
        return False
    if root._writers > own:
        return True
    if held.lease is not None and held.lease() is not None:
        return held.file is None
    return held.outside is not None and held.file is None and _others_hold(held.outside)


def private(root: arrays.ndarray) -> None:
    """Let a plain array be a value again, if its memory is not held outside any more: what reads it later need not ask."""
    held = root._base
    if type(held) is Draft and held.file is None and not is_lent(root):
        arrays.root_node(root)


def is_exported(x: arrays.ndarray) -> bool:
    """Tell whether an object outside holds the memory, or a write is under way; that an address was told is no reason, as in NumPy."""
    root = x._base if type(x._base) is arrays.ndarray else x  # whose order of axes is another one
    held = root._base
    if type(held) is not Draft or held.pinned is None:
        return is_lent(root)
    with forking.graph:
        held.pinned = None
        found = is_lent(root)
        held.pinned = held.exported()
    return found


def lend(x: arrays.ndarray, pinned: bool = False) -> np.ndarray[Any, Any] | None:
    """The memory of an array for the world outside: writable where the array is, and seen by both sides as NumPy's arrays see each other's.

    What is pending is computed; where another cell or a pending operation holds the value, the array gets memory of its own.  As long as a
    NumPy array over the memory lives, the array is what the memory holds; ``pinned``: as long as the array itself lives, because its
    address is told.  None for values that are on a device.
    """
    root = x._base if type(x._base) is arrays.ndarray else x
    memory = hand.own_memory(root)
    if memory is None:
        memory = _lent(root, pinned)
        if memory is None:
            return None
    else:
        core.lend(root, pinned)
        if pinned and memory.base is None:
            root._base = memory = memory[...]  # which is not the array's own, and never let go
    found = memory[...] if root is x else shown(x, memory)
    if x._readonly is not False:
        found.flags.writeable = False
    return found


def _lent(root: arrays.ndarray, pinned: bool) -> np.ndarray[Any, Any] | None:
    while True:
        held, node = root._base, root._node
        if held is None and not _is_known(node):
            force([node], "__array__")  # before the lock is taken
        del node
        with forking.graph:
            held, node = root._base, root._node
            if held is None:
                if not _is_known(node):
                    continue  # another thread wrote
                if node.buffer is not None and node.buffer.place is not None:
                    return None
                del node  # which only the cell shall hold
                held = _drafted(root, lent=True)  # lent from the beginning
                if held is None:
                    continue  # another thread wrote
                array: np.ndarray[Any, Any] = held.exported()
                if not pinned:
                    held.pinned = None
                return array
            if type(held) is _MEMORY:
                return held
            array = held.exported()
            if pinned:
                held.pinned = array
            return array


def _is_known(node: Node) -> bool:
    """Tell whether a value exists, or is one number everywhere."""
    sources = node.src  # before the operation is looked at: see ``build.is_filled``
    return node.buffer is not None or node.op is o.CONST or (node.op is o.EXPAND and sources[0].op is o.CONST)


def written(x: arrays.ndarray, node: Node) -> bool:
    """Put a new value where others see it, into memory that is lent or a small array's; tells whether it was put there."""
    base = x._base
    root: arrays.ndarray = base if type(base) is arrays.ndarray else x
    if type(root._base) is not _MEMORY and not is_lent(root):
        return False
    value = host(arrays.wrap(node), "shared memory")
    with core.writing(x):
        if root._base is None:  # no array is left that shows it
            return False
        memory = elements(x)
        assert memory is not None
        memory[...] = value
    return True


def published(root: arrays.ndarray) -> Node:
    """The node of an array that was being filled; its memory is not written again, or it is a copy."""
    while True:
        held, node = root._base, root._node
        if held is None:  # another thread was here first
            assert node is not None
            return node
        if type(held) is _MEMORY:
            return hand.captured(root)
        if held.file is not None:
            return _mapped(held)
        if not is_lent(root):
            taken = _taken_back(root, held)
            if taken is not None:
                return taken
        with forking.graph:
            if root._base is held and is_lent(root):
                return _snapshot(held)


def shown_now(x: arrays.ndarray) -> Node | None:
    """A leaf with what a view shows of memory that is lent, has gaps, or is much more, if that is less than all of it; else None."""
    root: arrays.ndarray = x._base
    held = root._base
    if type(held) is not Draft:
        return None
    size, whole = prod(x._view.shape), prod(held.shape)
    if size >= whole:
        return None
    few = size <= FEW and size <= whole >> 2 and config.at_hand  # a copy, so that the rest stays a draft
    if not few and not is_lent(root) and (held.outside is None or x._view.path[0][0] is not views.STRIDED):
        return None
    memory = elements(x)
    return None if memory is None else _copied(memory, held.buffer.device)


def stand_in(x: Any) -> arrays.ndarray | None:
    """An array over memory that is lent, for what is computed before the call returns and needs no copy; None where nothing large is lent.

    What it gives is to be computed at once (``scalars.force``), while no code outside can write.
    """
    held = x._base if type(x) is arrays.ndarray else None
    if type(held) is not Draft or devices.gpus is not None:
        return None
    if prod(held.shape) * held.dtype.itemsize < pressure.COUNTED_FROM or not is_lent(x):
        return None
    node = Node(o.BUFFER, (), None, held.dtype, held.shape)
    node.buffer = held.buffer.retyped(held.dtype, held.shape)  # of this program alone: nothing is remembered of it
    return arrays.wrap(node)


def _copied(memory: np.ndarray[Any, Any], device: str | None) -> Node:
    buffer = _empty(memory.shape, memory.dtype)
    buffer.array[...] = memory
    return build.leaf(buffer if device is None else buffer.at_home(device))


def _taken_back(root: arrays.ndarray, held: Draft) -> Node | None:
    """Make a draft the array's value, unless it is being written."""
    value = held.buffer
    owner = None if held.outside is None else held.outside.base
    if type(owner) is _MEMORY and owner.base is None and owner.flags.carray and owner.nbytes == value.nbytes:
        value = buffers.Buffer(owner.reshape(-1).view(held.dtype).reshape(held.shape))  # of which other holders can be counted
    node = build.leaf(value)
    return node if core.exchange(root, held, None, None, None, node) else None


def _mapped(held: Draft) -> Node:
    """A leaf over a part of a file that is read wherever it is computed with."""
    node = None if held.snapshot is None else held.snapshot()
    if node is None or node.shape != held.shape or node.dtype != held.dtype:
        node = conversion.mapped(held.array, held.file)
        held.snapshot = ref(node)
    return node


def _snapshot(held: Draft) -> Node:
    """A leaf with what lent memory holds now: the last one where nothing was written since, which only a look at the memory can tell."""
    node = None if held.snapshot is None else held.snapshot()
    kept = None if node is None else node.buffer
    if kept is not None and kept.place is None and kept.shape == held.shape and kept.dtype == held.dtype and _same(kept.array, held.array):
        assert node is not None
        return node
    node = _copied(held.array, held.buffer.device)
    held.snapshot = ref(node)
    return node


def _same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Tell whether two arrays of one dtype and shape, in C order, hold the same bytes."""
    x, y = one.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8)
    words = x.size & -8
    if bytes(x[words:]) != bytes(y[words:]):
        return False
    p, q = x[:words].view(np.uint64), y[:words].view(np.uint64)
    return not any((p[at : at + COMPARED] != q[at : at + COMPARED]).any() for at in range(0, p.size, COMPARED))


def draft(root: arrays.ndarray, copy: bool = True) -> np.ndarray[Any, Any] | None:
    """Memory of a plain array that may be written now, because nothing else shows it.

    It is the array's own where no other cell and nothing pending refers to its value; else a copy, or None if none is wanted.
    """
    memory = hand.own_memory(root)
    if memory is not None:
        return memory
    while True:
        held = root._base
        if type(held) is _MEMORY:
            return held
        if held is None:
            held = _drafted(root, copy)
        if held is not None:
            found: np.ndarray[Any, Any] = held.array
            return found
        if not copy:
            return None


def _drafted(root: arrays.ndarray, copy: bool = True, lent: bool = False) -> Draft | None:
    """Make a plain array a draft, over its own memory if nothing but the cell leads there; None where another thread was quicker.

    Without ``copy`` also where the memory is not its own.
    """
    node = root._node
    if node is None:
        return None
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
        with forking.graph:  # who else looks whether the memory is his alone waits
            if buffer.place is None and (buffer.exclusive() or buffer.alone()):
                held = Draft(buffer.retyped(buffer.dtype, buffer.shape))
                if lent:
                    held.pinned = held.exported()
                if core.exchange(root, None, node, held, held, None, _NODE_ALONE):
                    return held
        if not copy:
            return None
        old = buffer.array
        device = buffer.device
        buffer = _empty(old.shape, old.dtype)
        buffer.array[...] = old
        if device is not None:
            buffer = buffer.at_home(device)
    held = Draft(buffer)
    if lent:
        held.pinned = held.exported()
    return held if core.exchange(root, None, node, held, held, None) else None


def left_behind(root: arrays.ndarray) -> arrays.ndarray:
    """Give the views of a plain array an array of their own, with its value and memory, for it is to show something else."""
    other: arrays.ndarray = core.Cell.__new__(arrays.ndarray)
    other._readonly = root._readonly
    showing = [x for x in core.of_types(gc.get_referrers(root), (arrays.ndarray,)) if getattr(x, "_base", None) is root]
    with forking.graph:
        held = root._base
        other._node, other._base = root._node, held
        if held is not None:
            other._view = root._view
        for x in [*showing, *core.parts_of(root)]:
            x._view = x._view  # what a part is called is made up by whose it is
            x._base = other
    return other


def become(x: arrays.ndarray, array: np.ndarray[Any, Any]) -> None:
    """Let a plain array show a NumPy array that has no other holder; its views keep the memory that it had."""
    if hand.own_memory(x) is None:
        left_behind(x)
    made = conversion.from_numpy(array, copy=False)
    x._node = None
    for name in ("_base", "_node", "_view", "_stamp"):
        if hasattr(made, name):
            setattr(x, name, getattr(made, name))


def changes_alone(root: arrays.ndarray, x: arrays.ndarray, node: Node) -> bool:
    """Tell whether ``x`` is a part of an array that exists in host memory, and nothing refers to its value but what ``node`` is made of.

    The part leaves enough alone that a kernel, which writes what it makes around a copy of that, does more.
    """
    if not config.at_hand or devices.gpus is not None or config.eager or node.err.eager or build.is_filled(node):
        return False
    if type(root._base) is _MEMORY or 4 * prod(x.shape) > 3 * root.size:
        return False
    if root._base is not None:
        return True
    old = root._node
    buffer = None if old is None else old.buffer  # None: another thread made it a draft
    if old is None or buffer is None or buffer.place is not None or buffer.shared:
        return False
    readers = _readers(old, node)
    del old  # which is counted
    return _holders_of_node(root) - readers <= _CELL_ALONE


def _readers(old: Node, node: Node) -> int:
    """Count how often what is computed for ``node`` reads an old value; -1 for much that is pending."""
    todo, seen, readers = [node], {node}, 0
    while todo:
        for source in todo.pop().src:
            if source is old:
                readers += 1
            elif source.src and source not in seen:
                if len(seen) == READERS:
                    return -1
                seen.add(source)
                todo.append(source)
    return readers


def _holders_of_node(root: Any) -> int:
    return sys.getrefcount(root._node)


_sample = core.Cell()
_sample._node = object()
_CELL_ALONE = _holders_of_node(_sample)


def _fewest(x: Any) -> int:
    """Count the references to a node that its cell and a function that asks for another state have, as ``core.exchange`` sees them."""
    node = x._node
    holders = 0
    while not core.exchange(x, None, node, None, None, None, holders):
        holders += 1
    return holders


_sample._base = _sample._view = None
_NODE_ALONE = _fewest(_sample)


def _empty(shape: Shape, dtype: np.dtype[Any]) -> buffers.Buffer:
    """Memory that can be recognised as one's own later on, where it is large enough for that to matter."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < DRAFT_BYTES:
        return buffers.Buffer(np.empty(shape, dtype))
    return buffers.Buffer.of_block(allocator.allocate(nbytes), dtype, shape)


def pending() -> list[Node]:
    """Return the nodes of arrays and scalars that wait to be computed, oldest first; the garbage collector knows the objects."""
    found: dict[Node, None] = {}
    if not _native.pending():
        return []
    for x in core.of_types(gc.get_objects(), (arrays.ndarray, *CLASSES)):
        # Another thread may have got no further than to make the object.
        if type(getattr(x, "_base", None)) is not arrays.ndarray:
            node = getattr(x, "_node", None)
            if node is not None and node.buffer is None and node.src:
                found[node] = None
    return sorted(found, key=lambda node: node.number)


core.register_drafts(Draft)
