"""Filters: functions of CuPy's own arrays."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from gpu_emulator.fakecupy import library


def convolve1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
               origin: int = 0) -> Any:
    if not isinstance(input, cupy.ndarray) or not isinstance(weights, cupy.ndarray):
        raise TypeError(f"Unsupported type {type(input)}")
    if mode != "reflect" or origin or output is not None:
        raise NotImplementedError
    left, right = weights.size // 2, weights.size - 1 - weights.size // 2

    def filtered(x: Any, w: Any) -> Any:
        padded = np.pad(np.moveaxis(x, axis, -1), [(0, 0)] * (x.ndim - 1) + [(right, left)], mode="symmetric")
        windows = np.lib.stride_tricks.sliding_window_view(padded, len(w), axis=-1)
        return np.moveaxis((windows * w[::-1]).sum(-1), -1, axis).astype(x.dtype)

    return library.enqueue("convolve1d", filtered, (input, weights), {})
