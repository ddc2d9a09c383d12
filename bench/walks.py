"""``python -m bench.walks``: how far a reader has to walk.

In: nothing.  Out: for each of three walks through the package the number of files that take part, and the changes of file: how often a
function is called that stands in another file than the one called before it.  What the interpreter's profiler sees decides; caches are
warm, so that nothing is imported or filled on the way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import lazynp as np
from lazynp.arrays import node_of
from lazynp.codegen import pipeline
from lazynp.engine import realize as engine
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values import config

ROOT = str(Path(np.__file__).parent)


class Walk(NamedTuple):
    files: list[str]
    changes: int


def walk(function: Callable[[], object]) -> Walk:
    """The files of the package that ``function`` runs through, in order, and the changes of file."""
    seen: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT) and (not seen or seen[-1] != name):
            seen.append(name)

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return Walk([str(Path(name).relative_to(ROOT)) for name in dict.fromkeys(seen)], max(0, len(seen) - 1))


def expression(x: Any) -> Any:
    return np.exp(-x * x)


def walks() -> Iterator[tuple[str, Walk]]:
    x = np.asarray(np.linspace(0, 1, 100_000)).realize()
    with config.override(tier="compiled", backend="llvm"):
        for _ in range(3):
            expression(x).realize()
        yield "record np.exp(-x * x)", walk(lambda: expression(x))

        program, target = Program.of(canonicalise([node_of(expression(x))])), engine.compiler()
        pipeline.rendered(program, target)
        yield "from canonical form to source", walk(lambda: pipeline.rendered(program, target))

        y = expression(x)
        yield "realize it, cached", walk(y.realize)


def main() -> None:
    for name, found in walks():
        print(f"{name}: {len(found.files)} files, {found.changes} changes of file")
        print(f"    {', '.join(found.files)}")


if __name__ == "__main__":
    main()
