"""Workloads that a GPU is asked for besides the common ones: shapes in which its kernels differ, and loops that the host is part of.

In: as ``bench.workloads``.  Out: arrays.  Promise: the same lines for every library; the inputs are those of one piece, which the benchmark
repeats along the first axis where they lie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workloads import Array, Arrays, Function, Workload, matrices, vectors


def _product(xp: Any) -> Function:
    return lambda a, b: a * b


def _half_zeros(rng: np.random.Generator, large: bool) -> Arrays:
    size = 16_777_216 if large else 1000
    return rng.standard_normal(size), (rng.random(size) < 0.5).astype(np.float64)


def _single(*shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Any:
    def make(rng: np.random.Generator, large: bool) -> Arrays:
        return tuple(rng.standard_normal(shape if large else small, dtype=np.float32) for shape, small in shapes)

    return make


def _sum(xp: Any) -> Function:
    return lambda a, b: a + b


def _inner(xp: Any) -> Function:
    return lambda a: a[1:-1, 1:-1] + np.float32(1)


def _bias_and_relu(xp: Any) -> Function:
    return lambda a, b: xp.maximum(a + b, np.float32(0))


def _column_means(xp: Any) -> Function:
    return lambda a: a.mean(axis=0)


def _softmax(xp: Any) -> Function:
    def run(a: Array) -> Array:
        e = xp.exp(a - a.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return run


def _layers(xp: Any) -> Function:
    def run(a: Array, w: Array) -> Array:
        for _ in range(10):
            a = xp.maximum(a @ w, 0.1)
        return a

    return run


def _weights(rng: np.random.Generator, large: bool) -> Arrays:
    n = 256 if large else 32
    return rng.random((n, n)), rng.random((n, n)) / n


def _norms(xp: Any) -> Function:
    def run(a: Array) -> Array:
        for _ in range(10):
            a = a / float(xp.sqrt((a * a).sum()))
        return a

    return run


def _waves(xp: Any) -> Function:
    return lambda a: xp.sin(a) * 0.5 + 1.0


ROUND_TRIP = "upload, compute, download"  # whose inputs and results are the host's
GPU_WORKLOADS = (
    Workload("product", matrices((4096, 4096), count=2), _product),
    Workload("product, half of it zeros", _half_zeros, _product),
    Workload("row added, float32", _single(((8192, 4096), (32, 30)), ((4096,), (30,))), _sum),
    Workload("inner part, float32", _single(((4096, 4096), (32, 30))), _inner),
    Workload("bias and relu, NCHW, float32", _single(((32, 3, 512, 512), (2, 3, 8, 8)), ((1, 3, 1, 1), (1, 3, 1, 1))), _bias_and_relu),
    Workload("mean of 1M rows of 64", matrices((131_072, 64), (200, 8)), _column_means),
    Workload("mean of 8M rows of 8", matrices((1_048_576, 8), (400, 3)), _column_means),
    Workload("softmax over rows of 8192", matrices((1024, 8192)), _softmax),
    Workload("ten small products", _weights, _layers),
    Workload("a scalar read in a loop", vectors(1, 1_048_576), _norms),
    Workload(ROUND_TRIP, vectors(1, 16_777_216), _waves),
)
