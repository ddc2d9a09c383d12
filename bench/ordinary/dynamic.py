"""Tables that are filled from smaller answers."""

import numpy as np

from bench.ordinary import program


@program(45, 140, 560, tiny=5)
def edit_distance(n):
    """Levenshtein's distance of two words of n and n // 2 letters, an element at a time."""
    rng = np.random.default_rng(0)
    one = "".join("acgt"[k] for k in rng.integers(0, 4, n).tolist())
    two = "".join("acgt"[k] for k in rng.integers(0, 4, n // 2).tolist())

    def run():
        d = np.zeros((len(one) + 1, len(two) + 1), dtype=int)
        d[:, 0] = np.arange(len(one) + 1)
        d[0, :] = np.arange(len(two) + 1)
        for i in range(1, len(one) + 1):
            for j in range(1, len(two) + 1):
                cost = 0 if one[i - 1] == two[j - 1] else 1
                d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
        return d, d[-1, -1]

    return run


@program(240, 1200, 3400, tiny=6)
def knapsack(n):
    """The best value of every weight up to 10 n, of n things."""
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 40, n).tolist()
    values = rng.random(n)

    def run():
        best = np.zeros(10 * n + 1)
        for i in range(n):
            w = weights[i]
            best[w:] = np.maximum(best[w:], best[:-w] + values[i])
        return best

    return run


@program(130, 1200, 12000, tiny=9, tolerance=1e-12, reason="logarithms")
def viterbi(n):
    """The likeliest states, of 12, behind n observations."""
    states, symbols = 12, 6
    rng = np.random.default_rng(2)
    move = np.log(rng.dirichlet(np.ones(states), states))
    show = np.log(rng.dirichlet(np.ones(symbols), states))
    seen = rng.integers(0, symbols, n)

    def run():
        score = np.empty((n, states))
        back = np.zeros((n, states), dtype=int)
        score[0] = show[:, seen[0]] - np.log(states)
        for t in range(1, n):
            candidates = score[t - 1][:, None] + move
            back[t] = candidates.argmax(axis=0)
            score[t] = candidates.max(axis=0) + show[:, seen[t]]
        path = np.zeros(n, dtype=int)
        path[-1] = score[-1].argmax()
        for t in range(n - 2, -1, -1):
            path[t] = back[t + 1, path[t + 1]]
        return path, score[-1].max()

    return run


@program(55, 130, 330, tiny=5)
def floyd_warshall(n):
    """Shortest ways between all nodes, with the next node of each."""
    rng = np.random.default_rng(3)
    length = rng.random((n, n))
    length[rng.random((n, n)) < 0.5] = np.inf
    length[np.arange(n), np.arange(n)] = 0

    def run():
        d = length.copy()
        follow = np.where(np.isfinite(d), np.arange(n)[None, :], -1)
        for k in range(n):
            through = d[:, k, None] + d[None, k, :]
            shorter = through < d
            d = np.where(shorter, through, d)
            follow = np.where(shorter, follow[:, k, None], follow)
        return d, follow

    return run
