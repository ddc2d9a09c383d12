"""Products of arrays, and linear algebra.

In: arrays.  Out: CALL nodes for the library (BLAS, LAPACK), whose dtype and shape are known at the call.  Promise: NumPy's errors
for shapes that do not fit are raised at the call; what depends on values (a singular matrix) is raised when the value is
computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.array import calls
from lazynp.arrays import ndarray, node_of, result, wrap
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.build import call, cast, elementwise, expand, permute, reduce, reshape
from lazynp.graph.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, DType
from lazynp.graph.node import Node, Shape
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.creation import eye
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.gufuncs import GUFUNCS, batch_shape, matmul_node
from lazynp.namespace.ufunc.promotion import Foreign, array_node, in_common, shape_text
from lazynp.namespace.ufunc.ufuncs import UFUNCS, need_array, write_out
from lazynp.scalars import force
from lazynp.values.loading import load


def _not_aligned(a: Node, b: Node, i: int, j: int) -> ValueError:
    shapes = f"{shape_text((a.shape,))} and {shape_text((b.shape,))}"
    return ValueError(f"shapes {shapes} not aligned: {a.shape[i]} (dim {i}) != {b.shape[j]} (dim {j})")


def _scaled(a: Node, b: Node) -> Node:
    return elementwise(o.BITWISE_AND if a.dtype == BOOL else o.MULTIPLY, a.dtype, a, b)


def dot_node(a: Node, b: Node) -> Node:
    """``numpy.dot`` of nodes."""
    a, b = in_common(a, b)
    if not a.shape or not b.shape:
        return _scaled(a, b)
    i, j = len(a.shape) - 1, max(len(b.shape) - 2, 0)
    if a.shape[i] != b.shape[j]:
        raise _not_aligned(a, b, i, j)
    shape = a.shape[:-1] + b.shape[:j] + b.shape[j + 1 :]
    if len(a.shape) <= 2 and len(b.shape) <= 2 and prod(a.shape) == 1 == prod(b.shape) and a.dtype.itemsize > 2 and a.dtype.kind in "fc":
        # NumPy takes one of them for a scalar, and adds nothing to the product: it may be -0.0.
        product = elementwise(o.MULTIPLY, a.dtype, reshape(a, ()), reshape(b, ()))
    else:
        # Up to two dimensions dot is the matrix product; with an axis of one NumPy has loops of its own for that, and other zeros.
        name = "matmul" if len(a.shape) <= 2 and len(b.shape) <= 2 and 1 not in a.shape and 1 not in b.shape else "dot"
        product = call(name, devices.precision(a.dtype), (a, b), a.dtype, shape)
    product.err = product.err.named("dot")
    return reshape(product, shape)


@fallback.library
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Compute the dot product; see :func:`numpy.dot`."""
    need_array(out, "'out' must be an array")
    if out is None:
        found = calls.product(np.dot, a, b)
        if found is not NotImplemented:
            return found
    try:
        node = dot_node(array_node(a), array_node(b))
    except Foreign:
        return fallback.call(np.dot, "dot", (a, b), {} if out is None else {"out": out})
    if out is not None and (out.dtype != node.dtype or out.shape != node.shape or not out.flags.c_contiguous):
        raise ValueError("output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)")
    return result(node) if out is None else write_out(out, node)


@fallback.library
def inner(a: Any, b: Any, /) -> Any:
    """Sum products over the last axes; see :func:`numpy.inner`."""
    try:
        x, y = in_common(array_node(a), array_node(b))
    except Foreign:
        return fallback.call(np.inner, "inner", (a, b), {})
    if not x.shape or not y.shape:
        return result(_scaled(x, y))
    if x.shape[-1] != y.shape[-1]:
        raise _not_aligned(x, y, len(x.shape) - 1, len(y.shape) - 1)
    if prod(x.shape) == 1 == prod(y.shape):
        # Whether NumPy adds such a product to zero depends on the dimensions.
        last = len(y.shape) - 1
        return result(dot_node(x, permute(y, (*range(last - 1), last, last - 1)) if last else y))
    return result(tensordot_node(x, y, (len(x.shape) - 1,), (len(y.shape) - 1,)))


