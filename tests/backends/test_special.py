"""The special functions in both tiers: bounds against exact values, special values, bits that depend on no position, flags, no branch."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazynp.backends.llvm import mathlib
from lazynp.backends.llvm.polynomials import functions as polynomials
from lazynp.backends.llvm.polynomials import special as llvm
from lazynp.backends.numpy.special import BLOCK, UFUNCS
from lazynp.backends.special import FUNCTIONS
from lazynp.graph import op as o
from lazynp.namespace.special.table import ROWS
from tests.backends.llvm.kernels import math_kernel
from tests.backends.special_errors import errors_in_ulps

VALUES = np.load(Path(__file__).with_name("special_values.npz"))
NAMES = sorted(name.removesuffix(".x") for name in VALUES.files if name.endswith(".x") and name.split(".")[0].split("_m")[0] in FUNCTIONS)
INF, NAN = np.inf, np.nan


def bound(name: str) -> int:
    row = ROWS["psi" if name.startswith("digamma") else name.removesuffix("_mirrored")]
    return row.left if name.endswith("_mirrored") else row.bound


def tiers(name: str) -> list[Any]:
    return [UFUNCS[name], math_kernel(name, "f64")]


def test_every_operation_has_a_definition() -> None:
    assert {op.name for op in o.SPECIAL} == set(FUNCTIONS)
    assert {name.removesuffix("_mirrored") for name in NAMES} == set(FUNCTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_double_is_within_its_bound(name: str) -> None:
    (x,), *exact = (VALUES[f"{name}.{part}"] for part in ("x", "value", "rest", "exponent"))
    for function in tiers(name.removesuffix("_mirrored")):
        error = errors_in_ulps(function(x), *exact, name)
        worst = int(np.argmax(error))
        assert error[worst] <= bound(name), (float(x[worst]), error[worst])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_single_is_double_rounded_once(name: str) -> None:
    with np.errstate(over="ignore"):
        x = np.unique(VALUES[f"{name}.x"][0].astype(np.float32))
    for wide, narrow in ((UFUNCS[name], UFUNCS[name]), (math_kernel(name, "f64"), math_kernel(name, "f32"))):
        with np.errstate(all="ignore"):
            expected = wide(x.astype(np.float64)).astype(np.float32)
        assert np.array_equal(narrow(x), expected, equal_nan=True)


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (5e-324, 5e-324), (1e300, 1)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0), (-INF, 2), (5e-324, 1), (1e300, 0), (28, 0), (-28, 2)],
    "erfcx": [(0.0, 1), (-0.0, 1), (INF, 0), (-INF, INF), (-1e300, INF), (-27, INF)],
    "ndtr": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (1e300, 1), (-1e300, 0)],
    "log_ndtr": [(INF, -0.0), (-INF, -INF), (-1e200, -INF), (40, -0.0)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN)],
    "erfcinv": [(0.0, INF), (1, 0.0), (2, -INF), (-0.5, NAN), (2.5, NAN), (INF, NAN), (-INF, NAN)],
    "ndtri": [(0.0, -INF), (0.5, 0.0), (1, INF), (-0.5, NAN), (1.5, NAN), (INF, NAN), (-INF, NAN)],
    "expit": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (1e300, 1), (-1e300, 0)],
    "logit": [(0.0, -INF), (-0.0, -INF), (0.5, 0.0), (1, INF), (-1, NAN), (2, NAN), (INF, NAN), (-INF, NAN)],
    "log_expit": [(INF, -0.0), (-INF, -INF), (1000, -0.0), (-1e300, -1e300)],
    "gammaln": [(0.0, INF), (-0.0, INF), (1, 0.0), (2, 0.0), (-1, INF), (-2, INF), (-1e300, INF), (INF, INF), (-INF, -INF), (1e306, INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1, NAN), (-2, NAN), (INF, INF), (-INF, NAN), (-1e300, NAN)],
    "i0": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (714, INF), (-714, INF)],
    "i0e": [(0.0, 1), (INF, 0.0), (-INF, 0.0)],
    "i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (714, INF), (-714, -INF)],
    "i1e": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, -0.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_special_values(name: str) -> None:
    x, expected = np.array([*SPECIAL[name], (NAN, NAN)]).T
    for function in tiers(name):
        found = function(x)
        number = ~np.isnan(expected)
        assert np.array_equal(found, expected, equal_nan=True), (x, found)
        assert np.array_equal(np.signbit(found[number]), np.signbit(expected[number])), (x, found)


@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_bits_do_not_depend_on_the_position(name: str, kind: str) -> None:
    with np.errstate(over="ignore"):
        x = VALUES[f"{name}.x"][0][-97:].astype(np.float64 if kind == "f64" else np.float32)
    for function in (UFUNCS[name], math_kernel(name, kind)):
        whole = function(x).view(np.uint8)
        size = x.itemsize
        for start in (1, 3, 8):
            assert np.array_equal(function(x[start:]).view(np.uint8), whole[start * size :])
        assert b"".join([function(x[i : i + 1]).tobytes() for i in range(x.size)]) == whole.tobytes()


def test_numpy_tier_takes_any_layout_and_writes_where_it_is_told() -> None:
    x = np.linspace(-3, 3, 2 * BLOCK + 6).reshape(-1, 2)
    expected = UFUNCS["erf"](x)
    assert expected.shape == x.shape
    assert np.array_equal(UFUNCS["erf"](x.T), expected.T)
    assert np.array_equal(UFUNCS["erf"](x[::2, ::-1]), expected[::2, ::-1])
    for out in (np.empty_like(x), np.empty_like(x.T).T, x.copy()):
        given = out if out.strides == x.strides and np.array_equal(out, x) else x
        assert UFUNCS["erf"](given, out) is out
        assert np.array_equal(out, expected)
    assert UFUNCS["erf"](np.float64(0.5)) == UFUNCS["erf"](np.array([0.5]))[0]
    assert UFUNCS["erf"](x[:0]).shape == (0, 2)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_definitions_have_no_branch_and_no_call(name: str, fused: bool) -> None:
    text = llvm.definition(name, "f64", "define double @f(double %x0)", fused)
    assert " br " not in text and "load" not in text
    called = {line.split("@")[1].split("(")[0] for line in text.splitlines()[1:] if "call" in line}
    assert all(name.startswith("llvm.") for name in called)
    assert fused or not any("fma" in name for name in called)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_fused_multiply_add_the_bounds_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polynomials, "fused", lambda: False)
    (x,), *exact = (VALUES[f"{name}.{part}"] for part in ("x", "value", "rest", "exponent"))
    error = errors_in_ulps(math_kernel(name.removesuffix("_mirrored"), "f64")(x), *exact, name)
    assert error.max() <= bound(name) + 1, float(x[int(np.argmax(error))])


# Where nothing is wrong: inside the domain, away from poles and overflow.
ORDINARY = {
    "erfinv": (-0.99, 0.99), "erfcinv": (0.01, 1.99), "ndtri": (0.01, 0.99), "logit": (0.01, 0.99), "erfcx": (-9, 50),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_ordinary_data_raise_no_flag(name: str) -> None:
    """Invalid, division by zero, overflow: whoever hears of one evaluates the program again."""
    clear, test = mathlib.address("lzc_feclearexcept"), mathlib.address("lzc_fetestexcept")
    mask = {"x86_64": 1 | 4 | 8, "aarch64": 1 | 2 | 4, "arm64": 1 | 2 | 4}.get(platform.machine())
    if not (clear and test and mask):
        return  # the names are C's, the numbers are the system's own
    clear, test = (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(found) for found in (clear, test))
    low, high = ORDINARY.get(name, (-40.25, 40.0))
    whole = [np.arange(1.0, 41.0)] if name in ("gammaln", "digamma") else [np.array([0.0, -0.0]) + (low > 0) / 2]
    for x in (np.linspace(low, high, 999), *whole):
        for kind in ("f64", "f32"):
            kernel = math_kernel(name, kind)
            x = x[np.rint(x) != x] if name in ("gammaln", "digamma") and x.size == 999 else x
            clear(mask)
            kernel(x)
            assert not test(mask), (name, kind)
