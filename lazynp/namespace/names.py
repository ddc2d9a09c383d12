"""All names that lazynp answers itself.

In: the topic modules.  Out: ``ALL`` (name -> object) for the package's namespace, and the submodules.  Promise: the one list;
what is not in it is NumPy's, through the fallback.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.namespace import (
    creation,
    fallback,
    joining,
    laziness,
    linalg,
    mathematics,
    reductions,
    selecting,
    shaping,
    statistics,
    types,
    ufuncs,
)

PUBLIC: Final = ["realize", "schedule", "explain", "kernelize", "memory", "report", "set_fallback", "lazynp_version"]

ALL: Final[dict[str, Any]] = {
    **types.NAMES,
    **ufuncs.NAMES,
    **creation.FUNCTIONS,
    **shaping.FUNCTIONS,
    **joining.FUNCTIONS,
    **selecting.FUNCTIONS,
    **reductions.FUNCTIONS,
    **statistics.FUNCTIONS,
    **linalg.FUNCTIONS,
    **mathematics.FUNCTIONS,
    **types.FUNCTIONS,
    **laziness.FUNCTIONS,
    "ufunc": ufuncs.ufunc,
    "pi": np.pi,
    "e": np.e,
    "inf": np.inf,
    "nan": np.nan,
    "newaxis": None,
    "True_": types.NAMES["bool"](True),
    "False_": types.NAMES["bool"](False),
}

_SUBMODULES: Final = ["linalg", "fft", "random", "polynomial", "ma", "lib"]


def submodules() -> dict[str, Any]:
    """Name -> module, for those that hold functions of arrays; none of NumPy's is imported for it."""
    return {name: fallback.submodule(name) for name in _SUBMODULES}
