"""Random programs give what NumPy gives: values, dtypes, shapes, strides, kinds of object, aliasing, exceptions.

In: seeds.  Out: the first difference of a program, or None.  A program is run as it is, without the lines that ask for values (which must
not change a bit) and, where it raises, with every operation run at its call.  A failing one is shrunk and printed as it would be typed.

    python -m tests.differential.programs --count 1000 --seed 0 --tier compiled --grammar exact
    python -m tests.differential.programs --count 1000 --seed 0 --threads 8  # so many programs at once, which switch often
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import numpy

import lazynp
from lazynp.values import config
from tests.differential.bounds import Bounded, plain
from tests.differential.statements import write
from tests.differential.writer import GRAMMARS, Oracle, Program, compiled, is_name, namespace, quiet

TIERS: Final[dict[str, dict[str, Any]]] = {
    "auto": {"tier": "auto"},
    "numpy": {"backend": "numpy"},
    "compiled": {"backend": "llvm", "tier": "compiled"},
}
PAIRS: Final = 24  # pairs of names of a program whose aliasing is asked for


@dataclass
class Run:
    """What a program did: the error of each line, what it saw, its names at the end."""

    errors: list[Exception | None] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    late: bool = False  # stopped at a line that should have raised, and did not yet

    def see(self, x: Any) -> None:
        self.seen.append(numpy.array(x) if isinstance(x, (lazynp.ndarray, lazynp.generic)) else x)


class Difference(Exception):
    """Where the two runs part; the first word says what kind of difference it is."""


def under_numpy(program: Program) -> Run:
    with quiet():
        oracle = Oracle(program.grammar)
        errors = [oracle.run(line) for line in program.lines]
        return Run(errors, oracle.seen, oracle.values)


def under_lazynp(program: Program, expected: list[Exception | None]) -> Run:
    """The same lines with ``np`` standing for lazynp, up to an error that comes late."""
    with quiet():
        run = Run()
        names = namespace(lazynp, run.see)
        run.names = names
        for line, error in zip(program.lines, expected, strict=True):
            try:
                exec(compiled(line), names)
            except Exception as raised:
                run.errors.append(raised)
                if error is None:
                    break
            else:
                run.errors.append(None)
                if error is not None:
                    run.late = True
                    break
        return run


# Comparing -----------------------------------------------------------------------------------------------------------------
def public(error: type[BaseException]) -> type[BaseException]:
    """The type a user catches: the first one that is not NumPy's private one."""
    return next(t for t in error.__mro__ if not t.__name__.startswith("_"))


def compare_value(name: str, got: Any, expected: Any) -> None:
    """Raise where a value is not NumPy's: dtype, shape, bits or bound."""
    bound = expected.e if isinstance(expected, Bounded) else None
    theirs = plain(expected)
    if not isinstance(theirs, (numpy.ndarray, numpy.generic)):
        if type(got) is not type(theirs) or repr(got) != repr(theirs):
            raise Difference(f"value: {name} is {got!r}, expected {theirs!r}")
        return
    ours = numpy.asarray(got)
    if ours.dtype != theirs.dtype:
        raise Difference(f"dtype: {name} is {ours.dtype}, expected {theirs.dtype}")
    if ours.shape != theirs.shape:
        raise Difference(f"shape: {name} is {ours.shape}, expected {theirs.shape}")
    wrong = ~_agrees(ours, numpy.asarray(theirs), bound)
    if wrong.any():
        at = tuple([int(i) for i in numpy.argwhere(wrong)[0]])
        within = "" if bound is None else f" within {numpy.asarray(bound)[at]}"
        raise Difference(f"value: {name}{list(at)} is {ours[at]!r}, expected {numpy.asarray(theirs)[at]!r}{within} ({wrong.sum()} wrong)")


def _agrees(a: Any, b: Any, bound: Any) -> Any:
    """Elements that are equal bit for bit, any NaN like another, or as near as the bound says."""
    if a.dtype.kind == "c":
        real, imag = (None, None) if bound is None else (bound.real, bound.imag)
        return _agrees(a.real, b.real, real) & _agrees(a.imag, b.imag, imag)
    if a.dtype.kind != "f":
        return a == b
    equal = ((a == b) & (numpy.signbit(a) == numpy.signbit(b))) | (numpy.isnan(a) & numpy.isnan(b))
    if bound is None:
        return equal
    with numpy.errstate(all="ignore"):
        return equal | ((numpy.abs(a.astype(float) - b.astype(float)) <= bound) & (bound > 0))


def compare_errors(program: Program, ours: Run, theirs: Run) -> None:
    for line, got, expected in zip(program.lines, ours.errors, theirs.errors, strict=False):
        if expected is None and got is not None:
            raise Difference(f"raised: {line!r} raises {got!r}")
        if expected is not None and got is not None and not isinstance(got, public(type(expected))):
            raise Difference(f"raised: {line!r} raises {got!r}, expected {expected!r}")


