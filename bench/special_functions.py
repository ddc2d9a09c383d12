"""Where the numbers of ``lazynp.special`` come from: its polynomials, and the values that its tests compare with.

In: mpmath (``pip install mpmath``), which nothing else here needs.  Out: ``lazynp/backends/special/coefficients.py``,
``tests/backends/special_values.npz``, and a table of errors.  Promise: the files are functions of this one alone.

    python -m bench.special_functions coefficients
    python -m bench.special_functions references
    python -m bench.special_functions errors [NAMES...]

A polynomial is the Chebyshev interpolant of a function that varies little, so that a small absolute error is a small relative one; its
error with the rounded coefficients is printed as a power of 2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import mpmath as m
import numpy as np
from mpmath import mpf

m.mp.dps = 50

ROOT: Final = Path(__file__).parent.parent
Real = Any


class Fit(NamedTuple):
    """A function, the interval of its argument, and how many coefficients."""

    function: Callable[[Real], Real]
    low: Real
    high: Real
    terms: int
    means: str


def _erf(z: Real) -> Real:
    return m.erf(m.sqrt(z)) / m.sqrt(z) - 1


def scaled_erfc(y: Real) -> Real:
    """exp(y^2) erfc(y), which is 1 / (y sqrt(pi)) (1 - 1 / (2 y^2) + ...) far out."""
    if y < 1000:
        return m.exp(y * y) * m.erfc(y)
    return (1 - 1 / (2 * y * y) + 3 / (4 * y**4) - 15 / (8 * y**6)) / (y * m.sqrt(m.pi))


CENTRE: Final = 3.5


def _erfcx(t: Real) -> Real:
    y = CENTRE * (1 + t) / (1 - t)
    return (y + mpf(1) / 2) * scaled_erfc(y)


NORMAL_CENTRE: Final = 5
NORMAL_OFFSET: Final = 0.7071067811865476  # about 1 / sqrt(2)


def _ndtr(t: Real) -> Real:
    x = NORMAL_CENTRE * (1 + t) / (1 - t)
    return (x + mpf(NORMAL_OFFSET)) * scaled_erfc(x / m.sqrt(2)) / 2


def _inverse(w: Real) -> Real:
    """erfinv(x) / x, where w = -log(1 - x^2)."""
    rest = m.exp(-w)
    q = rest / (1 + m.sqrt(1 - rest))  # 1 - x
    y = m.sqrt(w - m.log(w * 3.1) / 2) if w > 2 else m.sqrt(1 - rest) * 0.9
    for _ in range(100):
        step = (m.log(m.erfc(y)) - m.log(q)) * m.erfc(y) * m.sqrt(m.pi) / 2 * m.exp(y * y)
        y += step
        if abs(step) < mpf(10) ** -45 * y:
            break
    return y / m.sqrt(1 - rest)


def _tail(t: Real, near: Real, far: Real) -> Real:
    """The same over sqrt(w), where 1 / sqrt(w) goes from ``far`` to ``near`` with t."""
    inverse = (far + near) / 2 + (near - far) / 2 * t
    return _inverse(1 / inverse**2) * inverse


BREAKS: Final = (5, 14, 60, 750)  # of w


def _of_tail(k: int) -> Callable[[Real], Real]:
    near, far = (1 / m.sqrt(BREAKS[k + i]) for i in (0, 1))
    return lambda t: _tail(t, near, far)


def _gammaln(u: Real) -> Real:
    return m.loggamma(2 + u) / u if abs(u) > mpf(10) ** -20 else m.digamma(2)


def _stirling(z: Real) -> Real:
    x = 1 / m.sqrt(z)
    return x * (m.loggamma(x) - (x - mpf(1) / 2) * (m.log(x) - 1) - m.log(2 * m.pi) / 2 + mpf(1) / 2)


def root() -> Real:
    """The positive zero of psi."""
    return m.findroot(m.digamma, mpf("1.4616"))


def _psi(t: Real) -> Real:
    x = (t + 3) / 2
    return m.digamma(x) / (x - root())


def _psi_tail(t: Real) -> Real:
    w = (t + 1) / 4
    return (m.digamma(1 / w) + m.log(w)) / w


def _bessel(order: int) -> Callable[[Real], Real]:
    return lambda z: m.besseli(order, m.sqrt(z)) / m.sqrt(z) ** order


def _bessel_tail(order: int) -> Callable[[Real], Real]:
    def function(t: Real) -> Real:
        w = (t + 1) / 20
        return m.besseli(order, 1 / w) * m.exp(-1 / w) / m.sqrt(w)

    return function


FITS: Final = {
    "ERF": Fit(_erf, 0, 1, 12, "erf(x) / x - 1, of x^2"),
    "ERFCX": Fit(_erfcx, -1, 1, 25, f"(y + 1/2) erfcx(y), of (y - {CENTRE}) / (y + {CENTRE})"),
    "NDTR": Fit(_ndtr, -1, 1, 25, f"(x + 1/sqrt(2)) erfcx(x / sqrt(2)) / 2, of (x - {NORMAL_CENTRE}) / (x + {NORMAL_CENTRE})"),
    "ERFINV": Fit(_inverse, 0, BREAKS[0], 22, f"erfinv(x) / x, of w = -log(1 - x^2) up to {BREAKS[0]}"),
    **{
        f"ERFINV_{k + 1}": Fit(_of_tail(k), -1, 1, 22, f"the same over sqrt(w), of 1 / sqrt(w) for w in {BREAKS[k : k + 2]}, as -1 to 1")
        for k in range(3)
    },
    "GAMMALN": Fit(_gammaln, -0.75, 0.5, 22, "log(gamma(2 + u)) / u"),
    "STIRLING": Fit(_stirling, 0, 1 / mpf(5.5) ** 2, 8, "x (log(gamma(x)) - (x - 1/2) (log x - 1) - log(2 pi) / 2 + 1/2), of 1 / x^2"),
    "SINPI": Fit(lambda z: m.sin(m.pi * m.sqrt(z)) / m.sqrt(z), 0, 0.25, 9, "sin(pi f) / f, of f^2"),
    "COSPI": Fit(lambda z: m.cos(m.pi * m.sqrt(z)), 0, 0.25, 9, "cos(pi f), of f^2"),
    "PSI": Fit(_psi, -1, 1, 23, "psi(x) / (x - its zero), of 2 x - 3"),
    "PSI_TAIL": Fit(_psi_tail, -1, 1, 20, "x (psi(x) - log x), of 4 / x - 1"),
    "I0": Fit(_bessel(0), 0, 100, 20, "I0(x), of x^2"),
    "I0_TAIL": Fit(_bessel_tail(0), -1, 1, 20, "exp(-x) sqrt(x) I0(x), of 20 / x - 1"),
    "I1": Fit(_bessel(1), 0, 100, 20, "I1(x) / x, of x^2"),
    "I1_TAIL": Fit(_bessel_tail(1), -1, 1, 20, "exp(-x) sqrt(x) I1(x), of 20 / x - 1"),
}


def interpolant(fit: Fit) -> list[float]:
    """The coefficients of the interpolant at Chebyshev's points, the constant one first."""
    low, high, n = mpf(fit.low), mpf(fit.high), fit.terms
    angles = [m.pi * (k + mpf(1) / 2) / n for k in range(n)]
    values = [fit.function((low + high) / 2 + (high - low) / 2 * m.cos(angle)) for angle in angles]
    weights = [2 / mpf(n) * m.fsum([v * m.cos(j * a) for v, a in zip(values, angles, strict=True)]) for j in range(n)]
    weights[0] /= 2
    slope, offset = 2 / (high - low), -(low + high) / (high - low)

    def times(polynomial: list[Real], factor: Real) -> list[Real]:
        """``polynomial`` times ``factor`` times the argument as -1 to 1."""
        return [factor * (offset * a + slope * b) for a, b in zip([*polynomial, mpf(0)], [mpf(0), *polynomial], strict=True)]

    total = [mpf(0)] * n
    this, following = [mpf(1)], [offset, slope]
    for weight in weights:
        for i, coefficient in enumerate(this):
            total[i] += weight * coefficient
        after = times(following, mpf(2))
        for i, coefficient in enumerate(this):
            after[i] -= coefficient
        this, following = following, after
    return [float(coefficient) for coefficient in total]


