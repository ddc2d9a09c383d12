"""Matrices and graphs as rows of column numbers."""

import numpy as np

from bench.ordinary import program


def _rows(n, most):
    """Compressed rows: 1 to `most` columns each, sorted."""
    rng = np.random.default_rng(3)
    counts = rng.integers(1, most + 1, n)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices = rng.integers(0, n, indptr[-1])
    data = rng.standard_normal(indptr[-1])
    return indptr, indices, data


@program(650, 6200, 60000, tiny=7, tolerance=1e-13, reason="products in another order")
def matvec(n):
    """A matrix of compressed rows times a vector, row by row."""
    indptr, indices, data = _rows(n, 20)
    x = np.linspace(1, 2, n)

    def run():
        y = np.empty(n)
        for i in range(n):
            columns = indices[indptr[i] : indptr[i + 1]]
            values = data[indptr[i] : indptr[i + 1]]
            y[i] = values @ x[columns]
        return y

    return run


@program(6900, 62000, 310000, tiny=12, tolerance=1e-9, reason="dot products in another order")
def conjugate_gradients(n):
    """Conjugate gradients on a graph's Laplacian plus one, with products by ``bincount``, until the residual is small."""
    rng = np.random.default_rng(4)
    a = np.arange(n)
    b = rng.integers(0, n, n)
    rows, columns = np.concatenate((a, b)), np.concatenate((b, a))
    degree = np.bincount(rows, minlength=n) + 1.0
    rhs = rng.standard_normal(n)

    def times(x):
        return degree * x - np.bincount(rows, weights=x[columns], minlength=n)

    def run():
        x = np.zeros(n)
        r = rhs - times(x)
        p = r.copy()
        rs = r @ r
        steps = 0
        while np.sqrt(rs) > 1e-3 and steps < 40:
            ap = times(p)
            alpha = rs / (p @ ap)
            x += alpha * p
            r -= alpha * ap
            new = r @ r
            p = r + (new / rs) * p
            rs = new
            steps += 1
        return x, steps

    return run


@program(180, 1700, 17000, tiny=6, tolerance=1e-12, reason="sums in another order")
def pagerank(n):
    """Ranks of n pages from lists of links, a page at a time, five turns."""
    indptr, indices, _ = _rows(n, 15)
    links = [np.unique(indices[indptr[i] : indptr[i + 1]]) for i in range(n)]

    def run():
        rank = np.full(n, 1.0 / n)
        for _ in range(5):
            new = np.full(n, 0.15 / n)
            for i in range(n):
                new[links[i]] += 0.85 * rank[i] / len(links[i])
            change = np.abs(new - rank).sum()
            rank = new
        return rank, change

    return run


@program(1500, 13000, 120000, tiny=10)
def breadth_first(n):
    """Distances from one node of a graph, a frontier at a time."""
    indptr, indices, _ = _rows(n, 8)

    def run():
        level = np.full(n, -1)
        level[0] = 0
        frontier = np.array([0])
        depth = 0
        while frontier.size:
            depth += 1
            near = np.concatenate([indices[indptr[v] : indptr[v + 1]] for v in frontier])
            frontier = np.unique(near[level[near] < 0])
            level[frontier] = depth
        return level, depth

    return run
