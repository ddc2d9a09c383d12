"""What the array API standard asks beyond NumPy; the suite of ``python -m conformance array-api`` asks for much more, where it is there."""

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from conformance import conflicts
from lazynp.namespace.standard import EXCHANGED, KEYWORDS, VERSIONS, namespace_of
from lazynp.values import config

X = numpy.array([[3.0, 1.0, 2.0, 1.0], [0.0, -0.0, 5.0, 5.0]])
MODES: list[dict[str, Any]] = [{}, {"tier": "compiled"}, {"backend": "numpy"}, {"eager": True}]


# The namespace ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [lazynp.ones(2), namespace_of(lazynp).sum(lazynp.ones(2)), lazynp.ones((2, 2)).T])
def test_every_array_names_the_same_namespace(x: Any) -> None:
    for version in (None, *VERSIONS):
        assert x.__array_namespace__(api_version=version) is namespace_of(lazynp)
    with pytest.raises(ValueError, match="not supported"):
        x.__array_namespace__(api_version="1999.12")
    assert x.device == x.to_device("cpu").device == "cpu"
    with pytest.raises(ValueError):
        x.to_device("cuda")


def test_inspection() -> None:
    info, theirs = lazynp.__array_namespace_info__(), numpy.__array_namespace_info__()
    assert lazynp.__array_api_version__ == VERSIONS[-1]
    assert info.capabilities() == theirs.capabilities()
    assert info.devices() == (info.default_device(),) == ("cpu",)
    assert info.default_dtypes() == info.default_dtypes(device="cpu") == theirs.default_dtypes()
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric", None)
    for kind in (*kinds, ("bool", "integral"), ("unsigned integer",), ()):
        found = info.dtypes(kind=kind)
        assert found == theirs.dtypes(kind=kind)
        assert all(type(dtype) is type(numpy.dtype(name)) for name, dtype in found.items())
    for refused in ({"kind": "text"}, {"device": "cuda"}):
        with pytest.raises(ValueError):
            info.dtypes(**refused)


CREATION = (
    "arange(3)", "asarray([1])", "empty(2)", "empty_like(x)", "eye(2)", "full(2, 1)", "full_like(x, 1)", "linspace(0, 1, 3)", "ones(2)",
    "ones_like(x)", "zeros(2)", "zeros_like(x)", "from_dlpack(x)", "astype(x, 'f4')", "fft.fftfreq(4)", "fft.rfftfreq(4)",
)  # fmt: skip


@pytest.mark.parametrize("call", CREATION)
def test_devices_are_understood_or_refused(call: str) -> None:
    names = {"np": lazynp, "x": lazynp.ones(2)}
    for device in ("None", "'cpu'", "x.device"):
        assert eval(f"np.{call[:-1]}, device={device})", names).device == "cpu"
    with pytest.raises(ValueError, match="cuda"):
        eval(f"np.{call[:-1]}, device='cuda')", names)


# Keywords that NumPy has not ------------------------------------------------------------------------------------------------------


def test_the_tables_name_what_is_there() -> None:
    for path, keywords in KEYWORDS.items():
        function: Any = lazynp
        for part in path.split("."):
            function = getattr(function, part)
        for name, default in keywords.items():
            parameter = inspect.signature(function).parameters[name]
            assert (parameter.kind, parameter.default) == (inspect.Parameter.KEYWORD_ONLY, default)
    assert [*inspect.signature(lazynp.clip).parameters][:3] == ["a", *EXCHANGED["clip"].values()]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float64", "complex64", "bool", "datetime64[D]", "O"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_descending(dtype: str, axis: int | None) -> None:
    theirs = numpy.resize(X, (3, 5)).astype("i8" if dtype[0] == "d" else "f8").astype(dtype)
    ours = lazynp.asarray(theirs)
    ascending = numpy.sort(theirs, axis, stable=True)
    wanted = numpy.flip(ascending, -1 if axis is None else axis)
    assert numpy.array_equal(numpy.asarray(lazynp.sort(ours, axis=axis, descending=True)), wanted)
    order = numpy.asarray(lazynp.argsort(ours, axis=axis, descending=True))
    flat = theirs.ravel() if axis is None else theirs
    along = 0 if axis is None else axis
    assert numpy.array_equal(numpy.take_along_axis(flat, order, along), wanted)
    found, order = numpy.moveaxis(numpy.take_along_axis(flat, order, along), along, -1), numpy.moveaxis(order, along, -1)
    assert (order[..., 1:] > order[..., :-1])[found[..., 1:] == found[..., :-1]].all()  # equal elements keep their order


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u4", "i2", "D"])
@pytest.mark.parametrize("values", ["few", "different", "equal", "nan"])
def test_argsort_is_stable(dtype: str, values: str) -> None:
    random = numpy.random.default_rng(0)
    n = 6000  # longer than what NumPy's own stable sort is called for
    x: Any = random.integers(0, 9, (2, n))
    if values == "different":
        x = random.permutation(2 * n).reshape(2, n)
    elif values == "equal":
        x = numpy.zeros((2, n))
    elif values == "nan":
        x = numpy.where(random.random((2, n)) < 0.2, numpy.nan if dtype[0] in "fD" else 7, random.integers(0, 99, (2, n)))
    x = x.astype(dtype)
    for axis, a in ((-1, x), (0, numpy.ascontiguousarray(x.T)), (None, x)):
        wanted = numpy.argsort(a, axis, stable=True)
        for options in ({}, {"stable": True}, {"kind": "mergesort"}):
            assert numpy.array_equal(numpy.asarray(lazynp.argsort(lazynp.asarray(a), axis, **options)), wanted)


