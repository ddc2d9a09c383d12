"""Views: nominal layout, aliasing and write-through, against NumPy."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy
import pytest

import lazynp
from lazynp import arrays, layout, viewing, views
from lazynp.arrays import ndarray
from lazynp.conversion import asarray
from lazynp.storage import host
from lazynp.values import config
from lazynp.viewing import shares_memory

Take = Callable[[Any], Any]


def same(ours: Any, theirs: numpy.ndarray[Any, Any]) -> None:
    assert type(ours) is ndarray
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    assert ours.strides == theirs.strides
    assert ours.flags.c_contiguous == theirs.flags.c_contiguous
    assert ours.flags.f_contiguous == theirs.flags.f_contiguous
    assert ours.flags.writeable == theirs.flags.writeable
    numpy.testing.assert_array_equal(host(ours), theirs)


VIEWS: dict[str, Take] = {
    "slice": lambda x: x[1:-1],
    "negative step": lambda x: x[::-1],
    "step in every axis": lambda x: x[::2, ::-2],
    "negative step that ends at the front": lambda x: x[2::-2],
    "row": lambda x: x[1],
    "column": lambda x: x[:, 2],
    "negative integer": lambda x: x[-1, 1:],
    "ellipsis": lambda x: x[..., 0],
    "only an ellipsis": lambda x: x[...],
    "new axes": lambda x: x[None, :, None],
    "empty slice": lambda x: x[2:1],
    "empty slice with a step": lambda x: x[:, 5:1:3],
    "slice of a slice": lambda x: x[1:][:, 1:][::-1],
    "row of a transpose": lambda x: x.T[1],
    "transpose": lambda x: x.T,
    "transpose twice": lambda x: x.T.T,
    "reshape": lambda x: x.reshape(2, 6),
    "reshape with an unknown": lambda x: x.reshape(-1, 3),
    "reshape to a vector": lambda x: x.reshape(-1),
    "reshape of a slice that stays a view": lambda x: x[1:].reshape(2, 2, 2),
    "reshape of columns that stays a view": lambda x: x[:, ::2].reshape(3, 2, 1),
    "reshape of a reversed array": lambda x: x[::-1].reshape(3, 2, 2),
    "reshape in F order": lambda x: x.T.reshape(2, 6, order="F"),
    "reshape of a reshape": lambda x: x.reshape(2, 6).reshape(4, 3)[1:],
    "slice of a reshape of a slice": lambda x: x[1:].reshape(8)[::3],
    "another dtype": lambda x: x.view(numpy.int64),
    "narrower dtype": lambda x: x.view(numpy.int32),
    "wider dtype": lambda x: x.view(numpy.complex128),
    "wider dtype of rows backwards": lambda x: x[::-1].view(numpy.complex128),
    "bare view": lambda x: x.view(),
}


@pytest.mark.parametrize("take", VIEWS.values(), ids=list(VIEWS))
def test_view_has_numpys_layout(take: Take) -> None:
    theirs = numpy.arange(12.0).reshape(3, 4).copy()
    same(take(asarray(theirs)), take(theirs))


@pytest.mark.parametrize("take", VIEWS.values(), ids=list(VIEWS))
def test_write_through_view_is_seen_by_base(take: Take) -> None:
    theirs = numpy.arange(12.0).reshape(3, 4).copy()
    ours = asarray(theirs)
    take(ours)[...] = 7
    take(theirs)[...] = 7
    same(ours, theirs)


@pytest.mark.parametrize("take", VIEWS.values(), ids=list(VIEWS))
def test_write_to_base_is_seen_by_view(take: Take) -> None:
    theirs = numpy.arange(12.0).reshape(3, 4).copy()
    ours = asarray(theirs)
    view, expected = take(ours), take(theirs)
    ours[1:, 1] = 5
    theirs[1:, 1] = 5
    same(view, expected)
    ours[0, 0] = 3
    theirs[0, 0] = 3
    same(view, expected)


@pytest.mark.parametrize("take", VIEWS.values(), ids=list(VIEWS))
def test_view_of_a_pending_array_in_f_order(take: Take) -> None:
    theirs = numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4))
    ours = asarray(theirs)
    try:
        expected = take(theirs)
    except ValueError as error:
        with pytest.raises(type(error)):
            take(ours)
        return
    got = take(ours)
    shared = numpy.shares_memory(expected, theirs)
    assert shares_memory(got, ours) == shared
    if shared:
        same(got, expected)
    numpy.testing.assert_array_equal(got, expected)


COMPLEX: dict[str, Take] = {
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "real of a slice": lambda x: x[::2].real,
    "slice of imag": lambda x: x.imag[1:, ::-1],
    "as floats": lambda x: x.view(numpy.float64),
    "imag as integers": lambda x: x.imag.view(numpy.int64),
}


@pytest.mark.parametrize("take", COMPLEX.values(), ids=list(COMPLEX))
def test_parts_of_complex_arrays_are_views(take: Take) -> None:
    theirs = (numpy.arange(12.0) + 1j * numpy.arange(12.0)[::-1]).reshape(3, 4)
    ours = asarray(theirs)
    same(take(ours), take(theirs))
    take(ours)[1] = 9
    take(theirs)[1] = 9
    same(ours, theirs)


def test_real_of_a_real_array_is_itself_and_imag_is_readonly() -> None:
    x = asarray([1.0, 2.0])
    assert x.real is x
    assert not x.imag.flags.writeable
    numpy.testing.assert_array_equal(x.imag, [0.0, 0.0])


@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 3, 5])
def test_diagonal_is_a_readonly_view(offset: int) -> None:
    theirs = numpy.arange(24.0).reshape(4, 2, 3)
    ours = asarray(theirs)
    for axis1, axis2 in [(0, 1), (0, 2), (2, 1)]:
        expected = theirs.diagonal(offset, axis1, axis2)
        got = viewing.view_diagonal(ours, offset, axis1, axis2)
        same(got, expected)
    got = viewing.view_diagonal(ours, 0, 0, 1)
    ours[0, 0, 0] = 99
    assert got[0, 0] == 99
    with pytest.raises(ValueError, match="read-only"):
        got[0, 0] = 1


def test_broadcast_view_is_readonly_until_asked_and_has_zero_strides() -> None:
    theirs = numpy.arange(3.0)
    ours = asarray(theirs)
    same(viewing.view_expand(ours, (2, 3)), numpy.broadcast_to(theirs, (2, 3)))
    with pytest.raises(ValueError, match="read-only"):
        viewing.view_expand(ours, (2, 3))[0, 0] = 1
    for view in (numpy.broadcast_to(theirs, (2, 3)), viewing.view_expand(ours, (2, 3))):
        view.setflags(write=True)
        view[1, 1] = 9
    assert host(ours).tolist() == theirs.tolist() == [0.0, 9.0, 2.0]


@pytest.mark.parametrize("pending", [False, True])
def test_memory_goes_with_its_last_array_not_with_the_garbage_collector(pending: bool) -> None:
    x = asarray(numpy.arange(2.0**18))
    if pending:
        x = (x * 2).realize()
    held = ref(x)
    gc.disable()
    try:
        rows = x.reshape(512, 512)
        part = rows[1:-1, 1:-1]
        total = float((part * 2).sum()) + float(rows[3, 4]) + float(part[0, 0])
        assert total > 0
        del x, rows, part
        assert held() is None
    finally:
        gc.enable()


def test_base_is_the_array_that_owns_the_memory() -> None:
    x = asarray(numpy.arange(12.0).reshape(3, 4).copy())
    assert x.base is None
    assert x[1:].base is x
    assert x[1:].T[1:].base is x
    f = asarray(numpy.asfortranarray(numpy.ones((3, 4))))
    assert f.base is None
    assert f.flags.owndata
    assert f[1:].base is f
    assert f.T.base is f


def test_reshape_copies_exactly_where_numpy_does() -> None:
    theirs = numpy.arange(24.0).reshape(2, 3, 4)
    ours = asarray(theirs)
    sources: list[Take] = [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[:, 1:],
        lambda x: x[:, :, ::2],
        lambda x: x[::-1],
        lambda x: x.transpose(1, 0, 2),
        lambda x: x[:, :1],
        lambda x: x[1],
    ]
    for take in sources:
        old = take(theirs)
        n = old.size
        for shape in [(-1,), (2, -1), (n // 2, 2), (1, n, 1), old.shape[::-1], (n, 1)]:
            if n % 2 and 2 in shape:
                continue
            for order in "CF":
                expected = old.reshape(shape, order=order)
                got = viewing.view_reshape(take(ours), shape, order)
                shared = numpy.shares_memory(expected, theirs)
                assert shares_memory(got, ours) == shared, (old.strides, shape, order)
                numpy.testing.assert_array_equal(got, expected)
                if shared:
                    assert got.strides == expected.strides


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (2, -1), (3, 3), (-1, 5), ()])
def test_reshape_errors_are_numpys(shape: tuple[int, ...]) -> None:
    theirs = numpy.arange(3)
    with pytest.raises(ValueError, match=r"reshape|dimension") as expected:
        theirs.reshape(shape)
    with pytest.raises(ValueError, match=r"reshape|dimension") as got:
        asarray(theirs).reshape(shape)
    if -1 not in shape or shape == (-1, -1):
        assert str(got.value) == str(expected.value)


BAD_DTYPES = [
    (lambda x: x[:, ::2].view("i4"), "contiguous"),
    (lambda x: x[:, :3].view("c16"), "divisor"),
    (lambda x: x[0, 0, ...].view("i4"), "0d array"),
]


@pytest.mark.parametrize(("take", "match"), BAD_DTYPES)
def test_view_of_another_item_size_needs_a_contiguous_axis(take: Take, match: str) -> None:
    for x in (numpy.zeros((2, 4)), asarray(numpy.zeros((2, 4)))):
        with pytest.raises(ValueError, match=match):
            take(x)


@pytest.mark.usefixtures("recorded")
def test_stacked_views_keep_a_short_path() -> None:
    v = asarray(numpy.arange(2000.0).reshape(2, 1000))
    for k in range(400):
        v = (v[:, 1:], v[None][0], v.T[::-1].T, v[..., ::-1])[k % 4]
    assert len(v._view.path) <= 2
    w = asarray(numpy.arange(100.0))
    for k in range(50):
        w = viewing.view_reshape(w, (10, 10) if k % 2 else (100,))
    assert len(w._view.path) <= 2


def test_setting_the_shape_in_place_keeps_views() -> None:
    for make in (lambda: numpy.arange(6.0), lambda: asarray(numpy.arange(6.0))):
        x: Any = make()
        v = x[1:4]
        x.shape = (2, 3)
        assert x.shape == (2, 3)
        x[0, 1] = 10
        v[1] = 20
        numpy.testing.assert_array_equal(x, [[0, 10, 20], [3, 4, 5]])
        numpy.testing.assert_array_equal(v, [10, 20, 3])


def test_setting_the_dtype_in_place_keeps_views() -> None:
    for make in (lambda: numpy.arange(4.0), lambda: asarray(numpy.arange(4.0))):
        x: Any = make()
        v = x[1:3]
        x.dtype = numpy.int64
        x[1] = numpy.float64(8.0).view(numpy.int64)
        numpy.testing.assert_array_equal(v, [8.0, 2.0])
        v[1] = 1.0
        assert x[2] == numpy.float64(1.0).view(numpy.int64)


def test_shape_that_needs_a_copy_cannot_be_set() -> None:
    x = asarray(numpy.arange(6.0).reshape(2, 3)).T
    with pytest.raises(AttributeError, match="Incompatible shape"):
        x.shape = (6,)


def test_overlap_is_told_apart_from_shared_bases() -> None:
    x = asarray(numpy.arange(10.0))
    assert shares_memory(x[:6], x[4:])
    assert not shares_memory(x[:5], x[5:])
    assert not shares_memory(x[::2], x[1::2])
    assert shares_memory(x[::2], x[1::2], exact=False)
    assert not shares_memory(x, x + 0)


def test_iteration_order_is_the_order_numpy_gives_a_result() -> None:
    base = numpy.arange(2 * 3 * 4, dtype=float).reshape(2, 3, 4)
    ours = asarray(base)
    takes: list[Take] = [
        lambda x: x,
        lambda x: x.T,
        lambda x: x.transpose(1, 0, 2),
        lambda x: x.transpose(2, 0, 1)[::-1],
        lambda x: x[:, :1].T,
        lambda x: x[1],
        lambda x: x[..., 0].T,
        lambda x: x[0, 0],
    ]
    for one in takes:
        for two in takes:
            try:
                expected = one(base) + two(base)
            except ValueError:
                continue
            order = layout.result_order([one(ours), two(ours)], expected.shape)
            laid = arrays.wrap_ordered(arrays.node_of(asarray(numpy.ascontiguousarray(expected))), order)
            assert laid.strides == expected.strides


def test_empty_arrays_have_numpys_strides() -> None:
    for shape in [(0,), (3, 0), (0, 3), (2, 0, 3)]:
        theirs = numpy.zeros(shape)
        same(asarray(theirs), theirs)
        same(asarray(theirs).T, theirs.T)
        same(asarray(theirs).reshape(-1), theirs.reshape(-1))


@pytest.mark.usefixtures("recorded")
def test_geometry_of_a_path_equals_the_geometry_of_its_steps() -> None:
    x = asarray(numpy.arange(60.0).reshape(3, 4, 5))
    lazy = x[1:, ::-1].T[2:, 1]
    stepwise = views.View((3, 4, 5), lazy.dtype, (), (3, 4, 5), lazy.dtype, None)
    for step in lazy._view.path:
        stepwise = stepwise.extended(step, lazy.dtype, None)
        stepwise.geometry()
    assert lazy._view.geometry() == stepwise.geometry()


@pytest.mark.parametrize("below", [0, 65536])
def test_views_of_repeated_elements_are_written_where_somebody_sets_the_flag(below: int) -> None:
    def program(np: Any) -> list[Any]:
        a = np.arange(6.0) + 0
        view = np.broadcast_to(a[1:5], (3, 4))
        before = a * 2
        assert not view.flags.writeable
        view.flags.writeable = True
        view[1, 2] = 50
        view[:, 0] = np.arange(3.0)  # the last one stays
        view[2] += 1
        column = np.arange(3.0).reshape(3, 1) + 0
        one, two = np.broadcast_arrays(a[:2], column)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's, for the second one
            two[1] = 7
        with pytest.raises(ValueError, match="WRITEABLE"):
            np.broadcast_to(np.asarray(memoryview(b"12345678")), (2, 8)).flags.writeable = True
        return [x.tolist() for x in (a, view, before, column, one, two)]

    with config.override(tape_limit=below):
        assert program(lazynp) == program(numpy)


@pytest.mark.parametrize("name", ["shape", "dtype"])
@pytest.mark.parametrize("size", [6, 600_000])
def test_attributes_that_are_set_in_place_warn_where_numpy_does(name: str, size: int) -> None:
    found = []
    for np in (numpy, lazynp):
        x: Any = np.zeros(size)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            setattr(x, name, {"shape": (2, size // 2), "dtype": "i8"}[name])
        found.append([(w.category, str(w.message), w.filename) for w in caught])
    assert found[0] == found[1]


@pytest.mark.parametrize("below", [0, 786_432])
@pytest.mark.parametrize("field", [("i4", 0), ("i4", 4), ("i4", 2), ("u1", 7), ("f8", 0), ("f4", 4), ("i4", 8), ("i4", -4)])
def test_fields_are_views_of_their_bytes(below: int, field: tuple[str, int]) -> None:
    turns: list[Callable[..., Any]] = [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[1], lambda a: a[:0]]
    with config.override(tape_limit=below):
        for turn in turns:
            found = []
            for np in (numpy, lazynp):
                a = np.arange(12.0).reshape(3, 4) * 1
                try:
                    part = turn(a).getfield(*field)
                except ValueError as error:
                    found.append(str(error))
                    continue
                part += 1
                found.append((part.dtype, part.shape, part.strides, numpy.asarray(part).tobytes(), numpy.asarray(a).tobytes()))
            assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["F", "d"])
@pytest.mark.parametrize("name", ["real", "imag"])
def test_parts_are_as_writeable_as_the_view(name: str, dtype: str) -> None:
    """A view keeps its own flag when its base becomes read-only."""

    def program(np: Any) -> Any:
        x = np.array([1, 2, 3, 4], dtype)
        views = [x[::-1], x[1:], x.reshape(2, 2)]
        x.flags.writeable = False
        said = []
        for view in views:
            try:
                setattr(view, name, 7)
                said.append("written")
            except (ValueError, TypeError) as error:
                said.append(str(error))
        return said, x.tolist()

    assert program(lazynp) == program(numpy)
