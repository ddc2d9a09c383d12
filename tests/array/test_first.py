"""Large arrays on tapes: what a program computes of them before there are kernels, with the bits that kernels have."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy
import pytest

import lazynp as np
from lazynp import conversion
from lazynp.array import core
from lazynp.graph import report
from lazynp.values import config
from tests.differential import programs
from tests.in_turns import in_threads

ALL: Final = 1 << 40  # elements: more than a test computes
LARGE: Final = 9001  # elements
ROWS: Final = 83


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    before = core.first_work(ALL)
    with config.override(tape_limit=2000, tape_first=50000):
        yield
    core.first_work(before)


def numbers(dtype: Any = float) -> Any:
    return (numpy.random.default_rng(11).random(LARGE) * 3 + 0.1).astype(dtype)


def taken(f: Callable[[], Any]) -> int:
    """Count the elements that tapes compute of large arrays."""
    before = core.first_work()
    value = f()
    for x in value if type(value) is tuple else (value,):
        numpy.asarray(x)
    return before - core.first_work()


def updated(a: Any) -> Any:
    a += 1
    a *= a
    return a


def put(a: Any) -> Any:
    a[1:-1] = a[2:] * 0.5
    a[3] = 1
    return a


def masked(a: Any) -> Any:
    a[a > 0.5] = 0
    return a


ELEMENTWISE: Final[dict[str, Callable[[Any], Any]]] = {
    "sums": lambda a: a + a * 2,
    "functions": lambda a: np.exp(-a) * np.sin(3 * a),
    "costly functions": lambda a: np.arctan2(a, a + 1) + np.hypot(a, 2),
    "powers": lambda a: a**a + a**3,
    "comparisons": lambda a: (a > 0.5) & (a < 0.7),
    "choices": lambda a: np.where(a > 0.5, a * 2, 1.0),
    "clip": lambda a: np.clip(a, 0.2, 0.7) * 2,
    "casts": lambda a: a.astype(np.float32) * 2,
    "parts": lambda a: a[1:] - a[:-1],
    "parts of what waits": lambda a: (a * 2)[1:] - a[:-1],
    "every other": lambda a: a[::2] * 2,
    "backwards": lambda a: a[::-1] + a,
    "scans": lambda a: np.cumsum(a * 2),
    "sorted": lambda a: np.sort(a),
    "differences": lambda a: np.diff(a) * 2,
    "rolled": lambda a: np.roll(a, 1) - a,
    "joined": lambda a: np.concatenate([a * 2, a]),
    "rounded": lambda a: np.round(a, 2) + np.floor(a),
    "positions": lambda a: np.argsort(a),
    "masks": lambda a: (a * 2)[a > 0.5],
    "whole numbers": lambda a: (a * 100).astype(int) * 3 + 1,
    "one column": lambda a: a.reshape(-1, 1) * np.ones(3),
}
NUMBERS: Final[dict[str, Callable[[Any], Any]]] = {
    "sum": lambda a: (a * 2 + 1).sum(),
    "mean": lambda a: (a * a).mean(),
    "deviation": lambda a: (a + 1).std(),
    "variance": lambda a: (a + 1).var(ddof=1),
    "of whole numbers": lambda a: ((a * 1000).astype(int)).mean(),
    "product": lambda a: (a / 1.5).prod(),
    "extremes": lambda a: ((a * 2).max(), (a * 2).min(), (a * 2).argmax()),
    "of halves": lambda a: a.astype(np.float16).sum(),
    "by the ufunc": lambda a: np.add.reduce(a * 2),
    "without NaN": lambda a: np.nansum(a * 2),
    "norm": lambda a: np.linalg.norm(a * 2),
}
EXISTING: Final[dict[str, Callable[[Any], Any]]] = {
    "sum": lambda a: a.sum(),
    "mean": lambda a: a.mean(),
    "deviation": lambda a: a.std(),
    "variance": lambda a: np.var(a, ddof=1),
    "extremes": lambda a: (a.max(), a.min(), a.argmax(), a.argmin()),
    "updates": updated,
    "writes": put,
    "writes of choices": masked,
}
MATRIX: Final[dict[str, Callable[[Any], Any]]] = {
    f"{name} {axis}{suffix}": lambda m, name=name, axis=axis, make=make: getattr(make(m), name)(axis=axis)
    for name in ("sum", "mean", "std", "max", "prod")
    for axis in (0, 1)
    for suffix, make in {
        "": lambda m: m, " of what waits": lambda m: m * 2, " transposed": lambda m: m.T, " of the transposed": lambda m: m.T * 2,
        " of floats": lambda m: m.astype(np.float32), " in Fortran's order": np.asfortranarray, " of parts": lambda m: m[1:, 1:],
    }.items()
} | {
    "rows normalised": lambda m: (m - m.mean(axis=1, keepdims=True)) / m.std(axis=1, keepdims=True),
    "columns normalised": lambda m: (m - m.mean(axis=0)) / m.std(axis=0),
    "softmax": lambda m: np.exp(m - m.max(axis=1, keepdims=True)),
    "transposed": lambda m: m.T * 2 + 1,
    "stencil": lambda m: m[1:-1, 1:-1] + m[2:, 1:-1] * 0.5,
    "product": lambda m: m @ m.T,
    "with weights": lambda m: np.average(m, axis=0),
    "three axes": lambda m: (m[:80].reshape(8, 10, -1) * 2).sum(axis=1),
    "few in a row": lambda m: (m[:80, :80].reshape(-1, 5) * 2).std(axis=1),
    "trace": lambda m: np.trace(m * 2),
    "wide": lambda m: m[:80, :80].reshape(2, -1).sum(axis=0),
    "long": lambda m: m[:80, :80].reshape(2, -1).std(axis=1),
}  # fmt: skip
CASES: Final = [
    *[(f, numbers, True) for f in ELEMENTWISE.values()],
    *[(f, numbers, True) for f in NUMBERS.values()],
    *[(f, numbers, False) for f in EXISTING.values()],
    *[(f, lambda: numbers()[: ROWS * 84].reshape(ROWS, 84), False) for f in MATRIX.values()],
]
NAMES: Final = [*ELEMENTWISE, *NUMBERS, *[f"{name} of what exists" for name in EXISTING], *[f"matrix: {name}" for name in MATRIX]]


@pytest.mark.parametrize(("f", "make", "waits"), CASES, ids=NAMES)
def test_tapes_have_the_bits_of_kernels(f: Callable[[Any], Any], make: Callable[[], Any], waits: bool) -> None:
    found: list[list[Any]] = []
    for work in (0, ALL):
        core.first_work(work)
        value = f(np.array(make()))
        found.append([numpy.asarray(x).copy(order="K") for x in (value if type(value) is tuple else (value,))])
    for kernels, tapes in zip(*found, strict=True):
        assert tapes.dtype == kernels.dtype
        assert tapes.shape == kernels.shape
        assert tapes.tobytes() == kernels.tobytes()
    if waits:
        core.first_work(ALL)
        assert taken(lambda: f(np.array(make())))


def test_from_some_work_on_large_arrays_are_graphs() -> None:
    a = np.array(numbers())
    core.first_work(3 * LARGE)
    assert taken(lambda: a * 2 + 1) == 2 * LARGE
    assert taken(lambda: a * 2 + 1) == 2 * LARGE  # what has begun goes to its end
    assert taken(lambda: a * 2 + 1) == 0
    assert taken(lambda: (a * 2 + 1).sum()) == 0


def test_what_is_larger_is_a_graph() -> None:
    a = np.array(numpy.arange(60_000.0))
    assert taken(lambda: a * 2 + 1) == 0
    assert taken(lambda: a[:5000] * 2 + 1) == 2 * 5000


def test_small_arrays_do_not_count() -> None:
    a = np.array(numbers()[:1999])
    assert taken(lambda: a * 2 + 1) == 0


@pytest.mark.parametrize("write", ["element", "part", "all", "update", "mask", "outside"])
@pytest.mark.parametrize("shown", [False, True])
def test_a_tape_reads_what_was_there(write: str, shown: bool) -> None:
    x = numbers()
    a = np.array(x)
    outside = numpy.asarray(a) if shown else None
    y = a * 2 + 1
    z = a[5:-5] - 1
    if write == "element":
        a[7] = -1.0
    elif write == "part":
        a[3:4000] = 0
    elif write == "all":
        a[:] = 0
    elif write == "update":
        a += 5
    elif write == "mask":
        a[a > 1] = 9
    elif outside is not None and outside.flags.writeable:
        outside[7] = -1.0
    numpy.testing.assert_array_equal(numpy.asarray(y), x * 2 + 1)
    numpy.testing.assert_array_equal(numpy.asarray(z), x[5:-5] - 1)


def test_memory_of_others_is_read_at_its_time() -> None:
    x = numbers()
    before = x.copy()
    a = np.asarray(x)
    y = a * 2 + 1
    total = (a * 2).sum()
    numpy.asarray(y)
    x[7] = -1.0
    numpy.testing.assert_array_equal(numpy.asarray(y), before * 2 + 1)
    numpy.testing.assert_array_equal(numpy.asarray(a * 2), x * 2)
    assert float(total) != float((a * 2).sum())


def test_errors_are_told_of_large_sums() -> None:
    a = np.array(numpy.full(LARGE, 1e308))
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
        (a * 1).sum()
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
        a.sum()
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
        (a * 1)[:9000].reshape(9, -1).sum(axis=1).realize()


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int) -> None:
    """Their large arrays have more than forty elements; at a time of their own they become graphs."""
    with config.override(tape_limit=40, tape_first=300):
        for k in range(6):
            core.first_work(random.Random(seed * 6 + k).choice([500, 2000, 5000, ALL]))
            number = 61_000_000 + seed * 6 + k
            assert programs.check(number, programs.grammar_of(number), "auto", True) is None


def test_threads_share_them() -> None:
    x = numbers()
    a = np.array(x)
    wrong: list[int] = []

    def run(k: int) -> None:
        for j in range(40):
            got = numpy.asarray(a * (k + j) + 1)
            if not numpy.array_equal(got, x * (k + j) + 1):
                wrong.append(k)

    core.first_work(200 * LARGE)
    in_threads(4, run)
    assert not wrong


def test_what_nobody_else_holds_any_more_is_taken_at_its_first_use() -> None:
    a = np.asarray(numbers() * 1)
    assert taken(lambda: a * 2) == LARGE
    held = numbers()
    b = np.asarray(held)
    assert core.tape(b * 2) is None
    del held
    assert core.tape(b * 2) is not None


def test_what_only_tapes_hold_is_let_go() -> None:
    """In a loop the arrays of a turn before are not kept by what waits of them."""
    with config.override(tape_limit=1000, tape_first=4_000_000):
        waits = []
        for k in range(6):
            x = np.array(numpy.full(1_000_000, float(k)))
            waits.append((x * 2)[:5])
            waits.append(x.reshape(-1, 100).max(axis=0))
            del x
        pending = [w for w in waits if w._known_base is not None and type(w._known_base).__name__ == "Waiting"]
        assert len(pending) <= 4


def test_sources_of_a_tape_do_not_all_lie_in_memory() -> None:
    """Each turn's sorted array is added before many wait."""
    with config.override(tape_limit=1000, tape_first=4_000_000):
        x = np.array(numpy.arange(2_000_000.0))
        total = x * 0
        before = core.first_work()
        for k in range(20):
            total = total + np.sort(x * k) * 0.5
        assert before - core.first_work() > 20 * 2_000_000  # much of it is computed by now
        assert float(total[3]) == 3 * sum(range(20)) * 0.5


