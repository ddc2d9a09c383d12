"""Parts of large arrays (``lazynp/array/parts.h``): rows, slices and elements of what exists, against NumPy."""

from __future__ import annotations

import gc
import operator as operators
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lazynp
from lazynp import views
from lazynp.graph import report
from lazynp.values import config

LIMIT = 40
SHAPES: list[tuple[int, ...]] = [(60,), (12, 15), (4, 5, 6)]


@pytest.fixture(autouse=True)
def few_at_hand() -> Iterator[None]:
    with config.override(tape_limit=LIMIT):
        yield


def basic_key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    parts: list[Any] = []
    for n in shape[: rng.randint(1, len(shape))]:
        kind = rng.randrange(4)
        if kind == 0:
            parts.append(rng.randrange(-n, n))
        else:
            step = rng.choice([1, 1, 2, -1, -3])
            parts.append(slice(rng.choice([None, rng.randrange(n)]), None, step))
        if rng.random() < 0.1:
            parts.append(None)
    return parts[0] if len(parts) == 1 else tuple(parts)


def runs() -> int:
    return report.schedules.hits + report.schedules.misses


def same(a: Any, b: Any) -> None:
    assert np.array_equal(np.asarray(a), b) and a.dtype == b.dtype and a.shape == b.shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(8))
def test_reads_and_writes_between_everything_else(shape: tuple[int, ...], seed: int) -> None:
    """Parts that stay alive see what happens to the array: writes at hand, recorded writes, captures, computation."""
    rng = random.Random(f"{shape} {seed}")
    theirs = np.arange(np.prod(shape), dtype=rng.choice(["f8", "i8", "f4"])).reshape(shape)
    ours = lazynp.asarray(theirs.copy())
    held: list[tuple[Any, Any]] = []
    captured: list[tuple[Any, Any]] = []
    for _ in range(60):
        key = basic_key(rng, shape)
        kind = rng.randrange(9)
        if kind == 0:
            found, wanted = ours[key], theirs[key]
            if isinstance(wanted, np.ndarray):
                held.append((found, wanted))
                assert found.strides == wanted.strides and (found.base is ours) == (wanted.base is theirs or wanted.base is theirs.base)
            else:
                assert found == wanted and found.__class__ is wanted.__class__
        elif kind == 1:
            value = rng.randrange(100)
            ours[key] = value
            theirs[key] = value
        elif kind == 2:
            ours[key] += 3
            theirs[key] += 3
        elif kind == 3 and held:
            found, wanted = rng.choice(held)
            found *= 2
            wanted *= 2
        elif kind == 4:
            captured.append((ours + 1, theirs + 1))
        elif kind == 5:
            ours[key] = ours[key] + 1
            theirs[key] = theirs[key] + 1
        elif kind == 6 and held:
            found, wanted = rng.choice(held)
            part = tuple([slice(None, None, -1)] * wanted.ndim)
            found[part] = np.arange(wanted.size).reshape(wanted.shape)
            wanted[part] = np.arange(wanted.size).reshape(wanted.shape)
        elif kind == 7:
            ours.realize()
        elif kind == 8 and len(held) > 4:
            del held[0]
    same(ours, theirs)
    for found, wanted in held + captured:
        same(found, wanted)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_path_gives_a_part_its_place(shape: tuple[int, ...]) -> None:
    """``basic_path`` names every part that basic keys can cut, keys of keys too."""
    rng = random.Random(str(shape))
    memory = np.arange(np.prod(shape)).reshape(shape)
    for _ in range(400):
        part = memory[basic_key(rng, shape)]
        if isinstance(part, np.ndarray) and part.ndim and rng.random() < 0.5:
            part = part[basic_key(rng, part.shape)].T
        if not isinstance(part, np.ndarray) or not part.size:
            continue
        offset = part.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        path = views.basic_path(shape, 8, offset, part.shape, part.strides)
        assert path is not None
        found = memory
        for op, arg, lengths in path:
            if op is views.AXES:
                kept = [axis for axis in arg if axis >= 0]
                found = found.transpose([*kept, *[axis for axis in range(found.ndim) if axis not in kept]]).reshape(lengths)
            else:
                region = [start + step * np.arange(n) for (start, step), n in zip(arg, lengths, strict=True)]
                found = found[np.ix_(*region)]
        assert np.array_equal(found, part)


