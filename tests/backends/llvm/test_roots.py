"""Square roots by multiplications: the bits and the flags of the instruction, also where rounding is hardest."""

import ctypes

import numpy as np
import pytest

import lazynp
from lazynp.backends.llvm import compiler, flags, roots
from lazynp.graph.errors import INVALID
from lazynp.values import config
from tests.backends.llvm.kernels import map_ir, math_kernel

needs_vectors = pytest.mark.skipif(not roots.available(), reason="the processor approximates no reciprocals of roots")


@pytest.fixture(scope="module")
def root():
    return math_kernel("sqrt", "f64")


def square_roots(d, bits):
    """The odd m below 2**bits with m**2 = d modulo 2**bits, where d is 1 modulo 8."""
    found = {1, 3, 5, 7}
    for k in range(4, bits + 1):
        found = {m for r in found for m in (r, r + (1 << (k - 1))) if (m * m - d) % (1 << k) == 0}
    return found


def hardest(limit):
    """The arguments whose roots lie next to the middle of two neighbours: m**2 - d for m of 54 bits and small d."""
    for d in range(1 - limit, limit, 8):
        for shift in (54, 55):  # of what 53 bits leave of a square
            for m in square_roots(d, shift):
                for middle in (m, m + (1 << 53), m + (1 << 54)):
                    square = middle * middle - d
                    fits = 1 << 53 < middle < 1 << 54 and square.bit_length() == 53 + shift
                    if fits and square % (1 << shift) == 0:
                        yield square >> shift, shift


@needs_vectors
def test_the_hardest_arguments(root):
    """All arguments whose roots are nearer to the middle than the error that the module's text proves (d below 2**9), and many others."""
    cases = sorted(set(hardest(1 << 12)))
    assert len(cases) > 1400
    values = np.array([float(whole) * 2.0 ** (shift % 2) for whole, shift in cases])
    for power in (-818, -400, 0, 300, 716):  # of four
        scaled = values * 2.0**power
        assert root(scaled).tobytes() == np.sqrt(scaled).tobytes()


def test_squares_and_their_neighbours(root):
    whole = np.concatenate([np.arange(1, 5000, dtype=float), np.random.default_rng(0).integers(1, 1 << 26, 50_000).astype(float)])
    squares = whole * whole
    for values in (squares, np.nextafter(squares, 0), np.nextafter(squares, np.inf)):
        assert root(values).tobytes() == np.sqrt(values).tobytes()


def test_any_bits(root):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1 << 63, 200_000, dtype=np.uint64).view(float)
    close = (rng.integers(0, 1 << 52, 200_000, dtype=np.uint64) | np.uint64(1022 << 52)).view(float)
    for chosen in (values[~np.isnan(values)], close, close * 2, -close[:100]):
        with np.errstate(invalid="ignore"):
            assert root(chosen).tobytes() == np.sqrt(chosen).tobytes()


@pytest.mark.parametrize("strange", [0.0, -0.0, np.inf, np.nan, -1.0, -np.inf, 5e-324, 1e-310, np.finfo(float).tiny, 1e308, 1e-240, 1e240])
@pytest.mark.parametrize("place", [0, 5, 8, 19, 32])
def test_one_strange_element_among_others(root, strange, place):
    values = np.linspace(0.5, 3, 33)
    values[place] = strange
    with np.errstate(invalid="ignore"):
        assert np.array_equal(root(values), np.sqrt(values), equal_nan=True)
        assert np.array_equal(np.signbit(root(values)[~np.isnan(values)]), np.signbit(np.sqrt(values)[~np.isnan(values)]))


@pytest.mark.skipif(not flags.known(), reason="the processor's flags are not known")
def test_flags():
    text = f"""{flags.declarations()}
{map_ir("sqrt", "f64")}
define i64 @raised(ptr %out, ptr %x, i64 %n) {{
{flags.clear()}
  call void @kernel(ptr %out, ptr %x, i64 %n)
{flags.read()}
  ret i64 %fp.bits
}}"""
    address = compiler.compile_module(text, ["raised"])["raised"]
    raised = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)

    def bits(values):
        out = np.empty_like(values)
        return raised(out.ctypes.data, values.ctypes.data, values.size)

    mantissas = np.linspace(1, 2, 1003)
    for power in range(-1022, 1024):
        assert bits(mantissas[:-1] * 2.0**power) == 0, power
    assert bits(np.tile([0.0, np.inf, -0.0, np.nan, 3.0], 100)) == 0
    for place in (0, 500, 1002):
        bad = mantissas.copy()
        bad[place] = -1
        assert bits(bad) == INVALID


@needs_vectors
def test_loops_take_roots_by_multiplication():
    text = compiler.optimised_ir(map_ir("sqrt", "f64"), ["kernel"])
    loops = text[text.index("@kernel") :]
    assert "rsqrt14" in loops and "call <8 x double> @lz_sqrt" not in loops


@needs_vectors
def test_roots_are_multiplied_where_that_pays(monkeypatch):
    assert roots.pays(0, 0, 1) and roots.pays(9, 0, 1), "a root and little else"
    assert roots.pays(8, 1, 1) and roots.pays(30, 2, 1), "quotients occupy the unit that takes roots"
    assert not roots.pays(24, 0, 1) and not roots.pays(60, 0, 2), "sums and products take longer than the roots"
    assert not roots.pays(5, 3, 0)
    monkeypatch.setattr(roots, "available", lambda: False)
    assert not roots.pays(0, 0, 1)


@needs_vectors
@pytest.mark.parametrize(
    ("program", "multiplied"),
    [
        (lambda xp, x: xp.sqrt(x * x + 1.0) / (x + 2.0), True),
        (lambda xp, x: xp.exp(x) * xp.sqrt(x) + xp.sin(x) * xp.cos(x), False),
        (lambda xp, x: xp.sqrt((x.reshape(-1, 2) ** 2).sum(axis=1)), True),
        (lambda xp, x: xp.sqrt((x.reshape(-1, 100) ** 2).sum(axis=1)), False),
        (lambda xp, x: xp.sqrt(x.astype("f4")), False),
    ],
    ids=["a quotient", "functions", "short rows", "long rows", "float32"],
)
def test_kernels(program, multiplied, monkeypatch):
    texts = []
    compile_module = compiler.compile_module
    monkeypatch.setattr(compiler, "compile_module", lambda text, *more, **named: texts.append(text) or compile_module(text, *more, **named))
    values = np.random.default_rng(2).random(60_000) + 0.5
    with config.override(tier="compiled", tape_limit=0):
        result = np.asarray(program(lazynp, lazynp.asarray(values)))
    assert np.allclose(result, program(np, values), rtol=1e-6 if result.dtype == np.float32 else 1e-14)
    assert any("@lz_sqrt" in text for text in texts) == multiplied
