"""Describing data: running statistics, ranks, groups, tests, time series."""

from tests.programs.tolerance import close


def _sample(np, n=24):
    return ((np.arange(n) * 37) % 41) / 8.0


def describe(np):
    x = _sample(np)
    q1, q2, q3 = np.percentile(x, [25, 50, 75])
    return f"n={len(x)} min={x.min():.3f} q={q1:.3f}/{q2:.3f}/{q3:.3f} max={x.max():.3f} mean={x.mean():.4f} sd={x.std(ddof=1):.4f}"


@close(1e-15, "a sum of 15 squares in another order")
def standardise_columns(np):
    x = (np.arange(60) ** 2 % 23).reshape(15, 4).astype(float)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return z, np.allclose(z.mean(0), 0), np.allclose(z.std(0), 1)


@close(1e-15, "exact until the division; BLAS adds 12 products in its order")
def covariance_by_hand(np):
    x = _sample(np, 36).reshape(12, 3)
    centred = x - x.mean(0)
    cov = centred.T @ centred / (len(x) - 1)
    sd = np.sqrt(np.diag(cov))
    return cov, cov / np.outer(sd, sd), np.allclose(cov, np.cov(x, rowvar=False))


def welford_running_variance(np):
    mean = m2 = np.float64(0)
    out = []
    for n, value in enumerate(_sample(np, 10), start=1):
        delta = value - mean
        mean = mean + delta / n
        m2 = m2 + delta * (value - mean)
        out.append(m2 / n)
    return np.array(out), mean


def exponential_smoothing_loop(np):
    x = _sample(np, 12)
    alpha = 0.5
    s = np.empty_like(x)
    s[0] = x[0]
    for t in range(1, len(x)):
        s[t] = alpha * x[t] + (1 - alpha) * s[t - 1]
    return s


def exponential_weights_vectorised(np):
    x = _sample(np, 10)
    weights = 0.5 ** np.arange(len(x))[::-1]
    return np.cumsum(x * weights) / np.cumsum(weights), (weights * x).sum() / weights.sum()


def cumulative_extremes_drawdown(np):
    prices = np.array([100, 120, 90, 95, 130, 80, 85], dtype=float)
    peak = np.maximum.accumulate(prices)
    drawdown = (peak - prices) / peak
    return drawdown, drawdown.max(), prices[: drawdown.argmax()].argmax()


def histogram_by_bincount(np):
    x = _sample(np)
    edges = np.linspace(0, 5.5, 12)
    index = np.digitize(x, edges) - 1
    counts = np.bincount(index, minlength=11)
    return counts, np.histogram(x, bins=edges)[0], "".join("*" * c + "|" for c in counts.tolist())


def group_means_bincount(np):
    keys = np.array([0, 2, 1, 0, 2, 2, 1])
    values = np.array([1.0, 2, 3, 4, 5, 6, 8])
    sums = np.bincount(keys, weights=values)
    counts = np.bincount(keys)
    return sums / counts, {int(k): float(sums[k]) for k in np.unique(keys)}


def group_sums_add_at(np):
    labels = np.array(list("abacbb"))
    amount = np.array([5, 1, 7, 2, 3, 4])
    names, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    totals = np.zeros(len(names), dtype=amount.dtype)
    np.add.at(totals, inverse, amount)
    return totals, counts, dict(zip(names.tolist(), totals.tolist(), strict=True))


def group_by_sort_and_reduceat(np):
    keys = np.array([3, 1, 3, 2, 1, 3])
    values = np.array([10, 20, 30, 40, 50, 60])
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_values = keys[order], values[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    return sorted_keys[starts], np.add.reduceat(sorted_values, starts), np.maximum.reduceat(sorted_values, starts)


def ranks_with_ties(np):
    x = np.array([10, 20, 10, 30, 20, 10])
    order = x.argsort(kind="mergesort")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(x))
    dense = np.unique(x, return_inverse=True)[1]
    smaller = (x[:, None] > x).sum(1)
    equal = (x[:, None] == x).sum(1)
    return ranks, dense, smaller + (equal + 1) / 2


