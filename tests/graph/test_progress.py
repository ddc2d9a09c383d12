"""Long runs show how far they are: on a terminal, and without one; short ones nothing."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from array import array
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.graph import progress
from lazynp.values import config

PROGRAM = """
import sys, threading
import numpy, lazynp as np
from lazynp.graph import progress
progress.AFTER_SECONDS, progress.LOOK_SECONDS, progress.PLAIN_SECONDS = map(float, sys.argv[1:4])
if sys.argv[4] == "plain":
    sys.modules["rich"] = sys.modules["rich.console"] = None
x = np.asarray(numpy.linspace(0, 1, 2_000_000)).realize()
def f(y):
    for k in range(int(sys.argv[5])):
        y = np.sin(y) + np.exp(-y)   # line 11
    return y
with np.progress():
    f(x).realize()
    f(x[::2] + 1).realize()
print(progress.current())
"""
WATCHED = ["0.05", "0.01", "0.02"]


@pytest.fixture
def script(tmp_path: Any) -> str:
    path = tmp_path / "script.py"
    path.write_text(PROGRAM)
    return str(path)


def environment() -> dict[str, str]:
    return {**os.environ, "LAZYNP_TIER": "compiled", "TERM": "xterm", "COLUMNS": "200"}


def on_a_terminal(script: str, *arguments: str) -> str:
    """Run a script whose standard error is a pseudo-terminal; returns what appears there."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, script, *arguments], stderr=theirs, stdout=subprocess.PIPE, env=environment()) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not more:
                break
            shown += more
        assert process.stdout is not None
        assert process.stdout.read() == b"None\n"
    os.close(ours)
    assert process.returncode == 0
    return shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rich", "plain"])
def test_on_a_terminal_a_line_is_drawn_and_taken_away(script: str, kind: str) -> None:
    shown = on_a_terminal(script, *WATCHED, kind, "120")
    assert "lazynp: kernel " in shown and "script.py:11" in shown and "GB/s" in shown
    assert "%)" in shown  # of the kernel at work
    assert "\x1b[2K" in shown  # it is cleared


@pytest.mark.slow
def test_without_a_terminal_there_are_lines_now_and_then(script: str) -> None:
    run = subprocess.run([sys.executable, script, *WATCHED, "rich", "120"], capture_output=True, text=True, env=environment(), check=True)
    lines = run.stderr.splitlines()
    assert lines and all(line.startswith("lazynp: kernel ") and "script.py:11" in line for line in lines)
    assert run.stdout == "None\n"


@pytest.mark.slow
def test_of_short_runs_nothing_is_shown(script: str) -> None:
    assert on_a_terminal(script, "2.0", "0.01", "0.02", "rich", "1") == ""


def test_a_run_without_progress_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "start_new_thread", lambda *arguments: pytest.fail("a thread"))
    monkeypatch.setattr(progress, "Run", lambda *arguments: pytest.fail("a run"))
    x = np.asarray(numpy.ones(200_000))
    assert float((x + 1).sum()) == 400_000.0


def test_text_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "start_new_thread", lambda *arguments: None)
    monitor = progress._Monitor()
    monkeypatch.setattr(progress, "_monitor", monitor)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    node = node_of(np.asarray(numpy.ones(200_000)) * 2)
    with progress.Run(3, node) as run:
        run.nodes = [node]
        assert progress.current() is run
        monitor.tell(run, run.started + 1.9)
        run.begin("library call", 0, 2_000_000_000)
        run.begin("kernel", 0, 4_000_000_000)
        run.inside(array("q", [5, 25, 100, 0]), [(1, 2), (0, -1)])
        monitor.tell(run, run.started + 4)
        monitor.tell(run, run.started + 8)
        monitor.tell(run, run.started + 9.1)
    assert progress.current() is None
    first, second = stream.getvalue().splitlines()
    assert first.startswith("lazynp: kernel 2 of 3 (26%), ") and "test_progress.py:" in first
    assert first.endswith("3.03 GB at 0.76 GB/s, 4 s") and second.endswith(" 9 s")


def test_the_switch_is_put_back() -> None:
    assert not config.progress
    with np.progress():
        assert config.progress
        with np.progress(False):
            assert not config.progress
        assert config.progress
        x = np.asarray(numpy.ones(200_000))
        assert float((x * 3).sum()) == 600_000.0
    assert not config.progress
