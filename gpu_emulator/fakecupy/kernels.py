"""``cupy.cuda.function`` and the raw kernels: modules, functions, launches.

In: images, grids, arguments.  Out: launches in streams.  Promise: arguments get the types that CuPy gives them and are copied at the
call; a launch outside the limits raises the driver's error at the call; arguments that do not fit the kernel's parameters, which no
driver checks, are violations.
"""

from __future__ import annotations

import ctypes
import errno
import operator
import os
from bisect import bisect_right
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import numpy as np

from gpu_emulator.fakecupy import images, nvrtc
from gpu_emulator.fakecupy.array import ndarray
from gpu_emulator.fakecupy.blocks import store
from gpu_emulator.fakecupy.device import MAX_BLOCK, MAX_GRID, MAX_THREADS, SHARED, SHARED_OPTIN
from gpu_emulator.fakecupy.errors import CUDADriverError
from gpu_emulator.fakecupy.machine import machine
from gpu_emulator.fakecupy.memory import MemoryPointer
from gpu_emulator.fakecupy.signatures import words
from gpu_emulator.fakecupy.stream import get_current_stream

MAX_DYNAMIC_SHARED: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CPointer:
    """``cupy.cuda.function.CPointer``: where an argument lies in the host's memory; a launch copies it."""

    def __init__(self, p: int = 0) -> None:
        self.ptr = p


def argument(value: Any, nbytes: int) -> bytes:
    """An argument's bytes, typed as CuPy types it; ``nbytes`` are what the kernel reads, for CuPy does not know."""
    if value is None:
        return bytes(8)
    if isinstance(value, CPointer):
        if not _is_host(value.ptr) or not _is_host(value.ptr + nbytes - 1):
            raise machine().violation(f"an argument lies at {value.ptr:#x}, where the host has nothing")
        return ctypes.string_at(value.ptr, nbytes)
    if isinstance(value, ndarray):
        return value.data.ptr.to_bytes(8, "little")
    if isinstance(value, MemoryPointer):
        return value.ptr.to_bytes(8, "little")
    if isinstance(value, np.ndarray):
        if value.size == 1:
            return value.tobytes()
        raise TypeError(f"You are trying to pass a numpy.ndarray of shape {value.shape} as a kernel parameter. Only numpy.ndarrays of size"
                        " one can be passed by value. If you meant to pass a pointer to __global__ memory, you need to pass a cupy.ndarray"
                        " instead.")
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, bool):
        return np.bool_(value).tobytes()
    if isinstance(value, int):
        return (np.int64(value) if value < 2**63 else np.uint64(value)).tobytes()
    if isinstance(value, (float, complex)):
        return (np.float64(value) if isinstance(value, float) else np.complex128(value)).tobytes()
    raise TypeError(f"Unsupported type {type(value)}")


class _Span(ctypes.Structure):
    _fields_: ClassVar = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]


_libc = ctypes.CDLL(None, use_errno=True)
_byte = ctypes.create_string_buffer(1)


