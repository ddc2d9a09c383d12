"""Writing a random program: statements over a pool of names, each of which runs under NumPy while it is drawn.

In: a seed and a grammar.  Out: a ``Program``, lines of NumPy source.  Promise: what a line does is defined by NumPy and not by the
processor (conversions out of range, the sign of a new NaN that somebody reads as bytes, sums that depend on their order are left
out, unless their error is bounded), so that another implementation must agree on every bit, or, in the grammar of inexact
operations, within the bound that ``bounds`` carries along.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy

from tests.differential.bounds import Bounded, Module, Unbounded, plain

NATIVE: Final = "?bhilBHILefdFDqQ"
GRAMMARS: Final = ("exact", "inexact")
LARGEST: Final = 400  # elements of an array, unless the program is a large one
DEEPEST: Final = 4  # axes

Namespace = dict[str, Any]
Rule = Callable[["Writer"], str | None]


@dataclass
class Program:
    """Lines of NumPy source; names are ``v0``, ``v1``, ..., of arrays outside ``e0``, ...; ``see`` and ``force`` lines only read."""

    seed: int
    grammar: str
    lines: list[str] = field(default_factory=list)

    def without_reads(self) -> Program:
        """The same program with nothing in it that asks for a value."""
        return Program(self.seed, self.grammar, [line for line in self.lines if not is_read(line)])


def is_read(line: str) -> bool:
    return line.startswith(("see(", "force("))


def is_name(name: str) -> bool:
    return name[0] == "v" and name[1:].isdigit()


def namespace(module: Any, see: Callable[[Any], None]) -> Namespace:
    """What a program's names mean before its first line."""
    return {
        "np": module,
        "numpy": numpy,
        "inf": numpy.inf,
        "nan": numpy.nan,
        "see": see,
        "force": lambda x: getattr(x, "realize", lambda: None)(),
        "__name__": "program",
    }


class Oracle:
    """A program's run under NumPy, line by line; in the inexact grammar floating-point values carry their bounds."""

    def __init__(self, grammar: str) -> None:
        self.inexact = grammar == "inexact"
        self.seen: list[Any] = []
        self.names = namespace(Module() if self.inexact else numpy, self.see)

    def see(self, x: Any) -> None:
        self.seen.append(x.copy() if isinstance(x, (numpy.ndarray, Bounded)) else x)

    def run(self, line: str) -> Exception | None:
        """Run one line; what it raised."""
        try:
            exec(compiled(line), self.names)
        except Exception as error:
            refused = error.__cause__ or error.__context__  # NumPy's error about what a bounded value refused
            return refused if isinstance(refused, Unbounded) else error
        name = assigned(line)
        if name is not None and self.inexact:
            value = self.names[name]
            if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "fc":
                self.names[name] = Bounded(value)
        return None

    @property
    def values(self) -> dict[str, Any]:
        return {name: value for name, value in self.names.items() if is_name(name)}


_codes: dict[str, Any] = {}


def compiled(line: str) -> Any:
    """The line's code; a program runs several times."""
    code = _codes.get(line)
    if code is None:
        if len(_codes) > 10_000:
            _codes.clear()
        code = _codes[line] = compile(line, "<program>", "exec")
    return code


def assigned(line: str) -> str | None:
    """The name a line makes."""
    found = re.match(r"(v\d+) = ", line)
    return found[1] if found else None


class quiet:
    """No warnings, whatever is divided by zero."""

    def __enter__(self) -> None:
        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        warnings.simplefilter("ignore")
        self.state = numpy.errstate(all="ignore")
        self.state.__enter__()

    def __exit__(self, *error: object) -> None:
        self.state.__exit__(*error)
        self.caught.__exit__(*error)


