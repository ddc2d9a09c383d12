"""All names that lazynp answers itself.

In: the topic modules.  Out: ``ALL`` (name -> object) for the package's namespace, and the submodules.  Promise: the one list;
what is not in it is NumPy's, through the fallback.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import Any, Final

import numpy as np

from lazynp.namespace import (
    creation,
    fallback,
    files,
    joining,
    laziness,
    linalg,
    mathematics,
    python_functions,
    reductions,
    scalar_types,
    selecting,
    shaping,
    statistics,
    types,
    ufuncs,
)

PUBLIC: Final = ["realize", "schedule", "explain", "kernelize", "memory", "report", "set_fallback", "lazynp_version"]

ALL: Final[dict[str, Any]] = {
    **scalar_types.NAMES,
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
    **python_functions.FUNCTIONS,
    **files.FUNCTIONS,
    **laziness.FUNCTIONS,
    "ufunc": ufuncs.ufunc,
    "pi": np.pi,
    "e": np.e,
    "inf": np.inf,
    "nan": np.nan,
    "newaxis": None,
    "True_": np.True_,
    "False_": np.False_,
}

# Functions whose modules are loaded when one of them is asked for first.
_LATER: Final = {
    "order_statistics": "median nanmedian quantile percentile nanquantile nanpercentile lexsort sort_complex",
    "nan_functions": "nansum nanprod nancumsum nancumprod nanmin nanmax nanargmin nanargmax nanmean nanvar nanstd",
    "sets": "unique unique_all unique_counts unique_inverse unique_values intersect1d union1d setdiff1d setxor1d isin",
    "histograms": "histogram histogram_bin_edges histogram2d histogramdd digitize bincount",
    "correlation": "cov corrcoef",
    "calculus": "gradient unwrap trapezoid interp convolve correlate i0",
}
LATER: Final = {name: topic for topic, names in _LATER.items() for name in names.split()}


def later(name: str) -> dict[str, Any]:
    """The functions of the topic module that ``name`` is in, loaded now; none if it is in no such module."""
    topic = LATER.get(name)
    if topic is None:
        return {}
    functions: dict[str, Any] = import_module(f"lazynp.namespace.{topic}").FUNCTIONS
    return functions



def _without_annotations(function: Any) -> None:
    """NumPy's signatures have no annotations, and ours are to compare equal; the type checker has read them already."""
    while isinstance(function, FunctionType):
        function.__annotations__ = {}
        function = getattr(function, "__wrapped__", None)


for _function in ALL.values():
    _without_annotations(_function)

_SUBMODULES: Final = ["linalg", "fft", "random", "polynomial", "ma", "lib"]


def submodules() -> dict[str, Any]:
    """Name -> module, for those that hold functions of arrays; none of NumPy's is imported for it."""
    return {name: fallback.submodule(name) for name in _SUBMODULES}
