"""Taking views: the movements that NumPy answers without a copy.

In: an array and a movement (reshape, flip, broadcast, diagonal, real part, another dtype).  Out: a view, or a copy exactly where NumPy
makes one.  Promise: whether it is a view is decided from the nominal layout, as NumPy decides it from memory; what cannot be written
through is read-only.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp import arrays, views
from lazynp.array.core import Cell
from lazynp.graph import op as o
from lazynp.graph.dtypes import NATIVE
from lazynp.graph.node import Shape, stacklevel
from lazynp.values import config
from lazynp.values.loading import late
from lazynp.values.nesting import checked_shape

if TYPE_CHECKING:
    from lazynp import layout, protocols, storage
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.namespace import indexing
    from lazynp.views import Geometry, Path, Region, Step
else:
    hand, build, layout, indexing, protocols, storage = late(
        "array.hand", "graph.build", "layout", "namespace.indexing", "protocols", "storage"
    )

_new = Cell.__new__
_MEMORY = np.ndarray  # the type of ``_base`` of an array in memory
# Steps from a plain array whose geometry can wait until it is asked for.
_FIRST_STEPS = frozenset({o.SLICE, views.AXES, o.RESHAPE})


def view_flip(x: arrays.ndarray, axes: Sequence[int]) -> arrays.ndarray:
    """The given axes reversed."""
    shape = x.shape
    region = tuple([(max(n - 1, 0), -1) if axis in axes else (0, 1) for axis, n in enumerate(shape)])
    return view_slice(x, shape, region, shape)


def view_expand(x: arrays.ndarray, shape: Shape) -> arrays.ndarray:
    """Broadcast to ``shape``, which must fit; read-only until the flag is set."""
    return derived(x, x.shape, (o.EXPAND, None, shape), readonly=True)


def view_reshape(x: arrays.ndarray, shape: Any, order: str = "C", copy: bool | None = None) -> arrays.ndarray:
    """``x.reshape(shape)``: a view exactly where NumPy gives one, else a copy."""
    memory = hand.own_memory(x)
    if memory is not None:
        found = memory.reshape(tuple(shape) if isinstance(shape, list) else shape, order=order, copy=copy)  # type: ignore[call-overload]
        return hand.cell(found) if found.base is None else hand.cell(found, hand.owner_of(x))
    old = x.shape
    number = not hasattr(shape, "__iter__") or (hasattr(shape, "__index__") and not getattr(shape, "shape", ()))
    asked = old if shape is None else (shape,) if number else tuple(shape)
    shape = reshaped_shape(old, asked)
    if x.shape != old:  # a length is an object, which changed the array when it was asked for its value
        return view_reshape(x, shape, order, copy)
    if order not in ("C", "F", "A"):
        order = layout.checked_order(order)
        if order == "K":
            raise ValueError("order 'K' is not permitted for reshaping")
    if order == "A":
        flags = x.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if order == "F" and (len(old) > 1 or len(shape) > 1):
        return view_reshape(x.T, asked[::-1], "C", copy).T
    if copy:
        return arrays.wrap(build.copied(build.reshape(arrays.node_of(x), shape)))
    if asked == old:
        # The same memory as it lies; a -1 makes NumPy lay out even the same shape anew, which shows in axes of length one and empty arrays.
        return derived(x, old, (views.AXES, tuple(range(len(old))), old))
    if type(x._base) is not arrays.ndarray and type(x._base) is not np.ndarray:
        return derived(x, old, (o.RESHAPE, None, shape))
    offset, strides = layout.geometry(x)
    found = views.reshaped_strides(old, strides, shape, x.dtype.itemsize)
    if found is not None:
        return derived(x, old, (o.RESHAPE, None, shape), geometry=(offset, found))
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return arrays.wrap(build.copied(build.reshape(arrays.node_of(x), shape)))


def length(n: Any) -> int:
    """One entry of a shape; to NumPy a bool is none."""
    if type(n) is bool:
        raise TypeError("an integer is required")
    return operator.index(n)


def reshaped_shape(old: Shape, shape: Any) -> Shape:
    """``shape`` with its -1 filled in; raises what NumPy raises where the sizes differ."""
    if isinstance(shape, (tuple, list)):
        checked_shape(shape)
    if type(shape) is tuple and shape and {int}.issuperset(map(type, shape)) and min(shape) >= 0 and prod(shape) == prod(old):
        return shape
    new = (length(shape),) if not isinstance(shape, (tuple, list)) else tuple([length(n) for n in shape])
    size = prod(old)
    unknown = [axis for axis, n in enumerate(new) if n < 0]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if unknown:
        axis = unknown[0]
        if new[axis] < -(2**63):  # any other negative number will do
            raise ValueError("Maximum allowed dimension exceeded")
        known = prod([n for n in new if n >= 0])
        if known and size % known == 0:
            return (*new[:axis], size // known, *new[axis + 1 :])
    elif prod(new) == size:
        return new
    wanted = ",".join(["newaxis" if n < 0 else str(n) for n in new])
    if len(new) == 1 and not unknown:
        wanted += ","
    raise ValueError(f"cannot reshape array of size {size} into shape ({wanted})")


def view_diagonal(x: arrays.ndarray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> arrays.ndarray:
    """The diagonal over two axes, as the last axis of a read-only view."""
    shape = x.shape
    rest = [axis for axis in range(len(shape)) if axis not in (axis1, axis2)]
    rows, columns = shape[axis1], shape[axis2]
    top, left = max(-offset, 0), max(offset, 0)
    n = max(min(rows - top, columns - left), 0)
    start, strides = layout.geometry(x)
    if n:
        start += top * strides[axis1] + left * strides[axis2]
    found = start, (*[strides[axis] for axis in rest], strides[axis1] + strides[axis2])
    # As values: the n x n square, its axes last, flattened, every (n+1)-th element.
    outer = tuple([shape[axis] for axis in rest])
    at = view_axes(x, (*rest, axis1, axis2))
    region = (*[(0, 1)] * len(rest), (top if n else 0, 1), (left if n else 0, 1))
    at = view_slice(at, (*outer, rows, columns), region, (*outer, n, n))
    at = derived(at, (*outer, n, n), (o.RESHAPE, None, (*outer, n * n)), geometry=(0, (0,) * (len(outer) + 1)))
    step = o.SLICE, (*[(0, 1)] * len(rest), (0, n + 1)), (*outer, n)
    return derived(at, (*outer, n * n), step, readonly=True, geometry=found)


def view_part(x: arrays.ndarray, part: o.Op) -> arrays.ndarray:
    """The real or imaginary part."""
    dtype = x.dtype
    if dtype.kind == "c":
        real = dtype.type(0).real.dtype
        shape = x.shape
        return derived(x, shape, (part, (real, dtype), shape))
    if part is o.REAL:
        return x
    zeros = arrays.wrap_ordered(build.expand(build.const(0, dtype), x.shape), layout.copy_order(x, "F" if x.flags.fnc else "C"))
    zeros._readonly = True
    return zeros


def view_dtype(x: arrays.ndarray, dtype: np.dtype[Any]) -> Any:
    """The same bytes read as ``dtype``; of another item size the last axis, which must be contiguous, becomes longer or shorter.

    A dtype that lazynp does not compute with gives NumPy's own array, over the same memory.
    """
    source = x.dtype
    if dtype not in NATIVE or not dtype.isnative:
        return protocols.exported(x, "view").view(dtype)
    memory = hand.own_memory(x)
    if memory is not None and memory.nbytes <= config.at_hand * dtype.itemsize:
        return hand.cell(memory.view(dtype), hand.owner_of(x))
    shape = x.shape
    if dtype.itemsize == source.itemsize:
        return derived(x, shape, (o.BITCAST, (dtype, source), shape))
    if not shape:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    if shape[-1] != 1 and 0 not in shape and layout.geometry(x)[1][-1] != source.itemsize:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    nbytes = shape[-1] * source.itemsize
    if nbytes % dtype.itemsize:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the array."
            if dtype.itemsize > source.itemsize
            else "When changing to a smaller dtype, its size must be a divisor of the size of original dtype"
        )
    return derived(x, shape, (views.REINTERPRET, (dtype, source), (*shape[:-1], nbytes // dtype.itemsize)))


def buffer_view(x: arrays.ndarray, shape: Any, dtype: Any, offset: int, order: str | None) -> Any:
    """``ndarray(shape, dtype, x, offset)``: the bytes of contiguous memory as another array."""
    if not x.flags.forc:
        raise ValueError("ndarray is not contiguous")
    wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    nbytes = prod(wanted) * dtype.itemsize
    if offset < 0 or offset + nbytes > x.nbytes:
        raise TypeError("buffer is too small for requested array")
    laid = x if x.flags.c_contiguous else x.T
    flat = view_reshape(laid, (-1,))
    if offset % flat.itemsize or nbytes % flat.itemsize:
        flat = view_dtype(flat, np.dtype(np.uint8))
    start = offset // flat.itemsize
    found = view_dtype(view_slice(flat, flat.shape, ((start, 1),), (nbytes // flat.itemsize,)), dtype)
    if order is not None and layout.checked_order(order) == "F":
        return view_reshape(found, wanted[::-1]).T
    return found.reshape(wanted)


def may_be_written(x: arrays.ndarray) -> bool:
    """Tell whether the write flag may be set: not on views of read-only arrays or memory."""
    if type(x._base) is np.ndarray:
        x._base.flags.writeable = True  # or NumPy says why not
        return True
    root = x._base if type(x._base) is arrays.ndarray else x
    if type(root._base) is storage.Draft and not root._base.array.flags.writeable:
        return False  # memory from outside
    owner = x.base  # not the root where a result lies in another order, which has no name
    return not owner._readonly if type(owner) is arrays.ndarray else root is x or not root._readonly


def _known_memory(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the memory of an array of NumPy's, and of one of ours that others may see: in memory, lent, or from outside; else None."""
    if isinstance(x, np.ndarray):
        return x
    if type(x) is not arrays.ndarray:
        return None
    root = x._base if type(x._base) is arrays.ndarray else x
    held = root._base
    seen = type(held) is np.ndarray or storage.is_lent(root) or (type(held) is storage.Draft and held.outside is not None)
    return storage.elements(x) if seen else None


