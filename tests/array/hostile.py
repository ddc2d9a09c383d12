"""``python -m tests.array.hostile``: random programs whose own code runs in the middle of operations, and changes what these work with.

In: how many programs, and the seed of the first. Out: nothing, where all of them came to their end; each has some arrays and lists, and
goes through operations with keys, numbers, arrays and dtypes that are objects of the program's. What NumPy asks of these
(``__index__``, ``__array__``, ``__float__``, ``dtype``), finalizers, callbacks of collections of garbage and the handler of a timer
reshape, resize, write, grow, shrink and let go of these arrays and lists. Promise: a seed makes the same program, but for the timer's
part; exceptions are allowed, crashes are not, and every array can be read afterwards, or a ``ValueError`` says why not. A list that
holds what runs code is nobody else's, and collections and timers leave lists alone: NumPy itself does not survive that one shrinks
while it makes an array of it. A third of the programs runs in a block of filters of warnings, where every operation is computed at its
call; in the others operations wait on tapes, whose values they keep and use later.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, Final

import numpy

import lazynp as np
from lazynp.array import core
from lazynp.values import config
from tests.array import chained

SIZES: Final = (0, 1, 6, 24, 24, 60, 240, 2520)
LARGE: Final = 786_432 + 48  # elements: one more than fit in hand
SHAPES: Final = ((-1,), (1, -1), (-1, 1), (2, -1), (-1, 3), (2, 3, -1))
DTYPES: Final = ("f8", "f8", "f4", "i8", "i4", "u1", "c16", "?")
TIMER: Final = 0.0004  # seconds
STEPS: Final = 14
DEEDS: Final = 12  # while one operation is in work: a collection takes longer than the timer waits


class Hostile:
    """The arrays and lists of a program, and what becomes of them when its code runs."""

    def __init__(self, seed: int, large: bool) -> None:
        self.random = random.Random(seed)
        self.size = LARGE if large else self.random.choice(SIZES)
        self.arrays = [self.array() for _ in range(3)]
        self.lists: list[Any] = [[0, 1, 0], [0.5, 1.5], [self.arrays[0], self.arrays[1]], [[0, 1], [2, 3]]]
        self.kept: list[Any] = [None] * 4
        self.armed = self.inside = False
        self.left = 0

    def array(self) -> Any:
        kind = self.random.random()
        x = np.arange(self.size).astype(self.random.choice(DTYPES))
        if kind < 0.3 and self.size % 6 == 0:
            shape = self.random.choice(SHAPES)
            return x.reshape(shape) if self.size and self.may_be(shape, x) else x
        if kind < 0.4:
            return x[::-1]
        return x[1:-1] if kind < 0.5 else x

    def may_be(self, shape: tuple[int, ...], x: Any) -> bool:
        """Whether an array may have this shape: a column of many elements and a row of many more would fill the memory of the machine."""
        return shape != (-1, 1) or (self.size <= SIZES[-1] and x.size <= SIZES[-1])

    def go_on(self) -> None:
        """Work with what comes of an array, which is as large, and may wait; hold some of what was between."""
        if self.size > SIZES[-1] or config.tape_limit == 0:
            return  # a program may change the shape of what is read in the middle: large results would take all memory when they are read
        k = self.random.randrange(3)
        if self.arrays[k].size > SIZES[-1]:
            return
        steps = recorded(self.arrays[k], self.random.choice([self.arrays[k], 2, 0.5]))
        self.kept[self.random.randrange(4)] = self.random.choice(steps)
        self.arrays[k] = steps[-1]

    def __call__(self, lists: bool = True) -> None:
        """The program's code runs."""
        if self.inside or not self.armed or self.left == 0:
            return
        self.inside = True
        self.left -= 1
        try:
            for _ in range(self.random.randrange(1, 3)):
                self.random.choice(self.to_arrays + self.to_lists if lists else self.to_arrays)(self)
        except (ValueError, TypeError, AttributeError, IndexError):
            pass
        finally:
            self.inside = False

    def reshape(self) -> None:
        x, shape = self.random.choice(self.arrays), self.random.choice(SHAPES)
        if self.may_be(shape, x):
            x.shape = shape

    def without_axes(self) -> None:
        self.random.choice(self.arrays).shape = ()

    def retype(self) -> None:
        x = self.random.choice(self.arrays)
        if x.nbytes <= 8000:  # a column and a row of more bytes would fill the memory of the machine
            x.dtype = self.random.choice(["i8", "u1", "f4"])

    def resize(self) -> None:
        self.random.choice(self.arrays).resize(self.random.choice([0, 1, 5, 2000]), refcheck=False)

    def write(self) -> None:
        self.random.choice(self.arrays)[...] = 1

    def add(self) -> None:
        k = self.random.randrange(3)
        self.arrays[k] += 1

    def let_go(self) -> None:
        self.arrays[self.random.randrange(3)] = self.array()

    def grow(self) -> None:
        self.random.choice(self.lists).extend([1, 0] * self.random.choice([1, 40]))

    def shrink(self) -> None:
        self.random.choice(self.lists).clear()

    def fill(self) -> None:
        self.lists[0][:] = [0, 1, 0]

    def collect(self) -> None:
        gc.collect()

    def compute(self) -> None:
        np.realize()
        float(np.arange(3.0).sum())

    to_arrays: Final = (reshape, reshape, without_axes, retype, resize, write, add, let_go, collect, compute)
    to_lists: Final = (grow, shrink, fill)


