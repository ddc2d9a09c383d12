"""Files, bytes, text and other libraries' arrays: what is written is NumPy's, what is read is ours."""

from __future__ import annotations

import io
import pathlib
import pickle
import types

import numpy
import pytest

import lazynp
from tests.namespace.compare import check


@pytest.fixture(autouse=True)
def _no_fallback() -> object:
    lazynp.set_fallback("error")
    yield
    lazynp.set_fallback("silent")


def test_save_and_load(tmp_path: pathlib.Path) -> None:
    x = lazynp.arange(6.0).reshape(2, 3) + 1
    lazynp.save(tmp_path / "x.npy", x)
    lazynp.savez(tmp_path / "x.npz", x, t=x.T, n=lazynp.sum(x))
    lazynp.savez_compressed(tmp_path / "y.npz", x=[x, x])
    found = lazynp.load(tmp_path / "x.npy")
    assert type(found) is lazynp.ndarray
    assert found.tolist() == x.tolist()
    with lazynp.load(tmp_path / "x.npz") as archive:
        assert isinstance(archive, numpy.lib.npyio.NpzFile)
        assert sorted(archive) == ["arr_0", "n", "t"]
        assert all(type(value) is lazynp.ndarray for value in archive.values())
        assert archive["t"].tolist() == x.T.tolist()
        assert archive.f.n == 21
    assert lazynp.load(tmp_path / "y.npz")["x"].shape == (2, 2, 3)
    assert type(lazynp.load(tmp_path / "x.npy", mmap_mode="r")) is lazynp.memmap
    assert numpy.load(tmp_path / "x.npy").flags.c_contiguous


def test_text(tmp_path: pathlib.Path) -> None:
    def run(np: types.ModuleType) -> object:
        path = tmp_path / "x.txt"
        np.savetxt(path, np.arange(6.0).reshape(2, 3) / 3, fmt="%.3f", header="h")
        return (
            np.loadtxt(path),
            np.loadtxt(path, unpack=True, usecols=(0, 2)),
            np.genfromtxt(path, skip_header=1),
            np.fromstring("1, 2, 3", sep=","),
            np.fromregex(path, r"(\d)\.", [("n", "i8")])["n"],
            path.read_text(),
        )

    check(run)
    check(lambda np: np.loadtxt(io.StringIO("1 x")))
    check(lambda np: np.load(io.BytesIO(b"nothing")))


@pytest.mark.usefixtures("recorded")
def test_bytes(tmp_path: pathlib.Path) -> None:
    def run(np: types.ModuleType) -> object:
        path = tmp_path / "x.bin"
        x = np.arange(5, dtype="int16")
        x.tofile(path)
        y = np.frombuffer(bytes(range(8)), "uint16", offset=2)
        return np.fromfile(path, "int16"), np.fromfile(path, "int16", 2, offset=2), y, y.flags.writeable, np.frombuffer(x, "uint8")

    check(run)
    check(lambda np: np.frombuffer(b"123", "int64"))
    memory = bytearray(8)
    x = lazynp.frombuffer(memory, "uint8")
    x[0] = 1
    memory[1] = 2
    assert (memory[0], x[1], (x * 2).tolist()[:2]) == (1, 2, [2, 4])
    with pytest.raises(ValueError, match="read-only"):
        lazynp.frombuffer(bytes(8), "uint8")[0] = 1


def test_iterables() -> None:
    def run(np: types.ModuleType) -> object:
        x = np.arange(4.0)
        return np.fromiter(x, float), np.fromiter((v * 2 for v in x), "f4"), np.fromiter(iter([1, 2]), int, count=1), np.fromiter([], int)

    check(run)


def test_other_libraries() -> None:
    foreign = numpy.arange(4.0)
    x = lazynp.from_dlpack(foreign)
    assert type(x) is lazynp.ndarray
    x[0] = 5
    assert foreign[0] == 5
    lazynp.from_dlpack(foreign, copy=True)[0] = 6
    assert foreign[0] == 5
    y = lazynp.arange(3)
    same = lazynp.from_dlpack(y)
    assert same.base is y
    y[0] = 7
    assert same[0] == 7
    assert lazynp.from_dlpack(y, copy=True).base is None
    with pytest.raises(AttributeError):
        lazynp.from_dlpack([1])
    assert numpy.shares_memory(lazynp.from_dlpack(foreign, copy=False), foreign)


def test_dumps(tmp_path: pathlib.Path) -> None:
    x = lazynp.arange(3) + 1
    x.dump(tmp_path / "x")
    with open(tmp_path / "y", "wb") as file:
        x.dump(file)
    for data in ((tmp_path / "x").read_bytes(), (tmp_path / "y").read_bytes(), x.dumps()):
        assert pickle.loads(data).tolist() == [1, 2, 3]


@pytest.mark.usefixtures("recorded")
def test_what_is_written_is_forced_under_its_name() -> None:
    from lazynp.graph import report

    report.reset()
    lazynp.save(io.BytesIO(), lazynp.arange(3.0) + 1)
    assert {row.name for row in report.forced.values()} == {"save"}
    assert not report.fallbacks
