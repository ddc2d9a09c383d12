"""The pooling allocator: alignment, reuse, lifetime of views, bounds, and the counters that say so."""

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from lazynp.values import allocator
from lazynp.values.allocator import HUGE_FROM, HUGE_PAGE, POOL_SLACK, SLAB_BYTES, SMALL_LIMIT, Allocator

FLOAT = np.dtype(np.float64)
SIZES = [0, 1, 63, 64, 65, 511, 512, 513, 1000, 4096, 100_000, SMALL_LIMIT, SMALL_LIMIT + 1, 1 << 20, HUGE_FROM, HUGE_FROM + 5]


@pytest.fixture
def pool() -> Allocator:
    return Allocator(keep=64 << 20)


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_block_is_large_enough_aligned_and_wastes_a_quarter_at_most(pool, nbytes):
    block = pool.allocate(nbytes)
    assert block.address % 64 == 0
    assert max(nbytes, 64) <= block.nbytes <= max(64, nbytes + max(63, nbytes // 4))
    view = block.view(np.dtype(np.uint8), (nbytes,))
    view[...] = 7
    assert view.sum() == 7 * nbytes


def test_large_blocks_are_aligned_for_huge_pages(pool):
    assert pool.allocate(HUGE_FROM).address % HUGE_PAGE == 0


@pytest.mark.parametrize("nbytes", SIZES)
def test_memory_of_garbage_is_used_again(pool, nbytes):
    first = pool.allocate(nbytes)
    address = first.address
    del first
    second = pool.allocate(nbytes)
    assert second.address == address
    memory = pool.memory()
    assert (memory["allocations"], memory["reuses"], memory["pooled"]) == (2, 1, 0)
    assert memory["in_use"] == memory["peak"] == second.nbytes


@pytest.mark.parametrize("nbytes", [4096, 1 << 20])
def test_memory_with_a_living_view_is_not_used_again(pool, nbytes):
    block = pool.allocate(nbytes)
    address = block.address
    view = block.view(FLOAT, (nbytes // 8,))[3:40:2].reshape(-1)[::-1]
    del block
    assert pool.memory()["pooled"] == 0
    other = pool.allocate(nbytes)
    assert other.address != address
    del view
    assert pool.allocate(nbytes).address == address


def test_views_share_the_memory_and_are_plain_arrays(pool):
    block = pool.allocate(80)
    one, two = block.view(FLOAT, (2, 5)), block.view(np.dtype(np.complex128), (5,))
    one[...] = np.arange(10).reshape(2, 5)
    assert type(one) is np.ndarray
    assert one.flags.c_contiguous
    assert one.flags.writeable
    assert one.ctypes.data == block.address
    assert two.tolist() == [0 + 1j, 2 + 3j, 4 + 5j, 6 + 7j, 8 + 9j]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3)])
def test_views_have_the_dtype_and_shape_asked_for(pool, dtype, shape):
    view = pool.allocate(96).view(np.dtype(dtype), shape)
    assert view.dtype == np.dtype(dtype)
    assert view.shape == shape


def test_a_larger_free_mapping_is_taken_rather_than_fresh_pages(pool):
    first = pool.allocate(1 << 20)
    address = first.address
    del first
    assert pool.allocate(600 << 10).address == address
    assert pool.memory()["reuses"] == 1


def test_what_is_kept_is_bounded_and_the_oldest_goes_first():
    pool = Allocator(keep=4 << 20)
    blocks = [pool.allocate(1 << 20) for _ in range(8)]
    young = blocks[-1].address
    while blocks:
        del blocks[0]
    assert pool.memory()["pooled"] == 4 << 20
    assert pool.memory()["in_use"] == 0
    again = [pool.allocate(1 << 20) for _ in range(8)]
    assert young in [block.address for block in again]
    assert pool.memory()["reuses"] == 4


def test_slabs_without_a_block_in_use_go_back():
    pool = Allocator(keep=1 << 20)
    blocks = [pool.allocate(1000) for _ in range(5 * SLAB_BYTES // 1024)]
    held = blocks[0]
    blocks.clear()
    pool.trim()
    kept = pool.memory()["pooled"]
    assert kept < 2 * SLAB_BYTES  # the slab with the block in use, and the one that is still being cut
    del held
    pool.trim()
    assert pool.memory()["pooled"] <= SLAB_BYTES


def test_trim_gives_everything_large_back(pool):
    del (blocks := [pool.allocate(1 << 20) for _ in range(3)])[:]
    assert not blocks
    assert pool.memory()["pooled"] == 3 << 20
    pool.trim()
    assert pool.memory()["pooled"] == 0


@pytest.mark.parametrize("nbytes", [1 << 60, 1 << 80])
def test_memory_that_cannot_be_had_is_a_memory_error_with_the_size(pool, nbytes):
    kept = pool.allocate(1 << 20)
    with pytest.raises(MemoryError, match=r"Unable to allocate .*iB: 1 MiB are in use"):
        pool.allocate(nbytes)
    assert pool.allocate(100).nbytes == 128
    assert pool.memory()["in_use"] == kept.nbytes


def test_a_negative_size_is_refused(pool):
    with pytest.raises(ValueError, match="-5"):
        pool.allocate(-5)


def test_blocks_given_back_by_many_threads_are_all_counted(pool):
    def work():
        for i in range(2000):
            block = pool.allocate(64 + i % 7 * 1000)
            block.view(np.dtype(np.uint8), (64,))[:] = 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory = pool.memory()
    assert memory["in_use"] == 0
    assert memory["allocations"] == 8000


def test_two_threads_never_hold_the_same_memory(pool):
    clashes = []

    def work(mark):
        for _ in range(1000):
            view = pool.allocate(256).view(np.dtype(np.int64), (32,))
            view[:] = mark
            if not (view == mark).all():
                clashes.append(mark)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes


def test_a_block_in_a_cycle_comes_back_through_the_collector(pool):
    class Holder:
        pass

    holder = Holder()
    holder.me, holder.block = holder, pool.allocate(1000)
    ghost = weakref.ref(holder.block)
    del holder
    gc.collect()
    assert ghost() is None
    assert pool.memory()["in_use"] == 0


def test_blocks_alive_at_exit_and_in_children_after_fork_do_no_harm():
    program = """
import os, sys
import numpy as np
from lazynp.values.allocator import allocate, memory
small, large = allocate(100), allocate(1 << 23)
view = large.view(np.dtype("f8"), (1 << 20,))
view[:] = 1.0
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        view[:] = 2.0                      # memory is private to each process
        other = allocate(1 << 23)
        sys.exit(0 if view.sum() == 2 << 20 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert view.sum() == 1 << 20
class Late:
    def __init__(self): self.block = allocate(5000)
    def __del__(self): self.block = None
sys.modules["late"] = Late()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)


def test_blocks_of_other_sizes_do_not_pile_up() -> None:
    """Sizes that change at every turn: what was kept of them is in nobody's way."""
    pool = Allocator(keep=1 << 40)
    for k in range(40):
        block = pool.allocate((40 - k) << 20)
        del block
        assert pool.memory()["pooled"] <= pool.memory()["peak"] + POOL_SLACK
    for k in range(40):
        block = pool.allocate((1 + 3 * k) << 20)
        del block
    assert pool.memory()["pooled"] <= pool.memory()["peak"] + POOL_SLACK
    kept = [pool.allocate(5 << 20) for _ in range(4)]
    reuses = pool.memory()["reuses"]
    del kept
    kept = [pool.allocate(5 << 20) for _ in range(4)]
    assert pool.memory()["reuses"] == reuses + len(kept)  # what fits is used again


def test_what_the_c_library_keeps_goes_back_before_a_new_peak(pool, monkeypatch):
    kept = []
    monkeypatch.setattr(allocator, "release_heap", kept.append)
    first = pool.allocate(HUGE_FROM)
    assert kept == [0]
    del first
    again = [pool.allocate(HUGE_FROM), pool.allocate(SMALL_LIMIT)]
    assert kept == [0]
    again.append(pool.allocate(HUGE_FROM))
    assert kept == [0, 0]
