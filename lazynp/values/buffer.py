"""A value that exists, in host memory.

In: a C-contiguous NumPy array, or a block of the pooling allocator.  Out: the same memory as an array (for NumPy) and as an
address (for kernels), each made when first asked for.  Promise: once a buffer is published on a node its bytes never change while anything
can read them (``backends/common/ownership.py`` says what can); an export takes a lease, and memory goes back to the pool only when buffer
and leases are gone.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from sys import getrefcount
from typing import Any, Final, Protocol
from weakref import ref

import numpy as np

from lazynp.values import forking
from lazynp.values.loading import handed


class Block(Protocol):
    """Memory lent by an allocator; it returns there when it is garbage."""

    address: int
    nbytes: int

    def view(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]: ...


class Buffer:
    """One value, for ever: memory that is written in place becomes another buffer.

    ``_lease`` refers to what arrays over the block keep: it is dead when no array is left.  ``shared``: it may be the value of several
    nodes.  ``views`` are strided arrays over it, kept for those who read it element by element.  ``ends`` are the least and
    the largest element, where it was an index.

    ``device`` is where the value belongs, None where it was not placed; ``place`` is whose memory it is in, None for the processor's.
    """

    device: str | None = None
    place: Any = None

    __slots__ = ("__weakref__", "_address", "_array", "_lease", "block", "dtype", "ends", "shape", "shared", "views")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array: np.ndarray[Any, Any] | None = array
        self._address: int | None = None
        self._lease: ref[Any] | None = None
        self.shared = False
        self.views: MutableMapping[Any, np.ndarray[Any, Any]] | None = None
        self.ends: np.ndarray[Any, Any] | None = None
        self.block: Block | None = None
        self.dtype = array.dtype
        self.shape = array.shape

    @classmethod
    def of_block(cls, block: Block, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        self = cls.__new__(cls)
        self._array = None
        self._lease = None
        self.shared = False
        self.views = None
        self.ends = None
        self._address = block.address
        self.block = block
        self.dtype = dtype
        self.shape = shape
        return self

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The memory as a C-contiguous array; callers must not write to it."""
        array = self._array
        return self._exported() if array is None else array

    @property
    def at_hand(self) -> np.ndarray[Any, Any] | None:
        """``array``, unless that would be a copy from a device."""
        array = self._array
        return self._exported() if array is None else array

    def _exported(self) -> np.ndarray[Any, Any]:
        """An array over the block, the same for everybody; waits while the block is being written."""
        with forking.graph:
            array = self._array
            if array is None:
                assert self.block is not None
                array = self._array = self.block.view(self.dtype, self.shape)
                self._lease = ref(array.base)
            return array

    def moved(self, array: np.ndarray[Any, Any]) -> None:
        """The value lives in ``array`` from now on; its block has become another's."""
        self._array = array
        self._address = None
        self._lease = None
        self.block = None

    def recover(self, saved: list[tuple[Any, Any]]) -> None:
        """Do as ``moved``, of a value in device memory, which knows itself how to put back what was overwritten."""
        raise NotImplementedError

    def exclusive(self) -> bool:
        """Tell whether the memory is a block of which no array is left: then only this buffer, of one node, leads to it."""
        if self.block is None or self.shared:
            return False
        self.views = None
        if self._lease is not None:
            self._array = None
            export = self._lease()
            if export is not None:
                handed["release"]()  # memory that is held for speed alone
                del export
                export = self._lease()
            if export is not None:
                self._array = np.asarray(export)
                return False
            self._lease = None
        return True

    def alone(self) -> bool:
        """Tell the same as ``exclusive`` of memory that is NumPy's own: an array, or all of one in another shape, to which only this buffer
        refers."""
        array = self._array
        if self.block is not None or self.shared or array is None or not array.flags.carray:
            return False
        self.views = None
        if not unseen(array):
            handed["release"]()  # memory that is held for speed alone
        return unseen(array)

    def retyped(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        """The same memory as another dtype of the same size, or in another shape."""
        if self.block is not None:
            return Buffer.of_block(self.block, dtype, shape)
        if dtype == self.dtype and shape == self.shape:
            return Buffer(self.array)
        return Buffer(self.array.view(dtype).reshape(shape))

    @property
    def address(self) -> int:
        address = self._address
        if address is None:
            address = self._address = self.array.__array_interface__["data"][0]
        return address

    def at_home(self, device: str) -> Buffer:
        """The same value in the same memory, belonging to a device."""
        return self if self.device == device else HomedBuffer(self, device)

    @property
    def nbytes(self) -> int:
        size = self.dtype.itemsize
        for n in self.shape:
            size *= n
        return size


class HomedBuffer(Buffer):
    """A value in host memory that belongs to a device: it was brought to the processor on purpose, or goes back to its GPU when it is next
    needed there."""

    __slots__ = ("device",)
    device: str

    def __init__(self, value: Buffer, device: str) -> None:
        self._array = value._array
        self._address = value._address
        self._lease = value._lease
        self.shared = value.shared
        self.views = value.views
        self.ends = None
        self.block = value.block
        self.dtype = value.dtype
        self.shape = value.shape
        self.device = device

    def retyped(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        return super().retyped(dtype, shape).at_home(self.device)


def _references(array: Any) -> tuple[int, int]:
    """Count the references to an array and to what it is a view of."""
    owner = array.base
    return getrefcount(array), getrefcount(owner)


def unseen(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether only one slot, and a variable of the caller's, refer to the memory of an array."""
    own, of_owner = _references(array)
    owner = array.base
    if owner is None:
        return own <= OWN[0] and bool(array.flags.owndata)
    whole = type(owner) is np.ndarray and owner.flags.owndata and owner.nbytes == array.nbytes
    return whole and own <= OWN[0] and of_owner <= OWN[1]


def _own_references() -> tuple[int, int]:
    """Count the references to a view that only its buffer has, and to an array that only the view has, as ``unseen`` sees them."""
    buffer = Buffer(np.empty((2, 1)).reshape(2))

    def alone(array: Any) -> tuple[int, int]:
        return _references(array)

    array = buffer._array
    return alone(array)


OWN: Final = _own_references()
handed["buffers"](Buffer)
