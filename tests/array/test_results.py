"""Numbers that are results: one law for every size, dtype and way to get one."""

from __future__ import annotations

import copy
import decimal
import fractions
import json
import math
import operator
import os
import pickle
import statistics
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.namespace.standard import namespace_of
from lazynp.values import config
from tests.array import chained

SIZES = {"few": 6, "at the limit": 786_432, "above it": 786_433}
DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda np, x: x[:6].sum(),
    "whole sum": lambda np, x: (x * 0 + x.dtype.type(1)).max(),
    "np.sum": lambda np, x: np.sum(x[:5] + x[:5]),
    "prod": lambda np, x: x[1:3].prod(),
    "max": lambda np, x: x.max(),
    "np.min": lambda np, x: np.min(x),
    "mean": lambda np, x: x.mean(),
    "std": lambda np, x: x[:4].std(),
    "var": lambda np, x: np.var(x[:4]),
    "argmax": lambda np, x: x.argmax(),
    "count_nonzero of pending": lambda np, x: (x + x).argmin(),
    "element": lambda np, x: x[3],
    "element from the end": lambda np, x: x[-1],
    "element of pending": lambda np, x: (x + x)[2],
    "element of a view": lambda np, x: x[::2][1],
    "element of a matrix": lambda np, x: x[:6].reshape(2, 3)[1, 2],
    "element without axes": lambda np, x: x[2:3].reshape(())[()],
    "flat": lambda np, x: x.flat[1],
    "iteration": lambda np, x: next(iter(x[1:4])),
    "iteration of flat": lambda np, x: next(iter(x.flat)),
    "dot": lambda np, x: np.dot(x[:4], x[:4]),
    "matmul": lambda np, x: x[:4] @ x[:4],
    "vdot": lambda np, x: np.vdot(x[:3], x[:3]),
    "trace": lambda np, x: np.trace(x[:4].reshape(2, 2)),
    "norm": lambda np, x: np.linalg.norm(x[:5].astype(float) if x.dtype.kind != "c" else x[:5]),
    "of a list": lambda np, x: np.sum([1.5, 2.5]),
    "of an operator": lambda np, x: x[1] + x[2],
    "of a mixed operator": lambda np, x: 2 * x[1],
    "of a chain": lambda np, x: -x[1] * x[2] + x[3] if x.dtype.kind in "fci" else x[1] * x[2] + x[3],
    "of a ufunc": lambda np, x: np.sqrt(x[4]),
    "of a ufunc of arrays": lambda np, x: np.add(x[1], x[2]),
    "copy": lambda np, x: copy.copy(x[3]),
    "real": lambda np, x: x[3].real,
    "method": lambda np, x: x[3].conj(),
    "key": lambda np, x: x[3][()],
}


def test_a_class_of_results_is_equal_to_numpys() -> None:
    for kind, ours in core.number_classes_of.items():
        assert ours is not kind and ours == kind and kind == ours and not ours != kind and not kind != ours  # noqa: SIM202
        assert hash(ours) == hash(kind) and ours in {kind} and {kind: 1}[ours] == 1 and {ours: 1}[kind] == 1
        assert ours not in {float, int, object} and {float: 1}.get(ours) is None and not ours == float  # noqa: E721, SIM201
        assert pickle.loads(pickle.dumps(ours)) is kind and numpy.dtype(ours) is numpy.dtype(kind) and issubclass(ours, kind)
        assert isinstance(ours, type) and repr(ours) == repr(kind)
    assert len(set(core.number_classes_of.values())) == len(core.number_classes_of)
    x = lazynp.arange(5)
    assert {numpy.int64: 1, numpy.float64: 2}[type(x.sum())] == 1 and type(x[1]) in {numpy.int64} and type(x.mean()) in (int, numpy.float64)


def array(np: Any, size: str, dtype: str) -> Any:
    return np.asarray(numpy.arange(SIZES[size]) % 7).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_one_law(size: str, dtype: str) -> None:
    ours, theirs = array(lazynp, size, dtype), array(numpy, size, dtype)
    with numpy.errstate(all="ignore"):
        for name, way in WAYS.items():
            found, wanted = way(lazynp, ours), way(numpy, theirs)
            kind = type(wanted)
            told = f"{name}: {found!r}, {wanted!r}"
            assert isinstance(found, kind) and found.__class__ is kind and found.dtype is wanted.dtype, told
            assert type(found) is core.number_classes_of[kind], told
            assert isinstance(found, float) == isinstance(wanted, float) and isinstance(found, complex) == isinstance(wanted, complex), told
            assert numpy.allclose(found, wanted, rtol=1e-3 if dtype == "float16" else 1e-5), told
            same(found, core.numpys_number(found))


