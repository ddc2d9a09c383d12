"""The closed set of graph operations: the one table of what is true of each.

In: nothing.  Out: one ``Op`` object per operation, and the groups that passes ask for.  Promise: an ``Op`` is compared by
identity and hashed by identity, so it is as cheap in a dictionary key as an integer; everything that is true of an operation
for every backend stands in its row and nowhere else.  A backend's table holds the text it writes for an operation, and nothing
that another backend would have to write again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # what writes code loads no NumPy
    import numpy as np

    DType = np.dtype[Any]


class Kind(IntEnum):
    LEAF = 0
    MOVEMENT = 1
    ELEMENTWISE = 2
    REDUCTION = 3
    OTHER = 4


# Identities: the number that changes nothing, for a dtype


def _none(dtype: DType) -> Any:
    raise TypeError("the operation combines nothing")


def _zero(dtype: DType) -> int:
    return 0


def _one(dtype: DType) -> int:
    return 1


def _all_bits(dtype: DType) -> int:
    return -1 if dtype.kind == "i" else 2 ** (8 * dtype.itemsize) - 1 if dtype.kind == "u" else 1


_INFINITE: Final = {"b": 1, "f": float("inf"), "c": complex("inf+infj")}  # complex numbers are ordered by their parts


def _largest(dtype: DType) -> complex:
    return _INFINITE[dtype.kind] if dtype.kind in _INFINITE else (1 << (8 * dtype.itemsize - (dtype.kind == "i"))) - 1


def _smallest(dtype: DType) -> complex:
    return -_largest(dtype) if dtype.kind in "fc" else -_largest(dtype) - 1 if dtype.kind == "i" else 0


def _nan_or_largest(dtype: DType) -> complex:
    return float("nan") if dtype.kind == "f" else _largest(dtype)


def _nan_or_smallest(dtype: DType) -> complex:
    return float("nan") if dtype.kind == "f" else _smallest(dtype)


class Op:
    """One operation of the graph.

    Attributes
    ----------
    name : str
        NumPy's name, where NumPy has a ufunc of this meaning.
    kind : Kind
        Which passes deal with it.
    arity : int or None
        How many sources it has; None where each node has its own number.
    kinds : str
        Kinds of dtypes (as ``numpy.dtype.kind``) of the sources of an elementwise operation; for a ufunc, those NumPy has a loop for.
    cost : int
        The price of one element in units of one vectorised addition; feeds the fusion cost model.
    commutes : str
        Kinds of dtypes of the result for which the operands can change places without changing a bit of it; but for a NaN: of two that
        differ in sign or payload most processors give the first, and LLVM leaves open which.  Not in here: extrema of floating-point
        numbers (of two zeros the second), products of complex ones (of two products one is rounded).
    identity : callable
        The dtype -> the number that changes nothing, from which an accumulator starts.  What has one is in ``COMBINING``.
    c_name : str
        What C's mathematical library calls the function of doubles; empty where it has none.
    predicate : bool
        The result is a truth value, whatever the sources are.
    errors : str
        Which floating-point errors it can raise, by NumPy's names: of real floating-point numbers.  What ``errors.raises`` makes of it
        holds for other dtypes, too.
    integer_errors : str
        The same of integers.
    rounds : str
        Kinds of dtypes for which an element's last bits are the implementation's: NumPy's loop and kernels round differently, or
        take another of two zeros.  For all others both give the same bits, in every layout.
    ordered : str
        Kinds of dtypes for which the bits of a reduction depend on the order in which elements are combined.  Not in here: extrema, where
        the order decides which of two zeros is the result; NumPy's loops go by where the zeros stand.
    special : bool
        A special function of one argument in single or double precision, which ``backends/special`` defines.
    """

    __slots__ = (
        "arity", "c_name", "commutes", "cost", "errors", "identity", "integer_errors", "kind", "kinds", "name", "number", "ordered",
        "predicate", "rounds", "special",
    )  # fmt: skip
    number: int

    def __init__(
        self,
        name: str,
        kind: Kind,
        arity: int | None = None,
        kinds: str = "",
        cost: int = 1,
        *,
        commutes: str = "",
        identity: Callable[[DType], Any] = _none,
        c_name: str = "",
        predicate: bool = False,
        errors: str = "divide over under invalid",
        integer_errors: str = "",
        rounds: str = "",
        ordered: str = "",
        special: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.arity = arity
        self.kinds = kinds
        self.cost = cost
        self.commutes = commutes
        self.identity = identity
        self.c_name = c_name
        self.predicate = predicate
        self.errors = errors
        self.integer_errors = integer_errors
        self.rounds = rounds
        self.ordered = ordered
        self.special = special
        self.number = len(ALL)
        ALL.append(self)
        _NAMED[name] = self

    def takes(self, dtype: DType) -> bool:
        """Tell whether an elementwise operation is defined for sources of ``dtype``."""
        return dtype.kind in self.kinds and not (self.special and dtype.char == "e")

    def __repr__(self) -> str:
        return self.name.upper()

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (by_name, (self.name,))


ALL: Final[list[Op]] = []
_NAMED: Final[dict[str, Op]] = {}


def by_name(name: str) -> Op:
    return _NAMED[name]


# Leaves -------------------------------------------------------------------------------------------------------------
BUFFER = Op("buffer", Kind.LEAF, 0)  # a value that exists; node.buffer holds it
CONST = Op("const", Kind.LEAF, 0)  # arg: a NumPy scalar of node.dtype; shape ()
IOTA = Op("iota", Kind.LEAF, 0)  # arg: (start, step), NumPy scalars of node.dtype; element i is start + i*step; shape (n,)

# Movement: index arithmetic only, never a kernel -----------------------------------------------------------------------
RESHAPE = Op("reshape", Kind.MOVEMENT, 1, cost=0)  # arg: None; C order
PERMUTE = Op("permute", Kind.MOVEMENT, 1, cost=0)  # arg: axes, result axis k is source axis axes[k]
EXPAND = Op("expand", Kind.MOVEMENT, 1, cost=0)  # arg: None; broadcast to node.shape as NumPy does
SLICE = Op("slice", Kind.MOVEMENT, 1, cost=0)  # arg: ((start, step), ...) per axis, length in node.shape, start >= 0, any step but 0
PAD = Op("pad", Kind.MOVEMENT, 2, cost=0)  # src: (x, fill CONST); arg: width before each axis, the rest of node.shape is after

# Elementwise: sources broadcast against each other, all conversions are explicit CASTs ----------------------------------
_E = Kind.ELEMENTWISE
CAST = Op("cast", _E, 1, "biufc")  # to node.dtype, NumPy's unsafe casting
BITCAST = Op("bitcast", _E, 1, "biufc", 0, errors="")  # same item size
WHERE = Op("where", _E, 3, "biufc", errors="")  # src: (bool condition, a, b)

ADD = Op("add", _E, 2, "biufc", commutes="biufc", identity=_zero, ordered="f", errors="over invalid")
SUBTRACT = Op("subtract", _E, 2, "iufc", errors="over invalid")
MULTIPLY = Op("multiply", _E, 2, "biufc", commutes="biuf", identity=_one, ordered="f", errors="over under invalid")
DIVIDE = Op("divide", _E, 2, "fc", 4)
FLOOR_DIVIDE = Op("floor_divide", _E, 2, "iuf", 8, integer_errors="divide over")
REMAINDER = Op("remainder", _E, 2, "iuf", 8, integer_errors="divide")
FMOD = Op("fmod", _E, 2, "iuf", 8, c_name="fmod", integer_errors="divide")
POWER = Op("power", _E, 2, "iufc", 40, c_name="pow", rounds="f")
NEGATIVE = Op("negative", _E, 1, "iufc", errors="")
ABSOLUTE = Op("absolute", _E, 1, "biufc", c_name="fabs", errors="")
SIGN = Op("sign", _E, 1, "iufc", 2, errors="")
SQRT = Op("sqrt", _E, 1, "fc", 6, c_name="sqrt", errors="invalid")
CBRT = Op("cbrt", _E, 1, "f", 25, c_name="cbrt", errors="", rounds="f")

EXP = Op("exp", _E, 1, "fc", 20, c_name="exp", rounds="f")
EXP2 = Op("exp2", _E, 1, "fc", 20, c_name="exp2", rounds="f")
EXPM1 = Op("expm1", _E, 1, "fc", 25, c_name="expm1", rounds="f")  # complex: see ``special_values``
LOG = Op("log", _E, 1, "fc", 20, c_name="log", errors="divide invalid", rounds="f")
LOG2 = Op("log2", _E, 1, "fc", 20, c_name="log2", errors="divide invalid", rounds="f")
LOG10 = Op("log10", _E, 1, "fc", 20, c_name="log10", errors="divide invalid", rounds="f")
LOG1P = Op("log1p", _E, 1, "fc", 25, c_name="log1p", rounds="f")
SIN = Op("sin", _E, 1, "fc", 20, c_name="sin", rounds="f")
COS = Op("cos", _E, 1, "fc", 20, c_name="cos", rounds="f")
TAN = Op("tan", _E, 1, "fc", 30, c_name="tan", rounds="f")
ARCSIN = Op("arcsin", _E, 1, "fc", 25, c_name="asin", rounds="f")
ARCCOS = Op("arccos", _E, 1, "fc", 25, c_name="acos", rounds="f")
ARCTAN = Op("arctan", _E, 1, "fc", 25, c_name="atan", rounds="f")
ARCTAN2 = Op("arctan2", _E, 2, "f", 35, c_name="atan2", rounds="f")
SINH = Op("sinh", _E, 1, "fc", 30, c_name="sinh", rounds="f")
COSH = Op("cosh", _E, 1, "fc", 30, c_name="cosh", rounds="f")
TANH = Op("tanh", _E, 1, "fc", 30, c_name="tanh", rounds="f")
ARCSINH = Op("arcsinh", _E, 1, "fc", 35, c_name="asinh", rounds="f")
ARCCOSH = Op("arccosh", _E, 1, "fc", 35, c_name="acosh", rounds="f")
ARCTANH = Op("arctanh", _E, 1, "fc", 35, c_name="atanh", rounds="f")
HYPOT = Op("hypot", _E, 2, "f", 20, c_name="hypot", rounds="f")
LOGADDEXP = Op("logaddexp", _E, 2, "f", 45)
LOGADDEXP2 = Op("logaddexp2", _E, 2, "f", 45)

# Special functions of one real argument, which ``backends/special`` defines; float32 and float64 only
ERF = Op("erf", _E, 1, "f", 60, special=True, rounds="f", errors="")
ERFC = Op("erfc", _E, 1, "f", 60, special=True, rounds="f", errors="")
ERFCX = Op("erfcx", _E, 1, "f", 60, special=True, rounds="f", errors="")
ERFINV = Op("erfinv", _E, 1, "f", 100, special=True, rounds="f", errors="")
ERFCINV = Op("erfcinv", _E, 1, "f", 100, special=True, rounds="f", errors="")
NDTR = Op("ndtr", _E, 1, "f", 60, special=True, rounds="f", errors="")
NDTRI = Op("ndtri", _E, 1, "f", 100, special=True, rounds="f", errors="")
LOG_NDTR = Op("log_ndtr", _E, 1, "f", 80, special=True, rounds="f", errors="")
EXPIT = Op("expit", _E, 1, "f", 25, special=True, rounds="f", errors="")
LOGIT = Op("logit", _E, 1, "f", 50, special=True, rounds="f", errors="")
LOG_EXPIT = Op("log_expit", _E, 1, "f", 45, special=True, rounds="f", errors="")
GAMMALN = Op("gammaln", _E, 1, "f", 90, special=True, rounds="f", errors="")
DIGAMMA = Op("digamma", _E, 1, "f", 90, special=True, rounds="f", errors="")
I0 = Op("i0", _E, 1, "f", 50, special=True, rounds="f", errors="")
I0E = Op("i0e", _E, 1, "f", 50, special=True, rounds="f", errors="")
I1 = Op("i1", _E, 1, "f", 50, special=True, rounds="f", errors="")
I1E = Op("i1e", _E, 1, "f", 50, special=True, rounds="f", errors="")

FLOOR = Op("floor", _E, 1, "biuf", c_name="floor", errors="")
CEIL = Op("ceil", _E, 1, "biuf", c_name="ceil", errors="")
TRUNC = Op("trunc", _E, 1, "biuf", c_name="trunc", errors="")
RINT = Op("rint", _E, 1, "fc", c_name="rint", errors="")
COPYSIGN = Op("copysign", _E, 2, "f", 2, c_name="copysign", errors="")
NEXTAFTER = Op("nextafter", _E, 2, "f", 10, c_name="nextafter")
SPACING = Op("spacing", _E, 1, "f", 10, errors="over under")
LDEXP = Op("ldexp", _E, 2, "f", 10, c_name="ldexp")
SIGNBIT = Op("signbit", _E, 1, "f", predicate=True, errors="")
ISNAN = Op("isnan", _E, 1, "biufc", predicate=True, errors="")
ISINF = Op("isinf", _E, 1, "biufc", predicate=True, errors="")
ISFINITE = Op("isfinite", _E, 1, "biufc", predicate=True, errors="")

LESS = Op("less", _E, 2, "biufc", predicate=True, errors="")
LESS_EQUAL = Op("less_equal", _E, 2, "biufc", predicate=True, errors="")
GREATER = Op("greater", _E, 2, "biufc", predicate=True, errors="")
GREATER_EQUAL = Op("greater_equal", _E, 2, "biufc", predicate=True, errors="")
EQUAL = Op("equal", _E, 2, "biufc", commutes="b", predicate=True, errors="")
NOT_EQUAL = Op("not_equal", _E, 2, "biufc", commutes="b", predicate=True, errors="")
MAXIMUM = Op("maximum", _E, 2, "biufc", commutes="biu", identity=_smallest, errors="")
MINIMUM = Op("minimum", _E, 2, "biufc", commutes="biu", identity=_largest, errors="")
FMAX = Op("fmax", _E, 2, "biufc", commutes="biu", identity=_nan_or_smallest, rounds="f", errors="")
FMIN = Op("fmin", _E, 2, "biufc", commutes="biu", identity=_nan_or_largest, rounds="f", errors="")

BITWISE_AND = Op("bitwise_and", _E, 2, "biu", commutes="biu", identity=_all_bits)
BITWISE_OR = Op("bitwise_or", _E, 2, "biu", commutes="biu", identity=_zero)
BITWISE_XOR = Op("bitwise_xor", _E, 2, "biu", commutes="biu", identity=_zero)
INVERT = Op("invert", _E, 1, "biu")
LEFT_SHIFT = Op("left_shift", _E, 2, "iu")
RIGHT_SHIFT = Op("right_shift", _E, 2, "iu")
BITWISE_COUNT = Op("bitwise_count", _E, 1, "iu", 2)
GCD = Op("gcd", _E, 2, "iu", 60, commutes="iu")
LCM = Op("lcm", _E, 2, "iu", 60, commutes="iu")
MULTIPLY_HIGH = Op("multiply_high", _E, 2, "u", 2, commutes="u", errors="")  # the upper half of the product

REAL = Op("real", _E, 1, "c", 0, errors="")  # complex -> its float
IMAG = Op("imag", _E, 1, "c", 0, errors="")
COMPLEX = Op("complex", _E, 2, "f", 0, errors="")  # src: (real, imag)
CONJUGATE = Op("conjugate", _E, 1, "iufc", errors="")

# Reductions ---------------------------------------------------------------------------------------------------------
# arg: (combining elementwise Op, axes in increasing order); the reduced axes vanish; dtype = the source's dtype.
# The combining operation is one of ``COMBINING`` (any = OR and all = AND on bool).  An empty reduction gives its identity; where NumPy
# has none, for min and max of nothing, it is refused before it is recorded.
REDUCE = Op("reduce", Kind.REDUCTION, 1)
SCAN = Op("scan", Kind.REDUCTION, 1)  # arg: (combining Op, axis); running reduction in index order, same shape

# The rest -----------------------------------------------------------------------------------------------------------
GATHER = Op("gather", Kind.OTHER)  # src: (x, i0, .., ik-1), equal-shape int64 indices into x's first k axes, negatives wrap
STORE = Op("store", Kind.OTHER, 2)  # src: (base, value); arg: region as in SLICE, lengths = value.shape; base's value with it replaced
CONCAT = Op("concat", Kind.OTHER)  # arg: axis
CALL = Op("call", Kind.OTHER)  # a library function; arg: (name, hashable parameters); value is its only or first output
OUTPUT = Op("output", Kind.OTHER, 1)  # arg: k; the k-th output of the CALL that is its source
COPY = Op("copy", Kind.OTHER, 1)  # arg: the name of a device; the same value there.  Programs have none: see ``engine/devices.py``
CONTIGUOUS = Op("contiguous", Kind.OTHER, 1)  # the user's fence: its value is stored

SPECIAL: Final = frozenset([op for op in ALL if op.special])
COMPARISONS: Final = frozenset([op for op in ALL if op.predicate and op.arity == 2])
COMBINING: Final = frozenset([op for op in ALL if op.identity is not _none])
# Calls whose operands lie in memory as their sources do; others may be made in the memory of what they are given.
PRODUCTS: Final = ("matmul", "dot")
TF32: Final = "tf32"  # last of a product's parameters where a GPU may round its factors so
CALLS: Final = frozenset({CALL, OUTPUT, CONTIGUOUS})  # dear to compute a second time, whatever the size
