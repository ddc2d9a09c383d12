"""What NumPy itself answers: every name is there, arguments and results are converted, calls are counted, modes are obeyed."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.namespace.bridge.fallback import FallbackError
from tests.namespace.compare import check


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    lazynp.set_fallback("silent")
    report.reset()
    yield
    lazynp.set_fallback("silent")


@pytest.mark.parametrize("module", ["", "linalg", "fft", "random", "polynomial", "ma"])
def test_every_public_name_of_numpy_is_here(module: str) -> None:
    theirs = getattr(numpy, module) if module else numpy
    ours = getattr(lazynp, module) if module else lazynp
    for name in dir(theirs):
        if not name.startswith("_"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = getattr(theirs, name)
                assert callable(getattr(ours, name)) == callable(value), name


def test_numpys_version_is_numpys() -> None:
    assert lazynp.__version__ == numpy.__version__
    assert lazynp.__lazynp_version__ == lazynp.lazynp_version != ""


def test_a_name_numpy_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'numpy' has no attribute 'nonsense'"):
        lazynp.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        lazynp.linalg.nonsense


def test_submodules_import_as_modules() -> None:
    import lazynp.fft as fft
    import lazynp.linalg
    from lazynp.linalg import norm
    from lazynp.random import default_rng

    assert isinstance(fft, types.ModuleType)
    assert norm is lazynp.linalg.norm
    assert type(default_rng(0).normal(size=2)) is lazynp.ndarray


def test_results_are_ours_and_arguments_may_be_nested() -> None:
    x = lazynp.arange(6.0).reshape(2, 3)
    assert type(lazynp.cov(x)) is lazynp.ndarray
    assert type(lazynp.lexsort((x[0], [x[1, 0], x[1, 1], x[1, 2]]))) is lazynp.ndarray
    assert all(type(part) is lazynp.ndarray for part in lazynp.linalg.svd(x))
    assert lazynp.linalg.svd(x).S.shape == (2,)
    assert isinstance(lazynp.median(x), lazynp.float64)


def test_calls_are_counted_with_bytes_and_line() -> None:
    x = lazynp.arange(6)
    lazynp.ma.count(x)
    (row,) = report.fallbacks.values()
    assert (row.name, row.count, row.nbytes) == ("ma.count", 1, 48)
    assert row.site is not None
    assert row.site[0].co_filename == __file__
    assert "ma.count" in lazynp.report()


def test_warn_mode_warns_once_per_function() -> None:
    lazynp.set_fallback("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lazynp.ma.count(lazynp.arange(3))
        lazynp.ma.count(lazynp.arange(3))
    assert [str(warning.message).split(" is")[0] for warning in caught] == ["numpy.ma.count"]
    assert caught[0].filename == __file__


def test_error_mode_raises_and_names_the_line() -> None:
    lazynp.set_fallback("error")
    with pytest.raises(FallbackError, match=r"numpy\.ma\.count .*test_fallback\.py:\d+"):
        lazynp.ma.count(lazynp.arange(3))
    assert lazynp.random.default_rng(0).normal(size=2).shape == (2,)


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'loud'"):
        lazynp.set_fallback("loud")


def test_out_is_written_back_through_a_view() -> None:
    def run(np: types.ModuleType) -> object:
        whole = np.zeros(5)
        found = np.median(np.arange(12.0).reshape(3, 4), axis=0, out=whole[1:])
        return whole, found

    check(run)


def test_foreign_dtypes_stay_numpys() -> None:
    assert type(lazynp.array(["a", "b"])) is numpy.ndarray
    assert type(lazynp.zeros(2, object)) is numpy.ndarray
    assert isinstance(lazynp.array(["a"]), lazynp.ndarray)
    assert (lazynp.array([1, 2], dtype=object) + lazynp.array([1, 2])).tolist() == [2, 4]


def test_random_numbers_are_numpys_bits() -> None:
    def run(np: types.ModuleType) -> object:
        rng = np.random.default_rng(7)
        np.random.seed(3)
        state = np.random.RandomState(5)
        return (
            rng.normal(size=(2, 3)),
            rng.integers(0, 10, 5),
            rng.random(),
            rng.choice([1.0, 2.0, 3.0], 4),
            rng.permutation(np.arange(5)),
            np.random.rand(3),
            np.random.normal(),
            np.random.randint(0, 5, (2, 2)),
            state.uniform(size=3),
            np.random.Generator(np.random.PCG64(1)).standard_normal(2),
        )

    check(run)


def test_shuffle_writes_in_place() -> None:
    def run(np: types.ModuleType) -> object:
        x = np.arange(10)
        np.random.default_rng(1).shuffle(x)
        np.random.seed(0)
        np.random.shuffle(x[2:])
        return x

    check(run)


def test_generators_are_instances_of_numpys_class() -> None:
    rng = lazynp.random.default_rng(0)
    assert isinstance(rng, numpy.random.Generator)
    assert isinstance(rng, lazynp.random.Generator)
    assert [type(child.normal(size=1)) for child in rng.spawn(2)] == [lazynp.ndarray] * 2
    assert lazynp.random.default_rng(rng) is not None


def test_state_functions_act_on_numpy() -> None:
    with lazynp.errstate(all="raise"):
        assert lazynp.geterr()["divide"] == "raise"
    with lazynp.printoptions(precision=2):
        assert str(lazynp.array([1.23456])) == "[1.23]"


@pytest.mark.usefixtures("recorded")
def test_numpys_own_functions_take_our_arrays_and_stay_lazy() -> None:
    x = lazynp.arange(4.0)
    for made in (numpy.sin(x), numpy.concatenate([x, x]), numpy.sum(x), numpy.ones(4) + x, numpy.fft.fft(x), numpy.add.reduce(x)):
        assert type(made) is lazynp.ndarray or isinstance(made, lazynp.float64)
        assert made._node is not None


def test_frompyfunc_and_vectorize_work() -> None:
    assert lazynp.frompyfunc(lambda a, b: a + b, 2, 1)(lazynp.arange(3), 1).tolist() == [1, 2, 3]
    assert lazynp.vectorize(lambda a: a + 1)(lazynp.arange(3)).tolist() == [1, 2, 3]