def compare_layout(name: str, ours: Any, theirs: Any) -> None:
    """Raise where two arrays lie differently in memory.  A base that has no name is NumPy's own business."""
    if isinstance(ours, lazynp.ndarray) != isinstance(theirs, numpy.ndarray):
        raise Difference(f"kind: {name} is a {type(ours).__name__}, expected a {type(theirs).__name__}")
    if not isinstance(theirs, numpy.ndarray):
        return
    # NumPy itself leaves the stride of an axis of length 1, and those of empty arrays, to chance.
    steps = [(a, b) for a, b, n in zip(ours.strides, theirs.strides, theirs.shape, strict=True) if n > 1 and theirs.size]
    if any(a != b for a, b in steps):
        raise Difference(f"strides: of {name} are {ours.strides}, expected {theirs.strides}")
    if ours.flags.writeable != theirs.flags.writeable:
        raise Difference(f"writeable: {name} is {ours.flags.writeable}, expected {theirs.flags.writeable}")
    if theirs.base is None and ours.base is not None:
        raise Difference(f"base: of {name} is {type(ours.base).__name__}, expected None")


def pairs(names: list[str]) -> Iterator[tuple[str, str]]:
    """Some pairs of names, those next to each other first."""
    found = 0
    for distance in range(1, len(names)):
        for a, b in zip(names, names[distance:], strict=False):
            yield a, b
            found += 1
            if found == PAIRS:
                return


def compare_aliasing(ours: Run, theirs: Run, names: list[str]) -> None:
    arrays = [name for name in names if isinstance(plain(theirs.names[name]), numpy.ndarray)]
    for a, b in pairs(arrays):
        x, y = plain(theirs.names[a]), plain(theirs.names[b])
        p, q = ours.names[a], ours.names[b]
        if (x is y) != (p is q):
            raise Difference(f"alias: {a} is {b}: {p is q}, expected {x is y}")
        if lazynp.shares_memory(p, q) != numpy.shares_memory(x, y):
            raise Difference(f"alias: shares_memory({a}, {b}) is {lazynp.shares_memory(p, q)}, expected {numpy.shares_memory(x, y)}")
        if numpy.may_share_memory(x, y) and not lazynp.may_share_memory(p, q):
            raise Difference(f"alias: may_share_memory({a}, {b}) is False")
    for name in arrays:
        theirs_base = plain(theirs.names[name]).base
        known = [other for other in arrays if plain(theirs.names[other]) is theirs_base]
        if known and ours.names[name].base is not ours.names[known[0]]:
            raise Difference(f"base: of {name} is not {known[0]}")


def affected(line: str, names: dict[str, Any]) -> set[str]:
    """The names that a late error of a line may have reached: its own, and all that share memory with them."""
    named = set(re.findall(r"v\d+", line))
    hit = [plain(names[name]) for name in named if name in names and isinstance(plain(names[name]), numpy.ndarray)]
    shared = {
        name
        for name, value in names.items()
        if isinstance(plain(value), numpy.ndarray) and any(numpy.may_share_memory(plain(value), x) for x in hit)
    }
    return named | shared


def compare_until_late(program: Program, ours: Run, expected: Exception) -> None:
    """Raise where a program that stopped at a late error differs before it, or where the error never comes."""
    lines = program.lines[: len(ours.errors)]
    names = under_numpy(Program(program.seed, program.grammar, lines)).names
    hit = affected(lines[-1], names)
    raised = False
    with quiet():
        for name in hit & ours.names.keys():
            try:
                numpy.asarray(ours.names[name])
            except Exception as error:
                if not isinstance(error, public(type(expected))):
                    raise Difference(f"raised: {name} of {lines[-1]!r} raises {error!r}, expected {expected!r}") from None
                raised = True
        if not raised:
            raise Difference(f"raised: {lines[-1]!r} never raises {expected!r}")
        for name in names.keys() - hit:
            compare_value(name, ours.names[name], names[name])


def compare(program: Program, ours: Run, theirs: Run) -> None:
    """Raise the first difference between the two runs of a program."""
    compare_errors(program, ours, theirs)
    for k, (got, expected) in enumerate(zip(ours.seen, theirs.seen, strict=False)):
        compare_value(f"what was seen at {k}", got, expected)
    if ours.late:
        expected = theirs.errors[len(ours.errors) - 1]
        assert expected is not None
        compare_until_late(program, ours, expected)
        return
    names = list(theirs.names)
    backwards = names[::-1] if program.seed % 2 else names
    with quiet():
        for name in backwards:
            compare_value(name, ours.names[name], theirs.names[name])
        for name in names:
            compare_layout(name, ours.names[name], plain(theirs.names[name]))
        compare_aliasing(ours, theirs, names)


def bits(run: Run) -> dict[str, bytes]:
    return {name: numpy.asarray(value).tobytes() for name, value in run.names.items() if is_name(name)}


def compare_without_reads(program: Program) -> None:
    """Raise where a line that only reads changes a bit of what comes after."""
    numpys = under_numpy(program)
    if any(numpys.errors):
        return
    bare = program.without_reads()
    with_reads = bits(under_lazynp(program, numpys.errors))
    without = bits(under_lazynp(bare, [None] * len(bare.lines)))
    for name in with_reads:
        if with_reads[name] != without.get(name):
            raise Difference(f"reads: {name} depends on what was read")


