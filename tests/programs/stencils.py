"""Grids whose cells look at their neighbours: cellular automata, relaxation, waves, windows."""

from tests.programs.tolerance import close


def game_of_life_roll(np):
    board = np.zeros((8, 8), dtype=int)
    board[1, 2] = board[2, 3] = board[3, 1] = board[3, 2] = board[3, 3] = 1
    for _ in range(4):
        neighbours = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        board = np.where((neighbours == 3) | ((board == 1) & (neighbours == 2)), 1, 0)
    return board, board.sum()


def game_of_life_slices(np):
    z = np.zeros((10, 10), dtype=np.uint8)
    z[4, 3:6] = 1
    for _ in range(3):
        n = (
            z[:-2, :-2] + z[:-2, 1:-1] + z[:-2, 2:]
            + z[1:-1, :-2] + z[1:-1, 2:]
            + z[2:, :-2] + z[2:, 1:-1] + z[2:, 2:]
        )  # fmt: skip
        birth = (n == 3) & (z[1:-1, 1:-1] == 0)
        survive = ((n == 2) | (n == 3)) & (z[1:-1, 1:-1] == 1)
        z[...] = 0
        z[1:-1, 1:-1][birth | survive] = 1
    return z


def game_of_life_padded(np):
    rng = np.random.RandomState(1)
    alive = rng.rand(9, 9) > 0.6
    history = []
    for _ in range(3):
        padded = np.pad(alive, 1, mode="wrap").astype(np.int8)
        count = np.zeros(alive.shape, np.int8)
        for i in range(3):
            for j in range(3):
                if i != 1 or j != 1:
                    count += padded[i : i + 9, j : j + 9]
        alive = (count == 3) | (alive & (count == 2))
        history.append(int(alive.sum()))
    return alive, history


def rule_30(np):
    width, steps = 21, 6
    rule = np.array([(30 >> k) & 1 for k in range(8)], dtype=np.uint8)
    grid = np.zeros((steps, width), np.uint8)
    grid[0, width // 2] = 1
    for t in range(1, steps):
        row = grid[t - 1]
        code = 4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)
        grid[t] = rule[code]
    return grid, grid.sum(axis=1)


def rule_110_bits(np):
    row = np.zeros(16, dtype=bool)
    row[-1] = True
    lines = []
    for _ in range(5):
        lines.append("".join("#" if c else "." for c in row))
        left, right = np.roll(row, 1), np.roll(row, -1)
        row = (row | right) & ~(left & row & right)
    return "\n".join(lines), row


@close(1e-15, "exponentials within 4 ulp")
def heat_equation_1d(np):
    x = np.linspace(0.0, 1.0, 21)
    u = np.exp(-100 * (x - 0.5) ** 2)
    alpha = 0.25
    for _ in range(5):
        u[1:-1] = u[1:-1] + alpha * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u, u.max()


def heat_plate_until_converged(np):
    u = np.zeros((8, 8))
    u[0, :] = 100.0
    for step in range(200):
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        err = np.abs(u - old).max()
        if err < 5.0:
            break
    return u, err, step


def jacobi_two_buffers(np):
    new = np.zeros((7, 9))
    new[:, 0] = 1.0
    old = new.copy()
    for _ in range(6):
        old, new = new, old
        new[1:-1, 1:-1] = (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2]) / 4
    return new, np.abs(new - old).max()


def gauss_seidel_red_black(np):
    n = 8
    u = np.zeros((n + 2, n + 2))
    u[0] = 1
    i, j = np.indices((n, n))
    red = (i + j) % 2 == 0
    inner = u[1:-1, 1:-1]
    for _ in range(3):
        for colour in (red, ~red):
            average = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
            inner[colour] = average[colour]
    return u


def gauss_seidel_scalar_loop(np):
    u = np.zeros((5, 5))
    u[-1] = 4.0
    f = np.ones((5, 5))
    for i in range(1, 4):
        for j in range(1, 4):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return u


def wave_equation_buffer_swap(np):
    n, c2 = 32, 0.25
    x = np.arange(n)
    previous = np.where((x > 10) & (x < 20), 1.0, 0.0)
    current = previous.copy()
    following = np.empty_like(current)
    for _ in range(6):
        following[1:-1] = 2 * current[1:-1] - previous[1:-1] + c2 * (current[2:] - 2 * current[1:-1] + current[:-2])
        following[0] = following[-1] = 0
        previous, current, following = current, following, previous
    return current, (current**2).sum() < 100


def upwind_advection(np):
    u = np.zeros(24)
    u[4:8] = 1.0
    cfl = 0.5
    mass = [u.sum()]
    for _ in range(5):
        u -= cfl * (u - np.roll(u, 1))
        mass.append(u.sum())
    return u, np.array(mass)


