"""NumPy's numbers in a process with lazynp: what operators on them give is what they give without it.

In: a table of operands, operators and error states, computed by two processes, of which one never imports lazynp.  Out: failures.
Promise: types, bits, warnings with their lines, and exceptions are compared.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = r"""
import sys
if sys.argv[1] == "lazynp":
    import lazynp
    from lazynp.array import core
import decimal, fractions, operator, warnings
import numpy as np

BIG = 2**63 - 1
reals = [0.0, -0.0, 1.0, -2.5, 0.1, 3.0, 1e308, -1e308, 5e-324, 2.2250738585072014e-308, 1e-200, 2.0**53]
reals += [1 - 2**-53] # times the least normal number it is that number, and underflows
reals += [float("inf"), float("-inf"), float("nan")]
wholes = [0, 1, -1, 2, -7, 3, BIG, -BIG - 1, 2**53, 2**53 + 1, 2**31]
class Sub(np.float64): pass
class Rest:
    def __radd__(self, other): return ("radd", type(other).__name__)
    __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __radd__
    def __lt__(self, other): return "lt"
    __gt__ = __eq__ = __lt__
    __hash__ = None
    def __repr__(self): return "Rest"
class Count(int): pass
class Length(float): pass
class Alone(Rest): __array_ufunc__ = None
class First(Rest): __array_priority__ = 1000
operands = [np.float64(x) for x in reals] + reals + [np.int64(x) for x in wholes] + wholes + [
    2**63, 2**70, -2**70, 10**400, True, False, np.True_, None, {}, 1j, np.complex128(1 + 2j), np.float32(1.5), np.float32(3e38),
    np.int32(7), np.uint64(2**63), np.uint8(200), np.longdouble(1.5), np.float16(2.0), Sub(1.5), Rest(), np.array(2.0), np.arange(3),
    np.timedelta64(3, "s"), np.bool_(False), np.array([2], object), np.ma.masked,
    decimal.Decimal("1.5"), fractions.Fraction(1, 3), Count(3), Length(2.5), Alone(), First(), np.longlong(4), np.ulonglong(2**64 - 1),
    np.datetime64("NaT", "s"),
]
operators = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt, operator.le, operator.eq,
    operator.ne, operator.gt, operator.ge, operator.iadd, operator.imul, divmod,
]

def told(value):
    if isinstance(value, tuple): return [told(v) for v in value]
    if not isinstance(value, (np.ndarray, np.generic)): return [type(value).__name__, repr(value)]
    return [type(value).__name__, str(value.dtype), value.shape, str(value) if value.dtype.char in "OgG" else value.tobytes().hex()]

def outcome(function, *given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try: found = told(function(*given))
        except Exception as error: found = [type(error).__name__, str(error)]
    return found, [(w.category.__name__, str(w.message), w.lineno) for w in caught]

calls = []
for state in ({}, {"all": "raise"}, {"all": "ignore"}, {"under": "warn", "over": "raise"}):
    with np.errstate(**state):
        for a in operands:
            for b in operands:
                if not (isinstance(a, np.generic) or isinstance(b, np.generic)): continue
                for operate in operators if not state else operators[:6]:
                    print(state, type(a).__name__, a, type(b).__name__, str(b)[:20], operate.__name__, *outcome(operate, a, b))
x = np.float64(2.5)
for name in ("__add__", "__radd__", "__mul__", "__truediv__", "__lt__"):
    print(name, outcome(getattr(x, name), 2.0), outcome(getattr(np.int64(4), name), 2), outcome(getattr(x, name), "x"))
print(sum(np.arange(5.0)), sum([np.int64(3)] * 4), max(np.float64(1), 2.0), sorted([np.int64(3), 1, np.float64(2.5)]))
"""


def told(library: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library], env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_operators_on_numpys_numbers_give_what_they_give_without_lazynp() -> None:
    with_lazynp, without = told("lazynp"), told("numpy")
    assert len(with_lazynp) == len(without) > 10_000
    different = [pair for pair in zip(with_lazynp, without, strict=True) if pair[0] != pair[1]]
    assert not different, different[:5]
