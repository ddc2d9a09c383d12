"""Programs that are dear in memory: what they record could hold far more than what NumPy holds.

In: a namespace (``numpy`` or ``lazynp``) and a number of elements.  Out: what the program computes.  Promise: nothing in them depends on
which library runs them; at a million elements NumPy takes some tens to hundreds of megabytes for each.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from math import isqrt
from typing import Any, Final

import numpy

Make = Callable[[Any, int], Any]

PROGRAMS: Final[dict[str, Make]] = {}


def program(make: Make) -> Make:
    PROGRAMS[make.__name__] = make
    return make


def fresh(np: Any, n: int, seed: int = 0) -> Any:
    """Numbers that nobody else holds."""
    return np.asarray(numpy.random.default_rng(seed).standard_normal(n))


@program
def layers(np: Any, n: int) -> Any:
    """Fifty layers of products."""
    side = isqrt(n)
    h = fresh(np, side * side // 2).reshape(side // 2, side) if side % 2 == 0 else fresh(np, side * side).reshape(side, side)
    w = fresh(np, side * side, 1).reshape(side, side) / side**0.5
    for _ in range(50):
        h = np.tanh(h @ w) * 0.1
    return float(h.sum())


@program
def sorts(np: Any, n: int) -> Any:
    """Forty sorts, added up."""
    x = fresh(np, n)
    total = 0.0
    for i in range(40):
        total += np.sort(x * i).sum()
    return float(total)


@program
def sorts_added(np: Any, n: int) -> Any:
    """Sorts that are added element by element."""
    x = fresh(np, n)
    total = x * 0
    for i in range(20):
        total = total + np.sort(x * i) * 0.5 + np.cumsum(x)[::-1]
    return float(total.sum())


@program
def statistics(np: Any, n: int) -> Any:
    """Pending numbers of fresh arrays."""
    stats = []
    for i in range(60):
        x = fresh(np, n, i)
        stats.append((x * i).mean())
    return float(sum(stats))


@program
def statistics_of_rows(np: Any, n: int) -> Any:
    """Pending small arrays of fresh arrays, several of each."""
    rows = []
    for i in range(40):
        x = fresh(np, n, i).reshape(-1, 100)
        rows.append((x.mean(axis=0), x.std(axis=0), abs(x).max(axis=0)))
    return float(sum((a + b + c).sum() for a, b, c in rows))


@program
def statistics_of_made_arrays(np: Any, n: int) -> Any:
    """Pending numbers of arrays that are themselves computed, by library routines."""
    stats = []
    x = fresh(np, n)
    for i in range(40):
        y = np.sort(x + i)
        stats.append(y[n // 10 : -n // 10].mean())
    return float(sum(stats))


@program
def statistics_of_halves(np: Any, n: int) -> Any:
    """Pending results half as large as what they are of."""
    parts = []
    for i in range(12):
        x = fresh(np, n, i)
        parts.append(x[::2] * 2)
    return float(sum(part.sum() for part in parts))


@program
def transforms(np: Any, n: int) -> Any:
    x = fresh(np, n)
    for _ in range(10):
        x = np.fft.ifft(np.fft.fft(x) * 0.5).real
    return float(x.sum())


@program
def many_of_one(np: Any, n: int) -> Any:
    """Thirty arrays of one that are used together, each made by a library."""
    x = fresh(np, n)
    sums = [np.cumsum(x * i) for i in range(30)]
    total = 0.0
    while sums:
        y = sums.pop(0)
        total += float((y * y).sum())
        del y
    return total


@program
def powers(np: Any, n: int) -> Any:
    """A series, term by term."""
    x = fresh(np, n)
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, 60):
        term = term * x / k
        total = total + term
    return float(total.sum())


@program
def in_place(np: Any, n: int) -> Any:
    """Updates in place, of the whole and of parts."""
    x = fresh(np, n)
    for k in range(30):
        x += 1.0
        x[k::2] *= 0.5
        x[: n // 2] -= x[n // 2 : n // 2 * 2]
    return float(x.sum())


@program
def relaxation(np: Any, n: int) -> Any:
    """Jacobi's steps, and a residual now and then."""
    side = isqrt(n)
    u = fresh(np, side * side).reshape(side, side)
    seen = []
    for k in range(60):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        if k % 10 == 0:
            seen.append(abs(new - u).max())
        u = new
    return float(sum(seen))


@program
def lent(np: Any, n: int) -> Any:
    """An array that somebody outside holds, read again and again."""
    x = fresh(np, n)
    outside = numpy.asarray(x)
    total = 0.0
    stats = []
    for k in range(30):
        stats.append((x * k).sum())
        y = x + k
        total += float(y[k])
    return total + float(sum(stats)) + float(outside[0])


@program
def lent_many(np: Any, n: int) -> Any:
    """Ten arrays that somebody outside holds, in one expression."""
    arrays = [fresh(np, n, k) for k in range(10)]
    outside = [numpy.asarray(x) for x in arrays]
    total = arrays[0]
    for x in arrays[1:]:
        total = total + x * 2
    return float(total.sum()) + float(sum(x[0] for x in outside))


@program
def mapped(np: Any, n: int) -> Any:
    """A file of eight times the elements, by its map; nothing of it need be in private memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "values")
        with open(path, "wb") as file:
            for k in range(8):
                file.write(numpy.full(n, float(k)).tobytes())
        x = np.memmap(path, dtype="f8", mode="r", shape=(8, n))
        total = float((np.sin(x) ** 2).mean(axis=0).sum()) if np is not numpy else float(sum(np.sin(row) ** 2 for row in x).sum() / 8)
        shown = numpy.asarray(x)
        return total + float(shown[3, 5]), float(np.asarray(x)[2].sum())


@program
def outer(np: Any, n: int) -> Any:
    """Distances of all pairs: what NumPy stores, and kernels need not."""
    k = isqrt(n)
    p = fresh(np, 3 * k).reshape(k, 3)
    d = p[:, None, :] - p[None, :, :]
    r = np.sqrt((d * d).sum(axis=-1))
    return float(r.sum())


@program
def joined(np: Any, n: int) -> Any:
    """Joined and cut again."""
    parts = [fresh(np, n // 4, k) for k in range(8)]
    for _ in range(10):
        whole = np.concatenate(parts)
        parts = [piece * 1.01 for piece in np.split(np.sort(whole), 8)]
    return float(sum(part.sum() for part in parts))


@program
def masks(np: Any, n: int) -> Any:
    """What is left of an array, turn by turn."""
    x = fresh(np, n)
    while x.size > n // 8:
        x = x[x > x.mean() - 1.0][: -n // 20]
    return float(x.sum())


@program
def history(np: Any, n: int) -> Any:
    """States that are all kept, each computed from the one before."""
    x = fresh(np, n // 4)
    states = [x]
    for _ in range(40):
        states.append(np.sin(states[-1]) * 0.99)
    return float(sum(state.sum() for state in states))


@program
def gradients(np: Any, n: int) -> Any:
    """A training loop whose losses are looked at in the end."""
    side = isqrt(n)
    x, w = fresh(np, side * side).reshape(side, side), fresh(np, side * side, 1).reshape(side, side) * 0.01
    losses = []
    for _ in range(20):
        y = np.tanh(x @ w)
        e = y - x
        losses.append((e * e).mean())
        w = w - 0.01 * (x.T @ (e * (1 - y * y))) / side
    return float(sum(losses)), float(w.sum())
