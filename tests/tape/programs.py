"""Random programs as data, run by any engine that has NumPy's names, and compared with NumPy.

In: a seed.  Out: a program, which is lines of Python on numbered names in the order in which threads come to them, and what happens in the
middle: a thread or a handler of signals that runs between two entries, a signal that raises, memory that is not there.  ``v`` are arrays of
the engine, ``w`` NumPy's, ``s`` numbers, ``i`` what is made in the middle.  An engine is a ``Side``.

Promise: all names are compared by bytes (but NaNs), dtype, shape, strides; exceptions by line; warnings by line and block, where those of
blocks must be NumPy's, and those told later must be told once if what warned is still there.

    python -m tests.tape.programs --count 50000 --seed 0
"""

from __future__ import annotations

import _warnings
import argparse
import functools
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType, SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy

from tests.tape.model import BOUNDS, Array, Engine
from tests.tape.notions import Bounds, Op
from tests.tape.rules import Rules

UFUNCS: Final = ("add", "subtract", "multiply", "divide", "maximum", "floor_divide", "sqrt", "negative", "exp", "sin", "isfinite")
TRIES: Final = 1000  # of a step that is interrupted


class Interrupted(Exception):
    """What a handler of signals raises."""


@dataclass(frozen=True)
class Step:
    text: str
    line: int
    thread: int = 0


@dataclass(frozen=True)
class Program:
    seed: int
    steps: tuple[Step, ...]
    bounds: Bounds = BOUNDS
    meanwhile: Mapping[int, Step] = field(default_factory=dict)  # before which entry that runs
    signals: frozenset[int] = frozenset()  # the same
    failures: frozenset[int] = frozenset()  # which piece of memory is not there
    eager: bool = False

    def __str__(self) -> str:
        lines = [f"{step.line:3} thread {step.thread}: {step.text}" for step in self.steps]
        between = [f"before entry {k} thread {step.thread}: {step.text}" for k, step in self.meanwhile.items()]
        facts = f"seed {self.seed}, {self.bounds}, eager {self.eager}, signals {sorted(self.signals)}, failures {sorted(self.failures)}"
        return "\n".join([facts, *lines, *between])


@functools.lru_cache(4096)
def compiled(text: str, line: int) -> CodeType:
    """The code of a step: a turn of a loop has the code of the turn before."""
    return compile("\n" * (line - 1) + text, "<program>", "exec")


