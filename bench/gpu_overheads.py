"""``python -m gpu_emulator -m bench.gpu_overheads``: what lazynp's own code costs the host for a cached run on a GPU.

In: the imitation of CuPy.  Out: microseconds for ten operations on 100 elements, under the default error state (on a device that is done
at once, and on one that is 16 runs behind) and with errors ignored, and on the processor for scale.  Promise: the driver's and CuPy's part
is left out: what lazynp calls of them does nothing while the clock runs, and the values are not looked at.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

TURNS = 200
BATCHES = 40


class _Nothing:
    """In place of a stream, an event, a function."""

    ptr = 1
    done = True

    def __call__(self, *_: Any) -> None:
        pass

    record = wait_event = synchronize = __call__

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


@contextmanager
def idle(place: Any) -> Iterator[None]:
    """A device whose calls do nothing."""
    from lazynp.backends.cuda import launch

    nothing = _Nothing()
    memory = place.cupy.cuda.alloc(1 << 20)

    def launched(self: Any, block: Any, args: Any, run: Any) -> None:
        nothing((self.blocks, 1, 1), self.threads, args, 0, run.stream)

    with (
        patch.object(launch.Phase, "launch", launched),
        patch.object(place, "obtained", lambda nbytes, malloc: memory),
        patch.object(place, "device", nothing),
        patch.object(place.local, "stream", nothing),
        patch.object(place.local, "words", []),
        patch.object(place.local, "counters", place.local.counters),
        patch.object(place.cupy.cuda, "Event", lambda **_: nothing),
        patch.object(place.runtime, "memcpyAsync", nothing),
        patch.object(place.runtime, "memsetAsync", nothing),
    ):
        yield


def measured(run: Any) -> float:
    """Microseconds of this thread, the best of batches: neighbours only add."""
    times = []
    for _ in range(BATCHES):
        start = time.thread_time()
        for _ in range(TURNS):
            run()
        times.append((time.thread_time() - start) / TURNS * 1e6)
    return min(times)


def main() -> int:
    import lazynp as xp
    from lazynp.backends.common import rechecks
    from lazynp.backends.cuda import memory

    place = memory.place("cuda:0")

    def there() -> Any:
        return xp.realize(xp.asarray(np.arange(100.0), device="cuda:0"))

    x = there()

    def ten() -> None:
        y = ((x + 1) * 2 - x) / 3
        xp.realize(xp.sqrt(y * y + 1) - y * 0.5 + x)

    states = {"default error state": {}, "errors ignored": {"all": "ignore"}}
    for state in states.values():
        with np.errstate(**state):  # type: ignore[arg-type]
            ten()
    with idle(place):
        x = there()  # in the stream that does nothing
        _Nothing.done = False
        for _ in range(20):
            ten()
        _Nothing.done = True
        rechecks.look()
        for words in place.local.words:
            words.host[:] = memoryview(bytes(words.host.nbytes)).cast("q")  # nothing is copied there
        for name, state in states.items():
            with np.errstate(**state):  # type: ignore[arg-type]
                print(f"ten operations on 100 elements, {name}: {measured(ten):.1f} us")
        _Nothing.done = False
        print(f"ten operations on 100 elements, default error state, the device 16 runs behind: {measured(ten):.1f} us")
        _Nothing.done = True
        rechecks.look()
    x = xp.realize(xp.asarray(np.arange(100.0)))
    ten()
    print(f"the same on the processor, kernel and all: {measured(ten):.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
