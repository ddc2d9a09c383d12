"""Which floating-point errors an operation can raise at all.

In: an operation of the graph and dtypes.  Out: bits, by NumPy's numbers.  Promise: nothing is loaded but the table of operations.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from lazynp.graph import op as o
from lazynp.graph.op import Kind, Op

if TYPE_CHECKING:

    class DType(Protocol):
        """NumPy's dtypes, or what stands for them where there is no NumPy."""

        @property
        def kind(self) -> str: ...
        @property
        def char(self) -> str: ...
        @property
        def itemsize(self) -> int: ...


# NumPy's numbers, which an error callback is given.
DIVIDE: Final = 1
OVER: Final = 2
UNDER: Final = 4
INVALID: Final = 8
ALL: Final = DIVIDE | OVER | UNDER | INVALID
BITS: Final = {"divide": DIVIDE, "over": OVER, "under": UNDER, "invalid": INVALID}


@cache
def _bits_of(names: str) -> int:
    return sum([BITS[name] for name in names.split()])


def possible(op: Op, arg: Any, dtype: DType, source: DType) -> int:
    """The errors that a node of this operation can raise; ``source`` is the dtype of its first source."""
    if op.kind is Kind.ELEMENTWISE:
        return raises(op, dtype, source)
    if op.kind is Kind.REDUCTION:
        return raises(arg[0], dtype, dtype)
    return ALL if op is o.CALL else 0


def raises(op: Op, dtype: DType, source: DType) -> int:
    """The errors that an elementwise operation can raise; ``source`` is the dtype of its first source."""
    kind = source.kind
    if op is o.CAST:
        return _cast(dtype, source)
    if kind in "biu":
        return _bits_of(op.integer_errors)
    if kind == "c" and op.c_name:
        return ALL  # made of several functions of real numbers
    if kind == "c" and op in o.COMPARISONS:
        return INVALID
    return _bits_of(op.errors)


def _cast(dtype: DType, source: DType) -> int:
    to_kind, from_kind = dtype.kind, source.kind
    if from_kind in "fc":
        if to_kind in "iu":
            return INVALID
        if to_kind in "fc":
            narrower = dtype.itemsize // (1 + (to_kind == "c")) < source.itemsize // (1 + (from_kind == "c"))  # of their real parts
            return OVER | UNDER if narrower else 0
        return 0
    return OVER if dtype.char == "e" and source.itemsize > 1 else 0
