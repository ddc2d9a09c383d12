"""The table of operations: what it says is what NumPy does, every backend's table covers it, and nobody else keeps such a fact."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import lazynp
from lazynp.backends.cuda import scalars as cuda
from lazynp.backends.llvm import mathlib
from lazynp.backends.llvm import scalars as llvm
from lazynp.backends.numpy.operations import SPECIAL, UFUNCS
from lazynp.backends.numpy.source import WRITERS
from lazynp.backends.special import FUNCTIONS
from lazynp.graph import op as o
from lazynp.graph.op import Kind, Op
from tests.backends.llvm.test_operations import extremes, pairs
from tests.codegen.engines import bits

OPS: Final = [op for op in vars(o).values() if isinstance(op, Op)]
LOOPS: Final = {**UFUNCS, **SPECIAL}
ELEMENTWISE: Final = [op for op in OPS if op.kind is Kind.ELEMENTWISE]
DTYPES: Final = [np.dtype(c) for c in "?bBhHiIlLefdFD"]
ROOT: Final = Path(lazynp.__file__).parent


def numbers(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers at which something might differ; the parts of complex ones are these."""
    if dtype.kind != "c":
        return extremes(dtype)
    real, imag = pairs(extremes(np.dtype(f"f{dtype.itemsize // 2}")))
    found = np.empty(len(real), dtype)
    found.real, found.imag = real, imag
    return found[::7]


# What a row says ----------------------------------------------------------------------------------------------------------


def test_names_find_their_operations() -> None:
    assert [o.by_name(op.name) for op in OPS] == OPS
    assert all(vars(o)[op.name.upper()] is op for op in OPS)


@pytest.mark.parametrize("op", UFUNCS, ids=repr)
def test_arity_and_kinds_are_those_of_the_ufunc(op: Op) -> None:
    ufunc = UFUNCS[op]
    assert op.arity == ufunc.nin
    assert set(op.kinds) == {d.kind for d in DTYPES if any(d.char == np.dtype(loop[0]).char for loop in ufunc.types)}


