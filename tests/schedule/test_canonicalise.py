"""The canonicaliser: which programs are one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import ZERO, Program, canonicalise
from tests.backends.numpy.programs import leaf

pytestmark = pytest.mark.usefixtures("recorded")

FLOAT = np.dtype(float)
X = np.arange(1000.0)


def add(a: Node, b: Node) -> Node:
    return build.elementwise(o.ADD, a.dtype, a, b)


def scaled(value: float, n: int = 1000) -> Node:
    return build.elementwise(o.MULTIPLY, FLOAT, leaf(X[:n]), build.const(value, FLOAT))


def window(start: int, n: int = 10) -> Node:
    return build.slice_(leaf(X), [(start, 1)], (n,))


def key(*nodes: Node) -> Any:
    return canonicalise(nodes).key


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, 5e-324])
def test_scalars_are_no_structure(value: float) -> None:
    assert key(scaled(value)) == key(scaled(2.0))
    assert hash(key(scaled(value))) == hash(key(scaled(2.0)))
    [scalar] = canonicalise([scaled(value)]).scalars
    assert scalar.tobytes() == np.float64(value).tobytes()


def test_dtypes_shapes_and_operations_are_structure() -> None:
    keys = [
        key(scaled(2.0)),
        key(scaled(2.0, 999)),
        key(add(leaf(X), build.const(2.0, FLOAT))),
        key(build.elementwise(o.MULTIPLY, np.dtype("f4"), leaf(X.astype("f4")), build.const(2, np.dtype("f4")))),
        key(build.elementwise(o.MULTIPLY, FLOAT, build.const(2.0, FLOAT), leaf(X))),
        key(build.elementwise(o.SUBTRACT, FLOAT, leaf(X), leaf(X))),
    ]
    assert len(set(keys)) == len(keys)


def test_offsets_are_classed_as_zero_equal_other() -> None:
    others = {key(window(start)) for start in range(1, 900)}
    assert len(others) == 1
    assert key(window(0)) not in others

    def two(first: int, second: int) -> Any:
        return key(add(window(first), window(second)))

    patterns = {two(a, b) for a in range(20) for b in range(20)}
    assert len(patterns) == 5  # (0, 0) (0, n) (n, 0) (n, n) (n, m)


def test_steps_and_lengths_are_structure() -> None:
    x = leaf(X)
    keys = {key(build.slice_(x, [(5, step)], (n,))) for step in (1, 2, -1) for n in (3, 4)}
    assert len(keys) == 6


def test_equal_subgraphs_are_one_entry() -> None:
    x = leaf(X)
    a, b = add(x, x), add(x, x)
    canonical = canonicalise([add(a, b), b])
    program = Program.of(canonical)
    assert [entry.op for entry in program.entries] == [o.BUFFER, o.ADD, o.ADD]
    assert program.entries[2].src == (1, 1) and program.outputs == (2, 1)
    assert canonical.nodes[1] is a  # the earliest, whose line is named if it fails


VALUES = {
    "f8": [0.0, -0.0, 1.0, 0.1, np.inf, -np.inf, np.nan, -np.nan], "f4": [0.0, -0.0, 1.0, 0.1, np.nan], "f2": [0.0, -0.0, 1.0, np.nan],
    "c16": [0j, complex(-0.0, 0.0), complex(0.0, -0.0), 1 + 0j, complex(1, -0.0), 1j, complex(np.nan, 0.0), complex(-np.nan, 0.0)],
    "i8": [0, 1, -1, 2**53, 2**53 + 1], "u1": [0, 1, 255], "?": [False, True],
}  # fmt: skip


@pytest.mark.parametrize("dtype", VALUES)
def test_literals_are_one_parameter_where_their_bits_are(dtype: str) -> None:
    values = [np.dtype(dtype).type(value) for value in VALUES[dtype]]
    for a in values:
        for b in values:
            nodes = [build.const(value, value.dtype) for value in (a, b, a)]
            canonical = canonicalise([add(add(nodes[0], nodes[1]), nodes[2])])
            expected = list(dict.fromkeys([value.tobytes() for value in (a, b)]))
            assert [scalar.tobytes() for scalar in canonical.scalars] == expected


def test_literals_of_unlike_dtypes_are_two_parameters() -> None:
    one = [build.cast(build.expand(build.const(1, np.dtype(c)), (2,)), FLOAT) for c in "lfd?"]
    assert len(canonicalise(one).scalars) == len(one)


def test_which_literals_are_equal_is_structure_and_not_their_values() -> None:
    def two(first: float, second: float) -> Any:
        return key(add(scaled(first), scaled(second)))

    assert len({two(a, b) for a in range(20) for b in range(20)}) == 2


def test_operands_of_what_commutes_may_change_places() -> None:
    x, y = leaf(X), leaf(X)
    one = Program.of(canonicalise([add(x, y), add(y, x)]))
    assert one.outputs[0] == one.outputs[1]
    operands = [(o.SUBTRACT, x, y), (o.SUBTRACT, y, x), (o.MAXIMUM, x, y), (o.MAXIMUM, y, x)]
    two = Program.of(canonicalise([build.elementwise(op, FLOAT, a, b) for op, a, b in operands]))
    assert len(set(two.outputs)) == 4


def test_equal_buffers_are_two_parameters() -> None:
    canonical = canonicalise([add(leaf(X), leaf(X))])
    assert len(canonical.buffers) == 2
    assert canonical.key != key(build.elementwise(o.ADD, FLOAT, x := leaf(X), x))


def test_order_of_recording_decides_not_of_asking() -> None:
    x = leaf(X)
    a, b = add(x, x), build.elementwise(o.NEGATIVE, FLOAT, x)
    one, other = Program.of(canonicalise([a, b])), Program.of(canonicalise([b, a]))
    assert one.entries == other.entries and one.outputs == other.outputs[::-1]


def test_a_published_node_is_a_leaf() -> None:
    x = leaf(X)
    y = add(x, x)
    z = add(y, x)
    before = key(z)
    assert x.buffer is not None
    y.publish(x.buffer)
    after = Program.of(canonicalise([z]))
    assert key(z) != before
    assert [entry.op for entry in after.entries] == [o.BUFFER, o.BUFFER, o.ADD]


def test_entries_carry_what_a_backend_needs() -> None:
    x = leaf(X.reshape(10, 100))
    region = build.slice_(x, [(3, 1), (0, 2)], (2, 50))
    node = build.store(x, [(3, 1), (0, 1)], region)
    node = add(node, build.expand(build.reshape(build.iota(100, 1, 2, FLOAT), (1, 100)), (10, 100)))
    canonical = canonicalise([build.reduce(o.MAXIMUM, node, (1,))])
    program = Program.of(canonical)
    by_op = {entry.op: entry for entry in program.entries}
    assert by_op[o.BUFFER].arg == 0
    assert by_op[o.SLICE].arg == ((0, 1), (ZERO, 2)) and by_op[o.SLICE].shape == (2, 50)
    assert by_op[o.STORE].arg == ((0, 1), (ZERO, 1))
    assert canonical.integers == [3]
    assert by_op[o.IOTA].arg == (0, 1) and canonical.scalars == [1.0, 2.0]
    assert by_op[o.REDUCE].arg == (o.MAXIMUM, (1,)) and by_op[o.REDUCE].shape == (10,)
    for number, (entry, node) in enumerate(zip(program.entries, canonical.nodes, strict=True)):
        assert (entry.op, entry.dtype, entry.shape) == (node.op, node.dtype, node.shape)
        assert all(source < number for source in entry.src)


def test_a_deep_chain_is_walked_without_recursion() -> None:
    node = leaf(X)
    for _ in range(20_000):
        node = add(node, node)
    assert len(canonicalise([node]).nodes) == 20_001


# Results of library calls ---------------------------------------------------------------------------------------------------


def ordered(x: Node) -> Node:
    return build.call("numpy", ("sort", ()), (x,), x.dtype, x.shape)


def total(x: Node) -> Node:
    return build.reduce(o.ADD, x, (0,))


def kept(*nodes: Node) -> list[str]:
    """What is kept besides ``nodes``, by operation and source: names, for whoever holds a node changes the answer."""
    return [f"{node.op.name} of {node.src[0].op.name}" for node in canonicalise(nodes).wanted[len(nodes) :]]


def test_a_call_that_nobody_can_ask_for_again_is_not_kept() -> None:
    node = leaf(X)
    for _ in range(5):
        node = ordered(add(node, node))
    assert kept(total(node)) == ["call of add"]  # that of the last turn is ours
    node = total(node)
    assert kept(node) == []


def test_a_call_under_a_value_that_somebody_holds_is_kept() -> None:
    x = leaf(X)
    held = add(ordered(x), x)
    assert kept(total(held)) == ["call of buffer"]
    later = add(ordered(held), x)
    assert kept(total(later)) == ["call of buffer", "call of add"]
    del held
    assert kept(total(later)) == ["call of add"]  # of calls in a row the last one is enough
    later = total(later)
    assert kept(later) == []


def test_what_is_given_to_a_product_is_kept_in_place_of_a_call_under_it() -> None:
    x = leaf(np.ones((4, 4)))
    held = add(build.call("matmul", (), (x, x), np.dtype(float), (4, 4)), x)
    later = add(build.call("matmul", (), (x, build.permute(held, (1, 0))), np.dtype(float), (4, 4)), x)
    assert kept(total(later)) == ["add of call", "call of buffer"]
    del held
    assert kept(total(later)) == ["call of buffer"]


def test_a_value_that_somebody_holds_is_kept_in_place_of_larger_calls_under_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(X)
    held = add(ordered(x), ordered(add(x, x)))
    assert kept(total(held)) == ["call of buffer", "call of add"]
    monkeypatch.setattr(cost, "KEPT_BYTES", 1000)
    held = add(ordered(x), ordered(add(x, x)))
    assert kept(total(held)) == ["add of call"]
    held = total(held)
    assert kept(add(held, held)) == ["reduce of add"]


def test_a_reader_outside_the_program_holds_a_call() -> None:
    x = leaf(X)
    called = ordered(x)
    readers = [total(called), total(add(called, x))]
    del called
    assert kept(*readers) == []
    assert kept(readers[0]) == ["call of buffer"]
