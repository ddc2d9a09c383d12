"""Operators in place on arrays at hand that are no longer small: NumPy's bits, warnings and exceptions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.values import config

# What is written, of a square matrix `a` of 120 rows, or of three axes; and the other operand.
TARGETS = [
    "a", "a[1:, 1:]", "a[:, 5]", "a[::2]", "a[:, ::2]", "a[:, 1:60]", "a.T", "a[::-1]", "a[:, ::-1]", "a.reshape(-1)",
    "a.reshape(-1)[7:]", "a[:, 3:7]", "a.reshape(24, 5, 120)", "a.reshape(24, 5, 120)[:, 1:, 2:]", "a.reshape(24, 120, 5)[:, :, :3]",
    "a[:1]", "a[5:6, 1:]", "a[:0]", "a[:, :, None]",
]  # fmt: skip
OTHERS = [
    "t.copy()", "t[0].copy()", "t[..., :1].copy()", "2.5", "3", "numpy.float64(0.5)", "numpy.asarray(t).copy()", "t", "t[:1]",
    "t.copy()[::-1]", "b[:1, :1]", "t.copy().astype('f4')", "t.copy().astype(int)", "b[1:, 1:]", "numpy.float32(0.1)", "1j", "[1.0]",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<"]


@pytest.fixture(autouse=True, params=[False, True], ids=["one thread", "several"])
def at_hand(request: pytest.FixtureRequest) -> Iterator[None]:
    with config.override(tape_limit=1 << 20, threads=2):
        core.share(1 if request.param else 60_000)
        yield
        core.share(60_000)


def left(np: Any, dtype: str, target: str, text: str, errors: str = "warn") -> Any:
    rng = numpy.random.default_rng(3)
    values = rng.integers(1, 9, (120, 120)).astype(dtype) if dtype[0] != "f" else (rng.normal(size=(120, 120)) * 1e3).astype(dtype)
    space = {"np": np, "numpy": numpy, "a": np.array(values), "b": np.array(values[::-1] + 1)}
    space["t"] = eval(target, space)
    heard: list[Any] = []
    with warnings.catch_warnings(record=True) as caught, numpy.errstate(all=errors, call=lambda *said: heard.append(said)):
        warnings.simplefilter("always")
        try:
            exec(compile(f"\n{text}", "program", "exec"), space)
            problem: Any = None
        except Exception as error:
            problem = type(error), str(error)
    told = [(w.category.__name__, str(w.message), w.lineno) for w in caught]
    return numpy.asarray(space["a"]).tobytes(), numpy.asarray(space["t"]).tobytes(), problem, told, heard


def compare(dtype: str, target: str, text: str, errors: str = "warn") -> None:
    found, want = left(lazynp, dtype, target, text, errors), left(numpy, dtype, target, text, errors)
    if found[2] is not None and want[2] is not None:
        assert found[2][0] is want[2][0], (target, text)
        found, want = (*found[:2], None, *found[3:]), (*want[:2], None, *want[3:])
    assert found == want, (dtype, target, text, errors, found[2:], want[2:])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?", "c16", "f2"])
@pytest.mark.parametrize("target", TARGETS)
def test_in_place(dtype: str, target: str) -> None:
    for other in OTHERS:
        for operator in OPERATORS if other == "t.copy()" else ("+", "*"):
            compare(dtype, target, f"t {operator}= {other}")


@pytest.mark.parametrize("errors", ["ignore", "warn", "raise", "call"])
@pytest.mark.parametrize("target", ["a", "a[1:, 1:]", "a[:, ::2]", "a.reshape(-1)"])
def test_errors_are_told_of_when_all_is_written(target: str, errors: str) -> None:
    texts = ["t *= 1e308", "t /= 0.0", "t -= numpy.inf; t += numpy.inf", "t *= 1e-320", "t /= t * 0", "t += numpy.nan"]
    for text in [*texts, "t[0] = numpy.inf; t -= t.copy()"]:
        compare("f8", target, text, errors)


def test_what_may_not_be_written() -> None:
    for np in (numpy, lazynp):
        a = np.ones((200, 200))
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            a[1:, 1:] += 1.0
        b = np.ones((200, 200))
        with pytest.raises(ValueError, match="broadcast"):
            b[1:, 1:] += np.ones(200)
        with pytest.raises(ValueError, match="broadcast"):
            b[0] += np.ones((200, 200))
        assert (b == 1).all()


WINDOWS = [((100, 50), (8, 8)), ((100, 50), (16, 8)), ((60, 60), (472, 8)), ((60, 60), (480, 8)), ((9, 9, 40), (800, 80, 8))]


@pytest.mark.parametrize(("shape", "strides"), WINDOWS)
def test_elements_that_share_memory(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """NumPy computes all before it writes."""
    for text in ("w += 1.0", "w *= 3.0", "w -= w[0]", "w += w[::-1].copy()"):
        left = []
        for np in (numpy, lazynp):
            memory = numpy.arange(8000.0)
            space = {"w": np.asarray(numpy.lib.stride_tricks.as_strided(memory, shape, strides))}
            exec(text, space)
            left.append(memory)
        assert numpy.array_equal(*left), text
    windows = [np.lib.stride_tricks.sliding_window_view(np.arange(150.0), 50, writeable=True) for np in (numpy, lazynp)]
    for each in windows:
        each += 1
    assert numpy.array_equal(*windows)
