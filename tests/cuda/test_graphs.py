"""Repeated schedules as CUDA graphs: the same values, errors and writes, from fewer launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.cuda import graphs, launch, memory
from lazynp.graph import report
from lazynp.values import config
from tests.array import chained
from tests.cuda.host import EMULATED, SEEDS, machine
from tests.in_turns import in_threads

pytestmark = pytest.mark.skipif(not EMULATED, reason="counts what the fake CuPy records")

RNG = numpy.random.default_rng(8)
A = RNG.standard_normal((30, 20))
TURNS = 30


@pytest.fixture(params=SEEDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with steady(request.param) as fake:
        yield fake


@pytest.fixture
def one() -> Iterator[Any]:
    with steady(0) as fake:
        yield fake


@contextmanager
def steady(seed: int) -> Iterator[Any]:
    """A machine whose pool gives back what was just freed, as CuPy's does, so that loops repeat their addresses."""
    with machine(seed=seed) as fake, config.override(graphs=2):
        fake.policy = fake.policy._replace(reuse=1.0)
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda")


def normalised(xp: Any, x: Any) -> Any:
    """Several kernels: the statistics of columns come before what is computed with them."""
    x = x - x.max(axis=0)
    return (x * x).max(axis=0) + x / 2


def relaxed(xp: Any, u: Any, steps: int) -> Any:
    """A time loop in place, a STORE a step."""
    for _ in range(steps):
        u[1:-1, 1:-1] = (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1]) / 4
        u[0] = u[-1] * 0.5
        if xp is np:
            np.realize(u)
    return u


def loop(xp: Any, x: Any, turns: int = TURNS) -> Any:
    for _ in range(turns):
        x = normalised(xp, x)
        if xp is np:
            np.realize(x)
    return x


def test_a_loop_that_replaces_its_array(gpu: Any) -> None:
    found = loop(np, there(A))
    numpy.testing.assert_array_equal(found, loop(numpy, A))
    assert TURNS // 2 < report.work.graphs < TURNS
    assert report.work.kernels >= 2 * TURNS


def test_a_loop_that_writes_in_place(gpu: Any) -> None:
    found = relaxed(np, there(A) * 1, TURNS)
    numpy.testing.assert_array_equal(found, relaxed(numpy, A * 1, TURNS))
    assert report.work.graphs > TURNS // 2 and report.work.in_place >= TURNS


LARGE = RNG.standard_normal((3000, 20))


def rewritten(xp: Any, u: Any, turns: int = TURNS) -> Any:
    """Three rows of a large array, in place."""
    for _ in range(turns):
        u[3] = u[7] * 0.5 + u[4]
        u[7] = u[3] - u[10]
        u[5] = u[2] + u[7]
        if xp is np:
            np.realize(u)
    return u


def test_a_loop_that_writes_little_in_place(gpu: Any) -> None:
    source = there(LARGE)  # held: of its memory, if it were free, the imitation would never give the same part twice
    found = rewritten(np, source * 1)
    numpy.testing.assert_array_equal(found, rewritten(numpy, LARGE * 1))
    assert report.work.graphs > TURNS // 2 and report.work.in_place >= 3 * TURNS - 3


def test_copies_of_one_array_and_of_another(gpu: Any) -> None:
    sources = there(A) * 1, there(A) * 2
    row = there(A[0])
    np.realize(*sources)
    for turn in range(TURNS):
        w = sources[turn % 2].copy()
        w[2] = row
        w[4] = row * 2
        np.realize(w)
        expected = A * (turn % 2 + 1)
        expected[2], expected[4] = A[0], A[0] * 2
        numpy.testing.assert_array_equal(w, expected)
        del w
    assert report.work.graphs


def test_a_write_that_somebody_else_sees_is_a_copy(gpu: Any) -> None:
    u, expected = there(A) * 1, A * 1
    for _ in range(TURNS):
        before, old = u.copy(), expected.copy()
        relaxed(np, u, 1)
        relaxed(numpy, expected, 1)
        numpy.testing.assert_array_equal(before, old)
    numpy.testing.assert_array_equal(u, expected)