class Side:
    """NumPy, by whom others are measured; others override what is theirs."""

    np: Any = numpy

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[str, Any] = {"__name__": "program", "numpy": numpy, "np": self.np, "kernels": self.kernels}
        self.names |= {"enter": self.enter, "leave": self.leave, "end": self.end}
        self.done: list[tuple[Step, str]] = []  # with the exception's name
        self.told: Counter[tuple[int, str, int]] = Counter()  # line, text, block
        self.told_at: list[tuple[int, int, str]] = []  # outside of blocks: step, line, text
        self.open: list[tuple[ExitStack, Any, int]] = []
        self.blocks = 0
        self.again: Counter[int] = Counter()  # steps that were interrupted, by line

    # What engines differ in.

    def kernels(self, value: Any, operand: Any) -> Any:
        """The bits of kernels, if an operation's sizes say that they compute it."""
        value = numpy.asarray(value)
        if max(value.size, operand.size) > self.program.bounds.large:
            Op().tag(value)
        return value[()]

    def switch(self, thread: int) -> None:
        pass

    def end(self, thread: int) -> None:
        pass

    def value(self, x: Any) -> Any:
        return x

    def close(self) -> None:
        pass

    # What they have in common.

    def enter(self, kind: str) -> None:
        block, log = ExitStack(), None
        if kind in ("quiet", "raise"):
            state: Any = "ignore" if kind == "quiet" else "raise"
            block.enter_context(numpy.errstate(divide=state, over=state, invalid=state))
            number = self.open[-1][2] if self.open else 0
        else:
            self.blocks += 1
            number = self.blocks
            log = block.enter_context(warnings.catch_warnings(record=kind == "record"))
            warnings.simplefilter("always" if kind == "record" else kind)  # type: ignore[arg-type]
        self.open.append((block, log, number))

    def leave(self) -> None:
        block, log, number = self.open.pop()
        self.told.update((entry.lineno, str(entry.message), number) for entry in log or ())
        block.close()

    def heard(self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        assert category is RuntimeWarning and filename == "<program>", (message, filename)
        number = self.open[-1][2] if self.open else 0
        self.told[lineno, str(message), number] += 1
        if not number:
            self.told_at.append((len(self.done), lineno, str(message)))

    def tried(self, action: Callable[[], Any], line: int = 0) -> Any:
        """An action, again until no signal and no lack of memory ends it: it has done nothing then."""
        for _ in range(TRIES):
            try:
                return action()
            except (Interrupted, MemoryError):
                self.again[line] += 1
        raise AssertionError("an action never ends")

    def execute(self, step: Step) -> None:
        def action() -> None:
            self.switch(step.thread)
            exec(compiled(step.text, step.line), self.names)

        error = ""
        try:
            self.tried(action, step.line)
        except (AssertionError, RecursionError):
            raise
        except Exception as raised:
            error = type(raised).__name__
        self.done.append((step, error))

    def run(self, steps: tuple[Step, ...]) -> dict[str, Any]:
        """Run a program; its values at the end."""
        with own_filters(self.heard):
            try:
                for step in steps:
                    self.execute(step)
            finally:
                while self.open:
                    self.leave()
            names = sorted(name for name in self.names if re.fullmatch(r"[vwsi]\d+", name))
            values = {name: self.tried(partial(self.value, self.names[name])) for name in names}
            self.close()
        return values


@contextmanager
def own_filters(heard: Any, action: Any = "always") -> Iterator[None]:
    """The process's own list of filters with one entry, and what is told under it."""
    assert warnings.filters is _warnings.filters, "within a block of filters"
    before, shown = list(warnings.filters), warnings.showwarning
    warnings.resetwarnings()
    warnings.simplefilter(action)
    warnings.showwarning = heard
    try:
        yield
    finally:
        warnings.showwarning = shown
        warnings.resetwarnings()
        warnings.filters.extend(before)


def namespace(engine: Engine) -> SimpleNamespace:
    """NumPy's names for an engine."""
    own = {"array": engine.array, "asarray": engine.asarray, "broadcast_to": engine.broadcast_to}
    return SimpleNamespace(**own, **{name: getattr(numpy, name) for name in UFUNCS})


class Model(Side):
    def __init__(self, program: Program, rules: Rules | None = None) -> None:
        self.engine = Engine(program.bounds, rules, program.eager)
        self.engine.poll, self.engine.asked = self.poll, self.asked
        self.np = namespace(self.engine)
        self.polls = self.pieces = 0
        super().__init__(program)

    def kernels(self, value: Any, operand: Any) -> Any:
        return value

    def switch(self, thread: int) -> None:
        self.engine.thread = thread

    def end(self, thread: int) -> None:
        self.engine.end_thread(thread)

    def value(self, x: Any) -> Any:
        self.engine.poll = None
        if not isinstance(x, Array):
            return x
        value = numpy.array(self.engine.ask(x.part))
        assert not x.pending and value.shape == x.shape and value.dtype == x.dtype
        return Value(value, x.strides)

    def close(self) -> None:
        self.engine.close()
        assert not self.engine.queue, "what waits to be told is never told"

    def poll(self) -> None:
        self.polls += 1
        step = self.program.meanwhile.get(self.polls)
        if step is not None:
            before = self.engine.thread
            self.execute(step)
            self.engine.thread = before
        if self.polls in self.program.signals:
            raise Interrupted

    def asked(self, nbytes: int) -> None:
        self.pieces += 1
        if self.pieces in self.program.failures:
            raise MemoryError


# Comparing --------------------------------------------------------------------------------------------------------------------


class Value(NamedTuple):
    """An array's elements, and how they lay."""

    array: numpy.ndarray
    strides: tuple[int, ...]


def facts(x: Any) -> tuple[Any, ...]:
    """What must be NumPy's: all bits, but that NaNs are one.  Which of two NaNs a loop gives depends on how it was split."""
    if isinstance(x, int | float):
        return type(x), repr(x)
    array, strides = x if isinstance(x, Value) else (x, x.strides)
    if array.dtype.kind == "f":
        array = numpy.where(numpy.isnan(array), array.dtype.type(numpy.nan), array)
    return array.dtype, array.shape, strides, array.tobytes()


def difference(program: Program, rules: Rules | None = None, side: Callable[..., Model] = Model) -> str | None:
    """What a program shows that it does not under NumPy, in words."""
    engine = side(program, rules)
    values = engine.run(program.steps)
    oracle = Side(program)
    expected = oracle.run(tuple([step for step, _ in engine.done]))  # what ran in the middle of a step ran before it
    for (step, error), (_, ours) in zip(oracle.done, engine.done, strict=True):
        if error != ours:
            return f"line {step.line}: {error or 'nothing'} was to be raised, not {ours or 'nothing'}"
    if list(values) != list(expected):
        return f"names: {list(expected)}, not {list(values)}"
    for name, x in expected.items():
        if facts(x) != facts(values[name]):
            return f"{name}: {facts(x)}, not {facts(values[name])}"
    return wrongly_told(program, oracle, engine)


def wrongly_told(program: Program, oracle: Side, engine: Side) -> str | None:
    """What was told too often, or never, or in another block."""
    bound: dict[str, int] = {}  # since which step a name has its value
    for k, (step, error) in enumerate(oracle.done):
        if not error and (match := re.match(r"(?:del )?(\w+)(?: = |$)", step.text)):
            bound[match[1]] = k
    there: Counter[tuple[int, str, int]] = Counter()  # warnings of what is still there
    for k, line, text in oracle.told_at:
        match = re.match(r"(\w+)", oracle.done[k][0].text)
        if match and match[1] in oracle.names and bound.get(match[1], -1) <= k and match[1] != "np":
            there[line, text, 0] += 1
    for key in oracle.told | engine.told:
        most = oracle.told[key] + (engine.again[key[0]] if key[1].endswith(" in cast") else 0)  # told of numbers before it waited
        least = oracle.told[key] if key[2] or program.eager else there[key]
        if not least <= engine.told[key] <= most:
            return f"told {key}: {engine.told[key]} times, not {least} to {most}"
    return None


def check(seed: int) -> str | None:
    program = write(seed)
    try:
        found = difference(program)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return found and f"{found}\n{shrunk(program)}"


def shrunk(program: Program) -> Program:
    """A program that differs, without the steps that it does not need for that."""

    def differs(candidate: Program) -> bool:
        try:
            return difference(candidate) is not None
        except Exception:
            return True

    for k in reversed(range(len(program.steps))):
        candidate = replace(program, steps=program.steps[:k] + program.steps[k + 1 :])
        if differs(candidate):
            program = candidate
    nothing: frozenset[int] = frozenset()
    for candidate in (replace(program, signals=nothing), replace(program, failures=nothing), replace(program, meanwhile={})):
        if differs(candidate):
            program = candidate
    return program


# Writing ----------------------------------------------------------------------------------------------------------------------

INDICES: Final = ("1:", ":-1", "::-1", "::2", "::-2", "1::3", "-2:0:-1", "1:-1", "2:5", ":3", "...", "0:1", "::7", "4:1:-1")
IN_PLANES: Final = (*INDICES, ":, ::-1", ":, 1", "1", ":, 1:2", "::2, ::2", "::-1, 1:", "1:2, :", "..., ::-1", "-1, ::2")
SCALES: Final = ("", "", "", " * 0.5", " * 1e200", " * -1e155", " / 7.0")
BLOCKS: Final = ("always", "ignore", "error", "record", "default", "quiet", "raise")


class Writer:
    """Lines that NumPy has already run, so that names and shapes are known."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: dict[str, Any] = {"np": numpy, "numpy": numpy, "kernels": lambda value, operand: value}
        self.names |= {name: lambda *args: None for name in ("enter", "leave", "end")}
        n, m = self.random.choice([(5, 4), (7, 3), (6, 9), (4, 12), (3, 15), (9, 6)])
        self.shapes: list[tuple[int, ...]] = self.random.choice([[(n * m,)], [(n, m)], [(n, m), (m,)], [(n, m), (n, 1), (n * m,)]])
        self.several = self.random.random() < 0.4  # operations in a statement, which nothing may interrupt then
        self.blocks = 0

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def name(self, kind: str = "v") -> str:
        return self.random.choice([name for name in self.names if name[0] == kind and name[1:].isdigit()] or [f"{kind}0"])

    def new(self, kind: str = "v") -> str:
        return f"{kind}{self.random.randrange(7)}"

    def numpys(self) -> str:
        shape = self.random.choice(self.shapes)
        low, step = self.random.randrange(1, 5), self.random.randrange(3, 9)
        kind = self.random.choice(["f8", "f8", "f8", "f4", "i8", "?"])
        size = f"numpy.arange({numpy.prod(shape)})"
        scale = self.random.choice(SCALES) if kind == "f8" else ""
        return f"({size} % {step} - {low}).astype('{kind}').reshape({shape}){scale}"

    def part(self, name: str | None = None) -> str:
        """An array or a view of one."""
        name = name or self.name()
        x = self.names.get(name)
        if x is None or not getattr(x, "ndim", 0) or self.chance(0.4):
            return name
        if x.ndim > 1 and self.chance(0.15):
            return f"{name}.T"
        if x.size < 30 and x.ndim < 3 and self.chance(0.1):
            return f"np.broadcast_to({name}, {(self.random.randrange(1, 4), *x.shape)})"
        index = self.random.choice(INDICES if x.ndim == 1 else IN_PLANES)
        if index == "1" and not self.several:
            index = "1, ..."  # an array for certain: a number is read before the rest of the statement
        return f"{name}[{index}]"

    def number(self) -> str:
        return self.random.choice(["0", "2", "-1", "0.0", "-0.0", "0.5", "1e300", self.name("s"), self.name("s")])

    def element(self, name: str) -> str:
        x = self.names.get(name)
        return ", ".join(str(self.random.randrange(-n, n) if n else 0) for n in getattr(x, "shape", (1,)))

    def statement(self) -> str:
        v, choice = self.name(), self.random.random
        match self.random.choices(range(17), [2, 2, 2, 3, 11, 4, 4, 6, 5, 2, 3, 2, 3, 3, 2, 1.5, 0.5])[0]:
            case 0:
                return f"{self.new()} = np.array({self.numpys()})"
            case 1:
                return f"{self.new()} = np.asarray({self.numpys()})" if choice() < 0.3 else f"{self.new('w')} = {self.numpys()} * 1"
            case 2:
                w = self.name("w")
                return f"{self.new()} = np.asarray({w})" if choice() < 0.7 else f"{self.new()} = np.asarray({w}[1:])"
            case 3:
                w = self.name("w")
                return self.random.choice([f"{w}[...] = 3", f"{w}[1:2] *= 2", f"{w}[::-1] = 0", f"{w} += 1", f"del {w}"])
            case 4:
                x = self.part(v)
                y = self.part() if choice() < 0.75 else self.number()
                x, y = (x, y) if choice() < 0.8 else (y, x)
                op = self.random.choice(["+", "-", "*", "/", "*", "-", "maximum", "floor_divide"])
                return f"{self.new()} = np.{op}({x}, {y})" if len(op) > 1 else f"{self.new()} = {x} {op} {y}"
            case 5:
                x, f = self.part(v), self.random.choice(["sqrt", "negative", "exp", "sin", "exp", "sin", "isfinite"])
                return f"{self.new()} = kernels(np.{f}({x}), {x})" if f in ("exp", "sin") else f"{self.new()} = np.{f}({x})"
            case 6:
                return f"{self.new()} = {self.part(v)}"
            case 7:
                if self.several and choice() < 0.4:
                    v = self.part(v)
                other = self.part() if choice() < 0.6 else self.number()
                return f"{v} {self.random.choice('+-*/')}= {other}"
            case 8:
                target = self.part(v)
                return f"{target if '[' in target else v + '[...]'} = {self.part(v if choice() < 0.4 else None)}"
            case 9:
                target = self.part(v)
                return f"{target if '[' in target else v + '[...]'} = {self.number()}"
            case 10:
                text = f"{v}[{self.element(v)}]"
                return f"{text} = {self.number()}" if choice() < 0.5 else f"{self.new('s')} = {text}"
            case 11:
                x = self.part(v)
                text = f"kernels(np.add.reduce({x}, axis=None), {x})"
                return f"{self.new('s')} = {text if choice() < 0.6 else f'np.maximum.reduce({x}, axis=None)'}"
            case 12:
                x, axis = self.part(v), self.random.choice(["0", "-1", "0, keepdims=True"])
                return f"{self.new()} = kernels(np.add.reduce({x}, axis={axis}), {x})"
            case 13:
                x, f = self.part(v), self.random.choice(["add", "multiply", "divide"])
                if choice() < 0.2:
                    return f"np.maximum.reduce({x}, axis=0, out={self.part()})"
                return f"np.{f}({x}, {self.part()}, out={self.part()})"
            case 14:
                return f"{self.new()} = {v}.astype('{self.random.choice(['f4', 'i8', 'f8', '?'])}')"
            case 15:
                return f"{self.new('w')} = numpy.asarray({v})" if choice() < 0.4 else f"del {v}"
            case _:
                return "end(1)"

    def runs(self, text: str) -> bool:
        before = dict(self.names)
        try:
            with numpy.errstate(all="ignore"):
                exec(text, self.names)
        except Exception:
            return False
        sizes = [numpy.size(x) for name, x in self.names.items() if name[0] == "v" and name[1:].isdigit()]
        if max(sizes, default=0) > 200 or not sizes:
            self.names = before
            return False
        return True

    def line(self) -> str:
        """A statement that NumPy runs, or now and then one that it refuses."""
        if self.chance(0.07) and self.blocks < 3:
            self.blocks += 1
            return f"enter('{self.random.choice(BLOCKS)}')"
        if self.blocks and self.chance(0.25):
            self.blocks -= 1
            return "leave()"
        for _ in range(20):
            text = self.statement()
            if self.runs(text) or self.chance(0.02):
                return text
        return "v0 = np.array(numpy.arange(5.0))"

    def in_the_middle(self) -> str:
        """A statement that binds no name that the one in whose middle it runs may have read."""
        v, number = self.name(), self.random.choice(["2", "-1.5", "0"])
        made, op = f"i{self.random.randrange(100)}", self.random.choice("+*")
        f = self.random.choice(["add", "multiply"])
        return self.random.choice(
            [f"{made} = {v} {op} {self.name()}", f"np.{f}({v}, {number}, out={v})", f"{v}[...] = {number}",
             f"{v}[{self.element(v)}] = {number}", f"{v}[1:] = {v}[:-1]", f"{made} = kernels(np.add.reduce({v}, axis=0), {v})",
             f"{made} = np.maximum.reduce({v}, axis=None)"]
        )  # fmt: skip


def write(seed: int) -> Program:
    writer = Writer(seed)
    chosen = writer.random
    texts: list[tuple[str, int]] = []
    foreign = [f"w0 = {writer.numpys()} * 1", "v3 = np.asarray(w0)"] if writer.chance(0.4) else []
    for text in [f"v{k} = np.array({writer.numpys()})" for k in range(3)] + foreign:
        writer.runs(text)
        texts.append((text, len(texts) + 1))
    line = len(texts)
    while len(texts) < chosen.randrange(8, 45):
        loop = writer.chance(0.15)
        depth = writer.blocks
        body = [writer.line() for _ in range(chosen.randrange(2, 7) if loop else 1)]
        if loop:
            body += ["leave()"] * (writer.blocks - depth)
            writer.blocks = min(writer.blocks, depth)
        for turn in range(chosen.randrange(2, 6) if loop and not any(text == "leave()" for text in body) else 1):
            texts += [(text, line + k + 1) for k, text in enumerate(body) if not turn or writer.runs(text) or writer.chance(0.1)]
        line += len(body)
    threads = chosen.choice([1, 2, 2, 3])
    thread, steps = 0, []
    for text, at in texts:
        thread = chosen.randrange(threads) if writer.chance(0.3) else thread
        steps.append(Step(text, at, thread))
    bounds = Bounds(
        large=40, entries=chosen.choice([3, 8, 126]), leaves=chosen.choice([6, 384]), turn=chosen.choice([2, 6, 16]),
        held=chosen.choice([0, 500, 3000, 1 << 20]), work=chosen.choice([100, 1000, 10**6]), block=chosen.choice([1, 4, 1000]),
    )  # fmt: skip
    meanwhile: dict[int, Step] = {}
    signals = failures = frozenset[int]()
    if not writer.several:
        for k in range(chosen.choice([0, 2, 5])):
            meanwhile[chosen.randrange(1, 40)] = Step(writer.in_the_middle(), 1000 + k, chosen.randrange(3))
        signals = frozenset(chosen.randrange(1, 40) for _ in range(chosen.choice([0, 0, 3])))
        failures = frozenset(chosen.randrange(1, 60) for _ in range(chosen.choice([0, 0, 3, 12])))
    return Program(seed, tuple(steps), bounds, meanwhile, signals, failures, eager=writer.chance(0.1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    wrong = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        if found := check(seed):
            wrong += 1
            print(found, end="\n\n", flush=True)
        if wrong > 5:
            break
    print(f"{seed + 1 - asked.seed} programs, {wrong} wrong")


if __name__ == "__main__":
    main()
