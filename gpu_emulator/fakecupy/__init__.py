"""A fake CuPy for machines without a GPU: the host code of the CUDA backend runs against it unchanged.

In: a seed and what the machine is like.  Out: ``cupy``, ``cupy.cuda``, ``cupyx`` … in ``sys.modules``.  Promise: what the real package
would do is done, as late, as early or in as strange an order as the seed says; what the real one would answer with garbage raises
``Violation``.

``machine`` orders the work, ``blocks`` and ``memory`` hold it, ``images``, ``nvrtc`` and ``kernels`` run it in the emulator, ``array``
and ``library`` are the arrays and what NumPy computes for them, ``namespace`` gives it the real names.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from gpu_emulator.fakecupy import blocks, importing, memory, namespace, pinned_memory
from gpu_emulator.fakecupy.errors import Violation
from gpu_emulator.fakecupy.machine import POLICIES, Machine, machine, replace

SEEDS = range(len(POLICIES)) # each behaves differently; larger ones repeat them with other choices

__all__ = ["SEEDS", "Violation", "install", "installed", "machine", "report", "uninstall"]

def default_seed() -> int:
    return int(os.environ.get("LAZYNP_FAKECUPY_SEED", "0"))


def default_nvrtc() -> bool:
    return os.environ.get("LAZYNP_FAKECUPY_NVRTC", "0") != "0"


def install(*, seed: int | None = None, devices: int = 1, compute_capability: tuple[int, int] = (9, 0), device_memory: int = 1 << 30,
            real_nvrtc: bool | None = None, races: bool = False) -> Machine:
    """A new machine, and ``cupy`` meaning the fake.

    Parameters
    ----------
    seed : int
        When queued work runs (``LAZYNP_FAKECUPY_SEED``, 0).
    device_memory : int
        Bytes of each device.
    real_nvrtc : bool
        Every program is compiled by the real NVRTC too (``LAZYNP_FAKECUPY_NVRTC``, no).
    races : bool
        Kernels run with the emulator's race detector.
    """
    really = default_nvrtc() if real_nvrtc is None else real_nvrtc
    fake = Machine(default_seed() if seed is None else seed, devices, compute_capability, device_memory, really, races)
    fake.store = blocks.Store(devices, device_memory)
    replace(fake)
    fake.pool, fake.pinned_pool = memory.MemoryPool(), pinned_memory.PinnedMemoryPool()
    fake.allocator, fake.pinned_allocator = fake.pool.malloc, fake.pinned_pool.malloc
    importing.fake(namespace.modules())
    return fake


def uninstall() -> list[BaseException]:
    """The real package again; what the machine noted against the host."""
    fake = replace(None)
    importing.real()
    return [] if fake is None else [*fake.violations, *fake.store.close()]


def report(fake: Machine) -> int:
    """Say what a machine noted; how much it is."""
    for violation in fake.violations:
        print(f"fake CuPy: {type(violation).__name__}: {violation}", file=sys.stderr)
    return len(fake.violations)


@contextlib.contextmanager
def installed(**modes: Any) -> Iterator[Machine]:
    """The fake for a while.  At the end all work is run, and a violation that somebody swallowed is raised."""
    fake = install(**modes)
    try:
        yield fake
        fake.captures.clear()
        for number in range(fake.devices):
            fake.drain(number)
    finally:
        noted = uninstall()
    if noted:
        raise noted[0]
