"""Scalars that wait: what is one, what it behaves like, and when it is computed."""

from __future__ import annotations

import copy
import math
import numbers
import pickle
from typing import Any

import numpy
import pytest

import lazynp
from lazynp import scalars
from lazynp.arrays import ndarray, node_of, result
from lazynp.conversion import asarray
from lazynp.graph import build, report
from lazynp.graph.dtypes import NATIVE
from lazynp.scalars import scalar_of_value

pytestmark = pytest.mark.usefixtures("numbers_wait")
DTYPES = sorted(NATIVE, key=lambda dtype: dtype.num)


def lazy(value: Any, dtype: Any = None) -> Any:
    x = asarray(numpy.array([value], dtype))
    found = result(build.reshape(node_of(x | x if x.dtype == bool else x + x.dtype.type(0)), ()))
    assert found._value is None
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_family_mirrors_numpys(dtype: numpy.dtype[Any]) -> None:
    ours = scalars.CONCRETE[dtype.type.__name__]
    assert numpy.dtype(ours) == dtype
    assert dtype.type == ours
    assert ours == dtype.type
    assert [other for other in scalars.CONCRETE.values() if other == dtype.type] == [ours]
    for name, abstract in scalars.ABSTRACT.items():
        theirs = getattr(numpy, name)
        assert issubclass(ours, abstract) == issubclass(dtype.type, theirs)
        for value in (dtype.type(1), scalar_of_value(dtype.type(1)), lazy(1, dtype)):
            assert isinstance(value, abstract) == issubclass(dtype.type, theirs)
            assert isinstance(value, theirs) == issubclass(dtype.type, theirs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("make", [lambda v: scalar_of_value(v), lambda v: lazy(v)], ids=["concrete", "lazy"])
def test_python_conversions(dtype: numpy.dtype[Any], make: Any) -> None:
    value = dtype.type(1)
    s = make(value)
    assert (repr(s), str(s), hash(s), bool(s), complex(s)) == (repr(value), str(value), hash(value), bool(value), complex(value))
    assert s.item() == value.item()
    assert type(s.item()) is type(value.item())
    assert type(s.tolist()) is type(value.tolist())
    assert (s.shape, s.ndim, s.size, s.dtype, s.itemsize, s.nbytes) == ((), 0, 1, dtype, dtype.itemsize, dtype.itemsize)
    if dtype.kind != "c":
        assert int(s) == 1
        assert float(s) == 1.0
    if dtype.kind in "iu":
        assert [0, 10, 20][s] == 10
        assert math.factorial(s) == 1
    else:
        with pytest.raises(TypeError):
            _ = [0, 10, 20][s]
    assert isinstance(s, numbers.Integral) == isinstance(value, numbers.Integral)
    assert isinstance(s, numbers.Real) == isinstance(value, numbers.Real)
    assert isinstance(s, numbers.Complex) == isinstance(value, numbers.Complex)


def test_formatting_and_rounding() -> None:
    s = lazy(3.14159)
    assert f"{s:.2f} {s}" == "3.14 3.14159"
    assert round(s, 2) == 3.14
    assert type(round(s)) is int
    assert format(s, "8.3f") == "   3.142"
    assert math.floor(s) == 3
    assert math.sqrt(scalar_of_value(numpy.float64(9))) == 3.0


@pytest.mark.usefixtures("recorded")
def test_result_is_a_scalar_only_without_axes() -> None:
    x = asarray([1.0, 2.0])
    assert x[0].__class__ is numpy.float64
    assert ((x + 1)[0]).__class__ is numpy.float64
    assert type(x[0, ...]) is ndarray
    assert type(asarray(5.0)) is ndarray
    assert type(asarray(5.0)[()]) is scalars.CONCRETE["float64"]
    assert type(result(asarray(5.0)._node)) is scalars.CONCRETE["float64"]


def test_concrete_arithmetic_records_nothing() -> None:
    report.reset()
    x = asarray(numpy.arange(4.0))
    s = x[1] * 2 + x[3] / 2
    assert s == 3.5
    assert s.__class__ is numpy.float64
    t = scalar_of_value(s) * 2 + 1
    assert t._node is None
    assert t == 8
    assert type(t) is scalars.CONCRETE["float64"]
    assert not report.forced


@pytest.mark.usefixtures("recorded")
def test_lazy_scalar_is_computed_once_and_kept() -> None:
    s = asarray(numpy.arange(4.0)).sum()
    report.reset()
    assert float(s) == 6.0
    assert int(s) == 6
    assert s._node is None
    assert sum(counted.count for counted in report.forced.values()) == 1


def test_operations_leave_scalars_alone() -> None:
    s = lazy(2.0)
    with pytest.raises(AttributeError):
        s.extra = 1
    with pytest.raises(AttributeError):
        s.dtype = numpy.int8
    t = s
    t += 1
    assert (float(s), float(t)) == (2.0, 3.0)


@pytest.mark.parametrize("make", [lambda v: scalar_of_value(numpy.float64(v)), lazy], ids=["concrete", "lazy"])
def test_a_result_is_an_array_to_the_standard_and_can_be_written(make: Any) -> None:
    # array_api_extra.at(result, condition).set(value), as SciPy does it
    for key in (..., (), True, numpy.True_, numpy.array(True), lazy(True), asarray(True), make(3.0) > 2.0):
        s = make(2.0)
        before, squared = (s.copy(), copy.copy(s), copy.deepcopy(s)), s * s
        s[key] = 5
        assert (float(s), s.dtype, type(s)) == (5.0, numpy.float64, type(make(2.0)))
        assert [float(x) for x in (*before, squared)] == [2.0, 2.0, 2.0, 4.0]
    for key, value in ((False, 2.0), (lazy(False), 2.0), ((), 7.0)):
        s = make(2.0)
        s[key] = lazy(7)
        assert float(s) == value
    for key in (0, -1, (0,), None, slice(None), [True], (..., None), asarray(numpy.array([True])), "real"):
        with pytest.raises(TypeError, match=r"'numpy\.float64' object does not support item assignment"):
            make(2.0)[key] = 1
    with pytest.raises(ValueError, match=r"broadcast|sequence"):
        make(2.0)[...] = [1, 2]


@pytest.mark.usefixtures("recorded")
def test_a_condition_is_not_computed_to_write() -> None:
    s, condition = lazy(2.0), lazy(1.0) < 5
    x = asarray(numpy.zeros((2, 3)))
    report.reset()
    s[condition] = numpy.nan
    x[condition] = 4
    x[~condition] = s
    assert not report.forced
    assert numpy.isnan(float(s))
    assert x.tolist() == [[4.0] * 3] * 2


def test_known_truth_values_are_not_written() -> None:
    with pytest.raises(TypeError):
        scalars.TRUE[...] = False
    s = lazy(True)
    s[...] = False
    assert not s
    assert scalars.TRUE


def test_copying_and_pickling() -> None:
    for s in (lazy(2.5), scalar_of_value(numpy.float32(2.5))):
        for other in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
            assert type(other) is type(s)
            assert other == s


def test_keys() -> None:
    s = lazy(2.0)
    assert s[()] is s
    assert s[None].shape == (1,)
    assert s[..., None].shape == (1,)
    assert s[...].shape == ()
    for key in (True, numpy.True_, (True,), asarray(True), lazy(True)):
        assert s[key].tolist() == numpy.float64(2.0)[True].tolist()
    assert s[False].shape == (0,)
    for key in (0, slice(None), [True], (0, ...)):
        with pytest.raises(IndexError, match="invalid index to scalar variable"):
            s[key]


def test_parts() -> None:
    c = lazy(1 + 2j)
    assert (float(c.real), float(c.imag)) == (1.0, 2.0)
    r = lazy(3.0)
    assert r.real is r
    assert float(r.imag) == 0.0
    assert r.T is r


def test_probing_for_protocols_computes_nothing() -> None:
    s = lazy(2.0)
    report.reset()
    for name in ("__array_struct__", "__array_interface__", "__cuda_array_interface__", "nothing", "_repr_html_"):
        assert not hasattr(s, name)
    assert not report.forced
    assert s.is_integer()


def test_constructor_converts_as_numpys() -> None:
    float32 = scalars.CONCRETE["float32"]
    assert float32(1.1) == numpy.float32(1.1)
    assert type(float32([1, 2])) is ndarray
    converted = float32(lazy(2.5))
    assert converted._value is None
    assert converted.dtype == numpy.float32
    assert float32("1.5") == 1.5
    with pytest.raises(TypeError):
        scalars.floating(1)


def test_numpy_reads_scalars() -> None:
    s = lazy(2.0)
    assert numpy.asarray(s).shape == ()
    assert float(numpy.exp(s)) == float(numpy.exp(2.0))
    assert type(numpy.float64(1) + s) is scalars.CONCRETE["float64"]
    assert numpy.isclose(s, 2.0)


@pytest.mark.parametrize("text", ["np.squeeze(s)", "np.transpose(s)", "np.reshape(s, ())", "np.moveaxis(s, [], [])", "np.reshape(s, 1)"])
@pytest.mark.parametrize("made", ["np.arange(3.0).sum()", "np.float64(2.5)", "np.array(2.5)"])
def test_functions_whose_scalars_stay_scalars(text: str, made: str) -> None:
    kinds = [isinstance(eval(text, {"np": np, "s": eval(made, {"np": np})}), numpy.generic) for np in (numpy, lazynp)]
    assert kinds[0] == kinds[1]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("value", [0.0, -0.0, numpy.inf, -numpy.inf, -2.0, 4.0, numpy.nan])
@pytest.mark.parametrize("text", [
    "x.max() ** 0.5", "x.max() ** np.float64(0.5)", "pow(x.max(), 0.5)", "x.astype('f4').max() ** 0.5", "np.power(x.max(), 0.5)",
    "x.max() ** np.array(0.5)", "x ** 0.5", "x.max() ** 2", "x.max() ** -1", "x.max(keepdims=True) ** 0.5",
])  # fmt: skip
def test_powers_of_numbers_have_no_shortcut_by_the_square_root(text: str, value: float) -> None:
    """Of -0 and -inf C's function makes 0 and inf, the square root -0 and NaN, which NumPy takes for arrays."""
    with numpy.errstate(all="ignore"):
        given = numpy.full((5, 1), value)
        got, want = (numpy.asarray(eval(text, {"np": np, "x": np.array(given)})) for np in (lazynp, numpy))
    assert got.dtype == want.dtype
    numpy.testing.assert_array_equal(got, want)
    numpy.testing.assert_array_equal(numpy.signbit(got[~numpy.isnan(got)]), numpy.signbit(want[~numpy.isnan(want)]))
