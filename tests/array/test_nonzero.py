"""Where arrays are not zero: positions, their layout and dtype, against NumPy; blocks, short rows and both ways of a processor."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.array import core

SHAPES = [
    (0,), (1,), (7,), (47,), (48,), (64,), (65,), (511,), (512,), (513,), (3000,), (5, 7), (1, 600), (600, 1), (13, 700), (3, 0), (0, 3),
    (1000, 3), (40, 31), (40, 32), (4, 5, 6), (2, 3, 1100), (2, 2, 2, 20), (2, 3, 4, 5, 6),
]  # fmt: skip
KINDS: dict[str, Any] = {
    "bool": lambda mask, x: mask, "bytes": lambda mask, x: (mask * numpy.uint8(6)).view(bool), "float": lambda mask, x: mask * x,
    "single": lambda mask, x: numpy.where(mask, x, -0.0).astype("f4"), "nan": lambda mask, x: numpy.where(mask, numpy.nan, 0),
    "complex": lambda mask, x: mask * 1j, "short": lambda mask, x: mask.astype("i2"), "unsigned": lambda mask, x: mask.astype("u8"),
    "half": lambda mask, x: mask.astype("f2"),
}  # fmt: skip
CALLS: dict[str, Any] = {
    "nonzero": lambda xp, x: xp.nonzero(x), "method": lambda xp, x: x.nonzero(), "where": lambda xp, x: xp.where(x),
    "flatnonzero": lambda xp, x: (xp.flatnonzero(x),), "argwhere": lambda xp, x: (xp.argwhere(x),),
}  # fmt: skip


@pytest.fixture(params=[True, False], ids=["compressed", "one by one"])
def processor(request: pytest.FixtureRequest) -> Any:
    if request.param and not core.compresses(True):
        pytest.skip("the processor compresses no vector")
    core.compresses(request.param)
    yield
    core.compresses(True)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_are_numpys(shape: tuple[int, ...], kind: str) -> None:
    rng = numpy.random.default_rng(3)
    for share in (0, 0.02, 0.5, 0.97, 1):
        x = numpy.asarray(KINDS[kind](rng.random(shape) < share, rng.random(shape) - 0.5))
        for one in (x, x.T, x[::-1]):
            for name, call in CALLS.items():
                ours, theirs = call(np, np.array(one)), call(numpy, numpy.array(one))
                assert len(ours) == len(theirs)
                for found, wanted in zip(ours, theirs, strict=True):
                    assert (found.dtype, found.shape, found.strides) == (wanted.dtype, wanted.shape, wanted.strides), (name, share)
                    assert numpy.array_equal(numpy.asarray(found), wanted), (name, share)


@pytest.mark.parametrize("shape", [(900_000,), (900, 1000), (300_000, 3), (10, 300, 300)], ids=str)
def test_of_large_arrays(shape: tuple[int, ...]) -> None:
    x = numpy.random.default_rng(3).random(shape)
    x[x < 0.6] = 0
    for call in CALLS.values():
        for found, wanted in zip(call(np, np.array(x)), call(numpy, x), strict=True):
            assert numpy.array_equal(numpy.asarray(found), wanted)


def test_nothing_is_said_of_what_is_no_number() -> None:
    with numpy.errstate(all="raise"):
        signalling = numpy.full(100, 0x7FF0000000000001).view(float)
        assert np.nonzero(np.array(signalling))[0].size == 100
        assert float(np.array([1.0, 2.0]).sum()) == 3.0
