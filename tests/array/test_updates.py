"""Updates in place that wait: several in one pass, whose result lies where the old value did.

In: random programs of updates of arrays too large to be copied aside, error states, threads, machine code.  Out: failures.  Promise: NumPy
is the oracle: bits, dtypes, warnings with their lines.
"""

from __future__ import annotations

import os
import random
import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.array import core

SIZE = 20_000
OPERATORS = ["+=", "-=", "*=", "/=", "//=", "%="]
NAMES = "abcd"


@pytest.fixture(autouse=True, params=["loops", "several threads", "machine code"])
def how(request: Any) -> Iterator[str]:
    core.share(1 if request.param == "several threads" else 60_000)
    if request.param == "machine code":
        core.chain_sizes(1, 512, 1024, 0)
    yield request.param
    core.share()
    core.chain_sizes(1, 512, 1024, 500_000_000)


def program(rng: random.Random, length: int) -> str:
    """Statements over four arrays: updates, names that are bound anew, values that are held or looked at."""
    lines = []
    for k in range(length):
        x, y, z = (rng.choice(NAMES) for _ in range(3))
        number = rng.choice(["0.5", "2", "1.1", "1e3"])
        lines.append(
            rng.choice(
                [
                    f"{x} {rng.choice(OPERATORS)} {rng.choice([y, number, f'{y} * {number}', f'({y} - {z})'])}",
                    f"{x} {rng.choice(OPERATORS[:4])} {rng.choice([number, y])}",
                    f"{x} = {y} * {number} + {z}",
                    f"{x} = {x} * {number} - {y}",
                    f"h{k} = {y} - {number}",
                    f"seen.append(float({x}[{rng.randrange(SIZE)}]))",
                    f"{x}[{rng.randrange(9)}:{SIZE - rng.randrange(9)}:{rng.choice([1, 3])}] *= {number}",
                ]
            )
        )
    return "\n".join(lines)


def run(np: Any, text: str, dtypes: list[str]) -> tuple[list[Any], list[Any]]:
    rng = numpy.random.default_rng(5)
    space: dict[str, Any] = {"seen": []}
    for name, dtype in zip(NAMES, dtypes, strict=True):
        values = (rng.normal(size=SIZE) * 8).astype(dtype)
        space[name] = np.asarray(values) * 1 if rng.random() < 0.5 else np.array(values)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        exec(compile(text, "program", "exec"), space)
        values = [space[name] for name in sorted(space) if name in NAMES or name[0] == "h"]
        found = [(numpy.asarray(x).dtype.str, numpy.asarray(x).tobytes()) for x in values]
    return found, space["seen"]


@pytest.mark.parametrize("dtypes", [["f8"] * 4, ["f4"] * 4, ["f8", "f4", "f8", "f4"]], ids=["double", "single", "both"])
def test_random_programs(dtypes: list[str]) -> None:
    for seed in range(40):
        text = program(random.Random(seed), 14)
        expected, found = run(numpy, text, dtypes), run(lazynp, text, dtypes)
        assert found[1] == expected[1] or numpy.isnan(numpy.array(expected[1])).any(), text
        assert [dtype for dtype, _ in found[0]] == [dtype for dtype, _ in expected[0]], text
        for (dtype, ours), (_, theirs) in zip(found[0], expected[0], strict=True):
            x, y = numpy.frombuffer(ours, dtype), numpy.frombuffer(theirs, dtype)
            same = (x == y) & (numpy.signbit(x) == numpy.signbit(y)) | (x != x) & (y != y)
            assert same.all(), text


def test_several_updates_are_one_pass_and_take_no_memory(how: str) -> None:
    x = lazynp.ones(300_000) + 0.5
    y = lazynp.ones(300_000) * 2.0
    lazynp.realize(x, y)
    passes = core.chain_counts()[0]
    tracemalloc.start()
    try:
        x += y
        x *= 0.5
        x -= y * 2.0
        x /= 3.0
        lazynp.realize(x)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert core.chain_counts()[0] == passes + 1
    assert most < 400_000
    assert numpy.asarray(x).tolist() == [((1.5 + 2.0) * 0.5 - 4.0) / 3.0] * 300_000


