"""Chance and motion: random walks, Monte Carlo, particles, differential equations, markets."""

from tests.programs.tolerance import close


def monte_carlo_pi(np):
    rng = np.random.RandomState(42)
    points = rng.uniform(-1, 1, size=(500, 2))
    inside = (points**2).sum(axis=1) <= 1
    return 4 * inside.mean(), np.count_nonzero(inside)


def random_walk_extremes(np):
    rng = np.random.default_rng(0)
    steps = rng.choice([-1, 1], size=(5, 40))
    walks = steps.cumsum(axis=1)
    crossed = np.abs(walks) >= 5
    first = np.where(crossed.any(axis=1), crossed.argmax(axis=1), -1)
    return walks[:, -1], walks.max(axis=1), first


def random_walk_on_a_grid(np):
    rng = np.random.RandomState(5)
    moves = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
    path = np.vstack([[0, 0], moves[rng.randint(4, size=30)].cumsum(axis=0)])
    visited = {tuple(p) for p in path.tolist()}
    return path[-1], len(visited), np.ptp(path, axis=0)


@close(1e-15, "sums of 4 forces in another order, 3 steps")
def n_body_leapfrog(np):
    position = np.array([[0.0, 0], [1, 0], [0, 2], [-1.5, -1]])
    velocity = np.zeros((4, 2))
    mass = np.array([5.0, 1, 1, 1])
    dt = 0.01
    for _ in range(3):
        difference = position[None] - position[:, None]
        distance3 = ((difference**2).sum(-1) + 0.01) ** 1.5
        acceleration = (mass[None, :, None] * difference / distance3[..., None]).sum(axis=1)
        velocity += dt * acceleration
        position += dt * velocity
    return position, 0.5 * (mass * (velocity**2).sum(1)).sum()


def simulated_annealing(np):
    rng = np.random.RandomState(11)
    cities = rng.randint(0, 50, size=(7, 2))
    distance = np.abs(cities[:, None] - cities).sum(-1)
    tour = np.arange(7)
    cost = distance[tour, np.roll(tour, -1)].sum()
    temperature = 20.0
    for _ in range(15):
        i, j = np.sort(rng.choice(7, 2, replace=False))
        candidate = tour.copy()
        candidate[i : j + 1] = candidate[i : j + 1][::-1]
        new = distance[candidate, np.roll(candidate, -1)].sum()
        if new < cost or rng.rand() < np.exp((cost - new) / temperature):
            tour, cost = candidate, new
        temperature *= 0.9
    return tour, cost


def ising_sweep(np):
    rng = np.random.RandomState(1)
    spins = rng.choice([-1, 1], size=(6, 6))
    checker = np.indices((6, 6)).sum(axis=0) % 2
    for _ in range(2):
        for parity in (0, 1):
            field = sum(np.roll(spins, s, a) for s in (-1, 1) for a in (0, 1))
            energy = 2 * spins * field
            flip = (energy <= 0) | (rng.rand(6, 6) < np.exp(-energy * 0.4))
            spins[flip & (checker == parity)] *= -1
    return spins, spins.sum()


def epidemic_sir(np):
    beta, gamma, dt = 0.5, 0.25, 0.5
    state = np.array([0.99, 0.01, 0.0])
    history = np.empty((9, 3))
    for t in range(9):
        history[t] = state
        s, i, _ = state
        new, recovered = beta * s * i * dt, gamma * i * dt
        state = state + np.array([-new, new - recovered, recovered])
    return history, history[:, 1].argmax()


@close(1e-15, "sines within 4 ulp")
def pendulum_runge_kutta(np):
    def f(y):
        return np.array([y[1], -9.81 * np.sin(y[0])])

    y = np.array([1.0, 0.0])
    h = 0.05
    for _ in range(4):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def lotka_volterra_table(np):
    n, dt = 12, 0.125
    out = np.zeros((n, 2))
    out[0] = 10, 5
    for k in range(n - 1):
        prey, hunters = out[k]
        out[k + 1, 0] = prey + dt * (prey * (1.0 - 0.25 * hunters))
        out[k + 1, 1] = hunters + dt * hunters * (0.125 * prey - 0.5)
    return out, out.max(axis=0)


def bouncing_balls(np):
    x = np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
    v = np.array([[0.25, 0.5], [0.5, -0.25], [-0.5, 0.5]])
    for _ in range(5):
        x += 0.25 * v
        out = (x < 0) | (x > 1)
        v[out] *= -1
        x = np.clip(x, 0, 1)
    return x, v


@close(1e-15, "a growth factor within 4 ulp, raised and multiplied 8 times")
def binomial_option_tree(np):
    s, k, r, sigma, t, n = 100.0, 105.0, 0.05, 0.2, 1.0, 8
    dt = t / n
    up = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(r * dt) - 1 / up) / (up - 1 / up)
    prices = s * up ** np.arange(n, -n - 1, -2.0)
    values = np.maximum(k - prices, 0)
    for _ in range(n):
        prices = prices[:-1] / up
        values = np.exp(-r * dt) * (p * values[:-1] + (1 - p) * values[1:])
        values = np.maximum(values, k - prices)
    return values[0], p


@close(1e-15, "exponentials within 4 ulp; means of 64 paths")
def monte_carlo_option(np):
    rng = np.random.default_rng(7)
    z = rng.standard_normal((64, 4))
    paths = 100 * np.exp(np.cumsum((0.01 - 0.02) * 0.25 + 0.2 * 0.5 * z, axis=1))
    payoff = np.maximum(paths[:, -1] - 100, 0)
    knocked = (paths < 80).any(axis=1)
    return payoff.mean(), np.where(knocked, 0, payoff).mean(), paths[:, -1].std()


