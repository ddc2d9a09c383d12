"""Integers, sequences and tables of dynamic programming."""

from tests.programs.tolerance import close


def edit_distance(np):
    a, b = "kitten", "sitting"
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1)
    d[0, :] = np.arange(len(b) + 1)
    for i, ca in enumerate(a, 1):
        for j, cb in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (ca != cb))
    return d, d[-1, -1]


def edit_distance_rows(np):
    a, b = (np.frombuffer(s, dtype=np.uint8) for s in (b"intention", b"execution"))
    row = np.arange(len(b) + 1)
    for i, ch in enumerate(a):
        new = np.minimum(row[1:] + 1, row[:-1] + (b != ch))
        new = np.concatenate(([i + 1], new))
        row = np.minimum.accumulate(new - np.arange(len(new))) + np.arange(len(new))
    return row[-1], row


def longest_common_subsequence(np):
    a, b = np.array(list("AGGTAB")), np.array(list("GXTXAYB"))
    equal = a[:, None] == b[None, :]
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(len(a)):
        for j in range(len(b)):
            table[i + 1, j + 1] = table[i, j] + 1 if equal[i, j] else max(table[i, j + 1], table[i + 1, j])
    return int(table[-1, -1]), table


def knapsack(np):
    weights, values = np.array([1, 3, 4, 5]), np.array([1, 4, 5, 7])
    best = np.zeros(8, dtype=np.int64)
    for w, v in zip(weights, values, strict=True):
        best[w:] = np.maximum(best[w:], best[:-w] + v)
    return best, best.max()


def coin_change_ways(np):
    ways = np.zeros(21, int)
    ways[0] = 1
    for coin in (1, 2, 5, 10):
        for amount in range(coin, 21):
            ways[amount] += ways[amount - coin]
    return ways


