"""The host side of the CUDA backend: where values live, what is copied, what runs where, and how errors come out."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from gpu_emulator.fakecupy import kernels as imitated
from lazynp.backends.cuda import compiler, launch, library, memory
from lazynp.codegen import pipeline
from lazynp.graph import report
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values import config
from tests.cuda.host import SEEDS, machine, on_host, transfers
from tests.in_turns import in_threads

RNG = numpy.random.default_rng(5)
A = RNG.standard_normal((40, 30))
B = RNG.standard_normal((40, 30))
S = numpy.s_
V = RNG.integers(-50, 50, 1000)


@pytest.fixture(params=SEEDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


@pytest.fixture
def one(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=0) as fake:
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda")


def check(found: Any, expected: Any, exact: bool = True) -> None:
    assert found.device == "cuda:0"
    assert found.shape == numpy.shape(expected) and found.dtype == numpy.asarray(expected).dtype
    if exact:
        numpy.testing.assert_array_equal(found, expected)
    else:
        numpy.testing.assert_allclose(found, expected, rtol=1e-12)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda np, a, b, v: (a + b) * a - b / 3,
    "views": lambda np, a, b, v: a.T[::-2, 3:] + b[3:, ::-1].T[::2],
    "rows": lambda np, a, b, v: (a - a.max(axis=1, keepdims=True)) * 2,
    "integers": lambda np, a, b, v: (v * v % 7).sum() + v.max(),
    "gathered": lambda np, a, b, v: a[v % 40, v % 30] + b[-1, v % 30],
    "masked": lambda np, a, b, v: v[(v > 3) & (v % 2 == 0)],
    "where": lambda np, a, b, v: np.where(a > b, a, b),
    "joined": lambda np, a, b, v: np.concatenate([a, b[:3]]) * 2,
    "padded": lambda np, a, b, v: np.pad(a, 2)[1:],
    "scalar": lambda np, a, b, v: (a > 0).sum() * 2 + 1,
    "sorted": lambda np, a, b, v: np.sort(a, axis=0)[::2],
    "order": lambda np, a, b, v: np.argsort(v, stable=True),
    "running": lambda np, a, b, v: np.cumsum(v) + np.cumprod(v % 3),
    "empty": lambda np, a, b, v: a[:0] + b[:0],
    "cast": lambda np, a, b, v: (v.astype("f4") * 2).astype("i2"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, gpu: Any) -> None:
    program = PROGRAMS[name]
    check(program(np, there(A), there(B), there(V)), program(numpy, A, B, V))
    assert not on_host() - {"add.scan"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_where_the_gpu_is_the_default(name: str, one: Any) -> None:
    config.update(device="cuda")
    program = PROGRAMS[name]
    check(program(np, np.asarray(A), np.asarray(B), np.asarray(V)), program(numpy, A, B, V))


# Where values live ----------------------------------------------------------------------------------------------------------


def test_homes(one: Any) -> None:
    x, y = there(A), np.asarray(B)
    assert (x.device, y.device, (x + y).device, x.sum().device, x[0].device, x.T.device) == ("cuda:0", "cpu", *["cuda:0"] * 4)
    back = (x + y).to_device("cpu")
    assert back.device == (back * 2).device == (back + y).device == "cpu"
    assert (back + x).device == "cuda:0"
    numpy.testing.assert_array_equal(back * 2, (A + B) * 2)
    assert back.realize().device == "cpu"
    for made in (np.zeros_like(x), np.ones_like(x, shape=(2,)), np.full_like(x.T, 7), np.empty_like(x, dtype="i4")):
        assert made.device == "cuda:0"
    with np.device("cuda:0"):
        inside = [np.zeros(3), np.arange(3), np.asarray(B), np.linspace(0, 1, 4), np.eye(2), np.array([1, 2]), np.fft.fftfreq(4)]
        neutral = y * 2
        assert neutral.device == "cuda:0"
    assert {x.device for x in inside} == {"cuda:0"}
    assert neutral.device == "cpu"
    assert {found.device for found in (np.nonzero(x > 0)[0], np.argwhere(x > 0), x[x > 0], np.unique(x), np.linalg.svd(x)[1])} == {"cuda:0"}
    assert np.__array_namespace_info__().devices() == ("cpu", "cuda:0")
    assert np.astype(y, "f4", device="cuda").device == "cuda:0"


def test_homes_under_a_default(one: Any) -> None:
    config.update(device="cuda")
    x = (np.asarray(A) + 1).to_device("cpu")
    assert x.realize().device == "cpu"
    y = (x * 2).realize()
    assert y.device == "cpu"
    assert (y + there(A)).device == "cuda:0"
    assert not transfers()


def test_a_device_that_is_not_there(one: Any) -> None:
    with pytest.raises(ValueError, match="device 'cuda:99' is not there: this machine has cuda:0"):
        np.ones(2, device="cuda:99")


def test_values_are_copied_once(one: Any) -> None:
    x = np.array(A)  # of ``asarray`` the memory is A's, which may have been written in between
    y = there(B)
    check(x + y, A + B)
    check(x * y, A * B)
    assert transfers() == {"to cuda:0": 2, "from cuda:0": 2}
    z = x - y
    z.tolist()
    for _ in range(3):
        numpy.testing.assert_array_equal(z, A - B)
        z[2, 3], z.tolist()
    assert transfers() == {"to cuda:0": 2, "from cuda:0": 3}
    assert "copies between host and device: 5" in np.report()
    assert "test_host.py" in np.report().split("copies between")[1]
    assert {row["direction"] for row in report.counters()["transfers"]} == {"to cuda:0", "from cuda:0"}


def test_element_writes_work_on_a_host_copy(gpu: Any) -> None:
    x, expected = there(V) * 2, V * 2
    before = x + 0
    for k in range(100):
        x[k] = -k
        expected[k] = -k
    assert x.device == "cuda:0"
    check(x + 1, expected + 1)
    check(before, V * 2)
    large = np.sqrt(there(numpy.arange(20_000.0) ** 2) + 0j)  # computed on the host
    for k in range(3):
        large[k] = -1
        assert large.device == "cuda:0"
        check((large.real + 1)[:4], [0.0] * (k + 1) + [i + 1.0 for i in range(k + 1, 4)])


def test_writes_through_views(gpu: Any) -> None:
    for dtype in ("f8", "f4", "i2", "c16"):
        expected = (A * 10).astype(dtype)
        x = there(expected.copy())
        for key in (S[3:9], S[:, 4], S[1::3, ::-2], S[0, 5:7], S[2:2], S[..., 1]):
            old = x * 1
            was = expected.copy()
            x[key] = x[key] * 2 + 1
            expected[key] = expected[key] * 2 + 1
            check(x, expected)
            check(old, was)


def test_large_arrays_are_written_in_place(gpu: Any) -> None:
    expected = numpy.arange(60_000.0).reshape(300, 200)
    x = there(expected) + 1
    expected = expected + 1
    x.realize()
    for k in range(4):
        x[k * 3 : k * 3 + 2] = k
        expected[k * 3 : k * 3 + 2] = k
        x.realize()
    assert report.work.in_place >= 3
    kept = x.copy()
    kept.realize()
    x[5:7] = -1
    x.realize()
    check(kept, expected)  # somebody wanted the old elements
    expected[5:7] = -1
    check(x, expected)
    x[:, 3] = 5  # reaches over more than half of the memory: a copy is cheaper
    expected[:, 3] = 5
    check(x, expected)


def test_a_failed_run_puts_back_what_it_wrote(gpu: Any) -> None:
    expected = numpy.arange(60_000.0)
    x = there(expected) * 1
    x.realize()
    i = there(numpy.array([1, 2, 70_000])) + 0
    y = x * 1
    y.realize()
    before = y + 0
    y[10:13] = 7
    y[20:23] = there(expected)[i]
    with pytest.raises(IndexError):
        y.realize()
    check(x, expected)
    check(before, expected)


# Errors ------------------------------------------------------------------------------------------------------------------------


def test_indices_out_of_range(gpu: Any) -> None:
    x, i = there(A), there(numpy.array([0, 40]))
    with pytest.raises(IndexError, match="index 40 is out of bounds for axis 0 with size 40") as raised:
        (x[i + 0] * 2).tolist()
    assert any("test_host.py" in note for note in raised.value.__notes__)
    check(x[i - 1] * 2, A[[-1, 39]] * 2)


def test_floating_point_errors_are_numpys(gpu: Any) -> None:
    x = there(numpy.array([1.0, 0.0, -1.0]))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        y = x / 0
        numpy.testing.assert_array_equal(y, [numpy.inf, numpy.nan, -numpy.inf])
        (np.cumsum(there(numpy.array([numpy.inf, -numpy.inf]))) + 0).tolist()
    assert [str(warning.message) for warning in heard] == [
        "divide by zero encountered in divide", "invalid value encountered in divide", "invalid value encountered in accumulate",
    ]  # fmt: skip
    assert all(warning.filename == __file__ for warning in heard)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        x / 0
    with np.errstate(all="ignore"):
        report.reset()
        (x / 0).realize()
        assert not transfers()


def test_parts_of_an_array_are_not_looked_at_on_the_host(one: Any) -> None:
    x, index = there(A) * 1, there(numpy.array([3, 1, 2]))
    np.realize(x, index)
    row = x[3]
    parts = [x[1:, 2:], row, row[4:], x[None, 5], x[..., 0], x[:, None], x[index], x[index, 2:5], x[2 : -1 : 3]]
    x[4] = row * 2
    x[5:7] = 1
    parts += [x**2, index**2]
    np.realize(x, *parts)
    assert set(transfers()) == {"to cuda:0"}
    assert x[4, 5] == A[3, 5] * 2 and x[4][6] == A[3, 6] * 2
    assert transfers()["from cuda:0"] == 1


def test_an_error_is_told_once(gpu: Any) -> None:
    x = there(numpy.array([1.0, 0.0]))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            np.realize(1 / x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            checked = report.work.rechecks
            y = 1 / (x + 1) + x[(x * 1).astype(int)]
            np.realize(y)
            assert report.work.rechecks == checked
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            np.realize(x[(x * 3).astype(int)])
        numpy.testing.assert_array_equal(y, [0.5, 2.0])


def test_a_run_that_fails_leaves_no_words(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, zeros = there(numpy.array([1.0, 0.0])), there(numpy.zeros(A.shape))
    np.realize(1 / (x + 2))
    launched, kernels = launch.DeviceLauncher.launch, [0]

    def failing(self: Any, *arguments: Any) -> None:
        kernels[0] += 1
        if kernels[0] == 2:
            raise MemoryError("none left")
        launched(self, *arguments)

    monkeypatch.setattr(launch.DeviceLauncher, "launch", failing)
    with pytest.raises(MemoryError):
        np.realize(1 / x, 1 / zeros)
    monkeypatch.setattr(launch.DeviceLauncher, "launch", launched)
    np.realize(1 / (x + 2))
    assert kernels == [2] and not report.work.rechecks


def test_errors_of_linear_algebra_are_numpys(one: Any) -> None:
    singular = there(numpy.zeros((3, 3)))
    for call in (lambda: np.linalg.inv(singular), lambda: np.linalg.solve(singular, singular)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            call().tolist()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        np.linalg.cholesky(singular - np.eye(3)).tolist()


def test_where_a_library_of_cuda_fails_numpy_computes(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    class CUSOLVERError(RuntimeError):
        """As the real one."""

    def fail(*_: Any, **__: Any) -> Any:
        raise CUSOLVERError("CUSOLVER_STATUS_INVALID_VALUE")

    def broken(*_: Any, **__: Any) -> Any:
        raise cupy.cuda.runtime.CUDARuntimeError(700)

    monkeypatch.setattr(cupy.linalg, "svd", fail)
    monkeypatch.setattr(cupy.linalg, "inv", fail)
    report.reset()
    numpy.testing.assert_allclose(np.linalg.svd(there(A)).S, numpy.linalg.svd(A).S)
    numpy.testing.assert_allclose(np.linalg.inv(there(A[:30])), numpy.linalg.inv(A[:30]))
    assert on_host() == {"linalg.svd", "linalg.inv"}
    monkeypatch.setattr(cupy.linalg, "inv", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        np.linalg.inv(there(A[:30])).tolist()


@pytest.mark.refused
def test_what_the_compiler_refuses_numpy_computes(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise compiler.CompileError("NVRTC refused a generated module: no")

    monkeypatch.setattr(compiler, "functions", refuse)
    x = there(A)
    with pytest.warns(RuntimeWarning, match="NVRTC refused"):
        y = (x + 1).realize()
    check(y, A + 1)
    assert on_host() == {"a whole program"}
    monkeypatch.undo()
    np.realize(there(B) * 2 + 1)


# Compiling -----------------------------------------------------------------------------------------------------------------------


def test_kernels_are_compiled_once(one: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from lazynp.backends.common import disk_cache

    cache = disk_cache.DiskCache(tmp_path)
    monkeypatch.setattr(disk_cache, "shared", lambda: cache)
    monkeypatch.setattr(imitated.Module, "load_file", None)  # code is loaded from memory
    compiled, loaded = compiler.STATISTICS.compiled, compiler.STATISTICS.loaded
    check(there(A) * 3 + 1, A * 3 + 1)
    check(there(B) * 5 + 2, B * 5 + 2)
    check(there(A[:7]) * 5 + 2, A[:7] * 5 + 2)  # another shape
    assert compiler.STATISTICS.compiled == compiled + 1
    from lazynp.backends.cuda import memory
    from lazynp.engine import realize

    del cache
    cache = disk_cache.DiskCache(tmp_path)
    memory.place("cuda:0").backend.kernels.clear()
    realize.forget_plans()
    check(there(A) * 3 + 1, A * 3 + 1)
    assert (compiler.STATISTICS.compiled, compiler.STATISTICS.loaded) == (compiled + 1, loaded + 1)
    (file,) = tmp_path.glob("*.obj")
    file.write_bytes(file.read_bytes()[:-1] + b"?")  # what fails its checksum is not loaded
    memory.place("cuda:0").backend.kernels.clear()
    realize.forget_plans()
    check(there(A) * 3 + 1, A * 3 + 1)
    assert compiler.STATISTICS.compiled == compiled + 2


def test_wide_indices(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "NARROW", 100)
    x = there(A)
    check(x[3:, 2:] * 2 + x[:-3, :-2], A[3:, 2:] * 2 + A[:-3, :-2])
    y = there(numpy.arange(90.0))
    check(y[1:30] + y[60:89], numpy.arange(90.0)[1:30] + numpy.arange(90.0)[60:89])


def test_indices_that_turn_out_to_be_wide(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels with 64-bit indices divide by extents as they are."""
    monkeypatch.setattr(launch, "NARROW", 20)
    monkeypatch.setattr(launch, "is_wide", lambda item, program: False)
    x = there(A)
    check(x[3:, 2:] * 2 + x[:-3, :-2], A[3:, 2:] * 2 + A[:-3, :-2])


