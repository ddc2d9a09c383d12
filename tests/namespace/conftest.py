"""What the tests of functions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lazynp


@pytest.fixture
def processor() -> Iterator[None]:
    """The processor, whatever device the tests run on: what it records a GPU may compute at the call."""
    with lazynp.device("cpu"):
        yield
