"""What the operands of an elementwise function are, and in which dtypes it runs.

In: whatever the user passed.  Out: nodes and the dtypes of NumPy's loop.  Promise: dtypes are NumPy's own answer
(``resolve_dtypes``), Python numbers stay weak (NEP 50), shapes broadcast with NumPy's error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of
from lazynp.graph.dtypes import BOOL, NATIVE, DType
from lazynp.graph.node import Node, Shape
from lazynp.scalars import CLASSES, is_scalar
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion
    from lazynp.graph import build
else:
    conversion, build = late("conversion", "graph.build")

_OWN: Final = CLASSES | {ndarray, np.ndarray}

Key = np.dtype[Any] | type


class Foreign(Exception):  # noqa: N818 - a turn of the road, not a mistake
    """An operand that only NumPy can compute with."""


def operand(x: Any) -> tuple[Node | None, Key]:
    """The node of an operand and its dtype; for a Python number no node and its type.

    Raises
    ------
    Foreign
        The operand is an object, a string, a date, a longdouble, ...
    """
    kind = type(x)
    if kind is ndarray:
        node = node_of(x)
        return node, node.dtype
    if kind is float or kind is int or kind is complex:
        return None, kind
    if kind is bool:
        return build.const(x, BOOL), BOOL
    if is_scalar(x):
        node = node_of(x)
        return node, node.dtype
    if issubclass(kind, np.generic):
        if x.dtype in NATIVE:
            return build.const(x, x.dtype), x.dtype
        raise Foreign
    for weak in (int, float, complex):
        if isinstance(x, weak):
            return None, weak
    if overrides(x):
        raise Foreign
    array = conversion.asarray(x)
    if array.dtype not in NATIVE:
        raise Foreign
    node = node_of(array)
    return node, node.dtype


def array_node(x: Any) -> Node:
    """The node of an array-like; raises ``Foreign`` for what the graph does not compute with."""
    if type(x) is ndarray:
        return node_of(x)
    node, _ = operand(x)
    if node is not None:
        return node
    number = conversion.asarray(x)
    if type(number) is not ndarray:  # an integer that no dtype of ours holds
        raise Foreign
    return node_of(number)


def in_common(*nodes: Node) -> tuple[Node, ...]:
    """Nodes in the dtype that they have in common."""
    dtype = np.result_type(*[node.dtype for node in nodes])
    return tuple([build.cast(node, dtype) for node in nodes])


def mask_node(where: Any) -> Node:
    """The node of a ``where=`` argument: a bool array, or Python values that NumPy reads as truth values."""
    if type(where) is not ndarray and not is_scalar(where) and not isinstance(where, (np.ndarray, np.generic)):
        where = np.asarray(where, BOOL) if where is not None else False
    node, kind = operand(where)
    if node is None or kind != BOOL:
        raise TypeError(f"Cannot cast array data from {kind!r} to {BOOL!r} according to the rule 'safe'")
    return node


def overrides(x: Any) -> bool:
    """Tell whether a foreign type has its own idea of ufuncs, or of their results (pandas, masked arrays, PyTorch, ...)."""
    kind = type(x)
    if kind in _OWN or issubclass(kind, (np.memmap, np.generic)):
        return False
    return hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_wrap__")


def has_subclass(*values: Any) -> bool:
    """Tell whether one of the values is of a subclass of NumPy's array (matrix, masked array), which only NumPy keeps."""
    return any(isinstance(x, np.ndarray) and type(x) is not np.ndarray for x in values)


def weak(value: Any, dtype: DType) -> Node:
    """A Python number in the loop's dtype; ``OverflowError`` where an int does not fit."""
    kind = dtype.kind
    if isinstance(value, complex) and kind != "c":
        return build.const(np.asarray(value).astype(dtype)[()], dtype)  # allowed by casting="unsafe" alone
    if kind in "iu" and type(value) is not float:
        return build.const(int(value), dtype)
    if kind == "b" and type(value) is int:
        np.intp(value)  # raises where it does not fit: NumPy takes its truth from a C long
    return build.const(value, dtype)


def shape_text(shapes: tuple[Shape, ...]) -> str:
    return " ".join([str(shape).replace(" ", "") for shape in shapes])


def broadcast(*shapes: Shape) -> Shape:
    """The common shape, with the error of NumPy's ufuncs."""
    first = shapes[0]
    result: Shape = first
    for shape in shapes[1:]:
        if shape == result or not shape:
            continue
        if not result:
            result = shape
            continue
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + result
        right = (1,) * (rank - len(shape)) + shape
        sizes = []
        for n, m in zip(left, right, strict=True):
            if n == m or m == 1:
                sizes.append(n)
            elif n == 1:
                sizes.append(m)
            else:
                raise ValueError(f"operands could not be broadcast together with shapes {shape_text(shapes)} ")
        result = tuple(sizes)
    return result


def concrete(x: Any) -> Any:
    """The value of a scalar that is known (a Python number, NumPy scalar, or concrete scalar of ours), or None."""
    kind = type(x)
    if kind is float or kind is int or kind is complex or kind is bool:
        return x
    if is_scalar(x):
        return x._value
    if issubclass(kind, np.generic):
        return x
    return None
