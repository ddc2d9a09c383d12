"""What the runner of the array API suite adds to ``plugin``: every test runs, those included that its authors mark to be skipped.

In: the collected tests.  Out: the same, without marks ``skip`` of their own.  Promise: what the suite itself finds to be missing (an
extension, a version) stays skipped, and counts as not passed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    # First, because the suite's own hook marks what is missing.
    for item in items:
        for node in item.listchain():
            node.own_markers[:] = [mark for mark in node.own_markers if mark.name != "skip"]
