"""``python -m bench.at_hand``: operations on small arrays, NumPy and lazynp in turn.

In: ``--only TEXT``, ``--seconds S`` an operation; ``--calls`` for the longer table: what forces or is called often, over SIZES, of which no
ratio may pass 1.3.  Out: a table: nanoseconds of both on this thread's clock, the best of short runs that take turns, and their
ratio (below 1 lazynp is faster).  Each operation runs in a loop written in Python, as users have it; where lazynp gives an array, its value
is asked for, each time.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import lazynp
from lazynp.array import core

# What is measured, and the ratio that it must not pass; a, b: 100 floats, c: 100 integers, m: a mask, M: 10 x 10.
OPERATIONS: dict[str, float] = {
    "a + b": 0.5, "a - b": 0.5, "a * 2.0": 0.5, "2 * a": 0.5, "a / b": 0.6, "a ** 2": 0.6, "-a": 0.6, "a < b": 0.5, "c + c": 0.6,
    "c % 7": 1.2, "np.exp(a)": 0.8, "np.sqrt(a)": 0.6, "np.maximum(a, b)": 0.6, "a += b": 1.2, "a[i]": 1.2, "a[1:-1]": 1.2,
    "M[2]": 1.2, "M[2, 3]": 1.2, "M[:, 1:5]": 1.2, "M.T": 1.3, "a[m]": 1.2, "a[c % 50]": 1.2, "a[i] = 0.5": 1.2,
    "a[1:-1] = b[1:-1]": 1.2, "a[m] = 0.0": 1.2, "float(a.sum())": 1 / 3, "a.mean()": 0.5, "a.max()": 0.5, "np.sum(a)": 0.5,
    "M.sum(axis=0)": 1.2, "np.sum(M, axis=0)": 1.0, "m.any()": 1.0, "a.argmax()": 1.3, "a @ b": 1.2, "M @ M": 1.2, "np.dot(a, b)": 1.2,
    "np.where(m, a, b)": 1.3, "np.zeros(100)": 1.3, "np.zeros((10, 10))": 1.3, "np.concatenate((a, b))": 1.3, "np.linalg.norm(a)": 1.3,
    "len(a)": 1.3, "a.shape": 1.2, "a.copy()": 1.3, "M.reshape(100)": 1.3, "for r in M: pass": 1.3, "for v in a: pass": 1.1,
    "float(a[i])": 1.2, "a[i] * 2.0": 1.2, "s * a": 1.3, "M + a[:10]": 1.3,
}  # fmt: skip


SIZES = (1, 10, 100, 1000, 4096)
CALLS_LIMIT = 1.3
# What programs call on small arrays; a, b: floats, c: integers, m: a mask, M: a matrix with about as many elements, Q: a positive definite
# one of 2 x 2 to 64 x 64, v: 3-vectors, L: a list of the floats, f: a vectorized function.
CALLS: tuple[str, ...] = (
    "float(a.sum())", "a.sum()", "np.sum(a)", "M.sum(axis=0)", "M.sum(axis=1, keepdims=True)", "np.sum(M, axis=1)", "a.mean()",
    "np.mean(a)", "M.mean(axis=0)", "a.std()", "np.std(a)", "np.var(a)", "a.max()", "np.max(a)", "a.min()", "M.max(axis=1)", "a.prod()",
    "m.any()", "np.any(m)", "m.all()", "np.all(a > 0)", "a.argmax()", "np.argmax(a)", "np.argmin(a)", "M.argmax(axis=1)", "np.median(a)",
    "np.percentile(a, 50)", "np.average(a)", "a.ptp() if hasattr(a, 'ptp') else np.ptp(a)", "np.count_nonzero(m)",
    "if np.abs(a - b).max() < 1e-9: pass", "if a[i] > 0.5: pass", "a[i]", "M[i, i]", "a[-1]", "len(a)", "a.shape", "M.shape[0]", "a.size",
    "a.ndim", "a.dtype", "a[1:]", "M[i]", "M[:, i]", "a[m]", "a[c]", "a[::-1]", "a[None, :]", "a[:, None]", "a[i] = 0.5", "M[i, i] = 0.5",
    "a[m] = 1.5", "a[c] = 1.5", "a[:] = b", "M[i] = M[0]", "M[:, i] = 1.0", "for x in a: pass", "for x in M: pass",
    "for k, x in enumerate(a): pass", "for x, y in zip(a, b): pass", "a.tolist()", "list(a)", "a.item(0)", "float(a[i])", "int(c[i])",
    "a[i] * 2.0", "f(a)", "a + b", "a * b + a", "a - 1.0", "2.0 * a", "s * a", "a * s", "a ** 2", "a / b", "-a", "a < b", "a > 1.5",
    "m & m", "~m", "c % 7", "c // 2", "c + 1", "c * a", "a += b", "a *= 1.0", "a -= s * 0", "a += 0 * b", "M + a[:M.shape[1]]", "M * 2.0",
    "np.exp(a)", "np.sqrt(a)", "np.sin(a)", "np.log(a)", "np.tanh(a)", "np.abs(a)", "np.maximum(a, b)", "np.maximum(a, 0.0)",
    "np.minimum(a, 1.0)", "np.sign(a)", "np.floor(a)", "np.round(a)", "np.round(a, 2)", "a.round(2)", "np.isfinite(a)", "np.isnan(a)",
    "np.square(a)", "np.power(a, 2)", "np.hypot(a, b)", "np.arctan2(a, b)", "np.add(a, b, out=a)", "np.add.reduce(a)",
    "np.logical_and(m, m)", "np.clip(a, 0.2, 1.8)", "a.clip(0.2, 1.8)", "np.where(m, a, b)", "np.where(m, a, 0.0)", "np.where(m)",
    "np.nonzero(m)", "m.nonzero()", "np.argwhere(m)", "np.flatnonzero(m)", "np.sort(a)", "a.copy().sort()", "np.argsort(a)",
    "a.argsort()", "np.unique(c)", "np.bincount(c)", "np.searchsorted(a, 1.5)", "np.searchsorted(a, b)", "np.cumsum(a)", "a.cumsum()",
    "np.cumprod(a)", "np.diff(a)", "np.trapezoid(a)", "np.interp(1.5, a, b)", "np.interp(b, a, b)", "np.polyval([1.0, 2.0, 3.0], a)",
    "np.histogram(a)", "np.histogram(a, bins=5, range=(0, 2))", "np.allclose(a, b)", "np.isclose(a, b)", "np.array_equal(a, b)",
    "np.roll(a, 1)", "np.flip(a)", "np.repeat(a, 2)", "np.tile(a, 2)", "np.cross(v, v)", "np.outer(a[:64], a[:64])", "np.dot(a, b)",
    "a.dot(b)", "a @ b", "M @ M.T", "M @ M[0]", "np.inner(a, b)", "np.vdot(a, b)", "np.matmul(M, M.T)", "np.einsum('i,i->', a, b)",
    "np.einsum('ij,kj->ik', M, M)", "np.einsum('ij,j->i', M, M[0])", "np.tensordot(M, M, 2)", "np.trace(M)", "np.diag(M)",
    "np.kron(a[:8], a[:8])", "np.triu(M)", "np.tril(M)", "np.linalg.norm(a)", "np.linalg.norm(M)", "np.linalg.norm(M, axis=1)",
    "np.linalg.inv(Q)", "np.linalg.solve(Q, Q[0])", "np.linalg.det(Q)", "np.linalg.slogdet(Q)", "np.linalg.eigh(Q)",
    "np.linalg.eigvalsh(Q)", "np.linalg.eig(Q)", "np.linalg.svd(Q)", "np.linalg.qr(Q)", "np.linalg.cholesky(Q)", "np.linalg.pinv(Q)",
    "np.linalg.lstsq(Q, Q[0])", "np.linalg.matrix_power(Q, 3)", "rng.random(n)", "rng.standard_normal(n)", "rng.integers(0, 10, n)",
    "rng.normal()", "rng.random()", "rng.uniform(0, 1, n)", "rng.permutation(n)", "rng.choice(a)", "rng.choice(n, 1)", "rng.shuffle(a)",
    "rng.normal(0.0, 1.0, n)", "np.append(a, 1.0)", "np.append(a, b)", "np.concatenate([a, b])", "np.concatenate((a, b))",
    "np.stack([a, b])", "np.vstack([a, b])", "np.hstack([a, b])", "np.column_stack([a, b])", "np.split(a, 1)", "np.array_split(a, 3)",
    "np.insert(a, 0, 1.0)", "np.delete(a, 0)", "np.pad(a, 1)", "np.pad(M, 1, mode='edge')", "np.meshgrid(a[:64], b[:64])",
    "np.ix_(c[:8], c[:8])", "np.broadcast_to(a, (2, n))", "np.expand_dims(a, 0)", "np.squeeze(a[None])", "np.atleast_1d(a)",
    "np.atleast_2d(a)", "np.moveaxis(M, 0, 1)", "np.swapaxes(M, 0, 1)", "M.T", "M.transpose()", "np.transpose(M)", "M.ravel()",
    "np.ravel(M)", "M.flatten()", "M.reshape(-1)", "M.reshape(M.shape)", "np.reshape(M, -1)", "a.copy()", "np.copy(a)", "a.astype(float)",
    "a.astype(int)", "c.astype(float)", "m.astype(float)", "np.zeros(n)", "np.zeros((n, 1))", "np.zeros(n, dtype=int)", "np.ones(n)",
    "np.full(n, 2.0)", "np.empty(n)", "np.arange(n)", "np.arange(0.0, 1.0, 1 / n)", "np.linspace(0, 1, n)", "np.eye(8)",
    "np.zeros_like(a)", "np.ones_like(a)", "np.empty_like(a)", "np.full_like(a, 1.0)", "np.array(L)", "np.asarray(L)",
    "np.array(L, dtype=float)", "np.array([1.0, 2.0, 3.0])", "np.array([a[0], b[0]])", "np.array(a)", "np.asarray(a)", "np.array([a, b])",
    "np.float64(2.0) * a", "np.isin(c, [1, 2])", "np.digitize(a, b[:1])", "np.take(a, c)", "a.take(c)", "np.put(a, 0, 1.5)",
    "np.fill_diagonal(M, 1.5)", "a.fill(1.5)", "np.copyto(a, b)", "np.add.at(a, c, 0.0)", "np.gradient(a2)", "np.convolve(a, b[:3])",
    "np.nan_to_num(a)", "np.nanmean(a)", "np.ndim(a)", "np.shape(a)", "np.size(a)", "np.isscalar(a)", "np.minimum.reduce(a)",
    "np.maximum.accumulate(a)", "np.multiply.outer(a[:64], b[:64])", "np.select([m], [a], 0.0)", "np.divmod(c, 7)", "divmod(c, 7)",
    "np.modf(a)", "np.rint(a)", "a.sum() / n", "a.max() - a.min()", "np.random.rand(n)", "np.random.randint(0, 5)",
    "np.argpartition(a, 0)", "np.partition(a, 0)", "np.lexsort((a, b))", "np.apply_along_axis(sum, 0, v)", "np.fft.fft(a)",
    "np.fft.rfft(a)", "np.real(a)", "np.imag(a)", "a.real", "a.conj()", "np.mod(a, 1.0)", "np.dot(M, M.T)", "np.angle(a)",
    "np.deg2rad(a)", "np.cov(a, b)", "np.corrcoef(a, b)",
)  # fmt: skip


def asked(operation: str, ours: tuple[Any, ...]) -> str:
    """The operation, and that its value is wanted where it is an array: without that only recording would be timed."""
    try:
        found = eval(operation, dict(zip(NAMES.split(", "), ours, strict=True)))
    except SyntaxError:  # a statement
        return operation
    return f"np.realize({operation})" if isinstance(found, lazynp.ndarray) else operation


def loop(operation: str) -> Callable[..., None]:
    """A function that runs an operation ``n`` times."""
    space: dict[str, Any] = {}
    exec(f"def run(number, {NAMES}):\n for _ in range(number):\n  {operation}\n", space)
    found: Callable[..., None] = space["run"]
    return found


NAMES = "np, a, b, c, m, M, i, s, n, Q, v, L, a2, f, rng"


def operands(xp: Any, n: int = 100) -> tuple[Any, ...]:
    """What the operations are of, anew; ``n`` elements."""
    rng = numpy.random.default_rng(0)
    side = math.isqrt(n)
    small = min(max(side, 2), 64)
    a, b, c = rng.uniform(1, 2, n), rng.uniform(0, 1e-9, n), rng.integers(0, n, n)
    matrix, square = rng.uniform(1, 2, (side, side)), rng.uniform(1, 2, (small, small))
    arrays = [xp.array(x) for x in (a, b, c, c % 3 == 0, matrix)]
    others = [xp.array(square @ square.T + small * numpy.eye(small)), xp.array(rng.uniform(1, 2, (max(n // 3, 1), 3)))]
    twice = xp.vectorize(lambda x: x * 2.0)
    at, scalar, longer = n // 2 if n < 100 else 5, numpy.float64(1.0), xp.array([*a, 3.0])
    return (xp, *arrays, at, scalar, n, *others, a.tolist(), longer, twice, xp.random.default_rng(0))


def measure(operation: str, seconds: float, n: int = 100) -> tuple[float, float]:
    """Best nanoseconds of NumPy and of lazynp."""
    theirs, ours = operands(numpy, n), operands(lazynp, n)
    run_theirs, run_ours = loop(operation), loop(asked(operation, ours))
    run_theirs(10, *theirs), run_ours(10, *ours)
    start = time.thread_time()
    run_theirs(20, *theirs)
    number = max(int(min(2e-3, seconds / 10) / max((time.thread_time() - start) / 20, 1e-8)), 3)
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(pairs) < 5:
        times = []
        for run, arguments in ((run_theirs, theirs), (run_ours, ours)):
            start = time.thread_time()
            run(number, *arguments)
            times.append((time.thread_time() - start) / number * 1e9)
        pairs.append((times[0], times[1]))
    return min(x for x, _ in pairs), min(y for _, y in pairs)


def calls(only: str, seconds: float) -> None:
    """Print the table of what is called often: ratios by size."""
    sizes = "".join(f"{n:>8}" for n in SIZES)
    print(f"{'operation':<42}{'NumPy, 10':>12}{sizes}")
    over = 0
    ratios = []
    for operation in CALLS:
        if only not in operation:
            continue
        row = []
        for n in SIZES:
            try:
                row.append(measure(operation, seconds, n))
            except (ValueError, IndexError, ZeroDivisionError):  # not for so few elements
                row.append((math.nan, math.nan))
        found = [ours / theirs for theirs, ours in row]
        missed = any(ratio > CALLS_LIMIT for ratio in found)
        over += missed
        ratios += [ratio for ratio in found if ratio == ratio]
        ratios_of_row = "".join(f"{ratio:8.2f}" for ratio in found)
        print(f"{operation:<42}{row[1][0]:>9.0f} ns{ratios_of_row}{'  missed' if missed else ''}", flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}; above {CALLS_LIMIT} somewhere: {over} of {len(CALLS)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Operations on small arrays, NumPy and lazynp in turn.")
    parser.add_argument("--only", default="", metavar="TEXT", help="operations that contain this")
    parser.add_argument("--seconds", type=float, default=0.3, help="for one operation")
    parser.add_argument("--calls", action="store_true", help="what is called often, over several sizes")
    options = parser.parse_args()
    print(f"core: {'native' if core.native else core.reason}")
    if options.calls:
        calls(options.only, options.seconds)
        return
    print(f"{'operation':<26}{'NumPy':>9}{'lazynp':>9}  {'ratio':>5}  target")
    ratios = []
    for operation, target in OPERATIONS.items():
        if options.only in operation:
            theirs, ours = measure(operation, options.seconds)
            ratio = ours / theirs
            ratios.append(ratio)
            print(f"{operation:<26}{theirs:>6.0f} ns{ours:>6.0f} ns  {ratio:5.2f}  {target:.2f}{'' if ratio <= target else ' missed'}")
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
