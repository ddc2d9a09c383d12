"""The whole surface of ufuncs: keywords, methods, attributes, generalised ufuncs, ufuncs of Python functions.

Each row is an expression, or statements and an expression after the last semicolon, that NumPy and lazynp must answer alike.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.scalars import is_scalar
from tests.namespace.compare import DTYPES, check, values
from tests.namespace.ufunc_cases import CALLS, FOREIGN, GENERALISED, METHODS, STAY_LAZY

A = numpy.arange(6.0).reshape(2, 3)
NAMES: dict[str, Any] = {"a": A, "i": A.astype(int), "c": A + 1j, "v": numpy.arange(5.0), "m": A > 2}


def run(text: str, module: Any) -> Any:
    space: dict[str, Any] = {"np": module, **{name: module.array(value) for name, value in NAMES.items()}}
    statements, _, last = text.rpartition("; ")
    exec(statements, space)
    return eval(last, space)


@pytest.mark.parametrize("text", METHODS)
def test_methods_are_native(text: str) -> None:
    report.reset()
    check(lambda np: run(text, np), 1, text)
    assert not report.fallbacks


@pytest.mark.parametrize("text", CALLS)
def test_calls_and_attributes(text: str) -> None:
    report.reset()
    check(lambda np: run(text, np), 1, text)
    assert not report.fallbacks


@pytest.mark.parametrize("text", GENERALISED)
def test_generalised_ufuncs(text: str) -> None:
    report.reset()
    check(lambda np: run(text, np), 1, text)
    assert not report.fallbacks


@pytest.mark.parametrize("text", FOREIGN)
def test_objects_strings_dates_and_python_functions(text: str) -> None:
    check(lambda np: run(text, np), 0, text)


BINARY = sorted(
    name for name, value in vars(numpy).items()
    if isinstance(value, numpy.ufunc) and value.nin == 2 and value.signature is None and name == value.__name__
)  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_methods_of_every_binary_ufunc_over_dtypes(name: str) -> None:
    if name in ("left_shift", "right_shift", "power"):
        numbers = numpy.array([1, 2, 3, 2, 1, 0])
    else:
        numbers = numpy.array([7, 2, 3, 5, 1, 4])
    report.reset()
    for dtype in ("bool", "int8", "uint32", "int64", "float32", "float64", "complex128"):
        x = numbers.astype(dtype)
        for text in (
            "np.{}.reduce(x)", "np.{}.reduce(x.reshape(2, 3), axis=1)", "np.{}.accumulate(x)", "np.{}.accumulate(x.reshape(2, 3))",
            "np.{}.reduceat(x, [0, 3, 1])", "np.{}.outer(x, x[:2])", "(lambda y: (np.{}.at(y, [0, 0, 3], x[:3]), y))(x.copy())",
        ):  # fmt: skip
            call = text.format(name)
            check(lambda np, call=call, x=x: eval(call, {"np": np, "x": np.array(x)}), 2, f"{call} {dtype}")
    assert not report.fallbacks


@pytest.mark.parametrize("name", [value.__name__ for value in vars(numpy).values() if isinstance(value, numpy.ufunc) and value.nin == 1])
def test_at_of_every_unary_ufunc(name: str) -> None:
    for dtype in DTYPES:
        x = values(dtype)

        def call(np: Any, x: Any = x) -> Any:
            y = np.array(x)
            getattr(np, name).at(y, [0, 0, 3])
            return y

        check(call, 4, f"{name} {dtype}")


def test_attributes_are_numpys() -> None:
    for name, theirs in vars(numpy).items():
        if isinstance(theirs, numpy.ufunc):
            ours = getattr(lazynp, name)
            for attribute in ("nin", "nout", "nargs", "ntypes", "types", "signature", "__name__", "__qualname__"):
                assert getattr(ours, attribute) == getattr(theirs, attribute), (name, attribute)
            assert (ours.identity is theirs.identity) or ours.identity == theirs.identity
            assert isinstance(ours, lazynp.ufunc) and isinstance(theirs, lazynp.ufunc)
            assert pickle.loads(pickle.dumps(ours)) is ours


# at ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("processor")
def test_at_of_something_pending_stays_pending() -> None:
    x = lazynp.arange(6.0) * 2
    report.reset()
    lazynp.add.at(x, [1, 1, 4], lazynp.arange(3.0) + 1)
    y = x + 1
    assert not report.forced
    assert y.tolist() == [1.0, 6.0, 5.0, 7.0, 12.0, 11.0]


def test_at_leaves_what_was_recorded_before_alone() -> None:
    for x in (lazynp.arange(4.0) + 0, lazynp.array([0.0, 1.0, 2.0, 3.0])):
        before, part = x * 1, x[1:]
        lazynp.add.at(x, [1, 1], 5.0)
        assert before.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert part.tolist() == [11.0, 2.0, 3.0]


def test_a_failing_at_changes_nothing() -> None:
    for x in (lazynp.arange(4.0) + 0, lazynp.zeros(4)):
        before = x.tolist()
        for indices, value in (([0, 4], 1.0), ([0, 1], [1.0, 2.0, 3.0]), ([0.5], 1.0), ((0, 0), 1.0)):
            with pytest.raises((IndexError, ValueError)):
                lazynp.add.at(x, indices, value)
        assert x.tolist() == before


@pytest.mark.usefixtures("recorded")
def test_at_in_a_loop_copies_once() -> None:
    x = lazynp.zeros(1000)
    lazynp.add.at(x, [1], 1.0)
    memory = x._base.array
    for _ in range(50):
        lazynp.add.at(x, numpy.array([1, 1, 7]), 1.0)
    assert x._base.array is memory
    assert (float(x[1]), float(x[7])) == (101.0, 50.0)


def test_at_refuses_read_only_arrays() -> None:
    # NumPy's ``at`` writes to them.
    x = lazynp.zeros(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        lazynp.add.at(x, [0], 1.0)


@pytest.mark.usefixtures("recorded")
def test_methods_fuse_around_library_items() -> None:
    x = lazynp.array(A)
    y = lazynp.hypot.reduce(x * 2, axis=1) + 1
    assert y._node.op.name == "add"
    assert numpy.allclose(numpy.asarray(y), numpy.hypot.reduce(A * 2, axis=1) + 1)


# NumPy's functions on lazy arrays -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", STAY_LAZY)
@pytest.mark.usefixtures("recorded")
def test_numpys_functions_on_lazy_arrays_stay_lazy(text: str) -> None:
    x = lazynp.array(A) + 0
    report.reset()
    got = eval(text, {"numpy": numpy, "x": x, "A": A})
    assert type(got) is lazynp.ndarray or is_scalar(got)
    assert not report.forced
    assert not report.fallbacks
    assert numpy.allclose(numpy.asarray(got), eval(text, {"numpy": numpy, "x": A + 0, "A": A}))


def test_numpys_functions_write_into_numpys_arrays() -> None:
    x = lazynp.array(A)
    for call in (
        lambda out: numpy.add(x, 1, out=out), lambda out: numpy.concatenate([x[:1], x[1:]], out=out),
        lambda out: numpy.cumsum(x, 0, out=out), lambda out: numpy.add.accumulate(x, out=out),
    ):  # fmt: skip
        out = numpy.zeros((2, 3))
        assert call(out) is out
        assert out.any()
    target = numpy.zeros((2, 3))
    target += x
    numpy.add.at(target, [0], x[:1])
    assert target.tolist() == [[0.0, 2.0, 4.0], [3.0, 4.0, 5.0]]


def test_vectorize_is_a_decorator_and_makes_arrays_of_ours() -> None:
    @lazynp.vectorize
    def one(x: float) -> float:
        """Its own text."""
        return x + 1

    @lazynp.vectorize(otypes=["f4"])
    def two(x: float, y: float) -> float:
        return x * y

    assert one.__doc__ == "Its own text."
    for got in (one(lazynp.arange(3.0)), two(lazynp.arange(3.0), 2), one([1, 2])):
        assert type(got) is lazynp.ndarray
    assert two(lazynp.arange(3.0), 2).dtype == "float32"
    assert isinstance(one, numpy.vectorize)


def test_third_libraries_are_asked() -> None:
    class Theirs:
        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return "theirs", func.__name__

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            return "theirs", ufunc.__name__, method

    x = lazynp.array(A)
    assert numpy.concatenate([x, Theirs()]) == ("theirs", "concatenate")  # type: ignore[comparison-overlap, arg-type]
    assert numpy.add(x, Theirs()) == lazynp.add(x, Theirs()) == ("theirs", "add", "__call__")
    assert x + Theirs() == ("theirs", "add", "__call__")
    assert numpy.add.reduce(Theirs()) == lazynp.add.reduce(Theirs()) == ("theirs", "add", "reduce")
    assert type(numpy.concatenate([x, A])) is lazynp.ndarray


# Methods into outputs of other dtypes, which have a say in the loop ---------------------------------------------------------------------

_INTO = ["?", "i1", "i8", "u8", "f2", "f4", "f8", "c16"]
_METHODS = (("reduce", (), {"axis": 0}, (4,)), ("accumulate", (), {"axis": 1}, (2, 4)), ("reduceat", ([0, 2, 1],), {"axis": 1}, (2, 3)))


def _into(np: Any, name: str, method: str, x: Any, args: Any, options: dict[str, Any], out: Any) -> Any:
    try:
        with numpy.errstate(all="ignore"):
            value = numpy.asarray(getattr(getattr(np, name), method)(np.asarray(x.copy()), *args, **options, out=out))
    except Exception as error:
        return type(error).__name__, str(error)
    return value.dtype, value.tobytes()


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("source", _INTO)
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "divide", "logical_or", "bitwise_or", "hypot", "less"])
def test_methods_into_other_dtypes(name: str, source: str) -> None:
    x = numpy.array([[1, 0, 1, 1], [1, 1, 0, 1]]).astype(source)
    for method, args, options, shape in _METHODS:
        for into in _INTO:
            for dtype in (None, "f4", "i8"):
                given = options if dtype is None else {**options, "dtype": dtype}
                for wrap in (lambda out: out, lambda out: (out,)):
                    found = [_into(np, name, method, x, args, given, wrap(np.zeros(shape, into))) for np in (lazynp, numpy)]
                    assert found[0] == found[1], (method, into, dtype)
