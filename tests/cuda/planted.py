"""Bugs planted in the CUDA backend's own host code, and the programs that notice them on the fake device.

In: the source of ``lazynp/backends/cuda``, one place of it changed.  Out: whether a program of ``SCENARIOS`` notices under some seed.
Promise: ``python -m tests.cuda.planted`` prints the table; a planted bug whose place is gone is an error, never silently passed over.
"""

from __future__ import annotations

import gc
import importlib.util
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy

ROOT = Path(__file__).parents[2]
RNG = numpy.random.default_rng(11)
# Integers: where NumPy may warn of floating-point errors a run waits for what its kernels found, and then all is in order.
A, V, F = RNG.integers(0, 1000, (60, 50)), RNG.integers(0, 1000, 3000), RNG.standard_normal((60, 50))
MANY = RNG.integers(0, 1000, (300, 1000)) # large enough to be written in place


class Bug(NamedTuple):
    """``old`` becomes ``new`` in a module; ``scenario`` is the program that notices."""

    name: str
    module: str
    old: str
    new: str
    scenario: str


BUGS = (
    Bug("no wait for another thread's stream", "memory", "self.place.order(other, run.stream)", "pass", "threads"),
    Bug("another thread's stream does not wait", "runs", "other.wait_event(done)", "pass", "lent_between_threads"),
    Bug("CuPy's stream does not wait for ours", "memory", "self.place.order(self.stream, current)", "pass", "exports"),
    Bug("an order of streams that is none", "memory", "then.wait_event(event)", "pass", "threads"),
    Bug("downloads are taken before they came", "transfers", "piece.event.synchronize()", "pass", "arithmetic"),
    Bug(
        "streams apart from the default one", "memory",
        "self.cupy.cuda.Stream()", "self.cupy.cuda.Stream(non_blocking=True)", "default_stream",
    ),
    Bug("lent memory is not kept", "memory", "buffer.nbytes, buffer.block, self.number)", "buffer.nbytes, None, self.number)", "exports"),
    Bug("what others may know is written", "memory", "found.exported = True", "found.exported = False", "adoption"),
    Bug("memory not given back when it runs out", "memory", "self.cupy.get_default_memory_pool().free_all_blocks()", "pass", "limited"),
    Bug("plans of transforms are kept when memory runs out", "memory", "self.cupy.fft.config.clear_plan_cache()", "pass", "transforms"),
    Bug("copies of host arrays are kept when memory runs out", "memory", "self._twins.clear()", "pass", "full"),
    Bug(
        "wrong direction of a copy", "graphs",
        "self.runtime.memcpyDeviceToDevice, stream.ptr", "self.runtime.memcpyHostToDevice, stream.ptr", "writes",
    ),
    Bug("copies in the default device", "memory", "self.cupy.cuda.Device(number)", "self.cupy.cuda.Device(0)", "second_device"),
    Bug(
        "streams of the default device", "memory",
        "with self.device:\n                return", "if True:\n                return", "second_device",
    ),
    Bug(
        "code loaded for the default device", "backend",
        "with self.place.running():\n            try:", "if True:\n            try:", "second_device",
    ),
    Bug(
        "outputs an element short", "launch",
        "place.buffer(size, dtype, shape)", "place.buffer(size - dtype.itemsize, dtype, shape)", "arithmetic",
    ),
    Bug("workspaces not held", "launch", "held.append(memory)", "del memory.pointer", "reductions"),
    Bug(
        "words of errors not cleared", "words",
        "place.runtime.memsetAsync(found.address, 0,", "(lambda *_: None)(found.address, 0,", "errors",
    ),
    Bug("words of one kernel only", "launch", "word = words + PAIR * self.word", "word = words + PAIR * (self.word + 1)", "errors"),
    Bug(
        "what lies after a region is not copied", "launch",
        "place.copy(new.address + hi,", "(lambda *_: None)(new.address + hi,", "writes",
    ),
    Bug("threads beyond the bounds", "launch", "(phase.threads, 1, 1)", "(2 * phase.threads, 1, 1)", "arithmetic"),
    Bug("one block too few", "launch", "block[self.slot]\n", "max(block[self.slot] - 1, 1)\n", "arithmetic"),
    Bug("arguments that lie nowhere", "launch", "self.pointer(block.buffer_info()[0])", "self.pointer(0)", "arithmetic"),
    Bug("arguments a slot too late", "launch", "block.buffer_info()[0])", "block.buffer_info()[0] + 8)", "arithmetic"),
    Bug("code for another architecture", "compiler", 'f"sm_{max(fitting)}"', '"sm_80"', "arithmetic"),
    Bug("code for a device newer than the compiler's", "compiler", "arch <= device]\n", "True]\n", "older_device"),
    Bug("machine code where the driver is to compile", "compiler", 'f"compute_{max(', 'f"sm_{max(', "newer_device"),
    Bug("an option that NVRTC does not have", "compiler", '"--fmad=false"', '"--fma=false"', "arithmetic"),
    Bug("readers do not wait for an upload", "transfers", "run.stream.wait_event(self.ready)", "pass", "uploads"),
    Bug("memory of uploads given back before it was read", "transfers", "events.append(run.done)", "pass", "uploads"),
    Bug("the stream of uploads does not wait for readers", "transfers", "self.stream.wait_event(event)", "pass", "uploads"),
    Bug("page-locked memory overwritten before it was copied", "transfers", "self.event.synchronize()", "pass", "uploads"),
    Bug("no event for page-locked memory", "transfers", "piece.event.record(self.stream)", "pass", "uploads"),
    Bug("uploads in memory of the wrong stream", "transfers", "with self.place.apart(self.stream):", "if True:", "uploads"),
    Bug("uploads in the stream of the kernels", "transfers", "self.stream.ptr)", "self.place.stream().ptr)", "overlap"),
    Bug("uploads wait for what read the one before", "transfers", "self.give_back(max(WAITING, nbytes))", "self.give_back(-1)", "overlap"),
    Bug("memory of uploads kept without bound", "transfers", "if total <= most:", "if True:", "bounded"),
    Bug("memory of uploads kept when it runs out", "memory", "self.uploads.give_back(-1)", "pass", "bounded"),
    Bug("the end of a run is not told", "transfers", "run.marked = True", "pass", "uploads_of_threads"),
    Bug("runs under way are taken for over", "transfers", "if run.stream is not here:", "if False:", "uploads_of_threads"),
    Bug("memory of uploads in a garbage cycle", "transfers", "self._uses.add(block.use)", "pass", "cycles"),
    Bug("uploads are lent before they are there", "transfers", "current.wait_event(self.ready)", "pass", "lent_uploads"),
    Bug("algebra's errors not asked for", "library", 'cupyx.errstate(linalg="raise")', 'cupyx.errstate(linalg="ignore")', "singular"),
    Bug(
        "algebra of numbers that are not finite", "library",
        "if not reduce(and_, [cupy.isfinite(x).all() for x in numbers]):", "if False:", "not_finite",
    ),
    Bug("the lower triangle for the upper one", "library", "x.swapaxes(-1, -2).conj())", "x)", "triangles"),
    Bug("least squares of two dtypes", "library", "if arrays[0].dtype != arrays[1].dtype:", "if False:", "least_squares"),
    Bug("lengths that are no integers", "library", "type(minlength) is not int:", "False:", "counts"),
)


