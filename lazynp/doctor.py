"""What is installed, and whether it works: ``python -m lazynp doctor``.

In: nothing.  Out: a list of checks on standard output, and 1 as the exit code where something that is installed does not work.  Promise:
nothing is changed but the disk cache, by the kernels that are tried; what is not there is no fault, and its line says what to install.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

FOUND: Final = "ok"
ABSENT: Final = "--"
BROKEN: Final = "FAILED"

LIBRARIES: Final = {"cublas": "cuBLAS", "cufft": "cuFFT", "cusolver": "cuSOLVER"}  # as attributes of cupy.cuda
ELEMENTS: Final = 100_000  # of the array that is computed to see whether it comes out right


class Check(NamedTuple):
    """One line: how it went, what was looked at, what was found."""

    state: str
    subject: str
    found: str


def checks() -> Iterator[Check]:
    """All checks, one after the other."""
    from lazynp.array import core

    recording = (_cache, _compiler, _adaptors, _cuda) if core.native else ()  # all that is of use where something is recorded
    for section in (_versions, _processor, *recording):
        try:
            yield from section()
        except Exception as error:  # the point of this program is to say what does not work
            yield Check(BROKEN, section.__name__.strip("_"), f"{type(error).__name__}: {error}")


def _versions() -> Iterator[Check]:
    import lazynp

    yield Check(FOUND, "lazynp", f"{lazynp.lazynp_version}, {os.path.dirname(lazynp.__file__)}")
    yield Check(FOUND, "Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")
    yield Check(FOUND, "NumPy", np.__version__)
    yield _core()


def _core() -> Check:
    from lazynp.array import core

    if core.native:
        from lazynp.array import _core

        # It wants integers of 128 bits, which not every compiler has.
        draws = "" if _loads("lazynp.namespace.draws._native") else "; random numbers are drawn by NumPy"
        return Check(FOUND, "native core", f"{_core.__file__}{draws}")
    return Check(BROKEN if core.broken else ABSENT, "native core", f"{core.reason}; NumPy computes each operation at its call")


def _loads(module: str) -> bool:
    try:
        importlib.import_module(module)
    except Exception:  # Cython raises what it likes
        return False
    return True


def _processor() -> Iterator[Check]:
    from lazynp.values import config, limits

    asked = "" if config.threads is None else f", {config.threads} asked for by LAZYNP_THREADS"
    yield Check(FOUND, "processor", f"{limits.cpus()} usable core(s){asked}, {limits.memory() / 2**30:.1f} GiB of memory")


def _cache() -> Iterator[Check]:
    from lazynp.backends.common import disk_cache

    cache = disk_cache.shared()
    if cache.directory is None:
        off = cache.refused == "turned off"
        yield Check(ABSENT if off else BROKEN, "disk cache", f"{cache.refused}; code is compiled anew by every process")
        return
    sizes = [entry.stat().st_size for entry in os.scandir(cache.directory) if entry.name.endswith(disk_cache.SUFFIX)]
    yield Check(FOUND, "disk cache", f"{cache.directory}: {len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB")
    try:
        with tempfile.TemporaryFile(dir=cache.directory):
            pass
    except OSError as error:
        yield Check(BROKEN, "disk cache", f"cannot be written: {error}")


def _compiler() -> Iterator[Check]:
    try:
        import llvmlite
    except ModuleNotFoundError:
        yield Check(ABSENT, "llvmlite", "not installed: NumPy runs everything; pip install llvmlite")
        return
    from lazynp.backends.llvm.host import host

    found = host()
    features = [name[1:] for name in found.features.split(",") if name[:1] == "+"]
    shown = [name for name in features if name in ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve")]
    yield Check(FOUND, "llvmlite", f"{llvmlite.__version__}, for {found.cpu} {' '.join(shown)}".rstrip())
    yield _tried("kernel on the processor", "cpu")
    from lazynp.backends.llvm import client
    from lazynp.values import config

    if config.compiler != "child":
        yield Check(ABSENT, "compiling process", f"turned off: LAZYNP_COMPILER={config.compiler}")
    elif client.reason():
        yield Check(BROKEN, "compiling process", f"a thread of the program compiles: {client.reason()}")
    else:
        yield Check(FOUND, "compiling process", "LLVM is loaded by a process beside the program")


def _tried(subject: str, device: str) -> Check:
    """A small program compiled and run on a device, against NumPy."""
    import lazynp
    from lazynp.graph import report
    from lazynp.values import config

    x = np.linspace(-1.0, 1.0, ELEMENTS)
    before = report.work.kernels
    try:
        with config.override(tier="compiled", debug=True), lazynp.device(device):
            found = np.asarray((lazynp.asarray(x) * 3 + 1).sum() + lazynp.arange(ELEMENTS)[::2].max())
    except Exception as error:
        return Check(BROKEN, subject, f"{type(error).__name__}: {error}")
    if not np.allclose(found, (x * 3 + 1).sum() + (ELEMENTS - 2)):
        return Check(BROKEN, subject, f"computed {found}, which is wrong")
    return Check(FOUND, subject, f"compiled, run and right ({report.work.kernels - before} kernels)")


def _adaptors() -> Iterator[Check]:
    from lazynp.mapping.modules import FRIENDS
    from lazynp.namespace.bridge.meeting import NEIGHBOURS
    from lazynp.values import config

    if config.adaptors:
        yield Check(FOUND, "adaptors", f"told of lazynp when they are loaded: {', '.join(sorted(NEIGHBOURS))}")
        yield Check(FOUND, "adaptors, mapped", f"also where numpy is lazynp: {', '.join(sorted(FRIENDS))}")
    else:
        yield Check(ABSENT, "adaptors", "turned off by LAZYNP_ADAPTORS")


def _cuda() -> Iterator[Check]:
    from lazynp.backends.cuda import compiler, driver

    cupy, missing = driver.imported()
    if cupy is None:
        absent = "not installed" in missing
        yield Check(ABSENT if absent else BROKEN, "CuPy", missing)
        if absent:
            return
    else:
        yield Check(FOUND, "CuPy", cupy.__version__)
        yield from _nvrtc(cupy, compiler)
        yield _libraries(cupy)
    if cupy is None:
        return
    missing = driver.missing()
    if missing:
        yield Check(ABSENT if "no NVIDIA driver" in missing or "no device" in missing else BROKEN, "NVIDIA driver", missing)
        return
    runtime = cupy.cuda.runtime
    yield Check(FOUND, "NVIDIA driver", f"for CUDA {driver.version(runtime.driverGetVersion())}")
    yield Check(FOUND, "CUDA runtime", driver.version(runtime.runtimeGetVersion()))
    from lazynp.backends.cuda.memory import place

    for number in range(driver.count()):
        name = f"cuda:{number}"
        try:
            here = place(name)
            free, total = here.device.mem_info
            major, minor = here.capability
        except Exception as error:
            yield Check(BROKEN, name, f"{type(error).__name__}: {error}")
            continue
        yield Check(FOUND, name, f"{here.title}, {total / 2**30:.1f} GiB ({free / 2**30:.1f} free), compute capability {major}.{minor}")
        yield _tried(f"kernel on {name}", name)


def _nvrtc(cupy: Any, compiler: Any) -> Iterator[Check]:
    try:
        nvrtc = cupy.cuda.nvrtc
        major, minor = nvrtc.getVersion()
        compiler.compile_source(nvrtc, 'extern "C" __global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }', "sm_90")
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        yield Check(BROKEN, "NVRTC", f"{text}; pip install 'cupy-cuda13x[ctk]' brings it")
        return
    yield Check(FOUND, "NVRTC", f"{major}.{minor}, compiles")


def _libraries(cupy: Any) -> Check:
    absent = []
    for name, title in LIBRARIES.items():
        try:
            getattr(cupy.cuda, name)
        except Exception:  # CuPy looks for the library now
            absent.append(title)
    if not absent:
        return Check(FOUND, "CUDA libraries", ", ".join(LIBRARIES.values()))
    return Check(ABSENT, "CUDA libraries", f"no {', '.join(absent)}: the host does it; pip install 'cupy-cuda13x[ctk]' brings them")


def main(write: Callable[[str], Any] = sys.stdout.write) -> int:
    """Print the checks; the exit code."""
    broken = 0
    for check in checks():
        broken += check.state == BROKEN
        write(f"{check.state:<7}{check.subject:<24} {check.found}\n")
    if broken:
        write(f"\n{broken} part(s) that are installed do not work.\n")
    return 1 if broken else 0
