"""Device memory: addresses that kernels may use, guarded on both sides.

In: sizes in bytes.  Out: addresses.  Promise: fresh memory holds 0xff, an access past either end or after ``free`` faults or is found after
the launch, and the host reads and writes the same bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

from .module import EmulationError, runtime


def allocate(nbytes: int, *, align: int = 16, guard: str = "end", sparse: bool = False) -> int:
    """The address of ``nbytes`` of device memory.

    Parameters
    ----------
    align : int
        Of the address, a power of two; with ``guard="end"`` the memory ends so many bytes at most before the guard page.
    guard : str
        Which end lies at a guard page; the other one's surroundings are checked for writes after each launch.
    sparse : bool
        Pages come to exist when touched and hold zero: for buffers larger than the machine.
    """
    address = runtime().emulator_allocate(nbytes, align, int(guard == "start"), int(not sparse))
    if address is None:
        raise MemoryError(f"the emulator has no {nbytes} bytes")
    return int(address)


def free(address: int) -> None:
    """Gives memory back; its address faults from now on."""
    answer = runtime().emulator_free(address)
    if answer:
        raise EmulationError("free of what is not allocated" if answer == 1 else "somebody wrote beside the memory that is freed")


def extent(address: int) -> int:
    """Bytes from an address to the end of the live memory that holds it; -1 if none does."""
    return int(runtime().emulator_extent(address))


def view(address: int, shape: Any, dtype: Any) -> numpy.ndarray[Any, Any]:
    """The host's view of device memory."""
    dtype = numpy.dtype(dtype)
    count = int(numpy.prod(shape))
    return numpy.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype).reshape(shape)


def upload(array: Any, **how: Any) -> int:
    """A copy of an array, in C order, on the device."""
    array = numpy.ascontiguousarray(array)
    address = allocate(array.nbytes, **how)
    if array.nbytes:
        ctypes.memmove(address, array.ctypes.data, array.nbytes)
    return address


def download(address: int, shape: Any, dtype: Any) -> numpy.ndarray[Any, Any]:
    """A copy of device memory."""
    return view(address, shape, dtype).copy()
