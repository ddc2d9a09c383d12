"""Arrays on their way out and in: NumPy's protocols, buffers, DLPack, pickles, copies, files."""

from __future__ import annotations

import copy
import hashlib
import io
import pickle
import zlib
from pathlib import Path
from typing import Any

import joblib
import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.scalars import is_scalar
from lazynp.values import config
from tests.namespace.compare import DTYPES, check

A = numpy.arange(6.0).reshape(2, 3)
SHAPES = [(), (1,), (3,), (2, 3), (0,), (2, 0, 3), (2, 3, 4)]


def lazy(x: Any = A) -> Any:
    """A pending array of the values of ``x``."""
    return lazynp.asarray(x)[...].copy()


def sources() -> list[Any]:
    found = []
    for dtype in DTYPES:
        for shape in SHAPES:
            x = (numpy.arange(numpy.prod(shape, dtype=int)) % 3).reshape(shape).astype(dtype)
            found += [x, x.T, x[::-1] if shape else x]
    return found


# NumPy's protocols --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorded")
def test_asarray_by_numpy_is_the_arrays_memory() -> None:
    for x in (lazy(), lazy().T, lazy()[:, 1:], lazy() + 1):
        first, second = numpy.asarray(x), numpy.asarray(x)
        assert numpy.shares_memory(first, second) and numpy.shares_memory(first, x)
        assert first.strides == x.strides
        first[...] = 7
        assert (x == 7).all() and (second == 7).all()


def test_readonly_arrays_are_exported_readonly() -> None:
    x = lazy()
    x.flags.writeable = False
    for seen in (numpy.asarray(x), numpy.asarray(x[1:]), numpy.asarray(lazynp.broadcast_to(lazy(), (4, 2, 3))), numpy.asarray(x.data)):
        assert not seen.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            seen[...] = 0
    with pytest.raises((ValueError, BufferError, TypeError)):
        io.BytesIO(b"123").readinto(x)


def test_scalars_are_copied_as_numpys_are() -> None:
    for x in (lazy().sum(), lazy().max() > 3, lazy()[0].sum() + 1j):
        made = numpy.asarray(x)
        assert made.shape == () and made.flags.writeable
        made[...] = 0
        assert x != 0
        with pytest.raises(ValueError, match="copy"):
            numpy.asarray(x, copy=False)


def test_arrays_on_a_device_hold_numbers() -> None:
    for data in (["yes", "no"], [None], numpy.array(["a"]), numpy.array(["2020-01-01"], "M8[D]")):
        with pytest.raises(TypeError, match="an array on a device holds numbers"):
            lazynp.asarray(data, device="cpu")
        assert lazynp.asarray(data).dtype == numpy.asarray(data).dtype
    for data in ([1, 2], [True], 2j, numpy.float16(3)):
        assert type(lazynp.asarray(data, device="cpu")) is lazynp.ndarray


@pytest.mark.usefixtures("recorded")
def test_array_protocol_takes_dtype_and_copy() -> None:
    for x in (lazy(), lazy().sum()):
        want = numpy.asarray(A if x.shape else A.sum())
        assert x.__array__("f4").dtype == "float32"
        assert x.__array__(copy=True).flags.writeable
        assert numpy.array_equal(x.__array__(numpy.int64), want.astype(int))
        with pytest.raises(ValueError, match="copy"):
            x.__array__("f4", copy=False)
        with pytest.raises(ValueError, match="copy"):
            numpy.asarray(x, "f4", copy=False)
    assert numpy.asarray(lazy(), copy=False).tolist() == A.tolist()
    made = numpy.array(lazy())
    made[0, 0] = 9
    assert made.flags.owndata


def test_values_arrive_in_every_dtype_shape_and_order() -> None:
    for x in sources():
        y = lazynp.asarray(x)
        for got in (numpy.asarray(y), numpy.array(y), pickle.loads(pickle.dumps(y)), copy.copy(y), copy.deepcopy(y), y.data):
            seen = numpy.asarray(got)
            assert seen.dtype == x.dtype
            assert numpy.array_equal(seen, x)
        described = y.__array_interface__
        assert (described["shape"], described["typestr"]) == (x.shape, x.dtype.str)
        assert (y.tobytes(), y.tobytes("F"), bytes(y)) == (x.tobytes(), x.tobytes("F"), x.tobytes())
        assert y.tolist() == x.tolist()