VIEWS: dict[str, Any] = {
    "flip": lambda xp, x: xp.flip(x), "flip an axis": lambda xp, x: xp.flip(x, -1), "flipud": lambda xp, x: xp.flipud(x),
    "fliplr": lambda xp, x: xp.fliplr(x), "swapaxes": lambda xp, x: xp.swapaxes(x, 0, 1), "swapped": lambda xp, x: x.swapaxes(0, -1),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1), "rollaxis": lambda xp, x: xp.rollaxis(x, 1), "diagonal": lambda xp, x: xp.diagonal(x),
    "diagonal of an array": lambda xp, x: x.diagonal(1), "diagonal below": lambda xp, x: xp.diagonal(x, -2, 1, 0), "T": lambda xp, x: x.T,
    "rows": lambda xp, x: x[1:-1], "columns": lambda xp, x: x[:, ::2], "no axis": lambda xp, x: xp.swapaxes(x, 0, 9),
    "one axis twice": lambda xp, x: xp.diagonal(x, 0, 1, 1), "no axis to flip": lambda xp, x: xp.flip(x, 7),
    "trace": lambda xp, x: xp.trace(x, 1), "no diagonal": lambda xp, x: xp.diagonal(x[:1], -1),
}  # fmt: skip


def outcome(call: Any, xp: Any, x: Any) -> Any:
    try:
        return call(xp, x)
    except Exception as error:
        return type(error), str(error)


def check_views(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        assert ours == theirs
        return
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-13)
    if theirs.ndim:
        assert ours.flags.writeable == theirs.flags.writeable
        assert ours.strides == theirs.strides


@pytest.mark.parametrize("made", ["exists", "waits", "computed"])
@pytest.mark.parametrize("seed", range(60))
def test_views_of_views_by_numpys_functions(seed: int, made: str) -> None:
    rng = random.Random(seed)
    theirs = np.random.default_rng(seed).random([(20, 30), (30, 20), (25, 25), (10, 8, 9)][seed % 4])
    ours = lazynp.array(theirs)
    if made == "exists":
        lazynp.realize(ours)
    else:
        ours, theirs = ours * 2 + 1, theirs * 2 + 1
    if made == "computed":
        lazynp.realize(ours)
    first = ours, theirs
    for _ in range(rng.randint(1, 3)):
        call = VIEWS[rng.choice(list(VIEWS))]
        found = outcome(call, lazynp, ours), outcome(call, np, theirs)
        check_views(*found)
        if isinstance(found[1], tuple) or not found[1].ndim:
            break
        ours, theirs = found
        if theirs.ndim < 2:
            break
    if theirs.flags.writeable:
        ours[0] = theirs[0] = 7
        check_views(*first)
    else:
        with pytest.raises(ValueError, match="read-only"):
            ours[0] = 7
    first[0][1:] += 1
    first[1][1:] += 1
    check_views(ours, theirs)


def test_small_products_of_large_operands_are_computed_at_the_call() -> None:
    a = np.arange(1200.0).reshape(40, 30)
    b = np.arange(30.0)
    x, y = lazynp.asarray(a), lazynp.asarray(b)
    assert x[0, 0] == 0.0
    before = runs()
    z = x @ y
    same(z, a @ b)
    assert runs() == before


def test_rows_record_nothing_and_hold_no_old_memory() -> None:
    x = lazynp.zeros((30, 30))
    x[0, 0] = 1
    row = x[3]
    before = runs()
    row += 1
    assert float(row.sum()) == 30 and x[3, 3] == 1
    assert runs() == before
    x += x.sum()  # computed anew, in other memory or in place
    x.realize()
    assert row[0] == 32 and x[0, 0] == 32
    del row
    gc.collect()
    assert x[3, 0] == 32


def test_a_part_of_what_was_resized_in_place_keeps_the_memory_that_it_showed() -> None:
    x = lazynp.zeros(300)
    x[0] = 1
    part = x[250:280]
    part[0] = 5
    x.resize(10, refcheck=False)
    np.testing.assert_array_equal(np.asarray(part + 1), [6] + [1] * 29)
    part[1] = 7
    assert (part[1], x.shape) == (7, (10,))


