"""Images: what stands for a cubin or for PTX.

In: a source with what it was compiled for.  Out: bytes, and from bytes the emulator's module.  Promise: an image is a function of its
source and options alone, so that it may be kept on disk; the same source is built once in a process, for each order of threads.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from gpu_emulator import execution
from gpu_emulator.fakecupy.errors import CUDADriverError
from gpu_emulator.fakecupy.machine import Machine, machine

MAGIC = b"\x7fELF fake cubin\n"


def make(kind: str, architecture: str, options: tuple[str, ...], source: str) -> bytes:
    head = json.dumps({"kind": kind, "architecture": architecture, "options": options})
    return MAGIC + head.encode() + b"\n" + source.encode()


def read(image: bytes) -> str:
    """The source in an image that the current device can run."""
    if not image.startswith(MAGIC):
        raise CUDADriverError(200)
    head, _, source = image.removeprefix(MAGIC).partition(b"\n")
    about: dict[str, Any] = json.loads(head)
    major, minor = machine().capability
    wanted = int(about["architecture"].rstrip("af"))
    exact = about["architecture"][-1] in "af"
    if about["kind"] == "cubin": # runs on its own major version, from its minor version on
        fits = wanted // 10 == major and wanted % 10 <= minor
    else:
        fits = wanted <= 10 * major + minor
    if not fits or (exact and wanted != 10 * major + minor):
        raise CUDADriverError(209)
    return source.decode()


def options(fake: Machine) -> execution.Options:
    return execution.Options(order=fake.policy.order, seed=fake.seed, races=fake.races)


@functools.cache
def module(source: str, how: execution.Options) -> execution.Module:
    return execution.Module(source, how)


def check(source: str, fake: Machine) -> str:
    """Why a source does not compile; nothing, if it does."""
    try:
        module(source, options(fake))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
