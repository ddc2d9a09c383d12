"""Loops over one axis in which each turn needs the turn before; the other axis is done at once."""

import numpy as np

from bench.ordinary import program


@program(35, 130, 330, tiny=6)
def gauss_seidel(n):
    """Sweeps over the rows of a grid, each row from the new row above it."""
    rng = np.random.default_rng(0)
    start = rng.random((n, n))

    def run():
        u = start.copy()
        for _ in range(n // 5 + 1):
            for i in range(1, n - 1):
                u[i, 1:-1] = 0.25 * (u[i - 1, 1:-1] + u[i + 1, 1:-1] + u[i, :-2] + u[i, 2:])
        return u

    return run


@program(290, 1700, 6500, tiny=6)
def thomas(n):
    """Tridiagonal systems of n equations, n // 4 of them side by side: elimination down, substitution up."""
    rng = np.random.default_rng(0)
    lower = rng.random(n)
    upper = rng.random(n)
    diagonal = 3 + rng.random(n)
    rhs = rng.standard_normal((n, n // 4))

    def run():
        c = np.zeros(n)
        d = np.zeros_like(rhs)
        c[0] = upper[0] / diagonal[0]
        d[0] = rhs[0] / diagonal[0]
        for i in range(1, n):
            pivot = diagonal[i] - lower[i] * c[i - 1]
            c[i] = upper[i] / pivot
            d[i] = (rhs[i] - lower[i] * d[i - 1]) / pivot
        for i in range(n - 2, -1, -1):
            d[i] -= c[i] * d[i + 1]
        return d

    return run


@program(70, 590, 1800, tiny=8)
def recursive_smoothing(n):
    """A recursive filter over an image, along its columns there and back."""
    rng = np.random.default_rng(0)
    image = rng.random((n, n))
    a, b1, b2 = 0.08, 1.4, -0.48

    def run():
        forth = np.zeros_like(image)
        back = np.zeros_like(image)
        forth[:, 0] = a * image[:, 0]
        forth[:, 1] = a * image[:, 1] + b1 * forth[:, 0]
        for j in range(2, n):
            forth[:, j] = a * image[:, j] + b1 * forth[:, j - 1] + b2 * forth[:, j - 2]
        back[:, -1] = a * image[:, -1]
        back[:, -2] = a * image[:, -2] + b1 * back[:, -1]
        for j in range(n - 3, -1, -1):
            back[:, j] = a * image[:, j] + b1 * back[:, j + 1] + b2 * back[:, j + 2]
        return 0.5 * (forth + back)

    return run


@program(200, 1200, 5900, tiny=9)
def holt_winters(n):
    """Exponential smoothing of n series with a trend and a season of 7, n // 2 + 14 days."""
    rng = np.random.default_rng(0)
    days = n // 2 + 14
    demand = 20 + rng.random((days, n)).cumsum(axis=0) + 3 * np.sin(2 * np.pi * np.arange(days) / 7)[:, None]
    alpha, beta, gamma = 0.3, 0.05, 0.2

    def run():
        level = demand[:7].mean(axis=0)
        trend = (demand[7:14].mean(axis=0) - level) / 7
        season = demand[:7] - level
        error = np.zeros(n)
        for t in range(7, days):
            s = season[t % 7]
            error += np.abs(demand[t] - (level + trend + s))
            last = level
            level = alpha * (demand[t] - s) + (1 - alpha) * (level + trend)
            trend = beta * (level - last) + (1 - beta) * trend
            season[t % 7] = gamma * (demand[t] - level) + (1 - gamma) * s
        return level, trend, season, error / (days - 7)

    return run
