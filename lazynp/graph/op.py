"""The closed set of graph operations.

In: nothing.  Out: one ``Op`` object per operation, and the groups that passes ask for.  Promise: an ``Op`` is compared by
identity and hashed by identity, so it is as cheap in a dictionary key as an integer; everything that is true of an operation
for every backend (its kind, how many sources it takes, whether it commutes) stands in this table and nowhere else.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Kind(IntEnum):
    LEAF = 0
    MOVEMENT = 1
    ELEMENTWISE = 2
    REDUCTION = 3
    OTHER = 4


class Op:
    """One operation of the graph.

    ``cost`` is the price of one element in units of one vectorised addition; it feeds the fusion cost model.
    """

    __slots__ = ("commutes", "cost", "kind", "name", "number")
    number: int

    def __init__(self, name: str, kind: Kind, cost: int = 1, commutes: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.cost = cost
        self.commutes = commutes
        self.number = len(ALL)
        ALL.append(self)

    def __repr__(self) -> str:
        return self.name.upper()

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (by_name, (self.name,))


ALL: Final[list[Op]] = []


def by_name(name: str) -> Op:
    return next(op for op in ALL if op.name == name)


# Leaves -------------------------------------------------------------------------------------------------------------
BUFFER = Op("buffer", Kind.LEAF)  # a value that exists; node.buffer holds it
CONST = Op("const", Kind.LEAF)  # arg: a NumPy scalar of node.dtype; shape ()
IOTA = Op("iota", Kind.LEAF)  # arg: (start, step), NumPy scalars of node.dtype; element i is start + i*step; shape (n,)

# Movement: index arithmetic only, never a kernel -----------------------------------------------------------------------
RESHAPE = Op("reshape", Kind.MOVEMENT, 0)  # arg: None; C order
PERMUTE = Op("permute", Kind.MOVEMENT, 0)  # arg: axes, result axis k is source axis axes[k]
EXPAND = Op("expand", Kind.MOVEMENT, 0)  # arg: None; broadcast to node.shape as NumPy does
SLICE = Op("slice", Kind.MOVEMENT, 0)  # arg: ((start, step), ...) per axis, length in node.shape, start >= 0, any step but 0
PAD = Op("pad", Kind.MOVEMENT, 0)  # src: (x, fill CONST); arg: width before each axis, the rest of node.shape is after

# Elementwise: sources broadcast against each other, all conversions are explicit CASTs ----------------------------------
_E = Kind.ELEMENTWISE
CAST = Op("cast", _E)  # to node.dtype, NumPy's unsafe casting
BITCAST = Op("bitcast", _E, 0)  # same item size
WHERE = Op("where", _E)  # src: (bool condition, a, b)

ADD = Op("add", _E, 1, True)
SUBTRACT = Op("subtract", _E)
MULTIPLY = Op("multiply", _E, 1, True)
DIVIDE = Op("divide", _E, 4)
FLOOR_DIVIDE = Op("floor_divide", _E, 8)
REMAINDER = Op("remainder", _E, 8)
FMOD = Op("fmod", _E, 8)
POWER = Op("power", _E, 40)
NEGATIVE = Op("negative", _E)
ABSOLUTE = Op("absolute", _E)
SIGN = Op("sign", _E, 2)
SQRT = Op("sqrt", _E, 6)
CBRT = Op("cbrt", _E, 25)

EXP = Op("exp", _E, 20)
EXP2 = Op("exp2", _E, 20)
EXPM1 = Op("expm1", _E, 25)  # complex: see ``special_values``
LOG = Op("log", _E, 20)
LOG2 = Op("log2", _E, 20)
LOG10 = Op("log10", _E, 20)
LOG1P = Op("log1p", _E, 25)
SIN = Op("sin", _E, 20)
COS = Op("cos", _E, 20)
TAN = Op("tan", _E, 30)
ARCSIN = Op("arcsin", _E, 25)
ARCCOS = Op("arccos", _E, 25)
ARCTAN = Op("arctan", _E, 25)
ARCTAN2 = Op("arctan2", _E, 35)
SINH = Op("sinh", _E, 30)
COSH = Op("cosh", _E, 30)
TANH = Op("tanh", _E, 30)
ARCSINH = Op("arcsinh", _E, 35)
ARCCOSH = Op("arccosh", _E, 35)
ARCTANH = Op("arctanh", _E, 35)
HYPOT = Op("hypot", _E, 20)
LOGADDEXP = Op("logaddexp", _E, 45)
LOGADDEXP2 = Op("logaddexp2", _E, 45)

# Special functions of one real argument, which ``backends/special`` defines; float32 and float64 only
ERF = Op("erf", _E, 60)
ERFC = Op("erfc", _E, 60)
ERFCX = Op("erfcx", _E, 60)
ERFINV = Op("erfinv", _E, 100)
ERFCINV = Op("erfcinv", _E, 100)
NDTR = Op("ndtr", _E, 60)
NDTRI = Op("ndtri", _E, 100)
LOG_NDTR = Op("log_ndtr", _E, 80)
EXPIT = Op("expit", _E, 25)
LOGIT = Op("logit", _E, 50)
LOG_EXPIT = Op("log_expit", _E, 45)
GAMMALN = Op("gammaln", _E, 90)
DIGAMMA = Op("digamma", _E, 90)
I0 = Op("i0", _E, 50)
I0E = Op("i0e", _E, 50)
I1 = Op("i1", _E, 50)
I1E = Op("i1e", _E, 50)

FLOOR = Op("floor", _E)
CEIL = Op("ceil", _E)
TRUNC = Op("trunc", _E)
RINT = Op("rint", _E)
COPYSIGN = Op("copysign", _E, 2)
NEXTAFTER = Op("nextafter", _E, 10)
SPACING = Op("spacing", _E, 10)
LDEXP = Op("ldexp", _E, 10)
SIGNBIT = Op("signbit", _E)
ISNAN = Op("isnan", _E)
ISINF = Op("isinf", _E)
ISFINITE = Op("isfinite", _E)

LESS = Op("less", _E)
LESS_EQUAL = Op("less_equal", _E)
GREATER = Op("greater", _E)
GREATER_EQUAL = Op("greater_equal", _E)
EQUAL = Op("equal", _E, 1, True)
NOT_EQUAL = Op("not_equal", _E, 1, True)
MAXIMUM = Op("maximum", _E)
MINIMUM = Op("minimum", _E)
FMAX = Op("fmax", _E)
FMIN = Op("fmin", _E)

BITWISE_AND = Op("bitwise_and", _E, 1, True)
BITWISE_OR = Op("bitwise_or", _E, 1, True)
BITWISE_XOR = Op("bitwise_xor", _E, 1, True)
INVERT = Op("invert", _E)
LEFT_SHIFT = Op("left_shift", _E)
RIGHT_SHIFT = Op("right_shift", _E)
BITWISE_COUNT = Op("bitwise_count", _E, 2)
GCD = Op("gcd", _E, 60)
LCM = Op("lcm", _E, 60)

REAL = Op("real", _E, 0)  # complex -> its float
IMAG = Op("imag", _E, 0)
COMPLEX = Op("complex", _E, 0)  # src: (real, imag)
CONJUGATE = Op("conjugate", _E)

# Reductions ---------------------------------------------------------------------------------------------------------
# arg: (combining elementwise Op, axes in increasing order); the reduced axes vanish; dtype = the source's dtype.
# Combining ops: ADD MULTIPLY MINIMUM MAXIMUM FMIN FMAX BITWISE_AND BITWISE_OR BITWISE_XOR (any = OR and all = AND on bool).
# An empty reduction gives the identity (min and max of nothing are refused before they are recorded).
REDUCE = Op("reduce", Kind.REDUCTION)
SCAN = Op("scan", Kind.REDUCTION)  # arg: (combining Op, axis); running reduction in index order, same shape

# The rest -----------------------------------------------------------------------------------------------------------
GATHER = Op("gather", Kind.OTHER)  # src: (x, i0, .., ik-1), equal-shape int64 indices into x's first k axes, negatives wrap
STORE = Op("store", Kind.OTHER)  # src: (base, value); arg: region as in SLICE, lengths = value.shape; base's value with it replaced
CONCAT = Op("concat", Kind.OTHER)  # arg: axis
CALL = Op("call", Kind.OTHER)  # a library function; arg: (name, hashable parameters); value is its only or first output
OUTPUT = Op("output", Kind.OTHER)  # arg: k; the k-th output of the CALL that is its source
COPY = Op("copy", Kind.OTHER)  # arg: the name of a device; the same value there.  Programs have none: see ``engine/devices.py``
CONTIGUOUS = Op("contiguous", Kind.OTHER)  # the user's fence: its value is stored

SPECIAL: Final = frozenset(
    {
        ERF, ERFC, ERFCX, ERFINV, ERFCINV, NDTR, NDTRI, LOG_NDTR, EXPIT, LOGIT, LOG_EXPIT, GAMMALN, DIGAMMA, I0, I0E, I1, I1E,
    }
)  # fmt: skip
COMPARISONS: Final = frozenset({LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL})
