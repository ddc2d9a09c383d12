"""Models fitted by hand: clusters, regressions, networks, filters, hidden states."""

from tests.programs.tolerance import close


def _blobs(np):
    rng = np.random.RandomState(0)
    centres = np.array([[0.0, 0], [5, 5], [0, 6]])
    return np.concatenate([c + rng.randn(6, 2) * 0.5 for c in centres])


def _labelled(np):
    x = _blobs(np)
    return x, np.repeat(np.arange(3), 6)


@close(1e-15, "means of 6 points in another order")
def k_means(np):
    x = _blobs(np)
    centres = x[[0, 7, 14]]
    for i in range(20):
        distances = ((x[:, None] - centres) ** 2).sum(-1)
        labels = distances.argmin(1)
        new = np.array([x[labels == k].mean(0) for k in range(3)])
        if np.allclose(new, centres):
            break
        centres = new
    return labels, centres, i


@close(1e-15, "LAPACK on a covariance whose sums have another order")
def principal_components(np):
    x = _blobs(np)
    centred = x - x.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ vt.T
    explained = s**2 / np.sum(s**2)
    return explained, np.abs(scores[:3]), u.shape


@close(1e-15, "exponentials within 4 ulp and BLAS products of 18 terms")
def softmax_regression(np):
    x, y = _labelled(np)
    target = np.eye(3)[y]
    w = np.zeros((2, 3))
    for _ in range(3):
        logits = x @ w
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        w -= 0.1 * x.T @ (p - target) / len(x)
    return w, (p.argmax(1) == y).mean()


@close(1e-15, "exponentials within 4 ulp, a linear system by LAPACK")
def logistic_regression_newton(np):
    x = np.column_stack([np.ones(8), [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]])
    y = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    beta = np.zeros(2)
    for _ in range(3):
        p = 1 / (1 + np.exp(-x @ beta))
        gradient = x.T @ (y - p)
        hessian = (x * (p * (1 - p))[:, None]).T @ x
        beta = beta + np.linalg.solve(hessian, gradient)
    return beta, p


@close(1e-15, "means of 10 terms in another order, 8 times")
def gradient_descent_line(np):
    x = np.linspace(-1, 1, 10)
    y = 2 * x + 1
    a = b = 0.0
    losses = []
    for _ in range(8):
        error = a * x + b - y
        a -= 0.5 * 2 * np.mean(error * x)
        b -= 0.5 * 2 * np.mean(error)
        losses.append(np.mean(error**2))
    return a, b, np.array(losses), bool(losses[-1] < losses[0])


def perceptron(np):
    x = np.array([[2, 1, 1], [1, 3, 1], [-1, -2, 1], [-2, 0, 1]])
    y = np.array([1, 1, -1, -1])
    w = np.zeros(3, dtype=int)
    for epoch in range(10):
        mistakes = 0
        for xi, yi in zip(x, y, strict=True):
            if yi * (w @ xi) <= 0:
                w += yi * xi
                mistakes += 1
        if mistakes == 0:
            break
    return w, epoch


@close(1e-15, "logarithms within 4 ulp, variances of 6 terms")
def naive_bayes(np):
    x, y = _labelled(np)
    classes = np.unique(y)
    mean = np.array([x[y == c].mean(axis=0) for c in classes])
    var = np.array([x[y == c].var(axis=0) for c in classes])
    log_p = -0.5 * (np.log(2 * np.pi * var[:, None]) + (x - mean[:, None]) ** 2 / var[:, None]).sum(-1)
    return log_p.argmax(axis=0), log_p.shape, mean


def k_nearest_neighbours(np):
    train = np.array([[0, 0], [1, 0], [0, 1], [8, 8], [9, 8], [8, 9]])
    labels = np.array([0, 0, 0, 1, 1, 1])
    query = np.array([[1, 1], [7, 8], [4, 4]])
    d = np.abs(query[:, None] - train).sum(axis=2)
    nearest = np.argsort(d, axis=1, kind="stable")[:, :3]
    votes = labels[nearest]
    return nearest, (votes.sum(axis=1) > 1).astype(int), np.take_along_axis(d, nearest, axis=1)