def test_sorts_of_nothing() -> None:
    for x in (lazynp.zeros((0, 3)), lazynp.zeros((3, 0))):
        assert lazynp.sort(x, axis=0, descending=True).shape == lazynp.argsort(x, axis=0, descending=True).shape == x.shape
    assert lazynp.argsort(lazynp.asarray(3), descending=True).tolist() == [0]
    with pytest.raises(numpy.exceptions.AxisError):
        lazynp.sort(lazynp.asarray(3), descending=True)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str, n: int) -> None:
    theirs, ours = getattr(numpy.fft, name), getattr(lazynp.fft, name)
    for d in (1.0, 0.3, 2):
        wanted = theirs(n, d)
        got = ours(n, d)
        assert got.dtype == wanted.dtype and numpy.array_equal(numpy.asarray(got), wanted)
        narrow = ours(n, d=d, dtype=lazynp.float32)
        assert narrow.dtype == "f4" and numpy.array_equal(numpy.asarray(narrow), wanted.astype("f4"))
    for arguments in ((2.5,), (0,), (n, 0)):
        with pytest.raises((ValueError, ZeroDivisionError)) as error:
            theirs(*arguments)
        with pytest.raises(error.type):
            ours(*arguments)


def test_bounds_by_both_names() -> None:
    x = lazynp.arange(6)
    for found in (lazynp.clip(x, 1, 4), lazynp.clip(x, a_min=1, a_max=4), lazynp.clip(x, min=1, max=4)):
        assert found.tolist() == [1, 1, 2, 3, 4, 4]
    assert lazynp.clip(x, max=3).tolist() == [0, 1, 2, 3, 3, 3]


def test_limits_of_arrays() -> None:
    for dtype in ("f4", "f8", "c8", "c16"):
        x = lazynp.ones(2, dtype)
        assert lazynp.finfo(x).dtype == lazynp.finfo(x[0]).dtype == lazynp.finfo(x.sum()).dtype == numpy.finfo(dtype).dtype
    for dtype in ("i1", "u8"):
        assert lazynp.iinfo(lazynp.ones(2, dtype)).max == numpy.iinfo(dtype).max
    for refused in (lazynp.ones(2), lazynp.ones(2, bool)):
        with pytest.raises(ValueError):
            lazynp.iinfo(refused)


def test_diagonals_beyond_the_matrix() -> None:
    for k in (-(2**70), -4, -3, 0, 2, 3, 2**63):
        assert lazynp.eye(3, 2, k=k).tolist() == numpy.eye(3, 2, k=k).tolist()


def test_dlpack_shares_what_may_not_be_copied() -> None:
    class Old:
        """A consumer of the old protocol."""

        def __init__(self, x: Any) -> None:
            self.x = x

        def __dlpack__(self, **options: Any) -> Any:
            return self.x.__dlpack__(copy=False)

        def __dlpack_device__(self) -> Any:
            return self.x.__dlpack_device__()

    x = lazynp.arange(4.0) + 1
    assert numpy.shares_memory(numpy.from_dlpack(Old(x)), numpy.asarray(x))
    for readonly in (lazynp.broadcast_to(x, (2, 4)), numpy.broadcast_to(numpy.arange(4.0), (2, 4))):
        for options in ({}, {"copy": False}, {"max_version": (0, 5)}):
            with pytest.raises(BufferError):
                readonly.__dlpack__(**options)
        assert not numpy.from_dlpack(readonly).flags.writeable
    assert not numpy.shares_memory(numpy.from_dlpack(x, copy=True), numpy.asarray(x))


def test_lazy_scalars_are_indexed_as_arrays_without_axes() -> None:
    for key in (..., None, (), True, numpy.False_, [True], lazynp.asarray(False), (None, ...), 0, [0], slice(None), (0,), 1.5):
        wanted, got = numpy.ones(3).sum(), lazynp.ones(3).sum()
        try:
            expected = wanted[numpy.asarray(key) if isinstance(key, lazynp.ndarray) else key]
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                got[key]
        else:
            assert (got[key].shape, got[key].dtype) == (expected.shape, expected.dtype)


