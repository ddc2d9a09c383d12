"""pandas, xarray and matplotlib with arrays of ours: the same frames, the same labelled arrays, the same pictures as with NumPy's."""

from __future__ import annotations

import types
from operator import attrgetter
from typing import Any

import matplotlib
import numpy
import pandas
import pytest
import xarray

import lazynp
from lazynp.graph import report
from lazynp.namespace.bridge import neighbours
from lazynp.scalars import OF_TYPE
from tests.interoperability.library_programs import PANDAS, PLOTS, XARRAY

matplotlib.use("Agg")

import matplotlib.pyplot as plt

A = numpy.arange(12.0).reshape(4, 3)


def run(text: str, module: Any) -> Any:
    a = module.array(A)
    space = {
        "np": module, "numpy": numpy, "pd": pandas, "xr": xarray, "A": A, "a": a, "v": module.array(A[:, 0]),
        "i": module.array([3, 1, 2, 1]), "b": module.array([True, False, True, False]), "c": module.array(A + 1j),
        "s": module.sum(a), "df": pandas.DataFrame(A.copy(), columns=list("xyz")),
    }  # fmt: skip
    statements, _, last = text.rpartition("; ")
    exec(statements, space)
    return eval(last, space)


def assert_same(got: Any, want: Any) -> None:
    if isinstance(want, pandas.DataFrame):
        pandas.testing.assert_frame_equal(got, want)
    elif isinstance(want, pandas.Series):
        pandas.testing.assert_series_equal(got, want)
    elif isinstance(want, pandas.Index):
        pandas.testing.assert_index_equal(got, want)
    elif isinstance(want, (xarray.DataArray, xarray.Dataset)):
        xarray.testing.assert_allclose(got, want, rtol=1e-15)
        assert got.to_dict(data=False) == want.to_dict(data=False)
    elif isinstance(want, (tuple, list)):
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
    else:
        assert numpy.asarray(got).dtype == numpy.asarray(want).dtype
        assert numpy.array_equal(got, want)


