"""Keys, and ``x[key]``.

In: an array and a key as NumPy takes it.  Out: a scalar, a view (integers, slices, ``...``, ``None``) or a new array (integer arrays and
boolean masks).  Promise: keys are checked at the call with NumPy's errors; only reading by a mask, which decides a shape, is computed here
(on a GPU the number of its true values).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

from lazynp import arrays, views
from lazynp.array import core
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, INT64, INT64_END
from lazynp.graph.node import Node, Shape
from lazynp.values import config
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion, layout, storage, viewing
    from lazynp.array import hand
    from lazynp.graph import build
else:
    hand, conversion, build, layout, storage, viewing = late("array.hand", "conversion", "graph.build", "layout", "storage", "viewing")

_BAD_KEY = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
MAX_DIMENSIONS = 64
MAX_ARRAYS = 64  # operands of NumPy's iterator, which one array and its index arrays are
Basic = tuple[views.Region, Shape, tuple[int, ...], bool, bool]


# Keys ---------------------------------------------------------------------------------------------------------------------


def basic(key: Any, shape: Shape) -> Basic | None:
    """views.Region, its shape, the axis map after it, whether the key is all integers, and whether a 0-d array is among them.

    None where the key has other arrays in it.
    """
    parts: Sequence[Any] = key if isinstance(key, tuple) else (key,)
    ndim = len(shape)
    region: list[tuple[int, int]] = []
    lengths: list[int] = []
    axes: list[int] = []
    axis = 0
    element = True
    copies = False
    for part in parts:
        kind = type(part)
        if kind is slice:
            if axis >= ndim:
                raise _too_many(parts, ndim)
            try:
                start, stop, step = part.indices(shape[axis])
            except TypeError:
                for other in parts:
                    _part(other)  # what cannot be a key at all is refused first
                raise
            n = (stop - start + (step - 1 if step > 0 else step + 1)) // step
            if n > 0:
                region.append((start, step))
                lengths.append(n)
            else:
                region.append((0, 1))
                lengths.append(0)
            axes.append(axis)
            axis += 1
            element = False
        elif part is None:
            axes.append(views.NEW)
            element = False
            if len(axes) + ndim - axis > MAX_DIMENSIONS:
                new = sum([other is None for other in parts])
                found = ndim + new - sum([not (other is None or other is Ellipsis or type(other) is slice) for other in parts])
                if found > MAX_DIMENSIONS:
                    raise IndexError(f"number of dimensions must be within [0, {MAX_DIMENSIONS}], indexing result would have {found}")
        elif part is Ellipsis:
            taken = 0
            ellipses = 0
            for other in parts:
                if other is Ellipsis:
                    ellipses += 1
                elif other is not None:
                    taken += 1
            if ellipses > 1:
                raise IndexError("an index can only have a single ellipsis ('...')")
            for _ in range(ndim - taken):
                region.append((0, 1))
                lengths.append(shape[axis])
                axes.append(axis)
                axis += 1
            element = False
        else:
            if kind is not int:
                index = _integer(part)
                if index is None:
                    return None
                copies = copies or kind is arrays.ndarray or kind is np.ndarray
                part = index
            if axis >= ndim:
                raise _too_many(parts, ndim)
            n = shape[axis]
            at = part + n if part < 0 else part
            if not 0 <= at < n:
                if sum([type(other) is int or type(other) is slice for other in parts]) > ndim:
                    raise _too_many(parts, ndim)
                raise _outside(part, axis, n)
            region.append((at, 1))
            lengths.append(1)
            axis += 1
    if axis < ndim:
        element = False
        while axis < ndim:
            region.append((0, 1))
            lengths.append(shape[axis])
            axes.append(axis)
            axis += 1
    return tuple(region), tuple(lengths), tuple(axes), element, copies


def located(x: arrays.ndarray, key: Any) -> tuple[Shape, Basic | None]:
    """The same of an array, and the shape that it had: it may get another one while the key's parts are asked for their values."""
    shape = x.shape
    found = basic(key, shape)
    if x.shape == shape:
        return shape, found
    shape = x.shape
    found = basic(key, shape)
    if x.shape != shape:
        raise IndexError("the array gets another shape whenever its key is read")
    return shape, found


