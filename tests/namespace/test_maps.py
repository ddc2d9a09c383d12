"""Arrays that are files: what is recorded of a map is computed from the file, and results go to it, in less memory than either takes."""

from __future__ import annotations

import operator
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.values import allocator

ROWS, COLUMNS = 400, 500
A = numpy.random.default_rng(3).random((ROWS, COLUMNS))


@pytest.fixture
def mapped(tmp_path: Path) -> Any:
    numpy.save(tmp_path / "a.npy", A)
    return lazynp.load(tmp_path / "a.npy", mmap_mode="r+")


def on_disk(x: Any) -> Any:
    x.flush()
    return numpy.load(x.filename)


def equal(ours: Any, theirs: Any) -> None:
    found = numpy.asarray(ours)
    assert (found.shape, found.dtype) == (theirs.shape, theirs.dtype)
    numpy.testing.assert_allclose(found, theirs, rtol=1e-12)


def test_operations_are_recorded_and_copy_nothing(mapped: Any) -> None:
    report.reset()
    before = allocator.memory()["in_use"]
    y = (lazynp.sin(mapped) ** 2 + mapped).mean(axis=0)
    assert isinstance(mapped, lazynp.memmap) and type(y) is lazynp.ndarray
    assert not report.forced and not report.fallbacks
    assert allocator.memory()["in_use"] - before < A.nbytes // 2
    equal(y, (numpy.sin(A) ** 2 + A).mean(axis=0))


@pytest.mark.parametrize("key", ["::2", "::-1", ":, ::3", "5:90:7, 100:", ":, 3", "::-2, ::-1", "..., None", "7", "[3, 1]", "A > .5"])
def test_parts_of_maps(mapped: Any, key: str) -> None:
    part = eval(f"A[{key}]", {"A": A})
    ours = eval(f"x[{key}]", {"x": mapped, "A": A})
    equal(ours * 2 + 1, part * 2 + 1)
    equal(ours.sum(axis=0), part.sum(axis=0))


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda np, x: x + 1,
    lambda np, x: 1 - x,
    lambda np, x: x.T * 2,
    lambda np, x: x @ x.T[:, :5],
    lambda np, x: np.concatenate([x, x * 2]),
    lambda np, x: np.sort(x, axis=1),
    lambda np, x: np.where(x > 0.5, x, 0),
    lambda np, x: x.std(axis=0),
    lambda np, x: np.var(x, axis=1),
    lambda np, x: x.astype("f4").cumsum(axis=1),
    lambda np, x: np.percentile(x, 30, axis=0),
    lambda np, x: np.add.reduce(x, axis=1),
    lambda np, x: np.reshape(x, (-1, 10)).max(axis=1),
    lambda np, x: np.broadcast_to(x, (2, *x.shape)).sum(axis=0),
    lambda np, x: np.einsum("ij,ij->i", x, x),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls_give_numpys_values(mapped: Any, number: int) -> None:
    found = numpy.asarray(CALLS[number](lazynp, mapped))
    expected = CALLS[number](numpy, A)
    assert found.dtype == expected.dtype
    numpy.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == "f4" else 1e-12)
    numpy.testing.assert_allclose(numpy.asarray(CALLS[number](numpy, mapped)), expected, rtol=1e-6)


def set_row(x: Any) -> None:
    x[3] = 7


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda np, x: operator.setitem(x, 3, 7),
    "slice": lambda np, x: operator.setitem(x, np.s_[:, ::2], np.arange(250.0) * 2),
    "mask": lambda np, x: operator.setitem(x, x > 0.5, 0),
    "positions": lambda np, x: operator.setitem(x, ([1, 2], [3, 4]), np.ones(2)),
    "shifted": lambda np, x: operator.setitem(x, np.s_[1:], x[:-1] + x[1:]),
    "iadd": lambda np, x: operator.iadd(x, 1),
    "out": lambda np, x: np.multiply(x, x[0], out=x),
    "reversed out": lambda np, x: np.add(x[::-1], x, out=x),
    "out of part": lambda np, x: np.sqrt(np.arange(500.0), out=x[5]),
    "where": lambda np, x: np.add(x, 1, out=x, where=x > 0.5),
    "cumsum": lambda np, x: np.cumsum(x, axis=0, out=x),
    "reduce": lambda np, x: np.add.reduce(x, axis=0, out=x[7]),
    "at": lambda np, x: np.add.at(x, (np.array([0, 0]), np.array([1, 1])), 5.0),
    "copyto": lambda np, x: np.copyto(x, np.arange(500.0)),
    "put": lambda np, x: np.put(x, [3, 600], 9.0),
    "fill": lambda np, x: x.fill(3),
    "sort": lambda np, x: x.sort(axis=1),
    "reshaped": lambda np, x: operator.setitem(x.reshape(-1), np.s_[5:10], 4),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("piece", [1 << 24, 1 << 16])
