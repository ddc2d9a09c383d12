"""``as_strided`` and ``sliding_window_view`` against NumPy: values, strides, writes through overlapping memory, bounds."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import op as o
from tests.namespace.compare import DTYPES, check

BASES = {
    "line": "np.arange(12)",
    "matrix": "np.arange(24.0).reshape(4, 6)",
    "turned": "np.arange(24.0).reshape(4, 6).T",
    "steps": "np.arange(48.0).reshape(6, 8)[::2, ::-2]",
    "fortran": "np.asfortranarray(np.arange(24).reshape(4, 6))",
    "cube": "np.arange(60).reshape(3, 4, 5)",
    "empty": "np.zeros((0, 3))",
    "number": "np.array(3.0)",
}

WINDOWS = [
    "3", "(2, 3)", "2, 0", "3, -1", "(2, 2), (0, 0)", "(2, 3), (1, 0)", "(2, 2, 2)", "0, 0", "1, 0", "()", "99, 0", "-1, 0", "2, 7",
    "(2, 2), 0",
]  # fmt: skip


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("window", WINDOWS)
def test_windows(base: str, window: str) -> None:
    def run(np: Any) -> object:
        x = eval(BASES[base], {"np": np})
        v = eval(f"np.lib.stride_tricks.sliding_window_view(x, {window})", {"np": np, "x": x})
        w = v + 1
        return v, v.strides, v.flags.writeable, v.flags.c_contiguous, w, w.strides, v.sum(-1) if v.ndim else v, v.T.copy(), v[..., ::-1]

    check(run, note=f"{base} {window}")


STRIDES = [
    "", "shape=(2, 3)", "shape=(3, 2), strides=(8, 16)", "strides=(8, 8)", "shape=(4, 4), strides=(0, 8)",
    "shape=(2, 0), strides=(800, 8)", "shape=(), strides=()", "shape=(3,), strides=(3,)", "shape=(2, 2)", "shape=(2,), strides=(8, 8)",
    "shape=(-1,), strides=(8,)", "shape=(3, 3), strides=(8, 8), writeable=False",
]  # fmt: skip


@pytest.mark.parametrize("base", ["line", "matrix", "turned", "steps", "fortran"])
@pytest.mark.parametrize("text", STRIDES)
def test_strides(base: str, text: str) -> None:
    def run(np: Any) -> object:
        x = eval(BASES[base], {"np": np})
        x = x[2:] if x.ndim == 1 else x
        v = eval(f"np.lib.stride_tricks.as_strided(x, {text})", {"np": np, "x": x})
        return v * 1, v.shape, v.strides, v.flags.writeable, v.T[..., :1] + 1 if v.ndim else v

    check(run, note=f"{base} {text}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_over_dtypes(dtype: str) -> None:
    def run(np: Any) -> object:
        x = np.array(numpy.arange(10) % 3, dtype)
        size = x.dtype.itemsize
        return (
            np.lib.stride_tricks.sliding_window_view(x, 4),
            np.lib.stride_tricks.as_strided(x, (3, 4), (2 * size, size)),
            np.lib.stride_tricks.as_strided(x[::-1], (3, 2), (-size, -2 * size)),
            np.lib.stride_tricks.as_strided(x.view("uint8"), (3, 2), (1, size)),
        )

    check(run, note=dtype)


def test_views_of_parts_of_complex_numbers() -> None:
    def run(np: Any) -> object:
        z = np.arange(6) + 1j * np.arange(6)[::-1]
        v = np.lib.stride_tricks.as_strided(z.imag[1:], (2, 2), (16, 32))
        v[0, 1] = 77
        w = np.lib.stride_tricks.sliding_window_view(z.real, 3, writeable=True)
        w[2] = -1
        return z, v, w

    check(run)


def test_writes_go_through() -> None:
    def run(np: Any) -> object:
        x = np.arange(12.0)
        y = np.arange(24).reshape(4, 6)
        v = np.lib.stride_tricks.sliding_window_view(x, 3, writeable=True)
        w = np.lib.stride_tricks.as_strided(y[1:], (3, 4), (16, 8))
        before = x + 0
        v[0, 1] = 50
        v[5] = [7, 8, 9]
        v[:, 2] += 1
        w[...] = np.arange(12).reshape(3, 4)
        w[::2, 1] = -5
        w[w == 3] = 99
        w.T[1:, 0] = 4
        d = np.lib.stride_tricks.as_strided(y, (4,), (56,))
        d[:] = 1000
        np.putmask(v, v > 8, 0)
        return x, y, v, w, d, before

    check(run)


def test_windows_are_read_only_unless_asked() -> None:
    check(lambda np: np.lib.stride_tricks.sliding_window_view(np.arange(5), 2).__setitem__(0, 1))
    check(lambda np: np.lib.stride_tricks.as_strided(np.arange(5), (2, 2), (8, 8), writeable=False).__setitem__(0, 1))


@pytest.mark.parametrize(
    "arguments", [((7,), (8,)), ((2,), (-8,)), ((3, 3), (16, 8)), ((1,), (8,), 5), ((2,), (1 << 40,)), ((100,), None), ((6,), (7,), 1)]
)
def test_memory_of_others_is_never_shown(arguments: Any) -> None:
    shape, strides, *start = arguments
    x = lazynp.arange(6.0)[start[0] :] if start else lazynp.arange(6.0)
    if start and shape == (1,):
        assert lazynp.lib.stride_tricks.as_strided(x, shape, strides)[0] == 5
        return
    with pytest.raises(ValueError, match="outside the array"):
        lazynp.lib.stride_tricks.as_strided(x, shape, strides)


def test_the_memory_is_that_of_the_base() -> None:
    x = lazynp.arange(6.0)
    v = lazynp.lib.stride_tricks.as_strided(x[5:], (6,), (-8,))
    assert v.tolist() == [5, 4, 3, 2, 1, 0]
    assert lazynp.shares_memory(x, v)
    assert v.base is x


@pytest.mark.usefixtures("recorded")
def test_moving_averages_are_one_kernel_without_copies() -> None:
    x = (lazynp.arange(1000.0) * 2).realize()
    v = lazynp.lib.stride_tricks.sliding_window_view(x, 5)
    assert v._node is None
    y = (v * v).mean(axis=-1)
    assert lazynp.explain(y).startswith("1 kernel(s), 0 library call(s)")
    ops = set()
    pending = [y._node]
    while pending:
        at = pending.pop()
        ops.add(at.op)
        pending += at.src
    assert not ops & {o.GATHER, o.CALL, o.CONCAT}
    want = numpy.lib.stride_tricks.sliding_window_view(numpy.arange(1000.0) * 2, 5)
    assert numpy.allclose(numpy.asarray(y), (want * want).mean(-1))