@pytest.mark.usefixtures("recorded")
def test_buffer_protocol() -> None:
    x = lazy()
    for view in (x.data, lazy().T.T.data, memoryview(x)):
        assert (view.shape, view.format, view.readonly) == ((2, 3), "d", False)
        assert view.tolist() == A.tolist()
    assert x.T.data.strides == A.T.data.strides
    assert x.sum().data.tobytes() == A.sum().tobytes()
    assert io.BytesIO(x.data).read() == A.tobytes()
    x.data[1, 2] = 9
    assert x[1, 2] == 9


def test_everything_that_takes_a_buffer_takes_an_array() -> None:
    for x in sources():
        y = lazynp.asarray(x)
        view, like = memoryview(y), memoryview(x)
        assert (view.shape, view.format, view.readonly) == (like.shape, like.format, like.readonly)
        assert not x.size or all(n == 1 or a == b for n, a, b in zip(x.shape, view.strides, y.strides, strict=True))
        assert view.tobytes() == like.tobytes()
    x = lazy()
    assert hashlib.sha256(x).digest() == hashlib.sha256(A).digest()
    assert bytearray(x) == bytes(x) == A.tobytes()
    assert zlib.crc32(x) == zlib.crc32(A)
    assert io.BytesIO(bytes(48)).readinto(x) == 48
    assert not x.any()
    for theirs, ours in ((A.T, lazy().T), (A[:, ::2], lazy()[:, ::2])):
        with pytest.raises((ValueError, BufferError)) as want:
            hashlib.sha256(theirs)
        with pytest.raises(want.type):
            hashlib.sha256(ours)


@pytest.mark.usefixtures("recorded")
def test_array_wrap_and_deletion() -> None:
    x = lazy()
    assert type(x.__array_wrap__(A)) is lazynp.ndarray
    assert is_scalar(x.__array_wrap__(numpy.array(1.0), None, True))
    with pytest.raises(ValueError, match="cannot delete array elements"):
        del x[0]


# DLPack ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorded")
def test_dlpack_out() -> None:
    for x in sources():
        if x.size and (x.strides == numpy.ascontiguousarray(x).strides or x.ndim > 1):
            assert numpy.array_equal(numpy.from_dlpack(lazynp.asarray(x)), x)
    for options in ({}, {"copy": False}):
        x = lazy()
        numpy.from_dlpack(x, **options)[0, 0] = 5
        assert x[0, 0] == 5
    x = lazy()
    numpy.from_dlpack(x, copy=True)[0, 0] = 5
    assert x[0, 0] == 0
    x.flags.writeable = False
    assert not numpy.from_dlpack(x).flags.writeable
    assert numpy.from_dlpack(lazy().T, device="cpu").strides == A.T.strides
    assert lazy().__dlpack_device__() == A.__dlpack_device__()


def test_dlpack_versions() -> None:
    x = lazy()
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0), copy=True, dl_device=(1, 0)))
    assert "versioned" not in repr(x.__dlpack__())
    assert "versioned" not in repr(x.__dlpack__(max_version=(0, 8)))
    for options in ({"copy": False}, {"copy": False, "max_version": (0, 8)}):
        assert "versioned" not in repr(x.__dlpack__(**options))
    with pytest.raises((BufferError, ValueError)):
        x.__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        A.__dlpack__(stream=1)
    with pytest.raises(theirs.type):
        x.__dlpack__(stream=1)