@fallback.library
def vdot(a: Any, b: Any, /) -> Any:
    """Compute the dot product of the flattened arrays, the first conjugated; see :func:`numpy.vdot`."""
    known = calls.answer(np.vdot, (a, b), {}, 0, calls.ALWAYS)  # of what lies in memory in any way; its sum follows from that
    if known is not NotImplemented:
        return known
    try:
        x, y = in_common(array_node(a), array_node(b))
    except Foreign:
        return fallback.call(np.vdot, "vdot", (a, b), {})
    x, y = reshape(x, (prod(x.shape),)), reshape(y, (prod(y.shape),))
    if x.shape != y.shape:
        raise ValueError(f"cannot reshape array of size {y.shape[0]} into shape {shape_text((x.shape,))}")
    if x.dtype.kind == "c":
        x = elementwise(o.CONJUGATE, x.dtype, x)
    return result(call("matmul", (), (x, y), x.dtype, ()))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Multiply all pairs of elements; see :func:`numpy.outer`."""
    try:
        x, y = array_node(a), array_node(b)
    except Foreign:
        return fallback.call(np.outer, "outer", (a, b), {} if out is None else {"out": out})
    rows, columns = reshape(x, (prod(x.shape), 1)), reshape(y, (1, prod(y.shape)))
    return UFUNCS["multiply"](wrap(rows), wrap(columns), **({} if out is None else {"out": out}))


def tensordot_node(a: Node, b: Node, axes_a: Sequence[int], axes_b: Sequence[int]) -> Node:
    """Contract ``axes_a`` of ``a`` with ``axes_b`` of ``b``: one matrix product between permutes and reshapes."""
    kept_a = [k for k in range(len(a.shape)) if k not in axes_a]
    kept_b = [k for k in range(len(b.shape)) if k not in axes_b]
    depth = prod([a.shape[k] for k in axes_a])
    shape_a, shape_b = tuple([a.shape[k] for k in kept_a]), tuple([b.shape[k] for k in kept_b])
    left = reshape(permute(a, (*kept_a, *axes_a)), (prod(shape_a), depth))
    right = reshape(permute(b, (*axes_b, *kept_b)), (depth, prod(shape_b)))
    return reshape(dot_node(left, right), shape_a + shape_b)  # which is what NumPy calls


@fallback.library
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sum products over given axes; see :func:`numpy.tensordot`."""
    try:
        x, y = in_common(array_node(a), array_node(b))
    except Foreign:
        return fallback.call(np.tensordot, "tensordot", (a, b), {"axes": axes})
    try:
        iter(axes)
    except TypeError:
        n = index(axes)
        axes_a, axes_b = list(range(-n, 0)), list(range(n))
    else:
        pair_a, pair_b = axes
        axes_a = [index(k) for k in pair_a] if np.iterable(pair_a) else [index(pair_a)]
        axes_b = [index(k) for k in pair_b] if np.iterable(pair_b) else [index(pair_b)]
    if len(axes_a) != len(axes_b) or any(x.shape[i] != y.shape[j] for i, j in zip(axes_a, axes_b, strict=True)):
        raise ValueError("shape-mismatch for sum")
    axes_a = [ax.one(k, len(x.shape)) for k in axes_a]
    axes_b = [ax.one(k, len(y.shape)) for k in axes_b]
    if len(set(axes_a)) != len(axes_a) or len(set(axes_b)) != len(axes_b):
        return fallback.call(np.tensordot, "tensordot", (a, b), {"axes": axes})
    return wrap(tensordot_node(x, y, axes_a, axes_b))


def kron(a: Any, b: Any) -> Any:
    """Compute the Kronecker product; see :func:`numpy.kron`."""
    try:
        x, y = array_node(a), array_node(b)
    except Foreign:
        return fallback.call(np.kron, "kron", (a, b), {})
    ndim = max(len(x.shape), len(y.shape))
    left = (1,) * (ndim - len(x.shape)) + x.shape
    right = (1,) * (ndim - len(y.shape)) + y.shape
    product = UFUNCS["multiply"].nodes(
        (
            wrap(reshape(x, tuple([m for n in left for m in (n, 1)]))),
            wrap(reshape(y, tuple([m for n in right for m in (1, n)]))),
        )
    )
    assert isinstance(product, Node)
    return result(reshape(product, tuple([m * n for m, n in zip(left, right, strict=True)])))


# numpy.linalg ---------------------------------------------------------------------------------------------------------------


def _linalg_dtype(*nodes: Node) -> DType:
    """The dtype LAPACK runs in; raises NumPy's ``TypeError`` for float16."""
    given = [node.dtype if node.dtype.kind in "fc" else FLOAT64 for node in nodes]
    if FLOAT16 in given:
        raise TypeError(f"array type {FLOAT16} is unsupported in linalg")
    return np.result_type(*given)


def _square(node: Node) -> None:
    if len(node.shape) < 2:
        raise np.linalg.LinAlgError(f"{len(node.shape)}-dimensional array given. Array must be at least two-dimensional")
    if node.shape[-1] != node.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def _lapack(name: str, options: tuple[tuple[str, Any], ...], nodes: Sequence[Node], dtype: DType, shape: Shape) -> Node:
    return call("numpy", (f"linalg.{name}", options), nodes, dtype, shape)


@fallback.library
def inv(a: Any) -> Any:
    """Compute the inverse of matrices; see :func:`numpy.linalg.inv`."""
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.linalg.inv, "linalg.inv", (a,), {})
    _square(x)
    dtype = _linalg_dtype(x)
    return wrap(_lapack("inv", (), (cast(x, dtype),), dtype, x.shape))


