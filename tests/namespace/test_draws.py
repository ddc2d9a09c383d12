"""Numbers drawn in C are NumPy's, and so is the generator afterwards: values, types, shapes, state, and who waits for whom."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.namespace.draws import native, trials, ziggurats

SIZES: list[Any] = [None, 0, 1, 2, 31, 32, 33, 255, 256, 257, 5000, 10**5, (), (3, 5), (2, 0), (7, 11, 13), [4, 5], numpy.int64(9)]
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("random", ()),
    ("standard_normal", ()),
    ("standard_exponential", ()),
    *[("uniform", args) for args in [(), (-1, 2.5), (0.1,), (3, 3), (numpy.float64(0.5), 7), (1e300, 1.7e300)]],
    *[("normal", args) for args in [(), (0, 0.8), (-3.5,), (2, 0), (1e308, 1e308), (numpy.float64(2), 3)]],
    *[("exponential", args) for args in [(), (0.3,), (0,), (1e308,)]],
    *[("integers", args) for args in [(1,), (2,), (10,), (-3, 10), (5, 6), (0, 1 << 31), (-5, 3 << 30)]],
    *[("integers", args) for args in [((1 << 32) - 1,), (1 << 32,), (0, (1 << 32) + 1)]],
    *[("choice", args) for args in [(7,), (1,), ([1.5, 2.5, 3.5],)]],
    *[("integers", args) for args in [(1 << 40,), (3 << 61,), (-(1 << 63), (1 << 63) - 1), (-(1 << 62), 1 << 61), (numpy.int32(9),)]],
]  # fmt: skip
LEGACY: list[tuple[str, tuple[Any, ...]]] = [
    *[(name, ()) for name in ("random", "random_sample", "standard_normal")],
    *[("uniform", args) for args in [(), (-1, 2.5), (0.1,), (3, 3), (3, -1), (1e300, 1.7e300)]],
    *[("normal", args) for args in [(), (0, 0.8), (-3.5,), (2, 0), (1e308, 1e308), (numpy.float64(2), 3)]],
    *[("randint", args) for args in [(1,), (2,), (10,), (-3, 10), (5, 6), (0, 1 << 31), (-5, 3 << 30), ((1 << 32) - 1,)]],
    *[("choice", args) for args in [(7,), (1,), ([1.5, 2.5, 3.5],)]],
    *[("randint", args) for args in [(1 << 32,), (0, (1 << 32) + 1), (1 << 40,), (-(1 << 63), (1 << 63) - 1), (numpy.int32(9),)]],
]
REFUSED: list[tuple[str, tuple[Any, ...]]] = [
    ("random", (-1,)), ("random", ((2, -3),)), ("random", (2.5,)), ("random", (1 << 62,)), ("normal", (0, -1)), ("normal", (0, -0.0)),
    ("uniform", (3, 1)), ("uniform", (0, float("inf"))), ("uniform", (-1e308, 1e308, 3)), ("exponential", (-1, 3)), ("normal", ("x", 1)),
    ("normal", (10**400, 1, 3)), ("integers", (0,)), ("integers", (5, 5, 3)), ("integers", (0, 1 << 64)), ("integers", ()),
    ("random", (1, 2, 3, 4)),
]  # fmt: skip
WITH_KEYWORDS: list[tuple[str, dict[str, Any]]] = [
    ("random", {"size": 100}), ("random", {"size": 100, "dtype": "f4"}), ("random", {"dtype": float, "size": 3}),
    ("standard_normal", {"size": (3, 4), "dtype": numpy.float32}), ("standard_exponential", {"size": 50, "method": "inv"}),
    ("normal", {"scale": 2, "size": 700}), ("normal", {"loc": [1, 2], "scale": 0.5}), ("normal", {"size": 4, "loc": 3.0, "scale": 2}),
    ("uniform", {"high": 5, "size": (2, 300)}), ("uniform", {"low": -1}), ("exponential", {"size": 300}), ("exponential", {"scale": 2.0}),
    ("integers", {"low": 0, "high": 9, "size": 301}), ("integers", {"low": 7, "size": 5}),
    ("integers", {"low": 0, "high": 9, "size": 3, "endpoint": True}),
    ("integers", {"low": 0, "high": 200, "size": 7, "dtype": "u1"}), ("integers", {"low": 3, "high": None, "size": 7}),
]  # fmt: skip


@pytest.fixture(params=[True, False], ids=["vectors", "lanes"], autouse=True)
def by_vectors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Words are made by vectors, where the processor can, and without."""
    if native.core() is None:
        yield
        return
    native.core().by_vectors(request.param)
    yield
    native.core().by_vectors(True)


