"""Numbers at the ends of the machine's integers, as indices, counts, shifts, axes and shapes: NumPy's answers and refusals, none silent."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.namespace.compare import expression

WRAPPED = "[2**31 + 5, -2**31 - 7, 2**32 + 1, 0, -1, 13]"  # NumPy's loop takes one turn a length: further out it takes years
FAR = "[2**62, -2**62, 2**63 - 1, -2**63, 2**60 + 1, 0, -1]"
CALLS = [
    f"np.take(x, {WRAPPED}, mode='wrap')",
    f"np.take(x, np.array({WRAPPED}), mode='wrap')",
    pytest.param(f"np.take(m, {WRAPPED}, axis=0, mode='wrap')", marks=pytest.mark.slow),
    pytest.param(f"np.choose(np.array({WRAPPED}), [x[:6], x[1:7], x[2:8]], mode='wrap')", marks=pytest.mark.slow),
    f"np.ravel_multi_index(({WRAPPED}, {WRAPPED}), (3, 5), mode='wrap')",
    f"np.put(x, {WRAPPED}, 7, mode='wrap')",
    f"np.take(x, {FAR}, mode='clip')",
    f"np.put(x, {FAR}, 7, mode='clip')",
    f"np.choose(np.array({FAR}), [x[:7], x[1:8]], mode='clip')",
    f"np.ravel_multi_index(({FAR}, {FAR}), (3, 5), mode='clip')",
    f"np.searchsorted(x, {FAR})",
    f"np.digitize({FAR}, [0, 1])",
    f"np.arange(7) << np.array({FAR})",
    "np.take(x, [2**62])",
    "np.unravel_index([2**62], (3, 5))",
    "np.unravel_index([2**62 - 2], (2**31, 2**31))",
    "np.roll(x, 2**62 + 3)",
    "np.roll(x, -2**62 - 3)",
    "np.roll(x, [2**63 - 1])",
    "np.roll(m, (2**62, -2**61), axis=(0, 1))",
    "np.rot90(m, 2**62 + 1)",
    "x[[2**62]]",
    "x[[-2**63]]",
    "x[2**63 - 1]",
    "x[-2**63]",
    "x[2**64]",
    "x[2**62:]",
    "x[-2**62 : 2**62]",
    "x[-2**70 : 2**70 : 2**66]",
    "x.item(2**62)",
    "x.item(-2**63)",
    "x.__setitem__(2**62, 1)",
    "x.__setitem__([2**62], 1)",
    "np.add.at(x, [2**62], 1)",
    "np.add.reduceat(x, [0, 2**62])",
    "np.put_along_axis(x, np.array([2**62]), 1, 0)",
    "m[np.ix_([0], [2**62])]",
    "np.insert(x, 2**62, 1)",
    "np.delete(x, 2**62)",
    "np.delete(x, slice(2**62, None))",
    "[part.shape for part in np.split(x, [2**62, -2**62])]",
    "np.pad(x[:5], (13, 17), mode='wrap')",
    "np.pad(x[:5], 2**62, mode='wrap')",
    "np.pad(x[:5], 2**62)",
    "np.repeat(x[:2], 2**62)",
    "np.tile(x, 2**62)",
    "np.indices((2**40, 2**40))",
    "np.broadcast_to(x[:1], (2**62,)).shape",
    "np.broadcast_to(x[:1], (2**59,)).shape",
    "np.broadcast_to(x[:0].reshape(0, 1), (0, 2**62)).shape",
    "np.zeros((2**62, 0)).shape",
    "np.zeros((2**31, 2**31, 4))",
    "np.diag(x[:3], 2**30 * 8)",
    "np.diagonal(m, 2**62)",
    "np.diagonal(m, -2**63)",
    "np.trace(m, 2**31)",
    "x.reshape(2**62, -1)",
    "x.sum(2**62)",
    "x.sum(-2**63)",
    pytest.param("np.round(x, 2**31 - 1)", marks=pytest.mark.slow),  # NumPy multiplies so many tens
    pytest.param("np.round(x, -2**31 + 1)", marks=pytest.mark.slow),
    "np.round(x, 400)",
    "np.round(x, 2**62)",
    "np.partition(x, 2**62)",
    "np.bincount([1], minlength=2**62)",
    "np.lib.stride_tricks.sliding_window_view(x, 2**62)",
    "np.eye(3, 4, 2**62)",
    "np.trace(m, 2**30)",
]


def outcome(text: str, np: Any, n: int) -> Any:
    x = np.linspace(0, 1, n) + 0.5
    space = {"np": np, "x": x, "m": x.reshape(2, -1) * 2}
    try:
        value = eval(text, space)
        return numpy.asarray(x if value is None else value)
    except Exception as error:
        return error


@functools.cache
def numpys(text: str, n: int) -> Any:
    return outcome(text, numpy, n)


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("n", [12, 40_000])
@pytest.mark.parametrize("text", CALLS)
def test_the_ends_of_the_integers(text: str, n: int, below: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = numpys(text, n)
        with config.override(tape_limit=below):
            got = outcome(text, lazynp, n)
    if isinstance(want, Exception):
        assert isinstance(got, (ValueError, OverflowError, IndexError, MemoryError)) and not isinstance(want, TypeError)
    else:
        assert isinstance(got, numpy.ndarray), got
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert numpy.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("n", [12, 40_000])
def test_recorded_indices_wrap_at_once(n: int) -> None:
    with config.override(tape_limit=0):
        far = [2**62, -(2**62), 2**63 - 1, -(2**63), 2**60 + 1, 0, -1]
        assert lazynp.take(lazynp.arange(n) + 0, far, mode="wrap").tolist() == [k % n for k in far]


# Numbers beyond what the dtypes of the graph hold: NumPy makes objects of them, compares them, or refuses them, and so do we.
BEYOND = """
np.full(3, {h})
np.full((), {h})
np.full(3, {h}, bool)
np.full(3, {h}, "f8")
np.full(3, {h}, "i8")
np.full_like(x, {h})
np.array([{h}, 1])
x + {h}
x > {h}
x == {h}
{h} < x
c == {h}
f < {h}
i == {h}
i < {h}
i + {h}
np.where(x > 1, {h}, 0)
np.linspace(0, {h}, 5)
np.linspace({h}, 0, 3)
np.logspace(0, {h}, 3)
np.eye(3, k={h})
np.searchsorted(x, {h})
np.searchsorted(i, [{h}, 0])
np.isin(i, {h})
np.isin(i, [{h}])
np.interp({h}, x, x)
np.add.at(i, [0], {h})
np.array_split(x, {h})[2**70]
x.reshape({h})
x.sum({h})
x.sum(axis=({h},))
np.stack([x, x], {h})
np.moveaxis(x, 0, {h})
np.transpose(x, ({h},))
np.tile(x, {h}) if {h} != 1e300 else 0
np.full({h}, 1.0)
np.full(2**62, 1.0)
np.identity({h})
np.digitize(i, [{h}])
np.clip(i, 0, {h})
np.sum(x, initial={h})
"""
# Axes beyond the integers of C, by what NumPy raises; what is no axis, and a shape that is none.
AXES = """
x.sum({v})
x.cumsum({v})
np.sort(x, {v})
np.argsort(x, {v})
np.argmax(x, {v})
np.take(x, 0, {v})
np.repeat(x, 2, {v})
np.compress([True], x, {v})
np.concatenate([x, x], {v})
np.stack([x, x], {v})
np.moveaxis(x, 0, {v})
np.swapaxes(x, 0, {v})
np.roll(x, 1, {v})
np.flip(x, {v})
np.squeeze(x, {v})
np.expand_dims(x, {v})
np.mean(x, {v})
np.std(x, {v})
np.median(x, {v})
np.quantile(x, 0.5, {v})
np.diff(x, 1, {v})
np.insert(x, 0, 1.0, {v})
np.delete(x, 0, {v})
np.packbits(x > 0, {v})
np.add.reduce(x, {v})
np.add.accumulate(x, {v})
np.add.reduceat(x, [0], {v})
np.linspace(0, x, 3, axis={v})
np.partition(x, 1, {v})
"""
NUMBERS = ["2**64", "(-2**63 - 1)", "2**1100", "1e300"]


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("call", BEYOND.split("\n")[1:-1])
def test_numbers_that_no_dtype_of_the_graph_holds(call: str, below: int) -> None:
    x = numpy.linspace(0.5, 1.5, 12)
    with config.override(tape_limit=below):
        for h in NUMBERS:
            expression(call.replace("{h}", h), x=x, i=numpy.arange(12), c=x * 1j, f=x.astype("f4"))


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("call", AXES.split("\n")[1:-1])
def test_axes_beyond_the_integers_of_c(call: str, below: int) -> None:
    x = numpy.linspace(0.5, 1.5, 12)
    with config.override(tape_limit=below):
        for v in ("2**31", "-2**31 - 1", "2**40", "2**63 - 1", "-2**63"):
            expression(call.replace("{v}", v), x=x)


TRUTH = """
np.sum(m, axis=True)
np.sum(m, axis=False)
np.mean(m, axis=True)
np.max(m, axis=True)
np.cumsum(m, axis=True)
np.sort(m, axis=True)
np.argsort(m, axis=True)
np.argmax(m, axis=True)
np.concatenate([m,m], axis=True)
np.stack([m,m], axis=True)
np.expand_dims(m, True)
np.squeeze(m[None], True)
np.swapaxes(m, True, 0)
np.moveaxis(m, True, 0)
np.roll(m, 1, axis=True)
np.roll(m, True)
np.flip(m, True)
np.take(m, 0, axis=True)
np.repeat(m, 2, axis=True)
np.delete(m, 0, axis=True)
np.append(m, m, axis=True)
np.split(m, 3, axis=True)
np.diff(m, axis=True)
np.median(m, axis=True)
np.std(m, axis=True)
np.any(m, axis=True)
np.prod(m, axis=True)
np.linalg.norm(m, axis=True)
np.fft.fft(m, axis=True)
np.unique(m, axis=True)
np.transpose(m, (True, False))
np.rot90(m, True)
np.percentile(m, 50, axis=True)
np.quantile(m, .5, axis=True)
np.nansum(m, axis=True)
np.add.reduce(m, axis=True)
np.add.accumulate(m, axis=True)
np.add.reduceat(m, [0,1], axis=True)
m.sum(axis=True)
m.sum(True)
m.mean(True)
m.max(True)
m.cumsum(True)
m.take(0, axis=True)
m.argmax(True)
m.sort(True)
m.repeat(2, axis=True)
m.swapaxes(True, False)
np.count_nonzero(m, axis=True)
np.average(m, axis=True)
np.ptp(m, axis=True)
np.gradient(m, axis=True)
np.trapezoid(m, axis=True)
np.apply_along_axis(np.sum, True, m)
np.array_split(m, 2, True)
np.argpartition(m, 1, axis=True)
np.partition(m, 1, axis=True)
np.take_along_axis(m, np.argsort(m,1), True)
np.cross(m, m, axis=True)
np.packbits(m.astype(bool), axis=True)
np.all(m, axis=(True,))
np.sum(m, axis=(False,True))
np.sum(m, axis=np.True_)
np.reshape(m, True)
np.reshape(m, (True, 6))
np.zeros(True)
np.zeros((True, 2))
np.ones(np.True_)
np.eye(True)
np.arange(True)
np.full(True, 2)
np.broadcast_to(x, (True, 5))
np.linspace(0, 1, True)
m[True]
m[True, 0]
x.reshape(True, 5)
np.resize(x, True)
np.tri(True)
np.tile(m, True)
np.repeat(m, True)
np.identity(True)
np.diag(x, True)
np.trace(m, True)
np.triu(m, True)
np.tri(3.0)
np.tri(2, 3.5)
np.tri(3, k=0.5)
np.insert(x, 1.0, 5)
"""


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("call", TRUTH.split("\n")[1:-1])
def test_truth_values_where_integers_are_asked_for(call: str, below: int) -> None:
    """Some functions of NumPy's take them, as axes or lengths, others do not."""
    with config.override(tape_limit=below):
        expression(call, x=numpy.arange(5.0), i=numpy.arange(5), m=numpy.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    "call",
    ["np.geomspace(1, 1000, 7)", "np.geomspace(-3.3, -9.1e5, 1001)", "np.geomspace(np.float32(3.3), 9.1e5, 101)",
     "np.geomspace(1e-300, 1e300, 601)"],
)
def test_a_geometric_progression_between_numbers_has_numpys_bits(call: str) -> None:
    with config.override(tape_limit=0):
        numpy.testing.assert_array_equal(numpy.asarray(eval(call, {"np": lazynp})), eval(call, {"np": numpy}))


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("call", ["np.reshape(x, None)", "x.reshape(None)", "np.split(x, [None])", "np.array_split(x, [1, None, 2])"])
def test_none_where_numpy_takes_it(call: str, below: int) -> None:
    with config.override(tape_limit=below):
        expression(call, x=numpy.linspace(0.5, 1.5, 12).reshape(3, 4))


@pytest.mark.parametrize("below", [0, 16384])
def test_a_matrix_that_is_too_large_is_refused_at_the_call(below: int) -> None:
    with config.override(tape_limit=below), pytest.raises(ValueError, match="array is too big"):
        lazynp.identity(2**31)
