"""Every operation that has an undefined case somewhere gives NumPy's value: all pairs of int8, all float16, the extremes of the rest."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np
import pytest

from lazynp.backends.llvm import scalars
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.op import Kind, Op
from tests.codegen.engines import Array, compiled, first_difference, interpreted, leaf

BOOL = np.dtype(np.bool_)
INTEGERS = [np.dtype(c) for c in "bBhHiIlL"]
FLOATS = [np.dtype(c) for c in "efd"]
COMPARISONS = [o.LESS, o.LESS_EQUAL, o.GREATER, o.GREATER_EQUAL, o.EQUAL, o.NOT_EQUAL]
ARITHMETIC = [o.ADD, o.SUBTRACT, o.MULTIPLY, o.FLOOR_DIVIDE, o.REMAINDER, o.FMOD, o.MINIMUM, o.MAXIMUM, o.FMIN, o.FMAX]
BITS = [o.BITWISE_AND, o.BITWISE_OR, o.BITWISE_XOR]
SHIFTS = [o.LEFT_SHIFT, o.RIGHT_SHIFT]
UNSIGNED = [o.MULTIPLY_HIGH]
PREDICATES = [o.SIGNBIT, o.ISNAN, o.ISINF, o.ISFINITE]
ROUNDINGS = [o.FLOOR, o.CEIL, o.TRUNC, o.RINT]


def result(op: Op, dtype: np.dtype) -> np.dtype:
    if op in o.COMPARISONS or op in PREDICATES:
        return BOOL
    return np.dtype(np.uint8) if op is o.BITWISE_COUNT else dtype


def check(ops: Sequence[Op], *arrays: Array) -> None:
    """All of ``ops`` on ``arrays``, in one kernel without NumPy's help, give NumPy's bits."""
    nodes = [leaf(array) for array in arrays]
    wanted = [build.elementwise(op, result(op, nodes[0].dtype), *nodes) for op in ops]
    for op, got, expected in zip(ops, compiled(wanted, library=False), interpreted(wanted), strict=True):
        difference = first_difference(got, expected)
        assert not difference, f"{op.name} of {', '.join(str(a.dtype) for a in arrays)}: {difference}"


def pairs(values: Array) -> tuple[Array, Array]:
    return np.repeat(values, len(values)), np.tile(values, len(values))


def halves() -> Array:
    return np.arange(65536, dtype=np.uint16).view(np.float16)


def extremes(dtype: np.dtype) -> Array:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 100, info.max, info.max - 1, info.max // 2, info.max // 2 + 1]
        if dtype.kind == "i":
            near += [-1, -2, -3, -7, -8, -100, info.min, info.min + 1, info.min // 2]
        return np.array([n for n in near if info.min <= n <= info.max], dtype)
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny, info.eps, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 1e4]
    positive += [info.max, np.inf, np.nan]
    return np.array([*positive, *[-x for x in positive]], dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_pairs_of_bytes(dtype: type) -> None:
    info = np.iinfo(dtype)
    a, b = pairs(np.arange(info.min, info.max + 1).astype(dtype))
    check([*ARITHMETIC, *BITS, *SHIFTS, *COMPARISONS], a, b)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_bytes(dtype: type) -> None:
    info = np.iinfo(dtype)
    check([o.NEGATIVE, o.ABSOLUTE, o.SIGN, o.INVERT, o.BITWISE_COUNT], np.arange(info.min, info.max + 1).astype(dtype))


def test_all_pairs_of_bools() -> None:
    ops = [o.ADD, o.MULTIPLY, o.MINIMUM, o.MAXIMUM, o.FMIN, o.FMAX, *BITS, *COMPARISONS]
    check(ops, *pairs(np.array([False, True])))
    check([o.INVERT, o.ABSOLUTE], np.array([False, True]))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_extremes_of_integers(dtype: np.dtype) -> None:
    check([*ARITHMETIC, *BITS, *SHIFTS, *COMPARISONS, *(UNSIGNED if dtype.kind == "u" else [])], *pairs(extremes(dtype)))
    check([o.NEGATIVE, o.ABSOLUTE, o.SIGN, o.INVERT, o.BITWISE_COUNT], extremes(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_of_floats(dtype: np.dtype) -> None:
    check([*ARITHMETIC, o.DIVIDE, o.COPYSIGN, *COMPARISONS], *pairs(extremes(dtype)))
    check([o.NEGATIVE, o.ABSOLUTE, o.SIGN, o.SQRT, *ROUNDINGS, *PREDICATES], extremes(dtype))


def test_all_halves() -> None:
    check([o.NEGATIVE, o.ABSOLUTE, o.SIGN, o.SQRT, *ROUNDINGS, *PREDICATES], halves())


@pytest.mark.parametrize("other", [0.0, -0.0, 1.0, -1.0, 0.1, -3.0, 6e-8, 65504.0, np.inf, -np.inf, np.nan])
def test_all_halves_against(other: float) -> None:
    x = halves()
    y = np.full_like(x, other)
    check([*ARITHMETIC, o.DIVIDE, o.COPYSIGN, *COMPARISONS], x, y)
    check([*ARITHMETIC, o.DIVIDE, o.COPYSIGN, *COMPARISONS], y, x)


@pytest.mark.slow
@pytest.mark.parametrize("op", scalars.MATH, ids=lambda op: op.name)
def test_math_functions_of_all_halves(op: Op) -> None:
    """Computed in single precision and rounded once, as NumPy does: at most the last bit differs."""
    x = leaf(halves())
    two = op in (o.ARCTAN2, o.HYPOT, o.POWER)
    node = build.elementwise(op, x.dtype, x, *([leaf(np.full(65536, 1.5, np.float16))] if two else []))
    (got,), (expected,) = compiled([node], library=False), interpreted([node])
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    number = ~np.isnan(got)
    steps = ordered(got[number]) - ordered(expected[number])
    assert np.abs(steps).max() <= 1


def ordered(x: Array) -> Array:
    """Floats as integers, one apart where the floats are neighbours."""
    whole = x.view(np.int16).astype(np.int32)
    return np.where(whole < 0, -32768 - whole, whole)


# Conversions -----------------------------------------------------------------------------------------------------------


def conversion_values(dtype: np.dtype) -> Array:
    """Extremes, and for floats the borders of every integer type and what lies beside them."""
    values = extremes(dtype)
    if dtype.kind != "f":
        return values
    borders = [float(s * 2**k) for k in (7, 8, 15, 16, 24, 31, 32, 52, 53, 62, 63, 64) for s in (1, -1)]
    with np.errstate(over="ignore"):
        exact = np.array([*borders, 0.1, -0.1, 254.9, 255.5, 127.9, -128.9, 65504.0, 65519.9, 65520.0], np.float64).astype(dtype)
        beside = [np.nextafter(exact, np.array(limit, dtype)) for limit in (np.inf, -np.inf)]
        below = exact[np.isfinite(exact)] - np.array(0.5, dtype)
    return np.concatenate([values, exact, *beside, below])


def representable(x: Array, target: np.dtype) -> Array:
    """Where the truncated value fits: elsewhere the language defines nothing, and NumPy gives what the processor does."""
    if x.dtype.kind != "f" or target.kind not in "iu":
        return np.ones(x.shape, bool)
    info = np.iinfo(target)
    whole = np.trunc(x.astype(np.float64))
    return (whole >= float(info.min)) & (whole < float(info.max) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("source", [BOOL, *INTEGERS, *FLOATS], ids=str)
def test_conversions_between_all_types(source: np.dtype) -> None:
    x = conversion_values(source)
    check_casts(x)


def test_conversions_of_all_halves() -> None:
    check_casts(halves())


def check_casts(x: Array) -> None:
    """The oracle converts element by element, over a stride: in a row, what NumPy makes of a number that does not fit depends on
    where in its vectors it stands."""
    targets = [t for t in (BOOL, *INTEGERS, *FLOATS) if t != x.dtype]
    wanted = [build.cast(leaf(x), t) for t in targets]
    for target, got in zip(targets, compiled(wanted, library=False), strict=True):
        with np.errstate(all="ignore"):
            expected = np.repeat(x, 2)[::2].astype(target)
        same = slice(None) if platform.machine() in ("x86_64", "AMD64") else representable(x, target)
        difference = first_difference(got[same], expected[same])
        assert not difference, f"{x.dtype} to {target}: {difference}: {x[same][got[same] != expected[same]]}"


@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_rounding_to_half_at_every_tie(source: type) -> None:
    """Between any two neighbouring halves: the middle, and the numbers just beside it."""
    x = halves()
    x = np.sort(x[np.isfinite(x)].astype(source))
    middle = (x[:-1] + x[1:]) / 2
    values = np.concatenate([middle, np.nextafter(middle, source(np.inf)), np.nextafter(middle, source(-np.inf))])
    node = build.cast(leaf(values), np.dtype(np.float16))
    difference = first_difference(compiled([node], library=False)[0], interpreted([node])[0])
    assert not difference


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_every_table_is_complete_for(dtype: np.dtype) -> None:
    """What these tests list for a type is what the target says it can do."""
    binary = [*ARITHMETIC, *COMPARISONS, *([o.DIVIDE, o.COPYSIGN] if dtype.kind == "f" else [*BITS, *SHIFTS])]
    binary += UNSIGNED if dtype.kind == "u" else []
    unary = [o.NEGATIVE, o.ABSOLUTE, o.SIGN]
    unary += [o.SQRT, *ROUNDINGS, *PREDICATES, *scalars.MATH] if dtype.kind == "f" else [o.INVERT, o.BITWISE_COUNT]
    tested = {*binary, *unary, o.WHERE}
    trivial = {*ROUNDINGS, *PREDICATES} if dtype.kind != "f" else set()  # of integers: the identity and constants
    able = {op for op in scalars.LOWERINGS if scalars.supported(op, result(op, dtype), [dtype])}
    # The special functions are not NumPy's: tests/backends/test_special.py has them.
    assert able - trivial <= tested | set(scalars.MATH) | o.SPECIAL


def test_all_that_is_said_to_be_supported_has_a_text() -> None:
    from lazynp.backends.llvm import supported

    written = {*scalars.LOWERINGS, o.CAST, o.BITCAST, o.WHERE}
    assert {op for op in o.ALL if op.kind is Kind.ELEMENTWISE and op not in written} == supported.WITHOUT
    named = {op for op in scalars.LOWERINGS if op.c_name}
    assert named - supported.INSTRUCTIONS == set(scalars.MATH)
