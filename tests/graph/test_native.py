"""The native graph beside its Python twin: nodes mean the same, and both walks tell the same programs apart."""

from __future__ import annotations

import gc
import random
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from lazynp.graph import _python, build, errstate, native
from lazynp.graph import op as o
from lazynp.graph.node import Node, caller
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Program, canonicalise, canonicalise_in_python
from lazynp.values.buffer import Buffer

FLOAT = np.dtype(np.float64)
NODES = [_python.Node, Node] if native.native else [_python.Node]


def leaf(*shape: int, dtype: Any = FLOAT) -> Node:
    return build.buffer(np.ones(shape, dtype))


@pytest.mark.parametrize("kind", NODES)
def test_a_node_is_what_it_was_made_of(kind: Any) -> None:
    x = kind(o.BUFFER, (), None, FLOAT, (3,))
    site = caller()
    y = kind(o.ADD, (x, x), None, FLOAT, (3,), site)
    assert (y.op, y.src, y.arg, y.dtype, y.shape, y.site, y.depth) == (o.ADD, (x, x), None, FLOAT, (3,), site, 1)
    assert (x.depth, x.site, x.buffer, x.error, x.computed, x.err) == (0, None, None, None, False, errstate.DEFAULT)
    assert y.number > x.number
    assert repr(y) == "<ADD float64 (3,)>"
    with np.errstate(all="ignore"):
        z = kind(op=o.ADD, src=(y, x), arg=None, dtype=FLOAT, shape=(3,), site=None)
    assert z.err.kinds == 0 and z.depth == 2
    z.err, z.site, z.error, z.computed = errstate.DEFAULT, site, ValueError(), True
    assert z.err is errstate.DEFAULT and z.site == site and isinstance(z.error, ValueError) and z.computed is True
    value = Buffer(np.ones(3))
    died = weakref.ref(y)
    z.publish(value)
    assert (z.op, z.src, z.arg, z.depth, z.buffer) == (o.BUFFER, (), None, 0, value)
    del y
    assert died() is None


