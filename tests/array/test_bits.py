"""Values at hand are computed by NumPy's own loops: the same bits, dtypes, warnings and exceptions, in whichever core."""

import copy
import functools
import gc
import operator
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.and_, operator.or_,
    operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, divmod,
]  # fmt: skip
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.iand, operator.ipow]
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]
FUNCTIONS = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "square", "reciprocal", "sin", "cos", "tan", "arcsin",
    "arctan", "sinh", "arcsinh", "floor", "ceil", "rint", "trunc", "sign", "isnan", "isfinite", "signbit", "absolute", "negative",
    "logical_not", "tanh",
]  # fmt: skip
FUNCTIONS_OF_TWO = ["maximum", "minimum", "fmax", "hypot", "arctan2", "copysign", "nextafter", "logaddexp", "power", "logical_and", "fmod"]
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "any", "all", "std", "argmax"]
DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "F", "D"]
SIZES = [0, 1, 2, 3, 8, 17, 64, 129, 1000]
NUMBERS = [
    2, 0, -3, 300, 2**40, 2**70, 0.5, -0.0, 1e300, float("nan"), True, 1j, numpy.float64(0.1), numpy.float32(3), numpy.int64(5),
    numpy.int8(2),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _at_hand() -> Any:
    with config.override(tape_limit=4096):
        yield


def values(dtype: str, size: int, seed: int) -> numpy.ndarray[Any, Any]:
    """Ordinary and special values."""
    rng = numpy.random.default_rng(seed)
    made = rng.normal(0, 3, size) + (1j * rng.normal(0, 3, size) if dtype in "FD" else 0)
    if dtype in "efdFD":
        special = numpy.array([0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1.0, -1.0, 1e4, 1e-4])
        at = rng.random(size) < (0.2 if seed % 2 else 0)
        made[at] = rng.choice(special, at.sum())
    with numpy.errstate(all="ignore"):
        return (made > 0 if dtype == "?" else abs(made) if dtype in "BHILQ" else made).astype(dtype)


def outcome(function: Callable[[], Any]) -> Any:
    """What a call does: bits and dtypes, or the exception; and the warnings, with their lines."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = function()
            parts = found if isinstance(found, tuple) else (found,)
            result: Any = [(numpy.asarray(part).dtype, numpy.shape(part), _bits(part)) for part in parts]
        except Exception as error:
            result = type(error), str(error)
    return result, [(str(w.message), w.category) for w in told], [w.lineno if w.filename == __file__ else None for w in told]


def _bits(part: Any) -> bytes:
    array = numpy.array(part)
    if array.dtype.kind in "fc":
        array[numpy.isnan(array)] = numpy.nan  # their sign and payload are nobody's promise
    return array.tobytes()


def layout(found: Any) -> Any:
    """A result and how it lies in memory."""
    if isinstance(found, tuple):
        return tuple([part for each in found for part in layout(each)])
    strides = zip(numpy.shape(found), getattr(found, "strides", ()), strict=True)
    return found, numpy.array([stride for length, stride in strides if length > 1])


def agree(function: Callable[..., Any], *operands: Any) -> None:
    ours = [lazynp.array(x) if isinstance(x, numpy.ndarray) else x for x in operands]
    theirs = [x.copy() if isinstance(x, numpy.ndarray) else x for x in operands]
    (expected, told, there), (found, heard, here) = [outcome(lambda: function(*each)) for each in (theirs, ours)]  # noqa: B023
    assert (found, heard) == (expected, told), (function, [getattr(x, "dtype", x) for x in operands], [numpy.shape(x) for x in operands])
    # what NumPy tells of at lines of its own, lazynp does at the user's
    assert [line for line, other in zip(here, there, strict=True) if other] == [line for line in there if line]
    for x, y in zip(ours, theirs, strict=True):
        if isinstance(y, numpy.ndarray):
            assert _bits(x) == _bits(y)


@pytest.mark.parametrize("dtype", [pytest.param(dtype, marks=() if dtype in "?lBdF" else pytest.mark.slow) for dtype in DTYPES])
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_operators(function: Any, dtype: str) -> None:
    for seed, size in enumerate(SIZES):
        x, y = values(dtype, size + 1, seed), values(dtype, size + 1, seed + 100)
        agree(function, x[1:], y[1:])
        agree(lambda a, b: function(a[1:], b[:-1]), x, y)  # views
        agree(lambda a, b: function(a[::2], b[::-2]), x, y)
        agree(lambda a, b: function(a[::2], b[::2]), x, y)
    x, y = values(dtype, 60, 0).reshape(3, 4, 5), values(dtype, 60, 102).reshape(3, 4, 5)
    shown: list[Callable[[Any], Any]] = [
        lambda a: a, lambda a: a[1:, :-1, 1:4], lambda a: a[0], lambda a: a[:, 1], lambda a: a[:, :1], lambda a: a[..., :1], lambda a: a.T,
        lambda a: a[:, ::2], lambda a: a[:, :, ::2], lambda a: a[::-1], lambda a: a[0, 0], lambda a: a[..., None], lambda a: a[:1, :1, :1],
        lambda a: a[:, :0], lambda a: a[1, 2, 3, ...], lambda a: a.swapaxes(0, 1),
    ]  # fmt: skip
    for first in shown:
        for second in shown:
            agree(lambda a, b: layout(function(first(a), second(b))), x, y)  # noqa: B023
        agree(lambda a: layout(function(first(a), 2)), x)  # noqa: B023
        agree(lambda a: layout(function(2, first(a))), x)  # noqa: B023


@pytest.mark.parametrize("dtype", ["?", "b", "B", "i", "l", "L", "e", "f", "d", "D"])
@pytest.mark.parametrize("function", BINARY[:7] + BINARY[12:14], ids=lambda f: f.__name__)
def test_operators_with_numbers(function: Any, dtype: str) -> None:
    x = values(dtype, 33, 1)
    for number in NUMBERS:
        agree(function, x, number)
        agree(lambda a, b: function(b, a), x, number)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_in_place(dtype: str) -> None:
    for function in IN_PLACE:
        for seed, size in enumerate(SIZES):
            agree(function, values(dtype, size, seed), values(dtype, size, seed + 50))
        for number in NUMBERS:
            agree(function, values(dtype, 9, 0), number)
        agree(lambda a: function(a[1:], a[:-1]), values(dtype, 20, 3))  # noqa: B023


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions(dtype: str) -> None:
    for seed, size in enumerate(SIZES):
        x = values(dtype, size, seed)
        for function in UNARY:
            agree(function, x)
        for name in FUNCTIONS:
            if not (dtype in "FD" and name in ("expm1", "tanh")):  # special values are those of the array API standard
                agree(lambda a: getattr(numpy if type(a) is numpy.ndarray else lazynp, name)(a), x)  # noqa: B023


@pytest.mark.parametrize("name", FUNCTIONS_OF_TWO)
def test_functions_of_two(name: str) -> None:
    for dtype in DTYPES:
        for seed, size in enumerate(SIZES):
            x, y = values(dtype, size, seed), values(dtype, size, seed + 1)
            agree(lambda a, b: getattr(numpy if type(a) is numpy.ndarray else lazynp, name)(a, b), x, y)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    for dtype in DTYPES:
        for seed, size in enumerate(SIZES):
            x = values(dtype, size, seed)
            agree(lambda a: getattr(a, name)(), x)
            agree(lambda a: getattr(numpy if type(a) is numpy.ndarray else lazynp, name)(a), x)
            agree(lambda a: getattr(a[::2], name)(), x)
        for shape in [(3, 5), (4, 3, 2), (1, 7), (7, 1), (2, 0)]:
            x = values(dtype, 24, 1)[: numpy.prod(shape)].reshape(shape)
            for axis in (None, 0, -1, 5):
                agree(lambda a: getattr(a, name)(axis=axis), x)  # noqa: B023
            agree(lambda a: getattr(a.T, name)(), x)


MATRICES = [(1, 1), (2, 2), (1, 7), (7, 1), (3, 22), (33, 2), (8, 8), (40, 41), (0, 3)]
LAYOUTS: list[Callable[[Any], Any]] = [lambda x: x, lambda x: x.T, lambda x: x[::2], lambda x: x[:, 1:], lambda x: x[:, ::-1]]


@pytest.mark.parametrize("dtype", ["?", "B", "i", "l", "e", "f", "d", "D"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "any", "all"])
def test_reductions_of_an_axis(name: str, dtype: str) -> None:
    for seed, shape in enumerate(MATRICES):
        whole = values(dtype, shape[0] * shape[1], seed).reshape(shape)
        theirs, ours = whole.copy(), lazynp.array(whole)
        for lie in LAYOUTS:
            for axis in (0, 1, -1, -2, 2):
                for keeps in ({}, {"keepdims": True}):
                    x, y = lie(theirs), lie(ours)
                    want = outcome(lambda x=x, axis=axis, keeps=keeps: getattr(x, name)(axis=axis, **keeps))
                    got = outcome(lambda y=y, axis=axis, keeps=keeps: getattr(y, name)(axis, **keeps))
                    assert got[:2] == want[:2], (shape, axis, keeps)


@pytest.mark.parametrize("shape", [(1347, 10), (9000, 7), (7, 9000), (2, 8192), (130, 500), (32000, 2)])
@pytest.mark.parametrize("dtype", ["l", "f", "d"])
def test_reductions_of_an_axis_of_many_elements(dtype: str, shape: tuple[int, int]) -> None:
    theirs = (numpy.random.default_rng(0).standard_normal((shape[0], shape[1] + 3)) * 100).astype(dtype)
    with config.override(tape_limit=200_000):
        ours = lazynp.array(theirs)
        for lie in (lambda x: x[:, : shape[1]].copy(), lambda x: x[:, : shape[1]]):
            for name in ("sum", "max", "mean"):
                for axis in (0, 1):
                    want, got = (outcome(functools.partial(getattr(lie(x), name), axis=axis)) for x in (theirs, ours))
                    assert got[:2] == want[:2], (name, axis)


@pytest.mark.parametrize("dtype", ["?", "l", "e", "f", "d", "D"])
def test_products(dtype: str) -> None:
    for seed, (n, m) in enumerate(MATRICES):
        a, b = values(dtype, n * m, seed).reshape(n, m), values(dtype, m * n, seed + 1).reshape(m, n)
        pairs = [(a, b), (a, a.T), (a.T, a), (a[::2], b), (a, b[:, ::-1]), (a, a), (a.ravel(), a.ravel())]
        for p, q in pairs + ([(a, b[:, 0]), (a[0], b)] if n else []):
            want, got = outcome(lambda p=p, q=q: p @ q), outcome(lambda p=p, q=q: lazynp.asarray(p) @ lazynp.asarray(q))
            assert got == want
            for name in ("dot", "inner"):
                want = outcome(lambda p=p, q=q, name=name: getattr(numpy, name)(p, q))
                got = outcome(lambda p=p, q=q, name=name: getattr(lazynp, name)(lazynp.asarray(p), lazynp.asarray(q)))
                assert got[:2] == want[:2]
        assert outcome(lambda a=a: lazynp.linalg.norm(lazynp.asarray(a)))[0] == outcome(lambda a=a: numpy.linalg.norm(a))[0]


def test_matrices() -> None:
    rng = numpy.random.default_rng(0)
    calls: list[tuple[str, int]] = [("solve", 1), ("solve", 2), ("inv", 0), ("det", 0), ("cholesky", 0)]
    for n in [*range(1, 7), 20, 64, 65]:
        for k in range(6):
            a = rng.standard_normal((n, n))
            a = a @ a.T if k % 2 else a.T
            if k == 5:
                a[0] = 0.0
            for name, operands in calls:
                given = (a, *[rng.standard_normal((n, 3)[:operands])][:operands])
                ours = [lazynp.array(x) for x in given]
                want = outcome(lambda name=name, given=given: getattr(numpy.linalg, name)(*given))
                got = outcome(lambda name=name, ours=ours: getattr(lazynp.linalg, name)(*ours))
                assert got[:2] == want[:2], (name, n, k)


def _changed(z: Any, key: Any, change: Any, other: Any) -> None:
    z[key] = change(z[key], z[key][:1] if other is None else other)


@pytest.mark.parametrize("dtype", ["l", "d", "D", "f"])
def test_writes_in_place_by_rows(dtype: str) -> None:
    for n in (1, 3, 8):
        x = values(dtype, 80, n).reshape(8, 10)
        pair = x.copy(), lazynp.array(x)
        for key in [(slice(1, None), slice(2, None)), (slice(None), 1), (slice(None, None, 2),), (slice(None), slice(None, None, -1))]:
            for change in IN_PLACE[:3]:
                for other in (2, x[0, 0], None):
                    want, got = [outcome(functools.partial(_changed, z, key, change, other)) for z in pair]
                    assert got[:2] == want[:2]
                    assert _bits(pair[0]) == _bits(pair[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements(dtype: str) -> None:
    x = values(dtype, 12, 3).reshape(3, 4)
    pair = x.copy(), lazynp.array(x)
    for key in [(0, 0), (-1, 2), (numpy.int64(2), -4), (3, 0), (0, -5), (1,), 1, (True, 0), (0, 0, 0), (2**70, 0)]:
        want, got = [outcome(functools.partial(operator.getitem, z, key)) for z in pair]
        assert got[:2] == want[:2], key
        for value in NUMBERS:
            want, got = [outcome(functools.partial(operator.setitem, z, key, value)) for z in pair]
            assert got[:2] == want[:2] and _bits(pair[0]) == _bits(pair[1]), (key, value)
    assert pair[1][0, 0].__class__ is type(x[0, 0])


def test_subscripts() -> None:
    x, y = values("d", 24, 0).reshape(4, 6), values("d", 24, 2).reshape(4, 6)
    index, mask = numpy.array([3, 0, 1]), y > 0
    keys: list[Any] = [
        0, -1, 4, slice(1, 3), (1, 2), (1, 9), (slice(None), 2), (slice(None, None, -1), None), ..., (), None, index, mask, (index, 1),
        (1, index), (slice(None), index), [0, 2], [[0, 1], [1, 2]], True, 1.5, "x", (0, 0, 0), numpy.int64(2), index[:0], mask[0],
        (index[:, None], index),
    ]  # fmt: skip
    for key in keys:
        agree(lambda a: a[key], x)  # noqa: B023
        for value in (7, 1j, 2.5, [1.0], "z", y[0], y[1:, 1:]):
            agree(lambda a, b: operator.setitem(a, key, b), x, value)  # noqa: B023


def test_keys_of_ours() -> None:
    x = lazynp.arange(10.0)
    at = lazynp.array([1, 2])
    assert x[at].tolist() == [1.0, 2.0]
    assert x[x > 7].tolist() == [8.0, 9.0]
    x[at] = lazynp.array([5.0, 6.0])
    x[x > 8] = 0
    assert x.tolist() == [0, 5, 6, 3, 4, 5, 6, 7, 8, 0]
    assert x[at[0]] == 5.0


def test_attributes_of_cells() -> None:
    x = numpy.arange(24.0).reshape(2, 3, 4)[:, ::2]
    y = lazynp.array(x)
    for name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides"):
        assert getattr(y, name) == getattr(numpy.array(x), name)
    assert len(y) == 2
    assert [row.shape for row in y] == [(2, 4), (2, 4)]
    assert y.T.base is y
    assert y[0][1:].base is y
    assert (y + y).base is None
    with pytest.raises(TypeError, match="len\\(\\) of unsized object"):
        len(y[0, 0, 0, ...])
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(y[0, 0, 0, ...])
    with pytest.raises(TypeError, match="unhashable"):
        hash(y)


def test_readonly() -> None:
    x = lazynp.arange(5.0)
    x.flags.writeable = False
    view = x[1:]
    for write in (lambda: x.__setitem__(0, 1), lambda: operator.iadd(x, 1), lambda: operator.iadd(x, x), lambda: view.__setitem__(0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_errors_may_be_raised() -> None:
    x = lazynp.array([1.0, 0.0])
    with numpy.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        1 / x
    with numpy.errstate(divide="ignore"):
        assert (1 / x).tolist() == [1.0, numpy.inf]


def test_results_beyond_the_limit_are_recorded() -> None:
    x = lazynp.ones((100, 1))
    assert type((x + lazynp.ones((1, 100)))._base) is not numpy.ndarray
    assert type((x + lazynp.ones((1, 10)))._base) is numpy.ndarray
    assert type((lazynp.ones((70, 2)) @ lazynp.ones((2, 70)))._base) is not numpy.ndarray


def _work(x: Any, i: int) -> Any:
    """One turn of many kinds of operations."""
    y = x * 2.0 + x[::-1]
    y[1:3] = x[:2]
    y[i % 8] += 1
    y += 0.5
    z = lazynp.where(y > x, y, x).reshape(2, 4)
    total = 0.0
    for row in z:
        total += float(row.sum())
    assert len(z.T) == 4
    return total + float(lazynp.exp(-x).max()) + float((x @ y) / (x**2).sum())


def test_references_are_kept_and_given_back() -> None:
    x = lazynp.array(numpy.linspace(1, 2, 8))
    _work(x, 0)
    gc.collect()
    blocks, held = sys.getallocatedblocks(), sys.getrefcount(lazynp.ndarray)
    for i in range(3000):
        _work(x, i)
        with pytest.raises(IndexError):
            x[99]
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 300
    assert sys.getrefcount(lazynp.ndarray) - held < 300


def test_threads() -> None:
    x = lazynp.array(numpy.linspace(1, 2, 8))
    expected = [_work(x, i) for i in range(50)]
    found: list[list[float]] = []
    threads = [threading.Thread(target=lambda: found.append([_work(x, i) for i in range(50)])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


PRODUCTS = [
    "a @ b", "np.dot(a, b)", "np.inner(a, b.T)", "np.tensordot(a, b, 1)", "a.dot(b[:, 0])", "a[0] @ b", "np.einsum('ij,jk->ik', a, b)",
    "np.einsum('ij,jk->ik', a, b, optimize=True)", "a.conj() @ b", "a @ a.conj().T", "np.linalg.multi_dot([a, b, b.T])",
]  # fmt: skip


@pytest.mark.parametrize("text", PRODUCTS)
def test_products_that_are_recorded_have_numpys_signs_of_zeros(text: str) -> None:
    """BLAS is asked for the product that NumPy asks for, in which no products or one may be added to zero."""
    turns = ["x", "x.T.copy().T", "np.conj(x)", "x * 1", "x[::-1]", "-x"]
    with config.override(tape_limit=0):
        for shape in ((1, 1, 1), (2, 3, 2), (4, 1, 4), (1, 3, 4), (4, 3, 1), (2, 1, 1), (1, 1, 3)):
            for left, right in (("c16", "c16"), ("c8", "c8"), ("f8", "c16"), ("c16", "i8"), ("f8", "f8")):
                made = [_of_zeros(shape[:2], left), _of_zeros(shape[1:], right)]
                for turn in turns:
                    found = []
                    for np in (numpy, lazynp):
                        a, b = [eval(turn, {"x": np.asarray(x), "np": np}) for x in made]
                        found.append(numpy.asarray(eval(text, {"a": a, "b": b, "np": np})))
                    assert found[0].tobytes() == found[1].tobytes(), (shape, left, right, turn, found)


def _of_zeros(shape: tuple[int, ...], dtype: str) -> Any:
    few = numpy.array([0.0, -0.0, 1.0, -1.0])
    rng = numpy.random.default_rng(sum(shape))
    x = numpy.empty(shape, dtype)
    x.real = rng.choice(few, shape)
    if x.dtype.kind == "c":
        x.imag = rng.choice(few, shape)
    return x


COPIES: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda np, x: x[::-1].copy(),
    "astype": lambda np, x: x[::-1].astype(x.dtype),
    "array": lambda np, x: np.array(x[::-1]),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray(x[::-1]),
    "ravel": lambda np, x: x[::-1].ravel(),
    "flatten": lambda np, x: x[::-1].flatten(),
    "reshape": lambda np, x: x.reshape(2, -1)[:, ::-1].reshape(-1),
    "deepcopy": lambda np, x: copy.deepcopy(x[::-1]),
    "write": lambda np, x: written(np.empty_like(x), x[::-1]),
    "view": lambda np, x: x[::-1],
}


def written(x: Any, value: Any) -> Any:
    x[:] = value
    return x


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", COPIES)
def test_products_of_copies_of_what_runs_backwards(name: str, large: bool) -> None:
    """NumPy's loops give products of complex64 numbers other bits where they run backwards: a copy does not."""
    rng = numpy.random.default_rng(0)
    x, y = (rng.standard_normal((2, 4000)).astype("f").view("F")[:, :2000].reshape(-1) for _ in range(2))
    with config.override(tape_limit=0 if large else 1 << 18):
        found = COPIES[name](lazynp, lazynp.array(x)) * lazynp.array(y)
        assert numpy.asarray(found).tobytes() == (COPIES[name](numpy, x) * y).tobytes()