def test_dlpack_in() -> None:
    theirs = A.copy()
    x = lazynp.from_dlpack(theirs)
    theirs[0, 0] = 7
    assert type(x) is lazynp.ndarray and x[0, 0] == 7
    y = lazy()
    z = lazynp.from_dlpack(y)
    z[0, 0] = 5
    assert y[0, 0] == 5
    z = lazynp.from_dlpack(y, copy=True)
    z[0, 0] = 6
    assert y[0, 0] == 5
    assert lazynp.shares_memory(lazynp.from_dlpack(A, copy=False), A)
    with pytest.raises(ValueError):
        lazynp.from_dlpack(y, device="cuda")
    check(lambda np: np.from_dlpack([1]))
    check(lambda np: np.from_dlpack(np.arange(3.0), device="cpu"))


# Pickles and copies -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int) -> None:
    x = lazy()
    for value in (x, x.T, x[:, ::2], x.sum(), x.sum(0), lazynp.array(3.0), lazynp.zeros((0, 3))):
        got = pickle.loads(pickle.dumps(value, protocol))
        assert got.__class__ is value.__class__
        assert got.tolist() == value.tolist()
    for value in (lazynp.add, lazynp.float64, lazynp.ndarray):
        assert pickle.loads(pickle.dumps(value, protocol)) is value
    first, second = pickle.loads(pickle.dumps([x, x], protocol))
    assert first is second


def test_pickles_with_buffers_out_of_band() -> None:
    buffers: list[Any] = []
    x = lazy()
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert pickle.loads(data, buffers=buffers).tolist() == A.tolist()


def test_copies_share_nothing() -> None:
    x = lazy()
    x.flags.writeable = False
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.copy(), lazynp.array(x)):
        assert other.flags.writeable
        other[0, 0] = 9
    assert x.tolist() == A.tolist()
    y = [x, x, {"x": x}]
    z = copy.deepcopy(y)
    assert z[0] is z[1] is z[2]["x"] and z[0] is not x


def _row_sums(x: Any) -> Any:
    return x.sum(axis=1) * 2


@pytest.mark.slow
@pytest.mark.usefixtures("recorded")
def test_joblib(tmp_path: Path) -> None:
    value = {"a": [lazy(), lazy().sum()], "b": lazy().T}
    for compress in (0, 3):
        joblib.dump(value, tmp_path / "dumped", compress=compress)
        got = joblib.load(tmp_path / "dumped")
        assert type(got["a"][0]) is lazynp.ndarray and is_scalar(got["a"][1])
        assert (got["a"][0].tolist(), got["a"][1], got["b"].tolist()) == (A.tolist(), 15.0, A.T.tolist())
    assert joblib.hash(lazy()) == joblib.hash(lazy()) != joblib.hash(lazy() + 1)
    for backend in ("threading", "loky"):
        got = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(_row_sums)(lazy() + k) for k in range(3))
        assert [x.tolist() for x in got] == [_row_sums(A + k).tolist() for k in range(3)]


# Files -----------------------------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    x = lazy() * 1
    report.reset()
    lazynp.save(tmp_path / "x.npy", x)
    lazynp.savez(tmp_path / "x.npz", x, y=x.T)
    lazynp.savez_compressed(tmp_path / "c.npz", x=x)
    lazynp.savetxt(tmp_path / "x.txt", x, fmt="%.3f", delimiter=",")
    (x + 0).tofile(tmp_path / "x.bin")
    x.dump(tmp_path / "x.pickle")
    for got in (
        lazynp.load(tmp_path / "x.npy"), lazynp.load(tmp_path / "c.npz")["x"], lazynp.loadtxt(tmp_path / "x.txt", delimiter=","),
        lazynp.genfromtxt(tmp_path / "x.txt", delimiter=","), lazynp.fromfile(tmp_path / "x.bin").reshape(2, 3),
        lazynp.load(tmp_path / "x.pickle", allow_pickle=True), pickle.loads(x.dumps()), numpy.load(tmp_path / "x.npy"),
    ):  # fmt: skip
        assert numpy.array_equal(got, A)
    assert type(lazynp.load(tmp_path / "x.npy")) is lazynp.ndarray
    assert numpy.load(tmp_path / "x.npz")["y"].flags.f_contiguous
    with lazynp.load(tmp_path / "x.npz") as archive:
        assert sorted(archive) == ["arr_0", "y"] and isinstance(archive, numpy.lib.npyio.NpzFile)
        assert {type(value) for value in archive.values()} == {type(archive.f.y)} == {lazynp.ndarray}
    assert not report.fallbacks


