"""The switches of one process.

In: environment variables, read once when this module is imported.  Out: plain module variables, which hot paths read as
``config.eager``.  Promise: a value that cannot be meant is an error that names it; nothing else in the package reads the
environment for these names.

========================  ========================  ===================================================================================
variable                  values (default first)    meaning
========================  ========================  ===================================================================================
LAZYNP_BACKEND            llvm, numpy               what runs programs; without a choice ``llvm`` where llvmlite is installed
LAZYNP_DEVICE             cpu, cuda, cuda:N         where arrays live that were not placed (``engine/devices.py``)
LAZYNP_TIER               auto, compiled            ``compiled``: never the NumPy tier for small programs; values are the same
LAZYNP_EAGER              0, 1                      run, and raise, every operation at its call
LAZYNP_TAPE_LIMIT         786432, N                 operations on at most N elements wait on tapes, larger ones in graphs
LAZYNP_TAPE_FIRST         67108864, N               of at most N as well, as long as little was computed with large arrays
LAZYNP_NUMERICS           auto, numpy, fast         whose bits: by the operation's size; NumPy's at every one; own functions at every one
LAZYNP_NUMBERS            now, wait                 ``wait``: numbers of pending arrays are computed when they are asked for, as on GPUs
LAZYNP_DEBUG              0, 1                      check dtypes and shapes between passes and after every operation
LAZYNP_COMPILER           child, thread, wait       who compiles: a process beside the program, a thread, the program, which waits
LAZYNP_OPTIMIZE           1, 0                      ``0``: kernels are compiled in a tenth of the time, without vectors; same values
LAZYNP_PURE               0, 1                      leave the native core alone: NumPy computes each operation at its call
LAZYNP_THREADS            (number of usable cores)  threads of kernels, and of long work on arrays in memory
LAZYNP_MEMORY             (half of what is free)    bytes (``500M``, ``2G``) that a run may need besides its inputs
LAZYNP_PROGRESS           0, 1                      show on standard error how far a run is that takes more than two seconds
LAZYNP_ADAPTORS           1, 0                      ``0``: no other library is told of lazynp (``doctor`` lists those that are)
LAZYNP_FALLBACK           silent, warn, error       what a call that only NumPy itself can answer does
LAZYNP_CUDA_GRAPHS        0 (never), N              replay schedules of N or more kernels that repeat on a GPU as CUDA graphs
LAZYNP_TF32               0, 1                      ``1``: products of float32 on a GPU in TF32 (``lazynp.cuda.tf32``)
LAZYNP_NVTX               0, 1                      ``1``: name work on a GPU for profilers by the program's lines
LAZYNP_CACHE              1, 0                      ``0``: no machine code is kept between processes, nor taken from there
LAZYNP_CACHE_DIR          (the user's caches)       where machine code is kept between processes
LAZYNP_LIBMVEC            (widest), a name, 0       the C library's vector functions that kernels call: ``sse``, ``avx2``, ..., or none
LAZYNP_POLYNOMIALS        1, 0                      ``0``: the C library's functions in place of lazynp's own
LAZYNP_SKLEARN_NAMESPACE  lazynp, ...               the library that ``lazynp.testing.sklearn`` tests
========================  ========================  ===================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

BACKENDS: Final = ("llvm", "numpy")
TIERS: Final = ("auto", "compiled")
NUMBERS: Final = ("now", "wait")
NUMERICS: Final = ("auto", "numpy", "fast")
COSTLY_ABOVE: Final = 196_608  # elements: of as many a function such as ``power`` is worth a kernel, whatever stands around it
LARGE: Final = 786_432  # elements: as many are worth a kernel
FIRST: Final = 67_108_864  # elements: beside computing more, planning and compiling a kernel takes no time
FIRST_SHARE: Final = 64  # bytes of a chosen memory for each of them: an eighth of it is an array
KERNELS_ABOVE: Final = 4096  # elements: of as many NumPy's loop takes longer than all that stands around it
_EVERY_SIZE: Final = 1 << 62  # elements
COMPILERS: Final = ("child", "thread", "wait")
FALLBACKS: Final = ("silent", "warn", "error")
LIBMVECS: Final = ("0", "sse", "avx2", "avx512", "neon")  # ``backends/llvm/host.py`` says what they are
_SWITCH: Final = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

backend: str | None  # None: not chosen, the runtime takes the best there is
tier: str
eager: bool
tape_limit: int  # elements; what hot paths look at is ``at_hand``
tape_first: int | None  # elements; None: not chosen, see ``first_limit``
numbers: str
numerics: str
debug: bool
optimize: bool
compiler: str
pure: bool
progress: bool
memory: int | None  # bytes; None: not chosen, ``budget`` of ``values/pressure.py`` looks at what is free
threads: int | None  # None: not chosen, the backend counts the usable cores
adaptors: bool
fallback: str
graphs: int
nvtx: bool
tf32: bool
cache: bool
cache_dir: str  # empty: where the system wants it
libmvec: str  # empty: the widest there is
polynomials: bool
sklearn_namespace: str
device = "cpu"  # or "cuda:N"
watched = False  # each run is shown: ``progress`` or ``nvtx``
first_limit = 0  # elements of the largest array that tapes compute with as long as a program has computed little with large ones
at_hand = 0  # ``tape_limit``, or 0 where values may live on GPUs, or all where results have NumPy's bits
costly_above = 0  # elements, of more than which functions that cost NumPy much are kernels'
kernels_above = 0  # elements, of more than which ``exp``, ``sin`` and their kin are kernels' functions
numbers_wait = False  # ``numbers`` is "wait"
generation = 0  # grows with every change, so that caches of derived facts notice it with one comparison
followers: Final[list[Callable[[], None]]] = []  # called after every change


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(allowed)}")
    return value


def _switch(name: str, value: str) -> bool:
    try:
        return _SWITCH[value.lower()]
    except KeyError:
        raise ValueError(f"{name}={value!r} is not 0 or 1") from None


def _count(name: str, value: str, least: int = 1) -> int:
    if not value.isdecimal() or int(value) < least:
        raise ValueError(f"{name}={value!r} is not a whole number of at least {least}")
    return int(value)


def _bytes(name: str, value: str) -> int:
    number, factor = (value[:-1], _UNITS[value[-1].upper()]) if value[-1].upper() in _UNITS else (value, 1)
    if not number.isdecimal() or int(number) < 1:
        raise ValueError(f"{name}={value!r} is not a number of bytes, such as 2000000, 500M or 2G")
    return int(number) * factor


def device_name(device: str) -> str | None:
    """The one name of a device: "cpu" or "cuda:N"; None where it is no device's name."""
    if device in ("cpu", "cuda"):
        return "cpu" if device == "cpu" else "cuda:0"
    kind, _, number = device.partition(":")
    return f"cuda:{int(number)}" if kind == "cuda" and number.isascii() and number.isdecimal() else None