@pytest.fixture(autouse=True)
def from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call is left to NumPy for being one of the first."""
    monkeypatch.setattr(native, "SOON", 0)


def pair(seed: int, before: int = 0) -> tuple[Any, Any]:
    """Our generator and NumPy's, behind as many words and a half."""
    made = lazynp.random.default_rng(seed), numpy.random.default_rng(seed)
    for rng in made:
        rng.bit_generator.advance(before)
        if before % 2:
            rng.integers(0, 1 << 20, dtype=numpy.uint32)
    return made


def legacy_pair(seed: int, before: int = 0) -> tuple[Any, Any]:
    """Our ``RandomState`` and NumPy's, behind as many words."""
    made = lazynp.random.RandomState(seed), numpy.random.RandomState(seed)
    for rng in made:
        rng.randint(0, 1 << 32, before, dtype=numpy.uint32)
    return made


def state(rng: Any) -> Any:
    return trials.state(getattr(rng, "_generator", rng))


def same(ours: Any, theirs: Any, name: str, *args: Any, **kwargs: Any) -> None:
    found, expected = getattr(ours, name)(*args, **kwargs), getattr(theirs, name)(*args, **kwargs)
    assert isinstance(found, lazynp.ndarray) == isinstance(expected, numpy.ndarray)
    assert isinstance(found, lazynp.ndarray) or type(found).__name__ == type(expected).__name__
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes(), (name, args, kwargs)
    assert repr(state(ours)) == repr(state(theirs)), (name, args, kwargs)


@pytest.mark.parametrize(("name", "args"), CALLS, ids=[f"{name}{args}" for name, args in CALLS])
def test_every_size(name: str, args: tuple[Any, ...]) -> None:
    for seed, before in [(0, 0), (1, 1), (2, 10**9 + 7), (3, 1 << 90)]:
        for size in SIZES:
            same(*pair(seed, before), name, *args, size=size)


@pytest.mark.parametrize(("name", "args"), LEGACY, ids=[f"{name}{args}" for name, args in LEGACY])
def test_every_size_of_a_random_state(name: str, args: tuple[Any, ...]) -> None:
    for seed, before in [(0, 0), (1, 1), (2, 622), (3, 623), (4, 10**5 + 7)]:
        for size in SIZES:
            same(*legacy_pair(seed, before), name, *args, size=size)


@pytest.mark.parametrize("pair", [pair, legacy_pair])
def test_orders(pair: Any) -> None:
    for before in 0, 1, 623:
        ours, theirs = pair(6, before)
        for x in -1, 0, 1, 2, 3, 32, 255, 256, 257, 1000, 10**5, [3, 1, 2], numpy.int64(5), numpy.arange(6).reshape(3, 2):
            same(ours, theirs, "permutation", x)
            same(ours, theirs, "random", 3)
    with pytest.raises(TypeError):
        ours.permutation()
    same(ours, theirs, "choice", 9, 4, False)
    for x in (
        *[numpy.arange(n) for n in (1, 2, 9, 300)], numpy.arange(300, dtype="f4")[::3], numpy.arange(9) > 4, numpy.arange(9, dtype=">i4"),
        numpy.arange(5).astype("M8[s]"), *([numpy.arange(6.0).reshape(2, 3)] if hasattr(theirs, "bit_generator") else []),
    ):  # fmt: skip
        for size in None, 0, 1, 700, (3, 4), (2, 0):
            same(ours, theirs, "choice", x, size=size)
        mine, yours = ours.choice(lazynp.asarray(x), 50), theirs.choice(x, 50)
        assert numpy.asarray(mine).tobytes() == yours.tobytes()
    for x in (
        *[numpy.arange(n) for n in (0, 1, 2, 257, 10**5)], numpy.arange(50.0), numpy.arange(50).astype("M8[s]"), numpy.arange(40)[::2],
        numpy.arange(9, dtype="f4"), numpy.arange(24.0).reshape(4, 6), numpy.arange(9, dtype=">i8"), numpy.arange(9, dtype="c8"),
    ):  # fmt: skip
        mine, yours = lazynp.asarray(x.copy()), x.copy()
        ours.shuffle(mine), theirs.shuffle(yours)
        assert numpy.asarray(mine).tobytes() == yours.tobytes()
        same(ours, theirs, "random", 3)
    whole = lazynp.arange(20)
    part, yours = whole[5:15], numpy.arange(20)
    ours.shuffle(part), theirs.shuffle(yours[5:15])
    assert numpy.asarray(whole).tobytes() == yours.tobytes()
    same(ours, theirs, "choice", 3, 5, p=[0.2, 0.3, 0.5])
    for np, rng in (lazynp, ours), (numpy, theirs):
        fixed = np.arange(5)
        fixed.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            rng.shuffle(fixed)


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_extents_as_arguments(name: str) -> None:
    for args in (), (0,), (1,), (3,), (4, 5), (313,), (2, 0), (numpy.int64(3),), (10**5,):
        ours, theirs = legacy_pair(5, 3)
        for _ in range(2):
            same(ours, theirs, name, *args)
    with pytest.raises(TypeError):
        ours.rand(size=3)
    with pytest.raises(TypeError):
        ours.randn(2.5)
    with pytest.raises(ValueError, match="negative"):
        ours.randn(-1)
    same(ours, theirs, name, 7)


