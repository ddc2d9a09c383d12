# ruff: noqa: E501 - a case is one line of the table
"""Shapes, axes, joining and padding against NumPy: values, dtypes, errors, and whether the result is a view."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.namespace.compare import check, table

test_calls = table(
    {
        "a": numpy.arange(24.0).reshape(2, 3, 4), "o": numpy.ones((1, 2, 1)), "i": numpy.arange(3),
        "f": numpy.array([0.5, 1.5, 2.5], "float32"),
    },
    """
    np.reshape(a, (4, 6))
    a.reshape(4, -1)
    a.reshape(24)
    a.reshape((2, 12))
    np.reshape(a, -1)
    a.reshape(4, 6, order='F')
    ! a.reshape(5, 5)
    ! a.reshape(-1, -1)
    ! a.reshape(2, 3.0, 4)
    np.reshape(5, (1, 1))
    np.reshape([1, 2], (2, 1))
    np.ravel(a)
    a.ravel('F')
    a.T.ravel()
    a.T.ravel('K')
    a.flatten()
    a.flatten('F')
    np.ravel(3)
    np.transpose(a)
    a.transpose(1, 0, 2)
    a.transpose((2, 0, 1))
    np.transpose(a, (-1, 0, 1))
    a.T
    a.mT
    np.permute_dims(a, (1, 0, 2))
    ! a.transpose(0, 1)
    ! a.transpose(0, 0, 1)
    ! a.transpose(0, 1, 3)
    np.swapaxes(a, 0, 2)
    a.swapaxes(-1, 0)
    np.moveaxis(a, 0, -1)
    np.moveaxis(a, [0, 1], [-1, -2])
    np.rollaxis(a, 2)
    np.rollaxis(a, 0, 3)
    ! np.swapaxes(a, 0, 5)
    ! np.moveaxis(a, [0, 1], [0])
    ! np.moveaxis(a, [0, 0], [0, 1])
    ! np.rollaxis(a, 0, 9)
    np.squeeze(o)
    np.squeeze(o, 0)
    o.squeeze()
    o.squeeze(axis=(0, 2))
    np.squeeze(5)
    ! np.squeeze(o, 1)
    ! np.squeeze(o, 7)
    np.expand_dims(a, 0)
    np.expand_dims(a, -1)
    np.expand_dims(a, (0, 2))
    np.expand_dims(3, 0)
    ! np.expand_dims(a, 7)
    ! np.expand_dims(a, (1, 1))
    np.atleast_1d(3)
    np.atleast_2d([1, 2])
    np.atleast_3d([1, 2])
    np.atleast_3d([[1, 2]])
    np.atleast_2d(3, [1, 2], a)
    np.broadcast_to([1, 2, 3], (2, 3))
    np.broadcast_to(3, (2, 2))
    np.broadcast_to(a, (2, 2, 3, 4))
    np.broadcast_to([1], 3)
    ! np.broadcast_to([1, 2], (3,))
    ! np.broadcast_to(a, (3, 4))
    np.broadcast_to([1, 2, 3], (2, 3)).flags.writeable
    np.broadcast_arrays([1, 2, 3], [[1], [2]])
    ! np.broadcast_arrays([1, 2], [1, 2, 3])
    np.flip(a)
    np.flip(a, 0)
    np.flip(a, (0, 2))
    np.fliplr(a)
    np.flipud(a)
    np.rot90(a)
    np.rot90(a, 2)
    np.rot90(a, 3, (1, 2))
    np.rot90(a, -1)
    ! np.fliplr([1, 2])
    ! np.flip(a, 5)
    ! np.rot90(a, 1, (0, 0))
    np.matrix_transpose(a)
    ! np.matrix_transpose([1, 2])
    np.split(a, 2)
    np.split(a, [1, 2], axis=2)
    np.array_split(a, 3, axis=2)
    np.array_split([1, 2, 3], 5)
    np.hsplit(a, 3)
    np.vsplit(a, 2)
    ! np.split(a, 3)
    ! np.split(a, 0)
    ! np.array_split(a, 0)
    ! np.split(a, 2, axis=7)
    np.dsplit(a, 2)
    np.hsplit(np.arange(4), 2)
    np.split(a, [-1, 10], axis=1)
    np.unstack(a, axis=1)
    ! np.dsplit([1, 2], 2)
    ! np.vsplit([1, 2], 2)
    np.concatenate([a, a])
    np.concatenate([a, a], axis=1)
    np.concatenate((a, a), -1)
    np.concatenate([a, [[[1]]]], axis=None)
    np.concatenate([i, f])
    np.concatenate([np.array([1], 'int8'), np.array([1], 'uint8')])
    np.concatenate([i, f], dtype='float32')
    ! np.concatenate([i, f], dtype='int8')
    np.concatenate([i, f], dtype='int8', casting='unsafe')
    ! np.concatenate([])
    ! np.concatenate([1, 2])
    ! np.concatenate([a, i])
    ! np.concatenate([a, a[:, :1]])
    ! np.concatenate([a, a], axis=3)
    np.concatenate([i, i], out=np.zeros(6))
    np.concatenate(a)
    np.concat([i, i])
    ! np.concatenate([i, i], out=np.zeros(5))
    np.stack([i, f])
    np.stack([i, f], axis=1)
    np.stack([a, a], -1)
    np.vstack([i, f])
    np.hstack([i, f])
    np.dstack([i, f])
    np.column_stack([i, f])
    ! np.stack([i, a])
    ! np.stack([])
    ! np.stack([i, i], axis=3)
    np.hstack([a, a])
    np.vstack([a, a])
    np.dstack([a, a])
    np.column_stack([a[0], a[0]])
    np.vstack([1, 2])
    np.hstack([1, 2])
    np.append(i, [4, 5])
    np.append(a, a, axis=0)
    np.block([[a[0], a[0]], [a[0], a[0]]])
    np.block([1, 2])
    np.block([[i], [i]])
    np.append(i.astype('i1'), 4)
    np.append(4, i.astype('i1'))
    np.append(a.astype('f4'), 2.5)
    np.append([], i)
    np.append(3, 4)
    np.append(a, i)
    np.hstack([i.astype('i1'), 4])
    np.insert(i.astype('i1'), 0, 4)
    ! np.append(3, 4, axis=0)
    ! np.append(i, 4, axis=0)
    np.concatenate([a.T, a.T]).flags.f_contiguous
    np.tile(i, 2)
    np.tile(a, (2, 1, 2))
    np.tile(i, (2, 2))
    np.tile(a, 2)
    np.tile(3, 2)
    np.tile(i, 0)
    np.repeat(i, 2)
    np.repeat(a, 2, axis=1)
    np.repeat(i, [1, 0, 3])
    np.repeat(a, [2, 1], axis=0)
    np.repeat(3, 4)
    i.repeat(2)
    np.repeat(a, [2, 1, 0], 1)
    ! np.repeat(i, [1, 2])
    ! np.repeat(i, -1)
    np.repeat(i, 1.5)
    np.roll(i, 1)
    np.roll(a, 2)
    np.roll(a, 1, axis=0)
    np.roll(a, -1, axis=2)
    np.roll(a, (1, 2), axis=(0, 1))
    np.roll(a, 3, axis=(0, 2))
    np.roll(i, 7)
    ! np.roll(a, 1, axis=9)
    np.pad(i, 2)
    np.pad(i, (1, 2))
    np.pad(a, ((1, 0), (0, 1), (2, 2)))
    np.pad(i, 1, constant_values=9)
    np.pad(f, 1, constant_values=9)
    np.pad(a, 1, constant_values=((1, 2), (3, 4), (5, 6)))
    np.pad(i, 2, mode='mean')
    np.pad(i, 2, 'linear_ramp')
    np.pad(i, {0: (1, 2)})
    ! np.pad(i, -1)
    ! np.pad(i, 1.5)
    ! np.pad(i, 1, mode='nonsense')
    ! np.pad(np.zeros((0, 2)), 1, mode='edge')
    a.shape
    a.ndim
    a.size
    np.shape([[1]])
    np.ndim(3)
    np.size(a, 1)
    np.size([1, 2])
    np.delete(i, 1)
    np.insert(i, 1, 9)
    np.delete(a, 0, axis=1)
    np.resize(i, (2, 4))
    np.trim_zeros([0, 1, 0])
    """,
)


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
def test_pad_modes(mode: str) -> None:
    for n in (1, 2, 5):
        for width in (0, 1, 3, (2, 0), (0, 9), (12, 7)):
            x = numpy.arange(n)
            check(lambda np, x=x, w=width: np.pad(np.array(x), w, mode=mode), 0, f"{mode} {n} {width}")
    x = numpy.arange(12).reshape(3, 4)
    check(lambda np: np.pad(np.array(x), ((1, 2), (3, 1)), mode=mode), 0, mode)


VIEWS = [
    "x.reshape(4, 3)", "x.T", "x.ravel()", "np.transpose(x)", "np.swapaxes(x, 0, 1)", "np.squeeze(x[None])", "np.expand_dims(x, 0)",
    "np.flip(x, 0)", "np.rot90(x)", "np.split(x, 3)[1]", "np.atleast_3d(x)", "np.moveaxis(x, 0, 1)", "x.real", "x.view()", "np.reshape(x, -1)",
]  # fmt: skip


@pytest.mark.parametrize("text", VIEWS)
def test_a_write_through_the_view_is_seen_by_the_base(text: str) -> None:
    def run(np: object) -> object:
        x = np.array(numpy.arange(12.0).reshape(3, 4))  # type: ignore[attr-defined]
        view = eval(text, {"np": np, "x": x})
        view[0] = -1
        return x

    check(run, 0, text)


def test_copies_do_not_alias() -> None:
    x = lazynp.arange(12.0).reshape(3, 4)
    for made in (x.flatten(), x.T.ravel(), lazynp.tile(x, 1), lazynp.concatenate([x]), lazynp.stack([x])[0], lazynp.roll(x, 0), x.astype(float)):
        made[0] = 99
    assert float(x.max()) == 11


# An array in the place of a list of arrays ----------------------------------------------------------------------------------------

JOINED: Final[list[tuple[str, dict[str, Any]]]] = [
    *[("concatenate", {"axis": axis}) for axis in (0, 1, -1, None, 5)],
    *[("stack", {"axis": axis}) for axis in (0, 1, -1, 2)],
    *[(name, {}) for name in ("vstack", "hstack", "dstack", "column_stack")],
    ("concatenate", {"dtype": "f4", "casting": "unsafe"}),
    ("concatenate", {"dtype": "i1"}),
    ("vstack", {"dtype": "D"}),
]
LAYOUTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "C": lambda np, x: x,
    "F": lambda np, x: np.array(x, order="F"),
    "transposed": lambda np, x: np.array(x.T).T,
    "backwards": lambda np, x: x[::-1],
    "pending": lambda np, x: x + x,
}


def rows_joined(np: Any, shape: tuple[int, ...], dtype: str, layout: str, name: str, options: dict[str, Any], into: bool) -> Any:
    x = LAYOUTS[layout](np, np.arange(prod(shape)).reshape(shape).astype(dtype))
    try:
        found = getattr(np, name)(x, **options)
        if into and name in ("concatenate", "stack") and "dtype" not in options:
            found = getattr(np, name)(x, out=np.zeros(found.shape), **options)
    except Exception as error:
        return type(error), str(error)
    found = numpy.asarray(found)
    return found.dtype, found.shape, [step for step, n in zip(found.strides, found.shape, strict=True) if n > 1], found.tobytes()


@pytest.mark.parametrize("limit", [None, 0])
@pytest.mark.parametrize("shape", [(100,), (70, 3), (70, 1), (65, 4, 2), (65, 2, 3, 2), (66, 1, 2)])
def test_rows_of_an_array_are_joined(shape: tuple[int, ...], limit: int | None) -> None:
    """As many operands as an array has rows would take minutes: they are its elements in another order."""
    with config.override(**{} if limit is None else {"tape_limit": limit, "numbers": "wait"}):
        for dtype, layout, (name, options), into in product("di?F", LAYOUTS, JOINED, (False, True)):
            case = shape, dtype, layout, name, options, into
            assert rows_joined(lazynp, *case) == rows_joined(numpy, *case), case


def test_a_million_rows_are_joined() -> None:
    x = lazynp.asarray(numpy.arange(900_000.0)) * 2
    found = lazynp.column_stack(x)
    assert len(lazynp.schedule(found).items) == 1
    assert found.shape == (1, 900_000) and float(found[0, 7]) == 14.0