def test_the_largest_arrays_are_on_tapes_first() -> None:
    """The larger they are, the sooner kernels have them; and two statements wait beside each other, however large."""
    with config.override(tape_limit=786_432, tape_first=None):
        assert config.first_limit == 1 << 26
        for size, dear in ((1 << 22, 1), ((1 << 22) + 1, 8)):
            x = np.realize(np.array(numpy.ones(size, numpy.int8)))
            assert taken(lambda x=x: x + x) == size * dear
        x = np.realize(np.array(numpy.ones(20_000_000, numpy.int8)))
        before = core.first_work()
        y = (x + x) * x
        z = np.negative(x)[::-1] - y
        assert core.tape(y) is not None and core.tape(z) is not None and core.first_work() == before
        assert int(z[3]) == -3
    with config.override(tape_limit=786_432, tape_first=None, memory=1 << 30):
        assert config.first_limit == 1 << 24  # an eighth of that memory


def test_what_grows_beyond_its_operands_is_a_graphs() -> None:
    """Large results of small operands need not lie in memory: parts of them, and sums, are computed alone."""
    with config.override(tape_limit=786_432, tape_first=None):
        rows, columns = (np.realize(np.array(numpy.arange(3000, dtype=numpy.int8))) for _ in range(2))
        grown = rows[:, None] + columns
        assert core.tape(grown) is None and core.tape(rows[:300, None] + columns[:1000]) is not None
        assert core.tape(np.outer(rows, columns)) is None
        x = np.realize(np.array(numpy.ones((3000, 3000), numpy.int8)))
        assert core.tape(x + rows[:, None]) is not None
        assert int(grown[5, 7]) == 12


