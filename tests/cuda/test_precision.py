"""TF32, where it is asked for: cuBLAS's mode is set around such products and set back, and nothing else is rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from gpu_emulator.fakecupy import library as imitated
from lazynp.values import config
from tests.cuda.host import EMULATED, SEEDS, machine, on_host
from tests.in_turns import in_threads

RNG = numpy.random.default_rng(0)
A, B = RNG.standard_normal((20, 30)).astype("f"), RNG.standard_normal((30, 9)).astype("f")
STACK, HALVES = RNG.standard_normal((4, 5, 6)).astype("f"), RNG.standard_normal((4, 6, 5)).astype("e")
pytestmark = pytest.mark.skipif(not EMULATED, reason="looks at the imitation's handles")


@pytest.fixture(params=SEEDS, ids="seed {}".format)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The modes that cuBLAS was set to."""
    seen: list[int] = []
    whole = imitated.setMathMode
    import gpu_emulator.fakecupy.namespace as namespace

    def noted(handle: int, mode: int) -> None:
        seen.append(mode)
        whole(handle, mode)

    monkeypatch.setattr(namespace.modules()["cupy"].cuda.cublas, "setMathMode", noted)
    return seen


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda")


def cut(x: Any) -> Any:
    """What tensor cores take of single precision: 10 bits of mantissa, rounded to even."""
    mantissa, exponent = numpy.frexp(x.astype("d"))
    return numpy.ldexp(numpy.rint(mantissa * 2.0**11), exponent - 11).astype("f")


PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "@": lambda np, a, b: a @ b,
    "matmul": lambda np, a, b: np.matmul(a, b),
    "vectors": lambda np, a, b: a @ b[:, 0],
    "dot": lambda np, a, b: np.dot(a, b),
    "inner": lambda np, a, b: np.inner(a, b.T),
    "tensordot": lambda np, a, b: np.tensordot(a, b, axes=1),
    "einsum": lambda np, a, b: np.einsum("ij,jk->ik", a, b),
    "a stack": lambda np, a, b: a[:4].reshape(2, 2, 30) @ b,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, modes: list[int]) -> None:
    with machine(seed=0):
        a, b = there(A), there(B)
        exact = numpy.asarray(PRODUCTS[name](np, a, b))
        assert not modes
        with np.cuda.tf32():
            rounded = PRODUCTS[name](np, a, b)
        assert not modes  # nothing was computed yet
        rounded = numpy.asarray(rounded)
        assert modes == [imitated.TF32, 0] and imitated.getMathMode(imitated.get_cublas_handle()) == 0
        assert not on_host()
    numpy.testing.assert_allclose(exact, PRODUCTS[name](numpy, A, B), rtol=1e-5, atol=1e-5)
    numpy.testing.assert_allclose(rounded, PRODUCTS[name](numpy, cut(A), cut(B)), rtol=1e-5, atol=1e-5)
    assert numpy.abs(rounded - exact).max() > 1e-4


def test_complex_numbers(modes: list[int]) -> None:
    with machine(seed=0), np.cuda.tf32():
        rounded = numpy.asarray(there(A + 1j * A) @ there(B))
    assert modes == [imitated.TF32, 0]
    numpy.testing.assert_allclose(rounded, (cut(A) + 1j * cut(A)) @ cut(B), rtol=1e-5, atol=1e-5)


def test_what_has_more_digits_or_is_no_product_is_never_rounded(gpu: Any, modes: list[int]) -> None:
    with np.cuda.tf32():
        x, y = there(A.astype("d")), there(B.astype("d"))
        numpy.testing.assert_allclose(numpy.asarray(x @ y), A.astype("d") @ B.astype("d"), 1e-13)
        numpy.testing.assert_array_equal(numpy.asarray(there(A) * there(A)), A * A)
        numpy.testing.assert_allclose(numpy.asarray(np.linalg.inv(there(A[:, :20]))), numpy.linalg.inv(A[:, :20]), rtol=1e-3)
    assert not modes


def test_where_a_product_is_written_counts(gpu: Any, modes: list[int]) -> None:
    a, b = there(A), there(B)
    plain = a @ b
    with np.cuda.tf32():
        inside = a @ b
        with np.cuda.tf32(False):
            within = a @ b
        plain = numpy.asarray(plain)
    within, inside = numpy.asarray(within), numpy.asarray(inside)
    numpy.testing.assert_array_equal(plain, within)
    assert numpy.abs(inside - plain).max() > 1e-4
    assert modes == [imitated.TF32, 0]


def test_for_a_whole_program(gpu: Any, modes: list[int]) -> None:
    assert config.parse({"LAZYNP_TF32": "1"})["tf32"] and not config.parse({})["tf32"]
    with config.override(tf32=True):
        numpy.asarray(there(A) @ there(B))
        assert modes == [imitated.TF32, 0]
        with np.cuda.tf32(False):
            numpy.asarray(there(A + 1) @ there(B))
        assert modes == [imitated.TF32, 0]


def test_the_mode_of_others_is_set_back(gpu: Any, modes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    handle = cupy.cuda.get_cublas_handle()
    cupy.cuda.cublas.setMathMode(handle, 1)
    with np.cuda.tf32():
        numpy.asarray(there(A) @ there(B))
    assert modes == [1, imitated.TF32, 1]

    def broken(*args: Any) -> Any:
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")

    monkeypatch.setattr(cupy, "matmul", broken)
    with np.cuda.tf32():  # NumPy computes it
        numpy.testing.assert_allclose(numpy.asarray(there(A + 1) @ there(B)), (A + 1) @ B, 1e-5, 1e-5)
    assert modes[3:] == [imitated.TF32, 1]
    assert cupy.cuda.cublas.getMathMode(handle) == 1


def test_threads_have_their_own(gpu: Any) -> None:
    a, b = there(A), there(B)
    expected = [numpy.asarray(a @ b), cut(A) @ cut(B)]

    def work(number: int) -> None:
        with np.cuda.tf32(bool(number % 2)):
            for k in range(3):
                found = numpy.asarray((a + k) @ b)
                if not k:
                    numpy.testing.assert_allclose(found, expected[number % 2], 1e-5, 1e-5)

    in_threads(4, work)


def test_stacks_of_half_precision_lose_nothing(gpu: Any, modes: list[int]) -> None:
    """CuPy multiplies them as float32: tensor cores take every bit that they have."""
    halves = STACK.astype("e")
    found = numpy.asarray(there(halves) @ there(HALVES))
    assert modes == [imitated.TF32, 0]
    every = numpy.arange(1 << 16).astype("u2").view("e").astype("f")
    every = every[numpy.isfinite(every)]
    numpy.testing.assert_array_equal(cut(every), every)
    numpy.testing.assert_allclose(found, halves.astype("f") @ HALVES.astype("f"), rtol=2e-3, atol=2e-3)
    numpy.asarray(there(halves[0]) @ there(HALVES[0]))  # a single product is float16's own
    assert modes == [imitated.TF32, 0]


def test_on_the_processor_nothing_changes() -> None:
    with np.cuda.tf32():
        found = np.asarray(A) @ np.asarray(B)
        numpy.testing.assert_array_equal(numpy.asarray(found), A @ B)
    assert repr(np.cuda.tf32(False)) == "lazynp.cuda.tf32(False)"
