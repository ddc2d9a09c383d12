"""CUDA C++ in, functions on a device out.

In: the source of one module and the names of its functions.  Out: CuPy's function objects.  Promise: NVRTC rounds as IEEE asks (no fused
multiply-add, no flush to zero, exact division and square root); the same source is compiled once per machine and architecture, and what
comes from the disk cache was checked as machine code is (``common/disk_cache.py``); a fault in the source is a ``CompileError`` with the
compiler's log.

On one busy machine a kernel took 70 to 590 ms: the sum of two arrays 110, Black-Scholes 590.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any, Final

from lazynp.backends.base import CompileError
from lazynp.backends.common import disk_cache
from lazynp.values import config, forking

OPTIONS: Final = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")


class Statistics:
    """Counters for reports and tests: modules that NVRTC compiled, and those whose code came from the disk."""

    __slots__ = ("compiled", "loaded")

    def __init__(self) -> None:
        self.compiled = 0
        self.loaded = 0


STATISTICS: Final = Statistics()


def architecture(nvrtc: Any, capability: tuple[int, int]) -> str:
    """Return what to compile for: the device, or the newest one of its generation that NVRTC knows, or code that the driver compiles on."""
    known, device = nvrtc.getSupportedArchs(), 10 * capability[0] + capability[1]
    fitting = [arch for arch in known if arch // 10 == capability[0] and arch <= device]
    if fitting:
        return f"sm_{max(fitting)}"
    return f"compute_{max([arch for arch in known if arch <= device], default=min(known))}"


def compile_source(nvrtc: Any, source: str, arch: str) -> bytes:
    """The machine code of a module for one architecture, or PTX for a virtual one.

    Raises
    ------
    CompileError
        With NVRTC's log.
    """
    program = nvrtc.createProgram(source, "lazynp.cu", (), ())
    try:
        try:
            nvrtc.compileProgram(program, (*OPTIONS, f"-arch={arch}"))
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip()
            raise CompileError(f"NVRTC refused a generated module{_kept(source)}: {log or error}") from None
        return bytes(nvrtc.getCUBIN(program) if arch.startswith("sm_") else nvrtc.getPTX(program))
    finally:
        nvrtc.destroyProgram(program)


def functions(cupy: Any, source: str, names: Sequence[str], capability: tuple[int, int]) -> dict[str, Any]:
    """CuPy's kernels (``cupy.RawKernel``) of a module by name, on the current device.

    Raises
    ------
    CompileError
        The source does not compile, or its code cannot be loaded.
    """
    nvrtc = cupy.cuda.nvrtc
    arch = architecture(nvrtc, capability)
    cache = disk_cache.shared()
    key = disk_cache.digest(f"cuda\0{nvrtc.getVersion()}\0{arch}\0{OPTIONS}\0{source}".encode()).hex()
    with forking.compiler:
        code = cache.get(key)
        if code is not None:
            try:
                found = _load(cupy, code, names)
            except CompileError:
                cache.remove(key)
            else:
                STATISTICS.loaded += 1
                return found
        code = compile_source(nvrtc, source, arch)
        found = _load(cupy, code, names)
        STATISTICS.compiled += 1
        cache.put(key, code)
        return found


def _load(cupy: Any, code: bytes, names: Sequence[str]) -> dict[str, Any]:
    # From memory: what CuPy takes for a closing NUL of machine code and drops is its last byte, which the memory of ``bytes`` ends with.
    try:
        module = cupy.cuda.Module()
        module.load(code)
        return {name: module.get_function(name) for name in names}  # which keep the module
    except RuntimeError as error:
        raise CompileError(f"CUDA could not load a module: {error}") from error


def _kept(source: str) -> str:
    """Write refused source where a developer can look at it, and say where."""
    if not config.debug:
        return ""
    descriptor, path = tempfile.mkstemp(prefix="lazynp-", suffix=".cu")
    with os.fdopen(descriptor, "w") as file:
        file.write(source)
    return f" (kept in {path})"
