"""``x[key] = value``.

In: an array, a key and a value as NumPy takes them.  Out: a new value of the array that owns the memory.  Promise: a write through a
basic key records a STORE and computes nothing; a mask with one value records a WHERE.  Everything else goes through memory that only this
array shows, or is done on the GPU that the array lives on (``scattering``).  No write ever rebinds silently, and conversions fail as
NumPy's do.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp import arrays
from lazynp.array import core
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, FLOAT64, NATIVE
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node, Shape
from lazynp.scalars import CLASSES, OF_TYPE
from lazynp.values import config
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion, storage, viewing, views
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.namespace import indexing
    from lazynp.views import Region
else:
    hand, conversion, build, indexing, storage, viewing, views = late(
        "array.hand", "conversion", "graph.build", "namespace.indexing", "storage", "viewing", "views"
    )

DRAFT_RUN = 8
"""Arrays larger than ``DRAFT_BYTES`` that others hold too wait for this many element writes in a row before they are copied."""

_PLAIN = frozenset({bool, int, float, complex, *OF_TYPE})
_NARROW = "efF"  # dtypes too small for some float
_BASIC_PARTS = frozenset({int, slice, type(None), type(Ellipsis)})


def is_concrete(key: Any, value: Any) -> bool:
    """Tell whether key and value of a write are plain Python or NumPy scalars and slices, which need no graph."""
    kind = type(value)
    if kind not in _PLAIN and (kind not in CLASSES or value._value is None):
        return False
    if type(key) is tuple:
        return _BASIC_PARTS.issuperset(map(type, key))
    return type(key) in _BASIC_PARTS


def write(x: arrays.ndarray, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    if x._readonly:
        raise ValueError("assignment destination is read-only")
    shape, found = indexing.located(x, key)
    if found is None:
        _write_advanced(x, key, value)
        return
    region, lengths, axes, element, _ = found
    base = x._base
    root = base if type(base) is arrays.ndarray else x
    if element:
        if _write_element(x, root, region, value):
            return
        kind = type(value)
        if isinstance(value, (list, tuple)) or ((kind is arrays.ndarray or isinstance(value, np.ndarray)) and value.shape):
            # An element takes no sequence; NumPy says so in words that depend on the dtype.
            np.empty(1, x.dtype)[0] = np.zeros(value.shape, value.dtype) if type(value) is arrays.ndarray else value
    if devices.gpus is None and root._base is None and prod(lengths) * storage.SMALL_PART <= root.size and _is_run(root._node):
        storage.draft(root)
    if config.at_hand and hand.written(x, root, key, lengths, value):
        return
    if root._base is not None and storage.is_lent(root):
        with core.writing(x):
            hand.write(memory(x), key, value)
        return
    if root is x and (type(value) is not arrays.ndarray or value._base is not root):
        # A plain array, the usual case: one STORE.
        dtype = x.dtype
        if len(axes) == len(lengths) and views.NEW not in axes:
            node = fitted(value, lengths, dtype)
        else:
            node = fitted(value, tuple([1 if axis < 0 else lengths[axis] for axis in axes]), dtype)
            node = views.put(None, lengths, (views.AXES, axes, node.shape), node)
        if devices.gpus is not None:
            node = devices.gpus.kept(node, arrays.root_node(x), lengths == x.shape)
        if arrays.change(x, lambda old: views.stored(old, shape, dtype, region, node)):
            return
    view = viewing.view_key(x, shape, region, lengths, axes)
    if type(value) is arrays.ndarray and value._base is root and value._view.path == view._view.path and value.dtype == view.dtype:
        return  # x[key] += ...: the view was written already and is put back where it lies
    if root is not x:
        x._node = x._stamp = None  # made from the old value, which need not live on
    view._write(fitted(value, view.shape, view.dtype))


def _write_element(x: arrays.ndarray, root: arrays.ndarray, region: Region, value: Any) -> bool:
    """Put one known value into memory that only this array shows, where that pays; tells whether it did."""
    kind = type(value)
    if kind in CLASSES:
        value = value._value
        if value is None:
            return False
    elif kind is arrays.ndarray:
        value = _known(value)
        if value is None:
            return False
    elif kind not in _PLAIN:
        return False
    with core.writing(x):
        node, held = root._node, root._base
        while held is None and node is None:  # another thread exchanged them
            node, held = root._node, root._base
        if held is None:
            worth, exists = _worth_draft(node), node.buffer is not None
            del node  # the memory is the array's own if nothing else holds it
            if worth:
                storage.draft(root)
            elif not exists or storage.draft(root, copy=False) is None:
                return False
        memory = storage.elements(x)
        assert memory is not None
        place = tuple([start for start, _ in region])
        if memory.dtype.char in _NARROW:
            at_once(memory.__setitem__, place, value)
        else:
            memory[place] = value
    return True


def _known(x: arrays.ndarray) -> Any:
    """Return what a 0-d array holds, as NumPy's; None where that has to be computed first."""
    if x._base is not None or x.shape:
        return None
    node = x._node
    if node is None:  # another thread made it a draft
        return None
    if node.op is o.CONST:
        return np.array(node.arg, node.dtype)
    buffer = node.buffer
    return None if buffer is None else buffer.array