def shares_memory(a: Any, b: Any, exact: bool = True) -> bool:
    """Tell whether two arrays nominally overlap; ``exact=False`` compares bounds only."""
    one, two = _known_memory(a), _known_memory(b)
    if one is not None and two is not None:
        return bool(np.shares_memory(one, two) if exact else np.may_share_memory(one, two))
    if type(a) is not arrays.ndarray or type(b) is not arrays.ndarray:
        return False
    root = a._base if type(a._base) is arrays.ndarray else a
    if root is not (b._base if type(b._base) is arrays.ndarray else b):
        return False
    extent = max(root.nbytes, 1)
    memory = np.empty(extent, np.uint8)  # addresses only, never touched
    if not a.size or not b.size:
        return False
    one, two = [np.ndarray(x.shape, x.dtype, memory, *layout.geometry(x)) for x in (a, b)]
    return bool(np.shares_memory(one, two) if exact else np.may_share_memory(one, two))


class Warned:
    """The flag of views that may be written, with NumPy's warning before the first write: all that ask whether they may not are told so."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told = False

    def __bool__(self) -> bool:
        if not self.told:
            warnings.warn(_MAY_OVERLAP, DeprecationWarning, stacklevel=stacklevel())
            self.told = True
        return False


_MAY_OVERLAP: Final = (
    "Numpy has detected that you (may be) writing to an array with\noverlapping memory from np.broadcast_arrays. If this is intentional\n"
    "set the WRITEABLE flag True or make a copy immediately before writing."
)


# The views themselves ----------------------------------------------------------------------------------------------------------


def reshaped_meanwhile(seen: Shape, now: Shape) -> ValueError:
    """Make the error of an array that a handler of a signal or another thread gave another shape in the middle of an operation."""
    return ValueError(f"an array of shape {seen} was given the shape {now} in the middle of an operation")


def derived(x: arrays.ndarray, seen: Shape, step: Step, readonly: bool = False, geometry: Geometry | None = None) -> arrays.ndarray:
    """The view of ``x`` that one more step gives, which was made for an array of the shape ``seen``."""
    base, node = x._base, x._node  # with nothing in between
    if type(base) is _MEMORY:
        # A lens all the same; its elements are found in memory when they are asked for.
        owner = hand.owner_of(x)
        root, start = hand.rooted(x)
        shape = base.shape
        apart = root is not x
        if not apart:
            root = hand.cell(base[...], owner)  # whose flags and shape are not set
        view = views.View(root.shape, root.dtype, (), root.shape, root.dtype, owner)
        if apart:
            place = start, base.strides
            view = view.extended((views.STRIDED, (*place, base.dtype), base.shape), view.owner, place)
        view = view.extended(step, view.owner, geometry)
    elif type(base) is arrays.ndarray:
        parent: views.View = x._view
        root, shape = base, parent.shape
        view = parent.extended(step, x if parent.owner is None else parent.owner, geometry)
    else:
        root = x
        at = node if base is None else base
        shape = at.shape
        if geometry is None and step[0] in _FIRST_STEPS:
            view = views.View(shape, at.dtype, (step,), step[2], at.dtype, x)
        else:
            view = views.View(shape, at.dtype, (), shape, at.dtype, None).extended(step, x, geometry)
    if shape != seen:
        raise reshaped_meanwhile(seen, shape)
    v: arrays.ndarray = _new(arrays.ndarray)
    v._node = None
    v._base = root
    v._view = view
    v._stamp = None
    v._readonly = True if readonly else x._readonly
    return v


def view_slice(x: arrays.ndarray, shape: Shape, axes: Region, lengths: Shape) -> arrays.ndarray:
    """Elements ``start + k*step`` of every axis of an array of this shape."""
    return derived(x, shape, (o.SLICE, axes, lengths))


def view_key(x: arrays.ndarray, seen: Shape, axes: Region, lengths: Shape, kept: tuple[int, ...]) -> arrays.ndarray:
    """Read a basic key: a slice, then the axis map ``kept``; in one step, because rows of a matrix are taken in loops."""
    if len(kept) == len(lengths) and views.NEW not in kept:
        return derived(x, seen, (o.SLICE, axes, lengths))
    shape = tuple([1 if axis < 0 else lengths[axis] for axis in kept])
    base, node = x._base, x._node  # with nothing in between
    if type(base) is arrays.ndarray or type(base) is _MEMORY:
        return derived(derived(x, seen, (o.SLICE, axes, lengths)), lengths, (views.AXES, kept, shape))
    at = node if base is None else base
    if at.shape != seen:
        raise reshaped_meanwhile(seen, at.shape)
    v: arrays.ndarray = _new(arrays.ndarray)
    v._node = None
    v._base = x
    v._view = views.View(at.shape, at.dtype, ((o.SLICE, axes, lengths), (views.AXES, kept, shape)), shape, at.dtype, x)
    v._stamp = None
    v._readonly = x._readonly
    return v


def view_keyed(x: arrays.ndarray, memory: np.ndarray[Any, Any], key: Any, shape: Shape) -> arrays.ndarray:
    """Read a basic key of a plain array that exists in ``memory``; NumPy has checked it and says the shape."""
    v: arrays.ndarray = _new(arrays.ndarray)
    v._node = v._stamp = None
    v._base = x
    v._view = views.Keyed(memory, key, shape, x, _path)
    v._readonly = x._readonly
    return v


def _path(key: Any, shape: Shape) -> Path:
    found = indexing.basic(key, shape)
    assert found is not None
    region, lengths, axes, _, _ = found
    if len(axes) == len(lengths) and views.NEW not in axes:
        return ((o.SLICE, region, lengths),)
    return (o.SLICE, region, lengths), (views.AXES, axes, tuple([1 if axis < 0 else lengths[axis] for axis in axes]))


def view_axes(x: arrays.ndarray, axes: tuple[int, ...]) -> arrays.ndarray:
    """Axes permuted, dropped (of length one) and added: ``axes`` names the source axis of each, or NEW."""
    shape = x.shape
    return derived(x, shape, (views.AXES, axes, tuple([1 if axis < 0 else shape[axis] for axis in axes])))


def view_permute(x: arrays.ndarray, axes: tuple[int, ...]) -> arrays.ndarray:
    """Axis k of the view is axis ``axes[k]`` of ``x``; all are at least 0."""
    return view_axes(x, axes)
