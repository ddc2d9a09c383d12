"""Which engine runs the differential tests: the user's configuration, then each backend with everything recorded.

``LAZYNP_DEVICE=cuda`` is one more, which runs alone.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest

from lazynp.values import config

ENGINES: dict[str, dict[str, Any]] = {"default": {}, "numpy": {"backend": "numpy", "tape_limit": 0}}
if importlib.util.find_spec("llvmlite") is not None and importlib.util.find_spec("lazynp.backends.llvm.backend") is not None:
    hasty = {} if "LAZYNP_OPTIMIZE" in os.environ else {"optimize": False}  # the values are the same
    ENGINES["llvm"] = {"backend": "llvm", "tier": "compiled", "compiler": "wait", "tape_limit": 0, **hasty}
if config.device != "cpu":
    ENGINES = {config.device: {"tier": "compiled"}}


def marked(name: str) -> Any:
    """What LLVM compiles for a table takes minutes; the quick pass has the other engines."""
    return pytest.param(name, marks=pytest.mark.slow if name == "llvm" else ())


@pytest.fixture(params=map(marked, ENGINES), scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with config.override(**ENGINES[request.param]):
        yield request.param
