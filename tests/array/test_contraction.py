"""``einsum``, ``convolve`` and ``correlate`` of floats in C: NumPy's bits, layouts and errors, and nothing else read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.backends.numpy import contraction
from lazynp.values import config

windows = numpy.lib.stride_tricks.sliding_window_view
LEVELS = range(core.contraction_vectors() + 1)
SUBSCRIPTS = [
    "ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ik", "ij,jk->ki", "ij,ij->j", "ij,ij->i", "ij,ij", "ij,ji->j", "ijk,jk->i", "ijk,ik->jk",
    "ijk,k->ij", "ijk,kl->ijl", "ijk,ikl->ijl", "kij,kj->ij", "ij,i->j", "ij,j->ij", "ijkl,kl->ij", "ijkl,ij->kl", "aij,bj->abi",
    "ij->j", "ij->i", "ijk->jk", "ijk->ik", "ijk->k", "i j , j k -> i k", "ij,jk->", "...j,j->...", "ii,i->i", "ij,Jk->ijk",
]  # fmt: skip


@pytest.fixture(autouse=True, params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[None]:
    core.contraction_vectors(request.param)
    yield
    core.contraction_vectors()


def operands(rng: numpy.random.Generator, subscripts: str, dtype: str, largest: int) -> list[numpy.ndarray]:
    """Random arrays that fit, lying in various ways."""
    terms = subscripts.replace(" ", "").split("->")[0].replace("...", "z").split(",")
    lengths = {label: int(rng.integers(1, largest)) for label in "".join(terms)}
    made = []
    for term in terms:
        shape = [lengths[label] for label in term]
        x = (rng.random([n + int(rng.integers(0, 3)) for n in shape]) - 0.5).astype(dtype)
        how = rng.integers(0, 6)
        if how == 1:
            x = numpy.asfortranarray(x)
        elif how == 2:
            x = x[..., ::-1]
        elif how == 3 and len(shape) > 1:
            x = numpy.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1)
        elif how == 4:
            x = numpy.broadcast_to(x[:1], x.shape)
        elif how == 5:
            x = numpy.repeat(x, 2, -1)[..., ::2]
        made.append(x[tuple(slice(0, n) for n in shape)])
    return made


def same(ours: Any, theirs: Any) -> None:
    ours = numpy.asarray(ours)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_bits_are_numpys(subscripts: str, dtype: str) -> None:
    rng = numpy.random.default_rng(len(subscripts))
    for largest in (3, 10, 10, 30, 30, 70):
        given = operands(rng, subscripts, dtype, largest if len(set(subscripts)) < 8 else min(largest, 20))
        theirs = numpy.einsum(subscripts, *given)
        found = core.einsum(subscripts, *given)
        same(found, theirs)
        assert numpy.asarray(found).strides == numpy.asarray(theirs).strides
        copies = [x.copy("K") for x in given]
        same(lazynp.einsum(subscripts, *map(lazynp.asarray, copies)), numpy.einsum(subscripts, *copies))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 9, 16, 17, 33])
def test_windows(dtype: str, width: int) -> None:
    rng = numpy.random.default_rng(width)
    image, kernel = rng.random((40, 90)).astype(dtype) - 0.5, rng.random((3, width)).astype(dtype)
    view = windows(image, (3, width))
    for subscripts, x, y in [
        ("ijkl,kl->ij", view, kernel), ("kl,ijkl->ij", kernel, view), ("ijkl,kl->ji", view, kernel), ("ijkl,l->ijk", view, kernel[0]),
        ("ijkl,kl->ij", view[::2], kernel), ("ijkl,kl->ij", view[:, ::2], kernel), ("ijkl,kl->ij", view, kernel[::-1]),
        ("ijkl,kl->j", view, kernel), ("ijkl,ijkl->ij", view, view), ("ijkl->ij", view, None), ("ijkl->kl", view, None),
    ]:  # fmt: skip
        given = [x] if y is None else [x, y]
        same(core.einsum(subscripts, *given), numpy.einsum(subscripts, *given))
    ours = lazynp.lib.stride_tricks.sliding_window_view(lazynp.asarray(image), (3, width))
    same(lazynp.einsum("ijkl,kl->ij", ours, lazynp.asarray(kernel)), numpy.einsum("ijkl,kl->ij", view, kernel))


def by_plan(subscripts: str, x: numpy.ndarray, *rest: numpy.ndarray) -> bool:
    plan = contraction.plan(subscripts, x, *rest)
    assert plan is not None
    like, one, lengths, strides = plan
    return core.contract(x, *rest or [one], numpy.empty_like(like), lengths, *strides)


def test_it_is_c_that_sums() -> None:
    """Windows, rows times a matrix, sums of rows; not dot products, whose results lie apart."""
    image, kernel = numpy.ones((40, 90)), numpy.ones((7, 7))
    square, row = numpy.ones((30, 30)), numpy.ones(30)
    for subscripts, given in [
        ("ijkl,kl->ij", (windows(image, (7, 7)), kernel)), ("ij,jk->ik", (square, square)), ("ij,jk", (square, square)),
        ("ij,i->j", (square, row)), ("ij,ij->j", (square, square)), ("ij->j", (square,)),
    ]:  # fmt: skip
        assert by_plan(subscripts, *given)
    assert not by_plan("ij,ij->i", square, square)


def test_special_values() -> None:
    rng = numpy.random.default_rng(0)
    x, y = rng.random((9, 40)), rng.random((40, 50))
    x[2, 3], x[4, 5], y[7, 8], x[5], y[:, 3] = numpy.inf, numpy.nan, -numpy.inf, -0.0, 0.0
    x[6], y[9] = 1e300, 1e300
    with numpy.errstate(all="raise"):
        found = core.einsum("ij,jk->ik", x, y)
        theirs = numpy.einsum("ij,jk->ik", x, y)
    assert numpy.array_equal(found, theirs, equal_nan=True) and numpy.array_equal(numpy.signbit(found[5]), numpy.signbit(theirs[5]))


def test_several_threads_and_parts() -> None:
    """Rows longer than what is walked at a time, by pieces that threads take."""
    rng = numpy.random.default_rng(0)
    before = core.share(0)
    try:
        for shape in ((3, 5000), (300, 400), (1, 70_000), (2000, 9)):
            image = rng.random(shape)
            view = windows(image, (min(3, shape[0]), 3))
            kernel = rng.random(view.shape[2:])
            same(core.einsum("ijkl,kl->ij", view, kernel), numpy.einsum("ijkl,kl->ij", view, kernel))
            many = rng.random((700, shape[0]))
            same(core.einsum("ij,jk->ik", many, image), numpy.einsum("ij,jk->ik", many, image))
    finally:
        assert core.share() >= before


def test_what_does_not_fit_is_refused() -> None:
    """Lengths and strides that lead out of an operand, or say nothing, compute nothing."""
    x, y, out = numpy.ones((4, 64)), numpy.ones(4), numpy.zeros(64)
    fine = (4, 64), (512, 8), (8, 0), (0, 8)
    assert core.contract(x, y, out, *fine) and (out == 4).all()
    wrong = [
        ((5, 64), *fine[1:]), ((4, 65), *fine[1:]), (fine[0], (520, 8), *fine[2:]), (fine[0], fine[1], (16, 0), fine[3]),
        (*fine[:3], (8, 8)), ((4, -64), *fine[1:]), ((0, 64), *fine[1:]), (fine[0], (-512, 8), *fine[2:]), ((), (), (), ()),
        ((64,), (8,), (0,), (8, 0)), (fine[0], (512.0, 8), *fine[2:]), ((2**62, 64), (0, 8), (0, 0), (0, 8)),
    ]  # fmt: skip
    out[:] = 0
    for given in wrong:
        try:
            assert not core.contract(x, y, out, *given)
        except TypeError:
            assert any(type(n) is float for part in given for n in part)
    assert not core.contract(x.astype("f4"), y, out, *fine) and not core.contract(x, y, out[::-1], *fine[:3], (0, -8))
    assert not core.contract(x, y, memoryview(out), *fine) and not out.any()
    out.flags.writeable = False
    assert not core.contract(x, y, out, *fine)


WRONG = ["ij,jk", "ijk,ij", "ij,i.", "ij,ij->k", "ij,ij->ii", "i1,ij", "", "ij,ij,ij", "ij", ",ij", "ij,ij->ij->", "iĳ,ij"]


@pytest.mark.parametrize("subscripts", WRONG)
def test_errors_are_numpys(subscripts: str) -> None:
    given = numpy.ones((30, 40)), numpy.ones((30, 40))
    with pytest.raises(Exception) as theirs:
        numpy.einsum(subscripts, *given)
    with pytest.raises(type(theirs.value)) as ours:
        core.einsum(subscripts, *given)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("function", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid", None, 1])
def test_one_array_slides_along_another(function: str, mode: str | int | None) -> None:
    """NumPy's bits where it sums in order; else those of sums in order, of many results and not with ``numerics="numpy"``."""
    rng = numpy.random.default_rng(0)
    ours, theirs = getattr(core, function), getattr(numpy, function)
    given = () if mode is None else (mode,)
    for n, m, dtype in itertools.product((300, 60_000, 210_000), (1, 2, 4, 5, 10, 11, 12, 13, 40), ("f8", "f4")):
        a, v = (rng.random(n) - 0.5).astype(dtype), (rng.random(m) - 0.5).astype(dtype)
        for x, y in ((a, v), (v, a), (a[::-1], v), (a[::2], v[::-1])):
            wanted = theirs(x, y, *given)
            found = ours(x, y, *given)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            if m <= 11 or n < config.costly_above:
                assert found.tobytes() == wanted.tobytes()
            numpy.testing.assert_allclose(found, wanted, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-4 if dtype == "f4" else 1e-13)
    if mode is not None:
        assert ours(a, v, mode=mode).tobytes() == ours(a, v, mode).tobytes()
    with config.override(numerics="numpy"):
        assert ours(a, v, *given).tobytes() == theirs(a, v, *given).tobytes()


def test_what_slides_is_summed_in_c() -> None:
    a, v = numpy.ones(210_000), numpy.ones(40)
    for function in (numpy.convolve, numpy.correlate):
        assert contraction.correlation(function, a, v, "full") is not None
        assert contraction.correlation(function, a[:9000], v[:7], "same") is not None
        for x, y in [(a[:9000], v), (a, a[:600]), (a.astype(int), v), (v, a), (a, v[:, None])]:
            assert contraction.correlation(function, x, y, "full") is None
        assert contraction.correlation(function, a, v, "f") is None


@pytest.mark.parametrize("function", ["convolve", "correlate"])
def test_errors_of_what_slides_are_numpys(function: str) -> None:
    a, v = numpy.ones(210_000), numpy.ones(40)
    for args, named in [((a, v, "no"), {}), ((a, v[:0]), {}), ((a[:, None], v), {}), ((a, v), {"mood": 1}), ((a,), {}), ((a, v, 1, 2), {})]:
        with pytest.raises(Exception) as theirs:
            getattr(numpy, function)(*args, **named)
        with pytest.raises(type(theirs.value)) as ours:
            getattr(core, function)(*args, **named)
        assert str(ours.value) == str(theirs.value)
