"""Hand-written kernels of the standard shapes, each with a launch and what NumPy says of it.

In: a module compiled from ``PROGRAMS[name].source`` (or a variant of it) and a generator of random numbers.  Out: pairs of arrays that must
be equal, bit by bit.  Sums are of small integers, so that their order does not matter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from gpu_emulator.execution import Module, Options, allocate, download, free, upload

Pairs = list[tuple[Any, Any]]


class Program(NamedTuple):
    source: str
    run: Callable[[Module, Any], Pairs]


class Device:
    """Buffers that are freed together."""

    def __init__(self) -> None:
        self.buffers: list[int] = []

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *raised: object) -> None:
        for address in self.buffers:
            free(address)

    def put(self, array: Any, **how: Any) -> int:
        self.buffers.append(upload(array, **how))
        return self.buffers[-1]

    def empty(self, nbytes: int, **how: Any) -> int:
        self.buffers.append(allocate(nbytes, **how))
        return self.buffers[-1]


def arguments(*values: int | float) -> bytes:
    """Addresses and 64-bit integers; floats are doubles."""
    return b"".join(struct.pack("d" if isinstance(value, float) else "q", value) for value in values)


def integers(rng: Any, *shape: int) -> Any:
    return rng.integers(-9, 10, shape).astype("f")


def launch(body: str, output: Any, *inputs: Any, threads: int = 32, options: Options | None = None, before: str = "") -> Any:
    """``output`` after one block of a kernel with this body; parameters are ``out`` and ``in0``, ``in1``, ..."""
    types = {"i": "int", "I": "unsigned", "q": "long long", "Q": "unsigned long long", "f": "float", "d": "double", "H": "unsigned short"}
    arrays = [numpy.asarray(array) for array in (output, *inputs)]
    names = ["out", *(f"in{k}" for k in range(len(inputs)))]
    parameters = ", ".join(f"{types[array.dtype.char]}* {name}" for array, name in zip(arrays, names, strict=True))
    text = f'{before}\nextern "C" __global__ void kernel({parameters}) {{ int t = threadIdx.x;\n{body}\n}}\n'
    with Device() as device:
        buffers = [device.put(array) for array in arrays]
        Module(text, options).function("kernel")((1,), (threads,), arguments(*buffers))
        return download(buffers[0], arrays[0].shape, arrays[0].dtype)


SCALE = """
extern "C" __global__ void __launch_bounds__(128) scale(const float* __restrict__ x, float* __restrict__ y, long long n, double by) {
    long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] = x[i] * (float)by;
}
"""


def run_scale(module: Module, rng: Any, n: int = 1004) -> Pairs:
    x = rng.standard_normal(n).astype("f")
    with Device() as device:
        a, y = device.put(x), device.empty(4 * n)
        module.function("scale")((-(-n // 128), 1, 1), (128, 1, 1), arguments(a, y, n, 0.3))
        return [(download(y, n, "f"), x * numpy.float32(0.3))]


SHIFT = """
extern "C" __global__ void shift(const float* x, float* y, long long n) { // y[0] = x[0]
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[max(i - 1, 0)];
}
"""


def run_shift(module: Module, rng: Any) -> Pairs:
    n = 300
    x = rng.standard_normal(n).astype("f")
    with Device() as device:
        a, y = device.put(x, guard="start"), device.empty(4 * n)
        module.function("shift")((3, 1, 1), (128, 1, 1), arguments(a, y, n))
        return [(download(y, n, "f"), numpy.concatenate([x[:1], x[:-1]]))]


SCALE4 = """
extern "C" __global__ void scale4(const float* x, float* y, long long n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int whole = (int)(n / 4);
    if (i < whole) {
        float4 v = ((const float4*)x)[i];
        v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2;
        ((float4*)y)[i] = v;
    } else if (i == whole) {
        for (int k = 4 * whole; k < n; k++) y[k] = 2 * x[k];
    }
}
"""


def run_scale4(module: Module, rng: Any) -> Pairs:
    n = 1003
    x = rng.standard_normal(n).astype("f")
    with Device() as device:
        a, y = device.put(x), device.empty(4 * n)
        module.function("scale4")((2, 1, 1), (128, 1, 1), arguments(a, y, n))
        return [(download(y, n, "f"), 2 * x)]


BLOCK_SUM = """
extern "C" __global__ void __launch_bounds__(256) block_sum(const float* x, float* y, long long n) {
    __shared__ float warps[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half, 32);
    if (lane == 0) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < 8 ? warps[lane] : 0;
        for (int half = 4; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
        if (lane == 0) y[blockIdx.x] = sum;
    }
}
"""


def run_block_sum(module: Module, rng: Any) -> Pairs:
    n, blocks = 2000, 3
    x = integers(rng, n)
    padded = numpy.resize(numpy.pad(x, (0, 9 * 256 - n)), (3, blocks, 256))
    with Device() as device:
        a, y = device.put(x), device.empty(4 * blocks)
        module.function("block_sum")((blocks, 1, 1), (256, 1, 1), arguments(a, y, n))
        return [(download(y, blocks, "f"), padded.sum((0, 2)))]


ROW_SUMS = """
extern "C" __global__ void row_sums(const double* x, double* y, long long rows, long long columns) {
    int row = blockIdx.x * 4 + threadIdx.y;
    double sum = 0;
    if (row < rows)
        for (int j = threadIdx.x; j < columns; j += 32) sum += x[row * columns + j];
    for (int by = 16; by > 0; by >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, by);
    if (threadIdx.x == 0 && row < rows) y[row] = sum;
}
"""


def run_row_sums(module: Module, rng: Any) -> Pairs:
    x = integers(rng, 10, 77).astype("d")
    with Device() as device:
        a, y = device.put(x), device.empty(80)
        module.function("row_sums")((3, 1, 1), (32, 4, 1), arguments(a, y, *x.shape))
        return [(download(y, 10, "d"), x.sum(1))]


COLUMN_SUMS = """
extern "C" __global__ void column_sums(const float* x, float* y, long long rows, long long columns) {
    __shared__ float part[8][32];
    int j = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (j < columns)
        for (int i = threadIdx.y; i < rows; i += 8) sum += x[i * columns + j];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && j < columns) {
        for (int k = 1; k < 8; k++) sum += part[k][threadIdx.x];
        y[j] = sum;
    }
}
"""


def run_column_sums(module: Module, rng: Any) -> Pairs:
    x = integers(rng, 50, 72)
    with Device() as device:
        a, y = device.put(x), device.empty(4 * 72)
        module.function("column_sums")((3, 1, 1), (32, 8, 1), arguments(a, y, *x.shape))
        return [(download(y, 72, "f"), x.sum(0))]


TRANSPOSE = """
extern "C" __global__ void transpose(const float* x, float* y, long long rows, long long columns) {
    __shared__ float tile[32][33];
    int i = blockIdx.y * 32, j = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8)
        if (i + k < rows && j < columns) tile[k][threadIdx.x] = x[(i + k) * columns + j];
    __syncthreads();
    i = blockIdx.y * 32 + threadIdx.x, j = blockIdx.x * 32;
    for (int k = threadIdx.y; k < 32; k += 8)
        if (i < rows && j + k < columns) y[(j + k) * rows + i] = tile[threadIdx.x][k];
}
"""


def run_transpose(module: Module, rng: Any) -> Pairs:
    x = rng.standard_normal((64, 96)).astype("f")
    with Device() as device:
        a, y = device.put(x), device.empty(x.nbytes)
        module.function("transpose")((3, 2, 1), (32, 8, 1), arguments(a, y, *x.shape))
        return [(download(y, x.shape[::-1], "f"), x.T)]


HISTOGRAM = """
extern "C" __global__ void histogram(const int* x, unsigned* counts, long long n) {
    __shared__ unsigned part[64];
    for (int k = threadIdx.x; k < 64; k += blockDim.x) part[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&part[x[i]], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 64; k += blockDim.x) atomicAdd(counts + k, part[k]);
}
"""


def run_histogram(module: Module, rng: Any) -> Pairs:
    n = 3000
    x = rng.integers(0, 64, n).astype("i")
    with Device() as device:
        a, counts = device.put(x), device.put(numpy.zeros(64, "I"))
        module.function("histogram")((4, 1, 1), (128, 1, 1), arguments(a, counts, n))
        return [(download(counts, 64, "I"), numpy.bincount(x, minlength=64))]


SCAN = """
extern "C" __global__ void scan(const int* x, int* y, long long n) { // of each block
    extern __shared__ int row[];
    int i = threadIdx.x, at = blockIdx.x * blockDim.x + i;
    row[i] = at < n ? x[at] : 0;
    __syncthreads();
    for (int by = 1; by < blockDim.x; by *= 2) {
        int add = i >= by ? row[i - by] : 0;
        __syncthreads();
        row[i] += add;
        __syncthreads();
    }
    if (at < n) y[at] = row[i];
}
"""


def run_scan(module: Module, rng: Any) -> Pairs:
    n = 500
    x = rng.integers(-99, 99, n).astype("i")
    expected = numpy.pad(x, (0, 12)).reshape(4, 128).cumsum(1, dtype="i").reshape(-1)[:n]
    with Device() as device:
        a, y = device.put(x), device.empty(4 * n)
        module.function("scan")((4, 1, 1), (128, 1, 1), arguments(a, y, n), 4 * 128)
        return [(download(y, n, "i"), expected)]


LAST_BLOCK = """
extern "C" __global__ void last_block(const float* x, float* parts, unsigned* tickets, float* y, long long n) {
    __shared__ float warps[4];
    __shared__ bool last;
    float sum = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) sum += x[i];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3];
        __threadfence();
        last = atomicAdd(tickets, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        sum = 0;
        for (int k = 0; k < gridDim.x; k++) sum += parts[k];
        y[0] = sum;
    }
}
"""


def run_last_block(module: Module, rng: Any) -> Pairs:
    n = 2500
    x = integers(rng, n)
    with Device() as device:
        a, parts, tickets, y = device.put(x), device.empty(20), device.put(numpy.zeros(1, "I")), device.empty(4)
        module.function("last_block")((5, 1, 1), (128, 1, 1), arguments(a, parts, tickets, y, n))
        return [(download(y, 1, "f"), x.sum(keepdims=True))]


SOFTMAX = """
extern "C" __global__ void softmax(const double* x, double* y, long long columns) { // the maximum and the sum, not the exponentials
    extern __shared__ __align__(16) unsigned char dynamic_[];
    double* row = (double*)dynamic_;
    __shared__ double fold[32];
    int t = threadIdx.x;
    double top = -1e300;
    for (int j = t; j < columns; j += 64) {
        row[j] = x[blockIdx.x * columns + j];
        top = fmax(top, row[j]);
    }
    for (int by = 16; by; by >>= 1) top = fmax(top, __shfl_xor_sync(0xffffffffu, top, by));
    if (t % 32 == 0) fold[t / 32] = top;
    __syncthreads();
    top = fmax(fold[0], fold[1]);
    for (int j = t; j < columns; j += 64) y[blockIdx.x * columns + j] = row[j] - top;
}
"""


def run_softmax(module: Module, rng: Any) -> Pairs:
    x = rng.standard_normal((5, 150))
    with Device() as device:
        a, y = device.put(x), device.empty(x.nbytes)
        module.function("softmax")((5, 1, 1), (64, 1, 1), arguments(a, y, 150), 8 * 150)
        return [(download(y, x.shape, "d"), x - x.max(1, keepdims=True))]


GATHER = """
struct gather_args { unsigned long long slot[5]; };
extern "C" __global__ void gather(const gather_args a) {
    const short* x = (const short*)a.slot[0];
    const long long* index = (const long long*)a.slot[1];
    short* y = (short*)a.slot[2];
    int n = (int)a.slot[3];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long k = index[i];
    if (k < 0) k += n;
    if (k < 0 || k >= n) {
        atomicOr((unsigned long long*)a.slot[4], 1ull);
        k = 0;
    }
    y[i] = x[k];
}
"""


def run_gather(module: Module, rng: Any) -> Pairs:
    n = 400
    x, index = rng.integers(-999, 999, n).astype("h"), rng.integers(-n, n, n)
    index[7] = n
    with Device() as device:
        a, k, y, error = device.put(x), device.put(index), device.empty(2 * n), device.put(numpy.zeros(1, "q"))
        module.function("gather")((4, 1, 1), (128, 1, 1), arguments(a, k, y, n, error))
        return [(download(y, n, "h"), x[numpy.where(index == n, 0, index)]), (download(error, 1, "q"), numpy.ones(1, "q"))]


HALVES = """
#include <cuda_fp16.h>
extern "C" __global__ void halves(const __half* x, const double* d, __half* sum, __half* rounded, int* whole, long long n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sum[i] = x[i] + x[n - 1 - i];
    rounded[i] = __double2half(d[i]);
    float f = (float)d[i];
    whole[i] = f > -1e9f && f < 1e9f ? (int)f : 0;
}
"""


def run_halves(module: Module, rng: Any) -> Pairs:
    x = numpy.arange(65536, dtype="H").view("e")
    x = x[numpy.isfinite(x)]
    n = len(x)
    d = numpy.ldexp(rng.uniform(-2, 2, n), rng.integers(-30, 17, n))
    d[: n // 2] = (x[: n // 2].astype("d") + x[1 : n // 2 + 1].astype("d")) / 2  # ties
    with Device() as device:
        a, b, s, r, w = device.put(x), device.put(d), device.empty(2 * n), device.empty(2 * n), device.empty(4 * n)
        module.function("halves")((-(-n // 256), 1, 1), (256, 1, 1), arguments(a, b, s, r, w, n))
        with numpy.errstate(over="ignore"):
            pairs = [(download(s, n, "e"), x + x[::-1]), (download(r, n, "e"), d.astype("e"))]
        return [(got.view("H"), expected.view("H")) for got, expected in pairs] + [(download(w, n, "i"), d.astype("f").astype("i"))]


HASH = """
extern "C" __global__ void hash(const int* x, int* y, long long n, long long by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long h = (unsigned long long)(unsigned)x[i] * 0x9e3779b97f4a7c15ull;
    h = h >> (by & 63);
    y[i] = (int)(h % 1009);
}
"""


def run_hash(module: Module, rng: Any) -> Pairs:
    n = 256
    x = rng.integers(-(2**31), 2**31, n).astype("i")
    with numpy.errstate(over="ignore"):
        h = (x.view("I").astype("Q") * numpy.uint64(0x9E3779B97F4A7C15)) >> numpy.uint64(33)
    with Device() as device:
        a, y = device.put(x), device.empty(4 * n)
        module.function("hash")((2, 1, 1), (128, 1, 1), arguments(a, y, n, 33))
        return [(download(y, n, "i"), (h % numpy.uint64(1009)).astype("i"))]


PROGRAMS = {
    "scale": Program(SCALE, run_scale),
    "shift": Program(SHIFT, run_shift),
    "scale4": Program(SCALE4, run_scale4),
    "block sum": Program(BLOCK_SUM, run_block_sum),
    "row sums": Program(ROW_SUMS, run_row_sums),
    "column sums": Program(COLUMN_SUMS, run_column_sums),
    "transpose": Program(TRANSPOSE, run_transpose),
    "histogram": Program(HISTOGRAM, run_histogram),
    "scan": Program(SCAN, run_scan),
    "last block": Program(LAST_BLOCK, run_last_block),
    "softmax": Program(SOFTMAX, run_softmax),
    "gather": Program(GATHER, run_gather),
    "halves": Program(HALVES, run_halves),
    "hash": Program(HASH, run_hash),
}
