"""Arrays on devices: moving them, and sharing device memory with other libraries.

In: arrays of ours, or of a library that keeps them on a GPU (CuPy, PyTorch, JAX).  Out: the same values on another device, or in the other
library's hands, without a copy.  Promise: nothing here is computed before somebody wants the address; memory that others know is never
written by us, and what others write there while we hold it is their mistake.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazynp.graph.build import leaf, permute
from lazynp.graph.dtypes import NATIVE
from lazynp.ndarray import copy_order, force, geometry, ndarray, node_of, root_node, wrap, wrap_ordered
from lazynp.runtime import config, devices
from lazynp.scalars import CLASSES, scalar_of
from lazynp.views import memory_order


def moved(x: Any, name: str) -> Any:
    """The same values on a device; the array itself where they live there."""
    devices.checked(name)
    if (name == devices.CPU and not config.elsewhere) or (type(x) is not ndarray and type(x) not in CLASSES):
        return x
    if type(x) is not ndarray:
        return scalar_of(devices.copied(node_of(x), name))
    if x.device == name and devices.home(node_of(x)) == name:
        return x
    return wrap_ordered(devices.copied(node_of(x), name), copy_order(x, "K"))


def _buffer(x: ndarray) -> Any:
    """The device memory of an array's base, which others may know from now on."""
    root = x._base if type(x._base) is ndarray else x
    node = root_node(root)
    place = devices.place(devices.of(node))
    if node.buffer is None:
        force([node], "device memory")
    found = place.uploaded(node.buffer)
    found.exported = True
    return found


def interface(x: ndarray) -> dict[str, Any]:
    """``__cuda_array_interface__``: the address, and the stream that whoever reads there waits for."""
    buffer = _buffer(x)
    offset, strides = geometry(x)
    return {
        "version": 3,
        "shape": x.shape,
        "typestr": x.dtype.str,
        "strides": strides,
        "data": (buffer.address + offset if x.size else 0, False),
        "stream": buffer.block.stream.ptr or 1,
    }


def exported(x: ndarray) -> Any:
    """An array of CuPy's over the memory of ours; work on it waits for ours."""
    buffer = _buffer(x)
    offset, strides = geometry(x)
    return buffer.place.lent(buffer, x.shape, x.dtype, offset, strides)


def adopted(obj: Any) -> Any:
    """An array on a GPU as ours; None for what is not on a GPU, or has a dtype that lazynp does not compute with."""
    try:
        described = obj.__cuda_array_interface__
    except (AttributeError, TypeError):
        return None
    dtype = np.dtype(described["typestr"])
    return from_gpu(obj) if dtype in NATIVE and dtype.isnative else None


def from_gpu(obj: Any) -> Any:
    """Another library's array on a GPU, whose memory is shared; we never write to it."""
    from lazynp.backends.cuda import driver

    cupy = driver.cupy()
    array = obj if type(obj) is cupy.ndarray else cupy.from_dlpack(obj) if hasattr(obj, "__dlpack__") else cupy.asarray(obj)
    if array.dtype not in NATIVE:
        raise TypeError(f"lazynp does not compute with dtype {array.dtype}")
    config.elsewhere = True
    place = devices.place(f"cuda:{array.device.id}")
    axes = memory_order(array.shape, array.strides, array.itemsize)
    laid = array if axes is None else array.transpose(axes)
    if not laid.flags.c_contiguous:
        laid = cupy.ascontiguousarray(laid)
    node = leaf(place.adopted(laid))
    if axes is None:
        return wrap(node)
    return wrap_ordered(permute(node, tuple(np.argsort(axes).tolist())), axes)
