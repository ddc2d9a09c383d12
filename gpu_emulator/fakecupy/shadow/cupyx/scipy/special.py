"""Universal functions: they take whatever has ``__cuda_array_interface__``, as CuPy's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from gpu_emulator.fakecupy import library


def _ufunc(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        array = library.wrap(x) if hasattr(x, "__cuda_array_interface__") else x
        if not isinstance(array, cupy.ndarray):
            raise TypeError(f"Unsupported type {type(x)}")
        return library.enqueue(name, function, (array,), {})

    call.__name__ = name
    return call


expit = _ufunc("expit", lambda x: 1 / (1 + np.exp(-x)))
entr = _ufunc("entr", lambda x: np.where(x == 0, 0.0, -x * np.log(np.where(x == 0, 1, x))))


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    if not isinstance(a, cupy.ndarray):
        raise TypeError(f"Unsupported type {type(a)}")
    return library.enqueue("logsumexp", lambda x: np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=keepdims))
                           + x.max(axis, keepdims=keepdims), (a,), {})
