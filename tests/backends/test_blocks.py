"""The numbers of a run in the argument block of a kernel: the native launcher writes what its twin writes."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from lazynp.backends.common import compiled

SCALARS: list[tuple[str, Any]] = [
    ("?", True), ("?", numpy.bool_(False)), ("b", -128), ("B", 255), ("h", -2), ("H", 65535), ("i", -7), ("I", 2**32 - 1), ("q", -(2**63)),
    ("Q", 2**64 - 1), ("e", 0.1), ("f", numpy.float32(0.1)), ("d", -0.0), ("d", numpy.float64("nan")),
    ("ff", 1.5 - 2j), ("dd", complex(0.1, -0.0)),
]  # fmt: skip
OFFSETS = [((0, 1),), ((0, -3), (1, 5)), ((1, 2**33),)]
INTEGERS = [7, -11]


def launcher(offsets: list[tuple[tuple[int, int], ...]], forms: list[str]) -> Any:
    """What the two look at of a launcher; slots that nobody writes hold their number."""
    first = 1 + len(offsets)
    slots = first + 2 * len(forms)
    layout = SimpleNamespace(slots=slots + 3, threads=slots, error=slots + 1, flags=slots + 2)
    return SimpleNamespace(
        run=None, layout=layout, template=array("q", range(slots + 3)), threaded=False, error=False, wanted=0, reads=[], outputs=[],
        taken=[], workspaces=[], updates=[], integers=[(1 + k, 100 * k, terms) for k, terms in enumerate(offsets)],
        scalars=[(8 * (first + 2 * k), form, k) for k, form in enumerate(forms)],
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, len(OFFSETS)])
def test_blocks_of_both_are_equal(count: int) -> None:
    made = launcher(OFFSETS[:count], [form for form, _ in SCALARS])
    scalars = [value for _, value in SCALARS]
    ours, theirs = made.template[:], made.template[:]
    largest = compiled.Launcher.fill(made, ours, INTEGERS, scalars)
    assert largest == {0: 0, 1: 7, 3: 11 * 2**33 - 200}[count]
    native = compiled.native_fill(made)
    if native is not None:
        assert native(theirs, INTEGERS, scalars) == largest
        assert theirs.tobytes() == ours.tobytes()


@pytest.mark.skipif(compiled.native_fill(launcher([], [])) is None, reason="no native launcher here")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((array("q", [0]), [1, 2], [1.0]), ValueError),
        ((array("q", [0] * 9), [1], [1.0]), IndexError),
        ((array("q", [0] * 9), [1, 2], []), IndexError),
        ((array("q", [0] * 9), [1, 2], ["x"]), TypeError),
        ((b"\0" * 72, [1, 2], [1.0]), BufferError),
        ((array("q", [0] * 9), (1, 2), [1.0]), TypeError),
    ],
)
def test_what_does_not_fit_is_refused(arguments: Any, error: type[Exception]) -> None:
    fill = compiled.native_fill(launcher(OFFSETS, ["d"]))
    with pytest.raises(error):
        fill(*arguments)