def test_what_a_product_reads_is_let_go_before_another_is_made() -> None:
    a, b, x = (np.realize(np.asarray(numpy.random.default_rng(k).random(shape))) for k, shape in enumerate([(90, 90), (90, 90), (90,)]))
    first, second = (a * 1.5) @ x, (b * 1.2) @ x
    of_first, of_second = (core.tape(next(y for y in core.tape(z)[4] if type(y) is np.ndarray and core.tape(y))) for z in (first, second))
    assert of_first[0] != of_second[0]  # a tape each
    del of_first, of_second
    other = b + 1
    before = core.first_work()
    np.realize(first)
    assert before - core.first_work() == 8100  # what the product reads
    assert core.tape(second) is not None and core.tape(other) is not None
    expected = numpy.asarray(a) * 1.5 @ numpy.asarray(x) + numpy.asarray(b) * 1.2 @ numpy.asarray(x)
    numpy.testing.assert_allclose(numpy.asarray(first + second), expected, rtol=1e-12)


def test_views_of_large_values_that_waited_are_read_where_they_lie() -> None:
    """Views of each turn's array wait with it: reading one exports nothing, which would have all that waits computed."""
    u = np.realize(np.asarray(numpy.random.default_rng(0).random((100, 100))))
    v = numpy.asarray(u).copy()
    turns = []
    for _ in range(3):
        u = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1])
        v = v[1:-1, 1:-1] + 0.1 * (v[2:, 1:-1] + v[:-2, 1:-1])
        turns.append(u)
    other = np.flip(u) * 2
    np.realize(turns[1])
    assert core.tape(turns[0]) is None and core.tape(turns[2]) is not None and core.tape(other) is not None
    part = turns[1][3:, ::2]
    assert part._known_base is turns[1]
    assert numpy.array_equal(numpy.asarray(u), v)
    assert numpy.array_equal(numpy.asarray(other), v[::-1, ::-1] * 2)


