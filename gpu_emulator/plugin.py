"""pytest on the fake device: ``pytest -p gpu_emulator.plugin``, in workers of xdist too.

In: a test session.  Out: ``cupy`` means the fake from the start, and a fixture ``fake_cupy`` is the machine.  Promise: a test that leaves a
violation behind fails, also when the host swallowed it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_emulator import fakecupy
from gpu_emulator.fakecupy import importing
from gpu_emulator.fakecupy.machine import Machine


def pytest_configure(config: pytest.Config) -> None:
    importing.share()
    fakecupy.install()


def pytest_unconfigure(config: pytest.Config) -> None:
    fakecupy.uninstall()


@pytest.fixture(autouse=True)
def fake_cupy() -> Iterator[Machine]:
    fake = fakecupy.machine()
    before = len(fake.violations)
    yield fake
    for number in range(fake.devices):
        fake.drain(number)
    if len(fake.violations) > before:
        raise fake.violations[before]
