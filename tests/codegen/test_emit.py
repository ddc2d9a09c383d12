"""Statements of kernels where conditions, scratch and index arithmetic meet: what compiled kernels give is what NumPy gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.codegen import ir
from lazynp.codegen.items import Schedule
from lazynp.codegen.nest import Nest
from lazynp.engine.realize import forget_plans
from lazynp.schedule import cost
from lazynp.values import config
from tests.schedule.plans import measured, scheduled

pytestmark = pytest.mark.usefixtures("recorded")


@pytest.fixture(autouse=True)
def _compiled_and_checked() -> Iterator[None]:
    with config.override(tier="compiled", debug=True):
        yield


def table(*shape: int) -> Any:
    return numpy.random.default_rng(0).integers(-50, 50, shape).astype("f8")


# Index arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (40, 30)])
def test_flipped_part_behind_another_divides_negative_positions(shape: tuple[int, ...]) -> None:
    x = table(*shape)
    y = np.asarray(x)
    numpy.testing.assert_array_equal(
        np.concatenate([y.reshape(-1), y.reshape(-1)[::-1]]), numpy.concatenate([x.reshape(-1), x.reshape(-1)[::-1]])
    )
    rows = (-1, shape[-1] * 2)
    numpy.testing.assert_array_equal(
        np.concatenate([y.reshape(rows), y.reshape(rows)[::-1]]), numpy.concatenate([x.reshape(rows), x.reshape(rows)[::-1]])
    )


# Computed indices under a condition -------------------------------------------------------------------------------------


def joined(m: Any, x: Any, rows: Any) -> Any:
    return m.concatenate([x[rows - 10], x])


def padded(m: Any, x: Any, rows: Any) -> Any:
    return m.pad(x[rows - 10], ((3, 2), (2, 1)))


def padded_twice(m: Any, x: Any, rows: Any) -> Any:
    return m.pad(m.pad(x[rows - 10], 1)[m.pad(rows - 10, (2, 2))], 1)


def padded_columns(m: Any, x: Any, rows: Any) -> Any:
    return m.pad(x[:, rows[:6] - 10], ((3, 2), (2, 1))).sum(axis=0)


@pytest.mark.parametrize("f", [joined, padded, padded_twice, padded_columns])
def test_index_behind_a_border_raises_nothing(f: Any) -> None:
    x, rows = table(20, 6), numpy.arange(10, 30)
    numpy.testing.assert_array_equal(f(np, np.asarray(x), np.asarray(rows)), f(numpy, x, rows))


@pytest.mark.parametrize("f", [joined, padded, padded_columns])
def test_index_inside_the_border_is_checked(f: Any) -> None:
    x, rows = table(20, 6), numpy.arange(10, 30)
    rows[5] = 99
    with pytest.raises(IndexError, match="89 is out of bounds"):
        f(np, np.asarray(x), np.asarray(rows)).realize()


# Joined parts -----------------------------------------------------------------------------------------------------------


def test_condition_that_holds_already_is_not_asked_again() -> None:
    def f(m: Any, x: Any) -> Any:
        c = m.concatenate([x + 1, x * 2])
        return m.concatenate([c[: len(x)] + 1, c[len(x) :], c[4:9]])

    x = table(7)
    numpy.testing.assert_array_equal(f(np, np.asarray(x)), f(numpy, x))


# Scratch -----------------------------------------------------------------------------------------------------------------


def test_value_staged_in_one_piece_only_is_computed_in_the_others() -> None:
    def f(m: Any, x: Any, z: Any) -> tuple[Any, Any]:
        a = m.exp(m.arange(200) * 0.01)
        return x * m.pad(a[:100], (0, 100)), a * x / m.sum(z, axis=1, keepdims=True)

    x, z = table(2, 200), abs(table(2, 70)) + 1
    got = f(np, np.asarray(x), np.asarray(z))
    np.realize(*got)
    for a, b in zip(got, f(numpy, x, z), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.slow
def test_scratch_of_many_staged_values_fits_the_stack() -> None:
    def f(m: Any, x: Any) -> Any:
        return sum(e / m.sum(e, axis=1, keepdims=True) for e in [m.exp(x * (0.01 * k)) for k in range(1, 41)])

    x = table(2, 32_768) / 50
    y = f(np, np.asarray(x))
    assert 0 < measured(y).scratch <= cost.SCRATCH_TOTAL
    numpy.testing.assert_allclose(y, f(numpy, x), rtol=1e-12)


# Short rows --------------------------------------------------------------------------------------------------------------


def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x - m.max(x, axis=1, keepdims=True))
    return e / m.sum(e, axis=1, keepdims=True)


def shifted_softmax(m: Any, x: Any) -> tuple[Any, Any]:
    shifted = x + m.arange(x.shape[1]) * 0.5
    return softmax(m, shifted), shifted


def scaled(m: Any, x: Any) -> Any:
    return m.exp(x / 60) * m.arange(1, x.shape[1] + 1)


def bordered(m: Any, x: Any) -> Any:
    return m.pad(x.reshape(-1, 4, x.shape[1]), ((1, 2), (2, 1), (0, 0))) * m.arange(x.shape[1])


def turned(m: Any, x: Any) -> Any:
    return m.where(x[:, :1] > 0, x[:, ::-1], m.roll(x, 1, axis=1)) - m.argmax(x, axis=1)[:, None]


SHORT_PROGRAMS = [softmax, shifted_softmax, scaled, bordered, turned]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9])
@pytest.mark.parametrize("f", SHORT_PROGRAMS)
def test_short_rows(f: Any, columns: int) -> None:
    for rows in (4, 68):
        x = table(rows, columns)
        got, expected = f(np, np.asarray(x)), f(numpy, x)
        for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, expected)], strict=True):
            numpy.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("columns", [3, 7])
@pytest.mark.parametrize("f", [softmax, shifted_softmax, scaled])
def test_short_rows_are_written_out(f: Any, columns: int) -> None:
    """One loop, over the rows: nothing that a row needs lies in memory."""
    made = scheduled(f(np, np.asarray(table(40, columns))))
    for phase in [phase for item in made.items for phase in item.code.phases]:  # type: ignore[union-attr]
        assert [type(s) for s in phase.body] == [ir.Loop]
        assert not any(isinstance(s, ir.Loop) for s in phase.body[0].body)
        assert all(local.count == "1" for local in phase.locals)


def test_short_row_is_loaded_once() -> None:
    x = table(40, 3)
    step = measured(softmax(np, np.asarray(x))).steps[0]
    assert (step.loaded, step.stored, step.scratch) == (x.nbytes, x.nbytes, 0)


def test_row_that_is_stored_while_it_is_reduced_is_written_out() -> None:
    for columns in (3, 8, 16, 32):
        made = scheduled(shifted_softmax(np, np.asarray(table(40, columns))))
        assert not any(isinstance(s, ir.Halve) for s in statements(made))
    made = scheduled(shifted_softmax(np, np.asarray(table(40, 33))))
    assert any(isinstance(s, ir.Halve) for s in statements(made))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [3, 7, 8, 9, 16, 17, 32, 33])
def test_order_of_short_sums_is_the_same_wherever_they_are_used(columns: int) -> None:
    x = numpy.random.default_rng(1).normal(size=(50, columns))
    alone = numpy.asarray(np.asarray(x).sum(axis=1))
    y = np.asarray(x)
    total = (y * 1.0).sum(axis=1, keepdims=True)
    together, ratio = total + 0.0, y / total
    np.realize(together, ratio)
    numpy.testing.assert_array_equal(together, alone[:, None])
    numpy.testing.assert_array_equal(ratio, x / alone[:, None])


# Rows that do not fill their lanes -----------------------------------------------------------------------------------------

ROWS: dict[str, Any] = {
    "sum": lambda m, x, y: m.sum(x * y, axis=1),
    "distance": lambda m, x, y: m.sum(abs(x[:20, None, :] - y[None, :20, :]), axis=2),
    "product and extremes": lambda m, x, y: (m.prod(x, axis=1), m.max(x - y[0], axis=1), m.min(-x, axis=1)),
    "shared with the row": lambda m, x, y: x / m.sum(x * x, axis=1, keepdims=True),
}


def bits(x: Any) -> list[bytes]:
    return [numpy.asarray(part).tobytes() for part in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [9, 15, 31, 32, 33, 50, 64, 100, 127, 130])
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "u4", "i2"])
def test_lanes_that_are_filled_together_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, kind: str, columns: int) -> None:
    rng = numpy.random.default_rng(columns)
    x, y = ((rng.normal(size=(40, columns)) * 8).astype(kind) for _ in range(2))
    x[1, :9], y[3, -1] = (0, 7) if kind[0] != "f" else (numpy.inf, numpy.nan)
    x[2, -2:] = -0.0
    for f in ROWS.values():
        with np.errstate(all="ignore"):
            together = bits(f(np, np.asarray(x), np.asarray(y)))
            forget_plans()
            with monkeypatch.context() as m:
                m.setattr(Nest, "masks", False)
                apart = bits(f(np, np.asarray(x), np.asarray(y)))
            forget_plans()
        assert together == apart


def test_incomplete_group_of_lanes_is_one_loop_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nest, "masks", True)
    for columns, masked in ((50, True), (200, False)):
        made = scheduled(ROWS["sum"](np, np.asarray(table(40, columns)), np.asarray(table(40, columns))))
        loops = [s for s in statements(made) if isinstance(s, ir.Loop) and not any(isinstance(t, ir.Loop) for t in s.body)]
        assert all(loop.lanes and loop.hi == "32" for loop in loops) == masked
        loads = [s for s in statements(made) if isinstance(s, ir.Load) and s.memory.space == "buffer"]
        assert [load.guard is not None for load in loads].count(True) == (2 if masked else 0)


@pytest.mark.slow
def test_lanes_without_an_element_tell_of_no_error() -> None:
    x = abs(table(40, 50)) + 1
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        assert numpy.isinf(np.asarray(x * numpy.inf).sum(axis=1)).all()
        assert numpy.isinf((np.asarray(x) * numpy.inf).sum(axis=1)).all()
        np.log(np.asarray(x)).sum(axis=1).realize()


def statements(made: Schedule) -> list[ir.Statement]:
    """Those of all kernels, inner ones included."""
    pending: list[ir.Statement] = [s for item in made.items for phase in item.code.phases for s in phase.body]  # type: ignore[union-attr]
    found = []
    while pending:
        found.append(pending.pop())
        pending += getattr(found[-1], "body", ())
    return found


# What the loops of a whole reduction do on their way -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(400, 250), (40, 30, 301)])
def test_rows_beside_a_whole_reduction_are_written_once_or_not_in_place(shape: tuple[int, ...]) -> None:
    """A part of the reduction may end within a row, which both parts store: nothing may be changed twice."""
    x = numpy.random.default_rng(3).random(shape)[..., 1:]
    inner = tuple(range(1, len(shape)))
    for rows in (lambda y: y.mean(axis=-1), lambda y: y.sum(axis=inner) * 2 + 1):
        with config.override(tier="compiled"):
            y = np.asarray(numpy.concatenate([x[..., :1], x], axis=-1))[..., 1:]  # not contiguous: its axes are not one
            found, largest = rows(y), y.max()
            np.realize(found, largest)
        numpy.testing.assert_allclose(found, rows(x), rtol=1e-12)
        assert largest == x.max()


def test_scratch_counts_the_elements_of_short_rows() -> None:
    """Scratch lies on the stack of a thread, which is not endless."""
    x = np.asarray(numpy.random.default_rng(4).random((2, 30_000, 15))) * np.arange(15.0)
    centred = x - x.max(axis=(1, 2), keepdims=True)
    made = scheduled(sum(f(centred) / f(centred).sum(axis=(1, 2), keepdims=True) for f in (np.exp, np.sin, np.cos)))
    for item in made.items:
        for phase in item.code.phases:  # type: ignore[union-attr]
            for local in phase.locals:
                if not local.count.isdigit():
                    assert item.launch.integers[int(local.count[1:])].const * local.dtype.itemsize <= cost.SCRATCH_TOTAL  # type: ignore[union-attr]
