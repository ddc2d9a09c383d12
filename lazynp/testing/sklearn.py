"""scikit-learn's own array-API tests, with lazynp as the array library.

In: ``pytest -p lazynp.testing.sklearn --pyargs sklearn -k "array_api or namespace or lazynp"``.  Out: every test that scikit-learn runs for
each array library it knows runs for lazynp, in float64 and in float32, in place of the others.  Promise: only the lists of libraries are
exchanged, scikit-learn and its tests are as installed; ``LAZYNP_SKLEARN_NAMESPACE`` names another library for comparison.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, Final

if "scipy" in sys.modules and os.environ.get("SCIPY_ARRAY_API") is None:
    raise ImportError("SciPy was imported before SCIPY_ARRAY_API was set: load lazynp.testing.sklearn before any plugin that uses SciPy")
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from sklearn.utils import _array_api  # SciPy reads the variable when it is imported

from lazynp.values import config

NAMESPACE: Final = config.sklearn_namespace


def yield_namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    """The array library; NumPy itself where that is asked for, if NumPy is to be compared with."""
    if include_numpy_namespaces or NAMESPACE not in _array_api._NUMPY_NAMESPACE_NAMES:
        yield NAMESPACE


def yield_namespace_device_dtype_combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, Any, str | None]]:
    """The array library in both precisions; scikit-learn asks for them of every library that it expects to have a choice."""
    for namespace, device, dtype in _combinations(include_numpy_namespaces):
        if namespace == "lazynp":
            yield namespace, "cpu", "float64"
            yield namespace, "cpu", "float32"
        else:
            yield namespace, device, dtype


def yield_mixed_namespace_input_permutations() -> Iterator[tuple[Any, Any, str]]:
    """Arguments from two libraries at once: ours and NumPy's, both ways."""
    ours, theirs = _array_api.NamespaceAndDevice(NAMESPACE, None), _array_api.NamespaceAndDevice("numpy", None)
    yield theirs, ours, f"numpy to {NAMESPACE}"
    yield ours, theirs, f"{NAMESPACE} to numpy"


_combinations = _array_api.yield_namespace_device_dtype_combinations

for _replacement in (yield_namespaces, yield_namespace_device_dtype_combinations, yield_mixed_namespace_input_permutations):
    setattr(_array_api, _replacement.__name__, _replacement)
