"""Picking, placing and rearranging: masks, fancy indices, orders, iterators, views."""


def boolean_mask_writes(np):
    a = np.arange(12).reshape(3, 4)
    a[a % 3 == 0] *= -1
    a[a > 7] = 7
    even_rows = a.sum(axis=1) % 2 == 0
    a[even_rows, ::2] = 100
    return a, a[a < 0], np.count_nonzero(a == 100)


def nested_where_chain(np):
    t = np.array([-15, 3, 12, 21, 35, 50])
    label = np.where(t < 0, 0, np.where(t < 10, 1, np.where(t < 25, 2, 3)))
    names = np.array(["frost", "cold", "mild", "hot"])
    return label, [str(n) for n in names[label]]


def select_choose_piecewise(np):
    x = np.arange(-4, 5)
    selected = np.select([x < -1, x > 1], [-x, x**2], default=0)
    chosen = np.choose((x > 0).astype(int) + (x > 2), [x, 10 * x, 100 * x])
    pieces = np.piecewise(x.astype(float), [x < 0, x >= 0], [lambda v: v / 2, lambda v: v * 3])
    return selected, chosen, pieces


def take_put_compress_extract(np):
    a = np.arange(10) * 10
    b = a.copy()
    np.put(b, [0, 3, -1], [-1, -2, -3])
    return a.take([1, 3, -2]), b, np.compress([True, False, True], a[:3]), np.extract(a % 20 == 0, a), np.take(a, [12, 3], mode="wrap")


def top_k_with_partition(np):
    x = np.array([9, 1, 8, 2, 7, 3, 6])
    k = 3
    threshold = np.partition(x, -k)[-k]
    top = np.sort(x[np.argpartition(x, -k)[-k:]])[::-1]
    return top, threshold, np.sort(np.argsort(-x)[:k])


def sort_rows_by_several_keys(np):
    people = np.array([[3, 20], [1, 30], [3, 10], [2, 30]])
    order = np.lexsort((people[:, 1], people[:, 0]))
    by_last = people[people[:, 1].argsort(kind="stable")[::-1]]
    return people[order], by_last, sorted(people.tolist(), key=lambda r: (-r[1], r[0]))


def duplicate_indices_assign_and_add(np):
    a = np.zeros(5, dtype=int)
    i = np.array([1, 1, 3, 1])
    a[i] += 1
    b = np.zeros(5, dtype=int)
    np.add.at(b, i, 1)
    c = np.zeros(5, dtype=int)
    c[i] = [10, 20, 30, 40]
    np.maximum.at(c, [0, 0], [3, 2])
    return a, b, c


def outer_index_grids(np):
    a = np.arange(30).reshape(5, 6)
    picked = a[np.ix_([0, 2, 4], [1, 5])]
    a[np.ix_([True, False, True, False, False], [0, 3])] = -1
    rows, columns = np.meshgrid([1, 2], [3, 4], indexing="ij")
    return picked, a, a[rows, columns]


def mesh_grids(np):
    y, x = np.mgrid[0:3, 0:4]
    oy, ox = np.ogrid[0:3, 0:4]
    xx, yy = np.meshgrid(np.arange(4), np.arange(3), sparse=False)
    points = np.c_[xx.ravel(), yy.ravel()]
    return x + 10 * y, np.array_equal(x * y, ox * oy), points, np.stack(np.indices((2, 2)), -1).reshape(-1, 2)


def multiplication_table(np):
    n = np.arange(1, 6)
    table = n[:, np.newaxis] * n
    return table, np.multiply.outer(n, n) == table, np.power.outer(n[:3], n[:3]), table[np.triu_indices(5)]


def overlapping_views_in_place(np):
    a = np.arange(10)
    a[1:] += a[:-1]
    b = np.arange(10)
    b[2:] = b[:-2]
    c = np.arange(9).reshape(3, 3)
    c += c.T
    d = np.arange(6)
    d[::-1] -= d
    return a, b, c, d


def views_see_writes(np):
    a = np.zeros((4, 4), dtype=int)
    row, column, block, diagonal = a[1], a[:, 2], a[2:, 2:], a.ravel()[::5]
    row[:] = 1
    column += 2
    block *= 3
    diagonal[0] = 9
    flat = a.reshape(-1)
    flat[-1] = 7
    return a, row.sum(), block.copy(), diagonal, flat.base is not None


def swap_rows_and_columns(np):
    a = np.arange(16).reshape(4, 4)
    a[[0, 3]] = a[[3, 0]]
    a[:, [1, 2]] = a[:, [2, 1]]
    b = a.copy()
    b[0], b[1] = b[1].copy(), b[0].copy()
    return a, b


def unravel_and_ravel(np):
    a = np.array([[3, 8, 1], [9, 2, 7]])
    flat = a.argmax()
    i, j = np.unravel_index(flat, a.shape)
    order = np.argsort(a, axis=None)[::-1]
    coordinates = list(zip(*(c.tolist() for c in np.unravel_index(order, a.shape)), strict=True))
    return flat, (int(i), int(j)), coordinates, np.ravel_multi_index(([1, 0], [2, 1]), a.shape)


def ndenumerate_and_ndindex(np):
    a = np.array([[1, 2], [3, 4]])
    total = 0
    for (i, j), value in np.ndenumerate(a):
        total += value * (10 * i + j)
    out = np.empty((2, 3), dtype=object)
    for index in np.ndindex(2, 3):
        out[index] = sum(index)
    return total, out.tolist(), [int(v) for v in a.flat]


