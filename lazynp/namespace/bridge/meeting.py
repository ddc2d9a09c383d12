"""When a library is loaded that has to know of lazynp.

In: names of modules, and what is to be told to each.  Out: the modules, told when they are loaded, or now where they are.  Promise: nothing
is loaded for it, and a module that is not named is found and loaded as without lazynp.

Libraries that tell arrays and numbers by NumPy's own types are told in every program (``NEIGHBOURS``); what starts programs or reads their
text, only where ``numpy`` is lazynp (``mapping/modules.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Final

from lazynp.values.loading import load

Hook = Callable[[Any], None]

HOOKS: Final[dict[str, Hook]] = {}


class _Telling(SourceFileLoader):
    """Loads a module that has to know."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _tell(module)


def _tell(module: ModuleType) -> None:
    with suppress(AttributeError):  # another library of that name
        HOOKS[module.__name__](module)


class Finder:
    """Stands before Python's own search."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in HOOKS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        spec.loader = _Telling(fullname, spec.loader.path)
        return spec


def tell(hooks: Mapping[str, Hook]) -> None:
    """Let modules be told, from now on and for the life of the process."""
    if Finder not in sys.meta_path:
        # where Python's own search stands: hooks before it (pytest's is one) have their say first
        place = next((i for i, finder in enumerate(sys.meta_path) if finder is PathFinder), len(sys.meta_path))
        sys.meta_path.insert(place, Finder)
    HOOKS.update(hooks)
    for name in hooks:
        if name in sys.modules:
            _tell(sys.modules[name])


def _neighbour(module: Any) -> None:
    load("lazynp.namespace.bridge.neighbours").HOOKS[module.__name__](module)  # most programs load none of them


# CuPy's SciPy.
CUPYX: Final = (
    "cupyx.scipy", "cupyx.scipy.fft", "cupyx.scipy.fftpack", "cupyx.scipy.interpolate", "cupyx.scipy.linalg", "cupyx.scipy.ndimage",
    "cupyx.scipy.signal", "cupyx.scipy.sparse", "cupyx.scipy.sparse.csgraph", "cupyx.scipy.sparse.linalg", "cupyx.scipy.spatial",
    "cupyx.scipy.special", "cupyx.scipy.stats",
)  # fmt: skip
NEIGHBOURS: Final[dict[str, Hook]] = dict.fromkeys(
    (
        "array_api_compat.common._helpers",
        "array_api_extra._lib._helpers",
        *CUPYX,
        "cloudpickle.cloudpickle",
        "cv2",
        "dask.array.core",
        "dask.utils",
        "h5py",
        "joblib.executor",
        "joblib.externals.cloudpickle.cloudpickle",
        "joblib.numpy_pickle",
        "joblib.pool",
        "numba",
        "numba.core.dispatcher",
        "numba.core.extending",
        "numba.core.imputils",
        "numba.core.interpreter",
        "numba.stencils.stencil",
        "pandas",
        "scipy._lib._array_api_override",
        "scipy._lib.array_api_compat.common._helpers",
        "scipy.sparse._coo",
        "scipy.sparse._index",
        "scipy.sparse._lil",
        "scipy.sparse.linalg",
        "scipy.sparse.linalg._interface",
        "sklearn.externals.array_api_compat.common._helpers",
        "sklearn.externals.array_api_extra._lib._helpers",
        "sklearn.preprocessing",
        "torch",
        "torch.utils.data._utils.collate",
    ),
    _neighbour,
)
