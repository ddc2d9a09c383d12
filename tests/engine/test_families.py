"""Plans that serve all sizes of a program: what is made for new sizes is what would have been made for them alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.arrays import node_of
from lazynp.engine import realize
from lazynp.graph.size import Size, Trace, gcd, recipe
from lazynp.schedule.canonicalise import canonicalise, without_sizes
from lazynp.values import config

pytestmark = pytest.mark.usefixtures("recorded")

SHAPES = [(40, 30), (41, 30), (300, 7), (299, 5), (64, 64), (65, 65), (2, 900), (513, 33), (3, 2), (1000, 257), (512, 512), (17, 90)]


@pytest.fixture(params=["compiled", "auto"])
def checked(request: pytest.FixtureRequest) -> Iterator[str]:
    """With ``debug`` every plan of a family is compared with one that was made for its sizes alone."""
    with config.override(backend=None, tier=request.param, eager=False, debug=True):
        realize.forget_plans()
        yield request.param
    realize.forget_plans()


def cases(name: str) -> list[int]:
    return [len(family.cases.get(name, ())) for family in realize._engine.families.known.values()]


def stencil(np: Any, x: Any, v: Any) -> Any:
    y = x.copy()
    y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def softmax(np: Any, x: Any, v: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def in_place(np: Any, x: Any, v: Any) -> Any:
    y = x * 2
    y[::2] += 1
    y[:, 1] = v[: y.shape[0]]
    y[-1] -= y[0]
    return y


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "elementwise": lambda np, x, v: np.sqrt(np.abs(x * 2 + 1)) / (x * x + 3),
    "broadcast": lambda np, x, v: x * v[: x.shape[1]] + v[: x.shape[0], None],
    "all sums": lambda np, x, v: (x.sum(), x.sum(axis=0), x.sum(axis=1), (x * x).mean()),
    "softmax": softmax,
    "columns": lambda np, x, v: (x - x.mean(axis=0)) / (x.std(axis=0) + 1),
    "distances": lambda np, x, v: ((x[:20, None] - x[None]) ** 2).sum(axis=-1),
    "transposed": lambda np, x, v: x.T.copy() + 1,
    "transposed sum": lambda np, x, v: (x + 1).T @ x,
    "reshape": lambda np, x, v: (x.reshape(-1)[::2] * 2, x.reshape(x.shape[1], x.shape[0]) + 1),
    "joined": lambda np, x, v: np.concatenate([x, x * 2, x[:1]], axis=0) + 1,
    "joined across": lambda np, x, v: np.concatenate([x[:, :1], x * 2], axis=1),
    "padded": lambda np, x, v: np.pad(x, 1) * 2 + 1,
    "shifted": lambda np, x, v: x[1:] - x[:-1],
    "every other": lambda np, x, v: x[::-2, ::2] + 1,
    "where": lambda np, x, v: np.where(x > 0, x, -x).sum(axis=1),
    "gather": lambda np, x, v: x[np.arange(0, x.shape[0], 2) // 2] * 2,
    "rolled": lambda np, x, v: np.roll(x, 1, axis=0) + x,
    "counted": lambda np, x, v: np.arange(x.shape[0])[:, None] * x,
    "running": lambda np, x, v: np.cumsum(x * 2, axis=0) + 1,
    "sorted": lambda np, x, v: np.sort(x * -1, axis=1)[:, :1] + x,
    "extremes": lambda np, x, v: (x.argmax(axis=1), x.min(axis=0), (x > 1).any(axis=1)),
    "integers": lambda np, x, v: ((x * 10).astype("i4") // 3 % 5).sum(axis=0),
    "stencil": stencil,
    "in place": in_place,
}


QUICK = ("elementwise", "all sums", "in place", "transposed sum")  # of what is compiled; the rest is slow


@pytest.mark.parametrize(
    ("program", "checked"),
    [
        pytest.param(program, tier, id=f"{tier}-{name}", marks=pytest.mark.slow if tier == "compiled" and name not in QUICK else ())
        for tier in ("compiled", "auto")
        for name, program in PROGRAMS.items()
    ],
    indirect=["checked"],
)
def test_new_sizes_have_the_plan_they_would_have_alone(program: Callable[..., Any], checked: str) -> None:
    rng = numpy.random.default_rng(0)
    for shape in SHAPES:
        x, v = rng.standard_normal(shape), rng.standard_normal(1200)
        got, expected = program(np, np.asarray(x), np.asarray(v)), program(numpy, x, v)
        for a, b in zip(got if isinstance(got, tuple) else (got,), expected if isinstance(expected, tuple) else (expected,), strict=True):
            numpy.testing.assert_allclose(numpy.asarray(a), b, rtol=1e-11, atol=1e-11)
            assert numpy.asarray(a).dtype == b.dtype and numpy.shape(a) == b.shape
    assert not any(family.refused - set(family.cases) for family in realize._engine.families.known.values())


def test_a_thousand_shapes_are_planned_a_few_times() -> None:
    x = np.asarray(numpy.random.default_rng(0).standard_normal(400_000))
    with config.override(backend=None, tier="compiled", eager=False):
        realize.forget_plans()
        for n in range(300_000, 301_000):
            y = x[:n]
            (np.sqrt(np.abs(y * 2 + 1)) / (y * y + 3)).realize()
        assert sum(cases("llvm")) == 1
        realize.forget_plans()


def test_a_key_without_sizes_names_them() -> None:
    def wanted(n: int, m: int) -> Any:
        x = np.asarray(numpy.ones((n, m)))
        y = np.pad(x[1:, ::-1] * 2 + x[:-1], 3).sum(axis=0)
        return [node_of(np.concatenate([y, np.arange(5.0), y])[2:])]

    with config.override(backend=None, tier="auto", eager=False):
        first, extents = without_sizes(canonicalise(wanted(4, 6)).key)
        other, others = without_sizes(canonicalise(wanted(40, 19)).key)
        assert first == other and len(extents) == len(others) and set(extents) > {4, 6} and set(others) > {40, 19}
        assert without_sizes(canonicalise(wanted(4, 4)).key)[0] != first


def test_what_is_noted_of_sizes_decides_whom_a_trace_serves() -> None:
    trace = Trace()
    n, m = trace.size(10), trace.size(30)
    assert n < m and n * m != 301 and n + m - 1 >= 39 and max(n, m) is m
    assert n != 1 and n > 0 and n and m >= 2  # true of all sizes: nothing to note
    assert n * m is n * m and m * n is n * m and n * 1 is n and n + 0 is n and n * 0 == 0
    assert -(-m // 8) == 4 and gcd(n, 4) == 2 and m % 7 == 2 and abs(n - m) == 20 and n / 4 == 2.5 and f"{n / 4:.3g}" == "2.5"
    assert (m - 1).bit_length() is (m - 1).bit_length() and m.bit_length() == 5
    holds = trace.function([n * m, -n, (n - 1).bit_length()])
    assert holds(10, 30) == (300, -10, 4)
    assert holds(30, 10) is None and holds(10, 31) is None and holds(10, 26) is None


@pytest.mark.parametrize("plain", [int, str, repr, float, range, lambda n: [0][n - 7], lambda n: f"{n}"])
def test_what_makes_a_plain_number_of_a_size_holds_for_that_one_alone(plain: Callable[[Any], Any]) -> None:
    trace = Trace()
    n = trace.size(7)
    assert plain(n) == plain(7)
    holds = trace.function([])
    assert holds(7) == () and holds(8) is None


def test_equal_sizes_are_equal_keys() -> None:
    trace = Trace()
    n, m = trace.size(12), trace.size(13)
    assert {n + 1: "a"}[m] == "a" and {13: "b"}[m] == "b" and n + 1 in {m}
    holds = trace.function([])
    assert holds(12, 13) == () and holds(12, 14) is None and holds(13, 14) is None


def test_a_recipe_puts_numbers_into_whatever_holds_sizes() -> None:
    trace = Trace()
    n, m = trace.size(2), trace.size(3)
    results: list[Size] = []
    made = recipe([(n, "x"), {"k": n * m}, [1, (2, [m])], (1, 2)], results)
    holds = trace.function(results)
    numbers = holds(5, 6)
    assert made is not None and numbers is not None
    assert made(numbers) == [(5, "x"), {"k": 30}, [1, (2, [6])], (1, 2)]
    assert recipe([1, (2, "x")], results) is None


def test_random_sizes_of_random_expressions_are_counted_alike() -> None:
    chooser = random.Random(0)
    for _ in range(300):
        values = [chooser.randint(2, 40) for _ in range(3)]
        trace = Trace()
        pool: list[Any] = [trace.size(value) for value in values]
        plain: list[Any] = list(values)
        steps = []
        for _ in range(12):
            a, b = chooser.randrange(len(pool)), chooser.randrange(len(pool))
            sign = chooser.choice(["+", "-", "*", "max", "//", "%"])
            steps.append((sign, a, b))
        def run(numbers: list[Any], steps: list[Any]) -> list[Any]:
            found = list(numbers)
            for sign, a, b in steps:
                x, y = found[a], found[b]
                if sign == "max":
                    found.append(x if x > y else y)
                elif sign in ("//", "%"):
                    found.append((x // y if sign == "//" else x % y) if y != 0 else x)
                else:
                    found.append({"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y}[sign](x, y))
            return found
        traced = run(pool, steps)
        assert [x.value if isinstance(x, Size) else x for x in traced] == run(plain, steps)
        results: list[Size] = []
        made = recipe(traced, results)
        holds = trace.function(results)
        served = 0
        for _ in range(20):
            others = [chooser.randint(2, 40) for _ in range(3)]
            numbers = holds(*others)
            if numbers is not None:
                served += 1
                assert made is not None and made(numbers) == run(others, steps)
        assert holds(*values) is not None
