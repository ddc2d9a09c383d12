"""Textbook linear algebra, a row or a column at a time."""

import numpy as np

from bench.ordinary import program


@program(120, 550, 1500, tiny=5, tolerance=1e-12, reason="products of matrices in another order")
def cholesky(n):
    """Left-looking, column by column."""
    rng = np.random.default_rng(0)
    m = rng.standard_normal((n, n))
    a = m @ m.T + n * np.eye(n)

    def run():
        lower = np.zeros((n, n))
        for j in range(n):
            lower[j, j] = np.sqrt(a[j, j] - np.dot(lower[j, :j], lower[j, :j]))
            lower[j + 1 :, j] = (a[j + 1 :, j] - lower[j + 1 :, :j] @ lower[j, :j]) / lower[j, j]
        return lower

    return run


@program(65, 240, 600, tiny=5)
def lu(n):
    """Gaussian elimination in place with partial pivoting."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((n, n))

    def run():
        a = matrix.copy()
        order = np.arange(n)
        for k in range(n - 1):
            p = k + np.argmax(np.abs(a[k:, k]))
            if p != k:
                a[[k, p]] = a[[p, k]]
                order[[k, p]] = order[[p, k]]
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return a, order

    return run


@program(64, 220, 470, tiny=5, tolerance=1e-11, reason="norms and products in another order")
def gram_schmidt(n):
    """QR by the modified Gram-Schmidt process."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((n, n)) + n**0.5 * np.eye(n)

    def run():
        a = matrix.copy()
        q = np.zeros((n, n))
        r = np.zeros((n, n))
        for k in range(n):
            r[k, k] = np.linalg.norm(a[:, k])
            q[:, k] = a[:, k] / r[k, k]
            r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
            a[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
        return q, r

    return run


@program(350, 2900, 33000, tiny=6, tolerance=1e-12, reason="products in another order")
def substitution(n):
    """L U x = b with a banded matrix kept as rows: down, then up."""
    rng = np.random.default_rng(0)
    width = min(n, 300)
    band = rng.standard_normal((n, width)) / width
    b = rng.standard_normal(n)

    def run():
        y = np.zeros(n)
        for i in range(n):
            k = min(i, width)
            y[i] = b[i] - band[i, :k] @ y[i - k : i]
        x = np.zeros(n)
        for i in range(n - 1, -1, -1):
            k = min(n - 1 - i, width)
            x[i] = (y[i] - np.dot(band[i, :k], x[i + 1 : i + 1 + k])) / 2.0
        return x, np.abs(x).max()

    return run
