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

from lazynp.array.core import native as _native

lazynp_version = "0.1.0"
__lazynp_version__ = lazynp_version
__version__ = _numpy.__version__


def load_ipython_extension(shell: Any) -> None:
    """Run ``%load_ext lazynp``: from now on ``numpy`` means lazynp in the cells, and in modules under the working directory."""
    if _native:
        _import_module("lazynp.mapping").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Run ``%unload_ext lazynp``: ``numpy`` means NumPy again in the cells."""
    if _native:
        _import_module("lazynp.mapping").unload_ipython_extension(shell)


_import_module("lazynp.recording" if _native else "lazynp.at_call").install(globals())
