"""NumPy's numeric ufuncs, one row each: name -> how it becomes graph nodes.

In: nothing.  Out: ``LOWERING`` and ``REDUCTIONS``.  Promise: a row per ufunc of NumPy's namespace except those in ``ELSEWHERE``;
a test checks that nothing is missing. Dtype rules are not here: NumPy is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lazynp.graph import op as o
from lazynp.graph.op import Op
from lazynp.namespace.ufunc import loops as c
from lazynp.namespace.ufunc.loops import by_kind, called, comparison, library, logical, native

if TYPE_CHECKING:
    from lazynp.namespace.ufunc.loops import Lowering

# Rows whose loop is one graph operation of the same name and needs no case distinction.
_SAME_NAME = (
    "subtract divide floor_divide remainder fmod negative sign sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos "
    "arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh hypot logaddexp logaddexp2 rint copysign nextafter spacing ldexp signbit "
    "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count gcd lcm"
)

LOWERING: Final[dict[str, Lowering]] = {
    **{name: native(o.by_name(name)) for name in _SAME_NAME.split()},
    # On bools the arithmetic loops of NumPy are the logical ones.
    "add": by_kind(native(o.ADD), b=native(o.BITWISE_OR)),
    "multiply": by_kind(native(o.MULTIPLY), b=native(o.BITWISE_AND)),
    "maximum": by_kind(native(o.MAXIMUM), b=native(o.BITWISE_OR)),
    "minimum": by_kind(native(o.MINIMUM), b=native(o.BITWISE_AND)),
    "fmax": by_kind(native(o.MAXIMUM), b=native(o.BITWISE_OR), f=native(o.FMAX), c=native(o.FMAX)),
    "fmin": by_kind(native(o.MINIMUM), b=native(o.BITWISE_AND), f=native(o.FMIN), c=native(o.FMIN)),
    "absolute": by_kind(native(o.ABSOLUTE), b=c.identity, u=c.identity),
    "conjugate": by_kind(c.identity, c=native(o.CONJUGATE)),
    "positive": c.identity,
    "floor": by_kind(c.identity, f=native(o.FLOOR)),
    "ceil": by_kind(c.identity, f=native(o.CEIL)),
    "trunc": by_kind(c.identity, f=native(o.TRUNC)),
    "isnan": by_kind(native(o.ISNAN), b=c.always(False), i=c.always(False), u=c.always(False)),
    "isinf": by_kind(native(o.ISINF), b=c.always(False), i=c.always(False), u=c.always(False)),
    "isfinite": by_kind(native(o.ISFINITE), b=c.always(True), i=c.always(True), u=c.always(True)),
    "less": comparison(o.LESS),
    "less_equal": comparison(o.LESS_EQUAL),
    "greater": comparison(o.GREATER),
    "greater_equal": comparison(o.GREATER_EQUAL),
    "equal": comparison(o.EQUAL),
    "not_equal": comparison(o.NOT_EQUAL),
    "logical_and": logical(o.BITWISE_AND),
    "logical_or": logical(o.BITWISE_OR),
    "logical_xor": logical(o.BITWISE_XOR),
    "logical_not": logical(o.INVERT),
    "power": c.power,
    "float_power": called("float_power", native(o.POWER)),
    "square": called("square", c.square),
    # NumPy divides integers in double and complex numbers by Smith's method.
    "reciprocal": by_kind(library("reciprocal"), f=called("reciprocal", c.reciprocal)),
    "fabs": c.absolute,
    "deg2rad": c.deg2rad,
    "radians": c.deg2rad,
    "rad2deg": called("rad2deg", c.rad2deg),
    "degrees": called("degrees", c.rad2deg),
    "heaviside": c.heaviside,
    "divmod": called("divmod", c.divmod_),
    "modf": c.modf,
    "frexp": library("frexp"),
}

# Ufuncs of NumPy that are not elementwise functions of numbers: dates, and the generalised ones, which namespace/submodules/linalg.py has.
ELSEWHERE: Final = frozenset({"isnat", "matmul", "vecdot", "matvec", "vecmat"})

# The combining operation of ``ufunc.reduce`` and ``ufunc.accumulate``, and whether the values are truth values.
REDUCTIONS: Final[dict[str, tuple[Op, bool]]] = {
    "add": (o.ADD, False),
    "multiply": (o.MULTIPLY, False),
    "minimum": (o.MINIMUM, False),
    "maximum": (o.MAXIMUM, False),
    "fmin": (o.FMIN, False),
    "fmax": (o.FMAX, False),
    "bitwise_and": (o.BITWISE_AND, False),
    "bitwise_or": (o.BITWISE_OR, False),
    "bitwise_xor": (o.BITWISE_XOR, False),
    "logical_and": (o.BITWISE_AND, True),
    "logical_or": (o.BITWISE_OR, True),
    "logical_xor": (o.BITWISE_XOR, True),
}

# What the operations are on bools, where NumPy's loops are logical.
ON_BOOL: Final[dict[Op, Op]] = {
    o.ADD: o.BITWISE_OR,
    o.MULTIPLY: o.BITWISE_AND,
    o.MINIMUM: o.BITWISE_AND,
    o.MAXIMUM: o.BITWISE_OR,
    o.FMIN: o.BITWISE_AND,
    o.FMAX: o.BITWISE_OR,
}