WAITING: dict[str, Any] = {
    "an expression": lambda xp: xp.arange(1200.0).reshape(40, 30) * 2 + 1,
    "numbers in order": lambda xp: xp.arange(1200.0).reshape(40, 30),
    "one number": lambda xp: xp.full((40, 30), 3.0),
    "turned": lambda xp: (xp.arange(1200.0).reshape(30, 40) * 2).T,
    "a slice": lambda xp: (xp.arange(2400.0).reshape(80, 30) * 2)[::2],
    "backwards": lambda xp: (xp.arange(1200.0).reshape(40, 30) + 1)[::-1],
}
IN_PARTS: dict[str, Any] = {
    "rows": lambda x: [x[k] for k in range(-2, 9)],
    "slices": lambda x: [x[k : k + 2, 1:6] for k in range(9)],
    "columns": lambda x: [x[::2, k] for k in range(9)],
    "new axes": lambda x: [x[k, None] for k in range(9)],
    "iteration": list,
}


@pytest.mark.parametrize("parts", IN_PARTS)
@pytest.mark.parametrize("waiting", WAITING)
def test_what_is_asked_in_small_parts_is_computed_once(waiting: str, parts: str) -> None:
    def program(xp: Any) -> list[Any]:
        return [float((part * 2).sum()) for part in IN_PARTS[parts](WAITING[waiting](xp))]

    expected = program(np)
    x = WAITING[waiting](lazynp)
    before = runs()
    found = [float((part * 2).sum()) for part in IN_PARTS[parts](x)]
    assert found == expected
    assert runs() - before <= 2
    IN_PARTS[parts](x)[3][...] = -1
    y = WAITING[waiting](np)
    IN_PARTS[parts](y)[3][...] = -1
    same(x, y)


@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("value", ["a number", "a row"])
def test_what_is_written_in_small_parts_is_computed_once(waiting: str, value: str) -> None:
    def program(xp: Any) -> Any:
        x = WAITING[waiting](xp)
        for k in range(20):
            if value == "a number":
                x[k, k] = -1
            else:
                x[k, 1:7] = xp.arange(6.0) + k
        return x

    before = runs()
    x = program(lazynp)
    assert runs() - before <= 2
    same(x, program(np))


@pytest.mark.parametrize("waiting", WAITING)
def test_what_is_asked_at_few_positions_is_computed_once(waiting: str) -> None:
    def program(xp: Any) -> Any:
        x, at = WAITING[waiting](xp), xp.arange(0, 20, 3)
        return [float((x[at + k, k] * 2).sum()) for k in range(12)] + [float(x[at[k : k + 1]].sum()) for k in range(6)]

    before = runs()
    found = program(lazynp)
    assert runs() - before <= 3
    assert found == program(np)


@pytest.mark.parametrize("key", ["[99, 0]", "[99, 0, 0]", "[0, 0, 0]", "[..., 99, 0, 0]", "[99, None]", "[:, 99]", "[99, :, :]"])
def test_too_many_indices_are_refused_before_those_out_of_range(key: str) -> None:
    for shape in ((60,), (30, 2)):
        for text in (f"x{key}", f"x{key} = 1", f"x{key} += 1"):
            said = []
            for xp in (np, lazynp):
                with pytest.raises(IndexError) as refused:
                    exec(text, {"x": xp.ones(shape)})
                said.append(str(refused.value))
            assert said[0] == said[1]


def test_one_small_part_and_large_ones_leave_an_array_waiting() -> None:
    x = lazynp.arange(1200.0).reshape(40, 30) * 2
    row = x[3]
    first, second = x.reshape(2, 600)
    assert lazynp.schedule(x).items
    same(first + second + row[1], np.arange(600.0) * 4 + 1200 + 182)


def test_parts_are_computed_by_themselves_where_memory_is_too_short_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def force(nodes: list[Any], reason: str) -> None:
        asked.append(reason)
        raise MemoryError

    x = (lazynp.arange(3_000_000.0) * 2)[::-1]
    monkeypatch.setattr(sys.modules["lazynp.storage"], "force", force)
    parts = [x[k : k + 3] for k in range(4)]
    monkeypatch.undo()
    assert asked == ["parts one by one"]
    assert [float((part + 1).sum()) for part in parts] == [float(sum(2 * (2_999_999 - k - j) + 1 for j in range(3))) for k in range(4)]


