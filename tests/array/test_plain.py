"""What is plain, by the shortest way: errors are heard, threads do not meet, and parts of large arrays are what they were."""

import operator
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import floating
from lazynp.values import config


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=4096):
        yield


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "two operands": lambda np, x: x / (x - x),
    "a number on the right": lambda np, x: x / 0.0,
    "a number on the left": lambda np, x: 1.0 / (x - 2.0),
    "NumPy's number on the left": lambda np, x: numpy.float64(1) / (x - 2.0),
    "in place": lambda np, x: operator.itruediv(x, 0.0),
    "a ufunc": lambda np, x: np.log(-x),
    "a ufunc of two": lambda np, x: np.divide(x, x - x),
    "a power": lambda np, x: (x - 2.0) ** -1.0,
    "a method": lambda np, x: (x * 1e308).sum(),
    "along an axis": lambda np, x: (x.reshape(2, 2) * 1e308).cumsum(axis=0),
    "a function": lambda np, x: np.sum(x * 1e308),
    "a conversion": lambda np, x: (x * 1e300).astype(int),
    "a product": lambda np, x: (x * 1e200) @ (x * 1e200),
}


def _told(call: Callable[[Any, Any], Any], np: Any, x: Any) -> tuple[list[tuple[str, str, int]], Any]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        value = call(np, x)
    return [(str(w.message), w.filename, w.lineno) for w in seen], numpy.asarray(value)


@pytest.mark.parametrize("name", OPERATIONS)
def test_errors_are_told_at_the_programs_line(name: str) -> None:
    call = OPERATIONS[name]
    (ours, value), (theirs, wanted) = [_told(call, np, np.array([1.0, 2.0, 3.0, 4.0])) for np in (lazynp, numpy)]
    assert ours == theirs and ours
    numpy.testing.assert_array_equal(value, wanted)
    for state in ("raise", "ignore"):
        with numpy.errstate(all=state), warnings.catch_warnings():
            warnings.simplefilter("error")
            x = lazynp.array([1.0, 2.0, 3.0, 4.0])
            if state == "ignore":
                call(lazynp, x)
                continue
            with pytest.raises(FloatingPointError):
                call(lazynp, x)
    assert lazynp.array([1.0, 2.0]).tolist() == [1.0, 2.0]  # nothing was left to be told of


@pytest.mark.parametrize("name", OPERATIONS)
def test_while_somebody_else_computes(name: str) -> None:
    call = OPERATIONS[name]
    theirs, wanted = _told(call, numpy, numpy.array([1.0, 2.0, 3.0, 4.0]))
    ours, value = floating.hearing(_told, call, lazynp, lazynp.array([1.0, 2.0, 3.0, 4.0]))
    numpy.testing.assert_array_equal(value, wanted)
    assert ours == []  # whoever is in there is told, and tells
    heard = floating.take()
    assert heard is not None and [text for _, text in heard.notes] == [text for text, _, _ in theirs]


