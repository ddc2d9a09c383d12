"""Named graphs and what the scheduler is expected to make of them.

Every number was predicted from the text of the program and the cost model before it was measured.  ``loads`` are the bytes of the distinct
inputs, unless ``because`` says why not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

import lazynp as np


@dataclass(frozen=True)
class Graph:
    name: str
    build: Callable[[], Any]
    kernels: int
    library: int
    loads: int
    stores: int
    scratch: int = 0
    because: str = ""


def values(*shape: int, dtype: str = "f8") -> Any:
    """An array that exists; its values do not matter."""
    size = int(numpy.prod(shape))
    return np.asarray((numpy.arange(size) % 97 + 1).astype(dtype).reshape(shape))


def vector() -> Any:
    return values(1000)  # 8000 bytes


def matrix() -> Any:
    return values(50, 200)  # 80000 bytes, 50 rows of 1600


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax() -> Any:
    x = matrix()
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def layer_norm() -> Any:
    x = matrix()
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * values(200) + values(200)


def mean_min_max(axis: int | None) -> Any:
    x = vector() if axis is None else matrix()
    return [x.mean(axis=axis), x.min(axis=axis), x.max(axis=axis)]


def mean_std_min_max() -> Any:
    x = matrix()
    return [x.mean(), x.std(), x.min(), x.max()]


def three_outputs() -> Any:
    x = vector() * values(1000)
    return [x, x + 1, x * 2]


def stencil(u: Any) -> Any:
    return u[1:-1] + 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])


def five_points() -> Any:
    u = matrix()
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) - u[1:-1, 1:-1]


def stencils(count: int) -> Any:
    u = values(100_000)
    for _ in range(count):
        u = stencil(u)
    return u


def diamond() -> Any:
    x = vector()
    a = x * x
    return (a + 1) * (a - 1)


def matmul_bias_relu() -> Any:
    return np.maximum(values(64, 32) @ values(32, 48) + values(48), 0)


def attention() -> Any:
    q, k, v = values(40, 16), values(60, 16), values(60, 16)
    return softmax(q @ k.T / 4.0, 1) @ v


def window_of_padded() -> Any:
    p = np.pad(vector(), 1)
    return p[:-2] + p[1:-1] + p[2:]


def pairwise_distances() -> Any:
    a, b = values(50, 3), values(70, 3)
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


def ranks() -> Any:
    x = matrix()
    return [x * 2, x.sum(axis=1)]


def cut_ranks() -> Any:
    x = matrix()
    return [x * 2, x.sum(axis=1), x.sum()]


def rows_and_total() -> Any:
    x = matrix()
    return [x.min(axis=1), x.sum()]


def masked_mean() -> Any:
    x, m = vector(), values(1000, dtype="?")
    return np.where(m, x, 0.0).sum() / m.sum()


def horner() -> Any:
    x = vector()
    total = x * 0.5
    for k in range(24):
        total = total * x + 1.0 / (k + 1)
    return total


def mandelbrot() -> Any:
    re, im = values(1000), values(1000)
    x = y = np.zeros(1000)
    count = np.zeros(1000)
    for _ in range(5):
        inside = x * x + y * y < 4
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2 * x * y + im, y)
        count = count + inside
    return count


def standardised_columns() -> Any:
    x = matrix()
    return (x - x.mean(axis=0)) / x.std(axis=0)


def any_and_all() -> Any:
    x = vector()
    return [(x > 0).any(), (x < 0).all()]


def exponentials_and_sum() -> Any:
    x = vector()
    return [np.exp(x), x.sum()]


def unit_rows() -> Any:
    x = matrix()
    return x / np.sqrt((x * x).sum(axis=1, keepdims=True))


def gelu() -> Any:
    x = values(1000, dtype="f4")
    return 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


def reversed_plus() -> Any:
    x = vector()
    return x + x[::-1]


def centred() -> Any:
    x = vector()
    return x - x.mean()


def added_squares() -> Any:
    x = vector()
    return [(x * x).sum(), (x * x).mean()]


def interior() -> Any:
    u = matrix()
    u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return u


def written_rows(first: int) -> Any:
    u = matrix() * 2
    u[first:] = values(50 - first, 200) + 1
    return u


def written_into_zeros() -> Any:
    z = np.zeros(1000)
    z[3:-3] = np.exp(values(994))
    return z * 2


def life_step() -> Any:
    grid = values(50, 200, dtype="u1")
    near = np.zeros_like(grid)
    around = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    near[1:-1, 1:-1] = sum([grid[i : i + 48, j : j + 198] for i, j in around])
    return ((near == 3) | ((grid == 1) & (near == 2))).astype("u1")


def sums_into_zeros() -> Any:
    z = np.zeros(60)
    z[5:55] = matrix().sum(axis=1)
    return z


BORDER = 80000 - 48 * 198 * 8
STENCILS = sum(8 * (100_000 - 2 * k) for k in range(10))
GRAPHS = [
    Graph("elementwise chain", lambda: np.exp(vector() * 2 + 1), 1, 0, 8000, 8000),
    Graph("three inputs", lambda: vector() * values(1000) + values(1000), 1, 0, 24000, 8000),
    Graph("Horner's rule of degree 24", horner, 1, 0, 8000, 8000),
    Graph("gelu in float32", gelu, 1, 0, 4000, 4000),
    Graph("Mandelbrot, five steps", mandelbrot, 1, 0, 16000, 8000),
    Graph("diamond", diamond, 1, 0, 8000, 8000),
    Graph("three outputs over one range", three_outputs, 1, 0, 16000, 24000),
    Graph("outputs with nothing in common", lambda: [vector() + 1, vector() + 1], 2, 0, 16000, 16000),
    Graph("a map and a reduction of one array", exponentials_and_sum, 1, 0, 8000, 8008),
    Graph("conversion to a wider type", lambda: values(1000, dtype="i1") + 0.5, 1, 0, 1000, 8000),
    # Movement
    Graph("movement only", lambda: matrix()[::-1].T[::2].reshape(-1), 1, 0, 40000, 40000, because="every second column is read"),
    Graph("movement under arithmetic", lambda: matrix().T[::-1] + values(200, 50), 1, 0, 160_000, 80000),
    Graph("transposed plus", lambda: values(50, 200).T + 2 * values(200, 50), 1, 0, 160_000, 80000),
    Graph("forwards plus backwards", reversed_plus, 1, 0, 8000, 8000),
    Graph("row plus column", lambda: values(200) + values(50, 1), 1, 0, 2000, 80000),
    Graph("outer product", lambda: values(50)[:, None] * values(200), 1, 0, 2000, 80000),
    Graph("zero border", lambda: np.pad(vector(), 5), 1, 0, 8000, 8080),
    Graph("border around a computed value", lambda: np.pad(np.exp(vector()), 3), 1, 0, 8000, 8048),
    Graph("window over a border", window_of_padded, 1, 0, 8000, 8000),
    Graph("repeated edges", lambda: np.pad(vector(), 2, mode="edge"), 1, 0, 8000, 8032),
    Graph("concatenation of two computed parts", lambda: np.concatenate([vector() + 1, values(1000) * 2]), 1, 0, 16000, 16000),
    Graph("stack", lambda: np.stack([vector() + 1, values(1000), values(1000) * 2]), 1, 0, 24000, 24000),
    # Stencils
    Graph("stencil step", lambda: stencil(vector()), 1, 0, 8000, 7984),
    Graph("five-point stencil", five_points, 1, 0, 80000, 48 * 198 * 8),
    Graph("ten stencil steps", lambda: stencils(10), 10, 0, STENCILS, STENCILS + 8 * (100_000 - 20) - 8 * 100_000,
          because="inlined, step k would be computed 3**k times"),
    # Writes
    Graph("stencil step written to the interior", interior, 1, 0, 80000 + BORDER, 48 * 198 * 8 + BORDER,
          because="neighbours are read, so the border is copied to where the interior is written"),
    Graph("written into zeros", written_into_zeros, 1, 0, 994 * 8, 8000),
    Graph("Game of Life step", life_step, 1, 0, 10000, 10000),
    Graph("sums written into zeros", sums_into_zeros, 1, 1, 80000 + 400, 400 + 480,
          because="nothing is reduced under a padding condition, and small writes are library calls"),
    Graph("rows of a computed array", lambda: written_rows(20), 2, 0, 80000 + 48000, 80000 + 48000,
          because="the rows that are not written stay where they are"),
    Graph("one row of a computed array", lambda: written_rows(49), 2, 1, 81600 + 81600, 81600 + 80000,
          because="small writes are library calls"),
    # Reductions
    Graph("sum of a small type", lambda: values(1000, dtype="i1").sum(), 1, 0, 1000, 8),
    Graph("sum and mean of one square", added_squares, 1, 0, 8000, 16),
    Graph("any and all", any_and_all, 1, 0, 8000, 2),
    Graph("mean, min and max", lambda: mean_min_max(None), 1, 0, 8000, 24),
    Graph("mean, min and max of rows", lambda: mean_min_max(1), 1, 0, 80000, 1200),
    Graph("mean, min and max of columns", lambda: mean_min_max(0), 1, 0, 80000, 4800),
    Graph("mean, std, min and max", mean_std_min_max, 1, 0, 160_000, 32, because="std needs the mean first"),
    Graph("variance", lambda: vector().var(), 1, 0, 16000, 8, because="the mean is needed first"),
    Graph("variance of rows", lambda: matrix().var(axis=1), 1, 0, 160_000, 400, because="the mean is needed first"),
    Graph("variance of columns", lambda: matrix().var(axis=0), 1, 0, 160_000, 1600, because="the mean is needed first"),
    Graph("sum of squares of columns", lambda: (matrix() ** 2).sum(axis=0), 1, 0, 80000, 1600),
    Graph("masked mean", masked_mean, 1, 0, 9000, 8),
    Graph("centred by the mean", centred, 1, 0, 16000, 8000, because="the mean is needed first"),
    Graph("rows of unit length", unit_rows, 1, 0, 160_000, 80000, because="a row's length is needed first"),
    Graph("sum of a broadcast", lambda: np.broadcast_to(values(200), (50, 200)).sum(axis=0), 1, 0, 1600, 1600),
    Graph("grey value of three channels", lambda: (values(20, 30, 3) * values(3)).sum(axis=-1), 1, 0, 14424, 4800),
    Graph("pairwise distances", pairwise_distances, 1, 0, 1200 + 1680, 28000),
    Graph("softmax of rows", lambda: softmax(matrix(), 1), 1, 0, 160_000, 80000, 1600,
          because="the maximum is needed first; the exponentials of a row stay in scratch"),
    Graph("softmax of the last of three axes", lambda: softmax(values(4, 5, 200), 2), 1, 0, 64000, 32000, 1600,
          because="the maximum is needed first; the exponentials of a row stay in scratch"),
    Graph("softmax of columns", lambda: softmax(matrix(), 0), 4, 0, 80000 + 81600 + 80000 + 81600, 163_200,
          because="columns are reduced in tiles of their own, and the exponentials are dear enough to be stored"),
    Graph("log of softmax", log_softmax, 1, 0, 240_000, 80000, because="maximum, sum and result follow one another"),
    Graph("layer norm", layer_norm, 1, 0, 243_200, 80000, because="mean, variance and result follow one another"),
    Graph("standardised columns", standardised_columns, 2, 0, 243_200, 83200,
          because="mean and deviation of columns are known after two passes over all rows"),
    Graph("outputs of two ranks", ranks, 1, 0, 80000, 80400),
    Graph("outputs of three ranks", cut_ranks, 2, 0, 160_000, 80408, because="the chunks of the total would cut the rows"),
    Graph("rows beside a total", rows_and_total, 2, 0, 160_000, 408, because="the chunks of the total would cut the rows"),
    # What is stored rather than repeated
    Graph("a dear value broadcast over rows", lambda: np.exp(values(200)) * matrix(), 2, 0, 1600 + 81600, 81600,
          because="200 exponentials are stored, not computed 50 times each"),
    Graph("a dear value broadcast over columns", lambda: np.exp(values(50))[:, None] * matrix(), 1, 0, 80400, 80000),
    Graph("a cheap value broadcast over rows", lambda: (values(200) + 1) * matrix(), 1, 0, 81600, 80000),
    Graph("a fence", lambda: (vector() + 1).contiguous() * 2, 2, 0, 16000, 16000, because="contiguous() was asked for"),
    # Constants and nothing
    Graph("zeros plus one", lambda: np.zeros(1000) + 1, 1, 0, 0, 8000),
    Graph("multiples", lambda: np.arange(1000) * 2.0, 1, 0, 0, 8000),
    Graph("sum of nothing", lambda: np.zeros((0, 5)).sum(axis=0), 1, 0, 0, 40),
    # Gathers and libraries
    Graph("gather then reduce", lambda: vector()[values(500, dtype="i8")].sum(), 1, 0, 8000, 8,
          because="500 elements are gathered"),
    Graph("mean of gathered rows", lambda: matrix()[values(30, dtype="i8") % 50].mean(axis=1), 1, 0, 240 + 48000, 240,
          because="30 rows are gathered"),
    Graph("matmul, bias, relu", matmul_bias_relu, 1, 1, 16384 + 12288 + 24576 + 384, 24576 * 2,
          because="the product goes through memory"),
    Graph("attention", attention, 1, 2, 5120 + 7680 + 2 * 19200 + 19200 + 7680, 2 * 19200 + 5120, 480,
          because="both products go through memory"),
    Graph("running sum", lambda: np.cumsum(vector()), 0, 1, 8000, 8000),
    Graph("running sum of a computed value", lambda: np.cumsum(np.exp(vector())) * 2, 2, 1, 24000, 24000,
          because="the running sum is a library call"),
    Graph("differences of sorted values", lambda: np.diff(np.sort(vector())), 1, 1, 16000, 8000 + 7992,
          because="sorting is a library call"),
]  # fmt: skip
