"""Every kind of launch through the whole back end: on a GPU, or on the fake CuPy with real kernels, races included."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gpu_emulator import fakecupy
from lazynp.values import config
from tests.cuda import standard


@pytest.fixture(scope="module", autouse=True)
def _device() -> Iterator[None]:
    with config.override(tier="compiled", debug=True):
        if os.environ.get("LAZYNP_TEST_CUDA") == "gpu":
            yield
        else:
            with fakecupy.installed(races=True):
                yield


@pytest.mark.parametrize("dtype", standard.DTYPES)
@pytest.mark.parametrize("name", standard.PROGRAMS)
def test_every_kind_of_launch_is_numpys(name: str, dtype: str) -> None:
    assert not standard.wrong(name, dtype)
