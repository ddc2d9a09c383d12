"""Threads of a test, which take turns after a few instructions.

In: a function of a thread's number.  Out: it has run in all threads.  Promise: what one of them raises fails the test.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work`` in threads that begin together and take turns after a few instructions; what one of them raises is raised."""
    failures: list[BaseException] = []
    begin = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            begin.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if failures:
        raise failures[0]