def test_memory_maps(tmp_path: Path) -> None:
    lazynp.save(tmp_path / "x.npy", lazy())
    mapped = lazynp.load(tmp_path / "x.npy", mmap_mode="r+")
    assert isinstance(mapped, lazynp.memmap)
    report.reset()
    y = lazynp.sqrt(mapped) + mapped
    assert type(y) is lazynp.ndarray
    assert not report.fallbacks
    mapped[0] = lazynp.zeros(3)
    mapped.flush()
    assert numpy.load(tmp_path / "x.npy").tolist() == [[0, 0, 0], [3, 4, 5]]
    assert numpy.allclose(y, numpy.sqrt(A) + A)
    fresh = lazynp.memmap(tmp_path / "m.bin", "f8", "w+", shape=(3,))
    fresh[:] = lazynp.arange(3.0) * 2
    fresh.flush()
    assert lazynp.fromfile(tmp_path / "m.bin").tolist() == [0.0, 2.0, 4.0]


READERS = [
    "np.frombuffer(b'abcdefgh', 'u1', 3, 2)", "np.frombuffer(b'abcdefgh', 'f8')", "np.frombuffer(b'abc', 'f8')", "np.frombuffer(b'', 'f8')",
    "np.frombuffer(b'abcdefgh', 'u1').flags.writeable", "np.frombuffer(np.arange(3.0).tobytes())", "np.fromstring('1 2 3', sep=' ')",
    "np.fromstring('1,2', dtype='i4', sep=',')", "np.fromiter((k * k for k in range(4)), 'f4')", "np.fromiter(range(9), int, count=3)",
    "np.fromiter([1, 2], int, count=3)", "np.loadtxt(io.StringIO('1,2\\n3,4'), delimiter=',', unpack=True)",
    "np.loadtxt(io.StringIO('# c\\n1 2\\n3 4'), dtype='i4', usecols=1)", "np.loadtxt(io.StringIO('1 x'))",
    "np.genfromtxt(io.StringIO('1,,3'), delimiter=',')", "np.array(array.array('d', [1, 2]))",
    "np.asarray(memoryview(b'abc'))",
    "np.asarray(bytearray(b'abc'))", "array.array('d', np.arange(3.0))", "np.array2string(a, precision=2)", "np.array_repr(a + 0.123)",
    "np.array_str(a)", "np.array2string(a, formatter={'float': lambda v: f'<{v}>'})", "a.item(1, 2), a.item((0, 1)), a.item(4)", "a.item()",
    "a.item(9)",
    "np.array([5]).item(), np.array(5).item(), a.sum().item()", "a.tolist(), a[0, 0].tolist(), np.array(3).tolist()", "a.item('x')",
    "a.tobytes(), a.tobytes('F'), a.T.tobytes(), a[:, ::2].tobytes()", "a.astype('i2').tobytes()", "list(a[0]), tuple(a[0])",
    "np.fromregex(io.StringIO('1 2'), r'(\\d) (\\d)', [('a', int), ('b', int)])['a'].tolist()", "bytes(a), bytes(np.arange(3, dtype='u1'))",
    "np.load(io.BytesIO(b'nonsense'))", "np.load('/nonexistent.npy')", "np.array(a, copy=None).shape, np.asarray(a).shape",
]  # fmt: skip


@pytest.mark.parametrize("text", READERS)
def test_readers_and_writers(text: str) -> None:
    import array

    report.reset()
    check(lambda np: eval(text, {"np": np, "io": io, "array": array, "a": np.array(A)}), 0, text)
    assert not report.fallbacks


@pytest.mark.usefixtures("recorded")
def test_foreign_memory_is_shared() -> None:
    memory = bytearray(A.tobytes())
    x = lazynp.frombuffer(memory)
    before = x + 0
    memory[8:16] = bytes(8)
    assert (x[1], before[1]) == (0, 1)
    x[0] = 1
    assert memory[:8] == numpy.float64(1).tobytes()