def test_a_mapped_file_is_read_by_kernels(tmp_path: Path) -> None:
    """Piece by piece, whose pages are given back; writes to it are told of to what waits."""
    x = numbers()
    numpy.save(tmp_path / "x.npy", x)
    a = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert taken(lambda: a * 2) == 0
    assert taken(lambda: a[5:-5] * 2) == 0
    assert float(a.sum()) == float(np.array(x).sum())
    b = np.load(tmp_path / "x.npy", mmap_mode="r+")
    y = b * 2 + 1
    b[7] = -1.0
    numpy.testing.assert_array_equal(numpy.asarray(y), x * 2 + 1)


def place(a: Any) -> int:
    """The address of a value."""
    found: int = a._node.buffer.at_hand.__array_interface__["data"][0]
    return found


@pytest.mark.parametrize("view", [False, True])
def test_updates_lie_where_the_array_did(view: bool) -> None:
    x = numbers()
    a = np.array(x)
    (a * 1).realize()
    shown = a[5:-5] if view else None
    b = a

    before, work = place(a), core.first_work()
    a += 1
    a *= a
    a.realize()
    assert work - core.first_work() == 2 * LARGE
    assert a is b
    assert view or place(a) == before
    x += 1
    x *= x
    numpy.testing.assert_array_equal(numpy.asarray(a), x)
    if shown is not None:
        numpy.testing.assert_array_equal(numpy.asarray(shown), x[5:-5])
        shown -= 1
        x[5:-5] -= 1
        numpy.testing.assert_array_equal(numpy.asarray(a), x)