def error(fit: Fit, coefficients: list[float], points: int = 250) -> float:
    """The logarithm to base 2 of the largest relative error at points between the ends."""
    largest = mpf(0)
    for k in range(points):
        x = mpf(fit.low) + (mpf(fit.high) - mpf(fit.low)) * (k + mpf("0.37")) / points
        largest = max(largest, abs(m.polyval([mpf(c) for c in reversed(coefficients)], x) / fit.function(x) - 1))
    return float(m.log(largest, 2))


HEAD: Final = '''"""Polynomials of the special functions; written by ``python -m bench.special_functions coefficients``.

In: nothing.  Out: for each, its coefficients, the constant one first.  Promise: each error is below 2^-53 of the
value, or of the largest one where the polynomial has a zero (ERF, COSPI).
"""

from typing import Final
'''


def write_coefficients() -> None:
    text = [HEAD]
    for name, fit in FITS.items():
        coefficients = interpolant(fit)
        found = error(fit, coefficients)
        print(f"{name:10} {len(coefficients)} 2^{found:.1f}", flush=True)
        lines, line = [], "   "
        for coefficient in coefficients:
            if len(line) + len(f" {coefficient!r},") > 130:
                lines.append(line)
                line = "   "
            line += f" {coefficient!r},"
        text.append(f"# {fit.means}\n{name}: Final = (\n" + "\n".join([*lines, line]) + "\n)  # fmt: skip\n")
    high = float(root())
    text.append(f"# The positive zero of psi, in two parts\nPSI_ROOT: Final = ({high!r}, {float(root() - mpf(high))!r})\n")
    (ROOT / "lazynp/backends/special/coefficients.py").write_text("\n".join(text))