def matrix_chain(np):
    dims = np.array([10, 30, 5, 60, 8])
    n = len(dims) - 1
    cost = np.zeros((n, n), dtype=np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            k = np.arange(i, j)
            options = cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
            cost[i, j] = options.min()
    return cost[0, -1], cost


def prefix_sums_2d(np):
    grid = np.arange(30).reshape(5, 6) % 7
    s = np.pad(np.cumsum(np.cumsum(grid, axis=0), axis=1), ((1, 0), (1, 0)))
    queries = [(0, 0, 2, 3), (1, 2, 4, 5), (2, 2, 2, 2)]
    return [int(s[c + 1, d + 1] - s[a, d + 1] - s[c + 1, b] + s[a, b]) for a, b, c, d in queries], s


def pascal_triangle(np):
    n = 7
    t = np.zeros((n, n), dtype=int)
    t[:, 0] = 1
    for i in range(1, n):
        t[i, 1:] = t[i - 1, 1:] + t[i - 1, :-1]
    return t, t.sum(axis=1) == 2 ** np.arange(n)


def sieve_of_eratosthenes(np):
    n = 60
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    primes = np.flatnonzero(prime)
    return primes, np.diff(primes).max(), primes[np.diff(primes, append=0) == 2]


def sieve_with_steps_of_six(np):
    n = 50
    sieve = np.ones(n // 3 + (n % 6 == 2), dtype=bool)
    for i in range(1, int(n**0.5) // 3 + 1):
        if sieve[i]:
            k = 3 * i + 1 | 1
            sieve[k * k // 3 :: 2 * k] = False
            sieve[k * (k - 2 * (i & 1) + 4) // 3 :: 2 * k] = False
    return np.r_[2, 3, ((3 * np.nonzero(sieve)[0][1:] + 1) | 1)]


def popcounts(np):
    x = np.arange(32, dtype=np.uint32) * np.uint32(2654435761)
    v = x - ((x >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = ((v + (v >> 4) & 0x0F0F0F0F) * np.uint32(0x01010101)) >> 24
    by_bits = np.unpackbits(x.view(np.uint8).reshape(-1, 4), axis=1).sum(1)
    return v, (v == by_bits).all(), np.bitwise_count(x)


def gray_code(np):
    n = np.arange(16)
    gray = n ^ (n >> 1)
    decoded = gray.copy()
    for shift in (1, 2):
        decoded ^= decoded >> shift
    bits = (gray[:, None] >> np.arange(4)[::-1]) & 1
    return gray, decoded, np.abs(np.diff(bits, axis=0)).sum(1), bits


def pack_and_unpack_bits(np):
    flags = np.array([1, 0, 1, 1, 0, 0, 0, 1, 1, 1], dtype=bool)
    packed = np.packbits(flags)
    return packed, np.unpackbits(packed)[:10].astype(bool), np.unpackbits(packed, count=10).sum(), flags.dot(1 << np.arange(10))


def run_length_encoding(np):
    x = np.array([1, 1, 1, 4, 4, 2, 2, 2, 2, 1])
    change = np.flatnonzero(x[1:] != x[:-1]) + 1
    starts = np.concatenate(([0], change))
    lengths = np.diff(np.append(starts, len(x)))
    values = x[starts]
    return values, lengths, np.repeat(values, lengths), np.array_equal(np.repeat(values, lengths), x)


def longest_run_of_ones(np):
    bits = np.array([0, 1, 1, 0, 1, 1, 1, 1, 0, 1])
    d = np.diff(np.concatenate(([0], bits, [0])))
    starts, ends = np.where(d == 1)[0], np.where(d == -1)[0]
    counter, runs = 0, []
    for b in bits:
        counter = counter + 1 if b else 0
        runs.append(counter)
    return (ends - starts).max(), starts, ends, max(runs)


def fibonacci_three_ways(np):
    n = 20
    f = np.zeros(n, dtype=np.int64)
    f[1] = 1
    for i in range(2, n):
        f[i] = f[i - 1] + f[i - 2]
    m = np.linalg.matrix_power(np.array([[1, 1], [1, 0]]), n - 2)
    phi = (1 + 5**0.5) / 2
    return f, m[0, 0], np.rint(phi ** np.arange(n) / 5**0.5).astype(int)


def collatz_lengths(np):
    n = np.arange(1, 17)
    steps = np.zeros_like(n)
    active = n > 1
    while active.any():
        n = np.where(active, np.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps += active
        active = n > 1
    return steps, steps.argmax() + 1


def maximum_subarray(np):
    x = np.array([-2, 1, -3, 4, -1, 2, 1, -5, 4])
    prefix = np.concatenate(([0], np.cumsum(x)))
    best = (prefix[1:] - np.minimum.accumulate(prefix)[:-1]).max()
    here = top = x[0]
    for value in x[1:]:
        here = max(value, here + value)
        top = max(top, here)
    return best, top


def longest_increasing_subsequence(np):
    x = np.array([3, 10, 2, 1, 20, 4, 6])
    tails = []
    for value in x:
        at = int(np.searchsorted(tails, value))
        tails[at : at + 1] = [value]
    return len(tails), [int(t) for t in tails]


def permutation_cycles(np):
    p = np.array([2, 0, 1, 4, 3, 5])
    inverse = np.empty_like(p)
    inverse[p] = np.arange(p.size)
    seen = np.zeros(p.size, dtype=bool)
    cycles = []
    for i in range(p.size):
        cycle = []
        while not seen[i]:
            seen[i] = True
            cycle.append(int(i))
            i = p[i]
        if cycle:
            cycles.append(tuple(cycle))
    return cycles, inverse, p[inverse], np.argsort(p)


def bubble_sort_in_place(np):
    a = np.array([5, 2, 9, 1, 7, 3])
    swaps = 0
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swaps += 1
    return swaps, a


def insertion_by_slices(np):
    a = np.array([4.0, 1.0, 3.0, 2.0, 5.0])
    for i in range(1, len(a)):
        value = a[i]
        j = np.searchsorted(a[:i], value)
        a[j + 1 : i + 1] = a[j:i].copy()
        a[j] = value
    return a


def binary_search_vectorised(np):
    table = np.arange(0, 64, 3)
    wanted = np.array([0, 4, 21, 63, 70])
    lo, hi = np.zeros(5, int), np.full(5, len(table))
    while np.any(lo < hi):
        mid = (lo + hi) // 2
        right = table[np.minimum(mid, len(table) - 1)] < wanted
        active = lo < hi
        lo = np.where(active & right, mid + 1, lo)
        hi = np.where(active & ~right, mid, hi)
    return lo, np.array_equal(lo, np.searchsorted(table, wanted))


def base_conversion(np):
    n = np.array([0, 5, 19, 255])
    powers = 3 ** np.arange(6)[::-1]
    digits = n[:, None] // powers % 3
    return digits, digits @ powers, ["".join(map(str, row)) for row in digits.tolist()], np.base_repr(19, 3)


def polynomial_product_and_horner(np):
    p, q = np.array([1, -3, 2]), np.array([2, 0, 1])
    product = np.zeros(len(p) + len(q) - 1, dtype=p.dtype)
    for i, c in enumerate(p):
        product[i : i + len(q)] += c * q
    x = np.arange(-2, 3)
    y = np.zeros_like(x)
    for c in product:
        y = y * x + c
    return product, y, np.array_equal(product, np.convolve(p, q))


def greatest_common_divisors(np):
    a, b = np.array([12, 18, 35, 100]), np.array([8, 27, 21, 75])
    x, y = a.copy(), b.copy()
    while y.any():
        safe = np.where(y == 0, 1, y)
        x, y = np.where(y == 0, x, y), np.where(y == 0, 0, x % safe)
    return x, np.gcd(a, b), np.lcm.reduce(a), a * b // x


def cumulative_sum_with_resets(np):
    x = np.array([1, 1, 0, 1, 1, 1, 0, 1])
    c = np.cumsum(x)
    offset = np.maximum.accumulate(np.where(x == 0, c, 0))
    return c - offset, np.split(x, np.flatnonzero(x == 0))


@close(1e-15, "a quotient of a power within 4 ulp")
def luhn_and_checksums(np):
    digits = np.array([7, 9, 9, 2, 7, 3, 9, 8, 7, 1, 3])
    doubled = digits.copy()
    doubled[-2::-2] *= 2
    doubled[doubled > 9] -= 9
    crc = np.bitwise_xor.reduce(digits << np.arange(11))
    return doubled.sum() % 10 == 0, crc, np.log10(digits.prod())
