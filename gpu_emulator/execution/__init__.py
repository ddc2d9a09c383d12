"""The CUDA execution model on the processor: kernels run from their CUDA C, without a GPU.

In: CUDA C as the renderer writes it and launches as a host makes them.  Out: the contents of device memory, and an ``EmulationError`` for
what CUDA forbids: illegal and misaligned accesses, divergent barriers, undefined behaviour, races, launches out of limits.  Promise: blocks
and threads run in an order that one chooses; shared and device memory are filled with 0xff beforehand.

``source`` makes a C++ text, ``build`` has g++ compile it and keeps the result, ``module`` loads and launches, ``memory`` is the device's
memory; ``device/`` is what a kernel includes, ``runtime/`` the scheduler behind it.
"""

from .build import CompilationError, precompile
from .memory import allocate, download, extent, free, upload, view
from .module import Access, EmulationError, Function, Module, Options

__all__ = [
    "Access",
    "CompilationError",
    "EmulationError",
    "Function",
    "Module",
    "Options",
    "allocate",

    "download",
    "extent",
    "free",
    "precompile",
    "upload",
    "view",
]
