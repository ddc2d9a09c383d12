"""Modules of kernels and their launches, as the CUDA driver has them.

In: CUDA C and launch parameters.  Out: what the kernels did to device memory.  Promise: a launch is done when the call returns; whatever
CUDA forbids and the emulator can see raises ``EmulationError`` with kernel, line, block and thread.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import NamedTuple

from . import build

Dim = tuple[int, ...]

ORDERS = ("ascending", "descending", "random")
BLOCK_LIMITS = (1024, 1024, 64)
GRID_LIMITS = (2**31 - 1, 65535, 65535)
THREADS = 1024
STATIC_SHARED = 48 << 10
SHARED = 227 << 10


launches = 0  # of this process
kernels: set[str] = set()  # that were launched: module and name


class EmulationError(Exception):
    """A kernel did, or a launch asked for, what CUDA does not allow."""

    kernel = ""
    line = 0
    other_line = 0  # of a race: the earlier access
    block: Dim = ()
    thread: Dim = ()


class Options(NamedTuple):
    order: str = "ascending"  # of blocks and of threads: "ascending", "descending", "random"
    seed: int = 0
    races: bool = False  # conflicting accesses are errors, in whatever order they ran
    trace: bool = False  # count memory transactions by line: `Function.trace`
    seconds: float = 60.0  # of processor time that a launch may take


class _Vector(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]


class _Kernel(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("count", ctypes.c_uint),
        ("sizes", ctypes.POINTER(ctypes.c_uint)),
        ("offsets", ctypes.POINTER(ctypes.c_uint)),
        ("bytes", ctypes.c_uint),
        ("shared", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
        ("bounds", ctypes.c_int),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", _Vector),
        ("block", _Vector),
        ("shared", ctypes.c_uint),
        ("order", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("races", ctypes.c_int),
        ("trace", ctypes.c_int),
        ("seconds", ctypes.c_double),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ("message", ctypes.c_char * 1024),
        ("pc", ctypes.c_uint64),
        ("other", ctypes.c_uint64),
        ("line", ctypes.c_int),
        ("block", _Vector),
        ("thread", _Vector),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ("pc", ctypes.c_uint64),
        ("flags", ctypes.c_int),
        ("size", ctypes.c_int),
        ("requests", ctypes.c_uint64),
        ("lanes", ctypes.c_uint64),
        ("transactions", ctypes.c_uint64),
        ("ideal", ctypes.c_uint64),
    ]


@functools.cache
def runtime() -> ctypes.PyDLL:
    """The scheduler. It is called with Python's lock held: one launch at a time."""
    library = ctypes.PyDLL(str(build.runtime()), mode=ctypes.RTLD_GLOBAL)
    library.emulator_allocate.restype = ctypes.c_void_p
    library.emulator_allocate.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    library.emulator_free.argtypes = [ctypes.c_void_p]
    library.emulator_extent.restype = ctypes.c_int64
    library.emulator_extent.argtypes = [ctypes.c_void_p]
    library.emulator_launch.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Launch), ctypes.c_char_p, ctypes.POINTER(_Result)]
    library.emulator_trace.argtypes = [ctypes.POINTER(_Request), ctypes.c_int]
    return library


class Access(NamedTuple):
    """The requests of warps that one line made of one kind of memory."""

    line: int
    space: str  # "global" or "shared"
    write: bool
    size: int  # bytes per lane
    requests: int
    lanes: int  # that took part, of all requests
    transactions: int  # 32-byte sectors, or passes over the banks
    ideal: int  # had the same bytes lain side by side

    @property
    def ratio(self) -> float:
        """1 is coalesced, or free of bank conflicts."""
        return self.transactions / self.ideal


