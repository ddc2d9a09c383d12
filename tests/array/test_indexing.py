"""Keys: reading and writing, against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.conversion import asarray
from lazynp.graph import op as o
from lazynp.graph import report
from lazynp.values import config

E, N, S = Ellipsis, None, slice
MASK = numpy.array([[True, False, True, False], [False, False, True, True], [True, True, True, False]])

BASIC = [
    (), E, N, 0, -1, S(None), S(1, None), S(None, None, -1), S(3, 0, -2), S(5, 9), (0, 1), (0, 1, 2), (1, E), (E, 1), (E, 0, N),
    (N, 1, N, S(1, 3)), (S(None), 1), (S(None), S(None), 2), (-1, -2, -3), (0, E, 0), (S(0, 2), 1, S(None, None, 2)),
    (numpy.int8(1), numpy.int64(2)),
    S(None, None, 2**60), S(2**62, None, -(2**62)), (S(None), S(None, None, 2**60)), S(None, None, -(2**70)),
    (S(-(2**70), 2**70, 2**63), E, S(None, None, -(2**63))),
]  # fmt: skip

ADVANCED = [
    [0, 2], [[0, 1], [2, 0]], [], [-1], ([0, 1], [1, 3]), ([0, 1], S(None), [1, 3]), (S(None), [1, 3]), (S(None), [1, 3], [0, 4]),
    (E, [1, 0]), ([[0], [2]], [1, 3]), (0, S(None), [1, 3]), (0, [1, 3]), (S(None), 0, [1, 2]), ([1], 0, S(None)),
    (S(1, None), [2, 0], S(None, None, -1)), (N, [0, 1], N, [1, 2]), ([0, 1], N, [1, 2]), (S(None), N, [0, 1]),
    (E, N, [[0, 1], [2, 3]]), MASK[:, 0], MASK, (MASK, 1), (S(None), MASK[0]), (MASK[:, 0], S(None), [1, 2]), (MASK[:, 0], [0, 1]),
    (E, numpy.array([True, False, True, True, False])), True, False, (True, 0), (N, True), numpy.array([2, 0], numpy.int8),
    numpy.array([2, 0], numpy.uint64), numpy.zeros((0,), bool), numpy.zeros((3, 4), bool),
]  # fmt: skip

BAD = [
    3, (0, 4), (0, 0, 0, 0), (E, E), "a", 1.0, [1.0], [3], [-4], ([0, 1], [0, 1, 2]), MASK[:2], numpy.array([True, False]),
    S(None, None, 0), S(1.5, 2), (0, 0, [5]), (MASK, MASK), numpy.array([1.5]), (E, 0, 0, 0, 0), (N, N, 3), (MASK[:, 0], [0, 1, 2]),
    2**62, 2**63, (0, -(2**64)), ([0], 2**63), -(2**63) - 1,
]  # fmt: skip


def outcome(act: Any) -> tuple[str, Any]:
    try:
        return "value", act()
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        return type(error).__name__, str(error)


def same(ours: Any, theirs: Any) -> None:
    assert isinstance(theirs, numpy.ndarray) == (type(ours) is np.ndarray)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if theirs.size:
        assert ours.strides == theirs.strides
    numpy.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=repr)
def test_reading(key: Any) -> None:
    theirs = numpy.arange(60.0).reshape(3, 4, 5)
    for ours, base in [(asarray(theirs), theirs), (asarray(theirs) + 1, theirs + 1), (asarray(theirs.T.copy()).T, theirs.T.copy().T)]:
        same(ours[key], base[key])


@pytest.mark.parametrize("key", ADVANCED, ids=repr)
def test_reading_with_keys_of_ours(key: Any) -> None:
    theirs = numpy.arange(60.0).reshape(3, 4, 5)
    parts = key if type(key) is tuple else (key,)
    same(asarray(theirs)[tuple([lazily(part) for part in parts])], theirs[key])


def lazily(part: Any) -> Any:
    """A key's part with its arrays as ours, the integer ones not computed yet."""
    if not isinstance(part, (list, numpy.ndarray)) or not numpy.size(part):
        return part
    array = asarray(part)
    return array if array.dtype == bool else array + 0


