"""Lists of numbers that are written to rows: what NumPy writes, warns of and raises."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp

SHAPES = [(3,), (4, 3), (0,), (2, 0), (1,), (1, 1), (2, 3, 4)]
KEYS = [0, -1, 5, slice(None), slice(1, 3), slice(None, None, -1), slice(None, None, 2), slice(5, 1), ..., (0, slice(None)), True, None]
VALUES: list[Any] = [
    (1.0, 2.0, 3.0), [1, 2, 3], (1.5,), [], [1, 2], (2.5, 7), [10**400, 1, 2], [True, 2.0, 3.0], (1.0, 2.0, 3.0, 4.0),
    [numpy.float64(2), 1, 2], [[1, 2, 3]], (float("nan"), 1, -0.0), [1j, 2, 3], [2**63, 2**64, 3], range(3), ["1", 2, 3], [None, 1, 2],
]  # fmt: skip


def written(np: Any, shape: tuple[int, ...], dtype: str, key: Any, value: Any, how: str) -> Any:
    a = np.zeros(shape, dtype)
    if how == "transposed":
        a = a.T
    elif how == "waits":
        a = a + 1
    elif how == "read":
        b = a + a
    elif how == "locked":
        a.flags.writeable = False
    a[key] = value
    return (a, b) if how == "read" else (a, a)


@pytest.mark.parametrize("how", ["", "transposed", "waits", "read", "locked"])
@pytest.mark.parametrize("dtype", ["d", "f", "l", "D", ">f8"])
def test_lists_are_written_as_numpy_writes_them(dtype: str, how: str) -> None:
    for shape, key, value in itertools.product(SHAPES, KEYS, VALUES):
        found: list[Any] = []
        for np in (numpy, lazynp):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    arrays = written(np, shape, dtype, key, value, how)
                    found.append([numpy.asarray(a).tobytes() for a in arrays])
                except Exception as error:
                    found.append((type(error), str(error)))
                found[-1] = found[-1], [str(warning.message) for warning in told]
        assert found[0] == found[1], (shape, key, value)


def test_a_row_of_numbers_waits_for_nothing() -> None:
    x, y = lazynp.arange(12.0).reshape(4, 3), lazynp.ones(3) + 1
    y = y * 2 + y  # waits
    x[1] = (7, 8.5, 9)
    assert len(lazynp.schedule(y).items) > 0
    assert x.tolist() == [[0, 1, 2], [7, 8.5, 9], [6, 7, 8], [9, 10, 11]]


class Bound:
    """The bound of a slice that does something when it is asked for."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act, self.asked = act, 0

    def __index__(self) -> int:
        self.asked += 1
        self.act()
        return 0


@pytest.mark.parametrize("act", ["clear", "raise", "reshape", "nothing"])
def test_bounds_of_slices_may_do_what_they_like(act: str) -> None:
    found: list[Any] = []
    for np in (numpy, lazynp):
        x, values = np.zeros(8), [1.0] * 8

        def raising() -> None:
            raise KeyboardInterrupt("asked")

        acts = {"clear": values.clear, "raise": raising, "reshape": lambda x=x: x.resize((4,), refcheck=False), "nothing": list}
        bound = Bound(acts[act])
        try:
            x[bound:8] = values
        except (KeyboardInterrupt, ValueError, IndexError) as error:
            found.append((type(error), str(error), bound.asked))
        else:
            found.append((x.tolist(), bound.asked))
    assert found[1][-1] == found[0][-1] == 1
    if act in ("raise", "nothing"):
        assert found[0] == found[1]
