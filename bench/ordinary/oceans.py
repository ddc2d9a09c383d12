"""Pieces of an ocean model on a staggered grid of three axes, a few levels deep: many named terms, short rows, writes of parts."""

import numpy as np

from bench.ordinary import program


def _grid(n):
    return 2 * n, 2 * n, max(n // 4, 3)


@program(24, 36, 75, tiny=3)
def density(n):
    """The density of sea water, a quotient of polynomials in salinity, temperature and pressure, and its derivative by temperature."""
    rng = np.random.default_rng(0)
    shape = _grid(n)
    salt = 33 + 3 * rng.random(shape)
    heat = 2 + 20 * rng.random(shape)
    depth = 2000 * rng.random(shape)

    def run():
        root = np.sqrt(salt)
        t2 = heat * heat
        t3 = t2 * heat
        top0 = 999.8 + heat * (6.8e-2 + heat * (-9.1e-3 + heat * (1.0e-4 - heat * 1.1e-6)))
        top1 = salt * (0.82 - heat * (4.1e-3 - heat * (7.6e-5 - heat * 8.2e-7)))
        top2 = salt * root * (-5.7e-3 + heat * (1.0e-4 - heat * 1.6e-6))
        top = top0 + top1 + top2 + 4.8e-4 * salt * salt
        bulk0 = 19652.0 + heat * (148.4 - heat * (2.3 - heat * (1.4e-2 - heat * 5.2e-5)))
        bulk1 = salt * (54.7 - heat * (0.6 - heat * (1.1e-2 - heat * 6.2e-5)))
        bulk2 = salt * root * (7.9e-2 + heat * (1.6e-2 - heat * 5.3e-4))
        lever = depth * (3.2 + heat * (1.4e-3 + heat * 1.2e-4) + salt * (2.3e-3 - heat * 1.1e-5))
        bulk = bulk0 + bulk1 + bulk2 + lever
        squeezed = 1 - depth / bulk
        dtop = 6.8e-2 - 1.8e-2 * heat + 3.0e-4 * t2 - 4.4e-6 * t3 - salt * (4.1e-3 - 1.5e-4 * heat + 2.5e-6 * t2)
        dtop = dtop + salt * root * (1.0e-4 - 3.2e-6 * heat)
        dbulk = 148.4 - 4.6 * heat + 4.2e-2 * t2 - 2.1e-4 * t3 - salt * (0.6 - 2.2e-2 * heat + 1.9e-4 * t2)
        dbulk = dbulk + salt * root * (1.6e-2 - 1.1e-3 * heat) + depth * (1.4e-3 + 2.4e-4 * heat - 1.1e-5 * salt)
        found = top / squeezed
        return found, dtop / squeezed - found * depth * dbulk / (bulk * bulk * squeezed)

    return run


@program(24, 45, 95, tiny=3, tolerance=1e-9, reason="tanh of many elements has other last digits, and slopes are steep")
def mixing_along_slopes(n):
    """Mixing along surfaces of equal density: slopes from gradients at faces of cells, tapered where steep, summed over neighbours."""
    rng = np.random.default_rng(0)
    shape = _grid(n)
    heat, salt, stiff = (rng.standard_normal(shape) for _ in range(3))
    land = (rng.random(shape) < 0.8).astype(float)
    wide, high = 1 + rng.random(shape[0]), 1 + rng.random(shape[2])

    def run():
        east, down = np.zeros(shape), np.zeros(shape)
        east_salt, down_salt = np.zeros(shape), np.zeros(shape)
        by_heat, by_salt = -0.2 * land, 0.8 * land
        east[:-1] = land[:-1] * (heat[1:] - heat[:-1]) / wide[:-1, None, None]
        east_salt[:-1] = land[:-1] * (salt[1:] - salt[:-1]) / wide[:-1, None, None]
        down[:, :, :-1] = land[:, :, :-1] * (heat[:, :, 1:] - heat[:, :, :-1]) / high[:-1]
        down_salt[:, :, :-1] = land[:, :, :-1] * (salt[:, :, 1:] - salt[:, :, :-1]) / high[:-1]
        kept = np.zeros((*shape, 2, 2))
        sums = np.zeros(shape)[1:-2, 2:-2]
        for up in range(2):
            first = 1 - up
            for beside in range(2):
                here = slice(1 + beside, -2 + beside)
                above = slice(None, -1 + up or None)
                heats, salts = by_heat[here, 2:-2, first:], by_salt[here, 2:-2, first:]
                across = heats * east[1:-2, 2:-2, first:] + salts * east_salt[1:-2, 2:-2, first:]
                along = heats * down[here, 2:-2, above] + salts * down_salt[here, 2:-2, above]
                slope = -across / (np.minimum(along, 0.0) - 1e-20)
                taper = 0.5 * (1 + np.tanh((1e-3 - np.abs(slope)) / 1e-3))
                sums[:, :, first:] += high[above] * land[1:-2, 2:-2, first:] * np.maximum(50.0, stiff[1:-2, 2:-2, first:] * taper)
                kept[1:-2, 2:-2, first:, beside, up] = taper * slope * land[1:-2, 2:-2, first:]
        mixed = np.zeros(shape)
        mixed[1:-2, 2:-2] = sums / (4 * high)
        return mixed, kept

    return run


@program(30, 48, 100, tiny=3)
def limited_advection(n):
    """A tracer carried along two axes, by fluxes that are limited so that no new extremes come up."""
    rng = np.random.default_rng(0)
    shape = _grid(n)
    tracer, eastward, northward = rng.random(shape), rng.standard_normal(shape), rng.standard_normal(shape)
    sea = (rng.random(shape) < 0.9).astype(float)

    def flux(speed, axis):
        behind, here, ahead, beyond = (
            tuple([slice(1 + k, -2 + k or None) if k_axis == axis else slice(2, -2) for k_axis in range(2)]) for k in range(-1, 3)
        )
        step = (tracer[ahead] - tracer[here]) * sea[here]
        before = (tracer[here] - tracer[behind]) * sea[behind]
        after = (tracer[beyond] - tracer[ahead]) * sea[ahead]
        ratio = np.where(speed[here] > 0, before, after) / np.where(np.abs(step) < 1e-20, 1e-20, step)
        limit = np.maximum(0.0, np.maximum(np.minimum(1.0, 2 * ratio), np.minimum(2.0, ratio)))
        courant = np.abs(speed[here]) * 0.1
        return speed[here] * (tracer[ahead] + tracer[here]) * 0.5 - np.abs(speed[here]) * ((1 - limit) + courant * limit) * step * 0.5

    def run():
        east, north, changed = np.zeros(shape), np.zeros(shape), tracer.copy()
        east[1:-2, 2:-2] = flux(eastward, 0)
        north[2:-2, 1:-2] = flux(northward, 1)
        changed[2:-2, 2:-2] -= 0.1 * sea[2:-2, 2:-2] * (east[2:-2, 2:-2] - east[1:-3, 2:-2] + north[2:-2, 2:-2] - north[2:-2, 1:-3])
        return changed

    return run


@program(36, 70, 120, tiny=3)
def implicit_columns(n):
    """Diffusion down each column of water, implicit in time: tridiagonal systems, a level of the whole ocean at a time."""
    rng = np.random.default_rng(0)
    shape = _grid(n)
    mixing, kinetic, forcing = rng.random(shape), rng.random(shape), rng.random(shape)
    high = 1 + rng.random(shape[2])
    deepest = rng.integers(0, shape[2] - 1, shape[:2])

    def run():
        levels = np.arange(shape[2])
        water = levels[None, None, :] >= deepest[:, :, None]
        delta = np.zeros(shape)
        delta[:, :, :-1] = 0.5 * (mixing[:, :, :-1] + mixing[:, :, 1:]) / high[1:]
        lower, middle, upper = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        lower[:, :, 1:] = -delta[:, :, :-1] / high[1:]
        upper[:, :, :-1] = -delta[:, :, :-1] / high[:-1]
        middle[:, :, 1:-1] = 1 + (delta[:, :, 1:-1] + delta[:, :, :-2]) / high[1:-1] + 0.7 * np.sqrt(kinetic[:, :, 1:-1])
        middle[:, :, 0] = 1 + delta[:, :, 0] / high[0]
        middle[:, :, -1] = 1 + delta[:, :, -2] / (0.5 * high[-1]) + 0.7 * np.sqrt(kinetic[:, :, -1])
        middle = np.where(water, middle, 1.0)
        right = np.where(water, kinetic + forcing, 0.0)
        lower, upper = lower * water, upper * water
        ratio, found = np.zeros(shape), np.zeros(shape)
        ratio[:, :, 0] = upper[:, :, 0] / middle[:, :, 0]
        found[:, :, 0] = right[:, :, 0] / middle[:, :, 0]
        for k in range(1, shape[2]):
            pivot = middle[:, :, k] - lower[:, :, k] * ratio[:, :, k - 1]
            ratio[:, :, k] = upper[:, :, k] / pivot
            found[:, :, k] = (right[:, :, k] - lower[:, :, k] * found[:, :, k - 1]) / pivot
        for k in range(shape[2] - 2, -1, -1):
            found[:, :, k] -= ratio[:, :, k] * found[:, :, k + 1]
        return found

    return run