WRITES: Final = (  # `a` has been computed or waits; `m` has two axes
    "a[1:-1] = (a[:-2] + a[2:]) * 0.5",
    "a[1:-1] = b[1:-1] * 2 + 1",
    "a[1:-1] = b[1:-1]",
    "a[1:] = a[:-1]",
    "a[:-1] = a[1:]",
    "a[::2] = b[::2] * 2; a[1::2] = a[::2][:4500] - 1",
    "a[::-1] = b * 2",
    "a[5:-5] = b[-6:4:-1] * 0.5",
    "a[1:-1] += b[1:-1] * 0.5",
    "a[1:-1] += a[:-2] * 0.5",
    "a[1:-1] *= 0.5; a[1:] -= b[:-1]",
    "a[1:-1] *= a[1:-1]",
    "a[1:-1] -= a[1:-1] * a[2:]",
    "a[3:] /= 3; a[:-3] //= 2",
    "a[5:] = 1; a[5:] += 1",
    "a[1:-1] = (b[1:-1] * 2).astype('f4')",
    "a[1:-1] = i[1:-1] * 2",
    "a[1:-1] += i[1:-1]",
    "i[1:-1] = i[2:] * 2; i[1:-1] += 1",
    "w = b[1:-1] * 2; a[1:-1] = w; w += 1; held += [w]",
    "w = b[1:-1] * 2; a[1:-1] += w; held += [w]",
    "w = a[1:-1]; w += b[1:-1] * 2; w[5:] = w[:-5] * 2; held += [w]",
    "held += [a * 2, a[3:] - 1]; a[1:-1] = (a[:-2] + a[2:]) * 0.5; held += [a + 1]",
    "v = a[1:]; a[:-1] = (a[1:] + 1) * 2; held += [v, v * 2]",
    "held += [a.copy()]; a[2:] = held[-1][2:] * 2",
    "e = numpy.asarray(a); a[1:-1] = b[1:-1] * 2; e[7] = -1; held += [e]",
    "e = numpy.asarray(a); a[1:-1] *= 2; held += [e]; a[1:-1] += b[1:-1]",
    "c = a; a[1:-1] = b[1:-1] * 2; held += [c]",
    "a += b; a[1:-1] = a[2:] * 2; a *= 2; a[1:-1] -= 1; a = a * 2",
    "a[1:-1] = np.cumsum(b)[1:-1]; a[:4000] = np.sort(b)[:4000] * 2",
    "m[1:-1, 1:-1] = 0.25 * (m[:-2, 1:-1] + m[2:, 1:-1] + m[1:-1, :-2] + m[1:-1, 2:]); m[0] = m[1]; m[:, 0] = m[:, 1]",
    "m[1:-1, 1:-1] += 0.1 * (m[:-2, 1:-1] + m[2:, 1:-1] - 2 * m[1:-1, 1:-1])",
    "m[:, 1:] = m.T[1:].T * 2; m.T[1:] -= 1; m[:, ::-1][:, 2:] *= 2",
    "m[:40] = m[43:] * 2; m[43:] = m[:40].T.T + 1",
    "n = np.zeros((2, 9001)); n[0] = a * 2; n[1] = b; n[:, 5:] += a[5:]; held += [n]",
    "n = np.empty((9001, 2)); n[:, 0] = a * 2; n[:, 1] = b; held += [n]",
    "n = np.ones(9001); n[1:-1] = a[1:-1] * 2; n[1:-1] *= 2; held += [n]",
    "z[1:-1] = z[2:] * 1j; z.real[1:] += 1; z[1:-1] *= z[1:-1]",
    "a[1:-1] = b[1:] * 2",
    "a[1:-1] += b * 2",
)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("text", WRITES)
def test_large_parts_are_written_as_numpy_writes_them(text: str, waits: bool) -> None:
    found = []
    for module in (numpy, np):
        a, b = numbers(), numbers()[::-1].copy()
        arrays = {"a": a, "b": b, "m": a[: ROWS * 84].reshape(ROWS, 84), "i": (a * 100).astype(int), "z": a + 2j * b}
        names: dict[str, Any] = {"np": module, "numpy": numpy, "held": []}
        names |= {name: module.array(x) * 1 if waits else module.array(x) for name, x in arrays.items()}
        raised = []
        for _ in range(3):
            try:
                exec(text, names)
            except Exception as error:
                raised.append((type(error).__name__, str(error)))
        shown = [numpy.asarray(x) for x in (*[names[name] for name in arrays], *names["held"])]
        found.append(([(x.dtype, x.shape, x.tobytes()) for x in shown], raised))
    assert found[0][1] == found[1][1]
    assert [mine == theirs for theirs, mine in zip(found[0][0], found[1][0], strict=True)] == [True] * len(found[0][0])