def test_explain_shows_the_loops_of_a_grid(one: Any) -> None:
    assert "threads in each of" in np.explain(there(A) + 1)
    assert "threads in each of" not in np.explain(np.asarray(A) + 1)
    np.kernelize(there(A) + 1).realize()


# Libraries -----------------------------------------------------------------------------------------------------------------------

SQUARE = A[:30] @ A[:30].T + 30 * numpy.eye(30)

BY_CUPY: dict[str, Callable[..., Any]] = {
    "matmul": lambda np, a, s, v: a @ a.T,
    "dot": lambda np, a, s, v: np.dot(a[0], a.T),
    "tensordot": lambda np, a, s, v: np.tensordot(a, a, axes=((0,), (0,))),
    "einsum": lambda np, a, s, v: np.einsum("ij,kj->ik", a, a),
    "sort": lambda np, a, s, v: np.sort(v.reshape(10, 100)),
    "argsort": lambda np, a, s, v: np.argsort(v, kind="stable"),
    "partition": lambda np, a, s, v: np.partition(v, 10)[10:11],
    "searchsorted": lambda np, a, s, v: np.searchsorted(np.sort(v), v),
    "fft": lambda np, a, s, v: np.fft.fft(a),
    "rfft": lambda np, a, s, v: np.fft.rfft(a, axis=0),
    "irfft": lambda np, a, s, v: np.fft.irfft(np.fft.rfft(a)),
    "ifft2": lambda np, a, s, v: np.fft.ifft2(a + 1j),
    "inv": lambda np, a, s, v: np.linalg.inv(s),
    "solve": lambda np, a, s, v: np.linalg.solve(s, a[:30]),
    "det": lambda np, a, s, v: np.linalg.det(s / 30),
    "cholesky": lambda np, a, s, v: np.linalg.cholesky(s),
    "eigvalsh": lambda np, a, s, v: np.linalg.eigvalsh(s),
    "singular values": lambda np, a, s, v: np.linalg.svd(a, compute_uv=False),
    "norm": lambda np, a, s, v: np.linalg.svd(a).S,
    "complex numbers": lambda np, a, s, v: (np.fft.fft(a) * (a - 2j) + 1).conj().real + abs(a * 1j).sum(axis=0),
    "rfftn": lambda np, a, s, v: np.fft.irfftn(np.fft.rfftn(a)),
    "fftn of a size": lambda np, a, s, v: np.fft.ifftn(np.fft.fftn(a, s=(16, 64), axes=(0, 1)), s=(9, 9), axes=(1, 0)),
    "matrix_rank": lambda np, a, s, v: np.linalg.matrix_rank(s, 40.0) + np.linalg.matrix_rank(s, tol=50.0),
    "numbers of NumPy": lambda np, a, s, v: np.linalg.pinv(a, rcond=numpy.finfo("f8").eps * 40),
    "lists of numbers": lambda np, a, s, v: np.fft.irfftn(np.fft.rfftn(a, s=[16, 64], axes=[0, 1]), s=[9, 9], axes=[0, 1]),
    "lstsq": lambda np, a, s, v: np.linalg.lstsq(a, a[:, 0], 1e-9)[0],
    "bincount": lambda np, a, s, v: np.bincount(abs(v)),
    "nanmedian": lambda np, a, s, v: np.nanmedian(np.where(a > 1, np.nan, a), axis=0),
    "unique": lambda np, a, s, v: np.unique(v, return_counts=True)[1],
    "positions": lambda np, a, s, v: np.flatnonzero(v > 10),
}


