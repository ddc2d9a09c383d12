"""The emulator itself: kernels against NumPy in every order, single functions of CUDA C, memory, faults, traces, the cache."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from gpu_emulator import execution
from gpu_emulator.execution import EmulationError, Module, Options, build, download, precompile, source, view
from tests.gpu_emulator import kernels
from tests.gpu_emulator.kernels import PROGRAMS, Device, arguments

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ORDERS = [Options(), Options("descending"), Options("random", 1), Options("random", 2)]
RACES = [order._replace(races=True) for order in ORDERS[:3]]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    for instrumented in (False, True):
        precompile([program.source for program in PROGRAMS.values()], instrumented)


@pytest.mark.parametrize("options", [*ORDERS, *RACES], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, options: Options) -> None:
    program = PROGRAMS[name]
    for seed in range(2):
        for got, expected in program.run(Module(program.source, options), numpy.random.default_rng(seed)):
            numpy.testing.assert_array_equal(got, expected)


# Launches ------------------------------------------------------------------------------------------------------------------------

NOTHING = """
extern "C" __global__ void __launch_bounds__(2 * 64) kernel() {
    extern __shared__ int s[];
    __shared__ int few[10];
    s[0] = few[3];
}
"""


@pytest.mark.parametrize(
    ("grid", "block", "shared", "says"),
    [
        ((1,), (129,), 4, "129 threads a block, at most 128"),
        ((1,), (32, 32, 2), 4, "at most 128"),
        ((1,), (1, 1, 65), 4, "a block of"),
        ((1, 65536), (1,), 4, "a grid of"),
        ((0,), (1,), 4, "a grid of"),
        ((2**31,), (1,), 4, "a grid of"),
        ((1,), (1,), 228 << 10, "shared memory are too many"),
    ],
)
def test_limits_of_a_launch(grid: tuple[int, ...], block: tuple[int, ...], shared: int, says: str) -> None:
    function = Module(NOTHING).function("kernel")
    assert (function.bounds, function.shared) == (128, 40)
    function((1,), (128,), b"", 4)
    with pytest.raises(EmulationError, match=says):
        function(grid, block, b"", shared)


def test_static_shared_memory_is_limited() -> None:
    text = 'extern "C" __global__ void kernel(float* x) { __shared__ float much[13000]; much[threadIdx.x] = 0; x[0] = much[0]; }'
    with pytest.raises(EmulationError, match="52000 bytes of static"):
        Module(text).function("kernel")((1,), (1,), bytes(8))


def test_shared_memory_is_filled_before_every_block() -> None:
    text = """
    extern "C" __global__ void kernel(unsigned* out) {
        __shared__ unsigned s[2];
        extern __shared__ unsigned d[];
        out[2 * blockIdx.x] = s[1];
        out[2 * blockIdx.x + 1] = d[3];
        s[1] = d[3] = 1;
    }
    """
    with Device() as device:
        out = device.empty(24)
        Module(text).function("kernel")((3,), (1,), arguments(out), 16)
        assert (download(out, 6, "I") == 0xFFFFFFFF).all()


def test_orders() -> None:
    text = """
    extern "C" __global__ void kernel(unsigned* next, unsigned* out) {
        out[atomicAdd(next, 1u)] = blockIdx.x * 100 + threadIdx.x;
        __syncthreads();
        out[atomicAdd(next, 1u)] = 1000 + blockIdx.x * 100 + threadIdx.x;
    }
    """

    def ran(options: Options) -> list[int]:
        with Device() as device:
            counter, out = device.put(numpy.zeros(1, "I")), device.empty(4 * 3 * 2 * 40)
            Module(text, options).function("kernel")((3,), (40,), arguments(counter, out))
            return download(out, 240, "I").tolist()

    up = [half + 100 * b + t for b in range(3) for half in (0, 1000) for t in range(40)]
    down = [half + 100 * b + t for b in (2, 1, 0) for half in (0, 1000) for t in range(39, -1, -1)]
    assert ran(Options()) == up and ran(Options("descending")) == down
    first, again, other = ran(Options("random", 1)), ran(Options("random", 1)), ran(Options("random", 2))
    assert first == again != other and sorted(first) == sorted(up) and first != up
    assert all(len({value // 100 % 10 for value in first[k : k + 80]}) == 1 for k in (0, 80, 160))  # blocks one after the other


def test_part_of_a_large_grid() -> None:
    """Indices beyond 32 bits without 8 GiB of memory."""
    n = 2**31 + 100
    with Device() as device:
        x, y = device.empty(4 * n, sparse=True), device.empty(4 * n, sparse=True)
        tail = numpy.arange(200, dtype="f")
        ctypes.memmove(x + 4 * (n - 200), tail.ctypes.data, 800)
        blocks = -(-n // 128)
        function = Module(kernels.SCALE).function("scale")
        function((blocks,), (128,), arguments(x, y, n, 2.0), blocks=range(blocks - 2, blocks))
        numpy.testing.assert_array_equal(view(y + 4 * (n - 100), 100, "f"), 2 * tail[100:])
        narrow = kernels.SCALE.replace("(long long)blockIdx.x * 128 + threadIdx.x", "(int)(blockIdx.x * 128 + threadIdx.x)")
        with pytest.raises(EmulationError, match="illegal access"):
            Module(narrow).function("scale")((blocks,), (128,), arguments(x, y, n, 2.0), blocks=range(blocks - 2, blocks))


# Traces --------------------------------------------------------------------------------------------------------------------------


def ratios(text: str, name: str, *shape: tuple[int, int, int], shared: int = 0, size: int = 4, x: Any = None) -> dict[str, list[float]]:
    """Transactions over the least possible, by kind of access in order of lines; parameters are x, y and two extents."""
    x = numpy.zeros((64, 96), "f") if x is None else x
    with Device() as device:
        a, y = device.put(x, align=512), device.empty(x.nbytes, align=512)
        function = Module(text, Options(trace=True)).function(name)
        values = arguments(a, y, *(x.shape if function.nbytes == 32 else (x.size,)))
        function(*shape, values, shared)
    found: dict[str, list[float]] = {}
    for access in function.trace:
        found.setdefault(f"{access.space} {'store' if access.write else 'load'}", []).append(access.ratio)
    return found


def test_trace_of_a_transpose() -> None:
    grid = ((3, 2, 1), (32, 8, 1))
    good = {"global load": [1], "global store": [1], "shared load": [1], "shared store": [1]}
    assert ratios(kernels.TRANSPOSE, "transpose", *grid) == good
    assert ratios(kernels.TRANSPOSE.replace("[32][33]", "[32][32]"), "transpose", *grid) == {**good, "shared load": [32]}
    naive = """
    extern "C" __global__ void naive(const float* x, float* y, long long rows, long long columns) {
        int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
        y[j * rows + i] = x[i * columns + j];
    }
    """
    assert ratios(naive, "naive", (3, 8, 1), (32, 8, 1)) == {"global load": [1], "global store": [8]}


def test_trace_of_elementwise_loads() -> None:
    x = numpy.zeros(1024, "f")
    assert ratios(kernels.SCALE4, "scale4", (2, 1, 1), (128, 1, 1), x=x) == {"global load": [1], "global store": [1]}
    text = """
    extern "C" __global__ void strided(const float* x, float* y, long long n) {
        y[threadIdx.x] = x[8 * threadIdx.x];
    }
    """
    assert ratios(text, "strided", (1, 1, 1), (128, 1, 1), x=x) == {"global load": [8], "global store": [1]}
    shifted = text.replace("8 * threadIdx.x", "threadIdx.x + 1")
    assert ratios(shifted, "strided", (1, 1, 1), (32, 1, 1), x=x)["global load"] == [1.25]


def test_trace_counts_and_lines() -> None:
    with Device() as device:
        x, y = device.put(numpy.zeros((50, 72), "f"), align=512), device.empty(4 * 72, align=512)
        function = Module(kernels.COLUMN_SUMS, Options(trace=True)).function("column_sums")
        function((3, 1, 1), (32, 8, 1), arguments(x, y, 50, 72))
    load = function.trace[0]
    text = kernels.COLUMN_SUMS.splitlines()
    assert "x[i * columns + j]" in text[load.line - 1]
    assert (load.space, load.write, load.size, load.lanes, load.requests) == ("global", False, 4, 50 * 72, 150)
    assert [access.ratio for access in function.trace] == [1, 1, 1, 1]


def test_trace_of_wide_shared_memory() -> None:
    text = """
    extern "C" __global__ void wide(const double* x, double* y, long long n) {
        __shared__ double s[32][32];
        s[threadIdx.y][threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = s[threadIdx.x][threadIdx.y];
    }
    """
    found = ratios(text, "wide", (1, 1, 1), (32, 1, 1), x=numpy.zeros(64, "d"))
    assert found["shared store"] == [1] and found["shared load"] == [16]


# Sources and the cache -----------------------------------------------------------------------------------------------------------


def test_sources_are_read_as_nvrtc_reads_them() -> None:
    text = """
    // __global__ void no(int);
    /* __global__ */ __device__ static int helper(int x);
    extern "C" __global__ void first(int* x);
    extern "C" {
    __global__ void __launch_bounds__(64, 2)
    first(int* x) { __shared__ int s[4]; s[0] = helper(3); __syncthreads(); x[0] = s[0]; }
    __global__ __launch_bounds__((32)) void second(int* x) {
        extern __shared__ __align__(16) unsigned char d[];
        ((int*)d)[1] = 2;
        x[1] = ((int*)d)[1];
    }
    }
    __device__ static int helper(int x) { return x * x; }
    """
    functions = Module(text).functions
    assert {name: (f.bounds, f.shared) for name, f in functions.items()} == {"first": (64, 16), "second": (32, 0)}
    with Device() as device:
        x = device.empty(8)
        functions["first"]((1,), (1,), arguments(x))
        functions["second"]((1,), (1,), arguments(x), 8)
        assert download(x, 2, "i").tolist() == [9, 2]
    with pytest.raises(EmulationError, match="no kernel third; there are first, second"):
        Module(text).function("third")


def test_what_does_not_compile() -> None:
    with pytest.raises(execution.CompilationError, match=r"unit0.cu:2:.*undeclared_name"):
        Module('extern "C" __global__ void k(int* x) {\nx[0] = undeclared_name; }')
    with pytest.raises(source.UnsupportedSource, match="vector"):
        Module("#include <vector>\n")
    with pytest.raises(source.UnsupportedSource, match="template"):
        Module("template <class T> __global__ void k(T* x) {}")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    build.compiler.cache_clear()
    try:
        with pytest.raises(execution.CompilationError, match=r"needs g\+\+.*apt-get install"):
            build.compiler()
    finally:
        build.compiler.cache_clear()


def test_many_processes_share_the_cache(tmp_path: Path) -> None:
    script = (
        "import numpy, sys\nfrom tests.gpu_emulator.kernels import PROGRAMS\nfrom gpu_emulator.execution import Module, precompile\n"
        "names = ['scale', 'scan', 'gather']\n"
        "precompile([PROGRAMS[name].source for name in names])\n"
        "for name in names:\n"
        "    for got, expected in PROGRAMS[name].run(Module(PROGRAMS[name].source), numpy.random.default_rng(0)):\n"
        "        assert numpy.array_equal(got, expected)\n"
    )
    environment = {**ENVIRONMENT, "LAZYNP_EMULATOR_CACHE": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, env=environment) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    names = sorted(path.suffix for path in tmp_path.iterdir())
    assert names == [".so", ".so", ".unit", ".unit", ".unit"]  # the runtime, one module of three sources