class Function:
    """A kernel of a module.

    Attributes
    ----------
    parameters : tuple of int
        Sizes of its parameters.
    shared : int
        Bytes of static shared memory.
    bounds : int
        What ``__launch_bounds__`` says, or 0.
    trace : list of Access
        Of the last launch, with ``Options.trace``.
    """

    def __init__(self, module: Module, kernel: _Kernel) -> None:
        self.module = module
        self.name = kernel.name.decode()
        self.parameters = tuple(kernel.sizes[k] for k in range(kernel.count))
        self.offsets = tuple(kernel.offsets[k] for k in range(kernel.count))
        self.nbytes = int(kernel.bytes)
        self.shared = (kernel.shared_end or 0) - (kernel.shared or 0)
        self.bounds = int(kernel.bounds)
        self.trace: list[Access] = []
        self._kernel = kernel

    def __call__(
        self,
        grid: Dim,
        block: Dim,
        arguments: bytes,
        shared: int = 0,
        *,
        options: Options | None = None,
        blocks: range | None = None,
    ) -> None:
        """Runs the kernel.

        Parameters
        ----------
        arguments : bytes
            The parameters one after the other, aligned as in a C structure.
        options : Options
            Another order or seed than the module's; ``races`` and ``trace`` are the module's.
        blocks : range
            The blocks that run, by linear number, where not all of a large grid are wanted.
        """
        options = self.module.options if options is None else options
        grid, block = _three(grid), _three(block)
        self._check(grid, block, bytes(arguments), shared)
        total = grid[0] * grid[1] * grid[2]
        part = range(total) if blocks is None else blocks
        if part.step != 1 or part.start < 0 or part.stop > total:
            raise EmulationError(f"{self.name}: blocks {part} of a grid of {total}")
        launch = _Launch(
            _Vector(*grid), _Vector(*block), shared, ORDERS.index(options.order), options.seed & (2**64 - 1), part.start, len(part),
            int(self.module.options.races), int(self.module.options.trace), options.seconds,
        )  # fmt: skip
        result = _Result()
        global launches
        launches += 1
        kernels.add(f"{self.module.unit} {self.name}")
        library = runtime()
        failed = library.emulator_launch(ctypes.addressof(self._kernel), launch, bytes(arguments), result)
        if failed:
            raise self._error(result)
        if self.module.options.trace:
            self.trace = self._trace()

    def _check(self, grid: Dim, block: Dim, arguments: bytes, shared: int) -> None:
        threads = block[0] * block[1] * block[2]
        for dim, limits, what in ((grid, GRID_LIMITS, "grid"), (block, BLOCK_LIMITS, "block")):
            if any(not 0 < size <= limit for size, limit in zip(dim, limits, strict=True)):
                raise EmulationError(f"{self.name}: a {what} of {dim} is outside {limits}")
        if threads > (self.bounds or THREADS):
            raise EmulationError(f"{self.name}: {threads} threads a block, at most {self.bounds or THREADS} are allowed")
        if len(arguments) != self.nbytes:
            raise EmulationError(f"{self.name}: {len(arguments)} bytes of arguments for parameters of {self.parameters} bytes")
        if self.shared > STATIC_SHARED or self.shared + shared > SHARED:
            raise EmulationError(f"{self.name}: {self.shared} bytes of static and {shared} of dynamic shared memory are too many")

    def _error(self, result: _Result) -> EmulationError:
        line = result.line or self.module.line_of(result.pc)
        other = self.module.line_of(result.other)
        block, thread = (tuple(getattr(v, name) for name in "xyz") for v in (result.block, result.thread))
        where = f"{self.name}, {f'line {line}, ' if line else ''}block {block}, thread {thread}"
        text = result.message.decode(errors="replace")
        text += f" (the other on line {other})" if other else ""
        source = self.module.source.splitlines()
        quoted = f"\n    {source[line - 1].strip()}" if 0 < line <= len(source) else ""
        error = EmulationError(f"{where}: {text}{quoted}")
        error.kernel, error.line, error.other_line, error.block, error.thread = self.name, line, other, block, thread
        return error

    def _trace(self) -> list[Access]:
        library = runtime()
        count = library.emulator_trace(None, 0)
        found = (_Request * count)()
        library.emulator_trace(found, count)
        merged: dict[tuple[int, str, bool, int], list[int]] = {}
        for each in found:
            key = (self.module.line_of(each.pc), "shared" if each.flags & 2 else "global", bool(each.flags & 1), int(each.size))
            sums = merged.setdefault(key, [0, 0, 0, 0])
            for k, value in enumerate((each.requests, each.lanes, each.transactions, each.ideal)):
                sums[k] += value
        return [Access(*key, *sums) for key, sums in sorted(merged.items())]


class Module:
    """A compiled source.

    Parameters
    ----------
    source : str
        CUDA C; its kernels are ``extern "C" __global__`` functions.
    options : Options
        How its kernels run.
    """

    def __init__(self, source: str, options: Options | None = None) -> None:
        self.source = source
        self.options = options or Options()
        if self.options.order not in ORDERS:
            raise ValueError(f"order is one of {ORDERS}")
        runtime()  # its symbols are what the module asks for
        path, unit = build.find(source, self.options.races or self.options.trace)
        self.path = path
        self.unit = f"{path.stem}.{unit}"
        table = ctypes.cast(getattr(_load(path), f"emulator_{unit}"), ctypes.POINTER(_Kernel))
        self.functions: dict[str, Function] = {}
        while table[len(self.functions)].name:
            function = Function(self, table[len(self.functions)])
            self.functions[function.name] = function

    def function(self, name: str) -> Function:
        try:
            return self.functions[name]
        except KeyError:
            raise EmulationError(f"no kernel {name}; there are {', '.join(self.functions)}") from None

    def line_of(self, pc: int) -> int:
        """Of the source; the runtime's address of an instruction, or the line itself with the highest bit set."""
        if pc >> 63:
            return pc & 0xFFFFFFFF
        base = _base(self.path) if pc else 0
        return build.line_of(self.path, pc - 1 - base) if base else 0


@functools.cache
def _load(path: Path) -> ctypes.PyDLL:
    return ctypes.PyDLL(str(path))


@functools.cache
def _base(path: Path) -> int:
    """Where a library begins in memory."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(str(path)):
            return int(line.partition("-")[0], 16)
    return 0


def _three(dim: Dim) -> Dim:
    return (*dim, 1, 1)[:3]
