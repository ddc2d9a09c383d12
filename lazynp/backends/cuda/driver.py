"""CuPy, the driver and the devices: what is there, and what is missing.

In: nothing.  Out: CuPy's module, the number of devices, or one sentence that says what to install.  Promise: CuPy is imported when a GPU is
asked for and not before; asking never raises anything but the one error that says what is missing.
"""

from __future__ import annotations

import functools
import os
from typing import Any

INSTALL = "pip install 'lazynp[cuda]'"
FORKED = "a GPU cannot be used in a process that was forked from one that used it: start processes by the method 'spawn'"
LEAST = (7, 5)  # the compute capability that CUDA 13 begins with


@functools.cache
def imported() -> tuple[Any, str]:
    """CuPy and an empty text, or None and why it cannot be imported."""
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name == "cupy":
            return None, f"CuPy is not installed ({INSTALL})"
        return None, f"CuPy cannot be imported: {error}"
    except Exception as error:  # a broken installation may raise anything
        return None, f"CuPy cannot be imported: {type(error).__name__}: {error}"
    return cupy, ""


@functools.cache
def _counted() -> tuple[int, str]:
    """The number of devices, and why there is none."""
    global _process
    _process = os.getpid()
    cupy, missing = imported()
    if cupy is None:
        return 0, missing
    runtime = cupy.cuda.runtime
    try:
        found = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        text = str(error)
        if "InsufficientDriver" in text or "NoDevice" in text:
            try:
                driver = int(runtime.driverGetVersion())
            except runtime.CUDARuntimeError:
                driver = 0
            if not driver:
                return 0, "there is no NVIDIA driver on this machine"
            if "InsufficientDriver" in text:
                wanted = int(runtime.runtimeGetVersion())
                return 0, f"the NVIDIA driver is for CUDA {version(driver)}, older than the CUDA {version(wanted)} that CuPy was built for"
            return 0, "the NVIDIA driver shows no device"
        return 0, f"the CUDA runtime failed: {text}"
    return found, "" if found else "the NVIDIA driver shows no device"


_process = 0  # that asked the driver, which answers no process forked from it


def version(number: int) -> str:
    """13000 -> 13.0"""
    return f"{number // 1000}.{number % 1000 // 10}"


def count() -> int:
    """Count the devices that can be used."""
    return _counted()[0]


def missing() -> str:
    """Say why no device can be used; empty where one can."""
    return _counted()[1]


def cupy() -> Any:
    """CuPy's module; raises ``ValueError`` where no device can be used."""
    if missing():
        raise ValueError(f"no CUDA device can be used: {missing()}; `python -m lazynp doctor` looks at each part")
    return imported()[0]


def checked(name: str) -> int:
    """The number of the device of that name; raises ``ValueError`` where it is not there."""
    number = int(name.partition(":")[2])
    there = count()
    if not there:
        raise ValueError(f"device {name!r} cannot be used: {missing()}; `python -m lazynp doctor` looks at each part")
    if _process != os.getpid():
        raise ValueError(FORKED)
    if number >= there:
        names = ", ".join(f"cuda:{k}" for k in range(there))
        raise ValueError(f"device {name!r} is not there: this machine has {names}")
    major, minor = capability(number)
    if (major, minor) < LEAST:
        raise ValueError(f"device {name!r} cannot be used: its compute capability is {major}.{minor}, and CUDA 13 begins with 7.5")
    return number


def capability(number: int) -> tuple[int, int]:
    """The compute capability of a device that is there."""
    properties = imported()[0].cuda.runtime.getDeviceProperties(number)
    return int(properties["major"]), int(properties["minor"])


def forget() -> None:
    """Look again: for tests, which install and remove CuPy."""
    imported.cache_clear()
    _counted.cache_clear()