@pytest.mark.parametrize("key", BAD, ids=repr)
def test_bad_keys_raise_numpys_errors_at_the_call(key: Any) -> None:
    theirs = numpy.arange(60.0).reshape(3, 4, 5)
    expected = outcome(lambda: theirs[key])
    assert outcome(lambda: (asarray(theirs) + 1)[key]) == expected
    assert outcome(lambda: (asarray(theirs) + 1).__setitem__(key, 1))[0] == outcome(lambda: theirs.__setitem__(key, 1))[0]


VALUES: list[Any] = [
    7, 2.5, True, numpy.float32(3), [[1], [2], [3], [4]], numpy.arange(5.0), numpy.arange(60).reshape(3, 4, 5), numpy.zeros((7,)), [1, 2],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:20])
@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=repr)
def test_writing(key: Any, value: Any) -> None:
    theirs = numpy.arange(60.0).reshape(3, 4, 5)
    for make in (lambda: asarray(theirs.copy()), lambda: asarray(theirs) * 1, lambda: asarray(theirs.T.copy()).T):
        ours, expected = make(), theirs.copy()
        before = ours + 0
        failure = outcome(lambda expected=expected: expected.__setitem__(key, value))
        given = asarray(value) if isinstance(value, numpy.ndarray) else value
        assert outcome(lambda ours=ours, given=given: ours.__setitem__(key, given))[0] == failure[0]
        numpy.testing.assert_array_equal(ours, expected)
        numpy.testing.assert_array_equal(before, theirs)


CONVERSIONS = [
    ("f8", 1j), ("f8", numpy.array([1j])), ("f8", "x"), ("f8", None), ("i8", numpy.nan), ("i8", 1.5), ("i1", 300), ("i1", numpy.int64(300)),
    ("i1", [300]), ("u1", -1), ("i1", numpy.array([300])), ("?", 2), ("c8", 1), ("f4", "1.5"), ("i8", 2**70), ("f2", 1e10),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "value"), CONVERSIONS, ids=repr)
@pytest.mark.parametrize("key", [S(None), S(0, 1), 0, [0], (0, E)], ids=repr)
def test_assignment_converts_as_numpy_does(dtype: str, value: Any, key: Any) -> None:
    theirs = numpy.zeros(3, dtype)
    ours = asarray(theirs.copy())
    with warnings.catch_warnings(record=True) as expected_warnings:
        warnings.simplefilter("always")
        expected = outcome(lambda: theirs.__setitem__(key, value))
    with warnings.catch_warnings(record=True) as got_warnings:
        warnings.simplefilter("always")
        got = outcome(lambda: ours.__setitem__(key, value))
    assert got == expected
    assert {w.category for w in got_warnings} == {w.category for w in expected_warnings}
    numpy.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("recorded")
def test_basic_reads_and_writes_compute_nothing() -> None:
    report.reset()
    x = asarray(numpy.arange(12.0).reshape(3, 4)) + 1
    v = x[1:, ::2]
    v[0] = x[0, ::2] * 2
    x[2] = 7
    x[0, 1] = v[0, 0, ...]
    x += 1
    assert not report.forced
    assert node_of(x).buffer is None
    numpy.testing.assert_array_equal(x, [[2, 3, 4, 5], [3, 7, 7, 9], [8, 8, 8, 8]])


def test_mask_and_one_value_compute_nothing() -> None:
    report.reset()
    theirs = numpy.arange(12.0).reshape(3, 4)
    x = asarray(theirs) + 0
    x[x > 5] = 0
    x[asarray(MASK[:, 0])] = -1.0
    assert not report.forced
    theirs[theirs > 5] = 0
    theirs[MASK[:, 0]] = -1
    numpy.testing.assert_array_equal(x, theirs)


@pytest.mark.usefixtures("recorded")
def test_lazy_index_out_of_range_is_refused_when_it_is_computed() -> None:
    x = asarray(numpy.arange(3.0))
    y = x[asarray([0, 1]) + 2]
    with pytest.raises(IndexError) as raised:
        numpy.asarray(y)
    assert any("test_indexing.py" in note for note in raised.value.__notes__)
    numpy.testing.assert_array_equal(x, [0, 1, 2])


