"""Small objects that arrays answer with: ``flags`` and ``flat``.

In: an array.  Out: the object NumPy would give, computed from the nominal layout.  Promise: asking for them computes no values;
``flat`` reads and writes through the array it was taken from.
"""

from __future__ import annotations

import warnings
from math import prod
from operator import getitem
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from lazynp.array import core
from lazynp.graph.floating import at_users_line
from lazynp.graph.node import stacklevel
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import arrays, layout, protocols, storage, viewing, views
    from lazynp.array import hand
    from lazynp.namespace import assignment
else:
    hand, arrays, layout, assignment, protocols, storage, viewing, views = late(
        "array.hand", "arrays", "layout", "namespace.assignment", "protocols", "storage", "viewing", "views"
    )

_WILL_BE_READ_ONLY: Final = (
    "future versions will not create a writeable array from broadcast_array. Set the writable flag explicitly to avoid this warning."
)


class flagsobj:  # noqa: N801, NumPy's name
    """Memory layout of an array; see ``numpy.ndarray.flags``."""

    __slots__ = ("_array", "_c", "_f")

    _KEYS: ClassVar[dict[str, str]] = {
        "C_CONTIGUOUS": "c_contiguous", "C": "c_contiguous", "CONTIGUOUS": "c_contiguous",
        "F_CONTIGUOUS": "f_contiguous", "F": "f_contiguous", "FORTRAN": "f_contiguous",
        "OWNDATA": "owndata", "O": "owndata", "WRITEABLE": "writeable", "W": "writeable",
        "ALIGNED": "aligned", "A": "aligned", "WRITEBACKIFCOPY": "writebackifcopy", "X": "writebackifcopy",
        "BEHAVED": "behaved", "B": "behaved", "CARRAY": "carray", "CA": "carray", "FARRAY": "farray", "FA": "farray",
        "FNC": "fnc", "FORC": "forc",
    }  # fmt: skip
    _SHOWN: ClassVar[tuple[str, ...]] = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")

    def __init__(self, array: arrays.ndarray) -> None:
        self._array = array
        memory = array._base
        if type(memory) is np.ndarray:
            theirs = memory.flags
            self._c, self._f = theirs.c_contiguous, theirs.f_contiguous
        else:
            shape, strides, itemsize = array.shape, array.strides, array.dtype.itemsize
            self._c = views.is_c_contiguous(shape, strides, itemsize)
            self._f = views.is_f_contiguous(shape, strides, itemsize)

    c_contiguous = contiguous = property(lambda self: self._c)
    f_contiguous = fortran = property(lambda self: self._f)
    owndata = property(lambda self: self._array.base is None)
    aligned = property(lambda self: _is_aligned(self._array))
    writebackifcopy = property(lambda self: False)
    fnc = property(lambda self: self._f and not self._c)
    forc = property(lambda self: self._f or self._c)
    behaved = property(lambda self: self.aligned and self.writeable)
    carray = property(lambda self: self.behaved and self._c)
    farray = property(lambda self: not self._c and (self._f or self.aligned or self.writeable))  # NumPy's meaning of it
    num = property(
        lambda self: self._c + 2 * self._f + 4 * self.owndata + 0x100 * self.aligned + 0x400 * (self._array._readonly is not True)
    )

    def _warns(self) -> bool:
        """Tell whether the first write is warned of, because ``broadcast_arrays`` gave the array."""
        memory, readonly = self._array._base, self._array._readonly
        return memory.flags.num < 0 if type(memory) is np.ndarray else type(readonly) is not bool and not readonly.told

    @property
    def writeable(self) -> bool:
        """The flag that the array may be written."""
        if self._warns():
            warnings.warn(_WILL_BE_READ_ONLY, FutureWarning, stacklevel=stacklevel())
        return self._array._readonly is not True

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._array.setflags(write=bool(value))

    def __getitem__(self, key: str) -> bool:
        name = self._KEYS.get(key)
        if name is None:
            raise KeyError("Unknown flag")
        found: bool = getattr(self, name)
        return found

    def __setitem__(self, key: str, value: bool) -> None:
        if self._KEYS.get(key) != "writeable":
            raise KeyError("Unknown flag")
        self.writeable = value

    def __eq__(self, other: object) -> bool:
        num = getattr(other, "num", None)
        return isinstance(num, int) and self.num == num

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        warns = self._warns()
        said = {"WRITEABLE": "True  (with WARN_ON_WRITE=True)"} if warns else {}
        return "\n".join([f"  {name} : {said.get(name) or self[name]}" for name in self._SHOWN]) + "\n"

    __str__ = __repr__


