"""What ``import cupy`` means.

In: modules.  Out: ``sys.modules``, ``sys.path`` and the environment of child processes changed.  Promise: the modules of the real package
are kept while the fake stands for them, for extension modules cannot be loaded twice.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

SHADOW = str(Path(__file__).parent / "shadow") # a package `cupy` that installs the fake: for child processes
EXTENSIONS = str(Path(SHADOW) / "cupyx") # what `cupyx` has besides
ROOT = str(Path(__file__).parents[2])

_real: dict[str, ModuleType] = {}


def _swap(modules: Mapping[str, ModuleType]) -> dict[str, ModuleType]:
    """``cupy`` and ``cupyx`` mean these modules; what they meant before."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("cupy", "cupyx")}
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)
    return before


def _keep(modules: Mapping[str, ModuleType]) -> None:
    for name, module in modules.items():
        spec = object.__getattribute__(module, "__dict__").get("__spec__") # the plain way would load a module that waits to be used
        if spec is not None and not str(spec.origin).startswith(SHADOW): # the fake's have none
            _real[name] = module


def fake(modules: Mapping[str, ModuleType]) -> None:
    """The modules of the fake."""
    _keep(_swap(modules))


def real() -> None:
    """What was there before the fake."""
    _swap(_real)


@contextlib.contextmanager
def real_package() -> Iterator[None]:
    """For a while ``cupy`` means the real package, imported now if need be."""
    before, path = _swap(_real), sys.path[:]
    sys.path[:] = [entry for entry in path if entry != SHADOW]
    try:
        yield
    finally:
        sys.path[:] = path
        _keep(_swap(before))


def share() -> None:
    """Let the processes that this one starts have the fake too."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([*(path for path in (SHADOW, ROOT) if path not in known), *filter(None, known)])
    sys.path[:0] = [path for path in (SHADOW, ROOT) if path not in sys.path] # which some pools of processes send to theirs
