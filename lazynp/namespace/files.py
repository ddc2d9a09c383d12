"""Files, buffers and text: where arrays come from and go to.

In: file names and objects, bytes, iterators, other libraries' arrays.  Out: arrays of ours read from them, or ours written to them.
Promise: NumPy does the reading, writing and formatting, on values; what it reads is ours, inside archives too.  Memory that belongs to
somebody else is copied: what NumPy would share, writable, is read-only here, so that a write cannot get lost in silence.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np

from lazynp.graph.dtypes import NATIVE
from lazynp.namespace.creation import array
from lazynp.namespace.fallback import ours
from lazynp.ndarray import from_numpy, ndarray
from lazynp.protocols import to_host

_PASSED_THROUGH: Final = (
    "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromfile", "fromstring", "fromiter", "fromregex",
    "array2string", "array_repr", "array_str",
)  # fmt: skip


def _on_values(name: str) -> Callable[..., Any]:
    theirs = getattr(np, name)

    @wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        return ours(theirs(*to_host(args, name), **to_host(kwargs, name)))

    function.__module__ = "lazynp"
    return function


class NpzFile(np.lib.npyio.NpzFile):
    """An archive of arrays; see ``numpy.lib.npyio.NpzFile``."""

    def __getitem__(self, key: str) -> Any:
        """The array of that name, as one of ours."""
        return ours(super().__getitem__(key))


@wraps(np.load)
def load(*args: Any, **kwargs: Any) -> Any:
    """An array, or an archive of arrays, from a file; see :func:`numpy.load`."""
    found = np.load(*args, **kwargs)
    if type(found) is np.lib.npyio.NpzFile:
        found.__class__ = NpzFile
        return found
    return ours(found)


@wraps(np.frombuffer)
def frombuffer(buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """The values that a buffer has now, read-only; see :func:`numpy.frombuffer`."""
    found = ours(np.frombuffer(to_host(buffer, "frombuffer"), *args, **kwargs))
    if type(found) is ndarray:
        found._readonly = True
    return found


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Any:
    """An array of another library as ours, copied; see :func:`numpy.from_dlpack`."""
    if type(x) is ndarray:
        if device not in (None, "cpu"):
            raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
        return array(x, copy=True) if copy else x.view()
    if copy is False:
        raise BufferError("lazynp cannot follow writes to foreign memory, and a copy was refused")
    found = np.from_dlpack(x, device=device)  # type: ignore[arg-type]
    return from_numpy(found) if found.dtype in NATIVE else found


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
    **{name: _on_values(name) for name in _PASSED_THROUGH},
    "load": load,
    "frombuffer": frombuffer,
    "from_dlpack": from_dlpack,
}
