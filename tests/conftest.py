"""Machine code that the tests compile goes to one temporary cache of the session, not to the user's."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # a worker of xdist inherits the environment, and with it the cache that all of them share
    before = os.environ.get("LAZYNP_CACHE_DIR")
    directory = tempfile.mkdtemp(prefix="lazynp-tests-")
    os.environ["LAZYNP_CACHE_DIR"] = directory

    def clean_up() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        if before is None:
            del os.environ["LAZYNP_CACHE_DIR"]
        else:
            os.environ["LAZYNP_CACHE_DIR"] = before

    config.add_cleanup(clean_up)
