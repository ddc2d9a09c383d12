"""What the fake CuPy promises, piece by piece; the host programs in ``test_hosts`` show what it is good for.

In: small programs.  Out: failures.  Promise: where the real package or the real NVRTC can be asked without a GPU, it is.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_emulator import fakecupy
from gpu_emulator.fakecupy import kernels, nvrtc
from tests.gpu_emulator.hosts import N, build, host, kernel, scale

ROOT = Path(__file__).parents[2]
rng = np.random.default_rng(5)


@pytest.fixture(params=fakecupy.SEEDS)
def cupy(request: pytest.FixtureRequest) -> Iterator[Any]:
    with fakecupy.installed(seed=request.param, devices=2):
        import cupy

        yield cupy


# arrays and library functions


MATRIX = rng.standard_normal((4, 4)) + 4 * np.eye(4)
VECTOR = rng.standard_normal(9)
WHOLE = rng.integers(0, 5, 12)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("matmul", (MATRIX, MATRIX.T), {}), ("dot", (MATRIX, MATRIX[0]), {}), ("tensordot", (MATRIX, MATRIX), {"axes": 1}),
    ("einsum", ("ij,kj->ik", MATRIX, MATRIX), {}), ("outer", (VECTOR, VECTOR), {}), ("sort", (MATRIX,), {"axis": 0}),
    ("argsort", (VECTOR,), {}), ("partition", (np.sort(VECTOR), 3), {}), ("searchsorted", (np.sort(VECTOR), VECTOR), {"side": "right"}),
    ("lexsort", (np.stack([WHOLE, WHOLE[::-1]]),), {}), ("cumsum", (MATRIX,), {"axis": 1}), ("unique", (WHOLE,), {"return_counts": True}),
    ("nonzero", (WHOLE,), {}), ("bincount", (WHOLE,), {"minlength": 9}), ("sum", (MATRIX,), {"axis": 0, "keepdims": True}),
    ("argmax", (VECTOR,), {}), ("mean", (MATRIX.astype(np.float32),), {}), ("median", (VECTOR,), {}),
    ("concatenate", ([VECTOR, VECTOR],), {}), ("where", (VECTOR > 0, VECTOR, 0.0), {}), ("add", (VECTOR, 1), {}),
    ("less", (WHOLE, 3), {}), ("sqrt", (np.abs(VECTOR),), {}), ("repeat", (VECTOR, 2), {}), ("histogram", (VECTOR,), {"bins": 4}),
    ("linalg.inv", (MATRIX,), {}), ("linalg.solve", (MATRIX, MATRIX), {}), ("linalg.svd", (MATRIX,), {"compute_uv": False}),
    ("linalg.qr", (MATRIX,), {}), ("linalg.eigh", (MATRIX + MATRIX.T,), {}), ("linalg.det", (MATRIX,), {}),
    ("linalg.cholesky", (MATRIX @ MATRIX.T,), {}), ("linalg.norm", (MATRIX,), {}), ("fft.fft", (VECTOR,), {}),
    ("fft.irfft", (VECTOR.astype(np.complex64),), {"n": 8}), ("fft.fft2", (MATRIX,), {}), ("arange", (3, 9), {"dtype": np.int8}),
] # fmt: skip


def named(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[call[0] for call in CALLS])
def test_library_function(cupy: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(item) for item in value]
        return cupy.asarray(value) if isinstance(value, np.ndarray) else value

    wanted = named(np, name)(*args, **kwargs)
    found = named(cupy, name)(*map(moved, args), **kwargs)
    wanted, found = (value if isinstance(value, tuple) else (value,) for value in (wanted, found))
    assert len(wanted) == len(found)
    for one, other in zip(wanted, found, strict=True):
        assert isinstance(other, cupy.ndarray) and other.shape == np.shape(one) and other.dtype == np.asarray(one).dtype
        if name == "linalg.det":
            np.testing.assert_allclose(other.get(), one, rtol=1e-14) # by way of its logarithm
        elif name == "linalg.eigh":
            np.testing.assert_array_equal(np.abs(other.get()), np.abs(one)) # vectors have either sign
        else:
            np.testing.assert_array_equal(other.get(), one)


INDICES = [(slice(None, None, -2),), (1, ...), (slice(1, 3), None, 2), (np.array([2, 0, -1]),), (np.arange(16).reshape(4, 4) % 3 == 0,)]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing(cupy: Any, index: Any) -> None:
    host_array = MATRIX.copy()
    x = cupy.asarray(host_array)
    moved = tuple(cupy.asarray(part) if isinstance(part, np.ndarray) else part for part in index)
    np.testing.assert_array_equal(x[moved].get(), host_array[index])
    host_array[index] = 7
    x[moved] = 7
    np.testing.assert_array_equal(x.get(), host_array)


def test_views_share_memory(cupy: Any) -> None:
    x = cupy.zeros((4, 6))
    x.reshape(24)[::2].reshape(3, 4).T[1] = 5
    y = np.zeros((4, 6))
    y.reshape(24)[2::8] = 5
    np.testing.assert_array_equal(x.get(), y)
    assert x[1:, ::-1].strides == (48, -8) and x.T.flags.f_contiguous and not x.T.flags.c_contiguous
    assert x.real is not x and cupy.asarray(x) is x
    with pytest.raises(TypeError):
        np.asarray(x)
    with pytest.raises(TypeError):
        cupy.add(x, np.ones(6))


def test_interchange(cupy: Any) -> None:
    x = cupy.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]

    class Lent:
        __cuda_array_interface__ = x.__cuda_array_interface__

    for y in (cupy.from_dlpack(x), cupy.asarray(Lent())):
        assert (y.data.ptr, y.shape, y.strides, y.dtype) == (x.data.ptr, x.shape, x.strides, x.dtype)
    y = cupy.from_dlpack(x)
    address = x.data.ptr
    del x
    gc.collect()
    assert y.data.ptr == address and y.get().sum() == 30
    assert cupy.from_dlpack(np.arange(3)).get().tolist() == [0, 1, 2]


# memory


def test_pool_counts(cupy: Any) -> None:
    pool = cupy.get_default_memory_pool()
    x = cupy.empty(5000, np.uint8)
    assert (pool.used_bytes(), pool.total_bytes(), pool.free_bytes()) == (5120, 5120, 0)
    del x
    assert (pool.used_bytes(), pool.total_bytes(), pool.n_free_blocks()) == (0, 5120, 1)
    y = cupy.empty(600, np.uint8)
    assert (pool.used_bytes(), pool.total_bytes(), pool.free_bytes(), pool.n_free_blocks()) == (1024, 5120, 4096, 1)
    pool.free_all_blocks() # a chunk of which a part is in use stays
    assert pool.total_bytes() == 5120
    with cupy.cuda.Stream(non_blocking=True): # another stream has an arena of its own
        z = cupy.empty(600, np.uint8)
        assert pool.total_bytes() == 6144
    del y, z
    pool.free_all_blocks()
    assert (pool.total_bytes(), pool.n_free_blocks()) == (0, 0)
    with cupy.cuda.Device(1):
        assert pool.used_bytes() == 0
        kept = cupy.empty(10)
        assert pool.used_bytes() == 512 and kept.device == cupy.cuda.Device(1)
    assert pool.used_bytes() == 0


def test_out_of_memory() -> None:
    with fakecupy.installed(device_memory=1 << 20):
        import cupy

        pool = cupy.get_default_memory_pool()
        x = cupy.empty(700 << 10, np.uint8)
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match=r"Out of memory allocating 409,600 bytes \(allocated so far: 716,800"):
            cupy.empty(400 << 10, np.uint8)
        del x
        y = cupy.empty(800 << 10, np.uint8) # a full device gives back what is free, and is asked again
        assert pool.total_bytes() == 800 << 10 and cupy.cuda.Device().mem_info == (224 << 10, 1 << 20)
        del y
        pool.free_all_blocks()
        pool.set_limit(fraction=0.5)
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="limit set to: 524,288 bytes"):
            cupy.empty(600 << 10, np.uint8)
        assert pool.get_limit() == 512 << 10


def test_threads_have_their_own_stream_and_device(cupy: Any) -> None:
    stream = cupy.cuda.Stream()
    seen: list[Any] = []

    def other() -> None:
        seen.extend([cupy.cuda.get_current_stream().ptr, cupy.cuda.runtime.getDevice()])
        x = cupy.ones(1000)
        for _ in range(50):
            x = x + 1
        seen.append(float(x.sum()))

    with cupy.cuda.Device(1):
        threads = [threading.Thread(target=other) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen.count(51000.0) == 3 and set(seen) == {0, 51000.0}
    with pytest.raises(RuntimeError, match="does not match"), cupy.cuda.Device(1):
        stream.use()


def test_who_asks_often_enough_gets_there(cupy: Any) -> None:
    stream = cupy.cuda.Stream()
    with stream:
        cupy.ones(10)
    event = stream.record()
    while not event.done:
        pass
    while not stream.done:
        pass


def test_graph_launched_again(cupy: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    add = kernel(cupy, "add_one")
    with stream:
        x = cupy.zeros(N, np.float32)
        stream.begin_capture()
        add((4,), (256,), (x, N))
        add((4,), (256,), (x, N))
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch()
        assert x.get()[-1] == 6
    with pytest.raises(NotImplementedError):
        cupy.cuda.Graph()
    with pytest.raises(RuntimeError):
        cupy.cuda.Stream.null.begin_capture()


def test_same_seed_same_order() -> None:
    def labels() -> list[str]:
        with fakecupy.installed(seed=10) as fake:
            import cupy

            streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
            for k in range(12):
                with streams[k % 3]:
                    cupy.ones(k + 1)
            fake.drain(0)
            return [label for label in fake.executed if "memory" not in label]

    assert labels() == labels()


# compilation and launches


def test_program_is_refused(cupy: Any) -> None:
    compiler = cupy.cuda.nvrtc
    for source, options, status, text in (
        ("int x", ("-arch=sm_90",), 6, "x"),
        ("#include <no_such.h>\n", ("-arch=sm_90",), 6, "could not open source file"),
        ('extern "C" __global__ void k() {}', ("-arch=sm_70",), 5, "invalid value for --gpu-architecture"),
        ('extern "C" __global__ void k() {}', ("--fmad=perhaps",), 5, "expects true or false"),
    ):
        program = compiler.createProgram(source, "k.cu", (), ())
        with pytest.raises(compiler.NVRTCError) as caught:
            compiler.compileProgram(program, options)
        assert caught.value.status == status and text in compiler.getProgramLog(program)
        compiler.destroyProgram(program)
    program = compiler.createProgram('extern "C" __global__ void k() {}', "k.cu", (), ())
    compiler.compileProgram(program, ("-arch=compute_90",))
    with pytest.raises(RuntimeError, match="cubin is requested"):
        compiler.getCUBIN(program)
    assert compiler.getPTX(program)


def test_module_from_file(cupy: Any, tmp_path: Path) -> None:
    path = tmp_path / "hosts.cubin"
    path.write_bytes(build(cupy))
    module = cupy.RawModule(path=str(path))
    add = module.get_function("add_one")
    x = cupy.zeros(N, np.float32)
    add((4,), (256,), (x, N))
    assert x.get()[0] == 1 and add.attributes["max_threads_per_block"] == 1024
    add.max_dynamic_shared_size_bytes = 1 << 16
    assert add.attributes["max_dynamic_shared_size_bytes"] == 1 << 16
    set_attribute = cupy.cuda.driver.funcSetAttribute
    for arguments in ((add.kernel.ptr, 8, 1 << 30), (add.kernel.ptr, 9, 0), (0, 8, 0)):
        with pytest.raises(fakecupy.errors.CUDADriverError):
            set_attribute(*arguments)
    with pytest.raises(fakecupy.errors.CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        module.get_function("no_such")
    path.write_bytes(b"something else")
    with pytest.raises(fakecupy.errors.CUDADriverError, match="CUDA_ERROR_INVALID_IMAGE"):
        cupy.RawModule(path=str(path)).get_function("add_one")


def test_arguments_are_copied_at_the_launch(cupy: Any) -> None:
    total, start = cupy.zeros(1, np.int64), cupy.asarray(np.array([40]))
    slots = np.zeros(1, [("slot", np.uint64, 3)])
    slots["slot"][0] = total.data.ptr, start.data.ptr, 2
    kernel(cupy, "structured")((1,), (1,), (slots,))
    slots["slot"][0] = 0
    assert total.get() == 42


def test_violation_that_is_swallowed_is_raised_at_the_end() -> None:
    def swallow() -> None:
        with fakecupy.installed():
            import cupy

            x = cupy.asarray(host())
            with contextlib.suppress(Exception):
                scale(cupy, 2.0, x, x)

    with pytest.raises(fakecupy.Violation, match="arguments of"):
        swallow()


# against the real ones


@pytest.fixture(scope="module")
def compiler() -> Any:
    return nvrtc.real()


PLAIN = 'extern "C" __global__ void k(float* x) { x[0] = 1; }'
VALUES = {"--gpu-architecture": "sm_90", "--std": "c++17", "--maxrregcount": "32", "--ptxas-options": "-v", "--dopt": "on",
          "--split-compile": "1", "--time": "-", "--diag-suppress": "20", "--diag-error": "20", "--diag-warn": "20",
          "--define-macro": "X=1", "--undefine-macro": "X", "--include-path": "/tmp"}
REFUSED = ["--nonsense", "--fmad=maybe", "--std=c++42", "-arch=sm_70", "-arch=sm_9000", "--expt-relaxed-constexpr", "-O3", "--fmad",
           "-Xcompiler"]


def spellings() -> Iterator[tuple[str, ...]]:
    for name, (long, kind) in nvrtc.OPTIONS.items():
        if long == "--pre-include":
            continue # wants a file
        value = "" if kind == "flag" else VALUES[long] if kind == "value" else "true"
        yield (f"{name}{'=' if value and name not in ('-D', '-U', '-I') else ''}{value}",)


def test_options_are_those_of_the_real_compiler(compiler: Any) -> None:
    for options, fine in [*((found, True) for found in spellings()), *(((word,), False) for word in REFUSED)]:
        program = compiler.createProgram(PLAIN, "k.cu", (), ())
        try:
            compiler.compileProgram(program, options if "arch" in options[0] else (*options, "-arch=sm_90"))
        except compiler.NVRTCError as error:
            really = error.status != 5
        else:
            really = True
        try:
            nvrtc.parse(options)
        except nvrtc._Refused:
            faked = False
        else:
            faked = True
        assert (really, faked) == (fine, fine), options
    assert compiler.getVersion() == nvrtc.getVersion() and compiler.getSupportedArchs() == nvrtc.ARCHITECTURES


SCALARS = ["True", "3", "2**63", "1.5", "1j", "np.float32(1)", "np.int8(1)", "np.float16(1)", "np.complex64(1)", "'text'", "object()",
           "np.zeros(1, 'i4,f8')[0]"]
ASK = """
import json
import numpy as np
from cupy._core import _scalar
from cupy.cuda import memory, runtime, nvrtc
answers = []
for text in %r:
    try:
        _scalar.CScalar(eval(text))
        answers.append(True)
    except TypeError:
        answers.append(False)
