"""Large arrays, an element, a row or a chunk at a time."""

import numpy as np

from bench.ordinary import program


@program(400, 1500, 4000, tiny=9)
def diagonal(n):
    """A function of elements of a matrix, read one by one."""
    a = np.random.default_rng(0).random((n, n))

    def run():
        total = 0.0
        for i in range(n):
            total += np.tanh(a[i, i])
        return total, a[0, 0]

    return run


@program(100_000, 700_000, 4_000_000, tiny=600)
def flat(n):
    """Elements in order, of an iterator, of views and of rows."""
    a = np.arange(n).reshape(-1, 100)

    def run():
        total = 0
        for i, value in enumerate(a.flat):
            total += value
            if i == 500:
                break
        for i in range(500):
            total += a.flat[i] + a.ravel()[i] + a.reshape(-1)[i] + a.T[i % 100, 0]
        for row in a[:500]:
            total += row[3] - row[-1]
        return (total,)

    return run


@program(10_000, 100_000, 1_000_000, tiny=60)
def indices(n):
    """Indices and values of all elements."""
    a = np.random.default_rng(0).random((n // 10, 10))

    def run():
        best, at = -1.0, None
        for index, value in np.ndenumerate(a):
            if value > best:
                best, at = value, index
        return best, at[0], at[1]

    return run


@program(700_000, 4_000_000, 30_000_000, tiny=100)
def chunks(n):
    """Chunks of an iterator that writes."""
    a = np.random.default_rng(0).random(n)

    def run():
        with np.nditer(a, flags=["external_loop", "buffered"], op_flags=["readwrite"]) as it:
            for chunk in it:
                chunk *= -1.0
        return (a[:5] ** 2,)

    return run
