"""Complex numbers inside kernels: NumPy's values, parts and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_features__

import lazynp
from lazynp.backends.cuda import complex as rows
from lazynp.backends.cuda import complex_functions, render, scalars
from lazynp.graph import build, report
from lazynp.graph import op as o
from lazynp.graph.op import Op
from tests.backends.llvm.test_operations import BOOL, FLOATS, INTEGERS, extremes, pairs
from tests.codegen.engines import Array, first_difference, interpreted, leaf
from tests.cuda import nvrtc
from tests.cuda.host import machine, on_host
from tests.cuda.rendered import compiled, plan_of
from tests.cuda.test_errors import noted, reported

COMPLEX = [np.dtype("F"), np.dtype("D")]
FUSED = __cpu_features__["FMA3"]  # what NumPy multiplies complex numbers with
COMPOSED = [o.EXP2, o.EXPM1, o.LOG1P, o.POWER]
FUNCTIONS = [o.by_name(name) for name in complex_functions.DEFINITIONS]
SOME = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-30, -3e7, np.inf, -np.inf, np.nan]


def values(dtype: np.dtype) -> Array:
    real, imag = pairs(np.array(SOME, rows.part_of(dtype)))
    found = np.empty(len(real), dtype)
    found.real, found.imag = real, imag
    return found


def result(op: Op, dtype: np.dtype) -> np.dtype:
    if op in o.COMPARISONS or op in (o.ISNAN, o.ISINF, o.ISFINITE):
        return BOOL
    return rows.part_of(dtype) if op in (o.REAL, o.IMAG, o.ABSOLUTE) else dtype


def arguments(op: Op, dtype: np.dtype) -> list[Array]:
    if op is o.COMPLEX:
        return list(pairs(extremes(rows.part_of(dtype))))
    if op is o.POWER:  # of -3e7 turns the last digit of the logarithm says where the number is, and the sign of an infinity
        base, exponent = pairs(values(dtype))
        return [base, np.where(np.maximum(np.abs(exponent.real), np.abs(exponent.imag)) == 3e7, dtype.type(-7.5 + 2j), exponent)]
    binary = op in o.COMPARISONS or op in (o.ADD, o.SUBTRACT, o.MULTIPLY, o.DIVIDE)
    return list(pairs(values(dtype))) if binary else [values(dtype)]


def lengthened(op: Op, arrays: list[Array]) -> Array | float:
    """What an error of the logarithm grows by until it is one of the power."""
    if op is not o.POWER:
        return 1.0
    with np.errstate(all="ignore"):
        base, exponent = [a.astype(np.complex128) for a in arrays]
        return np.maximum(np.nan_to_num(np.abs(exponent * np.log(base)), nan=1, posinf=1), 1)


def close(got: Array, expected: Array, dtype: np.dtype, grown: Array | float = 1.0) -> None:
    """Each part is the same infinity or NaN, or as near as the operands' sizes let a product be computed in two ways."""
    parts = np.abs(np.array([expected.real, expected.imag], np.float64))
    size = np.maximum(np.where(np.isfinite(parts), parts, 0).max(axis=0), 1e-37) * grown
    for a, b in ((got.real, expected.real), (got.imag, expected.imag)):
        finite = np.isfinite(b)
        assert np.array_equal(a[~finite], b[~finite], equal_nan=True)
        assert (np.abs(a[finite] - b[finite]) <= 4 * np.finfo(dtype).eps * size[finite]).all()


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("op", rows.ROWS, ids=repr)
def test_operations(op: Op, dtype: np.dtype) -> None:
    arrays = arguments(op, dtype)
    node = build.elementwise(op, result(op, dtype), *[leaf(array) for array in arrays])
    (got,), (expected,) = compiled([node], library=False), interpreted([node])
    if op in (o.DIVIDE, o.EXP, o.SIGN, *FUNCTIONS, *COMPOSED) or (op is o.MULTIPLY and not FUSED):
        close(got, expected, dtype, lengthened(op, arrays))
    elif op is o.ABSOLUTE:
        np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(dtype).eps)
    else:
        assert not first_difference(got, expected)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_conversions(dtype: np.dtype) -> None:
    for target in (BOOL, *INTEGERS, *FLOATS, *COMPLEX):
        for x, to in ((values(dtype), target), (extremes(target) if target.kind != "c" else values(target), dtype)):
            if x.dtype == to:
                continue
            (got,) = compiled([build.cast(leaf(x), to)], library=False)
            with np.errstate(all="ignore"):
                expected = np.repeat(x.real if to.kind not in "bc" else x, 2)[::2].astype(to)
            assert not first_difference(got, expected), f"{x.dtype} to {to}"


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("op", [op for op in rows.ROWS if op not in (o.COMPLEX, o.REAL, o.IMAG, o.EXP)], ids=repr)
def test_errors(op: Op, dtype: np.dtype) -> None:
    arrays = arguments(op, dtype)
    got = noted(build.elementwise(op, result(op, dtype), *[leaf(array) for array in arrays]), len(arrays[0]))
    expected = reported(getattr(np, op.name), *arrays)
    missed = np.flatnonzero(expected & ~got)
    assert not len(missed), [(got[k], expected[k], *[a[k] for a in arrays]) for k in missed[:5]]


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("shape", [(5, 9), (3, 3000), (40, 7, 20), (50_000,)], ids=str)
def test_sums_in_programs(dtype: np.dtype, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x = (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    node = build.elementwise(o.MULTIPLY, dtype, leaf(x), build.elementwise(o.CONJUGATE, dtype, leaf(x)))
    total = build.reduce(o.ADD, node, (len(shape) - 1,))
    (got,) = compiled([total])
    np.testing.assert_allclose(got, (x * x.conj()).sum(axis=-1), rtol=1e-5 if dtype.char == "F" else 1e-13)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("op", FUNCTIONS, ids=repr)
def test_functions_of_ordinary_numbers(op: Op, dtype: np.dtype) -> None:
    """Of numbers of all sizes, some of them next to the unit circle and the axes: the result is off by little of its size."""
    random = np.random.default_rng(0)
    sizes, angles = np.exp(random.uniform(-3, 3, 4000)), random.uniform(-np.pi, np.pi, 4000)
    sizes[:1000] = 1 + random.standard_normal(1000) * 10.0 ** random.uniform(-16, -1, 1000)
    angles[1000:1500] = np.round(angles[1000:1500] * 2 / np.pi) * np.pi / 2 + random.standard_normal(500) * 1e-9
    x = (sizes * np.exp(1j * angles)).astype(dtype)
    (got,), (expected,) = compiled([build.elementwise(op, dtype, leaf(x))], library=False), [getattr(np, op.name)(x)]
    assert (np.abs(got - expected) <= 8 * np.finfo(dtype).eps * np.abs(expected)).all()


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("op", COMPOSED[:3], ids=repr)
def test_composed_functions_have_numpys_digits(op: Op, dtype: np.dtype) -> None:
    """Next to zero too, where NumPy's formulas lose theirs: each part is as near to NumPy's as functions of real numbers let it be."""
    random = np.random.default_rng(1)
    x = (random.standard_normal(4000) + 1j * random.standard_normal(4000)) * 10.0 ** random.uniform(-12, 0.5, 4000)
    x = x.astype(dtype)
    (got,), (expected,) = compiled([build.elementwise(op, dtype, leaf(x))], library=False), [getattr(np, op.name)(x)]
    with np.errstate(all="ignore"):
        parts = [(a == b) | (np.abs(a - b) <= 4 * np.finfo(dtype).eps * np.abs(expected)) for a, b in zip(
            (got.real, got.imag), (expected.real, expected.imag), strict=True)]
    assert np.all(parts)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_powers_of_small_whole_exponents_have_numpys_bits(dtype: np.dtype) -> None:
    random = np.random.default_rng(0)
    x = (random.standard_normal(300) + 1j * random.standard_normal(300)).astype(dtype)
    base, exponent = [a.ravel() for a in np.broadcast_arrays(x, np.array([*range(-12, 13), -31, 50, 64], dtype)[:, None])]
    node = build.elementwise(o.POWER, dtype, leaf(base.copy()), leaf(exponent.copy()))
    assert not first_difference(compiled([node], library=False)[0], interpreted([node])[0])


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_powers_of_other_exponents(dtype: np.dtype) -> None:
    random = np.random.default_rng(0)
    base, exponent = ((random.standard_normal(4000) + 1j * random.standard_normal(4000)).astype(dtype) for _ in range(2))
    exponent *= dtype.type(3)
    exponent.imag[:1000] = 0
    (got,) = compiled([build.elementwise(o.POWER, dtype, leaf(base), leaf(exponent))], library=False)
    close(got, np.power(base, exponent), dtype, lengthened(o.POWER, [base, exponent]))


def test_functions_stay_on_the_device() -> None:
    x = np.exp(1j * np.linspace(-3, 3, 500)) * np.linspace(0.1, 4, 500)
    with machine(seed=0), lazynp.device("cuda"):
        for exponent in (3, -2, 0.5, 1.5 - 1j, x):
            report.reset()
            base = lazynp.asarray(x)
            for found in (base**exponent, lazynp.power(base, exponent), lazynp.float_power(base, exponent)):
                np.testing.assert_allclose(np.asarray(found * 2), x**exponent * 2, 1e-13)
            assert not on_host(), exponent
        for op in (*FUNCTIONS, *COMPOSED[:3]):
            report.reset()
            found = getattr(lazynp, op.name)(lazynp.asarray(x)) * 2
            np.testing.assert_allclose(np.asarray(found), getattr(np, op.name)(x) * 2, 1e-14)
            assert not on_host(), op
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
            assert np.asarray(lazynp.log(lazynp.asarray(x * 0)))[0].real == -np.inf


def test_bits() -> None:
    x = values(COMPLEX[0])
    for target in "lLd":
        (there,) = compiled([build.bitcast(leaf(x), np.dtype(target))], library=False)
        assert there.tobytes() == x.tobytes()
        (back,) = compiled([build.bitcast(leaf(x.view(target)), x.dtype)], library=False)
        assert back.tobytes() == x.tobytes()


def test_every_function_is_compiled_by_nvrtc() -> None:
    sources = []
    for dtype in COMPLEX:
        for op in (o.EXP, *FUNCTIONS, *COMPOSED):
            node = build.elementwise(op, dtype, *[leaf(values(dtype)[:64]) for _ in range(op.arity)])
            (item,) = plan_of([node]).schedule.kernels
            sources.append(render.module([("k", item.code, False)]))
    for kernels in nvrtc.compile(sources, "90"):
        assert all(used.registers <= 128 and used.spill_stores == 0 for used in kernels.values()), kernels


def test_what_is_supported() -> None:
    for dtype in COMPLEX:
        for op in (o.MAXIMUM, o.MINIMUM, o.ARCTAN2, o.FLOOR, o.BITWISE_AND):
            assert not scalars.supported(op, dtype, [dtype, dtype])
        assert scalars.supported(o.WHERE, dtype, [dtype, dtype])




@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_products_and_quotients_have_numpys_bits(dtype: np.dtype) -> None:
    random = np.random.default_rng(0)
    x, y = ((random.standard_normal(1000) + 1j * random.standard_normal(1000)).astype(dtype) for _ in range(2))
    ops = [o.DIVIDE, o.MULTIPLY] if FUSED else [o.DIVIDE]
    nodes = [build.elementwise(op, dtype, leaf(x), leaf(y)) for op in ops]
    for op, got, expected in zip(ops, compiled(nodes, library=False), interpreted(nodes), strict=True):
        assert not first_difference(got, expected), op