@pytest.mark.parametrize("text", PANDAS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_pandas(text: str) -> None:
    assert_same(run(text, lazynp), run(text, numpy))


def test_functions_that_pandas_applies_give_it_numbers() -> None:
    frame = pandas.DataFrame({"x": [1.0, 4.0], "y": [2.0, 3.0]})
    for made in (
        frame.x.apply(lambda x: lazynp.sqrt(x)), frame.apply(lambda row: lazynp.hypot(row.x, row.y), axis=1), frame.apply(lazynp.mean),
        frame.agg(lazynp.sum), frame.x.map(lazynp.log), frame.groupby("y").x.apply(lambda x: lazynp.max(x)),
    ):  # fmt: skip
        assert made.dtype == "float64"


@pytest.mark.usefixtures("recorded")
def test_keys_and_results_that_pandas_would_take_for_something_else() -> None:
    frame = pandas.DataFrame(A, columns=list("xyz"))
    keys, mask, total = lazynp.array([3, 1, 2, 1]), lazynp.array(A[:, 0]) > 2, lazynp.array(A).sum()
    theirs = mask.to_numpy()
    for got, wanted in (
        (frame.iloc[mask], frame.iloc[theirs]),
        (frame.index[mask], frame.index[theirs]),
        (frame.x.index[mask], frame.x.index[theirs]),
        (frame[mask], frame[theirs]),
        (frame.loc[mask], frame.loc[theirs]),
        (frame.loc[mask, "x"], frame.loc[theirs, "x"]),
        (frame.x[mask], frame.x[theirs]),
        (frame.x.iloc[mask], frame.x.iloc[theirs]),
        (frame.iloc[keys.argmax()], frame.iloc[int(keys.argmax())]),
        (pandas.MultiIndex.from_product([[1, 2], [3, 4]])[mask], pandas.MultiIndex.from_product([[1, 2], [3, 4]])[theirs]),
        (pandas.Categorical(list("abca"))[theirs], pandas.Series(pandas.Categorical(list("abca"))).iloc[mask].array),
        (pandas.Series([total, total]), pandas.Series([total.item()] * 2)),
        (pandas.DataFrame({"a": [total, 1.0]}), pandas.DataFrame({"a": [total.item(), 1.0]})),
    ):
        assert got.equals(wanted) and type(got) is type(wanted)
    frame["w"] = total
    frame.loc[mask, "x"] = total
    frame.iloc[~mask, 1] = -1.0
    assert frame.dtypes.tolist() == ["float64"] * 4
    assert frame.x.tolist() == [float(total) if chosen else row for chosen, row in zip(theirs, A[:, 0], strict=True)]
    assert frame.y.tolist() == [row if chosen else -1.0 for chosen, row in zip(theirs, A[:, 1], strict=True)]


@pytest.mark.parametrize("text", XARRAY)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_xarray(text: str) -> None:
    assert_same(run(text, lazynp), run(text, numpy))


def test_xarray_stays_lazy() -> None:
    x = xarray.DataArray(lazynp.array(A) + 0, dims=["t", "x"])
    report.reset()
    y = ((x * 2 + 1).where(x > 3) - x.sum("t")).T
    assert type(y.data) is lazynp.ndarray
    assert not report.forced
    assert not report.fallbacks


def picture(text: str, module: Any) -> Any:
    figure, axes = plt.subplots(figsize=(2, 2), dpi=40)
    try:
        exec(text, {"np": module, "ax": axes, "fig": figure, "plt": plt})
        figure.canvas.draw()
        return numpy.array(figure.canvas.buffer_rgba())
    finally:
        plt.close(figure)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_matplotlib_draws_the_same_picture(name: str) -> None:
    assert numpy.array_equal(picture(PLOTS[name], lazynp), picture(PLOTS[name], numpy))


def test_tables_by_type_have_what_they_have_for_numpys() -> None:
    """Dask looks up functions by an argument's type."""

    class Dispatch:
        def __init__(self) -> None:
            self.table = {numpy.ndarray: "array", numpy.float64: "number", list: "list"}

        def dispatch(self, cls: type) -> str:
            return self.table[cls]

    module = types.ModuleType("dask.utils")
    module.Dispatch = Dispatch  # type: ignore[attr-defined]
    for _ in range(2):
        neighbours.HOOKS["dask.utils"](module)
    kinds = [lazynp.ndarray, numpy.ndarray, OF_TYPE[numpy.float64], list]
    assert [Dispatch().dispatch(kind) for kind in kinds] == ["array", "array", "number", "list"]
    with pytest.raises(KeyError):
        Dispatch().dispatch(int)


def test_operators_of_lazy_arrays_are_given_numpys() -> None:
    """Dask's operators, called as methods, hand over to any array that is not NumPy's."""

    class Array:
        def __mul__(self, other: object) -> object:
            return type(other) if isinstance(other, numpy.ndarray) and type(other) is not lazynp.ndarray else NotImplemented

    Array.__module__ = "dask.array.core"
    module = types.ModuleType("dask.array.core")
    module.Array = Array  # type: ignore[attr-defined]
    for _ in range(2):
        neighbours.HOOKS["dask.array.core"](module)
    assert Array().__mul__(lazynp.arange(3)) is numpy.ndarray
    assert Array().__mul__(3) is NotImplemented


NAMES = ["add", "matmul", "sum", "concatenate", "where", "zeros_like", "iscomplexobj", "busday_count", "linalg.norm", "fft.fft"]


@pytest.mark.parametrize("name", NAMES)
def test_tables_by_function_have_what_they_have_for_numpys(name: str) -> None:
    """A program fills a library's table with its own ``np.add``; the library asks with NumPy's. Or the other way round."""
    ours, theirs = attrgetter(name)(lazynp), attrgetter(name)(numpy)
    assert {ours: name}[theirs] == {theirs: name}[ours] == {(ours, "Vector"): name}[theirs, "Vector"] == name
    assert (ours == theirs, theirs == ours, ours != theirs, ours == ours, ours != ours) == (True, True, False, True, False)
    assert all(ours != other for other in (lazynp.subtract, numpy.subtract, lazynp.prod, numpy.prod, None, name))
