"""What this process may use of the machine, and what it has.

In: nothing but the system's files.  Out: a number of CPUs and numbers of bytes.  Promise: CPU affinity and the limits of control
groups, which is how containers are bounded, are honoured; a system that cannot be asked sets no limit.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator
from typing import Final

from lazynp.values.loading import load

CGROUPS: Final = "/sys/fs/cgroup"
MEMBERSHIP: Final = "/proc/self/cgroup"
MEMINFO: Final = "/proc/meminfo"


def cpus(root: str = CGROUPS, membership: str = MEMBERSHIP) -> int:
    """Return how many CPUs may be used, at least 1: affinity, and quotas rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(allowed, math.ceil(_least(_cpu_quota, "cpu", root, membership, 1e9))))


def memory(root: str = CGROUPS, membership: str = MEMBERSHIP) -> int:
    """Return how many bytes of memory there are for this process; 4 GiB where it is not known."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 4 << 30
    return int(_least(_memory_limit, "memory", root, membership, float(total)))


def free(root: str = CGROUPS, membership: str = MEMBERSHIP, meminfo: str = MEMINFO) -> int:
    """Return how many bytes this process could still take without harm; what is in memory altogether where it is not known."""
    least = float(memory(root, membership))
    with contextlib.suppress(OSError, ValueError, StopIteration):
        least = min(least, next(float(line.split()[1]) * 1024 for line in _text(meminfo).splitlines() if line.startswith("MemAvailable")))
    for directory, second_version in _groups("memory", root, membership):
        with contextlib.suppress(OSError, ValueError):
            used = float(_text(directory, "memory.current" if second_version else "memory.usage_in_bytes"))
            least = min(least, _memory_limit(directory, second_version) - used + _file_pages(directory))
    return int(max(0.0, min(least, private())))


def private() -> float:
    """Return how many bytes of private memory the limits of this process leave it (``ulimit -d``, ``-v``); infinity where there is none."""
    left = math.inf
    for ask, kind, field, none in _limits():  # asked for each large value
        limit = ask(kind)[0]
        if limit != none:
            with contextlib.suppress(OSError, ValueError, IndexError):
                left = min(left, limit - float(_text("/proc/self/statm").split()[field]) * os.sysconf("SC_PAGE_SIZE"))
    return max(0.0, left)


@functools.cache
def _limits() -> tuple[tuple[Callable[[int], tuple[int, int]], int, int, int], ...]:
    """The limits of private memory: who tells them, the field of what the process has, and what stands for no limit."""
    try:
        resource = load("resource")
    except ImportError:  # on Windows
        return ()
    ask, none = resource.getrlimit, resource.RLIM_INFINITY
    return (ask, resource.RLIMIT_DATA, 5, none), (ask, resource.RLIMIT_AS, 0, none)


def _file_pages(directory: str) -> float:
    """Bytes of a control group that the system takes back when it needs them: of files that were not written lately."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        return next(float(line.split()[1]) for line in _text(directory, "memory.stat").splitlines() if line.startswith("inactive_file"))
    return 0.0


def _cpu_quota(directory: str, second_version: bool) -> float:
    if second_version:
        quota, period = _text(directory, "cpu.max").split()
    else:
        quota, period = (_text(directory, f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return math.inf if quota.strip() in ("max", "-1") else float(quota) / float(period)


def _memory_limit(directory: str, second_version: bool) -> float:
    limit = _text(directory, "memory.max" if second_version else "memory.limit_in_bytes").strip()
    return math.inf if limit == "max" else float(limit)


def _least(read: Callable[[str, bool], float], controller: str, root: str, membership: str, limit: float) -> float:
    for directory, second_version in _groups(controller, root, membership):
        with contextlib.suppress(OSError, ValueError):  # the group is not visible here, or has no such limit
            limit = min(limit, read(directory, second_version))
    return limit


def _groups(controller: str, root: str, membership: str) -> Iterator[tuple[str, bool]]:
    """Yield the directories of the groups that bind this process, each with True for the second version of control groups."""
    try:
        lines = _text(membership).splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        base = os.path.join(root, controller) if controllers else root
        directory = os.path.normpath(os.path.join(base, path.lstrip("/")))
        # A group is bound by its parents too; inside a container the path may name a group that is not visible.
        while True:
            yield directory, not controllers
            if len(directory) <= len(base):
                break
            directory = os.path.dirname(directory)


def _text(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()
