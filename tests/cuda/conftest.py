"""Tests of the CUDA backend run only where they are asked for: ``LAZYNP_TEST_CUDA=emulated`` (they need g++ and NVRTC) or ``gpu``."""

from __future__ import annotations

import os

collect_ignore_glob = ["*"]
if os.environ.get("LAZYNP_TEST_CUDA") in ("emulated", "gpu"):
    collect_ignore_glob = []
    from tests.cuda.counts import pytest_sessionfinish, pytest_terminal_summary, pytest_testnodedown  # noqa: F401