def test_errors_of_a_replay_are_told(gpu: Any) -> None:
    x = there(A)
    for turn in range(TURNS):
        value = 0.0 if turn == TURNS - 2 else 1.0
        y = there(numpy.full(20, value))
        np.realize(y)
        z = normalised(np, x) / y
        if value:
            np.realize(z)
        else:
            with chained.told() as heard:
                np.realize(z)
            assert ["divide by zero" in str(warning.message) for warning in heard] == [True]
        with numpy.errstate(all="ignore"):
            numpy.testing.assert_array_equal(z, normalised(numpy, A) / value)
    assert report.work.graphs


def test_an_index_out_of_range_in_a_replay(gpu: Any) -> None:
    x, expected = there(numpy.zeros((30, 20))), numpy.zeros((30, 20))
    for _ in range(29):
        x, expected = x + 1, expected + 1
        z = (x - x.max(axis=0))[x[:3, 0].astype(int)]
        np.realize(x, z)
        numpy.testing.assert_array_equal(z, numpy.zeros((3, 20)))
    assert report.work.graphs
    x = x + 1
    z = (x - x.max(axis=0))[x[:3, 0].astype(int)]
    with pytest.raises(IndexError, match="index 30 is out of bounds"):
        np.realize(x, z)
    numpy.testing.assert_array_equal(x, expected + 1)


def test_changing_numbers_are_not_captured_for_ever(one: Any) -> None:
    x = there(A)
    for turn in range(graphs.PATIENCE + TURNS):
        np.realize(normalised(np, x) * turn)
    assert not report.work.graphs
    known = [plan.graphs for plan in _plans()]
    assert any(each is not None and each.hopeless and not each.counts for each in known)
    numpy.testing.assert_array_equal(normalised(np, x) * 7, normalised(numpy, A) * 7)


def test_graphs_of_one_schedule_are_bounded(one: Any) -> None:
    x = there(A)
    for turn in range(graphs.KEPT + 4):
        for _ in range(2 * graphs.REPEATS + 2):
            y = normalised(np, x) * (turn + 0.5)  # no literal of its own, which would be one subexpression with it
            np.realize(y)
            del y
    (known,) = [plan.graphs for plan in _plans() if plan.graphs is not None]
    assert 1 < len(known.graphs) <= graphs.KEPT
    numpy.testing.assert_array_equal(normalised(np, x) * 3, normalised(numpy, A) * 3)


def _plans() -> list[Any]:
    from lazynp.engine import realize

    return [plan for plans in realize._engine.caches.values() for plan in plans.values() if hasattr(plan, "graphs")]


def test_not_by_default_and_not_for_single_kernels() -> None:
    with machine(seed=0):
        loop(np, there(A))
        assert not report.work.graphs
    with machine(seed=0), config.override(graphs=2):
        x = there(A)
        for _ in range(TURNS):
            x = x / 2 + 1
            np.realize(x)
        assert not report.work.graphs


@pytest.mark.usefixtures("unheard")
def test_the_switch_is_looked_at_again() -> None:
    with machine(seed=0) as fake:
        fake.policy = fake.policy._replace(reuse=1.0)
        x = there(A)
        for graphs_, expected in ((0, False), (2, True), (0, False)):
            report.reset()
            with config.override(graphs=graphs_):
                loop(np, x)
            assert bool(report.work.graphs) is expected


