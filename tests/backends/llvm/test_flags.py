"""The processor's flags as a filter: clean on ordinary data, in every flavour of the math library, and complete."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.backends.llvm import flags
from lazynp.backends.llvm.toolchain import binding
from lazynp.graph import report
from lazynp.values import config
from tests.backends.llvm import flag_table

FLAVOURS: dict[str, dict[str, str]] = {
    "libmvec": {"LAZYNP_POLYNOMIALS": "0"},
    "avx2": {"LAZYNP_LIBMVEC": "avx2", "LAZYNP_POLYNOMIALS": "0"},
    "sse": {"LAZYNP_LIBMVEC": "sse", "LAZYNP_POLYNOMIALS": "0"},
    "libm": {"LAZYNP_LIBMVEC": "0", "LAZYNP_POLYNOMIALS": "0"},
    "polynomials": {"LAZYNP_LIBMVEC": "0"},
}


@pytest.mark.slow
def test_ordinary_data_raise_no_flag() -> None:
    assert flag_table.ufuncs(flag_table.MATH, "f") == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_ordinary_data_raise_no_flag_in_any_ufunc(part: int) -> None:
    assert flag_table.ufuncs(flag_table.UFUNCS[part::4], "dfeib") == []


@pytest.mark.slow
def test_ordinary_programs_raise_no_flag() -> None:
    assert flag_table.programs("ed") == []


@pytest.mark.slow
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_ordinary_data_raise_no_flag_in_any_flavour(flavour: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.llvm.flag_table"],
        env={**os.environ, **FLAVOURS[flavour]}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ""


# One errors at one place among many good values: vector body, tail, threads.
ONE = {
    "divide": (lambda np, x: 1 / x, 0.0), "log": (lambda np, x: np.log(x), -1.0), "exp": (lambda np, x: np.exp(x), 800.0),
    "sqrt": (lambda np, x: np.sqrt(x), -1.0), "cast": (lambda np, x: x.astype("i4"), 1e20),
    "cast to u8": (lambda np, x: x.astype("u8"), -1e30),
    "narrow": (lambda np, x: x.astype("f4"), 1e300), "halve": (lambda np, x: x.astype("e"), 1e6), "square": (lambda np, x: x * x, 1e200),
    "sum": (lambda np, x: np.add.reduce(x - x), numpy.inf), "power": (lambda np, x: np.power(x, 0.5), -2.0),
    "floor": (lambda np, x: x.astype("i8") // x.astype("i8"), 0.0), "tan": (lambda np, x: np.arcsin(x / 2), 3.0),
    "half sum": (lambda np, x: np.add.reduce(x.astype("e").reshape(-1, 1) * np.float16(1), axis=1), 1e6),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_no_error_is_missed(name: str) -> None:
    function, bad = ONE[name]
    for n, threads in ((1, 1), (9, 1), (1003, 1), (300_000, 4)):
        for at in {0, n // 2, n - 1}:
            values = numpy.full(n, 1.5)
            values[at] = bad
            heard: list[list[str]] = []
            for module in (numpy, lazynp):
                with warnings.catch_warnings(record=True) as caught, config.override(tier="compiled", threads=threads):
                    warnings.simplefilter("always")
                    numpy.asarray(function(module, module.asarray(values)))
                heard.append([str(w.message) for w in caught])
            assert heard[0] == heard[1] != [], (n, at)


def test_nan_throughout_is_looked_into_ever_more_seldom() -> None:
    x = lazynp.asarray(numpy.full(1000, numpy.nan))

    def work(x: Any) -> Any:
        return lazynp.where(lazynp.maximum(x, 0) < 1, lazynp.exp(x), x * 2)

    before = report.work.rechecks
    with config.override(tier="compiled"):
        for _ in range(600):
            numpy.asarray(work(x))
    assert report.work.rechecks - before <= 10


def test_both_machines_have_their_instructions() -> None:
    llvm = binding()
    for machine in flags._MACHINES.values():
        text = f"{machine.declare}\ndefine i64 @f() {{\n{machine.clear}\n{machine.read}\n  ret i64 %fp.word\n}}"
        llvm.parse_assembly(text).verify()
