"""Whose bits a result has follows from the operation's own size: not from the form of the call, who looks, or what waits."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp as np
from lazynp.array import core
from lazynp.values import config

OWN: Final = ("exp", "exp2", "expm1", "log", "sin", "cos", "sinh", "cosh", "tanh")
ABOVE: Final = 4096  # elements
MANY: Final = 5000


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    if core.compiled("exp", numpy.ones(3)) is None:
        pytest.skip("this processor has no loops of lazynp's own")
    with config.override(tape_limit=786432, numerics="auto"):
        yield


def numbers(n: int, dtype: Any = float) -> Any:
    return (numpy.random.default_rng(7).random(n) * 3 + 0.1).astype(dtype)


def own(name: str, x: Any) -> Any:
    """What lazynp's own loop gives."""
    found = core.compiled(name, numpy.ascontiguousarray(x))
    assert found is not None
    return found[0]


def in_place(f: Any, x: Any) -> Any:
    f(x, out=x)
    return x


def into(f: Any, x: Any) -> Any:
    out = x.copy()
    assert f(x, out) is out
    return out


def chosen(f: Any, x: Any) -> Any:
    return f(x, where=x > -1, out=x * 0)


def at_the_call(f: Any, x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.array(f(x))


def eager(f: Any, x: Any) -> Any:
    with config.override(eager=True):
        return np.array(f(x))


FORMS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "pending": lambda f, x: f(x),
    "after another step": lambda f, x: f(x * 1.0),
    "beside others": lambda f, x: (f(x) + 0.0, f(x) * 2)[0],
    "in two rows": lambda f, x: f(x.reshape(2, -1)).ravel(),
    "every other": lambda f, x: f(x.repeat(2)[::2]),
    "backwards": lambda f, x: f(x[::-1])[::-1],
    "in columns": lambda f, x: f(x.reshape(50, -1).copy("F")).ravel(),
    "of what NumPy has": lambda f, x: f(numpy.array(x)),
    "asked of NumPy": lambda f, x: getattr(numpy, f.__name__)(x),
    "of a list": lambda f, x: f(x.tolist()) if x.dtype == float else f(x),
    "in place": in_place,
    "into": into,
    "where": chosen,
    "with a keyword": lambda f, x: f(x, casting="same_kind"),
    "at the call": at_the_call,
    "eager": eager,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OWN)
def test_the_bits_are_those_of_the_size(name: str, form: str) -> None:
    for n, dtype in [(MANY, float), (ABOVE + 4, float), (4050, float), (MANY, "f4"), (4050, "f4")]:
        x = numbers(n, dtype)
        ours = n > ABOVE and core.compiled(name, x[:8]) is not None and (dtype is float or name not in ("sin", "cos", "sinh"))
        # NumPy's bits follow from how the operand lies
        expected = own(name, x) if ours else numpy.asarray(FORMS[form](getattr(numpy, name), x.copy()))
        got = FORMS[form](getattr(np, name), np.array(x))
        assert got.dtype == x.dtype
        numpy.testing.assert_array_equal(numpy.asarray(got), expected, err_msg=f"{n} elements of {dtype}")


@pytest.mark.parametrize("dtype", ["i8", "i4", "u4", "i2", "u2", "i1", "?", "f2"])
def test_whole_numbers_are_computed_as_what_numpy_makes_of_them(dtype: str) -> None:
    x = (numbers(MANY) * 9 % 11).astype(dtype)
    real = numpy.exp(x[:1]).dtype
    expected = own("exp", x.astype(real)) if real.char in "df" else numpy.exp(x)
    for form in ("pending", "at the call", "eager", "asked of NumPy", "with a keyword"):
        got = numpy.asarray(FORMS[form](np.exp, np.array(x)))
        assert got.dtype == real
        numpy.testing.assert_array_equal(got, expected, err_msg=form)


@pytest.mark.parametrize("dtype", ["i8", "u4", "i4", "f8"])
@pytest.mark.parametrize("name", ["exp", "cosh", "sin"])
def test_bits_do_not_follow_from_what_was_shown(name: str, dtype: str) -> None:
    """Above a quarter of the limit some functions are asked for in another way than below."""
    for n in (MANY, 200_000):
        x = (numbers(n) * 9 % 5).astype(dtype)
        arrays = [np.array(x), np.array(x)[:], np.array(x) * 1, np.array(x.reshape(-1, 1)).T, np.array(x)]
        shown = numpy.asarray(arrays[-1])
        want = numpy.asarray(getattr(np, name)(np.array(x)))
        for a in arrays:
            numpy.testing.assert_array_equal(numpy.asarray(getattr(np, name)(a)).ravel(), want)
        del shown


def test_a_dtype_that_is_asked_for_is_numpys_to_compute() -> None:
    x = numbers(MANY, "f4")
    for name in OWN:
        got = getattr(np, name)(np.array(x), dtype=float)
        assert got.dtype == float
        numpy.testing.assert_array_equal(numpy.asarray(got), getattr(numpy, name)(x, dtype=float))


