"""What the runner puts into the pytest process of one file of the array API suite.

In: ``CONFORMANCE_EVENTS``, a file.  Out: the lines that ``plugin.Events`` writes, as for NumPy's tests.  Promise: every test runs, those
included that the suite's authors mark to be skipped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from conformance.plugin import Events


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    # Before the suite's own hook, whose marks (something is missing) stay.
    for item in items:
        item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "skip"]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Events(os.environ["CONFORMANCE_EVENTS"]))
