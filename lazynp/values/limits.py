"""What this process may use of the machine.

In: nothing but the system's files.  Out: a number of CPUs and a number of bytes.  Promise: CPU affinity and the limits of control
groups, which is how containers are bounded, are honoured; a system that cannot be asked sets no limit.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Final

CGROUPS: Final = "/sys/fs/cgroup"
MEMBERSHIP: Final = "/proc/self/cgroup"


def cpus(root: str = CGROUPS, membership: str = MEMBERSHIP) -> int:
    """Return how many CPUs may be used, at least 1: affinity, and quotas rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(allowed, math.ceil(_least(_cpu_quota, "cpu", root, membership, 1e9))))


def memory(root: str = CGROUPS, membership: str = MEMBERSHIP) -> int:
    """Return how many bytes of memory there are for this process; 4 GiB where nobody knows."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 4 << 30
    return int(_least(_memory_limit, "memory", root, membership, float(total)))


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