@pytest.mark.parametrize("name", OWN)
def test_errors_are_told_as_numpy_tells_them(name: str) -> None:
    x = numbers(MANY)
    x[[5, 4999]] = -1.0, 1e300
    for form in ("pending", "at the call", "into", "asked of NumPy"):
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            getattr(numpy, name)(x)
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            numpy.asarray({**FORMS, "at the call": lambda f, x: f(x)}[form](getattr(np, name), np.array(x)))
        assert [str(w.message) for w in ours] == [str(w.message) for w in theirs], form


def test_underflow_that_is_minded_is_numpys_to_tell() -> None:
    x = -numbers(MANY) * 400
    with numpy.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        np.exp(np.array(x)).realize()


def test_other_functions_keep_numpys_bits() -> None:
    x = numbers(MANY)
    for name in ("tan", "arctan", "cbrt", "log10", "log2", "log1p", "arcsinh", "sqrt"):
        numpy.testing.assert_array_equal(numpy.asarray(getattr(np, name)(np.array(x))), getattr(numpy, name)(x), err_msg=name)
    for name in ("power", "hypot", "arctan2"):
        got = getattr(np, name)(np.array(x), np.array(x + 1))
        numpy.testing.assert_array_equal(numpy.asarray(got), getattr(numpy, name)(x, x + 1), err_msg=name)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", OWN)
def test_pieces_have_the_bits_of_the_whole(name: str, threads: int) -> None:
    x = numbers(150_001)
    with config.override(threads=threads):
        for form in ("pending", "in place", "every other", "at the call"):
            numpy.testing.assert_array_equal(numpy.asarray(FORMS[form](getattr(np, name), np.array(x))), own(name, x), err_msg=form)


def test_fast_is_for_every_size() -> None:
    with config.override(numerics="fast"):
        for n in (1, 7, 300):
            x = numbers(n)
            for name in OWN:
                for form in ("pending", "into", "asked of NumPy"):
                    numpy.testing.assert_array_equal(numpy.asarray(FORMS[form](getattr(np, name), np.array(x))), own(name, x))


PROGRAM: Final = """
import sys
import numpy
import lazynp as np

rng = numpy.random.default_rng(3)
for shape in [(5,), (4097,), (200_001,), (1_000_003,), (1200, 900), (3, 400_000)]:
    a, b = rng.standard_normal(shape), rng.standard_normal(shape)
    x, y = np.array(a), np.array(b)
    def both(f):
        global wrong
        ours, theirs = numpy.asarray(f(np, x, y)), numpy.asarray(f(numpy, a, b))
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if ours.tobytes() != theirs.tobytes():
            print(shape, f.__code__.co_firstlineno, ours, theirs)
    both(lambda np, x, y: np.sin(x) * np.exp(-y) + np.tanh(x * y))
    both(lambda np, x, y: (x * y).sum())
    both(lambda np, x, y: (np.exp(x) + y).sum(axis=0))
    both(lambda np, x, y: (x - y).mean(axis=-1))
    both(lambda np, x, y: np.sqrt(x * x + y * y).std())
    both(lambda np, x, y: np.where(x > y, np.cos(x), np.log(np.abs(y))).max(axis=-1))
    both(lambda np, x, y: np.power(np.abs(x), 1.7) - np.hypot(x, y))
    both(lambda np, x, y: np.cumsum(x - y, axis=-1))
    both(lambda np, x, y: np.sort(x + y, axis=0)[::-1])
    both(lambda np, x, y: (x[..., 1:] - x[..., :-1]) ** 2 + y[..., 1:] ** 3)
    x[..., 1:] += y[..., :-1]; a[..., 1:] += b[..., :-1]
    both(lambda np, x, y: x)
    x *= 0.5; a *= 0.5
    both(lambda np, x, y: np.var(x, axis=0))
"""


@pytest.mark.parametrize("more", [{}, {"LAZYNP_THREADS": "3"}, {"LAZYNP_EAGER": "1"}])
def test_numpys_bits_at_every_size(more: dict[str, str]) -> None:
    environment = {**os.environ, "LAZYNP_NUMERICS": "numpy", **more}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr[-2000:]) == (0, "", "")


@pytest.mark.parametrize("name", [*OWN, "tan"])
def test_ordinary_numbers_raise_no_flag(name: str) -> None:
    for dtype in (float, "f4"):
        for n in (1, 8, 17, MANY):
            found = core.compiled(name, numbers(n, dtype))
            assert found is None or found[1] == 0, (dtype, n)  # else all of it is computed once more, to find out what is to be told


@pytest.mark.parametrize("name", ["arctan", "cbrt", "arccos", "power", "hypot"])
def test_costly_functions_have_one_law_in_every_form(name: str) -> None:
    with config.override(tape_limit=4000):
        x = numbers(1500) / 4
        for n in (900, 1500):  # a quarter of the limit is in between
            args = [np.array(x[:n])] if getattr(numpy, name).nin == 1 else [np.array(x[:n]), np.array(x[:n] + 1)]
            f = getattr(np, name)
            wanted = numpy.asarray(f(*args))
            numpy.testing.assert_array_equal(numpy.asarray(f(*args, out=np.zeros(n))), wanted)
            numpy.testing.assert_array_equal(numpy.asarray(f(*args, np.zeros(n))), wanted)
            numpy.testing.assert_array_equal(numpy.asarray(f(*args, where=np.array(x[:n]) > 0, out=np.zeros(n))), wanted)
