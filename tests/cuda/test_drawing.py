"""Random numbers on a GPU: NumPy's bits, and NumPy's state of the generator behind them."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.namespace.device.drawing import FEW
from tests.cuda.host import machine, on_host, transfers

N = FEW + 7


@pytest.fixture
def gpu() -> Iterator[Any]:
    with machine(seed=0) as fake, lazynp.device("cuda"):
        yield fake


def generators(seed: Any = 5) -> tuple[Any, Any]:
    return numpy.random.Generator(numpy.random.Philox(seed)), lazynp.random.Generator(lazynp.random.Philox(seed))


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
)  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_numpys_bits_and_state(text: str, gpu: Any) -> None:
    """At the start of a block, behind any number of words and halves of words, and from where it left the generator."""
    theirs, ours = generators()
    check(text, theirs, ours)
    for before in ("rng.random(1)", "rng.random(3, 'f4')", "rng.integers(9, size=2, dtype='i4')"):
        draw(before, theirs, ours)
        check(text, theirs, ours)
    check(text, theirs, ours)


def test_draws_of_host_and_device_are_one_stream(gpu: Any) -> None:
    theirs, ours = generators([1, 2, 3])
    random = numpy.random.default_rng(0)
    for text in random.choice([*CALLS, "rng.standard_normal(5)", "rng.random()", "rng.random(2, 'f4')", "rng.integers(7)"], 40):
        found, expected = draw(text, theirs, ours)
        numpy.testing.assert_array_equal(numpy.asarray(found), expected, text)


def test_streams_that_begin_elsewhere(gpu: Any) -> None:
    for change in ("advance(2**130 + 5)", "advance(7)", "jumped(3)"):
        theirs, ours = generators()
        draw("rng.random(3)", theirs, ours)
        for rng in (theirs, ours):
            bits = eval(f"rng.bit_generator.{change}", {"rng": rng})
            rng = rng if change.startswith("advance") else type(rng)(bits)
        check("rng.random(N)", theirs, ours)
    for rngs in zip(*[rng.spawn(2) for rng in generators()], strict=True):
        check("rng.random(N)", *rngs)
    theirs, ours = generators()
    copy = pickle.loads(pickle.dumps(ours))
    check("rng.random(N)", theirs, ours)
    check("rng.random(N)", generators()[0], copy)
    given = {"key": numpy.array([3, 2**64 - 1], "u8"), "counter": numpy.array([2**50, 1, 2**64 - 1, 4], "u8")}
    check("rng.integers(1 << 30, size=N)", *[m.random.Generator(m.random.Philox(**given)) for m in (numpy, lazynp)])


def test_what_the_host_draws(gpu: Any) -> None:
    """Few numbers, numbers that take a number of words which depends on them, words that do not follow from the counter."""
    theirs, ours = generators()
    check("rng.random(100)", theirs, ours, host=True)
    check("rng.integers([3, 4], size=(N, 2))", theirs, ours, host=True)
    check("rng.integers(5, 6, N)", theirs, ours, host=True)
    check("rng.permutation(N)", theirs, ours, host=True)
    check("rng.choice(9, N, p=[0.5, 0.5] + [0] * 7)", theirs, ours, host=True)
    for rng in (theirs, ours):
        state = rng.bit_generator.state
        state["buffer"], state["buffer_pos"] = numpy.arange(4, dtype="u8"), 2
        rng.bit_generator.state = state
    check("rng.random(N)", theirs, ours, host=True)
    check("rng.random(N)", *[numpy.random.default_rng(3), lazynp.random.default_rng(3)], host=True)
    high = {"key": numpy.array([1, 2], "u8"), "counter": numpy.array([2**63, 0, 0, 0], "u8")}
    check("rng.random(N)", *[m.random.Generator(m.random.Philox(**high)) for m in (numpy, lazynp)], host=True)
    for text in ("rng.uniform(0, np.inf, N)", "rng.integers(0, 300, N, 'u1')", "rng.integers(3, 1, N)", "rng.random(N, 'i4')"):
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


def test_threads_share_a_generator(gpu: Any) -> None:
    theirs, ours = generators()
    drawn: list[Any] = []

    def work() -> None:
        with lazynp.device("cuda"):
            drawn.extend([ours.random(N) for _ in range(3)])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = theirs.random((9, N))
    assert sorted(numpy.asarray(x).tobytes() for x in drawn) == sorted(row.tobytes() for row in expected)
    assert str(theirs.bit_generator.state) == str(ours.bit_generator.state)
