"""Searches that look at each step how far they have come."""

import numpy as np

from bench.ordinary import program


@program(14, 100, 1000, tiny=2, tolerance=1e-9, reason="functions within some ulp")
def systems(n):
    """Newton's method on three equations, from n starting points."""
    rng = np.random.default_rng(0)
    starts = 1 + 0.3 * rng.random((n, 3))

    def equations(v):
        x, y, z = v
        return np.array([x**2 + y**2 + z**2 - 3, x * y * z - 1, np.exp(x - y) + z - 2])

    def jacobian(v):
        x, y, z = v
        e = np.exp(x - y)
        return np.array([[2 * x, 2 * y, 2 * z], [y * z, x * z, x * y], [e, -e, 1.0]])

    def run():
        found = np.zeros((n, 3))
        steps = 0
        for k in range(n):
            v = starts[k].copy()
            f = equations(v)
            for _ in range(12):
                if np.linalg.norm(f) < 1e-5:
                    break
                v -= np.linalg.solve(jacobian(v) + 1e-9 * np.eye(3), f)
                f = equations(v)
                steps += 1
            found[k] = v
        return found.round(2), steps > 0

    return run


@program(30, 1300, 14000, tiny=6, tolerance=1e-6, reason="sums in another order decide nothing, but add up over the steps")
def steepest_descent(n):
    """A quadratic bowl with quartic walls, 25 steps at most, by backtracking."""
    curvature = np.linspace(1, 20, n)
    centre = np.sin(np.arange(n))
    start = np.full(n, 2.0)

    def f(x):
        d = x - centre
        return 0.5 * np.sum(curvature * d**2) + 0.1 * np.sum(d**4)

    def gradient(x):
        d = x - centre
        return curvature * d + 0.4 * d**3

    def run():
        x = start.copy()
        value = f(x)
        tried = 0
        for _ in range(25):
            g = gradient(x)
            slope = np.dot(g, g)
            if np.sqrt(slope) < 1e-6:
                break
            t = 0.5
            while f(x - t * g) > value - 0.3 * t * slope:
                t *= 0.5
                tried += 1
            x = x - t * g
            value = f(x)
        return x, value, tried

    return run


@program(4, 140, 380, tiny=3, tolerance=1e-5, reason="products in another order, over many steps")
def bfgs(n):
    """Rosenbrock's function of n variables by BFGS with backtracking, 20 steps at most."""
    start = np.tile(np.array([-1.2, 1.0]), n // 2 + 1)[:n] * 0.7 + 0.2

    def f(x):
        return np.sum(10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def gradient(x):
        g = np.zeros_like(x)
        g[:-1] = -40 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
        g[1:] += 20 * (x[1:] - x[:-1] ** 2)
        return g

    def run():
        x = start.copy()
        h = np.eye(n)
        g = gradient(x)
        for _ in range(20):
            if np.linalg.norm(g) < 1e-6:
                break
            direction = -h @ g
            t, value = 1.0, f(x)
            while f(x + t * direction) > value + 1e-4 * t * (g @ direction):
                t *= 0.5
                if t < 1e-10:
                    break
            s = t * direction
            x = x + s
            g_new = gradient(x)
            y = g_new - g
            sy = s @ y
            if sy > 1e-10:
                rho = 1.0 / sy
                left = np.eye(n) - rho * np.outer(s, y)
                h = left @ h @ left.T + rho * np.outer(s, s)
            g = g_new
        return x, f(x)

    return run


@program(2100, 32000, 320000, tiny=12, tolerance=1e-7, reason="products in another order, over the steps")
def levenberg_marquardt(n):
    """A decaying oscillation fitted to n points, with a step taken only where it helps."""
    rng = np.random.default_rng(1)
    t = np.linspace(0, 6, n)
    y = 2.5 * np.exp(-0.4 * t) * np.cos(2.0 * t + 0.3) + 0.05 * rng.standard_normal(n)

    def residual(p):
        return p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t + p[3]) - y

    def jacobian(p):
        decay = np.exp(-p[1] * t)
        wave, slope = np.cos(p[2] * t + p[3]), -np.sin(p[2] * t + p[3])
        return np.column_stack([decay * wave, -p[0] * t * decay * wave, p[0] * t * decay * slope, p[0] * decay * slope])

    def run():
        p = np.array([2.0, 0.3, 1.8, 0.1])
        damping = 1e-2
        r = residual(p)
        cost = r @ r
        for _ in range(8):
            j = jacobian(p)
            a, g = j.T @ j, j.T @ r
            step = np.linalg.solve(a + damping * np.diag(np.diag(a)), -g)
            if np.linalg.norm(step) < 1e-4 * np.linalg.norm(p):
                break
            r_new = residual(p + step)
            if r_new @ r_new < cost:
                p, r = p + step, r_new
                cost = r @ r
                damping /= 10
            else:
                damping *= 10
        return p, cost

    return run
