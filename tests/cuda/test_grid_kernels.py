"""Loop nests of a grid, rendered as CUDA C and run by the emulator: the bits of the processor's kernels, in any order of the threads."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.codegen import test_grid
from tests.codegen.test_grid import (  # noqa: F401  the tests
    pytestmark,
    test_every_kind_of_launch_has_the_bits_of_the_processors_kernels,
    test_random_programs_have_the_bits_of_the_processors_kernels,
)
from tests.cuda import rendered

VARIANTS = {"plain": {}, "64-bit indices, any order": {"wide": True, "order": "random"}, "backwards": {"order": "descending"}}


@pytest.fixture(autouse=True, params=VARIANTS)
def _as_cuda(request: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(test_grid, "on_a_grid", functools.partial(rendered.plan_of, **VARIANTS[request.param]))
