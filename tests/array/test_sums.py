"""Sums of many numbers, and of expressions that go with their sum.

In: lengths on both sides of every limit of how NumPy adds, expressions, error states, threads.  Out: failures.  Promise: NumPy is the
oracle, to the bit.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core

LENGTHS = [1, 7, 8, 127, 128, 129, 255, 1023, 1024, 1025, 1031, 4096, 8191, 8192, 8193, 10_007, 65_536, 100_003, 300_000, 786_432]

EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "it": lambda a, b: a,
    "product": lambda a, b: a * b,
    "squares": lambda a, b: (a - b) ** 2,
    "many": lambda a, b: abs(a) * b + a / 3 - 1,
    "negative": lambda a, b: -(a * 0.0),
    "of one number": lambda a, b: a * 0.0 + 1.1,
}

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "std": lambda x: x.std(),
    "var": lambda x: x.var(ddof=1) if x.size > 1 else x.var(),
}


OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "largest": lambda a, b: abs(a - b).max(),
    "least": lambda a, b: (a * b).min(),
    "of zeros": lambda a, b: (a * 0).max(),
    "it": lambda a, b: a.max(),
    "number": lambda a, b: (a > b).sum(),
    "share": lambda a, b: (a > b).mean(),
    "any": lambda a, b: (a > b).any(),
    "all": lambda a, b: (a > b).all(),
    "really all": lambda a, b: (a == a).all(),
    "none": lambda a, b: (a != a).any(),
    "held": lambda a, b: held(a > b),
}


def held(mask: Any) -> Any:
    return mask.any() + 2 * mask.all() + 4 * mask.sum()


def operands(xp: Any, n: int, dtype: str, seed: int = 0) -> tuple[Any, Any]:
    rng = numpy.random.default_rng(seed + n)
    return tuple([xp.asarray((rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n)).astype(dtype)) for _ in range(2)])  # type: ignore[return-value]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_bits_are_numpys(expression: str, name: str, dtype: str) -> None:
    make, number = EXPRESSIONS[expression], NUMBERS[name]
    for n in LENGTHS:
        found = numpy.asarray(number(make(*operands(lazynp, n, dtype))))
        expected = numpy.asarray(number(make(*operands(numpy, n, dtype))))
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes(), n


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?"])
@pytest.mark.parametrize("special", [False, True], ids=["plain", "special values"])
@pytest.mark.parametrize("name", OTHERS)
def test_extremes_and_counts_are_numpys(name: str, special: bool, dtype: str) -> None:
    make = OTHERS[name]
    if dtype == "?" and name in ("largest", "of zeros"):
        return
    for n in LENGTHS:
        theirs = []
        for x in operands(numpy, n, "f8"):
            values = (x if dtype[0] == "f" else numpy.arange(n) * 7919 % 251 - 100 * (dtype[0] == "i")).astype(dtype)
            if special and dtype[0] == "f":
                values[:: max(n // 3, 1)] = numpy.nan
            theirs.append(values)
        with numpy.errstate(over="ignore", invalid="ignore"):
            expected = numpy.asarray(make(*theirs))
            found = numpy.asarray(make(*[lazynp.asarray(x.copy()) for x in theirs]))
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes(), n


@pytest.mark.parametrize("shape", [(30, 1000), (1000, 30), (8, 60, 70), (2, 40_000), (40_000, 2)])
def test_rows_beside_a_row(shape: tuple[int, ...]) -> None:
    theirs, ours = [], []
    for xp, numbers in ((numpy, theirs), (lazynp, ours)):
        m = xp.asarray(numpy.random.default_rng(3).standard_normal(shape))
        row, part = m[(0,) * (len(shape) - 1)].copy(), m[..., ::2]
        numbers += [((m - row) ** 2).sum(), (m * m[..., :1]).sum(), (part * part).sum(), (m.T * 2.0).sum(), (m[::-1] * m).mean()]
    assert [float(x).hex() for x in ours] == [float(x).hex() for x in theirs]


def test_what_is_summed_never_lies_in_memory() -> None:
    a, b = operands(lazynp, 100_000, "f8")
    lazynp.realize(a, b)
    passes, steps = core.chain_counts()[:2]
    found = float((a * b + 1.0).sum())
    assert core.chain_counts()[:2] == (passes, steps)  # no tape was computed
    assert found == float((numpy.asarray(a) * numpy.asarray(b) + 1.0).sum())
    held = a * b + 1.0
    assert float(held.sum()) == float((numpy.asarray(a) * numpy.asarray(b) + 1.0).sum())
    assert sum(core.chain_counts()[:2]) == passes + steps + 1  # what the program still has is


def test_what_else_the_program_has_is_computed_with_it() -> None:
    a, b = operands(lazynp, 50_000, "f8")
    x, y = numpy.asarray(a).copy(), numpy.asarray(b).copy()
    apart = a - b
    other = apart * 3.0
    assert float((apart * apart).sum()) == float(((x - y) * (x - y)).sum())
    numpy.testing.assert_array_equal(numpy.asarray(apart), x - y)
    numpy.testing.assert_array_equal(numpy.asarray(other), (x - y) * 3.0)


@pytest.mark.parametrize("n", [2000, 200_000])
def test_errors_are_told_once_at_their_line(n: int) -> None:
    x = lazynp.asarray(numpy.linspace(0.0, 1.0, n))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert numpy.isinf(float((1.0 / x).sum()))
        assert numpy.isinf(float((x * 1e308).sum()))
    assert [str(warning.message) for warning in told] == ["divide by zero encountered in divide", "overflow encountered in reduce"]
    with numpy.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        (1.0 / x).sum()
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numpy.isinf(float((1.0 / x).sum()))


def test_an_operand_that_another_thread_writes_meanwhile_is_read_before() -> None:
    n, wrong, over = 400_000, [], threading.Event()
    x = lazynp.zeros(n) + 1.0
    lazynp.realize(x)

    def write() -> None:
        while not over.is_set():
            x[...] = 2.0
            x[...] = 1.0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            y = x * 1.0
            lazynp.realize(y)
            found, expected = float((y * 3.0 + y).sum()), float((numpy.asarray(y) * 3.0 + numpy.asarray(y)).sum())
            if found != expected:
                wrong.append((found, expected))
    finally:
        over.set()
        writer.join()
    assert not wrong


def test_threads_sum_what_they_have_recorded() -> None:
    n, wrong = 100_000, []

    def work(seed: int) -> None:
        a, b = operands(lazynp, n, "f8", seed)
        expected = float((numpy.asarray(a) * numpy.asarray(b) + 1.0).sum())
        for _ in range(100):
            if float((a * b + 1.0).sum()) != expected:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("size", [1, 7, 9, 64, 100, 129, 8192, 8193, 20000, 100003])
def test_means_and_sums_of_singles_are_numpys(size: int) -> None:
    random = numpy.random.default_rng(size)
    for scale in (1e-5, 1.0, 1e5):
        x = ((random.standard_normal(size) + 0.1) * scale).astype("f4")
        for theirs in (x, x[::-1], x[::2]):
            ours = lazynp.array(theirs)
            for call in (lambda v: v.mean(), lambda v: v.sum(), lambda v: (v * 2 + 1).mean(), lambda v: (v * v).sum()):
                found, want = call(ours), call(numpy.array(theirs))
                assert numpy.asarray(found).dtype == numpy.float32 and numpy.asarray(found).tobytes() == want.tobytes()
    nan = numpy.array([1, numpy.nan, numpy.inf] * size, "f4")
    assert numpy.isnan(lazynp.array(nan).mean()) and numpy.isnan(lazynp.array(nan).sum())


@pytest.mark.parametrize("size", [1, 7, 100, 8191, 8192, 8193, 100_003])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_means_of_whole_numbers_are_numpys(dtype: str, size: int) -> None:
    """Also where their sum is rounded, in pieces."""
    x = numpy.random.default_rng(size).integers(-(2**62), 2**62, size).astype(dtype)
    for theirs in (x, x[::-1], x[::2], x.reshape(1, -1).T):
        ours = lazynp.array(theirs)
        for call in (lambda v: v.mean(), lambda v: (v + v).mean(), lambda v: v[1:-1].mean() if size > 2 else v.mean()):
            found, want = call(ours), call(numpy.array(theirs))
            assert type(found).__name__ == "float64" and numpy.asarray(found).tobytes() == want.tobytes()


@pytest.mark.parametrize("shape", [(1,), (9,), (1000,), (3, 40), (40, 3), (2, 3, 50), (20_000,)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1", "c16"])
def test_scans_are_numpys(dtype: str, shape: tuple[int, ...]) -> None:
    x = (numpy.random.default_rng(4).standard_normal(shape) * 3).astype(dtype)
    for theirs in (x, x[::-1], x.T):
        ours, plain = lazynp.array(theirs), numpy.array(theirs)
        for axis in (None, *range(-x.ndim, x.ndim)):
            for name in ("cumsum", "cumprod"):
                with numpy.errstate(all="ignore"), lazynp.errstate(all="ignore"):
                    found, want = getattr(ours + 0, name)(axis=axis), getattr(plain + 0, name)(axis=axis)
                    assert (found.dtype, found.shape) == (want.dtype, want.shape)
                    assert numpy.asarray(found).tobytes() == want.tobytes()


def test_errors_of_scans_are_told() -> None:
    for call in (lambda np: np.cumprod(np.array([1e200] * 3)), lambda np: np.cumsum(np.array([[1e308, 1], [1e308, 1]]), axis=0)):
        for module in (lazynp, numpy):
            with pytest.raises(FloatingPointError, match="overflow encountered in"), module.errstate(over="raise"):
                numpy.asarray(call(module))
