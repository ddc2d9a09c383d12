"""Floating-point errors: whatever NumPy reports of an element, the thread that computes it notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lazynp as xp
from lazynp.backends.cuda import scalars
from lazynp.backends.cuda.errors import STRICT
from lazynp.backends.cuda.looks import PASSED
from lazynp.backends.cuda.types import TINY
from lazynp.backends.llvm.scalars import MATH
from lazynp.codegen.grid import nest as grid
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.errors import ALL, UNDER
from lazynp.graph.op import Op
from tests.backends.llvm.test_operations import BOOL, FLOATS, INTEGERS, conversion_values, extremes, pairs
from tests.codegen.engines import Array, leaf, run
from tests.cuda import collected
from tests.cuda.rendered import plan_of

ARITHMETIC = [o.ADD, o.SUBTRACT, o.MULTIPLY, o.DIVIDE, o.FLOOR_DIVIDE, o.REMAINDER, o.FMOD, o.NEXTAFTER, o.LOGADDEXP, o.LOGADDEXP2]
UNARY, BINARY = ([op for op in MATH if op.arity == n] for n in (1, 2))

def noted(node: Any, n: int, wanted: int = ALL) -> Array:
    """What each thread notes, one for each of n elements."""
    found = np.zeros(-(-n // 256) * 256, np.uint64)
    run(plan_of([node], noted=found, wanted=wanted), [node])
    return found[:n]


def reported(function: Any, *arrays: Array) -> Array:
    """NumPy's errors, element by element, in its bits."""
    found = np.zeros(len(arrays[0]), np.uint64)
    heard = 0

    def hear(_: str, flag: int) -> None:
        nonlocal heard
        heard |= flag

    with np.errstate(all="call", call=hear):
        for k, elements in enumerate(zip(*[a.reshape(-1, 1) for a in arrays], strict=True)):
            heard = 0
            function(*elements)
            found[k] = heard
    return found


def check(op: Op, dtype: np.dtype, function: Any, *arrays: Array) -> None:
    got = noted(build.elementwise(op, dtype, *[leaf(array) for array in arrays]), len(arrays[0]))
    expected = reported(function, *arrays)
    # NumPy's own vector functions report underflows where there are none.
    vague = np.uint64(UNDER if op in UNARY else 0)
    missed = expected & ~got & ~vague != 0
    examples = [(got[k], expected[k], *[a[k] for a in arrays]) for k in np.flatnonzero(missed)[:5]]
    assert not missed.any(), f"{op.name} of {arrays[0].dtype} misses (noted, reported, operands): {examples}"
    vain = (got & ~np.uint64(UNDER) != 0) & (expected == 0) & (op not in STRICT)
    examples = [(got[k], *[a[k] for a in arrays]) for k in np.flatnonzero(vain)[:5]]
    assert not vain.any(), f"{op.name} of {arrays[0].dtype} notes in vain (noted, operands): {examples}"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [*ARITHMETIC, *BINARY], ids=repr)