def test_threads_do_not_meet() -> None:
    found: list[float] = []

    def work(k: int) -> None:
        x = lazynp.full(4000, float(k))  # NumPy lets other threads run meanwhile
        for _ in range(2000):
            x = x * 1.0 + lazynp.zeros(4000)
        found.append(float(x.sum()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 4000.0, 8000.0, 12_000.0]


def test_results_without_axes() -> None:
    x = lazynp.array([1.0, 2.0])
    for value in (x @ x, x.sum(), x.max(), lazynp.dot(x, x), x[0], lazynp.sqrt(x[0]), lazynp.maximum(x[0], 1.0)):
        assert isinstance(value, numpy.float64)
    ours = lazynp.array(2.0)  # to the array API standard a result without axes is an array
    for value in (ours + 1.0, -ours, 1.0 - ours, lazynp.sqrt(ours), numpy.float64(1) * ours):
        assert type(value) is not numpy.float64 and float(value) in (3.0, -2.0, -1.0, 2**0.5, 2.0)


def test_methods_of_the_class() -> None:
    for name in ("__add__", "__radd__", "__neg__", "__iadd__", "__lt__"):
        method = getattr(lazynp.ndarray, name)
        assert method.__name__ == name


KEYS: list[Any] = [
    3, -2, slice(2, 9, 3), slice(None, None, -7), numpy.int64(4), (5, slice(1, 4)), (slice(1, 3), 2),
    (slice(None, None, 2), slice(1, 7, 2)), (None, 3), (..., 1), (2, None, slice(3)), (3, ...), (numpy.int32(1), numpy.uint8(2)),
    slice(5, 5), (4, 5),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
@pytest.mark.parametrize("draft", [False, True])
def test_a_small_part_of_a_large_array(key: Any, draft: bool) -> None:
    rows = 300
    theirs = numpy.arange(rows * 24.0).reshape(rows, 24)
    x = lazynp.array(theirs)
    x.realize()
    if draft:
        x[0, 0] = theirs[0, 0] = -1.0
    part, wanted = x[key], theirs[key]
    if not isinstance(wanted, numpy.ndarray):
        assert part.__class__ is wanted.__class__ and part == wanted
        return
    assert (part.shape, part.dtype, part.strides) == (wanted.shape, wanted.dtype, wanted.strides)
    if part.size <= config.at_hand:
        assert part.base is x
    x[key] = part * 2.0
    theirs[key] = wanted * 2.0
    numpy.testing.assert_array_equal(part, wanted)
    numpy.testing.assert_array_equal(x, theirs)
    x[key] += 1.0
    theirs[key] += 1.0
    part[...] = part * 0.5 + lazynp.ones(rows * 24).sum() * 0.0
    wanted[...] = wanted * 0.5
    numpy.testing.assert_array_equal(part, wanted)
    numpy.testing.assert_array_equal(x, theirs)
    y = x * 1.0 + 0.0  # recorded: what is pending is read through the same parts
    numpy.testing.assert_array_equal(y[key], (theirs * 1.0)[key])


DIRECT = (
    "ravel", "transpose", "squeeze", "copy", "ndim", "size", "shape", "nonzero", "flatnonzero", "zeros_like", "empty_like", "ones_like",
    "argmax", "argmin", "linalg.norm", "sum", "mean", "max", "prod", "any", "all", "std", "var", "cumsum", "argsort", "sort", "array",
    "asarray", "dot", "where",
)  # fmt: skip


@pytest.mark.parametrize("name", DIRECT)
def test_functions_of_small_arrays_enter_no_code_in_python(name: str) -> None:
    function: Any = operator.attrgetter(name)(lazynp)
    theirs: Any = operator.attrgetter(name)(numpy)
    x = lazynp.array([[3.0, -1.0], [0.0, 2.5]]) if name != "dot" else lazynp.array([3.0, -1.0])
    operands = (x, x) if name == "dot" else (x > 0, x, x) if name == "where" else (x,)
    plain = [numpy.asarray(operand) for operand in operands]
    entered: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    for _ in range(4):  # the first time loops are compared with NumPy's
        entered.clear()
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            found = function(*operands)
        finally:
            sys.setprofile(before)
    assert entered == []
    wanted = theirs(*plain)
    if name != "empty_like":
        numpy.testing.assert_equal(numpy.asarray(found), numpy.asarray(wanted))
    assert type(found) is type(wanted) or isinstance(found, (lazynp.ndarray, numpy.generic))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("to", [int, "i8", "i4", "u1", "f4", bool])
@pytest.mark.parametrize("n", [7, 1000, 5000])
def test_floats_are_cast_as_numpy_casts_them(n: int, to: Any, dtype: str) -> None:
    a = numpy.resize([1.5, -2.7, numpy.nan, 1e300, -0.0, numpy.inf, 3e9], n).astype("f8")
    with numpy.errstate(all="ignore"):
        a = a.astype(dtype)
    for first in (0, 1):
        heard = []
        for np in (numpy, lazynp):
            x = np.array(a[first::7] if first == 0 else a)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                found = numpy.asarray((x * 1).astype(to) + x.astype(to))
            heard.append((found.dtype, found.tobytes(), sorted(str(w.message) for w in seen)))
        assert heard[0] == heard[1]


PARTS: dict[str, Callable[[Any], Any]] = {
    "vectors": lambda np: [np.arange(5.0), np.arange(5.0) * 2],
    "a tuple of them": lambda np: (np.arange(5), np.arange(5)[::-1], np.arange(5)),
    "of other lengths": lambda np: [np.arange(5.0), np.arange(3.0)],
    "of other dtypes": lambda np: [np.arange(5.0), np.arange(5)],
    "matrices": lambda np: [np.ones((3, 4), "f4"), np.zeros((3, 4), "f4")],
    "of other rows": lambda np: [np.ones((3, 4)), np.zeros((2, 4))],
    "of other columns": lambda np: [np.ones((3, 4)), np.zeros((3, 2))],
    "columns": lambda np: [np.arange(12.0).reshape(4, 3).T, np.ones((3, 4))],
    "steps": lambda np: [np.arange(10.0)[::2], np.arange(5.0)],
    "blocks": lambda np: [np.arange(24).reshape(2, 3, 4)] * 2,
    "four axes": lambda np: [np.ones((2, 1, 2, 2))] * 2,
    "numbers in arrays": lambda np: [np.array(2.0), np.array(3.0)],
    "numbers": lambda np: [np.arange(3.0), 2.0],
    "nothing": lambda np: [],
    "without elements": lambda np: [np.ones((0,)), np.ones((0,))],
    "rows without elements": lambda np: [np.ones((0, 3)), np.ones((2, 3))],
    "one": lambda np: [np.arange(3) > 1],
    "what waits": lambda np: [np.arange(4.0) + 1, np.sqrt(np.arange(4.0)) * 2],
    "one twice": lambda np: [np.arange(4.0)] * 2,
    "complex ones": lambda np: [np.arange(3) * 1j, np.ones(3) + 0j],
    "half floats": lambda np: [np.ones(3, "f2"), np.ones(3, "f2")],
    "an array": lambda np: np.arange(6.0).reshape(2, 3),
}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("name", ["array", "asarray", "stack", "vstack", "hstack", "column_stack", "concatenate", "dstack"])
def test_arrays_are_stacked_as_numpy_stacks_them(name: str, parts: str) -> None:
    def outcome(np: Any) -> Any:
        given = PARTS[parts](np)
        try:
            found = getattr(np, name)(given)
        except Exception as error:
            return type(error), str(error)
        seen = numpy.asarray(found)
        shares = type(given) is not np.ndarray and any(numpy.shares_memory(seen, numpy.asarray(part)) for part in given)
        strides = found.strides if seen.size else None
        return found.dtype, found.shape, strides, seen.tolist(), found.flags.owndata, found.flags.writeable, shares

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = outcome(numpy), outcome(lazynp)
    assert got == expected
