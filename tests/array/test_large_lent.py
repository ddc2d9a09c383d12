"""Large arrays whose memory something outside may write: tapes read them at the call, and copy nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp as np
from lazynp.array import core
from lazynp.values import config

ALL: Final = 1 << 40  # elements: more than a test computes
LARGE: Final = 9000  # elements
ROWS: Final = 90

# `a`, `b`, `i`: large and lent; `m`: `a` in rows; `s`: small and lent; `p`: large and private; `w`: large and pending
CALLS: Final[dict[str, Callable[..., Any]]] = {
    "number": lambda np, a, b, i, m, s, p, w: a * 2.0,
    "both": lambda np, a, b, i, m, s, p, w: a * b,
    "itself": lambda np, a, b, i, m, s, p, w: a + a,
    "private": lambda np, a, b, i, m, s, p, w: p + a,
    "pending": lambda np, a, b, i, m, s, p, w: a - w,
    "views": lambda np, a, b, i, m, s, p, w: a[1:-1] * 2 + a[2:] - b[:-2],
    "steps": lambda np, a, b, i, m, s, p, w: a[::2] * b[1::-1][0],
    "backwards": lambda np, a, b, i, m, s, p, w: a[::-1] + p,
    "rows": lambda np, a, b, i, m, s, p, w: m * m[0],
    "columns": lambda np, a, b, i, m, s, p, w: m / m[:, :1],
    "small": lambda np, a, b, i, m, s, p, w: m + s,
    "transposed": lambda np, a, b, i, m, s, p, w: m.T + 1,
    "types": lambda np, a, b, i, m, s, p, w: i * a,
    "integers": lambda np, a, b, i, m, s, p, w: i + 1,
    "compared": lambda np, a, b, i, m, s, p, w: a < b,
    "negative": lambda np, a, b, i, m, s, p, w: -a,
    "square": lambda np, a, b, i, m, s, p, w: a**2,
    "absolute": lambda np, a, b, i, m, s, p, w: np.abs(a),
    "exp": lambda np, a, b, i, m, s, p, w: np.exp(a),
    "power": lambda np, a, b, i, m, s, p, w: np.power(a, 1.5),
    "remainders": lambda np, a, b, i, m, s, p, w: np.divmod(a, b)[1],
    "maximum": lambda np, a, b, i, m, s, p, w: np.maximum(a, p),
    "where": lambda np, a, b, i, m, s, p, w: np.where(a > 1, a, b),
    "clip": lambda np, a, b, i, m, s, p, w: np.clip(a, 0.2, 0.8),
    "cast": lambda np, a, b, i, m, s, p, w: a.astype("f4"),
    "copy": lambda np, a, b, i, m, s, p, w: a.copy(),
    "round": lambda np, a, b, i, m, s, p, w: np.round(a, 2),
    "difference": lambda np, a, b, i, m, s, p, w: np.diff(a),
    "roll": lambda np, a, b, i, m, s, p, w: np.roll(a, 3),
    "joined": lambda np, a, b, i, m, s, p, w: np.concatenate([a, b]),
    "sum": lambda np, a, b, i, m, s, p, w: m.sum(axis=0),
    "mean": lambda np, a, b, i, m, s, p, w: m.mean(axis=1),
    "deviation": lambda np, a, b, i, m, s, p, w: m.std(axis=1, keepdims=True),
    "extreme": lambda np, a, b, i, m, s, p, w: m.min(axis=0),
    "product": lambda np, a, b, i, m, s, p, w: m @ m[:20].T,
    "sums": lambda np, a, b, i, m, s, p, w: np.cumsum(a),
    "sorted": lambda np, a, b, i, m, s, p, w: np.sort(a),
    "softmax": lambda np, a, b, i, m, s, p, w: (lambda e: e / e.sum(1, keepdims=True))(np.exp(m - m.max(1, keepdims=True))),
    "out": lambda np, a, b, i, m, s, p, w: np.add(a, b, out=p),
    "update": lambda np, a, b, i, m, s, p, w: p.__iadd__(a),
    "updated part": lambda np, a, b, i, m, s, p, w: (p[1:].__iadd__(a[1:]), p)[1],
    "written part": lambda np, a, b, i, m, s, p, w: (p.__setitem__(slice(1, None), a[1:]), p)[1],
    "written": lambda np, a, b, i, m, s, p, w: (p.__setitem__(slice(None), a * 2), p)[1],
    "own update": lambda np, a, b, i, m, s, p, w: (a.__imul__(b), a + 0)[1],
}  # fmt: skip
COPIED: Final = frozenset({"sums", "sorted", "own update"})  # NumPy's functions, and writes


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    before = core.first_work(ALL)
    with config.override(tape_limit=2000, tape_first=50000):
        yield
    core.first_work(before)


def operands(module: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a call is given, and the memory outside."""
    random = numpy.random.default_rng(11)
    a, b = (random.random(LARGE) * 3 + 0.1 for _ in range(2))
    i, s, p, w = random.integers(-9, 9, LARGE), random.random(LARGE // ROWS), random.random(LARGE), random.random(LARGE)
    x, y, z = module.asarray(a), module.asarray(b), module.asarray(i)
    return (x, y, z, x.reshape(ROWS, -1), module.asarray(s), module.array(p), module.array(w) * 0.5), (a, b, i, s)


@pytest.mark.parametrize("work", [ALL, 0], ids=["first", "hot"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_they_are_read_at_the_call(call: Callable[..., Any], work: int) -> None:
    given, outside = operands(np)
    core.first_work(work)
    found = call(np, *given)
    for x in outside:
        x[...] = 7  # who reads later reads that
    want = call(numpy, *operands(numpy)[0])
    assert (found.dtype, found.shape, found.strides) == (want.dtype, want.shape, want.strides)
    numpy.testing.assert_allclose(numpy.asarray(found), want, rtol=1e-14 if want.dtype == float else 1e-6)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - COPIED))
def test_nothing_is_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[Any] = []
    memory = sys.modules["lazynp.storage"]
    made = memory._copied
    monkeypatch.setattr(memory, "_copied", lambda array, device: (copies.append(array), made(array, device))[1])
    given, outside = operands(np)
    CALLS[name](np, *given)
    assert not copies and len(outside) == 4


# Another thread sends a signal where this one computes, whose handler raises; then NumPy writes what was read.
STOPPED: Final = """
import signal, sys, threading
import numpy
import lazynp as np
from lazynp.array import core

class Stop(Exception):
    pass

def stops(*_):
    raise Stop

def rings():
    while True:
        ready.acquire()
        signal.pthread_kill(main, signal.SIGUSR1)
        done.set()

signal.signal(signal.SIGUSR1, stops)
sys.setswitchinterval(1000)  # another thread runs where this one computes, or waits, and nowhere else
ready, done, main = threading.Semaphore(0), threading.Event(), threading.get_ident()
threading.Thread(target=rings, daemon=True).start()
core.pauses(1)

def added(lent, p):
    p += lent

for statement in added, lambda lent, p: np.multiply(lent, 2.0, out=p), lambda lent, p: np.add(lent, p, out=p):
    found, inside = set(), 0
    for _ in range(50):
        memory, p = numpy.ones(3_000_000), np.realize(np.zeros(3_000_000) + 0)
        lent, ended = np.asarray(memory), False
        done.clear()
        ready.release()
        try:
            statement(lent, p)
            ended = True
            done.wait()  # else the signal comes here
        except Stop:
            inside += not ended
        done.wait()
        memory[:] = 1000
        found.update(numpy.asarray(p)[::1000].tolist())
        if inside == 3:
            break
    assert inside == 3 and found <= {0.0, 1.0, 2.0}, (inside, found)
"""


def test_an_update_that_is_stopped_reads_nothing_later() -> None:
    subprocess.run([sys.executable, "-c", STOPPED], check=True, timeout=120)
