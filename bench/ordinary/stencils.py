"""Grids that are overwritten step by step, each element from its neighbours."""

import numpy as np

from bench.ordinary import program


@program(55, 140, 240, tiny=6)
def heat(n):
    """A plate with one hot edge, n explicit steps."""
    start = np.zeros((n, n))
    start[0, :] = 1.0

    def run():
        u = start.copy()
        for _ in range(n):
            u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        return u

    return run


@program(140, 1300, 6700, tiny=8)
def string(n):
    """A plucked string: the wave equation by leapfrog, three arrays that take turns, n steps."""
    x = np.linspace(0, 1, n)
    plucked = np.where(x < 0.3, x / 0.3, (1 - x) / 0.7)

    def run():
        before, u = plucked.copy(), plucked.copy()
        after = np.zeros(n)
        for _ in range(n):
            after[1:-1] = 2 * u[1:-1] - before[1:-1] + 0.81 * (u[2:] - 2 * u[1:-1] + u[:-2])
            after[0] = 0
            after[-1] = 0
            before, u, after = u, after, before
        return u

    return run


@program(35, 100, 250, tiny=7)
def life(n):
    """Conway's game of life, n turns."""
    rng = np.random.default_rng(0)
    start = np.zeros((n + 2, n + 2), dtype=int)
    start[1:-1, 1:-1] = rng.integers(0, 2, (n, n))

    def run():
        z = start.copy()
        for _ in range(n):
            near = (
                z[:-2, :-2] + z[:-2, 1:-1] + z[:-2, 2:]
                + z[1:-1, :-2] + z[1:-1, 2:]
                + z[2:, :-2] + z[2:, 1:-1] + z[2:, 2:]
            )  # fmt: skip
            birth = (near == 3) & (z[1:-1, 1:-1] == 0)
            survive = ((near == 2) | (near == 3)) & (z[1:-1, 1:-1] == 1)
            z[...] = 0
            z[1:-1, 1:-1][birth | survive] = 1
        return z, z.sum()

    return run


@program(21, 87, 180, tiny=6)
def gray_scott(n):
    """Reaction and diffusion of two substances, with periodic borders copied at each of n steps."""
    u0 = np.ones((n + 2, n + 2))
    v0 = np.zeros((n + 2, n + 2))
    middle = slice(n // 2 - n // 8, n // 2 + n // 8 + 1)
    u0[middle, middle] = 0.5
    v0[middle, middle] = 0.25

    def laplacian(z):
        return z[:-2, 1:-1] + z[1:-1, :-2] - 4 * z[1:-1, 1:-1] + z[1:-1, 2:] + z[2:, 1:-1]

    def wrap(z):
        z[0, :] = z[-2, :]
        z[-1, :] = z[1, :]
        z[:, 0] = z[:, -2]
        z[:, -1] = z[:, 1]

    def run():
        big_u, big_v = u0.copy(), v0.copy()
        u, v = big_u[1:-1, 1:-1], big_v[1:-1, 1:-1]
        for _ in range(n):
            lu, lv = laplacian(big_u), laplacian(big_v)
            uvv = u * v * v
            u += 0.16 * lu - uvv + 0.035 * (1 - u)
            v += 0.08 * lv + uvv - (0.035 + 0.065) * v
            wrap(big_u)
            wrap(big_v)
        return u, v

    return run