@pytest.mark.parametrize(("name", "kwargs"), WITH_KEYWORDS, ids=[f"{name}{kwargs}" for name, kwargs in WITH_KEYWORDS])
def test_keywords(name: str, kwargs: dict[str, Any]) -> None:
    ours, theirs = pair(7, 3)
    for _ in range(3):
        same(ours, theirs, name, **kwargs)


@pytest.mark.parametrize(("name", "args"), REFUSED, ids=[f"{name}{args}" for name, args in REFUSED])
def test_what_numpy_refuses(name: str, args: tuple[Any, ...]) -> None:
    ours, theirs = pair(5, 1)
    with pytest.raises(Exception) as expected:
        getattr(theirs, name)(*args)
    with pytest.raises(expected.type, match=r"(?s).*"):
        getattr(ours, name)(*args)
    assert ours.bit_generator.state == theirs.bit_generator.state
    same(ours, theirs, "random", 3)


MORE: list[tuple[str, tuple[Any, ...]]] = [
    ("beta", (2, 3)), ("binomial", (10, 0.3)), ("chisquare", (3,)), ("gamma", (2.5,)), ("geometric", (0.2,)), ("gumbel", ()),
    ("laplace", ()), ("logistic", ()),
    ("lognormal", ()), ("poisson", (4.5,)), ("rayleigh", ()), ("standard_cauchy", ()), ("standard_gamma", (0.4,)),
    ("standard_t", (5,)), ("triangular", (0, 1, 3)), ("vonmises", (0, 2)), ("wald", (1, 2)), ("weibull", (2,)), ("zipf", (3,)),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_programs(seed: int) -> None:
    """All methods of a generator, in any order: each begins where the one before it left off."""
    dice = random.Random(seed)
    ours, theirs = pair(seed, dice.choice([0, 1, 12345]))
    for _ in range(60):
        kind = dice.randrange(10)
        size = dice.choice([None, dice.randrange(5), dice.randrange(700), (dice.randrange(4), dice.randrange(200))])
        if kind < 6:
            name, args = dice.choice(CALLS)
            same(ours, theirs, name, *args, size=size)
        elif kind < 8:
            name, args = dice.choice(MORE)
            same(ours, theirs, name, *args, size=size)
        else:
            n = dice.randrange(1, 40)
            name, args = dice.choice([
                ("integers", (0, 7, n, "i4")), ("integers", (0, 200, n, "u1")), ("random", (n, "f4")), ("choice", (n, 5)),
                ("permutation", (n,)), ("standard_normal", (n, "f4")), ("bytes", (n,)), ("integers", ([3, 4], [9, 12])),
            ])  # fmt: skip
            if name == "bytes":
                assert ours.bytes(*args) == theirs.bytes(*args)
            else:
                same(ours, theirs, name, *args)


@pytest.mark.parametrize("seed", range(20))
def test_programs_of_a_random_state(seed: int) -> None:
    dice = random.Random(seed)
    ours, theirs = legacy_pair(seed, dice.choice([0, 1, 12345]))
    for _ in range(60):
        kind = dice.randrange(10)
        size = dice.choice([None, dice.randrange(5), dice.randrange(1500), (dice.randrange(4), dice.randrange(200))])
        if kind < 7:
            name, args = dice.choice(LEGACY)
            same(ours, theirs, name, *args, size=size)
        elif kind < 9:
            name, args = dice.choice(MORE)
            same(ours, theirs, name, *args, size=size)
        else:
            n = dice.randrange(1, 40)
            name, args = dice.choice([
                ("randint", (0, 7, n, "i4")), ("randint", (0, 200, n, "u1")), ("choice", (n, 5)), ("permutation", (n,)), ("rand", (n, 3)),
                ("randint", ([3, 4], [9, 12])), ("randn", (n,)), ("standard_exponential", (n,)), ("tomaxint", (n,)),
            ])  # fmt: skip
            same(ours, theirs, name, *args)


def test_states_of_a_random_state() -> None:
    ours, theirs = legacy_pair(1)
    same(ours, theirs, "randn", 301)
    before = ours.get_state()
    assert before[3] == 1  # the other one of the last pair
    first = numpy.asarray(ours.randn(50)).tobytes()
    ours.set_state(before)
    assert numpy.asarray(ours.randn(50)).tobytes() == first
    for rng in ours, theirs:
        rng.seed(4)
    same(ours, theirs, "normal", 1, 2, 301)
    same(pickle.loads(pickle.dumps(ours)), copy.deepcopy(theirs), "randn", 301)


def test_the_functions_of_the_module() -> None:
    found = []
    for np in lazynp, numpy:
        np.random.seed(3)
        drawn = np.random.rand(700), np.random.randn(3, 5), np.random.randint(0, 9, 100), np.random.normal(0, 2, 3), np.random.random()
        found.append(b"".join([numpy.asarray(x).tobytes() for x in drawn]))
        assert type(np.random.randint(5)) is int
        assert type(np.random.uniform(0, 2)) is float
    assert found[0] == found[1]


def test_other_bits_for_the_functions_of_the_module() -> None:
    rand, before = lazynp.random.rand, numpy.random.get_bit_generator()
    assert numpy.asarray(rand(3)).size == 3
    try:
        for bits in numpy.random.MT19937, numpy.random.PCG64:
            numpy.random.set_bit_generator(bits(5))
            found = numpy.asarray(rand(400))
            assert found.tobytes() == numpy.random.RandomState(bits(5)).rand(400).tobytes()
    finally:
        numpy.random.set_bit_generator(before)


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
def test_which_are_native() -> None:
    for theirs in numpy.random.default_rng(0), numpy.random.RandomState(0):
        for name in native.KINDS[type(theirs)][1]:
            assert type(native.drawn(getattr(theirs, name))).__name__ == "Drawn", name
        assert native.drawn(theirs.gamma) == theirs.gamma


FIRST: list[tuple[str, str, tuple[Any, ...]]] = [
    *[("default_rng", name, calls[1]) for name, calls in trials.GENERATOR.items() if name != "shuffle"],
    *[("RandomState", name, calls[1]) for name, calls in trials.LEGACY.items() if name != "shuffle"],
]


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
@pytest.mark.parametrize(("maker", "name", "args"), FIRST, ids=[f"{maker}-{name}" for maker, name, _ in FIRST])
def test_numpy_draws_the_first_times(monkeypatch: pytest.MonkeyPatch, maker: str, name: str, args: tuple[Any, ...]) -> None:
    monkeypatch.setattr(native, "SOON", 3 * native.COUNTED)
    monkeypatch.setattr(native, "_calls", Counter())
    ours, theirs = (getattr(module.random, maker)(5) for module in (lazynp, numpy))
    waited = 0
    while waited < 1000 and (same(ours, theirs, name, *args), getattr(ours, name).waits)[1]:
        waited += 1
    assert waited == (30 if maker == "default_rng" and name.endswith(("normal", "exponential")) else 3) * native.COUNTED - 1
    same(ours, theirs, name, *args)
    assert not getattr(getattr(lazynp.random, maker)(5), name).waits  # nor do those of other generators


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
@pytest.mark.parametrize("size", [8000, (80, 100)])
def test_numpy_does_not_draw_many(monkeypatch: pytest.MonkeyPatch, size: Any) -> None:
    monkeypatch.setattr(native, "SOON", 3 * native.COUNTED)
    monkeypatch.setattr(native, "_calls", Counter())
    ours, theirs = pair(5)
    same(ours, theirs, "normal", size=3)
    assert ours.normal.waits
    same(ours, theirs, "normal", size=size)
    assert not ours.normal.waits


# Threads whose draws are the first large ones of a method, and ask for what draws them at once.
AT_ONCE = """
import sys, threading
import numpy, lazynp

def drawn(draw, call):
    begin, found = threading.Barrier(4), []

    def work():
        begin.wait()
        found.extend(float(numpy.asarray(call(draw)).sum()) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)

for maker, name, call in [
    ("default_rng", "random", lambda draw: draw((300_000,))), ("default_rng", "normal", lambda draw: draw(size=(600, 700))),
    ("RandomState", "rand", lambda draw: draw(5000, 60)), ("RandomState", "randint", lambda draw: draw(9, size=300_000)),
]:
    ours, theirs = (drawn(getattr(getattr(module.random, maker)(3), name), call) for module in (lazynp, numpy))
    assert ours == theirs, name
    assert not getattr(getattr(lazynp.random, maker)(3), name).waits
"""


def test_threads_ask_at_once_for_what_draws() -> None:
    subprocess.run([sys.executable, "-c", AT_ONCE], check=True, timeout=120)


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
def test_bounds_are_no_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "SOON", 500)
    monkeypatch.setattr(native, "_calls", Counter())
    ours, theirs = pair(5)
    for args in [(1 << 31,), (0, 10**9), (0, 10**12, 3)]:
        same(ours, theirs, "integers", *args)
    assert ours.integers.waits
    same(ours, theirs, "integers", 0, 9, 10**5)
    assert not ours.integers.waits


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
def test_the_end_of_the_stack_is_no_answer() -> None:
    """What could not be asked for there is asked for later."""
    native.usable.cache_clear()
    method = numpy.random.default_rng(0).random

    def down(left: int) -> Any:
        return native.drawn(method) if left == 0 else down(left - 1)

    refused = 0
    for left in range(sys.getrecursionlimit() - len(inspect.stack()) - 60, sys.getrecursionlimit()):
        try:
            assert down(left) is not method
        except RecursionError:
            refused += 1
    assert refused
    assert native.drawn(method) is not method