# Reference values ---------------------------------------------------------------------------------------------------------------


def _inverse_of(x: Real, rest: Real) -> Real:
    """erfinv(x), where ``rest`` is 1 - |x| however small."""
    w = -m.log(rest * (2 - rest))
    return x * _inverse(w) if w else x * m.sqrt(m.pi) / 2


EXACT: Final[dict[str, Callable[[Real], Real]]] = {
    "erf": m.erf,
    "erfc": m.erfc,
    "erfcx": lambda x: scaled_erfc(x) if x >= 0 else m.exp(x * x) * m.erfc(x),
    "ndtr": lambda x: m.erfc(-x / m.sqrt(2)) / 2,
    "log_ndtr": lambda x: m.log(m.erfc(-x / m.sqrt(2)) / 2) if x < 0 else m.log1p(-m.erfc(x / m.sqrt(2)) / 2),
    "erfinv": lambda x: _inverse_of(x, 1 - abs(x)),
    "erfcinv": lambda x: _inverse_of(1 - x, min(x, 2 - x)),
    "ndtri": lambda x: m.sqrt(2) * _inverse_of(2 * x - 1, min(2 * x, 2 - 2 * x)),
    "expit": lambda x: m.exp(x) / (1 + m.exp(x)) if x < 0 else 1 / (1 + m.exp(-x)),
    "logit": lambda x: m.log(x / (1 - x)) if abs(x - 0.5) > 0.01 else 2 * m.atanh(2 * x - 1),
    "log_expit": lambda x: -m.log1p(m.exp(-x)) if x >= 0 else x - m.log1p(m.exp(x)),
    "entr": lambda x: -x * m.log(x),
    "exprel": lambda x: m.expm1(x) / x,
    "gammaln": lambda x: m.re(m.loggamma(x)),
    "digamma": m.digamma,
    "i0": lambda x: m.besseli(0, x),
    "i0e": lambda x: m.besseli(0, x) * m.exp(-abs(x)),
    "i1": lambda x: m.besseli(1, x),
    "i1e": lambda x: m.besseli(1, x) * m.exp(-abs(x)),
}
_LINE: Final = ((-1, 1), (-4, 4), (-12, 12), (-45, 45))
_UNIT: Final = ((0, 1), (0.4, 0.6))
# Where the arguments lie: intervals, and powers of 10 of both signs (one, where the sign is given).
PLACES: Final[dict[str, tuple[tuple[tuple[float, float], ...], tuple[int, int], tuple[int, ...]]]] = {
    **dict.fromkeys(("erf", "erfc", "ndtr"), (_LINE, (-320, 2), (1, -1))),
    "erfcx": ((*_LINE, (-26.6, 100)), (-320, 308), (1,)),
    "log_ndtr": ((*_LINE, (-1000, 10)), (-320, 100), (-1,)),
    "erfinv": (((-1, 1),), (-320, -1), (1, -1)),
    "erfcinv": (((0, 2), (0.9, 1.1)), (-323, -1), (1,)),
    "ndtri": (_UNIT, (-323, -1), (1,)),
    "expit": ((*_LINE, (-750, 50)), (-320, 1), (1, -1)),
    "logit": (_UNIT, (-323, -1), (1,)),
    "log_expit": ((*_LINE, (-100, 750)), (-320, 10), (-1,)),
    "entr": (((0, 3), (0.9, 1.1)), (-300, 300), (1,)),
    "exprel": (((-5, 5), (-100, 700)), (-300, 2), (1, -1)),
    "gammaln": (((0, 1), (0.9, 2.1), (0, 6), (2, 30)), (-323, 305), (1,)),
    "digamma": (((0, 1), (1.4, 1.5), (0, 6), (2, 30)), (-300, 300), (1,)),
    **dict.fromkeys(("i0", "i1"), (((-12, 12), (-100, 100), (650, 713.9)), (-320, 1), (1, -1))),
    **dict.fromkeys(("i0e", "i1e"), (((-12, 12), (-100, 100)), (-320, 15), (1, -1))),
}
# Negative arguments of functions that have zeros between the poles there: errors are measured against 1 where the value is smaller.
MIRRORED: Final = ("gammaln", "digamma")
EDGES: Final = (0.2, 0.3, 0.5, 0.7, 0.75, 1.0, 1.5, 2.0, 2.5, 3.5, 4.5, 5.5, 10.0, 26.6, 27.2, 37.5, 38.4)


