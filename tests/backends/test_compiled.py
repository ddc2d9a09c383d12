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

CHARS = {"f64": "d", "f32": "f"}
FUNCTIONS = [(name, CHARS[kind]) for name, (_, kinds) in c.WRITTEN.items() for kind in kinds.split()]
FUNCTIONS += [(name, "d") for name in c.PARTIAL]
NAMED = (
    *("log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2"),
    *("sinh", "arcsinh", "arccosh", "arctanh", "cbrt", "hypot"),
)
OF_THE_LIBRARY = [(name, char) for name in NAMED for char in "df" if (name, char) not in FUNCTIONS]
SPECIAL = [
    0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1.0, -1.0, 2.0**20, -(2.0**20), 2.0**20 - 1, 1e-320, 710.0, -746.0, 88.8, -104.0, 3.0, 0.5,
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    not config.polynomials or core.compiled("exp", numpy.ones(1)) is None, reason="no polynomials, no fused multiply-add, or no C"
)


def arguments(char: str, count: int, seed: int) -> Any:
    """Half of any bit pattern, half of what programs have."""
    draw = numpy.random.default_rng(seed)
    bits = draw.integers(0, 2 ** (64 if char == "d" else 32), count // 2, dtype="u8" if char == "d" else "u4").view(char)
    with numpy.errstate(over="ignore"):
        return numpy.concatenate([bits, (draw.normal(size=count - count // 2) * 10).astype(char), numpy.array(SPECIAL, char)])


def kernel(name: str, *given: Any) -> Any:
    with numpy.errstate(all="ignore"), config.override(tape_limit=0, tier="compiled"):
        return numpy.asarray(getattr(lazynp, name)(*[lazynp.array(x) for x in given]))


def differ(x: Any, y: Any) -> int:
    unsigned = f"u{x.dtype.itemsize}"
    return int(((x.view(unsigned) != y.view(unsigned)) & ~(numpy.isnan(x) & numpy.isnan(y))).sum())


def check(name: str, char: str, count: int, seed: int) -> None:
    given = [arguments(char, count, seed)]
    if getattr(numpy, name).nin == 2:
        given.append(arguments(char, count, seed + 100)[::-1].copy())
    expected = kernel(name, *given)

    def computed(*some: Any, level: int = -1) -> Any:
        return core.compiled(name, some[0], some[1] if len(some) > 1 else None, level)

    few = [x[:1] for x in given]
    for level in [-1, *[level for level in (0, 1) if computed(*few, level=level) is not None]]:
        assert differ(computed(*given, level=level)[0], expected) == 0, f"{name} of {char}, level {level}"
    # Neither does it matter how an element's neighbours lie.
    assert differ(computed(*[x[1:] for x in given])[0], expected[1:]) == 0
    assert differ(computed(*[x[:7].copy() for x in given])[0], expected[:7]) == 0


@pytest.mark.parametrize(("name", "char"), OF_THE_LIBRARY)
def test_bits_of_the_librarys_vectors_are_those_of_kernels(name: str, char: str) -> None:
    one = numpy.ones(1, char)
    if core.compiled(name, one, one if getattr(numpy, name).nin == 2 else None) is None:
        pytest.skip("the C library has no such vectors")
    check(name, char, 20_000, 0)


def test_all_that_kernels_take_from_the_library_is_there() -> None:
    from lazynp.backends.llvm import mathlib
    from lazynp.backends.llvm.host import vector_abi

    abi = vector_abi()
    for name, function in mathlib.FUNCTIONS.items():
        for kind, char in CHARS.items():
            native = mathlib._native(name, kind, abi)
            if native is not None and native.symbol.startswith("_ZGV") and name != "fmod":
                assert (name, char) in OF_THE_LIBRARY, f"{name} of {kind}"
                one = numpy.ones(1, char)
                assert core.compiled(name, one, one if function.arity == 2 else None) is not None


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
    from lazynp.backends.llvm.polynomials import functions as polynomials

    wanted = {(name, CHARS[kind]) for name, f in polynomials.FUNCTIONS.items() for kind in f.kinds if kind in f.preferred}
    assert wanted == set(FUNCTIONS)


@pytest.mark.parametrize("exponent", [3, 2.5, -1.5, 0.5, 2, -1, 0, 1])
def test_powers(exponent: float) -> None:
    """As operators and as a function, with the bits of kernels."""
    x = numpy.random.default_rng(0).random(300_000) * 4
    y = lazynp.array(x)
    with config.override(tape_limit=0, tier="compiled"):
        expected = numpy.asarray(lazynp.array(x) ** exponent), numpy.asarray(lazynp.power(lazynp.array(x), exponent))
    assert differ(numpy.asarray(y**exponent), expected[0]) == 0
    assert differ(numpy.asarray(lazynp.power(y, exponent)), expected[1]) == 0
    assert differ(numpy.asarray(y ** lazynp.array(x[::-1].copy())), kernel("power", x, x[::-1].copy())) == 0


@pytest.mark.parametrize("types", ["dd", "ff", "fd", "dl", "ld", "ll", "bB", "ee", "el", "FD"])
@pytest.mark.parametrize("name", ["power", "arctan2", "hypot"])
def test_types_of_two_operands(name: str, types: str) -> None:
    """Which loop it is, is NumPy's to say."""
    draw = numpy.random.default_rng(0)
    a, b = [(draw.random(200_000) * 3 + 1).astype(char) for char in types]
    try:
        with numpy.errstate(all="ignore"):
            expected = getattr(numpy, name)(a, b)
    except TypeError as error:
        with pytest.raises(TypeError, match=str(error)[:20]):
            getattr(lazynp, name)(lazynp.array(a), lazynp.array(b))
        return
    with numpy.errstate(all="ignore"):
        found = numpy.asarray(getattr(lazynp, name)(lazynp.array(a), lazynp.array(b)))
    assert found.dtype == expected.dtype
    numpy.testing.assert_allclose(found, expected, rtol=1e-2 if "e" in types or "b" in types else 1e-6)


@pytest.mark.parametrize("name", ["exp", "sin", "log", "log2", "arctan"])
def test_a_large_operation_runs_without_a_compiler(name: str) -> None:
    if core.compiled(name, numpy.ones(1)) is None:
        pytest.skip("the C library has no such vectors, or they are turned off")
    x = numpy.random.default_rng(0).random(300_000)
    y = lazynp.array(x)
    with numpy.errstate(all="ignore"):
        z = getattr(lazynp, name)(y * 3) + 1
        assert core.tape(z) is not None
        found = numpy.asarray(z)
    assert differ(found, kernel(name, x * 3) + 1) == 0


def test_machine_code_of_tapes_has_the_same_bits() -> None:
    x = numpy.random.default_rng(0).random(300_000)
    y = lazynp.array(x)
    expected = kernel("exp", -x) * kernel("cos", 3 * x) + kernel("power", x, numpy.full_like(x, 2.5))
    core.chain_sizes(1, 512, 1024, 0)
    try:
        before = core.chain_counts()[2]
        with config.override(compiler="wait"):
            for _ in range(4):
                assert differ(numpy.asarray(lazynp.exp(-y) * lazynp.cos(3 * y) + y**2.5), expected) == 0
        assert core.chain_counts()[2] > before, "some runs were machine code"
    finally:
        core.chain_sizes(1, 512, 1024)


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
        assert not compiled.available(o.EXP, "d")
    compiled.available.cache_clear()
    assert compiled.available(o.EXP, "d") and not compiled.available(o.EXP, "e") and not compiled.available(o.ADD, "d")
