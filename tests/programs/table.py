"""All programs, what runs them and what they are compared by.

In: the topic modules; every public function in them that takes the namespace is a program.  Out: ``PROGRAMS`` by name, the results and the
work of one run, what differs between two results.  Promise: a run reads every result, as a user would; nothing is left pending for
the next.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy

import lazynp
from lazynp.graph import report
from lazynp.scalars import is_scalar, pending_scalars
from lazynp.values import config

TOPICS: Final = [
    "stencils", "linear_algebra", "images", "statistics", "learning", "sequences", "indexing", "simulation", "signals",
    "text_and_structured",
]  # fmt: skip
RECORD: Final = Path(__file__).with_name("work.tsv")

Program = Callable[[Any], Any]


def _programs(topic: str) -> dict[str, Program]:
    module = import_module(f"tests.programs.{topic}")
    return {
        f"{topic}.{name}": value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__ and callable(value)
    }


PROGRAMS: Final[dict[str, Program]] = {name: program for topic in TOPICS for name, program in _programs(topic).items()}


@dataclass(frozen=True)
class Work:
    """What one run in the compiled tier cost: kernels launched, values forced, and the functions NumPy answered."""

    kernels: int
    forced: int
    fallbacks: str


def tolerance(program: Program) -> float:
    """What the program is marked with (``tolerance.close``); 0: equal, bit for bit."""
    marked: float = getattr(program, "tolerance", 0.0)
    return marked


def run_numpy(program: Program) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(program(numpy))


def run_lazynp(program: Program, tier: str, counted: bool = True) -> tuple[Any, dict[str, Any]]:
    """The results, and the counters of the run where they are asked for: those, and what is pending, are found by walking all objects."""
    if counted:
        pending_scalars()  # what an earlier program left pending is not computed with this one's
    # In the compiled tier what each step of the scheduler hands to the next is checked too.
    with warnings.catch_warnings(), config.override(backend="llvm", tier=tier, eager=False, debug=tier == "compiled"):
        warnings.simplefilter("ignore")
        report.reset()
        result = plain(program(lazynp))
        return result, report.counters() if counted else {}


def work(counters: dict[str, Any]) -> Work:
    called: dict[str, int] = {}
    for row in counters["fallbacks"]:
        called[row["function"]] = called.get(row["function"], 0) + row["count"]
    fallbacks = " ".join(f"{name}:{called[name]}" for name in sorted(called))
    return Work(counters["kernels"], sum(row["count"] for row in counters["forced"]), fallbacks or "-")


def recorded() -> dict[str, Work]:
    """The table of ``work.tsv``."""
    lines = RECORD.read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return {name: Work(int(kernels), int(forced), fallbacks) for name, kernels, forced, fallbacks in rows}


def write_record(rows: dict[str, Work]) -> None:
    lines = ["\t".join(["program", *Work.__dataclass_fields__])]
    lines += ["\t".join([name, *map(str, asdict(row).values())]) for name, row in rows.items()]
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain(result: Any) -> Any:
    """A result as (family, value of NumPy or Python), lists and tuples item by item."""
    if type(result) is lazynp.ndarray:
        return "array", numpy.array(result)
    if is_scalar(result):
        return "scalar", result.concrete("test")
    if isinstance(result, numpy.generic):
        return "scalar", result
    if isinstance(result, numpy.ndarray):
        return ("array" if type(result) is numpy.ndarray else type(result).__name__), result
    if isinstance(result, (tuple, list)):
        return type(result).__name__, [plain(item) for item in result]
    if isinstance(result, dict):
        return "dict", [plain(item) for pair in result.items() for item in pair]
    return type(result).__name__, result


def difference(got: Any, want: Any, allowed: float = 0.0) -> str | None:
    """What differs between two plain results, if anything does."""
    if got[0] != want[0]:
        return f"{got[0]} {got[1]!r} instead of {want[0]} {want[1]!r}"
    if isinstance(want[1], list):
        if len(got[1]) != len(want[1]):
            return f"{len(got[1])} results instead of {len(want[1])}"
        found = [difference(one, other, allowed) for one, other in zip(got[1], want[1], strict=True)]
        return next((f"[{k}]: {text}" for k, text in enumerate(found) if text is not None), None)
    if isinstance(want[1], (numpy.ndarray, numpy.generic)):
        return _difference_of_arrays(got[1], want[1], allowed)
    if isinstance(want[1], float) and allowed:
        return None if math.isclose(got[1], want[1], rel_tol=allowed) else f"{got[1]!r} instead of {want[1]!r}"
    return None if got[1] == want[1] else f"{got[1]!r} instead of {want[1]!r}"


def _difference_of_arrays(got: Any, want: Any, allowed: float) -> str | None:
    if got.dtype != want.dtype:
        return f"dtype {got.dtype} instead of {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.dtype.kind not in "fc":
        return None if numpy.array_equal(got, want) else f"{got!r} instead of {want!r}"
    if not allowed:
        equal = numpy.array_equal(got, want, equal_nan=True) and _signs(got) == _signs(want)
        return None if equal else f"{got!r} instead of {want!r} (off by {error(got, want):.2g})"
    found = error(got, want)
    return None if found <= allowed else f"{got!r} instead of {want!r}: off by {found:.2g}, more than {allowed:.2g}"


def _signs(x: Any) -> bytes:
    parts = [x.real, x.imag] if x.dtype.kind == "c" else [x]
    return b"".join(numpy.signbit(part[~numpy.isnan(part)] if part.ndim else part).tobytes() for part in parts)


def error(got: Any, want: Any) -> float:
    """The largest difference, in terms of the largest magnitude; infinite where NaNs or infinities differ."""
    finite = numpy.isfinite(want)
    if not numpy.array_equal(got[~finite], want[~finite], equal_nan=True) or not numpy.isfinite(got[finite]).all():
        return math.inf
    if not finite.any():
        return 0.0
    return float(numpy.abs(got[finite] - want[finite]).max()) / (float(numpy.abs(want[finite]).max()) or 1.0)