@pytest.mark.parametrize("kind", NODES)
def test_a_node_refuses_what_makes_none(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind(o.ADD)
    with pytest.raises((TypeError, AttributeError)):
        kind(o.ADD, (1, 2), None, FLOAT, ())


@pytest.mark.parametrize("kind", NODES)
def test_cycles_through_nodes_are_collected(kind: Any) -> None:
    class Handler:
        node: Any

    handler = Handler()
    x = kind(o.BUFFER, (), None, FLOAT, ())
    x.err = errstate.State({"divide": "call"}, handler)
    handler.node = x
    died = weakref.ref(handler)
    del x, handler
    gc.collect()
    assert died() is None


@pytest.mark.parametrize("kind", NODES)
def test_a_long_chain_goes_without_deep_recursion(kind: Any) -> None:
    x = kind(o.BUFFER, (), None, FLOAT, ())
    for _ in range(300_000):
        x = kind(o.NEGATIVE, (x,), None, FLOAT, ())
    del x


def test_references_are_counted_right() -> None:
    x = leaf(3)
    site = caller()
    shape = (3, 4, 5)
    value = Buffer(np.ones(1))
    before = [sys.getrefcount(each) for each in (x, site[0], shape, FLOAT, o.ADD, errstate.DEFAULT)]
    for _ in range(100):
        y = Node(o.ADD, (x, x), None, FLOAT, shape, site)
        canonicalise([y])
        y.publish(value)
        y.site, y.err, y.src, y.arg = site, errstate.DEFAULT, (x,), shape
        del y
    gc.collect()
    assert [sys.getrefcount(each) for each in (x, site[0], shape, FLOAT, o.ADD, errstate.DEFAULT)] == before


# The walk -------------------------------------------------------------------------------------------------------------------------

ELEMENTWISE = [o.ADD, o.MULTIPLY, o.SUBTRACT, o.MAXIMUM, o.LESS]
STATES = [errstate.DEFAULT, errstate.DEFAULT.named("power"), errstate.QUIET, errstate.DEFAULT.without("over")]


def program(choices: random.Random) -> tuple[list[Node], list[Node]]:
    """What is wanted of a small random graph, and what else is held of it; few kinds of everything, so that equal ones come."""
    dtypes = [FLOAT, np.dtype(np.float32), np.dtype(np.int64)]
    dtype = choices.choice(dtypes)
    nodes = [leaf(4, dtype=dtype) for _ in range(choices.randint(1, 2))]
    constants = [0.0, -0.0, 1.0, float("nan"), 2.0] if dtype.kind == "f" else [0, 1, 2]
    for _ in range(choices.randint(1, 6)):
        x, y = choices.choice(nodes), choices.choice(nodes)
        match choices.randint(0, 9):
            case 0 | 1 | 2:
                op = choices.choice(ELEMENTWISE[:4])
                made = Node(op, (x, y) if x.shape == y.shape else (x, x), None, dtype, x.shape)
            case 3:
                number = Node(o.CONST, (), dtype.type(choices.choice(constants)), dtype, ())
                made = Node(choices.choice(ELEMENTWISE[:2]), (x, number), None, dtype, x.shape)
            case 4:
                made = Node(o.SLICE, (x,), ((choices.randint(0, 2), choices.choice([1, -1])),), dtype, (2,))
            case 5:
                made = Node(o.PAD, (x, build.const(0, dtype)), (choices.randint(0, 2),), dtype, (x.shape[0] + 2,))
            case 6:
                made = Node(o.STORE, (x, leaf(1, dtype=dtype)), ((choices.randint(0, 1), 1),), dtype, x.shape)
            case 7:
                made = Node(o.SCAN, (x,), (choices.choice([o.ADD, o.MAXIMUM]), 0), dtype, x.shape)
            case 8:
                made = Node(o.CALL, (x,), (choices.choice(["sort", "fft"]), choices.choice([(0,), (1.5,), ("a", None)])), dtype, x.shape)
            case _:
                made = Node(o.CONCAT, (x, y), 0, dtype, (x.shape[0] + y.shape[0],))
        made.err = choices.choice(STATES)
        made.computed = choices.random() < 0.15
        nodes.append(made)
    return choices.sample(nodes, choices.randint(1, min(3, len(nodes)))), choices.sample(nodes, choices.randint(0, 1))


def summary(form: Any) -> tuple[Any, ...]:
    """What a canonical form says, without its nodes: whoever holds these has a say."""
    nodes = [[node.number for node in some] for some in (form.nodes, form.wanted, form.walked)]
    structure = Program.of(form)
    scalars = [repr(value) for value in form.scalars]
    return nodes, form.buffers, form.integers, scalars, form.moves, structure.entries, structure.outputs, structure.errors


@pytest.mark.parametrize("seed", range(4))
def test_both_walks_find_the_same_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(cost, "KEPT_BYTES", 8)
    choices = random.Random(seed)
    equal: dict[Any, Any] = {}
    reverse: dict[Any, Any] = {}
    for _ in range(1500):
        wanted, held = program(choices)
        form = canonicalise(wanted)
        key, ours = form.key, summary(form)
        del form
        form = canonicalise_in_python(wanted)
        assert equal.setdefault(key, form.key) == form.key
        assert reverse.setdefault(form.key, key) == key
        assert summary(form) == ours
        del form, held
    assert len(equal) > 100


def test_large_numbers_are_parts_of_a_program() -> None:
    x = build.expand(build.const(1.0, FLOAT), (1 << 40,))
    y = Node(o.SLICE, (x,), ((1 << 35, -(1 << 33)),), FLOAT, (1 << 3,))
    ours, theirs = canonicalise([y]), canonicalise_in_python([y])
    assert Program.of(ours).entries == Program.of(theirs).entries
    assert ours.integers == theirs.integers == [1 << 35]


def test_what_failed_is_raised_again_and_the_walk_still_works() -> None:
    x = Node(o.BUFFER, (), None, FLOAT, ())
    x.error = ZeroDivisionError("once")
    with pytest.raises(ZeroDivisionError, match="once"):
        canonicalise([Node(o.NEGATIVE, (x,), None, FLOAT, ())])
    with pytest.raises(RuntimeError, match="being written"):
        canonicalise([Node(o.BUFFER, (), None, FLOAT, ())])
    y = Node(o.NEGATIVE, (leaf(3),), None, FLOAT, (3,))
    assert canonicalise([y]).nodes[-1] is y


def test_a_walk_within_a_walk() -> None:
    inner: list[Any] = []

    class Argument:
        """An argument of a call whose comparison comes back to us."""

        def __hash__(self) -> int:
            inner.append(canonicalise([y]).nodes[-1])
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    y = Node(o.NEGATIVE, (leaf(3),), None, FLOAT, (3,))
    call = Node(o.CALL, (y,), ("f", Argument()), FLOAT, (3,))
    found = canonicalise([call])
    assert found.nodes[-1] is call and set(inner) == {y}
    assert hash(found.key) is not None


def test_threads_walk_one_graph() -> None:
    x = leaf(8)
    top = x
    for _ in range(200):
        top = Node(o.ADD, (top, x), None, FLOAT, (8,))
    keys = []

    def work() -> None:
        for _ in range(200):
            keys.append(canonicalise([top]).key)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 800 and len({hash(key) for key in keys}) == 1
