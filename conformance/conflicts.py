"""What ``conflicts.md`` says, for programs.

In: the page.  Out: the special values that lazynp takes from the standard, and the tests of the standard's suite that fail because NumPy's
value was kept.  Promise: the page is the only list; what is not on it is a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parent / "conflicts.md"


@cache
def values() -> dict[str, list[tuple[complex, complex, complex]]]:
    """Function -> (argument, NumPy's value, the standard's value)."""
    found: dict[str, list[tuple[complex, complex, complex]]] = {}
    for line in PAGE.read_text(encoding="utf-8").partition("## NumPy's value")[0].splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[1].endswith("j"):
            argument, theirs, standard = map(complex, cells[1:])
            found.setdefault(cells[0], []).append((argument, theirs, standard))
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


def same(z: Any, value: complex) -> Any:
    """Where complex numbers are this one, to the signs of zeros; NaN is NaN."""
    parts = [
        (part == wanted) & (np.signbit(part) == np.signbit(wanted)) if wanted == wanted else np.isnan(part)
        for part, wanted in ((np.real(z), value.real), (np.imag(z), value.imag))
    ]
    return parts[0] & parts[1]


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
            for argument, _, standard in rows:
                values = np.where(same(z, argument), values.dtype.type(standard), values)
            if found.shape:
                found[...] = values
            else:
                found = values[()]
        return found

    return corrected
