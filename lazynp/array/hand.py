"""Values in memory: the memory of small arrays, read and written where it lies.

In: an array that exists in host memory and has at most ``config.at_hand`` elements.  Out: that memory, its parts, cells of ours over what
NumPy makes of it.  Promise: sizes, and whether the values exist, decide, so every run of a program takes the same way.  Every holder
of such memory, here or outside, sees every write, for what a recorded expression captures is copied.  What is computed of it: ``calls``;
which of NumPy's functions stand before ours: ``dispatch``.

A cell is in memory when its ``_base`` is a NumPy array: the memory itself, of which views of the cell are NumPy's views.  Its ``_view`` is
then whose memory that is (what ``base`` shows), its ``_node`` is nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from math import prod
from operator import setitem
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, FLOAT64, INT64, NATIVE
from lazynp.graph.floating import at_users_line, heard, listen_to_all, stop, tell_here
from lazynp.graph.node import Node
from lazynp.scalars import CLASSES, OF_TYPE
from lazynp.values import config
from lazynp.values.loading import late
from lazynp.values.nesting import MOST_AXES, too_deep

if TYPE_CHECKING:
    from lazynp import arrays, conversion, protocols, storage
    from lazynp.graph import build
else:
    arrays, conversion, build, protocols, storage = late("arrays", "conversion", "graph.build", "protocols", "storage")

Memory = np.ndarray[Any, Any]

_new = core.Cell.__new__
_MEMORY: Final = np.ndarray
NUMBERS: Final = frozenset({bool, int, float, complex, *OF_TYPE})
"""Operands that NumPy takes as they are."""
AS_THEY_ARE: Final = frozenset({*NUMBERS, str, type(None), slice, type(Ellipsis), type, type(np._NoValue)})
"""Arguments that NumPy takes as they are."""
CHARS: Final = frozenset(dtype.char for dtype in NATIVE) | frozenset("lLqQ")
"""Of the dtypes that arrays of ours have."""
REAL: Final = frozenset(dtype for dtype in NATIVE if dtype.kind != "c")
_INTEGERS: Final = frozenset({int, np.int64, core.number_classes_of[np.int64]})
PLAIN_PARTS: Final = frozenset({int, slice, type(None), type(Ellipsis), *[kind for kind in OF_TYPE if issubclass(kind, np.integer)]})
"""Types of what a key is made of that NumPy takes as it is."""


def is_plain(key: Any) -> bool:
    """Tell whether a key has only parts that need no look at the array."""
    return type(key) in PLAIN_PARTS or (type(key) is tuple and PLAIN_PARTS.issuperset(map(type, key)))


EXACT: Final = {
    float: FLOAT64, np.float64: FLOAT64, core.number_classes_of[np.float64]: FLOAT64, int: INT64, np.int64: INT64,
    core.number_classes_of[np.int64]: INT64, bool: BOOL, np.bool_: BOOL,
}  # fmt: skip
"""Numbers that an array of this dtype holds as they are, or NumPy says why not."""
_SEQUENCES: Final = frozenset({list, tuple})
WRITEABLE: Final = 0x400
"""The write flag among all; asked for the flag alone, NumPy warns of what ``broadcast_arrays`` gave."""
COPIED: Final = 1 << 20
"""Bytes up to which a large value that others hold too is copied for a small write."""


# Cells ------------------------------------------------------------------------------------------------------------------------


def cell(memory: Memory, owner: Any = None) -> arrays.ndarray:
    """The cell of memory that nothing else refers to, or that NumPy's views of ``owner`` share."""
    x: arrays.ndarray = _new(arrays.ndarray)
    x._base = memory
    x._view = owner
    x._node = None
    x._readonly = not memory.flags.num & WRITEABLE
    return x


def owner_of(x: arrays.ndarray) -> Any:
    """The array that the memory of ``x``, its ``_base``, belongs to; of memory that is no array's (bytes, a map) ``x`` itself."""
    owner = x._view
    return owner if type(owner) is arrays.ndarray or type(owner) is _MEMORY else x


def memory_of(x: arrays.ndarray) -> Memory | None:
    """Return what an array holds, if that is in memory; not to be written, for it may be a part of a large array."""
    base = x._base
    return base if type(base) is _MEMORY else _found(x)


def own_memory(x: arrays.ndarray) -> Memory | None:
    """The memory of a cell whose values are in memory, to be written; None for all others."""
    core.settle()
    base = x._base
    if type(base) is not _MEMORY:
        _found(x)
        base = x._base
        if type(base) is not _MEMORY:
            return None
    return base


