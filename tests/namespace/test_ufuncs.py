"""Ufuncs against NumPy: every row of the table over every dtype, pairs of dtypes, weak scalars, keywords and methods."""

from __future__ import annotations

import operator

import numpy
import pytest

import lazynp
from lazynp.namespace.ufunc.table import ELSEWHERE, LOWERING
from tests.namespace.compare import DTYPES, FLOATS, check, table, values

ALL = {value.__name__: value for value in vars(numpy).values() if isinstance(value, numpy.ufunc)}
UNARY = sorted(name for name, value in ALL.items() if value.nin == 1 and name in LOWERING)
BINARY = sorted(name for name, value in ALL.items() if value.nin == 2 and name in LOWERING)

def ulps(name: str) -> int:
    return 4 if name not in _EXACT else 0


_EXACT = {
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "negative", "sign", "sqrt", "rint", "floor",
    "ceil", "trunc", "copysign", "nextafter", "spacing", "signbit", "isnan", "isinf", "isfinite", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal", "maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor",
    "invert", "left_shift", "right_shift", "bitwise_count", "gcd", "lcm", "conjugate", "positive", "square", "reciprocal", "fabs",
    "logical_and", "logical_or", "logical_xor", "logical_not", "heaviside", "divmod", "modf", "frexp", "ldexp", "deg2rad",
    "rad2deg", "degrees", "radians",
}  # fmt: skip


def test_every_numeric_ufunc_of_numpy_has_a_row() -> None:
    assert set(ALL) - set(LOWERING) == ELSEWHERE


def test_every_name_of_numpy_is_a_ufunc_of_ours() -> None:
    for name, value in vars(numpy).items():
        if isinstance(value, numpy.ufunc) and value.__name__ in LOWERING:
            assert isinstance(getattr(lazynp, name), lazynp.ufunc)


@pytest.mark.parametrize("name", UNARY)
def test_unary_over_all_dtypes(name: str) -> None:
    for dtype in DTYPES:
        x = values(dtype)
        check(lambda np, x=x: getattr(np, name)(np.array(x)), ulps(name), f"{name} {dtype}")