@pytest.mark.parametrize("name", BY_CUPY)
def test_libraries(name: str, one: Any) -> None:
    call = BY_CUPY[name]
    found, expected = call(np, there(A), there(SQUARE), there(V)), call(numpy, A, SQUARE, V)
    found = np.asarray(found)
    assert found.device == "cuda:0" and found.dtype == numpy.asarray(expected).dtype
    numpy.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert not on_host()
    if name != "positions":
        assert report.work.library_calls >= 1


RUNNING = "maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor logical_and logical_or"


@pytest.mark.parametrize("name", RUNNING.split())
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (64, 3), (4, 33)])
def test_running_extremes(name: str, shape: tuple[int, ...], one: Any) -> None:
    integers = RNG.integers(-9, 9, shape)
    numbers = [RNG.standard_normal(shape), numpy.where(integers > 6, numpy.nan, integers), integers.astype("f4")]
    for x in [integers, integers > 3, integers.astype("u1"), *([] if "bitwise" in name else numbers)]:
        for axis in range(-1, len(shape)):
            expected = getattr(numpy, name).accumulate(x, axis=axis)
            check(getattr(np, name).accumulate(there(x), axis=axis), expected)
    assert not on_host()


def test_products_that_cupy_cannot_index(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "INDEXED", 500)
    v = V[:600].reshape(20, 30)
    for x, counted in ((v, {"matmul"}), (v.astype(float), set())):
        report.reset()
        numpy.testing.assert_array_equal(there(x) @ there(x.T), x @ x.T)
        assert on_host() == counted
    report.reset()
    numpy.testing.assert_array_equal(there(V[:600].astype(float)) @ there(V[:600]), V[:600].astype(float) @ V[:600])
    assert on_host() == {"matmul"}


