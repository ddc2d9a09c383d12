"""Random expressions as programs write them: ``python -m tests.array.chained --count N --seed S [--compiled]``.

In: seeds.  Out: lines of a program, run with NumPy and with lazynp, whose operations wait on tapes (``array/chains.h``).  Promise:
every value is compared to the bit, with its dtype and shape and the warnings and exceptions of its line; tapes begin at small sizes.
A quarter of the programs runs each line in a block of its own filters of warnings, where nothing waits; the others run without one, and
ask for values after each line or, another quarter, after the last one only, so that tapes go on from line to line.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

import lazynp
from lazynp.array import core
from lazynp.values import config

DTYPES = ("float64", "float64", "float64", "float32", "int64", "uint8", "bool", "complex128", "float16", "int32")
SIZES = (  # see ``core.chain_sizes``
    (1, 512, 1024), (256, 32, 1024), (1, 1, 1), (2, 1, 3), (1, 4, 7), (5, 1, 1024), (1, 64, 1024), (1, 64, 50),
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "+", "*", "&", "|", "^", "//", "@", "<", ">=", "==", "!=")
NEVER = 1 << 62
BLOCKS, IGNORED, TO_THE_END, TOLD = WAYS = ("blocks", "ignored", "to the end", "told")  # how lines run, see ``hears``
FUNCTION = "def f(x, y):\n    z = x - y\n    unread = z * y\n    return z * x + y"
NUMBERS = ("2", "0.5", "-1.5", "3", "0", "1e200", "N(1.5)", "F(2.5)", "True", "1j", "300")


class Program:
    """Lines over the arrays ``a`` to ``e``, which have one shape or shapes that broadcast."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        pick = self.random.choice
        self.sizes = pick(SIZES)
        self.way = WAYS[seed // 2 % 4]
        self.dtype = pick(DTYPES)
        big = self.sizes[0] >= 256
        rows, columns = self.random.randint(1, 9), self.random.randint(1, 70)
        if big:
            rows, columns = pick(((1, 5000), (70, 65), (33, 130), (4, 1100), (2, 3000), (1, 300), (8, 40), (700, 10), (900, 3)))
        self.shape = pick(((rows * columns,), (rows, columns), (rows, columns), (2, rows, columns)))
        self.odd = self.random.random() < 0.3  # values that raise flags
        self.lines = [self.line() for _ in range(self.random.randint(1, 6 if self.way == BLOCKS else 9))]
        self.lines.append("out = [a, b, c, d, e]")

    def leaf(self, depth: int) -> str:
        pick = self.random.choice
        name = pick("abcde")
        kind = self.random.random()
        if kind < 0.55:
            return name
        if kind < 0.75:
            return pick(NUMBERS)
        if kind < 0.80 and len(self.shape) > 1:
            return f"{name}[:, :1]"
        if kind < 0.85 and len(self.shape) > 1:
            return f"{name}[0]"
        if kind < 0.86:
            return "z"  # one number in an array
        if kind < 0.88:
            return f"o.{name}"
        if kind < 0.91:
            return f"{name}.T.T"
        if kind < 0.94:
            return f"rows[{pick('012')}]"
        if kind < 0.96:
            name = pick(("maximum", "add", "multiply", "less", "divide", "power"))
            return f"np.{name}({self.expression(depth - 1)}, {self.expression(depth - 1)})"
        if kind < 0.97:
            test = f"({self.expression(depth - 1)}) {pick(('<', '>=', '!='))} {self.leaf(0)}"
            return f"np.where({test}, {self.expression(depth - 1)}, {self.expression(depth - 1)})"
        if kind < 0.98:
            return f"np.clip({self.expression(depth - 1)}, {pick(('0', '-1.5', 'None', name))}, {pick(('2', '0.5', 'None', '300'))})"
        return f"np.{pick(('sqrt', 'abs', 'negative', 'sin', 'square'))}({self.expression(depth - 1)})"

    def expression(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.15:
            return self.leaf(depth)
        kind = self.random.random()
        if kind < 0.06:
            return f"(-{self.expression(depth - 1)})"
        if kind < 0.10:
            return f"({self.expression(depth - 1)}) ** 2"
        if kind < 0.12:
            return f"(~{self.expression(depth - 1)})"
        if kind < 0.14:
            return f"({self.expression(depth - 1)}).{self.random.choice(('real', 'T.T', 'copy()'))}"
        operator = self.random.choice(BINARY if self.random.random() < 0.3 else BINARY[:6])
        return f"({self.expression(depth - 1)} {operator} {self.expression(depth - 1)})"

    def line(self) -> str:
        pick, name = self.random.choice, self.random.choice("abcde")
        kind, depth = self.random.random(), self.random.randint(1, 4)
        if kind < 0.08:
            return f"t = {self.expression(depth)}\n{name} = t + {self.expression(1)}"
        if kind < 0.14:
            return f"for k in range({self.random.randint(2, 13)}):\n    {name} = {name} * 0.5 + {self.expression(1)}"
        if kind < 0.20:
            return f"{name} = f({self.expression(depth)}, {self.leaf(0)})"
        if kind < 0.25:
            return f"unread = {self.expression(depth)}\n{name} = {self.expression(1)}\nunread = None"
        if kind < 0.30:
            other, number = pick("abcde".replace(name, "")), pick(NUMBERS)
            return f"{name}, {other} = [x * {number} + {self.leaf(0)} for x in ({self.leaf(0)}, {self.expression(1)})]"
        if kind < 0.45:
            return f"{name} = {self.expression(depth)}"
        if kind < 0.60:
            return f"{name} {pick('+-*')}= {self.expression(depth)}"
        if kind < 0.70:
            return f"{name}[...] = {self.expression(depth)}"
        if kind < 0.80:
            # what stands between operators changes what came before
            return f"{name} = {self.expression(depth)} + w.{pick('abcde')} * {self.expression(1)}"
        if kind < 0.86:
            return f"{name} = ({self.expression(depth)} +\n    {self.expression(depth)} *\n    {self.leaf(0)})"
        if kind < 0.92:
            return f"{name} = {self.leaf(0)} * 2 + ({name}.__imul__(2) if {pick('01')} else {self.leaf(0)}) + {self.leaf(0)}"
        return f"{name}[{pick(('1:', ':-1', '::2', '0'))}] = ({self.expression(depth)})[{pick(('1:', ':-1', '::2', '0'))}]"

    def inputs(self, xp: Any) -> dict[str, Any]:
        rng = numpy.random.default_rng(self.seed)
        shape, found = self.shape, {}
        for k, name in enumerate("abcde"):
            x = rng.integers(0, 2 if self.dtype == "bool" else 5, shape) * (1.37 if self.dtype[0] in "fc" else 1)
            if self.odd and self.dtype[0] in "fc":
                x.reshape(-1)[:: 3 + k] = rng.choice([0.0, numpy.inf, numpy.nan, -0.0, 1e300 if self.dtype[-2:] != "16" else 6e4])
            with numpy.errstate(all="ignore"):
                x = x.astype(self.dtype)
            layout = self.random_layout(k)
            y = xp.array(x)
            if layout == "padded":
                large = xp.zeros(tuple(n + 2 for n in shape), self.dtype)
                y = large[tuple(slice(1, -1) for _ in shape)]
                y[...] = xp.array(x)
            elif layout == "F":
                y = xp.array(x, order="F")
            elif layout == "steps":
                large = xp.zeros((*shape[:-1], 2 * shape[-1]), self.dtype)
                y = large[..., ::2]
                y[...] = xp.array(x)
            found[name] = y
        return found

    def random_layout(self, k: int) -> str:
        return random.Random(self.seed * 7 + k).choice(("C", "C", "C", "padded", "padded", "F", "steps"))


class Attributes:
    """The arrays of a program as attributes."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.__dict__ = arrays


class Writing:
    """The same, but who asks for one of them changes it, through NumPy's eyes or lazynp's."""

    def __init__(self, arrays: dict[str, Any], outside: bool) -> None:
        self.arrays = arrays
        self.seen = {name: numpy.asarray(x) if outside and x.ndim else x for name, x in arrays.items()}

    def __getattr__(self, name: str) -> Any:
        x = self.seen[name]
        if getattr(x, "ndim", 0) and x.flags.writeable:
            x[...] = x[::-1].copy() if x.ndim else x
        return self.arrays[name]


@contextmanager
def told() -> Iterator[list[warnings.WarningMessage]]:
    """Everything that is warned of meanwhile, in a list, without a block of filters, in which nothing would wait."""
    before, shows = list(warnings.filters), warnings.showwarning
    found: list[warnings.WarningMessage] = []
    warnings.simplefilter("always")
    warnings.showwarning = lambda *what, **more: found.append(warnings.WarningMessage(*what, **more))
    try:
        yield found
    finally:
        warnings.showwarning = shows
        warnings.resetwarnings()
        warnings.filters.extend(before)  # type: ignore[attr-defined]


@contextmanager
def hears(way: str) -> Iterator[list[warnings.WarningMessage]]:
    """The warnings of a line: in a block, or of a program that has none, which may ignore floating-point errors."""
    if way == BLOCKS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    else:
        with told() as caught, numpy.errstate(**({} if way == TOLD else {"all": "ignore"})):  # type: ignore[arg-type]
            yield caught


def run(program: Program, xp: Any) -> list[Any]:
    """What each line does: its exception, its warnings, and the values of all variables after it; of some programs the last values."""
    names: dict[str, Any] = {"np": xp, "N": numpy.float64, "F": numpy.float32, **program.inputs(xp)}
    exec(compile(FUNCTION, "<chained>", "exec"), names)
    arrays = {name: names[name] for name in "abcde"}
    names["z"] = names["b"].reshape(-1)[:1].copy().reshape(())
    names["o"] = Attributes(arrays)
    names["w"] = Writing(arrays, bool(program.seed % 2))
    names["rows"] = [names["a"], names["b"], names["c"]]
    found: list[Any] = []
    for line in program.lines:
        values: list[Any] = []
        with hears(program.way) as caught:
            try:
                exec(compile(line, "<chained>", "exec"), names)
                error = None
            except Exception as failure:
                error = type(failure).__name__
            if program.way != TO_THE_END or line is program.lines[-1]:
                values = [numpy.asarray(names[name]) for name in "abcde"]
                values = [(x.dtype.str, x.shape, lies(x), canonical(x)) for x in values]
        said = [(w.category.__name__, str(w.message), w.lineno) for w in caught if w.filename == "<chained>"]
        found.append((line, error, sorted(said), values))
    return found


def agree(program: Program, ours: Any, theirs: Any) -> bool:
    """Whether a line did what NumPy did.  Of what is not read, because an exception or the program let it go, nothing is told."""
    if program.way == TOLD and (ours[1] or "unread" in ours[0] or "f(" in ours[0]):
        missed = Counter(ours[2]) - Counter(theirs[2])
        return not missed and ours[:2] == theirs[:2] and ours[3] == theirs[3]
    return bool(ours == theirs)


def lies(x: Any) -> tuple[int, ...]:
    """How elements lie apart: nothing depends on the strides of an axis that has one."""
    return tuple([step for step, n in zip(x.strides, x.shape, strict=True) if n > 1])


def canonical(x: Any) -> bytes:
    """The bits of values, every NaN being one and the same: which of two a sum hands on is the processor's."""
    flat = numpy.array(x)
    if flat.dtype == object:  # whole numbers of Python's, which are too large for others
        return repr(flat.tolist()).encode()
    if flat.dtype.kind in "fc":
        flat[numpy.isnan(flat)] = numpy.nan
    return flat.tobytes()


@contextmanager
def chains_of(sizes: tuple[int, int, int], work: int = NEVER) -> Iterator[None]:
    """Within, tapes begin at other sizes; what has cost ``work`` element operations is compiled."""
    core.chain_sizes(*sizes, work)
    try:
        yield
    finally:
        core.chain_sizes(*SIZES[0])


def differs(seed: int, work: int = NEVER) -> str | None:
    """What differs in a program, if anything does; it runs a second time where it is compiled in its first."""
    program = Program(seed)
    with config.override(tape_limit=65536), chains_of(program.sizes, work):
        config.kernels_above = 65536  # `sin` of as many has NumPy's bits, too
        ours = run(program, lazynp)
        if work != NEVER:
            again = run(program, lazynp)
            if any((x[1], x[3]) != (y[1], y[3]) for x, y in zip(again, ours, strict=True)):
                return f"seed {seed}: the second run differs from the first"
            ours += again
    theirs = run(program, numpy)
    for one, two in zip(ours, theirs * (len(ours) // len(theirs)), strict=True):
        if not agree(program, one, two):
            which = [k for k, (x, y) in enumerate(zip(one[3], two[3], strict=True)) if x != y]
            head = f"seed {seed} {program.sizes} {program.dtype}{program.shape} {program.way}"
            return f"{head}\n{one[0]}\nours   {one[1:3]}\nNumPy's {two[1:3]}\nvalues {which}"
    return None


def main() -> bool:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="as machine code, from the first time on")
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        said = differs(seed, 0 if arguments.compiled else NEVER)
        if said:
            failed += 1
            print(said, flush=True)
            if failed == 5:
                break
    print(f"{arguments.count} programs, {failed} differ; tapes {core.chain_counts()}")
    return failed > 0


if __name__ == "__main__":
    raise SystemExit(main())