class OwnBits(numpy.random.PCG64):
    pass


class OwnGenerator(numpy.random.Generator):
    pass


@pytest.mark.parametrize("bits", [numpy.random.MT19937, numpy.random.PCG64DXSM, numpy.random.Philox, numpy.random.SFC64, OwnBits])
def test_others_are_numpys(bits: Any) -> None:
    theirs = numpy.random.Generator(bits(3))
    for name in native.GENERATOR:
        assert native.drawn(getattr(theirs, name)) == getattr(theirs, name)
    ours = lazynp.random.Generator(bits(3))
    for name, args in CALLS:
        same(ours, theirs, name, *args, size=300)
    assert native.drawn(method := OwnGenerator(numpy.random.PCG64(1)).random) is method
    assert native.drawn(method := numpy.random.RandomState(numpy.random.PCG64(1)).rand) is method


def test_state_that_the_user_sets() -> None:
    ours, theirs = pair(11)
    same(ours, theirs, "standard_normal", 1000)
    before = ours.bit_generator.state
    first = numpy.asarray(ours.standard_normal(1000))
    ours.bit_generator.state = before
    assert numpy.asarray(ours.standard_normal(1000)).tobytes() == first.tobytes() == theirs.standard_normal(1000).tobytes()
    for rng in ours, theirs:
        rng.bit_generator.state = {**before, "has_uint32": 1, "uinteger": 77}
    same(ours, theirs, "integers", 1000, size=3)
    same(ours, theirs, "random", 500)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda rng: pickle.loads(pickle.dumps(rng))])
