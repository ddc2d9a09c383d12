"""The array object: protocols, exports, forcing, and what stays lazy."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from PIL import Image

import lazynp as np
from lazynp import arrays
from lazynp.arrays import ndarray, node_of, wrap
from lazynp.bounds import DEPTH_LIMIT
from lazynp.conversion import asarray
from lazynp.graph import build, report
from lazynp.graph import op as o
from lazynp.graph.dtypes import NATIVE
from lazynp.namespace.standard import namespace_of
from lazynp.storage import host
from lazynp.values import config
from tests.namespace.compare import check

DTYPES = sorted(NATIVE, key=lambda dtype: dtype.num)
SHAPES = [(), (1,), (0,), (3,), (2, 3), (3, 0), (2, 1, 3)]


@pytest.fixture
def x() -> Any:
    return asarray(numpy.arange(12.0).reshape(3, 4)) + 0


def forced() -> list[str]:
    return [counted.name for counted in report.forced.values()]


# Making --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_foreign_arrays_keep_value_and_layout(dtype: Any, shape: Any, order: str) -> None:
    theirs = numpy.asarray(numpy.arange(numpy.prod(shape)).reshape(shape), dtype).copy(order)
    ours = asarray(theirs)
    assert (ours.shape, ours.dtype, ours.strides) == (theirs.shape, theirs.dtype, theirs.strides)
    assert ours.flags == theirs.flags
    assert repr(ours.flags) == repr(theirs.flags)
    numpy.testing.assert_array_equal(ours, theirs)
    assert (ours.nbytes, ours.itemsize, ours.ndim, ours.size) == (theirs.nbytes, theirs.itemsize, theirs.ndim, theirs.size)
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)
    assert ours.tobytes() == theirs.tobytes()
    assert ours.tolist() == theirs.tolist()


def test_later_writes_to_a_foreign_array_are_seen() -> None:
    theirs = numpy.arange(3.0)
    ours = asarray(theirs)
    before = ours + 0
    theirs[0] = 9
    ours[1] = 8
    assert (ours[0], before[0], theirs[1]) == (9, 0, 8)


@pytest.mark.usefixtures("recorded")
def test_arrays_are_shared_frozen_and_readonly_ones_too() -> None:
    frozen = numpy.arange(3.0)
    frozen.flags.writeable = False
    owner = numpy.arange(3.0)
    window = owner[:]
    window.flags.writeable = False
    for theirs in (frozen, window, owner):
        for wanted in (None, False):
            ours = asarray(theirs, copy=wanted)
            assert numpy.shares_memory(host(ours), theirs)
            assert ours.flags.writeable == theirs.flags.writeable
        assert not numpy.shares_memory(host(asarray(theirs, copy=True)), theirs)
    with pytest.raises(ValueError, match="read-only"):
        asarray(frozen)[0] = 1
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        asarray(owner.reshape(3, 1).repeat(2, 1), order="F", copy=False)


def test_memory_behind_an_array_protocol_is_shared() -> None:
    class Holder:
        memory = numpy.arange(3.0)

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.memory

    ours = asarray(Holder())
    Holder.memory[0] = 9
    assert ours[0] == 9


FOREIGN = ["text", None, [None, 1], numpy.array(["a"]), numpy.longdouble(1), numpy.array([1], ">i4"), numpy.array(["2020-01-01"], "M8[D]")]


@pytest.mark.parametrize("value", FOREIGN, ids=repr)
def test_dtypes_that_are_not_computed_with_stay_numpys(value: Any) -> None:
    assert type(asarray(value)) is numpy.ndarray
    assert isinstance(asarray(value), ndarray)


SEQUENCES = [
    [1, 2], [1, 2.5], [[1, 2], [3, 4]], [], [[]], [True, False], (1, 2j), range(4), [[1], [2.5]], 3, 2.5, True, 1j, numpy.float32(2),
]  # fmt: skip


@pytest.mark.parametrize("value", SEQUENCES, ids=repr)
def test_sequences(value: Any) -> None:
    theirs, ours = numpy.asarray(value), asarray(value)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    numpy.testing.assert_array_equal(ours, theirs)
    assert asarray(value, dtype="c16").dtype == numpy.complex128


def test_sequences_of_lazy_values_stay_lazy(x: ndarray) -> None:
    report.reset()
    made = asarray([[x.sum(), 1], [2.5, x[0, 0, ...]]])
    rows = asarray([x[0], x[2] * 2])
    assert not report.forced
    numpy.testing.assert_array_equal(made, [[66, 1], [2.5, 0]])
    numpy.testing.assert_array_equal(rows, [[0, 1, 2, 3], [16, 18, 20, 22]])
    assert asarray([asarray(numpy.float32(1)) + 1, 2]).dtype == numpy.float64
    with pytest.raises(ValueError, match="inhomogeneous"):
        asarray([x[0], x[0, :2]])


def test_ragged_sequences_and_huge_integers_are_numpys_errors() -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        asarray([[1, 2], [3]])
    with pytest.raises(OverflowError):
        asarray(300, dtype="i1")


def test_own_arrays_come_back_as_they_are(x: ndarray) -> None:
    assert asarray(x) is x
    assert asarray(x, dtype="f8") is x
    assert asarray(x.T, order="C").flags.c_contiguous
    assert asarray(x, order="F").strides == (8, 24)
    copied = asarray(x, copy=True)
    x[0, 0] = 50
    assert copied[0, 0] == 0
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        asarray(x, dtype="f4", copy=False)
    with pytest.warns(numpy.exceptions.ComplexWarning):
        asarray(x * 1j, dtype="f8")


@pytest.mark.usefixtures("recorded")
def test_constructor() -> None:
    assert np.ndarray((2, 3)).shape == (2, 3)
    assert np.ndarray((2, 3), order="F").strides == (8, 16)
    memory = numpy.arange(4, dtype="i4")
    window = np.ndarray((2,), "i4", memory, 4, (8,))
    assert window.tolist() == [1, 3]
    window[0] = 7
    assert memory[1] == 7
    ours = np.arange(4) * 2
    window = np.ndarray((2,), "i8", ours, 8, (16,))
    window[1] = 5
    assert ours.tolist() == [0, 2, 4, 5]


def test_isinstance_accepts_numpys_arrays(x: ndarray) -> None:
    assert isinstance(x, np.ndarray)
    assert isinstance(numpy.zeros(2), np.ndarray)
    assert not isinstance(1.0, np.ndarray)
    assert not isinstance(x[0, 0], np.ndarray)


# Exports --------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorded")
def test_export_is_the_memory(x: ndarray) -> None:
    seen = numpy.asarray(x)
    assert numpy.shares_memory(seen, numpy.asarray(x)) and np.shares_memory(seen, x[1:])
    x[0, 0] = 50
    x[1] += 1
    seen[2, 0] = 9
    numpy.testing.assert_array_equal(seen, x)
    assert (seen[0, 0], x[2, 0]) == (50, 9)


def test_export_of_a_view_shares_memory_and_strides(x: ndarray) -> None:
    for take in (lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[1]):
        seen = numpy.asarray(take(x))
        assert numpy.shares_memory(seen, numpy.asarray(x))
        assert seen.strides == take(x).strides


def test_export_outlives_the_array() -> None:
    seen = numpy.asarray(asarray(numpy.arange(1000.0)) * 2)
    gc.collect()
    numpy.testing.assert_array_equal(seen, numpy.arange(1000.0) * 2)


@pytest.mark.usefixtures("recorded")
def test_export_of_an_array_that_is_being_filled() -> None:
    x = np.zeros(5)
    x[0] = 1
    seen = numpy.asarray(x)
    x[1] = 2
    assert seen.tolist() == x.tolist() == [1, 2, 0, 0, 0]


def test_array_makes_a_writable_copy(x: ndarray) -> None:
    made = numpy.array(x)
    made[0, 0] = 7
    assert x[0, 0] == 0
    assert numpy.asarray(x, dtype="f4").dtype == numpy.float32
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        numpy.asarray(x, dtype="f4", copy=False)


@pytest.mark.usefixtures("recorded")
def test_dlpack(x: ndarray) -> None:
    assert x.__dlpack_device__() == (1, 0)
    seen = numpy.from_dlpack(x)
    assert numpy.shares_memory(seen, numpy.asarray(x)) and seen.flags.writeable
    numpy.testing.assert_array_equal(seen, numpy.asarray(x))
    unversioned = x.__dlpack__()
    assert "dltensor" in repr(unversioned)
    assert "dltensor" in repr(x.__dlpack__(copy=False))


def test_numpys_functions_stay_lazy(x: ndarray) -> None:
    report.reset()
    made = [numpy.sin(x), numpy.add(numpy.ones(4), x), numpy.ones((3, 4)) * x, numpy.float64(2) * x]
    made += [numpy.concatenate([x, x]), numpy.mean(x, axis=0)]
    made += [numpy.add.reduce(x), numpy.where(x > 3, x, 0), numpy.maximum(x, 3, where=x > 1)]
    assert all(type(y) is ndarray for y in made)
    assert forced() in ([], ["out="])
    theirs = numpy.arange(12.0).reshape(3, 4)
    numpy.testing.assert_array_equal(made[1], theirs + 1)
    numpy.testing.assert_array_equal(made[4], numpy.concatenate([theirs, theirs]))


def test_numpys_functions_that_write_into_numpys_memory(x: ndarray) -> None:
    theirs = numpy.ones((3, 4))
    theirs += x
    numpy.testing.assert_array_equal(theirs, numpy.asarray(x) + 1)
    out = numpy.empty((3, 4))
    assert numpy.multiply(x, 2, out=out) is out
    assert out[2, 3] == 22
    theirs[1:] = x[1:] * 2
    assert theirs[2, 3] == 22


@pytest.mark.usefixtures("recorded")
def test_foreign_ufuncs_go_through_numpy(x: ndarray) -> None:
    report.reset()
    doubled = numpy.frompyfunc(lambda v: v * 2, 1, 1)(x[0])
    assert doubled.tolist() == [0, 2, 4, 6]
    assert report.fallbacks


# Python's protocols -----------------------------------------------------------------------------------------------------------


def outcome(act: Any) -> Any:
    try:
        found = act()
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        return type(error)
    return found


CALLS = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": lambda a: [10, 11, 12][a],
    "len": len,
    "iter": lambda a: [float(numpy.sum(v)) for v in a],
    "hash": hash,
    "format": lambda a: f"{a:.2f}",
    "plain format": lambda a: f"{a}",
    "item": lambda a: a.item(),
    "item 1": lambda a: a.item(1),
    "item tuple": lambda a: a.item((0, 0)),
    "contains": lambda a: 1 in a,
    "contains nothing": lambda a: 77 in a,
    "tolist": lambda a: a.tolist(),
    "repr": repr,
    "reversed": lambda a: [float(numpy.sum(v)) for v in reversed(a)],
    "unpack": lambda a: (lambda p, q: float(numpy.sum(q)))(*a),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_conversions_and_their_errors(call: Any) -> None:
    for theirs in [
        numpy.array(1.5), numpy.array(1), numpy.array([2]), numpy.array([2.0]), numpy.zeros(0), numpy.arange(2.0),
        numpy.arange(4).reshape(2, 2), numpy.array(True), numpy.array(1j), numpy.zeros((0, 2)),
    ]:  # fmt: skip
        expected, got = outcome(lambda theirs=theirs: call(theirs)), outcome(lambda theirs=theirs: call(asarray(theirs)))
        assert got == expected
        assert type(got) is type(expected)


def test_copying_and_pickling(x: ndarray) -> None:
    for take in (lambda a: a, lambda a: a.T, lambda a: a[::2, 1:]):
        for make in (copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a)), lambda a: a.copy("K")):
            made = make(take(x))
            assert made.strides == make(take(numpy.asarray(x))).strides
            made[...] = 7
            numpy.testing.assert_array_equal(x, numpy.arange(12.0).reshape(3, 4))
    assert x.T.copy().flags.c_contiguous


def test_copy_computes_nothing(x: ndarray) -> None:
    report.reset()
    y = x.copy()
    y[0] = 9
    assert not report.forced
    assert x[0, 1] == 1
    assert y[0, 1] == 9


LAYOUTS: dict[str, Callable[[], Any]] = {
    "C order": lambda: np.arange(12.0).reshape(3, 4) + 1,
    "transposed": lambda: (np.arange(12.0).reshape(3, 4) + 1).T,
    "strided": lambda: (np.arange(12.0).reshape(3, 4) + 1)[1:, ::-2],
    "permuted result": lambda: np.transpose(np.arange(24).reshape(2, 3, 4), (1, 2, 0)) * 2.5,
    "broadcast": lambda: np.broadcast_to(np.arange(3) + 1, (2, 3)),
    "constant": lambda: np.full((2, 3), 4, np.float16),
    "0-d": lambda: np.asarray(numpy.array(True)),
    "complex": lambda: np.array([1j, 2]) * 2,
    "empty": lambda: np.zeros((0, 3)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("protocol", ["__array_interface__", "__array_struct__"])
@pytest.mark.usefixtures("recorded")
def test_described_memory_is_the_arrays(name: str, protocol: str) -> None:
    x = np.asarray(LAYOUTS[name]())
    expected = numpy.array(x.tolist(), x.dtype).reshape(x.shape)
    reader = type("Reader", (), {protocol: getattr(x, protocol), "keeps": x})()
    seen = numpy.asarray(reader)
    others = [(x + 1).realize() for _ in range(3)]
    assert len(others) == 3
    assert (seen.dtype, seen.shape) == (expected.dtype, expected.shape)
    assert (seen == expected).all()
    assert seen.flags.writeable == x.flags.writeable
    if seen.flags.writeable:
        seen[...] = 0
        assert not x.any()
        x[...] = 1
        assert (seen == 1).all()


@pytest.mark.usefixtures("recorded")
def test_an_address_stays_the_arrays() -> None:
    x = np.arange(1000.0) * 2
    address = x.ctypes.data
    y = x + 1
    for k in range(3):
        ctypes.memset(address, 0, 16)
        assert x[:3].tolist() == [0, 0, 4 + 3 * k]
        x[:] = x + 3
        assert (x.ctypes.data, x.__array_interface__["data"]) == (address, (address, False))
    assert y[:3].tolist() == [1, 3, 5]


@pytest.mark.parametrize("turn", [lambda x: x, lambda x: x.T, lambda x: x[::2, ::-1]])
def test_pillow_reads_an_array(turn: Callable[[Any], Any]) -> None:
    x = (np.arange(20 * 30).reshape(20, 30) % 251).astype(np.uint8)
    image = Image.fromarray(turn(x))
    assert (numpy.asarray(image) == turn(numpy.asarray(x))).all()


def test_iteration_sees_writes_made_meanwhile() -> None:
    x = asarray(numpy.arange(4.0))
    seen = []
    for k, value in enumerate(x):
        seen.append(float(value))
        if k < 3:
            x[k + 1] += value
    assert seen == [0, 1, 3, 6]


def test_attributes_of_the_array_api(x: ndarray) -> None:
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="cuda"):
        x.to_device("cuda")
    assert x.__array_namespace__() is namespace_of(np)
    assert x.mT.shape == (4, 3)
    with pytest.raises(ValueError, match="ndim < 2"):
        _ = x[0].mT


def test_flags() -> None:
    x = asarray(numpy.zeros((2, 3)))
    assert x.flags["C"]
    assert x.flags["WRITEABLE"]
    x.flags["WRITEABLE"] = False
    assert not x.flags.writeable
    with pytest.raises(KeyError):
        x.flags["NOTHING"]


# Forcing ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorded")
def test_every_forced_realize_has_its_reason() -> None:
    acts: dict[str, Any] = {
        "__array__": numpy.asarray,
        "__bool__": lambda a: bool(a[0, ...]),
        "repr": repr,
        "item": lambda a: a[:1].item(),
        "tolist": lambda a: a.tolist(),
        "realize": lambda a: a.realize(),
        "iteration": lambda a: list(a),
        "mask shape": lambda a: a[a > 0],
        "__float__": lambda a: float(a.sum()),
        "element": lambda a: a[0],
        "__contains__": lambda a: 1 in a,
        "pickle": pickle.dumps,
        "index": lambda a: a.__setitem__(asarray([0]) + 0, [1]),
    }
    for reason, act in acts.items():
        report.reset()
        act(asarray(numpy.arange(3.0)) + 1)
        assert reason in forced(), reason


def test_realize_gives_the_array_and_keeps_the_value(x: ndarray) -> None:
    assert x.realize() is x
    assert node_of(x).op is o.BUFFER
    report.reset()
    view = x[1:].T
    assert view.realize() is view
    numpy.asarray(view)
    assert not report.forced


@pytest.mark.usefixtures("recorded")
def test_contiguous_is_a_fence(x: ndarray) -> None:
    assert node_of((x + 1).contiguous()).op is o.CONTIGUOUS
    numpy.testing.assert_array_equal((x + 1).contiguous() * 2, (numpy.asarray(x) + 1) * 2)


def test_pending_graph_is_bounded() -> None:
    x = asarray(numpy.arange(3.0))
    for _ in range(3 * DEPTH_LIMIT):
        x = x + 1
        assert node_of(x).depth <= DEPTH_LIMIT
    x[:2] = 0
    for k in range(3 * DEPTH_LIMIT):
        x[k % 2 : 2] = x[1:3][: 2 - k % 2]
        assert node_of(x).depth <= DEPTH_LIMIT + 2
    assert x[2] == 3 * DEPTH_LIMIT + 2


@pytest.mark.slow
def test_long_chains_do_not_recurse() -> None:
    one = build.const(1.0, numpy.dtype(float))
    node = node_of(asarray(numpy.zeros(1)))
    for _ in range(100_000):
        node = build.elementwise(o.ADD, one.dtype, node, one)
    del node
    x = asarray(numpy.zeros(2))
    for _ in range(100_000):
        x = wrap(build.elementwise(o.ADD, one.dtype, node_of(x), one))
    assert x.tolist() == [100_000.0] * 2


def test_realized_array_keeps_no_history() -> None:
    x = asarray(numpy.arange(3.0)) + 1
    y = x * 2
    y.realize()
    assert node_of(y).src == ()
    assert node_of(y).depth == 0


def test_view_of_a_computed_base_reads_the_base() -> None:
    x = asarray(numpy.arange(12.0).reshape(3, 4).T) * 2
    flat = x.T.T
    first = node_of(flat)
    x.realize()
    report.reset()
    node = node_of(flat)
    while node.op.kind is o.Kind.MOVEMENT:
        node = node.src[0]
    assert node.op is o.BUFFER
    assert first is not None


def test_eager_mode_runs_and_raises_at_the_call() -> None:
    with config.override(eager=True):
        x = asarray(numpy.arange(4.0)) + 1
        assert node_of(x).buffer is not None
        x[1:] = x[:-1] * 2
        assert node_of(x).buffer is not None
        with pytest.raises(IndexError):
            x[asarray([0, 2]) + 3]
    assert x.tolist() == [1, 2, 4, 6]


def test_ordered_results_hide_their_base() -> None:
    value = node_of(asarray(numpy.arange(6.0).reshape(2, 3)))
    x = arrays.wrap_ordered(value, (1, 0))
    assert x.strides == (8, 16)
    assert x.base is None
    assert x.flags.owndata
    x[0, 1] = 9
    x += 1
    assert x.tolist() == [[1, 10, 3], [4, 5, 6]]
    assert numpy.asarray(x).strides == (8, 16)


def test_no_warning_leaks_from_recording() -> None:
    with warnings.catch_warnings(), numpy.errstate(over="ignore"):
        warnings.simplefilter("error")
        x = asarray(numpy.array([1e308, -1.0])) * 10
        x[0] = x[1]
        numpy.asarray(x)


# Filling -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize(
    "value",
    [
        lambda m: 3, lambda m: 2.5, lambda m: 1j, lambda m: 300, lambda m: numpy.nan, lambda m: None, lambda m: "7", lambda m: "a",
        lambda m: True, lambda m: [3], lambda m: [1, 2], lambda m: m.zeros(1), lambda m: m.arange(2), lambda m: m.array(4),
        lambda m: m.arange(3).sum(),
        lambda m: m.arange(3)[2], lambda m: m.arange(3.0).sum() / 2, lambda m: [m.arange(3)[1]],
    ],
)  # fmt: skip
def test_fill_takes_one_value(dtype: str, value: Callable[[Any], Any]) -> None:
    def filled(m: Any) -> Any:
        x = m.zeros((2, 3), dtype)
        part = x[:, 1:]
        error = None
        try:
            part.fill(value(m))
        except (TypeError, ValueError, OverflowError) as raised:
            error = type(raised).__name__
        return x, error

    check(filled)