@pytest.mark.parametrize("text", [text for text in WRITES[:16] + WRITES[30:32] if text != "a[1:-1] *= a[1:-1]"])  # two parts at once
def test_large_parts_are_written_by_tapes(text: str) -> None:
    names = {"np": np, "a": np.array(numbers()), "b": np.array(numbers()[::-1]), "m": np.array(numbers()[: ROWS * 84].reshape(ROWS, 84))}
    before = report.schedules.hits + report.schedules.misses
    for _ in range(3):
        exec(text, names)
    assert float(names["a"][5]) is not None and float(names["m"][5, 5]) is not None
    assert report.schedules.hits + report.schedules.misses == before


STATEMENTS: Final = (
    "a[3:] = a[3:] + 1", "q = a[3:] + 1; a[3:] = q", "q = b[3:] + 1; a[3:] = q", "a[3:] += b[3:] + 1", "q = b[3:] + 1; v = a[3:]; v += q",
)  # fmt: skip


@pytest.mark.parametrize("text", STATEMENTS)
def test_what_a_handler_writes_comes_before_a_large_part_or_after_it(text: str) -> None:
    """It reads an element and writes it back, in the midst of the statement, where code in Python runs."""
    ran = []

    def handler(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_name == "result":
            sys.setprofile(None)
            value = float(names["a"][7])
            names["a"][7] = value
            ran.append(value)

    names = {"a": np.array(numpy.zeros(LARGE)), "b": np.array(numpy.zeros(LARGE))}
    exec("a[3:] = b[3:] * 1; b[3:] = b[3:] * 2", names)  # from now on the memory is their own
    code = compile(text, "<statement>", "exec")
    before = sys.getprofile()
    sys.setprofile(handler)
    try:
        exec(code, names)
    finally:
        sys.setprofile(before)
    assert numpy.asarray(names["a"])[5:9].tolist() == [1.0] * 4


@pytest.mark.parametrize("text", ["v //= z[1:-1]", "v /= z[1:-1]", "a[1:-1] /= z[1:-1]", "a[1:-1] = v / z[1:-1]", "v -= v / z[1:-1]"])
@pytest.mark.parametrize("again", [False, True])
def test_errors_of_large_parts_are_told_at_the_line(text: str, again: bool) -> None:
    a, z = np.array(numpy.zeros(LARGE)), np.array(numpy.zeros(LARGE))
    if again:
        a[1:-1] = z[1:-1] * 1
    names = {"a": a, "z": z, "v": a[1:-1], "numpy": numpy}
    with pytest.warns(RuntimeWarning, match="invalid value") as told:
        exec(compile(f"\n\n{text}\nnumpy.asarray(a)", "<the line>", "exec"), names)
    assert {(each.filename, each.lineno) for each in told} == {("<the line>", 3)}


VIEWS: Final = ("m.T[1:, 1:] = n.T[:-1, :-1] * 0.1", "m.T[1:, 1:] = m.T[:-1, :-1]", "m.T[1:] = m.T[:-1] * 2", "m.T[1:] *= 0.5")


@pytest.mark.parametrize("text", VIEWS)
def test_views_that_are_written_leave_nothing_behind(text: str) -> None:
    names = {"m": np.array(numpy.ones((90, 101))), "n": np.array(numpy.ones((90, 101)))}
    code = compile(text, "<statement>", "exec")
    counts = []
    for _ in range(3):
        for _ in range(300):
            exec(code, names)
        counts.append(sys.getallocatedblocks())
    assert counts[2] - counts[1] < 150


SMALL: Final[dict[str, Callable[[Any], Any]]] = {
    "a function": lambda m: np.log1p(m.mean(axis=0)),
    "of further steps": lambda m: np.log(m.mean(axis=0) * 2 + 1),
    "of a part": lambda m: np.log(m.mean(axis=0)[:5]),
    "a sum": lambda m: m.max(axis=0, keepdims=True).sum(axis=1),
    "a number": lambda m: m.max(axis=0).sum(),
    "a deviation": lambda m: m.max(axis=0).std(),
    "a power": lambda m: m.sum(axis=0) ** 0.3,
    "a power of a number": lambda m: 2.0 ** m.mean(axis=1),
    "of two": lambda m: np.arctan2((m * 5).sum(axis=0), 1.5),
    "of a fused sum": lambda m: np.log(np.exp(m).sum(axis=1)),
    "a large one": lambda m: np.arctan2(m, m.mean(axis=0)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_results_of_large_arrays_have_the_bits_of_their_size(name: str) -> None:
    x = numbers()[: ROWS * 84].reshape(ROWS, 84)
    core.first_work(0)
    for f in (np.log, np.log1p, np.arctan2, np.power):  # as graphs know them from now on
        (f(np.array(x)) if f.nin == 1 else f(np.array(x), 1.5)).realize()
    found = set()
    for work in (0, ALL, 0):
        core.first_work(work)
        found.add(numpy.asarray(SMALL[name](np.array(x))).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("name", ["power", "arctan2", "hypot"])
def test_large_results_of_small_operands_are_kernels(name: str) -> None:
    x, y = numbers()[:90] / 4, numbers()[90:180] / 4
    found = set()
    for work in (0, ALL):
        core.first_work(work)
        for _ in range(2):
            a, b = np.array(x)[:, None], np.array(y)
            found.add(numpy.asarray(getattr(np, name)(a, b)).tobytes())
            found.add(numpy.asarray(getattr(np, name).outer(np.array(x), b)).tobytes())
            if name == "power":
                found.add(numpy.asarray(a**b).tobytes())
    assert len(found) == 1


def test_large_results_of_recorded_calls_are_values() -> None:
    x = numbers()
    numpy.asarray(np.array(x[:1500]) * numpy.int64(3))  # which teaches what comes of it
    b = np.array(x) * numpy.int64(3)
    b.realize()
    assert b._node is not None
    for work in (0, ALL):
        core.first_work(work)
        with config.override(tape_first=300, tape_limit=40):
            got = numpy.asarray(np.isclose(np.array(numpy.arange(60)), np.array(numpy.ones(60))))
        assert got.tolist() == numpy.isclose(numpy.arange(60), 1).tolist()


@pytest.mark.parametrize("steps", [1, 3])
def test_threads_compute_no_tape_over_operands_that_are_gone(steps: int) -> None:
    """A result lies where an operand did; until it is one, other threads find the tape waiting."""
    wrong: list[float] = []

    def work(seed: int) -> None:
        random = numpy.random.default_rng(seed)
        for _ in range(200):
            x = random.random(LARGE)
            y, kept = np.array(x), []
            for _ in range(steps):
                y = y * 2 + np.array(x)
                kept.append(y)
            if not numpy.allclose(numpy.asarray(y), x * (2 ** (steps + 1) - 1)):
                wrong.append(float(numpy.asarray(y)[0] / x[0]))

    in_threads(4, work)
    assert not wrong


LOOKS: Final[dict[str, Callable[[Any], Any]]] = {
    "ravel": lambda x: x.ravel(), "part": lambda x: x[1:-1], "turned": lambda x: x[::-1], "export": numpy.asarray,
    "memory": lambda x: numpy.asarray(memoryview(x)),
    "step": lambda x: x * 2, "realized": np.realize, "update": lambda x: x.__iadd__(1), "element": lambda x: x.__setitem__(4, 5.0),
    "put": lambda x: x.__setitem__(slice(2, None), x[:-2] * 3), "number": lambda x: float(x.sum()), "schedule": np.schedule,
}  # fmt: skip
VIEWS: Final[dict[str, Callable[[Any], Any]]] = {"itself": lambda x: x, "part": lambda x: x[2:-2], "turned": lambda x: x[::-1]}
MADE: Final[dict[str, Callable[[Any], Any]]] = {
    "steps": lambda a: a * 2 + 1, "step": lambda a: -a, "joined": lambda a: np.concatenate([a, a]), "scan": np.cumsum, "sorted": np.sort,
}  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("made", MADE)
def test_nobody_sees_the_memory_of_a_large_result_before_it_has_its_node(
    monkeypatch: pytest.MonkeyPatch, made: str, view: str, look: str
) -> None:
    """Code of Python's makes the node, and other threads may run meanwhile."""
    a = numbers()
    x, y = MADE[made](np.array(a)), MADE[made](np.array(a))
    of_x, of_y = VIEWS[view](x), VIEWS[view](y)
    seen: list[Any] = []
    original = conversion.from_numpy

    def looked_at(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(conversion, "from_numpy", original)
        seen.append(LOOKS[look](of_x))
        return original(*args, **named)

    monkeypatch.setattr(conversion, "from_numpy", looked_at)
    np.realize(x)
    np.realize(y)
    seen.append(LOOKS[look](of_y))
    for array, part, shown in ((x, of_x, seen[0]), (y, of_y, seen[1])):
        array[3:6] = 7.0
        part[9] = 1.0
        if isinstance(shown, (np.ndarray, numpy.ndarray)):
            shown[7] = 3.0
    assert numpy.array_equal(x, y)
    assert numpy.array_equal(of_x, of_y)
    assert type(seen[0]) is type(seen[1])
    if isinstance(seen[0], (np.ndarray, numpy.ndarray)):
        assert numpy.array_equal(seen[0], seen[1])