def finite_volume_fluxes(np):
    h = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25])
    dt_dx = 0.125
    for _ in range(4):
        flux = 0.5 * h**2
        interface = 0.5 * (flux[:-1] + flux[1:]) - 0.5 * (h[1:] - h[:-1])
        h[1:-1] -= dt_dx * (interface[1:] - interface[:-1])
    return h


def reaction_diffusion(np):
    u, v = np.ones((10, 10)), np.zeros((10, 10))
    u[4:6, 4:6], v[4:6, 4:6] = 0.5, 0.25

    def laplacian(z):
        return np.roll(z, 1, 0) + np.roll(z, -1, 0) + np.roll(z, 1, 1) + np.roll(z, -1, 1) - 4 * z

    for _ in range(3):
        uvv = u * v * v
        u = u + 0.16 * laplacian(u) - uvv + 0.035 * (1 - u)
        v = v + 0.08 * laplacian(v) + uvv - (0.035 + 0.065) * v
    return u, v


def sandpile(np):
    sand = np.zeros((7, 7), dtype=int)
    sand[3, 3] = 24
    rounds = 0
    while (sand >= 4).any():
        topple = sand >= 4
        sand[topple] -= 4
        sand[1:, :] += topple[:-1, :]
        sand[:-1, :] += topple[1:, :]
        sand[:, 1:] += topple[:, :-1]
        sand[:, :-1] += topple[:, 1:]
        rounds += 1
    return sand, rounds


def langtons_ant(np):
    grid = np.zeros((11, 11), dtype=bool)
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    y = x = 5
    heading = 0
    for _ in range(40):
        heading = (heading + (-1 if grid[y, x] else 1)) % 4
        grid[y, x] = not grid[y, x]
        y, x = y + moves[heading][0], x + moves[heading][1]
    return grid, (y, x), np.count_nonzero(grid)


def forest_fire_spread(np):
    rng = np.random.RandomState(7)
    forest = (rng.random_sample((12, 12)) < 0.7).astype(np.int8)
    forest[0, forest[0] == 1] = 2
    steps = 0
    while np.any(forest == 2):
        burning = forest == 2
        near = np.zeros_like(burning)
        near[1:] |= burning[:-1]
        near[:-1] |= burning[1:]
        near[:, 1:] |= burning[:, :-1]
        near[:, :-1] |= burning[:, 1:]
        forest[burning] = 3
        forest[near & (forest == 1)] = 2
        steps += 1
    return forest, steps, np.bincount(forest.ravel(), minlength=4)


def sliding_window_maximum(np):
    x = np.array([1, 3, -1, -3, 5, 3, 6, 7])
    windows = np.lib.stride_tricks.sliding_window_view(x, 3)
    return windows.max(axis=-1), windows.shape, [int(max(w)) for w in windows]


def moving_average_three_ways(np):
    x = np.arange(20) % 7
    k = 4
    c = np.cumsum(np.insert(x, 0, 0))
    by_cumsum = (c[k:] - c[:-k]) / k
    by_convolve = np.convolve(x, np.ones(k), "valid") / k
    by_windows = np.lib.stride_tricks.sliding_window_view(x, k).mean(axis=1)
    return by_cumsum, np.array_equal(by_cumsum, by_convolve), np.array_equal(by_cumsum, by_windows)


def erosion_and_dilation(np):
    image = np.zeros((9, 9), bool)
    image[2:7, 2:7] = True
    image[4, 4] = False
    padded = np.pad(image, 1)
    shifts = [padded[i : i + 9, j : j + 9] for i in range(3) for j in range(3)]
    dilated = np.logical_or.reduce(shifts)
    eroded = np.logical_and.reduce(shifts)
    return dilated, eroded, (dilated ^ eroded).sum()


def multigrid_restrict_prolong(np):
    fine = np.arange(81.0).reshape(9, 9)
    coarse = fine[::2, ::2].copy()
    back = np.zeros_like(fine)
    back[::2, ::2] = coarse
    back[1::2, ::2] = (back[:-2:2, ::2] + back[2::2, ::2]) / 2
    back[:, 1::2] = (back[:, :-2:2] + back[:, 2::2]) / 2
    return coarse, back, np.abs(fine - back).max()


def shallow_water_staggered(np):
    eta = np.zeros((6, 6))
    eta[2:4, 2:4] = 1.0
    u, v = np.zeros((6, 7)), np.zeros((7, 6))
    for _ in range(3):
        u[:, 1:-1] -= 0.25 * np.diff(eta, axis=1)
        v[1:-1] -= 0.25 * np.diff(eta, axis=0)
        eta -= 0.5 * (np.diff(u, axis=1) + np.diff(v, axis=0))
    return eta, u, v