# The programs.  Each runs under one seed, with lazynp's default device as it is: what they want on a device they put there.


def same(found: Any, expected: Any) -> None:
    numpy.testing.assert_array_equal(numpy.asarray(found), expected)


def arithmetic(np: Any, cupy: Any) -> None:
    x = np.asarray(A, device="cuda")
    same((x + 1) * x, (A + 1) * A)
    same(x.T[::-1] - 2, A.T[::-1] - 2)


def reductions(np: Any, cupy: Any) -> None:
    x = numpy.arange(1 << 21) % 1000
    same((np.asarray(x, device="cuda") * 2).sum(), (x * 2).sum())
    same(np.asarray(x, device="cuda").reshape(-1, 4).sum(axis=0), x.reshape(-1, 4).sum(axis=0))


def writes(np: Any, cupy: Any) -> None:
    x, y = np.asarray(A, device="cuda") * 1, A * 1
    for k in range(4):
        kept, wanted = x + 0, y + 0
        x[10 * k:10 * k + 7] = k
        y[10 * k:10 * k + 7] = k
        x[:, k] *= 2
        y[:, k] *= 2
        same(kept, wanted)
        same(x * 1, y)


def errors(np: Any, cupy: Any) -> None:
    x, v = np.asarray(F, device="cuda"), np.asarray(V, device="cuda")
    same(x[v % 60, 3], F[V % 60, 3])
    for index in (v % 61, v % 60 - 100):
        try:
            x[index + 0].tolist()
        except IndexError:
            continue
        raise AssertionError("an index out of range was not noticed")
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        (x / (x - x)).tolist()
    assert noted, "a division by zero was not noticed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x / (x * x + 1)).tolist()