def test_copies_go_their_own_ways(copied: Any) -> None:
    ours, theirs = pair(12)
    same(ours, theirs, "random", 300)
    other, others = copied(ours), copied(theirs)
    for _ in range(2):
        same(ours, theirs, "standard_normal", 300)
        same(other, others, "standard_exponential", 300)
    for child, theirs_child in zip(ours.spawn(2), theirs.spawn(2), strict=True):
        same(child, theirs_child, "normal", 0, 2, 300)


def test_a_method_outlives_its_generator() -> None:
    draw = lazynp.random.default_rng(4).random
    assert numpy.asarray(draw(1000)).tobytes() == numpy.random.default_rng(4).random(1000).tobytes()


def test_threads_share_a_generator() -> None:
    size, calls, threads = 5000, 20, 4
    rng = lazynp.random.default_rng(6)
    found: list[Any] = []

    def work() -> None:
        for k in range(calls):
            found.append(numpy.asarray(rng.random(size + k % 2)))

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    numbers = numpy.concatenate(found)
    theirs = numpy.random.default_rng(6)
    assert numpy.sort(numbers).tobytes() == numpy.sort(theirs.random(len(numbers))).tobytes()
    assert rng.bit_generator.state == theirs.bit_generator.state


@pytest.mark.parametrize("size", [None, 3, 10**5])
def test_a_draw_waits_for_the_lock(size: Any) -> None:
    rng = lazynp.random.default_rng(8)
    rng.random()
    drawn = threading.Event()

    def work() -> None:
        rng.random(size)
        drawn.set()

    thread = threading.Thread(target=work)
    with rng.bit_generator.lock:
        state = rng.bit_generator.state
        thread.start()
        assert not drawn.wait(0.05)
        assert rng.bit_generator.state == state
        if isinstance(rng.bit_generator.lock, type(threading.RLock())):  # NumPy's, from 2.4 on
            rng.random(2)  # it is this thread's
    thread.join(10)
    assert drawn.is_set()


