"""Writing in place: never seen by anybody who holds the old value, and done wherever nobody does."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from linecache import getline
from types import FrameType
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp import scalars
from lazynp.arrays import ndarray, node_of, root_node
from lazynp.backends.common import compiled, ownership
from lazynp.backends.numpy import operations
from lazynp.engine import realize
from lazynp.engine.realize import forget_plans
from lazynp.graph import build, report
from lazynp.graph.node import Node
from lazynp.schedule import cost
from lazynp.values import allocator, config
from lazynp.values.buffer import Buffer

pytestmark = pytest.mark.usefixtures("recorded")

TIERS = ("auto", "compiled")


@pytest.fixture(params=TIERS)
def everything_claimed(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every array is worth writing in place, and every write may be a kernel's."""
    monkeypatch.setattr(cost, "CLAIM_BYTES", 1)
    monkeypatch.setattr(cost, "CLAIM_SHARE", 1.0)
    monkeypatch.setattr(cost, "SMALL_STORE", 1)
    forget_plans()
    with config.override(tier=request.param):
        yield request.param
    forget_plans()


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often memory was claimed, and how often somebody still wanted what was in it."""
    counts = {"made": 0, "contested": 0}
    take, settle = ownership.Claim.take, ownership.Claim.settle

    def counted_take(self: ownership.Claim, *args: Any) -> bool:
        taken = take(self, *args)
        counts["made"] += taken
        return taken

    def counted_settle(self: ownership.Claim) -> bool:
        contested = settle(self)
        counts["contested"] += contested
        return contested

    monkeypatch.setattr(ownership.Claim, "take", counted_take)
    monkeypatch.setattr(ownership.Claim, "settle", counted_settle)
    return counts


def both(x: numpy.ndarray[Any, Any]) -> tuple[ndarray, numpy.ndarray[Any, Any]]:
    ours = np.asarray(x) + 0
    np.realize(ours)
    return ours, x.copy()


def address(x: ndarray) -> int:
    return int(root_node(x).buffer.address)  # type: ignore[union-attr]


def square(n: int = 200) -> numpy.ndarray[Any, Any]:
    return numpy.arange(float(n * n)).reshape(n, n)


def _reversed_on_itself(m: Any, x: Any) -> None:
    x[::-1] = x


def _reversed_difference(m: Any, x: Any) -> None:
    x[::-1] -= x


def _odd_from_even(m: Any, x: Any) -> None:
    x[::2] += 1
    x[1::2] = x[::2]


def _shifted(m: Any, x: Any) -> None:
    x[5:] = x[:-5] + x[:5].sum()


@pytest.mark.parametrize("write", [_reversed_on_itself, _reversed_difference, _odd_from_even, _shifted])
@pytest.mark.parametrize("base", [lambda m: m.arange(10_000), lambda m: m.arange(10_000) * 3, lambda m: m.zeros(10_000)])
def test_base_that_is_not_in_memory_yet(base: Any, write: Any) -> None:
    with config.override(tier="compiled", debug=True):
        x, y = base(np), base(numpy)
        write(np, x)
        write(numpy, y)
        numpy.testing.assert_array_equal(np.asarray(x), y)


@pytest.mark.parametrize("tier", TIERS)
def test_rows_written_one_after_the_other_stay_in_one_memory(tier: str) -> None:
    with config.override(tier=tier):
        x, y = both(square())
        x[0] = 1.0
        y[0] = 1.0
        np.realize(x)  # the first write may copy: the memory may be NumPy's own
        where = address(x)
        for i in range(1, 50):
            x[i] = x[i - 1] * 2 + i
            y[i] = y[i - 1] * 2 + i
            np.realize(x)
            assert address(x) == where
        numpy.testing.assert_array_equal(np.asarray(x), y)


def test_reading_one_element_a_turn_does_not_make_copies() -> None:
    x, _ = both(square())
    x[0] = 1.0
    np.realize(x)
    where = address(x)
    for i in range(1, 50):
        x[i] = x[i - 1] * 2 + float(x[i - 1, 3])
        assert float(x[i, 0]) == float(x[i, 0])
    np.realize(x)
    assert address(x) == where


def test_a_loop_over_elements_records_nothing_and_stays_in_one_memory() -> None:
    x, y = both(numpy.zeros(100_000))
    x[0] = y[0] = 1.0
    np.realize(x)
    x[1] = y[1] = 0.5 * x[0] + 1.0
    where, first = address(x), build.const(0, np.dtype(int)).number
    x[2] = y[2] = 2.0
    for i in range(3, 100):
        x[i] = 0.5 * x[i - 1] + 1.0
        y[i] = 0.5 * y[i - 1] + 1.0
    recorded = build.const(0, np.dtype(int)).number - first
    assert recorded <= 8  # what was written before is published; no node for an element
    assert address(x) == where
    numpy.testing.assert_array_equal(numpy.asarray(x), y)


def test_elements_written_leave_what_was_captured_alone() -> None:
    x, y = both(numpy.zeros(100_000))
    x[0] = y[0] = 1.0
    np.realize(x)
    old, pending, view, exported = x.copy(), x + 1, x[:3], numpy.asarray(x)
    x[0] = 2.0
    assert float(view[0]) == 2.0
    assert (float(old[0]), float(pending[0]), float(exported[0])) == (1.0, 2.0, 2.0)
    x[1] = 3.0
    assert view[1] == 3.0
    row = x[5:10]
    row[0] = 4.0
    assert x[5] == 4.0
    assert (float(old[5]), float(exported[5])) == (0.0, 4.0)


@pytest.mark.parametrize("tier", TIERS)
def test_who_captured_the_old_value_keeps_it(tier: str) -> None:
    with config.override(tier=tier):
        x, y = both(square())
        x[0] = 1.0
        y[0] = 1.0
        np.realize(x)
        old, old_y = x.copy(), y.copy()
        pending, pending_y = x[:5] * 3, y[:5] * 3
        exported = numpy.asarray(x)
        x[1:3] = x[4:6]
        y[1:3] = y[4:6]
        np.realize(x)
        for got, expected in ((x, y), (old, old_y), (pending, pending_y), (exported, y)):
            numpy.testing.assert_array_equal(numpy.asarray(got), expected)


def test_equal_expressions_share_their_value_until_one_is_written(everything_claimed: str) -> None:
    x, _ = both(square(8))
    y, z = x + 1, x + 1
    np.realize(y, z)
    for i in range(5):
        y[i] = -1.0
        np.realize(y)
    numpy.testing.assert_array_equal(numpy.asarray(z), square(8) + 1)


def test_an_export_shows_every_write(everything_claimed: str) -> None:
    x, y = both(square(8))
    exports = []
    for i in range(20):
        x[i % 8] = y[i % 8] = float(i)
        np.realize(x)
        exports.append(numpy.asarray(x))
    for export in exports:
        numpy.testing.assert_array_equal(export, y)


def test_a_failed_run_leaves_everything_as_it_was(everything_claimed: str, claims: dict[str, int]) -> None:
    x, y = both(square(8))
    x[0] = 0.0
    y[0] = 0.0
    np.realize(x)
    x[2] = 5.0
    bad = x[np.asarray([0, 1]) + np.asarray([0, 98])]
    with pytest.raises(IndexError):
        np.realize(x, bad)
    y[2] = 5.0
    numpy.testing.assert_array_equal(numpy.asarray(x), y)


def test_an_interrupt_puts_the_old_elements_back(everything_claimed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = both(square(8))
    x[0] = 0.0
    y[0] = 0.0
    np.realize(x)
    before = root_node(x)
    x[2] = x[3] + 5
    save = ownership.Claim.save

    def interrupted(self: ownership.Claim, region: Any) -> None:
        save(self, region)
        region[...] = -1
        raise KeyboardInterrupt

    monkeypatch.setattr(ownership.Claim, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        np.realize(x)
    monkeypatch.undo()
    assert before.buffer is not None
    numpy.testing.assert_array_equal(before.buffer.array, y)
    y[2] = y[3] + 5
    numpy.testing.assert_array_equal(numpy.asarray(x), y)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_at_any_line_loses_nothing(everything_claimed: str, fails: bool, held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, at = [0], [0]
    files = {ownership.__file__, realize.__file__}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code.co_filename not in files or code.co_name == "_in_one_program":  # whose `finally` no signal comes before
            return None
        # nor in such lines, where a lock has just been taken, or is about to be let go
        if event == "line" and not getline(code.co_filename, frame.f_lineno).lstrip().startswith(("with ", "try:")):
            lines[0] += 1
            if lines[0] == at[0]:
                raise KeyboardInterrupt
        return trace

    save = ownership.Claim.save

    def interrupted(self: ownership.Claim, region: Any) -> None:
        save(self, region)
        region[...] = -1
        raise KeyboardInterrupt

    stopped = 0
    while not stopped or lines[0] >= at[0]:
        x, y = both(square(8))
        x[0] = y[0] = 0.0
        np.realize(x)
        old = x.copy() if held else None
        expected = y.copy()
        x[2] = x[3] + 5
        y[2] = y[3] + 5
        lines[0], at[0] = 0, at[0] + 1
        before = sys.gettrace()
        with monkeypatch.context() as patch:
            if fails:
                patch.setattr(ownership.Claim, "save", interrupted)
            sys.settrace(trace)
            try:
                np.realize(x)
            except KeyboardInterrupt:
                stopped += 1
            finally:
                sys.settrace(before)
        same(x, y)
        if old is not None:
            same(old, expected)
    assert stopped > 15


def test_a_time_loop_runs_one_kernel_a_step_in_a_few_buffers() -> None:
    n, steps = 400, 60
    u, v = both(square(n))

    def step(a: Any) -> None:
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])

    with config.override(tier="compiled"):
        for _ in range(4):
            step(u)
            step(v)
        report.reset()
        allocated = allocator.memory()
        for _ in range(steps):
            step(u)
            step(v)
        np.realize(u)
        counters = report.counters()
        after = allocator.memory()
    numpy.testing.assert_array_equal(numpy.asarray(u), v)
    assert counters["kernels"] <= steps + 1
    assert counters["schedule_misses"] <= 1
    assert after["in_use"] - allocated["in_use"] <= 3 * 8 * n * n
    fresh = (after["allocations"] - after["reuses"]) - (allocated["allocations"] - allocated["reuses"])
    assert fresh <= 2


def test_blocks_of_an_elimination_are_updated_in_place() -> None:
    n = 120
    rng = numpy.random.default_rng(0)
    a, b = both(rng.random((n, n)) + n * numpy.eye(n))
    with config.override(tier="compiled"):
        for m in (a, b):
            for k in range(60, 70):
                m[k + 1 :, k] = m[k + 1 :, k] / m[k, k]
                m[k + 1 :, k + 1 :] = m[k + 1 :, k + 1 :] - m[k + 1 :, k : k + 1] * m[k : k + 1, k + 1 :]
                np.realize(a)
    numpy.testing.assert_array_equal(numpy.asarray(a), b)


def same(got: Any, expected: Any) -> None:
    numpy.testing.assert_array_equal(numpy.asarray(got), expected)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_view_follows_what_is_written_in_place(tier: str, order: str) -> None:
    with config.override(tier=tier):
        y = numpy.asarray(square(), order=order)  # type: ignore[call-overload]
        x = np.array(y, order=order)
        v, w = x[::2], y[::2]
        for i in range(5):
            np.realize(v + 1, x + 1)
            x[i] = y[i] = i * 10.0
            np.realize(x)
            same(v + 1, w + 1)
            same(x + 1, y + 1)


def test_a_view_follows_elements() -> None:
    x, y = both(numpy.arange(20000.0))
    v, w = x[::2], y[::2]
    c = v.copy()
    np.realize(c)
    x[4] = y[4] = -7.0
    same(v + 1, w + 1)


@pytest.mark.parametrize("tier", TIERS)
def test_a_written_array_that_dies_gives_its_memory_in_its_own_order(tier: str) -> None:
    with config.override(tier=tier):
        x, y = both(square())
        x[0] = y[0] = 1.0
        np.realize(x)
        x[1] = y[1] = 2.0
        z = x.T.copy()
        del x
        np.realize(z)
        same(z, y.T)


@pytest.mark.parametrize("tier", TIERS)
def test_a_small_write_waits_for_who_reads_the_old_elements(tier: str) -> None:
    with config.override(tier=tier):
        x, y = both(square())
        x[0] = y[0] = 1.0
        np.realize(x)
        old, old_y = x.copy(), y.copy()
        x[2:4] = y[2:4] = 5.0
        z = old * x + 1
        del old
        np.realize(x, z)
        same(x, y)
        same(z, old_y * y + 1)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "equal", [lambda np, p: p.astype("f8").astype("f4"), lambda np, p: np.where(p > 0, p, p), lambda np, p: np.concatenate([p, p[:0]])]
)
def test_what_turns_out_to_be_equal_is_shared(tier: str, equal: Any) -> None:
    with config.override(tier=tier):
        x = np.asarray(numpy.arange(40000, dtype="f4"))
        p = x + x
        q = equal(np, p)
        np.realize(p, q)
        p[3] = -1
        p[5:9] = -2
        np.realize(p)
        same(q, numpy.arange(40000, dtype="f4") * 2)


@pytest.mark.parametrize("tier", TIERS)
def test_overlapping_steps_read_before_they_write(tier: str) -> None:
    with config.override(tier=tier):
        x, y = both(numpy.arange(20000.0))
        x[0] = y[0] = 1.0
        np.realize(x)
        x[6:11:2] = x[6:9]
        y[6:11:2] = y[6:9].copy()
        np.realize(x)
        same(x, y)
        x[::-1] = x + 1
        y[::-1] = y.copy() + 1
        same(x, y)


def test_old_versions_do_not_stay_because_rows_were_read() -> None:
    x, _ = both(square())
    rows = [x[i] for i in range(200)]
    before = allocator.memory()["in_use"]
    for i in range(200):
        assert rows[i][0] == i * 200.0 or i == 0
        x[i] = 1.0
        np.realize(x)
    assert allocator.memory()["in_use"] - before < 6 * 8 * 200 * 200


def test_one_copy_does_not_end_writing_in_place() -> None:
    x, _ = both(square())
    x[0] = 1.0
    np.realize(x)
    kept = [x.copy()]
    for i in range(1, 20):
        x[i] = x[i - 1] + 1
        np.realize(x)
        if i == 2:
            where = address(x)
    assert address(x) == where
    same(kept[0][1], square()[1])


def test_an_old_value_that_there_is_no_memory_for_is_there_when_there_is(
    everything_claimed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = both(square(8))
    x[0] = y[0] = 0.0
    np.realize(x)
    old = x.copy()
    x[2] = y[2] = 5.0

    def no_memory(buffer: Any, saved: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(ownership, "before", no_memory)
        np.realize(x)
        same(x, y)
        for _ in range(2):
            with pytest.raises(MemoryError):
                numpy.asarray(old + 1)
    expected = square(8)
    expected[0] = 0.0
    for k in range(3, 6):  # the memory that both share must stay as it is
        x[k] = y[k] = 7.0
        np.realize(x)
    same(old + 1, expected + 1)
    same(old, expected)
    same(x, y)


# Random loops --------------------------------------------------------------------------------------------------------------


class Loop:
    """The same statements on our arrays and on NumPy's."""

    def __init__(self, seed: int, exports: bool = True) -> None:
        self.exports = exports
        self.random = random.Random(seed)
        shape = self.random.choice([(12,), (6, 8), (3, 4, 5)])
        start = numpy.arange(float(numpy.prod(shape))).reshape(shape)
        self.arrays = [both(start + 100 * k) for k in range(2)]
        self.kept: list[tuple[Any, Any]] = []

    def region(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        parts = []
        for n in shape:
            a, b = sorted(self.random.choices(range(n + 1), k=2))
            parts.append(slice(a, b, self.random.choice([1, 1, 1, 2, -1])) if self.random.random() < 0.8 else slice(None))
        return tuple(part if part.step != -1 else slice(part.stop or None, part.start or None, -1) for part in parts)

    def like(self, region: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
        """A region of as many elements on each axis, somewhere."""
        parts = []
        for part, n in zip(region, shape, strict=True):
            count = len(range(*part.indices(n)))
            start = self.random.randint(0, n - count)
            parts.append(slice(start, start + count))
        return tuple(parts)

    def turn(self) -> None:
        choose = self.random.choice
        x, y = choose(self.arrays)
        u, v = choose(self.arrays)
        shape = y.shape
        into = self.region(shape)
        a, b = self.like(into, shape), self.like(into, shape)
        act = self.random.random()
        if act < 0.25:
            x[into] = x[a] + u[b] * 0.5
            y[into] = y[a] + v[b] * 0.5
        elif act < 0.45:
            x[into] += u[a]
            y[into] += v[a]
        elif act < 0.55:
            x[into] = u[a]
            y[into] = v[a].copy()  # NumPy itself mixes up 1-d arrays that overlap with different steps
        elif act < 0.65:
            x[into] = y[into] = float(self.random.randint(0, 9))
        elif act < 0.72:
            self.kept.append((x.copy(), y.copy()))
        elif act < 0.79:
            self.kept.append((x[a] * 2 + 1, y[a] * 2 + 1))
        elif act < 0.86:
            self.kept.append((numpy.asarray(x), y) if self.exports else (numpy.array(x), y.copy()))
        else:
            self.kept = self.kept[-2:]
        if self.random.random() < 0.7:
            np.realize(x)
        elif self.random.random() < 0.3:
            np.realize(x, u)

    def run(self, turns: int) -> None:
        for _ in range(turns):
            self.turn()
        for ours, theirs in (*self.arrays, *self.kept):
            numpy.testing.assert_array_equal(numpy.asarray(ours), theirs)


@pytest.mark.slow
def test_random_loops(everything_claimed: str, claims: dict[str, int]) -> None:
    count = 150 if everything_claimed == "auto" else 60
    for seed in range(count):
        try:
            Loop(seed).run(30)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert claims["made"] > 5 * count
    assert claims["contested"] > count // 4


# Without memory ------------------------------------------------------------------------------------------------------------


class Shortage:
    """Allocations that fail on purpose: of blocks, of what is saved before it is overwritten, of old values."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None  # allocations until one fails
        self.failed = 0
        for where, name in (compiled, "allocate"), (operations, "allocate"), (ownership.Claim, "save"), (ownership, "before"):
            monkeypatch.setattr(where, name, self.scarce(getattr(where, name)))

    def scarce(self, function: Any) -> Any:
        def allocate(*args: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    self.failed += 1
                    raise MemoryError
            return function(*args)

        return allocate


def test_a_shortage_at_every_allocation_loses_nothing(everything_claimed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shortage = Shortage(monkeypatch)
    for lasting in (False, True):
        for count in range(12):
            x, y = both(square(20))
            held, kept = x + 0, y + 0
            part = x[3:9].copy()
            x[::2] += 1
            y[::2] += 1
            x[1] = x[2] * 2
            y[1] = y[2] * 2
            shortage.left = count
            for wanted in (x, held + x, part):
                with suppress(MemoryError):
                    np.realize(wanted)
                if not lasting:
                    shortage.left = None
            shortage.left = None
            same(held, kept)
            same(part, kept[3:9])
            same(x, y)
            same(held, kept)
    assert shortage.failed > 4


@pytest.mark.parametrize("part", [pytest.param(0, id="few"), pytest.param(1, id="many", marks=pytest.mark.slow)])
def test_random_loops_with_shortages(everything_claimed: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shortage = Shortage(monkeypatch)
    few, many = (60, 500) if everything_claimed == "auto" else (6, 100)
    for seed in range(few, many) if part else range(few):
        loop = Loop(seed, exports=False)
        chance = random.Random(seed)
        for _ in range(20):
            shortage.left = chance.randint(0, 6)
            with suppress(MemoryError):
                loop.turn()
            shortage.left = None
        try:
            loop.run(0)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert shortage.failed > (100 if part else 10)


LIMITED = """
import resource
import numpy, lazynp as np
from lazynp.values import allocator
x = (np.arange(1_000_000) * 1.0).realize(); z = x + 0; z[::2] += 1; z.realize(); del z
missing = 0
for extra in range(24):
    x = (np.arange(1_000_000) * 1.0).realize(); y = x + 0; x[::2] += 1
    allocator.trim()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 20), -1))
    try:
        x.realize()
    except MemoryError:
        missing += 1
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    assert (numpy.asarray(y) == numpy.arange(1_000_000)).all(), extra
    assert (numpy.asarray(x) == numpy.arange(1_000_000) + (numpy.arange(1_000_000) % 2 == 0)).all(), extra
