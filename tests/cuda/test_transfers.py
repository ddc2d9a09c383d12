"""Uploads: what waits for them, what they wait for, and when their memory is used again.

In: programs on the fake device, which runs work of different streams in any order that CUDA allows.  Out: failures.  Promise: what an
upload comes after is read from the machine's queue, not guessed from values.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

import lazynp as np
from gpu_emulator.fakecupy.machine import Machine, Operation, _closure
from lazynp.arrays import root_node
from lazynp.backends.cuda import memory, transfers
from lazynp.graph import report
from lazynp.values import config
from tests.cuda import test_host
from tests.cuda.host import SEEDS, machine
from tests.cuda.host import transfers as counted
from tests.in_turns import in_threads

N = 40_000
X = numpy.arange(N)  # integers: where floating-point errors are looked for, each run waits for its kernels
LATE = 0  # the seed under which nothing runs before somebody waits for it


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of N elements needs more staging memory than there is, and counts as what it is."""
    monkeypatch.setattr(transfers, "PIECE", 64 << 10)
    monkeypatch.setattr(transfers, "LEAST", 1)
    assert X.nbytes > transfers.PIECES * transfers.PIECE


@pytest.fixture(params=SEEDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with machine(seed=request.param) as fake:
        yield fake


@pytest.fixture
def late() -> Iterator[Machine]:
    with machine(seed=LATE) as fake:
        yield fake


def there(x: Any) -> Any:
    return np.asarray(x, device="cuda")


def place() -> Any:
    return memory.place("cuda:0")


def block(x: Any) -> Any:
    return root_node(x).buffer.block


def kernels(operations: Any) -> list[Operation]:
    return [op for op in operations if op.label.startswith("kernel")]


def uploads(fake: Machine) -> list[Operation]:
    """The copies to the device that have not run."""
    return [op for op in fake.pending if op.label.startswith("copy") and op.stream.handle == place().uploads.stream.ptr]


def queued(fake: Machine) -> set[Operation]:
    """What this thread's stream still has to come after."""
    tail = fake.stream(place().stream().ptr).tail
    return set() if tail is None else _closure([tail])


# Order ----------------------------------------------------------------------------------------------------------------------------


def test_an_upload_waits_for_no_kernel(gpu: Machine) -> None:
    x = (there(X) + 1).realize()
    running = len(kernels(gpu.pending))
    y = there(X * 2).realize()
    copies = uploads(gpu)
    assert not kernels(_closure(copies))
    z = (x * y).realize()
    if gpu.seed == LATE:
        assert running == 1 and copies
        assert len(kernels(gpu.pending)) == 2  # the host did not wait for one either
        assert set(copies) <= queued(gpu)
    numpy.testing.assert_array_equal(z, (X + 1) * (X * 2))


def test_an_upload_goes_on_while_the_first_kernels_of_its_run_do(gpu: Machine) -> None:
    config.update(device="cuda")
    first, second = numpy.asarray(X) * 3, numpy.asarray(X[1:]) * 5
    a, b = np.asarray(first) + 1, np.asarray(second) * 2
    np.realize(a, b)
    copies = uploads(gpu)
    assert not kernels(_closure(copies))
    if gpu.seed == LATE:
        assert len(kernels(gpu.pending)) == 2 and len(copies) == transfers.PIECES
    numpy.testing.assert_array_equal(a, first + 1)
    numpy.testing.assert_array_equal(b, second * 2)


def test_only_readers_wait(late: Machine) -> None:
    x = (there(X) + 1).realize()
    y = there(X * 2).realize()
    (x - 1).realize()
    assert not set(uploads(late)) & queued(late)
    (x + y).realize()
    assert set(uploads(late)) <= queued(late)


def test_small_uploads_stay_in_order(late: Machine) -> None:
    x = there(numpy.arange(100)).realize()
    assert block(x).stream is place().stream()
    assert block(there(X).realize()).stream is place().uploads.stream


def test_a_source_may_be_overwritten(gpu: Machine) -> None:
    for k in range(3):
        source = X + k
        with place().running() as run:
            found = place().uploads.upload(source)
            source[:] = -1
            read = numpy.empty(N, source.dtype)
            place().joined(run, found)
            place().read(found, found.address, read)
        numpy.testing.assert_array_equal(read, X + k)


@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "f4", "c16"])
def test_any_dtype_and_shape(late: Machine, dtype: str) -> None:
    for shape in ((N * 8,), (5, N, 2), (N * 2 + 7, 3), ((64 << 10) // 16 + 1, 1, 16)):
        expected = (numpy.arange(numpy.prod(shape)) % 100).reshape(shape).astype(dtype)
        x = there(expected)
        numpy.testing.assert_array_equal(x[::-1] == expected[::-1], True)


def test_counts_are_as_before(late: Machine) -> None:
    x, y = there(X), np.asarray(X * 2)
    for _ in range(3):
        (x + y).realize()
    (x * 2).tolist()
    assert counted() == {"to cuda:0": 2, "from cuda:0": 1}


# Downloads ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, transfers.PIECE, 2 * transfers.PIECE + 1, 5 * transfers.PIECE - 3])
def test_downloads_of_several_pieces(size: int, gpu: Machine) -> None:
    expected = (numpy.arange(size) % 251).astype("u1")
    before = gpu.copies
    x = (there(expected) + numpy.uint8(1)).realize()
    sent = gpu.copies - before
    numpy.testing.assert_array_equal(numpy.asarray(x), expected + numpy.uint8(1))
    assert gpu.copies - before - sent == -(-size // transfers.PIECE)
    assert len(place().uploads._ring) == transfers.PIECES


def test_large_downloads(gpu: Machine) -> None:
    test_downloads_of_several_pieces(5 * transfers.PIECE - 3, gpu)


def test_downloads_without_page_locked_memory(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    def full(size: int) -> Any:
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    x = there(numpy.arange(2.0e6)).realize()
    y = (x * 2).realize()
    place().synchronize()  # what was sent has arrived
    for piece in place().uploads._pieces:
        piece.memory = None
    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", full)
    numpy.testing.assert_array_equal(numpy.asarray(y), numpy.arange(2.0e6) * 2)
    assert len(place().uploads._ring) == transfers.PIECES


def test_downloads_while_others_have_the_page_locked_memory(gpu: Machine) -> None:
    ring = place().uploads._ring
    y = (there(numpy.arange(3.0e6)) * 2).realize()
    taken = [ring.popleft() for _ in range(len(ring))]
    numpy.testing.assert_array_equal(numpy.asarray(y), numpy.arange(3.0e6) * 2)
    ring.append(taken.pop())
    numpy.testing.assert_array_equal(numpy.asarray((y * 2).realize()), numpy.arange(3.0e6) * 4)
    assert len(ring) == 1
    ring.extend(taken)


# Memory ---------------------------------------------------------------------------------------------------------------------------


def batches(count: int) -> tuple[Any, Any]:
    """A sum over batches that are uploaded and dropped one after the other, and what it is."""
    total, expected = there(X * 0).realize(), X * 0
    for k in range(count):
        total = total * 3 + there(X + k)
        total.realize()
        expected = expected * 3 + X + k
    return total, expected


@pytest.mark.parametrize("waiting", [0, 3 * X.nbytes, transfers.WAITING])
def test_memory_of_uploads_is_used_again_after_its_readers(gpu: Machine, monkeypatch: pytest.MonkeyPatch, waiting: int) -> None:
    monkeypatch.setattr(transfers, "WAITING", waiting)
    total, expected = batches(20)
    numpy.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("waiting", [0, 3 * X.nbytes])
def test_loops_over_batches_need_little_memory(gpu: Machine, monkeypatch: pytest.MonkeyPatch, waiting: int) -> None:
    import cupy

    monkeypatch.setattr(transfers, "WAITING", waiting)
    pool = cupy.get_default_memory_pool()
    needed = []
    for count in (10, 40):
        batches(count)
        needed.append(pool.total_bytes())
        assert len(place().uploads.leaving) <= 3 + 3 * (waiting > 0)
    assert needed[1] <= max(waiting, X.nbytes) + 5 * X.nbytes  # what waits, one upload, and the sum three times
    assert needed[1] - needed[0] <= X.nbytes


def test_the_next_upload_does_not_wait_for_the_run_before(late: Machine) -> None:
    batches(2)
    assert len(kernels(late.pending)) == 2
    assert not kernels(_closure(uploads(late)))


def test_what_exceeds_the_bound_waits_on_the_device(late: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "WAITING", 0)
    monkeypatch.setattr(transfers, "PIECE", X.nbytes)  # otherwise the host waits for the staging memory
    batches(4)
    assert len(kernels(late.pending)) == 4
    assert kernels(_closure(uploads(late)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_full_device_waits_for_uploads_that_nobody_wants(seed: int) -> None:
    with machine(seed=seed, device_memory=8 * X.nbytes):
        config.update(device="cuda")
        weight = np.asarray(X * 5)
        total, expected = np.asarray(X * 0), X * 0
        for k in range(12):
            total = total * 3 + (there(X + k) - weight)
            total.realize()
            expected = expected * 3 + (X + k - X * 5)
        numpy.testing.assert_array_equal(total, expected)
        assert counted()["to cuda:0"] == 14  # what is still wanted was not given up for them


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_for_results_is_taken_from_uploads(seed: int) -> None:
    with machine(seed=seed, device_memory=6 * X.nbytes + (64 << 10)):
        kept = [(there(X + k) * 2).realize() for k in range(4)]
        with pytest.raises(MemoryError):
            kept += [(there(X + k) * 2).realize() for k in range(4)]
        for k, x in enumerate(kept):
            numpy.testing.assert_array_equal(x, (X + k) * 2)


def test_threads_drop_what_others_read(gpu: Machine) -> None:
    """Each thread reads uploads of all, which the threads drop in turn while new ones are made."""
    shared = [there(X + k).realize() for k in range(4)]

    def work(me: int) -> None:
        for turn in range(4):
            mine = there(X * me + turn)
            found = [(x * (me + 1) - mine).realize() for x in list(shared)]
            shared[me] = there(X + me).realize()
            for k, x in enumerate(found):
                numpy.testing.assert_array_equal(x, (X + k) * (me + 1) - (X * me + turn))

    in_threads(4, work)


def test_a_thread_that_still_queues_keeps_what_it_reads(late: Machine) -> None:
    x = there(X).realize()
    joined, dropped = threading.Event(), threading.Event()
    found: list[Any] = []

    def work() -> None:
        with place().running() as run:
            held = block(shared.pop())
            place().joined(run, held)
            address = held.address
            del held
            joined.set()
            dropped.wait(10)
            with place().running():  # the address is used once more after the block is garbage here, which real runs do not do
                made = place().buffer(X.nbytes, X.dtype, X.shape)
                place().copy(made.address, address, X.nbytes, run)
                found.append(made)

    shared = [x]
    del x
    thread = threading.Thread(target=work)
    thread.start()
    joined.wait(10)
    gc.collect()
    for k in range(3):
        there(X * 0 + k).realize()
    assert len(place().uploads.leaving) >= 1
    dropped.set()
    thread.join()
    numpy.testing.assert_array_equal(found[0].array, X)


def test_a_run_that_is_interrupted_ends_later(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer computes with an upload while another run is about to read it."""
    monkeypatch.setattr(transfers, "WAITING", 0)
    monkeypatch.setattr(transfers, "PIECE", 32 << 10)
    x = there(X).realize()
    with place().running() as outer:
        held = block(x)
        place().joined(outer, held)
        with place().apart(place().uploads.stream), place().running() as inner:
            place().joined(inner, held)
        assert inner is not outer
        made = place().buffer(X.nbytes, X.dtype, X.shape)
        place().copy(made.address, held.address, X.nbytes, outer)
    del x, held
    for k in range(4):
        (there(X * 0 + k) + 1).realize()
    numpy.testing.assert_array_equal(made.array, X)


def test_old_values_are_saved_before_another_threads_memory_is_used_again(gpu: Machine) -> None:
    """What one thread made another one writes into, while somebody still wants what was there."""
    with ThreadPoolExecutor(1) as maker:
        for k in range(4):
            x = maker.submit(lambda k=k: (there(X) * 2 + k).realize()).result()
            kept = x.copy()
            kept.realize()
            x[5:7] = -1
            x.realize()
            del x
            gc.collect()
            y = maker.submit(lambda k=k: (there(X) * 3 - k).realize()).result()
            numpy.testing.assert_array_equal(kept, X * 2 + k)
            numpy.testing.assert_array_equal(y, X * 3 - k)
    assert report.work.in_place >= 3


def test_uploads_in_garbage_cycles(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector finalizes what is in a cycle, and what only the cycle refers to, in an order of its own."""
    monkeypatch.setattr(transfers, "WAITING", 0)
    gc.disable()
    try:
        for k in range(6):
            cycle: list[Any] = [there(X + k).realize()]
            cycle.append(cycle)
            found = (cycle[0] + 1).realize()
            del cycle
            gc.collect()
            other = (there(X * 2) - k).realize()
            numpy.testing.assert_array_equal(found, X + k + 1)
            numpy.testing.assert_array_equal(other, X * 2 - k)
    finally:
        gc.enable()
    assert len(place().uploads._uses) <= 2


def test_runs_of_threads_that_ended_are_forgotten(gpu: Machine) -> None:
    x = there(X).realize()
    for k in range(20):
        thread = threading.Thread(target=lambda k=k: (x + k).tolist())
        thread.start()
        thread.join()
    assert len(block(x).use.runs) <= 3


# Other libraries --------------------------------------------------------------------------------------------------------------------


def test_lent_uploads_wait(gpu: Machine) -> None:
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    for k in range(3):
        for take in (cupy.asarray, cupy.from_dlpack):
            with stream:
                y = take(there(X + k))
                z = y + 1
                others = [there(X * 7).realize() for _ in range(2)]
                numpy.testing.assert_array_equal(z.get(), X + k + 1)
            numpy.testing.assert_array_equal(others[1], X * 7)


def test_users_of_the_default_stream_may_drop_uploads(gpu: Machine) -> None:
    import cupy

    for k in range(3):
        x = there(X + k)
        y = cupy.from_dlpack(x)
        z = y + 1
        del x, y
        others = [there(X * 0 + k).realize() for _ in range(3)]
        numpy.testing.assert_array_equal(z.get(), X + k + 1)
        numpy.testing.assert_array_equal(others[2], X * 0 + k)


def test_libraries_read_uploads(gpu: Machine) -> None:
    for k in range(4):
        expected = (X + k).reshape(200, 200)
        numpy.testing.assert_array_equal(np.sort(there(expected)[::-1], axis=0), expected)
        numpy.testing.assert_array_equal(np.flatnonzero(there(X) > k), numpy.flatnonzero(k < X))


def test_uploads_are_not_overwritten(gpu: Machine) -> None:
    host = np.asarray(X)
    x = host.to_device("cuda")
    y = x + 0
    x[10:20] = -1
    x.realize()
    numpy.testing.assert_array_equal(host.to_device("cuda") + 0, X)
    numpy.testing.assert_array_equal(y, X)
    assert x[15] == -1


# Failures ---------------------------------------------------------------------------------------------------------------------------


def test_an_upload_that_fails_leaves_nothing_behind(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    x = there(X + 1).realize()
    send, calls = transfers.Uploads._send, iter(range(3))

    def failing(self: Any, target: int, part: Any) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        send(self, target, part)

    for _ in range(5):
        calls = iter(range(3))
        monkeypatch.setattr(transfers.Uploads, "_send", failing)
        with pytest.raises(KeyboardInterrupt):
            there(X + 2).realize()
        monkeypatch.undo()
        monkeypatch.setattr(transfers, "PIECE", 64 << 10)
    assert len(place().uploads._ring) == transfers.PIECES
    numpy.testing.assert_array_equal(there(X + 2) + x, 2 * X + 3)
    assert len(place().uploads.leaving) <= 1


def test_a_run_that_fails_lets_go_of_its_uploads(gpu: Machine) -> None:
    for k in range(4):
        with pytest.raises(IndexError):
            (there(X + k)[there(numpy.array([1, N])) + 0] + there(X * 2)[:2]).realize()
    gc.collect()  # errors know their frames, and these the arrays
    numpy.testing.assert_array_equal(there(X) + 1, X + 1)
    place().synchronize()
    there(X * 2).realize()
    assert len(place().uploads.leaving) <= 1


def test_without_page_locked_memory_the_driver_stages(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    def full(size: int) -> Any:
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", full)
    total, expected = batches(6)
    numpy.testing.assert_array_equal(total, expected)


def test_pieces_that_others_have(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    place().uploads._ring.clear()
    total, expected = batches(6)
    numpy.testing.assert_array_equal(total, expected)


def test_finalizers_compute_in_a_stream_of_their_own(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is collected in the midst of CuPy's calls too."""
    import cupy

    x, found = there(X).realize(), []

    class Computing:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            found.append((x + 1).realize())

    malloc = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(lambda nbytes: (gc.collect(), malloc(nbytes))[1])
    Computing()
    y = there(X * 2).realize()
    assert len(found) == 1
    inside = block(found[0])
    assert inside.stream is place().stream()
    assert inside.pointer.mem._chunk.stream.handle == inside.stream.ptr
    numpy.testing.assert_array_equal(found[0] + y, X * 3 + 1)


# All of it with arrays of any size ---------------------------------------------------------------------------------------------------


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """No upload is small, and none may wait for its readers."""
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(transfers, "PIECE", 512)
    monkeypatch.setattr(transfers, "WAITING", 0)


@pytest.mark.parametrize("name", test_host.PROGRAMS)
def test_programs(name: str, gpu: Machine, everything: None) -> None:
    test_host.test_programs(name, gpu)


@pytest.mark.parametrize(
    "program",
    [
        test_host.test_element_writes_work_on_a_host_copy,
        test_host.test_writes_through_views,
        test_host.test_large_arrays_are_written_in_place,
        test_host.test_a_failed_run_puts_back_what_it_wrote,
        test_host.test_indices_out_of_range,
        test_host.test_cupys_arrays_in_and_out,
        test_host.test_dlpack,
        test_host.test_what_is_shared_is_not_written,
        test_host.test_threads_have_streams_of_their_own,
        test_host.test_threads_hand_memory_over,
    ],
)
def test_what_the_host_does(program: Any, gpu: Machine, everything: None) -> None:
    program(gpu)
