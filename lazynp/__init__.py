"""NumPy with deferred execution: ``import lazynp as np``.

In: a program written for NumPy.  Out: the same results, computed when they are needed, fused into few kernels.  Promise: every
name that NumPy has is here; importing starts no thread, loads no compiler and touches neither ``numpy`` nor
``sys.modules['numpy']``.
"""

from __future__ import annotations

import sys as _sys
from contextlib import suppress as _suppress
from importlib import import_module as _import_module
from typing import Any

if _sys.argv[:1] == ["-m"] and not _sys.flags.safe_path:
    # `python -m lazynp script.py`: a `numpy.py` in the working directory, which Python searches first, is not NumPy
    _first = _sys.path.pop(0)
    with _suppress(ImportError):
        _import_module("numpy")
    _sys.path.insert(0, _first)

import numpy as _numpy

from lazynp import arrays as _arrays  # first: the modules of the array object import each other, and this is the way in
from lazynp.engine import devices as _devices
from lazynp.namespace import methods as _methods
from lazynp.namespace import names as _names
from lazynp.namespace import results as _results
from lazynp.namespace import standard as _standard
from lazynp.namespace.bridge import fallback as _fallback
from lazynp.namespace.bridge import meeting as _meeting
from lazynp.namespace.ufunc import operators as _operators
from lazynp.ndarray import ndarray
from lazynp.scalars import generic as _generic
from lazynp.values import config as _config

# Rooms whose names are public functions too: loaded before the functions take the names, so that no later import takes them back.
for _room in ("array", "memory", "schedule"):
    _import_module(f"lazynp.{_room}")
    globals()[_room] = _names.on_demand(_room)

_operators.install(ndarray)
_operators.install(_generic)
_methods.install(ndarray)
_methods.install(_generic)
_methods.describe(ndarray, _numpy.ndarray)
_methods.at_hand(ndarray)
_results.install()

lazynp_version = "0.1.0"
__lazynp_version__ = lazynp_version
__version__ = _numpy.__version__
__array_api_version__ = _standard.VERSION
__array_namespace_info__ = _fallback.published("__array_namespace_info__", _standard.__array_namespace_info__, "lazynp")
__all__ = sorted({*_numpy.__all__, *_names.PUBLIC})  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    # `__path__` and the like are the module's own, also for who copied this function into another module, as it does all names
    if name.startswith("__") and (name in globals() or name not in vars(_numpy)):
        raise AttributeError(f"module 'numpy' has no attribute {name!r}")
    if name in _names.OWN_MODULES:
        return _import_module(f"lazynp.{name}")
    value = _names.on_demand(name) if _names.answers(name) else _fallback.attribute(_numpy, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*dir(_numpy), *_names.PUBLIC, *_names.OWN_MODULES})


def load_ipython_extension(shell: Any) -> None:
    """Run ``%load_ext lazynp``: from now on ``numpy`` means lazynp in the cells, and in modules under the working directory."""
    _import_module("lazynp.mapping").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Run ``%unload_ext lazynp``: ``numpy`` means NumPy again in the cells."""
    _import_module("lazynp.mapping").unload_ipython_extension(shell)


for _path, _module in _names.submodules().items():
    if "." not in _path:
        globals()[_path] = _module
    _sys.modules[f"lazynp.{_path}"] = _module


def _gpus() -> Any:
    from lazynp.namespace.device.gpus import GPUs  # modules that the processor alone has no use for

    return GPUs()


_devices.made_by(_gpus)
_devices.settle()
if _config.adaptors:
    _meeting.tell(_meeting.NEIGHBOURS)