@close(1e-15, "tanh and exp within 4 ulp, BLAS products of 4 terms")
def two_layer_network_step(np):
    rng = np.random.RandomState(1)
    x, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([[0], [1], [1], [0]])
    w1, w2 = rng.randn(2, 4), rng.randn(4, 1)
    for _ in range(2):
        h = np.tanh(x @ w1)
        out = 1 / (1 + np.exp(-(h @ w2)))
        d_out = (out - y) * out * (1 - out)
        d_h = d_out @ w2.T * (1 - h**2)
        w2 -= 0.5 * h.T @ d_out
        w1 -= 0.5 * x.T @ d_h
    return out, w1, w2


def adam_steps(np):
    theta = np.array([1.0, -2.0, 3.0])
    m, v = np.zeros(3), np.zeros(3)
    for t in range(1, 5):
        g = 2 * theta
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        theta -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta


@close(1e-15, "a linear system of sums in another order")
def ridge_regression_path(np):
    x = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10], [1, 0, 1], [2, 2, 5]])
    y = np.array([1.0, 2, 3, 4, 5])
    path = []
    for lam in (0.1, 1.0, 10.0):
        path.append(np.linalg.inv(x.T @ x + lam * np.eye(3)) @ x.T @ y)
    return np.vstack(path), np.linalg.norm(path, axis=1)


def confusion_matrix_scores(np):
    truth = np.array([0, 1, 2, 2, 1, 0, 2, 1])
    guess = np.array([0, 2, 2, 2, 1, 0, 1, 1])
    matrix = np.zeros((3, 3), dtype=int)
    for t, g in zip(truth, guess, strict=True):
        matrix[t, g] += 1
    precision = matrix.diagonal() / matrix.sum(axis=0)
    recall = matrix.diagonal() / matrix.sum(axis=1)
    return matrix, precision, recall, np.trace(matrix) / matrix.sum()


def one_hot_encodings(np):
    y = np.array([2, 0, 1, 2])
    by_eye = np.eye(3, dtype=np.int8)[y]
    by_index = np.zeros((4, 3), np.int8)
    by_index[np.arange(4), y] = 1
    by_compare = (y[:, None] == np.arange(3)).astype(np.int8)
    return by_eye, (by_eye == by_index).all() and np.array_equal(by_index, by_compare), by_index.argmax(1)


def minibatches(np):
    rng = np.random.default_rng(5)
    x = np.arange(22).reshape(11, 2)
    order = rng.permutation(len(x))
    totals = []
    for start in range(0, len(x), 4):
        batch = x[order[start : start + 4]]
        totals.append((len(batch), int(batch.sum())))
    return order, totals, np.array_split(x[order], 3)


@close(1e-15, "densities of exponentials within 4 ulp, sums of 8 terms, 3 times")
def gaussian_mixture_em(np):
    x = np.array([0.0, 0.2, 0.4, 0.1, 5.0, 5.3, 4.8, 5.1])
    mu, sigma, pi = np.array([1.0, 4.0]), np.array([1.0, 1.0]), np.array([0.5, 0.5])
    for _ in range(3):
        density = pi * np.exp(-((x[:, None] - mu) ** 2) / (2 * sigma**2)) / sigma
        r = density / density.sum(1, keepdims=True)
        n = r.sum(0)
        mu = (r * x[:, None]).sum(0) / n
        sigma = np.sqrt((r * (x[:, None] - mu) ** 2).sum(0) / n)
        pi = n / len(x)
    return mu, sigma, pi


