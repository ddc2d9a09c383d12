"""Operations that are no steps of a tape wait, too: of halves and complex numbers, of mixed dtypes, with `dtype=`.

`out=` and `a[:] = ...` are steps.

Values, dtypes, strides, exceptions and warnings are NumPy's.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.array import core, tapes

DTYPES: Final = "?bBhHiIlLefdFD"
SPECIAL: Final = {"tanh"}  # complex infinities: the standard's value
UFUNCS: Final = [
    name
    for name in dir(numpy)
    if isinstance(getattr(numpy, name), numpy.ufunc)
    and getattr(numpy, name).nout == 1
    and getattr(numpy, name).signature is None
    and name not in SPECIAL
]
OPERATORS: Final = [
    getattr(operator, f"__{name}__")
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "and", "gt", "eq", "matmul")
]
NUMBERS: Final = [2, 3, -1, 0, 2.5, 0.5, 1j, True, 300, -200, 70000, 2**40, numpy.float32(2.5), numpy.int8(3), numpy.float64(0.1)]


@pytest.fixture(autouse=True)
def _told() -> Iterator[None]:
    """Every warning is heard, by filters of the process's own: in a block nothing would wait."""
    core.layouts(tapes.layout)  # whatever functions other tests had asked
    before, filters = warnings.showwarning, list(warnings.filters)
    warnings.simplefilter("always")
    yield
    warnings.showwarning = before
    warnings.filters[:] = filters  # type: ignore[index]


