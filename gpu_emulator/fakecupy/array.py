"""``cupy.ndarray``: shape, dtype and strides over device memory.

In: device memory.  Out: arrays and views.  Promise: every value is made by work queued in the current stream, from what memory holds when
that work runs; the array keeps its memory alive, and queued work does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_emulator.fakecupy import blocks, dlpack, library
from gpu_emulator.fakecupy.memory import MemoryPointer, alloc
from gpu_emulator.fakecupy.stream import get_current_stream


class _Flags:
    def __init__(self, c: bool, f: bool, own: bool) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata, self.forc = c, f, own, c or f

    def __getitem__(self, name: str) -> bool:
        return getattr(self, {"C": "c_contiguous", "F": "f_contiguous"}.get(name, name.lower().removesuffix("s")))


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if np.ndim(shape) == 0 else tuple(map(int, shape))


class ndarray:
    """An array on a device."""

    __array_priority__ = 100
    data: MemoryPointer
    base: Any

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C") -> None:
        self._dtype = np.dtype(dtype)
        if self._dtype.hasobject or self._dtype.kind in "SUMm":
            raise ValueError(f"Unsupported dtype {self._dtype}")
        self._shape = _shape(shape)
        if any(n < 0 for n in self._shape):
            raise ValueError("Negative dimensions are not allowed")
        self.base = None
        if strides is not None:
            if memptr is None:
                raise ValueError("memptr must be given if strides is given.")
            self._strides = tuple(map(int, strides))
        else:
            self._strides = library.contiguous(self._shape, self._dtype.itemsize, order)
        self.data = alloc(self.nbytes) if memptr is None else memptr

    # what it is

    dtype = property(lambda self: self._dtype)
    shape = property(lambda self: self._shape)
    strides = property(lambda self: self._strides)
    ndim = property(lambda self: len(self._shape))
    size = property(lambda self: math.prod(self._shape))
    itemsize = property(lambda self: self._dtype.itemsize)
    nbytes = property(lambda self: self.size * self._dtype.itemsize)
    device = property(lambda self: self.data.device)

    @property
    def flags(self) -> _Flags:
        like = self._like().flags
        return _Flags(like.c_contiguous, like.f_contiguous, self.base is None)

    def _like(self) -> np.ndarray[Any, Any]:
        """A NumPy array with these shape and strides over the same addresses, never to be read here."""
        return blocks.host_view(self.data.ptr, self._shape, self._strides, self._dtype)

    def _view(self, like: np.ndarray[Any, Any]) -> ndarray:
        """The view of this array that NumPy made of its likeness."""
        offset = like.__array_interface__["data"][0] - self.data.ptr if like.size else 0
        view = ndarray(like.shape, like.dtype, self.data + offset if offset else self.data, like.strides)
        view.base = self if self.base is None else self.base
        return view

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = get_current_stream().ptr
        return {
            "shape": self._shape, "typestr": self._dtype.str, "descr": self._dtype.descr, "version": 3, "stream": stream or 1,
            "strides": None if self.flags.c_contiguous else self._strides, "data": (self.data.ptr if self.size else 0, False),
        }

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        return dlpack.export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.data.device_id

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = library.UFUNCS.get(ufunc.__name__)
        if method != "__call__" or known is None:
            return NotImplemented
        out = kwargs.pop("out", None)
        return known(*inputs, out=out[0] if out is not None else None, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        table = {"numpy.linalg": library.LINALG, "numpy.fft": library.FFT}.get(func.__module__, library.NUMPY)
        return library.function(table[func.__name__])(*args, **kwargs) if func.__name__ in table else NotImplemented

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    # between host and device

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray[Any, Any]:
        stream = get_current_stream() if stream is None else stream
        if out is None:
            like = self._like()
            out = np.empty(self._shape, self._dtype, "F" if order == "F" or (order == "A" and like.flags.fnc) else "C")
        elif not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        elif out.dtype != self._dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self._dtype} array")
        elif out.shape != self._shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self._shape}, actual shape: {out.shape}")
        elif not out.flags.forc:
            raise RuntimeError("`out` must be contiguous")
        if not self.size:
            return out
        strides = out.strides
        same = self._strides == strides or self.size == 1
        with stream:
            source = self if same else library.copy_to_layout(self, "F" if out.flags.f_contiguous and not out.flags.c_contiguous else "C")
        with self.device:
            source.data.copy_to_host_async(out.ctypes.data, self.nbytes, stream)
            if blocking:
                stream.synchronize()
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self._dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self._dtype} array")
        if self._shape != arr.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self._shape}, new shape: {arr.shape}")
        if not self.flags.forc:
            raise RuntimeError("Cannot set to non-contiguous array")
        arr = np.ascontiguousarray(arr) if self.flags.c_contiguous else np.asfortranarray(arr)
        with self.device:
            self.data.copy_from_host_async(arr.ctypes.data, self.nbytes, stream)

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self.get().tobytes(order)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    # views

    T = property(lambda self: self._view(self._like().T))
    mT = property(lambda self: self._view(self._like().mT))

    @property
    def real(self) -> ndarray:
        return self._view(self._like().real)

    @real.setter
    def real(self, value: Any) -> None:
        library.call("positive", value, out=self.real)

    @property
    def imag(self) -> ndarray:
        return self._view(self._like().imag) if self._dtype.kind == "c" else library.call("zeros_like", self)

    @imag.setter
    def imag(self, value: Any) -> None:
        library.call("positive", value, out=self.imag)

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        return self._view(self._like().view(self._dtype if dtype is None else dtype))

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> ndarray:
        like = self._like()
        wanted = shape[0] if len(shape) == 1 else shape
        try:
            view = like.reshape(wanted, order=order, copy=False)
        except ValueError:
            view = None
        if view is not None:
            return self._view(view) if not copy else self._view(view).copy()
        np.empty(self._shape, np.bool_).reshape(wanted) # the error of a wrong shape
        if copy is False:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return library.copy_to_layout(self, order).reshape(wanted, order=order)

    def ravel(self, order: str = "C") -> ndarray:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> ndarray:
        return library.copy_to_layout(self, order).reshape(-1, order=order)

    def transpose(self, *axes: Any) -> ndarray:
        return self._view(self._like().transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        return self._view(self._like().swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> ndarray:
        return self._view(self._like().squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
        return self._view(self._like().diagonal(offset, axis1, axis2))

    def __getitem__(self, index: Any) -> ndarray:
        if library.is_basic(index):
            like = self._like()[index if isinstance(index, tuple) else (index,)]
            return self._view(like if isinstance(like, np.ndarray) else self._scalar_view(index))
        return library.get_items(self, index)

    def _scalar_view(self, index: Any) -> np.ndarray[Any, Any]:
        return self._like()[(*index, ...) if isinstance(index, tuple) else (index, ...)]

    def __setitem__(self, index: Any, value: Any) -> None:
        library.set_items(self, index, value)

    # copies

    def copy(self, order: str = "C") -> ndarray:
        return library.copy_to_layout(self, order)

    def astype(self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> ndarray:
        dtype = np.dtype(dtype)
        if not copy and dtype == self._dtype:
            return self
        return library.call("astype", self, dtype)

    def fill(self, value: Any) -> None:
        library.set_items(self, ..., value)

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        library.set_items(self, ..., library.call("sort", self, axis=axis))

    def partition(self, kth: Any, axis: int = -1) -> None:
        library.set_items(self, ..., library.call("partition", self, kth, axis=axis))

    __hash__ = None # type: ignore[assignment]


library.complete(ndarray)