def _memory(array: arrays.ndarray) -> Any:
    """The memory of an array that is in memory, None of others."""
    memory = array._base
    if type(memory) is np.ndarray:
        return memory

    return hand.memory_of(array)


def _is_aligned(array: arrays.ndarray) -> bool:
    """Tell whether all elements lie at multiples of what their dtype is aligned to, in the memory that NumPy's array would have."""
    memory = array._base
    if type(memory) is np.ndarray:
        return memory.flags.aligned

    offset, strides = layout.geometry(array)
    steps = [step for n, step in zip(array.shape, strides, strict=True) if n > 1]
    return 0 in array.shape or not any(k % array.dtype.alignment for k in (offset, *steps))


def _elements(x: Any) -> Any:
    return x._flat() if isinstance(x, flatiter) else x


class flatiter(core.Elements):  # noqa: N801, NumPy's name
    """The elements of an array in C order; see ``numpy.flatiter``."""

    __slots__ = ()

    def __init__(self, array: arrays.ndarray) -> None:
        ndim = len(array.shape)
        if ndim > 32:
            raise RuntimeError(f"this function only supports up to 32 dimensions but the array has {ndim}.")
        self._array = array
        self._index = 0

    @property
    def base(self) -> arrays.ndarray:
        """The array the elements belong to."""
        return self._array

    @property
    def index(self) -> int:
        """Position of the next element."""
        return self._index

    @property
    def coords(self) -> tuple[int, ...]:
        """Indices of the next element."""
        shape = self._array.shape
        if self._index >= prod(shape):
            raise ValueError("the iterator is at its end")
        return tuple([int(k) for k in np.unravel_index(self._index, shape)])

    def __len__(self) -> int:
        return prod(self._array.shape)

    def _next(self) -> Any:
        memory = _memory(self._array)
        size = len(self) if memory is None else memory.size
        if self._index >= size:
            raise StopIteration
        if memory is None:
            memory = storage.host(self._array, "iteration")  # the loop wants every element: they are computed together, once
        item = memory.flat[self._index]
        self._index += 1
        return core.number(item)

    def _flat(self) -> arrays.ndarray:
        return viewing.view_reshape(self._array, (-1,))

    def copy(self) -> arrays.ndarray:
        """A 1-d copy of all elements."""
        return arrays.wrap(arrays.node_of(self._flat()))

    def __eq__(self, other: object) -> Any:
        return self._flat() == _elements(other)

    def __ne__(self, other: object) -> Any:
        return self._flat() != _elements(other)

    def __lt__(self, other: Any) -> Any:
        return self._flat() < _elements(other)

    def __le__(self, other: Any) -> Any:
        return self._flat() <= _elements(other)

    def __gt__(self, other: Any) -> Any:
        return self._flat() > _elements(other)

    def __ge__(self, other: Any) -> Any:
        return self._flat() >= _elements(other)

    __hash__ = None  # type: ignore[assignment]

    def _read(self, key: Any) -> Any:
        kind = type(key)
        memory = _memory(self._array)
        if memory is not None and kind is int:
            return core.number(memory.flat[key])

        if memory is not None:
            return hand.result(at_users_line(getitem, (memory.flat, protocols.to_host(key, "flat")), {}))
        if kind is int or kind is slice or (kind is arrays.ndarray and key.shape and key.dtype.kind in "iu"):
            try:
                found = self._flat()[key]
            except IndexError as error:
                raise IndexError(str(error).replace("axis 0 with ", "")) from None  # an iterator has no axes
            # Unlike a view, what comes out of an iterator does not follow later writes.
            return arrays.wrap(arrays.node_of(found)) if type(found) is arrays.ndarray else found
        # Everything else has rules of its own, which NumPy's iterator knows.
        return protocols.from_host(storage.host(self._array, "flat").flat[protocols.to_host(key, "flat")])

    def _write(self, key: Any, value: Any) -> None:
        # NumPy repeats values that are too short here, so NumPy's own iterator does the writing.
        assignment.write_flat(self._array, key, value)
        self._index = 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.copy(), dtype)


core.register_elements(flatiter)
