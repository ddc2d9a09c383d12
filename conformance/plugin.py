"""What the runner puts into the pytest process of one test file.

In: environment variables: ``CONFORMANCE_LIBRARY`` (``numpy`` or ``lazynp``: what ``import numpy`` in the test modules means),
``CONFORMANCE_EVENTS`` (a file), ``CONFORMANCE_ROOT`` where the test modules are not NumPy's own, ``CONFORMANCE_SECONDS`` (the processor's
time for one test).  Out: one JSON line for every
collected test and for every outcome, written at once, so that a process that dies leaves what it has done.  Promise: only the test
modules themselves are mapped (``lazynp.mapping`` does it, as for a user's program); everything installed keeps NumPy.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import FrameType
from typing import Any

import numpy
import pytest

from lazynp import mapping
from lazynp.graph import report

SECONDS = float(os.environ.get("CONFORMANCE_SECONDS") or 60)  # of the processor's time for one test; NumPy's own slow ones take a few
REASON = 200  # characters of a failure that are kept
_ROOT = os.path.join(os.path.realpath(os.environ.get("CONFORMANCE_ROOT") or os.path.dirname(numpy.__file__)), "")


class NoCuPy(MetaPathFinder):
    """Without a driver CuPy is as good as absent: tests that want a GPU ask whether it can be imported, and fail where that is all."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "cupy":
            raise ModuleNotFoundError("No module named 'cupy'", name=fullname)


try:
    ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
except OSError:
    sys.meta_path.insert(0, NoCuPy())


class TestModules(mapping.UserModules):
    """Gives the modules in NumPy's test directories the mapping loader, and nobody else."""

    __test__ = False

    def owns(self, path: str) -> bool:
        path = os.path.realpath(path)
        return path.startswith(_ROOT) and "tests" in path[len(_ROOT) :].split(os.sep)[:-1]


class TestTimeout(BaseException):
    """A test ran too long; no ``except Exception`` of the test's swallows it."""

    __test__ = False


class Events:
    """The lines the runner reads."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - as long as the process
        self.setup: dict[str, pytest.TestReport] = {}

    def write(self, **event: Any) -> None:
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.write(error=_reason(report))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.write(collected=[item.nodeid for item in session.items])

    def pytest_sessionfinish(self) -> None:
        counts = report.counters()
        sums = {name: sum(row["count"] for row in counts[name]) for name in ("forced", "fallbacks")}
        self.write(work={**sums, **{name: counts[name] for name in ("schedule_misses", "schedule_hits", "kernels")}})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(started=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # One outcome a test: of its body, unless it never got there or cleaning up failed.
        if report.when == "call" or report.outcome != "passed":
            outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            self.write(test=report.nodeid, outcome=outcome, reason="" if report.passed else _reason(report))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TestTimeout(f"longer than {SECONDS:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CONFORMANCE_LIBRARY") == "lazynp":
        sys.meta_path[:0] = (TestModules(_ROOT), mapping.Submodules())
    events = os.environ.get("CONFORMANCE_EVENTS")
    if events:
        config.pluginmanager.register(Events(events))


def _reason(report: Any) -> str:
    """A failure in one line: its exception; or why a test was skipped."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")[:REASON]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if crash is None:
        lines = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")] or lines[-1:]
    return " ".join(lines)[:REASON]