def difference(program: Program, tier: str = "auto", alone: bool = True) -> str | None:
    """The first difference between NumPy and lazynp, in words.

    Settings are the process's: where a program does not run ``alone`` they stay as they are.
    """
    try:
        with config.override(**TIERS[tier]) if alone else nullcontext():
            theirs = under_numpy(program)
            ours = under_lazynp(program, theirs.errors)
            compare(program, ours, theirs)
            if program.seed % 4 == 0 and alone:
                # What is compiled, and when, depends on what is asked for together: `auto` is left out.
                with config.override(**TIERS["numpy" if tier == "auto" else tier]):
                    compare_without_reads(program)
        if alone and (ours.late or program.seed % 16 == 1):
            with config.override(**TIERS[tier], eager=True):
                ours = under_lazynp(program, theirs.errors)
                compare(program, ours, theirs)
                if ours.late:
                    raise Difference(f"raised: {program.lines[len(ours.errors) - 1]!r} raises nothing when run at its call")
    except Difference as found:
        return str(found)
    except AssertionError as error:
        return f"crash: {error!r}"
    except Exception as error:
        return f"crash: comparing raised {error!r}"
    return None


# Reporting -----------------------------------------------------------------------------------------------------------------
def shrunk(program: Program, tier: str, found: str, alone: bool) -> Program:
    """Fewer lines with the same kind of difference as the one that was found; all of them where that is not found again."""
    word = found.split(":")[0]
    lines = list(program.lines)
    size = max(len(lines) // 2, 1)
    while True:
        at = len(lines)
        before = len(lines)
        while at > 0:
            at = max(at - size, 0)
            fewer = lines[:at] + lines[at + size :]
            if _is_program(fewer):
                again = difference(Program(program.seed, program.grammar, fewer), tier, alone)
                if again is not None and again.split(":")[0] == word:
                    lines = fewer
        if size == 1 and len(lines) == before:
            return Program(program.seed, program.grammar, lines)
        size = max(size // 2, 1)


def _is_program(lines: list[str]) -> bool:
    """Whether every name is made before it is used."""
    return not any(isinstance(error, NameError) for error in under_numpy(Program(0, "exact", lines)).errors)


def report(program: Program, tier: str, found: str, alone: bool = True) -> str:
    """A failing program as a script, with the difference, and the one that is left when it runs by itself, as its last lines."""
    program = shrunk(program, tier, found, alone)
    theirs = under_numpy(program).errors
    lines = [
        f"try: {line}\nexcept {public(type(error)).__name__}: pass" if error else line
        for line, error in zip(program.lines, theirs, strict=True)
    ]
    return "\n".join(
        [
            f"# {program.grammar} grammar, seed {program.seed}, tier {tier}",
            "import numpy, lazynp as np  # or: import numpy, numpy as np",
            "from numpy import inf, nan",
            "see, force = print, lambda x: getattr(x, 'realize', lambda: None)()",
            *lines,
            f"# {found}",
            f"# {difference(program, tier, alone)}",
        ]
    )


def grammar_of(seed: int) -> str:
    """Two exact programs, then an inexact one."""
    return GRAMMARS[seed % 3 == 2]


def check(seed: int, grammar: str, tier: str, alone: bool = True) -> str | None:
    """The report of a seed's program, if it differs."""
    program = write(seed, grammar)
    found = difference(program, tier, alone)
    return None if found is None else report(program, tier, found, alone)


def checked(seeds: range, grammar: str, tier: str, threads: int) -> Iterator[str | None]:
    """The reports of programs, in order; those of several threads run at once."""

    def checked_one(seed: int) -> str | None:
        return check(seed, grammar_of(seed) if grammar == "both" else grammar, tier, threads == 1)

    if threads == 1:
        yield from map(checked_one, seeds)
        return
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with config.override(**TIERS[tier]), ThreadPoolExecutor(threads) as pool:
            yield from pool.map(checked_one, seeds)
    finally:
        sys.setswitchinterval(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--tier", choices=TIERS, default="auto")
    parser.add_argument("--grammar", choices=[*GRAMMARS, "both"], default="both")
    parser.add_argument("--threads", type=int, default=1, help="programs that run at once")
    parser.add_argument("--stop", type=int, default=10, help="differences to report before giving up")
    options = parser.parse_args()
    failures = 0
    begun = shown = time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    for k, found in enumerate(checked(seeds, options.grammar, options.tier, options.threads)):
        if found is not None:
            failures += 1
            print(found, flush=True)
            print(flush=True)
            if failures == options.stop:
                break
        now = time.monotonic()
        if now - shown > 30:
            shown = now
            pace = (k + 1) / (now - begun)
            print(f"{k + 1} of {options.count} programs, {failures} differ, {pace:.0f} a second", file=sys.stderr, flush=True)
    print(f"{k + 1} programs, {failures} differ")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