@pytest.mark.parametrize("op", UFUNCS, ids=repr)
def test_predicates_give_truth_values(op: Op) -> None:
    """Of numbers: what an operation on truth values gives says nothing."""
    results = {loop[-1] for loop in UFUNCS[op].types if loop[0] in "BHILefdFD"}
    assert op.predicate == (results == {"?"})
    assert (op in o.COMPARISONS) == (op.predicate and op.arity == 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")
def test_what_commutes_does_to_the_bit(dtype: np.dtype[Any]) -> None:
    """All NaNs are one here: of two, most processors give the first."""
    x, y = pairs(numbers(dtype))
    for op in ELEMENTWISE:
        if op.arity == 2 and op.commutes and dtype.kind in op.kinds:
            result = LOOPS[op](x, y)
            if result.dtype.kind in op.commutes:
                assert bits(result) == bits(LOOPS[op](y, x)), op


def test_what_commutes_but_for_some_bits_is_not_said_to() -> None:
    """Of two zeros NumPy's extrema give the second."""
    zero = np.array([0.0])
    for op in (o.MAXIMUM, o.MINIMUM, o.FMAX, o.FMIN):
        assert bits(UFUNCS[op](zero, -zero)) != bits(UFUNCS[op](-zero, zero))
        assert "f" not in op.commutes and "c" not in op.commutes
    assert "c" not in o.MULTIPLY.commutes  # where its parts are fused, one of two products is rounded


@pytest.mark.parametrize("op", sorted(o.COMBINING, key=repr), ids=repr)
def test_identities_change_nothing(op: Op) -> None:
    for dtype in DTYPES:
        if dtype.kind not in op.kinds or (dtype.kind == "c" and op not in (o.ADD, o.MULTIPLY)):
            continue
        x = numbers(dtype)
        x = x[np.isfinite(x)] if dtype.kind == "c" else x
        identity = dtype.type(op.identity(dtype))
        np.testing.assert_array_equal(UFUNCS[op](identity, x), x)
        np.testing.assert_array_equal(UFUNCS[op](x, identity), x)


def test_what_numpy_gives_an_identity_combines() -> None:
    with pytest.raises(TypeError, match="combines nothing"):
        o.SUBTRACT.identity(np.dtype(float))
    for op in o.COMBINING:
        if UFUNCS[op].identity is not None:
            assert op.identity(np.dtype(int)) == UFUNCS[op].identity


def test_names_in_c_are_known_to_the_c_library() -> None:
    for op in OPS:
        if op.c_name:
            assert mathlib.address(f"lzc_{op.c_name}"), op


def test_special_functions_are_of_single_and_double_precision() -> None:
    assert {op.name for op in o.SPECIAL} == set(FUNCTIONS)
    for op in o.SPECIAL:
        assert [d.char for d in DTYPES if op.takes(d)] == ["f", "d"] and op.arity == 1


# The tables of the backends ------------------------------------------------------------------------------------------------

# What kernels leave to the NumPy tier.
LEFT_BY_LLVM: Final = frozenset([o.NEXTAFTER, o.SPACING, o.LDEXP, o.LOGADDEXP, o.LOGADDEXP2, o.GCD, o.LCM])
LEFT: Final = frozenset([o.CONJUGATE])  # of real numbers, which are their own
LEFT_OF_INTEGERS: Final = frozenset([o.POWER])
COMPLEX_ON_CUDA: Final = o.COMPARISONS | {
    o.ADD, o.SUBTRACT, o.MULTIPLY, o.DIVIDE, o.NEGATIVE, o.CONJUGATE, o.ABSOLUTE, o.EXP, o.ISNAN, o.ISINF, o.ISFINITE, o.REAL, o.IMAG,
    o.CAST, o.BITCAST, o.WHERE, o.LOG, o.LOG2, o.LOG10, o.SQRT, o.SIN, o.COS, o.TAN, o.SINH, o.COSH, o.TANH,
    o.ARCSIN, o.ARCCOS, o.ARCTAN, o.ARCSINH, o.ARCCOSH, o.ARCTANH, o.POWER, o.EXP2, o.EXPM1, o.LOG1P, o.SIGN, o.RINT,
}  # fmt: skip


def result_of(op: Op, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if op is o.COMPLEX and dtype.char in "fd":
        return np.dtype(f"c{2 * dtype.itemsize}")
    if op in (o.REAL, o.IMAG, o.ABSOLUTE) and dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return np.dtype(bool) if op.predicate else np.dtype("u1") if op is o.BITWISE_COUNT else dtype


def sources_of(op: Op, dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    assert op.arity is not None
    return [dtype, np.dtype("i4")] if op is o.LDEXP else [dtype] * (2 if op is o.WHERE else op.arity)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tables_of_kernels_are_complete(dtype: np.dtype[Any]) -> None:
    """Each operation on each dtype it is defined for can be written, but for what is listed; and nothing else can."""
    left = LEFT | (LEFT_OF_INTEGERS if dtype.kind in "iu" else set()) | ({o.BITCAST} if dtype.kind == "b" else set())
    for op in ELEMENTWISE:
        able = {
            "llvm": llvm.supported(op, result_of(op, dtype), sources_of(op, dtype)),
            "cuda": cuda.supported(op, result_of(op, dtype), sources_of(op, dtype)),
        }
        defined = op.takes(dtype)
        if dtype.kind == "c":
            wanted = {"llvm": op in (o.WHERE, o.BITCAST), "cuda": defined and op in COMPLEX_ON_CUDA}
        elif op is o.COMPLEX:
            wanted = {"llvm": False, "cuda": defined and dtype.char != "e"}
        else:
            wanted = {"llvm": defined and op not in left | LEFT_BY_LLVM, "cuda": defined and op not in left}
        assert able == wanted, (op, dtype)


def test_every_operation_has_a_row_in_the_numpy_tier() -> None:
    assert set(WRITERS) == set(OPS)


# Nobody else -----------------------------------------------------------------------------------------------------------------

# ``tests/test_house.py`` has the groups of operations that are none.


def test_no_other_module_says_what_a_function_is_called_in_c() -> None:
    """But for those that have their text for other dtypes: fmod, fabs, floor, ceil and trunc of CUDA, and its ldexp."""
    called = {op.name.upper(): op.c_name for op in OPS if op.c_name and op.c_name != op.name}
    for path in (ROOT / "backends").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    operation = key.attr if isinstance(key, ast.Attribute) else ""
                    text = value.value if isinstance(value, ast.Constant) else None
                    assert text is None or text != called.get(operation), (path, operation)