def nditer_loops(np):
    a = np.arange(6).reshape(2, 3)
    b = np.array([10, 20, 30])
    pairs = [(int(x), int(y)) for x, y in np.nditer([a, b])]
    it = np.nditer(a, flags=["multi_index"])
    places = {it.multi_index: int(v) for v in it}
    return pairs, places


def loop_over_rows_with_zip(np):
    xs, ys = np.array([1.5, 2.5, 3.5]), np.array([[1, 2], [3, 4], [5, 6]])
    lines = [f"{i}: {x:.2f} {row} {row.sum():>4d}" for i, (x, row) in enumerate(zip(xs, ys, strict=True))]
    return lines, sum(x * row[0] for x, row in zip(xs, ys, strict=True))


def dictionary_keyed_by_elements(np):
    words = np.array([3, 1, 3, 7, 1, 3])
    counts = {}
    for w in words:
        counts[w] = counts.get(w, 0) + 1
    index = {v: i for i, v in enumerate(np.unique(words))}
    most = max(counts, key=counts.get)
    return {int(k): v for k, v in counts.items()}, [index[w] for w in words], most, 7 in counts


def sets_of_values(np):
    a, b = np.array([1, 5, 3, 5, 9]), np.array([5, 9, 11])
    return np.intersect1d(a, b), np.union1d(a, b), np.setdiff1d(a, b), np.isin(a, b), set(a.tolist()) & set(b.tolist()), np.unique(a)


def rows_unique_and_first_index(np):
    a = np.array([[1, 2], [3, 4], [1, 2], [0, 9]])
    rows, first, counts = np.unique(a, axis=0, return_index=True, return_counts=True)
    return rows, a[np.sort(first)], counts


def roll_shift_and_diff(np):
    x = np.array([1, 4, 9, 16, 25])
    lag = np.empty(5)
    lag[0] = np.nan
    lag[1:] = x[:-1]
    return np.roll(x, 2), x - lag, np.diff(x, 2), np.ediff1d(x, to_begin=0), np.gradient(x.astype(float))


def build_by_lists_and_stacks(np):
    rows = []
    for i in range(3):
        row = []
        for j in range(4):
            row.append(i * j)
        rows.append(row)
    a = np.array(rows)
    columns = [a[:, j] ** 2 for j in range(4)]
    stacked = np.stack(columns)
    return a, stacked, np.vstack([a, a[:1]]), np.hstack([a, stacked.T]), np.dstack((a, a)).shape


def insert_delete_append(np):
    a = np.arange(6)
    b = np.insert(a, [1, 3], [100, 200])
    c = np.delete(b, np.s_[::3])
    d = np.append(np.arange(4).reshape(2, 2), [[7, 8]], axis=0)
    return b, c, d, np.delete(d, 1, axis=1)


def tile_repeat_broadcast(np):
    a = np.array([[1, 2], [3, 4]])
    b = np.broadcast_to(np.arange(3), (2, 3))
    x, y = np.broadcast_arrays(np.arange(2)[:, None], np.arange(3))
    return np.tile(a, (2, 2)), np.repeat(a, [1, 3], axis=0), b + 1, x * 10 + y, np.kron(a, np.ones((2, 1), int))


def along_axis_gather_scatter(np):
    a = np.array([[10, 30, 20], [60, 40, 50]])
    order = np.argsort(a, axis=1)
    b = a.copy()
    np.put_along_axis(b, a.argmax(axis=1)[:, None], 0, axis=1)
    return np.take_along_axis(a, order, axis=1), b, np.apply_along_axis(lambda r: r[::-1].cumsum(), 1, a)


def strided_diagonals_and_windows(np):
    a = np.arange(16, dtype=np.int64).reshape(4, 4)
    diagonal = np.lib.stride_tricks.as_strided(a, shape=(4,), strides=(a.strides[0] + a.strides[1],))
    blocks = np.lib.stride_tricks.as_strided(a, (2, 2, 2, 2), (64, 16, 32, 8))
    return diagonal, blocks.sum(axis=(2, 3)), a.T.strides, a[::2, ::-1].strides


def axes_moves(np):
    a = np.arange(24).reshape(2, 3, 4)
    b = np.moveaxis(a, 0, -1)
    c = a.transpose(2, 0, 1)[1]
    d = np.swapaxes(a, 0, 2)
    return b, c, d.shape, np.squeeze(a[:, :1]).shape, np.expand_dims(a, 1).shape, a.reshape(4, -1, order="F")


def digitize_and_lookup(np):
    scores = np.array([55, 92, 78, 100, 61])
    edges = np.array([60, 70, 80, 90])
    grades = np.array(list("FDCBA"))
    index = np.digitize(scores, edges)
    return index, "".join(grades[index]), np.searchsorted(edges, scores, side="right")


def game_board_lines(np):
    board = np.array([[1, 2, 1], [2, 1, 2], [2, 0, 1]])
    for player in (1, 2):
        mine = board == player
        lines = [*mine, *mine.T, mine.diagonal(), np.fliplr(mine).diagonal()]
        if any(line.all() for line in lines):
            return player, np.argwhere(board == 0).tolist()
    return None


def queens_and_sudoku_checks(np):
    queens = np.array([1, 3, 0, 2])
    n = len(queens)
    ok = len(set(queens + np.arange(n))) == n and len(set(queens - np.arange(n))) == n
    grid = (np.arange(4)[:, None] * 2 + np.arange(4)[:, None] // 2 + np.arange(4)) % 4 + 1
    boxes = grid.reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(4, 4)
    valid = all(np.array_equal(np.sort(part), np.arange(1, 5)) for part in (*grid, *grid.T, *boxes))
    return ok, grid, valid
