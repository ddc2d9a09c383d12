"""Programs of few elements at a time, which read, branch and write as they go."""

import numpy as np

from bench.ordinary import program


@program(660, 6600, 66000, tiny=5)
def lorenz(n):
    """The Lorenz equations by Euler's method, element by element."""

    def run():
        u = np.zeros((n + 1, 3))
        u[0] = (1.0, 1.0, 1.05)
        for k in range(n):
            x, y, z = u[k]
            u[k + 1, 0] = x + 0.005 * 10 * (y - x)
            u[k + 1, 1] = y + 0.005 * (x * (28 - z) - y)
            u[k + 1, 2] = z + 0.005 * (x * y - 2.667 * z)
        return u

    return run


@program(95, 950, 9500, tiny=3)
def runge_kutta(n):
    """A damped pendulum on a spring in arrays of three, n steps of the classical method."""
    mass = np.array([1.0, 0.3, 2.0])

    def f(t, y):
        return np.array([y[1], -y[0] * 1.5 - 0.1 * y[1], y[0] - y[2] * 0.5]) * mass

    def run():
        y, h, path = np.array([1.0, 0.0, 0.5]), 0.02, []
        for k in range(n):
            t = k * h
            k1 = f(t, y)
            k2 = f(t + h / 2, y + h / 2 * k1)
            k3 = f(t + h / 2, y + h / 2 * k2)
            k4 = f(t + h, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(y)
        return np.array(path)

    return run


@program(45, 450, 4500, tiny=2)
def red_black(n):
    """Laplace's equation on 40 x 40 by relaxation of every other point, n sweeps."""
    start = np.zeros((40, 40))
    start[0] = 1.0

    def run():
        u = start.copy()
        for _ in range(n):
            u[1:-1:2, 1:-1:2] = 0.25 * (u[:-2:2, 1:-1:2] + u[2::2, 1:-1:2] + u[1:-1:2, :-2:2] + u[1:-1:2, 2::2])
            u[2:-1:2, 2:-1:2] = 0.25 * (u[1:-2:2, 2:-1:2] + u[3::2, 2:-1:2] + u[2:-1:2, 1:-2:2] + u[2:-1:2, 3::2])
            u[1:-1:2, 2:-1:2] = 0.25 * (u[:-2:2, 2:-1:2] + u[2::2, 2:-1:2] + u[1:-1:2, 1:-2:2] + u[1:-1:2, 3::2])
            u[2:-1:2, 1:-1:2] = 0.25 * (u[1:-2:2, 1:-1:2] + u[3::2, 1:-1:2] + u[2:-1:2, :-2:2] + u[2:-1:2, 2::2])
        return u

    return run


@program(27, 280, 2800, tiny=2, tolerance=1e-9, reason="exp and tanh are within some ulp")
def network(n):
    """A net of 64, 32 and 10 units, n steps of gradient descent on 20 examples each."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((20, 64)), rng.integers(0, 10, 20)
    first, second = rng.standard_normal((64, 32)) * 0.1, rng.standard_normal((32, 10)) * 0.1
    wanted = np.eye(10)[labels]

    def run():
        w, v, b, c = first.copy(), second.copy(), np.zeros(32), np.zeros(10)
        losses = []
        for _ in range(n):
            h = np.tanh(x @ w + b)
            scores = h @ v + c
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            p = e / e.sum(axis=1, keepdims=True)
            losses.append(-np.log(p[np.arange(20), labels]).mean())
            d = (p - wanted) / 20
            dh = d @ v.T * (1 - h * h)
            v -= 0.1 * (h.T @ d)
            c -= 0.1 * d.sum(axis=0)
            w -= 0.1 * (x.T @ dh)
            b -= 0.1 * dh.sum(axis=0)
        return w, v, np.array(losses)

    return run


@program(35, 350, 3500, tiny=1, tolerance=1e-9, reason="products are summed in another order")
def exponential(n):
    """The exponential of n matrices of 8 x 8 by scaling, a series, and squaring."""
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((n, 8, 8))

    def run():
        found = []
        for a in matrices:
            norm = np.abs(a).sum(axis=0).max()
            squarings = max(0, int(np.ceil(np.log2(norm))) + 1)
            a = a / 2.0**squarings
            term = result = np.eye(8)
            for k in range(1, 10):
                term = term @ a / k
                result = result + term
            for _ in range(squarings):
                result = result @ result
            found.append(result.trace())
        return np.array(found)

    return run


@program(35, 350, 3500, tiny=3)
def life(n):
    """Conway's game on 64 x 64 in floating-point numbers, with casts, n generations."""
    rng = np.random.default_rng(0)
    start = (rng.random((64, 64)) < 0.3).astype(float)

    def run():
        u = start.copy()
        for _ in range(n):
            p = np.zeros((66, 66))
            p[1:-1, 1:-1] = u
            s = p[:-2, :-2] + p[:-2, 1:-1] + p[:-2, 2:] + p[1:-1, :-2] + p[1:-1, 2:] + p[2:, :-2] + p[2:, 1:-1] + p[2:, 2:]
            u = ((s == 3) | ((u > 0) & (s == 2))).astype(float)
        return u

    return run


@program(240, 2400, 24000, tiny=3)
def stream(n):
    """n records of a hundred numbers as they come: means, variances, the largest so far."""
    rng = np.random.default_rng(0)
    records = rng.standard_normal((n, 100))

    def run():
        mean, square, most, alarms = np.zeros(100), np.zeros(100), np.full(100, -np.inf), 0
        for k in range(n):
            x = records[k]
            d = x - mean
            mean = mean + d / (k + 1)
            square = square + d * (x - mean)
            most = np.maximum(most, x)
            if np.abs(d).max() > 3.5:
                alarms += 1
        return mean, square / n, most, alarms

    return run


@program(120, 1200, 12000, tiny=3, tolerance=1e-12, reason="large values are summed in another order")
def rays(n):
    """n rays against twelve spheres, in vectors of three."""
    rng = np.random.default_rng(0)
    centres, radii = rng.standard_normal((12, 3)) * 3 + [0, 0, 10], rng.random(12) + 0.3
    directions = rng.standard_normal((n, 3)) * 0.3 + [0, 0, 1]

    def run():
        shades = np.zeros(n)
        light = np.array([0.577, 0.577, -0.577])
        for k in range(n):
            d = directions[k] / np.sqrt(directions[k] @ directions[k])
            b = centres @ d
            inside = b * b - (centres * centres).sum(axis=1) + radii * radii
            hit = inside > 0
            if hit.any():
                t = np.where(hit, b - np.sqrt(np.where(hit, inside, 0.0)), np.inf)
                nearest = t.argmin()
                normal = (d * t[nearest] - centres[nearest]) / radii[nearest]
                shades[k] = max(0.0, float(normal @ light))
        return shades

    return run


@program(25, 250, 2500, tiny=2)
def four_bodies(n):
    """Four bodies in lists of small vectors, n steps."""
    rng = np.random.default_rng(0)
    places, speeds, masses = rng.standard_normal((4, 3)) * 3, rng.standard_normal((4, 3)) * 0.1, [5.0, 1.0, 0.5, 0.1]

    def run():
        x, v = [np.array(p) for p in places], [np.array(s) for s in speeds]
        for _ in range(n):
            for i in range(4):
                force = np.zeros(3)
                for j in range(4):
                    if i != j:
                        d = x[j] - x[i]
                        r2 = np.dot(d, d) + 0.01
                        force += masses[j] * d / (r2 * np.sqrt(r2))
                v[i] = v[i] + 0.01 * force
            for i in range(4):
                x[i] = x[i] + 0.01 * v[i]
        return np.array(x), np.array(v)

    return run


@program(190, 1900, 19000, tiny=5, tolerance=1e-6, reason="steps depend on sums in another order")
def conjugate_gradients(n):
    """Conjugate gradients on 50 unknowns, n steps, begun anew when they have arrived."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((50, 50))
    a, b = a @ a.T + 50 * np.eye(50), rng.standard_normal(50)

    def run():
        x, r = np.zeros(50), b.copy()
        p, rr = r.copy(), r @ r
        for _ in range(n):
            q = a @ p
            alpha = rr / (p @ q)
            x += alpha * p
            r -= alpha * q
            new = r @ r
            if new < 1e-20:
                x, r = np.zeros(50), b.copy()
                p, new = r.copy(), r @ r
                rr = new
                continue
            p = r + new / rr * p
            rr = new
        return x.round(6)

    return run


@program(200, 2000, 20000, tiny=2)
def boundary(n):
    """Diffusion in a row of 60 cells, the boundary by elements, n steps."""
    start = np.linspace(0, 1, 60) ** 2

    def run():
        u = start.copy()
        for k in range(n):
            new = u.copy()
            new[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
            new[0] = new[1] * 0.5 + 0.01 * k
            new[-1] = new[-2]
            new[20], new[40] = 0.5 * (u[19] + u[21]), 0.25 * u[39]
            for i in range(45, 50):
                new[i] = min(new[i], 1.0)
            u = new
        return u

    return run


@program(60, 600, 6000, tiny=2, tolerance=1e-12, reason="exp is within some ulp")
def softmax(n):
    """The softmax of n matrices of 40 x 30, and their entropies."""
    rng = np.random.default_rng(0)
    batches = rng.standard_normal((16, 40, 30))

    def run():
        entropies = []
        for k in range(n):
            x = batches[k % 16]
            e = np.exp(x - x.max(axis=1, keepdims=True))
            p = e / e.sum(axis=1, keepdims=True)
            entropies.append(-(p * np.log(p)).sum(axis=1).mean())
        return np.array(entropies)

    return run


@program(200, 1900, 7500, tiny=4, tolerance=1e-12, reason="large values are summed in another order")
def lengths(n):
    """n expressions and sums of arrays each of which has a length never seen before."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(4 * n + 100)

    def run():
        found = np.zeros(n)
        for k in range(n):
            a, b = x[: 20 + k], x[k : 20 + 2 * k]
            found[k] = ((a * a + b) * 0.5 - np.abs(a - b)).sum() / (a.size + 1)
        return found

    return run
