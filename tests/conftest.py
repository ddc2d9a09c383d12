"""Machine code that the tests compile goes to one temporary cache of the session, not to the user's.

Any tests run on a GPU with ``LAZYNP_DEVICE=cuda``; ``LAZYNP_TEST_CUDA=emulated`` makes it an emulated one.
"""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

if os.environ.get("LAZYNP_TEST_CUDA") == "emulated" and os.environ.get("LAZYNP_DEVICE", "cpu") != "cpu":
    from tests.cuda import fakecupy

    fakecupy.install()


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
