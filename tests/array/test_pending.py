"""What is pending after an operation, at every size: `np.schedule` shows what would be computed, and nothing has been.

In: families of operations at sizes on both sides of every limit; random programs that write in place.  Out: failures.  Promise: NumPy is
the oracle of values, dtypes and shapes; a family that is not pending is named with the reason.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp

Operation = Callable[[Any, Any, Any], Any]

FAMILIES: dict[str, Operation] = {
    "add": lambda np, a, b: a + b,
    "a number": lambda np, a, b: 2.0 * a - 1,
    "divide": lambda np, a, b: a / b,
    "floor divide": lambda np, a, b: a // b,
    "remainder": lambda np, a, b: a % b,
    "negative": lambda np, a, b: -a,
    "absolute": lambda np, a, b: abs(a - b),
    "square": lambda np, a, b: a**2,
    "power": lambda np, a, b: a**3,
    "compare": lambda np, a, b: a > b,
    "logical": lambda np, a, b: (a > b) & (a < 0.5),
    "exp": lambda np, a, b: np.exp(a),
    "log, sin": lambda np, a, b: np.log(a + 1) * np.sin(b),
    "sqrt": lambda np, a, b: np.sqrt(a),
    "maximum": lambda np, a, b: np.maximum(a, b),
    "two dtypes": lambda np, a, b: (a > b) * a,
    "where": lambda np, a, b: np.where(a > b, a, b),
    "clip": lambda np, a, b: np.clip(a, 0.25, 0.75),
    "round": lambda np, a, b: np.round(a, 2),
    "astype": lambda np, a, b: (a * 9).astype(int),
    "copy": lambda np, a, b: a.copy(),
    "concatenate": lambda np, a, b: np.concatenate([a, b]),
    "cumsum": lambda np, a, b: np.cumsum(a),
    "sort": lambda np, a, b: np.sort(a),
    "argsort": lambda np, a, b: np.argsort(a),
    "sum over an axis": lambda np, a, b: a.reshape(1, -1).sum(axis=0),
    "mean over an axis": lambda np, a, b: np.mean(a.reshape(-1, 1), axis=1),
    "maximum over an axis": lambda np, a, b: a.reshape(1, -1).max(axis=0),
    "argmax over an axis": lambda np, a, b: np.argmax(a.reshape(-1, 1), axis=1),
    "matmul": lambda np, a, b: a.reshape(-1, 1) @ b[:1].reshape(1, 1),
    "outer": lambda np, a, b: np.outer(a, b[:1]),
    "broadcast": lambda np, a, b: a[:, None] * b[:1],
}
SIZES = (1, 10, 1_000, 100_000, 1_000_000)
NOTHING_TO_SHOW = {  # family -> the sizes at which there is no kernel to show
    "copy": SIZES,  # as a graph a copy of what exists is nothing: it shares the value
}


@pytest.mark.parametrize("name", ["concat", "concatenate"])
def test_a_function_is_recorded_whichever_of_its_names_was_asked_for_first(name: str) -> None:
    program = f"""
import lazynp as np
from lazynp.array import core
np.{name}
x = np.arange(3.0)
print([f.__name__ for f in (np.concat, np.concatenate) for k in range(1, 60) if core.tape(f([x] * k)) is None])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FAMILIES)
def test_operations_are_recorded_at_every_size(name: str, size: int) -> None:
    operation = FAMILIES[name]
    theirs = [numpy.random.default_rng(seed).random(size) + 0.01 for seed in range(2)]
    ours = [lazynp.array(x) for x in theirs]
    lazynp.realize(ours)
    result, expected = operation(lazynp, *ours), operation(numpy, *theirs)
    assert (result.shape, result.dtype, result.ndim, result.size) == (expected.shape, expected.dtype, expected.ndim, expected.size)
    if size not in NOTHING_TO_SHOW.get(name, ()):
        assert lazynp.schedule(result).items, "nothing is left to do"
    assert numpy.allclose(numpy.asarray(result), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 10, 1_000, 100_000])
def test_operators_in_place_of_what_waits_are_recorded(size: int) -> None:
    x = numpy.random.default_rng(0).random(size)
    y = lazynp.array(x) * 2
    before = y
    y += 1
    y *= y
    assert y is before
    assert lazynp.schedule(y).items
    assert numpy.array_equal(y, (x * 2 + 1) * (x * 2 + 1))


def test_one_element_is_pending_kernelized_and_realized() -> None:
    a, b, c = lazynp.array([2.0]), lazynp.array([3.0]), lazynp.array([4.0])
    y = a * b + c
    assert len(lazynp.schedule(y).items) == 1
    assert lazynp.explain(y).startswith("1 kernel(s), 0 library call(s)")
    lazynp.kernelize(y)
    z = y * 2
    assert len(lazynp.schedule(z).items) == 1
    assert lazynp.realize(y) is y
    assert not lazynp.schedule(y).items
    assert (float(y[0]), float(z[0])) == (10.0, 20.0)


def wanted(seed: int, np: Any) -> list[Any]:
    """A random program of operators in place, whose values are read at its end only, the last first in half of the programs."""
    rng = numpy.random.default_rng(seed)
    size = int(rng.choice([1, 5, 30, 300, 3000]))
    arrays = [np.array(rng.random(size) + 0.5) for _ in range(3)]
    kept: list[Any] = []
    for _ in range(int(rng.integers(3, 14))):
        i, j, k = rng.integers(0, 3, 3)
        kind, number = rng.integers(0, 9), float(rng.random())
        if kind == 0:
            arrays[i] += arrays[j]
        elif kind == 1:
            arrays[i] -= arrays[j] * number
        elif kind == 2:
            arrays[i] = arrays[j] * number + arrays[k]
        elif kind == 3:
            arrays[i] *= number
            arrays[i] += arrays[k]
        elif kind == 4:
            same = arrays[i]
            same += 1.0
            kept.append(same)
        elif kind == 5:
            kept.append(np.cumsum(arrays[i]))
        elif kind == 6:
            kept.append(arrays[i][:2])
        elif kind == 7:
            arrays[i] += arrays[i]
            arrays[j] /= arrays[i] + 1
        else:
            arrays[i] = np.exp(-arrays[i])
            arrays[i] -= arrays[j]
    found = kept + arrays
    return found[::-1] if seed % 2 else found


def test_random_programs_in_place() -> None:
    for seed in range(300):
        for x, y in zip(wanted(seed, lazynp), wanted(seed, numpy), strict=True):
            assert numpy.asarray(x).tobytes() == y.tobytes(), seed


@pytest.mark.slow
def test_many_random_programs_in_place() -> None:
    for seed in range(1_000, 6_000):
        for x, y in zip(wanted(seed, lazynp), wanted(seed, numpy), strict=True):
            assert numpy.asarray(x).tobytes() == y.tobytes(), seed
