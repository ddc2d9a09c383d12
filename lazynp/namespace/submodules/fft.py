"""Fourier transforms.

In: arrays.  Out: library calls whose dtype and shape are known at the call.  Promise: NumPy's own transforms do the work; what is
outside the plain cases (``s=``, ``out=``) goes to NumPy at once.
"""

from __future__ import annotations

from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import wrap
from lazynp.conversion import asarray as _asarray
from lazynp.namespace.bridge import fallback
from lazynp.namespace.device.placement import moved
from lazynp.namespace.routines.joining import roll
from lazynp.namespace.routines.selecting import library
from lazynp.namespace.standard import checked_device
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.promotion import Foreign, array_node

_fft_dtypes: dict[tuple[str, np.dtype[Any]], np.dtype[Any]] = {}


def _fft_dtype(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    found = _fft_dtypes.get((name, dtype))
    if found is None:
        found = _fft_dtypes[name, dtype] = getattr(np.fft, name)(np.zeros(2, dtype), 2).dtype
    return found


def _fft(name: str) -> Any:
    numpy_function = getattr(np.fft, name)

    def function(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        try:
            x = array_node(a)
            if out is not None or not x.shape or norm not in (None, "backward", "ortho", "forward"):
                raise Foreign
            if n is None and not -len(x.shape) <= index(axis) < len(x.shape):
                raise IndexError("tuple index out of range")
            along = ax.one(axis, len(x.shape))
            length = None if n is None else index(n)
            if length is not None and length < 1:
                raise Foreign
        except Foreign:
            return fallback.library_call(numpy_function, f"fft.{name}", (a, n, axis, norm), {} if out is None else {"out": out})
        if name in ("irfft", "hfft"):
            size = 2 * (x.shape[along] - 1) if length is None else length
        else:
            size = x.shape[along] if length is None else length
        if size < 1:
            raise ValueError(f"Invalid number of FFT data points ({size}) specified.")
        m = size // 2 + 1 if name in ("rfft", "ihfft") else size
        shape = tuple([m if k == along else count for k, count in enumerate(x.shape)])
        return wrap(library(f"fft.{name}", (x,), _fft_dtype(name, x.dtype), shape, n=length, axis=along, norm=norm))

    function.__name__ = function.__qualname__ = name
    return fallback.library(function)


def _fftn(name: str, default_axes: Any) -> Any:
    numpy_function = getattr(np.fft, name)
    one_dimensional = name.rstrip("n2")

    def function(a: Any, s: Any = None, axes: Any = default_axes, norm: Any = None, out: Any = None) -> Any:
        try:
            x = array_node(a)
            if out is not None or s is not None or norm not in (None, "backward", "ortho", "forward"):
                raise Foreign
            chosen = tuple(range(len(x.shape))) if axes is None else tuple([ax.one(k, len(x.shape)) for k in axes])
            if any(x.shape[k] < 1 for k in chosen) or not chosen:
                raise Foreign
        except Foreign:
            return fallback.library_call(numpy_function, f"fft.{name}", (a, s, axes, norm), {} if out is None else {"out": out})
        dtype = _fft_dtype(one_dimensional, x.dtype)
        return wrap(library(f"fft.{name}", (x,), dtype, x.shape, axes=chosen, norm=norm))

    function.__name__ = function.__qualname__ = name
    return fallback.library(function)


@fallback.library
def fftfreq(n: Any, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """Compute the frequencies of a transform's values; see :func:`numpy.fft.fftfreq`."""
    return _frequencies("fftfreq", n, d, device, dtype)


@fallback.library
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """Compute the frequencies of a real transform's values; see :func:`numpy.fft.rfftfreq`."""
    return _frequencies("rfftfreq", n, d, device, dtype)


def _frequencies(name: str, n: Any, d: Any, device: Any, dtype: Any) -> Any:
    place = checked_device(device)
    found = fallback.library_call(getattr(np.fft, name), f"fft.{name}", (n, d), {})
    if place is not None:
        found = moved(found, place)
    return found if dtype is None else found.astype(dtype)


def fftshift(x: Any, axes: Any = None) -> Any:
    """Move the zero frequency to the middle; see :func:`numpy.fft.fftshift`."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Undo ``fftshift``; see :func:`numpy.fft.ifftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, direction: int) -> Any:
    array = _asarray(x)
    chosen = tuple(range(array.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    shifts = [array.shape[k] // 2 if direction > 0 else -(array.shape[k] // 2) for k in chosen]
    return roll(array, shifts, chosen)


def attribute(value: Any, name: str) -> Any:
    """Make what ``lazynp.fft.<name>`` is when it is none of ours."""
    return fallback.library_attribute(value, f"fft.{name}")


FUNCTIONS: Final = {
    **{name: _fft(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    "fft2": _fftn("fft2", (-2, -1)),
    "ifft2": _fftn("ifft2", (-2, -1)),
    "fftn": _fftn("fftn", None),
    "ifftn": _fftn("ifftn", None),
    "fftfreq": fftfreq,
    "rfftfreq": rfftfreq,
    "fftshift": fftshift,
    "ifftshift": ifftshift,
}