# Functions of two arguments, and the powers of 10 that those lie between.
PAIRS: Final[dict[str, tuple[Callable[[Real, Real], Real], tuple[int, int], tuple[int, int]]]] = {
    "xlogy": (lambda x, y: x * m.log(y), (-100, 100), (-300, 300)),
    "xlog1py": (lambda x, y: x * m.log1p(y), (-100, 100), (-20, 300)),
    "rel_entr": (lambda x, y: x * m.log(x / y), (-200, 200), (-200, 200)),
    "kl_div": (lambda x, y: x * m.log(x / y) - x + y, (-20, 20), (-20, 20)),
    "huber": (lambda d, r: r * r / 2 if r <= d else d * (r - d / 2), (-20, 20), (-20, 20)),
    "pseudo_huber": (lambda d, r: r * r / (1 + m.sqrt(1 + (r / d) ** 2)), (-150, 150), (-150, 150)),
}


def arguments(name: str, points: int = 80) -> tuple[Any, ...]:
    """Arguments of one function: even and random ones, powers of 10, ends of the cases that the definitions distinguish."""
    rng = np.random.default_rng(points)
    if name in PAIRS:
        x, y = (10.0 ** rng.uniform(*powers, 4 * points) for powers in PAIRS[name][1:])
        y[: 2 * points] = x[: 2 * points] * rng.uniform(0.3, 3, 2 * points)  # where the two are close
        return x, y
    if name.endswith("_mirrored"):
        return (-rng.uniform(0, 20, 4 * points),)
    intervals, (low, high), signs = PLACES[name]
    parts = [np.concatenate([np.linspace(a, b, points + 2)[1:-1], rng.uniform(a, b, points)]) for a, b in intervals]
    powers = 10.0 ** rng.uniform(low, high, 2 * points)
    parts += [sign * powers for sign in signs]
    least, most = min(a for a, _ in intervals), max(b for _, b in intervals)
    ends = [e for edge in EDGES for e in (edge, -edge) if least < e < most]
    parts.append(np.array([x for e in ends for x in (np.nextafter(e, -9e9), e, np.nextafter(e, 9e9))]))
    if name == "erfinv":
        parts += [1 - 2.0 ** -rng.uniform(1, 53, points)]
    x = np.unique(np.concatenate(parts))
    return (x[x != 0],)


NAMES: Final = (*EXACT, *[f"{name}_mirrored" for name in MIRRORED], *PAIRS)


def references(name: str, points: int = 80) -> dict[str, Any]:
    """Arguments, the exact values as a number in [1, 2) with its rounding error (in 127ths of half a unit), and its exponent."""
    plain = name.removesuffix("_mirrored")
    exact: Any = PAIRS[plain][0] if plain in PAIRS else EXACT[plain]
    rows = []
    m.mp.dps = 200 if plain in PAIRS else 60
    for point in zip(*arguments(name, points), strict=True):
        value = exact(*[mpf(float(x)) for x in point])
        if not m.isfinite(value) or value == 0:
            continue
        exponent = int(m.floor(m.log(abs(value), 2)))
        scaled = m.ldexp(value, -exponent)
        near = float(scaled)
        rows.append((*map(float, point), near, round(float((scaled - mpf(near)) * 127 * 2**53)), exponent))
    *given, values, rests, exponents = zip(*rows, strict=True)
    return {
        "x": np.array(given), "value": np.array(values), "rest": np.array(rests, np.int8), "exponent": np.array(exponents, np.int16),
    }  # fmt: skip


def write_references() -> None:
    found = {f"{name}.{part}": column for name in NAMES for part, column in references(name).items()}
    np.savez_compressed(ROOT / "tests/backends/special_values.npz", **found)


def print_errors(names: Sequence[str] = ()) -> None:
    """The largest errors at many more arguments, in the NumPy tier and compiled."""
    from tests.backends.special_errors import errors_in_ulps, functions

    for name in names or NAMES:
        found = references(name, 4000)
        print(f"{name:18} {found['value'].size:6}", end="")
        for function in functions(name.removesuffix("_mirrored")):
            error = errors_in_ulps(function(*found["x"]), found["value"], found["rest"], found["exponent"], name, found["x"])
            worst = int(np.argmax(error))
            print(f"  {error[worst]:6.2f} at {[float(x) for x in found['x'][:, worst]]}", end="")
        print(flush=True)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["coefficients"]:
            write_coefficients()
        case ["references"]:
            write_references()
        case ["errors", *names]:
            print_errors(names)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