def nothing(np: Any, cupy: Any) -> None:
    for k in (0, 3, 0):
        x = np.asarray(A[:k], device="cuda")
        same(x * 2 + 1, A[:k] * 2 + 1)
        same(np.cumsum(x.sum(axis=0)), numpy.cumsum(A[:k].sum(axis=0)))


def library(np: Any, cupy: Any) -> None:
    x = np.asarray(F, device="cuda")
    numpy.testing.assert_allclose(numpy.asarray(x @ x.T), F @ F.T, rtol=1e-11)
    same(np.sort(x, axis=0)[::2], numpy.sort(F, axis=0)[::2])
    y = np.asarray(A, device="cuda")
    same(np.einsum("ij->ji", y) + 0, A.T)
    same(np.tensordot(y, y.T, axes=1), A @ A.T)


def singular(np: Any, cupy: Any) -> None:
    try:
        np.linalg.inv(np.ones((3, 3), device="cuda")).tolist()
    except numpy.linalg.LinAlgError:
        return
    raise AssertionError("the singular matrix was not noticed")


def not_finite(np: Any, cupy: Any) -> None:
    """NumPy refuses what is not finite, warns of it, or takes it for what it is; cuSOLVER does not tell."""
    x = np.asarray(numpy.where(numpy.eye(3) > 0, numpy.nan, 1.0), device="cuda")
    for name in ("svd", "eigh", "eigvalsh", "pinv", "matrix_rank"):
        try:
            getattr(np.linalg, name)(x)
        except numpy.linalg.LinAlgError:
            continue
        raise AssertionError(f"{name}: what is not finite was not noticed")
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        float(np.linalg.det(x))
        np.linalg.slogdet(x)
    assert len(noted) == 2, "det and slogdet did not warn"


def triangles(np: Any, cupy: Any) -> None:
    square = F[:9, :9] @ F[:9, :9].T + numpy.eye(9)
    for upper in (False, True):
        x = (numpy.triu if upper else numpy.tril)(square)
        found = np.linalg.cholesky(np.asarray(x, device="cuda"), upper=upper)
        numpy.testing.assert_allclose(numpy.asarray(found), numpy.linalg.cholesky(x, upper=upper), rtol=1e-9, atol=1e-12)


def least_squares(np: Any, cupy: Any) -> None:
    for dtype in ("f4", "f8"):
        for rcond in (None, 0, -1, 0.4, 2.0):
            x, y = F[:9, :4].astype(dtype), F[:9, 5]
            found = np.linalg.lstsq(np.asarray(x, device="cuda"), np.asarray(y, device="cuda"), rcond=rcond)
            for one, other in zip(numpy.linalg.lstsq(x, y, rcond=rcond), found, strict=True):
                assert numpy.asarray(other).dtype == numpy.asarray(one).dtype
                numpy.testing.assert_allclose(numpy.asarray(other), one, rtol=1e-5)


def counts(np: Any, cupy: Any) -> None:
    x = np.asarray(V % 9, device="cuda")
    same(np.bincount(x, minlength=12), numpy.bincount(V % 9, minlength=12))
    same(np.bincount(x, weights=x), numpy.bincount(V % 9, weights=V % 9))
    for minlength in (2.5, None):
        try:
            np.bincount(x, minlength=minlength)
        except TypeError:
            continue
        raise AssertionError("CuPy counted what NumPy refuses")