def values(rng: numpy.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    x = rng.standard_normal(shape) * 3
    if dtype in "efdFD":
        x.flat[0] = rng.choice([numpy.nan, x.flat[0], -0.0])
        x.flat[-1] = rng.choice([numpy.inf, x.flat[-1], 0.0])
    if dtype in "FD":
        return (x + 1j * rng.standard_normal(shape)).astype(dtype)
    return (abs(x) if dtype in "BHIL" else x).astype(dtype)


def outcome(call: Callable[[], Any]) -> Any:
    heard: list[str] = []
    warnings.showwarning = lambda message, *_, **__: heard.append(str(message))
    try:
        x = numpy.asarray(call())
    except Exception as error:
        return type(error), str(error)
    return x.dtype, x.shape, [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1], x.tobytes(), sorted(set(heard))


def program(rng: numpy.random.Generator) -> tuple[str, Callable[[Any], Any]]:
    """Return a call by chance, and what it is."""
    a, b = (str(rng.choice(list(DTYPES))) for _ in "ab")
    n = int(rng.choice([1, 3, 7, 40, 300]))
    shape = (n,) if rng.random() < 0.6 else (n, n if n < 50 else 5)
    x, y = values(rng, a, shape), values(rng, b, shape)
    turned = len(shape) == 2 and shape[0] == shape[1] and rng.random() < 0.3
    backwards, waits, other_way = rng.random(3) < [0.2, 0.5, 0.5]
    kind, name, op, number = (
        int(rng.integers(6)),
        str(rng.choice(UFUNCS)),
        OPERATORS[rng.integers(len(OPERATORS))],
        NUMBERS[rng.integers(len(NUMBERS))],
    )

    def call(np: Any) -> Any:
        p, q = np.array(x), np.array(y)
        if turned:
            p = p.T
        if backwards:
            q = q[::-1]
        if waits:
            p = ~p if a == "?" else +p
        f = getattr(np, name)
        given = (p, q, q)[: f.nin]
        match kind:
            case 0:
                return f(*given)
            case 1:
                return f(*given, dtype="d" if other_way else "D")
            case 2:
                return op(p, q)
            case 3:
                return op(number, p) if other_way else op(p, number)
            case 4:
                to = np.zeros_like(q if a != "f" else p)
                kept = to * 2 if other_way and b != "?" else to
                assert f(*given, out=to) is to
                return np.concatenate([to, kept])
            case _:
                to = np.ones_like(p)
                before = to[:1] if other_way else to
                to[...] = op(p, q) if op is not operator.matmul else q
                return np.concatenate([to, before])

    return f"{a} {b} {shape} {kind} {name} {op.__name__} {number!r} {turned} {backwards} {waits} {other_way}", call


@pytest.mark.parametrize("seed", range(12))
def test_calls_by_chance_are_numpys(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    for _ in range(250):
        text, call = program(rng)
        with numpy.errstate(all="ignore"):
            want = outcome(lambda call=call: call(numpy))
        with lazynp.errstate(all="ignore"):
            assert outcome(lambda call=call: call(lazynp)) == want, text


def drawn(rng: numpy.random.Generator, operands: int) -> tuple[tuple[int, ...], list[str]]:
    """Return a shape and the dtypes of operands, most of them real, and often all the same."""
    dtypes = [str(rng.choice(list("?bBhHiIlLefd" if rng.random() < 0.95 else DTYPES))) for _ in range(operands)]
    if rng.random() < 0.6:
        dtypes = dtypes[:1] * operands
    n = int(rng.choice([1, 3, 7, 40, 300]))
    return (n,) if rng.random() < 0.6 else (n, 5), dtypes


def masked_program(rng: numpy.random.Generator) -> tuple[str, Callable[[Any], Any]]:
    """Return a call with `where=` by chance, and what it is."""
    shape, (a, b, c) = drawn(rng, 3)
    x, y, z = values(rng, a, shape), values(rng, b, shape[int(rng.random() < 0.2) :]), values(rng, c, shape)
    mask = rng.random(shape[int(rng.random() < 0.2) :]) < rng.choice([0.0, 0.3, 0.9, 1.0])
    name, number = str(rng.choice(UFUNCS)), NUMBERS[rng.integers(len(NUMBERS))]
    if "equal" in name or name in ("greater", "less"):
        number = 2  # NumPy 2.4 crashes where a mask meets a number that the dtype has not
    waits, fits, over, kept, shown, first = rng.random(6) < [0.5, 0.7, 0.3, 0.3, 0.1, 0.3]
    second = int(rng.integers(3))

    def call(np: Any) -> Any:
        p, q, r, m = np.array(x), np.array(y), np.array(z), np.array(mask)
        if waits:
            p, m = (p ^ True if a == "?" else p * 1), ~m
        f = getattr(np, name)
        if fits and second != 2:  # where it is defined
            m = m & (p > 0)
        elif fits and q.dtype == bool and q.ndim == m.ndim:
            m = q = m & q
        given = ((p,) if f.nin == 1 else (p, q if second else number) if not first else (number, p))[: f.nin]
        to = p if over else r
        old = to * 1 if kept and c != "?" else None
        hold = memoryview(to) if shown and np is lazynp else None
        assert f(*given, out=(to,) if first else to, where=m) is to
        del hold
        return np.concatenate([to, np.ravel(old).reshape(to.shape)]) if old is not None else to

    return f"{a} {b} {c} {x.shape} {y.shape} {mask.shape} {name} {number!r} {waits} {fits} {over} {kept} {shown} {first} {second}", call


@pytest.mark.parametrize("seed", range(12))
def test_calls_with_masks_are_numpys(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    for _ in range(250):
        text, call = masked_program(rng)
        want = outcome(lambda call=call: call(numpy))
        assert outcome(lambda call=call: call(lazynp)) == want, text


def pair_program(rng: numpy.random.Generator) -> tuple[str, Callable[[Any], Any]]:
    """Return a call with two results by chance, and what it is."""
    shape, (a, b) = drawn(rng, 2)
    x, y = values(rng, a, shape), values(rng, b, shape[int(rng.random() < 0.2) :])
    waits, turned, backwards, views, drops = rng.random(5) < [0.5, 0.2, 0.2, 0.2, 0.3]
    kind, number, kept = int(rng.integers(5)), NUMBERS[rng.integers(len(NUMBERS))], int(rng.integers(3))

    def call(np: Any) -> Any:
        p, q = np.array(x), np.array(y)
        if waits:
            p = p ^ True if a == "?" else p * 1
        if turned:
            p, q = p.T, q.T
        if backwards:
            q = q[::-1]
        match kind:
            case 0:
                first, second = np.divmod(p, q)
            case 1:
                first, second = divmod(p, number) if views else divmod(number, p)
            case 2:
                first, second = np.modf(p)
            case 3:
                first, second = np.frexp(p)
            case _:
                first, second = divmod(p, q)
        if drops:
            second = None
        if views:
            first = first[1:]
        if kept == 2 and second is not None:
            first, second = second, first
        if kept == 1 and second is not None:
            return np.concatenate([np.ravel(first), np.ravel(second)])
        return first

    return f"{a} {b} {x.shape} {y.shape} {number!r} {waits} {turned} {backwards} {views} {drops} {kind} {kept}", call


@pytest.mark.parametrize("seed", range(8))
def test_calls_with_two_results_are_numpys(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    for _ in range(250):
        text, call = pair_program(rng)
        want = outcome(lambda call=call: call(numpy))
        assert outcome(lambda call=call: call(lazynp)) == want, text


# Which wait ---------------------------------------------------------------------------------------------------------------------

Program = Callable[[Any, Any, Any], Any]
CALLS: Final[dict[str, tuple[str, Program]]] = {
    "halves": ("e", lambda np, a, b: (a * b + a) * 2 - b / 3),
    "functions of halves": ("e", lambda np, a, b: np.exp(np.abs(a)) + np.sqrt(np.abs(b))),
    "quotients and remainders": ("d", lambda np, a, b: np.divmod(a, b)[1]),
    "mantissas": ("d", lambda np, a, b: np.frexp(a)[0]),
    "fractions": ("f", lambda np, a, b: np.modf(a)[0] + np.modf(b)[1]),
    "quotients under a mask": ("d", lambda np, a, b: np.divide(a, b, out=np.zeros_like(a), where=b > 0)),
    "logarithms under a mask": ("d", lambda np, a, b: np.log(a, out=a * 2, where=a > 0)),
    "halves and singles": ("e", lambda np, a, b: a + b.astype("f4")),
    "sums of halves": ("e", lambda np, a, b: a.reshape(1, -1).sum(axis=1)),
    "comparisons of complex numbers": ("D", lambda np, a, b: a == b),
    "quotients of complex numbers": ("D", lambda np, a, b: a / b),
    "functions of complex numbers": ("D", lambda np, a, b: np.sin(a)),
    "choices of complex numbers": ("D", lambda np, a, b: np.where(np.abs(a) > 1, a, b)),
    "powers of whole numbers": ("l", lambda np, a, b: a**3),
    "powers of doubles": ("d", lambda np, a, b: np.abs(a) ** b),
    "functions of whole numbers": ("l", lambda np, a, b: np.hypot(a, b) + np.arctan2(a, b)),
    "products of whole numbers": ("l", lambda np, a, b: a.reshape(1, -1) @ b.reshape(-1, 1)),
    "choices of two dtypes": ("d", lambda np, a, b: np.where(a > 0, a, b.astype("f4"))),
    "a dtype": ("f", lambda np, a, b: np.add(a, b, dtype="d")),
    "the same dtype": ("d", lambda np, a, b: np.add(a, b, dtype="d")),
    "out": ("d", lambda np, a, b: np.add(a, b, out=np.empty_like(a))),
    "out by position": ("d", lambda np, a, b: np.multiply(a, b, np.empty_like(a))),
    "out in a tuple": ("d", lambda np, a, b: np.exp(a, out=(np.empty_like(a),))),
    "ldexp": ("d", lambda np, a, b: np.ldexp(a, 2)),
    "select": ("d", lambda np, a, b: np.select([a > 1, b > 0], [a, b * 2], 7)),
    "select without a default": ("f", lambda np, a, b: np.select([a > 1, b > 0], [0.5, b])),
    "windows": ("d", lambda np, a, b: np.lib.stride_tricks.sliding_window_view(a, 1).sum(axis=1)),
    "reduceat": ("d", lambda np, a, b: np.add.reduceat(a, [0])),
    "isclose": ("d", lambda np, a, b: np.isclose(a, b)),
    "sinc": ("d", lambda np, a, b: np.sinc(a)),
    "angle": ("D", lambda np, a, b: np.angle(a)),
    "digitize": ("d", lambda np, a, b: np.digitize(a, [-1.0, 0.0, 1.0])),
    "partition": ("d", lambda np, a, b: np.partition(a, 0)),
    "isin": ("l", lambda np, a, b: np.isin(a, b)),
    "variance of whole numbers": ("l", lambda np, a, b: a.reshape(1, -1).var(axis=1)),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 10, 1000, 20000])
@pytest.mark.parametrize("name", CALLS)
def test_these_wait(name: str, size: int) -> None:
    dtype, call = CALLS[name]
    x, y = (values(numpy.random.default_rng(seed), dtype, (size,)) for seed in (1, 2))
    core.layouts(tapes.layout)  # what a call of another size has told of the function is forgotten
    with lazynp.errstate(all="ignore"), numpy.errstate(all="ignore"):
        for _ in range(3):
            found = call(lazynp, lazynp.array(x), lazynp.array(y))
        assert core.tape(found) is not None
        want = call(numpy, x, y)
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        if size <= 1000:
            assert numpy.asarray(found).tobytes() == want.tobytes()
        else:
            numpy.testing.assert_allclose(numpy.asarray(found), want, rtol=1e-12 if dtype != "e" else 2e-3)


# Writes of all elements --------------------------------------------------------------------------------------------------------------


def pair(seed: int = 0, size: int = 50) -> tuple[Any, Any]:
    x = numpy.random.default_rng(seed).standard_normal(size)
    return lazynp.realize(lazynp.array(x) * 1), x.copy()


Writing = Callable[[Any, Any, Any], Any]
WRITES: Final[dict[str, Writing]] = {
    "out": lambda np, a, b: np.multiply(b, b, out=a),
    "out, an operand": lambda np, a, b: np.multiply(a, b, out=a),
    "all": lambda np, a, b: operator.setitem(a, slice(None), b * b),
    "ellipsis": lambda np, a, b: operator.setitem(a, ..., b * b),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("size", [1, 50, 3000])
def test_what_read_it_keeps_the_old_value(write: str, size: int) -> None:
    (a, x), (b, y) = pair(0, size), pair(1, size)
    before, want = a * 3, x * 3
    WRITES[write](lazynp, a, b), WRITES[write](numpy, x, y)
    assert core.tape(a) is not None
    after, wanted = a + 1, x + 1
    assert (numpy.asarray(before) == want).all() and (numpy.asarray(after) == wanted).all() and (numpy.asarray(a) == x).all()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("seen", ["view", "export", "view of what waits", "read-only"])
def test_what_others_see_is_written_where_it_lies(write: str, seen: str) -> None:
    (a, x), (b, y) = pair(0), pair(1)
    if seen == "view of what waits":
        a, x = a * 2, x * 2
    shown, wanted = (numpy.asarray(a), x) if seen == "export" else (a[10:20], x[10:20])
    if seen == "read-only":
        a.flags.writeable = x.flags.writeable = False
        for np, p, q in ((lazynp, a, b), (numpy, x, y)):
            with pytest.raises(ValueError, match="read-only"):
                WRITES[write](np, p, q)
    else:
        WRITES[write](lazynp, a, b), WRITES[write](numpy, x, y)
    assert (numpy.asarray(shown) == wanted).all() and (numpy.asarray(a) == x).all()


def test_a_value_that_is_kept_is_still_there() -> None:
    (a, _), (b, y) = pair(0), pair(1)
    kept = b * b
    a[:] = kept
    c = kept + a
    a += 1
    assert (numpy.asarray(kept) == y * y).all() and (numpy.asarray(a) == y * y + 1).all() and (numpy.asarray(c) == y * y * 2).all()


def test_a_value_that_passes_is_taken_without_a_copy() -> None:
    (a, _), (b, y) = pair(0), pair(1)
    a[:] = b * b + 1
    assert len(core.tape(a)[2]) == 3 and core.tape(a)[1] == 1  # the copy is a step that nobody has
    assert (numpy.asarray(a) == y * y + 1).all()


def test_exponents_may_change() -> None:
    x = numpy.arange(6)
    for _ in range(3):
        for exponent in (0, 1, 2, 3, 5):
            for y in (x, x.astype("i1"), x > 2):
                found, want = lazynp.array(y) ** exponent, y**exponent
                assert found.dtype == want.dtype and (numpy.asarray(found) == want).all()
    for np in (lazynp, numpy):
        with pytest.raises(ValueError, match="negative integer powers"):
            np.array([1, 2]) ** -1


def test_errors_are_told_at_the_line_that_recorded_them() -> None:
    heard: list[int] = []
    a, b = lazynp.array([1e4, 1.0], dtype="e"), lazynp.array([1 + 0j, 0])
    warnings.showwarning = lambda message, category, filename, lineno, *_: heard.append(lineno)
    x = a * a
    y = b / b
    lazynp.realize(x, y)
    here = test_errors_are_told_at_the_line_that_recorded_them.__code__.co_firstlineno
    assert sorted(heard) == [here + 4, here + 5]


@pytest.mark.parametrize("seed", range(4))
def test_select(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    for _ in range(200):
        n, count, dtype = int(rng.choice([1, 5, 300])), int(rng.integers(1, 5)), str(rng.choice(list("dfliBe?F")))
        conditions = [rng.random(n) > 0.6 for _ in range(count)]
        choices = [(rng.standard_normal(n) * 9).astype(dtype) if rng.random() < 0.7 else rng.choice([3, 0.25]).item() for _ in range(count)]
        default = [None, 5, 0.75, choices[0]][rng.integers(4)]

        def call(np: Any, conditions: Any = conditions, choices: Any = choices, default: Any = default) -> Any:
            given = [[np.array(x) if isinstance(x, numpy.ndarray) else x for x in list_] for list_ in (conditions, choices)]
            return np.select(*given) if default is None else np.select(*given, default)

        assert outcome(lambda call=call: call(lazynp)) == outcome(lambda call=call: call(numpy)), (dtype, choices, default)


def test_windows_follow_their_memory() -> None:
    for seed in range(40):
        x = numpy.random.default_rng(seed).random(5 + seed)
        a, windows = lazynp.array(x), numpy.lib.stride_tricks.sliding_window_view
        v, u = lazynp.lib.stride_tricks.sliding_window_view(a, 3), windows(x, 3)
        sums, wanted = v.sum(axis=1), u.sum(axis=1)
        a[2] = x[2] = 5.0
        assert (numpy.asarray(sums) == wanted).all() and (numpy.asarray(v) == u).all()
        a += 1
        x += 1
        assert numpy.asarray(v * 2).tobytes() == (u * 2).tobytes()
        assert v.base is a and not v.flags.writeable
        lazynp.lib.stride_tricks.sliding_window_view(a, 4, writeable=True)[0] = 7.0
        windows(x, 4, writeable=True)[0] = 7.0
        assert (numpy.asarray(a) == x).all() and (numpy.asarray(v) == u).all()


@pytest.mark.parametrize("seed", range(4))
def test_orders_of_what_is_computed_of_repeated_elements(seed: int) -> None:
    """The order of a result follows from steps of zero, too; and that of its copy from its own."""
    calls: list[Callable[[Any, Any, Any], Any]] = [
        lambda np, a, b: a % b,
        lambda np, a, b: np.hypot(a, b),
        lambda np, a, b: np.add(a, b, dtype="D"),
        lambda np, a, b: np.where(b > 1, a, b),
        lambda np, a, b: np.tile(a, 2),
    ]
    rng = numpy.random.default_rng(seed)
    for _ in range(200):
        shape = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(2, 4))))
        dtype, call, given = str(rng.choice(list("?bide"))), calls[rng.integers(len(calls))], []
        for _ in "ab":
            x = (rng.random([n if rng.random() < 0.6 else 1 for n in shape]) * 5 + 1).astype(dtype)
            given.append((x, "F" if rng.random() < 0.5 else "C"))

        def called(np: Any, call: Any = call, given: Any = given, shape: Any = shape) -> Any:
            return call(np, *[np.broadcast_to(np.array(x, order=order), shape) for x, order in given])

        with numpy.errstate(all="ignore"):
            for copied in (lambda y: y, lambda y: y.astype(y.dtype)):
                want, found = outcome(lambda: copied(called(numpy))), outcome(lambda: copied(called(lazynp)))  # noqa: B023
                assert found == want, (shape, dtype, given)


# What may not wait -----------------------------------------------------------------------------------------------------------------


AT_ONCE: Final[dict[str, Callable[[Any], Any]]] = {
    "repeat of a list": lambda np: np.repeat((1.0, 2.0), np.array([2, 3])),
    "delete of a list": lambda np: np.delete((1.0, 2.0, 3.0), np.array([0, 2])),
    "pad of a list": lambda np: np.pad((1.0, 2.0), np.array([1, 2])),
    "tile of a list": lambda np: np.tile((3.0, 2.0, 1.0), np.array([2, 3])),
    "digitize of a list": lambda np: np.digitize((1.0, 2.0), np.array([1.0, 3.0, 2.0])),
    "reduceat of a list": lambda np: np.add.reduceat([1.0, 2.0, 3.0], np.array([0, 7])),
    "partition of a list": lambda np: np.partition([3.0, 1.0, 2.0], np.array([9, 0])),
    "isin by a table": lambda np: np.isin(np.array([1, 2, 3]), np.array([0, 2**62]), kind="table"),
    "whole numbers as truth values": lambda np: np.add(np.array([True, False]), 2, dtype=bool),
    "a class as dtype": lambda np: np.tanh(np.array([1, 2], dtype="i4"), dtype=np.float32),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_follows_from_elements_is_known_at_the_call(name: str) -> None:
    for _ in range(3):
        found = []
        for np in (numpy, lazynp):
            try:
                y = AT_ONCE[name](np)
                found.append((y.dtype, y.shape, numpy.asarray(y).tobytes()))
            except Exception as error:
                found.append((type(error), None, b""))
        assert found[0] == found[1]


def test_who_is_told_raises_once() -> None:
    class Mine(Exception):
        pass

    def raising(*_: Any, **__: Any) -> None:
        raise Mine

    y = lazynp.divide(1, lazynp.zeros(3), dtype="f4")
    warnings.showwarning = raising
    with pytest.raises(Mine):
        lazynp.realize(y)
    assert (lazynp.median(lazynp.ones(5)), y.tolist()) == (1.0, [numpy.inf] * 3)


def test_a_call_computes_nothing_but_itself() -> None:
    x, y = 1 / lazynp.zeros(3), lazynp.add(lazynp.ones(4), 1, dtype="f4")
    assert core.tape(x) is not None and core.tape(y) is not None
    assert y.tolist() == [2.0] * 4 and core.tape(x) is not None


def test_handlers_may_write_what_is_computed() -> None:
    b, y = lazynp.ones(3) * 1, 1 / lazynp.zeros(3)

    def writing(*_: Any, **__: Any) -> None:
        y[:] = b * 2

    warnings.showwarning = writing
    assert str(y) == "[2. 2. 2.]" and 2.0 in y


def test_what_is_given_for_the_result_is_the_result() -> None:
    a = lazynp.realize(lazynp.arange(4.0) * 1)
    v = a[...]
    assert lazynp.add(a, v, out=v) is v and a.tolist() == [0.0, 2.0, 4.0, 6.0]
