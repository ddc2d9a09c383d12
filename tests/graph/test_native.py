"""The native graph beside its Python twin: nodes mean the same, and both walks tell the same programs apart."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import weakref
from pathlib import Path
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
    # A walk that finds another one under way (the collector may run code in the midst of it) leaves the graph to the twin.
    # What another walk holds at that moment is held by somebody, and listed behind the rest: it may be kept.
    native, twins = canonicalise([top]).key, canonicalise_in_python([top]).key
    assert len(keys) == 800
    assert {key[: len(native)] if isinstance(key, bytes) else key[0] for key in keys} <= {native, native[0], twins[0]}


# Recording ------------------------------------------------------------------------------------------------------------------------

RECORDED = """
import itertools, operator, sys, warnings
import numpy
import lazynp as np
from lazynp.graph.node import line_of
from lazynp.ndarray import ndarray, node_of
from lazynp.scalars import is_scalar

warnings.simplefilter("ignore")

def shown(x, depth=3):
    if not (type(x) is ndarray or is_scalar(x)):
        return repr(x)
    view = x._base is not None if type(x) is ndarray else "scalar"
    if is_scalar(x) and x._node is None:
        return repr(x)
    return f"{view} {getattr(x, 'strides', None)} {tree(node_of(x), depth)}"

def tree(node, depth):
    line = None if node.site is None else line_of(node.site)
    inner = "" if not depth else " ".join(tree(source, depth - 1) for source in node.src)
    arg = node.arg if node.op.name in ("const", "slice") else ""
    return f"({node.op.name} {node.dtype} {node.shape} {arg!r} {line} {node.err.kinds} {node.err.name} {node.depth} {inner})"

number, share = itertools.count(), int(sys.argv[1])

def tried(name, function, *args):
    if next(number) % share:
        return
    try:
        print(name, shown(function(*args)))
    except Exception as error:
        print(name, type(error).__name__, error)

dtypes = ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "q"]
base = {dtype: np.asarray(numpy.arange(12).reshape(3, 4) % 2).astype(dtype) for dtype in dtypes}
pending = {dtype: (x | x if dtype == "?" else x + x) for dtype, x in base.items()}
whole = pending["f8"]
arrays = {
    **pending, "existing": base["f8"].realize(), "row": whole[1], "column": whole[:, 1:2], "part": whole[1:, ::-2],
    "turned": whole.T, "turned part": whole.T[1:, :3], "flat": whole.reshape(-1), "new": whole[:, None], "none": whole[3:],
    "zeros": np.zeros((3, 4)), "0-d": np.zeros(()) + 1, "broadcast": np.broadcast_to(whole[0], (3, 4)),
}
others = {
    "1": 1, "-1": -1, "300": 300, "huge": 2**70, "true": True, "0.5": 0.5, "1e300": 1e300, "nan": float("nan"), "j": 1j,
    "inf": float("inf"),
    "f8": numpy.float64(0.5), "f4": numpy.float32(0.5), "i1": numpy.int8(3), "u8": numpy.uint64(3), "b": numpy.True_,
    "c8": numpy.complex64(1j),
    "g": numpy.longdouble(1), "m": numpy.timedelta64(1), "sum": whole.sum(), "count": pending["i4"].max(), "none": None,
    "list": [1, 2, 3, 4],
    "array": numpy.ones(4),
    "hand": np.ones(4), "hand turned": np.ones((4, 3)).T, "hand 1": np.ones((3, 1), "i1"),
    "big": 1 << 30, "-big": -(1 << 62),
}
two = {name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow", "mod", "lt", "eq", "and_", "lshift")}
two |= {f"np.{name}": getattr(np, name) for name in ("add", "power", "maximum", "arctan2", "logical_or", "ldexp", "divmod")}
one = {name: getattr(operator, name) for name in ("neg", "pos", "abs", "invert")}
one |= {f"np.{name}": getattr(np, name) for name in ("sqrt", "square", "isnan", "modf", "rint", "conjugate")}
keys = [slice(1, None), slice(None), slice(None, None, -1), slice(5, 2), slice(2, None, -5), (slice(1, 2), slice(0, -1, 2))]
keys += [(slice(0),) * 3, slice(None, None, 0), slice("a"), (), (slice(1, 3), Ellipsis), (None, slice(1)), slice(numpy.int64(1), True)]
keys += [None, Ellipsis, 1, -1, 3, -4, True, (1, 2), (1, None), (Ellipsis, 0), (0, Ellipsis), (slice(None), None)]
keys += [(None, slice(1, 2), None, -1), (Ellipsis, None, 1, None), (1, 1, Ellipsis), (Ellipsis, Ellipsis)]
keys += [(2**70,), (slice(1), 5), (None,) * 63, (1, numpy.int8(1)), ((0, 1),)]
for (n, f), (m, x) in itertools.product(one.items(), arrays.items()):
    tried(f"{n} {m}", f, x)
for (n, f), (m, x), (k, y) in itertools.product(two.items(), arrays.items(), (arrays | others).items()):
    tried(f"{n} {m} {k}", f, x, y)
    if k in others:
        tried(f"{n} {k} {m}", f, y, x)
for (m, x), key in itertools.product(arrays.items(), keys):
    tried(f"{m}[{key}]", operator.getitem, x, key)
with np.errstate(all="ignore"):
    tried("quiet", operator.add, whole, 1.0)
with np.errstate(divide="raise"):
    tried("eager", operator.truediv, whole, whole + 1)
"""


@pytest.mark.skipif(not native.native, reason="nothing native was built")
@pytest.mark.parametrize(
    ("share", "limit"),  # of all combinations one in so many
    [(29, "5"), *(pytest.param(1, limit, marks=pytest.mark.slow) for limit in ("0", "5", "12"))],
)
def test_what_is_recorded_is_what_the_twin_records(tmp_path: Path, limit: str, share: int) -> None:
    script = tmp_path / "recorded.py"
    script.write_text(RECORDED)
    texts = []
    for pure in ("0", "1"):
        # Functions that the core has as C it computes where its twin records them.
        environment = {**os.environ, "LAZYNP_PURE": pure, "LAZYNP_TAPE_LIMIT": limit, "LAZYNP_POLYNOMIALS": "0"}
        done = subprocess.run([sys.executable, str(script), str(share)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout.splitlines())
    assert len(texts[0]) > 9000 // share
    assert [pair for pair in zip(*texts, strict=True) if pair[0] != pair[1]][:5] == []
