"""The libraries that are compared: how each takes its inputs, compiles a workload and finishes a computation.

In: a workload.  Out: a function of no arguments that computes it once, completely, and gives back what ``host`` turns into NumPy
arrays.  Promise: moving the inputs in and the results out is never timed; a library that is not installed is left out, one that
cannot run a workload says why.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from bench.workloads import Arrays, Workload

Run = Callable[[], Any]


class UnsupportedError(Exception):
    """The library has no way to say this workload."""


@dataclass(frozen=True)
class Peer:
    """One library: what must be importable, and how it prepares a workload."""

    name: str
    package: str
    prepare: Callable[[Workload, Arrays], Run]

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    @property
    def version(self) -> str:
        return version(self.package)


def _numpy(workload: Workload, arrays: Arrays) -> Run:
    function = workload.bind(np)
    return lambda: function(*arrays)


def _lazynp(workload: Workload, arrays: Arrays) -> Run:
    import lazynp

    function = workload.bind(lazynp)
    inputs = [lazynp.asarray(array, copy=True) for array in arrays]
    lazynp.realize(*inputs)

    def run() -> Any:
        result = function(*inputs)
        lazynp.realize(*(result if isinstance(result, tuple) else (result,)))
        return result

    return run


def _numexpr(workload: Workload, arrays: Arrays) -> Run:
    import numexpr

    if workload.numexpr is None:
        raise UnsupportedError("numexpr has no expression for it")
    names = dict(zip("abc", arrays, strict=False))
    # a reduction must be the outermost operation of a numexpr expression
    parts = workload.numexpr.split(" / sum(")
    if len(parts) == 2:
        over, under = parts[0], "sum(" + parts[1]
        return lambda: numexpr.evaluate(over, names) / numexpr.evaluate(under, names)
    expression = workload.numexpr
    return lambda: numexpr.evaluate(expression, names)


def _numba(workload: Workload, arrays: Arrays) -> Run:
    import numba

    function = numba.njit(parallel=True)(workload.bind(np))
    return lambda: function(*arrays)


def _jax(workload: Workload, arrays: Arrays) -> Run:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(workload.bind(jax.numpy))
    inputs = [jax.device_put(array) for array in arrays]
    jax.block_until_ready(inputs)
    return lambda: jax.block_until_ready(function(*inputs))


def _torch(workload: Workload, arrays: Arrays) -> Run:
    import torch

    # torch.compile understands NumPy code, and takes and gives NumPy arrays without copies
    function = torch.compile(workload.bind(np))
    return lambda: function(*arrays)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("numpy", "numpy", _numpy),
        Peer("lazynp", "lazynp", _lazynp),
        Peer("numexpr", "numexpr", _numexpr),
        Peer("numba", "numba", _numba),
        Peer("jax", "jax", _jax),
        Peer("torch", "torch", _torch),
    )
}


def host(result: Any) -> list[np.ndarray[Any, Any]]:
    """The results as NumPy arrays."""
    return [np.asarray(part) for part in (result if isinstance(result, tuple | list) else (result,))]
