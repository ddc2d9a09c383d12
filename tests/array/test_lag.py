"""Writes of parts that lie some elements away from what they are computed from: as if all were computed before any of it is written."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import numpy
import pytest

import lazynp as np
from lazynp.array import core
from lazynp.values import config

DTYPES: Final = ("f8", "f8", "f4", "i8", "i2", "u1", "c16")
BLOCKS: Final = (1, 3, 16, 100, 1024)  # elements that are computed at a time


@pytest.fixture(autouse=True, params=["small", "large"])
def _settings(request: pytest.FixtureRequest) -> Iterator[None]:
    before = core.first_work(1 << 40)
    with config.override(tape_limit=1 << 20 if request.param == "small" else 50, tape_first=1 << 20, threads=3):
        core.share(1)  # whatever it costs, several threads
        core.lags(0)
        yield
    core.lags()
    core.share(60_000)
    core.chain_sizes(1, 64, 1024)
    core.first_work(before)


def slices(choices: random.Random, shape: tuple[int, ...], most: int, count: int) -> list[str]:
    """Subscripts of parts of one shape, each some elements away from the others."""
    found: list[list[str]] = [[] for _ in range(count)]
    for n in shape:
        width = min(most, n - 1)
        step = choices.choice([1, 1, 1, 2])
        length = (n - width) // step
        for part in found:
            begin = choices.randint(0, width)
            part.append(f"{begin}:{begin + length * step}:{step}")
    return [", ".join(part) for part in found]


def statement(choices: random.Random, shape: tuple[int, ...], kind: str) -> str:
    to, *parts = slices(choices, shape, choices.choice([1, 2, 5, 40]), choices.randint(2, 4))
    terms = [f"a[{part}]" for part in parts]
    if choices.random() < 0.3:
        terms.append(f"b[{to}]")
    if choices.random() < 0.3:
        terms.append(f"a[{to}]")
    products = [" * "] if kind != "c" else []  # of complex numbers NumPy rounds otherwise where memory overlaps
    text = choices.choice([" + ", " - ", *products]).join(terms)
    if choices.random() < 0.3 and kind in "fc":
        text = f"np.sqrt(abs({text}))" if kind == "f" else f"({text}) * 1j"
    if choices.random() < 0.3:
        return f"a[{to}] {choices.choice(['+=', '-=', '*=' if products else '+='])} {text}"
    return f"a[{to}] = ({text}) * 2"


@pytest.mark.parametrize("seed", range(60))
def test_stencils(seed: int) -> None:
    choices = random.Random(seed)
    core.chain_sizes(1, choices.choice([1, 64]), choices.choice(BLOCKS))
    for _ in range(12):
        shape = choices.choice([(700,), (9000,), (30, 40), (5, 900), (300, 7), (12, 9, 11), (2, 3000), (70, 80)])
        dtype = numpy.dtype(choices.choice(DTYPES))
        texts = [statement(choices, shape, dtype.kind) for _ in range(choices.randint(1, 3))]
        found = []
        for module in (numpy, np):
            rng = numpy.random.default_rng(seed)
            a, b = ((rng.random(shape) * 4 + 0.25).astype(dtype) for _ in range(2))
            names = {"np": module, "a": module.array(a), "b": module.array(b)}
            with numpy.errstate(all="ignore"):
                for _ in range(2):
                    for text in texts:
                        exec(text, names)
                found.append(numpy.array(names["a"]))
        for x in found:
            if dtype.kind in "fc":
                x[numpy.isnan(x)] = numpy.nan  # of two the processor chooses, by where a vector ends
        assert found[0].tobytes() == found[1].tobytes(), (shape, dtype, texts)


@pytest.mark.parametrize("text", ["a[1:-1] = a[:-2] / a[2:]", "a[:-1] = a[1:] / (a[1:] - 1) * 2", "a[5:] = 1 / (a[:-5] * 0)"])
def test_errors_are_told_once_and_nothing_is_computed_again(text: str) -> None:
    found = []
    for module in (numpy, np):
        a = numpy.arange(5000.0) % 7
        names = {"a": module.array(a), "numpy": numpy}
        with pytest.warns(RuntimeWarning) as told:
            exec(f"{text}; shown = numpy.asarray(a)", names)
        found.append((names["shown"].tobytes(), sorted({str(each.message) for each in told})))
    assert found[0] == found[1]


@pytest.mark.parametrize("shape", [(300_000,), (600, 500), (70, 60, 80)])
def test_stencils_by_several_threads(shape: tuple[int, ...]) -> None:
    inside = tuple([slice(1, -1)] * len(shape))
    before, after = (slice(None, -2), *inside[1:]), (slice(2, None), *inside[1:])
    a, x = np.array(numpy.arange(float(numpy.prod(shape))).reshape(shape)), numpy.arange(float(numpy.prod(shape))).reshape(shape)
    for _ in range(3):
        a[inside] = (a[before] + a[after]) * 0.5
        x[inside] = (x[before] + x[after]) * 0.5
    core.settle()
    numpy.testing.assert_array_equal(numpy.asarray(a), x)