class Number:
    """What is asked for its value when it is used."""

    def __init__(self, program: Hostile, value: int) -> None:
        self.program, self.value = program, value

    def __index__(self) -> int:
        self.program()
        return self.value

    def __float__(self) -> float:
        self.program()
        return float(self.value)

    def __int__(self) -> int:
        return self.__index__()


class Array:
    """What is an array when it is asked for it."""

    def __init__(self, program: Hostile) -> None:
        self.program = program

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.program()
        return numpy.array([0, 1, 0], dtype)


class Sequence:
    """What has a length, and elements, when it is asked for them."""

    def __init__(self, program: Hostile) -> None:
        self.program = program

    def __len__(self) -> int:
        self.program()
        return 3

    def __getitem__(self, k: int) -> float:
        self.program()
        if k > 2:
            raise IndexError
        return 1.0


class Dying:
    """What runs code when it goes."""

    def __init__(self, program: Hostile) -> None:
        self.program = program
        self.itself = self  # a collection finds it

    def __del__(self) -> None:
        copy_context().run(self.program, False)


def typed(program: Hostile) -> type:
    """A class whose dtype is computed."""

    class Meta(type):
        @property
        def dtype(cls) -> Any:
            program()
            return numpy.dtype("f4")

    return Meta("Typed", (), {})


def operations(program: Hostile) -> list[Callable[[], Any]]:
    """One round of operations, each with other operands."""
    r = program.random
    a, b, c = r.sample(program.arrays, 3)
    places, floats, several, nested = program.lists
    one, two, array, sequence = Number(program, 1), Number(program, 2), Array(program), Sequence(program)
    mask = r.choice([lambda: a > 1, lambda: [True, False, True], lambda: numpy.zeros(3, bool)])
    value: Any = r.choice([1, 2.5, b, numpy.arange(3.0), one, array, sequence, floats])
    key: Any = r.choice(
        [
            0,
            one,
            slice(one, None),
            slice(None, two),
            (one, slice(None)),
            places,
            (places,),
            (slice(None), places),
            (places, one, None),
            array,
            sequence,
            (one, places) + (None,) * 9,
            nested,
            Ellipsis,
            (Ellipsis, one),
            slice(0, 700_000),
            (slice(None), None),
            numpy.array([0, 1]),
        ]
    )

    def rows(x: Any) -> None:
        for k, row in enumerate(x):
            program()
            if k > 4:
                break
            row + 1

    def key_by_mask() -> None:
        a[mask()] = value

    def written() -> None:
        a[key] = value

    def added() -> None:
        a[key] += value

    return [
        lambda: a[key],
        lambda: a[mask()],
        written,
        added,
        key_by_mask,
        lambda: rows(a),
        lambda: rows(a.flat),
        lambda: list(zip(a, range(5), strict=False)),
        lambda: a + value,
        lambda: value * b,
        lambda: a < value,
        lambda: a * 2 + b * 3 - a / 4,
        lambda: recorded(a, b),
        lambda: recorded(a, recorded(b, a)[1]),
        lambda: [recorded(a, c)[0] for _ in range(9)][3:5],
        program.go_on,
        program.go_on,
        lambda: np.sqrt(a) + np.abs(b),
        lambda: a @ b,
        lambda: a**2 + b,
        lambda: np.add(a, b, out=c),
        lambda: np.multiply(a, sequence),
        lambda: np.add.at(a, places, 1),
        lambda: np.multiply.outer(floats, several),
        lambda: np.concatenate(several),
        lambda: np.stack(several),
        lambda: np.array(several),
        lambda: np.array([one, array, 1]),
        lambda: np.asarray(nested, typed(program)),
        lambda: np.where(a > 1, b, floats),
        lambda: np.take(a, places),
        lambda: np.tile(floats, two),
        lambda: np.repeat(a, two),
        lambda: np.kron(floats, places),
        lambda: np.meshgrid(*several),
        lambda: np.ix_(places, places),
        lambda: np.sum(a, axis=one),
        lambda: a.sum(axis=0),
        lambda: np.std(a, axis=0, ddof=one),
        lambda: a.std(),
        lambda: a.mean(),
        lambda: a.max(),
        lambda: a.reshape(one, -1),
        lambda: a.reshape((two, -1)),
        lambda: np.zeros(places),
        lambda: np.full((two, two), one),
        lambda: a.astype(typed(program)),
        lambda: np.searchsorted(a, b),
        lambda: np.isclose(a, b),
        lambda: np.allclose(a, 1.0),
        lambda: np.linalg.inv(np.array(nested) + np.eye(2)),
        lambda: np.nonzero(a),
        lambda: a.tolist(),
        lambda: (a.shape, a.strides, a.T, a.real),
        lambda: a.sort(),
        lambda: np.put(a, places, sequence),
        lambda: np.linspace(one, two, 5),
        lambda: np.interp(floats, places, places),
        lambda: np.broadcast_to(a, (two, *a.shape)),
        lambda: a.copy(),
        lambda: np.copyto(a, value),
        lambda: np.clip(a, one, two),
        lambda: np.random.default_rng(1).shuffle(a),
        lambda: np.split(a, [one, two]),
        lambda: np.block([several, several]),
        lambda: np.einsum("i,i", floats, sequence),
        lambda: Dying(program),
        lambda: a.resize(two, two),
        lambda: memoryview(a),
        lambda: setattr(a, "shape", (one, -1)),
        lambda: np.choose(places, several),
        lambda: np.frompyfunc(lambda x: program() or x, 1, 1)(a.reshape(-1)[:3]),
    ]