def test_earlier_expressions_keep_the_old_value() -> None:
    x = asarray(numpy.arange(5.0))
    view = x[1:4]
    before, seen = x * 10, view + 0
    x[2] = 100
    x[[0, 1]] = [7, 8]
    x[x > 50] = -1
    view[...] = view[::-1]
    numpy.testing.assert_array_equal(before, [0, 10, 20, 30, 40])
    numpy.testing.assert_array_equal(seen, [1, 2, 3])
    numpy.testing.assert_array_equal(x, [7, 3, -1, 8, 4])


def test_overlapping_assignment_reads_before_it_writes() -> None:
    for shift in (S(1, None), S(None, -1)):
        other = S(None, -1) if shift == S(1, None) else S(1, None)
        theirs = numpy.arange(6.0)
        ours = asarray(theirs.copy())
        ours[shift] = ours[other]
        theirs[shift] = theirs[other]
        numpy.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("recorded")
def test_in_place_operator_on_a_key_is_one_write() -> None:
    x = asarray(numpy.arange(6.0))
    x[1:3] += 10
    assert node_of(x).op is o.STORE
    assert node_of(x).src[0].op is o.BUFFER
    x[[0, 5]] *= -1
    x[x > 10] -= 1
    numpy.testing.assert_array_equal(x, [0, 10, 11, 3, 4, -5])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "?", "c16"])
