"""What is computed once: equal literals, and the operands of what commutes in either order, make equal subexpressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.numpy.source import translate
from lazynp.codegen import ir
from lazynp.codegen.items import KernelItem
from lazynp.graph.op import Kind
from lazynp.values import config
from tests.schedule.plans import program_of, scheduled

pytestmark = pytest.mark.usefixtures("recorded")


def given(dtype: str = "f8") -> tuple[Any, Any]:
    numbers = numpy.random.default_rng(0).uniform(1, 100, (2, 200)).astype(dtype)
    return np.asarray(numbers[0]), np.asarray(numbers[1])


def in_kernels(wanted: Any) -> Counter[str]:
    """How often each operation stands in the kernels of ``wanted``."""
    found: Counter[str] = Counter()
    for item in scheduled(wanted).items:
        assert isinstance(item, KernelItem)
        pending = [statement for phase in item.code.phases for statement in phase.body]
        while pending:
            statement = pending.pop()
            if isinstance(statement, ir.Compute):
                found[statement.op.name] += 1
            pending += getattr(statement, "body", ())
    return found


def recorded(wanted: Any) -> Counter[str]:
    """How often each elementwise operation stands in the program."""
    return Counter(entry.op.name for entry in program_of(wanted).entries if entry.op.kind is Kind.ELEMENTWISE)


def test_equal_literals_make_one_exponential() -> None:
    a, _ = given()
    y = np.exp(-0.5 * a) + np.exp(-0.5 * a) ** 2
    assert in_kernels(y) == {"exp": 1, "multiply": 2, "add": 1}


def test_commuted_factors_make_one_exponential() -> None:
    a, b = given()
    y = np.exp(-0.5 * a) + np.exp(a * -0.5) ** 2
    assert in_kernels(y) == {"exp": 1, "multiply": 2, "add": 1}
    y = np.sin(a * b + 1) * np.cos(1 + b * a)
    assert in_kernels(y) == {"sin": 1, "cos": 1, "multiply": 2, "add": 1}


def test_the_numpy_tier_computes_them_once_too() -> None:
    a, _ = given()
    source = translate(program_of(np.exp(-0.5 * a) + np.exp(a * -0.5) ** 2))
    assert source.text.count("exp(") == 1


def test_what_becomes_equal_only_when_simplified() -> None:
    a, b = given("f4")
    wide = a.astype("f8").astype("f4")
    assert in_kernels(np.exp(wide + b) + np.exp(b + a)) == {"exp": 1, "add": 2}


COMMUTING: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("?bBiIlLefdFD", np.add), "multiply": ("?bBiIlLefd", np.multiply),
    "equal": ("?biLefdFD", np.equal), "not_equal": ("?biLefdFD", np.not_equal),
    "bitwise_and": ("?bBiIlL", np.bitwise_and), "bitwise_or": ("?bBiIlL", np.bitwise_or), "bitwise_xor": ("?bBiIlL", np.bitwise_xor),
    "maximum": ("?bBiIlL", np.maximum), "minimum": ("?bBiIlL", np.minimum), "gcd": ("bBiIlL", np.gcd), "lcm": ("bBiIlL", np.lcm),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMUTING)
def test_commuted_operands_are_one_subexpression(name: str) -> None:
    chars, function = COMMUTING[name]
    for char in chars:
        a, b = given(char)
        program = program_of([function(a, b), function(b, a)])
        assert program.outputs[0] == program.outputs[1], char


@pytest.mark.parametrize("name", ["subtract", "divide", "power", "arctan2", "less", "maximum", "minimum", "fmax", "fmin"])
def test_what_does_not_commute_stays_two(name: str) -> None:
    a, b = given()
    function = getattr(np, name)
    assert sum(recorded([function(a, b), function(b, a)]).values()) == 2


def test_complex_products_stay_two() -> None:
    """With fused multiply-add one of two products is rounded, which one depends on the order."""
    a, b = given("D")
    assert recorded([a * b, b * a]) == {"multiply": 2}


def test_zeros_of_unlike_sign_are_two_literals() -> None:
    a, _ = given()
    with config.override(tier="compiled"):
        y = numpy.asarray(np.copysign(a, 0.0) + 2 * np.copysign(a, -0.0))
    assert numpy.array_equal(y, -numpy.asarray(a))


def test_literals_of_unlike_dtypes_are_two() -> None:
    a, b = given("f8")
    c, d = given("f4")
    program = program_of([a * 2.0 + b, c * 2.0 + d])
    assert len([entry for entry in program.entries if entry.op.name == "const"]) == 2