ON_HOST: dict[str, tuple[Callable[..., Any], str]] = {
    "histogram": (lambda np, a, v: np.histogram(a, "auto")[0], "histogram"),
    "unique": (lambda np, a, v: np.unique(a + 1j), "unique"),
    "matmul of truth values": (lambda np, a, v: (a > 0) @ (a > 0).T, "matmul"),
    "kaiser": (lambda np, a, v: np.i0(a), "i0"),
}


@pytest.mark.parametrize("name", ON_HOST)
def test_what_runs_on_the_host_is_counted(name: str, one: Any) -> None:
    call, counted = ON_HOST[name]
    found = call(np, there(A), there(V))
    numpy.testing.assert_allclose(found, call(numpy, A, V), rtol=1e-12)
    assert found.device == "cuda:0"
    assert any(counted in row for row in on_host()) or name == "kaiser"
    assert not on_host() or "computed on the host" in np.report()


BUILT_ON: dict[str, Callable[..., Any]] = {
    "polyfit": lambda np, a, v: np.polyfit(a[0], a[1], 2),
    "roots": lambda np, a, v: np.sort(abs(np.roots(a[:3].ravel()))),
    "tril_indices": lambda np, a, v: np.tril_indices(5)[0] + v[:15] * 0,
    "triu_indices": lambda np, a, v: np.triu_indices(5)[1] + v[:15] * 0,
    "tril_indices_from": lambda np, a, v: np.tril_indices_from(a[:20, :20], 1)[0] + v[:229] * 0,
    "triu_indices_from": lambda np, a, v: np.triu_indices_from(a[:20, :20])[1] + v[:210] * 0,
    "mask_indices": lambda np, a, v: np.mask_indices(5, np.triu)[0] + v[:15] * 0,
    "inner": lambda np, a, v: np.inner(a, a),
    "vdot": lambda np, a, v: np.vdot(a[0], a[1]),
    "vecdot": lambda np, a, v: np.vecdot(a, a),
    "cumsum": lambda np, a, v: np.cumsum(v),
    "cumprod": lambda np, a, v: np.cumprod(a, axis=0),
    "cumulative_sum": lambda np, a, v: np.cumulative_sum(v),
    "cumulative_prod": lambda np, a, v: np.cumulative_prod(v % 2),
    "nonzero": lambda np, a, v: np.nonzero(a > 0)[1],
    "flatnonzero": lambda np, a, v: np.flatnonzero(v),
    "argwhere": lambda np, a, v: np.argwhere(a > 1),
    "extract": lambda np, a, v: np.extract(v > 3, v),
    "compress": lambda np, a, v: np.compress(a[:, 0] > 0, a, axis=0),
    "matvec": lambda np, a, v: np.matvec(a, a[0]),
    "vecmat": lambda np, a, v: np.vecmat(a[:, 0], a),
    "median": lambda np, a, v: np.median(a, axis=0),
    "percentile": lambda np, a, v: np.percentile(a, [10, 50], axis=1),
    "quantile": lambda np, a, v: np.quantile(a, 0.3),
    "cov": lambda np, a, v: np.cov(a),
    "corrcoef": lambda np, a, v: np.corrcoef(a),
    "linalg.matmul": lambda np, a, v: np.linalg.matmul(a.T, a),
    "linalg.tensordot": lambda np, a, v: np.linalg.tensordot(a, a, axes=((0,), (0,))),
    "linalg.vecdot": lambda np, a, v: np.linalg.vecdot(a, a),
    "linalg.matrix_norm": lambda np, a, v: np.linalg.matrix_norm(a),
    "nanmedian": lambda np, a, v: np.nanmedian(np.where(a > 1, np.nan, a), axis=0),
    "nanpercentile": lambda np, a, v: np.nanpercentile(np.where(a > 1, np.nan, a), 30),
    "nanquantile": lambda np, a, v: np.nanquantile(np.where(a > 1, np.nan, a), [0.1, 0.9], axis=1),
    "put": lambda np, a, v: _after(np.put, a * 1, [3, 3, 5], [1, 2]),
    "put_along_axis": lambda np, a, v: _after(np.put_along_axis, a * 1, np.argmax(a, axis=0, keepdims=True), 7, 0),
    "histogram": lambda np, a, v: np.histogram(a, 10)[0],
    "histogram_bin_edges": lambda np, a, v: np.histogram_bin_edges(v, 7),
    "histogram2d": lambda np, a, v: np.histogram2d(a[0], a[1], 4)[0],
    "histogramdd": lambda np, a, v: np.histogramdd(a[:3].T, 3)[0],
    "digitize": lambda np, a, v: np.digitize(v, [0, 3, 9]),
    "interp": lambda np, a, v: np.interp(a, np.sort(a[0]), a[1]),
    "isin": lambda np, a, v: np.isin(v, v[::2]),
    "unique_all": lambda np, a, v: np.unique_all(v).inverse_indices,
    "unique_counts": lambda np, a, v: np.unique_counts(v).counts,
    "unique_inverse": lambda np, a, v: np.unique_inverse(v % 5).inverse_indices,
    "unique_values": lambda np, a, v: np.sort(np.unique_values(v)),
    "intersect1d": lambda np, a, v: np.intersect1d(v, v[::2]),
    "union1d": lambda np, a, v: np.union1d(v, v + 1),
    "setdiff1d": lambda np, a, v: np.setdiff1d(v, v[::2]),
    "setxor1d": lambda np, a, v: np.setxor1d(v, v[::2] + 1),
    "lexsort": lambda np, a, v: np.lexsort((v, v % 3)),
}


