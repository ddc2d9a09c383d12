"""DLPack: device arrays out and in, without copies.

In: an array, or an object with ``__dlpack__``.  Out: a capsule with the C structures of DLPack 0.8 or 1.0, or an array over another's
memory. Promise: the exporter's memory lives until the consumer calls the deleter; the consumer's stream comes after the exporter's.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from gpu_emulator.fakecupy.machine import machine
from gpu_emulator.fakecupy.memory import MemoryPointer, UnownedMemory

CPU, CUDA = 1, 2
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _Deleter),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]


_exported: dict[int, Any] = {} # what the consumers hold, by number
_numbers = itertools.count(1)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_NAMES = {_Managed: (b"dltensor", b"used_dltensor"), _Versioned: (b"dltensor_versioned", b"used_dltensor_versioned")}


def export(array: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A capsule.  One that nobody consumes keeps its array."""
    if dl_device is not None and tuple(dl_device) != (CUDA, array.data.device_id):
        raise BufferError("the fake exports to the array's own device only")
    if copy:
        raise BufferError("copy=True is not supported")
    _order(stream)
    kind = _Versioned if max_version is not None and max_version[0] >= 1 else _Managed
    number = next(_numbers)
    managed = kind()
    managed.context, managed.deleter = number, _delete
    if kind is _Versioned:
        managed.major, managed.minor = 1, 0
    tensor = managed.tensor
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
    tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = array.data.ptr, CUDA, array.data.device_id, array.ndim
    tensor.code, tensor.bits, tensor.lanes = _CODES[array.dtype.kind], 8 * array.itemsize, 1
    tensor.shape, tensor.strides = shape, strides
    _exported[number] = (array, managed, shape, strides)
    _by_address[ctypes.addressof(managed)] = number
    return _api.PyCapsule_New(ctypes.addressof(managed), _NAMES[kind][0], None)


_by_address: dict[int, int] = {}


@_Deleter
def _delete(address: int) -> None:
    _exported.pop(_by_address.pop(address, 0), None)


def _order(stream: Any) -> None:
    """The consumer's stream comes after what is queued in the current one; -1 asks for nothing."""
    from gpu_emulator.fakecupy.stream import get_current_stream

    if stream == -1:
        return
    if stream == 0:
        raise ValueError("Stream 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one")
    fake = machine()
    producer, consumer = get_current_stream()._state, fake.stream(1 if stream is None else stream)
    if producer is not consumer and producer.tail is not None:
        fake.enqueue(consumer, None, "wait of a DLPack consumer", (producer.tail,))


class _Owner:
    """Calls the producer's deleter when the last array over its memory is dropped."""

    def __init__(self, managed: Any) -> None:
        self.managed = managed

    def __del__(self) -> None:
        self.managed.deleter(ctypes.addressof(self.managed))


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> Any:
    from gpu_emulator.fakecupy.array import ndarray
    from gpu_emulator.fakecupy.stream import get_current_stream

    kind, number = array.__dlpack_device__()
    if kind != CUDA:
        if kind == CPU:
            from gpu_emulator.fakecupy.library import asarray

            return asarray(np.from_dlpack(array))
        raise BufferError(f"unsupported device type {kind}")
    fake = machine()
    before, fake.device = fake.device, number
    try:
        stream = get_current_stream().ptr or 1
        try:
            capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:
            capsule = array.__dlpack__(stream=stream)
    finally:
        fake.device = before
    for form, (fresh, used) in _NAMES.items():
        if _api.PyCapsule_IsValid(capsule, fresh):
            managed = form.from_address(_api.PyCapsule_GetPointer(capsule, fresh))
            _api.PyCapsule_SetName(capsule, used)
            break
    else:
        raise ValueError("the capsule holds no DLPack tensor, or one that was consumed")
    tensor = managed.tensor
    dtype = np.dtype("?" if _KINDS[tensor.code] == "b" else f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] * dtype.itemsize for k in range(tensor.ndim)) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    memory = UnownedMemory(address, 0, _Owner(managed), number)
    result = ndarray(shape, dtype, MemoryPointer(memory, 0), strides)
    return result.copy() if copy else result
