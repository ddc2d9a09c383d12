"""The native graph: nodes, the walk beside its model in Python, and what is recorded natively beside what functions in Python record."""

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

import lazynp
from lazynp.graph import build, errstate
from lazynp.graph import op as o
from lazynp.graph.node import Node, caller
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import Entry, Program, canonicalise, without_sizes
from lazynp.values import config
from lazynp.values.buffer import Buffer
from tests.graph import walk

FLOAT = np.dtype(np.float64)


def leaf(*shape: int, dtype: Any = FLOAT) -> Node:
    return build.buffer(np.ones(shape, dtype))


def test_a_node_is_what_it_was_made_of() -> None:
    x = Node(o.BUFFER, (), None, FLOAT, (3,))
    site = caller()
    y = Node(o.ADD, (x, x), None, FLOAT, (3,), site)
    assert (y.op, y.src, y.arg, y.dtype, y.shape, y.site, y.depth) == (o.ADD, (x, x), None, FLOAT, (3,), site, 1)
    assert (x.depth, x.site, x.buffer, x.error, x.computed, x.err) == (0, None, None, None, False, errstate.DEFAULT)
    assert y.number > x.number
    assert repr(y) == "<ADD float64 (3,)>"
    with np.errstate(all="ignore"):
        z = Node(op=o.ADD, src=(y, x), arg=None, dtype=FLOAT, shape=(3,), site=None)
    assert z.err.kinds == 0 and z.depth == 2
    z.err, z.site, z.error, z.computed = errstate.DEFAULT, site, ValueError(), True
    assert z.err is errstate.DEFAULT and z.site == site and isinstance(z.error, ValueError) and z.computed is True
    value = Buffer(np.ones(3))
    died = weakref.ref(y)
    z.publish(value)
    assert (z.op, z.src, z.arg, z.depth, z.buffer) == (o.BUFFER, (), None, 0, value)
    del y
    assert died() is None


def test_a_node_refuses_what_makes_none() -> None:
    with pytest.raises(TypeError):
        Node(o.ADD)
    with pytest.raises((TypeError, AttributeError)):
        Node(o.ADD, (1, 2), None, FLOAT, ())


def test_cycles_through_nodes_are_collected() -> None:
    class Handler:
        node: Any

    handler = Handler()
    x = Node(o.BUFFER, (), None, FLOAT, ())
    x.err = errstate.State({"divide": "call"}, handler)
    handler.node = x
    died = weakref.ref(handler)
    del x, handler
    gc.collect()
    assert died() is None


def test_a_long_chain_goes_without_deep_recursion() -> None:
    x = Node(o.BUFFER, (), None, FLOAT, ())
    for _ in range(300_000):
        x = Node(o.NEGATIVE, (x,), None, FLOAT, ())
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
                name = choices.choice(["sort", "fft"])
                arguments = choices.choice([(0,), (1.5,), (0.0,), (-0.0, "a"), (0.0, "a"), ("a", None)])
                made = Node(o.CALL, (x,), (name, arguments), dtype, x.shape)
            case _:
                made = Node(o.CONCAT, (x, y), 0, dtype, (x.shape[0] + y.shape[0],))
        made.err = choices.choice(STATES)
        made.computed = choices.random() < 0.15
        nodes.append(made)
    return choices.sample(nodes, choices.randint(1, min(3, len(nodes)))), choices.sample(nodes, choices.randint(0, 1))


def summary(form: Any) -> tuple[Any, ...]:
    """What a canonical form says, without its nodes: whoever holds these has a say."""
    nodes = [[node.number for node in some] for some in (form.nodes, form.wanted, form.walked)]
    scalars = [repr(value) for value in form.scalars]
    if isinstance(form, walk.Form):
        raw, outputs = walk.structure(form.key)
        entries = [Entry(op, src, arg, node.dtype, node.shape) for (op, src, arg), node in zip(raw, form.nodes, strict=True)]
    else:
        structure = Program.of(form)
        entries, outputs = structure.entries, structure.outputs
    return nodes, form.buffers, form.integers, scalars, form.moves, entries, outputs