def _outside(at: int, axis: int, n: int) -> Exception:
    if not -INT64_END <= at < INT64_END:
        # To NumPy it is an array without axes: of uint64, or an object.
        return OverflowError("Python int too large to convert to C long") if INT64_END <= at < 2 * INT64_END else IndexError(_BAD_KEY)
    return IndexError(f"index {at} is out of bounds for axis {axis} with size {n}")


def _too_many(parts: Sequence[Any], ndim: int) -> IndexError:
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    return IndexError(f"too many indices for array: array is {ndim}-dimensional, but {taken} were indexed")


def _integer(part: Any) -> int | None:
    """A key's part as an integer; None where it is an array or a sequence."""
    kind = type(part)
    if kind is bool or isinstance(part, (np.bool_, list, tuple)):
        return None
    if kind is arrays.ndarray or isinstance(part, np.ndarray):
        if part.shape or part.dtype.kind not in "iu":
            return None
        return operator.index(part)
    try:
        return operator.index(part)
    except TypeError:
        if hasattr(part, "__array__"):
            array = conversion.asarray(part)
            return operator.index(array) if not array.shape and array.dtype.kind in "iu" else None
        if hasattr(part, "__getitem__"):
            return None
        raise IndexError(_BAD_KEY) from None


MASK_SAMPLES: Final = 8192  # elements of a mask that are looked at
MASK_CHANGES: Final = MASK_SAMPLES // 16  # between true and false, from which on finding the places first is faster
PLACES_BYTES: Final = 32 << 20
"""Where one mask is true is kept for the next array that is read by it, if that takes no more."""


# Reading --------------------------------------------------------------------------------------------------------------------


def read(x: arrays.ndarray, key: Any) -> Any:
    """``x[key]``."""
    shape, found = located(x, key)
    if found is None:
        return _read_advanced(x, key)
    region, lengths, axes, element, copies = found
    if element:
        return _element(x, region) if region else arrays.result(arrays.node_of(x))
    storage.partial_read(x, prod(lengths))
    view = viewing.view_key(x, shape, region, lengths, axes)
    if copies:
        # To NumPy a 0-d array is an index array, which gives no view.
        return arrays.wrap_ordered(build.copied(arrays.node_of(view)), layout.copy_order(view, "K"))
    return view


def _element(x: arrays.ndarray, region: views.Region) -> Any:
    """The element at a region of single indices: a number.

    What is pending is computed now: who reads an element wants a number, and Python's loops over elements should cost what NumPy's do.
    """
    memory = storage.elements(x)
    if memory is None:
        memory = storage.host(x, "element")
    return core.number(memory[tuple([start for start, _ in region])])


class Index:
    """An advanced key, taken apart.

    Attributes
    ----------
    view : ndarray
        The array after its slices, integers and new axes; boolean masks' axes are flattened to one.
    axes : list of int
        The axes of ``view`` that index arrays stand for.
    arrays : list of Node
        Their index arrays, int64, not broadcast yet.
    given : list
        The index arrays as they lie in memory.
    position : int
        Where the index arrays' axes go in the result.
    strides : tuple of int
        Of the axes of ``view``, in the memory of the array itself: as if no mask's axes had been flattened, which may have copied it.
    """

    __slots__ = ("arrays", "axes", "given", "position", "strides", "view")

    def __init__(
        self, view: arrays.ndarray, axes: list[int], indices: list[Node], given: list[Any], position: int, strides: tuple[int, ...]
    ) -> None:
        self.view = view
        self.axes = axes
        self.arrays = indices
        self.given = given
        self.position = position
        self.strides = strides


