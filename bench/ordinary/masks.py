"""Sets of points that shrink from step to step."""

import numpy as np

from bench.ordinary import program


@program(90, 300, 820, tiny=6)
def mandelbrot(n):
    """Points that escape are taken out of the arrays; 40 steps."""

    def run():
        rows, columns = np.mgrid[0:n, 0:n]
        x = np.linspace(-2.25, 0.75, n)[rows]
        y = np.linspace(-1.25, 1.25, n)[columns]
        c = x + 1j * y
        count = np.zeros((n, n), dtype=int)
        rows, columns, c = rows.ravel(), columns.ravel(), c.ravel()
        z = np.zeros(c.shape, dtype=complex)
        for k in range(40):
            if not len(z):
                break
            z = z * z + c
            out = z.real**2 + z.imag**2 > 4.0
            count[rows[out], columns[out]] = k + 1
            inside = ~out
            z, c = z[inside], c[inside]
            rows, columns = rows[inside], columns[inside]
        return count

    return run


@program(80, 250, 740, tiny=6)
def julia(n):
    """Points that have not escaped are squared through a mask; 30 steps."""
    x = np.linspace(-1.6, 1.6, n)
    y = np.linspace(-1.0, 1.0, n)

    def run():
        zr, zi = np.meshgrid(x, y)
        count = np.zeros((n, n), dtype=int)
        live = np.ones((n, n), dtype=bool)
        for _ in range(30):
            a, b = zr[live], zi[live]
            zr[live] = a * a - b * b - 0.8
            zi[live] = 2 * a * b + 0.156
            live = zr * zr + zi * zi < 4
            count[live] += 1
            if not live.any():
                break
        return count, int(live.sum())

    return run


@program(28, 150, 430, tiny=5, tolerance=1e-6, reason="functions within some ulp, where a ray meets a surface")
def ray_marching(n):
    """n x n rays marched towards a torus and a floor by their distances; rays that arrive or leave are dropped."""
    u = np.linspace(-1, 1, n)
    directions = np.stack(np.broadcast_arrays(u[None, :], -u[:, None] * 0.8 - 0.3, np.array([[1.6]])), axis=-1).reshape(-1, 3)
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    eye = np.array([0.0, 1.2, -3.0])

    def distance(p):
        ring = np.sqrt(p[:, 0] ** 2 + p[:, 2] ** 2) - 1.0
        return np.minimum(np.sqrt(ring**2 + p[:, 1] ** 2) - 0.4, p[:, 1] + 0.6)

    def run():
        depth = np.zeros(n * n)
        steps = np.zeros(n * n, dtype=int)
        active = np.arange(n * n)
        for _ in range(30):
            d = distance(eye + depth[active, None] * directions[active])
            depth[active] += d
            steps[active] += 1
            active = active[(d > 1e-2) & (depth[active] < 20)]
            if active.size == 0:
                break
        hit = depth < 20
        shade = np.zeros(n * n)
        shade[hit] = 1 / (1 + 0.1 * depth[hit] ** 2)
        return shade.reshape(n, n), int(hit.sum()), steps.mean()

    return run


@program(28, 120, 390, tiny=5, tolerance=1e-9, reason="sums of three in another order")
def ray_tracing(n):
    """n x n rays among five spheres, with two reflections; rays that miss everything are dropped."""
    centres = np.array([[0.0, 0.0, 4.0], [1.5, 0.3, 5.0], [-1.6, 0.2, 4.5], [0.3, 1.3, 5.5], [0.0, -101.0, 4.0]])
    radii = np.array([1.0, 0.8, 0.7, 0.6, 100.0])
    colours = np.array([[1, 0.2, 0.2], [0.2, 1, 0.2], [0.2, 0.2, 1], [1, 1, 0.3], [0.6, 0.6, 0.6]])
    light = np.array([0.5, 0.7, -0.5])
    light = light / np.sqrt(light @ light)
    u = np.linspace(-1, 1, n)
    across, up = np.meshgrid(u, -u)
    rays = np.stack([across, up, 1.5 * np.ones_like(across)], axis=-1).reshape(-1, 3)
    rays = rays / np.sqrt((rays**2).sum(axis=1))[:, None]

    def run():
        image = np.zeros((n * n, 3))
        index = np.arange(n * n)
        origin = np.zeros((n * n, 3))
        direction = rays
        strength = 1.0
        for _ in range(3):
            nearest = np.full(len(index), np.inf)
            which = np.full(len(index), -1)
            for k in range(len(radii)):
                oc = origin - centres[k]
                b = np.sum(oc * direction, axis=1)
                c = np.sum(oc * oc, axis=1) - radii[k] ** 2
                square = b * b - c
                t = np.where(square > 0, -b - np.sqrt(np.maximum(square, 0)), np.inf)
                closer = (t > 1e-4) & (t < nearest)
                nearest[closer] = t[closer]
                which[closer] = k
            hit = which >= 0
            image[index[~hit]] += strength * np.array([0.5, 0.7, 1.0])
            if not hit.any():
                break
            index, which = index[hit], which[hit]
            point = origin[hit] + nearest[hit][:, None] * direction[hit]
            normal = (point - centres[which]) / radii[which][:, None]
            facing = np.maximum(normal @ light, 0.1)
            image[index] += 0.6 * strength * colours[which] * facing[:, None]
            direction = direction[hit] - 2 * np.sum(direction[hit] * normal, axis=1)[:, None] * normal
            origin = point
            strength *= 0.4
        return image.clip(0, 1).reshape(n, n, 3), len(index)

    return run