texts = [str(runtime.CUDARuntimeError(k)) for k in %r] + [str(nvrtc.NVRTCError(k)) for k in (5, 6)]
texts += [str(memory.OutOfMemoryError(5000, 2, 3)), str(memory.OutOfMemoryError(1, 2))]
classes = [[c.__name__ for c in e.__mro__] for e in (runtime.CUDARuntimeError, nvrtc.NVRTCError, memory.OutOfMemoryError)]
print(json.dumps([answers, texts, classes]))
"""


def test_errors_and_scalars_are_those_of_the_real_package() -> None:
    errors = fakecupy.errors
    done = subprocess.run([sys.executable, "-c", ASK % (SCALARS, list(errors.RUNTIME))], capture_output=True, text=True, check=True)
    answers, texts, classes = json.loads(done.stdout)
    for text, taken in zip(SCALARS, answers, strict=True):
        try:
            kernels.argument(eval(text), 8)
        except TypeError:
            assert not taken, text
        else:
            assert taken, text
    assert texts == [*(str(errors.CUDARuntimeError(k)) for k in errors.RUNTIME), *(str(errors.NVRTCError(k)) for k in (5, 6)),
                     str(errors.OutOfMemoryError(5000, 2, 3)), str(errors.OutOfMemoryError(1, 2))]
    assert classes == [[c.__name__ for c in e.__mro__] for e in (errors.CUDARuntimeError, errors.NVRTCError, errors.OutOfMemoryError)]


# scripts and test files


SCRIPT = """
import sys
import cupy
x = cupy.arange(4)
print(sys.argv[1:], (x + 1).get().tolist())
if "child" in sys.argv:
    import subprocess
    child = "import cupyx, cupy.cuda; print(cupy.ones(3).sum())"
    print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