class Writer:
    """Draws one program.

    Attributes
    ----------
    names : dict
        The names and their values under NumPy.
    pool : list of str
        Names that may be used.
    """

    def __init__(self, seed: int, grammar: str) -> None:
        self.random = random.Random(f"{grammar} {seed}")
        self.program = Program(seed, grammar)
        self.oracle = Oracle(grammar)
        self.pool: list[str] = []
        self.outside: list[str] = []  # names of NumPy's arrays that may share memory with the pool's
        self.count = 0
        # Few extents a program, so that shapes fit, and few in all, so that kernels come again.
        self.extents = self.random.choice([(3, 4), (3, 4), (4, 4), (2, 3, 4), (4, 1, 3), (3, 0, 4), (5, 2), (6,)])
        self.large = self.chance(0.02)
        if self.large:
            self.extents = (120, 100)
        self.dtypes = self.random.choices("dlifDbBe?FLHIh", [10, 8, 3, 4, 3, 1, 2, 1.5, 2, 1, 1, 0.5, 0.5, 0.5], k=3)
        self.bytes_read = False  # somebody looks at a float's bytes
        self.new_nans = False  # a NaN was made whose sign is up to the processor

    # Drawing ------------------------------------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def among(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def value(self, text: str) -> Any:
        """What an expression over the names is under NumPy; None where it raises."""
        found = self.oracle.names.get(text)
        if found is None:
            try:
                found = eval(text, self.oracle.names)
            except Exception:
                return None
        return plain(found)

    def name(self, fits: Callable[[Any], bool] = lambda x: True) -> str | None:
        """A name whose value fits; later ones a little more often."""
        found = [name for name in self.pool if fits(plain(self.oracle.names[name]))]
        if not found:
            return None
        return found[max(self.number(0, len(found) - 1), self.number(0, len(found) - 1))] if self.chance(0.5) else self.among(found)

    def overlaps(self, x: Any, y: Any) -> bool:
        """Whether two arrays may share memory."""
        return bool(numpy.may_share_memory(x, y))

    def fresh(self) -> str:
        """A name for a new value: now and then one that lets go of an old value."""
        if len(self.pool) > 4 and self.chance(0.12):
            return self.among(self.pool)
        self.count += 1
        return f"v{self.count - 1}"

    # Running ------------------------------------------------------------------------------------------------------------
    def write(self, rules: Sequence[Rule], weights: Sequence[float], inputs: Sequence[Rule], length: int) -> Program:
        """A program of about ``length`` lines."""
        with quiet():
            for _ in range(self.number(2, 3)):
                self.attempt(self.among(inputs))
            tries = 0
            while len(self.program.lines) < length and tries < 4 * length:
                tries += 1
                self.attempt(self.random.choices(rules, weights)[0])
        return self.program

    def attempt(self, rule: Rule) -> None:
        line = rule(self)
        if line is None:
            return
        error = self.oracle.run(line)
        if error is None:
            if self.keeps(line):
                self.program.lines.append(line)
            else:
                self.undo()
        elif isinstance(error, Unbounded):
            self.undo()
        elif isinstance(error, (SyntaxError, NameError)):
            raise AssertionError(f"the generator wrote {line!r}") from error
        else:
            # What a statement that raises has written before is NumPy's secret, unless it is nothing.
            after = self.oracle
            self.undo()
            if self.chance(0.5) and same(after, self.oracle):
                self.program.lines.append(line)

    def undo(self) -> None:
        """Back to before the last line: everything once more."""
        self.oracle = Oracle(self.program.grammar)
        for line in self.program.lines:
            self.oracle.run(line)

    def keeps(self, line: str) -> bool:
        """Whether a line that has run may stay; takes its new name into the pool."""
        name = assigned(line)
        if line.startswith("del v"):
            self.pool.remove(line[4:])
        if name is not None:
            value = plain(self.oracle.names[name])
            if not isinstance(value, (numpy.ndarray, numpy.generic)) or value.dtype.char not in NATIVE:
                return False
            if value.ndim > DEEPEST or value.size > (25_000 if self.large else LARGEST) or not value.dtype.isnative:
                return False
        if self.oracle.inexact:
            if not all(x.is_useful() for x in self.oracle.values.values() if isinstance(x, Bounded)):
                return False
        elif not self._settled(name):
            return False
        if name is not None:
            if name in self.pool:
                self.pool.remove(name)
            self.pool.append(name)
            if len(self.pool) > 14:
                self.pool.pop(self.number(0, 8))
        return True

    def _settled(self, name: str | None) -> bool:
        """Whether nobody can see what the processor chose: the sign of a NaN that an operation made."""
        values = self.oracle.names
        if name is not None and not self.bytes_read:
            value = values[name]
            self.bytes_read = isinstance(value, numpy.ndarray) and _reads_bytes(value)
        if not self.new_nans:
            self.new_nans = any(_has_new_nan(values[n]) for n in (self.pool if name is None else [*self.pool, name]))
        return not (self.bytes_read and self.new_nans)


def _reads_bytes(x: Any) -> bool:
    """Whether memory of floating-point numbers is read as another dtype."""
    base = x.base
    while isinstance(base, numpy.ndarray):
        if base.dtype != x.dtype and not (base.dtype.kind == "c" and x.dtype.kind == "f" and base.dtype.itemsize == 2 * x.dtype.itemsize):
            return True
        base = base.base
    return False


def _has_new_nan(x: Any) -> bool:
    if x.dtype.kind == "f":
        return bool((numpy.isnan(x) & numpy.signbit(x)).any())
    return x.dtype.kind == "c" and (_has_new_nan(x.real) or _has_new_nan(x.imag))


def same(a: Oracle, b: Oracle) -> bool:
    """Whether two runs have the same names with the same values."""
    one, two = a.values, b.values
    return one.keys() == two.keys() and all(
        plain(one[n]).shape == plain(two[n]).shape and plain(one[n]).tobytes() == plain(two[n]).tobytes() for n in one
    )
