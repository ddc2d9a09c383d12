"""Arrays that are made of no array, and views, without NumPy's way to them: dtype, shape, strides, flags, values and errors are NumPy's."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from tests.differential.bounds import words

NUMBERS: list[Any] = [
    0, 1, 5, -3, 2.5, 0.1, 1e-3, -0.7, 7.0, 10, True, 3.0000001, float("nan"), float("inf"), 100, numpy.int64(4), numpy.float64(1.5),
]  # fmt: skip
SHAPES: list[Any] = [
    0, 3, (3,), (2, 3), (2, 3, 4), (1, 2, 3, 4), (1, 1, 2, 2, 3), (), (0, 3), [2, 2], (4, 1), -1, (2, -1), 2.5, None, "a", {}, True,
    numpy.int8(3), numpy.array([2, 3]), (200, 200), (2.0, 3),
]  # fmt: skip
DTYPES: list[Any] = [None, float, int, bool, complex, "f4", "i2", ">f8", object, numpy.float16, "S3", numpy.longdouble, "nonsense"]


def check(call: Callable[[Any], Any]) -> None:
    found = []
    for np in (numpy, lazynp):
        try:
            made = call(np)
        except Exception as error:
            found.append((type(error), str(error)))
        else:
            x = numpy.asarray(made) if np is numpy else made.__array__()
            where = (x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable, x.flags.aligned)
            padded = x.dtype.char in "gG"  # with bytes that mean nothing
            found.append((x.dtype, x.shape, x.strides, where, x.tolist() if x.dtype.hasobject or padded else x.tobytes()))  # type: ignore[arg-type]
    assert found[0] == found[1]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ranges(n: int) -> None:
    for given in itertools.product(NUMBERS, repeat=n):
        first, last, step = (0, given[0], 1) if n == 1 else (*given, 1)[:3]
        if step and not abs(last - first) / abs(step) > 1e5:
            check(lambda np, given=given: np.arange(*given))
    check(lambda np: np.arange(0, 3, 0))
    check(lambda np: np.arange())


def test_diagonals() -> None:
    for a, b, k in itertools.product([0, 1, 3, 4, -1, 2.0], [None, 0, 2, 5, -1], [-7, -2, 0, 1, 6, True, 1.5, 2**64]):
        check(lambda np, a=a, k=k: np.eye(a, k=k))
        check(lambda np, a=a, b=b, k=k: np.eye(a, b, k=k))
        check(lambda np, a=a, b=b, k=k: np.eye(a, b, k))
        check(lambda np, a=a, k=k: np.eye(a, dtype=int, k=k))
        check(lambda np, a=a: np.identity(a))


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_constants(shape: Any) -> None:
    for dtype in DTYPES:
        check(lambda np, dtype=dtype: np.zeros(shape, dtype))
        check(lambda np, dtype=dtype: np.zeros(shape, dtype=dtype))
        check(lambda np, dtype=dtype: np.ones(shape, dtype=dtype))
    for value in (1, 2.5, True, numpy.float64(3), 1j, "x"):
        check(lambda np, value=value: np.full(shape, value))


KEYS = words("1: :-1 ::2 ::-1 3:1 1 -1 ...,0 None,1: 1:,1: :,1 :,::-2 1,: 0,1 5: :0 True [0,1] 9 1,1,1")
MADE = ["np.arange(6.)", "np.arange(12.).reshape(3,4)*1", "(np.arange(12)*2).reshape(3,4).T", "np.zeros((2,3,2,2),'f')"]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("key", KEYS)
def test_views(make: str, key: str) -> None:
    def made(np: Any) -> Any:
        return eval(f"({make})[{key}]", {"np": np})

    check(made)
    check(lambda np: made(np).T)
    check(lambda np: made(np)[::2])
    check(lambda np: np.stack([np.asarray(row) for row in made(np)]))


@pytest.mark.parametrize("key", ["1:", "::-1", "1, :", ":, 1", "..."])
def test_what_is_written_through_views_is_seen(key: str) -> None:
    program = f"""
a = np.arange(12.0).reshape(3, 4) * 1
v = a[{key}]
w = v[::-1]
b = a + 1
w += 10
c = a + v.sum()
v[...] = w * 2
a *= 3
d = v * 1
a[{key}] = v[::-1]
found = [a, b, c, d, v, w, v.base is a, numpy.shares_memory(numpy.asarray(a), numpy.asarray(w))]
"""
    said = []
    for np in (numpy, lazynp):
        names: dict[str, Any] = {"np": np, "numpy": numpy}
        exec(program, names)
        said.append([numpy.asarray(x).tolist() for x in names["found"][:6]] + names["found"][7:])
    assert said[0] == said[1]


def test_a_view_outlives_its_array() -> None:
    for make in (lambda: lazynp.arange(5.0) * 2, lambda: lazynp.asarray(numpy.arange(5.0) * 2), lambda: lazynp.array([0, 2, 4, 6, 8.0])):
        v = make()[1:][::-1]
        w = [lazynp.zeros(5) + k for k in range(50)]  # which would take the memory
        assert v.tolist() == [8.0, 6.0, 4.0, 2.0] and len(w) == 50
        assert numpy.asarray(v).base is not None and numpy.asarray(v[:2]).tolist() == [8.0, 6.0]


def test_casts_and_copies_are_steps() -> None:
    x = lazynp.arange(5.0) * 2
    y = x.copy().astype("f") + 1
    assert len(lazynp.schedule(y).items) > 0
    assert y.dtype == "f4" and y.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    for source, target in itertools.product("bBhHiIlLqQfd?", repeat=2):
        check(lambda np, source=source, target=target: (np.arange(7).astype(source) * 1).astype(target))
        check(lambda np, source=source, target=target: (np.arange(7).astype(source)[::2]).astype(target))
    check(lambda np: (np.arange(12.0).reshape(3, 4) * 1).T.astype("f"))
    check(lambda np: (np.arange(12.0).reshape(3, 4) * 1).T.copy())
    check(lambda np: np.copy((np.arange(12.0).reshape(3, 4) * 1).T))
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        assert (lazynp.ones(3) * 1e300).astype("f").tolist() == [numpy.inf] * 3
