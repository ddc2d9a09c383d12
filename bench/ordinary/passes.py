"""Large arrays in one call: sums at positions, contractions of windows, products of expressions, complex numbers."""

import numpy as np

from bench.ordinary import program


@program(100_000, 1_000_000, 8_000_000, tiny=100)
def positions(n):
    """Weights summed at positions that repeat."""
    rng = np.random.default_rng(0)
    at, weights = rng.integers(0, 1000, n), rng.random(n)

    def run():
        total, most = np.zeros(1000), np.zeros(1000)
        np.add.at(total, at, weights)
        np.maximum.at(most, at, weights)
        return total, most

    return run


@program(150, 900, 2000, tiny=12, tolerance=1e-12, reason="sums in another order")
def windows(n):
    """A filter of an image as a contraction of its windows."""
    rng = np.random.default_rng(0)
    image, kernel = rng.random((n, n)), rng.random((7, 7))

    def run():
        found = np.lib.stride_tricks.sliding_window_view(image, (7, 7))
        return (np.einsum("ijkl,kl->ij", found, kernel),)

    return run


@program(500, 1500, 3000, tiny=9, tolerance=1e-12, reason="products of matrices are a library's")
def combination(n):
    """Two scaled matrices times a vector."""
    rng = np.random.default_rng(0)
    a, b, x = rng.random((n, n)), rng.random((n, n)), rng.random(n)

    def run():
        return (1.5 * a @ x + 1.2 * b @ x,)

    return run


@program(500_000, 1_500_000, 6_000_000, tiny=300)
def recurrence(n):
    """A complex recurrence."""
    rng = np.random.default_rng(0)
    c = rng.random(n) / 8 + rng.random(n) / 8 * 1j

    def run():
        z = c
        for _ in range(3):
            z = z * z + c
        return (z,)

    return run
