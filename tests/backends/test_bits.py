"""A program has the same bits before it is compiled and afterwards: operation by operation, in every layout; see ``bits``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lazynp.backends.llvm import scalars
from lazynp.backends.numpy import ordered
from lazynp.backends.numpy.ready import ReadyBackend
from lazynp.engine.realize import backend
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.graph.op import Kind, Op
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.values import config
from tests.backends import bits
from tests.codegen.engines import Array, leaf, run

DOUBLE = np.dtype(np.float64)
# the others take half a minute of compilation
QUICK = {(name, char) for name in ("exp", "power", "fmax", "add", "maximum", "divide", "erf") for char in "fd"}
QUICK_REDUCTIONS = {("add", "d"), ("maximum", "f"), ("fmax", "d")}


def ready(nodes: Sequence[Node]) -> list[Array]:
    """Through the NumPy tier with the bits of kernels."""
    made = ReadyBackend(backend("llvm"))
    return run(made.prepare(Program.of(canonicalise(nodes))), nodes)


def all_of(chars: str, reductions: bool) -> list[object]:
    """Operations and dtypes that kernels have."""
    found = []
    for op in sorted(o.COMBINING, key=lambda op: op.number) if reductions else o.ALL:
        if op.kind is not Kind.ELEMENTWISE or op in (o.CAST, o.BITCAST, o.WHERE, o.REAL, o.IMAG, o.COMPLEX):
            continue
        for char in chars:
            dtype = np.dtype(char)
            made = dtype if reductions else bits.result(op, dtype)
            if scalars.supported(op, made, (dtype,) * (op.arity or 1)):
                marks = () if (op.name, char) in (QUICK_REDUCTIONS if reductions else QUICK) else pytest.mark.slow
                found.append(pytest.param(op, dtype, id=f"{op.name}-{dtype}", marks=marks))
    return found


@pytest.mark.parametrize(("op", "dtype"), all_of(bits.CHARS, reductions=False))
def test_an_operation_has_one_result(op: Op, dtype: np.dtype) -> None:
    assert not bits.differences(bits.elementwise(op, dtype), ready)


@pytest.mark.parametrize(("op", "dtype"), all_of(bits.CHARS, reductions=True))
def test_a_reduction_has_one_result(op: Op, dtype: np.dtype) -> None:
    assert not bits.differences(bits.reduced(op, dtype), ready)


def hasty(nodes: Sequence[Node]) -> list[Array]:
    """Through kernels that LLVM does not optimise."""
    with config.override(optimize=False):
        return bits.compiled(nodes)


@pytest.mark.parametrize(("op", "dtype"), all_of("?Bifd", reductions=False))
def test_optimisation_changes_no_bit(op: Op, dtype: np.dtype) -> None:
    assert not bits.differences(bits.elementwise(op, dtype), hasty)


@pytest.mark.parametrize(("op", "dtype"), all_of("ifd", reductions=True))
def test_optimisation_changes_no_order(op: Op, dtype: np.dtype) -> None:
    assert not bits.differences(bits.reduced(op, dtype), hasty)


def test_what_is_not_optimised_is_compiled_by_itself() -> None:
    _, node = next(bits.elementwise(o.ADD, DOUBLE))
    bits.compiled([node])
    hasty([node])
    optimised, others = ({key for flag, key in backend("llvm").kernels if flag is wanted} for wanted in (True, False))
    assert optimised & others


@pytest.mark.slow
@pytest.mark.parametrize("char", "efd")
@pytest.mark.parametrize("op", [o.ADD, o.MULTIPLY], ids=repr)
def test_the_sign_of_a_sum_of_zeros(op: Op, char: str) -> None:
    assert not bits.differences(bits.reduced(op, np.dtype(char), bits.zeros), ready)


@pytest.mark.slow
@pytest.mark.parametrize("source", bits.CHARS[:-2])
def test_a_conversion_has_one_result(source: str) -> None:
    for target in bits.CHARS[:-2]:
        assert not bits.differences(bits.casts(np.dtype(source), np.dtype(target)), ready), target


def test_conversions_to_unsigned_numbers() -> None:
    for source in "fd":
        assert not bits.differences(bits.casts(np.dtype(source), np.dtype(np.uint32)), ready)


@pytest.mark.parametrize("op", [o.EXP, o.FMAX], ids=repr)
def test_an_operation_that_is_wrongly_said_to_be_exact_is_found(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op, "rounds", "")
    assert bits.differences(bits.elementwise(op, DOUBLE), ready)


def test_a_reduction_that_is_wrongly_said_to_have_no_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(o.ADD, "ordered", "")
    assert bits.differences(bits.reduced(o.ADD, DOUBLE), ready)


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("name", ["add", "multiply"])
def test_the_native_reductions_and_their_twin(name: str, char: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype, op = np.dtype(char), o.by_name(name)
    identity = dtype.type(op.identity(dtype))
    found: list[list[Array]] = []
    for table in (ordered.NATIVE, {}):
        monkeypatch.setattr(ordered, "NATIVE", table)
        found.append([])
        with np.errstate(all="ignore"):
            for k, shape in enumerate(bits.SHAPES):
                x = bits.values(dtype, int(np.prod(shape)), k).reshape(shape)
                for axes in [(0,), (len(shape) - 1,), tuple(range(len(shape)))]:
                    found[-1] += [ordered.reduce(name, x, axes, identity), ordered.reduce(name, x[::-1], axes, identity)]
    for a, b in zip(*found, strict=True):
        assert not bits.first_difference(a, b)


def test_errors_are_told_as_numpy_tells_them() -> None:
    """What a ready-made kernel or a reduction finds is said by NumPy's loop."""
    import lazynp
    from lazynp.values import config

    with config.override(tape_limit=0):
        x = lazynp.asarray(np.array([1.0, 800.0, 800.0]))
        with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
            np.asarray(lazynp.exp(x))
        with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
            np.asarray(lazynp.sum(x * 2.0e305))


def test_many_numbers_of_elements_keep_few_plans() -> None:
    made = ReadyBackend(backend("llvm"))
    for n in range(1, 200):
        node = build.elementwise(o.EXP, np.dtype("e"), leaf(np.linspace(0, 1, n).astype("e")))
        (got,) = run(made.prepare(Program.of(canonicalise([node]))), [node])
        assert got.shape == (n,)
    (kernel,) = made.kernels.known.values()
    assert len(kernel.plans) <= 64
