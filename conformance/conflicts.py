"""What ``conflicts.md`` says, for programs.

In: the page.  Out: the special values that lazynp takes from the standard, and the tests of the standard's suite that fail because NumPy's
value was kept.  Promise: the page is the only list; what is not on it is a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PAGE = Path(__file__).parent / "conflicts.md"


class Row(NamedTuple):
    """Arguments of a function, and its values there; NumPy's may be two, which a text says."""

    real: str
    imag: str
    numpy: str
    standard: complex

    def hits(self, z: Any) -> Any:
        """Where complex numbers are these arguments."""
        return _hits(np.real(z), self.real) & _hits(np.imag(z), self.imag)


def _hits(x: Any, described: str) -> Any:
    if described in ("positive", "negative"):
        return np.isfinite(x) & (x > 0 if described == "positive" else x < 0)
    value = float(described)
    return np.isnan(x) if value != value else (x == value) & (np.signbit(x) == np.signbit(value))


@cache
def values() -> dict[str, list[Row]]:
    """Function -> where the standard's values are taken."""
    found: dict[str, list[Row]] = {}
    for line in PAGE.read_text(encoding="utf-8").partition("## NumPy's value")[0].splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[4].endswith("j"):
            found.setdefault(cells[0], []).append(Row(cells[1], cells[2], cells[3], complex(cells[4])))
    return found


@cache
def tests() -> dict[str, str]:
    """Test of the suite -> the heading that explains why it fails."""
    found, heading, listed = {}, "", False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            listed = not listed
        elif listed:
            found[line] = heading
        elif line.startswith("### "):
            heading = line.removeprefix("### ")
    return found


def function(name: str) -> Callable[..., Any]:
    """NumPy's function, with the standard's values where this page lists the argument."""
    theirs: Callable[..., Any] = getattr(np, name)
    rows = values().get(name)
    if rows is None:
        return theirs

    def corrected(z: Any, *args: Any, **kwargs: Any) -> Any:
        z = np.array(z)  # as it was, should the result be written over it
        found = theirs(z, *args, **kwargs)
        if found.dtype.kind == "c":
            values = np.asarray(found)
            for row in rows:
                values = np.where(row.hits(z), values.dtype.type(row.standard), values)
            if found.shape:
                found[...] = values
            else:
                found = values[()]
        return found

    return corrected