def test_not_where_kernels_write_much(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazynp.backends.cuda.launch.SMALL", A.nbytes)
    loop(np, there(A))
    assert not report.work.graphs


def test_uploads_come_before(gpu: Any) -> None:
    for turn in range(TURNS):
        x = np.asarray(A + turn)
        with np.device("cuda"):
            y = normalised(np, x)
            np.realize(y)
        numpy.testing.assert_array_equal(y, normalised(numpy, A + turn))


def test_threads_have_graphs_of_their_own(gpu: Any) -> None:
    expected = loop(numpy, A)
    in_threads(3, lambda _: numpy.testing.assert_array_equal(loop(np, there(A)), expected))


def test_memory_that_is_given_up_meanwhile(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    allocate = memory.Place.allocate

    def emptied(place: Any, nbytes: int) -> Any:
        found = allocate(place, nbytes)
        cupy.get_default_memory_pool().free_all_blocks()
        return found

    monkeypatch.setattr(memory.Place, "allocate", emptied)
    integers = numpy.arange(1 << 20) % 1000
    x, y = there(LARGE), there(integers)
    rows = LARGE - LARGE.max(axis=0)
    np.realize(x, y)
    for _ in range(6):
        z = (x - x.max(axis=0)).contiguous()
        z = z.max(axis=1) - z[:, 0]
        w = y - y.sum()
        w = w - (w % 7).sum()
        np.realize(z, w)
        numpy.testing.assert_array_equal(z, rows.max(axis=1) - rows[:, 0])
        expected = integers - integers.sum()
        numpy.testing.assert_array_equal(w, expected - (expected % 7).sum())
    numpy.testing.assert_array_equal(loop(np, there(A)), loop(numpy, A))


@pytest.mark.parametrize(("owner", "method"), [("Stream", "begin_capture"), ("Graph", "launch")])
def test_what_cuda_refuses_is_launched_piece_by_piece(owner: str, method: str, one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    def refused(*_: Any) -> None:
        raise cupy.cuda.runtime.CUDARuntimeError(900)

    monkeypatch.setattr(getattr(cupy.cuda, owner), method, refused)
    numpy.testing.assert_array_equal(loop(np, there(A)), loop(numpy, A))
    assert not report.work.graphs


def test_a_run_that_fails_on_the_way(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source, expected = there(LARGE), LARGE * 1
    u = rewritten(np, source * 1, 6)
    rewritten(numpy, expected, 6)
    assert report.work.graphs
    allocate, left = memory.Place.allocate, [0]

    def failing(place: Any, nbytes: int) -> Any:
        left[0] -= 1
        if not left[0]:
            raise MemoryError("none left")
        return allocate(place, nbytes)

    monkeypatch.setattr(memory.Place, "allocate", failing)
    for first in (1, 2, 3):
        rewritten(numpy, expected, 1)
        left[0] = first
        with pytest.raises(MemoryError, match="none left"):
            rewritten(np, u, 1)
        left[0] = 0
        numpy.testing.assert_array_equal(u, expected)


def test_a_finalizer_computes_on_the_way(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the kernels of one schedule those of another are put together."""
    launched, inside, found = launch.DeviceLauncher.launch, [False], []

    def interrupted(*args: Any) -> None:
        launched(*args)
        if not inside[0]:
            inside[0] = True
            found.append(numpy.asarray(normalised(np, there(A + 1))))
            inside[0] = False

    monkeypatch.setattr(launch.DeviceLauncher, "launch", interrupted)
    numpy.testing.assert_array_equal(loop(np, there(A)), loop(numpy, A))
    for made in found:
        numpy.testing.assert_array_equal(made, normalised(numpy, A + 1))
    assert report.work.graphs


def test_a_number_of_kernels_is_asked_for() -> None:
    assert config.parse({"LAZYNP_CUDA_GRAPHS": "4"})["graphs"] == 4 and config.parse({})["graphs"] == 0
    with pytest.raises(ValueError, match="LAZYNP_CUDA_GRAPHS='-1' is not a whole number of at least 0"):
        config.parse({"LAZYNP_CUDA_GRAPHS": "-1"})
    with pytest.raises(ValueError, match="graphs=-1 is not a whole number"):
        config.update(graphs=-1)
