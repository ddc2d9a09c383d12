"""SciPy's own array-API tests, with lazynp as the array library.

In: ``pytest -p lazynp.testing.scipy --pyargs scipy.stats``.  Out: every test that SciPy runs once for each array library it knows runs
once, for lazynp; tests that know of no array library are deselected.  Promise: SciPy and its tests are as installed; to SciPy's marks
lazynp is a library of its own that computes when asked, on the CPU: it is left out where SciPy leaves out all but NumPy, and nowhere else.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

if "scipy" in sys.modules and os.environ.get("SCIPY_ARRAY_API") is None:
    raise ImportError("SciPy was imported before SCIPY_ARRAY_API was set: load lazynp.testing.scipy before any plugin that uses SciPy")
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads the variable when it is imported

import pytest

import lazynp
from lazynp.namespace.standard import namespace_of

_MARK = "array_api_backends"  # SciPy's own, of the tests that are run for each library
_LIBRARY = pytest.param(namespace_of(lazynp), id="lazynp", marks=getattr(pytest.mark, _MARK))


def pytest_configure(config: pytest.Config) -> None:
    # SciPy's conftest registers them as well, but is read before it does.
    for mark in (_MARK, "thread_unsafe"):
        config.addinivalue_line("markers", f"{mark}: see SciPy's conftest.py")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Exchange the libraries that the fixture ``xp`` goes through."""
    if "xp" in metafunc.fixturenames:
        import_module("scipy.conftest").xp_known_backends.add(lazynp.__name__)
        metafunc.definition.add_marker(pytest.mark.parametrize("xp", [_LIBRARY], indirect=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = [item for item in items if item.get_closest_marker(_MARK) is None]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.get_closest_marker(_MARK) is not None]
