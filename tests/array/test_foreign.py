"""Arrays of NumPy's that other libraries made, as arguments: to functions and operators they are what ours are.

Every public function gives what NumPy gives, with arrays of NumPy's in several layouts, and leaves in them what NumPy leaves; what shows
their memory shows what is written there later, from either side.
"""

from __future__ import annotations

import gc
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.namespace.calls import CALLS, arrays, ufunc_call

Array = numpy.ndarray[Any, Any]

SKIPPED = {
    "empty_like", "fromfile", "frompyfunc", "get_include", "info", "load", "nested_iters", "printoptions", "row_stack", "save", "savetxt",
    "savez", "savez_compressed", "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config", "show_runtime", "test",
    "vectorize",
}  # fmt: skip
# Whose results have other strides than NumPy's, or may not be written, also where ours are given; and what warns of writes to come.
LOOSE = {"histogramdd", "histogram2d", "imag", "nonzero", "unravel_index", "broadcast_arrays"}
UFUNCS = sorted(name for name, value in vars(numpy).items() if isinstance(value, numpy.ufunc))
TEXTS = {name: text for name, text in CALLS.items() if name not in SKIPPED} | {name: ufunc_call(name) for name in UFUNCS}
MORE = [
    "np.sqrt(a, a)", "np.add(a, a, a)", "np.add(a, 1, out=a)", "np.sum(a, out=v[:1].reshape(()))", "np.dot(m, m, m.copy())",
    "np.clip(a, 2, 3, a)", "np.cumsum(v, 0, None, v)", "np.maximum(a, 3, where=a > 2, out=a)",
    "np.concatenate([a, a], axis=1, out=np.empty((3, 8)))", "np.add.reduce(a, 1)", "np.multiply.outer(i, v)",
    "np.add.reduce(a, 0, out=v[:4])", "np.minimum.accumulate(v)", "np.add.reduceat(v, [0, 2])", "np.take(a, i, axis=1, mode='clip')",
    "np.take(v, i, out=np.empty(3))", "np.sum(a, axis=1, keepdims=True)", "np.mean(a, axis=0)", "np.max(a, where=a > 2, initial=0)",
    "np.linalg.solve(m, v[:3])", "np.linalg.inv(m)", "np.linalg.det(m)", "np.linalg.norm(a, axis=1)", "np.linalg.norm(v)",
    "np.linalg.eigh(m + m.T)", "np.linalg.svd(a)[1]", "np.fft.fft(v)", "np.fft.rfft2(a)", "np.random.default_rng(3).choice(v, 2)",
    "np.random.default_rng(3).permutation(v)", "np.random.default_rng(3).shuffle(v)", "np.random.default_rng(3).normal(v, 1.0)",
    "np.ravel(a)", "np.atleast_1d(v)", "np.squeeze(v)", "np.real(v)", "np.asarray(a)", "np.asarray(i, float)", "np.asarray(a, 'f4')",
    "np.array(a, dtype=int)", "np.array(a, copy=False)", "np.array(a, copy=True, order='F')", "np.asarray(a, order='F')",
    "np.array(i, 'u1')", "np.array([v, v])", "np.array([i, v[:3]])", "np.array([[v[0], 1], [2, 3]])", "np.stack((i, i), 1)",
    "np.array([v, i])", "np.where(b, i, 2.5)", "np.where(b)", "np.select([b, ~b], [i, -i])",
    "np.searchsorted(np.sort(v), v, side='right')", "np.lib.stride_tricks.sliding_window_view(v, 2)",
    "np.lib.stride_tricks.as_strided(v, (2, 2), v.strides * 2)", "np.isscalar(v)", "np.vstack([i, [1, 2, 3]])", "np.append(v, i)",
    "np.insert(v, 1, i)", "np.unique(i, return_counts=True)", "np.histogram(v, bins=np.sort(v))", "np.polyfit(v, v, 1)",
    "np.trapezoid(v, v)", "np.save(io.BytesIO(), a)", "np.array_equal(a, np.array(a))", "np.array_equal(np.array(a), a)",
    "np.copyto(a, a.T[:, :1].T)", "np.copyto(np.zeros((3, 4)), a)", "np.einsum('ij->j', a)", "np.log(n)", "np.sqrt(v)", "np.divide(v, 0)",
    "np.add(v, v[:2])", "np.add(i, 'x')", "np.matmul(a, a)", "np.vdot(a, m)", "np.sum(a, axis=5)", "np.reshape(a, 5)",
    "np.sqrt(np.asarray(n))", "np.frombuffer(u, 'u1')", "np.ndindex(a.shape)", "np.apply_along_axis(lambda x: x + 1, 0, a)",
    "np.vectorize(lambda x: x + 1)(v)", "np.testing.assert_allclose(a, a)",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "@", "<", "<=", "==", "!=", ">", ">=", "&", "|", "^", "<<", ">>"]
