"""Python loops over single elements."""

import numpy as np

from bench.ordinary import program


@program(2500, 25000, 250000, tiny=20)
def autoregression(n):
    """A series in which each value follows the two before it."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(n)

    def run():
        x = np.zeros(n)
        for t in range(2, n):
            x[t] = 0.6 * x[t - 1] + 0.3 * x[t - 2] + noise[t]
        return x, x.min(), x.max()

    return run


@program(370000, 4300000, 26000000, tiny=30)
def sieve(n):
    """The primes below n, by Eratosthenes."""

    def run():
        prime = np.ones(n, dtype=bool)
        prime[:2] = False
        for i in range(2, int(n**0.5) + 1):
            if prime[i]:
                prime[i * i :: i] = False
        return np.nonzero(prime)[0], prime.sum()

    return run


@program(90, 420, 1300, tiny=8)
def insertion_sort(n):
    """Sorting by insertion, with the permutation."""
    rng = np.random.default_rng(1)
    values = rng.random(n)

    def run():
        a = values.copy()
        order = np.arange(n)
        for i in range(1, n):
            key, index = a[i], order[i]
            j = i - 1
            while j >= 0 and a[j] > key:
                a[j + 1] = a[j]
                order[j + 1] = order[j]
                j -= 1
            a[j + 1] = key
            order[j + 1] = index
        return a, order

    return run


@program(910, 9200, 89000, tiny=25)
def counting(n):
    """A histogram, the largest value and where a threshold is crossed, by one loop over the values."""
    rng = np.random.default_rng(2)
    data = rng.random(n)

    def run():
        counts = np.zeros(10, dtype=int)
        largest, crossings, above = 0.0, 0, False
        for value in data:
            counts[int(value * 10)] += 1
            if value > largest:
                largest = value
            if (value > 0.5) != above:
                above = not above
                crossings += 1
        return counts, float(largest), crossings

    return run