@pytest.mark.parametrize("size", [20, 60, 400])
def test_costly_functions_are_recorded_earlier(size: int) -> None:
    a = np.linspace(0.1, 2, size)
    with config.override(tape_limit=100):
        x = lazynp.asarray(a.copy())
        for name in ("exp", "sin", "log", "tanh"):
            found = getattr(lazynp, name)(x)
            np.testing.assert_allclose(np.asarray(found), getattr(np, name)(a), rtol=1e-14)
        np.testing.assert_allclose(np.asarray(x**1.5), a**1.5, rtol=1e-14)
        x[3] = 7.0
        a[3] = 7.0
        np.testing.assert_allclose(np.asarray(lazynp.exp(x)), np.exp(a), rtol=1e-14)


def test_gathers_of_few_elements() -> None:
    a = np.arange(300.0).reshape(20, 15)
    x = lazynp.asarray(a.copy())
    x[0, 0] = 5
    a[0, 0] = 5
    i = np.array([3, 1, 1])
    for key in (i, (i, i), (slice(2, 5), i[:2]), [0, 5], (1, i), a > 100, (i, 2)):
        ours = tuple(lazynp.asarray(k) if isinstance(k, np.ndarray) else k for k in key) if isinstance(key, tuple) else key
        same(x[lazynp.asarray(key) if isinstance(key, np.ndarray) else ours], a[key])
    with pytest.raises(IndexError):
        x[lazynp.asarray([1, 99])]


def test_an_output_beside_a_number_is_not_written_into_what_others_read() -> None:
    ours, theirs = lazynp.asarray(np.arange(80).reshape(2, 1, 40)), np.arange(80).reshape(2, 1, 40)
    sums = ours.sum(axis=-1), theirs.sum(axis=-1)
    np.positive(1, out=theirs[:1])
    lazynp.positive(1, out=ours[:1])
    np.less(theirs[1:], 60, out=theirs[:1], casting="unsafe")
    lazynp.less(ours[1:], 60, out=ours[:1], casting="unsafe")
    same(ours, theirs)
    same(*sums)


@pytest.mark.parametrize("made", ["copied", "drawn", "computed"])
def test_small_writes_go_to_the_memory_of_a_large_array(made: str) -> None:
    """Above the size that is copied for that, too, and whoever made the memory: NumPy, or a kernel."""
    with config.override(tape_limit=4096):
        start = np.random.default_rng(0).standard_normal((500, 400))
        make = {
            "copied": lambda: lazynp.array(start),
            "drawn": lambda: lazynp.random.default_rng(0).standard_normal((500, 400)),
            "computed": lambda: (lazynp.asarray(start) * 1.0).realize(),
        }[made]
        x, y = make().realize(), start.copy()
        before = report.schedules.misses + report.schedules.hits
        where = None
        for k in range(1, 40):
            for a in (x, y):
                a[k] /= 2.0
                a[k + 1 :, k] = a[k + 1 :, k - 1] + 1
                a[k, 3] = a[k - 1, 3] - 1
            where = where or x[:1].__array_interface__["data"][0]
        assert x[:1].__array_interface__["data"][0] == where
        assert report.schedules.misses + report.schedules.hits == before
        np.testing.assert_array_equal(np.asarray(x), y)


@pytest.mark.parametrize("holder", ["pending", "copy", "program"])
def test_who_holds_the_old_value_of_a_large_array_keeps_it(holder: str) -> None:
    with config.override(tape_limit=4096):
        start = np.random.default_rng(0).standard_normal((500, 400))
        x = lazynp.array(start)
        if holder == "program":
            held = x * 2 + 1
            held[0] = 0.0
        else:
            held = x * 2 if holder == "pending" else x.copy()
        x[3] *= 5.0
        x[4, 5] = 7.0
        expected = {"pending": start * 2, "copy": start, "program": np.concatenate([np.zeros((1, 400)), start[1:] * 2 + 1])}[holder]
        np.testing.assert_array_equal(np.asarray(held), expected)
        start[3] *= 5.0
        start[4, 5] = 7.0
        np.testing.assert_array_equal(np.asarray(x), start)


