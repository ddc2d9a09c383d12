"""Operations that the processor leaves to NumPy and a device does itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lazynp.backends.cuda import scalars
from lazynp.backends.llvm import scalars as processor
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.op import Op
from tests.backends.llvm.test_operations import FLOATS, INTEGERS, extremes, halves, pairs
from tests.codegen.engines import Array, first_difference, interpreted, leaf
from tests.cuda.rendered import compiled

REAL = [o.NEXTAFTER, o.SPACING, o.LDEXP, o.LOGADDEXP, o.LOGADDEXP2, o.GCD, o.LCM]


def both(op: Op, dtype: np.dtype, *arrays: Array) -> tuple[Array, Array]:
    node = build.elementwise(op, dtype, *[leaf(array) for array in arrays])
    (got,), (expected,) = compiled([node], library=False), interpreted([node])
    return got, expected


def exactly(op: Op, dtype: np.dtype, *arrays: Array) -> None:
    got, expected = both(op, dtype, *arrays)
    difference = first_difference(got, expected)
    assert not difference, f"{op.name} of {', '.join(str(a.dtype) for a in arrays)}: {difference}"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_neighbours(dtype: np.dtype) -> None:
    x, y = pairs(extremes(dtype))
    exactly(o.NEXTAFTER, dtype, x, y)
    exactly(o.SPACING, dtype, extremes(dtype))


@pytest.mark.parametrize("other", [0.0, -0.0, 1.0, 65504.0, np.inf, -np.inf, np.nan])
def test_neighbours_of_all_halves(other: float) -> None:
    x = halves()
    exactly(o.NEXTAFTER, x.dtype, x, np.full_like(x, other))
    exactly(o.SPACING, x.dtype, x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_scaling(dtype: np.dtype, kind: type) -> None:
    powers = np.array([0, 1, -1, 5, -20, 130, -160, 1100, -1100, 2**31 - 1, -(2**31)], kind)
    values = extremes(dtype)
    exactly(o.LDEXP, dtype, np.repeat(values, len(powers)), np.tile(powers, len(values)))
    if kind is np.int64:
        exactly(o.LDEXP, dtype, values, np.full(len(values), 2**40, kind))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [o.LOGADDEXP, o.LOGADDEXP2], ids=repr)
def test_sums_of_exponentials(op: Op, dtype: np.dtype) -> None:
    x, y = pairs(extremes(dtype))
    got, expected = both(op, dtype, x, y)
    np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_common_divisors(dtype: np.dtype) -> None:
    x, y = pairs(extremes(dtype))
    exactly(o.GCD, dtype, x, y)
    exactly(o.LCM, dtype, x, y)


def test_the_tables_are_complete() -> None:
    """What the processor can do, a device can, and what else it can stands here."""

    def able(supported: object, dtypes: Sequence[np.dtype]) -> set[tuple[Op, np.dtype]]:
        ops = [op for op in o.ALL if op.kind is o.Kind.ELEMENTWISE]
        return {(op, d) for op in ops for d in dtypes if supported(op, d, [d, d])}  # type: ignore[operator]

    real = [np.dtype(np.bool_), *INTEGERS, *FLOATS]
    ours, theirs = able(scalars.supported, real), able(processor.supported, real)
    trivial = {(op, d) for op, d in theirs if op in (o.FLOOR, o.CEIL, o.TRUNC, o.RINT) and d.kind != "f"}
    assert theirs - trivial <= ours
    assert {op for op, _ in ours - theirs} <= set(REAL)