def _after(function: Callable[..., Any], x: Any, *args: Any) -> Any:
    """An array after a function wrote into it."""
    function(x, *args)
    return x


@pytest.mark.parametrize("name", sorted(library.BUILT_ON))
def test_what_is_built_on_the_table(name: str, one: Any) -> None:
    found, expected = np.asarray(BUILT_ON[name](np, there(A), there(V))), BUILT_ON[name](numpy, A, V)
    assert found.device == "cuda:0"
    numpy.testing.assert_allclose(found, expected, rtol=1e-10)
    assert not on_host()


def test_every_row_of_the_table_names_what_there_is() -> None:
    for name in (*library.FUNCTIONS, *library.AT_ONCE):
        found: Any = numpy
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)


# Other libraries -------------------------------------------------------------------------------------------------------------------


def test_cupys_arrays_in_and_out(gpu: Any) -> None:
    import cupy

    x = there(A) + 1
    y = cupy.asarray(x)
    assert y.data.ptr == x.__cuda_array_interface__["data"][0]
    numpy.testing.assert_array_equal(cupy.asnumpy(y), A + 1)
    numpy.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(x.T[2:, ::-1])), (A + 1).T[2:, ::-1])
    z = np.asarray(y * 2)
    check(z, (A + 1) * 2)
    check(z[1:] + x[1:], (A + 1)[1:] * 3)
    w = y * 3
    shared = np.asarray(w)
    assert shared.__cuda_array_interface__["data"][0] == w.data.ptr
    shared[0] = 0  # a write of ours is not seen there
    check(shared[:2], numpy.stack([numpy.zeros(30), (A + 1)[1] * 3]))
    numpy.testing.assert_array_equal(cupy.asnumpy(w), (A + 1) * 3)
    t = np.asarray(cupy.asarray(numpy.asfortranarray(A)).T[::2])
    check(t, A.T[::2])


