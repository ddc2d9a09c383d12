"""Estimates that follow a system from one measurement to the next."""

import numpy as np

from bench.ordinary import program


@program(45, 420, 4200, tiny=5, tolerance=1e-10, reason="products in another order")
def kalman(n):
    """A position and a velocity in the plane from n noisy positions."""
    rng = np.random.default_rng(0)
    dt = 0.1
    f = np.array([[1, 0, dt, 0], [0, 1, 0, dt], [0, 0, 1, 0], [0, 0, 0, 1]])
    h = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    q = 0.01 * np.eye(4)
    r = 0.25 * np.eye(2)
    measured = np.cumsum(rng.standard_normal((n, 2)) * 0.1, axis=0) + 0.5 * rng.standard_normal((n, 2))

    def run():
        x = np.zeros(4)
        p = np.eye(4)
        track = np.empty((n, 4))
        likelihood = 0.0
        for t, z in enumerate(measured):
            x = f @ x
            p = f @ p @ f.T + q
            y = z - h @ x
            s = h @ p @ h.T + r
            s_inv = np.linalg.inv(s)
            k = p @ h.T @ s_inv
            x = x + k @ y
            p = (np.eye(4) - k @ h) @ p
            track[t] = x
            likelihood -= 0.5 * (y @ s_inv @ y + np.log(np.linalg.det(s)))
        return track, p, likelihood

    return run


@program(4, 69, 900, tiny=4, tolerance=1e-9, reason="products in another order, and functions within some ulp")
def unscented(n):
    """A car's place and heading from ranges to two beacons: sigma points through a Cholesky factor."""
    rng = np.random.default_rng(1)
    beacons = np.array([[0.0, 0.0], [10.0, 2.0]])
    states = 4
    kappa = 0.5
    weights = np.full(2 * states + 1, 0.5 / (states + kappa))
    weights[0] = kappa / (states + kappa)
    q = np.diag([0.01, 0.01, 0.001, 0.05])
    r = 0.04 * np.eye(2)
    t = 0.1 * np.arange(n)
    way = np.stack((3 + 2 * np.cos(t), 4 + 2 * np.sin(t)), axis=1)
    ranges = np.sqrt(((way[:, None] - beacons) ** 2).sum(axis=-1)) + 0.2 * rng.standard_normal((n, 2))

    def move(s):
        x, y, heading, speed = s
        return np.array([x + 0.1 * speed * np.cos(heading), y + 0.1 * speed * np.sin(heading), heading, speed])

    def look(s):
        return np.sqrt(np.sum((beacons - s[:2]) ** 2, axis=1))

    def sigma_points(x, p):
        root = np.linalg.cholesky((states + kappa) * p)
        points = [x]
        for k in range(states):
            points.append(x + root[:, k])
            points.append(x - root[:, k])
        return np.array(points)

    def run():
        x = np.array([5.0, 4.0, 1.5, 2.0])
        p = np.eye(states) * 0.5
        track = []
        for z in ranges:
            moved = np.array([move(s) for s in sigma_points(x, p)])
            x = weights @ moved
            d = moved - x
            p = (weights[:, None] * d).T @ d + q
            points = sigma_points(x, p)
            seen = np.array([look(s) for s in points])
            expected = weights @ seen
            dz, dx = seen - expected, points - x
            s = (weights[:, None] * dz).T @ dz + r
            gain = (weights[:, None] * dx).T @ dz @ np.linalg.inv(s)
            x = x + gain @ (z - expected)
            p = p - gain @ s @ gain.T
            p = 0.5 * (p + p.T)
            track.append(x)
        return np.array(track), np.trace(p)

    return run


@program(1000, 12000, 150000, tiny=12, tolerance=1e-9, reason="sums in another order, and functions within some ulp")
def particles(n):
    """The nonlinear growth model by n particles, 20 steps, resampled where few of them count."""
    steps = 20
    rng = np.random.default_rng(2)
    x = 0.0
    seen = []
    for t in range(steps):
        x = 0.5 * x + 25 * x / (1 + x * x) + 8 * np.cos(1.2 * t) + rng.normal() * 3
        seen.append(float(x * x / 20 + rng.normal()))

    def run():
        rng = np.random.default_rng(3)
        p = rng.normal(0, 2, n)
        w = np.ones(n) / n
        means = []
        resampled = 0
        for t, z in enumerate(seen):
            p = 0.5 * p + 25 * p / (1 + p**2) + 8 * np.cos(1.2 * t) + rng.normal(0, 3, n)
            w *= np.exp(-0.5 * (z - p**2 / 20) ** 2)
            w += 1e-300
            w /= w.sum()
            means.append(np.sum(w * p))
            if 1.0 / np.sum(w**2) < n / 2:
                edges = np.cumsum(w)
                edges[-1] = 1.0
                chosen = np.searchsorted(edges, (np.arange(n) + rng.random()) / n)
                p = p[chosen]
                w.fill(1.0 / n)
                resampled += 1
        return np.array(means), p, resampled

    return run


@program(18, 170, 890, tiny=4, tolerance=1e-8, reason="products in another order in a chaotic system")
def ensemble(n):
    """The Lorenz-96 weather of 40 places, an ensemble of n, 2 + n // 10 measurements of every other place."""
    places, turns = 40, 2 + n // 10
    rng = np.random.default_rng(4)
    truth = 8 + rng.standard_normal(places)
    first = truth + rng.standard_normal((n, places))
    h = np.eye(places)[::2]
    noise = rng.standard_normal((turns, places // 2, n))

    def tendency(x):
        return (np.roll(x, -1, axis=-1) - np.roll(x, 2, axis=-1)) * np.roll(x, 1, axis=-1) - x + 8

    def step(x, dt=0.02):
        k1 = tendency(x)
        k2 = tendency(x + dt / 2 * k1)
        k3 = tendency(x + dt / 2 * k2)
        k4 = tendency(x + dt * k3)
        return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def run():
        real, x = truth.copy(), first.copy()
        spread = np.zeros(turns)
        for t in range(turns):
            real, x = step(real), step(x)
            a = x - x.mean(axis=0)
            ha = a @ h.T
            s = ha.T @ ha / (n - 1) + np.eye(places // 2)
            gain = np.linalg.solve(s, ha.T @ a / (n - 1))
            innovation = (real @ h.T)[:, None] + noise[t] - h @ x.T
            x += innovation.T @ gain
            spread[t] = x.std(axis=0).mean()
        return x, spread

    return run