def _advanced(x: arrays.ndarray, key: Any) -> Index:
    """Take an advanced key apart; every check that needs no computing happens here."""
    parts = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    shape = x.shape
    ndim = len(shape)
    taken = sum(_taken(part) for part in parts)
    if sum(hasattr(part, "dtype") for part in parts) >= MAX_ARRAYS:
        raise IndexError(f"too many advanced indices: at most {MAX_ARRAYS - 1} are possible")
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if taken > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {taken} were indexed")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    # Slices first, so that what index arrays see is small; integers become index arrays for the question where the result's axes go.
    region: list[tuple[int, int]] = []
    lengths: list[int] = []
    grouped: list[int] = []  # lengths with a mask's axes as one
    begins: list[int] = []  # which of the lengths each of these begins with
    new: list[int] = []  # axis map: which axes of the grouped array stay, and where new ones come
    bounds: list[tuple[arrays.ndarray, int, int]] = []  # (index array, length of its axis, axis)
    advanced: list[tuple[int, Any]] = []  # (axis of the view after the map, index array)
    places: list[int] = []  # positions in the key that are advanced, an ellipsis counts however many axes it stands for
    axis = 0
    for place, part in enumerate(parts):
        if part is None:
            new.append(views.NEW)
        elif part is Ellipsis:
            for _ in range(ndim - taken):
                region.append((0, 1))
                begins.append(len(lengths))
                lengths.append(shape[axis])
                new.append(len(grouped))
                grouped.append(shape[axis])
                axis += 1
        elif type(part) is slice:
            start, stop, step = part.indices(shape[axis])
            n = len(range(start, stop, step))
            region.append((start, step) if n else (0, 1))
            begins.append(len(lengths))
            lengths.append(n)
            new.append(len(grouped))
            grouped.append(n)
            axis += 1
        elif type(part) is int:
            n = shape[axis]
            at = part + n if part < 0 else part
            if not 0 <= at < n:
                raise _outside(part, axis, n)
            region.append((at, 1))
            begins.append(len(lengths))
            lengths.append(1)
            grouped.append(1)
            places.append(place)
            if len(places) == 1:
                first_axis = len(new)
            axis += 1
        else:
            places.append(place)
            if len(places) == 1:
                first_axis = len(new)
            if part.dtype == BOOL:
                n = _mask_size(part, shape, axis)
                if part.shape:
                    begins.append(len(lengths))
                for m in shape[axis : axis + len(part.shape)]:
                    region.append((0, 1))
                    lengths.append(m)
                axis += len(part.shape)
                index: Any = _flat_positions(part)
                if not part.shape:
                    advanced.append((len(new), index))
                    new.append(views.NEW)
                    continue
            else:
                n = shape[axis]
                region.append((0, 1))
                begins.append(len(lengths))
                lengths.append(n)
                index = part
                bounds.append((part, n, axis))
                axis += 1
            advanced.append((len(new), index))
            new.append(len(grouped))
            grouped.append(n)
    view = viewing.view_slice(x, shape, tuple(region), tuple(lengths))
    if tuple(grouped) == tuple(lengths):
        view = viewing.view_axes(view, tuple(new))
        strides = layout.geometry(view)[1]
    else:
        steps = layout.geometry(view)[1]
        view = viewing.view_axes(viewing.view_reshape(view, tuple(grouped)), tuple(new))
        strides = tuple([0 if k == views.NEW else steps[begins[k]] for k in new])
    consecutive = places[-1] - places[0] == len(places) - 1
    given = [index for _, index in advanced]
    indices = [_index_node(index) for index in given]
    if 0 not in _broadcast(indices):  # no element is looked up where an index array of none is among them
        for part, n, axis in bounds:
            _checked(part, n, axis)
    return Index(view, [at for at, _ in advanced], indices, given, first_axis if consecutive else 0, strides)


def positions(x: arrays.ndarray) -> Sequence[Any]:
    """Find where an array is not zero, an index array per axis: NumPy's, or ours on the GPU that the array belongs to."""
    found = None if devices.gpus is None else devices.gpus.positions(x)
    if found is not None:
        return found
    memory = storage.host(x, "mask shape")
    found = core.positions(memory)
    return np.nonzero(memory) if found is None else found


def _buffer_of(x: arrays.ndarray) -> Any:
    node = x._node  # None where another thread has made it a draft meanwhile
    return None if node is None else node.buffer