def test_copies_of_cupys_arrays(gpu: Any) -> None:
    import cupy

    y = cupy.asarray(A)
    copies = [np.array(y), np.asarray(y, copy=True), np.asarray(y, dtype="f4"), np.from_dlpack(y, copy=True), np.array(y.T)]
    copies[2].realize()
    y[...] = 0
    for found, expected in zip(copies, [A, A, A.astype("f4"), A, A.T], strict=True):
        check(found, expected)


def test_dlpack(gpu: Any) -> None:
    import cupy

    x = there(A) * 2
    assert x.__dlpack_device__() == (2, 0)
    y = cupy.from_dlpack(x)
    assert y.data.ptr == x.__cuda_array_interface__["data"][0]
    numpy.testing.assert_array_equal(cupy.asnumpy(y), A * 2)
    z = np.from_dlpack(y)
    assert z.__cuda_array_interface__["data"][0] == y.data.ptr
    check(z + 1, A * 2 + 1)
    assert np.from_dlpack(y, device="cpu").device == "cpu"


def test_what_is_shared_is_not_written(gpu: Any) -> None:
    import cupy

    x = there(numpy.arange(60_000.0)) * 1
    y = cupy.asarray(x)
    x[10:20] = -1
    x.realize()
    assert float(y[15]) == 15.0
    assert float(x[15]) == -1.0


