"""The kernels' functions in C: the same bits as the kernels', for every function, type and set of instructions."""

from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.backends.llvm.polynomials import c
from lazynp.backends.numpy import compiled
from lazynp.graph import op as o
from lazynp.values import config

FUNCTIONS = [(name, {"f64": "d", "f32": "f"}[kind]) for name, (_, kinds) in c.WRITTEN.items() for kind in kinds.split()]
FUNCTIONS += [(name, "d") for name in c.PARTIAL]
SPECIAL = [0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1.0, -1.0, 2.0**20, -(2.0**20), 2.0**20 - 1, 1e-320, 710.0, -746.0, 88.8, -104.0]

pytestmark = pytest.mark.skipif(
    not config.polynomials or core.compiled("exp", numpy.ones(1)) is None, reason="no polynomials, no fused multiply-add, or no C"
)


def arguments(char: str, count: int, seed: int) -> Any:
    """Half of any bit pattern, half of what programs have."""
    draw = numpy.random.default_rng(seed)
    bits = draw.integers(0, 2 ** (64 if char == "d" else 32), count // 2, dtype="u8" if char == "d" else "u4").view(char)
    with numpy.errstate(over="ignore"):
        return numpy.concatenate([bits, (draw.normal(size=count - count // 2) * 10).astype(char), numpy.array(SPECIAL, char)])


def kernel(name: str, x: Any) -> Any:
    with numpy.errstate(all="ignore"), config.override(eager_below=0, tier="compiled"):
        return numpy.asarray(getattr(lazynp, name)(lazynp.array(x)))


def differ(x: Any, y: Any) -> int:
    unsigned = f"u{x.dtype.itemsize}"
    return int(((x.view(unsigned) != y.view(unsigned)) & ~(numpy.isnan(x) & numpy.isnan(y))).sum())


def check(name: str, char: str, count: int, seed: int) -> None:
    x = arguments(char, count, seed)
    expected = kernel(name, x)
    levels = [-1, *[level for level in (0, 1) if core.compiled(name, x[:1], level) is not None]]
    for level in levels:
        assert differ(core.compiled(name, x, level)[0], expected) == 0, f"{name} of {char}, level {level}"
    with numpy.errstate(all="ignore"):  # neither does it matter how an element's neighbours lie
        assert differ(core.compiled(name, x[1:], -1)[0], expected[1:]) == 0
        assert differ(core.compiled(name, x[:7].copy(), -1)[0], expected[:7]) == 0


@pytest.mark.parametrize(("name", "char"), FUNCTIONS)
def test_bits_are_those_of_kernels(name: str, char: str) -> None:
    check(name, char, 20_000, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "char"), FUNCTIONS)
def test_bits_of_ten_million_arguments_are_those_of_kernels(name: str, char: str) -> None:
    for seed in range(1, 6):
        check(name, char, 2_000_000, seed)


def test_all_that_kernels_prefer_is_written() -> None:
    """And nothing else, so that what the C library has does not decide the bits."""
    from lazynp.backends.llvm import polynomials

    wanted = {(name, kind) for name, f in polynomials.FUNCTIONS.items() for kind in f.kinds if kind in f.preferred and name != "power"}
    assert wanted == {(name, {"d": "f64", "f": "f32"}[char]) for name, char in FUNCTIONS}


@pytest.mark.parametrize("name", ["exp", "sin", "log"])
def test_a_large_operation_runs_without_a_compiler(name: str) -> None:
    x = numpy.random.default_rng(0).random(300_000)
    y = lazynp.array(x)
    with numpy.errstate(all="ignore"):
        z = getattr(lazynp, name)(y * 3) + 1
        assert core.tape(z) is not None
        found = numpy.asarray(z)
    assert differ(found, kernel(name, x * 3) + 1) == 0


def test_errors_are_told_and_the_bits_stay() -> None:
    x = numpy.full(300_000, 1.5)
    x[7] = 1000.0
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
        found = numpy.asarray(lazynp.exp(lazynp.array(x)))
    assert differ(found, kernel("exp", x)) == 0
    with numpy.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in exp"):
        lazynp.exp(lazynp.array(x))


def test_without_polynomials_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled.available.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(config, "polynomials", False)
        assert not compiled.available("exp", "d")
    compiled.available.cache_clear()
    assert compiled.available("exp", "d") and not compiled.available("exp", "e") and not compiled.available(o.ARCTAN.name, "d")
