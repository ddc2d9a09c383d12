"""``einsum``: sums of products by names of axes.

In: subscripts, in words or as lists of axes, and operands.  Out: a CALL node whose dtype and shape follow from them, a view where nothing
is summed, or NumPy's own work.  Promise: NumPy's errors for subscripts that do not fit are raised at the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray, result
from lazynp.engine import devices
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node, Shape
from lazynp.namespace.bridge import fallback
from lazynp.values import config
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import storage, viewing
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.namespace.ufunc import promotion
else:
    build, hand, promotion, storage, viewing = late("graph.build", "array.hand", "namespace.ufunc.promotion", "storage", "viewing")


def _where_they_lie(subscripts: str, operands: Sequence[Any], optimize: Any) -> Any:
    """``numpy.einsum`` of arrays that exist, however large, which reads views where they lie; else ``NotImplemented``.

    What is pending of a view that is larger than its memory (windows, a broadcast) is computed: a schedule would write the view out.  Three
    operands and more are contracted in pairs, as any user of large arrays asks for, but for such views, which that would write out as well.
    """
    values = []
    wide = False
    for x in operands:
        if type(x) is not ndarray or not config.at_hand or devices.gpus is not None:
            return NotImplemented
        if type(x._base) is ndarray and x.size > x._base.size:
            wide = True
            storage.host(x, "einsum")
        memory = storage.elements(x)
        if memory is None:
            return NotImplemented
        values.append(memory)
    value = at_once(core.einsum, subscripts, *values, optimize=optimize or (len(values) > 2 and not wide))
    return NotImplemented if type(value) is np.ndarray and value.base is not None else hand.result(value)


@fallback.library
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Contract operands by Einstein's summation convention; see :func:`numpy.einsum`."""
    operands = _spelled(operands)
    native = optimize in (False, True, "greedy", "optimal") if isinstance(optimize, (bool, str)) else False
    if kwargs or out is not None or not native or not operands or not isinstance(operands[0], str):
        if out is not None:
            kwargs["out"] = out
        return fallback.call(np.einsum, "einsum", operands, {**kwargs, "optimize": optimize})
    found = _where_they_lie(operands[0], operands[1:], optimize)
    if found is not NotImplemented:
        return found
    try:
        nodes = promotion.in_common(*[promotion.array_node(x) for x in operands[1:]])
    except promotion.Foreign:
        return fallback.call(np.einsum, "einsum", operands, {"optimize": optimize})
    subscripts, shape = _einsum_shape(operands[0], nodes)
    if len(nodes) == 1 and type(operands[1]) is ndarray:
        view = _einsum_view(operands[1], *subscripts.split("->"))
        if view is not None:
            return view
    how = devices.precision(nodes[0].dtype)
    if optimize and len(nodes) == 2 and devices.gpus is None:
        how = ("optimize",)
    return result(build.call("einsum", (subscripts, *how), nodes, nodes[0].dtype, shape))


_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # what numbers of axes mean to ``einsum``


def _spelled(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands with lists of axes beside them as subscripts and operands; whatever is neither as it is."""
    if len(operands) < 2 or isinstance(operands[0], str):
        return operands
    lists = operands[1::2] if len(operands) % 2 == 0 else (*operands[1::2], operands[-1])
    texts = []
    for axes in lists:
        if not isinstance(axes, (list, tuple)) or not all(part is ... or (type(part) is int and 0 <= part < 52) for part in axes):
            return operands
        texts.append("".join(["..." if part is ... else _LETTERS[part] for part in axes]))
    inputs = texts if len(operands) % 2 == 0 else texts[:-1]
    return (",".join(inputs) + ("" if len(operands) % 2 == 0 else f"->{texts[-1]}"), *operands[: 2 * len(inputs) : 2])


def _einsum_shape(subscripts: str, nodes: Sequence[Node]) -> tuple[str, Shape]:
    """The subscripts with everything spelled out, and the result's shape; raises NumPy's ``ValueError``."""
    from numpy._core.einsumfunc import _parse_einsum_input  # type: ignore[attr-defined]

    stand_ins = [np.broadcast_to(np.empty((), node.dtype), node.shape) for node in nodes]
    inputs, output, _ = _parse_einsum_input((subscripts, *stand_ins))
    terms = inputs.split(",")
    if len(terms) != len(nodes):
        raise ValueError(
            "more operands provided to einstein sum function than specified in the subscripts string"
            if len(nodes) > len(terms)
            else "fewer operands provided to einstein sum function than specified in the subscripts string"
        )
    extents: dict[str, int] = {}
    for number, (term, node) in enumerate(zip(terms, nodes, strict=True)):
        if len(term) != len(node.shape):
            raise ValueError(
                f"einstein sum subscripts string contains too many subscripts for operand {number}"
                if len(term) > len(node.shape)
                else "operand has more dimensions than subscripts given in einstein sum, but no '...' ellipsis provided to broadcast "
                "the extra dimensions."
            )
        for label, n in zip(term, node.shape, strict=True):
            if extents.get(label, n) not in (n, 1) and n != 1:
                raise ValueError(f"operands could not be broadcast together with remapped shapes: {label!r} is {extents[label]} and {n}")
            extents[label] = max(n, extents.get(label, n)) if 0 not in (n, extents.get(label, n)) else 0
    return f"{inputs}->{output}", tuple([extents[label] for label in output])


def _einsum_view(x: ndarray, labels: str, output: str) -> ndarray | None:
    """Axes of one array permuted and diagonals taken, which is a view that may be written; None where something is summed."""
    if set(labels) != set(output):
        return None
    found = x
    while len(labels) != len(set(labels)):
        first = next(k for k, label in enumerate(labels) if labels.count(label) > 1)
        second = labels.index(labels[first], first + 1)
        if found.shape[first] != found.shape[second]:
            return None
        rest = [label for k, label in enumerate(labels) if k not in (first, second)]
        found, labels = viewing.view_diagonal(found, 0, first, second), "".join(rest) + labels[first]
    found = viewing.view_permute(found, tuple([labels.index(label) for label in output]))
    found._readonly = x._readonly
    return found


FUNCTIONS: Final = {"einsum": einsum}