def test_loops_that_write_0d_arrays(dtype: str) -> None:
    values = [300, 2.7, True, -0.0, numpy.float32(1.5), numpy.int64(-7), 2 + 1j]
    results = []
    for xp in (numpy, np):
        x = xp.asarray(numpy.ones((len(values), 60), dtype)) * xp.asarray(numpy.arange(60).astype(dtype))
        before, view = x + x, x[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row, value in enumerate(values):
                for k in range(0, 60, 5):
                    x[row, k] = xp.asarray(value)
                    x[row, k + 1] = xp.asarray([value, value])[1:].reshape(())
        results.append((x, before, view))
    for theirs, ours in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        numpy.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("recorded")
def test_a_loop_over_a_pending_diagonal_runs_one_program() -> None:
    x = asarray(numpy.arange(90_000.0).reshape(300, 300))
    y = x * 2 + 1
    report.reset()
    zero = np.asarray(0.0, device="cpu")
    for k in range(300):
        y[k, k] = zero
    assert sum(row.count for row in report.forced.values()) == 1
    assert y.trace() == 0


@pytest.mark.usefixtures("recorded")
def test_what_an_indexed_write_needs_is_computed_in_one_program() -> None:
    data = numpy.random.default_rng(0).random((400, 30))
    results = []
    for xp in (numpy, np):
        x = xp.asarray(data)
        variance = ((x - x.mean(axis=0)) ** 2).sum(axis=0)
        scaled = variance / 3 + 1
        where = xp.asarray(numpy.arange(30) % 3 == 0)
        report.reset()
        scaled[where] = variance[::-1][where]
        variance[[1, 2]] = variance[3:5] * 2
        results.append((scaled, variance))
    numpy.testing.assert_allclose(results[1], results[0], rtol=1e-13)
    assert [row.count for row in report.forced.values() if row.name == "indexed write"] == [1, 1]
    for key in ([0, 2], numpy.array([True, False, True])):
        for make in ("xp.ones(3)", "xp.arange(3.0)", "xp.asarray([1., 2., 3.]) * 2", "xp.broadcast_to(xp.asarray(2.0), (3,)) + 0"):
            for given in ("xp.arange(2.0)", "xp.ones(2) * 3", "xp.asarray([5, 6])[::-1]", "xp.asarray(7)", "x[1:] + 1", "[x[0], x[1]]"):
                found = []
                for xp in (numpy, np):
                    x = eval(make, {"xp": xp})
                    x[key] = eval(given, {"xp": xp, "x": x})
                    found.append(x)
                numpy.testing.assert_array_equal(found[1], found[0])


def test_readonly_array_refuses_every_write() -> None:
    x = asarray(numpy.arange(4.0))
    x.flags.writeable = False
    for key in (0, S(1, 2), [0, 1], numpy.array([True, False, True, False]), E):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            x[key] = 1
    with pytest.raises(ValueError, match="read-only"):
        x[1:][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x.flat[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    x.setflags(write=True)
    x[0] = 1
    assert x[0] == 1


def test_flat_reads_and_writes_through() -> None:
    theirs = numpy.arange(12.0).reshape(3, 4)
    for take in (lambda x: x, lambda x: x.T, lambda x: x[::2, 1:]):
        expected = theirs.copy()
        ours = asarray(theirs)
        a, b = take(ours).flat, take(expected).flat
        assert a[2] == b[2]
        assert list(a[1:4]) == list(b[1:4])
        a[1::2] = [1, 2, 3]
        b[1::2] = [1, 2, 3]
        take(ours).flat = 5
        take(expected).flat = 5
        numpy.testing.assert_array_equal(ours, expected)
        assert [float(v) for v in a] == [float(v) for v in b]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.flat.__setitem__(slice(1, None), x), lambda x: x.flat.__setitem__(slice(None, None, 2), x[::-1]),
        lambda x: x.flat.__setitem__([1, 2, 3], x), lambda x: x[1:].flat.__setitem__((x[1:] > 2).ravel(), x[:2]),
        lambda x: setattr(x[::-1], "flat", x), lambda x: setattr(x, "flat", x[::-1]),
        lambda x: setattr(x, "flat", x.T), lambda x: setattr(x.T, "flat", x),
        lambda x: x.flat.__setitem__(slice(1, None), x + 0), lambda x: x.flat.__setitem__(slice(1, None), x.astype("f4")),
        lambda x: setattr(x, "flat", [1, 2]), lambda x: setattr(x, "flat", []),
    ],
)  # fmt: skip
def test_flat_reads_its_own_memory_as_it_writes(write: Callable[[Any], None]) -> None:
    known = numpy.arange(12).reshape(3, 4)
    for make in (lambda np: np.arange(12.0).reshape(3, 4), lambda np: np.array(known), lambda np: np.ones((4, 4)) * 3):
        x, y = make(np), make(numpy)
        captured = x + 1
        write(x)
        write(y)
        numpy.testing.assert_array_equal(x, y)
        numpy.testing.assert_array_equal(captured, make(numpy) + 1)


def test_filling_element_by_element() -> None:
    for n in (10, 20_000):
        x, y = np.zeros(n), numpy.zeros(n)
        row = x[2:5]
        for k in range(40):
            x[k % n] = k
            y[k % n] = k
            row[1] = x[0] + k
            y[3] = y[0] + k
        captured = x + 0
        expected = y.copy()
        x[0] = -1
        numpy.testing.assert_array_equal(captured, expected)
        assert x[0] == -1


def test_filling_a_matrix_computes_nothing_and_records_nothing() -> None:
    report.reset()
    a = np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            a[i, j] = i * 10 + j
            a[i][j] += 0.5
    assert not report.forced
    numpy.testing.assert_array_equal(a, numpy.add.outer(numpy.arange(5) * 10, numpy.arange(5)) + 0.5)


@pytest.mark.usefixtures("recorded")
def test_reading_elements_of_a_pending_array_computes_it_once() -> None:
    x = np.cumsum(asarray(numpy.arange(50.0)))
    report.reset()
    first = 0
    while x[first] * 2 < 500:
        first += 1
    assert first == 22
    assert report.schedules.misses + report.schedules.hits == 1


def test_elements_of_a_number_seen_as_an_array() -> None:
    import lazynp

    assert lazynp.atleast_1d(5)[0] == 5
    assert lazynp.asarray(2.5).reshape(1, 1)[0, 0] == 2.5


@pytest.mark.parametrize("tier", ["auto", "compiled"])
@pytest.mark.parametrize("make", [lambda x: x[30:31], lambda x: x * 0 + x.max(), lambda x: x.reshape(1, 40)])
@pytest.mark.usefixtures("recorded")
def test_indices_that_do_not_matter_are_checked(tier: str, make: Any) -> None:
    with config.override(tier=tier):
        x = make(asarray(numpy.arange(40.0)) + 0)
        bad = x[asarray([0, 1]) + asarray([0, 99998])] + 1
        with pytest.raises(IndexError, match="99999"):
            numpy.asarray(bad)
        filled = asarray(numpy.ones(1))[0, ...] + numpy.zeros(40)
        with pytest.raises(IndexError, match="99999"):
            numpy.asarray(filled[asarray([0, 1]) + asarray([0, 99998])])
