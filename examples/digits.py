"""Handwritten digits: find groups of them without being told (k-means), then learn to read them (softmax regression).

The data are the 1797 images of 8x8 pixels that ship with scikit-learn.

    python examples/digits.py
"""

import argparse
import json
import time

import numpy as np
from sklearn.datasets import load_digits

CLASSES = 10


def standardise(x):
    """Columns with mean 0 and variance 1; columns that never change become 0."""
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    return (x - mean) / np.where(deviation > 0, deviation, 1)


def one_hot(labels, classes=CLASSES):
    """A row for each label with a 1 in its column."""
    return (labels[:, np.newaxis] == np.arange(classes)).astype(float)


def squared_distances(x, centres):
    """From every row of `x` to every row of `centres`."""
    return ((x[:, np.newaxis] - centres) ** 2).sum(axis=-1)


def kmeans(x, centres, iterations=50):
    """Lloyd's algorithm from the given centres; returns the centres, each row's group, and the sum of squared distances."""
    for _ in range(iterations):
        groups = squared_distances(x, centres).argmin(axis=1)
        members = one_hot(groups, len(centres))
        moved = members.T @ x / np.maximum(members.sum(axis=0), 1)[:, np.newaxis]
        if np.allclose(moved, centres):
            break
        centres = moved
    distances = squared_distances(x, centres)
    return centres, distances.argmin(axis=1), distances.min(axis=1).sum()


def softmax(scores):
    """Probabilities along the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def fit(x, labels, steps=300, rate=0.5, decay=1e-3):
    """Softmax regression by gradient descent; returns weights, biases and the loss after each step."""
    targets = one_hot(labels)
    weights, biases = np.zeros((x.shape[1], CLASSES)), np.zeros(CLASSES)
    losses = []
    for _ in range(steps):
        probabilities = softmax(x @ weights + biases)
        losses.append(-np.mean(np.log((probabilities * targets).sum(axis=1))))
        error = (probabilities - targets) / len(x)
        weights -= rate * (x.T @ error + decay * weights)
        biases -= rate * error.sum(axis=0)
    return weights, biases, np.array(losses)


def accuracy(x, labels, weights, biases):
    """Share of the rows that are read right."""
    return np.mean((x @ weights + biases).argmax(axis=1) == labels)


def learn(pixels, labels, order):
    """Everything there is to compute, from the pixels in memory to the results in memory."""
    x = standardise(pixels)[order]
    labels = labels[order]
    train = 3 * len(x) // 4

    centres, groups, inertia = kmeans(x, x[:CLASSES])
    purity = (one_hot(groups).T @ one_hot(labels)).max(axis=1).sum() / len(x)

    weights, biases, losses = fit(x[:train], labels[:train])
    return {
        "inertia": float(inertia),
        "purity": float(purity),
        "loss": float(losses[-1]),
        "accuracy_train": float(accuracy(x[:train], labels[:train], weights, biases)),
        "accuracy_test": float(accuracy(x[train:], labels[train:], weights, biases)),
        "centres": centres.tolist(),
        "weights": weights.tolist(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=1, help="how often everything is computed")
    parser.add_argument("--json", action="store_true", help="print timings and results as JSON")
    options = parser.parse_args()

    start = time.perf_counter()
    digits = load_digits()
    pixels, labels = np.asarray(digits.data), np.asarray(digits.target)
    order = np.random.default_rng(0).permutation(len(pixels))
    loaded = time.perf_counter() - start

    computed = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        results = learn(pixels, labels, order)
        computed.append(time.perf_counter() - start)

    if options.json:
        print(json.dumps({"shape": pixels.shape, "load": loaded, "compute": computed, "results": results}))
    else:
        print(f"{len(pixels)} digits, {min(computed):.2f} s")
        print(f"k-means: sum of squared distances {results['inertia']:.1f}, purity {results['purity']:.1%}")
        print(f"softmax regression: loss {results['loss']:.4f}, accuracy {results['accuracy_test']:.1%} on digits it has not seen")


if __name__ == "__main__":
    main()
