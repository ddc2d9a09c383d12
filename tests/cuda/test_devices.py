"""Several GPUs, and GPUs that are full: what only a machine made for it can show."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp import doctor
from lazynp.values import config
from tests.cuda.host import SEEDS, machine, on_host, transfers

A = numpy.arange(600.0).reshape(20, 30)


@pytest.fixture(params=SEEDS)
def two(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param, devices=2) as fake:
        yield fake


def test_two_devices(two: Any) -> None:
    x, y = np.asarray(A, device="cuda:0"), np.asarray(A, device="cuda:1")
    assert (x.device, y.device, (x * 2).device, (y * 2).device) == ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    z = (x + 1).to_device("cuda:1") + y
    assert z.device == "cuda:1"
    numpy.testing.assert_array_equal(z, 2 * A + 1)
    first, second = x * 3, y * 4
    np.realize(first, second)
    numpy.testing.assert_array_equal(first, A * 3)
    numpy.testing.assert_array_equal(second, A * 4)
    assert (first.device, second.device) == ("cuda:0", "cuda:1")
    assert second.__dlpack_device__() == (2, 1)
    assert np.__array_namespace_info__().devices() == ("cpu", "cuda:0", "cuda:1")
    numpy.testing.assert_array_equal(y @ y.T, A @ A.T)
    assert y[y > 3].device == "cuda:1"


@pytest.mark.parametrize("n", [1, 7, 300_000])
def test_a_value_moves_between_gpus_without_the_host(n: int, two: Any) -> None:
    base = numpy.arange(n)  # integers: nobody waits to hear of errors
    x = (np.asarray(base, device="cuda:0") * 2).realize()
    before = transfers()
    y = (x.to_device("cuda:1") + 1).realize()
    z = (x.to_device("cuda:1") * 3).realize()  # the copy that is there
    assert y.device == z.device == "cuda:1"
    moved = {name: count - before.get(name, 0) for name, count in transfers().items() if count != before.get(name, 0)}
    assert moved == {"from cuda:0 to cuda:1": 1}
    numpy.testing.assert_array_equal(y, base * 2 + 1)
    numpy.testing.assert_array_equal(z, base * 6)
    there_and_back = (y.to_device("cuda:0") + x).realize()
    numpy.testing.assert_array_equal(there_and_back, base * 4 + 1)


def test_memory_of_a_value_that_moved_is_not_used_again_too_early(two: Any) -> None:
    base = numpy.arange(50_000)
    found = []
    for k in range(8):
        x = (np.asarray(base, device="cuda:0") + k).realize()
        found.append(x.to_device("cuda:1").realize())
        del x
        (np.asarray(base, device="cuda:0") * -1).realize()  # may have its memory
    for k, y in enumerate(found):
        numpy.testing.assert_array_equal(y, base + k)


def test_a_value_moves_from_another_threads_stream(two: Any) -> None:
    base = numpy.arange(50_000)
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append((np.asarray(base, device="cuda:1") * 5).realize()))
    thread.start()
    thread.join()
    y = made.pop().to_device("cuda:0").realize()
    (np.asarray(base, device="cuda:1") * -1).realize()
    numpy.testing.assert_array_equal(y, base * 5)


MOVES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a part": lambda np, x, v: x.__setitem__(numpy.s_[2:], v[2:]),
    "all": lambda np, x, v: x.__setitem__(numpy.s_[:], v),
    "all, through a view": lambda np, x, v: x[:].__setitem__(..., v),
    "a part, through a view": lambda np, x, v: x[1:].__setitem__(numpy.s_[:3], v[:3]),
    "elements by a stride": lambda np, x, v: x.__setitem__(numpy.s_[::2], v[::2]),
    "out=": lambda np, x, v: np.add(v, 1, out=x),
    "out= of a reduction": lambda np, x, v: np.multiply.accumulate(v, out=x),
    "masked": lambda np, x, v: x.__setitem__(x > 2, v[0]),
    "one number": lambda np, x, v: x.__setitem__(numpy.s_[:], 3),
    "fill": lambda np, x, v: x.fill(2),
    "of the host": lambda np, x, v: x.__setitem__(..., numpy.ones(6)),
    "sorted": lambda np, x, v: x.sort(),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize(("at", "of"), [("cuda:0", "cuda:1"), ("cpu", "cuda:1"), ("cuda:1", "cpu")])
def test_a_write_moves_no_array(name: str, at: str, of: str, two: Any) -> None:
    values = numpy.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.5])
    expected = values * 1
    MOVES[name](numpy, expected, values + 1)
    v = np.asarray(values, device=of) + 1
    x = np.asarray(values, device=at) * 1
    MOVES[name](np, x, v)
    assert (x.device, v.device) == (at, of)
    numpy.testing.assert_array_equal(x, expected)
    assert (x.device, v.device) == (at, of)


PARTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a part": lambda np, x, v: x.__setitem__(numpy.s_[2:], v[2:]),
    "a part, through a view": lambda np, x, v: x[1:].__setitem__(numpy.s_[:3], v[:3]),
    "added": lambda np, x, v: np.add(x, v, out=x),
    "masked": lambda np, x, v: x.__setitem__(x > 2, v[0]),
    "chosen": lambda np, x, v: np.copyto(x, v, where=x > 2),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("default", ["cuda:0", "cuda:1"])
def test_what_is_nowhere_moves_no_array(name: str, default: str, two: Any) -> None:
    values = numpy.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.5])
    expected = values * 1
    PARTS[name](numpy, expected, values + 1)
    config.update(device=default)
    x, v = np.asarray(values, device="cpu") * 1, np.asarray(values) + 1
    PARTS[name](np, x, v)
    numpy.testing.assert_array_equal(v, values + 1)  # on the default device
    assert (x.device, v.device) == ("cpu", default)
    numpy.testing.assert_array_equal(x, expected)
    assert x.device == "cpu"


def test_the_device_of_a_result_that_is_not_computed(two: Any) -> None:
    config.update(device="cuda")
    x, v = np.asarray(A, device="cpu") * 1, np.asarray(A) + 1
    y = x + v
    assert y.device == "cpu"  # as long as nothing of it is on a GPU
    np.realize(v)
    assert (y.device, v.device) == ("cuda:0", "cuda:0")
    np.realize(y)
    assert y.device == "cuda:0"


def test_operands_on_two_devices_are_refused(two: Any) -> None:
    x, y = np.asarray(A, device="cuda:0"), np.asarray(A, device="cuda:1")
    z = x + y
    with pytest.raises(ValueError, match=r"operands are on two devices, cuda:0 and cuda:1") as raised:
        z.realize()
    assert any("test_devices.py" in note for note in raised.value.__notes__)
    with pytest.raises(ValueError, match="two devices"):
        _ = z.device
    numpy.testing.assert_array_equal(x + y.to_device("cuda:0"), 2 * A)


def test_the_device_of_a_block(two: Any) -> None:
    with np.device("cuda:1"):
        x = np.ones((3, 4))
        with np.device("cuda:0"):
            y = np.ones(4)
    assert (x.device, y.device) == ("cuda:1", "cuda:0")
    config.update(device="cuda:1")
    assert (np.ones(3).device, np.__array_namespace_info__().default_device()) == ("cuda:1", "cuda:1")


def test_a_full_device_names_what_fills_it() -> None:
    with machine(seed=0, device_memory=64 << 20):
        kept = [(np.zeros((1 << 20,), device="cuda") + k).realize() for k in range(5)]
        x = np.zeros((1 << 20,), device="cuda").realize()
        words = r"Unable to allocate 32 MiB on cuda:0: .* of 64 MiB are free; the largest arrays there: "
        with pytest.raises(MemoryError, match=words) as raised:
            np.concatenate([x, x, x, x]).realize()
        assert "float64[1048576] (8 MiB)" in str(raised.value)
        assert any("test_devices.py" in note for note in raised.value.__notes__)
        numpy.testing.assert_array_equal(kept[3][:5], [3.0] * 5)
        del kept
        assert np.concatenate([x, x, x, x]).sum() == 0


def test_copies_of_host_arrays_go_when_the_device_is_full() -> None:
    with machine(seed=0, device_memory=64 << 20):
        hosts = [np.asarray(numpy.full(1 << 20, float(k))) for k in range(12)]
        one = np.ones((), device="cuda")
        for turn in range(2):
            for k, x in enumerate(hosts):
                assert (x + one).max() == k + 1, turn
        assert 12 < transfers()["to cuda:0"] <= 24


def test_memory_is_freed_with_its_arrays(two: Any) -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    for _ in range(20):
        x = np.zeros((1 << 17,), device="cuda") + 1
        assert x.sum() == 1 << 17
    del x
    assert pool.used_bytes() < 1 << 20


def test_export_where_another_device_is_current(two: Any) -> None:
    import cupy

    x = np.asarray(A, device="cuda:1") * 2
    capsule = x.__dlpack__(stream=1)  # what libraries call that know nothing of CuPy's current device
    del capsule
    assert cupy.cuda.runtime.getDevice() == 0
    numpy.testing.assert_array_equal(cupy.from_dlpack(x).get(), A * 2)


def test_arrays_of_cupy_where_another_device_is_current(two: Any) -> None:
    import cupy

    with cupy.cuda.Device(1):
        theirs = cupy.asarray(A) + 1
    for take in (np.asarray, np.array, lambda x: np.asarray(x[:, ::2])):
        ours = take(theirs)
        assert ours.device == "cuda:1"
        numpy.testing.assert_array_equal(ours * 2, (A + 1)[:, :: A.shape[1] // ours.shape[1]] * 2)
    with cupy.cuda.Stream():
        ours = np.asarray(theirs)
    numpy.testing.assert_array_equal(ours * 2, (A + 1) * 2)


def test_a_forked_process_has_no_gpu(two: Any) -> None:
    x = (np.asarray(A, device="cuda:0") + 1).realize()
    there, here = os.pipe()
    child = os.fork()
    if child == 0:  # not by pytest's ways: it must not go on with the tests
        said = []
        for use in (lambda: x.tolist(), lambda: (x * 2).tolist(), lambda: np.zeros(3, device="cuda:0").tolist(),
                    lambda: np.zeros(3, device="cuda:1").tolist()):  # fmt: skip
            try:
                said.append(str(use()))
            except (RuntimeError, ValueError) as error:
                said.append(str(error))
        said.append(str(np.arange(3).sum()))
        os.write(here, "\n".join(said).encode())
        os._exit(0)
    os.close(here)
    with open(there, encoding="utf-8") as answer:
        *refused, sum_ = answer.read().split("\n")
    os.waitpid(child, 0)
    assert len(refused) == 4 and all("'spawn'" in text for text in refused) and sum_ == "3"
    numpy.testing.assert_array_equal(x * 2, (A + 1) * 2)


def test_a_device_that_is_too_old() -> None:
    with machine(seed=0, compute_capability=(7, 0)):
        with pytest.raises(ValueError, match=r"compute capability is 7\.0, and CUDA 13 begins with 7\.5"):
            np.zeros(3, device="cuda")
        lines: list[str] = []
        assert doctor.main(lines.append) == 1
        assert "FAILED cuda:0" in "".join(lines)


def test_doctor_runs_a_kernel_on_each_device() -> None:
    with machine(seed=0, devices=2):
        lines: list[str] = []
        assert doctor.main(lines.append) == 0
        text = "".join(lines)
        for number in (0, 1):
            assert f"kernel on cuda:{number}" in text
        assert text.count("compiled, run and right") >= 3
        assert config.device == "cpu"


def test_a_script_on_a_device(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text("import numpy as np\nx = np.arange(6.0).reshape(2, 3)\nprint(x.device, (x @ x.T).sum())\n")
    starter = tmp_path / "start.py"
    starter.write_text(
        "import sys\nfrom gpu_emulator import fakecupy\nfakecupy.install()\n"
        "from lazynp.__main__ import main\n"
        f"sys.argv = ['lazynp', '--device', 'cuda', '--report', {str(script)!r}]\nmain()\n"
    )
    done = subprocess.run([sys.executable, str(starter)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "cuda:0 83.0\n", done.stderr
    assert "copies between host and device" in done.stderr


WRITES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "a number, a row twice": ([1, 1, 2], lambda m: 5),
    "rows, one twice": ([1, 1, 2], lambda m: m.arange(21.0).reshape(3, 7)),
    "elements, one twice": (([0, 0, 5], [1, 1, 6]), lambda m: m.asarray([1, 2, 3])),
    "beside a slice": (([-1, -1], slice(1, 3)), lambda m: 7),
    "behind a slice": ((slice(None), [1, -1, 1]), lambda m: m.arange(18.0).reshape(6, 3)),
    "behind an ellipsis": ((..., [0, 0]), lambda m: m.arange(12).reshape(6, 2)),
    "beside a number": ((1, [2, 2]), lambda m: m.asarray([8, 9])),
    "beside a new axis": ((None, [1, 2]), lambda m: 3),
    "of two axes": ((numpy.array([[0, 1], [1, 0]]), 2), lambda m: m.asarray([[1, 2], [3, 4.0]])),
    "out of range": ([9], lambda m: 1),
    "out of range, negative": ([0, -9], lambda m: 1),
    "too many": (([0], [0], [0]), lambda m: 1),
    "values of another shape": ([1, 2], lambda m: m.arange(3.0)),
    "a mask of rows": (([True] * 3 + [False] * 3,), lambda m: 2),
    "nothing": ([], lambda m: 3),
}


@pytest.mark.parametrize("name", WRITES)
def test_indexed_writes_are_numpys(two: Any, name: str) -> None:
    key, value = WRITES[name]
    found: list[Any] = []
    for m in (numpy, np):
        with np.device("cuda"):
            x = m.asarray(A[:6, :7].copy())
            views = x.T[1:4], x[::-1]
            before = x * 2
            try:
                x[key] = value(m)
                views[0][[0, 0, 2]] = x[[1, 2, 3], :6] - 1
                views[1][m.asarray([5, 5])] = 9
            except (IndexError, ValueError) as error:
                found.append((type(error), str(error)))
            found.append([numpy.asarray(part).tolist() for part in (x, *views, before)])
    half = len(found) // 2
    assert found[:half] == found[half:]


def test_indexed_writes_keep_their_meaning(two: Any) -> None:
    expected = A.copy()
    x = np.asarray(A, device="cuda")
    x[[3, 3, 5]] = numpy.arange(90.0).reshape(3, 30)
    expected[[3, 3, 5]] = numpy.arange(90.0).reshape(3, 30)
    numpy.add.at(expected, ([0, 0, 0], [1, 1, 2]), 10)
    np.add.at(x, (np.asarray([0, 0, 0]), [1, 1, 2]), 10)
    x[x > 500] = -1
    expected[expected > 500] = -1
    numpy.testing.assert_array_equal(x, expected)
    assert x.device == "cuda:0"
    assert not on_host()
