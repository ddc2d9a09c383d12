"""What becomes an array, and how.

In: whatever NumPy takes for an array: arrays and scalars of both libraries, Python scalars, nested sequences.  Out: an ``ndarray``, or the
``numpy.ndarray`` itself for the dtypes lazynp does not compute with.  Promise: a foreign array is shared where NumPy would share it; a
sequence that holds lazy values stays lazy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from lazynp import arrays
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, COMPLEX128, FLOAT64, INT64, NATIVE
from lazynp.graph.floating import at_once, watched
from lazynp.graph.node import Node, Shape, stacklevel
from lazynp.scalars import CLASSES, node_of_scalar
from lazynp.values import config
from lazynp.values.loading import late
from lazynp.values.nesting import MOST_AXES, too_deep

if TYPE_CHECKING:
    from lazynp import layout, storage, viewing, views
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.values import buffer
else:
    hand, build, layout, storage, buffer, viewing, views = late(
        "array.hand", "graph.build", "layout", "storage", "values.buffer", "viewing", "views"
    )

NO_COPY = (
    "Unable to avoid copy while creating an array as requested.\n"
    "If using `np.array(obj, copy=False)` replace it with `np.asarray(obj)` to allow a copy when needed "
    "(no behavior change in NumPy 1.x).\n"
    "For more details, see https://numpy.org/devdocs/numpy_2_0_migration_guide.html#adapting-to-changes-in-the-copy-keyword."
)
_DTYPE_CLASS = type(np.dtype)
_SEQUENCES = frozenset({list, tuple, range})
_PYTHON = {bool: BOOL, int: INT64, float: FLOAT64, complex: COMPLEX128}


def as_dtype(dtype: Any) -> Any:
    """A dtype argument as a dtype; a class of dtypes that needs parameters (strings) stays what it is, for NumPy to fill in."""
    if isinstance(dtype, _DTYPE_CLASS):
        found = np.empty(0, dtype).dtype
        return found if found in NATIVE else dtype
    return np.dtype(no_array(dtype))


def no_array(dtype: Any) -> Any:
    """Return a dtype argument as it is; an array of ours is none, though it has a dtype."""
    if type(dtype) is arrays.ndarray:
        raise TypeError("Cannot construct a dtype from an array")
    return dtype


def _from_protocol(obj: Any, dtype: Any, copy: bool | None) -> Any:
    """Ask an object of a foreign class what it is; a class that knows no ``copy`` is told of it only where that was asked for."""
    given = () if dtype is None else (dtype,)
    if copy is None:
        return obj.__array__(*given)
    try:
        return obj.__array__(*given, copy=copy)
    except TypeError as error:
        if "copy" not in str(error):
            raise
    text = "__array__ implementation doesn't accept a copy keyword, so passing copy=False failed. "
    warnings.warn(f"{text}__array__ must implement 'dtype' and 'copy' keyword arguments.", DeprecationWarning, stacklevel=4)
    if copy is False:
        raise ValueError(NO_COPY)
    return asarray(obj.__array__(*given), copy=True)


def asarray(obj: Any, dtype: Any = None, order: str | None = None, copy: bool | None = None) -> Any:
    """``obj`` as an array.

    Parameters
    ----------
    obj : object
        An array or scalar (lazynp's or NumPy's), a Python scalar, or a nested sequence of these.
    dtype : dtype, optional
        Wanted element type.
    order : {'C', 'F', 'A', 'K'}, optional
        Wanted memory order.
    copy : bool, optional
        As ``numpy.asarray``.

    Returns
    -------
    arrays.ndarray
        Or the ``numpy.ndarray`` itself where the dtype is one that lazynp does not compute with (object, strings, dates, longdouble).
    """
    if dtype is not None:
        dtype = as_dtype(dtype)
    if order is not None and order not in layout.ORDERS:
        order = layout.checked_order(order)
    kind = type(obj)
    if kind is arrays.ndarray:
        return _converted(obj, dtype, order, copy)
    if kind in CLASSES:
        if copy is False:
            raise ValueError(NO_COPY)  # a scalar's value lies in no array
        return _converted(arrays.wrap(node_of_scalar(obj)), dtype, order, None)
    if copy is not None and kind in _PYTHON and not copy:
        raise ValueError(NO_COPY)
    if kind in _PYTHON:
        array = at_once(np.asarray, obj, dtype)
        if array.dtype in NATIVE and array.dtype.isnative:
            if config.at_hand:
                return hand.cell(array)
            return arrays.wrap(build.const(array[()], array.dtype))
        return array
    if isinstance(obj, (list, tuple)) and holds_ours(obj):
        known = _known(obj)
        stacked = _stacked(obj, dtype) if known is None else None
        if stacked is not None:
            return arrays.wrap(stacked)
        obj = _apart(obj) if known is None else known
    if hasattr(kind, "__cuda_array_interface__") and hasattr(obj, "__cuda_array_interface__"):  # PyTorch's class has it for all its tensors
        made = devices.use().adopted(obj, copy)
        if made is not None:
            return _converted(made, dtype, order, copy)
    if hasattr(kind, "__array__") and not issubclass(kind, (np.ndarray, np.generic)) and not hasattr(kind, "__array_interface__"):
        # NumPy takes none but its own arrays from the protocol, so it is not left to NumPy.
        made = _from_protocol(obj, dtype, copy)
        if type(made) is arrays.ndarray:
            return asarray(made, dtype, order, None)
        if isinstance(made, np.ndarray):
            obj = made
    if isinstance(obj, np.memmap):
        lazy = of_map(obj)
        if lazy is not None:
            return _converted(lazy, dtype, order, None if copy is False else copy)
    given = copy if copy is False else None
    array = np.asarray(obj, copy=given) if dtype is None else watched(np.asarray, obj, dtype, copy=given)
    if array.dtype not in NATIVE or not array.dtype.isnative:
        return np.array(obj, dtype, order=order or "K", copy=copy)  # type: ignore[call-overload]
    order = order or "K"
    # What NumPy made of a sequence is ours alone; anything else may be other code's memory.
    own = type(obj) in _SEQUENCES
    if own or copy:
        return from_numpy(array, order, copy=not own)
    if not (order in "KA" or array.flags.c_contiguous if order != "F" else array.flags.f_contiguous):
        if copy is False:
            raise ValueError(NO_COPY)
        return from_numpy(array, order)
    if array.size > config.at_hand and _is_frozen(array):
        made = from_numpy(array, copy=False)
        made._readonly = True
        return made
    return storage.adopted(array)


def told(obj: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """Ask an object of a foreign class what it is, which may be an array of a subclass; anything else stays as it is."""
    kind = type(obj)
    if kind is arrays.ndarray or kind in CLASSES or issubclass(kind, (np.ndarray, np.generic)):
        return obj
    says = hasattr(kind, "__array__") and not hasattr(kind, "__array_interface__")
    return _from_protocol(obj, dtype, copy) if says else obj


def anyarray(obj: Any) -> Any:
    """``obj`` as an array; one of a subclass of NumPy's passes, for NumPy to compute with."""
    kind = type(obj)
    return obj if kind is arrays.ndarray or (kind is not np.ndarray and issubclass(kind, np.ndarray)) else asarray(obj)


