"""A project's own tests, with ``numpy`` meaning lazynp in the project.

In: ``pytest -p lazynp.testing.swap``.  Out: the tests under pytest's root directory, and the modules there that they import, run with every
import of ``numpy`` answered by lazynp; assertions are rewritten as ever.  Promise: installed packages, pytest's plugins among them, keep
NumPy.
"""

from __future__ import annotations

import pytest

from lazynp import mapping


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Map from the first ``conftest.py`` on."""
    mapping.install(str(early_config.rootpath))