def test_a_look_at_a_written_array_computes_it_once() -> None:
    """A loop that writes a large part and looks at a small one neither computes the write twice nor puts an old value back."""
    with config.override(tape_limit=4096):
        start = np.random.default_rng(0).standard_normal((300, 400))
        x, y = lazynp.array(start), start.copy()
        for k in range(12):
            for a in (x, y):
                a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
            kernels = report.work.kernels
            assert float(np.abs(y[k + 1 :, k + 1]).max()) == float(lazynp.abs(x[k + 1 :, k + 1]).max())
            first = report.work.kernels - kernels
            kernels = report.work.kernels
            np.testing.assert_array_equal(np.array(x), y)
            assert report.work.kernels == kernels, first


IN_PLACE = {
    "pending": lambda xp, a, b: b * 0.5 + a[1:201, 1:201],
    "exists": lambda xp, a, b: b,
    "large, of the same memory": lambda xp, a, b: a[100:300, 50:250],
    "outer product": lambda xp, a, b: xp.outer(b[0], b[1]),
    "a row": lambda xp, a, b: b[7],
    "a number": lambda xp, a, b: 3.0,
    "transposed": lambda xp, a, b: b.T,
    "integers": lambda xp, a, b: (b * 2).astype(int),
}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("operand", IN_PLACE)
@pytest.mark.parametrize("operator", ["iadd", "isub", "imul", "itruediv", "ipow"])
def test_large_parts_are_changed_in_place_by_what_is_pending_and_by_what_exists(operator: str, operand: str, held: bool) -> None:
    def program(xp: Any) -> list[Any]:
        rng = np.random.default_rng(5)
        a, b = xp.asarray(rng.random((300, 320)) + 0.5) + 0.0, xp.asarray(rng.random((200, 200)) + 0.5) + 0.0
        if xp is lazynp:
            lazynp.realize(a, b)
        old = a * 1.0 if held else None
        for _ in range(3):
            part = a[:200, 3:203]
            getattr(operators, operator)(part, IN_PLACE[operand](xp, a, b))
            a[:200, 3:203] = part
        return [a, a[5], part, *([] if old is None else [old])]

    with config.override(tape_limit=4096):
        ours = program(lazynp)
        for x, y in zip(ours, program(np), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13 if operator == "ipow" else 0)


def test_errors_in_large_rows_are_told_once_and_the_rows_are_right() -> None:
    def program(xp: Any) -> tuple[Any, list[str]]:
        a, b = xp.asarray(np.full((300, 320), 1e308)) * 1.0, xp.asarray(np.ones((200, 200))) * 1.0
        b[150, 7] = b[160, 9] = 1e308
        if xp is lazynp:
            lazynp.realize(a, b)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            a[50:250, 50:250] *= b
            a[50:250, 50:250] += b[0, 0] * b
        return a, [f"{warning.message} {warning.filename == __file__}" for warning in caught]

    with config.override(tape_limit=4096):
        (ours, told), (theirs, wanted) = program(lazynp), program(np)
    assert np.array_equal(ours, theirs)
    assert told == wanted == ["overflow encountered in multiply True"]


def test_large_rows_that_must_not_be_written_are_refused() -> None:
    with config.override(tape_limit=4096):
        a, b = lazynp.asarray(np.ones((300, 320))) * 1.0, lazynp.asarray(np.ones((200, 200))) * 1.0
        lazynp.realize(a, b)
        part = a[:200, :200]
        part.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            part += b
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            a[:200, :200] -= b
        assert (np.asarray(a) == 1.0).all()


def test_places_are_written_in_large_memory_as_in_small() -> None:
    def program(xp: Any) -> list[Any]:
        rng = np.random.default_rng(2)
        a = xp.asarray(rng.random((60, 70))) * 1.0
        if xp is lazynp:
            a.realize()
        rows, columns = xp.asarray(rng.integers(-60, 60, 30)), xp.asarray(rng.integers(0, 70, 30))
        a[1, 1] = 0.0
        before = a * 2.0
        a[rows, columns] = 5
        a[rows] = a[1]
        a[3, columns] = xp.arange(30.0)
        a[[2, 4], ::3] = 7.5
        told = []
        for key, value in [((rows, columns + 60), 1.0), ((rows, columns[:7]), 1.0), ((rows, columns), xp.ones(4)), (rows * 1.5, 2.0)]:
            with pytest.raises((IndexError, ValueError)) as caught:
                a[key] = value
            told.append(f"{caught.type.__name__}: {caught.value}")
        return [before, a, a[5], told]

    for x, y in zip(program(lazynp), program(np), strict=True):
        assert x == y if isinstance(y, list) else np.array_equal(x, y)