def test_writes_go_to_the_file_and_what_was_recorded_before_stays(
    mapped: Any, name: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lazynp.namespace.routines.maps.PIECE_BYTES", piece)
    pending, total, copy, shown = lazynp.exp(mapped) + mapped, mapped.sum(), lazynp.array(mapped), lazynp.asarray(mapped)
    WRITES[name](lazynp, mapped)
    expected = A.copy()
    WRITES[name](numpy, expected)
    equal(on_disk(mapped), expected)
    equal(mapped * 1, expected)
    equal(pending, numpy.exp(A) + A)
    equal(total, A.sum())
    equal(copy, A)
    equal(shown, expected)


def test_an_array_made_of_a_map_is_no_map(mapped: Any) -> None:
    x = lazynp.array(mapped)
    numpy.asarray(x)[0, 0] = 99
    x[1] = 98
    assert (x[0, 0], x[1, 1]) == (99, 98)
    equal(on_disk(mapped), A)
    equal(pickle.loads(pickle.dumps(mapped)), A)


def test_read_only_maps_refuse_writes_as_numpys(tmp_path: Path) -> None:
    numpy.save(tmp_path / "a.npy", A)

    def refusals(np: Any) -> list[str]:
        found = []
        x = np.load(tmp_path / "a.npy", mmap_mode="r")
        for write in (set_row, lambda x: operator.iadd(x, 1), lambda x: np.add(x, 1, out=x), lambda x: x.fill(0)):
            with pytest.raises(ValueError) as refused:
                write(x)
            found.append(str(refused.value))
        with pytest.raises(TypeError) as cast:
            np.add(x, 1j, out=np.load(tmp_path / "a.npy", mmap_mode="c"))
        return [*found, str(cast.value)]

    assert refusals(lazynp) == refusals(numpy)


@pytest.mark.parametrize(("dtype", "order"), [("f8", "F"), (">f8", "C"), ("i4", "C"), ("S3", "C"), ("c16", "F"), ("?", "C")])
def test_kinds_of_maps(tmp_path: Path, dtype: str, order: Any) -> None:
    def program(np: Any) -> Any:
        x = np.memmap(tmp_path / np.__name__, dtype, "w+", shape=(300, 400), order=order)
        x[:] = np.arange(400)
        x.flush()
        x = np.memmap(tmp_path / np.__name__, dtype, "r", offset=400, shape=(40, 400)) if order == "C" and dtype != "S3" else x
        return (x == x[0]).sum(), x[3:5] if dtype == "S3" else x * 2 + x[::-1]

    for ours, theirs in zip(program(lazynp), program(numpy), strict=True):
        assert numpy.array_equal(numpy.asarray(ours), theirs) and numpy.asarray(ours).dtype == theirs.dtype


LARGER_THAN_MEMORY = """
import resource, sys
import numpy, lazynp as np

def private():  # bytes that RLIMIT_DATA counts: mapped files are not among them
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))

def program(x, y):
    mean = (np.sin(x) ** 2).mean(axis=0)
    np.multiply(x, 2, out=y)
    y += 1
    y[1:] = x[1:] + 1
    y.flush()
    return numpy.asarray(mean), float(y.sum())

folder, rows = sys.argv[1], 4096
np.save(folder + "/small.npy", np.arange(8192.0 * 16).reshape(16, 8192))
program(np.load(folder + "/small.npy", mmap_mode="r"), np.memmap(folder + "/smaller", float, "w+", shape=(16, 8192)))
resource.setrlimit(resource.RLIMIT_DATA, (private() + (64 << 20), -1))
x = np.lib.format.open_memmap(folder + "/large.npy", "w+", float, (rows, 8192)).view(np.memmap)
x[...] = np.arange(8192.0) + np.arange(float(rows))[:, None]
x.flush()
try:
    numpy.ones(x.shape)
except MemoryError:
    print("a limit")
mean, total = program(np.load(folder + "/large.npy", mmap_mode="r"), np.memmap(folder + "/larger", float, "w+", shape=x.shape))
expected = sum(numpy.sin(numpy.arange(8192.0) + k) ** 2 for k in range(rows)) / rows
print(abs(mean - expected).max() < 1e-12, total == 8192 * rows * (8191 + rows - 1) / 2 + 8192 * rows + 8192 * 8191 / 2)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mappings on Linux only")
@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_a_file_of_four_times_the_memory_limit(tmp_path: Path, tier: str) -> None:
    environment = {**os.environ, "LAZYNP_TIER": tier}
    done = subprocess.run(
        [sys.executable, "-c", LARGER_THAN_MEMORY, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == ["a", "limit", "True", "True"], done.stderr


# The map as an array --------------------------------------------------------------------------------------------------------------------

SHOWN: dict[str, Callable[[Any, Any], Any]] = {
    "asarray": lambda np, x: np.asarray(x),
    "asanyarray": lambda np, x: np.asanyarray(x),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray(x),
    "require": lambda np, x: np.require(x, float, "C"),
    "array": lambda np, x: np.array(x, copy=False),
    "array where needed": lambda np, x: np.array(x, copy=None, subok=True),
    "of the same dtype": lambda np, x: np.asarray(x, "f8"),
    "astype": lambda np, x: x.astype(float, copy=False),
    "ravel": lambda np, x: np.ravel(x),
    "reshape": lambda np, x: np.asarray(x).reshape(2, -1),
    "part": lambda np, x: np.asarray(x[1:]),
    "every other": lambda np, x: np.asarray(x[::2]),
    "part of the array": lambda np, x: np.asarray(x)[2:5],
    "diagonal": lambda np, x: np.diagonal(x[:4].reshape(2, 2)),
    "broadcast": lambda np, x: np.broadcast_to(x, (2, x.size)),
    "strided": lambda np, x: np.lib.stride_tricks.as_strided(x, (3,)),
    "masked": lambda np, x: np.ma.asarray(x).data,
    "a copy": lambda np, x: np.array(x),
    "another dtype": lambda np, x: np.asarray(x, "f4"),
}


@pytest.mark.parametrize("mode", ["w+", "r", "c"])
@pytest.mark.parametrize("n", [6, 1_000_000])
@pytest.mark.parametrize("name", SHOWN)
def test_arrays_of_a_map_are_its_memory(tmp_path: Path, name: str, n: int, mode: str) -> None:
    found = []
    for np in (numpy, lazynp):
        path = tmp_path / np.__name__
        x = np.memmap(path, float, "w+", shape=(n,))
        x[:] = np.arange(n)
        x = x if mode == "w+" else np.memmap(path, float, mode, shape=(n,))
        y = SHOWN[name](np, x)
        flags = y.flags.writeable, y.flags.owndata, y.base is None, bool(np.shares_memory(x, y))
        if flags[0]:
            y[...] = 7
        if mode != "r":
            x[1] = 8
        found.append((y.shape, flags, numpy.asarray(y).ravel()[:4].tolist(), numpy.asarray(x)[:4].tolist(), float((y * 2).ravel()[1])))
        del x, y
        found[-1] += (numpy.fromfile(path)[:4].tolist(),)
    assert found[0] == found[1]


ARRAY_WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "iadd": lambda np, x: operator.iadd(x, 1),
    "out": lambda np, x: np.multiply(x, 2, out=x),
    "slice": lambda np, x: operator.setitem(x, slice(1, 3), 9),
    "positions": lambda np, x: operator.setitem(x, [0, 1], 5),
    "mask": lambda np, x: operator.setitem(x, x < 2, 5),
    "fill": lambda np, x: x.fill(3),
    "sort": lambda np, x: x[::-1].sort(),
    "copyto": lambda np, x: np.copyto(x, 4),
    "at": lambda np, x: np.add.at(x, [0, 0], 1),
    "of itself": lambda np, x: operator.setitem(x, slice(None), np.sqrt(x + 1)),
}


@pytest.mark.parametrize("n", [6, 1_000_000])
@pytest.mark.parametrize("name", ARRAY_WRITES)
def test_writes_to_an_array_of_a_map_go_to_the_file(tmp_path: Path, name: str, n: int) -> None:
    found = []
    for np in (numpy, lazynp):
        m = np.memmap(tmp_path / np.__name__, float, "w+", shape=(n,))
        m[:] = np.arange(n)
        before, total = np.exp(-m) + m, m.sum()
        x = np.asarray(m)
        more = x + 1
        ARRAY_WRITES[name](np, x)
        m.flush()
        assert x.base is m
        values = [numpy.asarray(value)[:5].tolist() for value in (m, x, before, more, x * 2)]
        found.append((values, float(total), float(x.sum()), numpy.fromfile(m.filename)[:5].tolist()))
    assert found[0] == found[1]


def test_arrays_of_a_map_that_nobody_writes_are_read_from_the_file(tmp_path: Path) -> None:
    numpy.save(tmp_path / "a.npy", numpy.arange(1_000_000.0))
    x = lazynp.asarray(lazynp.load(tmp_path / "a.npy", mmap_mode="r"))
    before = allocator.memory()["in_use"]
    y = (x + 1).sum()
    assert allocator.memory()["in_use"] - before < x.nbytes // 2
    assert float(y) == 1_000_000 * 999_999 / 2 + 1_000_000
