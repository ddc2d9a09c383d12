"""What NumPy says of wrong calls: for every name of the namespace the same class of exception, with the same text.

In: the names and good calls of ``test_every_name``.  Out: a test of each name.  Promise: wrong calls are made by rule of its good calls (an
argument too few or too many, an axis that is not there, shapes that do not fit, an operand of another kind, ...), so that a new name is in
it by itself.  Whether a call is refused is compared, too.  Operands are pending, once below the limit of size and once above it: a limit
that is lower, for NumPy takes seconds to refuse some calls with large arrays.  What is different on purpose is in ``ELSEWISE``.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.namespace.test_every_name import BELOW, PATHS, Operands, suited

# What is not the same in all runs.
CHANGING = r"(?<=0x)[0-9a-f]+"
LIMIT = 5  # elements: operands have more, and lists of positions are at hand
MOST = 30  # positional arguments, more than any function takes
KEYWORDS = (
    "axis=7", "axis='x'", "axis=1.5", "axis=(0, 0)", "axis=(0, 7)", "nonsense=1", "dtype='nonsense'", "out=numpy.zeros((2, 3, 5))",
    "out=numpy.zeros(3, 'S1')", "out='x'", "keepdims='x'", "where='x'", "casting='nonsense'", "order='Q'",
)  # fmt: skip
ARRAYS = ("numpy.array(['a', 'b'])", "numpy.array([None, 1])", "(y * 1)[:0]", "y[:3]", "m[:2, :5]", "numpy.asarray(2.5) * 1")
OPERANDS = (*ARRAYS, "None", "'ab'", "object", "[[1], [1, 2]]")

# Path -> which of its calls are different, as a regular expression, and why.
ELSEWISE = {
    ".to_device": (r".*", "devices are lazynp's: GPUs have names, and the texts say so"),
    ".conj": (r"\(?numpy\.a.*", "a method of NumPy's own objects (numbers, arrays of strings) does not take our array as its output"),
    ".conjugate": (r"\(?numpy\.a.*", "the same"),
    "fft.fftfreq": (r".*dtype=.*", "a keyword of the array API standard that NumPy has not"),
    "fft.rfftfreq": (r".*dtype=.*", "the same"),
}


@functools.cache
def parsed(form: str) -> tuple[list[str], list[str]]:
    """The arguments of a form of calls, those without a name and those with one."""
    call: Any = ast.parse(f"f({form})", mode="eval").body
    return [ast.unparse(one) for one in call.args], [f"{one.arg}={ast.unparse(one.value)}" for one in call.keywords]


def bad_calls(path: str) -> Iterator[str]:
    """Calls that may be wrong, of the first two good ones."""
    method = path.startswith(".")

    def written(args: list[str], named: list[str], receiver: str = "m") -> str:
        return (f"{receiver}{path}" if method else f"numpy.{path}") + f"({', '.join([*args, *named])})"

    for k, form in enumerate(suited(path)[0][:2]):
        args, named = parsed("" if form.startswith("=") else form)
        if k == 0:
            yield written(args[:-1], [])
            yield written([], [])
            yield written([*args, *["None"] * (MOST - len(args))], [])
            for keyword in KEYWORDS:
                yield written(args, [*[each for each in named if each.partition("=")[0] != keyword.partition("=")[0]], keyword])
        if method:
            yield from [written(args, named, f"({operand})" if " " in operand else operand) for operand in ARRAYS]
        for place in range(min(len(args), 3 - k)):
            yield from [written([*args[:place], operand, *args[place + 1 :]], named) for operand in OPERANDS]


code = functools.cache(functools.partial(compile, filename="a call", mode="eval"))


def refusal(m: Any, text: str, rows: int) -> tuple[str, str]:
    """The class and the text of the exception that a call raises; addresses are all the same."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = eval(code(text), {"__builtins__": __builtins__}, Operands(m, rows))
            for value in result if isinstance(result, (tuple, list)) else (result,):
                if type(value) is lazynp.ndarray:
                    numpy.asarray(value)
        except Exception as error:
            return type(error).__name__, re.sub(CHANGING, "", str(error))
    return "", ""


def is_meant(path: str, text: str) -> bool:
    return path in ELSEWISE and re.fullmatch(ELSEWISE[path][0], text) is not None


@functools.cache
def expected(path: str) -> dict[str, tuple[str, str]]:
    """What NumPy says of each bad call."""
    calls = [text for text in dict.fromkeys(bad_calls(path)) if not is_meant(path, text)]
    return {text: refusal(numpy, text, BELOW) for text in calls}


def differences(path: str) -> list[str]:
    found = []
    for text, want in expected(path).items():
        got = refusal(lazynp, text, BELOW)
        if got != want:
            found.append(f"{text}: {got} instead of {want}")
    return found


@pytest.mark.parametrize("path", PATHS)
def test_below_the_limit(path: str) -> None:
    assert not differences(path)


@pytest.mark.parametrize("path", PATHS)
def test_above_the_limit(path: str) -> None:
    with config.override(tape_limit=LIMIT):
        assert not differences(path)


def test_nothing_of_the_program_is_written_or_called() -> None:
    called: list[Any] = []
    out, x = numpy.full(3, 7.0), lazynp.ones((900, 900)) * 2
    for call in (
        lambda: lazynp.sum(x, axis=0, out=out),
        lambda: lazynp.cumsum(x[0, :4], out=out),
        lambda: lazynp.apply_along_axis(called.append, 5, x),
        lambda: x.put([0], [1.0], mode="nonsense"),
        lambda: x.sort(axis=7),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert (out == 7).all()
    assert not called
    assert x[0, 0] == 2 and x[899, 899] == 2


def test_large_operands_are_not_computed_for_a_text() -> None:
    x = lazynp.ones((1 << 13, 1 << 13)) * 2  # half a gigabyte, if somebody had it
    for call in (lambda: lazynp.reshape(x, (3, 7)), lambda: x.sum(axis=2), lambda: lazynp.sort(x, nonsense=1)):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert x._base is None and x._node.buffer is None