@pytest.mark.parametrize("seed", range(4))
def test_the_walk_and_its_model_find_the_same_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(cost, "KEPT_BYTES", 8)
    choices = random.Random(seed)
    equal: dict[Any, Any] = {}
    reverse: dict[Any, Any] = {}
    for _ in range(1500):
        wanted, held = program(choices)
        form: Any = canonicalise(wanted)
        key, ours = form.key, summary(form)
        del form
        form = walk.canonicalise(wanted)
        assert equal.setdefault(key, form.key) == form.key
        assert reverse.setdefault(form.key, key) == key
        assert summary(form) == ours
        del form, held
    assert len(equal) > 100


def test_large_numbers_are_parts_of_a_program() -> None:
    x = build.expand(build.const(1.0, FLOAT), (1 << 40,))
    y = Node(o.SLICE, (x,), ((1 << 35, -(1 << 33)),), FLOAT, (1 << 3,))
    ours, model = canonicalise([y]), walk.canonicalise([y])
    assert summary(ours) == summary(model)
    assert ours.integers == [1 << 35]


@pytest.mark.parametrize(
    "nodes",
    [
        lambda: [1],
        lambda: [Node(o.CONST, (), 1, FLOAT, ())],
        lambda: [Node(o.SLICE, (leaf(3),), (1,), FLOAT, (3,))],
        lambda: [Node(o.IOTA, (), None, FLOAT, (3,))],
    ],
    ids=["no node", "a number of Python's", "no slice", "no range"],
)
def test_what_is_no_graph_is_refused(nodes: Any) -> None:
    with pytest.raises(TypeError, match="no graph"):
        canonicalise(nodes())
    y = Node(o.NEGATIVE, (leaf(3),), None, FLOAT, (3,))
    assert canonicalise([y]).nodes[-1] is y


def test_what_failed_is_raised_again_and_the_walk_still_works() -> None:
    x = Node(o.BUFFER, (), None, FLOAT, ())
    x.error = ZeroDivisionError("once")
    with pytest.raises(ZeroDivisionError, match="once"):
        canonicalise([Node(o.NEGATIVE, (x,), None, FLOAT, ())])
    with pytest.raises(RuntimeError, match="being written"):
        canonicalise([Node(o.BUFFER, (), None, FLOAT, ())])
    y = Node(o.NEGATIVE, (leaf(3),), None, FLOAT, (3,))
    assert canonicalise([y]).nodes[-1] is y


def test_outputs_of_calls_have_any_dtype_and_it_is_part_of_the_key() -> None:
    x = leaf(3)

    def key(*dtypes: str) -> Any:
        call = Node(o.CALL, (x,), ("f", (dtypes[0],)), FLOAT, (3,))
        return canonicalise([call, *(Node(o.OUTPUT, (call,), k + 1, np.dtype(d), (3,)) for k, d in enumerate(dtypes))]).key

    some = [("g", "G"), ("g", "g"), ("g", "M8[s]"), ("g", "M8[ms]"), ("g", "f8"), ("g", "i4,f8"), ("g", "U3")]
    assert len({key(*dtypes) for dtypes in some for _ in range(2)}) == len(some)


def test_arguments_of_calls_are_compared_without_running_code() -> None:
    inner: list[Any] = []

    class Argument:
        """An argument of a call whose comparison comes back to us."""

        def __hash__(self) -> int:
            inner.append(canonicalise([y]).nodes[-1])
            return 1

        def __eq__(self, other: object) -> bool:
            inner.append(canonicalise([y]).nodes[-1])
            return True

    y = Node(o.NEGATIVE, (leaf(3),), None, FLOAT, (3,))
    call = Node(o.CALL, (y,), ("f", Argument()), FLOAT, (3,))
    other = Node(o.CALL, (y,), ("f", Argument()), FLOAT, (3,))
    again = Node(o.CALL, (y,), call.arg, FLOAT, (3,))
    found = canonicalise([call, other, again])
    assert not inner and len(found.nodes) == len(canonicalise([call, other]).nodes)
    assert hash(found.key) == hash(found.key) and set(inner) == {y}


