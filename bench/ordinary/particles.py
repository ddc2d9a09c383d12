"""Bodies that attract, repel and follow each other."""

import numpy as np

from bench.ordinary import program


@program(24, 120, 250, tiny=4, tolerance=1e-10, reason="sums of forces in another order")
def gravity(n):
    """n stars, all pairs at once, leapfrog; the energies of every step."""
    rng = np.random.default_rng(17)
    mass = 20.0 * np.ones((n, 1)) / n
    pos0 = rng.standard_normal((n, 3))
    vel0 = rng.standard_normal((n, 3))
    vel0 -= np.mean(mass * vel0, 0) / np.mean(mass)

    def acceleration(pos):
        x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inv_r3 = (dx**2 + dy**2 + dz**2 + 0.1**2) ** (-1.5)
        ax = (dx * inv_r3) @ mass
        ay = (dy * inv_r3) @ mass
        az = (dz * inv_r3) @ mass
        return np.hstack((ax, ay, az))

    def energies(pos, vel):
        kinetic = 0.5 * np.sum(mass * vel**2)
        x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
        distance = np.sqrt((x.T - x) ** 2 + (y.T - y) ** 2 + (z.T - z) ** 2)
        inverse = np.zeros_like(distance)
        inverse[distance > 0] = 1.0 / distance[distance > 0]
        potential = np.sum(np.triu(-(mass * mass.T) * inverse, 1))
        return kinetic, potential

    def run():
        pos, vel = pos0.copy(), vel0.copy()
        steps, dt = 10 + n // 4, 0.01
        kinetic, potential = np.zeros(steps), np.zeros(steps)
        acc = acceleration(pos)
        for i in range(steps):
            vel += acc * dt / 2.0
            pos += vel * dt
            acc = acceleration(pos)
            vel += acc * dt / 2.0
            kinetic[i], potential[i] = energies(pos, vel)
        return pos, vel, kinetic, potential

    return run


@program(4, 14, 44, tiny=2, tolerance=1e-10, reason="sums of forces in another order, and powers")
def planets(n):
    """A sun and n planets, pair by pair: vectors of three numbers."""
    radius = [1.0 + 0.5 * k for k in range(n)]
    x0 = np.array([[0.0, 0.0, 0.0]] + [[r, 0.0, 0.01 * r] for r in radius])
    v0 = np.array([[0.0, 0.0, 0.0]] + [[0.0, r**-0.5, 0.0] for r in radius])
    mass = np.array([1.0] + [1e-3 / r for r in radius])

    def run():
        x, v = x0.copy(), v0.copy()
        for _ in range(20):
            a = np.zeros_like(x)
            for i in range(n + 1):
                for j in range(i + 1, n + 1):
                    r = x[j] - x[i]
                    d3 = np.sqrt(np.dot(r, r)) ** 3
                    a[i] += mass[j] * r / d3
                    a[j] -= mass[i] * r / d3
            v += 0.01 * a
            x += 0.01 * v
        return x, v, np.linalg.norm(mass @ v)

    return run


@program(6, 66, 560, tiny=5, tolerance=1e-9, reason="sums of forces in another order")
def lennard_jones(n):
    """n atoms in a periodic box, the forces on one after the other, velocity Verlet."""
    side = int(np.ceil(n ** (1 / 3)))
    box = 1.3 * side
    rng = np.random.default_rng(1)
    grid = np.arange(side) * 1.3
    sites = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)[:n]
    x0 = sites + rng.uniform(-0.05, 0.05, (n, 3))
    v0 = rng.standard_normal((n, 3)) * 0.1

    def forces(x):
        f = np.zeros_like(x)
        energy = 0.0
        for i in range(n - 1):
            d = x[i] - x[i + 1 :]
            d -= box * np.round(d / box)
            r2 = np.sum(d * d, axis=1)
            near = r2 < 6.25
            r2, d = r2[near], d[near]
            s6 = 1.0 / r2**3
            pair = ((48 * s6 * s6 - 24 * s6) / r2)[:, None] * d
            f[i] += pair.sum(axis=0)
            f[i + 1 :][near] -= pair
            energy += np.sum(4 * s6 * (s6 - 1))
        return f, energy

    def run():
        x, v = x0.copy(), v0.copy()
        f, _ = forces(x)
        energies = []
        for _ in range(4):
            v += 0.0005 * f
            x = (x + 0.001 * v) % box
            f, energy = forces(x)
            v += 0.0005 * f
            energies.append(energy)
        return x, v, np.array(energies)

    return run


@program(25, 100, 300, tiny=6, tolerance=1e-9, reason="means of neighbours in another order")
def boids(n):
    """n birds that keep apart, align and stay together, ten steps."""
    rng = np.random.default_rng(2)
    p0 = rng.random((n, 2)) * 20
    v0 = rng.standard_normal((n, 2))

    def limit(vectors, longest):
        norm = np.sqrt((vectors * vectors).sum(axis=1))[:, None]
        return np.multiply(vectors, longest / np.maximum(norm, 1e-12), out=vectors, where=norm > longest)

    def run():
        p, v = p0.copy(), v0.copy()
        for _ in range(10):
            d = p[:, None, :] - p[None, :, :]
            distance = np.hypot(d[..., 0], d[..., 1])
            near = (distance > 0) & (distance < 5)
            close = (distance > 0) & (distance < 2)
            count = np.maximum(near.sum(axis=1), 1)[:, None]
            together = (near[:, :, None] * p[None]).sum(axis=1) / count - p
            align = (near[:, :, None] * v[None]).sum(axis=1) / count - v
            together[~near.any(axis=1)] = 0
            align[~near.any(axis=1)] = 0
            apart = np.where(close[:, :, None], d / np.maximum(distance, 0.1)[:, :, None] ** 2, 0).sum(axis=1)
            v += limit(1.5 * apart + 0.5 * align + 0.3 * together, 0.3)
            limit(v, 2.0)
            p += v
            p %= 20
        return p, v

    return run