def test_each_operation_tells_of_its_errors_once_at_its_line() -> None:
    text = "a += b\na /= c\na *= 1e300\na *= 1e300\na -= b"
    told = []
    for np in (numpy, lazynp):
        a, b, c = np.ones(SIZE) * 1.0, np.ones(SIZE) * 2.0, np.ones(SIZE) * 1.0
        c[SIZE // 2] = 0.0
        space = {"a": a, "b": b, "c": c}
        del a, b, c
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exec(compile(text, "program", "exec"), space)
            value = numpy.asarray(space["a"]).tolist()
        told.append(([(str(w.message), w.lineno) for w in caught], value))
    assert told[0] == told[1]


def test_errors_that_wait_are_told_with_the_value(unheard: Any) -> None:
    a, c = lazynp.ones(SIZE) * 1.0, lazynp.zeros(SIZE)
    with numpy.errstate(divide="ignore"):
        a += 1.0
        a /= c
        a *= 2.0
        assert numpy.asarray(a).tolist() == [numpy.inf] * SIZE


def test_a_name_that_is_bound_anew_lies_where_the_old_value_did(how: str) -> None:
    x = lazynp.ones(300_000) + 0.5
    lazynp.realize(x)
    tracemalloc.start()
    try:
        for _ in range(5):
            x = x * 0.5 + 1.0
            lazynp.realize(x)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 400_000
    assert set(numpy.asarray(x).tolist()) == {1.5 / 32 + 1.0 + 0.5 + 0.25 + 0.125 + 0.0625}


def test_the_old_value_that_somebody_holds_is_kept() -> None:
    x = lazynp.ones(SIZE) + 0.5
    lazynp.realize(x)
    held, view = x.copy(), x[1:5]
    waits = x * 2.0
    x += 1.0
    x *= 3.0
    assert numpy.asarray(waits).tolist() == [3.0] * SIZE
    assert numpy.asarray(held).tolist() == [1.5] * SIZE
    assert numpy.asarray(x).tolist() == [7.5] * SIZE
    assert numpy.asarray(view).tolist() == [7.5] * 4


def test_threads_that_ask_for_what_another_one_writes_over_wait_for_it() -> None:
    n, wrong = 400_000, []
    for _ in range(20):
        x = lazynp.ones(n) + 0.5
        lazynp.realize(x)
        x += 1.0
        x *= 2.0
        x = x * 3.0 - 1.0
        start = threading.Barrier(4)

        def ask(x: Any = x, start: threading.Barrier = start) -> None:
            start.wait()
            if set(numpy.asarray(x).tolist()) != {14.0}:
                wrong.append(x)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_finds_nothing_half_written() -> None:
    n = 400_000
    x = lazynp.ones(n) + 0.5
    over = threading.Event()

    def update() -> None:
        nonlocal x
        while not over.is_set():
            x += 1.0
            x *= 0.5
            x = x * 1.0 + 0.0
            lazynp.realize(x)

    thread = threading.Thread(target=update)
    thread.start()
    try:
        for _ in range(30):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of forks beside threads
                child = os.fork()
            if child == 0:
                values = numpy.asarray(x)
                os._exit(0 if (values == values[0]).all() else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("n", [1, 10, 1000, 2048, 100_000])
def test_updates_wait_at_every_size(n: int) -> None:
    theirs = numpy.arange(n) * 0.5 + 1
    a, b = lazynp.array(theirs), lazynp.array(theirs[::-1].copy())
    before = core.chain_counts()
    kept = a
    a += b
    a *= 2
    b -= a
    assert a is kept and core.chain_counts() == before
    assert lazynp.schedule(b).items
    expected = (theirs + theirs[::-1]) * 2
    assert numpy.asarray(b).tobytes() == (theirs[::-1] - expected).tobytes()
    assert numpy.asarray(a).tobytes() == expected.tobytes()


NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2.5, 300, 2**70, -0.0, numpy.nan, True, 1j, numpy.float64(1.5), numpy.float32(1.1), numpy.int8(3), 1e300, "a", None, [1.0],
    "7",
)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1", "?", "c16"])
@pytest.mark.parametrize("shape", [(7,), (40, 30), (1, 5), (0, 3), ()])
def test_numbers_written_by_masks(shape: tuple[int, ...], dtype: str) -> None:
    """They are choices where the array waits: of every dtype and number, with NumPy's errors and warnings."""
    rng = numpy.random.default_rng(8)
    values = (rng.standard_normal(shape) * 5).astype(dtype) if dtype != "c16" else rng.standard_normal(shape) * (2 + 1j)
    other = rng.random(shape) > 0.5
    masks: list[Any] = [
        lambda np, y, m: y > 1, lambda np, y, m: m, lambda np, y, m: ~m, lambda np, y, m: m[:1], lambda np, y, m: m.T,
        lambda np, y, m: y == y, lambda np, y, m: (y > 0) & m, lambda np, y, m: numpy.asarray(m),
        lambda np, y, m: m[..., None], lambda np, y, m: m * 1,
    ]  # fmt: skip
    for number in NUMBERS:
        for k, mask in enumerate(masks):
            found = []
            for xp in (numpy, lazynp):
                x, m = xp.array(values), xp.array(other)
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    found.append([written_by(xp, x, m, mask, number), sorted({str(one.message) for one in told})])
            assert found[0] == found[1], (number, k)
            x, m = lazynp.array(values), lazynp.array(other)
            assert written_by(lazynp, x, m, mask, number) == found[0][0], (number, k)  # recorded


def written_by(np: Any, x: Any, m: Any, mask: Any, number: Any) -> Any:
    """What an array that waits, one that was read before, and its mask hold after a write."""
    try:
        with numpy.errstate(all="ignore"):
            y = x * x
            before = y + x
            key = mask(np, y, m)
            y[key] = number
            after = y * 2
    except Exception as error:
        return type(error).__name__
    return [(each.dtype, each.shape, numpy.asarray(each).tobytes()) for each in map(numpy.asarray, (y, before, key, after))]


def test_a_number_written_by_a_mask_is_a_step() -> None:
    theirs = numpy.random.default_rng(9).standard_normal(5000)
    x = lazynp.array(theirs)
    before = core.chain_counts()
    y = x * 2 + 1
    y[y < 0] = 0
    z = y * 3 - x
    assert core.chain_counts() == before
    expected = theirs * 2 + 1
    expected[expected < 0] = 0
    assert numpy.asarray(z).tobytes() == (expected * 3 - theirs).tobytes()
    assert [after - at for at, after in zip(before, core.chain_counts(), strict=True)][:2] == [1, 0]
    assert numpy.asarray(y).tobytes() == expected.tobytes()
    view = (y := x * 2)[10:20]
    y[x > 0] = -1.0
    assert numpy.asarray(view).tobytes() == numpy.where(theirs > 0, -1.0, theirs * 2)[10:20].tobytes()
