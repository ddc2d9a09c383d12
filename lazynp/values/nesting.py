"""How deep lists and tuples are looked into: no deeper than NumPy's arrays have axes, for one may hold itself.

In: how deep one is.  Out: NumPy's exception where that is too deep.  Promise: what NumPy takes is not refused.
"""

from __future__ import annotations

from typing import Final

MOST_AXES: Final = 64


def too_deep() -> ValueError:
    """Return what NumPy raises where it is to make an array of such a list."""
    text = "setting an array element with a sequence. The requested array would exceed the maximum number of dimension of"
    return ValueError(f"{text} {MOST_AXES}.")