assert 0 < missing < 24, missing
"""


@pytest.mark.parametrize("tier", [TIERS[0], *(pytest.param(tier, marks=pytest.mark.slow) for tier in TIERS[1:])])
def test_a_limit_at_every_megabyte_loses_nothing(tier: str) -> None:
    run = subprocess.run([sys.executable, "-c", LIMITED], env={**os.environ, "LAZYNP_TIER": tier}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_threads_see_whole_values_only() -> None:
    """One thread writes rows in place, others read what they captured."""
    x, _ = both(numpy.zeros((64, 200)))
    x[0] = 0.0
    np.realize(x)
    wrong: list[Any] = []
    stop = threading.Event()

    def look(captured: list[ndarray]) -> None:
        while not stop.is_set():
            for y in captured:
                values = numpy.asarray(y * 1.0)
                if len(numpy.unique(values)) != 1:
                    wrong.append(values)

    x[:] = 7.0
    captured = [x.copy(), x.copy()]
    threads = [threading.Thread(target=look, args=(captured,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(60):
            x[turn % 64] = float(turn)
            np.realize(x)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_who_reads_a_value_asks_again_while_a_run_holds_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    node = node_of(np.asarray(numpy.arange(4.0)) + 1)
    held: list[Buffer] = []
    force = scalars.force

    def forced(nodes: Sequence[Node], reason: str) -> None:
        if held:
            node.buffer = held[0]  # the other thread's run is over
            return
        force(nodes, reason)
        assert node.buffer is not None
        held.append(node.buffer)
        node.buffer = None  # it has begun

    monkeypatch.setattr(scalars, "force", forced)
    assert scalars.computed(node, "test").array.tolist() == [1, 2, 3, 4]
    assert node.buffer is held[0]
