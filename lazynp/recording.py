"""The package's names where operations are recorded, which is wherever the native core loads.

In: the namespace of the package.  Out: the same, with what lazynp answers itself, what it asks NumPy for, and the submodules.  Promise:
modules of names that few programs use are loaded when one is asked for.
"""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp import arrays
from lazynp.array import core
from lazynp.arrays import ndarray
from lazynp.engine import devices
from lazynp.graph.node import Node
from lazynp.namespace import methods, names, results
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc import operators
from lazynp.scalars import force, generic
from lazynp.values import config
from lazynp.values.loading import handed, late, later, load

if TYPE_CHECKING:
    from lazynp.namespace.bridge import meeting
else:
    (meeting,) = late("namespace.bridge.meeting")

ROOMS = ("array", "schedule")
"""Packages whose names are public functions too: loaded before the functions are asked for, and never after that."""


@functools.cache
def _complete() -> None:
    """Give the classes their methods; once, however often the package is loaded."""
    operators.install(ndarray)
    methods.install(ndarray)
    methods.describe(ndarray, np.ndarray)
    methods.at_hand(ndarray)
    operators.name_methods(ndarray)
    results.install()
    handed.update(
        operators=_of_numbers, release=core.release, pending=later("storage", "pending"), changed=later("bounds", "changed"), compute=force,
        buffers=lambda kind: core.register_buffers(Node, kind),
    )  # fmt: skip
    devices.made_by(_gpus)
    devices.settle()
    if config.adaptors:
        meeting.tell(meeting.NEIGHBOURS)


def install(namespace: dict[str, Any]) -> None:
    """Give the package's namespace its names."""
    for room in ROOMS:
        import_module(f"lazynp.{room}")
        namespace.pop(room, None)  # ``attribute`` gives the function
    _complete()
    namespace["ndarray"] = arrays.ndarray
    namespace["__all__"] = sorted({*np.__all__, *names.PUBLIC})

    def attribute(name: str) -> Any:
        # `__path__` and the like are the module's own, also for who copied this function into another module, as it does all names
        if name.startswith("__") and (name in namespace or name not in vars(np)):
            raise AttributeError(f"module 'numpy' has no attribute {name!r}")
        if name in names.OWN_MODULES:
            return load(f"lazynp.{name}")
        value = names.on_demand(name) if names.answers(name) else fallback.attribute(np, name)
        namespace[name] = value
        return value

    namespace["__getattr__"] = attribute
    namespace["__dir__"] = lambda: sorted({*dir(np), *names.PUBLIC, *names.OWN_MODULES})
    for path, module in names.submodules().items():
        if "." not in path:
            namespace[path] = module
        sys.modules[f"lazynp.{path}"] = module


def _of_numbers() -> None:
    methods.install(generic)
    operators.install(generic)


def _gpus() -> Any:
    return load("lazynp.namespace.device.gpus").GPUs()  # modules that the processor alone has no use for
