"""Arguments at the edges of what NumPy takes: the same results, dtypes, layouts and exceptions.

Found by NumPy's own tests (``python -m conformance numpy``); each line here is one finding.
"""

from __future__ import annotations

import functools
import inspect
import operator
import pickle
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.namespace.standard import EXCHANGED, KEYWORDS
from lazynp.values import config

BOTH = (numpy, lazynp)


def outcome(np: Any, text: str) -> Any:
    """What an expression of ``np`` gives: values with dtype, shape and layout, or the class of the exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = eval(text, {"np": np, "operator": operator, "numpy": numpy})
            parts = [described(part) for part in (value if isinstance(value, tuple) else (value,))]
        except Exception as error:
            return type(error)
    return parts, sorted({warning.category.__name__ for warning in caught})


def described(value: Any) -> Any:
    if type(value) is lazynp.ndarray or isinstance(value, numpy.ndarray):
        layout = value.strides if value.size and value.ndim > 1 else ()
        return "array", value.dtype, value.shape, layout, numpy.asarray(value).tolist()
    if isinstance(value, numpy.generic) or lazynp.isscalar(value):
        return "scalar", getattr(value, "dtype", type(value)), repr(getattr(value, "item", lambda: value)())
    return value


EXPRESSIONS = [
    # memory orders may be written small
    "np.ones((2, 3), order='f')", "np.ones((2, 3)).copy('f')", "np.add(np.ones((2, 3)), 1, order='f')", "np.ones((2, 3)).ravel('f')",
    "np.array([[1, 2]], order='x')", "np.ones((2, 3)).reshape(3, 2, order='k')", "np.ones(3).copy(order=1)",
    "np.zeros_like(np.ones((2, 3), order='F'), shape=(3, 2, 2), order='A')",
    # ufunc keywords
    "np.add(1, 2, sig='dd->d', signature='dd->d')", "np.add(1, 2, dtype='f4', signature='ff->f')", "np.add(1, 2, dtype=object)",
    "np.negative(np.ones(2), where=[1, 0], out=np.zeros(2))", "np.negative(np.ones(2), where=np.array([1, 0]), out=np.zeros(2))",
    # reductions check what they write to
    "np.add.reduce(np.ones((1, 10)), axis=-1, out=np.empty((3, 1)), keepdims=True)", "np.add.reduce(np.ones((2, 3)), out='no')",
    "np.add.reduce(np.ones((2, 3)), 0, None, np.empty((1, 3)))", "np.maximum.reduce(np.zeros((0, 0)), axis=1)",
    "np.maximum.reduce(np.zeros((0, 3)), axis=1)", "np.signbit(np.sum(np.array([-0.0, -0.0]), initial=-0.0))",
    "np.cumsum(np.ones(3), out='no')", "np.vecdot(np.ones((1, 3)), np.ones((1, 3)), out=np.empty((4, 2)))",
    "np.matmul(np.ones((2, 2)), np.ones((2, 2)), out=np.empty((1, 2)))",
    # axes
    "np.moveaxis(np.ones((2, 3, 4)), range(2), [1, 0]).shape", "np.moveaxis(np.ones((2, 3)), 3, 0)",
    "np.ones((2, 3)).transpose(np.array([1, 0]))",
    "np.expand_dims(np.ones(2), (0, 0))",
    # keys
    "np.ones((2, 2))[0.0:, 0.0]", "np.ones((2, 2))[0.0:]", "np.arange(4)[numpy.testing.suppress_warnings]", "np.ones(1)[(None,) * 64]",
    "np.ones((1,) * 2)[(np.array([0]),) * 64]", "np.arange(9).reshape(3, 3).flat[[True, 1]]", "np.arange(4).flat[None]",
    "np.arange(4).flat[np.array([True, False, True])]", "np.arange(4).flat[1:3]", "np.arange(4).flat[[3, 0]]",
    # shapes
    "np.reshape(np.ones(2), (True, -1))", "np.zeros(np.iinfo(np.intp).max)", "np.empty((2, -1))",
    # dtypes and copies
    "np.array([1, 2], dtype=numpy.dtypes.Float32DType)", "np.zeros(2, dtype=numpy.dtypes.Int16DType)",
    "np.array(['abc'], dtype=numpy.dtypes.StrDType)",
    "np.array(5, copy=False)", "np.array([1], copy='yes')", "np.array([1.0], copy=numpy._CopyMode.IF_NEEDED)",
    "np.array([[1], [2]], ndmin=3)",
    # sorting
    "np.partition([3, 1, 2], 1, kind='no')", "np.partition([3, 1, 2], 1, kind=1)", "np.partition([3, 1, 2], 1.5)",
    "np.partition([3, 1, 2], range(3))",
    "np.partition(np.zeros((0, 3)), 5, axis=0)", "np.argpartition(np.ones((2, 3)), np.array([], int), axis=0)",
    "np.sort([2, 1], order='f')",
    "np.sort(numpy.array([(2, 1), (1, 2)], 'i4,i4'), order='f1')",
    # joining
    "np.concatenate([np.float32(1), 1.0, 5], axis=None)", "np.concatenate([[1], [2]], casting='no such')", "np.block([(1, 2), (3, 4)])",
    "np.block([[np.ones((2, 2), order='F')], [np.ones((2, 2), order='F')]])", "np.block(np.ones((2, 3)))",
    # comparisons with tolerance
    "np.isclose(np.array(1, 'f4'), 2, atol=0, rtol=0.49999999999)", "np.isclose(1, 1, atol=np.inf)", "np.array_equiv([1, 2], ['a', 'b'])",
    # scalars
    "np.complex64(1, 2)", "np.float64(2) * type('F', (float,), {})(3)", "np.float32(2) + type('F', (float,), {})(3)", "np.float64(3) * [1]",
    "np.float32(2).astype('O')", "np.int8(2) ** 'a'", "np.uint8(3) == None",
    # einsum
    "np.einsum('ii->i', np.arange(9).reshape(3, 3))", "np.einsum('ijk->kij', np.arange(24).reshape(2, 3, 4)).shape",
    "np.einsum('ij,jk', np.ones((2, 2)), np.ones((2, 2)), optimize=['einsum_path', (2, 3)])",
    # flags
    "np.require(np.ones((2, 3)), requirements='F').flags.f_contiguous", "np.require([1, 2], 'f4', ['W', 'C'])",
    "np.require(np.ones(2), None, ['C', 'F'])",
    # dtypes that are NumPy's alone
    "np.isreal(numpy.array([1, 2j], object))", "np.iscomplex(numpy.array([1, 2], 'g'))", "np.cumulative_sum(numpy.array([1, 2], object))",
    "np.cumulative_prod(numpy.array([1, 2], 'g'), include_initial=True)", "np.sinc(numpy.array([0, 0.5], 'g')).dtype",
    # coefficients of any shape
    "np.polyval(np.ones((2, 2)), 1)", "np.polyval(np.ones((2, 2)), np.ones(3))", "np.polyval(1, 2)",
    # buffers
    "np.ndarray((2, 2), 'i4', np.arange(4, dtype='i8'), 8)", "np.ndarray(5, 'i8', np.arange(4))",
    # found by random calls
    "np.tile([1, 2], (-1,))", "np.tile([1, 2], (-1, 0))", "np.tile(np.zeros((0, 3)), (-1, 2))", "np.repeat(np.array(3), [2])",
    "np.repeat(np.array(3), 2, axis=0)", "np.repeat(np.array(3), 2, axis=-1)", "np.repeat(np.array(3), 2, axis=1)",
    "np.repeat(np.array([1, 2]), np.array([1, 2], 'u8'))", "np.repeat(np.array([1, 2]), np.array([True, False]))",
    "np.repeat(np.array([1, 2]), -1)", "np.repeat(np.array([]), -1)", "np.repeat(np.array([1, 2]), [[1, 2]])",
    "np.repeat(np.array([1, 2]), [[1]])", "np.repeat(np.array([1, 2]), 1.5)", "np.repeat(np.array([1, 2]), [1.5])",
    "np.cumulative_sum(np.array(3), include_initial=True)", "np.cumulative_prod(np.array(3.), axis=0, include_initial=True)",
    "np.cumulative_prod(np.array(3.))", "np.pad(np.arange(3, dtype='u1'), 1, constant_values=-1)",
    "np.pad(np.arange(3, dtype='u1'), 1, constant_values=300)", "np.pad(np.arange(3, dtype='u1'), 1, constant_values=1j)",
    "np.pad(np.arange(3, dtype='u1'), 1, constant_values=2.7)", "np.pad(np.arange(3.), 1, constant_values=(1, 2))",
    "np.pad(np.arange(3), 1, constant_values='a')", "np.pad(np.arange(3), 1, constant_values=None)",
    "np.std(np.arange(6).reshape(2, 3), axis=0, dtype='i8')", "np.std(np.arange(6), dtype='i8')",
    "np.std(np.arange(6), dtype='i8', keepdims=True)", "np.average(np.zeros((0, 3)), axis=1)",
    "np.average(np.zeros((0, 3)))", "np.transpose(np.arange(3), 0)", "np.transpose(np.zeros((2, 3)), 1)",
    "np.permute_dims(np.arange(3), 0)", "np.tri(3, k=1.5)", "np.tri(3, k=-1.5)", "np.tril(np.ones((3, 3)), -.5)",
    "np.triu(np.ones((3, 3)), .5)", "np.triu(np.ones((3, 3)), -.5)", "np.triu(np.ones((3, 3)), None)",
    "np.triu(np.ones((3, 3)), np.int8(1))", "np.triu(np.ones((3, 3)), np.array(1))", "np.clip(np.array([True]))",
    "np.clip(np.array([True]), None, None)", "np.clip(np.array([1]))", "np.indices(6)", "np.indices([2, 3])",
    "np.size(np.zeros((2, 3)), 2)", "np.size(np.zeros((2, 3)), (0, 1))",
    "np.trapezoid(np.arange(24.).reshape(2, 3, 4), np.arange(48.).reshape(2, 2, 3, 4)**2)",
    "np.trapezoid(np.arange(24.).reshape(2, 3, 4), np.arange(48.).reshape(2, 2, 3, 4)**2, axis=1)",
    "np.trapezoid(np.arange(4.), np.arange(12.).reshape(3, 4)**2)", "np.linalg.solve(np.eye(2, dtype='i1')*2, np.ones(2, 'f4'))",
    "np.linalg.solve(np.eye(2, dtype='f2')*2, np.ones(2, 'f4'))", "np.linalg.solve(np.eye(2, dtype='f4')*2, np.ones(2, 'c8'))",
    "np.linalg.solve(np.eye(2, dtype='f4')*2, np.ones(2, '?'))", "np.concatenate((np.zeros((1, 3)), np.zeros(0)), axis=-1, dtype='i1')",
    "np.concatenate((1, 2))", "np.concatenate((1, 2), None)", "np.concatenate((np.ones(2), ['a']), dtype='i1')",
    "np.average(np.ones(3), weights=[0, 0, 0])",
    "np.concatenate((np.ones(2), np.ones(2)), out=[1])", "np.ptp(np.arange(6), out=np.zeros(2))",
    "np.ptp(np.arange(6).reshape(2, 3), 0, out=np.zeros(3))", "np.ptp(np.arange(6).reshape(2, 3), out=np.zeros(()))",
    "np.ptp(np.arange(6.).reshape(2, 3), 0, out=np.zeros(3, int))", "np.ptp(np.arange(6), out=[1])", "np.nan_to_num([1.], copy=False)",
    "np.nan_to_num(1., copy=False)", "(lambda a: (setattr(a, 'real', 1j), a)[1])(np.zeros(2))",
    "(lambda a: (setattr(a, 'real', -1), a)[1])(np.zeros(2, 'u1'))", "(lambda a: (setattr(a, 'real', [1, 2]), a)[1])(np.zeros(2))",
    "(lambda a: (setattr(a, 'imag', 2.5), a)[1])(np.zeros(2, 'F'))", "(lambda a: (setattr(a, 'imag', 1j), a)[1])(np.zeros(2, 'F'))",
    "(lambda a: (setattr(a, 'real', 'x'), a)[1])(np.zeros(2, 'F'))",
    "np.take(np.arange(6.), [0, 1], out=np.zeros(2))", "np.take(np.arange(6.), [0, 1], out=np.zeros(3))",
    "np.take(np.arange(6.), [0, 1], out=np.zeros((1, 2)))", "np.take(np.arange(6.), [0, 1], out=np.zeros(2, 'f4'))",
    "np.take(np.arange(6), [0, 1], out=np.zeros(2))", "np.take(np.arange(6.), [0, 1], out=np.zeros(2, 'f4'), mode='clip')",
    "np.take(np.arange(6), [0, 1], out=np.zeros(2), mode='wrap')", "np.compress([True, False, True], np.arange(3.), out=np.zeros(2))",
    "np.compress([True, False, True], np.arange(3.), out=np.zeros(1))", "np.linalg.vector_norm(np.array(3.), keepdims=True)",
    "np.zeros((2, 2)).sort(None)", "np.zeros(2).partition(1, None)", "np.zeros(2).sort(-1)", "np.zeros(2).sort(1.5)",
    "np.pad(np.array(1.), -1)", "np.pad(np.arange(3), -1)", "np.mean(np.array([.1, .2, .3], 'f4'), out=np.zeros(()))",
    "np.mean(np.array([.1, .2, .3]), out=np.zeros((), 'f4'))", "np.mean(np.array([1, 2, 2]), out=np.zeros(()))",
    "np.mean(np.array([1, 2, 2]), out=np.zeros((), int))", "np.mean(np.array([1., 2, 2]), out=np.zeros((), int))",
    "np.mean(np.array([1j, 2, 2]), out=np.zeros(()))", "np.sum(np.array([1j, 2, 2]), out=np.zeros(()))",
    "np.cumsum(np.array([1j, 2, 2]), out=np.zeros(3))", "np.mean(np.array([[1j, 2, 2]]), 0, out=np.zeros(3, 'F'))",
    "np.mean(np.ones(3), out=[1])", "np.packbits(np.array(True), axis=-1)", "np.packbits(np.array(True), axis=0)",
    "np.packbits(np.array(True), axis=1)",
    "np.packbits(np.array(True))",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_same_outcome(text: str) -> None:
    expected, found = [outcome(np, text) for np in BOTH]
    assert found == expected


def test_outputs_may_be_asked_for_as_arrays() -> None:
    for value in (lazynp.add(1, 2, out=...), lazynp.add.reduce(lazynp.ones(3), out=...), *lazynp.divmod(7, 2, out=...)):
        assert type(value) is lazynp.ndarray
        assert value.shape == ()
    for call in (lambda: lazynp.add(1, 2, ...), lambda: lazynp.negative(1, out=(...,))):
        with pytest.raises(TypeError, match=r"\.\.\."):
            call()


@pytest.mark.usefixtures("recorded")
def test_what_users_derive_from_arrays_is_numpys() -> None:
    class Tagged(lazynp.ndarray):
        def __new__(cls, values: Any, tag: str) -> Any:
            made = lazynp.asarray(values).view(cls)
            made.tag = tag
            return made

        def __array_finalize__(self, source: Any) -> None:
            self.tag = getattr(source, "tag", "none")

    x = Tagged([1.0, 2.0], "a")
    assert isinstance(x, numpy.ndarray)
    assert isinstance(x, lazynp.ndarray)
    assert issubclass(Tagged, lazynp.ndarray)
    for found in (x + lazynp.ones(2), lazynp.ones(2) + x, lazynp.add(x, 1), lazynp.reshape(x, (2, 1)), lazynp.zeros_like(x)):
        assert type(found) is Tagged
    assert type(lazynp.asarray(x)) is lazynp.ndarray
    assert type(lazynp.asanyarray(x)) is Tagged
    assert type(lazynp.array(x, subok=True)) is Tagged
    y = lazynp.arange(3)
    y.view(Tagged)[0] = 1
    assert y[0] == 1


def test_what_users_derive_from_scalars_is_numpys() -> None:
    class Metres(lazynp.float64):
        unit = "m"

    x = Metres(2.5)
    assert isinstance(x, numpy.float64)
    assert isinstance(x, lazynp.float64)
    assert x.unit == "m"
    assert lazynp.add(lazynp.ones(2), x).tolist() == [3.5, 3.5]


def test_subclasses_of_abstract_scalars_are_listed() -> None:
    names = [cls.__name__ for cls in lazynp.floating.__subclasses__()]
    assert names == [cls.__name__ for cls in numpy.floating.__subclasses__()]
    assert lazynp.float32 in lazynp.floating.__subclasses__()


def test_bools_are_interned() -> None:
    assert lazynp.bool(1) is lazynp.True_
    assert lazynp.bool(0) is lazynp.False_
    assert (lazynp.True_ | lazynp.False_) is lazynp.True_


def test_dtypes_equal_their_types() -> None:
    assert lazynp.float32 == numpy.dtype("f4")
    assert numpy.dtype("f4") == lazynp.float32
    assert lazynp.float32 != numpy.dtype("f8")


def test_functions_that_are_builtins_do_not_bind() -> None:
    class Backend:
        array = lazynp.array
        zeros = lazynp.zeros
        normal = lazynp.random.default_rng(0).normal

    backend = Backend()
    made, drawn = backend.array([1, 2], dtype=float), backend.normal(0.0, 1.0, size=3)  # outside of what pytest rewrites: methods' own way
    assert made.dtype == float and drawn.shape == (3,)
    assert Backend().array([1, 2]).tolist() == [1, 2]
    assert Backend().zeros(2).tolist() == [0, 0]
    assert Backend().normal(size=3).shape == (3,)
    assert pickle.loads(pickle.dumps(lazynp.array)) is lazynp.array


def test_signatures_are_numpys() -> None:
    for name in ("sum", "reshape", "nansum", "concatenate", "argpartition"):
        assert inspect.signature(getattr(lazynp, name)) == inspect.signature(getattr(numpy, name))
    for name in ("sum", "astype", "reshape", "__add__"):
        assert str(inspect.signature(getattr(lazynp.ndarray, name))) == str(inspect.signature(getattr(numpy.ndarray, name)))


@pytest.mark.parametrize("path", ["", ".linalg", ".fft", ".ma", ".char", ".lib.stride_tricks"])
def test_functions_show_what_numpys_show(path: str) -> None:
    # What wraps something takes part in ``__array_function__``: programs look for it.
    theirs, ours = (functools.reduce(getattr, path.split(".")[1:], module) for module in (numpy, lazynp))
    different = []
    for name in sorted({*dir(theirs)} - {name for name in dir(theirs) if name.startswith("_")}):
        function, found = getattr(theirs, name), getattr(ours, name)
        if not callable(function) or isinstance(function, type | numpy.ufunc):
            continue
        shown = [str(inspect.signature(each)) if hasattr(each, "__wrapped__") else "" for each in (function, found)]
        changed = f"{path}.{name}".removeprefix(".") in {*KEYWORDS, *EXCHANGED}
        if hasattr(function, "__wrapped__") != hasattr(found, "__wrapped__") or (all(shown) and shown[0] != shown[1] and not changed):
            different.append((name, *shown))
    assert not different


def test_resize() -> None:
    for np in BOTH:
        x = np.arange(6).reshape(2, 3).copy()
        x.resize((2, 2), refcheck=False)
        assert x.tolist() == [[0, 1], [2, 3]]
        x.resize(5, refcheck=False)
        assert x.tolist() == [0, 1, 2, 3, 0]
        with pytest.raises(ValueError, match="does not own"):
            x[1:].resize(2)


def test_einsum_gives_views_that_write_through() -> None:
    for np in BOTH:
        x = np.zeros((3, 3))
        np.einsum("ii->i", x)[:] = [1, 2, 3]
        np.einsum("ij->ji", x)[0, 1] = 7
        assert x.tolist() == [[1, 0, 0], [7, 2, 0], [0, 0, 3]]
    x = lazynp.zeros((2, 2))
    x.flags.writeable = False
    assert not lazynp.einsum("ii->i", x).flags.writeable


def test_an_arrays_memory_as_a_buffer() -> None:
    for np in BOTH:
        x = np.zeros(4)
        y = np.ndarray((2, 2), float, x, order="F")
        y[0, 1] = 3
        assert x.tolist() == [0, 0, 3, 0]


def test_other_classes_go_first() -> None:
    class Other:
        __array_priority__ = 5.0

        def __radd__(self, other: Any) -> str:
            return "radd"

        __rmatmul__ = __rpow__ = __radd__

    class Wrapped:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return lazynp.arange(3.0)

    for np in BOTH:
        assert np.ones(2) + Other() == "radd"
        assert np.ones(2) @ Other() == "radd"
        assert np.ones(2) ** Other() == "radd"
    assert lazynp.asarray(Wrapped()).tolist() == [0, 1, 2]


SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<", ">=", "==", "!=")
PICKY = [f"{a} {symbol} {b}" for symbol in SYMBOLS for a, b in ("xp", "px", "np", "pn", "xo", "ox", "no")]


@pytest.mark.parametrize("text", [*PICKY, "divmod(p, x)", "divmod(n, p)", "divmod(x, o)", "x.__add__(p)", "x.__lt__(p)", "x.__matmul__(o)"])
@pytest.mark.parametrize("pending", [False, True])
def test_other_classes_may_know_numpys_arrays_alone(text: str, pending: bool) -> None:
    """As JAX's do: to all else they say that they do not know it."""

    def forward(name: str) -> Any:
        return lambda self, other: (name, other.tolist()) if type(other) in (numpy.ndarray, numpy.float64) else NotImplemented

    operators = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "divmod"]
    names = [f"__{side}{name}__" for name in operators for side in ("", "r")]
    names += [f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne")]
    picky = type("Picky", (), {"__array_priority__": 100, **{name: forward(name) for name in names}})()
    other = type("Other", (), {"__array_priority__": 100})()
    found = []
    for np in BOTH:
        with config.override(tape_limit=0 if pending else 4096):
            x = np.arange(3.0) + 1
            try:
                found.append(eval(text, {"x": x, "n": x.sum(), "p": picky, "o": other}))
            except (TypeError, ValueError) as error:
                found.append((type(error), str(error).replace("numpy.", "")))
    if "Concatenation" in str(found[0]):  # as sequences, which NumPy's arrays are to the interpreter
        assert found[1][0] is TypeError
    else:
        assert found[0] == found[1]


def test_random_sources_take_and_give_our_arrays() -> None:
    bits = lazynp.random.PCG64(lazynp.array([1, 2, 3]))
    rng = lazynp.random.Generator(bits)
    assert rng.bit_generator is bits
    assert isinstance(bits, numpy.random.PCG64)
    assert type(bits.random_raw(3)) is lazynp.ndarray
    assert bits.random_raw(2).tolist() != bits.random_raw(2).tolist()
    expected = numpy.random.Generator(numpy.random.PCG64([1, 2, 3])).bit_generator
    assert lazynp.random.PCG64(lazynp.array([1, 2, 3])).random_raw(4).tolist() == expected.random_raw(4).tolist()
    state = bits.state
    first = rng.random(3).tolist()
    bits.state = state
    assert rng.random(3).tolist() == first
    assert pickle.loads(pickle.dumps(rng)).random() == rng.random()
    assert type(lazynp.random.SeedSequence(1).generate_state(2)) is lazynp.ndarray
    with pytest.raises(ValueError, match="contiguous"):
        rng.random(out=lazynp.zeros(6)[::2])


def test_assertions_of_numpys_take_our_arrays() -> None:
    x = lazynp.arange(3.0)
    lazynp.testing.assert_equal([x, {"a": x[1]}], [[0, 1, 2], {"a": 1}])
    lazynp.testing.assert_array_equal(x + 1, [1, 2, 3])
    with pytest.raises(AssertionError):
        lazynp.testing.assert_allclose(x, 1)
    assert lazynp.testing.assert_raises(ValueError, x.reshape, 7) is None
    assert lazynp.testing.assert_raises is numpy.testing.assert_raises


def test_private_names_of_public_functions_are_ours() -> None:
    assert lazynp._core.umath.sin is lazynp.sin
    assert lazynp._core.numeric.ones is lazynp.ones
    assert "norm" in vars(lazynp.linalg)


def test_masked_arrays_keep_their_masks() -> None:
    masked = numpy.ma.masked_array([1.0, 2.0], [True, False])
    x = lazynp.ones(2)
    for found in (x + masked, masked + x, lazynp.isclose(masked, 1.0)):
        assert isinstance(found, numpy.ma.MaskedArray)
        assert found.mask.tolist() == [True, False]
    y = x
    y += masked
    assert y is x
    assert type(x) is lazynp.ndarray