def recorded(x: Any, y: Any) -> list[Any]:
    """Several statements, one of whose values nobody reads."""
    first = x * 2
    second = first + y
    third = second - x
    x < y
    second = abs(second)
    return [first, third, third * second]


@contextmanager
def hooked(program: Hostile) -> Iterator[None]:
    """The program's code runs in collections of garbage, which come with every tuple, and when a timer rings.

    In a context of its own: Python 3.11 forgets to hold the value of a context variable where code runs while another value is set.
    """

    def collected(phase: str, info: dict[str, int]) -> None:
        copy_context().run(program, False)

    def rang(number: int, frame: Any) -> None:
        copy_context().run(program, False)

    threshold = gc.get_threshold()
    timed = hasattr(signal, "setitimer")
    before = signal.signal(signal.SIGALRM, rang) if timed else None
    gc.callbacks.append(collected)
    gc.set_threshold(program.random.choice([1, 3, 700]))
    if timed:
        signal.setitimer(signal.ITIMER_REAL, TIMER, TIMER)
    try:
        yield
    finally:
        program.armed = False
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)


def run(seed: int) -> None:
    """Run the program of a seed."""
    program = Hostile(seed, large=seed % 16 == 0)
    way = (chained.BLOCKS, chained.IGNORED, chained.TOLD)[seed // 3 % 3]
    sizes = chained.SIZES[seed % len(chained.SIZES)]
    core.pauses(1 if seed % 2 else 30_000_000)
    with config.override(tape_limit=(786_432, 786_432, 0)[seed % 3]), chained.chains_of(sizes), chained.hears(way), hooked(program):
        for _ in range(STEPS):
            operation = program.random.choice(operations(program))
            program.armed, program.left = True, DEEDS
            with suppress(Exception):
                operation()
            program.armed = False
        del operation
    for x in [*program.arrays, *(x for x in program.kept if type(x) is np.ndarray)]:
        # A write that a timer came into the middle of may not fit any more, nor a view of what was resized.
        # Recorded positions are looked at now.
        with suppress(ValueError, IndexError):
            told = x.shape
            shown = numpy.asarray(x).shape
            assert shown == x.shape, (seed, told, shown, x.shape, type(x._known_base), x._known_view)


def main() -> None:
    faulthandler.enable()
    parser = argparse.ArgumentParser(prog="python -m tests.array.hostile")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.count):
        print("seed", seed, end="\r", flush=True)
        run(seed)
    print("held")


if __name__ == "__main__":
    main()
