"""Convolution, segments, positions, fits and eigenvalues on a GPU: NumPy's values, and nothing of it on the processor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from tests.cuda.comparing import check
from tests.cuda.host import machine, on_host

RNG = numpy.random.default_rng(5)
DATA = RNG.standard_normal(300) * 10
WINDOW = RNG.standard_normal(9) * 3
MODES = ("valid", "same", "full")


@pytest.fixture
def gpu() -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


def near(program: Any, tolerance: float, *, host: bool = False) -> None:
    """The same values but for rounding, dtypes and shapes; ``host``: the processor does something of it."""
    expected = program(numpy)
    report.reset()
    with lazynp.device("cuda"):
        found = program(lazynp)
    both = [x if isinstance(x, tuple) else (x,) for x in (found, expected)]
    for ours, theirs in zip(*both, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        numpy.testing.assert_allclose(numpy.asarray(ours), theirs, tolerance, tolerance * abs(theirs).max())
    assert bool(on_host()) == host, on_host()


# Windows ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("char", "?bBhHiIlLefdFD")
def test_windows(char: str, gpu: Any) -> None:
    exact = char in "?bBhHiIlL"
    data, window = [abs(x).astype(char) if char in "BHILQ" else x.astype(char) for x in (DATA, WINDOW)]
    if char in "FD":
        data, window = data + data[::-1] * data.dtype.type(1j), window * window.dtype.type(1 - 2j)
    for name in ("convolve", "correlate"):
        for mode in MODES:
            for x, y in ((data, window), (window, data), (data[:9], window), (data[:4], window[:4]), (data, window[:1])):

                def program(m: Any, name: str = name, mode: str = mode, x: Any = x, y: Any = y) -> Any:
                    return getattr(m, name)(m.asarray(x), m.asarray(y), mode)

                if exact:
                    check((name, mode, x.size, y.size), program, set())
                else:
                    near(program, {"e": 2e-3, "f": 1e-6, "F": 1e-6}.get(char, 1e-15))


def test_windows_of_what_is_no_number(gpu: Any) -> None:
    holes = DATA.copy()
    holes[[0, 7, 299]] = numpy.inf, numpy.nan, -numpy.inf
    for mode in MODES:
        near(lambda m, mode=mode: m.isnan(m.convolve(m.asarray(DATA), m.asarray(holes[:9]), mode)), 0)
        near(lambda m, mode=mode: m.isfinite(m.correlate(m.asarray(holes), m.asarray(WINDOW), mode)), 0)
    check("empty", lambda m: m.convolve(m.asarray(DATA), m.asarray([])))
    check("two dimensions", lambda m: m.correlate(m.asarray(DATA).reshape(3, 100), m.asarray(DATA)))
    check("mixed", lambda m: m.convolve(m.arange(20), m.asarray([True, False, True])), set())
    check("no such mode", lambda m: m.convolve(m.asarray(DATA), m.asarray(WINDOW), "most"))


def test_long_windows(gpu: Any) -> None:
    near(lambda m: m.correlate(m.asarray(DATA), m.asarray(DATA)), 1e-14)
    near(lambda m: m.convolve(m.asarray(numpy.tile(DATA, 5)), m.asarray(numpy.tile(DATA[::-1], 3)), "same"), 1e-13)


def test_windows_are_recorded(gpu: Any) -> None:
    with lazynp.device("cuda"):
        found = lazynp.convolve(lazynp.asarray(numpy.tile(DATA, 2)), lazynp.asarray(WINDOW), "same") * 2
        assert "1 kernel" in str(lazynp.explain(found)).splitlines()[0] or str(lazynp.schedule(found)).count("kernel") == 1


# Segments ---------------------------------------------------------------------------------------------------------------------

EXACT = ("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor")
WHOLE = ("add", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor")


@pytest.mark.parametrize("char", "?bHlQefdD")
def test_segments(char: str, gpu: Any) -> None:
    values = abs(DATA).astype(char).reshape(20, 15)
    names = EXACT if char != "D" else ()
    for name in (*names, *(WHOLE if char in "?bHlQ" else ())):
        for axis, at in ((0, [0, 3, 3, 9, 2, 19]), (1, [14]), (1, [3, 7, 8]), (0, numpy.arange(20))):

            def program(m: Any, name: str = name, axis: int = axis, at: Any = at) -> Any:
                return getattr(m, name).reduceat(m.asarray(values), at, axis)

            check((name, axis, at), program, set())
    if char in "fdD":
        at = numpy.array([0, 1, 3, 150, 150, 299, 4])
        near(lambda m: m.add.reduceat(m.asarray(values).reshape(-1), m.asarray(at)), 1e-5 if char == "f" else 1e-14)


def test_long_segments(gpu: Any) -> None:
    many = RNG.integers(-9, 9, 40_000)
    at = numpy.sort(RNG.choice(40_000, 60, replace=False))
    for name in ("add", "maximum", "bitwise_xor"):
        check(name, lambda m, name=name: getattr(m, name).reduceat(m.asarray(many), at), set())
    check("one", lambda m: m.add.reduceat(m.asarray(many.astype(float)), [0]), set())
    check("skewed", lambda m: m.add.reduceat(m.asarray(many), [0, *range(39_000, 40_000)]), set())
    check("dtype", lambda m: m.add.reduceat(m.asarray(many.astype("b")), at, dtype="f"), set())
    check("zeros", lambda m: m.add.reduceat(m.asarray([-0.0, -0.0, 0.0, -0.0]), [0, 1, 3]), set())
    check("no reduction", lambda m: m.subtract.reduceat(m.asarray(many), at))
    check("out of range", lambda m: m.add.reduceat(m.asarray(many), [40_000]))
    check("nothing", lambda m: m.add.reduceat(m.asarray(many), []))


# Positions --------------------------------------------------------------------------------------------------------------------


def test_positions(gpu: Any) -> None:
    flat = RNG.integers(0, 210, (4, 9))
    for order in "CF":
        for char in "lbB":
            given = (flat % 120).astype(char)
            check((order, char), lambda m, g=given, o=order: m.unravel_index(m.asarray(g), (5, 6, 7), order=o), set())
        parts = numpy.unravel_index(flat, (5, 6, 7))
        check(order, lambda m, p=parts, o=order: m.ravel_multi_index(tuple(map(m.asarray, p)), (5, 6, 7), order=o), set())
    wild = tuple(RNG.integers(-20, 20, (3, 50)))
    for mode in ("wrap", "clip", ("clip", "wrap", "wrap")):
        check(mode, lambda m, mode=mode: m.ravel_multi_index(tuple(map(m.asarray, wild)), (5, 6, 7), mode=mode), set())
    check("out of range", lambda m: m.ravel_multi_index(tuple(map(m.asarray, wild)), (5, 6, 7)))
    check("out of range", lambda m: m.unravel_index(m.asarray(flat), (5, 6)))
    check("negative", lambda m: m.unravel_index(m.asarray(-flat), (5, 6, 7)))
    check("no integers", lambda m: m.unravel_index(m.asarray(flat * 1.0), (5, 6, 7)))
    check("one axis", lambda m: m.unravel_index(m.asarray(flat), 210), set())


def test_triangles(gpu: Any) -> None:
    for n, k, m_ in ((5, 0, None), (4, 1, 7), (7, -2, 3), (3, -9, None), (0, 0, None)):
        for name in ("tril_indices", "triu_indices"):
            check((name, n, k, m_), lambda m, name=name, n=n, k=k, m_=m_: getattr(m, name)(n, k, m_), set())
            check((name, "from"), lambda m, name=name, k=k: getattr(m, name + "_from")(m.ones((6, 4)), k), set())
    check("lower part", lambda m: m.asarray(DATA).reshape(15, 20)[m.tril_indices(15, -1, 20)], set())


# Polynomials and eigenvalues --------------------------------------------------------------------------------------------------


def test_fits(gpu: Any) -> None:
    x = numpy.linspace(-2, 3, 300)
    y = 3 * x**3 - x + 0.01 * DATA
    for degree in (0, 1, 3, 6):
        near(lambda m, d=degree: m.polyfit(m.asarray(x), m.asarray(y), d), 1e-10)
    near(lambda m: m.polyfit(m.asarray(x), m.asarray(numpy.stack([y, y**2], 1)), 3), 1e-10)
    near(lambda m: m.polyfit(m.asarray(x), m.asarray(y), 2, w=m.asarray(abs(DATA))), 1e-10)
    near(lambda m: m.polyfit(m.asarray(x), m.asarray(y), 2, cov=True), 1e-9)
    near(lambda m: m.polyfit(m.asarray(x), m.asarray(y), 2, cov="unscaled"), 1e-9)
    near(lambda m: m.polyfit(m.arange(9), m.arange(9) ** 2, 2), 1e-9)
    check("degree", lambda m: m.polyfit(m.asarray(x), m.asarray(y), -1))
    check("lengths", lambda m: m.polyfit(m.asarray(x), m.asarray(y[1:]), 1))
    check("conditioned", lambda m: m.polyfit(m.asarray(x[:3]), m.asarray(y[:3]), 5).round(3) * 0)


def test_eigenvalues(gpu: Any) -> None:
    matrix = RNG.standard_normal((8, 8))
    for a in (matrix, matrix + matrix.T, matrix * 1j, matrix.astype("f"), numpy.stack([matrix, matrix.T])):
        near(lambda m, a=a: m.sort(m.linalg.eigvals(m.asarray(a)).real), 1e-4 if a.dtype == "f" else 1e-10)

        def residue(m: Any, a: Any = a) -> Any:
            values, vectors = m.linalg.eig(m.asarray(a))
            return abs(m.asarray(a) @ vectors - vectors * values[..., None, :]), vectors.real * 0, values.real * 0

        found, vectors, values = residue(numpy)
        with lazynp.device("cuda"):
            ours = residue(lazynp)
        assert [(x.dtype, x.shape) for x in ours] == [(x.dtype, x.shape) for x in (found, vectors, values)]
        assert float(ours[0].max()) < (1e-4 if a.dtype == "f" else 1e-10)
    check("not finite", lambda m: m.linalg.eig(m.asarray([[numpy.nan, 1], [2, 3]])))
    check("not square", lambda m: m.linalg.eigvals(m.asarray(matrix[:3])))
    with lazynp.device("cuda"):
        found = lazynp.linalg.eig(lazynp.asarray(matrix))
        assert type(found) is type(numpy.linalg.eig(matrix)) and found.eigenvectors.device == "cuda:0"


def test_roots(gpu: Any) -> None:
    near(lambda m: m.sort(m.roots(m.asarray([1.0, -6, 11, -6]))), 1e-10, host=True)  # so few are the processor's
    many = numpy.concatenate([[0], RNG.standard_normal(80), [0, 0]])
    near(lambda m: m.sort(abs(m.roots(m.asarray(many)))), 1e-8)
    assert lazynp.roots(lazynp.asarray([0.0, 0.0])).shape == (0,)