def _is_host(address: int) -> bool:
    """Whether the host could read there.  Smaller numbers and larger ones are no addresses that Linux gives."""
    if not 1 << 40 <= address < 1 << 47:
        return False
    # Linux reads it for us, and says where it cannot: the list of all mappings grows with every kernel that is loaded
    here, there = _Span(ctypes.addressof(_byte), 1), _Span(address, 1)
    read = _libc.process_vm_readv(os.getpid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if read == 1 or ctypes.get_errno() == errno.EFAULT:
        return bool(read == 1)
    with open("/proc/self/maps") as file:  # it is forbidden here
        starts, spans = _spans(file.read())
    k = bisect_right(starts, address) - 1
    return k >= 0 and address < spans[k][0] and spans[k][1]


@lru_cache(maxsize=1)
def _spans(maps: str) -> tuple[list[int], list[tuple[int, bool]]]:
    """Where mappings of this process begin, and of each where it ends and whether it can be read."""
    starts, spans = [], []
    for line in maps.splitlines():
        span, access = line.split(maxsplit=2)[:2]
        low, _, high = span.partition("-")
        starts.append(int(low, 16))
        spans.append((int(high, 16), access[0] == "r"))
    return starts, spans


class Module:
    """An image loaded on the current device."""

    def __init__(self) -> None:
        self.ptr, self.mapping = 0, None
        self._source: str | None = None

    def load(self, cubin: bytes) -> None:
        if not isinstance(cubin, bytes):
            raise TypeError(f"Argument 'cubin' has incorrect type (expected bytes, got {type(cubin).__name__})")
        self._source = images.read(cubin)
        self._module = images.module(self._source, images.options(machine()))
        self._device = machine().device
        self.ptr = next(machine().handles)

    def load_file(self, filename: str) -> None:
        try:
            with open(filename, "rb") as file:
                image = file.read()
        except FileNotFoundError:
            raise CUDADriverError(301) from None
        self.load(image)

    def get_function(self, name: str) -> Function:
        return Function(self, name)


_functions: WeakValueDictionary[int, Function] = WeakValueDictionary()


def funcSetAttribute(f: int, attribute: int, value: int) -> None:
    """``cupy.cuda.driver.funcSetAttribute``, for the dynamic shared memory that a launch may ask for."""
    kernel = _functions.get(f)
    if kernel is None or attribute != MAX_DYNAMIC_SHARED:
        raise CUDADriverError(400 if kernel is None else 1)
    kernel._allow(value)


class Function:
    """A kernel of a module."""

    def __init__(self, module: Module, funcname: str) -> None:
        if module._source is None:
            raise CUDADriverError(400)
        self.module = module
        if funcname not in module._module.functions:
            raise CUDADriverError(500)
        self.ptr = next(machine().handles)
        _functions[self.ptr] = self
        self._function = module._module.function(funcname)
        self._dynamic = SHARED - self._function.shared # what a launch may ask for; an attribute of the kernel raises it

    def _allow(self, dynamic: int) -> None:
        """Let launches ask for so many bytes of dynamic shared memory."""
        if not 0 <= dynamic <= SHARED_OPTIN - self._function.shared:
            raise CUDADriverError(1)
        self._dynamic = dynamic

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, shared_mem: int = 0, stream: Any = None,
                 enable_cooperative_groups: bool = False) -> None:
        if not isinstance(grid, tuple) or not isinstance(block, tuple):
            raise TypeError("Argument 'grid' or 'block' has incorrect type (expected tuple)")
        sizes = [max(1, operator.index(n)) for n in (*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3])] # no blocks at all are one
        self._launch(tuple(sizes[:3]), tuple(sizes[3:]), args, shared_mem, stream)

    def linear_launch(self, size: int, args: Any, shared_mem: int = 0, block_max_size: int = 128, stream: Any = None,
                      enable_cooperative_groups: bool = False) -> None:
        grid, block = min(2**31 - 1, -(-size // block_max_size)), min(block_max_size, size)
        self._launch((grid, 1, 1), (block, 1, 1), args, shared_mem, stream)

    def _launch(self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, shared: int, stream: Any) -> None:
        fake = machine()
        packed = self._pack([argument(value, nbytes) for value, nbytes in zip_longest(args, self._function.parameters, fillvalue=0)])
        state = fake.stream((stream or get_current_stream()).ptr)
        if state.device != fake.device or self.module._device != fake.device:
            raise CUDADriverError(400)
        threads = block[0] * block[1] * block[2]
        if any(not 0 < n <= most for n, most in zip((*grid, *block), (*MAX_GRID, *MAX_BLOCK), strict=True)) or threads > MAX_THREADS:
            raise CUDADriverError(1)
        if threads > (self._function.bounds or MAX_THREADS):
            raise CUDADriverError(1)
        if not 0 <= shared <= self._dynamic:
            raise CUDADriverError(1)
        self._check_addresses(packed)
        fake.launches += 1
        name = self._function.name
        fake.enqueue(state, lambda: self._function(grid, block, packed, shared), f"kernel {name}")

    def _pack(self, values: list[bytes]) -> bytes:
        """The parameters one after the other, each where C puts it."""
        sizes = tuple(map(len, values))
        wanted = self._function.parameters
        if sizes != wanted:
            raise machine().violation(f"kernel {self._function.name}: arguments of {sizes} bytes for parameters of {wanted} bytes")
        packed = bytearray(self._function.nbytes)
        for value, offset in zip(values, self._function.offsets, strict=True):
            packed[offset:offset + len(value)] = value
        return bytes(packed)

    def _check_addresses(self, packed: bytes) -> None:
        """Arguments, or slots of a structure, that are addresses in memory which this device may not touch."""
        memory, device = store(), machine().device
        for word in np.frombuffer(packed[:len(packed) // 8 * 8], np.uint64).tolist():
            block = memory.device.find(word)
            if block is None and _is_host(word) and memory.kind(word) == "pageable" and not memory.device.near(word):
                raise machine().violation(f"kernel {self._function.name} gets the address {word:#x} of the host's own memory")
            if block is not None and block.device != device and (device, block.device) not in memory.peers:
                raise machine().violation(f"kernel {self._function.name} on device {device} gets memory of device {block.device}")


class RawKernel:
    """A kernel by source, or one of a module; compiled for each device when it is first asked for."""

    def __init__(self, code: str, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc", translate_cucomplex: bool = False, *,
                 enable_cooperative_groups: bool = False, jitify: bool | None = None) -> None:
        self.code, self.name, self.options, self.backend = code, name, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path: str | None = None
        self._made: dict[int, Function] = {}
        self.__name__ = name

    @property
    def kernel(self) -> Function:
        device = machine().device
        if device not in self._made:
            self._made[device] = _load(self.code, self.file_path, self.options).get_function(self.name)
        return self._made[device]

    def compile(self, log_stream: Any = None) -> None:
        self._made.clear()
        self.kernel

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        self.kernel(grid, block, args, shared_mem=shared_mem, stream=stream, enable_cooperative_groups=self.enable_cooperative_groups)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self.kernel._dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, bytes: int) -> None:
        self.kernel._allow(bytes)

    @property
    def max_threads_per_block(self) -> int:
        return self.kernel._function.bounds or MAX_THREADS

    @property
    def shared_size_bytes(self) -> int:
        return self.kernel._function.shared

    @property
    def num_regs(self) -> int:
        return self.kernel and 32

    @property
    def local_size_bytes(self) -> int:
        return self.kernel and 0

    @property
    def binary_version(self) -> int:
        major, minor = machine().capability
        return 10 * major + minor

    @property
    def attributes(self) -> dict[str, int]:
        names = "max_threads_per_block shared_size_bytes local_size_bytes num_regs binary_version max_dynamic_shared_size_bytes"
        return {name: getattr(self, name) for name in words(names)}


class RawModule:
    """Kernels of one source or of one image."""

    def __init__(self, code: str | None = None, *, path: str | None = None, options: tuple[str, ...] = (), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, enable_cooperative_groups: bool = False, name_expressions: Any = None,
                 jitify: bool | None = None) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        for value, kind, name in ((code, str, "code"), (path, str, "path"), (options, tuple, "options")):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"Argument '{name}' has incorrect type (expected {kind.__name__}, got {type(value).__name__})")
        if name_expressions is not None:
            raise NotImplementedError("name expressions: the emulator runs no templates")
        self.code, self.file_path, self.options, self.backend = code, path, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = None
        self._modules: dict[int, Module] = {}

    @property
    def module(self) -> Module:
        device = machine().device
        if device not in self._modules:
            self._modules[device] = _load(self.code, self.file_path, self.options)
        return self._modules[device]

    def compile(self, log_stream: Any = None) -> None:
        self._modules.clear()
        self.module

    def get_function(self, name: str) -> RawKernel:
        kernel = RawKernel("", name, self.options, self.backend, enable_cooperative_groups=self.enable_cooperative_groups)
        kernel.code, kernel.file_path = self.code, self.file_path # type: ignore[assignment]
        kernel._made[machine().device] = self.module.get_function(name)
        return kernel


def _load(code: str | None, path: str | None, options: tuple[str, ...]) -> Module:
    module = Module()
    if path is not None:
        module.load_file(path)
        return module
    program = nvrtc.createProgram(code, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*options, "-std=c++17", f"-arch=sm_{'{}{}'.format(*machine().capability)}", "-ftz=true"))
        module.load(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        raise CompileException(nvrtc.getProgramLog(program)) from error
    finally:
        nvrtc.destroyProgram(program)
    return module


class CompileException(Exception):
    """``cupy.cuda.compiler.CompileException``."""


__all__ = ["CPointer", "CompileException", "Function", "Module", "RawKernel", "RawModule", "argument"]
