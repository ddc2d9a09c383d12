"""Writes of parts that wait: `array/puts.h`, `array/putting.h`.

In: random programs that write parts of few arrays, by assignment and in place, read and hold parts of them, let go of arrays and of
values; by hand, what may meet a write that waits.  Out: failures.  Promise: NumPy is the oracle, to the bit; how many passes are run is
counted.
"""

from __future__ import annotations

import gc
import operator
import pickle
import random
import tracemalloc
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core
from tests.array import chained
from tests.array.test_chains import counted

LINES = 40
SHAPES = [(37,), (3000,), (9, 11), (60, 50), (5, 6, 7), (14, 15, 16), (3, 4, 5, 6), (2, 1, 40, 3)]
DTYPES = ["float64", "float64", "float32", "int64", "uint8", "complex128", "bool", "float16"]


def slices(chance: random.Random, shape: tuple[int, ...], lengths: list[int] | None = None) -> str:
    """A key of slices, with those lengths if they fit, and perhaps integers."""
    parts = []
    for k, n in enumerate(shape):
        if lengths is None and chance.random() < 0.15:
            parts.append(str(chance.randrange(n)))
            continue
        length = chance.choice([n, n, max(n - 1, 1), max(n - 2, 1), max(n // 2, 1)]) if lengths is None else lengths[k]
        step = chance.choice([1, 1, 1, 2]) if 2 * length - 1 <= n else 1
        first = chance.randrange(n - (length - 1) * step)
        past = first + (length - 1) * step + 1
        if step == 1 and chance.random() < 0.05:
            parts.append(f"{past - 1}:{first - 1 if first else ''}:-1")
        else:
            parts.append(f"{first}:{past}" + (f":{step}" if step > 1 else ""))
    return ", ".join(parts)


def fitting(chance: random.Random, shape: tuple[int, ...]) -> tuple[str, str, str]:
    """Three keys that name parts of one shape."""
    lengths = [chance.choice([n, max(n - 1, 1), max(n - 2, 1)]) for n in shape]
    one, two, three = (slices(chance, shape, lengths) for _ in range(3))
    if chance.random() < 0.15:
        axis = chance.randrange(len(shape))
        one, two, three = (", ".join(["0" if k == axis else part for k, part in enumerate(key.split(", "))]) for key in (one, two, three))
    return one, two, three


def value(chance: random.Random, names: list[str], keys: tuple[str, str, str]) -> str:
    """An expression over parts of one shape."""
    a, b, c = names
    one, two, three = keys
    return chance.choice([
        f"{b}[{two}] * 2 + {c}[{three}]", f"{b}[{two}] - {a}[{three}]", f"{a}[{one}] * {b}[{two}] + 1",
        f"np.maximum({b}[{two}], {c}[{one}]) + 1", f"np.where({b}[{two}] > 1, {c}[{three}], {a}[{one}]) * 1", f"k[{one}] + {b}[{two}]",
        f"({b}[{two}] + {c}[{one}]) * ({a}[{three}] - {b}[{two}])",
    ])  # fmt: skip


def program(seed: int) -> tuple[tuple[int, ...], str, list[str]]:
    """The shape and dtype of the arrays of a program, and its lines."""
    chance = random.Random(seed)
    shape, dtype = chance.choice(SHAPES), chance.choice(DTYPES)
    pick, lines = chance.choice, []
    for _ in range(LINES):
        a, b, c, v = pick("abcd"), pick("abcd"), pick("abcd"), pick("vw")
        keys = one, two, three = fitting(chance, shape)
        x, other = value(chance, [a, b, c], keys), slices(chance, shape)
        lines.append(pick([
            *[f"{a}[{one}] = {x}"] * 6,
            *[f"{a}[{one}] {pick('+-*')}= {x}"] * 3,
            f"{v} = {a}[{one}]", f"{v} = {x}", f"{v} = {x}\n{a}[{one}] = {v}\n{v} = {v} + 1", f"{v} += {v} * 2",
            f"{v}[...] = {v} * 2 + 1", f"{v} = None", f"{a} = {a} * 0.5 + {b}", f"{a} = {a} * 1", f"{a} += {b} * 2",
            f"{a}[...] = {b} + {c}",
            f"{a}[{other}] = 3", f"{a}[{one}] = {b}[{two}]", f"{a} = {a}.T.copy().T", f"n = {a}[{other}].sum()", f"{v} = {a}[{other}] * 2",
            f"del {a}\n{a} = k + 1", f"s = {b}[{two}] * 3 - {c}[{one}]\n{a}[{one}] = s * 2\n{b}[{two}] = s + {a}[{one}]\ns = None",
            f"{v} = {x}\n{a}[{one}] = {v}\nn = {v}.sum()\n{v} += 1", f"{v} = {x}\n{a}[{one}] = {v}\nn = {v}.max()\n{v}[...] = {v} * 2",
            f"{a}.flat[0] = 5", f"{a} = np.zeros_like(k) + 1", f"{a} = {b}.copy()", f"k[{one}] = {x}", f"f({a}, {b})",
            f"{a}[{one}], {b}[{two}] = {x}, {c}[{three}] + 1", f"{v} = {a}[{other}][..., ::-1]",
            f"u = np.zeros_like(k)[{one}]\nu[:] += {x}\nu += {b}[{two}]\nu[1:] += u[:-1] * 2\n{a}[{one}] = u * 2 + 1\nu = None",
        ]))  # fmt: skip
    return shape, dtype, lines


def f(x: Any, y: Any) -> None:
    """Locals that go before anybody asks for what was written."""
    p = x * 2 + y
    q = p * p - x
    x[...] = q + p
    y[1:] = (q - p)[1:] + 1
    r = x + y
    del r


def run(seed: int, np: Any) -> list[Any]:
    shape, dtype, lines = program(seed)
    numbers = numpy.random.default_rng(seed)
    given = [(numbers.random(shape) * 4).astype(dtype) for _ in range(5)]
    names: dict[str, Any] = {"np": np, "f": f, "v": None, "w": None, **{name: np.array(x) for name, x in zip("abcdk", given, strict=True)}}
    found: list[Any] = []
    for line in lines:
        try:
            exec(compile(line, "<puts>", "exec"), names)
        except Exception as error:
            found.append((line, type(error).__name__))
    values = [(name, names[name]) for name in "abcdkvw" if hasattr(names[name], "dtype")]
    return found + [(name, x.dtype, x.shape, chained.canonical(x)) for name, x in values]


def check(first: int, past: int) -> None:
    with numpy.errstate(all="ignore"), lazynp.errstate(all="ignore"):
        for seed in range(first, past):
            assert run(seed, lazynp) == run(seed, numpy), seed


@pytest.mark.parametrize("first", range(0, 1200, 30))
def test_random_programs(first: int) -> None:
    check(first, first + 30)


def test_nobody_reads_memory_whose_write_waits() -> None:
    """It holds what is no number meanwhile, unless something that waits is to read it first."""
    before = core.poisons(True)
    try:
        check(20_000, 20_200)
    finally:
        assert core.poisons(False) > before + 20


@pytest.mark.parametrize("first", range(10_000, 10_200, 20))
def test_random_programs_as_machine_code(first: int) -> None:
    with chained.chains_of(chained.SIZES[0], 0):
        for seed in range(first, first + 20):
            for _ in range(2):
                check(seed, seed + 1)


# By hand ----------------------------------------------------------------------------------------------------------------------------


def grids(np: Any) -> tuple[Any, Any, Any]:
    x = np.arange(6400.0).reshape(80, 80) % 17
    return x, x * 0.5 + 1, np.zeros((82, 82))


def values(np: Any, work: Any) -> list[bytes]:
    return [numpy.array(x).tobytes() for x in work(np, *grids(np))]


def named(np: Any, x: Any, y: Any, u: Any) -> Any:
    """Values that have names when their result is written, and none when it is asked for."""
    for k in range(3):
        p = x * y
        q = p + k
        r = q * q - p
        u[1:-1, 1:-1] = r * 0.5
    del p, q, r
    return [u]


def read_between(np: Any, x: Any, y: Any, u: Any) -> Any:
    u[1:-1, 1:-1] = x + y
    first = u[:-2, 1:-1] * 2
    u[1:-1, 1:-1] = x - y
    second = u[2:, 1:-1] * 3
    u[0] = (x * y)[0, :1] * u[1]
    return [first, second, u]


def held_views(np: Any, x: Any, y: Any, u: Any) -> Any:
    v = u[5:10]
    u[1:-1, 1:-1] = x + y
    w = u[2:7]
    u[2:-1, 1:-1] = x[1:] * y[1:]
    w += 1
    v[0, 3] = 7
    u[3:-2, 1:-1] += x[3:] * 2
    return [u, v, w]


def parts_in_place(np: Any, x: Any, y: Any, u: Any) -> Any:
    u[1:-1, 1:-1] += x * y
    u[1:-1, 1:-1] -= x[::-1] + u[1:-1, 1:-1]
    u[2:, 2:] *= u[1:-1, 1:-1][:, :80] + 1
    v = np.zeros((84, 84))[2:-2, 2:-2]
    v[:, 1:] += (x * y)[:, 1:]
    v[:-1] += (x + y)[1:]
    v += x * 2
    v /= y + 1
    return [u, v, v.base]


def several_of_one_tape(np: Any, x: Any, y: Any, u: Any) -> Any:
    v = np.zeros((82, 82))
    p = x * y + 1
    u[1:-1, 1:-1], v[2:, 2:] = p - x, p + x
    u[:-2, 1:-1], v[:-2, :-2] = p * 2, p * 3
    return [u, v, p]


def swapped(np: Any, x: Any, y: Any, u: Any) -> Any:
    x[:], y[:] = y * 1, x * 1
    x[1:], y[1:] = y[1:] * 2, x[1:] * 2
    return [x, y]


def from_reductions(np: Any, x: Any, y: Any, u: Any) -> Any:
    v = np.zeros((3, 80, 80))
    v[0] = np.cumsum(x * y, axis=1)
    v[1] = x @ y
    v[2] = v[0] * v[1]
    v[0] = np.sort(v[2], axis=0)
    return [v, u]


def of_what_waits(np: Any, x: Any, y: Any, u: Any) -> Any:
    a = x * y
    a[1:] = x[1:] * 2
    b = a.T
    a[:, 1:] = y[:, 1:] - x[:, :-1]
    c = b.reshape(-1)
    a[0] = 9
    return [a, b, c]


WORKS = [named, read_between, held_views, parts_in_place, several_of_one_tape, swapped, from_reductions, of_what_waits]


@pytest.mark.parametrize("work", WORKS)
def test_writes_leave_what_numpy_leaves(work: Any) -> None:
    assert values(lazynp, work) == values(numpy, work)


def begun() -> tuple[Any, Any, Any]:
    found = grids(lazynp)
    lazynp.realize(*found)
    core.settle()
    return found


def test_a_value_that_goes_is_computed_where_it_is_to_lie() -> None:
    x, y, u = begun()
    _, counts = counted(lambda: (named(lazynp, x, y, u), u[0, 0]))
    assert counts[:2] == (1, 0)  # one pass for three of them


@pytest.mark.parametrize("n", [10, 4000])
@pytest.mark.parametrize(("part", "writes"), [(True, True), (False, True), (True, False)])
def test_garbage_whose_end_looks_at_what_is_written(n: int, part: bool, writes: bool) -> None:
    """Where no cell is kept making one may collect garbage, whose finalizers compute what waits, and have it lie elsewhere."""
    held = [lazynp.zeros(1) for _ in range(2000)]
    ran = []
    before = gc.get_threshold()
    u, x = lazynp.zeros(n), lazynp.arange(float(n))

    class Circle:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            if not ran:
                ran.append(1)
                if writes:
                    float(u.sum())
                    lazynp.multiply(u, 2, out=u)
                numpy.asarray(u)

    gc.collect()
    gc.freeze()  # what other tests have left, which 200 collections would walk through
    gc.disable()
    found = 0
    try:
        for turn in range(200):
            theirs, other = numpy.zeros(n), numpy.arange(float(n))
            theirs[1:] = other[1:] * 2
            u = lazynp.zeros(n)
            u[1:] = x[1:] * 2
            v = u[:-1]
            p = x[1:] + 1 if part else x + 1
            del v
            held.extend(lazynp.zeros(1) for _ in range(300))
            ran.clear()
            for _ in range(turn % 5):
                Circle()
            gc.set_threshold(1 + turn % 7, 1000, 1000)
            gc.enable()
            if part:
                u[1:] = p
            else:
                u += p
            gc.disable()
            found += len(ran)
            wanted = [theirs.copy(), theirs * 2, theirs.copy()]
            for k, each in enumerate(wanted):
                each[1:] = (other + 1 + (0 if part else each))[1:]
                each[0] += 0 if part else 1
                wanted[k] = each * (2 if k == 2 else 1)
            assert any(numpy.array_equal(numpy.array(u), each) for each in wanted), turn
            ran.append(0)
            gc.collect()
    finally:
        gc.set_threshold(*before)
        gc.enable()
        gc.unfreeze()
    assert found > 20


def rows_written(x: Any, y: Any, u: Any) -> None:
    u[1] = x[0] * y[1]
    u[2:] += x - y
    u[0] -= u[1] * 2
    u[1:3] *= u[:2] + 1
    for k in range(1, 4):
        u[k] -= 0.5 * u[k - 1]


@pytest.mark.parametrize("n", [1, 10, 1000, 100_000])
def test_parts_of_every_size_wait(n: int) -> None:
    theirs = numpy.arange(2.0 * n).reshape(2, n), numpy.ones((2, n)), numpy.zeros((4, n))
    ours = lazynp.realize(*[lazynp.array(each) for each in theirs])
    core.settle()
    before = core.chain_counts()
    rows_written(*ours)
    assert core.chain_counts() == before
    rows_written(*theirs)
    assert numpy.array_equal(numpy.asarray(ours[2]), theirs[2])


def test_nothing_is_computed_before_somebody_looks() -> None:
    x, y, u = begun()
    before = core.chain_counts()
    u[1:-1, 1:-1] = x * y
    v = u[2:, 2:] * 2 + u[1:-1, 1:-1]
    u[1:-1, 1:-1] += v
    u[2:, 2:] = v - u[:-2, :-2]
    assert core.chain_counts() == before
    assert (u.shape, u.dtype, u.ndim, u.size, u[1:3].shape, len(u)) == ((82, 82), numpy.dtype(float), 2, 82 * 82, (2, 82), 82)
    assert core.chain_counts() == before
    assert numpy.array(u).shape == (82, 82)
    assert core.chain_counts()[0] > before[0]


def test_what_nobody_has_is_not_written() -> None:
    x, y, u = begun()
    before = core.chain_counts()
    u[1:-1, 1:-1] = x * y
    u[2:, 2:] += x + u[1:-1, 1:-1]
    del u
    core.settle()
    assert core.chain_counts() == before


LOOKS: list[Any] = [
    numpy.asarray, memoryview, str, list, lambda u: u.__array_interface__, lambda u: u.ctypes.data, lambda u: u.data, lambda u: u[0, 0],
    lambda u: u.sum(), lambda u: u.tolist(), lambda u: u.flat[0], pickle.dumps, lambda u: u.copy(), lambda u: u.base, lambda u: u.flags,
    lambda u: u.strides, lambda u: u.T.base, lambda u: u[1:].base, lambda u: u.view(), lambda u: u.reshape(-1),
    lambda u: lazynp.schedule(u),
]  # fmt: skip


@pytest.mark.parametrize("seen", LOOKS)
def test_who_looks_sees_it_written(seen: Any) -> None:
    x, y, u = begun()
    u[1:-1, 1:-1] = x * y
    seen(u)
    u[:-2, 1:-1] += x
    expected = numpy.zeros((82, 82))
    theirs = grids(numpy)
    expected[1:-1, 1:-1] = theirs[0] * theirs[1]
    seen(u)
    expected[:-2, 1:-1] += theirs[0]
    assert numpy.array_equal(numpy.asarray(u), expected)


def test_an_export_keeps_the_memory_from_waiting() -> None:
    x, y, u = begun()
    seen = numpy.asarray(u)
    u[1:-1, 1:-1] = x * y
    assert seen[1, 2] == numpy.asarray(x * y)[0, 1] != 0
    u[1:-1, 1:-1] += x
    assert seen[1, 2] == numpy.asarray(x * y + x)[0, 1]


def test_a_part_that_is_written_by_itself() -> None:
    """`operator.iadd` of a part that nobody has writes it, though what it returns is let go."""
    x, y, u = begun()
    operator.iadd(u[1:-1, 1:-1], x * y)
    kept = operator.imul(u[1:-1, 1:-1], y + 1)
    assert numpy.array_equal(numpy.asarray(u)[1:-1, 1:-1], numpy.asarray(x) * numpy.asarray(y) * (numpy.asarray(y) + 1))
    kept[0, 0] = 5
    assert u[1, 1] == 5


def test_errors_are_told_once_and_the_values_are_there() -> None:
    x, y, u = begun()
    with chained.told() as heard:
        u[1:-1, 1:-1] = x / (x - 1)
        u[1:-1, 1:-1] += 1 / (y - y)
        found = numpy.array(u)
    with numpy.errstate(all="ignore"):
        theirs = grids(numpy)
        expected = theirs[2]
        expected[1:-1, 1:-1] = theirs[0] / (theirs[0] - 1)
        expected[1:-1, 1:-1] += 1 / (theirs[1] - theirs[1])
    assert found.tobytes() == expected.tobytes()
    assert sorted(str(w.message) for w in heard) == ["divide by zero encountered in divide"] * 2


def test_long_chains_of_writes_are_bounded() -> None:
    x, _, u = begun()
    theirs = grids(numpy)
    for _ in range(500):
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1]) * 0.25 + x
        theirs[2][1:-1, 1:-1] = (theirs[2][:-2, 1:-1] + theirs[2][2:, 1:-1]) * 0.25 + theirs[0]
    assert numpy.array_equal(numpy.asarray(u), theirs[2])


def test_a_block_of_warnings_leaves_nothing_waiting() -> None:
    x, y, u = begun()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        u[1:-1, 1:-1] = x * y
        with pytest.raises(RuntimeWarning):
            u[1:-1, 1:-1] = x / (x - 1)
        assert numpy.array_equal(numpy.asarray(u)[1:-1, 1:-1], numpy.asarray(x) * numpy.asarray(y))


def test_a_value_that_was_asked_for_and_written_since() -> None:
    """The write that waits takes the value as it was."""
    x, y, u = begun()
    v = x * y
    u[1:-1, 1:-1] = v
    assert v[1, 1] == x[1, 1] * y[1, 1]
    v += 1
    assert numpy.array_equal(numpy.asarray(u)[1:-1, 1:-1], numpy.asarray(x) * numpy.asarray(y))
    u[1:-1, 1:-1] = (w := x - y)
    assert w.max() == numpy.asarray(w).max()
    w[...] = x * 2
    assert numpy.array_equal(numpy.asarray(u)[1:-1, 1:-1], numpy.asarray(x) - numpy.asarray(y))


def test_parts_without_elements() -> None:
    x, y, u = begun()
    u[1:1] = (x * y)[1:1, :1] * 2 + u[3:3]
    u[:, 5:5] += (x * y)[:1, 5:5]
    assert not numpy.asarray(u).any()


def test_what_reads_an_array_that_was_written_lets_its_memory_go() -> None:
    x = lazynp.ones((80, 80), complex)
    y = x * 0.5

    def turn() -> None:
        u = x * 0.0
        assert u[0, 0] == 0
        u[1:-1, 1:-1] = x[1:-1, 1:-1] * y[1:-1, 1:-1]
        r = u * 2
        assert u[0, 0] == 0
        u *= y
        assert (r[1, 1], u[1, 1]) == (1, 0.25)

    turn()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(40):
            turn()
        assert tracemalloc.get_traced_memory()[0] - before < 20 * 80 * 80 * 16
    finally:
        tracemalloc.stop()