def _worth_draft(node: Node) -> bool:
    """Tell whether an array should get memory of its own for element writes: it is small and known, or written again and again."""
    sources = node.src  # before the operation is looked at: see ``build.is_filled``
    if node.buffer is not None or (node.op is o.EXPAND and sources[0].op is o.CONST):
        return build.size(node) * node.dtype.itemsize <= storage.DRAFT_BYTES
    return _is_run(node)


def _is_run(node: Node | None) -> bool:
    """Tell whether a value that waits is one that was written again and again, through views or not; none is that of a draft."""
    run = 0
    if node is None:  # another thread has made the array a draft meanwhile
        return False
    while (op := node.op) is o.STORE or op is o.RESHAPE or op is o.PERMUTE:
        sources = node.src
        if not sources or node.buffer is not None:
            return False
        node = sources[0]
        run += op is o.STORE
        if run == DRAFT_RUN:
            return True
    return False


def fitted(value: Any, shape: Shape, dtype: np.dtype[Any]) -> Node:
    """``value`` as a node of ``shape`` and ``dtype``, converted and broadcast as an assignment does; raises NumPy's errors."""
    kind = type(value)
    if kind in CLASSES and value._value is None and dtype.kind in "iu" and not np.can_cast(value.dtype, dtype):
        value.concrete("checked conversion")  # a number that does not fit is an error
    if kind in _PLAIN or (kind in CLASSES and value._value is not None):
        if kind is float and dtype is FLOAT64:
            return build.expand(Node(o.CONST, (), np.float64(value), dtype, ()), shape)
        memory = np.empty((), dtype)
        # The conversion NumPy makes on assignment: out-of-range integers, complex to real and nan to integer are errors or warnings here.
        at_once(memory.__setitem__, ... if shape else (), value if kind in _PLAIN else value._value)
        return build.expand(build.const(memory[()], dtype), shape)
    if kind is not arrays.ndarray and kind not in CLASSES:
        value = _foreign(value, shape, dtype)
    node = arrays.node_of(value)
    have = node.shape
    extra = len(have) - len(shape)
    if extra > 0 and have[:extra] == (1,) * extra:
        node = build.reshape(node, have[extra:])
        have = node.shape
    if len(have) > len(shape) or any(n != m and n != 1 for n, m in zip(have[::-1], shape[::-1], strict=False)):
        given, wanted = (str(s).replace(", ", ",") for s in (value.shape, shape))
        raise ValueError(f"could not broadcast input array from shape {given} into shape {wanted}")
    if node.dtype != dtype:
        node = conversion.converted(node, dtype)
    return build.expand(build.copied(node), shape)


def _foreign(value: Any, shape: Shape, dtype: np.dtype[Any]) -> arrays.ndarray:
    """Anything else that can be assigned: NumPy arrays, sequences, objects and strings that convert."""
    if isinstance(value, np.ndarray) and value.dtype in NATIVE:
        found = conversion.asarray(value)
        if type(found) is arrays.ndarray:
            return found
    if isinstance(value, (list, tuple)) and conversion.holds_ours(value):
        found = conversion.asarray(value)
        if type(found) is arrays.ndarray:
            return found
    given = np.shape(value)
    # A sequence nested deeper than the array has axes is NumPy's error to word.
    memory = np.empty(given if len(given) <= len(shape) else shape, dtype)
    memory[...] = value
    return conversion.from_numpy(memory, copy=False)


def _write_advanced(x: arrays.ndarray, key: Any, value: Any) -> None:
    """Write through index arrays or masks: a mask and one value stay lazy, the others go through memory."""
    if (type(key) is arrays.ndarray or type(key) in CLASSES or isinstance(key, np.ndarray)) and _write_masked(x, key, value):
        return
    if devices.gpus is not None and devices.gpus.write(x, key, value):
        return
    key = tuple([_host_key(part) for part in key]) if type(key) is tuple else _host_key(key)
    if isinstance(value, (list, tuple)) and conversion.holds_ours(value):
        value = conversion.asarray(value)
    if type(value) is arrays.ndarray:
        arrays.together("indexed write", x, value)
    if type(value) is arrays.ndarray or type(value) in CLASSES:
        value = storage.host(value, "indexed write")
    with core.writing(x):
        target, value = memory(x), _real_for(x, value)
        if not core.write_chosen(target, key, value):
            target[key] = value


