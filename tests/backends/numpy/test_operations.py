"""Each operation of the graph in the NumPy tier, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazynp.backends.base import ExecutionError
from lazynp.backends.numpy import library
from lazynp.backends.numpy.operations import SPECIAL as FUNCTIONS
from lazynp.backends.numpy.operations import UFUNCS
from lazynp.backends.numpy.source import WRITERS
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.graph.op import Op
from tests.backends.numpy.programs import evaluate, leaf, same

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # the values are at issue here

BOOL = np.dtype(bool)
NATIVE = [np.dtype(c) for c in "?bhilBHILefdFD"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 127.0, np.inf, -np.inf, np.nan, 1e-7]


def values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Special values of a dtype, twelve of them."""
    match dtype.kind:
        case "b":
            return np.array([True, False] * 6)
        case "i" | "u":
            info = np.iinfo(dtype)
            return np.array([0, 1, 2, 3, 5, 7, 8, info.max, info.min, info.max - 1, info.min + 1, 100], dtype)
        case "f":
            return np.array(SPECIAL, dtype)
        case _:
            result = np.array(SPECIAL, dtype)
            result.imag = SPECIAL[::-1]
            return result


def test_every_operation_has_a_row() -> None:
    assert set(WRITERS) == {op for op in vars(o).values() if isinstance(op, o.Op)}


LOOPS = [
    (op, tuple(np.dtype(c) for c in loop.replace("q", "l").replace("Q", "L").split("->")[0]))
    for op, ufunc in UFUNCS.items()
    for loop in dict.fromkeys(ufunc.types)
    if set(loop) <= set("?bhilBHILefdFD->")
]


@pytest.mark.parametrize(("op", "dtypes"), LOOPS, ids=lambda value: repr(value) if isinstance(value, Op) else None)
def test_elementwise(op: Op, dtypes: tuple[np.dtype[Any], ...]) -> None:
    arrays = [values(dtype) for dtype in dtypes]
    if len(arrays) == 2:
        arrays = [np.repeat(arrays[0], 12), np.tile(arrays[1], 12)]
        if op in (o.POWER, o.LEFT_SHIFT, o.RIGHT_SHIFT) and dtypes[1].kind in "iu":
            arrays[1] = arrays[1] % 7
    with np.errstate(all="ignore"):
        expected = UFUNCS[op](*arrays)
    [got] = evaluate(build.elementwise(op, expected.dtype, *map(leaf, arrays)))
    same(got, expected)


def test_elementwise_broadcasts() -> None:
    a, b = np.arange(3.0)[:, None], np.arange(4.0)
    same(evaluate(build.elementwise(o.ADD, a.dtype, leaf(a), leaf(b)))[0], a + b)


def test_elementwise_of_scalars_is_an_array() -> None:
    c = build.const(2.5, np.dtype("f4"))
    same(evaluate(build.elementwise(o.MULTIPLY, c.dtype, c, c))[0], np.array(6.25, "f4"))


@pytest.mark.parametrize("dtype", NATIVE, ids=str)
@pytest.mark.parametrize("to", NATIVE, ids=str)
@pytest.mark.filterwarnings("error")
def test_cast(dtype: np.dtype[Any], to: np.dtype[Any]) -> None:
    x = values(dtype)
    with np.errstate(all="ignore"):
        expected = (x.real if dtype.kind == "c" and to.kind not in "cb" else x).astype(to)
    same(evaluate(Node(o.CAST, (leaf(x),), None, to, x.shape))[0], expected)
    same(evaluate(Node(o.CAST, (build.const(x[2], dtype),), None, to, ()))[0], expected[2])


@pytest.mark.parametrize(("dtype", "to"), [("f8", "i8"), ("u4", "f4"), ("e", "h"), ("?", "B"), ("F", "d"), ("b", "?")])
def test_bitcast(dtype: str, to: str) -> None:
    x = values(np.dtype(dtype)).reshape(3, 4)
    if dtype == "b":
        x = x & 1
    same(evaluate(build.bitcast(leaf(x), np.dtype(to)))[0], x.view(to))
    same(evaluate(build.bitcast(build.permute(leaf(x), (1, 0)), np.dtype(to)))[0], x.T.view(to))


def test_where_broadcasts_and_takes_scalars() -> None:
    condition, a = np.array([True, False, True]), np.arange(6.0).reshape(2, 3)
    c = build.const(-1.0, a.dtype)
    same(evaluate(build.elementwise(o.WHERE, a.dtype, leaf(condition), leaf(a), c))[0], np.where(condition, a, -1.0))


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_complex_parts(dtype: str) -> None:
    x = values(np.dtype(dtype))
    part = x.real.dtype
    real, imag = build.elementwise(o.REAL, part, leaf(x)), build.elementwise(o.IMAG, part, leaf(x))
    got = evaluate(real, imag, build.elementwise(o.COMPLEX, x.dtype, imag, real))
    expected = np.empty_like(x)
    expected.real, expected.imag = x.imag, x.real
    for value, of in zip(got, (x.real, x.imag, expected), strict=True):
        same(value, of)