def test_large_results_are_recorded_ones() -> None:
    n = 600_000
    ours, theirs = pair(9)
    x, y = ours.standard_normal(n), theirs.standard_normal(n)
    assert numpy.asarray(lazynp.exp(x).sum()) == pytest.approx(numpy.exp(y).sum(), rel=1e-12)
    same(ours, theirs, "random", n)


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
@pytest.mark.parametrize("of", [ziggurats.NORMAL, ziggurats.EXPONENTIAL])
def test_layers_are_those_of_numpy(of: ziggurats.Ziggurat) -> None:
    """They stand in NumPy's library as they were read from its decisions."""
    (library,) = [path for path in Path(numpy.random.__path__[0]).glob("_generator*") if path.suffix in (".so", ".pyd", ".dylib")]
    content = library.read_bytes()
    widths, limits, heights, start = ziggurats.layers(of, native.core().Script)
    for table in widths, limits, heights, numpy.float64(start):
        assert table.tobytes() in content


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
def test_what_does_not_agree_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    method = numpy.random.default_rng(0).random
    native.usable.cache_clear()
    other = SimpleNamespace(drawn=lambda *_: numpy.random.default_rng(1).random)
    monkeypatch.setattr(native, "core", lambda: other)
    assert native.drawn(method) is method
    native.usable.cache_clear()
    monkeypatch.undo()
    native.usable.cache_clear()
    assert native.drawn(method) is not method


@pytest.mark.skipif(native.core() is None, reason="draws are not built here")
def test_a_state_elsewhere_is_not_believed() -> None:
    rng, state = numpy.random.default_rng(0), numpy.random.RandomState(0)
    assert native.core().drawn(rng.random, numpy.random.MT19937(0), False) is None
    assert native.core().drawn(state.rand, numpy.random.MT19937(0), True) is None
    assert native.core().drawn(state.rand, state._bit_generator, True) is not None


def test_many() -> None:
    """``LAZYNP_EXAMPLES`` sets how many, in thousands."""
    examples = int(os.environ.get("LAZYNP_EXAMPLES") or 0)
    for rngs in pair(examples + 13), legacy_pair(examples + 13):
        for name in "standard_normal", "standard_exponential", "random":
            same(*rngs, name, 1000 * max(examples, 300))