def _found(x: arrays.ndarray) -> Memory | None:
    """``memory_of`` an array that is not known to be in memory; if it is small and exists it is from now on."""
    base = x._base
    limit = config.at_hand
    node = x._node
    if base is None:
        if node is None:  # another thread made it a draft
            return _found(x)
        buffer = node.buffer
        if buffer is None:
            sources = node.src  # before it is looked at: another thread may publish it
            if not _is_fill(node) or not limit or prod(node.shape) > limit:
                return None  # pending, as most operands here are
            return _taken(x, base, node, np.full(node.shape, sources[0].arg, node.dtype), None)
        if not limit or prod(node.shape) > limit:
            return None
        found = buffer.at_hand
        return None if found is None or buffer.device is not None else _taken(x, base, node, found.copy(), None)
    if not limit:
        return None
    if type(base) is not arrays.ndarray:
        return None if prod(base.shape) > limit or base.buffer.device is not None else _taken(x, base, node, base.array, None)
    view = x._view
    if prod(view.shape) > limit:
        return None
    inner = base._base
    if type(inner) is not _MEMORY and (prod(base.shape) > limit or (inner := _found(base)) is None):
        found = storage.elements(x)
        whole = base._node
        return _part_of_fill(x, whole) if found is None and whole is not None else found
    return _taken(x, base, node, storage.shown(x, inner)[...], view.owner)


def _part_of_fill(x: arrays.ndarray, node: Node) -> Memory | None:
    """Return what a view shows of a large array that is one number everywhere, and has no memory yet; None for all others."""
    sources = node.src
    if not _is_fill(node):
        return None
    view = x._view
    if not view.root_dtype == view.dtype == node.dtype:
        return None
    strides = x.strides
    order = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
    lengths = [view.shape[axis] if strides[axis] else 1 for axis in order]  # what is broadcast has no say in the order of a result
    memory = np.full(lengths, sources[0].arg, node.dtype).transpose([order.index(axis) for axis in range(len(order))])
    return memory if 0 not in strides else np.broadcast_to(memory, view.shape)


def _is_fill(node: Node) -> bool:
    sources = node.src  # before the operation is looked at: see ``build.is_filled``
    return node.op is o.EXPAND and sources[0].op is o.CONST


def _taken(x: arrays.ndarray, base: Any, node: Any, memory: Memory, owner: Any) -> Memory | None:
    """Give ``x`` its memory; its node stays for threads that are on the way to it.  None where another thread is writing."""
    if x._readonly is True:
        memory.flags.writeable = False
    core.lend(x)  # until the core sees that there is no other reference to the memory
    if core.exchange(x, base, node, memory, owner, node):
        return memory
    found = x._base
    return found if type(found) is _MEMORY else None if found is base is not None else _found(x)


def captured(x: arrays.ndarray) -> Node:
    """A leaf with what the memory holds now, for an expression that is recorded."""
    memory: Memory = x._base
    if not memory.shape:
        return Node(o.CONST, (), memory[()], memory.dtype, ())
    if is_much(memory) and let_go(x, 1):
        found: Node = x._node
        return found
    return build.buffer(np.array(memory, order="C", copy=True))


def is_much(memory: Memory) -> bool:
    """Tell whether memory is so large that copying it, or computing something costly of it by NumPy, is felt."""
    return memory.size > config.costly_above


def rooted(x: arrays.ndarray) -> tuple[arrays.ndarray, int]:
    """A cell in memory, over C-contiguous memory that ``x`` shows a part of, and where in it ``x`` begins, in bytes."""
    return (x, 0) if x._base.flags.c_contiguous else whole(x)


def whole(x: arrays.ndarray) -> tuple[arrays.ndarray, int]:
    """``rooted``, with all of the memory."""
    memory: Memory = x._base
    owner = memory
    while type(owner.base) is _MEMORY:
        owner = owner.base
    laid = owner.transpose(sorted(range(owner.ndim), key=lambda axis: -abs(owner.strides[axis])))
    start: int = memory.__array_interface__["data"][0] - laid.__array_interface__["data"][0]
    return (x, 0) if laid is memory else (cell(laid, owner_of(x)), start)