def same(found: Any, plain: Any) -> None:
    """A result is to all who ask what NumPy's number is."""
    kind = type(plain)
    assert (repr(found), str(found), f"{found}", hash(found)) == (repr(plain), str(plain), f"{plain}", hash(plain))
    assert found == plain and plain == found and found in {plain: 1} and not (found != plain)  # noqa: SIM202
    assert type(pickle.loads(pickle.dumps(found))) is kind and pickle.dumps(found) == pickle.dumps(plain)
    assert copy.deepcopy([found])[0] is found and copy.copy(found) is found
    assert numpy.asarray(found).dtype == plain.dtype and numpy.array([found, found]).dtype == plain.dtype
    assert numpy.result_type(found, numpy.int8) == numpy.result_type(plain, numpy.int8)
    assert bytes(memoryview(found)) == bytes(memoryview(plain)) and found.tobytes() == plain.tobytes()
    assert type(found.item()) is type(plain.item()) and found.item() == plain.item()
    assert type(found).__name__ == kind.__name__ and type(found).__module__ == kind.__module__ and repr(type(found)) == repr(kind)
    assert complex(found) == complex(plain)
    if isinstance(plain, numpy.integer):
        assert operator.index(found) == operator.index(plain) and "%d %x" % (found, found) == "%d %x" % (plain, plain)  # noqa: UP031
        assert list(range(5))[found % 5] == int(plain) % 5 and f"{found:5d}" == f"{plain:5d}"
        with pytest.raises(TypeError):
            json.dumps(found)
    if isinstance(plain, numpy.number) and not isinstance(plain, numpy.complexfloating):
        assert (float(found), int(found), math.floor(found)) == (float(plain), int(plain), math.floor(plain))
        assert "%.2f" % found == "%.2f" % plain  # noqa: UP031
    if isinstance(plain, float):
        assert json.dumps({"a": [found], found: 1}) == json.dumps({"a": [plain], plain: 1})
        assert struct.pack("d", found) == struct.pack("d", plain)
        assert decimal.Decimal(found) == decimal.Decimal(plain) and fractions.Fraction(found) == fractions.Fraction(plain)
        assert statistics.mean([found, found]) == plain and math.fsum([found]) == plain and found.is_integer() == plain.is_integer()
        assert found.hex() == plain.hex() and round(found, 1) == round(plain, 1) and divmod(found, 2.0) == divmod(plain, 2.0)


@pytest.mark.parametrize("size", SIZES)
def test_truth_values_are_numpys_two(size: str) -> None:
    x = array(lazynp, size, "float64")
    assert (x >= 0).all() is numpy.True_ and (x > 7).any() is numpy.False_ and (x[3] == 3) is numpy.True_
    assert lazynp.isnan(x[1]) is numpy.False_


@pytest.mark.parametrize("size", SIZES)
def test_results_with_arrays_belong_to_lazynp(size: str) -> None:
    import array_api_compat

    x = array(lazynp, size, "float32")
    for found in (x.sum(), x.mean(), x[2], x[1] + x[2], x.argmax()):
        assert array_api_compat.array_namespace(found) is array_api_compat.array_namespace(found, x) is namespace_of(lazynp)
        assert found.__array_namespace__() is namespace_of(lazynp)
    assert array_api_compat.array_namespace((x > 1).any(), x) is namespace_of(lazynp)
    assert array_api_compat.array_namespace(numpy.float64(1)) is array_api_compat.array_namespace(numpy.ones(2))
    with pytest.raises(TypeError, match="Multiple namespaces"):
        array_api_compat.array_namespace(x, numpy.ones(2))


LOADED_FIRST = """
import scipy.stats, sklearn.linear_model
from scipy._lib._array_api import array_namespace
from sklearn.utils._array_api import get_namespace
import lazynp as np
x = np.arange(5.)
for result in (x.sum(), x[1], x.any(), x.mean(dtype="f4")):
    assert array_namespace(x, result).__name__ == "lazynp"
    with sklearn.config_context(array_api_dispatch=True):
        assert get_namespace(x, result)[0].__name__ == "lazynp"
assert array_namespace(x.sum(), x[1]).__name__ == "lazynp"
"""


def test_libraries_that_were_loaded_first_are_told_too() -> None:
    pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, "-c", LOADED_FIRST], env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__", "__lt__", "__eq__"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_numpys(dtype: str, name: str) -> None:
    function = getattr(operator, name)
    values = [0, 1, 2, 3, 7, 100, 127] if dtype in ("int8", "uint8") else [0, 1, 2, 3, 7, 1000, 30000]
    theirs = numpy.array(values).astype(dtype)
    ours = lazynp.array(values).astype(dtype)
    others = [2, 3.5, -1, True, 1e300, 5e-324, float("nan"), float("inf"), 2j]
    others += [numpy.float32(1.5), numpy.int64(3), numpy.uint8(200), 2**70, "a", None, [1, 2]]
    with numpy.errstate(all="ignore"):
        for k, a in enumerate(theirs):
            for j in range(len(values)):
                assert outcome(function, ours[k], ours[j]) == outcome(function, a, theirs[j])
            for other in others:
                assert outcome(function, ours[k], other) == outcome(function, a, other), (ours[k], other)
                assert outcome(function, other, ours[k]) == outcome(function, other, a), (other, ours[k])