def pairs(dtype: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    x = values(dtype)
    return numpy.repeat(x, x.size), numpy.tile(x, x.size)


def operands(name: str, left: str, right: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    x, y = values(left), values(right)
    if name == "power" and numpy.dtype(left).kind in "iu" and numpy.dtype(right).kind in "iu":
        y = numpy.array([0, 1, 2, 3, 5], right)
    if name in ("left_shift", "right_shift"):
        y = numpy.array([0, 1, 2, 7], right)
    return numpy.repeat(x, y.size), numpy.tile(y, x.size)


@pytest.mark.parametrize("name", BINARY)
def test_binary_over_all_dtypes(name: str) -> None:
    for dtype in DTYPES:
        x, y = operands(name, dtype, dtype)
        check(lambda np, x=x, y=y: getattr(np, name)(np.array(x), np.array(y)), ulps(name), f"{name} {dtype}")


MIXED = [
    ("bool", "int8"), ("int8", "uint8"), ("int64", "uint64"), ("uint64", "int64"), ("int32", "float32"), ("float16", "int8"),
    ("uint8", "float64"), ("float32", "float64"), ("float64", "complex64"), ("complex64", "int16"), ("bool", "float16"),
]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_over_mixed_dtypes(name: str) -> None:
    for left, right in MIXED:
        x, y = operands(name, left, right)
        check(lambda np, x=x, y=y: getattr(np, name)(np.array(x), np.array(y)), ulps(name), f"{name} {left} {right}")


@pytest.mark.parametrize("name", BINARY)
def test_python_scalars_are_weak(name: str) -> None:
    for dtype in DTYPES:
        x = values(dtype)
        for scalar in (0, 1, 3, -1, 2.5, True, 1j, 300, 2**40):
            if name in ("left_shift", "right_shift") and scalar not in (0, 1, 3):
                continue
            note = f"{name} {dtype} {scalar!r}"
            check(lambda np, x=x, s=scalar: getattr(np, name)(np.array(x), s), ulps(name), note)
            if not (name == "power" and numpy.dtype(dtype).kind == "i" and isinstance(scalar, int)):
                check(lambda np, x=x, s=scalar: getattr(np, name)(s, np.array(x)), ulps(name), note + " reflected")


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "xor"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    function = getattr(operator, name)
    for dtype in DTYPES:
        x = values(dtype)
        y = numpy.roll(x, 1) if name != "pow" or x.dtype.kind not in "iu" else numpy.arange(x.size, dtype=dtype) % 4
        allowed = 4 if name == "pow" else 0
        check(lambda np, x=x, y=y: function(np.array(x), np.array(y)), allowed, f"{name} {dtype}")
        for scalar in (2, 0.5, -1, 1000, 2**70, 1j, True, numpy.int16(3), numpy.float32(2)):
            note = f"{name} {dtype} {scalar!r}"
            check(lambda np, x=x, s=scalar: function(np.array(x), s), allowed, note)
            check(lambda np, x=x, s=scalar: function(np.array(x)[2], s), allowed, note + " of an element")
            if name != "pow" or x.dtype.kind not in "iub":
                check(lambda np, x=x, s=scalar: function(s, np.array(x)), allowed, note + " reflected")


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift"])
def test_in_place_operators(name: str) -> None:
    function = getattr(operator, name)

    def through_view(np: object, x: numpy.ndarray, value: object) -> object:
        array = np.array(x)  # type: ignore[attr-defined]
        part = array[1:3]
        function(part, value)
        return array

    for dtype in DTYPES:
        x = values(dtype)
        for value in (2, 0.5, 1, 1000, True, 1j, numpy.float64(2), numpy.array([1, 2], "int8"), numpy.array([1.5, 2.5])):
            check(lambda np, x=x, v=value: function(np.array(x), v), 4, f"{name} {dtype} {value!r}")
            check(lambda np, x=x, v=value: through_view(np, x, v), 4, f"{name} {dtype} {value!r} through a view")


@pytest.mark.parametrize("exponent", [2, 0.5, -1, 0, 1, 3, 2.0, -1.0, -0.5, numpy.int64(2), True])
def test_scalar_power_as_numpy_special_cases_it(exponent: object) -> None:
    for dtype in DTYPES:
        x = numpy.abs(values(dtype)) if numpy.dtype(dtype).kind in "iu" else values(dtype)
        exact = 0 if exponent in (2, 0.5, -1) and type(exponent) in (int, float) else 4
        check(lambda np, x=x: np.array(x) ** exponent, exact, f"{dtype} ** {exponent!r}")
        check(lambda np, x=x: np.power(np.array(x), exponent), 4, f"power({dtype}, {exponent!r})")


A = numpy.arange(6.0).reshape(2, 3)

test_keywords_methods_and_errors = table(
    {"a": A, "i": numpy.arange(6).reshape(2, 3)},
    """
    np.add(a, 1, dtype='float32')
    ! np.add(a, 1, dtype='int64')
    np.add(a, 1, dtype='int64', casting='unsafe')
    np.add(i, 1, out=np.zeros((2, 3)))
    ! np.add(a, 1, out=np.zeros((2, 3), int))
    np.add(a, 1, out=np.zeros((2, 3), int), casting='unsafe')
    np.add(a, a, np.zeros((2, 3)))
    ! np.add(a, a, np.zeros((2, 2)))
    np.add(a, a, out=np.zeros((4, 2, 3)))
    np.add(a, 1, where=a > 2, out=np.full((2, 3), 9.0))
    np.add(a, 1, where=np.array([True, False, True]), out=np.full((2, 3), 9.0))
    np.sqrt(i, where=i > 2, out=np.full((2, 3), 9.0))
    ! np.add(a, 1, where=a, out=np.zeros((2, 3)))
    np.add(a, 1, order='F').flags.f_contiguous
    np.add(a.T, 1).flags.f_contiguous
    ! np.add(a, 1, order='Q')
    ! np.add(a, 1, casting='nonsense')
    ! np.add(a, 1, foo=3)
    ! np.add(a)
    ! np.add(a, a, a, a)
    ! np.add(a, 1, out=[1])
    np.divmod(a, 2, out=(np.zeros((2, 3)), np.zeros((2, 3))))
    np.modf(a / 4)
    np.frexp(a)
    np.frexp(np.float64(3.5))
    np.exp(a, signature='f->f')
    ! np.add(a, np.ones(4))
    np.add(a, np.ones((2, 1)))
    ! np.negative(np.array([True]))
    ! np.subtract(np.array([True]), np.array([True]))
    ! np.bitwise_and(a, 1)
    ! np.left_shift(a, 1)
    np.ldexp(a, i)
    ! np.sin('a')
    ! np.sin(None)
    np.sin(5)
    np.add(1, 2)
    np.add(1, 2.5)
    np.add([1, 2], [3, 4])
    np.add(np.array(5), np.array(6))
    np.add.outer([1, 2], [3.0, 4.0])
    np.multiply.outer(a, i)
    np.subtract.outer(a, 2)
    np.add.reduce(a)
    np.add.reduce(a, axis=None)
    np.add.reduce(a, axis=(0, 1), keepdims=True)
    np.subtract.reduce(a, axis=1)
    np.maximum.reduce(a, axis=1)
    ! np.maximum.reduce(np.zeros((0, 3)))
    np.maximum.reduce(np.zeros((3, 0)), axis=0)
    np.maximum.reduce(np.zeros((0, 3)), initial=-1)
    ! np.minimum.reduce(a, where=a > 2)
    np.minimum.reduce(a, where=a > 2, initial=7)
    np.logical_xor.reduce(a, axis=1)
    np.bitwise_or.reduce(i, axis=1)
    np.bitwise_and.reduce(np.zeros((0, 3), 'uint8'))
    np.hypot.reduce(a, axis=1)
    ! np.sin.reduce(a)
    np.add.accumulate(a, axis=1)
    np.maximum.accumulate(a[:, ::-1], axis=1)
    ! np.add.accumulate(np.float64(3))
    np.divide.accumulate(a + 1, axis=1)
    np.add.reduceat(a, [0, 1], axis=1)
    np.add.nin
    np.add.nout
    np.add.nargs
    np.add.identity
    np.add.ntypes
    np.add.types
    np.true_divide.__name__
    np.divmod.nout
    np.matmul.signature
    ! np.equal(a, 'x')
    a == 'x'
    a == None
    a != None
    a == [0.0, 1.0, 2.0]
    ! a < 'x'
    ! a + None
    ! a == np.ones(7)
    divmod(a, 2)
    divmod(7, a + 1)
    abs(-a)
    +a
    -a
    ~i
    ! ~a
    a @ a.T
    a @ np.ones(3)
    np.ones(2) @ a
    ! a @ 3
    pow(a, 2)
    a.astype('float16') + 70000.0
    ! i.astype('int8') + 200
    ! i.astype('uint8') - (-1)
    a + [1, 2, 3]
    a + (1, 2, 3)
    np.float64(3) + a
    a + np.float32(3)
    np.float32(3) * i
    np.sum(a) + 1
    1 + np.sum(a)
    np.sum(a) * np.sum(i)
    np.sum(i) // 2
    np.sum(i) ** 2
    -np.sum(i)
    np.sum(a) == 15
    abs(-np.sum(a))
    np.sum(i) << 2
    np.sum(i) & 3
    np.sum(a) % 4
    divmod(np.sum(a), 4)
    ! np.sum(a) @ np.sum(a)
    np.int8(100) + np.int8(100)
    np.float32(1) + 1e300
    """,
    ulps=1,
)


def test_at_adds_to_repeated_indices() -> None:
    def run(np: object) -> object:
        x = np.zeros(4)  # type: ignore[attr-defined]
        np.add.at(x, [0, 0, 2], 1.5)  # type: ignore[attr-defined]
        return x

    check(run)


def test_out_is_returned_itself_and_views_see_it() -> None:
    x, out = lazynp.arange(3.0), lazynp.zeros(3)
    part = out[1:]
    assert lazynp.add(x, 1, out=out) is out
    assert part.tolist() == [2.0, 3.0]


def test_foreign_out_is_written_before_the_call_returns() -> None:
    out = numpy.zeros(3)
    assert lazynp.add(lazynp.arange(3.0), 1, out=out) is out
    assert out.tolist() == [1.0, 2.0, 3.0]


def test_expressions_recorded_before_an_in_place_operation_keep_the_old_value() -> None:
    x = lazynp.arange(3.0)
    y = x + 1
    x += 10
    assert y.tolist() == [1.0, 2.0, 3.0]
    assert x.tolist() == [10.0, 11.0, 12.0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_object_operands_go_through_numpy(dtype: str) -> None:
    check(lambda np: np.add(np.array([1, 2], dtype), numpy.array([1, 2], object)))