@fallback.library
def det(a: Any) -> Any:
    """Compute the determinant of matrices; see :func:`numpy.linalg.det`."""
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.linalg.det, "linalg.det", (a,), {})
    _square(x)
    dtype = _linalg_dtype(x)
    return result(_lapack("det", (), (cast(x, dtype),), dtype, x.shape[:-2]))


@fallback.library
def solve(a: Any, b: Any) -> Any:
    """Solve linear systems; see :func:`numpy.linalg.solve`."""
    try:
        x, y = array_node(a), array_node(b)
    except Foreign:
        return fallback.call(np.linalg.solve, "linalg.solve", (a, b), {})
    _square(x)
    dtype = _linalg_dtype(x, y)
    n = x.shape[-1]
    if len(y.shape) == 1:
        if y.shape[0] != n:
            raise ValueError(
                "solve1: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (m,m),(m)->(m) "
                f"(size {y.shape[0]} is different from {n})"
            )
        shape = x.shape[:-1]
    else:
        if len(y.shape) < 2 or y.shape[-2] != n:
            raise ValueError(
                "solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (m,m),(m,n)->(m,n) "
                f"(size {y.shape[-2] if y.shape else 0} is different from {n})"
            )
        shape = (*batch_shape(x.shape[:-2], y.shape[:-2]), n, y.shape[-1])
    return wrap(_lapack("solve", (), (cast(x, dtype), cast(y, dtype)), dtype, shape))


@fallback.library
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Compute the Cholesky factor of matrices; see :func:`numpy.linalg.cholesky`."""
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.linalg.cholesky, "linalg.cholesky", (a,), {"upper": upper})
    _square(x)
    dtype = _linalg_dtype(x)
    return wrap(_lapack("cholesky", (("upper", bool(upper)),), (cast(x, dtype),), dtype, x.shape))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute the norm of vectors or matrices; see :func:`numpy.linalg.norm`. Euclidean norms are native, the others NumPy's."""
    try:
        node = array_node(x)
    except Foreign:
        node = None
    vector = node is not None and (len(node.shape) == 1 if axis is None else not isinstance(axis, tuple) or len(axis) == 1)
    if node is None or not ((ord is None and (axis is None or vector)) or (vector and ord == 2)):
        by_numpy = fallback.call if node is None else fallback.library_call
        return by_numpy(np.linalg.norm, "linalg.norm", (x,), {"ord": ord, "axis": axis, "keepdims": keepdims})
    if node.dtype.kind not in "fc":
        node = cast(node, FLOAT64)
    if node.dtype.kind == "c":
        real = FLOAT32 if node.dtype == COMPLEX64 else FLOAT64
        parts = [elementwise(part, real, node) for part in (o.REAL, o.IMAG)]
        squares = elementwise(o.ADD, real, *[elementwise(o.MULTIPLY, real, p, p) for p in parts])
    else:
        squares = elementwise(o.MULTIPLY, node.dtype, node, node)
    axes = ax.reduced(int(axis) if isinstance(axis, bool) else axis, len(node.shape))
    total = reduce(o.ADD, squares, axes)
    total = elementwise(o.SQRT, total.dtype, total)
    return result(ax.kept(total, node.shape, axes) if keepdims else total)


@fallback.library
def matrix_power(a: Any, n: int) -> Any:
    """Raise matrices to an integer power; see :func:`numpy.linalg.matrix_power`."""
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(np.linalg.matrix_power, "linalg.matrix_power", (a, n), {})
    _square(x)
    exponent = index(n)
    if exponent == 1 and type(a) is ndarray:
        return a
    if not exponent:
        return wrap(expand(node_of(eye(x.shape[-1], dtype=x.dtype)), x.shape))
    if exponent < 0:
        x, exponent = node_of(inv(wrap(x))), -exponent
        force([x], "matrix_power")  # there may be none, which NumPy says at the call
    found: Node | None = None
    if exponent == 3:
        return wrap(matmul_node(matmul_node(x, x), x))
    while exponent:
        if exponent & 1:
            found = x if found is None else matmul_node(found, x)
        exponent >>= 1
        if exponent:
            x = matmul_node(x, x)
    assert found is not None
    return wrap(found)


FUNCTIONS: Final = {
    **{function.__name__: function for function in (dot, inner, vdot, outer, tensordot, kron)},
    **GUFUNCS,
}


def attribute(value: Any, name: str) -> Any:
    """Find what ``lazynp.linalg.<name>`` is when it is not here: the standard's function, or LAPACK's work at the call."""
    standard = load("lazynp.namespace.submodules.linalg_standard").FUNCTIONS
    if name in standard:
        return standard[name]
    return fallback.library_attribute(value, f"linalg.{name}")


SUBMODULE: Final = {
    **{function.__name__: function for function in (inv, det, solve, cholesky, norm, matrix_power)},
}
