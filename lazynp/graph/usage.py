"""Who holds memory: what exists now, by the user's line.

In: nothing; nodes are found by the garbage collector, which knows them all.  Out: numbers and text.  Promise: nothing is counted while a
program runs, unless its peaks are watched, and nothing is kept alive; asking takes milliseconds.
"""

from __future__ import annotations

import gc
from typing import Any, Final

from lazynp.graph.node import Node, site_of, where
from lazynp.values import allocator, pressure

SHOWN: Final = 8  # lines of the report


def by_line(place: Any = None) -> list[dict[str, Any]]:
    """List the lines whose values exist, on the processor or a GPU, the largest first: ``line``, ``bytes``, ``values``.

    Memory that values share counts once.
    """
    found: dict[str, list[int]] = {}
    seen: set[int] = set()
    for node in [x for x in gc.get_objects() if type(x) is Node]:
        buffer = node.buffer
        if buffer is None or buffer.place is not place:
            continue
        memory = id(buffer if buffer.block is None else buffer.block)
        if memory not in seen:
            seen.add(memory)
            counted = found.setdefault(where(site_of(node)), [0, 0])
            counted[0] += buffer.nbytes
            counted[1] += 1
    rows = [{"line": line, "bytes": nbytes, "values": values} for line, (nbytes, values) in found.items()]
    return sorted(rows, key=lambda row: (-row["bytes"], row["line"]))


_peak: Final[list[dict[str, Any]]] = []  # the rows of the highest peak, to within an eighth


def watch() -> None:
    """Note from now on which lines hold memory whenever more is held than ever, by an eighth."""
    pressure.watch(_note)


def _note() -> None:
    _peak[:] = by_line()


def memory() -> dict[str, Any]:
    """Return what is held: see ``lazynp.memory``."""
    there = {account.place.name: on_device(account) for account in pressure.devices.values()}
    return {**allocator.memory(), **pressure.accounts(), "lines": by_line(), "peak_lines": _peak[:], "devices": there}


def on_device(account: pressure.Account) -> dict[str, Any]:
    """Return what values hold on one GPU."""
    lines = by_line(account.place)
    return {"held": sum([row["bytes"] for row in lines]), "large": account.held, "large_peak": account.peak, "lines": lines}


def lines() -> list[str]:
    """Return the same as text."""
    now = memory()
    total = f"{now['in_use'] + now['numpy']:,} bytes (at most {now['held_peak']:,}), for pending work only: {now['pending']:,}"
    text = [f"memory held: {total}, kept for reuse: {now['pooled']:,}"]
    text += [_line(row) for row in now["lines"][:SHOWN] if row["bytes"]]
    for name, there in now["devices"].items():
        text.append(f"memory held on {name}: {there['held']:,} bytes (large values {there['large']:,}, at most {there['large_peak']:,})")
        text += [_line(row) for row in there["lines"][:SHOWN] if row["bytes"]]
    if now["peak_lines"]:
        text += ["memory held when it was most:", *[_line(row) for row in now["peak_lines"][:SHOWN] if row["bytes"]]]
    return text


def _line(row: dict[str, Any]) -> str:
    return f"  {row['values']:>8} x {row['bytes']:>14,} bytes  {row['line']}"
