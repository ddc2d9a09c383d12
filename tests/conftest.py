"""What every run of the tests has: where compiled code goes, and which variant of lazynp is tested.

The variants are lazynp's own environment variables, set before pytest starts: ``LAZYNP_TIER=compiled pytest``, ``LAZYNP_LIBMVEC=0``,
``LAZYNP_DEVICE=cuda`` (any tests run on a GPU then).  ``DEFAULTS`` are those whose value for tests is not the user's.

``LAZYNP_TEST_CUDA=emulated`` (needs g++ and NVRTC) or ``gpu`` asks for the tests of the CUDA backend, which are left out otherwise.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

# Environment variables of tests, where the one who runs them names no other value.  Most tests look at what small arrays record.
DEFAULTS: dict[str, str] = {"LAZYNP_EAGER_BELOW": "0"}
for _name, _value in DEFAULTS.items():
    os.environ.setdefault(_name, _value)

cuda = os.environ.get("LAZYNP_TEST_CUDA")
collect_ignore = [] if cuda in ("emulated", "gpu") else ["cuda", "gpu_emulator"]

if cuda == "emulated" and os.environ.get("LAZYNP_DEVICE", "cpu") != "cpu":
    from gpu_emulator import fakecupy

    fakecupy.install()


def pytest_configure(config: pytest.Config) -> None:
    if cuda in ("emulated", "gpu"):
        config.pluginmanager.import_plugin("tests.cuda.counts")
    if not hasattr(config, "workerinput"):  # a worker of xdist inherits the environment, and with it the cache that all of them share
        own_disk_cache(config)


def own_disk_cache(config: pytest.Config) -> None:
    """Machine code that the tests compile goes to one temporary cache of the session, not to the user's."""
    from lazynp.values import config as settings  # with the environment as it is by now

    before = os.environ.get("LAZYNP_CACHE_DIR")
    directory = tempfile.mkdtemp(prefix="lazynp-tests-")
    os.environ["LAZYNP_CACHE_DIR"] = settings.cache_dir = directory

    def clean_up() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        if before is None:
            del os.environ["LAZYNP_CACHE_DIR"]
        else:
            os.environ["LAZYNP_CACHE_DIR"] = before

    config.add_cleanup(clean_up)


@pytest.fixture
def recorded() -> Iterator[None]:
    """Nothing is at hand: for tests of what is recorded, in a run where small arrays are computed at the call."""
    from lazynp.values import config as settings

    with settings.override(eager_below=0):
        yield
