"""Which engine runs the differential tests: every one there is, one after the other.

``LAZYNP_DEVICE=cuda`` is one more, which runs alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from lazynp.values import config

ENGINES: dict[str, dict[str, Any]] = {"numpy": {"backend": "numpy"}}
if importlib.util.find_spec("llvmlite") is not None and importlib.util.find_spec("lazynp.backends.llvm.backend") is not None:
    ENGINES["llvm"] = {"backend": "llvm", "tier": "compiled"}
if config.device != "cpu":
    ENGINES = {config.device: {"tier": "compiled"}}


def marked(name: str) -> Any:
    """What LLVM compiles for a table takes minutes; the quick pass has the other engines."""
    return pytest.param(name, marks=pytest.mark.slow if name == "llvm" else ())


@pytest.fixture(params=map(marked, ENGINES), scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with config.override(**ENGINES[request.param]):
        yield request.param