def dropout_and_batchnorm(np):
    rng = np.random.RandomState(2)
    x = np.arange(24.0).reshape(6, 4)
    keep = rng.rand(*x.shape) < 0.5
    dropped = np.where(keep, x / 0.5, 0)
    gamma, beta = np.ones(4), np.zeros(4)
    normed = gamma * (x - x.mean(0)) / np.sqrt(x.var(0) + 0.0) + beta
    return dropped, normed.round(6), keep.sum()


@close(1e-15, "exponentials within 4 ulp, products of 4 and 5 terms")
def scaled_dot_product_attention(np):
    q = np.linspace(-1, 1, 20).reshape(5, 4)
    k, v = q[::-1] * 0.5, np.arange(15.0).reshape(5, 3)
    scores = q @ k.T / np.sqrt(4)
    scores[np.triu_indices(5, 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ v, weights


def convolution_layer_im2col(np):
    x = np.arange(2 * 25).reshape(2, 5, 5)
    kernels = np.arange(3 * 2 * 9).reshape(3, 2, 3, 3) % 5
    columns = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    out = np.einsum("cyxij,kcij->kyx", columns, kernels)
    pooled = np.maximum(out, 0)[:, :2, :2].max(axis=(1, 2))
    return out, pooled


@close(1e-15, "logarithms within 4 ulp")
def viterbi_decoding(np):
    start, trans = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]])
    emit = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    observed = [0, 1, 2, 2]
    score = np.log(start) + np.log(emit[:, observed[0]])
    back = []
    for o in observed[1:]:
        step = score[:, None] + np.log(trans)
        back.append(step.argmax(axis=0))
        score = step.max(axis=0) + np.log(emit[:, o])
    path = [int(score.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1], score


@close(1e-15, "products of 2 terms by BLAS")
def hmm_forward_scaled(np):
    trans = np.array([[0.75, 0.25], [0.5, 0.5]])
    emit = np.array([[0.5, 0.5], [0.125, 0.875]])
    alpha = np.array([0.5, 0.5])
    scales = []
    for o in (0, 1, 1, 0):
        alpha = (alpha @ trans) * emit[:, o]
        scales.append(alpha.sum())
        alpha = alpha / scales[-1]
    return alpha, np.prod(scales)


@close(1e-15, "products of 2 terms by BLAS")
def kalman_filter(np):
    f, h = np.array([[1.0, 1], [0, 1]]), np.array([[1.0, 0]])
    q, r = np.eye(2) * 0.01, np.array([[1.0]])
    x, p = np.zeros((2, 1)), np.eye(2) * 100
    track = []
    for z in (1.0, 2.1, 2.9, 4.2):
        x, p = f @ x, f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = p @ h.T / s
        x = x + gain * (z - h @ x)
        p = (np.eye(2) - gain @ h) @ p
        track.append(x[0, 0])
    return np.array(track), p


def roc_curve(np):
    scores = np.array([0.1, 0.4, 0.35, 0.8, 0.7, 0.2])
    truth = np.array([0, 0, 1, 1, 1, 0])
    order = np.argsort(-scores)
    tps = np.cumsum(truth[order])
    fps = np.cumsum(1 - truth[order])
    tpr, fpr = np.r_[0, tps / tps[-1]], np.r_[0, fps / fps[-1]]
    auc = np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2)
    return tpr, fpr, auc


def decision_stump(np):
    x = np.array([[2.0, 7], [3, 1], [6, 8], [7, 2], [1, 9]])
    y = np.array([0, 0, 1, 1, 0])
    best = (np.inf, None, None)
    for feature in range(x.shape[1]):
        for threshold in np.unique(x[:, feature]):
            error = np.mean((x[:, feature] > threshold).astype(int) != y)
            if error < best[0]:
                best = (error, feature, float(threshold))
    return best


def embedding_gradients(np):
    table = np.zeros((5, 3))
    tokens = np.array([1, 3, 1, 4])
    grad = np.arange(12.0).reshape(4, 3)
    vectors = table[tokens]
    np.subtract.at(table, tokens, 0.5 * grad)
    return table, vectors