def test_of_two_numbers(op: Op, dtype: np.dtype) -> None:
    check(op, dtype, getattr(np, op.name), *pairs(extremes(dtype)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [o.SQRT, o.SPACING, o.FLOOR, o.ABSOLUTE, *UNARY], ids=repr)
def test_of_one_number(op: Op, dtype: np.dtype) -> None:
    with np.errstate(over="ignore"):
        more = np.array([800.0, -800.0, -1.0000001, 1e30, 90.0, 100.0, -100.0, 12.0, 1.0000001]).astype(dtype)
    check(op, dtype, getattr(np, op.name), np.concatenate([extremes(dtype), more]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_of_scaling(dtype: np.dtype) -> None:
    powers = np.array([0, 1, -1, 5, -20, 130, -160, 1100, -1100], np.int32)
    x = extremes(dtype)
    check(o.LDEXP, dtype, np.ldexp, np.repeat(x, len(powers)), np.tile(powers, len(x)))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_of_integers(dtype: np.dtype) -> None:
    for op in (o.FLOOR_DIVIDE, o.REMAINDER, o.FMOD):
        check(op, dtype, getattr(np, op.name), *pairs(extremes(dtype)))


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS], ids=str)
def test_of_conversions(source: np.dtype) -> None:
    x = conversion_values(source)
    for target in (BOOL, *INTEGERS, *FLOATS):
        if target != source and scalars.supported(o.CAST, target, [source]):
            check(o.CAST, target, lambda a, target=target: a.astype(target), x)


CHAIN = [o.ADD, o.SUBTRACT, o.MULTIPLY, o.DIVIDE, o.MAXIMUM, o.NEGATIVE, o.SQRT, o.FLOOR, o.ABSOLUTE, o.FMOD, o.FMIN]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("wanted", [ALL, ALL & ~UNDER], ids=["all", "no underflow"])
@pytest.mark.parametrize("seed", range(4))
def test_of_chains_nothing_is_lost_on_the_way(dtype: np.dtype, wanted: int, seed: int) -> None:
    """One look at the end of a chain tells of all its operations, or is the reason to compute them once more (not for underflow)."""
    random = np.random.default_rng(seed)
    x, y = pairs(extremes(dtype)[:: 2 if seed % 2 else 1])
    steps = [(CHAIN[random.integers(len(CHAIN))], *random.integers(0, k + 2, 2)) for k in range(20)]

    def through(apply: Any, values: list[Any]) -> list[Any]:
        for op, a, b in steps:
            values.append(apply(op, *([values[a]] if op in (o.NEGATIVE, o.SQRT, o.FLOOR, o.ABSOLUTE) else [values[a], values[b]])))
        return values

    leaves = [leaf(x), leaf(y)]
    nodes = through(lambda op, *args: build.elementwise(op, dtype, *args), list(leaves))
    total = nodes[2]
    for node in nodes[3:]:
        total = build.elementwise(o.FMAX, dtype, total, node)  # which hides what it can
    got = noted(total, len(x), wanted)
    expected = np.uint64(wanted) & reported(lambda *pair: through(lambda op, *args: getattr(np, op.name)(*args), list(pair)), x, y)
    missed = np.flatnonzero(expected & ~got)
    assert not len(missed), [(steps, got[k], expected[k], x[k], y[k]) for k in missed[:3]]


# What is looked for ----------------------------------------------------------------------------------------------------------


def source(dtype: str = "f8", **state: str) -> str:
    """The kernel of a few operations that can go wrong in every way."""
    with np.errstate(**state):
        x = xp.asarray(np.ones(1000, dtype))
        return "".join(collected.sources([(xp.exp(x * 3) / (x - 1) * x)._node]))


def test_kernels_look_for_what_somebody_wants_to_hear_of() -> None:
    tiny = TINY["f8"]
    default = source()
    assert "noted &= 11u;" in default and tiny not in default and "flags" in default
    assert "__match_any_sync(0xffffffffu, noted)" in default  # of the threads that noted the same one speaks
    assert tiny in source(under="warn") and "noted &= 15u;" in source(under="warn")
    only = source(all="ignore", under="warn")
    assert tiny in only and "lz_wrong" not in only and "noted &= 4u;" in only
    nothing = source(all="ignore")
    assert not any(word in nothing for word in ("noted", "flags", "lz_wrong", tiny))
    integers = source("i4", all="ignore")
    assert "flags" not in integers


def polynomial(x: Any, degree: int) -> Any:
    total = x
    for k in range(degree):
        total = total * x - float(k)
    return total


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize > 2], ids=str)
@pytest.mark.parametrize("degree", [9, 24])  # with few scalars and with many
def test_of_long_chains_each_operation_tells(dtype: np.dtype, degree: int) -> None:
    x = np.concatenate([extremes(dtype), -np.geomspace(1, 1e30, 50, dtype=dtype)])
    node = polynomial(xp.asarray(x), degree)._node
    (text,) = collected.sources([node])
    assert "_look0(" in text and ("__grid_constant__" in text) == (degree > PASSED)
    got, expected = noted(node, len(x), ALL & ~UNDER), np.uint64(ALL & ~UNDER) & reported(lambda a: polynomial(a, degree), x)
    assert not np.flatnonzero(expected & ~got).size and not np.flatnonzero(got[expected == 0]).size


def test_a_loop_before_a_long_chain_tells_of_its_own_errors() -> None:
    x = np.ones((20, 300))
    x[:, 7] = 1e308
    x[3, 9] = np.inf
    node = polynomial(xp.asarray(x).sum(axis=0) / 20.0, 9)._node
    assert "_look0(" in collected.sources([node])[0]
    got = noted(node, 300, ALL & ~UNDER)
    assert np.flatnonzero(got).tolist() == [7]


@pytest.mark.parametrize(("degree", "calls"), [(6, 0), (7, 3)])
def test_long_chains_are_looked_at_apart(monkeypatch: pytest.MonkeyPatch, degree: int, calls: int) -> None:
    """Two elements of one thread and a last one alone share the function."""
    monkeypatch.setattr(grid, "ELEMENTS_FROM", 0)
    (text,) = collected.sources([polynomial(xp.asarray(np.ones(1000)), degree)._node])
    assert text.count("k_p0_look0(v") == calls
    assert text.count("__noinline__ unsigned int k_p0_look0(") == (calls > 0)
    assert text.count("lz_look_f8(v") == (2 * degree if calls else 0)


def test_where_much_is_read_results_are_kept() -> None:
    x = xp.asarray(np.ones((1000, 13)))
    total = x[:, 0]
    for k in range(1, 13):
        total = total * x[:, k] + 2.0
    assert "_look0(" not in "".join(collected.sources([total._node]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_zeros_are_no_underflow(dtype: np.dtype) -> None:
    tiny = np.finfo(dtype).smallest_normal
    x = np.array([0, -0.0, 1, 0, tiny, tiny, 0, tiny], dtype)
    y = np.array([1, 3, 0, 0, tiny, 0.5, tiny, 3], dtype)
    assert noted(build.elementwise(o.MULTIPLY, dtype, leaf(x), leaf(y)), 8).tolist() == [0, 0, 0, 0, 4, 4, 0, 0]
    quotient = build.elementwise(o.DIVIDE, dtype, leaf(x), leaf(np.full(8, 1 / tiny, dtype)))
    assert noted(quotient, 8).tolist() == [0, 0, 0, 0, 4, 4, 0, 4]
