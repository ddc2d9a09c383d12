"""A program has the same bits in every run, whatever was compiled when.

In: seeds.  Out: the first value of a program that changed.  Every random program runs with nothing compiled, compiled from the first run
on, and again and again while the tiered engine compiles its parts one after another, as it would in the course of thousands of runs.

    python -m tests.differential.history --count 1000 --seed 0
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from lazynp.engine import realize, tiers
from lazynp.values import config
from tests.differential.bounds import plain
from tests.differential.programs import Run, grammar_of, is_name, under_lazynp, under_numpy
from tests.differential.statements import write
from tests.differential.writer import Program, quiet

NEVER: Final = 1 << 60
RUNS: Final = (1, 2, 5, 20)  # of which the values are compared
# Prices that make the engine compile: never, or each program after a few runs, the dear ones first.
PRICES: Final = {"first": (NEVER, NEVER, NEVER), "tiered": (300, 100, 2)}


@contextmanager
def prices(name: str) -> Iterator[None]:
    """Have the tiered engine compile by other prices, with no plan in memory before and after."""
    names = ("COMPILE_WORK", "PLAN_WORK", "TINY_WORK")
    before = {each: getattr(tiers, each) for each in names}

    def fresh(values: dict[str, int]) -> None:
        for each, value in values.items():
            setattr(tiers, each, value)
        realize.forget_plans()
        accounts = getattr(realize.backend("auto"), "accounts", None)
        if accounts is not None:
            accounts.clear()

    fresh(dict(zip(names, PRICES[name], strict=True)))
    try:
        yield
    finally:
        fresh(before)


def bits(value: Any) -> tuple[Any, ...]:
    """What must not change of a value; all NaNs are one."""
    array = np.array(plain(value))
    if array.dtype.kind in "fc":
        part = array.reshape(-1).view(array.real.dtype)
        array = np.where(np.isnan(part), np.nan, part).astype(part.dtype).reshape(-1)
    return array.dtype.str, array.shape, array.tobytes() if array.dtype.kind != "O" else repr(array)


def values(run: Run) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """All that a run made: name, value, bits."""
    found: list[tuple[str, Any, tuple[Any, ...]]] = []
    with quiet():
        for k, value in enumerate(run.seen):
            found.append((f"what was seen at {k}", value, bits(value)))
        for name, value in run.names.items():
            if is_name(name):
                try:
                    array = np.array(value)
                except Exception:  # a late error: nobody can see the value
                    continue
                found.append((name, array, bits(array)))
    return found


def difference(program: Program) -> str | None:
    """The first value that is another one in a later run, in words."""
    errors = under_numpy(program).errors
    runs = []
    with config.override(tier="auto"), prices("first"):
        runs.append(("with nothing compiled", values(under_lazynp(program, errors))))
    with config.override(tier="auto"), prices("tiered"):
        for number in range(1, RUNS[-1] + 1):
            run = under_lazynp(program, errors)
            if number in RUNS:
                runs.append((f"in run {number}", values(run)))
    with config.override(backend="llvm", tier="compiled"):
        runs.append(("compiled", values(under_lazynp(program, errors))))
    first, expected = runs[0]
    for name, found in runs[1:]:
        for (label, a, these), (_, b, those) in zip(expected, found, strict=False):
            if these != those:
                x, y = np.asarray(plain(a)), np.asarray(plain(b))
                return f"{label} {first}:\n{x!r}\n{name}:\n{y!r}"
        if len(expected) != len(found):
            return f"{len(expected)} values {first}, {len(found)} {name}"
    return None


def check(seed: int) -> str | None:
    """What changed in the course of a seed's program, which comes shrunk."""
    program = write(seed, grammar_of(seed))
    if difference(program) is None:
        return None
    lines = list(program.lines)
    for at in range(len(lines) - 1, -1, -1):
        fewer = Program(program.seed, program.grammar, lines[:at] + lines[at + 1 :])
        if not any(isinstance(error, NameError) for error in under_numpy(fewer).errors) and difference(fewer):
            lines = fewer.lines
    least = Program(program.seed, program.grammar, lines)
    return "\n".join([f"# {program.grammar} grammar, seed {seed}", *lines, f"# {difference(least)}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--stop", type=int, default=10, help="differences to report before giving up")
    options = parser.parse_args()
    failures = done = 0
    for seed in range(options.seed, options.seed + options.count):
        found = check(seed)
        done += 1
        if found is not None:
            failures += 1
            print(found, end="\n\n", flush=True)
            if failures == options.stop:
                break
    print(f"{done} programs, {failures} changed in the course of their runs")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