@close(1e-15, "BLAS products of 3 and 12 terms")
def portfolio_frontier(np):
    returns = np.array([0.01, 0.02, -0.01, 0.03, 0.0, 0.015] * 6).reshape(12, 3) + np.arange(12)[:, None] % 5 / 500
    mu, cov = returns.mean(axis=0), np.cov(returns.T)
    rng = np.random.RandomState(0)
    w = rng.dirichlet(np.ones(3), size=8)
    mean = w @ mu
    risk = np.sqrt(np.einsum("ij,jk,ik->i", w, cov, w))
    best = np.argmax(mean / risk)
    return mean, risk, w[best]


def queue_waiting_times(np):
    arrival = np.cumsum(np.array([1, 2, 1, 3, 1, 1]))
    service = np.array([2, 3, 1, 1, 4, 1])
    wait = np.zeros(6, int)
    for i in range(1, 6):
        wait[i] = max(0, wait[i - 1] + service[i - 1] - (arrival[i] - arrival[i - 1]))
    done = arrival + wait + service
    return wait, done, f"mean wait {wait.mean():.3f}, busy {service.sum() / done.max():.1%}"


@close(1e-15, "BLAS products of 3 terms")
def markov_chain_stationary(np):
    p = np.array([[0.9, 0.075, 0.025], [0.15, 0.8, 0.05], [0.25, 0.25, 0.5]])
    state = np.array([1.0, 0, 0])
    trail = [state]
    while True:
        new = state @ p
        if np.abs(new - state).max() < 0.05:
            break
        state = new
        trail.append(state)
    return np.array(trail), len(trail)


def markov_chain_sampling(np):
    rng = np.random.RandomState(9)
    cumulative = np.cumsum([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], axis=1)
    state, visits = 0, np.zeros(3, int)
    for u in rng.rand(25):
        state = int((u < cumulative[state]).argmax())
        visits[state] += 1
    return visits, visits / visits.sum()


def genetic_algorithm(np):
    rng = np.random.RandomState(4)
    target = np.arange(12) % 2
    population = rng.randint(0, 2, (8, 12))
    for generation in range(3):
        fitness = (population == target).sum(axis=1)
        if fitness.max() == 12:
            break
        parents = population[np.argsort(-fitness, kind="stable")[:4]]
        cut = rng.randint(1, 11, size=4)
        children = np.where(np.arange(12) < cut[:, None], parents, parents[::-1])
        mutate = rng.rand(4, 12) < 0.1
        children[mutate] ^= 1
        population = np.concatenate([parents, children])
    return population, fitness, generation


@close(1e-15, "sines within 4 ulp, means of 5 in another order")
def kuramoto_oscillators(np):
    theta = np.linspace(0, 3, 5)
    omega = np.array([0.9, 1.0, 1.1, 0.95, 1.05])
    for _ in range(4):
        coupling = np.sin(theta[None, :] - theta[:, None]).mean(axis=1)
        theta = (theta + 0.1 * (omega + 2 * coupling)) % (2 * np.pi)
    return theta, np.abs(np.exp(1j * theta).mean())


def metropolis_sampler(np):
    rng = np.random.RandomState(8)

    def log_density(v):
        return -0.5 * v * v

    x, accepted = 0.0, 0
    chain = np.empty(30)
    for i in range(30):
        proposal = x + rng.uniform(-1, 1)
        if np.log(rng.rand()) < log_density(proposal) - log_density(x):
            x, accepted = proposal, accepted + 1
        chain[i] = x
    return chain, accepted


def brownian_bridge(np):
    rng = np.random.default_rng(3)
    t = np.linspace(0, 1, 17)
    w = np.concatenate([[0.0], np.cumsum(rng.normal(scale=0.25, size=16))])
    bridge = w - t * w[-1]
    return bridge, bridge[[0, -1]], np.sign(bridge[1:-1]).sum()


def generator_distributions(np):
    rng = np.random.default_rng(2024)
    draws = (rng.integers(0, 10, 5), rng.random(3), rng.exponential(2.0, 4), rng.poisson(3, (2, 2)), rng.binomial(10, 0.3, 4))
    deck = np.arange(10)
    rng.shuffle(deck)
    return *draws, deck, rng.permutation(4), rng.choice(5, size=3, replace=False), rng.integers(100)


def percolation_threshold(np):
    rng = np.random.RandomState(12)
    order = rng.permutation(25)
    field = np.zeros((5, 5), bool)
    for opened, site in enumerate(order, 1):
        field.flat[site] = True
        wet = np.zeros_like(field)
        wet[0] = field[0]
        while True:
            grown = wet.copy()
            grown[1:] |= wet[:-1]
            grown[:-1] |= wet[1:]
            grown[:, 1:] |= wet[:, :-1]
            grown[:, :-1] |= wet[:, 1:]
            grown &= field
            if np.array_equal(grown, wet):
                break
            wet = grown
        if wet[-1].any():
            break
    return opened, wet, field.mean()


def pairwise_collisions(np):
    p = np.array([[0, 0], [1, 1], [5, 5], [5, 6], [9, 0]])
    d2 = ((p[:, None] - p[None]) ** 2).sum(axis=2)
    i, j = np.triu_indices(len(p), k=1)
    close_pairs = d2[i, j] <= 2
    np.fill_diagonal(d2, d2.max() + 1)
    return list(zip(i[close_pairs].tolist(), j[close_pairs].tolist(), strict=True)), d2.argmin(axis=1), np.sqrt(d2.min(axis=1))


def compound_interest_schedule(np):
    rate, payment = 0.0625, 300.0
    balance = np.float64(1000)
    rows = []
    while balance > 0:
        interest = balance * rate
        paid = min(payment, balance + interest)
        balance = balance + interest - paid
        rows.append((interest, paid, balance))
    return np.array(rows), len(rows)