def _flat_positions(mask: Any) -> Any:
    """Find where a mask is true, in C order; of a large mask that exists the last answer is kept, for several arrays are read by one."""
    global _last
    buffer = None
    if type(mask) is arrays.ndarray and mask._base is None and devices.gpus is None:
        storage.host(mask, "mask shape")
        buffer = _buffer_of(mask)
    if buffer is None:
        return positions(viewing.view_reshape(mask, (-1,)))[0]
    last = _last
    if last is not None and last[0]() is buffer:
        return last[1]
    found = arrays.wrap(build.buffer(positions(viewing.view_reshape(mask, (-1,)))[0]))
    if found.size * 8 <= PLACES_BYTES:
        _last = ref(buffer, _forget), found
    return found


_last: tuple[ref[Any], arrays.ndarray] | None = None  # a mask, and where it is true


def _forget(mask: ref[Any]) -> None:
    global _last
    last = _last
    if last is not None and last[0] is mask:
        _last = None


def _part(part: Any) -> Any:
    """One part of an advanced key: int, slice, None, Ellipsis, or an array of integers or booleans."""
    kind = type(part)
    if kind is slice or kind is int or part is None or part is Ellipsis:
        return part
    if kind is not bool and not isinstance(part, (np.bool_, list, tuple)):
        index = _integer(part)
        if index is not None:
            return index
    array = part if kind is arrays.ndarray else conversion.asarray(part)
    if array.dtype.kind not in "biu":
        if array.size == 0 and isinstance(part, (list, tuple)):
            return conversion.asarray(np.zeros(array.shape, INT64))
        if kind is arrays.ndarray or isinstance(part, np.ndarray):
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        raise IndexError(_BAD_KEY)
    return array


def _taken(part: Any) -> int:
    """Count the axes of the array that a key's part stands for."""
    if part is None or part is Ellipsis:
        return 0
    if type(part) is slice or type(part) is int:
        return 1
    return len(part.shape) if part.dtype == BOOL else 1


def _mask_size(mask: arrays.ndarray, shape: Shape, axis: int) -> int:
    """The number of elements a mask's axes have together, after comparing them with the array's."""
    for k, n in enumerate(mask.shape):
        if shape[axis + k] != n and n:  # NumPy lets a mask of no elements pass
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {shape[axis + k]} "
                f"but size of corresponding boolean axis is {n}"
            )
    return prod(shape[axis : axis + len(mask.shape)])


def _checked(index: arrays.ndarray, n: int, axis: int) -> arrays.ndarray:
    """An index array; out-of-range values that are already known are refused now, the others when they are computed."""
    known = storage.elements(index)
    if known is not None:
        buffer = _buffer_of(index) if index._base is None else None
        ends = None if buffer is None else buffer.ends
        if ends is None and buffer is not None and known.size:
            ends = np.array([np.minimum.reduce(known, None), np.maximum.reduce(known, None)])
            buffer.ends = ends
        if ends is None or (ends[0] < -n or ends[1] >= n):
            check_known(known, n, axis)
        return index
    node = arrays.node_of(index)
    if node.op is o.IOTA:
        ends = np.array([0, node.shape[0] - 1][: node.shape[0]]) * node.arg[1] + node.arg[0]
        check_known(ends, n, axis)
    return index


def check_known(values: np.ndarray[Any, Any], n: int, axis: int) -> None:
    if values.size and (np.minimum.reduce(values, None) < -n or np.maximum.reduce(values, None) >= n):
        bad = values[(values < -n) | (values >= n)][0]
        raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {n}")


def _index_node(index: Any) -> Node:
    if isinstance(index, np.ndarray):
        return build.buffer(index)
    return build.cast(arrays.node_of(index), INT64)


def _broadcast(indices: list[Node]) -> Shape:
    try:
        return build.broadcast_shape(*[node.shape for node in indices])
    except ValueError:
        shapes = " ".join([str(node.shape).replace(", ", ",") for node in indices])
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes} ") from None