def test_cupys_memory_is_not_written(gpu: Any) -> None:
    import cupy

    theirs = cupy.asarray(numpy.arange(60_000.0))
    x = np.asarray(theirs)
    x[10:20] = -1
    x.realize()
    assert float(x[15]) == -1.0
    assert float(theirs[15]) == 15.0


def test_arrays_of_the_processor_have_no_such_interface(one: Any) -> None:
    there(A).realize()
    assert not hasattr(np.ones(2), "__cuda_array_interface__")
    assert np.ones(2).__dlpack_device__() == (1, 0)


# Threads ------------------------------------------------------------------------------------------------------------------------------


def test_threads_have_streams_of_their_own(gpu: Any) -> None:
    shared = there(A) + 1

    def work(number: int) -> None:
        x, k = shared, number + 1
        for turn in range(5):
            x = x * k + turn
            x[3] = k
            x.realize()
        expected = A + 1
        for turn in range(5):
            expected = expected * k + turn
            expected[3] = k
        check(x, expected)

    in_threads(4, work)
    gc.collect()
    check(shared, A + 1)


def test_threads_hand_memory_over(gpu: Any) -> None:
    """What one thread made and another one reads is not given to a third before it was read."""

    def double() -> None:
        with np.errstate(all="ignore"):
            found.append((given.pop() * 2).realize())

    with np.errstate(all="ignore"):
        for k in range(6):
            given, found = [(there(A) + k).realize()], []
            thread = threading.Thread(target=double)
            thread.start()
            thread.join()
            others = [(there(B) - k).realize() for _ in range(3)]
            check(found[0], (A + k) * 2)
            check(others[2], B - k)


# The device's own --------------------------------------------------------------------------------------------------------------


def test_threads_have_the_streams_of_those_that_ended(gpu: Any) -> None:
    found: list[Any] = []
    for turn in range(5):
        thread = threading.Thread(target=lambda turn=turn: found.append((there(A) + turn).realize()))
        thread.start()
        thread.join()
    for turn, x in enumerate(found):
        check(x + 1, A + turn + 1)
    assert len({x._node.buffer.block.stream.ptr for x in found}) == 1


