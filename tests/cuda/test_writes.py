"""Writes through keys, masks and positions on a GPU: NumPy's meaning, and nothing of it on the processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.graph import report
from tests.cuda.comparing import check
from tests.cuda.host import SEEDS, machine, on_host

A = numpy.arange(30.0).reshape(5, 6)
ROWS = numpy.array([True, False, True, True, False])
COLUMNS = numpy.array([False, True, True, False, False, True])


@pytest.fixture(params=SEEDS)
def one(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param) as fake:
        yield fake


Write = Callable[[Any, Any], Any]  # of the module and the array


def put(key: Any, value: Any) -> Write:
    """``x[key] = value``; functions are called with the module and the array."""

    def write(m: Any, x: Any) -> None:
        x[key(m, x) if callable(key) else key] = value(m, x) if callable(value) else value

    return write


# What is written, and whether it is the GPU that does it.
WRITES: dict[str, tuple[Write, bool]] = {
    "a mask, as many values": (put(lambda m, x: x % 3 == 0, lambda m, x: m.arange(10) + 100), True),
    "a mask, one value in an array": (put(lambda m, x: x % 3 == 0, lambda m, x: m.asarray([7])), True),
    "a mask of the host": (put(A > 11, lambda m, x: m.arange(18)), True),
    "a mask in a list": (put([True, False, False, True, False], lambda m, x: m.arange(12.0).reshape(2, 6)), True),
    "a mask with nothing in it": (put(lambda m, x: x > 99, lambda m, x: m.arange(0)), True),
    "a mask of rows": (put(lambda m, x: x[:, 0] > 7, lambda m, x: m.arange(6)), True),
    "a mask of rows beside a slice": (put((ROWS, slice(1, 3)), [[1, 2]]), True),
    "a mask of rows and an integer": (put((ROWS, 2), lambda m, x: m.asarray([1, 2, 3])), True),
    "a mask of rows and integers": (put((ROWS, [1, 0, 1]), lambda m, x: m.asarray([1, 2, 3])), True),
    "two masks": (put((ROWS, COLUMNS), lambda m, x: m.asarray([1, 2, 3])), True),
    "a mask of columns": (put((slice(None), COLUMNS), lambda m, x: m.arange(15).reshape(5, 3)), True),
    "a mask behind an ellipsis": (put((..., COLUMNS), lambda m, x: m.arange(3)), True),
    "a mask and a new axis": (put((None, ROWS), lambda m, x: m.arange(6)), True),
    "a mask in place": (lambda m, x: x.__setitem__(x > 3, x[x > 3] * 2 + 1), True),
    "a mask of itself": (put(lambda m, x: x > 3, lambda m, x: x[x > 3][::-1]), True),
    "numbers with a fraction": (put(lambda m, x: x > 3, lambda m, x: m.arange(26) + 0.5), True),
    "too many values": (put(lambda m, x: x > 3, lambda m, x: m.arange(27)), False),
    "too few values": (put(lambda m, x: x > 3, lambda m, x: m.arange(2)), False),
    "values of two dimensions": (put(lambda m, x: x > 3, lambda m, x: m.arange(26).reshape(1, 26)), False),
    "a mask of another length": (put(numpy.array([True] * 4), lambda m, x: m.arange(4)), False),
    "a mask of too many dimensions": (put(numpy.ones((5, 6, 1), bool), 1), False),
    "rows that do not fit": (put((ROWS,), lambda m, x: m.arange(4)), False),
    "rows, one twice, of itself": (put([1, 1, 2], lambda m, x: x[[0, 4, 3]]), True),
    "a negative step": (put((slice(None, None, -2), [0, 0, 1]), lambda m, x: m.arange(9.0).reshape(3, 3)), True),
    "out of range": (put((ROWS, [0, 1, 6]), 1), False),
    "put": (lambda m, x: m.put(x, [1, 2, 2, -1], [5, 6]), True),
    "put, of a view": (lambda m, x: m.put(x.T, m.asarray([1, 2, 2, -1]), m.asarray([5, 6, 7])), True),
    "put, clipped": (lambda m, x: m.put(x, [-9, 2, 200], [5, 6, 7], mode="clip"), True),
    "put, wrapped": (lambda m, x: m.put(x, [[-9, 2], [200, 2]], [5, 6, 7], mode="wrap"), True),
    "put, out of range": (lambda m, x: m.put(x, [200], [5]), False),
    "put_along_axis": (lambda m, x: m.put_along_axis(x, m.argmax(x, axis=1, keepdims=True), -1, 1), True),
    "put_along_axis, twice": (lambda m, x: m.put_along_axis(x.T, m.asarray([[0, 0, 1]]), m.asarray([[1, 2, 3.0]]), 1), True),
    "put_along_axis, flat": (lambda m, x: m.put_along_axis(x, m.asarray([0, 0, 1]), m.asarray([1, 2, 3.0]), None), True),
    "place": (lambda m, x: m.place(x, x > 3, [1, 2, 3]), True),
    "putmask": (lambda m, x: m.putmask(x, x > 3, m.arange(7)), True),
    "copyto": (lambda m, x: m.copyto(x, m.arange(6.0), where=x > 3), True),
    "fill_diagonal": (lambda m, x: m.fill_diagonal(x, m.arange(3)), True),
    "flat, a slice": (lambda m, x: x.flat.__setitem__(slice(2, 20, 3), [1, 2, 3, 4, 5]), True),
    "flat, a slice of a view": (lambda m, x: x.T.flat.__setitem__(slice(2, 20, 3), m.asarray([1, 2, 3])), True),
    "flat, all": (lambda m, x: x.flat.__setitem__(..., m.asarray([1, 2, 3])), True),
    "flat, positions": (lambda m, x: x.flat.__setitem__([1, 1, 5], m.asarray([1, 2, 3, 4])), True),
    "flat, a mask": (lambda m, x: x.flat.__setitem__(m.asarray([True, False, True] * 10), m.asarray([1, 2, 3])), True),
    "flat, no values": (lambda m, x: x.flat.__setitem__([1], []), False),
    "flat, out of range": (lambda m, x: x.flat.__setitem__([30], 1), False),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_numpys(name: str, one: Any) -> None:
    write, on_gpu = WRITES[name]

    def program(m: Any) -> Any:
        x = m.asarray(A.copy())
        views, before = (x.T[1:4], x[::-1]), x * 2
        try:
            write(m, x)
        except Exception as error:
            return [repr(error), x, before]
        return [x, *views, before]

    check(name, program, set() if on_gpu else None)


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "c8"])
def test_values_convert_as_numpys(dtype: str, one: Any) -> None:
    mask = numpy.arange(8) % 3 == 0
    for values in (numpy.array([1.5, -2.0, 3.0]), numpy.array([1, 0, 200]), numpy.array([True, False, True])):

        def program(m: Any, values: Any = values) -> Any:
            x = m.zeros(8, dtype)
            x[mask] = m.asarray(values)
            return x

        if not (dtype == "u8" and values.dtype.kind == "f"):  # what a negative number becomes is not defined
            check((dtype, values.dtype), program, set())


def test_zero_dimensional_arrays_and_empty_ones(one: Any) -> None:
    def program(m: Any) -> Any:
        x, y = m.asarray(3.0), m.zeros((0, 4))
        x[m.asarray(True)] = m.asarray([4.0])
        y[m.zeros((0, 4), bool)] = m.asarray([])
        y[:, m.asarray([True, False, True, False])] = m.asarray([1.0, 2.0])
        return [x, y]

    check("0-d", program, set())


def test_random_writes(one: Any) -> None:
    rng = numpy.random.default_rng(7)
    for turn in range(6):
        shape = tuple(rng.integers(1, 7, 3).tolist())
        mask = rng.random(shape[:2]) < 0.5
        rows = rng.integers(-shape[0], shape[0], 9)
        columns = rng.integers(-shape[2], shape[2], 9)
        values = rng.standard_normal((9, shape[1]))

        def program(m: Any, shape: Any = shape, mask: Any = mask, rows: Any = rows, columns: Any = columns, values: Any = values) -> Any:
            x = m.asarray(numpy.arange(float(numpy.prod(shape))).reshape(shape))
            x[m.asarray(mask)] = m.asarray(values[0, :1]) - m.arange(shape[2])
            x[m.asarray(rows), :, m.asarray(columns)] = m.asarray(values)
            x.transpose(2, 0, 1)[:, m.asarray(mask)] = m.arange(mask.sum()) * 0.5
            return x

        check(turn, program, set())


def test_a_write_without_the_gpu_as_default(one: Any) -> None:
    x = np.asarray(A, device="cuda")
    x[x > 7] = numpy.arange(22)
    x[[0, 0]] = A[3:]
    expected = A.copy()
    expected[expected > 7] = numpy.arange(22)
    expected[[0, 0]] = A[3:]
    assert x.device == "cuda:0"
    assert not report.on_host
    numpy.testing.assert_array_equal(x, expected)
    assert on_host() == set()


def test_positions_are_not_looked_at_on_the_host(one: Any) -> None:
    given, index, values = numpy.arange(2000.0), numpy.array([5, 1, 5, 900]), numpy.array([1.0, 2.0, 3.0, 4.0])
    x, i, far, v = (np.asarray(each, device="cuda") * 1 for each in (given, index, index * 1000, values))
    np.realize(x, i, far, v)
    report.reset()
    np.put(x, i, v)
    np.put_along_axis(x, i, v * 2, 0)
    assert not report.transfers and not on_host()
    numpy.put(given, index, values)
    numpy.put_along_axis(given, index, values * 2, 0)
    numpy.testing.assert_array_equal(x, given)
    for write in (np.put, lambda x, i, v: np.put_along_axis(x, i, v, 0)):
        with pytest.raises(IndexError, match="5000 is out of bounds for axis 0 with size 2000"):
            write(x, far, v)
    numpy.testing.assert_array_equal(x, given)
