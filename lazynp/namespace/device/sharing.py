"""Arrays in device memory: sharing it with other libraries, and what CuPy computes of it at once.

In: arrays of ours, or of a library that keeps them on a GPU (CuPy, PyTorch, JAX).  Out: the same values on another device, or in the other
library's hands, without a copy.  Promise: nothing here is computed before the address is wanted; memory that others know is never
written by us, and what others write there while we hold it is their mistake.

Complex numbers of others that lie at no multiple of their size are copied: on an H100 such an array stopped the device.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, Final
from weakref import finalize

import numpy as np

from lazynp.arrays import ndarray, root_node, wrap, wrap_ordered
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph import report
from lazynp.graph.build import leaf, permute
from lazynp.graph.dtypes import NATIVE
from lazynp.graph.node import caller
from lazynp.layout import geometry
from lazynp.namespace.device.placement import on_gpu
from lazynp.scalars import CLASSES, force
from lazynp.views import memory_order


def positions(x: ndarray) -> list[ndarray] | None:
    """Find where a GPU's array is not zero, an index array per axis; None for what belongs to the processor."""
    if not on_gpu(x) or not x.shape or not x.size:
        return None
    place = devices.place(x.device)
    with place.running() as run:
        array = lent(x, place, run)
        return [wrap(leaf(place.kept(found, run))) for found in place.cupy.nonzero(array)]


def computed(name: str, args: Any, kwargs: dict[str, Any], nodes: Any) -> Any:
    """NumPy's function of that name by CuPy, where its arrays belong to a GPU and CuPy has one that means the same; else None."""
    home = devices.join(devices.homes(nodes).values(), nodes[-1]) or devices.default()
    if home == devices.CPU:
        return None
    from lazynp.backends.cuda import library

    if name in library.AT_ONCE and all(map(_is_plain, kwargs.values())):
        place = devices.place(home)
        with place.running() as run:
            given = [lent(x, place, run) for x in args]
            found = library.at_once(name, given, kwargs, place)
            if found is not None:
                report.work.library_calls += 1
                return _results(name, found, kwargs, lambda array: wrap(leaf(place.kept(array, run))))
    report.count_on_host(name, sum(node.dtype.itemsize * prod(node.shape) for node in nodes), caller())
    return None


def _is_plain(value: Any) -> bool:
    """Tell whether an argument is the same for CuPy: no array."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.bool_, np.number))


def lent(x: Any, place: Any, run: Any) -> Any:
    """An array of ours, computed, as one of CuPy's over the same memory, within a run; numbers as they are."""
    if type(x) is not ndarray:
        return x.concrete("linalg") if type(x) in CLASSES else x
    buffer = place.uploaded(_memory(x))
    place.joined(run, buffer.block)
    return place.lent(buffer, x.shape, x.dtype, *geometry(x))


def _results(name: str, found: Any, kwargs: dict[str, Any], ours: Any) -> Any:
    """CuPy's results as ours, in NumPy's tuple."""
    if not isinstance(found, tuple):
        made = ours(found)
        return made if made.shape else made[()]
    parts = [_results(name, part, kwargs, ours) if hasattr(part, "shape") else part for part in found]
    named = _named(name)
    return named(*parts) if len(getattr(named, "_fields", ())) == len(parts) else tuple(parts)


@functools.cache
def _named(name: str) -> Any:
    """NumPy's class of a function's results."""
    return type(getattr(np.linalg, name.removeprefix("linalg."))(np.eye(1))) if name in _NAMED else tuple


_NAMED: Final = ("linalg.qr", "linalg.svd", "linalg.eig", "linalg.eigh", "linalg.slogdet")


def _memory(x: ndarray) -> Any:
    """The value of an array's base, computed, in the memory of the device it belongs to."""
    root = x._base if type(x._base) is ndarray else x
    node = root_node(root)
    place = devices.place(devices.of(node)) if on_gpu(x) else None
    if node.op is o.CONST or node.buffer is None:
        force([node], "device memory")
    return node.buffer if place is None else place.uploaded(node.buffer)


def _buffer(x: ndarray) -> Any:
    """The device memory of an array's base, which others may know from now on."""
    found = _memory(x)
    found.exported = True
    return found


# What an array object showed to others, by its id: they keep that object, whatever is written into it meanwhile.
_exports: Final[dict[int, set[Any]]] = {}


def interface(x: ndarray) -> dict[str, Any]:
    """``__cuda_array_interface__``: the address, and the stream that a reader waits for."""
    buffer = _buffer(x)
    offset, strides = geometry(x)
    held = _exports.get(id(x))
    if held is None:
        held = _exports[id(x)] = set()
        finalize(x, _exports.pop, id(x), None).atexit = False
    held.add(buffer.block)
    return {
        "version": 3,
        "shape": x.shape,
        "typestr": x.dtype.str,
        "strides": strides,
        "data": (buffer.address + offset if x.size else 0, False),
        "stream": buffer.block.stream.ptr or 1,
    }


def dlpack(x: ndarray, **wanted: Any) -> Any:
    """``x.__dlpack__(**wanted)``: CuPy's, which makes no copies."""
    given = {key: value for key, value in wanted.items() if value is not None}
    copy = given.pop("copy", False)
    with devices.place(x.device).device:  # the caller may be at work on another one
        shared = exported(x)
        return (shared.copy() if copy else shared).__dlpack__(**given)


def exported(x: ndarray) -> Any:
    """An array of CuPy's over the memory of ours; work on it waits for ours."""
    buffer = _buffer(x)
    offset, strides = geometry(x)
    return buffer.place.lent(buffer, x.shape, x.dtype, offset, strides)


def adopted(obj: Any, copy: bool | None = None) -> Any:
    """An array on a GPU as ours; None for what is not on a GPU, or has a dtype that lazynp does not compute with."""
    try:
        described = obj.__cuda_array_interface__
    except (AttributeError, TypeError):
        return None
    dtype = np.dtype(described["typestr"])
    return from_gpu(obj, bool(copy)) if dtype in NATIVE and dtype.isnative else None


def from_gpu(obj: Any, copy: bool = False) -> Any:
    """Another library's array on a GPU; its memory is shared, and never written by us, or copied."""
    from lazynp.backends.cuda import driver

    cupy = driver.cupy()
    array = obj if type(obj) is cupy.ndarray else cupy.from_dlpack(obj) if hasattr(obj, "__dlpack__") else cupy.asarray(obj)
    if array.dtype not in NATIVE:
        raise TypeError(f"lazynp does not compute with dtype {array.dtype}")
    devices.use()
    place = devices.place(f"cuda:{array.device.id}")
    axes = memory_order(array.shape, array.strides, array.itemsize)
    laid = array if axes is None else array.transpose(axes)
    with place.device:  # CuPy's current one, and its stream, may be another
        # Kernels read an element at once, so it lies at a multiple of its size; complex numbers of others may lie where their parts do.
        if laid.data.ptr % laid.itemsize:  # CuPy's copy reads whole elements, too
            whole = cupy.empty(laid.shape, laid.dtype)
            whole.real, whole.imag = laid.real, laid.imag
            laid = whole
        elif copy or not laid.flags.c_contiguous:
            laid = cupy.array(laid, order="C")
        node = leaf(place.adopted(laid))
    if axes is None:
        return wrap(node)
    return wrap_ordered(permute(node, tuple(np.argsort(axes).tolist())), axes)
