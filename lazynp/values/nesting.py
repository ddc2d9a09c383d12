"""How many axes there may be, and how deep lists and tuples are looked into: no deeper, for one may hold itself.

In: how deep one is, a shape.  Out: NumPy's exception where that is too much.  Promise: what NumPy takes is not refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

MOST_AXES: Final = 64


def checked_shape(shape: Sequence[Any]) -> None:
    """Refuse a shape of too many axes before its lengths are looked at."""
    if len(shape) > MOST_AXES:
        raise ValueError(f"maximum supported dimension for an ndarray is currently {MOST_AXES}, found {len(shape)}")


def too_deep() -> ValueError:
    """Return what NumPy raises where it is to make an array of such a list."""
    text = "setting an array element with a sequence. The requested array would exceed the maximum number of dimension of"
    return ValueError(f"{text} {MOST_AXES}.")
