"""Random calls of ufuncs and their methods: dtypes, shapes, memory orders and keywords that nobody would put together by hand.

``LAZYNP_EXAMPLES`` sets how many.  A call that differs is printed as the expression that it is.
"""

from __future__ import annotations

import os
import random
from math import prod
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from tests.namespace.compare import DTYPES, difference, outcome

UFUNCS = {name: value for name, value in vars(numpy).items() if isinstance(value, numpy.ufunc) and name == value.__name__}
BINARY = sorted(name for name, value in UFUNCS.items() if value.nin == 2 and value.signature is None)
UNARY = sorted(name for name, value in UFUNCS.items() if value.nin == 1 and name != "isnat")

SHAPES = [(), (1,), (4,), (0,), (2, 3), (3, 1), (2, 0, 3), (2, 3, 4), (1, 3)]
VIEWS = ["{}", "{}.T", "{}[::-1]", "{}[1:]", "{}[..., ::2]", "{}[None]", "np.broadcast_to({0}, (2, *{0}.shape))"]
AXES = ["0", "-1", "1", "None", "(0, 1)", "(0,)", "()", "5"]
INDICES = [
    "0", "[0, 0]", "[0, -1]", "np.array([0, 0, 0])", "...", "slice(None)", "([0], [0])", "(slice(None), [0, 0])", "[]", "9",
    "np.array([True])", "(0,)", "None", "[True, False, True, False]",
]  # fmt: skip
SEGMENTS = ["[0]", "[0, 1]", "[1, 0]", "[]", "[0, 2, 1]", "[-1]", "np.array([0, 1])", "[7]"]
OUTPUTS = ["np.zeros((2, 3))", "np.zeros(4, 'f4')", "np.zeros((2, 3), int)", "None", "np.zeros(())", "np.zeros((2, 3, 4), 'c8')"]
SCALARS = ["2", "2.5", "True", "1j", "-1"]


class Calls:
    """A source of expressions in ``np``."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def array(self) -> str:
        shape, view = self.dice.choice(SHAPES), self.dice.choice(VIEWS)
        text = f"np.arange({prod(shape)}).reshape({shape}).astype({self.dice.choice(DTYPES)!r})"
        return (view if shape or "[" not in view or "None" in view else "{}").format(text)

    def keywords(self, **chances: tuple[float, list[str]]) -> str:
        given = {name: self.dice.choice(values) for name, (chance, values) in chances.items() if self.dice.random() < chance}
        if given.get("where", "True") != "True" and given.get("out", "None") == "None":
            del given["where"]  # what is masked would be garbage
        return "".join([f", {name}={value}" for name, value in given.items()])

    def call(self) -> str:
        choose = self.dice.choice
        name, dtypes = choose(BINARY), [repr(dtype) for dtype in DTYPES]
        kind = self.dice.randrange(9)
        if kind < 2:
            keywords = self.keywords(
                axis=(0.8, AXES), keepdims=(0.3, ["True"]), dtype=(0.2, dtypes), initial=(0.3, ["1", "0", "None", "2.5", "True"])
            )
            where = choose(["", "", "", ", where=True", ", where=np.array([True])", ", where=[True, False, True]"])
            return f"np.{name}.reduce({self.array()}{keywords}{where})"
        if kind == 2:
            return f"np.{name}.accumulate({self.array()}{self.keywords(axis=(0.8, AXES), dtype=(0.3, dtypes))})"
        if kind == 3:
            return f"np.{name}.reduceat({self.array()}, {choose(SEGMENTS)}{self.keywords(axis=(0.7, AXES))})"
        if kind == 4:
            return f"np.{name}.outer({self.array()}, {self.array()})"
        if kind == 5:
            value = choose([*SCALARS, "[1, 2]", "np.ones(2, 'f4')", "np.arange(3)"])
            return f"(lambda a: (np.{name}.at(a, {choose(INDICES)}, {value}), a))({self.array()}.copy())"
        if kind == 6:
            return f"(lambda a: (np.{choose(UNARY)}.at(a, {choose(INDICES)}), a))({self.array()}.copy())"
        keywords = self.keywords(
            out=(0.4, OUTPUTS), where=(0.3, ["True", "np.array([True, False, True])", "np.array([[True], [False]])", "1"]),
            dtype=(0.3, dtypes), casting=(0.3, ["'no'", "'safe'", "'same_kind'", "'unsafe'"]), order=(0.2, ["'C'", "'F'", "'A'", "'K'"]),
        )  # fmt: skip
        if kind == 7:
            return f"np.{choose(UNARY)}({self.array()}{keywords})"
        # Of two errors, a number that does not fit and a cast that is not allowed, NumPy and we may raise another.
        scalars = SCALARS[:-1] if keywords else SCALARS
        return f"np.{name}({self.array()}, {choose([self.array(), *scalars])}{keywords})"


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed: int) -> None:
    calls = Calls(seed)
    for _ in range(max(100, int(os.environ.get("LAZYNP_EXAMPLES", "0")) // 4)):
        text = calls.call()

        def call(np: Any, text: str = text) -> Any:
            return eval(text, {"np": np})

        want = outcome(call, numpy)
        report.reset()
        got = outcome(call, lazynp)
        found = difference(got, want, 8)
        assert found is None, f"{text}: {found}"
        assert not report.fallbacks, text