OPERANDS = [
    ("q", "v"), ("v", "q"), ("Q", "m"), ("m", "Q"), ("Q", "v[:3]"), ("k", "i"), ("i", "k"), ("t", "b"), ("q[0]", "v"), ("v", "q[0]"),
    ("q", "n"), ("k", "z"),
]  # fmt: skip
IN_PLACE = [
    "q += v", "q -= v", "q *= i[0]", "q /= v", "q **= v", "k += i", "k += v[:3]", "k //= i", "t &= b", "v += q", "i += k", "Q @= m",
    "Q += i", "q += n",
]  # fmt: skip
ASSIGNED = [
    "q[:] = v", "q[1:3] = v[:2]", "Q[:, 1] = i", "Q[1] = i", "q[k % 5] = i", "q[q > 0] = 3 * v[0]", "Q[t] = m[:2]", "q[...] = v[0]",
    "Q[:] = m.T", "k[:] = v[:3]", "q[:3] = b", "q[1:] = numpy.asarray(q)[:-1]", "q[:] = numpy.asarray(q)[::-1]",
    "q[::-1] += numpy.asarray(q)", "q[:] = n", "q[:2] = z", "q[0:3] = u",
]  # fmt: skip


@pytest.fixture(autouse=True)
def at_hand() -> Iterator[None]:
    with config.override(tape_limit=4096):
        yield


def gaps(x: Array) -> Array:
    """A view of memory that is no array's: bytes from which parts are taken."""
    room = numpy.zeros((*x.shape[:-1], x.shape[-1] * 2 + 1), x.dtype)
    view = numpy.lib.stride_tricks.as_strided(room[..., 1:], x.shape, (*room.strides[:-1], 2 * room.itemsize))
    view[...] = x
    return view


def unwritable(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "as NumPy lays them": numpy.copy,
    "fortran": lambda x: numpy.array(x, order="F"),
    "steps": lambda x: numpy.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[..., ::-1].copy()[..., ::-1],
    "read-only": unwritable,
    "bytes": lambda x: numpy.frombuffer(bytearray(x.tobytes()), x.dtype).reshape(x.shape),
    "gaps": gaps,
    "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
}


def names(np: Any, layout: str) -> dict[str, Any]:
    own = {name: np.array(value) for name, value in arrays(numpy).items() if name in ("v", "m", "i", "b")}
    foreign = {name: LAYOUTS[layout](value) for name, value in arrays(numpy).items() if isinstance(value, numpy.ndarray)}
    return foreign | {"np": np, "io": io, "numpy": numpy, "q": own["v"] * 2, "Q": own["m"] - 1, "k": own["i"] + 1, "t": own["b"]}


def shown(value: Any, loose: bool = False) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(item, loose) for item in value]
    if isinstance(value, (numpy.ndarray, lazynp.ndarray)):
        memory = numpy.asarray(value)
        lies = None if loose else (value.strides if memory.size > 1 else None, value.flags.writeable)
        return "array", value.dtype, value.shape, lies, memory.tobytes()
    if isinstance(value, numpy.generic):
        return type(value).__name__, value.tobytes()
    return type(value).__name__


