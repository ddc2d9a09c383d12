"""Measuring in processes of their own: what crashes or hangs is a row and not the end.

In: a command that is given names and prints one JSON object a line for each, in their order.  Out: every name with its row.  Promise: where
a process dies or runs out of time the row says so, and a new process goes on with the next name.  ``conversation`` is the same with a
process that waits for questions, so that two of them can take turns.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Ask = Callable[..., Row]


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


class EndedError(Exception):
    """The process of a conversation ended, or was too late, before it answered."""


@contextlib.contextmanager
def conversation(command: Sequence[str], limit: float | None = None, switches: Mapping[str, str] | None = None) -> Iterator[Ask]:
    """A process ``python COMMAND`` that answers each line of its standard input, a JSON object, by a line that is one, too.

    What comes back asks it, and waits ``limit`` seconds at most.
    """
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env={**os.environ, **(switches or {})},
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(**question: Any) -> Row:
            late: list[float] = []

            def stop() -> None:
                late.append(limit or 0.0)
                process.kill()

            timer = _started(limit, stop)
            with contextlib.suppress(BrokenPipeError):
                questions.write(json.dumps(question) + "\n")
                questions.flush()
                for line in answers:
                    if line.startswith("{"):  # a library may print, too
                        timer.cancel()
                        answer: Row = json.loads(line)
                        return answer
            timer.cancel()
            code = process.wait()
            complaints.seek(0)
            last = complaints.read().strip().splitlines()[-1:]
            why = f"not done in {late[0]:g} s" if late else f"process ended, exit code {code}"
            raise EndedError(why + "".join(f": {text}" for text in last if not late))

        try:
            yield ask
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                questions.close()


def _started(limit: float | None, stop: Any) -> threading.Timer:
    timer = threading.Timer(threading.TIMEOUT_MAX if limit is None else limit, stop)
    timer.daemon = True
    timer.start()
    return timer