def outcome(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    try:
        found = function(a, b)
    except Exception as error:
        return type(error), str(error)
    return found.__class__, repr(found)


def test_errors_are_told_as_numpys() -> None:
    x = lazynp.array([1e308, 0.0, 5e-324])
    i = lazynp.array([2**62, 0])
    functions = (lambda: x[0] * 10, lambda: x[0] / x[1], lambda: x[1] / x[1], lambda: i[0] * 4, lambda: i[0] // i[1], lambda: i[0] + i[0])
    for function in functions:
        with pytest.warns(RuntimeWarning):
            function()
    with numpy.errstate(under="raise"), pytest.raises(FloatingPointError):
        x[2] * 0.5


def test_another_process_reads_what_was_pickled() -> None:
    x = lazynp.arange(900_000.0)
    text = pickle.dumps([x.sum(), x[3], (x > 0).any(), x.argmax(), x.astype("f4").mean()]).hex()
    program = f"import sys, pickle; print(*map(type, pickle.loads(bytes.fromhex('{text}')))); print('lazynp' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()
    kinds = [numpy.float64, numpy.float64, numpy.bool, numpy.int64, numpy.float32]
    assert found == [" ".join(map(str, kinds)), "False"]


def test_numpys_own_numbers_are_as_they_were() -> None:
    assert type(numpy.float64(1) + 1) is numpy.float64 and type(numpy.arange(3.0).sum()) is numpy.float64
    x = lazynp.arange(3.0)
    assert type(numpy.float64(1) + x[1]) is core.number_classes_of[numpy.float64]
    assert type(numpy.arange(3.0) * x[1]) is numpy.ndarray and type(numpy.add(numpy.float64(2), 1)) is numpy.float64


def test_lists_of_results_are_arrays() -> None:
    x = lazynp.arange(6.0)
    i = lazynp.arange(6)
    for values, wanted in (
        ([x[1], x[2]], [1.0, 2.0]), ([x[1], 2, i[3]], [1.0, 2.0, 3.0]), ([i[1], 2], [1, 2]),
        ([[x[1], 2], [3.5, i[4]]], [[1.0, 2.0], [3.5, 4.0]]),
        ((i[1], i[2]), [1, 2]), ([i[1], x[2]], [1.0, 2.0]), ([x[1], 1j], [1.0, 1j]), ([x[1], True], [1.0, 1.0]),
    ):  # fmt: skip
        found, expected = lazynp.array(values), numpy.array(wanted)
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()
    assert lazynp.array([x[1], 2**70]).dtype == numpy.array([numpy.float64(1), 2**70]).dtype


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_variance_at_the_call_has_the_bits_of_one_that_waits(dtype: str) -> None:
    values = numpy.random.default_rng(7).random(1_000_000).astype(dtype)
    with config.override(numbers="wait"):
        wanted = [float(lazynp.asarray(values.copy()).std()), float(lazynp.asarray(values.copy()).var(ddof=1))]
    x = lazynp.asarray(values.copy())  # which nobody else has
    found = [x.std(), x.var(ddof=1)]
    assert found == wanted and [type(s) == numpy.dtype(dtype).type for s in found] == [True, True]  # noqa: E721
    assert x.mean() == lazynp.asarray(values.copy()).mean()
    wide = lazynp.asarray(numpy.full(900_000, 1e308))
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce") as told:
        assert wide.std() == numpy.inf
    assert len(told) == 1


@pytest.mark.parametrize("n", [3, 900_000])
@pytest.mark.parametrize("number", ["x[0]", "(x * 1j)[0]", "x.sum()"])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_a_warning_names_the_comparison_that_is_written(operator: str, number: str, n: int) -> None:
    def heard(np: Any) -> list[str]:
        x = np.array([2.0, numpy.inf, 3.0] * (n // 3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            numpy.asarray(eval(f"{number} {operator} x - x", {"x": x}))
        return [str(w.message) for w in caught]

    assert heard(lazynp) == heard(numpy)


OF_NUMBERS = ["F(2) < z", "F(0) / (o * 0)", "F(2) >= z", "divmod(F(1), o * 0)", "F(0) // (o * 0)", "F(2) + o * 1e308 * 1e10"]


@pytest.mark.parametrize("dtype", ["c16", "f8", "c8"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (300,)])
def test_a_number_of_numpys_on_the_left_warns_at_the_programs_line(shape: tuple[int, ...], dtype: str) -> None:
    lines = compile("".join(f"\ntry: x.append({text})\nexcept TypeError: pass" for text in OF_NUMBERS), "<left>", "exec")
    for number in (numpy.float64, numpy.float32, numpy.complex128, numpy.int64):
        told = []
        for np in (numpy, lazynp):
            x: list[Any] = []
            names = {"F": number, "z": np.array(numpy.full(shape, numpy.nan, dtype)), "o": np.array(numpy.ones(shape, dtype)), "x": x}
            with chained.told() if np is lazynp else warnings.catch_warnings(record=True) as heard:
                if np is numpy:
                    warnings.simplefilter("always")
                exec(lines, names)
                for result in x:
                    numpy.asarray(result)
            told.append({(str(one.message), one.filename, one.lineno) for one in heard})
        assert told[0] == told[1] and told[0]
