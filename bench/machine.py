"""What a result must say about where it was measured."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not POSIX
        return None


def describe(packages: Iterable[str]) -> dict[str, Any]:
    """The machine, the interpreter, the versions of `packages` and the switches that are set."""
    versions = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "usable_cores": len(affinity(0)) if affinity else os.cpu_count(),
        "memory_bytes": _memory(),
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "switches": {name: value for name, value in os.environ.items() if name.startswith(("LAZYNP_", "OMP_", "OPENBLAS_"))},
    }
