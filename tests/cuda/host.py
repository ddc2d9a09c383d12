"""A machine with GPUs for the tests of the host code: the fake CuPy, or the real one.

In: what the machine is like.  Out: a context in which ``lazynp`` finds these GPUs.  Promise: afterwards lazynp knows of no GPU, has no
plan and no switch of the test's.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from gpu_emulator import fakecupy
from lazynp.backends.common import rechecks
from lazynp.backends.cuda import memory
from lazynp.engine import devices, realize
from lazynp.graph import filters, report
from lazynp.values import config

EMULATED = os.environ.get("LAZYNP_TEST_CUDA") != "gpu"
SEEDS = tuple(fakecupy.SEEDS) if EMULATED else (0,)


@contextmanager
def machine(**modes: Any) -> Iterator[Any]:
    """A machine as ``fakecupy.install`` describes it; on hardware the one that is there, where that will do."""
    if not EMULATED:
        _require(**modes)
    before = config.device, devices.gpus
    _forget()
    report.reset()
    try:
        with fakecupy.installed(**modes) if EMULATED else nullcontext() as fake:
            yield fake
            if fake is not None:
                for number in range(fake.devices):
                    fake.drain(number)  # memory that lazynp keeps for work that is queued is not kept by a device that is forgotten
            _forget()
    finally:
        device, devices.gpus = before
        config.update(device=device)
        rechecks._forked()  # a test that failed left runs of a machine that is not there any more
        _forget()


def _require(seed: int = 0, devices: int = 1, **others: Any) -> None:
    """Skip the test where this machine is not what it asks for."""
    from lazynp.backends.cuda import driver

    if others:
        pytest.skip(f"only an imitation has {', '.join(others)}")
    if devices > driver.count():
        pytest.skip(f"asks for {devices} GPUs")


def _forget() -> None:
    rechecks.look()
    rechecks.looked.clear()
    realize.forget_plans()
    memory.forget()
    gc.collect()


@contextmanager
def ahead() -> Iterator[list[Any]]:
    """As in a program that catches no warnings, where the host does not wait to hear of errors; the warnings, as they come."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(filters, "process", warnings.filters)
            warnings.simplefilter("always", RuntimeWarning)  # the list has changed
            yield heard


def transfers() -> dict[str, int]:
    """How often values were copied, by direction."""
    found: dict[str, int] = {}
    for row in report.transfers.values():
        found[row.name] = found.get(row.name, 0) + row.count
    return found


def on_host() -> set[str]:
    """What was computed on the processor for values of a GPU."""
    return {row.name for row in report.on_host.values()}