def from_numpy(array: np.ndarray[Any, Any], order: str = "K", copy: bool = True) -> arrays.ndarray:
    """An array of a NumPy array's values, which are copied if they may still be written to."""
    if config.at_hand and array.size <= config.at_hand:
        known: Any = np.array
        ours = array.base is None and array.flags.writeable and not copy and order in "KA"
        return hand.cell(array if ours else known(array, order=order, copy=True, subok=False))
    return buffered(array, order, copy)


def buffered(array: np.ndarray[Any, Any], order: str = "K", copy: bool = False) -> arrays.ndarray:
    """``from_numpy`` of any size: an array whose value is a node's."""
    axes = views.memory_order(array.shape, array.strides, array.itemsize) if order in "KA" else None
    if order == "F" or (order == "A" and array.flags.f_contiguous and not array.flags.c_contiguous):
        axes = tuple(range(array.ndim - 1, -1, -1))
    elif order == "A":
        axes = None
    laid = array if axes is None else array.transpose(axes)
    owned = np.array(laid, order="C", copy=True if copy else None, subok=False)
    node = build.buffer(owned)
    if devices.gpus is not None:
        node = devices.gpus.made(node)
    if axes is None:
        return arrays.wrap(node)
    inverse = np.argsort(axes)
    return arrays.wrap_ordered(build.permute(node, tuple(inverse.tolist())), axes)


def of_map(x: Any) -> arrays.ndarray | None:
    """An array that is read from a mapped file whenever it is computed with; None where the elements have to be copied.

    That is where NumPy's own functions may write to the map, which would not be reported, and where few elements are cheaper in memory.
    """
    memory = x.view(np.ndarray)
    told = not memory.flags.writeable or getattr(x, "tells_of_writes", False)
    if x._mmap is None or not told or devices.gpus is not None or memory.dtype not in NATIVE or not memory.dtype.isnative:
        return None
    if memory.flags.writeable and x._mmap in shared:
        return None
    if memory.size <= config.at_hand or not memory.flags.aligned or not memory.size:
        return None
    axes = views.memory_order(memory.shape, memory.strides, memory.itemsize)
    laid = memory if axes is None else memory.transpose(axes)
    if laid.flags.c_contiguous:
        node = mapped(laid, x._mmap)
        return arrays.wrap_ordered(node if axes is None else build.permute(node, tuple(np.argsort(axes).tolist())), axes)
    whole: Any = x
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    if not (whole.flags.c_contiguous or whole.flags.f_contiguous) or whole.dtype != memory.dtype:
        return None
    root = arrays.wrap(mapped(whole.view(np.ndarray).reshape(-1, order="A"), x._mmap))
    place = memory.__array_interface__["data"][0] - whole.__array_interface__["data"][0], memory.strides
    return viewing.derived(root, root.shape, (views.STRIDED, (*place, memory.dtype), memory.shape), geometry=place)


