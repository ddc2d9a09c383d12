"""Where the largest and the smallest elements lie, along an axis.

In: tables of dtypes, shapes, axes and special values.  Out: failures.  Promise: NumPy is the oracle (the first of what is alike).
"""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp

SHAPES = [(2, 2), (12, 12), (1, 7), (7, 1), (3, 600), (600, 3), (2, 5, 4), (5, 1, 3), (2, 3, 4, 5), (40, 1300)]
DTYPES = ["f8", "f4", "f2", "i8", "i4", "u1", "u8", "?"]


def sample(dtype: str, shape: tuple[int, ...], special: bool) -> Any:
    rng = numpy.random.default_rng(len(dtype) + sum(shape))
    x = rng.integers(0, 9, shape).astype(dtype)
    if special and dtype[0] == "f":
        x[rng.random(shape) < 0.2] = numpy.nan
        x[rng.random(shape) < 0.1] = -numpy.inf
        x[rng.random(shape) < 0.1] = -0.0
    return x


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("special", [False, True], ids=["plain", "special values"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_along_an_axis_are_numpys(dtype: str, special: bool, name: str) -> None:
    for shape in SHAPES:
        theirs = sample(dtype, shape, special)
        ours = lazynp.array(theirs)
        for axis in range(-len(shape), len(shape)):
            expected = getattr(numpy, name)(theirs, axis=axis)
            for found in (getattr(lazynp, name)(ours, axis=axis), getattr(ours, name)(axis), getattr(lazynp, name)(ours + ours, axis)):
                assert found.shape == expected.shape
                assert found.dtype == expected.dtype
                assert numpy.asarray(found).tolist() == expected.tolist()