def _device(name: str, value: str) -> str:
    found = device_name(value)
    if found is None:
        raise ValueError(f"{name}={value!r} is not cpu, cuda or cuda:N")
    return found


def parse(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings an environment asks for; raises ``ValueError`` naming the first bad value."""

    def read(name: str) -> str:
        return environment.get(name, "").strip()

    chosen, threads_, fallback_ = read("LAZYNP_BACKEND"), read("LAZYNP_THREADS"), read("LAZYNP_FALLBACK")
    libmvec_, memory_ = read("LAZYNP_LIBMVEC"), read("LAZYNP_MEMORY")
    return {
        "backend": _choice("LAZYNP_BACKEND", chosen, BACKENDS) if chosen else None,
        "device": _device("LAZYNP_DEVICE", read("LAZYNP_DEVICE") or "cpu"),
        "tier": _choice("LAZYNP_TIER", read("LAZYNP_TIER") or "auto", TIERS),
        "eager": _switch("LAZYNP_EAGER", read("LAZYNP_EAGER")),
        "tape_limit": _count("LAZYNP_TAPE_LIMIT", read("LAZYNP_TAPE_LIMIT") or str(LARGE), 0),
        "tape_first": _count("LAZYNP_TAPE_FIRST", read("LAZYNP_TAPE_FIRST") or "0", 0) or None,
        "numerics": _choice("LAZYNP_NUMERICS", read("LAZYNP_NUMERICS") or "auto", NUMERICS),
        "numbers": _choice("LAZYNP_NUMBERS", read("LAZYNP_NUMBERS") or "now", NUMBERS),
        "debug": _switch("LAZYNP_DEBUG", read("LAZYNP_DEBUG")),
        "progress": _switch("LAZYNP_PROGRESS", read("LAZYNP_PROGRESS")),
        "optimize": _switch("LAZYNP_OPTIMIZE", read("LAZYNP_OPTIMIZE") or "1"),
        "compiler": _choice("LAZYNP_COMPILER", read("LAZYNP_COMPILER") or "child", COMPILERS),
        "pure": _switch("LAZYNP_PURE", read("LAZYNP_PURE")),
        "memory": _bytes("LAZYNP_MEMORY", memory_) if memory_ else None,
        "threads": _count("LAZYNP_THREADS", threads_) if threads_ else None,
        "adaptors": _switch("LAZYNP_ADAPTORS", read("LAZYNP_ADAPTORS") or "1"),
        "fallback": _choice("LAZYNP_FALLBACK", fallback_, FALLBACKS) if fallback_ else "silent",
        "graphs": _count("LAZYNP_CUDA_GRAPHS", read("LAZYNP_CUDA_GRAPHS") or "0", 0),
        # By the other name profilers tell the NVTX library where ranges go.
        "nvtx": _switch("LAZYNP_NVTX", read("LAZYNP_NVTX") or str(int(bool(read("NVTX_INJECTION64_PATH"))))),
        "tf32": _switch("LAZYNP_TF32", read("LAZYNP_TF32")),
        "cache": _switch("LAZYNP_CACHE", read("LAZYNP_CACHE") or "1"),
        "cache_dir": environment.get("LAZYNP_CACHE_DIR", ""),
        "libmvec": _choice("LAZYNP_LIBMVEC", libmvec_, LIBMVECS) if libmvec_ else "",
        "polynomials": _switch("LAZYNP_POLYNOMIALS", read("LAZYNP_POLYNOMIALS") or "1"),
        "sklearn_namespace": read("LAZYNP_SKLEARN_NAMESPACE") or "lazynp",
    }


def _derived() -> dict[str, Any]:
    """Settings that follow from others, for hot paths to look at."""
    settings = globals()
    waits, numerics = settings["numbers"] == "wait", settings["numerics"]
    at_hand = _EVERY_SIZE if numerics == "numpy" else settings["tape_limit"]
    above = _EVERY_SIZE if numerics == "numpy" else 0 if numerics == "fast" else min(KERNELS_ABOVE, at_hand // 4)
    costly = _EVERY_SIZE if numerics == "numpy" else min(COSTLY_ABOVE, at_hand // 4)
    watched = settings["progress"] or settings["nvtx"]  # how far tapes are is not shown
    memory = settings["memory"]
    usual = FIRST if memory is None else min(FIRST, memory // FIRST_SHARE)
    first = settings["tape_first"] or (usual if settings["tape_limit"] >= LARGE and not watched else 0)
    return {
        "at_hand": at_hand, "first_limit": max(first, at_hand) if at_hand else 0, "kernels_above": above, "costly_above": costly,
        "numbers_wait": waits, "watched": watched,
    }  # fmt: skip


_CHECKS: Final[dict[str, tuple[Any, ...]]] = {
    "backend": (None, *BACKENDS),
    "tier": TIERS,
    "eager": (False, True),
    "numbers": NUMBERS,
    "numerics": NUMERICS,
    "debug": (False, True),
    "optimize": (False, True),
    "compiler": COMPILERS,
    "progress": (False, True),
    "nvtx": (False, True),
    "tf32": (False, True),
    "fallback": FALLBACKS,
}


_OTHERS: Final = ("device", "tape_limit", "tape_first", "graphs", "memory", "threads")


def update(**settings: Any) -> None:
    """Change settings of this process, e.g. ``update(backend="numpy")``."""
    global generation
    for name, value in settings.items():
        if name in ("threads", "memory", "tape_first"):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{name}={value!r} is not a whole number of at least 1")
        elif name in ("graphs", "tape_limit"):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name}={value!r} is not a whole number of at least 0")
        elif name == "device":
            settings["device"] = _device("device", value)
        elif name not in _CHECKS:
            raise TypeError(f"{name!r} is not a setting; there are {', '.join([*_CHECKS, *_OTHERS])}")
        elif value not in _CHECKS[name]:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(map(str, _CHECKS[name]))}")
    globals().update(settings)
    globals().update(_derived())
    generation += 1
    for follow in followers:
        follow()


@contextmanager
def override(**settings: Any) -> Iterator[None]:
    """``update`` for the length of a ``with`` block."""
    before = {name: globals().get(name) for name in settings}
    update(**settings)
    try:
        yield
    finally:
        update(**before)


globals().update(parse(os.environ))
globals().update(_derived())