def _real_for(x: arrays.ndarray, value: Any) -> Any:
    """Return what NumPy is to write into ``x``: of complex arrays the real part, for its warning would name a line of ours."""
    if isinstance(value, np.ndarray) and conversion.loses_a_part(value.dtype, x.dtype):
        conversion.warn_complex()
        return value.real
    return value


def _write_masked(x: arrays.ndarray, key: Any, value: Any) -> bool:
    """``x[mask] = scalar`` as a WHERE; tells whether it was one."""
    shape = x.shape
    mask_shape = key.shape
    if key.dtype != BOOL or shape[: len(mask_shape)] != mask_shape:
        return False
    kind = type(value)
    if kind not in _PLAIN and kind not in CLASSES and not (kind is arrays.ndarray and value.shape == ()):
        return False
    root = _root(x)
    if storage.is_lent(root) or (type(x._base) is storage.Draft and x._base.outside is None):
        return False
    if kind in CLASSES or kind in OF_TYPE:
        value = conversion.asarray(value)  # unlike an element's, this conversion does not ask whether the value fits
    chosen = fitted(value, (), x.dtype)
    mask = arrays.node_of(key)
    if len(mask_shape) != len(shape):
        mask = build.expand(build.reshape(mask, mask_shape + (1,) * (len(shape) - len(mask_shape))), shape)
    return arrays.update(x, lambda old: build.elementwise(o.WHERE, old.dtype, mask, chosen, old))


def fits(shape: Shape, *given: Shape) -> bool:
    """Tell whether all of these shapes broadcast to just the first."""
    return all(len(each) <= len(shape) and all(n in (m, 1) for n, m in zip(each[::-1], shape[::-1], strict=False)) for each in given)


def write_where(x: arrays.ndarray, mask: Node, values: Node) -> None:
    """Write where a mask is true, of nodes that broadcast to the shape and have the dtype; all else stays as other threads write it."""
    if not arrays.update(x, lambda old: build.elementwise(o.WHERE, old.dtype, build.expand(mask, old.shape), values, old)):
        known = [storage.host(arrays.wrap(node), "shared memory") for node in (values, mask)]
        with core.writing(x):
            np.copyto(memory(x), known[0], where=known[1])


def _host_key(part: Any) -> Any:
    if type(part) is arrays.ndarray:
        return storage.host(part, "index")
    if type(part) in CLASSES:
        return part.concrete("index")
    if isinstance(part, (list, tuple)) and conversion.holds_ours(part):
        return storage.host(conversion.asarray(part), "index")
    return part


def _root(x: arrays.ndarray) -> arrays.ndarray:
    """The array that owns the memory."""
    base = x._base
    return base if type(base) is arrays.ndarray else x


def memory(x: arrays.ndarray, reason: str = "indexed write") -> np.ndarray[Any, Any]:
    """The array as memory that may be written now, by who holds ``core.writing(x)`` meanwhile."""
    if devices.gpus is not None:
        devices.gpus.count_on_host(reason, x)
    storage.draft(_root(x))
    owned = storage.elements(x)
    assert owned is not None
    return owned


def write_flat(x: arrays.ndarray, key: Any, value: Any, whole: bool = False) -> None:
    """``x.flat[key] = value``; ``whole``: ``x.flat = value``, which NumPy does by another loop."""
    if x._readonly:
        raise ValueError("assignment destination is read-only" if whole else "underlying array is read-only")
    # NumPy's iterator reads as it writes: of the array's own memory it may read what it has written.
    own = type(value) is arrays.ndarray and value.dtype == x.dtype and _root(value) is _root(x)
    if devices.gpus is not None and type(key) is not int and not own and devices.gpus.write_flat(x, key, value):
        return
    if own:
        value = memory(value)
    elif type(value) is arrays.ndarray or type(value) in CLASSES:
        value = storage.host(value, "indexed write")
    key = tuple([_host_key(part) for part in key]) if type(key) is tuple else _host_key(key)
    with core.writing(x):
        target, value = memory(x), _real_for(x, value)
        if whole:
            at_once(setattr, target, "flat", value)
        else:
            at_once(target.flat.__setitem__, key, value)
