"""The native functions of ``lazynp.special``, one row each, and the largest errors seen.

In: nothing.  Out: ``ROWS``: name -> what it is, how it becomes graph nodes, and its bound in units of the last place.  Promise: like
SciPy's, nothing here warns; single precision is computed in double and rounded once.

Most functions of one argument are one operation of the graph each.  The rest are written as array programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp.arrays import node_of, wrap
from lazynp.graph import op as o
from lazynp.graph.build import cast
from lazynp.graph.dtypes import FLOAT64
from lazynp.graph.node import Node
from lazynp.namespace.routines.selecting import where
from lazynp.namespace.special.ufuncs import scipy_item
from lazynp.namespace.ufunc import loops as compositions
from lazynp.namespace.ufunc.loops import Lowering, Outputs, Sources, by_kind
from lazynp.namespace.ufunc.ufuncs import UFUNCS as U
from lazynp.values import records


class Row(records.Row):
    """A native function.

    Attributes
    ----------
    what : str
        What it computes.
    lower : Lowering
        For real numbers.
    bound : int
        The largest error for float64; of ``kl_div``, in units of the largest of x, y and the value.
    left : int
        The same for x < 0, in units of the larger of 1 and the value, for functions that have zeros between poles there.
    nin : int
        Number of operands.
    complex : bool
        SciPy has it for complex numbers, and computes those.
    """

    what: str
    lower: Lowering
    bound: int
    left: int = 0
    nin: int = 1
    complex: bool = False

    def lowering(self, name: str) -> Lowering:
        return by_kind(self.lower, c=scipy_item(name)) if self.complex else self.lower


def _composed(function: Callable[..., Any]) -> Lowering:
    """An array program as a lowering: in double, without warnings."""

    def lower(nodes: Sources, outs: Outputs) -> Node:
        with np.errstate(all="ignore"):
            return cast(node_of(function(*[wrap(cast(x, FLOAT64)) for x in nodes])), outs[0])

    return lower


_abs, _and, _expm1, _floor, _fmod, _hypot, _isnan = (
    U[name] for name in ("absolute", "bitwise_and", "expm1", "floor", "fmod", "hypot", "isnan")
)
_log, _log1p = U["log"], U["log1p"]


def _product(x: Any, y: Any, logarithm: Any, harmless: float) -> Any:
    """``x * logarithm(y)``, and 0 where x is 0."""
    nothing = _and(x == 0.0, y == y)
    return where(nothing, 0.0, x * logarithm(where(nothing, harmless, y)))


def _entr(x: Any) -> Any:
    positive = x > 0.0
    return where(positive, -x * _log(where(positive, x, 1.0)), where(x < 0.0, -np.inf, x * 0.0))


def _relative(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """x log(x / y) for positive arguments, whether they are, and the value that it has otherwise."""
    positive = _and(x > 0.0, y > 0.0)
    a, b = where(positive, x, 1.0), where(positive, y, 1.0)
    ratio = a / b
    close = _and(ratio > 0.5, ratio < 2.0)  # the difference is exact, the quotient's distance from 1 is not
    normal = _and(ratio > np.finfo(np.float64).tiny, ratio < np.inf)
    far = _log(where(normal, ratio, a)) - where(normal, 0.0, _log(where(normal, 1.0, b)))
    value = a * where(close, _log1p(where(close, (a - b) / b, 0.0)), far)
    other = where(_and(x == 0.0, y >= 0.0), 0.0, np.inf)
    return value, positive, where(_isnan(x) | _isnan(y), np.nan, other)


def _rel_entr(x: Any, y: Any) -> Any:
    value, positive, other = _relative(x, y)
    return where(positive, value, other)


def _kl_div(x: Any, y: Any) -> Any:
    value, positive, other = _relative(x, y)
    return where(positive, value - x + y, where(other == 0.0, y, other))


def _huber(delta: Any, r: Any) -> Any:
    size = _abs(r)
    value = where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return where(delta < 0.0, np.inf, value)


def _pseudo_huber(delta: Any, r: Any) -> Any:
    # delta^2 (sqrt(1 + v^2) - 1) with v = r / delta, without the difference: half the square of r for a small v, delta |r| for a large one.
    nothing = (delta == 0.0) | (r == 0.0)
    quotient = _abs(r / where(nothing, 1.0, delta))
    large = quotient > 1e20
    value = where(large, delta, r / (1.0 + _hypot(1.0, where(large, 1.0, quotient)))) * where(large, _abs(r), r)
    return where(delta < 0.0, np.inf, where(nothing, 0.0, value))


def _exprel(x: Any) -> Any:
    small = x == 0.0
    return where(small, 1.0, where(x > 717.0, np.inf, _expm1(x) / where(small, 1.0, x)))


def _gammasgn(x: Any) -> Any:
    floor = _floor(x)
    sign = where(_fmod(floor, 2.0) == 0.0, 1.0, -1.0)
    negative = where((floor == x) | _isnan(x), np.nan, sign)
    return where(x > 0.0, 1.0, where(x == 0.0, U["copysign"](1.0, x), negative))


def _of(name: str) -> Lowering:
    return compositions.native(o.by_name(name))


ROWS: Final[dict[str, Row]] = {
    "erf": Row("the error function, ``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to x", _of("erf"), 2, complex=True),
    "erfc": Row("the complementary error function, ``1 - erf(x)``", _of("erfc"), 4, complex=True),
    "erfcx": Row("the scaled complementary error function, ``exp(x**2) * erfc(x)``", _of("erfcx"), 3, complex=True),
    "erfinv": Row("the inverse of the error function", _of("erfinv"), 3),
    "erfcinv": Row("the inverse of the complementary error function", _of("erfcinv"), 3),
    "ndtr": Row("the cumulative distribution of the standard normal distribution", _of("ndtr"), 4, complex=True),
    "ndtri": Row("the inverse of ``ndtr``", _of("ndtri"), 4),
    "log_ndtr": Row("the logarithm of ``ndtr``", _of("log_ndtr"), 4, complex=True),
    "expit": Row("the logistic function, ``1 / (1 + exp(-x))``", _of("expit"), 3),
    "logit": Row("the inverse of ``expit``, ``log(x / (1 - x))``", _of("logit"), 3),
    "log_expit": Row("the logarithm of ``expit``", _of("log_expit"), 2),
    "gammaln": Row("the logarithm of the absolute value of the gamma function", _of("gammaln"), 4, 8),
    "gammasgn": Row("the sign of the gamma function", _composed(_gammasgn), 0),
    "psi": Row("the digamma function, the derivative of ``gammaln``", _of("digamma"), 3, 8, complex=True),
    "i0": Row("the modified Bessel function of the first kind, order 0", _of("i0"), 4),
    "i0e": Row("``exp(-abs(x)) * i0(x)``", _of("i0e"), 3),
    "i1": Row("the modified Bessel function of the first kind, order 1", _of("i1"), 4),
    "i1e": Row("``exp(-abs(x)) * i1(x)``", _of("i1e"), 5),
    "xlogy": Row("``x * log(y)``, and 0 where x is 0", _composed(lambda x, y: _product(x, y, _log, 1.0)), 3, nin=2, complex=True),
    "xlog1py": Row("``x * log1p(y)``, and 0 where x is 0", _composed(lambda x, y: _product(x, y, _log1p, 0.0)), 3, nin=2, complex=True),
    "entr": Row("the entropy of one element, ``-x * log(x)``", _composed(_entr), 3),
    "rel_entr": Row("the relative entropy of one element, ``x * log(x / y)``", _composed(_rel_entr), 4, nin=2),
    "kl_div": Row("``x * log(x / y) - x + y``", _composed(_kl_div), 4, nin=2),
    "huber": Row("Huber's loss: quadratic up to delta, linear beyond", _composed(_huber), 2, nin=2),
    "pseudo_huber": Row("the smooth form of Huber's loss", _composed(_pseudo_huber), 4, nin=2),
    "exprel": Row("``(exp(x) - 1) / x``", _composed(_exprel), 4),
    "cbrt": Row("the cube root", _composed(U["cbrt"]), 4),
    "exp2": Row("``2**x``", _composed(U["exp2"]), 2),
    "expm1": Row("``exp(x) - 1``", _composed(_expm1), 4, complex=True),
    "log1p": Row("``log(1 + x)``", _composed(_log1p), 2, complex=True),
}

# SciPy lists the loop for single before the one for double.
SINGLE_FIRST: Final = frozenset(["erfinv", "erfcinv", "ndtri", "entr", "rel_entr", "kl_div", "huber", "pseudo_huber"])

# Other names of the same functions.
ALIASES: Final = {"digamma": "psi"}

# What SciPy computes, as items of the schedule, among all else that it has.
SCIPYS: Final = (
    "gamma", "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "rgamma", "loggamma", "poch", "beta", "betaln", "betainc", "betaincc",
    "betaincinv", "zeta", "zetac", "polygamma", "multigammaln", "binom", "comb", "factorial", "spence", "cosm1", "powm1", "exp10",
    "exp1", "expi", "expn", "boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p", "ellipe", "ellipk", "ellipkm1", "hyp1f1", "hyp2f1",
    "j0", "j1", "jv", "y0", "y1", "yn", "yv", "k0", "k0e", "k1", "k1e", "kv", "iv", "ive", "lpmv", "owens_t", "ndtri_exp",
    "bdtr", "bdtrc", "bdtri", "chdtr", "chdtrc", "chdtri", "fdtr", "fdtrc", "fdtri", "gdtr", "gdtrc", "nbdtr", "nbdtrc", "nbdtri",
    "pdtr", "pdtrc", "pdtri", "stdtr", "stdtrit", "cosdg", "sindg", "tandg", "cotdg", "radian",
)  # fmt: skip

# Python functions of SciPy's that work element by element; all else that is no ufunc is called on host arrays.
ELEMENTWISE: Final = ("zeta", "polygamma")