KEYS = ("y[m]", "y[m, ...]", "y[i]", "y[i, i * 0]", "y[1:]", "y[..., 0]", "y[()]", "y[m.any(axis=1)]", "y[i[:, None], [0, 2]]")


@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("rows", [0, 3])
def test_keys_of_a_subclass_mean_what_they_mean_for_numpys_arrays(rows: int, below: int) -> None:
    found = []
    with config.override(tape_limit=below):
        for np in (numpy, lazynp):
            asked = []

            class Plain(np.ndarray):  # type: ignore[name-defined, misc]
                pass

            class Own(np.ndarray):  # type: ignore[name-defined, misc]
                def __getitem__(self, key: Any) -> Any:
                    asked.append(type(key).__module__)  # noqa: B023
                    return super().__getitem__(key)

                def __setitem__(self, *arguments: Any) -> None:
                    super().__setitem__(*arguments)

            class Below(Own):
                pass

            for kind in (Plain, Own, Below):
                y = numpy.arange(rows * 4.0).reshape(rows, 4).view(kind)
                m, i = np.zeros((rows, 4)) == 1, np.arange(rows)
                values = [eval(key, {"y": y, "m": m, "i": i}) for key in KEYS]
                assert all(type(value) is kind for value in values)
                y[m] = 5.0
                y[i, 0] = -1.0
                found.append([value.shape for value in values] + [numpy.asarray(value).tolist() for value in [*values, y]])
            found.append(asked)
    assert found[:4] == found[4:]


@pytest.mark.parametrize("below", [0, 6, 16384])
@pytest.mark.parametrize("n", [3, 12, 100_000])
def test_what_frombuffer_shows_is_shared(n: int, below: int) -> None:
    with config.override(tape_limit=below):
        theirs = numpy.zeros(n)
        x = lazynp.frombuffer(memoryview(theirs))
        fixed = lazynp.frombuffer(theirs.tobytes())
        theirs[1] = 5
        x[2] = 7
        assert numpy.shares_memory(x, theirs)
        assert (float(x[1]), theirs[2]) == (5, 7)
        assert x.flags.writeable
        assert not fixed.flags.writeable
        assert x.reshape(1, n).base is x


ADDRESSED = [
    "numpy.frombuffer(a)",
    "numpy.frombuffer(a[2:])",
    "numpy.frombuffer(a, 'u1').view('f8')",
    "numpy.ndarray(a.size, 'f8', a)",
    "numpy.ndarray(a.shape, buffer=a)",
    "numpy.ndarray(3, buffer=a[1:])",
    "numpy.frombuffer(a.reshape(-1, 1))",
    "numpy.asarray(memoryview(a))",
]
UPDATES = [
    "a += 1",
    "a *= 2; a += 1",
    "a[:] = 3",
    "a[1:] = a[:-1]",
    "a[...] = a * 2 + 1",
    "np.add(a, 1, out=a)",
    "a[2] = 5",
    "a.fill(3)",
    "a[::-1].sort()",
    "b = a * 3; b += 1; a += b",
    "a[a > 0] = 7",
]


@pytest.mark.parametrize("n", [4, 6_000, 30_000, 1_000_000])
@pytest.mark.parametrize("shown", ADDRESSED)
def test_what_keeps_an_address_and_no_buffer_is_the_memory(shown: str, n: int) -> None:
    found = []
    for np in (numpy, lazynp):
        for update in UPDATES:
            a = np.arange(n) * 1.0
            a += 0
            names = {"a": a, "np": np, "numpy": numpy}
            view: Any = eval(shown, names)
            exec(update, names)
            seen = view[:4].tobytes(), view[-3:].tobytes()
            others = np.zeros(n) + 4  # where an old value's memory could lie
            waits = a * 2
            view[:] = -1.0  # what has been asked for is of the old value
            found.append((seen, numpy.array(waits).tobytes(), numpy.array(a).tobytes(), float(others.sum())))
    assert found[: len(UPDATES)] == found[len(UPDATES) :]