REDUCTIONS = [o.ADD, o.MULTIPLY, o.MINIMUM, o.MAXIMUM, o.FMIN, o.FMAX]
BITWISE = [o.BITWISE_AND, o.BITWISE_OR, o.BITWISE_XOR]


@pytest.mark.parametrize("dtype", NATIVE, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS + BITWISE, ids=repr)
def test_reduce_and_scan(op: Op, dtype: np.dtype[Any]) -> None:
    if op in BITWISE and dtype.kind not in "biu":
        return
    x = np.stack([values(dtype), values(dtype)[::-1]]).reshape(2, 3, 4)
    with np.errstate(all="ignore"):
        for axes in [(0,), (1,), (2,), (0, 2), (0, 1, 2)]:
            same(evaluate(build.reduce(op, leaf(x), axes))[0], UFUNCS[op].reduce(x, axis=axes, dtype=dtype))
        for axis in range(3):
            same(evaluate(build.scan(op, leaf(x), axis))[0], UFUNCS[op].accumulate(x, axis=axis, dtype=dtype))


@pytest.mark.parametrize("op", [o.ADD, o.MULTIPLY, *BITWISE], ids=repr)
def test_reduce_of_nothing_is_the_identity(op: Op) -> None:
    x = np.empty((3, 0), np.int16)
    same(evaluate(build.reduce(op, leaf(x), (1,)))[0], np.full(3, UFUNCS[op].identity, np.int16))


@pytest.mark.parametrize("dtype", [d for d in NATIVE if d.kind != "b"], ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 100, 3000])
def test_iota_fills_as_arange(dtype: np.dtype[Any], count: int) -> None:
    start, step = (3, 2) if dtype.kind in "iu" else (0.3, 0.7)
    first = dtype.type(start)
    delta = dtype.type(first + dtype.type(step)) - first
    [got] = evaluate(Node(o.IOTA, (), (first, delta), dtype, (count,)))
    if dtype.kind in "iu":
        expected = (np.arange(count) * 2 + 3).astype(dtype)
    elif dtype.char == "e":
        # numpy.arange keeps its step in single precision, which an IOTA of halves cannot say: the front end casts one of singles.
        expected = (np.arange(count, dtype="f4") * np.float32(delta) + np.float32(first)).astype(dtype)
    else:
        expected = np.arange(start, start + (count - 0.5) * step, step, dtype=dtype)[:count]
    same(got, expected)


def test_iota_of_bool() -> None:
    [got] = evaluate(Node(o.IOTA, (), (np.False_, np.True_), BOOL, (2,)))
    same(got, np.array([False, True]))


X = np.arange(60).reshape(3, 4, 5)
REGIONS = [
    (((0, 1), (0, 1), (0, 1)), (3, 4, 5)),
    (((1, 1), (2, 1), (3, 1)), (2, 1, 2)),
    (((2, -1), (3, -1), (4, -1)), (3, 4, 5)),
    (((2, -2), (3, -2), (4, -3)), (2, 2, 2)),
    (((0, 2), (1, 2), (1, 3)), (2, 2, 2)),
    (((2, -1), (0, 1), (2, -1)), (0, 4, 1)),
    (((1, 5), (2, -7), (0, -3)), (1, 1, 1)),
    (((0, 1), (0, 1), (0, 1)), (1, 2, 5)),
]


def places(axes: Any, lengths: Any) -> Any:
    return np.ix_(*[[start + k * step for k in range(n)] for (start, step), n in zip(axes, lengths, strict=True)])


@pytest.mark.parametrize(("axes", "lengths"), REGIONS)
def test_slice_and_store(axes: Any, lengths: Any) -> None:
    at = places(axes, lengths)
    same(evaluate(Node(o.SLICE, (leaf(X),), axes, X.dtype, lengths))[0], X[at])
    expected = X.copy()
    expected[at] = -1 - np.arange(expected[at].size).reshape(lengths)
    value = leaf(expected[at].reshape(lengths))
    same(evaluate(Node(o.STORE, (leaf(X), value), axes, X.dtype, X.shape))[0], expected)
    temporary = build.elementwise(o.NEGATIVE, X.dtype, leaf(-X))
    same(evaluate(Node(o.STORE, (temporary, value), axes, X.dtype, X.shape))[0], expected)


def test_movement() -> None:
    x = leaf(X)
    got = evaluate(
        build.reshape(x, (12, 5)),
        build.permute(x, (2, 0, 1)),
        build.reshape(build.permute(x, (2, 0, 1)), (60,)),
        build.expand(build.reshape(x, (3, 1, 4, 5)), (3, 2, 4, 5)),
        build.expand(leaf(7.5), (70, 70)),
        build.expand(leaf(np.arange(70)), (70, 70)),
        build.expand(build.const(3, np.dtype("i2")), (2, 2)),
        build.contiguous(build.permute(x, (1, 0, 2))),
    )
    expected = [
        X.reshape(12, 5),
        X.transpose(2, 0, 1),
        X.transpose(2, 0, 1).ravel(),
        np.broadcast_to(X[:, None], (3, 2, 4, 5)),
        np.full((70, 70), 7.5),
        np.tile(np.arange(70), (70, 1)),
        np.full((2, 2), 3, "i2"),
        X.transpose(1, 0, 2),
    ]
    for value, of in zip(got, expected, strict=True):
        same(value, of)