def result(value: Any, given: Sequence[arrays.ndarray] = ()) -> Any:
    """NumPy's answer as the caller of lazynp expects it; ``given`` are the cells it was computed from."""
    kind = type(value)
    if kind is _MEMORY:
        for made in given:
            if value is made._base:
                return made
        if value.dtype not in NATIVE:
            return value
        base = value.base
        if base is None:
            if value.size > config.at_hand:
                return conversion.from_numpy(value, copy=False)
            made = _new(arrays.ndarray)  # a cell, spelled out
            made._base = value
            made._view = made._node = None
            made._readonly = False
            return made
        for x in given:
            memory = x._base
            if type(memory) is _MEMORY and (base is memory or base is memory.base):
                return cell(value, owner_of(x))
        if value.size > config.at_hand:
            return conversion.from_numpy(value) if given else storage.adopted(value)  # it shows memory that belongs to no cell here
        return cell(value, base)
    if kind is tuple:
        return tuple([result(item, given) for item in value])
    if kind is list:
        return [result(item, given) for item in value]
    if isinstance(value, tuple) and hasattr(kind, "_make"):
        return kind._make([result(item, given) for item in value])
    return core.number(value)


# Elements ---------------------------------------------------------------------------------------------------------------------


def read(x: arrays.ndarray, memory: Memory, key: Any) -> Any:
    """``x[key]`` of an array in memory."""
    at = key._base if type(key) is arrays.ndarray else None
    found = memory[at if type(at) is _MEMORY else _key(key)]
    if type(found) is not _MEMORY:
        return core.number(found)
    base = found.base
    if base is None and found.size <= config.at_hand:
        made: arrays.ndarray = _new(arrays.ndarray)  # a cell, spelled out
        made._base = found
        made._view = made._node = None
        made._readonly = False
        return made
    if base is not None and (base is memory or base is memory.base):
        return cell(found, owner_of(x))
    if found.size > config.at_hand:
        return conversion.from_numpy(found, copy=base is not None)
    return cell(found, base)  # gathered, perhaps in another order


def _key(part: Any, depth: int = 0) -> Any:
    """A key, or a part of one, as NumPy takes it."""
    kind = type(part)
    if kind is arrays.ndarray:
        base = part._base
        return base if type(base) is _MEMORY else storage.host(part, "index")
    if kind in CLASSES:
        return part.concrete("index")
    if kind is tuple or kind is list:
        if PLAIN_PARTS.issuperset(map(type, part)):
            return part
        if depth > MOST_AXES:
            raise too_deep()
        return kind([_key(item, depth + 1) for item in part])
    return part


def gathered(x: arrays.ndarray, key: Any) -> Any:
    """``x[key]`` of a large array that exists, at few places: integer arrays in memory; else ``NotImplemented``."""
    limit = config.at_hand
    memory = storage.elements(x) if limit else None
    if memory is None:
        return NotImplemented
    places: list[Any] = []
    found = []
    axis = 0
    rest = 1
    for part in key if type(key) is tuple else (key,):
        kind = type(part)
        if kind is arrays.ndarray:
            part = memory_of(part)
            kind = type(part)
        elif kind is list and _INTEGERS.issuperset(map(type, part)):
            part = np.array(part, np.intp)
            kind = _MEMORY
        if kind is _MEMORY and part.dtype.kind in "iu":
            places.append(part)
        elif kind is slice and axis < memory.ndim:
            rest *= memory.shape[axis]
        elif kind not in _INTEGERS:
            return NotImplemented
        axis += 1
        found.append(part)
    if not places:
        return NotImplemented
    try:
        if rest * prod(memory.shape[axis:]) * np.broadcast(*places).size > limit:
            return NotImplemented
    except ValueError:
        return NotImplemented
    value = memory[tuple(found)]
    return cell(value) if type(value) is _MEMORY else core.number(value)


def write(memory: Memory, key: Any, value: Any) -> None:
    """``x[key] = value`` where the array is in memory."""
    at = key._base if type(key) is arrays.ndarray else None
    key = at if type(at) is _MEMORY else _key(key)
    kind = type(value)
    if kind is arrays.ndarray:
        at = value._base
        value = at if type(at) is _MEMORY else storage.host(value, "an operand in memory")
        if value.dtype is memory.dtype:
            memory[key] = value
            return
    elif kind in CLASSES:
        value = value.concrete("an operand in memory")
    elif kind is list or kind is tuple:
        value = protocols.to_host(value, "an operand in memory")
    elif EXACT.get(kind) is memory.dtype or (kind is int and memory.dtype is FLOAT64):
        memory[key] = value  # nothing that could be told of
        return
    before = listen_to_all()
    try:
        if memory.dtype.kind != "c" and getattr(getattr(value, "dtype", None), "kind", "") == "c":
            at_users_line(setitem, (memory, key, value), {})
        else:
            memory[key] = value
    finally:
        stop(before)
        if heard:
            tell_here()