# Where the standard and NumPy disagree: conformance/conflicts.md ------------------------------------------------------------------------

NUMBERS = (0.0, -0.0, 1.5, -2.0, 700.0, -800.0, numpy.inf, -numpy.inf, numpy.nan)
COMPLEX = numpy.array([complex(a, b) for a, b in itertools.product(NUMBERS, NUMBERS)])


def bits(z: Any) -> list[str]:
    """Values that compare with their zeros' signs; a NaN is a NaN."""
    return [str(numpy.copysign(part, 1) if part != part else part) for x in numpy.ravel(z) for part in (x.real, x.imag)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["F", "D"])
@pytest.mark.parametrize("name", ["expm1", "tanh"])
def test_special_values(name: str, dtype: str, mode: dict[str, Any]) -> None:
    z = COMPLEX.astype(dtype)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"), config.override(**mode):
        warnings.simplefilter("ignore")
        function = getattr(lazynp, name)
        wanted = bits(conflicts.function(name)(z))
        ours = lazynp.asarray(z)
        for found in (function(ours), function(ours[::-1])[::-1], function(z), [function(x) for x in z], [function(x) for x in ours]):
            assert bits(numpy.asarray(found)) == wanted
        out = lazynp.array(z)
        function(out, out=out)
        assert bits(numpy.asarray(out)) == wanted
        for k in range(z.size):
            sums = [x[k : k + 1].sum() for x in (ours, z)]
            assert bits(numpy.asarray(function(sums[0]))) == bits(conflicts.function(name)(sums[1]))


def test_the_table_of_special_values_is_true() -> None:
    with numpy.errstate(all="ignore"):
        for name, rows in conflicts.values().items():
            different = [bits(x) != bits(y) for x, y in zip(getattr(numpy, name)(COMPLEX), conflicts.function(name)(COMPLEX), strict=True)]
            listed = numpy.any([row.hits(COMPLEX) for row in rows], axis=0)
            assert not (numpy.array(different) & ~listed).any()
            assert numpy.array(different).any()


def test_floor_division_stays_numpys() -> None:
    a, b = numpy.array([[numpy.inf, -numpy.inf, 1.0, -1.0], [2.0, -2.0, -numpy.inf, numpy.inf]])
    with numpy.errstate(all="ignore"):
        for x, y in ((lazynp.asarray(a), lazynp.asarray(b)), (lazynp.asarray(a), b), (a, lazynp.asarray(b))):
            assert numpy.array_equal(numpy.asarray(x // y), a // b, equal_nan=True)


def test_other_conflicts_stay_numpys() -> None:
    assert lazynp.linalg.eigvals(lazynp.eye(2, dtype="f4")).dtype == "f4"
    assert lazynp.linalg.eig(lazynp.eye(2)).eigenvectors.dtype == "f8"
    assert isinstance(lazynp.finfo("f4").eps, numpy.float32) and isinstance(lazynp.finfo("c8").max, numpy.float32)


def test_explained_tests_have_a_heading() -> None:
    assert len(conflicts.tests()) == 22
    assert all("::test_" in test and heading for test, heading in conflicts.tests().items())


def test_matrix_powers_are_no_fallback() -> None:
    a = numpy.array([[2.0, 1.0], [0.0, 3.0]])
    with config.override(fallback="error"):
        for dtype in ("f4", "f8", "D", "i8"):
            for n in (0, 1, 2, 3, 5, -1, -4):
                x = numpy.stack([a, a.T]).astype(dtype)
                wanted, got = numpy.linalg.matrix_power(x, n), lazynp.linalg.matrix_power(lazynp.asarray(x), n)
                assert got.dtype == wanted.dtype and numpy.allclose(numpy.asarray(got), wanted, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1500,), (40, 41), (3, 17, 40), (2000, 2), (1, 2500)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint32", "uint64", "int8", "bool"])
def test_argsort_is_stable_along_every_axis(dtype: str, shape: tuple[int, ...]) -> None:
    rng = numpy.random.default_rng(7)
    x = rng.integers(0, 40, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(shape) < 0.1] = numpy.nan
        x[rng.random(shape) < 0.1] = -0.0
    for theirs in (x, x[::-1], x.T, numpy.asfortranarray(x)):
        ours = lazynp.array(theirs)
        for axis in range(-x.ndim, x.ndim):
            for options in ({}, {"kind": "stable"}):
                found, want = lazynp.argsort(ours, axis=axis, **options), numpy.argsort(theirs, axis=axis, kind="stable")
                assert found.dtype == want.dtype and numpy.array_equal(found, want)
                assert found.strides == numpy.argsort(numpy.array(theirs), axis=axis, kind="stable").strides