def test_pad() -> None:
    fill = build.const(9, X.dtype)
    got = evaluate(build.pad(leaf(X), (1, 0, 2), (5, 4, 8), fill))
    same(got[0], np.pad(X, [(1, 1), (0, 0), (2, 1)], constant_values=9))


def test_concat() -> None:
    x = leaf(X)
    same(evaluate(build.concat([x, x, leaf(X[:, :0])], 1))[0], np.concatenate([X, X], 1))
    flipped = build.permute(x, (2, 1, 0))
    same(evaluate(build.concat([flipped, flipped], 0))[0], np.concatenate([X.T, X.T]))


@pytest.mark.parametrize("indices", [([0, 2, -1],), ([[0, 1], [-1, -3]], [[0, 1], [2, -4]]), (1,), (2, 3), (2, -1, 4), ([],)])
def test_gather(indices: Any) -> None:
    index = [np.array(i, np.int64) for i in indices]
    same(evaluate(build.gather(leaf(X), *map(leaf, index)))[0], X[tuple(index)])


@pytest.mark.parametrize("index", [3, -4, [0, 3], [[-4]]])
def test_gather_out_of_range_names_its_entry(index: Any) -> None:
    x, i = leaf(X), leaf(np.array(index, np.int64))
    node = build.gather(build.elementwise(o.NEGATIVE, X.dtype, x), i)
    with pytest.raises(ExecutionError) as caught:
        evaluate(build.elementwise(o.NEGATIVE, X.dtype, node), debug=False)
    assert type(caught.value.error) is IndexError and "out of bounds for axis 0 with size 3" in str(caught.value.error)
    assert caught.value.entry == 3


M = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("name", "params", "arrays", "expected"),
    [
        ("matmul", (), (M, M.T), M @ M.T),
        ("dot", (), (M[0], M[1]), np.dot(M[0], M[1])),
        ("tensordot", (((1,), (1,)),), (M, M), np.tensordot(M, M, ((1,), (1,)))),
        ("einsum", ("ij,kj->ik",), (M, M), M @ M.T),
        ("einsum", ("ij->ji",), (M,), M.T),
        ("numpy", ("sort", (("axis", 0),)), (-M,), np.sort(-M, axis=0)),
        ("numpy", ("linalg.norm",), (M,), np.linalg.norm(M)),
        ("ufunc:heaviside", (), (M - 5, np.array(0.5)), np.heaviside(M - 5, 0.5)),
    ],
)
def test_library(name: str, params: Any, arrays: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    node = build.call(name, params, [leaf(a) for a in arrays], expected.dtype, expected.shape)
    [got] = evaluate(node)
    np.testing.assert_allclose(got, expected)


def test_library_takes_computed_scalars() -> None:
    two = build.elementwise(o.ADD, np.dtype(float), build.const(1.0, np.dtype(float)), leaf(1.0))
    same(evaluate(build.call("ufunc:heaviside", (), [two, two], two.dtype, ()))[0], 1.0)


def test_library_with_several_outputs() -> None:
    x = leaf(np.array([1.5, -2.25]))
    whole = build.call("ufunc:modf", (), [x], x.dtype, x.shape)
    integral = build.output(whole, 1, x.dtype, x.shape)
    same(evaluate(integral)[0], np.modf([1.5, -2.25])[1])
    both = evaluate(integral, whole, build.elementwise(o.ADD, x.dtype, whole, integral))
    for got, expected in zip(both, ([1.0, -2.0], [0.5, -0.25], [1.5, -2.25]), strict=True):
        same(got, np.array(expected))


def test_library_result_is_checked_and_unknown_names_are_refused() -> None:
    x = leaf(M)
    with pytest.raises(ExecutionError) as caught:
        evaluate(build.call("numpy", ("sort",), [x], np.dtype("f4"), (3, 4)))
    assert "float64[3, 4] where float32[3, 4]" in str(caught.value.error)
    with pytest.raises(KeyError, match="frobnicate"):
        library.lookup("frobnicate")
    with pytest.raises(KeyError, match="ufunc:sort"):
        library.lookup("ufunc:sort")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_upper_halves_of_products(dtype: Any) -> None:
    top = 2 ** (8 * np.dtype(dtype).itemsize)
    values = [n % top for n in (0, 1, 2, 3, top - 1, top - 2, top // 2, top // 2 + 1, top // 3, 0xD2E7470EE14C6C93)]
    a, b = np.repeat(values, len(values)).astype(dtype), np.tile(np.array(values, dtype), len(values))
    expected = [int(x) * int(y) // top for x, y in zip(a, b, strict=True)]
    found = FUNCTIONS[o.MULTIPLY_HIGH](a, b)
    assert found.dtype == dtype and found.tolist() == expected
