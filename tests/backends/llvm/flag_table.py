"""Which functions raise floating-point flags on ordinary data, though NumPy reports nothing: none may.

In: functions, dtypes and lengths.  Out: the cases whose kernels made NumPy evaluate them again in vain.  Run as a script it prints them
for the math library that the environment asks for (``LAZYNP_LIBMVEC``, ``LAZYNP_POLYNOMIALS``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy

import lazynp
from lazynp.graph import report
from lazynp.values import config
from tests.differential.tables import words

UFUNCS = sorted(
    name
    for name, value in vars(numpy).items()
    if isinstance(value, numpy.ufunc) and value.__name__ == name and value.signature is None and name != "isnat"
)
MATH = words(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh cbrt hypot power "
    "float_power fmod remainder floor_divide divide sqrt"
)
LENGTHS = (1, 3, 7, 1003)  # parts of vectors, whole ones and a tail

RANGES: dict[str, Callable[[Any, int], Any]] = {
    "below one": lambda rng, n: rng.uniform(0.1, 0.9, n),
    "both signs": lambda rng, n: rng.uniform(-0.9, 0.9, n),
    "tens": lambda rng, n: rng.uniform(-30, 30, n),
    "whole": lambda rng, n: numpy.arange(n) % 5 + 1.0,
}


def softmax(np: Any, x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": softmax,
    "gelu": lambda np, x: 0.5 * x * (1 + np.tanh(0.79788 * (x + 0.044715 * x**3))),
    "normalise": lambda np, x: (x - x.mean(axis=0)) / x.std(axis=0),
    "stencil": lambda np, x: x[1:-1, 1:-1] + 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1]) / x[1:-1, 1:-1],
    "where": lambda np, x: np.where(x > 0, np.log(np.abs(x) + 1), np.sqrt(np.abs(x))),
    "log of sums": lambda np, x: np.log(np.exp(x).sum(axis=1)),
    "sum": lambda np, x: x.sum(),
    "products": lambda np, x: x.prod(axis=0),
    "running sum": lambda np, x: x.cumsum(axis=1),
    "spread": lambda np, x: x.var(axis=1) + np.ptp(x, axis=1),
}


class Report:
    """NumPy writes its messages here."""

    def __init__(self) -> None:
        self.count = 0

    def write(self, text: str) -> None:
        self.count += 1


def in_vain(function: Callable[..., Any], arrays: list[Any]) -> bool:
    """Whether flags were raised by ``function(module, *arrays)`` while NumPy reports nothing."""
    heard = Report()
    with numpy.errstate(divide="log", over="log", invalid="log", under="ignore", call=heard):
        function(numpy, *arrays)
    before = report.work.rechecks
    with config.override(tier="compiled"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = function(lazynp, *[lazynp.asarray(array) for array in arrays])
        for result in results if isinstance(results, tuple) else (results,):
            numpy.asarray(result)
    return report.work.rechecks > before and not heard.count


def ufuncs(names: Iterable[str], chars: str) -> list[str]:
    rng = numpy.random.default_rng(0)
    found = []
    for name in names:
        of = getattr(numpy, name)
        for char in chars:
            for label, values in RANGES.items():
                for n in LENGTHS:
                    arrays = [(values(rng, n) + (31 if name == "arccosh" else 0)).astype(char) for _ in range(of.nin)]
                    if arrays[0].dtype.kind in "iu":
                        arrays = [(numpy.abs(array) + 1).astype(char) for array in arrays]
                    try:
                        if in_vain(lambda np, *args, name=name: getattr(np, name)(*args), arrays):
                            found.append(f"{name} of {n} {char}, {label}")
                    except TypeError:
                        continue
    return found


def programs(chars: str) -> list[str]:
    rng = numpy.random.default_rng(1)
    return [
        f"{name} of {shape} {char}"
        for name, function in PROGRAMS.items()
        for char in chars
        for shape in ((40, 40), (33, 7), (5, 501))
        if in_vain(function, [rng.uniform(0.1, 0.9, shape).astype(char)])
    ]


if __name__ == "__main__":
    print("\n".join([*ufuncs(MATH, "fd"), *programs("fd")]))
