"""Random numbers drawn on the way."""

import numpy as np

from bench.ordinary import program


@program(170, 1800, 19000, tiny=10, tolerance=1e-12, reason="products in another order")
def metropolis(n):
    """n steps of a random walk through a banana-shaped density."""
    precision = np.array([[1.0, 0.3], [0.3, 0.5]])

    def log_density(x):
        y = np.array([x[0], x[1] + 0.3 * (x[0] ** 2 - 4)])
        return -0.5 * y @ precision @ y

    def run():
        rng = np.random.default_rng(0)
        x = np.zeros(2)
        here = log_density(x)
        samples = np.zeros((n, 2))
        accepted = 0
        for k in range(n):
            proposal = x + rng.normal(0, 0.8, size=2)
            there = log_density(proposal)
            if np.log(rng.random()) < there - here:
                x, here = proposal, there
                accepted += 1
            samples[k] = x
        return samples.mean(axis=0), np.cov(samples.T), accepted / n

    return run


@program(16, 80, 190, tiny=6)
def ising(n):
    """A magnet of n x n spins: n // 2 sweeps over a chessboard, with the magnetisation of each."""
    even = np.indices((n, n)).sum(axis=0) % 2 == 0

    def run():
        rng = np.random.default_rng(1)
        spins = rng.choice([-1, 1], size=(n, n))
        magnetisation = np.zeros(n // 2)
        for t in range(n // 2):
            for colour in (even, ~even):
                near = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
                energy = 2 * spins * near
                flip = (energy <= 0) | (rng.random((n, n)) < np.exp(-0.4 * energy))
                spins[flip & colour] *= -1
            magnetisation[t] = np.abs(spins.mean())
        return spins, magnetisation

    return run


@program(330, 4700, 44000, tiny=15)
def chain(n):
    """n moves of a Markov chain of five states, by its cumulated transitions; how often each follows each."""
    rng = np.random.default_rng(2)
    transition = rng.dirichlet(np.ones(5), 5)

    def run():
        rng = np.random.default_rng(3)
        cumulated = np.cumsum(transition, axis=1)
        cumulated[:, -1] = 1.0
        counts = np.zeros((5, 5), dtype=int)
        path = np.zeros(n, dtype=int)
        state = 0
        for t in range(n):
            following = np.searchsorted(cumulated[state], rng.random())
            counts[state, following] += 1
            path[t] = state = following
        return counts, path, counts / counts.sum(axis=1, keepdims=True).clip(1)

    return run


@program(420, 13000, 130000, tiny=20, tolerance=1e-11, reason="functions within some ulp, means in another order")
def asian_option(n):
    """n paths of a price over 40 days: an average-price option with a barrier, antithetic."""

    def run():
        rng = np.random.default_rng(4)
        days, volatility, rate = 40, 0.3, 0.02
        dt = 1 / days
        price = np.full(n, 100.0)
        mirror = np.full(n, 100.0)
        total, total_mirror = np.zeros(n), np.zeros(n)
        alive = np.ones(n, dtype=bool)
        for _ in range(days):
            z = rng.standard_normal(n)
            drift = (rate - 0.5 * volatility**2) * dt
            price *= np.exp(drift + volatility * np.sqrt(dt) * z)
            mirror *= np.exp(drift - volatility * np.sqrt(dt) * z)
            total += price
            total_mirror += mirror
            alive &= price < 140
        payoff = np.where(alive, np.maximum(total / days - 100, 0), 0)
        pair = 0.5 * (payoff + np.maximum(total_mirror / days - 100, 0))
        discount = np.exp(-rate)
        return discount * pair.mean(), discount * pair.std() / np.sqrt(n), int(alive.sum())

    return run
