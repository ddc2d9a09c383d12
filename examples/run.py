"""Run the example programs through NumPy and through lazynp, and show what is different: `make run`.

The programs know nothing of lazynp.  Each is started as ``python PROGRAM`` and as ``python -m lazynp PROGRAM``, in turns, so that
a busy machine hits both; the first lazynp process starts with an empty cache of machine code.  All times are from the array in
memory to the array in memory: decoding and encoding pictures is timed by the program, and printed, apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).parent
PICTURES = HERE.parent / "docs" / "images"
TILE = (640, 427)  # one copy of the photograph within the drawing


@dataclass
class Side:
    """What the processes of one side, NumPy or lazynp, reported."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, Any] = field(default_factory=dict)
    picture: Path | None = None

    @property
    def cold(self) -> float:
        """The first computation in the first process."""
        return float(self.runs[0]["compute"][0])

    @property
    def warm(self) -> float:
        """Median over processes of the median computation, the first of each process left out."""
        return statistics.median(statistics.median(run["compute"][1:]) for run in self.runs)


def photo_difference(numpy: Side, lazynp: Side) -> tuple[str, bool]:
    """A power that differs in its last bit may move a pixel across the edge of its histogram bin: few pixels, few levels."""
    assert numpy.picture is not None
    assert lazynp.picture is not None
    a, b = (np.asarray(Image.open(path)).astype(np.int16) for path in (numpy.picture, lazynp.picture))
    difference = np.abs(a - b)
    pixels = np.count_nonzero(difference)
    return f"{difference.max()} of 255 levels, in {pixels:,} pixels", bool(difference.max() <= 3 and pixels <= a.size // 10_000)


def digits_difference(numpy: Side, lazynp: Side) -> tuple[str, bool]:
    """Relative to each result; sums are added in another order, 300 steps long."""
    ours, theirs = lazynp.runs[0]["results"], numpy.runs[0]["results"]
    largest = max(float(np.max(np.abs(np.subtract(ours[key], theirs[key]))) / np.max(np.abs(theirs[key]))) for key in theirs)
    return f"{largest:.1e}, relative", largest <= 1e-9


def photo_pictures(lazynp: Side) -> Iterator[tuple[str, Image.Image]]:
    assert lazynp.picture is not None
    yield "drawing.png", Image.open(lazynp.picture).crop((0, 0, *TILE))


def digits_pictures(lazynp: Side) -> Iterator[tuple[str, Image.Image]]:
    """What the regression looks for in each of the ten digits."""
    weights = np.array(lazynp.runs[0]["results"]["weights"])
    scaled = 127.5 + 127.5 * weights / np.abs(weights).max()
    maps = scaled.T.reshape(10, 8, 8).astype(np.uint8)
    strip = np.pad(maps, ((0, 0), (1, 1), (1, 1)), constant_values=255).transpose(1, 0, 2).reshape(10, 100)
    yield "digits.png", Image.fromarray(strip).resize((1000, 100), Image.Resampling.NEAREST)


@dataclass(frozen=True)
class Example:
    """One program and how to compare what it made."""

    name: str
    script: str
    repeat: int
    draws: bool
    difference: Callable[[Side, Side], tuple[str, bool]]
    pictures: Callable[[Side], Iterator[tuple[str, Image.Image]]]


EXAMPLES = (
    Example("photograph, 13.4 megapixels", "photo.py", 4, True, photo_difference, photo_pictures),
    Example("1797 handwritten digits", "digits.py", 4, False, digits_difference, digits_pictures),
)


def launch(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run a program and return the JSON that it prints."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    reported: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return reported


def measure(example: Example, rounds: int, scratch: Path, step: Callable[[str], None]) -> tuple[Side, Side]:
    """Run one example `rounds` times on both sides in turns, and once more through lazynp to count one computation."""
    numpy, lazynp = Side(), Side()
    # an empty machine-code cache, so that `cold` is what a new user sees; the caller's own is left alone
    environment = {**os.environ, "LAZYNP_CACHE_DIR": str(scratch / f"cache-{example.script}")}
    program = [str(HERE / example.script), "--json", "--repeat"]
    ours = [sys.executable, "-m", "lazynp"]
    for number in range(rounds):
        for side, start in ((numpy, [sys.executable]), (lazynp, ours)):
            name = "NumPy" if side is numpy else "lazynp"
            step(f"{example.name}: {name}, round {number + 1} of {rounds}")
            extra = []
            if example.draws and side.picture is None:
                side.picture = scratch / f"{example.script}-{name}.png"
                extra = ["--output", str(side.picture)]
            side.runs.append(launch([*start, *program, str(1 + example.repeat), *extra], environment))
    step(f"{example.name}: counting")
    counters = scratch / "counters.json"
    launch([*ours, "--report-json", str(counters), *program, "1"], environment)
    lazynp.counters = json.loads(counters.read_text(encoding="utf-8"))
    return numpy, lazynp


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def size(count: float | None) -> str:
    if count is None:
        return "-"
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description="The example programs through NumPy and through lazynp.")
    parser.add_argument("--rounds", type=int, default=3, help="processes on each side")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was measured to FILE")
    options = parser.parse_args()
    console = Console()
    PICTURES.mkdir(parents=True, exist_ok=True)

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    measured: list[tuple[Example, Side, Side]] = []
    written: list[str] = []
    with tempfile.TemporaryDirectory() as scratch, Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=len(EXAMPLES) * (2 * options.rounds + 1))
        started = False

        def step(text: str) -> None:
            nonlocal started
            progress.update(task, description=text, advance=int(started))
            started = True

        for example in EXAMPLES:
            numpy, lazynp = measure(example, options.rounds, Path(scratch), step)
            measured.append((example, numpy, lazynp))
            for name, picture in example.pictures(lazynp):
                picture.save(PICTURES / name, optimize=True)
                written.append(f"docs/images/{name}")
        differences = [example.difference(numpy, lazynp) for example, numpy, lazynp in measured]

    table = Table(title="The same programs through NumPy and through lazynp,\narray in memory to array in memory")
    table.add_column("")
    for example, _numpy, _lazynp in measured:
        table.add_column(example.name, justify="right")
    rows: tuple[tuple[str, Callable[[Side, Side], str]], ...] = (
        ("NumPy", lambda n, z: seconds(n.warm)),
        ("lazynp, cold", lambda n, z: seconds(z.cold)),
        ("lazynp, warm", lambda n, z: seconds(z.warm)),
        ("speed-up, warm", lambda n, z: f"{n.warm / z.warm:.1f}x"),
        ("kernels run", lambda n, z: number(z.counters.get("kernels"))),
        ("operations fused", lambda n, z: number(z.counters.get("fused_ops"))),
        ("bytes not moved", lambda n, z: size(z.counters.get("bytes_saved"))),
    )
    for heading, cell in rows:
        table.add_row(heading, *[cell(numpy, lazynp) for _, numpy, lazynp in measured])
    table.add_row("largest difference", *[text for text, _ in differences])
    console.print(table)
    console.print(f"NumPy's own first computation: {', '.join(f'{e.script} {seconds(n.cold)}' for e, n, _ in measured)}")
    photo_numpy, photo_lazynp = next((n, z) for e, n, z in measured if e.draws)
    for key, text in (("decode", "decoding and tiling the JPEG"), ("encode", "encoding the PNG")):
        # only the first process of each side writes the picture
        times = [side.runs[0][key] for side in (photo_numpy, photo_lazynp)]
        console.print(f"apart: {text} takes {seconds(times[0])} with NumPy, {seconds(times[1])} with lazynp")
    console.print(f"written: {', '.join(written)}")
    if options.json:
        document = {e.script: {"numpy": n.runs, "lazynp": z.runs, "counters": z.counters} for e, n, z in measured}
        Path(options.json).write_text(json.dumps(document, indent=1), encoding="utf-8")
    if not all(equal for _, equal in differences):
        raise SystemExit("the results differ from NumPy's by more than rounding explains")


if __name__ == "__main__":
    main()