def threads(np: Any, cupy: Any) -> None:
    """Values of one thread, which goes on (the next thread would have its stream, and need no wait), are read by others at once."""
    given = [(np.asarray(A, device="cuda", copy=True) + k).realize() for k in range(4)]
    failed: list[BaseException] = []

    def use(x: Any, k: int) -> None:
        try:
            y = x * 2
            same(y, (A + k) * 2)
        except BaseException as error:
            failed.append(error)

    _in_threads([lambda x=x, k=k: use(x, k) for k, x in enumerate(given)])
    if failed:
        raise failed[0]


def lent_between_threads(np: Any, cupy: Any) -> None:
    """A thread reads what another one made, which it drops and whose memory it uses again."""
    for _ in range(4):
        given = [(np.asarray(A, device="cuda", copy=True) + 1).realize()]
        made: list[Any] = []
        _in_threads([lambda given=given, made=made: made.append((given.pop() * 3).realize())])
        others = [np.full(A.shape, k, device="cuda").realize() for k in range(3)]
        same(made[0], (A + 1) * 3)
        for k, other in enumerate(others):
            same(other, numpy.full(A.shape, k))


def exports(np: Any, cupy: Any) -> None:
    """CuPy's user gets our memory, in a stream of his own, and keeps it."""
    stream = cupy.cuda.Stream(non_blocking=True)
    for k in range(3):
        for take in (cupy.asarray, cupy.from_dlpack):
            x = np.asarray(A, device="cuda") * k
            with stream:
                y = take(x)
                del x
                z = y + 1
                others = [np.full(A.shape, 7, device="cuda").realize() for _ in range(2)]
                numpy.testing.assert_array_equal(z.get(), A * k + 1)
                numpy.testing.assert_array_equal(y.get(), A * k)
            same(others[0], numpy.full(A.shape, 7))


def adoption(np: Any, cupy: Any) -> None:
    """CuPy's arrays are read where they are, and never written."""
    theirs = cupy.asarray(MANY) * 2
    ours = np.asarray(theirs)
    same(ours + 1, MANY * 2 + 1)
    ours[3:5] = 0
    expected = MANY * 2
    expected[3:5] = 0
    same(ours.realize(), expected)
    numpy.testing.assert_array_equal(theirs.get(), MANY * 2)
    theirs = cupy.asarray(A) + 1
    made = (np.asarray(theirs) * 3).realize()
    same(made, (A + 1) * 3)
    kept = cupy.asarray(made)
    theirs *= 0
    numpy.testing.assert_array_equal((kept + theirs).get(), (A + 1) * 3)


def full(np: Any, cupy: Any) -> None:
    """A device of 4 MiB, filled again and again in pieces of different sizes, with copies of host arrays among them."""
    hosts = []
    for k in range(1, 6):
        hosts.append(np.asarray(numpy.full(k * 25000, float(k))))
        with np.device("cuda"):
            same(hosts[-1] * 2, numpy.full(k * 25000, 2.0 * k))
    with np.device("cuda"):
        x = np.ones(200000) * 3
        same(x + 1, numpy.full(200000, 4.0))


def transforms(np: Any, cupy: Any) -> None:
    """Transforms of many lengths, which CuPy makes plans for, and then an array that needs most of the device."""
    for k in range(1, 9):
        found = np.fft.fft(np.ones(1000 * k, device="cuda"))
        numpy.testing.assert_allclose(numpy.asarray(found)[1:], 0, atol=1e-9)
    del found
    same(np.full(480000, 7, device="cuda").realize(), numpy.full(480000, 7))


def limited(np: Any, cupy: Any) -> None:
    """A pool with a limit, of which CuPy's user had the half a moment ago."""
    cupy.get_default_memory_pool().set_limit(size=4 << 20)
    theirs = cupy.zeros(300000)
    del theirs
    same(np.full(300000, 7, device="cuda").realize(), numpy.full(300000, 7))


