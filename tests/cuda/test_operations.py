"""Every operation gives NumPy's value on a device too: the tests of the processor's operations, through CUDA C and the emulator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.llvm import test_operations as processor
from tests.backends.llvm.test_operations import (  # noqa: F401  the tests
    test_all_bytes,
    test_all_halves,
    test_all_halves_against,
    test_all_pairs_of_bools,
    test_all_pairs_of_bytes,
    test_conversions_between_all_types,
    test_conversions_of_all_halves,
    test_extremes_of_integers,
    test_math_functions_of_all_halves,
    test_rounding_to_half_at_every_tie,
    test_special_values_of_floats,
)
from tests.cuda import rendered


@pytest.fixture(autouse=True)
def _on_a_device(monkeypatch: Any) -> None:
    monkeypatch.setattr(processor, "compiled", rendered.compiled)