def test_memory_is_that_of_cupys_allocator(gpu: Any) -> None:
    import cupy

    before, sizes = cupy.cuda.get_allocator(), []
    cupy.cuda.set_allocator(lambda nbytes: (sizes.append(nbytes), before(nbytes))[1])
    try:
        check(there(A) * 2 + numpy.arange(30_000.0).sum(), A * 2 + numpy.arange(30_000.0).sum())
    finally:
        cupy.cuda.set_allocator(before)
    assert sizes.count(A.nbytes) >= 2


def test_a_copy_by_dlpack(gpu: Any) -> None:
    import cupy

    x = there(A) * 2
    for copy in (False, True):
        theirs = cupy.from_dlpack(Exported(x, copy))
        assert (theirs.data.ptr == x._node.buffer.address) is not copy
        numpy.testing.assert_array_equal(cupy.asnumpy(theirs), A * 2)


class Exported:
    """An array that is asked for with ``copy``, as other libraries ask."""

    def __init__(self, x: Any, copy: bool) -> None:
        self.x, self.copy = x, copy

    def __dlpack__(self, **wanted: Any) -> Any:
        return self.x.__dlpack__(**{**wanted, "copy": self.copy})

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


# 227 KiB are 29056 numbers of 64 bits; beside them lie what threads found of a maximum and of a sum.
@pytest.mark.parametrize(("length", "staged"), [(8192, True), (28900, True), (29056, False)])
def test_long_rows_lie_in_shared_memory(length: int, staged: bool, one: Any) -> None:
    x = RNG.standard_normal((3, length))
    softmax = (lambda e: e / e.sum(axis=1, keepdims=True))(numpy.exp(x - x.max(axis=1, keepdims=True)))
    y = (there(x) * 1).realize()
    e = np.exp(y - y.max(axis=1, keepdims=True))
    found = e / e.sum(axis=1, keepdims=True)
    program = Program.of(canonicalise([found._node]))
    (item,) = pipeline.scheduled(program, memory.place("cuda:0").backend).kernels
    counts = [local.count[0] for phase in item.code.phases for local in phase.shared if not local.count.isdigit()]
    assert counts == ["n"] * staged
    check(found, softmax, exact=False)


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_complex_numbers_of_others_are_aligned(start: int, dtype: str, gpu: Any) -> None:
    import cupy

    parts = numpy.arange(11.0).astype(f"f{int(dtype[1:]) // 2}")
    others = cupy.asarray(parts)[start : start + 8].view(dtype)
    assert others.data.ptr % others.itemsize == start % 2 * others.itemsize // 2
    x = np.asarray(others)
    assert memory.place("cuda:0").uploaded(x._node.buffer).address % x.itemsize == 0
    assert (x._node.buffer.address == others.data.ptr) == (start % 2 == 0)  # shared where that can be
    check(x * 2 + 1, parts[start : start + 8].view(dtype) * 2 + 1)


HALVES: dict[str, Callable[..., Any]] = {
    "matmul": lambda np, a, b: a @ b,
    "dot": lambda np, a, b: np.dot(a, b),
    "tensordot": lambda np, a, b: np.tensordot(a, b, axes=1),
    "einsum": lambda np, a, b: np.einsum("ij,jk->ik", a, b),
    "batched": lambda np, a, b: np.stack([a, a + 1]) @ b,
}


@pytest.mark.parametrize("name", HALVES)
def test_products_of_half_precision_stay_on_the_gpu(name: str, one: Any) -> None:
    """cuBLAS adds in float32, in an order of its own: the last place of a result may be another.  NumPy's einsum rounds each sum."""
    a, b = RNG.standard_normal((20, 30)).astype("e"), RNG.standard_normal((30, 9)).astype("e")
    found, expected = HALVES[name](np, there(a), there(b)), HALVES["matmul" if name == "einsum" else name](numpy, a, b)
    assert found.device == "cuda:0" and found.dtype == expected.dtype == numpy.float16
    numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=2e-3, atol=2e-3)
    assert not on_host()


def test_products_of_half_precision_that_overflow_warn(gpu: Any) -> None:
    a = numpy.full((3, 4), 300, "e")
    with pytest.warns(RuntimeWarning, match="overflow encountered in matmul"):
        found = numpy.asarray(there(a) @ there(a.T))
    assert numpy.isinf(found).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numpy.asarray(there(a / 16) @ there(a.T / 16))
