"""The modules that the fake offers, by the real package's names.

In: the implementation.  Out: module objects for ``sys.modules``.  Promise: a module holds the names listed here and no others, each of
which the real module has; what imports as a module in the real package (and only that) does here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from gpu_emulator.fakecupy import (
    array,
    device,
    dlpack,
    errors,
    importing,
    kernels,
    library,
    memory,
    nvrtc,
    nvtx,
    pinned_memory,
    runtime,
    stream,
)
from gpu_emulator.fakecupy.signatures import words

DTYPES = words("""bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 dtype newaxis pi e
    inf nan result_type can_cast promote_types finfo iinfo issubdtype intp number integer floating complexfloating generic""")


def _public(*names: str, of: Any) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def is_available() -> bool:
    return runtime.getDeviceCount() > 0


# creation


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    return array.ndarray(shape, dtype, order=order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    result = empty(shape, dtype, order)
    if result.nbytes:
        result.data.memset_async(0, result.nbytes)
    return result


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    result = empty(shape, np.asarray(fill_value).dtype if dtype is None and not isinstance(fill_value, array.ndarray) else
                   fill_value.dtype if dtype is None else dtype, order)
    result.fill(fill_value)
    return result


def ones(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    return full(shape, 1, dtype, order)


def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
    layout = "F" if order == "F" or (order in "AK" and prototype.flags.f_contiguous and not prototype.flags.c_contiguous) else "C"
    return empty(prototype.shape if shape is None else shape, prototype.dtype if dtype is None else dtype, layout)


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
    result = empty_like(a, dtype, order, subok, shape)
    result.fill(fill_value)
    return result


def make_array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0, *,
               blocking: bool = False) -> Any:
    result = library.asarray(obj, dtype, None if order == "K" else order, copy=copy, blocking=blocking)
    return result.reshape((1,) * (ndmin - result.ndim) + result.shape) if ndmin > result.ndim else result


make_array.__name__ = "array"


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    result = library.asarray(a, dtype, "C")
    return result.reshape(1) if result.ndim == 0 else result


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    return library.asarray(a, dtype, "F")


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    if isinstance(a, array.ndarray):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    if hasattr(a, "__cuda_array_interface__"):
        return library.wrap(a).get(stream=stream, order=order, out=out, blocking=blocking)
    result = np.asarray(a, order=order) # type: ignore[call-overload]
    if out is not None:
        out[...] = result
        return out
    return result


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if not np.can_cast(src.dtype if hasattr(src, "dtype") else np.asarray(src).dtype, dst.dtype, casting): # type: ignore[arg-type]
        raise TypeError(f"Cannot cast {src.dtype!r} to {dst.dtype!r} with {casting!r} casting rule")
    if where is None:
        library.set_items(dst, ..., src)
    else:
        library.set_items(dst, ..., library.call("where", where, src, dst))


def reshape(a: Any, newshape: Any, order: str = "C", *, copy: Any = None) -> Any:
    return a.reshape(newshape, order=order, copy=copy)


def ravel(a: Any, order: str = "C") -> Any:
    return a.ravel(order)


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    return x.astype(dtype, copy=copy)


def get_array_module(*args: Any) -> ModuleType:
    return modules()["cupy"] if any(isinstance(arg, array.ndarray) for arg in args) else np


@contextlib.contextmanager
def errstate(*, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None, linalg: Any = None) -> Iterator[None]:
    before = getattr(library.errors, "linalg", None)
    library.errors.linalg = before if linalg is None else linalg
    try:
        yield
    finally:
        library.errors.linalg = before


def geterr() -> dict[str, Any]:
    return {"divide": None, "over": None, "under": None, "invalid": None, "linalg": getattr(library.errors, "linalg", None) or "ignore"}


def empty_pinned(shape: Any, dtype: Any = float, order: str = "C") -> np.ndarray[Any, Any]:
    """A NumPy array in pinned memory."""
    count = int(np.prod(shape))
    memory = pinned_memory.alloc_pinned_memory(count * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype, count).reshape(shape, order=order) # type: ignore[call-overload]


def _functions(entries: dict[str, library._Entry]) -> dict[str, Callable[..., Any]]:
    return {name: library.function(entry) for name, entry in entries.items()}


def _table() -> dict[str, dict[str, Any]]:
    creation = (empty, zeros, full, ones, empty_like, zeros_like, ones_like, full_like, ascontiguousarray, asfortranarray, asnumpy, copyto,
                reshape, ravel, astype, get_array_module, library.asarray, make_array)
    allocation = words("BaseMemory Memory MemoryPointer MemoryPool UnownedMemory alloc get_allocator set_allocator")
    pinned = words("PinnedMemory PinnedMemoryPointer PinnedMemoryPool alloc_pinned_memory set_pinned_memory_allocator")
    streams = words("Event ExternalStream Stream get_current_stream get_elapsed_time")
    return {
        "cupy": {
            "ndarray": array.ndarray, "ufunc": library.ufunc, "is_available": is_available, "__version__": "14.2.0",
            "from_dlpack": dlpack.from_dlpack, **{made.__name__: made for made in creation}, **library.UFUNCS, **_functions(library.NUMPY),
            **_public("RawKernel", "RawModule", of=kernels), **_public("get_default_memory_pool", of=memory),
            **_public("get_default_pinned_memory_pool", of=pinned_memory), **_public(*DTYPES, of=np),
        },
        "cupy.linalg": {**_functions(library.LINALG), "LinAlgError": np.linalg.LinAlgError},
        "cupy.fft": _functions(library.FFT),
        "cupy.fft.config": {"clear_plan_cache": library.clear_plan_cache},
        "cupy.cuda": {
            "is_available": is_available, "using_allocator": memory.using_allocator, "Graph": stream.Graph,
            **_public(*allocation, of=memory), **_public(*pinned, of=pinned_memory), **_public(*streams, of=stream),
            **_public("Device", "get_device_id", of=device), **_public("get_cublas_handle", of=library),
            **_public("Function", "Module", of=kernels),
        },
        "cupy.cuda.runtime": {
            **{name: value for name, value in vars(runtime).items()
               if name[0] != "_" and getattr(value, "__module__", "") == runtime.__name__},
            **runtime.CONSTANTS, **runtime.ATTRIBUTES, "CUDARuntimeError": errors.CUDARuntimeError,
        },
        "cupy.cuda.memory": {
            **_public(*allocation, "PooledMemory", "SingleDeviceMemoryPool", of=memory),
            **_public("CUDARuntimeError", "OutOfMemoryError", of=errors),
        },
        "cupy.cuda.pinned_memory": _public(*pinned, "is_memory_pinned", of=pinned_memory),
        "cupy.cuda.stream": _public(*streams, of=stream),
        "cupy.cuda.graph": _public("Graph", of=stream),
        "cupy.cuda.device": _public("Device", "get_compute_capability", "get_device_id", of=device),
        "cupy.cuda.function": _public("CPointer", "Function", "Module", of=kernels),
        "cupy.cuda.compiler": _public("CompileException", of=kernels),
        "cupyx": _public("errstate", "geterr", "empty_pinned", of=_here()),
    }


# these two are attributes of cupy.cuda but cannot be imported by that name
UNIMPORTABLE = {
    "cupy.cuda.nvrtc": {
        **_public(*words("createProgram compileProgram getCUBIN getPTX getProgramLog destroyProgram getVersion"), of=nvrtc),
        "getSupportedArchs": nvrtc.getSupportedArchs,
        "NVRTCError": errors.NVRTCError,
    },
    "cupy.cuda.nvtx": _public("RangePush", "RangePop", of=nvtx),
    "cupy.cuda.cublas": {**_public("getMathMode", "setMathMode", of=library), "CUBLAS_DEFAULT_MATH": 0, "CUBLAS_TENSOR_OP_MATH": 1},
    "cupy.cuda.driver": {"CUDADriverError": errors.CUDADriverError, "funcSetAttribute": kernels.funcSetAttribute},
}


def _here() -> Any:
    import sys

    return sys.modules[__name__]


_made: dict[str, ModuleType] = {}


def modules() -> dict[str, ModuleType]:
    """What goes into ``sys.modules``."""
    if not _made:
        loose: dict[str, ModuleType] = {}
        for table, target in ((_table(), _made), (UNIMPORTABLE, loose)):
            for name, contents in table.items():
                module = target[name] = ModuleType(name)
                module.__spec__ = ModuleSpec(name, None) # `find_spec` asks for it
                module.__dict__.update(contents)
        for name in ("cupy", "cupy.cuda", "cupy.fft"):
            _made[name].__path__ = [] # packages
        _made["cupyx"].__path__ = [importing.EXTENSIONS] # which has modules in files
        for name, module in (*_made.items(), *loose.items()):
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(_made[parent], child, module)
    return _made