def uploads(np: Any, cupy: Any) -> None:
    """Batches are uploaded while kernels run that read the ones before, and dropped."""
    from lazynp.backends.cuda import transfers

    for waiting in (0, 2 * MANY.nbytes, transfers.WAITING):
        with mock.patch.object(transfers, "WAITING", waiting), mock.patch.object(transfers, "PIECE", MANY.nbytes // 3):
            total, expected = np.asarray(MANY, device="cuda") + 1, MANY + 1
            for k in range(6):
                total = total * 2 + np.asarray(MANY + k, device="cuda")
                expected = expected * 2 + MANY + k
                total.realize()
            same(total, expected)


def overlap(np: Any, cupy: Any) -> None:
    """What is uploaded comes after nothing that kernels have to do first."""
    from gpu_emulator.fakecupy.machine import _closure, machine

    x = np.asarray(MANY, device="cuda")
    for k in range(3):
        x = (x + np.asarray(MANY + k, device="cuda")).realize()
        copies = [op for op in machine().pending if op.label.startswith(f"copy of {MANY.nbytes} bytes")]
        assert not any(op.label.startswith("kernel") for op in _closure(copies)), "an upload waits for a kernel"
    same(x, 4 * MANY + 3)


def bounded(np: Any, cupy: Any) -> None:
    """A loop over batches needs the memory of a few of them, also where there is no more."""
    from lazynp.backends.cuda import transfers

    pool = cupy.get_default_memory_pool()
    for waiting, limit in ((0, 0), (transfers.WAITING, 5 * MANY.nbytes)):
        pool.set_limit(size=limit)
        with mock.patch.object(transfers, "WAITING", waiting):
            total = np.asarray(MANY, device="cuda") + 1
            for k in range(12):
                total = (total + np.asarray(MANY + k, device="cuda")).realize()
            same(total, 13 * MANY + 67)
        assert pool.total_bytes() <= 5 * MANY.nbytes, "too much memory"


def uploads_of_threads(np: Any, cupy: Any) -> None:
    """Memory that other threads read is used again when their runs are over, and not before."""
    from lazynp.backends.cuda.memory import place

    pool, here, found = cupy.get_default_memory_pool(), place("cuda:0"), []

    def read(x: list[Any]) -> None:
        found.append((x.pop() * 2).realize())

    def late(x: list[Any], others: list[Any]) -> None:
        with here.running() as run: # in which another thread's upload is dropped, and a new one made, before the kernel is launched
            node = x[0]._node
            here.joined(run, node.buffer.block)
            address = node.buffer.address
            del node
            x.clear()
            _in_threads([lambda: others.append(np.asarray(MANY * 5, device="cuda").realize())])
            copy = here.buffer(MANY.nbytes, MANY.dtype, MANY.shape)
            here.copy(copy.address, address, MANY.nbytes, run)
        numpy.testing.assert_array_equal(copy.array, MANY)

    for _ in range(12):
        x = [np.array(MANY).to_device("cuda").realize()]  # here, for a thread that begins when another one is over has its stream
        _in_threads([lambda x=x: read(x)])
        same(found.pop(), MANY * 2)
    assert pool.total_bytes() <= 8 * MANY.nbytes, "too much memory"
    late([np.array(MANY).to_device("cuda").realize()], [])


def cycles(np: Any, cupy: Any) -> None:
    """Garbage that refers to itself, in which an upload is."""
    for k in range(4):
        cycle: list[Any] = [np.asarray(MANY + k, device="cuda").realize()]
        cycle.append(cycle)
        found = (cycle[0] + 1).realize()
        del cycle
        gc.collect()
        same(np.asarray(MANY * 2, device="cuda") - k, MANY * 2 - k)
        same(found, MANY + k + 1)


def lent_uploads(np: Any, cupy: Any) -> None:
    """CuPy's user reads an upload in a stream of his own."""
    stream = cupy.cuda.Stream(non_blocking=True)
    for k in range(3):
        for take in (cupy.asarray, cupy.from_dlpack):
            with stream:
                numpy.testing.assert_array_equal((take(np.asarray(MANY + k, device="cuda")) + 1).get(), MANY + k + 1)


def default_stream(np: Any, cupy: Any) -> None:
    """CuPy's user works in the default stream, and drops our memory when he has queued his work."""
    for k in range(3):
        x = np.asarray(A, device="cuda") * k
        y = cupy.from_dlpack(x)
        z = y + 1
        del x, y
        others = [np.full(A.shape, 7, device="cuda").realize() for _ in range(2)]
        same(others[0], numpy.full(A.shape, 7))
        numpy.testing.assert_array_equal(z.get(), A * k + 1)


def second_device(np: Any, cupy: Any) -> None:
    x, y = np.asarray(A, device="cuda:1"), np.asarray(A, device="cuda:0")
    same(x * 2 + 1, A * 2 + 1)
    same(y * 2 + 1, A * 2 + 1)
    same(np.sort(x, axis=1), numpy.sort(A, axis=1))
    pool = cupy.get_default_memory_pool()
    with cupy.cuda.Device(1):
        assert pool.used_bytes() > 0


SCENARIOS: dict[str, Callable[[Any, Any], None]] = {
    **{
        program.__name__: program
        for program in (arithmetic, reductions, writes, errors, nothing, library, singular, not_finite, triangles, least_squares, counts,
                        threads, lent_between_threads, exports, default_stream, adoption, full, transforms, limited, second_device,
                        uploads, overlap, bounded, uploads_of_threads, cycles, lent_uploads)
    },
    "older_device": arithmetic,
    "newer_device": arithmetic,
} # fmt: skip
NO_KERNELS = ("singular", "nothing", "lent_uploads", "not_finite", "triangles", "least_squares", "counts")
MODES: dict[str, dict[str, Any]] = {
    "full": {"device_memory": 4 << 20},
    "transforms": {"device_memory": 4 << 20},
    "second_device": {"devices": 2},
    "older_device": {"compute_capability": (8, 2)}, # between two that NVRTC knows
    "newer_device": {"compute_capability": (13, 0)}, # newer than all that it knows
}


def _in_threads(programs: list[Callable[[], Any]]) -> None:
    workers = [threading.Thread(target=program) for program in programs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


# Running them


def plant(bug: Bug) -> None:
    """Load a module of the backend with the bug in it."""
    name = f"lazynp.backends.cuda.{bug.module}"
    assert name not in sys.modules
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text()
    if source.count(bug.old) == 0:
        raise LookupError(f"{bug.name}: {bug.old!r} is not in {bug.module}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    setattr(sys.modules["lazynp.backends.cuda"], bug.module, module)
    exec(compile(source.replace(bug.old, bug.new), spec.origin, "exec"), module.__dict__)


def run(scenario: str, seed: int) -> None:
    """A program on a fake machine of its own."""
    import lazynp
    from gpu_emulator import fakecupy

    try:
        with fakecupy.installed(seed=seed, **MODES.get(scenario, {})) as fake:
            import cupy

            SCENARIOS[scenario](lazynp, cupy)
            assert fake.launches or scenario in NO_KERNELS, "nothing ran on the device"
            for number in range(fake.devices):
                fake.drain(number)  # memory that lazynp keeps for work that is queued is not kept by a device that is forgotten
            _forget()
    finally:
        _forget()


def _forget() -> None:
    """Nothing of a machine outlives it."""
    from lazynp.backends.cuda import memory
    from lazynp.engine import realize

    realize.forget_plans()
    memory.forget()
    gc.collect()


def noticed(bug: Bug) -> tuple[int, str]:
    """The first seed under which a bug is noticed, or -1, and what was said."""
    done = subprocess.run([sys.executable, "-m", "tests.cuda.planted", bug.name], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    seed, _, text = done.stdout.strip().partition(" ")
    return int(seed), text


def main() -> None:
    from gpu_emulator import fakecupy

    if sys.argv[1:]:
        (bug,) = [bug for bug in BUGS if bug.name == sys.argv[1]]
        try:
            plant(bug)
        except LookupError as error:
            print(error, file=sys.stderr)
            sys.exit(2)
        for seed in fakecupy.SEEDS:
            try:
                run(bug.scenario, seed)
            except Exception as error:
                print(seed, f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
                return
        print(-1)
        return
    for bug in BUGS:
        seed, text = noticed(bug)
        print(f"{bug.name:52} {bug.scenario:22} {f'seed {seed}' if seed >= 0 else 'NOT FOUND':9}  {text[:90]}", flush=True)


if __name__ == "__main__":
    main()
