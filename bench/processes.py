"""Measuring in processes of their own: what crashes or hangs is a row and not the end.

In: a command that is given names and prints one JSON object a line for each, in their order.  Out: every name with its row.  Promise: where
a process dies or runs out of time the row says so, and a new process goes on with the next name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def rows(
    command: Sequence[str], names: Sequence[str], limit: float | None = None, switches: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Row]]:
    """The rows of ``python COMMAND NAMES``, each made within ``limit`` seconds; ``switches`` are environment variables to add."""
    remaining = list(names)
    while remaining:
        with tempfile.TemporaryFile("w+") as complaints:
            late: list[float] = []
            with subprocess.Popen(
                [sys.executable, *command, *remaining],
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                env={**os.environ, **(switches or {})},
            ) as process:
                assert process.stdout is not None

                def stop(process: subprocess.Popen[str] = process, late: list[float] = late) -> None:
                    late.append(limit or 0.0)
                    process.kill()

                timer = _started(limit, stop)
                for line in process.stdout:
                    if line.startswith("{"):  # a library may print, too
                        timer.cancel()
                        yield remaining.pop(0), json.loads(line)
                        timer = _started(limit, stop)
                timer.cancel()
            complaints.seek(0)
            last = complaints.read().strip().splitlines()[-1:]
        if remaining:
            why = f"not done in {late[0]:g} s" if late else f"process ended, exit code {process.returncode}"
            yield remaining.pop(0), {"error": why + "".join(f": {text}" for text in last if not late)}


def _started(limit: float | None, stop: Any) -> threading.Timer:
    timer = threading.Timer(threading.TIMEOUT_MAX if limit is None else limit, stop)
    timer.daemon = True
    timer.start()
    return timer