if "bad" in sys.argv:
    memory = cupy.cuda.alloc_pinned_memory(8)
    try:
        cupy.cuda.runtime.memsetAsync(x.data.ptr, 0, 64, 0)
        x.get()
    except Exception:
        pass
"""
FILE = """
import pytest
def test_good():
    import cupy
    assert int(cupy.ones(3).sum()) == 3
def test_swallowed():
    import cupy
    cupy.cuda.runtime.memsetAsync(cupy.ones(1).data.ptr, 0, 64, 0)
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gpu_emulator", *arguments], capture_output=True, text=True, check=False, cwd=ROOT,
                          env={**os.environ, **environment})


HOST_VARIABLE = """
from cupy.cuda import nvrtc
program = nvrtc.createProgram('int counter = 3; extern "C" __global__ void k(float* x) { x[0] = 1; }', "k.cu", (), ())
try:
    nvrtc.compileProgram(program, ("-arch=sm_90",))
    print("taken")
except nvrtc.NVRTCError:
    print("refused:", nvrtc.getProgramLog(program))
import cupy
print(cupy.ones(3).sum())
"""


def test_the_real_compiler_sees_what_the_fake_one_does_not(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(HOST_VARIABLE)
    assert run(str(script)).stdout == "taken\n3.0\n"
    done = run(str(script), LAZYNP_FAKECUPY_NVRTC="1")
    assert done.stdout.startswith("refused: the real NVRTC") and "host variable" in done.stdout, done.stderr
    assert done.stdout.endswith("3.0\n")


def test_scripts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for seed in "015":
        good = run(str(script), "a", LAZYNP_FAKECUPY_SEED=seed)
        assert (good.returncode, good.stdout) == (0, "['a'] [1, 2, 3, 4]\n"), good.stderr
    assert run(str(script), "child").stdout == "['child'] [1, 2, 3, 4]\n3.0\n\n"
    bad = run(str(script), "bad")
    assert bad.returncode == 1 and "Violation: memset of 64 bytes" in bad.stderr
    assert run().returncode == 2


def test_test_files(tmp_path: Path) -> None:
    file = tmp_path / "test_file.py"
    file.write_text(FILE)
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(file))
    assert done.returncode == 1 and "2 passed, 1 error" in done.stdout and "Violation: memset of 64 bytes" in done.stdout