maps: Final[WeakKeyDictionary[Any, WeakSet[Node]]] = WeakKeyDictionary()  # the leaves that are read from a mapped file
shared: Final[WeakSet[Any]] = WeakSet()  # mapped files whose memory was shown, so that writes are not reported any more


def mapped(memory: np.ndarray[Any, Any], file: Any) -> Node:
    """A leaf over a mapped file; not counted among the large values, for its pages come and go."""
    node = Node(o.BUFFER, (), None, memory.dtype, memory.shape)
    node.buffer = buffer.Buffer(memory)
    node.buffer.shared = True  # with the file
    maps.setdefault(file, WeakSet()).add(node)
    return node


def _is_frozen(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether this memory cannot be written to: its whole base chain is NumPy's, read-only, and ends in an owner, or in bytes."""
    at: Any = array
    while type(at) is np.ndarray and not at.flags.writeable:
        if at.base is None:
            return bool(at.flags.owndata)
        at = at.base
    return type(at) is bytes


def _converted(x: arrays.ndarray, dtype: np.dtype[Any] | None, order: str | None, copy: bool | None) -> Any:
    """An array of ours with the wanted dtype and order; itself where it has them."""
    if dtype is not None and (dtype not in NATIVE or not dtype.isnative):
        return np.array(storage.host(x), dtype, order=order or "K", copy=True)  # type: ignore[call-overload]
    memory = hand.own_memory(x)
    if memory is not None:
        if dtype is not None and loses_a_part(memory.dtype, dtype):
            warn_complex()
            memory = memory.real
        return hand.result(at_once(np.array, memory, dtype, order=order or "K", copy=copy), (x,))
    same_order = order is None or order in "KA" or (x.flags.c_contiguous if order == "C" else x.flags.f_contiguous)
    if (dtype is None or dtype == x.dtype) and same_order and not copy:
        return x
    if copy is False:
        raise ValueError(NO_COPY)
    node = arrays.node_of(x)
    if dtype is not None and dtype != node.dtype:
        node = converted(node, dtype)
    return arrays.wrap_ordered(build.copied(node), layout.copy_order(x, order or "K"))


def _stacked(items: Sequence[Any], dtype: np.dtype[Any] | None) -> Node | None:
    """The node of a (nested) sequence that holds lazy values; None where it is not one array of a dtype of ours."""
    if dtype is not None and dtype not in NATIVE:
        return None
    parts: list[Node] = []
    for item in items:
        found = asarray(item)
        if type(found) is not arrays.ndarray:
            return None
        node = arrays.node_of(found)
        if parts and node.shape != parts[0].shape:
            shape = (len(items), *parts[0].shape[: _common(node.shape, parts[0].shape)])
            raise ValueError(
                "setting an array element with a sequence. The requested array has an inhomogeneous shape after "
                f"{len(shape)} dimensions. The detected shape was {shape} + inhomogeneous part."
            )
        parts.append(node)
    if dtype is None:
        dtype = np.result_type(*{part.dtype for part in parts})
    shape = parts[0].shape
    return build.concat([build.reshape(build.cast(part, dtype), (1, *shape)) for part in parts], 0)


def holds_ours(items: Sequence[Any], depth: int = 0) -> bool:
    if depth > MOST_AXES:
        raise too_deep()
    for item in items:
        if type(item) is arrays.ndarray or type(item) in CLASSES or (isinstance(item, (list, tuple)) and holds_ours(item, depth + 1)):
            return True
    return False


def _known(items: Sequence[Any]) -> list[Any] | None:
    """A (nested) sequence of numbers that are known and arrays in memory, for NumPy to read; None where something in it is lazy."""
    known: list[Any] = []
    for item in items:
        if type(item) in CLASSES:
            item = item._value
            if item is None:
                return None
        elif isinstance(item, (list, tuple)):
            item = _known(item)
            if item is None:
                return None
        elif type(item) is arrays.ndarray:
            item = hand.memory_of(item)
            if item is None:
                return None
        known.append(item)
    return known


def _apart(items: Any) -> Any:
    """A (nested) sequence as a copy that no other code has: NumPy does not hold what it looks at, and what is of ours in it runs code."""
    return type(items)([_apart(item) for item in items]) if type(items) in (list, tuple) else items


def _common(a: Shape, b: Shape) -> int:
    for k, (m, n) in enumerate(zip(a, b, strict=False)):
        if m != n:
            return k
    return min(len(a), len(b))


def loses_a_part(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Tell whether NumPy warns about a conversion: it leaves the real part of complex numbers."""
    return given.kind == "c" and wanted.kind not in "cb"


def converted(node: Node, dtype: np.dtype[Any]) -> Node:
    """``node`` in a dtype that the caller chose, with NumPy's warning about a lost imaginary part."""
    if loses_a_part(node.dtype, dtype):
        warn_complex()
    return build.cast(node, dtype)


def warn_complex() -> None:
    """NumPy's warning about a lost imaginary part, at the user's line."""
    warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=stacklevel())
