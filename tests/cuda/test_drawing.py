"""Random numbers on a GPU: NumPy's bits, and NumPy's state of the generator behind them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.namespace.device import ziggurats
from lazynp.namespace.device.drawing import FEW
from tests.cuda.host import machine, on_host, transfers
from tests.in_turns import in_threads

N = FEW + 7


@contextmanager
def drawing(seed: int) -> Iterator[Any]:
    """A machine whose GPU is the default device."""
    with machine(seed=seed) as fake, lazynp.device("cuda"):
        yield fake


@pytest.fixture
def gpu() -> Iterator[Any]:
    with drawing(0) as fake:
        yield fake


KINDS = ("Philox", "PCG64", "PCG64DXSM")


def generators(seed: Any = 5, kind: str = "Philox") -> tuple[Any, Any]:
    theirs, ours = [m.random.Generator(getattr(m.random, kind)(seed)) for m in (numpy, lazynp)]
    return theirs, ours


def draw(text: str, theirs: Any, ours: Any) -> tuple[Any, Any]:
    """The same call of both; their states are compared after it."""
    expected = eval(text, {"rng": theirs, "np": numpy, "N": N})
    found = eval(text, {"rng": ours, "np": lazynp, "N": N})
    assert str(theirs.bit_generator.state) == str(ours.bit_generator.state), text
    return found, expected


def check(text: str, theirs: Any, ours: Any, host: bool = False) -> None:
    report.reset()
    found, expected = draw(text, theirs, ours)
    assert bool(on_host()) == host, (text, on_host())
    assert found.device == "cuda:0"
    back = numpy.asarray(found)
    assert (back.dtype, back.shape, back.tobytes()) == (expected.dtype, expected.shape, expected.tobytes()), text


CALLS = (
    "rng.random(N)", "rng.random((4, N // 3))", "rng.random(N, dtype='f4')", "rng.random(N, np.float32)", "rng.uniform(-3, 7.5, N)",
    "rng.uniform(size=N)", "rng.uniform(np.float64(2), 2, N)", "rng.integers(10, size=N)", "rng.integers(0, 1 << 20, N)",
    "rng.integers(0, 1 << 32, N)", "rng.integers(-5, 1 << 40, N)", "rng.integers(3 << 60, size=N, dtype='u8')",
    "rng.integers(0, 2**64, N, 'u8')", "rng.integers(0, 256, N, 'u1')", "rng.integers(0, 200, N, 'u1')", "rng.integers(-3, 30000, N, 'i2')",
    "rng.integers(0, 2, N, bool)", "rng.integers(0, 3 << 30, N)", "rng.integers(-5, 3 << 29, N, 'i4', endpoint=True)",
    "rng.integers(-(1 << 63), 1 << 62, N)", "rng.integers(0, (1 << 31) + 1, N, np.uint32)", "rng.choice(77, N)",
    "rng.choice(np.arange(90) ** 2, (N, 1))", "rng.choice(np.ones((3, 2)), N)",
    "rng.standard_normal(N)", "rng.standard_normal((N, 2), np.float64)", "rng.normal(size=N)", "rng.normal(3, 0.5, (2, N))",
    "rng.standard_exponential(N)", "rng.exponential(2.5, N)", "rng.rayleigh(size=N)", "rng.rayleigh(1.7, (N, 2))", "rng.standard_cauchy(N)",
    "rng.standard_cauchy((2, N))", "rng.triangular(-1, 0.3, 2.5, N)", "rng.triangular(0, 0, 3, N)", "rng.triangular(-2, 5, 5, (N, 2))",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", CALLS)
def test_numpys_bits_and_state(text: str, kind: str, gpu: Any) -> None:
    """At the start of a block, behind any number of words and halves of words, and from where it left the generator."""
    theirs, ours = generators(kind=kind)
    check(text, theirs, ours)
    for before in ("rng.random(1)", "rng.random(3, 'f4')", "rng.integers(9, size=2, dtype='i4')"):
        draw(before, theirs, ours)
        check(text, theirs, ours)
    check(text, theirs, ours)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_host_and_device_are_one_stream(kind: str, gpu: Any) -> None:
    theirs, ours = generators([1, 2, 3], kind)
    random = numpy.random.default_rng(0)
    few = ["rng.standard_normal(5)", "rng.standard_exponential(9)", "rng.random()", "rng.random(2, 'f4')", "rng.integers(7)"]
    for text in random.choice([*CALLS, *few], 40):
        found, expected = draw(text, theirs, ours)
        numpy.testing.assert_array_equal(numpy.asarray(found), expected, text)


@pytest.mark.parametrize("kind", KINDS)
def test_streams_that_begin_elsewhere(kind: str, gpu: Any) -> None:
    for change in ("advance(2**127 + 5)", "advance(7)", "jumped(3)"):
        theirs, ours = generators(kind=kind)
        draw("rng.random(3)", theirs, ours)
        for rng in (theirs, ours):
            bits = eval(f"rng.bit_generator.{change}", {"rng": rng})
            rng = rng if change.startswith("advance") else type(rng)(bits)
        check("rng.random(N)", theirs, ours)
    for rngs in zip(*[rng.spawn(2) for rng in generators(kind=kind)], strict=True):
        check("rng.random(N)", *rngs)
    theirs, ours = generators(kind=kind)
    copy = pickle.loads(pickle.dumps(ours))
    check("rng.random(N)", theirs, ours)
    check("rng.random(N)", generators(kind=kind)[0], copy)


def test_counters_of_four_words(gpu: Any) -> None:
    given = {"key": numpy.array([3, 2**64 - 1], "u8"), "counter": numpy.array([2**50, 1, 2**64 - 1, 4], "u8")}
    check("rng.integers(1 << 30, size=N)", *[m.random.Generator(m.random.Philox(**given)) for m in (numpy, lazynp)])


def test_what_the_host_draws(gpu: Any) -> None:
    """Few numbers, numbers that take a number of words which depends on them, words that do not follow from the counter."""
    theirs, ours = generators()
    check("rng.random(100)", theirs, ours, host=True)
    check("rng.integers([3, 4], size=(N, 2))", theirs, ours, host=True)
    check("rng.integers(5, 6, N)", theirs, ours, host=True)
    check("rng.permutation(N)", theirs, ours, host=True)
    check("rng.standard_normal(N, 'f4')", theirs, ours, host=True)
    check("rng.standard_exponential(N, method='inv')", theirs, ours, host=True)
    check("rng.normal(np.arange(3.0), size=(N, 3))", theirs, ours, host=True)
    check("rng.gamma(2.5, size=N)", theirs, ours, host=True)
    check("rng.choice(9, N, p=[0.5, 0.5] + [0] * 7)", theirs, ours, host=True)
    for rng in (theirs, ours):
        state = rng.bit_generator.state
        state["buffer"], state["buffer_pos"] = numpy.arange(4, dtype="u8"), 2
        rng.bit_generator.state = state
    check("rng.random(N)", theirs, ours, host=True)
    check("rng.random(N)", *generators(kind="SFC64"), host=True)
    legacy = [m.random.RandomState(m.random.Philox(3)).random_sample(N) for m in (numpy, lazynp)]
    assert numpy.array_equal(*legacy) and on_host() == {"random.random", "random.random_sample"}
    high = {"key": numpy.array([1, 2], "u8"), "counter": numpy.array([2**63, 0, 0, 0], "u8")}
    check("rng.random(N)", *[m.random.Generator(m.random.Philox(**high)) for m in (numpy, lazynp)], host=True)
    check("rng.rayleigh([1.0, 2.0], size=(N, 2))", theirs, ours, host=True)
    check("rng.triangular([0, 1.0], 1, 2, (N, 2))", theirs, ours, host=True)
    refused = (
        "uniform(0, np.inf, N)", "integers(0, 300, N, 'u1')", "integers(3, 1, N)", "normal(0, -1, N)", "random(N, 'i4')", "rayleigh(-1, N)",
        "triangular(0, 3, 2, N)", "triangular(1, 1, 1, N)",
    )  # fmt: skip
    for text in [f"rng.{call}" for call in refused]:
        with pytest.raises(Exception) as expected:
            eval(text, {"rng": theirs, "np": numpy, "N": N})
        with pytest.raises(type(expected.value)) as found:
            eval(text, {"rng": ours, "np": lazynp, "N": N})
        assert str(found.value) == str(expected.value)
    with lazynp.device("cpu"):
        report.reset()
        assert ours.random(N).device == "cpu"
        assert not on_host()


def test_draws_fuse_and_copy_nothing(gpu: Any) -> None:
    _, ours = generators()
    report.reset()
    inside = (ours.random((2, N)) ** 2).sum(axis=0) < 1
    share = float(inside.mean())
    assert 0.75 < share < 0.82
    assert transfers() == {"from cuda:0": 1}
    assert not on_host()


@pytest.mark.parametrize("name", ["standard_normal", "standard_exponential"])
def test_many_numbers_of_ziggurats(name: str, gpu: Any) -> None:
    """Among so many some words decide for several others, and hundreds of numbers are of the tail."""
    for seed, kind in enumerate(KINDS):
        check(f"rng.{name}(1_000_000)", *generators(seed, kind))


def test_words_that_a_word_takes() -> None:
    """Runs of words each of which would take the next, or several."""
    decided = ziggurats._Decided.__new__(ziggurats._Decided)
    decided.places, decided.more = numpy.array([3, 4, 5, 6, 9, 10, 11, 12, 13, 20]), numpy.array([1, 1, 1, 1, 4, 1, 1, 1, 1, 2])
    decided.accepted = numpy.array([True, True, False, True, True, True, True, True, True, False])
    decided.first = decided._first()
    assert decided.places[decided.first].tolist() == [3, 5, 9, 20]
    assert decided.left_out().tolist() == [4, 5, 6, 10, 11, 12, 13, 20, 21, 22]


def test_few_words_for_many_numbers(gpu: Any, monkeypatch: Any) -> None:
    """Where more words are needed than were expected, and where a number of the tail takes more than are looked at."""
    monkeypatch.setattr(ziggurats, "NORMAL", ziggurats.NORMAL._replace(words=0.98))
    check("rng.standard_normal(N)", *generators())
    monkeypatch.setattr(ziggurats, "NORMAL", ziggurats.NORMAL._replace(tail=lambda start, place, uniform: (0.0, 0)))
    check("rng.standard_normal(N)", *generators(), host=True)


def test_the_default_generator(gpu: Any) -> None:
    theirs, ours = numpy.random.default_rng(7), lazynp.random.default_rng(7)
    check("rng.standard_normal((3, N))", theirs, ours)
    check("rng.integers(0, 10, N)", theirs, ours)


def test_threads_share_a_generator(gpu: Any) -> None:
    theirs, ours = generators()
    drawn: list[Any] = []

    def work(_: int) -> None:
        with lazynp.device("cuda"):
            drawn.extend([ours.random(N) for _ in range(3)])

    in_threads(3, work)
    expected = theirs.random((9, N))
    assert sorted(numpy.asarray(x).tobytes() for x in drawn) == sorted(row.tobytes() for row in expected)
    assert str(theirs.bit_generator.state) == str(ours.bit_generator.state)
