"""Generalised ufuncs: matmul, vecdot, matvec and vecmat.

In: arrays.  Out: CALL nodes for the library (BLAS), or products that are summed; dtype and shape are known at the call.  Promise: they are
ufuncs to code that asks, with ``axes``, ``axis`` and ``keepdims`` besides the keywords of all ufuncs; shapes that do not fit are NumPy's
errors at the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.array import calls, core
from lazynp.arrays import ndarray, result, wrap_ordered
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.build import broadcast_shape, call, cast, elementwise, permute, reshape
from lazynp.graph.dtypes import BOOL, DType
from lazynp.graph.node import Node, Shape
from lazynp.layout import lies_in_c_order, loop_order
from lazynp.namespace.docstrings import Documented
from lazynp.namespace.ufunc.promotion import Foreign, array_node, overrides
from lazynp.namespace.ufunc.reductions import reduce_node
from lazynp.namespace.ufunc.ufuncs import need_array, ordered, ufunc, write_out

_dtypes: dict[tuple[str, DType, DType], DType] = {}


def _loop(name: str, a: Node, b: Node) -> DType:
    found = _dtypes.get((name, a.dtype, b.dtype))
    if found is None:
        found = getattr(np, name).resolve_dtypes((a.dtype, b.dtype, None))[0]
        _dtypes[name, a.dtype, b.dtype] = found
    return found


_SIGNATURES: Final = {
    "matmul": "(n?,k),(k,m?)->(n?,m?)",
    "vecdot": "(n),(n)->()",
    "matvec": "(m,n),(n)->(m)",
    "vecmat": "(n),(n,m)->(m)",
}
# Core dimensions each operand must have.
_CORE: Final = {"matmul": (1, 1), "vecdot": (1, 1), "matvec": (2, 1), "vecmat": (1, 2)}


def _mismatch(name: str, dimension: int, found: int, expected: int) -> ValueError:
    return ValueError(
        f"{name}: Input operand 1 has a mismatch in its core dimension {dimension}, with gufunc signature {_SIGNATURES[name]} "
        f"(size {found} is different from {expected})"
    )


def _check_core(name: str, a: Node, b: Node) -> None:
    for k, (node, required) in enumerate(zip((a, b), _CORE[name], strict=True)):
        if len(node.shape) < required:
            raise ValueError(
                f"{name}: Input operand {k} does not have enough dimensions (has {len(node.shape)}, gufunc core with signature "
                f"{_SIGNATURES[name]} requires {required})"
            )


def batch_shape(a: Shape, b: Shape) -> Shape:
    try:
        return broadcast_shape(a, b)
    except ValueError:
        raise ValueError(f"operands could not be broadcast together with remapped shapes [original->remapped]: {a} {b} ") from None


def matmul_node(a: Node, b: Node) -> Node:
    """``a @ b`` of nodes."""
    _check_core("matmul", a, b)
    inner, position = (b.shape[0], 0) if len(b.shape) == 1 else (b.shape[-2], len(b.shape) - 2)
    if a.shape[-1] != inner:
        raise _mismatch("matmul", 0 if position == len(b.shape) - 2 or len(b.shape) == 1 else position, inner, a.shape[-1])
    loop = _loop("matmul", a, b)
    rows = a.shape[-2:-1] if len(a.shape) > 1 else ()
    columns = b.shape[-1:] if len(b.shape) > 1 else ()
    shape = batch_shape(a.shape[:-2], b.shape[:-2]) + rows + columns
    return call("matmul", devices.precision(loop), (cast(a, loop), cast(b, loop)), loop, shape)


def _vecdot_node(a: Node, b: Node) -> Node:
    _check_core("vecdot", a, b)
    if a.shape[-1] != b.shape[-1]:
        raise _mismatch("vecdot", 0, b.shape[-1], a.shape[-1])
    loop = _loop("vecdot", a, b)
    a, b = cast(a, loop), cast(b, loop)
    batch = batch_shape(a.shape[:-1], b.shape[:-1])
    if loop.kind == "c":
        return call("ufunc:vecdot", (), (a, b), loop, batch)
    both = elementwise(o.BITWISE_AND if loop == BOOL else o.MULTIPLY, loop, a, b)
    return reduce_node("add", both, (len(both.shape) - 1,), loop)


def _matvec_node(a: Node, b: Node) -> Node:
    _check_core("matvec", a, b)
    if a.shape[-1] != b.shape[-1]:
        raise _mismatch("matvec", 0, b.shape[-1], a.shape[-1])
    product = matmul_node(a, reshape(b, (*b.shape, 1)))
    return reshape(product, product.shape[:-1])


def _vecmat_node(a: Node, b: Node) -> Node:
    _check_core("vecmat", a, b)
    if a.shape[-1] != b.shape[-2]:
        raise _mismatch("vecmat", 0, b.shape[-2], a.shape[-1])
    if a.dtype.kind == "c":
        a = elementwise(o.CONJUGATE, a.dtype, a)
    product = matmul_node(reshape(a, (*a.shape[:-1], 1, a.shape[-1])), b)
    return reshape(product, (*product.shape[:-2], product.shape[-1]))


_PRODUCTS: Final = {"matmul": matmul_node, "vecdot": _vecdot_node, "matvec": _matvec_node, "vecmat": _vecmat_node}


class gufunc(ufunc):
    """A generalised ufunc: a function of the operands' last axes, or of those that ``axes`` names."""

    __doc__ = Documented(__doc__, "of_ufunc")
    answered = "library"

    def __init__(self, name: str) -> None:
        super().__init__(getattr(np, name), None)
        self._product = _PRODUCTS[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record the product; see :class:`numpy.ufunc` for the keywords."""
        if kwargs or len(args) != 2:
            return self._keyed(args, kwargs)
        if self.__name__ == "matmul":
            found = calls.product(np.matmul, *args)
            if found is not NotImplemented:
                return found
        try:
            return self._laid_out(self._product(array_node(args[0]), array_node(args[1])), args)
        except Foreign:
            return self._by_numpy(args, kwargs)

    def _laid_out(self, node: Node, args: Sequence[Any]) -> Any:
        """A result in the memory order NumPy gives it: only the loop axes have one."""
        if len(node.shape) < 3 or all(lies_in_c_order(x) for x in args):
            return result(node)
        operands = [asarray(x) for x in args]
        ranks = [2, 2] if self.__name__ == "matmul" else _CORE[self.__name__]
        cores = [min(x.ndim, rank) for x, rank in zip(operands, ranks, strict=True)]
        return wrap_ordered(node, loop_order(operands, cores, len(node.shape)))

    def __reduce__(self) -> Any:
        return by_name, (self.__name__,)

    def _with_keywords(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not 2 <= len(args) <= 3:
            were = "was" if len(args) == 1 else "were"
            raise TypeError(f"{self.__name__}() takes from 2 to 3 positional arguments but {len(args)} {were} given")
        (out,) = self._outputs(args[2:], kwargs)
        if not overrides(out):
            need_array(out)
        try:
            nodes = [array_node(x) for x in args[:2]]
            rank = self._judged(nodes, out, {name: value for name, value in kwargs.items() if name != "out"})
            if not {"dtype", "signature", "sig"}.isdisjoint(kwargs):
                rule = self._keyword_rule(args[:2], (out,), kwargs)
                assert rule is not None
                nodes = [cast(node, loop) for node, loop in zip(nodes, rule.ins, strict=True)]
            node = self._over(nodes, rank, kwargs)
        except Foreign:
            return self._by_numpy(args, kwargs)
        if out is not None:
            # The axes of the loop may be broadcast to the output's, those of the core may not.
            core = len(node.shape)
            if {"axis", "axes", "keepdims"}.isdisjoint(kwargs):
                core = sum(len(x.shape) > 1 for x in nodes) if self.__name__ == "matmul" else int(self.__name__ != "vecdot")
            if out.shape[len(out.shape) - core :] != node.shape[len(node.shape) - core :]:
                raise ValueError(
                    f"{self.__name__}: Output operand 0 has a mismatch in its core dimension, with gufunc signature {self._numpy.signature}"
                )
            return write_out(out, node)
        return ordered(node, args[:2], kwargs["order"]) if node.shape and kwargs.get("order") in ("F", "A") else result(node)

    def _judged(self, nodes: Sequence[Node], out: Any, options: dict[str, Any]) -> int:
        """The rank of the result.  NumPy is asked, with arrays of the same rank that have one element, so errors are its own."""
        if out is not None:
            given = isinstance(out, (ndarray, np.ndarray))
            options["out"] = np.ones((1,) * len(out.shape), out.dtype) if given else out
        return int(np.ndim(self._numpy(*[np.ones((1,) * len(node.shape), node.dtype) for node in nodes], **options)))

    def _over(self, nodes: Sequence[Node], rank: int, kwargs: dict[str, Any]) -> Node:
        """The product with the core axes where ``axes`` or ``axis`` says."""
        axes, keepdims = kwargs.get("axes"), bool(kwargs.get("keepdims", False))
        if kwargs.get("axis") is not None:
            # Allowed where all operands have one core dimension and the result has none.
            axes = [kwargs["axis"]] * (3 if keepdims else 2)
        if axes is None:
            node = self._product(*nodes)
            return reshape(node, (*node.shape, 1)) if keepdims else node
        chosen = [tuple(entry) if isinstance(entry, (tuple, list)) else (entry,) for entry in axes]
        node = self._product(*[_last(x, _positions(entry, len(x.shape))) for x, entry in zip(nodes, chosen, strict=False)])
        if keepdims:
            node = reshape(node, (*node.shape, 1))
        core = _positions(chosen[2] if len(chosen) > 2 else (), rank)
        places = (*[k for k in range(rank) if k not in core], *core)
        return permute(node, tuple([places.index(k) for k in range(rank)]))


def _positions(axes: tuple[Any, ...], rank: int) -> tuple[int, ...]:
    return tuple([index(axis) % rank for axis in axes])


def _last(x: Node, axes: tuple[int, ...]) -> Node:
    return permute(x, (*[k for k in range(len(x.shape)) if k not in axes], *axes))


core.register_ufunc(gufunc)
GUFUNCS: Final = {name: gufunc(name) for name in _PRODUCTS}


def by_name(name: str) -> gufunc:
    """The generalised ufunc called ``name``."""
    return GUFUNCS[name]


matmul: Final = GUFUNCS["matmul"]
