"""Small host programs, each right and with one bug planted.

In: the fake CuPy, and whether the bug is in.  Out: nothing, or what went wrong: an exception of the fake, or an assertion about values.
Promise: the right program uses CUDA as a backend may; the planted one compiles, runs, and works on many a real machine most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SOURCE = """
struct args { unsigned long long slot[3]; };
extern "C" __global__ void __launch_bounds__(256) scale(float factor, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
extern "C" __global__ void add_one(float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 1.0f;
}
extern "C" __global__ void structured(const args a) {
    ((long long*)a.slot[0])[0] = ((const long long*)a.slot[1])[0] + (long long)a.slot[2];
}
extern "C" __global__ void reversed(float* y, int n) {
    extern __shared__ __align__(16) unsigned char dynamic_[];
    float* s = (float*)dynamic_;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = y[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = s[n - 1 - i];
}
"""
N = 1000
SIZE = np.int32(N)
OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")


def build(cupy: Any, *options: str, architecture: str = "sm_90") -> bytes:
    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(SOURCE, "hosts.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"-arch={architecture}", *options))
        return bytes(nvrtc.getCUBIN(program))
    finally:
        nvrtc.destroyProgram(program)


def kernel(cupy: Any, name: str) -> Any:
    module = cupy.cuda.Module()
    module.load(build(cupy))
    return module.get_function(name)


def scale(cupy: Any, factor: Any, x: Any, y: Any, stream: Any = None, n: Any = SIZE, grid: Any = (4,), block: Any = (256,)) -> None:
    kernel(cupy, "scale")(grid, block, (factor, x, y, n), 0, stream)


def host(value: float = 1.0) -> np.ndarray[Any, Any]:
    return np.full(N, value, np.float32)


def expect(array: Any, value: float) -> None:
    found = array if isinstance(array, np.ndarray) else array.get()
    np.testing.assert_array_equal(found, np.full(found.shape, value, found.dtype))


def event_missing(cupy: Any, planted: bool) -> None:
    """A stream reads what another one writes, with no event between."""
    first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with first:
        x, y, z = cupy.asarray(host()), cupy.empty(N, np.float32), cupy.empty(N, np.float32)
    scale(cupy, np.float32(2), x, y, first)
    if not planted:
        second.wait_event(first.record())
    scale(cupy, np.float32(3), y, z, second)
    second.synchronize()
    expect(z, 6)
    first.synchronize()


def event_recorded_late(cupy: Any, planted: bool) -> None:
    """A stream waits for an event that is recorded afterwards: it waits for nothing."""
    first, second, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
    with first:
        x, y, z = cupy.asarray(host()), cupy.empty(N, np.float32), cupy.empty(N, np.float32)
    scale(cupy, np.float32(2), x, y, first)
    for step in ("wait", "record") if planted else ("record", "wait"):
        if step == "record":
            event.record(first)
        else:
            second.wait_event(event)
    scale(cupy, np.float32(3), y, z, second)
    second.synchronize()
    expect(z, 6)
    first.synchronize()


def default_stream_trusted(cupy: Any, planted: bool) -> None:
    """A non-blocking stream does not wait for the default stream."""
    x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    stream = cupy.cuda.Stream(non_blocking=planted)
    scale(cupy, np.float32(2), x, y, stream)
    stream.synchronize()
    expect(y, 2)


def used_after_free(cupy: Any, planted: bool) -> None:
    """Memory of one stream is dropped while another one has yet to read it."""
    stream = cupy.cuda.Stream(non_blocking=True)
    x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    scale(cupy, np.float32(2), x, y, stream)
    if not planted:
        cupy.cuda.get_current_stream().wait_event(stream.record())
    del x
    z = cupy.full(N, 7, np.float32)
    stream.synchronize()
    expect(y, 2)
    expect(z, 7)


def pinned_reused(cupy: Any, planted: bool) -> None:
    """A pinned buffer is filled anew before its copy has run."""
    stream = cupy.cuda.Stream(non_blocking=True)
    memory = cupy.cuda.alloc_pinned_memory(4 * N)
    staging = np.frombuffer(memory, np.float32, N)
    with stream:
        x, y = cupy.empty(N, np.float32), cupy.empty(N, np.float32)
        for target, value in ((x, 1), (y, 2)):
            staging[:] = value
            target.data.copy_from_host_async(memory.ptr, 4 * N, stream)
            if not planted:
                stream.synchronize()
        expect(x, 1)
        expect(y, 2)


def pinned_dropped(cupy: Any, planted: bool) -> None:
    """A pinned buffer goes back to its pool before its copy has run."""
    stream = cupy.cuda.Stream(non_blocking=True)
    memory = cupy.cuda.alloc_pinned_memory(4 * N)
    np.frombuffer(memory, np.float32, N)[:] = 5
    with stream:
        x = cupy.empty(N, np.float32)
    cupy.cuda.runtime.memcpyAsync(x.data.ptr, memory.ptr, 4 * N, cupy.cuda.runtime.memcpyHostToDevice, stream.ptr)
    if planted:
        del memory
    stream.synchronize()
    expect(x, 5)


def read_before_synchronisation(cupy: Any, planted: bool) -> None:
    """Pinned memory is read before the copy into it has run."""
    stream = cupy.cuda.Stream(non_blocking=True)
    memory = cupy.cuda.alloc_pinned_memory(4 * N)
    result = np.frombuffer(memory, np.float32, N)
    with stream:
        x = cupy.full(N, 3, np.float32)
        x.get(stream=stream, out=result, blocking=False)
    if not planted:
        stream.synchronize()
    expect(result, 3)
    stream.synchronize()


def float_as_double(cupy: Any, planted: bool) -> None:
    """A Python float is a double, whatever the kernel wants."""
    x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    scale(cupy, 2.0 if planted else np.float32(2), x, y)
    expect(y, 2)


def integer_as_int64(cupy: Any, planted: bool) -> None:
    """A Python int is 64 bits, whatever the kernel wants."""
    x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    scale(cupy, np.float32(2), x, y, n=N if planted else np.int32(N))
    expect(y, 2)


def argument_missing(cupy: Any, planted: bool) -> None:
    """One argument fewer than the kernel has: the driver reads what lies there."""
    x = cupy.asarray(host())
    kernel(cupy, "add_one")((4,), (256,), (x,) if planted else (x, N))
    expect(x, 2)


def structure_too_short(cupy: Any, planted: bool) -> None:
    """The structure of arguments has a slot too few."""
    total, start = cupy.empty(1, np.int64), cupy.asarray(np.array([40]))
    slots = np.zeros(1, [("slot", np.uint64, 2 if planted else 3)])
    slots["slot"][0, :2] = total.data.ptr, start.data.ptr
    if not planted:
        slots["slot"][0, 2] = 2
    kernel(cupy, "structured")((1,), (1,), (slots,))
    expect(total, 42)


def block_too_large(cupy: Any, planted: bool) -> None:
    """More threads than ``__launch_bounds__`` allows."""
    x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    scale(cupy, np.float32(2), x, y, grid=(1 if planted else 4,), block=(N if planted else 256,))
    expect(y, 2)


def grid_too_large(cupy: Any, planted: bool) -> None:
    """The second and third dimensions of a grid end at 65535."""
    x = cupy.asarray(host())
    kernel(cupy, "add_one")((1, 70000) if planted else (4,), (256,), (x, N))
    expect(x, 2)


def shared_memory_not_asked_for(cupy: Any, planted: bool) -> None:
    """More than 48 KiB of shared memory has to be asked for."""
    found, n = kernel(cupy, "reversed"), 16000
    if not planted:
        cupy.cuda.driver.funcSetAttribute(found.ptr, 8, 4 * n)  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    x = cupy.arange(n, dtype=np.float32)
    found((1,), (1024,), (x, np.int32(n)), shared_mem=4 * n)
    np.testing.assert_array_equal(x.get(), np.arange(n, dtype=np.float32)[::-1])


def output_too_small(cupy: Any, planted: bool) -> None:
    """The output has fewer elements than the kernel writes, and the pool rounds sizes up."""
    x, y = cupy.asarray(host()), cupy.empty(N - 1 if planted else N, np.float32)
    scale(cupy, np.float32(2), x, y)
    expect(y, 2)


def copy_too_long(cupy: Any, planted: bool) -> None:
    """A copy counts elements where it should count bytes, the other way round."""
    x, y = cupy.asarray(host()), cupy.empty(N, np.float16)
    half = x.astype(np.float16)
    cupy.cuda.runtime.memcpyAsync(y.data.ptr, half.data.ptr, 4 * N if planted else 2 * N, cupy.cuda.runtime.memcpyDeviceToDevice, 0)
    expect(y, 1)


def copy_direction_wrong(cupy: Any, planted: bool) -> None:
    """The kind of a copy contradicts its addresses."""
    runtime, x, result = cupy.cuda.runtime, cupy.asarray(host()), host(0)
    runtime.memcpy(result.ctypes.data, x.data.ptr, x.nbytes, runtime.memcpyHostToDevice if planted else runtime.memcpyDeviceToHost)
    expect(result, 1)


def memory_not_cleared(cupy: Any, planted: bool) -> None:
    """Memory of the pool holds anything."""
    x = cupy.empty(N, np.float32)
    if not planted:
        x.data.memset_async(0, x.nbytes)
    kernel(cupy, "add_one")((4,), (256,), (x, N))
    expect(x, 1)


def host_address(cupy: Any, planted: bool) -> None:
    """A kernel gets the address of a NumPy array."""
    x, y = host(), cupy.empty(N, np.float32)
    device = cupy.asarray(x)
    scale(cupy, np.float32(2), np.uint64(x.ctypes.data if planted else device.data.ptr), y)
    expect(y, 2)


def other_device(cupy: Any, planted: bool) -> None:
    """A kernel of one device gets memory of another, and nobody allowed that."""
    with cupy.cuda.Device(1):
        x = cupy.asarray(host())
        cupy.cuda.Device(1).synchronize()
    if not planted:
        cupy.cuda.runtime.deviceEnablePeerAccess(1)
    y = cupy.empty(N, np.float32)
    scale(cupy, np.float32(2), x, y)
    expect(y, 2)


def stream_of_other_device(cupy: Any, planted: bool) -> None:
    """A stream belongs to the device that was current when it was made."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.Device(1):
        if not planted:
            stream = cupy.cuda.Stream(non_blocking=True)
        x = cupy.asarray(host())
        cupy.cuda.Device(1).synchronize()
        kernel(cupy, "add_one")((4,), (256,), (x, N), 0, stream)
        stream.synchronize()
        expect(x, 2)


def function_of_other_device(cupy: Any, planted: bool) -> None:
    """A function is loaded for one device: a cache has to know which."""
    function = kernel(cupy, "add_one")
    with cupy.cuda.Device(1):
        if not planted:
            function = kernel(cupy, "add_one")
        x = cupy.asarray(host())
        function((4,), (256,), (x, N))
        expect(x, 2)


def synchronised_in_capture(cupy: Any, planted: bool) -> None:
    """A stream that is captured cannot be waited for."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    stream.synchronize()
    stream.begin_capture()
    scale(cupy, np.float32(2), x, y, stream)
    if planted:
        stream.synchronize()
    graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    expect(y, 2)


def fork_not_joined(cupy: Any, planted: bool) -> None:
    """What a capture forks it has to join."""
    stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with stream:
        x, y = cupy.asarray(host()), cupy.empty(N, np.float32)
    stream.synchronize()
    stream.begin_capture()
    other.wait_event(stream.record())
    scale(cupy, np.float32(2), x, y, other)
    if not planted:
        stream.wait_event(other.record())
    graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    expect(y, 2)


def graph_outlives_memory(cupy: Any, planted: bool) -> None:
    """A graph uses the addresses that it was captured with."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x, y, spare = cupy.asarray(host()), cupy.empty(N, np.float32), []
    stream.begin_capture()
    scale(cupy, np.float32(2), x, y, stream)
    graph = stream.end_capture()
    if not planted:
        spare.append(x)
    del x
    with stream:
        z = cupy.full(N, 9, np.float32)
    graph.launch(stream)
    stream.synchronize()
    expect(y, 2)
    expect(z, 9)


def pageable_memory_captured(cupy: Any, planted: bool) -> None:
    """A captured copy reads pinned memory each time it runs; ordinary memory it cannot."""
    stream, memory = cupy.cuda.Stream(non_blocking=True), cupy.cuda.alloc_pinned_memory(4 * N)
    source = host() if planted else np.frombuffer(memory, np.float32, N)
    with stream:
        x = cupy.empty(N, np.float32)
    stream.synchronize()
    stream.begin_capture()
    x.set(source, stream)
    graph = stream.end_capture()
    source[:] = 4
    graph.launch(stream)
    stream.synchronize()
    expect(x, 4)


def limit_of_the_pool(cupy: Any, planted: bool) -> None:
    """The pool's limit counts the blocks that it keeps: they have to be given back before one gives up."""
    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=64 << 10)
    try:
        x = cupy.ones(12 << 10, np.float32)
        del x
        try:
            y = cupy.ones(15 << 10, np.float32)
        except cupy.cuda.memory.OutOfMemoryError:
            if planted:
                raise
            pool.free_all_blocks()
            y = cupy.ones(15 << 10, np.float32)
        expect(y, 1)
    finally:
        pool.set_limit(size=0)


def error_of_algebra_unseen(cupy: Any, planted: bool) -> None:
    """CuPy's linear algebra raises only where that is asked for."""
    import cupyx

    try:
        with cupyx.errstate(linalg="ignore" if planted else "raise"):
            cupy.linalg.inv(cupy.ones((3, 3)))
    except np.linalg.LinAlgError:
        return
    raise AssertionError("the singular matrix was not noticed")


def index_unchecked(cupy: Any, planted: bool) -> None:
    """CuPy wraps an index that is out of range."""
    x, index = cupy.arange(5), np.array([1, 7])
    if not planted and index.max() >= 5:
        return
    x[cupy.asarray(index)]
    raise AssertionError("the index was not noticed")


def architecture_of_other(cupy: Any, planted: bool) -> None:
    """Machine code of another architecture does not load."""
    module = cupy.cuda.Module()
    module.load(build(cupy, architecture="sm_100" if planted else "sm_90"))
    x = cupy.asarray(host())
    module.get_function("add_one")((4,), (256,), (x, N))
    expect(x, 2)


def option_unknown(cupy: Any, planted: bool) -> None:
    """An option of nvcc that NVRTC does not have."""
    build(cupy, *(("--expt-relaxed-constexpr",) if planted else ("--generate-line-info",)))


def interface_without_stream(cupy: Any, planted: bool) -> None:
    """Memory lent by ``__cuda_array_interface__`` is ready when its stream is; who says none has to have waited."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = cupy.zeros(N, np.float32)
        kernel(cupy, "add_one")((4,), (256,), (y, N))
        about = dict(y.__cuda_array_interface__)

    class Lent:
        __cuda_array_interface__ = about

    if planted:
        about["stream"] = None
    expect(cupy.asarray(Lent()), 1)
    stream.synchronize()


HOSTS: tuple[Callable[[Any, bool], None], ...] = (
    event_missing, event_recorded_late, default_stream_trusted, used_after_free, pinned_reused, pinned_dropped, read_before_synchronisation,
    float_as_double, integer_as_int64, argument_missing, structure_too_short, block_too_large, grid_too_large, shared_memory_not_asked_for,
    output_too_small, copy_too_long, copy_direction_wrong, memory_not_cleared, host_address, other_device, stream_of_other_device,
    function_of_other_device, synchronised_in_capture, fork_not_joined, graph_outlives_memory, pageable_memory_captured, limit_of_the_pool,
    error_of_algebra_unseen, index_unchecked, architecture_of_other, option_unknown, interface_without_stream,
) # fmt: skip
