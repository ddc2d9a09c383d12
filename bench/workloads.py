"""The workloads: one function each, written once against a namespace ``xp`` and run through every library.

In: a random generator and a size.  Out: NumPy arrays, and a function of them that returns an array or a tuple of arrays.  Promise:
the code is what a NumPy user would write; nothing in it depends on which library runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from math import pi, sqrt
from typing import Any

import numpy as np

Array = Any  # of whichever library
Arrays = tuple[np.ndarray[Any, Any], ...]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Workload:
    """One row of the benchmark.

    Attributes
    ----------
    name : str
        What is computed.
    make : callable
        ``make(rng, large)`` gives the inputs; about a thousand elements where not ``large``.
    bind : callable
        ``bind(xp)`` gives the function for one library.
    target : float or None
        Least speed-up over NumPy on the large inputs, warm.
    numexpr : str or None
        The same for numexpr, where it can be said in its language; its variables are ``a``, ``b``, ``c`` in the order of the inputs.
    """

    name: str
    make: Callable[[np.random.Generator, bool], Arrays]
    bind: Callable[[Any], Function]
    target: float | None = None
    numexpr: str | None = None


def vectors(
    count: int, large: int, *, low: float = 0.0, high: float = 1.0, dtype: str = "float64"
) -> Callable[[np.random.Generator, bool], Arrays]:
    def make(rng: np.random.Generator, is_large: bool) -> Arrays:
        size = large if is_large else 1000
        return tuple(rng.uniform(low, high, size).astype(dtype) for _ in range(count))

    return make


def matrices(large: tuple[int, int], small: tuple[int, int] = (32, 32), count: int = 1) -> Callable[[np.random.Generator, bool], Arrays]:
    def make(rng: np.random.Generator, is_large: bool) -> Arrays:
        return tuple(rng.standard_normal(large if is_large else small) for _ in range(count))

    return make


def chain(xp: Any) -> Function:
    def run(a: Array, b: Array) -> Array:
        return xp.exp(-xp.sqrt(a * a + b * b)) * xp.sin(a)

    return run


def black_scholes(xp: Any) -> Function:
    rate, volatility = 0.02, 0.3

    def run(price: Array, strike: Array, years: Array) -> tuple[Array, Array]:
        def normal_cdf(x: Array) -> Array:
            # Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17
            k = 1.0 / (1.0 + 0.2316419 * xp.abs(x))
            poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
            tail = xp.exp(-0.5 * x * x) * poly * 0.3989422804014327
            return xp.where(x > 0, 1.0 - tail, tail)

        root = xp.sqrt(years)
        d1 = (xp.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * root)
        d2 = d1 - volatility * root
        cdf1, cdf2 = normal_cdf(d1), normal_cdf(d2)
        discounted = strike * xp.exp(-rate * years)
        call = price * cdf1 - discounted * cdf2
        put = discounted * (1.0 - cdf2) - price * (1.0 - cdf1)
        return call, put

    return run


def options(rng: np.random.Generator, large: bool) -> Arrays:
    size = 4_000_000 if large else 1000
    return rng.uniform(10, 50, size), rng.uniform(10, 50, size), rng.uniform(0.1, 2, size)


def softmax(xp: Any) -> Function:
    def run(x: Array) -> Array:
        powers = xp.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return run


def layer_norm(xp: Any) -> Function:
    def run(x: Array, scale: Array, shift: Array) -> Array:
        mean = x.mean(axis=1, keepdims=True)
        variance = x.var(axis=1, keepdims=True)
        return (x - mean) / xp.sqrt(variance + 1e-5) * scale + shift

    return run


def layers(rng: np.random.Generator, large: bool) -> Arrays:
    rows, columns = (4096, 2048) if large else (32, 32)
    return rng.standard_normal((rows, columns)), rng.standard_normal(columns), rng.standard_normal(columns)


def pairwise(xp: Any) -> Function:
    def run(a: Array, b: Array) -> Array:
        return xp.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))

    return run


def points(rng: np.random.Generator, large: bool) -> Arrays:
    count, dimensions = (2048, 8) if large else (16, 3)
    return rng.standard_normal((count, dimensions)), rng.standard_normal((count, dimensions))


def statistics(xp: Any) -> Function:
    def run(x: Array) -> tuple[Array, ...]:
        return x.mean(), x.std(), x.min(), x.max()

    return run


def transposed(xp: Any) -> Function:
    def run(a: Array, b: Array) -> Array:
        return a.T + 2 * b

    return run


def squares(xp: Any) -> Function:
    def run(x: Array) -> Array:
        return (x**2).sum(axis=0)

    return run


def masked_mean(xp: Any) -> Function:
    def run(x: Array) -> Array:
        mask = x > 0
        return xp.where(mask, x, 0.0).sum() / mask.sum()

    return run


def masked_mean_where(xp: Any) -> Function:
    def run(x: Array) -> Array:
        return xp.mean(x, where=x > 0)

    return run


def horner(xp: Any) -> Function:
    coefficients = [(-1.0) ** k / (k + 1) for k in range(25)]

    def run(x: Array) -> Array:
        value = coefficients[24] * x + coefficients[23]
        for k in range(22, -1, -1):
            value = value * x + coefficients[k]
        return value

    return run


def gelu(xp: Any) -> Function:
    factor = sqrt(2 / pi)

    def run(x: Array) -> Array:
        return 0.5 * x * (1 + xp.tanh(factor * (x + 0.044715 * x * x * x)))

    return run


def special(xp: Any) -> Any:
    """The special functions that go with a namespace."""
    name = {"lazynp": "lazynp.special", "jax.numpy": "jax.scipy.special"}.get(xp.__name__, "scipy.special")
    return import_module(name)


def exact_gelu(xp: Any) -> Function:
    erf = special(xp).erf

    def run(x: Array) -> Array:
        return 0.5 * x * (1 + erf(x * sqrt(0.5)))

    return run


def likelihood(xp: Any) -> Function:
    functions = special(xp)
    entr, expit, gammaln, ndtr = functions.entr, functions.expit, functions.gammaln, functions.ndtr

    def run(x: Array, y: Array) -> Array:
        share = expit(4 * x - 2)
        return (entr(share) + gammaln(y + 1) + y * xp.log(ndtr(x))).sum()

    return run


def logsumexp(xp: Any) -> Function:
    of = special(xp).logsumexp

    def run(x: Array) -> Array:
        return of(x, axis=1)

    return run


def mandelbrot(xp: Any) -> Function:
    def run(real: Array, imag: Array) -> Array:
        x, y = real, imag
        count = xp.zeros_like(real)
        for _ in range(20):
            xx, yy = x * x, y * y
            inside = xx + yy <= 4
            count = count + inside
            y = xp.where(inside, 2 * x * y + imag, y)
            x = xp.where(inside, xx - yy + real, x)
        return count

    return run


def plane(rng: np.random.Generator, large: bool) -> Arrays:
    side = 2048 if large else 32
    real, imag = np.meshgrid(np.linspace(-2, 0.6, side), np.linspace(-1.3, 1.3, side))
    return real, imag


# Loops that write: each turn depends on the one before.


def heat(xp: Any) -> Function:
    def run(start: Array) -> Array:
        u = start.copy()
        for _ in range(100):
            u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u

    return run


def heat_with_borders(xp: Any) -> Function:
    def run(start: Array) -> Array:
        u = start.copy()
        for _ in range(100):
            old = u.copy()
            around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
            u[1:-1, 1:-1] = old[1:-1, 1:-1] + 0.1 * (around - 4 * old[1:-1, 1:-1])
            u[0, :] = 1.0
            u[-1, :] = 0.0
            u[:, 0] = u[:, 1]
            u[:, -1] = u[:, -2]
        return u

    return run


def game_of_life(xp: Any) -> Function:
    def run(start: Array) -> Array:
        grid = start.astype(xp.uint8)
        for _ in range(10):
            near = xp.zeros_like(grid)
            near[1:-1, 1:-1] = (
                grid[:-2, :-2] + grid[:-2, 1:-1] + grid[:-2, 2:] + grid[1:-1, :-2]
                + grid[1:-1, 2:] + grid[2:, :-2] + grid[2:, 1:-1] + grid[2:, 2:]
            )  # fmt: skip
            grid = ((near == 3) | ((grid == 1) & (near == 2))).astype(xp.uint8)
        return grid

    return run


def cells(rng: np.random.Generator, large: bool) -> Arrays:
    side = 2000 if large else 32
    return ((rng.uniform(size=(side, side)) < 0.3).astype(np.float64),)


def k_means(xp: Any) -> Function:
    def run(x: Array) -> Array:
        centres = x[:10].copy()
        for _ in range(10):
            labels = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(-1).argmin(1)
            for k in range(10):
                centres[k] = x[labels == k].mean(axis=0)
        return centres

    return run


def elements(xp: Any) -> Function:
    def run(x: Array) -> Array:
        y = x.copy()
        for i in range(1, len(x)):
            y[i] = 0.5 * y[i - 1] + x[i]
        return y

    return run


def _horner_text() -> str:
    text = f"({1 / 25!r} * a + {-1 / 24!r})"
    for k in range(22, -1, -1):
        text = f"({text} * a + {(-1.0) ** k / (k + 1)!r})"
    return text


WORKLOADS = (
    Workload("exp/sqrt/sin chain", vectors(2, 16_777_216), chain, 8, "exp(-sqrt(a * a + b * b)) * sin(a)"),
    Workload("Black-Scholes", options, black_scholes, 8),
    Workload("softmax over rows", matrices((4096, 2048)), softmax, 5),
    Workload("layer norm", layers, layer_norm, 5),
    Workload("pairwise distances", points, pairwise, 8),
    Workload("mean, std, min and max", vectors(1, 16_777_216), statistics, 5),
    Workload("a.T + 2*b", matrices((4000, 4000), count=2), transposed, 2),
    Workload("sum of squares, axis 0", matrices((4096, 2048)), squares, 2, "sum(a ** 2, axis=0)"),
    Workload(
        "masked mean, where()",
        vectors(1, 16_777_216, low=-1.0),
        masked_mean,
        10,
        "sum(where(a > 0, a, 0)) / sum(where(a > 0, 1, 0))",
    ),
    Workload("masked mean, where=", vectors(1, 16_777_216, low=-1.0), masked_mean_where),
    Workload("Horner, degree 24", vectors(1, 8_388_608, low=-1.0), horner, 15, _horner_text()),
    Workload(
        "gelu, float32",
        vectors(1, 16_777_216, low=-3.0, high=3.0, dtype="float32"),
        gelu,
        4,
        "0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))",
    ),
    Workload("gelu with erf", vectors(1, 16_777_216, low=-3.0, high=3.0), exact_gelu, 6),
    Workload("entropies and likelihoods", vectors(2, 4_194_304), likelihood, 2),
    Workload("logsumexp over rows", matrices((4096, 2048)), logsumexp, 3),
    Workload("Mandelbrot, 20 steps", plane, mandelbrot, 6),
    Workload("heat, 100 steps in place", matrices((1000, 1000)), heat, 3),
    Workload("heat with borders", matrices((1000, 1000)), heat_with_borders, 3),
    Workload("Game of Life, 10 steps", cells, game_of_life, 3),
    Workload("k-means, 10 turns", matrices((100_000, 8), (100, 8)), k_means, 2),
    Workload("loop over elements", vectors(1, 100_000), elements, 0.2),
)
