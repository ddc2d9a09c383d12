"""Arrays from and to files, bytes, text and other libraries.

In: what NumPy's functions of these names take.  Out: arrays of ours, or files written by NumPy.  Promise: values are computed when they
are written; a buffer's memory is shown, not copied.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any, Final

import numpy as np

from lazynp.array import hand
from lazynp.arrays import ndarray
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.namespace.bridge.fallback import Library, library, library_call, ours
from lazynp.namespace.device.placement import moved
from lazynp.namespace.routines.maps import memmap
from lazynp.namespace.standard import checked_device
from lazynp.protocols import memory_of
from lazynp.values import config


class NpzFile(np.lib.npyio.NpzFile):
    """An open ``.npz`` archive whose members are arrays of ours; see :class:`numpy.lib.npyio.NpzFile`."""

    def __getitem__(self, key: str) -> Any:
        return ours(super().__getitem__(key))


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapper's name, signature are NumPy's."""
    theirs = getattr(np, function.__name__)
    if hasattr(theirs, "__wrapped__"):
        function.__wrapped__ = theirs  # type: ignore[attr-defined]
    else:  # and wraps nothing, which programs look for
        function.__signature__ = signature(theirs)  # type: ignore[attr-defined]
    return library(function)


@_like
def load(*args: Any, **kwargs: Any) -> Any:
    found = library_call(np.load, "load", args, kwargs)
    if type(found) is np.lib.npyio.NpzFile:
        found.__class__ = NpzFile
    return found.view(memmap) if type(found) is np.memmap else found


@_like
def frombuffer(*args: Any, **kwargs: Any) -> Any:
    """Show a buffer's memory as an array; see :func:`numpy.frombuffer`."""
    if args:
        args = (memory_of(args[0]), *args[1:])
    elif "buffer" in kwargs:
        kwargs["buffer"] = memory_of(kwargs["buffer"])
    found = np.frombuffer(*args, **kwargs)
    return hand.result(found) if found.size <= config.at_hand > 0 else asarray(found)


@library
def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """Show another library's array, or copy it; see :func:`numpy.from_dlpack`."""
    place = checked_device(device)
    if type(x) is ndarray:
        array: Any = x
        array = array.copy() if copy else array.view()
        return array if place is None else moved(array, place)
    if getattr(x, "__dlpack_device__", tuple)()[:1] == (2,):
        array = devices.use().from_gpu(x, bool(copy))
        return array if place is None else moved(array, place)
    found = asarray(np.from_dlpack(x, copy=copy))
    return found if place is None else moved(found, place)


def dump(self: Any, file: Any) -> None:
    """Pickle to a file; see :meth:`numpy.ndarray.dump`."""
    if hasattr(file, "write"):
        pickle.dump(self, file, protocol=4)
        return
    with open(file, "wb") as opened:
        pickle.dump(self, opened, protocol=4)


def dumps(self: Any) -> bytes:
    """Pickle to bytes; see :meth:`numpy.ndarray.dumps`."""
    return pickle.dumps(self, protocol=4)


FUNCTIONS: Final = {
    **{function.__name__: function for function in (load, frombuffer, from_dlpack)},
    **{
        name: Library(getattr(np, name))
        for name in (
            "fromfile", "fromiter", "fromregex", "fromstring", "genfromtxt", "loadtxt", "save", "savetxt", "savez", "savez_compressed",
        )
    },
}  # fmt: skip
