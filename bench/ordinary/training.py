"""Models that learn from small batches."""

import numpy as np

from bench.ordinary import program


@program(1600, 15000, 140000, tiny=64, tolerance=1e-11, reason="products in another order")
def logistic(n):
    """Logistic regression by stochastic gradients, batches of 32 in a shuffled order."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 10))
    y = (x @ rng.standard_normal(10) + 0.3 * rng.standard_normal(n) > 0).astype(float)
    order = rng.permutation(n)

    def run():
        w = np.zeros(10)
        b = 0.0
        losses = []
        for start in range(0, n, 32):
            batch = order[start : start + 32]
            xb, yb = x[batch], y[batch]
            p = 1 / (1 + np.exp(-(xb @ w + b)))
            error = p - yb
            w -= 0.1 * xb.T @ error / len(batch)
            b -= 0.1 * error.mean()
            losses.append(-np.mean(yb * np.log(p + 1e-12) + (1 - yb) * np.log(1 - p + 1e-12)))
        return w, b, np.mean(losses)

    return run


@program(550, 5300, 53000, tiny=64, tolerance=1e-9, reason="products in another order")
def perceptron(n):
    """A layer of 32, ReLU, softmax and momentum; one pass over n examples."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, 20))
    y = np.argmax(x[:, :5] + 0.1 * rng.standard_normal((n, 5)), axis=1)
    w1_0, w2_0 = 0.3 * rng.standard_normal((20, 32)), 0.2 * rng.standard_normal((32, 5))

    def run():
        params = {"w1": w1_0.copy(), "b1": np.zeros(32), "w2": w2_0.copy(), "b2": np.zeros(5)}
        velocity = {name: np.zeros_like(value) for name, value in params.items()}
        correct = 0
        for start in range(0, n, 25):
            xb, yb = x[start : start + 25], y[start : start + 25]
            hidden = np.maximum(xb @ params["w1"] + params["b1"], 0)
            scores = hidden @ params["w2"] + params["b2"]
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            probabilities = powers / powers.sum(axis=1, keepdims=True)
            correct += np.sum(scores.argmax(axis=1) == yb)
            d = probabilities.copy()
            d[np.arange(len(yb)), yb] -= 1
            d /= len(yb)
            d_hidden = d @ params["w2"].T
            d_hidden[hidden <= 0] = 0
            gradients = {"w1": xb.T @ d_hidden, "b1": d_hidden.sum(axis=0), "w2": hidden.T @ d, "b2": d.sum(axis=0)}
            for name in params:
                velocity[name] = 0.9 * velocity[name] - 0.05 * gradients[name]
                params[name] += velocity[name]
        return params["w1"], params["b1"], params["w2"], params["b2"], int(correct)

    return run


@program(66, 190, 450, tiny=3, tolerance=1e-8, reason="products in another order, divided by their own roots")
def adam(n):
    """An autoencoder with tanh, trained by Adam: ten batches of 4 n, inputs of 8 + n // 2."""
    rng = np.random.default_rng(2)
    inputs, hidden = 8 + n // 2, 4 + n // 8
    data = rng.standard_normal((10, 4 * n, inputs))
    encode, decode = 0.3 * rng.standard_normal((inputs, hidden)), 0.3 * rng.standard_normal((hidden, inputs))

    def run():
        w = [encode.copy(), decode.copy()]
        m = [np.zeros_like(p) for p in w]
        v = [np.zeros_like(p) for p in w]
        losses = []
        for t, batch in enumerate(data, start=1):
            h = np.tanh(batch @ w[0])
            d = 2 * (h @ w[1] - batch) / batch.size
            losses.append(np.sum(d * d))
            gradients = [batch.T @ ((d @ w[1].T) * (1 - h**2)), h.T @ d]
            for k, g in enumerate(gradients):
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.999 * v[k] + 0.001 * g**2
                step = (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-3)
                w[k] -= 0.01 * step
        return w[0], w[1], np.array(losses)

    return run


@program(110, 1400, 14000, tiny=20, tolerance=1e-11, reason="products in another order")
def ratings(n):
    """Matrix factorisation of n ratings, one rating at a time: rows of ten numbers."""
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, 50, n), rng.integers(0, 40, n)
    stars = rng.integers(1, 6, n).astype(float)
    p0, q0 = 0.3 * rng.standard_normal((50, 10)), 0.3 * rng.standard_normal((40, 10))

    def run():
        p, q = p0.copy(), q0.copy()
        mean = stars.mean()
        total = 0.0
        for u, i, r in zip(users, items, stars, strict=True):
            error = r - mean - p[u] @ q[i]
            total += error**2
            p[u] += 0.02 * (error * q[i] - 0.05 * p[u])
            q[i] += 0.02 * (error * p[u] - 0.05 * q[i])
        return p, q, float(np.sqrt(total / n))

    return run
