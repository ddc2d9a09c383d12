"""Random programs of views, writes, reads and realizes: the same steps on lazynp and on NumPy, compared after every program.

Unlike ``tests/differential`` these programs are about aliasing: many arrays that share memory, written through one another, expressions
captured in between.  A failing program prints its steps as a NumPy script.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy
import pytest

from lazynp.arrays import asarray, ndarray, shares_memory, view_diagonal, view_expand

PROGRAMS = 400
PER_TEST = 50
MOST_ARRAYS = 40


class Program:
    """One program: pairs of arrays (ours, NumPy's) that went through the same steps."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pairs: list[tuple[Any, Any]] = []
        self.script: list[str] = []
        self.create()
        self.create()

    def run(self) -> None:
        for _ in range(self.random.randint(4, 16)):
            self.random.choices(list(STEPS), list(STEPS.values()))[0](self)
        order = list(range(len(self.pairs)))
        self.random.shuffle(order)
        for number in order:
            self.compare(*self.pairs[number])
        for (a, b), (c, d) in zip(self.pairs, self.pairs[1:], strict=False):
            assert shares_memory(a, c) == numpy.shares_memory(b, d)

    # Parts ----------------------------------------------------------------------------------------------------------------
    def pick(self) -> tuple[str, Any, Any]:
        number = self.random.randrange(len(self.pairs))
        return (f"a{number}", *self.pairs[number])

    def keep(self, ours: Any, theirs: Any) -> None:
        if isinstance(theirs, numpy.ndarray):
            assert type(ours) is ndarray
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            if len(self.pairs) < MOST_ARRAYS:
                self.script[-1] = f"a{len(self.pairs)} = {self.script[-1]}"
                self.pairs.append((ours, theirs))
        else:
            assert type(ours) is not ndarray
            assert ours.dtype == theirs.dtype
            numpy.testing.assert_array_equal(ours, theirs)

    def both(self, text: str, act: Callable[[Any], Any], ours: Any, theirs: Any) -> tuple[Any, Any] | None:
        """The results of one step, or None where both refuse it alike."""
        self.script.append(text)
        expected = _outcome(act, theirs)
        got = _outcome(act, ours)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            assert type(got) is type(expected), f"numpy: {expected!r}, lazynp: {got!r}"
            return None
        return got, expected

    def compare(self, ours: Any, theirs: Any) -> None:
        assert (ours.shape, ours.dtype, ours.strides) == (theirs.shape, theirs.dtype, theirs.strides)
        assert ours.flags.writeable == theirs.flags.writeable
        numpy.testing.assert_array_equal(ours, theirs)

    def key(self, shape: tuple[int, ...], advanced: bool) -> Any:
        rng = self.random
        count = rng.randint(0, len(shape))
        at = rng.randint(0, count) if rng.random() < 0.2 else None  # where an ellipsis goes
        axes = list(range(count)) if at is None else [*range(at), *range(len(shape) - count + at, len(shape))]
        parts: list[Any] = []
        for place, axis in enumerate(axes):
            n = shape[axis]
            if place == at:
                parts.append(Ellipsis)
            if rng.random() < 0.1:
                parts.append(None)
            chance = rng.random()
            if chance < 0.3 and n:
                parts.append(rng.randint(-n, n - 1))
            elif advanced and chance < 0.5 and n:
                size = rng.choice([0, 1, 2, 2, 2])
                indices = numpy.array([rng.randint(-n, n - 1) for _ in range(size)], rng.choice(["i8", "i4"]))
                parts.append(rng.choice([indices, indices.tolist(), asarray(indices)]))
            elif advanced and chance < 0.65:
                mask = numpy.array([rng.random() < 0.5 for _ in range(n)], bool)
                parts.append(rng.choice([mask, asarray(mask)]))
            else:
                start, stop = [rng.choice([None, None, rng.randint(-n - 1, n + 1)]) for _ in range(2)]
                parts.append(slice(start, stop, rng.choice([None, 1, 1, 2, -1, -1, 3, -2])))
        if at == count:
            parts.append(Ellipsis)
        return parts[0] if len(parts) == 1 and rng.random() < 0.7 else tuple(parts)

    # Steps ----------------------------------------------------------------------------------------------------------------
    def create(self) -> None:
        rng = self.random
        shape = tuple([rng.choice([0, 1, 2, 3, 3, 4, 5]) for _ in range(rng.randint(0, 3))])
        dtype, order = rng.choice(["f8", "f8", "i8", "i4", "c16", "?", "f4"]), rng.choice("CCF")
        theirs = (numpy.arange(prod(shape)) + rng.randint(0, 9)).reshape(shape).astype(dtype).copy(order)
        if theirs.flags.c_contiguous:
            theirs = theirs.copy("C")  # only axes of length one can tell the difference, and ours are in C order
        self.script.append(f"np.array({theirs.tolist()!r}, {dtype!r}, order={order!r}).reshape({shape})")
        self.keep(asarray(theirs), theirs)

    def read(self) -> None:
        name, ours, theirs = self.pick()
        key = self.key(theirs.shape, self.random.random() < 0.4)
        found = self.both(f"{name}[{key!r}]", lambda x: x[_for(x, key)], ours, theirs)
        if found:
            self.keep(*found)

    def write(self) -> None:
        rng = self.random
        name, ours, theirs = self.pick()
        key = self.key(theirs.shape, rng.random() < 0.3)
        kind = rng.random()
        given: Any
        if kind < 0.4:
            given = value = rng.choice([1, 0, 2.5, 7, True])
        elif kind < 0.7:
            region = _outcome(lambda x: x[_for(x, key)].shape, theirs)
            shape = () if isinstance(region, Exception) else region[rng.randint(0, len(region)) :]
            shape = tuple([n if rng.random() < 0.8 else 1 for n in shape])
            value = (numpy.arange(prod(shape)) * 3 + 100).reshape(shape).astype(rng.choice(["i8", "f8"]))
            given = rng.choice([value, asarray(value), asarray(value) + 0])
        else:
            _, given, value = self.pick()
            if value.dtype.kind == "c":
                given, value = given.real, value.real
            if numpy.shares_memory(value, theirs) and not isinstance(key, slice):
                value = value.copy()  # NumPy's advanced writes read what they wrote

        def put(x: Any) -> None:
            x[_for(x, key)] = value if isinstance(x, numpy.ndarray) and type(x) is numpy.ndarray else given

        self.both(f"{name}[{key!r}] = {value!r}", put, ours, theirs)

    def reshape(self) -> None:
        name, ours, theirs = self.pick()
        n = theirs.size
        factor = self.random.choice([k for k in range(1, n + 1) if n % k == 0] or [0])
        shape = self.random.choice([(factor, -1), (-1, factor), (-1,), (1, n, 1)])
        found = self.both(f"{name}.reshape({shape})", lambda x: x.reshape(shape), ours, theirs)
        if found:
            self.keep(*found)

    def transpose(self) -> None:
        name, ours, theirs = self.pick()
        axes = list(range(theirs.ndim))
        self.random.shuffle(axes)
        found = self.both(f"{name}.transpose({axes})", lambda x: x.transpose(axes), ours, theirs)
        assert found
        self.keep(*found)

    def part(self) -> None:
        name, ours, theirs = self.pick()
        if theirs.dtype.kind == "c":
            part = self.random.choice(["real", "imag"])
            found = self.both(f"{name}.{part}", lambda x: getattr(x, part), ours, theirs)
            assert found
            self.keep(*found)

    def reinterpret(self) -> None:
        name, ours, theirs = self.pick()
        if theirs.dtype.kind == "b":
            return  # written as integers, its bytes would be booleans other than 0 and 1
        dtype = self.random.choice(["f8", "i8", "u1", "i4", "c16", "f4"])
        found = self.both(f"{name}.view({dtype!r})", lambda x: x.view(dtype), ours, theirs)
        if found:
            self.keep(*found)

    def diagonal(self) -> None:
        name, ours, theirs = self.pick()
        if theirs.ndim >= 2:
            offset, last = self.random.randint(-3, 3), theirs.ndim - 1
            self.script.append(f"{name}.diagonal({offset}, 0, {last})")
            self.keep(view_diagonal(ours, offset, 0, last), theirs.diagonal(offset, 0, last))

    def broadcast(self) -> None:
        name, ours, theirs = self.pick()
        shape = (2, *[3 if n == 1 and self.random.random() < 0.5 else n for n in theirs.shape])
        self.script.append(f"np.broadcast_to({name}, {shape})")
        self.keep(view_expand(ours, shape), numpy.broadcast_to(theirs, shape))

    def capture(self) -> None:
        name, ours, theirs = self.pick()
        if theirs.dtype.kind != "b" and theirs.ndim:
            one = theirs.dtype.type(1)
            found = self.both(f"{name} + 1", lambda x: x + one, ours, theirs)
            assert found
            self.keep(*found)

    def add_in_place(self) -> None:
        name, ours, theirs = self.pick()
        if theirs.dtype.kind != "b":
            one = theirs.dtype.type(1)
            self.both(f"{name} += 1", lambda x: x.__iadd__(one) is None, ours, theirs)

    def copy(self) -> None:
        name, ours, theirs = self.pick()
        order = self.random.choice("CFKA")
        found = self.both(f"{name}.copy({order!r})", lambda x: x.copy(order), ours, theirs)
        assert found
        self.keep(*found)

    def flat(self) -> None:
        name, ours, theirs = self.pick()

        def put(x: Any) -> None:
            x.flat[1::2] = 4

        self.both(f"{name}.flat[1::2] = 4", put, ours, theirs)

    def realize(self) -> None:
        name, ours, _ = self.pick()
        self.script.append(f"{name}.realize()")
        ours.realize()

    def check(self) -> None:
        name, ours, theirs = self.pick()
        self.script.append(f"np.asarray({name})")
        self.compare(ours, theirs)


STEPS: dict[Callable[[Program], None], float] = {
    Program.create: 1,
    Program.read: 6,
    Program.write: 6,
    Program.reshape: 2,
    Program.transpose: 1.5,
    Program.part: 1,
    Program.reinterpret: 0.7,
    Program.diagonal: 0.5,
    Program.broadcast: 0.4,
    Program.capture: 1,
    Program.add_in_place: 1,
    Program.copy: 0.5,
    Program.flat: 0.5,
    Program.realize: 0.6,
    Program.check: 0.6,
}


def _outcome(act: Callable[[Any], Any], x: Any) -> Any:
    try:
        return act(x)
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        return error


def _for(x: Any, key: Any) -> Any:
    """The key without arrays of ours in it, for NumPy."""
    if type(x) is ndarray:
        return key
    if type(key) is tuple:
        return tuple([_for(x, part) for part in key])
    return numpy.asarray(key) if type(key) is ndarray else key


@pytest.mark.parametrize("first", range(0, PROGRAMS, PER_TEST))
def test_same_program_same_arrays(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        program = Program(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program.run()
        except Exception as error:
            error.add_note(f"seed {seed}:\n" + "\n".join(program.script))
            raise
