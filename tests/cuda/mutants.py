"""Bugs planted by rule in the kernels that lazynp makes: which of them the emulator finds, and how.

In: named programs, rules that change one place of a kernel's text.  Out: for each rule, how many of the mutants are found by wrong values,
by the checks of the plain build, by the race detector, and which by none: the change may be harmless there (a barrier that this shape does
not need).  ``python -m tests.cuda.mutants [NAMES...]`` prints the table and the survivors.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy
import pytest

from gpu_emulator import execution
from gpu_emulator.execution import EmulationError, Options
from tests.codegen.engines import Array, first_difference
from tests.codegen.test_grid import ROWS, nodes_of
from tests.cuda import guarded

NAMES = ("elements", "warps", "blocks", "everything, small", "columns", "across", "rows and columns", "shifted writes", "picked")
PLAIN = (Options(), Options("descending"), Options("random", 1))
INSTRUMENTED = (Options(races=True),)  # for what no order shows

RULES = {
    "barrier dropped": (r"__syncthreads\(\);", ";"),
    "one more": (r"(?<=\w) < (?=\w+;)", " <= "),
    "never": (r"if \((\w+)\)", r"if (\1 && false)"),
    "always": (r"if \((\w+)\)", r"if (\1 || true)"),
    "sum for difference": (r"(?<=const int )(\w+) = (\w+) \+ ", r"\1 = \2 - "),
    "index without its offset": (r"(?<=const int )(\w+) = (\w+) \+ \w+;", r"\1 = \2;"),
    "factor off by one": (r"\* (\d+);", r"* (\1 + 1);"),
    "step doubled": (r"\+= (\d+)\)", r"+= 2 * \1)"),
    "shuffle of half a warp": (r"half = 16", "half = 8"),
}


class Mutant(NamedTuple):
    rule: str
    before: str  # the line
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """One for each place where a rule applies."""
    for rule, (pattern, replacement) in RULES.items():
        for match in re.finditer(pattern, source):
            start, end = source.rfind("\n", 0, match.start()) + 1, source.find("\n", match.end())
            changed = source[: match.start()] + match.expand(replacement) + source[match.end() :]
            yield Mutant(rule, source[start:end].strip(), changed)


class Program:
    """A named program; its kernels may be replaced."""

    def __init__(self, name: str) -> None:
        function, shape = ROWS[name]
        self.nodes = nodes_of(function, numpy.random.default_rng(0).standard_normal(shape).astype("f"))
        self.sources: list[str] = []
        self.expected = self.run(Options())

    def run(self, options: Options, instead: dict[str, str] | None = None) -> list[Array]:
        render = guarded.render.module

        def rendered(kernels: object) -> str:
            source = render(kernels)
            if instead is None:
                self.sources.append(source)
            return (instead or {}).get(source, source)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guarded.render, "module", rendered)
            return guarded.run(self.nodes, options)[0]

    def found(self, source: str, mutant: str, ways: tuple[Options, ...]) -> str:
        """By what first: values, checks or races; or nothing."""
        for options in ways:
            try:
                got = self.run(options._replace(seconds=1.0), {source: mutant})
            except EmulationError:
                return "races" if options.races else "checks"
            except (AssertionError, IndexError):  # the kernel said that an index is out of range
                return "values"
            if any(map(first_difference, got, self.expected)):
                return "values"
        return ""


def score(names: tuple[str, ...] = NAMES) -> tuple[Counter[tuple[str, str]], list[tuple[str, Mutant]]]:
    """How many mutants of each rule are found by what; the survivors with their programs."""
    table: Counter[tuple[str, str]] = Counter()
    survivors = []
    for name in names:
        program = Program(name)
        for source in dict.fromkeys(program.sources):
            changed = list(mutants(source))
            for ways in (PLAIN, INSTRUMENTED):
                execution.precompile([mutant.source for mutant in changed], ways is INSTRUMENTED)
                found = [program.found(source, mutant.source, ways) for mutant in changed]
                table.update((mutant.rule, by) for mutant, by in zip(changed, found, strict=True) if by)
                changed = [mutant for mutant, by in zip(changed, found, strict=True) if not by]
            table.update((mutant.rule, "") for mutant in changed)
            survivors += [(name, mutant) for mutant in changed]
    return table, survivors


def main() -> None:
    table, survivors = score(tuple(sys.argv[1:]) or NAMES)
    print(f"{'':28}{'mutants':>8}{'values':>8}{'checks':>8}{'races':>8}{'none':>8}")
    for rule in RULES:
        counts = [table[rule, by] for by in ("values", "checks", "races", "")]
        print(f"{rule:28}{sum(counts):8}" + "".join(f"{count:8}" for count in counts))
    for name, mutant in survivors:
        print(f"{name}: {mutant.rule}: {mutant.before}")


if __name__ == "__main__":
    main()
