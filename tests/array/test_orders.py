"""Operands that lie in other orders than C's: transposed, backwards, with steps between their elements.

In: random layouts, dtypes and programs, and tables.  Out: failures.  Promise: NumPy is the oracle, of how results lie as well; what lies
otherwise waits and goes through one pass like all else, which is counted.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core
from lazynp.values import config
from tests.array import chained
from tests.array.test_chains import Counts, counted, forced

DTYPES: Final = ("f8", "f8", "f8", "f8", "f4", "i8", "i4", "c16", "?", "f2")
Operation = Callable[[Any, Any, Any, Any], Any]
OPERATIONS: Final[tuple[Operation, ...]] = (
    lambda np, a, b, c: a + b, lambda np, a, b, c: a * b, lambda np, a, b, c: a * 1 - b, lambda np, a, b, c: np.maximum(a, b),
    lambda np, a, b, c: np.negative(a * 1), lambda np, a, b, c: np.abs(a), lambda np, a, b, c: np.square(a),
    lambda np, a, b, c: a * 2.5 + 1, lambda np, a, b, c: 2 - a * 1, lambda np, a, b, c: a == b,
    lambda np, a, b, c: np.where(a == b, b, c), lambda np, a, b, c: np.sqrt(np.abs(a)), lambda np, a, b, c: a.real.astype("f8"),
    lambda np, a, b, c: a.copy(), lambda np, a, b, c: a.sum(axis=0), lambda np, a, b, c: a.T, lambda np, a, b, c: a[::-1],
    lambda np, a, b, c: a[..., ::2], lambda np, a, b, c: np.moveaxis(a, 0, -1), lambda np, a, b, c: a.mean(axis=-1),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _usual_limit() -> Iterator[None]:
    core.settle()
    with config.override(tape_limit=65536), chained.chains_of(chained.SIZES[0]):
        yield


def leaf(choice: random.Random, rng: numpy.random.Generator, shape: list[int]) -> tuple[Any, Any]:
    """An array that lies in some way, ours and NumPy's."""
    own = [length if choice.random() < 0.85 else 1 for length in shape][choice.randrange(len(shape)) if choice.random() < 0.15 else 0 :]
    order = list(range(len(own)))
    if choice.random() < 0.7:
        choice.shuffle(order)
    steps = [choice.choice([1, 1, 1, 2, -1, -2]) for _ in own]
    values = rng.standard_normal([own[axis] * abs(step) for axis, step in zip(order, steps, strict=True)]) * 4
    dtype = choice.choice(DTYPES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = values.astype(dtype)
    back = [int(axis) for axis in numpy.argsort(order)]
    keys = tuple(slice(None, None, step) for step in steps)
    return lazynp.array(theirs)[keys].transpose(*back), theirs[keys].transpose(*back)


def layout(x: Any) -> tuple[Any, ...]:
    """What there is of an array; the strides of axes of one element lead nowhere."""
    x = numpy.asarray(x)
    return x.dtype, x.shape, [step for step, length in zip(x.strides, x.shape, strict=True) if length > 1] if x.size else [], x.tobytes()


def differs(seed: int) -> str | None:
    """Run a random program; how a value differs from NumPy's, if one does."""
    choice, rng = random.Random(seed), numpy.random.default_rng(seed)
    axes = choice.choice([1, 2, 2, 2, 3, 3, 4])
    shape = [choice.choice([1, 7, 40, 130] if axes < 3 and seed % 3 == 0 else [1, 2, 3, 5, 8]) for _ in range(axes)]
    values = [leaf(choice, rng, shape) for _ in range(choice.choice([2, 3, 4]))]
    program = []
    with numpy.errstate(all="ignore"):
        for _ in range(choice.randrange(2, 14)):
            which = choice.randrange(len(OPERATIONS))
            operands = [choice.randrange(len(values)) for _ in range(3)]
            program.append((which, operands))
            told = []
            results = []
            for xp, own in ((lazynp, 0), (numpy, 1)):
                try:
                    results.append(OPERATIONS[which](xp, *(values[k][own] for k in operands)))
                except Exception as error:
                    told.append(type(error))
            if len(results) == 1 or len(set(told)) > 1:
                return f"{seed}: {program}: {told}"
            if results and isinstance(results[1], numpy.ndarray):
                values.append((results[0], results[1]))
    for k, (ours, theirs) in enumerate(values):
        if layout(ours) != layout(theirs):
            return f"{seed}: {program}: value {k}: {layout(ours)[:3]} for {layout(theirs)[:3]}"
    return None


@pytest.mark.parametrize("work", [chained.NEVER, 0])
@pytest.mark.parametrize("first", range(0, 1200, 100))
def test_random_layouts(first: int, work: int) -> None:
    """As NumPy's loops and as machine code."""
    with chained.chains_of(chained.SIZES[0], work):
        for seed in range(first, first + (100 if work else 5)):
            assert differs(seed) is None


PASSES: Final[dict[str, Callable[..., Any]]] = {
    "transposed": lambda np, x, y, v: x.T * 2 + x.T,
    "transposed and not": lambda np, x, y, v: (x.T * y + 1) * 2,
    "a column": lambda np, x, y, v: (x.T - v) / 2 + x.T,
    "backwards": lambda np, x, y, v: x[::-1] * 2 + x,
    "backwards along rows": lambda np, x, y, v: x[:, ::-1] * 2 + x[::-1],
    "every other row": lambda np, x, y, v: x.T[::2] * 2 + x.T[1::2],
    "an order, and another": lambda np, x, y, v: x.T * 2 + y,
    "chosen": lambda np, x, y, v: np.where(y < x.T, x.T, y) + 1,
    "of another type": lambda np, x, y, v: x.T.astype("f4").T * y.T + x,
    "three axes": lambda np, x, y, v: x.reshape(10, 5, 80).transpose(2, 0, 1) * 2 + 1,
    "a function": lambda np, x, y, v: np.sqrt(np.abs(x.T)) + x.T,
}


@pytest.mark.parametrize("name", PASSES)
def test_what_lies_otherwise_goes_through_one_pass(name: str) -> None:
    program = PASSES[name]
    rng = numpy.random.default_rng(1)
    theirs = [rng.standard_normal((50, 80)), rng.standard_normal((80, 50)), rng.standard_normal(50)]
    x, y, v = (lazynp.array(each) for each in theirs)
    result, at_the_call = counted(program, lazynp, x, y, v)
    _, when_asked = counted(forced, result)
    expected: tuple[Counts, Counts] = ((0, 0, 0), (2, 0, 0) if name == "of another type" else (1, 0, 0))
    assert (at_the_call, when_asked) == expected
    assert layout(result) == layout(program(numpy, *theirs))


def test_an_operand_of_another_order_that_is_written_since() -> None:
    """Its steps are computed with those that read them, or before the write."""

    def program(np: Any, x: Any, y: Any) -> Any:
        found = []
        for k in range(4):
            t = np.multiply(x.T, k + 2)
            w = np.add(t, y)
            del t
            if k % 2:
                x[k] = y[:, 0] * 3
            if k > 1:
                y[:, 1:4] += np.subtract(x.T, 1)[:, 1:4]
            found += [np.multiply(w, x.T), np.add(np.exp(-abs(x.T)), w).sum(axis=1), w]
            del w
        return [*found, x, y]

    theirs = [numpy.random.default_rng(5).standard_normal(shape) for shape in ((50, 80), (80, 50))]
    ours = [lazynp.realize(lazynp.array(each) * 1) for each in theirs]
    wanted = program(numpy, *theirs)
    for k, (one, other) in enumerate(zip(program(lazynp, *ours), wanted, strict=True)):
        assert layout(one) == layout(other), k


def test_views_of_what_lies_otherwise_wait() -> None:
    theirs = numpy.random.default_rng(2).standard_normal((30, 40))
    x = lazynp.array(theirs)

    def program(a: Any) -> Any:
        y = a.T * 2
        return [y.T, y[3:], y[:, ::-1].T + 1, y.T[5] * 3, y.T.reshape(-1)[7:], y]

    result, at_the_call = counted(program, x)
    assert at_the_call == (0, 0, 0)
    forced(result)
    for ours, own in zip(result, program(theirs), strict=True):
        assert layout(ours) == layout(own)
    x = lazynp.array(theirs)
    y = x.T * 2
    view = y.T
    view += 1
    assert layout(y) == layout(theirs.T * 2 + 1)


@pytest.mark.parametrize("shape", [(4, 6), (60, 50), (200, 300)])
def test_an_error_of_what_lies_otherwise_is_told_at_its_line(shape: tuple[int, int]) -> None:
    theirs = numpy.ones(shape)
    theirs[1, 1] = 0
    heard: list[list[Any]] = []
    results = []
    for xp in (numpy, lazynp):
        x = xp.array(theirs)
        with chained.told() if xp is lazynp else warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            y = 1 / x.T
            results.append(layout(y * 2))
        heard.append([(str(one.message), one.lineno) for one in told])
    assert results[0] == results[1]
    assert heard[0] == heard[1] != []


@pytest.mark.parametrize("numerics", ["auto", "numpy", "fast"])
def test_functions_have_the_same_bits_however_their_operand_lies(numerics: str) -> None:
    values = numpy.random.default_rng(3).standard_normal((90, 110))
    values[3, 3], values[4, 5] = numpy.inf, numpy.nan
    with config.override(numerics=numerics), numpy.errstate(all="ignore"):
        for name in ("exp", "sin", "tanh", "log1p", "cbrt"):
            function = getattr(lazynp, name)
            plain = numpy.asarray(function(lazynp.array(values)) * 1)
            turned = numpy.asarray(function(lazynp.array(values.T.copy()).T) * 1)
            assert layout(turned)[2] == [8, 720]
            assert turned.tobytes() == plain.tobytes(), name


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 40), (40, 3), (64, 65), (300, 129)])
def test_reductions_of_what_is_transposed(shape: tuple[int, int], dtype: str) -> None:
    theirs = (numpy.random.default_rng(4).standard_normal(shape) * 10).astype(dtype)
    x = lazynp.array(theirs)
    for name in ("sum", "mean", "max", "min", "std", "var", "any", "argmax"):
        for axis in (0, 1, None):
            for keepdims in (False, True):
                for one in (lambda a: a.T, lambda a: a.T * 2, lambda a: a[:, :-1].T, lambda a: a[::-1].T):
                    ours, own = (getattr(one(a), name)(axis=axis, keepdims=keepdims) for a in (x, theirs))
                    assert layout(ours) == layout(own), (name, axis, keepdims)