def test_equal_arguments_of_calls_are_one() -> None:
    def calls(argument: Any) -> list[Node]:
        return [Node(o.CALL, (x,), ("f", argument()), FLOAT, (3,)) for _ in range(2)]

    x = leaf(3)
    for equal in (lambda: (1.5, "a" * int("2")), lambda: np.dtype("f4"), lambda: (len, int, b"x" * int("1")), lambda: (True, 2j, 10**30)):
        assert len(set(canonicalise(calls(equal)).nodes)) == 2  # the leaf, and one call
    for other in (lambda: [1].index, object, lambda: (1, np.array(3))):
        assert len(set(canonicalise(calls(other)).nodes)) == 3


def test_arguments_that_are_equal_but_not_the_same_are_apart() -> None:
    def key(*arguments: Any) -> Any:
        return canonicalise([Node(o.CALL, (x,), ("f", arguments), FLOAT, (3,))]).key

    x = leaf(3)
    zeros = [0, 0.0, -0.0, 0j, complex(0.0, -0.0), False]
    zeros += [np.float64(0), np.float64(-0.0), np.float32(0), np.complex128(0), np.False_, np.int64(0)]
    assert len({key("a", ((zero,),)) for zero in zeros for _ in range(2)}) == len(zeros)
    structures = [without_sizes(key(zero, "a", np.dtype("f4")))[0] for zero in zeros]
    assert len(set(structures)) == len(zeros)


@pytest.mark.parametrize("collects", [True, False])
def test_a_walk_leaves_the_collector_as_it_is(collects: bool) -> None:
    y = Node(o.NEGATIVE, (leaf(3),), None, FLOAT, (3,))
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        canonicalise([y])
        with pytest.raises(TypeError):
            canonicalise([1])  # type: ignore[list-item]
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def test_a_form_is_no_holder_of_its_nodes() -> None:
    x = leaf(8)
    top = x
    for _ in range(5):
        top = Node(o.ADD, (top, x), None, FLOAT, (8,))
    with config.override(tape_limit=300):
        forms = [canonicalise([top]) for _ in range(3)]  # as threads hold them whose runs go on
        forms[1].forget()
        held = top.src[0].src[0]
        other = canonicalise([top])
        assert len({form.key for form in forms}) == 1 and other.key != forms[0].key
        assert [node is held for node in other.wanted] == [False, True]
        del held, other, forms
        assert canonicalise([top]).key == canonicalise([top]).key


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
    assert len(keys) == 800 and set(keys) == {canonicalise([top]).key}


# Recording ------------------------------------------------------------------------------------------------------------------------

RECORDED = """
import itertools, operator, os, sys, types, warnings
import numpy

if sys.argv[2] == "plain":  # the natives of the graph are taken before the package is, and asked to record nothing
    package = sys.modules["lazynp"] = types.ModuleType("lazynp")
    package.__path__ = [os.environ["LAZYNP_PACKAGE"]]
    from lazynp.graph import _native
    _native.recorder = lambda slow, directs, operands, power: slow
    _native.calls = lambda slow: slow
    del sys.modules["lazynp"]

import lazynp as np
from lazynp.graph.node import line_of
from lazynp.arrays import ndarray, node_of
from lazynp.scalars import is_scalar

assert (np.add._recorder is None) == (sys.argv[2] == "plain")
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


@pytest.mark.parametrize(
    ("share", "limit"),  # of all combinations one in so many
    [(29, "5"), *(pytest.param(1, limit, marks=pytest.mark.slow) for limit in ("0", "5", "12"))],
)
def test_what_is_recorded_natively_is_what_functions_in_python_record(tmp_path: Path, limit: str, share: int) -> None:
    script = tmp_path / "recorded.py"
    script.write_text(RECORDED)
    environment = {**os.environ, "LAZYNP_TAPE_LIMIT": limit, "LAZYNP_PACKAGE": os.path.dirname(lazynp.__file__)}
    texts = []
    for how in ("native", "plain"):
        done = subprocess.run([sys.executable, str(script), str(share), how], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout.splitlines())
    assert len(texts[0]) > 9000 // share
    assert [pair for pair in zip(*texts, strict=True) if pair[0] != pair[1]][:5] == []
