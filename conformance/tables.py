"""Tables in the terminal.

In: headings, and lines of cells.  Out: a table on standard output, with rich where it is installed.  Promise: the same cells either way.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence


def show(headings: Sequence[str], lines: Sequence[Sequence[str]], left: Collection[str]) -> None:
    """Print a table; the columns named in ``left`` hold text, the others numbers."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
        for line in (headings, *lines):
            cells = (cell.ljust(w) if name in left else cell.rjust(w) for cell, w, name in zip(line, widths, headings, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")
        return
    table = Table()
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=heading == headings[0])
    for line in lines:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