@close(1e-15, "BLAS adds 8 products in its order")
def spearman_correlation(np):
    x = np.array([1.0, 5, 3, 8, 2, 9, 4, 7])
    y = x**2 + np.array([0, -9, 4, 1, 0, -60, 2, 3])
    rx, ry = x.argsort().argsort(), y.argsort().argsort()
    return np.corrcoef(rx, ry)[0, 1], rx, ry


def bootstrap_means(np):
    rng = np.random.RandomState(3)
    x = np.arange(16)
    samples = x[rng.randint(0, 16, size=(20, 16))]
    means = np.sort(samples.mean(axis=1))
    return means, np.percentile(means, [5, 95])


def permutation_test(np):
    rng = np.random.RandomState(0)
    a, b = np.array([12, 15, 11, 18]), np.array([9, 8, 12, 7])
    observed = a.mean() - b.mean()
    pool = np.concatenate([a, b])
    count = 0
    for _ in range(15):
        rng.shuffle(pool)
        count += pool[:4].mean() - pool[4:].mean() >= observed
    return observed, int(count), pool


@close(1e-15, "logarithms within 4 ulp, sums of 4")
def entropy_and_divergence(np):
    p = np.array([0.5, 0.25, 0.125, 0.125])
    q = np.full(4, 0.25)
    nonzero = p > 0
    return -(p[nonzero] * np.log2(p[nonzero])).sum(), np.sum(p * np.log(p / q)), np.exp(-np.sum(p * np.log(p)))


@close(1e-15, "a sum of 6 quotients in another order")
def contingency_table(np):
    a = np.array([0, 1, 1, 2, 0, 2, 1])
    b = np.array([1, 0, 1, 1, 1, 0, 0])
    table = np.zeros((a.max() + 1, b.max() + 1), int)
    np.add.at(table, (a, b), 1)
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    return table, ((table - expected) ** 2 / expected).sum(), table.sum(axis=0)


def outliers_by_mad(np):
    x = np.array([1.0, 2, 2, 3, 2, 50, 1, 2, -40])
    median = np.median(x)
    mad = np.median(np.abs(x - median))
    mask = np.abs(x - median) > 5 * mad
    cleaned = np.where(mask, median, x)
    return x[mask], cleaned, np.flatnonzero(mask).tolist()


@close(1e-15, "a mean of 20 in another order")
def winsorise(np):
    x = np.arange(20)[::-1] ** 2
    low, high = np.quantile(x, [0.1, 0.9])
    clipped = np.clip(x, low, high)
    return clipped, clipped.mean(), (x < low).sum() + (x > high).sum()


def kolmogorov_smirnov(np):
    a, b = np.sort(_sample(np, 16)), np.sort(_sample(np, 16) ** 2 / 4)
    both = np.concatenate((a, b))
    fa = np.searchsorted(a, both, side="right") / a.size
    fb = np.searchsorted(b, both, side="right") / b.size
    return np.max(np.abs(fa - fb)), fa


@close(1e-15, "sums of 24 products in another order")
def autocorrelation(np):
    x = _sample(np)
    x = x - x.mean()
    c0 = (x * x).sum()
    return np.array([(x[: len(x) - k] * x[k:]).sum() / c0 for k in range(4)])


def mode_and_unique_counts(np):
    x = np.array([3, 1, 2, 3, 3, 2, 9, 1, 3])
    values, counts = np.unique(x, return_counts=True)
    return values[counts.argmax()], counts, values[counts == 1], sorted(zip(counts.tolist(), values.tolist(), strict=True), reverse=True)


def nan_aware_summary(np):
    table = np.array([[1.0, np.nan, 3], [4, 5, np.nan], [7, 8, 9], [np.nan, 0, 1]])
    means = np.nanmean(table, axis=0)
    filled = np.where(np.isnan(table), means, table)
    return means, filled, np.isnan(table).sum(axis=1), np.nanmax(table, axis=1), np.nansum(table)


def weighted_average_and_median(np):
    x = np.array([1.0, 4, 2, 8])
    w = np.array([1, 1, 4, 2])
    order = np.argsort(x)
    cw = np.cumsum(w[order])
    median = x[order][np.searchsorted(cw, cw[-1] / 2)]
    return np.average(x, weights=w), median, np.average(x.reshape(2, 2), axis=0)