def _lead_order(given: Sequence[Any], common: Shape, shape: Shape) -> tuple[int, ...] | None:
    """The memory order of a result with one element per index: its first axes lie as those of the index arrays do."""
    order = layout.result_order(given, common)
    return None if order is None else (*order, *range(len(common), len(shape)))


def _changes_often(mask: np.ndarray[Any, Any]) -> bool:
    """Tell, from samples, whether true and false change so often that NumPy's reading by a mask takes longer than finding places first."""
    flat = mask.reshape(-1)
    if flat.size < MASK_SAMPLES:
        return False
    window = flat.size // 16
    sampled = flat[: 16 * window].reshape(16, window)[:, : MASK_SAMPLES // 16]
    return bool(np.count_nonzero(sampled[:, 1:] != sampled[:, :-1]) > MASK_CHANGES)


def _masked(x: arrays.ndarray, mask: arrays.ndarray) -> Any:
    """``x[mask]``, computed at the call: only then is known how many elements there are, and what is made of them may be small."""
    arrays.together("mask", x, mask)
    memory, chosen = storage.host(x, "mask"), storage.host(mask, "mask")
    rank = len(mask.shape)
    plain = mask._base is None and x.shape[:rank] == mask.shape and memory.flags.c_contiguous
    if plain and not core.compresses(memory.itemsize) and _changes_often(chosen):
        found = memory.reshape(mask.size, *x.shape[rank:]).take(storage.host(_flat_positions(mask)), 0)
    else:
        found = core.read_chosen(memory, chosen)
        if found is None:
            found = memory[chosen]
    return conversion.from_numpy(found, copy=False) if found.size > config.at_hand else hand.cell(found)


def _read_advanced(x: arrays.ndarray, key: Any) -> Any:
    """``x[key]`` with index arrays: one GATHER over the indexed axes, put first."""
    if config.at_hand:
        known = hand.gathered(x, key)
        if known is not NotImplemented:
            return known
        if type(key) is arrays.ndarray and key.dtype == BOOL and key.shape and devices.gpus is None:
            return _masked(x, key)
    single = type(key) is arrays.ndarray or isinstance(key, np.ndarray)
    if single and type(x._base) is not arrays.ndarray and key.dtype.kind in "iu" and x.shape and key.shape:
        # One integer array on a plain array, the usual case.
        n = x.shape[0]
        storage.partial_read(x, prod(key.shape) * prod(x.shape[1:]))
        if type(key) is arrays.ndarray:
            node = build.gather(arrays.node_of(x), _index_node(_checked(key, n, 0)))
        else:
            known = key.astype(INT64, "C")
            check_known(known, n, 0)
            node = build.gather(arrays.node_of(x), build.buffer(known))
        if len(key.shape) < 2 or prod(x.shape[1:]) != 1:
            return arrays.wrap(node)
        return arrays.wrap_ordered(node, _lead_order((key,), key.shape, node.shape))
    index = _advanced(x, key)
    view, axes = index.view, index.axes
    shape = view.shape
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    node = arrays.node_of(view)
    if axes != list(range(len(axes))):
        node = build.permute(node, (*axes, *rest))
    common = _broadcast(index.arrays)
    storage.partial_read(x, prod(common) * prod([shape[a] for a in rest]))
    node = build.gather(node, *[build.expand(i, common) for i in index.arrays])
    lead, trail = len(common), len(rest)
    # NumPy lays the index arrays' axes out first, then the others in the array's own memory order, and shows them in the key's order.
    order = views.memory_order(tuple([shape[a] for a in rest]), tuple([index.strides[a] for a in rest]), 0)
    memory = (*range(lead), *[lead + a for a in (order or range(trail))])
    if prod([shape[a] for a in rest]) == 1:
        memory = _lead_order(index.given, common, node.shape) or memory
    position = index.position
    shown = (*range(lead, lead + position), *range(lead), *range(lead + position, lead + trail))
    if position and lead:
        node = build.permute(node, shown)
        memory = tuple([shown.index(axis) for axis in memory])
    return arrays.wrap_ordered(node, memory)