def listed(values: Any, dtype: Any) -> Any:
    """Make an array of a list of numbers, or of such lists; None of anything else, and where a conversion could warn."""
    if type(values) not in _SEQUENCES or not (dtype is None or dtype is float) or len(values) > config.at_hand:
        return None
    if not NUMBERS.issuperset(map(type, values)):
        if not _SEQUENCES.issuperset(map(type, values)) or sum(map(len, values)) > config.at_hand:
            return None
        for row in values:
            if not NUMBERS.issuperset(map(type, row)):
                return None
    memory = np.array(values, dtype)
    return cell(memory) if memory.dtype.char in CHARS else memory


# Writes -----------------------------------------------------------------------------------------------------------------------


def let_go(x: arrays.ndarray, others: int) -> bool:
    """Take unshared memory for a recorded value, so that what changes it next is recorded, too; tells whether it did.

    ``others`` are the caller's own references to the memory; a view or an export of it would be one more.
    """
    memory = x._base
    if type(memory) is not _MEMORY or memory.base is not None or not (memory.flags.carray and memory.shape):
        return False
    if sys.getrefcount(memory) > others + 3:  # the cell's, this function's, and what is asked
        return False
    return core.exchange(x, memory, None, None, None, build.buffer(memory), others + _own_references())


@functools.cache
def _own_references() -> int:
    """Count the references that ``core.exchange`` sees to memory that only ``let_go`` knows."""
    x = core.Cell()
    x._base = memory = np.empty(1)
    x._view = x._node = None
    node = build.buffer(memory)
    holders = 0
    while not core.exchange(x, memory, None, None, None, node, holders):
        holders += 1
    return holders


def writable(x: arrays.ndarray, large: bool = False) -> Memory | None:
    """Memory that a write to ``x`` goes to now: its own, its part of a large array that is not shared, or what is lent.

    The caller holds ``core.writing(x)``.

    ``large``: also a large part, where the array exists: with nothing recorded to share a kernel with, NumPy's loop is the shortest way.
    """
    memory = own_memory(x)
    if memory is not None:
        return memory
    base = x._base
    if base is not None and storage.is_lent(base if type(base) is arrays.ndarray else x, own=1):
        return None if x._readonly else storage.elements(x)
    if type(base) is not arrays.ndarray or not config.at_hand or x._readonly:
        return None
    small = prod(x._view.shape) <= config.at_hand
    return storage.elements(x) if (small or large) and _has_own_memory(base, small) else None


def _has_own_memory(root: arrays.ndarray, small: bool = True) -> bool:
    """Tell whether writes may go to a large array's memory; for small ones it gets some of its own where that costs no more than it cost
    NumPy."""
    held, node = root._base, root._node
    if held is not None:
        return True
    fill = _is_fill(node)
    if node.buffer is None and not (fill and small):
        return False
    copy = small and (fill or build.size(node) * node.dtype.itemsize <= COPIED)
    del node  # the memory is the array's own if there is no other reference to it
    return storage.draft(root, copy=copy) is not None


def written(x: arrays.ndarray, root: arrays.ndarray, key: Any, lengths: Sequence[int], value: Any) -> bool:
    """Do ``x[key] = value`` on a small part of a large array; tells whether it did: the memory must be its own.

    The value is in memory, or computed now.  A large part takes numbers alone: nothing could be computed where they are stored.
    """
    limit = config.at_hand
    if not limit:
        return False
    small = prod(lengths) <= limit
    kind = type(value)
    held, node = root._base, root._node
    exists = held is None and node.buffer is not None
    del held, node  # the memory is the array's own if there is no other reference to it
    if small and exists and (kind is arrays.ndarray or kind in CLASSES):
        _computed(value, kind)
    if kind is arrays.ndarray:
        if not small or memory_of(value) is None:
            return False
    elif kind not in NUMBERS and (kind not in CLASSES or value._value is None):
        return False
    with core.writing(x):
        memory = storage.elements(x) if _has_own_memory(root, small) else None
        if kind is arrays.ndarray:
            value = memory_of(value)  # which may be a part of what is written
        if memory is None or value is None:
            return False
        write(memory, key, value)
    return True


def owned_first(root: arrays.ndarray) -> bool:
    """Have the memory of a large array be its own, of which tapes are about to write a large part; tells whether it is."""
    held, node = root._base, root._node
    if held is not None:
        return True
    if node.buffer is None and not _is_fill(node):
        return False
    del held, node  # the memory is the array's own if there is no other reference to it
    return storage.draft(root, copy=False) is not None


def _computed(value: Any, kind: type) -> None:
    """Compute what is small and pending, as a write to an array in memory does."""
    if kind is not arrays.ndarray:
        value.concrete("an operand in memory")
    elif memory_of(value) is None and prod(value.shape) <= config.at_hand:
        storage.host(value, "an operand in memory")