def outcome(text: str, np: Any, layout: str, mode: str = "eval", loose: bool = False) -> Any:
    given = names(np, layout)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore" if loose else "always")
        try:
            found = shown(eval(compile(text, "program", mode), given), loose)
        except Exception as error:
            found = type(error), str(error).replace("numpy.", "")
    told = sorted((w.category.__name__, str(w.message)) for w in caught)
    return found, told, [(name, shown(value)) for name, value in given.items() if isinstance(value, (numpy.ndarray, lazynp.ndarray))]


def compare(texts: list[str], layout: str, mode: str = "eval", loose: bool = False) -> None:
    both = [(text, outcome(text, numpy, layout, mode, loose), outcome(text, lazynp, layout, mode, loose)) for text in texts]
    assert not [(text, *next((x, y) for x, y in zip(a, b, strict=True) if x != y)) for text, a, b in both if a != b]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", TEXTS)
def test_functions(name: str, layout: str) -> None:
    compare([TEXTS[name]], layout, loose=name in LOOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_more_arguments(layout: str) -> None:
    compare(MORE, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator: str, layout: str) -> None:
    compare([f"{a} {operator} {b}" for a, b in OPERANDS], layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes(layout: str) -> None:
    compare(IN_PLACE + ASSIGNED, layout, "exec")


# Whose memory it is ---------------------------------------------------------------------------------------------------------------------


VIEWS = ("np.asarray(v)", "np.asarray(v, float)", "np.asanyarray(v)", "np.ravel(v)", "np.squeeze(v)", "np.transpose(v)", "np.real(v)")
COPIES = ("np.array(v)", "np.copy(v)", "np.array(v, 'f8')", "np.asarray(v, 'f4')", "v + np.zeros(5)", "np.sort(v)", "np.where(v > 0, v, v)")


@pytest.mark.parametrize("text", VIEWS)
def test_views_show_what_is_written(text: str) -> None:
    found = []
    for np in (numpy, lazynp):
        v = numpy.arange(5.0)
        x = eval(text, {"np": np, "v": v})
        v[0] = 7
        x[1] = 8
        y = x + 1
        v[2] = 9
        x += 1
        found.append((v.tolist(), x.tolist(), y.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("text", COPIES)
def test_what_is_computed_is_nobody_elses(text: str) -> None:
    v = numpy.arange(5.0)
    x = eval(text, {"np": lazynp, "v": v})
    before = x.tolist()
    assert type(x) is lazynp.ndarray
    v[:] = 100
    assert x.tolist() == before
    x[:] = 200
    assert v.tolist() == [100] * 5


def test_what_is_given_for_the_result_comes_back() -> None:
    v, w = numpy.arange(5.0), numpy.zeros(5)
    for call in ("add(v, 1, w)", "add(v, 1, out=w)", "sqrt(v, out=w)", "cumsum(v, 0, None, w)", "cumsum(v, out=w)", "clip(v, 1, 2, w)"):
        text = f"np.{call}"
        assert eval(text, {"np": lazynp, "v": v, "w": w}) is w, text


def test_recorded_programs_take_what_was_there() -> None:
    v = numpy.arange(5.0)
    x = lazynp.sqrt(v)
    with config.override(tape_limit=0):
        y = lazynp.asarray(v) + lazynp.sqrt(x)
        v[:] = 0
        assert y.tolist() == (numpy.arange(5.0) + numpy.arange(5.0) ** 0.25).tolist()


def test_nothing_is_kept() -> None:
    v, m, q = numpy.arange(5.0), numpy.eye(3), lazynp.arange(5.0)

    def turn() -> None:
        lazynp.sqrt(v), v + q, q + v, lazynp.dot(m, m), lazynp.concatenate([v, v]), lazynp.array(v), lazynp.asarray(v)
        lazynp.sum(v, out=None), lazynp.add(v, 1, out=v), lazynp.ravel(m), lazynp.where(v > 0, v, 0)
        q[:] = v
        with pytest.raises(ValueError):
            lazynp.add(v, v[:2])

    turn()
    gc.collect()
    before = sys.getrefcount(v), sys.getrefcount(m)
    for _ in range(50):
        turn()
    gc.collect()
    assert (sys.getrefcount(v), sys.getrefcount(m)) == before


def test_ufuncs_of_others() -> None:
    """SciPy's loops, and a program's own, which may give objects."""
    special = pytest.importorskip("scipy.special")
    values = numpy.array([0.5, -1.5, 3.0])
    for x in (values, values.astype("f4"), numpy.arange(3), numpy.float64(0.5), values.reshape(3, 1)):
        ours = lazynp.asarray(x)
        for function in (special.erf, special.gammaln, special.expit, special.digamma, numpy.spacing, numpy.sqrt):
            with numpy.errstate(all="ignore"):
                found, want = function(ours), function(x)
            assert isinstance(found, lazynp.ndarray if want.ndim else numpy.generic)
            assert shown(found) == shown(want)
    for text in ("one(x)", "two(x, x)", "two(x, 1)", "two(numpy.float64(2), x)"):
        given = {"one": numpy.frompyfunc(str, 1, 1), "two": numpy.frompyfunc(lambda a, b: (a, b), 2, 1), "numpy": numpy}
        found, want = (eval(text, given | {"x": x}) for x in (lazynp.array(values), values))
        assert type(found) is numpy.ndarray
        assert found.tolist() == want.tolist()
    assert numpy.frompyfunc(str, 1, 1)(lazynp.array(2.5)) == "2.5"


DTYPES = ("float", "numpy.float64", "'f8'", "numpy.dtype('f8')", "numpy.dtype('<f8')", "int", "numpy.int64", "bool", "'?'")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_dtype_shares_memory(dtype: str) -> None:
    for before in (numpy.ones(3), numpy.arange(3), numpy.array([True, False, True])):
        found = []
        for np in (numpy, lazynp):
            v = before.copy()
            x = np.asarray(v, eval(dtype))
            v[0] = 0
            x[1] = 1
            found.append((v.tolist(), x.tolist(), x.dtype))
        assert found[0] == found[1]


SIZES = [
    "zeros(3, q)", "identity(q, q)", "arange(numpy.uint64(4), q)", "arange(1, q, dtype='M8[s]')", "arange(numpy.timedelta64(3), q)",
    "full(3)", "ones(3, 5)", "full(shape=3)", "full([2])", "ones([2], 5)", "full(numpy.int8(3))", "ones(shape=3)",
    "full(shape=3, fill_value=1.5)", "ones([2, 2])", "ones(q)", "zeros(v)", "zeros((q, 2))", "eye(q)", "eye(3, q)", "linspace(0, q, 5)",
    "linspace(v, 1, 3)", "linspace(0, 1, q)", "full(q, q)", "full((2, 3), v)", "full(3, v[0])", "indices((2, q))", "tri(q)",
    "zeros(numpy.int64(-1))", "zeros(True)", "zeros(numpy.True_)", "eye(numpy.int8(3), numpy.uint8(2), 1)", "eye(3, M=4)", "eye(3, k=q)",
    "zeros(2.0)", "ones('a')", "zeros(None)", "zeros([[2]])", "arange(v[1], v[2])", "arange(q, dtype=float)", "arange(stop=3)",
    "arange(0, 1, 0.25, dtype='f4')", "arange(3, like=None)", "zeros(())", "ones([])", "zeros(2**70)", "eye(2**40)",
    "linspace(0, 1, numpy.int8(4))", "empty([2, 0])", "hanning(q)", "tri(numpy.int64(3), 2)", "identity(numpy.int16(2), dtype=int)",
]  # fmt: skip


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text: str) -> None:
    found: list[Any] = []
    for np in (numpy, lazynp):
        given = {"q": numpy.array(3), "v": numpy.array([1.0, 2.0, 3.0]), "numpy": numpy, "np": np}
        try:
            found.append(shown(eval(f"np.{text}", given)))
        except Exception as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_a_size_that_changes_the_shape_it_is_in() -> None:
    """NumPy reads behind the list, and ends the process."""
    shape: list[Any] = []

    class Odd(numpy.int64):
        def __index__(self) -> int:
            shape.clear()
            return 2

    shape.extend(Odd(2) for _ in range(8))
    assert lazynp.zeros(shape).size in (0, 1, 2**8)
